//! Replies of a connection, one after the other.

use std::net::SocketAddr;
use std::ops::Range;

use basalt_idl::wire::{MessageScanner, Protocol, Scan};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::calls::{Exchange, Known, Wire};
use super::native;
use crate::error::{Error, Result};

/// Longest reply.
const REPLY_BYTES_MAX: usize = 256 << 20;

/// Room for a refusal behind a reply.
const REFUSAL_BYTES: usize = 4 << 10;
/// Most bytes of replies that are read together, unless one has more. With the room of a single reply, a
/// client that has many calls in flight would pay two system calls for each of them.
const READ_BYTES_MAX: usize = 256 << 10;

/// The error of a connection that broke.
pub(super) fn broken(address: SocketAddr, error: &dyn std::fmt::Display) -> Error {
    Error::Different(format!("the connection to {address} broke: {error}"))
}

/// Exceptions by which a server refuses a call because it has too much to do: HBase's, and Basalt's with it.
const REFUSALS: [&[u8]; 3] = [
    b"RegionTooBusyException",
    b"CallQueueTooBigException",
    b"CallDroppedException",
];

/// Bytes of an unknown reply that its error shows.
const SHOWN_BYTES: usize = 300;

/// Whether a reply that is not the known one refuses the call.
pub(super) fn is_refusal(reply: &[u8]) -> bool {
    let holds = |name: &&[u8]| reply.windows(name.len()).any(|part| part == *name);
    REFUSALS.iter().any(holds)
}

/// The error of a reply that is neither known nor a refusal.
pub(super) fn different(address: SocketAddr, reply: &[u8]) -> Error {
    let shown = &reply[..reply.len().min(SHOWN_BYTES)];
    Error::Different(format!(
        "{address} gave another answer than before, and it is no refusal: {:?}",
        String::from_utf8_lossy(shown)
    ))
}

/// A reply, as [`Replies::receive`] judges it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// The one that is known, or could be.
    Known,
    /// Another one, a refusal for example.
    Other(&'a [u8]),
}

/// Receives a connection's replies, one after the other, into memory that is used again.
#[derive(Debug)]
pub(super) struct Replies {
    wire: Wire,
    buffer: Vec<u8>,
    /// Received bytes in the buffer that belong to no reply yet.
    arrived: Range<usize>,
}

impl Replies {
    /// Receives into a buffer of this size at first.
    pub(super) fn new(buffer_bytes: usize, wire: Wire) -> Replies {
        Replies {
            wire,
            buffer: vec![0; buffer_bytes],
            arrived: 0..0,
        }
    }

    /// For replies to these messages, of which `calls` are in flight. A refusal may be longer than they
    /// are.
    pub(super) fn to(exchange: &Exchange, calls: u16) -> Replies {
        let reply = exchange.replies[0].len() + REFUSAL_BYTES;
        let together = (reply * usize::from(calls)).min(READ_BYTES_MAX);
        Replies::new(together.max(reply), exchange.wire)
    }

    /// Receives the reply to a message. Most are equal to the known ones: these are not looked into.
    pub(super) async fn receive(
        &mut self,
        stream: &mut TcpStream,
        address: SocketAddr,
        exchange: &Exchange,
        message: usize,
    ) -> Result<Reply<'_>> {
        let known = (exchange.known == Known::Equal).then_some(&exchange.replies[message][..]);
        let (reply, is_known) = self.next(stream, address, known).await?;
        Ok(if is_known || exchange.is_known(message, reply) {
            Reply::Known
        } else {
            Reply::Other(reply)
        })
    }

    /// The next message, which is whole when its bytes say so: a frame of native RPC, for example.
    pub(super) async fn whole(&mut self, stream: &mut TcpStream, address: SocketAddr) -> Result<&[u8]> {
        Ok(self.next(stream, address, None).await?.0)
    }

    /// Whether a whole frame of native RPC has arrived.
    pub(super) fn has_frame(&self) -> bool {
        let arrived = &self.buffer[self.arrived.clone()];
        native::frame_len(arrived).is_some_and(|length| length <= arrived.len())
    }

    /// The next message of the connection, and whether it is the known one; if not, it is whole when its
    /// bytes say so.
    async fn next(
        &mut self,
        stream: &mut TcpStream,
        address: SocketAddr,
        known: Option<&[u8]>,
    ) -> Result<(&[u8], bool)> {
        let (length, is_known) = loop {
            let arrived = &self.buffer[self.arrived.clone()];
            if let Some(known) = known
                && arrived.starts_with(known)
            {
                break (known.len(), true);
            }
            if self.wire == Wire::Native {
                if self.has_frame() {
                    break (native::frame_len(arrived).unwrap_or_default(), false);
                }
            } else if !arrived.is_empty() {
                let mut scanner = MessageScanner::new(Protocol::BinaryStrict, REPLY_BYTES_MAX);
                match scanner.feed(arrived) {
                    Ok(Scan::Complete { len }) => break (len, false),
                    Ok(Scan::NeedMore) => {}
                    // The echo's replies are no messages; a piece of the known one may be anything.
                    Err(_) if known.is_some_and(|known| known.starts_with(arrived)) => {}
                    Err(error) => return Err(broken(address, &error)),
                }
            }
            self.read(stream, address).await?;
        };
        let start = self.arrived.start;
        self.arrived.start += length;
        Ok((&self.buffer[start..start + length], is_known))
    }

    async fn read(&mut self, stream: &mut TcpStream, address: SocketAddr) -> Result<()> {
        if self.arrived.is_empty() {
            self.arrived = 0..0;
        } else if self.arrived.end == self.buffer.len() {
            self.buffer.copy_within(self.arrived.clone(), 0);
            self.arrived = 0..self.arrived.len();
            if self.arrived.end == self.buffer.len() {
                self.buffer.resize(self.arrived.end * 2, 0);
            }
        }
        let read = stream.read(&mut self.buffer[self.arrived.end..]).await;
        match read.map_err(|error| broken(address, &error))? {
            0 => Err(broken(address, &"the server closed it")),
            count => {
                self.arrived.end += count;
                Ok(())
            }
        }
    }
}
