//! Disk reads and writes of a file, and the advice given to the system.

use super::*;
use crate::fs::advised::Advised;
use crate::fs::{Advice, File};

/// A read that may not touch the disk fails, and succeeds once the blocks are in the cache.
#[test]
fn memory_only_reads_do_not_touch_the_disk() {
    let cells = grid(500, 1);
    let fixture = Fixture::write(
        &cells,
        WriterOptions {
            index_block_bytes: 300,
            ..options()
        },
    );
    let reader = fixture.open().unwrap();
    let memory = ReadOptions {
        memory_only: true,
        charge: None,
        ..reads()
    };
    let target = cells[250].key.as_key();
    let mut cursor = reader.cursor(memory);
    assert!(matches!(cursor.seek(target), Err(Error::NotInMemory)));
    assert!(matches!(
        reader.may_contain_row(target.row(), memory),
        Err(Error::NotInMemory)
    ));
    reader.cursor(reads()).seek(target).unwrap();
    cursor.seek(target).unwrap();
    assert_eq!(cursor.cell().map(OwnedCell::of).as_ref(), Some(&cells[250]));
    // A failed step leaves the cursor where it was.
    let mut failed = false;
    while !failed {
        let before = cursor.cell().map(OwnedCell::of);
        failed = cursor.advance().is_err();
        if failed {
            assert_eq!(cursor.cell().map(OwnedCell::of), before);
        }
    }
    // Scans that must not fill the cache do not.
    let used = reader_usage(
        &fixture,
        ReadOptions {
            cache_blocks: false,
            access: Access::Sequential,
            ..reads()
        },
    );
    assert!(used < reader_usage(&fixture, reads()) / 2);
}

fn reader_usage(fixture: &Fixture, options: ReadOptions) -> u64 {
    let context = context();
    let reader = Reader::open(fixture.path.clone(), FileId(1), context.clone()).unwrap();
    read_all(&reader, options).unwrap();
    context.cache.usage().bytes.iter().sum()
}

/// Chunks of the filter and blocks under the root are looked up in the cache once; from then on the
/// open file owns them, in the cache's account, until it is closed.
#[test]
fn blocks_that_every_read_needs_are_pinned() {
    let cells = grid(2000, 1);
    let fixture = Fixture::write(
        &cells,
        WriterOptions {
            bloom_chunk_bytes: 512,
            index_block_bytes: 2000,
            ..options()
        },
    );
    let context = context();
    let reader = Reader::open(fixture.path.clone(), FileId(1), context.clone()).unwrap();
    assert_eq!(reader.trailer.levels, 2);
    let chunks = reader.blooms()[0].unwrap().chunk_count();
    assert!(chunks > 2, "{chunks}");
    let read = |options: ReadOptions| {
        for cell in &cells {
            let target = cell.key.as_key();
            assert!(reader.may_contain_row(target.row(), options).unwrap());
            let mut cursor = reader.cursor(options);
            cursor.seek(target).unwrap();
            assert_eq!(cursor.cell().unwrap().key.bytes(), target.bytes());
        }
    };
    let scan = ReadOptions {
        access: Access::Sequential,
        ..reads()
    };
    read(scan);
    assert_eq!(context.cache.usage().pinned_bytes, 0, "a scan pins nothing");

    let before = context.cache.usage();
    read(reads());
    let after = context.cache.usage();
    assert!(after.pinned_bytes > 0);
    assert_eq!(
        before.blocks.iter().sum::<u64>() - after.blocks.iter().sum::<u64>(),
        (chunks + reader.root.len()) as u64,
        "a pinned block is in the cache no longer"
    );
    let lookups = |usage: crate::cache::CacheUsage| usage.hits.iter().sum::<u64>() + usage.misses;
    read(reads());
    let data_blocks_only = lookups(context.cache.usage()) - lookups(after);
    assert_eq!(data_blocks_only, cells.len() as u64);

    drop(reader);
    assert_eq!(context.cache.usage().pinned_bytes, 0);
}

