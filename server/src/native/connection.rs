//! A native connection.
//!
//! 1. The preamble selects RPC, or is a question that is answered at once.
//! 2. The connection header names the service and the cell codec. Only a refused header has a
//!    response.
//! 3. Each call runs as a task of its own, so responses leave in the order in which they are ready.
//!    A connection with [`CALLS_IN_FLIGHT`] unanswered calls is not read further.
//! 4. One task writes responses. Those that are ready together are written together.
//!
//! A malformed frame ends the connection. A well-formed frame with a malformed or unknown call is
//! answered with an exception, and the connection goes on.
//!
//! After a refusal the connection is drained: further bytes of the client are read and dropped, for
//! a limited time. A socket that is closed with bytes unread is reset, and the client would lose
//! the refusal.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::frame::{
    CONNECTION_CALL_ID, FrameError, Request, begin_response, decode_connection_header, put_exception,
};
use basalt_idl::native::messages::GetConnectionRegistryResponse;
use basalt_idl::native::preamble::{
    Authentication, EXPECTED_HEADER, PREAMBLE_BYTES, Preamble, SWITCH_TO_SIMPLE,
};
use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::client::Call;
use super::deadline::Deadline;
use super::peer::{Method, Peer};
use super::reply::Reply;
use super::state::Connection;
use super::{admin, arguments, client, compress, faults, master, registry, slow_log};
use crate::limits::admission::{Held, Purpose, SlowClient, dropped, send_now, unread};
use crate::server::Server;
use crate::service::Failure;
use crate::service::faults::Consequence;

/// Most unanswered calls of a connection. Java's client has at most a hundred by default.
pub(super) const CALLS_IN_FLIGHT: usize = 1_000;
/// Longest connection header or SASL frame.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Bytes read of a refused frame, to find the call id in its header.
const REFUSED_FRAME_BYTES: usize = 4 << 10;
/// Arguments up to this many bytes in memory are not reserved: those of most calls.
const SMALL_ARGUMENTS: usize = 16 << 10;
/// The label under which dropped calls are counted: the exception that their clients have met.
const TIMED_OUT: &str = "CallTimeoutException";
/// Buffer of a connection that is drained.
const DRAIN_BYTES: usize = 8 << 10;
/// Responses that are ready are joined into one write until it has this many bytes.
const WRITE_BYTES: usize = 256 << 10;

/// Why a connection ended, when it was not the client that closed it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("a message was not complete after {0:?} (thrift.message_timeout_ms)")]
    SlowMessage(Duration),
    #[error("{}: {message}", class.name())]
    Refused { class: ExceptionClass, message: String },
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("others needed the memory of a frame or response (requests.memory_bytes)")]
    Slow,
    #[error("a fault that a test asked for")]
    Fault,
}

impl End {
    fn refused(class: ExceptionClass, message: String) -> Self {
        Self::Refused { class, message }
    }
}

/// Serves a connection until either side ends it. `received` holds the bytes that have arrived.
pub(crate) async fn run(
    server: Arc<Server>,
    socket: TcpStream,
    received: BytesMut,
    number: u64,
    stop: CancellationToken,
) -> Result<(), End> {
    let address = socket.peer_addr().ok();
    let (read, mut write) = socket.into_split();
    let limit = Duration::from_millis(server.config().thrift.message_timeout_ms);
    let mut input = Input {
        server: Arc::clone(&server),
        read,
        received,
        limit,
        slow: None,
    };
    let greeted = tokio::select! {
        greeted = timeout(limit, greet(&server, &mut input, &mut write)) => greeted,
        () = stop.cancelled() => return Ok(()),
    };
    let peer = match greeted.map_err(|_| End::SlowMessage(limit))? {
        Ok(Some(peer)) => peer,
        Ok(None) => return Ok(()),
        Err(end) => {
            input.drain_after(&end, &stop).await;
            return Err(end);
        }
    };
    let connection = Arc::new(Connection {
        server,
        peer,
        number,
        address,
        scanners: Mutex::default(),
        gone: Arc::default(),
    });
    let (sender, responses) = unbounded_channel();
    let writer = tokio::spawn(write_responses(Arc::clone(&connection), write, responses));
    let served = serve(&connection, &mut input, sender, &stop).await;
    if !stop.is_cancelled() {
        connection.gone.store(true, Ordering::Relaxed);
    }
    // The writer ends when the last call has dropped its sender.
    let written = writer.await.unwrap_or(Ok(()));
    if let (Err(end), Ok(())) = (&served, &written) {
        input.drain_after(end, &stop).await;
    }
    served.and(written)
}

