//! The switch, the way back, and the end of a move.
//!
//! The switch makes the table read only here, waits for the peer, and compares the rows written since the
//! comparison. If that does not end in time, or something differs, the table is writable again, and nothing
//! has happened. Afterwards this side is a copy, which the peer back keeps up to date; the way back is a
//! switch in the other direction.
//!
//! A peer of an HBase has no call that waits. The way back waits until the sources there have no lag and the
//! rows that were written since the switch are equal: nothing is written on either side then, so equal stays
//! equal.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::compare::{Comparison, Mode};
use super::side::Side;
use super::state::Step;
use super::{CLOCKS_MS_MAX, Failure, Moving};

/// Time between two looks at a peer of the other cluster.
const LOOK: Duration = Duration::from_millis(500);

/// The function of a comparison that waits for nothing.
type NoWait = fn() -> std::future::Ready<Result<(), Failure>>;

/// Switches the clients.
pub(super) async fn run(moving: &mut Moving) -> Result<ExitCode, Failure> {
    let limit = moving.wanted.read_only_max;
    println!(
        "step 8 of 8, switch: the table becomes read only here, and clients go to the other cluster\n    waits for: the peer, and the rows written since the comparison, at most {limit:?}\n    way back: by itself on failure; later {}",
        moving.command("--undo")
    );
    // It may be read only there since clients came back.
    moving.there.set_read_only(false).await?;
    // It may take long until everything is there, and clients can write meanwhile.
    let before = moving.wait(moving.wanted.catch_up_max).await?;
    println!("    the peer was {:.3} s behind", before.took.as_secs_f64());
    moving.enter(Step::Switching)?;
    let began = Instant::now();
    let outcome = timeout(limit, finish_writes(moving)).await.unwrap_or_else(|_| {
        Err(format!(
            "the other cluster did not have everything, and was not compared, within {limit:?} (--read-only-max)"
        )
        .into())
    });
    let took = began.elapsed();
    if let Err(error) = outcome {
        abandon(moving)
            .await
            .map_err(|failed| format!("{error}; {failed}"))?;
        return Err(format!(
            "{error}; the table is writable here again after {:.3} s, and nothing has happened",
            took.as_secs_f64()
        )
        .into());
    }
    moving.enter(Step::Switched)?;
    println!(
        "read only for {:.3} s: everything is at the other cluster. Clients go to {} now; the table stays read only here",
        took.as_secs_f64(),
        moving.state.to
    );
    println!("days later: {}", moving.command("--finish"));
    if moving.state.back.is_some() {
        println!("back: {}", moving.command("--undo"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the table read only here, waits until the other cluster has every write, and compares what was
/// written since the comparison.
async fn finish_writes(moving: &Moving) -> Result<(), Failure> {
    moving.here.set_read_only(true).await?;
    // Ends before the whole does: its error says what the peer's problem is.
    let waited = moving.wait(moving.wanted.read_only_max.mul_f64(0.9)).await?;
    println!(
        "    the peer had everything after {:.3} s",
        waited.took.as_secs_f64()
    );
    let comparison = Comparison::<NoWait> {
        here: &moving.here,
        there: &moving.there,
        from_ms: i64::try_from(moving.state.compared_ms).unwrap_or(i64::MAX),
        mode: Mode::Quiet,
        parallel: moving.wanted.parallel.into(),
    };
    comparison.run(moving.state.unsettled()?).await?.report()
}

/// Makes the table writable here again, after a switch that was not completed.
pub(super) async fn abandon(moving: &mut Moving) -> Result<(), Failure> {
    let writable = moving.here.set_read_only(false).await;
    writable.map_err(|error| {
        format!(
            "table {} may still be read only here, since the switch cannot be taken back: {error}. Run again: {}",
            moving.state.table,
            moving.command("")
        )
    })?;
    moving.enter(Step::Ready)?;
    println!("    the switch is taken back: the table is writable here");
    Ok(())
}

/// Takes the move back, or lets the clients come back.
pub(super) async fn undo(moving: &mut Moving) -> Result<ExitCode, Failure> {
    match moving.state.step {
        Step::Switched | Step::GoingBack => go_back(moving).await,
        Step::Finishing | Step::Finished => Err(format!(
            "the move of table {} is finished, and its peers are gone: move it back with a new move, from there to here",
            moving.state.table
        )
        .into()),
        Step::Undone => {
            println!("the move of table {} is taken back already", moving.state.table);
            Ok(ExitCode::SUCCESS)
        }
        _ => take_back(moving).await,
    }
}

/// Takes back everything that the steps before the switch have changed.
async fn take_back(moving: &mut Moving) -> Result<ExitCode, Failure> {
    let table = moving.state.table.clone();
    println!(
        "undo: the peers and scopes of the move are removed, and the table there if the move has created it"
    );
    moving.enter(Step::Undoing)?;
    // First here: the log is kept for the peer, even if the other cluster is gone.
    moving.here.set_read_only(false).await?;
    moving.here.remove_peer(&moving.state.peer).await?;
    moving.here.set_scopes(&moving.state.scopes).await?;
    println!("    here: the peer is removed, the scopes are as before, the table is writable");
    let there = async {
        moving.check_there().await?;
        if moving.state.back.is_some() {
            moving.there.remove_peer(&moving.state.peer).await?;
        }
        if moving.state.created {
            moving.there.drop_table().await?;
        }
        Ok::<(), Failure>(())
    };
    there.await.map_err(|error| {
        format!(
            "the rest is at the other cluster: {error}. Run again when it answers: {}",
            moving.command("--undo")
        )
    })?;
    moving.enter(Step::Undone)?;
    println!("    there: the peer is removed, the table is dropped if it was of this move");
    println!("the move of table {table} is taken back");
    Ok(ExitCode::SUCCESS)
}

/// Lets the clients come back after the switch.
async fn go_back(moving: &mut Moving) -> Result<ExitCode, Failure> {
    let table = moving.state.table.clone();
    if moving.state.back.is_none() {
        return Err(format!(
            "there is no peer back, so what was written to table {table} since the switch is at the other cluster alone: move it back with a new move, from there to here"
        )
        .into());
    }
    moving.check_there().await?;
    let limit = moving.wanted.read_only_max;
    println!(
        "back: the table becomes read only there, and clients come back here\n    waits for: the peer back, and the rows written since the switch, at most {limit:?}\n    way back: by itself on failure; later {}",
        moving.command("--switch")
    );
    // When it is writable here, an earlier run has waited for everything.
    if moving.state.step == Step::Switched || moving.here.is_read_only().await? {
        moving.enter(Step::GoingBack)?;
        let began = Instant::now();
        let outcome = timeout(limit, await_back(moving)).await.unwrap_or_else(|_| {
            Err(format!("not everything was here within {limit:?} (--read-only-max)").into())
        });
        if let Err(error) = outcome {
            moving
                .there
                .set_read_only(false)
                .await
                .map_err(|failed| format!("{error}; table {table} may still be read only there: {failed}"))?;
            moving.enter(Step::Switched)?;
            return Err(
                format!("{error}; the table is writable there again, and nothing has happened").into(),
            );
        }
        moving.here.set_read_only(false).await?;
        println!(
            "read only for {:.3} s: everything is here. Clients come back now",
            began.elapsed().as_secs_f64()
        );
    }
    // A client that has stayed there is refused, and not lost between the sides: the next switch opens the
    // table.
    moving.enter(Step::Ready)?;
    println!(
        "the table stays read only there until the next switch; an HBase takes no replicated writes meanwhile, and the log is kept for it. Again: {}. To end the move: {}",
        moving.command("--switch"),
        moving.command("--undo")
    );
    Ok(ExitCode::SUCCESS)
}

/// Makes the table read only there, and waits until everything that was written there is here.
async fn await_back(moving: &Moving) -> Result<(), Failure> {
    moving.there.set_read_only(true).await?;
    let (here, there): (&Arc<Side>, &Arc<Side>) = (&moving.here, &moving.there);
    // The clock there may be behind.
    let from_ms = moving.state.compared_ms.saturating_sub(CLOCKS_MS_MAX);
    loop {
        let sources = there.status().await?.sources;
        let mut of_peer = sources
            .iter()
            .filter(|source| source.peer_id == moving.state.peer);
        if of_peer.all(|source| source.replication_lag == 0) {
            let comparison = Comparison::<NoWait> {
                here,
                there,
                from_ms: i64::try_from(from_ms).unwrap_or(i64::MAX),
                mode: Mode::Quiet,
                parallel: moving.wanted.parallel.into(),
            };
            let compared = comparison.run(Vec::new()).await?;
            if compared.different == 0 {
                return compared.report();
            }
        }
        sleep(LOOK).await;
    }
}

/// Ends a move whose clients are at the other cluster.
pub(super) async fn finish(moving: &mut Moving) -> Result<ExitCode, Failure> {
    let table = moving.state.table.clone();
    match moving.state.step {
        Step::Switched | Step::Finishing => {}
        Step::Finished => {
            println!("the move of table {table} is finished already");
            return Ok(ExitCode::SUCCESS);
        }
        _ => {
            return Err(format!(
                "the clients of table {table} are not switched: {} first",
                moving.command("--switch")
            )
            .into());
        }
    }
    moving.check_there().await?;
    println!("finish: the peers of the move and its scopes are removed on both sides. There is no way back");
    moving.enter(Step::Finishing)?;
    if moving.state.back.is_some() {
        moving.there.remove_peer(&moving.state.peer).await?;
    }
    moving.here.remove_peer(&moving.state.peer).await?;
    moving.there.set_scopes(&moving.state.scopes).await?;
    moving.here.set_scopes(&moving.state.scopes).await?;
    moving.enter(Step::Finished)?;
    println!(
        "the move of table {table} is finished. It stays read only here, as it was when the peers were removed: drop it when it is not needed"
    );
    Ok(ExitCode::SUCCESS)
}
