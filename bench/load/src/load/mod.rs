//! The load core: every workload over the network runs its operations here.
//!
//! 1. One task for each connection. It waits until an operation is due ([`pacing`]), takes the next index,
//!    and lets the workload carry the operation out.
//! 2. Operations that are due within the warm-up are carried out and forgotten.
//! 3. The run ends at its number of counted operations, at its duration after the warm-up, or when the
//!    workload of every task has nothing left. No operation begins afterwards; begun ones are awaited.
//! 4. Each task keeps its own figures; they are added up at the end.
//!
//! A latency begins when its operation was due (open loop) or begun (closed loop), and ends when
//! the workload has its result, retries and their pauses included ([`retry`]). An operation that is
//! given up has no latency; it is counted as failed. In an open loop, operations that are due when
//! the time is over and have not been begun have no latency either; they are counted, since they
//! would have been the slowest.
//!
//! Operation `index` must be a function of the index, the seed and the task's own random numbers: which task
//! gets which index depends on the server's speed.

pub mod choose;
pub mod interrupt;
pub mod latency;
pub mod options;
pub mod pacing;
mod progress;
pub mod retry;
pub(crate) mod task;
pub mod timeline;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::error::{Error, Result};
use interrupt::Phase;
use latency::Latencies;
use pacing::{Pace, Schedule};
use timeline::Timeline;

/// How to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In front of the progress bar.
    pub label: String,
    /// Tasks, each with a connection of its own.
    pub connections: u64,
    /// How operations follow each other.
    pub pace: Pace,
    /// Operations that count; `None` if time or the workload ends the run.
    pub operations: Option<u64>,
    /// Rows of an operation, for the progress bar.
    pub rows_per_operation: u64,
    /// Measured time.
    pub duration: Option<Duration>,
    /// Before it, nothing is measured.
    pub warm_up: Duration,
}

impl Plan {
    /// From the start to the end of the measured time.
    fn length(&self) -> Option<Duration> {
        self.duration.map(|duration| self.warm_up + duration)
    }

    /// Operations that were due within the measured time and not among the `begun` ones; none in a closed
    /// loop.
    fn not_begun(&self, begun: u64) -> u64 {
        let (Pace::Open { requests_per_s }, Some(duration)) = (self.pace, self.duration) else {
            return 0;
        };
        let due = (requests_per_s * duration.as_secs_f64()) as u64;
        due.min(self.operations.unwrap_or(u64::MAX)).saturating_sub(begun)
    }

    /// The measured time, if it ended an open loop: fewer operations were begun than planned.
    fn whole_time(&self, begun: u64) -> Option<Duration> {
        let is_open = self.pace != Pace::Closed;
        let is_complete = self.operations.is_some_and(|operations| begun >= operations);
        self.duration.filter(|_| is_open && !is_complete)
    }
}

/// The operations of a workload.
pub trait Operations: Send + Sync + 'static {
    /// State of one task.
    type Worker: Send + 'static;

    /// The names of the kinds of operations, in the order of the report.
    fn kinds(&self) -> Vec<String>;

    /// The state of task `number`, from 0. `started` is the begin of the run.
    fn worker(&self, number: u64, started: Instant) -> Result<Self::Worker>;

    /// Carries out operation `index`; `None` if this task has nothing left to do. A refusal by the
    /// server is an outcome; an error ends the run.
    fn operate(
        &self,
        worker: &mut Self::Worker,
        index: u64,
    ) -> impl Future<Output = Result<Option<Outcome>>> + Send;
}

/// Outcome of one operation.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Index into [`Operations::kinds`].
    pub kind: usize,
    /// Rows read or written.
    pub rows: u64,
    /// Whether it was carried out in the end.
    pub done: bool,
    /// Calls that failed, those that were tried again included.
    pub failures: retry::Failures,
}

