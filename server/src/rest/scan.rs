//! Scans of one request: the stateless scan, and rows of a path that names several.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use basalt_engine::filter::FilterSpec;
use basalt_engine::op::{ReadSpec, Scan, TimeRange};
use basalt_engine::schema::TableName;
use basalt_rest::encoding::decode_base64_url;
use basalt_rest::media::Media;
use basalt_rest::model::writer::CellSetWriter;
use basalt_rest::row_path::Column;
use bytes::Bytes;

use super::answer::{Content, Reply};
use super::faults::Refusal;
use super::request::{Request, Result, positive, table};
use super::stream::{Chunk, Chunks, Reader};
use super::{cells, value};
use crate::limits::admission::Class;
use crate::service::{Failure, arguments, scans};

/// A scan that is answered in chunks is open for as long as its client reads, which the time to write an
/// answer bounds, piece by piece.
const LEASE: Duration = Duration::from_hours(1);

/// How the rows of a scan are answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) media: Media,
    /// Protobuf is a sequence of frames.
    pub(super) is_framed: bool,
    /// No row is no answer: 404.
    pub(super) must_find: bool,
    /// Most elements, rows or pieces of them.
    pub(super) limit: usize,
}

/// The stateless scan of the rows with a prefix.
pub(super) async fn scan(asked: &mut Request, name: &[u8], prefix: &str) -> Result<Reply> {
    let table = table(name)?;
    let media = asked.accepted(Media::SCANNED)?;
    let encoding = asked.encoding()?;
    let prefix = encoding.decode(prefix.trim_start_matches('/').as_bytes())?;
    let query = &asked.query;
    let reversed = query.flag("reversed", false);
    let key = |name| {
        // A parameter is decoded already; base64 has no percent signs.
        query.get(name).map_or(Ok(Vec::new()), |text| match encoding {
            basalt_rest::encoding::Encoding::Plain => Ok(text.to_vec()),
            encoding => encoding.decode(text),
        })
    };
    let bounds = (key("startrow")?, key("endrow")?);
    let mut scan = within(prefix_range(&prefix, reversed), bounds, reversed);
    let columns: Vec<Column> = query
        .all("column")
        .map(|text| Column::of(text.trim_ascii()))
        .collect();
    let versions = query.number("maxversions")?;
    scan.batch = query
        .number::<i32>("batchsize")?
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size > 0);
    let time_range = TimeRange {
        min: query.number("starttime")?.unwrap_or(0),
        max: query.number("endtime")?.unwrap_or(i64::MAX),
    };
    check_times(time_range)?;
    let limit = query
        .number::<i64>("limit")?
        .map_or(usize::MAX, |limit| limit.max(0) as usize);
    scan.spec = ReadSpec {
        families: cells::select(&columns),
        time_range,
        max_versions: versions.map_or(Ok(1), |versions| positive("maxversions", versions))?,
        cache_blocks: query.flag("cacheblocks", true),
        filter: language_filter(asked).await?,
        ..ReadSpec::default()
    };
    let how = Answered {
        media,
        is_framed: true,
        must_find: false,
        limit,
    };
    answer(asked, table, scan, how).await
}

/// Refuses times that are negative or in the wrong order.
pub(super) fn check_times(range: TimeRange) -> Result<()> {
    if range.min < 0 || range.max < range.min {
        return Err(Refusal::malformed(format!(
            "the times must not be negative, and the first not above the last: {} to {}",
            range.min, range.max
        )));
    }
    Ok(())
}

/// The filter of the parameters `filter`, in the filter language, or `filter_b64`, in URL-safe base64. One
/// with a regular expression is compiled on the pool.
pub(super) async fn language_filter(asked: &Request) -> Result<Option<Arc<FilterSpec>>> {
    let text = match (asked.query.get("filter_b64"), asked.query.get("filter")) {
        (Some(text), _) => Bytes::from(decode_base64_url(text)?),
        (None, Some(text)) => Bytes::copy_from_slice(text),
        (None, None) => return Ok(None),
    };
    let parse = |text: &[u8]| {
        FilterSpec::parse(text)
            .map(|filter| Some(Arc::new(filter)))
            .map_err(|error| Failure::illegal_argument(error.to_string()))
    };
    if arguments::has_regex(Some(&text), None) {
        let compiled = asked.server().compiled(Class::User, move |_| parse(&text));
        return Ok(Box::pin(compiled).await?);
    }
    Ok(parse(&text)?)
}

/// The first row behind all that begin with a prefix; empty if there is none.
fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut next = prefix.to_vec();
    while let Some(last) = next.pop() {
        if last < u8::MAX {
            next.push(last + 1);
            break;
        }
    }
    next
}

/// The rows with a prefix.
pub(super) fn prefix_range(prefix: &[u8], reversed: bool) -> Scan {
    let (first, behind) = (prefix.to_vec(), behind(prefix));
    if reversed {
        Scan {
            start_row: behind,
            include_start: false,
            stop_row: first,
            include_stop: true,
            reversed,
            ..Scan::default()
        }
    } else {
        Scan {
            start_row: first,
            stop_row: behind,
            ..Scan::default()
        }
    }
}

