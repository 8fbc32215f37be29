//! Stateless scans, and scanners with their filters.

use std::time::Duration;

use super::Started;
use super::client::{Answer, BINARY, JSON, PROTOBUF, Rest, XML, base64, cell_set};

/// Rows `p0` to `p4` with two cells each, and `q`.
fn fill(rest: &mut Rest) {
    let cells = [("f:a", "1"), ("g:b", "2")];
    let rows: [(&str, &[_]); 6] = ["p0", "p1", "p2", "p3", "p4", "q"].map(|key| (key, &cells[..]));
    assert_eq!(rest.ask("PUT", "/t/fakerow", JSON, cell_set(&rows)).status, 200);
}

/// The path of a scanner of this model.
fn open(rest: &mut Rest, model: &str) -> String {
    let opened = rest.ask("PUT", "/t/scanner", JSON, model);
    assert_eq!(opened.status, 201, "{}", opened.text());
    let location = opened.header("location").expect("an address");
    let path = location
        .strip_prefix("http://127.0.0.1")
        .expect("an absolute address")
        .to_owned();
    let id = path
        .strip_prefix("/t/scanner/")
        .expect("the address of a scanner");
    assert!(
        id.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    );
    path
}

/// Cells of each row of an answer.
fn counts(answer: &Answer) -> Vec<usize> {
    answer.rows().iter().map(|(_, cells)| cells.len()).collect()
}

/// Checks 24 and 25.
#[test]
fn stateless_scans_have_parameters() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let empty = rest.get("/t/*");
    assert_eq!((empty.status, empty.text().as_str()), (200, r#"{"Row":[]}"#));
    assert!(rest.ask("GET", "/t/*", XML, "").text().ends_with("<CellSet/>"));
    assert_eq!(rest.ask("GET", "/t/*", PROTOBUF, "").body, b"");
    fill(rest);
    let mut keys = |query: &str| rest.get(&format!("/t/{query}")).keys().join(" ");
    assert_eq!(keys("*"), "p0 p1 p2 p3 p4 q");
    assert_eq!(keys("p*"), "p0 p1 p2 p3 p4");
    assert_eq!(keys("p%2A?limit=2"), "p0 p1");
    assert_eq!(keys("*?startrow=p2&endrow=p4"), "p2 p3");
    assert_eq!(keys("p*?reversed=true"), "p4 p3 p2 p1 p0");
    assert_eq!(keys("*?reversed=true&startrow=p2"), "p2 p1 p0");
    assert_eq!(keys("*?e=b64&startrow=cDM"), "p3 p4 q");
    assert_eq!(keys("*?filter=PrefixFilter(%27q%27)"), "q");
    assert_eq!(keys("*?filter_b64=UHJlZml4RmlsdGVyKCdwMycp"), "p3");
    assert_eq!(keys("*?limit=3&batchsize=1"), "p0 p0 p1");
    assert_eq!(keys("*?endtime=1"), "");
    assert_eq!(keys("*?startrow=z&endrow=a"), "");
    let one = rest.get("/t/p0*?column=f:a&column=g:none&maxversions=2&cacheblocks=false");
    assert_eq!(one.rows()[0].1, [("f:a".to_owned(), b"1".to_vec())]);
    for (query, status) in [
        ("*?limit=x", 400),
        ("*?filter=No(", 400),
        ("*?starttime=5&endtime=1", 400),
        ("*?maxversions=0", 400),
        ("*?column=none:a", 404),
    ] {
        let refused = rest.get(&format!("/t/{query}"));
        assert_eq!(
            (refused.status, refused.text().lines().count()),
            (status, 1),
            "{query}: {}",
            refused.text()
        );
    }
    assert_eq!(rest.get("/missing/*").status, 404);
    assert_eq!(rest.ask("DELETE", "/t/p*", "", "").status, 405);
    started.server.stop();
}

/// Check 24: frames have a length of two bytes that fits, also where rows are larger.
#[test]
fn frames_of_protobuf_fit_their_length() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    let value = "v".repeat(20_000);
    let cells = [("f:a", &value[..]), ("f:b", &value), ("g:b", "2")];
    let keys: Vec<String> = (0..40).map(|number| format!("r{number:02}")).collect();
    for key in &keys {
        assert_eq!(
            rest.ask("PUT", "/t/fakerow", JSON, cell_set(&[(key, &cells)]))
                .status,
            200
        );
    }
    let scanned = rest.ask("GET", "/t/*", PROTOBUF, "");
    assert_eq!(scanned.header("content-type"), Some("application/x-protobuf"));
    let (mut body, mut frames) = (&scanned.body[..], 0);
    while let Some((length, rest)) = body.split_first_chunk::<2>() {
        let length = i16::from_be_bytes(*length);
        body = &rest[usize::try_from(length).expect("a length that Java reads")..];
        frames += 1;
    }
    assert!(frames >= 2 * keys.len(), "{frames}");
    assert!(scanned.body.len() > 40 * 40_000);
    rest.put("/t/large/f:a", vec![0; 40_000]);
    let refused = rest.ask("GET", "/t/large*", PROTOBUF, "");
    assert!(
        refused.status == 400 && refused.text().contains("ask for JSON or XML"),
        "{refused:?}"
    );
    started.server.stop();
}

