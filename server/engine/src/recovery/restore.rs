//! A directory that copies of a pin's files are put into, to become a database.
//!
//! 1. [`Restore::decode`] reads what the manifest said, [`Restore::follow`] brings it over turns that came
//!    later, and [`Restore::keep_tables`] and [`Restore::leave_out_family`] may leave something out.
//! 2. The caller copies the files that [`Restore::files`] names, and the segments of the log.
//! 3. [`Restore::cut_log`] may end the log earlier.
//! 4. [`Restore::install`] syncs the directories and writes the manifest, last: without it the directory is
//!    no database.
//! 5. [`Builder::settle`](crate::engine::Builder::settle) puts rows of regions of after the pin into those of
//!    the pin, and empties a log that has cells of families that were left out.
//!
//! A start on the directory replays the log, as after a power cut. Edits of regions that were left out are
//! skipped, as those of dropped tables are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Moved, wal_dir};
use crate::catalog::{PinnedFile, files_of};
use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::id::{SeqId, Uuid};
use crate::manifest::{self, ManifestEdit, ManifestState, decode_edit, decode_state, is_file_name};
use crate::schema::{Escaped, TableName};
use crate::wal::{cut, position_at};

/// State of a pin's manifest, to be written into another directory.
#[derive(Clone, Debug)]
pub struct Restore {
    state: ManifestState,
    moved: Moved,
    /// Families were left out whose cells may be in the log.
    leaves_out_cells: bool,
}

impl Restore {
    /// Reads what [`Pin::manifest`](crate::engine::Pin::manifest) has written. `from` names it in the error.
    pub fn decode(bytes: &[u8], from: &Path) -> Result<Self> {
        let state = decode_state(bytes).map_err(|what| Error::corrupt(from, 0, what))?;
        Ok(Self {
            state,
            moved: Moved::default(),
            leaves_out_cells: false,
        })
    }

    /// The identity that the database has.
    pub fn cluster_id(&self) -> Uuid {
        self.state.cluster_id
    }

    /// Gives the database an identity of its own.
    pub fn draw_cluster_id(&mut self, vfs: &dyn Vfs) -> Result<()> {
        let drawn = vfs.draw_uuid();
        self.state.cluster_id =
            Uuid(drawn.map_err(|source| Error::io("drawing a cluster id for", ".", source))?);
        Ok(())
    }

    /// All tables.
    pub fn tables(&self) -> Vec<TableName> {
        self.state.tables.keys().cloned().collect()
    }

    /// All regions, with their tables.
    #[cfg(feature = "server")]
    pub(crate) fn regions(&self) -> impl Iterator<Item = (crate::id::RegionId, &TableName)> {
        let regions = self.state.regions.values();
        regions.map(|region| (region.meta.id, &region.meta.table))
    }

    /// The greatest assigned timestamp that the manifest states.
    #[cfg(feature = "server")]
    pub(crate) fn timestamp_ms(&self) -> u64 {
        self.state.timestamp_ms
    }

    /// Brings the state over a turn. Snapshots that were taken since the pin are left out, since their files
    /// are not in it, and so are splits and merges: the regions stay those of the pin.
    pub fn follow(&mut self, turn: &[u8]) -> Result<()> {
        let at = Path::new("a turn of the log");
        let edit = decode_edit(turn).map_err(|what| Error::corrupt(at, 0, what))?;
        match &edit {
            ManifestEdit::CreateSnapshot(_) => return Ok(()),
            ManifestEdit::DropSnapshot(name) if !self.state.snapshots.contains_key(name) => return Ok(()),
            ManifestEdit::ReplaceRegions { added, .. } => {
                for region in added {
                    self.moved.note(region.id, &region.table);
                    self.state.next_region = self.state.next_region.max(region.id.0 + 1);
                }
                return Ok(());
            }
            ManifestEdit::DropTable(table) | ManifestEdit::TruncateTable(table, _) => {
                self.moved.forget(table);
            }
            _ => {}
        }
        self.state.apply(&edit).map(drop)
    }

    /// Regions that the turns have made by splits and merges.
    pub(crate) fn moved(&self) -> &Moved {
        &self.moved
    }

