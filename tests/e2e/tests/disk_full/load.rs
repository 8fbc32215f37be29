//! Writers and readers that know the expected data.
//!
//! A writer writes its batches one after the other; each is acknowledged or refused as a whole, and a refused
//! one is sent again. So the number of a batch, which is in every value, tells whether a row is as new as it
//! must be.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use basalt_client::{Error, Get, Put, Scan, Table};

pub(crate) const WRITERS: usize = 3;
pub(crate) const READERS: usize = 2;

/// Rows of one writer, written in batches, again and again: the stored data stays small.
const ROWS: u64 = 2_000;
const BATCH: u64 = 10;
const VALUE_BYTES: usize = 1024;

/// How long a client waits after a refusal.
const BACKOFF: Duration = Duration::from_millis(5);

/// How a call of a writer ended.
pub(crate) enum Outcome {
    Acknowledged,
    Refused(String),
}

/// A call of a writer.
pub(crate) struct Event {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) outcome: Outcome,
}

impl Event {
    pub(crate) fn took(&self) -> Duration {
        self.ended - self.began
    }

    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }
}

/// State shared by writers, readers and the test.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) stop: AtomicBool,
    pub(crate) reads: AtomicU64,
    /// By writer: batches sent, and batches acknowledged. Batch `n` writes rows `n * BATCH ..` modulo `ROWS`.
    pub(crate) sent: [AtomicU64; WRITERS],
    pub(crate) acknowledged: [AtomicU64; WRITERS],
    /// The first thing that went wrong.
    pub(crate) wrong: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn went_wrong(&self, what: String) {
        self.wrong.lock().expect("no thread panics").get_or_insert(what);
        self.stop.store(true, Ordering::Release);
    }
}

fn key(writer: usize, row: u64) -> String {
    format!("w{writer}-{row:05}")
}

/// The value of batch `batch`: its number, and noise that does not compress.
fn value(writer: usize, batch: u64) -> Vec<u8> {
    let mut state = (batch << 8) + writer as u64 + 1;
    let mut bytes = batch.to_be_bytes().to_vec();
    while bytes.len() < VALUE_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes
}

fn batch_of(value: &[u8]) -> u64 {
    u64::from_be_bytes(*value.first_chunk().expect("values begin with a number"))
}

pub(crate) async fn write(table: Table, writer: usize, shared: Arc<Shared>, events: Sender<Event>) {
    let mut batch = shared.sent[writer].load(Ordering::Acquire);
    while !shared.stopped() {
        shared.sent[writer].store(batch + 1, Ordering::Release);
        let first = batch * BATCH % ROWS;
        let bytes = value(writer, batch);
        let put = |row| Put::new(key(writer, row)).cell("f", "q", bytes.clone());
        let began = Instant::now();
        let result = table.put_multiple((first..first + BATCH).map(put)).await;
        let outcome = match result {
            Ok(()) => {
                batch += 1;
                shared.acknowledged[writer].store(batch, Ordering::Release);
                Outcome::Acknowledged
            }
            Err(Error::Server {
                message,
                can_retry: true,
                ..
            }) if message.contains("disk space: ") => Outcome::Refused(message),
            // The server was killed, at the end.
            Err(_) if shared.stopped() => return,
            Err(error) => return shared.went_wrong(format!("writer {writer}, batch {batch}: {error}")),
        };
        let refused = matches!(outcome, Outcome::Refused(_));
        let event = Event {
            began,
            ended: Instant::now(),
            outcome,
        };
        // The receiver is gone once the test is over.
        if events.send(event).is_err() {
            return;
        }
        if refused {
            tokio::time::sleep(BACKOFF).await;
        }
    }
}

/// Reads rows that were acknowledged: each must be at least as new as the writes acknowledged
/// before, and of a batch that was sent.
pub(crate) async fn read(table: Table, reader: usize, shared: Arc<Shared>) {
    let mut number = reader as u64;
    while !shared.stopped() {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let writer = (number >> 40) as usize % WRITERS;
        let acknowledged = shared.acknowledged[writer].load(Ordering::Acquire);
        if acknowledged == 0 {
            tokio::task::yield_now().await;
            continue;
        }
        let row = (number >> 20) % (acknowledged * BATCH).min(ROWS);
        match table.get(Get::new(key(writer, row))).await {
            Ok(found) => {
                let batch = found
                    .as_ref()
                    .and_then(|row| row.value("f", "q"))
                    .map(|value| batch_of(value));
                let sent = shared.sent[writer].load(Ordering::Acquire);
                if !batch.is_some_and(|batch| (newest(row, acknowledged)..sent).contains(&batch)) {
                    let key = key(writer, row);
                    return shared.went_wrong(format!(
                        "{key} is of batch {batch:?}; {acknowledged} are acknowledged"
                    ));
                }
            }
            Err(_) if shared.stopped() => return,
            Err(error) => return shared.went_wrong(format!("reader {reader}: {error}")),
        }
        shared.reads.fetch_add(1, Ordering::AcqRel);
    }
}

/// The newest of the first `batches` batches that wrote the row.
fn newest(row: u64, batches: u64) -> u64 {
    let (round, first) = (ROWS / BATCH, row / BATCH);
    (batches - 1 - first) / round * round + first
}

/// Every row is of the newest batch that was acknowledged, or of one that was sent after it.
pub(crate) async fn check_rows(table: &Table, shared: &Shared) {
    let mut found = 0;
    let mut rows = table.scan(Scan::new().rows_per_fetch(500)).expect("a scan");
    while let Some(row) = rows.next().await.expect("the table can be read") {
        let text = String::from_utf8_lossy(&row.key).into_owned();
        let (writer, number) = text[1..].split_once('-').expect("a key of ours");
        let (writer, number): (usize, u64) = (
            writer.parse().expect("a number"),
            number.parse().expect("a number"),
        );
        let stored = row.value("f", "q").expect("a value");
        let batch = batch_of(stored);
        assert_eq!(stored[..], value(writer, batch), "{text} is torn");
        let (acknowledged, sent) = (
            shared.acknowledged[writer].load(Ordering::Acquire),
            shared.sent[writer].load(Ordering::Acquire),
        );
        assert!(batch < sent, "{text} is of batch {batch}, {sent} were sent");
        if number / BATCH < acknowledged {
            assert!(
                batch >= newest(number, acknowledged),
                "{text} is of batch {batch}; {acknowledged} were acknowledged"
            );
            found += 1;
        }
    }
    let expected: u64 = shared
        .acknowledged
        .iter()
        .map(|batches| (batches.load(Ordering::Acquire) * BATCH).min(ROWS))
        .sum();
    assert_eq!(found, expected, "acknowledged rows");
}
