//! Where a region is served: on one of the servers that were announced, or on none.
//!
//! There is one process; it may present itself as several servers. The engine stores the server of
//! each region, and refuses reads and writes of an unassigned one. Flushes, compactions, splits and
//! merges ignore the assignment.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::Region;
use crate::error::{Error, Result};
use crate::schema::Escaped;

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
impl std::fmt::Display for ServerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.host, self.port, self.start_code)
    }
}

/// The servers, and the next one to get a new region.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// Set once, when the server is reachable; not empty then.
    names: OnceLock<Vec<ServerName>>,
    /// Counts regions that were placed, which take turns.
    placed: AtomicUsize,
}

impl Servers {
    /// Sets the names under which the server can be reached. The first call with a name counts;
    /// returns whether this was it.
    pub(crate) fn announce(&self, names: Vec<ServerName>) -> bool {
        !names.is_empty() && self.names.set(names).is_ok()
    }

    /// The servers that were announced.
    pub(crate) fn names(&self) -> &[ServerName] {
        self.names.get().map_or(&[], Vec::as_slice)
    }

    /// Spreads new regions over the servers: each goes to the next one.
    pub(crate) fn place(&self, regions: &[Arc<Region>]) {
        let servers = self.names().len().max(1);
        for region in regions {
            let turn = self.placed.fetch_add(1, Ordering::Relaxed) % servers;
            region.set_place(Place::on(u16::try_from(turn).unwrap_or(0)));
        }
    }

    /// Refuses data calls on a region that is not assigned, in HBase's words
    /// (`HRegionServer.getRegionByEncodedName`).
    pub(crate) fn check_assigned(&self, region: &Region) -> Result<()> {
        let place = region.place();
        if !place.is_unassigned {
            return Ok(());
        }
        let server = self.names().get(usize::from(place.server));
        Err(Error::NotServingRegion(format!(
            "{} is not online on {}",
            Escaped(&region.info().name()),
            server.map(ToString::to_string).unwrap_or_default()
        )))
    }
}

/// Set while the region is not assigned.
const UNASSIGNED: u32 = 1 << 31;

/// A region's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Position in the list of announced servers; of an unassigned region, the last one it was on.
    pub server: u16,
    /// Whether the region is not assigned to any server.
    pub is_unassigned: bool,
}

impl Place {
    /// Assigned to that server.
    pub fn on(server: u16) -> Self {
        Self {
            server,
            is_unassigned: false,
        }
    }
}

/// The place of a region, which changes while others look.
#[derive(Debug, Default)]
pub(super) struct AtomicPlace(AtomicU32);

impl AtomicPlace {
    pub(super) fn load(&self) -> Place {
        let packed = self.0.load(Ordering::Acquire);
        Place {
            server: packed as u16,
            is_unassigned: packed & UNASSIGNED != 0,
        }
    }

    pub(super) fn store(&self, place: Place) {
        let flag = if place.is_unassigned { UNASSIGNED } else { 0 };
        self.0.store(u32::from(place.server) | flag, Ordering::Release);
    }
}
