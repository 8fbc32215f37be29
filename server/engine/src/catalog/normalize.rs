//! The normalizer: regions of a table that asks for it are split and merged to similar sizes.
//!
//! The rules are HBase's (`SimpleRegionNormalizer`). A region of more than twice the average size is split;
//! neighbours that are not larger than the average together are merged, if the table has three regions and
//! they are three days old. The average is that of the table's regions, or what its options name as the
//! target. Sizes count in MiB, rounded up, so that regions with data never count as empty.

use std::time::Duration;

use super::{Catalog, Table};
use crate::error::{Error, Kind, Result};
use crate::id::RegionId;
use crate::region::Region;
use crate::schema::{NormalizerOptions, Switch, TableName, TableState};

/// One region, as the plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sized {
    id: RegionId,
    mib: u64,
    /// Time since it was made.
    age: Duration,
}

/// Most regions of one merge.
const MERGE_MAX_REGIONS: usize = 100;

/// A change that the normalizer makes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plan {
    Split(RegionId),
    Merge(Vec<RegionId>),
}

impl Catalog {
    /// Whether the table's regions are kept at similar sizes.
    pub(crate) fn is_normalized(&self, table: &Table) -> bool {
        table.state == TableState::Enabled
            && table.descriptor.normalizer_options().enabled
            && self.is_on(Switch::Normalizer)
            && self.follows().is_none()
    }

    /// Splits and merges regions of the table. Returns the new regions. A change that fails is reported, and
    /// the others are made.
    pub(crate) fn normalize(&self, name: &TableName) -> Result<Vec<RegionId>> {
        let tables = self.tables();
        let Ok(table) = tables.table(name) else {
            return Ok(Vec::new());
        };
        if !self.is_normalized(table) {
            return Ok(Vec::new());
        }
        let plans = self.plans(table);
        drop(tables);
        let mut new = Vec::new();
        for plan in plans {
            let changed = match &plan {
                Plan::Split(id) => self
                    .split_region(*id, None)
                    .map(|(left, right)| vec![left.id, right.id]),
                Plan::Merge(ids) => self.merge_regions(ids).map(|merged| vec![merged.id]),
            };
            match changed {
                Ok(regions) => new.extend(regions),
                Err(error) if error.kind() == Kind::Fatal => return Err(error),
                // The region was split, merged or dropped meanwhile.
                Err(Error::NoSuchRegion(_)) => {}
                Err(error) => {
                    let what = format!("table {name} is not normalized by {plan:?}: {error}");
                    self.shared.listener.notice(&what);
                }
            }
        }
        Ok(new)
    }

    /// Nothing while a region still shares files with the other half of a split: its size is not known.
    fn plans(&self, table: &Table) -> Vec<Plan> {
        if table.regions.iter().any(|region| region.has_inherited_files()) {
            return Vec::new();
        }
        let now_ms = self.shared.clock.wall_ms();
        let regions: Vec<Sized> = table
            .regions
            .iter()
            .map(|region| Sized {
                id: region.id(),
                mib: file_bytes(region).div_ceil(1 << 20),
                age: Duration::from_millis(now_ms.saturating_sub(region.info().created_ms)),
            })
            .collect();
        let options = table.descriptor.normalizer_options();
        let mut plans = Vec::new();
        if self.is_on(Switch::Splits) && table.descriptor.split_enabled() {
            plans.extend(splits(&regions, &options));
        }
        if self.is_on(Switch::Merges) && table.descriptor.merge_enabled() {
            plans.extend(merges(&regions, &options));
        }
        plans
    }
}

fn file_bytes(region: &Region) -> u64 {
    let version = region.version();
    version.stores.iter().map(|store| store.file_bytes()).sum()
}

fn average_mib(regions: &[Sized], options: &NormalizerOptions) -> f64 {
    let total = regions.iter().map(|region| region.mib).sum::<u64>() as f64;
    if let Some(target) = options.target_mib {
        target as f64
    } else {
        total / options.target_regions.unwrap_or(regions.len().max(1) as u64) as f64
    }
}

