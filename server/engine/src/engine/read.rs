//! Get and Scan.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Fetched;
use crate::catalog::{Catalog, SystemTable};
use crate::cell::CellBatch;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::op::{Columns, FamilySelection, FetchLimits, ReadSpec, ReadTier, Scan};
use crate::region::{
    LongRow, OpenReadView, Region, RegionInfo, RegionScanner, RegionVersion, ScanRange, Shared, Step,
    check_read, check_row, read_row,
};
use crate::schema::TableName;
use crate::seeded;
use crate::store::{Reach, ReadView};

/// Reads one row.
pub(super) fn get(
    catalog: &Catalog,
    table: &TableName,
    row: &[u8],
    spec: &ReadSpec,
    tier: ReadTier,
    out: &mut CellBatch,
) -> Result<()> {
    let (reach, row_max_bytes) = (Reach::of(tier), catalog.shared().options.row_max_bytes);
    read_region(catalog, table, row, spec, |region, version, read_view| {
        read_row(version, spec, row, (reach, read_view), row_max_bytes, out)?;
        region.reads.increment();
        Ok(())
    })
}

/// Checks a read of one row, and captures the region for `read`.
pub(super) fn read_region<T>(
    catalog: &Catalog,
    table: &TableName,
    row: &[u8],
    spec: &ReadSpec,
    read: impl FnOnce(&Region, &RegionVersion, ReadView) -> Result<T>,
) -> Result<T> {
    check_row(row)?;
    let shared = catalog.shared();
    catalog.read_region_of(table, row, |region, version, read_point| {
        check_read(&version.table, spec)?;
        shared.check_gate(region)?;
        region.check_undamaged()?;
        let read_view = ReadView {
            read_point,
            now_ms: shared.coarse_now_ms(),
            ahead: shared.timestamps.ahead(),
        };
        read(region, version, read_view)
    })
}

/// The region that a reversed scan of `hbase:meta` from `key` finds first.
pub(super) fn region_before(catalog: &Catalog, key: &[u8]) -> Result<Option<RegionInfo>> {
    let meta = catalog.system().descriptor(SystemTable::Meta).name.clone();
    let scan = Scan {
        start_row: key.to_vec(),
        reversed: true,
        limit: Some(1),
        spec: ReadSpec {
            families: vec![FamilySelection {
                family: b"info".to_vec(),
                columns: Columns::All,
            }],
            ..ReadSpec::default()
        },
        ..Scan::default()
    };
    let unbounded = FetchLimits {
        results: 1,
        bytes: usize::MAX,
        time: Duration::MAX,
    };
    let mut found = CellBatch::new();
    Scanner::open(catalog, &meta, scan)?.fetch(&unbounded, &mut found)?;
    let Some(row) = found.rows().next() else {
        return Ok(None);
    };
    catalog.region_named(row.key()).map(Some)
}

/// Rows between two reads of the clock, which would be noticeable in a scan of small rows if made
/// for each row.
const STEPS_A_LOOK: usize = 16;
/// Most rows that are copied from a block without a look at the clock.
const ROWS_A_RUN: usize = 256;

/// A region that a scan has not read to its end.
#[derive(Debug)]
struct Ahead {
    region: Arc<Region>,
    /// The version that the scan reads, or will read.
    version: Arc<RegionVersion>,
}

/// Numbers of rows that a scan has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsSeen {
    /// All rows.
    pub looked_at: u64,
    /// Rows without a result: left out by the filter, or without visible cells.
    pub passed_over: u64,
}

