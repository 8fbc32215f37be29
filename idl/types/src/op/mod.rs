//! Requests to the engine. They borrow from the message they came in; nothing is copied before the
//! memstore.

mod build;
mod group;
mod writes;

pub use build::{Delete, Put};
pub use group::{AtomicGroup, Expected, GroupStep, GroupUpdate, GroupWrite, Judged, RowCondition, Test};
pub use writes::Writes;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cell::CellType;
use crate::filter::FilterSpec;
use crate::schema::Durability;

/// Where a read may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadTier {
    /// Memory and disk.
    #[default]
    All,
    /// Memory only: the read fails with `Error::NotInMemory` when a block has to be fetched. For
    /// calls on a network thread. Only scans of whole rows without a filter may use it
    /// ([`Scan::may_read_memory_only`]).
    Memory,
}

/// Timestamps of interest: `[min, max)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First.
    pub min: i64,
    /// One past the last.
    pub max: i64,
}

impl TimeRange {
    /// Every timestamp.
    pub const ALL: Self = Self {
        min: 0,
        max: i64::MAX,
    };

    /// Exactly one timestamp.
    #[inline]
    pub fn at(timestamp: i64) -> Self {
        Self {
            min: timestamp,
            max: timestamp.saturating_add(1),
        }
    }
}

/// Columns to read of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// All of it.
    All,
    /// These qualifiers, sorted, each once.
    Only(Vec<Vec<u8>>),
}

/// One family of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilySelection {
    /// Name of the family.
    pub family: Vec<u8>,
    /// Columns to read of it.
    pub columns: Columns,
}

/// Options shared by Get and Scan.
#[derive(Clone, Debug)]
pub struct ReadSpec {
    /// Families to read, sorted by name, each once; empty reads all.
    pub families: Vec<FamilySelection>,
    /// Timestamps of interest.
    pub time_range: TimeRange,
    /// Time ranges of single families, which replace `time_range` for them. Families that are not
    /// read, or do not exist, are ignored.
    pub family_time_ranges: BTreeMap<Vec<u8>, TimeRange>,
    /// Versions of a column, at least 1; the family's VERSIONS bounds it.
    pub max_versions: i32,
    /// Most cells of a family in a row; `None`: no limit (HBase: `storeLimit`). 0 lets one through, as in
    /// HBase.
    pub family_limit: Option<usize>,
    /// Cells of a family to leave out at the front of a row (HBase: `storeOffset`).
    pub family_offset: usize,
    /// Whether data blocks read are put in the cache.
    pub cache_blocks: bool,
    /// Tombstones and deleted cells too. Whole families only.
    pub raw: bool,
    /// Filter, if any. Each region the read visits makes an instance of its own.
    pub filter: Option<Arc<FilterSpec>>,
}

impl Default for ReadSpec {
    fn default() -> Self {
        Self {
            families: Vec::new(),
            time_range: TimeRange::ALL,
            family_time_ranges: BTreeMap::new(),
            max_versions: 1,
            family_limit: None,
            family_offset: 0,
            cache_blocks: true,
            raw: false,
            filter: None,
        }
    }
}

/// A read of one row.
#[derive(Clone, Debug)]
pub struct Get<'a> {
    /// The row.
    pub row: &'a [u8],
    /// Cells to read of it.
    pub spec: ReadSpec,
}

/// A read of a range of rows.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Where to start; empty: at the first row, reversed: at the last.
    pub start_row: Vec<u8>,
    /// Whether the start row itself is wanted.
    pub include_start: bool,
    /// Where to stop; empty: at the end.
    pub stop_row: Vec<u8>,
    /// Whether the stop row itself is wanted.
    pub include_stop: bool,
    /// From greater rows to smaller ones.
    pub reversed: bool,
    /// Most cells in one result; `None`: whole rows (HBase: `batch`).
    pub batch: Option<usize>,
    /// Most rows of the whole scan.
    pub limit: Option<u64>,
    /// Rows that HBase's client would fetch in one request; `None`: all of a region (HBase:
    /// `caching`). It only affects where a filter ends the scan: see `crate::engine::Scanner`.
    pub caching: Option<usize>,
    /// Cells to read of each row.
    pub spec: ReadSpec,
    /// Where the scan may look at first (`crate::engine::Scanner::read_from_disk`).
    pub tier: ReadTier,
}

impl Scan {
    /// Whether it may be read with `ReadTier::Memory`. A row that turns out not to be in memory is
    /// read again from its beginning, so filters and batches, which would see part of it twice, are
    /// excluded.
    #[inline]
    pub fn may_read_memory_only(&self) -> bool {
        self.spec.filter.is_none() && self.batch.is_none()
    }
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            start_row: Vec::new(),
            include_start: true,
            stop_row: Vec::new(),
            include_stop: false,
            reversed: false,
            batch: None,
            limit: None,
            caching: None,
            spec: ReadSpec::default(),
            tier: ReadTier::All,
        }
    }
}

