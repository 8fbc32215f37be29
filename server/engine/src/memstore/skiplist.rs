//! A concurrent skiplist of leaves over the list of cells: where in the list a place is.
//!
//! ```text
//! level 1    leaf ----------------> leaf ----------> ...
//! level 0    leaf ------> leaf ---> leaf ------> leaf
//!            / | \        / | \     / | \        / | \
//! cells     o->o->o->...->o->o->...->o->o->...->o->o->...
//! ```
//!
//! Cells are linked in order ([`super::list`]); leaves hold up to [`LEAF_CELLS`] of them side by side
//! ([`super::leaf`]). On level 0 all leaves are linked in order, and each level above has about a quarter of
//! the one below (heights are random). A search goes down the levels to the last leaf that begins before the
//! place, from there to the last node of that leaf before it, and then along the list until it is there. So
//! the list alone decides what is found. Leaves make it quick: in a large memstore each link that is followed
//! is a wait for memory, and there are half as many as in a skiplist of cells ([decision
//! 5](../../../../docs/decisions/0005-arena-skiplist.md)).
//!
//! Inserting: link the cell into the list (lock-free); put it into its leaf, under the leaf's lock. A full
//! leaf is split: a new one takes the upper part and is linked behind it on level 0, then the old one forgets
//! that part, then the new one is linked on the levels above (lock-free). Half of the cells move, unless they
//! come in order, see [`SkipList::put`].
//!
//! Readers take no lock. Who comes to a leaf while it is split, or before a cell is in it, begins farther
//! back in the list than need be. Writers wait for each other where they put cells into one leaf, for as long
//! as that takes.
//!
//! Invariants, on which the `unsafe` in here rests:
//! - A link between leaves is null or points to a complete leaf of this list's arena.
//! - Leaves and nodes live until the list is dropped. [`Walker`] owns a share of it.
//!
//! And for searches to be right: a leaf that is linked on a level begins at or before those that follow it
//! there.
#![allow(unsafe_code)]

use std::cell::Cell as StdCell;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

use super::leaf::{HEIGHT_MAX, LEAF_CELLS, Leaf, Sought, Writing};
use super::list::{Builder, CellList, CellPlace, Node, NodeRef, Place, RowPlace};
use super::memory::ALIGN;
use super::pool::ChunkPool;
use crate::cell::Cell;
use crate::sync::Mutex;
use crate::sync::atomic::{self, AtomicPtr, AtomicUsize};

/// Places that are searched for side by side.
const TOGETHER: usize = if cfg!(any(loom, miri)) { 2 } else { 16 };

/// Threads share this many fingers.
const FINGERS: usize = if cfg!(loom) { 2 } else { 4 };

/// Where a link between leaves points.
#[inline]
fn follow(link: &AtomicPtr<Leaf>) -> Option<&Leaf> {
    // SAFETY: links are borrowed from their list, and what one points to is a leaf of that list, which lives
    // as long; the Acquire makes it complete for us.
    unsafe { link.load(atomic::Ordering::Acquire).as_ref() }
}

fn pointer(leaf: Option<&Leaf>) -> *mut Leaf {
    leaf.map_or(ptr::null_mut(), |leaf| ptr::from_ref(leaf).cast_mut())
}

/// From a leaf along a level, as long as leaves begin before the place. Returns the last of them and its
/// successor. `known_behind` is a leaf that is known not to begin before it.
#[inline]
fn walk<'a>(
    leaf: &'a Leaf,
    known_behind: *const Leaf,
    level: usize,
    place: &impl Place,
) -> (&'a Leaf, *const Leaf) {
    let mut leaf = leaf;
    loop {
        if level > 0 {
            Leaf::prefetch_head(leaf.next[level - 1].load(atomic::Ordering::Relaxed), level - 1);
        }
        match follow(&leaf.next[level]) {
            Some(next) if !ptr::eq(next, known_behind) && next.begins_before(place) => leaf = next,
            next => return (leaf, next.map_or(ptr::null(), ptr::from_ref)),
        }
    }
}

/// How many leaves farther is near.
const NEAR_LEAVES: usize = 2;

