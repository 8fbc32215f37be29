//! Latencies in microseconds: recorded by each worker for itself, added up at the end.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latencies of one worker, or of many.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    /// Microseconds, with three digits.
    histogram: Histogram<u64>,
}

/// The percentiles that reports draw.
const PERCENTILES: [f64; 12] = [
    0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 100.0,
];

/// What is reported of latencies, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LatencyReport {
    pub(crate) count: u64,
    pub(crate) mean_us: f64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) p999_us: u64,
    pub(crate) max_us: u64,
    /// Percentile and microseconds, upwards.
    pub(crate) percentiles: Vec<(f64, u64)>,
}

impl Latencies {
    pub(crate) fn new() -> Latencies {
        let histogram = Histogram::new(3).expect("three digits are within what the crate allows");
        Latencies { histogram }
    }

    /// Less than a microsecond counts as one.
    pub(crate) fn record(&mut self, latency: Duration) {
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
        let recorded = self.histogram.record(microseconds);
        recorded.expect("a histogram that resizes itself can hold any value");
    }

    pub(crate) fn add(&mut self, other: &Latencies) {
        let added = self.histogram.add(&other.histogram);
        added.expect("histograms that resize themselves can hold each other's values");
    }

    /// Microseconds that this share of requests, 0 to 100, stayed within.
    pub(crate) fn percentile(&self, percentile: f64) -> u64 {
        self.histogram
            .value_at_percentile(percentile)
            .min(self.histogram.max())
    }

    pub(crate) fn report(&self) -> LatencyReport {
        LatencyReport {
            count: self.histogram.len(),
            mean_us: (self.histogram.mean() * 10.0).round() / 10.0,
            p50_us: self.percentile(50.0),
            p99_us: self.percentile(99.0),
            p999_us: self.percentile(99.9),
            max_us: self.histogram.max(),
            percentiles: PERCENTILES.map(|at| (at, self.percentile(at))).to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up_and_percentiles_are_right() {
        let mut all = Latencies::new();
        for part in 0..2u64 {
            let mut worker = Latencies::new();
            for milliseconds in 1..=500 {
                worker.record(Duration::from_millis(part * 500 + milliseconds));
            }
            all.add(&worker);
        }
        let report = all.report();
        assert_eq!(report.count, 1_000);
        for (found, expected) in [
            (report.p50_us, 500_000),
            (report.p99_us, 990_000),
            (report.p999_us, 999_000),
            (report.max_us, 1_000_000),
        ] {
            assert!(
                found.abs_diff(expected) <= expected / 500,
                "{found} instead of {expected}"
            );
        }
        assert!(report.percentiles.is_sorted_by_key(|(_, value)| *value));
    }

    #[test]
    fn the_fastest_counts_as_a_microsecond() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::ZERO);
        assert_eq!(latencies.report().p50_us, 1);
    }
}
