//! The pieces in which a connection's bytes are wrapped after a login with Kerberos (HBase:
//! `SaslWrapHandler`; Thrift: `TSaslTransport`).
//!
//! ```text
//! both ways: int32 length | wrapped bytes        and again; unwrapped they are one stream
//! ```
//!
//! The state is behind one lock, which both halves take for the time of a read or write of what is there;
//! none waits under it. Below may be TCP or TLS.
//!
//! A wrapped piece can be used only whole. Clients choose its length: HBase's send a call in one piece. So
//! one is as long as a message at most, its buffer grows with the bytes that have arrived, and its memory is
//! that for calls (`requests.memory_bytes`).

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::task::{Context, Poll, ready};

use basalt_security::kerberos::Wrap;
use bytes::{Buf, BytesMut};
use parking_lot::Mutex;

/// More bytes than wrapping, and a message's own frame, add to a message.
const OVERHEAD: usize = 4 << 10;
/// Room for a read.
const READ_BYTES: usize = 16 << 10;

/// Memory for calls that is reserved for pieces.
pub(crate) trait Reserve: Send {
    /// Reserves for buffers of this size; `false` if there is no memory for them.
    fn try_raise(&mut self, bytes: usize) -> bool;
    /// Releases what buffers of this size do not need.
    fn lower(&mut self, bytes: usize);
}

/// The protection of a connection.
pub(crate) struct Wrapped(Mutex<State>);

struct State {
    wrap: Box<dyn Wrap>,
    /// Longest wrapped piece of the client.
    max: usize,
    /// Wrapped bytes that have arrived.
    arrived: BytesMut,
    /// Bytes that were unwrapped and not read.
    plain: BytesMut,
    /// Memory of both.
    permit: Box<dyn Reserve>,
    /// A wrapped piece with its length, and how much of it has left.
    outgoing: (Vec<u8>, usize),
    /// Bytes that `outgoing` stands for.
    unsent: usize,
}

impl fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wrapped")
    }
}

impl Wrapped {
    /// `arrived` are wrapped bytes that were read with the login. The client's messages have at most
    /// `message_bytes_max` bytes.
    pub(crate) fn new(
        wrap: Box<dyn Wrap>,
        arrived: BytesMut,
        message_bytes_max: usize,
        permit: Box<dyn Reserve>,
    ) -> Self {
        Self(Mutex::new(State {
            wrap,
            max: message_bytes_max.saturating_add(OVERHEAD),
            arrived,
            plain: BytesMut::new(),
            permit,
            outgoing: (Vec::new(), 0),
            unsent: 0,
        }))
    }

    /// Whether a read would return bytes, or an error, without the socket.
    pub(super) fn has_plaintext(&self) -> bool {
        let state = self.0.lock();
        !state.plain.is_empty()
            || (state.arrived.first_chunk::<4>())
                .is_some_and(|length| state.arrived.len() - 4 >= u32::from_be_bytes(*length) as usize)
    }

