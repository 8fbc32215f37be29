//! The block index: a tree over the data blocks, built while the file is written.
//!
//! Two layouts of the same entries. A *root* (data, meta and bloom index) is read once and has no offsets of
//! entries:
//!
//! ```text
//! { block offset i64, block size i32, key length vint, key }*  [ middle leaf offset i64, its size i32, entry in it i32 ]
//! ```
//!
//! The last 16 bytes exist only if the index has more than one level: they locate the key in the
//! middle of the file. A *leaf* or *intermediate* block can be searched as it lies:
//!
//! ```text
//! count n i32 | n + 1 offsets of entries i32, relative to the first, the last is the total | { offset i64, size i32, key }*
//! ```
//!
//! In memory there is only the second layout, [`IndexBlock`]; a root is rewritten when the file is opened. A
//! key is at most the first key of its block and greater than every key of the block before.

use std::cmp::Ordering;

use super::block::Check;
use super::search_index::partition_point;
use crate::cell::{Key, KeyBuf, compare_keys};
use crate::codec::{Cursor, put_vlong, vlong_len};

/// Fewest entries of an index block before its size counts (HBase: `hfile.index.block.min.entries`).
const ENTRIES_MIN: usize = 16;

/// Deepest index; HBase stops adding levels there.
pub(super) const LEVELS_MAX: u32 = 16;

/// Bytes of an entry besides its key.
const ENTRY_FIXED_BYTES: usize = 12;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    /// Where its header starts.
    pub(super) offset: u64,
    /// Bytes on disk, header and checksums included.
    pub(super) bytes: u32,
}

/// Where the middle key of the file is: an entry of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Middle {
    /// The leaf.
    pub(super) leaf: Handle,
    /// Number of the entry in it.
    pub(super) entry: usize,
}

/// Form of index keys, which determines their comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// Flat keys.
    Flat,
    /// Plain bytes: rows in bloom filters, names of meta blocks.
    Bytes,
}

/// A searchable index block: the leaf layout, checked.
#[derive(Debug)]
pub(super) struct IndexBlock {
    bytes: Vec<u8>,
    count: usize,
}

impl IndexBlock {
    /// Checks a leaf or intermediate block.
    pub(super) fn parse(bytes: Vec<u8>, form: KeyForm) -> Check<Self> {
        let mut cursor = Cursor::new(&bytes);
        let count = cursor
            .i32_be()
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| bytes.len() / 4 >= count + 2)
            .ok_or("index block with an impossible number of entries")?;
        let block = Self { bytes, count };
        let entries_bytes = block.bytes.len() - 4 * (count + 2);
        let mut from = 0;
        for entry in 0..count {
            let start = block.start(entry);
            let end = block.start(entry + 1);
            if start != from || end < start + ENTRY_FIXED_BYTES || end > entries_bytes {
                return Err(format!("index entry {entry} of {count} is out of place"));
            }
            if form == KeyForm::Flat && Key::parse(block.key_bytes(entry)).is_none() {
                return Err(format!("index entry {entry} of {count} has no valid key"));
            }
            if !block.offset_is_sane(entry) {
                return Err(format!(
                    "index entry {entry} of {count} has an impossible offset or size"
                ));
            }
            from = end;
        }
        if from != entries_bytes {
            return Err("index block with bytes after its last entry".into());
        }
        Ok(block)
    }

    /// Reads the `count` entries of a root index off the cursor.
    pub(super) fn parse_root(cursor: &mut Cursor<'_>, count: usize, form: KeyForm) -> Check<Self> {
        let mut entries = Entries::default();
        for entry in 0..count {
            let read = (|| {
                let offset = cursor.u64_be()?;
                let bytes = cursor.u32_be()?;
                let len = usize::try_from(cursor.vlong()?).ok()?;
                Some((cursor.bytes(len)?, Handle { offset, bytes }))
            })();
            let (key, handle) = read.ok_or_else(|| format!("root index ends in entry {entry} of {count}"))?;
            entries.push(key, handle);
        }
        Self::parse(entries.to_leaf(), form)
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        self.bytes.len()
    }

    /// Start of an entry, relative to the first; of `count`: the end of the last one.
    /// REQUIRES: `entry <= count`, and the block has been parsed as far as its offsets go.
    fn start(&self, entry: usize) -> usize {
        let at = 4 * (entry + 1);
        u32::from_be_bytes([
            self.bytes[at],
            self.bytes[at + 1],
            self.bytes[at + 2],
            self.bytes[at + 3],
        ]) as usize
    }

    fn entry(&self, entry: usize) -> &[u8] {
        let base = 4 * (self.count + 2);
        &self.bytes[base + self.start(entry)..base + self.start(entry + 1)]
    }

    fn offset_is_sane(&self, entry: usize) -> bool {
        let handle = self.handle(entry);
        i64::try_from(handle.offset).is_ok() && i32::try_from(handle.bytes).is_ok()
    }

    /// The key of an entry.
    pub(super) fn key_bytes(&self, entry: usize) -> &[u8] {
        &self.entry(entry)[ENTRY_FIXED_BYTES..]
    }

    /// The flat key of an entry.
    /// REQUIRES: parsed with [`KeyForm::Flat`].
    pub(super) fn key(&self, entry: usize) -> Key<'_> {
        Key::trusted(self.key_bytes(entry))
    }

    /// The block that an entry leads to.
    pub(super) fn handle(&self, entry: usize) -> Handle {
        let bytes = self.entry(entry);
        Handle {
            offset: u64::from_be_bytes(
                bytes[..8]
                    .try_into()
                    .expect("an entry has twelve bytes before its key"),
            ),
            bytes: u32::from_be_bytes(
                bytes[8..12]
                    .try_into()
                    .expect("an entry has twelve bytes before its key"),
            ),
        }
    }

    /// Number of entries for which `is_before` holds; they come first.
    fn partition(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        partition_point(self.count, |entry| is_before(self.key_bytes(entry)))
    }

    /// The last entry whose key is at or before `target`.
    /// REQUIRES: parsed with [`KeyForm::Flat`].
    pub(super) fn find(&self, target: Key<'_>) -> Option<usize> {
        self.partition(|key| compare_keys(Key::trusted(key), target) != Ordering::Greater)
            .checked_sub(1)
    }

    /// The last entry whose key, as plain bytes, is at or before `target`.
    pub(super) fn find_bytes(&self, target: &[u8]) -> Option<usize> {
        self.partition(|key| key <= target).checked_sub(1)
    }
}

