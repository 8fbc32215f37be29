//! `--ephemeral`: the line on standard output, the remains after its end, and the calls for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use basalt_client::admin::Admin;
use basalt_client::{Client, Delete, FamilySchema, Get, Namespace, Put, TableSchema};
use basalt_idl::admin::args as own;
use basalt_test_support::{Server, binary, signal};

fn names(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}

async fn client(server: &Server) -> Client {
    Client::connect(&server.thrift.to_string())
        .await
        .expect("a connection")
}

async fn create(client: &Client, table: &str) {
    let schema = TableSchema::new(table)
        .expect("a name")
        .family(FamilySchema::new("f"));
    client.create_table(schema).await.expect("created");
    let table = client.table(table).expect("a name");
    table
        .put(Put::new("row").cell("f", "q", "v"))
        .await
        .expect("written");
    table
        .get(Get::new("row"))
        .await
        .expect("no error")
        .expect("a row");
}

/// Goal: the line says where the server is, and a clean stop leaves nothing.
#[test]
fn an_ephemeral_server_leaves_nothing() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, line) = Server::start_ephemeral(below.path(), &[]);
    let data_dir = Path::new(line["data_dir"].as_str().expect("text"));
    assert!(
        data_dir.starts_with(below.path()) && data_dir.join("CURRENT").exists(),
        "{line}"
    );
    assert_eq!(line["pid"], server.pid());
    assert!(
        server.thrift.ip().is_loopback() && server.thrift.port() != 9090,
        "{line}"
    );
    run(async { create(&client(&server).await, "t").await });
    assert_eq!(server.http_get("/readyz"), "ready\n");
    server.stop();
    assert_eq!(names(below.path()), [] as [PathBuf; 0]);
}

/// Goal: the next start removes the remains of a killed server, and a running one keeps its
/// directory.
#[test]
fn the_directory_of_a_killed_server_is_removed_by_the_next_one() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (killed, _) = Server::start_ephemeral(below.path(), &[]);
    let (running, _) = Server::start_ephemeral(below.path(), &[]);
    killed.kill();
    assert_eq!(names(below.path()).len(), 2);
    let (next, _) = Server::start_ephemeral(below.path(), &[]);
    assert_eq!(names(below.path()).len(), 2, "the killed one's is gone");
    run(async { create(&client(&running).await, "t").await });
    next.stop();
    running.stop();
    assert_eq!(names(below.path()), [] as [PathBuf; 0]);
}

/// Goal: a start that fails leaves nothing, and `--data-dir` is refused beside `--ephemeral`.
#[test]
fn a_failed_start_leaves_nothing() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    for (arguments, code, word) in [
        (["--listen", taken.as_str()], 1, "another process has it"),
        (["--set", "wal.sync=maybe"], 1, "maybe"),
        (["--data-dir", "d"], 2, "cannot be used with"),
    ] {
        let output = Command::new(binary("basalt"))
            .args(["serve", "--ephemeral"])
            .args(arguments)
            .env("TMPDIR", below.path())
            .output()
            .expect("the binary was built");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(word), "{word:?} is not in\n{text}");
        assert_eq!(names(below.path()), [] as [PathBuf; 0], "{arguments:?}");
    }
}

/// Goal: a command finds the server by its environment and standard output is its own; its exit code is the
/// server's, and nothing stays.
#[test]
fn a_command_runs_while_the_server_serves() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let run = |words: &[&str]| {
        let mut command = Command::new(binary("basalt"));
        command
            .args(["--ephemeral", "--"])
            .args(words)
            .env("TMPDIR", below.path());
        command.output().expect("the binary was built")
    };
    let shell = binary("basalt-shell");
    let shell = shell.to_str().expect("a plain path");
    let output = run(&[
        shell,
        "-e",
        "create 't', 'f'",
        "-e",
        "put 't', 'r', 'f:q', 'here'",
        "-e",
        "get 't', 'r'",
    ]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        printed.contains("value=here") && !printed.contains("data_dir"),
        "{printed}"
    );
    assert_eq!(
        run(&["sh", "-c", "test -n \"$BASALT_HTTP\" && exit 9"])
            .status
            .code(),
        Some(9)
    );
    let missing = run(&["/there/is/no/such"]);
    let message = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(1), "{message}");
    assert!(message.contains("/there/is/no/such cannot be run"), "{message}");
    assert_eq!(names(below.path()), [] as [PathBuf; 0]);
}

