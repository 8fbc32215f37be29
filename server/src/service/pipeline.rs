//! The hall: the one path that every call of every protocol takes.
//!
//! ```text
//! decode (adapter) -> view -> authorize -> admit -> charge -> hold back -> attempt from memory, on the network thread
//!                  -> otherwise queue -> attempt on the pool -> settle -> encode (adapter)
//! ```
//!
//! Where the tables are in another cluster ([`Backend::Remote`]), both attempts and the queue are one step:
//! the request is forwarded ([`Request::forward`]), which takes no thread, and is dropped if it is useless
//! without its client and that has gone.
//!
//! | step | what it does | where |
//! | --- | --- | --- |
//! | view | arguments as the engine takes them, borrowed | [`Request::view`] |
//! | authorize | refuses a caller who may not do it; says nothing of what exists | [`authorize`], `security` |
//! | serve | refuses what a standby does not do | [`serves`] |
//! | admit | refuses calls while the server is late | `limits::admission` |
//! | charge | takes tokens of quotas and of a rehearsal's servers | [`View::charge`], `charge` |
//! | hold back | waits for the tokens: a timer, no thread | [`hold_back`] |
//! | attempt | runs it; from memory first, where it is short | [`View::attempt`] |
//! | queue | waits for a permit of the pool, or refuses | `limits::admission` |
//! | settle | charges what was read; at the end of the call metrics, debug line, slow log | [`settle`] |
//!
//! Data calls pass [`run`]; schema and upkeep calls, which may always block, pass [`run_admin`]. A call
//! has one or several requests (a batch has one for each region and run of writes), and one
//! [`settle`].
//!
//! Invariant: nothing but the view happens before `authorize`, and nothing of the engine is touched
//! outside an attempt.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use basalt_client::native::Cluster;
use basalt_engine::Engine;
use basalt_engine::cell::CellBatch;
use basalt_engine::metrics::disk_bytes_of_thread;
use basalt_engine::op::ReadTier;
use basalt_engine::schema::TableName;
use basalt_security::rights::ColumnFilter;
use tokio::time::Instant;

use super::Failure;
use super::backend::Backend;
use super::call::Call;
use super::charge::Charged;
use super::confirm;
use super::describe::Description;
use crate::cluster::regions;
use crate::config::StandbyReads;
use crate::limits::admission::Class;
use crate::observe::metrics::{Api, MethodMetrics};
use crate::observe::slow_log::{Record, Remarkable, began_ms};
use crate::security::{Action, Caller, Refused, Target};
use crate::server::Server;
use crate::server::copies::standing::Role;

/// Time between two looks whether the client of a forwarded request is still there.
const LOOK_UP: Duration = Duration::from_millis(250);

/// A data request with its arguments: writes, an atomic group, gets, a fetch of a scan.
pub(crate) trait Request: Send + 'static {
    /// The request as it is attempted, borrowed from its arguments.
    type View<'a>: View<Done = Self::Done>;
    /// Its result.
    type Done: Send + 'static;

    /// Converts the arguments. Cheap enough to be called once for each attempt.
    fn view(&mut self) -> Result<Self::View<'_>, Failure>;

    /// Called before each attempt on the pool, where the request may block, and wait for memory.
    fn go_to_pool(&mut self, _server: &Server) {}

    /// Narrows a read to the columns that its caller may see; `false` if nothing is left.
    fn narrow(&mut self, _granted: &ColumnFilter) -> bool {
        false
    }

    /// Whether it may be refused before its next attempt: not once it has results that cannot be had
    /// again.
    fn may_be_refused(&self) -> bool {
        true
    }

    /// Whether it is useless once its client has gone.
    fn ends_with_client(&self) -> bool {
        false
    }

    /// Runs it on tables of another cluster.
    fn forward(
        self,
        server: Arc<Server>,
        cluster: Cluster,
    ) -> impl Future<Output = Result<Self::Done, Failure>> + Send;

    /// The cells that it has read, which are charged afterwards.
    fn read(_done: &Self::Done) -> Option<&CellBatch> {
        None
    }
}

/// Outcome of an attempt.
pub(crate) enum Attempt<T> {
    Done(T),
    /// It needs the disk or a lock that is held, or another turn.
    Unfinished,
}

/// Properties of a request that the first steps need.
pub(crate) trait Judged {
    fn action(&self) -> Action;
    fn target(&self) -> Target<'_>;
    /// A further target of which it needs to read all columns: those of its conditions.
    fn also_reads(&self) -> Option<Target<'_>> {
        None
    }
    /// The class whose queue it waits in.
    fn class(&self) -> Class;
    /// Notes what it is about.
    fn describe(&self, description: &mut Description);
}

