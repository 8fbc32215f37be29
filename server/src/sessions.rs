//! Scanner sessions: open scans between calls.
//!
//! A session has an unguessable id, an owner (the connection that opened it) and a lease that each fetch renews. It ends by
//! its close call, with its connection, or when the lease runs out. While a fetch runs, the scanner is out of its session:
//! a second fetch with the same id is refused, and the lease does not run.
//!
//! Invariant: at most `scanner.max_sessions` sessions, at most `scanner.max_sessions_per_connection` of one owner, whatever
//! path a call takes: a slot is counted by a guard that gives it back when the session is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use basalt_engine::engine::Scanner;
use dashmap::DashMap;
use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;

use crate::config;
use crate::metrics::names;

/// Which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// Why a session cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionError {
    /// No such id, or of somebody else: the two cannot be told apart from outside.
    Unknown,
    /// Another fetch with this id is running.
    Busy,
    /// A limit is reached.
    TooMany {
        /// Which.
        limit: &'static str,
        /// Its value.
        value: usize,
    },
}

/// A scan with what belongs to it besides the engine's scanner.
#[derive(Debug)]
pub(crate) struct OpenScan {
    /// The engine's scanner; `None` until the first fetch opens it (HBase's scanners contact the table then).
    pub(crate) scanner: Option<Scanner>,
    /// What the first fetch opens.
    pub(crate) pending: PendingScan,
    /// Columns go out as a sorted list (Thrift 1's `sortColumns`).
    pub(crate) sort_columns: bool,
}

/// What to scan.
#[derive(Debug)]
pub(crate) struct PendingScan {
    /// The table.
    pub(crate) table: basalt_engine::schema::TableName,
    /// The scan.
    pub(crate) scan: basalt_engine::op::Scan,
}

#[derive(Debug)]
struct Session {
    owner: ConnectionId,
    lease: Duration,
    /// `None` while a fetch has it. In a mutex only to be shareable: a scanner may move between threads, not be looked at by
    /// two; it is always reached through `&mut Session`.
    scan: Mutex<Option<OpenScan>>,
    expires: Instant,
    _slot: Slot,
}

/// All sessions of the server.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: DashMap<i32, Session>,
    owners: DashMap<ConnectionId, Arc<AtomicUsize>>,
    open: Arc<AtomicUsize>,
    limit: usize,
    limit_per_connection: usize,
    opened: Counter,
    expired: Counter,
    gauge: Gauge,
}

/// Counts a session in its two counters for as long as it lives.
struct Slot {
    all: Arc<AtomicUsize>,
    owner: Arc<AtomicUsize>,
    gauge: Gauge,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slot")
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::AcqRel);
        self.owner.fetch_sub(1, Ordering::AcqRel);
        self.gauge.decrement(1);
    }
}

impl Sessions {
    /// No sessions yet. REQUIRES: the recorder is installed.
    pub(crate) fn new(config: &config::Scanner) -> Self {
        Self {
            by_id: DashMap::new(),
            owners: DashMap::new(),
            open: Arc::default(),
            limit: config.max_sessions,
            limit_per_connection: config.max_sessions_per_connection,
            opened: counter!(names::SCANNERS_OPENED),
            expired: counter!(names::SCANNERS_EXPIRED),
            gauge: gauge!(names::SCANNERS),
        }
    }

    /// Opens a session and returns its id.
    pub(crate) fn open(
        &self,
        owner: ConnectionId,
        lease: Duration,
        scan: OpenScan,
    ) -> Result<i32, SessionError> {
        let slot = self.take_slot(owner)?;
        let mut session = Some(Session {
            owner,
            lease,
            scan: Mutex::new(Some(scan)),
            expires: Instant::now() + lease,
            _slot: slot,
        });
        // Ids are drawn until one is free: with at most a few thousand of two thousand million taken, at once.
        loop {
            let id: i32 = rand::random::<i32>() & i32::MAX;
            if let dashmap::Entry::Vacant(vacant) = self.by_id.entry(id) {
                if let Some(session) = session.take() {
                    vacant.insert(session);
                }
                self.opened.increment(1);
                return Ok(id);
            }
        }
    }

