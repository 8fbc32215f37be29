//! The client behind a session: over Thrift 2 or over HBase's native protocol, with the same calls.
//!
//! Calls that only Basalt has, and those of the slow log, go over Thrift with either, and calls of
//! the master over native RPC: Basalt answers both on one port.

use basalt_idl::call::Call;

use basalt_client::native::{self, Cluster};
use basalt_client::{
    Append, Client, Delete, Get, Increment, Namespace, Put, RegionLocation, Result, Row, RowStream, Scan,
    Table, TableName, TableSchema, Thrown,
};

/// The client behind a session.
#[derive(Clone, Debug)]
pub struct Backend {
    /// For tables and rows.
    pub api: Api,
    /// For calls over Thrift.
    pub client: Client,
    /// For calls over native RPC: those of the master with either interface.
    pub cluster: Cluster,
    /// Address of the HTTP port, if it is not the one that the server names.
    pub http: Option<String>,
}

/// The interface for tables and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Thrift 2.
    Thrift,
    /// Native RPC.
    Native,
}

/// The table behind a command.
#[derive(Clone, Debug)]
pub(super) enum BackendTable {
    Thrift(Table),
    Native(native::Table),
}

/// Methods that both clients have.
macro_rules! calls {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl Backend {
            $(pub(super) async fn $name(&self, $($argument: $type),*) -> Result<$result> {
                match self.api {
                    Api::Thrift => self.client.$name($($argument),*).await,
                    Api::Native => self.cluster.$name($($argument),*).await,
                }
            })*
        }
    };
}

calls! {
    create_table_split(schema: TableSchema, split_keys: Vec<Vec<u8>>) -> ();
    drop_table(table: &str) -> ();
    enable_table(table: &str) -> ();
    disable_table(table: &str) -> ();
    truncate_table(table: &str, preserve_splits: bool) -> ();
    table_exists(table: &str) -> bool;
    is_table_enabled(table: &str) -> bool;
    is_table_disabled(table: &str) -> bool;
    describe_table(table: &str) -> TableSchema;
    alter_table(schema: TableSchema) -> ();
    list_tables_of_namespace(namespace: &str) -> Vec<TableName>;
    create_namespace(namespace: Namespace) -> ();
    alter_namespace(namespace: Namespace) -> ();
    drop_namespace(namespace: &str) -> ();
    describe_namespace(namespace: &str) -> Namespace;
    list_namespaces() -> Vec<String>;
    cluster_id() -> String;
}

impl Backend {
    /// The names of user tables whose whole name matches a Java regular expression; of all without
    /// one.
    pub async fn list_tables(&self, regex: Option<&str>) -> Result<Vec<TableName>> {
        match self.api {
            Api::Thrift => self.client.list_tables(regex).await,
            Api::Native => self.cluster.list_tables(regex).await,
        }
    }

    pub(super) fn table(&self, name: &str) -> Result<BackendTable> {
        Ok(match self.api {
            Api::Thrift => BackendTable::Thrift(self.client.table(name)?),
            Api::Native => BackendTable::Native(self.cluster.table(name)?),
        })
    }

    /// The client for calls over Thrift.
    pub(super) fn thrift(&self) -> &Client {
        &self.client
    }

    /// A client of a port where nothing listens, for tests.
    #[cfg(test)]
    pub(super) fn nowhere() -> Backend {
        let registry = native::Registry::zookeeper("127.0.0.1:1", 1, "/hbase").unwrap();
        let mut options = native::ClusterOptions::new(registry);
        options.retries = 0;
        Backend {
            api: Api::Thrift,
            client: Client::new("127.0.0.1:1", basalt_client::PoolOptions::default()).unwrap(),
            cluster: Cluster::new(options),
            http: None,
        }
    }

    /// Makes a call that only the Thrift interface has.
    pub(super) async fn call<C>(&self, call: &C) -> Result<C::Success>
    where
        C: Call,
        C::Exception: Thrown,
    {
        self.client.call(call).await
    }
}

/// Methods that both tables have.
macro_rules! table_calls {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl BackendTable {
            $(pub(super) async fn $name(&self, $($argument: $type),*) -> Result<$result> {
                match self {
                    BackendTable::Thrift(table) => table.$name($($argument),*).await,
                    BackendTable::Native(table) => table.$name($($argument),*).await,
                }
            })*
        }
    };
}

table_calls! {
    get(get: Get) -> Option<Row>;
    put(put: Put) -> ();
    delete(delete: Delete) -> ();
    delete_multiple(deletes: Vec<Delete>) -> ();
    increment(increment: Increment) -> Row;
    append(append: Append) -> Row;
    regions() -> Vec<RegionLocation>;
}

impl BackendTable {
    pub(super) fn scan(&self, scan: Scan) -> Result<RowStream> {
        match self {
            BackendTable::Thrift(table) => table.scan(scan),
            BackendTable::Native(table) => table.scan(scan),
        }
    }

    pub(super) async fn region_of(&self, row: Vec<u8>) -> Result<RegionLocation> {
        match self {
            BackendTable::Thrift(table) => table.region_of(row).await,
            BackendTable::Native(table) => table.region_of(row).await,
        }
    }
}
