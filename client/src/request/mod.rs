//! Requests: gets, puts, deletes, scans and the rest, as builders over the Thrift types.
//!
//! A builder never fails; an invalid request is detected when it is sent, before any byte of it
//! leaves, as [`Error::InvalidRequest`]. So requests that HBase answers with a bare `Internal
//! error` (an empty row key, a put without cells) get a clear text here.

mod check;
mod delete;
mod get;
mod put;
mod scan;

use std::ops::Range;

use basalt_idl::thrift2::{TColumn, TTimeRange};
use bytes::Bytes;

pub use check::{Check, RowMutations};
pub use delete::Delete;
pub use get::Get;
pub use put::{Append, Increment, Put};
pub use scan::{Scan, after_prefix};
pub(crate) use scan::{ScanPlan, ScanRange};

use crate::error::{Error, Result};

/// Longest row key in bytes, as in HBase.
pub const ROW_BYTES_MAX: usize = 32_767;

/// Types that can be a row key, family, qualifier or value. Owned bytes are moved, borrowed ones
/// copied.
pub trait IntoBytes {
    /// The bytes.
    fn into_bytes(self) -> Bytes;
}

impl IntoBytes for Bytes {
    fn into_bytes(self) -> Bytes {
        self
    }
}

impl IntoBytes for &Bytes {
    fn into_bytes(self) -> Bytes {
        self.clone()
    }
}

impl IntoBytes for Vec<u8> {
    fn into_bytes(self) -> Bytes {
        Bytes::from(self)
    }
}

impl IntoBytes for String {
    fn into_bytes(self) -> Bytes {
        Bytes::from(self)
    }
}

impl IntoBytes for &[u8] {
    fn into_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self)
    }
}

impl<const N: usize> IntoBytes for &[u8; N] {
    fn into_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self)
    }
}

impl<const N: usize> IntoBytes for [u8; N] {
    fn into_bytes(self) -> Bytes {
        Bytes::copy_from_slice(&self)
    }
}

impl IntoBytes for &Vec<u8> {
    fn into_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self)
    }
}

impl IntoBytes for &str {
    fn into_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self.as_bytes())
    }
}

impl IntoBytes for &String {
    fn into_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self.as_bytes())
    }
}

/// Fails unless `row` can be a row key.
pub(crate) fn check_row(row: &[u8]) -> Result<()> {
    if row.is_empty() {
        return Err(Error::InvalidRequest("row key is empty".to_owned()));
    }
    if row.len() > ROW_BYTES_MAX {
        return Err(Error::InvalidRequest(format!(
            "row key has {} bytes, more than the limit of {ROW_BYTES_MAX}",
            row.len()
        )));
    }
    Ok(())
}

fn check_time_range(range: Option<&TTimeRange>) -> Result<()> {
    match range {
        Some(range) if range.min_stamp < 0 || range.min_stamp > range.max_stamp => {
            Err(Error::InvalidRequest(format!(
                "time range {}..{} is negative or ends before it starts",
                range.min_stamp, range.max_stamp
            )))
        }
        _ => Ok(()),
    }
}

fn check_versions(versions: Option<i32>) -> Result<()> {
    match versions {
        Some(versions) if versions <= 0 => Err(Error::InvalidRequest(format!(
            "{versions} versions were asked for, at least one is needed"
        ))),
        _ => Ok(()),
    }
}

fn time_range(range: &Range<i64>) -> TTimeRange {
    TTimeRange {
        min_stamp: range.start,
        max_stamp: range.end,
    }
}

fn family(family: impl IntoBytes) -> TColumn {
    TColumn {
        family: family.into_bytes(),
        qualifier: None,
        timestamp: None,
    }
}

fn column(family: impl IntoBytes, qualifier: impl IntoBytes) -> TColumn {
    TColumn {
        family: family.into_bytes(),
        qualifier: Some(qualifier.into_bytes()),
        timestamp: None,
    }
}

#[cfg(test)]
mod tests;
