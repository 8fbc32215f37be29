//! Reading one row: for Get, and for writes that depend on stored cells.

use crate::cell::{Cell, CellBatch};
use crate::error::Result;
use crate::id::SeqId;
use crate::op::{Columns, FamilySelection, ReadSpec, TimeRange};
use crate::region::{RegionScanner, RegionVersion, Step, family_index};
use crate::seeded;
use crate::store::{self, BlockRead, Reach, ReadView};

/// Appends the cells of `row` that `spec` selects to `out`: one row, or none. Returns whether there
/// was one.
pub(crate) fn read_row(
    version: &RegionVersion,
    spec: &ReadSpec,
    row: &[u8],
    read_view: (Reach, ReadView),
    row_max_bytes: usize,
    out: &mut CellBatch,
) -> Result<bool> {
    match RegionScanner::open_row(version, spec, row, read_view, row_max_bytes)? {
        None => Ok(false),
        Some(mut scanner) => Ok(scanner.step(out)? == Step::Row),
    }
}

/// Adds to `reads` the blocks that a read of `row` needs next and that are not in memory.
pub(crate) fn missing_blocks(
    version: &RegionVersion,
    spec: &ReadSpec,
    row: &[u8],
    read_view: ReadView,
    reads: &mut Vec<BlockRead>,
) -> Result<()> {
    if spec.families.is_empty() {
        for store in &version.stores {
            store::missing_blocks(store, None, spec, read_view, row, reads);
        }
    }
    for selection in &spec.families {
        let store = &version.stores[family_index(&version.table, &selection.family)?];
        store::missing_blocks(store, Some(selection), spec, read_view, row, reads);
    }
    Ok(())
}

/// The newest visible version of a column in `time_range`, searched for within `reach` and copied out by
/// `take`. Writes that are applied and not yet published are visible. The version is read into
/// `scratch`, which is left unchanged.
/// REQUIRES: the row's lock is held exclusively, so that no newer version is being added; no row of
/// `scratch` is open.
#[expect(
    clippy::too_many_arguments,
    reason = "what a read of one column takes, and where it goes"
)]
pub(crate) fn newest_cell<T>(
    version: &RegionVersion,
    row: &[u8],
    family: usize,
    qualifier: &[u8],
    time_range: TimeRange,
    read_view: ReadView,
    reach: Reach,
    scratch: &mut CellBatch,
    take: impl FnOnce(Cell<'_>) -> T,
) -> Result<Option<T>> {
    let first = scratch.cell_count();
    let spec = ReadSpec {
        time_range,
        ..column_spec(version, family, qualifier, 1)
    };
    let mut newest = unpublished(read_view);
    if let Some(file) = version.stores[family].files.last()
        && seeded::is_on("increment-misses-memstore")
    {
        newest.read_point = file.meta().max_seq;
    }
    if !read_row(version, &spec, row, (reach, newest), usize::MAX, scratch)? {
        return Ok(None);
    }
    let taken = take(scratch.cell(first));
    scratch.drop_last_row();
    Ok(Some(taken))
}

/// The timestamps of a column's visible versions, newest first, at most `versions`. Reads them into
/// `scratch`.
/// REQUIRES: as [`newest_cell`].
pub(crate) fn newest_timestamps(
    version: &RegionVersion,
    row: &[u8],
    family: usize,
    qualifier: &[u8],
    versions: usize,
    read_view: ReadView,
    mut scratch: CellBatch,
) -> Result<Vec<i64>> {
    let found = &mut scratch;
    let spec = column_spec(version, family, qualifier, versions);
    let read_view = (Reach::DiskAtOnce, unpublished(read_view));
    read_row(version, &spec, row, read_view, usize::MAX, found)?;
    Ok((0..found.cell_count())
        .map(|index| found.cell(index).key.timestamp())
        .collect())
}

fn column_spec(version: &RegionVersion, family: usize, qualifier: &[u8], versions: usize) -> ReadSpec {
    ReadSpec {
        families: vec![FamilySelection {
            family: version.table.families[family].name.clone(),
            columns: Columns::Only(vec![qualifier.to_vec()]),
        }],
        max_versions: i32::try_from(versions).unwrap_or(i32::MAX),
        ..ReadSpec::default()
    }
}

/// `read_view`, extended to cells that are applied and not yet published.
pub(crate) fn unpublished(read_view: ReadView) -> ReadView {
    ReadView {
        read_point: SeqId::MAX,
        ..read_view
    }
}
