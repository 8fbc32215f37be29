//! Writes, and waiting until they are durable. Plain writes join the log on the network thread, and so
//! do checks, increments, appends and atomic groups whose reads are in memory and whose rows are
//! unlocked. A write that would have to wait or read from disk runs on the pool, and so does a delete
//! of "the newest version".

use std::pin::pin;
use std::sync::Arc;

use basalt_client::native::Cluster;
use basalt_engine::cell::{CellBatch, OnShortage};
use basalt_engine::engine::GroupOutcome;
use basalt_engine::id::Origin;
use basalt_engine::op::{AtomicGroup, GroupStep, ReadTier, RowCondition, RowMutation, Test, Write, Writes};
use basalt_engine::schema::{Durability, TableName};
use basalt_engine::{Commit, Engine, Error};
use smallvec::SmallVec;

use super::call::Call;
use super::charge::Charged;
use super::confirm;
use super::describe::Description;
use super::group::{Group, GroupDone, INLINE_CELLS, Step, reads};
use super::pipeline::{self, Attempt, Judged, Request, View};
use super::remote::data;
use super::sizes::mutation_bytes;
use super::{Backend, Failure};
use crate::limits::admission::Class;
use crate::limits::yields;
use crate::security::{Action, Caller, Columns, Target, Visit};
use crate::server::Server;

/// A row's worth of nothing yet.
pub(crate) fn mutation(row: &[u8], durability: Durability) -> RowMutation<'_> {
    RowMutation {
        row,
        writes: Writes::new(),
        durability,
    }
}

/// The table's durability for writes that set none. A missing table has none: the write itself will
/// fail.
pub(crate) fn default_durability(server: &Server, table: &TableName) -> Durability {
    // Another cluster applies the default of its table.
    let Backend::Local(engine) = Backend::of(server) else {
        return Durability::UseDefault;
    };
    let found = engine.describe_table(table);
    found.map(|(table, _)| table.durability()).unwrap_or_default()
}

/// Refuses a call with more cells than a call may have.
pub(crate) fn check_cells(server: &Server, cells: usize) -> Result<(), Failure> {
    let limit = server.config().server.max_cells_per_call;
    if cells > limit {
        return Err(Failure::illegal_argument(format!(
            "the call has {cells} cells; server.max_cells_per_call is {limit}: send them in several calls (HappyBase: \
             batch(batch_size=...)), or raise it"
        )));
    }
    Ok(())
}

/// Writes of one table, each row atomically.
struct PlainWrites<A, B> {
    table: TableName,
    /// The clusters that they have passed.
    origin: Origin,
    /// Owned, because the work may move to the pool.
    arguments: A,
    build: B,
}

impl<A, B> Request for PlainWrites<A, B>
where
    A: Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<RowMutation<'a>>, Failure> + Send + 'static,
{
    type View<'a> = WritesView<'a>;
    type Done = Option<Commit>;

    fn view(&mut self) -> Result<WritesView<'_>, Failure> {
        Ok(WritesView {
            table: &self.table,
            origin: &self.origin,
            mutations: (self.build)(&self.arguments)?,
        })
    }

    async fn forward(self, server: Arc<Server>, cluster: Cluster) -> Result<Option<Commit>, Failure> {
        let (actions, _copies) = {
            let mutations = (self.build)(&self.arguments)?;
            let copies = data::reserve(&server, mutations.iter().map(mutation_bytes).sum())?;
            let actions: Vec<_> = mutations.iter().filter_map(data::action).collect();
            (actions, copies)
        };
        if !actions.is_empty() {
            data::write(&cluster, &self.table, actions, &self.origin).await?;
            server
                .load()
                .heat
                .record_writes(&self.table, &(self.build)(&self.arguments)?);
        }
        Ok(None)
    }
}

struct WritesView<'a> {
    table: &'a TableName,
    origin: &'a Origin,
    mutations: Vec<RowMutation<'a>>,
}

impl WritesView<'_> {
    fn cells(&self) -> usize {
        self.mutations.iter().map(|mutation| mutation.writes.len()).sum()
    }
}

impl Columns for WritesView<'_> {
    fn visit(&self, visit: &mut Visit<'_>) {
        for mutation in &self.mutations {
            visit_writes(mutation, visit);
        }
    }
}

/// Visits the columns that a row's writes touch.
fn visit_writes(mutation: &RowMutation<'_>, visit: &mut Visit<'_>) {
    for write in &mutation.writes {
        match write {
            Write::Put {
                family, qualifier, ..
            }
            | Write::DeleteVersion {
                family, qualifier, ..
            }
            | Write::DeleteVersionAtWrite {
                family, qualifier, ..
            }
            | Write::DeleteColumn {
                family, qualifier, ..
            } => visit(family, Some(qualifier)),
            Write::DeleteFamily { family, .. } | Write::DeleteFamilyVersion { family, .. } => {
                visit(family, None);
            }
            Write::DeleteRow { .. } => {}
        }
    }
}

