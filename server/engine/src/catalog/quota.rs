//! Quotas of namespaces on tables and regions. The texts of refusals are HBase's (`NamespaceStateManager`,
//! `NamespaceAuditor`).
//!
//! A quota limits growth: what is there already stays. A merge is always allowed.

use super::{Catalog, Tables};
use crate::error::{Error, Result};
use crate::region::RegionInfo;
use crate::schema::{NamespaceDescriptor, TableName};

impl Catalog {
    /// Refuses a new table with this many regions. REQUIRES: `schema` is held.
    pub(super) fn check_quota_of_new_table(&self, table: &TableName, regions: usize) -> Result<()> {
        let tables = self.tables();
        let Some(namespace) = limiting_namespace(&tables, table) else {
            return Ok(());
        };
        let (held_tables, held_regions) = counts(&tables, namespace);
        if held_tables >= namespace.max_tables() {
            return Err(Error::QuotaExceeded(format!(
                "The table {table} cannot be created as it would exceed maximum number of tables allowed  in the namespace.  \
                 The total number of tables permitted is {}",
                namespace.max_tables()
            )));
        }
        let max = namespace.max_regions();
        if held_regions + regions as u64 > max {
            return Err(Error::QuotaExceeded(format!(
                "The table {table} is not allowed to have {regions} regions. The total number of regions permitted is only \
                 {max}, while current region count is {held_regions}. This may be transient, please retry later if there are \
                 any ongoing split operations in the namespace."
            )));
        }
        Ok(())
    }

    /// Refuses a table that exists and would have this many regions after a restore. REQUIRES: `schema` is
    /// held.
    pub(super) fn check_quota_of_restored(
        &self,
        table: &TableName,
        before: usize,
        regions: usize,
    ) -> Result<()> {
        let tables = self.tables();
        let Some(namespace) = limiting_namespace(&tables, table) else {
            return Ok(());
        };
        let (_, held) = counts(&tables, namespace);
        let max = namespace.max_regions();
        if (held + regions as u64).saturating_sub(before as u64) > max {
            return Err(Error::QuotaExceeded(format!(
                "The table {table} region count cannot be updated as it would exceed maximum number of regions allowed in \
                 the namespace.  The total number of regions permitted is {max}"
            )));
        }
        Ok(())
    }

    /// Refuses one more region.
    pub(super) fn check_quota_of_split(&self, region: &RegionInfo) -> Result<()> {
        if self.has_quota_for_split(&region.table) {
            return Ok(());
        }
        Err(Error::QuotaExceeded(format!(
            "Region split not possible for :{} as quota limits are exceeded ",
            region.encoded_name
        )))
    }

    /// Whether a region of the table can be split within the quota of its namespace.
    pub(super) fn has_quota_for_split(&self, table: &TableName) -> bool {
        let tables = self.tables();
        limiting_namespace(&tables, table)
            .is_none_or(|namespace| counts(&tables, namespace).1 < namespace.max_regions())
    }
}

/// The table's namespace, if it has a quota: counting visits all tables.
fn limiting_namespace<'t>(tables: &'t Tables, table: &TableName) -> Option<&'t NamespaceDescriptor> {
    let namespace = tables.namespaces.get(table.namespace())?;
    if table.is_system() {
        return None;
    }
    let is_limited = namespace.max_tables().min(namespace.max_regions()) != u64::MAX;
    is_limited.then_some(namespace)
}

/// Numbers of tables and regions of the namespace.
fn counts(tables: &Tables, namespace: &NamespaceDescriptor) -> (u64, u64) {
    let inside = tables.by_name.values();
    inside
        .filter(|table| table.name().namespace() == namespace.name)
        .fold((0, 0), |(tables, regions), table| {
            (tables + 1, regions + table.regions.len() as u64)
        })
}
