//! Questions of an operator to the pages in an incident: is it healthy, which row is hot, what is slow, what
//! is wrong with the keys, and what is in a row.

use basalt_client::admin::{Admin, BackgroundWork, Compaction};
use basalt_client::{Client, Delete, FamilySchema, Get, Put, TableSchema};
use basalt_test_support::{Server, until};

use super::client::{Answer, Http};

fn get(server: &Server, path: &str) -> Answer {
    Http::connect(server.http).ask("GET", path, "", b"")
}

fn page(server: &Server, path: &str) -> String {
    let answer = get(server, path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

fn has(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.thrift.to_string())
        .await
        .expect("a connection")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

fn schema(name: &str) -> TableSchema {
    TableSchema::new(name)
        .expect("a name")
        .family(FamilySchema::new("f"))
}

/// Goal: the overview says first whether all is well, and if not what is wrong and what ends it. Method: a
/// fresh server, and one whose flushes are paused.
#[test]
fn the_overview_begins_with_a_verdict() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let text = page(&server, "/");
    let data_dir = dir.path().join("data");
    has(
        &text,
        &[
            "<b>Healthy.</b>",
            "As of 20",
            "<svg viewBox",
            "p50 ",
            "connections",
            "host",
            "commit",
            &data_dir.display().to_string(),
            "No requests in the last seconds",
        ],
    );
    assert!(!text.contains("Rehearsal"), "{text}");
    runtime().block_on(async {
        let admin = Admin::new(&connect(&server).await);
        admin.pause(BackgroundWork::FLUSHES, true).await.expect("paused");
    });
    let text = page(&server, "/");
    has(
        &text,
        &["<b>1 problem.</b>", "Flushes are paused", "flush_switch true"],
    );
    assert!(!text.contains("Healthy"), "{text}");
    // The curves begin with the first step, a few seconds after the start.
    until("the curves have a line", || {
        page(&server, "/").contains("<polyline")
    });
    server.stop();
}

/// Goal: a rehearsal shows the load, the waits and the regions of each virtual server.
#[test]
fn a_rehearsal_shows_its_servers() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let settings = ["rehearsal.servers=2", "rehearsal.requests_per_second=100"];
    let server = Server::start(&dir.path().join("data"), &settings);
    runtime().block_on(async {
        let client = connect(&server).await;
        client.create_table(schema("t")).await.expect("a table");
        let table = client.table("t").expect("a name");
        for batch in 0..3 {
            let put = |row: usize| Put::new(format!("{batch}-{row}")).cell("f", "q", "v");
            table.put_multiple((0..60).map(put)).await.expect("written");
        }
    });
    let text = page(&server, "/");
    has(
        &text,
        &[
            "<h2 id=\"rehearsal\">Rehearsal</h2>",
            "as 2 virtual servers",
            "100req/sec",
            "time held back",
        ],
    );
    let (_, servers) = text.split_once("time held back</th>").expect("a table");
    let held = servers.matches("<td class=\"n\">0ms</td>").count()
        + servers.matches("<td class=\"n\">0s</td>").count();
    assert_eq!(held, 1, "one server had no load and held nothing back: {servers}");
    server.stop();
}

/// Goal: findings in words. Method: writes in the order of their keys over a minute of a clock that the test
/// moves, a hot row, deleted rows, a schema with too many families.
#[test]
fn findings_are_said_in_words() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(dir.path(), &[]);
    let open_column = || -> u64 {
        let data: serde_json::Value =
            serde_json::from_str(&page(&server, "/api/heat?table=ordered")).expect("JSON");
        data["open_ms"].as_u64().expect("a number")
    };
    let runtime = runtime();
    runtime.block_on(async {
        let client = connect(&server).await;
        client.create_table(schema("ordered")).await.expect("a table");
        let table = client.table("ordered").expect("a name");
        let admin = Admin::new(&client);
        for step in 0..6_u64 {
            let put = |row: usize| Put::new(format!("2026-11-29-{step}-{row:04}")).cell("f", "q", "v");
            table.put_multiple((0..500).map(put)).await.expect("written");
            let before = open_column();
            admin.advance_clock(10_000).await.expect("moved");
            until("the column is closed", || open_column() > before);
        }
        client.create_table(schema("queue")).await.expect("a table");
        let queue = client.table("queue").expect("a name");
        let rows = || (0..1_500).map(|row| format!("item-{row:05}"));
        queue
            .put_multiple(rows().map(|row| Put::new(row).cell("f", "q", "v")))
            .await
            .expect("written");
        admin.flush("queue").await.expect("flushed");
        queue
            .delete_multiple(rows().map(Delete::row))
            .await
            .expect("deleted");
        admin.flush("queue").await.expect("flushed");
        let counted = client.table("queue").expect("a name");
        for _ in 0..1_200 {
            counted.get(Get::new("item-hot")).await.expect("no error");
        }
        let wide = ["a", "b", "c"]
            .iter()
            .fold(schema("wide"), |wide, name| wide.family(FamilySchema::new(*name)));
        client.create_table(wide).await.expect("a table");
    });
    let text = page(&server, "/findings");
    has(
        &text,
        &[
            "Sequential key",
            "100.0 % of the writes of the last hour",
            "Begin the key with a salt",
            "Tombstones read in vain",
            "<code>item-00000</code> to <code>item-01499</code>",
            "1,500 tombstones in sequence",
            "Hot row",
            "<code>item-hot</code>",
            "100.0 % of the reads",
            "it has 4 families",
            "one to three families",
        ],
    );
    has(
        &page(&server, "/tables/ordered"),
        &["<h2 id=\"findings\">Findings</h2>", "Sequential key"],
    );
    assert!(
        !page(&server, "/tables/ordered").contains("Tombstones"),
        "it has none"
    );

    // Rows that a compaction removes are found no more.
    runtime.block_on(async {
        let admin = Admin::new(&connect(&server).await);
        let compaction = Compaction {
            major: true,
            wait: true,
            ..Compaction::default()
        };
        admin.compact("queue", compaction).await.expect("compacted");
    });
    assert!(!page(&server, "/tables/queue").contains("Tombstones"));
    let log = server.stop_and_log();
    assert!(
        log.contains("a rule of thumb for schemas is broken: it has 4 families"),
        "{log}"
    );
}

