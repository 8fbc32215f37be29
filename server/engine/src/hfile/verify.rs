//! Verification of a whole file: `basalt check`, background scrubs, tests.
//!
//! 1. Front to back, every block before the load-on-open section: checksums, kind, the chain of offsets of
//!    the same kind, and with them the checksum of the whole file.
//! 2. Through the index, every cell: order, index keys, number of cells, first and last key, bloom filters
//!    say yes.
//! 3. The data blocks of both ways are the same.
//!
//! Steps 1 and 2 of a large file go on side by side, since one thread unpacks blocks more slowly
//! than disks read them. Findings of step 1 come first.
//!
//! Nothing is put into the block cache by step 1; step 2 reads past it as well, except for index and bloom
//! blocks.

use std::sync::Arc;
use std::thread;

use super::ReadOptions;
use super::block::{self, BlockKind, HEADER_BYTES, Header};
use super::blocks::{Block, Want};
use super::bloom::Bloom;
use super::cell_layout::CurrentCell;
use super::index::{Handle, IndexBlock};
use super::read_ahead::{ReadAhead, Toward};
use super::reader::Reader;
use super::trailer::TRAILER_BYTES;
use crate::cell::{Cell, CellType, KeyBuf, compare_keys};
use crate::checksum;
use crate::error::Result;
use crate::sync::helpers;

const OPTIONS: ReadOptions = ReadOptions::WHOLE_FILE;

/// A file with fewer bytes is verified by one thread: starting another would take longer.
const SIDE_BY_SIDE_BYTES: u64 = 1 << 20;

/// State of the walk over the cells.
#[derive(Default)]
struct Walk {
    last: KeyBuf,
    first: KeyBuf,
    cells: u64,
    delete_family_cells: u64,
    /// Data blocks in index order.
    blocks: Vec<Handle>,
    chunk: HeldChunk,
}

/// The chunk of the general filter that was used last: keys come in order, so one chunk serves
/// thousands of them in a row.
#[derive(Default)]
struct HeldChunk(Option<(usize, Arc<Block>)>);

impl HeldChunk {
    fn ask(&mut self, reader: &Reader, bloom: &Bloom, key: &[u8]) -> Result<bool> {
        if let Some((_, block)) = self
            .0
            .as_ref()
            .filter(|(chunk, _)| bloom.is_in_chunk(*chunk, key))
        {
            return Ok(block.may_contain(key, bloom));
        }
        let Some(chunk) = bloom.chunk(key) else {
            return Ok(false);
        };
        let (_, block) = self
            .0
            .insert((chunk, reader.block(Want::Bloom, bloom.handle(chunk), OPTIONS)?));
        Ok(block.may_contain(key, bloom))
    }
}

impl Reader {
    /// Reads every block and verifies everything: checksums, chain of block offsets, order, counts, bloom
    /// filters, and the whole-file checksum when it is given.
    pub fn verify(&self, checksum: Option<u32>) -> Result<()> {
        let (data_blocks, walk) = if self.properties().file_bytes < SIDE_BY_SIDE_BYTES {
            (self.verify_blocks(checksum)?, self.verify_cells()?)
        } else {
            let thread = thread::Builder::new().name("basalt-verify".into());
            let (blocks, cells) =
                helpers::both(thread, || self.verify_blocks(checksum), || self.verify_cells());
            (blocks?, cells?)
        };
        if walk.blocks != data_blocks {
            return Err(self.corrupt(0, "the index does not lead to all data blocks in their order"));
        }
        self.verify_totals(&walk)
    }

    /// Step 1. Returns the data blocks in file order.
    fn verify_blocks(&self, expected: Option<u32>) -> Result<Vec<Handle>> {
        let end = self.trailer.load_on_open_offset;
        let mut previous = [None; BlockKind::ALL.len()];
        let mut data_blocks = Vec::new();
        let mut sum = 0;
        let (mut offset, mut ahead) = (0, ReadAhead::default());
        while offset < end {
            let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let here = |bytes: usize| Handle {
                offset,
                bytes: bytes as u32,
            };
            let bytes = ahead.read(
                &self.file_bytes(),
                here(HEADER_BYTES.min(left)),
                OPTIONS,
                Toward::End,
            )?;
            let header = Header::parse(bytes).map_err(|what| self.corrupt(offset, what))?;
            if header.disk_bytes > left {
                return Err(self.corrupt(offset, "block reaches into the load-on-open section"));
            }
            let bytes = ahead.read(&self.file_bytes(), here(header.disk_bytes), OPTIONS, Toward::End)?;
            block::unpack(bytes.into(), self.trailer.compression)
                .map_err(|what| self.corrupt(offset, what))?;
            if header.previous != previous[header.kind as usize] {
                return Err(self.corrupt(offset, "the chain of blocks of the same kind is broken"));
            }
            previous[header.kind as usize] = Some(offset);
            if header.kind.is_data() {
                data_blocks.push(here(header.disk_bytes));
            }
            sum = checksum::crc32c_append(sum, bytes);
            offset += header.disk_bytes as u64;
        }
        let ends = data_blocks
            .first()
            .map(|first| first.offset)
            .zip(data_blocks.last().map(|last| last.offset));
        if ends != self.trailer.data_blocks {
            return Err(self.corrupt(end, "first and last data block are not those of the trailer"));
        }
        let rest = self.properties().file_bytes - end;
        let mut buffer = vec![0; rest as usize];
        self.read_exact(&mut buffer, end)?;
        sum = checksum::crc32c_append(sum, &buffer);
        match expected {
            Some(expected) if expected != sum => Err(self.corrupt(
                0,
                format!("checksum of the whole file is {sum:08x}, {expected:08x} was written"),
            )),
            _ => Ok(data_blocks),
        }
    }

