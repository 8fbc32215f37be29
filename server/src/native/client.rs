//! ClientService: dispatch, Get and Mutate. The modules `multi` and `scan` have the other methods.

use std::sync::Arc;

use basalt_engine::op::{Check, ColumnAppend, ColumnIncrement, RowMutation, RowUpdate};
use basalt_engine::schema::Escaped;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{
    self, ClientServiceMethod, Condition, GetRequest, GetResponse, MutateRequest, MutateResponse,
    MutationProto, mutation_proto::MutationType,
};
use bytes::Bytes;

use super::connection::Connection;
use super::deadline::Deadline;
use super::peer::Codec;
use super::reply::{CellBlock, Reply, empty};
use super::{coprocessor, load, multi, region, request, scan};
use crate::api::{Caller, Failure, reads, writes};

/// A call: its message and its cell block.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) parameter: Bytes,
    pub(super) cells: Bytes,
    /// Memory that is reserved for the arguments; 0 if they are small.
    pub(super) arguments_bytes: usize,
    /// When the client gives up.
    pub(super) deadline: Deadline,
}

/// Answers a call of ClientService.
pub(super) async fn call(
    connection: &Arc<Connection>,
    method: ClientServiceMethod,
    call: Call,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match method {
        ClientServiceMethod::Get => get(connection, request::decode(call.parameter)?, reply).await,
        ClientServiceMethod::Mutate => {
            mutate(connection, request::decode(call.parameter)?, call.cells, reply).await
        }
        ClientServiceMethod::Scan => {
            let wanted = request::decode(call.parameter)?;
            let (bytes, deadline) = (call.arguments_bytes, call.deadline);
            Box::pin(scan::call(connection, wanted, bytes, deadline, reply)).await
        }
        ClientServiceMethod::Multi => {
            Box::pin(multi::call(
                connection,
                request::decode(call.parameter)?,
                call.cells,
                reply,
            ))
            .await
        }
        ClientServiceMethod::ExecService => {
            let wanted = request::decode(call.parameter)?;
            Box::pin(coprocessor::on_region(
                connection,
                wanted,
                call.arguments_bytes,
                reply,
            ))
            .await
        }
        ClientServiceMethod::ExecRegionServerService => {
            Err(coprocessor::on_region_server(&request::decode(call.parameter)?))
        }
        ClientServiceMethod::PrepareBulkLoad => {
            load::prepare(&connection.server, request::decode(call.parameter)?, reply).await
        }
        ClientServiceMethod::BulkLoadHFile => {
            Box::pin(load::load(connection, request::decode(call.parameter)?, reply)).await
        }
        ClientServiceMethod::CleanupBulkLoad => {
            load::clean_up(&connection.server, request::decode(call.parameter)?, reply).await
        }
    }
}

async fn get(connection: &Connection, call: GetRequest, reply: &mut Reply) -> Result<(), Failure> {
    let codec = if connection.peer.inline_gets {
        Codec::Inline
    } else {
        connection.peer.codec
    };
    let mut block = connection.cell_block(codec);
    let region = region::serving(&connection.server, &call.region, Some(&call.get.row))?;
    let result = get_one(connection, region.table, &call.get, &mut block).await?;
    reply.with_cells(&GetResponse { result: Some(result) }, block);
    Ok(())
}

/// Runs one get and appends its cells to `block`.
pub(super) async fn get_one(
    connection: &Connection,
    table: basalt_engine::schema::TableName,
    get: &messages::Get,
    block: &mut CellBlock,
) -> Result<messages::Result, Failure> {
    let spec = request::get(get)?;
    let mut caller = connection.caller();
    let mut batch = reads::get_one(&connection.server, &mut caller, table, get.row.clone(), spec).await?;
    if get.existence_only == Some(true) {
        return Ok(messages::Result {
            exists: Some(!batch.is_empty()),
            ..empty()
        });
    }
    block.first(&mut batch).await
}

async fn mutate(
    connection: &Connection,
    call: MutateRequest,
    cells: Bytes,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let row = request::row(&call.mutation)?.clone();
    let region = region::serving(&connection.server, &call.region, Some(&row))?;
    let mut block = connection.cell_block(connection.peer.codec);
    let table = Bytes::from(region.table.to_string());
    let answer = match (call.mutation.mutate_type(), call.condition) {
        (MutationType::Put | MutationType::Delete, None) => {
            apply(connection, region.table, vec![call.mutation], cells).await?;
            MutateResponse {
                processed: Some(true),
                result: None,
            }
        }
        (MutationType::Put | MutationType::Delete, Some(condition)) => {
            let processed = check(connection, table, condition, vec![call.mutation], cells).await?;
            MutateResponse {
                processed: Some(processed),
                result: None,
            }
        }
        (_, Some(_)) => {
            return Err(Failure::do_not_retry(
                "increments and appends with a condition are not served yet",
            ));
        }
        (_, None) => {
            let result = update(connection, table, call.mutation, cells, &mut block).await?;
            MutateResponse {
                processed: None,
                result: Some(result),
            }
        }
    };
    reply.with_cells(&answer, block);
    Ok(())
}

