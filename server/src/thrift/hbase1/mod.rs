//! The handlers of HBase's Thrift 1 service, `Hbase`, by class.

use basalt_engine::op::{FamilySelection, TimeRange};
use bytes::Bytes;

use super::from_thrift::{select, split_column, time_range};
use super::handlers::Result;

mod admin;
mod reads;
mod scans;
mod writes;

/// The selection of columns named `family` or `family:qualifier`; none, and an empty list, mean all.
fn columns(columns: Option<Vec<Bytes>>) -> Vec<FamilySelection> {
    let columns = columns.into_iter().flatten();
    select(columns.map(|column| split_column(&column)))
}

/// `[0, before)`: Thrift 1 reads never include their timestamp.
fn before(timestamp: Option<i64>) -> Result<TimeRange> {
    timestamp.map_or(Ok(TimeRange::ALL), |timestamp| time_range(0, timestamp))
}

/// The timestamp of a method that has one as an argument: 0 if it is missing.
fn given(timestamp: Option<i64>) -> Option<i64> {
    timestamp.or(Some(0))
}
