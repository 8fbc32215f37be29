//! ClientService: dispatch, Get and Mutate. The modules `multi`, `scan`, `coprocessor` and `load` have
//! the other methods, `group` has writes that read first.

use std::sync::Arc;

use basalt_engine::op::RowMutation;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{
    self, ClientServiceMethod, GetRequest, GetResponse, MutateRequest, MutateResponse, MutationProto,
};
use bytes::Bytes;

use super::connection::Connection;
use super::deadline::Deadline;
use super::group::{self, Group};
use super::peer::Codec;
use super::reply::{CellBlock, Reply, empty};
use super::{coprocessor, load, multi, region, request, scan};
use crate::api::reads::{self, FilterMemory};
use crate::api::{Failure, writes};

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
    let filter = request::filter(&connection.server, &table, get.filter.as_ref()).await?;
    let spec = request::get(get, filter)?;
    let mut filters = FilterMemory::default();
    filters.add_of(&connection.server, &spec)?;
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
    let is_update = group::is_update(&call.mutation);
    let is_conditional = call.condition.is_some();
    let answer = if is_update || is_conditional {
        if let Some(condition) = &call.condition {
            group::check_same_row(condition, std::slice::from_ref(&call.mutation))?;
        }
        let group = Group {
            region,
            conditions: call.condition.into_iter().collect(),
            mutations: vec![call.mutation],
            cells,
            nonce_group: call.nonce_group,
        };
        let mut done = group::apply(connection, group).await?;
        let result = if is_update && done.processed {
            Some(block.first(&mut done.cells).await?)
        } else {
            None
        };
        MutateResponse {
            processed: is_conditional.then_some(done.processed),
            result,
        }
    } else {
        apply(connection, region.table, vec![call.mutation], cells).await?;
        MutateResponse {
            processed: Some(true),
            result: None,
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
                last.writes.extend(next.writes.iter().copied());
            }
            _ => rows.push(next),
        }
    }
    Ok(rows)
}
