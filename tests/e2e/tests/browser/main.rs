//! The pages in a real browser, Chromium: no error, nothing loaded from elsewhere, usable with a keyboard,
//! and pictures for people to look at.
//!
//! `SCREENSHOTS=FOLDER` says where the pictures go; else they are in the target folder. Without Chromium the
//! tests print a line that begins with `not run` and pass.

use std::path::PathBuf;
use std::time::Duration;

use basalt_client::admin::Admin;
use basalt_client::{Client, FamilySchema, Get, Put, Scan, TableSchema};
use basalt_test_support::{Server, workspace};

mod chromium;

use chromium::Chromium;

fn screenshots() -> PathBuf {
    let folder =
        std::env::var_os("SCREENSHOTS").map_or_else(|| workspace().join("target/screenshots"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.thrift.to_string())
        .await
        .expect("a connection")
}

/// A table of 16 regions that begin with a hexadecimal digit.
async fn create(client: &Client, name: &str) {
    let schema = TableSchema::new(name)
        .expect("a name")
        .family(FamilySchema::new("f"));
    let splits = (1..16).map(|digit| format!("{digit:x}").into_bytes()).collect();
    client.create_table_split(schema, splits).await.expect("a table");
}

/// Tables with some rows and files, and one that was written to in the order of its keys.
async fn fill(server: &Server) {
    let client = connect(server).await;
    for (name, rounds) in [("salted", 4), ("sequential", 4)] {
        create(&client, name).await;
        let table = client.table(name).expect("a name");
        for round in 0..rounds {
            let put = |row: usize| {
                let key = format!("2026-11-22-{round}-{row:06}");
                let key = if name == "salted" {
                    format!("{:x}{key}", row % 16)
                } else {
                    key
                };
                Put::new(key).cell("f", "q", "x".repeat(100))
            };
            table.put_multiple((0..2_000).map(put)).await.expect("written");
        }
        Admin::new(&client).flush(name).await.expect("flushed");
        let found = table
            .get(Get::new("2026-11-22-0-000001"))
            .await
            .expect("no error");
        assert_eq!(found.is_some(), name == "sequential");
    }
}

/// No error in the console, and no request but to the server itself.
fn check(browser: &Chromium, origin: &str, address: &str) {
    assert_eq!(browser.errors(), Vec::<String>::new(), "{address}");
    let requests = browser.requests();
    assert!(!requests.is_empty(), "{address}: the page itself is a request");
    for request in requests {
        assert!(request.starts_with(origin), "{address} asks for {request}");
    }
}

/// Goal: every page works in a browser, in both colour schemes. Method: each is opened, and the
/// browser's reports are checked.
#[test]
fn pages_work_in_a_browser() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["slow_log.threshold_ms=0"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(fill(&server));
    let origin = format!("http://{}", server.http);
    let first_link = "[...document.querySelectorAll('main td a, main tbody th a')].map((a) => a.getAttribute('href')).find((h) => h.startsWith('/regions/')";
    browser.open(&format!("{origin}/tables/sequential?sort=size"));
    let region = browser
        .evaluate(&format!("{first_link})"))
        .as_str()
        .expect("a region is listed")
        .to_owned();
    browser.open(&format!("{origin}{region}"));
    let file = browser
        .evaluate(&format!("{first_link} && h.includes('/files/'))"))
        .as_str()
        .expect("a file is listed")
        .to_owned();
    let pages = [
        ("overview", "/"),
        ("tables", "/tables"),
        ("table", "/tables/sequential"),
        ("rows", "/tables/sequential/rows"),
        ("findings", "/findings"),
        ("region", region.as_str()),
        ("file", file.as_str()),
        ("cache", "/cache"),
        ("jobs", "/jobs"),
        ("slow", "/slow"),
        ("settings", "/settings"),
        ("threads", "/threads"),
        ("heat-choice", "/heat"),
        ("heat-salted", "/heat?table=salted&from=-600000"),
        ("heat-sequential", "/heat?table=sequential&from=-600000"),
        ("heat-keys", "/heat?table=sequential&from=-600000&axis=keys"),
        (
            "heat-compared",
            "/heat?table=sequential&from=-600000&compare=3600000",
        ),
        ("heat-empty", "/heat?table=salted&start=zz"),
    ];
    for scheme in ["light", "dark"] {
        browser.look(scheme, 1280, 900);
        for (name, address) in pages {
            browser.open(&format!("{origin}{address}"));
            if name.starts_with("heat-") && name != "heat-choice" {
                browser.wait_until("document.getElementById('heat').dataset.loaded === 'true'");
            }
            let ground = browser.evaluate("getComputedStyle(document.body).backgroundColor");
            assert_eq!(
                ground == "rgb(255, 255, 255)",
                scheme == "light",
                "{address}: {ground}"
            );
            assert_eq!(
                browser.evaluate("document.querySelectorAll('h1').length"),
                1,
                "{address}"
            );
            check(&browser, &origin, address);
            browser.screenshot(&screenshots().join(format!("{name}-{scheme}.png")));
        }
    }
    // Narrow, as on a telephone: the page itself does not scroll sideways.
    browser.look("light", 400, 800);
    for (name, address) in pages {
        browser.open(&format!("{origin}{address}"));
        browser.screenshot(&screenshots().join(format!("{name}-narrow.png")));
        for part in ["documentElement", "querySelector('main')"] {
            let wide = browser.evaluate(&format!(
                "document.{part}.scrollWidth - document.{part}.clientWidth"
            ));
            assert_eq!(wide, 0, "{part} of {address} is wider than its window");
        }
    }
    server.stop();
}

/// A load with a hot row, and scans that read much and return little.
async fn incident(server: &Server) {
    let client = connect(server).await;
    create(&client, "orders").await;
    let orders = client.table("orders").expect("a name");
    for round in 0..10_usize {
        let put = |row: usize| {
            let number = round * 2_000 + row;
            Put::new(format!("{:x}-order-{number:06}", number % 16)).cell(
                "f",
                "state",
                if number.is_multiple_of(500) {
                    "open"
                } else {
                    "done"
                },
            )
        };
        orders.put_multiple((0..2_000).map(put)).await.expect("written");
        let hot = |_| Put::new("7-total").cell("f", "n", "1");
        orders.put_multiple((0..1_500).map(hot)).await.expect("written");
    }
    Admin::new(&client).flush("orders").await.expect("flushed");
    for _ in 0..5 {
        let open = Scan::new().filter("SingleColumnValueFilter('f', 'state', =, 'binary:open', true, true)");
        let mut scan = orders.scan(open).expect("a scan");
        while scan.next().await.expect("no error").is_some() {}
    }
}

/// Goal: the questions of an incident (docs/observing.md) are answered within two clicks from the overview,
/// each with its picture there. Method: a load with a hot row and scans that read in vain.
#[test]
fn an_incident_is_answered_within_two_clicks() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["slow_log.threshold_ms=5"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(incident(&server));
    let origin = format!("http://{}", server.http);
    let text = |browser: &mut Chromium| {
        let text = browser.evaluate("document.querySelector('main').innerText");
        text.as_str().expect("a text").to_owned()
    };
    browser.look("light", 1100, 900);
    // The hot table, since when, and the remedy: the verdict names the table, its link leads to the row.
    browser.open(&format!("{origin}/"));
    let verdict = text(&mut browser);
    assert!(
        verdict.contains("One row of table orders takes") && verdict.contains("Spread it over several rows"),
        "{verdict}"
    );
    // The script brings the first step of the curves.
    browser.wait_until("document.querySelector('#live-curves polyline')");
    browser.screenshot(&screenshots().join("incident-overview.png"));
    browser.click_to_go("#live-verdict a[href$=\"#hot-rows\"]");
    browser.wait_until("location.pathname === '/tables/orders' && document.readyState === 'complete'");
    let hot = text(&mut browser);
    assert!(
        hot.contains("7-total") && hot.to_lowercase().contains("counted since"),
        "{hot}"
    );
    browser.screenshot(&screenshots().join("incident-hot-rows.png"));
    // Slow requests, and the disk's part in them: requests by shape, with rows read and bytes from disk.
    browser.open(&format!("{origin}/"));
    browser.click_to_go("nav a[href=\"/slow\"]");
    browser.wait_until("location.pathname === '/slow' && document.readyState === 'complete'");
    let slow = text(&mut browser);
    assert!(
        slow.contains("filter=SingleColumnValueFilter(?")
            && slow.contains("rows read")
            && slow.contains("from disk"),
        "{slow}"
    );
    browser.screenshot(&screenshots().join("incident-slow.png"));
    // The remedy for the keys.
    browser.open(&format!("{origin}/"));
    browser.click_to_go("nav a[href=\"/findings\"]");
    browser.wait_until("location.pathname === '/findings' && document.readyState === 'complete'");
    let findings = text(&mut browser);
    assert!(
        findings.contains("Hot row: 7-total") && findings.contains("Cure:"),
        "{findings}"
    );
    check(&browser, &origin, "/findings");
    server.stop();
}

/// Goal: the overview keeps itself up to date where it stands. Method: a table is made while the page is
/// scrolled down; its figures change, and the place and the focus do not.
#[test]
fn the_overview_refreshes_in_place() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    browser.look("light", 1280, 400);
    browser.open(&format!("http://{}/", server.http));
    browser.wait_until("document.readyState === 'complete'");
    browser.evaluate("document.querySelector('footer a').focus(); scrollTo(0, 300)");
    let place = browser.evaluate("scrollY");
    let before = browser.evaluate("document.getElementById('live-time').textContent");
    assert!(browser.evaluate("document.body.textContent.includes('0 tables')") == true);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async { create(&connect(&server).await, "new").await });
    browser.wait_until("document.body.textContent.includes('1 table,')");
    assert_ne!(
        browser.evaluate("document.getElementById('live-time').textContent"),
        before
    );
    assert_eq!(browser.evaluate("scrollY"), place);
    assert_eq!(
        browser.evaluate("document.activeElement.getAttribute('href')"),
        "/metrics"
    );
    assert_eq!(browser.errors(), Vec::<String>::new());
    // Without an answer the page says that its figures are old.
    server.kill();
    browser.wait_until("document.getElementById('live-state').textContent.includes('does not answer')");
}

