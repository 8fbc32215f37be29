//! Limits of native calls: the response of a Multi, the memory of arguments, atomic groups, and
//! rows that come in several results.

use basalt_idl::native::cells::{Cells, WireCell};
use basalt_idl::native::messages::{
    Action, Get, GetRequest, GetResponse, MultiResponse, MutateRequest, MutateResponse, MutationProto,
    ResultOrException, Scan, ScanRequest, ScanResponse,
    mutation_proto::{Durability, MutationType},
};
use bytes::Bytes;
use prost::Message;

use super::client::{exception, start_with_table};
use super::groups::matches;
use super::requests::{action, cell, get, inline, multi, mutate, put, write};

fn class(result: &ResultOrException) -> Option<&str> {
    result.exception.as_ref().map(|exception| exception.name.as_str())
}

/// Reads that find the response full fail with the exception on which clients send them again.
#[test]
fn a_full_response_leaves_the_other_reads_to_the_next_call() {
    let (_dir, server, region, mut client) = start_with_table(&["server.max_response_bytes=100000"]);
    write(&mut client, &region, "r", &[("q", &"v".repeat(40_000))]);
    let read = |index| Action {
        index: Some(index),
        get: Some(Box::new(Get {
            row: Bytes::from_static(b"r"),
            ..Get::default()
        })),
        ..Action::default()
    };
    let call = multi(&region, (0..10).map(read).collect());
    client.call(2, "Multi", &call, b"");
    let response = client.response().unwrap();
    let answer = MultiResponse::decode(response.result).unwrap();
    let results = &answer.region_action_result[0].result_or_exception;
    let (served, full) = results.split_at(3);
    assert!(served.iter().all(|result| result.result.is_some()), "{served:?}");
    assert_eq!(Cells::new(&response.cells).flatten().count(), 3);
    assert_eq!(full.len(), 7);
    for result in full {
        assert_eq!(
            class(result),
            Some("org.apache.hadoop.hbase.MultiActionResultTooLarge")
        );
    }
    server.stop();
}

/// A message of empty actions would need many times its size. It is refused before it is decoded.
#[test]
fn arguments_are_reserved_before_they_are_decoded() {
    const ACTIONS: usize = 2_000_000;
    let (_dir, server, region, mut client) = start_with_table(&["memory.total_bytes=134217728"]);
    let before = server.resident_bytes();
    let call = multi(&region, vec![Action::default(); ACTIONS]);
    client.call(7, "Multi", &call, b"");
    let (class, text) = exception(&client.response().unwrap());
    assert!(text.contains("requests.memory_bytes"), "{class}: {text}");
    let grown = server.peak_resident_bytes().saturating_sub(before);
    assert!(
        grown < 40 << 20,
        "{grown} bytes for a message of {} bytes",
        2 * ACTIONS
    );
    write(&mut client, &region, "r", &[("q", "v")]);
    server.stop();
}

/// An atomic group changes all of its rows, whatever the durability of each mutation, or none.
#[test]
fn an_atomic_group_changes_all_of_its_rows() {
    let (_dir, server, region, mut client) = start_with_table(&[]);
    let mut group = |rows: [&'static str; 2], family: &str| {
        let mut block = Vec::new();
        cell(rows[0], "p", "1").encode(&mut block);
        WireCell {
            family: family.as_bytes(),
            ..cell(rows[1], "q", "2")
        }
        .encode(&mut block);
        let skips = MutationProto {
            durability: Some(Durability::SkipWal.into()),
            ..put(rows[0], 1)
        };
        let mut call = multi(&region, vec![action(0, skips), action(1, put(rows[1], 1))]);
        call.region_action[0].atomic = Some(true);
        client.call(3, "Multi", &call, &block);
        let answer = MultiResponse::decode(client.response().unwrap().result).unwrap();
        let exception = answer.region_action_result[0].exception.clone();
        let found = rows.map(|row| {
            client.call(4, "Get", &get(&region, row), b"");
            let answer = GetResponse::decode(client.response().unwrap().result).unwrap();
            answer.result.unwrap().associated_cell_count
        });
        (exception.map(|exception| exception.name), found)
    };
    let class = "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException";
    let refused = Some(class.to_owned());
    assert_eq!(group(["a", "b"], "none"), (refused, [Some(0), Some(0)]));
    assert_eq!(group(["a", "b"], "f"), (None, [Some(1), Some(1)]));
    assert_eq!(group(["c", "c"], "f"), (None, [Some(2), Some(2)]));
    server.stop();
}