/// Goal: rows can be looked at, with keys by their layout, and the same scan is there for other clients.
#[test]
fn rows_are_browsed() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["slow_log.threshold_ms=0"]);
    runtime().block_on(async {
        let client = connect(&server).await;
        let wrong = schema("t").attribute("basalt.key_layout", "salt:1, user");
        let refused = client.create_table(wrong).await.expect_err("a wrong layout");
        assert!(
            refused
                .to_string()
                .contains("basalt.key_layout of table t is wrong: the field \"user\" is not name:bytes"),
            "{refused}"
        );
        let right = schema("t").attribute("basalt.key_layout", "salt:1, user:8, reversed_time:8");
        client.create_table(right).await.expect("a table");
        let table = client.table("t").expect("a name");
        let put = |number: u8| {
            let time = (i64::MAX - 1_700_000_000_000).to_be_bytes();
            let key = [&[number][..], b"<script>", &time].concat();
            Put::new(key)
                .cell("f", "q", "<b>\x00")
                .cell("f", "r", vec![b'v'; 3_000])
        };
        table.put_multiple((0..40).map(put)).await.expect("written");
        let key = [
            &[7_u8][..],
            b"<script>",
            &(i64::MAX - 1_700_000_000_000).to_be_bytes(),
        ]
        .concat();
        for _ in 0..2 {
            table
                .get(Get::new(key.clone()))
                .await
                .expect("no error")
                .expect("a row");
        }
    });
    let text = page(&server, "/tables/t/rows?column=f%3Aq");
    has(
        &text,
        &[
            "<code>\\x00&lt;script&gt;\\x7F\\xFF",
            "salt=0 user=&lt;script&gt; reversed_time=2023-11-14T22:13:20.000Z",
            "<code class=\"long\">&lt;b&gt;\\x00</code>",
            "25 rows",
            "rel=\"next\"",
            "scan 't', {COLUMNS =&gt; &quot;f:q&quot;, LIMIT =&gt; 25}",
        ],
    );
    assert!(!text.contains("<script>"), "{text}");
    let next = text
        .split("rel=\"next\" href=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a link")
        .replace("&amp;", "&");
    let rest = page(&server, &next);
    has(&rest, &["15 rows, the last ones", "salt=25"]);
    assert!(!rest.contains("salt=24 "), "each row is on one page");
    let all = page(&server, "/tables/t/rows?prefix=%5Cx07");
    has(&all, &["1 row, the last ones", "... (2.9 KiB)"]);
    let filtered = page(&server, "/tables/t/rows?filter=PrefixFilter('%09')");
    has(&filtered, &["1 row, the last ones", "salt=9"]);
    for (path, status, word) in [
        ("/tables/none/rows", 404, "none"),
        ("/tables/t/rows?filter=Nothing(", 400, "filter: "),
        ("/tables/t/rows?column=g", 400, "g"),
        ("/tables/t/rows?rows=1000", 400, "from 1 to 100"),
    ] {
        let answer = get(&server, path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains(word), "{path}: {}", answer.text());
    }
    // The other pages show keys by their layout, too.
    has(
        &page(&server, "/slow"),
        &["(salt=7 user=&lt;script&gt; reversed_time=2023-11-14T22:13:20.000Z)"],
    );
    has(&page(&server, "/tables/t"), &["salt=7 user=&lt;script&gt;"]);
    let heat = page(&server, "/api/heat?table=t&axis=keys&kind=writes");
    has(&heat, &["\"start_fields\":\"salt=1 user=<script>"]);
    let heat = page(&server, "/api/heat?kind=writes");
    has(&heat, &["\"start_fields\":\"salt=1 user=<script>"]);
    server.stop();
}

