//! One socket to a Thrift 2 server, one call at a time.
//!
//! 1. [`Connection::open`] resolves, connects, switches off Nagle's algorithm, and runs the TLS
//!    handshake and the login, as [`ConnectionOptions::security`] demands.
//! 2. [`Connection::call`] encodes the call into one buffer, writes it, and reads until the reply is whole:
//!    by its announced length when framed, else by walking the bytes with [`MessageScanner`].
//! 3. The reply is decoded from a buffer of its own, so that values are slices and not copies.
//!
//! Invariant: a connection is healthy only between calls. It counts as broken from the first byte sent until
//! the reply is complete and fits the call, so a future that is dropped in the middle, a timeout or a damaged
//! reply leaves a connection that refuses further calls instead of one that answers with an older reply.
//!
//! Memory: the receive buffer grows with the bytes that have arrived, never by a length field
//! alone, and a reply longer than [`ConnectionOptions::reply_bytes_max`] is refused.

use std::io;
use std::time::Duration;

use basalt_idl::call::{Call, CallError, read_reply, write_call};
use basalt_idl::wire::{
    self, BinaryReader, BinaryWriter, CompactReader, CompactWriter, MessageScanner, Protocol, Scan, WireError,
};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::error::{Error, Result, Thrown, from_call};
use crate::options::FailureKind;
use crate::sasl;
use crate::security::Security;
use crate::stream::{self, Stream};

/// How much the receive buffer grows at a time, in bytes.
const READ_BYTES: usize = 16 << 10;

/// Size in bytes from which a send buffer is freed after the call.
const KEEP_BYTES_MAX: usize = 1 << 20;

/// Encoding of calls. A server of HBase speaks one of the two, by its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Codec {
    /// Thrift's binary protocol: HBase's default.
    #[default]
    Binary,
    /// Thrift's compact protocol: `hbase.regionserver.thrift.compact`.
    Compact,
}

/// How a connection speaks and how long it waits.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Default binary.
    pub codec: Codec,
    /// Whether messages carry their length: `hbase.regionserver.thrift.framed`. Default false.
    pub framed: bool,
    /// Longest time to connect, over all addresses of the name, with TLS handshake and login.
    /// Default 10 s.
    pub connect_timeout: Duration,
    /// Longest time from the first byte sent to the last byte received. Default 60 s, as HBase's RPC timeout.
    pub call_timeout: Duration,
    /// Longest reply in bytes. Default 256 MiB.
    pub reply_bytes_max: usize,
    /// TLS and the login. Default neither.
    pub security: Security,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        ConnectionOptions {
            codec: Codec::Binary,
            framed: false,
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_mins(1),
            reply_bytes_max: 256 << 20,
            security: Security::none(),
        }
    }
}

/// One socket to a Thrift 2 server, one call at a time.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    target: String,
    options: ConnectionOptions,
    /// Whether messages carry their length: by the options, or because SASL demands it.
    framed: bool,
    /// The last sequence id used.
    seqid: i32,
    /// True from the first byte of a call until its reply is complete, and for good after a failure.
    broken: bool,
    /// The call being sent. Kept to save an allocation a call.
    out: Vec<u8>,
    /// Bytes received and not yet decoded: empty between calls.
    received: BytesMut,
}

impl Connection {
    /// Connects to `target`, a `host:port`, and logs in.
    pub async fn open(target: &str, options: ConnectionOptions) -> Result<Connection> {
        let opening = open_stream(target, &options.security);
        let stream = stream::within(options.connect_timeout, target, opening).await?;
        Ok(Connection {
            stream,
            target: target.to_owned(),
            framed: options.framed || options.security.login.is_some(),
            options,
            seqid: 0,
            broken: false,
            out: Vec::new(),
            received: BytesMut::new(),
        })
    }

    /// Whether another call can be made, as far as is known locally. Detects a close by the server
    /// that has already arrived.
    pub fn is_usable(&mut self) -> bool {
        !self.broken && self.stream.is_silent()
    }

    /// Makes a call and waits for its reply. Never tries again by itself.
    pub async fn call<C>(&mut self, args: &C) -> Result<C::Success>
    where
        C: Call,
        C::Exception: Thrown,
    {
        let method = C::METHOD.name;
        if self.broken {
            let source = io::Error::new(io::ErrorKind::NotConnected, "an earlier call failed on it");
            return Err(self.io(method, source));
        }
        self.seqid = self.seqid.wrapping_add(1);
        self.encode(args)?;
        self.broken = true;
        let Ok(message) = timeout(self.options.call_timeout, self.exchange(method)).await else {
            return Err(Error::Timeout {
                what: "a call to",
                target: self.target.clone(),
                limit: self.options.call_timeout,
            });
        };
        let reply = self
            .decode::<C>(message?)
            .map_err(|source| Error::Protocol { method, source })?;
        // A reply to something else means that the two sides have lost count: no later reply can be trusted.
        self.broken = matches!(&reply, Err(CallError::Application(failure)) if matches!(failure.kind, Some(
            FailureKind::BAD_SEQUENCE_ID
                | FailureKind::WRONG_METHOD_NAME
                | FailureKind::INVALID_MESSAGE_TYPE
        )));
        reply.map_err(|error| match from_call(error, method) {
            Error::Server { message, .. } if message == sasl::NO_LOGIN => sasl::wants_login(&self.target),
            error => error,
        })
    }

