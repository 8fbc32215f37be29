//! Atomic groups: mutations of rows of one region that are applied together or not at all, and the
//! conditions under which they are.
//!
//! A group is the general form of every write that reads first: a check-and-mutate has one condition
//! and writes, an increment or append has one update. All reads of a group see the rows as they were
//! before it, as in HBase: an increment does not see a put of its own group.

use std::sync::Arc;

use crate::cell::CellBatch;
use crate::filter::{Comparator, FilterSpec};
use crate::id::{Nonce, Uuid};
use crate::op::{Check, CompareOp, ReadSpec, RowMutation, RowUpdate, TimeRange, Write};
use crate::schema::Durability;

/// Mutations that are applied together if all conditions hold. All rows must be in one region.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtomicGroup<'a> {
    /// Conditions on stored rows, which all must hold.
    pub conditions: &'a [RowCondition<'a>],
    /// The mutations; none if only the conditions are tested. If two steps write one cell, the write of
    /// the later one stays.
    pub steps: &'a [GroupStep<'a>],
    /// The client's nonce: a group whose nonce is known was applied before.
    pub nonce: Option<Nonce>,
    /// The clusters that the mutations have passed.
    pub origin: &'a [Uuid],
}

/// A condition on one row.
#[derive(Clone, Copy, Debug)]
pub struct RowCondition<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The test that the row must pass.
    pub test: Test<'a>,
    /// Timestamps of the cells that the test sees.
    pub time_range: TimeRange,
}

/// The test of a condition.
#[derive(Clone, Copy, Debug)]
pub enum Test<'a> {
    /// The newest version of a column compares with the expected value: `expected OP stored`.
    Column {
        /// Family.
        family: &'a [u8],
        /// Qualifier.
        qualifier: &'a [u8],
        /// Operator.
        op: CompareOp,
        /// Left side.
        expected: Expected<'a>,
    },
    /// A cell of the row passes the filter.
    Filter(&'a Arc<FilterSpec>),
    /// The row was judged by user code before its lock was taken.
    Judged(Judged<'a>),
}

/// The judgement of user code on a row.
#[derive(Clone, Copy, Debug)]
pub enum Judged<'a> {
    /// It did not pass.
    Refused,
    /// It passed, which holds as long as the row has the cells that were judged.
    Passed {
        /// The read that found the cells.
        spec: &'a ReadSpec,
        /// The cells: one row, or none.
        cells: &'a CellBatch,
        /// The timestamp of the cell that this rests on, 0 without one.
        timestamp: i64,
    },
}

/// The left side of a comparison with a stored value.
#[derive(Clone, Copy, Debug)]
pub enum Expected<'a> {
    /// These bytes; empty ones stand for an absent column.
    Bytes(&'a [u8]),
    /// The value of this comparator. An empty value stands for an absent column.
    Comparator(&'a Comparator),
}

/// One mutation of a group.
#[derive(Clone, Copy, Debug)]
pub enum GroupStep<'a> {
    /// Puts and deletes.
    Write(GroupWrite<'a>),
    /// An increment or append.
    Update(GroupUpdate<'a>),
}

/// Puts and deletes of a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupWrite<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The cells, in the order given; at least one.
    pub writes: &'a [Write<'a>],
    /// How hard to try.
    pub durability: Durability,
}

/// An increment or append of a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupUpdate<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The update to apply.
    pub change: &'a RowUpdate<'a>,
    /// Time to live of the new cells, if not that of the cells they replace.
    pub ttl_ms: Option<i64>,
    /// Timestamps of the cells that it adds to.
    pub time_range: TimeRange,
    /// How hard to try.
    pub durability: Durability,
    /// Whether the new cells are wanted.
    pub returns: bool,
}

impl<'a> GroupUpdate<'a> {
    /// An update of the newest versions, whose new cells are wanted.
    pub fn new(
        row: &'a [u8],
        change: &'a RowUpdate<'a>,
        ttl_ms: Option<i64>,
        durability: Durability,
    ) -> Self {
        Self {
            row,
            change,
            ttl_ms,
            time_range: TimeRange::ALL,
            durability,
            returns: true,
        }
    }
}

impl<'a> GroupWrite<'a> {
    /// The writes of a mutation.
    pub fn of<'b: 'a>(mutation: &'a RowMutation<'b>) -> Self {
        Self {
            row: mutation.row,
            writes: &mutation.writes,
            durability: mutation.durability,
        }
    }
}

impl<'a> Check<'a> {
    /// The check as a condition on `row`.
    pub fn on(&self, row: &'a [u8]) -> RowCondition<'a> {
        RowCondition {
            row,
            test: Test::Column {
                family: self.family,
                qualifier: self.qualifier,
                op: self.op,
                expected: Expected::Bytes(self.value.unwrap_or_default()),
            },
            time_range: TimeRange::ALL,
        }
    }
}

impl<'a> GroupStep<'a> {
    /// The row that it changes.
    pub fn row(&self) -> &'a [u8] {
        match self {
            Self::Write(write) => write.row,
            Self::Update(update) => update.row,
        }
    }

    /// How hard to try.
    pub fn durability(&self) -> Durability {
        match self {
            Self::Write(write) => write.durability,
            Self::Update(update) => update.durability,
        }
    }
}

impl RowUpdate<'_> {
    /// The columns that it changes, as family and qualifier.
    pub fn columns(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (increments, appends) = match self {
            Self::Increment(columns) => (&columns[..], &[][..]),
            Self::Append(columns) => (&[][..], &columns[..]),
        };
        let increments = increments.iter().map(|column| (column.family, column.qualifier));
        increments.chain(appends.iter().map(|column| (column.family, column.qualifier)))
    }
}
