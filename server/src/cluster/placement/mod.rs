//! Which server each region is on: assignment, moves, balance.
//!
//! The servers are names under which the one process is known. The placement is in memory only:
//! after a start, regions are spread anew. The engine lists it in `hbase:meta` and reports new and
//! removed regions ([`RegionDirectory`]). Changes are made inside [`Engine::change_locations`], so
//! that a region that is being split or merged is not moved meanwhile.
//!
//! Data calls are checked ([`RegionGate`]) from the first time on that a region is unassigned.

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_engine::engine::{RegionDirectory, RegionGate, RegionInfo, RegionLocation, ServerName};
use basalt_engine::schema::{Escaped, TableName};
use basalt_engine::{Engine, Error, RegionId, Result};
use parking_lot::{Mutex, RwLock};

use self::balance::balance;

mod balance;
#[cfg(test)]
mod tests;

/// A region's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Position in the list of servers; of an unassigned region, the last one it was on.
    pub(crate) server: u16,
    /// Whether the region is not assigned to any server.
    pub(crate) is_unassigned: bool,
}

impl Place {
    fn on(server: u16) -> Self {
        Self {
            server,
            is_unassigned: false,
        }
    }
}

/// The servers and the places of all regions. Shared by all connections and the engine.
#[derive(Debug)]
pub(crate) struct Placement {
    /// At least one.
    servers: Vec<ServerName>,
    /// No other lock is taken under its own.
    regions: RwLock<Regions>,
    /// The standby that serves reads.
    replica: Mutex<Option<ServerName>>,
    /// At a standby that serves reads: the primary, while that is away.
    absent: Mutex<Option<ServerName>>,
}

#[derive(Debug, Default)]
struct Regions {
    /// All regions but those of the system tables, which stay on the first server. In the order of
    /// ids, so that a balance chooses the same moves every time.
    placed: BTreeMap<RegionId, (TableName, Place)>,
    /// Number of regions that were spread over the servers in turn.
    turns: usize,
}

impl Placement {
    /// REQUIRES: there is at least one server.
    pub(crate) fn new(servers: Vec<ServerName>) -> Self {
        Self {
            servers,
            regions: RwLock::default(),
            replica: Mutex::default(),
            absent: Mutex::default(),
        }
    }

    /// Sets or clears the primary that is away: `hbase:meta` then lists regions there, and their replicas
    /// here.
    pub(crate) fn set_absent(&self, engine: &Engine, primary: Option<ServerName>) -> Result<()> {
        if *self.absent.lock() == primary {
            return Ok(());
        }
        engine.change_locations(|| {
            *self.absent.lock() = primary;
            Ok(())
        })
    }

    /// True while this server serves `hbase:meta` because the primary is away.
    pub(crate) fn stands_in(&self) -> bool {
        self.absent.lock().is_some()
    }

    /// Sets the server that takes reads of replicas.
    pub(crate) fn set_replica(&self, engine: &Engine, replica: Option<ServerName>) -> Result<()> {
        if *self.replica.lock() == replica {
            return Ok(());
        }
        engine.change_locations(|| {
            *self.replica.lock() = replica;
            Ok(())
        })
    }

    /// The names of all servers.
    pub(crate) fn servers(&self) -> &[ServerName] {
        &self.servers
    }

    /// The place of a region.
    pub(crate) fn place(&self, region: RegionId) -> Place {
        let regions = self.regions.read();
        regions
            .placed
            .get(&region)
            .map_or(Place::default(), |(_, place)| *place)
    }

    /// The server of a region, or the last one of an unassigned region.
    pub(crate) fn server_of(&self, region: RegionId) -> &ServerName {
        &self.servers[usize::from(self.place(region).server)]
    }

    /// Assigns a region to that server, or to the one with the fewest regions other than its own;
    /// also a region that is not assigned.
    pub(crate) fn move_region(&self, engine: &Engine, region: &RegionInfo, to: Option<u16>) -> Result<()> {
        self.change(engine, region, |regions, place| match to {
            Some(server) if usize::from(server) < self.servers.len() => Ok(Place::on(server)),
            Some(server) => Err(Error::InvalidArgument(format!("there is no server {server}"))),
            None => Ok(Place::on(self.least_loaded(regions, Some(place.server)))),
        })
    }

    /// Assigns a region to the server with the fewest regions, or leaves it where it is assigned.
    pub(crate) fn assign(&self, engine: &Engine, region: &RegionInfo) -> Result<()> {
        self.change(engine, region, |regions, place| {
            Ok(if place.is_unassigned {
                Place::on(self.least_loaded(regions, None))
            } else {
                place
            })
        })
    }

    /// Takes a region from its server.
    pub(crate) fn unassign(self: &Arc<Self>, engine: &Engine, region: &RegionInfo) -> Result<()> {
        let gate = Arc::clone(self);
        engine.set_gate(gate);
        self.change(engine, region, |_, place| {
            Ok(Place {
                is_unassigned: true,
                ..place
            })
        })
    }

