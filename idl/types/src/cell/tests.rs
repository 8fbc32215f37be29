//! The order of cells and the packing of results.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

fn key(row: &str, family: &str, qualifier: &str, timestamp: i64, cell_type: CellType) -> KeyBuf {
    KeyBuf::new(
        row.as_bytes(),
        family.as_bytes(),
        qualifier.as_bytes(),
        timestamp,
        cell_type,
    )
}

/// The examples are HBase's rules one by one; each key sorts before the next.
#[test]
fn order_of_keys() {
    let sorted = [
        key("a", "f", "", i64::MAX, CellType::Maximum),
        key("a", "f", "", 9, CellType::DeleteFamily),
        key("a", "f", "", 9, CellType::Put),
        key("a", "f", "q", 10, CellType::Put),
        key("a", "f", "q", 9, CellType::DeleteColumn),
        key("a", "f", "q", 9, CellType::Delete),
        key("a", "f", "q", 9, CellType::Put),
        key("a", "f", "q", 8, CellType::Put),
        key("a", "f", "q", -1, CellType::Put),
        key("a", "f", "q", i64::MIN, CellType::Minimum),
        key("a", "f", "q1", 10, CellType::Put),
        key("a", "ff", "", 10, CellType::Put),
        key("a", "ff", "q", 10, CellType::Put),
        key("a", "g", "", 10, CellType::Put),
        key("aa", "f", "", 10, CellType::Put),
        key("b", "f", "", 10, CellType::Put),
    ];
    for (index, left) in sorted.iter().enumerate() {
        for (other, right) in sorted.iter().enumerate() {
            assert_eq!(
                compare_keys(left.as_key(), right.as_key()),
                index.cmp(&other),
                "{left:?} {right:?}"
            );
        }
    }
}

/// Goal: a seek target may have any length. It is truncated beyond the longest row of a cell, so
/// that the order stays the same.
#[test]
fn a_row_longer_than_any_is_a_place_to_seek_to() {
    let long = |bytes: usize| KeyBuf::first_on_row(&vec![b'x'; bytes], b"f");
    assert_eq!(long(70_000).as_key().row().len(), KeyBuf::ROW_BYTES_MAX);
    assert!(Key::parse(long(70_000).as_key().bytes()).is_some());
    let longest = KeyBuf::new(&vec![b'x'; ROW_MAX_BYTES], b"f", b"q", 1, CellType::Put);
    let behind = KeyBuf::new(b"y", b"f", b"q", 1, CellType::Put);
    assert_eq!(
        compare_keys(longest.as_key(), long(70_000).as_key()),
        Ordering::Less
    );
    assert_eq!(
        compare_keys(long(70_000).as_key(), behind.as_key()),
        Ordering::Less
    );
}

#[test]
fn malformed_keys_are_refused() {
    let good = key("row", "f", "q", 1, CellType::Put);
    let bytes = good.as_key().bytes();
    assert!(Key::parse(bytes).is_some());
    for cut in 0..bytes.len() {
        // A cut key may only parse if it happens to be a shorter, well-formed one.
        if let Some(shorter) = Key::parse(&bytes[..cut]) {
            assert!(shorter.row().len() + shorter.family().len() + shorter.qualifier().len() + 12 == cut);
        }
    }
    let mut unknown_type = bytes.to_vec();
    *unknown_type.last_mut().unwrap() = 7;
    assert!(Key::parse(&unknown_type).is_none());
}

#[test]
fn tags_round_trip_and_the_first_ttl_counts() {
    let mut encoded = Vec::new();
    put_tag(&mut encoded, 1, b"acl");
    put_tag(&mut encoded, TAG_TTL, &5_000_i64.to_be_bytes());
    put_tag(&mut encoded, TAG_TTL, &9_000_i64.to_be_bytes());
    assert_eq!(tags(&encoded).count(), 3);
    assert_eq!(ttl_ms(&encoded), Some(5_000));
    assert_eq!(tags(&encoded[..4]).count(), 0, "a cut tag is not a tag");
    assert_eq!(ttl_ms(b""), None);
}