/// Goal: a row with more cells than a page has is not shown as one that ends there.
#[test]
fn a_row_that_does_not_fit_says_so() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    runtime().block_on(async {
        let client = connect(&server).await;
        client.create_table(schema("t")).await.expect("a table");
        let cell = |put: Put, number: usize| put.cell("f", format!("q{number:04}"), vec![b'v'; 100]);
        let wide = (0..3_000).fold(Put::new("wide"), cell);
        client
            .table("t")
            .expect("a name")
            .put(wide)
            .await
            .expect("written");
    });
    let text = page(&server, "/tables/t/rows");
    has(
        &text,
        &["The last row has more cells than are shown: ask for a column."],
    );
    assert!(!text.contains("more cells of these rows"), "{text}");
    server.stop();
}

/// Goal: load on one row is explained by the row, not by its region, whose split would not help; the list of
/// the key visualizer names it.
#[test]
fn a_hot_row_is_no_hot_region() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let address = server.thrift.to_string();
    let writer = std::thread::spawn(move || {
        runtime().block_on(async {
            let client = Client::connect(&address).await.expect("a connection");
            let splits = ["b", "c", "d"].map(|key| key.as_bytes().to_vec());
            client
                .create_table_split(schema("t"), splits.to_vec())
                .await
                .expect("a table");
            let table = client.table("t").expect("a name");
            let puts = || (0..50).map(|_| Put::new("celebrity").cell("f", "q", "v"));
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                table.put_multiple(puts()).await.expect("written");
            }
        });
    });
    until("the row is a problem", || {
        page(&server, "/").contains("One row of table t takes")
    });
    let text = page(&server, "/");
    assert!(!text.contains("regions of table t takes"), "{text}");
    let heat = page(&server, "/heat");
    has(&heat, &["of the writes of the last minutes to", "celebrity"]);
    let refused = get(&server, "/heat?compare=3600000");
    assert_eq!(refused.status, 400, "{}", refused.text());
    stop.send(()).expect("it runs");
    writer.join().expect("it ends");
    server.stop();
}

/// Goal: a scrape of a server with 48 regions whose clients call twenty methods has at most 100 KB.
#[test]
fn a_scrape_is_small() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    runtime().block_on(async {
        let client = connect(&server).await;
        let splits: Vec<_> = (1..48)
            .map(|number| format!("{number:02}").into_bytes())
            .collect();
        client
            .create_table_split(schema("t"), splits)
            .await
            .expect("a table");
        let table = client.table("t").expect("a name");
        let put = |number: usize| Put::new(format!("{number:02}")).cell("f", "q", "v");
        table.put_multiple((0..48).map(put)).await.expect("written");
        table.put(put(1)).await.expect("written");
        table.get(Get::new("01")).await.expect("read");
        table.delete(Delete::row("01")).await.expect("deleted");
    });
    let text = server.http_get("/metrics");
    let methods = text
        .lines()
        .filter(|line| line.starts_with("basalt_requests_total{"))
        .count();
    // A method that is called has 22 series, of some 2,000 bytes.
    let of_twenty = text.len() + 20_usize.saturating_sub(methods) * 2_000;
    println!("{} bytes with {methods} methods", text.len());
    assert!(
        of_twenty <= 100_000,
        "{} bytes, {methods} methods:\n{text}",
        text.len()
    );
    assert!(
        text.contains("basalt_failed_requests_total{api=\"thrift2\",method=\"get\"} 0"),
        "{text}"
    );
    server.stop();
}

/// Goal: a region's number in the log leads to its page.
#[test]
fn a_region_is_found_by_its_number() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    runtime().block_on(async {
        let client = connect(&server).await;
        client.create_table(schema("t")).await.expect("a table");
        let table = client.table("t").expect("a name");
        table
            .put(Put::new("r").cell("f", "q", "v"))
            .await
            .expect("written");
        Admin::new(&client).flush("t").await.expect("flushed");
    });
    let table = page(&server, "/tables/t");
    let link = table
        .split("href=\"/regions/")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a link");
    let text = page(&server, &format!("/regions/{link}"));
    let id = text
        .split("id, in the log</th><td>")
        .nth(1)
        .and_then(|rest| rest.split('<').next())
        .expect("a number");
    has(&page(&server, &format!("/regions/{id}")), &[link]);
    let log = server.stop_and_log();
    assert!(log.contains(&format!("region={id} ")), "{log}");
}
