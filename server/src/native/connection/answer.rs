//! One call, from its frame to its response.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use basalt_idl::native::frame::CallHeader;
use basalt_idl::native::messages::AdminServiceMethod;

use super::output::Response;
use super::{Connection, MemoryPermit};
use crate::limits::admission::Purpose;
use crate::native::arrived::Arrived;
use crate::native::client;
use crate::native::peer::Method;
use crate::native::reply::Reply;
use crate::native::{admin, arguments, compress, faults, listed, master, sink};
use crate::observe::metrics::Api;
use crate::service::faults::Consequence;
use crate::service::pipeline::{self, End};
use crate::service::{Call, Failure, Kept};

/// Arguments up to this many bytes in memory, of all calls of a connection in flight, are not
/// reserved: those of most calls.
const SMALL_ARGUMENTS: usize = 16 << 10;
/// The label under which dropped calls are counted: the exception that their clients have met.
const TIMED_OUT: &str = "CallTimeoutException";

/// A call that is running. It has no response if its client has timed out.
pub(super) type Running = Pin<Box<dyn Future<Output = Option<Response>> + Send>>;

/// Answers a call. `permit` is the memory of its frame. The output is `None` if the call's deadline
/// passed before it began.
pub(super) fn answer(
    connection: Arc<Connection>,
    method: Method,
    mut arrived: Arrived,
    mut permit: MemoryPermit,
) -> Running {
    Box::pin(async move {
        let mut reply = Reply::new(arrived.id, connection.peer.packing);
        run(&connection, method, &mut arrived, &mut permit, &mut reply).await?;
        Some(response(reply, permit))
    })
}

/// The answer to a call of a method that the service does not have.
pub(super) fn unknown_method(connection: &Connection, header: &CallHeader, permit: MemoryPermit) -> Response {
    let call_id = header.call_id.unwrap_or_default();
    let mut reply = Reply::new(call_id, connection.peer.packing);
    reply.failure(&Failure::unsupported(header.method()));
    response(reply, permit)
}

fn response(mut reply: Reply, mut permit: MemoryPermit) -> Response {
    if let Some(cells) = &mut reply.permit {
        permit.join(cells);
    }
    permit.set(reply.out.capacity() + reply.cells.capacity());
    Response {
        bytes: reply.out,
        cells: reply.cells,
        permit,
        is_cut: reply.is_cut,
    }
}

/// Runs one call. The memory of its arguments is added to `permit`. `None` if the call's deadline
/// passed before it began.
async fn run(
    connection: &Arc<Connection>,
    method: Method,
    arrived: &mut Arrived,
    permit: &mut MemoryPermit,
    reply: &mut Reply,
) -> Option<()> {
    let mut kept = Kept::default();
    let mut call = Call::new(&connection.sender, &mut kept, arrived.at);
    let prepared = if arrived.has_message {
        prepare(connection, method, arrived, &mut call, permit).await
    } else {
        Err(Failure::do_not_retry("a call without a request message"))
    };
    let fault = match connection.server.armed_faults() {
        Some(armed) if prepared.is_ok() => {
            Box::pin(faults::meet(connection, armed, method, &arrived.parameter)).await
        }
        _ => None,
    };
    reply.is_cut = matches!(fault, Some(Consequence::DropsConnection));
    if reply.is_cut {
        return Some(());
    }
    let of = pipeline::Method {
        api: Api::Native,
        number: method.number(connection.peer.service),
        service: connection.peer.service.name(),
        name: method.name(),
    };
    if arrived.deadline.has_passed(Instant::now()) {
        pipeline::count(&connection.server, of, arrived.at.elapsed(), Some(TIMED_OUT));
        tracing::debug!(
            method = method.name(),
            "native call dropped: its client has given up"
        );
        return None;
    }
    let drops_reply = matches!(fault, Some(Consequence::DropsReply));
    let outcome = match (prepared, fault) {
        (Ok(()), Some(Consequence::Fails(failure))) => {
            faults::refuse(method, arrived.parameter.clone(), *failure, reply)
        }
        (Ok(()), _) => dispatch(connection, method, arrived, &mut call, reply).await,
        (Err(failure), _) => Err(failure),
    };
    let outcome = match outcome {
        Ok(()) if connection.peer.packing.is_some() => Box::pin(reply.pack_cells(&connection.server)).await,
        other => other,
    };
    if drops_reply {
        reply.clear();
        reply.is_cut = true;
        return Some(());
    }
    let failed = outcome.err();
    if let Some(failure) = &failed {
        reply.failure(failure);
    }
    let end = End {
        failed: failed.as_ref().map(Failure::label),
        message: failed.as_ref().map_or("", Failure::message),
        answer_bytes: reply.len(),
    };
    pipeline::settle(&connection.server, &call, of, end);
    Some(())
}

/// Unpacks the cells of a call, and reserves the memory for its arguments, unless they are small.
async fn prepare(
    connection: &Connection,
    method: Method,
    arrived: &mut Arrived,
    call: &mut Call<'_>,
    permit: &mut MemoryPermit,
) -> Result<(), Failure> {
    let packing = connection.peer.packing;
    if packing.is_some() {
        arrived.cells = Box::pin(compress::unpack(
            &connection.server,
            packing,
            std::mem::take(&mut arrived.cells),
            permit,
        ))
        .await?;
    }
    let bytes = arguments::memory_bytes(method, &arrived.parameter, &arrived.cells);
    if bytes.saturating_mul(arrived.in_flight + 1) > SMALL_ARGUMENTS {
        call.arguments_bytes = bytes;
        permit
            .add(bytes as u64, Purpose::Arrive)
            .await
            .inspect_err(|busy| connection.server.admission().count(*busy))?;
    }
    Ok(())
}

async fn dispatch(
    connection: &Arc<Connection>,
    of: Method,
    arrived: &Arrived,
    call: &mut Call<'_>,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match of {
        Method::Client(method) => client::call(connection, method, arrived, call, reply).await,
        // The rest is boxed, so that a get does not move the memory of a schema change's future.
        Method::Master(method) => {
            Box::pin(listed::reserve(&connection.server, of, &arrived.parameter, reply)).await?;
            let parameter = arrived.parameter.clone();
            let (admin, description) = (connection.admin(), &mut call.description);
            let answered = Box::pin(master::call(&admin, method, parameter, reply)).await;
            admin.describe(description);
            answered
        }
        Method::Admin(AdminServiceMethod::ReplicateWALEntry) => {
            Box::pin(sink::answer(connection, call, arrived, reply)).await
        }
        Method::Admin(method) => {
            Box::pin(listed::reserve(&connection.server, of, &arrived.parameter, reply)).await?;
            let parameter = arrived.parameter.clone();
            let (admin, description) = (connection.admin(), &mut call.description);
            let answered = Box::pin(admin::call(&admin, method, parameter, reply)).await;
            admin.describe(description);
            answered
        }
        Method::ClientMeta(method) => method.answer(&connection.admin(), arrived.parameter.clone(), reply),
        Method::BootstrapNode(method) => method.answer(&connection.admin(), arrived.parameter.clone(), reply),
    }
}
