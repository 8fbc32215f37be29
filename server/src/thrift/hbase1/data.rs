//! Thrift 1's reads of rows and cells, and its counters and appends.

use std::pin::pin;
use std::sync::Arc;

use basalt_engine::cell::CellBatch;
use basalt_engine::op::{ColumnAppend, ColumnIncrement, FamilySelection, ReadSpec, RowUpdate, TimeRange};
use basalt_engine::schema::Durability;
use basalt_idl::thrift1;
use bytes::Bytes;

use crate::server::Server;
use crate::service::{Caller, Failure, reads, writes};
use crate::thrift::from_thrift::{self, Attributes, raw, select, split_column, time_range};

/// Row arguments as options, as single-row calls have them.
pub(super) fn some(rows: Option<Vec<Bytes>>) -> Vec<Option<Bytes>> {
    rows.into_iter().flatten().map(Some).collect()
}

/// The selection of columns named `family` or `family:qualifier`; none, and an empty list, mean all.
pub(super) fn columns(columns: Option<&Vec<Bytes>>) -> Vec<FamilySelection> {
    select(columns.into_iter().flatten().map(split_column))
}

/// `[0, before)`: Thrift 1 reads never include their timestamp.
pub(super) fn before(timestamp: Option<i64>) -> Result<TimeRange, Failure> {
    timestamp.map_or(Ok(TimeRange::ALL), |timestamp| time_range(0, timestamp))
}

pub(super) async fn get_rows(
    server: &Arc<Server>,
    caller: &mut Caller,
    table: Option<&Bytes>,
    rows: Vec<Option<Bytes>>,
    wanted: Option<Vec<Bytes>>,
    timestamp: Option<i64>,
    attributes: &Attributes,
) -> Result<reads::Found, Failure> {
    let table = from_thrift::table(table)?;
    let spec = ReadSpec {
        families: columns(wanted.as_ref()),
        time_range: before(timestamp)?,
        raw: raw(attributes)?,
        ..ReadSpec::default()
    };
    let gets = from_thrift::all(&rows, |row| {
        Ok((from_thrift::row(row.as_ref())?.clone(), spec.clone()))
    })?;
    reads::get(server, caller, table, gets).await
}

/// One column, or a family, of one row.
pub(super) struct OneColumn {
    pub(super) table: Option<Bytes>,
    pub(super) row: Option<Bytes>,
    pub(super) column: Option<Bytes>,
    pub(super) attributes: Attributes,
}

pub(super) async fn get_cells(
    server: &Arc<Server>,
    caller: &mut Caller,
    wanted: OneColumn,
    versions: i32,
    timestamp: Option<i64>,
) -> Result<CellBatch, Failure> {
    let table = from_thrift::table(wanted.table.as_ref())?;
    let row = from_thrift::row(wanted.row.as_ref())?.clone();
    let column = wanted
        .column
        .ok_or_else(|| Failure::illegal_argument("the column is missing"))?;
    let spec = ReadSpec {
        families: select([split_column(&column)]),
        time_range: before(timestamp)?,
        max_versions: from_thrift::versions(versions)?,
        raw: raw(&wanted.attributes)?,
        ..ReadSpec::default()
    };
    reads::get_one(server, caller, table, row, spec).await
}

/// Adds and returns the sum, which is then durable. A column without a colon has the empty
/// qualifier.
pub(super) async fn atomic_increment(
    server: &Arc<Server>,
    caller: &mut Caller,
    one: thrift1::TIncrement,
) -> Result<i64, Failure> {
    let (family, qualifier) = split_column(&one.column.clone().unwrap_or_default());
    increment(server, caller, one, family, qualifier.unwrap_or_default()).await
}

async fn increment(
    server: &Arc<Server>,
    caller: &mut Caller,
    one: thrift1::TIncrement,
    family: Bytes,
    qualifier: Bytes,
) -> Result<i64, Failure> {
    let arguments = (one, family, qualifier);
    let done = pin!(writes::update(
        server,
        caller.take_batch(),
        arguments,
        |(one, family, qualifier)| {
            Ok(writes::Update {
                table: one.table.as_ref(),
                row: one.row.as_ref(),
                change: RowUpdate::Increment(vec![ColumnIncrement {
                    family,
                    qualifier,
                    amount: one.ammount.unwrap_or(0),
                }]),
                ttl_ms: None,
                durability: Durability::UseDefault,
            })
        }
    ));
    let batch = done.await?.cells;
    let sum = batch
        .rows()
        .next()
        .and_then(|row| row.cells().next())
        .and_then(|cell| cell.value.try_into().ok());
    caller.put_batch(batch);
    sum.map(i64::from_be_bytes)
        .ok_or_else(|| Failure::do_not_retry("the increment returned no counter"))
}

/// In order; stops at the first failure, earlier ones stay. Every one is durable before the answer:
/// unlike in HBase, nothing is coalesced in memory, where it could be lost. Unlike in
/// `atomicIncrement`, a column must have a colon.
pub(super) async fn increment_rows(
    server: &Arc<Server>,
    caller: &mut Caller,
    increments: Vec<thrift1::TIncrement>,
) -> Result<(), Failure> {
    writes::check_cells(server, increments.len())?;
    for one in increments {
        let (family, qualifier) = full_column(&one.column.clone().unwrap_or_default())?;
        increment(server, caller, one, family, qualifier).await?;
    }
    Ok(())
}

pub(super) async fn append(
    server: &Arc<Server>,
    caller: &mut Caller,
    append: thrift1::TAppend,
) -> Result<CellBatch, Failure> {
    let columns = append.columns.unwrap_or_default();
    let values = append.values.unwrap_or_default();
    if columns.len() != values.len() {
        return Err(Failure::illegal_argument(format!(
            "columns and values must be as many: {} columns, {} values",
            columns.len(),
            values.len()
        )));
    }
    let columns: Vec<(Bytes, Bytes)> = columns.iter().map(full_column).collect::<Result<_, _>>()?;
    let arguments = (append.table, append.row, columns, values);
    let done = writes::update(
        server,
        caller.take_batch(),
        arguments,
        |(table, row, columns, values)| {
            let appends = columns
                .iter()
                .zip(values)
                .map(|((family, qualifier), value)| ColumnAppend {
                    family,
                    qualifier,
                    value,
                });
            Ok(writes::Update {
                table: table.as_ref(),
                row: row.as_ref(),
                change: RowUpdate::Append(appends.collect()),
                ttl_ms: None,
                durability: Durability::UseDefault,
            })
        },
    );
    Ok(pin!(done).await?.cells)
}

/// A column that must have a colon.
pub(super) fn full_column(column: &Bytes) -> Result<(Bytes, Bytes), Failure> {
    match split_column(column) {
        (family, Some(qualifier)) => Ok((family, qualifier)),
        (family, None) => Err(Failure::illegal_argument(format!(
            "the column {} has no colon: it must be family:qualifier",
            basalt_engine::schema::Cut(&family)
        ))),
    }
}
