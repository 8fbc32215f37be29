//! Thrift 1's puts, deletes, checks, counters and appends.

use std::pin::pin;
use std::sync::Arc;

use basalt_engine::cell::CellBatch;
use basalt_engine::op::{Check, ColumnAppend, ColumnIncrement, CompareOp, RowMutation, RowUpdate, Write};
use basalt_engine::schema::{Cut, Durability};
use basalt_idl::thrift1::{self, WriteHandlers, args};
use bytes::Bytes;

use super::given;
use crate::service::group::Group;
use crate::service::{Failure, writes};
use crate::thrift::from_thrift::{self, Attributes, check_cell_rights, names, split_column, ttl, write_time};
use crate::thrift::handlers::{Context, Result};

#[expect(refining_impl_trait, reason = "handlers name the type of their answer")]
impl WriteHandlers for Context<'_> {
    async fn mutateRow(&mut self, args: args::MutateRow) -> Result<()> {
        let row = (args.row, args.mutations);
        pin!(self.mutate_row(args.table_name, row, None, args.attributes)).await
    }

    async fn mutateRowTs(&mut self, args: args::MutateRowTs) -> Result<()> {
        let (row, timestamp) = ((args.row, args.mutations), given(args.timestamp));
        self.mutate_row(args.table_name, row, timestamp, args.attributes)
            .await
    }

    async fn mutateRows(&mut self, args: args::MutateRows) -> Result<()> {
        pin!(self.mutate_rows(args.table_name, args.row_batches, None, args.attributes)).await
    }

    async fn mutateRowsTs(&mut self, args: args::MutateRowsTs) -> Result<()> {
        let (batches, timestamp) = (args.row_batches, given(args.timestamp));
        self.mutate_rows(args.table_name, batches, timestamp, args.attributes)
            .await
    }

    async fn deleteAll(&mut self, args: args::DeleteAll) -> Result<()> {
        self.delete_all(args.table_name, args.row, args.column, None)
            .await
    }

    async fn deleteAllTs(&mut self, args: args::DeleteAllTs) -> Result<()> {
        let timestamp = given(args.timestamp);
        self.delete_all(args.table_name, args.row, args.column, timestamp)
            .await
    }

    async fn deleteAllRow(&mut self, args: args::DeleteAllRow) -> Result<()> {
        self.delete_row(args.table_name, args.row, None).await
    }

    async fn deleteAllRowTs(&mut self, args: args::DeleteAllRowTs) -> Result<()> {
        self.delete_row(args.table_name, args.row, given(args.timestamp))
            .await
    }

    async fn checkAndPut(&mut self, args: args::CheckAndPut) -> Result<bool> {
        let table = args.table_name.unwrap_or_default();
        let row = args.row.unwrap_or_default();
        let (family, qualifier) = full_column(&args.column.unwrap_or_default())?;
        let mut put = args.mput.unwrap_or_default();
        // The mutation's isDelete is ignored: it is always a put.
        put.is_delete = false;
        check_cell_rights(self.server.security(), names(&args.attributes))?;
        let ttl_ms = ttl(&args.attributes)?;
        let arguments = (table, row, family, qualifier, args.value, [put]);
        let done = writes::group(
            self.server,
            &mut self.call,
            CellBatch::new(),
            arguments,
            move |arguments| {
                let (table, row, family, qualifier, value, put) = arguments;
                let check = Check {
                    family,
                    qualifier,
                    op: CompareOp::Equal,
                    value: value.as_deref(),
                };
                Group::of_check(table, row, &check, row_parts(Some(row), put, None, ttl_ms)?.puts)
            },
        );
        Ok(done.await?.processed)
    }

    /// Adds and returns the sum, which is then durable. A column without a colon has the empty
    /// qualifier.
    async fn atomicIncrement(&mut self, args: args::AtomicIncrement) -> Result<i64> {
        let one = thrift1::TIncrement {
            table: args.table_name,
            row: args.row,
            column: args.column,
            ammount: args.value,
        };
        let (family, qualifier) = split_column(&one.column.clone().unwrap_or_default());
        pin!(self.add(one, family, qualifier.unwrap_or_default())).await
    }

    async fn increment(&mut self, args: args::Increment) -> Result<()> {
        self.increment_rows(vec![args.increment.unwrap_or_default()])
            .await
    }

    async fn incrementRows(&mut self, args: args::IncrementRows) -> Result<()> {
        self.increment_rows(args.increments.unwrap_or_default()).await
    }

    async fn append(&mut self, args: args::Append) -> Result<CellBatch> {
        let append = args.append.unwrap_or_default();
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
        let cells = self.call.take_batch();
        let done = writes::group(
            self.server,
            &mut self.call,
            cells,
            arguments,
            |(table, row, columns, values)| {
                let columns = columns.iter().zip(values);
                let appends = columns.map(|((family, qualifier), value)| ColumnAppend {
                    family,
                    qualifier,
                    value,
                    timestamp: None,
                });
                let change = RowUpdate::Append(appends.collect());
                Group::of_update(table.as_ref(), row.as_ref(), change, None, Durability::UseDefault)
            },
        );
        Ok(done.await?.cells)
    }
}

