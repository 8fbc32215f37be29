//! The nodes and their data.
//!
//! | node | data |
//! | --- | --- |
//! | base | none; its children are the nodes below |
//! | `hbaseid` | the cluster's id |
//! | `meta-region-server` | the server of `hbase:meta`: this one |
//! | `master` | the master: this one |
//! | `table/NAME` | the state of a table, for clients of HBase 1.x |
//! | `rs/HOST,PORT,STARTCODE` | empty; a replication source of a cluster lists it |
//! | `replication/peers/ID`, and its `peer-state` | a replication peer, for VerifyReplication |

use std::sync::Arc;

use basalt_engine::schema::{TableName, TableState};
use basalt_idl::native::messages::{
    ClusterId, DeprecatedTableState, Master, MetaRegionServer, deprecated_table_state, region_state,
};
use basalt_idl::native::znode;

use crate::native::{description, meta_name, primary_name};
use crate::security::Caller;
use crate::server::Server;
use crate::service::AdminCall;
use crate::service::admin::{cluster, peers, tables};

/// The base nodes that are served: HBase's default, and the defaults of distributions without and
/// with Kerberos.
const BASES: [&str; 3] = ["/hbase", "/hbase-unsecure", "/hbase-secure"];

/// A node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) data: Vec<u8>,
    pub(super) children: Vec<String>,
}

/// The nodes of a server.
#[derive(Debug)]
pub(super) struct Nodes<'a> {
    server: &'a Server,
    call: AdminCall,
}

impl<'a> Nodes<'a> {
    /// The nodes as this caller sees them.
    pub(super) fn new(server: &'a Arc<Server>, caller: &Arc<Caller>) -> Self {
        let call = AdminCall::new(server, caller);
        Self { server, call }
    }

    /// Time on the server's clock, in milliseconds since 1970.
    pub(super) fn wall_ms(&self) -> u64 {
        cluster::wall_ms(&self.call)
    }

    /// Transaction id of every response: the server's start time. It must never decrease, also not
    /// over restarts.
    pub(super) fn zxid(&self) -> i64 {
        self.server.instance().start_code()
    }

    /// The number of nodes.
    pub(super) fn count(&self) -> usize {
        1 + self.count_below(b"/").unwrap_or_default()
    }

    /// The number of nodes below the one at a path; `None` if there is no such node.
    pub(super) fn count_below(&self, path: &[u8]) -> Option<usize> {
        let node = self.get(path)?;
        let prefix = if path == b"/" { b"" } else { path };
        let below = node.children.iter().map(|child| {
            let child = [prefix, b"/", child.as_bytes()].concat();
            // The children of other nodes have none.
            match child.split(|byte| *byte == b'/').count() - 1 {
                1..=4 => 1 + self.count_below(&child).unwrap_or_default(),
                _ => 1,
            }
        });
        Some(below.sum())
    }

    /// The node at a path.
    pub(super) fn get(&self, path: &[u8]) -> Option<Node> {
        let path = std::str::from_utf8(path).ok()?;
        if path == "/" {
            return Some(Node {
                children: BASES.iter().map(|base| base[1..].to_owned()).collect(),
                ..Node::default()
            });
        }
        let below = BASES
            .iter()
            .filter_map(|base| path.strip_prefix(base))
            .find(|rest| rest.is_empty() || rest.starts_with('/'))?;
        match below.trim_start_matches('/') {
            "" => Some(Node {
                children: [
                    "hbaseid",
                    "master",
                    "meta-region-server",
                    "replication",
                    "rs",
                    "table",
                ]
                .map(str::to_owned)
                .into(),
                ..Node::default()
            }),
            "hbaseid" => Some(data(&ClusterId {
                cluster_id: cluster::cluster_id(&self.call).ok()?,
            })),
            "meta-region-server" => Some(data(&MetaRegionServer {
                server: meta_name(self.server),
                rpc_version: Some(0),
                state: Some(region_state::State::Open.into()),
            })),
            "master" => Some(data(&Master {
                master: primary_name(self.server),
                rpc_version: Some(0),
                info_port: Some(0),
            })),
            "rs" => Some(Node {
                children: vec![znode::server_name_text(&primary_name(self.server))],
                ..Node::default()
            }),
            "replication" => Some(Node {
                children: vec!["peers".to_owned()],
                ..Node::default()
            }),
            "replication/peers" => {
                let peers = peers::list(&self.call, None).unwrap_or_default();
                Some(Node {
                    children: peers.iter().map(|peer| peer.id.clone()).collect(),
                    ..Node::default()
                })
            }
            "table" => {
                let mut tables = tables::list(&self.call).ok()?;
                if self.server.security().authenticates() {
                    // Clients have not logged in yet: they learn of tables that they name, as in HBase.
                    tables.clear();
                }
                Some(Node {
                    children: tables.iter().map(|(table, _)| table.name.to_string()).collect(),
                    ..Node::default()
                })
            }
            other => self.leaf(other),
        }
    }

