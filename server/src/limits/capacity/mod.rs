//! Rates of use: of virtual servers in a rehearsal, and of tables, namespaces and users under
//! quotas.
//!
//! 1. A call describes its cost: a [`Charge`] with an entry for each virtual server whose rows it
//!    touches and for each quota that it is under. A batch is one request for each of its rows, as
//!    each action of a batch is one in HBase.
//! 2. [`Capacity::charge`] checks all of their limits. If the longest wait is more than
//!    `quota.max_wait_ms`, the call is refused and charged nothing. Otherwise it takes its tokens
//!    from all and returns until when the call is to be held back, which is a timer and holds no
//!    thread. Tokens are taken in the order in which calls arrive, so calls also go on in that
//!    order ([`limiter`]).
//! 3. The bytes of a read are known afterwards and charged then. Later calls wait for them.
//!
//! HBase refuses at once, and its client behind the gateway waits and retries; here the server
//! waits instead. The bound is checked before tokens are taken: concurrent calls may wait slightly
//! longer.
//!
//! Without rehearsal and quotas a call only checks [`Capacity::is_on`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::schema::TableName;
use metrics::{Counter, Histogram, counter, histogram};
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::config::Config;
use crate::observe::metrics::names;

mod limiter;
mod quotas;
mod rehearsal;
mod throttle;

pub(crate) use quotas::{Owner, Quota, Setting, Settings, UserScope};
pub(crate) use rehearsal::Rehearsal;
pub(crate) use throttle::{Cost, Limit, ThrottleType, TimeUnit};

use limiter::Ticks;
use quotas::{Applying, Quotas};
use throttle::{Reached, Throttle};

/// The virtual servers that a call touches, by position, with the cost on each.
pub(crate) type ByServer = SmallVec<[(u16, Cost); 4]>;

/// Cost of a call.
#[derive(Debug, Default)]
pub(crate) struct Charge {
    /// Cost by virtual server; empty without a rehearsal.
    pub(crate) servers: ByServer,
    /// Altogether.
    pub(crate) total: Cost,
    quotas: Applying,
}

impl Charge {
    /// Adds the cost of a row on that virtual server.
    pub(crate) fn add(&mut self, server: Option<u16>, cost: Cost) {
        self.total.add(cost);
        let Some(server) = server else { return };
        match self.servers.iter_mut().find(|(known, _)| *known == server) {
            Some((_, sum)) => sum.add(cost),
            None => self.servers.push((server, cost)),
        }
    }
}

/// A call that would have to wait too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} - wait {}; {subject} has the limit {} of {}, and quota.max_wait_ms is {}",
    reached.kind.exceeded(), hbase_time(reached.wait.duration()), reached.limit.text(reached.kind), reached.kind.as_str(),
    max_wait.as_millis()
)]
pub(crate) struct Exceeded {
    reached: Reached,
    subject: String,
    max_wait: Duration,
}

/// A time as HBase's clients read it from the text of an `RpcThrottlingException`: `1min, 5sec, 15ms`.
fn hbase_time(time: Duration) -> String {
    // Rounded up to the next millisecond, so that the wait is never too short.
    let milliseconds = time.as_nanos().div_ceil(1_000_000);
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    let mut parts: Vec<String> = [
        (seconds / 3600, "hr", "hrs"),
        (seconds / 60 % 60, "min", "mins"),
        (seconds % 60, "sec", "sec"),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, one, many)| format!("{count}{}", if count == 1 { one } else { many }))
    .collect();
    parts.push(format!("{rest}ms"));
    parts.join(", ")
}

/// Metric handles for calls that one kind of limit held back or refused.
#[derive(Debug)]
struct Outcomes {
    held_back: Histogram,
    refused: Counter,
}

impl Outcomes {
    fn new(by: &'static str) -> Self {
        Self {
            held_back: histogram!(names::HELD_BACK_SECONDS, "by" => by),
            refused: counter!(names::THROTTLED_CALLS, "by" => by),
        }
    }
}

/// Labels of the kinds of limits.
const KINDS: [&str; 4] = ["rehearsal", "user", "table", "namespace"];

/// All limits. Shared by all connections.
#[derive(Debug)]
pub(crate) struct Capacity {
    rehearsal: Option<Rehearsal>,
    quotas: Quotas,
    /// Whether there is any limit or virtual server: checked first by every call.
    is_on: AtomicBool,
    max_wait: Duration,
    /// The beginning of [`Ticks`].
    began: Instant,
    outcomes: [Outcomes; KINDS.len()],
}

impl Capacity {
    /// The rehearsal of the settings and the quotas of the database. REQUIRES: the metrics recorder is
    /// installed.
    pub(crate) fn new(config: &Config, engine: &Engine) -> Result<Self, basalt_engine::Error> {
        let rehearsal = Rehearsal::new(&config.rehearsal);
        let quotas = Quotas::load(engine, &config.quota.user)?;
        Ok(Self {
            is_on: AtomicBool::new(rehearsal.is_some() || quotas.any()),
            rehearsal,
            quotas,
            max_wait: Duration::from_millis(config.quota.max_wait_ms),
            began: Instant::now(),
            outcomes: KINDS.map(Outcomes::new),
        })
    }

