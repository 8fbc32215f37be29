//! Which server each region is on: assignment, moves, balance.
//!
//! The servers are names under which the one process was announced. The server of a region is
//! stored with the region in memory only: after a start, regions are spread anew. Changes are made
//! one at a time, under `Catalog::schema`, so a region that is being split or merged is not moved
//! meanwhile, and `hbase:meta` is listed anew after each.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Catalog, SystemTable};
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::region::{Place, Region, ServerName};
use crate::schema::{TableName, escape};

impl Catalog {
    /// Sets the names under which the server can be reached, and spreads the regions over them:
    /// table by table, in key order, each on the next server. The first call with a name counts.
    pub(crate) fn announce(&self, servers: Vec<ServerName>) {
        let _schema = self.schema.lock();
        if self.shared.servers.announce(servers) {
            for table in self.tables().sorted() {
                self.shared.servers.place(&table.regions);
            }
            self.system.forget();
        }
    }

    /// The place of a region; those of the system tables stay on the first server.
    pub(crate) fn place(&self, id: RegionId) -> Place {
        self.tables()
            .region(id)
            .map_or(Place::default(), |region| region.place())
    }

    /// The places of the regions that hold these rows, in the rows' order.
    pub(crate) fn places<'r>(
        &self,
        table: &TableName,
        rows: impl Iterator<Item = &'r [u8]>,
    ) -> Result<Vec<Place>> {
        let table = self.table(table)?;
        Ok(rows.map(|row| table.region_of(row).place()).collect())
    }

    /// Assigns a region to that server, or to the one with the fewest regions other than its own;
    /// also a region that is not assigned.
    pub(crate) fn move_region(&self, id: RegionId, to: Option<u16>) -> Result<()> {
        let _schema = self.schema.lock();
        let region = self.placeable(id)?;
        let to = match to {
            Some(server) if usize::from(server) < self.shared.servers.names().len() => server,
            Some(server) => {
                return Err(Error::InvalidArgument(format!("there is no server {server}")));
            }
            None => self.least_loaded(Some(region.place().server)),
        };
        region.set_place(Place::on(to));
        self.system.forget();
        Ok(())
    }

    /// Assigns a region to the server with the fewest regions, or leaves it where it is assigned.
    pub(crate) fn assign_region(&self, id: RegionId) -> Result<()> {
        let _schema = self.schema.lock();
        let region = self.placeable(id)?;
        if region.place().is_unassigned {
            region.set_place(Place::on(self.least_loaded(None)));
            self.system.forget();
        }
        Ok(())
    }

    /// Takes a region from its server.
    pub(crate) fn unassign_region(&self, id: RegionId) -> Result<()> {
        let _schema = self.schema.lock();
        let region = self.placeable(id)?;
        region.set_place(Place {
            is_unassigned: true,
            ..region.place()
        });
        self.system.forget();
        Ok(())
    }

    /// Evens out the regions of each table over the servers, and then all regions, with as few
    /// moves as possible. Returns the number of moves. Unassigned regions stay so.
    pub(crate) fn balance_regions(&self) -> usize {
        let _schema = self.schema.lock();
        let moves = self.moves();
        for (region, to) in &moves {
            region.set_place(Place::on(*to));
        }
        self.system.forget();
        moves.len()
    }

    /// The number of regions that [`Self::balance_regions`] would move now.
    pub(crate) fn plan_balance(&self) -> usize {
        let _schema = self.schema.lock();
        self.moves().len()
    }

    /// The regions that a balance moves, and where to. REQUIRES: `schema` is locked.
    fn moves(&self) -> Vec<(Arc<Region>, u16)> {
        let tables = self.tables();
        let assigned = tables.regions().filter(|region| !region.place().is_unassigned);
        let assigned: Vec<_> = assigned.cloned().collect();
        let placed = |region: &Arc<Region>| (region.info().table.clone(), region.place().server);
        let places: Vec<_> = assigned.iter().map(placed).collect();
        let balanced = balance(&places, self.shared.servers.names().len());
        let moves = assigned.into_iter().zip(balanced);
        moves
            .filter(|(region, to)| region.place().server != *to)
            .collect()
    }

    /// Assigns those of a table's regions that are not assigned. REQUIRES: `schema` is locked.
    pub(super) fn assign_all(&self, regions: &[Arc<Region>]) {
        for region in regions.iter().filter(|region| region.place().is_unassigned) {
            region.set_place(Place::on(self.least_loaded(None)));
        }
    }

    /// A region that can be put elsewhere.
    fn placeable(&self, id: RegionId) -> Result<Arc<Region>> {
        if let Some(system) = SystemTable::of_region(id) {
            return Err(Error::DoNotRetry(format!(
                "the region of {} stays on its server",
                self.system.descriptor(system).name
            )));
        }
        let (_, region) = self.region(id)?;
        if self.shared.servers.names().is_empty() {
            return Err(Error::DoNotRetry(format!(
                "no server was announced for {}",
                escape(&region.info().name())
            )));
        }
        Ok(region)
    }

    /// The server with the fewest assigned regions, the first of equals; not `but`, if there is another.
    fn least_loaded(&self, but: Option<u16>) -> u16 {
        let mut loads = vec![0usize; self.shared.servers.names().len()];
        for region in self.tables().regions() {
            let place = region.place();
            if !place.is_unassigned
                && let Some(load) = loads.get_mut(usize::from(place.server))
            {
                *load += 1;
            }
        }
        (0u16..)
            .zip(&loads)
            .filter(|(server, _)| Some(*server) != but || loads.len() == 1)
            .min_by_key(|(_, load)| **load)
            .map_or(0, |(server, _)| server)
    }
}

