//! Thrift types to engine requests. Rules that come from HBase's handlers are cited by what clients see.

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_engine::cell::{LATEST, ROW_MAX_BYTES};
use basalt_engine::filter::FilterSpec;
use basalt_engine::op::{Columns, FamilySelection, ReadSpec, RowMutation, TimeRange, Write};
use basalt_engine::schema::{Durability, Escaped, TableName};
use basalt_idl::thrift2;
use bytes::Bytes;

use super::{Failure, writes};

/// Attributes of an operation.
pub(super) type Attributes = Option<BTreeMap<Bytes, Bytes>>;

/// A table's full name.
pub(super) fn table(name: Option<&Bytes>) -> Result<TableName, Failure> {
    let name = name.ok_or_else(|| Failure::illegal_argument("the table name is missing"))?;
    Ok(TableName::parse(name)?)
}

/// A row key: present, not empty, not longer than HBase allows.
pub(super) fn row(row: Option<&Bytes>) -> Result<&Bytes, Failure> {
    match row {
        None => Err(Failure::illegal_argument("Row buffer is null")),
        Some(row) if row.is_empty() => Err(Failure::illegal_argument(
            "Row length 0: a row key must not be empty",
        )),
        Some(row) if row.len() > ROW_MAX_BYTES => Err(Failure::illegal_argument(format!(
            "Row length {} is > {ROW_MAX_BYTES}",
            row.len()
        ))),
        Some(row) => Ok(row),
    }
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

/// The `_ttl` attribute: 8 bytes of big-endian milliseconds.
pub(super) fn ttl(attributes: &Attributes) -> Result<Option<i64>, Failure> {
    let Some(value) = attributes
        .as_ref()
        .and_then(|attributes| attributes.get(&b"_ttl"[..]))
    else {
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

/// `family:qualifier`, split at the first colon; without a colon there is no qualifier.
pub(super) fn split_column(column: &Bytes) -> (Bytes, Option<Bytes>) {
    match column.iter().position(|byte| *byte == b':') {
        None => (column.clone(), None),
        Some(at) => (column.slice(..at), Some(column.slice(at + 1..))),
    }
}

/// Selects columns in the order given, with HBase's rule for overlaps: the last one wins. A family added after some of its
/// columns widens to the whole family; a column added after its family narrows to columns.
pub(super) fn select(columns: impl IntoIterator<Item = (Bytes, Option<Bytes>)>) -> Vec<FamilySelection> {
    let mut families: BTreeMap<Bytes, Columns> = BTreeMap::new();
    for (family, qualifier) in columns {
        let selected = families.entry(family).or_insert(Columns::All);
        match (qualifier, selected) {
            (None, selected) => *selected = Columns::All,
            (Some(qualifier), Columns::Only(qualifiers)) => qualifiers.push(qualifier.to_vec()),
            (Some(qualifier), selected) => *selected = Columns::Only(vec![qualifier.to_vec()]),
        }
    }
    families
        .into_iter()
        .map(|(family, mut columns)| {
            if let Columns::Only(qualifiers) = &mut columns {
                qualifiers.sort_unstable();
                qualifiers.dedup();
            }
            FamilySelection {
                family: family.to_vec(),
                columns,
                time_range: None,
            }
        })
        .collect()
}

/// The filter of a read. Bytes win over the string, as in HBase.
pub(super) fn filter(
    string: Option<&Bytes>,
    bytes: Option<&Bytes>,
) -> Result<Option<Arc<FilterSpec>>, Failure> {
    if let Some(bytes) = bytes {
        let filter = FilterSpec::decode(bytes, rand::random())
            .map_err(|error| Failure::do_not_retry(error.to_string()))?;
        return Ok(Some(Arc::new(filter)));
    }
    match string {
        Some(string) if !string.is_empty() => {
            let filter =
                FilterSpec::parse(string).map_err(|error| Failure::illegal_argument(error.to_string()))?;
            Ok(Some(Arc::new(filter)))
        }
        _ => Ok(None),
    }
}

/// What a `TGet` reads.
pub(super) fn get(get: &thrift2::TGet) -> Result<ReadSpec, Failure> {
    row(Some(&get.row))?;
    let time_range = match (get.timestamp, &get.time_range) {
        (Some(timestamp), _) if timestamp < 0 => return Err(negative_time(timestamp)),
        (Some(timestamp), _) => TimeRange::at(timestamp),
        (None, Some(range)) => time_range(range.min_stamp, range.max_stamp)?,
        (None, None) => TimeRange::ALL,
    };
    let columns = get
        .columns
        .iter()
        .flatten()
        .map(|column| (column.family.clone(), column.qualifier.clone()));
    Ok(ReadSpec {
        families: select(columns),
        time_range,
        max_versions: versions(get.max_versions.unwrap_or(1))?,
        family_limit: get.store_limit.and_then(|limit| usize::try_from(limit).ok()),
        family_offset: get
            .store_offset
            .and_then(|offset| usize::try_from(offset).ok())
            .unwrap_or(0),
        cache_blocks: get.cache_blocks.unwrap_or(true),
        filter: filter(get.filter_string.as_ref(), get.filter_bytes.as_ref())?,
        ..ReadSpec::default()
    })
}

/// Versions of a get: at least one.
pub(super) fn versions(versions: i32) -> Result<i32, Failure> {
    if versions <= 0 {
        Err(Failure::plain_io("maxVersions must be positive"))
    } else {
        Ok(versions)
    }
}

/// What a Thrift 2 `TScan` reads.
pub(super) fn scan(scan: &thrift2::TScan) -> Result<basalt_engine::op::Scan, Failure> {
    let mut families = select(
        scan.columns
            .iter()
            .flatten()
            .map(|column| (column.family.clone(), column.qualifier.clone())),
    );
    for (family, range) in scan.col_fam_time_range_map.iter().flatten() {
        let range = time_range(range.min_stamp, range.max_stamp)?;
        // A time range for a family that is not selected has nothing to act on once others are.
        if scan.columns.as_ref().is_none_or(Vec::is_empty) {
            continue;
        }
        if let Some(selected) = families.iter_mut().find(|selected| selected.family == family[..]) {
            selected.time_range = Some(range);
        }
    }
    let start_row = scan.start_row.as_deref().unwrap_or_default().to_vec();
    let stop_row = scan.stop_row.as_deref().unwrap_or_default().to_vec();
    Ok(basalt_engine::op::Scan {
        include_start: true,
        // Start equal to stop is a get of that row: HBase's deprecated setters, which its gateway uses, make it so.
        include_stop: !start_row.is_empty() && start_row == stop_row,
        start_row,
        stop_row,
        reversed: scan.reversed.unwrap_or(false),
        batch: scan
            .batch_size
            .and_then(|batch| usize::try_from(batch).ok())
            .filter(|batch| *batch > 0),
        limit: scan
            .limit
            .and_then(|limit| u64::try_from(limit).ok())
            .filter(|limit| *limit > 0),
        caching: caching(scan.caching),
        spec: ReadSpec {
            families,
            time_range: match &scan.time_range {
                Some(range) => time_range(range.min_stamp, range.max_stamp)?,
                None => TimeRange::ALL,
            },
            // HBase's Scan takes any number: below one it returns nothing useful, so one is the least.
            max_versions: scan.max_versions.max(1),
            cache_blocks: scan.cache_blocks.unwrap_or(true),
            filter: filter(scan.filter_string.as_ref(), scan.filter_bytes.as_ref())?,
            ..ReadSpec::default()
        },
    })
}

/// Rows of one request of HBase's client; nothing set, or nonsense, means no bound.
pub(super) fn caching(rows: Option<i32>) -> Option<usize> {
    rows.and_then(|rows| usize::try_from(rows).ok())
        .filter(|rows| *rows > 0)
}

/// Families with time ranges of their own when a scan selects no columns: every family is read then, these with their range.
pub(super) fn family_ranges(
    scan: &thrift2::TScan,
    all: &[Vec<u8>],
) -> Result<Option<Vec<FamilySelection>>, Failure> {
    let Some(ranges) = scan
        .col_fam_time_range_map
        .as_ref()
        .filter(|ranges| !ranges.is_empty())
    else {
        return Ok(None);
    };
    if scan.columns.as_ref().is_some_and(|columns| !columns.is_empty()) {
        return Ok(None);
    }
    all.iter()
        .map(|family| {
            let range = ranges
                .get(&family[..])
                .map(|range| time_range(range.min_stamp, range.max_stamp))
                .transpose()?;
            Ok(FamilySelection {
                family: family.clone(),
                columns: Columns::All,
                time_range: range,
            })
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// `TDurability`; an unknown code falls back to the table's setting.
pub(super) fn durability(durability: Option<thrift2::TDurability>) -> Durability {
    match durability {
        Some(thrift2::TDurability::SKIP_WAL) => Durability::SkipWal,
        Some(thrift2::TDurability::ASYNC_WAL) => Durability::AsyncWal,
        Some(thrift2::TDurability::SYNC_WAL) => Durability::SyncWal,
        Some(thrift2::TDurability::FSYNC_WAL) => Durability::FsyncWal,
        _ => Durability::UseDefault,
    }
}

/// The writes of a `TPut`.
pub(super) fn put(put: &thrift2::TPut) -> Result<RowMutation<'_>, Failure> {
    let mut mutation = writes::mutation(
        row(Some(&put.row))?,
        durability(put.durability),
        ttl(&put.attributes)?,
    );
    if put.column_values.is_empty() {
        return Err(Failure::illegal_argument("No columns to insert"));
    }
    for value in &put.column_values {
        mutation.writes.push(Write::Put {
            family: &value.family,
            qualifier: &value.qualifier,
            timestamp: write_time(value.timestamp.or(put.timestamp))?,
            value: &value.value,
        });
    }
    Ok(mutation)
}

/// The writes of a `TDelete`. With `columns` set, even to an empty list, the delete's own timestamp is ignored, and an empty
/// list deletes the row, as in HBase's gateway.
pub(super) fn delete(delete: &thrift2::TDelete) -> Result<RowMutation<'_>, Failure> {
    let mut mutation = writes::mutation(row(Some(&delete.row))?, durability(delete.durability), None);
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
                        Escaped(family)
                    ))
                })?,
            },
            other => return Err(Failure::illegal_argument(format!("unknown delete type {other}"))),
        };
        mutation.writes.push(write);
    }
    Ok(mutation)
}