/// The last leaf that begins before the place, if it is this one or one of the next few.
/// REQUIRES: this one does.
fn near<'a>(leaf: &'a Leaf, place: &CellPlace<'_>) -> Option<&'a Leaf> {
    let mut leaf = leaf;
    for _ in 0..=NEAR_LEAVES {
        match follow(&leaf.next[0]) {
            Some(next) if next.begins_before(place) => leaf = next,
            _ => return Some(leaf),
        }
    }
    None
}

/// Whether a leaf is the other one or the next.
fn are_near(leaf: &Leaf, other: &Leaf) -> bool {
    let next = leaf.next[0].load(atomic::Ordering::Relaxed);
    ptr::eq(leaf, other) || ptr::eq(next, other)
}

/// Links a leaf on one level, behind `start` or one that follows it there.
fn link_on(level: usize, start: &Leaf, new: &Leaf, place: &CellPlace<'_>) {
    let mut start = start;
    loop {
        // Others may have been linked meanwhile: walk on, and again whenever one of them is faster.
        let (before, after) = walk(start, ptr::null(), level, place);
        let after = after.cast_mut();
        // Relaxed: published by the swap.
        new.next[level].store(after, atomic::Ordering::Relaxed);
        let swapped = before.next[level].compare_exchange(
            after,
            pointer(Some(new)),
            atomic::Ordering::Release,
            atomic::Ordering::Relaxed,
        );
        if swapped.is_ok() {
            return;
        }
        start = before;
    }
}

/// Where the last insert went. A cell that goes right behind that one, as in a sorted load or in a row of
/// many columns, is placed with two comparisons instead of a search; one that goes near it, as in batches of
/// neighbours that are all written again, with few.
///
/// Invariant: the leaf begins at or before the node.
#[derive(Clone, Copy)]
struct Finger {
    node: NonNull<Node>,
    leaf: NonNull<Leaf>,
    /// Which entry of the leaf it was.
    at: usize,
    /// Whether it was near the one before. Otherwise it is not worth looking there.
    was_near: bool,
}

// SAFETY: the pointers are not tied to a thread; they are used only together with the list they belong to.
unsafe impl Send for Finger {}

/// Where an insert begins to look for its place in the list, and in the index.
struct Start<'a> {
    /// A node before the place; `None`: the head.
    node: Option<NodeRef<'a>>,
    /// A leaf that begins before the place.
    leaf: &'a Leaf,
    /// Which entry of the leaf the place might be.
    guess: usize,
    /// Whether the place is right behind the last insert.
    is_next: bool,
    /// Whether it is in the leaf of the last insert, or near that.
    is_near: bool,
}

impl<'a> Start<'a> {
    /// In a leaf that begins before the place, with `guess` entries before it.
    #[inline]
    fn within(leaf: &'a Leaf, guess: usize, place: &CellPlace<'_>, is_near: bool) -> Self {
        Self {
            node: leaf.last_before_entry(guess, place),
            leaf,
            guess,
            is_next: false,
            is_near,
        }
    }
}

/// One of several searches for places that take turns, so that none waits for the memory that it looks at
/// next.
struct Search<'a> {
    node: NodeRef<'a>,
    place: CellPlace<'a>,
    /// The last leaf so far that begins before the place.
    leaf: &'a Leaf,
    /// The level that we are on.
    level: usize,
    /// The next leaf there.
    next: Option<&'a Leaf>,
    /// A leaf that is known not to begin before it.
    known_behind: *const Leaf,
    /// Where in the leaf, once that is the right one.
    sought: Sought,
    /// Whether it is the right leaf.
    is_done: bool,
}

impl<'a> Search<'a> {
    /// For the place of a node, from the first leaf on.
    fn new(node: NodeRef<'a>, head: &'a Leaf, levels: usize) -> Self {
        let mut search = Self {
            node,
            place: node.place(),
            leaf: head,
            level: levels - 1,
            next: None,
            known_behind: ptr::null(),
            sought: Sought::default(),
            is_done: false,
        };
        search.look();
        search
    }

