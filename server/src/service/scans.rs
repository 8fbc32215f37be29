//! Scans: opening sessions, fetching from them, and scans of one call.
//!
//! A fetch begins on the network thread, with cached cells. Reads from disk, and long fetches, are
//! done in turns on the blocking pool. Between two turns a fetch goes to the back of the pool's
//! queue, so that scans which find nothing for long, however many there are, hold none of its
//! threads. A scan that has read from disk does so again: its later fetches begin on the pool. So
//! do all fetches of scans with a filter or a batch, which cannot leave a row and begin it again.

use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_client::native::Cluster;
use basalt_engine::cell::{CellBatch, OnShortage, ROW_MAX_BYTES, RowView};
use basalt_engine::engine::{Fetched, RowsSeen, Scanner};
use basalt_engine::op::{FetchLimits, ReadTier, Scan};
use basalt_engine::schema::TableName;

use basalt_engine::{Engine, Error};
use basalt_security::rights::ColumnFilter;

use super::Failure;
use super::call::Call;
use super::charge::Charged;
use super::describe::Description;
use super::pipeline::{self, Attempt, Judged, Request, View};
use super::remote::data;
use super::user_code::{self, Turn};
use crate::limits::admission::{Class, ScannerMemory};
use crate::security::{self, Action, Caller, Columns, Owner, Target, Visit};
use crate::server::Server;
use crate::server::sessions::{OpenScan, PendingScan, SessionError, Sessions};

/// One turn of a fetch on the pool. Before each it checks that its client is still connected.
const TURN: Duration = Duration::from_millis(50);
/// A fetch holds the network thread for this long,
const INLINE_TURN: Duration = Duration::from_micros(250);
/// and for this many bytes.
const INLINE_BYTES: usize = 256 << 10;
/// Bounds on bytes and time do not end a fetch with fewer results than these. Java's client pages
/// through a reversed scan by requesting the last row again and skipping it: with one row in a page
/// it would take any page for the end.
const LEAST_RESULTS: usize = 2;
/// Once a turn on the pool has added this many bytes, it begins no further row.
const TURN_BYTES: usize = 16 << 20;
/// Least number of results of a fetch that makes room before it begins,
const MANY_RESULTS: usize = 64;
/// for this number of cells, and bytes of their keys and values.
const FIRST_CELLS: usize = 128;
const FIRST_BYTES: usize = 14 << 10;
/// One fetch takes at most this part of the free memory for calls,
const FETCH_SHARE: usize = 8;
/// but may always take this.
const FETCH_BYTES_LEAST: usize = 64 << 10;

/// The bound at which a fetch may return fewer results than requested, before the end of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortest {
    /// The bounds of a page, `scanner.fetch_max_bytes` and `scanner.fetch_max_ms`: the client
    /// fetches until an answer is empty.
    Page,
    /// Only `server.max_response_bytes`: in HBase a short list means the end of the scan, and
    /// clients of this call rely on it.
    Response,
}

/// A lease that does not end before `scanner.max_age_ms`.
const UNTIL_CLOSED: Duration = Duration::from_hours(10 * 365 * 24);

/// Copies of a scan's arguments that it keeps: as received and as the engine's types.
const SCAN_COPIES: usize = 2;
/// Arguments and filter of a scan up to this size are not reserved: most are smaller.
const SCAN_FREE_BYTES: usize = 16 << 10;

/// Results of a fetch, and whether their columns are to be sorted lists.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) batch: CellBatch,
    pub(crate) sort_columns: bool,
}

/// Opens a session. As in HBase the table is checked by the first fetch, which reports a missing
/// table.
pub(crate) fn open(
    server: &Server,
    call: &mut Call<'_>,
    table: TableName,
    scan: Scan,
    sort_columns: bool,
    lease: Duration,
) -> Result<i32, Failure> {
    let mut open = Opening(new_scan(server, table, scan, sort_columns));
    if let Some(granted) = pipeline::enter(server, call, &open)?
        && !security::narrow(&mut Arc::make_mut(&mut open.0.pending.scan).spec, &granted)
    {
        return Err(pipeline::nothing_left(call.caller(), &open));
    }
    check(&open.0.pending.scan)?;
    open.0.memory = reserve_scan(server, call, &open.0)?;
    let owner = call.caller().owner();
    // A gateway keeps the scanners of a connection as long as it: it renews their leases at the cluster.
    let lease = match owner {
        Owner::Connection(_) if server.gateway().is_some() => UNTIL_CLOSED,
        _ => lease,
    };
    Ok(server.sessions().open(owner, lease, open.0)?)
}

