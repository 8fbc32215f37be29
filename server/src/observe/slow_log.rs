//! The slow log: the last calls that took long or had large answers (HBase: `SlowLogQueueService`).
//!
//! Every answered call is measured against fixed thresholds, and one by percentile of its method
//! ([`SlowLog::judge`]: three comparisons). Only a call beyond one of them is described and kept, and counted
//! in the metrics. Records are in memory only and end with the process.
//!
//! Invariant: at most `slow_log.entries` records; the oldest makes room. Any thread may call; the lock is
//! held while records are copied out or one is put in, never while a call runs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use basalt_engine::schema::TableName;
use metrics::{Counter, counter};
use parking_lot::Mutex;

use crate::config;
use crate::observe::metrics::names;
use crate::observe::tail::Tail;

/// The class of the server, which HBase's clients print.
pub(crate) const SERVER_CLASS: &str = "Basalt";

/// Longest name of a region that is kept.
const REGION_BYTES_MAX: usize = 2 << 10;

/// In which ways a call was remarkable; at least one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remarkable {
    /// It took longer than `slow_log.threshold_ms`.
    pub(crate) slow: bool,
    /// It took longer than `slow_log.percentile` of its method's calls, and is not `slow`.
    pub(crate) tail: bool,
    /// The answer was larger than `slow_log.large_bytes`.
    pub(crate) large: bool,
}

/// Kind of the requested records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Slow calls, by either threshold, with large answers or not.
    Slow,
    /// Large answers, slow or not.
    Large,
}

/// Rows of a fetch of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FetchedRows {
    /// Rows that were read, also those that the filter left out.
    pub(crate) looked_at: u64,
    pub(crate) returned: u64,
}

/// One remarkable call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Number of the call in log lines, since the start.
    pub(crate) request: u64,
    pub(crate) remarkable: Remarkable,
    /// When the whole message was there, in milliseconds since 1970.
    pub(crate) began_ms: i64,
    /// From then until the answer was written to its buffer.
    pub(crate) took: Duration,
    /// Size of the answer, its message header included.
    pub(crate) answer_bytes: u64,
    /// `address:port` of the client.
    pub(crate) client: String,
    /// Name of the user; empty if the client has named none.
    pub(crate) user: String,
    pub(crate) service: &'static str,
    pub(crate) method: &'static str,
    /// Full name of the table that the call was about.
    pub(crate) table: Option<String>,
    /// Printed name of the region of the first row that the call named, at the end of the call.
    pub(crate) region: Option<String>,
    /// Its encoded name, which its page has.
    pub(crate) encoded_name: Option<String>,
    /// The arguments, shortened.
    pub(crate) arguments: String,
    /// The arguments without values: what calls of one kind have in common.
    pub(crate) shape: String,
    /// Time that the call was held back by a limit or waited for a thread.
    pub(crate) waited: Duration,
    /// Bytes of blocks that it has read because they were not in the block cache.
    pub(crate) disk_bytes: u64,
    /// Rows of a fetch.
    pub(crate) rows: Option<FetchedRows>,
    /// Gets of a call that takes several.
    pub(crate) gets: usize,
    /// Puts, deletes or increments of a call that takes several.
    pub(crate) mutations: usize,
}

impl Record {
    /// Its memory.
    fn bytes(&self) -> u64 {
        let names = [&self.table, &self.region, &self.encoded_name];
        let names = names.into_iter().flatten().map(String::len).sum::<usize>();
        let texts = [&self.client, &self.user, &self.arguments, &self.shape];
        (size_of::<Self>() + names + texts.map(String::len).iter().sum::<usize>()) as u64
    }

    /// The arguments as clients print them. The name of a region begins with its table's; without a
    /// region, the table is put in front.
    pub(crate) fn printed_arguments(&self) -> String {
        match (&self.region, &self.table) {
            (None, Some(table)) => format!("of table {table}: {}", self.arguments),
            _ => self.arguments.clone(),
        }
    }
}

/// A region's printed name, cut to [`REGION_BYTES_MAX`]: the start row alone may have 130 KiB.
fn shortened(mut name: String) -> String {
    if name.len() > REGION_BYTES_MAX {
        name.truncate(name.floor_char_boundary(REGION_BYTES_MAX));
    }
    name
}

