//! Upkeep on request: flushes and compactions of tables and of single regions, pauses of both, and
//! emptying the cache.

use std::sync::Arc;

use super::Engine;
use crate::catalog::CompactionMode;
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::region::{Region, family_index};
use crate::schema::{Cut, Switch, TableDescriptor, TableName};
use crate::workers::{Compacting, Job, Work};

impl Engine {
    /// Holds back flushes or compactions, or resumes them; returns whether they were held back
    /// before. Ends with this process.
    ///
    /// Asynchronous requests made meanwhile are done afterwards; synchronous ones are refused. A
    /// running flush finishes; a running compaction stands still. Flushes that are part of other
    /// operations (disabling a table, a split, a close) are made all the same. While flushes are
    /// held back memstores fill up, and writes are slowed and refused at their limits as usual.
    #[cfg(feature = "server")]
    pub fn pause(&self, work: Work, paused: bool) -> bool {
        self.workers.pause(work, paused)
    }

    /// Whether flushes or compactions are held back.
    #[cfg(feature = "server")]
    pub fn is_paused(&self, work: Work) -> bool {
        self.workers.is_paused(work)
    }

    /// Evicts the blocks of a table's store files from the block cache, or those of all tables;
    /// returns their number. Blocks pinned by open store files stay.
    #[cfg(feature = "server")]
    pub fn clear_block_cache(&self, table: Option<&TableName>) -> Result<u64> {
        let tables = match table {
            Some(table) => vec![self.open_catalog()?.table(table)?],
            None => self.open_catalog()?.tables().sorted(),
        };
        let cache = &self.catalog.shared().store.reader.cache;
        let mut removed = 0;
        for region in tables.iter().flat_map(|table| &table.regions) {
            let version = region.load_version();
            for file in version.stores.iter().flat_map(|store| &store.files) {
                removed += cache.remove_file(file.id());
            }
        }
        Ok(removed)
    }

    /// Turns a switch of background work, durably, and returns its state before. A split or merge that
    /// runs has ended when it returns.
    #[cfg(feature = "server")]
    pub fn turn(&self, switch: Switch, on: bool) -> Result<bool> {
        self.open_catalog()?.turn(switch, on)
    }

    /// Requests a run of the normalizer over these tables, without waiting for it; tables that do not ask
    /// for it are left alone. Returns `false`, and does nothing, while its switch is off.
    #[cfg(feature = "server")]
    pub fn normalize(&self, tables: impl IntoIterator<Item = TableName>) -> bool {
        if !self.is_on(Switch::Normalizer) {
            return false;
        }
        for table in tables {
            self.workers.request(Job::Normalize(table));
        }
        true
    }

    /// Whether a switch of background work is on.
    #[cfg(feature = "server")]
    pub fn is_on(&self, switch: Switch) -> bool {
        self.catalog.is_on(switch)
    }

    /// Refuses a flush of families that the table does not have.
    #[cfg(feature = "server")]
    pub fn check_flushed_families(&self, table: &TableName, families: &[impl AsRef<[u8]>]) -> Result<()> {
        let known = self.open_catalog()?.table(table)?;
        let families = families.iter().map(AsRef::as_ref);
        let missing = families.filter(|family| known.descriptor.family(family).is_none());
        let missing: Vec<String> = missing.take(10).map(|family| Cut(family).to_string()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::NoSuchFamilies {
            table: table.clone(),
            families: missing.join(", "),
        })
    }

    /// Flushes a table's regions and waits. Returns the first error; only a fatal one leaves
    /// regions untried.
    pub fn flush(&self, table: &TableName) -> Result<()> {
        let table = self.open_catalog()?.table(table)?;
        self.check_not_paused(Work::Flushes)?;
        let errors = self.catalog.flush_regions(&table.regions);
        for region in &table.regions {
            self.workers.after_change(region);
        }
        errors.into_iter().next().map_or(Ok(()), Err)
    }

    /// Flushes one region and waits.
    pub fn flush_region(&self, region: RegionId) -> Result<()> {
        let (_, region) = self.open_catalog()?.region_for_upkeep(region)?;
        self.flush_one(&region)
    }

    /// Compacts a table's stores (of one family, or all); with `wait`, returns when it is done.
    /// Regions that lack a store file are skipped, and the call then fails after the others.
    pub fn compact(&self, table: &TableName, family: Option<&[u8]>, major: bool, wait: bool) -> Result<()> {
        let table = self.open_catalog()?.table(table)?;
        self.compact_regions(&table.descriptor, &table.regions, family, major, wait)
    }

    /// Compacts one region's stores (of one family, or all); with `wait`, returns when it is done.
    pub fn compact_region(
        &self,
        region: RegionId,
        family: Option<&[u8]>,
        major: bool,
        wait: bool,
    ) -> Result<()> {
        let (table, region) = self.open_catalog()?.region_for_upkeep(region)?;
        self.compact_regions(&table.descriptor, &[region], family, major, wait)
    }

    /// The compactions of a region that were requested, by a user or by the policy, and are not done.
    #[cfg(feature = "server")]
    pub fn compactions_of(&self, region: RegionId) -> Compacting {
        self.workers.compactions_of(region)
    }

    /// The compactions of all regions that have any, as [`Self::compactions_of`] has them.
    #[cfg(feature = "server")]
    pub fn compactions(&self) -> std::collections::HashMap<RegionId, Compacting> {
        self.workers.compactions()
    }

    /// With `Background::Manual`: does background work until none is left; returns how many jobs it did.
    #[cfg(feature = "server")]
    pub fn run_pending(&self) -> Result<usize> {
        self.check_open()?;
        self.workers.run_pending()
    }

    /// Rejects synchronous requests while this kind of background work is paused.
    fn check_not_paused(&self, work: Work) -> Result<()> {
        let what = match work {
            Work::Flushes => "flushes",
            Work::Compactions => "compactions",
        };
        if self.workers.is_paused(work) {
            return Err(Error::DoNotRetry(format!("{what} are paused on this server")));
        }
        Ok(())
    }

    fn flush_one(&self, region: &Region) -> Result<()> {
        self.check_not_paused(Work::Flushes)?;
        self.catalog.flush_region(region)?;
        self.workers.after_change(region);
        Ok(())
    }

    fn compact_regions(
        &self,
        table: &TableDescriptor,
        regions: &[Arc<Region>],
        family: Option<&[u8]>,
        major: bool,
        wait: bool,
    ) -> Result<()> {
        let families: Vec<&[u8]> = match family {
            Some(family) => {
                family_index(table, family)?;
                vec![family]
            }
            None => table.families.iter().map(|family| &family.name[..]).collect(),
        };
        if wait {
            self.check_not_paused(Work::Compactions)?;
        }
        let mut refused = Ok(());
        for region in regions {
            if let Err(error) = region.check_undamaged() {
                refused = refused.and(Err(error));
                continue;
            }
            for family in &families {
                if wait {
                    self.catalog
                        .compact_store(region, family, major, CompactionMode::Any)?;
                } else {
                    self.workers.request(Job::Compact {
                        region: region.id(),
                        family: family.to_vec(),
                        major,
                        long: false,
                    });
                }
            }
            self.workers.after_change(region);
        }
        refused
    }
}
