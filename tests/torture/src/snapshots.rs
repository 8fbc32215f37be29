//! Scans that must show one snapshot, however long they take and whatever happens to the table
//! meanwhile.
//!
//! Rows are registers that are set as a whole and removed. Scanners take a range, in either direction, by few
//! rows at a time, in pieces of few cells, over both services, and rest between fetches, so that flushes,
//! compactions and splits pass by.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use basalt_client::{Client, Error, Table};
use basalt_histcheck::scan::{Moments, Scan};
use basalt_histcheck::{Call, Change, Columns, History, Op, Outcome, Reply, Rows, durability, linear};
use basalt_idl::thrift1;
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;
use tokio::sync::RwLock;

use super::Problem;
use super::calls::{Caller, Ended, Findings, Recorder, Watch, ended};
use super::life::{BREATH, Life, Tasks, columns, small_table};
use super::perform::{self, columns1, numbered};
use super::report::Figures;

pub(super) const NAME: &str = "snapshots";
const FAMILIES: [&str; 2] = ["a", "b"];
const COLUMNS_EACH: usize = 2;
const ROWS: usize = 120;
const WRITERS: u64 = 3;
const SCANNERS: u64 = 3;
/// Bytes of a value, so that files are worth compacting and regions worth splitting.
const VALUE_BYTES: usize = 200;

#[derive(Debug)]
pub(super) struct Snapshots {
    recorder: Arc<Recorder>,
    known: Rows,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    watch: Watch,
    values: AtomicU64,
    /// Held by writers: alone by those that remove the row, see `rows`.
    writing: HashMap<Bytes, RwLock<()>>,
    scans: Mutex<Vec<Scan>>,
}

fn key(number: usize) -> Bytes {
    format!("row-{number:04}").into()
}

/// Parameters of a scan besides its range.
#[derive(Clone, Copy)]
struct Style {
    rows_per_fetch: i32,
    cells_per_piece: Option<i32>,
    rest: Duration,
}

impl Snapshots {
    pub(super) fn new(watch: Watch) -> Self {
        Self {
            recorder: Arc::new(Recorder::new(watch)),
            known: Rows::new(),
            shared: Arc::new(Shared {
                watch,
                values: AtomicU64::new(0),
                writing: (0..ROWS).map(|row| (key(row), RwLock::new(()))).collect(),
                scans: Mutex::default(),
            }),
        }
    }

    pub(super) async fn prepare(&self, client: &Client, random: &mut SmallRng) -> Result<(), Error> {
        client.create_table(small_table(NAME, &FAMILIES, random)).await
    }

    pub(super) fn start(&self, life: &Arc<Life>, tasks: &mut Tasks) {
        for number in 0..WRITERS {
            let caller = self.recorder.client(NAME, &life.findings);
            tasks.spawn(write(Arc::clone(life), number, caller, Arc::clone(&self.shared)));
        }
        for number in 0..SCANNERS {
            tasks.spawn(scan(Arc::clone(life), number, Arc::clone(&self.shared)));
        }
    }

    pub(super) fn crashed(&self) {
        self.recorder.crash();
    }

    /// Scans the table, and checks all scans since the last look, this one too.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        findings: &Arc<Findings>,
        figures: &mut Figures,
    ) -> Result<(), Problem> {
        let table = client.table(NAME).expect("a well-formed name");
        let style = Style {
            rows_per_fetch: 1000,
            cells_per_piece: None,
            rest: Duration::ZERO,
        };
        let mut last = Scan {
            opened: self.shared.watch.now(),
            ..Scan::default()
        };
        let scanned = scan2(&table, style, &mut last, self.shared.watch).await;
        if !matches!(ended(NAME, findings, scanned), Ended::Done(())) {
            return Err(Problem::new(NAME, "the server does not answer a scan"));
        }
        let mut history = self.recorder.take();
        let mut scans =
            std::mem::take(&mut *self.shared.scans.lock().unwrap_or_else(PoisonError::into_inner));
        let found: Rows = last.rows.iter().cloned().collect();
        note_gets(&mut history, &last, &found, self.shared.watch);
        scans.push(last);
        let moments =
            Moments::new(&history, &self.known).map_err(|violation| Problem::of(NAME, violation))?;
        for scan in &scans {
            moments.check(scan).map_err(|mut violation| {
                violation.calls = format!("{scan:?}\n");
                Problem::in_history(NAME, violation, &history, &self.known)
            })?;
            figures.operations += scan.rows.len() as u64;
        }
        figures.scans += scans.len() as u64;
        let checked = durability::check(&history, &self.known)
            .and_then(|_| linear::check(&history, &self.known))
            .map_err(|violation| Problem::in_history(NAME, violation, &history, &self.known))?;
        figures.add_checked(checked);
        self.known = found;
        Ok(())
    }
}

/// Records the last scan's rows as gets: no client wrote meanwhile.
fn note_gets(history: &mut History, last: &Scan, found: &Rows, watch: Watch) {
    let returned = watch.now();
    history.calls.extend((0..ROWS).map(|row| Call {
        client: u32::MAX,
        row: key(row),
        op: Op::Get,
        invoked: last.opened,
        returned,
        outcome: Outcome::Done(Reply::Row(found.get(&key(row)).cloned().unwrap_or_default())),
    }));
}

