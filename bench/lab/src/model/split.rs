//! Where a model's tables are split, and how new rows fall on regions and servers.

use super::data::Data;
use super::file::{Key, Table};
use crate::region_load::RegionMap;

/// Rows that are looked at.
const SAMPLED_ROWS: u64 = 100_000;
/// Rows of a window for each region, so that chance does not make one look busy.
const ROWS_PER_PART: u64 = 20;

/// Boundaries that give every region the same number of the loaded rows: those that splits would make in
/// time. Fewer than asked for if keys begin alike.
pub(super) fn points(data: &Data, key: &Key, table: &Table, rows: u64) -> Vec<Vec<u8>> {
    let step = rows.div_ceil(SAMPLED_ROWS).max(1);
    let mut keys: Vec<Vec<u8>> = (0..rows)
        .step_by(usize::try_from(step).unwrap_or(usize::MAX))
        .map(|row| data.key(key, row))
        .collect();
    keys.sort();
    let place = |index: u64| (index * keys.len() as u64 / table.regions) as usize;
    let mut points: Vec<Vec<u8>> = (1..table.regions)
        .filter_map(|index| keys.get(place(index)).cloned())
        .filter(|point| !point.is_empty())
        .collect();
    points.dedup();
    points
}

/// The share of new rows that the busiest part takes within a minute of the rows' own time, averaged; and the
/// number of parts. Parts are regions, or the servers that have them.
pub(super) fn busiest(data: &Data, key: &Key, first: u64, regions: &RegionMap, servers: &[usize]) -> Busiest {
    let parts = servers.iter().max().map_or(1, |most| most + 1);
    let a_minute = (60_000.0 / data.ms_per_row()) as u64;
    let window = a_minute.max(ROWS_PER_PART * parts as u64);
    let rows = SAMPLED_ROWS.max(window).min(window.saturating_mul(64));
    let mut counts = vec![0u64; parts];
    let (mut busiest, mut total) = (0, 0);
    for row in first..first.saturating_add(rows) {
        let region = regions.index_of(&data.key(key, row));
        counts[servers.get(region).copied().unwrap_or_default()] += 1;
        total += 1;
        if total % window == 0 {
            busiest += counts.iter().max().copied().unwrap_or_default();
            counts.fill(0);
        }
    }
    let whole = total - total % window;
    Busiest {
        share: busiest as f64 / whole.max(1) as f64,
        parts,
    }
}

/// How new rows fall on parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Busiest {
    pub(super) share: f64,
    pub(super) parts: usize,
}

impl Busiest {
    /// The busiest part's rows divided by the mean.
    pub(super) fn peak_to_mean(self) -> f64 {
        self.share * self.parts as f64
    }
}
