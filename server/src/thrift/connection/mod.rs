//! One connection: read messages, have them answered, write the answers. `net` has detected the
//! protocol by the first bytes.
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
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::ready;
use std::time::Duration;

use basalt_idl::wire::{begin_frame, end_frame};
use basalt_idl::{TApplicationException, TApplicationExceptionType};
use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::limits::admission::{Busy, MemoryPermit, SlowClient, UNCOUNTED_BYTES, dropped};
use crate::limits::yields;
use crate::security::Caller;
use crate::server::Server;
use crate::service::Sender;
use crate::socket::{ReadHalf, Socket, WriteHalf};
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

/// Why a connection ended, unless the client closed it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    ProtocolError(#[from] ProtocolError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("a message was not complete after {0:?} (server.message_timeout_ms)")]
    SlowMessage(Duration),
    #[error("no call for {0:?} (server.idle_timeout_ms)")]
    Idle(Duration),
    #[error("the client did not read its answer for {0:?} (server.write_timeout_ms)")]
    SlowReader(Duration),
    #[error("{0}")]
    Busy(#[from] Busy),
    #[error("the answer of {0} bytes is larger than a frame can say")]
    AnswerTooLarge(usize),
    #[error("a fault that a test asked for")]
    Fault,
}

/// Serves the connection of this caller until either side ends it. `received` are its first bytes,
/// which are of this wire format.
pub(crate) async fn run(
    server: Arc<Server>,
    socket: Socket,
    (wire_format, received): (WireFormat, BytesMut),
    caller: Arc<Caller>,
    stop: CancellationToken,
) -> Result<(), End> {
    let sender = Sender::new(caller, server.admission().memory());
    let mut connection = Connection {
        socket,
        messages: Messages::new(server.config(), wire_format, received),
        gone: Arc::clone(&sender.gone),
        client: Client::of_both(sender),
        answers: Answers::default(),
        permit: MemoryPermit::empty(server.admission().memory()),
        slow: None,
        message_began: None,
        server,
    };
    // A token of its own, waited for once and for all: connections that wait for their next call take no lock
    // together.
    let stop = stop.child_token();
    let mut stopped = pin!(stop.cancelled());
    // A connection that never blocks on a read would miss the shutdown signal, so it is also
    // checked without a wait.
    let mut has_waited = false;
    loop {
        match connection.messages.next_message() {
            Ok(Some((wire_format, message))) => {
                // Pinned where it is made, as all futures on a call's way: a future that is awaited by
                // value is copied first, and these have kilobytes.
                pin!(connection.answer(wire_format, message)).await?;
                if connection.client.is_cut {
                    connection.send().await?;
                    return Err(End::Fault);
                }
                if let Some(mut reply) = connection.client.take_reply() {
                    connection.permit.join(&mut reply);
                }
                connection.reserve_buffers();
                if connection.answers.ready.len() >= FLUSH_BYTES {
                    connection.send().await?;
                    connection.reserve_buffers();
                }
                // Calls behind it may have arrived whole: the client may send nothing more before they are
                // answered.
                continue;
            }
            Ok(None) => {}
            Err(protocol_error) => {
                connection.server.load().connections.protocol_errors.increment(1);
                let reason = TApplicationException::from(&protocol_error);
                refuse_partial(&connection.messages, &reason, &mut connection.answers.ready);
                connection.end(&stop).await?;
                return Err(protocol_error.into());
            }
        }
        connection.send().await?;
        connection.reserve_buffers();
        if connection.messages.has_partial() {
            connection.message_began.get_or_insert_with(Instant::now);
        }
        if !has_waited && stop.is_cancelled() {
            return Ok(());
        }
        has_waited = false;
        let is_open = if let Some(began) = connection.message_began {
            match connection.receive_rest(began).await {
                Err(End::Busy(busy)) => {
                    let kind = TApplicationExceptionType::INTERNAL_ERROR;
                    let reason = TApplicationException::new(kind, busy.to_string());
                    refuse_partial(&connection.messages, &reason, &mut connection.answers.ready);
                    connection.slow = None;
                    connection.end(&stop).await?;
                    return Err(busy.into());
                }
                received => received?,
            }
        } else {
            connection.receive(stopped.as_mut(), &mut has_waited).await?
        };
        if !is_open {
            return Ok(());
        }
    }
}

