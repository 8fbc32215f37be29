//! Regions: look-up, flush, compaction, split, merge, loads, and which server has which.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use basalt_engine::RegionId;
use basalt_engine::engine::{Compacting, LoadFile, RegionInfo, RegionStats, RegionVersion, ServerName};
use basalt_engine::schema::{Escaped, TableName, TableState};
use basalt_engine::{Engine, Error};
use bytes::Bytes;

use super::{AdminCall, run_admin};
use crate::cluster::regions::{self, Target as Found};
use crate::security::{Action, Columns, Target, Visit};
use crate::service::regions::{RegionName, by_name, gone};
use crate::service::{Backend, Failure};

/// Runs `work` on a region that was found: it needs `action` on the region's table.
fn on_region<T>(
    call: &AdminCall,
    action: Action,
    region: &RegionInfo,
    work: impl FnOnce(&Engine) -> Result<T, Failure>,
) -> Result<T, Failure> {
    run_admin(call, action, Target::Table(&region.table), |backend| {
        work(backend.engine()?)
    })
}

/// The region with this name.
pub(crate) fn named(call: &AdminCall, name: RegionName<'_>) -> Result<Arc<RegionInfo>, Failure> {
    let region = by_name(call.server(), call.caller(), name)?;
    on_region(call, Action::Know, &region, |_| Ok(Arc::clone(&region)))
}

/// The region of that full name, encoded name, or printed name.
pub(crate) fn printed(call: &AdminCall, name: &[u8]) -> Result<RegionInfo, Failure> {
    match target(call, name)? {
        Found::Region(region) => Ok(region),
        Found::Table(table) => Err(Error::NoSuchRegion(format!("{table} is a table, not a region")).into()),
    }
}

/// The table or region of that name ([`regions::target`]). Says nothing of what does not exist to
/// callers who may not know which tables do.
fn target(call: &AdminCall, name: &[u8]) -> Result<Found, Failure> {
    let found = match Backend::of(call.server()) {
        Backend::Local(engine) => regions::target(engine, name),
        // Without a look-up: the call itself finds out whether there is such a table.
        Backend::Remote(_) => TableName::parse(name).map(Found::Table),
    };
    let table = match &found {
        Ok(Found::Table(table)) => Some(table),
        Ok(Found::Region(region)) => Some(&region.table),
        Err(_) => None,
    };
    let of = table.map_or(Target::Server, Target::Table);
    let action = if found.is_ok() {
        Action::Know
    } else {
        Action::Connect
    };
    run_admin(call, action, of, |_| Ok(()))?;
    Ok(found?)
}

/// The table of what was found.
fn table_of(found: &Found) -> &TableName {
    match found {
        Found::Table(table) => table,
        Found::Region(region) => &region.table,
    }
}

/// The region of a row.
pub(crate) fn of_row(call: &AdminCall, table: &TableName, row: &[u8]) -> Result<RegionInfo, Failure> {
    run_admin(call, Action::Know, Target::Table(table), |backend| {
        backend.region_of(table, row)
    })
}

/// The last region whose row in hbase:meta is at or before this one, of whatever table.
pub(crate) fn before(call: &AdminCall, meta_row: &[u8]) -> Result<Option<RegionInfo>, Failure> {
    let found = run_admin(call, Action::Connect, Target::Server, |backend| {
        backend.region_before(meta_row)
    })?;
    Ok(found.filter(|region| call.may_know(&region.table)))
}

/// Flushes a table or region, and waits.
pub(crate) fn flush(call: &AdminCall, table_or_region: &[u8]) -> Result<(), Failure> {
    let found = target(call, table_or_region)?;
    run_admin(
        call,
        Action::Create,
        Target::Table(table_of(&found)),
        |backend| match &found {
            Found::Table(table) => backend.flush_table(table, &[] as &[&[u8]]),
            Found::Region(region) => Ok(backend.engine()?.flush_region(region.id)?),
        },
    )
}

/// Flushes a region that a native client names, and waits. The family, if one is named, must exist.
pub(crate) fn flush_named(
    call: &AdminCall,
    name: RegionName<'_>,
    family: Option<&Bytes>,
) -> Result<(), Failure> {
    let region = named(call, name)?;
    on_region(call, Action::Create, &region, |engine| {
        engine.check_flushed_families(&region.table, family.map_or(&[], std::slice::from_ref))?;
        engine.flush_region(region.id).map_err(|error| gone(error, name))
    })
}

/// Compacts a table or region, or one family of it; with `wait`, returns when it is done.
pub(crate) fn compact(
    call: &AdminCall,
    table_or_region: &[u8],
    family: Option<&[u8]>,
    major: bool,
    wait: bool,
) -> Result<(), Failure> {
    let found = target(call, table_or_region)?;
    run_admin(
        call,
        Action::Create,
        Target::Table(table_of(&found)),
        |backend| match &found {
            Found::Table(table) => backend.compact_table(table, family, major, wait),
            Found::Region(region) => {
                let engine = backend.engine()?;
                Ok(engine.compact_region(region.id, family, major, wait)?)
            }
        },
    )
}

