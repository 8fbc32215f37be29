//! `policies`: a simulator of compaction policies. It predicts write and space amplification, and how many files
//! reads look at, in seconds instead of hours.
//!
//! ```text
//! policy    which files are compacted next: the engine's own function, and candidates beside it
//! files     store files as sets of keys
//! simulate  writes, flushes and compactions in simulated time
//! ```
//!
//! One simulated key stands for `--scale` real ones, which changes sizes and no ratio: files have as many duplicates
//! as real ones. Not simulated: time-based major compactions, deletes, block indexes and bloom filters, and
//! disks. Figures of bytes have the meaning of `bench/ingest.py`.

mod files;
mod policy;
mod simulate;
#[cfg(test)]
mod tests;

use std::time::Instant;

use basalt_engine::internals::compaction::StripeLimits;
use clap::ValueEnum;

use crate::error::{Error, Result};
use crate::load::choose::Distribution;
use files::{Distinct, Sizes};
use policy::{DeadShare, EngineStripes, Exploring, Lazy, Leveled, Policy, Stripes};
use simulate::{Figures, Simulation, Workload};

/// Simulate compaction policies and print what each would cost.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Keys.
    #[arg(long, default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Writes, over these keys.
    #[arg(long, default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    writes: u64,
    /// Which keys are written.
    #[arg(long, default_value = "uniform")]
    distribution: Keys,
    /// Bytes of a key and its value.
    #[arg(long, default_value_t = 116, value_parser = clap::value_parser!(u32).range(1..))]
    user_bytes: u32,
    /// Bytes of an entry in a store file, index and bloom filter included.
    #[arg(long, default_value_t = 147.0)]
    cell_bytes: f64,
    /// Bytes of an entry in the log.
    #[arg(long, default_value_t = 167.0)]
    log_bytes: f64,
    /// Bytes of a memstore that are flushed together.
    #[arg(long, default_value_t = 64 << 20, value_parser = clap::value_parser!(u64).range(1..))]
    write_buffer_size: u64,
    /// Bytes of an entry in the memstore.
    #[arg(long, default_value_t = 182.0)]
    memstore_entry_bytes: f64,
    /// Bytes of a log segment. 0: the log is cut behind every flush.
    #[arg(long, default_value_t = 32 << 20)]
    wal_segment_bytes: u64,
    /// Writes in a second, beside which compactions run.
    #[arg(long, default_value_t = 300_000.0)]
    writes_per_s: f64,
    /// Megabytes that all compactions together write in a second. 0: as many as a policy asks for, before the
    /// next write.
    #[arg(long, default_value_t = 0.0)]
    compaction_mb_per_s: f64,
    /// Compactions at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    slots: u8,
    /// Keys that a simulated key stands for.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Distributions of the written keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Keys {
    /// All alike.
    Uniform,
    /// Few keys often, scattered: YCSB's.
    Zipfian,
    /// One after the other, round and round.
    Sequential,
}

impl Arguments {
    fn sizes(&self) -> Result<Sizes> {
        let real = [
            self.cell_bytes,
            self.log_bytes,
            self.memstore_entry_bytes,
            self.writes_per_s,
        ];
        if real.iter().any(|number| !(*number > 0.0 && number.is_finite())) {
            return Err(Error::Usage(
                "bytes of an entry and writes in a second must be above 0".to_owned(),
            ));
        }
        if !(self.compaction_mb_per_s >= 0.0 && self.compaction_mb_per_s.is_finite()) {
            return Err(Error::Usage(
                "--compaction-mb-per-s must not be below 0".to_owned(),
            ));
        }
        let scaled = |number: u64, what| match u32::try_from(number / self.scale) {
            Ok(scaled) if scaled >= 64 => Ok(scaled),
            Ok(_) => Err(Error::Usage(format!("{what} is too small for this --scale"))),
            Err(_) => Err(Error::Usage(format!("{what} is too large for this --scale"))),
        };
        let flush_writes = (self.write_buffer_size as f64 / self.memstore_entry_bytes) as u64;
        Ok(Sizes {
            keys: scaled(self.keys, "--keys")?,
            flush_writes: scaled(flush_writes, "--write-buffer-size")?,
            scale: self.scale,
            user_bytes: f64::from(self.user_bytes),
            cell_bytes: self.cell_bytes,
            log_bytes: self.log_bytes,
            memstore_bytes: self.write_buffer_size,
            segment_bytes: self.wal_segment_bytes,
        })
    }

    fn workload(&self, sizes: &Sizes) -> Workload {
        let flush_seconds = f64::from(sizes.flush_writes) * self.scale as f64 / self.writes_per_s;
        let budget_bytes = self.compaction_mb_per_s * 1e6 * flush_seconds;
        Workload {
            distribution: match self.distribution {
                Keys::Uniform => Distribution::Uniform,
                Keys::Zipfian => Distribution::Zipfian,
                Keys::Sequential => Distribution::Sequential,
            },
            writes: self.writes / self.scale,
            budget_bytes: (budget_bytes > 0.0).then_some(budget_bytes),
            slots: self.slots.into(),
            seed: self.seed,
        }
    }
}

/// The engine's policy and the candidates.
fn policies(sizes: &Sizes) -> Vec<Box<dyn Policy>> {
    let by_dead = |least, files_max, partial| {
        Box::new(DeadShare {
            partitions: 32,
            least,
            files_max,
            partial,
            distinct: Distinct::new(sizes.keys),
        })
    };
    let engine_stripes = |count_max, mib: u64, overwritten| -> Box<dyn Policy> {
        Box::new(EngineStripes {
            limits: StripeLimits {
                bytes_min: mib << 20,
                count_max,
            },
            overwritten,
            distinct: Distinct::new(sizes.keys),
        })
    };
    vec![
        Box::new(Exploring),
        Box::new(Leveled {
            l0_files: 4,
            ratio: 10,
            base_bytes: 256 << 20,
            file_bytes: 64 << 20,
        }),
        Box::new(Lazy { runs: 4 }),
        Box::new(Lazy { runs: 8 }),
        Box::new(Stripes { stripes: 8 }),
        Box::new(Stripes { stripes: 32 }),
        engine_stripes(32, 64, 0.0),
        engine_stripes(32, 64, 0.15),
        engine_stripes(8, 64, 0.2),
        engine_stripes(16, 64, 0.2),
        engine_stripes(32, 64, 0.2),
        engine_stripes(64, 64, 0.2),
        engine_stripes(32, 64, 0.25),
        engine_stripes(32, 64, 0.3),
        by_dead(0.1, 10, false),
        by_dead(0.2, 20, false),
        by_dead(0.3, 40, false),
        by_dead(0.2, 20, true),
        by_dead(0.3, 40, true),
    ]
}

/// Simulates all policies and prints a table.
pub fn run(arguments: &Arguments) -> Result<()> {
    let sizes = arguments.sizes()?;
    let workload = arguments.workload(&sizes);
    let began = Instant::now();
    say!(
        "| policy | write amplification | space: end | mean | most | files a get | files a scan | writes waited |"
    );
    say!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for mut policy in policies(&sizes) {
        let figures = Simulation::new(sizes, workload, &mut *policy).run();
        say!("{}", row(&policy.to_string(), &figures));
    }
    note!("{:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// A line of the table.
fn row(name: &str, figures: &Figures) -> String {
    format!(
        "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} % |",
        figures.write_amplification,
        figures.space_end,
        figures.space_mean,
        figures.space_max,
        figures.files_per_get,
        figures.files_per_scan,
        figures.blocked * 100.0
    )
}
