//! One connection: read messages, have them answered, write the answers.
//!
//! A message that exceeds a connection's free bytes is read in pieces, each reserved from the
//! memory for calls before it is read. The sender of a large message and the reader of a large
//! answer are registered as slow clients: a client that makes no progress is dropped when other
//! calls need the memory.
//!
//! Calls of one connection run one after another, as in HBase's gateway. Answers to messages that arrived
//! together leave together, but none waits for a later call that has to wait itself. The task holds little
//! between calls: an idle connection costs its task and two small buffers.

use std::future::{pending, poll_fn};
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::ready;
use std::time::Duration;

use basalt_idl::wire::{Detected, begin_frame, end_frame};
use basalt_idl::{TApplicationException, TApplicationExceptionType};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::limits::admission::{Busy, MemoryPermit, SlowClient, dropped, send_now, unread};
use crate::limits::parking;
use crate::server::Server;
use crate::service::Caller;
use crate::thrift::Client;
use crate::thrift::messages::{Messages, ProtocolError, WireFormat};

/// Answers are written at the latest when they have grown to this.
const FLUSH_BYTES: usize = 256 << 10;
/// Interval at which a connection with unread calls is checked while one of its calls runs.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Size from which an answer buffer is freed after use.
const KEEP_BYTES: usize = 64 << 10;
/// Idle time after which a connection frees the memory that it keeps for the next call, if that is
/// more than [`IDLE_KEEP_BYTES`].
const RELEASE_AFTER: Duration = Duration::from_secs(1);
/// Memory that an idle connection may keep for the next call.
const IDLE_KEEP_BYTES: usize = 8 << 10;
/// Room for one read of drained bytes.
const DRAIN_READ_BYTES: usize = 16 << 10;

/// Why a connection ended, unless the client closed it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    ProtocolError(#[from] ProtocolError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("a message was not complete after {0:?} (thrift.message_timeout_ms)")]
    SlowMessage(Duration),
    #[error("no call for {0:?} (thrift.idle_timeout_ms)")]
    Idle(Duration),
    #[error("the client did not read its answer for {0:?} (thrift.write_timeout_ms)")]
    SlowReader(Duration),
    #[error("{0}")]
    Busy(#[from] Busy),
    #[error("the answer of {0} bytes is larger than a frame can say")]
    AnswerTooLarge(usize),
    #[error("a fault that a test asked for")]
    Fault,
}

/// A connection with another protocol that this port serves.
#[derive(Debug)]
pub(crate) struct Handover {
    pub(crate) socket: TcpStream,
    /// The bytes received so far.
    pub(crate) received: BytesMut,
    pub(crate) protocol: Detected,
}

