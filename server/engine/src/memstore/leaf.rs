//! A leaf of the memstore's index: nodes that follow each other, side by side with abbreviated keys.
//!
//! A search that follows links waits for memory at each step. In a leaf it does not: a few bytes of each key
//! lie together, and one of the nodes is looked at in the end, or a few where those bytes are equal.
//!
//! A leaf covers the cells from its first one (which never changes) up to the next leaf's first one. All of
//! them have in common what those two have in common, so the abbreviated key is four bytes behind that
//! ([`Abbreviation`]). B-trees have it as prefix truncation and "poor man's normalized keys" (Graefe, Modern
//! B-Tree Techniques, 2011).
//!
//! Writers take turns ([`Leaf::writing`]); readers do not wait, and may see a leaf half-way through a change:
//! an entry twice, a node beside another one's abbreviated key, half of the entries gone to the next leaf. So
//! what a reader finds is a hint. [`Leaf::last_before`] looks at the node itself before it answers, and every
//! answer is a sound place to begin in the list of cells, because every pointer that was ever here is a node
//! of the list, and nodes stay.
//!
//! Invariants:
//! - Entries below `count` are nodes of the list that the leaf indexes, linked before they were put here.
//! - Under the lock, the entries are in order, and are all between the leaf's first cell and the next leaf's.
#![allow(unsafe_code)]

use std::mem::offset_of;
use std::ptr::{self, NonNull};

use super::abbreviation::Abbreviation;
use super::list::{Node, NodeRef, Place, prefetch, row_prefix};
use crate::cell::Key;
use crate::id::SeqId;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Nodes of a leaf. With more of them there are fewer leaves to search among, and more entries to move for
/// each that is put in (docs/decisions/0005-arena-skiplist.md).
pub(super) const LEAF_CELLS: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    4
} else {
    128
};

/// Enough for 4^10 leaves, 40 million cells; beyond that, searches get slowly longer.
pub(super) const HEIGHT_MAX: usize = if cfg!(loom) { 2 } else { 10 };

fn halves(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

/// The abbreviation for cells between two nodes, or between one and the end of the list.
fn abbreviation_between(first: Option<NodeRef<'_>>, next: Option<NodeRef<'_>>) -> Abbreviation {
    Abbreviation::between(first.map(cell), next.map(cell))
}

fn cell(node: NodeRef<'_>) -> (Key<'_>, SeqId) {
    (node.key(), node.seq())
}

/// A leaf. Lies in the arena of the list that it indexes, and lives as long.
///
/// In the order in which it is used, and in lines of the processor's cache: who walks along the lower levels
/// looks at the first one.
#[repr(C, align(64))]
pub(super) struct Leaf {
    /// Of the first cell, in two halves because a number of 16 bytes would have to lie at a multiple of them.
    row_prefix: [u64; 2],
    /// The cell from which on it has cells; `None`: from the list's head on.
    first: Option<NonNull<Node>>,
    /// The next leaf on each level that it is linked on; see [`super::skiplist`].
    pub(super) next: [AtomicPtr<Leaf>; HEIGHT_MAX],
    abbreviation: AtomicU64,
    count: AtomicUsize,
    /// Held by who changes entries, or the link on level 0.
    writing: Mutex<()>,
    abbreviated: [AtomicU32; LEAF_CELLS],
    nodes: [AtomicPtr<Node>; LEAF_CELLS],
}

// SAFETY: `first` never changes and is not tied to a thread; what it points to lives as long as the leaf and
// is shared like it.
unsafe impl Sync for Leaf {}

/// What is known of a place in a leaf before any node was looked at.
#[derive(Clone, Copy, Default)]
pub(super) struct Sought {
    /// The place's abbreviated key.
    short: u32,
    /// How many of the leaf's are smaller.
    smaller: usize,
}

/// A leaf whose entries nobody else changes.
pub(super) struct Writing<'a> {
    pub(super) leaf: &'a Leaf,
    _lock: MutexGuard<'a, ()>,
}

