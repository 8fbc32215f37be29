//! Writes of the workload.

use basalt_engine::Commit;
use basalt_engine::cell::CellBatch;
use basalt_engine::clock::Clock;
use basalt_engine::op::{Check, CompareOp, RowMutation, RowUpdate, Write};
use basalt_engine::schema::Durability;
use basalt_engine::{Engine, Result};

use super::Stop;
use super::life::{Kind, Life};
use super::model::{MANY, Operation, Pending, ROW_AHEAD_MS, Retry, Row, Weak};
use super::read::{self, name};

/// Rows of a table that ordinary writes go to: `r00`, `r01`, ...
const ROWS: usize = 12;

/// Columns of a family that puts go to.
const QUALIFIERS: [&str; 3] = ["q0", "q1", "q2"];

/// One tombstone.
#[derive(Clone, Debug)]
enum Tombstone {
    Row,
    Family(String, Option<i64>),
    FamilyVersion(String, i64),
    Column(String, String, Option<i64>),
    Version(String, String, Option<i64>),
}

impl Tombstone {
    fn as_write(&self) -> Write<'_> {
        match self {
            Self::Row => Write::DeleteRow { timestamp: None },
            Self::Family(family, timestamp) => Write::DeleteFamily {
                family: family.as_bytes(),
                timestamp: *timestamp,
            },
            Self::FamilyVersion(family, timestamp) => Write::DeleteFamilyVersion {
                family: family.as_bytes(),
                timestamp: *timestamp,
            },
            Self::Column(family, qualifier, timestamp) => Write::DeleteColumn {
                family: family.as_bytes(),
                qualifier: qualifier.as_bytes(),
                timestamp: *timestamp,
            },
            Self::Version(family, qualifier, timestamp) => Write::DeleteVersion {
                family: family.as_bytes(),
                qualifier: qualifier.as_bytes(),
                timestamp: *timestamp,
            },
        }
    }

    /// Whether it carries the time at which it was written.
    fn has_server_time(&self) -> bool {
        matches!(self, Self::Row | Self::Family(_, None) | Self::Column(_, _, None))
    }

    /// Applies the effect to a row.
    fn apply(&self, row: &mut Row) {
        let newest = match self {
            Self::Version(family, qualifier, None) => row.newest(family, qualifier).map(|version| version.0),
            Self::Version(_, _, timestamp) => *timestamp,
            _ => None,
        };
        row.remove(|in_family, in_qualifier, at| match self {
            Self::Row => true,
            Self::Family(family, up_to) => in_family == family && up_to.is_none_or(|up_to| at <= up_to),
            Self::FamilyVersion(family, exactly) => in_family == family && at == *exactly,
            Self::Column(family, qualifier, up_to) => {
                in_family == family && in_qualifier == qualifier && up_to.is_none_or(|up_to| at <= up_to)
            }
            Self::Version(family, qualifier, _) => {
                in_family == family && in_qualifier == qualifier && Some(at) == newest
            }
        });
    }
}

/// A put of one column: family, qualifier, value.
pub(super) type Put = (String, String, Vec<u8>);

fn mutation<'a>(row: &'a str, puts: &'a [Put], durability: Durability) -> RowMutation<'a> {
    let write = |(family, qualifier, value): &'a Put| Write::Put {
        family: family.as_bytes(),
        qualifier: qualifier.as_bytes(),
        timestamp: None,
        value,
        ttl_ms: None,
    };
    RowMutation {
        row: row.as_bytes(),
        writes: puts.iter().map(write).collect(),
        durability,
    }
}

impl Life {
    /// A row's key.
    pub(super) fn draw_row(&mut self) -> String {
        format!("r{:02}", self.pick(ROWS))
    }

    pub(super) fn keeps_many(&self, table: &str, family: &str) -> bool {
        let descriptor = &self.told.table(table).descriptor;
        descriptor
            .family(family.as_bytes())
            .is_some_and(|(_, family)| family.max_versions == MANY)
    }

    fn families(&self, table: &str) -> Vec<String> {
        let families = &self.told.table(table).descriptor.families;
        families
            .iter()
            .map(|family| String::from_utf8_lossy(&family.name).into_owned())
            .collect()
    }