    /// Chooses the leaf to compare with next, and has it fetched. Done if there is none.
    #[inline]
    fn look(&mut self) {
        loop {
            self.next = follow(&self.leaf.next[self.level]);
            let next = pointer(self.next).cast_const();
            if !ptr::eq(next, self.known_behind) {
                Leaf::prefetch_head(next, self.level);
                return;
            }
            if self.level == 0 {
                self.is_done = true;
                self.leaf.prefetch();
                return;
            }
            self.level -= 1;
        }
    }

    /// One comparison.
    #[inline]
    fn step(&mut self) {
        match self.next {
            Some(next) if next.begins_before(&self.place) => self.leaf = next,
            next => self.known_behind = pointer(next),
        }
        self.look();
    }

    /// From where to go to the place, now that it is done. `last` is where the last insert went.
    fn start(&self, last: Option<Finger>) -> Start<'a> {
        let guess = self.leaf.find_sought(self.sought, &self.place);
        let is_near = last.is_some_and(|last| {
            // SAFETY: as in `SkipList::start`.
            are_near(unsafe { last.leaf.as_ref() }, self.leaf)
        });
        Start::within(self.leaf, guess, &self.place, is_near)
    }
}

/// The list with its index. See the module comment.
pub(super) struct SkipList {
    cells: CellList,
    /// The leaf that begins at the list's head, on every level; null before the first insert.
    head: AtomicPtr<Leaf>,
    /// Held by who makes that leaf.
    making: Mutex<()>,
    /// Levels in use: the greatest height so far.
    height: AtomicUsize,
    /// Threads are spread over them. All pointers are to nodes and leaves of this list.
    fingers: [CachePadded<Mutex<Option<Finger>>>; FINGERS],
}

impl SkipList {
    /// An empty list, with memory from that pool.
    pub(super) fn new(pool: Arc<ChunkPool>) -> Self {
        Self {
            cells: CellList::new(pool),
            head: AtomicPtr::new(ptr::null_mut()),
            making: Mutex::default(),
            height: AtomicUsize::new(1),
            fingers: Default::default(),
        }
    }

    /// Where its memory comes from.
    pub(super) fn pool(&self) -> &Arc<ChunkPool> {
        self.cells.arena().pool()
    }

    /// Bytes of the arena, overhead included.
    pub(super) fn bytes(&self) -> u64 {
        self.cells.arena().bytes()
    }

    /// Copies a cell in. If an equal cell with an equal sequence id is there already, the new one goes before
    /// it.
    pub(super) fn insert(&self, cell: Cell<'_>) {
        let (height, finger) = THREAD.with(|thread| (thread.random_height(), thread.finger));
        self.insert_with(cell, height, finger);
    }

    /// [`Self::insert`] from that finger. If a leaf is made for it, that is linked on `height` levels.
    pub(super) fn insert_with(&self, cell: Cell<'_>, height: usize, finger: usize) {
        // Another thread with the same finger is not waited for.
        let mut finger = self.fingers[finger].try_lock();
        let last = finger.as_deref().copied().flatten();
        let inserted = self.insert_from(last, self.cells.build(cell), height);
        if let Some(finger) = finger.as_deref_mut() {
            *finger = Some(inserted);
        }
    }

