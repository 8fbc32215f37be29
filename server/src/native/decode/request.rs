//! Protobuf requests to engine requests.

use std::sync::Arc;

use basalt_engine::cell::LATEST;
use basalt_engine::filter::FilterSpec;
use basalt_engine::op::{
    ColumnAppend, ColumnIncrement, ReadSpec, RowMutation, RowUpdate, Scan, TimeRange, Write, Writes,
};
use basalt_engine::schema::{Cut, Durability};
use basalt_engine::{Error, Result};
use basalt_idl::native::cells::{CellType, Cells, WireCell};
use basalt_idl::native::messages::{
    self, MutationProto, NameBytesPair, mutation_proto,
    mutation_proto::{DeleteType, MutationType},
};
use bytes::Bytes;
use prost::Message;

use crate::service::arguments::{self, select};

/// A refusal that sending the call again does not change.
pub(super) fn do_not_retry(what: impl Into<String>) -> Error {
    Error::DoNotRetry(what.into())
}

/// Decodes a call's message.
pub fn decode<M: Message + Default>(parameter: Bytes) -> Result<M> {
    M::decode(parameter).map_err(|error| do_not_retry(format!("malformed request: {error}")))
}

/// An attribute of an operation.
fn attribute<'a>(attributes: &'a [NameBytesPair], name: &str) -> Option<&'a Bytes> {
    let found = attributes.iter().find(|attribute| attribute.name == name)?;
    found.value.as_ref()
}

/// A boolean attribute: its first byte, as HBase reads it.
fn flag(attributes: &[NameBytesPair], name: &str) -> Option<bool> {
    attribute(attributes, name)?.first().map(|byte| *byte != 0)
}

/// Whether an increment or append returns its new cells.
pub fn returns_results(mutation: &MutationProto) -> bool {
    flag(&mutation.attribute, "_rr_").unwrap_or(true)
}

/// Timestamps of interest.
pub fn time_range(range: Option<&messages::TimeRange>) -> Result<TimeRange> {
    let Some(range) = range else {
        return Ok(TimeRange::ALL);
    };
    // Unsigned on the wire and signed in Java: a negative time arrives as a huge one.
    let bound = |time: Option<u64>, otherwise: i64| time.map_or(otherwise, |time| time as i64);
    let (min, max) = (bound(range.from, 0), bound(range.to, i64::MAX));
    if min < 0 || max < 0 || max < min {
        return Err(do_not_retry(format!(
            "time range from {min} to {max} is empty or negative"
        )));
    }
    Ok(TimeRange { min, max })
}

/// Decodes a filter.
pub fn decode_filter(filter: &messages::Filter) -> Result<Arc<FilterSpec>> {
    FilterSpec::decode(&filter.encode_to_vec(), rand::random())
        .map(Arc::new)
        .map_err(|error| do_not_retry(error.to_string()))
}

/// Whether a filter may have a regular expression.
pub fn has_regex(filter: &messages::Filter) -> bool {
    arguments::has_regex(None, filter.serialized_filter.as_ref())
}

fn family_time_ranges(
    ranges: &[messages::ColumnFamilyTimeRange],
) -> Result<std::collections::BTreeMap<Vec<u8>, TimeRange>> {
    ranges
        .iter()
        .map(|range| Ok((range.column_family.to_vec(), time_range(Some(&range.time_range))?)))
        .collect()
}

/// Columns of a read. A family without qualifiers is read whole.
fn columns(columns: &[messages::Column]) -> impl Iterator<Item = (Bytes, Option<Bytes>)> + '_ {
    columns.iter().flat_map(|column| {
        let whole = column.qualifier.is_empty().then_some(None);
        let qualifiers = column.qualifier.iter().cloned().map(Some);
        whole
            .into_iter()
            .chain(qualifiers)
            .map(|qualifier| (column.family.clone(), qualifier))
    })
}

fn limit(limit: Option<u32>) -> Option<usize> {
    limit.and_then(|limit| usize::try_from(limit).ok())
}

