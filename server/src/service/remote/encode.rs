//! Reads, writes and conditions as messages of the native protocol. The inverse of `native/decode`.

use basalt_engine::filter::FilterSpec;
use basalt_engine::id::Origin;
use basalt_engine::op::{
    Columns, CompareOp, Expected, ReadSpec, RowCondition, RowMutation, RowUpdate, Scan, Test, TimeRange,
    Write,
};
use basalt_engine::schema::Durability;
use basalt_idl::native::messages::mutation_proto::column_value::QualifierValue;
use basalt_idl::native::messages::mutation_proto::{ColumnValue, DeleteType, MutationType};
use basalt_idl::native::messages::{
    self, BinaryComparator, ByteArrayComparable, Column, ColumnFamilyTimeRange, Comparator, Condition,
    MutationProto, NameBytesPair,
};
use bytes::Bytes;
use prost::Message as _;

use crate::service::Failure;
use crate::service::group::Step;

const BINARY_COMPARATOR: &str = "org.apache.hadoop.hbase.filter.BinaryComparator";
/// Attribute of a scan that returns tombstones, too.
const RAW: &str = "_raw_";
/// Attribute with the clusters that a mutation has passed.
const CLUSTER_IDS: &str = "_cs.id";
/// Attribute with the time to live of a mutation's cells.
const TTL: &str = "_ttl";
/// Attribute that says whether increments and appends return their results.
const RETURN_RESULTS: &str = "_rr_";

/// A get.
pub(super) fn get(row: &Bytes, spec: &ReadSpec) -> Result<messages::Get, Failure> {
    Ok(messages::Get {
        row: row.clone(),
        column: columns(spec),
        attribute: attributes(spec),
        filter: filter(spec.filter.as_deref())?,
        time_range: time_range(spec.time_range),
        max_versions: Some(spec.max_versions.unsigned_abs()),
        cache_blocks: Some(spec.cache_blocks),
        store_limit: number(spec.family_limit),
        store_offset: number(Some(spec.family_offset).filter(|offset| *offset > 0)),
        cf_time_range: family_time_ranges(spec),
        ..messages::Get::default()
    })
}

/// A scan with its range. Its limit of rows is the client's.
pub(super) fn scan(scan: &Scan) -> Result<messages::Scan, Failure> {
    let spec = &scan.spec;
    Ok(messages::Scan {
        column: columns(spec),
        attribute: attributes(spec),
        start_row: Some(Bytes::copy_from_slice(&scan.start_row)),
        include_start_row: Some(scan.include_start),
        stop_row: Some(Bytes::copy_from_slice(&scan.stop_row)),
        include_stop_row: Some(scan.include_stop),
        reversed: scan.reversed.then_some(true),
        filter: filter(spec.filter.as_deref())?,
        time_range: time_range(spec.time_range),
        max_versions: Some(spec.max_versions.unsigned_abs()),
        cache_blocks: Some(spec.cache_blocks),
        batch_size: number(scan.batch),
        store_limit: number(spec.family_limit),
        store_offset: number(Some(spec.family_offset).filter(|offset| *offset > 0)),
        caching: number(scan.caching),
        cf_time_range: family_time_ranges(spec),
        ..messages::Scan::default()
    })
}

