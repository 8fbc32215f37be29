//! One socket to a Thrift 2 server, one call at a time.
//!
//! 1. [`Connection::open`] resolves, connects and switches off Nagle's algorithm.
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
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error::{CONNECTING, Error, Result, Thrown, from_call};
use crate::options::FailureKind;

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
    /// Longest time to connect, over all addresses of the name. Default 10 s.
    pub connect_timeout: Duration,
    /// Longest time from the first byte sent to the last byte received. Default 60 s, as HBase's RPC timeout.
    pub call_timeout: Duration,
    /// Longest reply in bytes. Default 256 MiB.
    pub reply_bytes_max: usize,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        ConnectionOptions {
            codec: Codec::Binary,
            framed: false,
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_mins(1),
            reply_bytes_max: 256 << 20,
        }
    }
}

/// One socket to a Thrift 2 server, one call at a time.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    target: String,
    options: ConnectionOptions,
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
    /// Connects to `target`, a `host:port`.
    pub async fn open(target: &str, options: ConnectionOptions) -> Result<Connection> {
        let connecting = timeout(options.connect_timeout, TcpStream::connect(target));
        let failed = |source| Error::Connect {
            target: target.to_owned(),
            source,
        };
        let stream = match connecting.await {
            Ok(connected) => connected.map_err(failed)?,
            Err(_) => {
                return Err(Error::Timeout {
                    what: CONNECTING,
                    target: target.to_owned(),
                    limit: options.connect_timeout,
                });
            }
        };
        // Calls are small and wait for their reply, so holding bytes back would only add a delay.
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Connection {
            stream,
            target: target.to_owned(),
            options,
            seqid: 0,
            broken: false,
            out: Vec::new(),
            received: BytesMut::new(),
        })
    }

    /// Whether another call can be made, as far as is known locally. Detects a close by the server
    /// that has already arrived.
    pub fn is_usable(&self) -> bool {
        if self.broken {
            return false;
        }
        let nothing = self.stream.try_read(&mut [0; 1]);
        matches!(nothing, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
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
        reply.map_err(|error| from_call(error, method))
    }

    /// Writes the call into `out`.
    fn encode<C: Call>(&mut self, args: &C) -> Result<()> {
        if self.out.capacity() > KEEP_BYTES_MAX {
            self.out = Vec::new();
        }
        self.out.clear();
        let frame = self.options.framed.then(|| wire::begin_frame(&mut self.out));
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
        let len = if self.options.framed {
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
            Ok(0) => {
                let source = io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it");
                Err(self.io(method, source))
            }
            Ok(_) => Ok(()),
            Err(source) => Err(self.io(method, source)),
        }
    }

    fn io(&self, method: &'static str, source: io::Error) -> Error {
        Error::Io {
            target: self.target.clone(),
            method,
            source,
        }
    }
}
