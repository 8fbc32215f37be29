//! A scan over the regions of a table.
//!
//! ```text
//! locate the region of `place` ─▶ open and fetch ─▶ fetch ... ─▶ end of region: place = its boundary ─▶ locate ...
//! ```
//!
//! Invariant: `place` is where a new scanner would go on: behind the last whole row that the server sent, or
//! at a region's boundary. Whatever happens to a scanner (a moved, split or merged region, a lost connection,
//! a lease that ran out), the scan opens a new one there, so that no row is lost or doubled. Rows that were
//! cut by the size limit and are not whole yet are read again from their beginning. A scan in pieces
//! ([`Scan::cells_per_piece`]) goes on behind the last cell that it has handed out.
//!
//! A fetch that succeeds starts the count of attempts anew.

use std::sync::Arc;
use std::time::Duration;

use basalt_idl::native::messages::{self, ScanRequest, ScanResponse};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::advice::advice;
use super::cluster::{Inner, look_up_timeout};
use super::connection::Service;
use super::connection::{Call, Connection, Reply};
use super::decode::Block;
use super::encode;
use super::meta::priority;
use super::regions::Region;
use super::retry::Attempts;
use super::stitch::Stitcher;
use crate::error::{Error, Result};
use crate::name::TableName;
use crate::remote::Advice;
use crate::request::{Scan, ScanRange};
use crate::row::Row;

const METHOD: &str = "Scan";

/// HBase's priority of calls that close a scanner.
const CLOSE_PRIORITY: u32 = 200;

/// Most rows that a request can name: servers read the number as a signed one.
const ROWS_MAX: u32 = u32::MAX >> 1;

/// A scanner's lease where the server does not say it: HBase's default.
const LEASE: Duration = Duration::from_mins(1);

/// A scan that the caller drives. [`Table::scan`](super::Table::scan) drives one by itself.
///
/// A scanner that is dropped within a runtime is closed in the background.
#[derive(Debug)]
pub struct Scanner {
    inner: Arc<Inner>,
    table: TableName,
    /// Everything but the range.
    scan: messages::Scan,
    is_reversed: bool,
    place: Place,
    stop: Place,
    rows_per_fetch: u32,
    /// Rows that are still wanted.
    rows_left: Option<u32>,
    open: Option<Open>,
    stitcher: Stitcher,
    /// The server's snapshot, for a scan that goes on inside a row.
    read_point: Option<u64>,
    attempts: Attempts,
    is_done: bool,
}

/// An end of a range. An empty row is the end of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    row: Bytes,
    is_included: bool,
}

/// A scanner on a server.
#[derive(Debug)]
struct Open {
    region: Arc<Region>,
    connection: Connection,
    id: u64,
    /// Number of the next call.
    next_call: u64,
    lease: Duration,
}

impl Scanner {
    pub(super) fn start(inner: &Arc<Inner>, table: TableName, scan: Scan) -> Result<Scanner> {
        let range: ScanRange = scan.into_range()?;
        let pieces = range
            .scan
            .batch_size
            .and_then(|cells| usize::try_from(cells).ok());
        let limit = range.scan.limit.and_then(|rows| u32::try_from(rows).ok());
        Ok(Scanner {
            is_reversed: range.scan.reversed == Some(true),
            place: Place {
                row: range.start,
                is_included: range.include_start,
            },
            stop: Place {
                row: range.stop,
                is_included: range.include_stop,
            },
            rows_per_fetch: u32::try_from(range.rows_per_fetch).unwrap_or(1),
            rows_left: limit.filter(|rows| *rows > 0),
            scan: encode::scan(range.scan, inner.options.fetch_bytes)?,
            open: None,
            stitcher: Stitcher::new(pieces.filter(|cells| *cells > 0)),
            read_point: None,
            attempts: Attempts::begin(&inner.options),
            is_done: false,
            inner: Arc::clone(inner),
            table,
        })
    }

