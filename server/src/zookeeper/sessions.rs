//! The open ZooKeeper connections, for the four-letter words that list them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use parking_lot::Mutex;

/// All open connections.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<BTreeMap<u64, Arc<Session>>>,
    /// Packets since the start.
    received: AtomicU64,
    sent: AtomicU64,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: SocketAddr,
    /// Wall-clock milliseconds.
    pub(super) began_ms: u64,
    /// 0 until the session is there.
    timeout_ms: AtomicI32,
    received: AtomicU64,
    sent: AtomicU64,
    last_xid: AtomicI32,
    last_operation: AtomicI32,
}

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// 0: no session yet.
    pub(super) timeout_ms: i32,
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) last_xid: i32,
    /// Code of the last operation.
    pub(super) last_operation: i32,
}

/// A connection's place among the open ones, for as long as it lives.
#[derive(Debug)]
pub(super) struct Registered<'a> {
    sessions: &'a Sessions,
    number: u64,
    session: Arc<Session>,
}

impl Sessions {
    /// Adds a connection.
    pub(super) fn register(&self, number: u64, peer: SocketAddr, began_ms: u64) -> Registered<'_> {
        let session = Arc::new(Session {
            peer,
            began_ms,
            timeout_ms: AtomicI32::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            last_xid: AtomicI32::new(0),
            last_operation: AtomicI32::new(0),
        });
        self.open.lock().insert(number, Arc::clone(&session));
        Registered {
            sessions: self,
            number,
            session,
        }
    }

    /// The open connections by number.
    pub(super) fn list(&self) -> Vec<(u64, Arc<Session>)> {
        let open = self.open.lock();
        open.iter()
            .map(|(number, session)| (*number, Arc::clone(session)))
            .collect()
    }

    /// The number of open connections.
    pub(super) fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Packets received and sent since the start.
    pub(super) fn packets(&self) -> (u64, u64) {
        (
            self.received.load(Ordering::Relaxed),
            self.sent.load(Ordering::Relaxed),
        )
    }
}

impl Session {
    /// Progress of the connection.
    pub(super) fn seen(&self) -> Seen {
        Seen {
            timeout_ms: self.timeout_ms.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            last_xid: self.last_xid.load(Ordering::Relaxed),
            last_operation: self.last_operation.load(Ordering::Relaxed),
        }
    }
}

impl Registered<'_> {
    /// The client's address.
    pub(super) fn peer(&self) -> SocketAddr {
        self.session.peer
    }

    /// Records that the session has begun.
    pub(super) fn began(&self, timeout_ms: i32) {
        self.session.timeout_ms.store(timeout_ms, Ordering::Relaxed);
        self.count();
    }

    /// Records a request, which gets one response. `packet` begins with its xid and its operation.
    pub(super) fn request(&self, packet: &[u8]) {
        if let Some((xid, rest)) = packet.split_first_chunk::<4>()
            && let Some((operation, _)) = rest.split_first_chunk::<4>()
        {
            let (xid, operation) = (i32::from_be_bytes(*xid), i32::from_be_bytes(*operation));
            self.session.last_operation.store(operation, Ordering::Relaxed);
            // Pings have a number of their own.
            if xid > 0 {
                self.session.last_xid.store(xid, Ordering::Relaxed);
            }
        }
        self.count();
    }

    fn count(&self) {
        for counter in [
            &self.session.received,
            &self.session.sent,
            &self.sessions.received,
            &self.sessions.sent,
        ] {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.sessions.open.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_listed_while_they_live() {
        let sessions = Sessions::default();
        let peer = "127.0.0.1:7".parse().unwrap();
        let one = sessions.register(3, peer, 9);
        one.began(30_000);
        one.request(&[0, 0, 0, 5, 0, 0, 0, 4]);
        one.request(&[0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 11]);
        let seen = Seen {
            timeout_ms: 30_000,
            received: 3,
            sent: 3,
            last_xid: 5,
            last_operation: 11,
        };
        let listed = sessions.list();
        assert_eq!((listed[0].0, listed[0].1.seen()), (3, seen));
        drop(one);
        assert_eq!((sessions.count(), sessions.packets()), (0, (3, 3)));
    }
}