#[test]
fn batch_groups_cells_in_rows() {
    let mut batch = CellBatch::new();
    let (first, second) = (
        key("a", "f", "1", 1, CellType::Put),
        key("a", "f", "2", 1, CellType::Put),
    );
    for (buf, value) in [(&first, &b"one"[..]), (&second, b"two")] {
        batch.push(Cell {
            key: buf.as_key(),
            value,
            tags: b"",
            seq: SeqId(3),
        });
    }
    batch.retain_open(|cell| cell.value == b"two");
    batch.end_row(true);
    batch.push(Cell {
        key: first.as_key(),
        value: b"dropped",
        tags: b"",
        seq: SeqId(4),
    });
    batch.abandon_row();
    batch.end_row(false);
    assert_eq!(batch.row_count(), 1);
    let row = batch.row(0);
    assert!(row.partial);
    assert_eq!((row.key(), row.len()), (&b"a"[..], 1));
    assert_eq!(
        row.cells().next().map(|cell| (cell.value, cell.seq)),
        Some((&b"two"[..], SeqId(3)))
    );
}

/// Goal: a cell block that is taken out has the bytes of the one that is copied, its batch can be filled
/// again, and its reservation can be given away. Only a block in one piece is taken.
#[test]
fn a_cell_block_is_taken_out_whole_or_not_at_all() {
    const REPLY_AND_BUFFER: usize = 2;
    let budget = budget::tests::Fixed::new(16 << 20);
    let mut batch = CellBatch::charged_to(budget.clone());
    let fill = |batch: &mut CellBatch, value: &[u8], tags: &[u8]| {
        let key = key("a", "f", "q", 1, CellType::Put);
        for _ in 0..3 {
            let cell = Cell {
                key: key.as_key(),
                value,
                tags,
                seq: SeqId(3),
            };
            batch.add(cell).unwrap();
            batch.end_row(false);
        }
    };
    fill(&mut batch, &vec![7; 20_000], b"");
    let copied: Vec<u8> = batch.cell_block().unwrap().flatten().copied().collect();
    let taken = batch.take_cell_block().unwrap();
    assert_eq!(taken, copied);
    assert!(batch.is_empty() && batch.data_bytes() == 0);
    let wanted = REPLY_AND_BUFFER * taken.capacity();
    let given = batch.give(wanted);
    assert!((1..=wanted).contains(&given));
    batch.clear();
    assert_eq!(budget.used(), given, "the batch has only what was given away");
    fill(&mut batch, b"v", b"");
    assert_eq!(batch.take_cell_block().map(|block| block.len()), Some(3 * 28));
    fill(&mut batch, b"v", b"\0\x02\x09x");
    assert_eq!(batch.take_cell_block(), None, "tags");
    batch.clear();
    fill(&mut batch, &vec![7; 400_000], b"");
    assert_eq!(batch.take_cell_block(), None, "two pieces");
    assert_eq!(batch.row_count(), 3);
}

proptest! {
    #[test]
    fn key_parts_round_trip(row in proptest::collection::vec(any::<u8>(), 0..40), family in "[a-z]{0,9}",
                            qualifier in proptest::collection::vec(any::<u8>(), 0..40), timestamp: i64) {
        let buf = KeyBuf::new(&row, family.as_bytes(), &qualifier, timestamp, CellType::Put);
        let key = Key::parse(buf.as_key().bytes()).unwrap();
        prop_assert_eq!(key.row(), &row[..]);
        prop_assert_eq!(key.family(), family.as_bytes());
        prop_assert_eq!(key.qualifier(), &qualifier[..]);
        prop_assert_eq!(key.timestamp(), timestamp);
        prop_assert_eq!(compare_keys(key, key), Ordering::Equal);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        if let Some(key) = Key::parse(&bytes) {
            let _ = (key.row(), key.family(), key.qualifier(), key.timestamp(), key.cell_type());
        }
        let _ = (tags(&bytes).count(), ttl_ms(&bytes));
    }
}

