//! Servers of a cluster by their state, for the commands that list them.

/// Servers by their state.
#[derive(Clone, Copy, Debug)]
pub(super) enum Servers {
    Live,
    Dead,
    Unknown,
    Decommissioned,
}
