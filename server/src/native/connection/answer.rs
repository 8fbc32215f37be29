//! One call, from its frame to its response.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use basalt_idl::native::frame::CallHeader;

use super::output::Response;
use super::{Connection, MemoryPermit};
use crate::limits::admission::Purpose;
use crate::native::call::Call;
use crate::native::client;
use crate::native::peer::Method;
use crate::native::reply::Reply;
use crate::native::{admin, answered, arguments, compress, faults, master, registry, slow_log};
use crate::service::Failure;
use crate::service::faults::Consequence;

/// Arguments up to this many bytes in memory are not reserved: those of most calls.
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
    mut call: Call,
    mut permit: MemoryPermit,
) -> Running {
    Box::pin(async move {
        let mut reply = Reply::new(call.id, connection.peer.compressor);
        run(&connection, method, &mut call, &mut permit, &mut reply).await?;
        Some(response(reply, permit))
    })
}

/// The answer to a call of a method that the service does not have.
pub(super) fn unknown_method(connection: &Connection, header: &CallHeader, permit: MemoryPermit) -> Response {
    let call_id = header.call_id.unwrap_or_default();
    let mut reply = Reply::new(call_id, connection.peer.compressor);
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
    call: &mut Call,
    permit: &mut MemoryPermit,
    reply: &mut Reply,
) -> Option<()> {
    let prepared = if call.has_message {
        prepare(connection, method, call, permit).await
    } else {
        Err(Failure::do_not_retry("a call without a request message"))
    };
    let fault = match connection.server.armed_faults() {
        Some(armed) if prepared.is_ok() => {
            Box::pin(faults::meet(connection, armed, method, &call.parameter)).await
        }
        _ => None,
    };
    reply.is_cut = matches!(fault, Some(Consequence::DropsConnection));
    if reply.is_cut {
        return Some(());
    }
    let number = method.number(connection.peer.service);
    if call.deadline.has_passed(Instant::now()) {
        answered(
            &connection.server,
            number,
            call.arrived.elapsed(),
            Some(TIMED_OUT),
        );
        tracing::debug!(
            method = method.name(),
            "native call dropped: its client has given up"
        );
        return None;
    }
    let drops_reply = matches!(fault, Some(Consequence::DropsReply));
    let outcome = match (prepared, fault) {
        (Ok(()), Some(Consequence::Fails(failure))) => {
            faults::refuse(method, call.parameter.clone(), *failure, reply)
        }
        (Ok(()), _) => dispatch(connection, method, call, reply).await,
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
    let (took, class) = (call.arrived.elapsed(), failed.map(|failure| failure.label()));
    answered(&connection.server, number, took, class);
    let answered = slow_log::Answered {
        method,
        parameter: &call.parameter,
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
    call: &mut Call,
    permit: &mut MemoryPermit,
) -> Result<(), Failure> {
    let compressor = connection.peer.compressor;
    if compressor.is_some() {
        call.cells = Box::pin(compress::unpack(
            &connection.server,
            compressor,
            std::mem::take(&mut call.cells),
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
    Ok(())
}

async fn dispatch(
    connection: &Arc<Connection>,
    method: Method,
    call: &Call,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match method {
        Method::Client(method) => client::call(connection, method, call, reply).await,
        // The rest is boxed, so that a get does not move the memory of a schema change's future.
        Method::Master(method) => {
            let parameter = call.parameter.clone();
            Box::pin(master::call(&connection.server, method, parameter, reply)).await
        }
        Method::Admin(method) => {
            let parameter = call.parameter.clone();
            Box::pin(admin::call(&connection.server, method, parameter, reply)).await
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
