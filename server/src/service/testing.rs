//! Calls for tests, which only an ephemeral server answers: they make it empty again, move its clock,
//! and arm faults.

use basalt_engine::engine::{Removed, Work};

use super::Failure;
use crate::ephemeral::Controls;
use crate::ephemeral::faults::Faults;
use crate::server::Server;

/// Removes all user tables, snapshots, quotas and namespaces that are not reserved, closes all
/// scanners, and ends pauses of background work and faults. The wall clock is the machine's again,
/// unless `keep_clock`. Refused unless the server is ephemeral.
pub(crate) fn reset(server: &Server, keep_clock: bool) -> Result<Removed, Failure> {
    let controls = controls(server, "basaltReset")?;
    controls.faults.set(Vec::new());
    server.sessions().close_all();
    for work in [Work::Flushes, Work::Compactions] {
        server.engine().pause(work, false);
    }
    let capacity = server.admission().capacity();
    for quota in capacity.list_quotas() {
        capacity.change_quota(
            server.engine(),
            quota.owner.clone(),
            std::collections::BTreeMap::clear,
        )?;
    }
    let tables = server.engine().tables();
    let removed = server.engine().reset()?;
    for (table, _) in &tables {
        server.heat().forget(&table.name);
    }
    if !keep_clock && controls.clock.restore() {
        server.engine().restart_assigned_time();
    }
    Ok(removed)
}

/// Moves the wall clock forward; returns the new time.
pub(crate) fn advance_clock(server: &Server, ms: i64) -> Result<i64, Failure> {
    let controls = controls(server, "basaltAdvanceClock")?;
    let ms = u64::try_from(ms)
        .map_err(|_| Failure::illegal_argument(format!("the clock goes forward only, and ms is {ms}")))?;
    Ok(controls.clock.advance_ms(ms) as i64)
}

/// Faults that calls may meet. Refused unless the server is ephemeral.
pub(crate) fn faults<'a>(server: &'a Server, call: &str) -> Result<&'a Faults, Failure> {
    controls(server, call).map(|controls| &controls.faults)
}

fn controls<'a>(server: &'a Server, call: &str) -> Result<&'a Controls, Failure> {
    server.controls().ok_or_else(|| Failure::not_ephemeral(call))
}
