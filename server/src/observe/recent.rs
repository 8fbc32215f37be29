//! The last minutes in steps of a few seconds, for the curves of the overview: calls, errors, latencies,
//! processor, memory.
//!
//! 1. Each answered call adds one to a bucket of its latency ([`Recent::took`]): one atomic addition in a
//!    part that few threads share.
//! 2. Every few seconds [`Recent::note`] stores the difference to the step before.
//! 3. [`Recent::steps`] returns them, and quantiles of each.
//!
//! Buckets are a seventh to a quarter of their latency wide, so a quantile is too large by at most that.
//! Memory is fixed: [`STEPS`] steps, some 110 KiB.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Steps that are kept: ten minutes of five seconds each.
const STEPS: usize = 120;

/// Buckets of latencies: four for each doubling, from a microsecond to more than an hour.
pub(super) const BUCKETS: usize = 32 * 4;

/// Parts that threads add to.
const PARTS: usize = 8;

/// Counters at one time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    /// Writes that were refused or slowed because memstores were full.
    pub(crate) stalled_writes: u64,
    /// Calls that the process has used the processor for.
    pub(crate) cpu: Duration,
    /// Memory of the process; not a counter.
    pub(crate) memory_bytes: u64,
}

/// A few seconds.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) length: Duration,
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    pub(crate) stalled_writes: u64,
    pub(crate) cpu: Duration,
    pub(crate) memory_bytes: u64,
    /// Calls by latency.
    buckets: Box<[u32]>,
}

impl Step {
    /// A number per second of the step.
    pub(crate) fn rate(&self, count: u64) -> f64 {
        count as f64 / self.length.as_secs_f64().max(0.001)
    }

    /// Processors in use.
    pub(crate) fn processors(&self) -> f64 {
        self.cpu.as_secs_f64() / self.length.as_secs_f64().max(0.001)
    }
}

/// Latency that a part of the calls of these steps did not exceed; `None` without calls.
pub(crate) fn quantile<'s>(steps: impl Iterator<Item = &'s Step>, part: f64) -> Option<Duration> {
    let mut sums = [0_u64; BUCKETS];
    for step in steps {
        for (sum, count) in sums.iter_mut().zip(&step.buckets) {
            *sum += u64::from(*count);
        }
    }
    let all: u64 = sums.iter().sum();
    let wanted = (all as f64 * part).ceil().max(1.0) as u64;
    let mut before = 0;
    let at = sums.iter().position(|count| {
        before += count;
        before >= wanted
    })?;
    Some(upper_end(at))
}

/// Calls of these steps that took longer, by up to a quarter.
pub(crate) fn slower<'s>(steps: impl Iterator<Item = &'s Step>, than: Duration) -> u64 {
    let of_step = |step: &Step| {
        step.buckets[bucket(than) + 1..]
            .iter()
            .map(|count| u64::from(*count))
            .sum::<u64>()
    };
    steps.map(of_step).sum()
}

/// Latencies of one part.
#[repr(align(128))]
#[derive(Debug)]
struct Part([AtomicU64; BUCKETS]);

/// The last minutes.
#[derive(Debug)]
pub(crate) struct Recent {
    parts: Box<[Part]>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    at: Instant,
    totals: Totals,
    buckets: [u64; BUCKETS],
    /// Oldest first.
    steps: VecDeque<Step>,
}

thread_local! {
    static OWN_PART: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The part that this thread adds to.
fn own_part() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    OWN_PART.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % PARTS);
        }
        own.get()
    })
}

/// The bucket of a latency.
pub(super) fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    let doubling = micros.ilog2() as usize;
    // The two bits below the highest one; of small numbers there are none.
    let quarter = ((micros << 2) >> doubling) as usize & 3;
    (doubling * 4 + quarter).min(BUCKETS - 1)
}

/// The largest latency of a bucket.
pub(super) fn upper_end(bucket: usize) -> Duration {
    let (doubling, quarter) = (bucket / 4, bucket % 4);
    Duration::from_micros(((4 + quarter as u64 + 1) << doubling) / 4)
}

