//! How much of a store's files is overwritten, as far as their samples of columns say. Pure, without I/O.

use super::StoreFile;
use crate::hfile::ColumnSample;
use crate::schema::{FamilyDescriptor, KeepDeletedCells};

/// Cells that go with a tombstone of a row: itself, and the one that it hides at least.
const CELLS_OF_TOMBSTONE: u64 = 2;

/// The share of the cells of these files that a merge of all of them would drop: versions of columns beyond
/// VERSIONS, and rows that were deleted. 0 if a file has no sample.
///
/// Tombstones of a file that a merge of all files wrote are not counted: they have outlived a merge. Cells
/// that TTL or the tombstone of a column drops are not known.
pub(crate) fn overwritten<'a>(
    files: impl Iterator<Item = &'a StoreFile> + Clone,
    family: &FamilyDescriptor,
) -> f64 {
    let samples: Option<Vec<_>> = files
        .clone()
        .map(|file| file.properties().column_sample.as_ref())
        .collect();
    let Some(samples) = samples else {
        return 0.0;
    };
    let versions = usize::try_from(family.max_versions).unwrap_or(usize::MAX);
    let (dropped, sampled) = ColumnSample::overwritten(samples.into_iter(), versions);
    let (mut cells, mut deleted) = (0, 0);
    for file in files {
        cells += file.properties().cells;
        if !file.meta().major && family.keep_deleted_cells == KeepDeletedCells::False {
            deleted += file.properties().delete_family_cells * CELLS_OF_TOMBSTONE;
        }
    }
    let share = |part: f64, all: f64| part / all.max(1.0);
    (share(dropped as f64, sampled as f64) + share(deleted as f64, cells as f64)).min(1.0)
}
