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

use basalt_engine::schema::{TableName, TableState};
use basalt_idl::native::messages::{
    ClusterId, DeprecatedTableState, Master, MetaRegionServer, deprecated_table_state, region_state,
};
use basalt_idl::native::znode;

use crate::native::server_name;
use crate::server::Server;

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
}

impl<'a> Nodes<'a> {
    pub(super) fn new(server: &'a Server) -> Self {
        Self { server }
    }

    /// Transaction id of every response: the server's start time. It must never decrease, also not
    /// over restarts.
    pub(super) fn zxid(&self) -> i64 {
        self.server.start_code()
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
                children: ["hbaseid", "master", "meta-region-server", "rs", "table"]
                    .map(str::to_owned)
                    .into(),
                ..Node::default()
            }),
            "hbaseid" => Some(data(&ClusterId {
                cluster_id: self.server.engine().cluster_id().to_string(),
            })),
            "meta-region-server" => Some(data(&MetaRegionServer {
                server: server_name(self.server),
                rpc_version: Some(0),
                state: Some(region_state::State::Open.into()),
            })),
            "master" => Some(data(&Master {
                master: server_name(self.server),
                rpc_version: Some(0),
                info_port: Some(0),
            })),
            "rs" => Some(Node {
                children: vec![znode::server_name_text(&server_name(self.server))],
                ..Node::default()
            }),
            "table" => {
                let tables = self.server.engine().tables();
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
            let is_ours = name == znode::server_name_text(&server_name(self.server));
            return is_ours.then(Node::default);
        }
        let name = TableName::parse(path.strip_prefix("table/")?.as_bytes()).ok()?;
        let (_, state) = self.server.engine().describe_table(&name).ok()?;
        let state = match state {
            TableState::Enabled => deprecated_table_state::State::Enabled,
            TableState::Disabled => deprecated_table_state::State::Disabled,
        };
        Some(data(&DeprecatedTableState { state: state.into() }))
    }
}

fn data(message: &impl prost::Message) -> Node {
    Node {
        data: znode::encode(message),
        children: Vec::new(),
    }
}
