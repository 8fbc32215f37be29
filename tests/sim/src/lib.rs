//! The deterministic simulator: the engine on a simulated disk (`basalt_engine::fs::sim`), and the properties
//! that hold whatever the disk does. The model is the specification of visibility: which cells a read
//! returns, before and after a crash. `basalt-sim` runs it.
//!
//! ```text
//! model     expected content of the database, as far as it was acknowledged or seen
//! read      its actual content
//! act       one call of the workload: drawn from dice, made, and compared with the model
//! life      a process: an open engine, open scans, the calls so far
//! verify    after a crash: opens, compares, goes on working, checks
//! cuts      a power cut before and after every call of the file system, and cuts during recovery
//! pairs     a leader and its standby: both die, the network loses, the standby takes over
//! random    chains of lives of one database, cut at random
//! errors    EIO, ENOSPC and EDQUOT at every call of the file system
//! bits      every bit of a reference directory flipped; files missing, swapped, truncated
//! reference those directories
//! seeded    known bugs, one at a time, each of which one of the above must catch
//! jobs      work on several threads, with a line of progress
//! ```
//!
//! Everything follows from seeds: the engine runs without threads of its own
//! (`Background::Manual`), on a clock that moves on request. A violation is a text that names the
//! seed, the call of the file system and the damage, and ends with the last calls of the workload.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::clock::ManualClock;
use basalt_engine::fs::Vfs;
use basalt_engine::fs::sim::{Mode, SimFs, SimOptions};
use basalt_engine::metrics::{EventListener, NoListener};
use basalt_engine::options::{Background, Options};
use basalt_engine::{Engine, Error};

mod act;
mod answers;
pub mod bits;
pub mod bugs;
pub mod cuts;
pub mod errors;
pub mod jobs;
mod life;
mod load;
mod model;
pub mod pairs;
pub mod random;
mod read;
mod reference;
mod retries;
mod schema;
pub mod seeded;
mod snapshots;
mod verify;

/// Where the database lies on the simulated disk.
const DIR: &str = "/data";

/// When the first life begins, in milliseconds since 1970.
const FIRST_MS: u64 = 1_700_000_000_000;

/// A violation, in words; or nothing.
pub type Verdict = Result<(), String>;

/// Why a life has ended.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// The engine says so.
    Failed(Error),
    /// The engine has done something wrong.
    Wrong(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A machine: disk, clock, and how the engine is opened on them.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) disk: SimFs,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) listener: Arc<dyn EventListener>,
    pub(crate) disk_reserve_bytes: u64,
    /// `Options::compaction_overwritten`.
    pub(crate) compaction_overwritten: f64,
}

impl Machine {
    /// A machine with this disk, at this time.
    pub(crate) fn at(disk: SimFs, wall_ms: u64) -> Self {
        Self {
            disk,
            clock: Arc::new(ManualClock::at(wall_ms)),
            listener: Arc::new(NoListener),
            disk_reserve_bytes: 0,
            compaction_overwritten: 0.0,
        }
    }

    /// A machine with an empty disk.
    pub(crate) fn new(seed: u64, mode: Mode) -> Self {
        let options = SimOptions {
            mode,
            capacity_bytes: None,
        };
        Self {
            // Without it, there are more merges of some files.
            compaction_overwritten: if seed.is_multiple_of(2) { 0.0 } else { 0.3 },
            ..Self::at(SimFs::new(seed, options), FIRST_MS)
        }
    }

    /// Starts the engine.
    pub(crate) fn open(&self) -> basalt_engine::Result<Arc<Engine>> {
        Engine::builder()
            .options(self.options())
            .file_system(Arc::new(self.disk.clone()))
            .clock(self.clock.clone())
            .listener(Arc::clone(&self.listener))
            .open(DIR)
    }

    /// Everything small, so that a short workload rolls the log, fills several blocks and has something to
    /// compact.
    fn options(&self) -> Options {
        Options {
            background: Background::Manual,
            wal_segment_bytes: 12 << 10,
            manifest_roll_bytes: 16 << 10,
            memstore_flush_bytes: 1 << 20,
            memstore_total_bytes: 16 << 20,
            block_cache_bytes: 1 << 20,
            // Few, so that reads close files and open them again all the time.
            max_open_files: 2,
            compaction_min_files: 3,
            // Few files at a time, and none for being small: older files stay out of most minor compactions.
            compaction_max_files: 3,
            compaction_min_bytes: 0,
            compaction_overwritten: self.compaction_overwritten,
            compaction_blocking_files: 64,
            // A file has some kilobytes even with one cell, so nearly every store has stripes.
            compaction_stripe_bytes: 512,
            compaction_stripes_max: 64,
            // Some compactions of the workload are long, some are not.
            compaction_long_bytes: 8 << 10,
            disk_reserve_bytes: self.disk_reserve_bytes,
            row_lock_wait: Duration::from_secs(5),
            ..Options::default()
        }
    }

    /// Findings of `basalt check`, on a copy of the disk as a kill would leave it.
    pub(crate) fn check(&self) -> Verdict {
        let vfs: Arc<dyn Vfs> = Arc::new(self.disk.crash_keep_all());
        let mut lines = Vec::new();
        let checked = basalt_engine::engine::check(&vfs, Path::new(DIR), &mut |line| lines.push(line));
        match checked {
            Ok(summary) if summary.is_sound() => Ok(()),
            Ok(_) => Err(format!("the check finds: {}", lines.join("; "))),
            Err(error) => Err(format!("the check fails: {error}")),
        }
    }
}

/// A path below the data directory.
fn below(path: &str) -> PathBuf {
    Path::new(DIR).join(path)
}
