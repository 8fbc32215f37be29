//! Lists of filters: AND (`MUST_PASS_ALL`) and OR (`MUST_PASS_ONE`).
//!
//! A return code says two things: whether the cell stays, and how far to jump. AND keeps a cell that all
//! children keep and makes their largest jump; OR keeps a cell that any child keeps and makes their smallest
//! jump. That is HBase's table of merged codes, with one exception: a hint that meets anything but a hint is
//! no jump in an OR.
//!
//! AND asks its children in order and stops at the first that drops the cell, so the children behind it do
//! not count that cell (HBASE-20565). Only those of them that give hints are asked, for their hint; the
//! farthest of all hints is the list's. For the same reason a row stays that a child leaves out by its key
//! while one that gives hints lets it pass: its cells bring the hint (`FilterListWithAND`). OR asks them all,
//! but does not ask a child about cells that its own previous answer jumped over: the jump was not made for
//! the child's sake alone, and a child that counts must not count them.

use std::cmp::Ordering;

use super::{Filter, ReturnCode};
use crate::Result;
use crate::cell::{Cell, CellBatch, Key, KeyBuf, compare_keys};

/// How far a return code jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Jump {
    Cell,
    Column,
    Row,
    Hint,
}

fn take_apart(code: ReturnCode) -> (bool, Jump) {
    match code {
        ReturnCode::Include => (true, Jump::Cell),
        ReturnCode::IncludeAndNextCol => (true, Jump::Column),
        ReturnCode::IncludeAndSeekNextRow => (true, Jump::Row),
        ReturnCode::Skip => (false, Jump::Cell),
        ReturnCode::NextCol => (false, Jump::Column),
        ReturnCode::NextRow => (false, Jump::Row),
        ReturnCode::SeekNextUsingHint => (false, Jump::Hint),
    }
}

fn put_together(includes: bool, jump: Jump) -> ReturnCode {
    match (includes, jump) {
        (true, Jump::Cell | Jump::Hint) => ReturnCode::Include,
        (true, Jump::Column) => ReturnCode::IncludeAndNextCol,
        (true, Jump::Row) => ReturnCode::IncludeAndSeekNextRow,
        (false, Jump::Cell) => ReturnCode::Skip,
        (false, Jump::Column) => ReturnCode::NextCol,
        (false, Jump::Row) => ReturnCode::NextRow,
        (false, Jump::Hint) => ReturnCode::SeekNextUsingHint,
    }
}

fn merge_and(left: ReturnCode, right: ReturnCode) -> ReturnCode {
    let ((keep_left, jump_left), (keep_right, jump_right)) = (take_apart(left), take_apart(right));
    put_together(keep_left && keep_right, jump_left.max(jump_right))
}

fn merge_or(left: ReturnCode, right: ReturnCode) -> ReturnCode {
    let ((keep_left, jump_left), (keep_right, jump_right)) = (take_apart(left), take_apart(right));
    let one_hint = (jump_left == Jump::Hint) != (jump_right == Jump::Hint);
    let jump = if one_hint {
        Jump::Cell
    } else {
        jump_left.min(jump_right)
    };
    put_together(keep_left || keep_right, jump)
}

/// HBase's order of cells in a scan (`FilterListBase.compareCell`): in a reversed scan all is reversed,
/// although the cells of a row still come forward. So a filter in a reversed OR list that named a place
/// inside the row is not asked again in that row.
fn scan_order(reversed: bool, left: Key<'_>, right: Key<'_>) -> Ordering {
    let order = compare_keys(left, right);
    if reversed { order.reverse() } else { order }
}

/// Runs a value through several transforms, one after the other.
fn transform_through<'a, 'f>(
    mut filters: impl Iterator<Item = &'f Box<dyn Filter>>,
    cell: Cell<'a>,
    scratch: &'a mut Vec<u8>,
) -> &'a [u8] {
    let Some(first) = filters.next() else {
        return cell.value;
    };
    let Some(second) = filters.next() else {
        return first.transform_value(cell, scratch);
    };
    let mut value = first.transform_value(cell, scratch).to_vec();
    for filter in std::iter::once(second).chain(filters) {
        let mut next = Vec::new();
        let changed = Cell {
            value: &value,
            ..cell
        };
        value = filter.transform_value(changed, &mut next).to_vec();
    }
    *scratch = value;
    scratch
}

/// All children must pass. Without children everything passes.
#[derive(Debug)]
pub(super) struct AndList {
    children: Vec<Box<dyn Filter>>,
    reversed: bool,
    /// The children that answered the last cell with a hint.
    hinting: Vec<usize>,
}

impl AndList {
    pub(super) fn new(children: Vec<Box<dyn Filter>>) -> Self {
        Self {
            children,
            reversed: false,
            hinting: Vec::new(),
        }
    }
}

impl Filter for AndList {
    fn set_reversed(&mut self, reversed: bool) {
        self.reversed = reversed;
        for child in &mut self.children {
            child.set_reversed(reversed);
        }
    }

