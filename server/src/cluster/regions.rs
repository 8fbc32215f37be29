//! Tables and regions by the names that clients have for them.

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::{Cut, Escaped, TableName};
use basalt_engine::{Engine, Error, Result};

/// Target of a call that takes a table's name or a region's.
#[derive(Debug)]
pub(crate) enum Target {
    /// All regions of a table.
    Table(TableName),
    /// One region.
    Region(RegionInfo),
}

/// A table of that name, else the region of that name. The two cannot be confused: a region's full
/// name has a comma, which a table's cannot have, and a table whose name looks like an encoded name
/// is found as a table.
pub(crate) fn target(engine: &Engine, name: &[u8]) -> Result<Target> {
    let table = TableName::parse(name);
    if let Ok(table) = &table
        && engine.describe_table(table).is_ok()
    {
        return Ok(Target::Table(table.clone()));
    }
    match (region(engine, name), table) {
        (Ok(region), _) => Ok(Target::Region(region)),
        (Err(_), Ok(table)) => Err(Error::NoSuchTable(table)),
        (Err(error), Err(_)) => Err(error),
    }
}

/// The region of that full name, encoded name, or printed name.
pub(crate) fn region(engine: &Engine, name: &[u8]) -> Result<RegionInfo> {
    let of_table = |table: &TableName| engine.regions(table).unwrap_or_default();
    // A full name begins with the table's name. A printed name with escapes (`\x`) may have them in
    // the table's name, and an encoded name has no table's name: both are looked up in all tables.
    let table = name
        .iter()
        .position(|byte| *byte == b',')
        .map(|comma| &name[..comma]);
    let is_printed = name.windows(2).any(|pair| pair == b"\\x");
    let candidates = match table {
        Some(table) if !is_printed => of_table(&TableName::parse(table)?),
        _ => engine
            .tables()
            .iter()
            .flat_map(|(table, _)| of_table(&table.name))
            .collect(),
    };
    let is_called = |region: &RegionInfo| {
        region.encoded_name.as_bytes() == name || region.name() == name || printed(region).as_bytes() == name
    };
    candidates
        .into_iter()
        .find(is_called)
        .ok_or_else(|| Error::NoSuchRegion(format!("no region is called {}", Cut(name))))
}

/// A region's full name for people.
pub(crate) fn printed(region: &RegionInfo) -> String {
    Escaped(&region.name()).to_string()
}
