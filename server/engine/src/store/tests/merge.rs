//! The merge against the simplest model: all cells in one sorted list.

use super::vec_cursor::{FAMILY, VecCursor, sort};
use super::{Random, TextCell, parse_cells};
use crate::cell::{CellCursor, CellType, KeyBuf, compare_keys};
use crate::store::MergeCursor;

fn merge(sources: &[&str]) -> MergeCursor<VecCursor> {
    MergeCursor::new(
        sources
            .iter()
            .map(|cells| VecCursor::new(parse_cells(cells)))
            .collect(),
    )
}

fn rest(cursor: &mut impl CellCursor) -> String {
    let mut all = Vec::new();
    while let Some(cell) = cursor.cell() {
        all.push(TextCell::of(cell).to_string());
        cursor.advance().unwrap();
    }
    all.join(" ")
}

#[test]
fn equal_keys_come_by_sequence_id_then_by_newer_source() {
    let mut cursor = merge(&["r/a/5/P#2=new r/a/4/P=new", "r/a/5/P#3=old r/a/4/P=old"]);
    assert!(cursor.cell().is_none(), "a new cursor stands nowhere");
    cursor.seek(KeyBuf::first_on_row(b"", FAMILY).as_key()).unwrap();
    assert_eq!(
        rest(&mut cursor),
        "r/a/5/P#3=old r/a/5/P#2=new r/a/4/P=new r/a/4/P=old"
    );
}

#[test]
fn a_reversed_step_confines_to_its_row() {
    let mut cursor = merge(&["a//1/P c//1/P=x", "b//1/P c//1/P=y d//1/P", ""]);
    cursor.seek_last_row().unwrap();
    assert_eq!(rest(&mut cursor), "d//1/P");
    cursor.seek_row_before(b"d").unwrap();
    assert_eq!(rest(&mut cursor), "c//1/P=x c//1/P=y");
    cursor.seek_row_before(b"c").unwrap();
    assert_eq!(rest(&mut cursor), "b//1/P");
    cursor.seek_row_before(b"b").unwrap();
    assert_eq!(rest(&mut cursor), "a//1/P");
    cursor.seek_row_before(b"a").unwrap();
    assert_eq!(rest(&mut cursor), "");
    cursor.seek(KeyBuf::first_on_row(b"c", FAMILY).as_key()).unwrap();
    assert_eq!(rest(&mut cursor), "c//1/P=x c//1/P=y d//1/P");
}

/// A reversed scan seeks in each source once per row of that source, not once per row of the merge.
#[test]
fn parked_sources_are_not_touched() {
    let rows: Vec<String> = (10..60).map(|row| format!("r{row}//1/P")).collect();
    let mut cursor = merge(&["r00//1/P r59//1/P", &rows.join(" ")]);
    cursor.seek_last_row().unwrap();
    while let Some(cell) = cursor.cell() {
        let row = cell.key.row().to_vec();
        cursor.seek_row_before(&row).unwrap();
    }
    let steps: Vec<usize> = cursor.children().iter().map(|child| child.steps_back).collect();
    assert_eq!(steps, [3, 51]);
}

/// Cursors that know their bounds are moved when the merge gets there, in either direction.
#[test]
fn sources_ahead_are_not_touched() {
    let mut cursor = merge(&["a//1/P b//1/P", "c//1/P d//1/P", "c//2/P", "e//1/P", "b//2/P"]);
    for child in cursor.children_mut() {
        child.knows_bounds = true;
    }
    let seeks = |cursor: &MergeCursor<VecCursor>| -> Vec<usize> {
        cursor.children().iter().map(|child| child.seeks).collect()
    };
    cursor.seek(KeyBuf::first_on_row(b"a", FAMILY).as_key()).unwrap();
    assert_eq!(seeks(&cursor), [1, 0, 0, 0, 0]);
    cursor.advance().unwrap();
    assert_eq!(TextCell::of(cursor.cell().unwrap()).to_string(), "b//2/P");
    assert_eq!(seeks(&cursor), [1, 0, 0, 0, 1]);
    cursor
        .seek_forward(KeyBuf::first_on_row(b"d", FAMILY).as_key())
        .unwrap();
    assert_eq!(seeks(&cursor), [1, 1, 1, 0, 1]);
    assert_eq!(rest(&mut cursor), "d//1/P e//1/P");
    cursor.seek_last_row().unwrap();
    assert_eq!(seeks(&cursor), [1, 1, 1, 2, 1], "the last of all rows");
    cursor.seek_row_before(b"e").unwrap();
    assert_eq!(rest(&mut cursor), "d//1/P");
    assert_eq!(seeks(&cursor), [1, 2, 1, 3, 1]);
    cursor.seek_row_before(b"d").unwrap();
    assert_eq!(rest(&mut cursor), "c//2/P c//1/P");
    cursor.seek_row_before(b"c").unwrap();
    assert_eq!(rest(&mut cursor), "b//2/P b//1/P");
    cursor.seek(KeyBuf::first_on_row(b"d", FAMILY).as_key()).unwrap();
    assert_eq!(rest(&mut cursor), "d//1/P e//1/P");
}

