//! Sequence numbers: a row's place among all rows, or the next number of a counter on the server.
//!
//! Processes that number rows together need a shared counter. HBase's is the
//! atomic increment. One call a row would be a second write a row, so a task takes a block of numbers in one
//! call and hands them out itself: numbers are unique, and in order within a task, but not over all of them.
//! A block that was taken twice because an answer was lost, and the rest of a block at the end, are numbers
//! that no row has.

use basalt_client::keys::MinuteKey;
use basalt_load::error::{Error, Result};
use basalt_load::load::retry::{Failures, retried};
use basalt_load::session::{Column, Session};
use bytes::Bytes;

use super::FAMILY;
use crate::rows::Rows;

/// The row and the qualifier of the counter.
const COUNTER: (&str, &str) = ("sequence", "next");

/// A counter on the server.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) session: Session,
    /// Numbers taken by one increment.
    pub(super) block: u32,
}

/// The numbers that one task has taken and handed out.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: u32,
    left: u32,
    handed_out: Vec<Run>,
    /// Increments that succeeded.
    pub(super) increments: u64,
}

/// Rows that follow each other and have numbers that follow each other.
#[derive(Clone, Copy, Debug)]
struct Run {
    first_row: u64,
    first_number: u32,
    rows: u32,
}

impl Numbers {
    /// The number for a row; `None` if the server refused to count for good.
    pub(super) async fn take(
        &mut self,
        counter: &Counter,
        row: u64,
        failures: &mut Failures,
    ) -> Result<Option<u32>> {
        if self.left == 0 {
            let amount = i64::from(counter.block);
            let (key, qualifier) = COUNTER;
            let (key, column) = (Bytes::from(key), Column::new(FAMILY, qualifier));
            let increment = || counter.session.increment(&key, &column, amount);
            let Some(end) = retried(failures, increment).await else {
                return Ok(None);
            };
            self.next = u32::try_from(end - amount)
                .map_err(|_| Error::Usage(format!("sequence number {end} is more than 32 bits")))?;
            self.left = counter.block;
            self.increments += 1;
        }
        let number = self.next;
        self.left -= 1;
        self.next = self.next.wrapping_add(1);
        match self.handed_out.last_mut() {
            Some(run) if run.goes_on(row, number) => run.rows += 1,
            _ => self.handed_out.push(Run {
                first_row: row,
                first_number: number,
                rows: 1,
            }),
        }
        Ok(Some(number))
    }
}

impl Run {
    fn goes_on(&self, row: u64, number: u32) -> bool {
        self.first_row + u64::from(self.rows) == row
            && self.first_number.checked_add(self.rows) == Some(number)
    }
}

/// The numbers of all rows.
#[derive(Debug)]
pub(super) enum Numbering {
    /// Each row has its place.
    Place,
    /// In the order of rows.
    Counter(CounterRuns),
}

/// The numbers that all tasks handed out.
#[derive(Debug)]
pub(super) struct CounterRuns(Vec<Run>);

impl Numbering {
    /// The numbering of these tasks together.
    pub(super) fn of(tasks: impl IntoIterator<Item = Numbers>) -> Numbering {
        let mut runs: Vec<Run> = tasks.into_iter().flat_map(|task| task.handed_out).collect();
        runs.sort_by_key(|run| run.first_row);
        Numbering::Counter(CounterRuns(runs))
    }

    /// The key that a row was written with; `None` if it got no number.
    pub(super) fn key(&self, rows: &Rows, row: u64) -> Option<MinuteKey> {
        let key = rows.key(row);
        let Numbering::Counter(CounterRuns(runs)) = self else {
            return Some(key);
        };
        let behind = runs.partition_point(|run| run.first_row <= row);
        let run = runs.get(behind.checked_sub(1)?)?;
        let offset = u32::try_from(row - run.first_row)
            .ok()
            .filter(|offset| *offset < run.rows)?;
        Some(MinuteKey {
            sequence: run.first_number + offset,
            ..key
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Synthetic;

    fn handed_out(numbers: &[(u64, u32)]) -> Numbers {
        let runs = numbers.iter().map(|(row, number)| Run {
            first_row: *row,
            first_number: *number,
            rows: 10,
        });
        Numbers {
            handed_out: runs.collect(),
            ..Numbers::default()
        }
    }

    #[test]
    fn rows_keep_the_numbers_that_their_task_took() {
        let rows = Rows::Synthetic(Synthetic::new(Some(100), 10, 8, 1));
        let tasks = [handed_out(&[(0, 500), (30, 510)]), handed_out(&[(10, 0)])];
        let numbering = Numbering::of(tasks);
        let number = |row| numbering.key(&rows, row).map(|key| key.sequence);
        assert_eq!(
            [0, 9, 10, 19, 20, 30, 39, 40].map(number),
            [
                Some(500),
                Some(509),
                Some(0),
                Some(9),
                None,
                Some(510),
                Some(519),
                None
            ]
        );
        assert_eq!(numbering.key(&rows, 12).unwrap().minute, rows.key(12).minute);
        assert_eq!(Numbering::Place.key(&rows, 12), Some(rows.key(12)));
    }

    #[test]
    fn rows_in_a_row_are_one_run() {
        let run = Run {
            first_row: 5,
            first_number: 90,
            rows: 3,
        };
        assert!(run.goes_on(8, 93));
        assert!(!run.goes_on(9, 93) && !run.goes_on(8, 94));
    }
}
