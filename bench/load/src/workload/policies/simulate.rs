//! One policy under one workload: writes fill memstores, flushes and compactions write files, and what they
//! write and keep is counted.
//!
//! Time is counted in flushes, each of [`TICKS`] ticks. Compactions have a budget of bytes in a flush's time,
//! shared by those that run; without one, each compaction is done before the next write.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::files::{File, Sizes, union};
use super::policy::{Pick, Policy};
use crate::load::choose::{Chooser, Distribution, Shape};

/// Steps of the time in which a memstore fills.
pub(super) const TICKS: u32 = 8;

/// The workload, and the rate of its compactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    pub(super) distribution: Distribution,
    /// Simulated writes.
    pub(super) writes: u64,
    /// Real bytes that compactions write while a memstore fills; `None`: as many as the policy asks for.
    pub(super) budget_bytes: Option<f64>,
    /// Compactions at a time.
    pub(super) slots: usize,
    pub(super) seed: u64,
}

/// The figures of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Bytes written to log and files by bytes of keys and values.
    pub(super) write_amplification: f64,
    /// Bytes of log and files by bytes of the different keys and their values: at the end, and over
    /// the second half of the time.
    pub(super) space_end: f64,
    pub(super) space_mean: f64,
    pub(super) space_max: f64,
    /// Files that have a version of a key, mean over the keys and the second half of the time.
    pub(super) files_per_get: f64,
    /// Files that may have a key, mean likewise.
    pub(super) files_per_scan: f64,
    /// Share of the time in which writes waited for compactions.
    pub(super) blocked: f64,
}

/// A running compaction.
#[derive(Debug)]
struct Job {
    inputs: Vec<u64>,
    pick: Pick,
    output: Vec<u32>,
    /// Real bytes of the output.
    bytes: f64,
    done: f64,
}

/// A file of which parts have been compacted.
#[derive(Clone, Copy, Debug, Default)]
struct Whole {
    parts: usize,
    compacted_entries: usize,
}

/// Sums over samples.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: u64,
    space: f64,
    space_max: f64,
    files_per_get: f64,
    files_per_scan: f64,
}

/// The store as it is now, and counts since the start.
pub(super) struct Simulation<'a, P: ?Sized> {
    sizes: Sizes,
    workload: Workload,
    policy: &'a mut P,
    pub(super) files: Vec<File>,
    jobs: Vec<Job>,
    wholes: BTreeMap<u64, Whole>,
    next_id: u64,
    memstore: Vec<u32>,
    written: Vec<bool>,
    pub(super) distinct: usize,
    pub(super) writes: u64,
    /// Entries that flushes and compactions wrote, and that merges left out.
    pub(super) flushed_entries: u64,
    pub(super) compacted_entries: u64,
    pub(super) dropped_entries: u64,
    ticks: u64,
    blocked_ticks: u64,
    samples: Samples,
}

