//! A browser can be made to send requests by web pages of other sites. The port refuses them on
//! every path, with any method.

use basalt_idl::call;
use basalt_idl::thrift1;
use basalt_idl::wire::BinaryWriter;
use basalt_test_support::Server;

use super::client::{Answer, Http};
use super::rows::create;

/// Paths of the port, with existing and missing tables and regions, and one path without a route.
const PATHS: [&str; 23] = [
    "/",
    "/tables",
    "/tables/t",
    "/regions/0123456789abcdef",
    "/regions/0123456789abcdef/files/0",
    "/cache",
    "/jobs",
    "/slow",
    "/settings",
    "/threads",
    "/heat",
    "/heat?table=t",
    "/api/heat?table=t",
    "/assets/style.css",
    "/assets/heat.js",
    "/assets/icon.svg",
    "/metrics",
    "/healthz",
    "/readyz",
    "/thrift1",
    "/thrift2",
    "/debug/pprof/profile",
    "/nothing",
];

/// Sends a request with these header lines and a `Content-Length` of 0.
fn send(server: &Server, method: &str, path: &str, headers: &str) -> Answer {
    let mut http = Http::connect(server.http);
    http.send(format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: 0\r\n\r\n").as_bytes());
    http.answer().expect("an answer")
}

fn started(dir: &tempfile::TempDir, settings: &[&str]) -> Server {
    let server = Server::start(&dir.path().join("data"), settings);
    Http::connect(server.http)
        .call("/thrift2", &create("t"))
        .expect("a good table");
    server
}

/// DNS rebinding: if the name of a page is pointed at the server after it was loaded, browsers
/// treat both as the same origin. Only `Host` shows the difference.
#[test]
fn a_rebound_name_reads_nothing() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = started(&dir, &[]);
    for path in PATHS {
        for method in ["GET", "POST", "PUT", "OPTIONS"] {
            let rebound = "Host: rebound.evil.example:9095\r\nSec-Fetch-Site: same-origin\r\n";
            let answer = send(&server, method, path, rebound);
            assert_eq!(answer.status, 421, "{method} {path}: {}", answer.text());
            for word in ["rebound.evil.example", "http.allowed_hosts", "Prometheus"] {
                assert!(answer.text().contains(word), "{}", answer.text());
            }
        }
    }
    for headers in ["", "Host: localhost\r\nHost: localhost\r\n"] {
        assert_eq!(
            send(&server, "GET", "/tables", headers).status,
            421,
            "{headers:?}"
        );
    }
    let port = server.http.port();
    for host in [
        "localhost",
        &format!("127.0.0.1:{port}"),
        &format!("[::1]:{port}"),
        "db.localhost:80",
    ] {
        assert_eq!(
            send(&server, "GET", "/tables", &format!("Host: {host}\r\n")).status,
            200,
            "{host}"
        );
    }
    let log = server.stop_and_log();
    let lines = log.lines().filter(|line| line.contains("rebound.evil.example"));
    assert_eq!(lines.count(), 1, "one line a minute: {log}");
}

/// A scrape by host name works if `http.allowed_hosts` has the name; other names are refused.
#[test]
fn allowed_names_are_answered() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = started(&dir, &["http.allowed_hosts=[\"basalt\", \"DB1.example.org\"]"]);
    for (host, status) in [
        ("basalt:9095", 200),
        ("db1.example.ORG", 200),
        ("db2.example.org", 421),
        ("basalt.example.org", 421),
    ] {
        let answer = send(&server, "GET", "/metrics", &format!("Host: {host}\r\n"));
        assert_eq!(answer.status, status, "{host}");
    }
    server.stop();
    let output = Server::try_start(
        &dir.path().join("data"),
        &["http.allowed_hosts=[\"http://basalt\"]"],
    );
    let output = output.expect_err("a name has no scheme");
    assert!(
        output.contains("http.allowed_hosts: \"http://basalt\" is no host name"),
        "{output}"
    );
}

