//! A concurrent skiplist of cells in an arena: lock-free inserts, wait-free reads, no removal.
//!
//! A node is one piece of arena memory:
//!
//! ```text
//! +-----+---------+-----------+----------+--------+------------+------------------+-----+-------+------+
//! | seq | key len | value len | tags len | height | row prefix | next x height    | key | value | tags |
//! | u64 |   u32   |    u32    |   u32    |  u32   |    u64     | pointers, 8 each |     |       |      |
//! +-----+---------+-----------+----------+--------+------------+------------------+-----+-------+------+
//! ```
//!
//! The row prefix is the first eight bytes of the row as a big-endian number. Most comparisons on a search path end there, and
//! it stands beside the links, so that a step touches one cache line. A search in a large list is a chain of cache misses; we
//! shorten it by fetching the node one level down while we look at the next one on this level.
//!
//! Order: [`compare_keys`], then sequence id descending. Level 0 links all nodes in order, each level above about a quarter of
//! the level below (heights are random).
//!
//! Inserting: fill a node nobody else can see; then, from level 0 upward, find its neighbours, point to the one after, and swing
//! the one before with compare-and-swap (again from where we stand if another thread was first). The swap is a Release and
//! every reader's load of a link an Acquire, so whoever finds a node finds it complete. A node that is not linked on its upper
//! levels yet is already found through level 0.
//!
//! Invariants, on which the `unsafe` in here rests:
//! - A link is null or points to a complete node of this list's arena, and a node linked on a level is higher than that level.
//! - A node's bytes never change once it is linked, except its links.
//! - Nodes live until the list is dropped. [`NodeRef`] borrows the list; [`Walker`] owns a share of it.
#![allow(unsafe_code)]

use std::cell::Cell as StdCell;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crossbeam_utils::CachePadded;

use super::arena::{ALIGN, Arena};
use super::pool::ChunkPool;
use crate::cell::{Cell, Key, compare_keys};
use crate::id::SeqId;
use crate::sync::Mutex;
use crate::sync::atomic::{self, AtomicPtr, AtomicUsize};

/// Enough for 4^12, 16 million cells; beyond that, searches get slowly longer.
const HEIGHT_MAX: usize = if cfg!(loom) { 2 } else { 12 };

/// Threads share this many fingers.
const FINGERS: usize = if cfg!(loom) { 2 } else { 4 };

/// The fixed part of a node. Links and bytes follow it in memory.
#[repr(C)]
struct Node {
    seq: u64,
    key_len: u32,
    value_len: u32,
    tags_len: u32,
    height: u32,
    row_prefix: u64,
}

/// Where in a node the part begins that every step of a search reads.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const PREFIX_OFFSET: usize = std::mem::offset_of!(Node, row_prefix);

type Link = AtomicPtr<Node>;

const _: () = assert!(align_of::<Node>() <= ALIGN && align_of::<Link>() <= ALIGN);
const _: () = assert!(size_of::<Node>().is_multiple_of(align_of::<Link>()));

/// The first eight bytes of a row, zero-padded. If two rows' prefixes differ, the rows compare like them; rows that differ only
/// in trailing zeros or beyond eight bytes have equal ones.
#[inline]
fn row_prefix(row: &[u8]) -> u64 {
    if let Some(first) = row.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..row.len()].copy_from_slice(row);
    u64::from_be_bytes(padded)
}

/// Tells the processor that we will soon read where `node` points, which may be nowhere.
#[inline]
fn prefetch(node: *const Node) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint; it reads nothing, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(node.wrapping_byte_add(PREFIX_OFFSET).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = node;
}

/// What a search looks for, with its prefix computed once.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    key: Key<'a>,
    row_prefix: u64,
    seq: SeqId,
}

impl<'a> Target<'a> {
    /// The place of the first cell that is at or after `key`, whatever its sequence id.
    pub(super) fn key(key: Key<'a>) -> Self {
        Self::cell(key, SeqId::MAX)
    }

    fn cell(key: Key<'a>, seq: SeqId) -> Self {
        Self {
            key,
            row_prefix: row_prefix(key.row()),
            seq,
        }
    }
}

/// A row to look for, with its prefix computed once.
#[derive(Clone, Copy)]
pub(super) struct RowTarget<'a> {
    row: &'a [u8],
    row_prefix: u64,
}

impl<'a> RowTarget<'a> {
    pub(super) fn new(row: &'a [u8]) -> Self {
        Self {
            row,
            row_prefix: row_prefix(row),
        }
    }
}

