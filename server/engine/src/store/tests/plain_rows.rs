//! Runs of plain rows (`hfile::plain_rows`): which rows they take, and where they end.

use super::harness::{NOBODY, NOW_MS, TestStore, UNLIMITED, plain_rows, read_all, show};
use crate::cell::CellBatch;
use crate::hfile::RunLimits;
use crate::id::SeqId;
use crate::op::{Columns, FamilySelection, ReadSpec, TimeRange};
use crate::store::{ReadRows, ReadView, RowLimit, RowProgress, StoreScanner};

const ALL: ReadRows<'static> = ReadRows::Range {
    low: b"",
    high: b"",
    reversed: false,
};

/// A store with one file, which ends with the row `z`, so that none of the others is its last one.
fn flushed(options: &str, cells: &str) -> TestStore {
    let mut store = TestStore::new(options);
    store.write_all(cells);
    store.write_all("z/p/1/P");
    store.flush();
    store
}

fn open(store: &TestStore, spec: &ReadSpec) -> StoreScanner {
    store.open(None, spec, SeqId::MAX, ALL)
}

/// The cells of the first run, and the row at which the scanner stands then.
fn first_run(scanner: &mut StoreScanner) -> (String, String) {
    let run = show(&plain_rows(scanner, usize::MAX));
    let row = scanner.row().unwrap_or_default();
    (run, String::from_utf8(row.to_vec()).unwrap())
}

fn pair(run: &str, row: &str) -> (String, String) {
    (run.to_owned(), row.to_owned())
}

/// Rows whose result is not the row itself are left: older versions, tombstones, tags, and the last row of a
/// block, which may go on in the next one. All of them are read cell by cell, and runs go on behind them.
#[test]
fn rows_that_are_not_plain_are_left() {
    let plain = "a/p/1/P b/p/1/P b/q/1/P";
    let others = [
        "c/p/2/P c/p/1/P",
        "c/p/2/P c/p/1/D",
        "c//2/DF c/p/3/P",
        "c//2/DFV c/p/3/P",
        "c/p/2/DC c/q/3/P",
        "c/p/1/P c/q/1/P=ttl20000",
    ];
    for other in others {
        let store = flushed("VERSIONS=9", &format!("{plain} {other} d/p/1/P"));
        let spec = ReadSpec {
            max_versions: 9,
            ..ReadSpec::default()
        };
        let mut scanner = open(&store, &spec);
        assert_eq!(first_run(&mut scanner), pair(plain, "c"), "{other}");
        assert_eq!(first_run(&mut scanner), pair("", "c"), "{other}");
        let mut out = CellBatch::new();
        let progress = scanner.read_row(b"c", None, &mut RowLimit::NONE.clone(), &mut out);
        assert_eq!(progress.unwrap(), RowProgress::Done);
        assert_eq!(first_run(&mut scanner), pair("d/p/1/P", "z"), "{other}");
        assert_eq!(first_run(&mut scanner), pair("", "z"), "{other}");
        assert_eq!(show(&read_all(&mut scanner, None, usize::MAX)), "z/p/1/P");
    }
}

/// Puts outside the time range, or older than the TTL, are left.
#[test]
fn puts_of_other_times_are_left() {
    // The flush at 10 s keeps what is at most 5 s old, and the read comes 0.5 s later.
    let mut store = TestStore::new("TTL=5");
    store.write_all("a/p/6000/P b/p/6000/P b/q/5400/P c/p/6000/P");
    store.flush();
    let later = ReadView {
        now_ms: NOW_MS + 500,
        ..NOBODY
    };
    let mut scanner = store.open_at(None, &ReadSpec::default(), later, ALL);
    assert_eq!(first_run(&mut scanner), pair("a/p/6000/P", "b"));
    let store = flushed("VERSIONS=1", "a/p/5/P b/p/6/P c/p/7/P");
    let spec = ReadSpec {
        time_range: TimeRange { min: 5, max: 7 },
        ..ReadSpec::default()
    };
    let mut scanner = open(&store, &spec);
    assert_eq!(first_run(&mut scanner), pair("a/p/5/P b/p/6/P", "c"));
}

