//! Schema changes of tables. The texts of refusals are HBase's.

use std::sync::Arc;

use parking_lot::MutexGuard;

use super::{Catalog, Table};
use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::manifest::{Manifest, ManifestEdit, ManifestState, RegionMeta};
use crate::memstore::{ChunkPool, Memstore};
use crate::options::UnknownUserCode;
use crate::region::{Region, RegionVersion, check_row, family_index};
use crate::schema::limits::{Brief, SPLIT_KEY, SPLIT_KEYS};
use crate::schema::{Cut, FamilyDescriptor, TableDescriptor, TableName, TableState, escape};
use crate::seeded;
use crate::store::{StoreVersion, create_store_dir};

impl Catalog {
    /// Creates a table, enabled, with a region before each of the `splits` and one after the last.
    pub(crate) fn create_table(&self, descriptor: TableDescriptor, splits: Vec<Vec<u8>>) -> Result<()> {
        self.check_descriptor(&descriptor)?;
        let splits = check_splits(splits)?;
        let _schema = self.schema.lock();
        self.check_new_name(&descriptor.name)?;
        self.check_quota_of_new_table(&descriptor.name, splits.len() + 1)?;
        self.check_stores(&descriptor.name, (splits.len() + 1) * descriptor.families.len())?;
        let created_ms = self.shared.clock.wall_ms();
        // Only schema changes take ids of regions, so these are still free when the edit is
        // appended.
        let regions = self.with_state(|state| region_metas(state, &descriptor.name, &splits, created_ms));
        let edit = ManifestEdit::CreateTable {
            descriptor: descriptor.clone(),
            regions: regions.clone(),
        };
        if !seeded::is_on("directories-before-the-check") {
            self.check_edit(&edit)?;
        }
        self.create_dirs(&descriptor)?;
        let mut manifest = self.manifest.lock();
        self.append(&mut manifest, &edit)?;
        let descriptor = Arc::new(descriptor);
        let regions: Vec<_> = regions
            .into_iter()
            .map(|meta| self.empty_region(meta, &descriptor))
            .collect();
        self.report_added(&regions, None);
        self.publish(&manifest, |tables| {
            tables.put(Table::new(descriptor, TableState::Enabled, regions));
        });
        Ok(())
    }

    /// Removes a disabled table.
    pub(crate) fn drop_table(&self, name: &TableName) -> Result<()> {
        self.system.check_not_system(name)?;
        let _schema = self.schema.lock();
        let table = self.disabled_table(name)?;
        let mut manifest = self.manifest.lock();
        self.append(&mut manifest, &ManifestEdit::DropTable(name.clone()))?;
        self.publish(&manifest, |tables| tables.remove(name));
        self.discard_regions(&manifest, &table.regions);
        Ok(())
    }

    /// Empties a disabled table and enables it.
    pub(crate) fn truncate_table(&self, name: &TableName, keep_splits: bool) -> Result<()> {
        let _schema = self.schema.lock();
        let table = self.disabled_table(name)?;
        let splits: Vec<Vec<u8>> = if keep_splits {
            table
                .regions
                .iter()
                .skip(1)
                .map(|region| region.info().start.clone())
                .collect()
        } else {
            Vec::new()
        };
        let newest = table
            .regions
            .iter()
            .map(|region| region.info().created_ms)
            .max()
            .unwrap_or_default();
        let created_ms = self.shared.clock.wall_ms().max(newest.saturating_add(1));
        let mut manifest = self.manifest.lock();
        let regions = region_metas(manifest.state(), name, &splits, created_ms);
        self.append(
            &mut manifest,
            &ManifestEdit::TruncateTable(name.clone(), regions.clone()),
        )?;
        let regions: Vec<_> = regions
            .into_iter()
            .map(|meta| self.empty_region(meta, &table.descriptor))
            .collect();
        self.report_added(&regions, None);
        self.publish(&manifest, |tables| {
            tables.put(Table::new(
                Arc::clone(&table.descriptor),
                TableState::Enabled,
                regions,
            ));
        });
        self.discard_regions(&manifest, &table.regions);
        Ok(())
    }

    /// Enables a disabled table.
    pub(crate) fn enable_table(&self, name: &TableName) -> Result<()> {
        let _schema = self.schema.lock();
        let table = self.table(name)?;
        if table.state != TableState::Disabled {
            let refusal = format!("{name} state is {}", table.state.as_str());
            return Err(Error::TableNotDisabled(refusal));
        }
        if let Some(directory) = self.shared.directory.get() {
            directory.enabled(name);
        }
        self.set_state(&table, TableState::Enabled)
    }

    /// Disables an enabled table, after flushing it. When it returns, no running data call can
    /// still write to the table.
    pub(crate) fn disable_table(&self, name: &TableName) -> Result<()> {
        if self.system.named(name).is_some() {
            return Err(Error::CatalogTable(format!("Cannot disable {name}")));
        }
        let _schema = self.schema.lock();
        let table = self.enabled_table(name)?;
        // The bulk is flushed while writes go on; later writes are flushed at the end.
        self.flush_all(&table.regions)?;
        self.set_state(&table, TableState::Disabled)?;
        self.flush_all(&table.regions)
    }

