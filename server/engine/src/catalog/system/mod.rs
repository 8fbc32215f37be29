//! The system tables `hbase:meta` and `hbase:namespace`.
//!
//! They are not stored: their content is derived from the catalog.
//!
//! 1. A reader asks for the table. Its cells are made of the published [`Tables`] and kept until
//!    the next publication.
//! 2. The cells stand in a region of their own (`StoreVersion::system_cells`), so that gets, scans
//!    and filters work on them as on any table. A scan keeps the region it began with: it sees one
//!    snapshot of the catalog.
//!
//! They cannot be written to or altered. They have no place in the manifest, in [`Tables`], or in
//! metrics of regions.
//!
//! HBase keeps former versions of these cells; here there is one of each.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Table, Tables};
use crate::cell::RowOrder;
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::manifest::RegionMeta;
use crate::region::{Region, RegionDirectory, RegionVersion};
use crate::schema::{META_TABLE, NAMESPACE_TABLE, TableDescriptor, TableName, TableState};
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
}

impl SystemTable {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Meta, Self::Namespace];

    /// The system table of that name.
    pub(crate) fn named(name: &TableName) -> Option<Self> {
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
        }
    }

    /// From the end of all ids, where no region of the manifest will ever be.
    fn region_id(self) -> RegionId {
        RegionId(u64::MAX - self as u64)
    }

    /// The table's only region. HBase names that of `hbase:meta` as if it had been created in the
    /// first millisecond; the other one is named likewise, since its creation time is unknown.
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
            Self::Namespace => RowOrder::Bytes,
        }
    }
}

/// Refuses a change of a system table.
pub(super) fn check_not_system(name: &TableName) -> Result<()> {
    match SystemTable::named(name) {
        None => Ok(()),
        Some(_) => Err(Error::DoNotRetry(format!(
            "Can't modify catalog tables: {name} belongs to the server"
        ))),
    }
}

/// A system table as it was last asked for.
#[derive(Debug)]
struct Listed {
    /// The catalog it was made of. Weak: dropped tables must not stay alive here. As long as this
    /// is held, no other catalog has the same address.
    of: Weak<Tables>,
    table: Arc<Table>,
}

/// Both system tables. Shared by all threads.
#[derive(Debug)]
pub(crate) struct SystemTables {
    /// In the order of [`SystemTable::ALL`].
    descriptors: [Arc<TableDescriptor>; 2],
    /// The last listing of each table, in the same order. Held while a table is listed, so that
    /// concurrent readers list it once.
    listed: [Mutex<Option<Listed>>; 2],
}

/// Nothing has been listed yet.
impl Default for SystemTables {
    fn default() -> Self {
        Self {
            descriptors: SystemTable::ALL.map(|table| Arc::new(descriptors::of(table))),
            listed: [const { Mutex::new(None) }; 2],
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
        if let Some(listed) = &*listed
            && std::ptr::eq(listed.of.as_ptr(), Arc::as_ptr(tables))
        {
            return Ok(Arc::clone(&listed.table));
        }
        let made = self.list(table, tables, directory)?;
        *listed = Some(Listed {
            of: Arc::downgrade(tables),
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
                let namespace = self.descriptor(SystemTable::Namespace);
                rows::meta(tables, namespace, directory)?
            }
            SystemTable::Namespace => rows::namespace(tables, directory)?,
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
        Ok(Arc::new(Table {
            descriptor: Arc::clone(descriptor),
            state: TableState::Enabled,
            regions: vec![Region::new(
                &table.region(&descriptor.name),
                version,
                BTreeSet::new(),
            )],
        }))
    }
}
