//! Responses to the socket of a connection.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{Connection, End};
use crate::limits::admission::{MemoryPermit, SlowClient, dropped};
use crate::limits::yields;
use crate::socket::WriteHalf;

/// A response of up to this many bytes is joined with those before it.
const JOIN_BYTES: usize = 4 << 10;
/// Responses that are ready are written together once they have this many bytes.
const WRITE_BYTES: usize = 256 << 10;
/// Most buffers of one write.
const BUFFERS: usize = 64;

/// A response to be written. It keeps its memory reservation until then.
pub(super) struct Response {
    /// The frame, without `cells`.
    pub(super) bytes: Vec<u8>,
    /// The end of the frame: a cell block with a buffer of its own.
    pub(super) cells: Vec<u8>,
    /// Memory of the response.
    pub(super) permit: MemoryPermit,
    /// Whether the connection is closed instead of this response.
    pub(super) is_cut: bool,
}

impl Response {
    pub(super) fn new(bytes: Vec<u8>, permit: MemoryPermit) -> Self {
        Self {
            bytes,
            cells: Vec::new(),
            permit,
            is_cut: false,
        }
    }

    fn len(&self) -> usize {
        self.bytes.len() + self.cells.len()
    }

    fn capacity(&self) -> usize {
        self.bytes.capacity() + self.cells.capacity()
    }

    /// The bytes behind the first `written` ones, in two buffers.
    fn after(&self, written: usize) -> [&[u8]; 2] {
        let (bytes, cells) = (&self.bytes[..], &self.cells[..]);
        match written.checked_sub(bytes.len()) {
            None => [&bytes[written..], cells],
            Some(of_cells) => [&cells[of_cells..], &[]],
        }
    }
}

/// Small responses that are joined, or a single one.
struct Piece {
    joined: Response,
    /// Number of responses.
    count: usize,
}

/// A write that the socket has not accepted.
struct Blocked {
    /// When the client must have accepted more (`server.write_timeout_ms`).
    until: Instant,
    /// Set while the responses have reserved memory: the connection ends if it makes no progress while
    /// other calls need that.
    slow: Option<SlowClient>,
}

/// Writes responses to a socket.
pub(super) struct Output {
    connection: Arc<Connection>,
    write: WriteHalf,
    /// Longest time for which the client may accept nothing.
    limit: Duration,
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that are written.
    written: usize,
    /// Number of responses in `pieces`.
    unsent: usize,
    /// Bytes of `pieces`.
    unsent_bytes: usize,
    /// Whether the last write would have blocked.
    would_block: bool,
    blocked: Option<Blocked>,
}

