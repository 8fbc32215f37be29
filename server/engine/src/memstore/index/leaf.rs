//! A leaf of the index: pointers to consecutive nodes, side by side with their abbreviated keys.
//!
//! All cells that a leaf covers have in common what its first cell and that of the next leaf have
//! in common, so four bytes behind that ([`Abbreviation`]) order nearly all of them. Writers lock
//! the leaf ([`Leaf::lock`]); readers do not. The module comment above has the invariants.
#![allow(unsafe_code)]

use std::mem::offset_of;
use std::ops::Range;
use std::ptr::{self, NonNull};

use super::abbreviation::Abbreviation;
use super::bound::Bound;
use super::list::{Node, NodeRef};
use crate::cell::{Key, leading16};
use crate::id::SeqId;
use crate::memstore::prefetch;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Entries of a leaf. More entries make fewer leaves to search among, and more entries to move in
/// each insert (docs/decisions/0005-arena-skiplist.md).
pub(in crate::memstore) const LEAF_CELLS: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    4
} else {
    128
};

/// Enough for 4^10 leaves, 40 million cells; beyond that, searches get slowly longer.
pub(super) const HEIGHT_MAX: usize = if cfg!(loom) { 2 } else { 10 };

/// The abbreviation for cells between two nodes. `None` is the start or the end of the list.
fn abbreviation_between(first: Option<NodeRef<'_>>, next: Option<NodeRef<'_>>) -> Abbreviation {
    fn cell(node: NodeRef<'_>) -> (Key<'_>, SeqId) {
        (node.key(), node.seq())
    }
    Abbreviation::between(first.map(cell), next.map(cell))
}

/// A leaf. Lies in the arena of the list that it indexes, and lives as long.
///
/// Its fields are in the order of use: a search on the levels above reads only the first cache
/// line.
#[repr(C, align(64))]
pub(super) struct Leaf {
    /// [`leading16`] of the first cell's row.
    row_prefix: u128,
    /// The first cell that the leaf covers; `None`: the list's head.
    first: Option<NonNull<Node>>,
    /// The next leaf on each level that it is linked on.
    pub(super) next: [AtomicPtr<Leaf>; HEIGHT_MAX],
    /// [`Abbreviation::to_bits`] of the abbreviated keys.
    abbreviation: AtomicU64,
    pub(super) count: AtomicUsize,
    /// The number of the entry that was put in last.
    lock: Mutex<usize>,
    pub(super) abbreviated: [AtomicU32; LEAF_CELLS],
    pub(super) nodes: [AtomicPtr<Node>; LEAF_CELLS],
}

// SAFETY: `first` never changes and is not tied to a thread; what it points to lives as long as the
// leaf and is shared like it.
unsafe impl Sync for Leaf {}

/// A leaf whose lock is held.
pub(super) struct Locked<'a> {
    pub(super) leaf: &'a Leaf,
    pub(super) last_put: MutexGuard<'a, usize>,
}

impl Leaf {
    /// A leaf without entries. `next` is the first cell of the next leaf.
    pub(super) fn new(first: Option<NodeRef<'_>>, next: Option<NodeRef<'_>>) -> Self {
        Self {
            row_prefix: first.map_or(0, |node| leading16(node.key().row())),
            first: first.map(NodeRef::pointer),
            next: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            abbreviation: AtomicU64::new(abbreviation_between(first, next).to_bits()),
            count: AtomicUsize::new(0),
            lock: Mutex::new(0),
            abbreviated: std::array::from_fn(|_| AtomicU32::new(0)),
            nodes: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Waits for the lock.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            leaf: self,
            last_put: self.lock.lock(),
        }
    }