/// Requests a compaction of a region that a native client names.
pub(crate) fn compact_named(
    call: &AdminCall,
    name: RegionName<'_>,
    family: Option<&[u8]>,
    major: bool,
) -> Result<(), Failure> {
    let region = named(call, name)?;
    on_region(call, Action::Create, &region, |engine| {
        let requested = engine.compact_region(region.id, family, major, false);
        requested.map_err(|error| gone(error, name))
    })
}

/// The requested compactions of a region that are not done.
pub(crate) fn compactions(call: &AdminCall, region: &RegionInfo) -> Result<Compacting, Failure> {
    on_region(call, Action::Know, region, |engine| {
        Ok(engine.compactions_of(region.id))
    })
}

/// Splits a region, or of a table the region that holds the key, or every region of it.
pub(crate) fn split(call: &AdminCall, table_or_region: &[u8], key: Option<&[u8]>) -> Result<(), Failure> {
    let found = target(call, table_or_region)?;
    let table = table_of(&found).clone();
    run_admin(call, Action::Admin, Target::Table(&table), |backend| {
        let engine = backend.engine()?;
        let regions = match (found, key) {
            (Found::Region(region), _) => vec![region],
            (Found::Table(table), Some(key)) => vec![engine.region_of(&table, key)?],
            (Found::Table(table), None) => engine.regions(&table)?,
        };
        for region in regions {
            engine.split_region(region.id, key)?;
        }
        Ok(())
    })
}

/// Splits the region of `table` that begins at `start` and was created at `created_ms`.
pub(crate) fn split_exact(
    call: &AdminCall,
    table: &TableName,
    (start, created_ms): (&[u8], u64),
    key: Option<&[u8]>,
) -> Result<(), Failure> {
    let region = of_row(call, table, start)?;
    on_region(call, Action::Admin, &region, |engine| {
        if region.created_ms != created_ms {
            let gone = format!("the region of {table} with id {created_ms} is gone");
            return Err(Error::NotServingRegion(gone).into());
        }
        engine.split_region(region.id, key)?;
        Ok(())
    })
}

/// Removes all data of the region of `table` that begins at `start` and was created at `created_ms`.
pub(crate) fn truncate(
    call: &AdminCall,
    table: &TableName,
    (start, created_ms): (&[u8], u64),
) -> Result<(), Failure> {
    let region = of_row(call, table, start)?;
    on_region(call, Action::Admin, &region, |_| {
        if region.created_ms == created_ms && region.start == start {
            return Ok(());
        }
        let gone = format!("the region of {table} with id {created_ms} is gone");
        Err(Error::NoSuchRegion(gone).into())
    })?;
    check_open(call, &region)?;
    on_region(call, Action::Admin, &region, |engine| {
        engine.truncate_region(region.id)?;
        call.changed("region truncated", Target::Table(&region.table));
        Ok(())
    })
}

/// A region's figures and the version that readers see now; `None` if it is gone meanwhile.
pub(crate) fn view(
    call: &AdminCall,
    region: &RegionInfo,
) -> Result<Option<(RegionStats, Arc<RegionVersion>)>, Failure> {
    on_region(call, Action::Know, region, |engine| {
        Ok(engine.region_view(&region.encoded_name))
    })
}

/// The requested compactions of all regions that are not done.
pub(crate) fn all_compactions(call: &AdminCall) -> Result<HashMap<RegionId, Compacting>, Failure> {
    run_admin(call, Action::Connect, Target::Server, |backend| {
        Ok(backend.engine()?.compactions())
    })
}

/// Merges neighbouring regions; returns the new one.
pub(crate) fn merge(call: &AdminCall, regions: &[Arc<RegionInfo>]) -> Result<RegionInfo, Failure> {
    let Some(first) = regions.first() else {
        return Err(Failure::illegal_argument("a merge needs regions"));
    };
    let ids: Vec<_> = regions.iter().map(|region| region.id).collect();
    for other in &regions[1..] {
        on_region(call, Action::Admin, other, |_| Ok(()))?;
    }
    on_region(call, Action::Admin, first, |engine| {
        Ok(engine.merge_regions(&ids)?)
    })
}

/// Figures of the regions of the tables that the caller may know, or of one table.
pub(crate) fn stats(call: &AdminCall, table: Option<&TableName>) -> Result<Vec<RegionStats>, Failure> {
    let Some(table) = table else {
        let mut stats = run_admin(call, Action::Connect, Target::Server, |backend| {
            Ok(backend.engine()?.region_stats())
        })?;
        stats.retain(|stats| call.may_know(&stats.region.table));
        return Ok(stats);
    };
    run_admin(call, Action::Know, Target::Table(table), |backend| {
        Ok(backend.engine()?.table_region_stats(table)?)
    })
}

