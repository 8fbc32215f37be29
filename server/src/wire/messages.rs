//! From received bytes to whole messages, without I/O.
//!
//! 1. The first bytes tell protocol and framing ([`basalt_idl::wire::detect()`]), unless settings pin them.
//! 2. A framed message is complete when its length says so; an unframed one when the scanner, which walks it as it arrives,
//!    has met its end.
//!
//! Invariant: memory grows only with bytes that have arrived, never with a length that a message claims.

use basalt_idl::wire::{Detected, MessageScanner, Protocol, Scan, detect};
use bytes::{Buf, Bytes, BytesMut};

use crate::config::{Thrift, ThriftProtocol, ThriftTransport};

/// How a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speech {
    /// Of the messages it sends.
    pub(super) protocol: Protocol,
    /// Whether each message has a length in front.
    pub(super) framed: bool,
}

/// Why the bytes cannot be understood. The connection ends, after `answer` if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Garbled {
    /// An HTTP request on the Thrift port.
    #[error("an HTTP request on the Thrift port")]
    Http,
    /// Neither Thrift nor anything known.
    #[error("the first bytes are no Thrift message{}", hint(*.0))]
    NotThrift(Detected),
    /// Thrift of another kind than the settings allow.
    #[error("the client speaks {spoken}, but {setting} is pinned")]
    Pinned {
        /// What the client speaks.
        spoken: String,
        /// Which setting forbids it.
        setting: &'static str,
    },
    /// A frame or message over the limit.
    #[error("a message of {bytes} bytes; thrift.max_message_bytes is {limit}")]
    TooLarge {
        /// How large it claims to be, or how much has arrived.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A malformed unframed message: its end is unknown.
    #[error("{0}")]
    Malformed(basalt_idl::wire::WireError),
}

fn hint(detected: Detected) -> &'static str {
    match detected {
        Detected::Tls => ": they are a TLS handshake, and TLS is not configured",
        Detected::Sasl => ": they are a SASL handshake, and SASL is not configured",
        _ => "",
    }
}

/// Bytes on their way to messages.
#[derive(Debug)]
pub(super) struct Messages {
    received: BytesMut,
    speech: Option<Speech>,
    scanner: Option<MessageScanner>,
    max_message_bytes: usize,
    pinned_protocol: ThriftProtocol,
    pinned_transport: ThriftTransport,
}

/// Room made for the next read: small, since most connections are idle most of the time.
const READ_BYTES: usize = 4 << 10;
/// Room made once a large message is on its way.
const BULK_READ_BYTES: usize = 64 << 10;

impl Messages {
    pub(super) fn new(config: &Thrift) -> Self {
        Self {
            received: BytesMut::new(),
            speech: None,
            scanner: None,
            max_message_bytes: config.max_message_bytes,
            pinned_protocol: config.protocol,
            pinned_transport: config.transport,
        }
    }

    /// The buffer to read into, with room in it.
    pub(super) fn space(&mut self) -> &mut BytesMut {
        let room = if self.received.len() > READ_BYTES {
            BULK_READ_BYTES
        } else {
            READ_BYTES
        };
        self.received.reserve(room);
        &mut self.received
    }

    /// Whether part of a message has arrived.
    pub(super) fn has_partial(&self) -> bool {
        !self.received.is_empty()
    }

    /// How the connection speaks, once known.
    pub(super) fn speech(&self) -> Option<Speech> {
        self.speech
    }

    /// What has arrived of the message that is not complete, without its frame length.
    pub(super) fn partial(&self) -> Bytes {
        let skip = if self.speech.is_some_and(|speech| speech.framed) {
            4
        } else {
            0
        };
        Bytes::copy_from_slice(self.received.get(skip..).unwrap_or_default())
    }

    /// The next whole message, if it has arrived.
    pub(super) fn next(&mut self) -> Result<Option<(Speech, Bytes)>, Garbled> {
        if self.received.is_empty() {
            return Ok(None);
        }
        let Some(speech) = self.detected()? else {
            return Ok(None);
        };
        let message = if speech.framed {
            self.next_framed()?
        } else {
            self.next_unframed(speech.protocol)?
        };
        Ok(message.map(|message| (speech, message)))
    }