/// Whether a scan means one row, as in HBase: it begins at the row that it ends before.
pub(super) fn is_one_row(start: &[u8], stop: &[u8]) -> bool {
    !start.is_empty() && start == stop
}

/// A scan from a start row to a stop row, both inside of its own bounds. Empty ones mean the scan's.
fn within(mut scan: Scan, (start, stop): (Vec<u8>, Vec<u8>), reversed: bool) -> Scan {
    let is_ahead = |row: &[u8], of: &[u8]| if reversed { row < of } else { row > of };
    // The row that was asked for counts: a prefix between it and the stop row makes no range one row.
    let includes_stop = is_one_row(if start.is_empty() { &scan.start_row } else { &start }, &stop);
    if !start.is_empty() && (scan.start_row.is_empty() || is_ahead(&start, &scan.start_row)) {
        scan.start_row = start;
        scan.include_start = true;
    }
    if !stop.is_empty() && (scan.stop_row.is_empty() || is_ahead(&scan.stop_row, &stop)) {
        scan.stop_row = stop;
        scan.include_stop = includes_stop;
    }
    scan
}

/// Answers a scan. The first chunk is read before the answer begins, so that a failure has a status.
pub(super) async fn answer(
    asked: &mut Request,
    table: TableName,
    scan: Scan,
    how: Answered,
) -> Result<Reply> {
    if is_empty(&scan) || how.limit == 0 {
        // The table must exist all the same.
        asked.ask(|call| crate::service::admin::tables::describe(call, &table))?;
        return nothing(how);
    }
    let (server, mut call) = asked.call();
    let id = scans::open(&server, &mut call, table, scan, false, LEASE)?;
    let mut reader = Reader::new(asked, id, how.limit);
    if how.media == Media::Binary {
        let batch = reader.fetch().await?;
        return Ok(value::binary(&batch, false)?.cached());
    }
    let writer = if how.is_framed {
        CellSetWriter::of_scan(how.media)
    } else {
        CellSetWriter::new(how.media)
    };
    let mut chunks = Chunks::new(reader, writer);
    let body = match chunks.first().await? {
        Chunk::Last(_) if how.must_find && chunks.rows() == 0 => return nothing(how),
        Chunk::Last(bytes) => {
            // Settled here: the scan is over.
            asked.kept.reply = chunks.take_reply();
            Content::Whole(bytes)
        }
        Chunk::More => Content::Chunks(Box::new(chunks)),
    };
    Ok(Reply::empty(StatusCode::OK).with_body(how.media, body).cached())
}

/// The answer without rows.
fn nothing(how: Answered) -> Result<Reply> {
    if how.must_find {
        return Err(Refusal::not_found("no row was found"));
    }
    let mut body = Vec::new();
    let mut writer = if how.is_framed {
        CellSetWriter::of_scan(how.media)
    } else {
        CellSetWriter::new(how.media)
    };
    writer.finish(&mut body);
    Ok(Reply::of(how.media, body).cached())
}

/// Whether no row can be inside of the bounds.
fn is_empty(scan: &Scan) -> bool {
    if scan.start_row.is_empty() || scan.stop_row.is_empty() {
        return false;
    }
    let (first, last) = if scan.reversed {
        (&scan.stop_row, &scan.start_row)
    } else {
        (&scan.start_row, &scan.stop_row)
    };
    first > last || first == last && !(scan.include_start && scan.include_stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_before_the_next_one() {
        for (prefix, end) in [
            (&b"p"[..], &b"q"[..]),
            (b"a\xff", b"b"),
            (b"\xff\xff", b""),
            (b"", b""),
        ] {
            assert_eq!(behind(prefix), end);
        }
    }

    #[test]
    fn bounds_of_the_request_stay_inside_of_the_prefix() {
        let bounds = |prefix: &str, start: &str, stop: &str, reversed| {
            let range = prefix_range(prefix.as_bytes(), reversed);
            let scan = within(range, (start.into(), stop.into()), reversed);
            let text = |row: &[u8]| String::from_utf8(row.to_vec()).unwrap();
            (text(&scan.start_row), text(&scan.stop_row), is_empty(&scan))
        };
        let expected = |start: &str, stop: &str| (start.to_owned(), stop.to_owned(), false);
        assert_eq!(bounds("p", "", "", false), expected("p", "q"));
        assert_eq!(bounds("p", "a", "z", false), expected("p", "q"));
        assert_eq!(bounds("p", "pb", "pd", false), expected("pb", "pd"));
        assert_eq!(bounds("", "b", "d", false), expected("b", "d"));
        assert_eq!(bounds("p", "", "", true), expected("q", "p"));
        assert_eq!(bounds("p", "pd", "pb", true), expected("pd", "pb"));
        assert_eq!(bounds("p", "z", "a", true), expected("q", "p"));
        assert!(bounds("p", "r", "", false).2);
        assert!(bounds("", "d", "b", false).2);
        for reversed in [false, true] {
            assert!(!bounds("", "b", "b", reversed).2, "one row");
        }
    }
}
