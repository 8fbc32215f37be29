//! `pe`: HBase's PerformanceEvaluation over Thrift: its commands, its options' names and meanings, its table,
//! rows and values.
//!
//! `--rows` rows belong to each of `--nclients` clients; sequential commands go through them client by client
//! at once, random ones choose among all. Row `n` is its number as 26 decimal digits, families are `info0`,
//! `info1`, ..., columns `0`, `1`, .... Commands run one after the other, each as a phase of the report.
//!
//! Differences: options of Hadoop's Java side (MapReduce, RPC tracing, replicas, ...) have no
//! meaning over Thrift and are not there; a batch (`--multiGet`, `--multiPut`) is one operation
//! with one latency; and calls that the server refuses for now are retried, increments and appends
//! too.

mod commands;
mod operations;

use std::sync::Arc;

use basalt_client::{BloomType, Compression, DataBlockEncoding, FamilySchema};

use crate::error::{Error, Result};
use crate::load;
use crate::load::options::LoadOptions;
use crate::report::load::{LoadReport, PhaseReport};
use crate::report::{self, Head};
use crate::session::Session;
use crate::tables::Tables;
use crate::target::Target;
use commands::Command;
use operations::Evaluation;

/// Run commands of HBase's PerformanceEvaluation.
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are switches of PerformanceEvaluation"
)]
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Commands, in this order.
    #[arg(required = true, value_enum, ignore_case = true)]
    commands: Vec<Command>,
    #[command(flatten)]
    load: LoadOptions,
    /// The table.
    #[arg(long, default_value = "TestTable")]
    table: String,
    /// Rows that each client runs. Default: as many as --size says.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rows: Option<u64>,
    /// GiB of values that all clients run together.
    #[arg(long, default_value_t = 1.0, conflicts_with = "rows", value_name = "GIB")]
    size: f64,
    /// Operate on this share of the rows.
    #[arg(long = "sampleRate", default_value_t = 1.0, value_name = "SHARE")]
    sample_rate: f64,
    /// Bytes of a value.
    #[arg(long = "valueSize", visible_alias = "value-bytes", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    value_size: u32,
    /// Values of random length up to --valueSize.
    #[arg(long = "valueRandom", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    value_random: bool,
    /// Columns of each family to write.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    columns: u32,
    /// Families to write.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    families: u32,
    /// Name the columns in gets and scans.
    #[arg(long = "addColumns", num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    add_columns: bool,
    /// Rows of one get; 0 and 1 are single gets.
    #[arg(long = "multiGet", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    multi_get: u32,
    /// Rows of one put; 0 and 1 are single puts.
    #[arg(long = "multiPut", visible_alias = "batch", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    multi_put: u32,
    /// Rows fetched by one call of a scan.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(i32).range(1..=100_000))]
    caching: i32,
    /// Whether writes go to the log.
    #[arg(long = "writeToWAL", num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    write_to_wal: bool,
    /// Regions of a table that is created here.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    presplit: u32,
    /// Compression of a table that is created here: NONE, SNAPPY, LZ4, ZSTD, GZ.
    #[arg(long, default_value = "NONE")]
    compress: String,
    /// Bloom filter of a table that is created here: NONE, ROW, ROWCOL.
    #[arg(long = "bloomFilter", default_value = "ROW")]
    bloom_filter: String,
    /// Block encoding of a table that is created here: NONE, PREFIX, DIFF, FAST_DIFF, ROW_INDEX_V1.
    #[arg(long = "blockEncoding")]
    block_encoding: Option<String>,
    /// Bytes of a block of a table that is created here.
    #[arg(long = "blockSize", value_parser = clap::value_parser!(i32).range(1..))]
    block_size: Option<i32>,
    /// Whether the families of a table that is created here are IN_MEMORY.
    #[arg(long = "inmemory", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    in_memory: bool,
    /// Drop the table if it is there, and create it anew.
    #[arg(long)]
    replace_tables: bool,
}

impl Arguments {
    /// Rows of each client.
    fn client_rows(&self) -> u64 {
        self.rows.unwrap_or_else(|| {
            let bytes = self.size * f64::from(1u32 << 30);
            let rows = bytes / f64::from(self.value_size.max(1)) / self.load.threads as f64;
            (rows as u64).max(1)
        })
    }

