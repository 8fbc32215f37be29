//! Where regions are: their servers' names for locations, and the calls that move them. Only in a rehearsal
//! is there more than one server to be on.

use basalt_engine::engine::{RegionInfo, ServerName};

use super::Failure;
use crate::cluster::regions;
use crate::server::Server;

/// The server of a region, or the last one of an unassigned region, as in `hbase:meta`.
pub(crate) fn server_of(server: &Server, region: &RegionInfo) -> ServerName {
    server.placement().server_of(region.id).clone()
}

/// Moves a region to the server of that name, or to the least loaded one. The start code may be left out, and
/// the port.
pub(crate) fn move_region(server: &Server, region: &[u8], to: Option<&str>) -> Result<(), Failure> {
    check_rehearsal(server)?;
    let to = to.map(|name| position(server, name)).transpose()?;
    let region = regions::region(server.engine(), region)?;
    Ok(server.placement().move_region(server.engine(), &region, to)?)
}

/// Assigns a region that is not assigned.
pub(crate) fn assign(server: &Server, region: &[u8]) -> Result<(), Failure> {
    check_rehearsal(server)?;
    let region = regions::region(server.engine(), region)?;
    Ok(server.placement().assign(server.engine(), &region)?)
}

/// Takes a region from its server.
pub(crate) fn unassign(server: &Server, region: &[u8]) -> Result<(), Failure> {
    check_rehearsal(server)?;
    let region = regions::region(server.engine(), region)?;
    Ok(server.placement().unassign(server.engine(), &region)?)
}

/// Evens out the regions; returns how many were moved.
pub(crate) fn balance(server: &Server) -> Result<i32, Failure> {
    check_rehearsal(server)?;
    let moved = server.placement().balance(server.engine())?;
    Ok(i32::try_from(moved).unwrap_or(i32::MAX))
}

fn check_rehearsal(server: &Server) -> Result<(), Failure> {
    match server.admission().capacity().rehearsal() {
        Some(_) => Ok(()),
        None => Err(Failure::do_not_retry(
            "there is one server, which has all regions; a rehearsal (rehearsal.servers) makes it look like several",
        )),
    }
}

/// The position of the server called so.
fn position(server: &Server, name: &str) -> Result<u16, Failure> {
    let is_called = |known: &ServerName| {
        let full = known.to_string();
        full == name || full.strip_prefix(name).is_some_and(|rest| rest.starts_with(','))
    };
    let servers = server.placement().servers();
    let found = servers.iter().position(is_called);
    found
        .and_then(|position| u16::try_from(position).ok())
        .ok_or_else(|| {
            Failure::illegal_argument(format!(
                "no server is called {name:?}; they are called like {}",
                servers[0]
            ))
        })
}
