//! `hotspot`: does a row-key design make a hot region, and what do its range reads cost?
//!
//! For each design, one after the other:
//!
//! 1. A table is created, split for the design.
//! 2. Rows in the order of time are written by `putMultiple`, in batches, over several connections (`ingest`).
//! 3. Writes are counted by region: by the server where it is Basalt, else here from the boundaries of the regions.
//! 4. One hour is read through the scans that the design needs, and compared with what was written (`range_read`).
//! 5. The table is dropped, unless it is to be kept.
//!
//! Everything is the same for each design but the row keys, so differences in the report are theirs.

mod ingest;
mod range_read;

pub(crate) use range_read::cells_differ;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use basalt_client::{Client, FamilySchema, Table, TableSchema};

use crate::designs::{Design, DesignName, DesignOptions, minute_text};
use crate::error::{During, Error, Result};
use crate::flights::Flights;
use crate::pacing::Pace;
use crate::region_load::{RegionMap, Unevenness};
use crate::report::hotspot::{
    DesignReport, RegionLoad, RegionWrites, Report, RowsReport, ServerWork, Settings,
};
use crate::report::{self, REPORT_FORMAT};
use crate::rows::{Rows, Synthetic};
use crate::target::{Target, TargetOptions, single_connections};

/// The family that everything is written to.
pub(crate) const FAMILY: &str = "f";

/// Compare row-key designs: ingest rows in the order of time into one table a design, and read one hour back.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    /// Flights to write (flights-3m.parquet of the npm package vega-datasets), instead of synthetic rows.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Rows for each design: the first so many of the file. Default: all of the file, or a million; with --duration,
    /// as many as there is time for.
    #[arg(long, visible_alias = "operations", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: Option<u64>,
    /// Longest time to write for each design, in seconds.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) duration: Option<u64>,
    /// Designs to compare, in this order.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "sequential,salted,hashed,reversed"
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
    /// Rows in one putMultiple.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) batch: u64,
    /// Rows to write in a second, all connections together (open loop). Default: as fast as the server answers
    /// (closed loop).
    #[arg(long, value_name = "ROWS_PER_S", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    /// Bytes of a synthetic row's value.
    #[arg(long, default_value_t = 100, conflicts_with = "input", value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    pub(crate) value_bytes: u64,
    /// Synthetic rows in a minute of their own time: 60 minutes of them are read back.
    #[arg(long, default_value_t = 60, conflicts_with = "input", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rows_per_minute: u32,
    /// Seed of synthetic values.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How often the hour is read for each design.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) range_reads: u64,
    /// Tables are named so, with the design behind.
    #[arg(long, default_value = "bench_")]
    pub(crate) table_prefix: String,
    /// Leave the tables in place, for `verify` and other programs.
    #[arg(long)]
    pub(crate) keep_tables: bool,
    /// Drop tables of these names that exist already.
    #[arg(long)]
    pub(crate) replace_tables: bool,
    /// Where hotspot.json and hotspot.html go.
    #[arg(long, value_name = "DIR", default_value = "bench-report")]
    pub(crate) out: PathBuf,
}

/// Rows for each design when nothing else bounds them.
const SYNTHETIC_ROWS: u64 = 1_000_000;

/// What all designs have in common.
struct Run {
    arguments: Arguments,
    target: Target,
    rows: Arc<Rows>,
    /// Rows to write for each design; `u64::MAX` if only the time ends the run.
    row_count: u64,
    /// The hour to read back.
    hour: Range<u32>,
}

/// Runs the workload and writes the report.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.out.clone();
    report::create_dir(&out)?;
    let started = SystemTime::now();
    let run = Run::prepare(arguments).await?;
    let mut designs = Vec::new();
    for name in run.arguments.designs.clone() {
        designs.push(run.design(name).await?);
    }
    let report = run.report(started, designs)?;
    let json = report::write_json(&out.join("hotspot.json"), &report)?;
    let html = out.join("hotspot.html");
    report::write_file(&html, &crate::report::hotspot::html(&report)?)?;
    println!("{}", crate::report::hotspot::table(&report));
    println!("{}\n{}", json.display(), html.display());
    let different: Vec<_> = report
        .designs
        .iter()
        .filter(|design| !design.range_read.equal)
        .collect();
    if let Some(design) = different.first() {
        return Err(Error::Different(format!(
            "{} of {} designs did not return the rows that were written; {}: {}",
            different.len(),
            report.designs.len(),
            design.design,
            design
                .range_read
                .difference
                .as_deref()
                .unwrap_or("no reason known"),
        )));
    }
    Ok(())
}

