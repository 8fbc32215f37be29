//! The writes of a Multi or Mutate, without a message for each.
//!
//! Most writes are puts and deletes whose cells are all in the cell block, and whose results say only
//! that they are done. As protobuf messages, the arguments and results of a batch of 100 rows take
//! 50 KiB, which is more to fill and to drop than the batch is to decode. So they are read where they
//! are in the request, and the results of a batch are encoded at once:
//!
//! 1. [`MultiGroups`] is a MultiRequest whose groups are not decoded.
//! 2. [`PlainWrites::parse`] reads a group of plain writes, [`PlainMutate::parse`] a MutateRequest with one.
//!    Any other one, also one that is malformed, is left to the decoder of its message.
//! 3. [`PlainWrites::mutations`] makes the engine's mutations, [`PlainWrites::done`] the results.
//! 4. [`MultiResults`] is a MultiResponse whose results are encoded.
//!
//! Invariant: what is read here has the mutations and results of the decoded message. `native::multi`
//! and `native::single` are the callers.
//!
//! Without it, batches of 100 puts have 0.8 of the rate that they have over Thrift 2.

use std::ops::Range;

use basalt_engine::Result;
use basalt_engine::op::{RowMutation, Writes};
use basalt_engine::schema::Durability;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{
    Condition, MultiRegionLoadStats, RegionSpecifier, mutation_proto, mutation_proto::MutationType,
};
use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use super::request;
use super::wire::{Content, next_field};

/// A MultiRequest; each group is the bytes of a RegionAction.
#[derive(Clone, PartialEq, Message)]
pub struct MultiGroups {
    /// The groups.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub region_action: Vec<Bytes>,
    /// The first half of the nonces of all increments and appends.
    #[prost(uint64, optional, tag = "2")]
    pub nonce_group: Option<u64>,
    /// The condition of clients before 2.4.
    #[prost(message, optional, tag = "3")]
    pub condition: Option<Condition>,
}

/// A MultiResponse; the result of each group is the bytes of a RegionActionResult.
#[derive(Clone, PartialEq, Message)]
pub struct MultiResults {
    /// The results of the groups.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub region_action_result: Vec<Bytes>,
    /// Whether the condition of clients before 2.4 held.
    #[prost(bool, optional, tag = "2")]
    pub processed: Option<bool>,
    /// Load of the regions.
    #[prost(message, optional, tag = "3")]
    pub region_statistics: Option<MultiRegionLoadStats>,
}

/// A put or delete in a message.
#[derive(Clone, Debug)]
struct PlainWrite {
    index: Option<u32>,
    /// Where its row is in the message.
    row: Range<usize>,
    /// Timestamp of a delete of the whole row.
    timestamp: Option<u64>,
    /// Number of its cells in the cell block.
    cells: u32,
    mutate_type: MutationType,
    durability: Durability,
}

/// Bytes of a short write in the message: the row's key and some numbers.
const WRITE_BYTES: usize = 32;
/// Writes that have room before they are counted. More make the vector grow, as far as the message really
/// has them.
const WRITES_AT_FIRST: usize = 128;

/// A group of puts and deletes whose cells are all in the cell block.
#[derive(Clone, Debug)]
pub struct PlainWrites {
    region: RegionSpecifier,
    message: Bytes,
    writes: Vec<PlainWrite>,
}

