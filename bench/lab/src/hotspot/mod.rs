//! `hotspot`: finds whether a row-key design makes a hot region, and the cost of its range reads.
//!
//! For each design, one after the other:
//!
//! 1. A table is created, split for the design.
//! 2. Rows in the order of time are written in batches, over several connections (`ingest`).
//! 3. Writes are counted by region and by server: by the server where it is Basalt, else here from the
//!    boundaries of the regions (`spread`).
//! 4. Memstores are flushed, so that reads find every design's rows in files.
//! 5. Single rows are read and compared with the written ones (`point_reads`).
//! 6. One hour or day is read through the scans that the design needs, and compared (`range_read`).
//! 7. The table is dropped, unless it is to be kept.
//!
//! Everything is the same for each design but the row keys, so differences in the report come from
//! these. Rows are written and read over either of HBase's Thrift interfaces.

pub(super) mod design_report;
mod ingest;
mod numbering;
mod point_reads;
mod range_read;
mod spread;
mod tables;

pub(super) use range_read::cells_differ;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use basalt_client::keys::MinuteKey;
use basalt_load::data::DataOptions;
use basalt_load::error::{Error, Result};
use basalt_load::load;
use basalt_load::load::pacing::Pace;
use basalt_load::report::{self, Head, MeasuredReport};
use basalt_load::say;
use basalt_load::session::Session;
use basalt_load::target::{Target, TargetOptions};
use basalt_load::time_text::minute_text;
use clap::ValueEnum;

use crate::designs::{Design, DesignName, DesignOptions};
use crate::hotspot::design_report::{DesignReport, Important, Report, RowsReport, Settings};
use crate::rows::{Rows, Synthetic};

/// The family that everything is written to.
pub(crate) const FAMILY: &str = "f";

/// How much is read back in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RangeLength {
    /// 60 minutes.
    Hour,
    /// 24 hours.
    Day,
}

impl RangeLength {
    fn minutes(self) -> u32 {
        match self {
            RangeLength::Hour => 60,
            RangeLength::Day => 24 * 60,
        }
    }

    fn name(self) -> &'static str {
        match self {
            RangeLength::Hour => "hour",
            RangeLength::Day => "day",
        }
    }
}

/// Compare row-key designs: ingest rows in the order of time into one table a design, read single rows, and
/// read one hour or day back in order.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    #[command(flatten)]
    pub(crate) data: DataOptions,
    /// Rows for each design: that many flights from the beginning of --input. Default: all of the file,
    /// or a million; with --duration, as many as there is time for.
    #[arg(long, visible_alias = "operations", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: Option<u64>,
    /// Longest time to write for each design, in seconds.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) duration: Option<u64>,
    /// Designs to compare, in this order.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "sequential,salted,hashed,reversed,reversed-timestamp,random,partitioned-id,minute"
    )]
    pub(crate) designs: Vec<DesignName>,
    #[command(flatten)]
    pub(crate) design: DesignOptions,
    /// Regions of each table.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) regions: u64,
    /// Connections that write at once.
    #[arg(long, visible_alias = "connections", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) threads: u64,
    /// Rows in one call.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) batch: u64,
    /// Rows to write in a second, all connections together (open loop). Default: as fast as the server
    /// answers (closed loop).
    #[arg(long, value_name = "ROWS_PER_S", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    /// Bytes of a synthetic row's value.
    #[arg(long, default_value_t = 100, conflicts_with = "input", value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    pub(crate) value_bytes: u64,
    /// Synthetic rows in a minute of their own time: 60 minutes of them are read back.
    #[arg(long, default_value_t = 60, conflicts_with = "input", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rows_per_minute: u32,
    /// Seed of synthetic values and of the choice of rows to read.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Single rows to read from each design's table, chosen at random.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) point_reads: u64,
    /// Range to read back in the order of time.
    #[arg(long, default_value = "hour")]
    pub(crate) range: RangeLength,
    /// How often it is read for each design.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) range_reads: u64,
    /// Properties that the advice at the end of the report is judged by.
    #[arg(long, value_delimiter = ',', default_value = "writes,range")]
    pub(crate) important: Vec<Important>,
    /// Sequence numbers that a task takes from the server's counter at a time, for the design `minute`. 0: no
    /// counter, each row has its place as number, as in the other designs; `verify` needs that.
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) sequence_block: u32,
    /// Tables are named so, with the design behind.
    #[arg(long, default_value = "bench_")]
    pub(crate) table_prefix: String,
    /// Leave the tables in place, for `verify` and other programs.
    #[arg(long)]
    pub(crate) keep_tables: bool,
    /// Drop tables of these names that exist already.
    #[arg(long)]
    pub(crate) replace_tables: bool,
    /// Where report.html, report.md and report.json go.
    #[arg(long, value_name = "DIR", default_value = "bench-report")]
    pub(crate) out: PathBuf,
}

