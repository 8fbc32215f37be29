//! The rehearsal of a cluster: one server that looks like several to every client that locates
//! regions, and gives each of them its own capacity. Charges are read from the metrics, so no test
//! depends on how long something takes.

use std::collections::BTreeSet;

use basalt_idl::admin::args as own;
use basalt_idl::thrift1::{self, args as one};
use basalt_idl::thrift2::{self, args as two};
use bytes::Bytes;

use crate::client::{Wire, bytes, delete, put, some, start, text};

fn rehearse(settings: &[&str]) -> Wire {
    Wire::to(start(settings))
}

/// The servers of a table's regions in key order, as Thrift 2 tells.
fn hosts(wire: &mut Wire, table: &str) -> Vec<String> {
    let locations = wire.ok(&two::GetAllRegionLocations { table: bytes(table) });
    let host = |location: thrift2::THRegionLocation| location.server_name.host_name;
    locations.into_iter().map(host).collect()
}

/// The names of a table's regions in key order.
fn names(wire: &mut Wire, table: &str) -> Vec<Bytes> {
    let metrics = wire.ok(&own::BasaltRegionMetrics {
        table: Some(bytes(table)),
    });
    metrics.into_iter().map(|region| region.region_name).collect()
}

/// A column of `hbase:meta` for the regions of a table, in key order.
fn in_meta(wire: &mut Wire, table: &str, qualifier: &str) -> Vec<String> {
    let rows = wire.ok(&two::GetScannerResults {
        table: bytes("hbase:meta"),
        tscan: thrift2::TScan::default(),
        num_rows: 100,
    });
    let of_table = rows
        .iter()
        .filter(|row| text(row.row.as_deref().unwrap_or_default()).starts_with(&format!("{table},")));
    of_table
        .flat_map(|row| &row.column_values)
        .filter(|cell| cell.qualifier == qualifier)
        .map(|cell| text(&cell.value))
        .collect()
}

fn puts(rows: impl IntoIterator<Item = String>) -> Vec<thrift2::TPut> {
    rows.into_iter()
        .map(|row| put(&row, "f:q", "value", None))
        .collect()
}

fn put_all(table: &str, rows: impl IntoIterator<Item = String>) -> two::PutMultiple {
    two::PutMultiple {
        table: bytes(table),
        tputs: puts(rows),
    }
}

fn get(table: &str, row: &str) -> two::Get {
    two::Get {
        table: bytes(table),
        tget: thrift2::TGet {
            row: bytes(row),
            ..Default::default()
        },
    }
}

fn scan(table: &str, tscan: thrift2::TScan) -> two::GetScannerResults {
    two::GetScannerResults {
        table: bytes(table),
        tscan,
        num_rows: 100,
    }
}

/// The charges of each virtual server.
fn charged(wire: &Wire, metric: &str, kind: &str, servers: usize) -> Vec<u64> {
    (1..=servers)
        .map(|server| {
            let series =
                format!("basalt_rehearsal_{metric}_total{{server=\"rehearsal-{server}\",kind=\"{kind}\"}}");
            wire.shared.server.metric(&series)
        })
        .collect()
}

