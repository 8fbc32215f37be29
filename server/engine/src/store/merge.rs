//! Merging: many sorted runs of cells as one.
//!
//! The child under the cursor stands outside a binary heap of the others, so the heap's root is the runner-up
//! and stepping within one child costs one comparison; with one child, none: its own order is the merge's,
//! also where that is not the order of bytes (`cell::RowOrder`). Equal keys come out by sequence id, greater
//! first, and, where compaction has dropped the sequence ids, by source, newer first (children are given
//! newest first).
//!
//! A reversed step ([`CellCursor::seek_row_before`]) lands on the greatest row that any child has
//! before the target. Children whose own greatest row is smaller are *parked*: they already stand
//! where the next reversed step needs them and are not moved, so that a reversed scan seeks in each
//! child once per row of that child, not once per row of the merge. In return, after a reversed
//! step the cursor is confined to that row: past the row's last cell it is at its end until the
//! next seek, which suits reversed scans.
//!
//! A child that says between which keys its cells are ([`CellCursor::bounds`]) is not moved, and reads
//! nothing, before the merge gets there. Forward, such a child is *ahead*: all its rows are behind the
//! merge's. Backward, it is *below*: its last row is smaller than the merge's.
//!
//! One thread at a time; holds no lock.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::Result;
use crate::cell::{Cell, CellCursor, Key, KeyBuf};

/// A merge of cursors over cells of one family.
#[derive(Debug)]
pub(crate) struct MergeCursor<C> {
    /// Newest source first.
    children: Vec<C>,
    /// The child under the cursor; it may stand at its end only when there is no other.
    current: Option<usize>,
    /// Other children that have a cell (in confined state: in the row). `heap[0]` is the runner-up.
    heap: SmallVec<[usize; 8]>,
    /// State of reversed steps.
    reversed: Confinement,
    /// Children whose first row is behind that of the current cell, and that stand anywhere; the last
    /// one begins first. None after a reversed step.
    ahead: SmallVec<[usize; 8]>,
    /// The first row of the last one of `ahead`.
    ahead_row: Vec<u8>,
}

/// Where the last reversed step landed.
#[derive(Debug, Default)]
struct Confinement {
    /// Whether the last seek was a reversed step.
    on: bool,
    /// The row it landed on; empty when there was none.
    row: Vec<u8>,
    /// The row before which it sought; `None`: the end.
    bound: Option<Vec<u8>>,
    /// For each child: whether it still stands at its greatest row before `bound`, below `row` or nowhere.
    parked: SmallVec<[bool; 8]>,
    /// For each child: whether its last row is below `row` and it was not moved there. It is parked.
    below: SmallVec<[bool; 8]>,
}

impl<C: CellCursor> MergeCursor<C> {
    /// A merge of cursors that stand nowhere, newest source first.
    pub(crate) fn new(children: Vec<C>) -> Self {
        let none = SmallVec::from_elem(false, children.len());
        Self {
            heap: SmallVec::new(),
            current: None,
            children,
            reversed: Confinement {
                parked: none.clone(),
                below: none,
                ..Confinement::default()
            },
            ahead: SmallVec::new(),
            ahead_row: Vec::new(),
        }
    }

    /// A merge of cursors that are positioned already, each at its first cell of interest.
    pub(crate) fn take_positions(&mut self) {
        self.heap = (0..self.children.len())
            .filter(|child| self.has_cell(*child))
            .collect();
        self.order_heap();
    }

