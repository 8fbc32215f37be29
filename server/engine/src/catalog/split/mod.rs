//! Split and merge: regions replaced by others that cover the same rows.
//!
//! 1. Wait for compaction and flush of the regions (a running compaction is cancelled) and keep new
//!    ones out.
//! 2. Flush while writes go on, so that step 3 has little to do.
//! 3. Keep writers out; flush the last writes. From now on the regions consist of files alone.
//! 4. One manifest edit; the new regions take shares in the same files, clipped to their rows; the new table
//!    is published.
//! 5. Let writers in again: they detect that their table is no longer the published one and look
//!    the row up again.
//!
//! Readers that began earlier continue with the versions they captured. The new regions' stores are
//! compacted soon, which ends the sharing of files (HBase: references).
//!
//! Regions with files from before a split are compacted before a merge: the merged region has no
//! way to know which rows of such a file it must not see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use self::choose::{Sizes, calculated_row, check_row, is_larger, limit_bytes};
use super::tables::check_split_key;
use super::{Catalog, CompactionMode, CompactionOutcome, Table};
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::manifest::{ManifestEdit, RegionMeta};
use crate::region::{Region, RegionInfo, RegionVersion};
use crate::schema::{BusyOptions, SplitPolicy, Switch, TableState, escape};
use crate::seeded;
use crate::store::{Clip, StoreFile, StoreVersion};

mod choose;

/// Number of regions in the server from which none is split automatically (HBase:
/// `hbase.regionserver.regionSplitLimit`).
const REGION_SPLIT_LIMIT: usize = 1000;

impl Catalog {
    /// Splits a region at `row`, or near its middle. In the latter case files shared with its
    /// sibling since a split are compacted first, since their middle is that of both regions.
    /// Returns the two halves.
    pub(crate) fn split_region(&self, id: RegionId, row: Option<&[u8]>) -> Result<(RegionInfo, RegionInfo)> {
        row.map_or(Ok(()), check_split_key)?;
        let _schema = self.schema.lock();
        let (table, region) = self.region(id)?;
        if !self.is_on(Switch::Splits) {
            return Err(Error::DoNotRetry(format!(
                "Split region {} failed due to split switch off",
                escape(&region.info().name())
            )));
        }
        let options = table.descriptor.split_options();
        if options.policy == SplitPolicy::Disabled {
            return Err(Error::DoNotRetry(format!(
                "{} NOT splittable",
                region.info().encoded_name
            )));
        }
        if !table.descriptor.split_enabled() {
            return Err(Error::DoNotRetry(format!(
                "Split region {} failed as region split is disabled for the table",
                escape(&region.info().name())
            )));
        }
        self.check_quota_of_split(region.info())?;
        region.check_undamaged()?;
        self.check_stores(table.name(), table.stores() + table.descriptor.families.len())?;
        region.cancel_compaction.store(true, Ordering::Release);
        self.limiter.wake();
        let _compacting = region.compacting.write();
        region.cancel_compaction.store(false, Ordering::Release);
        self.flush_region(&region)?;
        let at = if let Some(row) = row {
            options.given_row(row.to_vec())
        } else {
            self.unclip(&region)?;
            calculated_row(region.info(), &region.version(), &options, &self.shared.options)?
        };
        check_row(region.info(), &at)?;
        let flushing = [region.flushing.lock()];
        let blocked = [region.updates.write()];
        self.flush_blocked(&[&region], &blocked, &flushing)?;
        let created_ms = self
            .shared
            .clock
            .wall_ms()
            .max(region.info().created_ms.saturating_add(1));
        let boundaries = [
            (region.info().start.clone(), at.clone()),
            (at, region.info().end.clone()),
        ];
        let halves = self.replace(&table, &[Arc::clone(&region)], &boundaries, created_ms)?;
        self.shared.counters.splits.increment();
        Ok((halves[0].info().clone(), halves[1].info().clone()))
    }

    /// The row at which a split of a region at `row` happens, as the table's options want it; `None` if
    /// the region is gone or cannot be split there.
    pub(crate) fn split_row(&self, id: RegionId, row: &[u8]) -> Option<Vec<u8>> {
        check_split_key(row).ok()?;
        let (table, region) = self.region(id).ok()?;
        let at = table.descriptor.split_options().given_row(row.to_vec());
        check_row(region.info(), &at).is_ok().then_some(at)
    }