    /// Reads up to `most` bytes, and passes them to `put`; 0 at the end. `receive` reads from below into
    /// the room of a buffer.
    pub(super) fn poll_read(
        &self,
        context: &mut Context<'_>,
        most: usize,
        put: &mut dyn FnMut(&[u8]),
        mut receive: impl FnMut(&mut Context<'_>, &mut BytesMut) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let state = &mut *self.0.lock();
        loop {
            if !state.plain.is_empty() {
                let count = state.plain.len().min(most);
                put(&state.plain[..count]);
                state.plain.advance(count);
                if state.plain.is_empty() {
                    state.plain = BytesMut::new();
                    state.permit.lower(state.arrived.len());
                }
                return Poll::Ready(Ok(count));
            }
            if state.unwrap_next()? {
                continue;
            }
            state.arrived.reserve(READ_BYTES);
            if ready!(receive(context, &mut state.arrived))? == 0 {
                return Poll::Ready(Ok(0));
            }
        }
    }

    /// Wraps and writes; see the module `socket` for the rule about repeated writes. `send` writes to what
    /// is below, which has the same rule.
    pub(super) fn write(
        &self,
        pieces: &[IoSlice<'_>],
        mut send: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let state = &mut *self.0.lock();
        if state.unsent == 0 {
            state.wrap_next(pieces)?;
        }
        let (wrapped, sent) = &mut state.outgoing;
        while *sent < wrapped.len() {
            match send(&wrapped[*sent..])? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => *sent += count,
            }
        }
        state.outgoing = (Vec::new(), 0);
        Ok(std::mem::take(&mut state.unsent))
    }
}

impl State {
    /// Unwraps the next piece, if it has arrived. Fails if it is too long, or was changed.
    fn unwrap_next(&mut self) -> io::Result<bool> {
        let Some(length) = self.arrived.first_chunk::<4>() else {
            return Ok(false);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.max {
            let text = format!(
                "a wrapped piece of {length} bytes; the limit is {} (server.max_message_bytes)",
                self.max
            );
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        let is_whole = self.arrived.len() - 4 >= length;
        // A whole piece is there twice while it is unwrapped.
        let needed = if is_whole {
            2 * length
        } else {
            self.arrived.len() + READ_BYTES
        };
        if !self.permit.try_raise(needed) {
            let text = format!("no memory for a wrapped piece of {length} bytes (requests.memory_bytes)");
            return Err(io::Error::new(ErrorKind::OutOfMemory, text));
        }
        if !is_whole {
            return Ok(false);
        }
        self.arrived.advance(4);
        let piece = self.arrived.split_to(length);
        let plain = self.wrap.unwrap(&piece).map_err(|error| {
            io::Error::new(
                ErrorKind::InvalidData,
                format!("a wrapped piece is wrong: {error}"),
            )
        })?;
        self.plain = BytesMut::from(&plain[..]);
        if self.arrived.is_empty() {
            self.arrived = BytesMut::new();
        }
        Ok(true)
    }

    /// Wraps the first bytes.
    fn wrap_next(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        let most = self.wrap.piece_bytes_max();
        let mut plain = Vec::new();
        for piece in pieces {
            let part = piece.len().min(most - plain.len());
            plain.extend_from_slice(&piece[..part]);
        }
        if plain.is_empty() {
            return Ok(());
        }
        let wrapped = self.wrap.wrap(&plain).map_err(io::Error::other)?;
        let length = u32::try_from(wrapped.len()).map_err(io::Error::other)?;
        self.outgoing = ([&length.to_be_bytes()[..], &wrapped].concat(), 0);
        self.unsent = plain.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use proptest::prelude::*;

    use super::*;

    /// A limit of bytes for one connection.
    struct Least(usize);

    impl Reserve for Least {
        fn try_raise(&mut self, bytes: usize) -> bool {
            bytes <= self.0
        }

        fn lower(&mut self, bytes: usize) {
            assert!(bytes <= self.0);
        }
    }

    /// Turns each bit, and puts a sum behind: enough to notice changed bytes.
    #[derive(Debug)]
    struct Turned;

    impl Wrap for Turned {
        fn piece_bytes_max(&self) -> usize {
            100
        }

        fn wrap(&mut self, piece: &[u8]) -> Result<Vec<u8>, String> {
            let mut wrapped: Vec<u8> = piece.iter().map(|byte| !byte).collect();
            wrapped.push(piece.iter().fold(7, |sum, byte| sum ^ byte));
            Ok(wrapped)
        }

        fn unwrap(&mut self, piece: &[u8]) -> Result<Vec<u8>, String> {
            let (sum, turned) = piece.split_last().ok_or("it is empty")?;
            let plain: Vec<u8> = turned.iter().map(|byte| !byte).collect();
            if plain.iter().fold(7, |sum, byte| sum ^ byte) == *sum {
                Ok(plain)
            } else {
                Err("its sum is wrong".into())
            }
        }
    }

    fn wrapped(memory_bytes: usize) -> Wrapped {
        Wrapped::new(
            Box::new(Turned),
            BytesMut::new(),
            1 << 20,
            Box::new(Least(memory_bytes)),
        )
    }

    /// Wraps `bytes` as a client does, in pieces of this length.
    fn of_client(bytes: &[u8], length: usize) -> Vec<u8> {
        let pieces = bytes.chunks(length).map(|piece| {
            let wrapped = Turned.wrap(piece).unwrap();
            [&(wrapped.len() as u32).to_be_bytes()[..], &wrapped].concat()
        });
        pieces.collect::<Vec<_>>().concat()
    }

    /// Reads everything that `sent` has, which arrives in reads of this length.
    fn read_all(wrapped: &Wrapped, sent: &[u8], read: usize) -> io::Result<Vec<u8>> {
        let (mut left, mut plain) = (sent, Vec::new());
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let received = wrapped.poll_read(
                &mut context,
                64,
                &mut |bytes| plain.extend_from_slice(bytes),
                |_, into| {
                    let count = left.len().min(read);
                    into.extend_from_slice(&left[..count]);
                    left = &left[count..];
                    Poll::Ready(Ok(count))
                },
            );
            match received {
                Poll::Ready(Ok(0)) => return Ok(plain),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => unreachable!("the socket has bytes or its end"),
            }
        }
    }

    #[test]
    fn pieces_of_any_length_are_one_stream() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
        for (piece, read) in [(1, 1_000), (7, 3), (90_000, 16 << 10), (200_000, 1)] {
            let plain = read_all(&wrapped(10 << 20), &of_client(&bytes, piece), read).unwrap();
            assert!(plain == bytes, "{piece} {read}");
        }
    }

    #[test]
    fn a_piece_that_is_too_long_or_wrong_is_refused() {
        let refused =
            |sent: &[u8], memory| read_all(&wrapped(memory), sent, 1 << 10).unwrap_err().to_string();
        let long = refused(&u32::MAX.to_be_bytes(), 10 << 20);
        assert!(long.contains("server.max_message_bytes"), "{long}");
        let mut changed = of_client(b"a call", 100);
        changed[6] ^= 1;
        assert!(refused(&changed, 10 << 20).contains("its sum is wrong"));
        assert!(refused(&[0; 4], 10 << 20).contains("it is empty"));
        let memory = refused(&of_client(&vec![7; 500_000], 500_000), 100_000);
        assert!(memory.contains("requests.memory_bytes"), "{memory}");
    }

    /// A write that would block is repeated with the same bytes, and counts when its piece has left.
    #[test]
    fn a_piece_counts_as_written_when_all_of_it_has_left() {
        let (wrapped, mut sent) = (wrapped(1 << 20), Vec::new());
        let bytes: Vec<u8> = (0..250_u8).collect();
        let (mut written, mut refusals) = (0, 0);
        while written < bytes.len() {
            let (first, second) = bytes[written..].split_at((bytes.len() - written) / 2);
            let mut accepts = 1;
            let result = wrapped.write(&[IoSlice::new(first), IoSlice::new(second)], |left| {
                if accepts == 0 {
                    return Err(ErrorKind::WouldBlock.into());
                }
                accepts -= 1;
                let count = left.len().min(60);
                sent.extend_from_slice(&left[..count]);
                Ok(count)
            });
            match result {
                Ok(count) => written += count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    refusals += 1;
                }
            }
        }
        assert_eq!(refusals, 2);
        assert_eq!(sent, of_client(&bytes, 100));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(prop_oneof![4 => Just(0), 1 => any::<u8>()], 0..200), read in 1_usize..40) {
            let _ = read_all(&wrapped(1 << 20), &bytes, read);
        }
    }
}