/// Reads frames from a socket.
struct Input {
    server: Arc<Server>,
    read: OwnedReadHalf,
    received: BytesMut,
    /// Longest time from the first byte of a message to its last.
    limit: Duration,
    /// Set while a large frame arrives. The connection ends if the frame makes no progress while
    /// other calls need its memory.
    slow: Option<SlowClient>,
}

impl Input {
    /// Waits until `bytes` bytes have arrived; `false` when the client closes before that.
    async fn fill(&mut self, bytes: usize) -> Result<bool, End> {
        let limit = self.limit;
        let fill = async {
            while self.received.len() < bytes {
                let count = tokio::select! {
                    biased;
                    count = self.read.read_buf(&mut self.received) => count?,
                    () = dropped(self.slow.as_ref()) => {
                        self.check_reprieve()?;
                        continue;
                    }
                };
                self.server.connections().received_bytes.add(count as u64);
                if count == 0 {
                    return Ok(false);
                }
                if let Some(slow) = &self.slow {
                    slow.progress(count, self.received.capacity() as u64);
                }
            }
            Ok(true)
        };
        timeout(limit, fill).await.map_err(|_| End::SlowMessage(limit))?
    }

    /// Fails unless the dropped client goes on.
    fn check_reprieve(&self) -> Result<(), End> {
        let slow = self.slow.as_ref();
        if slow.is_some_and(|slow| slow.is_reprieved(unread(self.read.as_ref()))) {
            return Ok(());
        }
        Err(End::Slow)
    }

    /// Waits for the first byte of a message, without a time limit; `false` when the client has
    /// closed the connection or the server stops.
    async fn wait(&mut self, stop: &CancellationToken) -> Result<bool, End> {
        if !self.received.is_empty() {
            return Ok(!stop.is_cancelled());
        }
        let count = tokio::select! {
            () = stop.cancelled() => return Ok(false),
            count = self.read.read_buf(&mut self.received) => count?,
        };
        self.server.connections().received_bytes.add(count as u64);
        Ok(count > 0)
    }

    /// The length of the next frame, which stays in the buffer; `None` when the client closes
    /// first.
    async fn length(&mut self) -> Result<Option<usize>, End> {
        if !self.fill(4).await? {
            return Ok(None);
        }
        let length = self.received.first_chunk::<4>().expect("four bytes have arrived");
        Ok(Some(u32::from_be_bytes(*length) as usize))
    }

    /// Drains the connection if it ends with a refusal. REQUIRES: the last response was written, and
    /// the write half is shut down.
    async fn drain_after(&mut self, end: &End, stop: &CancellationToken) {
        if !matches!(end, End::Refused { .. } | End::Frame(_)) {
            return;
        }
        self.received = BytesMut::with_capacity(DRAIN_BYTES);
        let drain = async {
            // Ends when the client closes, or is gone.
            while let Ok(1..) = self.read.read_buf(&mut self.received).await {
                self.received.clear();
            }
        };
        tokio::select! {
            _ = timeout(self.limit, drain) => {}
            () = stop.cancelled() => {}
        }
    }

    /// The next frame, without its length; `None` when the client closes first. A frame of more
    /// than `max` bytes is refused.
    async fn frame(&mut self, what: &'static str, max: usize) -> Result<Option<Bytes>, End> {
        let Some(length) = self.length().await? else {
            return Ok(None);
        };
        if length > max {
            let message = format!("{what} of {length} bytes; the limit is {max}");
            return Err(End::refused(ExceptionClass::FatalConnection, message));
        }
        if !self.fill(4 + length).await? {
            return Ok(None);
        }
        self.received.advance(4);
        Ok(Some(self.received.split_to(length).freeze()))
    }
}

