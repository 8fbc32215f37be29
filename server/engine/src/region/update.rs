//! Increment and append: from the stored cells to the new ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::cell::{CellType, LATEST};
use crate::error::{Error, Result};
use crate::op::RowUpdate;
use crate::region::plan::{check_row, family_index, negative_timestamp};
use crate::region::{PlannedCell, PlannedTags, RowPlan, Times};
use crate::schema::{CellLimit, TableDescriptor};

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

/// The new cell of a column.
struct New {
    cell: Stored,
    /// Whether the column had none.
    is_first: bool,
}

/// Checks an update as far as possible without stored data.
pub(crate) fn check_update(
    table: &TableDescriptor,
    row: &[u8],
    update: &RowUpdate<'_>,
    cell_max_bytes: CellLimit,
) -> Result<()> {
    check_row(row)?;
    let check = |family: &[u8], qualifier: &[u8], timestamp: Option<i64>, value_len: usize| {
        family_index(table, family)?;
        if let Some(timestamp) = timestamp.filter(|timestamp| *timestamp < 0) {
            return Err(negative_timestamp(timestamp));
        }
        cell_max_bytes.check(row.len() + family.len() + qualifier.len() + value_len)
    };
    match update {
        RowUpdate::Increment(columns) if !columns.is_empty() => columns
            .iter()
            .try_for_each(|column| check(column.family, column.qualifier, column.timestamp, 8)),
        RowUpdate::Append(columns) if !columns.is_empty() => columns.iter().try_for_each(|column| {
            check(
                column.family,
                column.qualifier,
                column.timestamp,
                column.value.len(),
            )
        }),
        _ => Err(Error::InvalidArgument("No columns to update".into())),
    }
}

