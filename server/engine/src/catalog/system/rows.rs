//! The rows of the system tables, made of a catalog.
//!
//! ```text
//! hbase:meta        row                       column
//!                   name of the table         table:state
//!                   name of the region        info:regioninfo, seqnumDuringOpen, server, serverstartcode, sn, state
//!                                             rep_barrier:seqnumDuringOpen, if a family of the table has a global scope
//! hbase:namespace   name of the namespace     info:d
//! hbase:acl         name of the table,        l:user, l:user,family, l:user,family,qualifier
//!                   @namespace, or hbase:acl
//! ```
//!
//! The rows of `hbase:acl` come from outside ([`Grant`]), sorted.
//!
//! A name that is too long for a row (stored before names had limits) is an error that says how to
//! remove it.
//!
//! `hbase:meta` has no row for itself, as in HBase 2. Cells have the time of the server's start, or that of
//! the region's creation when it is later.

use super::{SystemTable, messages};
use crate::catalog::Tables;
use crate::cell::{Cell, CellBatch, CellType, KeyBuf};
use crate::error::{Error, Result};
use crate::id::SeqId;
use crate::region::{Grant, RegionDirectory, RegionInfo, RegionLocation, ServerName};
use crate::schema::limits::Brief;
use crate::schema::{TableDescriptor, TableState};

const INFO: &[u8] = b"info";
const REP_BARRIER: &[u8] = b"rep_barrier";
const TABLE: &[u8] = b"table";
const RIGHTS: &[u8] = b"l";

/// A region to list.
struct Listing {
    region: RegionInfo,
    location: Option<RegionLocation>,
    /// The sequence id that opening it took (HBase: `openSeqNum`).
    open_seq: u64,
}

/// The cells of `hbase:meta` by family: `info`, `rep_barrier`, `table`. `others` are the other system
/// tables.
pub(super) fn meta(
    tables: &Tables,
    others: &[(SystemTable, &TableDescriptor)],
    directory: Option<&dyn RegionDirectory>,
) -> Result<Vec<CellBatch>> {
    let locate = |region| directory.map(|directory| directory.location(region));
    let started = started_ms(directory);
    let system = others.iter().map(|(table, descriptor)| {
        let region = Listing {
            region: RegionInfo::of_meta(&table.region(&descriptor.name)),
            location: locate(table.region_id()),
            open_seq: first_open_seq(SeqId::ZERO),
        };
        let name = descriptor.name.to_string();
        (name, *descriptor, TableState::Enabled, vec![region])
    });
    let mut all: Vec<_> = system.collect();
    let user = tables.sorted();
    all.extend(user.iter().map(|table| {
        let regions = table.regions.iter().map(|region| Listing {
            region: region.info().clone(),
            location: locate(region.id()),
            open_seq: first_open_seq(region.opened_at()),
        });
        (
            table.name().to_string(),
            &*table.descriptor,
            table.state,
            regions.collect(),
        )
    }));
    all.sort_by(|left, right| left.0.cmp(&right.0));
    let mut cells = [CellBatch::new(), CellBatch::new(), CellBatch::new()];
    for (name, descriptor, state, regions) in &all {
        let oldest = regions.iter().map(|listing| listing.region.created_ms).min();
        let mut row = Row::new(
            Named::Table,
            name.as_bytes(),
            TABLE,
            time(oldest.unwrap_or(0), started),
        )?;
        row.put(&mut cells[2], "state", &messages::table_state(*state));
        cells[2].end_row(false);
        for listing in regions {
            region_row(&mut cells, listing, descriptor, *state, started)?;
        }
    }
    Ok(cells.into())
}

