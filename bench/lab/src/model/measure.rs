//! Loads rows and runs patterns, through the load core.
//!
//! The first [`CHECKED`] answers of a read are compared with those computed from the model: rows by their
//! numbers, the newest first. Rows with the same key overwrite each other, so such an answer differs, and the
//! report says how many keys collide.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_client::Row;
use basalt_load::error::{Error, Result};
use basalt_load::load::pacing::Pace;
use basalt_load::load::retry::{Failures, retried};
use basalt_load::load::{self, Measured, Operations, Outcome, Plan as LoadPlan};
use basalt_load::session::{Answer, RowScan, Session, row_bytes};
use bytes::Bytes;
use tokio::task::JoinSet;

use super::data::{Data, NUMBER, Question};
use super::file::{Key, Pattern, PatternKind, Table};
use super::plan::{Newest, Plan, start_and_stop};
use crate::region_load::RegionMap;

/// Answers of a read that are checked.
pub(super) const CHECKED: u64 = 20;
/// Scans of a question that run at once.
pub(super) const SCANS_AT_ONCE: usize = 16;
/// Most rows of a fetch.
const ROWS_PER_FETCH: i32 = 1_000;
/// Rows of a put while the table is loaded.
const BATCH: u64 = 200;
/// Keys that are looked at for collisions.
const KEYS_MAX: u64 = 1_000_000;

/// A table in a layout.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) session: Session,
    pub(super) data: Arc<Data>,
    pub(super) table: Arc<Table>,
    /// Index of the layout.
    pub(super) layout: usize,
    /// Rows that are loaded.
    pub(super) rows: u64,
    pub(super) regions: Arc<RegionMap>,
}

/// How a pattern is to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    pub(super) threads: u64,
    pub(super) duration: Duration,
    /// The model's rates are multiplied by it.
    pub(super) scale: f64,
}

/// The figures of a pattern in a layout.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) measured: Measured,
    pub(super) scans: u64,
    pub(super) rows_read: u64,
    pub(super) rows_returned: u64,
    pub(super) bytes_read: u64,
    /// The first answer that was not the expected one.
    pub(super) difference: Option<String>,
    /// Answers that were checked.
    pub(super) checked: u64,
}

impl Place {
    pub(super) fn key(&self) -> &Key {
        &self.table.keys[self.layout]
    }

    /// Keys among the first rows that an earlier row has, too; and how many rows were looked at.
    pub(super) fn collisions(&self) -> (u64, u64) {
        let looked_at = self.rows.min(KEYS_MAX);
        let mut seen = HashSet::new();
        let twice = (0..looked_at).filter(|row| !seen.insert(self.data.key(self.key(), *row)));
        (twice.count() as u64, looked_at)
    }

    /// Writes the rows that are there before patterns run.
    pub(super) async fn load(&self, threads: u64) -> Result<Figures> {
        let batch = BATCH.min(self.rows);
        let plan = LoadPlan {
            label: format!("{}, rows", self.table.name),
            connections: threads,
            pace: Pace::Closed,
            operations: Some(self.rows.div_ceil(batch)),
            rows_per_operation: batch,
            duration: None,
            warm_up: Duration::ZERO,
        };
        let figures = self.write(plan, 0..self.rows, batch).await?;
        if figures.measured.rows() == self.rows {
            return Ok(figures);
        }
        let first = figures.measured.failures.first.clone();
        Err(Error::Different(format!(
            "table {}: {} of {} rows were written: {}",
            self.table.name,
            figures.measured.rows(),
            self.rows,
            first.unwrap_or_else(|| "the server gave no reason".to_owned())
        )))
    }

