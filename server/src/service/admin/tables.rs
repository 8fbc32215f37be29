//! Tables and their families.

use std::sync::Arc;

use basalt_engine::Error;
use basalt_engine::engine::{RegionInfo, ServerName};
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName, TableState, rules_of_thumb};
use basalt_security::rights::Scope;

use super::rights::{drop_rights, own};
use super::{AdminCall, run_admin};
use crate::observe::heat::{self, HotTable};
use crate::security::{Action, Target};
use crate::service::backend::Described;
use crate::service::schema::{for_creation, matching};
use crate::service::{Backend, Failure, quotas};

/// Creates a table with regions that begin at these keys, and at the empty one.
pub(crate) fn create(call: &AdminCall, table: TableDescriptor, splits: Vec<Vec<u8>>) -> Result<(), Failure> {
    let name = table.name.clone();
    call.note(Target::Table(&name));
    run_admin(
        call,
        Action::Create,
        Target::Namespace(name.namespace()),
        |backend| {
            note_without_effect(&table);
            note_broken_rules(&table, splits.len() + 1);
            backend.create_table(for_creation(table), splits)?;
            call.changed("created", Target::Table(&name));
            own(call, &name)
        },
    )
}

/// Logs the options that are kept and do nothing: native clients and Thrift have no answer for them.
fn note_without_effect(table: &TableDescriptor) {
    let options = table.without_effect();
    if !options.is_empty() {
        tracing::info!(
            table = %table.name,
            "options of the table are kept and have no effect (docs/compatibility.md): {}",
            options.join(", ")
        );
    }
}

/// Logs the rules of thumb that a new table breaks.
fn note_broken_rules(table: &TableDescriptor, regions: usize) {
    for broken in rules_of_thumb::of_descriptor(table, regions) {
        tracing::warn!(
            table = %table.name,
            "a rule of thumb for schemas is broken: {}; the rule is {}", broken.what, broken.rule
        );
    }
}

/// Drops a table, and its quotas, as HBase does (`MasterQuotasObserver`).
pub(crate) fn drop(call: &AdminCall, table: &TableName) -> Result<(), Failure> {
    change(call, table, "dropped", |backend| {
        backend.drop_table(table)?;
        call.server().load().heat.forget(table);
        let is_of = |scope: &Scope| matches!(scope, Scope::Table { table: other, .. } if other == table);
        drop_rights(call, is_of, |rights| rights.drop_table(table))?;
        quotas::remove_for_table(call.server(), table.clone())
    })
}

/// The rows of a table that most requests go to, at most `limit` of each kind.
pub(crate) fn hot_rows(call: &AdminCall, table: &TableName, limit: i32) -> Result<HotTable, Failure> {
    run_admin(call, Action::Read, Target::Table(table), |backend| {
        let limit = usize::try_from(limit)
            .ok()
            .filter(|limit| (1..=heat::COUNTERS).contains(limit))
            .ok_or_else(|| {
                Failure::illegal_argument(format!(
                    "limit is {limit}, and must be from 1 to {}: a table has that many counters for reads and for writes",
                    heat::COUNTERS
                ))
            })?;
        let heat = &call.server().load().heat;
        if !heat.is_on() {
            return Err(Failure::illegal_argument(
                "hot rows are not counted: key_visualizer.bytes is 0",
            ));
        }
        backend.engine()?.describe_table(table)?;
        let mut hot = heat.hot_rows(table);
        for kind in &mut hot.kinds {
            kind.rows.truncate(limit);
        }
        Ok(hot)
    })
}

/// Removes all rows of a table; with `keep_splits`, its regions stay as they are.
pub(crate) fn truncate(call: &AdminCall, table: &TableName, keep_splits: bool) -> Result<(), Failure> {
    change(call, table, "truncated", |backend| {
        backend.truncate_table(table, keep_splits)
    })
}

pub(crate) fn enable(call: &AdminCall, table: &TableName) -> Result<(), Failure> {
    change(call, table, "enabled", |backend| backend.enable_table(table))
}

pub(crate) fn disable(call: &AdminCall, table: &TableName) -> Result<(), Failure> {
    change(call, table, "disabled", |backend| backend.disable_table(table))
}

/// Replaces a table's descriptor.
pub(crate) fn alter(call: &AdminCall, table: TableDescriptor) -> Result<(), Failure> {
    let name = table.name.clone();
    change(call, &name, "altered", |backend| {
        note_without_effect(&table);
        backend.alter_table(table)
    })
}

pub(crate) fn add_family(
    call: &AdminCall,
    table: &TableName,
    family: FamilyDescriptor,
) -> Result<(), Failure> {
    change(call, table, "family added", |backend| {
        note_without_effect(&TableDescriptor::new(table.clone(), vec![family.clone()]));
        backend.add_family(table, family)
    })
}

pub(crate) fn alter_family(
    call: &AdminCall,
    table: &TableName,
    family: FamilyDescriptor,
) -> Result<(), Failure> {
    change(call, table, "family altered", |backend| {
        note_without_effect(&TableDescriptor::new(table.clone(), vec![family.clone()]));
        backend.alter_family(table, family)
    })
}

pub(crate) fn drop_family(call: &AdminCall, table: &TableName, family: &[u8]) -> Result<(), Failure> {
    change(call, table, "family dropped", |backend| {
        backend.drop_family(table, family)?;
        let is_of = |scope: &Scope| {
            scope.family() == Some(family)
                && matches!(scope, Scope::Table { table: other, .. } if other == table)
        };
        drop_rights(call, is_of, |rights| rights.drop_family(table, family))
    })
}

