//! Whether the servers of a cluster answer, for programs that report it.

use std::sync::Arc;
use std::time::Duration;

use basalt_idl::native::messages::{GetServerInfoRequest, GetServerInfoResponse};
use tokio::time::{Instant, timeout_at};

use super::cluster::{Cluster, look_up_timeout};
use super::connection::{Call, Service};
use super::meta::meta_table;
use super::regions::Region;
use crate::error::Result;
use crate::name::TableName;
use crate::server_name::ServerName;

/// A row of `hbase:meta` that need not be there.
const PROBED: &str = "basalt-probe";

impl Cluster {
    /// Reads from `hbase:meta`, without repetitions but that of a stale location. Returns its server.
    pub async fn meta_answers(&self, limit: Duration) -> Result<ServerName> {
        let (inner, began) = (&self.inner, Instant::now());
        let deadline = began + limit;
        let table: TableName = PROBED.parse()?;
        let asking = async {
            if inner.table_state(&table, deadline).await.is_err() {
                // The failure has dropped the location.
                inner.table_state(&table, deadline).await?;
            }
            Ok(inner.meta_region(deadline).await?.server.clone())
        };
        timeout_at(deadline, asking)
            .await
            .unwrap_or_else(|_| Err(look_up_timeout(&meta_table(), began, deadline)))
    }

    /// Asks a region server for its name, once.
    pub async fn server_answers(&self, server: &ServerName, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        let address: Arc<str> = server.address().into();
        let connections = &self.inner.connections;
        let connection = connections.get(&address, Service::Admin, deadline).await?;
        let call = Call {
            method: "GetServerInfo",
            region: None,
            priority: 0,
            deadline,
            opens_scanner: false,
        };
        let answered = connection
            .call::<GetServerInfoResponse>(&call, &GetServerInfoRequest {}, b"")
            .await;
        answered.map(drop)
    }

    /// The known regions of a table in the order of keys, without a call. Gaps are regions that no call has
    /// needed.
    pub fn known_regions(&self, table: &TableName) -> Vec<Arc<Region>> {
        self.inner.regions.of_table(table)
    }

    /// Waits until the scanners that were dropped open are closed.
    pub async fn scanners_closed(&self) {
        let mut closing = self.inner.closing.subscribe();
        // The sender lives as long as the cluster.
        drop(closing.wait_for(|closing| *closing == 0).await);
    }
}