fn number(number: Option<usize>) -> Option<u32> {
    number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn columns(spec: &ReadSpec) -> Vec<Column> {
    let selections = spec.families.iter();
    let column = selections.map(|selection| Column {
        family: Bytes::copy_from_slice(&selection.family),
        qualifier: match &selection.columns {
            Columns::All => Vec::new(),
            Columns::Only(qualifiers) => qualifiers
                .iter()
                .map(|name| Bytes::copy_from_slice(name))
                .collect(),
        },
    });
    column.collect()
}

fn attributes(spec: &ReadSpec) -> Vec<NameBytesPair> {
    let raw = spec.raw.then(|| attribute(RAW, Bytes::from_static(&[u8::MAX])));
    raw.into_iter().collect()
}

/// Adds the clusters that a mutation has passed: HBase's attribute has their count, then each as two longs.
pub(super) fn add_origin(mutation: &mut MutationProto, origin: &Origin) {
    let clusters = origin.clusters();
    if clusters.is_empty() {
        return;
    }
    let mut value = (clusters.len() as u32).to_be_bytes().to_vec();
    value.extend(clusters.iter().flat_map(|cluster| cluster.0));
    mutation.attribute.push(attribute(CLUSTER_IDS, value.into()));
}

fn attribute(name: &str, value: Bytes) -> NameBytesPair {
    NameBytesPair {
        name: name.to_owned(),
        value: Some(value),
    }
}

fn filter(filter: Option<&FilterSpec>) -> Result<Option<messages::Filter>, Failure> {
    let encoded = filter.map(|filter| messages::Filter::decode(&filter.encode()[..]));
    let encoded = encoded.transpose();
    encoded.map_err(|error| Failure::do_not_retry(format!("the filter cannot be sent: {error}")))
}

fn time_range(range: TimeRange) -> Option<messages::TimeRange> {
    (range != TimeRange::ALL).then(|| to_time_range(range))
}

fn to_time_range(range: TimeRange) -> messages::TimeRange {
    messages::TimeRange {
        from: Some(range.min as u64),
        to: Some(range.max as u64),
    }
}

fn family_time_ranges(spec: &ReadSpec) -> Vec<ColumnFamilyTimeRange> {
    let ranges = spec.family_time_ranges.iter();
    let range = ranges.map(|(family, range)| ColumnFamilyTimeRange {
        column_family: Bytes::copy_from_slice(family),
        time_range: to_time_range(*range),
    });
    range.collect()
}

/// The writes of a row in their order: a message for each run of puts with one time to live, and of
/// deletes. A delete of the whole row is one of its own.
pub(super) fn mutations(mutation: &RowMutation<'_>) -> Vec<MutationProto> {
    let mut messages: Vec<MutationProto> = Vec::new();
    let mut last: Option<Run> = None;
    for write in &mutation.writes {
        let run = Run::of(write);
        if last != Some(run) || run == Run::Row {
            messages.push(run.begin(mutation.row, mutation.durability));
            last = Some(run);
        }
        if let Some(message) = messages.last_mut() {
            add(message, write);
        }
    }
    messages
}

/// Writes that one message can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Puts(Option<i64>),
    Deletes,
    Row,
}

impl Run {
    fn of(write: &Write<'_>) -> Self {
        match write {
            Write::Put { ttl_ms, .. } => Self::Puts(*ttl_ms),
            // HBase's puts carry such markers, too.
            Write::DeleteVersionAtWrite { .. } => Self::Puts(None),
            Write::DeleteRow { .. } => Self::Row,
            _ => Self::Deletes,
        }
    }

    fn begin(self, row: &[u8], durability: Durability) -> MutationProto {
        let (kind, ttl_ms) = match self {
            Self::Puts(ttl_ms) => (MutationType::Put, ttl_ms),
            Self::Deletes | Self::Row => (MutationType::Delete, None),
        };
        begin(row, kind, durability, ttl_ms)
    }
}

fn begin(row: &[u8], kind: MutationType, durability: Durability, ttl_ms: Option<i64>) -> MutationProto {
    let ttl = ttl_ms.map(|ttl_ms| attribute(TTL, Bytes::copy_from_slice(&ttl_ms.to_be_bytes())));
    MutationProto {
        row: Some(Bytes::copy_from_slice(row)),
        mutate_type: Some(kind.into()),
        durability: Some(to_durability(durability).into()),
        attribute: ttl.into_iter().collect(),
        ..MutationProto::default()
    }
}

fn to_durability(durability: Durability) -> messages::mutation_proto::Durability {
    use messages::mutation_proto::Durability as Sent;
    match durability {
        Durability::UseDefault => Sent::UseDefault,
        Durability::SkipWal => Sent::SkipWal,
        Durability::AsyncWal => Sent::AsyncWal,
        Durability::SyncWal => Sent::SyncWal,
        Durability::FsyncWal => Sent::FsyncWal,
    }
}

fn add(message: &mut MutationProto, write: &Write<'_>) {
    let (family, cell) = match *write {
        Write::Put {
            family,
            qualifier,
            timestamp,
            value,
            ..
        } => (family, cell(qualifier, timestamp, value)),
        Write::DeleteVersion {
            family,
            qualifier,
            timestamp,
        } => (family, marker(DeleteType::DeleteOneVersion, qualifier, timestamp)),
        Write::DeleteVersionAtWrite { family, qualifier } => {
            (family, marker(DeleteType::DeleteOneVersion, qualifier, None))
        }
        Write::DeleteColumn {
            family,
            qualifier,
            timestamp,
        } => (
            family,
            marker(DeleteType::DeleteMultipleVersions, qualifier, timestamp),
        ),
        Write::DeleteFamily { family, timestamp } => {
            (family, marker(DeleteType::DeleteFamily, b"", timestamp))
        }
        Write::DeleteFamilyVersion { family, timestamp } => (
            family,
            marker(DeleteType::DeleteFamilyVersion, b"", Some(timestamp)),
        ),
        Write::DeleteRow { timestamp } => {
            message.timestamp = timestamp.map(|timestamp| timestamp as u64);
            return;
        }
    };
    push(message, family, cell);
}

