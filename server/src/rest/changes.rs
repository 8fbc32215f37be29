//! Puts and deletes of rows, and those that read first: checks, increments and appends (`check=`).

use axum::http::StatusCode;
use basalt_engine::cell::CellBatch;
use basalt_engine::id::Origin;
use basalt_engine::op::{Check, ColumnAppend, ColumnIncrement, CompareOp, RowMutation, RowUpdate, Write};
use basalt_engine::schema::{Durability, TableName};
use basalt_rest::Malformed;
use basalt_rest::media::Media;
use basalt_rest::model::cells::{self, Cell, Row};
use basalt_rest::row_path::{Column, RowPath, Times};
use bytes::Bytes;
use smallvec::{SmallVec, smallvec};

use super::answer::Reply;
use super::faults::Refusal;
use super::request::{Request, Result, table};
use crate::limits::admission::{MemoryPermit, Purpose};
use crate::service::group::{Group, Step};
use crate::service::{arguments, writes};

/// A body above this is decoded where that may take a moment.
const INLINE_DECODE_BYTES: usize = 256 << 10;

/// A cell with a place in a row.
#[derive(Debug)]
struct Placed {
    column: Column,
    timestamp: Option<i64>,
    value: Vec<u8>,
}

impl Placed {
    /// The qualifier, which HBase's deletes take as empty when it is missing.
    fn qualifier(&self) -> &[u8] {
        self.column.qualifier.as_deref().unwrap_or_default()
    }

    fn put(&self) -> Write<'_> {
        Write::Put {
            family: &self.column.family,
            qualifier: self.qualifier(),
            timestamp: self.timestamp,
            value: &self.value,
            ttl_ms: None,
        }
    }

    /// The deletion of a family up to a time, or of one version of a column.
    fn delete(&self) -> Write<'_> {
        let family = &self.column.family;
        let timestamp = self.timestamp;
        match &self.column.qualifier {
            None => Write::DeleteFamily { family, timestamp },
            Some(qualifier) => Write::DeleteVersion {
                family,
                qualifier,
                timestamp,
            },
        }
    }
}

/// The path of a put. It matters only where the body has no keys or columns: some clients write into it what
/// is no path.
type Path = Result<RowPath, Malformed>;

/// A row with its cells.
type PlacedRow = (Bytes, Vec<Placed>);

/// A put of rows; with `check=` an increment, an append, or a put or delete that depends on a cell.
pub(super) async fn put(asked: &mut Request, name: &[u8], path: &str) -> Result<Reply> {
    let table = table(name)?;
    let path = RowPath::parse(path.as_bytes(), asked.encoding()?);
    let check = asked
        .query
        .text("check")?
        .unwrap_or_default()
        .to_ascii_lowercase();
    let media = asked.content_type()?;
    if media == Media::Text {
        return Err(super::request::unsupported_media(media.name()));
    }
    let mut permit = MemoryPermit::empty(asked.server().admission().memory());
    let rows = if media == Media::Binary {
        if !check.is_empty() {
            return Err(Refusal::malformed(format!(
                "check= needs cells in the body ({}), not a single value",
                Media::names(Media::SCANNED)
            )));
        }
        vec![single(asked)?]
    } else {
        decode(asked, media, &mut permit).await?
    };
    match &check[..] {
        "" => {
            let rows = rows
                .into_iter()
                .map(|row| place(row, &path, true))
                .collect::<Result<Vec<_>>>()?;
            let (server, mut call) = asked.call();
            writes::apply(&server, &mut call, table, rows, |rows| Ok(mutations(rows))).await?;
            Ok(done())
        }
        "put" => check_and_put(asked, table, one(rows)?, &path).await,
        "delete" => check_and_delete(asked, table, one(rows)?, &path).await,
        "append" | "increment" => update(asked, table, one(rows)?, &path, check == "append").await,
        _ => Err(Refusal::malformed(format!(
            "check= must be put, delete, append or increment, not {check:?}"
        ))),
    }
}

/// The answer to a write that was done.
fn done() -> Reply {
    Reply::empty(StatusCode::OK).cached()
}

/// The rows of a body, decoded within the memory for calls.
async fn decode(asked: &Request, media: Media, permit: &mut MemoryPermit) -> Result<Vec<Row>> {
    let bytes = cells::decoded_bytes(media, &asked.body);
    if bytes > INLINE_DECODE_BYTES {
        permit.add(bytes as u64, Purpose::Arrive).await?;
    }
    if asked.body.len() <= INLINE_DECODE_BYTES {
        return Ok(cells::decode(media, &asked.body)?);
    }
    let body = asked.body.clone();
    let decoded = asked
        .server()
        .on_pool(move |_| Ok(cells::decode(media, &body)))
        .await?;
    Ok(decoded?)
}