/// Entries of an index block that is being built.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    keys: Vec<u8>,
    /// Where each key ends in `keys`, and the block it stands for.
    ends: Vec<(usize, Handle)>,
    root_bytes: usize,
}

impl Entries {
    /// Appends an entry.
    pub(super) fn push(&mut self, key: &[u8], handle: Handle) {
        self.keys.extend_from_slice(key);
        self.ends.push((self.keys.len(), handle));
        self.root_bytes += ENTRY_FIXED_BYTES + vlong_len(key.len() as i64) + key.len();
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], Handle)> {
        self.ends.iter().enumerate().map(|(index, (end, handle))| {
            let start = if index == 0 { 0 } else { self.ends[index - 1].0 };
            (&self.keys[start..*end], *handle)
        })
    }

    fn leaf_bytes(&self) -> usize {
        4 * (self.len() + 2) + ENTRY_FIXED_BYTES * self.len() + self.keys.len()
    }

    /// Appends the root layout, without the middle key.
    pub(super) fn write_root(&self, out: &mut Vec<u8>) {
        for (key, handle) in self.iter() {
            out.extend_from_slice(&handle.offset.to_be_bytes());
            out.extend_from_slice(&handle.bytes.to_be_bytes());
            put_vlong(out, key.len() as i64);
            out.extend_from_slice(key);
        }
    }

    /// The leaf layout.
    fn to_leaf(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.leaf_bytes());
        out.extend_from_slice(&(self.len() as u32).to_be_bytes());
        let mut end = 0;
        out.extend_from_slice(&0_u32.to_be_bytes());
        for (key, _) in self.iter() {
            end += ENTRY_FIXED_BYTES + key.len();
            out.extend_from_slice(&(end as u32).to_be_bytes());
        }
        for (key, handle) in self.iter() {
            out.extend_from_slice(&handle.offset.to_be_bytes());
            out.extend_from_slice(&handle.bytes.to_be_bytes());
            out.extend_from_slice(key);
        }
        out
    }

    fn first_key(&self) -> Option<&[u8]> {
        self.iter().next().map(|(key, _)| key)
    }
}

/// Writes an index block; the file's writer knows how.
pub(super) trait WriteBlock {
    /// Writes a leaf (`true`) or intermediate index block.
    fn write_index(&mut self, leaf: bool, payload: &[u8]) -> crate::Result<Handle>;
}

