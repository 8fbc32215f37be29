//! Files offered for bulk load.
//!
//! ```text
//! input = as for store files (`hfile`)
//! how   = also 16: the region has the rows from `row-01` to `row-15`, else all rows
//! ```
//!
//! The file is copied as a bulk load does it. The source stays as it is. A refusal leaves no file
//! behind. A copy has the cells of the source, in the region and of the family, without sequence ids.

use std::cell::Cell as StdCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use basalt_engine::cell::{CallMemory, CellCursor as _, KeyBuf};
use basalt_engine::clock::ManualClock;
use basalt_engine::fs::sim::SimFs;
use basalt_engine::fs::{HandleCache, Vfs as _};
use basalt_engine::id::{FileId, SeqId};
use basalt_engine::internals::BlockCache;
use basalt_engine::internals::hfile::{ReadOptions, Reader, ReaderContext};
use basalt_engine::internals::store::{Clip, CopyJob, NewFile, StoreContext, WrittenFile, copy_file};
use basalt_engine::metrics::{Counters, NoListener};
use basalt_engine::schema::{FamilyDescriptor, TableName};

use super::{hash_of, hfile};
use crate::{disk, memory};

/// The region has some rows only.
pub(crate) const CLIPPED: u8 = 16;

const SOURCE: &str = "/offered/file";
const DIR: &str = "/db/tables/default/t/f";
const FAMILY: &[u8] = b"f";
/// Identity of the source while it is read.
const SOURCE_ID: FileId = FileId(1);

/// Buffers of a store file that is written: a block, its packed form, the index and the bloom filter.
const WRITER_BYTES: usize = 1 << 20;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((how, file)) = hfile::file_of(input) else {
        return;
    };
    let disk = disk::with_files(&[(Path::new(SOURCE), &file)]);
    disk.create_dir_all(Path::new(DIR))
        .expect("a disk without faults");
    let context = context(&disk);
    let clip = if how & CLIPPED == 0 {
        Clip::default()
    } else {
        Clip {
            start: b"row-01".to_vec(),
            end: b"row-15".to_vec(),
        }
    };
    let number = StdCell::new(SOURCE_ID.0);
    let copy = || {
        number.set(number.get() + 1);
        copied(&context, &clip, FileId(number.get()))
    };
    // Cells of a block that is prefix-encoded may be many times as long as the block.
    let beside = memory::DECODED_BYTES + hfile::unpacked_bytes(&file) + WRITER_BYTES;
    let copy = memory::bounded(file.len(), beside, copy);
    assert!(
        disk.contents(Path::new(SOURCE)).is_ok_and(|now| now == file),
        "the source was changed"
    );
    let copies = disk.files().iter().filter(|path| path.starts_with(DIR)).count();
    let Ok(copy) = copy else {
        assert_eq!(copies, 0, "a refusal leaves a file behind");
        return;
    };
    let source = Reader::open(SOURCE.into(), SOURCE_ID, context.reader.clone()).expect("it was copied");
    let expected = cells(&source, None).expect("it was copied");
    match copy {
        Some(copy) => check(&copy, &expected, &clip),
        None => assert_eq!((copies, expected.0), (0, 0), "cells were left out"),
    }
}

fn context(disk: &SimFs) -> StoreContext {
    StoreContext {
        vfs: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::at(1_700_000_000_000)),
        reader: ReaderContext {
            handles: HandleCache::new(Arc::new(disk.clone()), usize::MAX),
            cache: Arc::new(BlockCache::new(1 << 20)),
            counters: Arc::new(Counters::default()),
            direct_reads: false,
            calls: CallMemory::default(),
        },
        chunks: Arc::default(),
        removals: Arc::default(),
        listener: Arc::new(NoListener),
    }
}

fn copied(context: &StoreContext, clip: &Clip, id: FileId) -> basalt_engine::Result<Option<WrittenFile>> {
    copy_file(&CopyJob {
        context,
        family: &FamilyDescriptor::new(FAMILY),
        clip,
        source: Path::new(SOURCE),
        leaves_out_others: false,
        source_id: SOURCE_ID,
        target: &NewFile {
            id,
            dir: DIR.into(),
            table: TableName::parse(b"t").expect("a well-formed name"),
        },
        written_at: SeqId(1),
        cancel: &AtomicBool::new(false),
    })
}

fn check(copy: &WrittenFile, expected: &(u64, u64), clip: &Clip) {
    assert!(
        copy.meta.loaded && copy.meta.cells == expected.0,
        "{:?}",
        copy.meta
    );
    let found = cells(&copy.reader, Some(clip)).expect("it was just written");
    assert_eq!(&found, expected, "the copy has other cells");
}

/// Number of cells, and a hash of them without their sequence ids. With `clip`, they must be those
/// of a loaded file.
fn cells(reader: &Arc<Reader>, clip: Option<&Clip>) -> basalt_engine::Result<(u64, u64)> {
    let mut cursor = reader.cursor(ReadOptions::WHOLE_FILE);
    cursor.seek(KeyBuf::first_on_row(b"", FAMILY).as_key())?;
    let (mut count, mut hash) = (0, 0);
    while let Some(cell) = cursor.cell() {
        count += 1;
        hash = hash_of(&(hash, cell.key.bytes(), cell.value, cell.tags));
        if let Some(clip) = clip {
            assert!(clip.contains(cell.key.row()), "a row outside the region");
            assert_eq!((cell.key.family(), cell.seq), (FAMILY, SeqId::ZERO));
        }
        cursor.advance()?;
    }
    Ok((count, hash))
}
