//! The filter for several ranges of rows in one scan.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Filter, ReturnCode};
use crate::cell::{Cell, KeyBuf};
use crate::{Error, Result};

/// A range of rows. An empty start or stop row is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// First row.
    pub start: Vec<u8>,
    /// Whether the first row belongs to it.
    pub start_inclusive: bool,
    /// Last row.
    pub stop: Vec<u8>,
    /// Whether the last row belongs to it.
    pub stop_inclusive: bool,
}

impl RowRange {
    fn is_valid(&self) -> bool {
        self.stop.is_empty()
            || match self.start.cmp(&self.stop) {
                Ordering::Less => true,
                Ordering::Equal => self.stop_inclusive,
                Ordering::Greater => false,
            }
    }

    fn begins_after(&self, row: &[u8]) -> bool {
        match row.cmp(self.start.as_slice()) {
            Ordering::Less => true,
            Ordering::Equal => !self.start_inclusive && !self.start.is_empty(),
            Ordering::Greater => false,
        }
    }

    fn ends_before(&self, row: &[u8]) -> bool {
        !self.stop.is_empty()
            && match row.cmp(self.stop.as_slice()) {
                Ordering::Less => false,
                Ordering::Equal => !self.stop_inclusive,
                Ordering::Greater => true,
            }
    }

    /// Whether the two have a row in common or touch, this one starting first.
    fn reaches(&self, next: &Self) -> bool {
        self.stop.is_empty()
            || match next.start.cmp(&self.stop) {
                Ordering::Less => true,
                Ordering::Equal => next.start_inclusive || self.stop_inclusive,
                Ordering::Greater => false,
            }
    }

    /// Takes in a range that begins inside this one. Returns whether this one now ends later.
    ///
    /// HBase's quirk: in a range that `was_extended` by an earlier one, the last row counts as included as
    /// soon as any range inside it includes its own last row.
    fn absorb(&mut self, other: Self, was_extended: bool) -> bool {
        if self.stop.is_empty() {
            return false;
        }
        if other.stop.is_empty() || other.stop > self.stop {
            self.stop = other.stop;
            self.stop_inclusive = other.stop_inclusive;
            return true;
        }
        self.stop_inclusive |= other.stop_inclusive && (was_extended || other.stop == self.stop);
        false
    }
}

/// Sorts ranges and merges those that overlap. Ranges that hold nothing by their form are an error that lists
/// them.
///
/// The order is that of the first rows alone: of ranges that begin alike, the one given first says whether
/// that row is included, as in HBase.
pub(super) fn sort_and_merge(mut ranges: Vec<RowRange>) -> Result<Vec<RowRange>> {
    use std::fmt::Write;
    if ranges.is_empty() {
        return Err(Error::InvalidArgument("No ranges found.".into()));
    }
    let invalid: Vec<_> = ranges.iter().filter(|range| !range.is_valid()).collect();
    if !invalid.is_empty() {
        let mut text = format!("{} invalid ranges.\n", invalid.len());
        for range in invalid {
            let (start, stop) = (range.start.escape_ascii(), range.stop.escape_ascii());
            writeln!(text, "Invalid range: start row => {start}, stop row => {stop}")
                .expect("writing to a string does not fail");
        }
        return Err(Error::InvalidArgument(text));
    }
    ranges.sort_by(|left, right| left.start.cmp(&right.start));
    let mut merged: Vec<RowRange> = Vec::with_capacity(ranges.len());
    let mut is_extended = false;
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.reaches(&range) => is_extended |= last.absorb(range, is_extended),
            _ => {
                merged.push(range);
                is_extended = false;
            }
        }
    }
    Ok(merged)
}

/// Rows of the ranges. Between ranges the scan jumps; after the last it ends.
#[derive(Debug)]
pub(super) struct MultiRowRangeFilter {
    /// Sorted, disjoint.
    ranges: Arc<[RowRange]>,
    reversed: bool,
    done: bool,
    code: ReturnCode,
    /// The range to go to, when the code is a hint.
    next: usize,
}

impl MultiRowRangeFilter {
    pub(super) fn new(ranges: Arc<[RowRange]>) -> Self {
        Self {
            ranges,
            reversed: false,
            done: false,
            code: ReturnCode::Include,
            next: 0,
        }
    }

