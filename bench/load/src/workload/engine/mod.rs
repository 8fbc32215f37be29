//! `engine`: RocksDB's `db_bench` for Basalt's storage engine, in this process and without a network.
//!
//! `Store` is the face of an engine under test: Basalt's is `basalt`, others are in `bench/rivals`.
//! Benchmarks and options have db_bench's names (with `-` or `_`), meanings and defaults, so that the two can
//! be run side by side; a fill begins with an empty database, and every thread does `--num` operations.
//!
//! | benchmark | operations |
//! | --- | --- |
//! | `fillseq`, `fillrandom` | write into an empty database, in key order or not; WAL without sync |
//! | `fillsync` | `fillrandom` with a sync for each write, over a thousandth of the keys |
//! | `overwrite` | random writes into the present keys |
//! | `readrandom`, `readmissing` | get a random key; one that is not there |
//! | `multireadrandom` | get `--batch-size` random keys together; each key is an operation, each batch a latency |
//! | `seekrandom` | open a scan at a random key and read `--seek-nexts` rows behind the first |
//! | `readseq`, `readreverse` | one scan of `--reads` rows: forward; backward from the last key |
//! | `deleteseq` | delete every key, in key order |
//! | `readwhilewriting` | `readrandom`, while one more thread writes; only reads are counted |
//! | `compact` | write memstores to disk and merge all files into one |
//!
//! Where db_bench lets a writer wait until memory is free, the engine refuses the write; it is tried again
//! after a moment, as a client does, and the line of the benchmark says how often.

mod basalt;
mod database;
mod keys;
mod outcome;
mod run;
mod standing;
mod store;

use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use clap::{ArgAction, ValueEnum};

use crate::error::{Error, Result};
use crate::load::choose::Distribution;
use crate::report;
use basalt::Basalt;
use database::Database;
use outcome::EngineReport;

pub use keys::{KEY_BYTES, Key};
pub use standing::Standing;
pub use store::{From, Rows, Session, Store};

/// Run db_bench's benchmarks on the storage engine.
#[derive(Clone, Debug, clap::Args)]
pub struct BasaltArguments {
    #[command(flatten)]
    pub(crate) common: Arguments,
    /// How cells lie in a block. RocksDB's blocks are most like those of `prefix`.
    #[arg(long, default_value = "row-index")]
    pub(crate) encoding: Encoding,
    /// Threads that read blocks for multireadrandom. 0: its gets run one after the other, each with its
    /// own reads.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(..=1024))]
    pub(crate) read_threads: u32,
}