    fn set_state(&self, table: &Table, state: TableState) -> Result<()> {
        let mut manifest = self.manifest.lock();
        self.append(
            &mut manifest,
            &ManifestEdit::SetTableState(table.name().clone(), state),
        )?;
        self.publish(&manifest, |tables| {
            tables.put(Table::new(
                Arc::clone(&table.descriptor),
                state,
                table.regions.clone(),
            ));
        });
        Ok(())
    }

    /// Replaces a table's descriptor; families left out lose their data.
    pub(crate) fn alter_table(&self, descriptor: TableDescriptor) -> Result<()> {
        if descriptor.families.is_empty() {
            return Err(Error::DoNotRetry(format!(
                "Table {} should have at least one column family.",
                descriptor.name
            )));
        }
        self.alter(&descriptor.name.clone(), |_| Ok(descriptor))
    }

    /// Sets options of a table, or entries in the configuration of a family; those without a value are
    /// removed.
    pub(crate) fn set_options(
        &self,
        table: &TableName,
        family: Option<&[u8]>,
        changes: &[(&[u8], Option<&[u8]>)],
    ) -> Result<()> {
        self.alter(table, |descriptor| {
            let mut changed = descriptor.clone();
            let options = match family {
                None => &mut changed.attributes,
                Some(family) => {
                    let index = family_index(descriptor, family)?;
                    &mut changed.families[index].configuration
                }
            };
            for (option, value) in changes {
                match value {
                    Some(value) => options.insert(option.to_vec(), value.to_vec()),
                    None => options.remove(*option),
                };
            }
            Ok(changed)
        })
    }

    /// Adds a family.
    pub(crate) fn add_family(&self, table: &TableName, family: FamilyDescriptor) -> Result<()> {
        self.alter(table, |descriptor| {
            if descriptor.family(&family.name).is_some() {
                return Err(Error::InvalidFamilyOperation(format!(
                    "Column family '{}' in table '{table}' already exists so cannot be added",
                    escape(&family.name)
                )));
            }
            let mut changed = descriptor.clone();
            changed.families.push(family);
            changed.families.sort_by(|left, right| left.name.cmp(&right.name));
            Ok(changed)
        })
    }

    /// Replaces a family's options.
    pub(crate) fn alter_family(&self, table: &TableName, family: FamilyDescriptor) -> Result<()> {
        self.alter(table, |descriptor| {
            let index = existing_family(descriptor, &family.name, "modified")?;
            let mut changed = descriptor.clone();
            changed.families[index] = family;
            Ok(changed)
        })
    }

    /// Removes a family and its data.
    pub(crate) fn drop_family(&self, table: &TableName, family: &[u8]) -> Result<()> {
        self.alter(table, |descriptor| {
            let index = existing_family(descriptor, family, "deleted")?;
            if descriptor.families.len() == 1 {
                return Err(Error::InvalidFamilyOperation(format!(
                    "Family '{}' is the only column family in the table, so it cannot be deleted",
                    escape(family)
                )));
            }
            let mut changed = descriptor.clone();
            changed.families.remove(index);
            Ok(changed)
        })
    }

    /// Replaces a descriptor by the result of `change`.
    ///
    /// Writers are kept out from before the edit until the table is published. When families are
    /// dropped, all regions are flushed first: otherwise, after a crash, the log could restore the
    /// old cells into a family of the same name that was created later.
    fn alter(
        &self,
        name: &TableName,
        change: impl FnOnce(&TableDescriptor) -> Result<TableDescriptor>,
    ) -> Result<()> {
        self.system.check_not_system(name)?;
        let _schema = self.schema.lock();
        let table = self.table(name)?;
        let descriptor = Arc::new(change(&table.descriptor)?);
        self.check_descriptor(&descriptor)?;
        self.check_stores(name, table.regions.len() * descriptor.families.len())?;
        let edit = ManifestEdit::AlterTable(TableDescriptor::clone(&descriptor));
        self.check_edit(&edit)?;
        self.create_dirs(&descriptor)?;
        let dropped = table
            .descriptor
            .families
            .iter()
            .any(|family| descriptor.family(&family.name).is_none());
        let dropped = dropped && !seeded::is_on("dropped-family-not-flushed");
        if dropped {
            self.flush_all(&table.regions)?;
        }
        let mut regions: Vec<&Arc<Region>> = table.regions.iter().collect();
        regions.sort_by_key(|region| region.id());
        let flushing: Vec<_> = regions.iter().map(|region| region.flushing.lock()).collect();
        let blocked: Vec<_> = regions.iter().map(|region| region.updates.write()).collect();
        if dropped {
            self.flush_blocked(&regions, &blocked, &flushing)?;
        }
        let mut manifest = self.manifest.lock();
        self.append(&mut manifest, &edit)?;
        for region in &regions {
            let before = region.load_version();
            region.publish(|version| altered_version(version, &descriptor, &self.shared.store.chunks));
            let gone = before
                .stores
                .iter()
                .filter(|store| descriptor.family(&store.family.name).is_none());
            gone.flat_map(|store| &store.files)
                .for_each(|file| file.mark_obsolete());
        }
        self.publish(&manifest, |tables| {
            tables.put(Table::new(descriptor, table.state, table.regions.clone()));
        });
        Ok(())
    }

