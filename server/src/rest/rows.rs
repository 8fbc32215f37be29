//! Reads of rows by their path.

use basalt_engine::op::{ReadSpec, Scan, TimeRange};
use basalt_rest::media::Media;
use basalt_rest::row_path::{Column, RowPath, Rows, Times};
use bytes::Bytes;

use super::answer::Reply;
use super::faults::Refusal;
use super::request::{Request, Result, positive, table};
use super::scan::{Answered, answer, prefix_range};
use super::{cells, value};
use crate::service::{arguments, reads};

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
        value::binary(&found.batch, false)?
    } else {
        Reply::of(media, cells::encode(media, &found.batch))
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
            include_stop: super::scan::is_one_row(&start, &stop),
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
        families: cells::select(columns),
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