/// The cell of a body that is a single value. Headers win over the path.
fn single(asked: &Request) -> Result<Row> {
    let of_header = |name: &str| asked.headers.get(name).map(|value| value.as_bytes().to_vec());
    let timestamp = match asked.header("x-timestamp") {
        None => None,
        Some(text) => Some(text.trim().parse().map_err(|_| {
            Refusal::malformed(format!(
                "the header X-Timestamp must be milliseconds, not {text:?}"
            ))
        })?),
    };
    Ok(Row {
        key: of_header("x-row"),
        cells: vec![Cell {
            column: of_header("x-column"),
            timestamp: timestamp.filter(|time| *time != i64::MAX),
            value: asked.body.to_vec(),
        }],
    })
}

/// The only row of a body with `check=`.
fn one(rows: Vec<Row>) -> Result<Row> {
    let count = rows.len();
    let mut rows = rows.into_iter();
    match (rows.next(), count) {
        (Some(row), 1) => Ok(row),
        _ => Err(Refusal::malformed(format!(
            "with check= the body must have one row, not {count}"
        ))),
    }
}

/// Puts the cells of a row in their places: those without a column have the next one of the path.
fn place(row: Row, path: &Path, needs_qualifier: bool) -> Result<PlacedRow> {
    let key = match row.key {
        Some(key) => Bytes::from(key),
        None => Bytes::copy_from_slice(path.as_ref().map_err(Clone::clone)?.only_row()?),
    };
    arguments::check_row(&key)?;
    let mut of_path = path.as_ref().map_or(&[][..], |path| &path.columns).iter();
    let place = |cell: Cell| {
        let column = match cell.column {
            Some(column) => Column::of(&column),
            None => (of_path.next().cloned())
                .ok_or_else(|| Refusal::malformed("a cell has no column, and the path has none for it"))?,
        };
        if needs_qualifier && column.qualifier.is_none() {
            return Err(Refusal::malformed(format!(
                "the column {:?} has no colon: columns are family:qualifier",
                String::from_utf8_lossy(&column.family)
            )));
        }
        Ok(Placed {
            column,
            timestamp: cell.timestamp,
            value: cell.value,
        })
    };
    let cells = row.cells.into_iter().map(place).collect::<Result<Vec<_>>>()?;
    Ok((key, cells))
}

fn mutations(rows: &[PlacedRow]) -> Vec<RowMutation<'_>> {
    rows.iter()
        .map(|(row, cells)| RowMutation {
            writes: cells.iter().map(Placed::put).collect(),
            ..writes::mutation(row, Durability::UseDefault)
        })
        .collect()
}

/// The last cell is the expected one; it is stored if the others hold its column, as in HBase.
async fn check_and_put(asked: &mut Request, table: TableName, row: Row, path: &Path) -> Result<Reply> {
    let (key, mut cells) = place(row, path, true)?;
    let expected = cells.pop().filter(|_| !cells.is_empty()).ok_or_else(|| {
        Refusal::malformed("check=put needs cells to store, and behind them the cell that is expected")
    })?;
    if expected.qualifier().is_empty() {
        return Err(Refusal::malformed(
            "the cell that is expected needs a column with a qualifier",
        ));
    }
    if cells.iter().all(|cell| cell.column != expected.column) {
        return Err(Refusal::malformed(
            "the column of the cell that is expected, the last one, must be among those to store",
        ));
    }
    let processed = checked(asked, table, key, (expected, cells), Placed::put).await?;
    not_modified_unless(processed)
}

/// The last cell is the expected one. Alone, its column is deleted; otherwise the others are.
async fn check_and_delete(asked: &mut Request, table: TableName, row: Row, path: &Path) -> Result<Reply> {
    let (key, mut cells) = place(row, path, false)?;
    let Some(expected) = cells.pop() else {
        return Err(Refusal::malformed("check=delete needs the cell that is expected"));
    };
    if expected.column.qualifier.is_none() {
        return Err(Refusal::malformed(
            "the cell that is expected needs a column, family:qualifier",
        ));
    }
    let processed = if cells.is_empty() {
        let whole = Placed {
            column: expected.column.clone(),
            timestamp: None,
            value: Vec::new(),
        };
        checked(asked, table, key, (expected, vec![whole]), |cell| {
            Write::DeleteColumn {
                family: &cell.column.family,
                qualifier: cell.qualifier(),
                timestamp: None,
            }
        })
        .await?
    } else {
        checked(asked, table, key, (expected, cells), Placed::delete).await?
    };
    not_modified_unless(processed)
}

fn not_modified_unless(processed: bool) -> Result<Reply> {
    if processed {
        Ok(done())
    } else {
        Err(Refusal::new(
            StatusCode::NOT_MODIFIED,
            "the cell has another value",
        ))
    }
}

/// Applies writes if a column has the expected value; returns whether it had.
async fn checked(
    asked: &mut Request,
    table: TableName,
    key: Bytes,
    cells: (Placed, Vec<Placed>),
    write: fn(&Placed) -> Write<'_>,
) -> Result<bool> {
    let (server, mut call) = asked.call();
    let arguments = (key, cells);
    let done = writes::group(
        &server,
        &mut call,
        CellBatch::new(),
        arguments,
        move |(key, (expected, cells))| Ok(group(&table, key, expected, cells, write)),
    );
    Ok(done.await?.processed)
}

