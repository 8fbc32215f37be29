//! Tables, families and namespaces: the calls of [`Client`] that are not about rows.

use std::collections::BTreeMap;

use basalt_idl::thrift2::{TNamespaceDescriptor, TTableName, args};
use bytes::Bytes;

use crate::client::Client;
use crate::error::Result;
use crate::name::TableName;
use crate::options::ServerType;
use crate::request::IntoBytes;
use crate::schema::{FamilySchema, TableSchema};

/// A namespace and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The name.
    pub name: String,
    /// Settings by name.
    pub configuration: BTreeMap<String, String>,
}

impl Client {
    /// Creates a table with one region.
    pub async fn create_table(&self, schema: TableSchema) -> Result<()> {
        self.create_table_split(schema, Vec::new()).await
    }

    /// Creates a table with one region more than split keys. See [`keys::presplit`](crate::keys::presplit)
    /// for keys that spread evenly.
    pub async fn create_table_split(&self, schema: TableSchema, split_keys: Vec<Vec<u8>>) -> Result<()> {
        let split_keys: Vec<Bytes> = split_keys.into_iter().map(Bytes::from).collect();
        let call = args::CreateTable {
            desc: schema.descriptor,
            split_keys: (!split_keys.is_empty()).then_some(split_keys),
        };
        self.call(&call).await
    }

    /// Deletes a disabled table.
    pub async fn drop_table(&self, table: &str) -> Result<()> {
        let table_name = thrift(table)?;
        self.call(&args::DeleteTable { table_name }).await
    }

    /// Brings a disabled table back.
    pub async fn enable_table(&self, table: &str) -> Result<()> {
        let table_name = thrift(table)?;
        self.call(&args::EnableTable { table_name }).await
    }

    /// Takes a table out of service.
    pub async fn disable_table(&self, table: &str) -> Result<()> {
        let table_name = thrift(table)?;
        self.call(&args::DisableTable { table_name }).await
    }

    /// Empties a disabled table and enables it. Without `preserve_splits` it has one region afterwards.
    pub async fn truncate_table(&self, table: &str, preserve_splits: bool) -> Result<()> {
        let table_name = thrift(table)?;
        self.call(&args::TruncateTable {
            table_name,
            preserve_splits,
        })
        .await
    }

    /// Whether the table exists.
    pub async fn table_exists(&self, table: &str) -> Result<bool> {
        let table_name = Some(thrift(table)?);
        self.call(&args::TableExists { table_name }).await
    }

    /// Whether the table serves.
    pub async fn is_table_enabled(&self, table: &str) -> Result<bool> {
        let table_name = thrift(table)?;
        self.call(&args::IsTableEnabled { table_name }).await
    }

    /// Whether the table is out of service.
    pub async fn is_table_disabled(&self, table: &str) -> Result<bool> {
        let table_name = thrift(table)?;
        self.call(&args::IsTableDisabled { table_name }).await
    }

    /// Whether all regions of the table serve; false if it does not exist.
    pub async fn is_table_available(&self, table: &str) -> Result<bool> {
        let table_name = thrift(table)?;
        self.call(&args::IsTableAvailable { table_name }).await
    }

    /// The schema of a table.
    pub async fn describe_table(&self, table: &str) -> Result<TableSchema> {
        let table = thrift(table)?;
        let descriptor = self.call(&args::GetTableDescriptor { table }).await?;
        Ok(TableSchema { descriptor })
    }

    /// Replaces the schema of a table. Families that it leaves out are deleted with their data, so
    /// begin with the result of [`Client::describe_table`].
    pub async fn alter_table(&self, schema: TableSchema) -> Result<()> {
        let desc = schema.descriptor;
        self.call(&args::ModifyTable { desc }).await
    }

    /// Adds a family.
    pub async fn add_family(&self, table: &str, family: FamilySchema) -> Result<()> {
        let table_name = thrift(table)?;
        let column = family.descriptor;
        self.call(&args::AddColumnFamily { table_name, column }).await
    }

    /// Replaces the schema of a family.
    pub async fn alter_family(&self, table: &str, family: FamilySchema) -> Result<()> {
        let table_name = thrift(table)?;
        let column = family.descriptor;
        self.call(&args::ModifyColumnFamily { table_name, column }).await
    }

    /// Deletes a family and its data.
    pub async fn drop_family(&self, table: &str, family: impl IntoBytes) -> Result<()> {
        let table_name = thrift(table)?;
        let column = family.into_bytes();
        self.call(&args::DeleteColumnFamily { table_name, column }).await
    }

    /// The names of user tables whose whole name matches a Java regular expression; of all without one.
    pub async fn list_tables(&self, regex: Option<&str>) -> Result<Vec<TableName>> {
        let call = args::GetTableNamesByPattern {
            regex: regex.map(str::to_owned),
            include_sys_tables: false,
        };
        Ok(names(&self.call(&call).await?))
    }

    /// The names of the tables of a namespace.
    pub async fn list_tables_of_namespace(&self, namespace: &str) -> Result<Vec<TableName>> {
        let name = namespace.to_owned();
        Ok(names(&self.call(&args::GetTableNamesByNamespace { name }).await?))
    }

    /// Creates a namespace.
    pub async fn create_namespace(&self, namespace: Namespace) -> Result<()> {
        let namespace_desc = namespace.into();
        self.call(&args::CreateNamespace { namespace_desc }).await
    }

    /// Replaces the settings of a namespace.
    pub async fn alter_namespace(&self, namespace: Namespace) -> Result<()> {
        let namespace_desc = namespace.into();
        self.call(&args::ModifyNamespace { namespace_desc }).await
    }

    /// Deletes an empty namespace.
    pub async fn drop_namespace(&self, namespace: &str) -> Result<()> {
        let name = namespace.to_owned();
        self.call(&args::DeleteNamespace { name }).await
    }

    /// A namespace and its settings.
    pub async fn describe_namespace(&self, namespace: &str) -> Result<Namespace> {
        let name = namespace.to_owned();
        Ok(self.call(&args::GetNamespaceDescriptor { name }).await?.into())
    }

    /// The names of all namespaces, `default` and `hbase` included.
    pub async fn list_namespaces(&self) -> Result<Vec<String>> {
        self.call(&args::ListNamespaces {}).await
    }

    /// The id of the cluster.
    pub async fn cluster_id(&self) -> Result<String> {
        self.call(&args::GetClusterId {}).await
    }

    /// The one of HBase's services to which the server assigns this client's calls. `ONE` means a
    /// Thrift 1 server, which understands no other call of this client.
    pub async fn server_type(&self) -> Result<ServerType> {
        self.call(&args::GetThriftServerType {}).await
    }
}

impl From<Namespace> for TNamespaceDescriptor {
    fn from(namespace: Namespace) -> Self {
        TNamespaceDescriptor {
            name: namespace.name,
            configuration: Some(namespace.configuration).filter(|settings| !settings.is_empty()),
        }
    }
}

impl From<TNamespaceDescriptor> for Namespace {
    fn from(descriptor: TNamespaceDescriptor) -> Self {
        Namespace {
            name: descriptor.name,
            configuration: descriptor.configuration.unwrap_or_default(),
        }
    }
}

fn thrift(table: &str) -> Result<TTableName> {
    Ok((&table.parse::<TableName>()?).into())
}

fn names(names: &[TTableName]) -> Vec<TableName> {
    names.iter().map(TableName::from).collect()
}
