//! The standbys of this server: how far each has come, and the writes that wait for one.
//!
//! A standby is a reader of the log, whose note is the URL of the standby. Each request for more of the log
//! acknowledges what is durable there ([`Follower::acknowledge`]).
//!
//! With `standby.sync = "standby"` a write is acknowledged when one standby has it, too
//! ([`Standbys::confirmed`]). When that takes longer than `standby.sync_timeout_ms`, the server goes on
//! *alone*: writes wait no more, until a standby has everything again. Both changes are logged, and a metric
//! shows them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use basalt_engine::engine::{Feed, Place, ServerName};
use basalt_engine::id::SeqId;
use basalt_engine::{Engine, Error};
use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::config::{self, StandbySync};
use crate::observe::metrics::names;

/// Begins the names of the log's readers that are standbys.
pub(crate) const PREFIX: &str = "standby ";

/// A standby that has been quiet for this long is not connected.
const CONNECTED: Duration = Duration::from_secs(3);

/// A standby.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) name: String,
    /// URL of its HTTP port.
    pub(crate) http: Mutex<String>,
    /// Where clients reach it, if it serves reads.
    reads: Mutex<Option<ServerName>>,
    /// The log, read up to what it was sent.
    pub(crate) feed: tokio::sync::Mutex<Option<(Place, Feed)>>,
    position: AtomicU64,
    turn: AtomicU64,
    /// When it last asked.
    seen: Mutex<Option<Instant>>,
    /// When its position was last saved, and when its files of users were last compared.
    saved: Mutex<Option<Instant>>,
    compared: Mutex<Option<Instant>>,
    /// When it last had everything.
    current: Mutex<Instant>,
    gauge: Gauge,
    behind: Gauge,
}

/// Figures of a standby.
#[derive(Clone, Debug)]
pub(crate) struct FollowerLoad {
    pub(crate) name: String,
    pub(crate) http: String,
    pub(crate) place: Place,
    pub(crate) is_connected: bool,
    /// Time since it last had everything.
    pub(crate) lag: Duration,
}

impl Follower {
    fn new(name: &str, http: &str, place: Place) -> Self {
        Self {
            name: name.to_owned(),
            http: Mutex::new(http.to_owned()),
            reads: Mutex::default(),
            feed: tokio::sync::Mutex::default(),
            position: AtomicU64::new(place.position.0),
            turn: AtomicU64::new(place.turn),
            seen: Mutex::default(),
            saved: Mutex::default(),
            compared: Mutex::default(),
            current: Mutex::new(Instant::now()),
            gauge: gauge!(names::STANDBY_LAG_SECONDS, "standby" => name.to_owned()),
            behind: gauge!(names::STANDBY_BEHIND_EDITS, "standby" => name.to_owned()),
        }
    }

    /// Place up to which everything is durable at the standby.
    pub(crate) fn place(&self) -> Place {
        Place {
            position: SeqId(self.position.load(Ordering::Acquire)),
            turn: self.turn.load(Ordering::Acquire),
        }
    }

    /// Whether it has asked lately.
    pub(crate) fn is_connected(&self) -> bool {
        self.seen.lock().is_some_and(|seen| seen.elapsed() < CONNECTED)
    }

    /// Returns `true` once in a period, for saving the position.
    pub(crate) fn is_save_due(&self, period: Duration) -> bool {
        is_due(&mut self.saved.lock(), period)
    }

    /// Returns `true` once in a period, for comparing the files of users.
    pub(crate) fn is_security_due(&self, period: Duration) -> bool {
        is_due(&mut self.compared.lock(), period)
    }

    /// Time since it last had everything: none if it has what there is now.
    fn lag(&self, end: Place) -> Duration {
        if self.is_connected() && self.has(end) {
            return Duration::ZERO;
        }
        self.current.lock().elapsed()
    }

    fn has(&self, wanted: Place) -> bool {
        self.position.load(Ordering::Acquire) >= wanted.position.0
            && self.turn.load(Ordering::Acquire) >= wanted.turn
    }
}

