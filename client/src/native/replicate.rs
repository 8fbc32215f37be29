//! The sending side of replication: edits of a log, for the region servers of another cluster.
//!
//! A [`Shipment`] is one call. Its server answers when all of its edits are durable there; after a failure
//! some of them may be, and the whole shipment can be sent again: cells have their times already.

use std::sync::Arc;
use std::time::Duration;

use basalt_idl::native::cells::put_stored_cell;
use basalt_idl::native::messages::{
    ClusterStatus, FamilyScope, GetClusterStatusRequest, GetClusterStatusResponse, MasterServiceMethod,
    ReplicateWalEntryRequest, ReplicateWalEntryResponse, ScopeType, Uuid, WalEntry, WalKey,
};
use bytes::Bytes;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::connection::{Call, Service};
use crate::error::Result;
use crate::server_name::ServerName;

/// HBase's priority of replication.
const PRIORITY: u32 = 5;

/// The method.
const METHOD: &str = "ReplicateWALEntry";

/// One edit of a log: cells that one write has put into one region.
#[derive(Clone, Copy, Debug)]
pub struct ShippedEdit<'a> {
    /// The table, `namespace:name` or `name`.
    pub table: &'a str,
    /// The encoded name of the source's region, which keeps the edits of a region in their order.
    pub region: &'a [u8],
    /// The sequence id in the source's log.
    pub sequence: u64,
    /// When it was written, in milliseconds since 1970.
    pub write_time_ms: u64,
    /// The clusters that it has passed, the source included.
    pub clusters: &'a [[u8; 16]],
    /// The families of its cells.
    pub families: &'a [&'a [u8]],
    /// Number of its cells.
    pub cells: u32,
    /// The cells, one behind the other ([`put_cell`]).
    pub block: &'a [u8],
}

/// Edits for one server.
#[derive(Clone, Debug, Default)]
pub struct Shipment {
    request: ReplicateWalEntryRequest,
    cells: Vec<u8>,
}

impl Shipment {
    /// Adds an edit behind the others.
    pub fn push(&mut self, edit: &ShippedEdit<'_>) {
        let scopes = edit.families.iter().map(|family| FamilyScope {
            family: Bytes::copy_from_slice(family),
            scope_type: ScopeType::ReplicationScopeGlobal.into(),
        });
        self.request.entry.push(WalEntry {
            key: WalKey {
                encoded_region_name: Bytes::copy_from_slice(edit.region),
                table_name: Bytes::copy_from_slice(edit.table.as_bytes()),
                log_sequence_number: edit.sequence,
                write_time: edit.write_time_ms,
                scopes: scopes.collect(),
                cluster_ids: edit.clusters.iter().map(uuid).collect(),
                ..WalKey::default()
            },
            key_value_bytes: Vec::new(),
            associated_cell_count: i32::try_from(edit.cells).ok(),
        });
        self.cells.extend_from_slice(edit.block);
    }

    /// Number of edits.
    pub fn edits(&self) -> usize {
        self.request.entry.len()
    }

    /// Bytes of cells.
    pub fn bytes(&self) -> usize {
        self.cells.len()
    }
}

/// Appends a cell to the cells of an edit. `key` has the form that HFiles have, with the cell's type.
pub fn put_cell(key: &[u8], value: &[u8], tags: &[u8], out: &mut Vec<u8>) {
    put_stored_cell(key, value, tags, out);
}

fn uuid(bytes: &[u8; 16]) -> Uuid {
    let bits = u128::from_be_bytes(*bytes);
    Uuid {
        most_sig_bits: (bits >> 64) as u64,
        least_sig_bits: bits as u64,
    }
}

impl Cluster {
    /// The region servers: those that have registered in ZooKeeper, or those that the master knows with the
    /// RPC registry.
    pub async fn region_servers(&self) -> Result<Vec<ServerName>> {
        let deadline = Instant::now() + self.options().call_timeout;
        if let Some(registered) = self.inner.directory.region_servers(deadline).await? {
            return Ok(registered);
        }
        let answer: GetClusterStatusResponse = self
            .ask_by_message(
                MasterServiceMethod::GetClusterStatus,
                &GetClusterStatusRequest::default(),
            )
            .await?;
        let ClusterStatus { servers_name, .. } = answer.cluster_status;
        Ok(servers_name.iter().map(ServerName::of_message).collect())
    }

    /// Sends edits to a region server, once. Returns when they are durable there.
    pub async fn ship(&self, server: &ServerName, shipment: &Shipment, time_limit: Duration) -> Result<()> {
        let deadline = Instant::now() + time_limit;
        let address: Arc<str> = server.address().into();
        let connections = &self.inner.connections;
        let connection = connections.get(&address, Service::Admin, deadline).await?;
        let call = Call {
            method: METHOD,
            region: None,
            priority: PRIORITY,
            deadline,
            opens_scanner: false,
        };
        let answered = connection
            .call::<ReplicateWalEntryResponse>(&call, &shipment.request, &shipment.cells)
            .await;
        answered.map(drop)
    }
}
