//! The skiplist of leaves, over the list of cells.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::bound::Bound;
use super::leaf::{HEIGHT_MAX, LEAF_CELLS, Leaf, Locked};
use super::list::{Builder, CellList, NodeRef};
use super::run::{Nodes, Place, Run};
use crate::cell::Cell;
use crate::memstore::memory::ALIGN;
use crate::memstore::pool::ChunkPool;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The leaf that a link points to.
#[inline]
pub(super) fn follow(link: &AtomicPtr<Leaf>) -> Option<&Leaf> {
    // SAFETY: links are borrowed from their list and point to leaves of that list, which live as
    // long; the Acquire makes the leaf complete for this thread.
    unsafe { link.load(Ordering::Acquire).as_ref() }
}

fn pointer(leaf: Option<&Leaf>) -> *mut Leaf {
    leaf.map_or(ptr::null_mut(), |leaf| ptr::from_ref(leaf).cast_mut())
}

/// Steps along a level while leaves begin before the bound. Returns the last of them and its
/// successor. `known_after` is a leaf that is known not to begin before the bound.
#[inline]
fn walk<'a>(
    mut leaf: &'a Leaf,
    known_after: *const Leaf,
    level: usize,
    bound: &Bound<'_>,
) -> (&'a Leaf, *const Leaf) {
    loop {
        if level > 0 {
            Leaf::prefetch_head(leaf.next[level - 1].load(Ordering::Relaxed), level - 1);
        }
        match follow(&leaf.next[level]) {
            Some(next) if !ptr::eq(next, known_after) && next.begins_before(bound) => leaf = next,
            next => return (leaf, pointer(next)),
        }
    }
}

/// The last leaf on a level that begins before the bound. `head` is on all levels.
#[inline]
fn descend<'a>(head: &'a Leaf, level: usize, bound: &Bound<'_>) -> &'a Leaf {
    let (mut leaf, mut known_after) = (head, ptr::null());
    // Skipped here because a walk on an empty level would prefetch null pointers, which is slow.
    let is_empty = |level: &usize| head.next[*level].load(Ordering::Relaxed).is_null();
    for level in (level..HEIGHT_MAX).rev().skip_while(is_empty) {
        (leaf, known_after) = walk(leaf, known_after, level, bound);
    }
    leaf
}

/// The next leaf, if it begins before the bound.
#[inline]
fn next_before<'a>(leaf: &'a Leaf, bound: &Bound<'_>) -> Option<&'a Leaf> {
    follow(&leaf.next[0]).filter(|next| next.begins_before(bound))
}

/// The last leaf that begins before the bound, if it is this one or the next one.
#[inline]
fn near<'a>(leaf: &'a Leaf, bound: &Bound<'_>) -> Option<&'a Leaf> {
    if !leaf.begins_before(bound) {
        return None;
    }
    match next_before(leaf, bound) {
        None => Some(leaf),
        Some(next) => next_before(next, bound).is_none().then_some(next),
    }
}

/// The index. See the module comment above.
pub(in crate::memstore) struct SkipList {
    pub(super) cells: CellList,
    /// The leaf that covers the list's head, on every level; null before the first insert.
    head: AtomicPtr<Leaf>,
    /// How many leaves were split.
    splits: AtomicU64,
}

impl SkipList {
    /// An empty list, with memory from that pool.
    pub(in crate::memstore) fn new(pool: Arc<ChunkPool>) -> Self {
        Self {
            cells: CellList::new(pool),
            head: AtomicPtr::new(ptr::null_mut()),
            splits: AtomicU64::new(0),
        }
    }

    /// The pool that its memory comes from.
    pub(in crate::memstore) fn pool(&self) -> &Arc<ChunkPool> {
        self.cells.arena().pool()
    }

    /// Charges its memory as pinned from now on.
    pub(in crate::memstore) fn pin(&self) {
        self.cells.arena().pin();
    }

    /// Bytes of the arena, overhead included.
    pub(in crate::memstore) fn bytes(&self) -> u64 {
        self.cells.arena().bytes()
    }

