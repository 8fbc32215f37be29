//! Bloom filters: may this row (or column) be in the file?
//!
//! A filter is a run of chunks, each a small filter of its own over a range of keys, written between the data
//! blocks. The block that describes them is loaded on open:
//!
//! ```text
//! version i32 = 3 | bytes of chunks i64 | hash functions i32 | hash kind i32 | keys i64 | keys there is room for i64 |
//! chunks i32 | comparator name, vint length (empty: keys are plain bytes) | root index of the chunks, see `index`
//! ```
//!
//! A chunk is a bare bit field: bit `b` is bit `b & 7` of byte `b >> 3`. The keys are rows for ROW
//! and for the filter of family tombstones; the first bytes of rows, or whole rows that are
//! shorter, for ROWPREFIX_FIXED_LENGTH; and for ROWCOL the flat key that is first in the column,
//! with an empty family: `row length, row, 0, qualifier, Long.MAX_VALUE, 255`. The positions of a
//! key's bits are HBase's: MurmurHash 2 with seeds 0 and h1, positions `|(h1 + i * h2) mod bits|`
//! in wrapping 32-bit arithmetic.

use std::collections::VecDeque;

use super::block::Check;
use super::index::{Entries, Handle, IndexBlock, KeyForm};
use crate::cell::{CellType, Key, KeyBuf, compare_keys};
use crate::codec::{Cursor, put_vlong};

const VERSION: i32 = 3;
const HASH_MURMUR: i32 = 1;

/// Largest number of hash functions that a sound filter has; more is damage.
const HASHES_MAX: i32 = 64;

/// A chunk may be halved this often when it turns out nearly empty (HBase: `io.storefile.bloom.max.fold`).
const FOLDS_MAX: u32 = 7;

/// Wanted share of wrong answers (HBase: `io.storefile.bloom.error.rate`).
const ERROR_RATE: f64 = 0.01;

/// How HBase names the order of flat keys.
const FLAT_COMPARATOR: &str = "org.apache.hadoop.hbase.CellComparatorImpl";

