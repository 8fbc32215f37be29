//! A small Thrift 2 server for tests: answers through a function, and counts its calls.
//!
//! It speaks the client's protocol on a real socket, so the tests cover framing, buffering and
//! timeouts. The function gets the name of a method and its arguments still encoded, and writes the
//! reply.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use basalt_client::{Client, Codec, PoolOptions};
use basalt_idl::call::{Call, write_application_exception, write_reply};
use basalt_idl::wire::{
    BinaryReader, BinaryWriter, CompactReader, CompactWriter, MessageScanner, Protocol, Reader, Scan,
    begin_frame, end_frame,
};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One call that the server got.
pub(crate) struct Request {
    /// The method.
    pub(crate) method: String,
    codec: Codec,
    message: Bytes,
    seqid: i32,
}

/// The server's reaction to a call.
pub(crate) enum Action {
    /// Sends these bytes, a whole message.
    Reply(Vec<u8>),
    /// Closes the connection without an answer.
    Close,
    /// Never answers.
    Silence,
}

impl Request {
    fn new(codec: Codec, message: Bytes) -> Request {
        let header = match codec {
            Codec::Binary => BinaryReader::new(message.clone()).message_begin(),
            Codec::Compact => CompactReader::new(message.clone()).message_begin(),
        };
        let header = header.unwrap();
        Request {
            method: header.name().to_owned(),
            seqid: header.seqid,
            codec,
            message,
        }
    }

    /// The arguments.
    pub(crate) fn arguments<C: Call>(&self) -> C {
        fn read<C: Call>(mut reader: impl Reader) -> C {
            reader.message_begin().unwrap();
            C::decode(&mut reader).unwrap()
        }
        assert_eq!(self.method, C::METHOD.name);
        match self.codec {
            Codec::Binary => read(BinaryReader::new(self.message.clone())),
            Codec::Compact => read(CompactReader::new(self.message.clone())),
        }
    }

    /// A reply with a result or a declared exception.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "every test makes the result in place"
    )]
    pub(crate) fn reply<C: Call>(&self, result: Result<C::Success, C::Exception>) -> Action {
        self.reply_to::<C>(self.seqid, &result)
    }

    /// A reply with another sequence id.
    pub(crate) fn reply_to<C: Call>(&self, seqid: i32, result: &Result<C::Success, C::Exception>) -> Action {
        let mut out = Vec::new();
        match self.codec {
            Codec::Binary => write_reply::<C, _>(&mut BinaryWriter::new(&mut out), seqid, result),
            Codec::Compact => write_reply::<C, _>(&mut CompactWriter::new(&mut out), seqid, result),
        }
        Action::Reply(out)
    }

    /// The sequence id of the call.
    pub(crate) fn seqid(&self) -> i32 {
        self.seqid
    }

    /// The answer to a method that the server does not have.
    pub(crate) fn unknown(&self) -> Action {
        let failure = basalt_idl::TApplicationException::unknown_method(&self.method);
        let mut out = Vec::new();
        match self.codec {
            Codec::Binary => {
                write_application_exception(
                    &mut BinaryWriter::new(&mut out),
                    &self.method,
                    self.seqid,
                    &failure,
                );
            }
            Codec::Compact => {
                write_application_exception(
                    &mut CompactWriter::new(&mut out),
                    &self.method,
                    self.seqid,
                    &failure,
                );
            }
        }
        Action::Reply(out)
    }
}

type Handler = dyn Fn(&Request) -> Action + Send + Sync;

/// A running server. Ends with the test's runtime.
pub(crate) struct FakeServer {
    address: SocketAddr,
    codec: Codec,
    framed: bool,
    state: Arc<State>,
}

struct State {
    handler: Box<Handler>,
    /// Calls seen, by method.
    calls: Mutex<BTreeMap<String, usize>>,
    /// Told at every call.
    called: Notify,
    connections: AtomicUsize,
}

impl FakeServer {
    /// Starts a server with HBase's defaults: binary, unframed.
    pub(crate) async fn start(handler: impl Fn(&Request) -> Action + Send + Sync + 'static) -> FakeServer {
        FakeServer::start_as(Codec::Binary, false, handler).await
    }

    /// Starts a server.
    pub(crate) async fn start_as(
        codec: Codec,
        framed: bool,
        handler: impl Fn(&Request) -> Action + Send + Sync + 'static,
    ) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            handler: Box::new(handler),
            calls: Mutex::default(),
            called: Notify::new(),
            connections: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // A reply goes out in two pieces, the second of which would otherwise wait for an
                // acknowledgement.
                stream.set_nodelay(true).unwrap();
                shared.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, codec, framed, Arc::clone(&shared)));
            }
        });
        FakeServer {
            address,
            codec,
            framed,
            state,
        }
    }

    /// A client of this server.
    pub(crate) fn client(&self, mut options: PoolOptions) -> Client {
        options.connection.codec = self.codec;
        options.connection.framed = self.framed;
        Client::new(self.address.to_string(), options).unwrap()
    }

    /// How often a method was called.
    pub(crate) fn calls(&self, method: &str) -> usize {
        self.state.calls.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits until a method was called so often, and fails if that does not happen.
    pub(crate) async fn wait_for(&self, method: &str, calls: usize) {
        let enough = async {
            loop {
                let called = self.state.called.notified();
                tokio::pin!(called);
                called.as_mut().enable();
                if self.calls(method) >= calls {
                    return;
                }
                called.await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), enough).await;
        let seen = self.calls(method);
        assert!(
            waited.is_ok(),
            "{method} was called {seen} times instead of {calls}"
        );
    }
}

async fn serve(mut stream: TcpStream, codec: Codec, framed: bool, state: Arc<State>) {
    let mut received = BytesMut::new();
    while let Some(message) = receive(&mut stream, codec, framed, &mut received).await {
        let request = Request::new(codec, message);
        *state
            .calls
            .lock()
            .unwrap()
            .entry(request.method.clone())
            .or_default() += 1;
        state.called.notify_waiters();
        match (state.handler)(&request) {
            Action::Close => return,
            Action::Silence => std::future::pending().await,
            Action::Reply(message) => {
                let mut out = Vec::new();
                let at = framed.then(|| begin_frame(&mut out));
                out.extend(message);
                if let Some(at) = at {
                    end_frame(&mut out, at).unwrap();
                }
                // In two pieces, so that the client has to put them together.
                let (first, second) = out.split_at(out.len() / 2);
                for piece in [first, second] {
                    if stream.write_all(piece).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// The next message, `None` when the client is gone.
async fn receive(
    stream: &mut TcpStream,
    codec: Codec,
    framed: bool,
    received: &mut BytesMut,
) -> Option<Bytes> {
    let protocol = match codec {
        Codec::Binary => Protocol::BinaryStrict,
        Codec::Compact => Protocol::Compact,
    };
    let mut scanner = MessageScanner::new(protocol, 1 << 20);
    loop {
        let body = received.get(if framed { 4 } else { 0 }..).unwrap_or_default();
        if let Ok(Scan::Complete { len }) = scanner.feed(body) {
            if framed {
                drop(received.split_to(4));
            }
            return Some(received.split_to(len).freeze());
        }
        if stream.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}
