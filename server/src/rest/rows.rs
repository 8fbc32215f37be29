//! Reads of rows by their path, and the forms of read cells.

use basalt_engine::cell::{Cell, CellBatch, RowView};
use basalt_engine::op::{ReadSpec, Scan, TimeRange};
use basalt_rest::encoding::encode_base64;
use basalt_rest::media::Media;
use basalt_rest::model::writer::{CellRef, CellSetWriter};
use basalt_rest::row_path::{Column, RowPath, Rows, Times};
use bytes::Bytes;

use axum::http::{HeaderName, StatusCode};

use super::answer::{Content, Reply};
use super::faults::Refusal;
use super::request::{Request, Result, positive, table};
use super::scan::{Answered, answer, prefix_range};
use crate::service::{arguments, reads};

/// The header with the time of a cell.
const X_TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");
/// The header with the row of a scanner's cell, in base64.
const X_ROW: HeaderName = HeaderName::from_static("x-row");
/// The header with the column of a scanner's cell, in base64.
const X_COLUMN: HeaderName = HeaderName::from_static("x-column");

/// Reads one row, a range of rows, or the rows with a prefix.
pub(super) async fn get(asked: &mut Request, name: &[u8], path: &str) -> Result<Reply> {
    let table = table(name)?;
    let media = asked.accepted(Media::CELLS)?;
    let path = RowPath::parse(path.as_bytes(), asked.encoding()?)?;
    if media == Media::Binary && path.columns.len() != 1 {
        return Err(Refusal::malformed(format!(
            "application/octet-stream is the value of one column, and the path has {}: ask for {} with the header Accept",
            path.columns.len(),
            Media::names(Media::SCANNED)
        )));
    }
    let spec = spec(asked, &path.columns, path.times)?;
    let row = match path.rows {
        Rows::One(row) => row,
        rows => {
            let scan = Scan {
                spec,
                limit: (media == Media::Binary).then_some(1),
                ..range(rows)
            };
            let how = Answered {
                media,
                is_framed: false,
                must_find: true,
                limit: usize::MAX,
            };
            return answer(asked, table, scan, how).await;
        }
    };
    arguments::check_row(&row)?;
    let (server, mut call) = asked.call();
    let found = reads::get(&server, &mut call, table, vec![(Bytes::from(row), spec)]).await?;
    if found.batch.is_empty() {
        return Err(Refusal::not_found("the row has no such cells"));
    }
    let reply = if media == Media::Binary {
        binary(&found.batch, false)?
    } else {
        Reply::of(media, encode(media, &found.batch))
    };
    call.put_batch(found.batch);
    Ok(reply.cached())
}

/// The rows of a path that names several, as a scan.
fn range(rows: Rows) -> Scan {
    match rows {
        Rows::One(row) => Scan {
            stop_row: row.clone(),
            start_row: row,
            include_stop: true,
            ..Scan::default()
        },
        Rows::Range { start, stop } => Scan {
            start_row: start,
            stop_row: stop,
            ..Scan::default()
        },
        Rows::Prefix(prefix) => prefix_range(&prefix, false),
    }
}

/// The read of a path: columns, times, and the parameters `v` and `nocache`.
pub(super) fn spec(asked: &Request, columns: &[Column], times: Option<Times>) -> Result<ReadSpec> {
    let versions = match asked.query.number("v")? {
        None => 1,
        Some(versions) => positive("v", versions)?,
    };
    Ok(ReadSpec {
        families: select(columns),
        time_range: match times {
            None => TimeRange::ALL,
            Some(Times::Below(max)) => TimeRange { min: 0, max },
            Some(Times::Between(min, max)) => TimeRange { min, max },
        },
        max_versions: versions,
        cache_blocks: !asked.query.has("nocache"),
        ..ReadSpec::default()
    })
}

/// The selection of these columns.
pub(super) fn select(columns: &[Column]) -> Vec<basalt_engine::op::FamilySelection> {
    arguments::select(columns.iter().map(|column| {
        let qualifier = column.qualifier.as_ref();
        (
            Bytes::from(column.family.clone()),
            qualifier.map(|qualifier| Bytes::from(qualifier.clone())),
        )
    }))
}

/// A cell as answers have it.
pub(super) fn cell_ref(cell: Cell<'_>) -> CellRef<'_> {
    CellRef {
        family: cell.key.family(),
        qualifier: cell.key.qualifier(),
        timestamp: cell.key.timestamp(),
        value: cell.value,
    }
}

/// The cells of a row. Cloned, since protobuf has the length of a row in front of it.
pub(super) fn cells<'b>(row: &RowView<'b>) -> impl Iterator<Item = CellRef<'b>> + Clone + use<'b> {
    let cells: Vec<CellRef<'b>> = row.cells().map(cell_ref).collect();
    cells.into_iter()
}

/// The rows of a batch as a whole body.
pub(super) fn encode(media: Media, batch: &CellBatch) -> Vec<u8> {
    let mut writer = CellSetWriter::new(media);
    let mut out = Vec::with_capacity(batch.data_bytes() * 2);
    for row in batch.rows() {
        // Only frames have a limit.
        let written = writer.row(row.key(), cells(&row), &mut out);
        debug_assert!(
            written.is_ok(),
            "a body that is no sequence of frames has no limit"
        );
    }
    writer.finish(&mut out);
    out
}

/// The value of the first cell; of a scanner with its row and column.
pub(super) fn binary(batch: &CellBatch, is_scanner: bool) -> Result<Reply> {
    let Some(row) = batch.rows().next() else {
        return Err(Refusal::not_found("the row has no such cells"));
    };
    let Some(cell) = row.cells().next() else {
        return Err(Refusal::not_found("the row has no such cells"));
    };
    let reply = Reply::empty(StatusCode::OK)
        .with_body(Media::Binary, Content::Whole(cell.value.to_vec()))
        .with(X_TIMESTAMP, cell.key.timestamp().to_string().as_bytes())?;
    if !is_scanner {
        return Ok(reply);
    }
    let column = [cell.key.family(), b":", cell.key.qualifier()].concat();
    reply
        .with(X_ROW, encode_base64(row.key()).as_bytes())?
        .with(X_COLUMN, encode_base64(&column).as_bytes())
}