impl Recent {
    /// At the start of the server, when all counters are zero.
    pub(crate) fn new() -> Self {
        let part = |_| Part(std::array::from_fn(|_| AtomicU64::new(0)));
        Self {
            parts: (0..PARTS).map(part).collect(),
            state: Mutex::new(State {
                at: Instant::now(),
                totals: Totals::default(),
                buckets: [0; BUCKETS],
                steps: VecDeque::new(),
            }),
        }
    }

    /// A call was answered.
    pub(crate) fn took(&self, took: Duration) {
        self.parts[own_part()].0[bucket(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a step, given the counters now.
    pub(crate) fn note(&self, totals: Totals) {
        let mut buckets = [0; BUCKETS];
        for part in &self.parts {
            for (sum, count) in buckets.iter_mut().zip(&part.0) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        let mut state = self.state.lock();
        let (now, before) = (Instant::now(), state.totals);
        let counts = buckets.iter().zip(&state.buckets);
        let step = Step {
            length: now.duration_since(state.at),
            calls: totals.calls.saturating_sub(before.calls),
            failed: totals.failed.saturating_sub(before.failed),
            stalled_writes: totals.stalled_writes.saturating_sub(before.stalled_writes),
            cpu: totals.cpu.saturating_sub(before.cpu),
            memory_bytes: totals.memory_bytes,
            buckets: counts
                .map(|(now, then)| u32::try_from(now.saturating_sub(*then)).unwrap_or(u32::MAX))
                .collect(),
        };
        if state.steps.len() >= STEPS {
            state.steps.pop_front();
        }
        state.steps.push_back(step);
        (state.at, state.totals, state.buckets) = (now, totals, buckets);
    }

    /// The steps, the oldest first.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.state.lock().steps.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a latency is in a bucket that begins at most a quarter below it, and buckets do not overlap.
    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut before = 0;
        for micros in (1..5_000).chain((5_000..100_000_000).step_by(9_973)) {
            let took = Duration::from_micros(micros);
            let at = bucket(took);
            assert!(at >= before, "{micros}");
            before = at;
            assert!(took <= upper_end(at), "{took:?} in {at}");
            assert!(
                upper_end(at) <= took * 5 / 4 + Duration::from_micros(1),
                "{took:?} in {at}"
            );
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
        assert_eq!(bucket(Duration::ZERO), 0);
    }

    /// Goal: steps have differences, quantiles are of the chosen steps, and the oldest step goes.
    #[test]
    fn steps_are_differences() {
        let recent = Recent::new();
        for _ in 0..98 {
            recent.took(Duration::from_millis(1));
        }
        recent.took(Duration::from_secs(1));
        recent.took(Duration::from_secs(2));
        let totals = |calls, failed| Totals {
            calls,
            failed,
            cpu: Duration::from_secs(calls),
            memory_bytes: 7,
            ..Totals::default()
        };
        recent.note(totals(100, 3));
        recent.took(Duration::from_millis(8));
        recent.note(totals(101, 3));
        let steps = recent.steps();
        let shown: Vec<_> = steps
            .iter()
            .map(|step| (step.calls, step.failed, step.memory_bytes))
            .collect();
        assert_eq!(shown, [(100, 3, 7), (1, 0, 7)]);
        let near = |found: Option<Duration>, ms: u64| {
            let found = found.expect("there are calls");
            let wanted = Duration::from_millis(ms);
            assert!(
                found >= wanted && found <= wanted * 5 / 4,
                "{found:?} for {wanted:?}"
            );
        };
        near(quantile(steps.iter().take(1), 0.5), 1);
        near(quantile(steps.iter().take(1), 0.99), 1_000);
        near(quantile(steps.iter().skip(1), 0.99), 8);
        near(quantile(steps.iter(), 1.0), 2_000);
        assert_eq!(quantile(steps.iter().take(0), 0.5), None);
        assert_eq!(slower(steps.iter(), Duration::from_millis(1)), 3);
        assert_eq!(slower(steps.iter(), Duration::from_secs(1)), 1);
        assert_eq!(slower(steps.iter(), Duration::MAX), 0);
        for _ in 0..STEPS {
            recent.note(totals(200, 3));
        }
        let steps = recent.steps();
        assert_eq!((steps.len(), steps[0].calls, steps[1].calls), (STEPS, 99, 0));
        assert_eq!(quantile(steps.iter(), 0.5), None);
    }
}
