//! Opening a read: which memstores and files it needs.
//!
//! Left out is a source that cannot matter:
//!
//! - a file whose rows, or whose clip, do not overlap the requested rows;
//! - for a single row, a file whose bloom filter says no, and any source in which the row is then not found;
//! - for rows that all begin alike, a file whose bloom filter of prefixes says no;
//! - a source that is older than the time range as a whole: it cannot mask anything in the range. One that is
//!   newer may hold a tombstone that does, so it stays, unless tombstones outside the range do not count
//!   (KEEP_DELETED_CELLS) or nothing is masked (raw);
//! - a source all of whose cells have outlived the TTL, when MIN_VERSIONS is 0: its tombstones mask
//!   only older cells, which have expired as well. A raw read shows such cells.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::Result;
use crate::cache::Priority;
use crate::cell::{CellCursor, Key, KeyBuf, is_from};
use crate::hfile::{Access, BloomAnswer, Properties, ReadOptions};
use crate::id::SeqId;
use crate::op::{Columns, FamilySelection, ReadSpec, TimeRange};
use crate::schema::{BloomType, FamilyDescriptor, KeepDeletedCells};
use crate::seeded;

use super::block_read::BlockRead;
use super::matcher::{Expiry, effective_range};
use super::source::{ClippedCursor, LoadedCursor, Source, VisibleCursor};
use super::{Reach, ReadView, StoreFile, StoreVersion};

/// Rows for which a scanner will be used. Only a hint for leaving files out; the caller stops by
/// itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadRows<'a> {
    /// Exactly one row.
    One(&'a [u8]),
    /// Rows from `low` to `high`, both included; empty: no bound on that side.
    Range {
        /// Smallest row.
        low: &'a [u8],
        /// Greatest row.
        high: &'a [u8],
        /// From greater rows to smaller ones.
        reversed: bool,
    },
}

/// The conditions that decide which sources a read needs.
pub(super) struct Opening<'a> {
    family: &'a FamilyDescriptor,
    /// Empty: all.
    columns: &'a [Vec<u8>],
    range: Option<TimeRange>,
    expiry: Expiry,
    spec: &'a ReadSpec,
    reach: Reach,
    rows: ReadRows<'a>,
    /// For a single row: its beginning. Made when the first source is looked at.
    row_start: OnceCell<KeyBuf>,
    /// For a single row: the key at its first selected column. Made when the first source needs it.
    column_start: OnceCell<KeyBuf>,
}

impl<'a> Opening<'a> {
    pub(super) fn new(
        version: &'a StoreVersion,
        selection: Option<&'a FamilySelection>,
        spec: &'a ReadSpec,
        reach: Reach,
        now_ms: i64,
        rows: ReadRows<'a>,
    ) -> Self {
        let family = &*version.family;
        let columns: &[Vec<u8>] = match selection.map(|selection| &selection.columns) {
            Some(Columns::Only(wanted)) => wanted,
            _ => &[],
        };
        Self {
            family,
            columns,
            range: effective_range(family, spec),
            expiry: Expiry::of_read(family, spec, now_ms),
            spec,
            reach,
            rows,
            row_start: OnceCell::new(),
            column_start: OnceCell::new(),
        }
    }

    /// The sources, newest first; for a single row positioned, and only those that hold cells of it.
    pub(super) fn sources(&self, version: &StoreVersion, read_point: SeqId) -> Result<Vec<Source>> {
        if let Some(cells) = &version.system_cells {
            let mut cursor = cells.cursor();
            let wanted = self.holds_row(&mut cursor, true)?;
            return Ok(wanted.then_some(Source::System(cursor)).into_iter().collect());
        }
        let mut sources = Vec::new();
        for memstore in version.memstores() {
            // Writers may be adding to the memstore: cells added now are newer than the read point.
            if !memstore.time_range().is_some_and(|times| self.may_matter(times)) {
                continue;
            }
            let mut cursor = VisibleCursor::new(memstore.cursor(), read_point);
            if self.holds_row(&mut cursor, true)? {
                sources.push(Source::Memstore(cursor));
            }
        }
        for file in version.files.iter().rev() {
            self.add_file(file, read_point, &mut sources)?;
        }
        Ok(sources)
    }