/// A scan that is being opened: it is judged before its first fetch, and runs with it.
struct Opening(OpenScan);

impl Columns for Opening {
    fn visit(&self, visit: &mut Visit<'_>) {
        security::visit_spec(&self.0.pending.scan.spec, visit);
    }
}

impl Judged for Opening {
    fn action(&self) -> Action {
        Action::Read
    }

    fn target(&self) -> Target<'_> {
        Target::Cells {
            table: &self.0.pending.table,
            columns: self,
        }
    }

    fn class(&self) -> Class {
        Class::of_read(&self.0.pending.table)
    }

    fn describe(&self, description: &mut Description) {
        let PendingScan { table, scan } = &self.0.pending;
        description.table(table);
        description.scan(scan);
    }
}

/// Refuses errors that need no table to be detected, so that they show when the scanner is opened.
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

fn new_scan(server: &Server, table: TableName, mut scan: Scan, sort_columns: bool) -> OpenScan {
    if scan.may_read_memory_only() {
        scan.tier = ReadTier::Memory;
    }
    OpenScan {
        remote: None,
        scanner: None,
        user: user_code::new_scan(server, &scan),
        pending: PendingScan {
            table,
            scan: Arc::new(scan),
        },
        sort_columns,
        unreturned: None,
        memory: None,
    }
}

/// Reserves the arguments that a scan keeps, and its filter; `None` if they are small.
fn reserve_scan(server: &Server, call: &Call<'_>, open: &OpenScan) -> Result<Option<ScannerMemory>, Failure> {
    let filter = open.pending.scan.spec.filter.as_ref();
    let filter_bytes = filter.map_or(0, |filter| filter.memory_bytes());
    let bytes = SCAN_COPIES * call.arguments_bytes + filter_bytes;
    if bytes <= SCAN_FREE_BYTES {
        return Ok(None);
    }
    let memory = server.admission().memory();
    memory.for_scanner(bytes as u64).map(Some).ok_or_else(|| {
        server.admission().count_memory();
        Failure::busy(format!(
            "the server is busy: this scan's arguments and filter need {bytes} bytes, and those of open scans may have {} together (a \
             quarter of requests.memory_bytes); close scanners and try again",
            memory.scanners_limit()
        ))
    })
}

/// The next results of a session; none at the end of the scan.
pub(crate) async fn fetch(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    id: i32,
    count: i32,
    shortest: Shortest,
) -> Result<Results, Failure> {
    let count = result_count(count)?;
    let fetching = server.sessions().fetch(id, call.caller().owner())?;
    let sort_columns = fetching.sort_columns;
    let limits = Wanted::new(server, count, shortest);
    let (batch, end) = pin!(run(server, call, Some(id), fetching, limits)).await?;
    describe_results(call, &batch, &end);
    Ok(Results { batch, sort_columns })
}

/// Limits of one fetch of a native client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Most results.
    pub(crate) results: usize,
    /// Most rows; a row counts when its last piece is returned.
    pub(crate) rows: u64,
    /// Once the results have this many bytes, no further row is begun.
    pub(crate) bytes: usize,
    /// Whether a row is cut where the results reach the limit of bytes. A cut row is the last result.
    pub(crate) cuts_rows: bool,
    /// Whether an empty answer is allowed before the end of the scan.
    pub(crate) may_be_empty: bool,
    /// Time after which no further row is begun; `None` means `scanner.fetch_max_ms`.
    pub(crate) time: Option<Duration>,
}

/// The next results of a session, and how the fetch ended.
pub(crate) async fn fetch_part(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    id: i32,
    part: Part,
) -> Result<(CellBatch, FetchEnd), Failure> {
    let mut fetching = server.sessions().fetch(id, call.caller().owner())?;
    fetching.limit_rows(part.rows);
    let limits = Wanted::of_part(server, part);
    let (batch, end) = pin!(run(server, call, Some(id), fetching, limits)).await?;
    describe_results(call, &batch, &end);
    Ok((batch, end))
}