/// Applies puts and deletes of one region, each row atomically, and waits until they are durable.
pub(super) async fn apply(
    connection: &Connection,
    table: basalt_engine::schema::TableName,
    mutations: Vec<MutationProto>,
    cells: Bytes,
) -> Result<(), Failure> {
    writes::apply(
        &connection.server,
        table,
        (mutations, cells),
        |(mutations, cells)| rows(mutations, cells),
    )
    .await
}

/// Converts mutations for the engine. Adjacent mutations with the same row and durability become
/// one, so that they are atomic.
fn rows<'a>(mutations: &'a [MutationProto], cells: &'a Bytes) -> Result<Vec<RowMutation<'a>>, Failure> {
    let mut block = Cells::new(cells);
    let mut rows: Vec<RowMutation<'a>> = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        let next = request::write(mutation, &mut block)?;
        match rows.last_mut() {
            Some(last) if last.row == next.row && last.durability == next.durability => {
                last.writes.extend(next.writes);
            }
            _ => rows.push(next),
        }
    }
    Ok(rows)
}

/// Applies puts and deletes of one row atomically.
pub(super) async fn apply_atomically(
    connection: &Connection,
    table: basalt_engine::schema::TableName,
    mutations: Vec<MutationProto>,
    cells: Bytes,
) -> Result<(), Failure> {
    writes::apply(
        &connection.server,
        table,
        (mutations, cells),
        |(mutations, cells)| Ok(one_row(mutations, cells)?.into_iter().collect()),
    )
    .await
}

/// Joins mutations of one row, with the strongest of their durabilities. `None` without mutations.
fn one_row<'a>(mutations: &'a [MutationProto], cells: &'a Bytes) -> Result<Option<RowMutation<'a>>, Failure> {
    let mut block = Cells::new(cells);
    let mut joined: Option<RowMutation<'a>> = None;
    for mutation in mutations {
        let next = request::write(mutation, &mut block)?;
        match &mut joined {
            None => joined = Some(next),
            Some(joined) if joined.row == next.row => {
                joined.writes.extend(next.writes);
                joined.durability = joined.durability.max(next.durability);
            }
            Some(_) => {
                return Err(Failure::do_not_retry(
                    "the mutations of an atomic group or a condition must be of one row",
                ));
            }
        }
    }
    Ok(joined)
}

/// Applies mutations of one row if a condition on it holds.
pub(super) async fn check(
    connection: &Connection,
    table: Bytes,
    condition: Condition,
    mutations: Vec<MutationProto>,
    cells: Bytes,
) -> Result<bool, Failure> {
    let (op, value) = request::comparison(&condition)?;
    let arguments = (table, condition, mutations, cells, value);
    writes::check(
        &connection.server,
        arguments,
        move |(table, condition, mutations, cells, value)| {
            let check = Check {
                family: condition.family.as_deref().unwrap_or_default(),
                qualifier: condition.qualifier.as_deref().unwrap_or_default(),
                op,
                value: Some(value),
            };
            let mutation = one_row(mutations, cells)?
                .ok_or_else(|| Failure::do_not_retry("a condition needs a mutation to apply"))?;
            Ok((table, &condition.row, check, mutation))
        },
    )
    .await
}

/// Runs one increment or append. Its new cells go into `block` if the client wants results.
pub(super) async fn update(
    connection: &Connection,
    table: Bytes,
    mutation: MutationProto,
    cells: Bytes,
    block: &mut CellBlock,
) -> Result<messages::Result, Failure> {
    let wanted = request::returns_results(&mutation);
    let mut caller: Caller = connection.caller();
    let arguments = (table, mutation, cells);
    let mut batch = writes::update(
        &connection.server,
        &mut caller,
        arguments,
        |(table, mutation, cells)| {
            let cells = request::cells(mutation, &mut Cells::new(cells))?;
            let change = match mutation.mutate_type() {
                MutationType::Increment => RowUpdate::Increment(
                    cells
                        .iter()
                        .map(|cell| {
                            let amount = <[u8; 8]>::try_from(cell.value).map_err(|_| {
                                Failure::do_not_retry(format!(
                                    "the increment of column {} has {} bytes; it must have 8",
                                    Escaped(cell.qualifier),
                                    cell.value.len()
                                ))
                            })?;
                            Ok(ColumnIncrement {
                                family: cell.family,
                                qualifier: cell.qualifier,
                                amount: i64::from_be_bytes(amount),
                            })
                        })
                        .collect::<Result<_, Failure>>()?,
                ),
                _ => RowUpdate::Append(
                    cells
                        .iter()
                        .map(|cell| ColumnAppend {
                            family: cell.family,
                            qualifier: cell.qualifier,
                            value: cell.value,
                        })
                        .collect(),
                ),
            };
            Ok(writes::Update {
                table: Some(table),
                row: Some(request::row(mutation)?),
                change,
                ttl_ms: request::ttl(mutation)?,
                durability: request::durability(mutation),
            })
        },
    )
    .await?;
    if !wanted {
        return Ok(empty());
    }
    block.first(&mut batch).await
}
