//! Increment and append: from the stored cells to the new ones.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::cell::CellType;
use crate::error::{Error, Result};
use crate::op::RowUpdate;
use crate::region::plan::{check_cell_size, check_row, family_index};
use crate::region::{PlannedCell, RowPlan};
use crate::schema::TableDescriptor;

/// Properties that an update takes over from the cell that it replaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    /// Timestamp of the cell.
    pub timestamp: i64,
    /// Value of the cell.
    pub value: Vec<u8>,
    /// Time to live of the cell in milliseconds.
    pub ttl_ms: Option<i64>,
}

/// Checks an update as far as possible without stored data.
pub(crate) fn check_update(
    table: &TableDescriptor,
    row: &[u8],
    update: &RowUpdate<'_>,
    cell_max_bytes: usize,
) -> Result<()> {
    check_row(row)?;
    let check = |family: &[u8], qualifier: &[u8], value_len: usize| {
        family_index(table, family)?;
        check_cell_size(
            row.len() + family.len() + qualifier.len() + value_len,
            cell_max_bytes,
        )
    };
    match update {
        RowUpdate::Increment(columns) if !columns.is_empty() => columns
            .iter()
            .try_for_each(|column| check(column.family, column.qualifier, 8)),
        RowUpdate::Append(columns) if !columns.is_empty() => columns
            .iter()
            .try_for_each(|column| check(column.family, column.qualifier, column.value.len())),
        _ => Err(Error::InvalidArgument("No columns to update".into())),
    }
}

/// The cells that an update writes: new values, each at `now` or at the time of the cell it
/// replaces, whichever is later. A column named twice gets both amounts, or both pieces in order.
/// Without a `ttl_ms` of its own, a new cell has the time to live of the one it replaces, counted
/// from its own time (HBase: `TagUtil.carryForwardTags`).
/// REQUIRES: [`check_update`] passed; the row's lock is held exclusively; `newest` reads the newest
/// version of a column.
pub(crate) fn plan_update<'a>(
    table: &TableDescriptor,
    row: &'a [u8],
    update: &RowUpdate<'a>,
    ttl_ms: Option<i64>,
    now: i64,
    cell_max_bytes: usize,
    mut newest: impl FnMut(usize, &[u8]) -> Result<Option<Stored>>,
) -> Result<RowPlan<'a>> {
    let mut columns: BTreeMap<(usize, &'a [u8]), Stored> = BTreeMap::new();
    let mut column =
        |family: &[u8], qualifier: &'a [u8], change: &mut dyn FnMut(&mut Vec<u8>, bool) -> Result<()>| {
            let index = family_index(table, family)?;
            let entry = match columns.entry((index, qualifier)) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let stored = newest(index, qualifier)?;
                    let absent = stored.is_none();
                    let entry = entry.insert(stored.unwrap_or_default());
                    entry.timestamp = entry.timestamp.max(now);
                    change(&mut entry.value, absent)?;
                    return Ok(());
                }
            };
            change(&mut entry.value, false)
        };
    match update {
        RowUpdate::Increment(increments) => {
            for increment in increments {
                column(increment.family, increment.qualifier, &mut |value, absent| {
                    let before = if absent { 0 } else { counter(value)? };
                    value.clear();
                    value.extend_from_slice(&before.wrapping_add(increment.amount).to_be_bytes());
                    Ok(())
                })?;
            }
        }
        RowUpdate::Append(appends) => {
            for append in appends {
                column(append.family, append.qualifier, &mut |value, _| {
                    let family_len = append.family.len();
                    let bytes =
                        row.len() + family_len + append.qualifier.len() + value.len() + append.value.len();
                    check_cell_size(bytes, cell_max_bytes)?;
                    // Exact: a large value does not grow by doubling.
                    value.reserve_exact(append.value.len());
                    value.extend_from_slice(append.value);
                    Ok(())
                })?;
            }
        }
    }
    let cells = columns
        .into_iter()
        .map(|((family, qualifier), new)| PlannedCell {
            family,
            qualifier,
            timestamp: new.timestamp,
            cell_type: CellType::Put,
            value: Cow::Owned(new.value),
            ttl_ms: ttl_ms.or(new.ttl_ms),
        })
        .collect();
    Ok(RowPlan::of_cells(row, cells))
}

