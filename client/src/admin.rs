//! Calls that only Basalt has: operations that HBase's Thrift services leave to its Java client.
//!
//! HBase answers every one with an [`Error`](crate::Error) for which
//! [`is_unknown_method`](crate::Error::is_unknown_method) holds.

use basalt_idl::admin::args;
use bytes::Bytes;

#[doc(inline)]
pub use basalt_idl::admin::{
    TBackgroundState as BackgroundState, TBackgroundWork as BackgroundWork, TCacheState as CacheState,
    TFault as Fault, THotRow as HotRow, THotRows as HotRows, THotRowsOfTable as HotRowsOfTable,
    TJobKind as JobKind, TMemstoreState as MemstoreState, TQuotaScope as QuotaScope,
    TRegionMemstore as RegionMemstore, TRegionMetrics as RegionMetrics, TRunningJob as RunningJob,
    TServerStatus as ServerStatus, TSnapshot as Snapshot, TThrottle as Throttle,
    TThrottleType as ThrottleType, TTimeUnit as TimeUnit,
};

use crate::client::Client;
use crate::error::Result;
use crate::name::TableName;
use crate::request::IntoBytes;

/// Basalt's own calls. Cheap to make and to clone.
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

/// The extent of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Only this family.
    pub family: Option<Bytes>,
    /// Merge all files and drop deleted cells.
    pub major: bool,
    /// Return when done, not when queued.
    pub wait: bool,
}

impl Admin {
    /// Basalt's own calls through this client.
    pub fn new(client: &Client) -> Admin {
        let client = client.clone();
        Admin { client }
    }

    /// Writes the memstores of a table to store files. Returns when they are durable.
    pub async fn flush(&self, table: &str) -> Result<()> {
        let table = full_name(table)?;
        self.client.call(&args::BasaltFlush { table }).await
    }

    /// Writes the memstores of one region to store files. The region is named in full as in
    /// [`RegionMetrics::region_name`]. Returns when they are durable.
    pub async fn flush_region(&self, region: impl IntoBytes) -> Result<()> {
        let table = region.into_bytes();
        self.client.call(&args::BasaltFlush { table }).await
    }

    /// Compacts a table.
    pub async fn compact(&self, table: &str, compaction: Compaction) -> Result<()> {
        self.compact_region(full_name(table)?, compaction).await
    }

    /// Compacts one region, named in full as in [`RegionMetrics::region_name`].
    pub async fn compact_region(&self, region: impl IntoBytes, compaction: Compaction) -> Result<()> {
        let call = args::BasaltCompact {
            table: region.into_bytes(),
            family: compaction.family,
            major: compaction.major,
            wait: compaction.wait,
        };
        self.client.call(&call).await
    }

    /// Pauses flushes or compactions, or resumes them. Returns whether they were paused before. A
    /// restart of the server ends a pause.
    pub async fn pause(&self, work: BackgroundWork, paused: bool) -> Result<bool> {
        self.client.call(&args::BasaltPause { work, paused }).await
    }

    /// Running and queued background work, and the kinds that are paused.
    pub async fn background(&self) -> Result<BackgroundState> {
        self.client.call(&args::BasaltBackgroundState {}).await
    }

    /// Evicts the blocks of a table, or of all, from the block cache. Returns their number.
    pub async fn clear_block_cache(&self, table: Option<&str>) -> Result<i64> {
        let table = table.map(full_name).transpose()?;
        self.client.call(&args::BasaltClearBlockCache { table }).await
    }

    /// Splits a region, or every region of a table, at the key or in the middle. A region is named as in
    /// [`RegionMetrics::region_name`].
    pub async fn split(&self, table_or_region: impl IntoBytes, split_key: Option<Bytes>) -> Result<()> {
        let table_or_region = table_or_region.into_bytes();
        self.client
            .call(&args::BasaltSplit {
                table_or_region,
                split_key,
            })
            .await
    }

    /// Merges adjacent regions of one table and returns the name of the new one.
    pub async fn merge(&self, region_names: Vec<Bytes>) -> Result<Bytes> {
        self.client.call(&args::BasaltMerge { region_names }).await
    }

    /// The regions of a table, or of all tables, in key order.
    pub async fn regions(&self, table: Option<&str>) -> Result<Vec<RegionMetrics>> {
        let table = table.map(full_name).transpose()?;
        self.client.call(&args::BasaltRegionMetrics { table }).await
    }

    /// The rows of a table that most requests go to, at most `limit` of each kind: over the last five to
    /// ten minutes.
    pub async fn hot_rows(&self, table: &str, limit: i32) -> Result<HotRowsOfTable> {
        let table = full_name(table)?;
        self.client.call(&args::BasaltHotRows { table, limit }).await
    }

    /// The state of the memstores.
    pub async fn memstores(&self) -> Result<MemstoreState> {
        self.client.call(&args::BasaltMemstoreState {}).await
    }