/// The first part of the results of a scan that has no session, and how the fetch ended.
pub(crate) async fn fetch_part_once(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    table: TableName,
    scan: Scan,
    part: Part,
) -> Result<(CellBatch, FetchEnd), Failure> {
    check(&scan)?;
    let mut scan = Box::new(new_scan(server, table, scan, false));
    scan.limit_rows(part.rows);
    scan.memory = reserve_scan(server, call, &scan)?;
    let limits = Wanted::of_part(server, part);
    let (batch, end) = pin!(run(server, call, None, scan, limits)).await?;
    describe_results(call, &batch, &end);
    Ok((batch, end))
}

/// The next whole rows of a session, and whether they are the last: at least one until the end. No further
/// row is begun once they have `bytes` bytes.
pub(crate) async fn fetch_rows(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    id: i32,
    results: usize,
    bytes: usize,
) -> Result<(CellBatch, bool), Failure> {
    let fetching = server.sessions().fetch(id, call.caller().owner())?;
    let page = Wanted::new(server, results, Shortest::Page);
    let limits = Wanted {
        bytes_max: page.bytes_max.min(bytes),
        least: 1,
        ..page
    };
    let (batch, end) = pin!(run(server, call, Some(id), fetching, limits)).await?;
    Ok((batch, end.is_of_scan))
}

/// The next results of a scan that its owner holds, at most `results`.
pub(super) async fn fetch_held<S>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    id: i32,
    scan: S,
    results: usize,
) -> Result<CellBatch, Failure>
where
    S: DerefMut<Target = OpenScan> + Send + 'static,
{
    let limits = Wanted {
        least: 1,
        ..Wanted::new(server, results, Shortest::Page)
    };
    let (batch, _) = pin!(run(server, call, Some(id), scan, limits)).await?;
    Ok(batch)
}

/// The table of an idle session.
pub(crate) fn table_of(sessions: &Sessions, caller: &Caller, id: i32) -> Result<TableName, Failure> {
    let position = sessions.position(id, caller.owner());
    position
        .map(|(table, _)| table)
        .ok_or_else(|| SessionError::Unknown.into())
}

/// The first results of a scan that has no session.
pub(crate) async fn fetch_once(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    table: TableName,
    scan: Scan,
    count: i32,
) -> Result<Results, Failure> {
    let count = result_count(count)?;
    check(&scan)?;
    let mut scan = Box::new(new_scan(server, table, scan, false));
    scan.memory = reserve_scan(server, call, &scan)?;
    let limits = Wanted::new(server, count, Shortest::Response);
    let (batch, end) = pin!(run(server, call, None, scan, limits)).await?;
    describe_results(call, &batch, &end);
    Ok(Results {
        batch,
        sort_columns: false,
    })
}

/// Notes for the slow log what a fetch has found.
fn describe_results(call: &mut Call<'_>, batch: &CellBatch, end: &FetchEnd) {
    let returned = batch.row_count();
    let first = (returned > 0).then(|| batch.row(0));
    let first = first.as_ref().map(RowView::key);
    call.description.results(first, end.seen.looked_at, returned);
}

/// Closes a session; tells whether there was one.
pub(crate) fn close(sessions: &Sessions, caller: &Caller, id: i32) -> bool {
    sessions.close(id, caller.owner())
}

/// Bytes after which a fetch begins no further row. For a page this is the setting or a part of the
/// memory left for calls, whichever is less, so that many concurrent fetches return less each.
fn fetch_bytes(server: &Server, shortest: Shortest) -> usize {
    if shortest == Shortest::Response {
        return server.config().server.max_response_bytes;
    }
    let room = usize::try_from(server.admission().memory().room()).unwrap_or(usize::MAX);
    let share = (room / FETCH_SHARE).max(FETCH_BYTES_LEAST);
    server.config().scanner.fetch_max_bytes.min(share)
}

fn result_count(count: i32) -> Result<usize, Failure> {
    usize::try_from(count).map_err(|_| {
        Failure::illegal_argument(format!("the number of rows must not be negative, but is {count}"))
    })
}

/// A fetch of a scan: the scan, out of its session, and the results so far.
///
/// Results are never thrown away: the scan is behind them. To most clients an empty answer means the
/// end of the scan, so a fetch without results continues until its client is gone, unless
/// `limits.least` is 0. A fetch that is refused has lost nothing, and can be retried.
struct Fetch<S> {
    scan: S,
    limits: Wanted,
    batch: CellBatch,
    /// The session's id, for descriptions.
    id: Option<u32>,
}