    /// Adds a file to `sources` if it is needed. It is positioned where it stays: moving a source
    /// would add to the time of a get.
    fn add_file(&self, file: &StoreFile, read_point: SeqId, sources: &mut Vec<Source>) -> Result<()> {
        if !self.may_need(file, read_point) {
            return Ok(());
        }
        let properties = file.properties();
        let is_newer = file.meta().max_seq > read_point;
        let options = self.read_options();
        if !self.passes_bloom(file, options)? {
            return Ok(());
        }
        let cursor = file.reader().cursor(options);
        let clipped = |cursor| ClippedCursor::new(cursor, file.clip().clone(), &self.family.name);
        if file.meta().loaded {
            sources.push(Source::Loaded(LoadedCursor::new(
                clipped(cursor),
                file.meta().max_seq,
            )));
        } else if is_newer {
            sources.push(Source::Newer(VisibleCursor::new(clipped(cursor), read_point)));
        } else if file.is_clipped() {
            sources.push(Source::Clipped(clipped(cursor)));
        } else {
            sources.push(Source::File(cursor));
        }
        if let Some(source) = sources.last_mut()
            && !self.holds_row(source, may_hold_family_tombstones(properties))?
        {
            sources.pop();
            if self.asks_bloom(properties) {
                file.context().reader.counters.bloom_false_positives.increment();
            }
        }
        Ok(())
    }

    /// Adds to `reads` the blocks of store files that the read of a single row needs next and that are
    /// not in memory: at most one of each file.
    pub(super) fn missing_blocks(
        &self,
        version: &StoreVersion,
        read_point: SeqId,
        reads: &mut Vec<BlockRead>,
    ) {
        let ReadRows::One(row) = self.rows else { return };
        let options = self.read_options();
        for file in &version.files {
            if !self.may_need(file, read_point) {
                continue;
            }
            let missing = match self.peek_bloom(file, row) {
                BloomAnswer::No => None,
                BloomAnswer::Missing(block) => Some(block),
                BloomAnswer::Maybe => {
                    let target = self.target(row, may_hold_family_tombstones(file.properties()));
                    file.reader().missing_block(target, options)
                }
            };
            reads.extend(missing.map(|block| BlockRead::new(Arc::clone(file), block, options)));
        }
    }

    fn peek_bloom(&self, file: &StoreFile, row: &[u8]) -> BloomAnswer {
        let properties = file.properties();
        match self.columns {
            _ if !self.asks_bloom(properties) => BloomAnswer::Maybe,
            [column] if properties.bloom == BloomType::RowCol => file.reader().peek_bloom(row, Some(column)),
            _ => file.reader().peek_bloom(row, None),
        }
    }

    /// Whether the read needs the file, as far as that shows without its blocks.
    fn may_need(&self, file: &StoreFile, read_point: SeqId) -> bool {
        let properties = file.properties();
        let may_matter = properties.time_range.is_some_and(|times| self.may_matter(times));
        if !may_matter || !self.may_hold_rows(file, properties) {
            return false;
        }
        // All cells of a bulk load have the sequence id of the load.
        let is_newer_load = file.meta().loaded && file.meta().max_seq > read_point;
        !is_newer_load || seeded::is_on("load-seen-by-open-scans")
    }

    fn read_options(&self) -> ReadOptions {
        ReadOptions {
            cache_blocks: self.spec.cache_blocks && self.family.block_cache,
            priority: if self.family.in_memory {
                Priority::InMemory
            } else {
                Priority::Single
            },
            memory_only: self.reach == Reach::Memory,
            charge: Some(self.reach.on_shortage()),
            access: match self.rows {
                ReadRows::One(_) => Access::SingleRow,
                ReadRows::Range { .. } => Access::Sequential,
            },
        }
    }

    /// Whether cells between these timestamps can be results or mask results.
    fn may_matter(&self, (oldest, newest): (i64, i64)) -> bool {
        if self.expiry.is_gone(newest) {
            return false;
        }
        let Some(range) = self.range else {
            return true;
        };
        let newer_ones_matter = !self.spec.raw && self.family.keep_deleted_cells == KeepDeletedCells::False;
        newest >= range.min && (oldest < range.max || newer_ones_matter)
    }

