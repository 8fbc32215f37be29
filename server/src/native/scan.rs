//! ClientService.Scan: open, next, renew and close in one method.
//!
//! A native scan covers one region. The client opens a scan of the next region itself, and stops
//! when `more_results` is false.
//!
//! | state | more_results | more_results_in_region | scanner |
//! | --- | --- | --- | --- |
//! | more to come in this region | true | true | open |
//! | region at its end | true | false | closed |
//! | the client's limit of rows is reached | false | true | closed |
//! | a call that only renews or closes | absent | absent | open, closed |

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::engine::RegionInfo;
use basalt_engine::op::Scan;
use basalt_idl::native::messages::{NameInt64Pair, ScanMetrics, ScanRequest, ScanResponse};

use super::connection::Connection;
use super::peer::Codec;
use super::reply::Reply;
use super::{region, request};
use crate::api::{Failure, scans};
use crate::sessions::Owner;

/// Most bytes of one response, whatever the client requests: HBase's
/// `hbase.server.scanner.max.result.size`.
const RESULT_BYTES_MAX: u64 = 100 << 20;
/// Read point reported to clients, a constant: each scanner keeps its own read point.
const READ_POINT: u64 = 1;
/// Lower bound of the time limit of a fetch, as in HBase.
const TIME_MIN: Duration = Duration::from_millis(10);

/// State of a scanner between its calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanState {
    /// Sequence number that the next fetch must have.
    next_call: u64,
    /// Rows that the client still wants; `None`: all.
    left: Option<u64>,
    /// Most bytes of one response.
    bytes: u64,
    /// Whether the client accepts responses without results before the end of the scan.
    heartbeats: bool,
}

/// Answers a Scan.
pub(super) async fn call(
    connection: &Arc<Connection>,
    call: ScanRequest,
    arguments_bytes: usize,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let Some(id) = call.scanner_id else {
        return open(connection, call, arguments_bytes, reply).await;
    };
    let wants_rows = call.number_of_rows.is_none_or(|rows| rows > 0);
    if call.renew == Some(true) {
        check_sequence(connection, id, &call)?;
        connection
            .server
            .sessions()
            .renew(session_id(id)?, connection.owner())?;
        reply.message(&ScanResponse {
            scanner_id: Some(id),
            ..ScanResponse::default()
        });
        return Ok(());
    }
    if call.close_scanner == Some(true) && !wants_rows {
        close(connection, id);
        reply.message(&ScanResponse {
            scanner_id: Some(id),
            ..ScanResponse::default()
        });
        return Ok(());
    }
    check_sequence(connection, id, &call)?;
    fetch(
        connection,
        id,
        &call,
        ScanResponse {
            scanner_id: Some(id),
            ..ScanResponse::default()
        },
        reply,
    )
    .await
}

async fn open(
    connection: &Arc<Connection>,
    call: ScanRequest,
    arguments_bytes: usize,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let (Some(specifier), Some(wanted)) = (&call.region, &call.scan) else {
        return Err(Failure::do_not_retry(
            "a scan without a scanner needs a region and what to scan",
        ));
    };
    let region = region::serving(&connection.server, specifier, None)?;
    let mut scan = request::scan(wanted)?;
    confine(&mut scan, &region);
    let lease = Duration::from_millis(connection.server.config().scanner.lease_ms);
    let id = scans::open(
        &connection.server,
        &connection.caller().with_arguments(arguments_bytes),
        region.table,
        scan,
        false,
        lease,
    )?;
    let id = u64::from(id.unsigned_abs());
    let state = ScanState {
        next_call: 0,
        left: call.limit_of_rows.filter(|rows| *rows > 0).map(u64::from),
        bytes: wanted
            .max_result_size
            .unwrap_or(RESULT_BYTES_MAX)
            .clamp(1, RESULT_BYTES_MAX),
        heartbeats: call.client_handles_heartbeats == Some(true),
    };
    connection.scanners.lock().insert(id, state);
    let answer = ScanResponse {
        scanner_id: Some(id),
        ttl: Some(u32::try_from(lease.as_millis()).unwrap_or(u32::MAX)),
        mvcc_read_point: Some(READ_POINT),
        ..ScanResponse::default()
    };
    if call.number_of_rows == Some(0) {
        reply.message(&ScanResponse {
            more_results: Some(true),
            more_results_in_region: Some(true),
            ..answer
        });
        return Ok(());
    }
    fetch(connection, id, &call, answer, reply).await
}

