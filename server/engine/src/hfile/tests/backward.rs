//! Backward walks: their results, in every encoding and mixed with other moves, and their cost.

use super::*;
use crate::fs::advised::Advised;
use crate::fs::{Advice, File};

/// A move of a cursor.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// To the row before the one where it stands.
    Back,
    /// To the row before one of the cells' rows.
    RowBefore(prop::sample::Index),
    LastRow,
    /// This many cells forward.
    Advance(usize),
    Seek(prop::sample::Index),
    SeekForward(prop::sample::Index),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let index = any::<prop::sample::Index>();
    let one = prop_oneof![
        12 => Just(Move::Back),
        2 => index.prop_map(Move::RowBefore),
        1 => Just(Move::LastRow),
        6 => (1_usize..40).prop_map(Move::Advance),
        1 => any::<prop::sample::Index>().prop_map(Move::Seek),
        2 => any::<prop::sample::Index>().prop_map(Move::SeekForward),
    ];
    prop::collection::vec(one, 1..120)
}

/// Rows of few and of many cells, small and large.
fn uneven_rows() -> impl Strategy<Value = Vec<OwnedCell>> {
    let cells = prop_oneof![6 => Just(1_usize), 3 => 2_usize..6, 1 => 20_usize..90];
    let value_bytes = prop_oneof![4 => 0_usize..20, 1 => 200_usize..900];
    let tombstone = prop::sample::select(vec![
        None,
        None,
        Some(CellType::DeleteFamily),
        Some(CellType::DeleteFamilyVersion),
    ]);
    prop::collection::vec((cells, value_bytes, tombstone), 1..90).prop_map(|rows| {
        let mut all = Vec::new();
        for (number, (cells, value_bytes, tombstone)) in rows.into_iter().enumerate() {
            // Some rows begin with the row before.
            let name = format!("row{:03}{}", number / 2, "x".repeat(number % 2 * 3));
            let cell = |qualifier: &str, time, cell_type, value| OwnedCell {
                key: KeyBuf::new(name.as_bytes(), b"f", qualifier.as_bytes(), time, cell_type),
                value,
                tags: Vec::new(),
                seq: SeqId(number as u64 * 300),
            };
            if let Some(tombstone) = tombstone {
                all.push(cell("", 50, tombstone, Vec::new()));
            }
            for column in 0..cells {
                let qualifier = format!("q{column:03}");
                all.push(cell(&qualifier, 40, CellType::Put, vec![b'v'; value_bytes]));
            }
        }
        sort(&mut all);
        all
    })
}

/// The first cell of the greatest row before `row`.
fn row_before(cells: &[OwnedCell], row: Option<&[u8]>) -> usize {
    let mut rows = cells.iter().map(|cell| cell.key.as_key().row());
    let greatest = rows.rfind(|at| row.is_none_or(|row| *at < row));
    greatest.map_or(cells.len(), |greatest| {
        let starts = cells.iter().position(|cell| cell.key.as_key().row() == greatest);
        starts.unwrap()
    })
}

fn first_not_before(cells: &[OwnedCell], target: Key<'_>) -> usize {
    cells.partition_point(|cell| compare_keys(cell.key.as_key(), target).is_lt())
}

/// Makes the moves with a cursor and, for comparison, in the list of cells. `at` is the cell where
/// the cursor stands, or their number.
fn check_moves(reader: &Arc<Reader>, options: ReadOptions, cells: &[OwnedCell], moves: &[Move]) {
    let mut cursor = reader.cursor(options);
    cursor.seek_last_row().unwrap();
    let mut at = row_before(cells, None);
    for (number, step) in moves.iter().enumerate() {
        match *step {
            Move::Back => {
                let Some(here) = cells.get(at) else { continue };
                cursor.seek_row_before(here.key.as_key().row()).unwrap();
                at = row_before(cells, Some(here.key.as_key().row()));
            }
            Move::RowBefore(index) => {
                let row = index.get(cells).key.as_key().row();
                cursor.seek_row_before(row).unwrap();
                at = row_before(cells, Some(row));
            }
            Move::LastRow => {
                cursor.seek_last_row().unwrap();
                at = row_before(cells, None);
            }
            Move::Advance(count) => {
                (0..count).for_each(|_| cursor.advance().unwrap());
                at = cells.len().min(at + count);
            }
            Move::Seek(index) => {
                let target = index.get(cells).key.as_key();
                cursor.seek(target).unwrap();
                at = first_not_before(cells, target);
            }
            Move::SeekForward(index) => {
                let target = index.get(cells).key.as_key();
                cursor.seek_forward(target).unwrap();
                at = at.max(first_not_before(cells, target));
            }
        }
        let found = cursor.cell().map(OwnedCell::of);
        assert_eq!(found.as_ref(), cells.get(at), "move {number}: {step:?}");
    }
}

/// Rows with their cells, from the last row to the first, as a reversed scan reads them.
fn read_backward(reader: &Arc<Reader>, options: ReadOptions) -> Vec<Vec<OwnedCell>> {
    let mut cursor = reader.cursor(options);
    cursor.seek_last_row().unwrap();
    let mut rows = Vec::new();
    while let Some(cell) = cursor.cell() {
        let row = cell.key.row().to_vec();
        let mut cells = Vec::new();
        while let Some(cell) = cursor.cell().filter(|cell| cell.key.row() == row) {
            cells.push(OwnedCell::of(cell));
            cursor.advance().unwrap();
        }
        rows.push(cells);
        cursor.seek_row_before(&row).unwrap();
    }
    rows
}

