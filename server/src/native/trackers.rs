//! Trackers of store files: how HBase finds a store's files. Basalt keeps the options for clients; they
//! have no effect.
//!
//! HBase changes a tracker by way of MIGRATION, with two more options ([`MIGRATION`]) that name the old
//! and the new tracker, and removes these at the end. Here the new tracker is there at once.

use basalt_engine::Error;
use basalt_engine::schema::{TableDescriptor, TableName, TableState};
use basalt_idl::native::messages as pb;

use super::schema;
use crate::service::admin::{snapshots, tables};
use crate::service::{AdminCall, Failure};

/// Name of the option of a table, or entry in a family's configuration, that names the tracker.
const TRACKER: &str = "hbase.store.file-tracker.impl";

/// The options that a table has on the way from one tracker to another.
const MIGRATION: [&str; 2] = [
    "hbase.store.file-tracker.migration.src.impl",
    "hbase.store.file-tracker.migration.dst.impl",
];

/// The tracker of a table that names none.
const DEFAULT: &str = "DEFAULT";

/// Sets the tracker of a table's store files.
pub(super) fn modify_table(
    call: &AdminCall,
    request: &pb::ModifyTableStoreFileTrackerRequest,
) -> Result<pb::ModifyTableStoreFileTrackerResponse, Failure> {
    let table = schema::table_name(&request.table_name)?;
    let proc_id = call.once((request.nonce_group, request.nonce), || {
        modify(call, &table, None, &request.dst_sft)
    })?;
    Ok(pb::ModifyTableStoreFileTrackerResponse { proc_id })
}

/// Sets the tracker of a family's store files.
pub(super) fn modify_family(
    call: &AdminCall,
    request: &pb::ModifyColumnStoreFileTrackerRequest,
) -> Result<pb::ModifyColumnStoreFileTrackerResponse, Failure> {
    let table = schema::table_name(&request.table_name)?;
    let proc_id = call.once((request.nonce_group, request.nonce), || {
        modify(call, &table, Some(&request.family), &request.dst_sft)
    })?;
    Ok(pb::ModifyColumnStoreFileTrackerResponse { proc_id })
}

/// Sets the tracker of a table or family, and ends a migration. The tracker that it has already changes
/// nothing, as in HBase.
fn modify(call: &AdminCall, table: &TableName, family: Option<&[u8]>, tracker: &str) -> Result<(), Failure> {
    // With the right to change the table, also if nothing changes.
    let descriptor = tables::descriptor(call, table)?;
    let (_, state) = tables::describe(call, table)?;
    check_target(tracker)?;
    if state != TableState::Enabled {
        return Err(Error::TableNotEnabled {
            table: table.clone(),
            state: state.as_str(),
        }
        .into());
    }
    let is_there = family.is_none_or(|family| descriptor.family(family).is_some());
    if is_there && current(&descriptor, family).eq_ignore_ascii_case(tracker.as_bytes()) {
        return Ok(());
    }
    let changes = [
        (TRACKER, Some(tracker)),
        (MIGRATION[0], None),
        (MIGRATION[1], None),
    ];
    tables::set_options(call, table, family, &changes)
}

/// The tracker of a table or family. A family's own is before its table's.
fn current<'a>(table: &'a TableDescriptor, family: Option<&[u8]>) -> &'a [u8] {
    let name = TRACKER.as_bytes();
    let family = family.and_then(|family| table.family(family));
    let of_family = family.and_then(|(_, family)| {
        let attribute = family.attributes.get(name);
        attribute.or_else(|| family.configuration.get(name))
    });
    let found = of_family.or_else(|| table.attributes.get(name));
    found.map_or(DEFAULT.as_bytes(), Vec::as_slice)
}

/// Rejects a tracker that HBase rejects as a target: MIGRATION, which a table only has on the way to
/// another one, and classes other than HBase's trackers.
fn check_target(tracker: &str) -> Result<(), Failure> {
    match tracker.to_uppercase().as_str() {
        "DEFAULT" | "FILE" => Ok(()),
        "MIGRATION" => Err(Failure::do_not_retry(format!(
            "Do not need to transfer to {tracker}"
        ))),
        _ => Err(Failure::do_not_retry(format!(
            "{} is no store file tracker; DEFAULT and FILE are",
            tracker.escape_debug()
        ))),
    }
}

/// Restores a table, or clones the snapshot. The tracker replaces the trackers of a clone's table and
/// families. As in HBase, an unknown tracker fails the procedure, not the call.
pub(super) fn restore_or_clone(
    call: &AdminCall,
    snapshot: &str,
    table: &TableName,
    tracker: Option<&str>,
) -> Result<Result<(), Failure>, Failure> {
    if let Some(tracker) = tracker
        && !is_known(tracker)
        && snapshots::would_clone(call, snapshot, table)?
    {
        return Ok(Err(Failure::plain_io(format!(
            "java.lang.RuntimeException: java.lang.RuntimeException: java.lang.ClassNotFoundException: Class {} not found",
            tracker.escape_debug()
        ))));
    }
    let set = |descriptor: &mut TableDescriptor| {
        let Some(tracker) = tracker else { return };
        let name = TRACKER.as_bytes();
        descriptor.attributes.insert(name.to_vec(), tracker.into());
        for family in &mut descriptor.families {
            family.configuration.remove(name);
            family.attributes.remove(name);
        }
    };
    snapshots::restore_or_clone(call, snapshot, table, set).map(Ok)
}

/// Whether HBase has this tracker.
fn is_known(tracker: &str) -> bool {
    let names = ["DEFAULT", "FILE", "MIGRATION"];
    names.iter().any(|name| tracker.eq_ignore_ascii_case(name))
}
