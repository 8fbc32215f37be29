//! An open store file: its parts that stay in memory, and the reading of its blocks.
//!
//! Opening reads the trailer and the load-on-open section in two reads and keeps root index, file info and
//! the places of bloom chunks. Every other block is read when it is needed, in one read of exactly the size
//! its index entry says, verified, and put into the block cache, or kept here (see [`super::pinned`]). Shared
//! by all threads; takes no lock but the cache's.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{self, BlockKind, Header};
use super::blocks::{Block, Content, LARGE_BLOCK_BYTES, Want};
use super::bloom::{self, Bloom};
use super::cell_layout::{CellLayout, DataLayout};
use super::data_block::DataBlock;
use super::file_info::FileInfo;
use super::index::{Handle, IndexBlock, KeyForm, LEVELS_MAX, Middle};
use super::pinned::PinnedBlocks;
use super::read_ahead::{FileBytes, ReadAhead, Toward, WINDOW_BYTES_MAX};
use super::trailer::{TRAILER_BYTES, Trailer};
use super::{Access, FileSizes, Properties, ReadOptions, ReaderContext};
use crate::cache::{BlockCache, BlockKey, Weighted};
use crate::cell::{Account, CallMemory, Key, KeyBuf, compare_keys};
use crate::codec::Cursor;
use crate::error::{Error, Result};
use crate::fs::{Advice, File, Open};
use crate::id::FileId;
use crate::metrics::add_disk_bytes;
use crate::schema::{BloomType, Compression};

/// Longest load-on-open section, which is read when a file is opened: its root index and the places
/// of its bloom filter's chunks. A sparse file can claim any length.
const LOAD_ON_OPEN_BYTES_MAX: u64 = 1 << 30;

/// An open file. Shared; any number of cursors.
#[derive(Debug)]
pub struct Reader {
    id: FileId,
    path: PathBuf,
    file: Arc<dyn File>,
    /// The file opened for direct point reads, if these bypass the page cache.
    direct: Option<Arc<dyn File>>,
    context: ReaderContext,
    pub(super) trailer: Trailer,
    pub(super) layout: DataLayout,
    properties: Properties,
    /// The top of the data index.
    pub(super) root: IndexBlock,
    middle: Option<Middle>,
    bloom: Option<Bloom>,
    delete_bloom: Option<Bloom>,
    /// Blocks that the root leads to, unless these are data blocks.
    pinned_indexes: PinnedBlocks,
    /// Chunks of the general filter.
    pinned_blooms: PinnedBlocks,
}

/// One block of the load-on-open section.
struct Loaded {
    offset: u64,
    header: Header,
    payload: Vec<u8>,
}

impl Reader {
    /// Opens a file: reads and verifies trailer and load-on-open section. From then on the file has
    /// a descriptor only while the handle cache grants it one.
    pub fn open(path: PathBuf, id: FileId, context: ReaderContext) -> Result<Arc<Self>> {
        let open = |how| {
            context
                .handles
                .open(&path, how)
                .map_err(|source| Error::io("opening", &path, source))
        };
        let file = open(Open::Read)?;
        let direct = context.direct_reads.then(|| open(Open::Direct)).transpose()?;
        Self::of(file, direct, path, id, context)
    }

