//! The flights file: `flights-3m.parquet` of the npm package `vega-datasets`, or any file with its columns.
//!
//! ```text
//! date         INT64, timestamp in microseconds, never null
//! delay        INT64, minutes
//! distance     INT64, miles
//! origin       BYTE_ARRAY, UTF-8
//! destination  BYTE_ARRAY, UTF-8
//! ```
//!
//! Every flight is a row: its minute is the date's, rounded down, its sequence number the place in the file,
//! from 0. Each column becomes a cell of family `f` as text; a null is no cell. Dates are written as
//! `2001-01-01T00:01:00`, with six more digits if there is a part of a second.
//!
//! The whole file is in memory, 48 bytes a flight, so that reading it does not compete with the server that
//! is measured. Columns are read side by side, airports are kept once.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use basalt_client::keys::MinuteKey;
use bytes::Bytes;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::error::{Error, Result};
use crate::time_text::minute_text;

/// The columns, in the order of the cells.
pub(crate) const COLUMNS: [&str; 5] = ["date", "delay", "distance", "origin", "destination"];

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// All flights of a file.
#[derive(Debug, Default)]
pub struct Flights {
    /// Microseconds since 1970.
    date: Vec<i64>,
    delay: Vec<Option<i64>>,
    distance: Vec<Option<i64>>,
    /// Places in `airports`.
    origin: Vec<Option<u32>>,
    destination: Vec<Option<u32>>,
    airports: Vec<Bytes>,
    /// Places in the file in the order of keys; empty when the file is in this order, as the published one
    /// is.
    order: Vec<u32>,
}

impl Flights {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Flights> {
        let file = File::open(path).map_err(|source| Error::File {
            path: path.to_owned(),
            source,
        })?;
        let input = Input {
            path: path.to_owned(),
        };
        let reader = SerializedFileReader::new(file).map_err(|error| input.bad(error.to_string()))?;
        let columns = input.find_columns(&reader)?;
        let mut flights = Flights::default();
        let mut known = HashMap::new();
        for group in 0..reader.num_row_groups() {
            let group = reader
                .get_row_group(group)
                .map_err(|error| input.bad(error.to_string()))?;
            flights.read_group(&input, group.as_ref(), columns, &mut known)?;
        }
        flights.sort(&input)?;
        Ok(flights)
    }

    fn read_group(
        &mut self,
        input: &Input,
        group: &dyn RowGroupReader,
        [date, delay, distance, origin, destination]: [usize; 5],
        known: &mut HashMap<Bytes, u32>,
    ) -> Result<()> {
        for micros in input.numbers(group, date)? {
            let micros = micros.ok_or_else(|| input.bad("column date has a null".to_owned()))?;
            if micros < 0 {
                return Err(input.bad(format!("date {micros} us is before 1970")));
            }
            self.date.push(micros);
        }
        self.delay.extend(input.numbers(group, delay)?);
        self.distance.extend(input.numbers(group, distance)?);
        for (column, out) in [(origin, &mut self.origin), (destination, &mut self.destination)] {
            for name in input.texts(group, column)? {
                let airports = &mut self.airports;
                out.push(name.map(|name| {
                    *known.entry(name).or_insert_with_key(|name| {
                        airports.push(name.clone());
                        u32::try_from(airports.len() - 1).expect("fewer airports than flights")
                    })
                }));
            }
        }
        let flights = self.date.len();
        let lengths = [
            self.delay.len(),
            self.distance.len(),
            self.origin.len(),
            self.destination.len(),
        ];
        if lengths.iter().any(|length| *length != flights) {
            return Err(input.bad(format!(
                "columns of a row group differ in length: {flights}, {lengths:?}"
            )));
        }
        Ok(())
    }

    fn sort(&mut self, input: &Input) -> Result<()> {
        let flights = u32::try_from(self.date.len()).map_err(|_| {
            input.bad(format!(
                "{} flights are more than the limit of {}",
                self.date.len(),
                u32::MAX
            ))
        })?;
        let minute = |place: u32| self.date[place as usize] / MICROS_PER_MINUTE;
        if let Some(last) = self.date.iter().max() {
            let minute = u32::try_from(last / MICROS_PER_MINUTE);
            let minute = minute.map_err(|_| input.bad(format!("date {last} us is too far in the future")))?;
            minute_text(minute)?;
        }
        if !(0..flights).is_sorted_by_key(minute) {
            let mut order: Vec<u32> = (0..flights).collect();
            order.sort_by_key(|place| minute(*place));
            self.order = order;
        }
        Ok(())
    }

    /// Number of flights.
    pub fn len(&self) -> u64 {
        self.date.len() as u64
    }

    /// Whether the file has no flight.
    pub fn is_empty(&self) -> bool {
        self.date.is_empty()
    }

    /// The place in the file of the flight with the `index`th key.
    fn place(&self, index: u64) -> usize {
        let index = usize::try_from(index).expect("an index below the number of flights");
        self.order.get(index).map_or(index, |place| *place as usize)
    }