/// Rows for each design when nothing else bounds them.
const SYNTHETIC_ROWS: u64 = 1_000_000;

/// Settings shared by all designs.
struct Run {
    arguments: Arguments,
    target: Target,
    /// For scans: see [`range_read::SCANS_MAX`].
    scanning: Target,
    rows: Arc<Rows>,
    /// Rows to write for each design; `u64::MAX` if only the time ends the run.
    row_count: u64,
    /// Minutes to read back.
    minutes: Range<u32>,
}

/// Runs the workload and writes the report.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.out.clone();
    report::create_dir(&out)?;
    let report = measure(arguments).await?;
    let files = report::write_all(
        &out,
        &report,
        &design_report::markdown(&report),
        &design_report::html(&report)?,
    )?;
    say!("{}", design_report::table(&report));
    say!("{files}");
    let different: Vec<_> = report
        .designs
        .iter()
        .filter_map(DesignReport::difference)
        .collect();
    if let Some(first) = different.first() {
        return Err(Error::Different(format!(
            "{} of {} designs did not return the rows that were written; {first}",
            different.len(),
            report.designs.len(),
        )));
    }
    Ok(())
}

/// Runs the workload.
pub(crate) async fn measure(arguments: Arguments) -> Result<Report> {
    let run = Run::prepare(arguments).await?;
    let head = Head::new("hotspot", &run.target, &run.arguments.target);
    let mut designs = Vec::new();
    for name in run.arguments.designs.clone() {
        designs.push(run.design(name).await?);
    }
    run.report(head, designs)
}

impl Run {
    async fn prepare(arguments: Arguments) -> Result<Run> {
        let connections = usize::try_from(arguments.threads).unwrap_or(usize::MAX);
        let target = Target::connect(&arguments.target, connections.saturating_add(1)).await?;
        let scanning = Target::connect(&arguments.target, range_read::SCANS_MAX).await?;
        let rows = if let Some(flights) = arguments.data.flights()? {
            flights.need(arguments.rows.unwrap_or_default())?;
            Rows::Flights(flights)
        } else {
            let unbounded = arguments.duration.is_some();
            let rows = arguments.rows.or((!unbounded).then_some(SYNTHETIC_ROWS));
            let value_bytes = usize::try_from(arguments.value_bytes).unwrap_or(usize::MAX);
            Rows::Synthetic(Synthetic::new(
                rows,
                arguments.rows_per_minute,
                value_bytes,
                arguments.seed,
            ))
        };
        let available = rows.len().unwrap_or(u64::MAX);
        let row_count = available.min(arguments.rows.unwrap_or(u64::MAX));
        let may_end_early = arguments.duration.is_some();
        let minutes = minutes_to_read(&rows, row_count, may_end_early, arguments.range);
        Ok(Run {
            arguments,
            target,
            scanning,
            rows: Arc::new(rows),
            row_count,
            minutes,
        })
    }