    /// [`Self::open`], of a file that is open already.
    pub(super) fn of(
        file: Arc<dyn File>,
        direct: Option<Arc<dyn File>>,
        path: PathBuf,
        id: FileId,
        context: ReaderContext,
    ) -> Result<Arc<Self>> {
        let io = |source| Error::io("reading", &path, source);
        // Point reads need one block each. Sequential reads have [`ReadAhead`].
        file.advise(0, 0, Advice::Random);
        let file_bytes = file.len().map_err(io)?;
        let trailer_offset = file_bytes.checked_sub(TRAILER_BYTES as u64).ok_or_else(|| {
            Error::corrupt(&path, file_bytes, "the file is shorter than an HFile's trailer")
        })?;
        let mut bytes = [0; TRAILER_BYTES];
        file.read_exact_at(&mut bytes, trailer_offset).map_err(io)?;
        let trailer = Trailer::parse(&bytes)
            .and_then(|trailer| {
                (trailer.load_on_open_offset <= trailer.file_info_offset
                    && trailer.file_info_offset < trailer_offset
                    && (1..=LEVELS_MAX).contains(&trailer.levels))
                .then_some(trailer)
                .ok_or_else(|| "trailer with impossible numbers".to_owned())
            })
            .map_err(|what| Error::corrupt(&path, trailer_offset, what))?;

        let start = trailer.load_on_open_offset;
        if trailer_offset - start > LOAD_ON_OPEN_BYTES_MAX {
            let what = format!(
                "a load-on-open section of {} bytes; the limit is {LOAD_ON_OPEN_BYTES_MAX}",
                trailer_offset - start
            );
            return Err(Error::corrupt(&path, start, what));
        }
        let mut section = vec![0; (trailer_offset - start) as usize];
        file.read_exact_at(&mut section, start).map_err(io)?;
        let parts = Self::load(&section, &trailer)
            .and_then(|blocks| Parts::parse(&blocks, &trailer, file_bytes).map_err(|what| (start, what)))
            .map_err(|(offset, what)| Error::corrupt(&path, offset, what))?;
        let index_blocks = if trailer.levels > 1 { parts.root.len() } else { 0 };
        let chunks = parts.bloom.as_ref().map_or(0, Bloom::chunk_count);
        Ok(Arc::new(Self {
            id,
            file,
            direct,
            pinned_indexes: PinnedBlocks::new(index_blocks),
            pinned_blooms: PinnedBlocks::new(chunks),
            context,
            trailer,
            layout: parts.layout,
            properties: parts.properties,
            root: parts.root,
            middle: parts.middle,
            bloom: parts.bloom,
            delete_bloom: parts.delete_bloom,
            path,
        }))
    }

    /// Unpacks the blocks of the load-on-open section, which fill it without a gap.
    fn load(section: &[u8], trailer: &Trailer) -> std::result::Result<Vec<Loaded>, (u64, String)> {
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < section.len() {
            let offset = trailer.load_on_open_offset + at as u64;
            let loaded = Header::parse(&section[at..]).and_then(|header| {
                let bytes = section
                    .get(at..at + header.disk_bytes)
                    .ok_or("block reaches into the trailer")?;
                block::unpack(bytes.into(), trailer.compression)
            });
            let (header, payload) = loaded.map_err(|what| (offset, what))?;
            at += header.disk_bytes;
            blocks.push(Loaded {
                offset,
                header,
                payload,
            });
        }
        Ok(blocks)
    }

    /// Id of the file.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Properties of the file.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Bytes of index and bloom filter that are always in memory, pinned blocks not counted: those are in the
    /// cache's account.
    pub fn resident_bytes(&self) -> u64 {
        let blooms = [&self.bloom, &self.delete_bloom]
            .into_iter()
            .flatten()
            .map(Bloom::weight);
        let slots = self.pinned_indexes.weight() + self.pinned_blooms.weight();
        (self.root.weight() + blooms.sum::<usize>() + slots) as u64
    }

    /// Sizes of its parts.
    pub fn sizes(&self) -> FileSizes {
        FileSizes {
            plain_bytes: self.trailer.plain_bytes,
            root_index_bytes: self.root.weight() as u64,
            index_bytes: self.trailer.index_plain_bytes,
            bloom_bytes: self.bloom.as_ref().map_or(0, |bloom| bloom.bytes),
        }
    }

    /// The general and the delete-family filter.
    pub(super) fn blooms(&self) -> [Option<&Bloom>; 2] {
        [self.bloom.as_ref(), self.delete_bloom.as_ref()]
    }

    /// A key near the middle of the file, for splitting (HBase: mid key). It may be a shortened one that no
    /// cell has.
    pub fn mid_key(&self) -> Result<Option<KeyBuf>> {
        if self.trailer.cells == 0 {
            return Ok(None);
        }
        let Some(middle) = self.middle else {
            return Ok(Some(KeyBuf::copy_of(self.root.key(self.root.len() / 2))));
        };
        let options = ReadOptions {
            cache_blocks: true,
            priority: crate::cache::Priority::Single,
            memory_only: false,
            charge: None,
            access: Access::Random,
        };
        let leaf = self.block(Want::Leaf, middle.leaf, options)?;
        if middle.entry >= leaf.index().len() {
            return Err(self.corrupt(middle.leaf.offset, "the middle key is beyond the end of its leaf"));
        }
        Ok(Some(KeyBuf::copy_of(leaf.index().key(middle.entry))))
    }

