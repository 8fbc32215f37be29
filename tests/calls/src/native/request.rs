//! Values of a script to protobuf messages.

use basalt_idl::native::cells::{CellType, LATEST_TIMESTAMP, WireCell};
use basalt_idl::native::messages::mutation_proto::column_value::QualifierValue;
use basalt_idl::native::messages::mutation_proto::{ColumnValue, DeleteType, MutationType};
use basalt_idl::native::messages::{
    Action, Column, ColumnFamilyTimeRange, Comparator, Condition, Filter, Get, MutationProto, NameBytesPair,
    Scan, TimeRange,
};
use prost::Message;

use crate::Value;
use crate::connection::NoAnswer;
use crate::fields::Fields;

use super::service::ClientKind;

/// HBase's comparator of conditions that name a value.
const BINARY_COMPARATOR: &str = "org.apache.hadoop.hbase.filter.BinaryComparator";

type Made<T> = Result<T, NoAnswer>;

impl Fields<'_> {
    fn encoded<M: Message + Default>(self, name: &str) -> Made<Option<M>> {
        let bytes = self.optional_bytes(name)?;
        let decoded = bytes.map(M::decode).transpose();
        decoded.map_err(|error| NoAnswer::Script(format!("field {name} of {}: {error}", self.0)))
    }

    fn attributes(self) -> Made<Vec<NameBytesPair>> {
        let pairs = match self.0.field("attributes") {
            None => return Ok(Vec::new()),
            Some(Value::Map(pairs)) => pairs,
            Some(_) => return Err(self.wrong("attributes")),
        };
        let pair = |(name, value): &(Value, Value)| match (name, value) {
            (Value::Bytes(name), Value::Bytes(value)) => Ok(NameBytesPair {
                name: String::from_utf8_lossy(name).into_owned(),
                value: Some(value.clone().into()),
            }),
            _ => Err(self.wrong("attributes")),
        };
        pairs.iter().map(pair).collect()
    }

    fn time_range(self) -> Made<Option<TimeRange>> {
        let range = self.optional("timeRange").map(range);
        range.transpose()
    }

    fn family_ranges(self) -> Made<Vec<ColumnFamilyTimeRange>> {
        let ranges = self.list("familyRanges")?.into_iter().map(|entry| {
            Ok(ColumnFamilyTimeRange {
                column_family: entry.bytes("family")?,
                time_range: range(entry.message("range")?)?,
            })
        });
        ranges.collect()
    }

    fn columns(self) -> Made<Vec<Column>> {
        self.list("columns")?.into_iter().map(column).collect()
    }
}

fn range(of: Fields<'_>) -> Made<TimeRange> {
    Ok(TimeRange {
        from: of.int("from")?,
        to: of.int("to")?,
    })
}

fn column(of: Fields<'_>) -> Made<Column> {
    let qualifiers = of.list("qualifiers")?.into_iter();
    let qualifiers = qualifiers.map(|qualifier| match qualifier.0 {
        Value::Bytes(qualifier) => Ok(qualifier.clone().into()),
        _ => Err(of.wrong("qualifiers")),
    });
    Ok(Column {
        family: of.bytes("family")?,
        qualifier: qualifiers.collect::<Made<_>>()?,
    })
}

/// A Get.
pub(super) fn get(of: Fields<'_>) -> Made<Get> {
    Ok(Get {
        row: of.bytes("row")?,
        column: of.columns()?,
        attribute: of.attributes()?,
        filter: of.encoded::<Filter>("filter")?,
        time_range: of.time_range()?,
        max_versions: of.u32("maxVersions")?,
        cache_blocks: of.flag("cacheBlocks")?,
        store_limit: of.u32("storeLimit")?,
        store_offset: of.u32("storeOffset")?,
        existence_only: of.flag("existenceOnly")?,
        cf_time_range: of.family_ranges()?,
        load_column_families_on_demand: of.flag("onDemand")?,
        ..Get::default()
    })
}

/// A Scan.
pub(super) fn scan(of: Fields<'_>) -> Made<Scan> {
    Ok(Scan {
        column: of.columns()?,
        attribute: of.attributes()?,
        start_row: of.optional_bytes("startRow")?,
        stop_row: of.optional_bytes("stopRow")?,
        include_start_row: of.flag("includeStartRow")?,
        include_stop_row: of.flag("includeStopRow")?,
        filter: of.encoded::<Filter>("filter")?,
        time_range: of.time_range()?,
        max_versions: of.u32("maxVersions")?,
        cache_blocks: of.flag("cacheBlocks")?,
        batch_size: of.u32("batchSize")?,
        store_limit: of.u32("storeLimit")?,
        store_offset: of.u32("storeOffset")?,
        reversed: of.flag("reversed")?,
        caching: of.u32("caching")?,
        allow_partial_results: of.flag("allowPartialResults")?,
        cf_time_range: of.family_ranges()?,
        read_type: of.int("readType")?,
        load_column_families_on_demand: of.flag("onDemand")?,
        need_cursor_result: of.flag("needCursorResult")?,
        ..Scan::default()
    })
}