/// Goal: a point read costs the disk one block, and a walk keeps it busy. Method: the advice given
/// to the system about the file.
#[test]
fn the_system_reads_ahead_of_walks_only() {
    let cells = grid(40_000, 1);
    let fixture = Fixture::write(&cells, options());
    let file = Advised::new(RealFs.open(&fixture.path, Open::Read).unwrap());
    let as_file = Arc::clone(&file) as Arc<dyn File>;
    let reader = Reader::of(as_file, None, fixture.path.clone(), FileId(1), context()).unwrap();
    assert_eq!(file.take(), [(0, 0, Advice::Random)]);

    let mut cursor = reader.cursor(reads());
    for cell in cells.iter().step_by(1_000) {
        cursor.seek(cell.key.as_key()).unwrap();
    }
    assert_eq!(file.take(), []);

    let end = reader.trailer.load_on_open_offset;
    let walk = ReadOptions {
        access: Access::Sequential,
        cache_blocks: false,
        ..reads()
    };
    assert_eq!(read_all(&reader, walk).unwrap().len(), cells.len());
    let advice = file.take();
    assert!(advice.len() > 2, "{advice:?}");
    for pair in advice.windows(2) {
        // A block that a window cuts is read with the next one.
        let (one, next) = (&pair[0], &pair[1]);
        assert!(one.0 < next.0 && next.0 <= one.1, "{advice:?}");
    }
    assert!(
        advice
            .iter()
            .all(|(from, to, what)| to - from <= 1 << 20 && *what == Advice::WillNeed),
        "{advice:?}"
    );
    assert!(advice[0].0 > 128 << 10, "a short walk reads too much: {advice:?}");
    assert_eq!(advice[advice.len() - 1].1, end);
}

/// Goal: with direct reads, point reads and nothing else go past the page cache. Method: count the
/// reads of the two files of a reader.
#[test]
fn direct_reads_are_those_of_points() {
    let cells = grid(40_000, 1);
    let fixture = Fixture::write(&cells, options());
    let open = |how| Advised::new(RealFs.open(&fixture.path, how).unwrap());
    let (file, direct) = (open(Open::Read), open(Open::Direct));
    let reader = Reader::of(
        Arc::clone(&file) as Arc<dyn File>,
        Some(Arc::clone(&direct) as Arc<dyn File>),
        fixture.path.clone(),
        FileId(1),
        context(),
    )
    .unwrap();
    assert!(file.take_reads() > 0, "the load-on-open section");
    assert_eq!(direct.take_reads(), 0);

    let mut cursor = reader.cursor(reads());
    for cell in cells.iter().step_by(1_000) {
        let row = cell.key.as_key().row();
        assert!(reader.may_contain_row(row, reads()).unwrap());
        cursor.seek(cell.key.as_key()).unwrap();
        assert_eq!(cursor.cell().unwrap().key.bytes(), cell.key.as_key().bytes());
    }
    assert_eq!(file.take_reads(), 0);
    assert!(direct.take_reads() > 0);

    let walk = ReadOptions {
        access: Access::Sequential,
        cache_blocks: false,
        ..reads()
    };
    assert_eq!(read_all(&reader, walk).unwrap().len(), cells.len());
    assert!(file.take_reads() > 0);
    assert_eq!(direct.take_reads(), 0);
}

/// Goal: the sync at the end has little left to write. Method: every byte is advised once, a
/// megabyte at a time.
#[test]
fn written_bytes_are_handed_over_bit_by_bit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store-file");
    let file = Advised::new(RealFs.open(&path, Open::CreateNew).unwrap());
    let as_file = Arc::clone(&file) as Arc<dyn File>;
    let mut writer = Writer::create(as_file, &path, options()).unwrap();
    let value = vec![7; 1 << 10];
    for row in 0..4_000_u32 {
        let key = KeyBuf::new(&row.to_be_bytes(), b"f", b"q", 1, CellType::Put);
        let cell = Cell {
            key: key.as_key(),
            value: &value,
            tags: b"",
            seq: SeqId(1),
        };
        writer.append(cell).unwrap();
    }
    let bytes = writer.finish().unwrap().bytes;
    let ranges = file.ranges(Advice::DontNeed);
    let mut from = 0;
    for range in &ranges {
        assert_eq!(range.0, from);
        from = range.1;
    }
    assert_eq!(from, bytes);
    let (_, full) = ranges.split_last().unwrap();
    assert!(full.len() >= 3, "{ranges:?}");
    assert!(
        full.iter()
            .all(|(from, to)| (1 << 20..2 << 20).contains(&(to - from))),
        "{ranges:?}"
    );
}

