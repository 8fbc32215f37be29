//! Goal: wrong requests are refused by name, nothing is left out silently, and a slow consumer costs a
//! bounded amount.

use super::*;

#[test]
fn wrong_requests_are_refused_by_name() {
    let node = Node::start(&SMALL);
    let table = node.create("t");
    node.put(&table, "a", "1");
    for (method, path, status, text) in [
        ("GET", "/changes", 400, "no table is named"),
        ("GET", "/changes?tables=absent", 404, "absent"),
        (
            "GET",
            "/changes?tables=hbase:meta",
            400,
            "hbase:meta is a table of the system",
        ),
        (
            "GET",
            "/changes?tables=t&from=yesterday",
            400,
            "from=yesterday is no position",
        ),
        (
            "GET",
            "/changes?tables=t&since=1",
            400,
            "there is no parameter since",
        ),
        ("GET", "/changes?tables=t&bytes=hex", 400, "bytes=hex"),
        ("GET", "/changes?tables=t&from=99999999", 400, "is behind that"),
        ("GET", "/changes?reader=r", 404, "there is no reader r"),
        ("PUT", "/changes/readers/r", 400, "no table is named"),
        (
            "PUT",
            "/changes/readers/a%20b?tables=t",
            400,
            "the name of a reader",
        ),
        (
            "POST",
            "/changes/readers/r?position=1",
            404,
            "there is no reader r",
        ),
        ("DELETE", "/changes/readers/r", 404, "there is no reader r"),
        ("PUT", "/changes/readers/r?tables=t", 201, "\"name\":\"r\""),
        (
            "PUT",
            "/changes/readers/r?tables=t",
            409,
            "there is a reader r already",
        ),
        ("POST", "/changes/readers/r", 400, "position=POSITION is missing"),
        (
            "POST",
            "/changes/readers/r?position=99999999",
            400,
            "is behind that",
        ),
        ("GET", "/changes/readers", 200, "\"kept_bytes\""),
        ("DELETE", "/changes/readers/r", 204, ""),
    ] {
        let mut answer = Stream::send(node.http, method, path, "");
        // A body without a last line break.
        let mut body = String::new();
        std::io::Read::read_to_string(&mut answer.lines, &mut body).expect("a text");
        assert_eq!(
            (answer.status, body.contains(text)),
            (status, true),
            "{method} {path}: {body}"
        );
    }
}

/// Without a reader the log goes with its flushes, and a stream that would have a gap is refused.
#[test]
fn below_the_kept_log_is_an_error() {
    let node = Node::start(&SMALL);
    let table = node.create("t");
    let mut stream = node.get("/changes?tables=t");
    stream.next().expect("a head");
    node.put(&table, "first", "1");
    let first = position(&stream.records(1)[0]);
    drop(stream);
    let mut refused = None;
    for number in 0..200 {
        let value = "v".repeat(100_000);
        node.put(&table, &format!("{number}"), &value);
        if number % 20 == 19 {
            node.run(node.cluster.flush_table("t"));
            let mut answer = node.get(&format!("/changes?tables=t&from={first}"));
            if answer.status != 200 {
                refused = Some((answer.status, answer.rest()));
                break;
            }
        }
    }
    let (status, text) = refused.expect("the log is removed in the end");
    assert_eq!(status, 410, "{text}");
    assert!(text.contains("from=snapshot"), "{text}");
}

/// A consumer that does not read: memory stays, the log that is kept has its limit, and then the stream ends
/// with an error. Writers go on.
#[test]
fn a_consumer_that_does_not_read_costs_a_bounded_amount() {
    let mut settings = SMALL.to_vec();
    settings.push("replication.max_log_bytes=16777216");
    let node = Node::start(&settings);
    let table = node.create("t");
    let made = Stream::send(node.http, "PUT", "/changes/readers/slow?tables=t", "");
    assert_eq!(made.status, 201);
    let mut named = node.get("/changes?reader=slow");
    let mut own = node.get("/changes?tables=t");
    let value = "v".repeat(100_000);
    node.put(&table, "warm", &value);
    let before = node.server().resident_bytes();
    let written =
        (0..800).map(|number| Put::new(format!("{number:04}").as_str()).cell("f", "q", value.as_str()));
    let puts: Vec<_> = written.collect();
    for some in puts.chunks(20) {
        node.run(table.put_multiple(some.to_vec()));
    }
    let grown = node.server().resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    until("both readers are removed", || {
        node.server().metric("basalt_change_dropped_readers_total") == 2
    });
    for stream in [&mut named, &mut own] {
        let rest = stream.rest();
        let last = rest.lines().last().expect("a line");
        assert!(last.starts_with("{\"error\":"), "{last}");
    }
    node.put(&table, "after", "1");
}

#[test]
fn streams_have_a_greatest_number() {
    let node = Node::start(&["changes.max_streams=2"]);
    node.create("t");
    let mut open: Vec<_> = (0..2).map(|_| node.get("/changes?tables=t")).collect();
    assert!(open.iter().all(|stream| stream.status == 200));
    let mut third = node.get("/changes?tables=t");
    assert_eq!(third.status, 503);
    assert!(third.rest().contains("changes.max_streams"));
    assert_eq!(node.server().metric("basalt_change_streams"), 2);
    open.clear();
    until("the places are free again", || {
        node.get("/changes?tables=t").status == 200
    });
}
