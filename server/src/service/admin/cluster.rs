//! The state of the server and its work, quotas, the slow log, and calls of tests.

use std::sync::Arc;

use basalt_engine::engine::{QueueStats, RegionStats, Removed, Work};
use basalt_engine::jobs::RunningJob;
use basalt_engine::schema::{Switch, TableName};

use super::{AdminCall, run_admin};
use crate::ephemeral::faults::{Fault, Given, check_all};
use crate::observe::slow_log::{Query, Record};
use crate::security::{Action, Target};
use crate::server::Server;
use crate::service::quotas::{self, Change, Listed, Wanted};
use crate::service::{Backend, Failure, testing};

fn of_server<T>(
    call: &AdminCall,
    action: Action,
    work: impl FnOnce(Backend<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    run_admin(call, action, Target::Server, work)
}

/// Lets a question through that everybody may ask, and that needs no table.
pub(crate) fn ask<T>(call: &AdminCall, answer: impl FnOnce(&Server) -> T) -> Result<T, Failure> {
    of_server(call, Action::Connect, |_| Ok(answer(call.server())))
}

/// Lets a change of the server through.
pub(crate) fn operate<T>(
    call: &AdminCall,
    change: impl FnOnce(&Server) -> Result<T, Failure>,
) -> Result<T, Failure> {
    of_server(call, Action::Admin, |_| change(call.server()))
}

/// Lets a caller through that may load files into every table.
pub(crate) fn load(call: &AdminCall) -> Result<(), Failure> {
    of_server(call, Action::Create, |_| Ok(()))
}

/// Lets a call of an endpoint of a table's region through.
pub(crate) fn exec(call: &AdminCall, table: &TableName) -> Result<(), Failure> {
    run_admin(call, Action::Exec, Target::Table(table), |_| Ok(()))
}

/// The id of the database. Asked before a client has called: a connection's greeting has it.
pub(crate) fn id(server: &Server) -> String {
    server.engine().cluster_id().to_string()
}

/// The id of the database.
pub(crate) fn cluster_id(call: &AdminCall) -> Result<String, Failure> {
    of_server(call, Action::Connect, |backend| backend.cluster_id())
}

/// Time on the server's clock, in milliseconds since 1970.
pub(crate) fn wall_ms(call: &AdminCall) -> u64 {
    call.server().engine().clock().wall_ms()
}

/// Pauses background work, or ends the pause; returns whether it was paused. Logs a change, since no
/// other record of the caller exists.
pub(crate) fn pause(call: &AdminCall, work: Work, paused: bool) -> Result<bool, Failure> {
    of_server(call, Action::Admin, |backend| {
        let before = backend.engine()?.pause(work, paused);
        if before != paused {
            let what = match work {
                Work::Flushes => "flushes",
                Work::Compactions => "compactions",
            };
            let now = if paused { "paused" } else { "no longer paused" };
            tracing::info!("{what} are {now}");
        }
        Ok(before)
    })
}

/// Background work that runs and waits.
#[derive(Debug)]
pub(crate) struct Background {
    /// Each with the encoded name of its region.
    pub(crate) running: Vec<(RunningJob, Option<String>)>,
    pub(crate) queues: QueueStats,
    pub(crate) flushes_paused: bool,
    pub(crate) compactions_paused: bool,
}

pub(crate) fn background(call: &AdminCall) -> Result<Background, Failure> {
    of_server(call, Action::Admin, |backend| {
        let engine = backend.engine()?;
        let running = engine.jobs().running().into_iter();
        Ok(Background {
            running: running
                .map(|job| {
                    let region = engine.encoded_name(job.info.region);
                    (job, region)
                })
                .collect(),
            queues: engine.queues(),
            flushes_paused: engine.is_paused(Work::Flushes),
            compactions_paused: engine.is_paused(Work::Compactions),
        })
    })
}

/// Turns a switch of background work; returns its value before.
pub(crate) fn turn(call: &AdminCall, switch: Switch, on: bool) -> Result<bool, Failure> {
    of_server(call, Action::Admin, |backend| {
        Ok(backend.engine()?.turn(switch, on)?)
    })
}

/// Whether a switch of background work is on.
pub(crate) fn is_on(call: &AdminCall, switch: Switch) -> Result<bool, Failure> {
    of_server(call, Action::Connect, |backend| {
        Ok(backend.engine()?.is_on(switch))
    })
}

/// Requests a run of the normalizer over these tables; `false` while it is switched off.
pub(crate) fn normalize(call: &AdminCall, tables: impl Iterator<Item = TableName>) -> Result<bool, Failure> {
    of_server(call, Action::Admin, |backend| {
        Ok(backend.engine()?.normalize(tables))
    })
}

/// Drops blocks from the cache: those of a table, or all. Returns how many.
pub(crate) fn clear_block_cache(call: &AdminCall, table: Option<&TableName>) -> Result<u64, Failure> {
    of_server(call, Action::Admin, |backend| {
        Ok(backend.engine()?.clear_block_cache(table)?)
    })
}

/// Figures of the memstores.
#[derive(Debug)]
pub(crate) struct Memstores {
    pub(crate) used_bytes: u64,
    pub(crate) flush_queue: usize,
    pub(crate) blocked_writes: u64,
    /// Those with cells in memory, the largest first.
    pub(crate) regions: Vec<RegionStats>,
}

pub(crate) fn memstores(call: &AdminCall) -> Result<Memstores, Failure> {
    of_server(call, Action::Admin, |backend| {
        let engine = backend.engine()?;
        let mut regions = engine.region_stats();
        regions.retain(|stats| stats.memstore_bytes > 0);
        regions.sort_by_key(|stats| std::cmp::Reverse(stats.memstore_bytes));
        Ok(Memstores {
            used_bytes: engine.memstore_bytes(),
            flush_queue: engine.queues().flushes,
            blocked_writes: engine.counters().blocked_writes.get(),
            regions,
        })
    })
}

/// Blocks in the cache, by priority.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) capacity_bytes: u64,
    /// Bytes of blocks with single, multi and IN_MEMORY priority, and of those that are in use.
    pub(crate) bytes: [u64; 4],
    pub(crate) blocks: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) evictions: u64,
}

