//! One socket to one service of one server, with many calls in flight.
//!
//! 1. [`Connection::open`] connects, with TLS if that is wanted, sends preamble and connection
//!    header, with the login by token in between, and starts two tasks: a writer that joins waiting
//!    frames, and a reader that gives each response to the call with its id.
//! 2. [`Connection::call`] waits for a permit, registers, hands its frame to the writer, and waits for its
//!    response until the deadline.
//!
//! A connection that fails fails all its calls: with the socket's error, with the exception that ends the
//! connection (its call id belongs to no call), or because a response is malformed. A call that ends early,
//! by its deadline or because its future is dropped, takes its registration along, so that its response is
//! discarded; a call that opens a scanner leaves a note, so that the scanner of a late response is closed.
//! When a whole [`ClusterOptions::call_timeout`] passes without a byte from the server, the connection counts
//! as lost. It is also lost with the runtime in which it was opened, where its tasks run.
//!
//! Bounds: [`ClusterOptions::calls_in_flight`] calls, a queue of frames of the same length, and
//! [`ClusterOptions::reply_bytes_max`] for a response. The receive buffer grows with the received
//! bytes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use basalt_idl::native::compress::{Compressor, Room};
use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::frame::{Request, Response, put_connection_header};
use basalt_idl::native::messages::{
    ConnectionHeader, ExceptionResponse, RequestHeader, UserInformation, VersionInfo,
};
use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::calls::{Lost, Shared, send_later};
use super::observer::Observer;
use super::options::ClusterOptions;
use crate::error::{Error, Result};
use crate::remote::{Origin, RemoteException};
use crate::sasl;
use crate::security::{Login, Token};
use crate::stream::{self, ReadHalf, Stream, WriteHalf};

/// A service of a server. A connection belongs to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Service {
    /// Rows.
    Client,
    /// Regions.
    Admin,
    /// Tables.
    Master,
    /// Locations of meta and the master.
    Registry,
}

impl Service {
    /// The name in a connection header.
    pub(super) fn name(self) -> &'static str {
        match self {
            Service::Client => "ClientService",
            Service::Admin => "AdminService",
            Service::Master => "MasterService",
            Service::Registry => "ClientMetaService",
        }
    }

    /// The codec of its cell blocks.
    fn codec(self, options: &ClusterOptions) -> &'static str {
        match self {
            Service::Admin => CODEC_WITH_TAGS,
            Service::Client if options.tags => CODEC_WITH_TAGS,
            Service::Client | Service::Master | Service::Registry => CODEC,
        }
    }
}

/// "HBas", version 0, authentication SIMPLE.
const PREAMBLE: &[u8] = b"HBas\0\x50";

/// "HBas", version 0, authentication DIGEST-MD5.
const PREAMBLE_DIGEST: &[u8] = b"HBas\0\x52";

/// The codec of cell blocks.
const CODEC: &str = "org.apache.hadoop.hbase.codec.KeyValueCodec";

/// The codec that keeps the tags of cells, as a replication source needs it.
const CODEC_WITH_TAGS: &str = "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags";

/// The version that this client behaves like. Servers answer older versions differently.
const VERSION: (u32, u32) = (2, 6);

/// Growth of the receive buffer at a time, in bytes.
const READ_BYTES: usize = 16 << 10;

/// Most growth of the receive buffer for a response that is known to be long, in bytes.
const READ_BYTES_MAX: usize = 1 << 20;

/// Frames are joined to writes of about this size, in bytes.
const WRITE_BYTES: usize = 64 << 10;

/// A call: everything but its message and cells.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    /// The method's name.
    pub(super) method: &'static str,
    /// The region, for errors.
    pub(super) region: Option<&'a [u8]>,
    /// HBase's priority: 0 for user tables, 200 for `hbase:meta`.
    pub(super) priority: u32,
    /// When the call fails.
    pub(super) deadline: Instant,
    /// Opens a scanner, which is closed if the caller does not wait for the answer any more.
    pub(super) opens_scanner: bool,
}

/// The answer to a call.
#[derive(Debug)]
pub(super) struct Reply<M> {
    pub(super) message: M,
    /// The cell block, unpacked.
    pub(super) cells: Bytes,
    /// The server's address.
    target: Arc<str>,
}

impl<M> Reply<M> {
    /// The error for a message or cells that cannot be right.
    pub(super) fn malformed(&self, method: &'static str, what: String) -> Error {
        Error::Malformed {
            target: self.target.to_string(),
            method,
            what,
        }
    }
}

