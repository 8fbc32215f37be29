//! Plans a write: from a mutation as requested to the cells that will be written.
//!
//! 1. [`check`] checks the request alone: families, lengths, sizes, timestamps. It runs before any
//!    lock is taken and says how the row must be locked.
//! 2. [`RowPlan`] is made under the row lock: times are assigned, tombstones without a time look up
//!    theirs, and the later of two writes with equal keys stays, because key and sequence id
//!    together must be unique in a memstore.
//!
//! All writes of a mutation whose times the server assigns get one time, as in HBase: a tombstone
//! also hides the cells of its own mutation, whatever their order.
//!
//! Nothing in here touches memstores or the log.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::cell::{CellType, FAMILY_MAX_BYTES, LATEST, ROW_MAX_BYTES, TTL_TAG_BYTES, ttl_tag};
use crate::error::{Error, Result};
use crate::op::{RowMutation, Write};
use crate::region::{LockMode, RowTimes};
use crate::schema::{CellLimit, Cut, TableDescriptor};

/// Checks that `row` can be a row key. The texts are HBase's.
pub(crate) fn check_row(row: &[u8]) -> Result<()> {
    if row.is_empty() {
        return Err(Error::InvalidArgument("Row length is 0".into()));
    }
    if row.len() > ROW_MAX_BYTES {
        return Err(Error::InvalidArgument(format!(
            "Row length {} is > {ROW_MAX_BYTES}",
            row.len()
        )));
    }
    Ok(())
}

/// The position of a family in its table.
pub(crate) fn family_index(table: &TableDescriptor, family: &[u8]) -> Result<usize> {
    const { assert!(FAMILY_MAX_BYTES <= u8::MAX as usize) };
    table
        .family(family)
        .map(|(index, _)| index)
        .ok_or_else(|| Error::NoSuchFamily {
            table: table.name.clone(),
            family: Cut(family).to_string(),
        })
}

/// Checks a mutation as far as possible without stored data; returns how its row must be locked.
pub(crate) fn check(
    table: &TableDescriptor,
    mutation: &RowMutation<'_>,
    cell_max_bytes: CellLimit,
) -> Result<LockMode> {
    check_writes(table, mutation.row, &mutation.writes, cell_max_bytes)
}

/// As [`check`], for the writes of a row.
pub(crate) fn check_writes(
    table: &TableDescriptor,
    row: &[u8],
    writes: &[Write<'_>],
    cell_max_bytes: CellLimit,
) -> Result<LockMode> {
    check_row(row)?;
    if writes.is_empty() {
        return Err(Error::InvalidArgument("No columns to insert".into()));
    }
    let mut mode = LockMode::Shared;
    for write in writes {
        let (family, qualifier, timestamp, value) = match *write {
            Write::Put {
                family,
                qualifier,
                timestamp,
                value,
                ..
            } => (Some(family), qualifier, timestamp, value),
            Write::DeleteVersion {
                family,
                qualifier,
                timestamp,
            } => {
                if given(timestamp).is_none() {
                    mode = LockMode::Exclusive;
                }
                (Some(family), qualifier, timestamp, &b""[..])
            }
            Write::DeleteVersionAtWrite { family, qualifier } => (Some(family), qualifier, None, &b""[..]),
            Write::DeleteColumn {
                family,
                qualifier,
                timestamp,
            } => (Some(family), qualifier, timestamp, &b""[..]),
            Write::DeleteFamily { family, timestamp } => (Some(family), &b""[..], timestamp, &b""[..]),
            Write::DeleteFamilyVersion { family, timestamp } => {
                (Some(family), &b""[..], Some(timestamp), &b""[..])
            }
            Write::DeleteRow { timestamp } => (None, &b""[..], timestamp, &b""[..]),
        };
        let family = family.unwrap_or_default();
        if !matches!(write, Write::DeleteRow { .. }) {
            family_index(table, family)?;
        }
        if let Some(timestamp) = timestamp.filter(|timestamp| *timestamp < 0) {
            return Err(negative_timestamp(timestamp));
        }
        cell_max_bytes.check(row.len() + family.len() + qualifier.len() + value.len())?;
    }
    Ok(mode)
}

/// The refusal of a negative timestamp; the text is HBase's.
pub(crate) fn negative_timestamp(timestamp: i64) -> Error {
    Error::InvalidArgument(format!("Timestamp cannot be negative. ts={timestamp}"))
}

/// A timestamp that the client really gave: HBase's "latest" means that the server assigns one.
fn given(timestamp: Option<i64>) -> Option<i64> {
    timestamp.filter(|timestamp| *timestamp != LATEST)
}

/// The tags of a cell that will be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedTags<'a> {
    /// These encoded tags.
    Given(&'a [u8]),
    /// A time to live in milliseconds.
    Ttl(i64),
}

impl<'a> PlannedTags<'a> {
    /// A time to live, if there is one.
    pub(crate) fn of_ttl(ttl_ms: Option<i64>) -> Self {
        ttl_ms.map_or(Self::Given(b""), Self::Ttl)
    }

    /// Bytes of the encoded tags.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Given(tags) => tags.len(),
            Self::Ttl(_) => TTL_TAG_BYTES,
        }
    }

    /// The encoded tags, in `buffer` if they are made here.
    pub(crate) fn encode<'b>(self, buffer: &'b mut [u8; TTL_TAG_BYTES]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Given(tags) => tags,
            Self::Ttl(ttl_ms) => {
                *buffer = ttl_tag(ttl_ms);
                buffer
            }
        }
    }
}

