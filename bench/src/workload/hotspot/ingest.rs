//! Writes the rows of one design and measures it.
//!
//! Workers, one for each connection, take batches of consecutive rows from one counter, so the server sees the order
//! of time as close as concurrency allows. A batch that is refused for now (a region too busy, say) is sent again after
//! a pause, like HBase's own client does; its latency goes on until it is accepted. What fails for good is counted and
//! lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use basalt_client::{ErrorKind, Put, Table};
use bytes::Bytes;
use indicatif::{ProgressBar, ProgressStyle};

use super::FAMILY;
use crate::designs::Design;
use crate::error::{Error, Result};
use crate::latency::Latencies;
use crate::pacing::{Pace, Schedule};
use crate::region_load::RegionMap;
use crate::report::hotspot::TimelineReport;
use crate::rows::Rows;

/// What to write where.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) label: &'static str,
    pub(super) table: Table,
    pub(super) design: Arc<Design>,
    pub(super) rows: Arc<Rows>,
    pub(super) row_count: u64,
    pub(super) regions: Arc<RegionMap>,
    pub(super) connections: u64,
    pub(super) batch: u64,
    pub(super) pace: Pace,
    /// No batch is begun after it.
    pub(super) deadline: Option<Duration>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Ingested {
    /// Acknowledged.
    pub(super) rows: u64,
    /// All rows with a smaller index are acknowledged.
    pub(super) rows_in_order: u64,
    pub(super) elapsed: Duration,
    /// Of batches.
    pub(super) latencies: Latencies,
    /// Calls that failed, those that were tried again included.
    pub(super) errors: u64,
    pub(super) rows_lost: u64,
    pub(super) first_error: Option<String>,
    /// Acknowledged rows by region, by the boundaries at the start.
    pub(super) region_rows: Vec<u64>,
    pub(super) timeline: Timeline,
}

