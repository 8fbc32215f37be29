//! Decoding of puts, deletes and atomic groups of both services.

use basalt_engine::op::{RowMutation, Write};
use basalt_engine::schema::{Cut, Durability};
use basalt_idl::thrift2;

use super::{row, ttl, write_time};
use crate::service::{Failure, writes};

/// `TDurability`; an unknown code falls back to the table's setting.
pub(in crate::thrift) fn durability(durability: Option<thrift2::TDurability>) -> Durability {
    match durability {
        Some(thrift2::TDurability::SKIP_WAL) => Durability::SkipWal,
        Some(thrift2::TDurability::ASYNC_WAL) => Durability::AsyncWal,
        Some(thrift2::TDurability::SYNC_WAL) => Durability::SyncWal,
        Some(thrift2::TDurability::FSYNC_WAL) => Durability::FsyncWal,
        _ => Durability::UseDefault,
    }
}

/// The writes of a `TPut`. Types and tags of its cells are ignored, as in HBase's gateway.
pub(in crate::thrift) fn put(put: &thrift2::TPut) -> Result<RowMutation<'_>, Failure> {
    let mut mutation = writes::mutation(row(Some(&put.row))?, durability(put.durability));
    let ttl_ms = ttl(&put.attributes)?;
    if put.column_values.is_empty() {
        return Err(Failure::illegal_argument("No columns to insert"));
    }
    for value in &put.column_values {
        mutation.writes.push(Write::Put {
            family: &value.family,
            qualifier: &value.qualifier,
            timestamp: write_time(value.timestamp.or(put.timestamp))?,
            value: &value.value,
            ttl_ms,
        });
    }
    Ok(mutation)
}

/// The writes of a `TDelete`. With `columns` set, even to an empty list, the delete's own timestamp is
/// ignored, and an empty list deletes the row, as in HBase's gateway.
pub(in crate::thrift) fn delete(delete: &thrift2::TDelete) -> Result<RowMutation<'_>, Failure> {
    let mut mutation = writes::mutation(row(Some(&delete.row))?, durability(delete.durability));
    let Some(columns) = &delete.columns else {
        mutation.writes.push(Write::DeleteRow {
            timestamp: write_time(delete.timestamp)?,
        });
        return Ok(mutation);
    };
    if columns.is_empty() {
        mutation.writes.push(Write::DeleteRow { timestamp: None });
    }
    for column in columns {
        let family = &column.family[..];
        let qualifier = column.qualifier.as_deref().unwrap_or_default();
        let timestamp = write_time(column.timestamp)?;
        let write = match delete.delete_type {
            thrift2::TDeleteType::DELETE_COLUMN => Write::DeleteVersion {
                family,
                qualifier,
                timestamp,
            },
            thrift2::TDeleteType::DELETE_COLUMNS => Write::DeleteColumn {
                family,
                qualifier,
                timestamp,
            },
            thrift2::TDeleteType::DELETE_FAMILY => {
                // A family delete replaces earlier deletes in the same family (HBase's Delete.addFamily).
                mutation
                    .writes
                    .retain(|write| write_family(write) != Some(family));
                Write::DeleteFamily { family, timestamp }
            }
            // An explicit LATEST is a timestamp here: the one of this write.
            thrift2::TDeleteType::DELETE_FAMILY_VERSION => Write::DeleteFamilyVersion {
                family,
                timestamp: column.timestamp.ok_or_else(|| {
                    Failure::illegal_argument(format!(
                        "DELETE_FAMILY_VERSION of family {} needs a timestamp",
                        Cut(family)
                    ))
                })?,
            },
            other => return Err(Failure::illegal_argument(format!("unknown delete type {other}"))),
        };
        mutation.writes.push(write);
    }
    Ok(mutation)
}

/// The family of a write, unless it is of the whole row.
pub(in crate::thrift) fn write_family<'a>(write: &Write<'a>) -> Option<&'a [u8]> {
    match write {
        Write::Put { family, .. }
        | Write::DeleteVersion { family, .. }
        | Write::DeleteVersionAtWrite { family, .. }
        | Write::DeleteColumn { family, .. }
        | Write::DeleteFamily { family, .. }
        | Write::DeleteFamilyVersion { family, .. } => Some(family),
        Write::DeleteRow { .. } => None,
    }
}

/// The writes of a `TRowMutations`, one atomic step as durable as the most durable of its parts.
/// Every inner row must be the outer one. `table_default`: the table's durability, for parts that
/// set none.
pub(in crate::thrift) fn row_mutations(
    mutations: &thrift2::TRowMutations,
    table_default: Durability,
) -> Result<RowMutation<'_>, Failure> {
    let outer = row(Some(&mutations.row))?;
    let mut whole = writes::mutation(outer, Durability::SkipWal);
    for inner in &mutations.mutations {
        let part = match inner {
            thrift2::TMutation::Put(inner) => put(inner)?,
            thrift2::TMutation::DeleteSingle(inner) => delete(inner)?,
        };
        if part.row != &outer[..] {
            return Err(Failure::plain_io(format!(
                "The row in the recently added Put/Delete {} doesn't match the original one {}",
                Cut(part.row),
                Cut(outer)
            )));
        }
        whole.durability = stronger(whole.durability, part.durability, table_default);
        whole.writes.extend(part.writes.iter().copied());
    }
    Ok(whole)
}

fn stronger(left: Durability, right: Durability, table_default: Durability) -> Durability {
    let strength = |durability| match durability {
        Durability::SkipWal => 0,
        Durability::AsyncWal => 1,
        Durability::UseDefault | Durability::SyncWal => 2,
        Durability::FsyncWal => 3,
    };
    let right = match right {
        Durability::UseDefault => table_default,
        asked => asked,
    };
    if strength(right) > strength(left) {
        right
    } else {
        left
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn a_family_delete_replaces_earlier_ones_of_its_family() {
        let column = |qualifier: &'static str| thrift2::TColumn {
            family: bytes("f"),
            qualifier: Some(bytes(qualifier)),
            timestamp: None,
        };
        let whole = thrift2::TDelete {
            row: bytes("r"),
            columns: Some(vec![column("a"), column("b")]),
            timestamp: Some(7),
            delete_type: thrift2::TDeleteType::DELETE_FAMILY,
            attributes: None,
            durability: None,
            cell_visibility: None,
        };
        let mutation = delete(&whole).unwrap();
        assert!(matches!(
            mutation.writes[..],
            [Write::DeleteFamily { timestamp: None, .. }]
        ));
    }

    #[test]
    fn a_group_is_as_durable_as_its_most_durable_part() {
        use Durability::{AsyncWal, FsyncWal, SkipWal, SyncWal, UseDefault};
        for (parts, table_default, whole) in [
            (&[SkipWal, SkipWal][..], FsyncWal, SkipWal),
            (&[AsyncWal, SkipWal], FsyncWal, AsyncWal),
            (&[SkipWal, UseDefault, SyncWal], FsyncWal, FsyncWal),
            (&[AsyncWal, UseDefault], SkipWal, AsyncWal),
            (&[AsyncWal, UseDefault], UseDefault, UseDefault),
            (&[SyncWal, FsyncWal, AsyncWal], UseDefault, FsyncWal),
        ] {
            let strongest = parts
                .iter()
                .fold(SkipWal, |left, right| stronger(left, *right, table_default));
            assert_eq!(strongest, whole, "{parts:?}");
        }
    }
}