    /// Copies cells in. If an equal cell with an equal sequence id is there
    /// already, the new one goes before it.
    pub(in crate::memstore) fn insert_all(&self, cells: &[Cell<'_>]) {
        self.insert_all_with(cells, || self.random_height());
    }

    /// [`Self::insert_all`], with leaves of these heights where some are split.
    pub(in crate::memstore) fn insert_all_with(&self, cells: &[Cell<'_>], height: impl Fn() -> usize) {
        let mut builder = self.cells.builder(cells);
        match cells {
            [cell] => {
                let node = builder.build(*cell);
                self.insert(self.covering(node, None), node, height);
            }
            cells => self.insert_runs(cells, &mut builder, height),
        }
    }

    /// Puts in the cells of a batch, in runs.
    #[inline(never)]
    fn insert_runs<'a>(&'a self, cells: &[Cell<'_>], builder: &mut Builder<'a>, height: impl Fn() -> usize) {
        let (mut hint, mut run) = (None, Run::new());
        for cells in cells.chunks(LEAF_CELLS) {
            let nodes: Nodes<'_> = cells.iter().map(|cell| builder.build(*cell)).collect();
            let mut rest = &nodes[..];
            while let [first, others @ ..] = rest {
                let mut leaf = self.covering(*first, hint);
                hint = Some(leaf.leaf);
                if leaf.count() == LEAF_CELLS {
                    self.insert(leaf, *first, &height);
                    rest = others;
                    continue;
                }
                leaf.run(rest, follow(&leaf.leaf.next[0]), &mut run);
                let mut last: Option<&Place<'_>> = None;
                for place in &run {
                    match last.filter(|last| last.at == place.at) {
                        Some(last) => self.cells.link(place.node, Some(last.node)),
                        None => self.link(&leaf, place.at, place.node),
                    }
                    last = Some(place);
                }
                leaf.put_run(&run);
                rest = &rest[run.len()..];
            }
        }
    }

    /// Locks the leaf that covers a new node.
    #[inline]
    fn covering<'a>(&'a self, node: NodeRef<'a>, hint: Option<&'a Leaf>) -> Locked<'a> {
        let bound = node.bound();
        let leaf = self.find_leaf(&bound, hint);
        let mut leaf = leaf.unwrap_or_else(|| self.first_leaf()).lock();
        // The leaf may have been split before the lock was taken. It cannot be now.
        while let Some(next) = next_before(leaf.leaf, &bound) {
            drop(leaf);
            leaf = next.lock();
        }
        leaf
    }