/// The read of a Get, with its decoded filter. `closest_row_before` is ignored.
pub fn read_of(get: &messages::Get, filter: Option<Arc<FilterSpec>>) -> Result<ReadSpec> {
    let mut spec = ReadSpec {
        families: select(columns(&get.column)),
        time_range: time_range(get.time_range.as_ref())?,
        family_time_ranges: family_time_ranges(&get.cf_time_range)?,
        max_versions: versions(get.max_versions),
        family_limit: limit(get.store_limit),
        family_offset: limit(get.store_offset).unwrap_or(0),
        cache_blocks: get.cache_blocks.unwrap_or(true),
        filter,
        raw: flag(&get.attribute, "_raw_").unwrap_or(false),
        ..ReadSpec::default()
    };
    // One cell proves that the row exists. A filter may need all cells.
    if get.existence_only == Some(true) && spec.filter.is_none() && spec.family_limit.is_none() {
        spec.family_limit = Some(1);
    }
    Ok(spec)
}

fn versions(versions: Option<u32>) -> i32 {
    i32::try_from(versions.unwrap_or(1)).unwrap_or(i32::MAX).max(1)
}

/// The scan of a Scan request, with its decoded filter, over the whole table. The caller confines
/// it to a region.
pub fn scan(scan: &messages::Scan, filter: Option<Arc<FilterSpec>>) -> Result<Scan> {
    Ok(Scan {
        start_row: scan.start_row.as_deref().unwrap_or_default().to_vec(),
        include_start: scan.include_start_row.unwrap_or(true),
        stop_row: scan.stop_row.as_deref().unwrap_or_default().to_vec(),
        include_stop: scan.include_stop_row.unwrap_or_else(|| is_one_row(scan)),
        reversed: scan.reversed.unwrap_or(false),
        batch: limit(scan.batch_size).filter(|batch| *batch > 0),
        limit: None,
        caching: None,
        spec: ReadSpec {
            families: select(columns(&scan.column)),
            time_range: time_range(scan.time_range.as_ref())?,
            family_time_ranges: family_time_ranges(&scan.cf_time_range)?,
            max_versions: versions(scan.max_versions),
            family_limit: limit(scan.store_limit),
            family_offset: limit(scan.store_offset).unwrap_or(0),
            cache_blocks: scan.cache_blocks.unwrap_or(true),
            filter,
            raw: flag(&scan.attribute, "_raw_").unwrap_or(false),
            ..ReadSpec::default()
        },
    })
}

/// Whether a scan ends at the row at which it begins. Clients that cannot say whether the stop row is
/// included, those of HBase 1.x, read one row with it.
fn is_one_row(scan: &messages::Scan) -> bool {
    let start = scan.start_row();
    !start.is_empty() && start == scan.stop_row()
}

/// The row of a mutation.
pub fn row(mutation: &MutationProto) -> Result<&Bytes> {
    mutation
        .row
        .as_ref()
        .ok_or_else(|| do_not_retry("the mutation has no row"))
}

/// The durability of a mutation.
pub fn durability(mutation: &MutationProto) -> Durability {
    match mutation.durability() {
        mutation_proto::Durability::UseDefault => Durability::UseDefault,
        mutation_proto::Durability::SkipWal => Durability::SkipWal,
        mutation_proto::Durability::AsyncWal => Durability::AsyncWal,
        mutation_proto::Durability::SyncWal => Durability::SyncWal,
        mutation_proto::Durability::FsyncWal => Durability::FsyncWal,
    }
}

/// The `_ttl` attribute: 8 bytes of milliseconds.
pub fn ttl(mutation: &MutationProto) -> Result<Option<i64>> {
    let Some(value) = attribute(&mutation.attribute, "_ttl") else {
        return Ok(None);
    };
    let bytes = <[u8; 8]>::try_from(&value[..]).map_err(|_| {
        do_not_retry(format!(
            "the attribute _ttl must be 8 bytes, but is {} bytes",
            value.len()
        ))
    })?;
    Ok(Some(i64::from_be_bytes(bytes)))
}