#[test]
fn the_merge_equals_a_sorted_list() {
    for seed in 0..400 {
        run_seed(seed);
    }
}

fn run_seed(seed: u64) {
    let mut random = Random::new(seed);
    let mut all = Vec::new();
    let mut sources = Vec::new();
    let mut seq = 100_000;
    for _ in 0..random.below(5) {
        let mut cells = Vec::new();
        for _ in 0..random.below(40) {
            seq -= 1;
            cells.push(random_cell(&mut random, seq));
        }
        all.extend(cells.iter().cloned());
        let mut source = VecCursor::new(cells);
        source.knows_bounds = random.one_in(2);
        sources.push(source);
    }
    sort(&mut all);
    let mut model = Model {
        cells: &all,
        at: all.len(),
        row: None,
    };
    let mut cursor = MergeCursor::new(sources);
    for step in 0..120 {
        let target = random_cell(&mut random, 0).key;
        let row = target.as_key().row();
        match random.below(10) {
            0 => {
                cursor.seek(target.as_key()).unwrap();
                model.seek(&target);
            }
            1 => {
                cursor.seek_forward(target.as_key()).unwrap();
                model.seek_forward(&target);
            }
            2 => {
                cursor.seek_row_before(row).unwrap();
                model.step_back(Some(row));
            }
            3 => {
                let here = cursor.cell().map(|cell| cell.key.row().to_vec());
                if let Some(here) = here {
                    cursor.seek_row_before(&here).unwrap();
                    model.step_back(Some(&here));
                }
            }
            4 => {
                cursor.seek_last_row().unwrap();
                model.step_back(None);
            }
            _ => {
                cursor.advance().unwrap();
                model.advance();
            }
        }
        assert_eq!(
            cursor.cell().map(|cell| TextCell::of(cell).to_string()),
            model.cell().map(ToString::to_string),
            "seed {seed}, step {step}"
        );
    }
}

fn random_cell(random: &mut Random, seq: u64) -> TextCell {
    let row = ["a", "ab", "b", "c", "d", "e"][random.below(6)];
    let qualifier = ["", "x", "y"][random.below(3)];
    let cell_type = [CellType::Put, CellType::Delete, CellType::DeleteColumn][random.below(3)];
    TextCell::new(row, qualifier, random.below(5) as i64, cell_type, seq)
}

struct Model<'a> {
    cells: &'a [TextCell],
    at: usize,
    /// After a reversed step: the row it is confined to.
    row: Option<Vec<u8>>,
}

impl Model<'_> {
    fn cell(&self) -> Option<&TextCell> {
        let cell = self.cells.get(self.at)?;
        let confined_elsewhere = self
            .row
            .as_ref()
            .is_some_and(|row| cell.key.as_key().row() != row);
        (!confined_elsewhere).then_some(cell)
    }
    fn advance(&mut self) {
        if self.cell().is_some() {
            self.at += 1;
        }
    }
    fn seek(&mut self, target: &KeyBuf) {
        self.row = None;
        let after = |cell: &TextCell| compare_keys(cell.key.as_key(), target.as_key()).is_ge();
        self.at = self.cells.iter().position(after).unwrap_or(self.cells.len());
    }
    fn seek_forward(&mut self, target: &KeyBuf) {
        while self
            .cell()
            .is_some_and(|cell| compare_keys(cell.key.as_key(), target.as_key()).is_lt())
        {
            self.at += 1;
        }
    }
    fn step_back(&mut self, bound: Option<&[u8]>) {
        let rows = self.cells.iter().map(|cell| cell.key.as_key().row());
        let row = rows.filter(|row| bound.is_none_or(|bound| *row < bound)).max();
        self.at = row.map_or(self.cells.len(), |row| {
            self.cells
                .iter()
                .position(|cell| cell.key.as_key().row() == row)
                .unwrap()
        });
        self.row = row.map(<[u8]>::to_vec);
    }
}
