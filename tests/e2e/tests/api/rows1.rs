//! Thrift 1: every method that reads or writes rows, once, as it is meant to be used.

use basalt_idl::thrift1::{self, args as one};
use bytes::Bytes;

use crate::client::{Wire, columns, list, raw, some, start, text, values};

#[test]
fn every_row_read_of_thrift_1() {
    let mut wire = Wire::connect();
    wire.create("reads1", &[]);
    for (row, column, value, stamp) in [
        ("r", "f:a", "a1", 1),
        ("r", "f:a", "a2", 2),
        ("r", "f:b", "b1", 1),
        ("r", "g:a", "g3", 3),
        ("s", "f:a", "s1", 1),
    ] {
        wire.put("reads1", row, column, value, Some(stamp));
    }
    let (table_name, row) = (some("reads1"), some("r"));
    let wanted = list(&["f", "g:b"]);
    let rows = list(&["s", "absent", "r"]);
    let get_row = wire.ok(&one::GetRow {
        table_name: table_name.clone(),
        row: row.clone(),
        attributes: None,
    });
    assert_eq!(columns(&get_row), ["r f:a@2=a2 f:b@1=b1 g:a@3=g3"]);
    let with_columns = wire.ok(&one::GetRowWithColumns {
        table_name: table_name.clone(),
        row: row.clone(),
        columns: wanted.clone(),
        attributes: None,
    });
    assert_eq!(columns(&with_columns), ["r f:a@2=a2 f:b@1=b1"]);
    let before = wire.ok(&one::GetRowTs {
        table_name: table_name.clone(),
        row: row.clone(),
        timestamp: Some(2),
        attributes: None,
    });
    assert_eq!(columns(&before), ["r f:a@1=a1 f:b@1=b1"]);
    let with_columns_before = wire.ok(&one::GetRowWithColumnsTs {
        table_name: table_name.clone(),
        row: row.clone(),
        columns: list(&["f:a"]),
        timestamp: Some(2),
        attributes: None,
    });
    assert_eq!(columns(&with_columns_before), ["r f:a@1=a1"]);

    let get_rows = wire.ok(&one::GetRows {
        table_name: table_name.clone(),
        rows: rows.clone(),
        attributes: None,
    });
    assert_eq!(columns(&get_rows), ["s f:a@1=s1", "r f:a@2=a2 f:b@1=b1 g:a@3=g3"]);
    let rows_with_columns = wire.ok(&one::GetRowsWithColumns {
        table_name: table_name.clone(),
        rows: rows.clone(),
        columns: wanted,
        attributes: None,
    });
    assert_eq!(columns(&rows_with_columns), ["s f:a@1=s1", "r f:a@2=a2 f:b@1=b1"]);
    let rows_before = wire.ok(&one::GetRowsTs {
        table_name: table_name.clone(),
        rows: rows.clone(),
        timestamp: Some(2),
        attributes: None,
    });
    assert_eq!(columns(&rows_before), ["s f:a@1=s1", "r f:a@1=a1 f:b@1=b1"]);
    let rows_with_columns_before = wire.ok(&one::GetRowsWithColumnsTs {
        table_name: table_name.clone(),
        rows,
        columns: list(&["f:a"]),
        timestamp: Some(1),
        attributes: None,
    });
    assert!(rows_with_columns_before.is_empty());

    let get = wire.ok(&one::Get {
        table_name: table_name.clone(),
        row: row.clone(),
        column: some("f:a"),
        attributes: None,
    });
    assert_eq!(values(&get), ["a2"]);
    let versions = wire.ok(&one::GetVer {
        table_name: table_name.clone(),
        row: row.clone(),
        column: some("f:a"),
        num_versions: Some(9),
        attributes: None,
    });
    assert_eq!(values(&versions), ["a2", "a1"]);
    let versions_before = wire.ok(&one::GetVerTs {
        table_name,
        row,
        column: some("f:a"),
        timestamp: Some(2),
        num_versions: Some(9),
        attributes: None,
    });
    assert_eq!(values(&versions_before), ["a1"]);
}

/// HBase 1's way to find the last row up to a key: a scan backwards over one family.
#[test]
fn the_row_or_the_one_before_it() {
    let mut wire = Wire::connect();
    wire.create("before", &["c"]);
    wire.put("before", "a", "f:x", "ax", Some(1));
    wire.put("before", "a", "f:y", "ay", Some(1));
    wire.put("before", "a", "g:x", "ag", Some(1));
    wire.put("before", "d", "g:x", "dg", Some(1));
    let before = |row: &str, family: &str| one::GetRowOrBefore {
        table_name: some("before"),
        row: some(row),
        family: some(family),
    };
    for (row, family, found) in [
        ("a", "f", &["ax", "ay"][..]),
        ("d", "f", &["ax", "ay"]),
        ("cc", "g", &["ag"]),
        ("d", "g", &["dg"]),
        ("", "g", &["dg"]),
        ("Z", "f", &[]),
    ] {
        assert_eq!(values(&wire.ok(&before(row, family))), found, "{row:?}, {family}");
    }
    wire.refused(&before("a", "no"), &["NoSuchColumnFamilyException"]);
    let missing = one::GetRowOrBefore {
        table_name: some("nowhere"),
        ..before("a", "f")
    };
    wire.refused(&missing, &["TableNotFoundException"]);
}