    pub(super) fn write(&mut self, kind: Kind) -> std::result::Result<(), Stop> {
        let Some(table) = self.enabled() else {
            return Ok(());
        };
        self.told.writes += 1;
        match kind {
            Kind::Put => self.put(&table, 1),
            Kind::Batch => {
                let rows = self.pick(4) + 2;
                self.put(&table, rows)
            }
            Kind::Delete => self.delete(&table),
            Kind::Increment => self.increment(&table),
            Kind::Append => self.append(&table),
            Kind::Check => self.check(&table),
            Kind::Rush => self.rush(&table),
            Kind::Load => self.load(&table),
            _ => self.write_weak(&table),
        }
    }

    /// Values that tell which write they are of; now and then longer than a sector of the disk.
    pub(super) fn draw_puts(&mut self, table: &str) -> Vec<Put> {
        let write = self.told.writes;
        let mut puts = Vec::new();
        for family in self.families(table) {
            for qualifier in QUALIFIERS {
                // At least one column of each family, so that a torn row shows.
                if qualifier == QUALIFIERS[0] || self.pick(3) == 0 {
                    let long = self.pick(10) == 0;
                    let bytes = if long { 600 + self.pick(800) } else { self.pick(24) };
                    let mut value = format!("{write}:").into_bytes();
                    let mut noise = vec![0; bytes];
                    self.dice.fill(&mut noise);
                    value.extend(noise.iter().map(|byte| b'a' + byte % 26));
                    puts.push((family.clone(), qualifier.to_owned(), value));
                }
            }
        }
        puts
    }

    fn after_puts(&self, table: &str, row: &str, puts: &[Put]) -> Row {
        let mut after = self.told.row(table, row);
        for (family, qualifier, value) in puts {
            after.put(
                family,
                qualifier,
                self.now(),
                value.clone(),
                self.keeps_many(table, family),
            );
        }
        after
    }

    /// Puts a value into a row, read back by [`super::verify`].
    pub(super) fn put_row(&mut self, table: &str, row: &str) -> std::result::Result<(), Stop> {
        self.machine.clock.advance_ms(3);
        self.told.writes += 1;
        let puts = vec![(
            "a".to_owned(),
            "q0".to_owned(),
            format!("{}:", self.told.writes).into_bytes(),
        )];
        let after = vec![(row.to_owned(), self.after_puts(table, row, &puts))];
        self.commit(table, after, &|engine| {
            engine.mutate(&name(table), &[mutation(row, &puts, Durability::UseDefault)])
        })
    }

    fn put(&mut self, table: &str, count: usize) -> std::result::Result<(), Stop> {
        let mut rows: Vec<(String, Vec<Put>)> = Vec::new();
        for _ in 0..count {
            let row = self.draw_row();
            if rows.iter().all(|(there, _)| *there != row) {
                let puts = self.draw_puts(table);
                rows.push((row, puts));
            }
        }
        let keys: Vec<&str> = rows.iter().map(|(row, _)| row.as_str()).collect();
        self.told
            .tell(format!("write {}: puts {table}/{keys:?}", self.told.writes));
        let after = rows
            .iter()
            .map(|(row, puts)| (row.clone(), self.after_puts(table, row, puts)))
            .collect();
        self.commit(table, after, &|engine| {
            let mutations: Vec<_> = rows
                .iter()
                .map(|(row, puts)| mutation(row, puts, Durability::UseDefault))
                .collect();
            engine.mutate(&name(table), &mutations)
        })
    }

    /// Deletes a row and writes it, in turns, while the clock stands still. Only the engine knows
    /// how far the row's timestamps run ahead, so the model takes them from a read. The values of
    /// that read must be those of the model.
    fn rush(&mut self, table: &str) -> std::result::Result<(), Stop> {
        let row = self.draw_row();
        let turns = self.pick(4) + 2;
        self.told.tell(format!(
            "write {}: deletes and puts {table}/{row} {turns} times in a millisecond",
            self.told.writes
        ));
        let rushed = self.rush_row(table, &row, turns);
        // Moves assigned time past the row, so that the model predicts timestamps again. The write
        // makes it stay there if the clock is set back next.
        self.machine.clock.advance_ms(2 * ROW_AHEAD_MS.unsigned_abs());
        rushed?;
        self.put_row(table, "zz")
    }