/// The cells that an update writes, with HBase's times (`HRegion.reckonDelta`): a new version of a
/// column is later than the one that was read ([`RowTimes::update`]), whatever the client gave; the
/// first cell of a column has the client's time, or else the server's. A column named twice gets both
/// amounts, or both pieces in order, at the later time. Without a `ttl_ms` of its own, a new cell has
/// the time to live of the one that was read, counted from its own time (HBase:
/// `TagUtil.carryForwardTags`).
/// REQUIRES: [`check_update`] passed; the row's lock is held exclusively; `newest` reads the newest
/// version of a column.
pub(crate) fn plan_update<'a>(
    table: &TableDescriptor,
    row: &'a [u8],
    update: &RowUpdate<'a>,
    ttl_ms: Option<i64>,
    times: Times<'_>,
    cell_max_bytes: CellLimit,
    mut newest: impl FnMut(usize, &[u8]) -> Result<Option<Stored>>,
) -> Result<RowPlan<'a>> {
    let put = times.row.put(row, times.now)?;
    let delay_ms = times.row.ahead_of_tombstones(put, times.now);
    let mut columns: BTreeMap<(usize, &'a [u8]), New> = BTreeMap::new();
    let mut column = |family: &[u8],
                      qualifier: &'a [u8],
                      given: Option<i64>,
                      change: &mut dyn FnMut(&mut Vec<u8>, bool) -> Result<()>| {
        let index = family_index(table, family)?;
        let first_time = given.filter(|time| *time != LATEST).unwrap_or(put);
        match columns.entry((index, qualifier)) {
            Entry::Occupied(entry) => {
                let new = entry.into_mut();
                if new.is_first {
                    new.cell.timestamp = new.cell.timestamp.max(first_time);
                }
                change(&mut new.cell.value, false)
            }
            Entry::Vacant(entry) => {
                let stored = newest(index, qualifier)?;
                let is_first = stored.is_none();
                let mut cell = stored.unwrap_or_default();
                cell.timestamp = if is_first {
                    first_time
                } else {
                    times.row.update(cell.timestamp, put, times.now)
                };
                change(&mut entry.insert(New { cell, is_first }).cell.value, is_first)
            }
        }
    };
    match update {
        RowUpdate::Increment(increments) => {
            for increment in increments {
                let given = increment.timestamp;
                column(
                    increment.family,
                    increment.qualifier,
                    given,
                    &mut |value, absent| {
                        let before = if absent { 0 } else { counter(value)? };
                        value.clear();
                        value.extend_from_slice(&before.wrapping_add(increment.amount).to_be_bytes());
                        Ok(())
                    },
                )?;
            }
        }
        RowUpdate::Append(appends) => {
            for append in appends {
                let given = append.timestamp;
                column(append.family, append.qualifier, given, &mut |value, _| {
                    let family_len = append.family.len();
                    let bytes =
                        row.len() + family_len + append.qualifier.len() + value.len() + append.value.len();
                    cell_max_bytes.check(bytes)?;
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
            timestamp: new.cell.timestamp,
            cell_type: CellType::Put,
            value: Cow::Owned(new.cell.value),
            tags: PlannedTags::of_ttl(ttl_ms.or(new.cell.ttl_ms)),
        })
        .collect();
    let mut plan = RowPlan::of_cells(row, cells);
    plan.ahead_ms = times.row.updates_ahead(times.now).max(put - times.now);
    plan.delay_ms = delay_ms;
    Ok(plan)
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
    use crate::region::RowTimes;
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
            timestamp: None,
        }
    }

    fn at_100(row: &RowTimes) -> Times<'_> {
        Times {
            now: 100,
            put_floor: 0,
            row,
        }
    }

    fn plan(
        update: &RowUpdate<'static>,
        stored: Option<(i64, &[u8])>,
    ) -> Result<SmallVec<[PlannedCell<'static>; 1]>> {
        let row_times = RowTimes::default();
        plan_update(
            &table(),
            b"r",
            update,
            None,
            at_100(&row_times),
            CellLimit::of_server(64),
            |_, _| {
                Ok(stored.map(|(timestamp, value)| Stored {
                    timestamp,
                    value: value.to_vec(),
                    ttl_ms: None,
                }))
            },
        )
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
        assert_eq!(
            shown,
            [(0, &b"z"[..], 151), (1, b"q", 151)],
            "later than the stored cells"
        );
        assert_eq!(*cells[1].value, (i64::MIN + 3).to_be_bytes());
        let fresh = plan(&update, None).unwrap();
        assert_eq!(
            (fresh[0].timestamp, &*fresh[1].value),
            (100, &4_i64.to_be_bytes()[..])
        );
    }

    /// A client's time is that of the first cell of a column only.
    #[test]
    fn a_time_that_the_client_chose_is_for_columns_without_a_cell() {
        let at = |timestamp, amount| ColumnIncrement {
            timestamp,
            ..add(b"f", b"q", amount)
        };
        let time = |columns: &[ColumnIncrement<'static>], stored: Option<i64>| {
            let one = 1_i64.to_be_bytes();
            let stored = stored.map(|timestamp| (timestamp, &one[..]));
            plan(&RowUpdate::Increment(columns.to_vec()), stored).unwrap()[0].timestamp
        };
        assert_eq!(time(&[at(Some(7), 1)], None), 7);
        assert_eq!(time(&[at(Some(700), 1)], None), 700);
        assert_eq!(time(&[at(Some(LATEST), 1)], None), 100);
        assert_eq!(time(&[at(Some(7), 1), at(Some(9), 1), at(Some(8), 1)], None), 9);
        assert_eq!(time(&[at(Some(7), 1)], Some(3)), 100, "there is a cell");
        assert_eq!(time(&[at(Some(7), 1)], Some(100)), 101);
        assert_eq!(time(&[at(Some(900), 1)], Some(500)), 501);
        let update = RowUpdate::Increment(vec![at(Some(-1), 1)]);
        let refused = check_update(&table(), b"r", &update, CellLimit::of_server(64)).unwrap_err();
        assert_eq!(refused.to_string(), "Timestamp cannot be negative. ts=-1");
    }

    #[test]
    fn a_new_cell_lives_as_long_as_the_old_one_unless_told_otherwise() {
        let update = RowUpdate::Increment(vec![add(b"f", b"q", 1)]);
        for (stored, asked, lives) in [
            (None, None, None),
            (Some(7), None, Some(7)),
            (Some(7), Some(9), Some(9)),
        ] {
            let row_times = RowTimes::default();
            let times = at_100(&row_times);
            let plan = plan_update(
                &table(),
                b"r",
                &update,
                asked,
                times,
                CellLimit::of_server(64),
                |_, _| {
                    Ok(Some(Stored {
                        timestamp: 1,
                        value: 1_i64.to_be_bytes().to_vec(),
                        ttl_ms: stored,
                    }))
                },
            );
            assert_eq!(plan.unwrap().cells[0].tags, PlannedTags::of_ttl(lives));
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
            timestamp: None,
        };
        let update = RowUpdate::Append(vec![piece(b"b"), piece(b"c")]);
        assert_eq!(*plan(&update, Some((1, b"a"))).unwrap()[0].value, *b"abc");
        assert_eq!(*plan(&update, None).unwrap()[0].value, *b"bc");
        // Row, family and qualifier count, and both pieces.
        assert!(plan(&update, Some((1, &[b'a'; 59]))).is_ok());
        assert!(plan(&update, Some((1, &[b'a'; 60]))).is_err());
    }
}