/// MurmurHash 2 over signed bytes, as HBase has it. The tail bytes are sign-extended, which the original does
/// not do.
fn murmur(key: &[u8], seed: i32) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = seed as u32 ^ key.len() as u32;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let mut value = u32::from_le_bytes(*word).wrapping_mul(M);
        value ^= value >> 24;
        hash = hash.wrapping_mul(M) ^ value.wrapping_mul(M);
    }
    let signed = |byte: u8| i32::from(byte as i8) as u32;
    if !tail.is_empty() {
        for (index, byte) in tail.iter().enumerate() {
            hash ^= signed(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    (hash ^ (hash >> 15)) as i32
}

/// The bits of a key in a field of `bits` bits. A remainder's absolute value is the remainder of the absolute
/// value; and where `bits` is a power of two, as in chunks of the default size, no division is needed for it.
fn positions(key: &[u8], hashes: u32, bits: u32) -> impl Iterator<Item = usize> {
    let first = murmur(key, 0);
    let second = murmur(key, first);
    let mask = bits.is_power_of_two().then(|| bits - 1);
    (0..hashes as i32).map(move |index| {
        let hash = first.wrapping_add(index.wrapping_mul(second)).unsigned_abs();
        mask.map_or_else(|| hash % bits, |mask| hash & mask) as usize
    })
}

/// Whether all bits of the key are set in a chunk.
pub(super) fn chunk_may_contain(chunk: &[u8], key: &[u8], hashes: u32) -> bool {
    // HBase counts bits in signed numbers of 32 bits.
    let bits = i32::try_from(chunk.len())
        .ok()
        .and_then(|bytes| bytes.checked_mul(8));
    let Some(bits @ 1..) = bits.map(i32::cast_unsigned) else {
        return true;
    };
    positions(key, hashes, bits).all(|bit| chunk[bit >> 3] & (1 << (bit & 7)) != 0)
}

/// The key of a column in a ROWCOL filter.
pub(super) fn column_key(row: &[u8], qualifier: &[u8]) -> KeyBuf {
    KeyBuf::new(row, b"", qualifier, i64::MAX, CellType::Maximum)
}

/// The key of a row in a filter of prefixes.
pub(super) fn prefix(row: &[u8], bytes: usize) -> &[u8] {
    &row[..row.len().min(bytes)]
}

/// A filter of an open file: where its chunks are.
#[derive(Debug)]
pub(super) struct Bloom {
    chunks: IndexBlock,
    form: KeyForm,
    hashes: u32,
    /// Keys that were added.
    pub(super) keys: u64,
    /// Bytes of all chunks.
    pub(super) bytes: u64,
}

impl Bloom {
    /// Reads the description. `None` if the filter uses an unknown hash function: reads are correct
    /// without it.
    pub(super) fn parse(payload: &[u8]) -> Check<Option<Self>> {
        let mut cursor = Cursor::new(payload);
        let cut = "bloom filter description is cut short";
        let version = cursor.i32_be().ok_or(cut)?;
        if version != VERSION {
            return Err(format!("bloom filter of version {version}"));
        }
        let bytes = cursor.u64_be().ok_or(cut)?;
        let hashes = cursor.i32_be().ok_or(cut)?;
        let hash_kind = cursor.i32_be().ok_or(cut)?;
        let keys = cursor.u64_be().ok_or(cut)?;
        cursor.u64_be().ok_or(cut)?;
        let chunks = cursor
            .i32_be()
            .and_then(|chunks| usize::try_from(chunks).ok())
            .ok_or(cut)?;
        let comparator = cursor
            .vlong()
            .and_then(|len| usize::try_from(len).ok())
            .and_then(|len| cursor.bytes(len))
            .ok_or(cut)?;
        if !(1..=HASHES_MAX).contains(&hashes) {
            return Err(format!("bloom filter with {hashes} hash functions"));
        }
        let form = if comparator.is_empty() {
            KeyForm::Bytes
        } else {
            KeyForm::Flat
        };
        let chunks = IndexBlock::parse_root(&mut cursor, chunks, form)?;
        Ok((hash_kind == HASH_MURMUR).then_some(Self {
            chunks,
            form,
            hashes: hashes as u32,
            keys,
            bytes,
        }))
    }

    /// The number of the chunk for a key; `None` if the key is before all keys of the filter.
    /// REQUIRES: the key has the form of the filter's keys.
    pub(super) fn chunk(&self, key: &[u8]) -> Option<usize> {
        match self.form {
            KeyForm::Bytes => self.chunks.find_bytes(key),
            KeyForm::Flat => self.chunks.find(Key::trusted(key)),
        }
    }

    /// Whether the key is in the range of this chunk.
    /// REQUIRES: the key has the form of the filter's keys.
    pub(super) fn is_in_chunk(&self, chunk: usize, key: &[u8]) -> bool {
        let is_from = |chunk: usize| match self.form {
            KeyForm::Bytes => self.chunks.key_bytes(chunk) <= key,
            KeyForm::Flat => compare_keys(self.chunks.key(chunk), Key::trusted(key)).is_le(),
        };
        is_from(chunk) && (chunk + 1 == self.chunks.len() || !is_from(chunk + 1))
    }

    /// Where a chunk is.
    pub(super) fn handle(&self, chunk: usize) -> Handle {
        self.chunks.handle(chunk)
    }

    /// Form of the filter's keys.
    pub(super) fn form(&self) -> KeyForm {
        self.form
    }

    /// Hash functions.
    pub(super) fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Chunks.
    pub(super) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        self.chunks.weight()
    }
}

/// A chunk that is complete and waits for its place between the data blocks.
#[derive(Debug)]
pub(super) struct ReadyChunk {
    first_key: Vec<u8>,
    /// Bits of the filter.
    pub(super) bits: Vec<u8>,
}

/// Builds a filter while the file is written.
#[derive(Debug)]
pub(super) struct BloomWriter {
    form: KeyForm,
    chunk_bytes: usize,
    hashes: u32,
    chunk_keys_max: u64,
    /// The open chunk; empty between chunks.
    bits: Vec<u8>,
    chunk_keys: u64,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    ready: VecDeque<ReadyChunk>,
    index: Entries,
    keys: u64,
    keys_max: u64,
    bytes: u64,
}

impl BloomWriter {
    /// An empty filter with chunks of about `chunk_bytes`.
    pub(super) fn new(form: KeyForm, chunk_bytes: usize) -> Self {
        // A column filter is asked twice, for the column and for family tombstones, so each answer must err
        // less.
        let error_rate = match form {
            KeyForm::Bytes => ERROR_RATE,
            KeyForm::Flat => 1.0 - (1.0 - ERROR_RATE).sqrt(),
        };
        let chunk_bytes = chunk_bytes.clamp(128, 64 << 20).next_multiple_of(1 << FOLDS_MAX);
        let bits = (chunk_bytes * 8) as f64;
        let ln2 = std::f64::consts::LN_2;
        let ideal_keys = (bits * (ln2 * ln2 / -error_rate.ln())).floor();
        let hashes = (ln2 * (bits / ideal_keys).floor()).ceil();
        let keys_max = -bits / hashes * (1.0 - (error_rate.ln() / hashes).exp()).ln();
        Self {
            form,
            chunk_bytes,
            hashes: hashes as u32,
            chunk_keys_max: keys_max as u64,
            bits: Vec::new(),
            chunk_keys: 0,
            first_key: Vec::new(),
            last_key: Vec::new(),
            ready: VecDeque::new(),
            index: Entries::default(),
            keys: 0,
            keys_max: 0,
            bytes: 0,
        }
    }

    /// Adds a key.
    /// REQUIRES: keys come in order and each once.
    pub(super) fn add(&mut self, key: &[u8]) {
        if self.chunk_keys >= self.chunk_keys_max {
            self.close_chunk();
        }
        if self.bits.is_empty() {
            self.bits.resize(self.chunk_bytes, 0);
            self.first_key.clear();
            self.first_key.extend_from_slice(key);
        }
        for bit in positions(key, self.hashes, (self.bits.len() * 8) as u32) {
            self.bits[bit >> 3] |= 1 << (bit & 7);
        }
        self.chunk_keys += 1;
        self.keys += 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    fn close_chunk(&mut self) {
        if self.chunk_keys == 0 {
            return;
        }
        let mut bits = std::mem::take(&mut self.bits);
        let mut room = self.chunk_keys_max;
        // Positions are taken modulo the number of bits, so the two halves of an even field lie on top of
        // each other.
        while bits.len().is_multiple_of(2) && room > self.chunk_keys * 2 {
            let half = bits.len() / 2;
            let (left, right) = bits.split_at_mut(half);
            for (left, right) in left.iter_mut().zip(right) {
                *left |= *right;
            }
            bits.truncate(half);
            room /= 2;
        }
        self.keys_max += room;
        self.bytes += bits.len() as u64;
        self.chunk_keys = 0;
        self.ready.push_back(ReadyChunk {
            first_key: std::mem::take(&mut self.first_key),
            bits,
        });
    }

    /// The next chunk to write. With `all`, the open one is closed first.
    pub(super) fn take_ready(&mut self, all: bool) -> Option<ReadyChunk> {
        if all {
            self.close_chunk();
        }
        self.ready.pop_front()
    }

    /// Records where a chunk was written.
    pub(super) fn written(&mut self, chunk: &ReadyChunk, handle: Handle) {
        self.index.push(&chunk.first_key, handle);
    }

    /// Whether no key was added.
    pub(super) fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// The key added last.
    pub(super) fn last_key(&self) -> Option<&[u8]> {
        (!self.is_empty()).then_some(self.last_key.as_slice())
    }

    /// The description block's payload.
    /// REQUIRES: all chunks are written.
    pub(super) fn meta(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&self.hashes.to_be_bytes());
        out.extend_from_slice(&HASH_MURMUR.to_be_bytes());
        out.extend_from_slice(&self.keys.to_be_bytes());
        out.extend_from_slice(&self.keys_max.to_be_bytes());
        out.extend_from_slice(&(self.index.len() as u32).to_be_bytes());
        let comparator = match self.form {
            KeyForm::Bytes => "",
            KeyForm::Flat => FLAT_COMPARATOR,
        };
        put_vlong(&mut out, comparator.len() as i64);
        out.extend_from_slice(comparator.as_bytes());
        self.index.write_root(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(index: u32) -> Vec<u8> {
        format!("row{index:08}").into_bytes()
    }

    /// Every key that was added is found, in filters of one folded chunk and of many full ones, and few
    /// others are.
    #[test]
    fn added_keys_are_found_and_few_others() {
        for count in [1_u32, 100, 5_000] {
            let mut writer = BloomWriter::new(KeyForm::Bytes, 1024);
            for index in 0..count {
                writer.add(&key(index * 2));
            }
            let mut chunks = Vec::new();
            while let Some(chunk) = writer.take_ready(true) {
                let handle = Handle {
                    offset: chunks.len() as u64,
                    bytes: chunk.bits.len() as u32,
                };
                writer.written(&chunk, handle);
                chunks.push(chunk.bits);
            }
            let bloom = Bloom::parse(&writer.meta()).unwrap().unwrap();
            assert_eq!(
                (bloom.keys, bloom.chunk_count()),
                (u64::from(count), chunks.len())
            );
            let ask = |key: &[u8]| {
                bloom.chunk(key).is_some_and(|chunk| {
                    let place = bloom.handle(chunk).offset as usize;
                    chunk_may_contain(&chunks[place], key, bloom.hashes())
                })
            };
            assert!((0..count).all(|index| ask(&key(index * 2))));
            for index in 0..count {
                let key = key(index);
                let answers = |chunk: &usize| bloom.is_in_chunk(*chunk, &key);
                let all: Vec<usize> = (0..chunks.len()).filter(answers).collect();
                assert_eq!(all, Vec::from_iter(bloom.chunk(&key)));
            }
            let wrong = (0..count).filter(|index| ask(&key(index * 2 + 1))).count();
            assert!(wrong <= 2 + count as usize / 25, "{wrong} of {count}");
        }
    }

    /// In fields of any size; HBase takes the remainder first, and then its absolute value.
    #[test]
    fn positions_are_absolute_remainders() {
        for bits in [8_u32, 1 << 13, 1 << 20, 1000, 24, i32::MAX as u32 & !7] {
            for index in 0..200 {
                let key = key(index);
                let (first, second) = (murmur(&key, 0), murmur(&key, murmur(&key, 0)));
                let expected: Vec<usize> = (0..7)
                    .map(|index: i32| first.wrapping_add(index.wrapping_mul(second)))
                    .map(|hash| (hash % bits as i32).unsigned_abs() as usize)
                    .collect();
                assert_eq!(positions(&key, 7, bits).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_filter_with_an_unknown_hash_is_left_aside() {
        let mut writer = BloomWriter::new(KeyForm::Bytes, 1024);
        writer.add(b"a");
        let mut meta = writer.meta();
        assert!(Bloom::parse(&meta).unwrap().is_some());
        meta[19] = 2;
        assert!(Bloom::parse(&meta).unwrap().is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(meta: Vec<u8>, chunk: Vec<u8>, key: Vec<u8>, hashes in 1_u32..64) {
            let _ = Bloom::parse(&meta);
            let _ = chunk_may_contain(&chunk, &key, hashes);
        }
    }
}