    /// The state of the block cache.
    pub async fn block_cache(&self) -> Result<CacheState> {
        self.client.call(&args::BasaltCacheState {}).await
    }

    /// Moves a region to the virtual server of that name, `host,port,startcode`, or to the one with the
    /// fewest regions. Regions are named in full or by their 32 hex digits. This and the next three calls
    /// need a server that rehearses a cluster.
    pub async fn move_region(&self, region: impl IntoBytes, server_name: Option<String>) -> Result<()> {
        let region_name = region.into_bytes();
        self.client
            .call(&args::BasaltMove {
                region_name,
                server_name,
            })
            .await
    }

    /// Assigns a region that is not assigned.
    pub async fn assign(&self, region: impl IntoBytes) -> Result<()> {
        let region_name = region.into_bytes();
        self.client.call(&args::BasaltAssign { region_name }).await
    }

    /// Takes a region from its server: calls on it fail until it is assigned.
    pub async fn unassign(&self, region: impl IntoBytes) -> Result<()> {
        let region_name = region.into_bytes();
        self.client.call(&args::BasaltUnassign { region_name }).await
    }

    /// Evens out the regions over the virtual servers and returns how many were moved.
    pub async fn balance(&self) -> Result<i32> {
        self.client.call(&args::BasaltBalance {}).await
    }

    /// Sets a quota. One without a limit removes the limit of its type; without a type, too, all
    /// limits of its owner.
    pub async fn set_quota(&self, quota: Throttle) -> Result<()> {
        self.client.call(&args::BasaltSetQuota { quota }).await
    }

    /// The quotas of those owners that match the regular expressions.
    pub async fn quotas(
        &self,
        user: Option<String>,
        table: Option<String>,
        namespace: Option<String>,
    ) -> Result<Vec<Throttle>> {
        let call = args::BasaltListQuotas {
            user_name: user,
            table_name: table,
            ns_name: namespace,
        };
        self.client.call(&call).await
    }

    /// Takes a snapshot of a table: with `flush` of everything that was acknowledged before, else
    /// of the store files only. It is removed after `ttl_seconds`; 0: never.
    pub async fn snapshot(&self, table: &str, name: &str, flush: bool, ttl_seconds: i64) -> Result<()> {
        let call = args::BasaltSnapshot {
            name: name.to_owned(),
            table: full_name(table)?,
            flush,
            ttl_seconds,
        };
        self.client.call(&call).await
    }

    /// The snapshots whose name and table match the regular expressions, by name.
    pub async fn snapshots(&self, name: Option<String>, table: Option<String>) -> Result<Vec<Snapshot>> {
        let table_name = table;
        self.client
            .call(&args::BasaltListSnapshots { name, table_name })
            .await
    }

    /// Removes a snapshot.
    pub async fn delete_snapshot(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.client.call(&args::BasaltDeleteSnapshot { name }).await
    }

    /// Creates a table of a snapshot, enabled.
    pub async fn clone_snapshot(&self, name: &str, table: &str) -> Result<()> {
        let call = args::BasaltCloneSnapshot {
            name: name.to_owned(),
            table: full_name(table)?,
        };
        self.client.call(&call).await
    }

    /// Restores a snapshot's table, which must be disabled and stays so, to the snapshot's state. A
    /// dropped table is created, enabled.
    pub async fn restore_snapshot(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.client.call(&args::BasaltRestoreSnapshot { name }).await
    }

    /// Removes all user tables, snapshots, quotas and namespaces that are not reserved. A clock that was
    /// moved shows the machine's time again. Only a server that was started with `--ephemeral` does
    /// that.
    pub async fn reset(&self) -> Result<()> {
        self.client.call(&args::BasaltReset { keep_clock: false }).await
    }

    /// Moves the server's wall clock forward, and returns the new time. Only a server that was
    /// started with `--ephemeral` does that.
    pub async fn advance_clock(&self, ms: i64) -> Result<i64> {
        self.client.call(&args::BasaltAdvanceClock { ms }).await
    }

    /// Arms faults for the next calls of data methods instead of the present ones, and returns the
    /// armed faults. An empty list clears them. Only a server that was started with `--ephemeral`
    /// does that.
    pub async fn set_faults(&self, faults: Vec<Fault>) -> Result<Vec<Fault>> {
        self.client.call(&args::BasaltSetFaults { faults }).await
    }

    /// The faults that are armed, each with the calls that are left.
    pub async fn faults(&self) -> Result<Vec<Fault>> {
        self.client.call(&args::BasaltFaults {}).await
    }

    /// The state of the server.
    pub async fn status(&self) -> Result<ServerStatus> {
        self.client.call(&args::BasaltServerStatus {}).await
    }
}

fn full_name(table: &str) -> Result<Bytes> {
    Ok(table.parse::<TableName>()?.to_bytes())
}
