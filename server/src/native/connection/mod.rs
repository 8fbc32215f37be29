//! A native connection: one task, with the calls that it has in flight.
//!
//! 1. The preamble selects RPC, or is a question that is answered at once ([`greeting`]).
//! 2. The connection header names the service and the cell codec. Only a refused header has a
//!    response.
//! 3. [`Input`] cuts received bytes into frames. [`Calls`] begins each call in the task of the
//!    connection: those whose data is in memory are answered by their first poll. The others are
//!    polled as they become ready, so responses leave in the order in which they are ready.
//! 4. [`Output`] writes responses. Those that are ready together are written together.
//!
//! A connection with [`CALLS_IN_FLIGHT`] calls that are unanswered, or whose responses the client
//! has not accepted, is not read further. Nor is one whose client reads nothing while calls hold all
//! the memory for them. While a response waits for a slow reader, the calls in
//! flight go on: none keeps a thread or a permit because of the socket.
//!
//! A malformed frame ends the connection. A well-formed frame with a malformed or unknown call is
//! answered with an exception, and the connection goes on.
//!
//! After a refusal the connection is drained: further bytes of the client are read and dropped, for
//! a limited time. A socket that is closed with bytes unread is reset, and the client would lose
//! the refusal.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::frame::{FrameError, Request};
use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::peer::Service;
use super::state::Connection;
use crate::limits::admission::MemoryPermit;
use crate::security::{Caller, Login, Owner, Stranger};
use crate::server::Server;
use crate::service::Sender;
use crate::socket::Socket;

mod answer;
mod calls;
mod greeting;
mod input;
mod output;
mod sasl;

use calls::Calls;
use greeting::Identity;
use input::{Arrival, Input};
use output::{Output, Response};
use sasl::Greeted;

/// Most calls of a connection that are unanswered, or whose responses are unsent. Java's client has
/// at most a hundred by default.
pub(super) const CALLS_IN_FLIGHT: usize = 1_000;

/// Why a connection ended, when it was not the client that closed it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("a message was not complete after {0:?} (server.message_timeout_ms)")]
    SlowMessage(Duration),
    #[error("{}: {message}", class.name())]
    Refused { class: ExceptionClass, message: String },
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("others needed the memory of its responses (requests.memory_bytes)")]
    Slow,
    #[error("a fault that a test asked for")]
    Fault,
    #[error("its login has ended")]
    LoginEnded,
}

impl End {
    fn refused(class: ExceptionClass, message: String) -> Self {
        Self::Refused { class, message }
    }
}

/// Why no more calls are read from a connection; `Ok` when the client closed it, or the server stops.
type Reading = Result<(), End>;

/// Serves a connection until either side ends it. `received` holds the bytes that have arrived.
pub(crate) async fn run(
    server: Arc<Server>,
    socket: Socket,
    received: BytesMut,
    (number, (login, stranger)): (u64, (Option<Login>, Stranger)),
    stop: CancellationToken,
) -> Result<(), End> {
    let address = socket.peer_addr().ok();
    let sent = Greeted {
        address,
        is_encrypted: socket.is_encrypted(),
        login,
    };
    let Socket { read, mut write } = socket;
    let mut input = Input::new(Arc::clone(&server), read, received);
    let limit = Duration::from_millis(server.config().server.message_timeout_ms);
    let greeted = tokio::select! {
        greeted = timeout(limit, greeting::greet(&server, &mut input, &mut write, sent)) => greeted,
        () = stop.cancelled() => return Ok(()),
    };
    let (peer, identity) = match greeted.map_err(|_| End::SlowMessage(limit))? {
        Ok(Some(greeted)) => greeted,
        Ok(None) => return Ok(()),
        Err(end) => {
            input.drain_after(&end, &stop).await;
            return Err(end);
        }
    };
    input.end_greeting();
    input.set_of_admin(peer.service == Service::Admin);
    let owner = Owner::Connection(number);
    let (caller, registered) = match identity {
        Identity::Named(user) => (Caller::simple(owner, address, user), None),
        Identity::Proven { login, acts_for } => {
            stranger.logged_in();
            let registered = server.security().register(&login, acts_for.as_deref());
            (Caller::proven(owner, address, login, acts_for), Some(registered))
        }
    };
    let connection = Arc::new(Connection {
        sender: Sender::new(caller, server.admission().memory()),
        server,
        peer,
        scanners: Mutex::default(),
        kept: Mutex::default(),
    });
    let mut calls = Calls::default();
    let mut output = Output::new(&connection, write);
    let serving = serve(&connection, &mut input, &mut calls, &mut output, &stop);
    let served = match &registered {
        None => serving.await,
        Some(registered) => tokio::select! {
            served = Box::pin(serving) => served,
            () = registered.ended.cancelled() => Err(End::LoginEnded),
        },
    };
    if !stop.is_cancelled() {
        connection.sender.gone.store(true, Ordering::Relaxed);
    }
    let written = match &served {
        Ok(_) => finish(&mut calls, &mut output).await,
        Err(_) => Ok(()),
    };
    if served.is_err() || written.is_err() {
        calls.detach();
    }
    let reading = served?;
    if let (Err(end), Ok(())) = (&reading, &written) {
        input.drain_after(end, &stop).await;
    }
    reading.and(written)
}

