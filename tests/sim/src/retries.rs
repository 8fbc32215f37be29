//! Retries of increments and appends: a client without an answer sends an operation again, with the
//! same nonce. It must be applied once, whatever the outcome of the first attempt.
//!
//! The last operation with a nonce is remembered and sent again from time to time and after each crash, as
//! long as nothing else has written to its row and its nonce must still be known: for less than 20 minutes,
//! by a clock that was not set back.

use basalt_engine::Commit;
use basalt_engine::cell::CellBatch;
use basalt_engine::clock::Clock;
use basalt_engine::id::Nonce;
use basalt_engine::op::{
    AtomicGroup, ColumnAppend, ColumnIncrement, GroupStep, GroupUpdate, ReadTier, RowUpdate,
};
use basalt_engine::schema::Durability;
use basalt_engine::{Engine, Result};

use super::Stop;
use super::life::Life;
use super::model::{Operation, Retry, Row};
use super::read::{self, name};

/// Milliseconds within which a nonce must be known: less than the engine keeps it, since the model
/// does not count the time of a call.
const KNOWN_MS: u64 = 19 * 60 * 1000;

impl Operation {
    /// The update in the engine's form.
    pub(crate) fn as_update(&self) -> RowUpdate<'_> {
        match self {
            Self::Increment(amounts) => {
                let columns = amounts.iter().map(|(family, amount)| ColumnIncrement {
                    family: family.as_bytes(),
                    qualifier: b"n",
                    amount: *amount,
                    timestamp: None,
                });
                RowUpdate::Increment(columns.collect())
            }
            Self::Append(piece) => RowUpdate::Append(vec![ColumnAppend {
                family: b"b",
                qualifier: b"s",
                value: piece.as_bytes(),
                timestamp: None,
            }]),
        }
    }
}

impl Retry {
    /// Sends the operation. Returns `None` if the engine had applied it before.
    pub(crate) fn send(&self, engine: &Engine) -> Result<Option<Commit>> {
        let change = self.change.as_update();
        let update = GroupUpdate::new(self.row.as_bytes(), &change, None, Durability::UseDefault);
        let group = AtomicGroup {
            conditions: &[],
            steps: &[GroupStep::Update(update)],
            nonce: Some(Nonce {
                group: 1,
                number: self.number,
            }),
            origin: &[],
        };
        let mut out = CellBatch::new();
        let outcome = engine.apply_group(&name(&self.table), &group, ReadTier::All, &mut out)?;
        Ok(outcome.commit)
    }
}

impl Life {
    /// Sends the last operation with a nonce again, if its nonce must be known.
    pub(crate) fn retry(&mut self) -> std::result::Result<(), Stop> {
        let now_ms = self.machine.clock.wall_ms();
        let Some(retry) = self.told.retry.clone() else {
            return Ok(());
        };
        let is_enabled = self
            .told
            .tables
            .get(&retry.table)
            .is_some_and(|table| table.enabled);
        if !is_enabled || now_ms.saturating_sub(retry.sent_ms) >= KNOWN_MS {
            self.told.retry = None;
            return Ok(());
        }
        let stored = self.told.row(&retry.table, &retry.row);
        if retry.after.is(&stored) {
            self.must_be_known(&retry, &stored)?;
            // Seen, so no crash may lose it any more: a row that is as before was written again.
            if let Some(known) = &mut self.told.retry {
                known.acknowledged = true;
            }
        } else if retry.before == stored && !retry.acknowledged {
            // A crash lost the operation, so this attempt applies it.
            self.told.retry = None;
            let (table, row) = (retry.table.clone(), retry.row.clone());
            self.change(&table, row, retry.change, retry.number)?;
        }
        // A clock that was set back may make the nonce look old later.
        if now_ms < retry.sent_ms {
            self.told.retry = None;
        }
        Ok(())
    }

    fn must_be_known(&mut self, retry: &Retry, stored: &Row) -> std::result::Result<(), Stop> {
        let (table, row) = (&retry.table, &retry.row);
        self.told
            .tell(format!("repeats {:?} of {table}/{row}", retry.change));
        if retry.send(&self.engine)?.is_some() {
            return Err(Stop::Wrong(format!(
                "{:?} of {table}/{row} with nonce {} is applied twice",
                retry.change, retry.number
            )));
        }
        let found = read::row(&self.engine, table, row)?;
        if found != *stored {
            return Err(Stop::Wrong(format!(
                "a repeated {:?} of {table}/{row} leaves {found:?}, it was {stored:?}",
                retry.change
            )));
        }
        Ok(())
    }
}
