//! Frames from the socket of a connection.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::ready;
use std::time::Duration;

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::frame::{CallHeader, Request, put_exception};
use basalt_idl::native::messages::AdminServiceMethod;
use basalt_security::kerberos::Wrap;
use bytes::{Buf, Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::End;
use crate::limits::admission::{MemoryPermit, SlowClient, UNCOUNTED_BYTES, dropped};
use crate::server::Server;
use crate::socket::{ReadHalf, Wrapped};

/// Least buffer of one read: the frames of about a hundred small calls. An idle connection has none.
const READ_BYTES: usize = 16 << 10;
/// Room for one read of a greeting: with the longest one of a client without a login, less than 8 KiB.
const GREETING_READ_BYTES: usize = 2 << 10;
/// Largest buffer of one read: some batches of a hundred puts. With 256 KiB, what arrived first has
/// left the processor's cache before it is decoded.
const READ_BYTES_MAX: usize = 64 << 10;
/// Bytes read of a frame that may be refused, to find method and call id in its header.
const HEAD_BYTES: usize = 4 << 10;
/// Longest frame of a replication source. It is not a client's choice: a source sends a batch again until it
/// is accepted, and HBase's servers accept calls of 256 MiB (`hbase.ipc.max.request.size`).
const REPLICATION_BYTES_MAX: usize = 256 << 20;

/// Outcome of [`Input::arrive`].
pub(super) enum Arrival {
    /// A call: [`Input::take`] has it.
    Call,
    /// The client has closed the connection, or the server stops.
    Closed,
    /// A frame that is not read to its end. The connection ends after this response.
    Refused { response: Vec<u8>, end: End },
}

/// Reads frames from a socket.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four questions with answers of their own"
)]
pub(super) struct Input {
    server: Arc<Server>,
    read: ReadHalf,
    received: BytesMut,
    /// Buffer of the next read: twice as much as the last one if that was filled, half if less arrived.
    read_bytes: usize,
    /// Longest frame of a call (`server.max_message_bytes`).
    max: usize,
    /// Whether the connection is for AdminService, and so may be that of a replication source.
    is_of_admin: bool,
    /// Whether the frame at the front may be longer than `max`.
    is_replication: bool,
    /// Longest time from the first byte of a message to its last.
    limit: Duration,
    /// Memory of the frame that arrives.
    permit: MemoryPermit,
    /// Whether the client has not sent its connection header yet.
    greets: bool,
    /// Whether the frame at the front waits until a call in flight has ended.
    waits_for_calls: bool,
    /// Set while a large frame arrives. The connection ends if the frame makes no progress while
    /// other calls need its memory.
    slow: Option<SlowClient>,
}

impl Input {
    pub(super) fn new(server: Arc<Server>, read: ReadHalf, received: BytesMut) -> Self {
        let config = &server.config().server;
        Self {
            max: config.max_message_bytes,
            is_of_admin: false,
            is_replication: false,
            limit: Duration::from_millis(config.message_timeout_ms),
            permit: MemoryPermit::empty(server.admission().memory()),
            server,
            read,
            received,
            read_bytes: READ_BYTES,
            greets: true,
            waits_for_calls: false,
            slow: None,
        }
    }

    /// Says that the greeting is over: reads may take more memory from now on.
    pub(super) fn end_greeting(&mut self) {
        self.greets = false;
    }

    /// Unwraps all further bytes, those that have arrived among them.
    pub(super) fn wrap(&mut self, wrap: Box<dyn Wrap>) -> Arc<Wrapped> {
        let arrived = std::mem::take(&mut self.received);
        let permit = MemoryPermit::empty(self.server.admission().memory());
        let wrapped = Arc::new(Wrapped::new(wrap, arrived, self.max, Box::new(permit)));
        self.read.wrap(Arc::clone(&wrapped));
        wrapped
    }

    /// Says that the connection is for AdminService.
    pub(super) fn set_of_admin(&mut self, is_of_admin: bool) {
        self.is_of_admin = is_of_admin;
    }

    /// Longest frame that may be at the front.
    fn longest(&self) -> usize {
        if self.is_replication {
            self.max.max(REPLICATION_BYTES_MAX)
        } else {
            self.max
        }
    }

    /// The length of the frame at the front of the buffer, if that has arrived.
    fn next_length(&self) -> Option<usize> {
        let length = self.received.first_chunk::<4>()?;
        Some(u32::from_be_bytes(*length) as usize)
    }