    /// Evens out the regions of each table over the servers, and then all regions, with as few
    /// moves as possible. Returns the number of moves. Unassigned regions stay so.
    pub(crate) fn balance(&self, engine: &Engine) -> Result<usize> {
        engine.change_locations(|| {
            let mut regions = self.regions.write();
            let moves = self.moves(&regions);
            for (region, to) in &moves {
                regions.set(*region, Place::on(*to));
            }
            Ok(moves.len())
        })
    }

    /// The number of regions that [`Self::balance`] would move now.
    pub(crate) fn plan_balance(&self) -> usize {
        self.moves(&self.regions.read()).len()
    }

    /// The regions that a balance moves, and where to.
    fn moves(&self, regions: &Regions) -> Vec<(RegionId, u16)> {
        let assigned = regions
            .placed
            .iter()
            .filter(|(_, (_, place))| !place.is_unassigned);
        let (ids, places): (Vec<_>, Vec<_>) = assigned
            .map(|(id, (table, place))| (*id, (table.clone(), place.server)))
            .unzip();
        let balanced = balance(&places, self.servers.len());
        let moves = ids.into_iter().zip(balanced).zip(&places);
        moves
            .filter(|((_, to), (_, from))| to != from)
            .map(|(moved, _)| moved)
            .collect()
    }

    /// Puts a region where `choose` says, given its present place.
    fn change(
        &self,
        engine: &Engine,
        region: &RegionInfo,
        choose: impl FnOnce(&Regions, Place) -> Result<Place>,
    ) -> Result<()> {
        engine.change_locations(|| {
            let mut regions = self.regions.write();
            let Some((_, place)) = regions.placed.get(&region.id) else {
                return Err(if region.table.is_system() {
                    Error::DoNotRetry(format!("the region of {} stays on its server", region.table))
                } else {
                    Error::NoSuchRegion(format!("no region has the id {}", region.id))
                });
            };
            let place = choose(&regions, *place)?;
            regions.set(region.id, place);
            Ok(())
        })
    }

    /// The server with the fewest assigned regions, the first of equals; not `but`, if there is another.
    fn least_loaded(&self, regions: &Regions, but: Option<u16>) -> u16 {
        let mut loads = vec![0usize; self.servers.len()];
        for (_, place) in regions.placed.values().filter(|(_, place)| !place.is_unassigned) {
            loads[usize::from(place.server)] += 1;
        }
        (0u16..)
            .zip(&loads)
            .filter(|(server, _)| Some(*server) != but || loads.len() == 1)
            .min_by_key(|(_, load)| **load)
            .map_or(0, |(server, _)| server)
    }
}

impl Regions {
    fn set(&mut self, region: RegionId, place: Place) {
        if let Some((_, known)) = self.placed.get_mut(&region) {
            *known = place;
        }
    }
}

/// New regions are spread over the servers in turn. The halves of a split stay with their parent,
/// and a merged region with the first of those that were merged, as in HBase. Enabling a table
/// assigns its regions, also as in HBase.
impl RegionDirectory for Placement {
    fn location(&self, region: RegionId) -> RegionLocation {
        let place = self.place(region);
        let absent = self.absent.lock().clone();
        RegionLocation {
            server: absent.unwrap_or_else(|| self.servers[usize::from(place.server)].clone()),
            is_open: !place.is_unassigned,
        }
    }

    fn replica(&self) -> Option<ServerName> {
        if self.stands_in() {
            return self.servers.first().cloned();
        }
        self.replica.lock().clone()
    }

    fn added(&self, added: &[Arc<RegionInfo>], origin: Option<RegionId>) {
        let inherited = origin.map(|origin| self.place(origin));
        let mut regions = self.regions.write();
        for region in added {
            let place = inherited.unwrap_or_else(|| {
                let turn = regions.turns % self.servers.len();
                regions.turns += 1;
                Place::on(u16::try_from(turn).unwrap_or(0))
            });
            regions.placed.insert(region.id, (region.table.clone(), place));
        }
    }

    fn enabled(&self, table: &TableName) {
        let mut regions = self.regions.write();
        let unassigned = regions
            .placed
            .iter()
            .filter(|(_, (of, place))| of == table && place.is_unassigned);
        let unassigned: Vec<_> = unassigned.map(|(id, _)| *id).collect();
        for region in unassigned {
            let place = Place::on(self.least_loaded(&regions, None));
            regions.set(region, place);
        }
    }

    fn removed(&self, region: RegionId) {
        self.regions.write().placed.remove(&region);
    }
}

/// Refuses data calls on a region that is not assigned, in HBase's words
/// (`HRegionServer.getRegionByEncodedName`).
impl RegionGate for Placement {
    fn check(&self, region: &RegionInfo) -> Result<()> {
        let place = self.place(region.id);
        if !place.is_unassigned {
            return Ok(());
        }
        Err(Error::NotServingRegion(format!(
            "{} is not online on {}",
            Escaped(&region.name()),
            self.servers[usize::from(place.server)]
        )))
    }
}