/// Options of every engine.
#[derive(Clone, Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches of a command line, independent of each other"
)]
pub struct Arguments {
    /// Benchmarks, in this order.
    #[arg(value_name = "BENCHMARKS", value_delimiter = ',')]
    pub names: Vec<Benchmark>,
    /// Benchmarks, under db_bench's name of the option.
    #[arg(long, value_name = "BENCHMARKS", value_delimiter = ',')]
    pub benchmarks: Vec<Benchmark>,
    /// Directory of the database. Fills empty it first, so it must be new, empty, or made by this tool.
    #[arg(long, value_name = "DIR")]
    pub db: PathBuf,
    /// Keys in the database.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub num: u64,
    /// Bytes of a value.
    #[arg(long, alias = "value_size", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub value_size: u32,
    /// Threads; each does all the operations.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Bytes of the block cache.
    #[arg(long, alias = "cache_size", default_value_t = 8 << 20, value_name = "BYTES")]
    pub cache_size: u64,
    /// Keep the content of the database; fills are left out then.
    #[arg(long, alias = "use_existing_db", num_args = 0..=1, default_value = "false", default_missing_value = "true",
        action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub use_existing_db: bool,
    /// Read rows past the system's page cache.
    #[arg(long, alias = "use_direct_reads", num_args = 0..=1, default_value = "false", default_missing_value = "true",
        action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub use_direct_reads: bool,
    /// Compression of blocks.
    #[arg(long, alias = "compression_type", default_value = "none")]
    pub compression: Compression,
    /// Size of compressed values, as a share of the plain size.
    #[arg(long, alias = "compression_ratio", default_value_t = 0.5, value_parser = ratio)]
    pub compression_ratio: f64,
    /// Sync the WAL after each write.
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", action = ArgAction::Set,
        value_parser = BoolishValueParser::new())]
    pub sync: bool,
    /// Reads of each thread. Default: --num.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: Option<u64>,
    /// Writes of each thread. Default: --num.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub writes: Option<u64>,
    /// Keys that fills, overwrite and multireadrandom write or get together.
    #[arg(long, alias = "batch_size", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch_size: u32,
    /// Seconds that each benchmark runs instead of a number of operations; for benchmarks in random order.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub duration: u64,
    /// Seed of keys and values.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// 0: no bloom filter. 10: one for rows, whose error rate of 1 % is that of 10 bits a key. -1: the
    /// default, 10.
    #[arg(long, alias = "bloom_bits", default_value_t = -1, allow_negative_numbers = true, value_parser = bloom_bits)]
    pub bloom_bits: i32,
    /// Bytes of a block before compression. 0: the engine's default of 64 KiB.
    #[arg(long, alias = "block_size", default_value_t = 0)]
    pub block_size: u32,
    /// Bytes of a memstore that are flushed together.
    #[arg(long, alias = "write_buffer_size", default_value_t = 64 << 20, value_parser = clap::value_parser!(u64).range(1 << 16..))]
    pub write_buffer_size: u64,
    /// No compaction but the one of `compact`.
    #[arg(long, alias = "disable_auto_compactions", num_args = 0..=1, default_value = "false", default_missing_value = "true",
        action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub disable_auto_compactions: bool,
    /// Rows that seekrandom reads behind the first.
    #[arg(long, alias = "seek_nexts", default_value_t = 0)]
    pub seek_nexts: u32,
    /// Bytes that the writer of readwhilewriting writes in a second. 0: as fast as it can.
    #[arg(long, alias = "benchmark_write_rate_limit", default_value_t = 0)]
    pub benchmark_write_rate_limit: u64,
    /// Which keys are read in random order. db_bench has only `uniform`.
    #[arg(long, default_value = "uniform")]
    pub distribution: Distribution,
    /// Measure every operation and print percentiles; engine.json has the rate over time too.
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", action = ArgAction::Set,
        value_parser = BoolishValueParser::new())]
    pub histogram: bool,
    /// Where engine.json goes, if it is wanted.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The benchmarks, by db_bench's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum Benchmark {
    /// Write in key order.
    FillSeq,
    /// Write in random order.
    FillRandom,
    /// Write in random order, each with a sync.
    FillSync,
    /// Write over keys that are there.
    Overwrite,
    /// Get keys.
    ReadRandom,
    /// Get keys that are not there.
    ReadMissing,
    /// Get keys together.
    MultiReadRandom,
    /// Open scans.
    SeekRandom,
    /// Scan forward.
    ReadSeq,
    /// Scan backward.
    ReadReverse,
    /// Delete in key order.
    DeleteSeq,
    /// Get keys beside a writer.
    ReadWhileWriting,
    /// Merge all files.
    Compact,
}

impl Benchmark {
    /// db_bench's name.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::FillSeq => "fillseq",
            Benchmark::FillRandom => "fillrandom",
            Benchmark::FillSync => "fillsync",
            Benchmark::Overwrite => "overwrite",
            Benchmark::ReadRandom => "readrandom",
            Benchmark::ReadMissing => "readmissing",
            Benchmark::MultiReadRandom => "multireadrandom",
            Benchmark::SeekRandom => "seekrandom",
            Benchmark::ReadSeq => "readseq",
            Benchmark::ReadReverse => "readreverse",
            Benchmark::DeleteSeq => "deleteseq",
            Benchmark::ReadWhileWriting => "readwhilewriting",
            Benchmark::Compact => "compact",
        }
    }

    /// Whether it begins with an empty database.
    fn is_fill(self) -> bool {
        matches!(
            self,
            Benchmark::FillSeq | Benchmark::FillRandom | Benchmark::FillSync
        )
    }
}

/// Compression of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// Blocks as they are.
    None,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// HBase's name.
    fn as_attribute(self) -> &'static str {
        match self {
            Compression::None => "NONE",
            Compression::Snappy => "SNAPPY",
            Compression::Lz4 => "LZ4",
            Compression::Zstd => "ZSTD",
        }
    }
}

/// How cells lie in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encoding {
    /// Whole.
    None,
    /// Without the part that a key shares with the one before.
    Prefix,
    /// As differences of all key parts.
    Diff,
    /// As differences that are faster to read.
    FastDiff,
    /// Whole, with an index of the rows in the block: the engine's default.
    RowIndex,
}