/// A Condition.
pub(super) fn condition(of: Fields<'_>) -> Made<Condition> {
    let comparator = match of.optional_bytes("value")? {
        // ComparatorProtos.BinaryComparator { ByteArrayComparable { value } }.
        Some(value) => Some(Comparator {
            name: BINARY_COMPARATOR.to_owned(),
            serialized_comparator: Some(binary_comparator(&value).into()),
        }),
        None => of.encoded("comparator")?,
    };
    Ok(Condition {
        row: of.bytes("row")?,
        family: of.optional_bytes("family")?,
        qualifier: of.optional_bytes("qualifier")?,
        compare_type: of.int("compare")?,
        comparator,
        time_range: of.time_range()?,
        filter: of.encoded("filter")?,
    })
}

/// Field 1 of a message is the only field of another one, whose field 1 is the value.
fn binary_comparator(value: &[u8]) -> Vec<u8> {
    let field = |bytes: &[u8]| {
        let mut out = vec![0x0a];
        prost::encoding::encode_varint(bytes.len() as u64, &mut out);
        out.extend_from_slice(bytes);
        out
    };
    field(&field(value))
}

/// The cell block of a request.
#[derive(Debug)]
pub(super) struct CellsOut {
    has_codec: bool,
    pub(super) block: Vec<u8>,
}

impl CellsOut {
    /// An empty block of a connection of this kind.
    pub(super) fn new(kind: ClientKind) -> Self {
        CellsOut {
            has_codec: kind != ClientKind::Bare,
            block: Vec::new(),
        }
    }
}

/// An action of a Multi.
pub(super) fn action(index: usize, of: Fields<'_>, cells: &mut CellsOut) -> Made<Action> {
    let mutation = of
        .optional("mutation")
        .map(|of| mutation(of, cells))
        .transpose()?;
    Ok(Action {
        index: Some(index as u32),
        mutation: mutation.map(Box::new),
        get: of.optional("get").map(get).transpose()?.map(Box::new),
        service_call: None,
    })
}

/// A mutation; its cells go to `cells` unless they are to be inside.
pub(super) fn mutation(of: Fields<'_>, cells: &mut CellsOut) -> Made<MutationProto> {
    let kind = of.int::<i32>("type")?;
    let kind = kind.and_then(|code| MutationType::try_from(code).ok());
    let kind = kind.ok_or_else(|| of.wrong("type"))?;
    let mut mutation = MutationProto {
        row: Some(of.bytes("row")?),
        mutate_type: Some(kind.into()),
        timestamp: of.int("timestamp")?,
        attribute: of.attributes()?,
        durability: of.int("durability")?,
        time_range: of.time_range()?.map(Box::new),
        nonce: of.int("nonce")?,
        ..MutationProto::default()
    };
    let written = of.list("cells")?;
    if of.flag("inline")? == Some(true) || !cells.has_codec {
        mutation.column_value = column_values(&written)?;
        return Ok(mutation);
    }
    for cell in &written {
        put_cell(&mutation, *cell, &mut cells.block)?;
    }
    mutation.associated_cell_count = Some(written.len() as i32);
    Ok(mutation)
}

/// Cells inside a message: adjacent ones of one family together.
fn column_values(cells: &[Fields<'_>]) -> Made<Vec<ColumnValue>> {
    let mut families: Vec<ColumnValue> = Vec::new();
    for cell in cells {
        let family = cell.bytes("family")?;
        let value = QualifierValue {
            qualifier: cell.optional_bytes("qualifier")?,
            value: cell.optional_bytes("value")?,
            timestamp: cell.int("timestamp")?,
            delete_type: cell.int("delete")?,
            tags: None,
        };
        match families.last_mut().filter(|last| last.family == family) {
            Some(last) => last.qualifier_value.push(value),
            None => families.push(ColumnValue {
                family,
                qualifier_value: vec![value],
            }),
        }
    }
    Ok(families)
}

/// Appends a cell to a block, with the mutation's timestamp if it has none.
fn put_cell(mutation: &MutationProto, of: Fields<'_>, block: &mut Vec<u8>) -> Made<()> {
    let default = mutation.timestamp.map_or(LATEST_TIMESTAMP, u64::cast_signed);
    let cell_type = match of.int::<i32>("delete")?.map(DeleteType::try_from) {
        None => CellType::Put,
        Some(Ok(DeleteType::DeleteOneVersion)) => CellType::Delete,
        Some(Ok(DeleteType::DeleteMultipleVersions)) => CellType::DeleteColumn,
        Some(Ok(DeleteType::DeleteFamily)) => CellType::DeleteFamily,
        Some(Ok(DeleteType::DeleteFamilyVersion)) => CellType::DeleteFamilyVersion,
        Some(Err(_)) => return Err(of.wrong("delete")),
    };
    let cell = WireCell {
        row: mutation.row(),
        family: &of.bytes("family")?,
        qualifier: &of.optional_bytes("qualifier")?.unwrap_or_default(),
        timestamp: of.int("timestamp")?.unwrap_or(default),
        cell_type,
        value: &of.optional_bytes("value")?.unwrap_or_default(),
        tags: b"",
    };
    cell.encode(block);
    Ok(())
}