    /// Whether the row may be in the file: key range, then bloom filter. A ROWCOL filter has no
    /// information about rows.
    pub fn may_contain_row(&self, row: &[u8], options: ReadOptions) -> Result<bool> {
        Ok(self.is_in_range(row) && self.bloom_lets_through(row, None, options)?)
    }

    /// Whether the column of the row may be in the file: key range, then bloom filter. Says yes if a family
    /// tombstone of the row may be in the file.
    pub fn may_contain_column(
        &self,
        row: &[u8],
        _family: &[u8],
        qualifier: &[u8],
        options: ReadOptions,
    ) -> Result<bool> {
        Ok(self.is_in_range(row) && self.bloom_lets_through(row, Some(qualifier), options)?)
    }

    /// Whether rows may be in the file that begin as this one does, up to the length in a filter of
    /// prefixes. The row must be that long.
    pub(crate) fn may_contain_prefix(&self, row: &[u8], options: ReadOptions) -> Result<bool> {
        self.bloom_lets_through(row, None, options)
    }

    /// Asks the filter and counts the answer.
    fn bloom_lets_through(&self, row: &[u8], qualifier: Option<&[u8]>, options: ReadOptions) -> Result<bool> {
        let ask = |bloom: &Bloom, key: &[u8]| self.ask_pinned(bloom, key, options);
        let Some(found) = self.ask_bloom(row, qualifier, ask)? else {
            return Ok(true);
        };
        self.context.counters.bloom_checks.increment();
        if !found {
            self.context.counters.bloom_skips.increment();
        }
        Ok(found)
    }

    /// Asks the general filter for a row or one of its columns; `None` when no filter can answer.
    /// `ask` queries a filter for a key of its form.
    pub(super) fn ask_bloom(
        &self,
        row: &[u8],
        qualifier: Option<&[u8]>,
        mut ask: impl FnMut(&Bloom, &[u8]) -> Result<bool>,
    ) -> Result<Option<bool>> {
        let Some(bloom) = &self.bloom else {
            return Ok(None);
        };
        match (self.properties.bloom, qualifier) {
            (BloomType::Row, _) => ask(bloom, row).map(Some),
            (BloomType::RowPrefix, _) => {
                let prefix = bloom::prefix(row, self.properties.bloom_prefix_bytes);
                ask(bloom, prefix).map(Some)
            }
            (BloomType::RowCol, Some(qualifier)) => {
                let mut ask =
                    |qualifier: &[u8]| ask(bloom, bloom::column_key(row, qualifier).as_key().bytes());
                // Family tombstones have an empty qualifier and are keys of the filter like any other cell.
                let found = ask(qualifier)? || (self.properties.delete_family_cells > 0 && ask(b"")?);
                Ok(Some(found))
            }
            _ => Ok(None),
        }
    }

    fn is_in_range(&self, row: &[u8]) -> bool {
        let (Some(first), Some(last)) = (&self.properties.first_key, &self.properties.last_key) else {
            return false;
        };
        (first.as_key().row()..=last.as_key().row()).contains(&row)
    }

    /// Asks the general filter for a key.
    fn ask_pinned(&self, bloom: &Bloom, key: &[u8], options: ReadOptions) -> Result<bool> {
        let Some(chunk) = bloom.chunk(key) else {
            return Ok(false);
        };
        if let Some(block) = self.pinned_blooms.get(chunk) {
            return Ok(block.may_contain(key, bloom));
        }
        let handle = bloom.handle(chunk);
        let block = self.block(Want::Bloom, handle, options)?;
        self.pin(&self.pinned_blooms, chunk, &block, handle, options);
        Ok(block.may_contain(key, bloom))
    }

    /// Whether the filter of family tombstones lets the row through; for verification.
    pub(super) fn may_contain_family_tombstone(&self, row: &[u8], options: ReadOptions) -> Result<bool> {
        let Some(bloom) = &self.delete_bloom else {
            return Ok(true);
        };
        let Some(chunk) = bloom.chunk(row) else {
            return Ok(false);
        };
        let block = self.block(Want::Bloom, bloom.handle(chunk), options)?;
        Ok(block.may_contain(row, bloom))
    }