fn region_row(
    cells: &mut [CellBatch; 3],
    listing: &Listing,
    table: &TableDescriptor,
    state: TableState,
    started_ms: u64,
) -> Result<()> {
    let [info, rep_barrier, _] = cells;
    let (name, time) = (listing.region.name(), time(listing.region.created_ms, started_ms));
    let open_seq = listing.open_seq.to_be_bytes();
    let mut row = Row::new(Named::Region, &name, INFO, time)?;
    row.put(info, "regioninfo", &messages::region_info(&listing.region));
    row.put(info, "seqnumDuringOpen", &open_seq);
    if let Some(RegionLocation { server, .. }) = &listing.location {
        let ServerName {
            host,
            port,
            start_code,
        } = server;
        row.put(info, "server", format!("{host}:{port}").as_bytes());
        row.put(info, "serverstartcode", &start_code.to_be_bytes());
        row.put(info, "sn", server.to_string().as_bytes());
    }
    // As in HBase, a closed region still has its last server.
    let is_open = listing.location.as_ref().is_none_or(|location| location.is_open);
    let region_state = match state {
        TableState::Enabled if is_open => "OPEN",
        _ => "CLOSED",
    };
    row.put(info, "state", region_state.as_bytes());
    info.end_row(false);
    if table.has_global_scope() {
        Row::new(Named::Region, &name, REP_BARRIER, time)?.put(rep_barrier, "seqnumDuringOpen", &open_seq);
        rep_barrier.end_row(false);
    }
    Ok(())
}

/// The cells of `hbase:namespace`: of its one family, `info`.
pub(super) fn namespace(tables: &Tables, directory: Option<&dyn RegionDirectory>) -> Result<Vec<CellBatch>> {
    let time = time(0, started_ms(directory));
    let mut info = CellBatch::new();
    for (name, namespace) in &tables.namespaces {
        let mut row = Row::new(Named::Namespace, name.as_bytes(), INFO, time)?;
        row.put(&mut info, "d", &messages::namespace(namespace));
        info.end_row(false);
    }
    Ok(vec![info])
}

/// The cells of `hbase:acl`: of its one family, `l`.
pub(super) fn acl(grants: &[Grant], directory: Option<&dyn RegionDirectory>) -> Result<Vec<CellBatch>> {
    let time = time(0, started_ms(directory));
    let mut rights = CellBatch::new();
    for of_row in grants.chunk_by(|left, right| left.row == right.row) {
        for grant in of_row {
            let mut row = Row::new(Named::Table, &grant.row, RIGHTS, time)?;
            row.put(&mut rights, &grant.qualifier, &grant.value);
        }
        rights.end_row(false);
    }
    Ok(vec![rights])
}

/// A region whose files reach up to `files_max` is opened with the next sequence id; HBase counts one for the
/// region itself.
fn first_open_seq(files_max: SeqId) -> u64 {
    files_max.0.max(1) + 1
}

/// When the server of the system tables started; 0 without a directory.
fn started_ms(directory: Option<&dyn RegionDirectory>) -> u64 {
    let home = directory.map(|directory| directory.location(SystemTable::Namespace.region_id()));
    home.map_or(0, |home| home.server.start_code)
}

fn time(created_ms: u64, started_ms: u64) -> i64 {
    i64::try_from(created_ms.max(started_ms)).unwrap_or(i64::MAX - 1)
}

/// The kind of object that a row is named after.
#[derive(Clone, Copy)]
enum Named {
    Namespace,
    Table,
    Region,
}

impl Named {
    fn too_long(self, name: &[u8]) -> Error {
        let (what, remedy) = match self {
            Self::Namespace => ("namespace", "dropping the namespace"),
            Self::Table => ("table", "dropping the table"),
            Self::Region => ("region", "merging the region with the one before it"),
        };
        Error::DoNotRetry(format!(
            "this system table cannot be read: the name of {what} {} has {} bytes, and a row at most {}; {remedy} makes it readable",
            Brief(name),
            name.len(),
            KeyBuf::ROW_BYTES_MAX
        ))
    }
}

/// Where the next cells go.
struct Row<'a> {
    key: &'a [u8],
    family: &'static [u8],
    time: i64,
}

impl<'a> Row<'a> {
    fn new(named: Named, key: &'a [u8], family: &'static [u8], time: i64) -> Result<Self> {
        if key.len() > KeyBuf::ROW_BYTES_MAX {
            return Err(named.too_long(key));
        }
        Ok(Self { key, family, time })
    }

    fn put(&mut self, out: &mut CellBatch, qualifier: impl AsRef<[u8]>, value: &[u8]) {
        let key = KeyBuf::new(
            self.key,
            self.family,
            qualifier.as_ref(),
            self.time,
            CellType::Put,
        );
        out.push(Cell {
            key: key.as_key(),
            value,
            tags: &[],
            seq: SeqId::ZERO,
        });
    }
}
