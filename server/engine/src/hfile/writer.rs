//! Writes a store file front to back.
//!
//! 1. Cells are encoded into the open data block. When it is full (never between two cells of the
//!    same key) it is packed and written, and its index entry is added; full index leaves and bloom
//!    chunks follow it at once. A block is full when it has its size, or when one more cell would
//!    make it cover one sector more than its size needs: a read past the page cache takes whole
//!    sectors.
//! 2. `finish` writes the remaining blocks, the upper index levels, the load-on-open section and
//!    the trailer, and syncs once.
//!
//! Bytes leave through one buffer in order, so the checksum of the whole file is computed on the way. Tags
//! are always written (two bytes a cell when there are none): whether a cell will come with tags is not known
//! when the first one is written.
//!
//! Not for several threads at once. After an error the file is unusable and its creator removes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{self, BlockKind};
use super::bloom::{self, BloomWriter, ReadyChunk};
use super::cell_layout::cell_bytes;
use super::column_sample::ColumnSampler;
use super::compress::Codec;
use super::encoding::BlockEncoder;
use super::file_info::{self, FileInfo};
use super::index::{Handle, IndexWriter, KeyForm, WriteBlock, separator};
use super::row_figures::RowCounter;
use super::trailer::Trailer;
use super::{FileSummary, WriterOptions};
use crate::cell::{Cell, CellType, KeyBuf, compare_keys};
use crate::checksum;
use crate::error::{Error, Result};
use crate::fs::{Advice, File};
use crate::schema::{BloomType, Compression, DataBlockEncoding};
use crate::seeded;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// The smallest unit that common disks read and write.
const SECTOR_BYTES: usize = 512;

/// Everything below the level of blocks: packing, offsets, buffering, checksum.
#[derive(Debug)]
struct BlockSink {
    file: Arc<dyn File>,
    path: PathBuf,
    codec: Codec,
    buffer: Vec<u8>,
    /// Bytes that have left the buffer.
    flushed_bytes: u64,
    checksum: u32,
    /// Offset of the last block of each kind, in the order of [`BlockKind::ALL`].
    previous: [Option<u64>; BlockKind::ALL.len()],
    /// Bytes of all blocks before compression, headers included.
    plain_bytes: u64,
}

impl BlockSink {
    fn position(&self) -> u64 {
        self.flushed_bytes + self.buffer.len() as u64
    }

