//! The key visualiser over HTTP: reads and writes are in the picture, at their keys.

#![expect(clippy::float_cmp, reason = "small whole numbers are exact")]

use basalt_client::{Client, FamilySchema, Get, Increment, Put, Scan, TableSchema};
use basalt_test_support::Server;
use serde_json::Value;

use super::client::Http;

fn heat(server: &Server, query: &str) -> Value {
    let answer = Http::connect(server.http).ask("GET", &format!("/api/heat?table=t&{query}"), "", b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice(&answer.body).expect("the answer is JSON")
}

/// Start and total of the rows that something went to.
fn totals(data: &Value) -> Vec<(String, f64)> {
    let rows = data["rows"].as_array().expect("a list");
    let row = |row: &Value| {
        (
            row["start"].as_str().expect("a text").to_owned(),
            row["total"].as_f64().expect("a number"),
        )
    };
    rows.iter().map(row).filter(|(_, total)| *total > 0.0).collect()
}

fn row(start: &str, total: f64) -> (String, f64) {
    (start.to_owned(), total)
}

/// Reads, writes and bytes of every kind of call are where they belong.
#[test]
fn requests_are_in_the_picture() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let schema = TableSchema::new("t")
            .expect("a name")
            .family(FamilySchema::new("f"));
        let splits = ["b", "m", "x\u{1}"].map(|split| split.as_bytes().to_vec());
        client
            .create_table_split(schema, splits.to_vec())
            .await
            .expect("a table");
        let table = client.table("t").expect("a name");
        let put = |row: String| Put::new(row).cell("f", "q", "12345678");
        table
            .put_multiple((0..40).map(|row| put(format!("c{row:02}"))))
            .await
            .expect("written");
        table.put(put("y".to_owned())).await.expect("written");
        table
            .increment(Increment::new("a").column("f", "n", 3))
            .await
            .expect("counted");
        table.get(Get::new("y")).await.expect("no error").expect("a row");
        assert!(table.get(Get::new("z")).await.expect("no error").is_none());
        let mut scan = table
            .scan(Scan::new().start_row("c10").stop_row("c20"))
            .expect("a scan");
        while scan.next().await.expect("no error").is_some() {}
    });
    let writes = heat(&server, "kind=writes");
    assert_eq!(
        totals(&writes),
        [row("", 1.0), row("b", 40.0), row("x\\x01", 1.0)]
    );
    assert_eq!(writes["axis"], "regions");
    assert_eq!(
        totals(&heat(&server, "kind=reads")),
        [row("b", 10.0), row("x\\x01", 2.0)]
    );
    let bytes = totals(&heat(&server, "kind=bytes"));
    // Row, family, qualifier and value of 40 puts, and ten of these rows read.
    assert!(bytes[1].1 >= 40.0 * 13.0 + 10.0 * 13.0, "{bytes:?}");

    // Closer: one region, by keys, part of it.
    let keys = heat(&server, "kind=writes&start=b&end=c05&axis=keys");
    assert_eq!(totals(&keys).len(), 5, "{keys}");
    assert_eq!(totals(&keys).iter().map(|(_, total)| total).sum::<f64>(), 5.0);
    let key = heat(&server, "kind=writes&start=c07&end=c07%5Cx00");
    assert_eq!(
        (totals(&key), &key["axis"]),
        (vec![row("c07", 1.0)], &Value::from("keys"))
    );

    // Rates, times and sizes are those of the grid.
    let (columns, rows) = (
        writes["columns"].as_u64().expect("a number"),
        writes["rows"].as_array().expect("a list"),
    );
    let rates = writes["rates"].as_array().expect("a list");
    assert_eq!(rates.len() as u64, columns * rows.len() as u64);
    let step_ms = writes["step_ms"].as_u64().expect("a number");
    // The picture begins with the first load, which is less than five minutes ago. An earlier start
    // must be asked for as an absolute time.
    let begun = |data: &Value| {
        let [now_ms, from_ms] = ["now_ms", "from_ms"].map(|name| data[name].as_u64().expect("a number"));
        now_ms - from_ms
    };
    assert!(
        begun(&writes) < 300_000 && columns <= 30,
        "{columns} columns of {step_ms} ms"
    );
    assert!(begun(&heat(&server, "kind=writes&from=-86400000")) < 300_000);
    let since = writes["now_ms"].as_u64().expect("a number") - 3_600_000;
    assert!(begun(&heat(&server, &format!("kind=writes&from={since}"))) >= 3_600_000);
    let load_seconds = writes["load_seconds"].as_f64().expect("a number");
    assert!((1.0..=300.0).contains(&load_seconds), "{load_seconds}");
    let least = 40.0 / (2.0 * step_ms as f64 / 1_000.0);
    assert!(
        rates.iter().any(|rate| rate.as_f64() >= Some(least)),
        "40 rows in at most two columns: {rates:?}"
    );
    assert!(
        rows.iter()
            .all(|row| row["region"].as_str().is_some_and(|name| name.len() == 32) && row["regions"] == 1)
    );
    let few = heat(&server, "rows=2&columns=7");
    assert_eq!(few["rows"].as_array().map(Vec::len), Some(2));
    assert!(few["columns"].as_u64() <= Some(7));
    // Nothing went there before the server started.
    assert!(totals(&heat(&server, "from=1000&to=2000")).is_empty());

    let page = Http::connect(server.http)
        .ask("GET", "/heat?table=t", "", b"")
        .text();
    assert!(
        page.contains("Hottest ranges") && page.contains("95.2 %"),
        "40 of 42: {page}"
    );
    assert_eq!(
        Http::connect(server.http)
            .ask("GET", "/heat", "", b"")
            .text()
            .matches(">t</a>")
            .count(),
        1
    );
    server.stop();
}

