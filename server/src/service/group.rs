//! Atomic groups of writes, borrowed from the arguments of their calls.

use basalt_engine::cell::CellBatch;
use basalt_engine::id::{Nonce, Origin};
use basalt_engine::op::{
    Check, GroupStep, GroupUpdate, GroupWrite, RowCondition, RowMutation, RowUpdate, TimeRange, Write,
};
use basalt_engine::schema::{Durability, TableName};
use bytes::Bytes;
use smallvec::{SmallVec, smallvec};

use super::sizes::{mutation_bytes, update_bytes};
use super::{Failure, arguments};

/// A write of more cells than this runs on the pool.
pub(super) const INLINE_CELLS: usize = 100_000;
/// An increment of more columns than this runs on the pool.
const INLINE_COLUMNS: usize = 64;
/// A group of more conditions than this runs on the pool.
const INLINE_CONDITIONS: usize = 64;

/// An atomic group, borrowed from its arguments.
pub(crate) struct Group<'a> {
    pub(crate) table: TableName,
    pub(crate) conditions: SmallVec<[RowCondition<'a>; 1]>,
    pub(crate) steps: SmallVec<[Step<'a>; 1]>,
    pub(crate) nonce: Option<Nonce>,
    /// The clusters that its mutations have passed.
    pub(crate) origin: Origin,
}

/// One mutation of a group.
pub(crate) enum Step<'a> {
    Write(RowMutation<'a>),
    Update {
        row: &'a [u8],
        change: RowUpdate<'a>,
        ttl_ms: Option<i64>,
        time_range: TimeRange,
        durability: Durability,
        /// Whether the new cells are wanted.
        returns: bool,
    },
}

impl Step<'_> {
    pub(crate) fn row(&self) -> &[u8] {
        match self {
            Self::Write(mutation) => mutation.row,
            Self::Update { row, .. } => row,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Write(mutation) => mutation_bytes(mutation),
            Self::Update { row, change, .. } => update_bytes(row, change),
        }
    }

    pub(crate) fn cells(&self) -> usize {
        match self {
            Self::Write(mutation) => mutation.writes.len(),
            Self::Update { change, .. } => change.columns().count(),
        }
    }

    /// Whether it would hold the network thread for long, or may read from disk.
    pub(crate) fn is_long(&self) -> bool {
        match self {
            Self::Write(mutation) => mutation.writes.len() > INLINE_CELLS || reads(mutation),
            Self::Update { .. } => self.cells() > INLINE_COLUMNS,
        }
    }

    pub(crate) fn for_engine(&self) -> GroupStep<'_> {
        match self {
            Self::Write(mutation) => GroupStep::Write(GroupWrite::of(mutation)),
            Self::Update {
                row,
                change,
                ttl_ms,
                time_range,
                durability,
                returns,
            } => GroupStep::Update(GroupUpdate {
                row,
                change,
                ttl_ms: *ttl_ms,
                time_range: *time_range,
                durability: *durability,
                returns: *returns,
            }),
        }
    }
}

impl<'a> Group<'a> {
    /// A mutation that is applied if a check of its row holds.
    pub(crate) fn of_check(
        table: &Bytes,
        row: &'a Bytes,
        check: &Check<'a>,
        mutation: RowMutation<'a>,
    ) -> Result<Self, Failure> {
        let row = arguments::row(Some(row))?;
        if mutation.row != &row[..] {
            return Err(Failure::do_not_retry("Action's getRow must match"));
        }
        Ok(Self {
            table: arguments::table(Some(table))?,
            conditions: smallvec![check.on(row)],
            steps: smallvec![Step::Write(mutation)],
            nonce: None,
            origin: Origin::default(),
        })
    }

    /// An increment of a row, or an append to it, whose new cells are wanted.
    pub(crate) fn of_update(
        table: Option<&Bytes>,
        row: Option<&'a Bytes>,
        change: RowUpdate<'a>,
        ttl_ms: Option<i64>,
        durability: Durability,
    ) -> Result<Self, Failure> {
        Ok(Self {
            table: arguments::table(table)?,
            conditions: SmallVec::new(),
            steps: smallvec![Step::Update {
                row: arguments::row(row)?,
                change,
                ttl_ms,
                time_range: TimeRange::ALL,
                durability,
                returns: true,
            }],
            nonce: None,
            origin: Origin::default(),
        })
    }

    /// The cells that it writes or looks at.
    pub(crate) fn cells(&self) -> usize {
        self.conditions.len() + self.steps.iter().map(Step::cells).sum::<usize>()
    }

    /// Whether it runs on the pool, because it would hold the network thread for long or may read from
    /// disk.
    pub(crate) fn is_long(&self) -> bool {
        self.conditions.len() > INLINE_CONDITIONS || self.steps.iter().any(Step::is_long)
    }
}

/// The outcome of a group.
pub(crate) struct GroupDone {
    /// Whether its conditions held.
    pub(crate) processed: bool,
    /// One row for each increment and append whose cells are wanted.
    pub(crate) cells: CellBatch,
}

/// Whether applying the mutation reads first: a delete of "the newest version" looks for it.
pub(crate) fn reads(mutation: &RowMutation<'_>) -> bool {
    mutation
        .writes
        .iter()
        .any(|write| matches!(write, Write::DeleteVersion { timestamp: None, .. }))
}