/// A request that can be attempted.
pub(crate) trait View: Judged {
    type Done;

    /// Charges it, unless it is refused for its size or for what its caller has used up.
    fn charge(&self, server: &Server, caller: &Caller) -> Result<Charged, Failure>;
    /// Whether it may be attempted on the network thread.
    fn is_short(&self) -> bool;
    /// Runs it. With [`ReadTier::Memory`] it neither blocks nor reads from disk.
    fn attempt(
        self,
        server: &Server,
        engine: &Engine,
        tier: ReadTier,
    ) -> Result<Attempt<Self::Done>, Failure>;
}

/// Fails unless the caller may do that. Returns the columns to which a read is to be narrowed.
fn authorize(
    server: &Server,
    caller: &Caller,
    action: Action,
    target: Target<'_>,
) -> Result<Option<ColumnFilter>, Failure> {
    Ok(server.access().check(caller, action, target)?)
}

/// Fails unless the caller may know whether a table exists; without a table, which tables exist.
pub(super) fn may_know(server: &Server, caller: &Caller, table: Option<&TableName>) -> Result<(), Failure> {
    Ok(server.access().may_know(caller, table)?)
}

/// Fails unless the caller may read all of the target.
fn may_read_whole(server: &Server, caller: &Caller, target: Target<'_>) -> Result<(), Failure> {
    match server.access().check(caller, Action::Read, target)? {
        None => Ok(()),
        Some(_) => Err(Refused::new(caller, Action::Read, target).into()),
    }
}

/// Fails unless the caller may read all cells of a table.
pub(super) fn may_read_table(server: &Server, caller: &Caller, table: &TableName) -> Result<(), Failure> {
    may_read_whole(server, caller, Target::Table(table))
}

/// Whether a list shows the caller the things that need the right to read a table.
pub(super) fn shows_table(server: &Server, caller: &Caller, table: &TableName) -> bool {
    server.access().shows(caller, Action::Read, Target::Table(table))
}

/// Fails unless the caller may see what only operators see.
pub(crate) fn may_operate(server: &Server, caller: &Caller) -> Result<(), Failure> {
    authorize(server, caller, Action::Admin, Target::Server).map(drop)
}

/// Runs a data request to its result. The steps that never wait are taken at once, before the future
/// is polled: a future that carried the request would be copied with it.
pub(crate) fn run<R: Request>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    request: R,
) -> impl Future<Output = Result<R::Done, Failure>> {
    run_with(server, call, request, |_| {})
}

/// Runs a data request as [`run`] does, and calls `before_pool` once before it moves to the pool.
pub(crate) fn run_with<R: Request>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    mut request: R,
    before_pool: impl FnOnce(&mut R),
) -> impl Future<Output = Result<R::Done, Failure>> {
    enum Step<D, F> {
        Ended(Result<D, Failure>),
        /// Boxed: most requests end with their first attempt.
        Later(Pin<Box<F>>),
    }
    let step = match begin(server, call, &mut request) {
        Ok(Begun::Done(done)) => Step::Ended(Ok(done)),
        Ok(Begun::Later { charged, class }) => Step::Later(Box::pin(go_on(
            server,
            call,
            request,
            before_pool,
            charged,
            class,
        ))),
        Err(failure) => Step::Ended(Err(failure)),
    };
    async move {
        match step {
            Step::Ended(ended) => ended,
            Step::Later(rest) => rest.await,
        }
    }
}

/// Outcome of the steps that never wait.
enum Begun<T> {
    Done(T),
    Later { charged: Charged, class: Class },
}

/// The first steps: authorize and admit. For itself for a scan that is opened, which does nothing yet.
/// Returns the columns to which a read is to be narrowed.
pub(super) fn enter(
    server: &Server,
    call: &mut Call<'_>,
    request: &impl Judged,
) -> Result<Option<ColumnFilter>, Failure> {
    let caller = call.caller();
    let granted = authorize(server, caller, request.action(), request.target())?;
    serves(server, request.action())?;
    if let Some(target) = request.also_reads() {
        may_read_whole(server, caller, target)?;
    }
    server.admission().admit_of(request.class())?;
    request.describe(&mut call.description);
    Ok(granted)
}

/// The refusal of a read of which nothing is left when it is narrowed.
pub(super) fn nothing_left(caller: &Caller, request: &impl Judged) -> Failure {
    Refused::new(caller, request.action(), request.target()).into()
}