    /// Puts a new node in, which the leaf covers.
    #[inline]
    fn insert<'a>(&'a self, mut leaf: Locked<'a>, node: NodeRef<'a>, height: impl Fn() -> usize) {
        let at = leaf.leaf.find(&node.bound());
        self.link(&leaf, at, node);
        if leaf.count() < LEAF_CELLS {
            leaf.put(at, node);
        } else {
            let new = self.split(leaf, at, node);
            self.link_above(new, height());
        }
    }

    /// Links a node in front of the entry of this number.
    #[inline]
    fn link<'a>(&'a self, leaf: &Locked<'a>, at: usize, node: NodeRef<'a>) {
        self.cells.link(node, at.checked_sub(1).map(|at| leaf.node(at)));
    }

    /// The last leaf that begins before the bound. `None`: there are no leaves.
    #[inline]
    pub(super) fn find_leaf<'a>(&'a self, bound: &Bound<'_>, hint: Option<&'a Leaf>) -> Option<&'a Leaf> {
        hint.and_then(|hint| near(hint, bound)).or_else(|| {
            let leaf = descend(follow(&self.head)?, 0, bound);
            leaf.prefetch();
            Some(leaf)
        })
    }

    /// Makes the leaf that covers the list's head, unless another thread is faster.
    fn first_leaf(&self) -> &Leaf {
        let leaf = self.add_leaf(Leaf::new(None, None));
        let new = pointer(Some(leaf));
        let swapped =
            (self.head).compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Relaxed);
        // If it was too late, its memory stays unused.
        swapped.map_or_else(|_| follow(&self.head).expect("it was swapped"), |_| leaf)
    }

    /// Moves a leaf that no other thread can reach yet to the arena.
    fn add_leaf(&self, leaf: Leaf) -> &Leaf {
        let alignment = align_of::<Leaf>();
        let memory = self.cells.arena().allocate(size_of::<Leaf>() + alignment - ALIGN);
        let start = memory.addr().get();
        let skipped = start.next_multiple_of(alignment) - start;
        // SAFETY: the memory belongs to this call alone, is large enough for a leaf behind what is
        // skipped, and lives as long as the list; there it is aligned.
        unsafe {
            let memory = memory.add(skipped).cast::<Leaf>();
            memory.write(leaf);
            memory.as_ref()
        }
    }

    /// Splits a full leaf and puts in a linked node, which belongs before its entry `at`. Returns
    /// the new leaf, which is linked on level 0.
    fn split<'a>(&'a self, mut full: Locked<'a>, at: usize, node: NodeRef<'a>) -> &'a Leaf {
        let middle = full.middle(at);
        let first = if at == LEAF_CELLS { node } else { full.node(middle) };
        let next = follow(&full.leaf.next[0]);
        let new = full.upper(first, middle, next.and_then(Leaf::first));
        // Relaxed: published with the rest of the leaf.
        new.next[0].store(pointer(next), Ordering::Relaxed);
        let goes_to_new = at > middle || at == LEAF_CELLS;
        if goes_to_new {
            new.lock().put(at - middle, node);
        }
        let new = self.add_leaf(new);
        full.leaf.next[0].store(pointer(Some(new)), Ordering::Release);
        full.keep(middle, first);
        if !goes_to_new {
            full.put(at, node);
        }
        new
    }

    /// Links a leaf, which is linked on level 0, on the levels above, `height` in all.
    fn link_above(&self, new: &Leaf, height: usize) {
        let (Some(first), Some(head)) = (new.first(), follow(&self.head)) else {
            return;
        };
        let bound = first.bound();
        for level in 1..height {
            let mut before = descend(head, level, &bound);
            loop {
                // Other leaves may have been linked meanwhile: walk on.
                let (last, after) = walk(before, ptr::null(), level, &bound);
                before = last;
                let (link, after) = (&before.next[level], after.cast_mut());
                // Relaxed: published by the swap.
                new.next[level].store(after, Ordering::Relaxed);
                let new = pointer(Some(new));
                if link
                    .compare_exchange(after, new, Ordering::Release, Ordering::Relaxed)
                    .is_ok()
                {
                    break;
                }
            }
        }
    }

    /// 1 with probability 3/4, each next height a quarter as likely. A hash of the number of
    /// splits, so that a single-threaded run is the same every time.
    fn random_height(&self) -> usize {
        let number = self.splits.fetch_add(1, Ordering::Relaxed) + 1;
        let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (1 + (hash ^ (hash >> 32)).leading_zeros() as usize / 2).min(HEIGHT_MAX)
    }
}

#[cfg(test)]
impl SkipList {
    /// The leaves of a level.
    fn level(&self, level: usize) -> impl Iterator<Item = &Leaf> {
        let head = follow(&self.head);
        std::iter::successors(head, move |leaf| follow(&leaf.next[level]))
    }

    /// Fails unless every cell is an entry of its leaf, the levels are in order and above each
    /// other, and a search knows the cell before each one without following the list. That is so
    /// whenever no insert is running. Returns how many leaves each level has.
    pub(in crate::memstore) fn check_index(&self) -> Vec<usize> {
        let mut nodes = self.cells.nodes();
        for leaf in self.level(0) {
            leaf.lock().check(&mut nodes);
        }
        assert!(nodes.next().is_none(), "a cell is in no leaf");
        let mut before = None;
        for node in self.cells.nodes() {
            let bound = node.bound();
            let leaf = self.find_leaf(&bound, None).expect("there are cells");
            let found = leaf.last_before(leaf.find(&bound), &bound);
            assert_eq!(found.map(NodeRef::pointer), before);
            before = Some(node.pointer());
        }
        for level in 1..HEIGHT_MAX {
            let mut below = self.level(level - 1);
            for leaf in self.level(level) {
                assert!(below.any(|other| ptr::eq(other, leaf)), "level {level}");
            }
        }
        (0..HEIGHT_MAX).map(|level| self.level(level).count()).collect()
    }
}

impl fmt::Debug for SkipList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkipList")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
