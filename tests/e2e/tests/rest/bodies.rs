//! Bad bodies, and bodies that are packed.

use std::io::{Read as _, Write as _};

use super::Started;
use super::client::{BINARY, JSON, PROTOBUF, XML, cell_set};

/// Check 28. The connection is kept, and answers the next request.
#[test]
fn malformed_input_is_refused_in_one_line() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    for (method, path, headers, body) in [
        ("PUT", "/t/r", JSON, &b"{\"Row\":"[..]),
        ("PUT", "/t/r", JSON, br#"{"row":[]}"#),
        ("PUT", "/t/r", XML, b"<CellSet><Row>"),
        ("PUT", "/t/r", XML, b"<!DOCTYPE x [<!ENTITY y 'z'>]><CellSet/>"),
        ("PUT", "/t/r", PROTOBUF, b"\xff\xff\xff"),
        (
            "PUT",
            "/t/r",
            JSON,
            br#"{"Row":[{"key":"","Cell":[{"column":"Zjph","$":"MQ=="}]}]}"#,
        ),
        (
            "PUT",
            "/t/r/f:a",
            "Content-Type: application/octet-stream\r\nX-Timestamp: soon\r\n",
            b"v",
        ),
        ("PUT", "/t/schema", JSON, b"[]"),
        ("PUT", "/t/schema", XML, b"<Schema/>"),
        ("PUT", "/t/scanner", XML, b"<Scanner batch='many'/>"),
        ("PUT", "/t/scanner", JSON, br#"{"unknown":1}"#),
        ("POST", "/namespaces/n", JSON, br#"{"x":1}"#),
        ("PUT", "/t/r/f:a", "Content-Encoding: gzip\r\n", b"not gzip"),
    ] {
        let refused = rest.ask(method, path, headers, body);
        let text = refused.text();
        assert_eq!((refused.status, text.lines().count()), (400, 1), "{path}: {text}");
        assert!(text.ends_with('\n') && !text.contains("at org."), "{text}");
    }
    assert_eq!(rest.ask("PATCH", "/t/r", "", "").status, 405);
    assert_eq!(rest.ask("GET", "/t/r/f:a/1/2", JSON, "").status, 400);
    let long = rest.ask("GET", &format!("/t/{}", "k".repeat(40_000)), JSON, "");
    assert_eq!(long.status, 400, "{}", long.text());
    started.server.stop();
}

/// Check 26.
#[test]
fn bodies_are_packed_both_ways() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let pack = |plain: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(plain).expect("a vector takes all");
        encoder.finish().expect("a vector takes all")
    };
    let unpack = |packed: &[u8]| {
        let mut plain = String::new();
        let mut decoder = flate2::read::GzDecoder::new(packed);
        decoder.read_to_string(&mut plain).expect("gzip of text");
        plain
    };
    let value = "text ".repeat(20_000);
    let packed = format!("{BINARY}Content-Encoding: gzip\r\n");
    assert_eq!(
        rest.ask("PUT", "/t/r/f:a", &packed, pack(value.as_bytes()))
            .status,
        200
    );
    assert_eq!(rest.value("/t/r/f:a").as_deref(), Some(value.as_bytes()));
    let accept = format!("{BINARY}Accept-Encoding: deflate, gzip;q=0.5\r\n");
    let got = rest.ask("GET", "/t/r/f:a", &accept, "");
    assert_eq!(got.header("content-encoding"), Some("gzip"));
    assert!(got.body.len() < value.len() / 10);
    assert_eq!(unpack(&got.body), value);
    let missing = rest.ask("GET", "/t/none/f:a", &accept, "");
    assert_eq!(missing.status, 404);
    assert!(unpack(&missing.body).ends_with('\n'));
    let never = rest.ask("GET", "/t/r/f:a", "Accept-Encoding: gzip;q=0\r\n", "");
    assert_eq!(
        (never.header("content-encoding"), never.body.len()),
        (None, value.len())
    );

    // A scan in several chunks.
    let rows: Vec<String> = (0..50).map(|number| format!("s{number}")).collect();
    for row in &rows {
        let cells = [("f:a", &value[..20_000])];
        assert_eq!(
            rest.ask("PUT", "/t/fakerow", JSON, cell_set(&[(row, &cells)]))
                .status,
            200
        );
    }
    let plain = rest.get("/t/s*").text();
    let packed = rest.ask("GET", "/t/s*", &format!("{JSON}Accept-Encoding: gzip\r\n"), "");
    assert_eq!(packed.header("transfer-encoding"), Some("chunked"));
    assert_eq!(unpack(&packed.body), plain);
    started.server.stop();
}

/// Check 29, in clear and packed.
#[test]
fn bodies_above_the_limit_are_refused() {
    let mut started = Started::with(&["server.max_message_bytes=\"1MiB\""]);
    let rest = &mut started.rest;
    let large = rest.ask("PUT", "/t/r/f:a", BINARY, vec![0; (1 << 20) + 1]);
    assert_eq!(large.status, 413, "{}", large.text());
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&vec![0; 20 << 20]).expect("a vector takes all");
    let bomb = encoder.finish().expect("a vector takes all");
    assert!(bomb.len() < 1 << 20);
    let packed = format!("{BINARY}Content-Encoding: gzip\r\n");
    assert_eq!(rest.ask("PUT", "/t/r/f:a", &packed, bomb).status, 413);
    assert_eq!(rest.get("/t/r").status, 404);
    started.server.stop();
}
