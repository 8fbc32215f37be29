//! Filters of users' classes, which the Java host applies.
//!
//! The engine reads as if there were no filter ([`candidates`]), the host judges the rows in batches, and the
//! rows that pass are the results. A read of one row is one call of the host ([`get`]); a scan has its filter
//! open in the host from its first batch to its end (`scan`); a condition of a write is judged before the
//! row's lock is taken, and verified under it (`check`). No lock of the engine is held while the host is
//! asked.
//!
//! Runs on the blocking pool.

mod check;
mod judge;
mod scan;

use basalt_engine::Engine;
use basalt_engine::cell::CellBatch;
use basalt_engine::filter::UserFilter;
use basalt_engine::op::{ReadSpec, ReadTier};
use basalt_engine::schema::TableName;

use super::Failure;
use crate::server::Server;
use crate::server::user_code::UserCode;

pub(crate) use check::{check_round, judge_row};
pub(super) use scan::{Turn, new_scan, turn};

/// The host.
fn user_code<'s>(server: &'s Server, class: &str) -> Result<&'s UserCode, Failure> {
    // A filter of a user is decoded only where there is a host.
    server.user_code().ok_or_else(|| {
        Failure::do_not_retry(format!("Filter class {class}: user_code.directories is not set"))
    })
}

/// A failure that names class and table.
fn failure(error: &basalt_host::Error, class: &str, table: &TableName) -> Failure {
    let text = format!("{error} (user code {class}, table {table})");
    match error {
        basalt_host::Error::Busy { .. } => Failure::busy(text),
        error if error.can_retry() => Failure::plain_io(text),
        _ => Failure::do_not_retry(text),
    }
}

/// The read that finds the cells for a filter: what HBase's matcher lets through before it asks the filter.
fn candidates(spec: &ReadSpec) -> ReadSpec {
    ReadSpec {
        filter: None,
        // The family's versions are cut before the filter, those of the read after it; of a raw read both are
        // its own.
        max_versions: if spec.raw { spec.max_versions } else { i32::MAX },
        family_limit: None,
        family_offset: 0,
        ..spec.clone()
    }
}

/// Reads one row with a filter of a user. REQUIRES: it is the filter of `spec`.
pub(super) fn get(
    server: &Server,
    engine: &Engine,
    table: &TableName,
    row: &[u8],
    (spec, filter): (&ReadSpec, &UserFilter),
    out: &mut CellBatch,
) -> Result<(), Failure> {
    let mut found = judge::scratch(server);
    engine.get_within(table, row, &candidates(spec), ReadTier::All, &mut found)?;
    // The host is asked about a missing row, too: a class that cannot be loaded is an error whatever the
    // table has.
    let opening = judge::opening(engine, table, spec, filter, false)?;
    let asked = judge::Asked {
        table,
        filter,
        rows: &found,
    };
    judge::once(server, &asked, &opening, out)
}