    /// Lets `take` take rows from the child under the cursor. `take` also gets the next row of which another
    /// child may have cells; empty: no such row. It must leave the child before that row, or where it was.
    #[inline]
    pub(super) fn take_from_current<T: Default>(&mut self, take: impl FnOnce(&mut C, &[u8]) -> T) -> T {
        let Some(current) = self.current else {
            return T::default();
        };
        if self.reversed.on {
            return self.take_backward(current, take);
        }
        let ahead = (!self.ahead.is_empty()).then_some(&self.ahead_row[..]);
        let Some(&next) = self.heap.first() else {
            return take(&mut self.children[current], ahead.unwrap_or_default());
        };
        let Ok([child, next]) = self.children.get_disjoint_mut([current, next]) else {
            return T::default();
        };
        let Some(next) = next.cell().map(|cell| cell.key.row()) else {
            return T::default();
        };
        take(child, ahead.map_or(next, |ahead| ahead.min(next)))
    }

    /// As [`Self::take_from_current`], after a reversed step.
    fn take_backward<T: Default>(&mut self, current: usize, take: impl FnOnce(&mut C, &[u8]) -> T) -> T {
        if !self.heap.is_empty() {
            // Others have cells of this row.
            return T::default();
        }
        let (before, rest) = self.children.split_at_mut(current);
        let Some((child, behind)) = rest.split_first_mut() else {
            return T::default();
        };
        let others = before.iter().enumerate();
        let others = others.chain((current + 1..).zip(behind.iter()));
        let greatest = others.filter_map(|(number, other)| {
            if self.reversed.below[number] {
                other.bounds().map(|(_, last)| last.row())
            } else {
                other.cell().map(|cell| cell.key.row())
            }
        });
        let taken = take(child, greatest.max().unwrap_or_default());
        // All that is parked stands below the row at which the child is now.
        if let Some(cell) = child.cell().filter(|cell| cell.key.row() != self.reversed.row) {
            self.reversed.row.clear();
            self.reversed.row.extend_from_slice(cell.key.row());
        }
        taken
    }

    /// The sources, newest first.
    #[cfg(test)]
    pub(super) fn children(&self) -> &[C] {
        &self.children
    }

    /// The sources, newest first.
    #[cfg(test)]
    pub(super) fn children_mut(&mut self) -> &mut [C] {
        &mut self.children
    }

    /// Whether the child has a cell to offer.
    fn has_cell(&self, child: usize) -> bool {
        match self.children[child].cell() {
            None => false,
            Some(cell) => !self.reversed.on || cell.key.row() == self.reversed.row,
        }
    }

    /// Whether the cell of `left` comes before that of `right`. Both have one.
    fn is_before(&self, left: usize, right: usize) -> bool {
        let (Some(left_cell), Some(right_cell)) = (self.children[left].cell(), self.children[right].cell())
        else {
            unreachable!("children in the heap have a cell");
        };
        compare_in_store(left_cell.key, right_cell.key)
            .then_with(|| right_cell.seq.cmp(&left_cell.seq))
            .then_with(|| left.cmp(&right))
            .is_lt()
    }

    /// Brings the child that begins first to the end of `ahead`.
    fn order_ahead(&mut self) {
        let first_row = |child: &usize| self.children[*child].bounds().map(|(first, _)| first.row());
        let next = (0..self.ahead.len()).min_by_key(|at| first_row(&self.ahead[*at]));
        if let Some(next) = next {
            self.ahead_row.clear();
            self.ahead_row
                .extend_from_slice(first_row(&self.ahead[next]).unwrap_or_default());
            let last = self.ahead.len() - 1;
            self.ahead.swap(next, last);
        }
    }

    /// Moves the last child of `ahead` to `target`, and adds it to those that stand somewhere. After
    /// an error it is still ahead.
    fn join_next(&mut self, target: Key<'_>) -> Result<()> {
        let Some(&child) = self.ahead.last() else {
            return Ok(());
        };
        self.children[child].seek(target)?;
        self.ahead.pop();
        self.order_ahead();
        if self.has_cell(child) {
            self.heap.push(child);
            let current = self.current.filter(|current| self.has_cell(*current));
            self.heap.extend(current);
            self.order_heap();
        }
        Ok(())
    }

