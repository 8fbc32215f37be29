//! Cells of their own in puts, increments and appends: delete markers and timestamps.
//!
//! HBase's client sends the mutation of a single call with its cells in the message, that of a batch
//! with a cell block, and a client without a codec always the former. Whatever the way, the effect is
//! that of HBase's region server.

use basalt_idl::native::cells::{CellType, Cells, LATEST_TIMESTAMP, WireCell};
use basalt_idl::native::messages::{
    CompareType, Condition, CoprocessorServiceResponse, Get, GetRequest, MultiRequest, MultiResponse,
    MutateRequest, MutateResponse, MutateRowsRequest, MutationProto, RegionAction, RegionSpecifier,
    mutation_proto::{ColumnValue, DeleteType, MutationType, column_value::QualifierValue},
};
use bytes::Bytes;
use prost::Message;

use super::client::{Client, start_with_table};
use super::endpoints;
use super::groups::is;
use super::requests::{action, inline, multi, mutate};

/// A cell: type, qualifier, timestamp, value.
type Sent = (CellType, &'static str, i64, &'static [u8]);

const PUT: CellType = CellType::Put;
const LATEST: i64 = LATEST_TIMESTAMP;

/// Where the cells of a mutation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Message,
    Block,
}

/// The calls that take a put.
#[derive(Clone, Copy, Debug)]
enum Call {
    Mutate,
    CheckedMutate,
    Batch,
    Atomic,
    CheckedBatch,
    MutateRows,
}

const CALLS: [Call; 6] = [
    Call::Mutate,
    Call::CheckedMutate,
    Call::Batch,
    Call::Atomic,
    Call::CheckedBatch,
    Call::MutateRows,
];

/// A mutation of a row, and its cell block.
fn mutation(kind: MutationType, row: &str, place: Place, cells: &[Sent]) -> (MutationProto, Vec<u8>) {
    let mut sent = MutationProto {
        row: Some(Bytes::copy_from_slice(row.as_bytes())),
        mutate_type: Some(kind.into()),
        ..MutationProto::default()
    };
    let mut block = Vec::new();
    if place == Place::Block {
        sent.associated_cell_count = Some(cells.len() as i32);
        for (cell_type, qualifier, timestamp, value) in cells {
            let cell = WireCell {
                row: row.as_bytes(),
                family: b"f",
                qualifier: qualifier.as_bytes(),
                timestamp: *timestamp,
                cell_type: *cell_type,
                value,
                tags: b"",
            };
            cell.encode(&mut block);
        }
        return (sent, block);
    }
    let value = |(cell_type, qualifier, timestamp, value): &Sent| QualifierValue {
        qualifier: Some(Bytes::from_static(qualifier.as_bytes())),
        value: Some(Bytes::from_static(value)),
        timestamp: Some(*timestamp as u64),
        delete_type: delete_type(*cell_type).map(Into::into),
        ..QualifierValue::default()
    };
    sent.column_value = vec![ColumnValue {
        family: Bytes::from_static(b"f"),
        qualifier_value: cells.iter().map(value).collect(),
    }];
    (sent, block)
}

fn delete_type(cell_type: CellType) -> Option<DeleteType> {
    Some(match cell_type {
        CellType::Put => return None,
        CellType::Delete => DeleteType::DeleteOneVersion,
        CellType::DeleteColumn => DeleteType::DeleteMultipleVersions,
        CellType::DeleteFamily => DeleteType::DeleteFamily,
        CellType::DeleteFamilyVersion => DeleteType::DeleteFamilyVersion,
    })
}

/// One server with one table and a connection to it.
struct Rig {
    client: Client,
    region: RegionSpecifier,
}

impl Rig {
    fn apply(&mut self, call: Call, row: &str, (sent, block): (MutationProto, Vec<u8>)) {
        let condition = || is(row, CompareType::Equal, "check");
        match call {
            Call::Mutate => self.mutate(sent, None, &block),
            Call::CheckedMutate => self.mutate(sent, Some(condition()), &block),
            Call::Batch => self.batch(false, None, sent, &block),
            Call::Atomic => self.batch(true, None, sent, &block),
            Call::CheckedBatch => self.batch(true, Some(condition()), sent, &block),
            Call::MutateRows => {
                let rows = MutateRowsRequest {
                    mutation_request: vec![sent],
                    ..MutateRowsRequest::default()
                };
                let call = endpoints::call(&self.region, "MultiRowMutationService", "MutateRows", &rows);
                self.client
                    .ask::<CoprocessorServiceResponse>("ExecService", &call);
            }
        }
    }

