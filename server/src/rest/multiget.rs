//! Reads of several rows, each by a path of its own in the parameter `row`.

use basalt_engine::cell::CellBatch;
use basalt_engine::op::ReadSpec;
use basalt_rest::encoding::Encoding;
use basalt_rest::media::Media;
use basalt_rest::model::writer::CellSetWriter;
use basalt_rest::row_path::{self, RowPath};
use bytes::Bytes;

use super::answer::Reply;
use super::faults::Refusal;
use super::request::{Request, Result, table};
use super::{cells, rows, scan};
use crate::service::{arguments, reads};

/// Reads the rows in the order asked. Those that are missing are left out.
pub(super) async fn get(asked: &mut Request, name: &[u8], columns: &str) -> Result<Reply> {
    let table = table(name)?;
    let media = asked.accepted(Media::SCANNED)?;
    let encoding = asked.encoding()?;
    // As in HBase these are text, whatever the encoding of the rows.
    let common = row_path::columns(columns.as_bytes(), Encoding::Plain)?;
    let filter = scan::language_filter(asked).await?;
    let mut wanted = Vec::new();
    for path in asked.query.all("row") {
        let path = RowPath::parse(path, encoding)?;
        let row = Bytes::copy_from_slice(path.only_row()?);
        arguments::check_row(&row)?;
        let mut columns = path.columns;
        columns.extend_from_slice(&common);
        columns.sort();
        columns.dedup();
        let spec = ReadSpec {
            filter: filter.clone(),
            ..rows::spec(asked, &columns, path.times)?
        };
        wanted.push((row, spec));
    }
    if wanted.is_empty() {
        // The status is HBase's.
        return Err(Refusal::not_found(
            "a multiget needs rows: /TABLE/multiget?row=KEY&row=KEY",
        ));
    }
    let (server, mut call) = asked.call();
    let found = reads::get(&server, &mut call, table, wanted).await?;
    if found.batch.is_empty() {
        return Err(Refusal::not_found("none of the rows was found"));
    }
    let body = encode(media, &found.batch, &found.rows);
    call.put_batch(found.batch);
    Ok(Reply::of(media, body).cached())
}

fn encode(media: Media, batch: &CellBatch, found: &[Option<usize>]) -> Vec<u8> {
    let mut writer = CellSetWriter::new(media);
    let mut out = Vec::with_capacity(batch.data_bytes() * 2);
    for row in found.iter().flatten().map(|row| batch.row(*row)) {
        let written = writer.row(row.key(), cells::cells(&row), &mut out);
        debug_assert!(
            written.is_ok(),
            "a body that is no sequence of frames has no limit"
        );
    }
    writer.finish(&mut out);
    out
}