impl Leaf {
    /// With one node, or with none: then it begins at the list's head. `next` is what the next leaf begins
    /// with.
    pub(super) fn new(first: Option<NodeRef<'_>>, next: Option<NodeRef<'_>>) -> Self {
        let how = abbreviation_between(first, next);
        let leaf = Self {
            row_prefix: halves(first.map_or(0, |node| row_prefix(node.key().row()))),
            first: first.map(NodeRef::pointer),
            next: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            abbreviation: AtomicU64::new(how.to_bits()),
            count: AtomicUsize::new(usize::from(first.is_some())),
            writing: Mutex::new(()),
            abbreviated: std::array::from_fn(|_| AtomicU32::new(0)),
            nodes: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        };
        if let Some(first) = first {
            leaf.set(0, first, how);
        }
        leaf
    }

    /// Waits until nobody changes entries.
    pub(super) fn write(&self) -> Writing<'_> {
        Writing {
            leaf: self,
            _lock: self.writing.lock(),
        }
    }

    /// The cell that it begins with. `None`: the list's head.
    #[inline]
    pub(super) fn first(&self) -> Option<NodeRef<'_>> {
        // SAFETY: a node of the list in whose arena this leaf is, complete when it was given to `new`.
        self.first.map(|node| unsafe { NodeRef::new(node) })
    }

    /// Tells the processor that we will soon search in it.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&raw const self.abbreviation);
        let abbreviated = self.abbreviated.as_ptr().cast::<u8>();
        for at in (0..size_of_val(&self.abbreviated)).step_by(64) {
            prefetch(abbreviated.wrapping_add(at));
        }
    }

    /// Tells the processor that we will soon ask what it begins with, or where it leads on `level`; it may be
    /// nowhere.
    #[inline]
    pub(super) fn prefetch_head(leaf: *const Self, level: usize) {
        prefetch(leaf);
        if offset_of!(Self, next) + (level + 1) * size_of::<AtomicPtr<Self>>() > 64 {
            prefetch(leaf.cast::<u8>().wrapping_add(64));
        }
    }

    /// Tells the processor that we will soon walk along its nodes.
    #[inline]
    pub(super) fn prefetch_walk(leaf: *const Self) {
        for offset in [
            offset_of!(Self, next),
            offset_of!(Self, count),
            offset_of!(Self, nodes),
        ] {
            prefetch(leaf.cast::<u8>().wrapping_add(offset));
        }
    }

    /// Tells the processor that we will soon read the cell of an entry, if there is one of that number.
    #[inline]
    pub(super) fn prefetch_cell(&self, at: usize) {
        if let Some(node) = self.nodes.get(at) {
            // Relaxed: nothing there is read.
            NodeRef::prefetch(node.load(Ordering::Relaxed));
        }
    }

    /// How many entries there are, unless somebody changes the leaf.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether the first cell is before the place.
    #[inline]
    pub(super) fn begins_before(&self, place: &impl Place) -> bool {
        let of_place = halves(place.row_prefix());
        if self.row_prefix != of_place {
            return self.row_prefix < of_place;
        }
        self.first().is_none_or(|first| place.is_behind(first))
    }

    #[inline]
    fn node(&self, at: usize) -> Option<NodeRef<'_>> {
        // SAFETY: entries are nodes of the list in whose arena this leaf is; the Acquire makes them complete
        // for us.
        NonNull::new(self.nodes[at].load(Ordering::Acquire)).map(|node| unsafe { NodeRef::new(node) })
    }

    /// A node before the place, or `None`: the list's head. The last such node that is here, unless somebody
    /// changes the leaf.
    /// REQUIRES: the leaf begins before the place.
    #[inline]
    pub(super) fn last_before(&self, place: &impl Place) -> Option<NodeRef<'_>> {
        self.last_before_entry(self.find(place), place)
    }

    /// [`Self::last_before`], if one knows from [`Self::find`] how many entries are before the place.
    #[inline]
    pub(super) fn last_before_entry(&self, at: usize, place: &impl Place) -> Option<NodeRef<'_>> {
        let mut at = at;
        if let Some(next) = self.nodes.get(at) {
            // The list will be followed up to there.
            prefetch(next.load(Ordering::Relaxed));
        }
        while at > 0 {
            at -= 1;
            if let Some(node) = self.node(at)
                && place.is_behind(node)
            {
                return Some(node);
            }
        }
        self.first()
    }

    /// How many entries are before the place, unless somebody changes the leaf.
    #[inline]
    pub(super) fn find(&self, place: &impl Place) -> usize {
        let short = place.abbreviated(self.abbreviation());
        self.find_from(self.smaller(short), short, place)
    }

    /// How many abbreviated keys are smaller than this one, unless somebody changes the leaf.
    #[inline]
    fn smaller(&self, short: u32) -> usize {
        first_not(0, self.count.load(Ordering::Acquire), |at| self.short(at) < short)
    }

    /// The first half of [`Self::find`]: looks at no node, and fetches what the second half,
    /// [`Self::find_sought`], will look at.
    #[inline]
    pub(super) fn seek(&self, place: &impl Place) -> Sought {
        let short = place.abbreviated(self.abbreviation());
        let sought = Sought {
            short,
            smaller: self.smaller(short),
        };
        let count = self.count.load(Ordering::Relaxed);
        let nodes = self.nodes.as_ptr();
        for at in (sought.smaller.saturating_sub(1)..=count).step_by(64 / size_of::<AtomicPtr<Node>>()) {
            prefetch(nodes.wrapping_add(at));
        }
        sought
    }

    /// Tells the processor that we will soon look at the nodes on both sides of the place.
    #[inline]
    pub(super) fn prefetch_nodes(&self, sought: Sought) {
        for at in [sought.smaller.wrapping_sub(1), sought.smaller] {
            if let Some(node) = self.nodes.get(at) {
                prefetch(node.load(Ordering::Relaxed));
            }
        }
    }

    /// The second half of [`Self::find`].
    #[inline]
    pub(super) fn find_sought(&self, sought: Sought, place: &impl Place) -> usize {
        self.find_from(sought.smaller, sought.short, place)
    }

    #[inline]
    fn find_from(&self, smaller: usize, short: u32, place: &impl Place) -> usize {
        let count = self.count.load(Ordering::Acquire);
        let low = smaller;
        if low >= count || self.short(low) != short {
            return low;
        }
        // Some are equal: newer versions of a column, or rows that differ farther behind. Most often the
        // place is at one end of them.
        let is_before = |at: usize| self.node(at).is_some_and(|node| place.is_behind(node));
        if !is_before(low) {
            return low;
        }
        let low = low + 1;
        let high = first_not(low, count, |at| self.short(at) == short);
        if high == low || is_before(high - 1) {
            return high;
        }
        first_not(low, high - 1, is_before)
    }

    /// The abbreviated key of an entry.
    #[inline]
    fn short(&self, at: usize) -> u32 {
        self.abbreviated[at].load(Ordering::Relaxed)
    }

    #[inline]
    fn abbreviation(&self) -> Abbreviation {
        Abbreviation::from_bits(self.abbreviation.load(Ordering::Relaxed))
    }

    #[inline]
    fn set(&self, at: usize, node: NodeRef<'_>, how: Abbreviation) {
        let short = how.of(node.key(), node.seq());
        self.abbreviated[at].store(short, Ordering::Relaxed);
        self.nodes[at].store(node.pointer().as_ptr(), Ordering::Release);
    }
}