impl Outcome {
    /// The outcome of an operation of a kind with its number of rows; `None` if the operation was
    /// given up.
    pub fn of(kind: usize, rows: Option<u64>, failures: retry::Failures) -> Outcome {
        Outcome {
            kind,
            rows: rows.unwrap_or_default(),
            done: rows.is_some(),
            failures,
        }
    }
}

/// The figures of one kind of operation.
#[derive(Clone, Debug)]
pub struct KindMeasured {
    /// Name in reports.
    pub name: String,
    pub(crate) operations: u64,
    pub(crate) rows: u64,
    /// Operations that failed for good.
    pub given_up: u64,
    pub(crate) latencies: Latencies,
}

/// The figures of a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Figures by kind of operation, in the order of [`Operations::kinds`].
    pub kinds: Vec<KindMeasured>,
    /// Calls that failed.
    pub failures: retry::Failures,
    /// Acknowledged rows by time.
    pub(crate) timeline: Timeline,
    /// Operations that were due in an open loop and that no task got round to: the server was slower than the
    /// rate.
    pub not_begun: u64,
    /// From the end of the warm-up to the last result; in an open loop that the time ended, at least to this
    /// time, since the rate counts the pause behind the last operation too.
    pub elapsed: Duration,
}

impl Measured {
    /// Figures of a run without operations yet.
    pub fn new(kinds: Vec<String>) -> Measured {
        let kind = |name| KindMeasured {
            name,
            operations: 0,
            rows: 0,
            given_up: 0,
            latencies: Latencies::new(),
        };
        Measured {
            kinds: kinds.into_iter().map(kind).collect(),
            failures: retry::Failures::default(),
            timeline: Timeline::default(),
            not_begun: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// Rows of all kinds.
    pub fn rows(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.rows).sum()
    }

    /// Operations of all kinds that were carried out.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.operations).sum()
    }

    /// Latencies of all kinds.
    pub fn latencies(&self) -> Latencies {
        let mut all = Latencies::new();
        for kind in &self.kinds {
            all.add(&kind.latencies);
        }
        all
    }

    /// A count as a rate per second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    fn record(&mut self, outcome: Outcome, at: Duration, latency: Duration) {
        self.failures.add(outcome.failures);
        let Some(kind) = self.kinds.get_mut(outcome.kind) else {
            return;
        };
        if outcome.done {
            kind.operations += 1;
            kind.rows += outcome.rows;
            kind.latencies.record(latency);
            self.timeline.add(at, outcome.rows);
        } else {
            kind.given_up += 1;
        }
        self.elapsed = self.elapsed.max(at);
    }

    fn add(&mut self, other: Measured) {
        for (kind, other) in self.kinds.iter_mut().zip(other.kinds) {
            kind.operations += other.operations;
            kind.rows += other.rows;
            kind.given_up += other.given_up;
            kind.latencies.add(&other.latencies);
        }
        self.failures.add(other.failures);
        self.timeline.add_all(&other.timeline);
        self.elapsed = self.elapsed.max(other.elapsed);
    }
}

