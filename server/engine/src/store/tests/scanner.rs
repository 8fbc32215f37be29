//! A scanner's behaviour between and within rows: read points, limits, jumps, filters.

use super::TextCell;
use super::harness::{NOW_MS, TestStore, read_all, show};
use crate::Result;
use crate::cell::{Cell, CellBatch, KeyBuf};
use crate::filter::{Filter, ReturnCode};
use crate::id::SeqId;
use crate::op::ReadSpec;
use crate::store::{ReadRows, RowLimit, RowProgress, StoreScanner};

const ALL: ReadRows<'static> = ReadRows::Range {
    low: b"",
    high: b"",
    reversed: false,
};
const ALL_REVERSED: ReadRows<'static> = ReadRows::Range {
    low: b"",
    high: b"",
    reversed: true,
};

fn store(cells: &str) -> TestStore {
    let mut store = TestStore::new("VERSIONS=9");
    store.write_all(cells);
    store
}

fn spec() -> ReadSpec {
    ReadSpec {
        max_versions: 9,
        ..ReadSpec::default()
    }
}

fn open(store: &TestStore, rows: ReadRows<'_>) -> StoreScanner {
    store.open(None, &spec(), SeqId::MAX, rows)
}

/// Cells after the read point do not exist for the reader, nor do rows that have no others.
#[test]
fn the_read_point_hides_newer_writes() {
    let mut store = store("a//1/P=old b//1/P=old");
    store.freeze();
    store.write_all("a//2/P=new aa//1/P=new b//3/DF c//1/P=new");
    for (rows, expected) in [
        (ALL, "a//1/P=old b//1/P=old"),
        (ALL_REVERSED, "b//1/P=old a//1/P=old"),
    ] {
        let mut scanner = store.open(None, &spec(), SeqId(2), rows);
        assert_eq!(show(&read_all(&mut scanner, None, 9)), expected);
    }
    let mut scanner = store.open(None, &spec(), SeqId(2), ReadRows::One(b"c"));
    assert_eq!(scanner.row(), None);
    assert!(read_all(&mut scanner, None, 9).is_empty());
}

/// Writes made while a scanner is open, also into the memstore it reads, are invisible to it.
#[test]
fn an_open_scanner_does_not_see_later_writes() {
    let mut store = store("a//1/P b//1/P c//1/P");
    let mut scanner = store.open(None, &spec(), SeqId(store.seq), ALL);
    store.write_all("a//2/P bb//1/P c//5/DF d//1/P");
    store.freeze();
    assert_eq!(show(&read_all(&mut scanner, None, 9)), "a//1/P b//1/P c//1/P");
}

#[test]
fn seek_and_skip_move_in_the_direction_of_the_scan() {
    let store = store("a//1/P b//1/P b//2/P c//1/P e//1/P");
    let mut scanner = open(&store, ALL);
    assert_eq!(scanner.row(), Some(b"a".as_slice()));
    scanner.seek_row(b"c").unwrap();
    assert_eq!(scanner.row(), Some(b"c".as_slice()));
    scanner.seek_row(b"aa").unwrap();
    assert_eq!(scanner.row(), Some(b"b".as_slice()), "backwards");
    scanner.skip_row(b"b").unwrap();
    scanner.skip_row(b"b").unwrap();
    assert_eq!(
        scanner.row(),
        Some(b"c".as_slice()),
        "skipping a row that is passed changes nothing"
    );
    scanner.skip_row(b"d").unwrap();
    assert_eq!(scanner.row(), Some(b"e".as_slice()));
    scanner.skip_row(b"e").unwrap();
    assert_eq!(scanner.row(), None);

    let mut scanner = open(&store, ALL_REVERSED);
    assert_eq!(scanner.row(), Some(b"e".as_slice()));
    scanner.seek_row(b"d").unwrap();
    assert_eq!(scanner.row(), Some(b"c".as_slice()));
    scanner.seek_row(b"b").unwrap();
    assert_eq!(scanner.row(), Some(b"b".as_slice()));
    scanner.skip_row(b"b").unwrap();
    assert_eq!(scanner.row(), Some(b"a".as_slice()));
    scanner.seek_row(b"zz").unwrap();
    assert_eq!(scanner.row(), Some(b"e".as_slice()), "forwards");
    scanner.seek_row(b"Z").unwrap();
    assert_eq!(scanner.row(), None);
}