    /// Step 2.
    fn verify_cells(&self) -> Result<Walk> {
        let mut walk = Walk::default();
        self.verify_index(&self.root, 0, true, &mut walk, &mut ReadAhead::default())?;
        Ok(walk)
    }

    /// Step 2, for the entries of one index block.
    fn verify_index(
        &self,
        index: &IndexBlock,
        depth: usize,
        first: bool,
        walk: &mut Walk,
        ahead: &mut ReadAhead,
    ) -> Result<()> {
        let below = self.trailer.levels as usize - depth - 1;
        for entry in 0..index.len() {
            let handle = index.handle(entry);
            let key = index.key(entry);
            // The separator of two blocks is greater than all of the left one.
            if !walk.last.is_unset() && compare_keys(walk.last.as_key(), key).is_ge() {
                return Err(self.corrupt(
                    handle.offset,
                    "index key that is not greater than the cells before it",
                ));
            }
            if below > 0 {
                let want = if below == 1 {
                    Want::Leaf
                } else {
                    Want::Intermediate
                };
                let block = self.block(want, handle, OPTIONS)?;
                self.verify_index(block.index(), depth + 1, first && entry == 0, walk, ahead)?;
                continue;
            }
            let block = self.data_block(index, entry, first && entry == 0, OPTIONS, ahead, Toward::End)?;
            walk.blocks.push(handle);
            let data = block.data();
            let mut current = CurrentCell::default();
            data.first(&mut current);
            loop {
                self.verify_cell(data.cell(&current), handle, walk)?;
                if !data.next(&mut current) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn verify_cell(&self, cell: Cell<'_>, handle: Handle, walk: &mut Walk) -> Result<()> {
        let key = cell.key;
        if walk.last.is_unset() {
            walk.first.assign(key);
        } else if compare_keys(walk.last.as_key(), key).is_gt() {
            return Err(self.corrupt(handle.offset, "a cell sorts before the one before it"));
        }
        walk.cells += 1;
        let ask = |bloom: &Bloom, key: &[u8]| walk.chunk.ask(self, bloom, key);
        if self.ask_bloom(key.row(), Some(key.qualifier()), ask)? == Some(false) {
            return Err(self.corrupt(handle.offset, "the bloom filter denies a cell that is here"));
        }
        if matches!(
            key.cell_type(),
            CellType::DeleteFamily | CellType::DeleteFamilyVersion
        ) {
            walk.delete_family_cells += 1;
            if !self.may_contain_family_tombstone(key.row(), OPTIONS)? {
                return Err(self.corrupt(
                    handle.offset,
                    "the bloom filter denies a family tombstone that is here",
                ));
            }
        }
        walk.last.assign(key);
        Ok(())
    }

    fn verify_totals(&self, walk: &Walk) -> Result<()> {
        let properties = self.properties();
        let trailer = properties.file_bytes - TRAILER_BYTES as u64;
        if walk.cells != properties.cells {
            let what = format!("{} cells where the trailer says {}", walk.cells, properties.cells);
            return Err(self.corrupt(trailer, what));
        }
        let keys = (walk.cells > 0).then_some((&walk.first, &walk.last));
        if keys != properties.first_key.as_ref().zip(properties.last_key.as_ref()) {
            return Err(self.corrupt(trailer, "first and last key are not those of the cells"));
        }
        if walk.delete_family_cells != properties.delete_family_cells {
            return Err(self.corrupt(
                trailer,
                "another number of family tombstones than the file info says",
            ));
        }
        Ok(())
    }

    /// Bloom filters in words, for dumps.
    pub(super) fn describe_blooms(self: &Arc<Self>) -> Vec<String> {
        let describe = |name: &str, bloom: &Bloom| {
            format!(
                "{name}: {} keys, {} chunks, {} bytes, {} hash functions",
                bloom.keys,
                bloom.chunk_count(),
                bloom.bytes,
                bloom.hashes()
            )
        };
        ["bloom filter", "family tombstone filter"]
            .into_iter()
            .zip(self.blooms())
            .filter_map(|(name, bloom)| Some(describe(name, bloom?)))
            .collect()
    }
}
