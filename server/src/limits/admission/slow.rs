//! Slow clients that hold memory: they are dropped first when memory is short.
//!
//! The client alone decides how long a large message takes to arrive, or a large reply takes to be
//! sent. It is registered here for that time ([`SlowClient`]).
//!
//! - **Credit.** Each byte that a client moves earns it time, at [`LEAST_BYTES_PER_SECOND`]. Credit
//!   beyond [`CREDIT_MAX`] is lost, so a fast beginning does not make up for a long pause. A client
//!   without credit is slow.
//! - **Dropping.** A slow client keeps its memory until another call needs it. Then slow clients of
//!   the address that holds most are dropped, the one without credit for longest first, until their
//!   memory is enough.
//! - **Reprieve.** A busy server reads late, and the client is not slow for that. The owner of a dropped
//!   client first looks into the socket, past the runtime's knowledge of it (`ReadHalf::unread`,
//!   `WriteHalf::send_now`). Bytes that have moved there are credit from now on, and a client with credit
//!   goes on ([`SlowClient::is_reprieved`]). The HTTP library keeps its sockets to itself: there, only credit
//!   counts that was earned in the meantime.
//!
//! Invariant: bytes of clients that were dropped but have not released them yet count as released,
//! so that no further client is dropped for them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use basalt_engine::seeded;
use metrics::Counter;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::observe::log_limit::LogLimit;

/// Least transfer rate. With default settings, a message of the largest size needs more than eight
/// times this rate to arrive within `server.message_timeout_ms`.
const LEAST_BYTES_PER_SECOND: u64 = 256 << 10;
/// Most credit: the longest pause that does not make a client slow.
const CREDIT_MAX: Duration = Duration::from_millis(250);
/// Least time between two log lines.
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// All registered clients.
#[derive(Debug)]
pub(super) struct SlowClients {
    began: Instant,
    state: Arc<Mutex<State>>,
    dropped: Counter,
}

#[derive(Debug)]
struct State {
    clients: HashMap<u64, Arc<Client>>,
    next: u64,
    log_limit: LogLimit,
}

#[derive(Debug)]
struct Client {
    address: Option<IpAddr>,
    bytes: AtomicU64,
    /// End of its credit, in microseconds since `began`.
    credit_until: AtomicU64,
    is_dropped: AtomicBool,
    told: Notify,
}

impl SlowClients {
    pub(super) fn new(dropped: Counter) -> Self {
        Self {
            began: Instant::now(),
            state: Arc::new(Mutex::new(State {
                clients: HashMap::new(),
                next: 0,
                log_limit: LogLimit::every(LINE_PERIOD),
            })),
            dropped,
        }
    }

    fn now(&self) -> u64 {
        micros(self.began.elapsed())
    }

    /// Registers a client that holds `bytes`, with full credit.
    pub(super) fn enter(&self, address: Option<IpAddr>, bytes: u64) -> SlowClient {
        let client = Arc::new(Client {
            address,
            bytes: AtomicU64::new(bytes),
            credit_until: AtomicU64::new(self.now() + micros(CREDIT_MAX)),
            is_dropped: AtomicBool::new(false),
            told: Notify::new(),
        });
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.clients.insert(number, Arc::clone(&client));
        SlowClient {
            began: self.began,
            state: Arc::clone(&self.state),
            number,
            client,
        }
    }

    /// Bytes of all clients.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        let state = self.state.lock();
        state.clients.values().map(|client| client.bytes()).sum()
    }

    /// Drops slow clients until the dropped ones hold at least `missing` bytes.
    pub(super) fn drop_for(&self, missing: u64) {
        let now = self.now();
        let mut state = self.state.lock();
        let (mut coming, mut of_address, mut slow) = (0, HashMap::<_, u64>::new(), Vec::new());
        for client in state.clients.values() {
            *of_address.entry(client.address).or_default() += client.bytes();
            if client.is_dropped() {
                coming += client.bytes();
            } else if client.credit_until() < now {
                slow.push(Arc::clone(client));
            }
        }
        if coming >= missing || seeded::is_on("slow-clients-keep-memory") {
            return;
        }
        slow.sort_unstable_by_key(|client| {
            let of_address = of_address.get(&client.address).copied().unwrap_or(0);
            (Reverse(of_address), client.credit_until())
        });
        for client in slow {
            if coming >= missing {
                return;
            }
            client.is_dropped.store(true, Ordering::Release);
            client.told.notify_one();
            coming += client.bytes();
            self.dropped.increment(1);
            state.note(&client);
        }
    }
}

