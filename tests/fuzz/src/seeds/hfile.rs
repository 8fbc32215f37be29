//! Store files in the compact form of the target, written by the real writer.

use std::path::Path;

use basalt_engine::cell::{Cell, CellType, KeyBuf, ttl_tag};
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::fs::{Open, Vfs as _};
use basalt_engine::id::{SeqId, Uuid};
use basalt_engine::internals::hfile::{Writer, WriterOptions};
use basalt_engine::schema::{BloomType, Compression, DataBlockEncoding, FamilyDescriptor};

use super::seed;
use crate::corpus::Input;
use crate::disk::{TRAILER_BYTES, TRAILER_MARK_AT};
use crate::target::bulk_load::CLIPPED;

/// Also printed.
const PRINTED: u8 = 8;

/// Right block checksums, and the mark of ours.
const REPAIRED: u8 = 1 | 2;

pub(super) fn seeds() -> Vec<Input> {
    let mut seeds = Vec::new();
    let cases = [
        (Compression::None, DataBlockEncoding::None, BloomType::None),
        (Compression::None, DataBlockEncoding::RowIndexV1, BloomType::Row),
        (Compression::None, DataBlockEncoding::Prefix, BloomType::RowCol),
        (Compression::None, DataBlockEncoding::Diff, BloomType::RowPrefix),
        (Compression::None, DataBlockEncoding::FastDiff, BloomType::Row),
        (Compression::Snappy, DataBlockEncoding::None, BloomType::Row),
        (Compression::Lz4, DataBlockEncoding::FastDiff, BloomType::None),
        (Compression::Zstd, DataBlockEncoding::RowIndexV1, BloomType::None),
        (Compression::Gz, DataBlockEncoding::Diff, BloomType::RowCol),
    ];
    for (compression, encoding, bloom) in cases {
        let named = |what: &str| format!("{what}-{compression}-{encoding}-{bloom}").to_lowercase();
        seeds.push(seed(
            named("small"),
            compact(&file(6, compression, encoding, bloom), REPAIRED | PRINTED),
        ));
        seeds.push(seed(
            named("levels"),
            compact(&file(60, compression, encoding, bloom), REPAIRED),
        ));
    }
    let plain = |cells| file(cells, Compression::None, DataBlockEncoding::None, BloomType::None);
    seeds.push(seed("empty", compact(&plain(0), REPAIRED)));
    seeds.push(seed(
        "as-it-is",
        [&[4 | PRINTED, 0], plain(1).as_slice()].concat(),
    ));
    seeds.push(seed("as-hbase-writes-it", compact(&plain(3), 1 | PRINTED)));
    seeds
}

/// These files offered for a bulk load, into a region with all of their rows and into one with
/// some.
pub(super) fn offered() -> Vec<Input> {
    let clipped = |input: Input| {
        let mut bytes = input.bytes;
        bytes[0] |= CLIPPED;
        seed(format!("clipped-{}", input.name), bytes)
    };
    let mut all = seeds();
    all.extend(seeds().into_iter().map(clipped));
    all
}

/// Blocks and trailer apart, the trailer without its zeros.
fn compact(file: &[u8], how: u8) -> Vec<u8> {
    let (blocks, trailer) = file.split_at(file.len() - TRAILER_BYTES);
    let trailer = &trailer[..TRAILER_MARK_AT];
    let used = trailer
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    let length = u8::try_from(used).expect("a trailer's fields are short");
    [&[how, length], &trailer[..used], blocks].concat()
}

/// A store file with blocks so small that few cells make several, and an index of several levels.
fn file(cells: u32, compression: Compression, encoding: DataBlockEncoding, bloom: BloomType) -> Vec<u8> {
    let family = FamilyDescriptor::new(b"f");
    let options = WriterOptions {
        block_bytes: 256,
        index_block_bytes: 64,
        bloom_chunk_bytes: 64,
        compression,
        encoding,
        bloom,
        // Used by filters of prefixes only.
        bloom_prefix_bytes: 4,
        ..WriterOptions::of_family(&family, Uuid([7; 16]), 1_000, SeqId(99))
    };
    let path = Path::new("/file");
    let disk = SimFs::new(1, SimOptions::default());
    let written = || -> basalt_engine::Result<()> {
        let file = disk
            .open(path, Open::CreateNew)
            .map_err(|source| basalt_engine::Error::io("creating", path, source))?;
        let mut writer = Writer::create(file, path, options)?;
        for number in 0..cells {
            let row = format!("row-{:02}", number / 3);
            let (qualifier, cell_type) = match number % 6 {
                0 => ("", CellType::DeleteFamily),
                4 => ("b", CellType::DeleteColumn),
                odd => (["a", "b", "c"][odd as usize % 3], CellType::Put),
            };
            let key = KeyBuf::new(row.as_bytes(), b"f", qualifier.as_bytes(), 1_000, cell_type);
            let tag = ttl_tag(5_000);
            writer.append(Cell {
                key: key.as_key(),
                value: if cell_type == CellType::Put {
                    b"some value"
                } else {
                    b""
                },
                tags: if number % 5 == 2 { &tag } else { b"" },
                seq: SeqId(u64::from(number % 4)),
            })?;
        }
        writer.finish().map(drop)
    };
    written().expect("a simulated disk without faults takes every file");
    disk.contents(path).expect("just written")
}