/// Answers the preamble and reads the connection header; `None` when the connection ends without
/// calls.
async fn greet(server: &Server, input: &mut Input, write: &mut OwnedWriteHalf) -> Result<Option<Peer>, End> {
    match read_greeting(server, input, write).await {
        Err(End::Refused { class, message }) => {
            server.connections().protocol_errors.increment(1);
            let mut out = Vec::new();
            put_exception(CONNECTION_CALL_ID, class.response(&message), &mut out);
            write.write_all(&out).await?;
            write.shutdown().await?;
            Err(End::refused(class, message))
        }
        greeted => greeted,
    }
}

async fn read_greeting(
    server: &Server,
    input: &mut Input,
    write: &mut OwnedWriteHalf,
) -> Result<Option<Peer>, End> {
    loop {
        if !input.fill(PREAMBLE_BYTES).await? {
            return Ok(None);
        }
        let preamble = *input.received.first_chunk().expect("a preamble has arrived");
        input.received.advance(PREAMBLE_BYTES);
        let mut out = Vec::new();
        match Preamble::parse(preamble) {
            Preamble::Rpc(Authentication::Simple) => break,
            Preamble::Rpc(Authentication::Kerberos | Authentication::Digest) => {
                write.write_all(&SWITCH_TO_SIMPLE).await?;
                if input.frame("a SASL message", HEADER_BYTES_MAX).await?.is_none() {
                    return Ok(None);
                }
                break;
            }
            Preamble::Registry => {
                let cluster_id = server.engine().cluster_id().to_string();
                let answer = GetConnectionRegistryResponse { cluster_id };
                begin_response(CONNECTION_CALL_ID, &answer, 0, &mut out);
                write.write_all(&out).await?;
                write.shutdown().await?;
                return Ok(None);
            }
            Preamble::Security => {
                let refusal = ExceptionClass::SecurityNotEnabled.response("security is not enabled");
                put_exception(CONNECTION_CALL_ID, refusal, &mut out);
                write.write_all(&out).await?;
            }
            Preamble::WrongVersion(version) => {
                let message = format!("the client's RPC version is {version}, the server's is 0");
                return Err(End::refused(ExceptionClass::WrongVersion, message));
            }
            Preamble::BadAuthentication(code) => {
                let message = format!("unknown authentication code {code}; SIMPLE (80) is supported");
                return Err(End::refused(ExceptionClass::BadAuth, message));
            }
            Preamble::Unknown => {
                let message = format!("{EXPECTED_HEADER} but received HEADER={preamble:02x?}");
                return Err(End::refused(ExceptionClass::FatalConnection, message));
            }
        }
    }
    let Some(frame) = input.frame("a connection header", HEADER_BYTES_MAX).await? else {
        return Ok(None);
    };
    let header = decode_connection_header(frame)
        .map_err(|error| End::refused(ExceptionClass::FatalConnection, error.to_string()))?;
    Peer::new(&header)
        .map(Some)
        .map_err(|(class, message)| End::refused(class, message))
}

/// A response to be written. It keeps its memory reservation and its permit until then.
struct Response {
    bytes: Vec<u8>,
    /// Memory of the request frame until the response is complete, then of the response.
    held: Held,
    permit: OwnedSemaphorePermit,
    /// Whether the connection is closed instead of this response.
    is_cut: bool,
}

impl Response {
    /// The refusal of a frame.
    fn refusal(bytes: Vec<u8>, held: Held, permit: OwnedSemaphorePermit) -> Self {
        Self {
            bytes,
            held,
            permit,
            is_cut: false,
        }
    }
}

