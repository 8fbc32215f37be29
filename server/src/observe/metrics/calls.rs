//! Handles of calls and connections.
//!
//! Counts of every call are kept in parts that few threads share: two network threads that write one
//! counter take its cache line from each other for every call. A scrape copies the sums to the recorder
//! ([`Calls::publish`], [`Connections::publish`]), which cannot be read back; the pages read the counts here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use basalt_engine::metrics::{self as counting, BusyCounter};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::names;
use crate::observe::tail::Tail;

/// Service of a call, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Api {
    /// `Hbase`
    Thrift1,
    /// `THBaseService`
    Thrift2,
    /// `BasaltAdmin`
    Admin,
    /// All services of HBase's native RPC.
    Native,
    /// HBase's REST interface.
    Rest,
}

impl Api {
    /// The label's value.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Thrift1 => "thrift1",
            Self::Thrift2 => "thrift2",
            Self::Admin => "admin",
            Self::Native => "native",
            Self::Rest => "rest",
        }
    }
}

/// Handles of one method.
#[derive(Debug)]
pub(crate) struct MethodMetrics {
    api: Api,
    method: &'static str,
    /// Registered by the first call: a histogram has 20 series, and most methods are never called.
    seconds: OnceLock<Histogram>,
    answered: BusyCounter,
    failed: counting::Counter,
    tail: Tail,
}

impl MethodMetrics {
    fn new(api: Api, method: &'static str) -> Self {
        Self {
            api,
            method,
            seconds: OnceLock::new(),
            answered: BusyCounter::default(),
            failed: counting::Counter::default(),
            tail: Tail::default(),
        }
    }

    /// One call was answered.
    pub(crate) fn answered(&self, took: Duration) {
        self.answered.increment();
        let labels =
            || histogram!(names::REQUEST_SECONDS, "api" => self.api.as_str(), "method" => self.method);
        self.seconds.get_or_init(labels).record(took);
        self.tail.took(took);
    }

    /// Its slowest calls.
    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// The answer was an exception. `class` comes from a fixed set.
    ///
    /// Two counters: a series that begins with its first error hides that error from `rate()`, so the
    /// counter without the class begins with the method's first call.
    pub(crate) fn failed(&self, class: &'static str) {
        self.failed.increment();
        counter!(names::ERRORS, "api" => self.api.as_str(), "method" => self.method, "exception" => class)
            .increment(1);
    }

    /// Series of zeros for all methods would be 40 KB of each scrape: a method has some from its first call.
    fn publish(&self) {
        let answered = self.answered.get();
        if answered == 0 {
            return;
        }
        for (name, count) in [
            (names::REQUESTS, answered),
            (names::FAILED_REQUESTS, self.failed.get()),
        ] {
            counter!(name, "api" => self.api.as_str(), "method" => self.method).absolute(count);
        }
    }
}

/// How often a method was called since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallCount {
    pub(crate) api: Api,
    pub(crate) method: &'static str,
    /// Calls answered, failed ones too.
    pub(crate) calls: u64,
    /// Calls answered with an exception.
    pub(crate) failed: u64,
}

/// Handles of every method of every service.
#[derive(Debug)]
pub(crate) struct Calls {
    /// By service and number of the method in it.
    methods: [Vec<MethodMetrics>; 5],
}

impl Calls {
    /// Resolves the handles of these methods; each is numbered within its service as it comes. REQUIRES: the
    /// recorder is installed.
    pub(crate) fn new(methods: impl IntoIterator<Item = (Api, &'static str)>) -> Self {
        let mut calls = Self {
            methods: Default::default(),
        };
        for (api, method) in methods {
            calls.methods[api as usize].push(MethodMetrics::new(api, method));
        }
        calls
    }

    /// The handles of the method with this number; `None` when the service has fewer.
    pub(crate) fn method(&self, api: Api, number: usize) -> Option<&MethodMetrics> {
        self.methods[api as usize].get(number)
    }

    /// Brings the scrape's figures up to date.
    pub(crate) fn publish(&self) {
        self.methods.iter().flatten().for_each(MethodMetrics::publish);
    }

    /// Moves the thresholds of slow calls by percentile. To be called once a second.
    pub(crate) fn tick(&self, percentile: f64) {
        for method in self.methods.iter().flatten() {
            let calls = method.answered.get();
            if calls > 0 {
                method.tail.tick(calls, percentile);
            }
        }
    }

    /// The methods that have a threshold by percentile, and it, in no order.
    pub(crate) fn thresholds(&self) -> Vec<(Api, &'static str, Duration)> {
        let methods = self.methods.iter().flatten();
        let threshold = |method: &MethodMetrics| Some((method.api, method.method, method.tail.threshold()?));
        methods.filter_map(threshold).collect()
    }

    /// The methods that were called, in no order.
    pub(crate) fn counts(&self) -> Vec<CallCount> {
        let counts = self.methods.iter().flatten().map(|method| CallCount {
            api: method.api,
            method: method.method,
            calls: method.answered.get(),
            failed: method.failed.get(),
        });
        counts.filter(|count| count.calls > 0).collect()
    }
}

/// Handles of the connections of one port.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// Open ones.
    pub(crate) open: OpenConnections,
    /// Accepted ever.
    pub(crate) accepted: Counter,
    /// Closed at once.
    pub(crate) rejected: Counter,
    /// Those of them whose address had too many that have not logged in. One counter for all ports.
    pub(crate) rejected_strangers: Counter,
}