/// Goal: a stop of the server ends the command, and the listen file is there while calls are accepted.
#[test]
fn the_listen_file_is_there_while_the_server_serves() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let file = below.path().join("address.json");
    let mut server = Command::new(binary("basalt"))
        .args(["serve", "--ephemeral", "--listen-file"])
        .arg(&file)
        .args(["--", "sh", "-c", "echo begun; exec sleep 600"])
        .env("TMPDIR", below.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the binary was built");
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(server.stdout.take().expect("it is piped")),
        &mut line,
    )
    .expect("text");
    assert_eq!(line, "begun\n");
    let text = std::fs::read_to_string(&file).expect("the file is there before the command begins");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["pid"], server.id());
    let listen = json["listen"].as_str().expect("text").to_owned();
    run(async {
        let client = Client::connect(&listen).await.expect("a connection");
        create(&client, "t").await;
    });
    signal(server.id(), "TERM");
    let status = server.wait().expect("it was started here");
    assert_eq!(status.code(), Some(128 + 15), "the command ended by SIGTERM");
    assert_eq!(names(below.path()), [] as [PathBuf; 0]);
}

/// Goal: data that is loaded once is there again after each reset to the template, and nothing else is.
#[test]
fn a_reset_to_the_template_brings_the_data_back() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(below.path(), &[]);
    let (status, body) = server.http_post("/test/reset", "{\"template\": true}");
    assert!(
        status == 400 && body.contains("POST /test/template"),
        "{status} {body}"
    );
    run(async {
        let client = client(&server).await;
        let namespace = |name: &str| Namespace {
            name: name.to_owned(),
            configuration: std::collections::BTreeMap::new(),
        };
        client.create_namespace(namespace("n")).await.expect("created");
        create(&client, "n:t").await;
        create(&client, "u").await;
        assert_eq!(server.http_post("/test/template", "").0, 200);
        for _ in 0..3 {
            let table = client.table("u").expect("a name");
            table.delete(Delete::row("row")).await.expect("deleted");
            table
                .put(Put::new("more").cell("f", "q", "v"))
                .await
                .expect("written");
            client
                .create_namespace(namespace("other"))
                .await
                .expect("created");
            create(&client, "other:t").await;
            Admin::new(&client)
                .snapshot("u", "s", true, 0)
                .await
                .expect("taken");
            client.disable_table("n:t").await.expect("disabled");
            client.drop_table("n:t").await.expect("dropped");
            let (status, body) = server.http_post("/test/reset", "{\"template\": true}");
            assert_eq!(status, 200, "{body}");
            for name in ["n:t", "u"] {
                let table = client.table(name).expect("a name");
                assert!(
                    table.get(Get::new("row")).await.expect("no error").is_some(),
                    "{name}"
                );
                assert_eq!(table.get(Get::new("more")).await.expect("no error"), None);
            }
            assert_eq!(Admin::new(&client).status().await.expect("answered").tables, 2);
        }
    });
    server.http_post("/test/reset", "");
    assert_eq!(
        server.http_post("/test/reset", "{\"template\": true}").0,
        400,
        "the template is gone"
    );
    server.stop();
}

/// Goal: a reset leaves the state of a new server, again and again.
#[test]
fn a_reset_leaves_an_empty_server() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(below.path(), &[]);
    run(async {
        let client = client(&server).await;
        for _ in 0..5 {
            client
                .create_namespace(Namespace {
                    name: "n".to_owned(),
                    configuration: std::collections::BTreeMap::new(),
                })
                .await
                .expect("created");
            for number in 0..9 {
                create(&client, &format!("t{number}")).await;
            }
            create(&client, "n:t").await;
            Admin::new(&client)
                .snapshot("t0", "s", true, 0)
                .await
                .expect("taken");
            client
                .call(&own::BasaltReset { keep_clock: false })
                .await
                .expect("reset");
            assert_eq!(Admin::new(&client).status().await.expect("answered").tables, 0);
            assert!(
                Admin::new(&client)
                    .snapshots(None, None)
                    .await
                    .expect("answered")
                    .is_empty()
            );
        }
        for table in ["t0", "t1"] {
            create(&client, table).await;
        }
    });
    let (status, body) = server.http_post("/test/reset", "");
    let removed: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (status, &removed["tables"], &removed["namespaces"]),
        (200, &2.into(), &0.into())
    );
    server.stop();
}