    /// Moves the children to their first cell that are no longer ahead of the merge.
    #[inline]
    fn catch_up(&mut self) -> Result<()> {
        if self.ahead.is_empty() {
            return Ok(());
        }
        match self.cell() {
            Some(cell) if cell.key.row() < &self.ahead_row[..] => Ok(()),
            _ => self.begin_next(),
        }
    }

    #[inline(never)]
    fn begin_next(&mut self) -> Result<()> {
        while self
            .cell()
            .is_none_or(|cell| cell.key.row() >= &self.ahead_row[..])
            && let Some(next) = self.ahead.last()
            && let Some((first, _)) = self.children[*next].bounds()
        {
            let first = KeyBuf::copy_of(first);
            self.join_next(first.as_key())?;
        }
        Ok(())
    }

    /// Turns the children in the heap from any order into a heap, and takes the first one out.
    fn order_heap(&mut self) {
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
        self.current = self.pop();
    }

    fn pop(&mut self) -> Option<usize> {
        if self.heap.is_empty() {
            return None;
        }
        let first = self.heap.swap_remove(0);
        self.sift_down(0);
        Some(first)
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let smaller = if right < self.heap.len() && self.is_before(self.heap[right], self.heap[left]) {
                right
            } else {
                left
            };
            if !self.is_before(self.heap[smaller], self.heap[at]) {
                return;
            }
            self.heap.swap(at, smaller);
            at = smaller;
        }
    }

    /// Restores the order after the current child has moved forward.
    #[inline]
    fn settle(&mut self, current: usize) {
        if self.heap.is_empty() && !self.reversed.on {
            return;
        }
        if !self.has_cell(current) {
            self.current = self.pop();
        } else if let Some(&next) = self.heap.first()
            && self.is_before(next, current)
        {
            self.heap[0] = current;
            self.current = Some(next);
            self.sift_down(0);
        }
    }

    /// A reversed step; `bound` is the row to stay before, `None` the end.
    fn step_back(&mut self, bound: Option<&[u8]>) -> Result<()> {
        let reusable = self.reversed.on
            && match (bound, &self.reversed.bound) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(new), Some(old)) => new <= old.as_slice(),
            };
        // Until all children have moved, a failure must not leave children wrongly marked as
        // parked.
        self.current = None;
        self.heap.clear();
        self.reversed.on = false;
        self.ahead.clear();
        let is_before = |row: &[u8]| bound.is_none_or(|bound| row < bound);
        for (number, child) in self.children.iter_mut().enumerate() {
            let stays = reusable
                && self.reversed.parked[number]
                && !self.reversed.below[number]
                && child.cell().is_none_or(|cell| is_before(cell.key.row()));
            if stays {
                continue;
            }
            // A child that was moved in this direction stands at or behind `bound`.
            let may_be = !reusable || self.reversed.below[number];
            let below = may_be && child.bounds().is_some_and(|(_, last)| is_before(last.row()));
            self.reversed.below[number] = below;
            if !below {
                seek_before(child, bound)?;
            }
        }
        while let Some(child) = self.greatest_below() {
            seek_before(&mut self.children[child], bound)?;
            self.reversed.below[child] = false;
        }
        self.confine(bound);
        Ok(())
    }

    /// The child below with the greatest last row, if no row at which another child stands is greater.
    fn greatest_below(&self) -> Option<usize> {
        let below = &self.reversed.below;
        if !below.contains(&true) {
            return None;
        }
        let last_row = |child: usize| self.children[child].bounds().map(|(_, last)| last.row());
        let next = (0..below.len())
            .filter(|child| below[*child])
            .max_by_key(|child| last_row(*child))?;
        let stands = self.children.iter().zip(below).filter(|(_, below)| !**below);
        let greatest = stands
            .filter_map(|(child, _)| child.cell().map(|cell| cell.key.row()))
            .max();
        (greatest <= last_row(next)).then_some(next)
    }

    /// Confines the merge to the greatest row at which a child stands, and parks the other
    /// children.
    fn confine(&mut self, bound: Option<&[u8]>) {
        let mut greatest: &[u8] = &[];
        for (child, cursor) in self.children.iter().enumerate() {
            let Some(cell) = cursor.cell().filter(|_| !self.reversed.below[child]) else {
                continue;
            };
            let row = cell.key.row();
            let order = if self.heap.is_empty() {
                Ordering::Greater
            } else {
                row.cmp(greatest)
            };
            if order.is_gt() {
                greatest = row;
                self.heap.clear();
            }
            if order.is_ge() {
                self.heap.push(child);
            }
        }
        let reversed = &mut self.reversed;
        reversed.row.clear();
        reversed.row.extend_from_slice(greatest);
        reversed.parked.fill(true);
        for child in &self.heap {
            reversed.parked[*child] = false;
        }
        match (&mut reversed.bound, bound) {
            (Some(old), Some(new)) => {
                old.clear();
                old.extend_from_slice(new);
            }
            (old, new) => *old = new.map(<[u8]>::to_vec),
        }
        reversed.on = true;
        self.order_heap();
    }
}