    fn write(&mut self, kind: BlockKind, payload: &[u8]) -> Result<Handle> {
        let offset = self.position();
        let previous = &mut self.previous[kind as usize];
        let bytes = block::pack(&mut self.buffer, kind, payload, *previous, &mut self.codec)
            .map_err(|what| Error::InvalidArgument(format!("writing {}: {what}", self.path.display())))?;
        *previous = Some(offset);
        self.plain_bytes += (payload.len() + block::HEADER_BYTES) as u64;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(Handle {
            offset,
            bytes: bytes as u32,
        })
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .write_at(&self.buffer, self.flushed_bytes)
            .map_err(|source| Error::io("writing", &self.path, source))?;
        self.checksum = checksum::crc32c_append(self.checksum, &self.buffer);
        self.start_writeback();
        self.flushed_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Advises the system to begin to write the buffer. Otherwise the sync at the end of a
    /// compaction's file has a gigabyte to write at once, and every sync of the log waits behind
    /// that.
    ///
    /// The system also drops pages that are on disk by then. That is a small part of a file: nearly
    /// all of the buffer is still being written.
    fn start_writeback(&self) {
        let bytes = self.buffer.len() as u64;
        // A length of nothing would mean the rest of the file.
        if bytes > 0 {
            self.file.advise(self.flushed_bytes, bytes, Advice::DontNeed);
        }
    }
}

impl WriteBlock for BlockSink {
    fn write_index(&mut self, leaf: bool, payload: &[u8]) -> Result<Handle> {
        self.write(
            if leaf {
                BlockKind::LeafIndex
            } else {
                BlockKind::IntermediateIndex
            },
            payload,
        )
    }
}

/// Totals over all cells for the file info.
#[derive(Debug)]
struct Totals {
    cells: u64,
    key_bytes: u64,
    value_bytes: u64,
    tags_bytes_max: usize,
    seq_max: u64,
    time_range: Option<(i64, i64)>,
    earliest_put: i64,
    delete_family_cells: u64,
    biggest_bytes: usize,
    biggest_key: KeyBuf,
}

impl Totals {
    fn add(&mut self, cell: Cell<'_>, tags: bool) {
        let key = cell.key;
        self.cells += 1;
        self.key_bytes += key.bytes().len() as u64;
        self.value_bytes += cell.value.len() as u64;
        self.tags_bytes_max = self.tags_bytes_max.max(cell.tags.len());
        self.seq_max = self.seq_max.max(cell.seq.0);
        let time = key.timestamp();
        let (from, to) = self.time_range.unwrap_or((time, time));
        self.time_range = Some((from.min(time), to.max(time)));
        match key.cell_type() {
            CellType::Put => self.earliest_put = self.earliest_put.min(time),
            CellType::DeleteFamily | CellType::DeleteFamilyVersion => self.delete_family_cells += 1,
            _ => {}
        }
        let bytes = cell_bytes(cell, tags);
        if bytes > self.biggest_bytes {
            self.biggest_bytes = bytes;
            self.biggest_key.assign(key);
        }
    }
}

/// Writes one file front to back.
#[derive(Debug)]
pub struct Writer {
    options: WriterOptions,
    sink: BlockSink,
    encoder: BlockEncoder,
    index: IndexWriter,
    bloom: Option<BloomWriter>,
    delete_bloom: Option<BloomWriter>,
    totals: Totals,
    sampler: ColumnSampler,
    rows: RowCounter,
    first_key: KeyBuf,
    last_key: KeyBuf,
    /// First key of the open block.
    block_first: KeyBuf,
    /// Last key of the block before the open one.
    block_before: KeyBuf,
    /// First and last data block.
    data_blocks: Option<(u64, u64)>,
}

impl Writer {
    /// Begins a file. `path` is for error texts.
    pub fn create(file: Arc<dyn File>, path: &Path, options: WriterOptions) -> Result<Self> {
        let codec = Codec::new(options.compression)
            .map_err(|what| Error::InvalidArgument(format!("writing {}: {what}", path.display())))?;
        if options.bloom == BloomType::RowPrefix && options.bloom_prefix_bytes == 0 {
            return Err(Error::InvalidArgument(format!(
                "writing {}: a bloom filter of prefixes needs their length",
                path.display()
            )));
        }
        let form = match options.bloom {
            BloomType::None => None,
            BloomType::Row | BloomType::RowPrefix => Some(KeyForm::Bytes),
            BloomType::RowCol => Some(KeyForm::Flat),
        };
        // A column filter answers for family tombstones too: they have an empty qualifier.
        let delete_bloom = form != Some(KeyForm::Flat);
        Ok(Self {
            sink: BlockSink {
                file,
                path: path.to_owned(),
                codec,
                buffer: Vec::with_capacity(BUFFER_BYTES + options.block_bytes),
                flushed_bytes: 0,
                checksum: 0,
                previous: [None; BlockKind::ALL.len()],
                plain_bytes: 0,
            },
            encoder: BlockEncoder::new(options.encoding, options.tags),
            index: IndexWriter::new(options.index_block_bytes),
            bloom: form.map(|form| BloomWriter::new(form, options.bloom_chunk_bytes)),
            delete_bloom: delete_bloom.then(|| BloomWriter::new(KeyForm::Bytes, options.bloom_chunk_bytes)),
            totals: Totals {
                cells: 0,
                key_bytes: 0,
                value_bytes: 0,
                tags_bytes_max: 0,
                seq_max: 0,
                time_range: None,
                earliest_put: i64::MAX,
                delete_family_cells: 0,
                biggest_bytes: 0,
                biggest_key: KeyBuf::default(),
            },
            sampler: ColumnSampler::default(),
            rows: RowCounter::default(),
            first_key: KeyBuf::default(),
            last_key: KeyBuf::default(),
            block_first: KeyBuf::default(),
            block_before: KeyBuf::default(),
            data_blocks: None,
            options,
        })
    }

