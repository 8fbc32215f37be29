//! The last steps of a write: one edit into the log, its cells into the memstores.
//!
//! Cells are encoded once, for the log, and copied once, from there into the memstores' arenas; replay of the
//! log after a crash goes through the same [`insert_cells`].

use std::cell::RefCell;

use smallvec::SmallVec;

use crate::cell::{Cell, Key, TTL_TAG_BYTES, is_equal};
use crate::error::{Error, Result};
use crate::id::{Nonce, Uuid};
use crate::record::{EditBuilder, EditReader};
use crate::region::{Region, RegionVersion, RowPlan, Shared};
use crate::schema::TableDescriptor;
use crate::seeded;
use crate::sync::RwLockReadGuard;
use crate::wal::{Commit, EDIT_BYTES_MAX, Logging, Reserved, origin_bytes};

thread_local! {
    /// The buffer of this thread's edits: at steady state, writing allocates nothing for encoding.
    static EDIT: RefCell<EditBuilder> = RefCell::new(EditBuilder::new());
}

/// Size up to which the thread keeps a buffer after use; a larger one is dropped.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Maximum bytes of the log's edit for a cell or a row besides the cell's key, value and tags:
/// their lengths.
const LENGTHS_BYTES_MAX: usize = 32;

/// Maximum bytes of the rows as one edit. Refuses rows that are too long for one. A cell repeats
/// its row's key, so a short request may need many times its own size: this is checked before any
/// of it is encoded, and before another region's share of the batch is written.
pub(crate) fn check_edit(table: &TableDescriptor, rows: &[RowPlan<'_>]) -> Result<u64> {
    let mut bytes = 0_usize;
    for plan in rows {
        bytes = bytes.saturating_add(LENGTHS_BYTES_MAX);
        for cell in &plan.cells {
            let key = Key::len_of(plan.row, &table.families[cell.family].name, cell.qualifier);
            bytes = bytes.saturating_add(key + cell.value.len() + cell.tags.len() + LENGTHS_BYTES_MAX);
        }
    }
    if bytes > EDIT_BYTES_MAX {
        return Err(Error::InvalidArgument(format!(
            "The mutations of a batch for one region take {bytes} bytes as cells, each with its row key; the limit is {EDIT_BYTES_MAX}"
        )));
    }
    Ok(bytes as u64)
}

/// Appends the rows, all of `region`, to the log as one edit and puts their cells into the memstores. Each
/// row gets a sequence id of its own. The edit includes the nonces, which are recorded, and the clusters that
/// it has passed. REQUIRES: [`check_edit`] passed, and the bytes that it returned are reserved, with
/// `NONCE_BYTES_MAX` more for each nonce, and those of the clusters; `updates` is the region's lock; the
/// rows' locks are held; the plans were made for the region's table as it is.
#[expect(clippy::too_many_arguments, reason = "an edit with all that belongs to it")]
#[expect(
    clippy::only_used_in_recursion,
    reason = "the guard proves that the lock is held"
)]
pub(crate) fn write_rows(
    shared: &Shared,
    region: &Region,
    rows: &[RowPlan<'_>],
    nonces: &[Nonce],
    origin: &[Uuid],
    logging: Logging,
    reserved: &mut Reserved<'_>,
    updates: &RwLockReadGuard<'_, ()>,
) -> Result<Commit> {
    let version = region.version();
    if seeded::is_on("batch-in-several-edits") && rows.len() > 1 {
        let mut last = None;
        for row in rows.chunks(1) {
            let bytes = check_edit(&version.table, row)? + origin_bytes(origin.len()) as u64;
            let mut own = shared.wal.reserve(1, bytes)?;
            let commit = write_rows(shared, region, row, nonces, origin, logging, &mut own, updates)?;
            shared.wal.wait_published(commit.last_seq())?;
            last = Some(commit);
        }
        return Ok(last.expect("there is more than one row"));
    }
    EDIT.with_borrow_mut(|edit| {
        edit.begin(region.id());
        for plan in rows {
            edit.begin_row();
            for cell in &plan.cells {
                let mut own_tags = [0; TTL_TAG_BYTES];
                edit.cell_of(
                    plan.row,
                    &version.table.families[cell.family].name,
                    cell.qualifier,
                    cell.timestamp,
                    cell.cell_type,
                    &cell.value,
                    cell.tags.encode(&mut own_tags),
                );
            }
        }
        let count = edit.rows();
        for nonce in nonces.iter().filter(|_| !seeded::is_on("nonce-not-logged")) {
            edit.nonce(*nonce, shared.nonces.lived_ms(shared.clock.mono()));
        }
        let payload = edit.finish();
        let appended = shared.wal.append(reserved, payload, count, origin, logging)?;
        let own = "an edit that was encoded just now can be read back";
        let cells = EditReader::new(payload, appended.first_seq()).expect(own);
        insert_cells(&version, cells.map(|cell| cell.expect(own).1));
        let commit = appended.applied();
        // Recorded while `updates` keeps the region from being flushed, and so this edit in the
        // log.
        for nonce in nonces {
            shared.nonces.note(*nonce, commit.last_seq(), shared.clock.mono());
        }
        region.writes.add(u64::from(count));
        version.note_dirty(|| shared.mono_ms());
        if edit.len() > BUFFER_KEPT_BYTES {
            *edit = EditBuilder::new();
        }
        Ok(commit)
    })
}

/// Cells that are handed to a memstore together.
const TOGETHER: usize = 64;

/// Inserts cells of an edit into the active memstores; cells of families that the table no longer has are
/// left out.
/// REQUIRES: the sequence ids of the cells were not inserted before.
pub(crate) fn insert_cells<'a>(version: &RegionVersion, cells: impl Iterator<Item = Cell<'a>>) {
    // By store: cells of the same family in different rows go together.
    let mut waiting: SmallVec<[SmallVec<[Cell<'a>; 1]>; 1]> = SmallVec::new();
    // Cells of a row are sorted by family, so the family is nearly always that of the cell before.
    let mut store = None;
    for cell in cells {
        let family = cell.key.family();
        let known = store.filter(|index: &usize| is_equal(&version.table.families[*index].name, family));
        store = known.or_else(|| version.table.family(family).map(|(index, _)| index));
        let Some(index) = store else { continue };
        if waiting.len() <= index {
            waiting.resize_with(index + 1, SmallVec::new);
        }
        let together = &mut waiting[index];
        if together.len() == together.inline_size() {
            together.reserve_exact(TOGETHER);
        }
        together.push(cell);
        if together.len() == TOGETHER {
            version.stores[index].active.insert_all(together);
            together.clear();
        }
    }
    for (store, cells) in version.stores.iter().zip(&waiting) {
        store.active.insert_all(cells);
    }
}