    /// The data block of an index entry, checked against the index. `toward` is the direction of
    /// the caller's next read.
    pub(super) fn data_block(
        &self,
        index: &IndexBlock,
        entry: usize,
        is_first: bool,
        options: ReadOptions,
        ahead: &mut ReadAhead,
        toward: Toward,
    ) -> Result<Arc<Block>> {
        let handle = index.handle(entry);
        let block = if let Some(block) = self.cached(Want::Data, handle, options)? {
            block
        } else {
            let block = self.read_block(Want::Data, handle, options, Some((ahead, toward)))?;
            let data = block.data();
            if compare_keys(data.first_key(), index.key(entry)).is_lt() {
                return Err(self.corrupt(
                    handle.offset,
                    "data block whose first cell sorts before its index entry",
                ));
            }
            self.keep(Want::Data, handle, block, options)
        };
        let place_is_right = match block.previous {
            None => is_first,
            // The first entry of a leaf does not know the data block before it; that one is in another leaf.
            Some(previous) if entry == 0 => !is_first && previous < handle.offset,
            Some(previous) => previous == index.handle(entry - 1).offset,
        };
        if !place_is_right {
            return Err(self.corrupt(handle.offset, "a data block from another place in the file"));
        }
        Ok(block)
    }

    /// The index block that an entry of the root leads to.
    /// REQUIRES: the index has more than one level.
    pub(super) fn under_root(&self, want: Want, entry: usize, options: ReadOptions) -> Result<Arc<Block>> {
        if let Some(block) = self.pinned_indexes.get(entry) {
            return Ok(Arc::clone(block));
        }
        let handle = self.root.handle(entry);
        let block = self.block(want, handle, options)?;
        self.pin(&self.pinned_indexes, entry, &block, handle, options);
        Ok(block)
    }

    /// Keeps a block while the file is open, if the read is a point read: a sequential read gains
    /// nothing.
    fn pin(
        &self,
        pinned: &PinnedBlocks,
        entry: usize,
        block: &Arc<Block>,
        handle: Handle,
        options: ReadOptions,
    ) {
        if options.access != Access::Sequential {
            pinned.pin(entry, block, &self.context.cache, self.cache_key(handle));
        }
    }

    /// A block of index or bloom filter, from the cache or from disk.
    pub(super) fn block(&self, want: Want, handle: Handle, options: ReadOptions) -> Result<Arc<Block>> {
        if let Some(block) = self.cached(want, handle, options)? {
            return Ok(block);
        }
        let block = self.read_block(want, handle, options, None)?;
        Ok(self.keep(want, handle, block, options))
    }

    /// The block cache.
    pub(super) fn cache(&self) -> &BlockCache<Block> {
        &self.context.cache
    }

    /// Counts a block that was read ahead.
    pub(super) fn count_read_ahead(&self) {
        self.context.counters.blocks_read_ahead.increment();
    }

    /// The pinned index block that an entry of the root leads to.
    pub(super) fn pinned_index(&self, entry: usize) -> Option<&Arc<Block>> {
        self.pinned_indexes.get(entry)
    }

    /// The pinned chunk of the general filter.
    pub(super) fn pinned_bloom(&self, chunk: usize) -> Option<&Arc<Block>> {
        self.pinned_blooms.get(chunk)
    }

    pub(super) fn cache_key(&self, handle: Handle) -> BlockKey {
        BlockKey {
            file: self.id,
            offset: handle.offset,
        }
    }

    /// A block from the cache. `None`: it has to be read, and may be.
    fn cached(&self, want: Want, handle: Handle, options: ReadOptions) -> Result<Option<Arc<Block>>> {
        let (cache, key) = (&self.context.cache, self.cache_key(handle));
        let found = if options.memory_only {
            cache.get_if_cached(key)
        } else {
            cache.get(key)
        };
        match found {
            Some(block) if Self::is_block(&block, want, handle) => Ok(Some(block)),
            Some(_) => Err(self.corrupt(handle.offset, "two index entries disagree about a block")),
            None if options.memory_only => Err(Error::NotInMemory),
            None => Ok(None),
        }
    }

    /// Whether a cached block is the one that an index entry describes.
    pub(super) fn is_block(block: &Block, want: Want, handle: Handle) -> bool {
        block.is(want) && block.disk_bytes == handle.bytes
    }

    /// Inserts a block that was read into the cache, if that is wanted.
    fn keep(&self, want: Want, handle: Handle, block: Block, options: ReadOptions) -> Arc<Block> {
        let block = Arc::new(block);
        if options.cache_blocks || want != Want::Data {
            return self
                .context
                .cache
                .insert(self.cache_key(handle), block, options.priority);
        }
        block
    }

