//! Calls of the master and of the region server about regions and their files: truncation of a region,
//! the last major compaction, store files, and the region that stands for a table's MOB files.
//!
//! HBase keeps MOB values (medium objects) in files of their own, which the master compacts; clients
//! ask for that by the name of a region that does not exist, with the start row `.mob`. Here these
//! values are in the family's store files like all others: compacting them is compacting the family,
//! and there is no compaction of MOB files that a state could name.

use basalt_engine::schema::TableName;
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::get_region_info_response::CompactionState;
use bytes::Bytes;

use super::{region, schema};
use crate::service::admin::{cluster, regions, tables};
use crate::service::{AdminCall, Failure};

/// Start row of the region that stands for a table's MOB files.
const MOB_START: &[u8] = b".mob";

/// Removes all data of a region.
pub(super) fn truncate_region(
    call: &AdminCall,
    request: &pb::TruncateRegionRequest,
) -> Result<pb::TruncateRegionResponse, Failure> {
    let of = &request.region_info;
    let table = schema::table_name(&of.table_name)?;
    let start = of.start_key.clone().unwrap_or_default();
    let proc_id = call.once_or_failed((request.nonce_group, request.nonce), || {
        let done = regions::truncate(call, &table, (&start, of.region_id));
        match done {
            // HBase checks this after it has answered.
            Err(failure) if table.is_system() && !failure.is_access_denied() => Ok(Err(failure)),
            done => done.map(Ok),
        }
    })?;
    Ok(pb::TruncateRegionResponse { proc_id })
}

/// When the region of a table was compacted as a whole that has waited longest; 0: one never was, or
/// there is no such table.
pub(super) fn last_major_of_table(
    call: &AdminCall,
    request: &pb::MajorCompactionTimestampRequest,
) -> Result<pb::MajorCompactionTimestampResponse, Failure> {
    // A name that no table can have is that of a table that does not exist.
    let Ok(table) = schema::table_name(&request.table_name) else {
        return cluster::ask(call, |_| last_major(None));
    };
    if tables::find(call, &table)?.is_none() {
        return Ok(last_major(None));
    }
    let regions = regions::stats(call, Some(&table))?;
    Ok(last_major(
        regions.iter().map(|region| region.last_major_compaction_ms).min(),
    ))
}

/// When a region was last compacted as a whole; 0: never, or there is no such region.
pub(super) fn last_major_of_region(
    call: &AdminCall,
    request: &pb::MajorCompactionTimestampForRegionRequest,
) -> Result<pb::MajorCompactionTimestampResponse, Failure> {
    let region = match regions::named(call, region::name(&request.region)) {
        Err(failure) if failure.is_access_denied() => return Err(failure),
        Err(_) => return Ok(last_major(None)),
        Ok(region) => region,
    };
    let view = regions::view(call, &region)?;
    Ok(last_major(view.map(|(stats, _)| stats.last_major_compaction_ms)))
}

fn last_major(ms: Option<u64>) -> pb::MajorCompactionTimestampResponse {
    pb::MajorCompactionTimestampResponse {
        compaction_timestamp: ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or_default(),
    }
}

/// The store files of a region, of these families or of all. The names are paths below the data
/// directory.
pub(super) fn store_files(
    call: &AdminCall,
    request: &pb::GetStoreFileRequest,
) -> Result<pb::GetStoreFileResponse, Failure> {
    let region = regions::named(call, region::name(&request.region))?;
    let Some((_, version)) = regions::view(call, &region)? else {
        return Ok(pb::GetStoreFileResponse::default());
    };
    for family in &request.family {
        if version.table.family(family).is_none() {
            let family = family.escape_ascii();
            return Err(Failure::illegal_argument(format!(
                "No column family : {family} available"
            )));
        }
    }
    let stores = version.stores.iter().filter(|store| {
        request.family.is_empty() || request.family.iter().any(|family| *family == store.family.name)
    });
    let files = stores.flat_map(|store| &store.files).map(|file| {
        let path = file.path();
        let data_dir = &call.server().config().data.dir;
        let below = path.strip_prefix(data_dir).unwrap_or(&path);
        below.display().to_string()
    });
    Ok(pb::GetStoreFileResponse {
        store_file: files.collect(),
    })
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
pub(super) fn mob_info(call: &AdminCall, table: &TableName) -> Result<pb::GetRegionInfoResponse, Failure> {
    tables::describe(call, table)?;
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
    admin: &AdminCall,
    table: &TableName,
    call: &pb::CompactRegionRequest,
) -> Result<(), Failure> {
    let (descriptor, state) = tables::describe(admin, table)?;
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
            tables::compact(admin, table, &family.name, major)?;
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