    /// Merges adjacent regions of one table into one.
    pub(crate) fn merge_regions(&self, ids: &[RegionId]) -> Result<RegionInfo> {
        let _schema = self.schema.lock();
        let (table, mut regions) = self.merge_candidates(ids)?;
        let refused = if !self.is_on(Switch::Merges) {
            Some("because merge switch is off")
        } else if !table.descriptor.merge_enabled() {
            Some("as region merge is disabled for the table")
        } else {
            None
        };
        if let Some(why) = refused {
            let names: Vec<_> = regions
                .iter()
                .map(|region| escape(&region.info().name()))
                .collect();
            return Err(Error::DoNotRetry(format!(
                "Merge of {} failed {why}",
                names.join(", ")
            )));
        }
        regions.iter().try_for_each(|region| region.check_undamaged())?;
        regions.sort_by_key(|region| region.id());
        for region in &regions {
            region.cancel_compaction.store(true, Ordering::Release);
        }
        self.limiter.wake();
        let _compacting: Vec<_> = regions.iter().map(|region| region.compacting.write()).collect();
        for region in &regions {
            region.cancel_compaction.store(false, Ordering::Release);
        }
        for region in &regions {
            self.unclip(region)?;
        }
        self.flush_all(&regions)?;
        let flushing: Vec<_> = regions.iter().map(|region| region.flushing.lock()).collect();
        let blocked: Vec<_> = regions.iter().map(|region| region.updates.write()).collect();
        self.flush_blocked(&regions, &blocked, &flushing)?;
        let mut ordered = regions.clone();
        ordered.sort_by(|left, right| left.info().start.cmp(&right.info().start));
        let (first, last) = (ordered[0].info(), ordered[ordered.len() - 1].info());
        let newest = ordered
            .iter()
            .map(|region| region.info().created_ms)
            .max()
            .unwrap_or_default();
        let created_ms = self.shared.clock.wall_ms().max(newest.saturating_add(1));
        let boundaries = [(first.start.clone(), last.end.clone())];
        let merged = self.replace(&table, &ordered, &boundaries, created_ms)?;
        self.shared.counters.merges.increment();
        Ok(merged[0].info().clone())
    }