    /// Runs a pattern.
    pub(super) async fn run(&self, pattern: &Pattern, pacing: Pacing) -> Result<Figures> {
        let rate = pattern.rate.map(|rate| rate * pacing.scale);
        let plan = |rows_per_operation: u64| LoadPlan {
            label: pattern.name.clone(),
            connections: pacing.threads,
            pace: rate.map_or(Pace::Closed, |rate| Pace::Open {
                requests_per_s: rate / rows_per_operation as f64,
            }),
            operations: None,
            rows_per_operation,
            duration: Some(pacing.duration),
            warm_up: Duration::ZERO,
        };
        match pattern.kind {
            PatternKind::Write { batch } => {
                // A slow stream of rows does not come in large batches.
                let batch = rate.map_or(batch, |rate| batch.min((rate / 10.0).ceil() as u64).max(1));
                self.write(plan(batch), self.rows..u64::MAX, batch).await
            }
            PatternKind::Get | PatternKind::Read { .. } => self.ask(plan(1), pattern).await,
        }
    }

    async fn write(&self, plan: LoadPlan, rows: std::ops::Range<u64>, batch: u64) -> Result<Figures> {
        let writing = Arc::new(Writing {
            place: self.clone(),
            rows,
            batch,
        });
        let (measured, _) = load::run(plan, &writing).await?;
        Ok(Figures {
            measured,
            scans: 0,
            rows_read: 0,
            rows_returned: 0,
            bytes_read: 0,
            difference: None,
            checked: 0,
        })
    }

    async fn ask(&self, plan: LoadPlan, pattern: &Pattern) -> Result<Figures> {
        let asking = Arc::new(Asking {
            place: self.clone(),
            plan: Plan::of(self.key(), pattern, self.data.ms_per_row()),
            pattern: pattern.clone(),
            expected: self.expected(pattern),
        });
        let (measured, workers) = load::run(plan, &asking).await?;
        let mut figures = Figures {
            measured,
            scans: 0,
            rows_read: 0,
            rows_returned: 0,
            bytes_read: 0,
            difference: None,
            checked: 0,
        };
        for worker in workers {
            figures.scans += worker.scans;
            figures.rows_read += worker.rows_read;
            figures.rows_returned += worker.rows_returned;
            figures.bytes_read += worker.bytes_read;
            figures.checked += worker.checked;
            figures.difference = figures.difference.or(worker.difference);
        }
        Ok(figures)
    }

    /// The answers to the first questions, by number of the question.
    pub(super) fn expected(&self, pattern: &Pattern) -> BTreeMap<u64, Vec<u64>> {
        let questions: Vec<Question> = (0..CHECKED)
            .map(|index| self.data.question(pattern, index, self.rows))
            .collect();
        let mut answers: BTreeMap<u64, Vec<u64>> = (0..CHECKED).map(|index| (index, Vec::new())).collect();
        let latest = latest(pattern);
        for row in (0..self.rows).rev() {
            for (question, answer) in questions.iter().zip(answers.values_mut()) {
                if answer.len() < latest && self.data.answers(&self.table, pattern, question, row) {
                    answer.push(row);
                }
            }
        }
        answers
    }
}

/// Most rows of an answer.
fn latest(pattern: &Pattern) -> usize {
    match pattern.kind {
        PatternKind::Read {
            latest: Some(latest), ..
        } => latest as usize,
        _ => usize::MAX,
    }
}

struct Writing {
    place: Place,
    rows: std::ops::Range<u64>,
    batch: u64,
}

impl Operations for Writing {
    type Worker = ();

