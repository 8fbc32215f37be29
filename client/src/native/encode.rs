//! Requests as messages of HBase's protocol.
//!
//! A [`Mutation`] is a write to be sent: its cells go inside the message, as Java's client sends
//! single mutations and atomic groups, or to the cell block of a batch.

use std::collections::BTreeMap;

use basalt_idl::native::cells::{CellType, LATEST_TIMESTAMP, WireCell};
use basalt_idl::native::messages::mutation_proto::{
    ColumnValue, DeleteType, MutationType, column_value::QualifierValue,
};
use basalt_idl::native::messages::{
    self, BinaryComparator, ByteArrayComparable, Column, ColumnFamilyTimeRange, Comparator, Condition,
    Filter, MutationProto, NameBytesPair, TimeRange,
};
use basalt_idl::thrift2::{
    TAppend, TAuthorization, TColumn, TConsistency, TDelete, TDeleteType, TDurability, TGet, TIncrement,
    TMutation, TPut, TReadType, TScan, TTimeRange,
};
use bytes::Bytes;
use prost::Message;

use super::filter::filter_message;
use crate::error::{Error, Result};
use crate::request::Check;

/// Attribute with the visibility labels of a reader.
const VISIBILITY: &str = "VISIBILITY";

/// Attribute that says whether increments and appends return their results.
const RETURN_RESULTS: &str = "_rr_";

const BINARY_COMPARATOR: &str = "org.apache.hadoop.hbase.filter.BinaryComparator";

type Attributes = Option<BTreeMap<Bytes, Bytes>>;

/// A get; with `existence_only` the answer has no cells.
pub(super) fn get(get: TGet, existence_only: bool) -> Result<messages::Get> {
    let time_range = match get.timestamp {
        Some(timestamp) => Some(TimeRange {
            from: Some(timestamp as u64),
            to: Some(timestamp.saturating_add(1) as u64),
        }),
        None => get.time_range.as_ref().map(time_range),
    };
    Ok(messages::Get {
        row: get.row,
        column: columns(get.columns),
        attribute: attributes(get.attributes, get.authorizations.as_ref())?,
        filter: filter(get.filter_string.as_ref(), get.filter_bytes)?,
        time_range,
        max_versions: Some(versions(get.max_versions)),
        cache_blocks: get.cache_blocks,
        store_limit: get.store_limit.map(|limit| limit as u32),
        store_offset: get.store_offset.map(|offset| offset as u32),
        existence_only: existence_only.then_some(true),
        consistency: get.consistency.map(consistency),
        ..messages::Get::default()
    })
}

/// A scan without its range, which changes from region to region.
pub(super) fn scan(scan: TScan, fetch_bytes: u64) -> Result<messages::Scan> {
    let ranges = scan.col_fam_time_range_map.into_iter().flatten();
    Ok(messages::Scan {
        column: columns(scan.columns),
        attribute: attributes(scan.attributes, scan.authorizations.as_ref())?,
        filter: filter(scan.filter_string.as_ref(), scan.filter_bytes)?,
        time_range: scan.time_range.as_ref().map(time_range),
        max_versions: Some(versions(Some(scan.max_versions))),
        cache_blocks: scan.cache_blocks,
        batch_size: scan
            .batch_size
            .and_then(|cells| u32::try_from(cells).ok())
            .filter(|cells| *cells > 0),
        max_result_size: Some(fetch_bytes),
        reversed: scan.reversed.filter(|reversed| *reversed),
        consistency: scan.consistency.map(consistency),
        read_type: scan.read_type.map(read_type),
        cf_time_range: ranges
            .map(|(family, range)| ColumnFamilyTimeRange {
                column_family: family,
                time_range: time_range(&range),
            })
            .collect(),
        ..messages::Scan::default()
    })
}

fn versions(versions: Option<i32>) -> u32 {
    versions
        .and_then(|versions| u32::try_from(versions).ok())
        .unwrap_or(1)
}

fn time_range(range: &TTimeRange) -> TimeRange {
    TimeRange {
        from: Some(range.min_stamp as u64),
        to: Some(range.max_stamp as u64),
    }
}

fn consistency(consistency: TConsistency) -> i32 {
    match consistency {
        TConsistency::TIMELINE => messages::Consistency::Timeline.into(),
        _ => messages::Consistency::Strong.into(),
    }
}

fn read_type(read_type: TReadType) -> i32 {
    use messages::scan::ReadType;
    match read_type {
        TReadType::STREAM => ReadType::Stream.into(),
        TReadType::PREAD => ReadType::Pread.into(),
        _ => ReadType::Default.into(),
    }
}