/// Checks 21 and 32.
#[test]
fn scanners_count_cells() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    fill(rest);
    let path = open(rest, r#"{"batch":3}"#);
    let first = rest.get(&path);
    assert_eq!(
        (counts(&first), first.header("cache-control")),
        (vec![2, 1], Some("no-cache"))
    );
    assert_eq!(rest.ask("HEAD", &path, JSON, "").status, 200);
    assert_eq!(counts(&rest.get(&path)), [1, 2]);
    assert_eq!(counts(&rest.get(&format!("{path}?c=1"))), [1]);
    assert_eq!(counts(&rest.get(&format!("{path}?n=1&c=9"))), [1]);
    let cell = rest.ask("GET", &path, BINARY, "");
    assert_eq!(
        (cell.header("x-row"), cell.header("x-column")),
        (Some(&base64("p4")[..]), Some(&base64("f:a")[..]))
    );
    assert_eq!(counts(&rest.get(&path)), [1, 2]);
    for _ in 0..2 {
        let end = rest.get(&path);
        assert_eq!((end.status, end.body.len()), (204, 0));
    }
    assert_eq!(rest.ask("DELETE", &path, "", "").status, 200);
    assert_eq!(rest.ask("DELETE", &path, "", "").status, 404);
    assert_eq!(rest.get(&path).status, 404);

    let whole = open(rest, "\"\"");
    assert_eq!(rest.get(&whole).keys().len(), 6);
    let range = format!(
        r#"{{"startRow":"{}","endRow":"{}","column":["{}"]}}"#,
        base64("p1"),
        base64("p3"),
        base64("f")
    );
    let path = open(rest, &range);
    assert_eq!(counts(&rest.get(&path)), [1, 1]);
    let missing = rest.ask("POST", "/missing/scanner", JSON, "{}");
    assert_eq!(missing.status, 201);
    let path = missing
        .header("location")
        .expect("an address")
        .replace("http://127.0.0.1", "");
    assert_eq!(rest.get(&path).status, 404);
    let options = rest.ask("OPTIONS", "/t/scanner", "", "");
    assert_eq!(
        (options.status, options.header("allow")),
        (200, Some("PUT, POST, OPTIONS"))
    );
    started.server.stop();
}

