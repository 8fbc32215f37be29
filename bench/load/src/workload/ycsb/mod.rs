//! `ycsb`: the Yahoo! Cloud Serving Benchmark's core workloads A to F, with its properties' names, defaults
//! and mixes.
//!
//! The load phase inserts `recordcount` rows; the run phase carries out `operationcount` operations of the
//! workload's mix. Row `n` is `user` and the hash of `n` (`insertorder=hashed`) or `n` itself (`ordered`);
//! its fields are `field0`, `field1`, ... of one family.
//!
//! With `dataintegrity=true` a value is a function of its row key and field, and the results of
//! gets are compared with it: a get of another value, or of no row, is an operation that failed.
//!
//! | workload | mix | requests |
//! | --- | --- | --- |
//! | a | 50 % read, 50 % update | zipfian |
//! | b | 95 % read, 5 % update | zipfian |
//! | c | 100 % read | zipfian |
//! | d | 95 % read, 5 % insert | latest |
//! | e | 95 % scan, 5 % insert | zipfian |
//! | f | 50 % read, 50 % read-modify-write | zipfian |

mod integrity;
mod keys;
mod operations;
mod properties;

use std::sync::Arc;

use basalt_client::FamilySchema;
use clap::ValueEnum;

use crate::error::{Error, Result};
use crate::load;
use crate::load::options::LoadOptions;
use crate::report::load::{LoadReport, PhaseReport};
use crate::report::{self, Head};
use crate::tables::Tables;
use crate::target::Target;
use operations::{Load, Mix};
use properties::Properties;

/// A core workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Half reads, half updates.
    A,
    /// Mostly reads.
    B,
    /// Only reads.
    C,
    /// Reads of new records.
    D,
    /// Short scans.
    E,
    /// Reads and read-modify-writes.
    F,
}

/// The phases of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Phases {
    /// Insert the records.
    Load,
    /// Run the mix over records that are there.
    Run,
    /// One after the other.
    Both,
}

/// Run a core workload of YCSB.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// The workload.
    #[arg(ignore_case = true)]
    workload: Workload,
    #[command(flatten)]
    load: LoadOptions,
    /// Phases to run.
    #[arg(long, default_value = "both")]
    phase: Phases,
    /// Records to load: the property `recordcount`.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    records: Option<u64>,
    /// Operations to run: the property `operationcount`. With --duration and without this, as many as there
    /// is time for.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// A property of YCSB, for example `-p requestdistribution=uniform`. Known are: recordcount,
    /// operationcount, insertstart, readproportion, updateproportion, insertproportion, scanproportion,
    /// readmodifywriteproportion, requestdistribution, hotspotdatafraction, hotspotopnfraction,
    /// exponential.percentile, exponential.frac, minscanlength, maxscanlength, fieldcount, fieldlength,
    /// fieldlengthdistribution (constant only), readallfields, writeallfields, dataintegrity, insertorder,
    /// zeropadding, table, columnfamily.
    #[arg(short = 'p', long = "property", value_name = "NAME=VALUE")]
    properties: Vec<String>,
    /// Regions of a table that is created here, split evenly over the hashed keys.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    presplit: u32,
    /// Drop the table if it is there, and create it anew.
    #[arg(long)]
    replace_tables: bool,
}

/// Runs the phases and writes the report.
pub async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.load.out.clone();
    report::create_dir(&out)?;
    report::load::write(&out, &measure(arguments).await?)
}

/// Runs the phases.
pub async fn measure(arguments: Arguments) -> Result<LoadReport> {
    let mut properties = Properties::of(arguments.workload);
    for property in &arguments.properties {
        properties.set(property)?;
    }
    properties.record_count = arguments.records.unwrap_or(properties.record_count);
    properties.operation_count = arguments.operations.unwrap_or(properties.operation_count);
    properties.check()?;
    if properties.data_integrity && arguments.load.data.input.is_some() {
        return Err(Error::Usage(
            "dataintegrity=true makes each value from its key: it cannot be a flight of --input".to_owned(),
        ));
    }
    let data = arguments.load.data.read()?;
    let target = Target::connect(&arguments.load.target, 1).await?;
    prepare_table(&arguments, &properties, &target).await?;
    let mut report = LoadReport::new(Head::new("ycsb", &target, &arguments.load.target));
    report.set("workload", format!("{:?}", arguments.workload).to_lowercase());
    report.set("api", arguments.load.target.api.name());
    report.set("pace", arguments.load.pace_text());
    report.set("threadcount", arguments.load.threads);
    report.set("seed", arguments.load.seed);
    let of_keys = properties.data_integrity;
    report.set(
        "data",
        if of_keys {
            "generated from keys"
        } else {
            data.name()
        },
    );
    for (name, value) in properties.list() {
        report.set(name, value);
    }
    if arguments.phase != Phases::Run {
        let operations = Arc::new(Load::new(&properties, &arguments.load, &data));
        let mut plan = arguments.load.plan("load", Some(properties.record_count));
        // All records are loaded, however long it takes.
        plan.duration = None;
        plan.warm_up = std::time::Duration::ZERO;
        let (measured, _) = load::run(plan, &operations).await?;
        report.phases.push(PhaseReport::new("load", &measured));
    }
    if arguments.phase != Phases::Load {
        let unbounded = arguments.load.duration.is_some() && arguments.operations.is_none();
        let count = (!unbounded).then_some(properties.operation_count);
        let operations = Arc::new(Mix::new(&properties, &arguments.load, &data));
        let (measured, _) = load::run(arguments.load.plan("run", count), &operations).await?;
        report.phases.push(PhaseReport::new("run", &measured));
    }
    Ok(report)
}

async fn prepare_table(arguments: &Arguments, properties: &Properties, target: &Target) -> Result<()> {
    let tables = Tables {
        target,
        replace: arguments.replace_tables,
    };
    if arguments.phase == Phases::Run {
        if tables.exists(&properties.table).await? {
            return Ok(());
        }
        return Err(Error::Usage(format!(
            "table {} is not there: run the phase load first",
            properties.table
        )));
    }
    if !arguments.replace_tables && tables.exists(&properties.table).await? {
        return Ok(());
    }
    // A hash is a number of up to 19 digits, so nearly all begin with 1000 to 9999: YCSB's advice for HBase.
    let regions = arguments.presplit;
    let splits = (1..regions).map(|region| format!("user{}", 1_000 + region * 8_999 / regions).into_bytes());
    let family = FamilySchema::new(properties.column_family.as_str());
    tables
        .create(&properties.table, vec![family], splits.collect())
        .await
}

#[cfg(test)]
mod tests;
