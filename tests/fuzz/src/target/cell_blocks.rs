//! Cell blocks, plain and compressed.
//!
//! ```text
//! input = how u8 | block
//! how   = 0: plain; n: packed with compressor n - 1; larger ones count from 0 again
//! ```
//!
//! 1. A packed block is unpacked to at most [`PLAIN_BYTES`], within the bytes reserved for it. The
//!    plain bytes survive being packed and unpacked again.
//! 2. The cells of a block follow each other. A cell that was decoded is encoded again and decodes to
//!    the same.

use basalt_idl::native::cells::Cells;
use basalt_idl::native::compress::{Compressor, Room};

use crate::memory;

/// Most plain bytes of a packed block.
const PLAIN_BYTES: usize = 64 << 10;
/// Memory of the decompressors' own tables and windows.
const TABLES_BYTES: usize = 192 << 10;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((&how, block)) = input.split_first() else {
        return;
    };
    match usize::from(how) % (Compressor::ALL.len() + 1) {
        0 => cells(block),
        number => packed(Compressor::ALL[number - 1], block),
    }
}

/// Counts the reserved bytes, and panics when a block reserves more than it may take.
#[derive(Debug, Default)]
struct Counted {
    used: usize,
}

impl Room for Counted {
    fn reserve(&mut self, bytes: usize) -> bool {
        self.used += bytes;
        assert!(self.used <= 2 * PLAIN_BYTES, "{} bytes were reserved", self.used);
        true
    }

    fn release(&mut self, bytes: usize) {
        self.used -= bytes;
    }
}

fn packed(compressor: Compressor, block: &[u8]) {
    // The old buffer and the new one, while the output grows.
    let beside = 2 * PLAIN_BYTES + TABLES_BYTES;
    let unpacked = memory::bounded(block.len(), beside, || {
        let mut room = Counted::default();
        let unpacked = compressor.unpack(block, PLAIN_BYTES, &mut room);
        let kept = unpacked.as_ref().map_or(0, Vec::len);
        assert!(
            room.used >= kept && (room.used == 0 || unpacked.is_ok()),
            "{room:?}"
        );
        unpacked
    });
    let Ok(plain) = unpacked else { return };
    assert!(plain.len() <= PLAIN_BYTES);
    let again = compressor.pack(&plain).expect("a Vec can be packed");
    let mut room = Counted::default();
    assert_eq!(
        compressor.unpack(&again, PLAIN_BYTES, &mut room),
        Ok(plain.clone())
    );
    cells(&plain);
}

fn cells(block: &[u8]) {
    let mut cells = Cells::new(block);
    let mut at = 0;
    while let Some(read) = cells.next() {
        let Ok(cell) = read else {
            assert!(
                cells.is_empty() && cells.next().is_none(),
                "cells behind a malformed one"
            );
            return;
        };
        assert!(cells.offset() > at && cells.offset() <= block.len());
        at = cells.offset();
        // Longer rows and families cannot be encoded.
        if cell.row.len() > 32_767 || cell.family.len() > 127 {
            continue;
        }
        let mut written = Vec::new();
        cell.encode(&mut written);
        assert_eq!(written.len(), cell.encoded_len());
        assert_eq!(
            Cells::new(&written).require(),
            Ok(cell),
            "a cell does not read what it wrote"
        );
    }
    assert_eq!(at, block.len());
}
