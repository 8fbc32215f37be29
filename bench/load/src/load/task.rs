//! State of each task of a workload over one table.

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::error::Result;
use crate::session::Session;
use crate::target::TargetOptions;

/// A connection and random numbers.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) session: Session,
    /// Random numbers, from the run's seed and the task's number.
    pub(crate) random: SmallRng,
}

impl Task {
    /// Task `number`, from 0, of a run with this seed.
    pub(crate) fn new(
        target: &TargetOptions,
        table: &str,
        skip_wal: bool,
        seed: u64,
        number: u64,
    ) -> Result<Task> {
        Ok(Task {
            session: Session::new(target, table, skip_wal)?,
            random: SmallRng::seed_from_u64(seed.wrapping_add(number)),
        })
    }
}
