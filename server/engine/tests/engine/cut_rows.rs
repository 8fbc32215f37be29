//! Answers of scans, put together by the rule of HBase's clients, against an uncut scan as a model.
//!
//! A client joins a result that continues a row to the first result of its next answer, and takes
//! every other result for a whole row. So an answer has at most one row that continues, and as its
//! last result. That must hold whatever changes or drops cells after they were read: filters, batch,
//! limit and offset of a family, the maximum size of a row.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Fetched, Scanner};
use basalt_engine::filter::FilterSpec;
use basalt_engine::fs::sim::SplitMix64;
use basalt_engine::op::{FetchLimits, ReadSpec, Scan, Write};
use basalt_engine::schema::TableName;

use crate::rig::{Rig, apply, descriptor, mutation, name};

/// One of each kind of filter, in the filter language; the empty one is none.
const FILTERS: [&str; 24] = [
    "",
    "KeyOnlyFilter()",
    "KeyOnlyFilter(true)",
    "FirstKeyOnlyFilter()",
    "FirstKeyOnlyFilter() AND KeyOnlyFilter()",
    "ColumnPrefixFilter('c1') AND KeyOnlyFilter()",
    "KeyOnlyFilter() OR ValueFilter(=, 'binaryprefix:b')",
    "PrefixFilter('r1')",
    "ColumnPrefixFilter('c1')",
    "MultipleColumnPrefixFilter('c0', 'c2')",
    "ColumnCountGetFilter(5)",
    "PageFilter(3)",
    "ColumnPaginationFilter(4, 2)",
    "InclusiveStopFilter('r12')",
    "TimestampsFilter(2, 3)",
    "RowFilter(>, 'binary:r04')",
    "FamilyFilter(=, 'binary:g')",
    "QualifierFilter(<, 'binary:c08')",
    "ValueFilter(!=, 'binaryprefix:a')",
    "ColumnRangeFilter('c02', true, 'c09', false)",
    "SingleColumnValueFilter('f', 'c01', !=, 'binaryprefix:a')",
    "SingleColumnValueExcludeFilter('f', 'c01', !=, 'binaryprefix:b')",
    "DependentColumnFilter('f', 'c03')",
    "SKIP ValueFilter(!=, 'binaryprefix:zz') AND KeyOnlyFilter()",
];
/// Bytes of an answer.
const ANSWER_BYTES: [usize; 7] = [1, 70, 500, 3_000, 40_000, 1 << 20, 2 << 20];
/// Bytes after which a fetch of the server takes another turn.
const TURN_BYTES: usize = 10_000;
const ROWS: usize = 16;

/// Treatment of a row's cells besides the filter.
#[derive(Clone, Copy, Debug)]
struct Shape {
    batch: Option<usize>,
    family_offset: usize,
    family_limit: Option<usize>,
    max_versions: i32,
}

const WHOLE: Shape = Shape {
    batch: None,
    family_offset: 0,
    family_limit: None,
    max_versions: 1,
};
const SHAPES: [Shape; 5] = [
    WHOLE,
    Shape {
        max_versions: 3,
        ..WHOLE
    },
    Shape {
        family_offset: 2,
        family_limit: Some(3),
        ..WHOLE
    },
    Shape {
        batch: Some(1),
        ..WHOLE
    },
    Shape {
        batch: Some(3),
        family_limit: Some(7),
        max_versions: 3,
        ..WHOLE
    },
];

/// One answer without limits.
const UNCUT: Asked = Asked {
    count: usize::MAX,
    bytes: usize::MAX,
    cuts: false,
    batch: None,
};

/// A cell: its key and its value.
type Shown = (Vec<u8>, Vec<u8>);
/// A row and its cells.
type Row = (Vec<u8>, Vec<Shown>);

