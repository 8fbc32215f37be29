//! Handles of calls and connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::names;

/// Which service a call belongs to, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Api {
    /// `Hbase`
    Thrift1,
    /// `THBaseService`
    Thrift2,
    /// `BasaltAdmin`
    Admin,
}

impl Api {
    /// The label's value.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Thrift1 => "thrift1",
            Self::Thrift2 => "thrift2",
            Self::Admin => "admin",
        }
    }
}

/// Handles of one method.
pub(crate) struct MethodMetrics {
    api: Api,
    method: &'static str,
    requests: Counter,
    failed: Counter,
    seconds: Histogram,
    /// The two counters once more: those of the recorder cannot be read.
    counts: [AtomicU64; 2],
}

impl MethodMetrics {
    fn new(api: Api, method: &'static str) -> Self {
        Self {
            api,
            method,
            requests: counter!(names::REQUESTS, "api" => api.as_str(), "method" => method),
            failed: counter!(names::FAILED_REQUESTS, "api" => api.as_str(), "method" => method),
            seconds: histogram!(names::REQUEST_SECONDS, "api" => api.as_str(), "method" => method),
            counts: Default::default(),
        }
    }

    /// One call was answered.
    pub(crate) fn answered(&self, took: Duration) {
        self.requests.increment(1);
        self.counts[0].fetch_add(1, Ordering::Relaxed);
        self.seconds.record(took);
    }

    /// The answer was an exception. `class` comes from a fixed set.
    ///
    /// Two counters: one series for each class of each method from the start would be two thousand series of zeros, but a
    /// series that begins with its first error hides that error from `rate()`. So there is one without the class that begins
    /// at zero.
    pub(crate) fn failed(&self, class: &'static str) {
        self.failed.increment(1);
        self.counts[1].fetch_add(1, Ordering::Relaxed);
        counter!(names::ERRORS, "api" => self.api.as_str(), "method" => self.method, "exception" => class)
            .increment(1);
    }
}

impl std::fmt::Debug for MethodMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MethodMetrics({} {})", self.api.as_str(), self.method)
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
    methods: [HashMap<&'static str, MethodMetrics>; 3],
}

impl Calls {
    /// Resolves the handles of these methods. REQUIRES: the recorder is installed.
    pub(crate) fn new(methods: impl IntoIterator<Item = (Api, &'static str)>) -> Self {
        let mut calls = Self {
            methods: Default::default(),
        };
        for (api, method) in methods {
            calls.methods[api as usize].insert(method, MethodMetrics::new(api, method));
        }
        calls
    }

    /// The method's handles; `None` for a method that the service does not have.
    pub(crate) fn method(&self, api: Api, method: &str) -> Option<&MethodMetrics> {
        self.methods[api as usize].get(method)
    }

    /// The methods that were called, in no order.
    pub(crate) fn counts(&self) -> Vec<CallCount> {
        let all = self.methods.iter().flat_map(HashMap::values);
        let counts = all.map(|method| CallCount {
            api: method.api,
            method: method.method,
            calls: method.counts[0].load(Ordering::Relaxed),
            failed: method.counts[1].load(Ordering::Relaxed),
        });
        counts.filter(|count| count.calls > 0).collect()
    }
}

/// Handles of the connections of one port.
#[derive(Clone)]
pub(crate) struct Port {
    /// Open ones.
    pub(crate) open: Gauge,
    /// Accepted ever.
    pub(crate) accepted: Counter,
    /// Closed at once.
    pub(crate) rejected: Counter,
}

/// Handles of connections and of what comes over them.
#[derive(Clone)]
pub(crate) struct Connections {
    /// Of the Thrift port.
    pub(crate) thrift: Port,
    /// Of the HTTP port.
    pub(crate) http: Port,
    /// Connections ended and HTTP requests refused for bytes that are no message.
    pub(crate) protocol_errors: Counter,
    /// Of Thrift messages, read.
    pub(crate) received_bytes: Counter,
    /// Of Thrift messages, written.
    pub(crate) sent_bytes: Counter,
}

impl Connections {
    /// REQUIRES: the recorder is installed.
    pub(crate) fn new() -> Self {
        Self {
            thrift: Port {
                open: gauge!(names::CONNECTIONS),
                accepted: counter!(names::CONNECTIONS_ACCEPTED),
                rejected: counter!(names::CONNECTIONS_REJECTED),
            },
            http: Port {
                open: gauge!(names::HTTP_CONNECTIONS),
                accepted: counter!(names::HTTP_CONNECTIONS_ACCEPTED),
                rejected: counter!(names::HTTP_CONNECTIONS_REJECTED),
            },
            protocol_errors: counter!(names::PROTOCOL_ERRORS),
            received_bytes: counter!(names::RECEIVED_BYTES),
            sent_bytes: counter!(names::SENT_BYTES),
        }
    }
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connections")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    /// Everything that a call counts wherever it comes from. Prints what that takes.
    #[test]
    fn all_calls_of_a_flood_are_counted() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            let (calls, connections) = (Calls::new([(Api::Thrift2, "get")]), Connections::new());
            let flood = 400_000_u32;
            let began = Instant::now();
            for _ in 0..flood {
                connections.received_bytes.increment(65);
                let method = calls.method(Api::Thrift2, "get").expect("it was named above");
                method.answered(Duration::from_micros(10));
                connections.sent_bytes.increment(198);
            }
            println!("{:?} for each of {flood} calls", began.elapsed() / flood);
            let counted = CallCount {
                api: Api::Thrift2,
                method: "get",
                calls: flood.into(),
                failed: 0,
            };
            assert_eq!(calls.counts(), [counted]);
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
        });
    }
}
