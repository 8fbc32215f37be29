//! Where the tables are: in this server's engine, or in another cluster.
//!
//! Both support the methods here. Calls on jobs, store files, snapshots and quotas need the engine, which
//! [`Backend::engine`] returns; it fails for another cluster.
//!
//! Data requests do not pass here: the pipeline attempts them on the engine or forwards them, so that
//! calls on the engine stay monomorphic.

use std::sync::Arc;

use basalt_client::native::Cluster;
use basalt_engine::Engine;
use basalt_engine::engine::{RegionInfo, ServerName};
use basalt_engine::schema::{
    FamilyDescriptor, KeyLayout, NamespaceDescriptor, TableDescriptor, TableName, TableState,
};

use super::{Failure, remote};
use crate::cluster::Placement;
use crate::server::Server;

/// A table's descriptor and state.
pub(super) type Described = (Arc<TableDescriptor>, TableState);

/// Where the tables of a server are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backend<'s> {
    /// In this process.
    Local(&'s Arc<Engine>),
    /// In a cluster that the native protocol reaches.
    Remote(&'s Cluster),
}

/// Calls the method of that name on the engine, or on the other cluster.
macro_rules! both {
    ($backend:expr, $method:ident($($argument:expr),*)) => {
        match $backend {
            Backend::Local(engine) => Ok(engine.$method($($argument),*)?),
            Backend::Remote(cluster) => remote::admin::$method(cluster, $($argument),*),
        }
    };
}

/// As [`both`], where the other cluster takes a reference to the first argument.
macro_rules! both_of {
    ($backend:expr, $method:ident($first:expr $(, $argument:expr)*)) => {
        match $backend {
            Backend::Local(engine) => Ok(engine.$method($first $(, $argument)*)?),
            Backend::Remote(cluster) => remote::admin::$method(cluster, &$first $(, $argument)*),
        }
    };
}

impl<'s> Backend<'s> {
    #[inline]
    pub(crate) fn of(server: &'s Server) -> Self {
        match server.cluster() {
            None => Self::Local(server.engine()),
            Some(cluster) => Self::Remote(cluster),
        }
    }

    /// The engine, for calls that only make sense where the tables are.
    pub(crate) fn engine(self) -> Result<&'s Arc<Engine>, Failure> {
        match self {
            Self::Local(engine) => Ok(engine),
            Self::Remote(_) => Err(Failure::do_not_retry(
                "java.lang.UnsupportedOperationException: the tables of this server are in another cluster; \
                 make this call there",
            )),
        }
    }

    /// The region of a row, if it can be had without waiting.
    pub(crate) fn region_at_hand(self, table: &TableName, row: &[u8]) -> Option<RegionInfo> {
        match self {
            Self::Local(engine) => engine.region_of(table, row).ok(),
            Self::Remote(cluster) => remote::admin::region_at_hand(cluster, table, row),
        }
    }

    /// The layout of a table's row keys, if it declares one and is at hand.
    pub(super) fn key_layout(self, table: &TableName) -> Option<KeyLayout> {
        match self {
            Self::Local(engine) => engine.describe_table(table).ok()?.0.key_layout(),
            Self::Remote(_) => None,
        }
    }

    pub(super) fn create_table(self, table: TableDescriptor, splits: Vec<Vec<u8>>) -> Result<(), Failure> {
        both_of!(self, create_table(table, splits))
    }

    pub(super) fn drop_table(self, table: &TableName) -> Result<(), Failure> {
        both!(self, drop_table(table))
    }

    pub(super) fn truncate_table(self, table: &TableName, keep_splits: bool) -> Result<(), Failure> {
        both!(self, truncate_table(table, keep_splits))
    }

    pub(super) fn enable_table(self, table: &TableName) -> Result<(), Failure> {
        both!(self, enable_table(table))
    }

    pub(super) fn disable_table(self, table: &TableName) -> Result<(), Failure> {
        both!(self, disable_table(table))
    }

    pub(super) fn alter_table(self, table: TableDescriptor) -> Result<(), Failure> {
        both_of!(self, alter_table(table))
    }

    pub(super) fn add_family(self, table: &TableName, family: FamilyDescriptor) -> Result<(), Failure> {
        match self {
            Self::Local(engine) => Ok(engine.add_family(table, family)?),
            Self::Remote(cluster) => remote::admin::add_family(cluster, table, &family),
        }
    }

    pub(super) fn alter_family(self, table: &TableName, family: FamilyDescriptor) -> Result<(), Failure> {
        match self {
            Self::Local(engine) => Ok(engine.alter_family(table, family)?),
            Self::Remote(cluster) => remote::admin::alter_family(cluster, table, &family),
        }
    }

    pub(super) fn drop_family(self, table: &TableName, family: &[u8]) -> Result<(), Failure> {
        both!(self, drop_family(table, family))
    }

    /// Flushes all regions of a table, and waits. The families, if some are named, must exist.
    pub(super) fn flush_table(self, table: &TableName, families: &[impl AsRef<[u8]>]) -> Result<(), Failure> {
        match self {
            Self::Local(engine) => {
                engine.check_flushed_families(table, families)?;
                Ok(engine.flush(table)?)
            }
            Self::Remote(cluster) => remote::admin::flush_table(cluster, table, families),
        }
    }

    /// Requests a compaction of a table, or of one of its families; with `wait`, returns when it is done,
    /// which another cluster does not tell.
    pub(super) fn compact_table(
        self,
        table: &TableName,
        family: Option<&[u8]>,
        major: bool,
        wait: bool,
    ) -> Result<(), Failure> {
        match self {
            Self::Local(engine) => Ok(engine.compact(table, family, major, wait)?),
            Self::Remote(_) if wait => Err(Failure::unsupported(
                "waiting for a compaction in another cluster",
            )),
            Self::Remote(cluster) => remote::admin::compact_table(cluster, table, family, major),
        }
    }

    /// A table's descriptor and state; `None` if it does not exist.
    pub(super) fn find_table(self, table: &TableName) -> Result<Option<Described>, Failure> {
        match self {
            Self::Local(engine) => match engine.describe_table(table) {
                Ok(found) => Ok(Some(found)),
                Err(basalt_engine::Error::NoSuchTable(_)) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Self::Remote(cluster) => remote::admin::find(cluster, table),
        }
    }

    /// All tables, those of the system included, by name.
    pub(super) fn tables(&self) -> Result<Vec<Described>, Failure> {
        match self {
            Self::Local(engine) => Ok(engine.tables()),
            Self::Remote(cluster) => remote::admin::tables(cluster),
        }
    }

    pub(super) fn create_namespace(self, namespace: NamespaceDescriptor) -> Result<(), Failure> {
        both_of!(self, create_namespace(namespace))
    }

    pub(super) fn alter_namespace(self, namespace: NamespaceDescriptor) -> Result<(), Failure> {
        both_of!(self, alter_namespace(namespace))
    }

    pub(super) fn drop_namespace(self, name: &str) -> Result<(), Failure> {
        both!(self, drop_namespace(name))
    }

    /// All namespaces, by name.
    pub(super) fn namespaces(&self) -> Result<Vec<NamespaceDescriptor>, Failure> {
        match self {
            Self::Local(engine) => Ok(engine.namespaces()),
            Self::Remote(cluster) => remote::admin::namespaces(cluster),
        }
    }

    /// The regions of a table, by start key.
    pub(super) fn regions(self, table: &TableName) -> Result<Vec<RegionInfo>, Failure> {
        both!(self, regions(table))
    }

    /// The region that has a row.
    pub(super) fn region_of(self, table: &TableName, row: &[u8]) -> Result<RegionInfo, Failure> {
        both!(self, region_of(table, row))
    }

    /// The last region whose row in `hbase:meta` is at or before this one, of whatever table.
    pub(super) fn region_before(self, meta_row: &[u8]) -> Result<Option<RegionInfo>, Failure> {
        both!(self, region_before(meta_row))
    }

    /// The server that has a region, for clients.
    pub(super) fn server_of(self, placement: &Placement, region: &RegionInfo) -> Result<ServerName, Failure> {
        match self {
            Self::Local(_) => Ok(placement.server_of(region.id).clone()),
            Self::Remote(cluster) => remote::admin::server_of(cluster, region),
        }
    }

    /// The id of the cluster.
    pub(super) fn cluster_id(&self) -> Result<String, Failure> {
        match self {
            Self::Local(engine) => Ok(engine.cluster_id().to_string()),
            Self::Remote(cluster) => remote::admin::cluster_id(cluster),
        }
    }
}