    /// Whether the rows asked for overlap those of the file and its clip.
    fn may_hold_rows(&self, file: &StoreFile, properties: &Properties) -> bool {
        let (Some(first), Some(last)) = (&properties.first_key, &properties.last_key) else {
            return false;
        };
        let (first, last) = (first.as_key().row(), last.as_key().row());
        let (low, high) = match self.rows {
            ReadRows::One(row) => {
                return file.clip().contains(row) && (first..=last).contains(&row);
            }
            ReadRows::Range { low, high, .. } => (low, high),
        };
        let clip = file.clip();
        let ends_before = !is_from(last, low) || (!clip.end.is_empty() && is_from(low, &clip.end));
        let begins_after = !high.is_empty() && (first > high || !is_from(high, &clip.start));
        !ends_before && !begins_after
    }

    /// Whether the bloom filter can say something about this read.
    fn asks_bloom(&self, properties: &Properties) -> bool {
        match (properties.bloom, self.rows) {
            (BloomType::Row | BloomType::RowPrefix, ReadRows::One(_)) => true,
            // A raw read wants family tombstones too, whatever column is asked for.
            (BloomType::RowCol, ReadRows::One(_)) => self.columns.len() == 1 && !self.spec.raw,
            (BloomType::RowPrefix, ReadRows::Range { low, high, .. }) => {
                let bytes = properties.bloom_prefix_bytes;
                matches!((low.get(..bytes), high.get(..bytes)), (Some(low), Some(high)) if low == high)
            }
            (BloomType::None, _) | (BloomType::Row | BloomType::RowCol, ReadRows::Range { .. }) => false,
        }
    }

    fn passes_bloom(&self, file: &StoreFile, options: ReadOptions) -> Result<bool> {
        let (properties, reader) = (file.properties(), file.reader());
        if !self.asks_bloom(properties) {
            return Ok(true);
        }
        match (self.rows, self.columns) {
            (ReadRows::One(row), [column]) if properties.bloom == BloomType::RowCol => {
                reader.may_contain_column(row, &self.family.name, column, options)
            }
            (ReadRows::One(row), _) => reader.may_contain_row(row, options),
            (ReadRows::Range { low, .. }, _) => reader.may_contain_prefix(low, options),
        }
    }

    /// For a read of a single row: positions the source and returns whether it has cells of it.
    /// Where no family tombstone can be, the search goes straight to the first selected column.
    fn holds_row(&self, source: &mut impl CellCursor, family_tombstones: bool) -> Result<bool> {
        let ReadRows::One(row) = self.rows else {
            return Ok(true);
        };
        source.seek(self.target(row, family_tombstones))?;
        Ok(source.cell().is_some_and(|cell| cell.key.row() == row))
    }

    /// Where the search for a single row goes in a source.
    fn target(&self, row: &[u8], family_tombstones: bool) -> Key<'_> {
        let family = &self.family.name;
        let target = match self.columns.first() {
            Some(column) if !family_tombstones => self
                .column_start
                .get_or_init(|| KeyBuf::first_on_column(row, family, column)),
            _ => self.row_start.get_or_init(|| KeyBuf::first_on_row(row, family)),
        };
        target.as_key()
    }
}

/// Adds to `reads` the blocks that a read of `row` needs next of one store and that are not in
/// memory. `selection`: the columns to read; `None`: all.
pub(crate) fn missing_blocks(
    version: &StoreVersion,
    selection: Option<&FamilySelection>,
    spec: &ReadSpec,
    read_view: ReadView,
    row: &[u8],
    reads: &mut Vec<BlockRead>,
) {
    let (reach, rows) = (Reach::DiskAtOnce, ReadRows::One(row));
    let opening = Opening::new(version, selection, spec, reach, read_view.now_ms, rows);
    opening.missing_blocks(version, read_view.read_point, reads);
}

fn may_hold_family_tombstones(properties: &Properties) -> bool {
    properties.delete_family_cells > 0 || properties.uuid.is_none()
}
