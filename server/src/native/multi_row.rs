//! MultiRowMutationService: puts and deletes of several rows of one region, all or none.
//!
//! The rows become one edit of the log and one region's memstores, so that readers and a crash see
//! all of them or none. Conditions are refused.

use std::sync::Arc;

use basalt_engine::engine::RegionInfo;
use basalt_engine::op::RowMutation;
use basalt_engine::schema::Escaped;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{
    MutateRowsRequest, MutateRowsResponse, MutationProto, mutation_proto::MutationType,
};

use super::connection::Connection;
use super::request;
use crate::api::{Failure, writes};

/// Applies the mutations of one call.
pub(super) async fn mutate(
    connection: &Arc<Connection>,
    region: &RegionInfo,
    call: MutateRowsRequest,
) -> Result<MutateRowsResponse, Failure> {
    if !call.condition.is_empty() {
        return Err(Failure::do_not_retry(
            "MutateRows with conditions is not served; send a condition with the mutations of one row",
        ));
    }
    for (index, mutation) in call.mutation_request.iter().enumerate() {
        check(region, index, mutation)?;
    }
    if !call.mutation_request.is_empty() {
        writes::apply_in(
            &connection.server,
            region.table.clone(),
            Some(region.id),
            call.mutation_request,
            |mutations| rows(mutations),
        )
        .await?;
    }
    Ok(MutateRowsResponse {
        processed: Some(true),
    })
}

/// Refuses a mutation that is no put or delete, or of a row outside the region. The texts and
/// classes are HBase's: the first row decides whether the client has an old location.
fn check(region: &RegionInfo, index: usize, mutation: &MutationProto) -> Result<(), Failure> {
    if !matches!(mutation.mutate_type(), MutationType::Put | MutationType::Delete) {
        return Err(Failure::do_not_retry(
            "MutateRows takes puts and deletes, no increments and appends",
        ));
    }
    let row = request::row(mutation)?;
    if region.contains(row) {
        return Ok(());
    }
    let what = format!("Requested row out of range '{}'", Escaped(row));
    Err(if index == 0 {
        Failure::wrong_region(what)
    } else {
        Failure::do_not_retry(what)
    })
}

/// Converts mutations for the engine; those of one row become one. Their cells are in the messages.
fn rows(mutations: &[MutationProto]) -> Result<Vec<RowMutation<'_>>, Failure> {
    let mut rows: Vec<RowMutation<'_>> = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        let next = request::write(mutation, &mut Cells::new(b""))?;
        match rows.last_mut() {
            Some(last) if last.row == next.row => {
                last.writes.extend(next.writes);
                last.durability = last.durability.max(next.durability);
            }
            _ => rows.push(next),
        }
    }
    Ok(rows)
}
