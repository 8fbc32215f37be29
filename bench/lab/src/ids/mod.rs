//! `ids`: generators of unique ids as row keys, side by side.
//!
//! For each id, one after the other:
//!
//! 1. A table is created. Where ids are spread, it is split evenly over them; where they follow time, as
//!    their past would have split it, so that new rows go where they would go in a table that has lived for a
//!    while.
//! 2. Rows with the ids as keys are written in batches, in the order in which the ids were made: one small
//!    value each, or the columns of a flight.
//! 3. The table is flushed and compacted into one file a region, and its files are measured, where the server
//!    says.
//! 4. All rows are counted by a scan: an id that was made twice would be missing.
//!
//! Ids are made for a clock of the run's own, which advances by a millisecond after a fixed number
//! of ids, and for several machines in turn. So they are equal in each run, and as dense as under
//! real load.

mod generators;
mod operations;

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_client::FamilySchema;
use basalt_client::admin::Compaction;
use basalt_load::error::{During, Error, Result};
use basalt_load::load;
use basalt_load::load::options::LoadOptions;
use basalt_load::report::load::{LoadReport, PhaseReport};
use basalt_load::report::{self, Head};
use basalt_load::session::{RowScan, Session};
use basalt_load::tables::Tables;
use basalt_load::target::Target;

use crate::region_load::{RegionMap, Unevenness};
use generators::{Clock, IdKind};
use operations::{Contents, Writes};

/// The family that everything is written to.
const FAMILY: &str = "f";
/// Rows fetched by one call of the scan that counts.
const ROWS_PER_FETCH: i32 = 1_000;

/// Compare generators of unique ids as row keys.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    load: LoadOptions,
    /// Ids to compare, in this order.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "uuid4,uuid7,snowflake,objectid,partitioned-id,minute"
    )]
    ids: Vec<IdKind>,
    /// Rows for each: that many flights from the beginning of --input.
    #[arg(long, visible_alias = "operations", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rows: u64,
    /// Rows in one putMultiple.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    batch: u64,
    /// Bytes of a generated value.
    #[arg(long, default_value_t = 20, conflicts_with = "input", value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    value_bytes: u32,
    /// Regions of each table.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=60))]
    regions: u32,
    #[command(flatten)]
    clock: Clock,
    /// Tables are named so, with the id behind.
    #[arg(long, default_value = "ids_")]
    table_prefix: String,
    /// Leave the tables in place.
    #[arg(long)]
    keep_tables: bool,
    /// Drop tables of these names that exist already.
    #[arg(long)]
    replace_tables: bool,
}

/// Runs all ids and writes the report.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.load.out.clone();
    report::create_dir(&out)?;
    report::load::write(&out, &measure(arguments).await?)
}

/// Runs all ids.
pub(crate) async fn measure(arguments: Arguments) -> Result<LoadReport> {
    arguments.clock.check(arguments.rows)?;
    let flights = arguments.load.data.flights()?;
    if let Some(flights) = &flights {
        flights.need(arguments.rows)?;
    }
    let target = Target::connect(&arguments.load.target, 1).await?;
    let mut report = LoadReport::new(Head::new("ids", &target, &arguments.load.target));
    report.set("api", arguments.load.target.api.name());
    report.set("pace", arguments.load.pace_text());
    report.set("connections", arguments.load.threads);
    report.set("rows", arguments.rows);
    report.set("batch", arguments.batch);
    report.set("data", arguments.load.data.name(flights.as_ref()));
    if flights.is_none() {
        report.set("value-bytes", arguments.value_bytes);
    }
    report.set("regions", arguments.regions);
    report.set("ids-per-ms", arguments.clock.ids_per_ms);
    report.set("machines", arguments.clock.machines);
    report.set("seed", arguments.load.seed);
    let contents = Contents::new(&arguments, flights);
    for kind in arguments.ids.clone() {
        report
            .phases
            .push(one(&arguments, &target, &contents, kind).await?);
    }
    Ok(report)
}

/// All steps for one id.
async fn one(
    arguments: &Arguments,
    target: &Target,
    contents: &Contents,
    kind: IdKind,
) -> Result<PhaseReport> {
    let table = format!("{}{}", arguments.table_prefix, kind.name());
    let tables = Tables {
        target,
        replace: arguments.replace_tables,
    };
    let splits = kind.split_points(arguments.clock, arguments.regions, arguments.rows)?;
    let mut starts = splits.clone();
    starts.push(Vec::new());
    tables
        .create(&table, vec![FamilySchema::new(FAMILY)], splits)
        .await?;
    let writes = Arc::new(Writes::new(
        kind,
        arguments,
        &table,
        RegionMap::new(starts),
        contents.clone(),
    ));
    let batches = arguments.rows.div_ceil(arguments.batch);
    let mut plan = load::Plan {
        rows_per_operation: arguments.batch,
        ..arguments.load.plan(kind.name(), Some(batches))
    };
    // Every id is written, or the figures per row would be of another table.
    plan.duration = None;
    plan.warm_up = std::time::Duration::ZERO;
    let (measured, workers) = load::run(plan, &writes).await?;

    let mut regions = vec![0u64; writes.regions.starts().len()];
    for worker in workers {
        for (sum, rows) in regions.iter_mut().zip(worker.region_rows) {
            *sum += rows;
        }
    }
    let unevenness = Unevenness::of(&regions);
    let mut figures = BTreeMap::from([
        ("key_bytes", writes.key(0)?.len() as f64),
        ("ascending_share", writes.ascending_share(arguments.rows)?),
        ("region_peak_to_mean", unevenness.peak_to_mean),
        ("region_gini", unevenness.gini),
    ]);
    if let Some(bytes) = bytes_on_disk(target, &table).await? {
        figures.insert("disk_bytes_per_row", bytes / measured.rows().max(1) as f64);
    }
    let found = count(arguments, &table).await?;
    if found != measured.rows() {
        return Err(Error::Different(format!(
            "table {table} has {found} rows, but {} were written",
            measured.rows()
        )));
    }
    if !arguments.keep_tables {
        tables.drop(&table).await?;
    }
    Ok(PhaseReport {
        figures,
        ..PhaseReport::new(kind.name(), &measured)
    })
}

/// Bytes of the table's files after a major compaction; `None` where the server does not say.
async fn bytes_on_disk(target: &Target, table: &str) -> Result<Option<f64>> {
    if !target.is_basalt {
        return Ok(None);
    }
    let during = || format!("measuring the files of table {table}");
    target.admin.flush(table).await.during(during)?;
    let compaction = Compaction {
        family: None,
        major: true,
        wait: true,
    };
    target.admin.compact(table, compaction).await.during(during)?;
    let regions = target.admin.regions(Some(table)).await.during(during)?;
    let bytes: i64 = regions.iter().map(|region| region.store_file_bytes).sum();
    Ok(Some(bytes as f64))
}

/// Rows of the table.
async fn count(arguments: &Arguments, table: &str) -> Result<u64> {
    let during = || format!("counting table {table}");
    let session = Session::new(&arguments.load.target, table, false)?;
    let all = RowScan {
        rows_per_fetch: ROWS_PER_FETCH,
        ..RowScan::default()
    };
    let scanner = session.scan(&all).during(during)?;
    scanner.count().await.during(during)
}
