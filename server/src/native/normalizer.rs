//! Runs of the normalizer on request.

use basalt_idl::native::messages as pb;

use super::schema;
use crate::server::Server;
use crate::service::Failure;

/// Requests a run over the tables that the call selects, all user tables without a selection. Returns `false`
/// while the normalizer is switched off.
pub(super) fn run(server: &Server, call: &pb::NormalizeRequest) -> Result<bool, Failure> {
    let named = call.table_names.iter().map(schema::table_name);
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let found = schema::matching(server, call.regex.as_deref(), false, call.namespace.as_deref())?;
    let tables = found.iter().map(|table| table.name.clone());
    let selected = tables.filter(|table| named.is_empty() || named.contains(table));
    Ok(server.engine().normalize(selected))
}
