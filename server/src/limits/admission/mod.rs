//! Which calls begin now, and which are refused so that the others stay fast.
//!
//! A server that takes everything slows everybody down until clients give up, and then works for nobody. Each
//! of these limits refuses before any work is done, with HBase's RegionTooBusyException, which its clients
//! wait out and try again:
//!
//! - **Memory.** Messages, arguments, results and replies reserve their bytes from
//!   `requests.memory_bytes` before they are allocated ([`memory`]). A call whose reservation does
//!   not succeed within a second is refused. Clients that hold memory and make no progress are
//!   dropped first ([`slow`]).
//! - **The queue.** Calls that may block run on a pool of threads, and wait in a [`queue`] in front of
//!   it. A call that would make it longer than `requests.max_waiting` is refused, and one that has
//!   waited for `requests.max_wait_ms`, if an operator sets that. Schema changes and the like do not
//!   wait in it, so a flooded server can still be administered.
//! - **System tables.** Reads of system tables have permits and a queue of their own ([`Class`]), and
//!   are not refused because of delay: clients look regions up in `hbase:meta` before they can do
//!   anything else, and a flood of other calls must not keep them from it.
//! - **Compilers.** Compiling a regular expression keeps a core busy for milliseconds and reads
//!   nothing. Half of the cores may do it at a time ([`Admission::compiler`]), so that the network
//!   threads get the others.
//! - **Delay.** Calls that need no thread of the pool wait where nobody can see them: in sockets that the
//!   network threads have not come to yet. A task that only wakes up measures how late it wakes. When it is
//!   late by more than `requests.max_delay_ms` all through a window (the least lateness counts, so a burst
//!   does no harm; Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 2012), a growing share of the
//!   data calls is refused, and a shrinking one after that.
//!
//! Calls that clear the load are never refused: closing scanners, administration, HTTP pages.
//!
//! Beside these, calls may be under limits that somebody set, and are held back for those: [`Capacity`].

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use basalt_engine::schema::TableName;
use metrics::{Counter, Gauge, counter, gauge};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::Requests;
use crate::limits::capacity::Capacity;
use crate::observe::metrics::names;
pub(crate) use memory::{FREE_BYTES as UNCOUNTED_BYTES, Memory, MemoryPermit, Purpose, ScannerMemory};
pub(crate) use queue::Permit;
use queue::{Queue, TooLong};
pub(crate) use slow::{SlowClient, dropped};

mod memory;
mod queue;
mod slow;

/// Permits for reads of system tables.
pub(crate) const SYSTEM_PERMITS: usize = 4;

/// Most bulk loads that run at a time. Each has a thread of the pool and writes to the disk as a
/// compaction does.
const BULK_LOADS: usize = 2;

/// Pause between two looks at the delay.
const LOOK: Duration = Duration::from_millis(50);
/// Looks in a window.
const LOOKS: u32 = 4;
/// The whole, of which a share is refused.
const WHOLE: u32 = 1000;
/// Most of the calls that are refused because of delay: the few that are let through show when it is over.
const SHARE_MAX: u32 = 950;

/// Values of the label `reason` of refused calls that this module counts. [`memory`] adds `slow`.
const REASONS: [&str; 4] = ["memory", "line", "wait", "delay"];

/// Why a call does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Busy {
    #[error(
        "the server is busy: calls in hand have {used} bytes and this one needs {wanted} more, requests.memory_bytes is {limit}; try again"
    )]
    Memory { used: u64, wanted: u64, limit: u64 },
    #[error(
        "the call needs {wanted} bytes at once, and requests.memory_bytes is {limit}; send or ask for less at a time, or raise it"
    )]
    TooLarge { wanted: u64, limit: u64 },
    #[error(
        "the client was too slow: others needed the memory of its message (requests.memory_bytes is {limit}); send the message without pauses"
    )]
    Slow { limit: u64 },
    #[error(
        "the server is busy: {waiting} calls wait for a thread, requests.max_waiting is {limit}; try again"
    )]
    Queue { waiting: usize, limit: usize },
    #[error(
        "the server is busy: the call has waited for a thread for {limit:?} (requests.max_wait_ms); try again"
    )]
    Wait { limit: Duration },
    #[error("the server is busy: calls wait longer than {limit:?} (requests.max_delay_ms); try again")]
    Delay { limit: Duration },
}

/// The permits on the pool that a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Permits of data calls.
    User,
    /// Permits of reads of system tables. The table decides, not the priority in a request's header: any
    /// client can set that.
    System,
}

