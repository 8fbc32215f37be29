//! Truncation of one region: it is replaced by an empty one with the same rows and HBase's name.
//!
//! 1. Wait for compaction and flush of the region (a running compaction is cancelled) and keep new
//!    ones out. Nothing is flushed: the region's cells are to go.
//! 2. Keep writers out: from now on no commit can put a cell into the old region.
//! 3. One manifest edit; the new table is published.
//! 4. Let writers in again: they detect that their table is no longer the published one and look
//!    the row up again.
//!
//! Readers that began earlier continue with the versions they captured. The log may still have edits of
//! the old region; its id is never used again, so a start ignores them.
//!
//! The name stays, as in HBase, so that clients need not look the region up again. A region that is
//! refused because of a damaged store file can be truncated, too, and is served afterwards.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Catalog, SystemTable, Table};
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::manifest::{ManifestEdit, RegionMeta};
use crate::region::{Region, RegionInfo};
use crate::schema::{TableState, escape};

impl Catalog {
    /// Removes all data of a region of an enabled table. Returns the region that takes its place.
    pub(crate) fn truncate_region(&self, id: RegionId) -> Result<RegionInfo> {
        if SystemTable::of_region(id).is_some() {
            return Err(Error::DoNotRetry(
                "Can't truncate region in catalog tables".into(),
            ));
        }
        let _schema = self.schema.lock();
        let (table, region) = self.region(id)?;
        if table.state != TableState::Enabled {
            return Err(Error::DoNotRetry(format!(
                "{} is not OPEN; state=CLOSED",
                escape(&region.info().name())
            )));
        }
        region.cancel_compaction.store(true, Ordering::Release);
        self.limiter.wake();
        let _compacting = region.compacting.write();
        region.cancel_compaction.store(false, Ordering::Release);
        let _flushing = region.flushing.lock();
        let _blocked = region.updates.write();
        let empty = self.replace_by_empty(&table, &region)?;
        Ok(empty.info().clone())
    }

    /// Publishes the table with an empty region in the place of `old`.
    /// REQUIRES: all locks of the region are held.
    fn replace_by_empty(&self, table: &Table, old: &Arc<Region>) -> Result<Arc<Region>> {
        let mut manifest = self.manifest.lock();
        let info = old.info();
        let meta = RegionMeta {
            id: RegionId(manifest.state().next_region),
            table: table.name().clone(),
            start: info.start.clone(),
            end: info.end.clone(),
            created_ms: info.created_ms,
        };
        let edit = ManifestEdit::TruncateRegion {
            removed: old.id(),
            added: meta.clone(),
        };
        self.append(&mut manifest, &edit)?;
        let empty = self.empty_region(meta, &table.descriptor);
        self.report_added(std::slice::from_ref(&empty), Some(old.id()));
        self.publish(&manifest, |tables| {
            let regions = table
                .regions
                .iter()
                .map(|region| Arc::clone(if region.id() == old.id() { &empty } else { region }));
            tables.put(Table::new(
                Arc::clone(&table.descriptor),
                table.state,
                regions.collect(),
            ));
        });
        self.discard_regions(&manifest, std::slice::from_ref(old));
        Ok(empty)
    }
}
