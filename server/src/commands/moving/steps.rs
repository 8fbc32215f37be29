//! The steps before the switch.
//!
//! Each says what it does, what it waits for, and how to go back. Each may be done again from its beginning.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use basalt_client::native::Shipment;
use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::messages::replication_state::State as PeerState;
use bytes::Bytes;

use super::compare::{Comparison, Mode};
use super::sender::id_bytes;
use super::side::{Side, all_global, is_read_only, scopes};
use super::state::{State, Step};
use super::{CLOCKS_MS_MAX, Failure, Moving, copy, here, switch, there};
use crate::commands::backup::show;
use crate::commands::command_line::{Move, MoveStep};
use crate::commands::replication;

/// A wait for the peer that is shorter shows that it keeps pace.
const KEEPS_PACE: Duration = Duration::from_secs(2);

/// Longest time of a call that only shows that a server answers.
const ANSWER: Duration = Duration::from_secs(15);

/// Milliseconds before the comparison that the switch compares again, for rows that were on their way.
const BEFORE_COMPARED_MS: u64 = 1_000;

/// Number of the steps, the switch included.
const STEPS: usize = 8;

/// The way back of the steps before the switch.
const UNDO: &str = "--undo";

/// A step for people.
struct Text {
    name: &'static str,
    does: &'static str,
    waits_for: &'static str,
}

const CHECK: Text = Text {
    name: "check",
    does: "both clusters answer, their clocks agree, and the table can move",
    waits_for: "answers of all servers of both clusters",
};

fn text(step: MoveStep) -> Text {
    let (name, does, waits_for) = match step {
        MoveStep::Check => return CHECK,
        MoveStep::Peer => (
            "peer",
            "families get scope 1, and a disabled peer keeps the log from now on",
            "nothing",
        ),
        MoveStep::Table => (
            "table",
            "the table is created there, with the schema and the split keys of this one",
            "the other master",
        ),
        MoveStep::Copy => (
            "copy",
            "all cells go there, with timestamps, tombstones and tags",
            "the last region",
        ),
        MoveStep::CatchUp => (
            "catch-up",
            "the peer is enabled, and sends what was written meanwhile",
            "the peer to be less than two seconds behind",
        ),
        MoveStep::Compare => (
            "compare",
            "both tables are compared, cell by cell",
            "the last region",
        ),
        MoveStep::BackPeer => (
            "back-peer",
            "a peer there sends here what will be written there",
            "the other master",
        ),
    };
    Text {
        name,
        does,
        waits_for,
    }
}

fn announce(step: MoveStep, way_back: &str) {
    let Text {
        name,
        does,
        waits_for,
    } = text(step);
    let number = step as usize + 1;
    println!(
        "step {number} of {STEPS}, {name}: {does}\n    waits for: {waits_for}\n    way back: {way_back}"
    );
}

/// Checks both sides. Returns the move, whose state is durable.
pub(super) async fn begin(wanted: &Move, path: PathBuf) -> Result<Moving, Failure> {
    let Some(to) = &wanted.to else {
        return Err(format!(
            "no move of table {} has begun, since there is no {}: --to names the other cluster",
            wanted.table,
            path.display()
        )
        .into());
    };
    announce(MoveStep::Check, "none is needed, since nothing is changed");
    let (here, there) = (Arc::new(here(wanted)?), Arc::new(there(wanted, to)?));
    let clusters = [
        here.cluster.cluster_id().await?,
        there.cluster.cluster_id().await?,
    ];
    id_bytes(&clusters[0])?;
    if clusters[0] == clusters[1] {
        return Err(format!("{to} is this cluster: --to names the other one").into());
    }
    let mut state = State::new(&wanted.table, to, clusters, peer_id(&wanted.table));
    state.scopes = check_table_here(&here, &wanted.table).await?;
    check_there(&here, &there, &state).await?;
    if !wanted.no_back_peer {
        state.back = Some(match &wanted.back_peer {
            Some(key) => key.clone(),
            None => own_key(&here).await?,
        });
    }
    check_clocks(&here, &there).await?;
    let http = replication::address(wanted.http.clone())?;
    let lock = State::lock(&path)?;
    if path.exists() {
        return Err(format!("{} was written meanwhile, by another basalt move", path.display()).into());
    }
    let moving = Moving {
        wanted: wanted.clone(),
        here,
        there,
        http,
        path,
        _lock: lock,
        state,
    };
    moving.save()?;
    println!(
        "    the state of the move is in {}: run again to go on after an interruption",
        moving.path.display()
    );
    Ok(moving)
}