/// All sources of a region's location agree, and say that it is a rehearsal.
#[test]
fn regions_look_like_those_of_a_cluster() {
    let mut wire = rehearse(&["rehearsal.servers=3"]);
    wire.create("t", &["b", "c", "d", "e", "f"]);
    let hosts = hosts(&mut wire, "t");
    let expected = [1, 2, 3, 1, 2, 3].map(|server| format!("rehearsal-{server}"));
    assert_eq!(hosts, expected);

    let status = wire.ok(&own::BasaltServerStatus {});
    let servers = status.rehearsal_servers.expect("it is a rehearsal");
    let locations = wire.ok(&two::GetAllRegionLocations { table: bytes("t") });
    let full: BTreeSet<_> = locations
        .iter()
        .map(|location| {
            let name = &location.server_name;
            let (port, start_code) = (name.port.unwrap_or(0), name.start_code.unwrap_or(0));
            assert_eq!(start_code, status.started_ms);
            format!("{},{port},{start_code}", name.host_name)
        })
        .collect();
    assert_eq!(servers, full.into_iter().collect::<Vec<_>>());

    for (row, host) in [("a", &hosts[0]), ("bx", &hosts[1]), ("z", &hosts[5])] {
        let call = two::GetRegionLocation {
            table: bytes("t"),
            row: bytes(row),
            reload: Some(false),
        };
        assert_eq!(&wire.ok(&call).server_name.host_name, host);
    }
    let regions = wire.ok(&one::GetTableRegions {
        table_name: some("t"),
    });
    let of_one = |region: &thrift1::TRegionInfo| text(region.server_name.as_deref().unwrap_or_default());
    assert_eq!(regions.iter().map(of_one).collect::<Vec<_>>(), hosts);
    let info = wire.ok(&one::GetRegionInfo { row: some("t,b,") });
    assert_eq!(of_one(&info), hosts[0], "the region before that key");
    let port = wire.shared.server.thrift.port();
    let addresses: Vec<_> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
    assert_eq!(in_meta(&mut wire, "t", "server"), addresses);
    let start_codes: BTreeSet<_> = in_meta(&mut wire, "t", "serverstartcode").into_iter().collect();
    assert_eq!(start_codes.len(), 1);
    assert!(
        in_meta(&mut wire, "t", "sn")
            .iter()
            .all(|name| servers.contains(name))
    );

    let page = wire.shared.server.http_get("/");
    assert!(
        page.contains(
            "a rehearsal: this one server presents itself as 3 virtual servers, each with no limit"
        )
    );
}

#[test]
fn regions_are_moved_and_balanced() {
    let mut wire = rehearse(&["rehearsal.servers=3"]);
    wire.create("t", &["b", "c", "d", "e", "f"]);
    let (regions, servers) = (
        names(&mut wire, "t"),
        wire.ok(&own::BasaltServerStatus {}).rehearsal_servers,
    );
    let servers = servers.expect("it is a rehearsal");
    let move_to = |region: &Bytes, server: Option<&str>| own::BasaltMove {
        region_name: region.clone(),
        server_name: server.map(str::to_owned),
    };
    let numbers = |wire: &mut Wire| -> String {
        let hosts = hosts(wire, "t");
        hosts
            .iter()
            .map(|host| host.trim_start_matches("rehearsal-"))
            .collect()
    };
    wire.ok(&move_to(&regions[0], Some(&servers[2])));
    assert_eq!(numbers(&mut wire), "323123");
    wire.ok(&move_to(&regions[3], Some("rehearsal-3")));
    assert_eq!(numbers(&mut wire), "323323");
    assert_eq!(
        in_meta(&mut wire, "t", "server")[3].split(':').next(),
        Some("rehearsal-3")
    );
    wire.ok(&move_to(&regions[5], None));
    assert_eq!(numbers(&mut wire), "323321", "the first had none");
    assert_eq!(wire.ok(&own::BasaltBalance {}), 1);
    assert_eq!(wire.ok(&own::BasaltBalance {}), 0);
    let mut balanced = hosts(&mut wire, "t");
    balanced.sort();
    assert_eq!(
        balanced,
        [1, 1, 2, 2, 3, 3].map(|server| format!("rehearsal-{server}"))
    );

    for row in ["ba", "bz"] {
        wire.put("t", row, "f:q", "v", None);
    }
    let before = hosts(&mut wire, "t");
    wire.ok(&own::BasaltSplit {
        table_or_region: regions[1].clone(),
        split_key: some("bm"),
    });
    let after = hosts(&mut wire, "t");
    assert_eq!((after.len(), &after[1], &after[2]), (7, &before[1], &before[1]));

    wire.refused(
        &move_to(&regions[0], Some("rehearsal-4")),
        &["no server is called", "rehearsal-4"],
    );
    wire.refused(&move_to(&bytes("t,x,1.0."), None), &["no region is called"]);
    let mut plain = rehearse(&[]);
    plain.create("t", &[]);
    let region = names(&mut plain, "t").remove(0);
    assert_eq!(hosts(&mut plain, "t"), ["127.0.0.1"]);
    let why = ["there is one server", "rehearsal.servers", "Some(false)"];
    plain.refused(&move_to(&region, None), &why);
    plain.refused(&own::BasaltBalance {}, &why);
    let region_name = region;
    plain.refused(
        &own::BasaltUnassign {
            region_name: region_name.clone(),
        },
        &why,
    );
    plain.refused(&own::BasaltAssign { region_name }, &why);
}

