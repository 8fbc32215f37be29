//! Runs one benchmark: threads that start together, each with a tally of its own.

use std::iter;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::database::Database;
use super::keys::{KEY_BYTES, Key, Values, key, missing_key};
use super::outcome::{Outcome, Tally};
use super::store::{From, Session as _, Store};
use super::{Arguments, Benchmark};
use crate::error::{Error, Result};
use crate::load::choose::{Chooser, Shape};
use crate::load::latency::Latencies;

/// Runs a benchmark on all its threads. `threads_before` is how many threads the benchmarks before it had: as
/// in db_bench each thread of a run has a seed of its own, so that a benchmark that is named twice does not
/// read the very keys again that its first run left in the cache.
pub(super) fn run<S: Store>(
    benchmark: Benchmark,
    arguments: &Arguments,
    database: &Database<S>,
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
        standing: database.standing()?,
    })
}

fn joined<T>(result: std::thread::Result<Result<T>>) -> Result<T> {
    result.unwrap_or_else(|_| Err(Error::Usage("a thread of the benchmark panicked".to_owned())))
}

fn compact<S: Store>(arguments: &Arguments, database: &Database<S>) -> Result<Outcome> {
    let started = Instant::now();
    database.store.compact()?;
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
        standing: database.standing()?,
    })
}

/// One thread's part of a benchmark.
struct Task<'a, S: Store + 'a> {
    benchmark: Benchmark,
    arguments: &'a Arguments,
    session: S::Session<'a>,
    random: SmallRng,
    /// Chooses keys to read.
    chooser: Chooser,
    values: Values,
    tally: Tally,
    started: Instant,
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

impl<'a, S: Store> Task<'a, S> {
    fn new(
        benchmark: Benchmark,
        arguments: &'a Arguments,
        database: &'a Database<S>,
        thread: u64,
    ) -> Task<'a, S> {
        let seed = arguments.seed.wrapping_add(thread);
        Task {
            benchmark,
            arguments,
            session: database.store.session(),
            random: SmallRng::seed_from_u64(seed),
            chooser: Chooser::new(arguments.distribution, arguments.num, Shape::default()),
            values: Values::new(seed, arguments.value_size as usize, arguments.compression_ratio),
            tally: Tally {
                latencies: arguments.histogram.then(Latencies::new),
                ..Tally::default()
            },
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
            Benchmark::ReadSeq => self.read_in_order(reads, From::First)?,
            Benchmark::ReadReverse => self.read_in_order(reads, From::Last)?,
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

    /// The number of the next key to read.
    fn choose(&mut self, num: u64) -> u64 {
        self.chooser.next(self.tally.operations, num, &mut self.random)
    }

    fn begin(&self) -> Option<Instant> {
        self.tally.latencies.is_some().then(Instant::now)
    }

    fn fill_in_order(&mut self, writes: u64, num: u64, sync: bool) -> Result<()> {
        while self.tally.operations < writes {
            let first = self.tally.operations;
            let count = u64::from(self.arguments.batch_size).min(writes - first);
            self.write(count, (first..).map(|number| key(number % num)), sync)?;
        }
        Ok(())
    }

    fn write_random(&mut self, writes: u64, num: u64, sync: bool) -> Result<()> {
        let bound = self.bound(writes);
        while !bound.is_reached(self.tally.operations) {
            self.write_randomly(self.batch(&bound), num, sync)?;
        }
        Ok(())
    }

    fn write_randomly(&mut self, count: u64, num: u64, sync: bool) -> Result<()> {
        let mut random = self.random.clone();
        self.write(
            count,
            iter::repeat_with(|| key(random.random_range(0..num))),
            sync,
        )?;
        self.random = random;
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

    /// The writer of readwhilewriting.
    fn write_until(mut self, over: &AtomicBool) -> Result<Tally> {
        let started = Instant::now();
        let limit = self.arguments.benchmark_write_rate_limit;
        while !over.load(Ordering::Relaxed) {
            self.write_randomly(1, self.arguments.num, self.arguments.sync)?;
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

    /// Puts the next `count` values under these keys, together.
    fn write(&mut self, count: u64, keys: impl Iterator<Item = Key>, sync: bool) -> Result<()> {
        let began = self.begin();
        self.tally.stalls += {
            let mut puts = keys.zip(self.values.next(count as usize));
            if count == 1 {
                let put = puts.next().expect("there is one");
                self.session.put(&[put], sync)?
            } else {
                self.session.put(&puts.collect::<Vec<_>>(), sync)?
            }
        };
        self.tally.bytes += count * (KEY_BYTES as u64 + u64::from(self.arguments.value_size));
        self.finish(began);
        self.tally.operations += count - 1;
        Ok(())
    }

    fn delete_in_order(&mut self, num: u64) -> Result<()> {
        for number in 0..num {
            let began = self.begin();
            self.tally.bytes += KEY_BYTES as u64;
            self.tally.stalls += self.session.delete(&key(number), self.arguments.sync)?;
            self.finish(began);
        }
        Ok(())
    }

    fn read_random(&mut self, reads: u64, num: u64) -> Result<()> {
        let missing = self.benchmark == Benchmark::ReadMissing;
        let mut found = 0;
        let bound = self.bound(reads);
        while !bound.is_reached(self.tally.operations) {
            let number = self.choose(num);
            let began = self.begin();
            let (present, absent) = (key(number), missing_key(number));
            let row: &[u8] = if missing { &absent } else { &present };
            if let Some(value_bytes) = self.session.get(row)? {
                found += 1;
                self.tally.bytes += (KEY_BYTES + value_bytes) as u64;
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
            let keys: Vec<_> = (0..size).map(|_| key(self.choose(num))).collect();
            let began = self.begin();
            let read = self.session.get_all(&keys)?;
            found += read.rows;
            self.tally.bytes += read.bytes;
            self.finish(began);
            self.tally.operations += size - 1;
        }
        self.tally.found = Some(found);
        Ok(())
    }

    fn seek_random(&mut self, seeks: u64, num: u64) -> Result<()> {
        let rows = 1 + u64::from(self.arguments.seek_nexts);
        let mut found = 0;
        let bound = self.bound(seeks);
        while !bound.is_reached(self.tally.operations) {
            let number = self.choose(num);
            let began = self.begin();
            let (session, tally) = (&mut self.session, &mut self.tally);
            let at_key = session.scan(From::Key(&key(number)), rows, |read| tally.bytes += read.bytes)?;
            found += u64::from(at_key);
            self.finish(began);
        }
        self.tally.found = Some(found);
        Ok(())
    }

    fn read_in_order(&mut self, reads: u64, from: From<'_>) -> Result<()> {
        let mut began = self.begin();
        let (session, tally) = (&mut self.session, &mut self.tally);
        session.scan(from, reads, |read| {
            tally.operations += read.rows;
            tally.bytes += read.bytes;
            // Rows come by the batch: each is counted, and each is given its share of the time.
            if let (Some(latencies), Some(at)) = (&mut tally.latencies, began) {
                let share = at.elapsed() / u32::try_from(read.rows).unwrap_or(u32::MAX).max(1);
                (0..read.rows).for_each(|_| latencies.record(share));
                began = Some(Instant::now());
            }
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
