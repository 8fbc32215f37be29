//! Upper bound on the memory of a call's arguments, computed before they are decoded.
//!
//! An element of a repeated field can take two bytes of a message and hundreds of bytes once it is
//! decoded. [`memory_bytes`] walks the message, counts such elements, and adds the decoded size of
//! each: a protobuf struct and the engine's form of it. The walk itself allocates nothing.
//!
//! A message that is malformed ends the walk early. Decoding it fails at the same place, so no more
//! than was counted has been allocated by then, but for the element whose length is malformed.
//!
//! Like prost, the walk does not confine a field to its message: a field that goes beyond its
//! message's end is decoded whole before that is an error.

use std::mem::size_of;
use std::ops::Range;

use basalt_engine::op::{RowMutation, Write};
use basalt_idl::native::cells::{Cells, WireCell};
use basalt_idl::native::messages::{
    Action, AdminServiceMethod, ClientServiceMethod, Column, ColumnFamilyTimeRange, Condition,
    CoprocessorServiceCall, Get, MutationProto, NameBytesPair, RegionAction, ResultOrException,
    mutation_proto::ColumnValue, mutation_proto::column_value::QualifierValue,
};
use bytes::{Buf as _, Bytes};

use super::administration::{self, COPIES};
use super::condition;
use super::peer::Method;
use super::replicated::{PIECE_BYTES, PIECE_CELLS};
use super::shape::{GROWTH, LEAF, Shape, field, filter, message_in_bytes};
use super::wire::{Content, next_field};

/// Memory of a field of a message of the master's and region server's administration: an element of
/// a repeated field has up to 80 bytes.
const ADMIN_FIELD: usize = GROWTH * 80;
/// Messages in messages in these services are nested less deeply.
const ADMIN_DEPTH: usize = 8;

/// Memory of a written cell.
const CELL: usize = GROWTH * (size_of::<WireCell<'_>>() + size_of::<Write<'_>>());
/// Memory of a qualifier of a read.
const QUALIFIER: usize = GROWTH * 2 * size_of::<Bytes>();
/// Memory of a put or delete until it is applied with others: its index, box, and range of cells.
const WAITING_BYTES: usize =
    size_of::<Option<u32>>() + size_of::<Box<MutationProto>>() + size_of::<Range<usize>>();
/// Memory of a condition: as a message, decoded, and as the engine's.
const CONDITION_BYTES: usize = size_of::<Condition>() + condition::CONDITION_BYTES;
const ATTRIBUTE: usize = GROWTH * size_of::<NameBytesPair>();
const TIME_RANGE: usize = GROWTH * 2 * size_of::<ColumnFamilyTimeRange>();

static COLUMN_VALUE: Shape = Shape(&[field(2, GROWTH * size_of::<QualifierValue>() + CELL, &LEAF)]);
static MUTATION: Shape = Shape(&[
    field(3, GROWTH * size_of::<ColumnValue>(), &COLUMN_VALUE),
    field(5, ATTRIBUTE, &LEAF),
]);
static COLUMN: Shape = Shape(&[field(2, QUALIFIER, &LEAF)]);
static GET: Shape = Shape(&[
    field(2, GROWTH * size_of::<Column>() + QUALIFIER, &COLUMN),
    field(3, ATTRIBUTE, &LEAF),
    filter(4),
    field(13, TIME_RANGE, &LEAF),
]);
static SCAN: Shape = Shape(&[
    field(1, GROWTH * size_of::<Column>() + QUALIFIER, &COLUMN),
    field(2, ATTRIBUTE, &LEAF),
    filter(5),
    field(19, TIME_RANGE, &LEAF),
]);
static ACTION: Shape = Shape(&[
    // An atomic group moves its mutations out of their boxes.
    field(
        2,
        2 * size_of::<MutationProto>() + WAITING_BYTES + GROWTH * size_of::<RowMutation<'_>>(),
        &MUTATION,
    ),
    field(3, size_of::<Get>(), &GET),
    field(4, size_of::<CoprocessorServiceCall>(), &ENDPOINT_CALL),
]);
static REGION_ACTION: Shape = Shape(&[field(
    3,
    GROWTH * (size_of::<Action>() + size_of::<ResultOrException>()),
    &ACTION,
)]);
static MULTI: Shape = Shape(&[field(1, GROWTH * size_of::<RegionAction>(), &REGION_ACTION)]);
static MUTATE: Shape = Shape(&[field(2, 0, &MUTATION)]);
static CONDITION: Shape = Shape(&[filter(5), filter(7)]);
/// The request of an endpoint: mutations and conditions of MultiRowMutationService, the scan of
/// AggregateService.
static ENDPOINT: Shape = Shape(&[
    field(
        1,
        2 * size_of::<MutationProto>() + GROWTH * size_of::<RowMutation<'_>>(),
        &MUTATION,
    ),
    field(2, 0, &SCAN),
    field(5, GROWTH * CONDITION_BYTES, &CONDITION),
]);
static ENDPOINT_CALL: Shape = Shape(&[message_in_bytes(4, &ENDPOINT)]);
static EXEC_SERVICE: Shape = Shape(&[field(2, 0, &ENDPOINT_CALL)]);
static REPLICATED: Shape = Shape(&[field(1, GROWTH * size_of::<Bytes>(), &LEAF)]);
static GET_REQUEST: Shape = Shape(&[field(2, 0, &GET)]);
static SCAN_REQUEST: Shape = Shape(&[field(2, 0, &SCAN)]);

