//! The index of a memstore: all its cells in order, for concurrent inserts and wait-free reads.
//!
//! ```text
//! level 1    leaf ----------------> leaf ----------> ...        skiplist of leaves (skiplist.rs)
//! level 0    leaf ------> leaf ---> leaf ------> leaf
//!            / | \        / | \     / | \        / | \          up to 128 cell pointers each (leaf.rs)
//! cells     o->o->o->...->o->o->...->o->o->...->o->o->...       linked list in the arena (list.rs)
//! ```
//!
//! Callers: [`Memstore`](super::Memstore) inserts through [`SkipList`], cursors read through
//! [`Iter`]. Nothing is ever changed or removed; all memory is freed when the last `Arc<SkipList>`
//! is dropped.
//!
//! # Search
//!
//! 1. A [`Bound`] is the boundary between cells that a search looks for.
//! 2. [`SkipList::find_leaf`] descends the levels to the last leaf that begins before the bound. An
//!    insertion hint (the leaf of the previous cell of the batch, or of the iterator) replaces the
//!    descent if the bound is in that leaf or the next one.
//! 3. [`Leaf::find`](leaf::Leaf::find) compares four-byte abbreviated keys
//!    ([`Abbreviation`](abbreviation::Abbreviation)), and cells where those are equal. Each link of
//!    a list is a cache miss; a leaf is one or two.
//! 4. Readers check the entry found against the bound and follow the list from there.
//!
//! # Insert
//!
//! 1. Copy the cell into a node in the arena, which no other thread can reach yet.
//! 2. Find the leaf, lock it, and move to its successors while they begin before the cell.
//! 3. Link the node behind the entry before it, then store it as an entry of the leaf. Cells of a
//!    batch that follow each other in one leaf are put in together ([`run`]).
//! 4. If the leaf is full, a new leaf takes its upper half first. It is linked on level 0 under the
//!    lock, then on a random number of levels above by compare-and-swap.
//!
//! # Invariants
//!
//! `unsafe` code rests on the first three, the results of searches on the others.
//! - A link, an entry or a hint is null or points to a complete node or leaf in this list's arena.
//! - The bytes of a linked node never change, except its link. Nor does the first cell of a leaf.
//! - Nodes and leaves live until the list is dropped. [`NodeRef`] and `&Leaf` borrow the list,
//!   [`Iter`] owns a share of it.
//! - A leaf covers the cells from its first one up to the first one of its successor on level 0.
//!   Its lock is held to change its entries, its link on level 0, and the links of the nodes that
//!   it covers. (The leaf without a first cell covers the list's head too.)
//! - While a leaf's lock is free, its entries are exactly the cells that it covers, in order.
//! - Leaves that are linked on a level are in order there.
//!
//! # Memory ordering
//!
//! | store | load | what the pair publishes |
//! |---|---|---|
//! | link of a node or the list's head: Release, under the leaf's lock | Acquire | the bytes of the node, and all cells linked before it |
//! | entry of a leaf: Release | Acquire | the bytes of the node |
//! | `count` of a leaf: Release | Acquire | that entries below it are not null |
//! | link between leaves: Release | Acquire | the whole leaf |
//! | abbreviated keys, kind of abbreviation: Relaxed | Relaxed | nothing |
//!
//! Readers take no lock, so they can see a leaf during a change: an entry twice, a node beside the
//! abbreviated key of another, half of the entries moved to the next leaf. The entry found is a
//! hint: any node that was ever an entry and is before the bound is a correct start in the list,
//! and the list alone decides the result. Under the lock the same search is exact.
//!
//! Checked by loom (`memstore/model.rs`), Miri and ThreadSanitizer (`tests/concurrency.sh`),
//! measured by `cargo bench -p basalt-engine --bench memstore`. Reasons and rejected designs:
//! [decision 5](../../../../../docs/decisions/0005-arena-skiplist.md).

mod abbreviation;
mod bound;
mod iter;
mod leaf;
mod list;
mod run;
mod skiplist;

pub(super) use self::bound::Bound;
pub(super) use self::iter::Iter;
#[cfg(test)]
pub(super) use self::iter::LEAD;
#[cfg(test)]
pub(super) use self::leaf::LEAF_CELLS;
pub(super) use self::list::NodeRef;
pub(super) use self::skiplist::SkipList;
