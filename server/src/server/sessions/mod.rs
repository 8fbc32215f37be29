//! Scanner sessions: open scans between calls.
//!
//! A session has an unguessable id, an owner and a lease that each fetch renews. It ends by its close call,
//! with the connection that owns it, when the lease runs out, or when it is too old. While a fetch runs, the
//! scan is out of its session: a second fetch with the same id is refused, and the lease does not run.
//!
//! Over the main port the owner is the connection. Over HTTP it cannot be: a client may use a new
//! connection for each call. All calls over HTTP are one owner with a limit of its own, and its sessions end
//! by close, lease or age only.
//!
//! Invariants:
//! - At most `scanner.max_sessions` sessions, and at most the owner's limit for each owner,
//!   whatever path a call takes: a guard counts the slot and releases it when the session is
//!   dropped.
//! - A scan that is out of its session returns, whatever happens to the fetch: a guard owns it
//!   ([`Fetching`]).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use basalt_client::native::Renewal;
use basalt_engine::cell::CellBatch;
use basalt_engine::engine::Scanner;
use basalt_engine::op::{ReadTier, Scan};
use basalt_engine::schema::TableName;
use dashmap::DashMap;
use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;

use crate::config;
use crate::limits::admission::ScannerMemory;
use crate::observe::metrics::names;
use crate::security::Owner;
use crate::server::user_code::UserScan;

/// Why a session cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionError {
    /// No such id, or another owner's: from outside the two look the same.
    Unknown,
    /// Another fetch with this id is running.
    Busy,
    /// A limit is reached.
    TooMany { limit: &'static str, value: usize },
}

/// A scan of another cluster.
#[derive(Debug)]
pub(crate) struct RemoteScan {
    pub(crate) scanner: basalt_client::native::Scanner,
    /// Results that were received and not returned.
    pub(crate) received: VecDeque<basalt_client::Row>,
    /// When the cluster has last heard of it: the begin of a fetch, or a renewal of its lease.
    pub(crate) renewed: Instant,
}

/// Cells that were read from a scan and not returned yet: a caller that counts cells may end an answer
/// inside a row.
#[derive(Debug, Default)]
pub(crate) struct Unreturned {
    pub(crate) batch: CellBatch,
    /// The first row that is not returned, as its number in the batch.
    pub(crate) row: usize,
    /// Cells of that row that are returned.
    pub(crate) cells: usize,
}

/// A scan with its state besides the engine's scanner.
#[derive(Debug)]
pub(crate) struct OpenScan {
    /// The scan of another cluster, once the first fetch has opened it.
    pub(crate) remote: Option<RemoteScan>,
    /// The engine's scanner; `None` until the first fetch opens it (HBase's scanners contact the table then).
    pub(crate) scanner: Option<Scanner>,
    /// Parameters for opening the scanner with the first fetch.
    pub(crate) pending: PendingScan,
    /// Columns go out as a sorted list (Thrift 1's `sortColumns`).
    pub(crate) sort_columns: bool,
    /// Cells that were read and not returned, for a caller that counts cells.
    pub(crate) unreturned: Option<Unreturned>,
    /// The state of a filter of a user's class; `None` for other scans.
    pub(crate) user: Option<Box<UserScan>>,
    /// The reservation for its arguments and its filter; `None` if they are small.
    pub(crate) memory: Option<ScannerMemory>,
}

impl OpenScan {
    /// Whether it reads from memory only, for now.
    pub(crate) fn is_memory_only(&self) -> bool {
        match &self.scanner {
            Some(scanner) => scanner.is_memory_only(),
            None => self.pending.scan.tier == ReadTier::Memory,
        }
    }

    /// Sets how many rows it may return from now on.
    pub(crate) fn limit_rows(&mut self, rows: u64) {
        if let Some(user) = &mut self.user {
            user.rows_left = rows;
            return;
        }
        match &mut self.scanner {
            Some(scanner) => scanner.limit_rows(rows),
            None => Arc::make_mut(&mut self.pending.scan).limit = Some(rows),
        }
    }
}

/// Parameters of a scan.
#[derive(Debug)]
pub(crate) struct PendingScan {
    pub(crate) table: TableName,
    /// Shared with the descriptions of the calls that fetch from it.
    pub(crate) scan: Arc<Scan>,
}

