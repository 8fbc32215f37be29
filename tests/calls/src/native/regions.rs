//! Regions of a table, read from `hbase:meta` as clients do.
//!
//! A table without regions does not exist. Its calls go to a region name that no server has: the
//! answer to that is part of the interface, too.

use basalt_idl::native::messages::{
    Column, RegionInfo, RegionSpecifier, Scan, ScanRequest, ScanResponse,
    region_specifier::RegionSpecifierType,
};
use bytes::Bytes;
use prost::Message;

use crate::Value;
use crate::connection::NoAnswer;

use super::connection::{Connection, Reply};
use super::response::CellsIn;
use super::service::ClientKind;

/// The table of regions, and the name of its only region.
const META: &[u8] = b"hbase:meta";
const META_REGION: &[u8] = b"hbase:meta,,1";

/// Regions of one table that are read.
const REGIONS_MAX: u32 = 1000;

/// A region.
#[derive(Clone, Debug)]
pub struct Region {
    name: Bytes,
    /// First row of the region.
    pub(super) start: Bytes,
    /// The row behind its last one; empty for the last region.
    pub(super) end: Bytes,
}

impl Region {
    /// The name by which calls refer to it.
    pub fn specifier(&self) -> RegionSpecifier {
        specifier(self.name.clone())
    }

    /// Whether a row is in this region.
    pub fn contains(&self, row: &[u8]) -> bool {
        &self.start[..] <= row && (self.end.is_empty() || row < &self.end[..])
    }
}

fn specifier(name: Bytes) -> RegionSpecifier {
    RegionSpecifier {
        r#type: RegionSpecifierType::RegionName.into(),
        value: name,
    }
}

/// All regions of a table, in order; at least one.
#[derive(Clone, Debug)]
pub struct Regions {
    table: Vec<u8>,
    regions: Vec<Region>,
}

impl Regions {
    /// Reads the regions of a table.
    pub fn of(connection: &mut Connection, table: &[u8]) -> Result<Self, NoAnswer> {
        let mut regions = if table == META {
            vec![whole_table(META_REGION.into())]
        } else {
            read(connection, table)?
        };
        if regions.is_empty() {
            let name = [table, b",,1.00000000000000000000000000000000."].concat();
            regions.push(whole_table(name.into()));
        }
        Ok(Regions {
            table: table.to_vec(),
            regions,
        })
    }

    /// Regions that begin at these rows, and the one before them.
    #[cfg(test)]
    pub(super) fn split_at(starts: &[&'static str]) -> Self {
        let starts = std::iter::once("").chain(starts.iter().copied());
        let ends = starts.clone().skip(1).chain([""]);
        let region = |(start, end): (&'static str, &'static str)| Region {
            name: Bytes::from_static(start.as_bytes()),
            start: start.into(),
            end: end.into(),
        };
        Regions {
            table: b"t".to_vec(),
            regions: starts.zip(ends).map(region).collect(),
        }
    }

    /// The region of a row.
    pub fn serving(&self, row: &[u8]) -> &Region {
        let serving = self.regions.iter().rev().find(|region| &region.start[..] <= row);
        serving.unwrap_or(&self.regions[0])
    }

    /// The region of the rows right before this one; before the end of the table if it is empty.
    pub(super) fn before(&self, row: &[u8]) -> &Region {
        let mut before = self.regions.iter().rev();
        before
            .find(|region| row.is_empty() || &region.start[..] < row)
            .unwrap_or(&self.regions[0])
    }

    /// A nonce group that calls about another table do not have: nonces of scripts are small numbers,
    /// and each play of a script has table names of its own.
    pub(super) fn nonce_group(&self) -> u64 {
        let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.table.iter().fold(0xcbf2_9ce4_8422_2325, fnv)
    }
}

fn whole_table(name: Bytes) -> Region {
    Region {
        name,
        start: Bytes::new(),
        end: Bytes::new(),
    }
}

fn read(connection: &mut Connection, table: &[u8]) -> Result<Vec<Region>, NoAnswer> {
    let scan = Scan {
        column: vec![Column {
            family: Bytes::from_static(b"info"),
            qualifier: vec![Bytes::from_static(b"regioninfo")],
        }],
        start_row: Some([table, b",,"].concat().into()),
        stop_row: Some([table, b" ,,"].concat().into()),
        ..Scan::default()
    };
    let request = ScanRequest {
        region: Some(specifier(META_REGION.into())),
        scan: Some(scan),
        number_of_rows: Some(REGIONS_MAX),
        close_scanner: Some(true),
        ..ScanRequest::default()
    };
    let (answer, block) = match connection.call::<ScanResponse>("Scan", &request, b"")? {
        Reply::Success(answer, block) => (answer, block),
        Reply::Exception(exception) => {
            return Err(NoAnswer::Malformed("Scan", format!("hbase:meta: {exception}")));
        }
    };
    let mut rows = CellsIn::new("Scan", &block);
    let is_bare = connection.kind() == ClientKind::Bare;
    let results = rows.results(&answer, is_bare)?;
    let regions = results.iter().filter_map(|row| region(row).transpose());
    regions.collect()
}

/// The region of a row of `hbase:meta`; `None` if it was split.
fn region(row: &Value) -> Result<Option<Region>, NoAnswer> {
    let malformed = |what: &str| NoAnswer::Malformed("Scan", format!("hbase:meta: {what}: {row}"));
    let (Some(Value::Bytes(name)), Some(Value::List(cells))) = (row.field("row"), row.field("cells")) else {
        return Err(malformed("a row without cells"));
    };
    let Some(Value::Bytes(info)) = cells.first().and_then(|cell| cell.field("value")) else {
        return Err(malformed("a row without a value"));
    };
    let info = info.strip_prefix(b"PBUF").ok_or_else(|| malformed("no PBUF"))?;
    let info = RegionInfo::decode(info).map_err(|error| malformed(&error.to_string()))?;
    let gone = info.split == Some(true) || info.offline == Some(true);
    Ok((!gone).then(|| Region {
        name: name.clone().into(),
        start: info.start_key.unwrap_or_default(),
        end: info.end_key.unwrap_or_default(),
    }))
}
