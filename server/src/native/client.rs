//! Dispatch of ClientService. `single`, `multi`, `scan`, `coprocessor` and `load` have its methods,
//! `group` has writes that read first.

use std::sync::Arc;

use basalt_idl::native::messages::ClientServiceMethod;
use bytes::Bytes;

use super::deadline::Deadline;
use super::reply::Reply;
use super::state::Connection;
use super::{coprocessor, load, multi, request, scan, single};
use crate::service::Failure;

/// A call: its message and its cell block.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) parameter: Bytes,
    pub(super) cells: Bytes,
    /// Memory that is reserved for the arguments; 0 if they are small.
    pub(super) arguments_bytes: usize,
    /// When the client gives up.
    pub(super) deadline: Deadline,
}

/// Answers a call of ClientService. Each handler is boxed: a pipelining client has many calls in
/// flight, and what they share is as large as this future.
pub(super) async fn call(
    connection: &Arc<Connection>,
    method: ClientServiceMethod,
    call: Call,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match method {
        ClientServiceMethod::Get => {
            Box::pin(single::get(connection, request::decode(call.parameter)?, reply)).await
        }
        ClientServiceMethod::Mutate => {
            Box::pin(single::mutate(
                connection,
                request::decode(call.parameter)?,
                call.cells,
                reply,
            ))
            .await
        }
        ClientServiceMethod::Scan => {
            let wanted = request::decode(call.parameter)?;
            let (bytes, deadline) = (call.arguments_bytes, call.deadline);
            Box::pin(scan::call(connection, wanted, bytes, deadline, reply)).await
        }
        ClientServiceMethod::Multi => {
            let wanted = request::decode(call.parameter)?;
            Box::pin(multi::call(connection, wanted, call.cells, reply)).await
        }
        ClientServiceMethod::ExecService => {
            let wanted = request::decode(call.parameter)?;
            Box::pin(coprocessor::on_region(
                connection,
                wanted,
                call.arguments_bytes,
                reply,
            ))
            .await
        }
        ClientServiceMethod::ExecRegionServerService => {
            Err(coprocessor::on_region_server(&request::decode(call.parameter)?))
        }
        ClientServiceMethod::PrepareBulkLoad => {
            load::prepare(&connection.server, request::decode(call.parameter)?, reply).await
        }
        ClientServiceMethod::BulkLoadHFile => {
            Box::pin(load::load(connection, request::decode(call.parameter)?, reply)).await
        }
        ClientServiceMethod::CleanupBulkLoad => {
            load::clean_up(&connection.server, request::decode(call.parameter)?, reply).await
        }
    }
}
