//! Turns of look-ups and connections: callers that miss the same one share an attempt and its outcome.
//!
//! A caller waits for its turn, then finds the location in the cache, or the failure of the look-up that it
//! has waited for, or looks it up itself. Only failures to reach the cluster are shared: others depend on the
//! row. Without that, a thousand callers would connect to a cluster that is away one after the other.
//!
//! Tables share turns by their hash, so that the memory does not grow with names. `hbase:meta` has a turn of
//! its own, since it is taken within that of a table.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::error::{Error, Result, copy};
use crate::name::TableName;

/// Turns for the look-ups of tables.
const TURNS: usize = 64;

/// The turns of a cluster.
#[derive(Debug)]
pub(super) struct LookUps {
    tables: [Mutex<Option<Failed>>; TURNS],
    meta: Mutex<Option<Failed>>,
}

/// A look-up that could not reach the cluster.
#[derive(Debug)]
pub(super) struct Failed {
    at: Instant,
    error: Error,
}

/// A turn: no other caller looks up locations of the table meanwhile.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    last: MutexGuard<'a, Option<Failed>>,
    arrived: Instant,
}

impl Default for LookUps {
    fn default() -> Self {
        LookUps {
            tables: std::array::from_fn(|_| Mutex::default()),
            meta: Mutex::default(),
        }
    }
}

impl LookUps {
    /// Waits for the turn of a table.
    pub(super) async fn of_table(&self, table: &TableName) -> Turn<'_> {
        let mut hasher = DefaultHasher::new();
        table.hash(&mut hasher);
        let index = hasher.finish() % TURNS as u64;
        Turn::of(&self.tables[index as usize]).await
    }

    /// Waits for the turn of `hbase:meta`.
    pub(super) async fn of_meta(&self) -> Turn<'_> {
        Turn::of(&self.meta).await
    }
}

impl<'a> Turn<'a> {
    /// Waits for this turn.
    pub(super) async fn of(turn: &'a Mutex<Option<Failed>>) -> Turn<'a> {
        let arrived = Instant::now();
        let last = turn.lock().await;
        Turn { last, arrived }
    }

    /// Fails as the look-up that ended while this caller waited, if that could not reach the cluster.
    pub(super) fn check(&self) -> Result<()> {
        match &*self.last {
            Some(failed) if failed.at >= self.arrived => Err(copy(&failed.error)),
            _ => Ok(()),
        }
    }

    /// Ends the turn with the outcome of a look-up.
    pub(super) fn end<T>(mut self, outcome: &Result<T>) {
        *self.last = match outcome {
            Err(error) if is_unreachable(error) => Some(Failed {
                at: Instant::now(),
                error: copy(error),
            }),
            _ => None,
        };
    }
}

/// Returns `true` for a failure to reach a server, or the loss of one.
pub(super) fn is_unreachable(error: &Error) -> bool {
    matches!(error, Error::Io { .. }) || is_away(error)
}

/// Whether a failed look-up means that the cluster is away. A lost connection alone does not: the next
/// attempt opens another one.
pub(super) fn is_away(error: &Error) -> bool {
    matches!(
        error,
        Error::Connect { .. } | Error::Timeout { .. } | Error::Registry { .. } | Error::Away { .. }
    )
}
