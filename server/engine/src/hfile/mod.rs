//! Store files: HFile v3, HBase's own format.
//!
//! ```text
//! +--------------------------------+  offset 0
//! | data blocks, and between them  |  scanned section: `data_block`, `encoding`; a full leaf of the `index` or a full
//! | leaf index blocks, bloom chunks|  chunk of a `bloom` filter follows the data block that filled it
//! +--------------------------------+
//! | meta blocks, intermediate index|  the levels of the index between the leaves and the root
//! +--------------------------------+  load-on-open section: read and kept when the file is opened
//! | root index of data blocks      |
//! | root index of meta blocks      |
//! | file info                      |  `file_info`
//! | general bloom meta             |  where the chunks are
//! | delete family bloom meta       |
//! +--------------------------------+  4096 bytes before the end
//! | trailer                        |  `trailer`
//! +--------------------------------+
//! ```
//!
//! Each part but the trailer is a `block` with header and checksums. HBase reads our files and we
//! read HBase's (`tests/conformance/hfile-interop` keeps it so). HBase skips our additions: file-info keys
//! `basalt.*` and a checksum in the trailer's padding.
//!
//! Invariants:
//! - A block is accepted only if its checksums are right and it matches its index entry: kind,
//!   size, offset of the data block before it, first key not before the index key. Anything else is
//!   [`crate::Error::Corrupt`] with file and offset.
//! - No bytes from disk make us panic or take memory beyond the size of the file and `PLAIN_BYTES_MAX` a
//!   block.
//! - A cursor of a call holds a block of more than `LARGE_BLOCK_BYTES`, or a window of several
//!   blocks, only after reserving it.
//! - A file never changes after [`Writer::finish`]. A [`Reader`] is shared by all threads; a [`FileCursor`]
//!   and a [`Writer`] belong to one.
//! - All cells of a file are of one family.

mod block;
mod blocks;
mod bloom;
mod cell_layout;
mod column_sample;
mod compress;
mod cursor;
mod data_block;
mod dump;
mod encoding;
mod file_info;
mod index;
mod missing;
mod pinned;
mod plain_rows;
mod read_ahead;
mod reader;
mod row_figures;
mod row_starts;
mod search_index;
mod trailer;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::{BlockCache, Priority};
use crate::cell::{CallMemory, KeyBuf, OnShortage};
use crate::fs::HandleCache;
use crate::id::{SeqId, Uuid};
use crate::metrics::Counters;
use crate::schema::{BloomType, Compression, DataBlockEncoding, FamilyDescriptor};
use row_figures::RowFigures;

pub(crate) use blocks::Block;
pub(crate) use column_sample::ColumnSample;
pub(crate) use cursor::FileCursor;
pub use dump::{dump, index_entries, summary};
pub(crate) use missing::{BloomAnswer, MissingBlock};
pub(crate) use plain_rows::{PlainRows, RunLimits};
pub use reader::Reader;
pub use writer::Writer;

/// How a file is written.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Target size of a data block before compression.
    pub block_bytes: usize,
    /// Target size of an index block before compression (HBase: `hfile.index.block.max.size`).
    pub index_block_bytes: usize,
    /// Size of a full chunk of a bloom filter (HBase: `io.storefile.bloom.block.size`).
    pub bloom_chunk_bytes: usize,
    /// Compression of blocks.
    pub compression: Compression,
    /// Layout of data blocks.
    pub encoding: DataBlockEncoding,
    /// Whether cells may have tags. Without, each is two bytes shorter (as in HBase's files without tags),
    /// and one with tags is refused.
    pub tags: bool,
    /// Bloom filter.
    pub bloom: BloomType,
    /// Bytes of a row in a bloom filter of prefixes; 0 with any other filter.
    pub bloom_prefix_bytes: usize,
    /// Expected cells, for sizing; a guess is fine. Bloom filters grow chunk by chunk and do not need it.
    pub expected_cells: u64,
    /// Identity written into the file info.
    pub uuid: Uuid,
    /// Wall-clock milliseconds written into the file info.
    pub created_ms: u64,
    /// Whether the file holds all cells of its store (HBase: `MAJOR_COMPACTION_KEY`).
    pub major: bool,
    /// Highest sequence id of the edits this file stands for (HBase: `MAX_SEQ_ID_KEY`).
    pub max_seq: SeqId,
}

impl WriterOptions {
    /// The options of a family.
    pub fn of_family(family: &FamilyDescriptor, uuid: Uuid, created_ms: u64, max_seq: SeqId) -> Self {
        // If the checks were switched off the length may be missing: then there is no filter.
        let bloom_prefix_bytes = family.bloom_prefix_bytes().unwrap_or(0);
        let bloom = match family.bloom {
            BloomType::RowPrefix if bloom_prefix_bytes == 0 => BloomType::None,
            bloom => bloom,
        };
        Self {
            // Sanity checks can be switched off for a table, but not the bounds within which a file can be
            // read.
            block_bytes: family.block_bytes.clamp(1 << 10, 16 << 20) as usize,
            index_block_bytes: 128 << 10,
            bloom_chunk_bytes: 128 << 10,
            compression: family.compression,
            encoding: family.encoding,
            tags: true,
            bloom,
            bloom_prefix_bytes,
            expected_cells: 0,
            uuid,
            created_ms,
            major: false,
            max_seq,
        }
    }
}