/// Reads calls and answers them until no more can be read. Fails when responses cannot be written.
async fn serve(
    connection: &Arc<Connection>,
    input: &mut Input,
    calls: &mut Calls,
    output: &mut Output,
    stop: &CancellationToken,
) -> Result<Reading, End> {
    while !stop.is_cancelled() {
        if let Err(end) = begin_received(connection, input, calls, output).await {
            return Ok(Err(end));
        }
        output.write_ready()?;
        if calls.are_new() {
            // Writes of other connections may join the log before the new calls are polled again.
            tokio::task::yield_now().await;
        }
        let arrival = serve_until_arrival(input, calls, output, stop).await?;
        match arrival {
            Ok(Arrival::Call) => {}
            Ok(Arrival::Closed) => return Ok(Ok(())),
            Ok(Arrival::Refused { response, end }) => {
                let memory_permit = MemoryPermit::empty(connection.server.admission().memory());
                output.push(Response::new(response, memory_permit));
                return Ok(Err(end));
            }
            Err(end) => return Ok(Err(end)),
        }
    }
    Ok(Ok(()))
}

/// Begins the calls whose frames have arrived. Stops early when the responses that are ready should
/// be written first.
async fn begin_received(
    connection: &Arc<Connection>,
    input: &mut Input,
    calls: &mut Calls,
    output: &mut Output,
) -> Reading {
    let arrived = Instant::now();
    while !output.should_write()
        && !output.is_full()
        && calls.len() + output.unsent() < CALLS_IN_FLIGHT
        && let Some((frame, memory_permit)) = input.take(calls.len())
    {
        let request = Request::decode(frame)
            .inspect_err(|_| connection.server.load().connections.protocol_errors.increment(1))?;
        let begun = calls.begin(connection, request, memory_permit, arrived, input.has_more());
        if let Some(response) = begun.await {
            output.push(response);
        }
    }
    Ok(())
}

/// Goes on with the calls in flight until a further call has arrived, or a call has ended that one
/// waits for.
async fn serve_until_arrival(
    input: &mut Input,
    calls: &mut Calls,
    output: &mut Output,
    stop: &CancellationToken,
) -> Result<Result<Arrival, End>, End> {
    let waits = input.waits_for_calls() && !calls.is_empty();
    let mut arrival = std::pin::pin!(input.arrive(stop));
    loop {
        let may_read = !waits && !output.is_full() && calls.len() + output.unsent() < CALLS_IN_FLIGHT;
        tokio::select! {
            biased;
            response = calls.next(), if !calls.is_empty() => {
                output.extend(response);
                if waits {
                    return Ok(Ok(Arrival::Call));
                }
            }
            written = output.write(), if !output.is_empty() => written?,
            arrival = &mut arrival, if may_read => return Ok(arrival),
        }
    }
}

/// Answers the calls in flight, and ends the sending half of the connection.
async fn finish(calls: &mut Calls, output: &mut Output) -> Result<(), End> {
    while !calls.is_empty() || !output.is_empty() {
        tokio::select! {
            biased;
            response = calls.next(), if !calls.is_empty() => output.extend(response),
            written = output.write(), if !output.is_empty() => written?,
        }
    }
    output.shutdown().await
}