/// Runs the operations, and returns the figures and the states of the tasks.
pub async fn run<O: Operations>(plan: Plan, operations: &Arc<O>) -> Result<(Measured, Vec<O::Worker>)> {
    let (schedule, pacer) = Schedule::start(plan.pace, plan.length());
    let phase = Phase::begin(&schedule);
    let workers: Result<Vec<_>> = (0..plan.connections)
        .map(|number| operations.worker(number, schedule.started()))
        .collect();
    let shared = Arc::new(Shared {
        bar: progress::bar(&plan),
        taken: Mutex::default(),
        operations: Arc::clone(operations),
        schedule,
        plan,
    });
    let mut measured = Measured::new(operations.kinds());
    let mut states = Vec::new();
    let mut failed = None;
    let mut nothing_left = false;
    match workers {
        Ok(workers) => {
            let tasks: Vec<_> = workers
                .into_iter()
                .map(|worker| tokio::spawn(work(Arc::clone(&shared), worker)))
                .collect();
            for task in tasks {
                match task.await {
                    Ok(Ok((figures, state, end))) => {
                        measured.add(figures);
                        nothing_left |= end == End::NothingLeft;
                        states.push(state);
                    }
                    Ok(Err(error)) => failed = failed.or(Some(error)),
                    Err(error) => failed = Some(Error::Usage(format!("a task stopped: {error}"))),
                }
            }
        }
        Err(error) => failed = Some(error),
    }
    shared.schedule.close();
    shared.bar.finish_and_clear();
    if pacer.is_some_and(|pacer| pacer.join().is_err()) {
        failed = Some(Error::Usage("the pacing thread stopped".to_owned()));
    }
    if !nothing_left {
        let given_up: u64 = measured.kinds.iter().map(|kind| kind.given_up).sum();
        let begun = measured.operations() + given_up;
        measured.not_begun = shared.plan.not_begun(begun);
        if shared.schedule.is_over()
            && let Some(whole) = shared.plan.whole_time(begun)
        {
            measured.elapsed = measured.elapsed.max(whole);
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    phase.end(&shared.plan.label, &measured)?;
    Ok((measured, states))
}

/// State shared by the tasks.
struct Shared<O> {
    plan: Plan,
    operations: Arc<O>,
    schedule: Arc<Schedule>,
    taken: Mutex<Taken>,
    bar: ProgressBar,
}

/// The operations that tasks have taken. One lock for both numbers: when an operation is refused
/// because enough of them count, every one before it has been taken by a task that carries it out.
#[derive(Debug, Default)]
struct Taken {
    /// Index of the next one.
    next: u64,
    /// Number of operations before it that count.
    counted: u64,
}

/// An operation for a task to carry out.
struct Due {
    index: u64,
    /// From when on its latency counts.
    intended: Instant,
    /// Whether it is in the figures: it was due after the warm-up.
    counts: bool,
}

impl<O> Shared<O> {
    /// The next operation; `None` if as many as planned count.
    fn take(&self) -> Option<Due> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let index = taken.next;
        let intended = self.schedule.intended(index);
        let counts = intended >= self.schedule.started() + self.plan.warm_up;
        let planned = self.plan.operations.unwrap_or(u64::MAX);
        if counts && taken.counted >= planned {
            return None;
        }
        taken.next += 1;
        taken.counted += u64::from(counts);
        Some(Due {
            index,
            intended,
            counts,
        })
    }
}

/// One task. If it ends by an error or a limit, the others end too.
async fn work<O: Operations>(
    shared: Arc<Shared<O>>,
    mut worker: O::Worker,
) -> Result<(Measured, O::Worker, End)> {
    let mut measured = Measured::new(shared.operations.kinds());
    let result = operate(&shared, &mut worker, &mut measured).await;
    if !matches!(result, Ok(End::NothingLeft)) {
        shared.schedule.close();
    }
    result.map(|end| (measured, worker, end))
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The run is over for all.
    Limit,
    /// The workload has nothing left for this task.
    NothingLeft,
}

async fn operate<O: Operations>(
    shared: &Shared<O>,
    worker: &mut O::Worker,
    measured: &mut Measured,
) -> Result<End> {
    let plan = &shared.plan;
    let started = shared.schedule.started();
    let deadline = plan.length();
    while shared.schedule.wait().await {
        if deadline.is_some_and(|deadline| started.elapsed() >= deadline) {
            break;
        }
        let Some(Due {
            index,
            intended,
            counts,
        }) = shared.take()
        else {
            break;
        };
        let Some(outcome) = shared.operations.operate(worker, index).await? else {
            return Ok(End::NothingLeft);
        };
        if counts {
            shared.bar.inc(outcome.rows);
            let at = started.elapsed().saturating_sub(plan.warm_up);
            measured.record(outcome, at, intended.elapsed());
        }
    }
    Ok(End::Limit)
}

#[cfg(test)]
mod tests;