    fn reset(&mut self) {
        self.hinting.clear();
        for child in &mut self.children {
            child.reset();
        }
    }

    fn filter_all_remaining(&self) -> bool {
        self.children.iter().any(|child| child.filter_all_remaining())
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        let (mut filtered, mut hint_may_come) = (false, false);
        for child in &mut self.children {
            if child.filter_all_remaining() {
                return Ok(true);
            }
            // No short cut: each child prepares for the row here.
            if child.filter_row_key(row)? {
                filtered = true;
            } else {
                hint_may_come |= child.gives_hints();
            }
        }
        Ok(filtered && !hint_may_come)
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        self.hinting.clear();
        let mut merged = ReturnCode::Include;
        for (index, child) in self.children.iter_mut().enumerate() {
            let dropped = !merged.includes();
            if dropped && !child.gives_hints() {
                continue;
            }
            if !dropped && child.filter_all_remaining() {
                merged = ReturnCode::NextRow;
                continue;
            }
            let code = child.filter_cell(cell)?;
            if code == ReturnCode::SeekNextUsingHint {
                self.hinting.push(index);
            }
            if !dropped {
                merged = merge_and(merged, code);
            }
        }
        Ok(if self.hinting.is_empty() {
            merged
        } else {
            ReturnCode::SeekNextUsingHint
        })
    }

    fn transforms(&self) -> bool {
        self.children.iter().any(|child| child.transforms())
    }

    fn transform_value<'a>(&self, cell: Cell<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let transforming = self.children.iter().filter(|child| child.transforms());
        transform_through(transforming, cell, scratch)
    }

    fn filter_row_cells(&mut self, batch: &mut CellBatch) {
        for child in &mut self.children {
            child.filter_row_cells(batch);
        }
    }

    fn has_filter_row(&self) -> bool {
        self.children.iter().any(|child| child.has_filter_row())
    }

    fn filter_row(&mut self) -> bool {
        self.children.iter_mut().any(|child| child.filter_row())
    }

    fn is_list(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        let reversed = self.reversed;
        let mut farthest: Option<KeyBuf> = None;
        for &index in &self.hinting {
            let child = &mut self.children[index];
            if child.filter_all_remaining() {
                continue;
            }
            let Some(hint) = child.next_cell_hint(cell) else {
                continue;
            };
            if farthest
                .as_ref()
                .is_none_or(|so_far| scan_order(reversed, so_far.as_key(), hint.as_key()).is_lt())
            {
                farthest = Some(hint);
            }
        }
        farthest
    }

    fn may_end_in_left_out_rows(&self) -> bool {
        self.children.iter().any(|child| child.may_end_in_left_out_rows())
    }

    fn is_family_essential(&self, family: &[u8]) -> bool {
        self.children.is_empty()
            || self
                .children
                .iter()
                .any(|child| child.is_family_essential(family))
    }
}

/// A child of an OR with what it said last in this row.
#[derive(Debug)]
struct Alternative {
    filter: Box<dyn Filter>,
    /// How far its previous answer jumped.
    jump: Jump,
    /// Where from (the cell of the previous answer), or for a hint: where to.
    mark: KeyBuf,
    /// It included the current cell, so its transform applies.
    included: bool,
}

impl Alternative {
    /// Its answer for a cell that its previous answer jumped over.
    fn previous_answer(&self, cell: Cell<'_>, reversed: bool) -> Option<ReturnCode> {
        if self.jump == Jump::Cell {
            return None;
        }
        let mark = self.mark.as_key();
        // The marks of a row go away with its reset, so cell and mark are of one row, except for hints.
        match self.jump {
            Jump::Column if mark.column_bytes() == cell.key.column_bytes() => Some(ReturnCode::NextCol),
            Jump::Row if mark.family() == cell.key.family() => Some(ReturnCode::NextRow),
            Jump::Hint if scan_order(reversed, cell.key, mark).is_lt() => Some(ReturnCode::SeekNextUsingHint),
            _ => None,
        }
    }

    /// Marks the place of the filter's hint. Without one it is asked about the next cell.
    fn take_hint(&mut self, cell: Cell<'_>) -> bool {
        let Some(hint) = self.filter.next_cell_hint(cell) else {
            self.jump = Jump::Cell;
            return false;
        };
        self.jump = Jump::Hint;
        self.mark = hint;
        true
    }

    fn ask(&mut self, cell: Cell<'_>, reversed: bool) -> Result<ReturnCode> {
        if let Some(code) = self.previous_answer(cell, reversed) {
            if code == ReturnCode::SeekNextUsingHint {
                // HBase takes the hint anew from each cell, and a hint into the cell's family names another
                // place.
                self.take_hint(cell);
            }
            return Ok(code);
        }
        let mut code = self.filter.filter_cell(cell)?;
        self.jump = take_apart(code).1;
        if self.jump == Jump::Hint {
            if !self.take_hint(cell) {
                // A hint that names no place is a plain skip.
                code = ReturnCode::Skip;
            }
        } else if self.jump != Jump::Cell {
            self.mark.assign(cell.key);
        }
        Ok(code)
    }
}

