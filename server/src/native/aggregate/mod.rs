//! AggregateService: totals over one column or family of a region.
//!
//! 1. The interpreter, which the request names by its Java class, says how values are read
//!    (`number`).
//! 2. The request's scan, confined to the region, is fetched in parts. A part is read as every part
//!    of a scan is: under its limits, on the pool when it needs the disk, and not after the client
//!    has closed the connection.
//! 3. [`Totals`] adds up the rows of each part and makes the answer.
//!
//! A region without values answers with an empty message, as in HBase. The exception is the median,
//! for which HBase fails with a NullPointerException and Basalt answers with zero.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::RowView;
use basalt_engine::engine::RegionInfo;
use basalt_engine::filter::FilterSpec;
use basalt_idl::native::messages::{
    AggregateRequest, AggregateResponse, AggregateServiceMethod as Method, Column,
};
use bytes::Bytes;

use super::request;
use super::scan::confine;
use super::state::Connection;
use crate::service::{Call, Failure, scans};

mod number;

use number::{Interpreter, Number};

/// Bytes of cells after which a part ends. Adding them up must not occupy a network thread for
/// long.
const PART_BYTES: usize = 256 << 10;

/// Computes the aggregate `wanted` over a region.
pub(super) async fn run(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    region: &RegionInfo,
    method: Method,
    wanted: AggregateRequest,
) -> Result<AggregateResponse, Failure> {
    let mut totals = Totals::new(method, &wanted)?;
    let wanted_filter = wanted.scan.filter.as_ref();
    let filter = request::filter(&connection.server, running.caller(), &region.table, wanted_filter).await?;
    let mut scan = request::scan(&wanted.scan, filter)?;
    scan.batch = None;
    // One cell proves that the row exists.
    if method == Method::GetRowNum && scan.spec.filter.is_none() && !names_column(&wanted.scan.column) {
        scan.spec.filter = Some(Arc::new(FilterSpec::first_key_only()));
    }
    confine(&mut scan, region);
    let lease = Duration::from_millis(connection.server.config().scanner.lease_ms);
    let table = region.table.clone();
    let id = scans::open(&connection.server, running, table, scan, false, lease)?;
    let added = add_all(connection, running, id, &mut totals).await;
    scans::close(connection.server.sessions(), &connection.sender.caller, id);
    added.map(|()| totals.answer())
}

fn names_column(columns: &[Column]) -> bool {
    columns.first().is_some_and(|column| !column.qualifier.is_empty())
}

/// Adds up all rows of a scan.
async fn add_all(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    id: i32,
    totals: &mut Totals,
) -> Result<(), Failure> {
    let part = scans::Part {
        results: usize::MAX,
        rows: u64::MAX,
        bytes: PART_BYTES,
        cuts_rows: false,
        may_be_empty: true,
        time: None,
    };
    loop {
        if running.is_gone() {
            return Err(Failure::plain_io("the client has closed the connection"));
        }
        let (batch, end) = scans::fetch_part(&connection.server, running, id, part).await?;
        for row in batch.rows() {
            totals.add(&row)?;
        }
        if end.is_of_scan {
            return Ok(());
        }
        // A part that is in memory never waits, so yield to the other tasks of the thread.
        tokio::task::yield_now().await;
    }
}

/// The totals of the rows so far.
#[derive(Debug)]
struct Totals {
    method: Method,
    interpreter: Interpreter,
    /// Whether the median is weighted by a second column.
    weighted: bool,
    rows: u64,
    /// The greatest or smallest value.
    best: Option<Number>,
    /// Sum of the values of the row that has come in part.
    row: Option<Number>,
    sum: Option<Number>,
    /// Sum of the squares of the rows' sums.
    squares: Option<Number>,
}

impl Totals {
    fn new(method: Method, wanted: &AggregateRequest) -> Result<Self, Failure> {
        let family = wanted.scan.column.first();
        let interpreter = match method {
            // HBase does not check the interpreter, nor does it need a family.
            Method::GetRowNum => Interpreter::Long,
            _ if family.is_none() => {
                return Err(Failure::do_not_retry("an aggregate needs a scan of one family"));
            }
            _ => Interpreter::named(&wanted.interpreter_class_name)?,
        };
        Ok(Self {
            method,
            interpreter,
            weighted: family.is_some_and(|family| family.qualifier.len() > 1),
            rows: 0,
            best: None,
            row: None,
            sum: None,
            squares: None,
        })
    }

    /// Adds a row or a part of one.
    fn add(&mut self, row: &RowView<'_>) -> Result<(), Failure> {
        if self.method != Method::GetRowNum {
            for cell in row.cells() {
                if let Some(value) = self.interpreter.value(cell.value)? {
                    self.add_value(value);
                }
            }
        }
        if !row.partial {
            self.end_row();
        }
        Ok(())
    }

    fn add_value(&mut self, value: Number) {
        let better = match self.method {
            Method::GetMax => Ordering::Greater,
            Method::GetMin => Ordering::Less,
            _ => return add(&mut self.row, value),
        };
        if self
            .best
            .as_ref()
            .is_none_or(|best| value.compare(best) == better)
        {
            self.best = Some(value);
        }
    }

    fn end_row(&mut self) {
        self.rows += 1;
        if let Some(row) = self.row.take() {
            if self.method == Method::GetStd {
                add(&mut self.squares, row.squared());
            }
            add(&mut self.sum, row);
        }
    }

    fn answer(self) -> AggregateResponse {
        let rows = Bytes::copy_from_slice(&self.rows.to_be_bytes());
        let encoded = |number: Option<Number>| number.iter().map(Number::encode).collect::<Vec<_>>();
        let (first_part, second_part) = match self.method {
            Method::GetMax | Method::GetMin => (encoded(self.best), None),
            Method::GetSum => (encoded(self.sum), None),
            Method::GetRowNum => (vec![rows], None),
            Method::GetAvg => {
                let rows = self.sum.is_some().then_some(rows);
                (encoded(self.sum), rows)
            }
            Method::GetStd => {
                let rows = self.sum.is_some().then_some(rows);
                let mut parts = encoded(self.sum);
                parts.extend(encoded(self.squares));
                (parts, rows)
            }
            Method::GetMedian => (self.median(), None),
        };
        AggregateResponse {
            first_part,
            second_part,
            ..AggregateResponse::default()
        }
    }

    /// Sum of values and sum of weights. HBase's interpreters ignore the column, so that the weights
    /// are the values; without weights it sends its smallest number.
    fn median(self) -> Vec<Bytes> {
        let least = self.interpreter.least();
        let zero = self.interpreter.zero().encode();
        let sum = self.sum.as_ref().map_or(zero, Number::encode);
        let weights = if self.weighted && self.sum.is_some() {
            sum.clone()
        } else {
            least
        };
        vec![sum, weights]
    }
}

fn add(sum: &mut Option<Number>, value: Number) {
    *sum = Some(match sum.take() {
        Some(sum) => sum.plus(value),
        None => value,
    });
}
