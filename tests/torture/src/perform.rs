//! Makes the calls of the checkers' language over either of HBase's services.

use basalt_client::{Append, Check, Client, Delete, Error, Get, Put, RowMutations, Table};
use basalt_histcheck::{Change, Columns, Op, Reply};
use basalt_idl::thrift1;
use bytes::Bytes;

use super::life::{column, columns, parts};

/// Makes a call over Thrift 2.
pub(super) async fn thrift2(table: &Table, row: &Bytes, op: &Op) -> Result<Reply, Error> {
    match op {
        Op::Get => Ok(Reply::Row(columns(table.get(Get::new(row)).await?))),
        Op::Write(changes) => {
            match kind(changes) {
                Kind::Puts => table.put(put(row, changes)).await?,
                Kind::Deletes => table.delete(delete(row, changes)).await?,
                Kind::Both => table.mutate_row(mutations(row, changes)).await?,
            }
            Ok(Reply::Nothing)
        }
        Op::Check {
            column,
            expected,
            changes,
        } => {
            let (family, qualifier) = parts(column);
            let check = match expected {
                Some(value) => Check::equal(family, qualifier, value),
                None => Check::absent(family, qualifier),
            };
            let passed = match kind(changes) {
                Kind::Puts => table.check_and_put(check, put(row, changes)).await?,
                Kind::Deletes => table.check_and_delete(check, delete(row, changes)).await?,
                Kind::Both => table.check_and_mutate(check, mutations(row, changes)).await?,
            };
            Ok(Reply::Passed(passed))
        }
        Op::Increment { column, amount } => {
            let (family, qualifier) = parts(column);
            let sum = table.increment_column(row, family, qualifier, *amount).await?;
            Ok(Reply::Value(number(sum)))
        }
        Op::Append { column, suffix } => {
            let (family, qualifier) = parts(column);
            let result = table
                .append(Append::new(row).column(&family, &qualifier, suffix))
                .await?;
            let value = result.value(family, qualifier).cloned().unwrap_or_default();
            Ok(Reply::Value(value))
        }
    }
}

/// Makes a call over Thrift 1, or over Thrift 2 where the first service has no atomic call for it.
pub(super) async fn thrift1(client: &Client, table: &Table, row: &Bytes, op: &Op) -> Result<Reply, Error> {
    use thrift1::args;
    let table_name = Some(Bytes::from(table.name().to_string()));
    let row_key = Some(row.clone());
    match op {
        Op::Get => {
            let call = args::GetRow {
                table_name,
                row: row_key,
                attributes: None,
            };
            let rows = client.call(&call).await?;
            Ok(Reply::Row(
                rows.into_iter().next().map(columns1).unwrap_or_default(),
            ))
        }
        Op::Write(changes) if changes[..] == [Change::DeleteRow] => {
            let call = args::DeleteAllRow {
                table_name,
                row: row_key,
                attributes: None,
            };
            client.call(&call).await.map(|()| Reply::Nothing)
        }
        Op::Write(changes) if kind(changes) == Kind::Puts => {
            let call = args::MutateRow {
                table_name,
                row: row_key,
                mutations: Some(changes.iter().filter_map(mutation1).collect()),
                attributes: None,
            };
            client.call(&call).await.map(|()| Reply::Nothing)
        }
        Op::Check {
            column,
            expected,
            changes,
        } if changes.len() == 1 && kind(changes) == Kind::Puts => {
            let call = args::CheckAndPut {
                table_name,
                row: row_key,
                column: Some(column.clone()),
                value: expected.clone(),
                mput: mutation1(&changes[0]),
                attributes: None,
            };
            client.call(&call).await.map(Reply::Passed)
        }
        Op::Increment { column, amount } => {
            let call = args::AtomicIncrement {
                table_name,
                row: row_key,
                column: Some(column.clone()),
                value: Some(*amount),
            };
            let sum = client.call(&call).await?;
            Ok(Reply::Value(number(sum)))
        }
        Op::Append { column, suffix } => {
            let append = thrift1::TAppend {
                table: table_name,
                row: row_key,
                columns: Some(vec![column.clone()]),
                values: Some(vec![suffix.clone()]),
            };
            let cells = client.call(&args::Append { append: Some(append) }).await?;
            let value = cells.into_iter().next().and_then(|cell| cell.value);
            Ok(Reply::Value(value.unwrap_or_default()))
        }
        _ => thrift2(table, row, op).await,
    }
}

/// A row of Thrift 1 as the checkers see it.
pub(super) fn columns1(row: thrift1::TRowResult) -> Columns {
    let cells = row.columns.into_iter().flatten();
    cells
        .map(|(name, cell)| (name, cell.value.unwrap_or_default()))
        .collect()
}

/// A number as counters hold it.
pub(super) fn number(number: i64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

#[derive(PartialEq, Eq)]
enum Kind {
    Puts,
    Deletes,
    Both,
}

fn kind(changes: &[Change]) -> Kind {
    let puts = changes
        .iter()
        .filter(|change| matches!(change, Change::Put(..)))
        .count();
    match puts {
        0 => Kind::Deletes,
        all if all == changes.len() => Kind::Puts,
        _ => Kind::Both,
    }
}

fn put(row: &Bytes, changes: &[Change]) -> Put {
    changes.iter().fold(Put::new(row), |put, change| match change {
        Change::Put(column, value) => {
            let (family, qualifier) = parts(column);
            put.cell(family, qualifier, value)
        }
        _ => put,
    })
}

fn delete(row: &Bytes, changes: &[Change]) -> Delete {
    if changes.contains(&Change::DeleteRow) {
        return Delete::row(row);
    }
    changes
        .iter()
        .fold(Delete::columns(row), |delete, change| match change {
            Change::Delete(column) => {
                let (family, qualifier) = parts(column);
                delete.column(family, qualifier)
            }
            _ => delete,
        })
}

fn mutations(row: &Bytes, changes: &[Change]) -> RowMutations {
    RowMutations::new(row)
        .put(put(row, changes))
        .delete(delete(row, changes))
}

fn mutation1(change: &Change) -> Option<thrift1::Mutation> {
    let (is_delete, column, value) = match change {
        Change::Put(column, value) => (false, column, Some(value.clone())),
        Change::Delete(column) => (true, column, None),
        Change::DeleteRow => return None,
    };
    Some(thrift1::Mutation {
        is_delete,
        column: Some(column.clone()),
        value,
        ..thrift1::Mutation::default()
    })
}

/// The columns of a family: `family:0`, `family:1` and so on.
pub(super) fn numbered(families: &[&str], each: usize) -> Vec<Bytes> {
    let names = families
        .iter()
        .flat_map(|family| (0..each).map(move |number| (family, number)));
    names
        .map(|(family, number)| column(family.as_bytes(), number.to_string().as_bytes()))
        .collect()
}
