//! The figures on the pages agree with each other and with the metrics, and the links lead to
//! pages.

use basalt_client::admin::{Admin, Compaction};
use basalt_client::{Client, FamilySchema, Get, Put, Scan, TableSchema};
use basalt_test_support::{Server, until};

use super::client::Http;

fn page(server: &Server, path: &str) -> String {
    let answer = Http::connect(server.http).ask("GET", path, "", b"");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.thrift.to_string())
        .await
        .expect("a connection")
}

async fn create(client: &Client, name: &str) {
    let schema = TableSchema::new(name)
        .expect("a name")
        .family(FamilySchema::new("f"));
    client.create_table(schema).await.expect("a table");
}

/// Writes rows of a kilobyte and flushes them to a store file.
async fn fill(client: &Client, name: &str, rows: std::ops::Range<usize>) {
    let table = client.table(name).expect("a name");
    let put = |row: usize| Put::new(format!("row-{row:06}")).cell("f", "q", "x".repeat(1_000));
    table.put_multiple(rows.map(put)).await.expect("written");
    Admin::new(client).flush(name).await.expect("flushed");
}

/// Every local link on a page.
fn links(page: &str) -> Vec<String> {
    let links = page
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let local = links.filter(|link| link.starts_with('/'));
    local.map(|link| link.replace("&amp;", "&")).collect()
}

/// Goal: no page links to a dropped table, although jobs, slow requests and the key visualizer keep
/// its name. Method: a table is used and dropped, and every link of the pages is followed.
#[test]
fn links_never_lead_to_dropped_tables() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(
        &dir.path().join("data"),
        &["slow_log.threshold_ms=0", "slow_log.large_bytes=0"],
    );
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&server).await;
        for name in ["stays", "goes"] {
            create(&client, name).await;
            fill(&client, name, 0..10).await;
        }
        client.disable_table("goes").await.expect("disabled");
        client.drop_table("goes").await.expect("dropped");
    });
    let pages = [
        "/",
        "/tables",
        "/tables/stays",
        "/jobs",
        "/slow",
        "/slow?kind=large",
        "/heat",
        "/heat?table=stays",
    ];
    for path in pages {
        for link in links(&page(&server, path)) {
            let answer = Http::connect(server.http).ask("GET", &link, "", b"");
            assert_eq!(answer.status, 200, "{path} leads to {link}: {}", answer.text());
        }
    }
    for path in ["/jobs", "/slow"] {
        let text = page(&server, path);
        assert!(
            text.contains("goes <span class=\"quiet\">(gone)</span>"),
            "{path}: {text}"
        );
        assert!(text.contains("href=\"/tables/stays\""), "{path}: {text}");
    }
    let heat = page(&server, "/heat");
    assert!(heat.contains(">stays</a>") && !heat.contains(">goes"), "{heat}");
    server.stop();
}

/// Tables are listed by load, the busiest first, and not by name.
#[test]
fn the_busiest_table_comes_first() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&server).await;
        for (name, rows) in [("a", 10), ("m", 300), ("quiet", 0), ("z", 70)] {
            create(&client, name).await;
            if rows > 0 {
                fill(&client, name, 0..rows).await;
            }
        }
    });
    let text = page(&server, "/heat");
    let at = |what: &str| {
        text.find(what)
            .unwrap_or_else(|| panic!("{what} is not in\n{text}"))
    };
    let order = [
        ">m</a> <span class=\"quiet\">300 rows",
        ">z</a>",
        ">a</a>",
        ">quiet</a>",
    ]
    .map(at);
    assert!(order.is_sorted(), "{text}");
    server.stop();
}

/// The number in the table row of that name.
fn figure(page: &str, name: &str) -> u64 {
    let (_, row) = page
        .split_once(&format!("<th scope=\"row\">{name}</th>"))
        .unwrap_or_else(|| panic!("{name} is not in\n{page}"));
    let (_, value) = row.split_once('>').expect("a cell");
    let digits: String = value
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().expect("a number")
}

/// Goal: the figures of the block cache add up. Method: gets of rows that are not cached and of
/// some that are, then a compaction that removes files and their blocks. Each block that was put in
/// is still cached, was evicted, or was removed; each miss is one read from disk; and the page
/// shows the values of the metrics.
#[test]
fn the_figures_of_the_block_cache_add_up() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["compaction.enabled=false"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&server).await;
        create(&client, "t").await;
        for round in 0..2 {
            fill(&client, "t", round * 1_000..(round + 1) * 1_000).await;
        }
        let table = client.table("t").expect("a name");
        for row in (0..2_000).step_by(20).chain(0..20) {
            let get = Get::new(format!("row-{row:06}"));
            table.get(get).await.expect("no error").expect("a row");
        }
        let mut scan = table.scan(Scan::new().stop_row("row-000500")).expect("a scan");
        while scan.next().await.expect("no error").is_some() {}
    });
    // Each block that was read from disk is cached now. A get that goes to the disk looks into the
    // cache twice, and counts one miss.
    let (before, misses) = (
        page(&server, "/cache"),
        server.metric("basalt_block_cache_misses_total "),
    );
    let put_in = figure(&before, "blocks put in");
    assert!(
        (put_in..=put_in + put_in / 2).contains(&misses),
        "{put_in} put in, {misses} misses: {before}"
    );
    runtime.block_on(async {
        let client = connect(&server).await;
        let table = client.table("t").expect("a name");
        let compaction = Compaction {
            major: true,
            wait: true,
            ..Compaction::default()
        };
        Admin::new(&client)
            .compact("t", compaction)
            .await
            .expect("compacted");
        table
            .get(Get::new("row-000000"))
            .await
            .expect("no error")
            .expect("a row");
    });
    let sum = |metrics: &str, name: &str| -> u64 {
        let of = |line: &str| {
            line.rsplit(' ')
                .next()
                .and_then(|value| value.parse::<f64>().ok())
        };
        let lines = metrics.lines().filter(|line| line.starts_with(name));
        lines.filter_map(of).sum::<f64>() as u64
    };
    // Files of a compaction are removed in the background. Once the figures stop changing, the page
    // and the metrics agree.
    let (mut text, mut metrics) = (String::new(), String::new());
    until("the page and the metrics stand still", || {
        (text, metrics) = (page(&server, "/cache"), server.http_get("/metrics"));
        page(&server, "/cache") == text && figure(&text, "removed with their file, or pinned") > 0
    });
    let put_in = figure(&text, "blocks put in");
    let here = figure(&text, "of these, still in the cache");
    let pushed_out = figure(&text, "evicted by others");
    let removed = figure(&text, "removed with their file, or pinned");
    assert_eq!(put_in, here + pushed_out + removed, "{text}");
    assert!(put_in > 20 && here > 0, "{text}");
    assert_eq!(here, sum(&metrics, "basalt_block_cache_blocks{"));
    assert_eq!(pushed_out, sum(&metrics, "basalt_block_cache_evictions_total{"));
    let misses = sum(&metrics, "basalt_block_cache_misses_total ");
    let hits = sum(&metrics, "basalt_block_cache_hits_total{");
    let plain = text.replace(',', "");
    for (what, count) in [("misses read from disk", misses), ("hits", hits)] {
        assert!(
            plain.contains(&format!("<b>{count}</b> {what}")),
            "{what} {count}: {text}"
        );
    }
    server.stop();
}