/// Rows of up to 24 columns and 3 versions, in files and in memory; one row has 2.4 MB.
fn table(engine: &Engine) -> TableName {
    let table = name("t");
    engine
        .create_table(descriptor("t", &["f", "g"]), Vec::new())
        .unwrap();
    let mut dice = SplitMix64::new(56);
    for timestamp in 1..=3 {
        for number in 0..ROWS {
            let row = format!("r{number:02}");
            let is_long = number == 9 && timestamp == 3;
            let columns = if is_long { 6 } else { dice.below(13) };
            for (family, column) in [b"f", b"g"]
                .iter()
                .flat_map(|f| (0..columns).map(move |c| (f, c)))
            {
                let size = match dice.below(8) {
                    _ if is_long => 200_000,
                    0 => 0,
                    1 => 2_500,
                    _ => 1 + dice.below(60) as usize,
                };
                let qualifier = format!("c{column:02}");
                let value = vec![b'a' + dice.below(3) as u8; size];
                let write = match dice.below(9) {
                    0 if !is_long => Write::DeleteColumn {
                        family: *family,
                        qualifier: qualifier.as_bytes(),
                        timestamp: Some(timestamp),
                    },
                    _ => Write::Put {
                        family: *family,
                        qualifier: qualifier.as_bytes(),
                        timestamp: Some(timestamp),
                        value: &value,
                        ttl_ms: None,
                    },
                };
                apply(engine, &table, &[mutation(row.as_bytes(), &[write])]).unwrap();
            }
        }
        if timestamp < 3 {
            engine.flush(&table).unwrap();
        }
    }
    table
}

fn scan_of(filter: &str, shape: Shape, reversed: bool) -> Scan {
    let filter = (!filter.is_empty()).then(|| Arc::new(FilterSpec::parse(filter.as_bytes()).unwrap()));
    Scan {
        reversed,
        batch: shape.batch,
        spec: ReadSpec {
            filter,
            family_offset: shape.family_offset,
            family_limit: shape.family_limit,
            max_versions: shape.max_versions,
            ..ReadSpec::default()
        },
        ..Scan::default()
    }
}

/// The results of a batch, each with whether its row continues.
fn results(out: &CellBatch) -> Vec<(Row, bool)> {
    let shown = |cell: basalt_engine::cell::Cell<'_>| (cell.key.bytes().to_vec(), cell.value.to_vec());
    out.rows()
        .map(|row| {
            (
                (row.key().to_vec(), row.cells().map(shown).collect()),
                row.partial,
            )
        })
        .collect()
}

/// One answer, made in turns as the server's `service::scans` makes it.
fn answer(scanner: &mut Scanner, asked: Asked) -> (CellBatch, Fetched) {
    let Asked {
        count, bytes, cuts, ..
    } = asked;
    let mut out = CellBatch::new();
    loop {
        let limits = FetchLimits {
            results: count - out.row_count(),
            bytes: bytes.saturating_sub(out.data_bytes()).clamp(1, TURN_BYTES),
            time: Duration::MAX,
        };
        let fetched = scanner
            .fetch_in_pieces(&limits, cuts.then_some(bytes), &mut out)
            .unwrap();
        let is_full = out.row_count() >= count || (out.data_bytes() >= bytes && out.row_count() > 0);
        if fetched == Fetched::End || scanner.has_cut_row() || is_full {
            return (out, fetched);
        }
    }
}

/// How a client asks for answers.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Most results of an answer.
    count: usize,
    /// Bytes of an answer.
    bytes: usize,
    /// Whether rows may be cut.
    cuts: bool,
    batch: Option<usize>,
}

/// All rows of a scan, as HBase's client puts them together. With a batch, a row also comes in
/// results of so many cells.
fn put_together(mut scanner: Scanner, asked: Asked, what: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut continues = false;
    loop {
        let (out, fetched) = answer(&mut scanner, asked);
        let results = results(&out);
        let last = results.len().saturating_sub(1);
        for (at, ((row, cells), partial)) in results.into_iter().enumerate() {
            let is_of_batch = asked.batch == Some(cells.len());
            assert!(
                !partial || at == last || is_of_batch,
                "cut in the middle of an answer: {what}"
            );
            assert!(
                !partial || asked.cuts || is_of_batch,
                "cut without being asked: {what}"
            );
            match rows.last_mut().filter(|_| continues) {
                Some(begun) => {
                    assert_eq!(begun.0, row, "the rest of a row comes next: {what}");
                    begun.1.extend(cells);
                }
                None => rows.push((row, cells)),
            }
            continues = partial;
        }
        if fetched == Fetched::End || scanner.is_at_end() {
            assert!(!continues, "the end in the middle of a row: {what}");
            return rows;
        }
    }
}

