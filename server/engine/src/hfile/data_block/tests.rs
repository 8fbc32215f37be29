//! Moves within a block agree with a linear search, in every encoding.

use proptest::prelude::*;

use super::*;
use crate::cell::{CellType, KeyBuf};
use crate::hfile::encoding::BlockEncoder;
use crate::hfile::row_starts::{RowStarts, RowsBefore, SteppedBack};
use crate::hfile::search_index::ENCODED_ENTRY_BYTES;
use crate::id::SeqId;

/// A cell of a test.
#[derive(Clone, Debug)]
struct Own {
    key: KeyBuf,
    value: Vec<u8>,
    tags: Vec<u8>,
    seq: u64,
}

impl Own {
    fn cell(&self) -> Cell<'_> {
        Cell {
            key: self.key.as_key(),
            value: &self.value,
            tags: &self.tags,
            seq: SeqId(self.seq),
        }
    }
}

fn layout(encoding: DataBlockEncoding, tags: bool) -> DataLayout {
    DataLayout {
        encoding,
        cell: CellLayout { tags, seq: true },
        tags_compressed: false,
    }
}

fn block(cells: &[Own], layout: DataLayout) -> DataBlock {
    let mut encoder = BlockEncoder::new(layout.encoding, layout.cell.tags);
    let mut row: Option<&[u8]> = None;
    for own in cells {
        let here = own.key.as_key().row();
        encoder.add(own.cell(), row != Some(here));
        row = Some(here);
    }
    let payload = encoder.finish().to_vec();
    DataBlock::parse(payload, layout.encoding != DataBlockEncoding::None, layout).unwrap()
}

/// Number of the current cell of the block.
fn number_of(block: &DataBlock, current: &CurrentCell, cells: &[Own]) -> usize {
    let found = block.cell(current);
    let number = cells
        .iter()
        .position(|own| own.key.as_key() == found.key)
        .unwrap();
    let own = cells[number].cell();
    assert_eq!(
        (own.value, own.tags, own.seq),
        (found.value, found.tags, found.seq)
    );
    number
}

/// Every move, from every cell and to the neighbourhood of every cell, agrees with a linear search;
/// a move that finds no cell leaves the current cell unchanged.
fn moves_are_right(cells: &[Own], targets: &[KeyBuf], layout: DataLayout) {
    let block = block(cells, layout);
    assert_eq!(block.first_key(), cells[0].key.as_key());
    let mut walked = CurrentCell::default();
    block.first(&mut walked);
    let mut all = Vec::new();
    loop {
        assert_eq!(number_of(&block, &walked, cells), all.len());
        all.push(walked.clone());
        if !block.next(&mut walked) {
            break;
        }
    }
    assert_eq!(all.len(), cells.len());
    assert_eq!(
        number_of(&block, &walked, cells),
        cells.len() - 1,
        "the end moves nothing"
    );

    for target in targets {
        let before = cells.partition_point(|own| compare_keys(own.key.as_key(), target.as_key()).is_lt());
        // From somewhere else in the block.
        let from = before * 7 % cells.len();
        let mut current = all[from].clone();
        let found = block.seek(target.as_key(), &mut current);
        assert_eq!(found, before < cells.len());
        assert_eq!(
            number_of(&block, &current, cells),
            if found { before } else { from },
            "{target:?}"
        );
        for from in [
            0,
            before.saturating_sub(7),
            before.saturating_sub(3),
            before.min(cells.len() - 1),
        ] {
            let mut current = all[from].clone();
            let stepped = block.step_to(target.as_key(), &mut current, 4);
            let (expected, now) = if before <= from {
                (Stepped::Found, from)
            } else if before < cells.len() && before < from + 4 {
                (Stepped::Found, before)
            } else if cells.len() < from + 4 {
                (Stepped::Ended, from)
            } else {
                (Stepped::NotYet, from)
            };
            if before == cells.len() && cells.len() == from + 4 {
                // The last step would leave the block: either result is right.
                assert_ne!(stepped, Stepped::Found);
            } else {
                assert_eq!(stepped, expected, "from {from} to {before} of {}", cells.len());
            }
            assert_eq!(number_of(&block, &current, cells), now);
        }
    }
}

/// The number of the first cell of the greatest row before `row`, if there is one.
fn start_before(cells: &[Own], row: &[u8]) -> Option<usize> {
    let last = cells.iter().rfind(|own| own.key.as_key().row() < row)?;
    let row = last.key.as_key().row();
    cells.iter().position(|own| own.key.as_key().row() == row)
}

