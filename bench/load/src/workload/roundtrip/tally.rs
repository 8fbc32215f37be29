//! The count of calls, with their latencies.

use crate::load::latency::Latencies;

/// Calls of one connection, or of all.
#[derive(Debug)]
pub(super) struct Calls {
    /// Calls with the known reply.
    pub(super) answered: u64,
    /// Calls that the server refused because it had too much to do.
    pub(super) refused: u64,
    /// Latencies of the answered ones.
    pub(super) latencies: Latencies,
}

impl Calls {
    pub(super) fn new() -> Calls {
        Calls {
            answered: 0,
            refused: 0,
            latencies: Latencies::new(),
        }
    }

    pub(super) fn add(&mut self, other: &Calls) {
        self.answered += other.answered;
        self.refused += other.refused;
        self.latencies.add(&other.latencies);
    }
}