async fn write(life: Arc<Life>, number: u64, caller: Caller, shared: Arc<Shared>) {
    let client = life.client(number);
    let table = client.table(NAME).expect("a well-formed name");
    let mut random = life.random(600 + number);
    loop {
        let row = key(random.random_range(0..ROWS));
        let removes = random.random_bool(0.1);
        let changes = if removes {
            vec![Change::DeleteRow]
        } else {
            let number = shared.values.fetch_add(1, Ordering::Relaxed);
            let value = Bytes::from(format!("v{number:0VALUE_BYTES$}"));
            let columns = numbered(&FAMILIES, COLUMNS_EACH).into_iter();
            columns.map(|column| Change::Put(column, value.clone())).collect()
        };
        let gate = &shared.writing[&row];
        let (mut alone, mut with_others) = (None, None);
        if removes {
            alone = Some(gate.write().await);
        } else {
            with_others = Some(gate.read().await);
        }
        let op = Op::Write(changes);
        let ended = if number == 0 {
            caller
                .call(&row, op.clone(), perform::thrift1(&client, &table, &row, &op))
                .await
        } else {
            caller
                .call(&row, op.clone(), perform::thrift2(&table, &row, &op))
                .await
        };
        drop(with_others);
        if removes {
            tokio::time::sleep(BREATH).await;
        }
        drop(alone);
        match ended {
            Ended::Done(_) => {}
            Ended::Refused => tokio::time::sleep(BREATH).await,
            Ended::Gone => return,
        }
    }
}

async fn scan(life: Arc<Life>, number: u64, shared: Arc<Shared>) {
    let client = life.client(number);
    let table = client.table(NAME).expect("a well-formed name");
    let mut random = life.random(700 + number);
    loop {
        let mut one = Scan {
            opened: shared.watch.now(),
            reversed: random.random_bool(0.3),
            ..Scan::default()
        };
        if random.random_bool(0.5) {
            let start = random.random_range(0..ROWS);
            (one.start, one.stop) = (key(start), key(random.random_range(start + 1..=ROWS)));
        }
        let style = Style {
            rows_per_fetch: random.random_range(1..30),
            cells_per_piece: random.random_bool(0.3).then(|| random.random_range(1..5)),
            rest: Duration::from_millis(random.random_range(0..8)),
        };
        let result = if number == 0 {
            scan1(&client, style, &mut one, shared.watch).await
        } else {
            scan2(&table, style, &mut one, shared.watch).await
        };
        let ended = ended(NAME, &life.findings, result);
        if !one.complete && style.cells_per_piece.is_some() {
            // Further pieces of the last row may have been to come.
            one.rows.pop();
        }
        if one.fetched > 0 {
            shared
                .scans
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(one);
        }
        match ended {
            Ended::Done(()) => {}
            Ended::Refused => tokio::time::sleep(BREATH).await,
            Ended::Gone => return,
        }
    }
}

/// Takes a row, or a further piece of the last one.
fn take(scan: &mut Scan, row: Bytes, columns: Columns) {
    match scan.rows.last_mut() {
        Some((last, so_far)) if *last == row => so_far.extend(columns),
        _ => scan.rows.push((row, columns)),
    }
}

/// The two ends in the order of the direction: first one inclusive, second one exclusive.
fn ends(scan: &Scan) -> (Option<Bytes>, Option<Bytes>) {
    let some = |row: &Bytes| (!row.is_empty()).then(|| row.clone());
    if !scan.reversed {
        return (some(&scan.start), some(&scan.stop));
    }
    // From the last key below `stop` down to the first one, which the end of the scan would leave out: one
    // that no row has.
    let below = |row: &Bytes| {
        let mut row = row.to_vec();
        row.pop().map(|last| {
            row.push(last - 1);
            row.extend_from_slice(b"~");
            Bytes::from(row)
        })
    };
    (below(&scan.stop), below(&scan.start))
}

/// Scans over Thrift 2.
async fn scan2(table: &Table, style: Style, scan: &mut Scan, watch: Watch) -> Result<(), Error> {
    let mut asked = basalt_client::Scan::new()
        .reversed(scan.reversed)
        .rows_per_fetch(style.rows_per_fetch);
    let (first, second) = ends(scan);
    if let Some(row) = first {
        asked = asked.start_row(row);
    }
    if let Some(row) = second {
        asked = asked.stop_row(row);
    }
    if let Some(cells) = style.cells_per_piece {
        asked = asked.cells_per_piece(cells);
    }
    let mut rows = table.scan(asked)?;
    let mut arrived = 0;
    loop {
        let row = rows.next().await;
        if scan.fetched == 0 {
            scan.fetched = watch.now();
        }
        let Some(row) = row? else { break };
        take(scan, row.key.clone(), columns(Some(row)));
        arrived += 1;
        if arrived % style.rows_per_fetch == 0 {
            tokio::time::sleep(style.rest).await;
        }
    }
    scan.complete = true;
    Ok(())
}

/// Scans over Thrift 1.
async fn scan1(client: &Client, style: Style, scan: &mut Scan, watch: Watch) -> Result<(), Error> {
    use thrift1::args;
    let (start_row, stop_row) = ends(scan);
    let open = args::ScannerOpenWithScan {
        table_name: Some(NAME.into()),
        scan: Some(thrift1::TScan {
            start_row,
            stop_row,
            batch_size: style.cells_per_piece,
            reversed: Some(scan.reversed),
            ..thrift1::TScan::default()
        }),
        attributes: None,
    };
    // A scanner belongs to the connection that opened it.
    let mut connection = client.pool().acquire_new_for_scan().await?;
    let id = Some(connection.call(&open).await?);
    loop {
        let fetch = args::ScannerGetList {
            id,
            nb_rows: Some(style.rows_per_fetch),
        };
        let rows = connection.call(&fetch).await;
        if scan.fetched == 0 {
            scan.fetched = watch.now();
        }
        let rows = rows?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            take(scan, row.row.clone().unwrap_or_default(), columns1(row));
        }
        tokio::time::sleep(style.rest).await;
    }
    scan.complete = true;
    connection.call(&args::ScannerClose { id }).await
}