    /// The regions to merge, in key order.
    fn merge_candidates(&self, ids: &[RegionId]) -> Result<(Arc<Table>, Vec<Arc<Region>>)> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() < 2 {
            return Err(Error::InvalidArgument(
                "A merge needs at least two different regions".into(),
            ));
        }
        let (table, _) = self.region(ids[0])?;
        let mut regions = Vec::with_capacity(ids.len());
        for id in ids {
            let (owner, region) = self.region(id)?;
            if owner.name() != table.name() {
                return Err(Error::InvalidArgument(format!(
                    "Cannot merge regions of different tables: {} and {}",
                    table.name(),
                    owner.name()
                )));
            }
            regions.push(region);
        }
        regions.sort_by(|left, right| left.info().start.cmp(&right.info().start));
        for pair in regions.windows(2) {
            if pair[0].info().end != pair[1].info().start {
                return Err(Error::InvalidArgument(format!(
                    "Unable to merge non-adjacent regions {} and {}",
                    pair[0].info().encoded_name,
                    pair[1].info().encoded_name
                )));
            }
        }
        Ok((table, regions))
    }

    /// Compacts those stores of a region that have files from before a split.
    /// REQUIRES: `Region::compacting` is held for writing.
    fn unclip(&self, region: &Region) -> Result<()> {
        let has_inherited =
            |store: &&Arc<StoreVersion>| store.files.iter().any(|file| region.is_inherited(file.id()));
        let version = region.version();
        let stores = version.stores.iter().filter(has_inherited);
        // Only the names: a version that is kept would pin its memstores.
        let families: Vec<_> = stores.map(|store| store.family.name.clone()).collect();
        drop(version);
        for family in &families {
            let outcome = self.compact_locked(region, family, true, CompactionMode::Any)?;
            if !matches!(outcome, CompactionOutcome::Done) {
                return Err(Error::RegionTooBusy(format!(
                    "Region {} still shares store files with its neighbours after a split, and compacting them was cancelled",
                    region.info().encoded_name
                )));
            }
        }
        if region.has_inherited_files() {
            return Err(Error::RegionTooBusy(format!(
                "Region {} still shares store files with its neighbours after a split",
                region.info().encoded_name
            )));
        }
        Ok(())
    }

    /// Replaces `old` by new regions with these boundaries.
    /// REQUIRES: all locks of the old regions are held, and their memstores are empty.
    fn replace(
        &self,
        table: &Table,
        old: &[Arc<Region>],
        boundaries: &[(Vec<u8>, Vec<u8>)],
        created_ms: u64,
    ) -> Result<Vec<Arc<Region>>> {
        for region in old {
            assert_eq!(
                region.version().memstore_cells(),
                0,
                "a region that ends was flushed"
            );
        }
        let mut manifest = self.manifest.lock();
        let first_id = manifest.state().next_region;
        let metas: Vec<_> = boundaries
            .iter()
            .enumerate()
            .map(|(index, (start, end))| RegionMeta {
                id: RegionId(first_id + index as u64),
                table: table.name().clone(),
                start: start.clone(),
                end: end.clone(),
                created_ms,
            })
            .collect();
        let edit = ManifestEdit::ReplaceRegions {
            removed: old.iter().map(|region| region.id()).collect(),
            added: metas.clone(),
        };
        self.append(&mut manifest, &edit)?;
        // The rows get other row locks, which have not recorded the times of their tombstones.
        if !seeded::is_on("split-forgets-tombstones") {
            self.shared.timestamps.pass_rows();
        }
        let new: Vec<_> = metas.into_iter().map(|meta| region_from(meta, old)).collect();
        self.report_added(&new, Some(old[0].id()));
        self.publish(&manifest, |tables| {
            let mut regions: Vec<_> = table
                .regions
                .iter()
                .filter(|region| old.iter().all(|gone| gone.id() != region.id()))
                .chain(&new)
                .cloned()
                .collect();
            regions.sort_by(|left, right| left.info().start.cmp(&right.info().start));
            tables.put(Table::new(Arc::clone(&table.descriptor), table.state, regions));
        });
        // The new regions' shares were taken above, so no file goes away that one of them needs.
        self.discard_regions(&manifest, old);
        Ok(new)
    }

    /// Whether a region should be split by itself, as the table's policy says.
    pub(crate) fn should_split(&self, region: &Region) -> bool {
        let Ok((table, _)) = self.region(region.id()) else {
            return false;
        };
        let version = region.version();
        let options = version.table.split_options();
        if self.follows().is_some()
            || table.state != TableState::Enabled
            || !version.table.split_enabled()
            || !self.is_on(Switch::Splits)
            || !self.has_quota_for_split(&version.table.name)
            || options.policy == SplitPolicy::Disabled
            || region.check_undamaged().is_err()
            || region.has_inherited_files()
            || self.tables().region_count() >= REGION_SPLIT_LIMIT
        {
            return false;
        }
        let sizes = Sizes {
            max_bytes: version
                .table
                .max_file_bytes()
                .unwrap_or(self.shared.options.region_max_bytes),
            initial_bytes: table
                .write_options
                .flush_bytes(&self.shared.options)
                .saturating_mul(2),
            regions: table.regions.len(),
            draw: region.info().draw(),
        };
        let is_large =
            || limit_bytes(&options, sizes).is_some_and(|limit| is_larger(&version, &options, limit));
        let is_busy = options.policy == SplitPolicy::Busy && self.is_busy(region, &options.busy);
        // Where one row fills the region there is no row to split at, and trying would flush the
        // region and stop its compactions each time. When that cannot be determined, the attempt
        // reports why.
        (is_busy || is_large())
            && !matches!(
                calculated_row(region.info(), &version, &options, &self.shared.options),
                Err(Error::DoNotRetry(_))
            )
    }

    fn is_busy(&self, region: &Region, options: &BusyOptions) -> bool {
        let (writes, refused) = (region.writes.get(), region.blocked_writes.get());
        let busyness = region
            .busy
            .look(self.shared.mono_ms(), writes, refused, options.window_ms);
        busyness.age_ms >= options.age_min_ms && busyness.refused_share >= options.refused_share
    }
}

/// A region whose stores have shares in the files of `old`.
#[expect(clippy::needless_pass_by_value, reason = "callers make it for this call")]
fn region_from(meta: RegionMeta, old: &[Arc<Region>]) -> Arc<Region> {
    let clip = Clip {
        start: meta.start.clone(),
        end: meta.end.clone(),
    };
    let versions: Vec<_> = old.iter().map(|region| region.load_version()).collect();
    let table = Arc::clone(&versions[0].table);
    let stores = (0..table.families.len())
        .map(|index| {
            let files = versions.iter().flat_map(|version| &version.stores[index].files);
            let mut shares: Vec<Arc<StoreFile>> = files.map(|file| file.reclip(clip.clone())).collect();
            if old.len() > 1 {
                // As the manifest does.
                shares.sort_by_key(|file| file.meta().order());
            }
            let store = &versions[0].stores[index];
            let family = Arc::clone(&store.family);
            Arc::new(StoreVersion::new(family, shares, store.active.successor()))
        })
        .collect();
    let files = |version: &Arc<RegionVersion>| {
        let files = version.stores.iter().flat_map(|store| &store.files);
        files.map(|file| file.id()).collect::<Vec<_>>()
    };
    // A merge joins regions that share nothing; a split lets both halves share everything.
    let inherited = if old.len() > 1 {
        BTreeSet::new()
    } else {
        versions.iter().flat_map(files).collect()
    };
    Region::new(&meta, RegionVersion { table, stores }, inherited)
}
