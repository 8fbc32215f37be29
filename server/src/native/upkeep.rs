//! Calls of the master and of the region server about regions and their files: truncation of a region,
//! the last major compaction, store files and their trackers, and the region that stands for a table's
//! MOB files.
//!
//! HBase keeps MOB values (medium objects) in files of their own, which the master compacts; clients
//! ask for that by the name of a region that does not exist, with the start row `.mob`. Here these
//! values are in the family's store files like all others: compacting them is compacting the family,
//! and there is no compaction of MOB files that a state could name.

use basalt_engine::schema::TableName;
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::get_region_info_response::CompactionState;
use bytes::Bytes;

use super::places::{State, check_state};
use super::request::decode;
use super::{region, schema};
use crate::server::Server;
use crate::service::Failure;

/// Name of the option that says how HBase finds a store's files.
const TRACKER: &str = "hbase.store.file-tracker.impl";

/// Start row of the region that stands for a table's MOB files.
const MOB_START: &[u8] = b".mob";

/// Removes all data of a region.
pub(super) fn truncate_region(
    server: &Server,
    parameter: Bytes,
) -> Result<pb::TruncateRegionResponse, Failure> {
    let call: pb::TruncateRegionRequest = decode(parameter)?;
    let engine = server.engine();
    let table = schema::table_name(&call.region_info.table_name)?;
    let start = call.region_info.start_key.unwrap_or_default();
    let proc_id = server.master().change((call.nonce_group, call.nonce), || {
        let region = engine.region_of(&table, &start)?;
        if region.created_ms != call.region_info.region_id || region.start != start {
            return Err(basalt_engine::Error::NoSuchRegion(format!(
                "the region of {table} with id {} is gone",
                call.region_info.region_id
            ))
            .into());
        }
        check_state(server, &region, State::Open)?;
        engine.truncate_region(region.id)?;
        Ok::<_, Failure>(())
    })?;
    Ok(pb::TruncateRegionResponse { proc_id })
}

/// When the region of a table was compacted as a whole that has waited longest; 0: one never was, or
/// there is no such table.
pub(super) fn last_major_of_table(
    server: &Server,
    parameter: Bytes,
) -> Result<pb::MajorCompactionTimestampResponse, Failure> {
    let call: pb::MajorCompactionTimestampRequest = decode(parameter)?;
    // A name that no table can have is that of a table that does not exist.
    let table = schema::table_name(&call.table_name).ok();
    let stats = table.map(|table| server.engine().table_region_stats(&table));
    let regions = match stats {
        None | Some(Err(basalt_engine::Error::NoSuchTable(_))) => Vec::new(),
        Some(regions) => regions?,
    };
    let oldest = regions.iter().map(|region| region.last_major_compaction_ms).min();
    Ok(last_major(oldest))
}

/// When a region was last compacted as a whole; 0: never, or there is no such region.
pub(super) fn last_major_of_region(
    server: &Server,
    parameter: Bytes,
) -> Result<pb::MajorCompactionTimestampResponse, Failure> {
    let call: pb::MajorCompactionTimestampForRegionRequest = decode(parameter)?;
    let found = region::by_name(server, &call.region).ok();
    let stats = found.and_then(|region| server.engine().region_view(&region.encoded_name));
    Ok(last_major(stats.map(|(stats, _)| stats.last_major_compaction_ms)))
}

fn last_major(ms: Option<u64>) -> pb::MajorCompactionTimestampResponse {
    pb::MajorCompactionTimestampResponse {
        compaction_timestamp: ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or_default(),
    }
}

/// The store files of a region, of these families or of all. The names are paths below the data
/// directory.
pub(super) fn store_files(server: &Server, parameter: Bytes) -> Result<pb::GetStoreFileResponse, Failure> {
    let call: pb::GetStoreFileRequest = decode(parameter)?;
    let region = region::by_name(server, &call.region)?;
    let Some((_, version)) = server.engine().region_view(&region.encoded_name) else {
        return Ok(pb::GetStoreFileResponse::default());
    };
    for family in &call.family {
        if version.table.family(family).is_none() {
            let family = family.escape_ascii();
            return Err(Failure::illegal_argument(format!(
                "No column family : {family} available"
            )));
        }
    }
    let stores = version.stores.iter().filter(|store| {
        call.family.is_empty() || call.family.iter().any(|family| *family == store.family.name)
    });
    let files = stores.flat_map(|store| &store.files).map(|file| {
        let path = file.path();
        let below = path.strip_prefix(&server.config().data.dir).unwrap_or(&path);
        below.display().to_string()
    });
    Ok(pb::GetStoreFileResponse {
        store_file: files.collect(),
    })
}

