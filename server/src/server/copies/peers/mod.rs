//! Replication peers: the clusters that get the edits of this one's log.
//!
//! A peer is a reader of the log ([`Engine::add_log_reader`]): its position is that of the reader, its
//! configuration the reader's note, so that both change in one durable step, and the log is kept for it. They
//! belong to this server, not to its data: a backup has no peers.
//!
//! Changes are serialised by the caller (`service::admin::peers`); `replication` has a task for each peer and
//! waits for changes ([`Peers::changes`]).
//!
//! [`Engine::add_log_reader`]: basalt_engine::Engine::add_log_reader

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_engine::id::SeqId;
use basalt_engine::{Engine, Error};
use metrics::{Counter, counter};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::observe::metrics::names;

mod config;
mod figures;

pub(crate) use config::{PeerConfig, TableFamilies};
pub(crate) use figures::{Figures, Shipped, SourceLoad, Unsent};

/// Begins the names of the log's readers that are peers.
const PREFIX: &str = "peer ";

/// The note of a reader of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    enabled: bool,
    config: PeerConfig,
}

/// A peer, as it is until the next change of it.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) id: String,
    pub(crate) enabled: bool,
    pub(crate) config: Arc<PeerConfig>,
    pub(crate) figures: Arc<Figures>,
}

impl Peer {
    /// Name of the log's reader that it is.
    pub(crate) fn reader(&self) -> String {
        format!("{PREFIX}{}", self.id)
    }

    fn note(&self) -> Result<Vec<u8>, Error> {
        let note = Note {
            enabled: self.enabled,
            config: PeerConfig::clone(&self.config),
        };
        serde_json::to_vec(&note).map_err(|error| {
            Error::InvalidArgument(format!("the configuration of peer {}: {error}", self.id))
        })
    }
}

/// All peers.
#[derive(Debug)]
pub(crate) struct Peers {
    all: Mutex<BTreeMap<String, Arc<Peer>>>,
    /// Held during a change.
    changing: Mutex<()>,
    /// Number of changes.
    changes: watch::Sender<u64>,
    /// Whether peers may be changed.
    modifications: AtomicBool,
    /// Peers that were removed at the limit of the log.
    dropped: Counter,
}

impl Peers {
    /// The peers that the engine's readers are.
    pub(super) fn load(engine: &Engine) -> Result<Self, Error> {
        let mut all = BTreeMap::new();
        for reader in engine.log_readers() {
            let Some(id) = reader.name.strip_prefix(PREFIX) else {
                continue;
            };
            let note: Note = serde_json::from_slice(&reader.note).map_err(|error| {
                Error::InvalidArgument(format!("the configuration of replication peer {id}: {error}"))
            })?;
            let peer = Peer {
                id: id.to_owned(),
                enabled: note.enabled,
                config: Arc::new(note.config),
                figures: Arc::new(Figures::new(id)),
            };
            all.insert(id.to_owned(), Arc::new(peer));
        }
        Ok(Self {
            all: Mutex::new(all),
            changing: Mutex::default(),
            changes: watch::Sender::new(0),
            modifications: AtomicBool::new(true),
            dropped: counter!(names::PEERS_DROPPED),
        })
    }

    /// All peers, by id.
    pub(crate) fn all(&self) -> Vec<Arc<Peer>> {
        self.all.lock().values().cloned().collect()
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Peer>> {
        self.all.lock().get(id).cloned()
    }

    /// Receives the number of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Whether peers may be changed; [`Self::set_modifications`] is the switch.
    pub(crate) fn modifications(&self) -> bool {
        self.modifications.load(Ordering::Relaxed)
    }

    /// Turns the switch; returns its value before.
    pub(crate) fn set_modifications(&self, on: bool) -> bool {
        self.modifications.swap(on, Ordering::Relaxed)
    }

    /// Counts a peer that was removed at the limit of the log.
    pub(crate) fn note_dropped(&self) {
        self.dropped.increment(1);
    }

    /// Runs a change of peers alone.
    pub(crate) fn change<T>(&self, change: impl FnOnce() -> T) -> T {
        let _alone = self.changing.lock();
        change()
    }

    /// Adds a peer that gets the edits from now on. Returns its position.
    /// REQUIRES: within [`Self::change`]; there is none of that id.
    pub(crate) fn add(
        &self,
        engine: &Engine,
        id: &str,
        config: PeerConfig,
        enabled: bool,
    ) -> Result<SeqId, Error> {
        let peer = Peer {
            id: id.to_owned(),
            enabled,
            config: Arc::new(config),
            figures: Arc::new(Figures::new(id)),
        };
        let position = engine.add_log_reader(&peer.reader(), &peer.note()?)?;
        self.put(peer);
        Ok(position)
    }

    /// Replaces a peer.
    /// REQUIRES: within [`Self::change`]; there is one of that id.
    pub(crate) fn replace(&self, engine: &Engine, peer: Peer) -> Result<(), Error> {
        engine.set_log_reader_note(&peer.reader(), &peer.note()?)?;
        self.put(peer);
        Ok(())
    }

    /// Removes a peer, and what was kept for it alone; returns whether there was one.
    /// REQUIRES: within [`Self::change`].
    pub(crate) fn remove(&self, engine: &Engine, id: &str) -> Result<bool, Error> {
        let Some(peer) = self.get(id) else {
            return Ok(false);
        };
        engine.remove_log_reader(&peer.reader())?;
        self.all.lock().remove(id);
        self.changes.send_modify(|changes| *changes += 1);
        Ok(true)
    }

    fn put(&self, peer: Peer) {
        self.all.lock().insert(peer.id.clone(), Arc::new(peer));
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Writes the gauges for the scrape.
    pub(super) fn publish(&self, now_ms: u64) {
        for peer in self.all() {
            peer.figures.publish(now_ms);
        }
    }
}