impl<S> Request for Fetch<S>
where
    S: DerefMut<Target = OpenScan> + Send + 'static,
{
    type View<'a> = &'a mut Self;
    type Done = (CellBatch, FetchEnd);

    fn view(&mut self) -> Result<&mut Self, Failure> {
        Ok(self)
    }

    /// An open scanner has its columns: it ends when its user has lost some of them.
    fn narrow(&mut self, granted: &ColumnFilter) -> bool {
        let OpenScan {
            scanner,
            remote,
            pending,
            ..
        } = &mut *self.scan;
        scanner.is_none()
            && remote.is_none()
            && security::narrow(&mut Arc::make_mut(&mut pending.scan).spec, granted)
    }

    /// A fetch with results to return does not wait for more memory.
    fn go_to_pool(&mut self, _server: &Server) {
        self.batch.set_on_shortage(if self.batch.is_empty() {
            OnShortage::Wait
        } else {
            OnShortage::Refuse
        });
    }

    fn may_be_refused(&self) -> bool {
        self.batch.is_empty()
    }

    fn ends_with_client(&self) -> bool {
        true
    }

    async fn forward(
        mut self,
        server: Arc<Server>,
        cluster: Cluster,
    ) -> Result<(CellBatch, FetchEnd), Failure> {
        let OpenScan { remote, pending, .. } = &mut *self.scan;
        let remote = match remote {
            Some(remote) => remote,
            None => remote.insert(data::open(&cluster, &pending.table, &pending.scan)?),
        };
        let mut end = FetchEnd::default();
        while !self.limits.is_reached(&self.batch) {
            let wanted = self.limits.count - self.batch.row_count();
            if !data::next(remote, wanted, &mut self.batch).await? {
                end.is_of_scan = true;
                break;
            }
        }
        server.load().heat.record_scan(&pending.table, &self.batch, 0);
        Ok((self.batch, end))
    }

    fn read((batch, _): &(CellBatch, FetchEnd)) -> Option<&CellBatch> {
        Some(batch)
    }
}

impl<S: Deref<Target = OpenScan>> Columns for Fetch<S> {
    fn visit(&self, visit: &mut Visit<'_>) {
        security::visit_spec(&self.scan.pending.scan.spec, visit);
    }
}

impl<S: DerefMut<Target = OpenScan>> Judged for &mut Fetch<S> {
    fn action(&self) -> Action {
        Action::Read
    }

    fn target(&self) -> Target<'_> {
        Target::Cells {
            table: &self.scan.pending.table,
            columns: *self,
        }
    }

    fn describe(&self, description: &mut Description) {
        description.table(&self.scan.pending.table);
        description.scan(&self.scan.pending.scan);
        description.fetch(self.id, self.limits.count);
    }

    fn class(&self) -> Class {
        Class::of_read(&self.scan.pending.table)
    }
}

impl<S: DerefMut<Target = OpenScan>> View for &mut Fetch<S> {
    type Done = (CellBatch, FetchEnd);
    fn charge(&self, server: &Server, caller: &Caller) -> Result<Charged, Failure> {
        server.charge_fetch(caller, &self.scan)
    }

    fn is_short(&self) -> bool {
        self.scan.is_memory_only()
    }

    fn attempt(
        self,
        server: &Server,
        engine: &Engine,
        tier: ReadTier,
    ) -> Result<Attempt<(CellBatch, FetchEnd)>, Failure> {
        let Fetch {
            scan, limits, batch, ..
        } = self;
        let end = if tier == ReadTier::All {
            limits.turn(server, engine, scan, batch)?
        } else {
            limits.make_room(batch)?;
            match limits.results(server, engine, scan, INLINE_TURN, INLINE_BYTES, batch) {
                Err(Error::NotInMemory) => None,
                fetched => limits.end(scan, fetched, batch)?,
            }
        };
        Ok(match end {
            Some(end) => Attempt::Done((std::mem::take(batch), end)),
            None => Attempt::Unfinished,
        })
    }
}

/// Runs a fetch. There are fewer than `limits.count` results when a bound on bytes or time is reached
/// that `limits.shortest` allows.
fn run<S>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    id: Option<i32>,
    scan: S,
    limits: Wanted,
) -> impl Future<Output = Result<(CellBatch, FetchEnd), Failure>>
where
    S: DerefMut<Target = OpenScan> + Send + 'static,
{
    let fetch = Fetch {
        scan,
        limits,
        batch: call.take_batch(),
        id: id.map(i32::unsigned_abs),
    };
    pipeline::run(server, call, fetch)
}