    fn leaf(&self, path: &str) -> Option<Node> {
        if let Some(name) = path.strip_prefix("rs/") {
            let is_ours = name == znode::server_name_text(&primary_name(self.server));
            return is_ours.then(Node::default);
        }
        if let Some(id) = path.strip_prefix("replication/peers/") {
            return self.peer(id);
        }
        let name = TableName::parse(path.strip_prefix("table/")?.as_bytes()).ok()?;
        let (_, state) = tables::describe(&self.call, &name).ok()?;
        let state = match state {
            TableState::Enabled => deprecated_table_state::State::Enabled,
            TableState::Disabled => deprecated_table_state::State::Disabled,
        };
        Some(data(&DeprecatedTableState { state: state.into() }))
    }

    /// A replication peer, or its state.
    fn peer(&self, path: &str) -> Option<Node> {
        let id = path.strip_suffix("/peer-state");
        let peer = peers::get(&self.call, id.unwrap_or(path)).ok()?;
        let described = description(&peer);
        Some(match id {
            Some(_) => data(&described.state),
            None => Node {
                children: vec!["peer-state".to_owned()],
                ..data(&described.config)
            },
        })
    }
}

fn data(message: &impl prost::Message) -> Node {
    Node {
        data: znode::encode(message),
        children: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use basalt_engine::fs::sim::{SimFs, SimOptions};
    use basalt_engine::schema::{FamilyDescriptor, TableDescriptor};
    use basalt_idl::native::messages::{ReplicationPeer, ReplicationState, replication_state};

    use super::*;
    use crate::config::Config;
    use crate::security::{Access, Owner};

    /// Goal: the nodes show neither tables nor the cluster's id to a reader without rights.
    #[test]
    fn nodes_say_nothing_that_their_reader_may_not_know() {
        let nodes_of = |access| {
            let config = Config::default();
            let engine = crate::rig::engine_on(&SimFs::new(1, SimOptions::default()), &config);
            let name = TableName::parse(b"secret").unwrap();
            let descriptor = TableDescriptor::new(name, vec![FamilyDescriptor::new(b"f")]);
            engine.create_table(descriptor, Vec::new()).unwrap();
            Arc::new(crate::rig::server_of(engine, config, 4).with_access(access))
        };
        let caller = Caller::anonymous(Owner::Connection(1), None);
        let (open, closed) = (nodes_of(Access::Everybody), nodes_of(Access::Nobody));
        let (open, closed) = (Nodes::new(&open, &caller), Nodes::new(&closed, &caller));
        let has = |nodes: &Nodes<'_>, path: &str| nodes.get(path.as_bytes()).is_some();
        for path in ["/hbase/table", "/hbase/table/secret", "/hbase/hbaseid"] {
            assert!(has(&open, path) && !has(&closed, path), "{path}");
        }
        assert!(!has(&open, "/hbase/table/absent"));
        // Clients need these before they can say who they are, as in HBase.
        for path in [
            "/",
            "/hbase",
            "/hbase/master",
            "/hbase/meta-region-server",
            "/hbase/rs",
        ] {
            assert!(has(&closed, path), "{path}");
        }
    }

    /// Goal: replication peers are where VerifyReplication looks for them, and only operators see them.
    #[test]
    fn replication_peers_have_nodes() {
        let nodes_of = |access| {
            let config = Config::default();
            let engine = crate::rig::engine_on(&SimFs::new(1, SimOptions::default()), &config);
            let server = crate::rig::server_of(engine, config, 4).with_access(access);
            let config = crate::server::copies::peers::PeerConfig {
                cluster_key: "h:2181:/hbase".to_owned(),
                ..Default::default()
            };
            server
                .copies()
                .peers
                .add(crate::rig::engine(&server), "p", config, true)
                .unwrap();
            Arc::new(server)
        };
        let caller = Caller::anonymous(Owner::Connection(1), None);
        let (open, closed) = (nodes_of(Access::Everybody), nodes_of(Access::Nobody));
        let (open, closed) = (Nodes::new(&open, &caller), Nodes::new(&closed, &caller));
        let path = b"/hbase/replication/peers";
        assert_eq!(open.get(path).unwrap().children, ["p"]);
        assert_eq!(closed.get(path).unwrap().children, Vec::<String>::new());
        let node = open.get(b"/hbase/replication/peers/p").unwrap();
        let peer: ReplicationPeer = znode::decode(&node.data).unwrap();
        assert_eq!(peer.clusterkey(), "h:2181:/hbase");
        let state = open.get(b"/hbase/replication/peers/p/peer-state").unwrap();
        let state: ReplicationState = znode::decode(&state.data).unwrap();
        assert_eq!(state.state(), replication_state::State::Enabled);
        assert!(closed.get(b"/hbase/replication/peers/p").is_none());
        assert_eq!(open.count_below(b"/hbase/replication"), Some(3));
    }
}