impl Context<'_> {
    /// Deletes, then puts: two row operations, in this order, as in HBase.
    async fn mutate_row(
        &mut self,
        table: Option<Bytes>,
        (row, mutations): (Option<Bytes>, Option<Vec<thrift1::Mutation>>),
        timestamp: Option<i64>,
        attributes: Attributes,
    ) -> Result<()> {
        let table = from_thrift::table(table.as_ref())?;
        check_cell_rights(self.server.security(), names(&attributes))?;
        let ttl_ms = ttl(&attributes)?;
        let arguments = Arc::new((row, mutations.unwrap_or_default()));
        row_parts(arguments.0.as_ref(), &arguments.1, timestamp, ttl_ms)?;
        for is_delete in [true, false] {
            let (table, arguments) = (table.clone(), Arc::clone(&arguments));
            writes::apply(self.server, &mut self.call, table, arguments, move |arguments| {
                let parts = row_parts(arguments.0.as_ref(), &arguments.1, timestamp, ttl_ms)?;
                Ok(vec![if is_delete { parts.deletes } else { parts.puts }])
            })
            .await?;
        }
        Ok(())
    }

    /// All puts, then all deletes: the opposite order of `mutateRow`, as in HBase.
    async fn mutate_rows(
        &mut self,
        table: Option<Bytes>,
        batches: Option<Vec<thrift1::BatchMutation>>,
        timestamp: Option<i64>,
        attributes: Attributes,
    ) -> Result<()> {
        let table = from_thrift::table(table.as_ref())?;
        check_cell_rights(self.server.security(), names(&attributes))?;
        let ttl_ms = ttl(&attributes)?;
        let batches = batches.unwrap_or_default();
        writes::apply(self.server, &mut self.call, table, batches, move |batches| {
            let mut puts = Vec::with_capacity(batches.len());
            let mut deletes = Vec::new();
            for batch in batches {
                let mutations = batch.mutations.as_deref().unwrap_or_default();
                let parts = row_parts(batch.row.as_ref(), mutations, timestamp, ttl_ms)?;
                puts.extend(Some(parts.puts).filter(|puts| !puts.writes.is_empty()));
                deletes.extend(Some(parts.deletes).filter(|deletes| !deletes.writes.is_empty()));
            }
            puts.append(&mut deletes);
            Ok(puts)
        })
        .await
    }

    async fn delete_all(
        &mut self,
        table: Option<Bytes>,
        row: Option<Bytes>,
        column: Option<Bytes>,
        timestamp: Option<i64>,
    ) -> Result<()> {
        let table = from_thrift::table(table.as_ref())?;
        let mutation = thrift1::Mutation {
            is_delete: true,
            column,
            ..Default::default()
        };
        writes::apply(
            self.server,
            &mut self.call,
            table,
            (row, [mutation]),
            move |(row, mutations)| Ok(vec![row_parts(row.as_ref(), mutations, timestamp, None)?.deletes]),
        )
        .await
    }

    async fn delete_row(
        &mut self,
        table: Option<Bytes>,
        row: Option<Bytes>,
        timestamp: Option<i64>,
    ) -> Result<()> {
        let table = from_thrift::table(table.as_ref())?;
        let timestamp = write_time(timestamp)?;
        writes::apply(self.server, &mut self.call, table, row, move |row| {
            let mut mutation = writes::mutation(from_thrift::row(row.as_ref())?, Durability::UseDefault);
            mutation.writes.push(Write::DeleteRow { timestamp });
            Ok(vec![mutation])
        })
        .await
    }

    /// Adds to a column and returns the sum, which is then durable.
    async fn add(&mut self, one: thrift1::TIncrement, family: Bytes, qualifier: Bytes) -> Result<i64> {
        let (cells, arguments) = (self.call.take_batch(), (one, family, qualifier));
        let done = pin!(writes::group(
            self.server,
            &mut self.call,
            cells,
            arguments,
            |arguments| {
                let (one, family, qualifier) = arguments;
                let change = RowUpdate::Increment(vec![ColumnIncrement {
                    family,
                    qualifier,
                    amount: one.ammount.unwrap_or(0),
                    timestamp: None,
                }]);
                let (table, row) = (one.table.as_ref(), one.row.as_ref());
                Group::of_update(table, row, change, None, Durability::UseDefault)
            }
        ))
        .await;
        let batch = done?.cells;
        let sum = batch
            .rows()
            .next()
            .and_then(|row| row.cells().next())
            .and_then(|cell| cell.value.try_into().ok());
        self.call.put_batch(batch);
        sum.map(i64::from_be_bytes)
            .ok_or_else(|| Failure::do_not_retry("the increment returned no counter"))
    }

    /// In order; stops at the first failure, earlier ones stay. Every one is durable before the answer:
    /// unlike in HBase, nothing is coalesced in memory, where it could be lost. Unlike in
    /// `atomicIncrement`, a column must have a colon.
    async fn increment_rows(&mut self, increments: Vec<thrift1::TIncrement>) -> Result<()> {
        writes::check_cells(self.server, increments.len())?;
        for one in increments {
            let (family, qualifier) = full_column(&one.column.clone().unwrap_or_default())?;
            self.add(one, family, qualifier).await?;
        }
        Ok(())
    }
}

