//! Reads single rows of a design's table, chosen at random, and compares each with the written one.

use std::sync::Arc;
use std::time::Instant;

use basalt_load::error::Result;
use basalt_load::load::retry::{Failures, retried};
use basalt_load::load::{self, Measured, Operations, Outcome};
use basalt_load::session::Session;
use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::numbering::Numbering;
use super::range_read::cells_differ;
use crate::designs::Design;
use crate::rows::Rows;

/// Parameters of the reads.
#[derive(Debug)]
pub(super) struct PointReads {
    pub(super) session: Session,
    pub(super) design: Arc<Design>,
    pub(super) rows: Arc<Rows>,
    pub(super) numbering: Arc<Numbering>,
    /// Number of first rows that are in the table. At least one.
    pub(super) rows_in_order: u64,
    pub(super) seed: u64,
}

/// Reads, and returns the figures and the first row that was not as written.
pub(super) async fn run(plan: load::Plan, reads: &Arc<PointReads>) -> Result<(Measured, Option<String>)> {
    let (measured, differences) = load::run(plan, reads).await?;
    let mut kinds = measured.kinds.iter();
    let given_up = kinds.find(|kind| kind.given_up > 0);
    let given_up = given_up.map(|kind| format!("{} reads by {} failed for good", kind.given_up, kind.name));
    let difference = differences.into_iter().flatten().next().or(given_up);
    Ok((measured, difference))
}

impl Operations for PointReads {
    /// The first difference.
    type Worker = Option<String>;

    fn kinds(&self) -> Vec<String> {
        vec!["get".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<Option<String>> {
        Ok(None)
    }

    async fn operate(&self, difference: &mut Option<String>, index: u64) -> Result<Option<Outcome>> {
        let mut random = SmallRng::seed_from_u64(self.seed ^ index.rotate_left(32));
        let row = random.random_range(0..self.rows_in_order);
        let Some(key) = self.numbering.key(&self.rows, row) else {
            difference.get_or_insert_with(|| format!("row {row} has no number"));
            return Ok(Some(Outcome::default()));
        };
        let keys = [Bytes::from(self.design.encode(key)?)];
        let mut failures = Failures::default();
        let found = retried(&mut failures, || self.session.get(&keys, &[])).await;
        let found_difference = found.as_ref().and_then(|rows| match rows.first() {
            Some(found) => cells_differ(found, &self.rows.cells(row)),
            None => Some(format!("row {} is missing", keys[0].escape_ascii())),
        });
        if let Some(found) = found_difference {
            difference.get_or_insert(found);
        }
        Ok(Some(Outcome {
            kind: 0,
            rows: 1,
            done: found.is_some(),
            failures,
        }))
    }
}
