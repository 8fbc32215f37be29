//! The calls of gohbase, in its order: the Go module itself is not available to every test machine.
//!
//! gohbase names a user and a codec but no version, numbers its calls from 1, and sends no priority
//! or timeout. It asks the master without IsMasterRunning, probes a region after it has looked it
//! up, and sends everything but scans and checkAndPut in a Multi, also single gets. Cells of a
//! Multi therefore travel in blocks in both directions.

use basalt_idl::native::cells::{CellType, Cells, WireCell};
use basalt_idl::native::messages::{
    self as pb, Action, ConnectionHeader, Get, GetRequest, MultiRequest, MultiResponse, MutationProto,
    RegionAction, RegionSpecifier, Scan, ScanRequest, ScanResponse, mutation_proto::MutationType,
};
use basalt_test_support::Server;
use bytes::Bytes;
use prost::Message;

use super::client::{Client, header, specifier, table_name};
use super::requests::{cell, inline, mutate};

/// gohbase's connection: one for each server and service.
struct Gohbase {
    client: Client,
    calls: u32,
}

impl Gohbase {
    fn connect(server: &Server, service: &str) -> Self {
        let header = ConnectionHeader {
            user_info: Some(pb::UserInformation {
                effective_user: "root".to_owned(),
                real_user: None,
            }),
            version_info: None,
            ..header(service)
        };
        Self {
            client: Client::connect_with(server, &header),
            calls: 0,
        }
    }