/// Confines a scan of the table to a region.
pub(super) fn confine(scan: &mut Scan, region: &RegionInfo) {
    let (start, end) = (&region.start, &region.end);
    let is_meta = region.table.is_meta();
    if is_meta {
        return;
    }
    if scan.reversed {
        if !end.is_empty() && (scan.start_row.is_empty() || scan.start_row >= *end) {
            scan.start_row.clone_from(end);
            scan.include_start = false;
        }
        if scan.stop_row < *start {
            scan.stop_row.clone_from(start);
            scan.include_stop = true;
        }
    } else {
        if scan.start_row < *start {
            scan.start_row.clone_from(start);
            scan.include_start = true;
        }
        if !end.is_empty() && (scan.stop_row.is_empty() || scan.stop_row >= *end) {
            scan.stop_row.clone_from(end);
            scan.include_stop = false;
        }
    }
}

fn session_id(id: u64) -> Result<i32, Failure> {
    i32::try_from(id).map_err(|_| crate::sessions::SessionError::Unknown.into())
}

/// Rejects a fetch whose sequence number is not the next one: the client has missed a response.
fn check_sequence(connection: &Connection, id: u64, call: &ScanRequest) -> Result<(), Failure> {
    let mut scanners = connection.scanners.lock();
    let Some(state) = scanners.get_mut(&id) else {
        return Err(Failure::unknown_scanner(id));
    };
    let Some(number) = call.next_call_seq else {
        return Ok(());
    };
    if number != state.next_call {
        return Err(Failure::out_of_order(state.next_call, number));
    }
    if call.renew != Some(true) {
        state.next_call += 1;
    }
    Ok(())
}

fn close(connection: &Connection, id: u64) {
    connection.scanners.lock().remove(&id);
    if let Ok(id) = session_id(id) {
        scans::close(&connection.server, &connection.caller(), id);
    }
}

async fn fetch(
    connection: &Arc<Connection>,
    id: u64,
    call: &ScanRequest,
    answer: ScanResponse,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let state = connection
        .scanners
        .lock()
        .get(&id)
        .copied()
        .ok_or_else(|| Failure::unknown_scanner(id))?;
    let wanted = u64::from(call.number_of_rows.unwrap_or(u32::MAX));
    let results = state.left.map_or(wanted, |left| left.min(wanted));
    let part = scans::Part {
        results: usize::try_from(results).unwrap_or(usize::MAX),
        bytes: usize::try_from(state.bytes).unwrap_or(usize::MAX),
        may_be_empty: state.heartbeats,
        time: state.heartbeats.then(|| time_limit(connection)),
    };
    let mut caller = connection.caller();
    let fetched = scans::fetch_part(&connection.server, &mut caller, session_id(id)?, part).await;
    let (mut batch, is_at_end) = match fetched {
        Ok(fetched) => fetched,
        Err(failure) => {
            close(connection, id);
            return Err(failure);
        }
    };
    let returned = batch.row_count() as u64;
    // The client's limit counts whole rows; a row may come in several results.
    let whole = batch.rows().filter(|row| !row.partial).count() as u64;
    let is_limit_reached = state.left.is_some_and(|left| whole >= left);
    if is_at_end || is_limit_reached || call.close_scanner == Some(true) {
        close(connection, id);
    } else if let Some(state) = connection.scanners.lock().get_mut(&id) {
        state.left = state.left.map(|left| left - whole);
    }
    let is_cut_short = !is_at_end && !is_limit_reached && returned < results;
    let mut block = connection.cell_block(connection.peer.codec);
    let mut answer = ScanResponse {
        more_results: Some(!is_limit_reached),
        more_results_in_region: Some(!is_at_end),
        stale: Some(false),
        heartbeat_message: (state.heartbeats && is_cut_short).then_some(true),
        ..answer
    };
    for row in batch.rows() {
        if connection.peer.codec == Codec::Inline {
            answer.results.push(block.result(&row));
        } else {
            block.put(&row);
            answer.cells_per_result.push(row.len() as u32);
        }
        answer.partial_flag_per_result.push(row.partial);
    }
    if call.track_scan_metrics == Some(true) {
        answer.scan_metrics = Some(metrics(returned));
    }
    if let Err(failure) = block.reserve(&mut batch).await {
        close(connection, id);
        return Err(failure);
    }
    reply.with_cells(&answer, block);
    Ok(())
}

/// Time limit of a fetch: half of the scanner's lease, so that the client renews it in time.
fn time_limit(connection: &Connection) -> Duration {
    (Duration::from_millis(connection.server.config().scanner.lease_ms) / 2).max(TIME_MIN)
}

fn metrics(rows: u64) -> ScanMetrics {
    let pair = |name: &str, value: u64| NameInt64Pair {
        name: Some(name.to_owned()),
        value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
    };
    ScanMetrics {
        metrics: vec![pair("ROWS_SCANNED", rows), pair("ROWS_FILTERED", 0)],
    }
}

impl Connection {
    /// Owner of the scanners that this connection opens.
    fn owner(&self) -> Owner {
        self.caller().owner()
    }
}