/// HappyBase's `batch()` sends all its cells in one call. The limit on cells protects memory, so it
/// follows the limit on bytes. A call over it is refused with an error that names the remedy.
#[test]
fn a_large_batch_of_small_cells_is_taken() {
    const CELLS: usize = 120_000;
    let mut wire = Wire::to(start(&[]));
    wire.create("batch", &[]);
    let batches = |cells: usize| {
        let mutation = thrift1::Mutation {
            column: some("f:q"),
            value: some("v"),
            ..Default::default()
        };
        let one_row = |row: usize| thrift1::BatchMutation {
            row: some(&format!("{row:06}")),
            mutations: Some(vec![mutation.clone()]),
        };
        one::MutateRows {
            table_name: some("batch"),
            row_batches: Some((0..cells).map(one_row).collect()),
            attributes: None,
        }
    };
    wire.ok(&batches(CELLS));
    let last = wire.row("batch", &format!("{:06}", CELLS - 1));
    assert_eq!(last.len(), 1, "{last:?}");
    let mut wire = Wire::to(start(&["server.max_cells_per_call=10"]));
    wire.create("batch", &[]);
    wire.ok(&batches(10));
    let words = [
        "the call has 11 cells",
        "server.max_cells_per_call is 10",
        "batch(batch_size=...)",
    ];
    wire.refused(&batches(11), &words);
}

#[test]
fn every_write_of_thrift_1() {
    let mut wire = Wire::connect();
    wire.create("writes1", &[]);
    let table_name = || some("writes1");
    let put = |column: &str, value: &str| thrift1::Mutation {
        column: some(column),
        value: some(value),
        write_to_wal: false,
        ..Default::default()
    };
    let delete = |column: &str| thrift1::Mutation {
        column: some(column),
        is_delete: true,
        ..Default::default()
    };
    let batch = |row: &str, mutations: &[thrift1::Mutation]| thrift1::BatchMutation {
        row: some(row),
        mutations: Some(mutations.to_vec()),
    };
    wire.ok(&one::MutateRow {
        table_name: table_name(),
        row: some("a"),
        mutations: Some(vec![put("f:a", "1"), put("g:a", "1")]),
        attributes: None,
    });
    wire.ok(&one::MutateRowTs {
        table_name: table_name(),
        row: some("b"),
        mutations: Some(vec![put("f:a", "1"), put("f:b", "1")]),
        timestamp: Some(7),
        attributes: None,
    });
    wire.ok(&one::MutateRows {
        table_name: table_name(),
        row_batches: Some(vec![batch("a", &[delete("g")]), batch("c", &[put("f:a", "2")])]),
        attributes: None,
    });
    wire.ok(&one::MutateRowsTs {
        table_name: table_name(),
        row_batches: Some(vec![batch("d", &[put("f:a", "3")]), batch("b", &[delete("f:b")])]),
        timestamp: Some(8),
        attributes: None,
    });
    let all = wire.rows("writes1");
    assert!(
        all[0].starts_with("a f:a@") && all[2].starts_with("c f:a@") && all.len() == 4,
        "{all:?}"
    );
    assert_eq!((&all[1][..], &all[3][..]), ("b f:a@7=1", "d f:a@8=3"));

    wire.ok(&one::DeleteAll {
        table_name: table_name(),
        row: some("a"),
        column: some("f:a"),
        attributes: None,
    });
    wire.ok(&one::DeleteAllTs {
        table_name: table_name(),
        row: some("b"),
        column: some("f"),
        timestamp: Some(6),
        attributes: None,
    });
    wire.ok(&one::DeleteAllRow {
        table_name: table_name(),
        row: some("c"),
        attributes: None,
    });
    wire.ok(&one::DeleteAllRowTs {
        table_name: table_name(),
        row: some("d"),
        timestamp: Some(8),
        attributes: None,
    });
    assert_eq!(
        wire.rows("writes1"),
        ["b f:a@7=1"],
        "nothing of b was as old as 6"
    );

    let increment = |column: &str| thrift1::TIncrement {
        table: table_name(),
        row: some("n"),
        column: some(column),
        ammount: Some(2),
    };
    wire.ok(&one::Increment {
        increment: Some(increment("f:n")),
    });
    wire.ok(&one::IncrementRows {
        increments: Some(vec![increment("f:n"), increment("f:")]),
    });
    let without_colon = one::Increment {
        increment: Some(increment("f")),
    };
    wire.refused(&without_colon, &["family:qualifier"]);
    let sum = wire.ok(&one::AtomicIncrement {
        table_name: table_name(),
        row: some("n"),
        column: some("f:n"),
        value: Some(-1),
    });
    assert_eq!(sum, 3);
}

