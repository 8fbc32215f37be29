//! The client behind a session: over Thrift 2 or over HBase's native protocol, with the same calls.
//!
//! Calls that only Basalt has, and those of the slow log, go over Thrift with either: Basalt answers both on
//! one port.

use basalt_idl::call::Call;

use basalt_client::native::{self, Cluster};
use basalt_client::{
    Append, Client, Delete, Get, Increment, Namespace, Put, RegionLocation, Result, Row, RowStream, Scan,
    Table, TableName, TableSchema, Thrown,
};

/// The client behind a session.
#[derive(Clone, Debug)]
pub enum Backend {
    /// Thrift 2.
    Thrift(Client),
    /// Native RPC.
    Native {
        /// For everything that HBase has.
        cluster: Cluster,
        /// For Basalt's own calls.
        client: Client,
    },
}

impl From<Client> for Backend {
    fn from(client: Client) -> Backend {
        Backend::Thrift(client)
    }
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
                match self {
                    Backend::Thrift(client) => client.$name($($argument),*).await,
                    Backend::Native { cluster, .. } => cluster.$name($($argument),*).await,
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
    /// The names of user tables whose whole name matches a Java regular expression; of all without one.
    pub async fn list_tables(&self, regex: Option<&str>) -> Result<Vec<TableName>> {
        match self {
            Backend::Thrift(client) => client.list_tables(regex).await,
            Backend::Native { cluster, .. } => cluster.list_tables(regex).await,
        }
    }

    pub(super) fn table(&self, name: &str) -> Result<BackendTable> {
        Ok(match self {
            Backend::Thrift(client) => BackendTable::Thrift(client.table(name)?),
            Backend::Native { cluster, .. } => BackendTable::Native(cluster.table(name)?),
        })
    }

    /// The client for calls over Thrift.
    pub(super) fn thrift(&self) -> &Client {
        match self {
            Backend::Thrift(client) | Backend::Native { client, .. } => client,
        }
    }

    /// Makes a call that only the Thrift interface has.
    pub(super) async fn call<C>(&self, call: &C) -> Result<C::Success>
    where
        C: Call,
        C::Exception: Thrown,
    {
        self.thrift().call(call).await
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
