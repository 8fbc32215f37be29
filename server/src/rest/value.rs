//! The answer that is a single value.

use axum::http::{HeaderName, StatusCode};
use basalt_engine::cell::CellBatch;
use basalt_rest::encoding::encode_base64;
use basalt_rest::media::Media;

use super::answer::{Content, Reply};
use super::faults::Refusal;
use super::request::Result;

/// The header with the time of a cell.
const X_TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");
/// The header with the row of a scanner's cell, in base64.
const X_ROW: HeaderName = HeaderName::from_static("x-row");
/// The header with the column of a scanner's cell, in base64.
const X_COLUMN: HeaderName = HeaderName::from_static("x-column");

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