fn check_backward(reader: &Arc<Reader>, options: ReadOptions, cells: &[OwnedCell]) {
    let rows = cells.chunk_by(|one, next| one.key.as_key().row() == next.key.as_key().row());
    let mut expected: Vec<Vec<OwnedCell>> = rows.map(<[OwnedCell]>::to_vec).collect();
    expected.reverse();
    assert_eq!(read_backward(reader, options), expected);
}

/// The options of a scan that reads each block from disk.
fn walk() -> ReadOptions {
    ReadOptions {
        access: Access::Sequential,
        cache_blocks: false,
        ..reads()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Goal: in any mix of steps back and other moves, each ends where it does in a sorted list.
    /// Blocks and index blocks are small, so that rows cross them.
    #[test]
    fn moves_in_any_order_are_those_in_a_list(cells in prop_oneof![uneven_rows(), arbitrary_cells()], moves in moves(), encoding in 0_usize..5,
                                              block_bytes in 60_usize..1500, index_block_bytes in 60_usize..600) {
        prop_assume!(!cells.is_empty());
        let fixture = Fixture::write(&cells, WriterOptions {
            encoding: DataBlockEncoding::ALL[encoding],
            block_bytes,
            index_block_bytes,
            ..options()
        });
        let reader = fixture.open().unwrap();
        for options in [walk(), reads()] {
            check_moves(&reader, options, &cells, &moves);
            check_backward(&reader, options, &cells);
        }
    }
}

/// A file without cells has no row before any.
#[test]
fn an_empty_file_ends_at_once() {
    let fixture = Fixture::write(&[], options());
    let reader = fixture.open().unwrap();
    assert!(read_backward(&reader, walk()).is_empty());
    let mut cursor = reader.cursor(walk());
    cursor.seek_row_before(b"z").unwrap();
    assert!(cursor.cell().is_none());
}

/// A step back that would have to read from disk fails and leaves the cursor unchanged; once the
/// block is in memory, the same step succeeds.
#[test]
fn a_failed_step_back_can_be_repeated() {
    let cells = grid(300, 2);
    let fixture = Fixture::write(&cells, options());
    let reader = fixture.open().unwrap();
    let memory = ReadOptions {
        memory_only: true,
        ..reads()
    };
    let last = cells.last().unwrap().key.as_key().row().to_vec();
    reader.cursor(reads()).seek_row_before(&last).unwrap();
    reader.cursor(reads()).seek_last_row().unwrap();
    let mut cursor = reader.cursor(memory);
    cursor.seek_last_row().unwrap();
    let (mut rows, mut failures) = (1, 0);
    while let Some(cell) = cursor.cell() {
        let (row, before) = (cell.key.row().to_vec(), OwnedCell::of(cell));
        match cursor.seek_row_before(&row) {
            Ok(()) => rows += 1,
            Err(Error::NotInMemory) => {
                assert_eq!(cursor.cell().map(OwnedCell::of), Some(before));
                failures += 1;
                reader.cursor(reads()).seek_row_before(&row).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(rows, 301, "the last step finds nothing");
    assert!(failures > 10, "{failures}");
}

/// Goal: a walk backward takes each block once, from the disk or from the cache, even where a row
/// spans two blocks. Method: count the lookups in a cache that gets no blocks.
#[test]
fn a_walk_backward_takes_each_block_once() {
    for &encoding in DataBlockEncoding::ALL {
        let cells = grid(2_000, 3);
        let fixture = Fixture::write(
            &cells,
            WriterOptions {
                encoding,
                ..options()
            },
        );
        let lookups = |read: &dyn Fn(&Arc<Reader>)| {
            let context = context();
            let reader = Reader::open(fixture.path.clone(), FileId(1), context.clone()).unwrap();
            read(&reader);
            let usage = context.cache.usage();
            usage.hits.iter().sum::<u64>() + usage.misses
        };
        let forward = lookups(&|reader| assert_eq!(read_all(reader, walk()).unwrap(), cells));
        let backward = lookups(&|reader| check_backward(reader, walk(), &cells));
        assert!(forward > 20);
        assert!(
            backward <= forward + 2,
            "{encoding}: {backward} backward, {forward} forward"
        );
    }
}

/// Goal: a walk backward keeps the disk as busy as one forward. Method: count the reads of the
/// file, and check the advice given to the system.
#[test]
fn the_system_reads_ahead_of_walks_backward() {
    let cells = grid(40_000, 1);
    let fixture = Fixture::write(&cells, options());
    let file = Advised::new(RealFs.open(&fixture.path, Open::Read).unwrap());
    let as_file = Arc::clone(&file) as Arc<dyn File>;
    let reader = Reader::of(as_file, None, fixture.path.clone(), FileId(1), context()).unwrap();
    assert_eq!(file.take(), [(0, 0, Advice::Random)]);
    file.take_reads();
    read_all(&reader, walk()).unwrap();
    let (forward_reads, end) = (file.take_reads(), reader.trailer.load_on_open_offset);
    file.take();

    check_backward(&reader, walk(), &cells);
    let (reads, advice) = (file.take_reads(), file.take());
    assert!(
        reads <= 2 * forward_reads,
        "{reads} reads, forward {forward_reads}"
    );
    assert!(advice.len() > 2, "{advice:?}");
    for pair in advice.windows(2) {
        // A block that is cut by a window is read with the next one.
        let (one, next) = (&pair[0], &pair[1]);
        assert!(next.0 < one.0 && next.1 >= one.0, "{advice:?}");
    }
    assert!(
        advice
            .iter()
            .all(|(from, to, what)| to - from <= 1 << 20 && *what == Advice::WillNeed),
        "{advice:?}"
    );
    assert!(
        advice[0].1 < end - (128 << 10),
        "a short walk reads too much: {advice:?}"
    );
    assert_eq!(advice[advice.len() - 1].0, 0);
}
