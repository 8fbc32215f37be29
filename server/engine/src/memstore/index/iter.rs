//! Iterators over the cells, with read-ahead.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::bound::Bound;
use super::leaf::Leaf;
use super::list::{Node, NodeRef};
use super::skiplist::{SkipList, follow};
use crate::sync::atomic::Ordering;

/// How many cells are prefetched ahead of an iterator. More are no faster.
pub(in crate::memstore) const LEAD: usize = 8;

/// A position in a list that it keeps alive.
///
/// Each step along the list would wait for memory, but the entries of a leaf name the next cells at
/// once. So steps prefetch ahead, more the longer a walk gets: many searches are for one cell.
/// Without that a walk over a large memstore, as every flush is one, takes 4x the time.
///
/// Links lead forward only. A step back is a search for the row before, which the leaf of the last
/// search makes short.
pub(in crate::memstore) struct Iter {
    list: Arc<SkipList>,
    /// A node of `list`.
    node: Option<NonNull<Node>>,
    ahead: Option<ReadAhead>,
}

/// Position of the read-ahead. A hint: an entry that is put in or moved meanwhile makes it wrong by
/// one, or by a leaf.
struct ReadAhead {
    /// The leaf of the next cell to prefetch. It belongs to the iterator's list.
    leaf: NonNull<Leaf>,
    /// The entry of that cell.
    at: usize,
    /// Cells that were prefetched and not reached yet.
    lead: usize,
}

// SAFETY: the pointers are not tied to a thread, and what they point to lives as long as `list`,
// which is Send and Sync.
unsafe impl Send for Iter {}

/// Result of a search.
struct Found<'a> {
    leaf: &'a Leaf,
    /// Entries of the leaf before the bound.
    at: usize,
    before: Option<NodeRef<'a>>,
    after: Option<NodeRef<'a>>,
}

impl Iter {
    /// An iterator without a position.
    pub(in crate::memstore) fn new(list: Arc<SkipList>) -> Self {
        Self {
            list,
            node: None,
            ahead: None,
        }
    }

    /// The current node.
    #[inline]
    pub(in crate::memstore) fn node(&self) -> Option<NodeRef<'_>> {
        // SAFETY: a node of `list`, which `self` keeps alive.
        self.node.map(|node| unsafe { NodeRef::new(node) })
    }

    /// Searches from the leaf of the last search or step.
    #[inline]
    fn find(&self, bound: &Bound<'_>) -> Option<Found<'_>> {
        // SAFETY: a leaf of `list`, which `self` keeps alive.
        let hint = self.ahead.as_ref().map(|ahead| unsafe { ahead.leaf.as_ref() });
        let leaf = self.list.find_leaf(bound, hint)?;
        let at = leaf.find(bound);
        let (before, after) = self.list.cells.around(leaf.last_before(at, bound), bound);
        Some(Found {
            leaf,
            at,
            before,
            after,
        })
    }

    /// Moves to the first node after a bound.
    #[inline]
    pub(in crate::memstore) fn seek(&mut self, bound: &Bound<'_>) {
        (self.node, self.ahead) = self.position_after(bound);
    }

    #[inline]
    fn position_after(&self, bound: &Bound<'_>) -> (Option<NonNull<Node>>, Option<ReadAhead>) {
        let Some(found) = self.find(bound) else {
            return (None, None);
        };
        let ahead = ReadAhead {
            leaf: NonNull::from(found.leaf),
            // The current node is entry `at`, and prefetching the next one would hardly be faster
            // than a step.
            at: found.at + 2,
            lead: 0,
        };
        (found.after.map(NodeRef::pointer), Some(ahead))
    }

    /// Moves to the next node.
    #[inline]
    pub(in crate::memstore) fn step(&mut self) {
        self.node = self.node().and_then(NodeRef::next).map(NodeRef::pointer);
        if let Some(ahead) = &mut self.ahead {
            ahead.lead = ahead.lead.saturating_sub(1);
            // Two at a step until there are enough.
            for _ in 0..(LEAD - ahead.lead).min(2) {
                // SAFETY: a leaf of `list`, which `self` keeps alive.
                let leaf = unsafe { ahead.leaf.as_ref() };
                ahead.prefetch(leaf);
            }
        }
    }

    /// Moves to the first node of the last row before `bound`, which is before a row or at the end.
    pub(in crate::memstore) fn seek_row_before(&mut self, bound: &Bound<'_>) {
        let row = self.find(bound).and_then(|found| {
            // Rows farther back are likely to come next.
            found.leaf.prefetch_cell(found.at.wrapping_sub(LEAD));
            found.before
        });
        let position = row.map(|row| self.position_after(&Bound::row(row.key().row())));
        (self.node, self.ahead) = position.unwrap_or_default();
    }
}

#[cfg(test)]
impl Iter {
    /// How many cells it is ahead, and the last one that it has prefetched.
    pub(in crate::memstore) fn prefetched(&self) -> Option<(usize, NodeRef<'_>)> {
        let ahead = self.ahead.as_ref().filter(|ahead| ahead.lead > 0)?;
        // SAFETY: as in `step`.
        let leaf = unsafe { ahead.leaf.as_ref() };
        Some((ahead.lead, leaf.lock().node(ahead.at - 1)))
    }
}

impl ReadAhead {
    /// Prefetches one cell more, of this leaf or the next.
    #[inline]
    fn prefetch(&mut self, mut leaf: &Leaf) {
        let len = leaf.len();
        if self.at >= len {
            let Some(next) = follow(&leaf.next[0]) else {
                return;
            };
            self.leaf = NonNull::from(next);
            self.at -= len;
            leaf = next;
            Leaf::prefetch_entries(next.next[0].load(Ordering::Relaxed));
        }
        leaf.prefetch_cell(self.at);
        self.at += 1;
        self.lead += 1;
    }
}