/// A node of a list that is borrowed for `'a`.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'a> {
    /// Points to a complete node that is alive for `'a`, and may be used to read all of the node, not only its fixed part.
    node: NonNull<Node>,
    list: PhantomData<&'a SkipList>,
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// `node` is complete, belongs to a list that is borrowed for `'a`, and comes from that list's arena or links.
    #[inline]
    unsafe fn new(node: NonNull<Node>) -> Self {
        Self {
            node,
            list: PhantomData,
        }
    }

    #[inline]
    fn fixed(self) -> &'a Node {
        // SAFETY: complete and alive for 'a; the fixed part never changes.
        unsafe { self.node.as_ref() }
    }

    /// # Safety
    /// `level` is below the node's height: it was found through a link of that level, or made so high.
    #[inline]
    unsafe fn link(self, level: usize) -> &'a Link {
        debug_assert!(level < self.fixed().height as usize);
        // SAFETY: `height` links follow the fixed part, aligned (checked above) and initialised.
        unsafe { self.node.add(1).cast::<Link>().add(level).as_ref() }
    }

    /// The `len` bytes that start `skip` bytes after the links.
    ///
    /// # Safety
    /// They lie within the node.
    #[inline]
    unsafe fn bytes(self, skip: usize, len: usize) -> &'a [u8] {
        let height = self.fixed().height as usize;
        // SAFETY: key, value and tags follow the links, are initialised, and never change.
        unsafe {
            let start = self.node.add(1).cast::<Link>().add(height).cast::<u8>().add(skip);
            slice::from_raw_parts(start.as_ptr(), len)
        }
    }

    #[inline]
    fn key(self) -> Key<'a> {
        // SAFETY: the key comes first.
        Key::trusted(unsafe { self.bytes(0, self.fixed().key_len as usize) })
    }

    /// The cell, not copied.
    #[inline]
    pub(super) fn cell(self) -> Cell<'a> {
        let fixed = self.fixed();
        let (key, value, tags) = (
            fixed.key_len as usize,
            fixed.value_len as usize,
            fixed.tags_len as usize,
        );
        // SAFETY: the value follows the key, the tags follow the value.
        let (value, tags) = unsafe { (self.bytes(key, value), self.bytes(key + value, tags)) };
        Cell {
            key: self.key(),
            value,
            tags,
            seq: SeqId(fixed.seq),
        }
    }

    /// The next node in order.
    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        // SAFETY: every node has level 0. What the link points to is a node of this list; the Acquire makes it complete for us.
        unsafe {
            let next = self.link(0).load(atomic::Ordering::Acquire);
            NonNull::new(next).map(|node| Self::new(node))
        }
    }

    /// Whether this cell sorts before the target.
    #[inline]
    pub(super) fn is_before(self, target: &Target<'_>) -> bool {
        let fixed = self.fixed();
        if fixed.row_prefix != target.row_prefix {
            return fixed.row_prefix < target.row_prefix;
        }
        match compare_keys(self.key(), target.key) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => fixed.seq > target.seq.0,
        }
    }

    /// Whether this cell's row sorts before the target row.
    #[inline]
    pub(super) fn is_before_row(self, target: &RowTarget<'_>) -> bool {
        let prefix = self.fixed().row_prefix;
        if prefix != target.row_prefix {
            return prefix < target.row_prefix;
        }
        self.key().row() < target.row
    }
}

/// The last nodes before a place, one for each level; `None` is the head of the list.
///
/// Kept from one insert to the next (a finger): a cell that goes right after the one before, as in a sorted load or in a row of
/// many columns, is placed with two comparisons instead of a search.
///
/// Invariant: each stands at or before the one a level below. So if the lowest is before a place, all are.
#[derive(Default)]
struct Splice {
    before: [Option<NonNull<Node>>; HEIGHT_MAX],
}

// SAFETY: the pointers are not tied to a thread; they are used only together with the list they belong to.
unsafe impl Send for Splice {}

impl Splice {
    /// # Safety
    /// The splice was filled by searches in `list`, or never.
    #[inline]
    unsafe fn node<'a>(&self, list: &'a SkipList, level: usize) -> Option<NodeRef<'a>> {
        let _ = list;
        // SAFETY: a node of the list; that it was put here under the finger's lock, or by us, makes it complete for us.
        self.before[level].map(|node| unsafe { NodeRef::new(node) })
    }
}

/// The list. See the module comment.
pub(super) struct SkipList {
    head: [Link; HEIGHT_MAX],
    /// Levels in use: the greatest height so far.
    height: AtomicUsize,
    /// Where the last inserts went; threads are spread over them. All pointers are null or nodes of this list.
    fingers: [CachePadded<Mutex<Splice>>; FINGERS],
    /// Owns the nodes.
    arena: Arena,
}