/// Requests from other sites are refused, also those of a followed link. Requests by the user and
/// from our own pages are served.
#[test]
fn cross_site_requests_are_refused() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = started(&dir, &[]);
    let own = format!("Host: 127.0.0.1:{}\r\n", server.http.port());
    for path in PATHS {
        for told in [
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\n",
            "Sec-Fetch-Site: same-site\r\n",
            "Origin: http://evil.example\r\n",
            "Origin: null\r\n",
        ] {
            for method in ["GET", "POST"] {
                let answer = send(&server, method, path, &format!("{own}{told}"));
                assert_eq!(answer.status, 403, "{method} {path} {told}: {}", answer.text());
            }
        }
        let foreign = format!("{own}Referer: http://evil.example/page\r\n");
        assert_eq!(send(&server, "POST", path, &foreign).status, 403, "{path}");
    }
    for told in [
        "Sec-Fetch-Site: none\r\n",
        "Sec-Fetch-Site: same-origin\r\n",
        "Referer: http://wiki.example/\r\n",
    ] {
        assert_eq!(
            send(&server, "GET", "/tables", &format!("{own}{told}")).status,
            200,
            "{told}"
        );
    }
    // Thrift calls with an `Origin` are refused: no page of ours makes one.
    let mut message = Vec::new();
    call::write_call(
        &mut BinaryWriter::new(&mut message),
        7,
        &thrift1::args::GetTableNames {},
    );
    let origin = "Origin: http://127.0.0.1\r\n";
    let answer = Http::connect(server.http).ask("POST", "/thrift1", origin, &message);
    assert_eq!(answer.status, 403, "{}", answer.text());
    server.stop();
}

/// The headers of every reply forbid browsers to frame it, to guess its type and to embed it.
#[test]
fn every_answer_says_what_browsers_may_do() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = started(&dir, &[]);
    for path in PATHS {
        for host in ["127.0.0.1", "evil.example"] {
            let answer = send(&server, "GET", path, &format!("Host: {host}\r\n"));
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("x-frame-options", "DENY"),
                ("referrer-policy", "same-origin"),
                ("cross-origin-resource-policy", "same-origin"),
            ] {
                assert_eq!(answer.header(name), Some(value), "{path} of {host}");
            }
            let policy = answer.header("content-security-policy").expect("a policy");
            assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        }
    }
    server.stop();
}

/// A server that is open to strangers, or a rehearsal, has a notice on its pages and in its log.
#[test]
fn every_page_says_who_reaches_the_server() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let is_page = |path: &&str| {
        let others = [
            "/api/", "/assets/", "/metrics", "/healthz", "/readyz", "/thrift", "/debug/", "/nothing",
        ];
        !others.iter().any(|other| path.starts_with(other))
    };
    let pages: Vec<&str> = PATHS
        .into_iter()
        .filter(is_page)
        .chain(["/tables/none"])
        .collect();
    assert!(pages.len() > 12, "{pages:?}");
    let page = |server: &Server, path| Http::connect(server.http).ask("GET", path, "", b"").text();
    let open = [
        "server.listen=\"0.0.0.0:0\"",
        "server.insecure=true",
        "rehearsal.servers=2",
    ];
    let server = Server::start_as_set(&dir.path().join("data"), &open);
    Http::connect(server.http)
        .call("/thrift2", &create("t"))
        .expect("a good table");
    let notices = [
        "open to strangers: anyone who reaches server.listen = 0.0.0.0:0 can read and delete",
        "This is a rehearsal",
    ];
    for path in &pages {
        for notice in notices {
            let text = page(&server, path);
            assert!(text.contains(notice), "{path}: {notice} is not in\n{text}");
        }
    }
    let log = server.stop_and_log();
    assert!(log.contains(notices[0]) && log.contains("a rehearsal: "), "{log}");

    let server = Server::start(&dir.path().join("data"), &[]);
    for path in &pages {
        let text = page(&server, path);
        assert!(
            !text.contains("strangers") && !text.contains("rehearsal:"),
            "{path}:\n{text}"
        );
    }
    assert!(!server.stop_and_log().contains("strangers"));
}