/// Builds the index of data blocks: full leaves are written between the data blocks, the levels above at the
/// end.
#[derive(Debug)]
pub(super) struct IndexWriter {
    /// An index block is written when it has grown to this.
    block_bytes: usize,
    leaf: Entries,
    root: Entries,
    /// Data blocks under the root entries up to and including each.
    data_blocks: Vec<usize>,
    levels: u32,
    /// Bytes of index blocks written so far, before compression.
    plain_bytes: u64,
}

impl IndexWriter {
    /// An empty index.
    pub(super) fn new(block_bytes: usize) -> Self {
        Self {
            block_bytes,
            leaf: Entries::default(),
            root: Entries::default(),
            data_blocks: Vec::new(),
            levels: 1,
            plain_bytes: 0,
        }
    }

    /// Adds a data block, and writes the leaf when it is full.
    pub(super) fn add(&mut self, key: &[u8], handle: Handle, out: &mut impl WriteBlock) -> crate::Result<()> {
        self.leaf.push(key, handle);
        if self.leaf.leaf_bytes() >= self.block_bytes {
            self.write_leaf(out)?;
        }
        Ok(())
    }

    fn write_leaf(&mut self, out: &mut impl WriteBlock) -> crate::Result<()> {
        let payload = self.leaf.to_leaf();
        self.plain_bytes += payload.len() as u64;
        let handle = out.write_index(true, &payload)?;
        let under = self.data_blocks.last().copied().unwrap_or(0) + self.leaf.len();
        if let Some(key) = self.leaf.first_key() {
            self.root.push(key, handle);
            self.data_blocks.push(under);
        }
        self.leaf = Entries::default();
        self.levels = 2;
        Ok(())
    }

    /// Writes the last leaf. To be called after the last data block; later blocks lie behind the
    /// leaf.
    pub(super) fn finish_leaves(&mut self, out: &mut impl WriteBlock) -> crate::Result<()> {
        if self.root.is_empty() {
            std::mem::swap(&mut self.root, &mut self.leaf);
        } else if !self.leaf.is_empty() {
            self.write_leaf(out)?;
        }
        Ok(())
    }

    /// Writes the levels between leaves and root and returns the payload of the root block.
    pub(super) fn finish(&mut self, out: &mut impl WriteBlock) -> crate::Result<Vec<u8>> {
        let middle = self.middle();
        while self.root.root_bytes > self.block_bytes
            && self.root.len() > ENTRIES_MIN
            && self.levels < LEVELS_MAX
        {
            self.write_intermediate_level(out)?;
        }
        let mut payload = Vec::with_capacity(self.root.root_bytes + 16);
        self.root.write_root(&mut payload);
        if let Some(middle) = middle {
            payload.extend_from_slice(&middle.leaf.offset.to_be_bytes());
            payload.extend_from_slice(&middle.leaf.bytes.to_be_bytes());
            payload.extend_from_slice(&(middle.entry as u32).to_be_bytes());
        }
        self.plain_bytes += payload.len() as u64;
        Ok(payload)
    }

    fn write_intermediate_level(&mut self, out: &mut impl WriteBlock) -> crate::Result<()> {
        let below = std::mem::take(&mut self.root);
        let mut block = Entries::default();
        for (index, (key, handle)) in below.iter().enumerate() {
            block.push(key, handle);
            let full = block.len() >= ENTRIES_MIN && block.root_bytes >= self.block_bytes;
            if full || index + 1 == below.len() {
                let payload = block.to_leaf();
                self.plain_bytes += payload.len() as u64;
                let written = out.write_index(false, &payload)?;
                if let Some(key) = block.first_key() {
                    self.root.push(key, written);
                }
                block = Entries::default();
            }
        }
        self.levels += 1;
        Ok(())
    }

    /// The leaf entry in the middle of all, when leaves were written. Called before the levels
    /// above the leaves are written.
    fn middle(&self) -> Option<Middle> {
        let wanted = (self.data_blocks.last()? - 1) / 2;
        let leaf = self.data_blocks.partition_point(|under| *under <= wanted);
        let before = if leaf == 0 { 0 } else { self.data_blocks[leaf - 1] };
        Some(Middle {
            leaf: self.root.ends[leaf].1,
            entry: wanted - before,
        })
    }

    /// Entries of the root.
    pub(super) fn root_len(&self) -> usize {
        self.root.len()
    }