impl SkipList {
    /// An empty list, with memory from that pool.
    pub(super) fn new(pool: Arc<ChunkPool>) -> Self {
        Self {
            head: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            height: AtomicUsize::new(1),
            fingers: Default::default(),
            arena: Arena::new(pool),
        }
    }

    /// Where its memory comes from.
    pub(super) fn pool(&self) -> &Arc<ChunkPool> {
        self.arena.pool()
    }

    /// Bytes of the arena, overhead included.
    pub(super) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    /// Copies a cell in. If an equal cell with an equal sequence id is there already, the new one goes before it.
    pub(super) fn insert(&self, cell: Cell<'_>) {
        let (height, finger) = THREAD.with(|thread| (thread.random_height(), thread.finger));
        self.insert_with(cell, height, finger);
    }

    /// [`Self::insert`] of a node that is linked on `height` levels, found from that finger.
    pub(super) fn insert_with(&self, cell: Cell<'_>, height: usize, finger: usize) {
        let node = self.build(cell, height);
        let target = Target::cell(cell.key, cell.seq);
        // Relaxed: a reader that does not see the new height yet starts lower, and finds the same.
        if height > self.height.load(atomic::Ordering::Relaxed) {
            self.height.fetch_max(height, atomic::Ordering::Relaxed);
        }
        // Another thread with the same finger is not waited for.
        let (mut shared, mut own);
        let splice: &mut Splice = if let Some(guard) = self.fingers[finger].try_lock() {
            shared = guard;
            &mut shared
        } else {
            own = Splice::default();
            &mut own
        };
        if !self.fits(splice, &target) {
            self.find_splice(splice, &target);
        }
        for level in 0..height {
            self.link_on(level, splice, node, &target);
        }
    }

