//! The first copy: all cells of the table, tombstones and old versions included, by raw scans here and the
//! calls of replication there.
//!
//! Regions are copied side by side. Every few seconds the state of the move notes the ranges that are durable
//! there: after a kill the copy goes on behind them.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_client::Scan;
use bytes::Bytes;
use futures_util::stream::{StreamExt as _, TryStreamExt as _, iter};

use super::ranges::{Range, Ranges};
use super::sender::{CALL_BYTES, Parcel, Sender, id_bytes};
use super::side::Side;
use super::{Failure, Moving, progress};

/// Cells of a row that are read at a time.
pub(super) const PIECE_CELLS: i32 = 1_000;

/// Rows of a fetch, which bytes bound before.
pub(super) const FETCH_ROWS: i32 = 10_000;

/// Time between two notes of the ranges that are done.
const NOTE: Duration = Duration::from_secs(2);

/// A part of a region that is to be copied.
struct Part {
    /// The encoded name of the region.
    region: Bytes,
    range: Range,
}

/// State that all parts share.
struct Work<'a> {
    moving: RefCell<&'a mut Moving>,
    done: RefCell<Ranges>,
    noted: RefCell<Instant>,
    line: RefCell<progress::Line>,
}

/// Copies the ranges that are missing. Returns the bytes of their cells.
pub(super) async fn run(moving: &mut Moving) -> Result<u64, Failure> {
    let origin = id_bytes(&moving.state.clusters[0])?;
    let done = moving.state.copied()?;
    let (here, there) = (Arc::clone(&moving.here), Arc::clone(&moving.there));
    let (table, parallel) = (moving.state.table.clone(), moving.wanted.parallel);
    let sender = Sender::new(&there, &table, origin, moving.wanted.max_rate);
    let mut parts = Vec::new();
    for region in here.table.region_list().await? {
        let name = Bytes::copy_from_slice(region.encoded_name());
        let missing = done.missing((region.start_key.clone(), region.end_key.clone()));
        parts.extend(missing.into_iter().map(|range| Part {
            region: name.clone(),
            range,
        }));
    }
    let work = Work {
        moving: RefCell::new(moving),
        done: RefCell::new(done),
        noted: RefCell::new(Instant::now()),
        line: RefCell::new(progress::Line::new("copied")),
    };
    let copying = iter(parts).map(|part| work.copy(&here, &sender, part));
    let bytes = copying
        .buffer_unordered(parallel.into())
        .try_fold(0, async |sum, bytes| Ok(sum + bytes))
        .await?;
    work.note(Duration::ZERO)?;
    work.line.borrow_mut().end();
    Ok(bytes)
}

impl Work<'_> {
    async fn copy(&self, here: &Side, sender: &Sender<'_>, part: Part) -> Result<u64, Failure> {
        let (start, end) = part.range;
        let scan = Scan::new()
            .start_row(start.clone())
            .stop_row(end.clone())
            .raw(true)
            .versions(i32::MAX)
            .cells_per_piece(PIECE_CELLS)
            .rows_per_fetch(FETCH_ROWS)
            .cache_blocks(false);
        let mut scanner = here.table.scanner(scan)?;
        let (mut parcel, mut total) = (Parcel::default(), 0);
        while let Some(rows) = scanner.next_batch().await? {
            for row in &rows {
                sender.add(&mut parcel, &part.region, row);
            }
            if parcel.bytes() < CALL_BYTES {
                continue;
            }
            let bytes = sender.send(std::mem::take(&mut parcel)).await?;
            total += bytes;
            // More pieces of the last row may follow, so it is not done yet.
            let done = rows.last().map_or_else(|| start.clone(), |row| row.key.clone());
            self.finished((start.clone(), done), bytes)?;
        }
        let bytes = sender.send(parcel).await?;
        self.finished((start, end), bytes)?;
        Ok(total + bytes)
    }

    /// Adds a range that is durable there.
    fn finished(&self, range: Range, bytes: u64) -> Result<(), Failure> {
        self.line.borrow_mut().add(bytes);
        self.done.borrow_mut().add(range);
        self.note(NOTE)
    }

    /// Notes the ranges in the state, unless that was done less than `period` ago.
    fn note(&self, period: Duration) -> Result<(), Failure> {
        let mut noted = self.noted.borrow_mut();
        if noted.elapsed() < period {
            return Ok(());
        }
        *noted = Instant::now();
        let mut moving = self.moving.borrow_mut();
        moving.state.set_copied(&self.done.borrow());
        moving.save()
    }
}