/// The start of a call that took this long until now, in milliseconds since 1970.
pub(crate) fn began_ms(took: Duration) -> i64 {
    let began = SystemTime::now().checked_sub(took).unwrap_or(UNIX_EPOCH);
    began
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A text in a client's query; `None` if it is not set, for which HBase also takes an empty one.
pub(crate) fn condition(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

/// The table in a client's query. `default:t` is the table `t`. An invalid name is kept unchanged
/// and matches none.
pub(crate) fn table_condition(text: Option<&String>) -> Option<String> {
    let name = condition(text)?;
    Some(TableName::parse(name.as_bytes()).map_or(name, |table| table.to_string()))
}

/// How the conditions of a [`Query`] combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// All of those that are set must hold.
    All,
    /// One of them is enough.
    Any,
}

/// Conditions of a search. Unset conditions match every record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) kind: Kind,
    pub(crate) combine: Combine,
    /// The region's printed name.
    pub(crate) region: Option<String>,
    /// The client's `address:port`, or its address alone.
    pub(crate) client: Option<String>,
    /// The table's full name.
    pub(crate) table: Option<String>,
    /// The user's name.
    pub(crate) user: Option<String>,
    /// Most records.
    pub(crate) limit: usize,
}

#[derive(Debug)]
pub(crate) struct SlowLog {
    /// Nanoseconds.
    threshold: AtomicU64,
    large_bytes: AtomicU64,
    /// Most records; zero when the log is off.
    capacity: usize,
    /// Oldest first.
    records: Mutex<VecDeque<Arc<Record>>>,
    /// Slow calls ever recorded.
    slow: Counter,
    /// Calls beyond the percentile ever recorded.
    tail: Counter,
    /// Calls with large answers ever recorded.
    large: Counter,
}

impl SlowLog {
    /// An empty log. REQUIRES: the metrics recorder is installed.
    pub(crate) fn new(config: &config::SlowLog) -> Self {
        let log = Self {
            threshold: AtomicU64::default(),
            large_bytes: AtomicU64::default(),
            capacity: if config.enabled { config.entries } else { 0 },
            records: Mutex::default(),
            slow: counter!(names::SLOW_CALLS, "kind" => "slow"),
            tail: counter!(names::SLOW_CALLS, "kind" => "percentile"),
            large: counter!(names::SLOW_CALLS, "kind" => "large"),
        };
        log.set_limits(config);
        log
    }

    /// Sets the limits of slow and large calls from now on.
    pub(crate) fn set_limits(&self, config: &config::SlowLog) {
        let threshold = config.threshold_ms.saturating_mul(1_000_000);
        self.threshold.store(threshold, Ordering::Relaxed);
        self.large_bytes.store(config.large_bytes, Ordering::Relaxed);
    }

    /// Whether a call belongs into the log: the cost for every call. `tail` has the threshold of its method.
    pub(crate) fn judge(
        &self,
        took: Duration,
        answer_bytes: usize,
        tail: Option<&Tail>,
    ) -> Option<Remarkable> {
        if self.capacity == 0 {
            return None;
        }
        let slow = took > Duration::from_nanos(self.threshold.load(Ordering::Relaxed));
        let remarkable = Remarkable {
            slow,
            tail: !slow && tail.is_some_and(|tail| tail.is_beyond(took)),
            large: answer_bytes as u64 > self.large_bytes.load(Ordering::Relaxed),
        };
        (remarkable.slow || remarkable.tail || remarkable.large).then_some(remarkable)
    }

    /// Memory of the records.
    pub(crate) fn bytes(&self) -> u64 {
        self.records.lock().iter().map(|record| record.bytes()).sum()
    }

    /// Keeps a record of a call that [`Self::judge`] has found remarkable.
    pub(crate) fn add(&self, mut record: Record) {
        record.region = record.region.map(shortened);
        if record.remarkable.slow {
            self.slow.increment(1);
        }
        if record.remarkable.tail {
            self.tail.increment(1);
        }
        if record.remarkable.large {
            self.large.increment(1);
        }
        let mut records = self.records.lock();
        while records.len() >= self.capacity.max(1) {
            records.pop_front();
        }
        records.push_back(Arc::new(record));
    }

    /// The records that the query finds, newest first.
    pub(crate) fn find(&self, query: &Query) -> Vec<Arc<Record>> {
        self.records
            .lock()
            .iter()
            .rev()
            .filter(|record| query.finds(record))
            .take(query.limit)
            .map(Arc::clone)
            .collect()
    }

    /// Removes all records; `false` when the log is off.
    pub(crate) fn clear(&self) -> bool {
        self.records.lock().clear();
        self.capacity > 0
    }
}

