//! One call, from its frame to its response.

use std::sync::Arc;
use std::time::Instant;

use basalt_idl::native::frame::Request;

use super::output::Response;
use super::{Connection, MemoryPermit};
use crate::limits::admission::Purpose;
use crate::native::client::{self, Call};
use crate::native::deadline::Deadline;
use crate::native::peer::Method;
use crate::native::reply::Reply;
use crate::native::{admin, answered, arguments, compress, faults, master, registry, slow_log};
use crate::service::Failure;
use crate::service::faults::Consequence;

/// Arguments up to this many bytes in memory are not reserved: those of most calls.
const SMALL_ARGUMENTS: usize = 16 << 10;
/// The label under which dropped calls are counted: the exception that their clients have met.
const TIMED_OUT: &str = "CallTimeoutException";

/// Answers a call that arrived at `arrived`. `permit` is the memory of its frame. `None` if the call's
/// deadline passed before it began.
pub(super) async fn answer(
    connection: Arc<Connection>,
    method: Option<Method>,
    request: Request,
    arrived: Instant,
    mut permit: MemoryPermit,
) -> Option<Response> {
    let call_id = request.header.call_id.unwrap_or_default();
    let mut reply = Reply::new(call_id, connection.peer.compressor);
    if let Some(method) = method {
        run(&connection, method, request, arrived, &mut permit, &mut reply).await?;
    } else {
        let name = request.header.method_name.unwrap_or_default();
        reply.failure(&Failure::unsupported(&name));
    }
    if let Some(cells) = &mut reply.permit {
        permit.join(cells);
    }
    permit.set(reply.out.capacity() + reply.cells.capacity());
    Some(Response {
        bytes: reply.out,
        cells: reply.cells,
        permit,
        is_cut: reply.is_cut,
    })
}

/// Runs one call. The memory of its arguments is added to `permit`. `None` if the call's deadline
/// passed before it began.
async fn run(
    connection: &Arc<Connection>,
    method: Method,
    request: Request,
    arrived: Instant,
    permit: &mut MemoryPermit,
    reply: &mut Reply,
) -> Option<()> {
    let deadline = Deadline::new(arrived, request.header.timeout);
    let parameter = request.parameter.clone();
    let call = Call {
        parameter: request.parameter,
        cells: request.cells,
        arguments_bytes: 0,
        deadline,
    };
    let prepared = if request.header.request_param == Some(true) {
        prepare(connection, method, call, permit).await
    } else {
        Err(Failure::do_not_retry("a call without a request message"))
    };
    let fault = match connection.server.armed_faults() {
        Some(armed) if prepared.is_ok() => {
            Box::pin(faults::meet(connection, armed, method, &parameter)).await
        }
        _ => None,
    };
    reply.is_cut = matches!(fault, Some(Consequence::DropsConnection));
    if reply.is_cut {
        return Some(());
    }
    let number = method.number(connection.peer.service);
    if deadline.has_passed(Instant::now()) {
        answered(&connection.server, number, arrived.elapsed(), Some(TIMED_OUT));
        tracing::debug!(
            method = method.name(),
            "native call dropped: its client has given up"
        );
        return None;
    }
    let drops_reply = matches!(fault, Some(Consequence::DropsReply));
    let outcome = match (prepared, fault) {
        (Ok(_), Some(Consequence::Fails(failure))) => {
            faults::refuse(method, parameter.clone(), *failure, reply)
        }
        (Ok(call), _) => dispatch(connection, method, call, reply).await,
        (Err(failure), _) => Err(failure),
    };
    let outcome = match outcome {
        Ok(()) if connection.peer.compressor.is_some() => {
            Box::pin(reply.pack_cells(&connection.server)).await
        }
        other => other,
    };
    if drops_reply {
        reply.clear();
        reply.is_cut = true;
        return Some(());
    }
    let failed = outcome.err();
    if let Some(failure) = &failed {
        tracing::debug!(
            method = method.name(),
            class = failure.label(),
            "native call failed: {}",
            failure.message()
        );
        reply.failure(failure);
    }
    let (took, class) = (arrived.elapsed(), failed.map(|failure| failure.label()));
    answered(&connection.server, number, took, class);
    let answered = slow_log::Answered {
        method,
        parameter: &parameter,
        took,
        answer_bytes: reply.len(),
        scanned: reply.scanned.take(),
    };
    slow_log::judge(connection, answered);
    Some(())
}

/// Unpacks the cells of a call, and reserves the memory for its arguments, unless they are small.
async fn prepare(
    connection: &Connection,
    method: Method,
    mut call: Call,
    permit: &mut MemoryPermit,
) -> Result<Call, Failure> {
    let compressor = connection.peer.compressor;
    if compressor.is_some() {
        call.cells = Box::pin(compress::unpack(
            &connection.server,
            compressor,
            call.cells,
            permit,
        ))
        .await?;
    }
    let bytes = arguments::memory_bytes(method, &call.parameter, &call.cells);
    if bytes > SMALL_ARGUMENTS {
        call.arguments_bytes = bytes;
        permit
            .add(bytes as u64, Purpose::Arrive)
            .await
            .inspect_err(|busy| connection.server.admission().count(*busy))?;
    }
    Ok(call)
}

async fn dispatch(
    connection: &Arc<Connection>,
    method: Method,
    call: Call,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match method {
        Method::Client(method) => client::call(connection, method, call, reply).await,
        // The rest is boxed, so that a get does not move the memory of a schema change's future.
        Method::Master(method) => {
            Box::pin(master::call(&connection.server, method, call.parameter, reply)).await
        }
        Method::Admin(method) => {
            Box::pin(admin::call(&connection.server, method, call.parameter, reply)).await
        }
        Method::ClientMeta(method) => {
            registry::call(&connection.server, method, reply);
            Ok(())
        }
        Method::BootstrapNode(_) => {
            registry::bootstrap(&connection.server, reply);
            Ok(())
        }
    }
}