    fn rush_row(&mut self, table: &str, row: &str, turns: usize) -> std::result::Result<(), Stop> {
        for _ in 0..turns {
            self.told.writes += 1;
            let puts = self.draw_puts(table);
            self.delete_now(table, row)?;
            let after = vec![(row.to_owned(), self.after_puts(table, row, &puts))];
            self.commit(table, after, &|engine| {
                engine.mutate(&name(table), &[mutation(row, &puts, Durability::UseDefault)])
            })?;
            self.told.pending = Pending::Times {
                table: table.to_owned(),
                row: row.to_owned(),
            };
            self.take_times(table, row)?;
            self.done();
        }
        Ok(())
    }

    /// Reads a row that was just written, compares it with the model, and copies its timestamps to
    /// the model.
    pub(super) fn take_times(&mut self, table: &str, row: &str) -> std::result::Result<(), Stop> {
        let (known, found) = (self.told.row(table, row), read::row(&self.engine, table, row)?);
        if !known.is(&found) {
            return Err(Stop::Wrong(format!(
                "a get of {table}/{row} after its write: {found:?}, it is {known:?}"
            )));
        }
        self.told.stamped_ms = self.told.stamped_ms.max(found.newest_time());
        self.told.set_row(table, row, found);
        Ok(())
    }

    /// Deletes a row.
    fn delete_now(&mut self, table: &str, row: &str) -> std::result::Result<(), Stop> {
        let mut emptied = self.told.row(table, row);
        emptied.remove(|_, _, _| true);
        let mut mutation = mutation(row, &[], Durability::UseDefault);
        mutation.writes.push(Write::DeleteRow { timestamp: None });
        self.commit(table, vec![(row.to_owned(), emptied)], &|engine| {
            engine.mutate(&name(table), std::slice::from_ref(&mutation))
        })
    }

    fn draw_tombstone(&mut self, table: &str, row: &Row) -> Tombstone {
        let families = self.families(table);
        let family = families[self.pick(families.len())].clone();
        let qualifier = QUALIFIERS[self.pick(QUALIFIERS.len())].to_owned();
        // Only a family that keeps all versions can have one of them deleted: elsewhere an older one might
        // come back.
        let many = self.keeps_many(table, &family);
        let times: Vec<i64> = row
            .0
            .iter()
            .filter(|(column, _)| column.0 == family)
            .flat_map(|(_, versions)| versions.iter().map(|(timestamp, _)| *timestamp))
            .collect();
        let time = (!times.is_empty()).then(|| times[self.pick(times.len())]);
        match (self.pick(8), time) {
            (0, _) => Tombstone::Row,
            (1, _) => Tombstone::Family(family, None),
            (2, time) => Tombstone::Family(family, time),
            (3, _) => Tombstone::Column(family, qualifier, None),
            (4, time) => Tombstone::Column(family, qualifier, time),
            (5, Some(time)) if many => Tombstone::FamilyVersion(family, time),
            (6, time) if many => Tombstone::Version(family, qualifier, time),
            (_, _) if many => Tombstone::Version(family, qualifier, None),
            _ => Tombstone::Column(family, qualifier, None),
        }
    }

    fn delete(&mut self, table: &str) -> std::result::Result<(), Stop> {
        let row = self.draw_row();
        let mut after = self.told.row(table, &row);
        let tombstone = self.draw_tombstone(table, &after);
        tombstone.apply(&mut after);
        self.told.tell(format!("deletes {tombstone:?} of {table}/{row}"));
        let stamped = self.told.stamped_ms;
        let has_server_time = tombstone.has_server_time();
        self.commit(table, vec![(row.clone(), after)], &|engine| {
            let mutation = RowMutation {
                row: row.as_bytes(),
                writes: std::iter::once(tombstone.as_write()).collect(),
                durability: Durability::UseDefault,
            };
            engine.mutate(&name(table), &[mutation])
        })?;
        if !has_server_time {
            self.told.stamped_ms = stamped;
        }
        Ok(())
    }

