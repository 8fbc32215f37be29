//! The memstore against a `BTreeMap`, and under threads.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::cell::{CellType, KeyBuf};

/// The order of cells, written down independently of `compare_keys`.
type Place = (Vec<u8>, Vec<u8>, Reverse<i64>, Reverse<u8>, Reverse<u64>);

fn place_of(cell: Cell<'_>) -> Place {
    (
        cell.key.row().to_vec(),
        cell.key.qualifier().to_vec(),
        Reverse(cell.key.timestamp()),
        Reverse(cell.key.type_code()),
        Reverse(cell.seq.0),
    )
}

fn key(row: &[u8], qualifier: &[u8], timestamp: i64) -> KeyBuf {
    KeyBuf::new(row, b"f", qualifier, timestamp, CellType::Put)
}

fn insert(memstore: &Memstore, key: &KeyBuf, value: &[u8], tags: &[u8], seq: u64) {
    memstore.insert(Cell {
        key: key.as_key(),
        value,
        tags,
        seq: SeqId(seq),
    });
}

/// All places from the first on.
fn walk(memstore: &Arc<Memstore>) -> Vec<Place> {
    let mut cursor = memstore.cursor();
    cursor.seek(key(b"", b"", i64::MAX).as_key()).unwrap();
    let mut places = Vec::new();
    while let Some(cell) = cursor.cell() {
        places.push(place_of(cell));
        cursor.advance().unwrap();
    }
    places
}

#[test]
fn an_empty_memstore_answers_everything() {
    let memstore = Arc::new(Memstore::default());
    assert_eq!(
        (memstore.bytes(), memstore.data_bytes(), memstore.cell_count()),
        (0, 0, 0)
    );
    assert_eq!(
        (memstore.min_seq(), memstore.max_seq(), memstore.time_range()),
        (None, None, None)
    );
    let mut cursor = memstore.cursor();
    cursor.advance().unwrap();
    cursor.seek(key(b"a", b"", 0).as_key()).unwrap();
    assert!(cursor.cell().is_none());
    cursor.seek_forward(key(b"b", b"", 0).as_key()).unwrap();
    cursor.seek_row_before(b"z").unwrap();
    assert!(cursor.cell().is_none());
    cursor.seek_last_row().unwrap();
    assert!(cursor.cell().is_none());
}

#[test]
fn a_cell_comes_back_whole() {
    let memstore = Arc::new(Memstore::default());
    let large = vec![7; 3 << 20];
    insert(&memstore, &key(b"row", b"large", 5), &large, b"", 3);
    insert(
        &memstore,
        &key(b"row", b"q", -5),
        b"value",
        b"\x00\x01\x08",
        u64::MAX,
    );
    let mut cursor = memstore.cursor();
    assert!(cursor.cell().is_none(), "a new cursor stands nowhere");
    cursor.seek_forward(key(b"", b"", 0).as_key()).unwrap();
    let cell = cursor.cell().unwrap();
    assert_eq!(
        (cell.key, cell.seq),
        (key(b"row", b"large", 5).as_key(), SeqId(3))
    );
    assert!(cell.value == large && cell.tags.is_empty());
    drop(memstore);
    cursor.advance().unwrap();
    let cell = cursor.cell().unwrap();
    assert_eq!((cell.key, cell.seq), (key(b"row", b"q", -5).as_key(), SeqId::MAX));
    assert_eq!((cell.value, cell.tags), (&b"value"[..], &b"\x00\x01\x08"[..]));
    cursor.advance().unwrap();
    assert!(cursor.cell().is_none());
    cursor.seek_forward(key(b"a", b"", 0).as_key()).unwrap();
    assert!(cursor.cell().is_none(), "past the end there is nothing ahead");
}

#[test]
fn later_writes_of_a_key_come_first() {
    let memstore = Arc::new(Memstore::default());
    let same = key(b"row", b"q", 1);
    for seq in [5, 9, 7] {
        insert(&memstore, &same, seq.to_string().as_bytes(), b"", seq);
    }
    insert(&memstore, &same, b"7 again", b"", 7);
    let mut cursor = memstore.cursor();
    cursor.seek(same.as_key()).unwrap();
    let mut values = Vec::new();
    while let Some(cell) = cursor.cell() {
        values.push(String::from_utf8(cell.value.to_vec()).unwrap());
        cursor.advance().unwrap();
    }
    assert_eq!(values, ["9", "7 again", "7", "5"]);
}

