//! The rows of the system tables, made of a catalog.
//!
//! ```text
//! hbase:meta        row                       column
//!                   name of the table         table:state
//!                   name of the region        info:regioninfo, seqnumDuringOpen, server, serverstartcode, sn, state
//!                                             with a replica's server also seqnumDuringOpen_0001, server_0001, ...
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
/// Ends the columns of the first replica (HBase: `RegionInfo.REPLICA_ID_FORMAT`).
const REPLICA: &str = "_0001";

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
    let replica = directory.and_then(RegionDirectory::replica);
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
            let replica = replica.as_ref().filter(|_| descriptor.region_replication() > 1);
            region_row(&mut cells, listing, replica, descriptor, *state, started)?;
        }
    }
    Ok(cells.into())
}

fn region_row(
    cells: &mut [CellBatch; 3],
    listing: &Listing,
    replica: Option<&ServerName>,
    table: &TableDescriptor,
    state: TableState,
    started_ms: u64,
) -> Result<()> {
    let [info, rep_barrier, _] = cells;
    let (name, time) = (listing.region.name(), time(listing.region.created_ms, started_ms));
    let open_seq = listing.open_seq.to_be_bytes();
    let mut row = Row::new(Named::Region, &name, INFO, time)?;
    row.put(info, "regioninfo", &messages::region_info(&listing.region));
    // As in HBase, a closed region still has its last server.
    let is_open = listing.location.as_ref().is_none_or(|location| location.is_open);
    let region_state = match state {
        TableState::Enabled if is_open => "OPEN",
        _ => "CLOSED",
    };
    let own = listing.location.as_ref().map(|location| &location.server);
    let mut columns = columns("", own, open_seq, region_state);
    if replica.is_some() {
        columns.extend(self::columns(REPLICA, replica, open_seq, region_state));
    }
    columns.sort();
    for (qualifier, value) in columns {
        row.put(info, &qualifier, &value);
    }
    info.end_row(false);
    if table.has_global_scope() {
        Row::new(Named::Region, &name, REP_BARRIER, time)?.put(rep_barrier, "seqnumDuringOpen", &open_seq);
        rep_barrier.end_row(false);
    }
    Ok(())
}

/// The columns that say where a region, or a replica of it, is.
fn columns(
    suffix: &str,
    server: Option<&ServerName>,
    open_seq: [u8; 8],
    state: &str,
) -> Vec<(String, Vec<u8>)> {
    let mut columns = vec![("seqnumDuringOpen", open_seq.to_vec()), ("state", state.into())];
    if let Some(server) = server {
        let ServerName {
            host,
            port,
            start_code,
        } = server;
        columns.extend([
            ("server", format!("{host}:{port}").into()),
            ("serverstartcode", start_code.to_be_bytes().into()),
            ("sn", server.to_string().into()),
        ]);
    }
    let named = columns.into_iter();
    named
        .map(|(name, value)| (format!("{name}{suffix}"), value))
        .collect()
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