/// Limits and options of a fetch.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Most results.
    count: usize,
    /// Where no further row is begun.
    bytes_max: usize,
    shortest: Shortest,
    /// Time after which no further row is begun, for a page ([`Shortest::Page`]).
    time_max: Duration,
    /// Least results before bounds on bytes and time end the fetch.
    least: usize,
    /// When it began.
    began: Instant,
    /// Whether the caller needs all facts about the fetch's end, not only whether it is the scan's.
    is_part: bool,
    /// Whether a row is cut where the results have `bytes_max` bytes.
    cuts_rows: bool,
}

/// The end of a fetch. For a Thrift client only `is_of_scan` and `seen` are set.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own for native clients"
)]
pub(crate) struct FetchEnd {
    /// Whether the scan is at its end, too.
    pub(crate) is_of_scan: bool,
    /// Whether the fetch ended because its time was over.
    pub(crate) is_late: bool,
    /// Whether the limit of rows has ended the scan although more rows follow.
    pub(crate) is_before_end: bool,
    /// Whether the scan's filter wants no more rows.
    pub(crate) is_by_filter: bool,
    /// The row that the scan has come to, if the fetch's time was over.
    pub(crate) row: Option<Vec<u8>>,
    /// The rows that the fetch has looked at.
    pub(crate) seen: RowsSeen,
}

impl Wanted {
    /// Limits of a fetch of a Thrift client.
    fn new(server: &Server, count: usize, shortest: Shortest) -> Self {
        Self {
            count,
            bytes_max: fetch_bytes(server, shortest),
            shortest,
            time_max: Duration::from_millis(server.config().scanner.fetch_max_ms),
            least: LEAST_RESULTS,
            began: Instant::now(),
            is_part: false,
            cuts_rows: false,
        }
    }

    /// Limits of a part.
    fn of_part(server: &Server, part: Part) -> Self {
        let page = Self::new(server, part.results, Shortest::Page);
        Self {
            bytes_max: page.bytes_max.min(part.bytes),
            time_max: part.time.unwrap_or(page.time_max),
            least: usize::from(!part.may_be_empty),
            is_part: true,
            cuts_rows: part.cuts_rows,
            ..page
        }
    }

