//! From received bytes to whole messages, without I/O.
//!
//! 1. The first bytes of the connection have determined protocol and transport
//!    ([`basalt_idl::wire::detect()`]). Settings may allow only some of them.
//! 2. A framed message is complete by its length; an unframed one when the scanner, which walks the
//!    bytes as they arrive, reaches its end.
//! 3. A message that will be refused in any case is refused once its header is here, so that the
//!    refusal can name the call that it answers. Otherwise clients would take it for the answer to
//!    another call.
//!
//! Invariant: memory grows only with bytes that have arrived, never with a length that a message claims.

use basalt_idl::wire::{BinaryReader, CompactReader, MessageScanner, Protocol, Reader, Scan, WireError};
use basalt_idl::{TApplicationException, TApplicationExceptionType};
use bytes::{Buf, Bytes, BytesMut};

use crate::config::{Config, ThriftProtocol, ThriftTransport};

/// How a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFormat {
    /// Protocol of the messages it sends.
    pub protocol: Protocol,
    /// Whether each message has a length in front.
    pub framed: bool,
}

/// A protocol error. The connection ends, after an error reply if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// Thrift on the port for HTTP.
    #[error(
        "this is the HTTP port, and the first bytes are a Thrift message without HTTP: connect to the main port (server.listen), or send \
         each call as the body of a POST to /thrift1 or /thrift2"
    )]
    HttpPort,
    /// Thrift in a protocol that the settings do not allow.
    #[error("this connection speaks the {spoken} protocol, but thrift.protocol is \"{allowed}\"")]
    Protocol {
        /// Protocol that the client speaks.
        spoken: &'static str,
        /// The setting.
        allowed: &'static str,
    },
    /// Thrift on a transport that the settings do not allow.
    #[error("messages on this connection are {spoken}, but thrift.transport is \"{allowed}\"")]
    Transport {
        /// Transport that the client uses.
        spoken: &'static str,
        /// The setting.
        allowed: &'static str,
    },
    /// A frame over the limit.
    #[error("a message of {bytes} bytes; server.max_message_bytes is {limit}")]
    TooLarge {
        /// How large it claims to be.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An unframed message over the limit.
    #[error("a message of more than {0} bytes (server.max_message_bytes)")]
    TooLong(usize),
    /// A malformed unframed message: its end is unknown.
    #[error("{0}")]
    Malformed(WireError),
}

impl From<&ProtocolError> for TApplicationException {
    fn from(protocol_error: &ProtocolError) -> Self {
        let kind = match protocol_error {
            ProtocolError::Protocol { .. } => TApplicationExceptionType::INVALID_PROTOCOL,
            ProtocolError::Transport { .. } | ProtocolError::HttpPort => {
                TApplicationExceptionType::UNSUPPORTED_CLIENT_TYPE
            }
            _ => TApplicationExceptionType::PROTOCOL_ERROR,
        };
        TApplicationException::new(kind, protocol_error.to_string())
    }
}

/// Received bytes that become messages.
#[derive(Debug)]
pub struct Messages {
    received: BytesMut,
    /// The buffer has been made large since it was last released.
    retains_large_buffer: bool,
    /// Bytes of the last message since then. The next one is likely to be similar.
    last_bytes: usize,
    wire_format: WireFormat,
    scanner: Option<MessageScanner>,
    /// The refusal, if the settings or the port do not allow this connection's protocol.
    forbidden: Option<ProtocolError>,
    max_message_bytes: usize,
}

/// Room made for the next read: small, since most connections are idle most of the time.
const READ_BYTES: usize = 4 << 10;
/// Buffer size once a large message is arriving.
const BULK_READ_BYTES: usize = 64 << 10;
/// Bytes of a refused message that are examined. Its header has at most a few hundred.
const HEAD_BYTES: usize = 1 << 10;