    fn kinds(&self) -> Vec<String> {
        vec!["put".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<()> {
        Ok(())
    }

    async fn operate(&self, _worker: &mut (), index: u64) -> Result<Option<Outcome>> {
        let first = self.rows.start.saturating_add(index.saturating_mul(self.batch));
        if first >= self.rows.end {
            return Ok(None);
        }
        let place = &self.place;
        let end = first.saturating_add(self.batch).min(self.rows.end);
        let rows: Vec<_> = (first..end).map(|row| place.data.row(place.key(), row)).collect();
        let mut failures = Failures::default();
        let done = retried(&mut failures, || place.session.put(&rows)).await;
        Ok(Some(Outcome::of(0, done.map(|()| rows.len() as u64), failures)))
    }
}

struct Asking {
    place: Place,
    pattern: Pattern,
    plan: Plan,
    expected: BTreeMap<u64, Vec<u64>>,
}

/// One task's figures.
#[derive(Debug, Default)]
struct Asker {
    scans: u64,
    rows_read: u64,
    rows_returned: u64,
    bytes_read: u64,
    checked: u64,
    difference: Option<String>,
}

impl Operations for Asking {
    type Worker = Asker;

    fn kinds(&self) -> Vec<String> {
        vec!["question".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<Asker> {
        Ok(Asker::default())
    }

    async fn operate(&self, worker: &mut Asker, index: u64) -> Result<Option<Outcome>> {
        let question = self.place.data.question(&self.pattern, index, self.place.rows);
        let mut failures = Failures::default();
        let rows = retried(&mut failures, || self.rows(&question)).await;
        let Some((scans, rows)) = rows else {
            return Ok(Some(Outcome::of(0, None, failures)));
        };
        let answer = self.answer(&question, &rows);
        worker.scans += scans;
        worker.rows_read += rows.len() as u64;
        worker.bytes_read += rows.iter().map(row_bytes).sum::<u64>();
        worker.rows_returned += answer.len() as u64;
        if let Some(expected) = self.expected.get(&index) {
            worker.checked += 1;
            if *expected != answer && worker.difference.is_none() {
                worker.difference = Some(format!(
                    "question {index} returned {} rows, and the model has {}",
                    answer.len(),
                    expected.len()
                ));
            }
        }
        Ok(Some(Outcome::of(0, Some(answer.len() as u64), failures)))
    }
}

impl Asking {
    /// All rows that the question reads, and its number of scans.
    async fn rows(&self, question: &Question) -> Answer<(u64, Vec<Row>)> {
        let (place, session) = (&self.place, &self.place.session);
        if self.pattern.kind == PatternKind::Get {
            let key = Bytes::from(place.data.key(place.key(), question.row));
            return Ok((0, session.get(&[key], &[]).await?));
        }
        let scans: Vec<RowScan> = self.scans(question);
        let count = scans.len() as u64;
        let mut waiting = scans.into_iter();
        let (mut running, mut rows) = (JoinSet::new(), Vec::new());
        loop {
            while running.len() < SCANS_AT_ONCE
                && let Some(scan) = waiting.next()
            {
                let session = session.clone();
                running.spawn(async move {
                    let mut scanner = session.scan(&scan)?;
                    let mut rows = Vec::new();
                    while let Some(row) = scanner.next().await? {
                        rows.push(row);
                    }
                    Answer::Ok(rows)
                });
            }
            match running.join_next().await {
                None => return Ok((count, rows)),
                Some(Ok(found)) => rows.extend(found?),
                Some(Err(error)) => {
                    return Err(basalt_client::Error::InvalidRequest(format!(
                        "a scan stopped: {error}"
                    )));
                }
            }
        }
    }

    fn scans(&self, question: &Question) -> Vec<RowScan> {
        let key = self.place.key();
        let limit = self.plan.newest.and(self.plan.latest);
        let rows_per_fetch = limit.map_or(ROWS_PER_FETCH, |limit| {
            i32::try_from(limit).unwrap_or(ROWS_PER_FETCH).min(ROWS_PER_FETCH)
        });
        let ranges = self.plan.ranges(&self.place.data, key, question).into_iter();
        let scan = |range| {
            let (start, stop) = start_and_stop(&range, self.plan.newest, key.layout.bytes());
            RowScan {
                start: start.into(),
                stop: stop.into(),
                limit,
                rows_per_fetch,
                reversed: self.plan.newest == Some(Newest::Last),
                ..RowScan::default()
            }
        };
        ranges.map(scan).collect()
    }

    /// Numbers of the rows of the answer, the newest first.
    fn answer(&self, question: &Question, rows: &[Row]) -> Vec<u64> {
        let (data, key) = (&self.place.data, self.place.key());
        let kept = rows
            .iter()
            .filter(|row| self.plan.keeps(data, key, question, &row.key));
        let mut numbers: Vec<u64> = kept.filter_map(number).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.truncate(latest(&self.pattern));
        numbers
    }
}

/// A row's number.
fn number(row: &Row) -> Option<u64> {
    let cell = row
        .cells
        .iter()
        .find(|cell| cell.qualifier == NUMBER.as_bytes())?;
    Some(u64::from_be_bytes(cell.value[..].try_into().ok()?))
}
