//! The slow log as its two calls see it. The server counts every call as slow, and few bytes as large.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use basalt_idl::thrift1::args as one;
use basalt_idl::thrift2::{self, TFilterByOperator, TLogType, args as two};

use crate::client::{Wire, bytes, put, shut_down, some, start};

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before 292278994")
}

fn server(wire: &Wire) -> BTreeSet<thrift2::TServerName> {
    let name = thrift2::TServerName {
        host_name: "any name of the machine".into(),
        port: Some(i32::from(wire.shared.server.thrift.port())),
        start_code: None,
    };
    [name].into()
}

fn records(wire: &mut Wire, filter: thrift2::TLogQueryFilter) -> Vec<thrift2::TOnlineLogRecord> {
    let server_names = Some(server(wire));
    wire.ok(&two::GetSlowLogResponses {
        server_names,
        log_query_filter: Some(filter),
    })
}

fn methods(wire: &mut Wire, filter: thrift2::TLogQueryFilter) -> String {
    let records = records(wire, filter);
    let names: Vec<&str> = records.iter().map(|record| &record.method_name[..]).collect();
    names.join(" ")
}

/// A call that fails and is slow has one number in both lines of the log and on the page; a call that is
/// neither has no line.
#[test]
fn lines_of_one_call_have_one_number() {
    let mut wire = Wire::to(start(&[
        "log.json=true",
        "log.filter=basalt=debug,info",
        "slow_log.threshold_ms=0",
    ]));
    wire.create("told", &[]);
    wire.refused(
        &two::Get {
            table: bytes("missing"),
            tget: thrift2::TGet {
                row: bytes("r"),
                ..Default::default()
            },
        },
        &["missing"],
    );
    let page = wire.shared.server.http_get("/slow");
    let shared = wire.shared.clone();
    drop(wire);
    let log = shut_down(shared);
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let find = |message: &str, method: &str| {
        let found: Vec<_> = lines
            .iter()
            .map(|line| &line["fields"])
            .filter(|fields| fields["message"] == message && fields["method"] == method)
            .collect();
        assert!(found.len() < 2, "{found:?}");
        found.first().map(|fields| (*fields).clone())
    };
    let failed = find("call failed", "get").expect("a line");
    let slow = find("call is in the slow log", "get").expect("a line");
    assert_eq!(failed["exception"], "TableNotFoundException");
    let number = failed["request"].as_u64().expect("a number");
    assert_eq!(slow["request"].as_u64(), Some(number));
    assert!(
        page.contains(&format!("<td class=\"n\">{number}</td>")),
        "{number} is not in\n{page}"
    );
    let created = find("call is in the slow log", "createTable").expect("a line");
    assert_ne!(created["request"], failed["request"]);
    assert_eq!(find("call failed", "createTable"), None);
}

