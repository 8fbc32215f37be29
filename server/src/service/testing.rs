//! Calls for tests, which only an ephemeral server answers: they make it empty again, move its clock,
//! and arm faults.

use basalt_engine::engine::{Removed, Work};
use basalt_idl::admin::TFault;
use bytes::Bytes;

use super::{Failure, Server};
use crate::ephemeral::Controls;
use crate::faults::{Fault, Faults, Given, Kind, check_all};

/// Removes all user tables, snapshots, quotas and namespaces that are not reserved, closes all
/// scanners, and ends pauses of background work and faults. Refused unless the server is ephemeral.
pub(crate) fn reset(server: &Server) -> Result<Removed, Failure> {
    controls(server, "basaltReset")?.faults.set(Vec::new());
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
    Ok(server.engine().reset()?)
}

/// Moves the wall clock forward; returns what it says now.
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

/// Arms faults instead of the present ones; returns them.
pub(super) fn set_faults(server: &Server, given: Vec<TFault>) -> Result<Vec<TFault>, Failure> {
    let faults = faults(server, "basaltSetFaults")?;
    let checked = check_all(given.into_iter().map(from_thrift));
    faults.set(checked.map_err(Failure::illegal_argument)?);
    Ok(faults.list().iter().map(to_thrift).collect())
}

/// The faults that are armed, each with the calls that are left.
pub(super) fn list_faults(server: &Server) -> Result<Vec<TFault>, Failure> {
    let faults = faults(server, "basaltFaults")?;
    Ok(faults.list().iter().map(to_thrift).collect())
}

fn from_thrift(fault: TFault) -> Result<Given, String> {
    let text = |bytes: Bytes| String::from_utf8(bytes.into()).map_err(|_| "table is not UTF-8".to_owned());
    Ok(Given {
        method: fault.method,
        fault: fault.fault,
        calls: fault.calls.into(),
        table: fault.table.map(text).transpose()?,
        delay_ms: fault.delay_ms.map(i64::from),
        split_row: fault.split_row.map(Vec::from),
    })
}

fn to_thrift(fault: &Fault) -> TFault {
    TFault {
        method: fault.methods.name().to_owned(),
        fault: fault.kind.name().to_owned(),
        calls: i32::try_from(fault.calls).unwrap_or(i32::MAX),
        table: fault.table.as_ref().map(|table| Bytes::from(table.to_string())),
        delay_ms: match fault.kind {
            Kind::Delay(delay) => i32::try_from(delay.as_millis()).ok(),
            _ => None,
        },
        split_row: match &fault.kind {
            Kind::Split(row) => row.clone().map(Bytes::from),
            _ => None,
        },
    }
}

fn controls<'a>(server: &'a Server, call: &str) -> Result<&'a Controls, Failure> {
    server.controls().ok_or_else(|| Failure::not_ephemeral(call))
}
