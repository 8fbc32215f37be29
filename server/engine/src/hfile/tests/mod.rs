//! Files are written and read back through the public interface, on the real file system.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::cell::{CallMemory, Cell, CellCursor, CellType, Key, compare_keys, put_tag};
use crate::error::{Error, Result};
use crate::fs::{Open, RealFs, Vfs};
use crate::id::FileId;

mod backward;
mod damage;
mod disk;

/// A cell with its own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedCell {
    key: KeyBuf,
    value: Vec<u8>,
    tags: Vec<u8>,
    seq: SeqId,
}

impl OwnedCell {
    fn of(cell: Cell<'_>) -> Self {
        Self {
            key: KeyBuf::copy_of(cell.key),
            value: cell.value.to_vec(),
            tags: cell.tags.to_vec(),
            seq: cell.seq,
        }
    }

    fn as_cell(&self) -> Cell<'_> {
        Cell {
            key: self.key.as_key(),
            value: &self.value,
            tags: &self.tags,
            seq: self.seq,
        }
    }
}

fn sort(cells: &mut [OwnedCell]) {
    cells.sort_by(|left, right| {
        compare_keys(left.key.as_key(), right.key.as_key()).then(right.seq.cmp(&left.seq))
    });
}

fn options() -> WriterOptions {
    WriterOptions {
        block_bytes: 1024,
        // Used by filters of prefixes only.
        bloom_prefix_bytes: 4,
        ..WriterOptions::of_family(&FamilyDescriptor::new(b"f"), Uuid([7; 16]), 1_000, SeqId(99))
    }
}

fn reads() -> ReadOptions {
    ReadOptions {
        cache_blocks: true,
        priority: Priority::Single,
        memory_only: false,
        charge: None,
        access: Access::Random,
    }
}

fn context() -> ReaderContext {
    ReaderContext {
        handles: HandleCache::new(Arc::new(RealFs), usize::MAX),
        cache: Arc::new(BlockCache::new(64 << 20)),
        counters: Arc::new(Counters::default()),
        direct_reads: false,
        calls: CallMemory::default(),
    }
}

/// A directory with one store file in it.
struct Fixture {
    _dir: tempfile::TempDir,
    path: PathBuf,
    written: FileSummary,
}

impl Fixture {
    fn write(cells: &[OwnedCell], options: WriterOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store-file");
        let file = RealFs.open(&path, Open::CreateNew).unwrap();
        let mut writer = Writer::create(file, &path, options).unwrap();
        for cell in cells {
            writer.append(cell.as_cell()).unwrap();
        }
        let written = writer.finish().unwrap();
        assert_eq!(written.cells, cells.len() as u64);
        Self {
            _dir: dir,
            path,
            written,
        }
    }

    fn open(&self) -> Result<Arc<Reader>> {
        Reader::open(self.path.clone(), FileId(1), context())
    }

