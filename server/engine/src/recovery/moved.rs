//! Where the rows of the log go: to their region, or, in a copy that has followed turns, to the regions that
//! have their rows there.
//!
//! A restore has the files of a pin and the log since. Splits and merges of after the pin are not repeated in
//! it: the regions stay those of the pin, with their files, and rows that the log has for a later region go
//! to those of its table by their keys.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::cell::Cell;
use crate::id::{RegionId, SeqId};
use crate::manifest::ManifestState;
use crate::region::{Region, insert_cells};
use crate::schema::TableName;

/// Regions that splits and merges have made since the pin, which the state does not have, with their tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved(HashMap<RegionId, TableName>);

impl Moved {
    /// Notes a region.
    pub(super) fn note(&mut self, id: RegionId, table: &TableName) {
        self.0.insert(id, table.clone());
    }

    /// Forgets the regions of a table whose rows are gone.
    pub(super) fn forget(&mut self, table: &TableName) {
        self.0.retain(|_, of| of != table);
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A region, with the sequence id up to which its rows are in store files.
type Open<'a> = (&'a Region, SeqId);

/// The places that rows of the log go to.
pub(super) struct Targets<'a> {
    state: &'a ManifestState,
    regions: &'a HashMap<RegionId, Arc<Region>>,
    moved: &'a Moved,
    /// Regions of the tables of moved regions, by start row.
    by_table: HashMap<&'a TableName, SmallVec<[Open<'a>; 1]>>,
}

/// The place of an edit's rows: regions by start row, which together have all of them.
pub(super) struct Target<'a>(SmallVec<[Open<'a>; 1]>);

impl<'a> Targets<'a> {
    pub(super) fn new(
        state: &'a ManifestState,
        regions: &'a HashMap<RegionId, Arc<Region>>,
        moved: &'a Moved,
    ) -> Self {
        let tables = moved.0.values().map(|table| {
            let of_table = state.regions_of(table).into_iter();
            let open = of_table.filter_map(|state| Some((&**regions.get(&state.meta.id)?, state.flushed)));
            (table, open.collect())
        });
        Self {
            state,
            regions,
            moved,
            by_table: tables.collect(),
        }
    }

    /// The place of the rows of a region; `None` if they are gone.
    pub(super) fn of(&self, id: RegionId) -> Option<Target<'a>> {
        if let Some(region) = self.regions.get(&id) {
            let flushed = self.state.regions.get(&id).map(|region| region.flushed);
            return Some(Target(smallvec![(&**region, flushed.unwrap_or(SeqId::ZERO))]));
        }
        let table = self.moved.0.get(&id)?;
        Some(Target(self.by_table.get(table)?.clone()))
    }
}

impl<'a> Target<'a> {
    /// The region of a row.
    fn of_row(&self, row: &[u8]) -> Option<Open<'a>> {
        if let [only] = self.0[..] {
            return Some(only);
        }
        let after = self
            .0
            .partition_point(|(region, _)| region.info().start.as_slice() <= row);
        after.checked_sub(1).map(|index| self.0[index])
    }

    /// Whether a cell is in a store file.
    pub(super) fn has_in_file(&self, cell: &Cell<'_>) -> bool {
        self.of_row(cell.key.row())
            .is_some_and(|(_, flushed)| cell.seq <= flushed)
    }

    /// Inserts cells, those of a row one after the other.
    pub(super) fn insert<'c>(&self, cells: impl Iterator<Item = Cell<'c>>) {
        let mut cells = cells.peekable();
        while let Some((region, _)) = cells.peek().and_then(|cell| self.of_row(cell.key.row())) {
            let version = region.version();
            let is_here = |cell: &Cell<'_>| self.0.len() == 1 || region.info().contains(cell.key.row());
            insert_cells(&version, std::iter::from_fn(|| cells.next_if(is_here)));
            version.note_dirty(|| 0);
        }
    }
}