/// Most memory of one piece of a replicated batch, and of its log record: as many cells as a piece takes, or
/// those of the longest row, if that has more.
fn piece_bytes(cells: &Bytes) -> usize {
    let mut sent = Cells::new(cells);
    let (mut longest, mut longest_bytes) = (0, 0);
    let (mut row, mut count, mut begin) = (&b""[..], 0, 0);
    let mut all = 0;
    loop {
        let before = sent.offset();
        let Some(Ok(cell)) = sent.next() else { break };
        all += 1;
        if cell.row != row {
            (row, count, begin) = (cell.row, 0, before);
        }
        count += 1;
        longest = longest.max(count);
        longest_bytes = longest_bytes.max(sent.offset() - begin);
    }
    let most = longest.max(PIECE_CELLS).min(all);
    most * CELL + longest_bytes.max(PIECE_BYTES).min(cells.len())
}

/// Most memory that the arguments of a call take, as protobuf structs and as the engine's, besides
/// the frame.
pub fn memory_bytes(method: Method, parameter: &Bytes, cells: &Bytes) -> usize {
    let shape = match method {
        Method::Client(ClientServiceMethod::Multi) => &MULTI,
        Method::Client(ClientServiceMethod::Mutate) => &MUTATE,
        Method::Client(ClientServiceMethod::Get) => &GET_REQUEST,
        Method::Client(ClientServiceMethod::Scan) => &SCAN_REQUEST,
        Method::Client(ClientServiceMethod::ExecService) => &EXEC_SERVICE,
        Method::Admin(AdminServiceMethod::ReplicateWALEntry) => {
            return message_bytes(parameter, &REPLICATED) + piece_bytes(cells);
        }
        _ => {
            let known = administration::shape(method).map(|shape| message_bytes(parameter, shape));
            return known.unwrap_or_else(|| unknown_bytes(parameter)) + COPIES * parameter.len();
        }
    };
    let mut sent = Cells::new(cells);
    let written = std::iter::from_fn(|| sent.skip_one().ok()).count();
    // The frame's size once more, for the log record of a write.
    message_bytes(parameter, shape) + parameter.len() + cells.len() + written * CELL
}

/// Most memory that the request of an endpoint takes in a batch, as in [`memory_bytes`].
pub fn endpoint_bytes(request: &Bytes) -> usize {
    message_bytes(request, &ENDPOINT)
}

/// Most memory of a message whose nested messages are not known here: whatever can be read as a message
/// is counted as one.
fn unknown_bytes(message: &[u8]) -> usize {
    let mut fields = 0;
    count_fields(message, 0, ADMIN_DEPTH, &mut fields);
    // A field has at least two bytes.
    ADMIN_FIELD * fields.min(message.len() / 2 + 1)
}

/// Counts the fields of a message, and of all that can be read as a message inside it, up to the first
/// that is malformed. `behind` bytes follow the message.
fn count_fields(message: &[u8], behind: usize, depth: usize, fields: &mut usize) {
    let mut rest = message;
    while !rest.is_empty() {
        let Some((_, content)) = next_field(&mut rest) else {
            // It may go on behind its message's end.
            *fields += behind / 2;
            return;
        };
        *fields += 1;
        let Content::Bytes(length) = content else { continue };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((inner, after)) = rest.split_at_checked(length) else {
            // It goes beyond its message's end: every two bytes there may be a field that is decoded.
            *fields += length.min(rest.len() + behind) / 2;
            return;
        };
        rest = after;
        if depth > 0 {
            count_fields(inner, rest.len() + behind, depth - 1, fields);
        }
    }
}

fn message_bytes(message: &[u8], shape: &Shape) -> usize {
    let mut memory = 0;
    walk(&mut &*message, 0, shape, &mut memory);
    memory
}

