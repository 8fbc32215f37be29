//! The memstore's arena, list of cells, index and totals under loom. What a node's bytes are is plain memory,
//! which loom does not watch: Miri does.

use std::sync::Arc;

use loom::thread;

use super::arena::{Arena, FIRST_CHUNK_BYTES};
use super::*;
use crate::cell::{CellType, KeyBuf};
use crate::sync::check;

fn key(row: u8) -> KeyBuf {
    KeyBuf::new(&[row], b"f", b"q", 1, CellType::Put)
}

/// Inserts a cell of a row with this sequence id, linked on `height` levels.
fn insert(memstore: &Memstore, row: u8, seq: u64, height: usize) {
    let key = key(row);
    let cell = Cell {
        key: key.as_key(),
        value: b"v",
        tags: b"",
        seq: SeqId(seq),
    };
    memstore.list.insert_all_with(&[cell], || height);
}

/// Rows and sequence ids from the first cell on, on level 0.
fn walk(memstore: &Arc<Memstore>) -> Vec<(u8, u64)> {
    let mut cursor = memstore.cursor();
    cursor.seek(key(0).as_key()).unwrap();
    let mut met = Vec::new();
    while let Some(cell) = cursor.cell() {
        met.push((cell.key.row()[0], cell.seq.0));
        cursor.advance().unwrap();
    }
    met
}

/// Whether a search, which uses all levels, finds the row's first cell.
fn finds(memstore: &Arc<Memstore>, row: u8) -> bool {
    let mut cursor = memstore.cursor();
    cursor.seek(key(row).as_key()).unwrap();
    cursor.cell().is_some_and(|cell| cell.key.row() == [row])
}

fn spawn(memstore: &Arc<Memstore>, run: impl FnOnce(&Arc<Memstore>) + 'static) -> thread::JoinHandle<()> {
    let memstore = Arc::clone(memstore);
    thread::spawn(move || run(&memstore))
}

fn is_sorted(met: &[(u8, u64)]) -> bool {
    met.is_sorted_by_key(|(row, seq)| (*row, u64::MAX - seq))
}

/// Two writers insert next to each other, on both levels, while a reader walks: nothing is lost, the order
/// holds at every moment, and what was there before the reader came is met.
fn insert_two(cells: [(u8, u64); 2]) {
    check(2, move || {
        let memstore = Arc::new(Memstore::default());
        insert(&memstore, 5, 1, 2);
        let [mine, others] = cells;
        let writer = spawn(&memstore, move |memstore| {
            insert(memstore, others.0, others.1, 2);
        });
        let reader = spawn(&memstore, |memstore| {
            let met = walk(memstore);
            assert!(is_sorted(&met) && met.contains(&(5, 1)), "{met:?}");
        });
        insert(&memstore, mine.0, mine.1, 2);
        writer.join().unwrap();
        reader.join().unwrap();
        let mut all = vec![(5, 1), mine, others];
        all.sort_by_key(|(row, seq)| (*row, u64::MAX - seq));
        assert_eq!(walk(&memstore), all);
        for (row, _) in all {
            assert!(finds(&memstore, row), "row {row} is not found");
        }
        memstore.list.check_index();
    });
}

#[test]
fn loom_neighbours_are_inserted_at_once() {
    insert_two([(6, 2), (7, 3)]);
}

/// Both find the same place, and the later one sorts before the one that was faster.
#[test]
fn loom_one_place_is_contended() {
    insert_two([(6, 2), (6, 3)]);
}

/// One goes behind the other, or both right behind the first cell.
#[test]
fn loom_neighbours_are_inserted_in_reverse() {
    insert_two([(7, 2), (6, 3)]);
}

/// Whoever finds a cell finds everything that was there when it was inserted, behind it and before it.
#[test]
fn loom_a_cell_is_found_with_its_surroundings() {
    check(2, || {
        let all = [(3, 3), (5, 2), (9, 1)];
        let memstore = Arc::new(Memstore::default());
        let reader = spawn(&memstore, move |memstore| {
            // A later one shows only with all earlier ones, which lie behind it.
            let met = walk(memstore);
            let first = met.first().map(|first| all.iter().position(|cell| cell == first));
            let from = first.map_or(Some(all.len()), |first| first);
            assert_eq!(met, all[from.expect("only those were inserted")..]);
        });
        insert(&memstore, 9, 1, 1);
        insert(&memstore, 5, 2, 2);
        insert(&memstore, 3, 3, 2);
        reader.join().unwrap();
        assert_eq!(walk(&memstore), all);
        memstore.list.check_index();
    });
}

/// Two writers come to an empty memstore, which has no leaf yet.
#[test]
fn loom_the_first_leaf_is_made_once() {
    check(3, || {
        let memstore = Arc::new(Memstore::default());
        let writer = spawn(&memstore, |memstore| insert(memstore, 5, 1, 1));
        insert(&memstore, 6, 2, 1);
        writer.join().unwrap();
        assert_eq!(walk(&memstore), [(5, 1), (6, 2)]);
        assert_eq!(memstore.list.check_index()[0], 1);
    });
}