    fn take_slot(&self, owner: ConnectionId) -> Result<Slot, SessionError> {
        let mine = Arc::clone(&self.owners.entry(owner).or_default());
        let take = |counter: &AtomicUsize, limit: &'static str, value: usize| {
            counter
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
                    (open < value).then_some(open + 1)
                })
                .map_err(|_| SessionError::TooMany { limit, value })
        };
        take(&self.open, "scanner.max_sessions", self.limit)?;
        if let Err(error) = take(
            &mine,
            "scanner.max_sessions_per_connection",
            self.limit_per_connection,
        ) {
            self.open.fetch_sub(1, Ordering::AcqRel);
            return Err(error);
        }
        self.gauge.increment(1);
        Ok(Slot {
            all: Arc::clone(&self.open),
            owner: mine,
            gauge: self.gauge.clone(),
        })
    }

    /// Takes the scan out for a fetch. Give it back with [`Self::restore`].
    pub(crate) fn take(&self, id: i32, owner: ConnectionId) -> Result<OpenScan, SessionError> {
        let mut session = self.by_id.get_mut(&id).ok_or(SessionError::Unknown)?;
        let expired = session.expires <= Instant::now();
        if session.owner != owner || (session.scan.get_mut().is_some() && expired) {
            return Err(SessionError::Unknown);
        }
        session.scan.get_mut().take().ok_or(SessionError::Busy)
    }

    /// Puts the scan back and renews the lease. A session that was closed meanwhile stays closed.
    pub(crate) fn restore(&self, id: i32, scan: OpenScan) {
        if let Some(mut session) = self.by_id.get_mut(&id) {
            *session.scan.get_mut() = Some(scan);
            session.expires = Instant::now() + session.lease;
        }
    }

    /// Closes a session of that owner; tells whether there was one.
    pub(crate) fn close(&self, id: i32, owner: ConnectionId) -> bool {
        self.by_id
            .remove_if(&id, |_, session| session.owner == owner)
            .is_some()
    }

    /// Closes the sessions of a connection that is gone.
    pub(crate) fn close_owner(&self, owner: ConnectionId) {
        if let Some((_, open)) = self.owners.remove(&owner)
            && open.load(Ordering::Acquire) > 0
        {
            self.by_id.retain(|_, session| session.owner != owner);
        }
    }

    /// Closes sessions whose lease has run out. A session that is being fetched from has no running lease.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        self.by_id.retain(|_, session| {
            let live = session.scan.get_mut().is_none() || session.expires > now;
            if !live {
                self.expired.increment(1);
            }
            live
        });
    }

    /// Makes idle scans let go of memory and files that their regions have let go of. One that is being fetched from has done so.
    pub(crate) fn let_go(&self) {
        for mut session in self.by_id.iter_mut() {
            if let Some(OpenScan {
                scanner: Some(scanner),
                ..
            }) = session.scan.get_mut()
            {
                scanner.let_go();
            }
        }
    }

    /// Closes everything.
    pub(crate) fn close_all(&self) {
        self.by_id.clear();
    }

    /// Open sessions.
    pub(crate) fn len(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_mins(1);

    fn sessions() -> Sessions {
        Sessions::new(&config::Scanner {
            max_sessions: 3,
            max_sessions_per_connection: 2,
            ..config::Scanner::default()
        })
    }

    fn scan() -> OpenScan {
        OpenScan {
            scanner: None,
            pending: PendingScan {
                table: basalt_engine::schema::TableName::parse(b"t").unwrap(),
                scan: basalt_engine::op::Scan::default(),
            },
            sort_columns: false,
        }
    }

    #[test]
    fn only_the_owner_reaches_a_session() {
        let sessions = sessions();
        let (me, other) = (ConnectionId(1), ConnectionId(2));
        let id = sessions.open(me, LEASE, scan()).unwrap();
        assert_eq!(sessions.take(id, other).unwrap_err(), SessionError::Unknown);
        assert!(!sessions.close(id, other));
        let taken = sessions.take(id, me).unwrap();
        assert_eq!(sessions.take(id, me).unwrap_err(), SessionError::Busy);
        sessions.restore(id, taken);
        assert!(sessions.take(id, me).is_ok());
        assert!(sessions.close(id, me) && !sessions.close(id, me));
    }

    #[test]
    fn limits_hold_and_slots_come_back() {
        let sessions = sessions();
        let ids: Vec<i32> = (0..2)
            .map(|_| sessions.open(ConnectionId(1), LEASE, scan()).unwrap())
            .collect();
        let refused = sessions.open(ConnectionId(1), LEASE, scan()).unwrap_err();
        assert_eq!(
            refused,
            SessionError::TooMany {
                limit: "scanner.max_sessions_per_connection",
                value: 2
            }
        );
        sessions.open(ConnectionId(2), LEASE, scan()).unwrap();
        let refused = sessions.open(ConnectionId(3), LEASE, scan()).unwrap_err();
        assert_eq!(
            refused,
            SessionError::TooMany {
                limit: "scanner.max_sessions",
                value: 3
            }
        );
        assert!(sessions.close(ids[0], ConnectionId(1)));
        sessions.close_owner(ConnectionId(2));
        assert_eq!(sessions.len(), 1);
        sessions.open(ConnectionId(1), LEASE, scan()).unwrap();
    }

    #[test]
    fn an_expired_session_is_gone_but_not_one_in_use() {
        let sessions = sessions();
        let me = ConnectionId(1);
        let idle = sessions.open(me, Duration::ZERO, scan()).unwrap();
        let _used = sessions.open(me, Duration::ZERO, scan()).unwrap();
        assert_eq!(
            sessions.take(idle, me).unwrap_err(),
            SessionError::Unknown,
            "expired before the reaper came"
        );
        sessions.expire();
        assert_eq!(sessions.len(), 0);
        let in_use = sessions.open(me, Duration::from_hours(1), scan()).unwrap();
        let taken = sessions.take(in_use, me).unwrap();
        sessions.expire();
        assert_eq!(sessions.len(), 1);
        sessions.restore(in_use, taken);
        assert!(sessions.close(in_use, me));
    }
}
