//! The cells of a memstore: a linked list in order, lock-free to insert into, wait-free to read, without
//! removal.
//!
//! A node is one piece of arena memory:
//!
//! ```text
//! +--------------+-----+---------+-----------+----------+-----+-------+------+
//! | next pointer | seq | key len | value len | tags len | key | value | tags |
//! |      8       | u64 |   u32   |    u32    |   u16    |     |       |      |
//! +--------------+-----+---------+-----------+----------+-----+-------+------+
//! ```
//!
//! Order: [`compare_keys`], then sequence id descending.
//!
//! Inserting: fill a node nobody else can see; find its neighbours, from any node that is before it; point to
//! the one after, and swing the one before with compare-and-swap (again from where we stand if another thread
//! was first). The swap is a Release and every reader's load of a link an Acquire, so whoever finds a node
//! finds it complete.
//!
//! Where to begin is for others to say ([`super::skiplist`]). A start that is farther away costs time and
//! nothing else.
//!
//! Invariants, on which the `unsafe` in here rests:
//! - A link is null or points to a complete node of this list's arena.
//! - A node's bytes never change once it is linked, except its link.
//! - Nodes live until the list is dropped. [`NodeRef`] borrows the list.
#![allow(unsafe_code)]

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use super::abbreviation::Abbreviation;
use super::arena::{Arena, Room};
use super::memory::ALIGN;
use super::pool::ChunkPool;
use crate::cell::{Cell, Key, compare_keys, leading16};
use crate::id::SeqId;
use crate::sync::atomic::{self, AtomicPtr};

/// The fixed part of a node. Its bytes follow at [`BYTES_AT`].
#[repr(C)]
pub(super) struct Node {
    next: Link,
    seq: u64,
    key_len: u32,
    value_len: u32,
    tags_len: u16,
}

/// A key has more bytes than the fixed part has padding behind this.
const BYTES_AT: usize = offset_of!(Node, tags_len) + size_of::<u16>();

type Link = AtomicPtr<Node>;

/// So much of a cell is fetched ahead, in lines of the processor's cache. Where cells are longer, the
/// processor sees where that leads.
const FETCHED_LINES: usize = 3;

const _: () = assert!(align_of::<Node>() <= ALIGN);
const _: () = assert!(size_of::<Node>() - BYTES_AT < Key::BYTES_MIN);

/// Tells the processor that we will soon read there; which may be nowhere.
#[inline]
pub(super) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint; it reads nothing, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// The first sixteen bytes of a row, zero-padded. If two rows' prefixes differ, the rows compare like them;
/// rows that differ only in trailing zeros or beyond sixteen bytes have equal ones.
#[inline]
pub(super) fn row_prefix(row: &[u8]) -> u128 {
    leading16(row)
}

/// A place between cells: some are before it, and all that follow those are not.
pub(super) trait Place: Copy {
    /// Whether that cell is before this place.
    fn is_behind(&self, node: NodeRef<'_>) -> bool;

    /// [`row_prefix`] of this place's row.
    fn row_prefix(&self) -> u128;

    /// Not greater than that of any cell behind the place, not smaller than that of any cell before it, as
    /// long as place and cells are between the two that the abbreviation was made for.
    fn abbreviated(&self, how: Abbreviation) -> u32;
}

/// Where a cell is, or would be.
#[derive(Clone, Copy)]
pub(super) struct CellPlace<'a> {
    key: Key<'a>,
    row_prefix: u128,
    seq: SeqId,
}

impl<'a> CellPlace<'a> {
    /// In front of the first cell that is at or after `key`, whatever its sequence id.
    pub(super) fn key(key: Key<'a>) -> Self {
        Self::cell(key, SeqId::MAX)
    }

    pub(super) fn cell(key: Key<'a>, seq: SeqId) -> Self {
        Self {
            key,
            row_prefix: row_prefix(key.row()),
            seq,
        }
    }
}

impl Place for CellPlace<'_> {
    #[inline]
    fn is_behind(&self, node: NodeRef<'_>) -> bool {
        match compare_keys(node.key(), self.key) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => node.seq() > self.seq,
        }
    }

    #[inline]
    fn row_prefix(&self) -> u128 {
        self.row_prefix
    }

    #[inline]
    fn abbreviated(&self, how: Abbreviation) -> u32 {
        how.of(self.key, self.seq)
    }
}

