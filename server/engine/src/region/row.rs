//! Reading one row: for Get, and for writes that depend on what is stored.

use crate::cell::{Cell, CellBatch};
use crate::error::Result;
use crate::id::SeqId;
use crate::op::{Columns, FamilySelection, ReadSpec, ReadTier};
use crate::region::{RegionScanner, RegionVersion, Step};
use crate::store::Moment;

/// Appends what `spec` asks of `row` to `out`: one row, or none. Says whether there was one.
pub fn read_row(
    version: &RegionVersion,
    spec: &ReadSpec,
    row: &[u8],
    moment: Moment,
    row_max_bytes: usize,
    out: &mut CellBatch,
) -> Result<bool> {
    let mut scanner = RegionScanner::open_row(version, spec, row, moment, row_max_bytes)?;
    Ok(scanner.step(out)? == Step::Row)
}

/// The newest visible version of a column, looked for in `tier`, with writes that are applied and not yet published, copied out by `take`.
/// REQUIRES: the row's lock is held exclusively, so that nobody is about to add a newer one.
pub fn newest_cell<T>(
    version: &RegionVersion,
    row: &[u8],
    family: usize,
    qualifier: &[u8],
    now_ms: i64,
    tier: ReadTier,
    take: impl FnOnce(Cell<'_>) -> T,
) -> Result<Option<T>> {
    let mut found = CellBatch::new();
    let spec = column_spec(version, family, qualifier, 1, tier);
    read_row(version, &spec, row, unpublished(now_ms), usize::MAX, &mut found)?;
    Ok((found.cell_count() > 0).then(|| take(found.cell(0))))
}

/// The timestamps of a column's visible versions, newest first, `versions` at most.
/// REQUIRES: as [`newest_cell`].
pub fn newest_timestamps(
    version: &RegionVersion,
    row: &[u8],
    family: usize,
    qualifier: &[u8],
    versions: usize,
    now_ms: i64,
) -> Result<Vec<i64>> {
    let mut found = CellBatch::new();
    let spec = column_spec(version, family, qualifier, versions, ReadTier::All);
    read_row(version, &spec, row, unpublished(now_ms), usize::MAX, &mut found)?;
    Ok((0..found.cell_count())
        .map(|index| found.cell(index).key.timestamp())
        .collect())
}

fn column_spec(
    version: &RegionVersion,
    family: usize,
    qualifier: &[u8],
    versions: usize,
    tier: ReadTier,
) -> ReadSpec {
    ReadSpec {
        families: vec![FamilySelection {
            family: version.table.families[family].name.clone(),
            columns: Columns::Only(vec![qualifier.to_vec()]),
        }],
        max_versions: i32::try_from(versions).unwrap_or(i32::MAX),
        tier,
        ..ReadSpec::default()
    }
}

/// Sees what is applied, published or not.
fn unpublished(now_ms: i64) -> Moment {
    Moment {
        read_point: SeqId::MAX,
        now_ms,
    }
}
