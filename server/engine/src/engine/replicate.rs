//! Writes of a replication source: cells that another cluster has given their times.
//!
//! The steps are those of a batch of mutations (`write`), without the ones that assign or look up times.
//! Differences, all because the source sends a batch again until it is accepted:
//!
//! - A table that is read only takes the rows: it is closed to clients, not to the copy that it is.
//! - The log is synced even if the table's durability asks for less: the source forgets the rows then.
//! - Timestamps, types and tags stay as they are. Several rows with one key are applied in their order,
//!   each with a sequence id of its own.

use crate::catalog::{Catalog, Table, Tables};
use crate::cell::{CellType, LATEST, OnShortage};
use crate::error::{Error, Result};
use crate::id::{Nonce, Uuid};
use crate::op::{ReplicatedCell, ReplicatedRow};
use crate::region::{
    LockMode, Made, PlannedCell, PlannedTags, RowPlan, check_row, family_index, logging_of,
    negative_timestamp, stronger,
};
use crate::schema::{CellLimit, Durability, TableDescriptor, TableName};
use crate::wal::{Commit, Logging};

use super::write::{WriteOutcome, check_room, group, settle, write_groups};

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

/// Where the rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source<'a> {
    /// Another cluster.
    Peer,
    /// The database that this one follows (`follow`), with the nonce of the rows' operation and the mark of
    /// the place behind them. A table that is disabled takes the rows, too: they were written before, and
    /// come late.
    Leader(&'a [Nonce]),
}

/// Applies rows that have passed the clusters `origin`.
pub(super) fn replicate(
    catalog: &Catalog,
    name: &TableName,
    rows: &[ReplicatedRow<'_>],
    origin: &[Uuid],
    source: Source<'_>,
) -> Result<WriteOutcome<Commit>> {
    if rows.is_empty() {
        return Err(Error::InvalidArgument("A batch needs at least one row".into()));
    }
    let shared = catalog.shared();
    loop {
        let tables = catalog.tables();
        let table = replicated_table(catalog, &tables, name, source)?;
        let limit = table.write_options.cell_limit(&shared.options);
        let mut made = Made::new(shared, &table.descriptor);
        for row in rows {
            check(&table.descriptor, row, limit)?;
            let parts = row.cells.iter().map(|cell| {
                let value = (cell.cell_type == CellType::Put).then_some(cell.value.len());
                (cell.family, cell.qualifier, value)
            });
            made.add_cells(row.row, parts)?;
        }
        let made = made.reserve(shared, OnShortage::Refuse)?;
        let groups = group(table, rows.iter().map(|row| row.row));
        for group in &groups {
            check_room(shared, table, group.region)?;
        }
        let locks = groups.iter().flat_map(|group| {
            group
                .rows
                .iter()
                .map(|index| (group.region.id(), rows[*index].row, LockMode::Shared))
        });
        let _locks = shared.row_locks.lock(locks, shared.options.row_lock_wait)?;
        let mut plans = Vec::with_capacity(groups.len());
        for group in &groups {
            let of_region = group
                .rows
                .iter()
                .map(|index| plan(&table.descriptor, &rows[*index]))
                .collect::<Result<SmallVec<[RowPlan<'_>; 1]>>>()?;
            plans.push(of_region);
        }
        let logging = stronger(
            logging_of(Durability::UseDefault, table.write_options.durability),
            Logging::Sync,
        );
        let nonces = match source {
            Source::Peer => &[],
            Source::Leader(nonces) => nonces,
        };
        let written = write_groups(
            catalog,
            (&tables, table),
            &groups,
            &plans,
            (origin, nonces),
            |_| logging,
        )?;
        let Some(commit) = written else {
            continue;
        };
        let regions = groups.iter().map(|group| &**group.region);
        return Ok(settle(shared, table, regions, commit.holding(made)));
    }
}

/// The table, if it takes replicated rows.
fn replicated_table<'t>(
    catalog: &Catalog,
    tables: &'t Tables,
    name: &TableName,
    source: Source<'_>,
) -> Result<&'t Arc<Table>> {
    catalog.system().check_writable(name)?;
    match source {
        Source::Peer => tables.enabled_table(name),
        Source::Leader(_) => tables.table(name),
    }
}

/// Checks a row without stored data.
fn check(table: &TableDescriptor, row: &ReplicatedRow<'_>, limit: CellLimit) -> Result<()> {
    check_row(row.row)?;
    for cell in &row.cells {
        family_index(table, cell.family)?;
        if cell.timestamp < 0 {
            return Err(negative_timestamp(cell.timestamp));
        }
        if cell.timestamp == LATEST {
            return Err(Error::InvalidArgument(
                "a replicated cell has no timestamp: the source must assign it".into(),
            ));
        }
        limit.check(row.row.len() + cell.family.len() + cell.qualifier.len() + cell.value.len())?;
    }
    Ok(())
}

fn plan<'a>(table: &TableDescriptor, row: &ReplicatedRow<'a>) -> Result<RowPlan<'a>> {
    let planned = |cell: &ReplicatedCell<'a>| {
        Ok(PlannedCell {
            family: family_index(table, cell.family)?,
            qualifier: cell.qualifier,
            timestamp: cell.timestamp,
            cell_type: cell.cell_type,
            value: Cow::Borrowed(cell.value),
            tags: PlannedTags::Given(cell.tags),
        })
    };
    let cells = row.cells.iter().map(planned).collect::<Result<_>>()?;
    Ok(RowPlan::of_cells(row.row, cells))
}
