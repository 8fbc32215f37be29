//! Looks up regions by the names that native clients use.
//!
//! ```text
//! table , start key , id . encoded .      full name; `hbase:meta,,1` has no encoded part
//! ```
//!
//! Clients read names from `hbase:meta` and cache them. After a split or merge, a cached name is stale: a
//! call with it fails with NotServingRegionException, and the client reads `hbase:meta` again. A replica of a
//! region has the name of the region with `_0001` behind the id, and its own encoded part. The ids are the
//! primary's, and a standby has regions of its own: there, the row alone finds the region. As in HBase, the
//! region is looked up before the caller's rights to its cells are checked; that a region does not exist is
//! said only to callers who may know its table.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::Error;
use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::{Cut, TableName, TableState};

use super::{Failure, pipeline};
use crate::security::Caller;
use crate::server::Server;

/// The name of a region as a client sends it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionName<'n> {
    pub(crate) name: &'n [u8],
    /// Whether it is the encoded name alone.
    pub(crate) is_encoded: bool,
}

/// The region of a call on `row`, or on the whole region. The region must contain the row, and its
/// table must be enabled.
pub(crate) fn serving(
    server: &Server,
    caller: &Caller,
    name: RegionName<'_>,
    row: Option<&[u8]>,
) -> Result<Arc<RegionInfo>, Failure> {
    let found = match row {
        Some(row) if !name.is_encoded => match locate(server.engine(), name, row) {
            Err(_) if is_replica(name) => locate_replica(server, name, row),
            found => found,
        },
        _ => find(server, name),
    };
    let (region, state) = found.map_err(|failure| hide(server, caller, name, failure))?;
    if let Some(row) = row
        && !region.contains(row)
    {
        return Err(Failure::wrong_region(format!(
            "row {} is not in region {}",
            Cut(row),
            Cut(name.name)
        )));
    }
    match state {
        TableState::Enabled => Ok(region),
        TableState::Disabled => Err(not_serving(name)),
    }
}

/// The region with this name, whatever the state of its table.
pub(crate) fn by_name(
    server: &Server,
    caller: &Caller,
    name: RegionName<'_>,
) -> Result<Arc<RegionInfo>, Failure> {
    let found = find(server, name).map_err(|failure| hide(server, caller, name, failure));
    found.map(|(region, _)| region)
}

/// The failure of a look-up as the caller may see it.
fn hide(server: &Server, caller: &Caller, name: RegionName<'_>, failure: Failure) -> Failure {
    let table = (!name.is_encoded).then(|| table_of(name.name).ok()).flatten();
    match pipeline::may_know(server, caller, table.as_ref()) {
        Ok(()) => failure,
        Err(refused) => refused,
    }
}

/// The region with this name, and the state of its table.
fn find(server: &Server, name: RegionName<'_>) -> Result<(Arc<RegionInfo>, TableState), Failure> {
    if !name.is_encoded {
        let start = start_of(name.name).ok_or_else(|| unknown(name))?;
        return locate(server.engine(), name, start);
    }
    let is_called = |region: &RegionInfo| region.encoded_name.as_bytes() == name.name;
    let tables = server.engine().tables();
    let found = tables.iter().find_map(|(table, state)| {
        let regions = server.engine().regions(&table.name).unwrap_or_default();
        let region = regions.into_iter().find(is_called)?;
        Some((Arc::new(region), *state))
    });
    found.ok_or_else(|| unknown(name))
}

/// Number of regions of all tables.
pub(crate) fn count(server: &Server) -> u64 {
    server.engine().catalog_size().regions
}

/// The region that holds `row`, if it has that full name.
fn locate(
    engine: &Engine,
    name: RegionName<'_>,
    row: &[u8],
) -> Result<(Arc<RegionInfo>, TableState), Failure> {
    let table = table_of(name.name)?;
    let (region, state) = engine.locate(&table, row).map_err(|error| gone(error, name))?;
    if !region.has_name(name.name) {
        return Err(not_serving(name));
    }
    Ok((region, state))
}