/// The id of the peers: names of peers have no `-`, `.` and `:`.
fn peer_id(table: &str) -> String {
    let letters = table.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '_',
    });
    format!("move_{}", letters.collect::<String>())
}

/// Checks the table here. Returns the scopes of its families.
async fn check_table_here(here: &Side, table: &str) -> Result<super::side::Scopes, Failure> {
    let Some(descriptor) = here.descriptor().await? else {
        return Err(format!("table {table} does not exist here").into());
    };
    if here.state().await? != Some(true) {
        return Err(format!("table {table} is disabled here: enable it first").into());
    }
    if is_read_only(&descriptor) {
        return Err(format!(
            "table {table} is read only here: a move makes it so at its end. alter '{table}', READONLY => false"
        )
        .into());
    }
    Ok(scopes(&descriptor)?)
}

async fn check_there(here: &Side, there: &Side, state: &State) -> Result<(), Failure> {
    let (table, peer) = (&state.table, &state.peer);
    let namespace = table
        .rsplit_once(':')
        .map_or("default", |(namespace, _)| namespace);
    let namespaces = there.cluster.list_namespaces().await?;
    if !namespaces.iter().any(|name| name == namespace) {
        return Err(
            format!("there is no namespace {namespace} there: create_namespace '{namespace}' first").into(),
        );
    }
    if there.state().await?.is_some() {
        return Err(
            format!("table {table} is there already, and not of this move: drop it there first").into(),
        );
    }
    for (side, name) in [(here, "here"), (there, "there")] {
        if side.peer(peer).await?.is_some() {
            return Err(format!(
                "there is a replication peer {peer} {name} already, and not of this move: remove_peer '{peer}' first"
            )
            .into());
        }
    }
    let servers = there.servers().await?;
    if servers.is_empty() {
        return Err(format!("{} has no region servers", state.to).into());
    }
    for server in servers {
        // A call without edits changes nothing.
        let asked = there.cluster.ship(&server, &Shipment::default(), ANSWER).await;
        asked.map_err(|error| {
            format!(
                "the region server {} of the other cluster is out of reach: {error}. This machine has to resolve and reach it by that name",
                server.address()
            )
        })?;
    }
    Ok(())
}

/// The key by which the other cluster reaches this one.
async fn own_key(here: &Side) -> Result<String, Failure> {
    let servers = here.servers().await?;
    let server = servers.first().ok_or("this cluster names no server of its own")?;
    Ok(format!("{}:/hbase", server.address()))
}

async fn check_clocks(here: &Side, there: &Side) -> Result<(), Failure> {
    let (here, there) = tokio::try_join!(here.status(), there.status())?;
    for (status, name) in [(&here, "this cluster"), (&there, "the other cluster")] {
        if status.time_ms == 0 {
            return Err(format!("no server of {name} tells its time").into());
        }
    }
    let apart = here.time_ms.abs_diff(there.time_ms);
    if apart > CLOCKS_MS_MAX {
        return Err(format!(
            "the clocks are {:.1} s apart, more than {} s: later writes there would look older than those from here. Synchronise them",
            apart as f64 / 1e3,
            CLOCKS_MS_MAX / 1_000
        )
        .into());
    }
    Ok(())
}

