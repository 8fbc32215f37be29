//! Thrift types to engine requests. Rules of HBase's handlers are described by their effect on
//! clients.

use std::collections::BTreeMap;

use basalt_engine::cell::LATEST;
use basalt_engine::op::TimeRange;
use basalt_idl::thrift2;
use bytes::Bytes;

use crate::service::Failure;
pub(super) use crate::service::arguments::{check_cell_rights, check_row, has_regex, row, select, table};

mod puts;
mod reads;
mod writes;

pub(super) use puts::Puts;
pub(super) use reads::{filter, get, positive, scan, versions};
pub(super) use writes::{delete, durability, put, row_mutations, write_family};

/// The attribute with the visibility of a mutation's cells (HBase: `VisibilityConstants`).
pub(super) const VISIBILITY: &str = "VISIBILITY";

/// Attributes of an operation.
pub(super) type Attributes = Option<BTreeMap<Bytes, Bytes>>;

/// Maps `items` with exact capacity; `collect::<Result<_>>()` would lose the size hint.
pub(super) fn all<'i, I, T>(
    items: &'i [I],
    mut of: impl FnMut(&'i I) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut made = Vec::with_capacity(items.len());
    for item in items {
        made.push(of(item)?);
    }
    Ok(made)
}

/// A timestamp to write with: LATEST, also when given explicitly, means that the server assigns it.
pub(super) fn write_time(timestamp: Option<i64>) -> Result<Option<i64>, Failure> {
    match timestamp {
        None | Some(LATEST) => Ok(None),
        Some(timestamp) if timestamp < 0 => Err(negative_time(timestamp)),
        Some(timestamp) => Ok(Some(timestamp)),
    }
}

fn negative_time(timestamp: i64) -> Failure {
    Failure::illegal_argument(format!("Timestamp cannot be negative. ts={timestamp}"))
}

/// `[min, max)`.
pub(super) fn time_range(min: i64, max: i64) -> Result<TimeRange, Failure> {
    if min < 0 || max < 0 {
        return Err(Failure::illegal_argument(format!(
            "Timestamp cannot be negative. minStamp:{min}, maxStamp:{max}"
        )));
    }
    if max < min {
        return Err(Failure::illegal_argument(format!(
            "maxStamp is smaller than minStamp: {max} < {min}"
        )));
    }
    Ok(TimeRange { min, max })
}

/// The names of attributes that are texts.
pub(super) fn names(attributes: &Attributes) -> impl Iterator<Item = &str> {
    let names = attributes.iter().flat_map(BTreeMap::keys);
    names.filter_map(|name| str::from_utf8(name).ok())
}

/// The names of a put's attributes, its visibility among them, which HBase keeps as one.
pub(super) fn names_of_put(put: &thrift2::TPut) -> impl Iterator<Item = &str> {
    let labels = put.cell_visibility.as_ref().map(|_| VISIBILITY);
    names(&put.attributes).chain(labels)
}

/// The `_ttl` attribute: 8 bytes of big-endian milliseconds.
pub(super) fn ttl(attributes: &Attributes) -> Result<Option<i64>, Failure> {
    let Some(value) = attribute(attributes, b"_ttl") else {
        return Ok(None);
    };
    <[u8; 8]>::try_from(&value[..])
        .map(|bytes| Some(i64::from_be_bytes(bytes)))
        .map_err(|_| {
            Failure::illegal_argument(format!(
                "the attribute _ttl must be 8 bytes of milliseconds, but is {} bytes",
                value.len()
            ))
        })
}

/// The `_raw_` attribute of a read: tombstones and the cells that they hide are wanted too (HBase:
/// `Scan.isRaw`, which a Get has too).
pub(super) fn raw(attributes: &Attributes) -> Result<bool, Failure> {
    Ok(flag(attributes, "_raw_")?.unwrap_or(false))
}

/// Whether an increment or append returns its new cells: its field, else the attribute `_rr_` that HBase
/// keeps it in, else yes.
pub(super) fn returns_results(field: Option<bool>, attributes: &Attributes) -> Result<bool, Failure> {
    match field {
        Some(wanted) => Ok(wanted),
        None => Ok(flag(attributes, "_rr_")?.unwrap_or(true)),
    }
}

/// An attribute that HBase reads as a boolean: one byte, false when it is zero.
fn flag(attributes: &Attributes, name: &str) -> Result<Option<bool>, Failure> {
    match attribute(attributes, name.as_bytes()).map(|value| &value[..]) {
        None => Ok(None),
        Some([byte]) => Ok(Some(*byte != 0)),
        Some(value) => Err(Failure::illegal_argument(format!(
            "the attribute {name} must be 1 byte, but is {} bytes",
            value.len()
        ))),
    }
}

fn attribute<'a>(attributes: &'a Attributes, name: &[u8]) -> Option<&'a Bytes> {
    attributes.as_ref()?.get(name)
}

/// `family:qualifier`, split at the first colon; without a colon there is no qualifier.
pub(super) fn split_column(column: &Bytes) -> (Bytes, Option<Bytes>) {
    match column.iter().position(|byte| *byte == b':') {
        None => (column.clone(), None),
        Some(at) => (column.slice(..at), Some(column.slice(at + 1..))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn columns_split_at_the_first_colon() {
        for (column, family, qualifier) in [
            ("f", "f", None),
            ("f:", "f", Some("")),
            ("f:q", "f", Some("q")),
            ("f:a:b", "f", Some("a:b")),
        ] {
            assert_eq!(
                split_column(&bytes(column)),
                (bytes(family), qualifier.map(bytes))
            );
        }
    }

    #[test]
    fn times_and_rows_are_checked() {
        assert_eq!(write_time(Some(LATEST)).unwrap(), None);
        assert!(write_time(Some(-1)).is_err());
        assert!(time_range(5, 4).is_err());
        assert!(row(Some(&Bytes::new())).is_err());
        let most = basalt_engine::cell::ROW_MAX_BYTES;
        assert!(row(Some(&Bytes::from(vec![1; most]))).is_ok());
        let error = row(Some(&Bytes::from(vec![1; 40_000]))).unwrap_err();
        assert!(error.message().contains("40000") && error.message().contains("32767"));
    }
}
