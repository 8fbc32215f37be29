//! Cells as text, and the plainest possible cursor over them.
//!
//! A cell is `row/qualifier/timestamp/TYPE#sequence=value`; TYPE is P, D (one version), DC (column), DF
//! (family), DFV (family, one version). Sequence and value may be left out. A value of `ttlN` stands for a
//! cell with a TTL of N ms.

use std::fmt;

use crate::Result;
use crate::cell::{Cell, CellCursor, CellType, Key, KeyBuf, TAG_TTL, compare_keys, put_tag};
use crate::id::SeqId;

/// The family of all cells in these tests.
pub(in crate::store) const FAMILY: &[u8] = b"f";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct TextCell {
    pub(in crate::store) key: KeyBuf,
    pub(in crate::store) value: Vec<u8>,
    pub(in crate::store) tags: Vec<u8>,
    pub(in crate::store) seq: SeqId,
}

impl TextCell {
    pub(in crate::store) fn new(
        row: &str,
        qualifier: &str,
        timestamp: i64,
        cell_type: CellType,
        seq: u64,
    ) -> Self {
        Self {
            key: KeyBuf::new(row.as_bytes(), FAMILY, qualifier.as_bytes(), timestamp, cell_type),
            value: Vec::new(),
            tags: Vec::new(),
            seq: SeqId(seq),
        }
    }

    pub(in crate::store) fn parse(text: &str) -> Self {
        let (place, value) = text.split_once('=').unwrap_or((text, ""));
        let (place, seq) = place.split_once('#').unwrap_or((place, "0"));
        let parts: Vec<&str> = place.split('/').collect();
        let [row, qualifier, timestamp, kind] = parts[..] else {
            panic!("not a cell: {text}");
        };
        let cell_type = match kind {
            "P" => CellType::Put,
            "D" => CellType::Delete,
            "DC" => CellType::DeleteColumn,
            "DF" => CellType::DeleteFamily,
            "DFV" => CellType::DeleteFamilyVersion,
            _ => panic!("no such type: {text}"),
        };
        let mut cell = Self::new(
            row,
            qualifier,
            timestamp.parse().unwrap(),
            cell_type,
            seq.parse().unwrap(),
        );
        cell.value = value.as_bytes().to_vec();
        if let Some(ttl_ms) = value.strip_prefix("ttl") {
            put_tag(
                &mut cell.tags,
                TAG_TTL,
                &ttl_ms.parse::<i64>().unwrap().to_be_bytes(),
            );
        }
        cell
    }

    pub(in crate::store) fn as_cell(&self) -> Cell<'_> {
        Cell {
            key: self.key.as_key(),
            value: &self.value,
            tags: &self.tags,
            seq: self.seq,
        }
    }

    pub(in crate::store) fn of(cell: Cell<'_>) -> Self {
        Self {
            key: KeyBuf::copy_of(cell.key),
            value: cell.value.to_vec(),
            tags: cell.tags.to_vec(),
            seq: cell.seq,
        }
    }
}

impl fmt::Display for TextCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_key();
        let kind = match key.cell_type() {
            CellType::Put => "P",
            CellType::Delete => "D",
            CellType::DeleteColumn => "DC",
            CellType::DeleteFamily => "DF",
            CellType::DeleteFamilyVersion => "DFV",
            CellType::Minimum | CellType::Maximum => "?",
        };
        let (row, qualifier) = (key.row().escape_ascii(), key.qualifier().escape_ascii());
        write!(f, "{row}/{qualifier}/{}/{kind}", key.timestamp())?;
        if self.seq != SeqId::ZERO {
            write!(f, "#{}", self.seq)?;
        }
        if !self.value.is_empty() {
            write!(f, "={}", self.value.escape_ascii())?;
        }
        Ok(())
    }
}

/// Cells of a text, one per word, in the order of a store.
pub(in crate::store) fn parse_cells(text: &str) -> Vec<TextCell> {
    let mut cells: Vec<TextCell> = text.split_whitespace().map(TextCell::parse).collect();
    sort(&mut cells);
    cells
}

pub(in crate::store) fn sort(cells: &mut [TextCell]) {
    cells.sort_by(|left, right| {
        compare_keys(left.key.as_key(), right.key.as_key()).then_with(|| right.seq.cmp(&left.seq))
    });
}

/// A cursor that searches front to back.
#[derive(Debug)]
pub(in crate::store) struct VecCursor {
    cells: Vec<TextCell>,
    at: usize,
    /// Seeks forward and backward so far.
    pub(in crate::store) seeks: usize,
    /// Reversed steps so far.
    pub(in crate::store) steps_back: usize,
    /// Whether it knows its bounds, as a file does.
    pub(in crate::store) knows_bounds: bool,
}

impl VecCursor {
    pub(in crate::store) fn new(mut cells: Vec<TextCell>) -> Self {
        sort(&mut cells);
        Self {
            at: cells.len(),
            cells,
            seeks: 0,
            steps_back: 0,
            knows_bounds: false,
        }
    }
}

impl CellCursor for VecCursor {
    fn cell(&self) -> Option<Cell<'_>> {
        self.cells.get(self.at).map(TextCell::as_cell)
    }

    fn advance(&mut self) -> Result<()> {
        self.at = self.cells.len().min(self.at + 1);
        Ok(())
    }

    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        self.seeks += 1;
        self.at = self
            .cells
            .iter()
            .position(|cell| compare_keys(cell.key.as_key(), target).is_ge())
            .unwrap_or(self.cells.len());
        Ok(())
    }

    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        while self
            .cell()
            .is_some_and(|cell| compare_keys(cell.key, target).is_lt())
        {
            self.advance()?;
        }
        Ok(())
    }

    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        self.seeks += 1;
        self.steps_back += 1;
        let row_of = |cell: &TextCell| cell.key.as_key().row().to_vec();
        let before = self
            .cells
            .iter()
            .map(row_of)
            .filter(|other| other.as_slice() < row)
            .max();
        self.at = before
            .and_then(|before| self.cells.iter().position(|cell| row_of(cell) == before))
            .unwrap_or(self.cells.len());
        Ok(())
    }

    fn seek_last_row(&mut self) -> Result<()> {
        self.seek_row_before(&[0xff; 64])
    }

    fn bounds(&self) -> Option<(Key<'_>, Key<'_>)> {
        let (first, last) = (self.cells.first()?, self.cells.last()?);
        self.knows_bounds.then(|| (first.key.as_key(), last.key.as_key()))
    }
}