    /// Makes room for many results. Without it, a batch of a hundred rows is moved a dozen times while
    /// it grows. Where memory is short, it grows like that.
    fn make_room(&self, batch: &mut CellBatch) -> Result<(), Failure> {
        if batch.memory_bytes() > 0 || self.count < MANY_RESULTS {
            return Ok(());
        }
        match batch.reserve(FIRST_CELLS, FIRST_BYTES) {
            Ok(()) | Err(Error::NotInMemory) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A turn on the pool; `None` when the fetch is not done.
    fn turn(
        &self,
        server: &Server,
        engine: &Engine,
        open: &mut OpenScan,
        batch: &mut CellBatch,
    ) -> Result<Option<FetchEnd>, Failure> {
        if open.user.is_some() {
            return self.user_turn(server, engine, open, batch);
        }
        let mut fetched = self.results(server, engine, open, TURN, TURN_BYTES, batch);
        if let Err(Error::NotInMemory) = fetched {
            if let Some(scanner) = &mut open.scanner {
                scanner.read_from_disk();
            }
            fetched = self.results(server, engine, open, TURN, TURN_BYTES, batch);
        }
        self.end(open, fetched, batch)
    }

    /// A turn of a scan whose filter is of a user's class.
    fn user_turn(
        &self,
        server: &Server,
        engine: &Engine,
        open: &mut OpenScan,
        batch: &mut CellBatch,
    ) -> Result<Option<FetchEnd>, Failure> {
        let is_full = |batch: &CellBatch| self.is_reached(batch);
        Ok(
            match user_code::turn(server, engine, open, TURN.min(self.time_max), batch, is_full)? {
                Turn::Full => Some(self.describe_end(open, false)),
                Turn::End => Some(self.describe_end(open, true)),
                Turn::Unfinished => None,
            },
        )
    }

    /// Appends results until the time or the number of bytes is used up.
    fn results(
        &self,
        server: &Server,
        engine: &Engine,
        open: &mut OpenScan,
        time: Duration,
        bytes: usize,
        batch: &mut CellBatch,
    ) -> Result<Fetched, Error> {
        if self.count == 0 {
            return Ok(Fetched::More);
        }
        let scanner = match open {
            OpenScan {
                scanner: Some(scanner),
                ..
            } => scanner,
            OpenScan { scanner, pending, .. } => {
                // When this fails, the next fetch tries again: a disabled table may be enabled by then.
                let opened = engine.scan(&pending.table, Scan::clone(&pending.scan))?;
                scanner.insert(opened)
            }
        };
        let limits = FetchLimits {
            results: self.count - batch.row_count(),
            bytes: self.bytes_max.saturating_sub(batch.data_bytes()).clamp(1, bytes),
            time: time.min(self.time_max),
        };
        let before = batch.row_count();
        let cut_at = self.cuts_rows.then_some(self.bytes_max);
        let fetched = scanner.fetch_in_pieces(&limits, cut_at, batch);
        server.load().heat.record_scan(&open.pending.table, batch, before);
        fetched
    }

    /// Fewest results that may be returned when there is no memory for more.
    fn least_results(&self, open: &OpenScan) -> usize {
        if open.pending.scan.reversed && !self.is_part {
            LEAST_RESULTS.min(self.count)
        } else {
            1
        }
    }

    /// Describes the end of a fetch.
    fn describe_end(&self, open: &mut OpenScan, is_of_scan: bool) -> FetchEnd {
        let mut end = FetchEnd {
            is_of_scan,
            ..FetchEnd::default()
        };
        if let Some(scanner) = open.scanner.as_mut() {
            end.seen = scanner.take_rows_seen();
        }
        if let Some(scanner) = open.scanner.as_mut().filter(|_| self.is_part) {
            end.is_late = self.began.elapsed() >= self.time_max;
            if end.is_late {
                end.row = scanner.row_in_hand().map(<[u8]>::to_vec);
            }
            end.is_of_scan |= scanner.is_at_end();
            end.is_before_end = scanner.is_ended_before_end();
            end.is_by_filter = scanner.is_ended_by_filter();
        }
        if let Some(user) = &mut open.user {
            end.seen.passed_over += std::mem::take(&mut user.passed_over);
            let more = user.has_ready() || !user.is_over();
            end.is_of_scan = !more || user.rows_left == 0;
            end.is_before_end = more && user.rows_left == 0;
            end.is_by_filter = user.is_ended_by_filter;
        }
        end
    }

    /// Decides whether a turn with this outcome is the fetch's last one; `None` if the fetch goes
    /// on.
    fn end(
        &self,
        open: &mut OpenScan,
        fetched: Result<Fetched, Error>,
        batch: &CellBatch,
    ) -> Result<Option<FetchEnd>, Failure> {
        let end = |open: &mut OpenScan, is_of_scan| Ok(Some(self.describe_end(open, is_of_scan)));
        let fetched = match fetched {
            // The rows that fit into memory are a valid answer.
            Err(Error::CallMemory(_)) if batch.row_count() >= self.least_results(open) => {
                return end(open, false);
            }
            // Fewer rows are not. The scan has passed them, so it must fail: continuing would skip
            // them.
            Err(error @ Error::CallMemory(_)) if !batch.is_empty() => {
                if let Some(scanner) = &mut open.scanner {
                    scanner.fail(error.clone());
                }
                return Err(error.into());
            }
            // Results before a region that is not assigned are a page; the next fetch fails.
            Err(Error::NotServingRegion(_)) if self.shortest == Shortest::Page && !batch.is_empty() => {
                return end(open, false);
            }
            fetched => fetched?,
        };
        if fetched == Fetched::End {
            return end(open, true);
        }
        let ends_in_a_row = open.scanner.as_ref().is_some_and(Scanner::has_cut_row);
        if ends_in_a_row || self.is_reached(batch) {
            return end(open, false);
        }
        Ok(None)
    }

    /// Whether the results are those of a whole answer.
    fn is_reached(&self, batch: &CellBatch) -> bool {
        if batch.row_count() >= self.count {
            return true;
        }
        let is_late = self.shortest == Shortest::Page && self.began.elapsed() >= self.time_max;
        let is_enough = batch.data_bytes() >= self.bytes_max || is_late;
        is_enough && batch.row_count() >= self.least
    }
}