    /// Makes a call; its message and the cells of its block, as `row family:qualifier=value`.
    fn call<M: Message + Default>(
        &mut self,
        method: &str,
        parameter: &impl Message,
        cells: &[WireCell<'_>],
    ) -> (M, Vec<String>) {
        let mut block = Vec::new();
        for cell in cells {
            cell.encode(&mut block);
        }
        self.calls += 1;
        self.client.call(self.calls, method, parameter, &block);
        let response = self.client.response().expect("a response");
        assert_eq!(response.header.call_id, Some(self.calls));
        assert_eq!(response.header.exception, None, "{method}");
        let cells = Cells::new(&response.cells).map(|cell| shown(&cell.expect("a cell")));
        let cells = cells.collect();
        (M::decode(response.result).expect("the method's message"), cells)
    }

    /// Makes a call of the master.
    fn ask<M: Message + Default>(&mut self, method: &str, parameter: &impl Message) -> M {
        self.call(method, parameter, &[]).0
    }

    /// One action, in a Multi. The error is the class of its exception.
    fn single(
        &mut self,
        region: &RegionSpecifier,
        action: Action,
        cells: &[WireCell<'_>],
    ) -> Result<Vec<String>, String> {
        let call = MultiRequest {
            region_action: vec![actions(region, vec![action])],
            ..MultiRequest::default()
        };
        let (answer, cells) = self.call::<MultiResponse>("Multi", &call, cells);
        let results = &answer.region_action_result[0].result_or_exception;
        assert_eq!((results.len(), results[0].index), (1, Some(1)));
        match &results[0].exception {
            Some(exception) => Err(exception.name.rsplit('.').next().unwrap_or_default().to_owned()),
            None => Ok(cells),
        }
    }
}

fn shown(cell: &WireCell<'_>) -> String {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let column = format!("{}:{}", text(cell.family), text(cell.qualifier));
    format!("{} {column}={}", text(cell.row), text(cell.value))
}

fn actions(region: &RegionSpecifier, action: Vec<Action>) -> RegionAction {
    RegionAction {
        region: region.clone(),
        action,
        ..RegionAction::default()
    }
}

/// An action with the index that gohbase gives: it counts them from 1.
fn mutation(index: u32, row: &'static str, kind: MutationType) -> Action {
    Action {
        index: Some(index),
        mutation: Some(Box::new(MutationProto {
            row: Some(Bytes::from_static(row.as_bytes())),
            mutate_type: Some(kind.into()),
            durability: Some(pb::mutation_proto::Durability::UseDefault.into()),
            associated_cell_count: Some(1),
            ..MutationProto::default()
        })),
        ..Action::default()
    }
}

fn get(row: &'static str) -> Get {
    Get {
        row: Bytes::from_static(row.as_bytes()),
        time_range: Some(pb::TimeRange {
            from: Some(0),
            to: Some(i64::MAX as u64),
        }),
        max_versions: Some(1),
        ..Get::default()
    }
}

fn read(get: Get) -> Action {
    Action {
        index: Some(1),
        get: Some(Box::new(get)),
        ..Action::default()
    }
}

/// Looks the region of a row up: a reversed scan of `hbase:meta` from `table,row,:` to `table` that
/// is closed by the same call. `None` when it finds a region of no table or of another one.
fn look_up(client: &mut Gohbase, table: &str, row: &str) -> Option<RegionSpecifier> {
    let call = ScanRequest {
        region: Some(specifier(b"hbase:meta,,1")),
        scan: Some(Scan {
            column: vec![pb::Column {
                family: Bytes::from_static(b"info"),
                qualifier: Vec::new(),
            }],
            start_row: Some(Bytes::from(format!("{table},{row},:"))),
            stop_row: Some(Bytes::from(table.to_owned())),
            max_versions: Some(1),
            reversed: Some(true),
            ..Scan::default()
        }),
        number_of_rows: Some(1),
        close_scanner: Some(true),
        ..ScanRequest::default()
    };
    let (answer, cells) = client.call::<ScanResponse>("Scan", &call, &[]);
    assert!(answer.cells_per_result.len() <= 1);
    let region = cells.first()?.split(' ').next()?.to_owned();
    let names = ["info:regioninfo", "info:server"];
    assert!(
        names
            .iter()
            .all(|name| cells.iter().any(|cell| cell.contains(name)))
    );
    region
        .starts_with(&format!("{table},"))
        .then(|| specifier(region.as_bytes()))
}

/// The region of a row, probed with the row of 17 zero bytes as after each look-up.
fn region(client: &mut Gohbase, row: &str) -> RegionSpecifier {
    let region = look_up(client, "go", row).expect("the table has a region for each row");
    let probe = GetRequest {
        region: region.clone(),
        get: Get {
            row: Bytes::from_static(&[0; 17]),
            existence_only: Some(true),
            ..Get::default()
        },
    };
    // The row may be outside the region: gohbase takes any error but a region's for a sign of life.
    client.calls += 1;
    client.client.call(client.calls, "Get", &probe, b"");
    let response = client.client.response().expect("a response");
    assert_eq!(response.header.call_id, Some(client.calls));
    region
}

/// Makes the table `go` with the split key `m`, and polls the procedure.
fn create(master: &mut Gohbase) {
    let family = pb::ColumnFamilySchema {
        name: Bytes::from_static(b"f"),
        attributes: vec![pb::BytesBytesPair {
            first: Bytes::from_static(b"VERSIONS"),
            second: Bytes::from_static(b"3"),
        }],
        ..pb::ColumnFamilySchema::default()
    };
    let call = pb::CreateTableRequest {
        table_schema: pb::TableSchema {
            table_name: Some(table_name("go")),
            column_families: vec![family],
            ..pb::TableSchema::default()
        },
        split_keys: vec![Bytes::from_static(b"m")],
        ..pb::CreateTableRequest::default()
    };
    let answer: pb::CreateTableResponse = master.ask("CreateTable", &call);
    finished(master, answer.proc_id);
}

/// Requests the result of a procedure, which is finished.
fn finished(master: &mut Gohbase, id: Option<u64>) {
    let call = pb::GetProcedureResultRequest {
        proc_id: id.expect("a procedure has an id"),
    };
    let answer: pb::GetProcedureResultResponse = master.ask("getProcedureResult", &call);
    let finished = pb::get_procedure_result_response::State::Finished;
    assert_eq!((answer.state(), answer.exception), (finished, None));
}

#[test]
fn rows() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&mut Gohbase::connect(&server, "MasterService"));
    let client = &mut Gohbase::connect(&server, "ClientService");

