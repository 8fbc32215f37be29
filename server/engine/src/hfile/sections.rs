//! Sections of a block of PREFIX, DIFF or FAST_DIFF: where decoding can begin.
//!
//! A cell of such a block can only be decoded after the one before it. For the first cell of each
//! section the decoder's state is kept: its key, and the position of its value. A search finds the
//! last section that begins before its target, and decodes from there on. The last cell of a block
//! is a section of its own, so that a target behind all cells, and the last cell itself, are found
//! without decoding. RocksDB has restart points for this in the block itself; HBase's format has
//! none, and HBase decodes from the block's start.
//!
//! Sections add about 5 % to the bytes of their cells, whatever the size of cells and keys
//! ([`SHARE`]). They are made by the pass that checks the block when it is read.

use std::sync::OnceLock;

use super::cell_layout::CellLayout;
use super::encoding;
use super::heads::Heads;
use super::place::{Place, Position};
use crate::cell::Key;

/// Minimum ratio of a section's bytes to the bytes kept for it.
const SHARE: usize = 20;

/// The first cell of a section.
#[derive(Clone, Copy, Debug)]
struct Section {
    /// Where its key ends in `keys`; it starts where the one before ends.
    key_end: u32,
    value_at: u32,
    value_bytes: u32,
    /// Where its value part ends: then come tags, sequence id and the next cell.
    after_value: u32,
}

/// Bytes kept for a section besides its key, the key's number included.
pub(super) const SECTION_BYTES: usize = size_of::<Section>() + size_of::<u32>();

/// Sections of a block, in order; at least one.
#[derive(Debug)]
pub(super) struct Sections {
    /// The first keys of the sections, one behind the other.
    keys: Box<[u8]>,
    entries: Box<[Section]>,
    heads: OnceLock<Heads>,
}

/// Makes the sections of a block from its cells in order.
#[derive(Debug, Default)]
pub(super) struct Builder {
    keys: Vec<u8>,
    entries: Vec<Section>,
    /// Bytes of the block up to the last cell, and those of the earlier sections.
    seen: usize,
    began: usize,
    /// The last cell, unless a section begins with it.
    last: Option<(Vec<u8>, Section)>,
}

impl Builder {
    /// Adds a cell, whose value part ends at `after_value`.
    pub(super) fn add(&mut self, place: &Place, after_value: usize) {
        let section = Section {
            key_end: 0,
            value_at: place.position.value_at,
            value_bytes: place.position.value_bytes,
            after_value: after_value as u32,
        };
        let is_due = self.seen - self.began >= SHARE * (SECTION_BYTES + place.key.len());
        if self.entries.is_empty() || is_due {
            self.began = self.seen;
            self.push(&place.key, section);
            self.last = None;
        } else {
            let (key, last) = self.last.get_or_insert_with(|| (Vec::new(), section));
            key.clear();
            key.extend_from_slice(&place.key);
            *last = section;
        }
        self.seen = place.position.next as usize;
    }

    fn push(&mut self, key: &[u8], section: Section) {
        self.keys.extend_from_slice(key);
        self.entries.push(Section {
            key_end: self.keys.len() as u32,
            ..section
        });
    }

    /// REQUIRES: a cell was added.
    pub(super) fn finish(mut self) -> Sections {
        if let Some((key, section)) = self.last.take() {
            self.push(&key, section);
        }
        Sections {
            keys: self.keys.into_boxed_slice(),
            entries: self.entries.into_boxed_slice(),
            heads: OnceLock::new(),
        }
    }
}

impl Sections {
    /// Bytes in memory, the numbers included.
    pub(super) fn weight(&self) -> usize {
        self.keys.len() + self.entries.len() * SECTION_BYTES
    }

    /// Number of sections.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first key of a section.
    #[inline]
    pub(super) fn key(&self, section: usize) -> Key<'_> {
        let from = section
            .checked_sub(1)
            .map_or(0, |before| self.entries[before].key_end);
        Key::trusted(&self.keys[from as usize..self.entries[section].key_end as usize])
    }

    /// Puts `place` on the first cell of a section of `payload`, whose sections these are.
    pub(super) fn begin(&self, section: usize, payload: &[u8], cell: CellLayout, place: &mut Place) {
        let key = self.key(section).bytes();
        place.key.clear();
        place.key.extend_from_slice(key);
        let section = self.entries[section];
        place.position = Position {
            key_bytes: key.len() as u32,
            value_at: section.value_at,
            value_bytes: section.value_bytes,
            ..Position::default()
        };
        encoding::after_value(payload, cell, section.after_value as usize, &mut place.position)
            .expect("what follows the value was read when the block was checked");
    }

    /// Number of sections that begin before `target`.
    pub(super) fn count_before(&self, target: Key<'_>) -> usize {
        let heads = self
            .heads
            .get_or_init(|| Heads::new(self.len(), |section| self.key(section)));
        heads.count_before(target, |section| self.key(section))
    }
}
