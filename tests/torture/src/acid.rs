//! HBase's AcidGuarantees: rows whose columns, in three families, are all set to one value by each write and
//! must be equal in each read.
//!
//! Its writers, getters and scanners, its three rows and 3 x 50 columns (fewer writers by default:
//! see [`Options`]). In addition, every value is written once, and the value of a row must be
//! linearizable and survive kills.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_client::{Client, Error, Get, Put, Scan, Table};
use basalt_histcheck::{Change, Columns, Op, Reply, Rows, durability, linear};
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::calls::{Caller, Ended, Findings, Recorder, Watch, ended};
use super::life::{BREATH, Life, Tasks, columns, parts, small_table};
use super::perform::numbered;
use super::report::Figures;
use super::{Options, Problem};

pub(super) const NAME: &str = "acid";
const FAMILIES: [&str; 3] = ["A", "B", "C"];
const ROWS: usize = 3;
const GETTERS: u64 = 2;
const SCANNERS: u64 = 2;
/// Stands for all columns in the history.
const ALL: &str = "all";

#[derive(Debug)]
pub(super) struct Acid {
    recorder: Arc<Recorder>,
    known: Rows,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    columns: Vec<Bytes>,
    values: AtomicU64,
    /// Rows that scans showed.
    scanned: AtomicU64,
}

fn key(number: usize) -> Bytes {
    format!("test_row_{number}").into()
}

impl Shared {
    /// The value that all columns hold; nothing for a row that is not there.
    fn uniform(&self, row: &Bytes, found: &Columns) -> Result<Columns, Problem> {
        let Some(value) = found.values().next() else {
            return Ok(Columns::new());
        };
        if found.len() == self.columns.len() && found.values().all(|other| other == value) {
            return Ok([(Bytes::from(ALL), value.clone())].into());
        }
        let what = format!(
            "row {}: {} columns instead of {}, or not all equal",
            String::from_utf8_lossy(row),
            found.len(),
            self.columns.len()
        );
        let calls = basalt_histcheck::notation::print_columns(found);
        Err(Problem {
            calls,
            ..Problem::new(NAME, what)
        })
    }

    /// A get, as a call of one column. A torn row is a problem at once.
    async fn get(&self, table: &Table, row: &Bytes, findings: &Findings) -> Result<Reply, Error> {
        let found = columns(table.get(Get::new(row)).await?);
        let uniform = self.uniform(row, &found).unwrap_or_else(|problem| {
            findings.add(problem);
            found
        });
        Ok(Reply::Row(uniform))
    }
}

impl Acid {
    pub(super) fn new(watch: Watch, options: &Options) -> Self {
        Self {
            recorder: Arc::new(Recorder::new(watch)),
            known: Rows::new(),
            shared: Arc::new(Shared {
                columns: numbered(&FAMILIES, options.acid_columns),
                values: AtomicU64::new(0),
                scanned: AtomicU64::new(0),
            }),
        }
    }

    pub(super) async fn prepare(&self, client: &Client, random: &mut SmallRng) -> Result<(), Error> {
        client.create_table(small_table(NAME, &FAMILIES, random)).await
    }

    pub(super) fn start(&self, life: &Arc<Life>, options: &Options, tasks: &mut Tasks) {
        for number in 0..options.acid_writers as u64 {
            let caller = self.recorder.client(NAME, &life.findings);
            tasks.spawn(write(Arc::clone(life), number, caller, Arc::clone(&self.shared)));
        }
        for number in 0..GETTERS {
            let caller = self.recorder.client(NAME, &life.findings);
            tasks.spawn(get(Arc::clone(life), number, caller, Arc::clone(&self.shared)));
        }
        for number in 0..SCANNERS {
            tasks.spawn(scan(Arc::clone(life), number, Arc::clone(&self.shared)));
        }
    }

    pub(super) fn crashed(&self) {
        self.recorder.crash();
    }

    pub(super) async fn look(
        &mut self,
        client: &Client,
        findings: &Arc<Findings>,
        figures: &mut Figures,
    ) -> Result<(), Problem> {
        let table = client.table(NAME).expect("a well-formed name");
        let caller = self.recorder.client(NAME, findings);
        let mut found = Rows::new();
        for row in (0..ROWS).map(key) {
            let get = self.shared.get(&table, &row, findings);
            match caller.call(&row, Op::Get, get).await {
                Ended::Done(Reply::Row(columns)) => found.insert(row, columns),
                _ => return Err(Problem::new(NAME, "the server does not answer a get")),
            };
        }
        // Before the history, in which torn rows have no meaning.
        if let Some(problem) = findings.first() {
            return Err(problem);
        }
        let history = self.recorder.take();
        let checked = durability::check(&history, &self.known)
            .and_then(|_| linear::check(&history, &self.known))
            .map_err(|violation| Problem::in_history(NAME, violation, &history, &self.known))?;
        figures.add_checked(checked);
        figures.operations += self.shared.scanned.swap(0, Ordering::Relaxed);
        self.known = found;
        Ok(())
    }
}

async fn write(life: Arc<Life>, number: u64, caller: Caller, shared: Arc<Shared>) {
    let table = life.client(number).table(NAME).expect("a well-formed name");
    let mut random = life.random(400 + number);
    loop {
        let row = key(random.random_range(0..ROWS));
        // Ten bytes, as HBase's; each value once.
        let value = Bytes::from(format!("v{:09}", shared.values.fetch_add(1, Ordering::Relaxed)));
        let put = shared.columns.iter().fold(Put::new(&row), |put, column| {
            let (family, qualifier) = parts(column);
            put.cell(family, qualifier, &value)
        });
        let op = Op::Write(vec![Change::Put(ALL.into(), value.clone())]);
        let call = async { table.put(put).await.map(|()| Reply::Nothing) };
        match caller.call(&row, op, call).await {
            Ended::Done(_) => {}
            Ended::Refused => tokio::time::sleep(BREATH).await,
            Ended::Gone => return,
        }
    }
}

async fn get(life: Arc<Life>, number: u64, caller: Caller, shared: Arc<Shared>) {
    let table = life.client(number).table(NAME).expect("a well-formed name");
    let mut random = life.random(500 + number);
    loop {
        let row = key(random.random_range(0..ROWS));
        let call = shared.get(&table, &row, &life.findings);
        match caller.call(&row, Op::Get, call).await {
            Ended::Done(_) => {}
            Ended::Refused => tokio::time::sleep(BREATH).await,
            Ended::Gone => return,
        }
    }
}

async fn scan(life: Arc<Life>, number: u64, shared: Arc<Shared>) {
    let table = life.client(number).table(NAME).expect("a well-formed name");
    loop {
        let scanned = async { table.scan(Scan::new().rows_per_fetch(1))?.collect().await };
        let rows = match ended(NAME, &life.findings, scanned.await) {
            Ended::Done(rows) => rows,
            Ended::Refused => continue,
            Ended::Gone => return,
        };
        for row in rows {
            let key = row.key.clone();
            if let Err(problem) = shared.uniform(&key, &columns(Some(row))) {
                return life.found(problem);
            }
            shared.scanned.fetch_add(1, Ordering::Relaxed);
        }
    }
}
