//! Choosing: whether a region is large enough to be split, and at which row. Changes nothing; reads at most
//! one index block.

use crate::error::{Error, Result};
use crate::options::Options;
use crate::region::{RegionInfo, RegionVersion};
use crate::schema::limits::SPLIT_KEY;
use crate::schema::{Cut, SplitOptions, SplitPolicy, TableDescriptor, escape};
use crate::store::{StoreFile, StoreVersion, Stripes};

/// Number of regions from which policies that let regions grow with their number are at their
/// maximum.
const GROWING_REGIONS_MAX: u64 = 100;

/// Size limits that apply besides a table's options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The maximal size of a region, before jitter.
    pub(super) max_bytes: u64,
    /// Twice the flush size.
    pub(super) initial_bytes: u64,
    /// Regions of the table.
    pub(super) regions: usize,
    /// Between 0 and 1, different in each region: the position of its maximal size in the jitter.
    pub(super) draw: f64,
}

/// The size above which a region splits; `None`: never.
pub(super) fn limit_bytes(options: &SplitOptions, sizes: Sizes) -> Option<u64> {
    let max = jittered(sizes.max_bytes, options.jitter, sizes.draw);
    let initial = options.initial_bytes.unwrap_or(sizes.initial_bytes);
    let regions = sizes.regions as u64;
    match options.policy {
        SplitPolicy::Disabled => None,
        SplitPolicy::ConstantSize => Some(max),
        SplitPolicy::Stepping => Some(if regions == 1 { initial } else { max }),
        SplitPolicy::IncreasingToUpperBound
        | SplitPolicy::KeyPrefix
        | SplitPolicy::DelimitedKeyPrefix
        | SplitPolicy::Busy => Some(if (1..=GROWING_REGIONS_MAX).contains(&regions) {
            max.min(initial.saturating_mul(regions.pow(3)))
        } else {
            max
        }),
    }
}

fn jittered(bytes: u64, jitter: f64, draw: f64) -> u64 {
    let change = bytes as f64 * (draw - 0.5) * jitter;
    bytes.saturating_add_signed(change as i64)
}

/// Whether the part of the region that the options count is larger than `limit`.
pub(super) fn is_larger(version: &RegionVersion, options: &SplitOptions, limit: u64) -> bool {
    let mut sizes = version.stores.iter().map(|store| store.file_bytes());
    if options.sum_of_stores {
        sizes.sum::<u64>() > limit
    } else {
        sizes.any(|bytes| bytes > limit)
    }
}

/// The default split row: the middle of the largest store that has a middle, cut as the table's
/// options say.
pub(super) fn calculated_row(
    region: &RegionInfo,
    version: &RegionVersion,
    options: &SplitOptions,
    settings: &Options,
) -> Result<Vec<u8>> {
    let mut largest = 0;
    let mut middle = Vec::new();
    for store in &version.stores {
        if store.file_bytes() > largest
            && let Some(row) = middle_row(store, &version.table, settings)?
        {
            largest = store.file_bytes();
            middle = row;
        }
    }
    // A start row is part of the region's name, so its length is limited. A truncated row splits
    // the region at nearly the same place.
    let mut row = options.calculated_row(middle);
    row.truncate(SPLIT_KEY.max);
    if row.is_empty() {
        return Err(Error::DoNotRetry(
            "Region not splittable because bestSplitPoint = null, maybe table is too small for auto split. For force split, try \
             specifying split row"
                .into(),
        ));
    }
    check_row(region, &row)?;
    Ok(row)
}

/// A row near the middle of a store: a boundary of stripes, or else the middle of the largest file of
/// the stripe in the middle. `None` if that is the file's first or last row, as when the file is one
/// row or one block.
fn middle_row(store: &StoreVersion, table: &TableDescriptor, settings: &Options) -> Result<Option<Vec<u8>>> {
    let stripes = Stripes::of_store(store, table, settings).stripes;
    let bytes = store.file_bytes();
    let mut before = 0_u64;
    let mut middle = None;
    for stripe in &stripes {
        // Nearer to the middle than a sixteenth.
        if before > 0 && before.abs_diff(bytes / 2) < bytes / 16 {
            return Ok(Some(stripe.first.clone()));
        }
        if before <= bytes / 2 {
            middle = Some(stripe);
        }
        before += stripe.bytes;
    }
    let files = middle.into_iter().flat_map(|stripe| &stripe.files);
    let largest = files
        .map(|index| &store.files[*index])
        .max_by_key(|file| file.meta().bytes);
    let Some(file) = largest else {
        return Ok(None);
    };
    let middle = file.reader().mid_key()?;
    let row = middle.map(|key| key.as_key().row().to_vec());
    Ok(row.filter(|row| !is_outer_row(file, row)))
}

fn is_outer_row(file: &StoreFile, row: &[u8]) -> bool {
    let properties = file.properties();
    [&properties.first_key, &properties.last_key]
        .into_iter()
        .flatten()
        .any(|key| key.as_key().row() == row)
}

/// Refuses a row at which the region cannot be split.
pub(super) fn check_row(region: &RegionInfo, row: &[u8]) -> Result<()> {
    if row == region.start {
        return Err(Error::DoNotRetry(format!(
            "Split row is equal to startkey: {}",
            Cut(row)
        )));
    }
    if !region.contains(row) {
        return Err(Error::DoNotRetry(format!(
            "Split row is not inside region key range splitKey:{} region: {}",
            Cut(row),
            escape(&region.name())
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn limit(policy: SplitPolicy, regions: usize, draw: f64, jitter: f64) -> Option<u64> {
        let options = SplitOptions {
            policy,
            jitter,
            ..SplitOptions::default()
        };
        limit_bytes(
            &options,
            Sizes {
                max_bytes: 10_240 * MIB,
                initial_bytes: 256 * MIB,
                regions,
                draw,
            },
        )
    }

    /// The sizes in MiB that HBase's policies check, by the number of the table's regions.
    #[test]
    fn sizes_are_those_of_the_policies() {
        let sizes = |policy| {
            [1, 2, 3, 4, 100, 101].map(|regions| limit(policy, regions, 0.9, 0.0).map(|bytes| bytes / MIB))
        };
        let max = Some(10_240);
        assert_eq!(sizes(SplitPolicy::Stepping), [Some(256), max, max, max, max, max]);
        assert_eq!(sizes(SplitPolicy::ConstantSize), [max; 6]);
        let growing = [Some(256), Some(2048), Some(6912), max, max, max];
        for policy in [
            SplitPolicy::IncreasingToUpperBound,
            SplitPolicy::KeyPrefix,
            SplitPolicy::DelimitedKeyPrefix,
            SplitPolicy::Busy,
        ] {
            assert_eq!(sizes(policy), growing);
        }
        assert_eq!(sizes(SplitPolicy::Disabled), [None; 6]);
    }

    /// A quarter of jitter is an eighth up or down, and only of the maximal size.
    #[test]
    fn jitter_spreads_the_maximal_size() {
        let constant = |draw| limit(SplitPolicy::ConstantSize, 1, draw, 0.25).map(|bytes| bytes / MIB);
        assert_eq!(
            [0.0, 0.5, 1.0].map(constant),
            [Some(8960), Some(10_240), Some(11_520)]
        );
        assert_eq!(limit(SplitPolicy::Stepping, 1, 0.0, 0.25), Some(256 * MIB));
        assert_eq!(jittered(u64::MAX, 0.25, 1.0), u64::MAX);
        assert_eq!(jittered(10, 8.0, 0.0), 0);
    }
}
