//! The pages for people: their content, that bytes of clients never become markup, and that a GET
//! changes nothing.

use std::collections::BTreeSet;

use basalt_client::admin::{Admin, Compaction};
use basalt_client::{Client, FamilySchema, Get, Put, TableSchema};
use basalt_test_support::Server;

use super::client::{Answer, Http};

/// Pages that every server has.
const PAGES: [&str; 11] = [
    "/",
    "/tables",
    "/findings",
    "/cache",
    "/jobs",
    "/slow",
    "/slow?kind=large",
    "/settings",
    "/threads",
    "/heat",
    "/tables?sort=size",
];

/// A family's and a row's name that are markup unless escaped.
const FAMILY: &str = "<b>\"f'&";
const ROW: &[u8] = b"<script>alert(1)</script>\"'&\x00\xff\\";

/// A server with the table `t` of four regions, one of which begins at [`ROW`], some rows, and files.
fn filled(dir: &tempfile::TempDir, settings: &[&str]) -> Server {
    let server = Server::start(&dir.path().join("data"), settings);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let schema = TableSchema::new("t")
            .expect("a name")
            .family(FamilySchema::new(FAMILY).versions(3))
            .attribute("OWNER", "</pre><script>alert(2)</script>");
        let splits = vec![b"1".to_vec(), b"2".to_vec(), ROW.to_vec()];
        client.create_table_split(schema, splits).await.expect("a table");
        let table = client.table("t").expect("a name");
        let admin = Admin::new(&client);
        for round in 0..2 {
            let put = |row: usize| {
                Put::new(format!("{}-row-{row:05}-{round}", row % 4)).cell(FAMILY, "q", "x".repeat(100))
            };
            table.put_multiple((0..2_000).map(put)).await.expect("written");
            table
                .put(Put::new(ROW).cell(FAMILY, "<i>", "<v>"))
                .await
                .expect("written");
            admin.flush("t").await.expect("flushed");
        }
        table.get(Get::new(ROW)).await.expect("no error").expect("a row");
    });
    server
}

fn get(server: &Server, path: &str) -> Answer {
    Http::connect(server.http).ask("GET", path, "", b"")
}

