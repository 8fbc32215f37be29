//! Which rows a scan wants, whatever its direction.

use std::cmp::Ordering;

use crate::cell::RowOrder;
use crate::op::Scan;
use crate::region::RegionInfo;

/// One end of a range of rows. An empty row is no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The row.
    pub row: Vec<u8>,
    /// Whether the row itself is wanted.
    pub included: bool,
}

/// The rows of a scan, the smaller bound first whatever the direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScanRange {
    /// Smallest rows.
    pub low: Bound,
    /// Greatest rows.
    pub high: Bound,
    /// From `high` to `low`.
    pub reversed: bool,
}

impl ScanRange {
    /// The range of a scan.
    pub(crate) fn of_scan(scan: &Scan) -> Self {
        let start = Bound {
            row: scan.start_row.clone(),
            included: scan.include_start,
        };
        let stop = Bound {
            row: scan.stop_row.clone(),
            included: scan.include_stop,
        };
        let (low, high) = if scan.reversed {
            (stop, start)
        } else {
            (start, stop)
        };
        Self {
            low,
            high,
            reversed: scan.reversed,
        }
    }

    /// Whether the region may hold rows of the range.
    pub(crate) fn overlaps(&self, region: &RegionInfo) -> bool {
        let below_end = region.end.is_empty() || self.low.row < region.end;
        let above_start = match self.high.row.as_slice().cmp(&region.start) {
            _ if self.high.row.is_empty() => true,
            Ordering::Greater => true,
            Ordering::Equal => self.high.included,
            Ordering::Less => false,
        };
        below_end && above_start
    }

    /// Where a row lies: `Less` before the range, `Greater` behind it, in the direction of the scan.
    pub(super) fn position(&self, row: &[u8], order: RowOrder) -> Ordering {
        let place = if self.low.excludes(row, Ordering::Less, order) {
            Ordering::Less
        } else if self.high.excludes(row, Ordering::Greater, order) {
            Ordering::Greater
        } else {
            Ordering::Equal
        };
        if self.reversed { place.reverse() } else { place }
    }

    /// Position of a row that comes after one in the range: only the far bound is checked.
    pub(super) fn position_after_begin(&self, row: &[u8], order: RowOrder) -> Ordering {
        let behind = if self.reversed {
            self.low.excludes(row, Ordering::Less, order)
        } else {
            self.high.excludes(row, Ordering::Greater, order)
        };
        if behind {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    }
}

impl Bound {
    /// Whether a row lies on the side `outside` of the bound, or is the bound itself and excluded.
    fn excludes(&self, row: &[u8], outside: Ordering, order: RowOrder) -> bool {
        if self.row.is_empty() {
            return false;
        }
        let place = order.compare(row, &self.row);
        place == outside || (place == Ordering::Equal && !self.included)
    }
}
