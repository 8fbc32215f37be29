//! Clients that hold memory while they are slow: they lose first.
//!
//! Of a large message that is arriving, or a large reply that is being sent, only the client decides how long it stays. Such a client is
//! entered here for as long ([`SlowClient`]). Its progress is credit: each byte is worth a time at [`LEAST_BYTES_PER_SECOND`], and credit
//! beyond [`CREDIT_MAX`] is lost, so a fast beginning does not pay for a long pause. A client without credit is slow. It is left alone until
//! somebody else needs its memory; then the slow clients of the address that holds most are dropped, the one that has been without
//! credit for longest first, until their memory is enough.
//!
//! Invariant: no client is dropped for bytes that are on their way back already.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metrics::Counter;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// A client that moves fewer bytes is slow. The largest message needs ten times as many to be in time.
const LEAST_BYTES_PER_SECOND: u64 = 256 << 10;
/// Longest pause that a client may make whatever it has moved before.
const CREDIT_MAX: Duration = Duration::from_millis(250);
/// Time between two lines of the log.
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// All of them.
#[derive(Debug)]
pub(super) struct SlowClients {
    began: Instant,
    state: Arc<Mutex<State>>,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct State {
    clients: HashMap<u64, Arc<Client>>,
    next: u64,
    last_line: Option<Instant>,
    /// Dropped since then.
    unsaid: u64,
}

#[derive(Debug)]
struct Client {
    address: Option<IpAddr>,
    bytes: AtomicU64,
    /// When its credit ends, in microseconds since `began`.
    credit_until: AtomicU64,
    is_dropped: AtomicBool,
    told: Notify,
}

impl SlowClients {
    pub(super) fn new(dropped: Counter) -> Self {
        Self {
            began: Instant::now(),
            state: Arc::default(),
            dropped,
        }
    }

    fn now(&self) -> u64 {
        micros(self.began.elapsed())
    }

    /// A client that holds so many bytes from now on, with all of its credit.
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

    /// Drops slow clients until those that were dropped hold so many bytes.
    pub(super) fn drop_for(&self, missing: u64) {
        let now = self.now();
        let mut state = self.state.lock();
        let coming = |state: &State| -> u64 {
            let dropped = state.clients.values().filter(|client| client.is_dropped());
            dropped.map(|client| client.bytes()).sum()
        };
        while coming(&state) < missing {
            let Some(client) = state.slowest(now) else { return };
            client.is_dropped.store(true, Ordering::Release);
            client.told.notify_one();
            self.dropped.increment(1);
            state.note(&client);
        }
    }
}

impl State {
    /// The client to drop next.
    fn slowest(&self, now: u64) -> Option<Arc<Client>> {
        let mut by_address: HashMap<Option<IpAddr>, u64> = HashMap::new();
        for client in self.clients.values() {
            *by_address.entry(client.address).or_default() += client.bytes();
        }
        let slow = self
            .clients
            .values()
            .filter(|client| !client.is_dropped() && client.credit_until() < now);
        slow.max_by_key(|client| {
            let of_address = by_address.get(&client.address).copied().unwrap_or(0);
            (of_address, now - client.credit_until())
        })
        .cloned()
    }

    /// A line of the log, unless there was one just now.
    fn note(&mut self, client: &Client) {
        let now = Instant::now();
        if self.last_line.is_some_and(|last| now < last + LINE_PERIOD) {
            self.unsaid += 1;
            return;
        }
        self.last_line = Some(now);
        let (others, bytes) = (std::mem::take(&mut self.unsaid), client.bytes());
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

/// A client that holds memory for as long as it takes to send or to read something large.
#[derive(Debug)]
pub(crate) struct SlowClient {
    began: Instant,
    state: Arc<Mutex<State>>,
    number: u64,
    client: Arc<Client>,
}

impl SlowClient {
    /// It has moved `moved` bytes, and holds `bytes` now.
    pub(crate) fn progress(&self, moved: usize, bytes: u64) {
        let credit = (moved as u64).saturating_mul(1_000_000) / LEAST_BYTES_PER_SECOND;
        let most = micros(self.began.elapsed()) + micros(CREDIT_MAX);
        let until = self.client.credit_until().saturating_add(credit).min(most);
        // Only its owner changes it.
        self.client.credit_until.store(until, Ordering::Relaxed);
        self.client.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns when the client is to be dropped.
    pub(crate) async fn dropped(&self) {
        while !self.client.is_dropped() {
            self.client.told.notified().await;
        }
    }
}

impl Drop for SlowClient {
    fn drop(&mut self) {
        self.state.lock().clients.remove(&self.number);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn clients() -> SlowClients {
        SlowClients::new(Counter::noop())
    }

    #[expect(clippy::unnecessary_wraps, reason = "clients have an address or none")]
    fn address(last: u8) -> Option<IpAddr> {
        Some(Ipv4Addr::new(10, 0, 0, last).into())
    }

    /// Takes a client's credit away, so that it has been slow for that long.
    fn slow_for(client: &SlowClient, time: Duration) {
        let since = micros(client.began.elapsed()) - micros(time);
        client.client.credit_until.store(since, Ordering::Relaxed);
    }

    fn dropped(clients: &[&SlowClient]) -> Vec<bool> {
        clients.iter().map(|client| client.client.is_dropped()).collect()
    }

    /// A registry that has existed for long, so that clients can have been slow in it.
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
