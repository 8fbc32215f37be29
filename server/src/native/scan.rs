//! ClientService.Scan: open, next, renew and close in one method.
//!
//! A native scan covers one region. The client opens a scan of the next region itself, and stops
//! when `more_results` is false.
//!
//! | state | more_results | more_results_in_region | scanner |
//! | --- | --- | --- | --- |
//! | more to come in this region | true | true | open |
//! | region at its end | true | false | closed |
//! | the client's limit of rows is reached | false | whether a row follows | closed |
//! | the filter wants no more rows, and the response has none | false | false | closed |
//! | a call that only renews or closes | absent | absent | open, closed |
//!
//! A response ends with the first of these limits: `number_of_rows` results, `limit_of_rows` whole
//! rows, the bytes of `max_result_size`, and the time of [`time_limit`]. A client that handles
//! partial results gets a long row in pieces, each with its flag in `partial_flag_per_result`. A
//! client that handles heartbeats, too, gets a response when the time is over, even without results.
//!
//! A call that was refused because the server is busy leaves the scanner as it was, and the client
//! repeats it with the same sequence number. After any other failure the scanner is closed, and the
//! client opens a new one behind the last row that it has. The module `scanners` has the state of
//! scanners, and the sequence numbers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{RegionInfo, RowsSeen};
use basalt_engine::op::Scan;
use basalt_idl::native::Reply as _;
use basalt_idl::native::messages::{Cursor, NameInt64Pair, ScanMetrics, ScanRequest, ScanResponse};

use prost::Message as _;
use prost::encoding::uint64;

use super::deadline::Deadline;
use super::peer::Codec;
use super::reply::Reply;
use super::scanners::ScanState;
use super::state::Connection;
use super::{region, request};
use crate::server::sessions::SessionError;
use crate::service::Call;
use crate::service::{Failure, scans};

/// Most bytes of one response, whatever the client requests: HBase's
/// `hbase.server.scanner.max.result.size`.
const RESULT_BYTES_MAX: u64 = 100 << 20;
/// Read point reported to clients, a constant: each scanner keeps its own read point.
const READ_POINT: u64 = 1;
/// Lower bound of the time limit of a fetch, as in HBase.
const TIME_MIN: Duration = Duration::from_millis(10);

/// One call that fetches.
#[derive(Clone, Copy, Debug)]
struct Fetch<'a> {
    id: u64,
    call: &'a ScanRequest,
    /// Whether the call has opened the scanner, too.
    opens: bool,
    deadline: Deadline,
}

impl Fetch<'_> {
    /// Most results.
    fn results(&self) -> u64 {
        u64::from(rows_wanted(self.call))
    }

    /// Most whole rows; `None`: no limit.
    fn row_limit(&self) -> Option<u64> {
        self.call.limit_of_rows.filter(|rows| *rows > 0).map(u64::from)
    }

    /// Whether the client accepts pieces of rows.
    fn handles_partials(&self) -> bool {
        self.call.client_handles_partials == Some(true)
    }

    /// Whether the client accepts responses without results before the end of the scan. A heartbeat
    /// may end in the middle of a row, so that the client must accept pieces, too.
    fn handles_heartbeats(&self) -> bool {
        self.handles_partials() && self.call.client_handles_heartbeats == Some(true)
    }
}

/// Results that a call wants. Without a number it is one, or none for a call that closes.
fn rows_wanted(call: &ScanRequest) -> u32 {
    let closes = call.close_scanner == Some(true);
    call.number_of_rows.unwrap_or(u32::from(!closes))
}

/// Whether a Scan opens or fetches; others renew or close a scanner.
pub(super) fn reads(call: &ScanRequest) -> bool {
    call.scanner_id.is_none() || (call.renew != Some(true) && rows_wanted(call) > 0)
}

