//! Scans with a filter of a user's class.
//!
//! 1. The rows that are ready are returned, cut to the scan's batch.
//! 2. When there are none left, rows are read as if there were no filter: 1, then four times as many, to
//!    [`CANDIDATES_MAX`] or [`CANDIDATE_BYTES`]. Few rows are read in vain by a scan of few rows.
//! 3. The host judges them. Those that pass are ready; those beyond the answer stay in the session.
//! 4. Where the filter gives a hint beyond the rows that were read, the engine's scanner jumps there, and the
//!    next batch is of one row again.
//!
//! A scan covers one region, as every native scan does: the host opens one filter for it. A row is returned
//! whole unless the scan has a batch limit. If the process of the host is another one than that which has the
//! filter, the scan fails with a retriable error, and the client opens another scan behind its last row.

use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Fetched, Scanner};
use basalt_engine::op::{FetchLimits, Scan};
use basalt_engine::schema::TableName;
use basalt_engine::{Engine, Error};

use super::{Failure, candidates, failure, judge, user_code};
use crate::server::Server;
use crate::server::sessions::OpenScan;
use crate::server::user_code::{OpenFilter, UserScan};

/// Most rows of a call of the host.
const CANDIDATES_MAX: usize = 1_000;
/// Bytes of rows after which a call takes no further row.
const CANDIDATE_BYTES: usize = 256 << 10;
/// Factor by which a batch has more rows than the one before.
const GROWTH: usize = 4;

/// The state of a scan whose filter is of a user's class; `None` for other scans.
pub(in crate::service) fn new_scan(server: &Server, scan: &Scan) -> Option<Box<UserScan>> {
    let filter = scan.spec.filter.as_ref()?.user_code()?;
    let ready = judge::scratch(server);
    Some(Box::new(UserScan::new(
        filter.clone(),
        scan.batch,
        scan.limit,
        ready,
    )))
}

/// How a turn has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) enum Turn {
    /// The answer has what it may have.
    Full,
    /// The scan is at its end.
    End,
    /// The turn's time is over.
    Unfinished,
}

/// Appends results until `is_full` says so, the scan ends, or the time is over.
/// REQUIRES: the scan's filter is of a user's class.
pub(in crate::service) fn turn(
    server: &Server,
    engine: &Engine,
    open: &mut OpenScan,
    time: Duration,
    out: &mut CellBatch,
    is_full: impl Fn(&CellBatch) -> bool,
) -> Result<Turn, Failure> {
    let OpenScan {
        user: Some(user),
        scanner,
        pending,
        ..
    } = open
    else {
        return Ok(Turn::End);
    };
    let began = Instant::now();
    loop {
        let before = out.row_count();
        let returned = return_ready(user, out, &is_full);
        server.load().heat.record_scan(&pending.table, out, before);
        match returned {
            // The rows that fit into memory are an answer; the next one continues behind them.
            Err(Error::CallMemory(_)) if !out.is_empty() => return Ok(Turn::Full),
            Err(error) => return Err(error.into()),
            Ok(true) => return Ok(Turn::Full),
            Ok(false) if user.rows_left == 0 || user.is_over() => return Ok(Turn::End),
            Ok(false) => {}
        }
        if began.elapsed() >= time {
            return Ok(Turn::Unfinished);
        }
        let scanner = match scanner {
            Some(scanner) => scanner,
            None => scanner.insert(engine.scan(&pending.table, plain(&pending.scan))?),
        };
        judge_more(server, engine, &pending.table, &pending.scan, user, scanner, time)?;
    }
}

/// The scan as the engine runs it.
fn plain(scan: &Scan) -> Scan {
    Scan {
        batch: None,
        limit: None,
        caching: None,
        spec: candidates(&scan.spec),
        ..scan.clone()
    }
}

/// Appends rows that are ready; whether the answer is full.
fn return_ready(
    user: &mut UserScan,
    out: &mut CellBatch,
    is_full: &impl Fn(&CellBatch) -> bool,
) -> Result<bool, Error> {
    while user.has_ready() {
        if user.rows_left == 0 {
            return Ok(false);
        }
        if is_full(out) {
            return Ok(true);
        }
        let row = user.ready.row(user.next_row);
        let most = user.batch.unwrap_or(usize::MAX);
        for cell in row.cells().skip(user.next_cell).take(most) {
            if let Err(error) = out.add(cell) {
                out.abandon_row();
                return Err(error);
            }
        }
        let returned = user.next_cell.saturating_add(most);
        let is_piece = returned < row.len();
        out.end_row(is_piece);
        if is_piece {
            user.next_cell = returned;
        } else {
            (user.next_row, user.next_cell) = (user.next_row + 1, 0);
            user.rows_left -= 1;
        }
    }
    Ok(is_full(out))
}

/// Reads the next rows and has them judged. REQUIRES: no row is ready.
fn judge_more(
    server: &Server,
    engine: &Engine,
    table: &TableName,
    scan: &Scan,
    user: &mut UserScan,
    scanner: &mut Scanner,
    time: Duration,
) -> Result<(), Failure> {
    let class = Arc::clone(&user.filter.class);
    let mut seat = judge::enter(server, &class, table)?;
    if user
        .open
        .as_ref()
        .is_some_and(|open| open.incarnation != seat.incarnation())
    {
        scanner.fail(Error::ShuttingDown);
        return Err(failure(&basalt_host::Error::Restarted, &class, table));
    }
    if let Some(row) = user.jump.take() {
        scanner.jump_to(&row);
    }
    let mut rows = judge::scratch(server);
    let limits = FetchLimits {
        results: user.candidates,
        bytes: CANDIDATE_BYTES,
        time,
    };
    user.is_exhausted = scanner.fetch(&limits, &mut rows)? == Fetched::End;
    // The host is asked once without rows, too: a class that cannot be loaded is an error whatever the table
    // has.
    if rows.is_empty() && user.open.is_some() {
        return Ok(());
    }
    let opening = match &user.open {
        Some(_) => None,
        None => Some(judge::opening(
            engine,
            table,
            &scan.spec,
            &user.filter,
            scan.reversed,
        )?),
    };
    let host = user_code(server, &class)?.host();
    let handle = user
        .open
        .as_ref()
        .map_or_else(|| host.new_handle(), |open| open.handle);
    let handling = judge::Handling {
        handle,
        opening: opening.as_ref(),
        closes: user.is_exhausted,
    };
    // From here on the host may have it: it is closed there with the scan.
    user.open.get_or_insert_with(|| OpenFilter {
        host: Arc::clone(host),
        incarnation: seat.incarnation(),
        handle,
    });
    user.ready.clear();
    (user.next_row, user.next_cell) = (0, 0);
    let asked = judge::Asked {
        table,
        filter: &user.filter,
        rows: &rows,
    };
    let outcome = match judge::ask(server, &mut seat, &asked, &handling, &mut user.ready) {
        Ok(outcome) => outcome,
        Err(failure) => {
            // The scanner is behind rows that were not judged.
            user.ready.clear();
            scanner.fail(Error::ShuttingDown);
            return Err(failure);
        }
    };
    if outcome.judges_rows && user.batch.is_some() {
        return Err(Failure::incompatible_filter());
    }
    user.passed_over += (rows.row_count() - outcome.results) as u64;
    user.is_ended_by_filter = outcome.is_ended;
    user.candidates = match outcome.jump {
        Some(_) => 1,
        None => (user.candidates * GROWTH).min(CANDIDATES_MAX),
    };
    user.jump = outcome.jump;
    Ok(())
}