/// A running scan: one read view of the table, from open to end.
///
/// On open, the scan captures all regions that overlap its range, and then reads them one after the
/// other. Writes, flushes, compactions, splits and merges that come later do not change its view.
/// It holds no lock.
///
/// Captured memstores and files are kept only while the regions keep them, too. Where a region has
/// since flushed memstores or compacted files, the scan continues in the region's current version
/// ([`Self::release`]), with its original read point and after its last row. So a long scan pins no
/// memory outside the limit of all memstores, with three exceptions: from a flush to the scan's
/// next fetch, in the middle of a row until the row's end, and after a change of the table's
/// descriptor. A region that was split or merged is read to its end in the captured version.
///
/// Invariant: the read point is entered in `Shared::read_points` before anything is captured, and
/// until the scan ends; flushes and compactions keep the cells that are visible there. After an
/// error the scan is unusable, with three exceptions, which fail a fetch before a row or region,
/// where the next fetch begins: [`Error::NotServingRegion`]; [`Error::NotInMemory`] of a scan that
/// reads from memory only, until it may read from disk too ([`Self::read_from_disk`]); and
/// [`Error::CallMemory`] of a scan without filter and batch.
///
/// A filter that needs no more rows ends the region, and the next region is read with a new one. As
/// in HBase, it ends the whole scan if no row of the region was returned since the last request of
/// HBase's client, which fetches [`Scan::caching`] rows at a time (`RSRpcServices.scan`: no more
/// results if the filter is done and the response is empty).
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub struct Scanner {
    shared: Arc<Shared>,
    scan: Scan,
    range: ScanRange,
    /// Reads the current region; `None` until it is begun. Dropped before the version that it
    /// reads: a file loses its name with the last version that has it.
    current: Option<RegionScanner>,
    /// The regions left, in the order of the scan; the first is the current one.
    ahead: VecDeque<Ahead>,
    /// Read point of the scan.
    open: OpenReadView,
    /// `Shared::releases` when the scan last checked for released memstores and files of its regions.
    looked: u64,
    /// The current region has released memstores or files, but the scan is in the middle of a row.
    overdue: bool,
    /// Results of the current region since HBase's client would have sent a request.
    in_request: usize,
    /// Rows read in the current region that are not in its figures yet, which readers share.
    reads: u64,
    /// Those of them that had no result.
    filtered: u64,
    /// Rows since [`Self::take_rows_seen`].
    seen: RowsSeen,
    /// The filter has ended the region that was read last.
    ended_by_filter: bool,
    /// Rows that may still be returned.
    rows_left: u64,
    /// The scan ended at its limit of rows, and was not at its end.
    ended_before_end: bool,
    /// The last fetch has ended with a row that it has cut.
    has_cut_row: bool,
    /// Why it is of no more use.
    failed: Option<Error>,
}

impl Scanner {
    pub(super) fn open(catalog: &Catalog, table: &TableName, scan: Scan) -> Result<Self> {
        for row in [&scan.start_row, &scan.stop_row] {
            if !row.is_empty() {
                check_row(row)?;
            }
        }
        if scan.batch == Some(0) {
            return Err(Error::InvalidArgument("A scan's batch must be at least 1".into()));
        }
        if scan.tier == ReadTier::Memory && !scan.may_read_memory_only() {
            return Err(Error::InvalidArgument(
                "A scan of memory only takes no filter and no batch".into(),
            ));
        }
        let range = ScanRange::of_scan(&scan);
        let shared = Arc::clone(catalog.shared());
        let looked = shared.releases.load(Ordering::Acquire);
        let mut open = shared.read_points.enter(table, || shared.read_view());
        let view = catalog.view(table, |region| range.overlaps(region.info()))?;
        open.advance(view.read_point);
        check_read(&view.table.descriptor, &scan.spec)?;
        let mut ahead: VecDeque<_> = view
            .regions
            .into_iter()
            .map(|(region, version)| Ahead { region, version })
            .collect();
        if range.reversed {
            ahead.make_contiguous().reverse();
        }
        // A filter may be done before its first row, as PageFilter of no rows: without a region
        // there is no scanner to ask.
        let filter = scan.spec.filter.as_ref().filter(|_| ahead.is_empty());
        let ended_by_filter = filter.is_some_and(|filter| filter.create().filter_all_remaining());
        Ok(Self {
            rows_left: scan.limit.unwrap_or(u64::MAX),
            in_request: 0,
            reads: 0,
            filtered: 0,
            seen: RowsSeen::default(),
            ended_by_filter,
            ended_before_end: false,
            has_cut_row: false,
            shared,
            scan,
            range,
            ahead,
            current: None,
            open,
            looked,
            overdue: false,
            failed: None,
        })
    }

