//! Snapshots.

use std::path::Path;
use std::sync::Arc;

use basalt_engine::SnapshotMeta;
use basalt_engine::engine::ImportedSnapshot;
use basalt_engine::schema::{TableDescriptor, TableName};

use super::{AdminCall, run_admin};
use crate::security::{Action, Target};
use crate::service::Failure;

/// Takes a snapshot of a table, after a flush if `flush`. A time to live of 0 is for ever.
pub(crate) fn take(
    call: &AdminCall,
    table: &TableName,
    name: &str,
    flush: bool,
    ttl_seconds: u64,
) -> Result<(), Failure> {
    run_admin(call, Action::Admin, Target::Table(table), |backend| {
        Ok(backend.engine()?.snapshot(table, name, flush, ttl_seconds)?)
    })
}

/// Takes over a snapshot whose files are elsewhere; `copied` is called with each file. Copies all of them.
pub(crate) fn import(
    call: &AdminCall,
    snapshot: &ImportedSnapshot,
    copied: &mut dyn FnMut(&Path),
) -> Result<(), Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        Ok(backend.engine()?.import_snapshot(snapshot, copied)?)
    })
}

/// All snapshots, by name.
pub(crate) fn list(call: &AdminCall) -> Result<Vec<Arc<SnapshotMeta>>, Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        Ok(backend.engine()?.snapshots())
    })
}

pub(crate) fn delete(call: &AdminCall, name: &str) -> Result<(), Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        Ok(backend.engine()?.delete_snapshot(name)?)
    })
}

/// Makes a new table of a snapshot.
pub(crate) fn clone(call: &AdminCall, name: &str, table: &TableName) -> Result<(), Failure> {
    call.note(Target::Table(table));
    run_admin(call, Action::Admin, Target::Server, |backend| {
        backend.engine()?.clone_snapshot(name, table)?;
        super::rights::own(call, table)
    })
}

/// Restores the table of a snapshot.
pub(crate) fn restore(call: &AdminCall, name: &str) -> Result<(), Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        Ok(backend.engine()?.restore_snapshot(name)?)
    })
}

/// Whether [`restore_or_clone`] would make a table: the snapshot exists and the table does not.
pub(crate) fn would_clone(call: &AdminCall, name: &str, table: &TableName) -> Result<bool, Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        let engine = backend.engine()?;
        let snapshots = engine.snapshots();
        let is_there = snapshots.iter().any(|snapshot| snapshot.name == name);
        Ok(is_there && engine.describe_table(table).is_err())
    })
}

/// Restores `table` if it exists and the snapshot is of it, and makes it of the snapshot otherwise, as
/// HBase's one call for both does. `change` is applied to the descriptor of a table that is made.
pub(crate) fn restore_or_clone(
    call: &AdminCall,
    name: &str,
    table: &TableName,
    change: impl FnOnce(&mut TableDescriptor),
) -> Result<(), Failure> {
    call.note(Target::Table(table));
    run_admin(call, Action::Admin, Target::Server, |backend| {
        let engine = backend.engine()?;
        let is_own = engine
            .snapshots()
            .iter()
            .any(|snapshot| snapshot.name == name && snapshot.descriptor.name == *table);
        if is_own && engine.describe_table(table).is_ok() {
            Ok(engine.restore_snapshot(name)?)
        } else {
            engine.clone_snapshot_with(name, table, change)?;
            super::rights::own(call, table)
        }
    })
}