    /// Copies cells in, as if each was [inserted](Self::insert) in turn. Searches for places that are apart
    /// are made side by side.
    pub(super) fn insert_all(&self, cells: &[Cell<'_>]) {
        THREAD.with(|thread| self.insert_all_with(cells, || thread.random_height(), thread.finger));
    }

    /// [`Self::insert_all`] from that finger.
    pub(super) fn insert_all_with(
        &self,
        cells: &[Cell<'_>],
        mut height: impl FnMut() -> usize,
        finger: usize,
    ) {
        let mut finger = self.fingers[finger].try_lock();
        let mut last = finger.as_deref().copied().flatten();
        let mut builder = self.cells.builder(cells);
        let mut rows = cells
            .chunk_by(|left, right| left.key.row() == right.key.row())
            .peekable();
        // Rows that are near each other are found as quickly from where the last one went. Of the first one
        // that does not say anything.
        let (mut is_first, mut are_apart) = (true, false);
        while rows.peek().is_some() {
            if are_apart && let Some(head) = follow(&self.head) {
                let rows = rows.by_ref().take(TOGETHER);
                are_apart = self.insert_together(&mut builder, rows, head, &mut last, &mut height);
            } else if let Some((first, others)) = rows.next().and_then(<[_]>::split_first) {
                let first = self.insert_from(last, builder.build(*first), height());
                are_apart = !is_first && !first.was_near;
                is_first = false;
                last = Some(self.insert_behind(&mut builder, first, others, &mut height));
            }
        }
        if let Some(finger) = finger.as_deref_mut() {
            *finger = last;
        }
    }

    /// Copies in the other cells of a row, of which the first one has gone there. Returns where the last one
    /// went.
    fn insert_behind(
        &self,
        builder: &mut Builder<'_>,
        first: Finger,
        cells: &[Cell<'_>],
        height: &mut impl FnMut() -> usize,
    ) -> Finger {
        cells.iter().fold(first, |last, cell| {
            self.insert_from(Some(last), builder.build(*cell), height())
        })
    }

    /// Copies in the cells of a few rows, whose places are searched for side by side. Returns whether the
    /// last two were apart.
    fn insert_together<'a, 'c>(
        &'a self,
        builder: &mut Builder<'a>,
        rows: impl Iterator<Item = &'c [Cell<'c>]>,
        head: &'a Leaf,
        last: &mut Option<Finger>,
        height: &mut impl FnMut() -> usize,
    ) -> bool {
        // Relaxed: as in `leaf_of`.
        let levels = self.height.load(atomic::Ordering::Relaxed);
        let search = |row: &'c [Cell<'c>]| (Search::new(builder.build(row[0]), head, levels), &row[1..]);
        let mut searches: SmallVec<[_; TOGETHER]> = rows.map(search).collect();
        let mut under_way = true;
        while under_way {
            under_way = false;
            for (search, _) in searches.iter_mut().filter(|(search, _)| !search.is_done) {
                search.step();
                under_way = true;
            }
        }
        // The leaves are on their way; of what they hold, first the entries, then the nodes.
        for (search, _) in &mut searches {
            search.sought = search.leaf.seek(&search.place);
        }
        for (search, _) in &searches {
            search.leaf.prefetch_nodes(search.sought);
        }
        let mut are_apart = true;
        for (search, others) in &searches {
            let first = self.insert_at(&search.start(*last), search.node, &search.place, height());
            are_apart = !first.was_near;
            *last = Some(self.insert_behind(builder, first, others, height));
        }
        are_apart
    }

    /// Puts a new node in. Where the last one went is a place to begin with. Returns where this one went.
    #[inline]
    fn insert_from(&self, last: Option<Finger>, node: NodeRef<'_>, height: usize) -> Finger {
        let place = node.place();
        self.insert_at(&self.start(last, &place), node, &place, height)
    }

    /// Puts a new node in, at its place.
    #[inline]
    fn insert_at<'a>(
        &'a self,
        start: &Start<'a>,
        node: NodeRef<'a>,
        place: &CellPlace<'_>,
        height: usize,
    ) -> Finger {
        self.cells.link(node, start.node, place);
        let (leaf, at) = self.put(start, node, place, height);
        Finger {
            node: node.pointer(),
            leaf: NonNull::from(leaf),
            at,
            was_near: start.is_near,
        }
    }

