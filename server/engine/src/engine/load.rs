//! Bulk load: HFiles written elsewhere, into one region.

use std::sync::atomic::AtomicBool;

use super::Engine;
use crate::catalog::{LoadFile, LoadMode};
use crate::error::Result;
use crate::id::RegionId;

#[cfg(feature = "server")]
impl Engine {
    /// Loads HFiles into a region, all or none, and waits until they are durable and visible;
    /// returns the number of cells. Their cells are newer than every present cell. Fails with
    /// [`Error::WrongRegion`](crate::Error::WrongRegion) if a file has rows outside the region.
    /// `cancel`: set from outside to abort.
    pub fn bulk_load(&self, region: RegionId, files: &[LoadFile], cancel: &AtomicBool) -> Result<u64> {
        let catalog = self.open_catalog()?;
        let cells = catalog.bulk_load(region, files, LoadMode::Whole, cancel)?;
        // A region that was split since has been looked at then.
        if let Ok((_, region)) = catalog.region(region) {
            self.workers.after_change(&region);
        }
        Ok(cells)
    }

    /// Makes those rows of an HFile of a replication source that are in this region part of it, as
    /// [`Self::bulk_load`] does; returns the number of their cells. A table that is read only takes them,
    /// too.
    pub fn load_replicated(&self, region: RegionId, file: &LoadFile, cancel: &AtomicBool) -> Result<u64> {
        let catalog = self.open_catalog()?;
        let files = std::slice::from_ref(file);
        let cells = catalog.bulk_load(region, files, LoadMode::Replicated, cancel)?;
        if let Ok((_, region)) = catalog.region(region) {
            self.workers.after_change(&region);
        }
        Ok(cells)
    }
}