impl State {
    /// Logs that a client was dropped, at most once in [`LINE_PERIOD`].
    fn note(&mut self, client: &Client) {
        let Some(others) = self.log_limit.next(Instant::now()) else {
            return;
        };
        let bytes = client.bytes();
        let address = client.address.map(tracing::field::display);
        tracing::warn!(
            address,
            bytes,
            others,
            "a slow client was dropped: others need the memory of its message or reply (requests.memory_bytes)"
        );
    }
}

impl Client {
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn credit_until(&self) -> u64 {
        self.credit_until.load(Ordering::Relaxed)
    }

    fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }
}

/// A registered client, for as long as its large message or reply is on the way.
#[derive(Debug)]
pub(crate) struct SlowClient {
    began: Instant,
    state: Arc<Mutex<State>>,
    number: u64,
    client: Arc<Client>,
}

impl SlowClient {
    /// Records that the client has moved `moved` bytes and now holds `bytes`.
    pub(crate) fn progress(&self, moved: usize, bytes: u64) {
        let credit = credit(moved);
        let most = micros(self.began.elapsed()) + micros(CREDIT_MAX);
        let until = self.client.credit_until().saturating_add(credit).min(most);
        // A plain store: only this owner changes it.
        self.client.credit_until.store(until, Ordering::Relaxed);
        self.client.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether a dropped client goes on after all: it has credit, `moved` bytes in its socket included
    /// that the server had not noticed.
    pub(crate) fn is_reprieved(&self, moved: usize) -> bool {
        let now = micros(self.began.elapsed());
        let until = self.client.credit_until().max(now + credit(moved));
        if until <= now {
            return false;
        }
        self.client
            .credit_until
            .store(until.min(now + micros(CREDIT_MAX)), Ordering::Relaxed);
        self.client.is_dropped.store(false, Ordering::Release);
        true
    }

    /// Returns when the client must be dropped.
    pub(crate) async fn dropped(&self) {
        while !self.client.is_dropped() {
            self.client.told.notified().await;
        }
    }
}

/// Returns when the client must be dropped; never if there is none.
pub(crate) async fn dropped(client: Option<&SlowClient>) {
    match client {
        Some(client) => client.dropped().await,
        None => pending().await,
    }
}

impl Drop for SlowClient {
    fn drop(&mut self) {
        self.state.lock().clients.remove(&self.number);
    }
}

/// Microseconds that this many bytes earn.
fn credit(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(1_000_000) / LEAST_BYTES_PER_SECOND
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::socket::Socket;

    fn clients() -> SlowClients {
        SlowClients::new(Counter::noop())
    }

    #[expect(clippy::unnecessary_wraps, reason = "clients have an address or none")]
    fn address(last: u8) -> Option<IpAddr> {
        Some(Ipv4Addr::new(10, 0, 0, last).into())
    }

    /// Ends a client's credit this long ago.
    fn slow_for(client: &SlowClient, time: Duration) {
        let since = micros(client.began.elapsed()) - micros(time);
        client.client.credit_until.store(since, Ordering::Relaxed);
    }

    fn dropped(clients: &[&SlowClient]) -> Vec<bool> {
        clients.iter().map(|client| client.client.is_dropped()).collect()
    }

    /// A registry that began ten minutes ago, so that clients can have been slow for minutes.
    fn old_clients() -> SlowClients {
        let mut clients = clients();
        clients.began = Instant::now()
            .checked_sub(Duration::from_mins(10))
            .expect("the machine has been up for longer");
        clients
    }

    #[test]
    fn the_slowest_client_goes_first_and_only_as_many_as_are_needed() {
        let clients = old_clients();
        let (one, two, busy) = (
            clients.enter(address(1), 100),
            clients.enter(address(1), 100),
            clients.enter(address(1), 100),
        );
        slow_for(&one, Duration::from_secs(1));
        slow_for(&two, Duration::from_secs(2));
        clients.drop_for(80);
        assert_eq!(dropped(&[&one, &two, &busy]), [false, true, false]);
        clients.drop_for(100);
        assert_eq!(
            dropped(&[&one, &two, &busy]),
            [false, true, false],
            "what is on its way back is enough"
        );
        clients.drop_for(101);
        assert_eq!(dropped(&[&one, &two, &busy]), [true, true, false]);
        clients.drop_for(1_000);
        assert_eq!(
            dropped(&[&one, &two, &busy]),
            [true, true, false],
            "a client that gets on stays"
        );
    }

    #[test]
    fn an_address_that_holds_most_loses_first() {
        let clients = old_clients();
        let (many, more, single) = (
            clients.enter(address(1), 100),
            clients.enter(address(1), 100),
            clients.enter(address(2), 150),
        );
        slow_for(&many, Duration::from_secs(1));
        slow_for(&more, Duration::from_secs(2));
        slow_for(&single, Duration::from_mins(1));
        clients.drop_for(10);
        assert_eq!(dropped(&[&many, &more, &single]), [false, true, false]);
    }

    #[test]
    fn progress_is_credit_that_does_not_add_up() {
        let clients = old_clients();
        let client = clients.enter(None, 0);
        client.progress(64 << 20, 64 << 20);
        let most = micros(client.began.elapsed()) + micros(CREDIT_MAX);
        assert!(client.client.credit_until() <= most, "a fast beginning");
        slow_for(&client, Duration::from_secs(1));
        client.progress(1, 1);
        clients.drop_for(1);
        assert_eq!(dropped(&[&client]), [true], "a byte now and then is no progress");
        let client = clients.enter(None, 10);
        slow_for(&client, Duration::from_secs(1));
        client.progress(1 << 20, 10);
        clients.drop_for(100);
        assert_eq!(dropped(&[&client]), [false], "it has caught up");
    }

    #[test]
    fn a_client_that_has_credit_again_goes_on() {
        let clients = old_clients();
        let client = clients.enter(None, 10);
        slow_for(&client, Duration::from_secs(1));
        clients.drop_for(1);
        assert!(!client.is_reprieved(0), "nothing has moved");
        assert_eq!(dropped(&[&client]), [true]);
        // The server reads what came in the meantime before it sees the drop.
        client.progress(1 << 20, 10);
        assert!(client.is_reprieved(0));
        assert_eq!(dropped(&[&client]), [false]);
    }

    /// Connected sockets: one of the runtime, one that blocks.
    async fn sockets() -> (Socket, std::net::TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("bound");
        let peer = std::net::TcpStream::connect(address).expect("connects");
        (Socket::new(listener.accept().await.expect("accepts").0), peer)
    }

    /// This thread is the runtime's only one, so nothing tells it of events between two awaits: it is as
    /// late as a busy server.
    #[tokio::test]
    async fn a_client_is_not_slow_while_the_server_is_late_to_read() {
        use std::io::Write;
        use std::pin::pin;
        let (clients, (mut socket, mut peer)) = (old_clients(), sockets().await);
        let mut into = bytes::BytesMut::with_capacity(1 << 10);
        let client = clients.enter(None, 10);
        slow_for(&client, Duration::from_mins(1));
        clients.drop_for(1);
        assert!(!client.is_reprieved(socket.read.unread()), "it has sent nothing");
        // The first look tells the runtime that the socket is empty.
        assert!(futures_util::poll!(pin!(socket.read.read_buf(&mut into))).is_pending());
        peer.write_all(&[7; 8 << 10]).expect("sent");
        assert!(futures_util::poll!(pin!(socket.read.read_buf(&mut into))).is_pending());
        assert!(client.is_reprieved(socket.read.unread()));
        clients.drop_for(1);
        assert_eq!(dropped(&[&client]), [false], "it has credit for its bytes");
    }

    #[tokio::test]
    async fn a_client_is_not_slow_while_the_server_is_late_to_write() {
        use std::io::Read;
        let (clients, (socket, mut peer)) = (old_clients(), sockets().await);
        let client = clients.enter(None, 10);
        let piece = vec![7; 1 << 20];
        let mut sent = 0;
        while let count @ 1.. = socket.write.send_now(&piece).expect("sent") {
            sent += count;
        }
        slow_for(&client, Duration::from_mins(1));
        clients.drop_for(1);
        assert!(!client.is_reprieved(socket.write.send_now(&piece).expect("full")));
        peer.read_exact(&mut vec![0; sent]).expect("received");
        let moved = socket.write.send_now(&piece).expect("sent");
        assert!(client.is_reprieved(moved), "{moved} bytes");
    }

    #[tokio::test]
    async fn a_dropped_client_is_told_and_is_forgotten_when_it_is_gone() {
        let clients = old_clients();
        let client = clients.enter(None, 10);
        slow_for(&client, Duration::from_secs(1));
        clients.drop_for(1);
        client.dropped().await;
        drop(client);
        assert!(clients.state.lock().clients.is_empty());
    }
}