    /// A scan as [`Table::scanner_by_message`](super::Table::scanner_by_message) takes it.
    pub(super) fn of_message(
        inner: &Arc<Inner>,
        table: TableName,
        mut scan: messages::Scan,
        limit: Option<u32>,
    ) -> Scanner {
        let place = Place {
            row: scan.start_row.take().unwrap_or_default(),
            is_included: scan.include_start_row.take().unwrap_or(true),
        };
        let stop = Place {
            row: scan.stop_row.take().unwrap_or_default(),
            is_included: scan.include_stop_row.take().unwrap_or(false),
        };
        scan.max_result_size.get_or_insert(inner.options.fetch_bytes);
        Scanner {
            is_reversed: scan.reversed == Some(true),
            place,
            stop,
            rows_per_fetch: scan.caching.take().unwrap_or(u32::MAX),
            rows_left: limit.filter(|rows| *rows > 0),
            open: None,
            stitcher: Stitcher::new(scan.batch_size.map(|cells| cells as usize)),
            scan,
            read_point: None,
            attempts: Attempts::begin(&inner.options),
            is_done: limit == Some(0),
            inner: Arc::clone(inner),
            table,
        }
    }

    /// Sets how many rows the next fetches ask for, at most.
    pub fn set_rows_per_fetch(&mut self, rows: u32) {
        self.rows_per_fetch = rows;
    }

