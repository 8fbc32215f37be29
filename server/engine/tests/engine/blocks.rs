//! Reads touch only the blocks that they need, counted at an empty block cache.
//!
//! The table: 40 rows `r00` to `r39`. Family `f` has 200 columns `c000` to `c199` in each row, 20 blocks and
//! more; family `g` has the column `on`, which is `yes` in one row of ten.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Fetched, Scanner};
use basalt_engine::filter::{FilterSpec, FuzzyKey, MaskForm, RowRange};
use basalt_engine::fs::sim::{Errno, OpKind, SimFs, SimOptions, Times};
use basalt_engine::op::{Columns, FamilySelection, FetchLimits, Get, ReadSpec, ReadTier, Scan, Write};
use basalt_engine::options::Options;
use basalt_engine::schema::TableDescriptor;
use basalt_engine::{Engine, Error, Result};

use crate::rig::{F, Rig, Shown, apply, descriptor, drain, mutation, name, put, scan, shown};

const ROWS: usize = 40;
const COLUMNS: usize = 200;

fn with_small_blocks(mut descriptor: TableDescriptor) -> TableDescriptor {
    for family in &mut descriptor.families {
        *family = family.clone().with("BLOCKSIZE", 1024).unwrap();
    }
    descriptor
}

/// The table on a disk, in one file of each family.
fn rig_on(disk: &SimFs) -> Rig {
    let mut rig = Rig::simulated(disk);
    rig.options = Options {
        block_cache_bytes: 64 << 20,
        ..rig.options
    };
    let engine = rig.open();
    let table = name("t");
    let schema = with_small_blocks(descriptor("t", &["f", "g"]));
    engine.create_table(schema, Vec::new()).unwrap();
    for number in 0..ROWS {
        let columns: Vec<String> = (0..COLUMNS).map(|column| format!("c{column:03}")).collect();
        let mut writes: Vec<Write<'_>> = columns
            .iter()
            .map(|column| Write::Put {
                family: F,
                qualifier: column.as_bytes(),
                timestamp: Some(5),
                value: &[b'v'; 80],
                ttl_ms: None,
            })
            .collect();
        writes.push(Write::Put {
            family: b"g",
            qualifier: b"on",
            timestamp: Some(5),
            value: if number % 10 == 3 { b"yes" } else { b"no" },
            ttl_ms: None,
        });
        apply(
            &engine,
            &table,
            &[mutation(format!("r{number:02}").as_bytes(), &writes)],
        )
        .unwrap();
    }
    engine.flush(&table).unwrap();
    engine.close().unwrap();
    rig
}

fn rig() -> Rig {
    rig_on(&SimFs::new(1, SimOptions::default()))
}

/// Cells that the scan returns, and blocks that it reads when none is in the cache.
fn cost(rig: &Rig, read: Scan) -> (usize, u64) {
    let engine: Arc<Engine> = rig.open();
    let before = engine.cache_usage().misses;
    let cells = scan(&engine, &name("t"), read).len();
    let blocks = engine.cache_usage().misses - before;
    engine.close().unwrap();
    (cells, blocks)
}

fn filtered(filter: FilterSpec) -> Scan {
    Scan {
        spec: ReadSpec {
            filter: Some(Arc::new(filter)),
            ..ReadSpec::default()
        },
        ..Scan::default()
    }
}

fn parsed(filter: &str) -> Scan {
    filtered(FilterSpec::parse(filter.as_bytes()).unwrap())
}

/// Goal: direct reads open each store file a second time, and an error of that opening is reported.
/// Method: every opening of the one file of a family but the first fails.
#[test]
fn direct_reads_have_a_file_of_their_own() {
    let disk = SimFs::new(1, SimOptions::default());
    let mut rig = rig_on(&disk);
    for direct_reads in [false, true] {
        rig.options.direct_reads = direct_reads;
        let fault = disk.fail(OpKind::Open, "/f/", Errno::IO, Times::From(1));
        let opened = rig.open();
        let struck = disk.struck(fault);
        disk.heal(fault);
        let engine = if direct_reads {
            let damaged = opened.damaged_regions();
            let error = damaged.first().map(ToString::to_string).unwrap_or_default();
            assert!(error.contains(&struck[0].1.display().to_string()), "{error}");
            drop(opened);
            rig.open()
        } else {
            assert_eq!(struck, []);
            opened
        };
        let mut found = CellBatch::new();
        let get = Get {
            row: b"r17",
            spec: ReadSpec::default(),
        };
        engine.get(&name("t"), &get, &mut found).unwrap();
        assert_eq!(found.cell_count(), COLUMNS + 1);
        engine.close().unwrap();
    }
}

