//! Reading a region row by row: the families' scanners side by side, and the row-level half of a filter's life.
//!
//! For each row, in HBase's order:
//!
//! 1. The next row is the first one that any family's scanner stands at. Past the stop row, or when the filter says that
//!    nothing more can match: the end.
//! 2. `filter_row_key`: when it leaves the row out, the row is passed over without a look at its cells.
//! 3. Each family appends its cells. The filter sees every cell there (`store`). A batch limit may cut the row here; the
//!    piece is returned, and steps 1 to 3 go on with the same row, without `reset`.
//! 4. `filter_row_cells` and `filter_row` judge the row as a whole; the latter is not asked about rows without cells.
//! 5. `reset`. A row without cells is no result.
//!
//! A scanner belongs to one moment, one region version at a time and one caller at a time. It takes no lock. Between two rows it
//! can be paused and go on in a later version of the region.

use std::cmp::Ordering;

use crate::cell::{CellBatch, RowOrder};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::op::{Columns, ReadSpec};
use crate::region::{Bound, RegionVersion, ScanRange, family_index};
use crate::schema::{TableDescriptor, escape};
use crate::store::{Moment, ReadRows, RowLimit, RowProgress, StoreScanner};

/// What [`RegionScanner::step`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appended a whole row, or the last piece of one.
    Row,
    /// Appended a piece of a row; more of it follows.
    Piece,
    /// Passed over a row that is no result.
    Nothing,
    /// There are no more rows.
    End,
}

/// Checks what can be said of a read without reading: families, versions, time ranges. HBase's `StoreScanner` refuses columns of
/// a raw read, since it could not tell which of the family's tombstones belong to them.
pub fn check_read(table: &TableDescriptor, spec: &ReadSpec) -> Result<()> {
    if spec.max_versions <= 0 {
        return Err(Error::InvalidArgument("maxVersions must be positive".into()));
    }
    for range in spec.family_time_ranges.values().chain([&spec.time_range]) {
        if range.min < 0 || range.max < 0 {
            return Err(Error::InvalidArgument(format!(
                "Timestamp cannot be negative. minStamp:{}, maxStamp:{}",
                range.min, range.max
            )));
        }
        if range.max < range.min {
            return Err(Error::InvalidArgument("maxStamp is smaller than minStamp".into()));
        }
    }
    for selection in &spec.families {
        family_index(table, &selection.family)?;
        if spec.raw && selection.columns != Columns::All {
            return Err(Error::DoNotRetry(
                "Cannot specify any column for a raw scan".into(),
            ));
        }
    }
    Ok(())
}

/// One family of a scan.
#[derive(Debug)]
struct Part {
    /// Its place among the families asked for.
    place: usize,
    store: StoreScanner,
}

/// Reads a region.
#[derive(Debug)]
pub struct RegionScanner {
    /// The families asked for, in the table's order.
    parts: Vec<Part>,
    /// While it is paused: of each family that was not at its end, its place and the row it stood at.
    paused: Option<Vec<(usize, Vec<u8>)>>,
    order: RowOrder,
    range: ScanRange,
    filter: Option<Box<dyn Filter>>,
    /// Most cells of a result.
    batch: Option<usize>,
    /// Most bytes of a row, when there is no batch limit.
    row_max_bytes: usize,
    /// The row in hand; kept between calls for its memory, and for its content while `in_row`.
    row: Vec<u8>,
    /// The last result was a piece: the row goes on.
    in_row: bool,
}

impl RegionScanner {
    /// A scanner over the rows of `range`.
    /// REQUIRES: [`check_read`] passed for the version's table.
    pub fn open(
        version: &RegionVersion,
        spec: &ReadSpec,
        range: ScanRange,
        batch: Option<usize>,
        moment: Moment,
        row_max_bytes: usize,
    ) -> Result<Self> {
        let rows = ReadRows::Range {
            low: &range.low.row,
            high: &range.high.row,
            reversed: range.reversed,
        };
        let parts = open_parts(version, spec, moment, rows)?;
        let mut filter = spec.filter.as_ref().map(|factory| factory.create());
        if let Some(filter) = &mut filter {
            filter.set_reversed(range.reversed);
            if batch.is_some() && filter.has_filter_row() {
                return Err(Error::DoNotRetry(
                    "Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow"
                        .into(),
                ));
            }
        }
        Ok(Self {
            parts,
            paused: None,
            order: version.row_order(),
            range,
            filter,
            batch,
            row_max_bytes,
            row: Vec::new(),
            in_row: false,
        })
    }

    /// A scanner over one row.
    /// REQUIRES: as [`Self::open`].
    pub fn open_row(
        version: &RegionVersion,
        spec: &ReadSpec,
        row: &[u8],
        moment: Moment,
        row_max_bytes: usize,
    ) -> Result<Self> {
        let parts = open_parts(version, spec, moment, ReadRows::One(row))?;
        let bound = Bound {
            row: row.to_vec(),
            included: true,
        };
        Ok(Self {
            parts,
            paused: None,
            order: version.row_order(),
            range: ScanRange {
                low: bound.clone(),
                high: bound,
                reversed: false,
            },
            filter: spec.filter.as_ref().map(|factory| factory.create()),
            batch: None,
            row_max_bytes,
            row: Vec::new(),
            in_row: false,
        })
    }

    /// Lets go of the version it reads, unless it is in the middle of a row. Keeps its place and its filter: given a version
    /// again ([`Self::resume`]) it goes on as if nothing had been. Says whether it did.
    pub fn pause(&mut self) -> bool {
        if self.in_row {
            return false;
        }
        if self.paused.is_none() {
            let places = self
                .parts
                .drain(..)
                .filter_map(|part| Some((part.place, part.store.row()?.to_vec())));
            self.paused = Some(places.collect());
        }
        true
    }

