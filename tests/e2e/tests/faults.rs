//! Faults on demand of an ephemeral server: how they are armed, and how Basalt's own client reacts to
//! them. Native clients are in `native` and `client_native`, HappyBase is in `happybase`.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use basalt_client::admin::{Admin, Fault};
use basalt_client::{
    Client, ConnectionOptions, ErrorKind, FamilySchema, Get, PoolOptions, Put, Row, Scan, Table, TableSchema,
};
use basalt_idl::admin::args as own;
use basalt_idl::call::write_call;
use basalt_idl::thrift2;
use basalt_idl::wire::BinaryWriter;
use basalt_test_support::Server;
use bytes::Bytes;
use serde_json::{Value, json};

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}

/// An ephemeral server, and the folder that it lives in.
fn start() -> (Server, tempfile::TempDir) {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(below.path(), &[]);
    (server, below)
}

async fn client(server: &Server) -> Client {
    Client::connect(&server.thrift.to_string())
        .await
        .expect("a connection")
}

/// The table `t` with the rows `row-00` to `row-09`.
async fn table(client: &Client) -> Table {
    let schema = TableSchema::new("t")
        .expect("a name")
        .family(FamilySchema::new("f"));
    client.create_table(schema).await.expect("created");
    let table = client.table("t").expect("a name");
    let puts = (0..10).map(|number| put(&format!("row-{number:02}")));
    table.put_multiple(puts).await.expect("written");
    table
}

fn put(row: &str) -> Put {
    Put::new(row.to_owned()).cell("f", "q", "v")
}

fn keys(rows: &[Row]) -> Vec<String> {
    let text = |row: &Row| String::from_utf8_lossy(&row.key).into_owned();
    rows.iter().map(text).collect()
}

fn all_rows() -> Vec<String> {
    (0..10).map(|number| format!("row-{number:02}")).collect()
}

/// Arms faults by HTTP, and returns the server's list of armed faults.
fn arm(server: &Server, faults: &Value) -> Value {
    let (status, body) = server.http_post("/test/faults", &json!({ "faults": faults }).to_string());
    assert_eq!(status, 200, "{body}");
    let armed: Value = serde_json::from_str(&body).expect("JSON");
    armed["faults"].clone()
}

fn armed(server: &Server) -> Value {
    let body: Value = serde_json::from_str(&server.http_get("/test/faults")).expect("JSON");
    body["faults"].clone()
}

/// Goal: armed faults can be seen, with the calls that are left, in both interfaces; looking, and
/// calls that do not match, change nothing; an empty list and a reset clear everything.
#[test]
fn faults_are_armed_listed_and_cleared() {
    let (server, _below) = start();
    run(async {
        let client = client(&server).await;
        let table = table(&client).await;
        let three = json!([{ "method": "Get", "fault": "region_too_busy", "calls": 3, "table": "t" }]);
        assert_eq!(arm(&server, &three), three);
        assert_eq!(armed(&server), three);
        table.put(put("row-00")).await.expect("a put is no get");
        table.get(Get::new("row-00")).await.expect_err("busy");
        let left = client.call(&own::BasaltFaults {}).await.expect("answered");
        assert_eq!((&left[0].method[..], left[0].calls), ("Get", 2));
        assert_eq!(armed(&server)[0]["calls"], 2);
        let counted = r#"basalt_test_faults_injected_total{kind="region_too_busy"} 1"#;
        let metrics = server.http_get("/metrics");
        assert!(metrics.lines().any(|line| line == counted), "{metrics}");
        assert_eq!(arm(&server, &json!([])), json!([]));
        table.get(Get::new("row-00")).await.expect("no fault");
        let split = Fault {
            method: "scan".to_owned(),
            fault: "split".to_owned(),
            calls: 1,
            table: Some(Bytes::from("t")),
            split_row: Some(Bytes::from("row-\u{7f}")),
            ..Fault::default()
        };
        let faults = vec![split.clone()];
        let set = client
            .call(&own::BasaltSetFaults { faults })
            .await
            .expect("armed");
        let method = "Scan".to_owned();
        assert_eq!(set, [Fault { method, ..split }]);
        Admin::new(&client).reset().await.expect("reset");
        assert_eq!(armed(&server), json!([]));
    });
    let log = server.stop_and_log();
    let injected = log.matches("a fault that a test asked for is injected").count();
    assert_eq!(injected, 1, "{log}");
}

