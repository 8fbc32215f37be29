//! Reversed scans compared with forward ones: the same rows in reverse order, at the same cost in
//! blocks.

use super::Random;
use super::TextCell;
use super::harness::{NOW_MS, TestStore, read_all};
use crate::cell::CellType;
use crate::id::SeqId;
use crate::op::ReadSpec;
use crate::store::ReadRows;

const FORWARD: ReadRows<'static> = ReadRows::Range {
    low: b"",
    high: b"",
    reversed: false,
};
const BACKWARD: ReadRows<'static> = ReadRows::Range {
    low: b"",
    high: b"",
    reversed: true,
};

const ENCODINGS: [&str; 5] = ["NONE", "ROW_INDEX_V1", "PREFIX", "DIFF", "FAST_DIFF"];

fn row(number: usize) -> String {
    format!("row{number:04}")
}

/// A store of several files and memstores, in which most rows are deleted one way or another.
fn random_store(random: &mut Random, encoding: &str) -> TestStore {
    let mut store = TestStore::new(&format!(
        "VERSIONS=2 DATA_BLOCK_ENCODING={encoding} BLOCKSIZE=1024"
    ));
    let rows = 20 + random.below(180);
    for _ in 0..=random.below(4) {
        for number in 0..rows {
            if random.one_in(4) {
                continue;
            }
            write_row(&mut store, random, &row(number));
        }
        match random.below(4) {
            0 => store.freeze(),
            1 => {}
            _ => store.flush(),
        }
    }
    store
}

fn write_row(store: &mut TestStore, random: &mut Random, row: &str) {
    let timestamp = NOW_MS - 1000 * random.below(4) as i64;
    let columns = match random.below(12) {
        0 => 40,
        1 => 5,
        _ => 1,
    };
    let tombstone = |qualifier: &str, kind| TextCell::new(row, qualifier, timestamp, kind, 0);
    match random.below(8) {
        0 => drop(store.write(tombstone("", CellType::DeleteFamily))),
        1 => drop(store.write(tombstone("", CellType::DeleteFamilyVersion))),
        2 => drop(store.write(tombstone("q00", CellType::DeleteColumn))),
        3 => drop(store.write(tombstone("q00", CellType::Delete))),
        _ => {
            for column in 0..columns {
                let mut put = TextCell::new(row, &format!("q{column:02}"), timestamp, CellType::Put, 0);
                let bytes = if random.one_in(10) { 500 } else { 3 };
                put.value = vec![b'v'; bytes];
                store.write(put);
            }
        }
    }
}

/// The cells of each row, as text.
fn rows(cells: &[TextCell]) -> Vec<Vec<String>> {
    let rows = cells.chunk_by(|one, next| one.key.as_key().row() == next.key.as_key().row());
    rows.map(|row| row.iter().map(ToString::to_string).collect())
        .collect()
}

#[test]
fn backward_is_forward_the_other_way_round() {
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let encoding = ENCODINGS[seed as usize % ENCODINGS.len()];
        let store = random_store(&mut random, encoding);
        for _ in 0..6 {
            let spec = ReadSpec {
                max_versions: 1 + random.below(3) as i32,
                raw: random.one_in(4),
                cache_blocks: random.one_in(2),
                ..ReadSpec::default()
            };
            let floor = store.version.files_max_seq().0;
            let read_point = SeqId(floor + random.below((store.seq - floor) as usize + 1) as u64);
            let batch = if random.one_in(2) {
                usize::MAX
            } else {
                1 + random.below(7)
            };
            let read = |rows| read_all(&mut store.open(None, &spec, read_point, rows), None, batch);
            let mut expected = rows(&read(FORWARD));
            expected.reverse();
            assert_eq!(
                rows(&read(BACKWARD)),
                expected,
                "seed {seed}, {encoding}, read point {read_point:?}"
            );
        }
    }
}

/// Goal: wholly deleted rows are passed backward at the cost of passing them forward. Method: count
/// the lookups of blocks; a search from the root of a file for every row would add to them.
#[test]
fn tombstones_are_passed_backward_as_forward() {
    for encoding in ENCODINGS {
        let mut store = TestStore::new(&format!("DATA_BLOCK_ENCODING={encoding}"));
        let count = 4_000;
        for number in 0..count {
            store.write(TextCell::parse(&format!("{}/q/1/P", row(number))));
        }
        store.write(TextCell::parse("a/q/1/P=oldest"));
        store.flush();
        for number in 0..count {
            store.write(TextCell::parse(&format!("{}//2/DF", row(number))));
        }
        store.write(TextCell::parse("z/q/1/P=newest"));
        store.flush();
        let lookups = || {
            let usage = store.context.reader.cache.usage();
            usage.hits.iter().sum::<u64>() + usage.misses
        };
        let cost = |rows: ReadRows<'_>| {
            let before = lookups();
            let mut scanner = store.open(None, &ReadSpec::default(), SeqId::MAX, rows);
            let found = read_all(&mut scanner, None, usize::MAX);
            let values: Vec<_> = found
                .into_iter()
                .map(|cell| String::from_utf8(cell.value).unwrap())
                .collect();
            (values, lookups() - before)
        };
        let (values, forward) = cost(FORWARD);
        assert_eq!(values, ["oldest", "newest"], "{encoding}");
        let (values, backward) = cost(BACKWARD);
        assert_eq!(values, ["newest", "oldest"], "{encoding}");
        assert!(
            backward <= forward + 4,
            "{encoding}: {backward} lookups backward, {forward} forward"
        );
    }
}
