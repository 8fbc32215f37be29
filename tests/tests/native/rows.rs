//! Rows over a native connection: the parts of the protocol that Java's client does not use or
//! show.

use basalt_idl::native::cells::{CellType, Cells, LATEST_TIMESTAMP, WireCell};
use basalt_idl::native::messages::{
    Action, ConnectionHeader, Get, GetRequest, GetResponse, MultiRequest, MultiResponse, MutateRequest,
    MutateResponse, MutationProto, RegionAction, Scan, ScanRequest, ScanResponse,
    mutation_proto::MutationType,
};
use basalt_tests::Server;
use bytes::Bytes;
use prost::Message;

use super::client::{Client, create, header, region};

pub(crate) fn put(row: &'static str, cells: i32) -> MutationProto {
    MutationProto {
        row: Some(Bytes::from_static(row.as_bytes())),
        mutate_type: Some(MutationType::Put.into()),
        associated_cell_count: Some(cells),
        ..MutationProto::default()
    }
}

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

pub(crate) fn get(region: &basalt_idl::native::messages::RegionSpecifier, row: &'static str) -> GetRequest {
    GetRequest {
        region: region.clone(),
        get: Get {
            row: Bytes::from_static(row.as_bytes()),
            ..Get::default()
        },
    }
}

/// A cell written in a block is read back in a block or in the message, as the client's codec and
/// version require.
#[test]
fn cells_travel_as_each_client_expects() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    let mut block = Vec::new();
    cell("r", "q", "value").encode(&mut block);
    let call = MutateRequest {
        region: region.clone(),
        mutation: put("r", 1),
        ..MutateRequest::default()
    };
    client.call(0, "Mutate", &call, &block);
    let response = client.response().unwrap();
    assert_eq!(response.header.call_id, Some(0));
    assert_eq!(
        MutateResponse::decode(response.result).unwrap().processed,
        Some(true)
    );

    client.call(1, "Get", &get(&region, "r"), b"");
    let response = client.response().unwrap();
    let cells: Vec<_> = Cells::new(&response.cells).map(Result::unwrap).collect();
    assert_eq!((cells.len(), cells[0].value), (1, &b"value"[..]));
    let result = GetResponse::decode(response.result).unwrap().result.unwrap();
    assert_eq!((result.associated_cell_count, result.cell.len()), (Some(1), 0));

    let without_version = ConnectionHeader {
        version_info: None,
        ..header("ClientService")
    };
    let without_codec = ConnectionHeader {
        cell_block_codec_class: None,
        ..header("ClientService")
    };
    for inline in [without_version, without_codec] {
        let mut client = Client::connect_with(&server, &inline);
        let result = client
            .ask::<GetResponse>("Get", &get(&region, "r"))
            .result
            .unwrap();
        assert_eq!(result.cell.len(), 1);
        assert_eq!(result.cell[0].value.as_deref(), Some(&b"value"[..]));
    }
    server.stop();
}

/// Calls of one connection are answered by their ids, in any order. The client sends more calls
/// than a connection may have in flight.
#[test]
fn calls_in_flight_are_answered_by_their_ids() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    let ids: Vec<u32> = (0..2_000).map(|number| number * 3 + 5).collect();
    let mut reader = Client {
        socket: client.socket.try_clone().unwrap(),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in &ids {
                client.call(*id, "Get", &get(&region, "r"), b"");
            }
        });
        let mut answered: Vec<u32> = ids
            .iter()
            .map(|_| reader.response().unwrap().header.call_id.unwrap())
            .collect();
        answered.sort_unstable();
        assert_eq!(answered, ids);
    });
    assert!(server.metric(r#"basalt_thrift_requests_total{api="native",method="Get"}"#) >= 2_000);
    server.stop();
}

/// Each action of a batch has its own result. An action that fails does not shift the cells of the
/// others.
#[test]
fn actions_of_a_batch_fail_by_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    let mut block = Vec::new();
    cell("a", "q", "1").encode(&mut block);
    WireCell {
        family: b"nof",
        ..cell("b", "q", "2")
    }
    .encode(&mut block);
    cell("c", "q", "3").encode(&mut block);
    let action = |index, row| Action {
        index: Some(index),
        mutation: Some(Box::new(put(row, 1))),
        ..Action::default()
    };
    let call = MultiRequest {
        region_action: vec![RegionAction {
            region: region.clone(),
            action: vec![action(0, "a"), action(1, "b"), action(2, "c")],
            ..RegionAction::default()
        }],
        ..MultiRequest::default()
    };
    let mut client = Client::connect(&server, "ClientService");
    client.call(1, "Multi", &call, &block);
    let answer = MultiResponse::decode(client.response().unwrap().result).unwrap();
    let results = &answer.region_action_result[0].result_or_exception;
    let failed: Vec<_> = results
        .iter()
        .filter(|result| result.exception.is_some())
        .map(|result| result.index)
        .collect();
    assert_eq!((results.len(), failed), (3, vec![Some(1)]));
    for (row, value) in [("a", "1"), ("c", "3")] {
        client.call(2, "Get", &get(&region, row), b"");
        let response = client.response().unwrap();
        assert_eq!(
            Cells::new(&response.cells).require().unwrap().value,
            value.as_bytes()
        );
    }
    server.stop();
}

/// A scanner checks the sequence numbers of fetches and is closed at the end of its region.
#[test]
fn scanners_count_fetches_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    for row in ["a", "b", "c"] {
        let mut block = Vec::new();
        cell(row, "q", row).encode(&mut block);
        let call = MutateRequest {
            region: region.clone(),
            mutation: put(row, 1),
            ..MutateRequest::default()
        };
        client.call(1, "Mutate", &call, &block);
        client.response().unwrap();
    }
    let open = ScanRequest {
        region: Some(region),
        scan: Some(Scan::default()),
        number_of_rows: Some(2),
        ..ScanRequest::default()
    };
    let first: ScanResponse = client.ask("Scan", &open);
    assert_eq!(first.cells_per_result, [1, 1]);
    assert_eq!(
        (first.more_results, first.more_results_in_region),
        (Some(true), Some(true))
    );
    let next = |number| ScanRequest {
        scanner_id: first.scanner_id,
        number_of_rows: Some(2),
        next_call_seq: Some(number),
        ..ScanRequest::default()
    };
    assert_eq!(
        client.refusal("Scan", &next(5), b"").0,
        "OutOfOrderScannerNextException"
    );
    let second: ScanResponse = client.ask("Scan", &next(0));
    assert_eq!(second.cells_per_result, [1]);
    assert_eq!(
        (second.more_results, second.more_results_in_region),
        (Some(true), Some(false))
    );
    assert_eq!(client.refusal("Scan", &next(1), b"").0, "UnknownScannerException");
    let close = ScanRequest {
        close_scanner: Some(true),
        number_of_rows: Some(0),
        ..next(1)
    };
    assert_eq!(
        client.ask::<ScanResponse>("Scan", &close).scanner_id,
        first.scanner_id
    );
    server.stop();
}
