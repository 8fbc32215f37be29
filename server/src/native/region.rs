//! Looks up regions by the names that native clients use.
//!
//! ```text
//! table , start key , id . encoded .      full name; `hbase:meta,,1` has no encoded part
//! ```
//!
//! Clients read names from `hbase:meta` and cache them. After a split or merge, a cached name is
//! stale: a call with it fails with NotServingRegionException, and the client reads `hbase:meta`
//! again.

use std::sync::Arc;

use basalt_engine::Error;
use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::{Cut, TableName, TableState};
use basalt_idl::native::messages::{RegionSpecifier, region_specifier::RegionSpecifierType};

use crate::server::Server;
use crate::service::Failure;

/// The region of a call on `row`, or on the whole region. The region must contain the row, and its
/// table must be enabled.
pub(super) fn serving(
    server: &Server,
    specifier: &RegionSpecifier,
    row: Option<&[u8]>,
) -> Result<Arc<RegionInfo>, Failure> {
    let (region, state) = match row {
        Some(row) if !is_encoded(specifier) => locate(server, specifier, row)?,
        _ => find(server, specifier)?,
    };
    if let Some(row) = row
        && !region.contains(row)
    {
        return Err(Failure::wrong_region(format!(
            "row {} is not in region {}",
            Cut(row),
            Cut(&specifier.value)
        )));
    }
    match state {
        TableState::Enabled => Ok(region),
        TableState::Disabled => Err(not_serving(specifier)),
    }
}

/// The region with this name, whatever the state of its table.
pub(super) fn by_name(server: &Server, specifier: &RegionSpecifier) -> Result<Arc<RegionInfo>, Failure> {
    find(server, specifier).map(|(region, _)| region)
}

/// The region with this name, and the state of its table.
fn find(server: &Server, specifier: &RegionSpecifier) -> Result<(Arc<RegionInfo>, TableState), Failure> {
    let name = &specifier.value[..];
    if !is_encoded(specifier) {
        let start = start_of(name).ok_or_else(|| unknown(specifier))?;
        return locate(server, specifier, start);
    }
    let is_called = |region: &RegionInfo| region.encoded_name.as_bytes() == name;
    let tables = server.engine().tables();
    let found = tables.iter().find_map(|(table, state)| {
        let regions = server.engine().regions(&table.name).unwrap_or_default();
        let region = regions.into_iter().find(is_called)?;
        Some((Arc::new(region), *state))
    });
    found.ok_or_else(|| unknown(specifier))
}

/// The region that holds `row`, if it has the full name of the specifier.
fn locate(
    server: &Server,
    specifier: &RegionSpecifier,
    row: &[u8],
) -> Result<(Arc<RegionInfo>, TableState), Failure> {
    let table = table_of(&specifier.value)?;
    let (region, state) = server
        .engine()
        .locate(&table, row)
        .map_err(|error| gone(error, specifier))?;
    if !region.has_name(&specifier.value) {
        return Err(not_serving(specifier));
    }
    Ok((region, state))
}

/// The table of the region with this name.
pub(super) fn table(server: &Server, specifier: &RegionSpecifier) -> Result<TableName, Failure> {
    if is_encoded(specifier) {
        return Ok(by_name(server, specifier)?.table.clone());
    }
    table_of(&specifier.value)
}

fn is_encoded(specifier: &RegionSpecifier) -> bool {
    specifier.r#type == RegionSpecifierType::EncodedRegionName as i32
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
pub(super) fn gone(error: Error, specifier: &RegionSpecifier) -> Failure {
    match error {
        Error::NoSuchTable(_) | Error::NoSuchRegion(_) => not_serving(specifier),
        error => error.into(),
    }
}

fn not_serving(specifier: &RegionSpecifier) -> Failure {
    Error::NotServingRegion(format!("{} is not online", Cut(&specifier.value))).into()
}

fn unknown(specifier: &RegionSpecifier) -> Failure {
    Error::NoSuchRegion(format!("no region is called {}", Cut(&specifier.value))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A region that is replaced after its look-up is one whose name is stale: the client retries.
    #[test]
    fn a_region_that_is_gone_is_not_served() {
        let specifier = RegionSpecifier {
            r#type: RegionSpecifierType::RegionName.into(),
            value: bytes::Bytes::from_static(b"t,,1.ab."),
        };
        let failure = gone(
            Error::NoSuchRegion("no region has the id 7".to_owned()),
            &specifier,
        );
        assert_eq!(
            failure.class(),
            "org.apache.hadoop.hbase.NotServingRegionException"
        );
        assert!(failure.can_retry());
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