/// Columns by family. If a family and columns of it are named, the last one counts, as in HBase.
fn columns(columns: Option<Vec<TColumn>>) -> Vec<Column> {
    let mut families: Vec<Column> = Vec::new();
    for column in columns.into_iter().flatten() {
        let at = families.iter().position(|known| known.family == column.family);
        let at = at.unwrap_or_else(|| {
            families.push(Column {
                family: column.family.clone(),
                qualifier: Vec::new(),
            });
            families.len() - 1
        });
        match column.qualifier {
            Some(qualifier) => families[at].qualifier.push(qualifier),
            None => families[at].qualifier.clear(),
        }
    }
    families
}

fn attributes(attributes: Attributes, labels: Option<&TAuthorization>) -> Result<Vec<NameBytesPair>> {
    let mut pairs = Vec::new();
    for (name, value) in attributes.into_iter().flatten() {
        let name = String::from_utf8(name.into());
        let name = name.map_err(|error| {
            Error::InvalidRequest(format!("attribute name {:?} is not UTF-8", error.as_bytes()))
        })?;
        pairs.push(pair(name, value));
    }
    if let Some(labels) = labels {
        pairs.push(pair(VISIBILITY.to_owned(), authorizations(labels)));
    }
    Ok(pairs)
}

fn pair(name: String, value: Bytes) -> NameBytesPair {
    NameBytesPair {
        name,
        value: Some(value),
    }
}

/// HBase's message Authorizations, which has one repeated field of texts.
fn authorizations(labels: &TAuthorization) -> Bytes {
    let mut message = Vec::new();
    prost::encoding::string::encode_repeated(1, labels.labels.as_deref().unwrap_or_default(), &mut message);
    message.into()
}

/// A filter as HBase's message, from its text or its bytes.
fn filter(text: Option<&Bytes>, message: Option<Bytes>) -> Result<Option<Filter>> {
    let message = match text {
        Some(text) => Some(filter_message(text)?),
        None => message,
    };
    let filter = message.map(Filter::decode).transpose();
    filter.map_err(|error| Error::InvalidRequest(format!("filter_bytes is not a filter: {error}")))
}

/// A write of one row, to be sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mutation {
    /// The message without cells.
    proto: MutationProto,
    cells: Vec<MutationCell>,
}

#[derive(Clone, Debug, PartialEq)]
struct MutationCell {
    family: Bytes,
    qualifier: Bytes,
    timestamp: i64,
    cell_type: CellType,
    value: Bytes,
}

impl Mutation {
    pub(super) fn put(put: TPut) -> Result<Mutation> {
        let default = put.timestamp.unwrap_or(LATEST_TIMESTAMP);
        let cells = put.column_values.into_iter().map(|cell| MutationCell {
            family: cell.family,
            qualifier: cell.qualifier,
            timestamp: cell.timestamp.unwrap_or(default),
            cell_type: CellType::Put,
            value: cell.value,
        });
        Mutation::new(
            put.row,
            MutationType::Put,
            put.durability,
            put.attributes,
            cells.collect(),
        )
    }

    pub(super) fn delete(delete: TDelete) -> Result<Mutation> {
        let cell_type = match delete.delete_type {
            TDeleteType::DELETE_COLUMN => CellType::Delete,
            TDeleteType::DELETE_FAMILY => CellType::DeleteFamily,
            TDeleteType::DELETE_FAMILY_VERSION => CellType::DeleteFamilyVersion,
            _ => CellType::DeleteColumn,
        };
        let cells = delete.columns.into_iter().flatten().map(|column| MutationCell {
            family: column.family,
            qualifier: column.qualifier.unwrap_or_default(),
            timestamp: column.timestamp.unwrap_or(LATEST_TIMESTAMP),
            cell_type,
            value: Bytes::new(),
        });
        let kind = MutationType::Delete;
        let mut mutation = Mutation::new(
            delete.row,
            kind,
            delete.durability,
            delete.attributes,
            cells.collect(),
        )?;
        // Only a delete of the whole row has no cells: this is the timestamp up to which it deletes.
        mutation.proto.timestamp = delete.timestamp.map(|timestamp| timestamp as u64);
        Ok(mutation)
    }

    pub(super) fn increment(increment: TIncrement) -> Result<Mutation> {
        let cells = increment.columns.into_iter().map(|column| MutationCell {
            family: column.family,
            qualifier: column.qualifier,
            timestamp: LATEST_TIMESTAMP,
            cell_type: CellType::Put,
            value: Bytes::copy_from_slice(&column.amount.to_be_bytes()),
        });
        let (row, kind) = (increment.row, MutationType::Increment);
        let mutation = Mutation::new(
            row,
            kind,
            increment.durability,
            increment.attributes,
            cells.collect(),
        )?;
        Ok(mutation.returning(increment.return_results))
    }