#[test]
fn slow_calls_and_large_answers_are_told() {
    let began = now_ms();
    let mut wire = Wire::to(start(&["slow_log.threshold_ms=0", "slow_log.large_bytes=7000"]));
    wire.create("slow", &["m"]);
    let tputs = ["a", "z"].map(|row| put(row, "f:q", &"v".repeat(4_000), None));
    wire.ok(&two::PutMultiple {
        table: bytes("slow"),
        tputs: tputs.to_vec(),
    });
    let scanner_id = wire.ok(&two::OpenScanner {
        table: bytes("slow"),
        tscan: thrift2::TScan {
            start_row: some("n"),
            ..Default::default()
        },
    });
    wire.ok(&two::GetScannerRows {
        scanner_id,
        num_rows: 9,
    });
    wire.ok(&one::GetRows {
        table_name: some("slow"),
        rows: Some(["z", "a"].map(bytes).to_vec()),
        attributes: None,
    });
    let all = records(&mut wire, thrift2::TLogQueryFilter::default());
    let names: Vec<&str> = all.iter().map(|record| &record.method_name[..]).collect();
    assert_eq!(
        names,
        [
            "getRows",
            "getScannerRows",
            "openScanner",
            "putMultiple",
            "createTable"
        ],
        "newest first"
    );
    let regions = wire.ok(&one::GetTableRegions {
        table_name: some("slow"),
    });
    let region = |index: usize| {
        let name = regions[index].name.as_deref().unwrap_or_default();
        Some(String::from_utf8_lossy(name).into_owned())
    };
    let client = wire.socket.local_addr().expect("connected").to_string();
    for record in &all {
        assert_eq!(
            (&record.client_address, &record.user_name[..], record.queue_time),
            (&client, "", 0)
        );
        assert!((began..=now_ms()).contains(&record.start_time), "{record:?}");
        assert!((0..60_000).contains(&record.processing_time) && record.response_size > 0);
        assert!(record.call_details.contains(&record.method_name));
    }
    let [rows, fetch, open, puts, _] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!((rows.multi_gets_count, rows.multi_mutations_count), (2, 0));
    assert_eq!((puts.multi_gets_count, puts.multi_mutations_count), (0, 2));
    assert_eq!(
        (&rows.region_name, &open.region_name, &puts.region_name),
        (&region(1), &region(1), &region(0)),
        "that of the first row"
    );
    assert_eq!(rows.param, "rows=[z, a]");
    assert_eq!(rows.call_details, "getRows(Hbase)");
    assert!(rows.response_size > 8_000 && open.response_size < 100);
    assert_eq!(fetch.region_name, region(1), "that of its first row");
    assert_eq!(
        fetch.param,
        format!("startRow=n, stopRow=, scanner={scanner_id}, rows=9")
    );

    let filter = || thrift2::TLogQueryFilter::default();
    let large = thrift2::TLogQueryFilter {
        log_type: TLogType::LARGE_LOG,
        ..filter()
    };
    assert_eq!(methods(&mut wire, large), "getRows");
    let newest = thrift2::TLogQueryFilter { limit: 1, ..filter() };
    assert_eq!(methods(&mut wire, newest), "getSlowLogResponses");
    let of_table = thrift2::TLogQueryFilter {
        table_name: Some("default:slow".into()),
        ..filter()
    };
    assert_eq!(
        methods(&mut wire, of_table.clone()),
        "getTableRegions getRows getScannerRows openScanner putMultiple createTable"
    );
    let both = |filter_by_operator| thrift2::TLogQueryFilter {
        region_name: region(1),
        client_address: Some("10.0.0.1".into()),
        filter_by_operator,
        ..filter()
    };
    assert_eq!(
        methods(&mut wire, both(TFilterByOperator::OR)),
        "getRows getScannerRows openScanner"
    );
    assert_eq!(methods(&mut wire, both(TFilterByOperator::AND)), "");
    let by_address = thrift2::TLogQueryFilter {
        client_address: Some(wire.socket.local_addr().expect("connected").ip().to_string()),
        filter_by_operator: TFilterByOperator::AND,
        ..of_table
    };
    assert!(methods(&mut wire, by_address).ends_with("createTable"));
    let of_user = thrift2::TLogQueryFilter {
        user_name: Some("bob".into()),
        ..filter()
    };
    assert_eq!(methods(&mut wire, of_user), "", "calls are not authenticated");
    let negative = two::GetSlowLogResponses {
        server_names: Some(server(&wire)),
        log_query_filter: Some(thrift2::TLogQueryFilter {
            limit: -1,
            ..filter()
        }),
    };
    wire.refused(&negative, &["limit", "-1"]);

    let clear = |server_names| two::ClearSlowLogResponses { server_names };
    assert!(wire.ok(&clear(None)).is_empty(), "no server was named");
    assert!(!records(&mut wire, filter()).is_empty());
    let server_names = Some(server(&wire));
    assert_eq!(wire.ok(&clear(server_names)), [true]);
    assert_eq!(methods(&mut wire, filter()), "clearSlowLogResponses");
    let stranger = thrift2::TServerName {
        host_name: "127.0.0.1".into(),
        port: Some(1),
        start_code: Some(0),
    };
    wire.refused(&clear(Some([stranger].into())), &["no server 127.0.0.1,1,0"]);
    let counted = wire.shared.server.http_get("/metrics");
    assert!(
        counted.contains("basalt_slow_calls_total{kind=\"large\"} 1\n"),
        "{counted}"
    );
}