    /// True if the log has rows that a first start must put into store files.
    pub(crate) fn must_settle(&self) -> bool {
        self.leaves_out_cells || !self.moved.is_empty()
    }

    /// Leaves out a family, and all snapshots. Its cells in the log are gone when the directory was settled.
    pub fn leave_out_family(&mut self, name: &TableName, family: &[u8]) -> Result<()> {
        let table = self.state.tables.get(name).filter(|_| !name.is_system());
        let table = table.ok_or_else(|| Error::NoSuchTable(name.clone()))?;
        let mut descriptor = table.descriptor.clone();
        let before = descriptor.families.len();
        descriptor.families.retain(|own| own.name != family);
        if descriptor.families.len() == before {
            return Err(Error::NoSuchFamily {
                family: Escaped(family).to_string(),
                table: name.clone(),
            });
        }
        if descriptor.families.is_empty() {
            return Err(Error::InvalidArgument(format!(
                "{} is the only family of {name}: leave out the table",
                Escaped(family)
            )));
        }
        self.state.apply(&ManifestEdit::AlterTable(descriptor))?;
        self.state.snapshots.clear();
        self.leaves_out_cells = true;
        Ok(())
    }

    /// Leaves out all other tables, and all snapshots. System tables stay.
    pub fn keep_tables(&mut self, names: &[TableName]) -> Result<()> {
        if let Some(missing) = names.iter().find(|name| !self.state.tables.contains_key(name)) {
            return Err(Error::NoSuchTable(missing.clone()));
        }
        let stays = |name: &TableName| name.is_system() || names.contains(name);
        self.state.tables.retain(|name, _| stays(name));
        self.state.regions.retain(|_, region| stays(&region.meta.table));
        self.state.snapshots.clear();
        Ok(())
    }

    /// The store files that must be in the directory.
    pub fn files(&self) -> Vec<PinnedFile> {
        files_of(&self.state)
    }

    /// Ends the log behind the last edit up to `upto`. Returns the sequence id of the last row that is left.
    /// REQUIRES: `upto` is not before the pin's position, and all segments are in place.
    pub fn cut_log(&self, vfs: &dyn Vfs, dir: &Path, upto: SeqId) -> Result<SeqId> {
        cut(vfs, &wal_dir(dir), upto)
    }

    /// The sequence id of the last row that was written up to a time of the wall clock, which is between the
    /// pin and the end of the log.
    /// REQUIRES: all segments are in place.
    pub fn position_at(&self, vfs: &dyn Vfs, dir: &Path, from: SeqId, wall_ms: u64) -> Result<SeqId> {
        position_at(vfs, &wal_dir(dir), from, wall_ms)
    }

    /// Makes the directory a database: syncs its directories, then writes the manifest.
    pub fn install(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let names = vfs
            .list(dir)
            .map_err(|source| Error::io("listing", dir, source))?;
        if let Some(name) = names.iter().find(|name| is_file_name(name)) {
            let what = "a manifest is there already";
            return Err(Error::corrupt(dir.join(name), 0, what));
        }
        let mut dirs: BTreeSet<PathBuf> = BTreeSet::from([dir.to_owned(), wal_dir(dir)]);
        for file in self.files() {
            let path = dir.join(file.path);
            let levels = path
                .ancestors()
                .skip(1)
                .take_while(|level| level.starts_with(dir));
            dirs.extend(levels.map(Path::to_path_buf));
        }
        for family in self.families(dir) {
            vfs.create_dir_all(&family)
                .map_err(|source| Error::io("creating", &family, source))?;
            let levels = family.ancestors().take_while(|level| level.starts_with(dir));
            dirs.extend(levels.map(Path::to_path_buf));
        }
        for level in dirs.iter().rev() {
            vfs.sync_dir(level)
                .map_err(|source| Error::io("syncing", level, source))?;
        }
        manifest::create(vfs, dir, &self.state)
    }

    /// The directories of all families: the engine creates them with a table, and relies on them.
    fn families(&self, dir: &Path) -> Vec<PathBuf> {
        let tables = self.state.tables.iter();
        tables
            .flat_map(|(name, table)| {
                let families = table.descriptor.families.iter();
                families.map(|family| crate::store::store_dir(dir, name, &family.name))
            })
            .collect()
    }
}