#[test]
fn totals_add_up() {
    let memstore = Arc::new(Memstore::default());
    let (first, second) = (key(b"a", b"q", 20), key(b"b", b"", -3));
    insert(&memstore, &first, b"value", b"tag", 8);
    insert(&memstore, &second, b"", b"", 4);
    let data_bytes = first.as_key().bytes().len() + 5 + 3 + second.as_key().bytes().len();
    assert_eq!(
        (memstore.data_bytes(), memstore.cell_count()),
        (data_bytes as u64, 2)
    );
    assert_eq!(
        (memstore.min_seq(), memstore.max_seq()),
        (Some(SeqId(4)), Some(SeqId(8)))
    );
    assert_eq!(memstore.time_range(), Some((-3, 20)));
    let before = memstore.bytes();
    assert!(before >= arena::FIRST_CHUNK_BYTES as u64);
    insert(
        &memstore,
        &key(b"c", b"", 0),
        &vec![0; memory::CHUNK_MAX_BYTES],
        b"",
        9,
    );
    let grown = memstore.bytes() - before;
    assert!((memory::CHUNK_MAX_BYTES..memory::CHUNK_MAX_BYTES + 300).contains(&(grown as usize)));
}

/// Goal: the bytes a memstore asks for stay close to what it was given. Method: many small cells; the rest is
/// links, lengths, alignment, entries of leaves and the free end of the last chunk. (Under Miri leaves are
/// small, so that some are split.)
#[cfg(not(miri))]
#[test]
fn overhead_per_cell_is_bounded() {
    let memstore = Memstore::default();
    let cells = 50_000_u64;
    for number in 0..cells {
        let row = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        insert(&memstore, &key(&row, b"", 1), &[0; 100], b"", number);
    }
    let overhead = memstore.bytes() - memstore.data_bytes();
    assert!(
        overhead < cells * 55 + memory::CHUNK_MAX_BYTES as u64,
        "{} bytes per cell",
        overhead / cells
    );
}

/// Goal: leaves fill up and levels thin out as they should, whatever comes. Method: what is all new, one
/// after the other or at random, and what is written again and again; all of it in rows with a long prefix in
/// common, in columns of one row, and in versions of one column.
#[test]
fn leaves_are_filled_in_any_order() {
    let count: u64 = if cfg!(miri) { 25 } else { 40_000 };
    let scattered = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let orders: [(&str, Order, f64); 4] = [
        ("ascending", Box::new(|number| number), 0.95),
        ("scattered", Box::new(scattered), 0.6),
        ("descending", Box::new(move |number| count - number), 0.95),
        (
            "again",
            Box::new(move |number| scattered(number % (count / 20))),
            0.45,
        ),
    ];
    for (name, order, fill) in orders {
        for part in ["row", "qualifier", "timestamp"] {
            let memstore = Arc::new(Memstore::default());
            for number in 0..count {
                let text = format!("common-to-all-of-them-{:020}", order(number));
                let key = match part {
                    "row" => key(text.as_bytes(), b"q", 1),
                    "qualifier" => key(b"row", text.as_bytes(), 1),
                    // Later ones sort before.
                    _ => key(b"row", b"q", -order(number).cast_signed()),
                };
                insert(&memstore, &key, b"", b"", number + 1);
            }
            let levels = memstore.list.check_index();
            let filled = count as f64 / (levels[0] * index::LEAF_CELLS) as f64;
            assert!(filled > fill || cfg!(miri), "{part}, {name}: {filled:.2}");
            for (below, above) in levels.iter().zip(&levels[1..]) {
                let most = *below as f64 / 4.0 + 6.0 * (*below as f64).sqrt();
                assert!((*above as f64) < most + 1.0, "{part}, {name}: {levels:?}");
            }
            assert!(levels[1] > 1 || cfg!(miri), "{part}, {name}: {levels:?}");
        }
    }
}

