//! The sink of replication: edits of another cluster, which are written as they are.
//!
//! A call has many pieces: rows of one table that have passed the same clusters, in the order of the
//! source ([`Piece`]). Each piece takes the path of all calls ([`pipeline`]) and becomes one record of the
//! log for each region.
//!
//! 1. [`enter`] refuses a caller who may not write everywhere, as HBase does for this call.
//! 2. [`apply`] begins a piece; [`load`] loads a file of the source into the regions of a table.
//! 3. The adapter waits for the last commit (`writes::end`): commits are published in order, so it
//!    stands for all.
//!
//! Rows are atomic, the call is not: a source sends a whole batch again after a failure, and a cell with
//! its timestamp is the same the second time. Quotas do not count replication. A piece that finds the
//! memstores full waits for a flush, since a source pauses for longer after each failure: up to five
//! minutes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use basalt_client::native::Cluster;
use basalt_engine::engine::LoadFile;
use basalt_engine::id::Origin;
use basalt_engine::op::{ReadTier, ReplicatedRow};
use basalt_engine::schema::TableName;
use basalt_engine::{Commit, Engine};

use super::call::Call;
use super::charge::Charged;
use super::describe::Description;
use super::group::INLINE_CELLS;
use super::pipeline::{self, Attempt, Judged, Request, View};
use super::{AdminCall, Failure};
use crate::limits::admission::Class;
use crate::security::{Action, Caller, Target};
use crate::server::Server;

/// For how long a call waits for room in memstores. A source gives up after 60 s by default
/// (`replication.source.shipedits.timeout`).
const BUSY_MAX: Duration = Duration::from_secs(20);

/// Pause before a piece that found no room is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Rows of one table that have passed the same clusters, as arguments of which rows are made.
#[derive(Clone, Debug)]
pub(crate) struct Piece<A> {
    pub(crate) table: TableName,
    pub(crate) origin: Origin,
    pub(crate) arguments: A,
}

struct ReplicatedRows<A, B> {
    piece: Piece<A>,
    build: B,
}

impl<A, B> Request for ReplicatedRows<A, B>
where
    A: Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<ReplicatedRow<'a>>, Failure> + Send + 'static,
{
    type View<'a> = RowsView<'a>;
    type Done = Commit;

    fn view(&mut self) -> Result<RowsView<'_>, Failure> {
        Ok(RowsView {
            table: &self.piece.table,
            origin: &self.piece.origin,
            rows: (self.build)(&self.piece.arguments)?,
        })
    }

    async fn forward(self, _: Arc<Server>, _: Cluster) -> Result<Commit, Failure> {
        Err(Failure::unsupported(
            "replication to a server whose tables are in another cluster",
        ))
    }
}

struct RowsView<'a> {
    table: &'a TableName,
    origin: &'a Origin,
    rows: Vec<ReplicatedRow<'a>>,
}

impl Judged for RowsView<'_> {
    fn action(&self) -> Action {
        Action::Write
    }

    fn target(&self) -> Target<'_> {
        Target::Server
    }

    fn describe(&self, description: &mut Description) {
        description.table(self.table);
        description.mutations(self.rows.iter().map(|row| row.row));
    }

    fn class(&self) -> Class {
        Class::User
    }
}

impl View for RowsView<'_> {
    type Done = Commit;

    fn charge(&self, _: &Server, _: &Caller) -> Result<Charged, Failure> {
        Ok(Charged::NOTHING)
    }

    fn is_short(&self) -> bool {
        self.rows.iter().map(|row| row.cells.len()).sum::<usize>() <= INLINE_CELLS
    }

    fn attempt(self, server: &Server, engine: &Engine, _: ReadTier) -> Result<Attempt<Commit>, Failure> {
        let commit = engine.apply_replicated(self.table, &self.rows, self.origin)?;
        server.load().heat.record_replicated(self.table, &self.rows);
        Ok(Attempt::Done(commit))
    }
}

/// The time, in milliseconds since 1970.
pub(crate) fn wall_ms(server: &Server) -> u64 {
    server.engine().clock().wall_ms()
}

/// Refuses a caller who may not replicate to this server, and a server without tables of its own.
pub(crate) fn enter(server: &Server, caller: &Caller) -> Result<(), Failure> {
    let asked = (Action::Write, Target::Server);
    pipeline::run_admin(server, caller, asked, |backend| backend.engine().map(drop))
}

/// Applies the rows that `build` makes of the piece. The caller waits for the commit, or for a later one.
pub(crate) async fn apply<A, B>(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    piece: Piece<A>,
    build: B,
) -> Result<Commit, Failure>
where
    A: Clone + Send + Sync + 'static,
    B: for<'a> Fn(&'a A) -> Result<Vec<ReplicatedRow<'a>>, Failure> + Copy + Send + 'static,
{
    loop {
        let piece = piece.clone();
        let applied = pipeline::run(server, call, ReplicatedRows { piece, build }).await;
        match applied {
            Err(failure) if failure.is_busy() && call.began().elapsed() < BUSY_MAX => {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            applied => return applied,
        }
    }
}

/// Loads a file of the source into all regions of the table that have rows of it. Returns the number of
/// its cells.
pub(crate) fn load(
    call: &AdminCall,
    table: &TableName,
    family: &[u8],
    path: &Path,
    gone: &AtomicBool,
) -> Result<u64, Failure> {
    let asked = (Action::Write, Target::Server);
    pipeline::run_admin(call.server(), call.caller(), asked, |backend| {
        let engine = backend.engine()?;
        let file = LoadFile {
            family: family.to_vec(),
            path: path.to_owned(),
        };
        let mut cells = 0;
        for region in engine.regions(table)? {
            cells += engine.load_replicated(region.id, &file, gone)?;
        }
        Ok(cells)
    })
}