impl PlainWrites {
    /// Reads a RegionAction. `None` if it is not a group of plain writes, or is malformed.
    pub fn parse(message: &Bytes) -> Option<Self> {
        let mut region = None;
        let mut writes = Vec::with_capacity((message.len() / WRITE_BYTES).min(WRITES_AT_FIRST));
        let mut fields = Fields::new(message, 0..message.len());
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(range)) if region.is_none() => region = Some(message.slice(range)),
                // Not atomic.
                (2, Value::Number(0)) => {}
                (3, Value::Bytes(range)) => writes.push(PlainWrite::parse(message, range)?),
                _ => return None,
            }
        }
        (!writes.is_empty()).then_some(())?;
        Some(Self {
            region: RegionSpecifier::decode(region?).ok()?,
            message: message.clone(),
            writes,
        })
    }

    /// The region that it is for.
    pub fn region(&self) -> &RegionSpecifier {
        &self.region
    }

    /// The RegionAction.
    pub fn message(&self) -> &Bytes {
        &self.message
    }

    /// The rows of the writes.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.writes.iter().map(|write| self.row(write))
    }

    fn row(&self, write: &PlainWrite) -> &[u8] {
        &self.message[write.row.clone()]
    }

    /// Moves past the cells of the group. Only their lengths are checked.
    pub fn skip_cells(&self, sent: &mut Cells<'_>) -> Result<()> {
        self.writes
            .iter()
            .try_for_each(|write| request::skip_cells_of(write.cells, sent))
    }

    /// Converts the writes for the engine, as [`request::rows`] does. `cells` are those of the group.
    pub fn mutations<'a>(&'a self, cells: &'a Bytes) -> Result<Vec<RowMutation<'a>>> {
        let mut block = Cells::new(cells);
        let mut rows = Vec::with_capacity(self.writes.len());
        for write in &self.writes {
            let row = self.row(write);
            let writes = request::writes_of(&mut rows, row, write.durability);
            write.add_to(writes, row, &mut block)?;
        }
        Ok(rows)
    }

    /// The RegionActionResult of a group whose writes are all done.
    pub fn done(&self) -> Bytes {
        let mut out = Vec::with_capacity(8 * self.writes.len());
        for write in &self.writes {
            let index_len = write
                .index
                .map_or(0, |index| 1 + encoded_len_varint(u64::from(index)));
            encode_key(1, WireType::LengthDelimited, &mut out);
            encode_varint(index_len as u64 + 2, &mut out);
            if let Some(index) = write.index {
                encode_key(1, WireType::Varint, &mut out);
                encode_varint(u64::from(index), &mut out);
            }
            encode_key(2, WireType::LengthDelimited, &mut out);
            encode_varint(0, &mut out);
        }
        out.into()
    }
}

impl PlainWrite {
    /// Reads an Action.
    #[inline]
    fn parse(message: &[u8], range: Range<usize>) -> Option<Self> {
        let (mut index, mut mutation) = (None, None);
        let mut fields = Fields::new(message, range);
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Number(number)) => index = Some(u32::try_from(number).ok()?),
                // A second mutation would be merged with the first.
                (2, Value::Bytes(range)) if mutation.is_none() => mutation = Some(range),
                _ => return None,
            }
        }
        Self::of_mutation(index, message, mutation?)
    }

    /// Reads a MutationProto.
    #[inline]
    fn of_mutation(index: Option<u32>, message: &[u8], range: Range<usize>) -> Option<Self> {
        let mut write = Self {
            index,
            row: 0..0,
            timestamp: None,
            cells: 0,
            mutate_type: MutationType::Append,
            durability: Durability::UseDefault,
        };
        let mut has_row = false;
        let mut fields = Fields::new(message, range);
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(range)) => (write.row, has_row) = (range, true),
                (2, Value::Number(number)) => {
                    write.mutate_type = MutationType::try_from(i32::try_from(number).ok()?).ok()?;
                }
                (4, Value::Number(number)) => write.timestamp = Some(number),
                (6, Value::Number(number)) => {
                    let durability = mutation_proto::Durability::try_from(i32::try_from(number).ok()?);
                    write.durability = request::durability_of(durability.ok()?);
                }
                (8, Value::Number(number)) => write.cells = u32::try_from(number).ok()?,
                _ => return None,
            }
        }
        let is_write = matches!(write.mutate_type, MutationType::Put | MutationType::Delete);
        (has_row && is_write).then_some(write)
    }

    /// Adds its writes to those of its row. Its cells are the next ones of the block.
    #[inline]
    fn add_to<'a>(&self, writes: &mut Writes<'a>, row: &'a [u8], block: &mut Cells<'a>) -> Result<()> {
        let before = writes.len();
        request::each_cell_in_block(row, self.cells, block, |cell| {
            request::push_write(self.mutate_type, cell, None, writes)
        })?;
        if writes.len() == before && self.mutate_type == MutationType::Delete {
            request::push_delete_of_row(self.timestamp, writes)?;
        }
        Ok(())
    }
}

/// A MutateRequest whose mutation is a plain write.
#[derive(Clone, Debug)]
pub struct PlainMutate {
    message: Bytes,
    write: PlainWrite,
}