/// The limit is reported only if more cells exist, and the following cells are not lost.
#[test]
fn a_limit_cuts_a_row_and_the_rest_follows() {
    let store = store("a/p/1/P a/q/1/P a/r/1/P b/p/1/P");
    let mut scanner = open(&store, ALL);
    let mut out = CellBatch::new();
    let mut read = |scanner: &mut StoreScanner, row: &[u8], cells, bytes| {
        let mut limit = RowLimit { cells, bytes };
        let before = out.cell_count();
        let progress = scanner.read_row(row, None, &mut limit, &mut out).unwrap();
        (progress, out.cell_count() - before, limit.cells)
    };
    assert_eq!(
        read(&mut scanner, b"a", 2, 9999),
        (RowProgress::LimitReached, 2, 0)
    );
    assert_eq!(
        read(&mut scanner, b"a", 0, 9999),
        (RowProgress::LimitReached, 0, 0)
    );
    assert_eq!(read(&mut scanner, b"a", 1, 9999), (RowProgress::Done, 1, 0));
    assert_eq!(
        read(&mut scanner, b"a", 1, 9999),
        (RowProgress::Done, 0, 1),
        "the row is over"
    );
    assert_eq!(
        read(&mut scanner, b"b", 5, 1),
        (RowProgress::Done, 1, 4),
        "the first cell is delivered"
    );
    let mut scanner = open(&store, ALL);
    assert_eq!(read(&mut scanner, b"a", 9, 1), (RowProgress::LimitReached, 1, 8));
}

/// An unfinished row is left by seeking; coming back starts it anew.
#[test]
fn a_cut_row_can_be_left() {
    let store = store("a/p/1/P a/q/1/P b/p/1/P");
    let mut scanner = open(&store, ALL);
    let mut limit = RowLimit {
        cells: 1,
        ..RowLimit::NONE
    };
    scanner
        .read_row(b"a", None, &mut limit, &mut CellBatch::new())
        .unwrap();
    scanner.skip_row(b"a").unwrap();
    assert_eq!(scanner.row(), Some(b"b".as_slice()));
    scanner.seek_row(b"a").unwrap();
    assert_eq!(show(&read_all(&mut scanner, None, 9)), "a/p/1/P a/q/1/P b/p/1/P");
}

#[test]
fn the_range_of_a_family_overrides_that_of_the_read() {
    let store = store("a/p/5/P a/p/15/P");
    let own = crate::op::TimeRange { min: 10, max: 20 };
    let spec = ReadSpec {
        time_range: crate::op::TimeRange { min: 0, max: 10 },
        family_time_ranges: [(b"f".to_vec(), own), (b"other".to_vec(), spec().time_range)].into(),
        ..spec()
    };
    let mut scanner = store.open(None, &spec, SeqId::MAX, ALL);
    assert_eq!(show(&read_all(&mut scanner, None, 9)), "a/p/15/P");
}

/// Sends the reader on from the first cell that it is asked about.
#[derive(Debug)]
struct HintOnce {
    hint: Option<KeyBuf>,
    asked: Vec<String>,
    is_list: bool,
}

impl HintOnce {
    fn to(row: &[u8], family: &[u8], qualifier: &[u8]) -> Self {
        Self {
            hint: Some(KeyBuf::first_on_column(row, family, qualifier)),
            asked: Vec::new(),
            is_list: false,
        }
    }

    fn in_list(self) -> Self {
        Self {
            is_list: true,
            ..self
        }
    }
}

impl Filter for HintOnce {
    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let mut asked = TextCell::of(cell);
        asked.seq = SeqId::ZERO;
        self.asked.push(asked.to_string());
        Ok(if self.hint.is_some() {
            ReturnCode::SeekNextUsingHint
        } else {
            ReturnCode::Include
        })
    }
    fn next_cell_hint(&mut self, _cell: Cell<'_>) -> Option<KeyBuf> {
        self.hint.take()
    }
    fn is_list(&self) -> bool {
        self.is_list
    }
}

fn scan_with_hint(cells: &str, rows: ReadRows<'_>, mut filter: HintOnce) -> (String, String) {
    let store = store(cells);
    let mut scanner = open(&store, rows);
    let results = show(&read_all(&mut scanner, Some(&mut filter), 9));
    (results, filter.asked.join(" "))
}

#[test]
fn a_hint_jumps_forward_and_nowhere_else() {
    let cells = "a/p/1/P a/q/1/P a/r/1/P b/p/1/P c/p/1/P";
    let run = |hint| scan_with_hint(cells, ALL, hint).0;
    assert_eq!(run(HintOnce::to(b"a", b"f", b"r")), "a/r/1/P b/p/1/P c/p/1/P");
    assert_eq!(run(HintOnce::to(b"c", b"f", b"")), "c/p/1/P");
    assert_eq!(run(HintOnce::to(b"bb", b"", b"")), "c/p/1/P");
    assert_eq!(
        run(HintOnce::to(b"a", b"g", b"x")),
        "b/p/1/P c/p/1/P",
        "a later family"
    );
    let stepped = "a/q/1/P a/r/1/P b/p/1/P c/p/1/P";
    assert_eq!(run(HintOnce::to(b"a", b"e", b"x")), stepped, "an earlier family");
    assert_eq!(run(HintOnce::to(b"a", b"f", b"a")), stepped, "an earlier column");
    assert_eq!(run(HintOnce::to(b"A", b"f", b"r")), stepped, "an earlier row");

    let reversed = |hint| scan_with_hint(cells, ALL_REVERSED, hint).0;
    assert_eq!(reversed(HintOnce::to(b"a", b"f", b"")), "a/p/1/P a/q/1/P a/r/1/P");
    assert_eq!(
        reversed(HintOnce::to(b"d", b"f", b"")),
        "b/p/1/P a/p/1/P a/q/1/P a/r/1/P"
    );

    let one = |hint| scan_with_hint(cells, ReadRows::One(b"a"), hint).0;
    assert_eq!(one(HintOnce::to(b"a", b"f", b"r")), "a/r/1/P");
    assert_eq!(one(HintOnce::to(b"b", b"f", b"")), "");
}