    pub(super) fn append(append: TAppend) -> Result<Mutation> {
        let cells = append.columns.into_iter().map(|cell| MutationCell {
            family: cell.family,
            qualifier: cell.qualifier,
            timestamp: LATEST_TIMESTAMP,
            cell_type: CellType::Put,
            value: cell.value,
        });
        let kind = MutationType::Append;
        let mutation = Mutation::new(
            append.row,
            kind,
            append.durability,
            append.attributes,
            cells.collect(),
        )?;
        Ok(mutation.returning(append.return_results))
    }

    pub(super) fn of(mutation: TMutation) -> Result<Mutation> {
        match mutation {
            TMutation::Put(put) => Mutation::put(put),
            TMutation::DeleteSingle(delete) => Mutation::delete(delete),
        }
    }

    fn new(
        row: Bytes,
        kind: MutationType,
        durability: Option<TDurability>,
        attributes: Attributes,
        cells: Vec<MutationCell>,
    ) -> Result<Mutation> {
        let proto = MutationProto {
            row: Some(row),
            mutate_type: Some(kind.into()),
            attribute: self::attributes(attributes, None)?,
            // The codes are those of the Thrift interface.
            durability: durability.map(|durability| durability.0),
            ..MutationProto::default()
        };
        let mutation = Mutation { proto, cells };
        mutation.check()?;
        Ok(mutation)
    }

    fn check(&self) -> Result<()> {
        let too_long = |cell: &&MutationCell| cell.family.len() > i8::MAX as usize;
        match self.cells.iter().find(too_long) {
            Some(cell) => Err(Error::InvalidRequest(format!(
                "family has {} bytes, more than the limit of {}",
                cell.family.len(),
                i8::MAX
            ))),
            None => Ok(()),
        }
    }

    fn returning(mut self, results: Option<bool>) -> Mutation {
        if results == Some(false) {
            let pair = pair(RETURN_RESULTS.to_owned(), Bytes::from_static(&[0]));
            self.proto.attribute.push(pair);
        }
        self
    }

    /// Marks the operation, so that a server recognises its repetition.
    pub(super) fn with_nonce(mut self, nonce: u64) -> Mutation {
        self.proto.nonce = Some(nonce);
        self
    }

    pub(super) fn row(&self) -> &Bytes {
        self.proto.row.as_ref().expect("every constructor sets it")
    }

    /// About the bytes of the cells in a block.
    pub(super) fn bytes(&self) -> usize {
        let row = self.row().len();
        let bytes =
            |cell: &MutationCell| 32 + row + cell.family.len() + cell.qualifier.len() + cell.value.len();
        self.cells.iter().map(bytes).sum()
    }

    /// The message with its cells inside.
    pub(super) fn inline(self) -> MutationProto {
        let mut proto = self.proto;
        for cell in self.cells {
            if proto
                .column_value
                .last()
                .is_none_or(|last| last.family != cell.family)
            {
                proto.column_value.push(ColumnValue {
                    family: cell.family,
                    qualifier_value: Vec::new(),
                });
            }
            let value = QualifierValue {
                qualifier: Some(cell.qualifier),
                value: Some(cell.value),
                timestamp: (cell.timestamp != LATEST_TIMESTAMP).then_some(cell.timestamp as u64),
                delete_type: delete_type(cell.cell_type).map(Into::into),
                ..QualifierValue::default()
            };
            if let Some(last) = proto.column_value.last_mut() {
                last.qualifier_value.push(value);
            }
        }
        proto
    }

    /// The message, whose cells are appended to `block`.
    pub(super) fn with_block(&self, block: &mut Vec<u8>) -> MutationProto {
        for cell in &self.cells {
            let cell = WireCell {
                row: self.row(),
                family: &cell.family,
                qualifier: &cell.qualifier,
                timestamp: cell.timestamp,
                cell_type: cell.cell_type,
                value: &cell.value,
                tags: b"",
            };
            cell.encode(block);
        }
        MutationProto {
            associated_cell_count: Some(self.cells.len() as i32),
            ..self.proto.clone()
        }
    }
}

fn delete_type(cell_type: CellType) -> Option<DeleteType> {
    match cell_type {
        CellType::Put => None,
        CellType::Delete => Some(DeleteType::DeleteOneVersion),
        CellType::DeleteColumn => Some(DeleteType::DeleteMultipleVersions),
        CellType::DeleteFamily => Some(DeleteType::DeleteFamily),
        CellType::DeleteFamilyVersion => Some(DeleteType::DeleteFamilyVersion),
    }
}