    fn read_block(
        &self,
        want: Want,
        handle: Handle,
        options: ReadOptions,
        ahead: Option<(&mut ReadAhead, Toward)>,
    ) -> Result<Block> {
        if !self.is_inside(handle) {
            return Err(self.corrupt(handle.offset, "index entry that leads out of the file"));
        }
        let _read = self.account(handle.bytes as usize, options)?;
        add_disk_bytes(u64::from(handle.bytes));
        let bytes: Cow<'_, [u8]> = match ahead {
            Some((ahead, toward))
                if options.access == Access::Sequential && handle.bytes as usize <= WINDOW_BYTES_MAX =>
            {
                ahead.read(&self.file_bytes(), handle, options, toward)?.into()
            }
            _ => {
                let file = match options.access {
                    Access::Sequential => &self.file,
                    Access::Random | Access::SingleRow => self.point_file(),
                };
                let mut own = vec![0; handle.bytes as usize];
                file.read_exact_at(&mut own, handle.offset)
                    .map_err(|source| Error::io("reading", &self.path, source))?;
                own.into()
            }
        };
        let _unpacked = self.account_unpacked(&bytes, options)?;
        self.parse_block(want, bytes)
            .map_err(|what| self.corrupt(handle.offset, what))
    }

    /// Whether an index entry leads to a place before the load-on-open section.
    pub(super) fn is_inside(&self, handle: Handle) -> bool {
        let end = handle.offset.checked_add(u64::from(handle.bytes));
        end.is_some_and(|end| end <= self.trailer.load_on_open_offset)
    }

    /// The file for reads of single blocks.
    pub(super) fn point_file(&self) -> &Arc<dyn File> {
        self.direct.as_ref().unwrap_or(&self.file)
    }

    /// An account for the block that these bytes unpack to: a few bytes on disk may unpack to many.
    /// Unpacking reports a damaged header.
    pub(super) fn account_unpacked(&self, bytes: &[u8], options: ReadOptions) -> Result<Account> {
        let plain_bytes = match self.trailer.compression {
            Compression::None => 0,
            _ => Header::parse(bytes).map_or(0, |header| header.plain_bytes),
        };
        self.account(plain_bytes, options)
    }

    /// An account with `bytes` for a call that reads a large block; an empty one otherwise.
    fn account(&self, bytes: usize, options: ReadOptions) -> Result<Account> {
        let Some(on_shortage) = options.charge.filter(|_| bytes > LARGE_BLOCK_BYTES) else {
            return Ok(Account::default());
        };
        let mut account = self.context.calls.account(0, on_shortage);
        account.add(bytes)?;
        Ok(account)
    }

    /// The memory from which cursors of calls reserve.
    pub(super) fn calls(&self) -> &CallMemory {
        &self.context.calls
    }

    pub(super) fn parse_block(&self, want: Want, bytes: Cow<'_, [u8]>) -> block::Check<Block> {
        let (header, payload) = block::unpack(bytes, self.trailer.compression)?;
        if !want.accepts(header.kind) {
            return Err(format!(
                "a {:?} block where a {want:?} block is expected",
                header.kind
            ));
        }
        let index = |payload| {
            let index = IndexBlock::parse(payload, KeyForm::Flat)?;
            if index.len() == 0 {
                return Err("index block without entries".to_owned());
            }
            Ok(index)
        };
        let content = match want {
            Want::Data => {
                let encoded = header.kind == BlockKind::EncodedData;
                Content::Data(DataBlock::parse(payload, encoded, self.layout)?)
            }
            Want::Leaf => Content::Leaf(index(payload)?),
            Want::Intermediate => Content::Intermediate(index(payload)?),
            Want::Bloom => Content::Bloom(payload),
        };
        let mut block = Block {
            disk_bytes: header.disk_bytes as u32,
            previous: header.previous,
            content,
            large_bytes: 0,
        };
        block.large_bytes = Some(block.weight())
            .filter(|weight| *weight > LARGE_BLOCK_BYTES)
            .unwrap_or(0);
        Ok(block)
    }

    /// The bytes of the file, as a window needs them.
    pub(super) fn file_bytes(&self) -> FileBytes<'_> {
        FileBytes {
            file: &*self.file,
            path: &self.path,
            end: self.trailer.load_on_open_offset,
            calls: &self.context.calls,
        }
    }

    /// Reads bytes of the file.
    pub(super) fn read_exact(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file_bytes().read_exact(buffer, offset)
    }

    /// Makes an error about this file, and counts it.
    pub(super) fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        self.context.counters.damaged_reads.increment();
        Error::corrupt(&self.path, offset, what)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let (cache, root) = (&self.context.cache, &self.root);
        self.pinned_indexes
            .unpin(cache, self.id, |entry| root.handle(entry));
        if let Some(bloom) = &self.bloom {
            self.pinned_blooms
                .unpin(cache, self.id, |chunk| bloom.handle(chunk));
        }
    }
}