/// In front of a row.
#[derive(Clone, Copy)]
pub(super) struct RowPlace<'a> {
    row: &'a [u8],
    row_prefix: u128,
}

impl<'a> RowPlace<'a> {
    pub(super) fn new(row: &'a [u8]) -> Self {
        Self {
            row,
            row_prefix: row_prefix(row),
        }
    }
}

impl Place for RowPlace<'_> {
    #[inline]
    fn is_behind(&self, node: NodeRef<'_>) -> bool {
        node.key().row() < self.row
    }

    #[inline]
    fn row_prefix(&self) -> u128 {
        self.row_prefix
    }

    #[inline]
    fn abbreviated(&self, how: Abbreviation) -> u32 {
        how.of_row(self.row)
    }
}

/// Behind all cells.
#[derive(Clone, Copy)]
pub(super) struct End;

impl Place for End {
    fn is_behind(&self, _: NodeRef<'_>) -> bool {
        true
    }

    fn row_prefix(&self) -> u128 {
        u128::MAX
    }

    fn abbreviated(&self, _: Abbreviation) -> u32 {
        u32::MAX
    }
}

/// A node of a list that is borrowed for `'a`.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'a> {
    /// Points to a complete node that is alive for `'a`, and may be used to read all of the node, not only
    /// its fixed part.
    node: NonNull<Node>,
    list: PhantomData<&'a CellList>,
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// `node` is complete, belongs to a list that is borrowed for `'a`, and comes from [`Self::pointer`] or
    /// that list's arena or links.
    #[inline]
    pub(super) unsafe fn new(node: NonNull<Node>) -> Self {
        Self {
            node,
            list: PhantomData,
        }
    }

    /// To be kept where no lifetime can say how long it is alive.
    #[inline]
    pub(super) fn pointer(self) -> NonNull<Node> {
        self.node
    }

    #[inline]
    fn fixed(self) -> &'a Node {
        // SAFETY: complete and alive for 'a; nothing of the fixed part changes but the link, which is atomic.
        unsafe { self.node.as_ref() }
    }

    /// The `len` bytes that start `skip` bytes after the fixed part.
    ///
    /// # Safety
    /// They lie within the node.
    #[inline]
    unsafe fn bytes(self, skip: usize, len: usize) -> &'a [u8] {
        // SAFETY: key, value and tags follow the fixed part, are initialised, and never change.
        unsafe {
            let start = self.node.cast::<u8>().add(BYTES_AT + skip);
            slice::from_raw_parts(start.as_ptr(), len)
        }
    }

    #[inline]
    pub(super) fn key(self) -> Key<'a> {
        // SAFETY: the key comes first.
        Key::trusted(unsafe { self.bytes(0, self.fixed().key_len as usize) })
    }

    #[inline]
    pub(super) fn seq(self) -> SeqId {
        SeqId(self.fixed().seq)
    }

    /// The cell, not copied.
    #[inline]
    pub(super) fn cell(self) -> Cell<'a> {
        let fixed = self.fixed();
        let (key, value, tags) = (
            fixed.key_len as usize,
            fixed.value_len as usize,
            usize::from(fixed.tags_len),
        );
        // SAFETY: the value follows the key, the tags follow the value.
        let (value, tags) = unsafe { (self.bytes(key, value), self.bytes(key + value, tags)) };
        Cell {
            key: self.key(),
            value,
            tags,
            seq: self.seq(),
        }
    }

    /// Where it is.
    #[inline]
    pub(super) fn place(self) -> CellPlace<'a> {
        CellPlace::cell(self.key(), self.seq())
    }

    /// Tells the processor that we will soon read a cell there; which may be nowhere.
    #[inline]
    pub(super) fn prefetch(node: *const Node) {
        for line in 0..FETCHED_LINES {
            prefetch(node.cast::<u8>().wrapping_add(64 * line));
        }
    }

    /// The next node in order.
    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        follow(&self.fixed().next)
    }
}

/// Where a link points.
#[inline]
fn follow(link: &Link) -> Option<NodeRef<'_>> {
    // SAFETY: links are borrowed from their list, and what one points to is a node of that list; the Acquire
    // makes it complete for us.
    NonNull::new(link.load(atomic::Ordering::Acquire)).map(|node| unsafe { NodeRef::new(node) })
}

