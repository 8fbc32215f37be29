//! `family`: costs and benefits of the settings of a column family.
//!
//! Each part makes one table for each setting, fills all of them with the same rows, brings them to
//! rest, and asks all of them the same questions. The server's counters (blocks requested, misses,
//! files, bytes) decide most claims, because counts do not depend on the machine's other load;
//! times are medians.
//!
//! Rows have even numbers as keys; odd numbers are misses between them.

mod block_size;
mod bloom;
mod compression;
mod families;
mod in_memory;
mod names;
mod reads;
mod ttl;
mod versions;

use basalt_load::error::Result;
use basalt_load::report::{self, Head};
use clap::ValueEnum;

use crate::claims::{self, LabReport, PartReport};
use crate::{Lab, LabOptions};

/// The family that rows are written to.
const FAMILY: &str = "f";
/// The qualifier of rows with one column.
const QUALIFIER: &str = "v";

/// The parts by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Small blocks against large ones.
    BlockSize,
    /// Bloom filters of nothing, of rows and of columns.
    Bloom,
    /// Protection from a scan that fills the cache.
    InMemory,
    /// A time to live against none.
    Ttl,
    /// One version against five.
    Versions,
    /// Compression algorithms.
    Compression,
    /// Long names of families and qualifiers against short ones.
    Names,
    /// One family against three.
    Families,
}

/// Put claims about the settings of column families to the test: block size, bloom filters, IN_MEMORY, TTL,
/// VERSIONS, compression, names, and the number of families.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    lab: LabOptions,
    /// Parts to test, in this order.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "block-size,bloom,in-memory,ttl,versions,compression,names,families"
    )]
    parts: Vec<Part>,
    /// Rows of a table; parts that write several times over write a quarter of them.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(40..=1_000_000_000))]
    rows: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    value_bytes: u32,
    /// Single rows to read for each figure.
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..))]
    reads: u64,
    /// Range reads for each figure.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    scans: u64,
    /// Rows of a range read.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    scan_rows: u32,
    /// Time to live to test, in seconds.
    #[arg(long, default_value_t = 3, value_name = "S", value_parser = clap::value_parser!(u16).range(1..=3_600))]
    ttl: u16,
    /// MiB that the scan of the part in-memory reads to fill the cache. Default: a fifth more than the
    /// server's block cache, at most 1536.
    #[arg(long, value_name = "MIB")]
    pollution_mib: Option<u64>,
}

/// A run: its parts are methods, one file each.
struct Run {
    lab: Lab,
    arguments: Arguments,
}

/// Runs the parts and writes the report.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.lab.load.out.clone();
    report::create_dir(&out)?;
    claims::write(&out, &measure(arguments).await?)
}

/// Runs the parts.
pub(crate) async fn measure(arguments: Arguments) -> Result<LabReport> {
    let lab = Lab::connect(&arguments.lab).await?;
    let head = Head::new("family", &lab.target, &arguments.lab.load.target);
    let mut report = LabReport::new(head, "What do a column family's settings buy?");
    lab.describe(&mut report);
    report.set("rows", arguments.rows);
    report.set("value-bytes", arguments.value_bytes);
    report.set("reads", arguments.reads);
    report.set("scans", arguments.scans);
    report.set("scan-rows", arguments.scan_rows);
    let run = Run { lab, arguments };
    for part in run.arguments.parts.clone() {
        report.parts.push(run.part(part).await?);
    }
    Ok(report)
}

impl Run {
    async fn part(&self, part: Part) -> Result<PartReport> {
        match part {
            Part::BlockSize => self.block_size().await,
            Part::Bloom => self.bloom().await,
            Part::InMemory => self.in_memory().await,
            Part::Ttl => self.ttl().await,
            Part::Versions => self.versions().await,
            Part::Compression => self.compression().await,
            Part::Names => self.names().await,
            Part::Families => self.families().await,
        }
    }

    /// Rows of parts that write them several times over.
    fn few_rows(&self) -> u64 {
        self.arguments.rows / 4
    }
}