    /// The rows of the next fetch that has any, `None` at the end. After an error the scan can be continued:
    /// the next call tries again. Not cancel safe: a call that is dropped may lose rows.
    pub async fn next_batch(&mut self) -> Result<Option<Vec<Row>>> {
        while !self.is_done {
            let rows = match self.fetch().await.and_then(|reply| self.take(&reply)) {
                Ok(rows) => rows,
                Err(error) => {
                    self.recover(error).await?;
                    continue;
                }
            };
            self.attempts = Attempts::begin(&self.inner.options);
            if self.is_done {
                self.close().await;
            }
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    /// Renews the scanner's lease. A renewal that fails is no error of the scan: it opens a new scanner when
    /// it goes on.
    pub async fn renew(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.inner.options.call_timeout;
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let request = ScanRequest {
            scanner_id: Some(open.id),
            renew: Some(true),
            number_of_rows: Some(0),
            next_call_seq: Some(open.next_call),
            ..ScanRequest::default()
        };
        let call = about(&open.region, priority(&self.table), deadline);
        let renewed = open.connection.call::<ScanResponse>(&call, &request, b"").await;
        open.next_call += 1;
        if let Err(error) = renewed {
            self.take_open();
            return Err(error);
        }
        Ok(())
    }

    /// A renewal of the scanner's lease that may be sent while the scan waits elsewhere; `None` if no scanner
    /// is open.
    pub fn renewal(&self) -> Option<Renewal> {
        let open = self.open.as_ref()?;
        Some(Renewal {
            region: Arc::clone(&open.region),
            connection: open.connection.clone(),
            id: open.id,
            limit: self.inner.options.call_timeout.min(open.lease),
        })
    }

    /// The time that the scanner lives without a call; `None` if no scanner is open.
    pub fn lease(&self) -> Option<Duration> {
        self.open.as_ref().map(|open| open.lease)
    }

    /// Ends the scan. Without this, the server keeps the scanner until its lease is over.
    pub async fn close(&mut self) {
        self.is_done = true;
        if let Some(open) = self.open.take() {
            open.close(&self.inner).await;
        }
    }

    /// Closes a scanner in the background, where there is a runtime.
    fn close_later(&self, open: Open) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let inner = Arc::clone(&self.inner);
        inner.closing.send_modify(|closing| *closing += 1);
        runtime.spawn(async move {
            open.close(&inner).await;
            inner.closing.send_modify(|closing| *closing -= 1);
        });
    }

    /// Fetches from the open scanner, or opens one.
    async fn fetch(&mut self) -> Result<Reply<ScanResponse>> {
        let deadline = self.attempts.call_deadline();
        let rows = self.rows_per_fetch.min(ROWS_MAX);
        let request = ScanRequest {
            number_of_rows: Some(self.rows_left.map_or(rows, |left| left.min(rows))),
            limit_of_rows: self.rows_left.map(|left| left.min(ROWS_MAX)),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            ..ScanRequest::default()
        };
        let Some(open) = &mut self.open else {
            return self.open(request, deadline).await;
        };
        let request = ScanRequest {
            scanner_id: Some(open.id),
            next_call_seq: Some(open.next_call),
            ..request
        };
        let call = about(&open.region, priority(&self.table), deadline);
        let reply = open.connection.call(&call, &request, b"").await;
        if reply.is_ok() {
            open.next_call += 1;
        }
        reply
    }

    async fn open(&mut self, request: ScanRequest, deadline: Instant) -> Result<Reply<ScanResponse>> {
        let region = self.locate(deadline).await?;
        let request = ScanRequest {
            region: Some(region.specifier()),
            scan: Some(self.scan_from_place()),
            ..request
        };
        let call = Call {
            opens_scanner: true,
            ..about(&region, priority(&self.table), deadline)
        };
        let opened = async {
            let connection = self
                .inner
                .connections
                .get(&region.address, Service::Client, deadline)
                .await?;
            let reply: Reply<ScanResponse> = connection.call(&call, &request, b"").await?;
            Ok::<_, Error>((connection, reply))
        };
        let (connection, reply) = match opened.await {
            Ok(opened) => opened,
            Err(error) => {
                self.inner.after_failure(&region, &error, deadline).await?;
                return Err(error);
            }
        };
        self.read_point = reply.message.mvcc_read_point.or(self.read_point);
        let lease = reply.message.ttl.map(|ms| Duration::from_millis(ms.into()));
        self.open = Some(Open {
            region,
            connection,
            id: reply.message.scanner_id.unwrap_or_default(),
            next_call: 0,
            lease: lease.unwrap_or(LEASE),
        });
        Ok(reply)
    }

    async fn locate(&self, deadline: Instant) -> Result<Arc<Region>> {
        let (began, row) = (Instant::now(), &self.place.row);
        let is_below = self.is_reversed && (row.is_empty() || !self.place.is_included);
        let located = async {
            if is_below {
                self.inner.region_before(&self.table, row, deadline).await
            } else {
                self.inner.region_of(&self.table, row, deadline).await
            }
        };
        timeout_at(deadline, located)
            .await
            .unwrap_or_else(|_| Err(self.inner.away(look_up_timeout(&self.table, began, deadline))))
    }

    fn scan_from_place(&self) -> messages::Scan {
        let row = |row: &Bytes| (!row.is_empty()).then(|| row.clone());
        messages::Scan {
            start_row: row(&self.place.row),
            // An end of the table is neither included nor excluded.
            include_start_row: (!self.place.is_included && !self.place.row.is_empty()).then_some(false),
            stop_row: row(&self.stop.row),
            include_stop_row: (self.stop.is_included && !self.stop.row.is_empty()).then_some(true),
            mvcc_read_point: self.read_point.filter(|_| self.stitcher.is_inside_row()),
            ..self.scan.clone()
        }
    }

    /// The whole rows of a reply. Moves `place` and ends the scanner or the scan as the reply says.
    fn take(&mut self, reply: &Reply<ScanResponse>) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let whole = self.stitch(reply, &mut rows);
        let whole = whole.map_err(|what| reply.malformed(METHOD, what))?;
        if let Some(left) = &mut self.rows_left {
            *left = left.saturating_sub(whole);
        }
        if let Some(row) = self.stitcher.last_whole() {
            self.place = Place {
                row: row.clone(),
                is_included: false,
            };
        }
        if self.rows_left == Some(0) || reply.message.more_results == Some(false) {
            self.is_done = true;
        }
        if ends_region(&reply.message) {
            self.leave_region();
        } else if reply.message.more_results == Some(false) {
            // The server has closed the scanner.
            self.open = None;
        }
        Ok(rows)
    }