    /// Allocates and fills a node. Its links are null.
    fn build(&self, cell: Cell<'_>, height: usize) -> NodeRef<'_> {
        let len = |bytes: &[u8]| {
            u32::try_from(bytes.len()).expect("cell sizes are checked where requests enter the engine")
        };
        let fixed = Node {
            seq: cell.seq.0,
            row_prefix: row_prefix(cell.key.row()),
            key_len: len(cell.key.bytes()),
            value_len: len(cell.value),
            tags_len: len(cell.tags),
            height: height as u32,
        };
        let parts = [cell.key.bytes(), cell.value, cell.tags];
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let memory = self
            .arena
            .allocate(size_of::<Node>() + height * size_of::<Link>() + bytes);
        let node = memory.cast::<Node>();
        // SAFETY: the memory is ours alone, aligned for Node and Link, and as large as everything written here; cells that are
        // passed in cannot lie in memory that was just handed out.
        unsafe {
            node.write(fixed);
            let links = node.add(1).cast::<Link>();
            for level in 0..height {
                links.add(level).write(AtomicPtr::new(ptr::null_mut()));
            }
            let mut end = links.add(height).cast::<u8>();
            for part in parts {
                end.copy_from_nonoverlapping(NonNull::from(part).cast::<u8>(), part.len());
                end = end.add(part.len());
            }
            NodeRef::new(node)
        }
    }

    /// Whether the target goes right behind the splice on level 0.
    fn fits(&self, splice: &Splice, target: &Target<'_>) -> bool {
        // SAFETY: `insert` uses splices of this list only, and every node has level 0.
        let (before, after) = unsafe {
            let before = splice.node(self, 0);
            (before, self.after(before, 0))
        };
        before.is_none_or(|node| node.is_before(target)) && after.is_none_or(|node| !node.is_before(target))
    }

    /// Searches from the head and fills all levels of the splice.
    fn find_splice(&self, splice: &mut Splice, target: &Target<'_>) {
        let height = self.height.load(atomic::Ordering::Relaxed);
        splice.before[height..].fill(None);
        let (mut before, mut known_after) = (None, None);
        for level in (0..height).rev() {
            // SAFETY: `before` is the head or was found on the level above, so it is on this level, too.
            (before, known_after) =
                unsafe { self.walk(before, known_after, level, |node| node.is_before(target)) };
            splice.before[level] = before.map(|node| node.node);
        }
    }

    /// Links `node` behind the splice on one level, and moves the splice on to it.
    /// REQUIRES: `level` is below the node's height, and the splice is before the target on this level.
    fn link_on(&self, level: usize, splice: &mut Splice, node: NodeRef<'_>, target: &Target<'_>) {
        // SAFETY (here and below): `insert` uses splices of this list only, and what a splice has for a level was found on that
        // level or linked there. `insert` goes no higher than the new node's height.
        let mut start = unsafe { splice.node(self, level) };
        loop {
            // Others may have inserted between the splice and the target: walk on, and again whenever one of them is faster.
            // SAFETY: as above.
            let (before, after) = unsafe { self.walk(start, None, level, |node| node.is_before(target)) };
            let after = after.map_or(ptr::null_mut(), |node| node.node.as_ptr());
            // SAFETY: as above.
            let (own, link) = unsafe { (node.link(level), self.link(before, level)) };
            // Relaxed: published by the swap.
            own.store(after, atomic::Ordering::Relaxed);
            let swapped = link.compare_exchange(
                after,
                node.node.as_ptr(),
                atomic::Ordering::Release,
                atomic::Ordering::Relaxed,
            );
            if swapped.is_ok() {
                break;
            }
            start = before;
        }
        splice.before[level] = Some(node.node);
    }

    /// From `start` (`None`: the head) along a level, as long as nodes are before the place that is looked for. Returns the last
    /// of them and its successor. `known_after` is a node that is known not to be before the place.
    ///
    /// # Safety
    /// `start` is on that level.
    #[inline]
    unsafe fn walk<'a>(
        &'a self,
        start: Option<NodeRef<'a>>,
        known_after: Option<NodeRef<'a>>,
        level: usize,
        is_before: impl Fn(NodeRef<'a>) -> bool,
    ) -> (Option<NodeRef<'a>>, Option<NodeRef<'a>>) {
        let known_after = known_after.map(|node| node.node);
        let mut before = start;
        loop {
            // SAFETY: `start` is on this level, and so is every node found there. Who is on a level is on those below.
            let after = unsafe {
                if level > 0 {
                    prefetch(self.link(before, level - 1).load(atomic::Ordering::Relaxed));
                }
                self.after(before, level)
            };
            match after {
                Some(node) if Some(node.node) != known_after && is_before(node) => before = after,
                _ => return (before, after),
            }
        }
    }

    /// # Safety
    /// `before` is on that level.
    #[inline]
    unsafe fn after<'a>(&'a self, before: Option<NodeRef<'a>>, level: usize) -> Option<NodeRef<'a>> {
        // SAFETY: the caller vouches for the level. What the link points to is a node of this list; the Acquire makes it
        // complete for us.
        unsafe {
            let after = self.link(before, level).load(atomic::Ordering::Acquire);
            NonNull::new(after).map(|node| NodeRef::new(node))
        }
    }

    /// # Safety
    /// `before` is on that level.
    #[inline]
    unsafe fn link<'a>(&'a self, before: Option<NodeRef<'a>>, level: usize) -> &'a Link {
        // SAFETY: the caller vouches for the level.
        before.map_or(&self.head[level], |node| unsafe { node.link(level) })
    }

    /// The last node before a place and the first one after it. `is_before` tells for a node on which side it is.
    /// REQUIRES: no node that is before the place follows one that is not.
    #[inline]
    pub(super) fn around<'a>(
        &'a self,
        is_before: impl Fn(NodeRef<'a>) -> bool,
    ) -> (Option<NodeRef<'a>>, Option<NodeRef<'a>>) {
        let (mut before, mut after) = (None, None);
        for level in (0..self.height.load(atomic::Ordering::Relaxed)).rev() {
            // SAFETY: `before` is the head or was found on the level above, so it is on this level, too.
            (before, after) = unsafe { self.walk(before, after, level, &is_before) };
        }
        (before, after)
    }
}

impl fmt::Debug for SkipList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkipList")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// A position in a list that it keeps alive.
pub(super) struct Walker {
    list: Arc<SkipList>,
    /// A node of `list`.
    node: Option<NonNull<Node>>,
}

// SAFETY: the pointer is not tied to a thread, and what it points to lives as long as `list`, which is Send and Sync.
unsafe impl Send for Walker {}

impl Walker {
    /// Stands nowhere.
    pub(super) fn new(list: Arc<SkipList>) -> Self {
        Self { list, node: None }
    }

    /// The node it stands on.
    #[inline]
    pub(super) fn node(&self) -> Option<NodeRef<'_>> {
        // SAFETY: a node of `list` (see `go`), which we keep alive and which is borrowed for as long as we are.
        self.node.map(|node| unsafe { NodeRef::new(node) })
    }

    /// Moves to where `find` says, which is given the list and the node it stands on. Since `find` has to work for any lifetime,
    /// it can only answer with a node of that list (or of one that is never dropped).
    #[inline]
    pub(super) fn go(
        &mut self,
        find: impl for<'a> FnOnce(&'a SkipList, Option<NodeRef<'a>>) -> Option<NodeRef<'a>>,
    ) {
        self.node = find(&self.list, self.node()).map(|found| found.node);
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
    /// Threads are numbered in order of their first insert, so that a single-threaded run is the same every time.
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
