//! Reads touch only the blocks that they need, counted at an empty block cache.
//!
//! The table: 40 rows `r00` to `r39`. Family `f` has 200 columns `c000` to `c199` in each row, 20 blocks and more; family `g` has the column
//! `on`, which is `yes` in one row of ten.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::filter::{FilterSpec, FuzzyKey, MaskForm, RowRange};
use basalt_engine::op::{ReadSpec, Scan, Write};
use basalt_engine::options::Options;
use basalt_engine::schema::TableDescriptor;

use crate::rig::{F, Rig, apply, descriptor, mutation, name, scan};

const ROWS: usize = 40;
const COLUMNS: usize = 200;

fn with_small_blocks(mut descriptor: TableDescriptor) -> TableDescriptor {
    for family in &mut descriptor.families {
        *family = family.clone().with("BLOCKSIZE", 1024).unwrap();
    }
    descriptor
}

/// The table on disk, in one file of each family.
fn rig() -> Rig {
    let mut rig = Rig::in_memory();
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
        // The block where the row begins, one or two with what is wanted, and the one where the next row begins: of 20.
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
    // A row without the column would pass: each row has to be looked for in both families, and is read before it is judged.
    let (cells, blocks) = cost(&rig, on(false));
    assert_eq!(cells, 4 * (COLUMNS + 1));
    assert!(blocks * 2 > all, "{blocks} of {all} blocks");
}