/// A region that no server has takes no data calls, in either interface, and every other region does.
#[test]
fn a_region_without_server_answers_as_in_hbase() {
    let mut wire = rehearse(&["rehearsal.servers=2"]);
    wire.create("t", &["b", "c"]);
    wire.ok(&put_all("t", ["a", "b", "c"].map(str::to_owned)));
    let region_name = names(&mut wire, "t").remove(1);
    let open = two::OpenScanner {
        table: bytes("t"),
        tscan: thrift2::TScan::default(),
    };
    let scanner_id = wire.ok(&open);
    wire.ok(&own::BasaltUnassign {
        region_name: region_name.clone(),
    });
    assert_eq!(in_meta(&mut wire, "t", "state"), ["OPEN", "CLOSED", "OPEN"]);

    let words = ["t,b,", "is not online on rehearsal-2,", "Some(true)"];
    wire.refused(&get("t", "b"), &words);
    wire.refused(&put_all("t", ["a", "b"].map(str::to_owned)), &words);
    wire.refused(
        &two::DeleteSingle {
            table: bytes("t"),
            tdelete: delete("b", thrift2::TDeleteType::DELETE_COLUMNS, &[]),
        },
        &words,
    );
    wire.refused(
        &two::CheckAndPut {
            table: bytes("t"),
            row: bytes("b"),
            family: bytes("f"),
            qualifier: bytes("q"),
            value: some("value"),
            tput: put("b", "f:q", "2", None),
        },
        &words,
    );
    wire.refused(
        &one::AtomicIncrement {
            table_name: some("t"),
            row: some("b"),
            column: some("f:n"),
            value: Some(1),
        },
        &[
            "org.apache.hadoop.hbase.NotServingRegionException: ",
            "is not online on rehearsal-2,",
        ],
    );
    let from = |row: &str| thrift2::TScan {
        start_row: some(row),
        ..Default::default()
    };
    wire.refused(&scan("t", from("b")), &words);
    // Clients would take a short list for the end of the scan.
    wire.refused(&scan("t", from("")), &words);
    assert_eq!(wire.scan("t", from("c")), ["c"]);
    assert_eq!(wire.row("t", "a").len(), 1);

    // A scanner comes up to it, waits for it, and goes on.
    let fetch = two::GetScannerRows {
        scanner_id,
        num_rows: 10,
    };
    let keys =
        |results: Vec<thrift2::TResult>| -> Vec<String> { results.iter().map(crate::client::key).collect() };
    assert_eq!(keys(wire.ok(&fetch)), ["a"]);
    wire.refused(&fetch, &words);
    wire.ok(&own::BasaltAssign { region_name });
    assert_eq!(keys(wire.ok(&fetch)), ["b", "c"]);
    assert_eq!(in_meta(&mut wire, "t", "state"), ["OPEN"; 3]);
    wire.ok(&put_all("t", ["b".to_owned()]));
    assert_eq!(wire.rows("t").len(), 3);
}