impl Class {
    /// The class of a read of this table.
    pub(crate) fn of_read(table: &TableName) -> Self {
        if table.is_system() {
            Self::System
        } else {
            Self::User
        }
    }
}

/// The limits, and how far they are used. Shared by all connections.
#[derive(Debug)]
pub(crate) struct Admission {
    memory: Arc<Memory>,
    /// Permits on the pool for data calls.
    queue: Queue,
    /// Permits on the pool for reads of system tables.
    system: Queue,
    /// Permits for calls whose filters are compiled.
    compilers: Queue,
    /// Bounds the bulk loads that run at a time.
    bulk_loads: Semaphore,
    max_waiting: usize,
    max_wait: Duration,
    max_delay: Duration,
    /// Number of data calls out of [`WHOLE`] that are refused because of delay.
    refused_share: AtomicU32,
    /// Counts data calls while some are refused, to take turns.
    turn: AtomicU32,
    refused: [Counter; REASONS.len()],
    delay: Gauge,
    capacity: Capacity,
}

impl Admission {
    /// Nothing in hand. Data calls take at most `permits` permits on the pool.
    pub(crate) fn new(config: &Requests, permits: usize, capacity: Capacity) -> Self {
        let refused = |reason| counter!(names::REFUSED_CALLS, "reason" => reason);
        let max_wait = Duration::from_millis(config.max_wait_ms);
        let longest_wait = (!max_wait.is_zero()).then_some(max_wait);
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            memory: Arc::new(Memory::new(
                config.memory_bytes,
                refused("memory"),
                refused("slow"),
            )),
            queue: Queue::new(permits, longest_wait),
            system: Queue::new(SYSTEM_PERMITS, longest_wait),
            compilers: Queue::new((cores / 2).max(1), longest_wait),
            bulk_loads: Semaphore::new(BULK_LOADS),
            max_waiting: config.max_waiting,
            max_wait,
            max_delay: Duration::from_millis(config.max_delay_ms),
            refused_share: AtomicU32::new(0),
            turn: AtomicU32::new(0),
            refused: REASONS.map(refused),
            delay: gauge!(names::NETWORK_DELAY_SECONDS),
            capacity,
        }
    }

    /// A permit for a bulk load, when it may run.
    pub(crate) async fn bulk_load(&self) -> SemaphorePermit<'_> {
        let permit = self.bulk_loads.acquire().await;
        permit.expect("nothing closes this semaphore")
    }

    /// The limits that somebody set.
    pub(crate) fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// The bytes of calls in hand.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Shows a scrape the memory and the queue of calls. REQUIRES: the metrics recorder is installed.
    pub(crate) fn publish(&self) {
        gauge!(names::REQUEST_MEMORY_BYTES).set(self.memory.used() as f64);
        gauge!(names::REQUEST_MEMORY_LIMIT_BYTES).set(self.memory.limit() as f64);
        gauge!(names::WAITING_CALLS).set(self.waiting() as f64);
    }

    /// Calls that wait for a thread of the pool.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Lets a data call begin. The call reserves memory later, when it needs some.
    pub(crate) fn admit(&self) -> Result<(), Busy> {
        self.check_delay().inspect_err(|busy| self.count(*busy))
    }

    /// Lets a call of this class begin, as [`Self::admit`] does; one of [`Class::System`] always.
    pub(crate) fn admit_of(&self, class: Class) -> Result<(), Busy> {
        match class {
            Class::User => self.admit(),
            Class::System => Ok(()),
        }
    }

    /// Lets a data call that has begun go on to the pool.
    pub(crate) fn admit_to_queue(&self) -> Result<(), Busy> {
        self.admit_to_queue_of(Class::User)
    }

    /// Lets a call that has begun go on to the pool.
    pub(crate) fn admit_to_queue_of(&self, class: Class) -> Result<(), Busy> {
        self.check_waiting(self.queue_of(class).len())
    }

    fn queue_of(&self, class: Class) -> &Queue {
        match class {
            Class::User => &self.queue,
            Class::System => &self.system,
        }
    }

    /// Refuses a call that finds `waiting` others in its queue, if that is the limit.
    fn check_waiting(&self, waiting: usize) -> Result<(), Busy> {
        if waiting < self.max_waiting {
            return Ok(());
        }
        let busy = Busy::Queue {
            waiting,
            limit: self.max_waiting,
        };
        self.count(busy);
        Err(busy)
    }

    /// Waits for a permit on the pool.
    pub(crate) async fn permit(&self, class: Class) -> Result<Permit, Busy> {
        let permit = self.queue_of(class).permit().await;
        permit.map_err(|too_long| self.waited(too_long))
    }

    /// Waits for a permit of a call whose filter is compiled. Such a call takes a permit
    /// on the pool after that.
    pub(crate) async fn compiler(&self) -> Result<Permit, Busy> {
        self.check_waiting(self.compilers.len())?;
        self.compilers
            .permit()
            .await
            .map_err(|too_long| self.waited(too_long))
    }

    fn waited(&self, _: TooLong) -> Busy {
        let busy = Busy::Wait { limit: self.max_wait };
        self.count(busy);
        busy
    }

    /// Waits for a permit of a call that has been served in part: it is never refused.
    pub(crate) async fn permit_again(&self, class: Class) -> Permit {
        self.queue_of(class).permit_again().await
    }

    /// Counts a refusal for lack of memory.
    pub(crate) fn count_memory(&self) {
        self.refused[0].increment(1);
    }

    /// Counts a refusal. A slow client was counted when it was dropped.
    pub(crate) fn count(&self, busy: Busy) {
        let reason = match busy {
            Busy::Memory { .. } | Busy::TooLarge { .. } => 0,
            Busy::Queue { .. } => 1,
            Busy::Wait { .. } => 2,
            Busy::Delay { .. } => 3,
            Busy::Slow { .. } => return,
        };
        self.refused[reason].increment(1);
    }

    /// Refuses every so many calls while calls are late.
    fn check_delay(&self) -> Result<(), Busy> {
        let share = self.refused_share.load(Ordering::Relaxed);
        if share == 0 || !is_refused(self.turn.fetch_add(1, Ordering::Relaxed), share) {
            return Ok(());
        }
        Err(Busy::Delay {
            limit: self.max_delay,
        })
    }

    /// Measures the delay and sets the share that is refused, until told to stop.
    pub(crate) async fn watch(&self, stop: CancellationToken) {
        if self.max_delay.is_zero() {
            return;
        }
        loop {
            let mut least = Duration::MAX;
            for _ in 0..LOOKS {
                let due = Instant::now() + LOOK;
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep_until(due) => {}
                }
                least = least.min(due.elapsed());
            }
            self.delay.set(least.as_secs_f64());
            let share = self.refused_share.load(Ordering::Relaxed);
            self.refused_share
                .store(next_share(share, least > self.max_delay), Ordering::Relaxed);
        }
    }
}

