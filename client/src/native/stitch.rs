//! Rows from the parts in which a scanner sends them.
//!
//! A server cuts a row where an answer gets too large, and into pieces where the scan asked for them. A
//! part's flag `partial` means that more of the row may follow: a row that ends exactly at the cut shows it
//! only by the next row or by the end of the region.
//!
//! Without pieces, parts are joined to whole rows. With pieces of n cells, parts are joined and cut anew, so
//! that every piece but a row's last has n cells wherever the server cut.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::row::{Cell, CellKind, Row};

/// Joins the parts of one scan.
#[derive(Debug)]
pub(super) struct Stitcher {
    /// Cells of a piece; `None`: whole rows.
    piece_cells: Option<usize>,
    /// The row that is not whole yet: its cells that are not handed out.
    held: Option<Row>,
    /// The row that is not whole yet, and its last cell that was handed out in a piece.
    handed_out: Option<(Bytes, Cell)>,
    /// Whether a new scanner reads the row from its beginning and has not yet passed that cell.
    is_resumed: bool,
    last_whole: Option<Bytes>,
}

impl Stitcher {
    pub(super) fn new(piece_cells: Option<usize>) -> Stitcher {
        Stitcher {
            piece_cells,
            held: None,
            handed_out: None,
            is_resumed: false,
            last_whole: None,
        }
    }

    /// Adds a part. Appends rows and pieces that are complete, and returns how many rows became
    /// whole.
    pub(super) fn add(&mut self, part: Row, out: &mut Vec<Row>) -> u32 {
        let mut whole = 0;
        if self.current().is_some_and(|row| *row != part.key) {
            whole += self.finish(out);
        }
        let (key, partial) = (part.key.clone(), part.partial);
        let cells = self.without_handed_out(part.cells);
        let held = self.held.get_or_insert_with(|| Row {
            key,
            cells: Vec::new(),
            partial: false,
        });
        if held.cells.is_empty() {
            held.cells = cells;
        } else {
            held.cells.extend(cells);
        }
        self.hand_out_pieces(partial, out);
        if !partial {
            whole += self.finish(out);
        }
        whole
    }

    /// The row that is not whole yet, if there is one, has no further parts. Returns how many rows became
    /// whole.
    pub(super) fn finish(&mut self, out: &mut Vec<Row>) -> u32 {
        let Some(row) = self.current().cloned() else {
            return 0;
        };
        self.last_whole = Some(row);
        self.handed_out = None;
        self.is_resumed = false;
        out.extend(self.held.take().filter(|held| !held.cells.is_empty()));
        1
    }

    /// The last row that became whole in this region.
    pub(super) fn last_whole(&self) -> Option<&Bytes> {
        self.last_whole.as_ref()
    }

    /// The scan goes on at a region's boundary.
    pub(super) fn leave_region(&mut self) {
        self.last_whole = None;
    }

    /// The scanner was lost. Returns the row inside which the scan must go on, if cells of it were handed
    /// out.
    pub(super) fn interrupt(&mut self) -> Option<Bytes> {
        self.held = None;
        self.is_resumed = self.handed_out.is_some();
        self.handed_out.as_ref().map(|(row, _)| row.clone())
    }

    /// Whether a new scanner begins inside a row.
    pub(super) fn is_inside_row(&self) -> bool {
        self.is_resumed
    }

    /// The row that is not whole yet.
    fn current(&self) -> Option<&Bytes> {
        let handed_out = self.handed_out.as_ref().map(|(row, _)| row);
        self.held.as_ref().map(|held| &held.key).or(handed_out)
    }

    /// The cells of a part that were not handed out by an earlier scanner.
    fn without_handed_out(&mut self, mut cells: Vec<Cell>) -> Vec<Cell> {
        if let (true, Some((_, last))) = (self.is_resumed, &self.handed_out) {
            cells.retain(|cell| order(cell, last) == Ordering::Greater);
            self.is_resumed = cells.is_empty();
        }
        cells
    }

    fn hand_out_pieces(&mut self, partial: bool, out: &mut Vec<Row>) {
        let (Some(size), Some(held)) = (self.piece_cells, &mut self.held) else {
            return;
        };
        while held.cells.len() > size || (held.cells.len() == size && partial) {
            let rest = held.cells.split_off(size);
            let cells = std::mem::replace(&mut held.cells, rest);
            self.handed_out = cells.last().map(|cell| (held.key.clone(), cell.clone()));
            out.push(Row {
                key: held.key.clone(),
                cells,
                partial: true,
            });
        }
    }
}

/// HBase's order of cells within a row.
fn order(one: &Cell, other: &Cell) -> Ordering {
    (&one.family, &one.qualifier)
        .cmp(&(&other.family, &other.qualifier))
        .then(other.timestamp.cmp(&one.timestamp))
        .then(code(other.kind).cmp(&code(one.kind)))
}