/// Walks a message that ends where `after` bytes remain, and adds its memory. `None` where decoding
/// fails.
fn walk(rest: &mut &[u8], after: usize, shape: &Shape, memory: &mut usize) -> Option<()> {
    while rest.len() > after {
        let (tag, Content::Bytes(length)) = next_field(rest)? else {
            continue;
        };
        let length = usize::try_from(length).ok()?;
        let Some(field) = shape.0.iter().find(|field| field.tag == tag) else {
            *rest = rest.get(length..)?;
            continue;
        };
        *memory += field.element;
        let content = rest.get(..length)?;
        *memory += field.factor * length;
        if field.is_bytes {
            *memory += message_bytes(content, field.shape);
        }
        if field.is_bytes || field.shape.0.is_empty() {
            rest.advance(length);
        } else {
            let after = rest.len() - length;
            walk(rest, after, field.shape, memory)?;
        }
    }
    (rest.len() == after).then_some(())
}

#[cfg(test)]
mod tests {
    use basalt_idl::native::messages::{MultiRequest, ScanRequest};
    use prost::Message as _;

    use super::*;

    fn multi(actions: Vec<Action>) -> Bytes {
        let group = RegionAction {
            action: actions,
            ..RegionAction::default()
        };
        let call = MultiRequest {
            region_action: vec![group],
            ..MultiRequest::default()
        };
        call.encode_to_vec().into()
    }

    fn of_multi(parameter: &Bytes) -> usize {
        memory_bytes(
            Method::Client(ClientServiceMethod::Multi),
            parameter,
            &Bytes::new(),
        )
    }

    #[test]
    fn empty_elements_are_counted_with_what_they_become() {
        let actions = of_multi(&multi(vec![Action::default(); 1_000]));
        assert!(
            actions >= 1_000 * (size_of::<Action>() + size_of::<ResultOrException>()),
            "{actions}"
        );
        let mutation = MutationProto {
            column_value: vec![
                ColumnValue {
                    qualifier_value: vec![QualifierValue::default(); 100],
                    ..ColumnValue::default()
                };
                10
            ],
            ..MutationProto::default()
        };
        let action = Action {
            mutation: Some(Box::new(mutation)),
            ..Action::default()
        };
        let values = of_multi(&multi(vec![action]));
        assert!(values >= 1_000 * (size_of::<QualifierValue>() + CELL), "{values}");
    }