impl Messages {
    /// For one connection, whose first bytes are `received` and of this wire format.
    pub fn new(config: &Config, wire_format: WireFormat, received: BytesMut) -> Self {
        Self {
            received,
            retains_large_buffer: false,
            last_bytes: 0,
            wire_format,
            scanner: None,
            forbidden: check(config, wire_format).err(),
            max_message_bytes: config.server.max_message_bytes,
        }
    }

    /// For one connection of the HTTP port whose client speaks Thrift. The first message is
    /// refused.
    pub fn of_http_port(config: &Config, wire_format: WireFormat, received: BytesMut) -> Self {
        Self {
            forbidden: Some(ProtocolError::HttpPort),
            ..Self::new(config, wire_format, received)
        }
    }

    /// The buffer to read into, with room in it.
    pub fn space(&mut self) -> &mut BytesMut {
        self.retains_large_buffer |= self.is_large() || self.last_bytes > READ_BYTES;
        if let Some(bytes) = self.larger() {
            let mut larger = BytesMut::with_capacity(bytes);
            larger.extend_from_slice(&self.received);
            self.received = larger;
        } else if !self.is_large() {
            self.received.reserve(self.room());
        }
        &mut self.received
    }

    /// Whether a large message is arriving.
    fn is_large(&self) -> bool {
        self.received.len() > READ_BYTES
    }

    /// Room for the next read of a small message: enough for one as large as the last. The rest of
    /// the buffer may be too small, and the message would take two reads.
    fn room(&self) -> usize {
        READ_BYTES + self.last_bytes.min(BULK_READ_BYTES)
    }

    /// Size of the buffer that [`Self::space`] allocates for the rest of a large message when the
    /// current one is full: twice as large, but not larger than a framed message.
    fn larger(&self) -> Option<usize> {
        let (bytes, capacity) = (self.received.len(), self.received.capacity());
        if !self.is_large() || capacity - bytes >= BULK_READ_BYTES {
            return None;
        }
        let whole = self
            .frame_length()
            .filter(|_| self.wire_format.framed)
            .and_then(|length| length.checked_add(4))
            .filter(|whole| *whole > bytes);
        let wanted = (capacity * 2).max(bytes + BULK_READ_BYTES);
        match whole {
            Some(whole) if capacity >= whole => None,
            Some(whole) => Some(wanted.min(whole)),
            None => Some(wanted),
        }
    }

    /// Memory that [`Self::space`] needs, to be reserved before it is called. It includes the
    /// buffer that is replaced.
    pub fn space_bytes(&self) -> usize {
        let capacity = self.received.capacity();
        match self.larger() {
            Some(larger) => capacity + larger,
            None if self.is_large() => capacity,
            None => capacity.max(self.received.len() + self.room()),
        }
    }

    /// Makes room only for a small message at the next read.
    pub fn expect_little(&mut self) {
        self.last_bytes = 0;
    }

    /// Drops the received bytes, of a message that is refused.
    pub fn discard(&mut self) {
        self.received = BytesMut::new();
    }

    /// Memory of received bytes that are not a message yet.
    pub fn buffered_bytes(&self) -> usize {
        self.received.capacity()
    }

    /// Memory that is kept for the next message, about: at least this much once a message was large.
    pub fn kept_bytes(&self) -> usize {
        if self.retains_large_buffer {
            BULK_READ_BYTES
        } else {
            READ_BYTES
        }
    }

    /// Frees memory that the next message does not need.
    pub fn release(&mut self) {
        if self.received.is_empty() {
            self.received = BytesMut::new();
            self.retains_large_buffer = false;
            self.last_bytes = 0;
        }
    }

    /// Whether part of a message has arrived.
    pub fn has_partial(&self) -> bool {
        !self.received.is_empty()
    }

    /// How the connection speaks.
    pub fn wire_format(&self) -> WireFormat {
        self.wire_format
    }

    /// The received head of the incomplete message, without its frame length.
    pub fn partial(&self) -> Bytes {
        let unframed = self.unframed();
        Bytes::copy_from_slice(unframed.get(..HEAD_BYTES).unwrap_or(unframed))
    }

