//! Moves, assignment and the balancer: which region is on which server.
//!
//! Without a rehearsal, the answers are those of an HBase with one region server: a move ends on the
//! server where it began, and the balancer finds nothing to move. In a rehearsal, regions move between
//! its virtual servers, which `hbase:meta` and the cluster's status name.
//!
//! A region that was unassigned answers data calls with NotServingRegionException, until it is assigned,
//! its table is enabled again, or the server restarts.

use basalt_engine::engine::{RegionInfo, ServerName};
use basalt_engine::schema::{Escaped, TableState};
use basalt_idl::native::messages as pb;

use super::region;
use crate::server::Server;
use crate::service::Failure;

/// Moves a region to the server that the call names, or to another one.
pub(super) fn move_region(server: &Server, call: &pb::MoveRegionRequest) -> Result<(), Failure> {
    let region = region::by_name(server, &call.region)?;
    check_state(server, &region, State::Open)?;
    let to = call.dest_server_name.as_ref();
    let to = to.map(|name| position(server, name)).transpose()?;
    if server.placement().servers().len() > 1 {
        server.placement().move_region(server.engine(), &region, to)?;
    }
    Ok(())
}

/// Assigns a region that has no server.
pub(super) fn assign(server: &Server, specifier: &pb::RegionSpecifier) -> Result<(), Failure> {
    let region = region::by_name(server, specifier)?;
    check_state(server, &region, State::Closed)?;
    Ok(server.placement().assign(server.engine(), &region)?)
}

/// Takes a region from its server.
pub(super) fn unassign(server: &Server, specifier: &pb::RegionSpecifier) -> Result<(), Failure> {
    let region = region::by_name(server, specifier)?;
    check_state(server, &region, State::Open)?;
    Ok(server.placement().unassign(server.engine(), &region)?)
}

/// Accepts that a region without a server stays so.
pub(super) fn offline(server: &Server, specifier: &pb::RegionSpecifier) -> Result<(), Failure> {
    check_state(server, &*region::by_name(server, specifier)?, State::Closed)
}

/// Evens out the regions if the balancer `is_on`. A dry run counts the moves only, also while it is off.
pub(super) fn balance(
    server: &Server,
    call: pb::BalanceRequest,
    is_on: bool,
) -> Result<pb::BalanceResponse, Failure> {
    let placement = server.placement();
    let (calculated, executed) = match (call.dry_run == Some(true), is_on) {
        (true, _) => (placement.plan_balance(), 0),
        (false, true) => {
            let moved = placement.balance(server.engine())?;
            (moved, moved)
        }
        (false, false) => return Ok(balanced(false, 0, 0)),
    };
    Ok(balanced(true, calculated, executed))
}

fn balanced(balancer_ran: bool, calculated: usize, executed: usize) -> pb::BalanceResponse {
    let count = |moves| Some(u32::try_from(moves).unwrap_or(u32::MAX));
    pb::BalanceResponse {
        balancer_ran,
        moves_calculated: count(calculated),
        moves_executed: count(executed),
    }
}

/// The state of a region that a call expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closed,
}

/// Refuses a region in another state, and one of a disabled table. The classes and texts are HBase's.
fn check_state(server: &Server, region: &RegionInfo, expected: State) -> Result<(), Failure> {
    let (_, table) = server.engine().describe_table(&region.table)?;
    let is_closed = table == TableState::Disabled || server.placement().place(region.id).is_unassigned;
    let state = if is_closed { State::Closed } else { State::Open };
    let name = region.name();
    if state != expected {
        let state = if is_closed { "CLOSED" } else { "OPEN" };
        let text = format!("Unexpected state for {}, state={state}", Escaped(&name));
        return Err(Failure::do_not_retry_region(text));
    }
    if table == TableState::Disabled {
        let text = format!("{} is disabled for {}", region.table, Escaped(&name));
        return Err(Failure::do_not_retry(text));
    }
    Ok(())
}

/// The position of the server with this name.
fn position(server: &Server, name: &pb::ServerName) -> Result<u16, Failure> {
    let is_called = |known: &ServerName| {
        known.host == name.host_name
            && Some(u32::from(known.port)) == name.port
            && Some(known.start_code) == name.start_code
    };
    let found = server.placement().servers().iter().position(is_called);
    found
        .and_then(|position| u16::try_from(position).ok())
        .ok_or_else(|| Failure::do_not_retry(format!("there is no server {}", name.host_name)))
}
