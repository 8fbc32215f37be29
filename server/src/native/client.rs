//! Dispatch of ClientService. `single`, `multi`, `scan`, `coprocessor` and `load` have its methods,
//! `group` has writes that read first.

use std::sync::Arc;

use basalt_idl::native::messages::ClientServiceMethod;

use super::call::Call;
use super::reply::Reply;
use super::state::Connection;
use super::{coprocessor, load, multi, scan, single};
use crate::service::Failure;

/// Answers a call of ClientService. Handlers are boxed, but for plain writes: a pipelining client has
/// many calls in flight, and what they share is as large as this future.
pub(super) async fn call(
    connection: &Arc<Connection>,
    method: ClientServiceMethod,
    call: &Call,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match method {
        ClientServiceMethod::Get => Box::pin(single::get(connection, call.decode()?, reply)).await,
        ClientServiceMethod::Mutate => single::mutate(connection, call, reply).await,
        ClientServiceMethod::Scan => {
            let (bytes, deadline) = (call.arguments_bytes, call.deadline);
            Box::pin(scan::call(connection, call.decode()?, bytes, deadline, reply)).await
        }
        ClientServiceMethod::Multi => {
            Box::pin(multi::call(connection, call.decode()?, call.cells.clone(), reply)).await
        }
        ClientServiceMethod::ExecService => {
            let bytes = call.arguments_bytes;
            Box::pin(coprocessor::on_region(connection, call.decode()?, bytes, reply)).await
        }
        ClientServiceMethod::ExecRegionServerService => Err(coprocessor::on_region_server(&call.decode()?)),
        ClientServiceMethod::PrepareBulkLoad => {
            Box::pin(load::prepare(&connection.server, call.decode()?, reply)).await
        }
        ClientServiceMethod::BulkLoadHFile => Box::pin(load::load(connection, call.decode()?, reply)).await,
        ClientServiceMethod::CleanupBulkLoad => {
            Box::pin(load::clean_up(&connection.server, call.decode()?, reply)).await
        }
    }
}