/// A writer splits a leaf, whose entries move while a reader searches there: what was there is found,
/// wherever it is now.
#[test]
fn loom_a_split_hides_nothing() {
    for (new, sought) in [(4, 3), (4, 7), (2, 7), (8, 7)] {
        check(3, move || {
            let memstore = Arc::new(Memstore::default());
            insert(&memstore, 3, 1, 2);
            insert(&memstore, 7, 2, 2);
            let reader = spawn(&memstore, move |memstore| {
                assert!(finds(memstore, sought), "row {sought} is not found");
            });
            insert(&memstore, new, 3, 2);
            reader.join().unwrap();
            assert!(finds(&memstore, new), "row {new} is not found");
            assert_eq!(memstore.list.check_index()[..2], [2, 2]);
        });
    }
}

/// Two writers come to a full leaf at once. One of them splits it, and the other finds the right half.
#[test]
fn loom_a_full_leaf_is_contended() {
    for (mine, others) in [(4, 5), (2, 8), (8, 9)] {
        check(3, move || {
            let memstore = Arc::new(Memstore::default());
            insert(&memstore, 3, 1, 2);
            insert(&memstore, 7, 2, 2);
            let writer = spawn(&memstore, move |memstore| insert(memstore, others, 4, 2));
            insert(&memstore, mine, 3, 2);
            writer.join().unwrap();
            let mut all = vec![(3, 1), (7, 2), (mine, 3), (others, 4)];
            all.sort_unstable();
            assert_eq!(walk(&memstore), all);
            // All are linked on both levels.
            let levels = memstore.list.check_index();
            assert_eq!(levels[0], levels[1]);
        });
    }
}

/// A writer inserts a batch while another one splits the leaf of its insertion hint.
#[test]
fn loom_an_insertion_hint_is_left_behind() {
    check(1, || {
        let memstore = Arc::new(Memstore::default());
        // Leaves of two cells: each row of the batch splits one.
        for (row, seq) in [(20, 1), (40, 2), (60, 3), (80, 4)] {
            insert(&memstore, row, seq, 1);
        }
        let writer = spawn(&memstore, |memstore| insert(memstore, 15, 9, 1));
        let keys = [70, 30, 10, 50].map(key);
        let cells: Vec<Cell<'_>> = keys
            .iter()
            .zip(5..)
            .map(|(key, seq)| Cell {
                key: key.as_key(),
                value: b"v",
                tags: b"",
                seq: SeqId(seq),
            })
            .collect();
        memstore.list.insert_all_with(&cells, || 1);
        writer.join().unwrap();
        let rows: Vec<u8> = walk(&memstore).iter().map(|(row, _)| *row).collect();
        assert_eq!(rows, [10, 15, 20, 30, 40, 50, 60, 70, 80]);
        memstore.list.check_index();
    });
}

/// Pieces of memory never overlap, also where the chunk ends and both threads want the next one.
#[test]
fn loom_threads_get_memory_of_their_own() {
    const PIECE: usize = FIRST_CHUNK_BYTES / 4;
    check(3, || {
        let arena = Arc::new(Arena::new(Arc::default()));
        // The rest is enough for one more piece.
        for _ in 0..3 {
            arena.allocate(PIECE);
        }
        let other = {
            let arena = Arc::clone(&arena);
            thread::spawn(move || [(); 2].map(|()| arena.allocate(PIECE).addr().get()))
        };
        let mine = [(); 2].map(|()| arena.allocate(PIECE).addr().get());
        let mut starts = [other.join().unwrap(), mine].concat();
        starts.sort_unstable();
        assert!(
            starts.windows(2).all(|pair| pair[1] - pair[0] >= PIECE),
            "{starts:?}"
        );
        let bytes = arena.bytes() as usize;
        assert!(
            bytes < 4 * FIRST_CHUNK_BYTES,
            "one more chunk is enough, and not {bytes} bytes"
        );
    });
}

/// A reader that finds a cell gets extremes with that cell in them: scans leave memstores out
/// by them.
#[test]
fn loom_a_cell_is_in_the_totals_before_it_is_found() {
    check(3, || {
        let memstore = Arc::new(Memstore::default());
        let writer = spawn(&memstore, |memstore| {
            for (row, seq, timestamp) in [(5, 7, 70), (6, 8, 60)] {
                let key = KeyBuf::new(&[row], b"f", b"q", timestamp, CellType::Put);
                memstore.insert(Cell {
                    key: key.as_key(),
                    value: b"v",
                    tags: b"",
                    seq: SeqId(seq),
                });
            }
        });
        let count = memstore.cell_count();
        if let Some((min, max)) = memstore.time_range() {
            assert!(min <= 70 && max >= 70, "{min} to {max}");
            assert!(memstore.min_seq() == Some(SeqId(7)) && memstore.max_seq() >= Some(SeqId(7)));
        } else {
            assert_eq!(count, 0);
        }
        for (row, seq) in walk(&memstore) {
            let (min, max) = memstore.time_range().expect("there is a cell");
            let timestamp = if row == 5 { 70 } else { 60 };
            assert!((min..=max).contains(&timestamp));
            assert!(memstore.max_seq() >= Some(SeqId(seq)));
        }
        writer.join().unwrap();
        assert_eq!(memstore.time_range(), Some((60, 70)));
    });
}
