//! The load of the server: calls, connections, rows, and the slow calls by name.
//!
//! The pipeline notes each call here; pages, the scrape and the reports to clients read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::schema::TableName;

use super::heat::Heat;
use super::metrics::{Api, CallCount, Calls, Connections, MethodMetrics};
use super::rates::Rates;
use super::slow_log::SlowLog;
use crate::config::Config;

/// Figures of the load.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) slow_log: SlowLog,
    /// Reads and writes by key, for the key visualizer.
    pub(crate) heat: Heat,
    pub(crate) rates: Rates,
    pub(crate) connections: Connections,
    calls: Calls,
    /// Number of calls that were given a number for the log.
    requests: AtomicU64,
}

impl Load {
    /// REQUIRES: the metrics recorder is installed.
    pub(crate) fn new(config: &Config, calls: Calls, engine: &Engine) -> Self {
        Self {
            slow_log: SlowLog::new(&config.slow_log),
            heat: Heat::new(&config.key_visualizer, Arc::clone(engine.clock())),
            rates: Rates::new(),
            connections: Connections::new(),
            calls,
            requests: AtomicU64::new(0),
        }
    }

    /// The next number of a call in log lines.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The counters of the method with this number; `None` when the service has fewer.
    pub(crate) fn method(&self, api: Api, number: usize) -> Option<&MethodMetrics> {
        self.calls.method(api, number)
    }

    /// The methods that have a threshold of slow calls by percentile, and it.
    pub(crate) fn slow_thresholds(&self) -> Vec<(Api, &'static str, Duration)> {
        self.calls.thresholds()
    }

    /// How often methods were called since the start, in no order.
    pub(crate) fn call_counts(&self) -> Vec<CallCount> {
        self.calls.counts()
    }

    /// Brings the scrape's figures of calls and connections up to date.
    pub(crate) fn publish(&self) {
        self.calls.publish();
        self.connections.publish();
    }

    /// Records the figures of pages; calls beyond `slow_percentile` of their method's are slow. To be called
    /// every second or so, where it may take a few milliseconds.
    pub(crate) fn tick(
        &self,
        engine: &Engine,
        boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>,
        slow_percentile: f64,
    ) {
        self.calls.tick(slow_percentile);
        self.heat.tick(boundaries);
        self.rates.tick(|| {
            (
                self.call_counts(),
                engine.region_requests(),
                stalled_writes(engine),
            )
        });
    }

    /// Keeps the figures that survive a restart. To be called when the last call has ended.
    pub(crate) fn close(&self, boundaries: impl Fn(&TableName) -> Vec<Vec<u8>>) {
        self.heat.close(boundaries);
    }
}

/// Writes that were refused, stalled or slowed because flushes did not keep up.
fn stalled_writes(engine: &Engine) -> u64 {
    let counters = engine.counters();
    counters.blocked_writes.get() + counters.delayed_writes.get() + counters.suspended_writes.get()
}