    fn increment(&mut self, table: &str) -> std::result::Result<(), Stop> {
        if self.pick(2) == 0 {
            self.retry()?;
        }
        let row = self.draw_row();
        let mut amounts = Vec::new();
        for family in self.families(table) {
            if family == "a" || self.pick(2) == 0 {
                amounts.push((family, self.pick(9) as i64 + 1));
            }
        }
        let number = self.told.writes + 1;
        self.change(table, row, Operation::Increment(amounts), number)
    }

    fn append(&mut self, table: &str) -> std::result::Result<(), Stop> {
        if self.pick(2) == 0 {
            self.retry()?;
        }
        let row = self.draw_row();
        let change = Operation::Append(format!("+{}", self.told.writes));
        if self.pick(2) == 0 {
            let number = self.told.writes + 1;
            return self.change(table, row, change, number);
        }
        let after = vec![(row.clone(), self.after_change(table, &row, &change))];
        self.told.tell(format!("{change:?} of {table}/{row}"));
        self.commit(table, after, &|engine| {
            update_row(engine, table, &row, &change.as_update())
        })
    }

    /// Makes an increment or append, as the operation of this number.
    pub(super) fn change(
        &mut self,
        table: &str,
        row: String,
        change: Operation,
        number: u64,
    ) -> std::result::Result<(), Stop> {
        let before = self.told.row(table, &row);
        let after = self.after_change(table, &row, &change);
        self.told
            .tell(format!("{change:?} of {table}/{row} with nonce {number}"));
        let retry = Retry {
            table: table.to_owned(),
            row: row.clone(),
            change,
            number,
            before,
            after: after.clone(),
            sent_ms: self.machine.clock.wall_ms(),
            acknowledged: false,
        };
        self.told.retry = Some(retry.clone());
        self.commit_if(table, vec![(row, after)], &|engine| retry.send(engine))?;
        self.told.retry = Some(Retry {
            acknowledged: true,
            ..retry
        });
        Ok(())
    }

    /// A row after an increment or append.
    fn after_change(&self, table: &str, row: &str, change: &Operation) -> Row {
        let mut after = self.told.row(table, row);
        let stored = |after: &Row, family: &str, qualifier: &str| {
            let newest = after.newest(family, qualifier);
            newest.map(|version| version.1.clone()).unwrap_or_default()
        };
        match change {
            Operation::Increment(amounts) => {
                for (family, amount) in amounts {
                    let number: [u8; 8] = stored(&after, family, "n").try_into().unwrap_or_default();
                    let value = (i64::from_be_bytes(number) + amount).to_be_bytes().to_vec();
                    after.put(family, "n", self.now(), value, self.keeps_many(table, family));
                }
            }
            Operation::Append(piece) => {
                let mut value = stored(&after, "b", "s");
                value.extend_from_slice(piece.as_bytes());
                after.put("b", "s", self.now(), value, self.keeps_many(table, "b"));
            }
        }
        after
    }

    fn check(&mut self, table: &str) -> std::result::Result<(), Stop> {
        let row = self.draw_row();
        let passes = self.pick(3) > 0;
        let stored = self
            .told
            .row(table, &row)
            .newest("b", "q0")
            .map(|version| version.1.clone());
        let given = if passes {
            stored
        } else {
            Some(b"never written".to_vec())
        };
        let puts = self.draw_puts(table);
        let after = vec![(row.clone(), self.after_puts(table, &row, &puts))];
        self.told.tell(format!(
            "write {}: checks {table}/{row}, passes: {passes}",
            self.told.writes
        ));
        let condition = Check {
            family: b"b",
            qualifier: b"q0",
            op: CompareOp::Equal,
            value: given.as_deref(),
        };
        let mutation = mutation(&row, &puts, Durability::UseDefault);
        if passes {
            return self.commit_if(table, after, &|engine| {
                engine.check_and_mutate(&name(table), &condition, &mutation)
            });
        }
        match self
            .engine
            .check_and_mutate(&name(table), &condition, &mutation)?
        {
            None => Ok(()),
            Some(_) => Err(Stop::Wrong(format!(
                "a check of {table}/{row} passes that must fail"
            ))),
        }
    }