/// Goal: the map can be read and zoomed into with a keyboard only.
#[test]
fn the_map_is_usable_with_a_keyboard() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(fill(&server));
    let origin = format!("http://{}", server.http);
    browser.look("dark", 1280, 900);
    browser.open(&format!("{origin}/heat?table=sequential"));
    browser.wait_until("document.getElementById('heat').dataset.loaded === 'true'");
    // The first stop of the tabulator is the link past the navigation; then on to the map.
    browser.press("Tab", 9);
    assert_eq!(browser.evaluate("document.activeElement.className"), "skip");
    for _ in 0..60 {
        if browser.evaluate("document.activeElement.id") == "heat-map" {
            break;
        }
        browser.press("Tab", 9);
    }
    assert_eq!(browser.evaluate("document.activeElement.id"), "heat-map");
    let told = |browser: &mut Chromium| {
        browser
            .evaluate("document.getElementById('heat-cell').textContent")
            .as_str()
            .map(str::to_owned)
    };
    // The focus begins at the hottest cell: the region from 2 on, which takes every write.
    let hottest = told(&mut browser).expect("a text");
    assert!(
        hottest.contains("keys from 2 up to 3") && !hottest.starts_with("0 "),
        "{hottest}"
    );
    browser.press("ArrowDown", 40);
    let below = told(&mut browser).expect("a text");
    assert!(
        below.starts_with("0 writes/s") && below.contains("keys from 3 up to 4"),
        "{below}"
    );
    browser.press("ArrowUp", 38);
    assert_eq!(told(&mut browser).as_ref(), Some(&hottest));
    browser.screenshot(&screenshots().join("heat-keyboard-dark.png"));
    browser.press_to_go("Enter", 13);
    browser.wait_until(
        "location.search.includes('start=2') && document.getElementById('heat')?.dataset.loaded === 'true'",
    );
    assert_eq!(
        browser.evaluate("new URLSearchParams(location.search).get('end')"),
        "3"
    );
    check(&browser, &origin, "the closer look");
    browser.evaluate("document.getElementById('heat-map').focus()");
    browser.press_to_go("Escape", 27);
    browser.wait_until(
        "!location.search.includes('start=') && document.getElementById('heat')?.dataset.loaded === 'true'",
    );
    server.stop();
}