    /// Appends the rows of a reply. Returns how many became whole.
    fn stitch(
        &mut self,
        reply: &Reply<ScanResponse>,
        rows: &mut Vec<Row>,
    ) -> std::result::Result<u32, String> {
        let mut block = Block::new(&reply.cells);
        let mut whole = 0;
        for (place, count) in reply.message.cells_per_result.iter().enumerate() {
            if let Some(row) = block.take(*count as usize)? {
                let flags = &reply.message.partial_flag_per_result;
                let partial = flags.get(place).copied().unwrap_or_default();
                whole += self.stitcher.add(Row { partial, ..row }, rows);
            }
        }
        for result in &reply.message.results {
            if let Some(row) = block.row(result.clone())? {
                whole += self.stitcher.add(row, rows);
            }
        }
        if ends_region(&reply.message) || reply.message.more_results == Some(false) {
            whole += self.stitcher.finish(rows);
        }
        Ok(whole)
    }

    /// The region is at its end, and its scanner closed.
    fn leave_region(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        match next_place(&open.region, &self.stop, self.is_reversed) {
            Some(place) => self.place = place,
            None => self.is_done = true,
        }
        self.stitcher.leave_region();
    }

    /// After a failed fetch: waits before the next attempt, or fails.
    async fn recover(&mut self, error: Error) -> Result<()> {
        let mut advice = advice(&error);
        let keeps_scanner = matches!(advice, Advice::WaitOverloaded | Advice::WaitFor(_));
        if self.open.is_some() && error.remote().is_some_and(super::RemoteException::ends_scanner) {
            advice = Advice::Now;
        }
        if !keeps_scanner && let Some(open) = self.take_open() {
            self.inner.note_failure(&open.region, &error);
            // The server may still have it.
            if matches!(error, Error::Timeout { .. } | Error::Io { .. }) {
                self.close_later(open);
            }
        }
        let what = || format!("scan of table {}", self.table);
        let paused = self.attempts.pause_as(&advice, error, what).await;
        if paused.is_err() {
            self.attempts = Attempts::begin(&self.inner.options);
        }
        paused
    }

    /// Drops the scanner; the scan goes on with a new one.
    fn take_open(&mut self) -> Option<Open> {
        if let Some(row) = self.stitcher.interrupt() {
            self.place = Place {
                row,
                is_included: true,
            };
        }
        self.open.take()
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.close_later(open);
        }
    }
}

impl Open {
    /// Closes the scanner, over another connection if its own is lost. A close that fails leaves the scanner
    /// to its lease.
    async fn close(self, inner: &Inner) {
        let request = ScanRequest {
            scanner_id: Some(self.id),
            close_scanner: Some(true),
            number_of_rows: Some(0),
            ..ScanRequest::default()
        };
        let deadline = Instant::now() + inner.options.call_timeout;
        let call = about(&self.region, CLOSE_PRIORITY, deadline);
        let connection = if self.connection.is_usable() {
            self.connection
        } else {
            let address = &self.region.address;
            match inner.connections.get(address, Service::Client, deadline).await {
                Ok(connection) => connection,
                Err(_) => return,
            }
        };
        drop(connection.call::<ScanResponse>(&call, &request, b"").await);
    }
}

/// A renewal of a scanner's lease. It does not count as a call of the scanner, so that it may cross one.
#[derive(Debug)]
pub struct Renewal {
    region: Arc<Region>,
    connection: Connection,
    id: u64,
    limit: Duration,
}

