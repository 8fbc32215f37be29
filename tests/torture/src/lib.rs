//! The real server under load, killed again and again, with checkers that know which data must
//! survive.
//!
//! A run has one data directory and one *life* after the other. In each life:
//!
//! 1. the binary is started, with other small settings each time, so that flushes, compactions,
//!    splits and new segments of the log are frequent. Sometimes it is killed before it serves:
//!    during recovery, or right after it;
//! 2. when it serves, every workload reads the data after the crash and checks all that happened
//!    since its last look ([`rows`], [`bank`], [`snapshots`], [`acid`], [`linked`], [`schemas`],
//!    [`nonces`], [`loads`]);
//! 3. clients of all workloads write and read at once, and [`upkeep`] flushes, compacts, splits and
//!    merges their regions;
//! 4. SIGKILL, at a random moment, or shortly after a piece of upkeep was asked for. Clients end with their
//!    connections.
//!
//! At the end the server is stopped in good order and `basalt check` verifies the directory. A violation ends
//! the run; directory and calls are kept.
//!
//! Every random choice comes from the seed, but threads and the disk are not deterministic: a seed
//! does not reproduce a run exactly.

use std::path::{Path, PathBuf};

use basalt_histcheck::{History, Rows, Violation, notation};

mod acid;
mod bank;
mod calls;
mod life;
mod linked;
mod loads;
mod native;
mod nonces;
mod perform;
mod process;
pub mod recovery;
mod report;
mod rows;
mod run;
mod schemas;
mod snapshots;
mod upkeep;

pub use report::Figures;
pub use run::run;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often to kill.
    pub kills: u64,
    /// For all random choices.
    pub seed: u64,
    /// The server. `None`: the one of this workspace, built if need be.
    pub binary: Option<PathBuf>,
    /// Empty or missing.
    pub data_dir: PathBuf,
    /// Longest time of load between start and kill, in milliseconds.
    pub life_ms: u64,
    /// Clients of the rows that are checked to be linearizable.
    pub row_clients: usize,
    /// Writers of the rows whose columns are all equal (HBase's AcidGuarantees: 50).
    pub acid_writers: usize,
    /// Columns of each of their three families (HBase: 50).
    pub acid_columns: usize,
    /// Nodes that are linked in one step (HBase's BigLinkedList: a million).
    pub list_width: usize,
    /// Steps after which a chain is closed to a loop (HBase: 25).
    pub list_wrap: usize,
    /// Nodes after which the list begins anew in an empty table.
    pub list_nodes_max: usize,
    /// Lives after which everything is read, not only rows that were in use.
    pub full_look_every: u64,
    /// Whether the last process is killed, too, instead of stopped.
    pub kill_at_end: bool,
    /// Whether to print a line now and then.
    pub progress: bool,
}

impl Options {
    /// The defaults, in this directory.
    pub fn new(data_dir: &Path) -> Self {
        Self {
            kills: 20,
            seed: 1,
            binary: None,
            data_dir: data_dir.to_owned(),
            life_ms: 800,
            row_clients: 8,
            acid_writers: 6,
            acid_columns: 50,
            list_width: 100,
            list_wrap: 25,
            list_nodes_max: 60_000,
            full_look_every: 20,
            kill_at_end: false,
            progress: false,
        }
    }
}

/// A problem found by a run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{workload}: {what}")]
pub struct Problem {
    /// The workload, or `server`.
    pub workload: &'static str,
    /// In one sentence.
    pub what: String,
    /// The calls that cannot be explained; may be empty.
    pub calls: String,
}

impl Problem {
    fn new(workload: &'static str, what: impl Into<String>) -> Self {
        Self {
            workload,
            what: what.into(),
            calls: String::new(),
        }
    }

    fn of(workload: &'static str, violation: Violation) -> Self {
        Self {
            workload,
            what: violation.to_string(),
            calls: violation.calls,
        }
    }

    /// With the recorded calls on the row since the last look.
    fn in_history(workload: &'static str, violation: Violation, history: &History, initial: &Rows) -> Self {
        let row = violation.row.clone();
        let problem = Self::of(workload, violation);
        let calls = history.calls.iter().filter(|call| call.row == row);
        let calls = format!(
            "{}\nrow {} since the last look, when it held [{}]; crashes at {:?}\n{}",
            problem.calls,
            notation::token(&row),
            initial.get(&row).map(notation::print_columns).unwrap_or_default(),
            history.crashes,
            notation::print(calls)
        );
        Self { calls, ..problem }
    }
}