/// One child must pass. Without children everything passes.
#[derive(Debug)]
pub(super) struct OrList {
    children: Vec<Alternative>,
    reversed: bool,
}

impl OrList {
    pub(super) fn new(children: Vec<Box<dyn Filter>>) -> Self {
        let alternative = |filter| Alternative {
            filter,
            jump: Jump::Cell,
            mark: KeyBuf::default(),
            included: false,
        };
        Self {
            children: children.into_iter().map(alternative).collect(),
            reversed: false,
        }
    }
}

impl Filter for OrList {
    fn set_reversed(&mut self, reversed: bool) {
        self.reversed = reversed;
        for child in &mut self.children {
            child.filter.set_reversed(reversed);
        }
    }

    fn reset(&mut self) {
        for child in &mut self.children {
            child.filter.reset();
            child.jump = Jump::Cell;
            child.included = false;
        }
    }

    fn filter_all_remaining(&self) -> bool {
        !self.children.is_empty()
            && self
                .children
                .iter()
                .all(|child| child.filter.filter_all_remaining())
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        let mut filtered = !self.children.is_empty();
        for child in &mut self.children {
            filtered &= child.filter.filter_all_remaining() || child.filter.filter_row_key(row)?;
        }
        Ok(filtered)
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        if self.children.is_empty() {
            return Ok(ReturnCode::Include);
        }
        let mut merged: Option<ReturnCode> = None;
        for child in &mut self.children {
            child.included = false;
            if child.filter.filter_all_remaining() {
                continue;
            }
            let code = child.ask(cell, self.reversed)?;
            child.included = code.includes();
            merged = Some(merged.map_or(code, |merged| merge_or(merged, code)));
        }
        Ok(merged.unwrap_or(ReturnCode::Skip))
    }

    fn transforms(&self) -> bool {
        self.children.iter().any(|child| child.filter.transforms())
    }

    fn transform_value<'a>(&self, cell: Cell<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let transforming = self
            .children
            .iter()
            .filter(|child| child.included && child.filter.transforms())
            .map(|child| &child.filter);
        transform_through(transforming, cell, scratch)
    }

    fn filter_row_cells(&mut self, batch: &mut CellBatch) {
        for child in &mut self.children {
            child.filter.filter_row_cells(batch);
        }
    }

    fn has_filter_row(&self) -> bool {
        self.children.iter().any(|child| child.filter.has_filter_row())
    }

    fn filter_row(&mut self) -> bool {
        // Stops at the first child that keeps the row: a PageFilter behind it does not count the row.
        !self.children.is_empty() && self.children.iter_mut().all(|child| child.filter.filter_row())
    }

    fn is_list(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, _: Cell<'_>) -> Option<KeyBuf> {
        // Asked only when every child that still takes part answered with a hint.
        let reversed = self.reversed;
        self.children
            .iter()
            .filter(|child| child.jump == Jump::Hint && !child.filter.filter_all_remaining())
            .map(|child| &child.mark)
            .min_by(|left, right| scan_order(reversed, left.as_key(), right.as_key()))
            .cloned()
    }

    fn may_end_in_left_out_rows(&self) -> bool {
        let mut filters = self.children.iter().map(|child| &child.filter);
        filters.any(|filter| filter.may_end_in_left_out_rows())
    }

    fn is_family_essential(&self, family: &[u8]) -> bool {
        self.children.is_empty()
            || self
                .children
                .iter()
                .any(|child| child.filter.is_family_essential(family))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: [ReturnCode; 7] = [
        ReturnCode::Include,
        ReturnCode::IncludeAndNextCol,
        ReturnCode::IncludeAndSeekNextRow,
        ReturnCode::Skip,
        ReturnCode::NextCol,
        ReturnCode::NextRow,
        ReturnCode::SeekNextUsingHint,
    ];

    /// Rows and columns in the order of `CODES`; I include, C column, R row, S skip, H hint.
    #[test]
    fn merged_codes() {
        let letters = ["I", "IC", "IR", "S", "C", "R", "H"];
        let table = |merge: fn(ReturnCode, ReturnCode) -> ReturnCode| -> Vec<String> {
            CODES
                .iter()
                .map(|left| {
                    let name = |right: &ReturnCode| {
                        let merged = merge(*left, *right);
                        letters[CODES.iter().position(|code| *code == merged).unwrap()]
                    };
                    CODES.iter().map(name).collect::<Vec<_>>().join(" ")
                })
                .collect()
        };
        let and = [
            "I IC IR S C R H",
            "IC IC IR C C R H",
            "IR IR IR R R R H",
            "S C R S C R H",
            "C C R C C R H",
            "R R R R R R H",
            "H H H H H H H",
        ];
        let or = [
            "I I I I I I I",
            "I IC IC I IC IC I",
            "I IC IR I IC IR I",
            "I I I S S S S",
            "I IC IC S C C S",
            "I IC IR S C R S",
            "I I I S S S H",
        ];
        assert_eq!(table(merge_and), and);
        assert_eq!(table(merge_or), or);
    }
}