/// The servers on which these regions should be, given by table and present server, in the same order.
fn balance(regions: &[(TableName, u16)], servers: usize) -> Vec<u16> {
    let mut on: Vec<u16> = regions.iter().map(|(_, server)| *server).collect();
    let mut all = vec![0i64; servers];
    let mut of_table: HashMap<&TableName, (Vec<i64>, Vec<usize>)> = HashMap::new();
    for (index, (table, server)) in regions.iter().enumerate() {
        let (loads, members) = of_table
            .entry(table)
            .or_insert_with(|| (vec![0; servers], Vec::new()));
        loads[usize::from(*server)] += 1;
        all[usize::from(*server)] += 1;
        members.push(index);
    }
    // By table: from its fullest server to its emptiest, among equals to the one with fewer in
    // total.
    let mut tables: Vec<_> = of_table.into_iter().collect();
    tables.sort_by_key(|(_, (_, members))| members[0]);
    for (_, (loads, members)) in &mut tables {
        loop {
            let Some((most, least)) = ends(servers, |server| (loads[server], all[server])) else {
                return on;
            };
            if loads[most] - loads[least] <= 1 {
                break;
            }
            let moved = members.iter().find(|index| usize::from(on[**index]) == most);
            let Some(index) = moved else { break };
            on[*index] = least as u16;
            for counts in [&mut *loads, &mut all] {
                counts[most] -= 1;
                counts[least] += 1;
            }
        }
    }
    // In total: while one server has two more than another, some table has one more on it, which
    // can move to the other.
    while let Some((most, least)) = ends(servers, |server| (all[server], 0)) {
        let uneven = |(_, (loads, _)): &&mut (&TableName, (Vec<i64>, Vec<usize>))| loads[most] > loads[least];
        let Some((_, (loads, members))) = tables.iter_mut().find(uneven) else {
            break;
        };
        let moved = members.iter().find(|index| usize::from(on[**index]) == most);
        let (true, Some(index)) = (all[most] - all[least] > 1, moved) else {
            break;
        };
        on[*index] = least as u16;
        for counts in [&mut *loads, &mut all] {
            counts[most] -= 1;
            counts[least] += 1;
        }
    }
    on
}

/// The servers with the greatest and the least load; `None` without servers.
fn ends(servers: usize, load: impl Fn(usize) -> (i64, i64)) -> Option<(usize, usize)> {
    let most = (0..servers).max_by_key(|server| load(*server))?;
    let least = (0..servers).min_by_key(|server| load(*server))?;
    Some((most, least))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(regions: &[(TableName, u16)], on: &[u16], servers: usize, table: Option<&str>) -> Vec<usize> {
        (0..servers)
            .map(|server| {
                let here = |(index, (name, _)): &(usize, &(TableName, u16))| {
                    usize::from(on[*index]) == server && table.is_none_or(|table| name.to_string() == table)
                };
                regions.iter().enumerate().filter(here).count()
            })
            .collect()
    }

    /// Goal: after a balance every table is spread as evenly as its number of regions allows, and so are all
    /// together.
    #[test]
    fn tables_and_the_whole_become_even() {
        let table = |name: &str| TableName::parse(name.as_bytes()).unwrap();
        let mut regions: Vec<_> = (0..9).map(|_| (table("big"), 0)).collect();
        regions.extend((0..7).map(|number| (table(&format!("small{number}")), 0)));
        let on = balance(&regions, 4);
        assert_eq!(loads(&regions, &on, 4, None), [4, 4, 4, 4]);
        let mut big = loads(&regions, &on, 4, Some("big"));
        big.sort_unstable();
        assert_eq!(big, [2, 2, 2, 3]);
    }

    /// Goal: regions that are evenly spread stay where they are.
    #[test]
    fn an_even_spread_is_left_alone() {
        let table = TableName::parse(b"t").unwrap();
        let regions: Vec<_> = (0..10).map(|number| (table.clone(), number % 4)).collect();
        let before: Vec<_> = regions.iter().map(|(_, server)| *server).collect();
        assert_eq!(balance(&regions, 4), before);
        assert!(balance(&[], 4).is_empty());
        assert_eq!(balance(&regions[..1], 1), [0]);
    }
}