/// Goal: what a walk fetches ahead is what it comes to. Method: from any cell on through many leaves, steps
/// are compared with the order.
#[test]
fn a_walk_fetches_what_it_comes_to() {
    const CELLS: usize = if cfg!(miri) { 60 } else { 2_000 };
    let memstore = Arc::new(Memstore::default());
    let key_of = |number: usize| key(format!("{number:06}").as_bytes(), b"q", 1);
    for number in 0..CELLS {
        // Every number once, scattered.
        insert(
            &memstore,
            &key_of(number * 7 % CELLS),
            b"",
            b"",
            number as u64 + 1,
        );
    }
    let mut cursor = memstore.cursor();
    for first in 0..CELLS {
        cursor.seek(key_of(first).as_key()).unwrap();
        assert!(cursor.iter.prefetched().is_none(), "many look at one cell only");
        // All the way from the first one, and from any other across the end of its leaf at most.
        let end = if first == 0 {
            CELLS
        } else {
            CELLS.min(first + 2 * index::LEAD)
        };
        for at in first + 1..end {
            cursor.advance().unwrap();
            assert_eq!(cursor.cell().unwrap().key, key_of(at).as_key());
            let expected = (at - first + 1).min(index::LEAD).min(CELLS - 1 - at);
            let (lead, last) = cursor
                .iter
                .prefetched()
                .map_or((0, None), |(lead, last)| (lead, Some(last.key())));
            assert_eq!(lead, expected, "at {at} from {first}");
            if lead > 0 {
                assert_eq!(last, Some(key_of(at + lead).as_key()), "at {at} from {first}");
            }
        }
    }
}

/// A permutation of the first so many numbers.
type Order = Box<dyn Fn(u64) -> u64>;

/// Inserts cells of these keys with the sequence ids `first_seq`, `first_seq + 1`, ... at once.
fn insert_all(memstore: &Memstore, keys: &[KeyBuf], value: &[u8], first_seq: u64) {
    let cells: Vec<Cell<'_>> = keys
        .iter()
        .zip(first_seq..)
        .map(|(key, seq)| Cell {
            key: key.as_key(),
            value,
            tags: b"",
            seq: SeqId(seq),
        })
        .collect();
    memstore.insert_all(&cells);
}

/// Goal: the insertion hint never puts cells in the wrong place. Method: orders in which it leads to the
/// leaf, misses it, and leads there half of the time; one by one and several at once.
#[test]
fn insertion_order_does_not_matter() {
    let sizes: &[usize] = if cfg!(miri) { &[7] } else { &[1, 2, 7, 100] };
    for at_once in sizes {
        insert_in_several_orders(*at_once);
    }
}

fn insert_in_several_orders(at_once: usize) {
    let count: u64 = if cfg!(miri) { 60 } else { 3_000 };
    let place = |number: u64| (number / 10, number % 10);
    let orders: [Order; 6] = [
        Box::new(|number| number),
        Box::new(move |number| count - 1 - number),
        Box::new(move |number| {
            if number % 2 == 0 {
                number / 2
            } else {
                count - 1 - number / 2
            }
        }),
        Box::new(move |number| number * 7 % count),
        // Every row behind the one before, never right behind it; and in front of it.
        Box::new(move |number| number * 30 % count + number * 30 / count),
        Box::new(move |number| count - 1 - (number * 30 % count + number * 30 / count)),
    ];
    for (index, order) in orders.iter().enumerate() {
        let memstore = Arc::new(Memstore::default());
        let keys: Vec<KeyBuf> = (0..count)
            .map(|number| {
                let (row, qualifier) = place(order(number));
                key(&row.to_be_bytes(), &[qualifier as u8], 1)
            })
            .collect();
        for (number, keys) in keys.chunks(at_once).enumerate() {
            let first_seq = (number * at_once) as u64 + 1;
            match keys {
                [key] => insert(&memstore, key, b"", b"", first_seq),
                keys => insert_all(&memstore, keys, b"", first_seq),
            }
        }
        assert_eq!(memstore.cell_count(), count);
        assert_eq!(
            (memstore.min_seq(), memstore.max_seq()),
            (Some(SeqId(1)), Some(SeqId(count)))
        );
        memstore.list.check_index();
        let found = walk(&memstore);
        assert!(found.is_sorted(), "order {index}");
        assert_eq!(found.len() as u64, count, "order {index}");
        for (number, found) in found.iter().enumerate() {
            let (row, qualifier) = place(number as u64);
            assert_eq!(
                (&found.0[..], &found.1[..]),
                (&row.to_be_bytes()[..], &[qualifier as u8][..])
            );
        }
    }
}

