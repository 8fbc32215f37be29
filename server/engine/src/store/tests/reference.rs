//! The semantics of a store, evaluated in the simplest way: every question reads every cell.
//!
//! Written from the rules, not from the engine's trackers: masking is "is there a tombstone that
//! …", versions are positions in a sorted list. Cells lie in runs, one per memstore or file,
//! because flush and compaction drop cells.

use std::collections::BTreeSet;

use super::TextCell;
use super::vec_cursor::sort;
use crate::cell::{CellType, ttl_ms};
use crate::id::SeqId;
use crate::op::TimeRange;
use crate::schema::{FamilyDescriptor, KeepDeletedCells};

/// The parameters of a read.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// `None`: all.
    pub(super) columns: Option<Vec<String>>,
    pub(super) max_versions: i32,
    pub(super) range: TimeRange,
    pub(super) raw: bool,
    pub(super) read_point: SeqId,
    pub(super) family_limit: Option<usize>,
    pub(super) family_offset: usize,
}

pub(super) struct Reference<'a> {
    pub(super) family: &'a FamilyDescriptor,
    pub(super) now_ms: i64,
}

fn kind(cell: &TextCell) -> CellType {
    cell.key.as_key().cell_type()
}

fn stamp(cell: &TextCell) -> i64 {
    cell.key.as_key().timestamp()
}

fn qualifier(cell: &TextCell) -> &[u8] {
    cell.key.as_key().qualifier()
}

fn is_delete(cell: &TextCell) -> bool {
    kind(cell).is_delete()
}

/// Whether `tombstone` masks `put`, both of one row.
fn masks(tombstone: &TextCell, put: &TextCell) -> bool {
    let same_column = qualifier(tombstone) == qualifier(put);
    match kind(tombstone) {
        CellType::DeleteFamily => stamp(put) <= stamp(tombstone),
        CellType::DeleteFamilyVersion => stamp(put) == stamp(tombstone),
        CellType::DeleteColumn => same_column && stamp(put) <= stamp(tombstone),
        CellType::Delete => same_column && stamp(put) == stamp(tombstone),
        _ => false,
    }
}

/// Cells of one column, first to last, without repetitions of the same version.
fn without_duplicates(cells: Vec<TextCell>) -> Vec<TextCell> {
    let mut kept: Vec<TextCell> = Vec::new();
    for cell in cells {
        let repeated = kept
            .last()
            .is_some_and(|last| stamp(last) == stamp(&cell) && kind(last) == kind(&cell));
        if !repeated {
            kept.push(cell);
        }
    }
    kept
}

/// The oldest put of some files.
pub(super) fn earliest_put(cells: &[TextCell]) -> i64 {
    cells
        .iter()
        .filter(|cell| !is_delete(cell))
        .map(stamp)
        .min()
        .unwrap_or(i64::MAX)
}