    fn mutate(&mut self, sent: MutationProto, condition: Option<Condition>, block: &[u8]) {
        let call = MutateRequest {
            condition,
            ..mutate(&self.region, sent)
        };
        self.client.call(2, "Mutate", &call, block);
        let response = self.client.response().expect("a response");
        assert_eq!(response.header.exception, None);
        let answer = MutateResponse::decode(response.result).expect("its message");
        assert_eq!(answer.processed, Some(true));
    }

    fn batch(&mut self, atomic: bool, condition: Option<Condition>, sent: MutationProto, block: &[u8]) {
        let call = MultiRequest {
            region_action: vec![RegionAction {
                region: self.region.clone(),
                atomic: atomic.then_some(true),
                condition,
                action: vec![action(0, sent)],
            }],
            ..MultiRequest::default()
        };
        self.client.call(2, "Multi", &call, block);
        let response = self.client.response().expect("a response");
        assert_eq!(response.header.exception, None);
        let answer = MultiResponse::decode(response.result).expect("its message");
        let result = &answer.region_action_result[0];
        assert_eq!(result.exception, None);
        assert!(
            result
                .result_or_exception
                .iter()
                .all(|one| one.exception.is_none())
        );
    }

    /// The cells of a row: qualifier, timestamp and value.
    fn row(&mut self, row: &str) -> Vec<(String, i64, String)> {
        let get = GetRequest {
            region: self.region.clone(),
            get: Get {
                row: Bytes::copy_from_slice(row.as_bytes()),
                ..Get::default()
            },
        };
        self.client.call(3, "Get", &get, b"");
        let response = self.client.response().expect("a response");
        assert_eq!(response.header.exception, None);
        shown(&response.cells)
    }
}

fn shown(cells: &[u8]) -> Vec<(String, i64, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Cells::new(cells)
        .map(|cell| cell.expect("a cell"))
        .map(|cell| (text(cell.qualifier), cell.timestamp, text(cell.value)))
        .collect()
}

/// Every marker, in every call, in message and cell block.
#[test]
fn a_put_takes_delete_markers_in_every_call() {
    let (_dir, server, region, client) = start_with_table(&[]);
    let mut rig = Rig { client, region };
    let stored: [Sent; 5] = [
        (PUT, "q", 5, b"check"),
        (PUT, "a", 10, b"a0"),
        (PUT, "c", 10, b"c1"),
        (PUT, "c", 20, b"c2"),
        (PUT, "d", 10, b"d0"),
    ];
    // The marker of the put, and what is left beside the new cell of column a.
    let markers: [(Sent, &[&str]); 8] = [
        ((CellType::DeleteColumn, "c", 20, b""), &["d0", "check"]),
        ((CellType::DeleteColumn, "c", LATEST, b""), &["d0", "check"]),
        ((CellType::DeleteColumn, "c", 10, b""), &["c2", "d0", "check"]),
        ((CellType::Delete, "c", 20, b""), &["c1", "d0", "check"]),
        // As in HBase: in a put it gets the time of the put, and hides no older version.
        ((CellType::Delete, "c", LATEST, b""), &["c2", "d0", "check"]),
        ((CellType::DeleteFamily, "", 15, b""), &["c2"]),
        ((CellType::DeleteFamily, "", 20, b""), &[]),
        ((CellType::DeleteFamilyVersion, "", 10, b""), &["c2", "check"]),
    ];
    for (at, (marker, left)) in markers.iter().enumerate() {
        for call in CALLS {
            for place in [Place::Message, Place::Block] {
                if matches!((call, place), (Call::MutateRows, Place::Block)) {
                    continue;
                }
                let row = format!("{at}{call:?}{place:?}");
                rig.apply(
                    Call::Mutate,
                    &row,
                    mutation(MutationType::Put, &row, Place::Block, &stored),
                );
                let put = [(PUT, "a", 30, &b"a1"[..]), *marker];
                rig.apply(call, &row, mutation(MutationType::Put, &row, place, &put));
                let found = rig.row(&row);
                let values: Vec<&str> = found.iter().map(|(_, _, value)| &value[..]).collect();
                assert_eq!(values[0], "a1", "{marker:?} in {row}: {found:?}");
                assert_eq!(values[1..], **left, "{marker:?} in {row}: {found:?}");
            }
        }
    }
    server.stop();
}

/// In a delete, the marker of a family replaces those of its columns before it; in a put it stands
/// beside the cells.
#[test]
fn the_marker_of_a_family_replaces_cells_of_a_delete_only() {
    let (_dir, server, region, client) = start_with_table(&[]);
    let mut rig = Rig { client, region };
    let cells: [Sent; 2] = [(PUT, "a", 30, b"a1"), (CellType::DeleteFamily, "", 20, b"")];
    rig.apply(
        Call::Mutate,
        "r",
        mutation(MutationType::Put, "r", Place::Message, &cells),
    );
    assert_eq!(rig.row("r"), [("a".to_owned(), 30, "a1".to_owned())]);
    server.stop();
}

