//! Linked lists, as HBase's BigLinkedList has them: every node names the one before it, and is written after
//! that was acknowledged.
//!
//! Chains are closed to loops after a while, so every node is referred to, but for the newest of open chains.
//! After any crash
//!
//! - a node that is referred to is there: otherwise it is *undefined*, an acknowledged write was lost;
//! - a node that is there and that no other node refers to is one of those known to be newest:
//!   otherwise it is *lost*, the node that referred to it has gone.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Counts of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<K> {
    /// Nodes that are there and referred to.
    pub referenced: usize,
    /// Nodes that are there and not referred to, as they may be.
    pub newest: usize,
    /// Nodes that are referred to and not there.
    pub undefined: Vec<K>,
    /// Nodes that are there and not referred to, and should be.
    pub lost: Vec<K>,
    /// Acknowledged nodes that are not there.
    pub missing: Vec<K>,
}

impl<K> Counts<K> {
    /// Whether nothing is lost.
    pub fn is_right(&self) -> bool {
        self.undefined.is_empty() && self.lost.is_empty() && self.missing.is_empty()
    }
}

/// Counts the nodes, each with the one before it. `may_be_newest` has the nodes that may
/// legitimately be unreferenced: those of the last acknowledged step of an open chain, and those
/// whose writing was not acknowledged.
pub fn verify<'a, K: Copy + Eq + Hash + Ord + 'a>(
    nodes: impl IntoIterator<Item = (K, Option<K>)>,
    acknowledged: impl IntoIterator<Item = &'a K>,
    may_be_newest: impl Fn(&K) -> bool,
) -> Counts<K> {
    let before: HashMap<K, Option<K>> = nodes.into_iter().collect();
    let referred: HashSet<K> = before.values().filter_map(|before| *before).collect();
    let mut counts = Counts {
        referenced: 0,
        newest: 0,
        undefined: referred
            .iter()
            .filter(|node| !before.contains_key(node))
            .copied()
            .collect(),
        lost: Vec::new(),
        missing: acknowledged
            .into_iter()
            .filter(|node| !before.contains_key(node))
            .copied()
            .collect(),
    };
    for node in before.keys() {
        if referred.contains(node) {
            counts.referenced += 1;
        } else if may_be_newest(node) {
            counts.newest += 1;
        } else {
            counts.lost.push(*node);
        }
    }
    counts.undefined.sort_unstable();
    counts.lost.sort_unstable();
    counts.missing.sort_unstable();
    counts
}