    /// All steps for one design.
    async fn design(&self, name: DesignName) -> Result<DesignReport> {
        let arguments = &self.arguments;
        let design = Arc::new(Design::new(name, arguments.design)?);
        let table_name = format!("{}{}", arguments.table_prefix, name.as_str());
        self.create_table(&table_name, &design).await?;
        let session = Session::on(&self.target, &table_name)?;
        let regions = Arc::new(self.region_map(&table_name).await?);
        let counter = self.create_counter(name).await?;

        let before = self.server_work().await?;
        let ingest = Arc::new(ingest::Ingest {
            session: session.clone(),
            design: Arc::clone(&design),
            rows: Arc::clone(&self.rows),
            row_count: self.row_count,
            regions: Arc::clone(&regions),
            batch: arguments.batch,
            counter,
        });
        let ingested = ingest::run(self.ingest_plan(name), &ingest).await?;
        let after = self.server_work().await?;
        let spread = self.spread(&table_name, &design, &regions, &ingested).await?;
        let work = before.zip(after).map(|(before, after)| after.since(before));

        self.flush(&table_name).await?;
        let numbering = Arc::new(ingested.numbering);
        let (point_reads, point_read_difference) = if ingested.rows_in_order == 0 {
            (None, None)
        } else {
            let reads = Arc::new(point_reads::PointReads {
                session,
                design: Arc::clone(&design),
                rows: Arc::clone(&self.rows),
                numbering: Arc::clone(&numbering),
                rows_in_order: ingested.rows_in_order,
                seed: arguments.seed,
            });
            let (measured, difference) = point_reads::run(self.point_read_plan(name), &reads).await?;
            (Some(measured), difference)
        };
        let range_read = range_read::Reading {
            target: &self.target,
            session: &Session::on(&self.scanning, &table_name)?,
            design: &design,
            rows: &self.rows,
            numbering: &numbering,
            rows_in_order: ingested.rows_in_order,
            minutes: self.minutes.clone(),
        };
        let range_read = range_read.run(arguments.range_reads).await?;
        if !arguments.keep_tables {
            self.drop_table(&table_name).await?;
        }
        if ingest.counter.is_some() {
            self.drop_table(&self.counter_table()).await?;
        }
        let measured = &ingested.measured;
        let reads = point_reads.as_ref();
        Ok(DesignReport {
            name: name.as_str(),
            table: table_name,
            row_key: design.layout(arguments.design),
            bought: String::new(),
            cost: String::new(),
            rows: measured.rows(),
            ingest_seconds: measured.elapsed.as_secs_f64(),
            ingest_ops_per_second: measured.per_second(measured.rows()),
            measured: MeasuredReport {
                errors: measured.failures.calls + reads.map_or(0, |reads| reads.failures.calls),
                ..MeasuredReport::new(measured)
            },
            rows_lost: ingested.rows_lost,
            sequence_increments: ingested.increments,
            spread,
            work,
            point_reads: reads.map_or(0, load::Measured::operations),
            point_reads_per_second: reads.map_or(0.0, |reads| reads.per_second(reads.operations())),
            point_read_latency_seconds: reads.map(|reads| reads.latencies().report()),
            point_read_difference,
            range_read,
        })
    }

    fn ingest_plan(&self, name: DesignName) -> load::Plan {
        let arguments = &self.arguments;
        load::Plan {
            label: name.as_str().to_owned(),
            connections: arguments.threads,
            pace: arguments.rate.map_or(Pace::Closed, |rate| Pace::Open {
                requests_per_s: rate as f64 / arguments.batch as f64,
            }),
            operations: (self.row_count < u64::MAX).then(|| self.row_count.div_ceil(arguments.batch)),
            rows_per_operation: arguments.batch,
            duration: arguments.duration.map(Duration::from_secs),
            warm_up: Duration::ZERO,
        }
    }

    fn point_read_plan(&self, name: DesignName) -> load::Plan {
        load::Plan {
            label: format!("{}, gets", name.as_str()),
            connections: self.arguments.threads,
            pace: Pace::Closed,
            operations: Some(self.arguments.point_reads),
            rows_per_operation: 1,
            duration: None,
            warm_up: Duration::ZERO,
        }
    }

    fn report(&self, head: Head, mut designs: Vec<DesignReport>) -> Result<Report> {
        let arguments = &self.arguments;
        design_report::tell(&mut designs, arguments.range.name());
        let mut report = Report {
            head,
            result: String::new(),
            advice: String::new(),
            rehearse: String::new(),
            important: arguments.important.clone(),
            settings: Settings {
                api: self.target.api.name(),
                rows: match (&arguments.data.input, self.rows.len()) {
                    (Some(path), Some(flights)) => RowsReport::File {
                        path: path.display().to_string(),
                        flights,
                        rows: self.row_count,
                    },
                    (_, rows) => RowsReport::Synthetic {
                        rows,
                        value_bytes: arguments.value_bytes,
                        rows_per_minute: arguments.rows_per_minute,
                        seed: arguments.seed,
                    },
                },
                regions: arguments.regions,
                connections: arguments.threads,
                batch_rows: arguments.batch,
                rate_rows_per_second: arguments.rate,
                duration_seconds: arguments.duration,
                buckets: arguments.design.buckets,
                hash_bytes: arguments.design.hash_bytes,
                sequence_block: arguments.sequence_block,
                range: arguments.range.name(),
                range_from: minute_text(self.minutes.start)?,
                range_to: minute_text(self.minutes.end)?,
            },
            designs,
        };
        design_report::conclude(&mut report, self.target.is_basalt);
        Ok(report)
    }
}

/// A whole hour or day in the middle of the rows; the first one if it is not known how many there will be.
fn minutes_to_read(rows: &Rows, row_count: u64, may_end_early: bool, range: RangeLength) -> Range<u32> {
    let middle = if may_end_early { 0 } else { row_count / 2 };
    let MinuteKey { minute, .. } = rows.key(middle);
    let start = minute - minute % range.minutes();
    start..start + range.minutes()
}
