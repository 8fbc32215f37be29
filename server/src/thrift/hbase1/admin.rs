//! Thrift 1's changes of tables, and its requests for compactions.

use basalt_engine::schema::TableDescriptor;
use basalt_idl::thrift1::{AdminHandlers, args};
use bytes::Bytes;

use crate::service::admin::{regions, tables};
use crate::service::{AdminCall, Failure};
use crate::thrift::handlers::Result;
use crate::thrift::{access, from_thrift, schema};

impl AdminHandlers<Failure> for AdminCall {
    fn enableTable(&self, args: args::EnableTable) -> Result<()> {
        tables::enable(self, &from_thrift::table(args.table_name.as_ref())?)
    }

    fn disableTable(&self, args: args::DisableTable) -> Result<()> {
        tables::disable(self, &from_thrift::table(args.table_name.as_ref())?)
    }

    fn compact(&self, args: args::Compact) -> Result<()> {
        compact(self, args.table_name_or_region_name.as_ref(), false)
    }

    /// HBase's gateway runs a minor compaction for it; here it is a major one, as the name says.
    fn majorCompact(&self, args: args::MajorCompact) -> Result<()> {
        compact(self, args.table_name_or_region_name.as_ref(), true)
    }

    fn createTable(&self, args: args::CreateTable) -> Result<()> {
        let name = from_thrift::table(args.table_name.as_ref())?;
        // HBase's gateway looks for the table before it looks at the families.
        if tables::find(self, &name)?.is_some() {
            return Err(basalt_engine::Error::TableExists(name).into());
        }
        let families = args.column_families.unwrap_or_default();
        let families = families.iter().map(schema::family1).collect::<Result<_, _>>()?;
        tables::create(self, TableDescriptor::new(name, families), Vec::new())
    }

    fn deleteTable(&self, args: args::DeleteTable) -> Result<()> {
        let table = from_thrift::table(args.table_name.as_ref())?;
        match tables::drop(self, &table) {
            // HBase's own words for it, which it sends as a plain IOException.
            Err(failure) if failure.is_no_table() => Err(Failure::plain_io("table does not exist")),
            other => other,
        }
    }

    fn grant(&self, args: args::Grant) -> Result<bool> {
        access::grant(self, &args.info)
    }

    fn revoke(&self, args: args::Revoke) -> Result<bool> {
        access::revoke(self, &args.info)
    }
}

/// Requests a compaction; does not wait for it. The argument is a table's name or a region's, full or
/// encoded.
fn compact(call: &AdminCall, table_or_region: Option<&Bytes>, major: bool) -> Result<()> {
    let name =
        table_or_region.ok_or_else(|| Failure::illegal_argument("the table or region name is missing"))?;
    regions::compact(call, name, None, major, false)
}
