//! Requests of native calls. [`decode`](super::decode) converts them; filters and
//! conditions that may have a regular expression are converted on the pool.

use std::sync::Arc;

use basalt_engine::filter::{FilterSender, FilterSpec};
use basalt_engine::op::ReadSpec;
use basalt_engine::schema::TableName;
use basalt_idl::native::messages;

pub(super) use super::decode::request::*;
use crate::limits::admission::Class;
use crate::security::Caller;
use crate::server::Server;
use crate::service::Failure;

/// The read that a Get asks for, with its decoded filter.
pub(super) fn get(get: &messages::Get, filter: Option<Arc<FilterSpec>>) -> Result<ReadSpec, Failure> {
    if get.closest_row_before == Some(true) {
        return Err(Failure::unknown_protocol(
            "the row before the closest one is not served since HBase 2; use a reversed scan",
        ));
    }
    Ok(read_of(get, filter)?)
}

/// Decodes the filter of a caller's read of `table`, if there is one.
pub(super) async fn filter(
    server: &Arc<Server>,
    caller: &Caller,
    table: &TableName,
    filter: Option<&messages::Filter>,
) -> Result<Option<Arc<FilterSpec>>, Failure> {
    let Some(filter) = filter else { return Ok(None) };
    let class = Class::of_read(table);
    let sender = sender(server, caller, table);
    let convert = move |filter: &messages::Filter| decode_filter_of(filter, sender.as_ref());
    let decoded = converted(server, class, filter, has_regex(filter), convert).await?;
    Ok(Some(decoded))
}

/// The sender of filters and comparators for `table`, if users' classes run there.
pub(super) fn sender(server: &Server, caller: &Caller, table: &TableName) -> Option<FilterSender> {
    if table.is_system() {
        return None;
    }
    server.filter_sender(caller)
}

/// Converts a message: on the pool if it may have a regular expression, which must be compiled.
pub(super) async fn converted<M, T>(
    server: &Arc<Server>,
    class: Class,
    message: &M,
    has_regex: bool,
    convert: impl FnOnce(&M) -> basalt_engine::Result<T> + Send + 'static,
) -> Result<T, Failure>
where
    M: Clone + Send + 'static,
    T: Send + 'static,
{
    if !has_regex {
        return Ok(convert(message)?);
    }
    let message = message.clone();
    // Boxed: few messages need it.
    Box::pin(server.compiled(class, move |_| Ok(convert(&message)?))).await
}
