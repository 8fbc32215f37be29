//! Rows: reads, writes, checks, counters, multigets, and keys of all bytes.

use basalt_test_support::Server;

use super::Started;
use super::client::{BINARY, JSON, Rest, XML, base64, cell_set};

/// Checks 7, 8 and 9.
#[test]
fn rows_are_stored_and_read() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let two = cell_set(&[("r1", &[("f:a", "1"), ("g:b", "2")]), ("r2", &[("f:a", "3")])]);
    let put = rest.ask("PUT", "/t/fakerow", JSON, two);
    assert_eq!((put.status, put.body.len()), (200, 0));
    let expected = vec![
        ("f:a".to_owned(), b"1".to_vec()),
        ("g:b".to_owned(), b"2".to_vec()),
    ];
    assert_eq!(rest.get("/t/r1").rows(), [(b"r1".to_vec(), expected)]);
    assert_eq!(rest.get("/t/r2").keys(), ["r2"]);
    assert_eq!(rest.get("/t/fakerow").status, 404);
    assert_eq!(rest.get("/t/r1,r3").keys(), ["r1", "r2"]);
    assert_eq!(rest.get("/t/r*/f:a").keys(), ["r1", "r2"]);
    assert_eq!(rest.get("/t/x,z").status, 404);

    let value: Vec<u8> = (0..=255).collect();
    rest.put("/t/r/f:a", &value);
    let got = rest.ask("GET", "/t/r/f:a", "Accept: */*\r\n", "");
    assert_eq!((got.status, &got.body), (200, &value));
    assert_eq!(got.header("content-type"), Some("application/octet-stream"));
    let time: i64 = got
        .header("x-timestamp")
        .expect("a time")
        .parse()
        .expect("a number");
    assert!(time > 1_600_000_000_000);
    assert_eq!(got.header("cache-control"), None);
    let untyped = rest.ask("PUT", "/t/r/f:b", "", "untyped");
    assert_eq!(untyped.status, 200);
    assert_eq!(rest.value("/t/r/f:b").as_deref(), Some(&b"untyped"[..]));
    let moved = "X-Row: moved\r\nX-Column: g:c\r\nX-Timestamp: 7\r\n";
    assert_eq!(
        rest.ask("POST", "/t/r/f:a", &format!("{BINARY}{moved}"), "v")
            .status,
        200
    );
    let got = rest.ask("GET", "/t/moved/g:c", "", "");
    assert_eq!((got.text().as_str(), got.header("x-timestamp")), ("v", Some("7")));

    let whole = rest.ask("GET", "/t/r", "", "");
    assert_eq!(whole.status, 400);
    assert!(whole.text().contains("text/xml, application/json") && whole.text().lines().count() == 1);
    for (path, status) in [
        ("/missing/r", 404),
        ("/t/r/nofamily:a", 404),
        ("/t/missing/f:a", 404),
    ] {
        assert_eq!(rest.get(path).status, status, "{path}");
    }
    assert_eq!(rest.ask("PUT", "/t/r/f", BINARY, "v").status, 400);
    assert_eq!(
        rest.ask("PUT", "/t/r/f:a", "Content-Type: text/html\r\n", "v")
            .status,
        415
    );
    assert_eq!(
        rest.ask("GET", "/t/r/f:a", "Accept: text/html\r\n", "").status,
        406
    );
    started.server.stop();
}

/// Checks 10 and 11.
#[test]
fn times_choose_versions() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    for time in [5, 6, 7] {
        let headers = format!("{BINARY}X-Timestamp: {time}\r\n");
        assert_eq!(
            rest.ask("PUT", "/t/r/f:a", &headers, time.to_string()).status,
            200
        );
    }
    let values = |rest: &mut Rest, path: &str| -> Vec<String> {
        let rows = rest.get(path).rows();
        rows[0]
            .1
            .iter()
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
            .collect()
    };
    assert_eq!(values(rest, "/t/r/f:a/6?v=9"), ["5"]);
    assert_eq!(values(rest, "/t/r/f:a/5,7?v=9"), ["6", "5"]);
    assert_eq!(values(rest, "/t/r/f:a?v=2"), ["7", "6"]);
    assert_eq!(rest.ask("DELETE", "/t/r/f:a/5,7", "", "").status, 400);
    assert_eq!(rest.ask("DELETE", "/t/r/f:a?check=delete", "", "").status, 400);
    assert_eq!(rest.ask("DELETE", "/t/r*/f:a", "", "").status, 400);
    assert_eq!(rest.ask("DELETE", "/t/r/f:a/6", "", "").status, 200);
    assert_eq!(values(rest, "/t/r/f:a?v=9"), ["7"]);
    for path in ["/t/r/f:a?v=0", "/t/r/f:a?v=x", "/t/r/f:a/x", "/t/r?e=hex"] {
        assert_eq!(rest.get(path).status, 400, "{path}");
    }
    assert_eq!(rest.ask("DELETE", "/t/nothing", "", "").status, 200);
    assert_eq!(rest.ask("DELETE", "/t/r", "", "").status, 200);
    assert_eq!(rest.get("/t/r").status, 404);
    started.server.stop();
}