/// A filter that knows where the next cell is that it wants gets there by the index.
#[test]
fn hints_skip_blocks() {
    let rig = rig();
    let (cells, all) = cost(&rig, Scan::default());
    assert_eq!(cells, ROWS * (COLUMNS + 1));
    assert!(all > (ROWS * COLUMNS / 12) as u64, "{all} blocks hold the table");
    let fuzzy = FuzzyKey::new(b"r?7", &[0, 1, 0], MaskForm::Two).unwrap();
    let range = |start: &[u8], stop: &[u8]| RowRange {
        start: start.to_vec(),
        start_inclusive: true,
        stop: stop.to_vec(),
        stop_inclusive: false,
    };
    let ranges = FilterSpec::multi_row_range(vec![range(b"r05", b"r07"), range(b"r30", b"r31")]).unwrap();
    for (what, read, cells_wanted, share) in [
        // The block where the row begins, one or two with the wanted cells, and the one where the
        // next row begins: of 20.
        ("column prefix", parsed("ColumnPrefixFilter('c15')"), ROWS * 10, 4),
        (
            "column prefixes",
            parsed("MultipleColumnPrefixFilter('c01', 'c198')"),
            ROWS * 11,
            3,
        ),
        (
            "column range",
            parsed("ColumnRangeFilter('c150', true, 'c153', false)"),
            ROWS * 3,
            4,
        ),
        ("first column", parsed("FirstKeyOnlyFilter()"), ROWS, 5),
        // 4 and 3 of 40 rows.
        (
            "fuzzy rows",
            filtered(FilterSpec::fuzzy_row(vec![fuzzy])),
            4 * (COLUMNS + 1),
            7,
        ),
        ("row ranges", filtered(ranges), 3 * (COLUMNS + 1), 9),
        ("row prefix", parsed("PrefixFilter('r0')"), 10 * (COLUMNS + 1), 3),
        (
            "a stop row",
            parsed("InclusiveStopFilter('r03')"),
            4 * (COLUMNS + 1),
            7,
        ),
    ] {
        let (cells, blocks) = cost(&rig, read);
        assert_eq!(cells, cells_wanted, "{what}");
        assert!(
            blocks * share < all,
            "{what}: {blocks} of {all} blocks, for {cells} cells"
        );
    }
}

/// A family that is not needed to judge a row is not read for rows that are left out.
#[test]
fn families_are_read_on_demand() {
    let rig = rig();
    let (_, all) = cost(&rig, Scan::default());
    let on = |if_missing| {
        parsed(&format!(
            "SingleColumnValueFilter('g', 'on', =, 'binary:yes', {if_missing}, true)"
        ))
    };
    // 4 of 40 rows pass.
    let (cells, blocks) = cost(&rig, on(true));
    assert_eq!(cells, 4 * (COLUMNS + 1));
    assert!(blocks * 7 < all, "{blocks} of {all} blocks");
    // A row without the column would pass: each row has to be looked for in both families, and is read before
    // it is judged.
    let (cells, blocks) = cost(&rig, on(false));
    assert_eq!(cells, 4 * (COLUMNS + 1));
    assert!(blocks * 2 > all, "{blocks} of {all} blocks");
}

fn of_memory(reversed: bool) -> Scan {
    Scan {
        reversed,
        tier: ReadTier::Memory,
        ..Scan::default()
    }
}