    let first = region(client, "a");
    let put = client.single(
        &first,
        mutation(1, "a", MutationType::Put),
        &[cell("a", "q", "v1")],
    );
    assert_eq!(put, Ok(vec![]));
    let cells = client.single(&first, read(get("a")), &[]);
    assert_eq!(cells, Ok(vec!["a f:q=v1".to_owned()]));
    let filter = pb::Filter {
        name: "org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter".to_owned(),
        serialized_filter: Some(Bytes::new()),
    };
    let filtered = Get {
        filter: Some(filter),
        ..get("a")
    };
    assert_eq!(
        client.single(&first, read(filtered), &[]),
        Ok(vec!["a f:q=v1".to_owned()])
    );
    assert_eq!(client.single(&first, read(get("absent")), &[]), Ok(vec![]));
    let of_no_family = Get {
        column: vec![pb::Column {
            family: Bytes::from_static(b"nof"),
            qualifier: Vec::new(),
        }],
        ..get("a")
    };
    let refused = client.single(&first, read(of_no_family), &[]);
    assert_eq!(refused, Err("NoSuchColumnFamilyException".to_owned()));

    let last = region(client, "z");
    assert_ne!(first, last);
    batch(client, &first, &last);
    updates(client, &first);
    scan(client, &[first, last]);
    assert_eq!(look_up(client, "nope", "a"), None);
    server.stop();
}

/// Puts in two regions in one call.
fn batch(client: &mut Gohbase, first: &RegionSpecifier, last: &RegionSpecifier) {
    let put = |index, row| mutation(index, row, MutationType::Put);
    let call = MultiRequest {
        region_action: vec![
            actions(first, vec![put(1, "b"), put(2, "c"), put(3, "d")]),
            actions(last, vec![put(4, "y")]),
        ],
        ..MultiRequest::default()
    };
    let cells = ["b", "c", "d", "y"].map(|row| cell(row, "q", row));
    let (answer, _) = client.call::<MultiResponse>("Multi", &call, &cells);
    let results = answer
        .region_action_result
        .iter()
        .flat_map(|region| &region.result_or_exception);
    let outcomes: Vec<_> = results
        .map(|result| (result.index, result.exception.is_none()))
        .collect();
    assert_eq!(outcomes, [1, 2, 3, 4].map(|index| (Some(index), true)));
}

fn updates(client: &mut Gohbase, region: &RegionSpecifier) {
    let amount = WireCell {
        value: &[0, 0, 0, 0, 0, 0, 0, 5],
        ..cell("count", "q", "")
    };
    let sum = client.single(region, mutation(1, "count", MutationType::Increment), &[amount]);
    let expected = format!("count f:q={}\\x05", "\\x00".repeat(7));
    assert_eq!(sum, Ok(vec![expected]));
    let appended = client.single(
        region,
        mutation(1, "a", MutationType::Append),
        &[cell("a", "q", "+x")],
    );
    assert_eq!(appended, Ok(vec!["a f:q=v1+x".to_owned()]));
    for (expected, processed) in [("v1+x", true), ("v1", false)] {
        assert_eq!(
            check_and_put(client, region, expected),
            Some(processed),
            "{expected}"
        );
    }
    let column = WireCell {
        cell_type: CellType::DeleteColumn,
        ..cell("d", "q", "")
    };
    let deleted = client.single(region, mutation(1, "d", MutationType::Delete), &[column]);
    assert_eq!(deleted, Ok(vec![]));
}

/// The one mutation that goes alone, with its cell in the message.
fn check_and_put(client: &mut Gohbase, region: &RegionSpecifier, expected: &str) -> Option<bool> {
    let comparator = pb::BinaryComparator {
        comparable: pb::ByteArrayComparable {
            value: Some(Bytes::from(expected.to_owned())),
        },
    };
    let call = pb::MutateRequest {
        condition: Some(pb::Condition {
            row: Bytes::from_static(b"a"),
            family: Some(Bytes::from_static(b"f")),
            qualifier: Some(Bytes::from_static(b"q")),
            compare_type: Some(pb::CompareType::Equal.into()),
            comparator: Some(pb::Comparator {
                name: "org.apache.hadoop.hbase.filter.BinaryComparator".to_owned(),
                serialized_comparator: Some(comparator.encode_to_vec().into()),
            }),
            ..pb::Condition::default()
        }),
        ..mutate(region, inline(MutationType::Put, "a", "q", b"v2"))
    };
    client
        .call::<pb::MutateResponse>("Mutate", &call, &[])
        .0
        .processed
}

