//! After a crash: the next process opens the database, and every acknowledged or observed state
//! holds.

use std::path::Path;

use basalt_engine::fs::sim::{SimFs, SplitMix64};
use basalt_engine::internals::manifest;
use basalt_engine::op::{RowMutation, Write};
use basalt_engine::schema::Durability;
use basalt_engine::{Engine, Result};

use super::life::{Kind, Life, draw_clock};
use super::model::{Pending, Row, Tables, Told, difference, set, state_of};
use super::read::{self, name};
use super::{DIR, FIRST_MS, Machine, Stop, below};

/// The row that is written after every crash.
const PROBE: &str = "zz";

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// All data is compared.
    Compare,
    /// Then the database is written to, flushed, read again and checked.
    Work,
}

/// Opens the database on the disk after a crash and compares it with the acknowledged state. The
/// process goes on living.
///
/// The dice decide whether the machine's clock was set back or forward meanwhile.
pub(crate) fn verify(
    disk: SimFs,
    told: &Told,
    effort: Effort,
    mut dice: SplitMix64,
) -> std::result::Result<Life, String> {
    let newest = u64::try_from(told.stamped_ms).unwrap_or_default().max(FIRST_MS);
    let wall_ms = match dice.below(4) {
        0 => newest - 2_000,
        1 => newest + 1_000,
        _ => draw_clock(newest, &mut dice),
    };
    current_is_whole(&disk)?;
    let machine = Machine::at(disk, wall_ms);
    let mut life = Life::begin(&machine, told.clone(), dice).map_err(|ended| match ended.1 {
        Stop::Failed(error) => format!("it cannot be opened: {error}"),
        Stop::Wrong(what) => what,
    })?;
    let failed = |stop: Stop| match stop {
        Stop::Failed(error) => format!("after the start: {error}"),
        Stop::Wrong(what) => what,
    };
    life.told.tell("crash and start".into());
    life.settle().map_err(failed)?;
    life.prove_time().map_err(failed)?;
    // After `prove_time`, whose write reads back the engine's assigned time.
    life.retry().map_err(failed)?;
    life.load_again().map_err(failed)?;
    if effort == Effort::Work {
        life.prove_work().map_err(failed)?;
        machine.check()?;
    }
    Ok(life)
}

/// CURRENT is replaced as a whole: a crash leaves the old one or the new one, and never one that the
/// manifests must make good.
fn current_is_whole(disk: &SimFs) -> std::result::Result<(), String> {
    let current = below("CURRENT");
    if disk.contents(&current).is_err() {
        // A creation was cut short.
        return Ok(());
    }
    // Whatever else is wrong with the manifest shows when the database is opened.
    let Ok(verified) = manifest::verify(disk, Path::new(DIR)) else {
        return Ok(());
    };
    let damaged = format!("{} is missing or damaged", current.display());
    match verified
        .warnings
        .iter()
        .find(|warning| warning.starts_with(&damaged))
    {
        Some(warning) => Err(format!("after the crash {warning}")),
        None => Ok(()),
    }
}

impl Life {
    /// Determines the outcome of the call in flight, and compares everything else with the
    /// acknowledged state.
    pub(crate) fn settle(&mut self) -> std::result::Result<(), Stop> {
        let pending = std::mem::take(&mut self.told.pending);
        self.settle_schema(&pending)?;
        for table in self.names(false) {
            self.engine.enable_table(&name(&table))?;
            if let Some(table) = self.told.tables.get_mut(&table) {
                table.enabled = true;
            }
        }
        if let Pending::Times { table, row } = &pending {
            self.take_times(table, row)?;
        }
        self.settle_rows(&pending)
    }

    /// The engine's tables must be those before or after the call in flight; the model takes over
    /// the state that matches.
    pub(crate) fn settle_schema(&mut self, pending: &Pending) -> std::result::Result<(), Stop> {
        let found = read::schema(&self.engine);
        let same = |tables: &Tables| {
            tables.len() == found.len()
                && tables.iter().all(|(name, table)| {
                    found.get(name).is_some_and(|found| {
                        found.descriptor == table.descriptor && found.enabled == table.enabled
                    })
                })
        };
        let snapshots: Vec<String> = self
            .engine
            .snapshots()
            .iter()
            .map(|snapshot| snapshot.name.clone())
            .collect();
        let same_snapshots = |known: &Tables| known.keys().eq(&snapshots);
        match pending {
            Pending::Schema(after)
                if same(&after.tables)
                    && same_snapshots(&after.snapshots)
                    && after
                        .restored
                        .as_ref()
                        .is_none_or(|(table, ids)| self.region_ids(table) != *ids) =>
            {
                self.told.tables.clone_from(&after.tables);
                self.told.snapshots.clone_from(&after.snapshots);
                Ok(())
            }
            _ if same(&self.told.tables) && same_snapshots(&self.told.snapshots) => Ok(()),
            _ => {
                let shown: Vec<_> = found
                    .iter()
                    .map(|(name, table)| (name, table.enabled, table.descriptor.families.len()))
                    .collect();
                Err(Stop::Wrong(format!(
                    "the tables (with whether they are enabled, and the number of families) are {shown:?}, the snapshots {snapshots:?}"
                )))
            }
        }
    }

