//! The memory that a write makes of its arguments: each cell repeats the key of its row and the name
//! of its family, in the log's edit, in the buffer of the log's group, and in the memstores.
//!
//! A put of many empty cells with a long row key is a small message and a thousand times as many bytes
//! of cells. What the cells have beyond the arguments is therefore reserved from the memory for calls
//! before a lock is taken and anything is made, and kept until the log has written its group.
//!
//! A row that reads could not return is refused here, too: with the sum of all cells of one mutation.

use crate::cell::{Account, BATCH_FREE_BYTES, Key, OnShortage};
use crate::error::{Error, Result};
use crate::op::Write;
use crate::region::Shared;
use crate::schema::TableDescriptor;
use crate::seeded;

/// Copies of a cell's key that a write makes: in the edit, in the group's buffer, in the memstore.
const COPIES: usize = 3;

/// Adds up what the rows of a call make.
#[derive(Debug)]
pub(crate) struct Made<'t> {
    table: &'t TableDescriptor,
    row_max_bytes: usize,
    /// Bytes of keys beyond those in the arguments.
    repeated: usize,
    /// Bytes of the cells that were put into the last row.
    row_bytes: usize,
}

/// Lengths of the parts of a written cell.
struct Lengths {
    family: usize,
    /// The key without its row.
    key: usize,
    value: usize,
    /// Cells that it becomes.
    cells: usize,
}

impl Lengths {
    fn of(write: &Write<'_>, table: &TableDescriptor) -> Self {
        let (family, qualifier, value) = match *write {
            Write::Put {
                family,
                qualifier,
                value,
                ..
            } => (family, qualifier, value),
            Write::DeleteVersion {
                family, qualifier, ..
            }
            | Write::DeleteVersionAtWrite { family, qualifier }
            | Write::DeleteColumn {
                family, qualifier, ..
            } => (family, qualifier, &b""[..]),
            Write::DeleteFamily { family, .. } | Write::DeleteFamilyVersion { family, .. } => {
                (family, &b""[..], &b""[..])
            }
            Write::DeleteRow { .. } => {
                let longest = table.families.iter().map(|family| family.name.len()).max();
                return Self {
                    family: longest.unwrap_or(0),
                    key: 0,
                    value: 0,
                    cells: table.families.len(),
                };
            }
        };
        Self {
            family: family.len(),
            key: Key::len_of(b"", family, qualifier),
            value: value.len(),
            cells: 1,
        }
    }
}

impl<'t> Made<'t> {
    /// Nothing yet.
    pub(crate) fn new(shared: &Shared, table: &'t TableDescriptor) -> Self {
        Self {
            table,
            row_max_bytes: shared.options.row_max_bytes,
            repeated: 0,
            row_bytes: 0,
        }
    }

    /// Adds the writes of a row. Refuses those that make a row too large to be read.
    pub(crate) fn add_writes(&mut self, row: &[u8], writes: &[Write<'_>]) -> Result<()> {
        self.row_bytes = 0;
        self.add_more_writes(row, writes)
    }

    /// Adds writes to the row of the writes before, with which they are applied together.
    pub(crate) fn add_more_writes(&mut self, row: &[u8], writes: &[Write<'_>]) -> Result<()> {
        let (mut cells, mut row_bytes, mut families) = (0_usize, self.row_bytes, 0_usize);
        for write in writes {
            let of = Lengths::of(write, self.table);
            cells += of.cells;
            families += of.cells * of.family;
            if matches!(write, Write::Put { .. }) {
                row_bytes += row.len() + of.key + of.value;
            }
        }
        self.check_row_bytes(row_bytes)?;
        self.row_bytes = row_bytes;
        self.repeat(row, cells, families);
        Ok(())
    }

    fn check_row_bytes(&self, row_bytes: usize) -> Result<()> {
        if row_bytes > self.row_max_bytes && !seeded::is_on("unreadable-row-written") {
            return Err(Error::InvalidArgument(format!(
                "The writes of a row take {row_bytes} bytes as cells, each with its row key, and row.max_bytes is {}: the row could \
                 not be read. Write fewer or smaller columns at a time, choose a shorter row key, or raise row.max_bytes",
                self.row_max_bytes
            )));
        }
        Ok(())
    }

    /// Adds a row's cells as they are, each with family, qualifier and, if it is a put, the length of its
    /// value. Refuses those that make a row too large to be read.
    pub(crate) fn add_cells<'a>(
        &mut self,
        row: &[u8],
        given: impl Iterator<Item = (&'a [u8], &'a [u8], Option<usize>)>,
    ) -> Result<()> {
        let (mut cells, mut families, mut row_bytes) = (0, 0, 0_usize);
        for (family, qualifier, value_len) in given {
            cells += 1;
            families += family.len();
            if let Some(value_len) = value_len {
                row_bytes += Key::len_of(row, family, qualifier) + value_len;
            }
        }
        self.check_row_bytes(row_bytes)?;
        self.row_bytes = row_bytes;
        self.repeat(row, cells, families);
        Ok(())
    }

    /// Adds the columns that an increment or append changes.
    pub(crate) fn add_columns<'a>(
        &mut self,
        row: &[u8],
        columns: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        let (mut cells, mut families) = (0, 0);
        for (family, _) in columns {
            cells += 1;
            families += family.len();
        }
        self.repeat(row, cells, families);
    }

    fn repeat(&mut self, row: &[u8], cells: usize, families: usize) {
        let rows = row.len().saturating_mul(cells.saturating_sub(1));
        self.repeated = self.repeated.saturating_add(rows).saturating_add(families);
    }

    /// Reserves it; `None` for so little that it is not reserved.
    pub(crate) fn reserve(self, shared: &Shared, on_shortage: OnShortage) -> Result<Option<Box<Account>>> {
        let bytes = self.repeated.saturating_mul(COPIES);
        if bytes <= BATCH_FREE_BYTES || seeded::is_on("made-cells-not-reserved") {
            return Ok(None);
        }
        let mut account = shared.store.reader.calls.account(BATCH_FREE_BYTES, on_shortage);
        account.add(bytes)?;
        Ok(Some(Box::new(account)))
    }
}