    /// Writes the call into `out`.
    fn encode<C: Call>(&mut self, args: &C) -> Result<()> {
        if self.out.capacity() > KEEP_BYTES_MAX {
            self.out = Vec::new();
        }
        self.out.clear();
        let frame = self.framed.then(|| wire::begin_frame(&mut self.out));
        match self.options.codec {
            Codec::Binary => write_call(&mut BinaryWriter::new(&mut self.out), self.seqid, args),
            Codec::Compact => write_call(&mut CompactWriter::new(&mut self.out), self.seqid, args),
        }
        if let Some(at) = frame {
            wire::end_frame(&mut self.out, at).map_err(|error| Error::InvalidRequest(error.to_string()))?;
        }
        Ok(())
    }

    fn decode<C: Call>(
        &self,
        message: Bytes,
    ) -> std::result::Result<std::result::Result<C::Success, CallError<C::Exception>>, WireError> {
        match self.options.codec {
            Codec::Binary => read_reply::<C, _>(&mut BinaryReader::new(message), self.seqid),
            Codec::Compact => read_reply::<C, _>(&mut CompactReader::new(message), self.seqid),
        }
    }

    /// Sends `out` and returns the bytes of the reply.
    async fn exchange(&mut self, method: &'static str) -> Result<Bytes> {
        let sent = self.stream.write_all(&self.out).await;
        sent.map_err(|source| self.io(method, source))?;
        // TLS keeps what the socket did not take.
        let flushed = self.stream.flush().await;
        flushed.map_err(|source| self.io(method, source))?;
        let len = if self.framed {
            self.receive_frame(method).await?
        } else {
            self.receive_unframed(method).await?
        };
        let message = self.received.split_to(len).freeze();
        if !self.received.is_empty() {
            let source = io::Error::new(io::ErrorKind::InvalidData, "more bytes than one reply arrived");
            return Err(self.io(method, source));
        }
        Ok(message)
    }

    /// Receives a frame, drops its length field, and returns the length of its body.
    async fn receive_frame(&mut self, method: &'static str) -> Result<usize> {
        while self.received.len() < 4 {
            self.receive_some(method).await?;
        }
        let header = self.received.split_to(4);
        let announced = header
            .iter()
            .fold(0usize, |len, byte| (len << 8) | usize::from(*byte));
        if announced > self.options.reply_bytes_max {
            return Err(Error::Protocol {
                method,
                source: WireError::TooLong {
                    limit: self.options.reply_bytes_max,
                },
            });
        }
        while self.received.len() < announced {
            self.receive_some(method).await?;
        }
        Ok(announced)
    }

    /// Receives an unframed message and returns its length.
    async fn receive_unframed(&mut self, method: &'static str) -> Result<usize> {
        // HBase and Basalt answer strictly, whatever the call was.
        let protocol = match self.options.codec {
            Codec::Binary => Protocol::BinaryStrict,
            Codec::Compact => Protocol::Compact,
        };
        let mut scanner = MessageScanner::new(protocol, self.options.reply_bytes_max);
        loop {
            self.receive_some(method).await?;
            match scanner.feed(&self.received) {
                Ok(Scan::Complete { len }) => return Ok(len),
                Ok(Scan::NeedMore) => {}
                Err(source) => return Err(Error::Protocol { method, source }),
            }
        }
    }

    /// Receives at least one byte.
    async fn receive_some(&mut self, method: &'static str) -> Result<()> {
        self.received.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.received).await {
            Ok(1..) => Ok(()),
            Err(source) if source.kind() != io::ErrorKind::UnexpectedEof => Err(self.io(method, source)),
            // TLS reports a close without its closing message as an error.
            Ok(0) | Err(_) => {
                let text = stream::closed_text(self.seqid > 1);
                let source = io::Error::new(io::ErrorKind::UnexpectedEof, text);
                Err(self.io(method, source))
            }
        }
    }

    fn io(&self, method: &'static str, source: io::Error) -> Error {
        stream::broken(&self.target, method, source)
    }
}

/// Connects and logs in. The caller bounds the time.
async fn open_stream(target: &str, security: &Security) -> Result<Stream> {
    let mut stream = Stream::connect(target, security).await?;
    if let Some(login) = &security.login {
        if !stream.is_private() {
            return Err(sasl::in_clear(target));
        }
        sasl::log_in_thrift(&mut stream, target, login).await?;
    }
    Ok(stream)
}