    /// The `index`th key in order.
    /// REQUIRES: `index < len()`.
    pub fn key(&self, index: u64) -> MinuteKey {
        self.key_at(self.place(index))
    }

    /// The key of the flight at this place in the file.
    pub(crate) fn key_at(&self, place: usize) -> MinuteKey {
        let minute = self.date[place] / MICROS_PER_MINUTE;
        MinuteKey {
            minute: u32::try_from(minute).expect("checked when the file was read"),
            sequence: u32::try_from(place).expect("checked when the file was read"),
        }
    }

    /// The cells of the row with the `index`th key: qualifier and value.
    pub fn cells(&self, index: u64) -> Vec<(&'static str, Bytes)> {
        self.cells_at(self.place(index))
    }

    /// The cells of the flight at this place in the file.
    pub(crate) fn cells_at(&self, place: usize) -> Vec<(&'static str, Bytes)> {
        let number = |number: Option<i64>| number.map(|number| Bytes::from(number.to_string()));
        let airport = |place: Option<u32>| place.map(|place| self.airports[place as usize].clone());
        let values = [
            Some(Bytes::from(date_text(self.date[place]))),
            number(self.delay[place]),
            number(self.distance[place]),
            airport(self.origin[place]),
            airport(self.destination[place]),
        ];
        let cells = COLUMNS.into_iter().zip(values);
        cells
            .filter_map(|(column, value)| Some((column, value?)))
            .collect()
    }

    /// The flight with the `index`th key as text; a number that is null is left out, an airport that is null
    /// is `-`.
    pub(crate) fn line(&self, index: u64) -> String {
        let place = self.place(index);
        let mut words = vec![date_text(self.date[place])];
        for (name, number) in [("delay", self.delay[place]), ("distance", self.distance[place])] {
            words.extend(number.map(|number| format!("{name}={number}")));
        }
        for airport in [self.origin[place], self.destination[place]] {
            let name = airport.map(|airport| String::from_utf8_lossy(&self.airports[airport as usize]));
            words.push(name.map_or("-".to_owned(), Into::into));
        }
        words.join(" ")
    }

    /// Fails if there are fewer than `rows`, which an option asked for.
    pub fn need(&self, rows: u64) -> Result<()> {
        if rows <= self.len() {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "--rows {rows} is more than the {} flights of --input",
            self.len()
        )))
    }
}

/// The date as Python's `datetime.isoformat` writes it.
fn date_text(micros: i64) -> String {
    let minute = u32::try_from(micros / MICROS_PER_MINUTE).expect("checked when the file was read");
    let (seconds, micros) = (micros / 1_000_000 % 60, micros % 1_000_000);
    let minute = minute_text(minute).expect("checked when the file was read");
    if micros == 0 {
        format!("{minute}:{seconds:02}")
    } else {
        format!("{minute}:{seconds:02}.{micros:06}")
    }
}

/// The file being read: says which one when something is wrong.
struct Input {
    path: PathBuf,
}

impl Input {
    fn bad(&self, what: String) -> Error {
        Error::Input {
            path: self.path.clone(),
            what,
        }
    }

    /// The positions of [`COLUMNS`].
    fn find_columns(&self, reader: &SerializedFileReader<File>) -> Result<[usize; 5]> {
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut found = [0; 5];
        for (name, place) in COLUMNS.iter().zip(&mut found) {
            let position = schema
                .columns()
                .iter()
                .position(|column| column.path().string() == *name);
            *place = position.ok_or_else(|| self.bad(format!("there is no column {name}")))?;
            let column = schema.column(*place);
            if column.max_rep_level() > 0 || column.max_def_level() > 1 {
                return Err(self.bad(format!("column {name} is nested")));
            }
        }
        match schema.column(found[0]).logical_type_ref() {
            Some(LogicalType::Timestamp(timestamp)) if timestamp.unit == TimeUnit::MICROS => Ok(found),
            other => Err(self.bad(format!(
                "column date is {other:?} and not a timestamp in microseconds"
            ))),
        }
    }

    fn numbers(&self, group: &dyn RowGroupReader, column: usize) -> Result<Vec<Option<i64>>> {
        match group.get_column_reader(column) {
            Ok(ColumnReader::Int64ColumnReader(reader)) => {
                self.read_column(group, reader, |number| Ok(*number))
            }
            Ok(_) => Err(self.bad(format!("column {column} is not of 64-bit numbers"))),
            Err(error) => Err(self.bad(error.to_string())),
        }
    }