/// Only named columns are returned; a row with none of them, or with many others, is left.
#[test]
fn of_named_columns_only_those_come() {
    let many: Vec<String> = (10..20).map(|number| format!("d/o{number}/1/P")).collect();
    let many = many.join(" ");
    let cells = format!("a/p/1/P a/q/1/P a/r/1/P b/q/1/P c/o/1/P c/q/1/P d/q/1/P {many} e/r/1/P");
    let store = flushed("VERSIONS=1", &cells);
    let selection = FamilySelection {
        family: b"f".to_vec(),
        columns: Columns::Only(vec![b"p".to_vec(), b"q".to_vec()]),
    };
    let spec = ReadSpec::default();
    let mut scanner = store.open(Some(&selection), &spec, SeqId::MAX, ALL);
    assert_eq!(
        first_run(&mut scanner),
        pair("a/p/1/P a/q/1/P b/q/1/P c/q/1/P", "d")
    );
    scanner.skip_row(b"d").unwrap();
    assert_eq!(first_run(&mut scanner), pair("", "e"));
}

/// A run stays before the first row of which another source has cells.
#[test]
fn rows_of_several_sources_are_left() {
    let mut store = flushed("VERSIONS=1", "a/p/1/P b/p/1/P c/p/1/P d/p/1/P");
    store.write_all("c/q/1/P");
    let mut scanner = open(&store, &ReadSpec::default());
    assert_eq!(first_run(&mut scanner), pair("a/p/1/P", "b"));
    scanner.skip_row(b"b").unwrap();
    scanner.skip_row(b"c").unwrap();
    assert_eq!(first_run(&mut scanner), pair("d/p/1/P", "z"));
}

/// A file that begins later ends a run as well, although the merge has not looked into it.
#[test]
fn files_that_begin_later_are_not_passed() {
    let mut store = flushed("VERSIONS=1", "a/p/1/P b/p/1/P c/p/1/P d/p/1/P");
    store.write_all("c/q/1/P y/q/1/P");
    store.flush();
    let mut scanner = open(&store, &ReadSpec::default());
    assert_eq!(first_run(&mut scanner), pair("a/p/1/P", "b"));
    let rest = read_all(&mut scanner, None, usize::MAX);
    assert_eq!(show(&rest), "b/p/1/P c/p/1/P c/q/1/P d/p/1/P y/q/1/P z/p/1/P");
}

/// Each limit ends a run where it says.
#[test]
fn limits_end_a_run() {
    // Each row has 15 bytes of key, and one of value.
    let store = flushed("VERSIONS=1", "a/p/1/P=v b/p/1/P=v c/p/1/P=v d/p/1/P=v");
    let cases = [
        (RunLimits { rows: 2, ..UNLIMITED }, "c"),
        (RunLimits { rows: 0, ..UNLIMITED }, "a"),
        (
            RunLimits {
                end: b"c",
                ..UNLIMITED
            },
            "b",
        ),
        (
            RunLimits {
                end: b"bb",
                ..UNLIMITED
            },
            "b",
        ),
        (
            RunLimits {
                bytes: 16,
                ..UNLIMITED
            },
            "b",
        ),
        (
            RunLimits {
                bytes: 17,
                ..UNLIMITED
            },
            "c",
        ),
        (
            RunLimits {
                cut_at: 32,
                ..UNLIMITED
            },
            "b",
        ),
        (
            RunLimits {
                cut_at: 33,
                ..UNLIMITED
            },
            "c",
        ),
        (
            RunLimits {
                row_bytes: 16,
                ..UNLIMITED
            },
            "a",
        ),
        (
            RunLimits {
                row_bytes: 17,
                ..UNLIMITED
            },
            "z",
        ),
    ];
    for (limits, stands_at) in cases {
        let mut scanner = open(&store, &ReadSpec::default());
        let mut out = CellBatch::new();
        scanner.append_plain_rows(limits, &mut out);
        assert_eq!(scanner.row(), Some(stands_at.as_bytes()), "{limits:?}");
        assert!(out.open_cells().is_empty());
    }
}

/// A reversed scanner that has passed over the row `z`, the last one of the block.
fn open_backward(store: &TestStore) -> StoreScanner {
    let rows = ReadRows::Range {
        low: b"",
        high: b"",
        reversed: true,
    };
    let mut scanner = store.open(None, &ReadSpec::default(), SeqId::MAX, rows);
    assert_eq!(first_run(&mut scanner), pair("", "z"));
    scanner.skip_row(b"z").unwrap();
    scanner
}