/// Whether a filter judges whole rows: it then takes no batch, and its rows are not cut.
fn judges_rows(filter: &str) -> bool {
    !filter.is_empty()
        && FilterSpec::parse(filter.as_bytes())
            .unwrap()
            .create()
            .has_filter_row()
}

/// Every filter, shape, direction and size of answers, with rows cut or not.
#[test]
fn answers_put_together_are_the_rows_of_an_uncut_scan() {
    let (_disk, _rig, engine) = Rig::open_simulated();
    let table = table(&engine);
    let mut scans = 0;
    for (filter, shape) in FILTERS
        .iter()
        .flat_map(|filter| SHAPES.map(|shape| (*filter, shape)))
    {
        if shape.batch.is_some() && judges_rows(filter) {
            continue;
        }
        for reversed in [false, true] {
            let open = |shape| engine.scan(&table, scan_of(filter, shape, reversed)).unwrap();
            let whole = put_together(open(Shape { batch: None, ..shape }), UNCUT, filter);
            for (at, bytes) in ANSWER_BYTES.into_iter().enumerate() {
                for cuts in [false, true] {
                    let asked = Asked {
                        count: [usize::MAX, 1, 3][at % 3],
                        bytes,
                        cuts,
                        batch: shape.batch,
                    };
                    let what = format!("{filter:?}, {shape:?}, reversed: {reversed}, {asked:?}");
                    let found = put_together(open(shape), asked, &what);
                    assert!(found == whole, "{} rows of {}: {what}", found.len(), whole.len());
                    scans += 1;
                }
            }
        }
    }
    assert!(scans > 2_000, "{scans} scans");
}

/// Values that a filter removes fill no answer: whole rows come together as far as their keys fit.
#[test]
fn cells_that_a_filter_removes_do_not_cut_rows() {
    let (_disk, _rig, engine) = Rig::open_simulated();
    let table = table(&engine);
    let scan = scan_of("KeyOnlyFilter()", WHOLE, false);
    let mut scanner = engine.scan(&table, scan).unwrap();
    let asked = Asked {
        bytes: 100_000,
        cuts: true,
        ..UNCUT
    };
    let (out, fetched) = answer(&mut scanner, asked);
    assert_eq!(fetched, Fetched::End, "one answer has all keys");
    assert!(out.rows().all(|row| !row.partial));
}

/// A row is also cut at the maximum size of rows, where that is less than the size of an answer.
#[test]
fn a_row_that_is_cut_at_its_maximum_size_ends_the_answer() {
    let (_disk, mut rig, engine) = Rig::open_simulated();
    let table = table(&engine);
    let whole = put_together(engine.scan(&table, scan_of("", WHOLE, false)).unwrap(), UNCUT, "");
    engine.flush(&table).unwrap();
    drop(engine);
    rig.options.row_max_bytes = 600;
    let engine = rig.open();
    for (filter, reversed) in [("", false), ("", true), ("KeyOnlyFilter()", false)] {
        let scanner = engine.scan(&table, scan_of(filter, WHOLE, reversed)).unwrap();
        let asked = Asked {
            bytes: 50_000,
            cuts: true,
            ..UNCUT
        };
        let found = put_together(scanner, asked, "a small maximum");
        let cells = |rows: &[Row]| rows.iter().map(|(_, cells)| cells.len()).sum::<usize>();
        assert_eq!((found.len(), cells(&found)), (whole.len(), cells(&whole)));
    }
}
