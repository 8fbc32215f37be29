//! Values that workloads write: generated ones, or the flights of a file.
//!
//! A workload whose rows have no columns of their own writes the flights' columns, one flight a row
//! ([`Flights`]). One with columns of its own takes values that are text of flights ([`Data`]).

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::flights::Flights;
use crate::values::{Lines, Values};

/// The data set.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DataOptions {
    /// The flights of this Parquet file instead of generated values: flights-3m.parquet of the npm
    /// package vega-datasets, or any file with its columns.
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
}

impl DataOptions {
    /// The flights, at least one; `None` if values are to be generated.
    pub fn flights(&self) -> Result<Option<Flights>> {
        let Some(path) = &self.input else {
            return Ok(None);
        };
        let flights = Flights::read(path)?;
        if flights.is_empty() {
            return Err(Error::Input {
                path: path.clone(),
                what: "there is no flight in it".to_owned(),
            });
        }
        Ok(Some(flights))
    }

    /// Loads the source of values.
    pub fn read(&self) -> Result<Data> {
        let flights = self.flights()?;
        Ok(Data {
            name: self.name(flights.as_ref()),
            lines: flights.as_ref().map(Lines::new),
        })
    }

    /// Name of the data set in reports.
    pub fn name(&self, flights: Option<&Flights>) -> String {
        match (&self.input, flights) {
            (Some(path), Some(flights)) => {
                let file = path.file_name().unwrap_or(path.as_os_str());
                format!("{}, {} flights", file.display(), flights.len())
            }
            _ => "generated".to_owned(),
        }
    }
}

/// The source of values. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Data {
    name: String,
    lines: Option<Lines>,
}

impl Data {
    /// Name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the values are text of flights.
    pub fn is_flights(&self) -> bool {
        self.lines.is_some()
    }

    /// Values of up to `value_bytes_max` bytes.
    pub fn values(&self, seed: u64, value_bytes_max: usize) -> Values {
        match &self.lines {
            Some(lines) => Values::flights(lines.clone()),
            None => Values::new(seed, value_bytes_max),
        }
    }

    /// Flight `number` in one line, counted round and round; `generated()` if there are none.
    pub fn text(&self, number: u64, generated: impl FnOnce() -> String) -> String {
        match &self.lines {
            Some(lines) => lines.line(number),
            None => generated(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{SCHEMA, small_file, write};

    fn options(path: &std::path::Path) -> DataOptions {
        DataOptions {
            input: Some(path.to_owned()),
        }
    }

    #[test]
    fn the_data_set_has_the_name_of_its_file() {
        let file = small_file();
        let data = options(file.path()).read().unwrap();
        let name = file.path().file_name().unwrap().to_str().unwrap();
        assert_eq!(data.name(), format!("{name}, 3 flights"));
        assert_eq!(Data::generated().name(), "generated");
    }

    #[test]
    fn texts_are_flights_only_if_there_is_a_file() {
        let text = |data: &Data, number| data.text(number, || format!("made {number}"));
        assert_eq!(text(&Data::generated(), 7), "made 7");
        let data = Data::small_file();
        assert_eq!(text(&data, 1), "2001-01-01T00:01:00 distance=100 ATL XYZ");
        assert_eq!(text(&data, 4), text(&data, 1), "behind the last comes the first");
    }

    #[test]
    fn a_file_that_is_missing_or_empty_is_refused_by_name() {
        let refused = |path: &std::path::Path| options(path).read().unwrap_err().to_string();
        let missing = refused("/there/is/no/such.parquet".as_ref());
        assert!(missing.contains("such.parquet"), "{missing}");
        let empty = write(SCHEMA, &[]);
        let refusal = refused(empty.path());
        assert!(refusal.contains("no flight"), "{refusal}");
    }
}
