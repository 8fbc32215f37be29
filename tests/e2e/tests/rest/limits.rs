//! Access: read-only servers, pages of other sites, logins, and the three ports.

use basalt_test_support::{Server, administer};

use super::Started;
use super::client::{BINARY, JSON, Rest, base64};

/// Check 30.
#[test]
fn a_read_only_interface_refuses_writes_and_scanners() {
    let mut started = Started::new();
    started.rest.put("/t/r/f:a", "v");
    let data = started.data();
    started.server.stop();
    let server = Server::start(&data, &["rest.readonly=true"]);
    let mut rest = Rest::connect(server.thrift);
    assert_eq!(rest.value("/t/r/f:a").as_deref(), Some(&b"v"[..]));
    assert_eq!(rest.get("/t/*").keys(), ["r"]);
    for (method, path) in [
        ("PUT", "/t/r/f:a"),
        ("POST", "/t/r/f:a"),
        ("DELETE", "/t/r"),
        ("PUT", "/t/schema"),
        ("POST", "/t/schema"),
        ("DELETE", "/t/schema"),
        ("PUT", "/t/scanner"),
        ("POST", "/namespaces/n"),
        ("PUT", "/namespaces/n"),
        ("DELETE", "/namespaces/n"),
    ] {
        let refused = rest.ask(method, path, JSON, "{}");
        assert_eq!(refused.status, 403, "{method} {path}");
        assert!(refused.text().contains("rest.readonly"));
    }
    server.stop();
}

/// Check 31, on all three ports.
#[test]
fn pages_of_other_sites_can_do_nothing() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let port = free_port();
    let server = Server::start(
        &dir.path().join("data"),
        &[&format!("rest.listen=127.0.0.1:{port}")],
    );
    Rest::connect(server.thrift).create_table();
    let ports = [
        (server.thrift, ""),
        (server.http, "/rest"),
        (format!("127.0.0.1:{port}").parse().expect("an address"), ""),
    ];
    for (address, prefix) in ports {
        let mut rest = Rest::connect(address);
        let path = format!("{prefix}/t/r/f:a");
        assert_eq!(rest.ask_as("evil.example", "GET", &path, "", "").status, 421);
        let site = "Sec-Fetch-Site: cross-site\r\n";
        assert_eq!(rest.ask("GET", &path, site, "").status, 403);
        let foreign = "Origin: http://evil.example\r\n";
        assert_eq!(rest.ask("GET", &path, foreign, "").status, 403);
        let own = "Origin: http://127.0.0.1\r\n";
        assert_eq!(rest.ask("POST", &path, own, "a Blob").status, 403);
        assert_eq!(
            rest.ask("POST", &format!("{prefix}/namespaces/n"), own, "")
                .status,
            403
        );
        assert_eq!(rest.ask("GET", &format!("{path}?doAs=root"), "", "").status, 403);
        let options = rest.ask("OPTIONS", &path, "", "");
        assert_eq!(
            (options.status, options.header("access-control-allow-origin")),
            (200, None)
        );
        assert_eq!(
            rest.ask("GET", &path, BINARY, "").status,
            404,
            "nothing was stored"
        );

        // And programs can do everything, with addresses of this port.
        let created = rest.ask(
            "PUT",
            &format!("{prefix}/u/schema"),
            JSON,
            r#"{"ColumnSchema":[{"name":"f"}]}"#,
        );
        let location = format!("http://127.0.0.1{prefix}/u/schema");
        assert_eq!(
            (created.status, created.header("location")),
            (201, Some(&location[..]))
        );
        assert_eq!(
            rest.ask("DELETE", &format!("{prefix}/u/schema"), "", "").status,
            200
        );
    }
    // The pages of the HTTP port are where they were.
    let overview = Rest::connect(server.http).ask("GET", "/healthz", "", "");
    assert_eq!(overview.text(), "ok\n");
    server.stop();
}

fn free_port() -> u16 {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    socket.local_addr().expect("it is bound").port()
}

/// Check 33: the protocols share the main port.
#[test]
fn the_main_port_speaks_all_protocols_at_once() {
    use std::io::{Read as _, Write as _};
    let mut started = Started::new();
    let mut word = std::net::TcpStream::connect(started.server.thrift).expect("the port is open");
    word.write_all(b"ruok").expect("the server reads");
    started.rest.put("/t/r/f:a", "v");
    let mut answer = String::new();
    word.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "imok");
    assert_eq!(started.rest.value("/t/r/f:a").as_deref(), Some(&b"v"[..]));
    let (requests, failed) = (
        started
            .server
            .metric("basalt_requests_total{api=\"rest\",method=\"put\"}"),
        started
            .server
            .metric("basalt_failed_requests_total{api=\"rest\",method=\"put\"}"),
    );
    assert_eq!((requests, failed), (1, 0));
    started.server.stop();
}

/// Rights and logins are those of every call.
#[test]
fn users_log_in_and_need_rights() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    administer(&data, &["user", "create", "root", "--superuser"], "open sesame\n");
    administer(&data, &["user", "create", "eve"], "open sesame\n");
    let server = Server::start(&data, &[]);
    let mut rest = Rest::connect(server.thrift);
    let anonymous = rest.get("/");
    assert_eq!(anonymous.status, 401);
    assert!(
        anonymous
            .header("www-authenticate")
            .is_some_and(|challenge| challenge.starts_with("Basic"))
    );
    let login = |user: &str, password: &str| {
        format!(
            "{JSON}Authorization: Basic {}\r\n",
            base64(format!("{user}:{password}"))
        )
    };
    assert_eq!(
        rest.ask("GET", "/", &login("root", "wrong sesame"), "").status,
        401
    );
    let schema = r#"{"ColumnSchema":[{"name":"f"}]}"#;
    assert_eq!(
        rest.ask("PUT", "/t/schema", &login("eve", "open sesame"), schema)
            .status,
        403
    );
    assert_eq!(
        rest.ask("PUT", "/t/schema", &login("root", "open sesame"), schema)
            .status,
        201
    );
    let scanner = rest.ask("PUT", "/t/scanner", &login("root", "open sesame"), "{}");
    let path = scanner
        .header("location")
        .expect("an address")
        .replace("http://127.0.0.1", "");
    assert_eq!(
        rest.ask("GET", &path, &login("eve", "open sesame"), "").status,
        404,
        "another user's"
    );
    assert_eq!(
        rest.ask("GET", &path, &login("root", "open sesame"), "").status,
        204
    );
    assert_eq!(
        rest.ask("GET", "/t/r", &login("eve", "open sesame"), "").status,
        403
    );
    server.stop();
}

/// The slow log has what a request was about, also of an answer in chunks.
#[test]
fn slow_requests_are_recorded() {
    let mut started = Started::with(&["slow_log.threshold_ms=0"]);
    for number in 0..12 {
        started.rest.put(&format!("/t/r{number:02}/f:a"), vec![0; 50_000]);
    }
    let scanned = started.rest.get("/t/r*?limit=11");
    assert_eq!(
        (scanned.keys().len(), scanned.header("transfer-encoding")),
        (11, Some("chunked"))
    );
    let page = started.server.http_get("/slow");
    for expected in ["path=/t/r00/f:a", "path=/t/r*?limit=11", "replaceSchema"] {
        assert!(page.contains(expected), "no {expected} in\n{page}");
    }
    started.server.stop();
}