/// A stored counter; the text of the refusal is HBase's.
fn counter(value: &[u8]) -> Result<i64> {
    value
        .try_into()
        .map(i64::from_be_bytes)
        .map_err(|_| Error::DoNotRetry(format!("Field is not a long, it's {} bytes wide", value.len())))
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::*;
    use crate::op::{ColumnAppend, ColumnIncrement};
    use crate::schema::{FamilyDescriptor, TableName};

    fn table() -> TableDescriptor {
        let families = [&b"f"[..], b"g"].map(FamilyDescriptor::new).to_vec();
        TableDescriptor::new(TableName::parse(b"t").unwrap(), families)
    }

    fn add(family: &'static [u8], qualifier: &'static [u8], amount: i64) -> ColumnIncrement<'static> {
        ColumnIncrement {
            family,
            qualifier,
            amount,
        }
    }

    fn plan(
        update: &RowUpdate<'static>,
        stored: Option<(i64, &[u8])>,
    ) -> Result<SmallVec<[PlannedCell<'static>; 1]>> {
        plan_update(&table(), b"r", update, None, 100, 64, |_, _| {
            Ok(stored.map(|(timestamp, value)| Stored {
                timestamp,
                value: value.to_vec(),
                ttl_ms: None,
            }))
        })
        .map(|plan| plan.cells)
    }

    #[test]
    fn counters_add_wrap_and_come_out_sorted() {
        let update = RowUpdate::Increment(vec![add(b"g", b"q", 1), add(b"f", b"z", 2), add(b"g", b"q", 3)]);
        let cells = plan(&update, Some((150, &i64::MAX.to_be_bytes()))).unwrap();
        let shown: Vec<_> = cells
            .iter()
            .map(|cell| (cell.family, cell.qualifier, cell.timestamp))
            .collect();
        assert_eq!(shown, [(0, &b"z"[..], 150), (1, b"q", 150)]);
        assert_eq!(*cells[1].value, (i64::MIN + 3).to_be_bytes());
        let fresh = plan(&update, None).unwrap();
        assert_eq!(
            (fresh[0].timestamp, &*fresh[1].value),
            (100, &4_i64.to_be_bytes()[..])
        );
    }

    #[test]
    fn a_new_cell_lives_as_long_as_the_old_one_unless_told_otherwise() {
        let update = RowUpdate::Increment(vec![add(b"f", b"q", 1)]);
        for (stored, asked, lives) in [
            (None, None, None),
            (Some(7), None, Some(7)),
            (Some(7), Some(9), Some(9)),
        ] {
            let plan = plan_update(&table(), b"r", &update, asked, 100, 64, |_, _| {
                Ok(Some(Stored {
                    timestamp: 1,
                    value: 1_i64.to_be_bytes().to_vec(),
                    ttl_ms: stored,
                }))
            });
            assert_eq!(plan.unwrap().cells[0].ttl_ms, lives);
        }
    }

    #[test]
    fn a_value_that_is_no_counter_is_refused() {
        let update = RowUpdate::Increment(vec![add(b"f", b"q", 1)]);
        let refused = plan(&update, Some((1, b"abc"))).unwrap_err();
        assert_eq!(refused.to_string(), "Field is not a long, it's 3 bytes wide");
        assert!(
            plan(&update, Some((1, b""))).is_err(),
            "an empty value is no counter either"
        );
    }

    #[test]
    fn appends_lengthen_up_to_the_limit() {
        let piece = |value| ColumnAppend {
            family: b"f",
            qualifier: b"q",
            value,
        };
        let update = RowUpdate::Append(vec![piece(b"b"), piece(b"c")]);
        assert_eq!(*plan(&update, Some((1, b"a"))).unwrap()[0].value, *b"abc");
        assert_eq!(*plan(&update, None).unwrap()[0].value, *b"bc");
        // Row, family and qualifier count, and both pieces.
        assert!(plan(&update, Some((1, &[b'a'; 59]))).is_ok());
        assert!(plan(&update, Some((1, &[b'a'; 60]))).is_err());
    }
}