    fn bytes(&self) -> Vec<u8> {
        let file = RealFs.open(&self.path, Open::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    fn overwrite(&self, bytes: &[u8], offset: u64) {
        RealFs
            .open(&self.path, Open::Write)
            .unwrap()
            .write_at(bytes, offset)
            .unwrap();
    }
}

fn start() -> KeyBuf {
    KeyBuf::first_on_row(b"", b"")
}

fn read_all(reader: &Arc<Reader>, options: ReadOptions) -> Result<Vec<OwnedCell>> {
    let mut cursor = reader.cursor(options);
    cursor.seek(start().as_key())?;
    let mut cells = Vec::new();
    while let Some(cell) = cursor.cell() {
        cells.push(OwnedCell::of(cell));
        cursor.advance()?;
    }
    Ok(cells)
}

/// `rows` rows of `columns` columns with predictable content; every seventh row begins with a family
/// tombstone.
fn grid(rows: usize, columns: usize) -> Vec<OwnedCell> {
    let mut cells = Vec::new();
    for row in 0..rows {
        let name = format!("row{row:05}");
        if row % 7 == 3 {
            cells.push(OwnedCell {
                key: KeyBuf::new(name.as_bytes(), b"f", b"", 50, CellType::DeleteFamily),
                value: Vec::new(),
                tags: Vec::new(),
                seq: SeqId(3),
            });
        }
        for column in 0..columns {
            let mut tags = Vec::new();
            if (row + column) % 5 == 0 {
                put_tag(&mut tags, 8, &(row as i64).to_be_bytes());
            }
            cells.push(OwnedCell {
                key: KeyBuf::new(
                    name.as_bytes(),
                    b"f",
                    format!("q{column:03}").as_bytes(),
                    1000 + row as i64,
                    CellType::Put,
                ),
                value: format!("value {row} {column}").into_bytes(),
                tags,
                seq: SeqId((row * columns + column) as u64),
            });
        }
    }
    sort(&mut cells);
    cells
}

fn arbitrary_cells() -> impl Strategy<Value = Vec<OwnedCell>> {
    let types = prop::sample::select(vec![
        CellType::Put,
        CellType::Put,
        CellType::Put,
        CellType::Delete,
        CellType::DeleteColumn,
        CellType::DeleteFamily,
        CellType::DeleteFamilyVersion,
    ]);
    let cell = (
        "[ab\u{0}\u{7f}]{1,5}",
        "[ab]{0,3}",
        prop_oneof![0_i64..5, any::<i64>(), 1_700_000_000_000_i64..1_700_000_100_000],
        types,
        prop::collection::vec(0_u8..3, 0..12),
        prop::collection::vec(any::<u8>(), 0..4),
        0_u64..1 << 40,
    );
    prop::collection::vec(cell, 0..200).prop_map(|cells| {
        let mut cells: Vec<OwnedCell> = cells
            .into_iter()
            .map(|(row, qualifier, time, cell_type, value, tag, seq)| {
                let family_wide = matches!(cell_type, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
                let qualifier = if family_wide { "" } else { &qualifier };
                let mut tags = Vec::new();
                if tag.len() > 1 {
                    put_tag(&mut tags, 8, &tag);
                }
                OwnedCell {
                    key: KeyBuf::new(row.as_bytes(), b"f", qualifier.as_bytes(), time, cell_type),
                    value,
                    tags,
                    seq: SeqId(seq),
                }
            })
            .collect();
        sort(&mut cells);
        cells
    })
}

/// Compares every kind of seek with the same question to the sorted vector.
fn check_seeks(reader: &Arc<Reader>, cells: &[OwnedCell], targets: &[KeyBuf]) {
    let mut cursor = reader.cursor(reads());
    for target in targets {
        let target = target.as_key();
        let expected = cells
            .iter()
            .find(|cell| compare_keys(cell.key.as_key(), target).is_ge());
        cursor.seek(target).unwrap();
        assert_eq!(
            cursor.cell().map(OwnedCell::of).as_ref(),
            expected,
            "seek {target:?}"
        );

        cursor.seek_row_before(target.row()).unwrap();
        let row = cells
            .iter()
            .map(|cell| cell.key.as_key().row())
            .rfind(|row| *row < target.row());
        let expected = row.and_then(|row| cells.iter().find(|cell| cell.key.as_key().row() == row));
        assert_eq!(
            cursor.cell().map(OwnedCell::of).as_ref(),
            expected,
            "row before {target:?}"
        );
    }
    cursor.seek_last_row().unwrap();
    let last = cells.last().map(|cell| cell.key.as_key().row());
    let expected = last.and_then(|row| cells.iter().find(|cell| cell.key.as_key().row() == row));
    assert_eq!(cursor.cell().map(OwnedCell::of).as_ref(), expected, "last row");

    // Forward seeks to rising targets, from a new cursor.
    let mut cursor = reader.cursor(reads());
    let mut targets: Vec<Key<'_>> = targets.iter().map(KeyBuf::as_key).collect();
    targets.sort_by(|left, right| compare_keys(*left, *right));
    for target in targets {
        let expected = cells
            .iter()
            .find(|cell| compare_keys(cell.key.as_key(), target).is_ge());
        cursor.seek_forward(target).unwrap();
        assert_eq!(
            cursor.cell().map(OwnedCell::of).as_ref(),
            expected,
            "forward to {target:?}"
        );
    }
}

/// Keys at, before and after each cell, and beyond both ends.
fn targets(cells: &[OwnedCell]) -> Vec<KeyBuf> {
    let mut targets = vec![start(), KeyBuf::first_on_row(&[0xff; 3], b"f")];
    for cell in cells {
        let key = cell.key.as_key();
        targets.push(cell.key.clone());
        targets.push(KeyBuf::first_on_row(key.row(), key.family()));
        targets.push(KeyBuf::last_on_column(key.row(), key.family(), key.qualifier()));
        targets.push(KeyBuf::first_on_row(&[key.row(), b"\0"].concat(), key.family()));
    }
    targets
}

/// A file written in each way returns the same cells to each way of reading, and verifies.
#[test]
fn every_combination_round_trips() {
    let cells = grid(120, 3);
    for &encoding in DataBlockEncoding::ALL {
        for &compression in Compression::ALL {
            for &bloom in BloomType::ALL {
                let fixture = Fixture::write(
                    &cells,
                    WriterOptions {
                        compression,
                        encoding,
                        bloom,
                        ..options()
                    },
                );
                let reader = fixture.open().unwrap();
                reader.verify(Some(fixture.written.checksum)).unwrap();
                for access in [Access::Random, Access::Sequential] {
                    let reads = ReadOptions {
                        access,
                        cache_blocks: access == Access::Random,
                        ..reads()
                    };
                    assert_eq!(
                        read_all(&reader, reads).unwrap(),
                        cells,
                        "{encoding} {compression} {bloom}"
                    );
                }
                let properties = reader.properties();
                assert_eq!(
                    (properties.encoding, properties.compression),
                    (encoding, compression)
                );
                assert_eq!((properties.bloom, properties.cells), (bloom, cells.len() as u64));
                assert_eq!(fixture.written.bytes, properties.file_bytes);
                assert_eq!(properties.time_range, Some((50, 1119)));
                assert_eq!(
                    (properties.earliest_put, properties.delete_family_cells),
                    (Some(1000), 17)
                );
                assert_eq!(
                    fixture.written.keys,
                    properties.first_key.clone().zip(properties.last_key.clone())
                );
            }
        }
    }
}

/// A file without tags is two bytes a cell shorter in the plain layouts, one in the others, and
/// refuses cells with tags.
#[test]
fn without_tags_there_is_no_room_for_them() {
    let tagged = grid(120, 3);
    let cells: Vec<OwnedCell> = tagged
        .iter()
        .map(|cell| OwnedCell {
            tags: Vec::new(),
            ..cell.clone()
        })
        .collect();
    for &encoding in DataBlockEncoding::ALL {
        let bytes = [true, false].map(|tags| {
            let options = WriterOptions {
                encoding,
                tags,
                // One block: how many cells fit into one depends on their bytes.
                block_bytes: 1 << 20,
                ..options()
            };
            let fixture = Fixture::write(&cells, options);
            let reader = fixture.open().unwrap();
            reader.verify(Some(fixture.written.checksum)).unwrap();
            assert_eq!(read_all(&reader, reads()).unwrap(), cells, "{encoding} {tags}");
            assert!(!reader.properties().tags);
            let (first, _) = reader.trailer.data_blocks.unwrap();
            reader.trailer.load_on_open_offset - first
        });
        let saved = match encoding {
            DataBlockEncoding::None | DataBlockEncoding::RowIndexV1 => 2,
            _ => 1,
        };
        assert!(
            bytes[0] - bytes[1] >= saved * cells.len() as u64,
            "{encoding}: {bytes:?}"
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store-file");
    let file = RealFs.open(&path, Open::CreateNew).unwrap();
    let options = WriterOptions {
        tags: false,
        ..options()
    };
    let mut writer = Writer::create(file, &path, options).unwrap();
    let cell = tagged.iter().find(|cell| !cell.tags.is_empty()).unwrap();
    let error = writer.append(cell.as_cell()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("has tags, and the file was begun without"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_cells_round_trip_and_seek(cells in arbitrary_cells(), encoding in 0_usize..5, compression in 0_usize..5,
                                        bloom in 0_usize..BloomType::ALL.len(), block_bytes in 60_usize..2000, index_block_bytes in 60_usize..600) {
        let fixture = Fixture::write(&cells, WriterOptions {
            encoding: DataBlockEncoding::ALL[encoding],
            compression: Compression::ALL[compression],
            bloom: BloomType::ALL[bloom],
            block_bytes,
            index_block_bytes,
            bloom_chunk_bytes: 128,
            ..options()
        });
        let reader = fixture.open().unwrap();
        reader.verify(Some(fixture.written.checksum)).unwrap();
        prop_assert_eq!(&read_all(&reader, reads()).unwrap(), &cells);
        let targets: Vec<KeyBuf> = targets(&cells).into_iter().step_by(3).collect();
        check_seeks(&reader, &cells, &targets);
    }
}

/// With index blocks of a few hundred bytes the index has several levels; seeks and steps pass
/// through all of them.
#[test]
fn an_index_of_many_levels_is_walked() {
    let cells = grid(3000, 1);
    let fixture = Fixture::write(
        &cells,
        WriterOptions {
            block_bytes: 60,
            index_block_bytes: 200,
            ..options()
        },
    );
    let reader = fixture.open().unwrap();
    assert!(reader.trailer.levels >= 4, "{} levels", reader.trailer.levels);
    reader.verify(Some(fixture.written.checksum)).unwrap();
    assert_eq!(read_all(&reader, reads()).unwrap(), cells);
    let targets: Vec<KeyBuf> = targets(&cells).into_iter().step_by(37).collect();
    check_seeks(&reader, &cells, &targets);
    let middle = reader.mid_key().unwrap().unwrap();
    let position = cells.partition_point(|cell| compare_keys(cell.key.as_key(), middle.as_key()).is_lt());
    assert!(
        (cells.len() * 4 / 10..cells.len() * 6 / 10).contains(&position),
        "{position}"
    );
}

#[test]
fn a_file_without_cells_can_be_read() {
    for &encoding in DataBlockEncoding::ALL {
        for &compression in Compression::ALL {
            let fixture = Fixture::write(
                &[],
                WriterOptions {
                    compression,
                    encoding,
                    ..options()
                },
            );
            let reader = fixture.open().unwrap();
            reader.verify(Some(fixture.written.checksum)).unwrap();
            assert_eq!(read_all(&reader, reads()).unwrap(), []);
            check_seeks(&reader, &[], &targets(&[]));
            assert_eq!(reader.mid_key().unwrap(), None);
            assert!(!reader.may_contain_row(b"row", reads()).unwrap());
            assert_eq!(fixture.written.keys, None);
        }
    }
}

/// Bloom filters never deny a key that is present, mostly deny absent ones, and count their
/// answers.
#[test]
fn bloom_filters_answer() {
    let cells = grid(2000, 2);
    for bloom in [BloomType::Row, BloomType::RowCol] {
        let fixture = Fixture::write(
            &cells,
            WriterOptions {
                bloom,
                bloom_chunk_bytes: 512,
                ..options()
            },
        );
        let context = context();
        let reader = Reader::open(fixture.path.clone(), FileId(1), context.clone()).unwrap();
        for cell in &cells {
            let key = cell.key.as_key();
            assert!(reader.may_contain_row(key.row(), reads()).unwrap());
            assert!(
                reader
                    .may_contain_column(key.row(), b"f", key.qualifier(), reads())
                    .unwrap()
            );
        }
        let asked = context.counters.bloom_checks.get();
        assert!(asked >= cells.len() as u64, "{asked}");
        assert_eq!(context.counters.bloom_skips.get(), 0);
        let mut wrong = 0;
        for row in 0..2000 {
            let (row, qualifier) = match bloom {
                BloomType::Row => (format!("row{row:05}x"), "q000"),
                _ => (format!("row{row:05}"), "q002"),
            };
            let tombstone = cells.iter().any(|cell| {
                cell.key.as_key().row() == row.as_bytes() && cell.key.as_key().qualifier().is_empty()
            });
            let found = reader
                .may_contain_column(row.as_bytes(), b"f", qualifier.as_bytes(), reads())
                .unwrap();
            assert!(found || !tombstone, "a family tombstone was denied");
            wrong += usize::from(found && !tombstone);
        }
        assert!(wrong < 100, "{bloom}: {wrong} of 2000");
        assert!(context.counters.bloom_skips.get() > 1000);
        assert!(
            !reader.may_contain_row(b"a", reads()).unwrap(),
            "before the first row"
        );
        assert!(
            !reader.may_contain_row(b"z", reads()).unwrap(),
            "after the last row"
        );
    }
}

#[test]
fn wrong_order_and_foreign_families_are_refused() {
    let cells = grid(2, 1);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let file = RealFs.open(&path, Open::CreateNew).unwrap();
    let mut writer = Writer::create(file, &path, options()).unwrap();
    writer.append(cells[1].as_cell()).unwrap();
    let error = writer.append(cells[0].as_cell()).unwrap_err();
    assert!(error.to_string().contains("sorts before"), "{error}");
    let foreign = KeyBuf::new(b"z", b"g", b"", 1, CellType::Put);
    let error = writer
        .append(Cell {
            key: foreign.as_key(),
            value: b"",
            tags: b"",
            seq: SeqId(1),
        })
        .unwrap_err();
    assert!(error.to_string().contains("family"), "{error}");
}

#[test]
fn dump_prints_cells_for_people() {
    let fixture = Fixture::write(&grid(4, 1), options());
    let mut out = Vec::new();
    dump(&fixture.open().unwrap(), true, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for expected in [
        "cells                 5",
        "basalt.UUID = ",
        "row00003/f:/50/DeleteFamily/seq=3",
        "row00001/f:q000/1001/Put/seq=1 value=value 1 0",
        "bloom filter: 4 keys",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

/// Pages of the block index, together, are the data blocks in their order, whatever the number of levels.
#[test]
fn the_block_index_is_shown_in_pages() {
    for index_block_bytes in [100, 600, 1 << 20] {
        let fixture = Fixture::write(
            &grid(300, 2),
            WriterOptions {
                block_bytes: 200,
                index_block_bytes,
                ..options()
            },
        );
        let reader = fixture.open().unwrap();
        let all = index_entries(&reader, 0, usize::MAX).unwrap();
        assert!(all.len() > 40, "{} blocks", all.len());
        assert!(all.windows(2).all(|pair| pair[0].offset < pair[1].offset
            && compare_keys(pair[0].key.as_key(), pair[1].key.as_key()).is_lt()));
        let ends = (all[0].offset, all[all.len() - 1].offset);
        assert_eq!(reader.trailer.data_blocks, Some(ends));
        for per_page in [1, 7, 40] {
            let mut pages = Vec::new();
            while let Some(page) =
                Some(index_entries(&reader, pages.len(), per_page).unwrap()).filter(|page| !page.is_empty())
            {
                assert!(page.len() <= per_page);
                pages.extend(page);
            }
            assert_eq!(pages, all, "{per_page} a page, {} levels", reader.trailer.levels);
        }
    }
}
