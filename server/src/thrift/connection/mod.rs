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

use crate::limits::admission::{Busy, MemoryPermit, SlowClient, UNCOUNTED_BYTES, dropped, send_now, unread};
use crate::limits::yields;
use crate::security::{Caller, Owner};
use crate::server::Server;
use crate::service::Sender;
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
    socket: TcpStream,
    number: u64,
    stop: CancellationToken,
) -> Result<Option<Handover>, End> {
    let caller = Caller::anonymous(Owner::Connection(number), socket.peer_addr().ok());
    let sender = Sender::new(caller, server.admission().memory());
    let mut connection = Connection {
        socket,
        messages: Messages::new(&server.config().thrift),
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
            Err(ProtocolError::OtherProtocol(protocol)) => {
                return Ok(Some(Handover {
                    socket: connection.socket,
                    received: connection.messages.into_received(),
                    protocol,
                }));
            }
            Err(protocol_error) => {
                connection.server.connections().protocol_errors.increment(1);
                error_reply(
                    &connection.messages,
                    &protocol_error,
                    &mut connection.answers.ready,
                );
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
            return Ok(None);
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
    socket: TcpStream,
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
        let (server, socket) = (&self.server, &self.socket);
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
                Box::pin(send(server, socket, before)).await
            });
            loop {
                tokio::select! {
                    // Most calls are answered at the first poll: they never look at the socket, and their
                    // answer leaves with those before.
                    biased;
                    () = &mut call => break,
                    () = closed(socket), if !is_closed => {
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
        send(&self.server, &self.socket, &mut self.answers.ready).await
    }

    /// Sends the last answer, with the reason why the connection ends, and releases the memory.
    async fn end(&mut self, stop: &CancellationToken) -> Result<(), End> {
        self.messages.discard();
        self.permit.set(self.answers.capacity());
        send_with_end(&self.socket);
        self.send().await?;
        self.permit.set(0);
        drain(&self.server, &mut self.socket, stop).await;
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
        let limit = Duration::from_millis(self.server.config().thrift.idle_timeout_ms);
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
                    self.server.connections().received_bytes.add(count as u64);
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
    ///
    /// A read that does not fill its buffer has emptied the socket, so tokio waits for the next event;
    /// `try_read_buf` would need one more system call for each message to detect that.
    async fn arrived(&mut self) -> std::io::Result<usize> {
        poll_fn(|context| {
            ready!(self.socket.poll_read_ready(context))?;
            let bytes = self.messages.space_bytes() + self.answers.capacity();
            if !self.permit.try_raise(bytes) {
                self.messages.expect_little();
            }
            pin!(self.socket.read_buf(self.messages.space())).poll(context)
        })
        .await
    }

    /// Reads more of a message whose first byte arrived at `began`. The whole message has
    /// `thrift.message_timeout_ms`: a client that sends single bytes does not extend it. `false` when
    /// the client has closed the connection.
    async fn receive_rest(&mut self, began: Instant) -> Result<bool, End> {
        let limit = Duration::from_millis(self.server.config().thrift.message_timeout_ms);
        acknowledge(&self.socket);
        self.make_room_for_rest().await?;
        let slow = self.slow.as_deref();
        let read = loop {
            tokio::select! {
                biased;
                read = timeout_at(began + limit, self.socket.read_buf(self.messages.space())) => break read,
                () = dropped(slow) => {}
            }
            if !slow.is_some_and(|slow| slow.is_reprieved(unread(&self.socket))) {
                return Err(self.server.admission().memory().slow_busy().into());
            }
        };
        let Ok(read) = read else {
            return Err(self
                .messages
                .as_foreign()
                .map_or(End::SlowMessage(limit), End::ProtocolError));
        };
        let count = read?;
        if let Some(slow) = slow {
            slow.progress(count, self.permit.bytes());
        }
        self.server.connections().received_bytes.add(count as u64);
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
async fn closed(socket: &TcpStream) {
    // Boxed when it is polled, since most calls are answered before.
    Box::pin(async {
        while let Ok(ready) = socket.ready(Interest::READABLE).await
            && !ready.is_read_closed()
        {
            // Further calls wait in the socket; behind them the end could be seen only by looking again.
            tokio::time::sleep(LOOK_UP).await;
        }
    })
    .await;
}

/// Returns after this time, or never. Uses no timer before it is polled, which is rare.
async fn after(ever: bool, time: Duration) {
    if ever {
        tokio::time::sleep(time).await;
    } else {
        pending::<()>().await;
    }
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
    yields::record_sends();
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
    let slow = (buffer_bytes > UNCOUNTED_BYTES).then(|| memory.slow_client(address, buffer_bytes as u64));
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
