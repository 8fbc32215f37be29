//! The packets of ZooKeeper's clients.
//!
//! ```text
//! input = packets: u32 length | that many bytes; the first one is a connect request
//! ```
//!
//! Strings lie in their packet. A response has the length that it says, and repeats the xid.

use basalt_idl::zookeeper::{
    ConnectRequest, MultiOp, MultiResult, Operation, PACKET_BYTES_MAX, Responses, Stat, ZkError, ZkRequest,
    put_connect_response,
};

use crate::memory;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let mut rest = input;
    let mut is_first = true;
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((packet, behind)) = behind.split_at_checked(length) else {
            return;
        };
        if length > PACKET_BYTES_MAX {
            return;
        }
        if std::mem::take(&mut is_first) {
            connect(packet);
        } else {
            request(packet);
        }
        rest = behind;
    }
}

fn connect(packet: &[u8]) {
    let Ok(request) = memory::bounded(packet.len(), 0, || ConnectRequest::decode(packet)) else {
        return;
    };
    assert!(request.password.len() <= packet.len());
    let mut out = Vec::new();
    put_connect_response(
        request.timeout_ms,
        request.session,
        &[0; 16],
        request.has_read_only,
        &mut out,
    );
    assert_eq!(out.len(), 4 + if request.has_read_only { 37 } else { 36 });
}

fn request(packet: &[u8]) {
    let Ok(request) = memory::bounded(packet.len(), 0, || ZkRequest::decode(packet)) else {
        return;
    };
    let stat = Stat {
        zxid: 1,
        time_ms: 1,
        data_length: 0,
        children: 1,
    };
    let mut out = Vec::new();
    let mut responses = Responses {
        zxid: 1,
        out: &mut out,
    };
    match request.operation {
        Operation::Exists(path) => {
            assert!(path.len() <= packet.len());
            responses.stat(request.xid, stat);
        }
        Operation::GetData(path) => responses.data(request.xid, path, stat),
        Operation::GetChildren { path, with_stat } => {
            let names = ["rs", "master"];
            let names = names[..path.len().min(names.len())].iter().copied();
            responses.children(request.xid, names, with_stat.then_some(stat));
        }
        Operation::GetAcl(_) => responses.acl(request.xid, 1, stat),
        Operation::Sync(path) => responses.path(request.xid, path),
        Operation::CountBelow(path) => responses.number(request.xid, path.len() as i32),
        Operation::WhoAmI => responses.identity(request.xid, "ip", "127.0.0.1"),
        Operation::Multi { operations, .. } => {
            let results = operations.map_while(Result::ok).map(|operation| match operation {
                MultiOp::GetData(path) => MultiResult::Data(path, stat),
                MultiOp::Check { .. } => MultiResult::Checked,
                MultiOp::GetChildren(_) => MultiResult::Children(&[]),
                MultiOp::Change(change) => {
                    assert!(change.path.len() <= packet.len());
                    MultiResult::Failed(Some(ZkError::NoAuth))
                }
            });
            responses.multi(request.xid, results);
        }
        Operation::Other(_) => responses.empty(request.xid, Some(ZkError::Unimplemented)),
        _ => responses.empty(request.xid, None),
    }
    let (length, response) = out.split_first_chunk::<4>().expect("a response has a length");
    assert_eq!(u32::from_be_bytes(*length) as usize, response.len());
    assert_eq!(response[..4], request.xid.to_be_bytes());
}