impl Judged for WritesView<'_> {
    fn action(&self) -> Action {
        Action::Write
    }

    fn target(&self) -> Target<'_> {
        Target::Cells {
            table: self.table,
            columns: self,
        }
    }

    fn describe(&self, description: &mut Description) {
        description.table(self.table);
        description.mutations(self.mutations.iter().map(|mutation| mutation.row));
    }

    fn class(&self) -> Class {
        Class::User
    }
}

impl View for WritesView<'_> {
    type Done = Option<Commit>;
    fn charge(&self, server: &Server, caller: &Caller) -> Result<Charged, Failure> {
        check_cells(server, self.cells())?;
        server.charge_writes(caller, self.table, &self.mutations)
    }

    fn is_short(&self) -> bool {
        self.cells() <= INLINE_CELLS && !self.mutations.iter().any(reads)
    }

    /// `None` if there is nothing to write.
    fn attempt(
        self,
        server: &Server,
        engine: &Engine,
        _tier: ReadTier,
    ) -> Result<Attempt<Option<Commit>>, Failure> {
        if self.cells() == 0 {
            return Ok(Attempt::Done(None));
        }
        let commit = engine.mutate_from(self.table, &self.mutations, self.origin)?;
        server.load().heat.record_writes(self.table, &self.mutations);
        Ok(Attempt::Done(Some(commit)))
    }
}

/// Applies the writes that `build` makes of `arguments`, each row atomically, and waits until they
/// are durable and visible.
pub(crate) fn apply<A, B>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    table: TableName,
    arguments: A,
    build: B,
) -> impl Future<Output = Result<(), Failure>>
where
    A: Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<RowMutation<'a>>, Failure> + Send + 'static,
{
    let begun = begin(server, call, table, arguments, build);
    async move { pin!(end(server, begun.await)).await }
}

/// Waits for writes that were begun ([`begin`]).
pub(crate) async fn end(server: &Server, begun: Result<Option<Commit>, Failure>) -> Result<(), Failure> {
    match begun? {
        Some(commit) => pin!(committed(server, commit)).await,
        None => Ok(()),
    }
}

/// Applies writes as [`apply`] does; the caller waits for the commit ([`end`]). `None` if there
/// are none. `arguments` is dropped: while many batches wait for the log, their arguments would push
/// each other out of the processor's cache.
pub(crate) fn begin<A, B>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    table: TableName,
    arguments: A,
    build: B,
) -> impl Future<Output = Result<Option<Commit>, Failure>>
where
    A: Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<RowMutation<'a>>, Failure> + Send + 'static,
{
    begin_from(server, call, table, Origin::default(), arguments, build)
}

/// Applies writes as [`begin`] does, and logs the clusters that they have passed.
pub(crate) fn begin_from<A, B>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    table: TableName,
    origin: Origin,
    arguments: A,
    build: B,
) -> impl Future<Output = Result<Option<Commit>, Failure>>
where
    A: Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<RowMutation<'a>>, Failure> + Send + 'static,
{
    let request = PlainWrites {
        table,
        origin,
        arguments,
        build,
    };
    pipeline::run(server, call, request)
}

/// Waits for a commit, for a standby if the settings say so, and as long as the engine wants its writer
/// slowed down.
pub(super) async fn committed(server: &Server, commit: Commit) -> Result<(), Failure> {
    let pause = commit.pause();
    if !commit.is_synced() {
        yields::to_other_writes().await;
    }
    let seq = commit.seq();
    commit.await?;
    confirm::write(server, seq).await?;
    if !pause.is_zero() {
        Box::pin(tokio::time::sleep(pause)).await;
    }
    Ok(())
}

/// An atomic group of the arguments.
struct GroupRequest<A, B> {
    arguments: A,
    build: B,
    cells: CellBatch,
}

impl<A, B> Request for GroupRequest<A, B>
where
    A: Send + 'static,
    B: for<'a> Fn(&'a A) -> Result<Group<'a>, Failure> + Send + 'static,
{
    type View<'a> = GroupView<'a>;
    type Done = (GroupOutcome, CellBatch);

    fn view(&mut self) -> Result<GroupView<'_>, Failure> {
        Ok(GroupView {
            group: (self.build)(&self.arguments)?,
            cells: &mut self.cells,
        })
    }

    /// Refuses instead of waiting: rows' locks are held, and a network thread may wait for them.
    fn go_to_pool(&mut self, _server: &Server) {
        self.cells.set_on_shortage(OnShortage::Refuse);
    }

    async fn forward(
        mut self,
        server: Arc<Server>,
        cluster: Cluster,
    ) -> Result<(GroupOutcome, CellBatch), Failure> {
        let (sent, _copies) = {
            let group = (self.build)(&self.arguments)?;
            let copies = data::reserve(&server, group.steps.iter().map(Step::bytes).sum())?;
            (data::SentGroup::of(&group)?, copies)
        };
        let processed = sent.send(&cluster, &mut self.cells).await?;
        server
            .load()
            .heat
            .record_group(&(self.build)(&self.arguments)?, processed, &self.cells);
        let commit = None;
        Ok((GroupOutcome { processed, commit }, self.cells))
    }
}