    /// A row that is written with less than a sync: a crash may take it back, whole.
    fn write_weak(&mut self, table: &str) -> std::result::Result<(), Stop> {
        let row = format!("w{}", self.pick(2));
        let durability = [Durability::AsyncWal, Durability::SkipWal][self.pick(2)];
        let value = self.told.writes.to_string().into_bytes();
        let puts: Vec<Put> = ["x", "y"]
            .iter()
            .map(|qualifier| ("b".to_owned(), (*qualifier).to_owned(), value.clone()))
            .collect();
        let before = self.told.row(table, &row);
        let after = self.after_puts(table, &row, &puts);
        self.told.tell(format!(
            "write {}: {durability:?} {table}/{row}",
            self.told.writes
        ));
        let key = (table.to_owned(), row.clone());
        let was = self.told.weak.get(&key).cloned();
        let weak = self.told.weak.entry(key.clone()).or_insert_with(|| Weak {
            states: vec![before],
            unlogged: false,
        });
        weak.states.push(after.clone());
        weak.unlogged |= durability == Durability::SkipWal;
        let written = self
            .engine
            .mutate(&name(table), &[mutation(&row, &puts, durability)])
            .and_then(Commit::wait);
        if let Err(error) = written {
            if error.kind() != basalt_engine::Kind::Fatal && !self.machine.disk.is_dead() {
                // Refused: it never was.
                match was {
                    Some(was) => self.told.weak.insert(key, was),
                    None => self.told.weak.remove(&key),
                };
            }
            return Err(error.into());
        }
        self.told.set_row(table, &row, after);
        Ok(())
    }

    fn commit(
        &mut self,
        table: &str,
        after: Vec<(String, Row)>,
        write: &dyn Fn(&Engine) -> Result<Commit>,
    ) -> std::result::Result<(), Stop> {
        self.commit_if(table, after, &|engine| write(engine).map(Some))
    }

    /// Makes a write and waits for it. In between it reads the written rows: a write that a reader
    /// has seen must not go away any more, even if it was not durable then.
    fn commit_if(
        &mut self,
        table: &str,
        after: Vec<(String, Row)>,
        write: &dyn Fn(&Engine) -> Result<Option<Commit>>,
    ) -> std::result::Result<(), Stop> {
        let mut regions = Vec::new();
        for (row, _) in &after {
            regions.push(self.engine.region_of(&name(table), row.as_bytes())?.id);
        }
        self.told.pending = Pending::Rows {
            table: table.to_owned(),
            after: after.clone(),
            whole: regions.windows(2).all(|pair| pair[0] == pair[1]),
        };
        let Some(commit) = write(&self.engine)? else {
            return Err(Stop::Wrong(format!(
                "a check of {table}/{} fails that must pass",
                after[0].0
            )));
        };
        let stamped = self.now();
        let early = if self.pick(4) == 0 {
            self.read_early(table, &after)
        } else {
            Ok(())
        };
        commit.wait()?;
        for (row, state) in after {
            self.told.set_row(table, &row, state);
        }
        self.told.stamped_ms = self.told.stamped_ms.max(stamped);
        self.told.synced();
        self.done();
        early
    }

    /// Reads rows while their write is in flight.
    pub(super) fn read_early(
        &mut self,
        table: &str,
        after: &[(String, Row)],
    ) -> std::result::Result<(), Stop> {
        for (row, state) in after {
            let found = read::row(&self.engine, table, row)?;
            let before = self.told.row(table, row);
            if state.is(&found) {
                self.told.set_row(table, row, found);
            } else if found != before {
                return Err(Stop::Wrong(format!(
                    "a get of {table}/{row} during its write: {found:?}, it was {before:?} and becomes {state:?}"
                )));
            }
        }
        Ok(())
    }
}

/// An increment or append without a condition.
fn update_row(engine: &Engine, table: &str, row: &str, update: &RowUpdate<'_>) -> Result<Commit> {
    let mut out = CellBatch::new();
    engine.update(
        &name(table),
        row.as_bytes(),
        update,
        None,
        Durability::UseDefault,
        &mut out,
    )
}
