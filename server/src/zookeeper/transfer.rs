//! Packets and responses between a client and its session: their time limits and their memory.
//!
//! - A packet has one deadline from its first byte on. A client that sends single bytes does not
//!   extend it.
//! - Packets beyond the free bytes of a connection are reserved from the memory for calls before they
//!   are read, and so are responses that list tables before they are made. A client that makes no
//!   progress loses its connection when other calls need the memory.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::seeded;
use basalt_idl::zookeeper::PACKET_BYTES_MAX;
use bytes::BytesMut;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::End;
use crate::limits::admission::{Memory, MemoryPermit, Purpose, SlowClient, UNCOUNTED_BYTES, dropped};
use crate::server::Server;
use crate::service::listing::{self, Listing};
use crate::socket::{ReadHalf, WriteHalf};

/// Least room for a read.
const READ_BYTES: usize = 64;

/// Limits of a session, and the memory that it holds.
pub(super) struct Transfer {
    memory: Arc<Memory>,
    address: Option<IpAddr>,
    /// The session's timeout, once it is open.
    pub(super) session: Option<Duration>,
    message_limit: Duration,
    write_limit: Duration,
    /// When the first byte of the packet at the front of the received bytes arrived.
    began: Option<Instant>,
    /// Memory of the received bytes.
    packet: MemoryPermit,
    /// Set while a large packet arrives.
    slow: Option<SlowClient>,
    /// Memory of the responses.
    responses: MemoryPermit,
}

impl Transfer {
    pub(super) fn new(server: &Server, address: Option<IpAddr>) -> Self {
        let (config, memory) = (&server.config().server, server.admission().memory());
        Self {
            memory: Arc::clone(memory),
            address,
            session: None,
            message_limit: Duration::from_millis(config.message_timeout_ms),
            write_limit: Duration::from_millis(config.write_timeout_ms),
            began: None,
            packet: MemoryPermit::empty(memory),
            slow: None,
            responses: MemoryPermit::empty(memory),
        }
    }

    /// Reserves the response to a request. Only the list of tables is large.
    pub(super) async fn reserve_response(&mut self, server: &Server, packet: &[u8]) -> Result<(), End> {
        if !packet.windows(TABLES.len()).any(|part| part == TABLES) {
            return Ok(());
        }
        let bytes = listing::bytes(server, Listing::Names);
        if bytes > UNCOUNTED_BYTES as u64 {
            let reserved = self.responses.add(bytes, Purpose::Serve).await;
            reserved.inspect_err(|busy| server.admission().count(*busy))?;
        }
        Ok(())
    }

    /// Reads bytes that have arrived; 0 at the end. `is_new`: those before them were complete packets,
    /// so the rest begins a packet.
    pub(super) async fn receive(
        &mut self,
        read_half: &mut ReadHalf,
        received: &mut BytesMut,
        is_new: bool,
    ) -> Result<usize, End> {
        if received.is_empty() {
            *received = BytesMut::new();
            self.packet.set(0);
            (self.began, self.slow) = (None, None);
        } else if is_new || self.began.is_none() || seeded::is_on("packets-awaited-for-ever") {
            self.began = Some(Instant::now());
        }
        self.reserve_packet(received).await?;
        received.reserve(READ_BYTES);
        let silent = self.session.unwrap_or(self.message_limit);
        let until = match self.began {
            Some(began) => began + self.message_limit,
            None => Instant::now() + silent,
        };
        loop {
            let read = tokio::select! {
                biased;
                read = timeout_at(until, read_half.read_buf(received)) => read,
                () = dropped(self.slow.as_ref()) => {
                    let slow = self.slow.as_ref();
                    if slow.is_some_and(|slow| slow.is_reprieved(read_half.unread())) {
                        continue;
                    }
                    return Err(self.memory.slow_busy().into());
                }
            };
            let count = read.map_err(|_| match self.began {
                Some(_) => End::SlowPacket(self.message_limit),
                None => End::Silent(silent),
            })??;
            if let Some(slow) = &self.slow {
                slow.progress(count, self.packet.bytes());
            }
            return Ok(count);
        }
    }

