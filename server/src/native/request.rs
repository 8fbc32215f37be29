//! Protobuf requests to engine requests.

use std::sync::Arc;

use basalt_engine::cell::LATEST;
use basalt_engine::filter::FilterSpec;
use basalt_engine::op::{ReadSpec, RowMutation, Scan, TimeRange, Write, Writes};
use basalt_engine::schema::{Durability, Escaped, TableName};
use basalt_idl::native::cells::{CellType, Cells, WireCell};
use basalt_idl::native::messages::{
    self, MutationProto, NameBytesPair, mutation_proto,
    mutation_proto::{DeleteType, MutationType},
};
use bytes::Bytes;
use prost::Message;

use crate::admission::Class;
use crate::api::{self, Failure, Server, select};

/// Decodes a call's message.
pub(super) fn decode<M: Message + Default>(parameter: Bytes) -> Result<M, Failure> {
    M::decode(parameter).map_err(|error| Failure::do_not_retry(format!("malformed request: {error}")))
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
pub(super) fn returns_results(mutation: &MutationProto) -> bool {
    flag(&mutation.attribute, "_rr_").unwrap_or(true)
}

/// Timestamps of interest.
pub(super) fn time_range(range: Option<&messages::TimeRange>) -> Result<TimeRange, Failure> {
    let Some(range) = range else {
        return Ok(TimeRange::ALL);
    };
    // Unsigned on the wire and signed in Java: a negative time arrives as a huge one.
    let bound = |time: Option<u64>, otherwise: i64| time.map_or(otherwise, |time| time as i64);
    let (min, max) = (bound(range.from, 0), bound(range.to, i64::MAX));
    if min < 0 || max < 0 || max < min {
        return Err(Failure::do_not_retry(format!(
            "time range from {min} to {max} is empty or negative"
        )));
    }
    Ok(TimeRange { min, max })
}

/// Decodes a filter.
pub(super) fn decode_filter(filter: &messages::Filter) -> Result<Arc<FilterSpec>, Failure> {
    FilterSpec::decode(&filter.encode_to_vec(), rand::random())
        .map(Arc::new)
        .map_err(|error| Failure::do_not_retry(error.to_string()))
}

/// Whether a filter may have a regular expression.
pub(super) fn has_regex(filter: &messages::Filter) -> bool {
    api::has_regex(None, filter.serialized_filter.as_ref())
}

/// Decodes the filter of a read of `table`, if there is one.
pub(super) async fn filter(
    server: &Arc<Server>,
    table: &TableName,
    filter: Option<&messages::Filter>,
) -> Result<Option<Arc<FilterSpec>>, Failure> {
    let Some(filter) = filter else { return Ok(None) };
    let class = Class::of_read(table);
    let decoded = converted(server, class, filter, has_regex(filter), decode_filter).await?;
    Ok(Some(decoded))
}

/// Converts a message: on the pool if it may have a regular expression, which must be compiled.
pub(super) async fn converted<M, T>(
    server: &Arc<Server>,
    class: Class,
    message: &M,
    has_regex: bool,
    convert: fn(&M) -> Result<T, Failure>,
) -> Result<T, Failure>
where
    M: Clone + Send + 'static,
    T: Send + 'static,
{
    if !has_regex {
        return convert(message);
    }
    let message = message.clone();
    // Boxed: few messages need it.
    Box::pin(server.compiled(class, move |_| convert(&message))).await
}

fn family_time_ranges(
    ranges: &[messages::ColumnFamilyTimeRange],
) -> Result<std::collections::BTreeMap<Vec<u8>, TimeRange>, Failure> {
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

/// The read that a Get asks for, with its decoded filter.
pub(super) fn get(get: &messages::Get, filter: Option<Arc<FilterSpec>>) -> Result<ReadSpec, Failure> {
    if get.closest_row_before == Some(true) {
        return Err(Failure::unknown_protocol(
            "the row before the closest one is not served since HBase 2; use a reversed scan",
        ));
    }
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

/// The scan that a Scan asks for, with its decoded filter, over the whole table. The caller confines it
/// to a region.
pub(super) fn scan(scan: &messages::Scan, filter: Option<Arc<FilterSpec>>) -> Result<Scan, Failure> {
    Ok(Scan {
        start_row: scan.start_row.as_deref().unwrap_or_default().to_vec(),
        include_start: scan.include_start_row.unwrap_or(true),
        stop_row: scan.stop_row.as_deref().unwrap_or_default().to_vec(),
        include_stop: scan.include_stop_row.unwrap_or(false),
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

/// The row of a mutation.
pub(super) fn row(mutation: &MutationProto) -> Result<&Bytes, Failure> {
    mutation
        .row
        .as_ref()
        .ok_or_else(|| Failure::do_not_retry("the mutation has no row"))
}

/// The durability of a mutation.
pub(super) fn durability(mutation: &MutationProto) -> Durability {
    match mutation.durability() {
        mutation_proto::Durability::UseDefault => Durability::UseDefault,
        mutation_proto::Durability::SkipWal => Durability::SkipWal,
        mutation_proto::Durability::AsyncWal => Durability::AsyncWal,
        mutation_proto::Durability::SyncWal => Durability::SyncWal,
        mutation_proto::Durability::FsyncWal => Durability::FsyncWal,
    }
}

/// The `_ttl` attribute: 8 bytes of milliseconds.
pub(super) fn ttl(mutation: &MutationProto) -> Result<Option<i64>, Failure> {
    let Some(value) = attribute(&mutation.attribute, "_ttl") else {
        return Ok(None);
    };
    let bytes = <[u8; 8]>::try_from(&value[..]).map_err(|_| {
        Failure::do_not_retry(format!(
            "the attribute _ttl must be 8 bytes, but is {} bytes",
            value.len()
        ))
    })?;
    Ok(Some(i64::from_be_bytes(bytes)))
}

/// Moves past the cells of a mutation: `cells.offset()` is then the beginning of the next one's
/// cells.
pub(super) fn skip_cells(mutation: &MutationProto, cells: &mut Cells<'_>) -> Result<(), Failure> {
    for _ in 0..mutation.associated_cell_count.unwrap_or_default() {
        cells.require().map_err(malformed)?;
    }
    Ok(())
}

fn malformed(error: basalt_idl::native::cells::CellError) -> Failure {
    Failure::do_not_retry(error.to_string())
}

/// The cells of a mutation, from its message and from the cell block.
pub(super) fn cells<'a>(
    mutation: &'a MutationProto,
    block: &mut Cells<'a>,
) -> Result<Vec<WireCell<'a>>, Failure> {
    let row = row(mutation)?;
    // As in HBase: a delete's own timestamp is for its whole row, not for its columns.
    let is_delete = mutation.mutate_type() == MutationType::Delete;
    let default = mutation.timestamp.filter(|_| !is_delete);
    let mut cells = Vec::new();
    for column in &mutation.column_value {
        for value in &column.qualifier_value {
            cells.push(WireCell {
                row,
                family: &column.family,
                qualifier: value.qualifier.as_deref().unwrap_or_default(),
                timestamp: value.timestamp.or(default).map_or(LATEST, |time| time as i64),
                cell_type: cell_type(mutation, value),
                value: value.value.as_deref().unwrap_or_default(),
                tags: value.tags.as_deref().unwrap_or_default(),
            });
        }
    }
    for _ in 0..mutation.associated_cell_count.unwrap_or_default() {
        let mut cell = block.require().map_err(malformed)?;
        if cell.row != &row[..] {
            return Err(Failure::do_not_retry(format!(
                "a cell of row {} in a mutation of row {}",
                Escaped(cell.row),
                Escaped(row)
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
pub(super) fn write<'a>(
    mutation: &'a MutationProto,
    block: &mut Cells<'a>,
) -> Result<RowMutation<'a>, Failure> {
    let row = row(mutation)?;
    let ttl_ms = ttl(mutation)?;
    let cells = cells(mutation, block)?;
    let mut writes = Writes::new();
    match mutation.mutate_type() {
        MutationType::Put | MutationType::Delete => {}
        other => {
            return Err(Failure::do_not_retry(format!(
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
fn write_time(timestamp: i64) -> Result<Option<i64>, Failure> {
    match timestamp {
        LATEST => Ok(None),
        0.. => Ok(Some(timestamp)),
        negative => Err(Failure::do_not_retry(format!(
            "Timestamp cannot be negative. ts={negative}"
        ))),
    }
}