/// A scan of both regions, two rows at a time. The scanner of a region ends with it.
fn scan(client: &mut Gohbase, regions: &[RegionSpecifier]) {
    let mut rows = Vec::new();
    for (region, start) in regions.iter().zip(["", "m"]) {
        let open = ScanRequest {
            region: Some(region.clone()),
            scan: Some(Scan {
                start_row: Some(Bytes::from_static(start.as_bytes())),
                max_versions: Some(1),
                ..Scan::default()
            }),
            number_of_rows: Some(2),
            ..ScanRequest::default()
        };
        let (mut answer, mut cells) = client.call::<ScanResponse>("Scan", &open, &[]);
        let scanner_id = answer.scanner_id;
        rows.append(&mut cells);
        while answer.more_results_in_region == Some(true) {
            let next = ScanRequest {
                scanner_id,
                number_of_rows: Some(2),
                ..ScanRequest::default()
            };
            let (fetched, mut cells) = client.call::<ScanResponse>("Scan", &next, &[]);
            rows.append(&mut cells);
            answer = fetched;
        }
    }
    let keys: Vec<&str> = rows.iter().filter_map(|cell| cell.split(' ').next()).collect();
    assert_eq!(keys, ["a", "b", "c", "count", "y"]);
    assert_eq!(rows[0], "a f:q=v2");
}

#[test]
fn master() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let master = &mut Gohbase::connect(&server, "MasterService");
    create(master);
    let names: pb::GetTableNamesResponse = master.ask("GetTableNames", &pb::GetTableNamesRequest::default());
    assert_eq!(names.table_names, [table_name("go")]);
    let status: pb::GetClusterStatusResponse =
        master.ask("GetClusterStatus", &pb::GetClusterStatusRequest::default());
    assert_eq!(status.cluster_status.live_servers.len(), 1);
    let call = pb::SetBalancerRunningRequest {
        on: false,
        ..pb::SetBalancerRunningRequest::default()
    };
    for before in [true, false] {
        let answer: pb::SetBalancerRunningResponse = master.ask("SetBalancerRunning", &call);
        assert_eq!(answer.prev_balance_value, Some(before));
    }
    snapshot(master);
    change_state(master);
    server.stop();
}

/// Takes and deletes a snapshot without nonces; gohbase polls its state by name.
fn snapshot(master: &mut Gohbase) {
    let snapshot = pb::SnapshotDescription {
        name: "gs".to_owned(),
        table: Some("go".to_owned()),
        ..pb::SnapshotDescription::default()
    };
    let call = pb::SnapshotRequest {
        snapshot: snapshot.clone(),
        ..pb::SnapshotRequest::default()
    };
    let _: pb::SnapshotResponse = master.ask("Snapshot", &call);
    let call = pb::IsSnapshotDoneRequest {
        snapshot: Some(snapshot.clone()),
    };
    let done: pb::IsSnapshotDoneResponse = master.ask("IsSnapshotDone", &call);
    assert_eq!(done.done, Some(true));
    let none = pb::GetCompletedSnapshotsRequest {};
    let listed: pb::GetCompletedSnapshotsResponse = master.ask("GetCompletedSnapshots", &none);
    assert_eq!(listed.snapshots[0].name, "gs");
    let _: pb::DeleteSnapshotResponse = master.ask("DeleteSnapshot", &pb::DeleteSnapshotRequest { snapshot });
    let listed: pb::GetCompletedSnapshotsResponse = master.ask("GetCompletedSnapshots", &none);
    assert_eq!(listed.snapshots, []);
}

/// Disables, enables and drops the table, and polls each procedure.
fn change_state(master: &mut Gohbase) {
    let disable = pb::DisableTableRequest {
        table_name: table_name("go"),
        ..pb::DisableTableRequest::default()
    };
    let answer: pb::DisableTableResponse = master.ask("DisableTable", &disable);
    finished(master, answer.proc_id);
    let enable = pb::EnableTableRequest {
        table_name: table_name("go"),
        ..pb::EnableTableRequest::default()
    };
    let answer: pb::EnableTableResponse = master.ask("EnableTable", &enable);
    finished(master, answer.proc_id);
    let answer: pb::DisableTableResponse = master.ask("DisableTable", &disable);
    finished(master, answer.proc_id);
    let delete = pb::DeleteTableRequest {
        table_name: table_name("go"),
        ..pb::DeleteTableRequest::default()
    };
    let answer: pb::DeleteTableResponse = master.ask("DeleteTable", &delete);
    finished(master, answer.proc_id);
}
