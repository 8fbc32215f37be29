//! Rows from messages and cell blocks.
//!
//! Results take their cells from the block in the order in which they stand in the message, or have them
//! inside. Values are slices of the response.

use basalt_idl::native::cells::{CellType, Cells, WireCell};
use basalt_idl::native::messages;
use bytes::Bytes;

use crate::row::{Cell, CellKind, Row};

/// The cells of a response.
#[derive(Debug)]
pub(super) struct Block<'a> {
    bytes: &'a Bytes,
    cells: Cells<'a>,
}

impl<'a> Block<'a> {
    pub(super) fn new(bytes: &'a Bytes) -> Block<'a> {
        Block {
            bytes,
            cells: Cells::new(bytes),
        }
    }

    /// A result's row; `None` if it has no cells. The error names the fault in the block.
    pub(super) fn row(&mut self, result: messages::Result) -> Result<Option<Row>, String> {
        let partial = result.partial == Some(true);
        let count = usize::try_from(result.associated_cell_count.unwrap_or_default());
        let count = count.map_err(|_| "a result has a negative number of cells".to_owned())?;
        let mut row = self.take(count)?;
        for cell in result.cell {
            let row = row.get_or_insert_with(|| empty(cell.row.clone().unwrap_or_default()));
            row.cells.push(of_message(cell));
        }
        Ok(row.map(|row| Row { partial, ..row }))
    }

    /// The row of the next cells.
    pub(super) fn take(&mut self, count: usize) -> Result<Option<Row>, String> {
        let mut row: Option<Row> = None;
        for _ in 0..count {
            let cell = self.cells.require().map_err(|error| error.to_string())?;
            let row = row.get_or_insert_with(|| empty(self.bytes.slice_ref(cell.row)));
            row.cells.push(of_wire(self.bytes, &cell));
        }
        Ok(row)
    }
}

fn empty(key: Bytes) -> Row {
    Row {
        key,
        cells: Vec::new(),
        partial: false,
    }
}

fn of_wire(bytes: &Bytes, cell: &WireCell<'_>) -> Cell {
    Cell {
        family: bytes.slice_ref(cell.family),
        qualifier: bytes.slice_ref(cell.qualifier),
        value: bytes.slice_ref(cell.value),
        timestamp: cell.timestamp,
        kind: kind(cell.cell_type),
        tags: bytes.slice_ref(cell.tags),
    }
}

fn of_message(cell: messages::Cell) -> Cell {
    let code = u8::try_from(cell.cell_type.unwrap_or_default()).unwrap_or_default();
    Cell {
        family: cell.family.unwrap_or_default(),
        qualifier: cell.qualifier.unwrap_or_default(),
        value: cell.value.unwrap_or_default(),
        timestamp: cell.timestamp.unwrap_or_default() as i64,
        kind: CellType::from_code(code).map_or(CellKind::Put, kind),
        tags: cell.tags.unwrap_or_default(),
    }
}

fn kind(cell_type: CellType) -> CellKind {
    match cell_type {
        CellType::Put => CellKind::Put,
        CellType::Delete => CellKind::Delete,
        CellType::DeleteFamilyVersion => CellKind::DeleteFamilyVersion,
        CellType::DeleteColumn => CellKind::DeleteColumn,
        CellType::DeleteFamily => CellKind::DeleteFamily,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire<'a>(row: &'a [u8], value: &'a [u8]) -> WireCell<'a> {
        WireCell {
            row,
            family: b"f",
            qualifier: b"q",
            timestamp: 7,
            cell_type: CellType::DeleteColumn,
            value,
            tags: b"",
        }
    }

    #[test]
    fn results_take_their_cells_in_order() {
        let mut block = Vec::new();
        wire(b"a", b"1").encode(&mut block);
        wire(b"b", b"2").encode(&mut block);
        let bytes = Bytes::from(block);
        let mut block = Block::new(&bytes);
        let result = |count| messages::Result {
            associated_cell_count: Some(count),
            ..messages::Result::default()
        };
        assert_eq!(block.row(result(0)).unwrap(), None);
        let row = block.row(result(1)).unwrap().unwrap();
        assert_eq!(
            (row.key, &row.cells[0].value),
            (Bytes::from("a"), &Bytes::from("1"))
        );
        assert_eq!(
            (row.cells[0].kind, row.cells[0].timestamp),
            (CellKind::DeleteColumn, 7)
        );
        let error = block.row(result(2)).unwrap_err();
        assert!(error.contains("ended after 2 cells"), "{error}");
        assert!(Block::new(&bytes).row(result(-1)).is_err());
    }

    #[test]
    fn cells_inside_a_result_make_a_row() {
        let inline = messages::Cell {
            row: Some(Bytes::from("a")),
            value: Some(Bytes::from("v")),
            cell_type: Some(4),
            ..messages::Cell::default()
        };
        let result = messages::Result {
            cell: vec![inline],
            partial: Some(true),
            ..messages::Result::default()
        };
        let row = Block::new(&Bytes::new()).row(result).unwrap().unwrap();
        assert_eq!((row.key, row.partial), (Bytes::from("a"), true));
        assert_eq!(row.cells[0].value, "v");
    }
}