/// Answers a Scan.
pub(super) async fn call(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    call: ScanRequest,
    deadline: Deadline,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let Some(id) = call.scanner_id else {
        return open(connection, running, call, deadline, reply).await;
    };
    let answer = ScanResponse {
        scanner_id: Some(id),
        ..ScanResponse::default()
    };
    let renews = call.renew == Some(true);
    if !renews && call.close_scanner == Some(true) && rows_wanted(&call) == 0 {
        close(connection, id);
        reply.message(&answer);
        return Ok(());
    }
    if connection.scanners.lock().check_ended(id, call.next_call_seq)? {
        reply.message(&answer);
        return Ok(());
    }
    if renews {
        renew(connection, id)?;
        connection.scanners.lock().check_next(id, call.next_call_seq)?;
        reply.message(&answer);
        return Ok(());
    }
    connection.scanners.lock().check_next(id, call.next_call_seq)?;
    let fetch = Fetch {
        id,
        call: &call,
        opens: false,
        deadline,
    };
    run(connection, running, fetch, answer, reply).await
}

async fn open(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    call: ScanRequest,
    deadline: Deadline,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let wanted = call
        .scan
        .as_ref()
        .ok_or_else(|| Failure::do_not_retry("a scan needs a scanner id or a description of the scan"))?;
    let specifier = call
        .region
        .as_ref()
        .ok_or_else(|| Failure::do_not_retry("a scan needs a region"))?;
    let region = region::serving(connection, specifier, None)?;
    let filter = request::filter(
        &connection.server,
        running.caller(),
        &region.table,
        wanted.filter.as_ref(),
    )
    .await?;
    let mut scan = request::scan(wanted, filter)?;
    confine(&mut scan, &region);
    let lease = lease(connection);
    let id = scans::open(
        &connection.server,
        running,
        region.table.clone(),
        scan,
        false,
        lease,
    )?;
    let id = u64::from(id.unsigned_abs());
    let max = wanted.max_result_size.filter(|bytes| *bytes > 0);
    let state = ScanState {
        next_call: 0,
        bytes: max.unwrap_or(RESULT_BYTES_MAX).min(RESULT_BYTES_MAX),
        needs_cursor: wanted.need_cursor_result == Some(true),
    };
    remember(connection, id, state);
    let answer = ScanResponse {
        scanner_id: Some(id),
        ttl: Some(u32::try_from(lease.as_millis()).unwrap_or(u32::MAX)),
        mvcc_read_point: Some(READ_POINT),
        ..ScanResponse::default()
    };
    let fetch = Fetch {
        id,
        call: &call,
        opens: true,
        deadline,
    };
    run(connection, running, fetch, answer, reply).await
}