/// Moves past the cells of a mutation: `cells.offset()` is then the beginning of the next one's
/// cells.
pub fn skip_cells(mutation: &MutationProto, cells: &mut Cells<'_>) -> Result<()> {
    for _ in 0..mutation.associated_cell_count.unwrap_or_default() {
        cells.require().map_err(malformed)?;
    }
    Ok(())
}

fn malformed(error: basalt_idl::native::cells::CellError) -> Error {
    do_not_retry(error.to_string())
}

/// The cells of a mutation, from its message and from the cell block.
pub fn cells<'a>(mutation: &'a MutationProto, block: &mut Cells<'a>) -> Result<Vec<WireCell<'a>>> {
    let row = row(mutation)?;
    // As in HBase: a delete's own timestamp is for its whole row, not for its columns.
    let is_delete = mutation.mutate_type() == MutationType::Delete;
    let default = mutation.timestamp.filter(|_| !is_delete);
    let mut cells: Vec<WireCell<'a>> = Vec::new();
    for column in &mutation.column_value {
        for value in &column.qualifier_value {
            let cell_type = cell_type(mutation, value);
            // As in HBase: the delete of a family replaces deletes of its columns before it.
            if cell_type == CellType::DeleteFamily {
                cells.retain(|cell| cell.family != &column.family[..]);
            }
            cells.push(WireCell {
                row,
                family: &column.family,
                qualifier: value.qualifier.as_deref().unwrap_or_default(),
                timestamp: value.timestamp.or(default).map_or(LATEST, |time| time as i64),
                cell_type,
                value: value.value.as_deref().unwrap_or_default(),
                tags: value.tags.as_deref().unwrap_or_default(),
            });
        }
    }
    for _ in 0..mutation.associated_cell_count.unwrap_or_default() {
        let mut cell = block.require().map_err(malformed)?;
        if cell.row != &row[..] {
            return Err(do_not_retry(format!(
                "a cell of row {} in a mutation of row {}",
                Cut(cell.row),
                Cut(row)
            )));
        }
        if cell.timestamp == LATEST
            && let Some(time) = mutation.timestamp
        {
            cell.timestamp = time as i64;
        }
        cells.push(cell);
    }
    Ok(cells)
}

fn cell_type(mutation: &MutationProto, value: &mutation_proto::column_value::QualifierValue) -> CellType {
    if mutation.mutate_type() != MutationType::Delete {
        return CellType::Put;
    }
    match value.delete_type() {
        DeleteType::DeleteOneVersion => CellType::Delete,
        DeleteType::DeleteMultipleVersions => CellType::DeleteColumn,
        DeleteType::DeleteFamily => CellType::DeleteFamily,
        DeleteType::DeleteFamilyVersion => CellType::DeleteFamilyVersion,
    }
}

/// Converts a put or delete for the engine.
pub fn write<'a>(mutation: &'a MutationProto, block: &mut Cells<'a>) -> Result<RowMutation<'a>> {
    let row = row(mutation)?;
    let ttl_ms = ttl(mutation)?;
    let cells = cells(mutation, block)?;
    let mut writes = Writes::new();
    match mutation.mutate_type() {
        MutationType::Put | MutationType::Delete => {}
        other => {
            return Err(do_not_retry(format!(
                "{} cannot stand in a group of mutations here; send it alone",
                other.as_str_name()
            )));
        }
    }
    if cells.is_empty() && mutation.mutate_type() == MutationType::Delete {
        let timestamp = write_time(mutation.timestamp.map_or(LATEST, |time| time as i64))?;
        writes.push(Write::DeleteRow { timestamp });
    }
    for cell in &cells {
        let (family, qualifier) = (cell.family, cell.qualifier);
        let timestamp = write_time(cell.timestamp)?;
        writes.push(match cell.cell_type {
            CellType::Put => Write::Put {
                family,
                qualifier,
                timestamp,
                value: cell.value,
                ttl_ms,
            },
            CellType::Delete => Write::DeleteVersion {
                family,
                qualifier,
                timestamp,
            },
            CellType::DeleteColumn => Write::DeleteColumn {
                family,
                qualifier,
                timestamp,
            },
            CellType::DeleteFamily => Write::DeleteFamily { family, timestamp },
            CellType::DeleteFamilyVersion => Write::DeleteFamilyVersion {
                family,
                timestamp: cell.timestamp,
            },
        });
    }
    Ok(RowMutation {
        row,
        writes,
        durability: durability(mutation),
    })
}

