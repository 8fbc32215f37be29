//! Replication to other clusters: a task for each peer (`source`) ships batches of the log's edits (`batch`).
//!
//! [`run`] starts a task for each peer, starts it again when the peer was changed, and ends it when it was
//! removed. Once a second it measures the log that is kept for the peers, and acts when that has reached its
//! limit (`replication.max_log_bytes`): writes are refused, or the peer that is furthest behind is removed,
//! as `replication.when_log_full` says. Readers of changes are always removed at the limit: they belong to
//! consumers, which must not be able to stop the writers. So are standbys: they get a new copy.
//!
//! Peers are kept by [`crate::server::copies::peers`]; `service::admin::peers` changes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::LogFull;
use crate::server::Server;
use crate::server::copies::changes::{NAMED, OWN};
use crate::server::copies::peers::Peer;
use crate::service::Failure;

mod batch;
mod source;

/// Time between two looks at the log that is kept.
const PERIOD: Duration = Duration::from_secs(1);

/// The name under which replication suspends writes.
const WHO: &str = "replication";

/// Ships to all peers until the server stops.
pub(crate) async fn run(server: Arc<Server>, stop: CancellationToken) {
    let mut supervisor = Supervisor {
        changes: server.copies().peers.changes(),
        server,
        sources: BTreeMap::new(),
        refusing: false,
    };
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        supervisor.adjust(&stop);
        let bounded = tokio::select! {
            () = stop.cancelled() => break,
            // The sender lives as long as the server.
            _ = supervisor.changes.changed() => continue,
            _ = ticks.tick() => supervisor.bound_log().await,
        };
        if let Err(failure) = bounded {
            tracing::warn!(
                "replication: the log that is kept is not measured: {}",
                failure.message()
            );
        }
    }
    for (_, source) in supervisor.sources {
        // One that panicked has nothing to save.
        drop(source.task.await);
    }
}

struct Running {
    peer: Arc<Peer>,
    task: AbortOnDropHandle<()>,
}

struct Supervisor {
    server: Arc<Server>,
    changes: tokio::sync::watch::Receiver<u64>,
    /// By the ids of the peers.
    sources: BTreeMap<String, Running>,
    /// Whether writes are refused.
    refusing: bool,
}

impl Supervisor {
    /// Makes the tasks those of the present peers.
    fn adjust(&mut self, stop: &CancellationToken) {
        let peers = self.server.copies().peers.all();
        self.sources.retain(|id, running| {
            let stays = peers.iter().any(|peer| Arc::ptr_eq(peer, &running.peer));
            if !stays {
                running.peer.figures.set_running(false);
            }
            if !peers.iter().any(|peer| peer.id == *id) {
                running.peer.figures.retire();
            }
            stays
        });
        for peer in peers {
            self.sources.entry(peer.id.clone()).or_insert_with(|| {
                let work = source::run(Arc::clone(&self.server), Arc::clone(&peer), stop.clone());
                Running {
                    peer,
                    task: AbortOnDropHandle::new(tokio::spawn(work)),
                }
            });
        }
    }

    /// Measures the log that is kept for each peer, and acts at the limit.
    async fn bound_log(&mut self) -> Result<(), Failure> {
        if self.server.engine().log_readers().is_empty() && !self.refusing {
            self.server.copies().changes.set_kept_bytes(0);
            return Ok(());
        }
        self.server.on_pool(bound_readers).await?;
        let kept = self.server.on_pool(measure).await?;
        let worst = kept.into_iter().max_by_key(|(_, bytes)| *bytes);
        let settings = &self.server.config().replication;
        let Some((peer, bytes)) = worst.filter(|(_, bytes)| *bytes > settings.max_log_bytes) else {
            if std::mem::take(&mut self.refusing) {
                tracing::info!(
                    "replication: the log that is kept is below its limit, writes are accepted again"
                );
                self.suspend(None).await?;
            }
            return Ok(());
        };
        let id = peer.id.clone();
        match settings.when_log_full {
            LogFull::Refuse if self.refusing => Ok(()),
            LogFull::Refuse => {
                self.refusing = true;
                let why = format!(
                    "{bytes} bytes of the log are kept for replication peer {id}, more than replication.max_log_bytes, and replication.when_log_full = \"refuse\": let the peer catch up, or remove it"
                );
                tracing::error!("replication: writes are refused: {why}");
                self.suspend(Some(why)).await
            }
            LogFull::Drop => {
                tracing::error!(
                    "replication: {bytes} bytes of the log are kept for peer {id}, more than replication.max_log_bytes: the peer is removed, and lacks what was written since; copy the tables before it is added again"
                );
                let removing = self.server.on_pool(move |server| {
                    let peers = &server.copies().peers;
                    Ok(peers.change(|| peers.remove(server.engine(), &id))?)
                });
                removing.await?;
                self.server.copies().peers.note_dropped();
                Ok(())
            }
        }
    }

    async fn suspend(&self, why: Option<String>) -> Result<(), Failure> {
        let suspending = self.server.on_pool(move |server| {
            server.engine().suspend_writes_of(WHO, why);
            Ok(())
        });
        suspending.await
    }
}

/// Removes the readers of changes and the standbys for which too much of the log is kept. Blocks.
fn bound_readers(server: &Server) -> Result<(), Failure> {
    let (engine, limit) = (server.engine(), server.config().replication.max_log_bytes);
    let mut most = 0;
    for reader in engine.log_readers() {
        if !reader.name.starts_with(NAMED) && !reader.name.starts_with(OWN) {
            continue;
        }
        let bytes = engine.log_bytes_from(reader.position)?;
        if bytes <= limit {
            most = most.max(bytes);
            continue;
        }
        tracing::error!(
            "{bytes} bytes of the log are kept for the reader \"{}\" of changes, more than replication.max_log_bytes: it is removed, and its consumer must begin with from=snapshot",
            reader.name
        );
        engine.remove_log_reader(&reader.name)?;
        server.copies().changes.note_dropped();
    }
    server.copies().changes.set_kept_bytes(most);
    for follower in server.copies().standbys.all() {
        let position = follower.place().position;
        let bytes = engine.log_bytes_from(position)?;
        if bytes > limit {
            tracing::error!(
                "{bytes} bytes of the log are kept for standby {}, more than replication.max_log_bytes: the standby is forgotten, and gets a new copy when it is back",
                follower.name
            );
            server.copies().standbys.remove(engine, &follower.name)?;
        }
    }
    Ok(())
}

/// The bytes of the log that are kept for each peer. Blocks.
fn measure(server: &Server) -> Result<Vec<(Arc<Peer>, u64)>, Failure> {
    let readers = server.engine().log_readers();
    let mut kept = Vec::new();
    for peer in server.copies().peers.all() {
        let name = peer.reader();
        let Some(reader) = readers.iter().find(|reader| reader.name == name) else {
            continue;
        };
        let bytes = server.engine().log_bytes_from(reader.position)?;
        peer.figures.set_kept_bytes(bytes);
        kept.push((peer, bytes));
    }
    Ok(kept)
}
