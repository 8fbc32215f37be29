//! ReplicateWALEntry: a replication source of another cluster sends the edits of its log.
//!
//! ```text
//! message     ReplicateWALEntryRequest: entries, each with its key and number of cells
//! cell block  the cells of all entries, in their order
//! ```
//!
//! 1. Entries are decoded one after the other: a call of 256 MiB has the memory of its frame, of the list of
//!    its entries, and of one piece.
//! 2. Consecutive cells of one row and type are a row of the piece ([`Row`]), as in HBase. A piece ends
//!    where table or clusters change, or when it is large.
//! 3. `service::sink` applies the pieces. The answer follows when the last one is durable.
//!
//! Cells of the family `METAFAMILY` are notes of the source's log, not data: a bulk load is loaded
//! ([`Pieces::load`]), the others are dropped. Edits of system tables are dropped, too: a source sends those
//! of `hbase:acl` and `hbase:labels` if they have a scope, and it would send a refused batch for ever.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use basalt_engine::Commit;
use basalt_engine::cell::CellType;
use basalt_engine::id::Origin;
use basalt_engine::op::{ReplicatedCell, ReplicatedRow};
use basalt_engine::schema::TableName;
use basalt_idl::native::Reply as _;
use basalt_idl::native::cells::{CellType as WireType, Cells, WireCell};
use basalt_idl::native::messages::ReplicateWalEntryResponse;
use bytes::Bytes;

use super::arrived::Arrived;
use super::decode::replicated::{BulkLoad, Entry, PIECE_BYTES, PIECE_CELLS, SourceBatch};
use super::reply::Reply;
use super::request;
use super::staging::Staging;
use super::state::Connection;
use crate::server::copies::sink::{Applied, Dropped};
use crate::service::sink::{self, Piece};
use crate::service::{Call, Failure, writes};

/// Most rows of a piece, as in HBase (`hbase.rpc.rows.warning.threshold`).
const PIECE_ROWS: usize = 5_000;

/// The family of cells that are notes of the log.
const META_FAMILY: &[u8] = b"METAFAMILY";
/// The qualifier of the note of a bulk load.
const BULK_LOAD: &[u8] = b"HBASE::BULK_LOAD";

/// Answers a ReplicateWALEntry.
pub(super) async fn answer(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    arrived: &Arrived,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let server = &connection.server;
    sink::enter(server, call.caller())?;
    match apply_all(connection, call, arrived).await {
        Ok(applied) => {
            server.copies().sink.applied(applied, sink::wall_ms(server));
            reply.message(&ReplicateWalEntryResponse {});
            Ok(())
        }
        Err(failure) => {
            server.copies().sink.failed();
            tracing::warn!(
                "a batch of a replication source is refused, which will send it again: {}",
                failure.message()
            );
            Err(failure)
        }
    }
}

async fn apply_all(
    connection: &Arc<Connection>,
    call: &mut Call<'_>,
    arrived: &Arrived,
) -> Result<Applied, Failure> {
    let batch: SourceBatch = arrived.decode()?;
    let block = &arrived.cells;
    let mut applied = Applied::default();
    let mut pieces = Pieces {
        connection,
        call,
        block,
        building: None,
        last: None,
    };
    let mut sent = Cells::new(block);
    for entry in &batch.entry {
        let entry: Entry = request::decode(entry.clone())?;
        applied.edits += 1;
        applied.written_ms = entry.key.write_time;
        let target = Target::of(&entry)?;
        let mut row: Option<Row> = None;
        for _ in 0..entry.cells()? {
            let start = sent.offset();
            let cell = sent.require().map_err(request::malformed)?;
            let place = start..sent.offset();
            if cell.family == META_FAMILY {
                pieces.add(&target, row.take()).await?;
                if cell.qualifier == BULK_LOAD {
                    applied.files += pieces.load(&batch, &target, cell.value).await?;
                } else {
                    connection.server.copies().sink.dropped(Dropped::Marker);
                }
                continue;
            }
            match &mut row {
                Some(row) if row.takes(&cell, block) => {
                    row.place.end = place.end;
                    row.cells += 1;
                }
                _ => {
                    let next = Row::new(&cell, place, block)?;
                    pieces.add(&target, row.replace(next)).await?;
                }
            }
        }
        pieces.add(&target, row).await?;
    }
    pieces.flush().await?;
    writes::end(&connection.server, Ok(pieces.last)).await?;
    Ok(applied)
}

/// Where an entry goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    table: TableName,
    origin: Origin,
}

impl Target {
    fn of(entry: &Entry) -> Result<Self, Failure> {
        Ok(Self {
            table: TableName::parse(&entry.key.table_name)?,
            origin: request::origin_of(entry.key.clusters())?,
        })
    }
}

/// Consecutive cells of one row and type.
#[derive(Clone, Debug)]
struct Row {
    /// Where its cells are in the block.
    place: Range<usize>,
    /// Where its key is in the block.
    key: Range<usize>,
    cell_type: WireType,
    cells: usize,
}

impl Row {
    /// A row that begins with this cell, which is there in the block.
    fn new(cell: &WireCell<'_>, place: Range<usize>, block: &Bytes) -> Result<Self, Failure> {
        let begin = cell.row.as_ptr().addr().wrapping_sub(block.as_ptr().addr());
        let key = begin..begin.saturating_add(cell.row.len());
        if block.get(key.clone()) != Some(cell.row) {
            return Err(Failure::do_not_retry("a cell that is not in the cell block"));
        }
        Ok(Self {
            place,
            key,
            cell_type: cell.cell_type,
            cells: 1,
        })
    }

