//! Sizes of cells in HBase's form (`KeyValueUtil.length`), by which calls are charged.

use basalt_engine::op::{ReplicatedRow, RowMutation, RowUpdate, Write};

/// Bytes of a cell besides its parts, in HBase's form.
const CELL_BYTES: usize = 20;

pub(super) fn cell_bytes(row: &[u8], family: &[u8], qualifier: &[u8], value: &[u8]) -> usize {
    CELL_BYTES + row.len() + family.len() + qualifier.len() + value.len()
}

/// Bytes of a mutation's cells; a deletion is a cell without value. The key visualiser counts them too.
pub(super) fn mutation_bytes(mutation: &RowMutation<'_>) -> usize {
    let bytes = |write: &Write<'_>| match write {
        Write::Put {
            family,
            qualifier,
            value,
            ..
        } => cell_bytes(mutation.row, family, qualifier, value),
        Write::DeleteVersion {
            family, qualifier, ..
        }
        | Write::DeleteVersionAtWrite { family, qualifier }
        | Write::DeleteColumn {
            family, qualifier, ..
        } => cell_bytes(mutation.row, family, qualifier, b""),
        Write::DeleteFamily { family, .. } | Write::DeleteFamilyVersion { family, .. } => {
            cell_bytes(mutation.row, family, b"", b"")
        }
        Write::DeleteRow { .. } => cell_bytes(mutation.row, b"", b"", b""),
    };
    mutation.writes.iter().map(bytes).sum()
}

/// Bytes of a replicated row's cells.
pub(super) fn replicated_bytes(row: &ReplicatedRow<'_>) -> usize {
    row.cells
        .iter()
        .map(|cell| cell_bytes(row.row, cell.family, cell.qualifier, cell.value))
        .sum()
}

/// Bytes of the cells that an increment or append is given.
pub(super) fn update_bytes(row: &[u8], change: &RowUpdate<'_>) -> usize {
    match change {
        RowUpdate::Increment(columns) => columns
            .iter()
            .map(|column| cell_bytes(row, column.family, column.qualifier, &[0; size_of::<i64>()]))
            .sum(),
        RowUpdate::Append(columns) => columns
            .iter()
            .map(|column| cell_bytes(row, column.family, column.qualifier, column.value))
            .sum(),
    }
}
