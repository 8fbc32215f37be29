//! Metrics of a gateway: its calls to the cluster. Other servers have none of them; docs/gateway.md lists
//! them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Histogram, Unit, counter, gauge, histogram};
use parking_lot::RwLock;

use super::names::{self, LATENCY_BUCKETS, metric_names};

metric_names! {
    counter CALLS = "basalt_cluster_calls_total", Unit::Count, "RPCs to servers of the cluster, repetitions too.";
    counter FAILED_CALLS = "basalt_cluster_failed_calls_total", Unit::Count,
        "RPCs to servers of the cluster that failed, by the exception, or `no answer`.";
    histogram CALL_SECONDS = "basalt_cluster_call_duration_seconds", Unit::Seconds,
        "From an RPC that is handed to its connection to its answer.";
    counter REPETITIONS = "basalt_cluster_repetitions_total", Unit::Count,
        "Attempts of operations after the first.";
    counter LOOK_UPS = "basalt_cluster_look_ups_total", Unit::Count,
        "Look-ups of regions in hbase:meta, and of hbase:meta in the registry.";
    counter CONNECTIONS_OPENED = "basalt_cluster_connections_opened_total", Unit::Count,
        "Connections to servers of the cluster that were opened.";
    counter CONNECTIONS_FAILED = "basalt_cluster_connections_failed_total", Unit::Count,
        "Connections to servers of the cluster that could not be opened.";
    counter CONNECTIONS_LOST = "basalt_cluster_connections_lost_total", Unit::Count,
        "Connections that servers of the cluster have ended, or that broke.";
    counter RENEWALS = "basalt_cluster_lease_renewals_total", Unit::Count,
        "Renewals of leases of scanners whose clients were slow.";
    gauge ANSWERS = "basalt_cluster_answers", Unit::Count,
        "1 while hbase:meta and most region servers answer, else 0.";
    gauge SERVERS = "basalt_cluster_servers", Unit::Count,
        "Region servers of the cluster at the last look, by whether they answer.";
}

/// Buckets of the histograms here.
pub(super) const HISTOGRAMS: &[(&str, &[f64])] = &[(CALL_SECONDS, LATENCY_BUCKETS)];

/// Handles of one method.
#[derive(Clone, Debug)]
struct Method {
    calls: Counter,
    seconds: Histogram,
}

/// Counts the calls of a gateway to its cluster.
#[derive(Debug)]
pub(crate) struct ClusterCalls {
    methods: RwLock<HashMap<&'static str, Method>>,
    repetitions: Counter,
    look_ups: Counter,
    opened: Counter,
    failed: Counter,
    lost: Counter,
    renewals: Counter,
}

impl ClusterCalls {
    /// Describes the metrics. REQUIRES: the recorder is installed.
    pub(crate) fn new() -> Arc<Self> {
        names::describe(ALL);
        Arc::new(Self {
            methods: RwLock::default(),
            repetitions: counter!(REPETITIONS),
            look_ups: counter!(LOOK_UPS),
            opened: counter!(CONNECTIONS_OPENED),
            failed: counter!(CONNECTIONS_FAILED),
            lost: counter!(CONNECTIONS_LOST),
            renewals: counter!(RENEWALS),
        })
    }

    /// Counts an RPC. `failed`: the class of its exception without package, or `no answer`.
    pub(crate) fn called(&self, method: &'static str, took: Duration, failed: Option<&str>) {
        let known = self.methods.read().get(method).cloned();
        let handles = known.unwrap_or_else(|| {
            let mut methods = self.methods.write();
            let new = || Method {
                calls: counter!(CALLS, "method" => method),
                seconds: histogram!(CALL_SECONDS, "method" => method),
            };
            methods.entry(method).or_insert_with(new).clone()
        });
        handles.calls.increment(1);
        handles.seconds.record(took);
        if let Some(class) = failed {
            counter!(FAILED_CALLS, "method" => method, "exception" => class.to_owned()).increment(1);
        }
    }

    pub(crate) fn repeated(&self) {
        self.repetitions.increment(1);
    }

    pub(crate) fn looked_up(&self) {
        self.look_ups.increment(1);
    }

    pub(crate) fn connected(&self, is_open: bool) {
        let counter = if is_open { &self.opened } else { &self.failed };
        counter.increment(1);
    }

    pub(crate) fn lost(&self) {
        self.lost.increment(1);
    }

    pub(crate) fn renewed(&self) {
        self.renewals.increment(1);
    }

    /// Records the last look at the cluster: how many servers answer, and how many do not.
    #[expect(clippy::unused_self, reason = "the metrics are described by its creation")]
    pub(crate) fn looked_at(&self, is_ready: bool, answering: usize, silent: usize) {
        gauge!(ANSWERS).set(f64::from(is_ready));
        gauge!(SERVERS, "state" => "answers").set(answering as f64);
        gauge!(SERVERS, "state" => "silent").set(silent as f64);
    }
}