    /// The first cell that it covers. `None`: it covers the list's head.
    #[inline]
    pub(super) fn first(&self) -> Option<NodeRef<'_>> {
        // SAFETY: a node of the list in whose arena this leaf is, complete when it was given to
        // `new`.
        self.first.map(|node| unsafe { NodeRef::new(node) })
    }

    /// Whether its first cell is before the bound.
    #[inline]
    pub(super) fn begins_before(&self, bound: &Bound<'_>) -> bool {
        if self.row_prefix != bound.row_prefix() {
            return self.row_prefix < bound.row_prefix();
        }
        self.first().is_none_or(|first| first.is_before(bound))
    }

    /// How many entries are before the bound: exact under the lock, otherwise a hint.
    #[inline]
    pub(super) fn find(&self, bound: &Bound<'_>) -> usize {
        let count = self.count.load(Ordering::Acquire);
        let short = bound.abbreviated(self.abbreviation());
        let low = self.find_short(count, short);
        self.find_among_equals(low, count, short, bound)
    }

    /// [`Self::find`], given the first entry whose abbreviated key is not less than that of the bound,
    /// `short`.
    #[inline]
    pub(super) fn find_among_equals(&self, low: usize, count: usize, short: u32, bound: &Bound<'_>) -> usize {
        if low == count || self.short(low) != short {
            return low;
        }
        // Some are equal: newer versions of a column, or rows that differ farther behind. Most
        // often the bound is at one end of them.
        let is_before = |at: usize| self.node(at).is_some_and(|node| node.is_before(bound));
        if !is_before(low) {
            return low;
        }
        let high = partition_point(low + 1, count, |at| self.short(at) == short);
        if is_before(high - 1) {
            return high;
        }
        partition_point(low + 1, high - 1, is_before)
    }

    /// The first of `count` entries whose abbreviated key is not less than this one.
    #[inline]
    pub(super) fn find_short(&self, count: usize, short: u32) -> usize {
        partition_point(0, count, |at| self.short(at) < short)
    }

    /// As [`Self::find_short`], for an entry that is at or not far behind `from`.
    #[inline]
    pub(super) fn find_short_from(&self, from: usize, count: usize, short: u32) -> usize {
        let is_less = |at: usize| self.short(at) < short;
        let (mut low, mut step) = (from, 1);
        while low + step <= count && is_less(low + step - 1) {
            low += step;
            step *= 2;
        }
        partition_point(low, count.min(low + step - 1), is_less)
    }

    /// The last entry before the bound, given what [`Self::find`] returned. `None`: the list's
    /// head.
    /// REQUIRES: the leaf begins before the bound.
    #[inline]
    pub(super) fn last_before(&self, at: usize, bound: &Bound<'_>) -> Option<NodeRef<'_>> {
        if let Some(next) = self.nodes.get(at) {
            // The list will be followed up to there.
            prefetch(next.load(Ordering::Relaxed));
        }
        let entries = (0..at).rev().filter_map(|at| self.node(at));
        let mut before = entries.skip_while(|node| !node.is_before(bound));
        before.next().or_else(|| self.first())
    }

    /// The node of an entry. `None`: there was never one at that number.
    #[inline]
    fn node(&self, at: usize) -> Option<NodeRef<'_>> {
        // SAFETY: entries are nodes of the list in whose arena this leaf is; the Acquire makes them
        // complete for this thread.
        NonNull::new(self.nodes[at].load(Ordering::Acquire)).map(|node| unsafe { NodeRef::new(node) })
    }

    /// The abbreviated key of an entry.
    #[inline]
    fn short(&self, at: usize) -> u32 {
        self.abbreviated[at].load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn abbreviation(&self) -> Abbreviation {
        Abbreviation::from_bits(self.abbreviation.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn set(&self, at: usize, node: NodeRef<'_>, short: u32) {
        self.abbreviated[at].store(short, Ordering::Relaxed);
        self.nodes[at].store(node.pointer().as_ptr(), Ordering::Release);
    }

    /// How many entries there are, unless a writer changes the leaf.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Prefetches what [`Self::find`] reads.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&raw const self.abbreviation);
        for at in (0..LEAF_CELLS).step_by(64 / size_of::<AtomicU32>()) {
            prefetch(&raw const self.abbreviated[at]);
        }
    }

    /// Prefetches what [`Self::begins_before`] and a step on `level` read. The address may be null.
    #[inline]
    pub(super) fn prefetch_head(leaf: *const Self, level: usize) {
        prefetch(leaf);
        if offset_of!(Self, next) + (level + 1) * size_of::<AtomicPtr<Self>>() > 64 {
            prefetch(leaf.cast::<u8>().wrapping_add(64));
        }
    }

    /// Prefetches what an iterator reads that comes to this leaf. The address may be null.
    #[inline]
    pub(super) fn prefetch_entries(leaf: *const Self) {
        for offset in [
            offset_of!(Self, next),
            offset_of!(Self, count),
            offset_of!(Self, nodes),
        ] {
            prefetch(leaf.cast::<u8>().wrapping_add(offset));
        }
    }

    /// Prefetches the cell of an entry, if there is one of that number.
    #[inline]
    pub(super) fn prefetch_cell(&self, at: usize) {
        if let Some(node) = self.nodes.get(at) {
            // Relaxed: nothing there is read.
            NodeRef::prefetch(node.load(Ordering::Relaxed));
        }
    }
}

/// Partition point of `predicate` in `low..high`.
#[inline]
fn partition_point(low: usize, high: usize, mut predicate: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut len) = (low, high - low);
    while len > 0 {
        let half = len / 2;
        if predicate(low + half) {
            low += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    low
}

impl<'a> Locked<'a> {
    /// How many entries there are.
    pub(super) fn count(&self) -> usize {
        self.leaf.len()
    }

    /// The node of an entry.
    pub(super) fn node(&self, at: usize) -> NodeRef<'a> {
        assert!(at < self.count(), "there are {} entries", self.count());
        self.leaf.node(at).expect("entries below the count are nodes")
    }

    /// Puts a linked node in as entry `at`, before which it belongs.
    /// REQUIRES: the leaf is not full.
    pub(super) fn put(&mut self, at: usize, node: NodeRef<'_>) {
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
        let short = self.leaf.abbreviation().of(node.key(), node.seq());
        self.leaf.set(at, node, short);
        *self.last_put = at;
        // Release: the entries below this count are nodes.
        self.leaf.count.store(count + 1, Ordering::Release);
    }

    /// The entry before which a full leaf is split when a cell comes as entry `at`. Cells in order
    /// leave full leaves behind: those behind the last one, and those in front of the whole list
    /// (`at` is 0 nowhere else).
    pub(super) fn middle(&self, at: usize) -> usize {
        let is_in_order = at == *self.last_put + 1;
        if is_in_order || at == 0 || at == LEAF_CELLS {
            at
        } else {
            LEAF_CELLS / 2
        }
    }

    /// Copies entries to the front of another leaf that only this thread changes, or of this one.
    fn copy(&self, entries: Range<usize>, to: &Leaf, how: Abbreviation) {
        let is_same = how == self.leaf.abbreviation();
        for (to_at, at) in entries.enumerate() {
            let node = self.node(at);
            // The nodes may be far away: only read them if need be.
            let short = if is_same {
                self.leaf.short(at)
            } else {
                how.of(node.key(), node.seq())
            };
            to.set(to_at, node, short);
        }
    }

    /// A leaf that begins with `first` and has the entries from `from` on. `next` is the first cell
    /// of the leaf behind it.
    pub(super) fn upper(&self, first: NodeRef<'_>, from: usize, next: Option<NodeRef<'_>>) -> Leaf {
        let upper = Leaf::new(Some(first), next);
        self.copy(from..self.count(), &upper, upper.abbreviation());
        upper.count.store(self.count() - from, Ordering::Release);
        upper
    }

    /// Keeps only the first entries. `next` is the first cell of the leaf that took the others.
    pub(super) fn keep(&self, count: usize, next: NodeRef<'_>) {
        self.leaf.count.store(count, Ordering::Release);
        let how = abbreviation_between(self.leaf.first(), Some(next));
        self.copy(0..count, self.leaf, how);
        self.leaf.abbreviation.store(how.to_bits(), Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Locked<'_> {
    /// Fails unless the entries are these nodes, which come from the leaf's list, in its order, and
    /// their abbreviated keys are in order.
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
    use crate::memstore::index::abbreviation::Part;
    use crate::memstore::index::list::CellList;

    type OwnedKey = (KeyBuf, SeqId);

    fn insert<'a>(list: &'a CellList, (key, seq): &OwnedKey) -> NodeRef<'a> {
        let cell = Cell {
            key: key.as_key(),
            value: b"",
            tags: b"",
            seq: *seq,
        };
        let node = list.builder(&[cell]).build(cell);
        let (before, _) = list.around(None, &node.bound());
        list.link(node, before);
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

    /// Fails unless the bound's abbreviated key is on the same side of theirs as the bound is of
    /// the nodes, if it is among them.
    fn check(nodes: &[NodeRef<'_>], how: Abbreviation, bound: &Bound<'_>) {
        let before = nodes.iter().take_while(|node| node.is_before(bound)).count();
        if before == 0 || before == nodes.len() {
            return;
        }
        let of = |node: &NodeRef<'_>| how.of(node.key(), node.seq());
        // The last of them only says where the leaf ends.
        for (at, node) in nodes[..nodes.len() - 1].iter().enumerate() {
            if at < before {
                assert!(of(node) <= bound.abbreviated(how), "{how:?}");
            } else {
                assert!(of(node) >= bound.abbreviated(how), "{how:?}");
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
                check(&nodes, how, &Bound::cell(key.as_key(), *seq));
                check(&nodes, how, &Bound::key(key.as_key()));
                check(&nodes, how, &Bound::row(key.as_key().row()));
            }
        }
    }
}
