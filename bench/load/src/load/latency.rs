//! Latencies: recorded by each task for itself in whole microseconds, added up at the end, reported in
//! seconds.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latencies of one task, or of many.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Microseconds, with three digits.
    histogram: Histogram<u64>,
}

/// The percentiles that reports draw.
const PERCENTILES: [f64; 12] = [
    0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 100.0,
];

/// Reported latencies, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyReport {
    /// Operations.
    pub count: u64,
    pub(crate) mean: f64,
    /// Median.
    pub p50: f64,
    pub(crate) p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    pub(crate) max: f64,
    /// Percentile and seconds, upwards.
    pub(crate) percentiles: Vec<(f64, f64)>,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// No latency yet.
    pub fn new() -> Latencies {
        let histogram = Histogram::new(3).expect("three digits are within what the crate allows");
        Latencies { histogram }
    }

    /// Less than a microsecond counts as one.
    pub fn record(&mut self, latency: Duration) {
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
        let recorded = self.histogram.record(microseconds);
        recorded.expect("a histogram that resizes itself can hold any value");
    }

    pub(crate) fn add(&mut self, other: &Latencies) {
        let added = self.histogram.add(&other.histogram);
        added.expect("histograms that resize themselves can hold each other's values");
    }

    /// Microseconds that this share of requests, 0 to 100, stayed within.
    pub fn percentile(&self, percentile: f64) -> u64 {
        self.histogram
            .value_at_percentile(percentile)
            .min(self.histogram.max())
    }

    /// The figures for a report.
    pub fn report(&self) -> LatencyReport {
        let seconds = |microseconds: u64| microseconds as f64 / 1e6;
        let at = |percentile| seconds(self.percentile(percentile));
        LatencyReport {
            count: self.histogram.len(),
            mean: self.histogram.mean().round() / 1e6,
            p50: at(50.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
            max: seconds(self.histogram.max()),
            percentiles: PERCENTILES
                .map(|percentile| (percentile, at(percentile)))
                .to_vec(),
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
            (report.p50, 0.5),
            (report.p99, 0.99),
            (report.p999, 0.999),
            (report.max, 1.0),
        ] {
            assert!(
                (found - expected).abs() <= expected / 500.0,
                "{found} instead of {expected}"
            );
        }
        assert!(report.percentiles.is_sorted_by(|a, b| a.1 <= b.1));
    }

    #[test]
    fn the_fastest_counts_as_a_microsecond() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::ZERO);
        assert!((latencies.report().p50 - 1e-6).abs() < 1e-12);
    }
}
