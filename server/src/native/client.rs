//! Dispatch of ClientService. `single`, `multi`, `scan`, `coprocessor` and `load` have its methods,
//! `group` has writes that read first.

use std::sync::Arc;

use basalt_idl::native::Reply as _;
use basalt_idl::native::messages::ClientServiceMethod;

use super::arrived::Arrived;
use super::reply::Reply;
use super::state::Connection;
use super::{coprocessor, load, multi, scan, single};
use crate::service::{Call, Failure};

/// Answers a call of ClientService. Handlers are boxed, but for plain writes: a pipelining client has
/// many calls in flight, and what they share is as large as this future.
pub(super) async fn call(
    connection: &Arc<Connection>,
    method: ClientServiceMethod,
    arrived: &Arrived,
    call: &mut Call<'_>,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match method {
        ClientServiceMethod::Get => Box::pin(single::get(connection, call, arrived.decode()?, reply)).await,
        ClientServiceMethod::Mutate => single::mutate(connection, call, arrived, reply).await,
        ClientServiceMethod::Scan => {
            Box::pin(scan::call(
                connection,
                call,
                arrived.decode()?,
                arrived.deadline,
                reply,
            ))
            .await
        }
        ClientServiceMethod::Multi => {
            let cells = arrived.cells.clone();
            Box::pin(multi::call(connection, call, arrived.decode()?, cells, reply)).await
        }
        ClientServiceMethod::ExecService => {
            Box::pin(coprocessor::on_region(connection, call, arrived.decode()?, reply)).await
        }
        ClientServiceMethod::ExecRegionServerService => {
            coprocessor::on_region_server(connection, &arrived.decode()?)
        }
        ClientServiceMethod::PrepareBulkLoad => {
            reply.message(&Box::pin(load::prepare(connection, arrived.decode()?)).await?);
            Ok(())
        }
        ClientServiceMethod::BulkLoadHFile => {
            reply.message(&Box::pin(load::load(connection, arrived.decode()?)).await?);
            Ok(())
        }
        ClientServiceMethod::CleanupBulkLoad => {
            reply.message(&Box::pin(load::clean_up(connection, arrived.decode()?)).await?);
            Ok(())
        }
    }
}