    /// Adds a cell. REQUIRES: it sorts at or after the one before (checked; out of order is an error), and is
    /// of the same family (checked: the encodings and the index rely on it).
    pub fn append(&mut self, cell: Cell<'_>) -> Result<()> {
        self.check_cell(cell)?;
        let (mut new_row, mut new_column) = (true, true);
        if self.last_key.is_unset() {
            self.first_key.assign(cell.key);
        } else {
            let last = self.last_key.as_key();
            if last.family() != cell.key.family() {
                return Err(self.refuse(cell, "is not of the file's family"));
            }
            let order = compare_keys(last, cell.key);
            if order.is_gt() {
                return Err(self.refuse(cell, "sorts before the cell before it"));
            }
            new_row = last.row() != cell.key.row();
            new_column = new_row || last.qualifier() != cell.key.qualifier();
            if order.is_lt() && self.is_full(cell, new_row) {
                self.finish_block()?;
            }
        }
        if self.encoder.is_empty() {
            self.block_first.assign(cell.key);
        }
        self.encoder.add(cell, new_row);
        self.add_to_blooms(cell, new_row, new_column);
        if new_column {
            self.sampler.add(cell.key.row(), cell.key.qualifier());
        }
        self.totals.add(cell, self.options.tags);
        let before = (new_row && !self.last_key.is_unset()).then(|| self.last_key.as_key().row());
        self.rows.add(cell, before);
        self.last_key.assign(cell.key);
        Ok(())
    }

    /// Whether the open block ends before the next cell.
    ///
    /// A block may end at three quarters of its size if one more cell would make it cover more
    /// sectors than a block of the full size at a sector's start. The size of a compressed block is
    /// not known in advance.
    fn is_full(&self, next: Cell<'_>, new_row: bool) -> bool {
        let (bytes, size) = (self.encoder.block_bytes(), self.options.block_bytes);
        if bytes >= size {
            return true;
        }
        if bytes < size - size / 4 || self.options.compression != Compression::None {
            return false;
        }
        let begins = (self.sink.position() % SECTOR_BYTES as u64) as usize;
        let ends = begins + block::plain_disk_bytes(self.encoder.payload_bytes_with(next, new_row));
        ends > size.next_multiple_of(SECTOR_BYTES)
    }

    /// Limits of the format that would otherwise turn into wrong bytes.
    fn check_cell(&self, cell: Cell<'_>) -> Result<()> {
        if cell.key.bytes().len() + cell.value.len() > block::PLAIN_BYTES_MAX / 2 {
            return Err(self.refuse(cell, "is larger than 512 MiB"));
        }
        if !self.options.tags && !cell.tags.is_empty() {
            return Err(self.refuse(cell, "has tags, and the file was begun without"));
        }
        if cell.tags.len() > usize::from(u16::MAX) {
            return Err(self.refuse(cell, "has more than 65535 bytes of tags"));
        }
        if i64::try_from(cell.seq.0).is_err() {
            return Err(self.refuse(cell, "has a sequence id above 2^63 - 1"));
        }
        Ok(())
    }

    fn refuse(&self, cell: Cell<'_>, what: &str) -> Error {
        let key = cell.key;
        Error::InvalidArgument(format!(
            "writing {}: the cell of row {}, column {}:{} {what}",
            self.sink.path.display(),
            key.row().escape_ascii(),
            key.family().escape_ascii(),
            key.qualifier().escape_ascii()
        ))
    }