    /// From where to go to the place.
    #[inline]
    fn start(&self, finger: Option<Finger>, place: &CellPlace<'_>) -> Start<'_> {
        let mut last_leaf = None;
        if let Some(finger) = finger {
            // SAFETY: a node and a leaf of this list; that they were put there under the finger's lock makes
            // them complete for us.
            let (node, leaf) = unsafe { (NodeRef::new(finger.node), finger.leaf.as_ref()) };
            if place.is_behind(node) {
                let next = node.next();
                if next.is_none_or(|next| !place.is_behind(next)) {
                    return Start {
                        node: Some(node),
                        leaf,
                        guess: finger.at + 1,
                        is_next: true,
                        is_near: true,
                    };
                }
                if finger.was_near
                    && let Some(leaf) = near(leaf, place)
                {
                    leaf.prefetch();
                    return Start::within(leaf, leaf.find(place), place, true);
                }
                last_leaf = Some(leaf);
            }
        }
        let leaf = self.leaf_of(place).unwrap_or_else(|| self.first_leaf());
        let is_near = last_leaf.is_some_and(|last| are_near(last, leaf));
        Start::within(leaf, leaf.find(place), place, is_near)
    }

    /// The last leaf that begins before the place. `None`: there are no leaves.
    #[inline]
    fn leaf_of(&self, place: &impl Place) -> Option<&Leaf> {
        let mut leaf = follow(&self.head)?;
        let mut known_behind = ptr::null();
        // Relaxed: who does not see a new height yet begins lower, and finds the same.
        for level in (0..self.height.load(atomic::Ordering::Relaxed)).rev() {
            (leaf, known_behind) = walk(leaf, known_behind, level, place);
        }
        leaf.prefetch();
        Some(leaf)
    }

    /// Makes the leaf that begins at the list's head, unless another thread has.
    fn first_leaf(&self) -> &Leaf {
        let _making = self.making.lock();
        follow(&self.head).unwrap_or_else(|| {
            let leaf = self.add_leaf(Leaf::new(None, None), None);
            self.head.store(pointer(Some(leaf)), atomic::Ordering::Release);
            leaf
        })
    }

    /// Puts a leaf, which nobody finds yet, where it stays. It will be linked in front of `next`.
    fn add_leaf(&self, leaf: Leaf, next: Option<&Leaf>) -> &Leaf {
        // Relaxed: published with the rest of the leaf.
        leaf.next[0].store(pointer(next), atomic::Ordering::Relaxed);
        let alignment = align_of::<Leaf>();
        let memory = self.cells.arena().allocate(size_of::<Leaf>() + alignment - ALIGN);
        let start = memory.addr().get();
        let skipped = start.next_multiple_of(alignment) - start;
        // SAFETY: the memory is ours alone, large enough for a leaf behind what is skipped, and lives as long
        // as the list; there it is aligned.
        unsafe {
            let memory = memory.add(skipped).cast::<Leaf>();
            memory.write(leaf);
            memory.as_ref()
        }
    }

    /// Puts a node that is linked into its leaf, which is that of `start` or one that was split from it.
    /// Returns that, and which entry the node is. A good guess of the entry saves a search.
    fn put<'a>(
        &'a self,
        start: &Start<'a>,
        node: NodeRef<'a>,
        place: &CellPlace<'_>,
        height: usize,
    ) -> (&'a Leaf, usize) {
        let mut writing = start.leaf.write();
        // Nobody puts a leaf behind this one while we have its lock.
        while let Some(next) = follow(&writing.leaf.next[0])
            && next.begins_before(place)
        {
            drop(writing);
            writing = next.write();
        }
        let at = writing.find(place, start.guess);
        if writing.count() < LEAF_CELLS {
            writing.put(at, node);
            return (writing.leaf, at);
        }
        // A cell right behind the one before is likely to be followed by more of the kind: nothing shall be
        // in their way. The same goes for one in front of all cells of the list, which is 0 then; nowhere
        // else a cell is in front of all of a leaf.
        let is_next = start.is_next && at == start.guess;
        let middle = if is_next || at == 0 { at } else { LEAF_CELLS / 2 };
        let (old, new) = (writing.leaf, self.split(&writing, middle, at, node));
        drop(writing);
        self.link_above(new, height);
        if at == LEAF_CELLS {
            (new, 0)
        } else if at > middle {
            (new, at - middle)
        } else {
            (old, at)
        }
    }

