//! Thrift 2's changes of tables, families and namespaces.

use basalt_idl::thrift2::{AdminHandlers, args};

use crate::service::admin::{namespaces, tables};
use crate::service::{AdminCall, Failure};
use crate::thrift::handlers::Result;
use crate::thrift::{access, schema, slow_log};

impl AdminHandlers<Failure> for AdminCall {
    fn createTable(&self, args: args::CreateTable) -> Result<()> {
        let splits = args.split_keys.unwrap_or_default();
        let splits = splits.iter().map(|key| key.to_vec()).collect();
        tables::create(self, schema::table(&args.desc)?, splits)
    }

    fn deleteTable(&self, args: args::DeleteTable) -> Result<()> {
        tables::drop(self, &schema::table_name(&args.table_name)?)
    }

    fn truncateTable(&self, args: args::TruncateTable) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        tables::truncate(self, &table, args.preserve_splits)
    }

    fn enableTable(&self, args: args::EnableTable) -> Result<()> {
        tables::enable(self, &schema::table_name(&args.table_name)?)
    }

    fn disableTable(&self, args: args::DisableTable) -> Result<()> {
        tables::disable(self, &schema::table_name(&args.table_name)?)
    }

    fn addColumnFamily(&self, args: args::AddColumnFamily) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        tables::add_family(self, &table, schema::family(&args.column)?)
    }

    fn modifyColumnFamily(&self, args: args::ModifyColumnFamily) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        tables::alter_family(self, &table, schema::family(&args.column)?)
    }

    fn deleteColumnFamily(&self, args: args::DeleteColumnFamily) -> Result<()> {
        let table = schema::table_name(&args.table_name)?;
        tables::drop_family(self, &table, &args.column)
    }

    fn modifyTable(&self, args: args::ModifyTable) -> Result<()> {
        tables::alter(self, schema::table(&args.desc)?)
    }

    fn createNamespace(&self, args: args::CreateNamespace) -> Result<()> {
        namespaces::create(self, schema::namespace(args.namespace_desc))
    }

    fn modifyNamespace(&self, args: args::ModifyNamespace) -> Result<()> {
        namespaces::alter(self, schema::namespace(args.namespace_desc))
    }

    fn deleteNamespace(&self, args: args::DeleteNamespace) -> Result<()> {
        namespaces::drop(self, &args.name)
    }

    fn clearSlowLogResponses(&self, args: args::ClearSlowLogResponses) -> Result<Vec<bool>> {
        slow_log::clear(self, args.server_names.as_ref())
    }

    fn grant(&self, args: args::Grant) -> Result<bool> {
        access::grant(self, &args.info)
    }

    fn revoke(&self, args: args::Revoke) -> Result<bool> {
        access::revoke(self, &args.info)
    }
}