    /// Takes a call's frame that has arrived, without its length, and the reservation of its memory.
    /// `None` if bytes are missing, or [`Self::arrive`] has to wait for memory or to refuse the frame.
    /// `in_flight` calls have frames already: if these would be as long, and more than the free bytes
    /// together, the frame counts whole. If there is no memory for that, it waits for one of these
    /// calls ([`Self::waits_for_calls`]).
    pub(super) fn take(&mut self, in_flight: usize) -> Option<(Bytes, MemoryPermit)> {
        let length = self.next_length()?;
        if length > self.longest() || self.received.len() - 4 < length {
            return None;
        }
        let counted = if in_flight.saturating_mul(length) > UNCOUNTED_BYTES {
            length + UNCOUNTED_BYTES
        } else {
            length
        };
        self.waits_for_calls = false;
        if !self.permit.try_raise(counted) {
            self.waits_for_calls = in_flight > 0;
            return None;
        }
        let nothing = MemoryPermit::empty(self.permit.memory());
        Some((
            self.split_frame(length),
            std::mem::replace(&mut self.permit, nothing),
        ))
    }

    /// Whether a frame that has arrived waits until a call in flight has ended.
    pub(super) fn waits_for_calls(&self) -> bool {
        self.waits_for_calls
    }

    /// Whether a further frame has arrived.
    pub(super) fn has_more(&self) -> bool {
        self.next_length()
            .is_some_and(|length| self.received.len() - 4 >= length)
    }

    /// REQUIRES: the frame has arrived.
    fn split_frame(&mut self, length: usize) -> Bytes {
        self.is_replication = false;
        self.received.advance(4);
        self.received.split_to(length).freeze()
    }

    /// Waits until a call's frame has arrived.
    pub(super) async fn arrive(&mut self, stop: &CancellationToken) -> Result<Arrival, End> {
        if !self.wait(stop).await? {
            return Ok(Arrival::Closed);
        }
        let until = self.deadline();
        if !self.fill(4, until).await? {
            return Ok(Arrival::Closed);
        }
        let length = self.next_length().expect("four bytes have arrived");
        if length > self.max && self.is_of_admin && !self.is_replication {
            if !self.fill(4 + length.min(HEAD_BYTES), until).await? {
                return Ok(Arrival::Closed);
            }
            let method = self.header().and_then(|header| header.method_name);
            let wanted = AdminServiceMethod::ReplicateWALEntry.name().as_bytes();
            self.is_replication = method.as_deref() == Some(wanted);
        }
        if length > self.longest() {
            self.server.load().connections.protocol_errors.increment(1);
            let message = if self.is_replication {
                format!(
                    "a batch of {length} bytes of a replication source; the limit is {REPLICATION_BYTES_MAX}: lower the source's \
                     replication.source.size.capacity"
                )
            } else {
                format!(
                    "a call of {length} bytes; server.max_message_bytes is {}",
                    self.max
                )
            };
            let class = ExceptionClass::RequestTooBig;
            return self.refuse(length, until, class, message).await;
        }
        if let Err(busy) = self.permit.raise(length).await {
            self.server.admission().count(busy);
            let class = ExceptionClass::RegionTooBusy;
            return self.refuse(length, until, class, busy.to_string()).await;
        }
        if self.permit.has_bytes() {
            let memory = self.permit.memory();
            self.slow = Some(memory.slow_client(self.read.address(), self.permit.bytes()));
        }
        let filled = self.fill(4 + length, until).await;
        self.slow = None;
        match filled {
            Ok(true) => Ok(Arrival::Call),
            Ok(false) => Ok(Arrival::Closed),
            Err(End::Slow) => Ok(self.drop_frame()),
            Err(end) => Err(end),
        }
    }

    /// Releases the memory of a frame that others need, and returns the refusal of its call.
    fn drop_frame(&mut self) -> Arrival {
        let memory = self.permit.memory();
        let (reason, nothing) = (memory.slow_busy(), MemoryPermit::empty(memory));
        let refusal = self.refusal(ExceptionClass::RegionTooBusy, reason.to_string());
        self.received = BytesMut::new();
        self.is_replication = false;
        self.permit = nothing;
        refusal
    }

    /// The next frame of a greeting, without its length; `None` when the client closes first. A frame
    /// of more than `max` bytes is refused.
    pub(super) async fn frame(&mut self, what: &'static str, max: usize) -> Result<Option<Bytes>, End> {
        let until = self.deadline();
        if !self.fill(4, until).await? {
            return Ok(None);
        }
        let length = self.next_length().expect("four bytes have arrived");
        if length > max {
            let message = format!("{what} of {length} bytes; the limit is {max}");
            return Err(End::refused(ExceptionClass::FatalConnection, message));
        }
        let is_whole = self.fill(4 + length, until).await?;
        Ok(is_whole.then(|| self.split_frame(length)))
    }

    /// The next `N` bytes; `None` when the client closes before that.
    pub(super) async fn bytes<const N: usize>(&mut self) -> Result<Option<[u8; N]>, End> {
        if !self.fill(N, self.deadline()).await? {
            return Ok(None);
        }
        let bytes = *self.received.first_chunk().expect("the bytes have arrived");
        self.received.advance(N);
        Ok(Some(bytes))
    }

