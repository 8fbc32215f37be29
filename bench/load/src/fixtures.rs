//! Files of flights for tests: of this crate, and of crates above it by the feature `fixtures`.

use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::data::{Data, DataOptions};

/// The columns of the published file.
pub(crate) const SCHEMA: &str = "message root {
    optional int64 date (TIMESTAMP(MICROS,false));
    optional int64 delay;
    optional int64 distance;
    optional binary origin (STRING);
    optional binary destination (STRING);
}";

/// 2001-01-01 00:01 in microseconds.
pub(crate) const DATE: i64 = 978_307_260_000_000;

/// Writes a file of this schema, ZSTD, with one row group for each list of rows. A row is date, delay and
/// origin; the distance is always 100, the destination `XYZ`.
pub(crate) fn write(schema: &str, groups: &[&[(i64, Option<i64>, &str)]]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let level = ZstdLevel::try_new(3).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .build();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(file.reopen().unwrap(), schema, Arc::new(properties)).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let delays: Vec<i64> = rows.iter().filter_map(|row| row.1).collect();
        let delay_levels: Vec<i16> = rows.iter().map(|row| i16::from(row.1.is_some())).collect();
        let ones = vec![1; rows.len()];
        let numbers = [
            (rows.iter().map(|row| row.0).collect(), &ones),
            (delays, &delay_levels),
            (vec![100; rows.len()], &ones),
        ];
        for (values, levels) in numbers {
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<Int64Type>()
                .write_batch(&values, Some(levels), None)
                .unwrap();
            column.close().unwrap();
        }
        for text in [rows.iter().map(|row| row.2).collect(), vec!["XYZ"; rows.len()]] {
            let values: Vec<ByteArray> = text.iter().map(|text| ByteArray::from(*text)).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<ByteArrayType>()
                .write_batch(&values, Some(&ones), None)
                .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

/// Three flights in two row groups, the second without a delay.
pub fn small_file() -> tempfile::NamedTempFile {
    write(
        SCHEMA,
        &[
            &[(DATE, Some(-5), "LAS"), (DATE, None, "ATL")],
            &[(DATE + 61_000_001, Some(7), "LAS")],
        ],
    )
}

impl Data {
    /// Values that are made here.
    pub fn generated() -> Data {
        DataOptions::default().read().expect("there is no file to read")
    }

    /// The flights of [`small_file`].
    pub fn small_file() -> Data {
        Data::of_file(&small_file())
    }

    /// One flight from an airport.
    pub fn of_airport(name: &str) -> Data {
        Data::of_file(&write(SCHEMA, &[&[(DATE, None, name)]]))
    }

    fn of_file(file: &tempfile::NamedTempFile) -> Data {
        let options = DataOptions {
            input: Some(file.path().to_owned()),
        };
        options.read().expect("the file was written for it")
    }
}
