//! Thrift 1's data calls: rows, cells, mutations, counters and scanners.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::op::{
    Check, ColumnAppend, ColumnIncrement, CompareOp, ReadSpec, RowMutation, RowUpdate, Scan, TimeRange, Write,
};
use basalt_engine::schema::Durability;
use basalt_idl::thrift1::{self, args};
use bytes::Bytes;

use crate::api::from_thrift::{self, Attributes, select, split_column, time_range, ttl, write_time};
use crate::api::{Caller, Failure, Server, reads, scans, writes};

/// Row arguments as options, as single-row calls have them.
pub(super) fn some(rows: Option<Vec<Bytes>>) -> Vec<Option<Bytes>> {
    rows.into_iter().flatten().map(Some).collect()
}

/// The selection of columns named `family` or `family:qualifier`; none, and an empty list, mean all.
pub(super) fn columns(columns: Option<&Vec<Bytes>>) -> Vec<basalt_engine::op::FamilySelection> {
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
) -> Result<reads::Found, Failure> {
    let table = from_thrift::table(table)?;
    let spec = ReadSpec {
        families: columns(wanted.as_ref()),
        time_range: before(timestamp)?,
        ..ReadSpec::default()
    };
    let gets = rows
        .into_iter()
        .map(|row| Ok((from_thrift::row(row.as_ref())?.clone(), spec.clone())))
        .collect::<Result<Vec<_>, Failure>>()?;
    reads::get(server, caller, table, gets).await
}

pub(super) async fn get_cells(
    server: &Arc<Server>,
    caller: &mut Caller,
    table: Option<Bytes>,
    row: Option<Bytes>,
    column: Option<Bytes>,
    versions: i32,
    timestamp: Option<i64>,
) -> Result<CellBatch, Failure> {
    let table = from_thrift::table(table.as_ref())?;
    let row = from_thrift::row(row.as_ref())?.clone();
    let column = column.ok_or_else(|| Failure::illegal_argument("the column is missing"))?;
    let spec = ReadSpec {
        families: select([split_column(&column)]),
        time_range: before(timestamp)?,
        max_versions: from_thrift::versions(versions)?,
        ..ReadSpec::default()
    };
    reads::get_one(server, caller, table, row, spec).await
}

/// How the mutations of a list are grouped: HBase makes one delete and one put of them.
pub(super) struct RowParts<'a> {
    deletes: RowMutation<'a>,
    puts: RowMutation<'a>,
}