/// Serves the connection with this number until either side ends it. If its first bytes are of
/// another protocol that this port serves, returns the connection.
pub(crate) async fn run(
    server: Arc<Server>,
    mut socket: TcpStream,
    number: u64,
    stop: CancellationToken,
) -> Result<Option<Handover>, End> {
    let mut messages = Messages::new(&server.config().thrift);
    let caller = Caller::connected(number, server.admission().memory()).at(socket.peer_addr().ok());
    let mut client = Client::of_both(caller);
    let mut answers = Answers::default();
    let mut permit = MemoryPermit::empty(server.admission().memory());
    // Set while a large message arrives.
    let mut slow = None;
    // When the first byte of the current message arrived.
    let mut message_began = None;
    // A token of its own, waited for once and for all: connections that wait for their next call take no lock
    // together.
    let stop = stop.child_token();
    let mut stopped = pin!(stop.cancelled());
    // A handle of its own, since the call borrows the caller.
    let gone = client.caller.gone();
    // A connection that never blocks on a read would miss the shutdown signal, so it is also
    // checked without a wait.
    let mut has_waited = false;
    loop {
        match messages.next_message() {
            Ok(Some((wire_format, message))) => {
                (message_began, slow) = (None, None);
                permit.set(message.len() + messages.buffered_bytes() + answers.capacity());
                // Pinned where it is made, as all futures on a call's way: a future that is awaited by
                // value is copied first, and these have kilobytes.
                pin!(answer(
                    &server,
                    &socket,
                    &gone,
                    &mut client,
                    wire_format,
                    message,
                    &mut answers,
                ))
                .await?;
                if client.caller.is_cut {
                    send(&server, &socket, &mut answers.ready).await?;
                    return Err(End::Fault);
                }
                permit.join(client.caller.reply());
                permit.set(messages.buffered_bytes() + answers.capacity());
                if answers.ready.len() < FLUSH_BYTES {
                    continue;
                }
            }
            Ok(None) => {}
            Err(ProtocolError::OtherProtocol(protocol)) => {
                return Ok(Some(Handover {
                    socket,
                    received: messages.into_received(),
                    protocol,
                }));
            }
            Err(protocol_error) => {
                server.connections().protocol_errors.increment(1);
                error_reply(&messages, &protocol_error, &mut answers.ready);
                end_with(
                    &server,
                    &mut socket,
                    &mut messages,
                    &mut permit,
                    &mut answers,
                    &stop,
                )
                .await?;
                return Err(protocol_error.into());
            }
        }
        send(&server, &socket, &mut answers.ready).await?;
        permit.set(messages.buffered_bytes() + answers.capacity());
        if messages.has_partial() {
            message_began.get_or_insert_with(Instant::now);
        }
        if !has_waited && stop.is_cancelled() {
            return Ok(None);
        }
        has_waited = false;
        let is_open = if let Some(began) = message_began {
            let arriving = Arriving {
                messages: &mut messages,
                permit: &mut permit,
                slow: &mut slow,
                beside: answers.capacity(),
                caller: &client.caller,
                began,
            };
            match receive_rest(&server, &mut socket, arriving).await {
                Err(End::Busy(busy)) => {
                    let reason = TApplicationException::new(
                        TApplicationExceptionType::INTERNAL_ERROR,
                        busy.to_string(),
                    );
                    refuse_partial(&messages, &reason, &mut answers.ready);
                    drop(slow.take());
                    end_with(
                        &server,
                        &mut socket,
                        &mut messages,
                        &mut permit,
                        &mut answers,
                        &stop,
                    )
                    .await?;
                    return Err(busy.into());
                }
                received => received?,
            }
        } else {
            let kept = Kept {
                messages: &mut messages,
                caller: &mut client.caller,
                answers: &mut answers,
                permit: &mut permit,
            };
            receive(&server, &mut socket, kept, stopped.as_mut(), &mut has_waited).await?
        };
        if !is_open {
            return Ok(None);
        }
    }
}

/// Refuses a client of the HTTP port that sends Thrift messages without HTTP. The reply to its
/// first message names the right port and paths.
pub(crate) async fn refuse_on_http_port(server: &Server, mut socket: TcpStream, stop: &CancellationToken) {
    let mut messages = Messages::of_http_port(&server.config().thrift);
    let end = Instant::now() + Duration::from_millis(server.config().thrift.message_timeout_ms);
    let refusal = loop {
        match messages.next_message() {
            // Incomplete: the first message is refused as soon as its header has arrived, so little
            // memory is used.
            Ok(_) => {}
            Err(refusal) => break refusal,
        }
        tokio::select! {
            read = timeout_at(end, socket.read_buf(messages.space())) => match read {
                Ok(Ok(1..)) => {}
                _ => return,
            },
            () = stop.cancelled() => return,
        }
    };
    server.connections().protocol_errors.increment(1);
    let mut answer = Vec::new();
    error_reply(&messages, &refusal, &mut answer);
    send_and_close(server, socket, answer, stop).await;
}

/// Sends the last bytes of a connection and closes it so that the client can read them.
pub(crate) async fn send_and_close(
    server: &Server,
    mut socket: TcpStream,
    mut last: Vec<u8>,
    stop: &CancellationToken,
) {
    send_with_end(&socket);
    // An error means that the client has gone, so the answer has no receiver.
    if send(server, &socket, &mut last).await.is_ok() {
        drain(server, &mut socket, stop).await;
    }
}

/// Sends the last answer of a connection, with the reason why it ends, and releases the
/// connection's memory.
async fn end_with(
    server: &Server,
    socket: &mut TcpStream,
    messages: &mut Messages,
    permit: &mut MemoryPermit,
    answers: &mut Answers,
    stop: &CancellationToken,
) -> Result<(), End> {
    messages.discard();
    permit.set(answers.capacity());
    send_with_end(socket);
    send(server, socket, &mut answers.ready).await?;
    permit.set(0);
    drain(server, socket, stop).await;
    Ok(())
}