    /// Whether calls are to be charged at all.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// The virtual servers, if there are some.
    pub(crate) fn rehearsal(&self) -> Option<&Rehearsal> {
        self.rehearsal.as_ref()
    }

    /// All quotas, by owner.
    pub(crate) fn list_quotas(&self) -> Vec<Arc<Quota>> {
        self.quotas.list()
    }

    /// Changes one owner's quota settings. Blocks until that is durable.
    pub(crate) fn change_quota(
        &self,
        engine: &Engine,
        owner: Owner,
        change: impl FnOnce(&mut Settings),
    ) -> Result<(), basalt_engine::Error> {
        self.quotas.change(engine, owner, change)?;
        self.is_on
            .store(self.rehearsal.is_some() || self.quotas.any(), Ordering::Relaxed);
        Ok(())
    }

    fn now(&self) -> Ticks {
        Ticks::of(self.began.elapsed())
    }

    /// The throttles that the call is charged to, each with its cost and its owner.
    fn subjects<'a>(&'a self, charge: &'a Charge) -> impl Iterator<Item = (&'a Throttle, Cost, Subject<'a>)> {
        let servers = charge.servers.iter().filter_map(|(server, cost)| {
            let throttle = &self.rehearsal.as_ref()?.server(*server)?.throttle;
            Some((throttle, *cost, Subject::Server(*server)))
        });
        let quotas = charge
            .quotas
            .iter()
            .map(|quota| (&quota.throttle, charge.total, Subject::Quota(quota)));
        servers
            .chain(quotas)
            .filter(|(throttle, _, _)| !throttle.is_empty())
    }

    /// Charges a call of `user` on `table` with its cost as far as known before it runs. Returns until
    /// when it is to be held back, if it is. Anonymous calls are those of `quota.user`.
    pub(crate) fn charge(
        &self,
        user: Option<&str>,
        table: &TableName,
        charge: &mut Charge,
    ) -> Result<Option<Instant>, Exceeded> {
        charge.quotas = self.quotas.applying(user, table);
        let now = self.now();
        let reached = self
            .subjects(charge)
            .filter_map(|(throttle, cost, subject)| Some((throttle.reached(cost, now)?, subject)))
            .max_by_key(|(reached, _)| reached.wait);
        if let Some((reached, subject)) = &reached
            && reached.wait.duration() > self.max_wait
        {
            self.outcomes[subject.kind()].refused.increment(1);
            return Err(Exceeded {
                reached: *reached,
                subject: subject.to_string(),
                max_wait: self.max_wait,
            });
        }
        let waits = self.subjects(charge).map(|(throttle, cost, subject)| {
            let wait = throttle.take(cost, now);
            if let Subject::Server(server) = subject
                && !wait.duration().is_zero()
                && let Some(server) = self.rehearsal.as_ref().and_then(|all| all.server(server))
            {
                server.hold_back(wait.duration());
            }
            wait
        });
        let wait = waits.max().unwrap_or_default().duration();
        for (server, cost) in &charge.servers {
            if let Some(server) = self.rehearsal.as_ref().and_then(|all| all.server(*server)) {
                server.count(*cost);
            }
        }
        if wait.is_zero() {
            return Ok(None);
        }
        // If nothing was over its limit, a concurrent call took the tokens; charge the first kind.
        let kind = reached.map_or(0, |(_, subject)| subject.kind());
        self.outcomes[kind].held_back.record(wait);
        Ok(Some(Instant::now() + wait))
    }

    /// Charges a call with the bytes that it has read, by virtual server and altogether. A server
    /// without an entry in the charge is charged with a request, too.
    pub(crate) fn charge_read(&self, charge: &Charge, read: &[(u16, u64)], total: u64) {
        let now = self.now();
        for (server, bytes) in read {
            let Some(of_server) = self.rehearsal.as_ref().and_then(|all| all.server(*server)) else {
                continue;
            };
            if charge.servers.iter().all(|(known, _)| known != server) {
                of_server.throttle.take(Cost::READ, now);
                of_server.count(Cost::READ);
            }
            of_server.take_read_bytes(*bytes, now);
        }
        for quota in &charge.quotas {
            quota.throttle.take_read_bytes(total, now);
        }
    }
}

/// Owner of a limit.
enum Subject<'a> {
    Server(u16),
    Quota(&'a Quota),
}

impl Subject<'_> {
    /// The position of its label in [`KINDS`].
    fn kind(&self) -> usize {
        match self {
            Self::Server(_) => 0,
            Self::Quota(quota) => match quota.owner {
                Owner::User { .. } => 1,
                Owner::Table(_) => 2,
                Owner::Namespace(_) => 3,
            },
        }
    }
}

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(server) => write!(f, "rehearsal-{}", u32::from(*server) + 1),
            Self::Quota(quota) => quota.owner.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
