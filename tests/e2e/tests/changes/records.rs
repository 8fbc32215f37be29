//! Goal: what is written is handed out, as it was written, in order, and never less.

use super::*;

#[test]
fn records_say_what_was_written() {
    let node = Node::start(&[]);
    let table = node.create("t");
    node.create("other");
    let mut stream = node.get("/changes?tables=t&bytes=escaped");
    let head = stream.next().expect("a head");
    assert_eq!(head["stream"]["tables"], serde_json::json!(["t"]));
    node.put(&node.cluster.table("other").expect("a name"), "x", "not wanted");
    node.run(
        table.put(
            Put::new("r\u{1}")
                .cell_at("f", "q", 7, "v")
                .cell_at("f", "p", 7, "w"),
        ),
    );
    node.run(table.delete(Delete::row("r\u{1}")));
    let records = stream.records(2);
    assert_eq!(row(&records[0]), "r\\x01");
    let mut cells = records[0]["cells"].as_array().expect("cells").clone();
    cells.sort_by_key(|cell| cell["qualifier"].to_string());
    assert_eq!(
        serde_json::json!(cells),
        serde_json::json!([
            {"family": "f", "qualifier": "p", "timestamp": 7, "type": "Put", "value": "w"},
            {"family": "f", "qualifier": "q", "timestamp": 7, "type": "Put", "value": "v"},
        ])
    );
    assert_eq!(records[1]["cells"][0]["type"], "DeleteFamily");
    assert!(records[1]["cells"][0].get("value").is_none());
    assert!(position(&records[1]) > position(&records[0]));
    assert!(records[0]["time"].as_u64().expect("a time") > 1_700_000_000_000);
    // The heartbeat says where to go on.
    let heartbeat = loop {
        let object = stream.next().expect("the stream goes on");
        if object.get("heartbeat").is_some() {
            break object;
        }
    };
    assert!(heartbeat["heartbeat"]["position"].as_u64().expect("a position") > position(&records[1]));
    // Base64 is the default, and a position is where it was.
    let again = node.records(&format!("/changes?tables=t&from={}", position(&records[1])), 1);
    assert_eq!(
        (row(&again[0]), position(&again[0])),
        ("cgE=", position(&records[1]))
    );
}

/// A batch is one edit of the log: a stream may begin in the middle of it.
#[test]
fn a_stream_begins_at_any_row() {
    let node = Node::start(&[]);
    let table = node.create("t");
    let puts = (0..50).map(|number| Put::new(format!("{number:02}").as_str()).cell("f", "q", "v"));
    let mut stream = node.get("/changes?tables=t&bytes=escaped");
    stream.next().expect("a head");
    node.run(table.put_multiple(puts));
    let records = stream.records(50);
    let positions: Vec<_> = records.iter().map(position).collect();
    assert!(positions.is_sorted_by(|a, b| a < b), "{positions:?}");
    for from in [1, 17, 49] {
        let path = format!("/changes?tables=t&bytes=escaped&from={}", positions[from]);
        let rest = node.records(&path, 50 - from);
        assert_eq!(rest, records[from..]);
    }
}

#[test]
fn present_rows_come_first() {
    let node = Node::start(&[]);
    let table = node.create("t");
    // At times of their own: of two puts in one millisecond the later one would replace the other.
    for version in [1, 2] {
        node.run(table.put(Put::new("a").cell_at("f", "q", version, version.to_string())));
    }
    node.put(&table, "b", "1");
    node.run(table.delete(Delete::row("b")));
    let mut stream = node.get("/changes?tables=t&from=snapshot&bytes=escaped");
    stream.next().expect("a head");
    let present = stream.records(1);
    assert_eq!(
        (row(&present[0]), &present[0]["snapshot"]),
        ("a", &Value::Bool(true))
    );
    assert_eq!(present[0]["cells"].as_array().expect("cells").len(), 2);
    assert!(present[0].get("position").is_none());
    let end = stream.next().expect("an end");
    assert!(end["snapshot_end"]["position"].is_u64(), "{end}");
    node.put(&table, "c", "1");
    assert_eq!(row(&stream.records(1)[0]), "c");
}

#[test]
fn events_have_positions_as_ids() {
    let node = Node::start(&[]);
    let table = node.create("t");
    let accept = "Accept: text/event-stream\r\n";
    let mut stream = Stream::open(node.http, "/changes?tables=t&bytes=escaped", accept);
    assert!(stream.line().expect("a head").starts_with("data: {\"stream\""));
    for row in ["a", "b"] {
        node.put(&table, row, "v");
    }
    let mut lines = std::iter::from_fn(|| stream.line());
    let id = lines.find(|line| line.starts_with("id: ")).expect("an id");
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("data: {\"position\"")),
        "{id}"
    );
    let after = format!("{accept}Last-Event-ID: {}\r\n", id[4..].trim());
    let mut stream = Stream::open(node.http, "/changes?tables=t&bytes=escaped&from=now", &after);
    let mut lines = std::iter::from_fn(|| stream.line());
    let next = lines.find(|line| line.contains("\"row\"")).expect("a record");
    assert!(next.contains("\"row\":\"b\""), "{next}");
}

/// Tables split, and a table goes: the edits that wait for a reader are still told apart.
#[test]
fn a_reader_gets_what_was_written_before_splits_and_drops() {
    let node = Node::start(&SMALL);
    let table = node.create("t");
    let made = Stream::send(node.http, "PUT", "/changes/readers/r?tables=t", "");
    assert_eq!(made.status, 201);
    let puts =
        (0..500).map(|number| Put::new(format!("{number:04}").as_str()).cell("f", "q", "v".repeat(100)));
    node.run(table.put_multiple(puts));
    node.run(node.cluster.flush_table("t"));
    node.run(node.cluster.split_region("t", "0250"));
    node.put(&table, "9999", "behind the split");
    let records = node.records("/changes?reader=r&bytes=escaped", 501);
    assert_eq!((row(&records[0]), row(&records[500])), ("0000", "9999"));
    node.run(node.cluster.disable_table("t"));
    node.run(node.cluster.drop_table("t"));
    let gone = node.get("/changes?reader=r");
    assert_eq!(gone.status, 404, "the table of the reader is gone");
}