/// A page that is there.
fn page(server: &Server, path: &str) -> String {
    let answer = get(server, path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

/// The addresses in the links of a page that begin so.
fn links(page: &str, begin: &str) -> Vec<String> {
    let links = page
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let mut found: Vec<String> = links
        .filter(|link| link.starts_with(begin))
        .map(|link| link.replace("&amp;", "&"))
        .collect();
    found.dedup();
    found
}

/// The first region of `t` with files, and the first of these.
fn region_and_file(server: &Server) -> (String, String) {
    let regions = links(&page(server, "/tables/t?sort=size"), "/regions/");
    let region = regions.first().expect("regions are listed").clone();
    let files = links(&page(server, &region), &format!("{region}/files/"));
    (region, files.first().expect("files are listed").clone())
}

/// Checks the properties that every page must have.
fn check(path: &str, answer: &Answer) {
    let text = answer.text();
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8"),
        "{path}"
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    let policy = answer.header("content-security-policy").expect("a policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
    for needed in [
        "<html lang=\"en\">",
        "<title>",
        "class=\"skip\" href=\"#main\"",
        "<main id=\"main\"",
        "<h1>",
    ] {
        assert!(text.contains(needed), "{path} lacks {needed}:\n{text}");
    }
    // The policy forbids these; a browser would leave them out.
    for forbidden in [
        "style=\"",
        "<style",
        "javascript:",
        " onclick",
        "=\"//",
        "=\"http",
    ] {
        assert!(!text.contains(forbidden), "{path} has {forbidden}:\n{text}");
    }
    assert_eq!(
        text.matches("<table").count(),
        text.matches("<caption>").count(),
        "{path}: every table has a caption"
    );
    let headings = text.matches("<th").count() - text.matches("<thead").count();
    assert_eq!(
        headings,
        text.matches(" scope=\"").count(),
        "{path}: every heading has a scope"
    );
    assert!(!text.contains("<script>"), "{path} lets markup through:\n{text}");
    for name in ["<b>\"f", "<i>", "<v>"] {
        assert!(!text.contains(name), "{path} lets {name} through:\n{text}");
    }
}

/// Every page is whole, and shows hostile names as text.
#[test]
fn every_page_is_whole_and_escaped() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = filled(&dir, &["slow_log.threshold_ms=0"]);
    let (region, file) = region_and_file(&server);
    let hostile_region = links(&page(&server, "/tables/t"), "/regions/")
        .last()
        .expect("a region")
        .clone();
    let own = [
        "/tables/t",
        "/tables/t?sort=writes",
        "/heat?table=t",
        "/heat?table=t&kind=bytes&axis=keys",
        "/tables/t/rows",
        &region,
        &hostile_region,
        &file,
    ];
    for path in PAGES.iter().chain(&own) {
        let answer = get(&server, path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        check(path, &answer);
    }
    let shown = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;\\x00\\xFF\\x5C";
    let closer =
        "/heat?table=t&axis=keys&start=%3Cscript%3Ealert%281%29%3C%2Fscript%3E%22%27%26%5Cx00%5CxFF%5Cx5C";
    for path in ["/tables/t", hostile_region.as_str(), closer] {
        let text = page(&server, path);
        assert!(
            text.contains(shown),
            "{path} does not show the row {shown}:\n{text}"
        );
    }
    assert!(page(&server, "/slow").contains("&lt;script&gt;alert(1)"));
    let schema = page(&server, "/tables/t");
    assert!(
        schema.contains("OWNER =&gt; '&lt;/pre&gt;&lt;script&gt;alert(2)&lt;/script&gt;'"),
        "{schema}"
    );
    assert!(
        schema.contains(
            "NAME =&gt; &quot;&lt;b&gt;\\&quot;f'&amp;&quot;, INDEX_BLOCK_ENCODING =&gt; 'NONE', VERSIONS =&gt; '3'"
        ),
        "{schema}"
    );
    // Parts of an address that come back in a page are escaped, too.
    for path in [
        "/tables/%3Cscript%3Ealert(3)",
        "/regions/%3Cscript%3E",
        "/tables?sort=%3Cscript%3E",
        "/heat?table=%3Cscript%3E",
        "/heat?table=t&start=%3Cscript%3E&end=%3Cz",
        "/slow?kind=%3Cscript%3E",
        "/tables?page=%3Cscript%3E",
    ] {
        check(path, &get(&server, path));
    }
    server.stop();
}

/// The pages show the work of the server: calls, regions, files with their blocks, jobs, settings.
#[test]
fn pages_say_what_happened() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = filled(&dir, &["compaction.enabled=false"]);
    let overview = page(&server, "/");
    for expected in [
        "<h1>Basalt</h1>",
        "putMultiple",
        "1 table, 4 regions, 8 store files",
        "memstore.total_bytes",
        "Hottest regions",
    ] {
        assert!(overview.contains(expected), "{expected} is not in\n{overview}");
    }
    let table = page(&server, "/tables/t");
    assert_eq!(links(&table, "/regions/").len(), 4, "{table}");
    let (region, file) = region_and_file(&server);
    let shown = page(&server, &region);
    assert!(
        shown.contains("Store files") && shown.contains("flush or minor compaction"),
        "{shown}"
    );
    let shown = page(&server, &file);
    for expected in [
        "Block index",
        "ROW_INDEX_V1",
        "bloom filter: 1000 keys",
        "basalt.UUID",
        "first row",
    ] {
        assert!(shown.contains(expected), "{expected} is not in\n{shown}");
    }
    let jobs = page(&server, "/jobs");
    assert_eq!(jobs.matches(">flush<").count(), 8, "{jobs}");
    assert!(jobs.contains("Nothing runs") && jobs.contains(">done<"), "{jobs}");

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let compaction = Compaction {
            major: true,
            wait: true,
            ..Compaction::default()
        };
        Admin::new(&client)
            .compact("t", compaction)
            .await
            .expect("compacted");
    });
    let jobs = page(&server, "/jobs");
    assert_eq!(jobs.matches("major compaction").count(), 4, "{jobs}");
    // The file is gone with the compaction; the new one has another name.
    assert_eq!(get(&server, &file).status, 404);
    assert!(page(&server, &region).contains("major compaction"));

    let settings = page(&server, "/settings");
    for expected in [
        "compaction.enabled",
        "<strong>set</strong>",
        "key_visualizer.bytes",
        "16777216",
    ] {
        assert!(settings.contains(expected), "{expected} is not in\n{settings}");
    }
    assert_eq!(
        settings.matches("<strong>set</strong>").count(),
        4,
        "the two ports, the directory, and the one: {settings}"
    );
    server.stop();
}

