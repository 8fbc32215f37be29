//! Bulk loads in the workload: HFiles that lie outside the data directory, one of each family, for
//! some rows of one region. Every row has cells in all families, so that a load that is not whole
//! shows.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use basalt_engine::Result;
use basalt_engine::cell::{Cell, CellType, KeyBuf};
use basalt_engine::engine::LoadFile;
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::id::{SeqId, Uuid};
use basalt_engine::internals::hfile::{Writer, WriterOptions};
use basalt_engine::schema::FamilyDescriptor;

use super::Stop;
use super::act::Put;
use super::life::Life;
use super::model::{Pending, Row};
use super::read::name;

/// Where the files lie.
const DIR: &str = "/hfiles";

/// The row whose write gives a load its timestamp: no other write has the same.
const STAMP: &str = "ld";

/// A row with what is put into it.
type Loaded = (String, Vec<Put>);

impl Life {
    pub(super) fn load(&mut self, table: &str) -> std::result::Result<(), Stop> {
        self.put_row(table, STAMP)?;
        let stamp = self.told.row(table, STAMP);
        let at = stamp.newest("a", "q0").map_or(0, |version| version.0);
        self.told.writes += 1;
        let row = self.draw_row();
        let region = self.engine.region_of(&name(table), row.as_bytes())?;
        let mut rows: Vec<Loaded> = Vec::new();
        for _ in 0..=self.pick(3) {
            let row = self.draw_row();
            if region.contains(row.as_bytes()) && rows.iter().all(|(there, _)| *there != row) {
                let puts = self.draw_puts(table);
                rows.push((row, puts));
            }
        }
        rows.sort_by(|left, right| left.0.cmp(&right.0));
        let keys: Vec<&str> = rows.iter().map(|(row, _)| row.as_str()).collect();
        self.told
            .tell(format!("write {}: loads {table}/{keys:?}", self.told.writes));
        let files = self.write_files(table, &rows, at)?;
        let after = self.after_load(table, &rows, at);
        self.told.pending = Pending::Rows {
            table: table.to_owned(),
            after: after.clone(),
            whole: true,
        };
        self.engine
            .bulk_load(region.id, &files, &AtomicBool::new(false))?;
        for (row, state) in after {
            self.told.set_row(table, &row, state);
        }
        self.done();
        for file in files {
            self.machine
                .disk
                .remove_file(&file.path)
                .map_err(|source| basalt_engine::Error::io("removing", file.path, source))?;
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

    /// Writes a file of each family, if there are rows.
    fn write_files(&self, table: &str, rows: &[Loaded], at: i64) -> Result<Vec<LoadFile>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let families = &self.told.table(table).descriptor.families;
        families
            .iter()
            .map(|family| {
                let path = self.write_file(family, rows, at)?;
                Ok(LoadFile {
                    family: family.name.clone(),
                    path,
                })
            })
            .collect()
    }

    fn write_file(&self, family: &FamilyDescriptor, rows: &[Loaded], at: i64) -> Result<PathBuf> {
        let disk = &self.machine.disk;
        let name = String::from_utf8_lossy(&family.name).into_owned();
        let path = PathBuf::from(DIR).join(format!("{}-{name}", self.told.writes));
        let io = |source| basalt_engine::Error::io("writing", &path, source);
        disk.create_dir_all(DIR.as_ref()).map_err(io)?;
        let file = disk.open(&path, Open::CreateNew).map_err(io)?;
        let options = WriterOptions::of_family(family, Uuid([1; 16]), 1, SeqId::ZERO);
        let mut writer = Writer::create(file, &path, options)?;
        for (row, puts) in rows {
            for (_, qualifier, value) in puts.iter().filter(|put| put.0 == name) {
                writer.append(Cell {
                    key: KeyBuf::new(
                        row.as_bytes(),
                        &family.name,
                        qualifier.as_bytes(),
                        at,
                        CellType::Put,
                    )
                    .as_key(),
                    value,
                    tags: b"",
                    seq: SeqId::ZERO,
                })?;
            }
        }
        writer.finish()?;
        Ok(path)
    }
}