/// Adds rows of one cell with a value of `bytes` bytes; the value begins with the row's number.
fn add_rows(batch: &mut CellBatch, rows: std::ops::Range<u8>, bytes: usize) -> crate::Result<()> {
    let buf = key("r", "f", "q", 1, CellType::Put);
    for row in rows {
        let mut value = vec![b'v'; bytes];
        value[0] = row;
        batch.add(Cell {
            key: buf.as_key(),
            value: &value,
            tags: b"",
            seq: SeqId(1),
        })?;
        batch.end_row(false);
    }
    Ok(())
}

fn first_bytes(batch: &CellBatch) -> Vec<u8> {
    batch
        .rows()
        .flat_map(|row| row.cells().map(|cell| cell.value[0]).collect::<Vec<_>>())
        .collect()
}

/// Goal: a large result takes little more memory than it holds, and is complete. Method: rows over
/// several chunks, some of them dropped again.
#[test]
fn a_large_batch_goes_on_in_further_chunks() {
    let mut batch = CellBatch::new();
    add_rows(&mut batch, 0..50, 100_000).unwrap();
    let (data, memory) = (batch.data_bytes(), batch.memory_bytes());
    assert!(
        data >= 5_000_000 && memory <= data + (2 << 20),
        "{memory} for {data}"
    );
    assert_eq!(first_bytes(&batch), (0..50).collect::<Vec<_>>());
    for _ in 0..20 {
        batch.drop_last_row();
    }
    assert!(batch.data_bytes() < 3_100_000 && batch.memory_bytes() < 4_500_000);
    add_rows(&mut batch, 30..32, 3_000_000).unwrap();
    batch.retain_open(|_| false);
    assert_eq!(first_bytes(&batch), (0..32).collect::<Vec<_>>());
    batch.clear();
    assert!(batch.is_empty() && batch.data_bytes() == 0);
    add_rows(&mut batch, 7..9, 10).unwrap();
    assert_eq!(first_bytes(&batch), [7, 8]);
}

/// A filter that drops all cells of all rows leaves no bytes behind.
#[test]
fn rows_of_which_nothing_is_kept_take_no_memory() {
    let mut batch = CellBatch::new();
    let buf = key("r", "f", "q", 1, CellType::Put);
    for _ in 0..1_000 {
        batch.push(Cell {
            key: buf.as_key(),
            value: &[b'v'; 1_000],
            tags: b"",
            seq: SeqId(1),
        });
        batch.retain_open(|_| false);
        batch.end_row(false);
    }
    assert_eq!((batch.data_bytes(), batch.row_count()), (0, 0));
    assert!(batch.memory_bytes() < 10_000, "{}", batch.memory_bytes());
}

/// Goal: a batch reserves its memory, and that of its reply, before it allocates. Method: a budget
/// that is used up midway.
#[test]
fn a_batch_stays_within_its_budget() {
    let budget = budget::tests::Fixed::new(1_000_000);
    let mut batch = CellBatch::charged_to(budget.clone());
    batch.set_on_shortage(OnShortage::Refuse);
    add_rows(&mut batch, 0..1, 10_000).unwrap();
    assert_eq!(budget.used(), 0, "a small result is free");
    let refused = add_rows(&mut batch, 1..200, 10_000).unwrap_err();
    assert!(matches!(refused, crate::Error::CallMemory(_)), "{refused}");
    let (rows, used) = (batch.row_count(), budget.used());
    assert!(
        (20..50).contains(&rows),
        "{rows} rows of 10 KB with their replies in 1 MB"
    );
    assert!(
        used <= 1_000_000 && used + 2 * BATCH_FREE_BYTES >= 2 * batch.data_bytes(),
        "{used}"
    );
    assert_eq!(first_bytes(&batch), (0..rows as u8).collect::<Vec<_>>());

    // The reply takes over its part.
    let given = batch.give(batch.data_bytes());
    assert_eq!((given, budget.used()), (batch.data_bytes(), used));
    batch.clear();
    assert!(batch.is_reserved(), "there is room again");
    drop(batch);
    assert_eq!(budget.used(), given, "what was given away is not released here");
}