fn write_family<'a>(write: &Write<'a>) -> Option<&'a [u8]> {
    match write {
        Write::Put { family, .. }
        | Write::DeleteVersion { family, .. }
        | Write::DeleteColumn { family, .. }
        | Write::DeleteFamily { family, .. }
        | Write::DeleteFamilyVersion { family, .. } => Some(family),
        Write::DeleteRow { .. } => None,
    }
}

/// The writes of a `TRowMutations`, one atomic step. Every inner row must be the outer one.
pub(super) fn row_mutations(mutations: &thrift2::TRowMutations) -> Result<RowMutation<'_>, Failure> {
    let outer = row(Some(&mutations.row))?;
    let mut whole = writes::mutation(outer, Durability::UseDefault, None);
    for inner in &mutations.mutations {
        let part = match inner {
            thrift2::TMutation::Put(inner) => put(inner)?,
            thrift2::TMutation::DeleteSingle(inner) => delete(inner)?,
        };
        if part.row != &outer[..] {
            return Err(Failure::plain_io(format!(
                "The row in the recently added Put/Delete {} doesn't match the original one {}",
                Escaped(part.row),
                Escaped(outer)
            )));
        }
        if part.durability != Durability::UseDefault {
            whole.durability = part.durability;
        }
        whole.ttl_ms = whole.ttl_ms.or(part.ttl_ms);
        whole.writes.extend(part.writes);
    }
    Ok(whole)
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

    /// HBase: the later of overlapping selections wins.
    #[test]
    fn overlapping_selections() {
        let (f, g) = (bytes("f"), bytes("g"));
        let selected = select([
            (f.clone(), Some(bytes("b"))),
            (f.clone(), None),
            (g.clone(), None),
        ]);
        assert_eq!(
            selected.iter().map(|family| &family.columns).collect::<Vec<_>>(),
            [&Columns::All, &Columns::All]
        );
        let selected = select([
            (f.clone(), None),
            (f.clone(), Some(bytes("b"))),
            (f, Some(bytes("a"))),
        ]);
        assert_eq!(
            selected[0].columns,
            Columns::Only(vec![b"a".to_vec(), b"b".to_vec()])
        );
    }

    #[test]
    fn times_and_rows_are_checked() {
        assert_eq!(write_time(Some(LATEST)).unwrap(), None);
        assert!(write_time(Some(-1)).is_err());
        assert!(time_range(5, 4).is_err());
        assert!(row(Some(&Bytes::new())).is_err());
        assert!(row(Some(&Bytes::from(vec![1; ROW_MAX_BYTES]))).is_ok());
        let error = row(Some(&Bytes::from(vec![1; 40_000]))).unwrap_err();
        assert!(error.message().contains("40000") && error.message().contains("32767"));
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
}