    /// Levels, the root counted.
    pub(super) fn levels(&self) -> u32 {
        self.levels
    }

    /// Bytes of all index blocks before compression.
    pub(super) fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }
}

/// A short key that is greater than `left` and at most `right`: enough for an index to tell two
/// blocks apart.
/// REQUIRES: `left < right`, both of one family.
pub(super) fn separator(left: Key<'_>, right: Key<'_>) -> KeyBuf {
    if let Some(row) = midpoint(left.row(), right.row()) {
        return KeyBuf::first_on_row(&row, right.family());
    }
    if let Some(qualifier) = midpoint(left.qualifier(), right.qualifier()) {
        return KeyBuf::first_on_column(right.row(), right.family(), &qualifier);
    }
    KeyBuf::copy_of(right)
}

/// The shortest bytes that are greater than `left` and at most `right`; `None` when they are equal.
fn midpoint(left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
    if left >= right {
        return None;
    }
    let common = left
        .iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count();
    let mut middle = right[..=common].to_vec();
    // One more than the left byte is enough. If the left side has ended, a zero byte is greater.
    middle[common] = left.get(common).map_or(0, |byte| byte + 1);
    Some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::CellType;
    use proptest::prelude::*;

    fn key(row: &str, qualifier: &str) -> KeyBuf {
        KeyBuf::new(row.as_bytes(), b"f", qualifier.as_bytes(), 5, CellType::Put)
    }

    fn handle(index: usize) -> Handle {
        Handle {
            offset: index as u64 * 100,
            bytes: 100,
        }
    }

    #[test]
    fn separators_are_short() {
        let separate = |left: &KeyBuf, right: &KeyBuf| separator(left.as_key(), right.as_key());
        assert_eq!(
            separate(&key("apple", ""), &key("cherry", "")),
            KeyBuf::first_on_row(b"b", b"f")
        );
        assert_eq!(
            separate(&key("a", ""), &key("ab", "")),
            KeyBuf::first_on_row(b"a\0", b"f")
        );
        assert_eq!(
            separate(&key("a", "q1"), &key("a", "q25")),
            KeyBuf::first_on_column(b"a", b"f", b"q2")
        );
        let newer = KeyBuf::new(b"a", b"f", b"q", 9, CellType::Put);
        assert_eq!(separate(&newer, &key("a", "q")), key("a", "q"));
    }

    proptest! {
        #[test]
        fn separators_separate(left in "[ab\u{7f}]{0,4}", right in "[ab\u{7f}]{0,4}", l in "[ab]{0,3}", r in "[ab]{0,3}") {
            let (left, right) = (key(&left, &l), key(&right, &r));
            prop_assume!(compare_keys(left.as_key(), right.as_key()).is_lt());
            let middle = separator(left.as_key(), right.as_key());
            prop_assert!(compare_keys(left.as_key(), middle.as_key()).is_lt());
            prop_assert!(compare_keys(middle.as_key(), right.as_key()).is_le());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, count in 0_usize..20) {
            for form in [KeyForm::Flat, KeyForm::Bytes] {
                if let Ok(block) = IndexBlock::parse(bytes.clone(), form) {
                    for entry in 0..block.len() {
                        let _ = (block.key_bytes(entry), block.handle(entry));
                    }
                }
                let _ = IndexBlock::parse_root(&mut Cursor::new(&bytes), count, form);
            }
        }
    }

    #[test]
    fn root_and_leaf_layout_hold_the_same_entries() {
        let mut entries = Entries::default();
        for index in 0..50 {
            entries.push(key(&format!("row{index:02}"), "").as_key().bytes(), handle(index));
        }
        let mut root = Vec::new();
        entries.write_root(&mut root);
        assert_eq!(root.len(), entries.root_bytes);
        let from_root = IndexBlock::parse_root(&mut Cursor::new(&root), 50, KeyForm::Flat).unwrap();
        assert_eq!(entries.to_leaf().len(), entries.leaf_bytes());
        assert_eq!(from_root.bytes, entries.to_leaf());
        assert_eq!(from_root.find(key("row17", "").as_key()), Some(17));
        assert_eq!(from_root.find(key("row17", "x").as_key()), Some(17));
        assert_eq!(from_root.find(key("a", "").as_key()), None);
        assert_eq!(from_root.find(key("z", "").as_key()), Some(49));
        assert_eq!(from_root.handle(17), handle(17));
    }
}