/// The limit of a scan counts rows, not the results in which a batch limit cuts them.
#[test]
fn the_limit_of_a_scan_counts_whole_rows() {
    let (_dir, server, region, mut client) = start_with_table(&[]);
    for row in ["a", "b", "c"] {
        let cells = [("1", "v"), ("2", "v"), ("3", "v"), ("4", "v"), ("5", "v")];
        write(&mut client, &region, row, &cells);
    }
    let open = ScanRequest {
        region: Some(region),
        scan: Some(Scan {
            batch_size: Some(2),
            ..Scan::default()
        }),
        number_of_rows: Some(10),
        limit_of_rows: Some(2),
        ..ScanRequest::default()
    };
    let mut answer: ScanResponse = client.ask("Scan", &open);
    let scanner = answer.scanner_id;
    let (mut cells, mut calls) = (answer.cells_per_result.clone(), 1);
    while answer.more_results == Some(true) {
        assert!(calls < 10, "the scan goes on: {cells:?}");
        let next = ScanRequest {
            scanner_id: scanner,
            number_of_rows: Some(10),
            next_call_seq: Some(calls - 1),
            ..ScanRequest::default()
        };
        answer = client.ask("Scan", &next);
        cells.extend(&answer.cells_per_result);
        calls += 1;
    }
    assert_eq!(cells, [2, 2, 1, 2, 2, 1]);
    server.stop();
}

/// The filter of a get, alone or in a batch, and that of a condition are reserved when they are compiled:
/// a short pattern takes much memory.
#[test]
fn filters_of_gets_and_conditions_are_reserved() {
    let settings = [
        "server.max_message_bytes=1048576",
        "requests.memory_bytes=4194304",
    ];
    let (_dir, server, region, mut client) = start_with_table(&settings);
    write(&mut client, &region, "r", &[("q", "v")]);
    let condition = |patterns| {
        let one = "RowFilter(!=, 'regexstring:[\\p{L}]{12}')";
        matches("r", &vec![one; patterns].join(" AND "))
    };
    let read = |patterns| Get {
        filter: condition(patterns).filter,
        ..get(&region, "r").get
    };
    let alone = |patterns| GetRequest {
        region: region.clone(),
        get: read(patterns),
    };
    let in_batch = |patterns| {
        let read = Action {
            index: Some(0),
            get: Some(Box::new(read(patterns))),
            ..Action::default()
        };
        multi(&region, vec![read])
    };
    let conditional = |patterns| MutateRequest {
        condition: Some(condition(patterns)),
        ..mutate(&region, inline(MutationType::Put, "r", "p", b"w"))
    };
    assert!(
        client
            .refusal("Get", &alone(3), b"")
            .1
            .contains("requests.memory_bytes")
    );
    let text = client.refusal("Mutate", &conditional(3), b"").1;
    assert!(text.contains("requests.memory_bytes"), "{text}");
    let answer: MultiResponse = client.ask("Multi", &in_batch(3));
    let refused = answer.region_action_result[0].result_or_exception[0]
        .exception
        .clone();
    let text = refused.expect("an exception").value.unwrap();
    assert!(
        String::from_utf8_lossy(&text).contains("requests.memory_bytes"),
        "{text:?}"
    );

    client.call(2, "Get", &alone(1), b"");
    let served = client.response().unwrap();
    assert_eq!(Cells::new(&served.cells).flatten().count(), 1);
    let answer: MultiResponse = client.ask("Multi", &in_batch(1));
    assert!(
        answer.region_action_result[0].result_or_exception[0]
            .result
            .is_some()
    );
    let answer: MutateResponse = client.ask("Mutate", &conditional(1));
    assert_eq!(answer.processed, Some(true));
    server.stop();
}