/// Lets the last bytes of a connection leave together with its end. Otherwise a client that has read them
/// could send its next call before the end arrives, and that call would be lost.
fn send_with_end(socket: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(socket).set_tcp_cork(true) {
        tracing::debug!(%error, "TCP_CORK");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

/// Answers that have not been sent.
#[derive(Debug, Default)]
struct Answers {
    ready: Vec<u8>,
    /// The answer to the running call, if others are ready: those may have to be sent before it is.
    next: Vec<u8>,
}

impl Answers {
    fn capacity(&self) -> usize {
        self.ready.capacity() + self.next.capacity()
    }
}

/// Adds the answer to one message to those that are ready.
async fn answer(
    server: &Arc<Server>,
    socket: &TcpStream,
    gone: &AtomicBool,
    client: &mut Client,
    wire_format: WireFormat,
    message: Bytes,
    answers: &mut Answers,
) -> Result<(), End> {
    let Answers { ready, next, .. } = answers;
    // The first one needs no place of its own: there is nothing to send before it.
    let is_first = ready.is_empty();
    let (out, before) = if is_first { (ready, next) } else { (next, ready) };
    let length_before = out.len();
    let frame = wire_format.framed.then(|| begin_frame(out));
    pin!(call(
        server,
        socket,
        gone,
        client,
        wire_format,
        message,
        out,
        before
    ))
    .await?;
    if client.caller.is_cut {
        out.truncate(length_before);
    } else if let Some(frame) = frame {
        end_frame(out, frame).map_err(|error| End::AnswerTooLarge(error.len))?;
    }
    if !is_first {
        before.append(out);
        if out.capacity() > KEEP_BYTES {
            *out = Vec::new();
        }
    }
    Ok(())
}

/// Runs a call to its end. If the client closes the connection meanwhile, the call is notified, so
/// that a long scan stops; a write goes on. If the call has to wait, the answers `before` it are sent.
#[expect(
    clippy::too_many_arguments,
    reason = "what a call is about, and where its answer goes"
)]
async fn call(
    server: &Arc<Server>,
    socket: &TcpStream,
    gone: &AtomicBool,
    client: &mut Client,
    wire_format: WireFormat,
    message: Bytes,
    out: &mut Vec<u8>,
    before: &mut Vec<u8>,
) -> Result<(), End> {
    let mut call = pin!(server.call(client, wire_format.protocol, message, out));
    let (mut is_closed, mut are_waiting, mut sent) = (false, !before.is_empty(), Ok(()));
    let has_begun = AtomicBool::new(false);
    // Boxed when it is polled: most calls have no answers before them.
    let mut sending = pin!(async {
        has_begun.store(true, Ordering::Relaxed);
        Box::pin(send(server, socket, before)).await
    });
    loop {
        tokio::select! {
            // Most calls are answered at the first poll: they never look at the socket, and their answer
            // leaves with those before.
            biased;
            () = &mut call => break,
            () = closed(socket), if !is_closed => {
                gone.store(true, Ordering::Release);
                is_closed = true;
            }
            outcome = &mut sending, if are_waiting => {
                // A client that cannot be reached is no reason to break a call off.
                sent = outcome;
                are_waiting = false;
            }
        }
    }
    // Part of the answers may have left already: an aborted send would repeat it with the rest.
    if are_waiting && has_begun.load(Ordering::Relaxed) {
        sent = sending.await;
    }
    sent
}

/// Returns when the client has closed its side of the connection.
async fn closed(socket: &TcpStream) {
    // Boxed when it is polled, since most calls are answered before.
    Box::pin(watch(socket)).await;
}

async fn watch(socket: &TcpStream) {
    loop {
        match socket.ready(Interest::READABLE).await {
            Ok(ready) if !ready.is_read_closed() => {}
            _ => return,
        }
        // Further calls wait in the socket; behind them the end could be seen only by looking again.
        tokio::time::sleep(LOOK_UP).await;
    }
}

/// State of a connection between two calls.
struct Kept<'a> {
    messages: &'a mut Messages,
    caller: &'a mut Caller,
    answers: &'a mut Answers,
    permit: &'a mut MemoryPermit,
}

impl Kept<'_> {
    fn bytes(&self) -> usize {
        self.messages.kept_bytes() + self.caller.kept_bytes() + self.answers.capacity()
    }

    /// Reserves the buffer for the next message. If there is no memory for a large buffer, a small
    /// one is used.
    fn make_room(&mut self) {
        let bytes = self.messages.space_bytes() + self.answers.capacity();
        if !self.permit.try_raise(bytes) {
            self.messages.expect_little();
        }
    }

    /// Releases the memory.
    fn release(&mut self) {
        self.messages.release();
        self.caller.release();
        *self.answers = Answers::default();
        self.permit.set(self.messages.buffered_bytes());
    }
}