/// Whether the name is that of a replica.
fn is_replica(name: RegionName<'_>) -> bool {
    let id = || {
        let rest = name.name.strip_suffix(b".")?;
        let encoded = rest.iter().rposition(|byte| *byte == b'.')?;
        let comma = rest[..encoded].iter().rposition(|byte| *byte == b',')?;
        rest.get(comma + 1..encoded)
    };
    !name.is_encoded && id().is_some_and(|id| id.contains(&b'_'))
}

/// The region of a standby that holds `row`.
fn locate_replica(
    server: &Server,
    name: RegionName<'_>,
    row: &[u8],
) -> Result<(Arc<RegionInfo>, TableState), Failure> {
    if !server.copies().standing.is_standby() {
        return Err(not_serving(name));
    }
    let table = table_of(name.name)?;
    server
        .engine()
        .locate(&table, row)
        .map_err(|error| gone(error, name))
}

/// The table of the region with this name.
pub(crate) fn table(server: &Server, caller: &Caller, name: RegionName<'_>) -> Result<TableName, Failure> {
    if name.is_encoded {
        return Ok(by_name(server, caller, name)?.table.clone());
    }
    table_of(name.name)
}

fn table_of(name: &[u8]) -> Result<TableName, Failure> {
    let comma = name.iter().position(|byte| *byte == b',');
    let table = comma.map_or(name, |comma| &name[..comma]);
    Ok(TableName::parse(table)?)
}

/// The start key in a full name: between the first comma and the last one.
fn start_of(name: &[u8]) -> Option<&[u8]> {
    let first = name.iter().position(|byte| *byte == b',')?;
    let last = name.iter().rposition(|byte| *byte == b',')?;
    name.get(first + 1..last)
}

/// Reports a missing table, or a region that was split or merged since it was found, as a region that
/// is not served: the client then looks in `hbase:meta` for the regions that there are, and raises
/// TableNotFoundException itself.
pub(crate) fn gone(error: Error, name: RegionName<'_>) -> Failure {
    match error {
        Error::NoSuchTable(_) | Error::NoSuchRegion(_) => not_serving(name),
        error => error.into(),
    }
}

fn not_serving(name: RegionName<'_>) -> Failure {
    Error::NotServingRegion(format!("{} is not online", Cut(name.name))).into()
}

fn unknown(name: RegionName<'_>) -> Failure {
    Error::NoSuchRegion(format!("no region is called {}", Cut(name.name))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A region that is replaced after its look-up is one whose name is stale: the client retries.
    #[test]
    fn a_region_that_is_gone_is_not_served() {
        let name = RegionName {
            name: b"t,,1.ab.",
            is_encoded: false,
        };
        let failure = gone(Error::NoSuchRegion("no region has the id 7".to_owned()), name);
        assert_eq!(
            failure.class(),
            "org.apache.hadoop.hbase.NotServingRegionException"
        );
        assert!(failure.can_retry());
    }

    #[test]
    fn names_of_replicas_have_their_number_behind_the_id() {
        let is = |name: &str, is_encoded| {
            is_replica(RegionName {
                name: name.as_bytes(),
                is_encoded,
            })
        };
        assert!(is("t,,1700000000000_0001.ab.", false));
        assert!(is("t,a,_.b,1_0001.ab.", false));
        assert!(!is("t_1,a_b,1700000000000.ab.", false));
        assert!(!is("hbase:meta,,1", false));
        assert!(!is("t,,1_0001.ab.", true));
    }

    #[test]
    fn names_are_taken_apart_at_the_first_and_last_comma() {
        for (name, start) in [
            ("t,,1.ab.", Some("")),
            ("t,a,b,1700000000000.ab.", Some("a,b")),
            ("hbase:meta,,1", Some("")),
            ("t,1", None),
            ("t", None),
        ] {
            assert_eq!(start_of(name.as_bytes()), start.map(str::as_bytes), "{name}");
            assert!(table_of(name.as_bytes()).is_ok());
        }
    }
}