/// Keeps the state of a new scanner.
fn remember(connection: &Connection, id: u64, state: ScanState) {
    let sessions = connection.server.sessions();
    let max = connection.server.config().scanner.max_sessions_per_connection;
    let alive = |id| session_id(id).is_ok_and(|id| sessions.contains(id));
    connection.scanners.lock().insert(id, state, max, alive);
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

pub(super) fn session_id(id: u64) -> Result<i32, Failure> {
    i32::try_from(id).map_err(|_| Failure::unknown_scanner(id))
}

/// Closes a scanner of this connection.
fn close(connection: &Connection, id: u64) {
    connection.scanners.lock().end(id);
    close_session(connection, id);
}

/// Closes a scanner that has failed.
pub(super) fn discard(connection: &Connection, id: u64) {
    connection.scanners.lock().discard(id);
    close_session(connection, id);
}

fn close_session(connection: &Connection, id: u64) {
    if let Ok(id) = session_id(id) {
        scans::close(connection.server.sessions(), &connection.sender.caller, id);
    }
}

fn renew(connection: &Connection, id: u64) -> Result<(), Failure> {
    let sessions = connection.server.sessions();
    sessions
        .renew(session_id(id)?, connection.owner())
        .map_err(|error| match error {
            SessionError::Unknown => Failure::unknown_scanner(id),
            error => error.into(),
        })
}

/// Fetches, if the call wants results, and closes the scanner if it ends with this call.
async fn run(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    fetch: Fetch<'_>,
    answer: ScanResponse,
    reply: &mut Reply,
) -> Result<(), Failure> {
    if fetch.results() == 0 {
        if fetch.call.close_scanner == Some(true) {
            close(connection, fetch.id);
        }
        reply.message(&ScanResponse {
            more_results: Some(true),
            more_results_in_region: Some(true),
            ..answer
        });
        return Ok(());
    }
    let fetched = fetch_and_answer(connection, running, fetch, answer, reply).await;
    fetched.map_err(|failure| failed(connection, fetch, failure))
}

async fn fetch_and_answer(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    fetch: Fetch<'_>,
    answer: ScanResponse,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let state = connection
        .scanners
        .lock()
        .get(fetch.id)
        .ok_or_else(|| Failure::unknown_scanner(fetch.id))?;
    let id = session_id(fetch.id)?;
    let part = part(connection, fetch, state);
    let fetched = scans::fetch_part(&connection.server, running, id, part).await;
    reply.scanned = running.description.table_name().cloned();
    let (mut batch, end) = fetched?;
    let mut answer = ScanResponse {
        stale: Some(false),
        ..answer
    };
    put_state(&mut answer, fetch, state, &batch, end);
    let mut block = connection.cell_block(connection.peer.codec);
    if connection.peer.codec == Codec::Inline {
        answer.results = batch.rows().map(|row| block.result(&row)).collect();
    }
    let message = encoded(&answer, &batch, connection.peer.codec);
    if connection.peer.codec != Codec::Inline {
        block.put_all(&mut batch);
    }
    if let Err(failure) = block.reserve(&mut batch).await {
        // The scan is behind these results.
        discard(connection, fetch.id);
        return Err(failure);
    }
    let goes_on = answer.more_results == Some(true) && answer.more_results_in_region == Some(true);
    if !goes_on || fetch.call.close_scanner == Some(true) {
        close(connection, fetch.id);
    }
    reply.with_encoded(message, block);
    Ok(())
}

/// The response, with the numbers of each result of the batch: its cells, if they are in the cell block, and
/// whether it is a part of a row. Encoded here, because they are most of the message.
fn encoded(answer: &ScanResponse, batch: &CellBatch, codec: Codec) -> Vec<u8> {
    const CELLS_PER_RESULT: u32 = 1;
    const PARTIAL_FLAG_PER_RESULT: u32 = 7;
    let mut out = answer.encode_to_vec();
    out.reserve(4 * batch.rows().len());
    let mut put = |tag: u32, number: usize| match u8::try_from(number) {
        Ok(number @ 0..0x80) => out.extend_from_slice(&[(tag << 3) as u8, number]),
        _ => uint64::encode(tag, &(number as u64), &mut out),
    };
    if codec != Codec::Inline {
        batch.rows().for_each(|row| put(CELLS_PER_RESULT, row.len()));
    }
    for row in batch.rows() {
        put(PARTIAL_FLAG_PER_RESULT, usize::from(row.partial));
    }
    out
}

/// The limits of a fetch.
fn part(connection: &Connection, fetch: Fetch<'_>, state: ScanState) -> scans::Part {
    let has_heartbeats = fetch.handles_heartbeats();
    let lease = lease(connection);
    scans::Part {
        results: usize::try_from(fetch.results()).unwrap_or(usize::MAX),
        rows: fetch.row_limit().unwrap_or(u64::MAX),
        bytes: usize::try_from(state.bytes).unwrap_or(usize::MAX),
        cuts_rows: fetch.handles_partials(),
        may_be_empty: has_heartbeats,
        time: has_heartbeats.then(|| time_limit(lease, fetch.deadline.left(Instant::now()))),
    }
}

/// Puts into the response whether and how the scan goes on.
fn put_state(
    answer: &mut ScanResponse,
    fetch: Fetch<'_>,
    state: ScanState,
    batch: &CellBatch,
    end: scans::FetchEnd,
) {
    // The client's limit counts whole rows; a row may come in several results.
    let whole = batch.rows().filter(|row| !row.partial).count() as u64;
    let is_limit_reached = fetch.row_limit().is_some_and(|limit| whole >= limit);
    let is_filtered_out = end.is_of_scan && end.is_by_filter && batch.is_empty();
    let more_in_region = end.is_before_end || !end.is_of_scan;
    answer.more_results = Some(!is_limit_reached && !is_filtered_out);
    answer.more_results_in_region = Some(more_in_region);
    if fetch.handles_heartbeats() && !is_limit_reached && more_in_region && (end.is_late || batch.is_empty())
    {
        answer.heartbeat_message = Some(true);
        let row = end.row.filter(|_| state.needs_cursor);
        answer.cursor = row.map(|row| Cursor {
            row: Some(row.into()),
        });
    }
    if fetch.call.track_scan_metrics == Some(true) {
        answer.scan_metrics = Some(metrics(end.seen));
    }
}

/// The failure for the client, after which the scanner is as the module comment says.
fn failed(connection: &Connection, fetch: Fetch<'_>, failure: Failure) -> Failure {
    let sessions = connection.server.sessions();
    let can_go_on = session_id(fetch.id).is_ok_and(|id| sessions.can_go_on(id, connection.owner()));
    if !fetch.opens && can_go_on && failure.leaves_scanner() {
        if fetch.call.next_call_seq.is_some() {
            connection.scanners.lock().repeat_call(fetch.id);
        }
        return failure;
    }
    discard(connection, fetch.id);
    if failure.is_unknown_scanner() {
        return Failure::unknown_scanner(fetch.id);
    }
    if fetch.opens || !failure.can_retry() || failure.is_not_serving() {
        return failure;
    }
    if connection.peer.resets_scanners {
        Failure::scanner_reset(&failure)
    } else {
        Failure::unknown_scanner(fetch.id)
    }
}

fn lease(connection: &Connection) -> Duration {
    Duration::from_millis(connection.server.config().scanner.lease_ms)
}

/// Time limit of a fetch: half of the scanner's lease or of the time that the client still waits,
/// whichever is less.
fn time_limit(lease: Duration, left: Option<Duration>) -> Duration {
    (left.map_or(lease, |left| left.min(lease)) / 2).max(TIME_MIN)
}

fn metrics(seen: RowsSeen) -> ScanMetrics {
    let pair = |name: &str, value: u64| NameInt64Pair {
        name: Some(name.to_owned()),
        value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
    };
    ScanMetrics {
        metrics: vec![
            pair("ROWS_SCANNED", seen.looked_at),
            pair("ROWS_FILTERED", seen.passed_over),
        ],
    }
}

#[cfg(test)]
mod tests {
    use basalt_engine::cell::{Cell, CellType, KeyBuf};
    use basalt_engine::id::SeqId;

    use super::*;

    #[test]
    fn a_fetch_ends_well_before_its_client_gives_up() {
        let seconds = Duration::from_secs;
        let lease = seconds(60);
        assert_eq!(time_limit(lease, None), seconds(30));
        assert_eq!(time_limit(lease, Some(seconds(10))), seconds(5));
        assert_eq!(time_limit(lease, Some(seconds(100))), seconds(30));
        assert_eq!(time_limit(lease, Some(Duration::ZERO)), TIME_MIN);
    }

    /// Numbers of one and of more bytes, and the two codecs.
    #[test]
    fn an_encoded_response_has_the_numbers_of_its_results() {
        let mut batch = CellBatch::new();
        for cells in [1, 127, 128, 300] {
            for number in 0..cells {
                let key = KeyBuf::new(
                    b"row",
                    b"f",
                    &[number as u8, (number >> 8) as u8],
                    1,
                    CellType::Put,
                );
                batch.push(Cell {
                    key: key.as_key(),
                    value: b"",
                    tags: b"",
                    seq: SeqId::ZERO,
                });
            }
            batch.end_row(cells == 128);
        }
        let answer = ScanResponse {
            scanner_id: Some(7),
            more_results: Some(false),
            ..ScanResponse::default()
        };
        let mut expected = ScanResponse {
            partial_flag_per_result: vec![false, false, true, false],
            ..answer.clone()
        };
        let decoded = |codec| ScanResponse::decode(&encoded(&answer, &batch, codec)[..]).unwrap();
        assert_eq!(decoded(Codec::Inline), expected);
        expected.cells_per_result = vec![1, 127, 128, 300];
        assert_eq!(decoded(Codec::KeyValue), expected);
    }

    #[test]
    fn a_call_without_a_number_of_rows_wants_one_or_closes() {
        let call = |number_of_rows, close| ScanRequest {
            number_of_rows,
            close_scanner: close,
            ..ScanRequest::default()
        };
        assert_eq!(rows_wanted(&call(None, None)), 1);
        assert_eq!(rows_wanted(&call(None, Some(true))), 0);
        assert_eq!(rows_wanted(&call(Some(7), Some(true))), 7);
        assert_eq!(rows_wanted(&call(Some(0), None)), 0);
    }
}
