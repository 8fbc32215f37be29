//! Copies of the data elsewhere, and edits from elsewhere: backups, peers, streams of changes, the sink.

use basalt_engine::{Engine, Error};

use crate::config::Config;
use backups::Backups;
use changes::Changes;
use following::Following;
use peers::Peers;
use sink::Sink;
use standbys::Standbys;
use standing::Standing;

mod backups;
pub(crate) mod changes;
pub(crate) mod following;
pub(crate) mod peers;
pub(crate) mod sink;
pub(crate) mod standbys;
pub(crate) mod standing;

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
    /// Whether this server takes calls.
    pub(crate) standing: Standing,
    /// Figures of this server as a standby.
    pub(crate) following: Following,
    /// The servers that follow this one.
    pub(crate) standbys: Standbys,
}

impl Copies {
    /// Those of a server that starts at `started_ms`.
    pub(super) fn load(engine: &Engine, config: &Config, started_ms: u64) -> Result<Self, Error> {
        let standing = Standing::load(&config.data.dir)
            .map_err(|source| Error::io("reading the standing in", &config.data.dir, source))?;
        Ok(Self {
            following: Following::new(standing.stored().place()),
            standing,
            backups: Backups::new(),
            peers: Peers::load(engine)?,
            changes: Changes::load(engine, config.changes.max_streams)?,
            sink: Sink::new(started_ms),
            standbys: Standbys::load(engine, &config.standby),
        })
    }

    /// Writes the figures for the scrape.
    pub(super) fn publish(&self, engine: &Engine) {
        let now_ms = engine.clock().wall_ms();
        self.backups.publish();
        self.peers.publish(now_ms);
        self.changes.publish();
        self.standbys.publish(engine.place());
        self.standing.publish();
        self.following
            .publish(self.standing.role() == standing::Role::Standby);
    }
}
