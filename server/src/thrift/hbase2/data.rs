//! Thrift 2's data calls: rows, checks, counters and scanners.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::op::{Check, ColumnAppend, ColumnIncrement, CompareOp, ReadSpec, RowUpdate, Scan};
use basalt_engine::schema::{Durability, TableName};
use basalt_idl::thrift2::{self, args};
use bytes::Bytes;

use crate::limits::admission::Class;
use crate::server::Server;
use crate::service::{Caller, Failure, reads, scans, writes};
use crate::thrift::from_thrift;
use crate::thrift::from_thrift::{Puts, returns_results};

/// Rows in the gets' order. A get with `existence_only` is answered like one that found nothing:
/// TResult has no field for the answer (`exists` has). HBase's region server leaves the cells out,
/// and its gateway then fails on the missing list.
pub(super) async fn get_multiple(
    server: &Arc<Server>,
    caller: &mut Caller,
    table: &Bytes,
    gets: &[thrift2::TGet],
) -> Result<reads::Found, Failure> {
    let table = from_thrift::table(Some(table))?;
    let (wanted, _filters) = if gets.iter().any(compiles) {
        // Boxed: few gets have a regular expression.
        Box::pin(compiled_gets(server, gets.to_vec(), wants_cells)).await?
    } else {
        reads_of(server, gets, wants_cells)?
    };
    let mut found = pin!(reads::get(server, caller, table, wanted)).await?;
    for (get, row) in gets.iter().zip(&mut found.rows) {
        *row = row.filter(|_| wants_cells(get));
    }
    Ok(found)
}

fn wants_cells(get: &thrift2::TGet) -> bool {
    get.existence_only != Some(true)
}

/// Whether a get may have a regular expression to compile.
fn compiles(get: &thrift2::TGet) -> bool {
    from_thrift::has_regex(get.filter_string.as_ref(), get.filter_bytes.as_ref())
}

/// Gets as the engine takes them, and the memory of their filters.
type Reads = (Vec<(Bytes, ReadSpec)>, reads::FilterMemory);

/// Converts gets. Those without cells in the answer read just enough to know whether their row
/// exists.
fn reads_of(
    server: &Server,
    gets: &[thrift2::TGet],
    wants_cells: fn(&thrift2::TGet) -> bool,
) -> Result<Reads, Failure> {
    let mut filters = reads::FilterMemory::default();
    let reads = from_thrift::all(gets, |get| {
        let spec = from_thrift::get(get)?;
        filters.add_of(server, &spec)?;
        let spec = if wants_cells(get) {
            spec
        } else {
            for_existence(spec)
        };
        Ok((get.row.clone(), spec))
    })?;
    Ok((reads, filters))
}

async fn compiled_gets(
    server: &Arc<Server>,
    gets: Vec<thrift2::TGet>,
    wants_cells: fn(&thrift2::TGet) -> bool,
) -> Result<Reads, Failure> {
    server
        .compiled(Class::User, move |server| reads_of(server, &gets, wants_cells))
        .await
}

/// Whether each get would find something.
pub(super) async fn exists(
    server: &Arc<Server>,
    caller: &mut Caller,
    table: &Bytes,
    gets: &[thrift2::TGet],
) -> Result<Vec<bool>, Failure> {
    let table = from_thrift::table(Some(table))?;
    let no_cells = |_: &thrift2::TGet| false;
    let (gets, _filters) = if gets.iter().any(compiles) {
        compiled_gets(server, gets.to_vec(), no_cells).await?
    } else {
        reads_of(server, gets, no_cells)?
    };
    let found = reads::get(server, caller, table, gets).await?;
    let there = found.rows.iter().map(Option::is_some).collect();
    caller.put_batch(found.batch);
    Ok(there)
}

/// One cell proves that a row exists, so a large row is no reason to fail. A filter may need to see
/// all of them.
fn for_existence(mut spec: ReadSpec) -> ReadSpec {
    if spec.filter.is_none() && spec.family_limit.is_none() {
        spec.family_limit = Some(1);
    }
    spec
}

