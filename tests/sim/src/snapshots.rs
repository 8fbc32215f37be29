//! Snapshots of tables in the workload.

use basalt_engine::Result;
use basalt_engine::id::RegionId;

use super::Stop;
use super::life::{Kind, Life};
use super::model::difference;
use super::model::{Change, Pending, Tables};
use super::read::{self, name};
use super::schema::TABLES;

/// Most snapshots.
const NAMES: [&str; 2] = ["s1", "s2"];

/// The table that snapshots are read through.
const PROBE: &str = "of-snapshot";

impl Life {
    pub(super) fn change_snapshots(&mut self, kind: Kind) -> std::result::Result<(), Stop> {
        let Some((snapshot, table)) = self.draw_snapshot(kind) else {
            return Ok(());
        };
        let mut after = Change {
            tables: self.told.tables.clone(),
            snapshots: self.told.snapshots.clone(),
            restored: None,
        };
        match kind {
            Kind::Snapshot => {
                let taken = after.tables[&table].clone();
                after.snapshots.insert(snapshot.clone(), taken);
            }
            Kind::DeleteSnapshot => {
                after.snapshots.remove(&snapshot);
            }
            _ => {
                let mut made = after.snapshots[&snapshot].clone();
                made.descriptor.name = name(&table);
                // A table that is there is disabled, and stays so.
                made.enabled = !after.tables.contains_key(&table);
                after.tables.insert(table.clone(), made);
                after.restored = Some((table.clone(), self.region_ids(&table)));
            }
        }
        self.told.tell(format!("{kind:?} {snapshot} of or to {table}"));
        self.told.pending = Pending::Schema(Box::new(after.clone()));
        match kind {
            Kind::Snapshot => self.engine.snapshot(&name(&table), &snapshot, true, 0)?,
            Kind::DeleteSnapshot => self.engine.delete_snapshot(&snapshot)?,
            Kind::CloneSnapshot => self.engine.clone_snapshot(&snapshot, &name(&table))?,
            _ => self.engine.restore_snapshot(&snapshot)?,
        }
        self.done();
        self.told.tables = after.tables;
        self.told.snapshots = after.snapshots;
        if kind == Kind::Snapshot {
            self.told.flushed(Some(&table));
        }
        Ok(())
    }

    /// A snapshot and a table for a call; `None`: there are none.
    fn draw_snapshot(&mut self, kind: Kind) -> Option<(String, String)> {
        let tables = &self.told.tables;
        let text = |name: &&str| (*name).to_owned();
        let of = |snapshots: &Tables, snapshot: &str| snapshots[snapshot].descriptor.name.to_string();
        let known: Vec<String> = self.told.snapshots.keys().cloned().collect();
        let free = |taken: &Tables, names: &[&str]| -> Vec<String> {
            let free = names.iter().filter(|name| !taken.contains_key(**name));
            free.map(text).collect()
        };
        let pairs: Vec<(String, String)> = match kind {
            Kind::Snapshot => {
                let name = free(&self.told.snapshots, &NAMES).into_iter().next()?;
                tables.keys().map(|table| (name.clone(), table.clone())).collect()
            }
            Kind::CloneSnapshot => {
                let table = free(tables, TABLES).into_iter().next()?;
                known.into_iter().map(|name| (name, table.clone())).collect()
            }
            _ => known
                .into_iter()
                .map(|name| {
                    let table = of(&self.told.snapshots, &name);
                    (name, table)
                })
                .filter(|(_, table)| {
                    kind == Kind::DeleteSnapshot || tables.get(table).is_none_or(|table| !table.enabled)
                })
                .collect(),
        };
        (!pairs.is_empty()).then(|| pairs[self.pick(pairs.len())].clone())
    }

    /// The ids of a table's regions; none of a table that is not there.
    pub(super) fn region_ids(&self, table: &str) -> Vec<RegionId> {
        let regions = self.engine.regions(&name(table)).unwrap_or_default();
        regions.iter().map(|region| region.id).collect()
    }

    /// Every snapshot has what its table had, as a table that is made of it shows.
    pub(super) fn compare_snapshots(&self) -> std::result::Result<(), Stop> {
        for (snapshot, table) in &self.told.snapshots {
            let found = self.read_snapshot(snapshot)?;
            if found != table.rows {
                return Err(Stop::Wrong(format!(
                    "snapshot {snapshot}: {}",
                    difference(&table.rows, &found)
                )));
            }
        }
        Ok(())
    }

    fn read_snapshot(&self, snapshot: &str) -> Result<super::model::Rows> {
        let probe = name(PROBE);
        self.engine.clone_snapshot(snapshot, &probe)?;
        let rows = read::rows(&self.engine, PROBE)?;
        self.engine.disable_table(&probe)?;
        self.engine.drop_table(&probe)?;
        Ok(rows)
    }
}