/// One socket to one service of one server. Clones share it; it is closed with the last one.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    target: Arc<str>,
    shared: Arc<Shared>,
    frames: mpsc::Sender<Vec<u8>>,
    permits: Semaphore,
    compressor: Option<Compressor>,
    reply_bytes_max: usize,
    call_timeout: Duration,
    observer: Option<Arc<dyn Observer>>,
    tasks: [AbortHandle; 2],
}

impl Drop for Inner {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Connection {
    /// Connects to `target`, a `host:port`.
    pub(super) async fn open(
        target: Arc<str>,
        service: Service,
        options: &ClusterOptions,
    ) -> Result<Connection> {
        let compressor = compressor(options)?;
        let opening = open_stream(&target, service, options);
        let opened = stream::within(options.connect_timeout, &target, opening).await;
        if let Some(observer) = &options.observer {
            observer.connected(opened.is_ok());
        }
        let (read, write) = opened?.into_split();
        let shared = Arc::new(Shared::new());
        let (frames, queue) = mpsc::channel(options.calls_in_flight.max(1));
        let reader = Reader {
            stream: read,
            shared: Arc::clone(&shared),
            frames: frames.downgrade(),
            received: BytesMut::new(),
            reply_bytes_max: options.reply_bytes_max,
            idle_timeout: options.idle_timeout,
            observer: options.observer.clone(),
        };
        let writer = tokio::spawn(write_frames(write, queue, Arc::clone(&shared)));
        let writing = writer.abort_handle();
        let reader = tokio::spawn(async move {
            reader.run().await;
            // The socket is closed when both of its halves are dropped.
            writing.abort();
        });
        Ok(Connection {
            inner: Arc::new(Inner {
                target,
                shared,
                frames,
                permits: Semaphore::new(options.calls_in_flight.max(1)),
                compressor,
                reply_bytes_max: options.reply_bytes_max,
                call_timeout: options.call_timeout,
                observer: options.observer.clone(),
                tasks: [writer.abort_handle(), reader.abort_handle()],
            }),
        })
    }

    /// The server's address.
    pub(super) fn target(&self) -> &str {
        &self.inner.target
    }

    /// Whether calls can be made; false once the connection is known to have ended.
    pub(super) fn is_usable(&self) -> bool {
        self.inner.shared.is_usable()
    }

    /// Makes a call. `cells` is its cell block.
    pub(super) async fn call<M: Message + Default>(
        &self,
        call: &Call<'_>,
        parameter: &impl Message,
        cells: &[u8],
    ) -> Result<Reply<M>> {
        let began = Instant::now();
        let Ok(response) = timeout_at(call.deadline, self.exchange(call, parameter, cells)).await else {
            self.give_up(began);
            self.note(call, began, Err(None));
            return Err(Error::Timeout {
                what: call.method,
                target: format!("at {}", self.target()),
                limit: call.deadline.saturating_duration_since(began),
            });
        };
        let response = response.inspect_err(|_| self.note(call, began, Err(None)))?;
        if let Some(exception) = response.header.exception {
            self.note(call, began, Err(exception.exception_class_name.as_deref()));
            return Err(self.refused(exception, call));
        }
        self.note(call, began, Ok(()));
        let message = M::decode(response.result).map_err(|error| self.malformed(call, &error))?;
        Ok(Reply {
            message,
            cells: self.unpack(call, response.cells)?,
            target: Arc::clone(&self.inner.target),
        })
    }

    /// Reports the end of a call to the observer.
    fn note(&self, call: &Call<'_>, began: Instant, outcome: std::result::Result<(), Option<&str>>) {
        if let Some(observer) = &self.inner.observer {
            observer.called(call.method, began.elapsed(), outcome);
        }
    }

    async fn exchange(&self, call: &Call<'_>, parameter: &impl Message, cells: &[u8]) -> Result<Response> {
        let inner = &*self.inner;
        let _permit = inner
            .permits
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let id = inner.shared.next_id();
        let frame = self.frame(id, call, parameter, cells)?;
        let registered = inner.shared.register(id, &inner.frames);
        let mut registered = registered.map_err(|lost| self.lost(lost, call))?;
        // The writer ends only if the connection is lost; the response is then the error.
        drop(inner.frames.send(frame).await);
        registered.opens_scanner = call.opens_scanner;
        match registered.response().await {
            Some(Ok(response)) => Ok(response),
            Some(Err(lost)) => Err(self.lost(lost, call)),
            None => Err(self.lost(Lost::closed("the connection was dropped"), call)),
        }
    }