pub(super) async fn put(server: &Arc<Server>, args: args::Put) -> Result<(), Failure> {
    let table = from_thrift::table(Some(&args.table))?;
    pin!(writes::apply(server, table, args.tput, |put| Ok(vec![
        from_thrift::put(put)?
    ])))
    .await
}

/// Applies puts in the usual form.
pub(super) async fn put_usual(server: &Arc<Server>, puts: Puts) -> Result<(), Failure> {
    let table = from_thrift::table(Some(&puts.table()))?;
    pin!(writes::apply(server, table, puts, Puts::mutations)).await
}

/// Applies puts in any form.
pub(super) async fn put_multiple(server: &Arc<Server>, args: args::PutMultiple) -> Result<(), Failure> {
    let table = from_thrift::table(Some(&args.table))?;
    writes::apply(server, table, args.tputs, |puts| {
        from_thrift::all(puts, from_thrift::put)
    })
    .await
}

pub(super) async fn delete(
    server: &Arc<Server>,
    table: Bytes,
    deletes: Vec<thrift2::TDelete>,
) -> Result<(), Failure> {
    let table = from_thrift::table(Some(&table))?;
    writes::apply(server, table, deletes, |deletes| {
        from_thrift::all(deletes, from_thrift::delete)
    })
    .await
}

pub(super) async fn mutate_row(server: &Arc<Server>, args: args::MutateRow) -> Result<(), Failure> {
    let table = from_thrift::table(Some(&args.table))?;
    let table_default = default_durability(server, &table);
    writes::apply(server, table, args.trow_mutations, move |mutations| {
        Ok(vec![from_thrift::row_mutations(mutations, table_default)?])
    })
    .await
}

/// The table's durability for writes that set none. A missing table has none; the write itself will
/// fail.
fn default_durability(server: &Server, table: &TableName) -> Durability {
    server
        .engine()
        .describe_table(table)
        .map(|(table, _)| table.durability())
        .unwrap_or_default()
}

pub(super) async fn check_and_put(server: &Arc<Server>, args: args::CheckAndPut) -> Result<bool, Failure> {
    let done = writes::check(server, args, |args| {
        let check = Check {
            family: &args.family,
            qualifier: &args.qualifier,
            op: CompareOp::Equal,
            value: args.value.as_deref(),
        };
        Ok((&args.table, &args.row, check, from_thrift::put(&args.tput)?))
    });
    Ok(pin!(done).await?.processed)
}

pub(super) async fn check_and_delete(
    server: &Arc<Server>,
    args: args::CheckAndDelete,
) -> Result<bool, Failure> {
    let done = writes::check(server, args, |args| {
        let check = Check {
            family: &args.family,
            qualifier: &args.qualifier,
            op: CompareOp::Equal,
            value: args.value.as_deref(),
        };
        Ok((&args.table, &args.row, check, from_thrift::delete(&args.tdelete)?))
    });
    Ok(pin!(done).await?.processed)
}

pub(super) async fn check_and_mutate(
    server: &Arc<Server>,
    args: args::CheckAndMutate,
) -> Result<bool, Failure> {
    let table_default = default_durability(server, &from_thrift::table(Some(&args.table))?);
    let done = writes::check(server, args, move |args| {
        let check = Check {
            family: &args.family,
            qualifier: &args.qualifier,
            op: compare_op(args.compare_operator)?,
            value: args.value.as_deref(),
        };
        Ok((
            &args.table,
            &args.row,
            check,
            from_thrift::row_mutations(&args.row_mutations, table_default)?,
        ))
    });
    Ok(pin!(done).await?.processed)
}