/// Splits a list of mutations. The last put and the last delete decide for all of their kind whether the WAL is written. A
/// put whose column has no colon is an error here; HBase skips it with a log line in `mutateRow`, and fails `mutateRows`.
pub(super) fn row_parts<'a>(
    row: Option<&'a Bytes>,
    mutations: &'a [thrift1::Mutation],
    timestamp: Option<i64>,
    ttl_ms: Option<i64>,
) -> Result<RowParts<'a>, Failure> {
    let row = from_thrift::row(row)?;
    let timestamp = write_time(timestamp)?;
    let mut deletes = writes::mutation(row, Durability::SyncWal, None);
    let mut puts = writes::mutation(row, Durability::SyncWal, ttl_ms);
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
                });
            }
            (false, None) => {
                return Err(Failure::illegal_argument(format!(
                    "Invalid column {} for a put: it must be family:qualifier",
                    basalt_engine::schema::Escaped(column)
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
    let both = {
        let parts = row_parts(arguments.0.as_ref(), &arguments.1, timestamp, ttl_ms)?;
        !parts.deletes.writes.is_empty() && !parts.puts.writes.is_empty()
    };
    writes::apply(server, table.clone(), Arc::clone(&arguments), move |arguments| {
        Ok(vec![
            row_parts(arguments.0.as_ref(), &arguments.1, timestamp, ttl_ms)?.deletes,
        ])
    })
    .await?;
    if both && timestamp.is_none() {
        // A put of the same millisecond as the delete would be masked by it; the client's list means "replace".
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
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
        let mut mutation = writes::mutation(from_thrift::row(row.as_ref())?, Durability::UseDefault, None);
        mutation.writes.push(Write::DeleteRow { timestamp });
        Ok(vec![mutation])
    })
    .await
}

/// Adds and returns the sum, which is durable then.
pub(super) async fn increment(
    server: &Arc<Server>,
    caller: &mut Caller,
    one: thrift1::TIncrement,
) -> Result<i64, Failure> {
    let (family, qualifier) = split_column(&one.column.clone().unwrap_or_default());
    // Without a colon it is the column with the empty qualifier.
    let arguments = (one, family, qualifier.unwrap_or_default());
    let batch = writes::update(server, caller, arguments, |(one, family, qualifier)| {
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
    })
    .await?;
    let sum = batch
        .rows()
        .next()
        .and_then(|row| row.cells().next())
        .and_then(|cell| cell.value.try_into().ok());
    caller.put_batch(batch);
    sum.map(i64::from_be_bytes)
        .ok_or_else(|| Failure::do_not_retry("the increment returned no counter"))
}

/// In order; stops at the first failure, earlier ones stay. Every one is durable before the answer: nothing is coalesced in
/// memory, where HBase may lose it.
pub(super) async fn increment_rows(
    server: &Arc<Server>,
    caller: &mut Caller,
    increments: Vec<thrift1::TIncrement>,
) -> Result<(), Failure> {
    writes::check_cells(server, increments.len())?;
    for one in increments {
        increment(server, caller, one).await?;
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
    writes::update(server, caller, arguments, |(table, row, columns, values)| {
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
    })
    .await
}

/// A column that must have a colon.
pub(super) fn full_column(column: &Bytes) -> Result<(Bytes, Bytes), Failure> {
    match split_column(column) {
        (family, Some(qualifier)) => Ok((family, qualifier)),
        (family, None) => Err(Failure::illegal_argument(format!(
            "the column {} has no colon: it must be family:qualifier",
            basalt_engine::schema::Escaped(&family)
        ))),
    }
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
    writes::check(
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
    )
    .await
}

pub(super) fn range(
    start: Option<&Bytes>,
    stop: Option<&Bytes>,
    wanted: Option<&Vec<Bytes>>,
    timestamp: Option<i64>,
) -> Result<(Scan, bool), Failure> {
    let scan = Scan {
        start_row: start.map(|row| row.to_vec()).unwrap_or_default(),
        stop_row: stop.map(|row| row.to_vec()).unwrap_or_default(),
        spec: ReadSpec {
            families: columns(wanted),
            time_range: before(timestamp)?,
            ..ReadSpec::default()
        },
        ..Scan::default()
    };
    Ok((scan, false))
}

/// Rows that start with the prefix: up to the next prefix of the same length.
pub(super) fn prefix(prefix: Option<&Bytes>, wanted: Option<&Vec<Bytes>>) -> Result<(Scan, bool), Failure> {
    let mut stop = prefix.map(|prefix| prefix.to_vec()).unwrap_or_default();
    while let Some(last) = stop.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            break;
        }
        stop.pop();
    }
    range(prefix, Some(&Bytes::from(stop)), wanted, None)
}

pub(super) fn t_scan(scan: &thrift1::TScan) -> Result<(Scan, bool), Failure> {
    let (mut engine_scan, _) = range(
        scan.start_row.as_ref(),
        scan.stop_row.as_ref(),
        scan.columns.as_ref(),
        scan.timestamp,
    )?;
    engine_scan.caching = from_thrift::caching(scan.caching);
    engine_scan.batch = scan
        .batch_size
        .and_then(|batch| usize::try_from(batch).ok())
        .filter(|batch| *batch > 0);
    engine_scan.reversed = scan.reversed.unwrap_or(false);
    engine_scan.spec.cache_blocks = scan.cache_blocks.unwrap_or(true);
    engine_scan.spec.filter = from_thrift::filter(scan.filter_string.as_ref(), None)?;
    Ok((engine_scan, scan.sort_columns.unwrap_or(false)))
}

pub(super) async fn scanner_get(
    server: &Arc<Server>,
    caller: &mut Caller,
    id: Option<i32>,
    count: Option<i32>,
) -> Result<scans::Results, Failure> {
    let id = id.ok_or(crate::sessions::SessionError::Unknown)?;
    scans::fetch(server, caller, id, count.unwrap_or(0)).await
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

    #[test]
    fn a_prefix_ends_at_the_next_one() {
        let stop = |prefix_bytes: &'static [u8]| {
            prefix(Some(&Bytes::from_static(prefix_bytes)), None)
                .unwrap()
                .0
                .stop_row
        };
        assert_eq!(stop(b"ab"), b"ac");
        assert_eq!(stop(b"a\xff"), b"b");
        assert_eq!(stop(b"\xff\xff"), b"", "to the end of the table");
    }
}