fn push(message: &mut MutationProto, family: &[u8], cell: QualifierValue) {
    match message.column_value.last_mut() {
        Some(last) if last.family == family => last.qualifier_value.push(cell),
        _ => message.column_value.push(ColumnValue {
            family: Bytes::copy_from_slice(family),
            qualifier_value: vec![cell],
        }),
    }
}

fn cell(qualifier: &[u8], timestamp: Option<i64>, value: &[u8]) -> QualifierValue {
    QualifierValue {
        qualifier: Some(Bytes::copy_from_slice(qualifier)),
        value: Some(Bytes::copy_from_slice(value)),
        timestamp: timestamp.map(|timestamp| timestamp as u64),
        ..QualifierValue::default()
    }
}

fn marker(kind: DeleteType, qualifier: &[u8], timestamp: Option<i64>) -> QualifierValue {
    QualifierValue {
        delete_type: Some(kind.into()),
        ..cell(qualifier, timestamp, b"")
    }
}

/// A step of a group.
pub(super) fn step(step: &Step<'_>) -> Vec<MutationProto> {
    match step {
        Step::Write(mutation) => mutations(mutation),
        Step::Update {
            row,
            change,
            ttl_ms,
            time_range,
            durability,
            returns,
        } => {
            let mut message = update(row, change, *durability, *ttl_ms);
            message.time_range = self::time_range(*time_range).map(Box::new);
            if !returns {
                let pair = attribute(RETURN_RESULTS, Bytes::from_static(&[0]));
                message.attribute.push(pair);
            }
            vec![message]
        }
    }
}

fn update(row: &[u8], change: &RowUpdate<'_>, durability: Durability, ttl_ms: Option<i64>) -> MutationProto {
    match change {
        RowUpdate::Increment(columns) => {
            let mut message = begin(row, MutationType::Increment, durability, ttl_ms);
            for column in columns {
                let amount = column.amount.to_be_bytes();
                push(
                    &mut message,
                    column.family,
                    cell(column.qualifier, column.timestamp, &amount),
                );
            }
            message
        }
        RowUpdate::Append(columns) => {
            let mut message = begin(row, MutationType::Append, durability, ttl_ms);
            for column in columns {
                push(
                    &mut message,
                    column.family,
                    cell(column.qualifier, column.timestamp, column.value),
                );
            }
            message
        }
    }
}

/// A condition of a write. Only native clients send comparators of other kinds than bytes.
pub(super) fn condition(condition: &RowCondition<'_>) -> Result<Condition, Failure> {
    let mut message = Condition {
        row: Bytes::copy_from_slice(condition.row),
        time_range: time_range(condition.time_range),
        ..Condition::default()
    };
    match condition.test {
        Test::Filter(spec) => message.filter = filter(Some(&**spec))?,
        Test::Judged(_) => {
            return Err(Failure::unsupported(
                "a condition by user code on another cluster",
            ));
        }
        Test::Column {
            family,
            qualifier,
            op,
            expected: Expected::Bytes(value),
        } => {
            message.family = Some(Bytes::copy_from_slice(family));
            message.qualifier = Some(Bytes::copy_from_slice(qualifier));
            message.compare_type = Some(compare_type(op).into());
            message.comparator = Some(binary_comparator(value));
        }
        Test::Column {
            expected: Expected::Comparator(_),
            ..
        } => {
            return Err(Failure::unsupported(
                "a condition with a comparator on another cluster",
            ));
        }
    }
    Ok(message)
}

fn compare_type(op: CompareOp) -> messages::CompareType {
    match op {
        CompareOp::Less => messages::CompareType::Less,
        CompareOp::LessOrEqual => messages::CompareType::LessOrEqual,
        CompareOp::Equal => messages::CompareType::Equal,
        CompareOp::NotEqual => messages::CompareType::NotEqual,
        CompareOp::GreaterOrEqual => messages::CompareType::GreaterOrEqual,
        CompareOp::Greater => messages::CompareType::Greater,
        CompareOp::NoOp => messages::CompareType::NoOp,
    }
}

fn binary_comparator(value: &[u8]) -> Comparator {
    let comparator = BinaryComparator {
        comparable: ByteArrayComparable {
            value: Some(Bytes::copy_from_slice(value)),
        },
    };
    Comparator {
        name: BINARY_COMPARATOR.to_owned(),
        serialized_comparator: Some(comparator.encode_to_vec().into()),
    }
}