    fn disabled_table(&self, name: &TableName) -> Result<Arc<Table>> {
        let table = self.table(name)?;
        match table.state {
            TableState::Disabled => Ok(table),
            TableState::Enabled => Err(Error::TableNotDisabled(name.to_string())),
        }
    }

    /// Refuses a descriptor that makes no sense, or whose coprocessors would not run. Reports those that an
    /// option of the server or of the table accepts.
    fn check_descriptor(&self, descriptor: &TableDescriptor) -> Result<()> {
        descriptor.check()?;
        let is_refused = self.shared.options.unknown_user_code == UnknownUserCode::Refuse;
        if is_refused && descriptor.is_checked() {
            return descriptor.check_coprocessors();
        }
        for class in descriptor.unknown_coprocessors() {
            self.shared.listener.notice(&format!(
                "table {} names the coprocessor {}, which this server does not run",
                descriptor.name,
                Brief(class.as_bytes())
            ));
        }
        Ok(())
    }

    /// Refuses a table that is there already, or whose namespace is missing.
    pub(super) fn check_new_name(&self, name: &TableName) -> Result<()> {
        let tables = self.tables();
        if !tables.namespaces.contains_key(name.namespace()) {
            return Err(tables.no_such_namespace(name.namespace()));
        }
        if self.system.named(name).is_some() || tables.table(name).is_ok() {
            return Err(Error::TableExists(name.clone()));
        }
        Ok(())
    }

    pub(super) fn create_dirs(&self, descriptor: &TableDescriptor) -> Result<()> {
        for family in &descriptor.families {
            create_store_dir(
                &*self.shared.store.vfs,
                &self.shared.dir,
                &descriptor.name,
                &family.name,
            )?;
        }
        Ok(())
    }

    /// Releases regions that the manifest no longer has, and their files. `_manifest` proves that
    /// no result of a flush or compaction is being installed.
    pub(super) fn discard_regions(&self, _manifest: &MutexGuard<'_, Manifest>, regions: &[Arc<Region>]) {
        for region in regions {
            region.retire();
            region.mark_files_obsolete();
            if let Some(directory) = self.shared.directory.get() {
                directory.removed(region.id());
            }
            region.pin_memstores();
        }
    }
}

/// The stores of a region under another descriptor: kept, made, or left out with their files.
fn altered_version(
    version: &RegionVersion,
    descriptor: &Arc<TableDescriptor>,
    chunks: &Arc<ChunkPool>,
) -> RegionVersion {
    let stores = descriptor
        .families
        .iter()
        .map(|family| {
            let options = Arc::new(family.clone());
            Arc::new(match version.table.family(&family.name) {
                Some((index, _)) => version.stores[index].with_family(options),
                None => StoreVersion::new(options, Vec::new(), Memstore::new(Arc::clone(chunks))),
            })
        })
        .collect();
    RegionVersion {
        table: Arc::clone(descriptor),
        stores,
    }
}

fn existing_family(descriptor: &TableDescriptor, family: &[u8], action: &str) -> Result<usize> {
    descriptor.family(family).map(|(index, _)| index).ok_or_else(|| {
        Error::InvalidFamilyOperation(format!(
            "Family '{}' does not exist, so it cannot be {action}",
            Cut(family)
        ))
    })
}

/// Sorts split keys; refuses empty, equal and overlong ones.
fn check_splits(mut splits: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    splits.sort();
    if splits.first().is_some_and(Vec::is_empty) {
        return Err(Error::InvalidArgument(
            "Empty split key must not be passed in the split keys.".into(),
        ));
    }
    if let Some([twice, _]) = splits.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::InvalidArgument(format!(
            "All split keys must be unique, found duplicate: {}",
            Cut(twice)
        )));
    }
    for split in &splits {
        check_row(split)?;
        check_split_key(split)?;
    }
    SPLIT_KEYS.check(splits.iter().map(Vec::len).sum(), "the list of split keys")?;
    Ok(splits)
}

/// Refuses a start row that would make the region's name too long for a row of `hbase:meta`.
pub(super) fn check_split_key(row: &[u8]) -> Result<()> {
    SPLIT_KEY.check(row.len(), format_args!("split key {}", Brief(row)))
}

/// New regions cut at `splits`, which are sorted.
fn region_metas(
    state: &ManifestState,
    table: &TableName,
    splits: &[Vec<u8>],
    created_ms: u64,
) -> Vec<RegionMeta> {
    (0..=splits.len())
        .map(|index| RegionMeta {
            id: RegionId(state.next_region + index as u64),
            table: table.clone(),
            start: index
                .checked_sub(1)
                .map(|before| splits[before].clone())
                .unwrap_or_default(),
            end: splits.get(index).cloned().unwrap_or_default(),
            created_ms,
        })
        .collect()
}
