//! Scanners: sessions of the server that requests fetch from by their id.
//!
//! Their limits are those of all callers over HTTP (`scanner.max_http_sessions`); they end when they are
//! deleted, and when they were not used for `rest.scanner_lease_ms`.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use basalt_engine::op::{ReadSpec, Scan, TimeRange};
use basalt_engine::schema::TableState;
use basalt_rest::filter;
use basalt_rest::media::Media;
use basalt_rest::model::scanner::ScannerModel;

use super::answer::Reply;
use super::faults::Refusal;
use super::request::{Request, Result, table, unsupported_media};
use super::scan::{check_times, is_one_row};
use super::{cells, value};
use crate::limits::admission::Class;
use crate::service::admin::tables;
use crate::service::cell_counts::{self, Bounds};
use crate::service::{Failure, scans};

/// Bits of an id below which the number of cells of an answer is kept.
const HEX: u32 = 16;

/// Opens a scanner. As in HBase the table is checked by the first fetch.
pub(super) async fn open(asked: &mut Request, name: &[u8]) -> Result<Reply> {
    let table = table(name)?;
    let media = match asked.content_type()? {
        Media::Binary if asked.body.is_empty() => Media::Json,
        media @ (Media::Text | Media::Binary) => return Err(unsupported_media(media.name())),
        media => media,
    };
    let model = ScannerModel::decode(media, &asked.body)?;
    let batch = model.batch;
    asked.arguments_bytes = asked.body.len();
    let scan = scan_of(asked, model).await?;
    let lease = Duration::from_millis(asked.server().config().rest.scanner_lease_ms);
    let (server, mut call) = asked.call();
    let id = scans::open(&server, &mut call, table, scan, false, lease)?;
    let path = asked.path.trim_end_matches('/');
    Reply::created(&asked.location(&format!("{path}/{}", shown(id, batch))))
}

/// The id of a scanner in paths: that of its session, and behind it the most cells of an answer.
fn shown(id: i32, batch: Option<usize>) -> String {
    format!("{id:08x}_{:x}", batch.unwrap_or(0))
}

/// The session of an id, and the most cells of an answer.
fn read_id(text: &str) -> Result<(i32, Option<usize>)> {
    let parts = text.split_once('_').and_then(|(id, batch)| {
        let id = i32::from_str_radix(id, HEX).ok()?;
        Some((id, usize::from_str_radix(batch, HEX).ok()?))
    });
    let (id, batch) = parts.ok_or_else(|| Refusal::not_found("there is no such scanner"))?;
    Ok((id, Some(batch).filter(|batch| *batch > 0)))
}

/// The scan of a model. A filter with a regular expression is compiled on the pool.
async fn scan_of(asked: &Request, model: ScannerModel) -> Result<Scan> {
    let filter = match model.filter {
        None => None,
        Some(text) if filter::may_have_regex(&text) => {
            let parse = move |_: &crate::server::Server| {
                filter::parse(&text, rand::random())
                    .map_err(|malformed| Failure::illegal_argument(malformed.0))
            };
            Some(Box::pin(asked.server().compiled(Class::User, parse)).await?)
        }
        Some(text) => Some(filter::parse(&text, rand::random())?),
    };
    let time_range = TimeRange {
        min: model.start_time.unwrap_or(0),
        max: model.end_time.unwrap_or(i64::MAX),
    };
    check_times(time_range)?;
    // In this order, as HBase has them, a family before its columns means only these.
    let mut columns = model.columns;
    columns.sort();
    Ok(Scan {
        include_start: !model.excludes_start,
        include_stop: model.includes_end || is_one_row(&model.start_row, &model.end_row),
        start_row: model.start_row,
        stop_row: model.end_row,
        spec: ReadSpec {
            families: cells::select(&columns),
            time_range,
            max_versions: model.max_versions.unwrap_or(i32::MAX).max(1),
            cache_blocks: model.keeps_blocks,
            filter: filter.map(Arc::new),
            ..ReadSpec::default()
        },
        ..Scan::default()
    })
}

/// The next cells of a scanner: 204 at its end.
pub(super) async fn fetch(asked: &mut Request, id: &str) -> Result<Reply> {
    let (id, batch) = read_id(id)?;
    let media = asked.accepted(Media::CELLS)?;
    let table = scans::table_of(asked.server().sessions(), &asked.sender.caller, id)?;
    let found = asked.ask(|call| tables::find(call, &table))?;
    match found {
        None => return Err(Refusal::not_found(format!("there is no table {table}"))),
        Some((_, TableState::Disabled)) => {
            return Err(Refusal::new(
                StatusCode::GONE,
                format!("the table {table} is disabled: open another scanner when it is enabled"),
            ));
        }
        Some((_, TableState::Enabled)) => {}
    }
    if asked.is_head {
        // It must not lose the cells that a client asks for with GET.
        return Ok(Reply::empty(StatusCode::OK).with_body(media, super::answer::Content::Whole(Vec::new())));
    }
    let limit = |name| -> Result<Option<usize>> {
        let number = asked.query.number::<i64>(name)?;
        Ok(number.filter(|number| *number > 0).map(|number| number as usize))
    };
    let bounds = if media == Media::Binary {
        Bounds {
            cells: Some(1),
            rows: None,
        }
    } else {
        Bounds {
            cells: limit("c")?.or(batch),
            rows: limit("n")?,
        }
    };
    let (server, mut call) = asked.call();
    let found = cell_counts::fetch(&server, &mut call, id, bounds).await?;
    let reply = if found.is_empty() {
        Reply::empty(StatusCode::NO_CONTENT)
    } else if media == Media::Binary {
        value::binary(&found, true)?
    } else {
        Reply::of(media, cells::encode(media, &found))
    };
    call.put_batch(found);
    Ok(reply)
}

/// Ends a scanner.
pub(super) fn close(asked: &Request, id: &str) -> Result<Reply> {
    let (id, _) = read_id(id)?;
    if scans::close(asked.server().sessions(), &asked.sender.caller, id) {
        Ok(Reply::empty(StatusCode::OK))
    } else {
        Err(Refusal::not_found("there is no such scanner"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients take an id for letters, digits and underscores.
    #[test]
    fn ids_are_words_that_say_the_number_of_cells() {
        for (id, batch) in [(0, None), (i32::MAX, Some(3)), (17, Some(usize::MAX >> 1))] {
            let text = shown(id, batch);
            assert!(
                text.chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            );
            assert_eq!(read_id(&text).unwrap(), (id, batch));
        }
        for wrong in ["", "x", "1", "1_", "_1", "g_1", "1_1_1"] {
            assert_eq!(read_id(wrong).unwrap_err().status, StatusCode::NOT_FOUND);
        }
    }
}
