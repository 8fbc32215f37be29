//! Snapshots.
//!
//! A snapshot belongs to the user that has taken it. As in HBase, its owner may list and delete it, restore
//! it with the right to administer its table, make a table of its name of it, and with the right to
//! administer a namespace one of another name there. All others need the right to administer the server.

use std::path::Path;
use std::sync::Arc;

use basalt_engine::SnapshotMeta;
use basalt_engine::engine::ImportedSnapshot;
use basalt_engine::schema::{TableDescriptor, TableName};

use super::{AdminCall, run_admin};
use crate::security::{Action, Target};
use crate::service::{Backend, Failure};

/// Takes a snapshot of a table, after a flush if `flush`. A time to live of 0 is for ever.
pub(crate) fn take(
    call: &AdminCall,
    table: &TableName,
    name: &str,
    flush: bool,
    ttl_seconds: u64,
) -> Result<(), Failure> {
    run_admin(call, Action::Admin, Target::Table(table), |backend| {
        backend.engine()?.snapshot(table, name, flush, ttl_seconds)?;
        call.changed(&format!("snapshot {name} was taken"), Target::Table(table));
        own(call, backend, name)
    })
}

/// Takes over a snapshot whose files are elsewhere; `copied` is called with each file. Copies all of them.
pub(crate) fn import(
    call: &AdminCall,
    snapshot: &ImportedSnapshot,
    copied: &mut dyn FnMut(&Path),
) -> Result<(), Failure> {
    run_admin(call, Action::Admin, Target::Server, |backend| {
        backend.engine()?.import_snapshot(snapshot, copied)?;
        let name = &snapshot.name;
        call.changed(&format!("snapshot {name} was taken over"), Target::Server);
        own(call, backend, name)
    })
}

/// Makes the caller the owner of its new snapshot.
fn own(call: &AdminCall, backend: Backend<'_>, name: &str) -> Result<(), Failure> {
    let security = call.server().security();
    if !security.authenticates() {
        return Ok(());
    }
    let snapshots = backend.engine()?.snapshots();
    let Some(snapshot) = snapshots.iter().find(|snapshot| snapshot.name == name) else {
        // Its time to live is over.
        return Ok(());
    };
    let exists = |name: &str, created_ms: u64| {
        let mut all = snapshots.iter();
        all.any(|snapshot| (&snapshot.name[..], snapshot.created_ms) == (name, created_ms))
    };
    let owned = security.own_snapshot(call.caller(), (name, snapshot.created_ms), exists);
    owned.map_err(|error| {
        Failure::plain_io(format!(
            "snapshot {name} was taken, and its owner has no rights: {error}"
        ))
    })
}

fn owns(call: &AdminCall, snapshot: &SnapshotMeta) -> bool {
    let security = call.server().security();
    security.owns_snapshot(call.caller(), &snapshot.name, snapshot.created_ms)
}

/// The snapshot of that name, if the caller owns it. Says nothing of others.
fn owned(call: &AdminCall, name: &str) -> Option<Arc<SnapshotMeta>> {
    let snapshots = call.server().engine().snapshots();
    snapshots
        .into_iter()
        .find(|snapshot| snapshot.name == name && owns(call, snapshot))
}

/// The user that owns the snapshot, if it is known.
pub(crate) fn owner(call: &AdminCall, snapshot: &SnapshotMeta) -> Option<String> {
    let rights = call.server().security().rights();
    rights
        .snapshot_owner(&snapshot.name, snapshot.created_ms)
        .map(str::to_owned)
}