/// Brings a row's blocks into the cache; of these families only, if any are named.
fn warm(engine: &Engine, row: usize, families: &[&[u8]]) {
    let selection = |family: &&[u8]| FamilySelection {
        family: family.to_vec(),
        columns: Columns::All,
    };
    let row = format!("r{row:02}");
    let read = Get {
        row: row.as_bytes(),
        spec: ReadSpec {
            families: families.iter().map(selection).collect(),
            ..ReadSpec::default()
        },
    };
    engine.get(&name("t"), &read, &mut CellBatch::new()).unwrap();
}

/// One fetch of all results.
fn fetch_all(scanner: &mut Scanner) -> (Vec<Shown>, Result<Fetched>) {
    let limits = FetchLimits {
        results: usize::MAX,
        bytes: usize::MAX,
        time: Duration::MAX,
    };
    let mut out = CellBatch::new();
    let fetched = scanner.fetch(&limits, &mut out);
    (shown(&out), fetched)
}

/// It returns the rows that the cache has whole, without reading the disk, and continues with the
/// others when it may, though the table has been written, flushed and compacted meanwhile.
#[test]
fn a_scan_of_memory_only_stops_in_front_of_what_is_on_disk() {
    let disk = SimFs::new(1, SimOptions::default());
    let rig = rig_on(&disk);
    let table = name("t");
    for reversed in [false, true] {
        for (cached, is_written) in [(0, false), (1, true), (2, false), (17, true), (ROWS, false)] {
            let engine = rig.open();
            let request = Scan {
                reversed,
                ..Scan::default()
            };
            let expected = scan(&engine, &table, request);
            engine.close().unwrap();

            let engine = rig.open();
            for row in 0..cached {
                warm(&engine, if reversed { ROWS - 1 - row } else { row }, &[]);
            }
            let mut scanner = engine.scan(&table, of_memory(reversed)).unwrap();
            let calls = disk.op_count();
            let (mut seen, fetched) = fetch_all(&mut scanner);
            let rows = seen.len() / (COLUMNS + 1);
            if cached == ROWS {
                assert_eq!((fetched.unwrap(), rows), (Fetched::End, ROWS));
            } else {
                assert!(matches!(fetched, Err(Error::NotInMemory)), "{fetched:?}");
                // Leaving the last one may need a block of the next.
                assert!(rows <= cached && rows + 1 >= cached, "{rows} rows of {cached}");
                let (more, fetched) = fetch_all(&mut scanner);
                assert!(more.is_empty() && matches!(fetched, Err(Error::NotInMemory)));
            }
            assert_eq!(disk.op_count(), calls, "it has looked at the disk");

            if is_written {
                for row in 0..ROWS {
                    put(&engine, &table, format!("r{row:02}").as_bytes(), b"later");
                }
                engine.flush(&table).unwrap();
                engine.compact(&table, None, true, true).unwrap();
            }
            scanner.read_from_disk();
            seen.extend(drain(&mut scanner));
            assert!(seen == expected, "{cached} rows were cached");
            engine.close().unwrap();
        }
    }
}

/// A family that is in memory is not returned without the one that is not.
#[test]
fn a_scan_of_memory_only_returns_no_half_of_a_row() {
    let rig = rig();
    let engine = rig.open();
    for row in 0..ROWS {
        warm(&engine, row, &[F]);
    }
    let mut scanner = engine.scan(&name("t"), of_memory(false)).unwrap();
    let (cells, fetched) = fetch_all(&mut scanner);
    assert!(
        cells.is_empty() && matches!(fetched, Err(Error::NotInMemory)),
        "{fetched:?}"
    );
    scanner.read_from_disk();
    assert_eq!(fetch_all(&mut scanner).0.len(), ROWS * (COLUMNS + 1));
}

#[test]
fn a_scan_of_memory_only_takes_no_filter_and_no_batch() {
    let rig = rig();
    let engine = rig.open();
    let mut with_filter = parsed("KeyOnlyFilter()");
    with_filter.tier = ReadTier::Memory;
    let with_batch = Scan {
        batch: Some(2),
        ..of_memory(false)
    };
    for request in [with_filter, with_batch] {
        assert!(!request.may_read_memory_only());
        let refused = engine.scan(&name("t"), request).unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument(_)), "{refused}");
    }
}