impl PlainMutate {
    /// Reads a MutateRequest: its region, and its mutation. `None` if the mutation is not a plain write,
    /// there is a condition or the message is malformed.
    pub fn parse(message: &Bytes) -> Option<(RegionSpecifier, Self)> {
        let (mut region, mut mutation) = (None, None);
        let mut fields = Fields::new(message, 0..message.len());
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(range)) if region.is_none() => region = Some(message.slice(range)),
                (2, Value::Bytes(range)) if mutation.is_none() => mutation = Some(range),
                // Puts and deletes have no nonces.
                (4, Value::Number(_)) => {}
                _ => return None,
            }
        }
        let write = Self {
            message: message.clone(),
            write: PlainWrite::of_mutation(None, message, mutation?)?,
        };
        Some((RegionSpecifier::decode(region?).ok()?, write))
    }

    /// Its row.
    pub fn row(&self) -> &[u8] {
        &self.message[self.write.row.clone()]
    }

    /// Converts the write for the engine, as [`request::rows`] does.
    pub fn mutation<'a>(&'a self, cells: &'a Bytes) -> Result<RowMutation<'a>> {
        let mut mutation = RowMutation {
            row: self.row(),
            writes: Writes::new(),
            durability: self.write.durability,
        };
        let mut block = Cells::new(cells);
        self.write.add_to(&mut mutation.writes, self.row(), &mut block)?;
        Ok(mutation)
    }
}

/// The content of a field.
enum Value {
    Number(u64),
    /// Where it is in the message.
    Bytes(Range<usize>),
}

/// The fields of a message, or of one inside it, first to last.
struct Fields<'a> {
    message: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Fields<'a> {
    fn new(message: &'a [u8], range: Range<usize>) -> Self {
        Self {
            message,
            at: range.start,
            end: range.end,
        }
    }

    /// Tag and content of the next field; `Some(None)` at the end. `None` for a field that is neither a
    /// number nor bytes, or is malformed.
    #[inline]
    #[expect(clippy::option_option, reason = "the end of a message is not a fault")]
    fn next(&mut self) -> Option<Option<(u32, Value)>> {
        if self.at == self.end {
            return Some(None);
        }
        let mut rest = &self.message[self.at..self.end];
        let (tag, content) = next_field(&mut rest)?;
        self.at = self.end - rest.len();
        let value = match content {
            Content::Number(number) => Value::Number(number),
            Content::Bytes(length) => {
                let length = usize::try_from(length)
                    .ok()
                    .filter(|length| *length <= rest.len())?;
                let range = self.at..self.at + length;
                self.at = range.end;
                Value::Bytes(range)
            }
            Content::Other => return None,
        };
        Some(Some((tag, value)))
    }
}

#[cfg(test)]
mod tests {
    use basalt_idl::native::cells::{CellType, LATEST_TIMESTAMP, WireCell};
    use basalt_idl::native::messages::{
        self, Action, MultiRequest, MultiResponse, MutateRequest, MutationProto, NameBytesPair, RegionAction,
        RegionActionResult, ResultOrException,
    };

    use super::*;

