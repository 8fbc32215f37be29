//! Rows of the client as the batch of an answer.

use basalt_client::{Cell as Received, CellKind, Row};
use basalt_engine::cell::{Cell, CellBatch, CellType, KeyBuf};
use basalt_engine::id::SeqId;

use crate::service::Failure;

/// Appends a row. Fails if there is no memory for it.
pub(super) fn add(batch: &mut CellBatch, row: &Row) -> Result<(), Failure> {
    for Received {
        family,
        qualifier,
        value,
        timestamp,
        kind,
        tags,
    } in &row.cells
    {
        let key = KeyBuf::new(&row.key, family, qualifier, *timestamp, cell_type(*kind));
        batch.add(Cell {
            key: key.as_key(),
            value,
            tags,
            seq: SeqId(0),
        })?;
    }
    batch.end_row(row.partial);
    Ok(())
}

fn cell_type(kind: CellKind) -> CellType {
    match kind {
        CellKind::Put => CellType::Put,
        CellKind::Delete => CellType::Delete,
        CellKind::DeleteFamilyVersion => CellType::DeleteFamilyVersion,
        CellKind::DeleteColumn => CellType::DeleteColumn,
        CellKind::DeleteFamily => CellType::DeleteFamily,
    }
}