fn compare_op(op: thrift2::TCompareOperator) -> Result<CompareOp, Failure> {
    Ok(match op {
        thrift2::TCompareOperator::LESS => CompareOp::Less,
        thrift2::TCompareOperator::LESS_OR_EQUAL => CompareOp::LessOrEqual,
        thrift2::TCompareOperator::EQUAL => CompareOp::Equal,
        thrift2::TCompareOperator::NOT_EQUAL => CompareOp::NotEqual,
        thrift2::TCompareOperator::GREATER_OR_EQUAL => CompareOp::GreaterOrEqual,
        thrift2::TCompareOperator::GREATER => CompareOp::Greater,
        thrift2::TCompareOperator::NO_OP => CompareOp::NoOp,
        other => {
            return Err(Failure::illegal_argument(format!(
                "unknown compare operator {other}"
            )));
        }
    })
}

pub(super) async fn increment(
    server: &Arc<Server>,
    caller: &mut Caller,
    args: args::Increment,
) -> Result<CellBatch, Failure> {
    let returns = returns_results(args.tincrement.return_results, &args.tincrement.attributes)?;
    let done = pin!(writes::update(server, caller.take_batch(), args, |args| {
        let increment = &args.tincrement;
        let columns = increment.columns.iter().map(|column| ColumnIncrement {
            family: &column.family,
            qualifier: &column.qualifier,
            amount: column.amount,
        });
        Ok(writes::Update {
            table: Some(&args.table),
            row: Some(&increment.row),
            change: RowUpdate::Increment(columns.collect()),
            ttl_ms: from_thrift::ttl(&increment.attributes)?,
            durability: from_thrift::durability(increment.durability),
        })
    }));
    Ok(wanted(done.await?.cells, returns))
}

pub(super) async fn append(
    server: &Arc<Server>,
    caller: &mut Caller,
    args: args::Append,
) -> Result<CellBatch, Failure> {
    let returns = returns_results(args.tappend.return_results, &args.tappend.attributes)?;
    let done = writes::update(server, caller.take_batch(), args, |args| {
        let append = &args.tappend;
        let columns = append.columns.iter().map(|column| ColumnAppend {
            family: &column.family,
            qualifier: &column.qualifier,
            value: &column.value,
        });
        Ok(writes::Update {
            table: Some(&args.table),
            row: Some(&append.row),
            change: RowUpdate::Append(columns.collect()),
            ttl_ms: from_thrift::ttl(&append.attributes)?,
            durability: from_thrift::durability(append.durability),
        })
    });
    Ok(wanted(pin!(done).await?.cells, returns))
}

/// The new cells, unless the client does not want them: then the answer is an empty result.
fn wanted(mut batch: CellBatch, returns: bool) -> CellBatch {
    if !returns {
        batch.clear();
    }
    batch
}

/// Builds a scan of its arguments. A filter with a regular expression is compiled on the pool.
async fn scan_of(server: &Arc<Server>, scan: &thrift2::TScan) -> Result<Scan, Failure> {
    if !from_thrift::has_regex(scan.filter_string.as_ref(), scan.filter_bytes.as_ref()) {
        return from_thrift::scan(scan);
    }
    let scan = scan.clone();
    // Boxed: few scans need it.
    let convert = move |_: &Server| from_thrift::scan(&scan);
    Box::pin(server.compiled(Class::User, convert)).await
}

pub(super) async fn open_scanner(
    server: &Arc<Server>,
    caller: &Caller,
    args: &args::OpenScanner,
) -> Result<i32, Failure> {
    let table = from_thrift::table(Some(&args.table))?;
    let scan = pin!(scan_of(server, &args.tscan)).await?;
    let lease = Duration::from_millis(server.config().scanner.lease_ms);
    scans::open(server, caller, table, scan, false, lease)
}

pub(super) async fn scanner_results(
    server: &Arc<Server>,
    caller: &mut Caller,
    args: &args::GetScannerResults,
) -> Result<scans::Results, Failure> {
    let table = from_thrift::table(Some(&args.table))?;
    let scan = pin!(scan_of(server, &args.tscan)).await?;
    pin!(scans::fetch_once(server, caller, table, scan, args.num_rows)).await
}