#[derive(Debug)]
struct Session {
    owner: Owner,
    lease: Duration,
    /// `None` while a fetch has it. The mutex only makes it `Sync`: a scanner may move between
    /// threads, but not be shared; it is always reached through `&mut Session`.
    scan: Mutex<Option<Box<OpenScan>>>,
    expires: Instant,
    opened: Instant,
    _slot: Slot,
}

/// All sessions of the server.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: DashMap<i32, Session>,
    owners: DashMap<Owner, Arc<AtomicUsize>>,
    open: Arc<AtomicUsize>,
    limits: config::Scanner,
    opened: Counter,
    expired: Counter,
    gauge: Gauge,
}

/// Counts a session in its two counters for as long as it lives.
#[derive(Debug)]
struct Slot {
    all: Arc<AtomicUsize>,
    owner: Arc<AtomicUsize>,
    gauge: Gauge,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::AcqRel);
        self.owner.fetch_sub(1, Ordering::AcqRel);
        self.gauge.decrement(1);
    }
}

/// A scan during a fetch. Goes back into its session when dropped, which renews the lease: after a
/// fetch that failed the id remains valid, as in HBase. If the session was closed meanwhile, the
/// scan ends here.
#[derive(Debug)]
pub(crate) struct Fetching {
    sessions: Arc<Sessions>,
    id: i32,
    /// `None` only while it is dropped.
    scan: Option<Box<OpenScan>>,
}

impl std::ops::Deref for Fetching {
    type Target = OpenScan;

    fn deref(&self) -> &OpenScan {
        self.scan
            .as_deref()
            .expect("the scan is here until the guard is dropped")
    }
}

impl std::ops::DerefMut for Fetching {
    fn deref_mut(&mut self) -> &mut OpenScan {
        self.scan
            .as_deref_mut()
            .expect("the scan is here until the guard is dropped")
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        if let Some(scan) = self.scan.take()
            && let Some(mut session) = self.sessions.by_id.get_mut(&self.id)
        {
            *session.scan.get_mut() = Some(scan);
            session.expires = Instant::now() + session.lease;
        }
    }
}

impl Sessions {
    /// No sessions yet. REQUIRES: the recorder is installed.
    pub(crate) fn new(config: &config::Scanner) -> Self {
        Self {
            by_id: DashMap::new(),
            owners: DashMap::new(),
            open: Arc::default(),
            limits: config.clone(),
            opened: counter!(names::SCANNERS_OPENED),
            expired: counter!(names::SCANNERS_EXPIRED),
            gauge: gauge!(names::SCANNERS),
        }
    }