impl Output {
    pub(super) fn new(connection: &Arc<Connection>, write: WriteHalf) -> Self {
        Self {
            connection: Arc::clone(connection),
            write,
            limit: Duration::from_millis(connection.server.config().server.write_timeout_ms),
            pieces: VecDeque::new(),
            written: 0,
            unsent: 0,
            unsent_bytes: 0,
            would_block: false,
            blocked: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Number of responses that are not written yet.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Whether the responses that are ready should be written before more are added: they are large,
    /// and the socket accepts bytes. Otherwise calls go on, within the memory for them.
    pub(super) fn should_write(&self) -> bool {
        self.unsent_bytes >= WRITE_BYTES && !self.would_block
    }

    /// Whether no further calls should begin: the client does not read their responses, and there is
    /// no memory for more.
    pub(super) fn is_full(&self) -> bool {
        self.would_block && self.connection.server.admission().memory().room() == 0
    }

    /// Adds a response, if there is one.
    pub(super) fn extend(&mut self, response: Option<Response>) {
        if let Some(response) = response {
            self.push(response);
        }
    }

    /// Adds a response. The memory of one that waits behind others counts whole: a client that reads
    /// nothing has up to a thousand.
    pub(super) fn push(&mut self, mut response: Response) {
        self.unsent += 1;
        self.unsent_bytes += response.len();
        let is_small = response.cells.is_empty() && response.bytes.len() <= JOIN_BYTES;
        match self.pieces.back_mut() {
            Some(Piece { joined, count })
                if is_small
                    && joined.cells.is_empty()
                    && joined.bytes.len() < WRITE_BYTES
                    && !joined.is_cut =>
            {
                joined.bytes.extend_from_slice(&response.bytes);
                joined.permit.join(&mut response.permit);
                joined.permit.set(joined.bytes.capacity());
                joined.is_cut = response.is_cut;
                *count += 1;
            }
            before => {
                if before.is_some() {
                    response.permit.set_whole(response.capacity());
                }
                self.pieces.push_back(Piece {
                    joined: response,
                    count: 1,
                });
            }
        }
    }

    /// Writes all responses. May be cancelled between two writes and called again.
    pub(super) async fn write(&mut self) -> Result<(), End> {
        while !self.write_ready()? {
            self.writable().await?;
        }
        Ok(())
    }

    /// Writes as much as the socket accepts. `true` when that was everything.
    pub(super) fn write_ready(&mut self) -> Result<bool, End> {
        while !self.pieces.is_empty() {
            // A vectored write of one buffer takes the system longer than a plain one.
            let (left, sent) = if let Some(left) = self.only() {
                (left.len(), self.write.try_write(left))
            } else {
                let mut buffers = [IoSlice::new(&[]); BUFFERS];
                let filled = self.fill(&mut buffers);
                (filled, self.write.try_write_vectored(&buffers[..filled]))
            };
            let written = match sent {
                Ok(0) if left > 0 => return Err(std::io::Error::from(ErrorKind::WriteZero).into()),
                Ok(written) => written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.would_block = true;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            };
            self.advance(written)?;
        }
        Ok(true)
    }

    /// The unwritten bytes, if they are in one buffer.
    fn only(&self) -> Option<&[u8]> {
        match (self.pieces.len(), self.pieces.front()?.joined.after(self.written)) {
            (1, [left, []]) => Some(left),
            _ => None,
        }
    }

    /// Lists the unwritten bytes of the first pieces, up to one that cuts the connection. Returns the number
    /// of buffers; none is empty.
    fn fill<'a>(&'a self, buffers: &mut [IoSlice<'a>; BUFFERS]) -> usize {
        let (mut filled, mut written) = (0, self.written);
        for Piece { joined, .. } in &self.pieces {
            for left in joined.after(written).into_iter().filter(|left| !left.is_empty()) {
                let Some(buffer) = buffers.get_mut(filled) else {
                    return filled;
                };
                *buffer = IoSlice::new(left);
                filled += 1;
            }
            if joined.is_cut {
                break;
            }
            written = 0;
        }
        filled
    }

    /// Bytes that the responses have reserved.
    fn reserved(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.joined.permit.bytes()).sum()
    }

    /// Waits until the socket may accept more of the first piece.
    async fn writable(&mut self) -> Result<(), End> {
        let (limit, reserved) = (self.limit, self.reserved());
        let Some(Piece { joined, .. }) = self.pieces.front() else {
            return Ok(());
        };
        let blocked = self.blocked.get_or_insert_with(|| Blocked {
            until: Instant::now() + limit,
            slow: None,
        });
        // Responses may have been added since the last wait.
        match &blocked.slow {
            Some(slow) => slow.progress(0, reserved),
            None if reserved > 0 => {
                let address = self.connection.sender.caller.ip();
                blocked.slow = Some(joined.permit.memory().slow_client(address, reserved));
            }
            None => {}
        }
        tokio::select! {
            biased;
            writable = timeout_at(blocked.until, self.write.writable()) => {
                return Ok(writable.map_err(|_| no_response_was_read(limit))??);
            }
            () = dropped(blocked.slow.as_ref()) => {}
        }
        // The runtime may be late: the socket itself tells whether the client goes on.
        let [left, behind] = joined.after(self.written);
        let left = if left.is_empty() { behind } else { left };
        let written = self.write.send_now(left)?;
        let slow = blocked.slow.as_ref();
        if !slow.is_some_and(|slow| slow.is_reprieved(written)) {
            return Err(End::Slow);
        }
        self.advance(written)
    }

    /// Counts bytes of the first pieces as written. Fails when the connection is to be cut there.
    fn advance(&mut self, written: usize) -> Result<(), End> {
        yields::record_sends();
        self.written += written;
        self.unsent_bytes -= written;
        self.would_block = false;
        let connections = &self.connection.server.load().connections;
        connections.sent_bytes.add(written as u64);
        let reserved = self.blocked.as_ref().map_or(0, |_| self.reserved());
        if let Some(blocked) = &mut self.blocked {
            // Each write that the client accepts restarts the timeout.
            blocked.until = Instant::now() + self.limit;
            if let Some(slow) = &blocked.slow {
                slow.progress(written, reserved);
            }
        }
        while let Some(Piece { joined, count }) = self.pieces.front()
            && self.written >= joined.len()
        {
            let is_cut = joined.is_cut;
            self.unsent -= count;
            self.written -= joined.len();
            self.blocked = None;
            self.pieces.pop_front();
            if is_cut {
                return Err(End::Fault);
            }
        }
        Ok(())
    }

    /// Ends the sending half of the connection.
    pub(super) async fn shutdown(&mut self) -> Result<(), End> {
        Ok(self.write.shutdown().await?)
    }
}

fn no_response_was_read(limit: Duration) -> std::io::Error {
    let message = format!("the client read no response for {limit:?} (server.write_timeout_ms)");
    std::io::Error::new(ErrorKind::TimedOut, message)
}
