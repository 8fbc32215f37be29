//! Snapshots of tables.

use std::sync::Arc;

use super::Engine;
#[cfg(feature = "server")]
use super::ImportedSnapshot;
use crate::error::Result;
use crate::id::RegionId;
use crate::manifest::SnapshotMeta;
use crate::schema::{TableDescriptor, TableName};

impl Engine {
    /// Takes a snapshot of a table, enabled or not: with `flush` of everything that was
    /// acknowledged before, else of the store files only. It is removed after `ttl_seconds`; 0:
    /// never. It costs no disk space as long as the table has the same files.
    pub fn snapshot(&self, table: &TableName, name: &str, flush: bool, ttl_seconds: u64) -> Result<()> {
        self.open_catalog()?.snapshot(table, name, flush, ttl_seconds)
    }

    /// All snapshots, by name.
    pub fn snapshots(&self) -> Vec<Arc<SnapshotMeta>> {
        self.catalog.tables().snapshots.values().cloned().collect()
    }

    /// Removes a snapshot.
    pub fn delete_snapshot(&self, name: &str) -> Result<()> {
        self.open_catalog()?.delete_snapshot(name)
    }

    /// Creates a table, enabled, from a snapshot.
    pub fn clone_snapshot(&self, name: &str, table: &TableName) -> Result<()> {
        self.clone_snapshot_with(name, table, |_| {})
    }

    /// As [`Self::clone_snapshot`]. `change` is applied to the new table's descriptor; it may change
    /// options of the table and configurations of its families.
    #[doc(hidden)]
    pub fn clone_snapshot_with(
        &self,
        name: &str,
        table: &TableName,
        change: impl FnOnce(&mut TableDescriptor),
    ) -> Result<()> {
        let regions = self.open_catalog()?.clone_snapshot(name, table, change)?;
        self.after_clone(&regions);
        Ok(())
    }

    /// Restores a snapshot's table, which must be disabled and stays so, to the snapshot's state. A
    /// dropped table is created, enabled.
    pub fn restore_snapshot(&self, name: &str) -> Result<()> {
        let regions = self.open_catalog()?.restore_snapshot(name)?;
        self.after_clone(&regions);
        Ok(())
    }

    /// Copies and verifies the files of a snapshot that another database has taken, and makes the snapshot
    /// exist here. `copied` is called with each file once it is copied. After an error nothing is left.
    #[cfg(feature = "server")]
    pub fn import_snapshot(
        &self,
        snapshot: &ImportedSnapshot,
        copied: &mut dyn FnMut(&std::path::Path),
    ) -> Result<()> {
        self.open_catalog()?.import_snapshot(snapshot, copied)
    }

    fn after_clone(&self, regions: &[RegionId]) {
        self.workers.after_replacement(regions);
    }
}
