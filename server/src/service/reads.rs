//! Gets: answered from memory on the network thread, from disk on the pool. A get whose result does
//! not fit into the memory for calls also goes to the pool, where it may wait for memory.

use std::sync::Arc;

use basalt_client::native::Cluster;
use basalt_engine::cell::{CellBatch, OnShortage};
use basalt_engine::filter::UserFilter;
use basalt_engine::op::{ReadSpec, ReadTier};
use basalt_engine::schema::TableName;
use basalt_engine::{Engine, Error};
use basalt_security::rights::ColumnFilter;
use bytes::Bytes;

use super::Failure;
use super::call::Call;
use super::charge::Charged;
use super::describe::Description;
use super::pipeline::{self, Attempt, Judged, Request, View};
use super::remote::data;
use super::user_code;
use crate::limits::admission::{Class, MemoryPermit};
use crate::security::{self, Action, Caller, Columns, Target, Visit};
use crate::server::Server;

/// A multi-get longer than this does not hold the network thread.
const INLINE_GETS: usize = 64;

/// Maximum number of gets of later calls whose blocks are read ahead.
pub(crate) const AHEAD_MAX: usize = 256;

/// Memory of the filters of a call, reserved filter by filter as they are built. A short filter text
/// may need much memory.
#[derive(Debug, Default)]
pub(crate) struct FilterMemory {
    permit: Option<MemoryPermit>,
}

impl FilterMemory {
    /// Reserves the filter of one more get.
    pub(crate) fn add_of(&mut self, server: &Server, spec: &ReadSpec) -> Result<(), Failure> {
        let filter = spec.filter.as_ref();
        self.add(server, filter.map_or(0, |filter| filter.memory_bytes()))
    }

    /// Reserves the memory of one more filter.
    pub(crate) fn add(&mut self, server: &Server, bytes: usize) -> Result<(), Failure> {
        if bytes == 0 {
            return Ok(());
        }
        let admission = server.admission();
        let permit = self
            .permit
            .get_or_insert_with(|| MemoryPermit::empty(admission.memory()));
        permit
            .try_add(bytes as u64)
            .inspect_err(|busy| admission.count(*busy))?;
        Ok(())
    }
}

/// The rows that gets found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) batch: CellBatch,
    /// For each get in order, its row in `batch`.
    pub(crate) rows: Vec<Option<usize>>,
    /// Number of gets of later calls whose blocks were read ahead ([`get_before`]).
    pub(crate) ahead: usize,
}

/// The filter of a read, if it is of a user's class.
fn user_filter(spec: &ReadSpec) -> Option<&UserFilter> {
    spec.filter.as_ref()?.user_code()
}

/// Gets of one call, some of them done.
struct Gets {
    table: TableName,
    /// The gets, and behind the first `count` those of later calls, for [`Found::ahead`].
    wanted: Vec<(Bytes, ReadSpec)>,
    count: usize,
    found: Found,
    max_bytes: usize,
}

impl Gets {
    /// Runs the remaining gets where they may read from disk. From the first one on that is not in
    /// memory, the blocks of many gets are read together.
    fn run_on_pool(&mut self, server: &Server, engine: &Engine) -> Result<(), Failure> {
        while !self.run(server, engine, ReadTier::Memory, self.count)? {
            let done = self.found.rows.len();
            let mut end = done + 1;
            if let rest @ [_, _, ..] = &self.wanted[done..] {
                end = done + engine.read_ahead(&self.table, rest);
                self.found.ahead = end.saturating_sub(self.count);
            }
            self.run(server, engine, ReadTier::All, end)?;
        }
        Ok(())
    }