/// Check 23.
#[test]
fn scanners_have_filters() {
    let mut started = Started::new();
    let rest = &mut started.rest;
    fill(rest);
    let nulls = r#""op":null,"family":null,"qualifier":null,"filters":null,"limit":null,"offset":null,"comparator":null"#;
    let value = |text: &str| {
        format!(
            r#""comparator":{{"type":"BinaryComparator","value":"{}"}}"#,
            base64(text)
        )
    };
    for (filter, keys) in [
        (format!(r#"{{"type":"PrefixFilter","value":"{}",{nulls}}}"#, base64("p1")), "p1"),
        (format!(r#"{{"type":"RowFilter","op":"GREATER",{}}}"#, value("p3")), "p4 q"),
        (r#"{"type":"RowFilter","op":"EQUAL","comparator":{"type":"RegexStringComparator","value":"p[24]"}}"#.to_owned(), "p2 p4"),
        (r#"{"type":"PageFilter","value":"2"}"#.to_owned(), "p0 p1"),
        (format!(r#"{{"type":"SingleColumnValueFilter","op":"NOT_EQUAL","family":"{}","qualifier":"{}",{}}}"#,
            base64("f"), base64("a"), value("1")), ""),
        (format!(r#"{{"type":"FilterList","op":"MUST_PASS_ALL","filters":[{{"type":"PrefixFilter","value":"{}"}},
            {{"type":"FirstKeyOnlyFilter"}}]}}"#, base64("p")), "p0 p1 p2 p3 p4"),
    ] {
        let model = serde_json::json!({ "filter": filter }).to_string();
        let path = open(rest, &model);
        let got = rest.get(&path);
        let found = if got.status == 204 { String::new() } else { got.keys().join(" ") };
        assert_eq!(found, keys, "{filter}");
    }
    let bad = rest.ask(
        "PUT",
        "/t/scanner",
        JSON,
        r#"{"filter":"{\"type\":\"NoFilter\"}"}"#,
    );
    assert_eq!((bad.status, bad.text().lines().count()), (400, 1));
    started.server.stop();
}

/// Check 22, and the stateless scan of the same table: neither needs the memory of the table, and both are
/// complete.
#[test]
fn a_table_larger_than_memory_is_scanned() {
    let settings = [
        "requests.memory_bytes=\"16MiB\"",
        "server.max_message_bytes=\"4MiB\"",
        "server.max_response_bytes=\"4MiB\"",
    ];
    let mut started = Started::with(&settings);
    let value = "v".repeat(64 << 10);
    let keys: Vec<String> = (0..600).map(|number| format!("r{number:03}")).collect();
    for keys in keys.chunks(20) {
        let cells = [("f:a", &value[..])];
        let rows: Vec<(&str, &[_])> = keys.iter().map(|key| (&key[..], &cells[..])).collect();
        let put = started.rest.ask("PUT", "/t/fakerow", JSON, cell_set(&rows));
        assert_eq!(put.status, 200, "{}", put.text());
    }
    let path = open(&mut started.rest, "{}");
    let mut found = Vec::new();
    loop {
        let answer = started.rest.get(&path);
        if answer.status == 204 {
            break;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        found.extend(answer.keys());
    }
    assert_eq!(found, keys);
    assert_eq!(started.rest.get("/t/*").keys(), keys);
    assert_eq!(
        started.rest.get("/t/r*/f:a").keys(),
        keys,
        "a range is answered in chunks, too"
    );
    started.server.stop();
}

/// Checks 27 and 36.
#[test]
fn scanners_end_with_their_table_and_their_lease() {
    let mut started = Started::with(&["rest.scanner_lease_ms=1500"]);
    let rest = &mut started.rest;
    fill(rest);
    let path = open(rest, r#"{"batch":1}"#);
    assert_eq!(rest.get(&path).status, 200);
    disable(&started.server);
    assert_eq!(rest.get(&path).status, 410);
    assert_eq!(rest.get("/t/p1").status, 503);
    assert!(started.server.metric("basalt_scanner_sessions ") > 0);
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while started.server.metric("basalt_scanner_sessions ") > 0 {
        assert!(std::time::Instant::now() < deadline, "the scanner does not end");
        std::thread::yield_now();
    }
    assert_eq!(rest.get(&path).status, 404);
    started.server.stop();
}

/// Disables `t`, which the REST interface cannot.
fn disable(server: &basalt_test_support::Server) {
    use basalt_idl::thrift1::args::DisableTable;
    use basalt_idl::wire::{BinaryReader, BinaryWriter};
    use std::io::{Read as _, Write as _};
    let mut message = Vec::new();
    let table_name = Some(bytes::Bytes::from_static(b"t"));
    basalt_idl::call::write_call(
        &mut BinaryWriter::new(&mut message),
        1,
        &DisableTable { table_name },
    );
    let mut socket = std::net::TcpStream::connect(server.thrift).expect("the port is open");
    let length = u32::try_from(message.len()).expect("short").to_be_bytes();
    socket
        .write_all(&[&length[..], &message].concat())
        .expect("the server reads");
    let mut length = [0; 4];
    socket.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    socket.read_exact(&mut answer).expect("an answer");
    basalt_idl::call::read_reply::<DisableTable, _>(&mut BinaryReader::new(answer.into()), 1)
        .expect("well-formed")
        .expect("the table is there");
}