/// Each call is charged to the servers of its rows: a batch in parts, a read with the bytes it
/// returned.
#[test]
fn calls_are_charged_to_the_servers_of_their_rows() {
    let mut wire = rehearse(&["rehearsal.servers=3", "rehearsal.requests_per_second=1000000"]);
    wire.create("t", &["b", "c"]);
    let mut writes = vec![0; 3];
    let mut reads = vec![0; 3];
    let check = |wire: &Wire, writes: &[u64], reads: &[u64]| {
        assert_eq!(charged(wire, "requests", "write", 3), writes, "writes");
        assert_eq!(charged(wire, "requests", "read", 3), reads, "reads");
    };
    check(&wire, &writes, &reads);
    wire.ok(&put_all(
        "t",
        ["a1", "a2", "a3", "b1", "c1", "c2"].map(str::to_owned),
    ));
    writes = vec![3, 1, 2];
    check(&wire, &writes, &reads);
    // Each put is a cell of 20 + 2 + 1 + 1 + 5 bytes.
    assert_eq!(charged(&wire, "bytes", "write", 3), [87, 29, 58]);

    wire.ok(&two::GetMultiple {
        table: bytes("t"),
        tgets: ["a1", "nobody", "c1", "c2"]
            .map(|row| get("t", row).tget)
            .to_vec(),
    });
    reads = vec![1, 0, 3];
    check(&wire, &writes, &reads);
    assert_eq!(charged(&wire, "bytes", "read", 3), [29, 0, 58]);

    // One fetch that begins on the first server and goes on to the others.
    assert_eq!(wire.scan("t", thrift2::TScan::default()).len(), 6);
    reads = vec![2, 1, 4];
    check(&wire, &writes, &reads);
    assert_eq!(charged(&wire, "bytes", "read", 3), [29 + 87, 29, 58 + 58]);

    // A session is charged by the fetch: where it begins, which is where the last one ended, and where it
    // comes to.
    let scanner_id = wire.ok(&two::OpenScanner {
        table: bytes("t"),
        tscan: thrift2::TScan::default(),
    });
    for expected in [3, 1, 2] {
        let fetch = two::GetScannerRows {
            scanner_id,
            num_rows: expected,
        };
        assert_eq!(wire.ok(&fetch).len(), expected as usize);
    }
    let reversed = thrift2::TScan {
        reversed: Some(true),
        ..Default::default()
    };
    let last = two::GetScannerResults {
        num_rows: 1,
        ..scan("t", reversed)
    };
    wire.ok(&last);
    let now = charged(&wire, "requests", "read", 3);
    assert_eq!(now, [2 + 1 + 1, 1 + 1 + 1, 4 + 1 + 1]);

    // A call that reads and writes counts as both.
    wire.ok(&one::AtomicIncrement {
        table_name: some("t"),
        row: some("b9"),
        column: some("f:n"),
        value: Some(1),
    });
    wire.ok(&two::CheckAndPut {
        table: bytes("t"),
        row: bytes("b1"),
        family: bytes("f"),
        qualifier: bytes("q"),
        value: some("value"),
        tput: put("b1", "f:q", "2", None),
    });
    let (before, now) = (now, charged(&wire, "requests", "read", 3));
    assert_eq!(now, [before[0], before[1] + 2, before[2]]);
    assert_eq!(charged(&wire, "requests", "write", 3), [3, 3, 2]);
    // System tables are under no limit.
    assert!(!in_meta(&mut wire, "t", "server").is_empty());
    assert_eq!(charged(&wire, "requests", "read", 3), now);
}

/// A batch of more rows than a server may take in a second passes once; from then on only the other server
/// serves.
#[test]
fn a_server_that_owes_refuses_and_others_do_not() {
    let mut wire = rehearse(&[
        "rehearsal.servers=2",
        "rehearsal.write_requests_per_second=1",
        "quota.max_wait_ms=0",
    ]);
    wire.create("t", &["b"]);
    let rows = |first: char| (0..1000).map(move |number| format!("{first}{number}"));
    wire.ok(&put_all("t", rows('a')));
    let words = [
        "number of write requests exceeded - wait ",
        "rehearsal-1 has the limit 1req/sec of WRITE_NUMBER",
        "quota.max_wait_ms is 0",
        "Some(true)",
    ];
    wire.refused(&put_all("t", ["a".to_owned()]), &words);
    wire.refused(&put_all("t", ["b", "a"].map(str::to_owned)), &words);
    wire.refused(
        &one::MutateRow {
            table_name: some("t"),
            row: some("a"),
            mutations: Some(vec![thrift1::Mutation {
                column: some("f:q"),
                value: some("v"),
                ..Default::default()
            }]),
            attributes: None,
        },
        &["org.apache.hadoop.hbase.quotas.RpcThrottlingException: number of write requests exceeded - wait "],
    );
    assert_eq!(wire.row("t", "a1").len(), 1, "reads have no limit");
    wire.ok(&put_all("t", rows('b')));
    let server = &wire.shared.server;
    assert_eq!(server.metric("basalt_throttled_calls_total{by=\"rehearsal\"}"), 3);
    assert_eq!(
        charged(&wire, "requests", "write", 2),
        [1000, 1000],
        "what was refused is not charged"
    );
}
