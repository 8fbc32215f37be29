//! Store files.
//!
//! ```text
//! input = how u8 | bytes of trailer u8 | trailer | blocks
//! how   = 1: blocks get right checksums; 2: the trailer has our mark and checksum; 4: the rest of the input is the whole file;
//!         8: the file is printed too
//! ```
//!
//! A file that opens reads the same twice, block by block and cell by cell; a file that `verify`
//! accepts can be read and searched, its filters included; it can be printed.

use std::path::Path;
use std::sync::Arc;

use basalt_engine::cell::{CallMemory, CellCursor as _, KeyBuf};
use basalt_engine::fs::HandleCache;
use basalt_engine::id::FileId;
use basalt_engine::internals::Cursor;
use basalt_engine::internals::hfile::{Access, ReadOptions, Reader, ReaderContext, dump};
use basalt_engine::internals::{BlockCache, Priority};
use basalt_engine::metrics::Counters;

use super::hash_of;
use crate::{disk, memory};

/// The window and tables of a decompressor, whatever it unpacks, in bytes.
const CODEC_BYTES: usize = 64 << 10;

/// Maximum unpacked size of blocks of a file, by the codec that the trailer names: each format has
/// its limit, and a vector that grows is there twice for a moment. Bytes for each byte of the file.
fn unpacked_per_byte(trailer: &[u8]) -> usize {
    match codec(trailer) {
        None | Some(2) => 0,
        Some(6) => 2 * (32 << 10),
        Some(_) => 3 * 1032,
    }
}

/// The last field 12 of the trailer's protobuf.
fn codec(trailer: &[u8]) -> Option<u64> {
    const CODEC: u64 = 12;
    let mut rest = Cursor::new(trailer.get(8..)?);
    rest.varint()?;
    let mut codec = None;
    loop {
        let Some(tag) = rest.varint() else { return codec };
        match tag & 7 {
            0 => {
                let value = rest.varint()?;
                // Longer numbers are cut, as protobuf does it.
                codec = if tag >> 3 == CODEC {
                    Some(value & 0xffff_ffff)
                } else {
                    codec
                };
            }
            2 => {
                let length = usize::try_from(rest.varint()?).ok()?;
                rest.bytes(length)?;
            }
            // Neither is in a trailer that is believed.
            _ => return codec,
        }
    }
}

const PATH: &str = "/db/tables/default/t/f/1";

/// The options of the two ways to read: with the cache, and past it with reading ahead.
const OPTIONS: [ReadOptions; 2] = [
    ReadOptions {
        cache_blocks: true,
        priority: Priority::Single,
        memory_only: false,
        charge: None,
        access: Access::Random,
    },
    ReadOptions {
        cache_blocks: false,
        priority: Priority::Single,
        memory_only: false,
        charge: None,
        access: Access::Sequential,
    },
];

/// The file of an input in compact form, and how it is to be used.
pub(super) fn file_of(input: &[u8]) -> Option<(u8, Vec<u8>)> {
    let [how, trailer_bytes, rest @ ..] = input else {
        return None;
    };
    if how & 4 != 0 {
        return Some((*how, rest.to_vec()));
    }
    let (trailer, blocks) = rest.split_at(rest.len().min(usize::from(*trailer_bytes)));
    let mut blocks = blocks.to_vec();
    if how & 1 != 0 {
        disk::repair_blocks(&mut blocks);
    }
    Some((*how, disk::hfile(&blocks, trailer, how & 2 != 0)))
}

/// Memory that reading a file may take beside the limit: the decompressor, and unpacked blocks.
pub(super) fn unpacked_bytes(file: &[u8]) -> usize {
    let trailer = &file[file.len().saturating_sub(disk::TRAILER_BYTES)..];
    CODEC_BYTES + file.len() * unpacked_per_byte(trailer)
}

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((how, file)) = file_of(input) else {
        return;
    };
    let disk = disk::with_files(&[(Path::new(PATH), &file)]);
    let cache = Arc::new(BlockCache::new(1 << 20));
    let counters = Arc::new(Counters::default());
    let open = || {
        let context = ReaderContext {
            handles: HandleCache::new(Arc::new(disk.clone()), usize::MAX),
            cache: Arc::clone(&cache),
            counters: Arc::clone(&counters),
            direct_reads: false,
            calls: CallMemory::default(),
        };
        Reader::open(PATH.into(), FileId(1), context)
    };
    let unpacked = unpacked_bytes(&file);
    let Ok(reader) = memory::bounded(file.len(), unpacked, open) else {
        return;
    };
    // Cells of a block that is prefix-encoded may be many times as long as the block.
    let beside = memory::DECODED_BYTES + unpacked;
    let verified = memory::bounded(file.len(), beside, || reader.verify(None));
    let read = OPTIONS.map(|options| {
        let read = memory::bounded(file.len(), beside, || read(&reader, options));
        read.map_err(|error| error.to_string())
    });
    assert_eq!(read[0], read[1], "the file reads differently past the cache");
    match verified {
        Ok(()) => {
            assert!(read[0].is_ok(), "verified, but {:?}", read[0]);
            let found = find(&reader).expect("verified cells can be sought");
            assert!(found, "a verified cell is not found");
        }
        // A damaged file refuses or answers; both are right.
        Err(_) => drop(find(&reader)),
    }
    let _ = reader.mid_key();
    if how & 8 != 0 {
        let printed = dump(&reader, true, &mut std::io::sink());
        assert_eq!(printed.is_ok(), read[0].is_ok(), "printing and reading disagree");
    }
}

/// Number of cells, and a hash of them.
fn read(reader: &Arc<Reader>, options: ReadOptions) -> basalt_engine::Result<(usize, u64)> {
    let mut cursor = reader.cursor(options);
    cursor.seek(KeyBuf::first_on_row(b"", b"").as_key())?;
    let (mut count, mut hash) = (0, 0);
    while let Some(cell) = cursor.cell() {
        count += 1;
        hash = hash_of(&(hash, cell.key.bytes(), cell.value, cell.tags, cell.seq.0));
        cursor.advance()?;
    }
    Ok((count, hash))
}

/// Seeks to the first cells and to rows from the end backward. Whether the cells were found.
fn find(reader: &Arc<Reader>) -> basalt_engine::Result<bool> {
    const SOUGHT: usize = 8;
    let mut cursor = reader.cursor(OPTIONS[0]);
    let mut other = reader.cursor(OPTIONS[0]);
    let mut found = true;
    cursor.seek(KeyBuf::first_on_row(b"", b"").as_key())?;
    for _ in 0..SOUGHT {
        let Some(cell) = cursor.cell() else { break };
        let (row, family, qualifier) = (cell.key.row(), cell.key.family(), cell.key.qualifier());
        other.seek(cell.key)?;
        found &= other.cell().map(|cell| cell.key) == Some(cell.key);
        found &= reader.may_contain_row(row, OPTIONS[0])?;
        found &= reader.may_contain_column(row, family, qualifier, OPTIONS[0])?;
        cursor.advance()?;
    }
    cursor.seek_last_row()?;
    for _ in 0..SOUGHT {
        let Some(cell) = cursor.cell() else { break };
        let row = cell.key.row().to_vec();
        cursor.seek_row_before(&row)?;
    }
    Ok(found)
}
