//! A reader's view of a table: a snapshot of its versions and the read point, kept while the read
//! lasts.

use std::sync::Arc;

use super::{Catalog, Table};
use crate::error::Result;
use crate::id::SeqId;
use crate::region::{Region, RegionVersion, capture, capture_one};
use crate::schema::TableName;

/// A consistent view of some regions of a table.
#[derive(Debug)]
pub(crate) struct View {
    /// The table then.
    pub table: Arc<Table>,
    /// Regions in key order, each with its version.
    pub regions: Vec<(Arc<Region>, Arc<RegionVersion>)>,
    /// Edits up to here belong to the view.
    pub read_point: SeqId,
}

impl Catalog {
    /// Captures the region of one row for `read`. The region and its version are borrowed and not
    /// cloned: all readers would write to their reference counts.
    pub(crate) fn read_region_of<T>(
        &self,
        name: &TableName,
        row: &[u8],
        read: impl FnOnce(&Region, &RegionVersion, SeqId) -> Result<T>,
    ) -> Result<T> {
        if let Some(system) = self.system.named(name) {
            let table = self.system_table(system)?;
            let region = table.region_of(row);
            return read(region, &region.load_version(), self.shared.wal.read_point());
        }
        loop {
            let tables = self.current.load();
            let table = tables.enabled_table(name)?;
            let region = table.region_of(row);
            if let Some((version, read_point)) = capture_one(region, &self.shared.wal)
                && Arc::ptr_eq(&version.table, &table.descriptor)
                && self.current.is_current(&tables)
            {
                return read(region, &version, read_point);
            }
            std::hint::spin_loop();
        }
    }

    /// Captures those regions of a table that `wanted` chooses.
    pub(crate) fn view(&self, name: &TableName, wanted: impl Fn(&Region) -> bool) -> Result<View> {
        loop {
            let table = self.enabled_table(name)?;
            let regions: Vec<_> = table
                .regions
                .iter()
                .filter(|region| wanted(region))
                .cloned()
                .collect();
            let of_table = |version: &Arc<RegionVersion>| Arc::ptr_eq(&version.table, &table.descriptor);
            if let Some(captured) = capture(&regions, &self.shared.wal)
                && captured.versions.iter().all(of_table)
                && self.is_current(&table)
            {
                return Ok(View {
                    table,
                    regions: regions.into_iter().zip(captured.versions).collect(),
                    read_point: captured.read_point,
                });
            }
            std::hint::spin_loop();
        }
    }
}
