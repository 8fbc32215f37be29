//! Snapshots of tables as an operator takes and lists them.

use basalt_engine::SnapshotMeta;
use basalt_engine::filter::JavaRegex;
use basalt_idl::admin::{TSnapshot, args};
use bytes::Bytes;

use super::from_thrift;
use crate::server::Server;
use crate::service::Failure;

/// Takes a snapshot.
pub(super) fn take(server: &Server, wanted: &args::BasaltSnapshot) -> Result<(), Failure> {
    let ttl_seconds = u64::try_from(wanted.ttl_seconds).map_err(|_| {
        Failure::illegal_argument(format!(
            "the time to live is {} s and must be at least 0, which means for ever",
            wanted.ttl_seconds
        ))
    })?;
    let table = from_thrift::table(Some(&wanted.table))?;
    Ok(server
        .engine()
        .snapshot(&table, &wanted.name, wanted.flush, ttl_seconds)?)
}

/// Snapshots whose whole name and table's name match the patterns, as HBase matches them
/// (`Admin.listTableSnapshots`).
pub(super) fn list(server: &Server, wanted: &args::BasaltListSnapshots) -> Result<Vec<TSnapshot>, Failure> {
    let pattern = |text: &Option<String>| text.as_deref().map(JavaRegex::whole).transpose();
    let (name, table) = (pattern(&wanted.name)?, pattern(&wanted.table_name)?);
    let matches = |pattern: &Option<JavaRegex>, text: &str| {
        pattern
            .as_ref()
            .is_none_or(|pattern| pattern.is_found_in(text.as_bytes()))
    };
    let mut listed = Vec::new();
    for snapshot in server.engine().snapshots() {
        let of = snapshot.descriptor.name.to_string();
        if matches(&name, &snapshot.name) && matches(&table, &of) {
            listed.push(to_thrift(&snapshot, of));
        }
    }
    Ok(listed)
}

fn to_thrift(snapshot: &SnapshotMeta, table: String) -> TSnapshot {
    let files = snapshot.files();
    TSnapshot {
        name: snapshot.name.clone(),
        table_name: Bytes::from(table),
        created_ms: snapshot.created_ms as i64,
        ttl_seconds: i64::try_from(snapshot.ttl_seconds).unwrap_or(i64::MAX),
        regions: snapshot.regions.len() as i32,
        files: files.len() as i32,
        bytes: files.values().map(|(_, file)| file.bytes).sum::<u64>() as i64,
    }
}