    fn add_to_blooms(&mut self, cell: Cell<'_>, new_row: bool, new_column: bool) {
        let key = cell.key;
        match (&mut self.bloom, self.options.bloom) {
            (Some(bloom), BloomType::RowCol) if new_column => {
                bloom.add(bloom::column_key(key.row(), key.qualifier()).as_key().bytes());
            }
            (Some(bloom), BloomType::Row) if new_row => bloom.add(key.row()),
            (Some(bloom), BloomType::RowPrefix) if new_row => {
                let prefix = bloom::prefix(key.row(), self.options.bloom_prefix_bytes);
                if bloom.last_key() != Some(prefix) {
                    bloom.add(prefix);
                }
            }
            _ => {}
        }
        if matches!(
            key.cell_type(),
            CellType::DeleteFamily | CellType::DeleteFamilyVersion
        ) && let Some(bloom) = &mut self.delete_bloom
            && bloom.last_key() != Some(key.row())
        {
            bloom.add(key.row());
        }
    }

    /// Writes the open block and the index and filter blocks that are complete with it.
    fn finish_block(&mut self) -> Result<()> {
        if self.encoder.is_empty() {
            return Ok(());
        }
        let kind = if self.options.encoding == DataBlockEncoding::None {
            BlockKind::Data
        } else {
            BlockKind::EncodedData
        };
        let handle = self.sink.write(kind, self.encoder.finish())?;
        self.encoder.clear();
        let first = self.data_blocks.map_or(handle.offset, |(first, _)| first);
        self.data_blocks = Some((first, handle.offset));
        let key = if self.block_before.is_unset() {
            self.block_first.clone()
        } else {
            separator(self.block_before.as_key(), self.block_first.as_key())
        };
        self.block_before.assign(self.last_key.as_key());
        self.index.add(key.as_key().bytes(), handle, &mut self.sink)?;
        self.write_bloom_chunks(false)
    }

    fn write_bloom_chunks(&mut self, all: bool) -> Result<()> {
        for bloom in [&mut self.bloom, &mut self.delete_bloom].into_iter().flatten() {
            while let Some(chunk @ ReadyChunk { .. }) = bloom.take_ready(all) {
                let handle = self.sink.write(BlockKind::BloomChunk, &chunk.bits)?;
                bloom.written(&chunk, handle);
            }
        }
        Ok(())
    }

    /// Bytes written and buffered so far.
    pub fn written_bytes(&self) -> u64 {
        self.sink.position()
            + if self.encoder.is_empty() {
                0
            } else {
                self.encoder.block_bytes() as u64
            }
    }

    /// Writes indexes, bloom filter, file info and trailer, and syncs the file. The caller syncs the
    /// directory.
    pub fn finish(mut self) -> Result<FileSummary> {
        self.finish_block()?;
        self.index.finish_leaves(&mut self.sink)?;
        self.write_bloom_chunks(true)?;
        let root = self.index.finish(&mut self.sink)?;

        let load_on_open = self.sink.write(BlockKind::RootIndex, &root)?;
        self.sink.write(BlockKind::RootIndex, &[])?;
        let file_info = self.file_info().encode();
        let file_info = self.sink.write(BlockKind::FileInfo, &file_info)?;
        for (bloom, kind) in [
            (&self.bloom, BlockKind::GeneralBloomMeta),
            (&self.delete_bloom, BlockKind::DeleteFamilyBloomMeta),
        ] {
            if let Some(bloom) = bloom.as_ref().filter(|bloom| !bloom.is_empty()) {
                self.sink.write(kind, &bloom.meta())?;
            }
        }
        let trailer = Trailer {
            file_info_offset: file_info.offset,
            load_on_open_offset: load_on_open.offset,
            index_plain_bytes: self.index.plain_bytes(),
            plain_bytes: self.sink.plain_bytes + super::trailer::TRAILER_BYTES as u64,
            root_entries: self.index.root_len() as u32,
            meta_entries: 0,
            cells: self.totals.cells,
            levels: self.index.levels(),
            data_blocks: self.data_blocks,
            compression: self.options.compression,
            marked: true,
        };
        self.sink.buffer.extend_from_slice(&trailer.encode());
        self.sink.flush()?;
        if !seeded::is_on("store-file-not-synced") {
            self.sink
                .file
                .sync_data()
                .map_err(|source| Error::io("syncing", &self.sink.path, source))?;
        }
        Ok(FileSummary {
            bytes: self.sink.flushed_bytes,
            checksum: self.sink.checksum,
            cells: self.totals.cells,
            keys: (self.totals.cells > 0).then_some((self.first_key, self.last_key)),
        })
    }