/// Goal: an invalid fault is refused with the allowed values, and the armed faults stay.
#[test]
fn faults_that_cannot_be_are_refused() {
    let (server, _below) = start();
    let before = json!([{ "method": "Get", "fault": "drop_reply", "calls": 1 }]);
    arm(&server, &before);
    for (fault, words) in [
        (
            json!({ "method": "Gett", "fault": "delay", "calls": 1 }),
            ["delay_ms", "600000"],
        ),
        (
            json!({ "method": "Gett", "fault": "move", "calls": 1 }),
            ["\"Gett\"", "putMultiple"],
        ),
        (
            json!({ "method": "Get", "fault": "late", "calls": 1 }),
            ["\"late\"", "not_serving_region"],
        ),
        (
            json!({ "method": "Get", "fault": "drop_reply", "calls": 0 }),
            ["calls is 0", "1000000"],
        ),
        (
            json!({ "method": "Get", "fault": "drop_reply" }),
            ["faults[1]", "calls"],
        ),
    ] {
        let body = json!({ "faults": [before[0], fault] });
        let (status, text) = server.http_post("/test/faults", &body.to_string());
        let error: Value = serde_json::from_str(&text).expect("JSON");
        let error = error["error"].as_str().expect("a text");
        assert_eq!(status, 400, "{error}");
        assert!(
            words.iter().all(|word| error.contains(word)),
            "{words:?}: {error}"
        );
    }
    run(async {
        let fault = Fault {
            method: "Get".to_owned(),
            fault: "move".to_owned(),
            calls: -1,
            ..Fault::default()
        };
        let admin = Admin::new(&client(&server).await);
        let refused = admin
            .set_faults(vec![fault])
            .await
            .expect_err("not between two results");
        assert!(refused.to_string().contains("between two results"), "{refused}");
        assert_eq!(refused.kind(), ErrorKind::Request);
    });
    assert_eq!(armed(&server), before);
    server.stop();
}

/// Goal: a server with data of its own refuses to arm faults, and has none.
#[test]
fn other_servers_refuse_faults() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let body = r#"{"faults": [{"method": "*", "fault": "drop_connection", "calls": 9}]}"#;
    let (status, text) = server.http_post("/test/faults", body);
    assert!(status == 403 && text.contains("--ephemeral"), "{status} {text}");
    assert!(server.http_get("/test/faults").contains("--ephemeral"));
    run(async {
        let client = client(&server).await;
        for refused in [
            Admin::new(&client).faults().await,
            Admin::new(&client).set_faults(Vec::new()).await,
        ] {
            let refused = refused.expect_err("not ephemeral").to_string();
            assert!(refused.contains("--ephemeral"), "{refused}");
        }
        table(&client).await;
    });
    server.stop();
}

/// Goal: the client says that a busy or moved region is worth another attempt, and that attempt
/// succeeds.
#[test]
fn a_busy_region_can_be_retried() {
    let (server, _below) = start();
    run(async {
        let client = client(&server).await;
        let table = table(&client).await;
        for (fault, class, words) in [
            ("region_too_busy", "RegionTooBusyException", "Over memstore limit"),
            (
                "not_serving_region",
                "NotServingRegionException",
                "is not online on",
            ),
        ] {
            arm(&server, &json!([{ "method": "*", "fault": fault, "calls": 2 }]));
            let read = table.get(Get::new("row-00")).await.expect_err("a fault");
            let written = table.put(put("new")).await.expect_err("a fault");
            for error in [read, written] {
                let text = error.to_string();
                assert_eq!(error.kind(), ErrorKind::Retry, "{text}");
                assert!(text.contains(class) && text.contains(words), "{text}");
            }
            assert!(table.get(Get::new("new")).await.expect("no fault").is_none());
        }
        table.put(put("new")).await.expect("no fault");
    });
    server.stop();
}