/// The right of those that do not own the snapshot.
const OF_OTHERS: (Action, Target<'_>) = (Action::Admin, Target::Server);

/// The snapshots that the caller may see, by name.
pub(crate) fn list(call: &AdminCall) -> Result<Vec<Arc<SnapshotMeta>>, Failure> {
    let mut all = run_admin(call, Action::Connect, Target::Server, |backend| {
        Ok(backend.engine()?.snapshots())
    })?;
    let (action, target) = OF_OTHERS;
    if !call.shows(action, target) {
        all.retain(|snapshot| owns(call, snapshot));
    }
    Ok(all)
}

pub(crate) fn delete(call: &AdminCall, name: &str) -> Result<(), Failure> {
    let (action, target) = match owned(call, name) {
        Some(_) => (Action::Connect, Target::Server),
        None => OF_OTHERS,
    };
    run_admin(call, action, target, |backend| {
        backend.engine()?.delete_snapshot(name)?;
        call.changed(&format!("snapshot {name} was deleted"), Target::Server);
        Ok(())
    })
}

/// The right to make `table` of a snapshot; `owned` is the snapshot if the caller owns it.
fn to_clone<'t>(owned: Option<&SnapshotMeta>, table: &'t TableName) -> (Action, Target<'t>) {
    match owned {
        Some(snapshot) if snapshot.descriptor.name == *table => (Action::Connect, Target::Server),
        Some(_) => (Action::Admin, Target::NamespaceRights(table.namespace())),
        None => OF_OTHERS,
    }
}

/// The right to restore the table of a snapshot.
fn to_restore(owned: Option<&SnapshotMeta>) -> (Action, Target<'_>) {
    match owned {
        Some(snapshot) => (Action::Admin, Target::Table(&snapshot.descriptor.name)),
        None => OF_OTHERS,
    }
}

/// Makes a new table of a snapshot.
pub(crate) fn clone(call: &AdminCall, name: &str, table: &TableName) -> Result<(), Failure> {
    call.note(Target::Table(table));
    let owned = owned(call, name);
    let (action, target) = to_clone(owned.as_deref(), table);
    run_admin(call, action, target, |backend| {
        backend.engine()?.clone_snapshot(name, table)?;
        cloned(call, name, table)
    })
}

/// Notes a table that was made of a snapshot; it belongs to the caller.
fn cloned(call: &AdminCall, name: &str, table: &TableName) -> Result<(), Failure> {
    let what = format!("table was made of snapshot {name}");
    call.changed(&what, Target::Table(table));
    super::rights::own(call, table)
}

/// Restores the table of a snapshot.
pub(crate) fn restore(call: &AdminCall, name: &str) -> Result<(), Failure> {
    let owned = owned(call, name);
    let (action, target) = to_restore(owned.as_deref());
    run_admin(call, action, target, |backend| {
        backend.engine()?.restore_snapshot(name)?;
        call.changed(&format!("snapshot {name} was restored"), target);
        Ok(())
    })
}

/// Whether [`restore_or_clone`] would make a table: the snapshot exists and the table does not.
pub(crate) fn would_clone(call: &AdminCall, name: &str, table: &TableName) -> Result<bool, Failure> {
    let owned = owned(call, name);
    let (action, target) = to_restore_or_clone(call, owned.as_deref(), table);
    run_admin(call, action, target, |backend| {
        let engine = backend.engine()?;
        let snapshots = engine.snapshots();
        let is_there = snapshots.iter().any(|snapshot| snapshot.name == name);
        Ok(is_there && engine.describe_table(table).is_err())
    })
}

/// The right to call [`restore_or_clone`].
fn to_restore_or_clone<'t>(
    call: &AdminCall,
    owned: Option<&'t SnapshotMeta>,
    table: &'t TableName,
) -> (Action, Target<'t>) {
    let restores = owned.is_some_and(|snapshot| snapshot.descriptor.name == *table)
        && call.server().engine().describe_table(table).is_ok();
    if restores {
        to_restore(owned)
    } else {
        to_clone(owned, table)
    }
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
    let owned = owned(call, name);
    let (action, target) = to_restore_or_clone(call, owned.as_deref(), table);
    run_admin(call, action, target, |backend| {
        let engine = backend.engine()?;
        let is_own = engine
            .snapshots()
            .iter()
            .any(|snapshot| snapshot.name == name && snapshot.descriptor.name == *table);
        if is_own && engine.describe_table(table).is_ok() {
            // A table that was made since the first check is not cloned but restored.
            let needed = to_restore(owned.as_deref());
            if needed.0 != action {
                run_admin(call, needed.0, needed.1, |_| Ok(()))?;
            }
            engine.restore_snapshot(name)?;
            call.changed(&format!("snapshot {name} was restored"), Target::Table(table));
            Ok(())
        } else {
            engine.clone_snapshot_with(name, table, change)?;
            cloned(call, name, table)
        }
    })
}