    fn settle_rows(&mut self, pending: &Pending) -> std::result::Result<(), Stop> {
        let nothing = (String::new(), Vec::new(), false);
        let (of, after, whole) = match pending {
            Pending::Rows { table, after, whole } => (table, after, *whole),
            _ => (&nothing.0, &nothing.1, nothing.2),
        };
        let weak = std::mem::take(&mut self.told.weak);
        for (table_name, table) in &mut self.told.tables {
            let found = read::rows(&self.engine, table_name)?;
            if of == table_name {
                let came = |(row, after): &&(String, Row)| {
                    let before = state_of(&table.rows, row);
                    before != *after && after.is(&state_of(&found, row))
                };
                let changed = after
                    .iter()
                    .filter(|(row, after)| state_of(&table.rows, row) != *after);
                let (changed, came): (Vec<_>, Vec<_>) =
                    (changed.collect(), after.iter().filter(came).collect());
                if whole && !came.is_empty() && came.len() < changed.len() {
                    return Err(Stop::Wrong(format!(
                        "of one edit with {} rows, {} are there: {came:?}",
                        changed.len(),
                        came.len()
                    )));
                }
                for (row, _) in came {
                    set(&mut table.rows, row, state_of(&found, row));
                }
            }
            for ((of, row), weak) in &weak {
                if of == table_name {
                    let state = state_of(&found, row);
                    if weak.states.contains(&state) {
                        set(&mut table.rows, row, state);
                    }
                }
            }
            if table.rows != found {
                return Err(Stop::Wrong(format!(
                    "table {table_name}: {}",
                    difference(&table.rows, &found)
                )));
            }
        }
        Ok(())
    }

    /// Writes a row, and checks that its timestamp is not before that of any acknowledged write.
    pub(crate) fn prove_time(&mut self) -> std::result::Result<(), Stop> {
        let Some(table) = self.enabled() else {
            return Ok(());
        };
        let value = format!("probe {}", self.told.writes).into_bytes();
        probe(&self.engine, &table, &value)?;
        let row = read::row(&self.engine, &table, PROBE)?;
        if row.newest("a", "q0").map(|version| &version.1) != Some(&value) {
            return Err(Stop::Wrong(format!(
                "a row written after the start is {row:?}, and {value:?} was put"
            )));
        }
        let newest = row.newest("a", "q0").map_or(0, |version| version.0);
        if newest < self.told.stamped_ms {
            return Err(Stop::Wrong(format!(
                "a write after the start has the time {newest}, one before it had {}",
                self.told.stamped_ms
            )));
        }
        self.told.set_row(&table, PROBE, row);
        // Assigned time runs at three quarters of the speed while the clock is behind: 4 ms give
        // the next write of this row a later timestamp.
        self.machine.clock.advance_ms(4);
        self.told.stamped_ms = newest;
        Ok(())
    }

    /// The engine does all it has to.
    pub(crate) fn prove_work(&mut self) -> std::result::Result<(), Stop> {
        for table in self.names(true) {
            self.put_row(&table, PROBE)?;
            self.engine.flush(&name(&table))?;
            self.told.flushed(Some(&table));
        }
        for kind in [Kind::Increment, Kind::Tick, Kind::Scan] {
            self.act(kind)?;
        }
        self.compare_snapshots()?;
        self.compare()
    }

    /// All readable data matches the acknowledged state.
    pub(crate) fn compare(&self) -> std::result::Result<(), Stop> {
        for (table_name, table) in &self.told.tables {
            if !table.enabled {
                continue;
            }
            let found = read::rows(&self.engine, table_name)?;
            if found != table.rows {
                return Err(Stop::Wrong(format!(
                    "table {table_name}: {}",
                    difference(&table.rows, &found)
                )));
            }
        }
        Ok(())
    }
}

fn probe(engine: &Engine, table: &str, value: &[u8]) -> Result<()> {
    let put = Write::Put {
        family: b"a",
        qualifier: b"q0",
        timestamp: None,
        value,
        ttl_ms: None,
    };
    let mutation = RowMutation {
        row: PROBE.as_bytes(),
        writes: std::iter::once(put).collect(),
        durability: Durability::UseDefault,
    };
    engine.mutate(&name(table), &[mutation])?.wait()
}