    fn detected(&mut self) -> Result<Option<Speech>, Garbled> {
        if self.speech.is_some() {
            return Ok(self.speech);
        }
        let speech = match detect(&self.received) {
            Detected::NeedMore => return Ok(None),
            Detected::Thrift { protocol, framed } => Speech { protocol, framed },
            Detected::Http => return Err(Garbled::Http),
            other => return Err(Garbled::NotThrift(other)),
        };
        let compact = speech.protocol == Protocol::Compact;
        let protocol_allowed = match self.pinned_protocol {
            ThriftProtocol::Auto => true,
            ThriftProtocol::Binary => !compact,
            ThriftProtocol::Compact => compact,
        };
        let transport_allowed = match self.pinned_transport {
            ThriftTransport::Auto => true,
            ThriftTransport::Framed => speech.framed,
            ThriftTransport::Unframed => !speech.framed,
        };
        for (allowed, setting) in [
            (protocol_allowed, "thrift.protocol"),
            (transport_allowed, "thrift.transport"),
        ] {
            if !allowed {
                let framing = if speech.framed { "framed" } else { "unframed" };
                return Err(Garbled::Pinned {
                    spoken: format!("{framing} {:?}", speech.protocol),
                    setting,
                });
            }
        }
        self.speech = Some(speech);
        Ok(self.speech)
    }

    fn next_framed(&mut self) -> Result<Option<Bytes>, Garbled> {
        let Some(length) = self.received.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.max_message_bytes {
            return Err(Garbled::TooLarge {
                bytes: length,
                limit: self.max_message_bytes,
            });
        }
        if self.received.len() - 4 < length {
            return Ok(None);
        }
        self.received.advance(4);
        Ok(Some(self.received.split_to(length).freeze()))
    }

    fn next_unframed(&mut self, protocol: Protocol) -> Result<Option<Bytes>, Garbled> {
        let limit = self.max_message_bytes;
        let scanner = self
            .scanner
            .get_or_insert_with(|| MessageScanner::new(protocol, limit));
        match scanner.feed(&self.received).map_err(Garbled::Malformed)? {
            Scan::NeedMore => Ok(None),
            Scan::Complete { len } => {
                self.scanner = None;
                Ok(Some(self.received.split_to(len).freeze()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_idl::wire::{BinaryWriter, MessageKind, Writer};

    fn call(name: &str) -> Vec<u8> {
        let mut message = Vec::new();
        let mut writer = BinaryWriter::new(&mut message);
        writer.message_begin(name, MessageKind::Call, 1);
        writer.struct_begin();
        writer.struct_end();
        message
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut frame = (message.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(message);
        frame
    }

    /// Two messages, cut at every place, in both framings: always the same two messages.
    #[test]
    fn pieces_make_messages() {
        let (first, second) = (call("getTableNames"), call("getClusterId"));
        for frame in [true, false] {
            let wrap = |message: &[u8]| if frame { framed(message) } else { message.to_vec() };
            let stream = [wrap(&first), wrap(&second)].concat();
            for cut in 0..=stream.len() {
                let mut messages = Messages::new(&Thrift::default());
                let mut got = Vec::new();
                for piece in [&stream[..cut], &stream[cut..]] {
                    messages.space().extend_from_slice(piece);
                    while let Some((speech, message)) = messages.next().unwrap() {
                        assert_eq!(speech.framed, frame);
                        got.push(message.to_vec());
                    }
                }
                assert_eq!(
                    got,
                    [first.clone(), second.clone()],
                    "framed {frame}, cut at {cut}"
                );
                assert!(!messages.has_partial());
            }
        }
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_bytes_arrive() {
        let mut messages = Messages::new(&Thrift {
            max_message_bytes: 1 << 20,
            ..Thrift::default()
        });
        messages
            .space()
            .extend_from_slice(b"\x00\xff\xff\xff\x80\x01\x00\x01");
        assert_eq!(
            messages.next().unwrap_err(),
            Garbled::TooLarge {
                bytes: 0xff_ffff,
                limit: 1 << 20
            }
        );
    }

    #[test]
    fn strangers_are_told_apart() {
        for (bytes, text) in [
            (&b"GET / HTTP/1.1\r\n"[..], "HTTP"),
            (b"\x16\x03\x01\x02\x00\x01", "TLS"),
            (b"SSH-2.0-x", "no Thrift"),
            (b"\xff\xff\xff\xff\xff", "no Thrift"),
        ] {
            let mut messages = Messages::new(&Thrift::default());
            messages.space().extend_from_slice(bytes);
            let error = messages.next().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_pinned_transport_refuses_the_other() {
        let mut messages = Messages::new(&Thrift {
            transport: ThriftTransport::Framed,
            ..Thrift::default()
        });
        messages.space().extend_from_slice(&call("getTableNames"));
        assert!(
            messages
                .next()
                .unwrap_err()
                .to_string()
                .contains("thrift.transport")
        );
    }
}