impl<C: CellCursor> CellCursor for MergeCursor<C> {
    #[inline]
    fn cell(&self) -> Option<Cell<'_>> {
        self.children[self.current?].cell()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let Some(current) = self.current else {
            return Ok(());
        };
        self.children[current].advance()?;
        self.settle(current);
        self.catch_up()
    }

    fn seek(&mut self, target: Key<'_>) -> Result<()> {
        self.current = None;
        self.reversed.on = false;
        self.heap.clear();
        self.ahead.clear();
        for (number, child) in self.children.iter_mut().enumerate() {
            let is_ahead = child
                .bounds()
                .is_some_and(|(first, _)| first.row() > target.row());
            if is_ahead {
                self.ahead.push(number);
                continue;
            }
            child.seek(target)?;
            if child.cell().is_some() {
                self.heap.push(number);
            }
        }
        self.order_ahead();
        self.order_heap();
        self.catch_up()
    }

    fn seek_forward(&mut self, target: Key<'_>) -> Result<()> {
        if let ([only], Some(_), false) = (&mut self.children[..], self.current, self.reversed.on) {
            return match only.cell() {
                Some(_) => only.seek_forward(target),
                None => Ok(()),
            };
        }
        if self.current.is_some() {
            while !self.ahead.is_empty() && target.row() >= &self.ahead_row[..] {
                self.join_next(target)?;
            }
        }
        while let Some(current) = self.current {
            let cell = self.children[current].cell();
            if cell.is_none_or(|cell| compare_in_store(cell.key, target).is_ge()) {
                break;
            }
            self.children[current].seek_forward(target)?;
            self.settle(current);
        }
        self.catch_up()
    }

    fn seek_row_before(&mut self, row: &[u8]) -> Result<()> {
        self.step_back(Some(row))
    }

    fn seek_last_row(&mut self) -> Result<()> {
        self.step_back(None)
    }
}

/// A reversed step of one child; `bound` is the row to stay before, `None` the end.
fn seek_before(child: &mut impl CellCursor, bound: Option<&[u8]>) -> Result<()> {
    match bound {
        Some(bound) => child.seek_row_before(bound),
        None => child.seek_last_row(),
    }
}

/// The order of cells inside one store, where all families are equal: `cell::compare_keys` without the
/// family.
#[inline]
pub(super) fn compare_in_store(left: Key<'_>, right: Key<'_>) -> Ordering {
    left.row()
        .cmp(right.row())
        .then_with(|| compare_in_row(left, right))
}

/// The order of cells inside one row of a store.
#[inline]
pub(super) fn compare_in_row(left: Key<'_>, right: Key<'_>) -> Ordering {
    left.qualifier()
        .cmp(right.qualifier())
        .then_with(|| right.timestamp().cmp(&left.timestamp()))
        .then_with(|| right.type_code().cmp(&left.type_code()))
}
