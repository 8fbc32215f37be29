//! The cells: a linked list in order, in an arena.
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
//! Order: [`compare_keys`](crate::cell::compare_keys), then sequence id descending.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use super::bound::Bound;
use crate::cell::{Cell, Key};
use crate::id::SeqId;
use crate::memstore::arena::{Arena, Room};
use crate::memstore::memory::ALIGN;
use crate::memstore::pool::ChunkPool;
use crate::memstore::prefetch;
use crate::sync::atomic::{AtomicPtr, Ordering};

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

/// Cache lines of a cell that are prefetched. The processor prefetches the rest of longer cells by
/// itself.
const PREFETCHED_LINES: usize = 3;

const _: () = assert!(align_of::<Node>() <= ALIGN);
const _: () = assert!(size_of::<Node>() - BYTES_AT < Key::BYTES_MIN);

/// A node of a list that is borrowed for `'a`.
#[derive(Clone, Copy)]
pub(in crate::memstore) struct NodeRef<'a> {
    /// Points to a complete node that is alive for `'a`, and may be used to read all of the node,
    /// not only its fixed part.
    node: NonNull<Node>,
    list: PhantomData<&'a CellList>,
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// `node` is complete, belongs to a list that is borrowed for `'a`, and comes from
    /// [`Self::pointer`] or that list's arena or links.
    #[inline]
    pub(super) unsafe fn new(node: NonNull<Node>) -> Self {
        let list = PhantomData;
        Self { node, list }
    }

    /// The node without its lifetime.
    #[inline]
    pub(super) fn pointer(self) -> NonNull<Node> {
        self.node
    }

    #[inline]
    fn fixed(self) -> &'a Node {
        // SAFETY: complete and alive for 'a; nothing of the fixed part changes but the link, which
        // is atomic.
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
    pub(in crate::memstore) fn key(self) -> Key<'a> {
        // SAFETY: the key comes first.
        Key::trusted(unsafe { self.bytes(0, self.fixed().key_len as usize) })
    }

    #[inline]
    pub(super) fn seq(self) -> SeqId {
        SeqId(self.fixed().seq)
    }

    /// Whether the cell is before a bound.
    #[inline]
    pub(in crate::memstore) fn is_before(self, bound: &Bound<'_>) -> bool {
        bound.is_after(self.key(), self.seq())
    }

    /// The cell, not copied.
    #[inline]
    pub(in crate::memstore) fn cell(self) -> Cell<'a> {
        let fixed = self.fixed();
        let (key, value) = (fixed.key_len as usize, fixed.value_len as usize);
        // SAFETY: the value follows the key, the tags follow the value.
        let (value, tags) = unsafe {
            let tags = self.bytes(key + value, usize::from(fixed.tags_len));
            (self.bytes(key, value), tags)
        };
        let (key, seq) = (self.key(), self.seq());
        Cell {
            key,
            value,
            tags,
            seq,
        }
    }

    /// The bound before this cell.
    #[inline]
    pub(super) fn bound(self) -> Bound<'a> {
        Bound::cell(self.key(), self.seq())
    }

    /// Prefetches the cell at an address, which may be invalid.
    #[inline]
    pub(super) fn prefetch(node: *const Node) {
        for line in 0..PREFETCHED_LINES {
            prefetch(node.cast::<u8>().wrapping_add(64 * line));
        }
    }

    /// The next node in order.
    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        follow(&self.fixed().next)
    }
}

/// The node that a link points to.
#[inline]
fn follow(link: &Link) -> Option<NodeRef<'_>> {
    // SAFETY: links are borrowed from their list and point to nodes of that list; the Acquire makes
    // the node complete for this thread.
    NonNull::new(link.load(Ordering::Acquire)).map(|node| unsafe { NodeRef::new(node) })
}

/// Bytes of memory that a cell's node takes.
fn node_bytes(cell: Cell<'_>) -> usize {
    (BYTES_AT + cell.key.bytes().len() + cell.value.len() + cell.tags.len()).next_multiple_of(ALIGN)
}

/// Makes nodes of a list.
pub(super) struct Builder<'a> {
    /// Reserved memory in the list's arena.
    room: Room<'a>,
    list: PhantomData<&'a CellList>,
}

impl<'a> Builder<'a> {
    /// Copies a cell into a node that no other thread can reach yet.
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
        let memory = self.room.allocate(node_bytes(cell));
        let node = memory.cast::<Node>();
        // SAFETY: the memory belongs to this call alone, is aligned for Node, and is as large as
        // everything written here: the fixed part's padding lies where the key goes, which is
        // longer and written after it. Cells that are passed in cannot lie in memory that was just
        // allocated. The arena is that of a list that is borrowed for 'a.
        unsafe {
            node.write(fixed);
            let mut end = memory.add(BYTES_AT);
            for part in [cell.key.bytes(), cell.value, cell.tags] {
                end.copy_from_nonoverlapping(NonNull::from(part).cast::<u8>(), part.len());
                end = end.add(part.len());
            }
            NodeRef::new(node)
        }
    }
}

/// The list. Threads that [link](Self::link) at the same place take turns; readers wait for
/// nothing.
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

    /// The owner of the nodes' memory.
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// For nodes of these cells, in any order.
    pub(super) fn builder(&self, cells: &[Cell<'_>]) -> Builder<'_> {
        let bytes = cells.iter().map(|cell| node_bytes(*cell)).sum();
        Builder {
            room: Room::new(&self.arena, bytes),
            list: PhantomData,
        }
    }

    /// Links a new node of this list behind `before` (`None`: the head).
    /// REQUIRES: `before` is the last node before the new one, and its link changes only in this
    /// call.
    pub(super) fn link<'a>(&'a self, node: NodeRef<'a>, before: Option<NodeRef<'a>>) {
        let link = self.link_of(before);
        // Relaxed: earlier writers of this link had the same lock. The Release below publishes the
        // new node, its link, and with it all nodes behind.
        let after = link.load(Ordering::Relaxed);
        node.fixed().next.store(after, Ordering::Relaxed);
        link.store(node.node.as_ptr(), Ordering::Release);
    }

    /// The last node before a bound and the first one after it.
    /// REQUIRES: `start` (`None`: the head) is before the bound.
    #[inline]
    pub(super) fn around<'a>(
        &'a self,
        start: Option<NodeRef<'a>>,
        bound: &Bound<'_>,
    ) -> (Option<NodeRef<'a>>, Option<NodeRef<'a>>) {
        let mut before = start;
        loop {
            match follow(self.link_of(before)) {
                Some(node) if node.is_before(bound) => before = Some(node),
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
