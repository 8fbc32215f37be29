//! One side of a move: a cluster, and the calls on it that a move makes.

use std::collections::BTreeMap;

use basalt_client::native::{Cluster, ServerName, Table};
use basalt_client::{Result, TableName};
use basalt_idl::native::messages::{
    self as pb, BytesBytesPair, ColumnFamilySchema, MasterServiceMethod as Method, TableSchema,
    replication_state::State,
};
use bytes::Bytes;

const READ_ONLY: &[u8] = b"READONLY";
const SCOPE: &[u8] = b"REPLICATION_SCOPE";

/// The scope of families that are replicated.
const GLOBAL: &str = "1";

/// Longest pause of a peer after failures, in seconds: a move waits for it.
const PAUSE_MAX: (&str, &str) = ("replication.source.maxretriesmultiplier", "10");

/// Scopes by family; `None`: it has none.
pub(super) type Scopes = BTreeMap<String, Option<String>>;

/// A cluster with the table.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) cluster: Cluster,
    pub(super) table: Table,
    name: TableName,
}

/// Figures of a cluster's servers.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// The latest time of a server's report, in milliseconds since 1970; 0: there is none.
    pub(super) time_ms: u64,
    /// The sources of all peers, of all servers.
    pub(super) sources: Vec<pb::ReplicationLoadSource>,
}

impl Side {
    pub(super) fn new(cluster: Cluster, table: &str) -> Result<Self> {
        Ok(Self {
            table: cluster.table(table)?,
            name: table.parse()?,
            cluster,
        })
    }

    fn message_name(&self) -> pb::TableName {
        pb::TableName {
            namespace: Bytes::copy_from_slice(self.name.namespace().as_bytes()),
            qualifier: Bytes::copy_from_slice(self.name.qualifier().as_bytes()),
        }
    }

    /// Whether the table is enabled; `None` if it does not exist.
    pub(super) async fn state(&self) -> Result<Option<bool>> {
        self.cluster.find_table(&self.name).await
    }

    /// The descriptor; `None` if the table does not exist.
    pub(super) async fn descriptor(&self) -> Result<Option<TableSchema>> {
        let request = pb::GetTableDescriptorsRequest {
            table_names: vec![self.message_name()],
            ..pb::GetTableDescriptorsRequest::default()
        };
        let answer: pb::GetTableDescriptorsResponse = self
            .cluster
            .ask_by_message(Method::GetTableDescriptors, &request)
            .await?;
        Ok(answer.table_schema.into_iter().next())
    }

    /// Replaces the descriptor.
    async fn alter(&self, descriptor: TableSchema) -> Result<()> {
        let (group, nonce) = self.cluster.next_nonce();
        let request = pb::ModifyTableRequest {
            table_name: self.message_name(),
            table_schema: descriptor,
            nonce_group: Some(group),
            nonce: Some(nonce),
            ..pb::ModifyTableRequest::default()
        };
        self.cluster
            .change_by_message(Some(&self.name), Method::ModifyTable, &request)
            .await
    }

    /// Creates the table.
    pub(super) async fn create(&self, descriptor: TableSchema, split_keys: Vec<Bytes>) -> Result<()> {
        let (group, nonce) = self.cluster.next_nonce();
        let request = pb::CreateTableRequest {
            table_schema: descriptor,
            split_keys,
            nonce_group: Some(group),
            nonce: Some(nonce),
        };
        self.cluster
            .change_by_message(Some(&self.name), Method::CreateTable, &request)
            .await
    }

    /// Drops the table, if there is one.
    pub(super) async fn drop_table(&self) -> Result<()> {
        let name = self.name.to_string();
        match self.state().await? {
            None => return Ok(()),
            Some(true) => self.cluster.disable_table(&name).await?,
            Some(false) => {}
        }
        self.cluster.drop_table(&name).await
    }

    /// Whether clients may not write to the table. False if there is none.
    pub(super) async fn is_read_only(&self) -> Result<bool> {
        let descriptor = self.descriptor().await?;
        Ok(descriptor.is_some_and(|descriptor| is_read_only(&descriptor)))
    }

    /// Makes the table read only, or writable. When the call returns, no earlier write is under way.
    pub(super) async fn set_read_only(&self, read_only: bool) -> Result<()> {
        let Some(mut descriptor) = self.descriptor().await? else {
            return Ok(());
        };
        if is_read_only(&descriptor) == read_only {
            return Ok(());
        }
        set(&mut descriptor.attributes, READ_ONLY, read_only.then_some("true"));
        self.alter(descriptor).await
    }

    /// Sets the scopes of families. Families that are gone are left out.
    pub(super) async fn set_scopes(&self, scopes: &Scopes) -> Result<()> {
        let Some(mut descriptor) = self.descriptor().await? else {
            return Ok(());
        };
        let before = descriptor.clone();
        for family in &mut descriptor.column_families {
            let name = String::from_utf8_lossy(&family.name).into_owned();
            if let Some(scope) = scopes.get(&name) {
                set(&mut family.attributes, SCOPE, scope.as_deref());
            }
        }
        if descriptor == before {
            return Ok(());
        }
        self.alter(descriptor).await
    }

    /// The addresses of the region servers.
    pub(super) async fn servers(&self) -> Result<Vec<ServerName>> {
        self.cluster.region_servers().await
    }