/// Bytes of memory that a cell's node takes.
fn node_bytes(cell: Cell<'_>) -> usize {
    (BYTES_AT + cell.key.bytes().len() + cell.value.len() + cell.tags.len()).next_multiple_of(ALIGN)
}

/// Makes nodes of a list.
pub(super) struct Builder<'a> {
    /// Of the list's arena.
    room: Room<'a>,
    list: PhantomData<&'a CellList>,
}

impl<'a> Builder<'a> {
    /// Copies a cell into a node that nobody finds yet.
    pub(super) fn build(&mut self, cell: Cell<'_>) -> NodeRef<'a> {
        const LIMITED: &str = "cell sizes are checked where requests enter the engine";
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect(LIMITED);
        let fixed = Node {
            next: AtomicPtr::new(ptr::null_mut()),
            seq: cell.seq.0,
            key_len: len(cell.key.bytes()),
            value_len: len(cell.value),
            tags_len: u16::try_from(cell.tags.len()).expect(LIMITED),
        };
        let parts = [cell.key.bytes(), cell.value, cell.tags];
        let memory = self.room.allocate(node_bytes(cell));
        let node = memory.cast::<Node>();
        // SAFETY: the memory is ours alone, aligned for Node, and as large as everything written here: the
        // fixed part's padding lies where the key goes, which is longer and written after it. Cells that are
        // passed in cannot lie in memory that was just handed out. It is memory of the arena of a list that
        // is borrowed for 'a.
        unsafe {
            node.write(fixed);
            let mut end = memory.add(BYTES_AT);
            for part in parts {
                end.copy_from_nonoverlapping(NonNull::from(part).cast::<u8>(), part.len());
                end = end.add(part.len());
            }
            NodeRef::new(node)
        }
    }
}

/// The list. See the module comment.
pub(super) struct CellList {
    head: Link,
    /// Owns the nodes.
    arena: Arena,
}

impl CellList {
    /// An empty list, with memory from that pool.
    pub(super) fn new(pool: Arc<ChunkPool>) -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            arena: Arena::new(pool),
        }
    }

    /// Where its memory comes from.
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Copies a cell into a node that nobody finds yet.
    pub(super) fn build(&self, cell: Cell<'_>) -> NodeRef<'_> {
        self.builder(&[cell]).build(cell)
    }

    /// For nodes of these cells, in any order.
    pub(super) fn builder(&self, cells: &[Cell<'_>]) -> Builder<'_> {
        let bytes = cells.iter().map(|cell| node_bytes(*cell)).sum();
        Builder {
            room: Room::new(&self.arena, bytes),
            list: PhantomData,
        }
    }

    /// Puts a new node of this list in, at its place.
    /// REQUIRES: `start` (`None`: the head) is before that place, and the node is not linked yet.
    pub(super) fn link<'a>(&'a self, node: NodeRef<'a>, start: Option<NodeRef<'a>>, place: &CellPlace<'_>) {
        let mut start = start;
        loop {
            let (before, after) = self.around(start, place);
            let after = after.map_or(ptr::null_mut(), |node| node.node.as_ptr());
            // Relaxed: published by the swap.
            node.fixed().next.store(after, atomic::Ordering::Relaxed);
            let link = self.link_of(before);
            let swapped = link.compare_exchange(
                after,
                node.node.as_ptr(),
                atomic::Ordering::Release,
                atomic::Ordering::Relaxed,
            );
            if swapped.is_ok() {
                return;
            }
            start = before;
        }
    }

    /// The last node before a place and the first one after it.
    /// REQUIRES: `start` (`None`: the head) is before the place.
    #[inline]
    pub(super) fn around<'a>(
        &'a self,
        start: Option<NodeRef<'a>>,
        place: &impl Place,
    ) -> (Option<NodeRef<'a>>, Option<NodeRef<'a>>) {
        let mut before = start;
        loop {
            match follow(self.link_of(before)) {
                Some(node) if place.is_behind(node) => before = Some(node),
                after => return (before, after),
            }
        }
    }

    #[inline]
    fn link_of<'a>(&'a self, node: Option<NodeRef<'a>>) -> &'a Link {
        node.map_or(&self.head, |node| &node.fixed().next)
    }
}

#[cfg(test)]
impl CellList {
    /// All nodes in order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        std::iter::successors(follow(&self.head), |node| node.next())
    }
}