    fn texts(&self, group: &dyn RowGroupReader, column: usize) -> Result<Vec<Option<Bytes>>> {
        match group.get_column_reader(column) {
            Ok(ColumnReader::ByteArrayColumnReader(reader)) => {
                self.read_column(group, reader, |text: &ByteArray| match text.as_utf8() {
                    // Copied, because a slice would keep the whole page.
                    Ok(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
                    Err(error) => Err(self.bad(error.to_string())),
                })
            }
            Ok(_) => Err(self.bad(format!("column {column} is not of texts"))),
            Err(error) => Err(self.bad(error.to_string())),
        }
    }

    /// All values of a column in a row group.
    fn read_column<D: DataType, T>(
        &self,
        group: &dyn RowGroupReader,
        mut reader: ColumnReaderImpl<D>,
        convert: impl Fn(&D::T) -> Result<T>,
    ) -> Result<Vec<Option<T>>> {
        /// Values asked for at a time: the footer's number of values is only trusted up to this.
        const VALUES: usize = 65_536;
        let rows = usize::try_from(group.metadata().num_rows())
            .map_err(|_| self.bad("a row group has a negative number of rows".to_owned()))?;
        let mut out = Vec::new();
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        while out.len() < rows {
            levels.clear();
            values.clear();
            let wanted = VALUES.min(rows - out.len());
            let (records, _, _) = reader
                .read_records(wanted, Some(&mut levels), None, &mut values)
                .map_err(|error| self.bad(error.to_string()))?;
            if records == 0 {
                return Err(self.bad(format!("a column ends after {} of {rows} rows", out.len())));
            }
            let mut values = values.iter();
            // A column that cannot be null has no levels.
            let present = |row: usize| levels.get(row).is_none_or(|level| *level == 1);
            for row in 0..records {
                let value = if present(row) { values.next() } else { None };
                out.push(value.map(&convert).transpose()?);
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{DATE, SCHEMA, small_file, write};

    /// The minute of [`DATE`].
    const MINUTE: u32 = 16_305_121;

    fn texts(cells: &[(&'static str, Bytes)]) -> Vec<String> {
        let text = |(name, value): &(&str, Bytes)| format!("{name}={}", String::from_utf8_lossy(value));
        cells.iter().map(text).collect()
    }

    #[test]
    fn rows_groups_and_nulls_are_read() {
        let flights = Flights::read(small_file().path()).unwrap();
        assert_eq!(flights.len(), 3);
        assert_eq!(
            texts(&flights.cells(0)),
            [
                "date=2001-01-01T00:01:00",
                "delay=-5",
                "distance=100",
                "origin=LAS",
                "destination=XYZ"
            ]
        );
        assert_eq!(
            texts(&flights.cells(1)),
            [
                "date=2001-01-01T00:01:00",
                "distance=100",
                "origin=ATL",
                "destination=XYZ"
            ]
        );
        assert_eq!(texts(&flights.cells(2))[0], "date=2001-01-01T00:02:01.000001");
        assert_eq!(
            flights.key(2),
            MinuteKey {
                minute: MINUTE + 1,
                sequence: 2
            }
        );
        assert_eq!(flights.airports, ["LAS", "ATL", "XYZ"]);
        assert_eq!(
            flights.line(0),
            "2001-01-01T00:01:00 delay=-5 distance=100 LAS XYZ"
        );
        assert_eq!(flights.line(1), "2001-01-01T00:01:00 distance=100 ATL XYZ");
    }

    #[test]
    fn an_airport_that_is_not_known_keeps_its_place() {
        let mut flights = Flights::read(small_file().path()).unwrap();
        flights.origin[1] = None;
        assert_eq!(flights.line(1), "2001-01-01T00:01:00 distance=100 - XYZ");
    }

    #[test]
    fn more_rows_than_flights_are_refused_with_both_numbers() {
        let flights = Flights::read(small_file().path()).unwrap();
        assert!(flights.need(3).is_ok());
        let refusal = flights.need(4).unwrap_err();
        assert!(matches!(refusal, Error::Usage(_)));
        assert_eq!(
            refusal.to_string(),
            "--rows 4 is more than the 3 flights of --input"
        );
    }

    /// The sequence stays the place in the file when the file is not in order of time.
    #[test]
    fn a_file_out_of_order_is_read_in_order() {
        let later = DATE + MICROS_PER_MINUTE;
        let file = write(
            SCHEMA,
            &[&[(later, Some(1), "A"), (DATE, Some(2), "B"), (later, Some(3), "C")]],
        );
        let flights = Flights::read(file.path()).unwrap();
        let keys: Vec<_> = (0..3)
            .map(|index| flights.key(index))
            .map(|key| (key.minute, key.sequence))
            .collect();
        assert_eq!(keys, [(MINUTE, 1), (MINUTE + 1, 0), (MINUTE + 1, 2)]);
        assert_eq!(texts(&flights.cells(0))[3], "origin=B");
        assert_eq!(texts(&flights.cells_at(0))[3], "origin=A");
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let check = |schema: &str, date, expected: &str| {
            let file = write(schema, &[&[(date, None, "A")]]);
            let error = Flights::read(file.path()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(SCHEMA, -1, "before 1970");
        check(SCHEMA, i64::MAX, "too far in the future");
        check(&SCHEMA.replace("delay", "late"), DATE, "no column delay");
        check(
            &SCHEMA.replace("MICROS", "MILLIS"),
            DATE,
            "not a timestamp in microseconds",
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"PAR1 and nothing else PAR1").unwrap();
        assert!(matches!(Flights::read(file.path()), Err(Error::Input { .. })));
    }
}
