//! The system tables `hbase:meta`, `hbase:namespace` and `hbase:acl`.
//!
//! They are not stored: the content of the first two is derived from the catalog, that of `hbase:acl`
//! from a source of grants outside the engine ([`GrantSource`]). Without a source there is no
//! `hbase:acl`, as in an HBase without access control.
//!
//! 1. A reader asks for the table. Its cells are made of the published [`Tables`], or of the grants, and
//!    kept until these change.
//! 2. The cells stand in a region of their own (`StoreVersion::system_cells`), so that gets, scans
//!    and filters work on them as on any table. A scan keeps the region it began with: it sees one
//!    snapshot of the catalog.
//!
//! They cannot be written to or altered. They have no place in the manifest, in [`Tables`], or in
//! metrics of regions.
//!
//! HBase keeps former versions of these cells; here there is one of each.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::{Table, Tables};
use crate::cell::RowOrder;
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::manifest::RegionMeta;
use crate::region::{GrantSource, Region, RegionDirectory, RegionVersion};
use crate::schema::{ACL_TABLE, META_TABLE, NAMESPACE_TABLE, TableDescriptor, TableName, TableState};
use crate::store::{SortedCells, StoreVersion};

mod descriptors;
mod messages;
mod rows;

/// One of the system tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemTable {
    /// `hbase:meta`: regions, and the states of tables.
    Meta,
    /// `hbase:namespace`: namespaces.
    Namespace,
    /// `hbase:acl`: rights of users.
    Acl,
}

impl SystemTable {
    /// All of them.
    const ALL: [Self; 3] = [Self::Meta, Self::Namespace, Self::Acl];

    /// The system table of that name, whether or not there is one.
    fn named(name: &TableName) -> Option<Self> {
        if !name.is_system() {
            return None;
        }
        Self::ALL
            .into_iter()
            .find(|table| table.qualifier() == name.qualifier())
    }

    /// The system table that has that region.
    pub(crate) fn of_region(id: RegionId) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.region_id() == id)
    }

    fn qualifier(self) -> &'static str {
        match self {
            Self::Meta => META_TABLE,
            Self::Namespace => NAMESPACE_TABLE,
            Self::Acl => ACL_TABLE,
        }
    }

    /// From the end of all ids, where no region of the manifest will ever be.
    fn region_id(self) -> RegionId {
        RegionId(u64::MAX - self as u64)
    }

    /// The table's only region. HBase names that of `hbase:meta` as if it had been created in the
    /// first millisecond; the others are named likewise, since their creation time is unknown.
    fn region(self, name: &TableName) -> RegionMeta {
        RegionMeta {
            id: self.region_id(),
            table: name.clone(),
            start: Vec::new(),
            end: Vec::new(),
            created_ms: 1,
        }
    }

    fn row_order(self) -> RowOrder {
        match self {
            Self::Meta => RowOrder::Meta,
            Self::Namespace | Self::Acl => RowOrder::Bytes,
        }
    }
}

/// The state that a listing was made of.
#[derive(Debug)]
enum Origin {
    /// A catalog. Weak: dropped tables must not stay alive here. As long as this is held, no other
    /// catalog has the same address.
    Tables(Weak<Tables>),
    /// The grants of this version.
    Grants(u64),
}

impl Origin {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tables(left), Self::Tables(right)) => Weak::ptr_eq(left, right),
            (Self::Grants(left), Self::Grants(right)) => left == right,
            _ => false,
        }
    }
}

/// A system table as it was last asked for.
#[derive(Debug)]
struct Listed {
    of: Origin,
    table: Arc<Table>,
}

/// The system tables. Shared by all threads.
#[derive(Debug)]
pub(crate) struct SystemTables {
    /// In the order of [`SystemTable::ALL`].
    descriptors: [Arc<TableDescriptor>; 3],
    /// The last listing of each table, in the same order. Held while a table is listed, so that
    /// concurrent readers list it once.
    listed: [Mutex<Option<Listed>>; 3],
    /// The rows of `hbase:acl`.
    grants: OnceLock<Arc<dyn GrantSource>>,
}

/// Nothing has been listed yet.
impl Default for SystemTables {
    fn default() -> Self {
        Self {
            descriptors: SystemTable::ALL.map(|table| Arc::new(descriptors::of(table))),
            listed: [const { Mutex::new(None) }; 3],
            grants: OnceLock::new(),
        }
    }
}