/// The share to refuse in the next window: half of what is let through while calls are late, and a quarter
/// less when they are not.
fn next_share(share: u32, is_late: bool) -> u32 {
    if is_late {
        (share + (WHOLE - share) / 2).min(SHARE_MAX)
    } else {
        share * 3 / 4
    }
}

/// Whether the call of this turn is among the refused; they are spread evenly.
fn is_refused(turn: u32, share: u32) -> bool {
    let (turn, share, whole) = (u64::from(turn), u64::from(share), u64::from(WHOLE));
    (turn + 1) * share / whole > turn * share / whole
}

#[cfg(test)]
mod tests {
    use basalt_engine::fs::sim::{SimFs, SimOptions};

    use super::*;
    use crate::config::Config;

    fn admission(memory_bytes: u64, max_waiting: usize, permits: usize) -> Admission {
        let config = Requests {
            memory_bytes,
            max_waiting,
            max_wait_ms: 100,
            max_delay_ms: 100,
        };
        let disk = SimFs::new(1, SimOptions::default());
        let defaults = Config::default();
        let capacity = Capacity::new(&defaults, &crate::rig::engine_on(&disk, &defaults));
        Admission::new(&config, permits, capacity.expect("an empty database"))
    }

    #[test]
    fn the_share_grows_while_calls_are_late_and_shrinks_after() {
        let mut shares = vec![0];
        for is_late in [true, true, true, true, true, true, false, false] {
            shares.push(next_share(*shares.last().unwrap(), is_late));
        }
        assert_eq!(shares, [0, 500, 750, 875, 937, 950, 950, 712, 534]);
        let calm = (0..40).fold(SHARE_MAX, |share, _| next_share(share, false));
        assert_eq!(calm, 0);
    }