    /// Opens a session and returns its id.
    pub(crate) fn open(&self, owner: Owner, lease: Duration, scan: OpenScan) -> Result<i32, SessionError> {
        let slot = self.take_slot(owner)?;
        let now = Instant::now();
        let mut session = Some(Session {
            owner,
            lease,
            scan: Mutex::new(Some(Box::new(scan))),
            expires: now + lease,
            opened: now,
            _slot: slot,
        });
        // Ids are drawn until one is free: with at most a few thousand of two thousand million taken, at
        // once.
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

    fn take_slot(&self, owner: Owner) -> Result<Slot, SessionError> {
        let mine = Arc::clone(&self.owners.entry(owner).or_default());
        let take = |counter: &AtomicUsize, limit: &'static str, value: usize| {
            counter
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
                    (open < value).then_some(open + 1)
                })
                .map_err(|_| SessionError::TooMany { limit, value })
        };
        let limits = &self.limits;
        take(&self.open, "scanner.max_sessions", limits.max_sessions)?;
        let (limit, value) = match owner {
            Owner::Connection(_) => (
                "scanner.max_sessions_per_connection",
                limits.max_sessions_per_connection,
            ),
            Owner::Http | Owner::HttpUser(_) => ("scanner.max_http_sessions", limits.max_http_sessions),
        };
        if let Err(error) = take(&mine, limit, value) {
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

    /// Takes the scan out for a fetch; the guard brings it back.
    pub(crate) fn fetch(self: &Arc<Self>, id: i32, owner: Owner) -> Result<Fetching, SessionError> {
        let mut session = self.by_id.get_mut(&id).ok_or(SessionError::Unknown)?;
        if session.owner != owner || self.has_ended(&mut session, Instant::now()) {
            return Err(SessionError::Unknown);
        }
        let scan = session.scan.get_mut().take().ok_or(SessionError::Busy)?;
        Ok(Fetching {
            sessions: Arc::clone(self),
            id,
            scan: Some(scan),
        })
    }

    /// Whether lease or age has run out. A session that is being fetched from goes on.
    fn has_ended(&self, session: &mut Session, now: Instant) -> bool {
        let too_old = self.limits.max_age_ms > 0
            && now.duration_since(session.opened) >= Duration::from_millis(self.limits.max_age_ms);
        session.scan.get_mut().is_some() && (session.expires <= now || too_old)
    }

    /// Whether there is a session with this id, of any owner.
    pub(crate) fn contains(&self, id: i32) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Whether fetches with this id can succeed again: the session exists, and its scan has not
    /// failed for good.
    pub(crate) fn can_go_on(&self, id: i32, owner: Owner) -> bool {
        self.by_id.get_mut(&id).is_some_and(|mut session| {
            let is_own = session.owner == owner;
            let scan = session.scan.get_mut().as_ref();
            let scanner = scan.and_then(|scan| scan.scanner.as_ref());
            is_own && !scanner.is_some_and(Scanner::has_failed)
        })
    }

    /// Renews the lease of an idle session.
    pub(crate) fn renew(self: &Arc<Self>, id: i32, owner: Owner) -> Result<(), SessionError> {
        // Dropping the fetch returns the scan to its session, which renews the lease.
        self.fetch(id, owner).map(drop)
    }

    /// The table of an idle scan, and the row that it has reached, if any.
    pub(crate) fn position(&self, id: i32, owner: Owner) -> Option<(TableName, Option<Vec<u8>>)> {
        let mut session = self.by_id.get_mut(&id).filter(|session| session.owner == owner)?;
        let scan = session.scan.get_mut().as_ref()?;
        let row = scan.scanner.as_ref().and_then(Scanner::row_in_hand);
        Some((scan.pending.table.clone(), row.map(<[u8]>::to_vec)))
    }

    /// Closes a session of that owner; tells whether there was one.
    pub(crate) fn close(&self, id: i32, owner: Owner) -> bool {
        self.by_id
            .remove_if(&id, |_, session| session.owner == owner)
            .is_some()
    }

    /// Closes the sessions of an owner that is gone.
    pub(crate) fn close_owner(&self, owner: Owner) {
        if let Some((_, open)) = self.owners.remove(&owner)
            && open.load(Ordering::Acquire) > 0
        {
            self.by_id.retain(|_, session| session.owner != owner);
        }
    }

    /// Closes sessions whose lease or age has run out.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        self.by_id.retain(|_, session| {
            let ended = self.has_ended(session, now);
            if ended {
                self.expired.increment(1);
            }
            !ended
        });
    }

    /// Renewals of the leases of idle scans of another cluster, each when a third of its lease is over.
    pub(crate) fn renewals(&self) -> Vec<Renewal> {
        let now = Instant::now();
        let mut due = Vec::new();
        for mut session in self.by_id.iter_mut() {
            if let Some(scan) = session.scan.get_mut()
                && let Some(remote) = &mut scan.remote
                && let Some(lease) = remote.scanner.lease()
                && now.saturating_duration_since(remote.renewed) >= lease / 3
            {
                remote.renewed = now;
                due.extend(remote.scanner.renewal());
            }
        }
        due
    }

    /// Makes scans that have been idle for at least `idle` release blocks and read-ahead windows.
    pub(crate) fn rest(&self, idle: Duration) {
        self.each_idle(idle, Scanner::rest);
    }

    /// Releases flushed memstores and compacted files that idle scanners still pin. Active scanners
    /// do this in each fetch.
    pub(crate) fn release_idle(&self) {
        self.each_idle(Duration::ZERO, Scanner::release);
    }

    /// Visits the scanners that no fetch has taken out, and that have been idle for at least `idle`.
    fn each_idle(&self, idle: Duration, visit: impl Fn(&mut Scanner)) {
        let now = Instant::now();
        for mut session in self.by_id.iter_mut() {
            // The lease began with the last fetch.
            let since = session.expires.checked_sub(session.lease).unwrap_or(now);
            if now.saturating_duration_since(since) >= idle
                && let Some(scan) = session.scan.get_mut()
                && let Some(scanner) = &mut scan.scanner
            {
                visit(scanner);
            }
        }
    }

    pub(crate) fn close_all(&self) {
        self.by_id.clear();
    }

    /// Open sessions.
    pub(crate) fn len(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