    /// The first range in scan order that is not behind the row.
    fn range_ahead(&self, row: &[u8]) -> Option<usize> {
        if self.reversed {
            self.ranges
                .partition_point(|range| !range.begins_after(row))
                .checked_sub(1)
        } else {
            let index = self.ranges.partition_point(|range| range.ends_before(row));
            (index < self.ranges.len()).then_some(index)
        }
    }
}

impl Filter for MultiRowRangeFilter {
    fn set_reversed(&mut self, reversed: bool) {
        self.reversed = reversed;
    }

    fn filter_all_remaining(&self) -> bool {
        self.done
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        if self.done {
            return Ok(true);
        }
        let Some(index) = self.range_ahead(row) else {
            self.done = true;
            self.code = ReturnCode::NextRow;
            return Ok(false);
        };
        let range = &self.ranges[index];
        self.next = index;
        self.code = if !range.begins_after(row) && !range.ends_before(row) {
            ReturnCode::Include
        } else if row == range.start || row == range.stop {
            // An excluded end of the range: the hint would name this very row.
            ReturnCode::NextRow
        } else {
            ReturnCode::SeekNextUsingHint
        };
        Ok(false)
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Ok(self.code)
    }

    fn gives_hints(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        let range = self.ranges.get(self.next)?;
        let row = if self.reversed { &range.stop } else { &range.start };
        Some(KeyBuf::first_on_row(row, cell.key.family()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> RowRange {
        let (start, stop) = text[1..text.len() - 1].split_once(',').expect("start,stop");
        RowRange {
            start: start.into(),
            start_inclusive: text.starts_with('['),
            stop: stop.into(),
            stop_inclusive: text.ends_with(']'),
        }
    }

    #[test]
    fn ranges_are_sorted_and_merged() {
        let cases = [
            ("[c,d) [a,b)", "[a,b) [c,d)"),
            ("[a,c) [b,d)", "[a,d)"),
            ("[a,b) [b,c)", "[a,c)"),
            ("[a,b) (b,c)", "[a,b) (b,c)"),
            ("[a,b] (b,c)", "[a,c)"),
            ("[a,d) [b,c]", "[a,d)"),
            ("[a,b) (a,b]", "[a,b]"),
            ("(a,b) [a,c)", "(a,c)"),
            ("[a,c) (a,b)", "[a,c)"),
            ("[a,) [b,c)", "[a,)"),
            ("[b,c) [,)", "[,)"),
            ("[a,a]", "[a,a]"),
        ];
        for (given, expected) in cases {
            let list = |text: &str| text.split(' ').map(range).collect::<Vec<_>>();
            assert_eq!(sort_and_merge(list(given)).unwrap(), list(expected), "{given}");
        }
    }

    /// HBase's quirk: `b]` lies inside `[a,d)` and yet includes d, if `[a,d)` is a merged range that ends
    /// later than its first one.
    #[test]
    fn a_range_inside_an_extended_one_includes_its_last_row() {
        let cases = [
            ("[a,b) [a,d) [b,c]", "[a,d]"),
            ("[a,b) [a,d) [b,c)", "[a,d)"),
            ("[a,d) [a,b] [b,c]", "[a,d)"),
            ("[a,b) [a,d) [b,c] [c,f)", "[a,f)"),
            ("[a,b) [a,d) [b,c] (d,f)", "[a,f)"),
            ("[a,b) [a,d) [e,g) [f,f]", "[a,d) [e,g)"),
        ];
        for (given, expected) in cases {
            let list = |text: &str| text.split(' ').map(range).collect::<Vec<_>>();
            assert_eq!(sort_and_merge(list(given)).unwrap(), list(expected), "{given}");
        }
    }

    #[test]
    fn invalid_ranges_are_listed() {
        let text = sort_and_merge(vec![range("[b,a)"), range("[c,d)"), range("[x,x)")])
            .unwrap_err()
            .to_string();
        assert!(text.contains("2 invalid ranges"), "{text}");
        assert!(text.contains("start row => b, stop row => a"), "{text}");
        assert_eq!(
            sort_and_merge(vec![]).unwrap_err().to_string(),
            "No ranges found."
        );
    }
}
