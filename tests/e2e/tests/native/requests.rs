//! Requests that several tests make: puts, gets, batches and mutations with cells in the message.

use basalt_idl::native::cells::{CellType, Cells, LATEST_TIMESTAMP, WireCell};
use basalt_idl::native::messages::{
    Action, Get, GetRequest, MultiRequest, MutateRequest, MutationProto, RegionAction, RegionSpecifier,
    mutation_proto::{ColumnValue, DeleteType, MutationType, column_value::QualifierValue},
};
use bytes::Bytes;

use super::client::Client;

/// A put whose cells are in the cell block.
pub(crate) fn put(row: &'static str, cells: i32) -> MutationProto {
    MutationProto {
        row: Some(Bytes::from_static(row.as_bytes())),
        mutate_type: Some(MutationType::Put.into()),
        associated_cell_count: Some(cells),
        ..MutationProto::default()
    }
}

/// A cell of family `f` without a timestamp.
pub(crate) fn cell<'a>(row: &'a str, qualifier: &'a str, value: &'a str) -> WireCell<'a> {
    WireCell {
        row: row.as_bytes(),
        family: b"f",
        qualifier: qualifier.as_bytes(),
        timestamp: LATEST_TIMESTAMP,
        cell_type: CellType::Put,
        value: value.as_bytes(),
        tags: b"",
    }
}

/// A mutation of one column of family `f`, with its cell in the message. A delete is of all
/// versions.
pub(crate) fn inline(kind: MutationType, row: &str, qualifier: &str, value: &[u8]) -> MutationProto {
    let delete_type = (kind == MutationType::Delete).then_some(DeleteType::DeleteMultipleVersions.into());
    MutationProto {
        row: Some(Bytes::copy_from_slice(row.as_bytes())),
        mutate_type: Some(kind.into()),
        column_value: vec![ColumnValue {
            family: Bytes::from_static(b"f"),
            qualifier_value: vec![QualifierValue {
                qualifier: Some(Bytes::copy_from_slice(qualifier.as_bytes())),
                value: Some(Bytes::copy_from_slice(value)),
                delete_type,
                ..QualifierValue::default()
            }],
        }],
        ..MutationProto::default()
    }
}

pub(crate) fn get(region: &RegionSpecifier, row: &'static str) -> GetRequest {
    GetRequest {
        region: region.clone(),
        get: Get {
            row: Bytes::from_static(row.as_bytes()),
            ..Get::default()
        },
    }
}

pub(crate) fn mutate(region: &RegionSpecifier, mutation: MutationProto) -> MutateRequest {
    MutateRequest {
        region: region.clone(),
        mutation,
        ..MutateRequest::default()
    }
}

/// An action of a batch; its result has the same index.
pub(crate) fn action(index: u32, mutation: MutationProto) -> Action {
    Action {
        index: Some(index),
        mutation: Some(Box::new(mutation)),
        ..Action::default()
    }
}

/// A Multi of one region.
pub(crate) fn multi(region: &RegionSpecifier, actions: Vec<Action>) -> MultiRequest {
    MultiRequest {
        region_action: vec![RegionAction {
            region: region.clone(),
            action: actions,
            ..RegionAction::default()
        }],
        ..MultiRequest::default()
    }
}

/// Puts cells of family `f`, each a qualifier and a value, into a row.
pub(crate) fn write<V: AsRef<[u8]>>(
    client: &mut Client,
    region: &RegionSpecifier,
    row: &'static str,
    cells: &[(&str, V)],
) {
    let mut block = Vec::new();
    for (qualifier, value) in cells {
        WireCell {
            value: value.as_ref(),
            ..cell(row, qualifier, "")
        }
        .encode(&mut block);
    }
    let call = mutate(region, put(row, cells.len() as i32));
    client.call(1, "Mutate", &call, &block);
    assert_eq!(client.response().unwrap().header.exception, None);
}

/// The value of the first cell of a row; `None` if the row is empty.
pub(crate) fn value_of(client: &mut Client, region: &RegionSpecifier, row: &'static str) -> Option<Vec<u8>> {
    client.call(3, "Get", &get(region, row), b"");
    let response = client.response().unwrap();
    assert_eq!(response.header.exception, None);
    let mut cells = Cells::new(&response.cells);
    cells.next().map(|cell| cell.unwrap().value.to_vec())
}
