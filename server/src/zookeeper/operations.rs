//! Operations of a session, and their answers.

use basalt_idl::zookeeper::{
    Change, MultiOp, MultiOps, MultiResult, Operation, PacketError, Responses, Stat, ZkError, ZkRequest,
};

use super::nodes::{Node, Nodes};
use super::sessions::Registered;

/// Permission to read, the only one that anybody has.
const READ: i32 = 1;

/// Most bytes of the answer to a multi that reads: ZooKeeper's own limit of a packet. Reads beyond it
/// fail.
const MULTI_BYTES: usize = 1 << 20;

/// Answers a request; `false` when it ends the session.
pub(super) fn answer(
    nodes: &Nodes<'_>,
    session: &Registered<'_>,
    packet: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool, PacketError> {
    session.request(packet);
    let request = ZkRequest::decode(packet)?;
    let mut responses = Responses {
        zxid: nodes.zxid(),
        out,
    };
    let xid = request.xid;
    match request.operation {
        Operation::Exists(path) => match nodes.get(path) {
            Some(node) => responses.stat(xid, stat(nodes, &node)),
            None => responses.empty(xid, Some(ZkError::NoNode)),
        },
        Operation::GetData(path) => match nodes.get(path) {
            Some(node) => responses.data(xid, &node.data, stat(nodes, &node)),
            None => responses.empty(xid, Some(ZkError::NoNode)),
        },
        Operation::GetAcl(path) => match nodes.get(path) {
            Some(node) => responses.acl(xid, READ, stat(nodes, &node)),
            None => responses.empty(xid, Some(ZkError::NoNode)),
        },
        Operation::GetChildren { path, with_stat } => match nodes.get(path) {
            Some(node) => {
                let stat = with_stat.then(|| stat(nodes, &node));
                responses.children(xid, node.children.iter().map(String::as_str), stat);
            }
            None => responses.empty(xid, Some(ZkError::NoNode)),
        },
        Operation::CountBelow(path) => match nodes.count_below(path) {
            Some(count) => responses.number(xid, i32::try_from(count).unwrap_or(i32::MAX)),
            None => responses.empty(xid, Some(ZkError::NoNode)),
        },
        Operation::Check { path, version } => responses.empty(xid, check(nodes, path, version).err()),
        Operation::Sync(path) => responses.path(xid, path),
        Operation::WhoAmI => responses.identity(xid, "ip", &session.peer().ip().to_string()),
        Operation::Multi { operations, reads } => multi(nodes, xid, operations, reads, &mut responses)?,
        Operation::AddWatch | Operation::GetEphemerals => responses.number(xid, 0),
        Operation::Ping | Operation::Register => responses.empty(xid, None),
        Operation::Close => {
            responses.empty(xid, None);
            return Ok(false);
        }
        Operation::Change(change) => responses.empty(xid, Some(refusal(nodes, change))),
        Operation::Other(_) => responses.empty(xid, Some(ZkError::Unimplemented)),
    }
    Ok(true)
}

fn stat(nodes: &Nodes<'_>, node: &Node) -> Stat {
    Stat {
        zxid: nodes.zxid(),
        time_ms: nodes.zxid(),
        data_length: node.data.len() as i32,
        children: node.children.len() as i32,
    }
}

/// Why a change is refused: the node, or the one above it, is missing, or nobody may change it.
fn refusal(nodes: &Nodes<'_>, change: Change<'_>) -> ZkError {
    let Change { path, of_parent } = change;
    if path.first() != Some(&b'/') {
        return ZkError::BadArguments;
    }
    let changed = if of_parent { parent(path) } else { path };
    if nodes.get(changed).is_some() {
        ZkError::NoAuth
    } else {
        ZkError::NoNode
    }
}

fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(slash) => &path[..slash],
    }
}

/// Checks the version of a node; all have version 0.
fn check(nodes: &Nodes<'_>, path: &[u8], version: i32) -> Result<(), ZkError> {
    if nodes.get(path).is_none() {
        return Err(ZkError::NoNode);
    }
    if !matches!(version, -1 | 0) {
        return Err(ZkError::BadVersion);
    }
    Ok(())
}

/// Answers a multi. Reads are answered one by one. In a transaction one operation that fails makes all
/// fail, as each change does.
fn multi(
    nodes: &Nodes<'_>,
    xid: i32,
    operations: MultiOps<'_>,
    reads: bool,
    responses: &mut Responses<'_>,
) -> Result<(), PacketError> {
    let operations = operations.collect::<Result<Vec<_>, _>>()?;
    if reads {
        let mut bytes = 0;
        let found: Vec<_> = operations
            .iter()
            .map(|operation| read(nodes, *operation, &mut bytes))
            .collect();
        responses.multi(xid, found.iter().map(Read::result));
        return Ok(());
    }
    let failed = operations.iter().enumerate().find_map(|(index, operation)| {
        let error = match operation {
            MultiOp::Check { path, version } => check(nodes, path, *version).err(),
            MultiOp::Change(change) => Some(refusal(nodes, *change)),
            MultiOp::GetData(_) | MultiOp::GetChildren(_) => Some(ZkError::Unimplemented),
        };
        error.map(|error| (index, error))
    });
    responses.multi(
        xid,
        (0..operations.len()).map(|index| match failed {
            None => MultiResult::Checked,
            Some((at, _)) if index < at => MultiResult::Failed(None),
            Some((at, error)) if index == at => MultiResult::Failed(Some(error)),
            Some(_) => MultiResult::Failed(Some(ZkError::RuntimeInconsistency)),
        }),
    );
    Ok(())
}

/// The outcome of a read in a multi.
enum Read {
    Failed(ZkError),
    Data(Node, Stat),
    Children(Node),
}

impl Read {
    fn result(&self) -> MultiResult<'_> {
        match self {
            Self::Failed(error) => MultiResult::Failed(Some(*error)),
            Self::Data(node, stat) => MultiResult::Data(&node.data, *stat),
            Self::Children(node) => MultiResult::Children(&node.children),
        }
    }
}

/// Reads for a multi; `bytes` is the size of all its reads so far.
fn read(nodes: &Nodes<'_>, operation: MultiOp<'_>, bytes: &mut usize) -> Read {
    if *bytes > MULTI_BYTES {
        return Read::Failed(ZkError::BadArguments);
    }
    let (MultiOp::GetData(path) | MultiOp::GetChildren(path)) = operation else {
        return Read::Failed(ZkError::Unimplemented);
    };
    let Some(node) = nodes.get(path) else {
        return Read::Failed(ZkError::NoNode);
    };
    if matches!(operation, MultiOp::GetData(_)) {
        *bytes += node.data.len();
        let stat = stat(nodes, &node);
        Read::Data(node, stat)
    } else {
        *bytes += node.children.iter().map(|name| name.len() + 4).sum::<usize>();
        Read::Children(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_above_is_the_path_up_to_the_last_slash() {
        for (path, expected) in [
            (&b"/hbase/x"[..], &b"/hbase"[..]),
            (b"/hbase/rs/x", b"/hbase/rs"),
            (b"/x", b"/"),
            (b"/", b"/"),
            (b"", b"/"),
        ] {
            assert_eq!(parent(path), expected, "{}", path.escape_ascii());
        }
    }
}
