//! Gets: answered from memory on the network thread, from disk on the pool. A get whose result does
//! not fit into the memory for calls also goes to the pool, where it may wait for memory.

use std::sync::Arc;

use basalt_engine::Error;
use basalt_engine::cell::{CellBatch, OnShortage};
use basalt_engine::op::{Get, ReadSpec, ReadTier};
use basalt_engine::schema::TableName;
use bytes::Bytes;

use super::charge::hold_back;
use super::{Caller, Failure};
use crate::limits::admission::{Class, MemoryPermit};
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
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) batch: CellBatch,
    /// For each get in order, its row in `batch`.
    pub(crate) rows: Vec<Option<usize>>,
    /// Number of gets of later calls whose blocks were read ahead ([`get_before`]).
    pub(crate) ahead: usize,
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
    fn run_on_pool(&mut self, server: &Server) -> Result<(), Failure> {
        while !self.run(server, ReadTier::Memory, self.count)? {
            let done = self.found.rows.len();
            let mut end = done + 1;
            if let rest @ [_, _, ..] = &self.wanted[done..] {
                end = done + server.engine().read_ahead(&self.table, rest);
                self.found.ahead = end.saturating_sub(self.count);
            }
            self.run(server, ReadTier::All, end)?;
        }
        Ok(())
    }

    /// Runs the gets before number `end`; `false` when the next one is not in memory, or there is no
    /// memory for its result.
    fn run(&mut self, server: &Server, tier: ReadTier, end: usize) -> Result<bool, Failure> {
        while self.found.rows.len() < end.min(self.count)
            && let Some((row, spec)) = self.wanted.get_mut(self.found.rows.len())
        {
            spec.tier = tier;
            let before = self.found.batch.row_count();
            let get = Get {
                row,
                spec: std::mem::take(spec),
            };
            let outcome = server.engine().get(&self.table, &get, &mut self.found.batch);
            *spec = get.spec;
            match outcome {
                Ok(()) => {}
                Err(Error::NotInMemory) => {
                    self.found.batch.abandon_row();
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
            server.record_read(&self.table, row, &self.found.batch, before);
            let is_there = self.found.batch.row_count() > before;
            self.found.rows.push(is_there.then_some(before));
            if self.found.batch.data_bytes() > self.max_bytes {
                return Err(Failure::from(Error::RowTooBig(format!(
                    "the answer is larger than {} bytes (thrift.max_response_bytes); ask for fewer rows or columns, or scan \
                     with a batch size",
                    self.max_bytes
                ))));
            }
        }
        Ok(true)
    }
}

/// Reads these rows, in order.
pub(crate) fn get(
    server: &Arc<Server>,
    caller: &mut Caller,
    table: TableName,
    wanted: Vec<(Bytes, ReadSpec)>,
) -> impl Future<Output = Result<Found, Failure>> {
    get_before(server, caller, table, wanted, Vec::new)
}

/// Reads these rows, in order. If they are not in memory, the blocks that the gets of later calls
/// need are read together with theirs.
pub(crate) async fn get_before(
    server: &Arc<Server>,
    caller: &mut Caller,
    table: TableName,
    wanted: Vec<(Bytes, ReadSpec)>,
    later: impl FnOnce() -> Vec<(Bytes, ReadSpec)>,
) -> Result<Found, Failure> {
    server.admission().admit_read(&table)?;
    let charged = server.charge_gets(&table, &wanted)?;
    hold_back(charged.until()).await;
    let count = wanted.len();
    let inline = count <= INLINE_GETS;
    let found = Found {
        batch: caller.take_batch(),
        rows: Vec::with_capacity(count),
        ahead: 0,
    };
    let mut gets = Gets {
        table,
        wanted,
        count,
        found,
        max_bytes: server.config().thrift.max_response_bytes,
    };
    let is_done = inline && gets.run(server, ReadTier::Memory, count)?;
    if !is_done {
        let class = Class::of_read(&gets.table);
        server.admission().admit_to_queue_of(class)?;
        // Boxed, as all that few calls come to: a call's future is moved several times before its first poll.
        gets.found.batch.set_on_shortage(OnShortage::Wait);
        gets.wanted.extend(later());
        let on_pool = server.run_queued(class, move |server| {
            gets.run_on_pool(server)?;
            Ok(gets)
        });
        gets = Box::pin(on_pool).await?;
    }
    server.charge_read(&charged, &gets.found.batch);
    Ok(gets.found)
}
