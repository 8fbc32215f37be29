//! The rules about the order of edits: [`ManifestState::apply`].
//!
//! An edit is checked as a whole before anything changes, so a refused one leaves no trace. Rules
//! of calls (a table must be disabled before it is dropped) are the catalog's; the rules here keep
//! the state consistent.

use std::collections::{BTreeMap, BTreeSet};

use super::{FileMeta, ManifestEdit, ManifestState, RegionMeta, RegionState, TableMeta};
use crate::error::{Error, Result};
use crate::id::{FileId, RegionId, SeqId, Uuid};
use crate::schema::{
    DEFAULT_NAMESPACE, Escaped, NamespaceDescriptor, SYSTEM_NAMESPACE, TableDescriptor, TableName,
    TableState, check_namespace_characters,
};

/// A file that no region refers to any more, with its family. It may be deleted once the edit is
/// durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedFile {
    /// The family it held; part of its path.
    pub family: Vec<u8>,
    /// Metadata of the file.
    pub meta: FileMeta,
}

impl FileMeta {
    /// Order of the files of a store after a merge of regions.
    pub(crate) fn order(&self) -> (SeqId, FileId) {
        (self.max_seq, self.id)
    }

    /// Index at which a flush adds this file to the files of a store.
    pub(crate) fn index_among<'a>(
        &self,
        mut files: impl DoubleEndedIterator<Item = &'a Self> + ExactSizeIterator,
    ) -> usize {
        let last = files.rposition(|other| other.order() <= self.order());
        last.map_or(0, |last| last + 1)
    }
}

pub(super) fn refuse(what: impl Into<String>) -> Result<()> {
    Err(Error::Constraint(what.into()))
}

impl ManifestState {
    /// The state of a new database: two namespaces and nothing in them.
    pub fn new(cluster_id: Uuid) -> Self {
        let namespaces = [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE].map(|name| {
            let descriptor = NamespaceDescriptor {
                name: name.to_owned(),
                configuration: BTreeMap::new(),
            };
            (name.to_owned(), descriptor)
        });
        Self {
            cluster_id,
            namespaces: BTreeMap::from(namespaces),
            next_region: 1,
            next_file: 1,
            ..Self::default()
        }
    }

    /// Applies the edit, or refuses it without a change. Returns the files that no region refers to
    /// any more.
    pub fn apply(&mut self, edit: &ManifestEdit) -> Result<Vec<DroppedFile>> {
        self.check(edit)?;
        self.turns += u64::from(edit.is_turn());
        let mut removed = Vec::new();
        match edit {
            ManifestEdit::PutNamespace(namespace) => {
                self.namespaces.insert(namespace.name.clone(), namespace.clone());
            }
            ManifestEdit::DropNamespace(name) => {
                self.namespaces.remove(name);
            }
            ManifestEdit::CreateTable { descriptor, regions } => {
                let table = TableMeta {
                    descriptor: descriptor.clone(),
                    state: TableState::Enabled,
                };
                self.tables.insert(descriptor.name.clone(), table);
                self.add_regions(regions);
            }
            ManifestEdit::AlterTable(descriptor) => self.alter_table(descriptor, &mut removed),
            ManifestEdit::SetTableState(name, state) => {
                if let Some(table) = self.tables.get_mut(name) {
                    table.state = *state;
                }
            }
            ManifestEdit::DropTable(name) => {
                self.remove_regions_of(name, &mut removed);
                self.tables.remove(name);
            }
            ManifestEdit::TruncateTable(name, regions) => {
                self.remove_regions_of(name, &mut removed);
                self.add_regions(regions);
                if let Some(table) = self.tables.get_mut(name) {
                    table.state = TableState::Enabled;
                }
            }
            ManifestEdit::Flush {
                region,
                flushed,
                files,
            } => self.flush(*region, *flushed, files),
            ManifestEdit::Compact {
                region,
                family,
                removed: inputs,
                added,
            } => self.compact(*region, family, inputs, added, &mut removed),
            ManifestEdit::ReplaceRegions {
                removed: old,
                added: new,
            } => self.replace_regions(old, new),
            ManifestEdit::HighWater { timestamp_ms, seq } => {
                self.timestamp_ms = self.timestamp_ms.max(*timestamp_ms);
                self.seq = self.seq.max(*seq);
            }
            ManifestEdit::Log { first, last } => self.log = (*first, *last),
            ManifestEdit::CreateSnapshot(snapshot) => self.create_snapshot(snapshot),
            ManifestEdit::DropSnapshot(name) => {
                self.snapshots.remove(name);
            }
            ManifestEdit::CloneTable { descriptor, regions } => self.clone_table(descriptor, regions),
            ManifestEdit::RestoreTable { descriptor, regions } => {
                self.restore_table(descriptor, regions, &mut removed);
            }
            ManifestEdit::TruncateRegion { removed: old, added } => {
                self.truncate_region(*old, added, &mut removed);
            }
        }
        Ok(self.without_owner(removed))
    }

