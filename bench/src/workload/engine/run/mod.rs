//! Runs one benchmark: threads that start together, each with a tally of its own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use basalt_engine::Kind;
use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Fetched, Scanner};
use basalt_engine::op::{FetchLimits, Get, ReadSpec, ReadTier, RowMutation, Scan, Write};
use basalt_engine::schema::Durability;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::database::{Database, FAMILY, during};
use super::keys::{KEY_BYTES, Key, Values, key, missing_key};
use super::outcome::{Outcome, Tally};
use super::standing::Standing;
use super::{Arguments, Benchmark};
use crate::error::{Error, Result};
use crate::load::latency::Latencies;

/// Rows and bytes of one fetch from a scanner: those of the server's fetches.
const FETCH: FetchLimits = FetchLimits {
    results: 100,
    bytes: 2 << 20,
    time: Duration::from_secs(1),
};

/// Pause before a refused write is tried again.
const STALL: Duration = Duration::from_millis(1);

/// Runs a benchmark on all its threads. `threads_before` is how many threads the benchmarks before it had: as
/// in db_bench each thread of a run has a seed of its own, so that a benchmark that is named twice does not
/// read the very keys again that its first run left in the cache.
pub(super) fn run(
    benchmark: Benchmark,
    arguments: &Arguments,
    database: &Database,
    threads_before: u64,
) -> Result<Outcome> {
    if benchmark == Benchmark::Compact {
        return compact(arguments, database);
    }
    let readers = arguments.threads as usize;
    let writer = benchmark == Benchmark::ReadWhileWriting;
    let barrier = Barrier::new(readers + usize::from(writer));
    let over = AtomicBool::new(false);
    let task = |thread: usize| Task::new(benchmark, arguments, database, threads_before + thread as u64);
    let (tallies, written) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..readers)
            .map(|thread| {
                let (task, barrier) = (task(thread), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    task.run()
                })
            })
            .collect();
        let background = writer.then(|| {
            let (task, barrier, over) = (task(readers), &barrier, &over);
            scope.spawn(move || {
                barrier.wait();
                task.write_until(over)
            })
        });
        let tallies: Vec<_> = threads.into_iter().map(|thread| joined(thread.join())).collect();
        over.store(true, Ordering::Relaxed);
        (tallies, background.map(|writer| joined(writer.join())))
    });
    written.transpose()?;
    let mut tally = Tally::default();
    let mut elapsed = Duration::ZERO;
    for part in tallies {
        let part = part?;
        elapsed = elapsed.max(part.busy);
        tally.add(&part);
    }
    Ok(Outcome {
        benchmark,
        tally,
        elapsed,
        standing: Standing::of(database)?,
    })
}

fn joined<T>(result: std::thread::Result<Result<T>>) -> Result<T> {
    result.unwrap_or_else(|_| Err(Error::Usage("a thread of the benchmark panicked".to_owned())))
}

fn compact(arguments: &Arguments, database: &Database) -> Result<Outcome> {
    let started = Instant::now();
    during("flush", database.engine.flush(&database.table))?;
    during(
        "compaction",
        database.engine.compact(&database.table, None, true, true),
    )?;
    let elapsed = started.elapsed();
    let mut latencies = Latencies::new();
    latencies.record(elapsed);
    Ok(Outcome {
        benchmark: Benchmark::Compact,
        tally: Tally {
            operations: 1,
            busy: elapsed,
            latencies: arguments.histogram.then_some(latencies),
            ..Tally::default()
        },
        elapsed,
        standing: Standing::of(database)?,
    })
}

/// One thread's part of a benchmark.
struct Task<'a> {
    benchmark: Benchmark,
    arguments: &'a Arguments,
    database: &'a Database,
    random: SmallRng,
    values: Values,
    tally: Tally,
    started: Instant,
    /// Filled and cleared by every read.
    batch: CellBatch,
}

/// End of a thread: after a number of operations, or after a time.
struct Bound {
    operations: u64,
    until: Option<Instant>,
}