fn group<'a>(
    table: &TableName,
    key: &'a Bytes,
    expected: &'a Placed,
    cells: &'a [Placed],
    write: fn(&Placed) -> Write<'_>,
) -> Group<'a> {
    let check = Check {
        family: &expected.column.family,
        qualifier: expected.qualifier(),
        op: CompareOp::Equal,
        value: Some(&expected.value),
    };
    let mutation = RowMutation {
        writes: cells.iter().map(write).collect(),
        ..writes::mutation(key, Durability::UseDefault)
    };
    Group {
        table: table.clone(),
        conditions: smallvec![check.on(key)],
        steps: smallvec![Step::Write(mutation)],
        nonce: None,
        origin: Origin::default(),
    }
}

/// An increment by decimal numbers, or an append. With `rr=true` the new cells are the answer.
async fn update(
    asked: &mut Request,
    table: TableName,
    row: Row,
    path: &Path,
    appends: bool,
) -> Result<Reply> {
    let returns = asked.query.flag("rr", false);
    let media = if returns {
        Some(asked.accepted(Media::SCANNED)?)
    } else {
        None
    };
    let (key, cells) = place(row, path, true)?;
    let amounts: Vec<i64> = if appends {
        Vec::new()
    } else {
        cells
            .iter()
            .map(|cell| amount(&cell.value))
            .collect::<Result<Vec<_>>>()?
    };
    let (server, mut call) = asked.call();
    let batch = call.take_batch();
    let arguments = (key, cells, amounts);
    let done = writes::group(
        &server,
        &mut call,
        batch,
        arguments,
        move |(key, cells, amounts)| {
            Ok(updating(
                &table,
                key,
                cells,
                (!appends).then_some(amounts),
                returns,
            ))
        },
    );
    let done = done.await?;
    let reply = match media {
        None => self::done(),
        Some(media) => Reply::of(media, super::cells::encode(media, &done.cells)).cached(),
    };
    call.put_batch(done.cells);
    Ok(reply)
}

fn amount(value: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(value).ok().map(str::trim);
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        Refusal::malformed(format!(
            "an increment must be a whole number of 64 bits as text, not \"{}\"",
            value[..value.len().min(80)].escape_ascii()
        ))
    })
}

fn updating<'a>(
    table: &TableName,
    key: &'a Bytes,
    cells: &'a [Placed],
    amounts: Option<&'a Vec<i64>>,
    returns: bool,
) -> Group<'a> {
    let change = match amounts {
        Some(amounts) => RowUpdate::Increment(
            cells
                .iter()
                .zip(amounts)
                .map(|(cell, amount)| ColumnIncrement {
                    family: &cell.column.family,
                    qualifier: cell.qualifier(),
                    amount: *amount,
                    timestamp: None,
                })
                .collect(),
        ),
        None => RowUpdate::Append(
            cells
                .iter()
                .map(|cell| ColumnAppend {
                    family: &cell.column.family,
                    qualifier: cell.qualifier(),
                    value: &cell.value,
                    timestamp: None,
                })
                .collect(),
        ),
    };
    Group {
        table: table.clone(),
        conditions: SmallVec::new(),
        steps: smallvec![Step::Update {
            row: key,
            change,
            ttl_ms: None,
            time_range: basalt_engine::op::TimeRange::ALL,
            durability: Durability::UseDefault,
            returns,
        }],
        nonce: None,
        origin: Origin::default(),
    }
}

/// Deletes a row, families or columns of it, up to a time if the path has one.
pub(super) async fn delete(asked: &mut Request, name: &[u8], path: &str) -> Result<Reply> {
    let table = table(name)?;
    if asked.query.has("check") {
        return Err(Refusal::malformed(
            "check= has no meaning with DELETE, which would delete without a check: send PUT with check=delete",
        ));
    }
    let path = RowPath::parse(path.as_bytes(), asked.encoding()?)?;
    let row = path.only_row()?.to_vec();
    arguments::check_row(&row)?;
    let timestamp = match path.times {
        None => None,
        Some(Times::Below(time)) => Some(time),
        Some(Times::Between(..)) => {
            return Err(Refusal::malformed(
                "a delete has one time, up to which versions are deleted: a,b would delete all versions",
            ));
        }
    };
    let (server, mut call) = asked.call();
    let arguments = (row, path.columns, timestamp);
    writes::apply(
        &server,
        &mut call,
        table,
        arguments,
        |(row, columns, timestamp)| Ok(vec![deletion(row, columns, *timestamp)]),
    )
    .await?;
    Ok(done())
}

fn deletion<'a>(row: &'a [u8], columns: &'a [Column], timestamp: Option<i64>) -> RowMutation<'a> {
    let mut mutation = writes::mutation(row, Durability::UseDefault);
    for column in columns {
        mutation.writes.push(match &column.qualifier {
            None => Write::DeleteFamily {
                family: &column.family,
                timestamp,
            },
            Some(qualifier) => Write::DeleteColumn {
                family: &column.family,
                qualifier,
                timestamp,
            },
        });
    }
    if columns.is_empty() {
        mutation.writes.push(Write::DeleteRow { timestamp });
    }
    mutation
}
