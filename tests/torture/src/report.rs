//! Figures of a run.

use std::fmt;
use std::time::Duration;

use basalt_histcheck::linear::Checked;

/// Figures of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// SIGKILLs, and how many of them before the server served.
    pub kills: u64,
    /// Kills during recovery.
    pub kills_in_recovery: u64,
    /// Kills of servers that had served, but whose data had not been looked at since the last kill.
    pub kills_in_a_row: u64,
    /// Looks at the data after a crash.
    pub looks: u64,
    /// Calls, rows of scans and nodes that were checked.
    pub operations: u64,
    /// Scans that were checked to show one moment.
    pub scans: u64,
    /// Bulk loads that were acknowledged.
    pub loads: u64,
    /// Operations with nonces, and bulk loads, that were sent once more.
    pub repeats: u64,
    /// Most nodes of a linked list that one scan has verified.
    pub nodes_verified: u64,
    /// Pieces of rows' histories that were judged, and calls of the longest.
    pub pieces: usize,
    /// Calls of the longest.
    pub longest_piece: usize,
    /// Pieces that could not be judged in time.
    pub undecided: usize,
    /// Most calls of all rows of a workload between two looks.
    pub longest_history: usize,
    /// Flushes, compactions, splits and merges that were asked for and done, besides those that the server
    /// did by itself.
    pub upkeep: [u64; 4],
    /// From the start of the process until it served.
    pub recoveries: Vec<Duration>,
    /// Bytes of the data directory at the end.
    pub data_bytes: u64,
    /// How long it all took.
    pub took: Duration,
}

impl Figures {
    pub(super) fn add_checked(&mut self, checked: Checked) {
        self.operations += checked.calls as u64;
        self.pieces += checked.pieces;
        self.undecided += checked.undecided;
        self.longest_piece = self.longest_piece.max(checked.longest);
        self.longest_history = self.longest_history.max(checked.calls);
    }

    /// The median time of recovery and the longest.
    pub fn recovery(&self) -> (Duration, Duration) {
        let mut times = self.recoveries.clone();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        (median, times.last().copied().unwrap_or_default())
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, longest) = self.recovery();
        let [flushes, compactions, splits, merges] = self.upkeep;
        write!(
            f,
            "{} kills ({} during recovery, {} in a row), {} operations checked, {} scans, {} bulk loads, {} repeats, {} pieces of rows ({} calls in the \
             longest, {} in the longest history, {} undecided), {} nodes in the longest list; {flushes} flushes, {compactions} \
             compactions, {splits} splits and {merges} merges asked for; recovery p50 {:.0?} max {:.0?}; {} MiB of data; \
             {:.0?}",
            self.kills,
            self.kills_in_recovery,
            self.kills_in_a_row,
            self.operations,
            self.scans,
            self.loads,
            self.repeats,
            self.pieces,
            self.longest_piece,
            self.longest_history,
            self.undecided,
            self.nodes_verified,
            median,
            longest,
            self.data_bytes >> 20,
            self.took
        )
    }
}
