//! Thrift 1's puts, deletes and checks.

use std::pin::pin;
use std::sync::Arc;

use basalt_engine::op::{Check, CompareOp, RowMutation, Write};
use basalt_engine::schema::Durability;
use basalt_idl::thrift1::{self, args};
use bytes::Bytes;

use super::data::full_column;
use crate::server::Server;
use crate::service::{Failure, writes};
use crate::thrift::from_thrift::{self, Attributes, ttl, write_time};

/// How the mutations of a list are grouped: HBase makes one delete and one put of them.
pub(super) struct RowParts<'a> {
    deletes: RowMutation<'a>,
    puts: RowMutation<'a>,
}

/// Splits a list of mutations. The last put and the last delete decide for all of their kind whether the WAL
/// is written. A put whose column has no colon is an error here; HBase skips it with a log line in
/// `mutateRow`, and fails `mutateRows`.
pub(super) fn row_parts<'a>(
    row: Option<&'a Bytes>,
    mutations: &'a [thrift1::Mutation],
    timestamp: Option<i64>,
    ttl_ms: Option<i64>,
) -> Result<RowParts<'a>, Failure> {
    let row = from_thrift::row(row)?;
    let timestamp = write_time(timestamp)?;
    let mut deletes = writes::mutation(row, Durability::SyncWal);
    let mut puts = writes::mutation(row, Durability::SyncWal);
    for mutation in mutations {
        let column = mutation.column.as_deref().unwrap_or_default();
        let colon = column.iter().position(|byte| *byte == b':');
        let durability = if mutation.write_to_wal {
            Durability::SyncWal
        } else {
            Durability::SkipWal
        };
        match (mutation.is_delete, colon) {
            (true, Some(at)) => {
                deletes.durability = durability;
                let (family, qualifier) = (&column[..at], &column[at + 1..]);
                deletes.writes.push(Write::DeleteColumn {
                    family,
                    qualifier,
                    timestamp,
                });
            }
            (true, None) => {
                deletes.durability = durability;
                // A family delete replaces earlier deletes in the same family (HBase's Delete.addFamily).
                deletes.writes.retain(
                    |write| !matches!(write, Write::DeleteColumn { family, .. } | Write::DeleteFamily { family, .. } if *family == column),
                );
                deletes.writes.push(Write::DeleteFamily {
                    family: column,
                    timestamp,
                });
            }
            (false, Some(at)) => {
                puts.durability = durability;
                puts.writes.push(Write::Put {
                    family: &column[..at],
                    qualifier: &column[at + 1..],
                    timestamp,
                    value: mutation.value.as_deref().unwrap_or_default(),
                    ttl_ms,
                });
            }
            (false, None) => {
                return Err(Failure::illegal_argument(format!(
                    "Invalid column {} for a put: it must be family:qualifier",
                    basalt_engine::schema::Cut(column)
                )));
            }
        }
    }
    Ok(RowParts { deletes, puts })
}

/// Deletes, then puts: two row operations, in this order, as in HBase.
pub(super) async fn mutate_row(
    server: &Arc<Server>,
    table: Option<Bytes>,
    row: Option<Bytes>,
    mutations: Option<Vec<thrift1::Mutation>>,
    timestamp: Option<i64>,
    attributes: Attributes,
) -> Result<(), Failure> {
    let table = from_thrift::table(table.as_ref())?;
    let ttl_ms = ttl(&attributes)?;
    let arguments = Arc::new((row, mutations.unwrap_or_default()));
    row_parts(arguments.0.as_ref(), &arguments.1, timestamp, ttl_ms)?;
    writes::apply(server, table.clone(), Arc::clone(&arguments), move |arguments| {
        Ok(vec![
            row_parts(arguments.0.as_ref(), &arguments.1, timestamp, ttl_ms)?.deletes,
        ])
    })
    .await?;
    writes::apply(server, table, arguments, move |arguments| {
        Ok(vec![
            row_parts(arguments.0.as_ref(), &arguments.1, timestamp, ttl_ms)?.puts,
        ])
    })
    .await
}

/// All puts, then all deletes: the opposite order of `mutateRow`, as in HBase.
pub(super) async fn mutate_rows(
    server: &Arc<Server>,
    table: Option<Bytes>,
    batches: Option<Vec<thrift1::BatchMutation>>,
    timestamp: Option<i64>,
    attributes: Attributes,
) -> Result<(), Failure> {
    let table = from_thrift::table(table.as_ref())?;
    let ttl_ms = ttl(&attributes)?;
    let batches = batches.unwrap_or_default();
    writes::apply(server, table, batches, move |batches| {
        let mut puts = Vec::with_capacity(batches.len());
        let mut deletes = Vec::new();
        for batch in batches {
            let parts = row_parts(
                batch.row.as_ref(),
                batch.mutations.as_deref().unwrap_or_default(),
                timestamp,
                ttl_ms,
            )?;
            puts.extend(Some(parts.puts).filter(|puts| !puts.writes.is_empty()));
            deletes.extend(Some(parts.deletes).filter(|deletes| !deletes.writes.is_empty()));
        }
        puts.append(&mut deletes);
        Ok(puts)
    })
    .await
}

pub(super) async fn delete_all(
    server: &Arc<Server>,
    table: Option<Bytes>,
    row: Option<Bytes>,
    column: Option<Bytes>,
    timestamp: Option<i64>,
) -> Result<(), Failure> {
    let table = from_thrift::table(table.as_ref())?;
    let mutation = thrift1::Mutation {
        is_delete: true,
        column,
        ..Default::default()
    };
    writes::apply(server, table, (row, [mutation]), move |(row, mutations)| {
        Ok(vec![row_parts(row.as_ref(), mutations, timestamp, None)?.deletes])
    })
    .await
}

pub(super) async fn delete_row(
    server: &Arc<Server>,
    table: Option<Bytes>,
    row: Option<Bytes>,
    timestamp: Option<i64>,
) -> Result<(), Failure> {
    let table = from_thrift::table(table.as_ref())?;
    let timestamp = write_time(timestamp)?;
    writes::apply(server, table, row, move |row| {
        let mut mutation = writes::mutation(from_thrift::row(row.as_ref())?, Durability::UseDefault);
        mutation.writes.push(Write::DeleteRow { timestamp });
        Ok(vec![mutation])
    })
    .await
}

pub(super) async fn check_and_put(server: &Arc<Server>, args: args::CheckAndPut) -> Result<bool, Failure> {
    let table = args.table_name.unwrap_or_default();
    let row = args.row.unwrap_or_default();
    let (family, qualifier) = full_column(&args.column.unwrap_or_default())?;
    let mut put = args.mput.unwrap_or_default();
    // The mutation's isDelete is ignored: it is always a put.
    put.is_delete = false;
    let ttl_ms = ttl(&args.attributes)?;
    let arguments = (table, row, family, qualifier, args.value, [put]);
    let done = writes::check(
        server,
        arguments,
        move |(table, row, family, qualifier, value, put)| {
            let check = Check {
                family,
                qualifier,
                op: CompareOp::Equal,
                value: value.as_deref(),
            };
            Ok((table, row, check, row_parts(Some(row), put, None, ttl_ms)?.puts))
        },
    );
    Ok(pin!(done).await?.processed)
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
