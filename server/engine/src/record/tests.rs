use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::cell::{Cell, CellType, KeyBuf, put_tag};
use crate::id::{Nonce, RegionId, SeqId};

const FILE: Uuid = Uuid(*b"0123456789abcdef");

/// A file of these payloads behind eight bytes of something else.
fn file_of(payloads: &[&[u8]]) -> Vec<u8> {
    let mut file = b"headhead".to_vec();
    for (number, payload) in payloads.iter().enumerate() {
        let offset = file.len() as u64;
        put_frame(&mut file, &FILE, offset, number as u64 * 10, 8, payload);
    }
    file
}

fn payloads_of(file: &[u8], uuid: &Uuid) -> (Vec<(u64, Vec<u8>)>, usize, FrameRead<'static>) {
    let mut at = 8;
    let mut payloads = Vec::new();
    loop {
        match read_frame(file, at, uuid) {
            FrameRead::Frame {
                header,
                payload,
                next,
            } => {
                assert_eq!(header.payload_len as usize, payload.len());
                payloads.push((header.first_seq, payload.to_vec()));
                at = next;
            }
            FrameRead::End => return (payloads, at, FrameRead::End),
            FrameRead::Invalid { what } => return (payloads, at, FrameRead::Invalid { what }),
        }
    }
}

#[test]
fn frames_come_back_and_unwritten_space_is_the_end() {
    let mut file = file_of(&[b"one", b"", b"three"]);
    let end = file.len();
    for zeros in [0, 1, FRAME_HEADER_BYTES, 1000] {
        file.resize(end + zeros, 0);
        let (payloads, at, last) = payloads_of(&file, &FILE);
        assert_eq!(
            payloads,
            [(0, b"one".to_vec()), (10, Vec::new()), (20, b"three".to_vec())]
        );
        assert_eq!((at, last), (end, FrameRead::End));
    }
}

/// Every flipped bit of a frame makes exactly that frame unbelievable.
#[test]
fn every_flip_is_found() {
    let clean = file_of(&[b"first payload", b"second payload"]);
    let second = 8 + FRAME_HEADER_BYTES + b"first payload".len();
    for bit in 8 * 8..clean.len() * 8 {
        let mut file = clean.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        let (payloads, at, last) = payloads_of(&file, &FILE);
        let broken = usize::from(bit / 8 >= second);
        assert_eq!(payloads.len(), broken, "bit {bit}");
        assert_eq!(at, [8, second][broken], "bit {bit}");
        assert!(matches!(last, FrameRead::Invalid { .. }), "bit {bit}: {last:?}");
    }
}

#[test]
fn every_truncation_is_found() {
    let clean = file_of(&[b"first payload", b"second payload"]);
    let second = 8 + FRAME_HEADER_BYTES + b"first payload".len();
    for len in 8..clean.len() {
        let (payloads, at, last) = payloads_of(&clean[..len], &FILE);
        assert_eq!(payloads.len(), usize::from(len >= second), "cut at {len}");
        let whole = len == 8 || len == second;
        assert_eq!(
            matches!(last, FrameRead::End),
            whole,
            "cut at {len}: {last:?} at {at}"
        );
    }
}

#[test]
fn a_frame_of_another_file_or_place_is_not_believed() {
    let file = file_of(&[b"payload"]);
    assert!(matches!(
        read_frame(&file, 8, &Uuid([1; 16])),
        FrameRead::Invalid { .. }
    ));
    let mut moved = file.clone();
    moved.insert(0, 0);
    assert!(matches!(read_frame(&moved, 9, &FILE), FrameRead::Invalid { .. }));
    assert!(matches!(read_frame(&file, 8, &FILE), FrameRead::Frame { .. }));
}

