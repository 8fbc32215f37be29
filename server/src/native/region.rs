//! The regions that requests name.

use std::sync::Arc;

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::TableName;
use basalt_idl::native::messages::{RegionSpecifier, region_specifier::RegionSpecifierType};

use super::state::Connection;
use crate::service::Failure;
use crate::service::regions::{self, RegionName};

/// The name of the region.
pub(super) fn name(specifier: &RegionSpecifier) -> RegionName<'_> {
    RegionName {
        name: &specifier.value,
        is_encoded: specifier.r#type == RegionSpecifierType::EncodedRegionName as i32,
    }
}

/// The region of a call on `row`, or on the whole region ([`regions::serving`]).
pub(super) fn serving(
    connection: &Connection,
    specifier: &RegionSpecifier,
    row: Option<&[u8]>,
) -> Result<Arc<RegionInfo>, Failure> {
    let caller = &connection.sender.caller;
    regions::serving(&connection.server, caller, name(specifier), row)
}

/// The table of the region.
pub(super) fn table(connection: &Connection, specifier: &RegionSpecifier) -> Result<TableName, Failure> {
    regions::table(&connection.server, &connection.sender.caller, name(specifier))
}