    fn file_info(&mut self) -> FileInfo {
        let totals = &self.totals;
        let average = |bytes: u64| ((bytes.checked_div(totals.cells).unwrap_or(0)) as i32).to_be_bytes();
        let flag = |value: bool| [if value { 0xff } else { 0 }];
        let mut info = FileInfo::default();
        info.set(file_info::AVERAGE_KEY_BYTES, average(totals.key_bytes));
        info.set(file_info::AVERAGE_VALUE_BYTES, average(totals.value_bytes));
        info.set(file_info::CREATED, self.options.created_ms.to_be_bytes());
        if self.options.tags {
            info.set(
                file_info::TAGS_BYTES_MAX,
                (totals.tags_bytes_max as u32).to_be_bytes(),
            );
            info.set(file_info::TAGS_COMPRESSED, flag(false));
        }
        info.set(file_info::CELL_VERSION, 1_i32.to_be_bytes());
        info.set(file_info::CELL_SEQ_MAX, totals.seq_max.to_be_bytes());
        info.set(
            file_info::SEQ_MAX,
            self.options.max_seq.0.min(i64::MAX as u64).to_be_bytes(),
        );
        info.set(file_info::MAJOR, flag(self.options.major));
        info.set(
            file_info::DELETE_FAMILY_CELLS,
            totals.delete_family_cells.to_be_bytes(),
        );
        info.set(file_info::EARLIEST_PUT, totals.earliest_put.to_be_bytes());
        // Without cells, HBase's tracker has its two ends swapped.
        let (from, to) = totals.time_range.unwrap_or((i64::MAX, -1));
        info.set(
            file_info::TIME_RANGE,
            [from.to_be_bytes(), to.to_be_bytes()].concat(),
        );
        info.set(file_info::UUID, self.options.uuid.0);
        info.set(
            file_info::DATA_BYTES,
            (totals.key_bytes + totals.value_bytes).to_be_bytes(),
        );
        if self.options.encoding != DataBlockEncoding::None {
            info.set(file_info::ENCODING, self.options.encoding.as_str());
        }
        if totals.cells > 0 {
            info.set(file_info::COLUMN_SAMPLE, self.sampler.finish().encode());
            let rows = std::mem::take(&mut self.rows);
            info.set(
                file_info::ROW_FIGURES,
                rows.finish(self.last_key.as_key().row()).encode(),
            );
            info.set(file_info::LAST_KEY, self.last_key.as_key().bytes());
            info.set(file_info::BIGGEST_KEY, totals.biggest_key.as_key().bytes());
            info.set(
                file_info::BIGGEST_BYTES,
                (totals.biggest_bytes as u64).to_be_bytes(),
            );
        }
        if let Some(key) = self.bloom.as_ref().and_then(BloomWriter::last_key) {
            info.set(file_info::BLOOM_TYPE, self.options.bloom.as_str());
            info.set(file_info::BLOOM_LAST_KEY, key);
            if self.options.bloom == BloomType::RowPrefix {
                let bytes = i32::try_from(self.options.bloom_prefix_bytes).unwrap_or(i32::MAX);
                info.set(file_info::BLOOM_PARAM, bytes.to_be_bytes());
            }
        }
        info
    }
}