/// Goal: the client repeats a read whose connection was lost, and never a write: that has perhaps
/// been applied, as it is where only the reply was lost.
#[test]
fn a_read_survives_a_dropped_connection_and_a_write_says_that_it_does_not_know() {
    let (server, _below) = start();
    run(async {
        let client = client(&server).await;
        let table = table(&client).await;
        for fault in ["drop_connection", "drop_reply"] {
            arm(&server, &json!([{ "method": "get", "fault": fault, "calls": 1 }]));
            table
                .get(Get::new("row-00"))
                .await
                .expect("repeated")
                .expect("a row");
            arm(&server, &json!([{ "method": "Get", "fault": fault, "calls": 2 }]));
            let twice = table.get(Get::new("row-00")).await.expect_err("lost twice");
            assert_eq!(twice.kind(), ErrorKind::Unknown, "{twice}");

            arm(&server, &json!([{ "method": "put", "fault": fault, "calls": 1 }]));
            let lost = table.put(put(fault)).await.expect_err("lost");
            assert_eq!(lost.kind(), ErrorKind::Unknown, "{lost}");
            assert_eq!(armed(&server), json!([]));
            let is_applied = table.exists(Get::new(fault)).await.expect("no fault");
            assert_eq!(is_applied, fault == "drop_reply");
        }
        arm(
            &server,
            &json!([{ "method": "openScanner", "fault": "drop_connection", "calls": 1 }]),
        );
        let rows = table
            .scan(Scan::new())
            .expect("a scan")
            .collect()
            .await
            .expect("opened again");
        assert_eq!(rows.len(), 11);
    });
    server.stop();
}

/// Goal: a delayed call takes that long and then succeeds, unless its client gives up before.
#[test]
fn a_call_is_delayed() {
    let (server, _below) = start();
    run(async {
        let client = client(&server).await;
        let table = table(&client).await;
        arm(
            &server,
            &json!([{ "method": "Get", "fault": "delay", "calls": 1, "delay_ms": 300 }]),
        );
        let began = Instant::now();
        table.get(Get::new("row-00")).await.expect("late").expect("a row");
        assert!(began.elapsed() >= Duration::from_millis(300));

        let impatient = PoolOptions {
            connection: ConnectionOptions {
                call_timeout: Duration::from_millis(50),
                ..ConnectionOptions::default()
            },
            ..PoolOptions::default()
        };
        let impatient = Client::new(server.thrift.to_string(), impatient).expect("valid options");
        arm(
            &server,
            &json!([{ "method": "put", "fault": "delay", "calls": 1, "delay_ms": 60_000 }]),
        );
        let table = impatient.table("t").expect("a name");
        let late = table.put(put("row-00")).await.expect_err("too late");
        assert_eq!(late.kind(), ErrorKind::Unknown, "{late}");
        table.put(put("row-00")).await.expect("no fault");
    });
    server.stop();
}

/// Goal: a scan of a Thrift client returns every row once although its region is split and moved
/// between two fetches, as with HBase's gateway.
#[test]
fn a_scan_survives_a_split_and_a_move() {
    let (server, _below) = start();
    run(async {
        let client = client(&server).await;
        let table = table(&client).await;
        let scan = || {
            table
                .scan(Scan::new().rows_per_fetch(2))
                .expect("a scan")
                .collect()
        };
        arm(
            &server,
            &json!([
                { "method": "Scan", "fault": "split", "calls": 1 },
                { "method": "*", "fault": "split", "calls": 1, "split_row": "row-07" },
                { "method": "getScannerRows", "fault": "move", "calls": 1 },
            ]),
        );
        assert_eq!(keys(&scan().await.expect("survived")), all_rows());
        assert_eq!(armed(&server), json!([]));
        assert_eq!(keys(&scan().await.expect("no fault")), all_rows());
        let regions = Admin::new(&client).regions(Some("t")).await.expect("answered");
        let starts: Vec<_> = regions.iter().map(|region| &region.start_key[..]).collect();
        assert_eq!(starts[2], b"row-07");
        assert!(
            starts[1].starts_with(b"row-0") && starts[1].ends_with(b"\0"),
            "{starts:?}"
        );

        arm(
            &server,
            &json!([{ "method": "Scan", "fault": "split", "calls": 1, "split_row": "row-07" }]),
        );
        scan()
            .await
            .expect("a region begins there, so that it is not split");
        assert_eq!(armed(&server)[0]["calls"], 1);
    });
    server.stop();
}