/// Flushes all regions of a table, and waits. The families, if some are named, must exist.
pub(crate) fn flush(
    call: &AdminCall,
    table: &TableName,
    families: &[impl AsRef<[u8]>],
) -> Result<(), Failure> {
    upkeep(call, table, |backend| backend.flush_table(table, families))
}

/// Requests a compaction of a family in all regions of a table.
pub(crate) fn compact(
    call: &AdminCall,
    table: &TableName,
    family: &[u8],
    major: bool,
) -> Result<(), Failure> {
    upkeep(call, table, |backend| {
        backend.compact_table(table, Some(family), major, false)
    })
}

/// Sets options of a table, or entries in the configuration of a family; those without a value are
/// removed.
pub(crate) fn set_options(
    call: &AdminCall,
    table: &TableName,
    family: Option<&[u8]>,
    changes: &[(&str, Option<&str>)],
) -> Result<(), Failure> {
    let changes: Vec<_> = changes
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.map(str::as_bytes)))
        .collect();
    change(call, table, "options set", |backend| {
        Ok(backend.engine()?.set_options(table, family, &changes)?)
    })
}

/// Runs a change of a table. Once it is made, the audit log has `what` was done.
fn change(
    call: &AdminCall,
    table: &TableName,
    what: &str,
    work: impl FnOnce(Backend<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    upkeep(call, table, work)?;
    call.changed(what, Target::Table(table));
    Ok(())
}

/// Runs work on a table that changes none of its data.
fn upkeep(
    call: &AdminCall,
    table: &TableName,
    work: impl FnOnce(Backend<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    run_admin(call, Action::Create, Target::Table(table), work)
}

/// A table's descriptor and state.
pub(crate) fn describe(call: &AdminCall, table: &TableName) -> Result<Described, Failure> {
    find(call, table)?.ok_or_else(|| Error::NoSuchTable(table.clone()).into())
}

/// A table's descriptor and state; `None` if it does not exist.
pub(crate) fn find(call: &AdminCall, table: &TableName) -> Result<Option<Described>, Failure> {
    run_admin(call, Action::Know, Target::Table(table), |backend| {
        backend.find_table(table)
    })
}

/// A table's descriptor for a client: only those who may change the table see all of it (HBase:
/// `C` or `A`).
pub(crate) fn descriptor(call: &AdminCall, table: &TableName) -> Result<Arc<TableDescriptor>, Failure> {
    find_descriptor(call, table)?.ok_or_else(|| Error::NoSuchTable(table.clone()).into())
}

/// As [`descriptor`]; `None` if the table does not exist.
pub(crate) fn find_descriptor(
    call: &AdminCall,
    table: &TableName,
) -> Result<Option<Arc<TableDescriptor>>, Failure> {
    run_admin(call, Action::Create, Target::Table(table), |backend| {
        Ok(backend.find_table(table)?.map(|(descriptor, _)| descriptor))
    })
}

/// Those of the tables whose descriptors the caller may see.
pub(crate) fn shown(call: &AdminCall, mut tables: Vec<Arc<TableDescriptor>>) -> Vec<Arc<TableDescriptor>> {
    tables.retain(|table| call.shows_descriptor(&table.name));
    tables
}

/// The tables that the caller may know, system tables included, by name.
pub(crate) fn list(call: &AdminCall) -> Result<Vec<Described>, Failure> {
    let mut tables = run_admin(call, Action::Connect, Target::Server, |backend| backend.tables())?;
    tables.retain(|(table, _)| call.may_know(&table.name));
    Ok(tables)
}

/// Tables that the caller may know, and whose name matches ([`matching`]).
pub(crate) fn list_matching(
    call: &AdminCall,
    pattern: Option<&str>,
    with_system: bool,
) -> Result<Vec<Arc<TableDescriptor>>, Failure> {
    let tables = list(call)?;
    Ok(matching(&tables, pattern, with_system)?
        .into_iter()
        .cloned()
        .collect())
}

/// The tables of a namespace that exists.
pub(crate) fn list_of_namespace(
    call: &AdminCall,
    namespace: &str,
) -> Result<Vec<Arc<TableDescriptor>>, Failure> {
    super::namespaces::check_exists(call, namespace)?;
    let tables = list(call)?.into_iter().map(|(table, _)| table);
    Ok(tables
        .filter(|table| table.name.namespace() == namespace)
        .collect())
}

/// The regions of a table, by start key.
pub(crate) fn regions(call: &AdminCall, table: &TableName) -> Result<Vec<RegionInfo>, Failure> {
    run_admin(call, Action::Know, Target::Table(table), |backend| {
        backend.regions(table)
    })
}

/// The regions of a table. That a missing one has none is no error: HBase looks for its rows in
/// hbase:meta and finds none.
pub(crate) fn regions_if_any(call: &AdminCall, table: &TableName) -> Result<Vec<RegionInfo>, Failure> {
    match regions(call, table) {
        Err(failure) if failure.is_no_table() => Ok(Vec::new()),
        regions => regions,
    }
}

/// The server that has a region of a table that the caller knows.
pub(crate) fn server_of(call: &AdminCall, region: &RegionInfo) -> Result<ServerName, Failure> {
    run_admin(call, Action::Know, Target::Table(&region.table), |backend| {
        backend.server_of(call.server().placement(), region)
    })
}

/// Whether a table exists and is enabled. Missing and disabled tables are no error.
pub(crate) fn is_available(call: &AdminCall, table: &TableName) -> Result<bool, Failure> {
    Ok(find(call, table)?.is_some_and(|(_, state)| state == TableState::Enabled))
}