#[test]
fn every_scanner_of_thrift_1() {
    let mut wire = Wire::connect();
    wire.create("scans1", &["b"]);
    for (row, stamp) in [("a", 1), ("b1", 2), ("b2", 3), ("c", 4)] {
        wire.put("scans1", row, "f:x", row, Some(stamp));
        wire.put("scans1", row, "g:x", row, Some(stamp));
    }
    let (table_name, columns) = (some("scans1"), list(&["f:x"]));
    let open = one::ScannerOpen {
        table_name: table_name.clone(),
        start_row: some("b"),
        columns: columns.clone(),
        attributes: None,
    };
    let id = wire.ok(&open);
    assert_eq!(wire.drain(id), "b1:1 b2:1 c:1");
    let with_stop = one::ScannerOpenWithStop {
        table_name: table_name.clone(),
        start_row: some("a"),
        stop_row: some("b2"),
        columns: None,
        attributes: None,
    };
    let id = wire.ok(&with_stop);
    assert_eq!(wire.drain(id), "a:2 b1:2");
    let with_prefix = one::ScannerOpenWithPrefix {
        table_name: table_name.clone(),
        start_and_prefix: some("b"),
        columns: columns.clone(),
        attributes: None,
    };
    let id = wire.ok(&with_prefix);
    assert_eq!(wire.drain(id), "b1:1 b2:1");
    let before = one::ScannerOpenTs {
        table_name: table_name.clone(),
        start_row: some(""),
        columns: columns.clone(),
        timestamp: Some(3),
        attributes: None,
    };
    let id = wire.ok(&before);
    assert_eq!(wire.drain(id), "a:1 b1:1");
    let with_stop_before = one::ScannerOpenWithStopTs {
        table_name: table_name.clone(),
        start_row: some("b"),
        stop_row: some("c"),
        columns,
        timestamp: Some(3),
        attributes: None,
    };
    let id = wire.ok(&with_stop_before);
    assert_eq!(wire.drain(id), "b1:1");
    // Every field of a TScan; mere hints must change nothing.
    let scan = thrift1::TScan {
        start_row: some("b2"),
        stop_row: some("a"),
        timestamp: Some(9),
        columns: list(&["f", "g"]),
        caching: Some(1),
        filter_string: some("RowFilter(!=, 'binary:b1')"),
        batch_size: Some(1),
        sort_columns: Some(true),
        reversed: Some(true),
        cache_blocks: Some(false),
    };
    let with_scan = one::ScannerOpenWithScan {
        table_name,
        scan: Some(scan),
        attributes: None,
    };
    let id = wire.ok(&with_scan);
    let first = wire.ok(&one::ScannerGet { id: Some(id) });
    let sorted = first[0].sorted_columns.as_deref().expect("asked for");
    assert_eq!(text(sorted[0].column_name.as_deref().unwrap_or_default()), "f:x");
    assert_eq!(wire.drain(id), "b2:1", "the other half of the row");
}

/// The attribute `_raw_` on every kind of read: tombstones, and the cells that they hide.
#[test]
fn raw_reads_of_thrift_1() {
    let mut wire = Wire::connect();
    wire.create("raw1", &[]);
    wire.put("raw1", "r", "f:x", "v", Some(5));
    wire.ok(&one::DeleteAllTs {
        table_name: some("raw1"),
        row: some("r"),
        column: some("f:x"),
        timestamp: Some(6),
        attributes: None,
    });
    let scan = |attributes| one::ScannerOpen {
        table_name: some("raw1"),
        start_row: some(""),
        columns: None,
        attributes,
    };
    let id = wire.ok(&scan(None));
    assert_eq!(wire.drain(id), "");
    let id = wire.ok(&scan(raw(b"\xff")));
    assert_eq!(wire.drain(id), "r:1", "one column, of which there are two cells");
    let id = wire.ok(&scan(raw(b"\0")));
    assert_eq!(wire.drain(id), "");
    wire.refused(&scan(raw(b"true")), &["_raw_ must be 1 byte"]);
    let versions = one::GetVer {
        table_name: some("raw1"),
        row: some("r"),
        column: some("f"),
        num_versions: Some(9),
        attributes: raw(b"\x01"),
    };
    let found = wire.ok(&versions);
    let stamps: Vec<_> = found.iter().filter_map(|cell| cell.timestamp).collect();
    assert_eq!(stamps, [6, 5]);
    assert_eq!(found[0].value, Some(Bytes::new()), "a tombstone");
    let of_a_column = one::GetVer {
        column: some("f:x"),
        ..versions
    };
    wire.refused(&of_a_column, &["Cannot specify any column for a raw scan"]);
}
