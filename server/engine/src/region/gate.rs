//! Facts and decisions of a server around the engine: where `hbase:meta` lists regions, which of them take
//! no data calls, and which rights `hbase:acl` lists.
//!
//! The engine itself has no servers and no users, and serves all regions. Flushes, compactions, splits and
//! merges ignore these traits.

use std::fmt;
use std::sync::Arc;

use super::RegionInfo;
use crate::error::Result;
use crate::id::RegionId;
use crate::schema::TableName;

/// A server as `hbase:meta` names it: where clients reach it and since when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// When it started, in milliseconds (HBase: start code).
    pub start_code: u64,
}

/// HBase's form: host, port and start code.
impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.host, self.port, self.start_code)
    }
}

/// Where `hbase:meta` lists a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLocation {
    /// The region's server; of a closed region, the last one it was on.
    pub server: ServerName,
    /// Whether the server has it open.
    pub is_open: bool,
}

/// Locates regions for `hbase:meta`. Changes of regions are reported one at a time, each before it
/// is published; a directory of one server can ignore them.
pub trait RegionDirectory: fmt::Debug + Send + Sync {
    /// Where a region is. Regions of system tables are never reported as added.
    fn location(&self, region: RegionId) -> RegionLocation;

    /// The server that has a second copy of all regions, and takes reads of replicas.
    fn replica(&self) -> Option<ServerName> {
        None
    }

    /// Regions of one table are added, in key order. `origin`: the region whose split made them, or
    /// the first of those that were merged.
    fn added(&self, _regions: &[Arc<RegionInfo>], _origin: Option<RegionId>) {}

    /// A disabled table is being enabled.
    fn enabled(&self, _table: &TableName) {}

    /// A region is gone.
    fn removed(&self, _region: RegionId) {}
}

/// A cell of `hbase:acl`, of the family `l`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The scope: name of a table, `@namespace`, or `hbase:acl` for everything.
    pub row: Vec<u8>,
    /// User or group, with family and qualifier.
    pub qualifier: Vec<u8>,
    /// Letters of the actions.
    pub value: Vec<u8>,
}

/// The rights that `hbase:acl` lists. The engine checks none of them.
pub trait GrantSource: fmt::Debug + Send + Sync {
    /// A number that grows with each change, after the change.
    fn version(&self) -> u64;

    /// The cells in the order of a scan, no column twice.
    fn grants(&self) -> Vec<Grant>;
}

/// Decides which regions take data calls.
pub trait RegionGate: fmt::Debug + Send + Sync {
    /// Fails with [`Error::NotServingRegion`](crate::Error::NotServingRegion) if a region takes none.
    /// Called by every get and write, and by a scan for each region and each fetch.
    fn check(&self, region: &RegionInfo) -> Result<()>;
}