/// Waits for the beginning of a message and reads it. `false` when the client has closed the
/// connection, or the server stops. `has_waited` is set if it had to wait: then it has also checked
/// for a shutdown.
async fn receive(
    server: &Server,
    socket: &mut TcpStream,
    mut kept: Kept<'_>,
    stopped: Pin<&mut WaitForCancellationFuture<'_>>,
    has_waited: &mut bool,
) -> Result<bool, End> {
    let limit = Duration::from_millis(server.config().thrift.idle_timeout_ms);
    let mut idle = pin!(after(!limit.is_zero(), limit));
    let mut may_release = kept.bytes() > IDLE_KEEP_BYTES;
    let mut stopped = pin!(async {
        *has_waited = true;
        stopped.await;
    });
    loop {
        tokio::select! {
            biased;
            count = arrived(socket, &mut kept) => {
                let count = count?;
                server.connections().received_bytes.add(count as u64);
                return Ok(count > 0);
            }
            () = &mut stopped => return Ok(false),
            () = &mut idle => return Err(End::Idle(limit)),
            () = after(may_release, RELEASE_AFTER) => {
                may_release = false;
                kept.release();
            }
        }
    }
}

/// Returns after this time, or never. Uses no timer before it is polled, which is rare.
async fn after(ever: bool, time: Duration) {
    if ever {
        tokio::time::sleep(time).await;
    } else {
        pending::<()>().await;
    }
}

/// Reads the bytes that have arrived; 0 at the end. The buffer is allocated when bytes are there:
/// an idle connection holds none.
///
/// A read that does not fill its buffer has emptied the socket, so tokio waits for the next event;
/// `try_read_buf` would need one more system call for each message to detect that.
async fn arrived(socket: &mut TcpStream, kept: &mut Kept<'_>) -> std::io::Result<usize> {
    poll_fn(|context| {
        ready!(socket.poll_read_ready(context))?;
        kept.make_room();
        pin!(socket.read_buf(kept.messages.space())).poll(context)
    })
    .await
}

/// A message that has arrived in part.
struct Arriving<'a> {
    messages: &'a mut Messages,
    permit: &'a mut MemoryPermit,
    /// Set once the message is large.
    slow: &'a mut Option<Box<SlowClient>>,
    /// Bytes that the connection holds besides the message.
    beside: usize,
    caller: &'a Caller,
    /// Arrival of its first byte.
    began: Instant,
}

impl Arriving<'_> {
    /// Reserves the memory for the next read.
    async fn make_room(&mut self, server: &Server) -> Result<(), Busy> {
        let bytes = self.messages.space_bytes() + self.beside;
        if !self.permit.try_raise(bytes) {
            // The client is not slow while the server waits for memory.
            *self.slow = None;
            // Boxed: few messages have to wait.
            let raised = Box::pin(self.permit.raise(bytes)).await;
            raised.inspect_err(|busy| server.admission().count(*busy))?;
        }
        if self.permit.has_bytes() && self.slow.is_none() {
            let memory = server.admission().memory();
            let client = memory.slow_client(self.caller.ip(), self.permit.bytes());
            *self.slow = Some(Box::new(client));
        }
        Ok(())
    }
}

/// Reads more of a message. The whole message has `thrift.message_timeout_ms`: a client that sends
/// single bytes does not extend it. `false` when the client has closed the connection.
async fn receive_rest(
    server: &Server,
    socket: &mut TcpStream,
    mut arriving: Arriving<'_>,
) -> Result<bool, End> {
    let limit = Duration::from_millis(server.config().thrift.message_timeout_ms);
    acknowledge(socket);
    arriving.make_room(server).await?;
    let Arriving {
        messages,
        permit,
        slow,
        began,
        ..
    } = arriving;
    let read = loop {
        tokio::select! {
            biased;
            read = timeout_at(began + limit, socket.read_buf(messages.space())) => break read,
            () = dropped(slow.as_deref()) => {}
        }
        if !slow
            .as_deref()
            .is_some_and(|slow| slow.is_reprieved(unread(socket)))
        {
            return Err(server.admission().memory().slow_busy().into());
        }
    };
    let Ok(read) = read else {
        return Err(messages
            .as_foreign()
            .map_or(End::SlowMessage(limit), End::ProtocolError));
    };
    let count = read?;
    if let Some(slow) = slow {
        slow.progress(count, permit.bytes());
    }
    server.connections().received_bytes.add(count as u64);
    Ok(count > 0)
}

