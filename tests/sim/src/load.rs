//! Bulk loads in the workload: HFiles that lie outside the data directory, one to three of each
//! family, for some rows of one region. Every row has cells in all families, and the rows are dealt
//! out to the files, so that a load that is not whole shows.
//!
//! The files must not change. After a crash the load in flight is repeated, as by a client without
//! an answer.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use basalt_engine::cell::{Cell, CellType, KeyBuf};
use basalt_engine::engine::LoadFile;
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::id::{SeqId, Uuid};
use basalt_engine::internals::hfile::{Writer, WriterOptions};
use basalt_engine::schema::FamilyDescriptor;
use basalt_engine::{Kind, Result};

use super::Stop;
use super::act::Put;
use super::life::Life;
use super::model::{Offered, Pending, Row};
use super::read::name;

/// Where the files lie.
const DIR: &str = "/hfiles";

/// The row whose write gives a load its timestamp: no other write has the same.
const STAMP: &str = "ld";

/// Most files of a family in one load.
const FILES_MAX: usize = 3;

/// A row with its puts.
type Loaded = (String, Vec<Put>);

impl Life {
    pub(super) fn load(&mut self, table: &str) -> std::result::Result<(), Stop> {
        self.put_row(table, STAMP)?;
        let stamp = self.told.row(table, STAMP);
        let at = stamp.newest("a", "q0").map_or(0, |version| version.0);
        self.told.writes += 1;
        let rows = self.draw_rows(table)?;
        let keys: Vec<&str> = rows.iter().map(|(row, _)| row.as_str()).collect();
        self.told
            .tell(format!("write {}: loads {table}/{keys:?}", self.told.writes));
        let files = self.write_files(table, &rows, at)?;
        let after = self.after_load(table, &rows, at);
        self.load_offered(&Offered {
            table: table.to_owned(),
            files,
            after,
        })
    }

    /// Rows of one region, with their puts.
    fn draw_rows(&mut self, table: &str) -> Result<Vec<Loaded>> {
        let row = self.draw_row();
        let region = self.engine.region_of(&name(table), row.as_bytes())?;
        let mut rows: Vec<Loaded> = Vec::new();
        for _ in 0..=self.pick(6) {
            let row = self.draw_row();
            if region.contains(row.as_bytes()) && rows.iter().all(|(there, _)| *there != row) {
                let puts = self.draw_puts(table);
                rows.push((row, puts));
            }
        }
        rows.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(rows)
    }

    /// Loads files, and removes them.
    fn load_offered(&mut self, offered: &Offered) -> std::result::Result<(), Stop> {
        let Some((first, _)) = offered.after.first() else {
            return Ok(());
        };
        let region = self.engine.region_of(&name(&offered.table), first.as_bytes())?;
        self.told.offered = Some(offered.clone());
        self.told.pending = Pending::Rows {
            table: offered.table.clone(),
            after: offered.after.clone(),
            whole: true,
        };
        let files: Vec<LoadFile> = offered.files.iter().map(|(file, _)| file.clone()).collect();
        let loaded = self.engine.bulk_load(region.id, &files, &AtomicBool::new(false));
        if let Err(error) = loaded {
            if error.kind() != Kind::Fatal && !self.machine.disk.is_dead() {
                // Refused: it never was.
                self.told.offered = None;
            }
            return Err(error.into());
        }
        for (row, state) in &offered.after {
            self.told.set_row(&offered.table, row, state.clone());
        }
        self.done();
        self.check_sources(offered)?;
        self.told.offered = None;
        for file in files {
            self.machine
                .disk
                .remove_file(&file.path)
                .map_err(|source| basalt_engine::Error::io("removing", file.path, source))?;
        }
        Ok(())
    }

    /// After a crash: the files of the load that was under way are as they were, and loading them again
    /// leaves every row loaded.
    pub(super) fn load_again(&mut self) -> std::result::Result<(), Stop> {
        let Some(offered) = self.told.offered.take() else {
            return Ok(());
        };
        self.check_sources(&offered)?;
        self.told.tell(format!("loads {} again", offered.table));
        self.load_offered(&offered)
    }

    /// The files are as they were offered.
    fn check_sources(&self, offered: &Offered) -> std::result::Result<(), Stop> {
        for (file, bytes) in &offered.files {
            let found = self.machine.disk.contents(&file.path);
            if found.as_ref().ok() != Some(bytes) {
                return Err(Stop::Wrong(format!(
                    "a bulk load has changed its source {}: {:?} bytes, it had {}",
                    file.path.display(),
                    found.map(|found| found.len()),
                    bytes.len()
                )));
            }
        }
        Ok(())
    }

    fn after_load(&self, table: &str, rows: &[Loaded], at: i64) -> Vec<(String, Row)> {
        let after = |(row, puts): &Loaded| {
            let mut state = self.told.row(table, row);
            for (family, qualifier, value) in puts {
                let many = self.keeps_many(table, family);
                state.put(family, qualifier, at, value.clone(), many);
            }
            (row.clone(), state)
        };
        rows.iter().map(after).collect()
    }

    /// Writes one to [`FILES_MAX`] files of each family, if there are rows, and makes them durable. A
    /// file may have no rows.
    fn write_files(&mut self, table: &str, rows: &[Loaded], at: i64) -> Result<Vec<(LoadFile, Vec<u8>)>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let disk = self.machine.disk.clone();
        let sync = |dir: &Path| {
            disk.sync_dir(dir)
                .map_err(|source| basalt_engine::Error::io("syncing", dir, source))
        };
        disk.create_dir_all(DIR.as_ref())
            .map_err(|source| basalt_engine::Error::io("creating", DIR, source))?;
        let descriptor = self.told.table(table).descriptor.clone();
        let mut files = Vec::new();
        for family in &descriptor.families {
            let count = self.pick(FILES_MAX) + 1;
            for number in 0..count {
                let own = rows.iter().skip(number).step_by(count);
                files.push(self.write_file(family, number, own, at)?);
            }
        }
        sync(DIR.as_ref())?;
        sync("/".as_ref())?;
        Ok(files)
    }

    /// Writes the file of this number of a family.
    fn write_file<'a>(
        &self,
        family: &FamilyDescriptor,
        number: usize,
        rows: impl Iterator<Item = &'a Loaded>,
        at: i64,
    ) -> Result<(LoadFile, Vec<u8>)> {
        let disk = &self.machine.disk;
        let name = String::from_utf8_lossy(&family.name).into_owned();
        let path = PathBuf::from(DIR).join(format!("{}-{name}-{number}", self.told.writes));
        let io = |source| basalt_engine::Error::io("writing", &path, source);
        let file = disk.open(&path, Open::CreateNew).map_err(io)?;
        let options = WriterOptions::of_family(family, Uuid([1; 16]), 1, SeqId::ZERO);
        let mut writer = Writer::create(file, &path, options)?;
        for (row, puts) in rows {
            for (_, qualifier, value) in puts.iter().filter(|put| put.0 == name) {
                let key = KeyBuf::new(
                    row.as_bytes(),
                    &family.name,
                    qualifier.as_bytes(),
                    at,
                    CellType::Put,
                );
                writer.append(Cell {
                    key: key.as_key(),
                    value,
                    tags: b"",
                    seq: SeqId::ZERO,
                })?;
            }
        }
        writer.finish()?;
        let bytes = disk.contents(&path).map_err(io)?;
        let family = family.name.clone();
        Ok((LoadFile { family, path }, bytes))
    }
}