    fn frame(&self, id: u32, call: &Call<'_>, parameter: &impl Message, cells: &[u8]) -> Result<Vec<u8>> {
        let left = call.deadline.saturating_duration_since(Instant::now());
        let header = RequestHeader {
            call_id: Some(id),
            method_name: Some(call.method.to_owned()),
            priority: (call.priority > 0).then_some(call.priority),
            timeout: Some(u32::try_from(left.as_millis()).unwrap_or(u32::MAX >> 1).max(1)),
            ..RequestHeader::default()
        };
        let mut frame = Vec::new();
        match self.inner.compressor.filter(|_| !cells.is_empty()) {
            Some(compressor) => {
                let packed = compressor.pack(cells);
                let packed = packed.map_err(|error| self.malformed(call, &error))?;
                Request::encode(&header, parameter, &packed, &mut frame);
            }
            None => Request::encode(&header, parameter, cells, &mut frame),
        }
        Ok(frame)
    }

    fn unpack(&self, call: &Call<'_>, cells: Bytes) -> Result<Bytes> {
        let Some(compressor) = self.inner.compressor.filter(|_| !cells.is_empty()) else {
            return Ok(cells);
        };
        let plain = compressor.unpack(&cells, self.inner.reply_bytes_max, &mut Unreserved);
        Ok(plain.map_err(|error| self.malformed(call, &error))?.into())
    }

    /// Fails the connection if the server was silent for a whole call.
    fn give_up(&self, call_began: Instant) {
        let silent_since = self.inner.shared.received().max(call_began);
        if silent_since.elapsed() >= self.inner.call_timeout {
            self.inner.shared.fail(&Lost::Io(
                io::ErrorKind::TimedOut,
                format!("nothing was received for {:?}", self.inner.call_timeout),
            ));
        }
    }

    fn lost(&self, lost: Lost, call: &Call<'_>) -> Error {
        match lost {
            Lost::Io(kind, text) => Error::Io {
                target: self.target().to_owned(),
                method: call.method,
                source: io::Error::new(kind, text),
            },
            Lost::Exception(exception) => self.refused(*exception, call),
            Lost::Malformed(what) => self.malformed(call, &what),
            Lost::Rejected(what) => Error::Login {
                target: self.target().to_owned(),
                what,
            },
        }
    }

    /// The error for an exception that the server sent.
    fn refused(&self, exception: ExceptionResponse, call: &Call<'_>) -> Error {
        if wants_login(&exception) {
            return sasl::wants_login(self.target());
        }
        Error::Remote(Box::new(RemoteException::of_response(
            exception,
            self.origin(call),
        )))
    }

    /// The error for an answer that cannot be read.
    pub(super) fn malformed(&self, call: &Call<'_>, what: &impl ToString) -> Error {
        Error::Malformed {
            target: self.target().to_owned(),
            method: call.method,
            what: what.to_string(),
        }
    }

    /// The origin of exceptions of this call.
    pub(super) fn origin(&self, call: &Call<'_>) -> Origin {
        Origin {
            method: call.method,
            server: self.target().to_owned(),
            region: call.region.map(|name| name.escape_ascii().to_string()),
        }
    }
}

/// Memory for unpacking is bounded by the size of a reply alone.
struct Unreserved;

impl Room for Unreserved {
    fn reserve(&mut self, _bytes: usize) -> bool {
        true
    }

    fn release(&mut self, _bytes: usize) {}
}

fn compressor(options: &ClusterOptions) -> Result<Option<Compressor>> {
    let Some(class) = &options.compressor else {
        return Ok(None);
    };
    match Compressor::of_class(class) {
        Some(compressor) => Ok(Some(compressor)),
        None => Err(Error::InvalidRequest(format!("unknown compressor class {class}"))),
    }
}

fn header(service: Service, options: &ClusterOptions) -> ConnectionHeader {
    ConnectionHeader {
        // A token names its user.
        user_info: options.security.login.is_none().then(|| UserInformation {
            effective_user: options.user.clone(),
            ..UserInformation::default()
        }),
        service_name: Some(service.name().to_owned()),
        cell_block_codec_class: Some(service.codec(options).to_owned()),
        cell_block_compressor_class: options.compressor.clone(),
        version_info: Some(VersionInfo {
            version: format!("{}.{}.0", VERSION.0, VERSION.1),
            version_major: Some(VERSION.0),
            version_minor: Some(VERSION.1),
            ..VersionInfo::default()
        }),
        ..ConnectionHeader::default()
    }
}

/// Connects, logs in and sends the connection header. The caller bounds the time.
async fn open_stream(target: &str, service: Service, options: &ClusterOptions) -> Result<Stream> {
    let token = token(target, options)?;
    let mut stream = Stream::connect(target, &options.security).await?;
    let mut opening = Vec::new();
    match token {
        None => opening.extend_from_slice(PREAMBLE),
        Some(token) => {
            let sent = stream.write_all(PREAMBLE_DIGEST).await;
            sent.map_err(|source| not_sent(target, source))?;
            sasl::log_in_native(&mut stream, target, token).await?;
        }
    }
    put_connection_header(&header(service, options), &mut opening);
    let sent = stream.write_all(&opening).await;
    sent.map_err(|source| not_sent(target, source))?;
    let flushed = stream.flush().await;
    flushed.map_err(|source| not_sent(target, source))?;
    Ok(stream)
}

/// The token to log in with.
fn token<'a>(target: &str, options: &'a ClusterOptions) -> Result<Option<&'a Token>> {
    match &options.security.login {
        None => Ok(None),
        Some(Login::Token(token)) => Ok(Some(token)),
        Some(Login::Password { .. }) => Err(Error::Login {
            target: target.to_owned(),
            what: "HBase's native protocol takes no passwords: give a token or a client certificate, or use Thrift"
                .to_owned(),
        }),
    }
}