    fn check(&self) -> Result<()> {
        if !(self.size > 0.0 && self.size <= 1e6) {
            return Err(Error::Usage(format!(
                "--size {} is not between 0 and 1000000 GiB",
                self.size
            )));
        }
        if !(self.sample_rate > 0.0 && self.sample_rate <= 1.0) {
            return Err(Error::Usage(format!(
                "--sampleRate {} is not between 0 and 1",
                self.sample_rate
            )));
        }
        for command in &self.commands {
            if let Some(needs) = command.thrift2_only() {
                Session::check(self.load.target.api, needs)?;
            }
        }
        Ok(())
    }

    fn family_schemas(&self) -> Result<Vec<FamilySchema>> {
        let unknown = |option: &str, value: &str| Error::Usage(format!("--{option} {value} is not known"));
        let upper = self.bloom_filter.to_uppercase();
        let bloom = BloomType::from_name(&upper).ok_or_else(|| unknown("bloomFilter", &self.bloom_filter))?;
        let upper = self.compress.to_uppercase();
        let compression =
            Compression::from_name(&upper).ok_or_else(|| unknown("compress", &self.compress))?;
        let encoding = match &self.block_encoding {
            Some(name) => Some(
                DataBlockEncoding::from_name(&name.to_uppercase())
                    .ok_or_else(|| unknown("blockEncoding", name))?,
            ),
            None => None,
        };
        Ok((0..self.families)
            .map(|family| {
                let mut schema = FamilySchema::new(operations::family_name(family))
                    .bloom_filter(bloom)
                    .compression(compression)
                    .in_memory(self.in_memory);
                if let Some(encoding) = encoding {
                    schema = schema.data_block_encoding(encoding);
                }
                if let Some(bytes) = self.block_size {
                    schema = schema.block_bytes(bytes);
                }
                schema
            })
            .collect())
    }

    /// Even borders of all rows, as PerformanceEvaluation makes them.
    fn splits(&self) -> Vec<Vec<u8>> {
        let regions = u64::from(self.presplit);
        let jump = self.client_rows() * self.load.threads / regions;
        let borders: Vec<u64> = (1..regions).map(|region| region * jump).collect();
        borders
            .into_iter()
            .filter(|border| *border > 0)
            .map(|border| operations::row_key(border).to_vec())
            .collect()
    }
}

/// Runs the commands and writes the report.
pub async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.load.out.clone();
    report::create_dir(&out)?;
    report::load::write(&out, &measure(arguments).await?)
}

/// Runs the commands.
pub async fn measure(arguments: Arguments) -> Result<LoadReport> {
    arguments.check()?;
    let data = arguments.load.data.read()?;
    let target = Target::connect(&arguments.load.target, 1).await?;
    prepare_table(&arguments, &target).await?;
    let mut report = LoadReport::new(Head::new("pe", &target, &arguments.load.target));
    settings(&arguments, &mut report);
    report.set("data", data.name());
    for command in &arguments.commands {
        let evaluation = Arc::new(Evaluation::new(*command, &arguments, &data));
        let plan = load::Plan {
            rows_per_operation: evaluation.rows_per_operation(),
            ..arguments.load.plan(command.name(), evaluation.operations())
        };
        let (measured, _) = load::run(plan, &evaluation).await?;
        report.phases.push(PhaseReport::new(command.name(), &measured));
    }
    Ok(report)
}

async fn prepare_table(arguments: &Arguments, target: &Target) -> Result<()> {
    let tables = Tables {
        target,
        replace: arguments.replace_tables,
    };
    if !arguments.replace_tables && tables.exists(&arguments.table).await? {
        return Ok(());
    }
    if !arguments.commands.first().is_some_and(|command| command.writes()) {
        return Err(Error::Usage(format!(
            "table {} is not there to be read: begin with sequentialWrite",
            arguments.table
        )));
    }
    let families = arguments.family_schemas()?;
    tables
        .create(&arguments.table, families, arguments.splits())
        .await
}

fn settings(arguments: &Arguments, report: &mut LoadReport) {
    report.set("api", arguments.load.target.api.name());
    report.set("pace", arguments.load.pace_text());
    report.set("nclients", arguments.load.threads);
    report.set("rows", arguments.client_rows());
    report.set("sampleRate", arguments.sample_rate);
    report.set("table", &arguments.table);
    report.set("valueSize", arguments.value_size);
    report.set("valueRandom", arguments.value_random);
    report.set("columns", arguments.columns);
    report.set("families", arguments.families);
    report.set("multiGet", arguments.multi_get);
    report.set("multiPut", arguments.multi_put);
    report.set("caching", arguments.caching);
    report.set("writeToWAL", arguments.write_to_wal);
    report.set("seed", arguments.load.seed);
    report.set("warm-up", arguments.load.warm_up);
}

#[cfg(test)]
mod tests;