impl<'a, P: Policy + ?Sized> Simulation<'a, P> {
    pub(super) fn new(sizes: Sizes, workload: Workload, policy: &'a mut P) -> Simulation<'a, P> {
        Simulation {
            sizes,
            workload,
            policy,
            files: Vec::new(),
            jobs: Vec::new(),
            wholes: BTreeMap::new(),
            next_id: 0,
            memstore: Vec::new(),
            written: vec![false; sizes.keys as usize],
            distinct: 0,
            writes: 0,
            flushed_entries: 0,
            compacted_entries: 0,
            dropped_entries: 0,
            ticks: 0,
            blocked_ticks: 0,
            samples: Samples::default(),
        }
    }

    pub(super) fn run(&mut self) -> Figures {
        let Workload {
            distribution,
            writes,
            seed,
            ..
        } = self.workload;
        let keys = u64::from(self.sizes.keys);
        let mut chooser = Chooser::new(distribution, keys, Shape::default());
        let mut random = SmallRng::seed_from_u64(seed);
        let tick_writes = u64::from(self.sizes.flush_writes.div_ceil(TICKS));
        for index in 0..writes {
            let key = chooser.next(index, keys, &mut random) as u32;
            self.write(key);
            if self.writes.is_multiple_of(tick_writes) {
                self.tick();
            }
            if self.memstore.len() >= self.sizes.flush_writes as usize {
                self.flush();
            }
        }
        self.figures()
    }

    fn write(&mut self, key: u32) {
        self.writes += 1;
        self.memstore.push(key);
        let written = &mut self.written[key as usize];
        self.distinct += usize::from(!*written);
        *written = true;
    }

    /// A flush, when compactions have left room for its files.
    fn flush(&mut self) {
        while self.policy.is_blocked(&self.files) && !self.jobs.is_empty() {
            self.tick();
            self.blocked_ticks += 1;
        }
        let mut keys = std::mem::take(&mut self.memstore);
        keys.sort_unstable();
        keys.dedup();
        self.flushed_entries += keys.len() as u64;
        let (files, are_parts) = self.policy.flush(&self.files, keys, &self.sizes);
        let whole = are_parts.then_some(self.next_id);
        for file in files {
            if let Some(whole) = whole {
                self.wholes.entry(whole).or_default().parts += 1;
            }
            let file = self.file(file.keys, file.range, 0, whole);
            self.files.push(file);
        }
        self.begin_jobs();
    }

    fn file(
        &mut self,
        keys: Vec<u32>,
        range: std::ops::Range<u32>,
        level: usize,
        whole: Option<u64>,
    ) -> File {
        let id = self.next_id;
        self.next_id += 1;
        File {
            id,
            level,
            keys: keys.into(),
            range,
            whole,
            busy: false,
        }
    }

    /// Begins compactions while there are slots and picks.
    fn begin_jobs(&mut self) {
        while self.jobs.len() < self.workload.slots {
            let Some(pick) = self.policy.pick(&self.files, &self.sizes) else {
                return;
            };
            let inputs: Vec<_> = pick.inputs.iter().map(|place| self.files[*place].id).collect();
            let output = union(pick.inputs.iter().map(|place| &self.files[*place]));
            for place in &pick.inputs {
                self.files[*place].busy = true;
            }
            let bytes = if pick.moved {
                0.0
            } else {
                self.sizes.stored(output.len()) as f64
            };
            self.jobs.push(Job {
                inputs,
                pick,
                output,
                bytes,
                done: 0.0,
            });
            if self.workload.budget_bytes.is_none() {
                // The output is complete and the inputs are still there.
                self.jobs[0].done = bytes;
                if self.is_sampled() {
                    self.samples.space_max = self.samples.space_max.max(self.space());
                }
                self.install(0);
            }
        }
    }

    /// One step of time: compactions go on, and the store is looked at.
    fn tick(&mut self) {
        self.ticks += 1;
        if let Some(budget) = self.workload.budget_bytes {
            let mut left = budget / f64::from(TICKS);
            while left > 0.0 && !self.jobs.is_empty() {
                // All run at the same speed until the first is done.
                let least = self.jobs.iter().map(|job| job.bytes - job.done);
                let least = least.fold(f64::INFINITY, f64::min);
                let step = least.min(left / self.jobs.len() as f64);
                left -= step * self.jobs.len() as f64;
                self.jobs.iter_mut().for_each(|job| job.done += step);
                while let Some(done) = self.jobs.iter().position(|job| job.bytes - job.done < 1.0) {
                    self.install(done);
                }
                self.begin_jobs();
            }
        }
        if self.is_sampled() {
            self.sample();
        }
    }

    /// Whether this is the second half of the time.
    fn is_sampled(&self) -> bool {
        self.writes * 2 >= self.workload.writes
    }

    /// Replaces the inputs of a compaction by its output.
    fn install(&mut self, job: usize) {
        let Job {
            inputs, pick, output, ..
        } = self.jobs.swap_remove(job);
        let newest = self.files.iter().rposition(|file| inputs.contains(&file.id));
        let mut place = newest.expect("the inputs of a compaction stay until it is done") + 1;
        let (mut entries, mut start, mut end) = (0, u32::MAX, 0);
        for file in self.files.iter().filter(|file| inputs.contains(&file.id)) {
            entries += file.keys.len();
            (start, end) = (start.min(file.range.start), end.max(file.range.end));
            if let Some(whole) = file.whole {
                let of = self.wholes.entry(whole).or_default();
                of.parts -= 1;
                of.compacted_entries += file.keys.len();
                if of.parts == 0 {
                    self.wholes.remove(&whole);
                }
            }
        }
        if !pick.moved {
            self.compacted_entries += output.len() as u64;
        }
        self.dropped_entries += (entries - output.len()) as u64;
        let size = pick.file_entries.unwrap_or(output.len()).max(1);
        let pieces: Vec<_> = output.chunks(size).map(<[u32]>::to_vec).collect();
        for piece in pieces {
            let range = match (pick.file_entries, piece.first(), piece.last()) {
                (Some(_), Some(first), Some(last)) => *first..last + 1,
                _ => start..end,
            };
            let file = self.file(piece, range, pick.level, None);
            self.files.insert(place, file);
            place += 1;
        }
        self.files.retain(|file| !inputs.contains(&file.id));
    }

    /// Entries in files.
    pub(super) fn stored_entries(&self) -> usize {
        self.files.iter().map(|file| file.keys.len()).sum()
    }

    /// Bytes on disk by bytes of the different keys.
    fn space(&self) -> f64 {
        let kept: usize = self.wholes.values().map(|whole| whole.compacted_entries).sum();
        let stored = self.sizes.stored(self.stored_entries() + kept) as f64;
        let outputs: f64 = self.jobs.iter().map(|job| job.done).sum();
        let log = self.sizes.log_on_disk(self.writes, self.memstore.len());
        (stored + outputs + log) / self.user_bytes(self.distinct as f64)
    }

    fn user_bytes(&self, entries: f64) -> f64 {
        (entries * self.sizes.scale as f64 * self.sizes.user_bytes).max(1.0)
    }

    fn sample(&mut self) {
        let space = self.space();
        let widths = self
            .files
            .iter()
            .map(|file| f64::from(file.range.end - file.range.start));
        self.samples.count += 1;
        self.samples.space += space;
        self.samples.space_max = self.samples.space_max.max(space);
        self.samples.files_per_get += self.stored_entries() as f64 / self.distinct.max(1) as f64;
        self.samples.files_per_scan += widths.sum::<f64>() / f64::from(self.sizes.keys);
    }

    fn figures(&self) -> Figures {
        let unfinished: f64 = self.jobs.iter().map(|job| job.done).sum();
        let entries = (self.flushed_entries + self.compacted_entries) as usize;
        let log = self.writes as f64 * self.sizes.scale as f64 * self.sizes.log_bytes;
        let written = log + self.sizes.stored(entries) as f64 + unfinished;
        let count = self.samples.count.max(1) as f64;
        Figures {
            write_amplification: written / self.user_bytes(self.writes as f64),
            space_end: self.space(),
            space_mean: self.samples.space / count,
            space_max: self.samples.space_max,
            files_per_get: self.samples.files_per_get / count,
            files_per_scan: self.samples.files_per_scan / count,
            blocked: self.blocked_ticks as f64 / self.ticks.max(1) as f64,
        }
    }
}
