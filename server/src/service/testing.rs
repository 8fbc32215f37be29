//! Calls for tests, which only an ephemeral server answers: they make it empty again or return it to a
//! template, move its clock, and arm faults.

use basalt_engine::Engine;
use basalt_engine::engine::{Removed, Work};
use basalt_engine::schema::{TableName, TableState};

use super::Failure;
use crate::ephemeral::faults::Faults;
use crate::ephemeral::{Controls, Template};
use crate::server::Server;

/// Removes all user tables, snapshots, quotas and namespaces that are not reserved, closes all
/// scanners, and ends pauses of background work and faults. The wall clock is the machine's again,
/// unless `keep_clock`. Refused unless the server is ephemeral.
pub(crate) fn reset(server: &Server, keep_clock: bool) -> Result<Removed, Failure> {
    let controls = controls(server, "basaltReset")?;
    end_changes(server, controls)?;
    let tables = server.engine().tables();
    *controls.template.lock() = None;
    let removed = server.engine().reset()?;
    for (table, _) in &tables {
        server.load().heat.forget(&table.name);
    }
    if !keep_clock && controls.clock.restore() {
        server.engine().restart_assigned_time();
    }
    Ok(removed)
}

/// Ends what tests change besides data: faults, scanners, pauses and quotas.
fn end_changes(server: &Server, controls: &Controls) -> Result<(), Failure> {
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
    Ok(())
}

/// Makes the present user tables and namespaces the template, instead of an earlier one. Returns the
/// number of tables. Refused unless the server is ephemeral.
pub(crate) fn keep_template(server: &Server) -> Result<usize, Failure> {
    let controls = controls(server, "/test/template")?;
    let mut kept = controls.template.lock();
    let engine = server.engine();
    for (snapshot, _) in kept.take().into_iter().flat_map(|template| template.tables) {
        engine.delete_snapshot(&snapshot)?;
    }
    let mut template = Template {
        tables: Vec::new(),
        namespaces: engine.namespaces(),
    };
    for (number, (table, _)) in user_tables(server.engine()).into_iter().enumerate() {
        let snapshot = format!("basalt-template-{number}");
        engine.snapshot(&table, &snapshot, true, 0)?;
        template.tables.push((snapshot, table));
    }
    let count = template.tables.len();
    *kept = Some(template);
    Ok(count)
}

/// Returns tables, namespaces and snapshots to the template, and everything else as [`reset`] does. The clock
/// stays, since the template's cells have its times. Returns the number of tables.
pub(crate) fn reset_to_template(server: &Server) -> Result<usize, Failure> {
    let controls = controls(server, "/test/reset")?;
    let kept = controls.template.lock();
    let template = kept.as_ref().ok_or_else(|| {
        Failure::illegal_argument(
            "there is no template: POST /test/template keeps the tables as they are".to_owned(),
        )
    })?;
    end_changes(server, controls)?;
    let engine = server.engine();
    for (table, state) in user_tables(server.engine()) {
        if state != TableState::Disabled {
            engine.disable_table(&table)?;
        }
        engine.drop_table(&table)?;
        server.load().heat.forget(&table);
    }
    for snapshot in engine.snapshots() {
        if template.tables.iter().all(|(name, _)| *name != snapshot.name) {
            engine.delete_snapshot(&snapshot.name)?;
        }
    }
    let now = engine.namespaces();
    for namespace in &now {
        if template.namespaces.iter().all(|kept| kept.name != namespace.name) {
            engine.drop_namespace(&namespace.name)?;
        }
    }
    for namespace in &template.namespaces {
        if now.iter().all(|there| there.name != namespace.name) {
            engine.create_namespace(namespace.clone())?;
        }
    }
    for (snapshot, table) in &template.tables {
        engine.clone_snapshot(snapshot, table)?;
    }
    Ok(template.tables.len())
}

fn user_tables(engine: &Engine) -> Vec<(TableName, TableState)> {
    let tables = engine.tables().into_iter();
    let tables = tables.filter(|(table, _)| !table.name.is_system());
    tables.map(|(table, state)| (table.name.clone(), state)).collect()
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