/// Refuses a client of the HTTP port that sends Thrift messages without HTTP. The reply to its
/// first message names the right port and paths. Returns the reason, or `None` if the client sends
/// no whole header of a message.
pub(crate) async fn refuse_on_http_port(
    server: &Server,
    mut socket: Socket,
    (wire_format, received): (WireFormat, BytesMut),
    stop: &CancellationToken,
) -> Option<ProtocolError> {
    let mut messages = Messages::of_http_port(server.config(), wire_format, received);
    let limit = Duration::from_millis(server.config().server.message_timeout_ms);
    let end = Instant::now() + limit;
    let refusal = loop {
        match messages.next_message() {
            // Incomplete: the first message is refused as soon as its header has arrived, so little
            // memory is used.
            Ok(_) => {}
            Err(refusal) => break refusal,
        }
        tokio::select! {
            read = timeout_at(end, socket.read.read_buf(messages.space())) => match read {
                Ok(Ok(1..)) => {}
                _ => return None,
            },
            () = stop.cancelled() => return None,
        }
    };
    server.load().connections.protocol_errors.increment(1);
    let mut answer = Vec::new();
    refuse_partial(&messages, &TApplicationException::from(&refusal), &mut answer);
    socket.send_and_close(&answer, limit, stop).await;
    Some(refusal)
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

/// A connection and its state between calls. Fields are dropped in this order: the memory is released
/// before the client sees the connection's end.
struct Connection {
    /// Set while a large message arrives.
    slow: Option<Box<SlowClient>>,
    /// Reservation of the buffers for messages and answers.
    permit: MemoryPermit,
    answers: Answers,
    client: Client,
    messages: Messages,
    /// When the first byte of the current message arrived.
    message_began: Option<Instant>,
    /// The caller's flag: a handle of its own, since a call borrows the caller.
    gone: Arc<AtomicBool>,
    socket: Socket,
    server: Arc<Server>,
}

impl Connection {
    /// Runs a call to its end, and adds its answer to those that are ready. If the client closes the
    /// connection meanwhile, the call is notified, so that a long scan stops; a write goes on. If the
    /// call has to wait, the answers before it are sent.
    async fn answer(&mut self, wire_format: WireFormat, message: Bytes) -> Result<(), End> {
        (self.message_began, self.slow) = (None, None);
        let buffered = self.messages.buffered_bytes() + self.answers.capacity();
        self.permit.set(message.len() + buffered);
        let (server, Socket { read, write }) = (&self.server, &self.socket);
        let address = || read.address();
        let Answers { ready, next } = &mut self.answers;
        // The first one needs no place of its own: there is nothing to send before it.
        let is_first = ready.is_empty();
        let (out, before) = if is_first { (ready, next) } else { (next, ready) };
        let length_before = out.len();
        let frame = wire_format.framed.then(|| begin_frame(out));
        let (mut is_closed, mut are_waiting, mut sent) = (false, !before.is_empty(), Ok(()));
        {
            let mut call = pin!(server.call(&mut self.client, wire_format.protocol, message, out));
            let has_begun = AtomicBool::new(false);
            // Boxed when it is polled: most calls have no answers before them.
            let mut sending = pin!(async {
                has_begun.store(true, Ordering::Relaxed);
                Box::pin(send(server, write, address, before)).await
            });
            loop {
                tokio::select! {
                    // Most calls are answered at the first poll: they never look at the socket, and their
                    // answer leaves with those before.
                    biased;
                    () = &mut call => break,
                    () = closed(read), if !is_closed => {
                        self.gone.store(true, Ordering::Release);
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
        }
        sent?;
        if self.client.is_cut {
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

    async fn send(&mut self) -> Result<(), End> {
        let Socket { read, write } = &self.socket;
        send(&self.server, write, || read.address(), &mut self.answers.ready).await
    }

    /// Sends the last answer, with the reason why the connection ends, and releases the memory.
    async fn end(&mut self, stop: &CancellationToken) -> Result<(), End> {
        self.messages.discard();
        self.permit.set(self.answers.capacity());
        self.socket.write.send_with_end();
        self.send().await?;
        self.permit.set(0);
        let config = &self.server.config().server;
        let (limit, most) = (config.message_timeout_ms, config.max_message_bytes);
        // An error means that the client is gone already.
        if self.socket.write.shutdown().await.is_ok() {
            let limit = Duration::from_millis(limit);
            self.socket.read.discard(limit, most, stop).await;
        }
        Ok(())
    }

    /// Reduces the reservation to the buffers.
    fn reserve_buffers(&mut self) {
        let bytes = self.messages.buffered_bytes() + self.answers.capacity();
        self.permit.set(bytes);
    }

    fn kept_bytes(&self) -> usize {
        self.messages.kept_bytes() + self.client.kept_bytes() + self.answers.capacity()
    }

    /// Releases the memory that is kept for the next call.
    fn release(&mut self) {
        self.messages.release();
        self.client.release();
        self.answers = Answers::default();
        self.permit.set(self.messages.buffered_bytes());
    }

    /// Waits for the beginning of a message and reads it. `false` when the client has closed the
    /// connection, or the server stops. `has_waited` is set if it had to wait: then it has also checked
    /// for a shutdown.
    async fn receive(
        &mut self,
        stopped: Pin<&mut WaitForCancellationFuture<'_>>,
        has_waited: &mut bool,
    ) -> Result<bool, End> {
        let limit = Duration::from_millis(self.server.config().server.idle_timeout_ms);
        let mut idle = pin!(after(!limit.is_zero(), limit));
        let mut may_release = self.kept_bytes() > IDLE_KEEP_BYTES;
        let mut stopped = pin!(async {
            *has_waited = true;
            stopped.await;
        });
        loop {
            tokio::select! {
                biased;
                count = self.arrived() => {
                    let count = count?;
                    self.server.load().connections.received_bytes.add(count as u64);
                    return Ok(count > 0);
                }
                () = &mut stopped => return Ok(false),
                () = &mut idle => return Err(End::Idle(limit)),
                () = after(may_release, RELEASE_AFTER) => {
                    may_release = false;
                    self.release();
                }
            }
        }
    }

    /// Reads the bytes that have arrived; 0 at the end. The buffer is allocated when bytes are there:
    /// an idle connection holds none. If there is no memory for a large buffer, a small one is used.
    async fn arrived(&mut self) -> std::io::Result<usize> {
        poll_fn(|context| {
            ready!(self.socket.read.poll_read_ready(context))?;
            let bytes = self.messages.space_bytes() + self.answers.capacity();
            if !self.permit.try_raise(bytes) {
                self.messages.expect_little();
            }
            self.socket.read.poll_read_buf(context, self.messages.space())
        })
        .await
    }

    /// Reads more of a message whose first byte arrived at `began`. The whole message has
    /// `server.message_timeout_ms`: a client that sends single bytes does not extend it. `false` when
    /// the client has closed the connection.
    async fn receive_rest(&mut self, began: Instant) -> Result<bool, End> {
        let limit = Duration::from_millis(self.server.config().server.message_timeout_ms);
        self.socket.read.acknowledge();
        self.make_room_for_rest().await?;
        let slow = self.slow.as_deref();
        let read = loop {
            tokio::select! {
                biased;
                read = timeout_at(began + limit, self.socket.read.read_buf(self.messages.space())) => break read,
                () = dropped(slow) => {}
            }
            if !slow.is_some_and(|slow| slow.is_reprieved(self.socket.read.unread())) {
                return Err(self.server.admission().memory().slow_busy().into());
            }
        };
        let Ok(read) = read else {
            return Err(End::SlowMessage(limit));
        };
        let count = read?;
        if let Some(slow) = slow {
            slow.progress(count, self.permit.bytes());
        }
        self.server.load().connections.received_bytes.add(count as u64);
        Ok(count > 0)
    }

    /// Reserves the memory for the next read of a message that has arrived in part.
    async fn make_room_for_rest(&mut self) -> Result<(), Busy> {
        let bytes = self.messages.space_bytes() + self.answers.capacity();
        if !self.permit.try_raise(bytes) {
            // The client is not slow while the server waits for memory.
            self.slow = None;
            // Boxed: few messages have to wait.
            let raised = Box::pin(self.permit.raise(bytes)).await;
            raised.inspect_err(|busy| self.server.admission().count(*busy))?;
        }
        if self.permit.has_bytes() && self.slow.is_none() {
            let memory = self.server.admission().memory();
            let client = memory.slow_client(self.client.sender.caller.ip(), self.permit.bytes());
            self.slow = Some(Box::new(client));
        }
        Ok(())
    }
}

/// Returns when the client has closed its side of the connection.
async fn closed(read: &ReadHalf) {
    // Boxed when it is polled, since most calls are answered before.
    Box::pin(async { while !read.is_closed_or(LOOK_UP).await {} }).await;
}

/// Returns after this time, or never. Uses no timer before it is polled, which is rare.
async fn after(ever: bool, time: Duration) {
    if ever {
        tokio::time::sleep(time).await;
    } else {
        pending::<()>().await;
    }
}

/// Writes the answers and empties the buffer. `address` is the client's.
async fn send(
    server: &Server,
    write: &WriteHalf,
    address: impl Fn() -> Option<IpAddr>,
    answers: &mut Vec<u8>,
) -> Result<(), End> {
    if answers.is_empty() {
        return Ok(());
    }
    let left = write_some(write, answers.as_slice())?;
    if !left.is_empty() {
        // Boxed: few answers need more than one write.
        Box::pin(send_rest(server, write, address(), left, answers.capacity())).await?;
    }
    server.load().connections.sent_bytes.add(answers.len() as u64);
    yields::record_sends();
    if answers.capacity() > KEEP_BYTES {
        *answers = Vec::new();
    } else {
        answers.clear();
    }
    Ok(())
}

/// Writes as much as the socket accepts; returns the rest.
fn write_some<'a>(write: &WriteHalf, mut left: &'a [u8]) -> Result<&'a [u8], End> {
    while !left.is_empty() {
        match write.try_write(left) {
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
    write: &WriteHalf,
    address: Option<IpAddr>,
    mut left: &[u8],
    buffer_bytes: usize,
) -> Result<(), End> {
    let limit = Duration::from_millis(server.config().server.write_timeout_ms);
    let memory = server.admission().memory();
    let slow = (buffer_bytes > UNCOUNTED_BYTES).then(|| memory.slow_client(address, buffer_bytes as u64));
    while !left.is_empty() {
        // Each piece that the client accepts restarts the timeout.
        let is_dropped = tokio::select! {
            biased;
            writable = timeout(limit, write.writable()) => {
                writable.map_err(|_| End::SlowReader(limit))??;
                false
            }
            () = dropped(slow.as_ref()) => true,
        };
        let moved = if is_dropped {
            write.send_now(left)?
        } else {
            left.len() - write_some(write, left)?.len()
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

/// Answers a partial message with a refusal, if its name has arrived.
fn refuse_partial(messages: &Messages, reason: &TApplicationException, answers: &mut Vec<u8>) {
    let wire_format = messages.wire_format();
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

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod tests;
