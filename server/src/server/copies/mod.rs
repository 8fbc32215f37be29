//! Copies of the data elsewhere, and edits from elsewhere: backups, peers, streams of changes, the sink.

use basalt_engine::{Engine, Error};

use crate::config::Config;
use backups::Backups;
use changes::Changes;
use peers::Peers;
use sink::Sink;

mod backups;
pub(crate) mod changes;
pub(crate) mod peers;
pub(crate) mod sink;

/// State and figures of backups, peers, streams and the sink.
#[derive(Debug)]
pub(crate) struct Copies {
    pub(crate) backups: Backups,
    /// The clusters that get the edits of this one.
    pub(crate) peers: Peers,
    /// Streams of changes.
    pub(crate) changes: Changes,
    /// Figures of the edits that other clusters have replicated to this one.
    pub(crate) sink: Sink,
}

impl Copies {
    /// Those of a server that starts at `started_ms`.
    pub(super) fn load(engine: &Engine, config: &Config, started_ms: u64) -> Result<Self, Error> {
        Ok(Self {
            backups: Backups::new(),
            peers: Peers::load(engine)?,
            changes: Changes::load(engine, config.changes.max_streams)?,
            sink: Sink::new(started_ms),
        })
    }

    /// Writes the figures for the scrape, at this time in milliseconds since 1970.
    pub(super) fn publish(&self, now_ms: u64) {
        self.backups.publish();
        self.peers.publish(now_ms);
        self.changes.publish();
    }
}