/// Sets the tracker of a table's store files.
pub(super) fn modify_table_tracker(
    server: &Server,
    parameter: Bytes,
) -> Result<pb::ModifyTableStoreFileTrackerResponse, Failure> {
    let call: pb::ModifyTableStoreFileTrackerRequest = decode(parameter)?;
    let table = schema::table_name(&call.table_name)?;
    check_tracker(&call.dst_sft)?;
    let proc_id = server.master().change((call.nonce_group, call.nonce), || {
        server
            .engine()
            .set_option(&table, None, TRACKER.as_bytes(), call.dst_sft.as_bytes())
    })?;
    Ok(pb::ModifyTableStoreFileTrackerResponse { proc_id })
}

/// Sets the tracker of a family's store files.
pub(super) fn modify_family_tracker(
    server: &Server,
    parameter: Bytes,
) -> Result<pb::ModifyColumnStoreFileTrackerResponse, Failure> {
    let call: pb::ModifyColumnStoreFileTrackerRequest = decode(parameter)?;
    let table = schema::table_name(&call.table_name)?;
    check_tracker(&call.dst_sft)?;
    let proc_id = server.master().change((call.nonce_group, call.nonce), || {
        let (option, value) = (TRACKER.as_bytes(), call.dst_sft.as_bytes());
        server
            .engine()
            .set_option(&table, Some(&call.family), option, value)
    })?;
    Ok(pb::ModifyColumnStoreFileTrackerResponse { proc_id })
}

/// Refuses a tracker that HBase refuses: MIGRATION, which a table only has on the way to another one,
/// and what is no tracker of HBase's own.
fn check_tracker(tracker: &str) -> Result<(), Failure> {
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

/// The table of a name that stands for MOB files; `None` for the name of a region.
pub(super) fn mob_table(specifier: &pb::RegionSpecifier) -> Option<TableName> {
    let mut parts = specifier.value.splitn(3, |byte| *byte == b',');
    let (table, start, id) = (parts.next()?, parts.next()?, parts.next()?);
    if start != MOB_START || !id.starts_with(b"0.") {
        return None;
    }
    TableName::parse(table).ok()
}

/// Answers GetRegionInfo for MOB files: they are never being compacted.
pub(super) fn mob_info(server: &Server, table: &TableName) -> Result<pb::GetRegionInfoResponse, Failure> {
    server.engine().describe_table(table)?;
    Ok(pb::GetRegionInfoResponse {
        region_info: pb::RegionInfo {
            table_name: schema::to_table_name(table),
            start_key: Some(Bytes::from_static(MOB_START)),
            end_key: Some(Bytes::new()),
            offline: Some(false),
            split: Some(false),
            ..pb::RegionInfo::default()
        },
        compaction_state: Some(CompactionState::None.into()),
        ..pb::GetRegionInfoResponse::default()
    })
}

/// Answers CompactRegion for MOB files: compacts the families of the table that have them. The texts
/// are HBase's.
pub(super) fn compact_mob(
    server: &Server,
    table: &TableName,
    call: &pb::CompactRegionRequest,
) -> Result<(), Failure> {
    let (descriptor, state) = server.engine().describe_table(table)?;
    if state != basalt_engine::schema::TableState::Enabled {
        return Err(Failure::do_not_retry(format!("Table {table} is not enabled")));
    }
    let wanted = call.family.as_deref().filter(|family| !family.is_empty());
    let mut found = false;
    for family in &descriptor.families {
        if wanted.is_some_and(|wanted| family.name != wanted) {
            continue;
        }
        let is_mob = family
            .attributes
            .get(&b"IS_MOB"[..])
            .is_some_and(|value| value.eq_ignore_ascii_case(b"true"));
        if is_mob {
            found = true;
            let major = call.major == Some(true);
            server.engine().compact(table, Some(&family.name), major, false)?;
        } else if wanted.is_some() {
            return Err(Failure::do_not_retry(format!(
                "Column family {} is not a mob column family",
                family.name.escape_ascii()
            )));
        }
    }
    if !found {
        return Err(Failure::do_not_retry(
            "No mob column families are assigned in the mob compaction",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mob_files_are_told_from_regions() {
        let of = |name: &'static [u8]| {
            mob_table(&pb::RegionSpecifier {
                value: Bytes::from_static(name),
                ..pb::RegionSpecifier::default()
            })
        };
        let table = |name: &[u8]| Some(TableName::parse(name).unwrap());
        assert_eq!(of(b"t,.mob,0.5cb7.").as_ref(), table(b"t").as_ref());
        assert_eq!(of(b"ns:t,.mob,0.5cb7.").as_ref(), table(b"ns:t").as_ref());
        for name in [
            &b"t,.mob,1700000000000.5cb7."[..],
            b"t,.mo,0.5cb7.",
            b"t,,0.5cb7.",
            b"t,.mob",
            b"5cb7",
            b"",
        ] {
            assert_eq!(of(name), None, "{}", name.escape_ascii());
        }
    }
}