/// Number of open connections, which pages can read, too.
#[derive(Clone, Debug)]
pub(crate) struct OpenConnections {
    count: Arc<AtomicUsize>,
    gauge: Gauge,
}

impl OpenConnections {
    fn new(gauge: Gauge) -> Self {
        Self {
            count: Arc::default(),
            gauge,
        }
    }

    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.gauge.increment(1);
    }

    pub(crate) fn remove(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.gauge.decrement(1);
    }

    pub(crate) fn get(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// Handles of connections and their traffic.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) main: Port,
    pub(crate) http: Port,
    /// Connections ended and HTTP requests refused for bytes that are no message.
    pub(crate) protocol_errors: Counter,
    /// Bytes of messages read.
    pub(crate) received_bytes: BusyCounter,
    /// Bytes of messages written.
    pub(crate) sent_bytes: BusyCounter,
}

impl Connections {
    /// REQUIRES: the recorder is installed.
    pub(crate) fn new() -> Self {
        Self {
            main: Port {
                open: OpenConnections::new(gauge!(names::CONNECTIONS)),
                accepted: counter!(names::CONNECTIONS_ACCEPTED),
                rejected: counter!(names::CONNECTIONS_REJECTED),
                rejected_strangers: counter!(names::STRANGERS_REJECTED),
            },
            http: Port {
                open: OpenConnections::new(gauge!(names::HTTP_CONNECTIONS)),
                accepted: counter!(names::HTTP_CONNECTIONS_ACCEPTED),
                rejected: counter!(names::HTTP_CONNECTIONS_REJECTED),
                rejected_strangers: counter!(names::STRANGERS_REJECTED),
            },
            protocol_errors: counter!(names::PROTOCOL_ERRORS),
            received_bytes: BusyCounter::default(),
            sent_bytes: BusyCounter::default(),
        }
    }

    /// Brings the scrape's figures up to date.
    pub(crate) fn publish(&self) {
        counter!(names::RECEIVED_BYTES).absolute(self.received_bytes.get());
        counter!(names::SENT_BYTES).absolute(self.sent_bytes.get());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    /// All counts of a call. Prints their cost.
    #[test]
    fn all_calls_of_a_flood_are_counted() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            let methods = [(Api::Thrift2, "get"), (Api::Thrift2, "put")];
            let (calls, connections) = (Calls::new(methods), Connections::new());
            let flood = 400_000_u32;
            let began = Instant::now();
            for _ in 0..flood {
                connections.received_bytes.add(65);
                let method = calls.method(Api::Thrift2, 0).expect("it was named above");
                method.answered(Duration::from_micros(10));
                connections.sent_bytes.add(198);
            }
            println!("{:?} for each of {flood} calls", began.elapsed() / flood);
            let counted = CallCount {
                api: Api::Thrift2,
                method: "get",
                calls: flood.into(),
                failed: 0,
            };
            assert_eq!(calls.counts(), [counted]);
            calls.publish();
            connections.publish();
            let text = handle.render();
            let labels = r#"{api="thrift2",method="get"}"#;
            for line in [
                format!("{}{labels} {flood}", names::REQUESTS),
                format!("{}_count{labels} {flood}", names::REQUEST_SECONDS),
                format!("{} {}", names::RECEIVED_BYTES, 65 * flood),
                format!("{} {}", names::SENT_BYTES, 198 * flood),
            ] {
                assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
            }
            // A method that was not called has no series.
            assert!(!text.contains("\"put\""), "{text}");
        });
    }
}