impl Ingested {
    pub(super) fn rows_per_s(&self) -> f64 {
        self.rows as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Tries of one batch, and the pauses between them.
const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Writes the rows.
pub(super) async fn run(plan: Plan) -> Result<Ingested> {
    let (schedule, pacer) = Schedule::start(plan.pace);
    let shared = Arc::new(Shared {
        bar: progress(&plan),
        next_batch: AtomicU64::new(0),
        schedule,
        plan,
    });
    let workers: Vec<_> = (0..shared.plan.connections)
        .map(|_| tokio::spawn(work(Arc::clone(&shared))))
        .collect();
    let mut all = Worker::new(&shared.plan);
    let mut failed = None;
    for worker in workers {
        match worker.await {
            Ok(Ok(worker)) => all.add(worker),
            Ok(Err(error)) => failed = Some(error),
            Err(error) => failed = Some(Error::Usage(format!("a worker stopped: {error}"))),
        }
    }
    let elapsed = shared.schedule.started().elapsed();
    shared.schedule.close();
    shared.bar.finish_and_clear();
    if pacer.is_some_and(|pacer| pacer.join().is_err()) {
        failed = Some(Error::Usage("the pacing thread stopped".to_owned()));
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(all.into_ingested(&shared, elapsed)),
    }
}

/// What the workers share.
struct Shared {
    plan: Plan,
    schedule: Arc<Schedule>,
    /// Batches taken.
    next_batch: AtomicU64,
    bar: ProgressBar,
}

/// What one worker found.
struct Worker {
    rows: u64,
    /// Indices of batches that were given up.
    lost_batches: Vec<u64>,
    latencies: Latencies,
    errors: u64,
    rows_lost: u64,
    first_error: Option<String>,
    timeline: Timeline,
}

async fn work(shared: Arc<Shared>) -> Result<Worker> {
    let plan = &shared.plan;
    let mut worker = Worker::new(plan);
    while shared.schedule.wait().await {
        let now = shared.schedule.started().elapsed();
        if plan.deadline.is_some_and(|deadline| now >= deadline) {
            break;
        }
        let index = shared.next_batch.fetch_add(1, Ordering::Relaxed);
        let Some(first) = index
            .checked_mul(plan.batch)
            .filter(|first| *first < plan.row_count)
        else {
            break;
        };
        let end = first.saturating_add(plan.batch).min(plan.row_count);
        let intended = shared.schedule.intended(index);
        let mut regions = Vec::new();
        let mut puts = Vec::new();
        for row in first..end {
            let key = plan.design.encode(plan.rows.key(row))?;
            regions.push(plan.regions.index_of(&key));
            let put = Put::new(key);
            let cells = plan.rows.cells(row).into_iter();
            puts.push(cells.fold(put, |put, (qualifier, value)| {
                put.cell(
                    Bytes::from_static(FAMILY.as_bytes()),
                    Bytes::from_static(qualifier.as_bytes()),
                    value,
                )
            }));
        }
        if worker.write(plan, puts).await {
            worker.latencies.record(intended.elapsed());
            worker.rows += end - first;
            worker.timeline.add(shared.schedule.started().elapsed(), &regions);
            shared.bar.inc(end - first);
        } else {
            worker.rows_lost += end - first;
            worker.lost_batches.push(index);
        }
    }
    // Those that wait for a request to be due need not wait any longer.
    shared.schedule.close();
    Ok(worker)
}

impl Worker {
    fn new(plan: &Plan) -> Worker {
        Worker {
            rows: 0,
            lost_batches: Vec::new(),
            latencies: Latencies::new(),
            errors: 0,
            rows_lost: 0,
            first_error: None,
            timeline: Timeline::new(plan.regions.starts().len()),
        }
    }

    /// Whether the batch was accepted in the end.
    async fn write(&mut self, plan: &Plan, puts: Vec<Put>) -> bool {
        let mut pause = PAUSE;
        for _ in 0..TRIES {
            let Err(error) = plan.table.put_multiple(puts.iter().cloned()).await else {
                return true;
            };
            self.errors += 1;
            self.first_error.get_or_insert_with(|| error.to_string());
            // Writing the same cells twice is the same as once, so what may have been carried out is sent again too.
            if !matches!(error.kind(), ErrorKind::Retry | ErrorKind::Unknown) {
                return false;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        false
    }

    fn add(&mut self, other: Worker) {
        self.rows += other.rows;
        self.lost_batches.extend(other.lost_batches);
        self.latencies.add(&other.latencies);
        self.errors += other.errors;
        self.rows_lost += other.rows_lost;
        self.first_error = self.first_error.take().or(other.first_error);
        self.timeline.add_all(&other.timeline);
    }

    fn into_ingested(self, shared: &Shared, elapsed: Duration) -> Ingested {
        let plan = &shared.plan;
        let first_lost = self.lost_batches.iter().min().map(|index| index * plan.batch);
        Ingested {
            rows: self.rows,
            rows_in_order: first_lost.unwrap_or(self.rows),
            elapsed,
            latencies: self.latencies,
            errors: self.errors,
            rows_lost: self.rows_lost,
            first_error: self.first_error,
            region_rows: self.timeline.by_region(),
            timeline: self.timeline,
        }
    }
}

/// Acknowledged rows by slot of time and region.
#[derive(Debug)]
pub(super) struct Timeline {
    regions: usize,
    slots: Vec<Vec<u64>>,
}

/// A slot of the timeline.
const SLOT: Duration = Duration::from_millis(250);

impl Timeline {
    fn new(regions: usize) -> Timeline {
        Timeline {
            regions,
            slots: Vec::new(),
        }
    }

    fn slot(&mut self, index: usize) -> &mut [u64] {
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || vec![0; self.regions]);
        }
        &mut self.slots[index]
    }

    /// Rows of these regions were acknowledged at this time since the start.
    fn add(&mut self, at: Duration, regions: &[usize]) {
        let index = usize::try_from(at.as_millis() / SLOT.as_millis()).unwrap_or(usize::MAX);
        let slot = self.slot(index);
        for region in regions {
            slot[*region] += 1;
        }
    }

    fn add_all(&mut self, other: &Timeline) {
        for (index, from) in other.slots.iter().enumerate() {
            for (to, from) in self.slot(index).iter_mut().zip(from) {
                *to += from;
            }
        }
    }

    fn by_region(&self) -> Vec<u64> {
        let mut sums = vec![0; self.regions];
        for slot in &self.slots {
            for (sum, rows) in sums.iter_mut().zip(slot) {
                *sum += rows;
            }
        }
        sums
    }

    /// The share of a slot's rows that its busiest region took, averaged over the rows: near 1 when all go to one
    /// region at a time, even if regions take turns and the sums look even.
    pub(super) fn busiest_share(&self) -> f64 {
        let total: u64 = self.slots.iter().flatten().sum();
        let busiest: u64 = self.slots.iter().filter_map(|slot| slot.iter().max()).sum();
        if total == 0 {
            0.0
        } else {
            busiest as f64 / total as f64
        }
    }

    pub(super) fn report(&self) -> TimelineReport {
        let per_second = 1.0 / SLOT.as_secs_f64();
        // The last slot is not over, so its rate would be too small.
        let full = self
            .slots
            .len()
            .saturating_sub(1)
            .max(usize::from(!self.slots.is_empty()));
        TimelineReport {
            slot_ms: SLOT.as_millis() as u64,
            rows_per_s: self.slots[..full]
                .iter()
                .map(|slot| slot.iter().sum::<u64>() as f64 * per_second)
                .collect(),
        }
    }
}

/// Drawn on a terminal only, which the bar finds out by itself.
fn progress(plan: &Plan) -> ProgressBar {
    let (bar, template) = if plan.row_count == u64::MAX {
        (
            ProgressBar::no_length(),
            "{prefix:>10} {spinner} {human_pos} rows, {per_sec}",
        )
    } else {
        (
            ProgressBar::new(plan.row_count),
            "{prefix:>10} {wide_bar} {human_pos}/{human_len} rows, {per_sec}, {eta} left",
        )
    };
    let style = ProgressStyle::with_template(template).expect("a template of this file");
    bar.with_style(style).with_prefix(plan.label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn regions_that_take_turns_are_even_in_sum_but_not_at_any_time() {
        let mut turns = Timeline::new(4);
        let mut spread = Timeline::new(4);
        for slot in 0..8u64 {
            let region = usize::try_from(slot % 4).unwrap();
            turns.add(at(slot * 250), &[region; 8]);
            spread.add(at(slot * 250), &[0, 1, 2, 3, 0, 1, 2, 3]);
        }
        assert_eq!(turns.by_region(), spread.by_region());
        assert!((turns.busiest_share() - 1.0).abs() < 1e-9);
        assert!((spread.busiest_share() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn workers_timelines_add_up_and_rates_are_per_second() {
        let (mut one, mut other) = (Timeline::new(2), Timeline::new(2));
        one.add(at(0), &[0, 0, 1]);
        other.add(at(249), &[1]);
        other.add(at(250), &[1, 1]);
        other.add(at(500), &[0]);
        one.add_all(&other);
        assert_eq!(one.by_region(), [3, 4]);
        assert_eq!(one.report().rows_per_s, [16.0, 8.0]);
    }
}