impl Encoding {
    /// HBase's name.
    fn as_attribute(self) -> &'static str {
        match self {
            Encoding::None => "NONE",
            Encoding::Prefix => "PREFIX",
            Encoding::Diff => "DIFF",
            Encoding::FastDiff => "FAST_DIFF",
            Encoding::RowIndex => "ROW_INDEX_V1",
        }
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if ratio > 0.0 && ratio <= 1.0 => Ok(ratio),
        _ => Err("must be above 0 and at most 1".to_owned()),
    }
}

fn bloom_bits(text: &str) -> Result<i32, String> {
    match text.parse() {
        Ok(bits @ (-1 | 0 | 10)) => Ok(bits),
        _ => Err("must be 0, 10 or -1: the error rate of HBase's filters is fixed".to_owned()),
    }
}

/// The engine under test, as reports name it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// How cells lie in a block, if the engine has a choice.
    pub encoding: Option<&'static str>,
}

/// Runs the benchmarks on Basalt's engine.
pub fn run_basalt(arguments: &BasaltArguments) -> Result<()> {
    let subject = Subject {
        name: "Basalt",
        version: env!("CARGO_PKG_VERSION").to_owned(),
        encoding: Some(arguments.encoding.as_attribute()),
    };
    run(&subject, &arguments.common, |dir| Basalt::open(dir, arguments))
}

/// Runs the benchmarks on the engine whose database `open` opens in a directory, and prints a line for each.
pub fn run<S: Store>(
    subject: &Subject,
    arguments: &Arguments,
    open: impl Fn(&Path) -> Result<S>,
) -> Result<()> {
    let benchmarks: Vec<Benchmark> = arguments
        .names
        .iter()
        .chain(&arguments.benchmarks)
        .copied()
        .collect();
    if benchmarks.is_empty() {
        return Err(Error::Usage("no benchmark was named; see --help".to_owned()));
    }
    if let Some(out) = &arguments.out {
        report::create_dir(out)?;
    }
    print_header(subject, arguments)?;
    let mut database = None;
    let mut outcomes = Vec::new();
    let mut threads_before = 0;
    for benchmark in benchmarks {
        if benchmark.is_fill() && arguments.use_existing_db {
            say!("{:<12} : skipped (--use-existing-db is true)", benchmark.name());
            continue;
        }
        let mut current = match database.take() {
            Some(current) => current,
            None => Database::open(&arguments.db, &open)?,
        };
        if benchmark.is_fill() {
            current = current.emptied(&open)?;
        }
        let outcome = run::run(benchmark, arguments, &current, threads_before)?;
        // One more for the writer that some benchmarks have.
        threads_before += u64::from(arguments.threads) + 1;
        say!("{}", outcome.line());
        if arguments.histogram {
            say!("{}", outcome.histogram_text());
        }
        outcomes.push(outcome.report());
        database = Some(current);
    }
    if let Some(database) = database {
        database.close()?;
    }
    if let Some(out) = &arguments.out {
        let report = EngineReport {
            format: report::REPORT_FORMAT,
            workload: "engine",
            tool: concat!("basalt-bench ", env!("CARGO_PKG_VERSION")),
            engine: subject.name,
            engine_version: &subject.version,
            num: arguments.num,
            value_bytes: arguments.value_size,
            threads: arguments.threads,
            cache_bytes: arguments.cache_size,
            compression: arguments.compression.as_attribute(),
            encoding: subject.encoding,
            benchmarks: outcomes,
        };
        say!(
            "{}",
            report::write_json(&out.join("engine.json"), &report)?.display()
        );
    }
    Ok(())
}

fn print_header(subject: &Subject, arguments: &Arguments) -> Result<()> {
    let pair = f64::from(arguments.value_size) + KEY_BYTES as f64;
    say!("{:<12}version {}", format!("{}:", subject.name), subject.version);
    say!("Keys:       {} bytes each", KEY_BYTES);
    say!("Values:     {} bytes each", arguments.value_size);
    say!("Entries:    {}", arguments.num);
    say!(
        "RawSize:    {:.1} MB (estimated)",
        pair * arguments.num as f64 / f64::from(1 << 20)
    );
    say!("Compression: {}", arguments.compression.as_attribute());
    if let Some(encoding) = subject.encoding {
        say!("Encoding:   {encoding}");
    }
    say!("DB path:    [{}]", arguments.db.display());
    say!("------------------------------------------------");
    Ok(())
}
