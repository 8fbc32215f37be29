//! Thrift 2's changes of tables, families and namespaces.

use basalt_idl::thrift2::{AdminHandlers, args};

use crate::server::Server;
use crate::service::{Failure, quotas};
use crate::thrift::handlers::Result;
use crate::thrift::{access, schema, slow_log};

impl AdminHandlers<Failure> for Server {
    fn createTable(&self, args: args::CreateTable) -> Result<()> {
        let splits = args.split_keys.unwrap_or_default();
        let splits = splits.iter().map(|key| key.to_vec()).collect();
        let table = schema::for_creation(schema::table(&args.desc)?);
        Ok(self.engine().create_table(table, splits)?)
    }

    fn deleteTable(&self, args: args::DeleteTable) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        self.engine().drop_table(&table)?;
        quotas::remove_for_table(self, table)
    }

    fn truncateTable(&self, args: args::TruncateTable) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        Ok(self.engine().truncate_table(&table, args.preserve_splits)?)
    }

    fn enableTable(&self, args: args::EnableTable) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        Ok(self.engine().enable_table(&table)?)
    }

    fn disableTable(&self, args: args::DisableTable) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        Ok(self.engine().disable_table(&table)?)
    }

    fn addColumnFamily(&self, args: args::AddColumnFamily) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        Ok(self.engine().add_family(&table, schema::family(&args.column)?)?)
    }

    fn modifyColumnFamily(&self, args: args::ModifyColumnFamily) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        let family = schema::family(&args.column)?;
        Ok(self.engine().alter_family(&table, family)?)
    }

    fn deleteColumnFamily(&self, args: args::DeleteColumnFamily) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        Ok(self.engine().drop_family(&table, &args.column)?)
    }

    fn modifyTable(&self, args: args::ModifyTable) -> Result<()> {
        Ok(self.engine().alter_table(schema::table(&args.desc)?)?)
    }

    fn createNamespace(&self, args: args::CreateNamespace) -> Result<()> {
        let namespace = schema::namespace(args.namespace_desc);
        Ok(self.engine().create_namespace(namespace)?)
    }

    fn modifyNamespace(&self, args: args::ModifyNamespace) -> Result<()> {
        let namespace = schema::namespace(args.namespace_desc);
        Ok(self.engine().alter_namespace(namespace)?)
    }

    fn deleteNamespace(&self, args: args::DeleteNamespace) -> Result<()> {
        self.engine().drop_namespace(&args.name)?;
        quotas::remove_for_namespace(self, &args.name)
    }

    fn clearSlowLogResponses(&self, args: args::ClearSlowLogResponses) -> Result<Vec<bool>> {
        slow_log::clear(self, args.server_names.as_ref())
    }

    fn grant(&self, args: args::Grant) -> Result<bool> {
        access::change(&args.info)
    }

    fn revoke(&self, args: args::Revoke) -> Result<bool> {
        access::change(&args.info)
    }
}