impl Query {
    fn finds(&self, record: &Record) -> bool {
        let of_kind = match self.kind {
            Kind::Slow => record.remarkable.slow || record.remarkable.tail,
            Kind::Large => record.remarkable.large,
        };
        let is_from = |client: &String| {
            let address = record.client.rsplit_once(':').map(|(address, _)| address);
            record.client == *client || address == Some(client.as_str())
        };
        let mut conditions = [
            self.region
                .as_ref()
                .map(|region| record.region.as_deref() == Some(&*shortened(region.clone()))),
            self.client.as_ref().map(is_from),
            self.table.as_ref().map(|_| record.table == self.table),
            self.user.as_ref().map(|user| record.user == *user),
        ]
        .into_iter()
        .flatten()
        .peekable();
        of_kind
            && (conditions.peek().is_none()
                || match self.combine {
                    Combine::All => conditions.all(|holds| holds),
                    Combine::Any => conditions.any(|holds| holds),
                })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(entries: usize, enabled: bool) -> SlowLog {
        SlowLog::new(&config::SlowLog {
            enabled,
            entries,
            threshold_ms: 100,
            percentile: 0.0,
            large_bytes: 1_000,
        })
    }

    fn record(method: &'static str, remarkable: Remarkable, table: &str, client: &str) -> Record {
        Record {
            request: 1,
            remarkable,
            began_ms: 0,
            took: Duration::ZERO,
            answer_bytes: 0,
            client: client.into(),
            user: if client.starts_with('1') {
                "ann".into()
            } else {
                String::new()
            },
            service: "S",
            method,
            table: Some(table.into()),
            region: Some(format!("{table},,1.e.")),
            encoded_name: None,
            arguments: String::new(),
            shape: String::new(),
            waited: Duration::ZERO,
            disk_bytes: 0,
            rows: None,
            gets: 0,
            mutations: 0,
        }
    }

    const SLOW: Remarkable = Remarkable {
        slow: true,
        tail: false,
        large: false,
    };
    const LARGE: Remarkable = Remarkable {
        slow: false,
        tail: false,
        large: true,
    };
    const BOTH: Remarkable = Remarkable {
        slow: true,
        tail: false,
        large: true,
    };

    fn query(kind: Kind) -> Query {
        Query {
            kind,
            combine: Combine::Any,
            region: None,
            client: None,
            table: None,
            user: None,
            limit: 10,
        }
    }

    fn methods(log: &SlowLog, query: &Query) -> String {
        log.find(query)
            .iter()
            .map(|record| record.method)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn a_call_is_judged_by_time_and_by_size() {
        let log = log(4, true);
        let ms = Duration::from_millis;
        for (took, bytes, remarkable) in [
            (ms(100), 1_000, None),
            (ms(101), 1_000, Some(SLOW)),
            (ms(100), 1_001, Some(LARGE)),
            (ms(101), 1_001, Some(BOTH)),
        ] {
            assert_eq!(log.judge(took, bytes, None), remarkable);
        }
    }

    #[test]
    fn a_log_that_is_off_takes_nothing() {
        let log = log(4, false);
        assert_eq!(log.judge(Duration::MAX, usize::MAX, None), None);
        assert!(!log.clear());
    }

    #[test]
    fn the_oldest_makes_room_and_the_newest_comes_first() {
        let log = log(3, true);
        for method in ["a", "b", "c", "d"] {
            log.add(record(method, SLOW, "t", "1.1.1.1:1"));
        }
        assert_eq!(methods(&log, &query(Kind::Slow)), "d c b");
        let two = Query {
            limit: 2,
            ..query(Kind::Slow)
        };
        assert_eq!(methods(&log, &two), "d c");
        assert!(log.clear());
        assert_eq!(methods(&log, &query(Kind::Slow)), "");
    }

    #[test]
    fn records_are_found_by_kind_and_by_conditions() {
        let log = log(9, true);
        log.add(record("a", SLOW, "t", "1.1.1.1:1"));
        log.add(record("b", LARGE, "t", "2.2.2.2:1"));
        log.add(record("c", BOTH, "u", "1.1.1.1:2"));
        assert_eq!(methods(&log, &query(Kind::Slow)), "c a");
        assert_eq!(methods(&log, &query(Kind::Large)), "c b");
        let of =
            |table: Option<&str>, client: Option<&str>, region: Option<&str>, user: Option<&str>| Query {
                table: table.map(Into::into),
                client: client.map(Into::into),
                region: region.map(Into::into),
                user: user.map(Into::into),
                ..query(Kind::Slow)
            };
        for (query, any, all) in [
            (of(Some("t"), None, None, None), "a", "a"),
            (of(Some("t"), Some("1.1.1.1"), None, None), "c a", "a"),
            (of(None, Some("1.1.1.1:2"), None, None), "c", "c"),
            (of(None, Some("1.1.1"), None, None), "", ""),
            (of(None, None, Some("u,,1.e."), None), "c", "c"),
            (of(None, None, None, Some("bob")), "", ""),
            (of(Some("t"), None, None, Some("bob")), "a", ""),
        ] {
            assert_eq!(methods(&log, &query), any, "{query:?}");
            let all_hold = Query {
                combine: Combine::All,
                ..query
            };
            assert_eq!(methods(&log, &all_hold), all, "{all_hold:?}");
        }
    }
}
