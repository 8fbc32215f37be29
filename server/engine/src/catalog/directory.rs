//! The sources of what system tables list: the directory that locates regions for `hbase:meta`, and the
//! grants of `hbase:acl`.

use std::sync::Arc;

use super::Catalog;
use crate::error::Result;
use crate::id::RegionId;
use crate::region::{GrantSource, Region, RegionDirectory};

impl Catalog {
    /// Sets the directory, and reports all regions to it: table by table, in key order. Only the
    /// first call has an effect.
    pub(crate) fn set_directory(&self, directory: Arc<dyn RegionDirectory>) {
        let _schema = self.schema.lock();
        if self.shared.directory.set(directory).is_ok() {
            for table in self.tables().sorted() {
                self.report_added(&table.regions, None);
            }
            self.system.invalidate();
        }
    }

    /// Makes `hbase:acl` list these grants. Only the first call has an effect.
    pub(crate) fn set_grants(&self, grants: Arc<dyn GrantSource>) {
        let _schema = self.schema.lock();
        self.system.set_grants(grants);
        // It is listed in `hbase:meta` from now on.
        self.system.invalidate();
    }

    /// Runs `change`, which changes locations, while no region is added or removed. `hbase:meta` is
    /// listed anew afterwards.
    pub(crate) fn change_locations<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let _schema = self.schema.lock();
        let changed = change();
        self.system.invalidate();
        changed
    }

    /// Reports new regions. REQUIRES: `schema` is locked, and the regions are not published yet.
    pub(super) fn report_added(&self, regions: &[Arc<Region>], origin: Option<RegionId>) {
        if let Some(directory) = self.shared.directory.get() {
            let added: Vec<_> = regions.iter().map(|region| region.shared_info()).collect();
            directory.added(&added, origin);
        }
    }
}