    /// Waits for the first byte of a message, without a time limit; `false` when the client has
    /// closed the connection or the server stops.
    async fn wait(&mut self, stop: &CancellationToken) -> Result<bool, End> {
        if !self.received.is_empty() {
            return Ok(true);
        }
        self.received = BytesMut::new();
        let count = tokio::select! {
            biased;
            count = self.receive() => count?,
            () = stop.cancelled() => return Ok(false),
        };
        Ok(count > 0)
    }

    /// When a message whose first byte arrives now must be complete.
    fn deadline(&self) -> Instant {
        Instant::now() + self.limit
    }

    /// Waits until `bytes` bytes have arrived, or until the message's deadline; `false` when the client
    /// closes before that.
    async fn fill(&mut self, bytes: usize, until: Instant) -> Result<bool, End> {
        if self.received.len() >= bytes {
            return Ok(true);
        }
        let limit = self.limit;
        // Boxed: most messages arrive whole.
        Box::pin(timeout_at(until, self.fill_without_limit(bytes)))
            .await
            .map_err(|_| End::SlowMessage(limit))?
    }

    async fn fill_without_limit(&mut self, bytes: usize) -> Result<bool, End> {
        while self.received.len() < bytes {
            let slow = self.slow.take();
            let count = tokio::select! {
                biased;
                count = self.receive() => Some(count?),
                () = dropped(slow.as_ref()) => None,
            };
            self.slow = slow;
            match count {
                Some(0) => return Ok(false),
                Some(count) => {
                    if let Some(slow) = &self.slow {
                        slow.progress(count, self.permit.bytes());
                    }
                }
                None => self.check_reprieve()?,
            }
        }
        Ok(true)
    }

    /// Fails unless the dropped client goes on.
    fn check_reprieve(&self) -> Result<(), End> {
        let slow = self.slow.as_ref();
        if slow.is_some_and(|slow| slow.is_reprieved(self.read.unread())) {
            return Ok(());
        }
        Err(End::Slow)
    }

    /// Reads the bytes that have arrived; 0 at the end. The buffer is allocated when bytes are there,
    /// with room for as much as is expected if there is memory for that.
    async fn receive(&mut self) -> std::io::Result<usize> {
        let (read, received, permit) = (&mut self.read, &mut self.received, &mut self.permit);
        if self.greets {
            return self.receive_greeting().await;
        }
        let expected = self.read_bytes;
        let count = poll_fn(|context| {
            ready!(read.poll_read_ready(context))?;
            let is_reserved = expected == READ_BYTES || permit.try_raise(expected);
            received.reserve(if is_reserved { expected } else { READ_BYTES });
            read.poll_read_buf(context, received)
        })
        .await?;
        if count >= expected {
            self.read_bytes = (2 * expected).min(READ_BYTES_MAX);
        } else if count < expected / 2 {
            self.read_bytes = (expected / 2).max(READ_BYTES);
        }
        self.server.load().connections.received_bytes.add(count as u64);
        Ok(count)
    }

    /// Reads bytes of a client that has not said who it is, in small pieces.
    async fn receive_greeting(&mut self) -> std::io::Result<usize> {
        let (read, received) = (&mut self.read, &mut self.received);
        let count = poll_fn(|context| {
            ready!(read.poll_read_ready(context))?;
            received.reserve(GREETING_READ_BYTES);
            read.poll_read_buf(context, received)
        })
        .await?;
        self.server.load().connections.received_bytes.add(count as u64);
        Ok(count)
    }

    /// Reads enough of a call's frame to refuse the call with its id.
    async fn refuse(
        &mut self,
        length: usize,
        until: Instant,
        class: ExceptionClass,
        message: String,
    ) -> Result<Arrival, End> {
        self.fill(4 + length.min(HEAD_BYTES), until).await?;
        Ok(self.refusal(class, message))
    }

    /// The header of the frame at the front of the buffer, if that has arrived.
    fn header(&self) -> Option<CallHeader> {
        let frame = self.received.get(4..).unwrap_or_default();
        let mut begin = Bytes::copy_from_slice(&frame[..frame.len().min(HEAD_BYTES)]);
        Request::decode_header(&mut begin).ok()
    }

    /// The refusal of the call whose frame is at the front of the buffer. It carries the id in the
    /// frame's header, if that has arrived.
    fn refusal(&self, class: ExceptionClass, message: String) -> Arrival {
        let call_id = self.header().and_then(|header| header.call_id);
        let mut response = Vec::new();
        put_exception(
            call_id.unwrap_or_default(),
            class.response(&message),
            &mut response,
        );
        Arrival::Refused {
            response,
            end: End::refused(class, message),
        }
    }

    /// Drains the connection if it ends with a refusal. REQUIRES: the last response was written, and
    /// the write half is shut down.
    pub(super) async fn drain_after(&mut self, end: &End, stop: &CancellationToken) {
        if !matches!(end, End::Refused { .. } | End::Frame(_)) {
            return;
        }
        self.received = BytesMut::new();
        self.read.discard(self.limit, usize::MAX, stop).await;
    }
}