/// Goal: a table of 10,000 regions is as quick as any. Prints how long pages take; it checks that
/// they are short.
#[test]
fn ten_thousand_regions_are_shown_in_pages() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&server).await;
        let schema = TableSchema::new("many")
            .expect("a name")
            .family(FamilySchema::new("f"));
        let splits = (1..10_000)
            .map(|split| format!("{split:05}").into_bytes())
            .collect();
        client.create_table_split(schema, splits).await.expect("a table");
        let table = client.table("many").expect("a name");
        let put = |row: usize| Put::new(format!("{row:05}x")).cell("f", "q", "value");
        table.put_multiple((0..10_000).map(put)).await.expect("written");
    });
    let origin = format!("http://{}", server.http);
    browser.look("light", 1280, 900);
    for address in [
        "/",
        "/tables",
        "/tables/many",
        "/tables/many?sort=writes&page=50",
        "/heat?table=many",
    ] {
        let (mut paints, mut answers) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            browser.open(&format!("{origin}{address}"));
            browser.wait_until("performance.getEntriesByName('first-contentful-paint').length > 0");
            let figure = |browser: &mut Chromium, of: &str| {
                let ms = browser.evaluate(of).as_f64().expect("a time in milliseconds");
                Duration::from_secs_f64(ms / 1_000.0)
            };
            paints.push(figure(
                &mut browser,
                "performance.getEntriesByName('first-contentful-paint')[0].startTime",
            ));
            answers.push(figure(
                &mut browser,
                "performance.getEntriesByType('navigation')[0].responseEnd",
            ));
        }
        paints.sort();
        answers.sort();
        println!(
            "{address}: first paint {:?} in the median, {:?} at most; answer {:?}",
            paints[2], paints[4], answers[2]
        );
        let rows = browser
            .evaluate("document.querySelectorAll('main tr').length")
            .as_u64()
            .expect("a number");
        assert!(rows <= 120, "{address} has {rows} rows");
        check(&browser, &origin, address);
    }
    // A clean stop would flush ten thousand regions, which is not part of this test.
    drop(server);
}

/// Goal: the guard against pages of other sites accepts our own form. Method: a browser sends the
/// form for a profile, with all headers that it adds to a POST, and gets the server's refusal of its seconds.
#[test]
fn our_own_form_is_not_taken_for_a_strangers() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["http.profiles=true"]);
    browser.open(&format!("http://{}/threads", server.http));
    browser.evaluate("document.querySelector('form').noValidate = true");
    browser.evaluate("document.querySelector('input[name=seconds]').value = '0'");
    browser.click_to_go("form button");
    browser.wait_until("location.pathname === '/debug/pprof/profile'");
    let shown = browser
        .evaluate("document.documentElement.textContent")
        .to_string();
    assert!(shown.contains("must be a whole number from 1 to 300"), "{shown}");
    server.stop();
}