fn splits(regions: &[Sized], options: &NormalizerOptions) -> Vec<Plan> {
    let limit = 2.0 * average_mib(regions, options);
    let large = regions.iter().filter(|region| region.mib as f64 > limit);
    large.map(|region| Plan::Split(region.id)).collect()
}

/// Runs of neighbours, each as long as its regions are together not larger than the average. A region that is
/// too young or too small ends a run.
fn merges(regions: &[Sized], options: &NormalizerOptions) -> Vec<Plan> {
    if regions.len() < options.merge_min_regions {
        return Vec::new();
    }
    let average = average_mib(regions, options);
    let (mut plans, mut run, mut sum) = (Vec::new(), Vec::new(), 0);
    for region in regions {
        let takes_part = region.age > options.merge_min_age && region.mib >= options.merge_min_mib;
        let fits = run.is_empty()
            || (run.len() == 1 && sum == 0)
            || region.mib == 0
            || (sum + region.mib) as f64 <= average;
        if !takes_part || !fits || run.len() == MERGE_MAX_REGIONS {
            plans.push(std::mem::take(&mut run));
            sum = 0;
        }
        if takes_part {
            run.push(region.id);
            sum += region.mib;
        }
    }
    plans.push(run);
    plans.retain(|run| run.len() > 1);
    plans.into_iter().map(Plan::Merge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn regions(sizes: &[u64]) -> Vec<Sized> {
        let sized = |(index, mib): (usize, &u64)| Sized {
            id: RegionId(index as u64),
            mib: *mib,
            age: 4 * DAY,
        };
        sizes.iter().enumerate().map(sized).collect()
    }

    fn merged(regions: &[Sized], options: &NormalizerOptions) -> Vec<Vec<u64>> {
        let ids = |plan| match plan {
            Plan::Merge(ids) => ids.into_iter().map(|id| id.0).collect(),
            Plan::Split(_) => panic!("a split among merges"),
        };
        merges(regions, options).into_iter().map(ids).collect()
    }

    #[test]
    fn regions_of_twice_the_average_are_split() {
        let options = NormalizerOptions::default();
        assert_eq!(
            splits(&regions(&[10, 10, 10, 70]), &options),
            [Plan::Split(RegionId(3))]
        );
        assert_eq!(splits(&regions(&[10, 10, 10, 30]), &options), []);
        let target = NormalizerOptions {
            target_mib: Some(4),
            ..NormalizerOptions::default()
        };
        assert_eq!(splits(&regions(&[8, 9]), &target), [Plan::Split(RegionId(1))]);
    }

    #[test]
    fn small_neighbours_are_merged_up_to_the_average() {
        let options = NormalizerOptions::default();
        // The average is 10.
        assert_eq!(
            merged(&regions(&[5, 5, 20, 3, 4, 23]), &options),
            [vec![0, 1], vec![3, 4]]
        );
        assert_eq!(merged(&regions(&[10, 10, 10]), &options), [[0; 0]; 0]);
        assert_eq!(
            merged(&regions(&[0, 30, 0]), &options),
            [vec![0, 1, 2]],
            "empty ones join"
        );
        assert_eq!(
            merged(&regions(&[1, 30]), &options),
            [[0; 0]; 0],
            "too few regions"
        );
        let target = NormalizerOptions {
            target_regions: Some(2),
            ..NormalizerOptions::default()
        };
        assert_eq!(
            merged(&regions(&[10, 10, 10, 10]), &target),
            [vec![0, 1], vec![2, 3]]
        );
    }

    #[test]
    fn young_and_small_regions_are_not_merged() {
        let mut some = regions(&[2, 2, 2, 30]);
        some[1].age = 2 * DAY;
        let options = NormalizerOptions::default();
        assert_eq!(merged(&some, &options), [[0; 0]; 0]);
        let at_once = NormalizerOptions {
            merge_min_age: Duration::ZERO,
            ..NormalizerOptions::default()
        };
        assert_eq!(merged(&some, &at_once), [vec![0, 1, 2]]);
        let larger = NormalizerOptions {
            merge_min_mib: 3,
            ..at_once
        };
        assert_eq!(merged(&some, &larger), [[0; 0]; 0]);
    }
}