/// By default the log is on and one second is slow: an ordinary call is not in it.
#[test]
fn ordinary_calls_are_not_in_the_slow_log() {
    let mut wire = Wire::connect();
    wire.create("ordinary", &[]);
    assert_eq!(methods(&mut wire, thrift2::TLogQueryFilter::default()), "");
    let mut off = Wire::to(start(&["slow_log.enabled=false", "slow_log.threshold_ms=0"]));
    off.create("ordinary", &[]);
    assert_eq!(methods(&mut off, thrift2::TLogQueryFilter::default()), "");
    let server_names = Some(server(&off));
    assert_eq!(off.ok(&two::ClearSlowLogResponses { server_names }), [false]);
}

/// Goal: a fetch says which scan it is part of, with the arguments of the opening, the region that it has
/// reached, and rows read and returned; also in the log, and on the page, where requests of one shape are a
/// group.
#[test]
fn a_fetch_has_the_arguments_of_its_scan() {
    let mut wire = Wire::to(start(&["log.json=true", "slow_log.threshold_ms=0"]));
    wire.create("fetched", &["m"]);
    for row in ["a1", "a2", "b1", "n1", "n2", "n3"] {
        wire.put("fetched", row, "f:q", row, None);
    }
    let mut ids = Vec::new();
    for (start_row, prefix) in [("b", "n"), ("a", "b")] {
        let scanner_id = wire.ok(&two::OpenScanner {
            table: bytes("fetched"),
            tscan: thrift2::TScan {
                start_row: some(start_row),
                stop_row: some("n3"),
                columns: Some(vec![thrift2::TColumn {
                    family: bytes("f"),
                    qualifier: some("q"),
                    timestamp: None,
                }]),
                filter_string: Some(bytes(&format!("PrefixFilter('{prefix}')"))),
                ..Default::default()
            },
        });
        wire.ok(&two::GetScannerRows {
            scanner_id,
            num_rows: 2,
        });
        ids.push(scanner_id);
    }
    let all = records(&mut wire, thrift2::TLogQueryFilter::default());
    let fetches: Vec<_> = all
        .iter()
        .filter(|record| record.method_name == "getScannerRows")
        .collect();
    assert_eq!(fetches.len(), 2);
    let (second, first) = (fetches[0], fetches[1]);
    assert_eq!(
        first.param,
        format!(
            "startRow=b, stopRow=n3, columns=[f:q], filter=PrefixFilter('n'), scanner={}, rows=2",
            ids[0]
        )
    );
    let region = |record: &thrift2::TOnlineLogRecord| record.region_name.clone().expect("a region");
    assert!(
        region(first).starts_with("fetched,m,"),
        "its first result is n1: {}",
        region(first)
    );
    assert!(region(second).starts_with("fetched,,"), "{}", region(second));

    let page = wire.shared.server.http_get("/slow");
    let shape = "startRow=?, stopRow=?, columns=[f:q], filter=PrefixFilter(?)";
    assert!(
        page.contains(&format!("<code class=\"long\">{shape}</code>")),
        "{page}"
    );
    let group = page
        .split("<tr>")
        .find(|row| row.contains("getScannerRows") && row.contains(shape));
    let group = group.expect("a group");
    assert!(group.contains("<td class=\"n\">2</td>"), "two requests: {group}");
    let link = group
        .split("href=\"")
        .find(|link| link.starts_with("/slow?"))
        .expect("a link");
    let link = link.split('"').next().expect("its address").replace("&amp;", "&");
    let chosen = wire.shared.server.http_get(&link);
    assert!(chosen.contains(&format!("scanner={}", ids[0])), "{chosen}");
    assert!(!chosen.contains("openScanner"), "{chosen}");

    let shared = wire.shared.clone();
    drop(wire);
    let log = shut_down(shared);
    let line = log
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|line| line["fields"].clone())
        .find(|fields| fields["method"] == "getScannerRows" && fields["message"] == "call is in the slow log")
        .expect("a line");
    // The prefix filter looks at b1 and at the rows with n.
    assert_eq!(
        (line["rows_looked_at"].as_u64(), line["rows_returned"].as_u64()),
        (Some(3), Some(2)),
        "{line}"
    );
    assert_eq!(line["arguments"].as_str(), Some(&first.param[..]));
    assert_eq!(line["table"], "fetched");
    assert!(
        region(first).contains(line["region"].as_str().expect("a region")),
        "{line}"
    );
    assert!(
        line["waited"].is_string() && line["disk_bytes"].is_u64(),
        "{line}"
    );
}