    fn takes(&self, cell: &WireCell<'_>, block: &Bytes) -> bool {
        cell.cell_type == self.cell_type && cell.row == &block[self.key.clone()]
    }
}

/// The pieces of a call, in the order in which they are applied.
struct Pieces<'p, 'c> {
    connection: &'p Arc<Connection>,
    call: &'p mut Call<'c>,
    block: &'p Bytes,
    building: Option<Building>,
    /// The commit of the last piece.
    last: Option<Commit>,
}

/// A piece that takes further rows.
struct Building {
    target: Target,
    rows: Vec<Range<usize>>,
    cells: usize,
    bytes: usize,
}

impl Pieces<'_, '_> {
    /// Adds a row; applies the piece before it if that takes no more.
    async fn add(&mut self, target: &Target, row: Option<Row>) -> Result<(), Failure> {
        let Some(row) = row else { return Ok(()) };
        if target.table.is_system() {
            self.connection.server.copies().sink.dropped(Dropped::SystemTable);
            return Ok(());
        }
        let is_full = |piece: &Building| {
            piece.target != *target
                || piece.rows.len() >= PIECE_ROWS
                || piece.cells + row.cells > PIECE_CELLS
                || piece.bytes + row.place.len() > PIECE_BYTES
        };
        if self.building.as_ref().is_some_and(is_full) {
            self.flush().await?;
        }
        let piece = self.building.get_or_insert_with(|| Building {
            target: target.clone(),
            rows: Vec::new(),
            cells: 0,
            bytes: 0,
        });
        piece.cells += row.cells;
        piece.bytes += row.place.len();
        piece.rows.push(row.place);
        Ok(())
    }

    /// Applies the piece that was built.
    async fn flush(&mut self) -> Result<(), Failure> {
        let Some(Building { target, rows, .. }) = self.building.take() else {
            return Ok(());
        };
        let piece = Piece {
            table: target.table,
            origin: target.origin,
            arguments: (self.block.clone(), Arc::<[_]>::from(rows)),
        };
        let server = &self.connection.server;
        let commit = sink::apply(server, self.call, piece, rows_of).await?;
        if commit.pause().is_zero() {
            self.last = Some(commit);
        } else {
            // Memstores fill up faster than flushes empty them.
            writes::end(server, Ok(Some(commit))).await?;
        }
        Ok(())
    }

    /// Loads the files of a bulk load of the source. Returns their number.
    async fn load(&mut self, batch: &SourceBatch, target: &Target, value: &[u8]) -> Result<u64, Failure> {
        // The edits before it are older than its cells.
        self.flush().await?;
        let load: BulkLoad = request::decode(Bytes::copy_from_slice(value))?;
        let admin = self.connection.admin();
        let (table, gone) = (target.table.clone(), Arc::clone(&self.connection.sender.gone));
        let files = load.files(batch, &target.table);
        let count = files.len() as u64;
        let _permit = self.connection.server.admission().bulk_load().await;
        self.connection
            .server
            .on_pool(move |server| {
                let staging = Staging::of(server.config())?;
                for file in &files {
                    let path = readable(&staging, &file.places)?;
                    let cells = sink::load(&admin, &table, &file.family, &path, &gone)?;
                    tracing::info!(
                        "replicated bulk load: {cells} cells of {} into table {table}",
                        path.display()
                    );
                }
                Ok(count)
            })
            .await
    }
}

/// The first of the places where a file of the source may be, its directory of tables and its archive, from
/// which this server may read it.
fn readable(staging: &Staging, places: &[String]) -> Result<PathBuf, Failure> {
    let mut refused = None;
    for place in places {
        match staging.readable(place) {
            Ok(path) => return Ok(path),
            Err(failure) => {
                refused.get_or_insert(failure);
            }
        }
    }
    let why = refused.map_or("it has no place".to_owned(), |failure| {
        failure.message().to_owned()
    });
    Err(Failure::access_denied(format!(
        "a bulk load of the source cannot be replicated: {why}. Either this server can read the source's files (its setting \
         bulkload.directories), or the source must not send bulk loads (its setting hbase.replication.bulkload.enabled=false)"
    )))
}

/// The rows of a piece.
fn rows_of((block, rows): &(Bytes, Arc<[Range<usize>]>)) -> Result<Vec<ReplicatedRow<'_>>, Failure> {
    rows.iter()
        .map(|place| {
            let cells = Cells::new(&block[place.clone()]);
            let cells = cells
                .map(|cell| cell.map_err(request::malformed))
                .collect::<basalt_engine::Result<Vec<_>>>()?;
            let row = cells.first().map_or(&b""[..], |cell| cell.row);
            Ok(ReplicatedRow {
                row,
                cells: cells.iter().map(replicated).collect(),
            })
        })
        .collect()
}

fn replicated<'a>(cell: &WireCell<'a>) -> ReplicatedCell<'a> {
    ReplicatedCell {
        family: cell.family,
        qualifier: cell.qualifier,
        timestamp: cell.timestamp,
        cell_type: match cell.cell_type {
            WireType::Put => CellType::Put,
            WireType::Delete => CellType::Delete,
            WireType::DeleteFamilyVersion => CellType::DeleteFamilyVersion,
            WireType::DeleteColumn => CellType::DeleteColumn,
            WireType::DeleteFamily => CellType::DeleteFamily,
        },
        value: cell.value,
        tags: cell.tags,
    }
}