/// From any row on, steps back reach the start of each earlier row, down to the block's first.
fn steps_back_are_right(cells: &[Own], layout: DataLayout) {
    let block = block(cells, layout);
    // One list for all walks, as a cursor has: its stretches grow.
    let mut rows = RowStarts::default();
    for own in cells {
        let mut current = CurrentCell::default();
        let mut row = own.key.as_key().row().to_vec();
        loop {
            let expected = start_before(cells, &row);
            let stepped = block.step_back(&row, &mut rows, &mut current);
            if stepped != SteppedBack::Found {
                let target = KeyBuf::first_on_row(&row, b"");
                match block.rows_before(Some(target.as_key()), true, &mut rows) {
                    RowsBefore::None => {
                        assert_eq!(expected, None);
                        break;
                    }
                    RowsBefore::Listed => rows.move_to_last(&block, &mut current),
                    RowsBefore::StartsEarlier => {
                        let start = KeyBuf::first_on_row(rows.last_key(&block).row(), b"");
                        rows.clear();
                        assert!(block.seek(start.as_key(), &mut current));
                    }
                }
            }
            assert_eq!(
                Some(number_of(&block, &current, cells)),
                expected,
                "before {row:?}"
            );
            row = block.key(&current).row().to_vec();
        }
    }
    // A row with nothing before it, and one that the list does not reach.
    assert_eq!(
        block.step_back(b"", &mut rows, &mut CurrentCell::default()),
        SteppedBack::Elsewhere
    );
    if block.rows_before(None, true, &mut rows) == RowsBefore::Listed {
        let mut current = CurrentCell::default();
        rows.move_to_last(&block, &mut current);
        assert_eq!(
            Some(number_of(&block, &current, cells)),
            start_before(cells, &[255; 9])
        );
        assert_eq!(
            block.step_back(&[255; 9], &mut rows, &mut current),
            SteppedBack::Elsewhere
        );
    }
}

fn key(row: &[u8], qualifier: &[u8], timestamp: i64) -> KeyBuf {
    KeyBuf::new(row, b"f", qualifier, timestamp, CellType::Put)
}

/// Blocks of narrow and wide rows, short and long.
#[test]
fn seeks_find_the_neighbours() {
    for encoding in DataBlockEncoding::ALL {
        for (rows, columns) in [(1, 1), (40, 1), (1, 40), (5, 17), (300, 1)] {
            let name = |row: usize| format!("{:04}", row * 2).into_bytes();
            let (mut cells, mut targets) = (Vec::new(), vec![KeyBuf::first_on_row(b"", b"f")]);
            for row in 0..rows {
                for column in 0..columns {
                    cells.push(Own {
                        key: key(&name(row), format!("{column:03}").as_bytes(), 1),
                        value: b"value".repeat(row % 3 * 9),
                        tags: Vec::new(),
                        seq: row as u64,
                    });
                }
                targets.push(KeyBuf::first_on_row(&name(row), b"f"));
                targets.push(KeyBuf::first_on_row(
                    format!("{:04}", row * 2 + 1).as_bytes(),
                    b"f",
                ));
            }
            targets.extend(cells.iter().map(|own| own.key.clone()));
            moves_are_right(&cells, &targets, layout(*encoding, false));
            steps_back_are_right(&cells, layout(*encoding, false));
        }
    }
}

/// Goal: a list of rows takes bounded memory, even if its keys are much longer than their encoded
/// form. Method: rows of 8 KiB that differ at their end.
#[test]
fn a_list_of_rows_is_bounded() {
    let row = |number: usize| [&[b'r'; 8_000][..], format!("{number:03}").as_bytes()].concat();
    let cells: Vec<Own> = (0..100)
        .map(|number| Own {
            key: key(&row(number), b"q", 1),
            value: Vec::new(),
            tags: Vec::new(),
            seq: 0,
        })
        .collect();
    for encoding in DataBlockEncoding::ALL {
        let block = block(&cells, layout(*encoding, false));
        let mut rows = RowStarts::default();
        assert_eq!(block.rows_before(None, true, &mut rows), RowsBefore::Listed);
        assert!(rows.bytes() <= (64 << 10) + 9_000, "{encoding}: {}", rows.bytes());
        steps_back_are_right(&cells[..40], layout(*encoding, false));
    }
}