fn code(kind: CellKind) -> u8 {
    match kind {
        CellKind::Put => 4,
        CellKind::Delete => 8,
        CellKind::DeleteFamilyVersion => 10,
        CellKind::DeleteColumn => 12,
        CellKind::DeleteFamily => 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(key: &'static str, qualifiers: &'static str, partial: bool) -> Row {
        let cell = |qualifier: char| Cell {
            family: Bytes::from("f"),
            qualifier: Bytes::from(qualifier.to_string()),
            value: Bytes::new(),
            timestamp: 1,
            kind: CellKind::Put,
            tags: Bytes::new(),
        };
        Row {
            key: Bytes::from(key),
            cells: qualifiers.chars().map(cell).collect(),
            partial,
        }
    }

    fn show(rows: &[Row]) -> Vec<String> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let cells = |row: &Row| {
            row.cells
                .iter()
                .map(|cell| text(&cell.qualifier))
                .collect::<String>()
        };
        let show = |row: &Row| {
            format!(
                "{}:{}{}",
                text(&row.key),
                cells(row),
                if row.partial { "+" } else { "" }
            )
        };
        rows.iter().map(show).collect()
    }

    #[test]
    fn parts_are_joined_to_rows() {
        let (mut stitcher, mut out) = (Stitcher::new(None), Vec::new());
        assert_eq!(stitcher.add(part("a", "12", true), &mut out), 0);
        assert_eq!(show(&out), [""; 0]);
        assert_eq!(stitcher.add(part("a", "3", false), &mut out), 1);
        assert_eq!(stitcher.add(part("b", "1", true), &mut out), 0);
        assert_eq!(
            stitcher.add(part("c", "1", true), &mut out),
            1,
            "b ended at the cut"
        );
        assert_eq!(stitcher.finish(&mut out), 1);
        assert_eq!(show(&out), ["a:123", "b:1", "c:1"]);
        assert_eq!(stitcher.last_whole(), Some(&Bytes::from("c")));
        assert_eq!(stitcher.finish(&mut out), 0);
    }

    #[test]
    fn a_row_that_is_not_whole_is_read_again() {
        let (mut stitcher, mut out) = (Stitcher::new(None), Vec::new());
        stitcher.add(part("a", "1", false), &mut out);
        stitcher.add(part("b", "12", true), &mut out);
        assert_eq!(stitcher.interrupt(), None, "the scan goes on behind a");
        assert_eq!(stitcher.last_whole(), Some(&Bytes::from("a")));
        stitcher.add(part("b", "123", false), &mut out);
        assert_eq!(show(&out), ["a:1", "b:123"]);
    }

    #[test]
    fn pieces_have_their_size_wherever_the_server_cuts() {
        let (mut stitcher, mut out) = (Stitcher::new(Some(2)), Vec::new());
        assert_eq!(stitcher.add(part("a", "1", true), &mut out), 0);
        assert_eq!(stitcher.add(part("a", "23", true), &mut out), 0);
        assert_eq!(stitcher.add(part("a", "45", false), &mut out), 1);
        assert_eq!(show(&out), ["a:12+", "a:34+", "a:5"]);
        out.clear();
        stitcher.add(part("b", "12", true), &mut out);
        assert_eq!(stitcher.add(part("c", "1", false), &mut out), 2);
        assert_eq!(show(&out), ["b:12+", "c:1"]);
    }

    #[test]
    fn a_scan_in_pieces_goes_on_inside_a_row() {
        let (mut stitcher, mut out) = (Stitcher::new(Some(2)), Vec::new());
        stitcher.add(part("a", "123", true), &mut out);
        assert_eq!(stitcher.interrupt(), Some(Bytes::from("a")));
        assert!(stitcher.is_inside_row());
        assert_eq!(stitcher.interrupt(), Some(Bytes::from("a")), "a second failure");
        stitcher.add(part("a", "12", true), &mut out);
        assert!(stitcher.is_inside_row());
        assert_eq!(stitcher.add(part("a", "345", false), &mut out), 1);
        assert_eq!(show(&out), ["a:12+", "a:34+", "a:5"]);
        assert!(!stitcher.is_inside_row());
    }

    #[test]
    fn a_second_failure_keeps_what_was_handed_out() {
        let (mut stitcher, mut out) = (Stitcher::new(Some(2)), Vec::new());
        stitcher.add(part("a", "12", true), &mut out);
        stitcher.interrupt();
        stitcher.add(part("a", "123", true), &mut out);
        assert_eq!(
            stitcher.interrupt(),
            Some(Bytes::from("a")),
            "3 is not handed out"
        );
        assert_eq!(
            stitcher.add(part("b", "1", false), &mut out),
            2,
            "the rest of a was deleted"
        );
        assert_eq!(show(&out), ["a:12+", "b:1"]);
    }

    #[test]
    fn newer_versions_come_first() {
        let (old, mut new) = (
            part("a", "1", false).cells.remove(0),
            part("a", "1", false).cells.remove(0),
        );
        new.timestamp = 2;
        assert_eq!(order(&new, &old), Ordering::Less);
        new.timestamp = 1;
        new.kind = CellKind::DeleteColumn;
        assert_eq!(order(&new, &old), Ordering::Less);
    }
}