    /// Goes on in `version`, if it was paused.
    /// REQUIRES: the version has what was visible at `moment` in the one before; `spec` is the scan's.
    pub fn resume(&mut self, version: &RegionVersion, spec: &ReadSpec, moment: Moment) -> Result<()> {
        for (place, row) in self.paused.take().unwrap_or_default() {
            let (low, high) = if self.range.reversed {
                (&self.range.low.row, &row)
            } else {
                (&row, &self.range.high.row)
            };
            let rows = ReadRows::Range {
                low,
                high,
                reversed: self.range.reversed,
            };
            self.parts.push(open_part(version, spec, place, moment, rows)?);
        }
        Ok(())
    }

    /// Works on one row: appends one result to `out` and closes it, or finds that there is none. After an error the scanner
    /// is of no more use.
    pub fn step(&mut self, out: &mut CellBatch) -> Result<Step> {
        let result = self.try_step(out);
        if result.is_err() {
            out.abandon_row();
        }
        result
    }

    fn try_step(&mut self, out: &mut CellBatch) -> Result<Step> {
        if !self.in_row {
            if self.filter_is_done() || !self.find_row() {
                return Ok(Step::End);
            }
            match self.range.position(&self.row, self.order) {
                Ordering::Less => {
                    self.skip_row()?;
                    return Ok(Step::Nothing);
                }
                Ordering::Greater => return Ok(Step::End),
                Ordering::Equal => {}
            }
            if let Some(filter) = &mut self.filter
                && filter.filter_row_key(&self.row)?
            {
                if filter.filter_all_remaining() {
                    return Ok(Step::End);
                }
                self.skip_row()?;
                return Ok(Step::Nothing);
            }
        }
        let bytes_before = out.data_bytes();
        let progress = self.read_cells(out)?;
        if self.batch.is_none()
            && (progress == RowProgress::LimitReached || out.data_bytes() - bytes_before > self.row_max_bytes)
        {
            return Err(Error::RowTooBig(format!(
                "Max row size allowed: {}, but the row is bigger than that. Row: {}",
                self.row_max_bytes,
                escape(&self.row)
            )));
        }
        if progress == RowProgress::LimitReached {
            self.in_row = true;
            out.end_row(true);
            return Ok(Step::Piece);
        }
        self.judge_row(out);
        self.in_row = false;
        if let Some(filter) = &mut self.filter {
            filter.reset();
        }
        if out.open_cells().is_empty() {
            return Ok(Step::Nothing);
        }
        out.end_row(false);
        Ok(Step::Row)
    }

    /// Whether the filter wants no more rows of the region.
    pub fn filter_is_done(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| filter.filter_all_remaining())
    }

    /// Puts the next row into `self.row`; false when there is none.
    fn find_row(&mut self) -> bool {
        let rows = self.parts.iter().filter_map(|part| part.store.row());
        let order = self.order;
        let next = if self.range.reversed {
            rows.max_by(|left, right| order.compare(left, right))
        } else {
            rows.min_by(|left, right| order.compare(left, right))
        };
        let Some(next) = next else {
            return false;
        };
        self.row.clear();
        self.row.extend_from_slice(next);
        true
    }

    /// Passes over the row in hand.
    fn skip_row(&mut self) -> Result<()> {
        for Part { store, .. } in &mut self.parts {
            if store.row() == Some(self.row.as_slice()) {
                store.skip_row(&self.row)?;
            }
        }
        if let Some(filter) = &mut self.filter {
            filter.reset();
        }
        Ok(())
    }

    fn read_cells(&mut self, out: &mut CellBatch) -> Result<RowProgress> {
        let mut limit = match self.batch {
            Some(cells) => RowLimit {
                cells,
                ..RowLimit::NONE
            },
            None => RowLimit {
                bytes: self.row_max_bytes,
                ..RowLimit::NONE
            },
        };
        for Part { store, .. } in &mut self.parts {
            // A filter that is done ends each family's part by itself; the row so far is still judged.
            let filter = self.filter.as_deref_mut().map(|filter| filter as &mut dyn Filter);
            if store.read_row(&self.row, filter, &mut limit, out)? == RowProgress::LimitReached {
                return Ok(RowProgress::LimitReached);
            }
        }
        Ok(RowProgress::Done)
    }

    /// Asks the filter about the row as a whole.
    fn judge_row(&mut self, out: &mut CellBatch) {
        let Some(filter) = &mut self.filter else {
            return;
        };
        if filter.has_filter_row() {
            filter.filter_row_cells(out);
        }
        if !out.open_cells().is_empty() && filter.filter_row() {
            out.abandon_row();
        }
    }
}

/// Scanners of the families that `spec` asks for, in the table's order.
fn open_parts(
    version: &RegionVersion,
    spec: &ReadSpec,
    moment: Moment,
    rows: ReadRows<'_>,
) -> Result<Vec<Part>> {
    let families = match spec.families.len() {
        0 => version.stores.len(),
        asked => asked,
    };
    (0..families)
        .map(|place| open_part(version, spec, place, moment, rows))
        .collect()
}

fn open_part(
    version: &RegionVersion,
    spec: &ReadSpec,
    place: usize,
    moment: Moment,
    rows: ReadRows<'_>,
) -> Result<Part> {
    let selection = spec.families.get(place);
    let index = match selection {
        None => place,
        Some(selection) => family_index(&version.table, &selection.family)?,
    };
    let store = StoreScanner::open(&version.stores[index], selection, spec, moment, rows)?;
    Ok(Part { place, store })
}
