//! The view of an open scan never changes, in whatever version of the store it continues.
//!
//! Random writes, flushes and compactions; scans are opened in between and read again and again,
//! each time in the store's current version, at their original read point. Times only go up, and
//! tombstones are of whole columns and families: cases that HBase leaves undefined (a put that is
//! older than a tombstone, a version that a tombstone brings back) do not happen.

use super::harness::{NOW_MS, TestStore, read_all};
use super::{Random, TextCell};
use crate::cell::CellType;
use crate::clock::Ahead;
use crate::id::SeqId;
use crate::op::ReadSpec;
use crate::store::{ReadRows, ReadView};

/// An open scan: its read point, and the cells that were visible then.
struct OpenScan {
    read_view: ReadView,
    seen: Vec<String>,
}

fn see(store: &TestStore, read_view: ReadView, reversed: bool) -> Vec<String> {
    let spec = ReadSpec {
        max_versions: 3,
        ..ReadSpec::default()
    };
    let rows = ReadRows::Range {
        low: b"",
        high: b"",
        reversed,
    };
    let mut scanner = store.open_at(None, &spec, read_view, rows);
    let cells = read_all(&mut scanner, None, usize::MAX);
    let mut seen: Vec<String> = cells
        .iter()
        .map(|cell| {
            // A compaction may drop the sequence id; the value says which write it was.
            let mut cell = cell.clone();
            cell.seq = SeqId::ZERO;
            cell.to_string()
        })
        .collect();
    if reversed {
        seen.sort();
    }
    seen
}

fn run_seed(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let options = [
        "VERSIONS=1",
        "VERSIONS=3",
        "VERSIONS=2 TTL=1",
        "VERSIONS=3 TTL=1 MIN_VERSIONS=1",
        "VERSIONS=2 KEEP_DELETED_CELLS=TRUE",
    ][random.below(5)];
    let mut store = TestStore::new(options);
    let mut scans: Vec<OpenScan> = Vec::new();
    let (mut now_ms, mut time, mut after_put) = (NOW_MS, NOW_MS, false);
    let mut checked = 0;
    for step in 0..60 {
        for _ in 0..random.below(12) {
            let put = !random.one_in(4);
            // Two puts may have one time; a tombstone has its own.
            if !(put && after_put && random.one_in(3)) {
                time += 1;
            }
            after_put = put;
            let row = ["a", "b", "c"][random.below(3)];
            let (qualifier, cell_type) = match put {
                true => (["", "p", "q"][random.below(3)], CellType::Put),
                false if random.one_in(3) => ("", CellType::DeleteFamily),
                false => (["", "p", "q"][random.below(3)], CellType::DeleteColumn),
            };
            let mut cell = TextCell::new(row, qualifier, time, cell_type, 0);
            cell.value = format!("w{}", store.seq + 1).into_bytes();
            store.write(cell);
        }
        now_ms = now_ms.max(time) + random.below(300) as i64;
        let now = ReadView {
            read_point: SeqId(store.seq),
            now_ms,
            ahead: Ahead::NONE,
        };
        store.horizon = scans.iter().fold(now, |earliest, scan| ReadView {
            read_point: earliest.read_point.min(scan.read_view.read_point),
            now_ms: earliest.now_ms.min(scan.read_view.now_ms),
            ahead: Ahead::NONE,
        });
        let files = store.version.files.len();
        match random.below(6) {
            0 => store.freeze(),
            1 | 2 => store.flush(),
            3 if files > 0 => {
                let start = random.below(files);
                store.compact(start..start + 1 + random.below(files - start));
            }
            4 if scans.len() < 4 => {
                let mut seen = see(&store, now, false);
                seen.sort();
                scans.push(OpenScan { read_view: now, seen });
            }
            5 if !scans.is_empty() => {
                scans.swap_remove(random.below(scans.len()));
            }
            _ => {}
        }
        for scan in &scans {
            let mut seen = see(&store, scan.read_view, false);
            seen.sort();
            assert_eq!(
                seen, scan.seen,
                "seed {seed}, step {step}, {options}, {:?}",
                scan.read_view
            );
            assert_eq!(
                see(&store, scan.read_view, true),
                scan.seen,
                "reversed, seed {seed}"
            );
            checked += scan.seen.len();
        }
    }
    checked
}

#[test]
fn a_moment_stays_what_it_was() {
    let checked: usize = (0..150).map(run_seed).sum();
    assert!(checked > 10_000, "{checked} cells were compared");
}