/// Goal: reading a row costs exactly the blocks that hold cells of it, also when the row ends with
/// its block or does not exist. Method: blocks are looked up in a cache that has none; how many,
/// for every row and for rows between them, against where the cells are.
#[test]
fn a_row_costs_the_blocks_that_have_it() {
    for columns in [1, 3, 60] {
        let rows = 600 / columns;
        let cells = grid(rows, columns);
        let fixture = Fixture::write(&cells, options());
        let context = context();
        let reader = Reader::open(fixture.path.clone(), FileId(1), context.clone()).unwrap();
        let (mut blocks, mut cursor) = (Vec::new(), reader.cursor(reads()));
        cursor.seek(cells[0].key.as_key()).unwrap();
        while let Some(cell) = cursor.cell() {
            blocks.push((cell.key.row().to_vec(), cursor.block_offset()));
            cursor.advance().unwrap();
        }
        assert_eq!(blocks.len(), cells.len());
        let one_row = ReadOptions {
            access: Access::SingleRow,
            ..reads()
        };
        let usage = || context.cache.usage();
        let lookups = || usage().hits.iter().sum::<u64>() + usage().misses;
        // Index blocks under the root are pinned by now.
        let mut costs_of_rows_there = 0;
        for (number, (row, _)) in blocks.iter().enumerate() {
            if number > 0 && blocks[number - 1].0 == *row {
                continue;
            }
            let mut offsets: Vec<_> = blocks
                .iter()
                .filter(|(other, _)| other == row)
                .map(|(_, at)| *at)
                .collect();
            let count = offsets.len();
            offsets.dedup();
            let before = lookups();
            let mut cursor = reader.cursor(one_row);
            cursor.seek(KeyBuf::first_on_row(row, b"f").as_key()).unwrap();
            for _ in 0..count {
                assert_eq!(cursor.cell().unwrap().key.row(), &row[..]);
                cursor.advance().unwrap();
            }
            assert!(cursor.cell().is_none_or(|cell| cell.key.row() > &row[..]));
            assert_eq!(
                lookups() - before,
                offsets.len() as u64,
                "{row:?} of {columns} columns"
            );
            costs_of_rows_there += offsets.len();

            let absent = [row, &b"-absent"[..]].concat();
            let before = lookups();
            let mut cursor = reader.cursor(one_row);
            cursor.seek(KeyBuf::first_on_row(&absent, b"f").as_key()).unwrap();
            assert!(cursor.cell().is_none_or(|cell| cell.key.row() > &absent[..]));
            assert_eq!(lookups() - before, 1);
        }
        // Some rows must lie in two blocks for the test to be meaningful.
        assert!(costs_of_rows_there > rows, "{columns} columns");
    }
}

proptest! {
    /// Goal: a read of a block past the page cache takes no more sectors than the block's size has, and
    /// blocks do not become small for it.
    /// Method: files of even rows, the sectors that each block lies in. A block may cover more where a cell
    /// takes an eighth of its size and more, and where blocks are compressed.
    #[test]
    fn blocks_cover_no_more_sectors_than_their_size(
        encoding in 0..DataBlockEncoding::ALL.len(), value_bytes in 0_usize..400, kilobytes in 4_usize..40,
    ) {
        let value = vec![b'v'; value_bytes];
        let cells: Vec<OwnedCell> = (0..4000).map(|row| OwnedCell {
            key: KeyBuf::new(format!("row{row:05}").as_bytes(), b"f", b"q", 1000, CellType::Put),
            value: value.clone(),
            tags: Vec::new(),
            seq: SeqId(1),
        }).collect();
        let block_bytes = kilobytes << 10;
        let fixture = Fixture::write(&cells, WriterOptions {
            block_bytes,
            encoding: DataBlockEncoding::ALL[encoding],
            ..options()
        });
        let entries = index_entries(&fixture.open().unwrap(), 0, usize::MAX).unwrap();
        let (_, full) = entries.split_last().unwrap();
        for block in full {
            let (begins, ends) = (block.offset, block.offset + u64::from(block.bytes));
            let sectors = (begins / 512)..ends.div_ceil(512);
            let most = block_bytes as u64 / 512;
            prop_assert!(sectors.end - sectors.start <= most, "{sectors:?} of at most {most}: {block:?}");
        }
        // Keys take 40 bytes a cell in the plain layout, and lengths, the sequence id and a row offset 20
        // more.
        let cells_a_block = cells.len() / entries.len();
        let least = (block_bytes - 512) / (value_bytes + 60) - 2;
        prop_assert!(cells_a_block >= least, "{cells_a_block} of at least {least}");
    }
}
