//! MultiRowMutationService: puts and deletes of several rows of one region, all or none.
//!
//! The mutations are an atomic group (`group`), so that readers and a crash see all of them or none.
//! Conditions are refused.

use std::sync::Arc;

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::Escaped;
use basalt_idl::native::messages::{
    MutateRowsRequest, MutateRowsResponse, MutationProto, mutation_proto::MutationType,
};
use bytes::Bytes;

use super::connection::Connection;
use super::group::{self, Group};
use super::request;
use crate::api::Failure;

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
    let group = Group {
        region: region.clone(),
        conditions: Vec::new(),
        mutations: call.mutation_request,
        cells: Bytes::new(),
        nonce_group: call.nonce_group,
    };
    let done = group::apply(connection, group).await?;
    Ok(MutateRowsResponse {
        processed: Some(done.processed),
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
