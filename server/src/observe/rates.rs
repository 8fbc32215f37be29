//! How fast counters grow, for pages: calls by method, requests by region.
//!
//! Every few seconds [`Rates::tick`] records the counters. A rate is the increase since the oldest
//! of these notes, divided by the time since then: an average of the last ten to fifteen seconds.
//!
//! Memory is that of three notes: a few dozen bytes for each region. One short lock, which no call takes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::engine::RegionRequests;
use basalt_engine::id::RegionId;
use parking_lot::Mutex;

use super::metrics::{Api, CallCount, process_usage};
use super::recent::{Recent, Totals};

/// Time between two notes.
const PERIOD: Duration = Duration::from_secs(5);

/// Notes that are kept.
const NOTES: usize = 3;

/// Where the counters stood.
#[derive(Debug)]
pub(crate) struct Note {
    at: Instant,
    /// Calls and failed calls.
    methods: HashMap<(Api, &'static str), [u64; 2]>,
    /// Reads and writes.
    regions: HashMap<RegionId, [u64; 2]>,
}

/// A method's calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRate {
    pub(crate) api: Api,
    pub(crate) method: &'static str,
    /// Since the start.
    pub(crate) calls: u64,
    /// Since the start.
    pub(crate) failed: u64,
    pub(crate) calls_per_second: f64,
    pub(crate) failed_per_second: f64,
}

/// The notes.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Oldest first, never empty.
    notes: Mutex<VecDeque<Arc<Note>>>,
    recent: Recent,
}

impl Rates {
    /// At the start of the server, when all counters are zero.
    pub(crate) fn new() -> Self {
        let start = Note {
            at: Instant::now(),
            methods: HashMap::new(),
            regions: HashMap::new(),
        };
        Self {
            notes: Mutex::new(VecDeque::from([Arc::new(start)])),
            recent: Recent::new(),
        }
    }

    /// The last minutes in steps.
    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Records `counts`, the counters of calls, regions and stalled writes, if it is time. To be called
    /// every second or so.
    pub(crate) fn tick(&self, counts: impl FnOnce() -> (Vec<CallCount>, Vec<RegionRequests>, u64)) {
        if self
            .notes
            .lock()
            .back()
            .is_some_and(|last| last.at.elapsed() < PERIOD)
        {
            return;
        }
        let (calls, regions, stalled_writes) = counts();
        let sum = |figure: fn(&CallCount) -> u64| calls.iter().map(figure).sum();
        let (cpu, memory_bytes) = process_usage().unwrap_or_default();
        self.recent.note(Totals {
            calls: sum(|count| count.calls),
            failed: sum(|count| count.failed),
            stalled_writes,
            cpu,
            memory_bytes,
        });
        let note = Note {
            at: Instant::now(),
            methods: calls
                .into_iter()
                .map(|count| ((count.api, count.method), [count.calls, count.failed]))
                .collect(),
            regions: regions
                .into_iter()
                .map(|requests| (requests.region, [requests.reads, requests.writes]))
                .collect(),
        };
        let mut notes = self.notes.lock();
        if notes.len() >= NOTES {
            notes.pop_front();
        }
        notes.push_back(Arc::new(note));
    }

    /// The note that rates are measured from.
    pub(crate) fn since(&self) -> Arc<Note> {
        let notes = self.notes.lock();
        Arc::clone(notes.front().expect("there is always a note"))
    }
}

impl Note {
    fn per_second(&self, now: u64, then: u64) -> f64 {
        // Right after the start a single call would appear as a rate of thousands.
        let seconds = self.at.elapsed().as_secs_f64().max(1.0);
        now.saturating_sub(then) as f64 / seconds
    }

    /// Reads and writes per second of a region, given its counters.
    pub(crate) fn region(&self, region: RegionId, reads: u64, writes: u64) -> [f64; 2] {
        // A region that was not there began at zero.
        let then = self.regions.get(&region).copied().unwrap_or_default();
        [self.per_second(reads, then[0]), self.per_second(writes, then[1])]
    }

    /// The methods that were called, the busiest first. `counts` are their counters now.
    pub(crate) fn calls(&self, counts: Vec<CallCount>) -> Vec<CallRate> {
        let mut rates: Vec<CallRate> = counts
            .into_iter()
            .map(|count| {
                let then = self.methods.get(&(count.api, count.method));
                let [calls, failed] = then.copied().unwrap_or_default();
                CallRate {
                    api: count.api,
                    method: count.method,
                    calls: count.calls,
                    failed: count.failed,
                    calls_per_second: self.per_second(count.calls, calls),
                    failed_per_second: self.per_second(count.failed, failed),
                }
            })
            .collect();
        rates.sort_by(|left, right| {
            let by_rate = right.calls_per_second.total_cmp(&left.calls_per_second);
            by_rate
                .then(right.calls.cmp(&left.calls))
                .then(left.method.cmp(right.method))
        });
        rates
    }
}