/// Reads calls and starts a task for each, until the client closes or the server stops.
async fn serve(
    connection: &Arc<Connection>,
    input: &mut Input,
    sender: UnboundedSender<Response>,
    stop: &CancellationToken,
) -> Result<(), End> {
    let in_flight = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
    let max = connection.server.config().thrift.max_message_bytes;
    loop {
        let permit = Arc::clone(&in_flight)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let waited = tokio::select! {
            waited = input.wait(stop) => waited?,
            // The writer has ended, and says why.
            () = sender.closed() => return Ok(()),
        };
        if !waited {
            return Ok(());
        }
        let Some(length) = input.length().await? else {
            return Ok(());
        };
        let mut held = Held::nothing(connection.server.admission().memory());
        if length > max {
            connection.server.connections().protocol_errors.increment(1);
            let message = format!("a call of {length} bytes; thrift.max_message_bytes is {max}");
            let bytes = refuse_frame(input, length, ExceptionClass::RequestTooBig, &message).await?;
            // Sending fails only when the writer has ended: the client is gone.
            let _ = sender.send(Response::refusal(bytes, held, permit));
            return Err(End::refused(ExceptionClass::RequestTooBig, message));
        }
        if let Err(busy) = held.raise(length).await {
            connection.server.admission().count(busy);
            let bytes = refuse_frame(input, length, ExceptionClass::RegionTooBusy, &busy.to_string()).await?;
            let _ = sender.send(Response::refusal(bytes, held, permit));
            return Err(End::refused(ExceptionClass::RegionTooBusy, busy.to_string()));
        }
        if held.is_something() {
            let (memory, address) = (held.memory(), connection.address.map(|address| address.ip()));
            input.slow = Some(memory.slow_client(address, held.bytes()));
        }
        let Some(frame) = input.frame("a call", max).await? else {
            return Ok(());
        };
        input.slow = None;
        let request = Request::decode(frame)
            .inspect_err(|_| connection.server.connections().protocol_errors.increment(1))?;
        let (connection, sender) = (Arc::clone(connection), sender.clone());
        let deadline = Deadline::new(std::time::Instant::now(), request.header.timeout);
        tokio::spawn(async move {
            let Some(mut reply) = answer(&connection, request, deadline, &mut held).await else {
                return;
            };
            if let Some(cells) = &mut reply.held {
                held.join(cells);
            }
            let (bytes, is_cut) = (reply.out, reply.is_cut);
            held.set(bytes.capacity());
            let _ = sender.send(Response {
                bytes,
                held,
                permit,
                is_cut,
            });
        });
    }
}

/// The refusal of a call whose frame is not read. It carries the id in the frame's header.
async fn refuse_frame(
    input: &mut Input,
    length: usize,
    class: ExceptionClass,
    message: &str,
) -> Result<Vec<u8>, End> {
    input.fill(4 + length.min(REFUSED_FRAME_BYTES)).await?;
    let mut begin = Bytes::copy_from_slice(input.received.get(4..).unwrap_or_default());
    let call_id = Request::decode_header(&mut begin)
        .ok()
        .and_then(|header| header.call_id);
    let mut out = Vec::new();
    put_exception(call_id.unwrap_or_default(), class.response(message), &mut out);
    Ok(out)
}

