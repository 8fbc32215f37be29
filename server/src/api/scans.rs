//! Scans: opening sessions, fetching from them, and scans of one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use basalt_engine::cell::{CellBatch, ROW_MAX_BYTES};
use basalt_engine::engine::Fetched;
use basalt_engine::op::{FetchLimits, Scan};
use basalt_engine::schema::TableName;

use super::{Caller, Failure, Server};
use crate::sessions::{OpenScan, PendingScan};

/// A fetch looks this often whether its client is still there.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Bounds on bytes and time do not end a fetch with fewer results than these. Java's client pages through a reversed scan
/// by asking for the last row again and leaving it out: with one row to a page it would take any page for the end.
const LEAST_RESULTS: usize = 2;

/// Results of a fetch, and whether their columns are to be sorted lists.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) batch: CellBatch,
    pub(super) sort_columns: bool,
}

/// Opens a session. The table is not looked at before the first fetch, as in HBase: that is where a missing table shows.
pub(super) fn open(
    server: &Server,
    caller: &Caller,
    table: TableName,
    scan: Scan,
    sort_columns: bool,
    lease: Duration,
) -> Result<i32, Failure> {
    check(&scan)?;
    let open = new_scan(table, scan, sort_columns);
    Ok(server.sessions().open(caller.id, lease, open)?)
}

/// Refuses what can be seen to be wrong without the table, so that it shows when the scanner is opened.
fn check(scan: &Scan) -> Result<(), Failure> {
    for row in [&scan.start_row, &scan.stop_row] {
        if row.len() > ROW_MAX_BYTES {
            return Err(Failure::illegal_argument(format!(
                "Row length {} is > {ROW_MAX_BYTES}",
                row.len()
            )));
        }
    }
    let filter = scan.spec.filter.as_ref();
    if scan.batch.is_some() && filter.is_some_and(|filter| filter.create().has_filter_row()) {
        return Err(Failure::incompatible_filter());
    }
    Ok(())
}

fn new_scan(table: TableName, scan: Scan, sort_columns: bool) -> OpenScan {
    OpenScan {
        scanner: None,
        pending: PendingScan { table, scan },
        sort_columns,
    }
}

/// The next results of a session; none at the end of the scan.
pub(super) async fn fetch(
    server: &Arc<Server>,
    caller: &mut Caller,
    id: i32,
    count: i32,
) -> Result<Results, Failure> {
    let count = result_count(count)?;
    let owner = caller.id;
    let mut scan = server.sessions().take(id, owner)?;
    caller.scanned = Some(scan.pending.table.clone());
    let mut batch = caller.take_batch();
    let gone = caller.gone();
    server
        .on_pool(move |server| {
            let fetched = next(server, &mut scan, count, &gone, &mut batch);
            let sort_columns = scan.sort_columns;
            // Also after a failure: the id remains valid, as in HBase.
            server.sessions().restore(id, scan);
            fetched?;
            Ok(Results { batch, sort_columns })
        })
        .await
}

/// The first results of a scan that has no session.
pub(super) async fn fetch_once(
    server: &Arc<Server>,
    caller: &mut Caller,
    table: TableName,
    scan: Scan,
    count: i32,
) -> Result<Results, Failure> {
    let count = result_count(count)?;
    check(&scan)?;
    let mut batch = caller.take_batch();
    let gone = caller.gone();
    server
        .on_pool(move |server| {
            let mut scan = new_scan(table, scan, false);
            next(server, &mut scan, count, &gone, &mut batch)?;
            Ok(Results {
                batch,
                sort_columns: false,
            })
        })
        .await
}

/// Closes a session; tells whether there was one.
pub(super) fn close(server: &Server, caller: &Caller, id: i32) -> bool {
    server.sessions().close(id, caller.id)
}

fn result_count(count: i32) -> Result<usize, Failure> {
    usize::try_from(count).map_err(|_| {
        Failure::illegal_argument(format!("the number of rows must not be negative, but is {count}"))
    })
}

/// Fetches up to `count` results, fewer when a bound on bytes or time is reached. An empty answer means the end of the scan
/// to every client, so a fetch that has nothing to show goes on, for as long as its client is there.
fn next(
    server: &Server,
    open: &mut OpenScan,
    count: usize,
    gone: &AtomicBool,
    batch: &mut CellBatch,
) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    let scanner = match open {
        OpenScan {
            scanner: Some(scanner),
            ..
        } => scanner,
        OpenScan { scanner, pending, .. } => {
            // When this fails, the next fetch tries again: a disabled table may be enabled by then.
            let opened = server.engine().scan(&pending.table, pending.scan.clone())?;
            scanner.insert(opened)
        }
    };
    let config = &server.config().scanner;
    let (began, most_time) = (Instant::now(), Duration::from_millis(config.fetch_max_ms));
    while batch.row_count() < count {
        if gone.load(Ordering::Acquire) {
            return Err(Failure::plain_io("the client has closed the connection"));
        }
        let limits = FetchLimits {
            results: count - batch.row_count(),
            bytes: config.fetch_max_bytes.saturating_sub(batch.data_bytes()).max(1),
            time: LOOK_UP,
        };
        if scanner.fetch(&limits, batch)? == Fetched::End {
            break;
        }
        let is_enough = batch.data_bytes() >= config.fetch_max_bytes || began.elapsed() >= most_time;
        if is_enough && batch.row_count() >= LEAST_RESULTS {
            break;
        }
    }
    Ok(())
}