#[test]
fn a_list_sees_every_cell_of_a_row_in_a_reversed_scan() {
    let cells = "a/p/1/P a/q/1/P a/r/1/P b/p/1/P b/q/1/P b/r/1/P";
    let run = |rows, hint: HintOnce| scan_with_hint(cells, rows, hint.in_list()).0;
    let ahead = || HintOnce::to(b"b", b"f", b"r");
    assert_eq!(
        run(ALL_REVERSED, ahead()),
        "b/q/1/P b/r/1/P a/p/1/P a/q/1/P a/r/1/P"
    );
    assert_eq!(run(ReadRows::One(b"b"), ahead()), "b/r/1/P");
    let row = HintOnce::to(b"a", b"f", b"");
    assert_eq!(run(ALL_REVERSED, row), "a/p/1/P a/q/1/P a/r/1/P", "another row");
}

/// A jump must not miss tombstones: neither of the family's, in the empty column, nor of those of
/// the target column.
#[test]
fn a_hint_does_not_uncover_deleted_cells() {
    let (results, asked) = scan_with_hint(
        "a//9/P a//5/DF a/p/3/P a/q/7/P",
        ALL,
        HintOnce::to(b"a", b"f", b"p"),
    );
    assert_eq!((results.as_str(), asked.as_str()), ("a/q/7/P", "a//9/P a/q/7/P"));
    let mut hint = HintOnce::to(b"a", b"f", b"p");
    hint.hint = Some(KeyBuf::new(b"a", b"f", b"q", 5, crate::cell::CellType::Put));
    let (results, _) = scan_with_hint("a/p/9/P a/q/8/DC a/q/5/P a/r/1/P", ALL, hint);
    assert_eq!(results, "a/r/1/P");
}

/// Doubles values, and stops everything after a number of cells.
#[derive(Debug)]
struct Doubling {
    left: usize,
}

impl Filter for Doubling {
    fn filter_all_remaining(&self) -> bool {
        self.left == 0
    }
    fn filter_cell(&mut self, _cell: Cell<'_>) -> Result<ReturnCode> {
        self.left -= 1;
        Ok(ReturnCode::Include)
    }
    fn transforms(&self) -> bool {
        true
    }
    fn transform_value<'a>(&self, cell: Cell<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        scratch.extend_from_slice(cell.value);
        scratch.extend_from_slice(cell.value);
        scratch
    }
}

#[test]
fn a_filter_changes_values_and_ends_the_scan() {
    let store = store("a/p/1/P=x a/q/1/P=y b/p/1/P=z c/p/1/P=w");
    let mut scanner = open(&store, ALL);
    let results = read_all(&mut scanner, Some(&mut Doubling { left: 3 }), 9);
    assert_eq!(show(&results), "a/p/1/P=xx a/q/1/P=yy b/p/1/P=zz");
}

/// HBase's storeLimit and storeOffset: cells of the family in a row.
#[test]
fn family_limit_and_offset_count_cells_of_each_row() {
    let store = store("a/p/1/P a/q/1/P a/r/1/P b/p/1/P b/q/1/P b/r/1/P b/s/1/P");
    let spec = ReadSpec {
        family_limit: Some(2),
        family_offset: 1,
        ..spec()
    };
    let mut scanner = store.open(None, &spec, SeqId::MAX, ALL);
    assert_eq!(
        show(&read_all(&mut scanner, None, 1)),
        "a/q/1/P a/r/1/P b/q/1/P b/r/1/P"
    );
    // None lets one through, as in HBase.
    let none = ReadSpec {
        family_limit: Some(0),
        ..spec
    };
    assert_eq!(store.scan(&none), "a/q/1/P b/q/1/P");
}

/// Tombstones in one source mask puts in all others.
#[test]
fn tombstones_reach_over_sources() {
    let mut store = store("a//5/DF a/p/7/P");
    store.freeze();
    store.write_all("a/p/4/P a/q/5/P a/r/6/P");
    store.freeze();
    store.write_all("a/r/6/D b/p/1/P");
    assert_eq!(store.scan(&spec()), "a/p/7/P b/p/1/P");
    assert_eq!(store.get("a", 9), "a/p/7/P");
    assert_eq!(NOW_MS, 10_000, "no cell of these tests has expired");
}