/// Takes the steps from `authorize` to the attempt from memory.
fn begin<R: Request>(
    server: &Server,
    call: &mut Call<'_>,
    request: &mut R,
) -> Result<Begun<R::Done>, Failure> {
    let caller = call.caller();
    let mut view = request.view()?;
    if let Some(granted) = enter(server, call, &view)? {
        drop(view);
        let is_left = request.narrow(&granted);
        view = request.view()?;
        if !is_left {
            return Err(nothing_left(caller, &view));
        }
    }
    let class = view.class();
    let is_short = view.is_short();
    if !is_short {
        // A request that is sure to need the pool is refused before it is charged.
        server.admission().admit_to_queue_of(class)?;
    }
    let charged = view.charge(server, caller)?;
    if is_short
        && charged.until().is_none()
        && let Backend::Local(engine) = Backend::of(server)
        && let Attempt::Done(done) = view.attempt(server, engine, ReadTier::Memory)?
    {
        return Ok(Begun::Done(read::<R>(server, &charged, done)));
    }
    Ok(Begun::Later { charged, class })
}

/// Holds the request back, then takes attempts on the pool until it is done.
async fn go_on<R: Request>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    mut request: R,
    before_pool: impl FnOnce(&mut R),
    charged: Charged,
    class: Class,
) -> Result<R::Done, Failure> {
    if charged.until().is_some() {
        let from = Instant::now();
        hold_back(charged.until()).await;
        call.description.waited(from.elapsed());
        let view = request.view()?;
        if view.is_short()
            && let Backend::Local(engine) = Backend::of(server)
            && let Attempt::Done(done) = view.attempt(server, engine, ReadTier::Memory)?
        {
            return Ok(read::<R>(server, &charged, done));
        }
    }
    if let Backend::Remote(cluster) = Backend::of(server) {
        let ends_with_client = request.ends_with_client();
        let mut forwarded = Box::pin(request.forward(Arc::clone(server), cluster.clone()));
        let done = if ends_with_client {
            loop {
                match tokio::time::timeout(LOOK_UP, &mut forwarded).await {
                    Ok(done) => break done?,
                    Err(_) if call.is_gone() => return Err(client_is_gone()),
                    Err(_) => {}
                }
            }
        } else {
            forwarded.await?
        };
        return Ok(read::<R>(server, &charged, done));
    }
    let mut may_be_refused = request.may_be_refused();
    before_pool(&mut request);
    loop {
        request.go_to_pool(server);
        if request.ends_with_client() && call.is_gone() {
            return Err(client_is_gone());
        }
        let from = Instant::now();
        let permit = if may_be_refused {
            server.admission().admit_to_queue_of(class)?;
            server.admission().permit(class).await?
        } else {
            server.admission().permit_again(class).await
        };
        may_be_refused = false;
        let attempt;
        let (ran, disk_bytes);
        (request, attempt, ran, disk_bytes) = server
            .on_pool(move |server| {
                let (began, before) = (Instant::now(), disk_bytes_of_thread());
                let attempt =
                    request
                        .view()?
                        .attempt(server, Backend::of(server).engine()?, ReadTier::All)?;
                let disk_bytes = disk_bytes_of_thread().wrapping_sub(before);
                Ok((request, attempt, began.elapsed(), disk_bytes))
            })
            .await?;
        drop(permit);
        call.description.waited(from.elapsed().saturating_sub(ran));
        call.description.read_from_disk(disk_bytes);
        if let Attempt::Done(done) = attempt {
            return Ok(read::<R>(server, &charged, done));
        }
    }
}

fn client_is_gone() -> Failure {
    Failure::plain_io("the client has closed the connection")
}

/// Charges what a request has read.
fn read<R: Request>(server: &Server, charged: &Charged, done: R::Done) -> R::Done {
    if let Some(batch) = R::read(&done) {
        server.charge_read(charged, batch);
    }
    done
}

/// Waits until then. Holds no thread.
async fn hold_back(until: Option<Instant>) {
    if let Some(until) = until {
        tokio::time::sleep_until(until).await;
    }
}

