//! Fetches that are counted in cells: an answer of HBase's REST interface ends after so many cells, wherever
//! in a row that is.
//!
//! 1. The scan is taken out of its session for the whole fetch ([`Lent`]), so that no other fetch comes
//!    between its steps.
//! 2. Cells that an earlier fetch has read too many come first ([`Unreturned`]).
//! 3. While cells are missing, further rows are read, fewer than are likely needed, so that little is left. A
//!    fetch without a number of cells goes on behind a region while its answer is small.
//! 4. What is left goes back into the session with the scan.
//!
//! Invariant: a cell that was read is returned or is in the session, also when a step fails.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::cell::CellBatch;
use tokio::sync::oneshot;

use super::call::Call;
use super::{Failure, scans};
use crate::server::Server;
use crate::server::sessions::{Fetching, OpenScan, Unreturned};

/// Cells that a row is taken to have before one was read.
const CELLS_OF_ROW: usize = 8;

/// An answer of whole rows with fewer bytes goes on with the next region.
const SMALL_BYTES: usize = 1 << 20;

/// Bounds of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Most cells; `None` for whole rows, within the bytes and the time of a page.
    pub(crate) cells: Option<usize>,
    /// Most rows, of which the first and the last may be pieces.
    pub(crate) rows: Option<usize>,
}

/// A scan that comes back to its owner when the fetch that has it is over.
struct Lent {
    /// `None` only while it is dropped.
    scan: Option<Fetching>,
    back: Option<oneshot::Sender<Fetching>>,
}

impl Deref for Lent {
    type Target = OpenScan;