/// Goal: an encoding saves memory as it saves disk, and its search index does not undo that.
/// Method: the same cells in every encoding.
#[test]
fn a_block_takes_the_memory_of_its_encoding() {
    for value_bytes in [4, 100, 3_000] {
        let cells: Vec<Own> = (0..400)
            .map(|row| Own {
                key: key(
                    format!("user-{row:08}").as_bytes(),
                    b"name",
                    1_700_000_000_000 + row,
                ),
                value: vec![row as u8; value_bytes],
                tags: Vec::new(),
                seq: 0,
            })
            .collect();
        let weight = |encoding| {
            let block = block(&cells, layout(encoding, false));
            let beside = block.weight() - block.bytes.capacity();
            // The first and the last cell are kept whatever the share is.
            let ends = 2 * (ENCODED_ENTRY_BYTES + cells[0].key.as_key().bytes().len());
            let share = if block.is_plain() { 10 } else { 20 };
            assert!(
                beside <= block.bytes.len() / share + ends,
                "{encoding}: {beside} of {}",
                block.bytes.len()
            );
            assert!(block.index.len() > 2);
            block.bytes.len() + beside
        };
        let plain = weight(DataBlockEncoding::None);
        for encoding in [
            DataBlockEncoding::Prefix,
            DataBlockEncoding::Diff,
            DataBlockEncoding::FastDiff,
        ] {
            let encoded = weight(encoding);
            if value_bytes > 1_000 {
                // Each cell is an entry.
                assert!(encoded < plain + plain / 50, "{encoding}: {encoded} and {plain}");
            } else {
                // A cell begins with its two lengths, and its key is similar to the one before.
                assert!(
                    encoded + cells.len() * 15 < plain,
                    "{encoding}: {encoded} and {plain}"
                );
            }
        }
    }
}

fn cells() -> impl Strategy<Value = Vec<Own>> {
    // Few letters, so that rows, qualifiers and values share beginnings or are equal; families never differ.
    let letters = |count| prop::collection::vec(prop::sample::select(vec![0_u8, b'a', 255]), count);
    let time = prop_oneof![Just(5_i64), Just(-3), 1_i64 << 40..1_i64 << 41, any::<i64>()];
    let kind = prop::sample::select(vec![CellType::Put, CellType::Delete, CellType::DeleteFamily]);
    let value = prop_oneof![Just(vec![7; 3]), prop::collection::vec(any::<u8>(), 0..90)];
    let tags = prop::collection::vec(any::<u8>(), 0..4);
    let cell = (
        letters(1..6),
        letters(0..4),
        time,
        kind,
        value,
        tags,
        0_u64..1 << 40,
    );
    prop::collection::vec(cell, 1..120).prop_map(|cells| {
        let mut cells: Vec<Own> = cells
            .into_iter()
            .map(|(row, qualifier, time, kind, value, tags, seq)| Own {
                key: KeyBuf::new(&row, b"family", &qualifier, time, kind),
                value,
                tags,
                seq,
            })
            .collect();
        cells.sort_by(|left, right| compare_keys(left.key.as_key(), right.key.as_key()));
        cells.dedup_by(|left, right| left.key == right.key);
        cells
    })
}

proptest! {
    #[test]
    fn moves_in_any_block_are_right(mut cells in cells(), others in cells(), which in 0_usize..5, tags: bool) {
        if !tags {
            for own in &mut cells {
                own.tags.clear();
            }
        }
        let targets: Vec<KeyBuf> = cells.iter().chain(&others).map(|own| own.key.clone()).collect();
        moves_are_right(&cells, &targets, layout(DataBlockEncoding::ALL[which], tags));
        steps_back_are_right(&cells, layout(DataBlockEncoding::ALL[which], tags));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, encoded: bool, which in 0_usize..5, flags in 0_u8..8) {
        let layout = DataLayout {
            encoding: DataBlockEncoding::ALL[which],
            cell: CellLayout { tags: flags & 1 == 0, seq: flags & 2 == 0 },
            tags_compressed: flags & 4 == 0,
        };
        let mut payload = encoding::id(layout.encoding).to_be_bytes().to_vec();
        payload.extend_from_slice(&bytes);
        let _ = DataBlock::parse(payload, encoded, layout);
    }

    /// A damaged block is either refused or can be walked and searched without a panic.
    #[test]
    fn a_damaged_block_is_refused_or_walked(cells in cells(), which in 0_usize..5, at: prop::sample::Index, byte: u8) {
        let layout = layout(DataBlockEncoding::ALL[which], true);
        let mut payload = block(&cells, layout).bytes;
        let at = at.index(payload.len());
        payload[at] = byte;
        let encoded = layout.encoding != DataBlockEncoding::None;
        let Ok(block) = DataBlock::parse(payload, encoded, layout) else {
            return Ok(());
        };
        let mut current = CurrentCell::default();
        block.first(&mut current);
        let mut count = 1;
        while block.next(&mut current) {
            count += 1;
        }
        prop_assert!(count >= 1);
        for own in &cells {
            let target = own.key.as_key();
            if block.seek(target, &mut current) {
                let _ = block.cell(&current);
            }
            let start = KeyBuf::first_on_row(target.row(), b"");
            let mut rows = RowStarts::default();
            if block.rows_before(Some(start.as_key()), false, &mut rows) == RowsBefore::Listed {
                rows.move_to_last(&block, &mut current);
                let _ = block.step_back(target.row(), &mut rows, &mut current);
                let _ = block.cell(&current);
            }
            let _ = block.step_to(target, &mut current, 4);
        }
    }
}