/// Runs one call. The memory of its arguments is added to `held`. `None` if the call's deadline
/// passed before it began.
async fn answer(
    connection: &Arc<Connection>,
    request: Request,
    deadline: Deadline,
    held: &mut Held,
) -> Option<Reply> {
    let began = Instant::now();
    let call_id = request.header.call_id.unwrap_or_default();
    let mut reply = Reply::new(call_id, connection.peer.compressor);
    let name = request.header.method_name.unwrap_or_default();
    let service = connection.peer.service;
    let Some(method) = Method::find(service, &name) else {
        reply.failure(&Failure::unsupported(&name));
        return Some(reply);
    };
    let parameter = request.parameter.clone();
    let call = Call {
        parameter: request.parameter,
        cells: request.cells,
        arguments_bytes: 0,
        deadline,
    };
    let prepared = if request.header.request_param == Some(true) {
        prepare(connection, method, call, held).await
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
        return Some(reply);
    }
    if deadline.has_passed(std::time::Instant::now()) {
        let (server, number) = (&connection.server, method.number(service));
        super::answered(server, number, began.elapsed(), Some(TIMED_OUT));
        tracing::debug!(method = name, "native call dropped: its client has given up");
        return None;
    }
    let drops_reply = matches!(fault, Some(Consequence::DropsReply));
    let answered = match (prepared, fault) {
        (Ok(_), Some(Consequence::Fails(failure))) => {
            faults::refuse(method, parameter.clone(), *failure, &mut reply)
        }
        (Ok(call), _) => Box::pin(dispatch(connection, method, call, &mut reply)).await,
        (Err(failure), _) => Err(failure),
    };
    let answered = match answered {
        Ok(()) => reply.pack_cells(&connection.server).await,
        failed => failed,
    };
    if drops_reply {
        reply.out.clear();
        reply.is_cut = true;
        return Some(reply);
    }
    let failed = answered.err();
    if let Some(failure) = &failed {
        tracing::debug!(
            method = name,
            class = failure.label(),
            "native call failed: {}",
            failure.message()
        );
        reply.failure(failure);
    }
    let class = failed.map(|failure| failure.label());
    super::answered(&connection.server, method.number(service), began.elapsed(), class);
    let answered = slow_log::Answered {
        method,
        parameter: &parameter,
        took: began.elapsed(),
        answer_bytes: reply.out.len(),
        scanned: reply.scanned.take(),
    };
    slow_log::judge(connection, answered);
    Some(reply)
}

/// Unpacks the cells of a call, and reserves the memory for its arguments, unless they are small.
async fn prepare(
    connection: &Connection,
    method: Method,
    mut call: Call,
    held: &mut Held,
) -> Result<Call, Failure> {
    let compressor = connection.peer.compressor;
    call.cells = compress::unpack(&connection.server, compressor, call.cells, held).await?;
    let bytes = arguments::memory_bytes(method, &call.parameter, &call.cells);
    if bytes > SMALL_ARGUMENTS {
        call.arguments_bytes = bytes;
        held.add(bytes as u64, Purpose::Arrive)
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
        Method::Master(method) => master::call(&connection.server, method, call.parameter, reply).await,
        Method::Admin(method) => admin::call(&connection.server, method, call.parameter, reply).await,
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

fn no_response_was_read(limit: Duration) -> std::io::Error {
    let message = format!("the client read no response for {limit:?} (thrift.write_timeout_ms)");
    std::io::Error::new(ErrorKind::TimedOut, message)
}

/// Writes responses until every sender has been dropped.
async fn write_responses(
    connection: Arc<Connection>,
    mut write: OwnedWriteHalf,
    mut responses: UnboundedReceiver<Response>,
) -> Result<(), End> {
    let limit = Duration::from_millis(connection.server.config().thrift.write_timeout_ms);
    while let Some(mut first) = responses.recv().await {
        let mut others = Vec::new();
        while !first.is_cut
            && first.bytes.len() < WRITE_BYTES
            && let Ok(next) = responses.try_recv()
        {
            first.is_cut = next.is_cut;
            first.bytes.extend_from_slice(&next.bytes);
            others.push((next.held, next.permit));
        }
        let slow = first.held.is_something().then(|| {
            let address = connection.address.map(|address| address.ip());
            first.held.memory().slow_client(address, first.held.bytes())
        });
        let mut left = &first.bytes[..];
        while !left.is_empty() {
            // Each piece that the client accepts restarts the timeout.
            let written = tokio::select! {
                biased;
                written = timeout(limit, write.write(left)) => Some(written),
                () = dropped(slow.as_ref()) => None,
            };
            let is_dropped = written.is_none();
            let written = match written {
                Some(written) => written.map_err(|_| no_response_was_read(limit))??,
                None => send_now(write.as_ref(), left)?,
            };
            left = &left[written..];
            if let Some(slow) = &slow {
                slow.progress(written, first.held.bytes());
                if is_dropped && !slow.is_reprieved(written) {
                    return Err(End::Slow);
                }
            }
        }
        connection
            .server
            .connections()
            .sent_bytes
            .add(first.bytes.len() as u64);
        if first.is_cut {
            return Err(End::Fault);
        }
    }
    Ok(write.shutdown().await?)
}