    /// Releases flushed memstores and compacted files of its regions, without reading anything: the
    /// next fetch continues in the regions' current versions. Each fetch begins with this; call it
    /// periodically for a scan that is idle for long.
    pub fn release(&mut self) {
        let releases = self.shared.releases.load(Ordering::Acquire);
        if releases == self.looked && !self.overdue {
            return;
        }
        (self.looked, self.overdue) = (releases, false);
        for (index, ahead) in self.ahead.iter_mut().enumerate() {
            if ahead.region.is_current(&ahead.version) {
                continue;
            }
            let version = ahead.region.load_version();
            // Another descriptor may have other families, and keep less of them.
            if !Arc::ptr_eq(&version.table, &ahead.version.table) {
                continue;
            }
            if index == 0 && self.current.as_mut().is_some_and(|current| !current.pause()) {
                self.overdue = true;
                continue;
            }
            ahead.version = version;
        }
    }

    /// Ends the scan: every further fetch fails with this error.
    pub fn fail(&mut self, error: Error) {
        self.failed = Some(error);
        self.finish();
    }

    /// Releases blocks and read-ahead windows; the next fetch seeks its position again. In the
    /// middle of a row they are kept.
    pub fn rest(&mut self) {
        if let Some(current) = &mut self.current {
            current.pause();
        }
    }

    /// Passes over the rows of the current region before `row`, in the direction of the scan, without reading
    /// them.
    pub fn jump_to(&mut self, row: &[u8]) {
        if let Some(current) = &mut self.current {
            current.jump_to(row);
        }
    }

    /// Whether it has failed for good.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Whether it is in the middle of a row, of which a piece was returned.
    fn is_in_row(&self) -> bool {
        self.current.as_ref().is_some_and(RegionScanner::is_in_row)
    }

    /// Whether there are no more results, as far as that shows without reading.
    pub fn is_at_end(&mut self) -> bool {
        let is_last = self.ahead.len() <= 1 && self.failed.is_none();
        is_last
            && self
                .current
                .as_mut()
                .map_or(self.ahead.is_empty(), RegionScanner::is_at_end)
    }

    /// Whether the filter has ended the region that was read last.
    pub fn is_ended_by_filter(&self) -> bool {
        self.ended_by_filter || self.current.as_ref().is_some_and(RegionScanner::filter_is_done)
    }

    /// Whether the limit of rows has ended the scan although more rows follow, as far as known
    /// without reading: the next row may turn out to have no result.
    pub fn is_ended_before_end(&self) -> bool {
        self.ended_before_end
    }

    /// Whether the last fetch has ended with a row that it has cut ([`Self::fetch_in_pieces`]).
    pub fn has_cut_row(&self) -> bool {
        self.has_cut_row
    }

    /// Sets the number of rows that may be returned from now on. A row counts when its last piece
    /// is returned.
    pub fn limit_rows(&mut self, rows: u64) {
        self.rows_left = rows;
    }

    /// The current row of the current region; `None` before the first row.
    pub fn row_in_hand(&self) -> Option<&[u8]> {
        let row = self.current.as_ref()?.row();
        (!row.is_empty()).then_some(row)
    }

    /// The rows since the last call.
    pub fn take_rows_seen(&mut self) -> RowsSeen {
        std::mem::take(&mut self.seen)
    }

    /// The region that the next fetch begins with; `None` at the end of the scan.
    pub fn next_region(&self) -> Option<&RegionInfo> {
        self.ahead.front().map(|ahead| ahead.region.info())
    }

    /// Whether it reads from memory only.
    pub fn is_memory_only(&self) -> bool {
        self.scan.tier == ReadTier::Memory
    }

