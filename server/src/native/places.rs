//! Moves, assignment and the balancer: which region is on which server.
//!
//! Without a rehearsal, the answers are those of an HBase with one region server: a move ends on the
//! server where it began, and the balancer finds nothing to move. In a rehearsal, regions move between
//! its virtual servers, which `hbase:meta` and the cluster's status name.
//!
//! A region that was unassigned answers data calls with NotServingRegionException, until it is assigned,
//! its table is enabled again, or the server restarts.

use basalt_engine::engine::ServerName;
use basalt_idl::native::messages as pb;

use super::region;
use crate::service::admin::regions;
use crate::service::{AdminCall, Failure};

/// Moves a region to the server that the call names, or to another one.
pub(super) fn move_region(call: &AdminCall, request: &pb::MoveRegionRequest) -> Result<(), Failure> {
    let region = regions::named(call, region::name(&request.region))?;
    regions::check_open(call, &region)?;
    let to = request.dest_server_name.as_ref();
    let to = to.map(|name| position(call, name)).transpose()?;
    regions::move_to(call, &region, to)
}

/// Assigns a region that has no server.
pub(super) fn assign(call: &AdminCall, specifier: &pb::RegionSpecifier) -> Result<(), Failure> {
    let region = regions::named(call, region::name(specifier))?;
    regions::check_closed(call, &region)?;
    regions::assign(call, &region)
}

/// Takes a region from its server.
pub(super) fn unassign(call: &AdminCall, specifier: &pb::RegionSpecifier) -> Result<(), Failure> {
    let region = regions::named(call, region::name(specifier))?;
    regions::check_open(call, &region)?;
    regions::unassign(call, &region)
}

/// Accepts that a region without a server stays so.
pub(super) fn offline(call: &AdminCall, specifier: &pb::RegionSpecifier) -> Result<(), Failure> {
    let region = regions::named(call, region::name(specifier))?;
    regions::check_closed(call, &region)
}

/// Evens out the regions if the balancer `is_on`. A dry run counts the moves only, also while it is off.
pub(super) fn balance(
    call: &AdminCall,
    request: pb::BalanceRequest,
    is_on: bool,
) -> Result<pb::BalanceResponse, Failure> {
    let is_dry_run = request.dry_run == Some(true);
    if !is_on && !is_dry_run {
        return Ok(balanced(false, 0, 0));
    }
    let moved = regions::balance(call, is_dry_run)?;
    Ok(balanced(true, moved, if is_dry_run { 0 } else { moved }))
}

fn balanced(balancer_ran: bool, calculated: usize, executed: usize) -> pb::BalanceResponse {
    let count = |moves| Some(u32::try_from(moves).unwrap_or(u32::MAX));
    pb::BalanceResponse {
        balancer_ran,
        moves_calculated: count(calculated),
        moves_executed: count(executed),
    }
}

/// The position of the server with this name.
fn position(call: &AdminCall, name: &pb::ServerName) -> Result<u16, Failure> {
    let is_called = |known: &ServerName| {
        known.host == name.host_name
            && Some(u32::from(known.port)) == name.port
            && Some(known.start_code) == name.start_code
    };
    regions::server_position(call, is_called)
        .ok_or_else(|| Failure::do_not_retry(format!("there is no server {}", name.host_name)))
}