/// A reversed run goes from row to row backward, each with its cells in order. It stays behind rows that are
/// not plain, and behind the first row of the block, before which the list of row starts ends.
#[test]
fn runs_go_backward() {
    let store = flushed(
        "VERSIONS=9",
        "a/p/1/P b/p/1/P b/q/1/P c/p/2/P c/p/1/P d/p/1/P e/p/1/P",
    );
    let mut scanner = open_backward(&store);
    assert_eq!(first_run(&mut scanner), pair("e/p/1/P d/p/1/P", "c"));
    assert_eq!(first_run(&mut scanner), pair("", "c"));
    let mut out = CellBatch::new();
    let progress = scanner.read_row(b"c", None, &mut RowLimit::NONE.clone(), &mut out);
    assert_eq!(progress.unwrap(), RowProgress::Done);
    assert_eq!(first_run(&mut scanner), pair("b/p/1/P b/q/1/P", "a"));
    assert_eq!(first_run(&mut scanner), pair("", "a"));
    assert_eq!(show(&read_all(&mut scanner, None, usize::MAX)), "a/p/1/P");
}

/// A reversed run stays behind the next row of which another source has cells, also of one that the merge has
/// not looked into.
#[test]
fn rows_of_several_sources_are_left_backward() {
    for is_file in [false, true] {
        let mut store = flushed("VERSIONS=1", "a/p/1/P b/p/1/P c/p/1/P d/p/1/P e/p/1/P");
        store.write_all("aa/q/1/P c/q/1/P");
        if is_file {
            store.flush();
        }
        let mut scanner = open_backward(&store);
        assert_eq!(first_run(&mut scanner), pair("e/p/1/P", "d"));
        scanner.skip_row(b"d").unwrap();
        assert_eq!(first_run(&mut scanner), pair("", "c"));
        scanner.skip_row(b"c").unwrap();
        let rest = read_all(&mut scanner, None, usize::MAX);
        assert_eq!(show(&rest), "b/p/1/P aa/q/1/P a/p/1/P");
    }
}

/// Each limit ends a reversed run where it says.
#[test]
fn limits_end_a_reversed_run() {
    let store = flushed("VERSIONS=1", "a/p/1/P=v b/p/1/P=v c/p/1/P=v d/p/1/P=v e/p/1/P=v");
    let limited = |limits: RunLimits<'_>| {
        let mut scanner = open_backward(&store);
        let mut out = CellBatch::new();
        let rows = scanner.append_plain_rows(limits, &mut out);
        assert_eq!(rows, out.row_count());
        String::from_utf8(scanner.row().unwrap().to_vec()).unwrap()
    };
    let end = |end| RunLimits { end, ..UNLIMITED };
    assert_eq!(limited(RunLimits { rows: 2, ..UNLIMITED }), "c");
    assert_eq!(limited(end(b"c")), "d");
    assert_eq!(limited(end(b"bb")), "c");
    let bytes = |bytes| RunLimits { bytes, ..UNLIMITED };
    assert_eq!(limited(bytes(17)), "c");
    let cut_at = |cut_at| RunLimits { cut_at, ..UNLIMITED };
    assert_eq!(limited(cut_at(33)), "c");
}

/// There are no runs in reads that see rows in another way: raw, of one row, with a limit of cells of a
/// family, or in the middle of a row.
#[test]
fn other_reads_have_no_runs() {
    let store = flushed("VERSIONS=1", "a/p/1/P a/q/1/P b/p/1/P");
    let raw = ReadSpec {
        raw: true,
        ..ReadSpec::default()
    };
    let limited = ReadSpec {
        family_limit: Some(9),
        ..ReadSpec::default()
    };
    for spec in [raw, limited] {
        assert_eq!(first_run(&mut open(&store, &spec)).0, "");
    }
    let spec = ReadSpec::default();
    let one = ReadRows::One(b"a");
    assert_eq!(first_run(&mut store.open(None, &spec, SeqId::MAX, one)).0, "");
    let mut scanner = open(&store, &spec);
    let mut one_cell = RowLimit {
        cells: 1,
        ..RowLimit::NONE
    };
    let progress = scanner.read_row(b"a", None, &mut one_cell, &mut CellBatch::new());
    assert_eq!(progress.unwrap(), RowProgress::LimitReached);
    assert_eq!(first_run(&mut scanner), pair("", "a"));
}