    /// All files that a region refers to, with their family.
    pub(crate) fn live_files(&self) -> BTreeMap<FileId, (&[u8], &FileMeta)> {
        self.regions
            .values()
            .flat_map(|region| &region.files)
            .flat_map(|(family, files)| files.iter().map(move |file| (file.id, (family.as_slice(), file))))
            .collect()
    }

    /// Whether a region has the file. Does not build the set of all files, because every flush
    /// asks.
    fn is_live(&self, file: FileId) -> bool {
        let all = || {
            self.regions
                .values()
                .flat_map(|region| region.files.values().flatten())
        };
        file.0 < self.next_file && all().any(|live| live.id == file)
    }

    /// The regions of a table, by start row.
    pub fn regions_of(&self, table: &TableName) -> Vec<&RegionState> {
        let mut regions: Vec<_> = self
            .regions
            .values()
            .filter(|region| region.meta.table == *table)
            .collect();
        regions.sort_by(|left, right| left.meta.start.cmp(&right.meta.start));
        regions
    }

    // Checks.

    /// Whether the edit may follow. Changes nothing.
    pub fn check(&self, edit: &ManifestEdit) -> Result<()> {
        match edit {
            ManifestEdit::PutNamespace(namespace) => check_namespace_characters(&namespace.name),
            ManifestEdit::DropNamespace(name) => self.check_drop_namespace(name),
            ManifestEdit::CreateTable { descriptor, regions } => {
                self.check_new_table(&descriptor.name)?;
                check_families(descriptor)?;
                self.check_new_regions(&descriptor.name, regions, &[], &[])
            }
            ManifestEdit::AlterTable(descriptor) => {
                self.table(&descriptor.name)?;
                check_families(descriptor)
            }
            ManifestEdit::SetTableState(name, _) | ManifestEdit::DropTable(name) => {
                self.table(name).map(|_| ())
            }
            ManifestEdit::TruncateTable(name, regions) => {
                self.table(name)?;
                self.check_new_regions(name, regions, &[], &[])
            }
            ManifestEdit::Flush {
                region,
                flushed,
                files,
            } => self.check_flush(*region, *flushed, files),
            ManifestEdit::Compact {
                region,
                family,
                removed,
                added,
            } => self.check_compact(*region, family, removed, added),
            ManifestEdit::ReplaceRegions { removed, added } => self.check_replace(removed, added),
            ManifestEdit::HighWater { .. } => Ok(()),
            ManifestEdit::Log { first, last } => self.check_log(*first, *last),
            ManifestEdit::CreateSnapshot(snapshot) => self.check_create_snapshot(snapshot),
            ManifestEdit::DropSnapshot(name) => self.check_drop_snapshot(name),
            ManifestEdit::CloneTable { descriptor, regions } => {
                self.check_new_table(&descriptor.name)?;
                self.check_filled_regions(descriptor, regions)
            }
            ManifestEdit::RestoreTable { descriptor, regions } => {
                self.table(&descriptor.name)?;
                self.check_filled_regions(descriptor, regions)
            }
            ManifestEdit::TruncateRegion { removed, added } => {
                let old = &self.region(*removed)?.meta;
                self.check_new_regions(&old.table, std::slice::from_ref(added), &old.start, &old.end)
            }
        }
    }

    fn check_new_table(&self, name: &TableName) -> Result<()> {
        if self.tables.contains_key(name) {
            return Err(Error::TableExists(name.clone()));
        }
        if !self.namespaces.contains_key(name.namespace()) {
            return Err(Error::no_such_namespace(name.namespace(), self.namespaces.keys()));
        }
        Ok(())
    }