/// Checks 12 and 13.
#[test]
fn checks_decide_over_writes() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    rest.put("/t/r/f:a", "old");
    let put = |expected: &str| cell_set(&[("r", &[("f:a", "new"), ("f:b", "more"), ("f:a", expected)])]);
    let wrong = rest.ask("PUT", "/t/r?check=put", JSON, put("other"));
    assert_eq!((wrong.status, wrong.body.len()), (304, 0));
    assert_eq!(rest.value("/t/r/f:a").as_deref(), Some(&b"old"[..]));
    assert_eq!(rest.ask("PUT", "/t/r?check=put", JSON, put("old")).status, 200);
    assert_eq!(rest.value("/t/r/f:a").as_deref(), Some(&b"new"[..]));
    assert_eq!(rest.value("/t/r/f:b").as_deref(), Some(&b"more"[..]));

    let delete = cell_set(&[("r", &[("f:b", ""), ("f:a", "new")])]);
    assert_eq!(rest.ask("PUT", "/t/r?check=delete", JSON, &delete).status, 200);
    assert_eq!(rest.value("/t/r/f:b"), None);
    assert_eq!(rest.value("/t/r/f:a").as_deref(), Some(&b"new"[..]));
    let alone = cell_set(&[("r", &[("f:a", "new")])]);
    assert_eq!(rest.ask("POST", "/t/r?check=delete", JSON, &alone).status, 200);
    assert_eq!(rest.value("/t/r/f:a"), None);
    assert_eq!(rest.ask("POST", "/t/r?check=delete", JSON, &alone).status, 304);
    for (query, body) in [
        ("check=put", cell_set(&[("r", &[("f:a", "1")])])),
        ("check=put", cell_set(&[("r", &[("f:b", "1"), ("f:a", "x")])])),
        ("check=put", cell_set(&[("r", &[("f:", "1"), ("f:", "x")])])),
        (
            "check=put",
            cell_set(&[("r", &[("f:a", "1"), ("f:a", "x")]), ("s", &[("f:a", "1")])]),
        ),
        ("check=delete", cell_set(&[("r", &[])])),
        ("check=other", cell_set(&[("r", &[("f:a", "1")])])),
    ] {
        let refused = rest.ask("PUT", &format!("/t/r?{query}"), JSON, body);
        assert_eq!(
            (refused.status, refused.text().lines().count()),
            (400, 1),
            "{query}"
        );
    }
    started.server.stop();
}

/// Checks 14 and 15.
#[test]
fn counters_and_appends_return_the_new_cells() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let five = cell_set(&[("r", &[("f:n", "5")])]);
    let first = rest.ask("PUT", "/t/r?check=increment", JSON, &five);
    assert_eq!((first.status, first.body.len()), (200, 0));
    let second = rest.ask("PUT", "/t/r?check=increment&rr=true", JSON, &five);
    assert_eq!(second.rows()[0].1[0].1, 10_i64.to_be_bytes());
    let text = cell_set(&[("r", &[("f:x", "ab")])]);
    rest.ask("PUT", "/t/r?check=append", JSON, &text);
    let whole = rest.ask("PUT", "/t/r?check=append&rr=true", JSON, &text);
    assert_eq!(whole.rows()[0].1[0].1, b"abab");
    let wrong = rest.ask(
        "PUT",
        "/t/r?check=increment",
        JSON,
        cell_set(&[("r", &[("f:n", "five")])]),
    );
    assert_eq!(wrong.status, 400);
    started.server.stop();
}