/// Runs a schema or upkeep request, where it may block.
pub(super) fn run_admin<T>(
    server: &Server,
    caller: &Caller,
    (action, target): (Action, Target<'_>),
    work: impl FnOnce(Backend<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    authorize(server, caller, action, target)?;
    serves(server, action)?;
    let done = work(Backend::of(server))?;
    if !matches!(action, Action::Connect | Action::Know | Action::Read) {
        confirm::change(server)?;
    }
    Ok(done)
}

/// Fails unless this server takes such calls: a gateway that only reads refuses changes, a standby, and a
/// server that one has replaced, answer who the primary is, and a standby reads if `standby.reads` allows it.
fn serves(server: &Server, action: Action) -> Result<(), Failure> {
    if let Some(gateway) = server.gateway() {
        let changes = matches!(
            action,
            Action::Write | Action::Exec | Action::Create | Action::Admin
        );
        if gateway.is_read_only() && changes {
            return Err(Failure::do_not_retry(
                "this gateway only reads: gateway.read_only is set, so changes are refused",
            ));
        }
        return Ok(());
    }
    let standing = &server.copies().standing;
    if standing.is_primary() || action == Action::Connect {
        return Ok(());
    }
    let reads = server.config().standby.reads == StandbyReads::Stale && standing.role() == Role::Standby;
    if reads && matches!(action, Action::Know | Action::Read) {
        return Ok(());
    }
    match standing.refusal() {
        Some(text) => Err(Failure::not_serving(text)),
        None => Ok(()),
    }
}

/// A method of a protocol, for metrics and logs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    pub(crate) api: Api,
    /// Its number among the methods of the API.
    pub(crate) number: usize,
    pub(crate) service: &'static str,
    pub(crate) name: &'static str,
}

/// The end of a call as its adapter knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    /// Class of the exception, without its package, if it has failed.
    pub(crate) failed: Option<&'static str>,
    /// Text of the failure, where the adapter has it.
    pub(crate) message: &'a str,
    pub(crate) answer_bytes: usize,
}

/// Settles a call that was answered: metrics, debug line of a failure, slow log.
pub(crate) fn settle(server: &Server, call: &Call<'_>, method: Method, end: End<'_>) {
    let took = call.began().elapsed();
    count(server, method, took, end.failed);
    let tail = server
        .load()
        .method(method.api, method.number)
        .map(MethodMetrics::tail);
    let remarkable = server.load().slow_log.judge(took, end.answer_bytes, tail);
    if end.failed.is_some() || remarkable.is_some() {
        show(server, call, method, end, took, remarkable);
    }
}

/// Counts an answered call.
pub(crate) fn count(server: &Server, method: Method, took: Duration, failed: Option<&'static str>) {
    server.load().rates.recent().took(took);
    if let Some(metrics) = server.load().method(method.api, method.number) {
        metrics.answered(took);
        if let Some(class) = failed {
            metrics.failed(class);
        }
    }
}

/// Writes the lines of a call that has failed or is remarkable, and its record.
#[cold]
fn show(
    server: &Server,
    call: &Call<'_>,
    method: Method,
    end: End<'_>,
    took: Duration,
    remarkable: Option<Remarkable>,
) {
    // Only a call that is logged needs a number.
    let request = server.load().next_request();
    let (service, name) = (method.service, method.name);
    let client = call.caller().address().map(|address| address.to_string());
    let user = call.caller().user().map(ToString::to_string);
    let authentication = call.caller().authentication().name();
    if let Some(exception) = end.failed {
        tracing::debug!(
            request,
            service,
            method = name,
            client,
            user,
            authentication,
            exception,
            message_text = end.message,
            ?took,
            "call failed"
        );
    }
    let Some(remarkable) = remarkable else { return };
    let description = &call.description;
    let table = description.table_name();
    let region = table.zip(description.first_row()).and_then(|(table, row)| {
        let region = Backend::of(server).region_at_hand(table, row)?;
        Some((regions::printed(&region), region.encoded_name.clone()))
    });
    let (region, encoded_name) = region.unzip();
    let layout = table.and_then(|table| Backend::of(server).key_layout(table));
    let arguments = description.arguments(layout.as_ref());
    let rows = description.rows_of_fetch();
    tracing::info!(
        request,
        service,
        method = name,
        client,
        user,
        authentication,
        ?took,
        waited = ?description.waiting(),
        answer_bytes = end.answer_bytes,
        disk_bytes = description.disk_bytes(),
        rows_looked_at = rows.map(|rows| rows.looked_at),
        rows_returned = rows.map(|rows| rows.returned),
        table = table.map(ToString::to_string),
        region = encoded_name,
        arguments,
        slow = remarkable.slow,
        beyond_percentile = remarkable.tail,
        large = remarkable.large,
        "call is in the slow log"
    );
    server.load().slow_log.add(Record {
        request,
        remarkable,
        began_ms: began_ms(took),
        took,
        answer_bytes: end.answer_bytes as u64,
        client: client.unwrap_or_default(),
        user: call.caller().user_name().unwrap_or_default().to_owned(),
        service,
        method: name,
        table: table.map(ToString::to_string),
        region,
        encoded_name,
        shape: description.shape(name),
        arguments,
        waited: description.waiting(),
        disk_bytes: description.disk_bytes(),
        rows,
        gets: description.get_count(),
        mutations: description.mutation_count(),
    });
}