/// How the mutations of a list are grouped: HBase makes one delete and one put of them.
struct RowParts<'a> {
    deletes: RowMutation<'a>,
    puts: RowMutation<'a>,
}

/// Splits a list of mutations. The last put and the last delete decide for all of their kind whether the WAL
/// is written. A put whose column has no colon is an error here; HBase skips it with a log line in
/// `mutateRow`, and fails `mutateRows`.
fn row_parts<'a>(
    row: Option<&'a Bytes>,
    mutations: &'a [thrift1::Mutation],
    timestamp: Option<i64>,
    ttl_ms: Option<i64>,
) -> Result<RowParts<'a>> {
    let row = from_thrift::row(row)?;
    let timestamp = write_time(timestamp)?;
    let mut deletes = writes::mutation(row, Durability::SyncWal);
    let mut puts = writes::mutation(row, Durability::SyncWal);
    for mutation in mutations {
        let column = mutation.column.as_deref().unwrap_or_default();
        let (family, qualifier) = match column.iter().position(|byte| *byte == b':') {
            Some(at) => (&column[..at], Some(&column[at + 1..])),
            None => (column, None),
        };
        let part = if mutation.is_delete {
            &mut deletes
        } else {
            &mut puts
        };
        let write = match (mutation.is_delete, qualifier) {
            (true, Some(qualifier)) => Write::DeleteColumn {
                family,
                qualifier,
                timestamp,
            },
            (true, None) => {
                // A family delete replaces earlier deletes in the same family (HBase's Delete.addFamily).
                part.writes
                    .retain(|write| from_thrift::write_family(write) != Some(family));
                Write::DeleteFamily { family, timestamp }
            }
            (false, Some(qualifier)) => Write::Put {
                family,
                qualifier,
                timestamp,
                value: mutation.value.as_deref().unwrap_or_default(),
                ttl_ms,
            },
            (false, None) => {
                return Err(Failure::illegal_argument(format!(
                    "Invalid column {} for a put: it must be family:qualifier",
                    Cut(column)
                )));
            }
        };
        part.writes.push(write);
        part.durability = if mutation.write_to_wal {
            Durability::SyncWal
        } else {
            Durability::SkipWal
        };
    }
    Ok(RowParts { deletes, puts })
}

/// A column that must have a colon.
fn full_column(column: &Bytes) -> Result<(Bytes, Bytes)> {
    match split_column(column) {
        (family, Some(qualifier)) => Ok((family, qualifier)),
        (family, None) => Err(Failure::illegal_argument(format!(
            "the column {} has no colon: it must be family:qualifier",
            Cut(&family)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutation(column: &'static str, is_delete: bool, write_to_wal: bool) -> thrift1::Mutation {
        thrift1::Mutation {
            column: Some(Bytes::from_static(column.as_bytes())),
            is_delete,
            write_to_wal,
            value: None,
        }
    }

    #[test]
    fn the_last_mutation_of_a_kind_decides_about_the_wal() {
        let row = Bytes::from_static(b"r");
        let mutations = [
            mutation("f:a", false, true),
            mutation("f:b", true, true),
            mutation("f:c", false, false),
        ];
        let parts = row_parts(Some(&row), &mutations, None, None).unwrap();
        assert_eq!(
            (parts.puts.durability, parts.deletes.durability),
            (Durability::SkipWal, Durability::SyncWal)
        );
        assert_eq!((parts.puts.writes.len(), parts.deletes.writes.len()), (2, 1));
    }

    #[test]
    fn a_family_delete_swallows_the_column_deletes_before_it() {
        let row = Bytes::from_static(b"r");
        let mutations = [
            mutation("f:a", true, true),
            mutation("f", true, true),
            mutation("f:b", true, true),
        ];
        let parts = row_parts(Some(&row), &mutations, Some(5), None).unwrap();
        assert!(matches!(
            parts.deletes.writes[..],
            [
                Write::DeleteFamily {
                    timestamp: Some(5),
                    ..
                },
                Write::DeleteColumn { .. }
            ]
        ));
        assert!(row_parts(Some(&row), &[mutation("f", false, true)], None, None).is_err());
    }
}
