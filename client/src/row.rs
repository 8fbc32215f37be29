//! Results of reads: rows and cells.
//!
//! Values are slices of the reply they came in. A kept slice keeps the whole reply alive, so copy
//! bytes that outlive the batch.

use basalt_idl::thrift2::{TColumnValue, TResult};
use bytes::Bytes;

use crate::error::{Error, Result};

/// The kind of a cell. Only raw scans return kinds other than [`CellKind::Put`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellKind {
    /// A value.
    #[default]
    Put,
    /// The tombstone of one version of a column.
    Delete,
    /// The tombstone of the cells of a family with one timestamp.
    DeleteFamilyVersion,
    /// The tombstone of all versions of a column up to a timestamp.
    DeleteColumn,
    /// The tombstone of all cells of a family up to a timestamp.
    DeleteFamily,
}

impl CellKind {
    /// Converts the code of the Thrift interface. A missing code means a value.
    fn from_code(code: Option<i8>) -> CellKind {
        match code {
            Some(8) => CellKind::Delete,
            Some(10) => CellKind::DeleteFamilyVersion,
            Some(12) => CellKind::DeleteColumn,
            Some(14) => CellKind::DeleteFamily,
            _ => CellKind::Put,
        }
    }
}

/// One version of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The family.
    pub family: Bytes,
    /// The qualifier, which may be empty.
    pub qualifier: Bytes,
    /// The value.
    pub value: Bytes,
    /// Milliseconds since 1970, unless the writer chose otherwise.
    pub timestamp: i64,
    /// A value or a tombstone.
    pub kind: CellKind,
    /// Tags in the form of HBase's cells, each with its length. Empty, unless
    /// [`ClusterOptions::tags`](crate::native::ClusterOptions::tags) asks for them.
    pub tags: Bytes,
}

/// A row, or a piece of it when the scan asked for pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The row key.
    pub key: Bytes,
    /// By family, qualifier, newest first.
    pub cells: Vec<Cell>,
    /// Whether the row goes on in the next piece.
    pub partial: bool,
}

impl Row {
    /// The newest value of a column.
    pub fn value(&self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>) -> Option<&Bytes> {
        self.versions(family, qualifier).next().map(|cell| &cell.value)
    }

    /// The versions of a column, newest first.
    pub fn versions(
        &self,
        family: impl AsRef<[u8]>,
        qualifier: impl AsRef<[u8]>,
    ) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.family == family.as_ref() && cell.qualifier == qualifier.as_ref())
    }

    /// A row from a reply, `None` if it was not found.
    pub(crate) fn from_thrift(result: TResult) -> Option<Row> {
        let key = result.row?;
        Some(Row {
            key,
            cells: result.column_values.into_iter().map(Cell::from).collect(),
            partial: result.partial,
        })
    }
}

impl From<TColumnValue> for Cell {
    fn from(cell: TColumnValue) -> Self {
        Cell {
            family: cell.family,
            qualifier: cell.qualifier,
            value: cell.value,
            timestamp: cell.timestamp.unwrap_or_default(),
            kind: CellKind::from_code(cell.cell_type),
            tags: Bytes::new(),
        }
    }
}

/// Reads a counter: eight bytes, big-endian.
pub fn counter_from_value(value: &[u8]) -> Result<i64> {
    match <[u8; 8]>::try_from(value) {
        Ok(bytes) => Ok(i64::from_be_bytes(bytes)),
        Err(_) => Err(Error::InvalidRequest(format!(
            "value is not a counter: it has {} bytes instead of 8",
            value.len()
        ))),
    }
}