    /// The peer of that id.
    pub(super) async fn peer(&self, id: &str) -> Result<Option<pb::ReplicationPeerDescription>> {
        let request = pb::ListReplicationPeersRequest::default();
        let answer: pb::ListReplicationPeersResponse = self
            .cluster
            .ask_by_message(Method::ListReplicationPeers, &request)
            .await?;
        Ok(answer.peer_desc.into_iter().find(|peer| peer.id == id))
    }

    /// Adds a peer that gets the table alone.
    pub(super) async fn add_peer(&self, id: &str, key: &str, state: State) -> Result<()> {
        let (option, value) = PAUSE_MAX;
        let request = pb::AddReplicationPeerRequest {
            peer_id: id.to_owned(),
            peer_config: pb::ReplicationPeer {
                clusterkey: Some(key.to_owned()),
                configuration: vec![pb::NameStringPair {
                    name: option.to_owned(),
                    value: value.to_owned(),
                }],
                table_cfs: vec![pb::TableCf {
                    table_name: Some(self.message_name()),
                    families: Vec::new(),
                }],
                replicate_all: Some(false),
                ..pb::ReplicationPeer::default()
            },
            peer_state: pb::ReplicationState { state: state.into() },
        };
        self.cluster
            .change_by_message(None, Method::AddReplicationPeer, &request)
            .await
    }

    /// Enables a peer, unless it is.
    pub(super) async fn enable_peer(&self, id: &str) -> Result<()> {
        let enabled = i32::from(State::Enabled);
        if self
            .peer(id)
            .await?
            .is_some_and(|peer| peer.state.state == enabled)
        {
            return Ok(());
        }
        let request = pb::EnableReplicationPeerRequest {
            peer_id: id.to_owned(),
        };
        self.cluster
            .change_by_message(None, Method::EnableReplicationPeer, &request)
            .await
    }

    /// Removes a peer, if there is one.
    pub(super) async fn remove_peer(&self, id: &str) -> Result<()> {
        if self.peer(id).await?.is_none() {
            return Ok(());
        }
        let request = pb::RemoveReplicationPeerRequest {
            peer_id: id.to_owned(),
        };
        self.cluster
            .change_by_message(None, Method::RemoveReplicationPeer, &request)
            .await
    }

    /// Time and figures of the servers.
    pub(super) async fn status(&self) -> Result<Status> {
        let request = pb::GetClusterStatusRequest::default();
        let answer: pb::GetClusterStatusResponse = self
            .cluster
            .ask_by_message(Method::GetClusterStatus, &request)
            .await?;
        let mut status = Status::default();
        for server in answer.cluster_status.live_servers {
            let time_ms = server.server_load.report_end_time.unwrap_or_default();
            status.time_ms = status.time_ms.max(time_ms);
            status.sources.extend(server.server_load.repl_load_source);
        }
        Ok(status)
    }
}

/// The scopes of all families. Fails with the name of a family that is no text.
pub(super) fn scopes(descriptor: &TableSchema) -> std::result::Result<Scopes, String> {
    let families = descriptor.column_families.iter().map(|family| {
        let name = String::from_utf8(family.name.to_vec())
            .map_err(|_| format!("the name of family {} is not UTF-8", family.name.escape_ascii()))?;
        Ok((name, scope(family)))
    });
    families.collect()
}

fn scope(family: &ColumnFamilySchema) -> Option<String> {
    let attribute = family.attributes.iter().find(|pair| pair.first == SCOPE);
    attribute.map(|pair| String::from_utf8_lossy(&pair.second).into_owned())
}

/// These families, each with the scope of replicated ones.
pub(super) fn all_global(scopes: &Scopes) -> Scopes {
    let families = scopes.keys().cloned();
    families.map(|family| (family, Some(GLOBAL.to_owned()))).collect()
}

/// Whether a descriptor says that clients may not write.
pub(super) fn is_read_only(descriptor: &TableSchema) -> bool {
    let attribute = descriptor.attributes.iter().find(|pair| pair.first == READ_ONLY);
    attribute.is_some_and(|pair| pair.second.eq_ignore_ascii_case(b"true"))
}

/// Sets an attribute, or removes it.
fn set(attributes: &mut Vec<BytesBytesPair>, name: &'static [u8], value: Option<&str>) {
    attributes.retain(|pair| pair.first != name);
    attributes.extend(value.map(|value| BytesBytesPair {
        first: Bytes::from_static(name),
        second: Bytes::copy_from_slice(value.as_bytes()),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_set_and_removed() {
        let mut descriptor = TableSchema::default();
        assert!(!is_read_only(&descriptor));
        set(&mut descriptor.attributes, READ_ONLY, Some("true"));
        assert!(is_read_only(&descriptor));
        set(&mut descriptor.attributes, READ_ONLY, Some("false"));
        assert!(!is_read_only(&descriptor) && descriptor.attributes.len() == 1);
        set(&mut descriptor.attributes, READ_ONLY, None);
        assert!(descriptor.attributes.is_empty());

        let mut family = ColumnFamilySchema {
            name: Bytes::from_static(b"f"),
            ..ColumnFamilySchema::default()
        };
        set(&mut family.attributes, SCOPE, Some("0"));
        descriptor.column_families.push(family);
        let before = scopes(&descriptor).unwrap();
        assert_eq!(before["f"].as_deref(), Some("0"));
        assert_eq!(all_global(&before)["f"].as_deref(), Some("1"));
        descriptor.column_families[0].name = Bytes::from_static(b"\xff");
        assert!(scopes(&descriptor).unwrap_err().contains("\\xff"));
    }
}