/// The parts of the load-on-open section.
struct Parts {
    layout: DataLayout,
    properties: Properties,
    root: IndexBlock,
    middle: Option<Middle>,
    bloom: Option<Bloom>,
    delete_bloom: Option<Bloom>,
}

impl Parts {
    fn parse(blocks: &[Loaded], trailer: &Trailer, file_bytes: u64) -> block::Check<Self> {
        let [root, meta, info, blooms @ ..] = blocks else {
            return Err("load-on-open section with too few blocks".into());
        };
        let kinds = [root, meta, info].map(|block| block.header.kind);
        if kinds != [BlockKind::RootIndex, BlockKind::RootIndex, BlockKind::FileInfo]
            || info.offset != trailer.file_info_offset
        {
            return Err("load-on-open section with its blocks out of place".into());
        }
        let info = FileInfo::parse(&info.payload)?;
        if info.get(super::file_info::UUID).is_some() && !trailer.marked {
            return Err("the checksum of the trailer is missing".into());
        }
        info.check_index_encoding()?;
        let (tags, tags_compressed, seq) = info.cell_parts()?;
        let mut cursor = Cursor::new(&root.payload);
        let root = IndexBlock::parse_root(&mut cursor, trailer.root_entries as usize, KeyForm::Flat)?;
        let middle = Self::middle(&mut cursor, trailer)?;
        if (root.len() == 0) != (trailer.cells == 0) {
            return Err("root index and cell count disagree about whether the file is empty".into());
        }
        let first_key = (root.len() > 0).then(|| KeyBuf::copy_of(root.key(0)));
        let properties = info.properties(trailer, file_bytes, first_key)?;

        let (mut bloom, mut delete_bloom) = (None, None);
        for block in blooms {
            match block.header.kind {
                BlockKind::GeneralBloomMeta => bloom = Bloom::parse(&block.payload)?,
                BlockKind::DeleteFamilyBloomMeta => delete_bloom = Bloom::parse(&block.payload)?,
                kind => return Err(format!("a {kind:?} block in the load-on-open section")),
            }
        }
        let expected = match properties.bloom {
            BloomType::RowCol => KeyForm::Flat,
            BloomType::None | BloomType::Row | BloomType::RowPrefix => KeyForm::Bytes,
        };
        if bloom.as_ref().is_some_and(|bloom| bloom.form() != expected)
            || delete_bloom
                .as_ref()
                .is_some_and(|bloom| bloom.form() != KeyForm::Bytes)
        {
            return Err("bloom filter with keys of another type than the file info says".into());
        }
        Ok(Self {
            layout: DataLayout {
                encoding: properties.encoding,
                cell: CellLayout { tags, seq },
                tags_compressed,
            },
            properties,
            root,
            middle,
            bloom,
            delete_bloom,
        })
    }

    fn middle(cursor: &mut Cursor<'_>, trailer: &Trailer) -> block::Check<Option<Middle>> {
        if cursor.is_empty() {
            return Ok(None);
        }
        let mut read = || {
            let offset = cursor.u64_be()?;
            let bytes = cursor.u32_be()?;
            let entry = cursor.u32_be()? as usize;
            Some(Middle {
                leaf: Handle { offset, bytes },
                entry,
            })
        };
        let middle = read().filter(|_| trailer.levels > 1);
        match middle {
            Some(middle) if cursor.is_empty() => Ok(Some(middle)),
            _ => Err("root index with bytes after its last entry".into()),
        }
    }
}

/// Position of a key relative to a file, for callers that hold a key of it.
pub(super) fn row_start(key: Key<'_>) -> KeyBuf {
    KeyBuf::first_on_row(key.row(), key.family())
}