    fn unframed(&self) -> &[u8] {
        let start = if self.wire_format.framed { 4 } else { 0 };
        self.received.get(start..).unwrap_or_default()
    }

    /// The next whole message, if it has arrived.
    pub fn next_message(&mut self) -> Result<Option<(WireFormat, Bytes)>, ProtocolError> {
        if self.received.is_empty() {
            return Ok(None);
        }
        let wire_format = self.wire_format;
        if let Some(forbidden) = self.forbidden.clone() {
            return self.refuse(wire_format, forbidden);
        }
        let message = if wire_format.framed {
            self.next_framed(wire_format)?
        } else {
            self.next_unframed(wire_format.protocol)?
        };
        Ok(message.map(|message| {
            self.last_bytes = message.len();
            (wire_format, message)
        }))
    }

    /// Refuses the current message once its header is here, or cannot be had. A header has at most
    /// a few hundred bytes.
    fn refuse<T>(
        &self,
        wire_format: WireFormat,
        protocol_error: ProtocolError,
    ) -> Result<Option<T>, ProtocolError> {
        let is_whole = wire_format.framed && self.frame_length() == Some(self.unframed().len());
        match header(wire_format.protocol, self.partial()) {
            Err(WireError::Truncated { .. }) if !is_whole => Ok(None),
            _ => Err(protocol_error),
        }
    }

    fn frame_length(&self) -> Option<usize> {
        let length = self.received.first_chunk::<4>()?;
        usize::try_from(u32::from_be_bytes(*length)).ok()
    }

    fn next_framed(&mut self, wire_format: WireFormat) -> Result<Option<Bytes>, ProtocolError> {
        let Some(bytes) = self.frame_length() else {
            return Ok(None);
        };
        let limit = self.max_message_bytes;
        if bytes > limit {
            return self.refuse(wire_format, ProtocolError::TooLarge { bytes, limit });
        }
        if self.received.len() - 4 < bytes {
            return Ok(None);
        }
        self.received.advance(4);
        Ok(Some(self.received.split_to(bytes).freeze()))
    }

    fn next_unframed(&mut self, protocol: Protocol) -> Result<Option<Bytes>, ProtocolError> {
        let limit = self.max_message_bytes;
        let scanner = self
            .scanner
            .get_or_insert_with(|| MessageScanner::new(protocol, limit));
        match scanner.feed(&self.received) {
            Ok(Scan::NeedMore) => Ok(None),
            Ok(Scan::Complete { len }) => {
                scanner.restart();
                Ok(Some(self.received.split_to(len).freeze()))
            }
            Err(WireError::TooLong { limit }) => Err(ProtocolError::TooLong(limit)),
            Err(error) => Err(ProtocolError::Malformed(error)),
        }
    }
}

/// Whether the settings allow this.
fn check(config: &Config, wire_format: WireFormat) -> Result<(), ProtocolError> {
    let spoken = match wire_format.protocol {
        Protocol::Compact => "compact",
        _ => "binary",
    };
    let allowed = match config.thrift.protocol {
        ThriftProtocol::Auto => spoken,
        ThriftProtocol::Binary => "binary",
        ThriftProtocol::Compact => "compact",
    };
    if spoken != allowed {
        return Err(ProtocolError::Protocol { spoken, allowed });
    }
    let spoken = if wire_format.framed { "framed" } else { "unframed" };
    let allowed = match config.thrift.transport {
        ThriftTransport::Auto => spoken,
        ThriftTransport::Framed => "framed",
        ThriftTransport::Unframed => "unframed",
    };
    if spoken != allowed {
        return Err(ProtocolError::Transport { spoken, allowed });
    }
    Ok(())
}

fn header(protocol: Protocol, message: Bytes) -> Result<(), WireError> {
    match protocol {
        Protocol::Compact => CompactReader::new(message).message_begin(),
        _ => BinaryReader::new(message).message_begin(),
    }
    .map(drop)
}

#[cfg(test)]
mod tests;
