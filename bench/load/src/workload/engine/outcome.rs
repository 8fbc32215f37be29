//! Result of a benchmark, and db_bench's line for it.
//!
//! ```text
//! readrandom   :       2.412 micros/op 414593 ops/sec;   45.9 MB/s (1000000 of 1000000 found)
//! ```
//!
//! `micros/op` is the time of all threads together divided by all operations, `ops/sec` counts by the clock
//! on the wall, as in db_bench: with several threads the one is not the inverse of the other.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::Benchmark;
use super::standing::Standing;
use crate::load::latency::{Latencies, LatencyReport};
use crate::load::timeline::{Timeline, TimelineReport};

/// Operations of one thread.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) operations: u64,
    /// Bytes of keys and values, written or found.
    pub(super) bytes: u64,
    /// Keys found; `None` where nothing is looked for.
    pub(super) found: Option<u64>,
    /// Writes that were refused and tried again.
    pub(super) stalls: u64,
    /// With `--histogram`.
    pub(super) latencies: Option<Latencies>,
    /// Operations by slot of time, beside `latencies`.
    pub(super) timeline: Timeline,
    /// From the thread's first operation to its last.
    pub(super) busy: Duration,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.stalls += other.stalls;
        self.busy += other.busy;
        if let Some(found) = other.found {
            *self.found.get_or_insert(0) += found;
        }
        if let Some(latencies) = &other.latencies {
            self.latencies.get_or_insert_with(Latencies::new).add(latencies);
        }
        self.timeline.add_all(&other.timeline);
    }
}

/// Result of a benchmark.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) benchmark: Benchmark,
    /// Operations of all threads.
    pub(super) tally: Tally,
    /// By the clock on the wall.
    pub(super) elapsed: Duration,
    /// The database at the end.
    pub(super) standing: Standing,
}

impl Outcome {
    fn micros_per_operation(&self) -> f64 {
        self.tally.busy.as_secs_f64() * 1e6 / self.tally.operations.max(1) as f64
    }

    fn operations_per_s(&self) -> f64 {
        self.tally.operations as f64 / self.seconds()
    }

    fn mb_per_s(&self) -> f64 {
        self.tally.bytes as f64 / f64::from(1 << 20) / self.seconds()
    }

    /// Never zero, so that nothing is divided by it.
    fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64().max(1e-9)
    }

    /// db_bench's line.
    pub(super) fn line(&self) -> String {
        let mut line = format!(
            "{:<12} : {:>11.3} micros/op {:.0} ops/sec;",
            self.benchmark.name(),
            self.micros_per_operation(),
            self.operations_per_s().floor()
        );
        if self.tally.bytes > 0 {
            let _ = write!(line, " {:>6.1} MB/s", self.mb_per_s());
        }
        if let Some(found) = self.tally.found {
            let _ = write!(line, " ({found} of {} found)", self.tally.operations);
        }
        if self.tally.stalls > 0 {
            let _ = write!(line, " ({} writes refused and tried again)", self.tally.stalls);
        }
        line
    }

    /// Percentiles as db_bench prints them.
    pub(super) fn histogram_text(&self) -> String {
        let Some(latencies) = &self.tally.latencies else {
            return "Microseconds per op: not measured".to_owned();
        };
        let report = latencies.report();
        let at = |percentile| latencies.percentile(percentile);
        format!(
            "Microseconds per op:\nCount: {} Average: {:.4}\nMin: {}  Median: {}  Max: {}\n\
             Percentiles: P50: {} P75: {} P99: {} P99.9: {} P99.99: {}",
            report.count,
            report.mean * 1e6,
            at(0.0),
            at(50.0),
            at(100.0),
            at(50.0),
            at(75.0),
            at(99.0),
            at(99.9),
            at(99.99),
        )
    }

    pub(super) fn report(&self) -> OutcomeReport {
        OutcomeReport {
            benchmark: self.benchmark.name(),
            operations: self.tally.operations,
            seconds: self.elapsed.as_secs_f64(),
            micros_per_operation: self.micros_per_operation(),
            operations_per_s: self.operations_per_s(),
            mb_per_s: self.mb_per_s(),
            found: self.tally.found,
            writes_refused: self.tally.stalls,
            latency_seconds: self.tally.latencies.as_ref().map(Latencies::report),
            timeline: self
                .tally
                .latencies
                .as_ref()
                .map(|_| self.tally.timeline.report()),
            database: self.standing,
        }
    }
}

/// One benchmark of the JSON.
#[derive(Debug, Serialize)]
pub(super) struct OutcomeReport {
    benchmark: &'static str,
    operations: u64,
    seconds: f64,
    micros_per_operation: f64,
    operations_per_s: f64,
    mb_per_s: f64,
    found: Option<u64>,
    writes_refused: u64,
    latency_seconds: Option<LatencyReport>,
    timeline: Option<TimelineReport>,
    database: Standing,
}

/// The JSON of a run.
#[derive(Debug, Serialize)]
pub(super) struct EngineReport<'a> {
    pub(super) format: u32,
    pub(super) workload: &'static str,
    pub(super) tool: &'static str,
    pub(super) engine: &'static str,
    pub(super) engine_version: &'a str,
    pub(super) num: u64,
    pub(super) value_bytes: u32,
    pub(super) threads: u32,
    pub(super) cache_bytes: u64,
    pub(super) compression: &'static str,
    pub(super) encoding: Option<&'static str>,
    pub(super) benchmarks: Vec<OutcomeReport>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_that_of_db_bench() {
        let tally = Tally {
            operations: 1_000_000,
            bytes: 116_000_000,
            found: Some(999_999),
            stalls: 0,
            latencies: None,
            timeline: Timeline::default(),
            busy: Duration::from_millis(4_824),
        };
        let mut outcome = Outcome {
            benchmark: Benchmark::ReadRandom,
            tally,
            elapsed: Duration::from_millis(2_412),
            standing: Standing::default(),
        };
        assert_eq!(
            outcome.line(),
            "readrandom   :       4.824 micros/op 414593 ops/sec;   45.9 MB/s (999999 of 1000000 found)"
        );
        outcome.benchmark = Benchmark::ReadWhileWriting;
        assert!(
            outcome
                .line()
                .starts_with("readwhilewriting :       4.824 micros/op 414593 ops/sec;")
        );
        outcome.tally.found = None;
        outcome.tally.bytes = 0;
        outcome.tally.stalls = 3;
        assert!(
            outcome
                .line()
                .ends_with("ops/sec; (3 writes refused and tried again)")
        );
    }

    #[test]
    fn threads_add_up() {
        let tally = |found| Tally {
            operations: 10,
            bytes: 100,
            found,
            stalls: 1,
            latencies: None,
            timeline: Timeline::default(),
            busy: Duration::from_secs(1),
        };
        let mut sum = Tally::default();
        sum.add(&tally(Some(3)));
        sum.add(&tally(Some(4)));
        sum.add(&tally(None));
        assert_eq!(
            (sum.operations, sum.bytes, sum.found, sum.stalls),
            (30, 300, Some(7), 3)
        );
        assert_eq!(sum.busy, Duration::from_secs(3));
    }
}