    /// Splits a full leaf before its entry `middle`, and puts in a node, whose place there is `at`. The node
    /// alone makes the new leaf if it is behind all others. Returns the new leaf, which is linked on level 0.
    fn split<'a>(&'a self, full: &Writing<'a>, middle: usize, at: usize, node: NodeRef<'a>) -> &'a Leaf {
        let next = follow(&full.leaf.next[0]);
        let next_first = next.and_then(Leaf::first);
        let (new, kept) = if at == LEAF_CELLS {
            (Leaf::new(Some(node), next_first), LEAF_CELLS)
        } else {
            (full.upper(middle, next_first), middle)
        };
        let new = self.add_leaf(new, next);
        if (middle + 1..LEAF_CELLS).contains(&at) {
            new.write().put(at - middle, node);
        }
        let begin = new.first().expect("it was made with a cell");
        full.leaf.next[0].store(pointer(Some(new)), atomic::Ordering::Release);
        full.keep(kept, begin);
        if at <= middle && at < LEAF_CELLS {
            full.put(at, node);
        }
        new
    }

    /// Links a leaf, which is linked on level 0, on the levels above, on `height` in all.
    fn link_above(&self, new: &Leaf, height: usize) {
        let (Some(first), Some(head)) = (new.first(), follow(&self.head)) else {
            return;
        };
        // Relaxed: a search that does not see it yet begins lower, and finds the same.
        let levels = self
            .height
            .fetch_max(height, atomic::Ordering::Relaxed)
            .max(height);
        let place = first.place();
        let mut before = [head; HEIGHT_MAX];
        let (mut leaf, mut known_behind) = (head, ptr::null());
        for level in (1..levels).rev() {
            (leaf, known_behind) = walk(leaf, known_behind, level, &place);
            before[level] = leaf;
        }
        for (level, start) in before.into_iter().enumerate().take(height).skip(1) {
            link_on(level, start, new, &place);
        }
    }

    /// The last cell before a place and the first one after it.
    #[inline]
    pub(super) fn around(&self, place: &impl Place) -> (Option<NodeRef<'_>>, Option<NodeRef<'_>>) {
        // No leaf: nothing was inserted when we came.
        let start = self.leaf_of(place).and_then(|leaf| leaf.last_before(place));
        self.cells.around(start, place)
    }
}

impl SkipList {
    /// The node at which a walk begins that covers about [`STRETCH`] cells and ends at `place`, and
    /// what the walk prefetches. `None`: no cell is before `place`.
    fn stretch_before(&self, place: &impl Place) -> Option<(NodeRef<'_>, Ahead)> {
        let mut leaf = self.leaf_of(place)?;
        let end = leaf.find(place);
        let mut from = end.saturating_sub(STRETCH);
        if end < STRETCH
            && let Some(first) = leaf.first()
            && let Some(previous) = self.leaf_of(&first.place())
        {
            from = previous.len().saturating_sub(STRETCH - end);
            leaf = previous;
        }
        let start = leaf
            .last_before_entry(from + 1, place)
            .or_else(|| self.cells.around(None, &RowPlace::new(b"")).1)?;
        let ahead = Ahead {
            leaf: NonNull::from(leaf),
            at: from + 2,
            lead: 0,
        };
        Some((start, ahead))
    }
}

#[cfg(test)]
impl SkipList {
    /// The leaves of a level.
    fn level(&self, level: usize) -> impl Iterator<Item = &Leaf> {
        let head = follow(&self.head);
        std::iter::successors(head, move |leaf| follow(&leaf.next[level]))
    }