impl Reference<'_> {
    fn is_old(&self, cell: &TextCell) -> bool {
        self.family.ttl_ms() != i64::MAX && stamp(cell) < self.now_ms - self.family.ttl_ms()
    }

    fn is_gone(&self, cell: &TextCell) -> bool {
        let by_family = self.family.min_versions == 0 && self.is_old(cell);
        by_family || self.is_gone_by_itself(cell)
    }

    /// Whether the cell's own time to live is over.
    fn is_gone_by_itself(&self, cell: &TextCell) -> bool {
        ttl_ms(&cell.tags).is_some_and(|ttl| stamp(cell) + ttl < self.now_ms)
    }

    /// Whether a read shows nothing of the cell because of its age.
    fn is_hidden(&self, cell: &TextCell, question: &Question) -> bool {
        if question.raw {
            return self.is_gone_by_itself(cell);
        }
        self.is_gone(cell)
    }

    /// The results of one row, from all cells that there are.
    pub(super) fn read_row(&self, all: &[TextCell], row: &str, question: &Question) -> Vec<TextCell> {
        let mut cells: Vec<TextCell> = all
            .iter()
            .filter(|cell| cell.key.as_key().row() == row.as_bytes())
            .filter(|cell| cell.seq <= question.read_point && !self.is_hidden(cell, question))
            .cloned()
            .collect();
        sort(&mut cells);
        let in_range =
            |cell: &TextCell| stamp(cell) >= question.range.min && stamp(cell) < question.range.max;
        let sees_past = self.family.keep_deleted_cells != KeepDeletedCells::False;
        let tombstones: Vec<&TextCell> = cells
            .iter()
            .filter(|cell| is_delete(cell) && (!sees_past || in_range(cell)))
            .collect();
        let columns: BTreeSet<Vec<u8>> = cells.iter().map(|cell| qualifier(cell).to_vec()).collect();
        let mut results = Vec::new();
        for column in columns {
            let named = question.columns.as_ref();
            if named.is_some_and(|named| !named.iter().any(|name| name.as_bytes() == column)) {
                continue;
            }
            let candidates: Vec<TextCell> = cells
                .iter()
                .filter(|cell| qualifier(cell) == column && in_range(cell))
                .filter(|cell| {
                    question.raw || !is_delete(cell) && !tombstones.iter().any(|gone| masks(gone, cell))
                })
                .cloned()
                .collect();
            let candidates = without_duplicates(candidates);
            results.extend(self.newest(candidates, question));
        }
        // A limit of none lets one cell through.
        let limit = question.family_limit.map_or(usize::MAX, |limit| limit.max(1));
        results
            .into_iter()
            .skip(question.family_offset)
            .take(limit)
            .collect()
    }

    /// The wanted versions of one column.
    fn newest(&self, candidates: Vec<TextCell>, question: &Question) -> Vec<TextCell> {
        let max = if question.raw {
            question.max_versions
        } else {
            question.max_versions.min(self.family.max_versions)
        };
        let mut puts = 0;
        let mut results = Vec::new();
        for cell in candidates {
            puts += i32::from(!is_delete(&cell));
            let old = !question.raw && self.is_old(&cell);
            if question.columns.is_some() {
                // A named column ends with the version that reaches a limit; that one is still a result.
                let last = puts >= max || (puts >= self.family.min_versions && old);
                results.push(cell);
                if last {
                    break;
                }
            } else {
                if puts > max || (puts > self.family.min_versions && old) {
                    break;
                }
                results.push(cell);
            }
        }
        results
    }

    /// The cells that a flush or a compaction of `cells` keeps. `purge`: all files take part and no
    /// put in them is older than this; tombstones may go, and sequence ids, since no earlier read
    /// point is in use.
    pub(super) fn retain(&self, cells: &[TextCell], purge: Option<i64>) -> Vec<TextCell> {
        let mut alive: Vec<TextCell> = cells.iter().filter(|cell| !self.is_gone(cell)).cloned().collect();
        sort(&mut alive);
        let keeps_deleted = |tombstone: &TextCell| match self.family.keep_deleted_cells {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => true,
            KeepDeletedCells::Ttl => !self.is_old(tombstone),
        };
        let same_row =
            |left: &TextCell, right: &TextCell| left.key.as_key().row() == right.key.as_key().row();
        let is_masked = |put: &TextCell| {
            alive.iter().any(|gone| {
                is_delete(gone) && same_row(gone, put) && !keeps_deleted(gone) && masks(gone, put)
            })
        };
        let columns: BTreeSet<Vec<u8>> = alive
            .iter()
            .map(|cell| cell.key.as_key().column_bytes().to_vec())
            .collect();
        let mut kept = Vec::new();
        for column in columns {
            let of_column = |cell: &&TextCell| cell.key.as_key().column_bytes() == column;
            let mut counted = Vec::new();
            for cell in alive.iter().filter(of_column) {
                match (is_delete(cell), purge) {
                    (true, None) => kept.push(cell.clone()),
                    (true, Some(earliest_put)) if !keeps_deleted(cell) || stamp(cell) < earliest_put => {}
                    (false, _) if is_masked(cell) => {}
                    (true, Some(_)) | (false, _) => counted.push(cell.clone()),
                }
            }
            let mut puts = 0;
            for cell in without_duplicates(counted) {
                puts += i32::from(!is_delete(&cell));
                if puts <= self.family.max_versions
                    && (puts <= self.family.min_versions || !self.is_old(&cell))
                {
                    kept.push(cell);
                }
            }
        }
        sort(&mut kept);
        if purge.is_some() {
            for cell in &mut kept {
                cell.seq = SeqId::ZERO;
            }
        }
        kept
    }
}
