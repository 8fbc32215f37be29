//! Inspection for pages and tools: regions with their files, and background work. Nothing here
//! changes anything, and nothing but [`crate::hfile::index_entries`], which takes a file from here,
//! reads from disk.

use std::sync::Arc;

use super::Engine;
use crate::catalog::CatalogSize;
use crate::clock::Clock;
use crate::error::Result;
use crate::id::RegionId;
use crate::jobs::JobLog;
use crate::nonces::NONCE_BYTES;
use crate::region::{RegionInfo, RegionStats, RegionVersion, describe, refusal};
use crate::schema::TableName;
use crate::store::DamagedFile;

/// Requests to a region since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRequests {
    /// Id of the region.
    pub region: RegionId,
    /// Rows read by gets and scans.
    pub reads: u64,
    /// Row mutations.
    pub writes: u64,
}

/// A region that is refused, with the store files that it lacks.
#[derive(Clone, Debug)]
pub struct DamagedRegion {
    /// The region.
    pub region: RegionInfo,
    /// Store files that are missing or damaged; at least one.
    pub files: Vec<Arc<DamagedFile>>,
}

impl std::fmt::Display for DamagedRegion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.files.first() {
            Some(file) => refusal(&self.region, file).fmt(f),
            None => describe(&self.region).fmt(f),
        }
    }
}

#[cfg(feature = "server")]
impl Engine {
    /// The regions that are refused because a store file is missing or damaged, by id.
    pub fn damaged_regions(&self) -> Vec<DamagedRegion> {
        let tables = self.catalog.tables();
        let damaged = tables
            .regions()
            .filter(|region| region.check_undamaged().is_err());
        damaged
            .map(|region| DamagedRegion {
                region: region.info().clone(),
                files: region.version().damaged_files().cloned().collect(),
            })
            .collect()
    }
    /// How much there is to list in answers; system tables are not counted.
    #[doc(hidden)]
    pub fn catalog_size(&self) -> CatalogSize {
        self.catalog.tables().size()
    }
    /// How much there is to list of a table and its regions; nothing if it does not exist.
    #[doc(hidden)]
    pub fn table_size(&self, table: &TableName) -> CatalogSize {
        self.catalog.table_size(table)
    }
    /// How much there is to list of namespaces, each counted as a table.
    #[doc(hidden)]
    pub fn namespaces_size(&self) -> CatalogSize {
        self.catalog.namespaces_size()
    }
    /// Figures of a table's regions in key order.
    pub fn table_region_stats(&self, table: &TableName) -> Result<Vec<RegionStats>> {
        let table = self.catalog.table(table)?;
        Ok(table.regions.iter().map(|region| region.stats()).collect())
    }
    /// Requests of every region but those of the system tables, by id.
    pub fn region_requests(&self) -> Vec<RegionRequests> {
        let requests = |region: &Arc<crate::region::Region>| RegionRequests {
            region: region.id(),
            reads: region.reads.get(),
            writes: region.writes.get(),
        };
        self.catalog.tables().regions().map(requests).collect()
    }
    /// The figures of a region and its current version, with its store files. `None`: no user table
    /// has a region of that encoded name.
    pub fn region_view(&self, encoded_name: &str) -> Option<(RegionStats, Arc<RegionVersion>)> {
        let tables = self.catalog.tables();
        let region = tables
            .regions()
            .find(|region| region.info().encoded_name == encoded_name)?;
        Some((region.stats(), region.load_version()))
    }
    /// The encoded name of a region; `None` when it is gone.
    pub fn encoded_name(&self, region: RegionId) -> Option<String> {
        let tables = self.catalog.tables();
        Some(tables.region(region)?.info().encoded_name.clone())
    }
    /// Flushes and compactions that run, and the last ones that ended.
    pub fn jobs(&self) -> &JobLog {
        &self.catalog.shared().jobs
    }
    /// Memory of the nonces of operations that must not be applied again, and its limit.
    #[doc(hidden)]
    pub fn nonce_bytes(&self) -> (u64, u64) {
        let shared = self.catalog.shared();
        let limit = shared.options.nonces_max * NONCE_BYTES;
        (shared.nonces.bytes(), limit as u64)
    }
    /// The engine's time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.catalog.shared().clock
    }
    /// The numbers of the log's first and last segment.
    pub fn wal_segments(&self) -> (u64, u64) {
        self.catalog.shared().wal.segments()
    }
}