/// Does the steps that are left.
pub(super) async fn go_on(moving: &mut Moving) -> Result<ExitCode, Failure> {
    if is_last(moving, MoveStep::Check) {
        return Ok(ExitCode::SUCCESS);
    }
    match moving.state.step {
        Step::Undoing => return Err(interrupted(moving, "it is being taken back", "--undo")),
        Step::GoingBack => return Err(interrupted(moving, "clients are coming back", "--undo")),
        Step::Finishing => return Err(interrupted(moving, "it is being finished", "--finish")),
        Step::Undone | Step::Finished => {
            return Err(format!(
                "this move has ended: remove {} to begin another one",
                moving.path.display()
            )
            .into());
        }
        Step::Switched => {
            println!(
                "the clients of table {} are at the other cluster. Days later: {}. Back: {}",
                moving.state.table,
                moving.command("--finish"),
                moving.command("--undo")
            );
            return Ok(ExitCode::SUCCESS);
        }
        Step::Switching if !moving.wanted.switch => switch::abandon(moving).await?,
        _ => {}
    }
    moving.check_there().await?;
    while let Some(step) = step_of(moving.state.step) {
        if moving.wanted.until.is_some_and(|until| until < step) {
            println!("that step is done already; go on: {}", moving.command(""));
            return Ok(ExitCode::SUCCESS);
        }
        announce(step, &moving.command(UNDO));
        do_step(moving, step).await?;
        if is_last(moving, step) {
            println!("stopped after this step; go on: {}", moving.command(""));
            return Ok(ExitCode::SUCCESS);
        }
    }
    if moving.wanted.switch {
        return switch::run(moving).await;
    }
    println!(
        "everything is ready. The switch makes the table read only here for a moment, and then clients go to {}: {}",
        moving.state.to,
        moving.command("--switch")
    );
    Ok(ExitCode::SUCCESS)
}

fn interrupted(moving: &Moving, what: &str, option: &str) -> Failure {
    format!("this move has gone on, and {what}: {}", moving.command(option)).into()
}

fn is_last(moving: &Moving, step: MoveStep) -> bool {
    moving.wanted.until.is_some_and(|until| until <= step)
}

/// The step that is next; `None` from the switch on.
fn step_of(step: Step) -> Option<MoveStep> {
    Some(match step {
        Step::Peer => MoveStep::Peer,
        Step::Table => MoveStep::Table,
        Step::Copy => MoveStep::Copy,
        Step::CatchUp => MoveStep::CatchUp,
        Step::Compare => MoveStep::Compare,
        Step::BackPeer => MoveStep::BackPeer,
        _ => return None,
    })
}

async fn do_step(moving: &mut Moving, step: MoveStep) -> Result<(), Failure> {
    let next = match step {
        MoveStep::Check | MoveStep::Peer => {
            add_peer(moving).await?;
            Step::Table
        }
        MoveStep::Table => {
            create_table(moving).await?;
            Step::Copy
        }
        MoveStep::Copy => {
            let began = std::time::Instant::now();
            let bytes = copy::run(moving).await?;
            println!(
                "    copied {} in {:.1} s",
                show::bytes(bytes),
                began.elapsed().as_secs_f64()
            );
            Step::CatchUp
        }
        MoveStep::CatchUp => {
            catch_up(moving).await?;
            Step::Compare
        }
        MoveStep::Compare => {
            compare_all(moving).await?;
            Step::BackPeer
        }
        MoveStep::BackPeer => {
            add_back_peer(moving).await?;
            Step::Ready
        }
    };
    moving.enter(next)
}

async fn add_peer(moving: &Moving) -> Result<(), Failure> {
    let state = &moving.state;
    moving.here.set_scopes(&all_global(&state.scopes)).await?;
    if moving.here.peer(&state.peer).await?.is_none() {
        moving
            .here
            .add_peer(&state.peer, &state.to, PeerState::Disabled)
            .await?;
    }
    Ok(())
}

