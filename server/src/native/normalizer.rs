//! Runs of the normalizer on request.

use basalt_idl::native::messages as pb;

use super::schema;
use crate::service::admin::{cluster, tables};
use crate::service::{AdminCall, Failure};

/// Requests a run over the tables that the call selects, all user tables without a selection. Returns `false`
/// while the normalizer is switched off.
pub(super) fn run(call: &AdminCall, request: &pb::NormalizeRequest) -> Result<bool, Failure> {
    let named = request.table_names.iter().map(schema::table_name);
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let mut found = tables::list_matching(call, request.regex.as_deref(), false)?;
    let namespace = request.namespace.as_deref();
    found.retain(|table| namespace.is_none_or(|namespace| table.name.namespace() == namespace));
    let tables = found.iter().map(|table| table.name.clone());
    cluster::normalize(
        call,
        tables.filter(|table| named.is_empty() || named.contains(table)),
    )
}