/// One cell that will be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedCell<'a> {
    /// Position of its family in the table.
    pub family: usize,
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Milliseconds.
    pub timestamp: i64,
    /// Type of the cell.
    pub cell_type: CellType,
    /// Value.
    pub value: Cow<'a, [u8]>,
    /// Tags of the cell.
    pub tags: PlannedTags<'a>,
}

/// The cells of one row, sorted, each key once.
#[derive(Clone, Debug)]
pub(crate) struct RowPlan<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The cells, in cell order.
    pub cells: SmallVec<[PlannedCell<'a>; 1]>,
    /// Lead of the row's puts over assigned time.
    pub ahead_ms: i64,
    /// The part of the lead that is due to tombstones: the reply is delayed for it.
    pub delay_ms: i64,
}

/// The server's times for a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times<'t> {
    /// The time of this commit.
    pub now: i64,
    /// Puts without a time get at least this: the time of the cell that a check read.
    pub put_floor: i64,
    /// The times recorded by the row's lock.
    pub row: &'t RowTimes,
}

/// Assigns one time to all cells without a time ([`LATEST`]) of a mutation that has tombstones.
/// Returns the time of its puts.
fn settle(row: &[u8], cells: &mut [PlannedCell<'_>], times: Times<'_>) -> Result<i64> {
    let any = |deletes: bool| {
        cells
            .iter()
            .any(|cell| cell.timestamp == LATEST && cell.cell_type.is_delete() == deletes)
    };
    // Later than the row's earlier tombstones, so that they do not hide the puts of this mutation.
    let put = if any(false) {
        times.row.put(row, times.now)?
    } else {
        times.now
    };
    let time = if any(true) { times.row.tombstone(put) } else { put };
    for cell in cells.iter_mut().filter(|cell| cell.timestamp == LATEST) {
        cell.timestamp = if cell.cell_type.is_delete() {
            time
        } else {
            time.max(times.put_floor)
        };
    }
    Ok(put)
}

impl<'a> RowPlan<'a> {
    /// A row without cells.
    pub(crate) fn new(row: &'a [u8]) -> Self {
        Self {
            row,
            cells: SmallVec::new(),
            ahead_ms: 0,
            delay_ms: 0,
        }
    }

    /// The cells of a mutation, planned where they stay: a batch has many, and a plan takes longer to move
    /// than to make. `newest(family, qualifier)` lists the timestamps of a column's versions, newest first,
    /// as many as there are delete-version writes of the mutation; it is called only for those without a
    /// time. REQUIRES: the plan has no cells; [`check`] passed; the row's lock is held in the mode that it
    /// returned.
    #[inline]
    pub(crate) fn add_mutation(
        &mut self,
        table: &TableDescriptor,
        mutation: &RowMutation<'a>,
        times: Times<'_>,
        mut newest: impl FnMut(usize, &'a [u8]) -> Result<Vec<i64>>,
    ) -> Result<()> {
        let cells = &mut self.cells;
        cells.reserve_exact(mutation.writes.len());
        let only_puts = mutation
            .writes
            .iter()
            .all(|write| matches!(write, Write::Put { .. }));
        // The row's time for puts, once a put of a mutation without tombstones needs it.
        let mut put_time = None;
        // [`LATEST`] here; [`settle`] then gives all of them one time.
        let unsettled = |timestamp: Option<i64>| given(timestamp).unwrap_or(LATEST);
        // Columns that a delete without time has read, with the remaining versions.
        let mut seen: Vec<(usize, &'a [u8], std::vec::IntoIter<i64>)> = Vec::new();
        for write in &mutation.writes {
            let mut own_ttl_ms = None;
            let (family, qualifier, timestamp, cell_type, value) = match *write {
                Write::Put {
                    family,
                    qualifier,
                    timestamp,
                    value,
                    ttl_ms,
                } => {
                    own_ttl_ms = ttl_ms;
                    let timestamp = match (unsettled(timestamp), put_time) {
                        (LATEST, Some(time)) => times.put_floor.max(time),
                        (LATEST, None) if only_puts => {
                            let time = times.row.put(mutation.row, times.now)?;
                            put_time = Some(time);
                            times.put_floor.max(time)
                        }
                        (timestamp, _) => timestamp,
                    };
                    (family, qualifier, timestamp, CellType::Put, value)
                }
                Write::DeleteVersion {
                    family,
                    qualifier,
                    timestamp,
                } => {
                    let timestamp = if let Some(timestamp) = given(timestamp) {
                        timestamp
                    } else {
                        let index = family_index(table, family)?;
                        let at = seen
                            .iter()
                            .position(|known| (known.0, known.1) == (index, qualifier));
                        let known = if let Some(at) = at {
                            &mut seen[at]
                        } else {
                            seen.push((index, qualifier, newest(index, qualifier)?.into_iter()));
                            seen.last_mut().expect("an entry was pushed just now")
                        };
                        let version = known.2.next();
                        if let Some(timestamp) = version {
                            times.row.note_version(timestamp, times.now);
                        }
                        unsettled(version)
                    };
                    (family, qualifier, timestamp, CellType::Delete, &b""[..])
                }
                Write::DeleteVersionAtWrite { family, qualifier } => {
                    (family, qualifier, LATEST, CellType::Delete, &b""[..])
                }
                Write::DeleteColumn {
                    family,
                    qualifier,
                    timestamp,
                } => (
                    family,
                    qualifier,
                    unsettled(timestamp),
                    CellType::DeleteColumn,
                    &b""[..],
                ),
                Write::DeleteFamily { family, timestamp } => (
                    family,
                    &b""[..],
                    unsettled(timestamp),
                    CellType::DeleteFamily,
                    &b""[..],
                ),
                Write::DeleteFamilyVersion { family, timestamp } => (
                    family,
                    &b""[..],
                    timestamp,
                    CellType::DeleteFamilyVersion,
                    &b""[..],
                ),
                Write::DeleteRow { timestamp } => {
                    let timestamp = unsettled(timestamp);
                    cells.extend((0..table.families.len()).map(|family| PlannedCell {
                        family,
                        qualifier: b"",
                        timestamp,
                        cell_type: CellType::DeleteFamily,
                        value: Cow::Borrowed(b""),
                        tags: PlannedTags::Given(b""),
                    }));
                    continue;
                }
            };
            cells.push(PlannedCell {
                family: family_index(table, family)?,
                qualifier,
                timestamp,
                cell_type,
                value: Cow::Borrowed(value),
                tags: PlannedTags::of_ttl(own_ttl_ms),
            });
        }
        let put_time = if only_puts {
            put_time
        } else {
            Some(settle(mutation.row, cells, times)?)
        };
        if let Some(time) = put_time {
            self.ahead_ms = time - times.now;
            self.delay_ms = times.row.ahead_of_tombstones(time, times.now);
        }
        self.sort();
        Ok(())
    }

    /// Cells given in any order; of equal keys the last one stays.
    pub(crate) fn of_cells(row: &'a [u8], cells: SmallVec<[PlannedCell<'a>; 1]>) -> Self {
        let mut plan = Self {
            row,
            cells,
            ahead_ms: 0,
            delay_ms: 0,
        };
        plan.sort();
        plan
    }

    /// Sorts the cells; of equal keys the last one stays.
    fn sort(&mut self) {
        let cells = &mut self.cells;
        if cells.len() > 1 {
            // The sort is stable, so of equal keys the one given last stands last.
            cells.sort_by(|left, right| {
                (left.family, left.qualifier)
                    .cmp(&(right.family, right.qualifier))
                    .then_with(|| right.timestamp.cmp(&left.timestamp))
                    .then_with(|| right.cell_type.cmp(&left.cell_type))
            });
            cells.reverse();
            cells.dedup_by(|later, earlier| {
                (later.family, later.qualifier, later.timestamp, later.cell_type)
                    == (
                        earlier.family,
                        earlier.qualifier,
                        earlier.timestamp,
                        earlier.cell_type,
                    )
            });
            cells.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Durability, FamilyDescriptor, TableName};

    fn table() -> TableDescriptor {
        let families = [&b"f"[..], b"g"].map(FamilyDescriptor::new).to_vec();
        TableDescriptor::new(TableName::parse(b"t").unwrap(), families)
    }

    fn put<'a>(qualifier: &'a [u8], timestamp: Option<i64>, value: &'a [u8]) -> Write<'a> {
        Write::Put {
            family: b"f",
            qualifier,
            timestamp,
            value,
            ttl_ms: None,
        }
    }

    fn mutation<'a>(row: &'a [u8], writes: &[Write<'a>]) -> RowMutation<'a> {
        RowMutation {
            row,
            writes: writes.iter().copied().collect(),
            durability: Durability::UseDefault,
        }
    }

    #[test]
    fn bad_requests_are_refused_by_name_and_limit() {
        let table = table();
        let refuse = |row: &[u8], write: Write<'_>| {
            check(&table, &mutation(row, &[write]), CellLimit::of_server(100))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(refuse(b"", put(b"q", None, b"v")), "Row length is 0");
        assert_eq!(
            refuse(&vec![b'r'; 32_768], put(b"q", None, b"v")),
            "Row length 32768 is > 32767"
        );
        assert_eq!(
            refuse(b"r", put(b"q", Some(-1), b"v")),
            "Timestamp cannot be negative. ts=-1"
        );
        assert_eq!(
            refuse(b"r", put(b"q", None, &[0; 98])),
            "Cell with size 101 exceeds limit of 100 bytes"
        );
        let stranger = Write::DeleteFamily {
            family: b"x",
            timestamp: None,
        };
        assert_eq!(
            refuse(b"r", stranger),
            "Column family x does not exist in table t"
        );
        assert!(check(&table, &mutation(b"r", &[]), CellLimit::of_server(0)).is_err());
    }

    #[test]
    fn only_a_delete_that_must_read_locks_exclusively() {
        let table = table();
        let mode = |timestamp| {
            let delete = Write::DeleteVersion {
                family: b"f",
                qualifier: b"q",
                timestamp,
            };
            check(
                &table,
                &mutation(b"r", &[put(b"q", None, b""), delete]),
                CellLimit::of_server(0),
            )
            .unwrap()
        };
        assert_eq!(mode(Some(3)), LockMode::Shared);
        assert_eq!(mode(None), LockMode::Exclusive);
        assert_eq!(mode(Some(LATEST)), LockMode::Exclusive);
    }

    #[test]
    fn cells_are_sorted_and_the_last_of_equal_keys_stays() {
        let table = table();
        let row = RowTimes::default();
        let times = Times {
            now: 50,
            put_floor: 60,
            row: &row,
        };
        let writes = [
            Write::DeleteRow { timestamp: None },
            put(b"b", Some(LATEST), b"first"),
            put(b"a", Some(7), b"a7"),
            put(b"b", None, b"second"),
        ];
        let mut plan = RowPlan::new(b"r");
        plan.add_mutation(&table, &mutation(b"r", &writes), times, |_, _| unreachable!())
            .unwrap();
        let shown: Vec<_> = plan
            .cells
            .iter()
            .map(|cell| {
                (
                    cell.family,
                    cell.qualifier,
                    cell.timestamp,
                    cell.cell_type,
                    &*cell.value,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (0, &b""[..], 50, CellType::DeleteFamily, &b""[..]),
                (0, b"a", 7, CellType::Put, b"a7"),
                (0, b"b", 60, CellType::Put, b"second"),
                (1, b"", 50, CellType::DeleteFamily, b""),
            ]
        );
    }

    /// The n-th delete without time takes the n-th newest version's, and the current time when there is none
    /// left.
    #[test]
    fn deletes_without_time_take_the_versions_times() {
        let table = table();
        let delete = Write::DeleteVersion {
            family: b"f",
            qualifier: b"q",
            timestamp: None,
        };
        let row = RowTimes::default();
        let times = Times {
            now: 50,
            put_floor: 0,
            row: &row,
        };
        let writes = [delete, delete, delete];
        let mut plan = RowPlan::new(b"r");
        plan.add_mutation(&table, &mutation(b"r", &writes), times, |family, qualifier| {
            assert_eq!((family, qualifier), (0, &b"q"[..]));
            Ok(vec![30, 20])
        })
        .unwrap();
        let stamps: Vec<_> = plan.cells.iter().map(|cell| cell.timestamp).collect();
        assert_eq!(stamps, [50, 30, 20]);
    }

    /// Column, type and time of the cells of a mutation at the assigned time 50, with nothing
    /// stored, and its lead over assigned time.
    fn planned(row: &RowTimes, writes: &[Write<'static>]) -> (Vec<(u8, CellType, i64)>, i64) {
        let times = Times {
            now: 50,
            put_floor: 0,
            row,
        };
        let mut plan = RowPlan::new(b"r");
        plan.add_mutation(&table(), &mutation(b"r", writes), times, |_, _| Ok(Vec::new()))
            .unwrap();
        let column = |cell: &PlannedCell<'_>| cell.qualifier.first().copied().unwrap_or(b'*');
        let cells = plan.cells.iter().filter(|cell| cell.family == 0);
        let cells = cells.map(|cell| (column(cell), cell.cell_type, cell.timestamp));
        (cells.collect(), plan.ahead_ms)
    }

    fn delete_column(qualifier: &'static [u8]) -> Write<'static> {
        Write::DeleteColumn {
            family: b"f",
            qualifier,
            timestamp: None,
        }
    }

    /// The writes of one mutation have one time, whatever their order: later than the row's
    /// tombstones, and not before its puts.
    #[test]
    fn a_mutation_has_one_time() {
        use CellType::{Delete, DeleteColumn, DeleteFamily, Put};
        let (a, b) = (put(b"a", None, b"v"), put(b"b", None, b"v"));
        let all = Write::DeleteRow { timestamp: None };
        let newest = Write::DeleteVersion {
            family: b"f",
            qualifier: b"a",
            timestamp: None,
        };
        for (writes, cells) in [
            (vec![all, a], vec![(b'*', DeleteFamily, 50), (b'a', Put, 50)]),
            (vec![a, all], vec![(b'*', DeleteFamily, 50), (b'a', Put, 50)]),
            (vec![newest, a], vec![(b'a', Delete, 50), (b'a', Put, 50)]),
            (
                vec![a, delete_column(b"a"), b],
                vec![(b'a', DeleteColumn, 50), (b'a', Put, 50), (b'b', Put, 50)],
            ),
            (vec![a, b], vec![(b'a', Put, 50), (b'b', Put, 50)]),
        ] {
            let row = RowTimes::default();
            assert_eq!(planned(&row, &writes), (cells.clone(), 0), "{writes:?}");
            if writes.len() > 2 {
                let later: Vec<_> = cells
                    .iter()
                    .map(|(column, kind, _)| (*column, *kind, 51))
                    .collect();
                assert_eq!(planned(&row, &writes), (later, 1), "behind its own tombstones");
            }
        }
    }

    /// A time that a client chose is kept, whatever tombstones the row has.
    #[test]
    fn given_times_are_kept_beside_assigned_ones() {
        use CellType::{DeleteFamily, Put};
        let row = RowTimes::default();
        let all = Write::DeleteRow { timestamp: None };
        let (cells, _) = planned(&row, &[all, put(b"a", Some(50), b"v"), put(b"b", None, b"v")]);
        assert_eq!(
            cells,
            [(b'*', DeleteFamily, 50), (b'a', Put, 50), (b'b', Put, 50)]
        );
        assert_eq!(
            planned(&row, &[put(b"a", Some(50), b"v")]),
            (vec![(b'a', Put, 50)], 0)
        );
        assert_eq!(
            planned(&row, &[put(b"a", None, b"v")]),
            (vec![(b'a', Put, 51)], 1)
        );
        assert_eq!(
            planned(&row, &[all]),
            (vec![(b'*', DeleteFamily, 51)], 0),
            "and covers it"
        );
    }
}