/// Check 16.
#[test]
fn a_multiget_answers_in_the_order_asked() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let rows = cell_set(&[("k1", &[("f:a", "1"), ("f:b", "1")]), ("k2", &[("f:a", "2")])]);
    rest.ask("PUT", "/t/$multiput", JSON, rows);
    assert_eq!(
        rest.get("/t/multiget?row=k2&row=none&row=k1").keys(),
        ["k2", "k1"]
    );
    let columns = rest.get("/t/multiget/f:b?row=k1").rows();
    assert_eq!(columns[0].1, [("f:b".to_owned(), b"1".to_vec())]);
    assert_eq!(rest.get("/t/multiget?row=k1/f:a").rows()[0].1.len(), 1);
    assert_eq!(rest.get("/t/multiget?e=b64&row=azE").keys(), ["k1"]);
    let filter = "filter=ValueFilter(%3D,%27binary:2%27)";
    assert_eq!(
        rest.get(&format!("/t/multiget?row=k1&row=k2&{filter}")).keys(),
        ["k2"]
    );
    assert_eq!(rest.get("/t/multiget?row=none").status, 404);
    assert_eq!(rest.get("/t/multiget").status, 404);
    assert_eq!(
        rest.ask("GET", "/t/multiget?row=k1", "", "")
            .header("content-type"),
        Some("text/xml")
    );
    started.server.stop();
}

/// Checks 17 to 20.
#[test]
fn keys_are_bytes_in_every_encoding() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    rest.put("/t/%FF%FE/f:a", "bytes");
    assert_eq!(rest.value("/t/__4/Zjph?e=b64").as_deref(), Some(&b"bytes"[..]));
    let basic = "Encoding: b64basic\r\nAccept: application/octet-stream\r\n";
    assert_eq!(rest.ask("GET", "/t/%2F%2F4%3D/Zjph", basic, "").text(), "bytes");
    let scanned = rest.get("/t/*").rows();
    assert_eq!(scanned[0].0, b"\xff\xfe");

    for path in ["/t//schema/f:a", "/t/%73chema/f:a", "/t/c2NoZW1h/Zjph?e=b64"] {
        rest.put(path, path);
        assert_eq!(
            rest.value("/t//schema/f:a").as_deref(),
            Some(path.as_bytes()),
            "{path}"
        );
    }
    // As Java's URLEncoder writes keys, and as JavaScript's encodeURIComponent does.
    for (key, java, script) in [
        ("a b", "a+b", "a%20b"),
        ("a+b", "a%2Bb", "a%2Bb"),
        ("a/b", "a%2Fb", "a%2Fb"),
        ("a,b", "a%2Cb", "a%2Cb"),
    ] {
        for encoded in [java, script] {
            rest.put(&format!("/t/{encoded}/f:k"), encoded);
            assert_eq!(rest.get(&format!("/t/{encoded}/f:k")).keys(), [key]);
            let found = rest.get(&format!("/t/{java}/f:k")).rows();
            assert_eq!(found[0].1[0].1, encoded.as_bytes(), "{key}");
        }
    }
    started.server.stop();
}

#[test]
fn cells_come_in_xml_and_without_keys() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let body = format!(
        "<CellSet><Row><Cell timestamp='7'>{}</Cell><Cell column='{}'>{}</Cell></Row></CellSet>",
        base64("1"),
        base64("g:b"),
        base64("2")
    );
    assert_eq!(rest.ask("PUT", "/t/r/f:a/9", XML, body).status, 200);
    let got = rest.ask("GET", "/t/r", XML, "").text();
    let cell = format!("<Cell column=\"{}\" timestamp=\"7\">MQ==</Cell>", base64("f:a"));
    assert!(got.contains(&cell) && got.contains(&base64("g:b")), "{got}");
    started.server.stop();
}

/// Check 35.
#[test]
fn acknowledged_writes_survive_kill_9() {
    let mut started = Started::new();
    for number in 0..200 {
        started
            .rest
            .put(&format!("/t/r{number:03}/f:a"), number.to_string());
    }
    let data = started.data();
    started.server.kill();
    let server = Server::start(&data, &[]);
    let keys = Rest::connect(server.thrift).get("/t/*").keys();
    let expected: Vec<String> = (0..200).map(|number| format!("r{number:03}")).collect();
    assert_eq!(keys, expected);
    server.stop();
}