/// A missing thing gets a page that says so; an invalid parameter is refused by name.
#[test]
fn missing_things_are_named() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = filled(&dir, &[]);
    let (region, _) = region_and_file(&server);
    for (path, status, word) in [
        ("/tables/none", 404, "no table none"),
        ("/tables/a%2Fb", 404, "no table a/b"),
        ("/tables/hbase:none", 404, "no table hbase:none"),
        ("/regions/0123456789abcdef", 404, "no region 0123456789abcdef"),
        ("/tables/t?page=2", 404, "the last one is 1"),
        ("/heat?table=none", 404, "no table none"),
        ("/tables/t?page=0", 400, "at least 1"),
        ("/tables/t?page=x", 400, "page is no whole number: x"),
        ("/tables/t?sort=colour", 400, "none of key, name, reads"),
        ("/slow?kind=odd", 400, "slow or large"),
        ("/heat?table=t&kind=odd", 400, "kind has the unknown value odd"),
        ("/heat?table=t&start=%5Cxg1", 400, "two hexadecimal digits"),
        ("/heat?table=t&start=b&end=a", 400, "a key after start"),
        ("/heat?table=t&compare=-5", 400, "milliseconds to go back"),
        ("/heat?table=t&from=5&to=4", 400, "a time after from"),
        (
            &format!("{region}/files/0000000000000000"),
            404,
            "no store file 0000000000000000",
        ),
        (&format!("{region}/files/x?page=1"), 404, "no store file x"),
    ] {
        let answer = get(&server, path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        check(path, &answer);
        assert!(
            answer.text().contains(word),
            "{path}: {word} is not in\n{}",
            answer.text()
        );
    }
    for path in ["/nothing", "/tables/t/more", "/assets/none.js"] {
        assert_eq!(get(&server, path).status, 404, "{path}");
    }
    server.stop();
}

/// Looking changes nothing: not the files, not the counters of regions, whatever the address says. Other
/// methods are not answered.
#[test]
fn looking_changes_nothing() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = filled(&dir, &[]);
    let (region, file) = region_and_file(&server);
    let files = || {
        let mut found = Vec::new();
        let mut folders = vec![dir.path().join("data/tables")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)
                .expect("a folder")
                .map(|entry| entry.expect("an entry"))
            {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push((entry.path(), entry.metadata().expect("it is there").len()));
                }
            }
        }
        found.sort();
        found
    };
    let series = || {
        let text = server.http_get("/metrics");
        let kept = [
            "basalt_region_",
            "basalt_regions",
            "basalt_tables",
            "basalt_wal_appends",
            "basalt_flushes",
            "basalt_requests",
        ];
        let lines = text
            .lines()
            .filter(|line| kept.iter().any(|name| line.starts_with(name)));
        // A set: their order is not fixed.
        lines.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (files_before, series_before) = (files(), series());
    assert!(
        files_before.len() >= 4 && series_before.len() > 10,
        "{files_before:?}"
    );
    let own = [
        "/tables/t?drop=1&delete=t",
        &region,
        &file,
        "/heat?table=t",
        "/api/heat?table=t",
    ];
    for path in PAGES.iter().chain(&own) {
        assert_eq!(get(&server, path).status, 200, "{path}");
    }
    assert_eq!((files(), series()), (files_before, series_before));
    for path in [
        "/tables",
        "/tables/t",
        &region,
        &file,
        "/cache",
        "/jobs",
        "/slow",
        "/settings",
        "/threads",
        "/heat",
        "/api/heat",
        "/assets/heat.js",
    ] {
        for method in ["POST", "PUT", "DELETE"] {
            let answer = Http::connect(server.http).ask(method, path, "", b"");
            assert_eq!(
                (answer.status, answer.header("allow")),
                (405, Some("GET,HEAD")),
                "{method} {path}"
            );
        }
    }
    server.stop();
}