impl Renewal {
    /// Sends it, once. If it fails, the scan opens a new scanner when it goes on.
    pub async fn send(self) -> Result<()> {
        let request = ScanRequest {
            scanner_id: Some(self.id),
            renew: Some(true),
            number_of_rows: Some(0),
            ..ScanRequest::default()
        };
        let deadline = Instant::now() + self.limit;
        let call = about(&self.region, CLOSE_PRIORITY, deadline);
        let renewed = self.connection.call::<ScanResponse>(&call, &request, b"").await;
        renewed.map(drop)
    }
}

fn about(region: &Region, priority: u32, deadline: Instant) -> Call<'_> {
    Call {
        method: METHOD,
        region: Some(&region.name),
        priority,
        deadline,
        opens_scanner: false,
    }
}

fn ends_region(response: &ScanResponse) -> bool {
    match response.more_results_in_region {
        Some(more) => !more,
        // Servers before 1.2 do not say it: an answer without rows is the end.
        None => response.cells_per_result.is_empty() && response.results.is_empty(),
    }
}

/// The place at which a scan goes on after a region; `None` if the range ends with it.
fn next_place(region: &Region, stop: &Place, is_reversed: bool) -> Option<Place> {
    let boundary = if is_reversed {
        &region.start_key
    } else {
        &region.end_key
    };
    let is_past = match (is_reversed, stop.row.is_empty()) {
        (_, true) => false,
        // Rows below the boundary remain.
        (true, false) => *boundary <= stop.row,
        // Rows from the boundary on remain.
        (false, false) => *boundary > stop.row || (*boundary == stop.row && !stop.is_included),
    };
    (!boundary.is_empty() && !is_past).then(|| Place {
        row: boundary.clone(),
        is_included: !is_reversed,
    })
}

/// Fetches until the end, an error, or until the receiver is gone, and closes the scanner. While the receiver
/// is busy, the lease is renewed.
pub(super) async fn run(mut scanner: Scanner, sender: mpsc::Sender<Result<Vec<Row>>>) {
    while let Some(batch) = scanner.next_batch().await.transpose() {
        let is_last = batch.is_err();
        let place = loop {
            let lease = scanner.lease().unwrap_or(LEASE);
            tokio::select! {
                place = sender.reserve() => break place,
                () = sleep(lease / 3) => {
                    // The next fetch replaces a lost scanner.
                    drop(scanner.renew().await);
                }
            }
        };
        match place {
            Ok(place) => place.send(batch),
            Err(_) => break,
        }
        if is_last {
            break;
        }
    }
    scanner.close().await;
}

#[cfg(test)]
mod tests {
    use super::super::tests::region;
    use super::*;

    fn place(row: &'static str, is_included: bool) -> Place {
        Place {
            row: Bytes::from(row),
            is_included,
        }
    }

    #[test]
    fn a_scan_goes_on_until_its_stop_row() {
        let region = region("d", "m");
        let next = |stop: &'static str, included| next_place(&region, &place(stop, included), false);
        assert_eq!(next("", false), Some(place("m", true)));
        assert_eq!(next("z", false), Some(place("m", true)));
        assert_eq!(next("m", true), Some(place("m", true)));
        assert_eq!(next("m", false), None);
        assert_eq!(next("e", true), None);
    }

    #[test]
    fn a_reversed_scan_goes_on_below_its_region() {
        let region = region("d", "m");
        let next = |stop: &'static str, included| next_place(&region, &place(stop, included), true);
        assert_eq!(next("", false), Some(place("d", false)));
        assert_eq!(next("a", false), Some(place("d", false)));
        assert_eq!(next("d", true), None, "the stop row is the region's first");
        assert_eq!(next("e", false), None);
    }

    #[test]
    fn the_ends_of_the_table_end_a_scan() {
        let all = region("", "");
        assert_eq!(next_place(&all, &place("", false), false), None);
        assert_eq!(next_place(&all, &place("", false), true), None);
        assert_eq!(next_place(&all, &place("x", false), false), None);
    }
}