    /// Reserves the packet at the front of `received`, whose length has arrived, and makes room for it.
    async fn reserve_packet(&mut self, received: &mut BytesMut) -> Result<(), End> {
        let Some(length) = received.first_chunk::<4>() else {
            return Ok(());
        };
        let whole = 4 + (u32::from_be_bytes(*length) as usize).min(PACKET_BYTES_MAX);
        self.packet.raise(whole.max(received.len())).await?;
        if self.packet.has_bytes() && self.slow.is_none() {
            self.slow = Some(self.memory.slow_client(self.address, self.packet.bytes()));
        }
        Ok(())
    }

    /// Sends the responses and empties the buffer. Sends nothing more once the server stops.
    pub(super) async fn send(
        &mut self,
        write: &WriteHalf,
        out: &mut Vec<u8>,
        stop: &CancellationToken,
    ) -> Result<(), End> {
        self.responses.set(out.capacity());
        tokio::select! {
            sent = self.send_all(write, out) => sent?,
            () = stop.cancelled() => {}
        }
        if out.capacity() > UNCOUNTED_BYTES {
            *out = Vec::new();
        }
        out.clear();
        self.responses.set(0);
        Ok(())
    }

    async fn send_all(&self, write: &WriteHalf, mut left: &[u8]) -> Result<(), End> {
        let reserved = self.responses.bytes();
        let mut slow = None;
        while !left.is_empty() {
            let moved = match write.try_write(left) {
                Ok(moved) => moved,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if reserved > 0 && slow.is_none() {
                        slow = Some(self.memory.slow_client(self.address, reserved));
                    }
                    self.wait(write, left, slow.as_ref()).await?
                }
                Err(error) => return Err(error.into()),
            };
            if let Some(slow) = &slow {
                slow.progress(moved, reserved);
            }
            left = left.split_at(moved).1;
        }
        Ok(())
    }

    /// Waits until the socket accepts more; returns the number of bytes that it has accepted already.
    async fn wait(&self, write: &WriteHalf, left: &[u8], slow: Option<&SlowClient>) -> Result<usize, End> {
        let limit = self.write_limit;
        tokio::select! {
            biased;
            writable = timeout(limit, write.writable()) => {
                writable.map_err(|_| End::SlowReader(limit))??;
                Ok(0)
            }
            () = dropped(slow) => {
                let moved = write.send_now(left)?;
                if slow.is_some_and(|slow| slow.is_reprieved(moved)) {
                    return Ok(moved);
                }
                Err(self.memory.slow_busy().into())
            }
        }
    }
}

/// The last component of the node whose children are the tables.
const TABLES: &[u8] = b"/table";

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::config::Config;
    use crate::socket::Socket;

    async fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, Socket::new(listener.accept().await.unwrap().0))
    }

    /// A byte now and then does not start the time of a packet again. A packet that is complete does.
    #[tokio::test(start_paused = true)]
    async fn a_packet_has_one_deadline() {
        let server = crate::rig::server(Config::default());
        let limit = Duration::from_millis(server.config().server.message_timeout_ms);
        let (mut client, mut socket) = pair().await;
        let mut transfer = Transfer::new(&server, None);
        let (mut received, began) = (BytesMut::from(&[0, 0, 1][..]), Instant::now());
        let sending = tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(limit / 4).await;
            }
        });
        let mut is_new = true;
        let end = loop {
            match transfer.receive(&mut socket.read, &mut received, is_new).await {
                Ok(_) => is_new = false,
                Err(end) => break end,
            }
            assert!(began.elapsed() < 4 * limit, "the packet is awaited for ever");
        };
        assert!(matches!(end, End::SlowPacket(_)), "{end}");
        sending.abort();
    }

    /// A large packet counts from its length on, until it was taken.
    #[tokio::test]
    async fn a_large_packet_is_reserved() {
        let server = crate::rig::server(Config::default());
        let memory = server.admission().memory();
        let (mut client, mut socket) = pair().await;
        let mut transfer = Transfer::new(&server, None);
        let mut received = BytesMut::from(&(PACKET_BYTES_MAX as u32).to_be_bytes()[..]);
        client.write_all(b"x").await.unwrap();
        transfer
            .receive(&mut socket.read, &mut received, true)
            .await
            .unwrap();
        assert_eq!(memory.used(), (4 + PACKET_BYTES_MAX - UNCOUNTED_BYTES) as u64);
        assert_eq!(memory.of_slow_clients(), memory.used());
        received.clear();
        client.write_all(b"x").await.unwrap();
        transfer
            .receive(&mut socket.read, &mut received, true)
            .await
            .unwrap();
        assert_eq!(memory.used(), 0);
    }
}