impl SystemTables {
    /// Discards the listings, so that the next read lists the tables again. A running listing ends
    /// before this returns.
    pub(crate) fn invalidate(&self) {
        for listed in &self.listed {
            *listed.lock() = None;
        }
    }

    /// Makes `hbase:acl` list these grants. Only the first call has an effect.
    pub(crate) fn set_grants(&self, grants: Arc<dyn GrantSource>) {
        // A second source is a caller's mistake, and the first one stays.
        let _ = self.grants.set(grants);
    }

    /// The system tables that there are.
    pub(crate) fn all(&self) -> impl Iterator<Item = SystemTable> {
        let has_acl = self.grants.get().is_some();
        SystemTable::ALL
            .into_iter()
            .filter(move |table| has_acl || *table != SystemTable::Acl)
    }

    /// The system table of that name, if there is one.
    pub(crate) fn named(&self, name: &TableName) -> Option<SystemTable> {
        let table = SystemTable::named(name)?;
        self.all().find(|other| *other == table)
    }

    /// Refuses a change of a system table.
    pub(crate) fn check_not_system(&self, name: &TableName) -> Result<()> {
        match self.named(name) {
            None => Ok(()),
            Some(_) => Err(Error::DoNotRetry(format!(
                "Can't modify catalog tables: {name} belongs to the server"
            ))),
        }
    }

    /// Refuses a write to a system table.
    pub(crate) fn check_writable(&self, name: &TableName) -> Result<()> {
        let remedy = match self.named(name) {
            None => return Ok(()),
            Some(SystemTable::Acl) => "; grant and revoke change what it lists",
            Some(SystemTable::Meta | SystemTable::Namespace) => "",
        };
        Err(Error::DoNotRetry(format!(
            "{name} is a system table: the server alone writes to it{remedy}"
        )))
    }

    /// A system table's descriptor.
    pub(crate) fn descriptor(&self, table: SystemTable) -> &Arc<TableDescriptor> {
        &self.descriptors[table as usize]
    }

    /// The table as of `tables`. Without a directory, `hbase:meta` has no columns of servers.
    pub(crate) fn table(
        &self,
        table: SystemTable,
        tables: &Arc<Tables>,
        directory: Option<&dyn RegionDirectory>,
    ) -> Result<Arc<Table>> {
        let mut listed = self.listed[table as usize].lock();
        // The version is read before the grants: a change in between makes the next reader list again.
        let of = match (table, self.grants.get()) {
            (SystemTable::Acl, Some(grants)) => Origin::Grants(grants.version()),
            _ => Origin::Tables(Arc::downgrade(tables)),
        };
        if let Some(listed) = &*listed
            && listed.of.is(&of)
        {
            return Ok(Arc::clone(&listed.table));
        }
        let made = self.list(table, tables, directory)?;
        *listed = Some(Listed {
            of,
            table: Arc::clone(&made),
        });
        Ok(made)
    }

    fn list(
        &self,
        table: SystemTable,
        tables: &Tables,
        directory: Option<&dyn RegionDirectory>,
    ) -> Result<Arc<Table>> {
        let descriptor = self.descriptor(table);
        let cells = match table {
            SystemTable::Meta => {
                let others = self.all().filter(|table| *table != SystemTable::Meta);
                let others: Vec<_> = others.map(|table| (table, &**self.descriptor(table))).collect();
                rows::meta(tables, &others, directory)?
            }
            SystemTable::Namespace => rows::namespace(tables, directory)?,
            SystemTable::Acl => {
                let grants = self.grants.get().map(|grants| grants.grants());
                rows::acl(&grants.unwrap_or_default(), directory)?
            }
        };
        let stores = descriptor
            .families
            .iter()
            .zip(cells)
            .map(|(family, cells)| {
                let cells = SortedCells::new(cells, table.row_order());
                Arc::new(StoreVersion::of_cells(Arc::new(family.clone()), cells))
            })
            .collect();
        let version = RegionVersion {
            table: Arc::clone(descriptor),
            stores,
        };
        Ok(Arc::new(Table::new(
            Arc::clone(descriptor),
            TableState::Enabled,
            vec![Region::new(
                &table.region(&descriptor.name),
                version,
                BTreeSet::new(),
            )],
        )))
    }
}