    /// Segments come at one end and go at the other.
    fn check_log(&self, first: u64, last: u64) -> Result<()> {
        if first == 0 || first > last || first < self.log.0 || last < self.log.1 {
            return Err(Error::InvalidArgument(format!(
                "a log of the segments {first} to {last} cannot follow one of {} to {}",
                self.log.0, self.log.1
            )));
        }
        Ok(())
    }

    fn table(&self, name: &TableName) -> Result<&TableMeta> {
        self.tables
            .get(name)
            .ok_or_else(|| Error::NoSuchTable(name.clone()))
    }

    fn region(&self, id: RegionId) -> Result<&RegionState> {
        self.regions
            .get(&id)
            .ok_or_else(|| Error::NoSuchRegion(format!("region {id} is not in the manifest")))
    }

    fn check_drop_namespace(&self, name: &str) -> Result<()> {
        if !self.namespaces.contains_key(name) {
            return Err(Error::no_such_namespace(name, self.namespaces.keys()));
        }
        if name == DEFAULT_NAMESPACE || name == SYSTEM_NAMESPACE {
            return refuse(format!("namespace {name} is reserved"));
        }
        match self.tables.keys().find(|table| table.namespace() == name) {
            Some(table) => refuse(format!("namespace {name} still holds table {table}")),
            None => Ok(()),
        }
    }

    /// New regions must have new identities and cover the rows from `start` to `end` without gap or overlap.
    pub(super) fn check_new_regions(
        &self,
        table: &TableName,
        regions: &[RegionMeta],
        start: &[u8],
        end: &[u8],
    ) -> Result<()> {
        let mut ids = BTreeSet::new();
        for region in regions {
            if region.table != *table {
                return refuse(format!(
                    "region {} is of table {}, not {table}",
                    region.id, region.table
                ));
            }
            if region.id.0 < self.next_region || region.id.0 == u64::MAX || !ids.insert(region.id) {
                return refuse(format!("region identity {} was used before", region.id));
            }
        }
        let bounds = regions
            .iter()
            .map(|region| (&*region.start, &*region.end))
            .collect();
        let (first, last) = chain(bounds)?;
        if (first, last) != (start, end) {
            return refuse(format!(
                "the new regions of {table} cover [{}, {}) and not [{}, {})",
                Escaped(first),
                Escaped(last),
                Escaped(start),
                Escaped(end)
            ));
        }
        Ok(())
    }

    fn check_flush(&self, id: RegionId, flushed: SeqId, files: &[(Vec<u8>, FileMeta)]) -> Result<()> {
        let region = self.region(id)?;
        if flushed < region.flushed {
            return refuse(format!(
                "region {id} is flushed up to {} and cannot go back to {flushed}",
                region.flushed
            ));
        }
        let table = self.table(&region.meta.table)?;
        let mut new = BTreeSet::new();
        for (family, file) in files {
            check_family(table, family)?;
            check_file_id(file, self.is_live(file.id) || !new.insert(file.id))?;
            if file.max_seq > flushed {
                return refuse(format!(
                    "file {} holds sequence id {}, beyond the flush at {flushed}",
                    file.id, file.max_seq
                ));
            }
        }
        Ok(())
    }

    fn check_compact(
        &self,
        id: RegionId,
        family: &[u8],
        removed: &[FileId],
        added: &[FileMeta],
    ) -> Result<()> {
        let region = self.region(id)?;
        check_family(self.table(&region.meta.table)?, family)?;
        let files = region.files.get(family).map_or(&[][..], Vec::as_slice);
        let inputs: BTreeSet<FileId> = removed.iter().copied().collect();
        if inputs.is_empty() || inputs.len() < removed.len() {
            return refuse(format!(
                "a compaction of region {id} names no file or one file twice"
            ));
        }
        if let Some(missing) = removed.iter().find(|id| files.iter().all(|file| file.id != **id)) {
            return refuse(format!(
                "file {missing} is not in family {} of region {id}",
                Escaped(family)
            ));
        }
        // Which inputs may be compacted together depends on their rows, which the manifest does not
        // have: `store::Stripes`.
        let newest = files.iter().filter(|file| inputs.contains(&file.id));
        let max_seq = newest.map(|file| file.max_seq).max().unwrap_or_default();
        let live = if added.is_empty() {
            BTreeMap::new()
        } else {
            self.live_files()
        };
        let mut new = BTreeSet::new();
        for added in added {
            check_file_id(added, live.contains_key(&added.id) || !new.insert(added.id))?;
            if max_seq < added.max_seq {
                return refuse(format!("file {} is newer than what it was made of", added.id));
            }
        }
        Ok(())
    }