    fn deref(&self) -> &OpenScan {
        self.scan
            .as_deref()
            .expect("the scan is here until the guard is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut OpenScan {
        self.scan
            .as_deref_mut()
            .expect("the scan is here until the guard is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(scan), Some(back)) = (self.scan.take(), self.back.take()) {
            // An owner that is gone does not want it: the scan goes back into its session.
            let _ = back.send(scan);
        }
    }
}

/// The next cells of a session, in rows; none at the end of the scan.
pub(crate) async fn fetch(
    server: &Arc<Server>,
    call: &mut Call<'_>,
    id: i32,
    bounds: Bounds,
) -> Result<CellBatch, Failure> {
    let mut scan = server.sessions().fetch(id, call.caller().owner())?;
    let mut answer = call.take_batch();
    let mut cells_of_row = CELLS_OF_ROW;
    let page = &server.config().scanner;
    let small_bytes = page.fetch_max_bytes.min(SMALL_BYTES);
    let page_end = Instant::now() + Duration::from_millis(page.fetch_max_ms);
    loop {
        if let Some(left) = scan.unreturned.take() {
            match move_cells(left, &mut answer, bounds) {
                Ok(left) => scan.unreturned = left,
                Err(failed) => {
                    let (failure, left) = *failed;
                    scan.unreturned = Some(left);
                    return Err(failure);
                }
            }
        }
        let missing = match bounds.cells {
            // A step ends with its region.
            None if answer.is_empty() || answer.data_bytes() < small_bytes && Instant::now() < page_end => {
                usize::MAX
            }
            None => 0,
            Some(cells) => cells.saturating_sub(answer.cell_count()),
        };
        let missing_rows = bounds
            .rows
            .map_or(usize::MAX, |most| most.saturating_sub(answer.row_count()));
        if scan.unreturned.is_some() || missing == 0 || missing_rows == 0 {
            return Ok(answer);
        }
        let wanted = match bounds.cells {
            None => missing_rows,
            Some(_) => missing.div_ceil(cells_of_row).min(missing_rows),
        };
        let (back, returned) = oneshot::channel();
        let lent = Lent {
            scan: Some(scan),
            back: Some(back),
        };
        let fetched = scans::fetch_held(server, call, id, lent, wanted).await;
        // The fetch is over, so the scan has come back.
        scan = returned
            .await
            .map_err(|_| Failure::unknown_scanner(id.unsigned_abs().into()))?;
        match fetched {
            Ok(batch) if batch.is_empty() => return Ok(answer),
            Ok(batch) => {
                cells_of_row = (batch.cell_count() / batch.row_count().max(1)).max(1);
                scan.unreturned = Some(Unreturned {
                    batch,
                    ..Unreturned::default()
                });
            }
            Err(failure) => {
                if !answer.is_empty() {
                    scan.unreturned = Some(Unreturned {
                        batch: answer,
                        ..Unreturned::default()
                    });
                }
                return Err(failure);
            }
        }
    }
}

/// Moves cells to the answer until it is full, or there is no memory for more; returns what is left. Fails
/// if there is no memory for the first row, of which nothing is moved then.
fn move_cells(
    mut left: Unreturned,
    answer: &mut CellBatch,
    bounds: Bounds,
) -> Result<Option<Unreturned>, Box<(Failure, Unreturned)>> {
    let is_whole = left.row == 0 && left.cells == 0 && bounds.cells.is_none() && bounds.rows.is_none();
    if is_whole && answer.is_empty() {
        *answer = left.batch;
        return Ok(None);
    }
    while left.row < left.batch.row_count() {
        let has_rows = bounds.rows.is_none_or(|rows| answer.row_count() < rows);
        let room = bounds
            .cells
            .map_or(usize::MAX, |cells| cells.saturating_sub(answer.cell_count()));
        if !has_rows || room == 0 {
            return Ok(Some(left));
        }
        let length = left.batch.row(left.row).len();
        let taken = (length - left.cells).min(room);
        let moved = {
            let row = left.batch.row(left.row);
            let mut cells = row.cells().skip(left.cells).take(taken);
            cells.try_for_each(|cell| answer.add(cell))
        };
        if let Err(error) = moved {
            answer.abandon_row();
            if answer.is_empty() {
                return Err(Box::new((error.into(), left)));
            }
            return Ok(Some(left));
        }
        answer.end_row(false);
        left.cells += taken;
        if left.cells >= length {
            (left.row, left.cells) = (left.row + 1, 0);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use basalt_engine::cell::{Cell, CellType, KeyBuf};

    use super::*;

    /// Rows with these numbers of cells.
    fn batch(rows: &[usize]) -> CellBatch {
        let mut batch = CellBatch::new();
        for (number, cells) in rows.iter().enumerate() {
            for cell in 0..*cells {
                let key = KeyBuf::new(&[number as u8], b"f", &[cell as u8], 1, CellType::Put);
                batch.push(Cell {
                    key: key.as_key(),
                    value: b"v",
                    tags: b"",
                    seq: basalt_engine::id::SeqId(0),
                });
            }
            batch.end_row(false);
        }
        batch
    }

    /// Cells of each row of the answers that come out of `rows`.
    fn answers(rows: &[usize], bounds: Bounds) -> Vec<Vec<usize>> {
        let mut left = Some(Unreturned {
            batch: batch(rows),
            ..Unreturned::default()
        });
        let mut found = Vec::new();
        while let Some(unreturned) = left {
            let mut answer = CellBatch::new();
            left = move_cells(unreturned, &mut answer, bounds).unwrap_or_else(|_| panic!("no budget"));
            found.push(answer.rows().map(|row| row.len()).collect());
        }
        found
    }

    /// Goal: answers end after the wanted number of cells, and no cell is lost or returned twice.
    #[test]
    fn answers_end_inside_of_rows() {
        let cells = |cells| Bounds {
            cells: Some(cells),
            rows: None,
        };
        assert_eq!(answers(&[2, 2, 2], cells(3)), [vec![2, 1], vec![1, 2]]);
        assert_eq!(answers(&[5], cells(2)), [vec![2], vec![2], vec![1]]);
        assert_eq!(answers(&[1, 1], cells(5)), [vec![1, 1]]);
        let whole = Bounds {
            cells: None,
            rows: None,
        };
        assert_eq!(answers(&[3, 2], whole), [vec![3, 2]]);
        let rows = Bounds {
            cells: Some(3),
            rows: Some(1),
        };
        assert_eq!(answers(&[2, 4], rows), [vec![2], vec![3], vec![1]]);
    }
}