const THREADS: u64 = 4;

fn per_thread() -> u64 {
    if cfg!(miri) { 4 } else { 20_000 }
}

/// Inserts from several threads while two more keep reading. `number_of(thread, index)` makes distinct row
/// numbers.
///
/// A reader notes how far each writer has come, walks, and must then have met, in order, everything inserted
/// before it began.
fn insert_and_read(number_of: impl Fn(u64, u64) -> u64 + Sync) {
    insert_and_read_at_once(&number_of, 1);
    insert_and_read_at_once(&number_of, if cfg!(miri) { 4 } else { 50 });
}

/// Number of cells of a writer at once.
fn insert_and_read_at_once(number_of: &(impl Fn(u64, u64) -> u64 + Sync), at_once: u64) {
    let memstore = Arc::new(Memstore::default());
    let inserted: [AtomicU64; THREADS as usize] = Default::default();
    let done = AtomicBool::new(false);
    let read = |memstore: &Arc<Memstore>| {
        let before: Vec<u64> = inserted
            .iter()
            .map(|count| count.load(Ordering::Acquire))
            .collect();
        let met = walk(memstore);
        assert!(met.is_sorted_by(|left, right| left < right));
        for (thread, before) in before.iter().enumerate() {
            // Cells of a writer carry sequence ids 1, 2, 3, ... within it and its number as qualifier.
            let from_it = met.iter().filter(|place| place.1 == [thread as u8]);
            let early = from_it.filter(|place| place.4.0 <= *before).count();
            assert_eq!(early as u64, *before, "writer {thread}");
        }
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (memstore, inserted) = (&memstore, &inserted);
                scope.spawn(move || {
                    for first in (0..per_thread()).step_by(at_once as usize) {
                        let rows =
                            (first..first + at_once).map(|index| number_of(thread, index).to_be_bytes());
                        let keys: Vec<KeyBuf> = rows.map(|row| key(&row, &[thread as u8], 1)).collect();
                        match &keys[..] {
                            [key] => insert(memstore, key, &[thread as u8], b"", first + 1),
                            keys => insert_all(memstore, keys, &[thread as u8], first + 1),
                        }
                        inserted[thread as usize].store(first + at_once, Ordering::Release);
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..if cfg!(miri) { 1 } else { 2 })
            .map(|_| {
                scope.spawn(|| {
                    // Miri is slow: a reader that goes on until the writers are done would take nearly all of
                    // the time.
                    let reads = if cfg!(miri) { 2 } else { usize::MAX };
                    for _ in 0..reads {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        read(&memstore);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    read(&memstore);
    memstore.list.check_index();
    let mut cursor = memstore.cursor();
    for thread in 0..THREADS {
        for index in 0..per_thread() {
            let row = number_of(thread, index).to_be_bytes();
            cursor.seek(key(&row, &[thread as u8], 1).as_key()).unwrap();
            let cell = cursor.cell().unwrap();
            assert_eq!(
                (cell.key.row(), cell.value, cell.seq),
                (&row[..], &[thread as u8][..], SeqId(index + 1))
            );
        }
    }
    assert_eq!(memstore.cell_count(), THREADS * per_thread());
    assert_eq!(
        (memstore.min_seq(), memstore.max_seq()),
        (Some(SeqId(1)), Some(SeqId(per_thread())))
    );
}

#[test]
fn threads_insert_ranges_of_their_own() {
    insert_and_read(|thread, index| thread * per_thread() + index);
}

#[test]
fn threads_insert_between_each_other() {
    insert_and_read(|thread, index| index * THREADS + thread);
}

#[test]
fn threads_insert_scattered() {
    insert_and_read(|thread, index| (index * THREADS + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15));
}

/// Goal: writers of one link take turns. Method: all threads insert into the same row and column.
#[test]
fn threads_insert_at_one_place() {
    let memstore = Arc::new(Memstore::default());
    let same = key(b"row", b"q", 1);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (memstore, same) = (&memstore, &same);
            scope.spawn(move || {
                for index in 0..per_thread() {
                    insert(memstore, same, b"", b"", index * THREADS + thread);
                }
            });
        }
    });
    memstore.list.check_index();
    let met: Vec<u64> = walk(&memstore).iter().map(|place| place.4.0).collect();
    let expected: Vec<u64> = (0..THREADS * per_thread()).rev().collect();
    assert!(met == expected);
}

/// Row, qualifier, timestamp, whether it is a tombstone, bytes of the value.
type CellToInsert = (Vec<u8>, Vec<u8>, i64, bool, usize);

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<CellToInsert>),
    Seek(Vec<u8>, Vec<u8>, i64),
    SeekForward(Vec<u8>, Vec<u8>, i64),
    SeekRowBefore(Vec<u8>),
    SeekLastRow,
    Advance,
}

/// The rows that a cursor finds from the last one backward. `between` is called at each of them.
fn walk_backward(memstore: &Arc<Memstore>, mut between: impl FnMut(&[u8])) -> Vec<Vec<u8>> {
    let mut cursor = memstore.cursor();
    cursor.seek_last_row().unwrap();
    let mut rows: Vec<Vec<u8>> = Vec::new();
    while let Some(cell) = cursor.cell() {
        let row = cell.key.row().to_vec();
        assert!(rows.last().is_none_or(|last| row < *last), "{rows:?} {row:?}");
        between(&row);
        cursor.seek_row_before(&row).unwrap();
        rows.push(row);
    }
    rows
}

/// A backward walk passes over no row that was there before it began, whatever is inserted
/// meanwhile.
#[test]
fn a_walk_backward_meets_what_was_there() {
    let rows: u64 = if cfg!(miri) { 60 } else { 20_000 };
    let memstore = Arc::new(Memstore::default());
    let at = |number: u64, qualifier| key(&number.to_be_bytes(), qualifier, 1);
    for number in (0..rows).rev() {
        insert(&memstore, &at(2 * number, b""), b"", b"", number);
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (memstore, is_over) = (&memstore, &is_over);
            scope.spawn(move || {
                for turn in 0.. {
                    // Rows between the existing ones, and more cells of these.
                    let number = (turn * 7_919 + thread * 104_729) % (2 * rows);
                    let seq = rows + 2 * turn + thread;
                    insert(memstore, &at(number, b"later"), b"", b"", seq);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        for _ in 0..3 {
            let found = walk_backward(&memstore, |_| {});
            let mut old = found.into_iter().filter(|row| row[7] % 2 == 0);
            assert!(
                (0..rows)
                    .rev()
                    .all(|number| old.next().unwrap() == (2 * number).to_be_bytes())
            );
            assert!(old.next().is_none());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Few different bytes, and lengths on both sides of the inline prefix.
fn row() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), Just(b'a'), Just(255)];
    let tail = proptest::collection::vec(byte.clone(), 0..3);
    prop_oneof![
        proptest::collection::vec(byte, 0..4),
        tail.prop_map(|tail| [&b"prefix_"[..], &tail].concat()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let qualifier = || proptest::collection::vec(0..2_u8, 0..2);
    let cell = || (row(), qualifier(), -2..3_i64, any::<bool>(), 0..200_usize);
    prop_oneof![
        8 => cell().prop_map(|cell| Step::Insert(vec![cell])),
        1 => proptest::collection::vec(cell(), 0..40).prop_map(Step::Insert),
        2 => (row(), qualifier(), -2..3_i64).prop_map(|(row, qualifier, time)| Step::Seek(row, qualifier, time)),
        2 => (row(), qualifier(), -2..3_i64).prop_map(|(row, qualifier, time)| Step::SeekForward(row, qualifier, time)),
        2 => row().prop_map(Step::SeekRowBefore),
        1 => Just(Step::SeekLastRow),
        3 => Just(Step::Advance),
    ]
}

/// The same memstore and cursor in terms of a `BTreeMap`.
#[derive(Default)]
struct Model {
    cells: BTreeMap<Place, Vec<u8>>,
    at: Option<Place>,
    sought: bool,
}

impl Model {
    fn seek(&mut self, from: Place) {
        self.at = self.cells.range(from..).next().map(|(place, _)| place.clone());
        self.sought = true;
    }

    fn seek_row(&mut self, row: Option<Vec<u8>>) {
        self.at = row.and_then(|row| self.cells.keys().find(|place| place.0 == row).cloned());
        self.sought = true;
    }
}

fn seek_place(row: &[u8], qualifier: &[u8], time: i64) -> Place {
    let code = CellType::Put as u8;
    (
        row.to_vec(),
        qualifier.to_vec(),
        Reverse(time),
        Reverse(code),
        Reverse(u64::MAX),
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 400 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Each step of a backward walk goes to the greatest row that is before the current one at that
    /// moment.
    #[test]
    fn steps_back_meet_what_has_come(
        rows in proptest::collection::vec((0..300_u16, 1..5_u8), 1..if cfg!(miri) { 20 } else { 400 }),
        later in proptest::collection::vec((0..300_u16, 0..40_u16), 0..if cfg!(miri) { 5 } else { 60 }),
    ) {
        let memstore = Arc::new(Memstore::default());
        let mut present = std::collections::BTreeSet::new();
        let mut seq = 0;
        for (row, cells) in rows {
            let row = row.to_be_bytes().to_vec();
            for qualifier in 0..cells {
                seq += 1;
                insert(&memstore, &key(&row, &[qualifier], 1), b"", b"", seq);
            }
            present.insert(row);
        }
        let mut expected = present.last().cloned();
        walk_backward(&memstore, |row| {
            assert_eq!(Some(row), expected.as_deref());
            // Later steps find rows inserted just before the current one, or further down.
            for (at, distance) in &later {
                if *at == u16::from_be_bytes([row[0], row[1]]) {
                    seq += 1;
                    let came = at.saturating_sub(*distance).to_be_bytes().to_vec();
                    insert(&memstore, &key(&came, b"later", 1), b"", b"", seq);
                    present.insert(came);
                }
            }
            expected = present.range(..row.to_vec()).next_back().cloned();
        });
        prop_assert_eq!(expected, None);
    }

    #[test]
    fn behaves_like_a_sorted_map(steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 60 } else { 300 })) {
        let memstore = Arc::new(Memstore::default());
        let mut cursor = memstore.cursor();
        let mut model = Model::default();
        let mut seq = 0;
        for step in steps {
            match step {
                Step::Insert(cells) => {
                    let cells: Vec<_> = cells.into_iter().map(|(row, qualifier, time, delete, bytes)| {
                        let cell_type = if delete { CellType::Delete } else { CellType::Put };
                        seq += 1;
                        (KeyBuf::new(&row, b"f", &qualifier, time, cell_type), vec![seq as u8; bytes], SeqId(seq))
                    }).collect();
                    let cells: Vec<_> = cells.iter().map(|(key, value, seq)| {
                        Cell { key: key.as_key(), value, tags: b"", seq: *seq }
                    }).collect();
                    match cells[..] {
                        [cell] => memstore.insert(cell),
                        _ => memstore.insert_all(&cells),
                    }
                    model.cells.extend(cells.iter().map(|cell| (place_of(*cell), cell.value.to_vec())));
                }
                Step::Seek(row, qualifier, time) => {
                    cursor.seek(key(&row, &qualifier, time).as_key()).unwrap();
                    model.seek(seek_place(&row, &qualifier, time));
                }
                Step::SeekForward(row, qualifier, time) => {
                    cursor.seek_forward(key(&row, &qualifier, time).as_key()).unwrap();
                    let target = seek_place(&row, &qualifier, time);
                    if !model.sought || model.at.as_ref().is_some_and(|at| *at < target) {
                        model.seek(target);
                    }
                }
                Step::SeekRowBefore(row) => {
                    cursor.seek_row_before(&row).unwrap();
                    let last = model.cells.keys().rev().find(|place| place.0 < row);
                    model.seek_row(last.map(|place| place.0.clone()));
                }
                Step::SeekLastRow => {
                    cursor.seek_last_row().unwrap();
                    model.seek_row(model.cells.keys().next_back().map(|place| place.0.clone()));
                }
                Step::Advance => {
                    cursor.advance().unwrap();
                    let next = model.at.clone().and_then(|at| {
                        model.cells.keys().find(|place| **place > at).cloned()
                    });
                    model.at = next;
                }
            }
            prop_assert_eq!(cursor.cell().map(place_of), model.at.clone());
            if let (Some(cell), Some(at)) = (cursor.cell(), &model.at) {
                prop_assert_eq!(cell.value, &model.cells[at][..]);
            }
        }
        memstore.list.check_index();
        prop_assert_eq!(walk(&memstore), model.cells.keys().cloned().collect::<Vec<_>>());
        prop_assert_eq!(memstore.cell_count(), model.cells.len() as u64);
    }
}
