//! Tables and regions by the names that clients have for them.

use basalt_engine::Error;
use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::{Escaped, TableName};

use super::{Failure, Server, to_thrift};

/// What a call works on that takes a table's name or a region's.
#[derive(Debug)]
pub(super) enum Target {
    /// All regions of a table.
    Table(TableName),
    /// One region.
    Region(RegionInfo),
}

impl Target {
    /// Flushes it and waits.
    pub(super) fn flush(&self, server: &Server) -> Result<(), Failure> {
        let flushed = match self {
            Self::Table(table) => server.engine().flush(table),
            Self::Region(region) => server.engine().flush_region(region.id),
        };
        flushed.map_err(Failure::from)
    }

    /// Compacts it, or one family of it; with `wait`, returns when it is done.
    pub(super) fn compact(
        &self,
        server: &Server,
        family: Option<&[u8]>,
        major: bool,
        wait: bool,
    ) -> Result<(), Failure> {
        let compacted = match self {
            Self::Table(table) => server.engine().compact(table, family, major, wait),
            Self::Region(region) => server.engine().compact_region(region.id, family, major, wait),
        };
        compacted.map_err(Failure::from)
    }
}

/// A table of that name, else the region of that name. The two cannot be mistaken: a region's full name has a comma, which a table's
/// cannot have, and a table that is called like an encoded name is found as a table.
pub(super) fn target(server: &Server, name: &[u8]) -> Result<Target, Failure> {
    let table = TableName::parse(name);
    if let Ok(table) = &table
        && server.engine().describe_table(table).is_ok()
    {
        return Ok(Target::Table(table.clone()));
    }
    match (region(server, name), table) {
        (Ok(region), _) => Ok(Target::Region(region)),
        (Err(_), Ok(table)) => Err(Error::NoSuchTable(table).into()),
        (Err(failure), Err(_)) => Err(failure),
    }
}

/// The region of that full name, encoded name, or printed name.
pub(super) fn region(server: &Server, name: &[u8]) -> Result<RegionInfo, Failure> {
    let of_table = |table: &TableName| server.engine().regions(table).unwrap_or_default();
    // A full name begins with the table's name. A printed name with escapes (`\x`) may have them in
    // the table's name, and an encoded name has no table's name: both are looked up in all tables.
    let table = name
        .iter()
        .position(|byte| *byte == b',')
        .map(|comma| &name[..comma]);
    let is_printed = name.windows(2).any(|pair| pair == b"\\x");
    let candidates = match table {
        Some(table) if !is_printed => of_table(&TableName::parse(table)?),
        _ => server
            .engine()
            .tables()
            .iter()
            .flat_map(|(table, _)| of_table(&table.name))
            .collect(),
    };
    let is_called = |region: &RegionInfo| {
        region.encoded_name.as_bytes() == name
            || region.name() == name
            || to_thrift::printed_region(region).as_bytes() == name
    };
    candidates
        .into_iter()
        .find(is_called)
        .ok_or_else(|| Error::NoSuchRegion(format!("no region is called {}", Escaped(name))).into())
}