/// Summary of a written file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// Size of the file.
    pub bytes: u64,
    /// CRC-32C of the whole file.
    pub checksum: u32,
    /// Cells.
    pub cells: u64,
    /// First and last flat key; `None` for a file without cells.
    pub keys: Option<(KeyBuf, KeyBuf)>,
}

/// How a reader gets at its blocks.
#[derive(Clone, Debug)]
pub struct ReaderContext {
    /// Opens files, and bounds how many are open at a time.
    pub handles: Arc<HandleCache>,
    /// The cache, shared by all files.
    pub cache: Arc<BlockCache<Block>>,
    /// Counters for bloom checks.
    pub counters: Arc<Counters>,
    /// Point reads go past the page cache ([`crate::fs::Open::Direct`]). Sequential reads use it,
    /// since the system reads ahead there.
    pub direct_reads: bool,
    /// The memory from which large blocks and read-ahead windows of calls are reserved.
    pub calls: CallMemory,
}

/// How a cursor reads.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// Put data blocks into the cache. Index and bloom blocks always go there.
    pub cache_blocks: bool,
    /// With which priority.
    pub priority: Priority,
    /// Fail with `Error::NotInMemory` instead of reading from disk.
    pub memory_only: bool,
    /// For a call: the behaviour when the memory of a large block cannot be reserved. `None`:
    /// background work, which reserves nothing.
    pub charge: Option<OnShortage>,
    /// Access pattern of the reads.
    pub access: Access,
}

impl ReadOptions {
    /// For background work that reads a whole file once: past the cache.
    pub const WHOLE_FILE: Self = Self {
        cache_blocks: false,
        priority: Priority::Single,
        memory_only: false,
        charge: None,
        access: Access::Sequential,
    };
}

/// Access pattern of a cursor's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Cells here and there.
    Random,
    /// Single-row read: the cursor ends without reading the next block if the index key proves that
    /// the row sought last is complete.
    SingleRow,
    /// Cells one after the other, so that reading ahead pays (scans, compactions).
    Sequential,
}

/// Sizes of the parts of a file, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSizes {
    /// Bytes of all blocks before compression.
    pub plain_bytes: u64,
    /// Bytes of the root index in memory.
    pub root_index_bytes: u64,
    /// Bytes of all index blocks before compression.
    pub index_bytes: u64,
    /// Bytes of the bloom filter for rows or columns.
    pub bloom_bytes: u64,
}

impl std::iter::Sum for FileSizes {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |sum, sizes| Self {
            plain_bytes: sum.plain_bytes + sizes.plain_bytes,
            root_index_bytes: sum.root_index_bytes + sizes.root_index_bytes,
            index_bytes: sum.index_bytes + sizes.index_bytes,
            bloom_bytes: sum.bloom_bytes + sizes.bloom_bytes,
        })
    }
}

/// Properties of a file, from its file info and trailer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Cells.
    pub cells: u64,
    /// Size on disk.
    pub file_bytes: u64,
    /// Bytes of keys and values before encoding and compression. For files that HBase wrote, from its
    /// averages.
    pub data_bytes: u64,
    /// First flat key; `None` without cells.
    pub first_key: Option<KeyBuf>,
    /// Last flat key.
    pub last_key: Option<KeyBuf>,
    /// Smallest and greatest timestamp.
    pub time_range: Option<(i64, i64)>,
    /// Family tombstones of both kinds.
    pub delete_family_cells: u64,
    /// Earliest timestamp of a put (HBase: `EARLIEST_PUT_TS`).
    pub earliest_put: Option<i64>,
    /// Identity; files that HBase wrote have none.
    pub uuid: Option<Uuid>,
    /// Bloom filter.
    pub bloom: BloomType,
    /// Bytes of a row in a bloom filter of prefixes; 0 with any other filter.
    pub bloom_prefix_bytes: usize,
    /// Compression.
    pub compression: Compression,
    /// Layout of data blocks.
    pub encoding: DataBlockEncoding,
    /// Whether a cell has tags, as far as the file info says.
    pub tags: bool,
    /// Highest sequence id.
    pub max_seq: SeqId,
    /// Whether it was written by a compaction of all files.
    pub major: bool,
    /// A sample of its columns; files that HBase or an earlier release wrote have none.
    pub column_sample: Option<ColumnSample>,
    /// Its largest row and its tombstones; files that HBase or an earlier release wrote do not say.
    pub row_figures: Option<RowFigures>,
    /// Raw file info without the sample and these figures, for dumps.
    pub file_info: BTreeMap<Vec<u8>, Vec<u8>>,
}
