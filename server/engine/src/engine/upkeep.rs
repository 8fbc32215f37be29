//! Upkeep that somebody asks for: flushes and compactions of tables and of single regions.

use std::sync::Arc;

use super::Engine;
use crate::error::Result;
use crate::id::RegionId;
use crate::region::{Region, family_index};
use crate::schema::{TableDescriptor, TableName};
use crate::workers::Job;

impl Engine {
    /// Flushes a table's regions and waits.
    pub fn flush(&self, table: &TableName) -> Result<()> {
        let regions = self.open_catalog()?.table(table)?.regions.clone();
        regions.iter().try_for_each(|region| self.flush_one(region))
    }
    /// Flushes one region and waits.
    pub fn flush_region(&self, region: RegionId) -> Result<()> {
        let (_, region) = self.open_catalog()?.region(region)?;
        self.flush_one(&region)
    }
    /// Compacts a table's stores (of one family, or all); with `wait`, returns when it is done.
    pub fn compact(&self, table: &TableName, family: Option<&[u8]>, major: bool, wait: bool) -> Result<()> {
        let table = self.open_catalog()?.table(table)?;
        self.compact_regions(&table.descriptor, &table.regions, family, major, wait)
    }
    /// The same for one region.
    pub fn compact_region(
        &self,
        region: RegionId,
        family: Option<&[u8]>,
        major: bool,
        wait: bool,
    ) -> Result<()> {
        let (table, region) = self.open_catalog()?.region(region)?;
        self.compact_regions(&table.descriptor, &[region], family, major, wait)
    }
    /// With `Background::Manual`: does background work until none is left; returns how many jobs it did.
    pub fn run_pending(&self) -> Result<usize> {
        self.check_open()?;
        self.workers.run_pending()
    }

    fn flush_one(&self, region: &Region) -> Result<()> {
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
        for region in regions {
            for family in &families {
                if wait {
                    self.catalog.compact_store(region, family, major)?;
                } else {
                    self.workers.request(Job::Compact {
                        region: region.id(),
                        family: family.to_vec(),
                        major,
                    });
                }
            }
            self.workers.after_change(region);
        }
        Ok(())
    }
}