/// A page has a bounded number of rows, and its links lead to the others, in the order that was asked for.
#[test]
fn long_lists_come_in_pages() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let schema = TableSchema::new("many")
            .expect("a name")
            .family(FamilySchema::new("f"));
        let splits = (1..1_050)
            .map(|split| format!("{split:05}").into_bytes())
            .collect();
        client.create_table_split(schema, splits).await.expect("a table");
        let table = client.table("many").expect("a name");
        let put = |row: usize| Put::new("00700x").cell("f", format!("q{row}"), "value");
        for row in 0..5 {
            table.put(put(row)).await.expect("written");
        }
    });
    let mut starts = Vec::new();
    let mut address = "/tables/many".to_owned();
    loop {
        let text = page(&server, &address);
        let rows: Vec<_> = text
            .split("<tr><td><code>")
            .skip(1)
            .filter_map(|row| row.split("</code>").next())
            .map(str::to_owned)
            .collect();
        assert!(
            rows.len() <= 100 && text.len() < 100_000,
            "{} rows, {} bytes",
            rows.len(),
            text.len()
        );
        starts.extend(rows);
        let next = text
            .split("rel=\"next\" href=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let Some(next) = next else { break };
        address = next.replace("&amp;", "&");
    }
    // The first region begins at no key.
    let expected: Vec<String> = (1..1_050).map(|split| format!("{split:05}")).collect();
    assert_eq!(starts, expected);
    let hottest = page(&server, "/tables/many?sort=all_writes");
    let first = hottest.split("<tr><td><code>").nth(1).expect("a row");
    assert!(first.starts_with("00700<"), "{first}");
    let last = page(&server, "/tables/many?page=11&sort=key");
    assert!(last.contains("1,001 to 1,050 of 1,050 regions"), "{last}");
    server.stop();
}

/// `/readyz` says why, line by line.
#[test]
fn readiness_has_reasons() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(
        &dir.path().join("data"),
        &["disk.reserve_bytes=1152921504606846976"],
    );
    let mut text = server.http_get("/readyz");
    // The first look at the disk comes with the ticker.
    while !text.contains("disk space") {
        assert_eq!(text, "ready\n");
        text = server.http_get("/readyz");
    }
    assert!(
        text.starts_with("ready for reads; disk space: writes suspended: "),
        "{text}"
    );
    assert!(page(&server, "/").contains("disk space: writes suspended"));
    server.stop();
}

/// Goal: a table whose name is in another script has pages, links to them, a key visualizer and
/// metrics.
#[test]
fn tables_in_other_scripts_have_pages() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let name = "\u{43f}\u{440}:\u{8868}_\u{e9}";
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let namespace = basalt_client::Namespace {
            name: "\u{43f}\u{440}".into(),
            configuration: std::collections::BTreeMap::new(),
        };
        client.create_namespace(namespace).await.expect("a namespace");
        let schema = TableSchema::new(name)
            .expect("a name")
            .family(FamilySchema::new("f"));
        client.create_table(schema).await.expect("a table");
        let table = client.table(name).expect("a name");
        table
            .put(Put::new("r").cell("f", "q", "v"))
            .await
            .expect("written");
    });
    let encoded = "%D0%BF%D1%80%3A%E8%A1%A8%5F%C3%A9";
    let tables = get(&server, "/tables").text();
    let link = format!("href=\"/tables/{encoded}\"");
    assert!(tables.contains(&link) && tables.contains(name), "{tables}");
    let page = get(&server, &format!("/tables/{encoded}"));
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains(name), "{}", page.text());
    for path in [
        format!("/heat?table={encoded}"),
        format!("/api/heat?table={encoded}"),
    ] {
        let answer = get(&server, &path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    let metrics = get(&server, "/metrics").text();
    assert!(metrics.contains(&format!("table=\"{name}\"")), "{metrics}");
    server.stop();
}