/// The timestamp of a write; `None` if the server assigns it, which clients request with LATEST.
fn write_time(timestamp: i64) -> Result<Option<i64>> {
    match timestamp {
        LATEST => Ok(None),
        0.. => Ok(Some(timestamp)),
        negative => Err(do_not_retry(format!(
            "Timestamp cannot be negative. ts={negative}"
        ))),
    }
}

/// Converts puts and deletes for the engine. Adjacent mutations with the same row and durability
/// become one, so that they are atomic.
pub fn rows<'a>(mutations: &'a [MutationProto], cells: &'a Bytes) -> Result<Vec<RowMutation<'a>>> {
    let mut block = Cells::new(cells);
    let mut rows: Vec<RowMutation<'a>> = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        let next = write(mutation, &mut block)?;
        match rows.last_mut() {
            Some(last) if last.row == next.row && last.durability == next.durability => {
                last.writes.extend(next.writes.iter().copied());
            }
            _ => rows.push(next),
        }
    }
    Ok(rows)
}

/// Whether a mutation is an increment or append.
pub fn is_update(mutation: &MutationProto) -> bool {
    matches!(
        mutation.mutate_type(),
        MutationType::Increment | MutationType::Append
    )
}

/// Converts the change of an increment or append; its cells are the next ones of the block.
pub fn update<'a>(mutation: &'a MutationProto, block: &mut Cells<'a>) -> Result<RowUpdate<'a>> {
    let cells = cells(mutation, block)?;
    Ok(if mutation.mutate_type() == MutationType::Increment {
        RowUpdate::Increment(cells.iter().map(increment).collect::<Result<_>>()?)
    } else {
        RowUpdate::Append(cells.iter().map(append).collect())
    })
}

fn increment<'a>(cell: &WireCell<'a>) -> Result<ColumnIncrement<'a>> {
    let amount = <[u8; 8]>::try_from(cell.value).map_err(|_| {
        do_not_retry(format!(
            "the increment of column {} has {} bytes; it must have 8",
            Cut(cell.qualifier),
            cell.value.len()
        ))
    })?;
    Ok(ColumnIncrement {
        family: cell.family,
        qualifier: cell.qualifier,
        amount: i64::from_be_bytes(amount),
    })
}

fn append<'a>(cell: &WireCell<'a>) -> ColumnAppend<'a> {
    ColumnAppend {
        family: cell.family,
        qualifier: cell.qualifier,
        value: cell.value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row has any length until the engine checks it. The refusal does not repeat it four times.
    #[test]
    fn a_refusal_names_a_long_row_in_short() {
        let mutation = MutationProto {
            row: Some(Bytes::from(vec![0; 1 << 20])),
            mutate_type: Some(MutationType::Put.into()),
            associated_cell_count: Some(1),
            ..MutationProto::default()
        };
        let cell = WireCell {
            row: b"r",
            family: b"f",
            qualifier: b"q",
            timestamp: 1,
            cell_type: CellType::Put,
            value: b"",
            tags: b"",
        };
        let mut block = Vec::new();
        cell.encode(&mut block);
        let text = write(&mutation, &mut Cells::new(&block)).unwrap_err().to_string();
        assert!(
            text.starts_with("a cell of row r in a mutation of row "),
            "{text}"
        );
        assert!(text.ends_with("(1048576 bytes)"), "{text}");
        assert!(text.len() < 8 << 10, "{} bytes", text.len());
    }
}