impl Bound {
    /// Whether the bound is reached. Reads the clock only now and then, since that costs as much as
    /// a read from memory.
    fn is_reached(&self, done: u64) -> bool {
        const ASK: u64 = 64;
        match self.until {
            Some(until) => done.is_multiple_of(ASK) && Instant::now() >= until,
            None => done >= self.operations,
        }
    }
}

impl<'a> Task<'a> {
    fn new(benchmark: Benchmark, arguments: &'a Arguments, database: &'a Database, thread: u64) -> Task<'a> {
        let seed = arguments.seed.wrapping_add(thread);
        Task {
            benchmark,
            arguments,
            database,
            random: SmallRng::seed_from_u64(seed),
            values: Values::new(seed, arguments.value_size as usize, arguments.compression_ratio),
            tally: Tally {
                latencies: arguments.histogram.then(Latencies::new),
                ..Tally::default()
            },
            batch: CellBatch::new(),
            started: Instant::now(),
        }
    }

    fn run(mut self) -> Result<Tally> {
        self.started = Instant::now();
        let (num, reads) = (
            self.arguments.num,
            self.arguments.reads.unwrap_or(self.arguments.num),
        );
        let writes = self.arguments.writes.unwrap_or(num);
        let sync = self.arguments.sync;
        match self.benchmark {
            Benchmark::FillSeq => self.fill_in_order(writes, num, sync)?,
            Benchmark::FillRandom | Benchmark::Overwrite => self.write_random(writes, num, sync)?,
            // db_bench takes keys from a thousandth of the numbers.
            Benchmark::FillSync => self.write_random(writes, (num / 1_000).max(1), true)?,
            Benchmark::ReadRandom | Benchmark::ReadMissing | Benchmark::ReadWhileWriting => {
                self.read_random(reads, num)?;
            }
            Benchmark::MultiReadRandom => self.multi_read_random(reads, num)?,
            Benchmark::SeekRandom => self.seek_random(reads, num)?,
            Benchmark::ReadSeq => self.read_in_order(reads, false)?,
            Benchmark::ReadReverse => self.read_in_order(reads, true)?,
            Benchmark::DeleteSeq => self.delete_in_order(num)?,
            Benchmark::Compact => unreachable!("compaction has no threads"),
        }
        self.tally.busy = self.started.elapsed();
        Ok(self.tally)
    }

    fn bound(&self, operations: u64) -> Bound {
        let seconds = self.arguments.duration;
        Bound {
            operations,
            until: (seconds > 0).then(|| Instant::now() + Duration::from_secs(seconds)),
        }
    }

    /// Counts one operation that began at `began`.
    fn finish(&mut self, began: Option<Instant>) {
        self.tally.operations += 1;
        if let (Some(latencies), Some(began)) = (&mut self.tally.latencies, began) {
            let now = Instant::now();
            latencies.record(now - began);
            self.tally.timeline.add(now - self.started, 1);
        }
    }

    fn begin(&self) -> Option<Instant> {
        self.tally.latencies.is_some().then(Instant::now)
    }

    fn fill_in_order(&mut self, writes: u64, num: u64, sync: bool) -> Result<()> {
        while self.tally.operations < writes {
            let first = self.tally.operations;
            let count = u64::from(self.arguments.batch_size).min(writes - first);
            self.write(
                (first..first + count).map(|number| key(number % num)).collect(),
                sync,
            )?;
        }
        Ok(())
    }

    fn write_random(&mut self, writes: u64, num: u64, sync: bool) -> Result<()> {
        let bound = self.bound(writes);
        while !bound.is_reached(self.tally.operations) {
            let keys = self.random_keys(self.batch(&bound), num);
            self.write(keys, sync)?;
        }
        Ok(())
    }

    /// Keys of the next batch: no more than the operations that are left.
    fn batch(&self, bound: &Bound) -> u64 {
        let size = u64::from(self.arguments.batch_size);
        match bound.until {
            Some(_) => size,
            None => size.min(bound.operations - self.tally.operations),
        }
    }

    fn random_keys(&mut self, count: u64, num: u64) -> Vec<Key> {
        (0..count)
            .map(|_| key(self.random.random_range(0..num)))
            .collect()
    }

    /// The writer of readwhilewriting.
    fn write_until(mut self, over: &AtomicBool) -> Result<Tally> {
        let started = Instant::now();
        let limit = self.arguments.benchmark_write_rate_limit;
        while !over.load(Ordering::Relaxed) {
            let keys = self.random_keys(1, self.arguments.num);
            self.write(keys, self.arguments.sync)?;
            if limit > 0 {
                let due = Duration::from_secs_f64(self.tally.bytes as f64 / limit as f64);
                std::thread::sleep(
                    due.saturating_sub(started.elapsed())
                        .min(Duration::from_millis(10)),
                );
            }
        }
        Ok(self.tally)
    }

    /// Puts the next values under these keys, together.
    fn write(&mut self, keys: Vec<Key>, sync: bool) -> Result<()> {
        let began = self.begin();
        let count = keys.len() as u64;
        let rows = keys.into_iter().zip(self.values.next(count as usize));
        let rows = rows.map(|(key, value)| {
            let put = Write::Put {
                family: FAMILY,
                qualifier: b"",
                timestamp: None,
                value,
                ttl_ms: None,
            };
            (key, put)
        });
        self.tally.stalls += mutate(self.database, &rows.collect::<Vec<_>>(), sync)?;
        self.tally.bytes += count * (KEY_BYTES as u64 + u64::from(self.arguments.value_size));
        self.finish(began);
        self.tally.operations += count - 1;
        Ok(())
    }

    fn delete_in_order(&mut self, num: u64) -> Result<()> {
        for number in 0..num {
            let began = self.begin();
            let delete = Write::DeleteFamily {
                family: FAMILY,
                timestamp: None,
            };
            self.tally.bytes += KEY_BYTES as u64;
            self.tally.stalls += mutate(self.database, &[(key(number), delete)], self.arguments.sync)?;
            self.finish(began);
        }
        Ok(())
    }

    fn read_random(&mut self, reads: u64, num: u64) -> Result<()> {
        let missing = self.benchmark == Benchmark::ReadMissing;
        let mut found = 0;
        let bound = self.bound(reads);
        while !bound.is_reached(self.tally.operations) {
            let number = self.random.random_range(0..num);
            let began = self.begin();
            let (present, absent) = (key(number), missing_key(number));
            let row: &[u8] = if missing { &absent } else { &present };
            self.batch.clear();
            let get = Get {
                row,
                spec: ReadSpec::default(),
            };
            during(
                "get",
                self.database
                    .engine
                    .get(&self.database.table, &get, &mut self.batch),
            )?;
            if let Some(result) = self.batch.rows().next() {
                found += 1;
                let values = result.cells().map(|cell| cell.value.len()).sum::<usize>();
                self.tally.bytes += (KEY_BYTES + values) as u64;
            }
            self.finish(began);
        }
        self.tally.found = Some(found);
        Ok(())
    }

    fn multi_read_random(&mut self, reads: u64, num: u64) -> Result<()> {
        let mut found = 0;
        let bound = self.bound(reads);
        while !bound.is_reached(self.tally.operations) {
            let size = self.batch(&bound);
            let keys = self.random_keys(size, num).into_iter();
            let gets = keys.map(|key| (key, ReadSpec::default())).collect();
            let began = self.begin();
            self.batch.clear();
            self.get_all(gets)?;
            for result in self.batch.rows() {
                found += 1;
                let values = result.cells().map(|cell| cell.value.len()).sum::<usize>();
                self.tally.bytes += (KEY_BYTES + values) as u64;
            }
            self.finish(began);
            self.tally.operations += size - 1;
        }
        self.tally.found = Some(found);
        Ok(())
    }

    /// Gets rows into `batch` as the server does for one call: from memory up to the first row that
    /// has to be read from disk, then with the blocks of the others read ahead.
    fn get_all(&mut self, mut gets: Vec<(Key, ReadSpec)>) -> Result<()> {
        let Database { engine, table, .. } = self.database;
        let mut ahead = if self.arguments.read_threads > 0 {
            0
        } else {
            gets.len()
        };
        let mut done = 0;
        while let Some((row, spec)) = gets.get_mut(done) {
            spec.tier = if done < ahead {
                ReadTier::All
            } else {
                ReadTier::Memory
            };
            let get = Get {
                row: &row[..],
                spec: std::mem::take(spec),
            };
            let result = engine.get(table, &get, &mut self.batch);
            *spec = get.spec;
            if matches!(result, Err(basalt_engine::Error::NotInMemory)) {
                self.batch.abandon_row();
                ahead = done + engine.read_ahead(table, &gets[done..]);
                continue;
            }
            during("get", result)?;
            done += 1;
        }
        Ok(())
    }

    fn seek_random(&mut self, seeks: u64, num: u64) -> Result<()> {
        let rows = 1 + u64::from(self.arguments.seek_nexts);
        let mut found = 0;
        let bound = self.bound(seeks);
        while !bound.is_reached(self.tally.operations) {
            let number = self.random.random_range(0..num);
            let began = self.begin();
            let row = key(number);
            let mut scanner = self.scanner(row.to_vec(), rows, false)?;
            let mut first = true;
            loop {
                let more = self.fetch(&mut scanner)?;
                if first && self.batch.rows().next().is_some_and(|result| result.key() == row) {
                    found += 1;
                }
                first = false;
                if !more {
                    break;
                }
            }
            self.finish(began);
        }
        self.tally.found = Some(found);
        Ok(())
    }

    fn read_in_order(&mut self, reads: u64, reversed: bool) -> Result<()> {
        let mut scanner = self.scanner(Vec::new(), reads, reversed)?;
        loop {
            let began = self.begin();
            let more = self.fetch(&mut scanner)?;
            // Rows come by the batch: each is counted, and each is given its share of the time.
            let rows = self.batch.row_count() as u64;
            self.tally.operations += rows;
            if let (Some(latencies), Some(began)) = (&mut self.tally.latencies, began) {
                let share = began.elapsed() / u32::try_from(rows).unwrap_or(u32::MAX).max(1);
                (0..rows).for_each(|_| latencies.record(share));
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn scanner(&self, start_row: Vec<u8>, rows: u64, reversed: bool) -> Result<Scanner> {
        let scan = Scan {
            start_row,
            reversed,
            limit: Some(rows),
            ..Scan::default()
        };
        during("scan", self.database.engine.scan(&self.database.table, scan))
    }

    /// Fetches into `batch`, and says whether there may be more.
    fn fetch(&mut self, scanner: &mut Scanner) -> Result<bool> {
        self.batch.clear();
        let fetched = during("fetch", scanner.fetch(&FETCH, &mut self.batch))?;
        let cells = self.batch.rows().flat_map(|row| row.cells());
        self.tally.bytes += cells
            .map(|cell| (KEY_BYTES + cell.value.len()) as u64)
            .sum::<u64>();
        Ok(fetched == Fetched::More)
    }
}

/// Applies one write to each of these rows, together; returns how often they were refused and retried.
fn mutate(database: &Database, writes: &[(Key, Write<'_>)], sync: bool) -> Result<u64> {
    let durability = if sync {
        Durability::FsyncWal
    } else {
        Durability::UseDefault
    };
    let mutations = writes.iter().map(|(key, write)| RowMutation {
        row: &key[..],
        writes: [*write].into(),
        durability,
    });
    let mutations: Vec<_> = mutations.collect();
    let mut stalls = 0;
    loop {
        let written = database.engine.mutate(&database.table, &mutations);
        let written = written.and_then(|commit| {
            let pause = commit.pause();
            commit.wait().map(|()| pause)
        });
        match written {
            Ok(pause) => {
                std::thread::sleep(pause);
                return Ok(stalls);
            }
            Err(error) if error.kind() == Kind::Retry => {
                stalls += 1;
                std::thread::sleep(STALL);
            }
            Err(source) => {
                return Err(Error::Engine {
                    during: "write",
                    source,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
