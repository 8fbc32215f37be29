//! Readers of the log: edits with their tables.
//!
//! Edits name regions. The table of a region is known as long as a reader may come to an edit of it: before a
//! change of the manifest takes a region away, [`Catalog::note_gone_regions`] notes its table.

use std::sync::Arc;

use super::Catalog;
use crate::error::Result;
use crate::id::{RegionId, SeqId};
use crate::manifest::{ManifestEdit, ManifestState};
use crate::record::NO_REGION;
use crate::schema::TableName;
use crate::wal::{LoggedEdit, Tail};

/// An edit of the log with its table.
#[derive(Clone, Debug)]
pub struct TailedEdit<'a> {
    /// Its table; `None` if that is not known any more.
    pub table: Option<Arc<TableName>>,
    /// The edit.
    pub edit: LoggedEdit<'a>,
}

/// A place in the log from which it is read while it grows.
#[derive(Debug)]
pub struct LogTail {
    catalog: Arc<Catalog>,
    tail: Tail,
    /// The table of the region of the last edit.
    last: Option<(RegionId, Option<Arc<TableName>>)>,
}

impl LogTail {
    pub(crate) fn new(catalog: &Arc<Catalog>, position: SeqId) -> Self {
        Self {
            catalog: Arc::clone(catalog),
            tail: Tail::new(&catalog.shared.wal, position),
            last: None,
        }
    }

    /// The sequence id of the next row.
    pub fn position(&self) -> SeqId {
        self.tail.position()
    }

    /// Whether rows from the position on are visible. Takes no lock.
    pub fn has_news(&self) -> bool {
        self.tail.has_news()
    }

    /// Hands out edits from the position on, in their order, and moves it behind them; up to the end of the
    /// log, or until `bytes_max` bytes of it were read, and at least one frame. All of them are visible and
    /// durable. Returns whether it has come to the end.
    ///
    /// Syncs the log if there is something new. Fails without effect when the log from the position on is not
    /// kept any more.
    pub fn read(
        &mut self,
        bytes_max: u64,
        visit: &mut dyn FnMut(TailedEdit<'_>) -> Result<()>,
    ) -> Result<bool> {
        let (catalog, last) = (&self.catalog, &mut self.last);
        self.tail.read(bytes_max.max(1), &mut |edit| {
            let region = edit.region();
            if region == NO_REGION {
                return Ok(());
            }
            let table = match last {
                Some((known, table)) if *known == region => table.clone(),
                _ => {
                    let table = catalog.table_of_region(region).map(Arc::new);
                    *last = Some((region, table.clone()));
                    table
                }
            };
            visit(TailedEdit { table, edit })
        })
    }
}

impl Catalog {
    /// The table of a region, also of one that is gone.
    fn table_of_region(&self, region: RegionId) -> Option<TableName> {
        // A region is noted before it is gone, so one that is missing here was.
        let of_region = self
            .tables()
            .region(region)
            .map(|region| region.info().table.clone());
        of_region.or_else(|| self.shared.wal.gone_region(region))
    }

    /// Notes the tables of regions that these edits take away.
    pub(super) fn note_gone_regions(&self, state: &ManifestState, edits: &[ManifestEdit]) -> Result<()> {
        let gone: Vec<_> = edits.iter().flat_map(|edit| gone_regions(state, edit)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.shared.wal.note_gone_regions(&gone)
    }
}

/// The regions that an edit takes away, with their tables.
fn gone_regions(state: &ManifestState, edit: &ManifestEdit) -> Vec<(RegionId, TableName)> {
    let table = match edit {
        ManifestEdit::DropTable(table) | ManifestEdit::TruncateTable(table, _) => table,
        ManifestEdit::RestoreTable { descriptor, .. } => &descriptor.name,
        ManifestEdit::ReplaceRegions { removed, .. } => {
            let known = removed.iter().filter_map(|id| state.regions.get(id));
            return known
                .map(|region| (region.meta.id, region.meta.table.clone()))
                .collect();
        }
        ManifestEdit::TruncateRegion { removed, .. } => {
            let known = state.regions.get(removed).into_iter();
            return known
                .map(|region| (region.meta.id, region.meta.table.clone()))
                .collect();
        }
        _ => return Vec::new(),
    };
    let regions = state.regions_of(table).into_iter();
    regions.map(|region| (region.meta.id, table.clone())).collect()
}