#[test]
fn a_header_is_found_wherever_it_begins_even_with_a_broken_payload() {
    let mut file = file_of(&[b"first payload", &[0; 100], b"third"]);
    let third = file.len() - FRAME_HEADER_BYTES - 5;
    *file.last_mut().unwrap() ^= 1;
    let second = 8 + FRAME_HEADER_BYTES + 13;
    assert_eq!(find_header(&file, 0, &FILE).map(|found| found.0), Some(8));
    assert_eq!(find_header(&file, 9, &FILE).map(|found| found.0), Some(second));
    let (at, header) = find_header(&file, second + 1, &FILE).unwrap();
    assert_eq!((at, header.first_seq, header.durable_upto), (third, 20, 8));
    assert_eq!(find_header(&file, third + 1, &FILE), None);
    assert_eq!(find_header(&file, 0, &Uuid([1; 16])), None);
    assert_eq!(find_header(&file, file.len() + 1, &FILE), None);
}

/// (family, qualifier, timestamp, value, tags) of a cell; its row is its row's.
type Columns = Vec<(Vec<u8>, Vec<u8>, i64, Vec<u8>, bool)>;

fn columns() -> impl Strategy<Value = Columns> {
    let bytes = |most| vec(any::<u8>(), 0..most);
    vec(
        (bytes(4), bytes(20), any::<i64>(), bytes(40), any::<bool>()),
        0..5,
    )
}

proptest! {
    #[test]
    fn edits_come_back(
        region: u64,
        first in 0..u64::MAX / 2,
        clusters in 0..4_u8,
        edits in vec((0..1000_u64, vec((vec(any::<u8>(), 0..8), columns()), 1..5)), 1..4),
    ) {
        let mut ttl = Vec::new();
        put_tag(&mut ttl, 8, &7_i64.to_be_bytes());
        let origin: Vec<Uuid> = (0..clusters).map(|number| Uuid([number; 16])).collect();
        let mut builder = EditBuilder::new();
        let mut payload = Vec::new();
        let mut expected = Vec::new();
        let mut seq = first;
        for (gap, rows) in &edits {
            builder.begin(RegionId(region));
            seq += gap;
            for (index, (row, cells)) in rows.iter().enumerate() {
                builder.begin_row();
                for (family, qualifier, timestamp, value, tagged) in cells {
                    let tags: &[u8] = if *tagged { &ttl } else { &[] };
                    let key = KeyBuf::new(row, family, qualifier, *timestamp, CellType::Put);
                    let seq = SeqId(seq + index as u64);
                    if *tagged {
                        builder.cell(&Cell { key: key.as_key(), value, tags, seq });
                    } else {
                        builder.cell_of(row, family, qualifier, *timestamp, CellType::Put, value, tags);
                    }
                    expected.push((index as u32, key, value.clone(), tags.to_vec(), seq));
                }
            }
            prop_assert_eq!(builder.rows() as usize, rows.len());
            seq += rows.len() as u64;
            put_entry(&mut payload, *gap, &origin, builder.finish());
        }
        let mut entries = Entries::new(&payload, SeqId(first), true);
        let mut found = Vec::new();
        for entry in entries.by_ref() {
            let Entry { edit, origin: passed, .. } = entry.unwrap();
            prop_assert_eq!(passed.clusters().collect::<Vec<_>>(), origin.clone());
            prop_assert_eq!(passed.is_empty(), origin.is_empty());
            prop_assert_eq!(edit.region(), RegionId(region));
            for cell in edit {
                let (row, cell) = cell.unwrap();
                found.push((row, KeyBuf::copy_of(cell.key), cell.value.to_vec(), cell.tags.to_vec(), cell.seq));
            }
        }
        prop_assert_eq!(entries.next_seq(), SeqId(seq));
        prop_assert_eq!(found, expected);
    }

    /// Whatever the bytes, reading ends and does not panic.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200), seq: u64, at in 0..300_usize) {
        for has_origins in [false, true] {
            for entry in Entries::new(&bytes, SeqId(seq), has_origins).flatten() {
                let _ = (entry.edit.count(), entry.origin.clusters().count());
            }
        }
        if let Ok(edit) = EditReader::new(&bytes, SeqId(seq)) {
            let _ = edit.count();
        }
        let _ = read_frame(&bytes, at, &FILE);
        let _ = find_header(&bytes, at, &FILE);
    }
}