    /// Writes with everything that plain ones may have, and their cell block.
    fn plain() -> (RegionAction, Bytes) {
        let write = |row: &'static [u8], mutate_type: MutationType, cells: Option<i32>| MutationProto {
            row: Some(Bytes::from_static(row)),
            mutate_type: Some(mutate_type.into()),
            associated_cell_count: cells,
            ..MutationProto::default()
        };
        let delete_row = MutationProto {
            timestamp: Some(7),
            ..write(b"row3", MutationType::Delete, None)
        };
        let unsynced = MutationProto {
            durability: Some(mutation_proto::Durability::SkipWal.into()),
            timestamp: Some(300),
            ..write(b"row4", MutationType::Put, Some(1))
        };
        let mutations = [
            write(b"row1", MutationType::Put, Some(2)),
            write(b"row1", MutationType::Delete, Some(1)),
            delete_row,
            unsynced,
            write(b"", MutationType::Put, Some(0)),
        ];
        let action = |(index, mutation)| Action {
            index: Some(1000 * index as u32),
            mutation: Some(Box::new(mutation)),
            ..Action::default()
        };
        let group = RegionAction {
            region: RegionSpecifier {
                value: Bytes::from_static(b"t,,1.0123456789abcdef0123456789abcdef."),
                ..RegionSpecifier::default()
            },
            atomic: Some(false),
            action: mutations.into_iter().enumerate().map(action).collect(),
            ..RegionAction::default()
        };
        let mut block = Vec::new();
        for (row, qualifier, cell_type) in [
            (&b"row1"[..], &b"a"[..], CellType::Put),
            (b"row1", b"b", CellType::Put),
            (b"row1", b"", CellType::DeleteFamily),
            (b"row4", b"a", CellType::Put),
        ] {
            let cell = WireCell {
                row,
                family: b"f",
                qualifier,
                timestamp: LATEST_TIMESTAMP,
                cell_type,
                value: b"value",
                tags: b"",
            };
            cell.encode(&mut block);
        }
        (group, block.into())
    }

    fn shown(mutations: &[RowMutation<'_>]) -> String {
        format!("{mutations:?}")
    }

    fn parse(group: &RegionAction) -> Option<PlainWrites> {
        PlainWrites::parse(&group.encode_to_vec().into())
    }

    /// Plain writes have the mutations, cells and results of the decoded group.
    #[test]
    fn plain_writes_are_those_of_the_decoded_group() {
        let (group, cells) = plain();
        let writes = parse(&group).unwrap();
        let decoded: Vec<_> = group
            .action
            .iter()
            .filter_map(|action| action.mutation.clone())
            .collect();
        assert_eq!(
            shown(&writes.mutations(&cells).unwrap()),
            shown(&request::rows(&decoded, &cells).unwrap())
        );
        assert_eq!(writes.region(), &group.region);
        assert_eq!(RegionAction::decode(writes.message().clone()).unwrap(), group);
        let mut sent = Cells::new(&cells);
        writes.skip_cells(&mut sent).unwrap();
        assert!(sent.is_empty());
        let done = |action: &Action| ResultOrException {
            index: action.index,
            result: Some(messages::Result::default()),
            ..ResultOrException::default()
        };
        let result = RegionActionResult {
            result_or_exception: group.action.iter().map(done).collect(),
            ..RegionActionResult::default()
        };
        assert_eq!(writes.done(), result.encode_to_vec());
    }

    /// A cell of another row, or one that is missing, is the same error.
    #[test]
    fn faults_of_cells_are_those_of_the_decoded_group() {
        let (group, cells) = plain();
        let decoded: Vec<_> = group
            .action
            .iter()
            .filter_map(|action| action.mutation.clone())
            .collect();
        for from in [0, 20, 40] {
            for to in [cells.len() - 1, cells.len() - 20] {
                let cells = cells.slice(from..to);
                let expected = request::rows(&decoded, &cells).unwrap_err().to_string();
                let error = parse(&group).unwrap().mutations(&cells).unwrap_err();
                assert_eq!(error.to_string(), expected);
            }
        }
    }

    fn mutate(mutation: MutationProto) -> MutateRequest {
        MutateRequest {
            region: plain().0.region,
            mutation,
            nonce_group: Some(9),
            ..MutateRequest::default()
        }
    }

    fn parse_mutate(call: &MutateRequest) -> Option<(RegionSpecifier, PlainMutate)> {
        PlainMutate::parse(&call.encode_to_vec().into())
    }

    /// A plain write alone has the mutation, or the fault, of the decoded one.
    #[test]
    fn a_plain_write_alone_is_that_of_the_decoded_call() {
        let (group, cells) = plain();
        let mut sent = Cells::new(&cells);
        for action in group.action {
            let mutation = *action.mutation.unwrap();
            let call = mutate(mutation.clone());
            let begin = sent.offset();
            request::skip_cells(&mutation, &mut sent).unwrap();
            let own = cells.slice(begin..sent.offset());
            for cut in [0, own.len().min(1)] {
                let own = own.slice(..own.len() - cut);
                let (region, write) = parse_mutate(&call).unwrap();
                assert_eq!(region, call.region);
                assert_eq!(write.row(), &request::row(&mutation).unwrap()[..]);
                let decoded = request::rows(std::slice::from_ref(&mutation), &own);
                let decoded = decoded.map(|mut rows| rows.remove(0));
                assert_eq!(
                    format!("{:?}", write.mutation(&own)),
                    format!("{decoded:?}"),
                    "without {cut} bytes"
                );
            }
        }
        assert!(sent.is_empty());
    }

    /// A call with anything that a plain write cannot have, or that is cut, is left to the decoder.
    #[test]
    fn other_mutates_are_left() {
        let call = mutate(*plain().0.action[1].mutation.clone().unwrap());
        let with = |change: &dyn Fn(&mut MutateRequest)| {
            let mut call = call.clone();
            change(&mut call);
            parse_mutate(&call)
        };
        assert!(with(&|_| {}).is_some());
        assert!(with(&|call| call.condition = Some(Condition::default())).is_none());
        assert!(with(&|call| call.mutation.row = None).is_none());
        assert!(with(&|call| call.mutation.mutate_type = Some(1)).is_none());
        assert!(with(&|call| call.mutation.nonce = Some(1)).is_none());
        let column = mutation_proto::ColumnValue::default();
        assert!(with(&|call| call.mutation.column_value.push(column.clone())).is_none());
        let message = Bytes::from(call.encode_to_vec());
        for end in 0..message.len() {
            let whole = MutateRequest::decode(message.slice(..end));
            if let Some((region, write)) = PlainMutate::parse(&message.slice(..end)) {
                let whole = whole.unwrap();
                assert_eq!((region, write.row()), (whole.region, whole.mutation.row()));
            }
        }
        let twice = [&message[..], &message[..]].concat();
        assert!(PlainMutate::parse(&twice.into()).is_none());
    }

    /// Groups with anything that a plain write cannot have are left to the decoder.
    #[test]
    fn other_groups_are_left() {
        let with = |change: &dyn Fn(&mut RegionAction)| {
            let (mut group, _) = plain();
            change(&mut group);
            parse(&group)
        };
        let of_mutation = |change: &dyn Fn(&mut MutationProto)| {
            with(&|group| change(group.action[1].mutation.as_mut().unwrap()))
        };
        assert!(with(&|_| {}).is_some());
        assert!(with(&|group| group.action.clear()).is_none());
        assert!(with(&|group| group.atomic = Some(true)).is_none());
        assert!(with(&|group| group.condition = Some(Condition::default())).is_none());
        assert!(with(&|group| group.action[1].mutation = None).is_none());
        assert!(with(&|group| group.action[1].get = Some(Box::default())).is_none());
        assert!(of_mutation(&|mutation| mutation.row = None).is_none());
        assert!(of_mutation(&|mutation| mutation.mutate_type = None).is_none());
        assert!(of_mutation(&|mutation| mutation.mutate_type = Some(1)).is_none());
        assert!(of_mutation(&|mutation| mutation.mutate_type = Some(99)).is_none());
        assert!(of_mutation(&|mutation| mutation.durability = Some(99)).is_none());
        assert!(of_mutation(&|mutation| mutation.associated_cell_count = Some(-1)).is_none());
        assert!(of_mutation(&|mutation| mutation.nonce = Some(1)).is_none());
        let attribute = NameBytesPair {
            name: "_ttl".to_owned(),
            value: None,
        };
        assert!(of_mutation(&|mutation| mutation.attribute.push(attribute.clone())).is_none());
        let column = mutation_proto::ColumnValue::default();
        assert!(of_mutation(&|mutation| mutation.column_value.push(column.clone())).is_none());
    }

    /// A group that is cut anywhere is left, or has the actions that the decoder finds in it.
    #[test]
    fn a_group_that_is_cut_is_left() {
        let (group, cells) = plain();
        let message = Bytes::from(group.encode_to_vec());
        for end in 0..message.len() {
            let Some(writes) = PlainWrites::parse(&message.slice(..end)) else {
                continue;
            };
            let decoded = RegionAction::decode(message.slice(..end)).unwrap();
            let decoded: Vec<_> = decoded
                .action
                .into_iter()
                .filter_map(|action| action.mutation)
                .collect();
            assert_eq!(
                shown(&writes.mutations(&cells).unwrap()),
                shown(&request::rows(&decoded, &cells).unwrap())
            );
        }
    }

    /// The messages with encoded groups have the same bytes as those of HBase's definition.
    #[test]
    fn messages_with_encoded_groups_are_the_same_on_the_wire() {
        let (group, _) = plain();
        let request = MultiRequest {
            region_action: vec![group.clone(), group],
            nonce_group: Some(5),
            condition: Some(Condition::default()),
        };
        let groups = MultiGroups::decode(&request.encode_to_vec()[..]).unwrap();
        assert_eq!(groups.encode_to_vec(), request.encode_to_vec());
        let response = MultiResponse {
            region_action_result: vec![RegionActionResult {
                processed: Some(true),
                ..RegionActionResult::default()
            }],
            processed: Some(false),
            region_statistics: Some(MultiRegionLoadStats::default()),
        };
        let results = MultiResults::decode(&response.encode_to_vec()[..]).unwrap();
        assert_eq!(results.encode_to_vec(), response.encode_to_vec());
    }
}