impl Run {
    async fn prepare(arguments: Arguments) -> Result<Run> {
        let connections = usize::try_from(arguments.threads)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let target = Target::connect(&arguments.target, connections).await?;
        let rows = if let Some(path) = &arguments.input {
            Rows::Flights(Flights::read(path)?)
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
        if row_count == 0 {
            return Err(Error::Usage(
                "there is no row to write: the file is empty".to_owned(),
            ));
        }
        let hour = hour_to_read(&rows, row_count, arguments.duration.is_some());
        Ok(Run {
            arguments,
            target,
            rows: Arc::new(rows),
            row_count,
            hour,
        })
    }

    /// All steps for one design.
    async fn design(&self, name: DesignName) -> Result<DesignReport> {
        let arguments = &self.arguments;
        let design = Arc::new(Design::new(name, arguments.design)?);
        let table_name = format!("{}{}", arguments.table_prefix, name.as_str());
        self.create_table(&table_name, &design).await?;
        let during = |what: &str| format!("{what} of table {table_name}");
        let table = self.target.client.table(&table_name).during(|| during("name"))?;
        let regions = table.regions().await.during(|| during("regions"))?;
        let regions = regions
            .into_iter()
            .map(|region| region.start_key.to_vec())
            .collect();
        let regions = Arc::new(RegionMap::new(regions));

        let before = self.server_work().await?;
        let plan = ingest::Plan {
            label: name.as_str(),
            table: table.clone(),
            design: Arc::clone(&design),
            rows: Arc::clone(&self.rows),
            row_count: self.row_count,
            regions: Arc::clone(&regions),
            connections: arguments.threads,
            batch: arguments.batch,
            pace: arguments.rate.map_or(Pace::Closed, |rate| Pace::Open {
                requests_per_s: rate as f64 / arguments.batch as f64,
            }),
            deadline: arguments.duration.map(Duration::from_secs),
        };
        let ingested = ingest::run(plan).await?;
        let after = self.server_work().await?;
        let region_writes = self.region_writes(&table_name, &regions, &ingested).await?;
        let rows_in_order = ingested.rows_in_order;
        let range_read = range_read::run(
            &self.reading_handles(&table_name)?,
            &design,
            &self.rows,
            rows_in_order,
            self.hour.clone(),
            arguments.range_reads,
        )
        .await?;
        if !arguments.keep_tables {
            self.drop_table(&table_name).await?;
        }
        Ok(DesignReport {
            design: name.as_str(),
            table: table_name,
            row_key: design.layout(arguments.design),
            rows: ingested.rows,
            seconds: ingested.elapsed.as_secs_f64(),
            rows_per_s: ingested.rows_per_s(),
            batch_latency: ingested.latencies.report(),
            errors: ingested.errors,
            rows_lost: ingested.rows_lost,
            first_error: ingested.first_error,
            timeline: ingested.timeline.report(),
            region_writes,
            server_work: before.zip(after).map(|(before, after)| after.since(before)),
            range_read,
        })
    }

    /// Handles of the table over as many connections as write to it.
    fn reading_handles(&self, name: &str) -> Result<Vec<Table>> {
        let connections = usize::try_from(self.arguments.threads).unwrap_or(usize::MAX);
        let clients = single_connections(&self.arguments.target, connections)?;
        let table = |client: &Client| client.table(name).during(|| format!("name of table {name}"));
        clients.iter().map(table).collect()
    }

    async fn create_table(&self, name: &str, design: &Design) -> Result<()> {
        let client = &self.target.client;
        let during = || format!("creating table {name}");
        if client.table_exists(name).await.during(during)? {
            if !self.arguments.replace_tables {
                return Err(Error::Usage(format!(
                    "table {name} exists already: give --replace-tables to drop it, or another --table-prefix"
                )));
            }
            self.drop_table(name).await?;
        }
        let regions = usize::try_from(self.arguments.regions).unwrap_or(usize::MAX);
        // Rows without end have no last minute; a day stands for them.
        let bounded = self.row_count.min(
            self.rows
                .len()
                .unwrap_or(u64::from(self.arguments.rows_per_minute) * 1_440),
        );
        let splits = design.split_points(regions, &self.rows.minutes(bounded))?;
        let schema = TableSchema::new(name)
            .during(during)?
            .family(FamilySchema::new(FAMILY));
        client.create_table_split(schema, splits).await.during(during)
    }

    async fn drop_table(&self, name: &str) -> Result<()> {
        let client = &self.target.client;
        let during = || format!("dropping table {name}");
        if client.is_table_enabled(name).await.during(during)? {
            client.disable_table(name).await.during(during)?;
        }
        client.drop_table(name).await.during(during)
    }

    /// What the server has done in the background since it started; `None` where it does not say.
    async fn server_work(&self) -> Result<Option<ServerWork>> {
        if !self.target.is_basalt {
            return Ok(None);
        }
        let status = self
            .target
            .admin
            .status()
            .await
            .during(|| "status of the server".to_owned())?;
        Ok(Some(ServerWork {
            flushes: status.flushes,
            compactions: status.compactions,
        }))
    }

    /// Writes by region, as the server counted them; as counted here if it does not count, or if regions were split or
    /// merged on the way, since theirs begin at zero then.
    async fn region_writes(
        &self,
        table: &str,
        regions: &RegionMap,
        ingested: &ingest::Ingested,
    ) -> Result<RegionWrites> {
        let mut counts = ingested.region_rows.clone();
        let mut source = "client";
        if self.target.is_basalt {
            let metrics = self.target.admin.regions(Some(table)).await;
            let metrics = metrics.during(|| format!("region metrics of table {table}"))?;
            let same = metrics.iter().map(|region| region.start_key.as_ref());
            if same.eq(regions.starts().iter().map(Vec::as_slice)) {
                source = "server";
                counts = metrics
                    .iter()
                    .map(|region| u64::try_from(region.write_requests).unwrap_or_default())
                    .collect();
            }
        }
        let load = |(start, writes): (&Vec<u8>, &u64)| RegionLoad {
            start_key: start.escape_ascii().to_string(),
            writes: *writes,
        };
        Ok(RegionWrites {
            source,
            unevenness: Unevenness::of(&counts),
            busiest_share: ingested.timeline.busiest_share(),
            regions: regions.starts().iter().zip(&counts).map(load).collect(),
        })
    }

    fn report(&self, started: SystemTime, designs: Vec<DesignReport>) -> Result<Report> {
        let arguments = &self.arguments;
        let started_ms = started
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        Ok(Report {
            format: REPORT_FORMAT,
            workload: "hotspot",
            tool: concat!("basalt-bench ", env!("CARGO_PKG_VERSION")),
            server: self.target.name.clone(),
            target: arguments.target.target.clone(),
            started_ms,
            settings: Settings {
                rows: match &arguments.input {
                    Some(path) => RowsReport::File {
                        path: path.display().to_string(),
                        rows: self.row_count,
                    },
                    None => RowsReport::Synthetic {
                        rows: self.rows.len(),
                        value_bytes: arguments.value_bytes,
                        rows_per_minute: arguments.rows_per_minute,
                        seed: arguments.seed,
                    },
                },
                regions: arguments.regions,
                connections: arguments.threads,
                batch_rows: arguments.batch,
                rate_rows_per_s: arguments.rate,
                duration_s: arguments.duration,
                buckets: arguments.design.buckets,
                hash_bytes: arguments.design.hash_bytes,
                hour_from: minute_text(self.hour.start)?,
                hour_to: minute_text(self.hour.end)?,
            },
            designs,
        })
    }
}

/// A whole hour in the middle of the rows; the first one if it is not known how many there will be.
fn hour_to_read(rows: &Rows, row_count: u64, may_end_early: bool) -> Range<u32> {
    let middle = if may_end_early { 0 } else { row_count / 2 };
    let minute = rows.key(middle).minute;
    let hour = minute - minute % 60;
    hour..hour + 60
}