async fn create_table(moving: &mut Moving) -> Result<(), Failure> {
    let exists = moving.there.state().await?.is_some();
    if exists && moving.state.created {
        return Ok(());
    }
    if exists {
        return Err(format!(
            "table {} is there meanwhile, and not of this move: drop it there first",
            moving.state.table
        )
        .into());
    }
    let descriptor = moving.here.descriptor().await?;
    let descriptor = descriptor.ok_or_else(|| format!("table {} is gone here", moving.state.table))?;
    let regions = moving.here.table.region_list().await?;
    let keys: Vec<Bytes> = regions
        .iter()
        .skip(1)
        .map(|region| region.start_key.clone())
        .collect();
    // The way back drops the table if this is noted.
    moving.state.created = true;
    moving.save()?;
    let Err(error) = moving.there.create(descriptor, keys).await else {
        return Ok(());
    };
    // A call that was repeated has the nonce of the first: the table that exists is not of this move.
    if error
        .remote()
        .is_some_and(|exception| exception.is(ExceptionClass::TableExists))
    {
        moving.state.created = false;
        moving.save()?;
    }
    Err(format!(
        "the other cluster does not create the table: {error}. Alter the option here that it names, such as COMPRESSION, and run again"
    )
    .into())
}

async fn catch_up(moving: &mut Moving) -> Result<(), Failure> {
    moving.here.enable_peer(&moving.state.peer).await?;
    let ends = tokio::time::Instant::now() + moving.wanted.catch_up_max;
    loop {
        let left = ends.saturating_duration_since(tokio::time::Instant::now());
        let waited = moving.wait(left).await?;
        if waited.took < KEEPS_PACE {
            moving.state.compared_ms = waited.time_ms.saturating_sub(BEFORE_COMPARED_MS);
            println!("    the peer is {:.3} s behind", waited.took.as_secs_f64());
            return Ok(());
        }
    }
}

async fn compare_all(moving: &mut Moving) -> Result<(), Failure> {
    let waited = moving.wait(moving.wanted.catch_up_max).await?;
    moving.state.compared_ms = waited.time_ms.saturating_sub(BEFORE_COMPARED_MS);
    let wait = async || moving.wait(moving.wanted.catch_up_max).await.map(drop);
    let comparison = Comparison {
        here: &moving.here,
        there: &moving.there,
        from_ms: 0,
        mode: Mode::Live(&wait),
        parallel: moving.wanted.parallel.into(),
    };
    let compared = comparison.run(Vec::new()).await?;
    compared.report()?;
    moving.state.set_unsettled(&compared.unsettled);
    Ok(())
}

async fn add_back_peer(moving: &Moving) -> Result<(), Failure> {
    let state = &moving.state;
    let Some(key) = &state.back else {
        println!("    left out, as --no-back-peer says: after the switch there is no way back");
        return Ok(());
    };
    if moving.there.peer(&state.peer).await?.is_some() {
        return Ok(());
    }
    let added = moving.there.add_peer(&state.peer, key, PeerState::Enabled).await;
    added.map_err(|error| {
        format!(
            "the other cluster does not reach this one by {key}: {error}. Set server.advertise to a name that it resolves, undo, and begin again; or with --back-peer KEY or --no-back-peer"
        )
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_have_allowed_names() {
        for (table, id) in [("orders", "move_orders"), ("ns:a-b.c", "move_ns_a_b_c")] {
            assert_eq!(peer_id(table), id);
        }
    }

    #[test]
    fn every_step_before_the_switch_is_done_in_its_order() {
        let steps = [
            Step::Peer,
            Step::Table,
            Step::Copy,
            Step::CatchUp,
            Step::Compare,
            Step::BackPeer,
        ];
        let done: Vec<MoveStep> = steps.into_iter().filter_map(step_of).collect();
        assert!(done.len() == steps.len() && done.is_sorted());
        assert_eq!(done.last().map(|step| *step as usize + 2), Some(STEPS));
        for step in [Step::Ready, Step::Switching, Step::Switched, Step::Undone] {
            assert_eq!(step_of(step), None);
        }
    }
}