pub(crate) fn cache(call: &AdminCall) -> Result<Cache, Failure> {
    of_server(call, Action::Admin, |backend| {
        let usage = backend.engine()?.cache_usage();
        let [single, multi, in_memory] = usage.bytes;
        Ok(Cache {
            capacity_bytes: usage.capacity_bytes,
            bytes: [single, multi, in_memory, usage.pinned_bytes],
            blocks: usage.blocks.iter().sum(),
            hits: usage.hits.iter().sum(),
            misses: usage.misses,
            evictions: usage.evictions.iter().sum(),
        })
    })
}

/// Figures of the server.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) namespaces: usize,
    pub(crate) user_tables: usize,
    pub(crate) memstore_bytes: u64,
    pub(crate) cache_bytes: u64,
    pub(crate) flushes: u64,
    pub(crate) compactions: u64,
    pub(crate) queues: QueueStats,
    /// Time on the server's clock, in milliseconds since 1970.
    pub(crate) wall_ms: u64,
}

pub(crate) fn status(call: &AdminCall) -> Result<Status, Failure> {
    of_server(call, Action::Connect, |backend| {
        let engine = backend.engine()?;
        let tables = engine.tables();
        let counters = engine.counters();
        Ok(Status {
            namespaces: engine.namespaces().len(),
            user_tables: tables.iter().filter(|(table, _)| !table.name.is_system()).count(),
            memstore_bytes: engine.memstore_bytes(),
            cache_bytes: engine.cache_usage().bytes.iter().sum(),
            flushes: counters.flushes.get(),
            compactions: counters.minor_compactions.get() + counters.major_compactions.get(),
            queues: engine.queues(),
            wall_ms: engine.clock().wall_ms(),
        })
    })
}

/// Sets a quota, or takes one away. HBase asks for the right to administer a table for its quota; for
/// others, for the server.
pub(crate) fn set_quota(call: &AdminCall, change: Change) -> Result<(), Failure> {
    let table = change.table.clone().filter(|_| change.user.is_none());
    let target = table.as_ref().map_or(Target::Server, Target::Table);
    run_admin(call, Action::Admin, target, |_| {
        quotas::set(call.server(), change)
    })
}

pub(crate) fn list_quotas(call: &AdminCall, wanted: Wanted<'_>) -> Result<Vec<Listed>, Failure> {
    of_server(call, Action::Admin, |_| {
        quotas::list(call.server().admission(), wanted)
    })
}

/// Records of the slow log, newest first.
pub(crate) fn slow_log(call: &AdminCall, query: &Query) -> Result<Vec<Arc<Record>>, Failure> {
    ask(call, |server| server.load().slow_log.find(query))
}

/// Removes all records of the slow log; `false` when it is off.
pub(crate) fn clear_slow_log(call: &AdminCall) -> Result<bool, Failure> {
    operate(call, |server| Ok(server.load().slow_log.clear()))
}

/// Empties an ephemeral server ([`testing::reset`]).
pub(crate) fn reset(call: &AdminCall, keep_clock: bool) -> Result<Removed, Failure> {
    operate(call, |server| testing::reset(server, keep_clock))
}

/// Moves the clock of an ephemeral server forward; returns the new time.
pub(crate) fn advance_clock(call: &AdminCall, ms: i64) -> Result<i64, Failure> {
    operate(call, |server| testing::advance_clock(server, ms))
}

/// Arms faults instead of the present ones; returns them.
pub(crate) fn set_faults(
    call: &AdminCall,
    given: impl ExactSizeIterator<Item = Result<Given, String>>,
) -> Result<Vec<Fault>, Failure> {
    operate(call, |server| {
        let faults = testing::faults(server, "basaltSetFaults")?;
        faults.set(check_all(given).map_err(Failure::illegal_argument)?);
        Ok(faults.list())
    })
}

/// The faults that are armed, each with the calls that are left.
pub(crate) fn list_faults(call: &AdminCall) -> Result<Vec<Fault>, Failure> {
    operate(call, |server| Ok(testing::faults(server, "basaltFaults")?.list()))
}