struct GroupView<'a> {
    group: Group<'a>,
    cells: &'a mut CellBatch,
}

/// The columns that conditions read. A filter may look at all of them.
impl Columns for SmallVec<[RowCondition<'_>; 1]> {
    fn visit(&self, visit: &mut Visit<'_>) {
        let is_of_all =
            |condition: &RowCondition<'_>| matches!(condition.test, Test::Filter(_) | Test::Judged(_));
        if self.iter().any(is_of_all) {
            return;
        }
        for condition in self {
            if let Test::Column {
                family, qualifier, ..
            } = condition.test
            {
                visit(family, Some(qualifier));
            }
        }
    }
}

impl Columns for GroupView<'_> {
    fn visit(&self, visit: &mut Visit<'_>) {
        for step in &self.group.steps {
            match step {
                Step::Write(mutation) => visit_writes(mutation, visit),
                Step::Update { change, .. } => {
                    change
                        .columns()
                        .for_each(|(family, qualifier)| visit(family, Some(qualifier)));
                }
            }
        }
    }
}

impl Judged for GroupView<'_> {
    fn action(&self) -> Action {
        Action::Write
    }

    fn target(&self) -> Target<'_> {
        Target::Cells {
            table: &self.group.table,
            columns: self,
        }
    }

    fn also_reads(&self) -> Option<Target<'_>> {
        (!self.group.conditions.is_empty()).then_some(Target::Cells {
            table: &self.group.table,
            columns: &self.group.conditions,
        })
    }

    fn describe(&self, description: &mut Description) {
        description.table(&self.group.table);
        description.mutations(self.group.steps.iter().map(Step::row));
    }

    fn class(&self) -> Class {
        Class::User
    }
}

impl View for GroupView<'_> {
    type Done = (GroupOutcome, CellBatch);
    fn charge(&self, server: &Server, caller: &Caller) -> Result<Charged, Failure> {
        check_cells(server, self.group.cells())?;
        server.charge_group(caller, &self.group)
    }

    fn is_short(&self) -> bool {
        !self.group.is_long()
    }

    fn attempt(
        self,
        server: &Server,
        engine: &Engine,
        tier: ReadTier,
    ) -> Result<Attempt<(GroupOutcome, CellBatch)>, Failure> {
        let Self { group, cells } = self;
        let steps: SmallVec<[GroupStep<'_>; 1]> = group.steps.iter().map(Step::for_engine).collect();
        let wanted = AtomicGroup {
            conditions: &group.conditions,
            steps: &steps,
            nonce: group.nonce,
            origin: group.origin.clusters(),
        };
        let outcome = match engine.apply_group(&group.table, &wanted, tier, cells) {
            Err(Error::NotInMemory) => return Ok(Attempt::Unfinished),
            outcome => outcome?,
        };
        server
            .load()
            .heat
            .record_group(&group, outcome.commit.is_some(), cells);
        Ok(Attempt::Done((outcome, std::mem::take(cells))))
    }
}

/// Takes the first steps of a group without applying it: fails unless its caller may do that. For a group
/// whose condition is judged before it is applied.
pub(crate) fn check_group<'g>(
    server: &Server,
    call: &mut Call<'_>,
    group: Group<'g>,
    cells: &'g mut CellBatch,
) -> Result<(), Failure> {
    let view = GroupView { group, cells };
    pipeline::enter(server, call, &view).map(drop)
}

/// Applies a group under the locks of its rows, and waits until it is durable. Runs on the network
/// thread if its reads are in memory and its rows are unlocked, on the pool otherwise.
pub(crate) fn group<A, B>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    cells: CellBatch,
    arguments: A,
    build: B,
) -> impl Future<Output = Result<GroupDone, Failure>>
where
    A: Send + 'static,
    B: for<'a> Fn(&'a A) -> Result<Group<'a>, Failure> + Send + 'static,
{
    let request = GroupRequest {
        arguments,
        build,
        cells,
    };
    let run = pipeline::run(server, call, request);
    async move {
        let (outcome, cells) = run.await?;
        if let Some(commit) = outcome.commit {
            pin!(committed(server, commit)).await?;
        }
        Ok(GroupDone {
            processed: outcome.processed,
            cells,
        })
    }
}
