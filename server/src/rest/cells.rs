//! Cells and columns between the engine's form and that of bodies.

use basalt_engine::cell::{Cell, CellBatch, RowView};
use basalt_engine::op::FamilySelection;
use basalt_rest::media::Media;
use basalt_rest::model::writer::{CellRef, CellSetWriter};
use basalt_rest::row_path::Column;
use bytes::Bytes;

use crate::service::arguments;

/// The selection of these columns.
pub(super) fn select(columns: &[Column]) -> Vec<FamilySelection> {
    arguments::select(columns.iter().map(|column| {
        let qualifier = column.qualifier.as_ref();
        (
            Bytes::from(column.family.clone()),
            qualifier.map(|qualifier| Bytes::from(qualifier.clone())),
        )
    }))
}

/// A cell as answers have it.
fn cell_ref(cell: Cell<'_>) -> CellRef<'_> {
    CellRef {
        family: cell.key.family(),
        qualifier: cell.key.qualifier(),
        timestamp: cell.key.timestamp(),
        value: cell.value,
    }
}

/// The cells of a row. Cloned, since protobuf has the length of a row in front of it.
pub(super) fn cells<'b>(row: &RowView<'b>) -> impl Iterator<Item = CellRef<'b>> + Clone + use<'b> {
    let cells: Vec<CellRef<'b>> = row.cells().map(cell_ref).collect();
    cells.into_iter()
}

/// The rows of a batch as a whole body.
pub(super) fn encode(media: Media, batch: &CellBatch) -> Vec<u8> {
    let mut writer = CellSetWriter::new(media);
    let mut out = Vec::with_capacity(batch.data_bytes() * 2);
    for row in batch.rows() {
        // Only frames have a limit.
        let written = writer.row(row.key(), cells(&row), &mut out);
        debug_assert!(
            written.is_ok(),
            "a body that is no sequence of frames has no limit"
        );
    }
    writer.finish(&mut out);
    out
}
