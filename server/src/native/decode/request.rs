//! Protobuf requests to engine requests.

use std::borrow::Borrow;
use std::sync::Arc;

use basalt_engine::cell::LATEST;
use basalt_engine::filter::{FilterSender, FilterSpec};
use basalt_engine::id::{ORIGIN_CLUSTERS_MAX, Origin, Uuid};
use basalt_engine::op::{
    ColumnAppend, ColumnIncrement, ReadSpec, ReadTier, RowMutation, RowUpdate, Scan, TimeRange, Write, Writes,
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
    M::decode(parameter).map_err(undecodable)
}

/// The refusal of a message that cannot be decoded.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub fn undecodable(error: prost::DecodeError) -> Error {
    do_not_retry(format!("malformed request: {error}"))
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

/// Decodes a filter. With a sender, one of a user's class is kept for the host of user code.
pub fn decode_filter_of(filter: &messages::Filter, sender: Option<&FilterSender>) -> Result<Arc<FilterSpec>> {
    let Some(sender) = sender else {
        return decode_filter(filter);
    };
    FilterSpec::decode_with_user_code(&filter.encode_to_vec(), rand::random(), sender)
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
        },
        tier: ReadTier::All,
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
    durability_of(mutation.durability())
}

/// Converts a durability.
pub fn durability_of(durability: mutation_proto::Durability) -> Durability {
    match durability {
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

/// The names of a mutation's attributes.
pub fn attribute_names(mutation: &MutationProto) -> impl Iterator<Item = &str> {
    mutation.attribute.iter().map(|attribute| attribute.name.as_str())
}

/// The attribute with the clusters that a mutation has passed, as it was sent.
pub fn origin_bytes(mutation: &MutationProto) -> Option<&Bytes> {
    attribute(&mutation.attribute, "_cs.id")
}

/// The clusters that a mutation has passed (HBase: `Mutation.setClusterIds`): their count, then each as two
/// longs.
pub fn origin(mutation: &MutationProto) -> Result<Origin> {
    let Some(value) = origin_bytes(mutation) else {
        return Ok(Origin::default());
    };
    let malformed = || {
        do_not_retry(format!(
            "the attribute _cs.id must be a count and as many cluster ids of 16 bytes, but is {} bytes",
            value.len()
        ))
    };
    let (count, ids) = value.split_first_chunk::<4>().ok_or_else(malformed)?;
    let (ids, rest) = ids.as_chunks::<16>();
    if ids.len() != u32::from_be_bytes(*count) as usize || !rest.is_empty() {
        return Err(malformed());
    }
    origin_of(ids.iter().map(|id| Uuid(*id)).collect())
}

/// These clusters as the origin of an edit.
pub fn origin_of(clusters: Vec<Uuid>) -> Result<Origin> {
    let count = clusters.len();
    Origin::new(clusters).ok_or_else(|| {
        do_not_retry(format!(
            "an edit has passed {count} clusters, and the log takes {ORIGIN_CLUSTERS_MAX}: replication goes round in a circle"
        ))
    })
}

/// Moves past the cells of a mutation: `cells.offset()` is then the beginning of the next one's
/// cells. Only their lengths are checked.
pub fn skip_cells(mutation: &MutationProto, cells: &mut Cells<'_>) -> Result<()> {
    skip_cells_of(cells_in_block(mutation), cells)
}

/// Moves past `count` cells.
pub fn skip_cells_of(count: u32, cells: &mut Cells<'_>) -> Result<()> {
    for _ in 0..count {
        cells.skip_one().map_err(malformed)?;
    }
    Ok(())
}

/// Number of a mutation's cells in the cell block.
fn cells_in_block(mutation: &MutationProto) -> u32 {
    u32::try_from(mutation.associated_cell_count.unwrap_or_default()).unwrap_or(0)
}

/// The refusal of a malformed cell block.
pub fn malformed(error: basalt_idl::native::cells::CellError) -> Error {
    do_not_retry(error.to_string())
}

/// Passes the cells of a mutation to `each`: those of its message, then those of the cell block.
fn each_cell<'a>(
    mutation: &'a MutationProto,
    block: &mut Cells<'a>,
    mut each: impl FnMut(&WireCell<'a>) -> Result<()>,
) -> Result<()> {
    let row = row(mutation)?;
    for cell in &cells_in_message(mutation, row)? {
        each(cell)?;
    }
    each_cell_in_block(row, cells_in_block(mutation), block, each)
}

/// Passes the next `count` cells of the block, which must be of that row, to `each`. As in HBase, the
/// timestamp of the mutation is not theirs.
#[inline]
pub fn each_cell_in_block<'a>(
    row: &[u8],
    count: u32,
    block: &mut Cells<'a>,
    mut each: impl FnMut(&WireCell<'a>) -> Result<()>,
) -> Result<()> {
    for _ in 0..count {
        let cell = block.require().map_err(malformed)?;
        if cell.row != row {
            return Err(do_not_retry(format!(
                "a cell of row {} in a mutation of row {}",
                Cut(cell.row),
                Cut(row)
            )));
        }
        each(&cell)?;
    }
    Ok(())
}

/// The cells in the message itself: those of clients without a codec, and of Java's client in a call
/// of one mutation. As in HBase, a mutation's own timestamp is that of its puts; in a delete it is for
/// the whole row, not for columns.
fn cells_in_message<'a>(mutation: &'a MutationProto, row: &'a [u8]) -> Result<Vec<WireCell<'a>>> {
    let kind = mutation.mutate_type();
    let default = mutation.timestamp.filter(|_| kind == MutationType::Put);
    let mut cells: Vec<WireCell<'a>> = Vec::new();
    for column in &mutation.column_value {
        for value in &column.qualifier_value {
            let cell_type = cell_type(kind, value);
            if kind != MutationType::Delete && value.value.is_none() {
                return Err(do_not_retry("Missing required field: qualifier value"));
            }
            // As in HBase: in a delete, that of a family replaces those of its columns before it.
            if kind == MutationType::Delete && cell_type == CellType::DeleteFamily {
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
    Ok(cells)
}

/// The type of a cell in the message. A put has delete markers, too; increments and appends have none.
fn cell_type(kind: MutationType, value: &mutation_proto::column_value::QualifierValue) -> CellType {
    match kind {
        MutationType::Delete => {}
        MutationType::Put if value.delete_type.is_some() => {}
        _ => return CellType::Put,
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
    let mut writes = Writes::new();
    add_writes(mutation, block, &mut writes)?;
    Ok(RowMutation {
        row: row(mutation)?,
        writes,
        durability: durability(mutation),
    })
}

/// Adds the writes of a put or delete to those of its row.
fn add_writes<'a>(mutation: &'a MutationProto, block: &mut Cells<'a>, writes: &mut Writes<'a>) -> Result<()> {
    let ttl_ms = ttl(mutation)?;
    match mutation.mutate_type() {
        MutationType::Put | MutationType::Delete => {}
        other => {
            return Err(do_not_retry(format!(
                "{} cannot stand in a group of mutations here; send it alone",
                other.as_str_name()
            )));
        }
    }
    let before = writes.len();
    let kind = mutation.mutate_type();
    each_cell(mutation, block, |cell| push_write(kind, cell, ttl_ms, writes))?;
    if writes.len() == before && mutation.mutate_type() == MutationType::Delete {
        push_delete_of_row(mutation.timestamp, writes)?;
    }
    Ok(())
}

/// Adds the write that a cell of a put or delete is. A marker of one version without a timestamp means the
/// newest version in a delete only; in a put it gets the time of the put, as in HBase.
#[inline]
pub fn push_write<'a>(
    kind: MutationType,
    cell: &WireCell<'a>,
    ttl_ms: Option<i64>,
    writes: &mut Writes<'a>,
) -> Result<()> {
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
        CellType::Delete if kind == MutationType::Put && timestamp.is_none() => {
            Write::DeleteVersionAtWrite { family, qualifier }
        }
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
    Ok(())
}

/// Adds the delete of a whole row, which a delete without cells is.
pub fn push_delete_of_row(timestamp: Option<u64>, writes: &mut Writes<'_>) -> Result<()> {
    let timestamp = write_time(timestamp.map_or(LATEST, |time| time as i64))?;
    writes.push(Write::DeleteRow { timestamp });
    Ok(())
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
pub fn rows<'a, M: Borrow<MutationProto>>(
    mutations: &'a [M],
    cells: &'a Bytes,
) -> Result<Vec<RowMutation<'a>>> {
    let mut block = Cells::new(cells);
    let mut rows: Vec<RowMutation<'a>> = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        let mutation = mutation.borrow();
        let writes = writes_of(&mut rows, row(mutation)?, durability(mutation));
        add_writes(mutation, &mut block, writes)?;
    }
    Ok(rows)
}

/// Where the writes of the next mutation go: into the last row if it is the same with the same durability,
/// else into a new one.
pub fn writes_of<'r, 'a>(
    rows: &'r mut Vec<RowMutation<'a>>,
    row: &'a [u8],
    durability: Durability,
) -> &'r mut Writes<'a> {
    let is_joined = |last: &RowMutation<'_>| last.row == row && last.durability == durability;
    if !rows.last().is_some_and(is_joined) {
        rows.push(RowMutation {
            row,
            writes: Writes::new(),
            durability,
        });
    }
    let last = rows.len() - 1;
    &mut rows[last].writes
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
    if mutation.mutate_type() == MutationType::Increment {
        let mut columns = Vec::new();
        each_cell(mutation, block, |cell| {
            check_is_put("an increment", cell)?;
            columns.push(increment(cell)?);
            Ok(())
        })?;
        return Ok(RowUpdate::Increment(columns));
    }
    let mut columns = Vec::new();
    each_cell(mutation, block, |cell| {
        check_is_put("an append", cell)?;
        columns.push(append(cell)?);
        Ok(())
    })?;
    Ok(RowUpdate::Append(columns))
}

/// Refuses delete markers in increments and appends: HBase would keep the marker where the column has
/// no cell, and change the value where it has one.
fn check_is_put(kind: &str, cell: &WireCell<'_>) -> Result<()> {
    if cell.cell_type == CellType::Put {
        return Ok(());
    }
    Err(do_not_retry(format!(
        "{kind} of column {} has a cell of type {:?}; it takes cells of type Put only: send the marker in a Put or a Delete",
        Cut(cell.qualifier),
        cell.cell_type
    )))
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
        timestamp: write_time(cell.timestamp)?,
    })
}

fn append<'a>(cell: &WireCell<'a>) -> Result<ColumnAppend<'a>> {
    Ok(ColumnAppend {
        family: cell.family,
        qualifier: cell.qualifier,
        value: cell.value,
        timestamp: write_time(cell.timestamp)?,
    })
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