    /// Allows a scan of memory only ([`ReadTier::Memory`]) to read from disk from now on.
    pub fn read_from_disk(&mut self) {
        if self.is_memory_only() {
            self.scan.tier = ReadTier::All;
            // The open scanner would not read from disk.
            if let Some(current) = &mut self.current {
                current.pause();
            }
        }
    }

    /// Appends results to `out` until a limit or the end. Each closed row of `out` is one result.
    /// Where the gate keeps the next region closed, the fetch fails, with the results so far in
    /// `out`; the next fetch begins with that region. A scan of memory only ends a fetch in the same way
    /// before a row that has to be read from disk.
    pub fn fetch(&mut self, limits: &FetchLimits, out: &mut CellBatch) -> Result<Fetched> {
        self.fetch_in_pieces(limits, None, out)
    }

    /// As [`Self::fetch`], but cuts rows: once `out` has `cut_at` bytes, the current row ends as a
    /// piece, and the fetch with it; the next fetch begins with the rest of the row. Clients take
    /// every result of an answer but the last for a whole row, so nothing may be added to an answer
    /// that ends with a cut row ([`Self::has_cut_row`]). Filters that judge whole rows get whole
    /// rows. A scan of memory only leaves such a row with [`Error::NotInMemory`].
    pub fn fetch_in_pieces(
        &mut self,
        limits: &FetchLimits,
        cut_at: Option<usize>,
        out: &mut CellBatch,
    ) -> Result<Fetched> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.has_cut_row = false;
        let result = self.try_fetch(limits, cut_at, out);
        self.note_reads();
        if let Err(error) = &result
            && !self.goes_on_after(error)
        {
            self.failed = Some(error.clone());
            self.finish();
        }
        result
    }

    /// Whether the next fetch may continue after this error. A region that the gate keeps closed
    /// fails the fetch before it is read, so the scan continues once it is open. A row that is not in memory,
    /// or for which calls have no memory, is read again from its beginning.
    fn goes_on_after(&self, error: &Error) -> bool {
        match error {
            Error::NotServingRegion(_) => true,
            Error::NotInMemory | Error::CallMemory(_) => {
                self.scan.spec.filter.is_none() && self.scan.batch.is_none() && !self.is_in_row()
            }
            _ => false,
        }
    }

    fn try_fetch(
        &mut self,
        limits: &FetchLimits,
        cut_at: Option<usize>,
        out: &mut CellBatch,
    ) -> Result<Fetched> {
        let clock: Arc<dyn Clock> = Arc::clone(&self.shared.clock);
        let began = clock.mono();
        let (first_row, first_byte) = (out.row_count(), out.data_bytes());
        self.release();
        if let Some(ahead) = self.ahead.front() {
            self.shared.check_gate(&ahead.region)?;
        }
        let (mut steps, mut next_look) = (0, 1);
        loop {
            if self.rows_left == 0 {
                self.ended_before_end |= !self.is_at_end();
                self.finish();
                return Ok(Fetched::End);
            }
            let left = FetchLimits {
                results: limits.results.saturating_sub(out.row_count() - first_row),
                bytes: limits.bytes.saturating_sub(out.data_bytes() - first_byte),
                time: limits.time,
            };
            if left.results == 0 || left.bytes == 0 {
                return Ok(Fetched::More);
            }
            let is_late = |clock: &dyn Clock| {
                clock.mono().saturating_sub(began) >= limits.time.max(Duration::from_nanos(1))
            };
            let long_row = self.long_row(cut_at, out);
            let rows_left = usize::try_from(self.rows_left).unwrap_or(usize::MAX);
            let Some(scanner) = self.in_hand()? else {
                return Ok(Fetched::End);
            };
            let run = FetchLimits {
                results: left.results.min(rows_left).min(ROWS_A_RUN),
                ..left
            };
            let rows = scanner.append_plain_rows(&run, long_row, out);
            if rows > 0 {
                self.rows_left -= rows as u64;
                self.reads += rows as u64;
                self.count_results(rows);
                steps += rows;
                if steps >= next_look {
                    next_look = steps + STEPS_A_LOOK;
                    if is_late(&*clock) {
                        return Ok(Fetched::More);
                    }
                }
                continue;
            }
            steps += 1;
            let step = scanner.step_with(out, long_row)?;
            let filter_is_done = scanner.filter_is_done();
            self.reads += u64::from(matches!(step, Step::Row | Step::Nothing));
            self.filtered += u64::from(step == Step::Nothing);
            match step {
                Step::Row => {
                    self.rows_left -= 1;
                    self.count_results(1);
                    if filter_is_done {
                        self.ended_by_filter = true;
                        self.end_region();
                    }
                }
                Step::Piece => self.count_results(1),
                Step::Cut => {
                    self.count_results(1);
                    if !seeded::is_on("answers-go-on-behind-a-cut-row") {
                        self.has_cut_row = true;
                        return Ok(Fetched::More);
                    }
                }
                Step::Nothing | Step::Outside => {}
                Step::End => {
                    if filter_is_done && self.in_request == 0 {
                        self.rows_left = 0;
                    }
                    self.ended_by_filter = filter_is_done;
                    self.end_region();
                }
            }
            if self.overdue && !matches!(step, Step::Piece | Step::Cut) {
                self.release();
            }
            // Checked after the work, so that every fetch makes progress however short its time is.
            // A piece of a row may have taken long.
            if steps >= next_look || step == Step::Piece {
                next_look = steps + STEPS_A_LOOK;
                if is_late(&*clock) {
                    return Ok(Fetched::More);
                }
            }
        }
    }

    /// The treatment of a row that has more bytes than `out` has left.
    fn long_row(&self, cut_at: Option<usize>, out: &CellBatch) -> LongRow {
        let left = |bytes: usize| bytes.saturating_sub(out.data_bytes());
        match cut_at {
            None => LongRow::Whole,
            Some(bytes) if self.is_memory_only() => LongRow::Leave(left(bytes)),
            Some(bytes) => LongRow::Cut(left(bytes)),
        }
    }

    /// Adds the rows that were read to the figure of the current region.
    fn note_reads(&mut self) {
        let (reads, filtered) = (
            std::mem::take(&mut self.reads),
            std::mem::take(&mut self.filtered),
        );
        self.seen.looked_at += reads;
        self.seen.passed_over += filtered;
        let Some(ahead) = self.ahead.front().filter(|_| reads > 0) else {
            return;
        };
        ahead.region.reads.add(reads);
        if filtered > 0 {
            ahead.region.filtered_reads.add(filtered);
        }
    }

    fn count_results(&mut self, results: usize) {
        self.in_request += results;
        if let Some(caching) = self.scan.caching.filter(|caching| *caching > 0) {
            self.in_request %= caching;
        }
    }

    /// Ends the current region.
    fn end_region(&mut self) {
        self.note_reads();
        self.current = None;
        self.ahead.pop_front();
        self.in_request = 0;
    }

    /// The current region with its scanner, which is opened, or continued after a pause.
    fn in_hand(&mut self) -> Result<Option<&mut RegionScanner>> {
        let Some(Ahead { region, version }) = self.ahead.front() else {
            return Ok(None);
        };
        if self.current.is_none() {
            self.shared.check_gate(region)?;
            region.check_undamaged()?;
        }
        let spec = &self.scan.spec;
        let read_view = if seeded::is_on("scan-with-two-read-points") {
            self.shared.read_view()
        } else {
            self.open.read_view()
        };
        let read_view = (Reach::of(self.scan.tier), read_view);
        let scanner = match &mut self.current {
            Some(scanner) => {
                scanner.resume(version, spec, read_view)?;
                scanner
            }
            none => none.insert(RegionScanner::open(
                version,
                spec,
                self.range.clone(),
                self.scan.batch,
                read_view,
                self.shared.options.row_max_bytes,
            )?),
        };
        Ok(Some(scanner))
    }

    /// Nothing will be read any more.
    fn finish(&mut self) {
        self.note_reads();
        self.current = None;
        self.ahead.clear();
    }
}