/// Bad parameters are refused by name; without memory there is no visualiser, and requests go on.
#[test]
fn a_visualiser_can_be_refused_and_switched_off() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["key_visualizer.bytes=0"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let schema = TableSchema::new("t")
            .expect("a name")
            .family(FamilySchema::new("f"));
        client.create_table(schema).await.expect("a table");
        let table = client.table("t").expect("a name");
        table
            .put(Put::new("r").cell("f", "q", "v"))
            .await
            .expect("written");
    });
    let mut http = Http::connect(server.http);
    let off = http.ask("GET", "/api/heat?table=t", "", b"");
    assert_eq!(
        (off.status, off.text().contains("key_visualizer.bytes is 0")),
        (404, true)
    );
    assert!(
        http.ask("GET", "/heat?table=t", "", b"")
            .text()
            .contains("is off")
    );
    server.stop();

    for wrong in ["key_visualizer.bytes=1000", "key_visualizer.sample_every=0"] {
        let output = Server::try_start(&dir.path().join("other"), &[wrong]).expect_err("refused");
        assert!(
            output.contains(wrong.split('=').next().expect("a name")),
            "{output}"
        );
    }
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut http = Http::connect(server.http);
    for (query, word) in [
        ("start=a", "start and end need a table"),
        ("table=t&rows=0", "rows is 0, and must be from 1 to 512"),
        ("table=t&rows=513", "from 1 to 512"),
        ("table=t&columns=721", "from 1 to 720"),
        ("table=t&kind=odd", "kind has the unknown value odd"),
        ("table=t&axis=odd", "axis has the unknown value odd"),
        ("table=t&from=now", "from is no whole number: now"),
    ] {
        let answer = http.ask("GET", &format!("/api/heat?{query}"), "", b"");
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text().contains(word), "{query}: {}", answer.text());
    }
    server.stop();
}

/// Goal: the map has its past after a restart, and one of all tables has them below each other, each row with
/// its table; a new table of a dropped one's name has none of its load.
#[test]
fn all_tables_are_on_one_map_also_after_a_restart() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let schema = |name: &str| {
        TableSchema::new(name)
            .expect("a name")
            .family(FamilySchema::new("f"))
    };
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        for (name, rows) in [("t", 30), ("busy", 70), ("dropped", 50)] {
            client.create_table(schema(name)).await.expect("a table");
            let table = client.table(name).expect("a name");
            let put = |row: usize| Put::new(format!("row-{row:02}")).cell("f", "q", "v");
            table.put_multiple((0..rows).map(put)).await.expect("written");
        }
    });
    let by_table = |server: &Server| -> Vec<(String, f64)> {
        let answer = Http::connect(server.http).ask("GET", "/api/heat?kind=writes", "", b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let data: Value = serde_json::from_slice(&answer.body).expect("JSON");
        let rows = data["rows"].as_array().expect("a list");
        let rates = data["rates"].as_array().expect("a list").len() as u64;
        assert_eq!(
            rates,
            rows.len() as u64 * data["columns"].as_u64().expect("a number")
        );
        let mut sums: Vec<(String, f64)> = Vec::new();
        for row in rows {
            let (name, total) = (
                row["table"].as_str().expect("a name"),
                row["total"].as_f64().expect("a number"),
            );
            match sums.last_mut().filter(|(last, _)| last == name) {
                Some((_, sum)) => *sum += total,
                None => sums.push((name.to_owned(), total)),
            }
        }
        sums
    };
    let all = [row("busy", 70.0), row("dropped", 50.0), row("t", 30.0)];
    assert_eq!(by_table(&server), all);
    server.stop();

    let server = Server::start(&data, &[]);
    assert_eq!(by_table(&server), all, "the past is there again");
    let page = Http::connect(server.http).ask("GET", "/heat", "", b"").text();
    assert!(
        page.contains("id=\"heat-map\"") && page.contains(">busy</a>"),
        "{page}"
    );
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        client.disable_table("dropped").await.expect("disabled");
        client.drop_table("dropped").await.expect("dropped");
        client.create_table(schema("dropped")).await.expect("a new table");
    });
    let rest = [row("busy", 70.0), row("t", 30.0)];
    assert_eq!(by_table(&server), rest);
    server.kill();
    let server = Server::start(&data, &[]);
    assert_eq!(
        by_table(&server),
        rest,
        "nothing of the dropped table, also after a crash"
    );
    server.stop();
}
