//! Writes to one row: values, sums, and bytes behind values.

use std::collections::BTreeMap;
use std::time::Duration;

use basalt_idl::thrift2::{TAppend, TColumnIncrement, TColumnValue, TIncrement, TPut};
use bytes::Bytes;

use super::{IntoBytes, check_row};
use crate::error::{Error, Result};
use crate::options::Durability;

/// HBase's attribute for the time to live of the cells of a write.
const TTL_ATTRIBUTE: &[u8] = b"_ttl";

/// Cells to write to one row, atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    inner: TPut,
}

impl Put {
    /// A put without cells yet.
    pub fn new(row: impl IntoBytes) -> Put {
        Put {
            inner: TPut {
                row: row.into_bytes(),
                ..TPut::default()
            },
        }
    }

    /// Adds a cell with the server's time, or that of [`Put::timestamp`].
    #[must_use]
    pub fn cell(mut self, family: impl IntoBytes, qualifier: impl IntoBytes, value: impl IntoBytes) -> Put {
        self.inner.column_values.push(cell(family, qualifier, value));
        self
    }

    /// Adds a cell with a timestamp of its own, in milliseconds.
    #[must_use]
    pub fn cell_at(
        mut self,
        family: impl IntoBytes,
        qualifier: impl IntoBytes,
        timestamp_ms: i64,
        value: impl IntoBytes,
    ) -> Put {
        let timestamp = Some(timestamp_ms);
        self.inner.column_values.push(TColumnValue {
            timestamp,
            ..cell(family, qualifier, value)
        });
        self
    }

    /// The timestamp of cells that have none of their own, in milliseconds.
    #[must_use]
    pub fn timestamp(mut self, timestamp_ms: i64) -> Put {
        self.inner.timestamp = Some(timestamp_ms);
        self
    }

    /// Time to live of the cells, if that is shorter than their family's.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Put {
        set_ttl(self.inner.attributes.get_or_insert_default(), ttl);
        self
    }

    /// When the put is acknowledged. Default: as the table says.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Put {
        self.inner.durability = Some(durability);
        self
    }

    /// Sets an attribute of the request. HBase keeps some of its own options in attributes.
    #[must_use]
    pub fn attribute(mut self, name: impl IntoBytes, value: impl IntoBytes) -> Put {
        let attributes = self.inner.attributes.get_or_insert_default();
        attributes.insert(name.into_bytes(), value.into_bytes());
        self
    }

    /// The row key.
    pub fn row(&self) -> &Bytes {
        &self.inner.row
    }

    pub(crate) fn into_thrift(self) -> Result<TPut> {
        check_row(&self.inner.row)?;
        not_empty(self.inner.column_values.len(), "put")?;
        for cell in &self.inner.column_values {
            check_timestamp(cell.timestamp)?;
        }
        check_timestamp(self.inner.timestamp)?;
        Ok(self.inner)
    }
}

/// Additions to counters of one row, atomically. A missing counter is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    inner: TIncrement,
}

impl Increment {
    /// An increment without columns yet.
    pub fn new(row: impl IntoBytes) -> Increment {
        Increment {
            inner: TIncrement {
                row: row.into_bytes(),
                ..TIncrement::default()
            },
        }
    }

    /// Adds `amount` to a column.
    #[must_use]
    pub fn column(mut self, family: impl IntoBytes, qualifier: impl IntoBytes, amount: i64) -> Increment {
        self.inner.columns.push(TColumnIncrement {
            family: family.into_bytes(),
            qualifier: qualifier.into_bytes(),
            amount,
        });
        self
    }

    /// The new cells live so long.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Increment {
        set_ttl(self.inner.attributes.get_or_insert_default(), ttl);
        self
    }

    /// When the increment is acknowledged. Default: as the table says.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Increment {
        self.inner.durability = Some(durability);
        self
    }

    /// Sets an attribute of the request. HBase keeps some of its own options in attributes.
    #[must_use]
    pub fn attribute(mut self, name: impl IntoBytes, value: impl IntoBytes) -> Increment {
        let attributes = self.inner.attributes.get_or_insert_default();
        attributes.insert(name.into_bytes(), value.into_bytes());
        self
    }

    pub(crate) fn into_thrift(self) -> Result<TIncrement> {
        check_row(&self.inner.row)?;
        not_empty(self.inner.columns.len(), "increment")?;
        Ok(self.inner)
    }
}

/// Bytes to append to values of one row, atomically. A missing value is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    inner: TAppend,
}

impl Append {
    /// An append without columns yet.
    pub fn new(row: impl IntoBytes) -> Append {
        Append {
            inner: TAppend {
                row: row.into_bytes(),
                ..TAppend::default()
            },
        }
    }

    /// Appends `value` to a column.
    #[must_use]
    pub fn column(
        mut self,
        family: impl IntoBytes,
        qualifier: impl IntoBytes,
        value: impl IntoBytes,
    ) -> Append {
        self.inner.columns.push(cell(family, qualifier, value));
        self
    }

    /// The new cells live so long.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Append {
        set_ttl(self.inner.attributes.get_or_insert_default(), ttl);
        self
    }

    /// When the append is acknowledged. Default: as the table says.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Append {
        self.inner.durability = Some(durability);
        self
    }

    /// Sets an attribute of the request. HBase keeps some of its own options in attributes.
    #[must_use]
    pub fn attribute(mut self, name: impl IntoBytes, value: impl IntoBytes) -> Append {
        let attributes = self.inner.attributes.get_or_insert_default();
        attributes.insert(name.into_bytes(), value.into_bytes());
        self
    }

    pub(crate) fn into_thrift(self) -> Result<TAppend> {
        check_row(&self.inner.row)?;
        not_empty(self.inner.columns.len(), "append")?;
        Ok(self.inner)
    }
}

fn cell(family: impl IntoBytes, qualifier: impl IntoBytes, value: impl IntoBytes) -> TColumnValue {
    TColumnValue {
        family: family.into_bytes(),
        qualifier: qualifier.into_bytes(),
        value: value.into_bytes(),
        ..TColumnValue::default()
    }
}

fn set_ttl(attributes: &mut BTreeMap<Bytes, Bytes>, ttl: Duration) {
    let ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
    attributes.insert(
        Bytes::from_static(TTL_ATTRIBUTE),
        Bytes::copy_from_slice(&ttl_ms.to_be_bytes()),
    );
}

fn not_empty(columns: usize, what: &str) -> Result<()> {
    if columns == 0 {
        return Err(Error::InvalidRequest(format!("{what} names no column")));
    }
    Ok(())
}

fn check_timestamp(timestamp_ms: Option<i64>) -> Result<()> {
    match timestamp_ms {
        Some(negative) if negative < 0 => {
            Err(Error::InvalidRequest(format!("timestamp {negative} is negative")))
        }
        _ => Ok(()),
    }
}
