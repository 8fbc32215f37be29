//! Kinds of calls, and the table that they use.

use bytes::Bytes;
use clap::ValueEnum;
use serde::Serialize;

/// The family of the table.
pub(super) const FAMILY: &str = "f";

/// Rows in the table, and messages of each kind.
pub(super) const ROWS: usize = 256;

/// Rows of a batch, and of a scan.
pub(super) const BATCH: usize = 100;

pub(super) const QUALIFIER: &[u8] = b"v";

/// Kinds of calls: the methods of Thrift 2, and those of native RPC that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// `get` of one row of one cell.
    Get,
    /// `put` of one cell.
    Put,
    /// `putMultiple` of 100 rows of one cell.
    PutBatch,
    /// `increment` of one column.
    Increment,
    /// `getScannerResults`: 100 rows of one cell.
    Scan,
    /// A scan of 100 rows with a `PageFilter`: Basalt begins it on its pool of threads, other calls
    /// of cached rows on the network threads.
    FilteredScan,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Get => "get",
            Kind::Put => "put",
            Kind::PutBatch => "put of 100 rows",
            Kind::Increment => "increment",
            Kind::Scan => "scan of 100 rows",
            Kind::FilteredScan => "filtered scan of 100 rows",
        }
    }
}

/// A row's value.
pub(super) fn value(row: usize, bytes: usize) -> Bytes {
    Bytes::from(vec![b'a' + (row % 26) as u8; bytes])
}

pub(super) fn key(row: usize) -> Bytes {
    Bytes::from(format!("row-{row:012}"))
}