/// Sends the acknowledgement of a partial message at once. A client without a buffer sends a
/// message in pieces, and without TCP_NODELAY its system keeps each piece until the one before it
/// is acknowledged; our system would delay that by up to 40 ms to send it with an answer.
fn acknowledge(socket: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(socket).set_tcp_quickack(true) {
        tracing::debug!(%error, "TCP_QUICKACK");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

/// Writes the answers and empties the buffer.
async fn send(server: &Server, socket: &TcpStream, answers: &mut Vec<u8>) -> Result<(), End> {
    if answers.is_empty() {
        return Ok(());
    }
    let left = write_some(socket, answers.as_slice())?;
    if !left.is_empty() {
        // Boxed: few answers need more than one write.
        Box::pin(send_rest(server, socket, left, answers.capacity())).await?;
    }
    server.connections().sent_bytes.add(answers.len() as u64);
    parking::record_sends();
    if answers.capacity() > KEEP_BYTES {
        *answers = Vec::new();
    } else {
        answers.clear();
    }
    Ok(())
}

/// Writes as much as the socket accepts; returns the rest.
fn write_some<'a>(socket: &TcpStream, mut left: &'a [u8]) -> Result<&'a [u8], End> {
    while !left.is_empty() {
        match socket.try_write(left) {
            Ok(0) => return Err(std::io::Error::from(ErrorKind::WriteZero).into()),
            Ok(written) => left = left.split_at(written).1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(left)
}

/// Writes the rest of answers that the socket did not accept at once. `buffer_bytes` is the
/// capacity of their buffer.
async fn send_rest(
    server: &Server,
    socket: &TcpStream,
    mut left: &[u8],
    buffer_bytes: usize,
) -> Result<(), End> {
    let limit = Duration::from_millis(server.config().thrift.write_timeout_ms);
    // The address is missing only if the client has already gone.
    let address = socket.peer_addr().ok().map(|peer| peer.ip());
    let memory = server.admission().memory();
    let slow = (buffer_bytes > KEEP_BYTES).then(|| memory.slow_client(address, buffer_bytes as u64));
    while !left.is_empty() {
        // Each piece that the client accepts restarts the timeout.
        let is_dropped = tokio::select! {
            biased;
            writable = timeout(limit, socket.writable()) => {
                writable.map_err(|_| End::SlowReader(limit))??;
                false
            }
            () = dropped(slow.as_ref()) => true,
        };
        let moved = if is_dropped {
            send_now(socket, left)?
        } else {
            left.len() - write_some(socket, left)?.len()
        };
        if let Some(slow) = &slow {
            slow.progress(moved, buffer_bytes as u64);
            if is_dropped && !slow.is_reprieved(moved) {
                return Err(server.admission().memory().slow_busy().into());
            }
        }
        left = left.split_at(moved).1;
    }
    Ok(())
}

/// Sends the reason why the connection ends, in a form that the client can read, as far as that is
/// known.
fn error_reply(messages: &Messages, protocol_error: &ProtocolError, answers: &mut Vec<u8>) {
    if let ProtocolError::NotThrift(protocol) = protocol_error {
        return answers.extend(protocol.reply());
    }
    refuse_partial(messages, &TApplicationException::from(protocol_error), answers);
}

/// Answers a partial message with a refusal, if its name has arrived.
fn refuse_partial(messages: &Messages, reason: &TApplicationException, answers: &mut Vec<u8>) {
    let Some(wire_format) = messages.wire_format() else {
        return;
    };
    let partial = messages.partial();
    let frame = wire_format.framed.then(|| begin_frame(answers));
    let before = answers.len();
    Server::refuse(wire_format.protocol, partial, reason, answers);
    // Without a refusal there is nothing to frame; and a refusal is a few hundred bytes, which a frame can
    // hold.
    if let Some(frame) = frame
        && (answers.len() == before || end_frame(answers, frame).is_err())
    {
        answers.truncate(frame);
    }
}

/// Drains the socket after a final error reply: reads and drops bytes until the client closes,
/// bounded by the time and size of a message. A socket that is closed with bytes unread is reset,
/// and a client that is still sending would see only that.
async fn drain(server: &Server, socket: &mut TcpStream, stop: &CancellationToken) {
    let config = &server.config().thrift;
    let limit = Duration::from_millis(config.message_timeout_ms);
    let discard = async {
        // An error means that the client is gone already.
        if socket.shutdown().await.is_err() {
            return;
        }
        let mut discarded = Vec::with_capacity(DRAIN_READ_BYTES);
        let mut left = config.max_message_bytes;
        while let Ok(count @ 1..) = socket.read_buf(&mut discarded).await
            && count <= left
        {
            left -= count;
            discarded.clear();
        }
    };
    tokio::select! {
        _ = timeout(limit, discard) => {}
        () = stop.cancelled() => {}
    }
}

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod tests;
