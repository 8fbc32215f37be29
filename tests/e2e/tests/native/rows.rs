//! Rows over a native connection: the parts of the protocol that Java's client does not use or
//! show.

use basalt_idl::native::cells::{Cells, WireCell};
use basalt_idl::native::messages::{
    ConnectionHeader, GetResponse, MultiResponse, MutateResponse, Scan, ScanRequest, ScanResponse,
};
use basalt_test_support::Server;
use prost::Message;

use super::client::{Client, create, header, region, start_with_table};
use super::requests::{action, cell, get, multi, mutate, put, value_of, write};

/// A cell written in a block is read back in a block or in the message, as the client's codec and
/// version require.
#[test]
fn cells_travel_as_each_client_expects() {
    let (_dir, server, region, mut client) = start_with_table(&[]);
    let mut block = Vec::new();
    cell("r", "q", "value").encode(&mut block);
    client.call(0, "Mutate", &mutate(&region, put("r", 1)), &block);
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
    let (_dir, server, region, mut client) = start_with_table(&[]);
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
    assert!(server.metric(r#"basalt_requests_total{api="native",method="Get"}"#) >= 2_000);
    server.stop();
}

/// Each action of a batch has its own result. An action that fails does not shift the cells of the
/// others.
#[test]
fn actions_of_a_batch_fail_by_themselves() {
    let dir = basalt_test_support::tempdir().unwrap();
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
    let actions = [(0, "a"), (1, "b"), (2, "c")].map(|(index, row)| action(index, put(row, 1)));
    let call = multi(&region, actions.into());
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
        let found = value_of(&mut client, &region, row);
        assert_eq!(found.as_deref(), Some(value.as_bytes()));
    }
    server.stop();
}

/// A scanner checks the sequence numbers of fetches and is closed at the end of its region.
#[test]
fn scanners_count_fetches_and_end() {
    let (_dir, server, region, mut client) = start_with_table(&[]);
    for row in ["a", "b", "c"] {
        write(&mut client, &region, row, &[("q", row)]);
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
    // As in HBase: a call that is repeated, or that expects more, gets an error that says so.
    assert_eq!(
        client.refusal("Scan", &next(1), b"").0,
        "OutOfOrderScannerNextException"
    );
    let behind_the_end: ScanResponse = client.ask("Scan", &next(2));
    assert_eq!(
        (behind_the_end.scanner_id, behind_the_end.more_results),
        (first.scanner_id, None)
    );
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