fn not_sent(target: &str, source: io::Error) -> Error {
    Error::Connect {
        target: target.to_owned(),
        source,
    }
}

/// Whether a server refuses a connection or a call because there was no login.
fn wants_login(exception: &ExceptionResponse) -> bool {
    let class = exception.exception_class_name.as_deref();
    let text = exception.stack_trace.as_deref().unwrap_or_default();
    class == Some(ExceptionClass::AccessDenied.name()) && text.contains(sasl::NO_LOGIN)
}

async fn write_frames(mut stream: WriteHalf, mut frames: mpsc::Receiver<Vec<u8>>, shared: Arc<Shared>) {
    while let Some(mut bytes) = frames.recv().await {
        while bytes.len() < WRITE_BYTES
            && let Ok(more) = frames.try_recv()
        {
            bytes.extend_from_slice(&more);
        }
        let sent = async {
            stream.write_all(&bytes).await?;
            // TLS keeps what the socket did not take.
            stream.flush().await
        };
        if let Err(error) = sent.await {
            shared.fail(&Lost::of_socket(&error));
            return;
        }
    }
}

struct Reader {
    stream: ReadHalf,
    shared: Arc<Shared>,
    /// For frames that close scanners of abandoned calls.
    frames: mpsc::WeakSender<Vec<u8>>,
    received: BytesMut,
    reply_bytes_max: usize,
    idle_timeout: Duration,
    observer: Option<Arc<dyn Observer>>,
}

/// Ends the connection if the reader is dropped with its runtime: no task is left that reads answers. After
/// [`Reader::run`] it has ended already.
impl Drop for Reader {
    fn drop(&mut self) {
        let runtime_ended = Lost::closed("the runtime in which it was opened has ended");
        self.shared.fail(&runtime_ended);
    }
}

impl Reader {
    async fn run(mut self) {
        let mut has_answered = false;
        let lost = loop {
            match self.take_frame() {
                Ok(Some(frame)) => {
                    has_answered = true;
                    let responded = Response::decode(frame)
                        .map_err(|error| Lost::Malformed(error.to_string()))
                        .and_then(|response| self.shared.respond(response));
                    match responded {
                        Ok(None) => {}
                        Ok(Some(close)) => self.send(close),
                        Err(lost) => break lost,
                    }
                    continue;
                }
                Ok(None) => {}
                Err(lost) => break lost,
            }
            match timeout(self.idle_timeout, self.stream.read_buf(&mut self.received)).await {
                Ok(Ok(1..)) => self.shared.note_received(),
                Ok(Err(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                    break Lost::of_socket(&error);
                }
                // TLS reports a close without its closing message as an error.
                Ok(Ok(0) | Err(_)) => break Lost::closed(stream::closed_text(has_answered)),
                Err(_) if self.shared.close_if_idle() => return,
                Err(_) => {}
            }
        };
        if let Some(observer) = &self.observer {
            observer.lost();
        }
        self.shared.fail(&lost);
    }

    /// Sends a frame without waiting for the writer.
    fn send(&self, frame: Vec<u8>) {
        if let Some(frames) = self.frames.upgrade() {
            send_later(&frames, frame);
        }
    }

    /// The next whole frame without its length; `None` makes room for more bytes.
    fn take_frame(&mut self) -> std::result::Result<Option<Bytes>, Lost> {
        let Some(length) = self.received.first_chunk::<4>() else {
            self.received.reserve(READ_BYTES);
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.reply_bytes_max {
            return Err(Lost::Malformed(format!(
                "{length} bytes, more than the limit of {} (reply_bytes_max)",
                self.reply_bytes_max
            )));
        }
        let missing = (4 + length).saturating_sub(self.received.len());
        if missing > 0 {
            self.received.reserve(missing.clamp(READ_BYTES, READ_BYTES_MAX));
            return Ok(None);
        }
        let mut frame = self.received.split_to(4 + length);
        Ok(Some(frame.split_off(4).freeze()))
    }
}
