//! Conditions on a column, and several changes of one row as one.

use basalt_idl::thrift2::{TMutation, TRowMutations};
use bytes::Bytes;

use super::{Delete, IntoBytes, Put, check_row};
use crate::error::{Error, Result};
use crate::options::CompareOperator;

/// A condition on the newest version of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub(crate) family: Bytes,
    pub(crate) qualifier: Bytes,
    pub(crate) operator: CompareOperator,
    /// `None`: the column must not be there.
    pub(crate) value: Option<Bytes>,
}

impl Check {
    /// The column has no value. HBase also accepts one of zero bytes.
    pub fn absent(family: impl IntoBytes, qualifier: impl IntoBytes) -> Check {
        Check {
            family: family.into_bytes(),
            qualifier: qualifier.into_bytes(),
            operator: CompareOperator::EQUAL,
            value: None,
        }
    }

    /// The column has this value.
    pub fn equal(family: impl IntoBytes, qualifier: impl IntoBytes, value: impl IntoBytes) -> Check {
        Check::compare(family, qualifier, CompareOperator::EQUAL, value)
    }

    /// `value operator stored` holds, byte by byte. The given value is on the left, as in HBase:
    /// with `GREATER` the check passes when `value` is greater than the stored one. It never passes
    /// for an absent column.
    pub fn compare(
        family: impl IntoBytes,
        qualifier: impl IntoBytes,
        operator: CompareOperator,
        value: impl IntoBytes,
    ) -> Check {
        Check {
            operator,
            value: Some(value.into_bytes()),
            ..Check::absent(family, qualifier)
        }
    }
}

/// Puts and deletes of one row, applied in one atomic step.
///
/// A delete up to now and a put without timestamp of the same column leave the put masked, in whichever
/// order they stand, because both carry the same server time: HBase's rule. Give the put a timestamp then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowMutations {
    row: Bytes,
    changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Put(Put),
    Delete(Delete),
}

impl RowMutations {
    /// No changes yet.
    pub fn new(row: impl IntoBytes) -> RowMutations {
        RowMutations {
            row: row.into_bytes(),
            changes: Vec::new(),
        }
    }

    /// Adds a put of the same row.
    #[must_use]
    pub fn put(mut self, put: Put) -> RowMutations {
        self.changes.push(Change::Put(put));
        self
    }

    /// Adds a delete of the same row.
    #[must_use]
    pub fn delete(mut self, delete: Delete) -> RowMutations {
        self.changes.push(Change::Delete(delete));
        self
    }

    pub(crate) fn into_thrift(self) -> Result<TRowMutations> {
        check_row(&self.row)?;
        if self.changes.is_empty() {
            return Err(Error::InvalidRequest("row mutations hold no change".to_owned()));
        }
        let mut mutations = Vec::with_capacity(self.changes.len());
        for change in self.changes {
            let (row, mutation) = match change {
                Change::Put(put) => (put.row().clone(), TMutation::Put(put.into_thrift()?)),
                Change::Delete(delete) => (
                    delete.row_key().clone(),
                    TMutation::DeleteSingle(delete.into_thrift()?),
                ),
            };
            if row != self.row {
                return Err(Error::InvalidRequest(
                    "row mutations hold a change of another row".to_owned(),
                ));
            }
            mutations.push(mutation);
        }
        Ok(TRowMutations {
            row: self.row,
            mutations,
        })
    }
}