    /// Fails unless every cell is an entry of its leaf, the levels are in order and above each other, and a
    /// search knows the cell before each one without following the list. That is so whenever nobody is
    /// inserting. Returns how many leaves each level has.
    pub(super) fn check_index(&self) -> Vec<usize> {
        let mut nodes = self.cells.nodes();
        for leaf in self.level(0) {
            leaf.write().check(&mut nodes);
        }
        assert!(nodes.next().is_none(), "a cell is in no leaf");
        let mut before = None;
        for node in self.cells.nodes() {
            let place = node.place();
            let found = self.leaf_of(&place).expect("there are cells").last_before(&place);
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

/// Cells that a walker fetches ahead of where it stands: so many are on their way at once. With more it is no
/// quicker.
pub(super) const LEAD: usize = 8;

/// Which cells a walker has fetched. A hint: an entry that is put in or moved meanwhile makes it wrong by
/// one, or by a leaf.
struct Ahead {
    /// The leaf of the next cell to fetch. It belongs to the walker's list.
    leaf: NonNull<Leaf>,
    /// Which entry that is.
    at: usize,
    /// Cells that were fetched, and have not been reached.
    lead: usize,
}

/// The first and the last node of a row in the walker's list.
#[derive(Clone, Copy)]
struct RowSpan {
    first: NonNull<Node>,
    last: NonNull<Node>,
}

/// Entries of a leaf that one stretch of a backward walk covers.
const STRETCH: usize = if cfg!(any(loom, miri)) { 3 } else { 32 };

/// A position in a list that it keeps alive.
///
/// The list is one link after the other, and each is a wait for memory. What follows in the leaf is known at
/// once. So a walk fetches that, the more the longer it gets.
///
/// Links lead forward only. A backward walk ([`Self::seek_row_before`]) goes forward over a stretch
/// before its position, records where the rows in it begin and end, and then goes back along these
/// records. A cell that was inserted meanwhile is detected, because the last node of a row then
/// does not lead to the first of the next; the records are made again.
pub(super) struct Walker {
    list: Arc<SkipList>,
    /// A node of `list`.
    node: Option<NonNull<Node>>,
    ahead: Option<Ahead>,
    /// Consecutive rows. The last step back went to the last one; the first one may be incomplete.
    rows: Vec<RowSpan>,
}

// SAFETY: the pointers are not tied to a thread, and what they point to lives as long as `list`, which is
// Send and Sync.
unsafe impl Send for Walker {}

impl Walker {
    /// Stands nowhere.
    pub(super) fn new(list: Arc<SkipList>) -> Self {
        Self {
            list,
            node: None,
            ahead: None,
            rows: Vec::new(),
        }
    }

    /// The node it stands on.
    #[inline]
    pub(super) fn node(&self) -> Option<NodeRef<'_>> {
        self.node.map(|node| self.own(node))
    }

    /// A node that was kept as a pointer.
    #[inline]
    #[expect(clippy::unused_self, reason = "the node is borrowed from what keeps it alive")]
    fn own(&self, node: NonNull<Node>) -> NodeRef<'_> {
        // SAFETY: private; only given nodes of `list` (see `go` and `RowSpan`), which `self` keeps
        // alive and which is borrowed for as long as `self` is.
        unsafe { NodeRef::new(node) }
    }

    /// Moves to the first node after a place.
    #[inline]
    pub(super) fn seek(&mut self, place: &impl Place) {
        let leaf = self.list.leaf_of(place);
        let at = leaf.map_or(0, |leaf| leaf.find(place));
        let start = leaf.and_then(|leaf| leaf.last_before_entry(at, place));
        let (_, node) = self.list.cells.around(start, place);
        self.node = node.map(NodeRef::pointer);
        self.ahead = leaf.map(|leaf| Ahead {
            leaf: NonNull::from(leaf),
            // It stands on entry `at`, and the next one cannot be fetched much before a step goes there.
            at: at + 2,
            lead: 0,
        });
    }

    /// Moves to the next node.
    #[inline]
    pub(super) fn step(&mut self) {
        self.node = self.node().and_then(NodeRef::next).map(NodeRef::pointer);
        if let Some(ahead) = &mut self.ahead {
            ahead.lead = ahead.lead.saturating_sub(1);
            // Two at a step until there are enough.
            for _ in 0..(LEAD - ahead.lead).min(2) {
                // SAFETY: a leaf of `list`, which we keep alive.
                let leaf = unsafe { ahead.leaf.as_ref() };
                ahead.fetch(leaf);
            }
        }
    }

    /// Moves to the first node of the last row before `place`, which is before a row or at the end.
    pub(super) fn seek_row_before(&mut self, place: &impl Place) {
        if !self.step_back(place) {
            self.rows.clear();
            self.search_back(place);
        }
    }

    /// Steps back along the recorded rows. Returns whether they had the row.
    fn step_back(&mut self, place: &impl Place) -> bool {
        let reaches = self
            .rows
            .last()
            .is_some_and(|row| !place.is_behind(self.own(row.first)));
        if !reaches {
            return false;
        }
        while let Some(above) = self.rows.pop() {
            // The first one may be incomplete, and nothing is known of what is before it.
            let [.., before, row] = self.rows[..] else {
                return false;
            };
            if place.is_behind(self.own(row.first)) {
                let leads_to = |row: RowSpan, next: RowSpan| {
                    self.own(row.last).next().map(NodeRef::pointer) == Some(next.first)
                };
                let is_true = leads_to(before, row) && leads_to(row, above);
                if is_true {
                    self.node = Some(row.first);
                    self.ahead = None;
                }
                return is_true;
            }
        }
        false
    }

    /// Searches, and records the rows of a stretch that ends at the place.
    fn search_back(&mut self, place: &impl Place) {
        let Some((start, ahead)) = self.list.stretch_before(place) else {
            self.node = None;
            return;
        };
        (self.node, self.ahead) = (Some(start.pointer()), Some(ahead));
        while let Some(node) = self.node()
            && place.is_behind(node)
        {
            let (row, node) = (node.key().row(), node.pointer());
            let goes_on = self
                .rows
                .last()
                .is_some_and(|last| self.own(last.first).key().row() == row);
            match self.rows.last_mut() {
                Some(last) if goes_on => last.last = node,
                _ => self.rows.push(RowSpan {
                    first: node,
                    last: node,
                }),
            }
            self.step();
        }
        self.ahead = None;
        self.node = match self.rows[..] {
            [] => None,
            [row] => {
                // The whole stretch is of this row, which may start before it.
                let place = RowPlace::new(self.own(row.first).key().row());
                self.list.around(&place).1.map(NodeRef::pointer)
            }
            [.., row] => Some(row.first),
        };
    }
}

#[cfg(test)]
impl Walker {
    /// How many cells it is ahead, and the last one that it has fetched.
    pub(super) fn fetched(&self) -> Option<(usize, NodeRef<'_>)> {
        let ahead = self.ahead.as_ref().filter(|ahead| ahead.lead > 0)?;
        // SAFETY: as in `step`.
        let leaf = unsafe { ahead.leaf.as_ref() };
        Some((ahead.lead, leaf.write().node(ahead.at - 1)))
    }
}

impl Ahead {
    /// Fetches one cell more, from this leaf or the next.
    #[inline]
    fn fetch(&mut self, leaf: &Leaf) {
        let mut leaf = leaf;
        let len = leaf.len();
        if self.at >= len {
            let Some(next) = follow(&leaf.next[0]) else {
                return;
            };
            self.leaf = NonNull::from(next);
            self.at -= len;
            leaf = next;
            Leaf::prefetch_walk(next.next[0].load(atomic::Ordering::Relaxed));
        }
        leaf.prefetch_cell(self.at);
        self.at += 1;
        self.lead += 1;
    }
}

/// What a thread keeps for its inserts.
struct PerThread {
    random: StdCell<u64>,
    /// Which finger it uses.
    finger: usize,
}

#[cfg(not(loom))]
thread_local! {
    static THREAD: PerThread = PerThread::new();
}
#[cfg(loom)]
loom::thread_local! {
    static THREAD: PerThread = PerThread::new();
}

impl PerThread {
    /// Threads are numbered in order of their first insert, so that a single-threaded run is the same every
    /// time.
    fn new() -> Self {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        // A model must take the same way each time.
        let number = if cfg!(loom) {
            0
        } else {
            THREADS.fetch_add(1, atomic::Ordering::Relaxed)
        };
        Self {
            random: StdCell::new((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            finger: number as usize % FINGERS,
        }
    }

    /// 1 with probability 3/4, each next height a quarter as likely. Marsaglia's xorshift64*.
    fn random_height(&self) -> usize {
        let mut random = self.random.get();
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        self.random.set(random);
        let zeros = random.wrapping_mul(0x2545_f491_4f6c_dd1d).leading_zeros();
        (1 + zeros as usize / 2).min(HEIGHT_MAX)
    }
}
