//! The rows of a table in their order, each with a hash of its cells.
//!
//! Rows are read in pieces and hashed as they come, so that a wide row needs no memory.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use basalt_client::native::Scanner;
use basalt_client::{Result, Row, Scan};
use bytes::Bytes;

use super::copy::{FETCH_ROWS, PIECE_CELLS};
use super::ranges::Range;
use super::side::Side;

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HashedRow {
    pub(super) key: Bytes,
    hash: u64,
    pub(super) cells: u64,
}

/// A scan of a range, raw: with tombstones and old versions.
#[derive(Debug)]
pub(super) struct Rows {
    scanner: Scanner,
    pieces: VecDeque<Row>,
    /// The row whose pieces arrive.
    current: Option<(Bytes, DefaultHasher, u64)>,
    is_done: bool,
}

impl Rows {
    /// The cells whose timestamps are at least `from_ms`.
    pub(super) fn scan(side: &Side, (start, end): Range, from_ms: i64) -> Result<Self> {
        let mut scan = Scan::new()
            .start_row(start)
            .stop_row(end)
            .raw(true)
            .versions(i32::MAX)
            .cells_per_piece(PIECE_CELLS)
            .rows_per_fetch(FETCH_ROWS)
            .cache_blocks(false);
        if from_ms > 0 {
            scan = scan.time_range(from_ms..i64::MAX);
        }
        Ok(Self {
            scanner: side.table.scanner(scan)?,
            pieces: VecDeque::new(),
            current: None,
            is_done: false,
        })
    }

    /// The next row; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<HashedRow>> {
        loop {
            while let Some(piece) = self.pieces.pop_front() {
                if let Some(whole) = self.add(&piece) {
                    return Ok(Some(whole));
                }
            }
            if self.is_done {
                return Ok(self.current.take().map(whole));
            }
            match self.scanner.next_batch().await? {
                Some(pieces) => self.pieces.extend(pieces),
                None => self.is_done = true,
            }
        }
    }

    /// Adds a piece. Returns the row before, if this is the first piece of another one.
    fn add(&mut self, piece: &Row) -> Option<HashedRow> {
        let is_new = self.current.as_ref().is_none_or(|(key, ..)| *key != piece.key);
        let before = if is_new { self.current.take() } else { None };
        let (_, hasher, cells) = self
            .current
            .get_or_insert_with(|| (piece.key.clone(), DefaultHasher::new(), 0));
        for cell in &piece.cells {
            // `Bytes` hashes its length, too: cells cannot be mistaken for others.
            (&cell.family, &cell.qualifier, cell.timestamp).hash(hasher);
            (cell.kind as u8, &cell.value, &cell.tags).hash(hasher);
            *cells += 1;
        }
        before.map(whole)
    }
}

fn whole((key, hasher, cells): (Bytes, DefaultHasher, u64)) -> HashedRow {
    HashedRow {
        key,
        hash: hasher.finish(),
        cells,
    }
}