    fn check_replace(&self, removed: &[RegionId], added: &[RegionMeta]) -> Result<()> {
        let old = removed
            .iter()
            .map(|id| self.region(*id))
            .collect::<Result<Vec<_>>>()?;
        let Some(first) = old.first() else {
            return refuse("regions are replaced by others, and none are given");
        };
        if old.len() > 1 && added.len() > 1 {
            return refuse("either one region is split or one is made by a merge");
        }
        let table = &first.meta.table;
        if let Some(other) = old.iter().find(|region| region.meta.table != *table) {
            return refuse(format!(
                "regions of {table} and {} cannot be merged",
                other.meta.table
            ));
        }
        let bounds = old
            .iter()
            .map(|region| (&*region.meta.start, &*region.meta.end))
            .collect();
        let (start, end) = chain(bounds)?;
        if old.len() > 1
            && let Some(region) = old.iter().find(|region| !region.clipped.is_empty())
        {
            return refuse(format!(
                "region {} still has files from before its split; it must be compacted before it can be merged",
                region.meta.id
            ));
        }
        self.check_new_regions(table, added, start, end)
    }

    // Changes. REQUIRES: the edit was checked.

    fn add_regions(&mut self, regions: &[RegionMeta]) {
        for meta in regions {
            self.next_region = self.next_region.max(meta.id.0 + 1);
            let region = RegionState {
                meta: meta.clone(),
                flushed: SeqId::ZERO,
                files: BTreeMap::new(),
                clipped: BTreeSet::new(),
            };
            self.regions.insert(meta.id, region);
        }
    }

    pub(super) fn remove_regions_of(&mut self, table: &TableName, removed: &mut Vec<DroppedFile>) {
        self.regions.retain(|_, region| {
            let stays = region.meta.table != *table;
            if !stays {
                for (family, files) in std::mem::take(&mut region.files) {
                    drop_files(&family, files, removed);
                }
            }
            stays
        });
    }

    fn alter_table(&mut self, descriptor: &TableDescriptor, removed: &mut Vec<DroppedFile>) {
        if let Some(table) = self.tables.get_mut(&descriptor.name) {
            table.descriptor = descriptor.clone();
        }
        for region in self.regions.values_mut() {
            if region.meta.table != descriptor.name {
                continue;
            }
            region.files.retain(|family, files| {
                let stays = descriptor.family(family).is_some();
                if !stays {
                    drop_files(family, std::mem::take(files), removed);
                }
                stays
            });
            region.drop_stale_clips();
        }
    }

    fn flush(&mut self, id: RegionId, flushed: SeqId, files: &[(Vec<u8>, FileMeta)]) {
        for (_, file) in files {
            self.next_file = self.next_file.max(file.id.0 + 1);
        }
        self.seq = self.seq.max(flushed);
        let Some(region) = self.regions.get_mut(&id) else {
            return;
        };
        region.flushed = flushed;
        for (family, file) in files {
            let store = region.files.entry(family.clone()).or_default();
            store.insert(file.index_among(store.iter()), file.clone());
        }
    }

    fn compact(
        &mut self,
        id: RegionId,
        family: &[u8],
        inputs: &[FileId],
        added: &[FileMeta],
        removed: &mut Vec<DroppedFile>,
    ) {
        for added in added {
            self.next_file = self.next_file.max(added.id.0 + 1);
        }
        let Some(region) = self.regions.get_mut(&id) else {
            return;
        };
        let Some(store) = region.files.get_mut(family) else {
            return;
        };
        let behind = store.iter().rposition(|file| inputs.contains(&file.id));
        let place = behind.map_or(0, |newest| newest + 1 - inputs.len());
        let (gone, mut stay): (Vec<_>, Vec<_>) = std::mem::take(store)
            .into_iter()
            .partition(|file| inputs.contains(&file.id));
        stay.splice(place..place, added.iter().cloned());
        drop_files(family, gone, removed);
        if stay.is_empty() {
            region.files.remove(family);
        } else {
            *store = stay;
        }
        region.drop_stale_clips();
    }