/// Bounds of one fetch from a scanner. Reaching any of them ends the fetch, at a row boundary unless the scan
/// has a batch limit.
#[derive(Clone, Copy, Debug)]
pub struct FetchLimits {
    /// Most results (rows, or pieces of rows under a batch limit).
    pub results: usize,
    /// Bytes from which on no further row is begun.
    pub bytes: usize,
    /// Time after which no further row is begun, so that a filter that matches nothing does not
    /// hold the caller. It is checked after the first row and every few rows.
    pub time: std::time::Duration,
}

/// One cell to write. `None` as timestamp: the server's time.
#[derive(Clone, Copy, Debug)]
pub enum Write<'a> {
    /// A value.
    Put {
        /// Family.
        family: &'a [u8],
        /// Qualifier.
        qualifier: &'a [u8],
        /// Milliseconds.
        timestamp: Option<i64>,
        /// Value.
        value: &'a [u8],
        /// Time to live of the cell, milliseconds from its timestamp on.
        ttl_ms: Option<i64>,
    },
    /// A tombstone for one version; without timestamp: of the newest version there is (which reads).
    DeleteVersion {
        /// Family.
        family: &'a [u8],
        /// Qualifier.
        qualifier: &'a [u8],
        /// Milliseconds.
        timestamp: Option<i64>,
    },
    /// A tombstone for one version, with the time of its mutation: it hides what was put into the column in
    /// the same millisecond. HBase makes it of a marker without a timestamp in a put.
    #[doc(hidden)]
    DeleteVersionAtWrite {
        /// Family.
        family: &'a [u8],
        /// Qualifier.
        qualifier: &'a [u8],
    },
    /// A tombstone for all versions up to the timestamp.
    DeleteColumn {
        /// Family.
        family: &'a [u8],
        /// Qualifier.
        qualifier: &'a [u8],
        /// Milliseconds.
        timestamp: Option<i64>,
    },
    /// A tombstone for all cells of the family up to the timestamp.
    DeleteFamily {
        /// Family.
        family: &'a [u8],
        /// Milliseconds.
        timestamp: Option<i64>,
    },
    /// A tombstone for all cells of the family with exactly this timestamp.
    DeleteFamilyVersion {
        /// Family.
        family: &'a [u8],
        /// Milliseconds.
        timestamp: i64,
    },
    /// [`Write::DeleteFamily`] for every family of the table.
    DeleteRow {
        /// Milliseconds.
        timestamp: Option<i64>,
    },
}

/// Writes to one row, applied together or not at all.
#[derive(Clone, Debug)]
pub struct RowMutation<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The cells, in the order given.
    pub writes: Writes<'a>,
    /// How hard to try.
    pub durability: Durability,
}

/// A cell of a replication source, which is written as it is.
#[derive(Clone, Copy, Debug)]
pub struct ReplicatedCell<'a> {
    /// Family.
    pub family: &'a [u8],
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Milliseconds.
    pub timestamp: i64,
    /// Type of the cell.
    pub cell_type: CellType,
    /// Value.
    pub value: &'a [u8],
    /// Encoded tags.
    pub tags: &'a [u8],
}

/// Consecutive cells of one row, applied together or not at all.
#[derive(Clone, Debug)]
pub struct ReplicatedRow<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The cells, in the order given.
    pub cells: Vec<ReplicatedCell<'a>>,
}

/// How a check compares: `given OP stored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// given < stored
    Less,
    /// given <= stored
    LessOrEqual,
    /// given = stored
    Equal,
    /// given != stored
    NotEqual,
    /// given >= stored
    GreaterOrEqual,
    /// given > stored
    Greater,
    /// Never passes a value comparison.
    NoOp,
}

/// Condition of a check-and-mutate on the newest version of one column (table in `spec/thrift-semantics.md`
/// section 8).
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// Family.
    pub family: &'a [u8],
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Operator.
    pub op: CompareOp,
    /// Value; `None` or empty: "must not exist" (or must, with `NotEqual`).
    pub value: Option<&'a [u8]>,
}

/// One column of an increment.
#[derive(Clone, Copy, Debug)]
pub struct ColumnIncrement<'a> {
    /// Family.
    pub family: &'a [u8],
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Added; wraps on overflow.
    pub amount: i64,
    /// The new cell's time in milliseconds, where the column has no cell. `None`: the server's.
    pub timestamp: Option<i64>,
}

/// One column of an append.
#[derive(Clone, Copy, Debug)]
pub struct ColumnAppend<'a> {
    /// Family.
    pub family: &'a [u8],
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Put behind the stored value.
    pub value: &'a [u8],
    /// The new cell's time in milliseconds, where the column has no cell. `None`: the server's.
    pub timestamp: Option<i64>,
}

/// An atomic read-modify-write of one row.
#[derive(Clone, Debug)]
pub enum RowUpdate<'a> {
    /// Adds to 8-byte big-endian counters.
    Increment(Vec<ColumnIncrement<'a>>),
    /// Lengthens values.
    Append(Vec<ColumnAppend<'a>>),
}
