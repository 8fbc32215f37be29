//! Counters of the server's methods, from its HTTP port.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest time for one request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Counters of one method since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    pub(super) calls: f64,
    pub(super) errors: f64,
    /// Time of all calls, in seconds.
    pub(super) seconds: f64,
}

/// Reads the counters of all methods, by interface and name, from the metrics at `host:port`.
pub(super) async fn fetch(address: &str) -> Result<BTreeMap<String, Counters>> {
    let request = async {
        let mut stream = TcpStream::connect(address).await?;
        // The server answers to its addresses, and to host names that its settings allow.
        let host = stream.peer_addr()?;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await?;
        Ok(answer)
    };
    let timeout = || Error::new(ErrorKind::TimedOut, "no answer in time");
    let answer: Result<String> = tokio::time::timeout(TIMEOUT, request)
        .await
        .map_err(|_| timeout())?;
    let answer = answer?;
    let status = answer.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        return Err(Error::other(format!("the answer is '{status}'")));
    }
    Ok(parse(&answer))
}

/// The counters in Prometheus' text format.
fn parse(text: &str) -> BTreeMap<String, Counters> {
    let mut methods: BTreeMap<String, Counters> = BTreeMap::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once('{') else {
            continue;
        };
        let set: fn(&mut Counters, f64) = match name {
            "basalt_requests_total" => |counters, value| counters.calls = value,
            "basalt_failed_requests_total" => |counters, value| counters.errors = value,
            "basalt_request_duration_seconds_sum" => |counters, value| counters.seconds = value,
            _ => continue,
        };
        let Some((labels, value)) = rest.rsplit_once("} ") else {
            continue;
        };
        if let (Some(api), Some(method), Ok(value)) = (
            label(labels, "api"),
            label(labels, "method"),
            value.trim().parse(),
        ) {
            set(methods.entry(format!("{api} {method}")).or_default(), value);
        }
    }
    methods
}

/// The value of a label.
fn label<'l>(labels: &'l str, name: &str) -> Option<&'l str> {
    labels.split(',').find_map(|label| {
        let value = label.strip_prefix(name)?.strip_prefix("=\"")?;
        value.strip_suffix('"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_method() {
        let text = "# TYPE basalt_requests_total counter\n\
                    basalt_requests_total{api=\"thrift2\",method=\"get\"} 7\n\
                    basalt_failed_requests_total{method=\"get\",api=\"thrift2\"} 2\n\
                    basalt_request_duration_seconds_bucket{api=\"thrift2\",method=\"get\",le=\"1\"} 7\n\
                    basalt_request_duration_seconds_sum{api=\"thrift2\",method=\"get\"} 0.5\n\
                    basalt_requests_total{api=\"native\",method=\"Scan\"} 1\n\
                    basalt_regions 3\nbasalt_requests_total{broken\n";
        let methods = parse(text);
        let get = Counters {
            calls: 7.0,
            errors: 2.0,
            seconds: 0.5,
        };
        assert_eq!(methods["thrift2 get"], get);
        assert!(methods["native Scan"].calls > 0.5);
        assert_eq!(methods.len(), 2);
    }
}