/// A condition on a row. Absence is equality with an empty value, as Java's client sends it.
pub(super) fn condition(row: Bytes, check: Check) -> Condition {
    let comparator = BinaryComparator {
        comparable: ByteArrayComparable {
            value: Some(check.value.unwrap_or_default()),
        },
    };
    Condition {
        row,
        family: Some(check.family),
        qualifier: Some(check.qualifier),
        // The codes are those of the Thrift interface.
        compare_type: Some(check.operator.0),
        comparator: Some(Comparator {
            name: BINARY_COMPARATOR.to_owned(),
            serialized_comparator: Some(comparator.encode_to_vec().into()),
        }),
        ..Condition::default()
    }
}

#[cfg(test)]
mod tests {
    use basalt_idl::native::cells::Cells;

    use super::*;
    use crate::request::{Delete, Get, Increment, Put};

    #[test]
    fn the_two_forms_of_a_put_have_the_same_cells() {
        let put = Put::new("r")
            .timestamp(5)
            .cell("f", "a", "1")
            .cell_at("f", "b", 7, "2")
            .cell("g", "c", "3");
        let mutation = Mutation::put(put.into_thrift().unwrap()).unwrap();
        let mut block = Vec::new();
        let proto = mutation.with_block(&mut block);
        assert_eq!(proto.associated_cell_count, Some(3));
        let cells: Vec<_> = Cells::new(&block).collect::<std::result::Result<_, _>>().unwrap();
        assert_eq!(
            (cells[0].row, cells[0].timestamp, cells[1].timestamp),
            (&b"r"[..], 5, 7)
        );
        assert!(block.len() <= mutation.bytes());
        let inline = mutation.inline();
        let families: Vec<_> = inline
            .column_value
            .iter()
            .map(|value| value.family.clone())
            .collect();
        assert_eq!(families, ["f", "g"]);
        let first = &inline.column_value[0].qualifier_value;
        assert_eq!((first[0].timestamp, first[1].timestamp), (Some(5), Some(7)));
        assert_eq!(first[1].value, Some(Bytes::from("2")));
    }

    #[test]
    fn deletes_keep_their_kind_and_timestamp() {
        let row = Mutation::delete(Delete::row("r").up_to(9).into_thrift().unwrap()).unwrap();
        let proto = row.with_block(&mut Vec::new());
        assert_eq!((proto.timestamp, proto.associated_cell_count), (Some(9), Some(0)));
        let newest = Delete::versions("r").column("f", "q").into_thrift().unwrap();
        let proto = Mutation::delete(newest).unwrap().inline();
        let value = &proto.column_value[0].qualifier_value[0];
        assert_eq!(value.delete_type, Some(DeleteType::DeleteOneVersion.into()));
        assert_eq!(value.timestamp, None);
    }

    #[test]
    fn an_increment_carries_its_nonce_and_eight_bytes() {
        let increment = Increment::new("r").column("f", "q", -2).into_thrift().unwrap();
        let proto = Mutation::increment(increment).unwrap().with_nonce(3).inline();
        assert_eq!(proto.nonce, Some(3));
        let value = proto.column_value[0].qualifier_value[0].value.clone();
        assert_eq!(value, Some(Bytes::copy_from_slice(&(-2_i64).to_be_bytes())));
    }

    #[test]
    fn columns_are_grouped_by_family() {
        let asked = Get::new("r")
            .column("f", "a")
            .family("g")
            .column("f", "b")
            .into_thrift()
            .unwrap();
        let sent = get(asked, false).unwrap();
        let shown: Vec<_> = sent
            .column
            .iter()
            .map(|column| (&column.family[..], column.qualifier.len()))
            .collect();
        assert_eq!(shown, [(&b"f"[..], 2), (&b"g"[..], 0)]);
    }

    #[test]
    fn unencodable_requests_are_refused() {
        let bytes = Get::new("r").filter_bytes([0xff]).into_thrift().unwrap();
        assert!(
            get(bytes, false)
                .unwrap_err()
                .to_string()
                .contains("filter_bytes")
        );
        let bad = Get::new("r").attribute([0xff], "x").into_thrift().unwrap();
        assert!(get(bad, false).unwrap_err().to_string().contains("UTF-8"));
        let long = Put::new("r")
            .cell(vec![b'f'; 128], "q", "v")
            .into_thrift()
            .unwrap();
        assert!(
            Mutation::put(long)
                .unwrap_err()
                .to_string()
                .contains("limit of 127")
        );
    }
}