/// Loads files into a region; returns the number of cells, or `None` if a file has rows outside the
/// region. Stops when `gone` is set.
pub(crate) fn load(
    call: &AdminCall,
    region: &RegionInfo,
    name: RegionName<'_>,
    files: &[LoadFile],
    gone_flag: &AtomicBool,
) -> Result<Option<u64>, Failure> {
    let families = FamiliesOf(files.iter().map(|file| &file.family[..]).collect());
    run_admin(call, Action::Create, families.of(&region.table), |backend| {
        match backend.engine()?.bulk_load(region.id, files, gone_flag) {
            Ok(cells) => Ok(Some(cells)),
            Err(Error::WrongRegion(what)) => {
                tracing::info!("bulk load: nothing was loaded: {what}");
                Ok(None)
            }
            // The region may have been split or merged while the call waited.
            Err(error) => Err(gone(error, name)),
        }
    })
}

/// The families of files that are loaded.
struct FamiliesOf<'f>(Vec<&'f [u8]>);

impl FamiliesOf<'_> {
    fn of<'t>(&'t self, table: &'t TableName) -> Target<'t> {
        Target::Cells { table, columns: self }
    }
}

impl Columns for FamiliesOf<'_> {
    fn visit(&self, visit: &mut Visit<'_>) {
        self.0.iter().for_each(|family| visit(family, None));
    }
}

/// Lets a caller through that may load files into these families, before the files are looked for.
pub(crate) fn may_load_into<'f>(
    call: &AdminCall,
    table: &TableName,
    families: impl Iterator<Item = &'f [u8]>,
) -> Result<(), Failure> {
    let families = FamiliesOf(families.collect());
    run_admin(call, Action::Create, families.of(table), |_| Ok(()))
}

/// Lets a caller through that may load files into some part of the table.
pub(crate) fn may_load(call: &AdminCall, table: &TableName) -> Result<(), Failure> {
    run_admin(call, Action::Create, Target::Somewhere(table), |_| Ok(()))
}

/// Whether files may be loaded into a table: it is enabled.
pub(crate) fn check_loadable(call: &AdminCall, table: &TableName) -> Result<(), Failure> {
    run_admin(
        call,
        Action::Create,
        Target::Somewhere(table),
        |backend| match backend.engine()?.describe_table(table)? {
            (_, TableState::Enabled) => Ok(()),
            (_, state) => Err(Error::TableNotEnabled {
                table: table.clone(),
                state: state.as_str(),
            }
            .into()),
        },
    )
}

/// The state of a region that a change of its place expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closed,
}

/// Moves a region to the server at this position, or to the least loaded one, if there are several.
pub(crate) fn move_to(call: &AdminCall, region: &RegionInfo, to: Option<u16>) -> Result<(), Failure> {
    on_region(call, Action::Admin, region, |engine| {
        let placement = call.server().placement();
        if placement.servers().len() > 1 {
            placement.move_region(engine, region, to)?;
        }
        Ok(())
    })
}

/// Assigns a region that has no server.
pub(crate) fn assign(call: &AdminCall, region: &RegionInfo) -> Result<(), Failure> {
    on_region(call, Action::Admin, region, |engine| {
        Ok(call.server().placement().assign(engine, region)?)
    })
}

/// Takes a region from its server.
pub(crate) fn unassign(call: &AdminCall, region: &RegionInfo) -> Result<(), Failure> {
    on_region(call, Action::Admin, region, |engine| {
        Ok(call.server().placement().unassign(engine, region)?)
    })
}

/// Fails unless the region is open, and its table enabled.
pub(crate) fn check_open(call: &AdminCall, region: &RegionInfo) -> Result<(), Failure> {
    check_state(call, region, State::Open)
}

/// Fails unless the region is closed, and its table enabled.
pub(crate) fn check_closed(call: &AdminCall, region: &RegionInfo) -> Result<(), Failure> {
    check_state(call, region, State::Closed)
}

/// Refuses a region in another state, and one of a disabled table. The classes and texts are HBase's.
fn check_state(call: &AdminCall, region: &RegionInfo, expected: State) -> Result<(), Failure> {
    on_region(call, Action::Admin, region, |engine| {
        let (_, table) = engine.describe_table(&region.table)?;
        let is_closed =
            table == TableState::Disabled || call.server().placement().place(region.id).is_unassigned;
        let state = if is_closed { State::Closed } else { State::Open };
        let name = region.name();
        if state != expected {
            let state = if is_closed { "CLOSED" } else { "OPEN" };
            let text = format!("Unexpected state for {}, state={state}", Escaped(&name));
            return Err(Failure::do_not_retry_region(text));
        }
        if table == TableState::Disabled {
            let text = format!("{} is disabled for {}", region.table, Escaped(&name));
            return Err(Failure::do_not_retry(text));
        }
        Ok(())
    })
}

/// Evens out the regions; returns how many were moved, or would be in a dry run.
pub(crate) fn balance(call: &AdminCall, is_dry_run: bool) -> Result<usize, Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        let placement = call.server().placement();
        if is_dry_run {
            return Ok(placement.plan_balance());
        }
        Ok(placement.balance(backend.engine()?)?)
    })
}

/// The position of the server that `is_called` finds.
pub(crate) fn server_position(call: &AdminCall, is_called: impl Fn(&ServerName) -> bool) -> Option<u16> {
    let found = call.server().placement().servers().iter().position(is_called);
    found.and_then(|position| u16::try_from(position).ok())
}