    #[test]
    fn refused_calls_are_spread_evenly() {
        for share in [0, 1, 250, 500, 937, 1000] {
            let refused = (0..WHOLE).filter(|turn| is_refused(*turn, share)).count();
            assert_eq!(refused, share as usize);
        }
        assert!((0..100).all(|turn| is_refused(turn, 500) != is_refused(turn + 1, 500)));
        assert!(!is_refused(u32::MAX, 0));
    }

    #[tokio::test]
    async fn a_full_line_refuses_and_so_does_a_long_wait() {
        let admission = admission(1000, 1, 1);
        let permit = admission.permit(Class::User).await.unwrap();
        admission.admit_to_queue().unwrap();
        let mut second = std::pin::pin!(admission.permit(Class::User));
        assert!(futures_poll(&mut second).is_none());
        assert_eq!(
            admission.admit_to_queue(),
            Err(Busy::Queue { waiting: 1, limit: 1 })
        );
        drop(permit);
        let _permit = second.await.unwrap();
        assert_eq!(admission.waiting(), 0);
        admission.admit_to_queue().unwrap();
        let refused = admission.permit(Class::User).await.unwrap_err();
        assert!(
            refused.to_string().contains("for 100ms (requests.max_wait_ms)"),
            "{refused}"
        );
        assert_eq!(admission.waiting(), 0);
    }

    #[tokio::test]
    async fn half_of_the_cores_compile_and_the_queue_for_them_is_bounded() {
        let admission = admission(1000, 1, 1);
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let mut permits = Vec::new();
        for _ in 0..(cores / 2).max(1) {
            permits.push(admission.compiler().await.unwrap());
        }
        let mut next = std::pin::pin!(admission.compiler());
        assert!(futures_poll(&mut next).is_none());
        let refused = admission.compiler().await.unwrap_err();
        assert_eq!(refused, Busy::Queue { waiting: 1, limit: 1 });
        // The pool has permits for other calls meanwhile.
        let _other = admission.permit(Class::User).await.unwrap();
        drop(permits);
        let _permit = next.await.unwrap();
    }

    /// Other calls that fill their queue, or make the server late, do not keep reads of system tables
    /// back. These have a bound of their own.
    #[tokio::test]
    async fn reads_of_system_tables_do_not_wait_for_other_calls() {
        let admission = admission(1000, 1, 1);
        let table = |name: &str| TableName::parse(name.as_bytes()).unwrap();
        let (meta, other) = (table("hbase:meta"), table("t"));
        admission.refused_share.store(WHOLE, Ordering::Relaxed);
        assert!(matches!(
            admission.admit_of(Class::of_read(&other)),
            Err(Busy::Delay { .. })
        ));
        assert_eq!(admission.admit_of(Class::of_read(&meta)), Ok(()));

        let _permit = admission.permit(Class::of_read(&other)).await.unwrap();
        let mut waiting = std::pin::pin!(admission.permit(Class::User));
        assert!(futures_poll(&mut waiting).is_none());
        admission.admit_to_queue().unwrap_err();
        let class = Class::of_read(&meta);
        let mut permits = Vec::new();
        for _ in 0..SYSTEM_PERMITS {
            admission.admit_to_queue_of(class).unwrap();
            permits.push(admission.permit(class).await.unwrap());
        }
        let mut next = std::pin::pin!(admission.permit(class));
        assert!(futures_poll(&mut next).is_none());
        assert_eq!(
            admission.admit_to_queue_of(class),
            Err(Busy::Queue { waiting: 1, limit: 1 })
        );
        drop(permits);
        drop(next.await.unwrap());
    }

    /// A runtime whose only thread is blocked is late; some calls are refused then, and none after it has
    /// been idle for a while.
    #[tokio::test]
    async fn a_late_runtime_refuses_some_calls() {
        let admission = Arc::new(admission(1000, 1, 1));
        let stop = CancellationToken::new();
        let watch = tokio::spawn({
            let (admission, stop) = (Arc::clone(&admission), stop.clone());
            async move { admission.watch(stop).await }
        });
        while admission.refused_share.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(LOOK + Duration::from_millis(110));
            tokio::task::yield_now().await;
        }
        let refused = (0..100).filter(|_| admission.admit().is_err()).count();
        assert_eq!(refused, 50);
        while admission.refused_share.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(LOOK).await;
        }
        admission.admit().unwrap();
        stop.cancel();
        watch.await.unwrap();
    }

    /// Polls once.
    fn futures_poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