/// Returns `true` and stores the present time if a period has passed since the stored one.
fn is_due(last: &mut Option<Instant>, period: Duration) -> bool {
    let is_due = last.is_none_or(|last| last.elapsed() >= period);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

/// All standbys.
#[derive(Debug)]
pub(crate) struct Standbys {
    sync: StandbySync,
    limit: Duration,
    all: RwLock<BTreeMap<String, Arc<Follower>>>,
    /// Number of them.
    count: AtomicUsize,
    /// Notified when this server has written something.
    written: Notify,
    /// Notified when a standby has more.
    more: Notify,
    /// Whether writes wait for no standby, although they should.
    alone: AtomicBool,
    alone_gauge: Gauge,
    unconfirmed: Counter,
    copies: Counter,
}

impl Standbys {
    /// Those that the log is kept for.
    pub(super) fn load(engine: &Engine, config: &config::Standby) -> Self {
        let standbys = Self {
            sync: config.sync,
            limit: Duration::from_millis(config.sync_timeout_ms),
            all: RwLock::default(),
            count: AtomicUsize::new(0),
            written: Notify::new(),
            more: Notify::new(),
            // Until a standby has everything.
            alone: AtomicBool::new(config.sync == StandbySync::Standby),
            alone_gauge: gauge!(names::STANDBY_ALONE),
            unconfirmed: counter!(names::STANDBY_UNCONFIRMED_WRITES_TOTAL),
            copies: counter!(names::STANDBY_COPIES_TOTAL),
        };
        for reader in engine.log_readers() {
            if let Some(name) = reader.name.strip_prefix(PREFIX) {
                let http = String::from_utf8_lossy(&reader.note).into_owned();
                let place = Place {
                    position: reader.position,
                    turn: 0,
                };
                let follower = Arc::new(Follower::new(name, &http, place));
                standbys.all.write().insert(name.to_owned(), follower);
            }
        }
        standbys.note_count();
        standbys
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Follower>> {
        self.all.read().get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Follower>> {
        self.all.read().values().cloned().collect()
    }

    fn note_count(&self) {
        self.count.store(self.all.read().len(), Ordering::Release);
    }

    /// Records where clients reach a standby that serves reads. Returns the one that takes those of replicas.
    pub(crate) fn note_reads(&self, follower: &Follower, reads: Option<ServerName>) -> Option<ServerName> {
        *follower.reads.lock() = reads;
        self.all.read().values().find_map(|one| one.reads.lock().clone())
    }

    /// Wakes the requests that wait for something new.
    pub(crate) fn note_write(&self) {
        if self.count.load(Ordering::Acquire) > 0 {
            self.written.notify_waiters();
        }
    }

    /// Waits for [`Self::note_write`], at most for this time.
    pub(crate) async fn written(&self, limit: Duration) {
        // Too late is as good as notified: the caller looks again.
        let _ = tokio::time::timeout(limit, self.written.notified()).await;
    }

    /// Makes a standby a reader of the log, from its present end on, instead of what it was. Blocks.
    pub(crate) fn begin(&self, engine: &Engine, name: &str, http: &str) -> Result<Arc<Follower>, Error> {
        let reader = format!("{PREFIX}{name}");
        let mut all = self.all.write();
        engine.remove_log_reader(&reader)?;
        let position = engine.add_log_reader(&reader, http.as_bytes())?;
        let follower = Arc::new(Follower::new(name, http, Place { position, turn: 0 }));
        all.insert(name.to_owned(), Arc::clone(&follower));
        self.count.store(all.len(), Ordering::Release);
        Ok(follower)
    }

    /// Forgets a standby. Blocks.
    pub(crate) fn remove(&self, engine: &Engine, name: &str) -> Result<bool, Error> {
        let mut all = self.all.write();
        let reader = engine.remove_log_reader(&format!("{PREFIX}{name}"))?;
        let removed = all.remove(name);
        self.count.store(all.len(), Ordering::Release);
        if let Some(follower) = removed {
            follower.gauge.set(0.0);
            follower.behind.set(0.0);
        }
        Ok(reader)
    }

    /// Records the place that a standby acknowledges, and the end of the log at that time.
    pub(crate) fn acknowledge(&self, follower: &Follower, place: Place, end: Place) {
        *follower.seen.lock() = Some(Instant::now());
        follower.position.store(place.position.0, Ordering::Release);
        follower.turn.store(place.turn, Ordering::Release);
        follower
            .behind
            .set(end.position.0.saturating_sub(place.position.0) as f64);
        if follower.has(end) {
            *follower.current.lock() = Instant::now();
            if self.alone.swap(false, Ordering::AcqRel) {
                self.alone_gauge.set(0.0);
                tracing::info!(
                    "standby {} has everything: writes wait for it (standby.sync)",
                    follower.name
                );
            }
        }
        self.more.notify_waiters();
    }

    /// Counts a copy that a standby has begun to fetch.
    pub(crate) fn note_copy(&self) {
        self.copies.increment(1);
    }

    /// Whether a write must wait for a standby.
    pub(crate) fn must_confirm(&self) -> bool {
        self.sync == StandbySync::Standby
    }

    /// Waits until a standby has everything before that place, or the server goes on alone.
    pub(crate) async fn confirmed(&self, wanted: Place) {
        if !self.must_confirm() {
            return;
        }
        let waiting = async {
            loop {
                let more = self.more.notified();
                let mut more = std::pin::pin!(more);
                more.as_mut().enable();
                if self.alone.load(Ordering::Acquire) {
                    self.unconfirmed.increment(1);
                    return;
                }
                if self.all.read().values().any(|follower| follower.has(wanted)) {
                    return;
                }
                more.await;
            }
        };
        if tokio::time::timeout(self.limit, waiting).await.is_err() {
            self.unconfirmed.increment(1);
            if !self.alone.swap(true, Ordering::AcqRel) {
                self.alone_gauge.set(1.0);
                tracing::error!(
                    "no standby has confirmed a write within standby.sync_timeout_ms = {}: the server goes on alone, and what it acknowledges now is lost with this machine",
                    self.limit.as_millis()
                );
                self.more.notify_waiters();
            }
        }
    }

    /// Whether the server should have a standby for its writes, and has none.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Acquire)
    }

    /// The figures of all; this server's log ends there.
    pub(crate) fn loads(&self, end: Place) -> Vec<FollowerLoad> {
        let all = self.all.read();
        let load = |follower: &Arc<Follower>| FollowerLoad {
            name: follower.name.clone(),
            http: follower.http.lock().clone(),
            place: follower.place(),
            is_connected: follower.is_connected(),
            lag: follower.lag(end),
        };
        all.values().map(load).collect()
    }

    /// Writes the figures for the scrape. This server's log ends there.
    pub(super) fn publish(&self, end: Place) {
        self.alone_gauge.set(f64::from(u8::from(self.is_alone())));
        for follower in self.all.read().values() {
            follower.gauge.set(follower.lag(end).as_secs_f64());
        }
    }
}
