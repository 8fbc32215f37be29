//! Get and Scan.

use std::sync::Arc;
use std::time::Duration;

use super::Fetched;
use crate::catalog::{Catalog, SystemTable, View};
use crate::cell::CellBatch;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::op::{Columns, FamilySelection, FetchLimits, Get, ReadSpec, Scan};
use crate::region::{RegionInfo, RegionScanner, ScanRange, Shared, Step, check_read, check_row, read_row};
use crate::schema::TableName;

/// Reads one row.
pub(super) fn get(catalog: &Catalog, table: &TableName, get: &Get<'_>, out: &mut CellBatch) -> Result<()> {
    check_row(get.row)?;
    let (region, version, read_point) = catalog.view_row(table, get.row)?;
    check_read(&version.table, &get.spec)?;
    let shared = catalog.shared();
    read_row(
        &version,
        &get.spec,
        get.row,
        read_point,
        shared.now_ms(),
        shared.options.row_max_bytes,
        out,
    )?;
    region.reads.increment();
    Ok(())
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

/// A running scan: one snapshot of the table, from open to end.
///
/// It captures all regions that overlap its range when it is opened and reads them one after the other; later writes,
/// flushes, compactions, splits and schema changes do not change what it sees. It holds no lock, but keeps memstores and
/// files alive. After an error it is of no more use.
///
/// A filter that wants nothing more ends the region, and the next region is read with a new one. As in HBase, it ends the whole scan
/// if no row of the region was returned since the last request of HBase's client, which fetches [`Scan::caching`] rows at a
/// time (`RSRpcServices.scan`: no more results if the filter is done and the response is empty).
#[derive(Debug)]
pub struct Scanner {
    shared: Arc<Shared>,
    scan: Scan,
    range: ScanRange,
    view: View,
    /// Position in the view of the region that is read next, counted in scan direction.
    next_region: usize,
    /// The region being read.
    current: Option<RegionScanner>,
    /// Results of the region in hand since HBase's client would have sent a request.
    in_request: usize,
    /// Rows that may still be returned.
    rows_left: u64,
    /// The time that decides what has expired, for the whole scan.
    now_ms: i64,
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
        let range = ScanRange::of_scan(&scan);
        let view = catalog.view(table, |region| range.overlaps(region.info()))?;
        check_read(&view.table.descriptor, &scan.spec)?;
        let shared = Arc::clone(catalog.shared());
        Ok(Self {
            rows_left: scan.limit.unwrap_or(u64::MAX),
            in_request: 0,
            now_ms: shared.now_ms(),
            shared,
            scan,
            range,
            view,
            next_region: 0,
            current: None,
            failed: None,
        })
    }

    /// Appends results to `out` until a limit or the end. Each closed row of `out` is one result.
    pub fn fetch(&mut self, limits: &FetchLimits, out: &mut CellBatch) -> Result<Fetched> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.try_fetch(limits, out);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.current = None;
        }
        result
    }

    fn try_fetch(&mut self, limits: &FetchLimits, out: &mut CellBatch) -> Result<Fetched> {
        let clock: Arc<dyn Clock> = Arc::clone(&self.shared.clock);
        let began = clock.mono();
        let (first_row, first_byte) = (out.row_count(), out.data_bytes());
        loop {
            if self.rows_left == 0 {
                self.current = None;
                return Ok(Fetched::End);
            }
            if out.row_count() - first_row >= limits.results || out.data_bytes() - first_byte >= limits.bytes
            {
                return Ok(Fetched::More);
            }
            let Some(scanner) = self.region_scanner()? else {
                return Ok(Fetched::End);
            };
            match scanner.step(out)? {
                Step::Row => {
                    let filter_is_done = scanner.filter_is_done();
                    self.rows_left -= 1;
                    self.region_in_hand().reads.increment();
                    self.count_result();
                    if filter_is_done {
                        self.end_region();
                    }
                }
                Step::Piece => self.count_result(),
                Step::Nothing => self.region_in_hand().reads.increment(),
                Step::End => {
                    if scanner.filter_is_done() && self.in_request == 0 {
                        self.rows_left = 0;
                    }
                    self.end_region();
                }
            }
            // After the work, so that every fetch gets somewhere however short its time is.
            if clock.mono().saturating_sub(began) >= limits.time.max(Duration::from_nanos(1)) {
                return Ok(Fetched::More);
            }
        }
    }

    fn count_result(&mut self) {
        self.in_request += 1;
        if Some(self.in_request) == self.scan.caching {
            self.in_request = 0;
        }
    }

    fn end_region(&mut self) {
        self.current = None;
        self.in_request = 0;
    }

    /// The scanner of the region in hand; opens the next region's when there is none.
    fn region_scanner(&mut self) -> Result<Option<&mut RegionScanner>> {
        if self.current.is_none() {
            if self.next_region == self.view.regions.len() {
                return Ok(None);
            }
            self.next_region += 1;
            let (_, version) = &self.view.regions[self.index_in_hand()];
            self.current = Some(RegionScanner::open(
                version,
                &self.scan.spec,
                self.range.clone(),
                self.scan.batch,
                self.view.read_point,
                self.now_ms,
                self.shared.options.row_max_bytes,
            )?);
        }
        Ok(self.current.as_mut())
    }

    fn index_in_hand(&self) -> usize {
        if self.range.reversed {
            self.view.regions.len() - self.next_region
        } else {
            self.next_region - 1
        }
    }

    fn region_in_hand(&self) -> &crate::region::Region {
        &self.view.regions[self.index_in_hand()].0
    }
}