    /// While its last vector grows, a value exists as message, as cell and as write, and each of
    /// their vectors has twice the room or its old buffer.
    #[test]
    fn a_value_is_counted_with_the_room_of_its_vectors() {
        let mutation = MutationProto {
            column_value: vec![ColumnValue {
                qualifier_value: vec![QualifierValue::default(); 1_025],
                ..ColumnValue::default()
            }],
            ..MutationProto::default()
        };
        let action = Action {
            mutation: Some(Box::new(mutation)),
            ..Action::default()
        };
        let of_vectors = 2 * (size_of::<QualifierValue>() + size_of::<WireCell<'_>>());
        let counted = of_multi(&multi(vec![action]));
        assert!(
            counted >= 1_024 * (of_vectors + 3 * size_of::<Write<'_>>()),
            "{counted}"
        );
    }

    #[test]
    fn columns_of_scans_are_counted_and_values_are_not() {
        let column = Column {
            qualifier: vec![Bytes::new(); 500],
            ..Column::default()
        };
        let call = ScanRequest {
            scan: Some(basalt_idl::native::messages::Scan {
                column: vec![column],
                ..basalt_idl::native::messages::Scan::default()
            }),
            ..ScanRequest::default()
        };
        let scan = Method::Client(ClientServiceMethod::Scan);
        let bytes = memory_bytes(scan, &call.encode_to_vec().into(), &Bytes::new());
        assert!(bytes >= 500 * 2 * size_of::<Bytes>(), "{bytes}");
        // A value that looks like many empty actions is just a value.
        let value = QualifierValue {
            value: Some(Bytes::from(b"\x1a\0".repeat(50_000))),
            ..QualifierValue::default()
        };
        let mutation = MutationProto {
            column_value: vec![ColumnValue {
                qualifier_value: vec![value],
                ..ColumnValue::default()
            }],
            ..MutationProto::default()
        };
        let action = Action {
            mutation: Some(Box::new(mutation)),
            ..Action::default()
        };
        let bytes = of_multi(&multi(vec![action]));
        assert!(bytes < 200_000, "{bytes}");
    }

    /// Calls of the master: what is long and has few parts needs little more than its size, and what
    /// has many small parts needs memory for each.
    #[test]
    fn administration_is_counted_by_its_parts() {
        use basalt_idl::native::messages::{
            BytesBytesPair, CreateTableRequest, MasterServiceMethod, TableSchema,
        };
        let bytes = |attributes: Vec<BytesBytesPair>, split_keys: Vec<Bytes>| {
            let call = CreateTableRequest {
                table_schema: TableSchema {
                    attributes,
                    ..TableSchema::default()
                },
                split_keys,
                ..CreateTableRequest::default()
            };
            let create = Method::Master(MasterServiceMethod::CreateTable);
            memory_bytes(create, &call.encode_to_vec().into(), &Bytes::new())
        };
        let long: usize = 8 << 20;
        for filling in [b'v', b'x', b'a', b'\n', b'z', 0, 0xff] {
            let pair = BytesBytesPair {
                first: Bytes::from_static(b"k"),
                second: vec![filling; long].into(),
            };
            let counted = bytes(vec![pair], vec![vec![filling; long].into()]);
            assert!((2 * long..7 * long).contains(&counted), "{filling}: {counted}");
        }
        let many = bytes(Vec::new(), vec![Bytes::new(); 1_000]);
        assert!(many >= 1_000 * GROWTH * size_of::<Bytes>(), "{many}");
        let pairs = bytes(vec![BytesBytesPair::default(); 1_000], Vec::new());
        assert!(pairs >= 1_000 * GROWTH * size_of::<BytesBytesPair>(), "{pairs}");
    }

    /// The schema says one byte and its attributes go on behind it.
    #[test]
    fn administration_beyond_its_message_is_counted() {
        use basalt_idl::native::messages::{BytesBytesPair, CreateTableRequest, MasterServiceMethod};
        let attributes = b"\x12\0".repeat(1_000);
        let parameter: Bytes = [&b"\x0a\x01\x1a\xd0\x0f"[..], &attributes].concat().into();
        assert!(CreateTableRequest::decode(parameter.clone()).is_err());
        let create = Method::Master(MasterServiceMethod::CreateTable);
        let counted = memory_bytes(create, &parameter, &Bytes::new());
        assert!(counted >= 1_000 * size_of::<BytesBytesPair>(), "{counted}");
        let unknown = Method::Master(MasterServiceMethod::Grant);
        let counted = memory_bytes(unknown, &parameter, &Bytes::new());
        assert!(counted >= 1_000 * ADMIN_FIELD, "{counted}");
    }

    #[test]
    fn conditions_of_an_endpoint_are_counted() {
        use basalt_idl::native::messages::{CoprocessorServiceRequest, MutateRowsRequest};
        let rows = MutateRowsRequest {
            condition: vec![Condition::default(); 1_000],
            ..MutateRowsRequest::default()
        };
        let call = CoprocessorServiceCall {
            request: rows.encode_to_vec().into(),
            ..CoprocessorServiceCall::default()
        };
        let action = Action {
            service_call: Some(Box::new(call.clone())),
            ..Action::default()
        };
        let in_batch = of_multi(&multi(vec![action]));
        let exec = Method::Client(ClientServiceMethod::ExecService);
        let call = CoprocessorServiceRequest {
            call,
            ..CoprocessorServiceRequest::default()
        };
        let alone = memory_bytes(exec, &call.encode_to_vec().into(), &Bytes::new());
        for bytes in [alone, in_batch] {
            assert!(bytes >= 1_000 * CONDITION_BYTES, "{bytes}");
        }
    }

    /// The mutation has one byte and its column goes on behind it: prost decodes all of the column
    /// before it finds that out.
    #[test]
    fn a_field_beyond_its_message_is_counted() {
        use basalt_idl::native::messages::MutateRequest;
        let values = b"\x12\0".repeat(100);
        let parameter = [&b"\x12\x01\x1a\xc8\x01"[..], &values].concat();
        assert!(MutateRequest::decode(&parameter[..]).is_err());
        let mutate = Method::Client(ClientServiceMethod::Mutate);
        let bytes = memory_bytes(mutate, &parameter.into(), &Bytes::new());
        assert!(bytes >= 100 * size_of::<QualifierValue>(), "{bytes}");
    }

    /// The request of an endpoint is decoded by itself: if it is malformed, the actions behind it are
    /// decoded nevertheless.
    #[test]
    fn a_malformed_request_of_an_endpoint_does_not_end_the_walk() {
        let call = CoprocessorServiceCall {
            request: Bytes::from_static(b"\x0a\x05\x1a"),
            ..CoprocessorServiceCall::default()
        };
        let mut actions = vec![Action::default(); 1_000];
        actions[0].service_call = Some(Box::new(call));
        let bytes = of_multi(&multi(actions));
        assert!(bytes >= 1_000 * size_of::<Action>(), "{bytes}");
    }

    #[test]
    fn a_malformed_message_ends_the_walk() {
        let mut parameter = multi(vec![Action::default(); 10]).to_vec();
        parameter.truncate(parameter.len() - 1);
        parameter.extend_from_slice(&[0xff; 20]);
        assert!(of_multi(&parameter.into()) < 100_000);
    }
}