/// Goal: cells expire when the clock is moved, without waiting.
#[test]
fn the_clock_is_moved() {
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(below.path(), &[]);
    run(async {
        let client = client(&server).await;
        let schema = TableSchema::new("t").expect("a name");
        let schema = schema.family(FamilySchema::new("f").ttl_seconds(3_600));
        client.create_table(schema).await.expect("created");
        let table = client.table("t").expect("a name");
        table
            .put(Put::new("row").cell("f", "q", "v"))
            .await
            .expect("written");
        let is_there = async || table.get(Get::new("row")).await.expect("no error").is_some();
        let before = client
            .call(&own::BasaltAdvanceClock { ms: 0 })
            .await
            .expect("answered");
        let now = Admin::new(&client).advance_clock(1_800_000).await.expect("moved");
        assert!(now >= before + 1_800_000 && is_there().await);
        // A cell that is exactly as old as its TTL is still there.
        let (status, body) = server.http_post("/test/clock", "{\"advance_ms\": 1801000}");
        assert!(status == 200 && body.contains("now_ms"), "{status} {body}");
        assert!(!is_there().await);
        table
            .put(Put::new("row").cell("f", "q", "v"))
            .await
            .expect("written");
        assert!(is_there().await, "a new cell is as old as the clock says");
        let refused = Admin::new(&client)
            .advance_clock(-1)
            .await
            .expect_err("backwards");
        assert!(refused.to_string().contains("forward only"), "{refused}");
    });
    for body in ["", "{}", "{\"advance_ms\": 1, \"more\": 2}"] {
        let (status, text) = server.http_post("/test/clock", body);
        assert!(status == 400 && text.contains("advance_ms"), "{status} {text}");
    }
    let (status, text) = server.http_post("/test/clock", "{\"advance_ms\": -1}");
    assert!(status == 400 && text.contains("forward only"), "{status} {text}");
    server.stop();
}

/// Goal: a reset sets a moved clock back, unless it is to be kept; assigned timestamps follow it. Method: the
/// timestamps of cells whose row was deleted before, which must not be those of the time before the reset.
#[test]
fn a_reset_sets_a_moved_clock_back_unless_it_is_kept() {
    const DAY_MS: i64 = 24 * 3_600_000;
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(below.path(), &[]);
    run(async {
        let client = client(&server).await;
        let now = async || {
            client
                .call(&own::BasaltAdvanceClock { ms: 0 })
                .await
                .expect("answered")
        };
        // The timestamp of a put after a delete of its row.
        let stamp = async || {
            create(&client, "t").await;
            let table = client.table("t").expect("a name");
            for _ in 0..3 {
                table.delete(Delete::row("row")).await.expect("deleted");
                table
                    .put(Put::new("row").cell("f", "q", "v"))
                    .await
                    .expect("written");
            }
            let row = table
                .get(Get::new("row"))
                .await
                .expect("no error")
                .expect("a row");
            row.cells[0].timestamp
        };
        let before = now().await;
        let reset = async |keep_clock| {
            client
                .call(&own::BasaltReset { keep_clock })
                .await
                .expect("reset");
        };
        Admin::new(&client).advance_clock(DAY_MS).await.expect("moved");
        assert!(stamp().await >= before + DAY_MS);
        reset(true).await;
        assert!(now().await >= before + DAY_MS);
        assert!(stamp().await >= before + DAY_MS);
        reset(false).await;
        assert!(now().await < before + DAY_MS);
        let stamped = stamp().await;
        assert!(
            (before..before + DAY_MS).contains(&stamped),
            "{stamped} from {before} on"
        );
        Admin::new(&client).advance_clock(DAY_MS).await.expect("moved");
    });
    assert_eq!(server.http_get("/readyz"), "ready\n");
    for (body, status, is_kept) in [
        ("{\"keep_clock\": true}", 200, true),
        ("{\"keepClock\": true}", 400, true),
        ("{}", 200, false),
    ] {
        let (found, text) = server.http_post("/test/reset", body);
        assert_eq!(found, status, "{text}");
        let (_, text) = server.http_post("/test/clock", "{\"advance_ms\": 0}");
        let shown: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let ahead_ms = shown["now_ms"].as_u64().expect("a number") as i128 - now_ms() as i128;
        assert_eq!(
            ahead_ms > i128::from(DAY_MS / 2),
            is_kept,
            "{body}: {ahead_ms} ms"
        );
    }
    server.stop();
}

/// The machine's time.
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_millis() as u64
}

/// Goal: a server with data of its own refuses calls for tests.
#[test]
fn other_servers_refuse_calls_for_tests() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    run(async {
        let client = client(&server).await;
        create(&client, "t").await;
        let refused = Admin::new(&client).reset().await.expect_err("not ephemeral");
        assert!(refused.to_string().contains("--ephemeral"), "{refused}");
    });
    let (status, body) = server.http_post("/test/reset", "");
    assert!(status == 403 && body.contains("--ephemeral"), "{status} {body}");
    run(async {
        let table = client(&server).await.table("t").expect("a name");
        table
            .get(Get::new("row"))
            .await
            .expect("no error")
            .expect("a row");
    });
    server.stop();
}