/// HBase's server refuses a put, increment or append in a message whose cell has no value.
#[test]
fn a_cell_without_a_value_is_refused() {
    let (_dir, server, region, mut client) = start_with_table(&[]);
    for kind in [MutationType::Put, MutationType::Increment, MutationType::Append] {
        let mut sent = inline(kind, "r", "q", b"");
        sent.column_value[0].qualifier_value[0].value = None;
        let (class, text) = client.refusal("Mutate", &mutate(&region, sent), b"");
        assert_eq!(class, "DoNotRetryIOException");
        assert!(text.contains("Missing required field: qualifier value"), "{text}");
    }
    server.stop();
}

/// The timestamp of a mutation is that of its cells in the message without their own; a cell that asks
/// for the latest time gets the server's.
#[test]
fn the_time_of_a_put_is_not_that_of_cells_that_ask_for_the_latest() {
    let (_dir, server, region, client) = start_with_table(&[]);
    let mut rig = Rig { client, region };
    for place in [Place::Message, Place::Block] {
        let (mut sent, block) = mutation(MutationType::Put, "r", place, &[(PUT, "a", LATEST, b"v")]);
        sent.timestamp = Some(300);
        rig.apply(Call::Mutate, "r", (sent, block));
        let found = rig.row("r");
        assert!(found[0].1 > 1_000_000_000_000, "{place:?}: {found:?}");
    }
    let mut sent = inline(MutationType::Put, "s", "a", b"v");
    sent.timestamp = Some(300);
    rig.apply(Call::Mutate, "s", (sent, Vec::new()));
    assert_eq!(rig.row("s")[0].1, 300);
    server.stop();
}

/// An increment or append, alone, in a batch and with a condition: the first cell of a column has the
/// client's time, the next one the server's.
#[test]
fn updates_have_the_time_of_their_first_cell() {
    let (_dir, server, region, client) = start_with_table(&[]);
    let mut rig = Rig { client, region };
    let one: &'static [u8] = &[0, 0, 0, 0, 0, 0, 0, 1];
    for kind in [MutationType::Increment, MutationType::Append] {
        for place in [Place::Message, Place::Block] {
            let row = format!("{kind:?}{place:?}");
            let sent = || mutation(kind, &row, place, &[(PUT, "c", 999, one)]);
            let (first, block) = sent();
            let answers = [
                rig.update("Mutate", &mutate(&rig.region.clone(), first.clone()), &block),
                rig.row(&row),
            ];
            for answer in answers {
                assert_eq!((answer.len(), answer[0].1), (1, 999), "{row}: {answer:?}");
            }
            let call = multi(&rig.region, vec![action(0, first)]);
            let second = rig.update("Multi", &call, &block);
            assert!(second[0].1 > 1_000_000_000_000, "{row}: {second:?}");
            let third = rig.update("Mutate", &mutate(&rig.region.clone(), sent().0), &block);
            assert!(third[0].1 > second[0].1, "{row}: {second:?}, then {third:?}");
            let future = 9_000_000_000_000;
            let in_future = mutation(MutationType::Put, &row, place, &[(PUT, "c", future, one)]);
            rig.apply(Call::Mutate, &row, in_future);
            for ahead in 1..=3 {
                let next = rig.update("Mutate", &mutate(&rig.region.clone(), sent().0), &block);
                assert_eq!(next[0].1, future + ahead, "{row}");
            }
        }
    }
    server.stop();
}

/// A marker in an increment or append is refused, and changes nothing.
#[test]
fn updates_take_no_delete_markers() {
    let (_dir, server, region, client) = start_with_table(&[]);
    let mut rig = Rig { client, region };
    for kind in [MutationType::Increment, MutationType::Append] {
        let cells: [Sent; 1] = [(CellType::DeleteColumn, "c", LATEST, b"12345678")];
        let (sent, block) = mutation(kind, "r", Place::Block, &cells);
        let call = mutate(&rig.region, sent);
        let (class, text) = rig.client.refusal("Mutate", &call, &block);
        assert_eq!(class, "DoNotRetryIOException");
        assert!(text.contains("takes cells of type Put only"), "{text}");
    }
    assert!(rig.row("r").is_empty());
    server.stop();
}

impl Rig {
    /// The new cells that an update returns.
    fn update(&mut self, method: &str, call: &impl Message, block: &[u8]) -> Vec<(String, i64, String)> {
        self.client.call(4, method, call, block);
        let response = self.client.response().expect("a response");
        assert_eq!(response.header.exception, None);
        shown(&response.cells)
    }
}