    /// Runs the gets before number `end`; `false` when the next one is not in memory, or there is no
    /// memory for its result.
    fn run(&mut self, server: &Server, engine: &Engine, tier: ReadTier, end: usize) -> Result<bool, Failure> {
        while self.found.rows.len() < end.min(self.count)
            && let Some((row, spec)) = self.wanted.get(self.found.rows.len())
        {
            let before = self.found.batch.row_count();
            if let Some(filter) = user_filter(spec) {
                if tier == ReadTier::Memory {
                    return Ok(false);
                }
                user_code::get(
                    server,
                    engine,
                    &self.table,
                    row,
                    (spec, filter),
                    &mut self.found.batch,
                )?;
                self.end_get(server, before)?;
                continue;
            }
            match engine.get_within(&self.table, row, spec, tier, &mut self.found.batch) {
                Ok(()) => {}
                Err(Error::NotInMemory) => {
                    self.found.batch.abandon_row();
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
            self.end_get(server, before)?;
        }
        Ok(true)
    }

    /// Records the next get, whose row is in the batch behind the first `before` rows if it was found.
    fn end_get(&mut self, server: &Server, before: usize) -> Result<(), Failure> {
        let (row, _) = &self.wanted[self.found.rows.len()];
        server
            .load()
            .heat
            .record_read(&self.table, row, &self.found.batch, before);
        let is_there = self.found.batch.row_count() > before;
        self.found.rows.push(is_there.then_some(before));
        if self.found.batch.data_bytes() > self.max_bytes {
            return Err(Failure::from(Error::RowTooBig(format!(
                "the answer is larger than {} bytes (server.max_response_bytes); ask for fewer rows or columns, or scan \
                 with a batch size",
                self.max_bytes
            ))));
        }
        Ok(())
    }
}

impl Request for Gets {
    type View<'a> = &'a mut Self;
    type Done = Found;

    fn view(&mut self) -> Result<&mut Self, Failure> {
        Ok(self)
    }

    fn go_to_pool(&mut self, _server: &Server) {
        self.found.batch.set_on_shortage(OnShortage::Wait);
    }

    fn narrow(&mut self, granted: &ColumnFilter) -> bool {
        let wanted = &mut self.wanted[..self.count];
        wanted.iter_mut().all(|(_, spec)| security::narrow(spec, granted))
    }

    async fn forward(mut self, server: Arc<Server>, cluster: Cluster) -> Result<Found, Failure> {
        let rows = data::get(&cluster, &self.table, &self.wanted[..self.count]).await?;
        for row in &rows {
            let before = self.found.batch.row_count();
            if let Some(row) = row {
                data::add(&mut self.found.batch, row)?;
            }
            self.end_get(&server, before)?;
        }
        Ok(self.found)
    }

    fn read(found: &Found) -> Option<&CellBatch> {
        Some(&found.batch)
    }
}

impl Columns for Gets {
    fn visit(&self, visit: &mut Visit<'_>) {
        for (_, spec) in &self.wanted[..self.count] {
            security::visit_spec(spec, visit);
        }
    }
}

impl Judged for &mut Gets {
    fn action(&self) -> Action {
        Action::Read
    }

    fn target(&self) -> Target<'_> {
        Target::Cells {
            table: &self.table,
            columns: *self,
        }
    }

    fn describe(&self, description: &mut Description) {
        description.table(&self.table);
        description.gets(self.wanted[..self.count].iter().map(|(row, _)| &row[..]));
    }

    fn class(&self) -> Class {
        Class::of_read(&self.table)
    }
}

impl View for &mut Gets {
    type Done = Found;
    fn charge(&self, server: &Server, caller: &Caller) -> Result<Charged, Failure> {
        server.charge_gets(caller, &self.table, &self.wanted[..self.count])
    }

    fn is_short(&self) -> bool {
        self.count <= INLINE_GETS && !self.wanted.iter().any(|(_, spec)| user_filter(spec).is_some())
    }

    fn attempt(self, server: &Server, engine: &Engine, tier: ReadTier) -> Result<Attempt<Found>, Failure> {
        if tier == ReadTier::All {
            self.run_on_pool(server, engine)?;
        } else if !self.run(server, engine, tier, self.count)? {
            return Ok(Attempt::Unfinished);
        }
        Ok(Attempt::Done(std::mem::take(&mut self.found)))
    }
}

/// Reads these rows, in order.
pub(crate) fn get(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    table: TableName,
    wanted: Vec<(Bytes, ReadSpec)>,
) -> impl Future<Output = Result<Found, Failure>> {
    get_before(server, call, table, wanted, Vec::new)
}

/// Reads these rows, in order. If they are not in memory, the blocks that the gets of later calls
/// need are read together with theirs.
pub(crate) fn get_before(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    table: TableName,
    wanted: Vec<(Bytes, ReadSpec)>,
    later: impl FnOnce() -> Vec<(Bytes, ReadSpec)>,
) -> impl Future<Output = Result<Found, Failure>> {
    let count = wanted.len();
    let found = Found {
        batch: call.take_batch(),
        rows: Vec::with_capacity(count),
        ahead: 0,
    };
    let gets = Gets {
        table,
        wanted,
        count,
        found,
        max_bytes: server.config().server.max_response_bytes,
    };
    pipeline::run_with(server, call, gets, |gets| gets.wanted.extend(later()))
}