/// Nonces stand behind the rows, which may have no cells; they are read back unchanged, and a
/// truncated one is refused.
#[test]
fn nonces_come_back() {
    let nonces = [(1, u64::MAX, 5), (u64::MAX, 2, u64::MAX)];
    let given = nonces.map(|(group, number, applied_ms)| (Nonce { group, number }, applied_ms));
    for cells in 0..2 {
        let mut builder = EditBuilder::new();
        builder.begin(NO_REGION);
        builder.begin_row();
        for _ in 0..cells {
            builder.cell_of(b"r", b"f", b"q", 1, CellType::Put, b"value", b"");
        }
        let without = builder.finish().len();
        for (nonce, applied_ms) in given {
            builder.nonce(nonce, applied_ms);
        }
        let edit = builder.finish().to_vec();
        assert!(edit.len() - without <= 2 * NONCE_BYTES_MAX);
        let mut reader = EditReader::new(&edit, SeqId(1)).unwrap();
        assert_eq!(reader.by_ref().map(Result::unwrap).count(), cells);
        assert_eq!(reader.nonces().collect::<Vec<_>>(), given);
        assert!(!reader.has_no_nonces());
        for len in without + 1..edit.len() {
            let end = EditReader::new(&edit[..len], SeqId(1)).unwrap().last();
            // Cut between the two nonces, it is an edit with one.
            let is_whole = len == without + 17;
            assert_eq!(matches!(end, Some(Err(_))), !is_whole, "cut at {len}");
        }
    }
}

/// A cell count beyond 127 takes two bytes, beyond 16383 three: the row's cells move once to make room.
#[test]
fn rows_of_many_cells() {
    let mut builder = EditBuilder::new();
    for cells in [0_usize, 1, 127, 128, 16_383, 16_384] {
        builder.begin(RegionId(1));
        for row in [b"a", b"b"] {
            builder.begin_row();
            for index in 0..cells {
                builder.cell_of(row, b"f", &index.to_be_bytes(), 1, CellType::Put, b"v", b"");
            }
        }
        let edit = EditReader::new(builder.finish(), SeqId(5)).unwrap();
        assert_eq!((edit.rows(), edit.next_seq()), (2, SeqId(7)));
        let cells_read: Vec<_> = edit.map(Result::unwrap).collect();
        assert_eq!(cells_read.len(), 2 * cells);
        for (index, (row, cell)) in cells_read.iter().enumerate() {
            let second = index >= cells;
            assert_eq!(
                (*row, cell.key.row()),
                if second { (1, &b"b"[..]) } else { (0, &b"a"[..]) }
            );
            assert_eq!(cell.seq, SeqId(5 + u64::from(second)));
        }
    }
}

#[test]
fn an_edit_cut_anywhere_or_too_long_is_refused() {
    let mut builder = EditBuilder::new();
    builder.begin(RegionId(300));
    for row in [b"a", b"b"] {
        builder.begin_row();
        builder.cell_of(row, b"f", b"q", 1, CellType::Put, b"value", b"");
    }
    let edit = builder.finish().to_vec();
    let complete = |bytes: &[u8]| {
        EditReader::new(bytes, SeqId(1))
            .and_then(|edit| edit.collect::<Result<Vec<_>, _>>().map(|cells| cells.len()))
    };
    assert_eq!(complete(&edit), Ok(2));
    for len in 0..edit.len() {
        assert!(complete(&edit[..len]).is_err(), "cut at {len}");
    }
    let mut longer = edit.clone();
    longer.push(0);
    assert_eq!(complete(&longer), Err("an edit ends inside a nonce"));
    assert_eq!(
        EditReader::new(&edit, SeqId::MAX).unwrap_err(),
        "an edit's sequence ids overflow"
    );
}
