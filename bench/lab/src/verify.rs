//! `verify`: are the flights in a table those of the file? The counterpart of
//! `tests/e2e/python/flights_verify.py`, which asks the same through HappyBase.

use std::collections::HashMap;
use std::path::PathBuf;

use basalt_client::Row;
use basalt_load::error::{During, Error, Result};
use basalt_load::flights::Flights;
use basalt_load::session::Session;
use basalt_load::target::{Target, TargetOptions};
use basalt_load::{note, say};
use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::hotspot::cells_differ;
use crate::designs::{Design, DesignName, DesignOptions};

/// Read random flights back, as `hotspot --input FILE --keep-tables` wrote them, and compare them with the
/// file.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    /// The file that was written.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// The table to read.
    #[arg(long)]
    pub(crate) table: String,
    /// The design of its row keys; `minute` only if it was written with --sequence-block 0. Default: the one
    /// that the table's name ends with.
    #[arg(long)]
    pub(crate) design: Option<DesignName>,
    #[command(flatten)]
    pub(crate) options: DesignOptions,
    /// Flights to compare.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: u64,
    /// Number of flights to verify, from the beginning of the file, if only those were written.
    #[arg(long)]
    pub(crate) rows: Option<u64>,
    /// Seed of the choice.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Rows asked for in one call.
const GETS: usize = 100;

/// Differences shown; their number is in the last line.
const SHOWN: usize = 10;

/// Compares and prints the result; an error if any flight differs.
pub async fn run(arguments: Arguments) -> Result<()> {
    let name = arguments
        .design
        .or_else(|| DesignName::of_table(&arguments.table));
    let name = name.ok_or_else(|| {
        Error::Usage(format!(
            "table name {} does not end with a design: give --design",
            arguments.table
        ))
    })?;
    let design = Design::new(name, arguments.options)?;
    let flights = Flights::read(&arguments.input)?;
    let count = flights.len().min(arguments.rows.unwrap_or(u64::MAX));
    if count == 0 {
        return Err(Error::Usage("there is no flight to compare".to_owned()));
    }
    let target = Target::connect(&arguments.target, 1).await?;
    let during = || format!("reading table {}", arguments.table);
    let session = Session::on(&target, &arguments.table)?;
    let mut random = SmallRng::seed_from_u64(arguments.seed);
    let samples: Vec<u64> = (0..arguments.samples)
        .map(|_| random.random_range(0..count))
        .collect();
    let mut equal = 0u64;
    let mut differences = Vec::new();
    for samples in samples.chunks(GETS) {
        let keys = samples
            .iter()
            .map(|index| Ok(Bytes::from(design.encode(flights.key(*index))?)))
            .collect::<Result<Vec<_>>>()?;
        let rows = session.get(&keys, &[]).await.during(during)?;
        // Rows that are missing are left out of the answer.
        let rows: HashMap<&Bytes, &Row> = rows.iter().map(|row| (&row.key, row)).collect();
        for (index, key) in samples.iter().zip(&keys) {
            let difference = match rows.get(key) {
                Some(row) => cells_differ(row, &flights.cells(*index)),
                None => Some(format!("row {} is missing", key.escape_ascii())),
            };
            match difference {
                Some(difference) => differences.push(difference),
                None => equal += 1,
            }
        }
    }
    for difference in differences.iter().take(SHOWN) {
        note!("{difference}");
    }
    let result = format!("{equal} of {} flights are equal", arguments.samples);
    if differences.is_empty() {
        say!("{result}");
        return Ok(());
    }
    Err(Error::Different(result))
}