    fn replace_regions(&mut self, old: &[RegionId], new: &[RegionMeta]) {
        let parents: Vec<RegionState> = old.iter().filter_map(|id| self.regions.remove(id)).collect();
        self.add_regions(new);
        // Up to the least of the parents' marks every edit of all of them is in store files.
        let flushed = parents
            .iter()
            .map(|parent| parent.flushed)
            .min()
            .unwrap_or_default();
        let mut files: BTreeMap<Vec<u8>, Vec<FileMeta>> = BTreeMap::new();
        for (family, store) in parents.iter().flat_map(|parent| &parent.files) {
            files.entry(family.clone()).or_default().extend_from_slice(store);
        }
        if parents.len() > 1 {
            for store in files.values_mut() {
                store.sort_by_key(FileMeta::order);
            }
        }
        let inherited: BTreeSet<FileId> = if new.len() > 1 {
            files.values().flatten().map(|file| file.id).collect()
        } else {
            parents
                .iter()
                .flat_map(|parent| parent.clipped.iter().copied())
                .collect()
        };
        for meta in new {
            if let Some(region) = self.regions.get_mut(&meta.id) {
                region.flushed = flushed;
                region.files.clone_from(&files);
                region.clipped.clone_from(&inherited);
            }
        }
    }

    fn truncate_region(&mut self, old: RegionId, new: &RegionMeta, removed: &mut Vec<DroppedFile>) {
        if let Some(region) = self.regions.remove(&old) {
            for (family, files) in region.files {
                drop_files(&family, files, removed);
            }
        }
        self.add_regions(std::slice::from_ref(new));
    }

    /// The files among these that no region refers to, each once.
    fn without_owner(&self, removed: Vec<DroppedFile>) -> Vec<DroppedFile> {
        if removed.is_empty() {
            return removed;
        }
        let live = self.live_files();
        let mut told = BTreeSet::new();
        removed
            .into_iter()
            .filter(|file| !live.contains_key(&file.meta.id) && told.insert(file.meta.id))
            .collect()
    }
}

impl RegionState {
    /// Drops files that are gone from `clipped`.
    fn drop_stale_clips(&mut self) {
        if !self.clipped.is_empty() {
            let here: BTreeSet<FileId> = self.files.values().flatten().map(|file| file.id).collect();
            self.clipped.retain(|id| here.contains(id));
        }
    }
}

fn drop_files(family: &[u8], files: Vec<FileMeta>, removed: &mut Vec<DroppedFile>) {
    removed.extend(files.into_iter().map(|meta| DroppedFile {
        family: family.to_vec(),
        meta,
    }));
}

pub(super) fn check_families(descriptor: &TableDescriptor) -> Result<()> {
    if descriptor.families.is_empty() {
        return refuse(format!("table {} has no family", descriptor.name));
    }
    for pair in descriptor.families.windows(2) {
        if pair[0].name >= pair[1].name {
            return refuse(format!(
                "families of table {} are not in order or not distinct: {}, {}",
                descriptor.name,
                Escaped(&pair[0].name),
                Escaped(&pair[1].name)
            ));
        }
    }
    Ok(())
}

fn check_family(table: &TableMeta, family: &[u8]) -> Result<()> {
    if table.descriptor.family(family).is_some() {
        return Ok(());
    }
    Err(Error::NoSuchFamily {
        table: table.descriptor.name.clone(),
        family: Escaped(family).to_string(),
    })
}

pub(super) fn check_file_id(file: &FileMeta, taken: bool) -> Result<()> {
    if taken || file.id.0 == u64::MAX {
        return refuse(format!("file identity {} was used before", file.id));
    }
    Ok(())
}

/// First start and last end of ranges that, sorted, touch each other without gap or overlap.
pub(super) fn chain<'a>(mut bounds: Vec<(&'a [u8], &'a [u8])>) -> Result<(&'a [u8], &'a [u8])> {
    bounds.sort_unstable();
    let broken = |what: &str| Error::Constraint(format!("regions {what}"));
    let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else {
        return Err(broken("are missing"));
    };
    for (start, end) in &bounds {
        if !end.is_empty() && start >= end {
            return Err(broken(&format!("with start {} end before it", Escaped(start))));
        }
    }
    for pair in bounds.windows(2) {
        if pair[0].1 != pair[1].0 || pair[0].1.is_empty() {
            return Err(broken(&format!(
                "leave a gap or overlap at {}",
                Escaped(pair[1].0)
            )));
        }
    }
    Ok((first.0, last.1))
}