/// Goal: a scan that reads rows in pieces returns all cells although its region is split between two pieces
/// of a row, also when a region has only that row and cannot be split any more.
#[test]
fn a_scan_of_pieces_survives_splits_until_nothing_is_left_to_split() {
    let (server, _below) = start();
    run(async {
        let client = client(&server).await;
        let schema = TableSchema::new("p").expect("a name");
        client
            .create_table(schema.family(FamilySchema::new("f")))
            .await
            .expect("created");
        let table = client.table("p").expect("a name");
        for row in 0..4 {
            let put = Put::new(format!("r{row}"));
            let put = (0..6).fold(put, |put, cell| put.cell("f", format!("q{cell}"), "v"));
            table.put(put).await.expect("written");
        }
        for round in 0..6 {
            for reversed in [false, true] {
                arm(
                    &server,
                    &json!([{ "method": "Scan", "fault": "split", "calls": 3, "table": "p" }]),
                );
                let scan = Scan::new()
                    .cells_per_piece(2)
                    .rows_per_fetch(1)
                    .reversed(reversed);
                let pieces = table.scan(scan).expect("a scan").collect().await;
                let pieces = pieces.unwrap_or_else(|error| panic!("round {round}, {reversed}: {error}"));
                let cells: usize = pieces.iter().map(|piece| piece.cells.len()).sum();
                assert_eq!(cells, 24, "round {round}, reversed: {reversed}");
            }
        }
        // Each row has a region of its own by now, and those between them are empty.
        let regions = Admin::new(&client).regions(Some("p")).await.expect("answered");
        assert!(regions.len() >= 8, "{} regions", regions.len());
    });
    server.stop();
}

/// Goal: in a rehearsal a region moves to another virtual server under a scan.
#[test]
fn a_region_moves_to_another_virtual_server() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(below.path(), &["rehearsal.servers=3"]);
    run(async {
        let client = client(&server).await;
        let table = table(&client).await;
        let place = async || table.region_of("row-00").await.expect("answered").host;
        let before = place().await;
        arm(
            &server,
            &json!([{ "method": "Scan", "fault": "move", "calls": 1 }]),
        );
        let scan = table.scan(Scan::new().rows_per_fetch(3)).expect("a scan");
        assert_eq!(keys(&scan.collect().await.expect("survived")), all_rows());
        assert_ne!(place().await, before);
    });
    server.stop();
}

/// Goal: a connection of the HTTP port is dropped without an answer, and the next call is answered.
#[test]
fn a_call_over_http_loses_its_connection() {
    let (server, _below) = start();
    run(async {
        table(&client(&server).await).await;
    });
    let mut call = Vec::new();
    let get = thrift2::args::Get {
        table: Bytes::from("t"),
        tget: thrift2::TGet {
            row: Bytes::from("row-00"),
            ..thrift2::TGet::default()
        },
    };
    write_call(&mut BinaryWriter::new(&mut call), 1, &get);
    let answer = || {
        let mut socket = std::net::TcpStream::connect(server.http).expect("the port is open");
        let length = call.len();
        write!(
            socket,
            "POST /thrift2 HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
        )
        .and_then(|()| socket.write_all(&call))
        .expect("the server reads");
        let mut answer = Vec::new();
        // A reset is an end without an answer, too.
        let _ = socket.read_to_end(&mut answer);
        answer
    };
    for fault in ["drop_connection", "drop_reply"] {
        arm(&server, &json!([{ "method": "Get", "fault": fault, "calls": 1 }]));
        assert_eq!(answer(), b"");
        let answered = String::from_utf8_lossy(&answer()).into_owned();
        assert!(answered.contains(" 200 OK\r\n"), "{answered}");
    }
    server.stop();
}