/// The first number from `low` on, or `high`, of which it is not so.
/// REQUIRES: it is so of no number after one of which it is not.
#[inline]
fn first_not(low: usize, high: usize, mut is_so: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut len) = (low, high - low);
    while len > 0 {
        let half = len / 2;
        if is_so(low + half) {
            low += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    low
}

impl<'a> Writing<'a> {
    /// How many entries are before the place. Perhaps it is so many.
    #[inline]
    pub(super) fn find(&self, place: &impl Place, guess: usize) -> usize {
        let count = self.count();
        // Who guesses has just been at the nodes on both sides.
        if guess > 0
            && guess <= count
            && place.is_behind(self.node(guess - 1))
            && (guess == count || !place.is_behind(self.node(guess)))
        {
            return guess;
        }
        self.leaf.find(place)
    }

    /// How many entries there are.
    pub(super) fn count(&self) -> usize {
        // Relaxed: others with the lock came before.
        self.leaf.count.load(Ordering::Relaxed)
    }

    /// The node of an entry.
    pub(super) fn node(&self, at: usize) -> NodeRef<'a> {
        assert!(at < self.count(), "there are {} entries", self.count());
        self.leaf.node(at).expect("entries below the count are nodes")
    }

    /// Puts a node in, as entry `at`.
    /// REQUIRES: that is its place, there is room, and it is a linked node of the list that this leaf
    /// indexes.
    pub(super) fn put(&self, at: usize, node: NodeRef<'_>) {
        let Leaf {
            abbreviated, nodes, ..
        } = self.leaf;
        let count = self.count();
        // As slices, so that the bounds are checked once.
        for pair in abbreviated[at..=count].windows(2).rev() {
            pair[1].store(pair[0].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for pair in nodes[at..=count].windows(2).rev() {
            pair[1].store(pair[0].load(Ordering::Relaxed), Ordering::Release);
        }
        self.leaf.set(at, node, self.leaf.abbreviation());
        // Release: who reads this count finds nodes below it.
        self.leaf.count.store(count + 1, Ordering::Release);
    }

    /// A leaf with the entries from `from` on, of which there are some.
    pub(super) fn upper(&self, from: usize, next: Option<NodeRef<'_>>) -> Leaf {
        let upper = Leaf::new(Some(self.node(from)), next);
        let (how, entries) = (upper.abbreviation(), from..self.count());
        let same = how == self.leaf.abbreviation();
        // Relaxed: published with the leaf.
        upper.count.store(entries.len(), Ordering::Relaxed);
        for (to, at) in entries.enumerate() {
            if same {
                // So that the nodes need not be looked at.
                let abbreviated = self.leaf.abbreviated[at].load(Ordering::Relaxed);
                upper.abbreviated[to].store(abbreviated, Ordering::Relaxed);
                let node = self.leaf.nodes[at].load(Ordering::Relaxed);
                upper.nodes[to].store(node, Ordering::Relaxed);
            } else {
                upper.set(to, self.node(at), how);
            }
        }
        upper
    }

    /// Leaves out all entries but the first ones, since a leaf that begins with `next` has come behind this
    /// one.
    pub(super) fn keep(&self, count: usize, next: NodeRef<'_>) {
        self.leaf.count.store(count, Ordering::Release);
        let how = abbreviation_between(self.leaf.first(), Some(next));
        if how == self.leaf.abbreviation() {
            return;
        }
        self.leaf.abbreviation.store(how.to_bits(), Ordering::Relaxed);
        for at in 0..count {
            self.leaf.set(at, self.node(at), how);
        }
    }
}

#[cfg(test)]
impl Writing<'_> {
    /// Fails unless the entries are these nodes, which come from the leaf's list, in its order, and their
    /// abbreviated keys are in order.
    pub(super) fn check<'a>(&self, nodes: &mut impl Iterator<Item = NodeRef<'a>>) {
        let entries = 0..self.count();
        for at in entries.clone() {
            let expected = nodes.next().map(NodeRef::pointer);
            assert_eq!(Some(self.node(at).pointer()), expected, "entry {at}");
        }
        if let Some(first) = self.leaf.first() {
            assert_eq!(first.pointer(), self.node(0).pointer());
        }
        let abbreviated = entries
            .clone()
            .map(|at| self.leaf.abbreviated[at].load(Ordering::Relaxed));
        assert!(abbreviated.is_sorted(), "{:?}", self.leaf.abbreviation());
        let how = self.leaf.abbreviation();
        for at in entries {
            let node = self.node(at);
            let abbreviated = self.leaf.abbreviated[at].load(Ordering::Relaxed);
            assert_eq!(abbreviated, how.of(node.key(), node.seq()), "entry {at}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::cell::{Cell, CellType, KeyBuf};
    use crate::memstore::abbreviation::Part;
    use crate::memstore::list::{CellList, CellPlace, RowPlace};

    type OwnedKey = (KeyBuf, SeqId);

    fn insert<'a>(list: &'a CellList, (key, seq): &OwnedKey) -> NodeRef<'a> {
        let node = list.build(Cell {
            key: key.as_key(),
            value: b"",
            tags: b"",
            seq: *seq,
        });
        list.link(node, None, &node.place());
        node
    }

    /// The abbreviation for what is between two cells.
    fn between(left: &OwnedKey, right: &OwnedKey) -> Abbreviation {
        let list = CellList::new(Arc::default());
        let (left, right) = (insert(&list, left), insert(&list, right));
        abbreviation_between(Some(left), Some(right))
    }

    #[test]
    fn an_abbreviation_begins_where_keys_differ() {
        let put = |row: &str, qualifier: &str, time, seq| {
            let key = KeyBuf::new(row.as_bytes(), b"f", qualifier.as_bytes(), time, CellType::Put);
            (key, SeqId(seq))
        };
        let how = |part, skip| Abbreviation { part, skip };
        let left = put("row-0019", "qualifier", 7, 3);
        for (right, expected) in [
            (put("row-0020", "a", 7, 3), how(Part::Row, 6)),
            (put("row-00191", "qualifier", 7, 3), how(Part::Row, 8)),
            (put("s", "qualifier", 7, 3), how(Part::Row, 0)),
            (put("row-0019", "quantity", 9, 3), how(Part::Qualifier, 3)),
            (put("row-0019", "qualifier", 6, 3), how(Part::Version, 7)),
            (put("row-0019", "qualifier", -1, 3), how(Part::Version, 0)),
            (put("row-0019", "qualifier", 7, 2), how(Part::Version, 16)),
        ] {
            assert_eq!(between(&left, &right), expected);
        }
        let list = CellList::new(Arc::default());
        let node = insert(&list, &left);
        assert_eq!(abbreviation_between(Some(node), None), Abbreviation::ANY);
        assert_eq!(abbreviation_between(None, Some(node)), Abbreviation::ANY);
    }

    #[test]
    fn an_abbreviation_is_kept_as_a_number() {
        for part in [Part::Row, Part::Qualifier, Part::Version] {
            for skip in [0, 17, u32::MAX] {
                let how = Abbreviation { part, skip };
                assert_eq!(Abbreviation::from_bits(how.to_bits()), how);
            }
        }
    }

    /// Keys that have much in common.
    fn key() -> impl Strategy<Value = OwnedKey> {
        let bytes = |most| {
            let byte = prop_oneof![Just(0_u8), Just(b'a'), Just(255)];
            proptest::collection::vec(byte, 0..most)
        };
        let time = prop_oneof![-2..3_i64, Just(i64::MIN), Just(i64::MAX), any::<i64>()];
        let kind = prop_oneof![Just(CellType::Put), Just(CellType::Delete)];
        let seq = prop_oneof![0..5_u64, any::<u64>()];
        (bytes(8), bytes(4), time, kind, seq).prop_map(|(row, qualifier, time, kind, seq)| {
            let row = [b"r", &row[..]].concat();
            (KeyBuf::new(&row, b"f", &qualifier, time, kind), SeqId(seq))
        })
    }

    /// Fails unless the place's abbreviated key is on the same side of theirs as the place is of the nodes,
    /// if it is among them.
    fn check(nodes: &[NodeRef<'_>], how: Abbreviation, place: &impl Place) {
        let before = nodes.iter().take_while(|node| place.is_behind(**node)).count();
        if before == 0 || before == nodes.len() {
            return;
        }
        let of = |node: &NodeRef<'_>| how.of(node.key(), node.seq());
        // The last of them only says where the leaf ends.
        for (at, node) in nodes[..nodes.len() - 1].iter().enumerate() {
            if at < before {
                assert!(of(node) <= place.abbreviated(how), "{how:?}");
            } else {
                assert!(of(node) >= place.abbreviated(how), "{how:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 5 } else { 2_000 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn abbreviated_keys_sort_as_cells_do(keys in proptest::collection::vec(key(), 2..12), others in proptest::collection::vec(key(), 6)) {
            let list = CellList::new(Arc::default());
            for key in &keys {
                insert(&list, key);
            }
            let nodes: Vec<_> = list.nodes().collect();
            let (first, next) = (nodes[0], nodes[nodes.len() - 1]);
            let how = abbreviation_between(Some(first), Some(next));
            for (key, seq) in keys.iter().chain(&others) {
                check(&nodes, how, &CellPlace::cell(key.as_key(), *seq));
                check(&nodes, how, &CellPlace::key(key.as_key()));
                check(&nodes, how, &RowPlace::new(key.as_key().row()));
            }
        }
    }
}
