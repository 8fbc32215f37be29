//! A client that writes to a table all the time, and knows what it must find there.
//!
//! It puts and deletes rows, counts up, and notes each write when it is acknowledged. A write that is refused
//! since the table is read only is made again, until it succeeds: at the cluster to which the client is told
//! to go, if need be. Also included by the tests with a real HBase (`tests/conformance/tests/growing_out`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use basalt_client::native::{Cluster, ClusterOptions, Registry};
use basalt_client::{Delete, Increment, Put, Scan, counter_from_value};
use tokio::runtime::Runtime;

/// Rows that are written again and again.
const ROWS: u64 = 400;

/// The row of the counter.
const COUNTER: &str = "counter";

/// Acknowledged writes.
#[derive(Debug, Default)]
struct Model {
    rows: BTreeMap<String, String>,
    count: i64,
    writes: u64,
}

/// The client.
pub(crate) struct Checker {
    table: String,
    /// The clusters, and the one to which the client writes.
    clusters: Arc<Mutex<(Vec<Cluster>, usize)>>,
    model: Arc<Mutex<Model>>,
    stop: Arc<AtomicBool>,
    runtime: Arc<Runtime>,
    thread: Option<JoinHandle<()>>,
}

impl Checker {
    /// Begins to write to the first of these clusters. The table has a family `f`.
    pub(crate) fn start(table: &str, registries: Vec<Registry>) -> Self {
        let runtime = Arc::new(Runtime::new().expect("a runtime"));
        let clusters = registries.into_iter().map(|registry| {
            let options = ClusterOptions::new(registry);
            runtime.block_on(async { Cluster::new(options) })
        });
        let mut checker = Self {
            table: table.to_owned(),
            clusters: Arc::new(Mutex::new((clusters.collect(), 0))),
            model: Arc::default(),
            stop: Arc::default(),
            runtime,
            thread: None,
        };
        checker.thread = Some(checker.spawn());
        checker
    }

    fn spawn(&self) -> JoinHandle<()> {
        let (table, clusters) = (self.table.clone(), Arc::clone(&self.clusters));
        let (model, stop) = (Arc::clone(&self.model), Arc::clone(&self.stop));
        let runtime = Arc::clone(&self.runtime);
        std::thread::spawn(move || {
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let cluster = {
                    let clusters = clusters.lock().expect("no thread has panicked");
                    clusters.0[clusters.1].clone()
                };
                // Held during the write: what is checked is at rest.
                let mut model = model.lock().expect("no thread has panicked");
                match runtime.block_on(write(&cluster, &table, number, &mut model)) {
                    Ok(()) => number += 1,
                    Err(error) if error.to_string().contains("read only") => {}
                    Err(error) => panic!("write {number}: {error}"),
                }
                drop(model);
                std::thread::yield_now();
            }
        })
    }

    /// Sends the client to another cluster.
    pub(crate) fn go_to(&self, cluster: usize) {
        self.clusters.lock().expect("the client runs").1 = cluster;
    }

    /// Number of acknowledged writes.
    pub(crate) fn writes(&self) -> u64 {
        self.model.lock().expect("the client runs").writes
    }

    /// Compares a cluster's table with what was acknowledged, while nothing is written. Panics if something
    /// is missing. Returns the number of acknowledged writes.
    pub(crate) fn check(&self, cluster: usize) -> u64 {
        let cluster = self.clusters.lock().expect("the client runs").0[cluster].clone();
        let model = self.model.lock().expect("the client runs");
        let table = cluster.table(&self.table).expect("a name");
        let (rows, count) = self.runtime.block_on(async {
            let (mut found, mut count) = (BTreeMap::new(), 0);
            let mut rows = table.scan(Scan::new().family("f")).expect("a scan");
            while let Some(row) = rows.next().await.expect("a row") {
                let key = String::from_utf8_lossy(&row.key).into_owned();
                match (&key[..], row.value("f", "q")) {
                    (COUNTER, _) => {
                        let value = row.value("f", "n").expect("a counter");
                        count = counter_from_value(value).expect("eight bytes");
                    }
                    (key, Some(value)) if key.starts_with("w-") => {
                        let value = String::from_utf8_lossy(value).into_owned();
                        found.insert(key.to_owned(), value);
                    }
                    _ => {}
                }
            }
            (found, count)
        });
        let missing: Vec<_> = model
            .rows
            .iter()
            .filter(|(key, value)| rows.get(*key) != Some(value))
            .collect();
        assert!(missing.is_empty(), "acknowledged writes are missing: {missing:?}");
        assert_eq!(rows.len(), model.rows.len(), "deleted rows are back");
        assert_eq!(count, model.count, "the counter");
        model.writes
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Makes one write, and notes it.
async fn write(cluster: &Cluster, table: &str, number: u64, model: &mut Model) -> basalt_client::Result<()> {
    let table = cluster.table(table)?;
    let key = format!("w-{:04}", number * 7 % ROWS);
    match number % 10 {
        3 => {
            table.delete(Delete::row(key.as_str())).await?;
            model.rows.remove(&key);
        }
        6 => {
            table
                .increment(Increment::new(COUNTER).column("f", "n", 1))
                .await?;
            model.count += 1;
        }
        _ => {
            let value = number.to_string();
            table
                .put(Put::new(key.as_str()).cell("f", "q", value.as_str()))
                .await?;
            model.rows.insert(key, value);
        }
    }
    model.writes += 1;
    Ok(())
}
