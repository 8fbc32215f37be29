//! A delete of one row.
//!
//! Thrift's `TDelete` has one kind for all its columns, so the constructor names the kind. Different kinds
//! for one row in one atomic step go through [`RowMutations`](super::RowMutations).

use basalt_idl::thrift2::{TColumn, TDelete, TDeleteType};
use bytes::Bytes;

use super::{IntoBytes, check_row, column, family};
use crate::error::{Error, Result};
use crate::options::Durability;

/// A delete of one row, atomic: of the whole row, families, columns or versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    inner: TDelete,
}

impl Delete {
    /// The whole row, up to now or up to [`Delete::up_to`].
    pub fn row(row: impl IntoBytes) -> Delete {
        Delete {
            inner: TDelete {
                row: row.into_bytes(),
                ..TDelete::default()
            },
        }
    }

    /// All versions of the columns named, up to now or up to the timestamp each is named with.
    pub fn columns(row: impl IntoBytes) -> Delete {
        Delete::of(row, TDeleteType::DELETE_COLUMNS)
    }

    /// One version of the columns named: the newest, or that with exactly the timestamp named.
    pub fn versions(row: impl IntoBytes) -> Delete {
        Delete::of(row, TDeleteType::DELETE_COLUMN)
    }

    /// All cells of the families named, up to now or up to the timestamp each is named with.
    pub fn families(row: impl IntoBytes) -> Delete {
        Delete::of(row, TDeleteType::DELETE_FAMILY)
    }

    /// All cells of the families named that have exactly the timestamp named.
    pub fn family_versions(row: impl IntoBytes) -> Delete {
        Delete::of(row, TDeleteType::DELETE_FAMILY_VERSION)
    }

    fn of(row: impl IntoBytes, kind: TDeleteType) -> Delete {
        let mut delete = Delete::row(row);
        delete.inner.delete_type = kind;
        delete.inner.columns = Some(Vec::new());
        delete
    }

    /// Limits a delete of the whole row to cells with this timestamp or an older one.
    #[must_use]
    pub fn up_to(mut self, timestamp_ms: i64) -> Delete {
        self.inner.timestamp = Some(timestamp_ms);
        self
    }

    /// Names a column.
    #[must_use]
    pub fn column(self, family: impl IntoBytes, qualifier: impl IntoBytes) -> Delete {
        self.push(column(family, qualifier), None)
    }

    /// Names a column and a timestamp in milliseconds.
    #[must_use]
    pub fn column_at(self, family: impl IntoBytes, qualifier: impl IntoBytes, timestamp_ms: i64) -> Delete {
        self.push(column(family, qualifier), Some(timestamp_ms))
    }

    /// Names a family.
    #[must_use]
    pub fn family(self, name: impl IntoBytes) -> Delete {
        self.push(family(name), None)
    }

    /// Names a family and a timestamp in milliseconds.
    #[must_use]
    pub fn family_at(self, name: impl IntoBytes, timestamp_ms: i64) -> Delete {
        self.push(family(name), Some(timestamp_ms))
    }

    fn push(mut self, named: TColumn, timestamp: Option<i64>) -> Delete {
        let columns = self.inner.columns.get_or_insert_default();
        columns.push(TColumn { timestamp, ..named });
        self
    }

    /// When the delete is acknowledged. Default: as the table says.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Delete {
        self.inner.durability = Some(durability);
        self
    }

    /// The row key.
    pub fn row_key(&self) -> &Bytes {
        &self.inner.row
    }

    pub(crate) fn into_thrift(self) -> Result<TDelete> {
        check_row(&self.inner.row)?;
        let wrong = |text: &str| Err(Error::InvalidRequest(text.to_owned()));
        let Some(columns) = &self.inner.columns else {
            return Ok(self.inner);
        };
        // HBase deletes the whole row for an empty list, and ignores the timestamp of the delete for any
        // list.
        if columns.is_empty() {
            return wrong("delete of columns names none; use Delete::row for the whole row");
        }
        if self.inner.timestamp.is_some() {
            return wrong(
                "up_to limits a delete of the whole row; name columns with their timestamp instead",
            );
        }
        let of_families = matches!(
            self.inner.delete_type,
            TDeleteType::DELETE_FAMILY | TDeleteType::DELETE_FAMILY_VERSION
        );
        // HBase would take a family under DELETE_COLUMNS for the column with the empty qualifier.
        if columns
            .iter()
            .any(|named| named.qualifier.is_some() == of_families)
        {
            return wrong(
                "delete mixes columns and families; make a delete for each and join them in RowMutations",
            );
        }
        let exact = self.inner.delete_type == TDeleteType::DELETE_FAMILY_VERSION;
        if exact && columns.iter().any(|named| named.timestamp.is_none()) {
            return wrong("delete of one version of a family needs a timestamp");
        }
        Ok(self.inner)
    }
}
