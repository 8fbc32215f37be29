//! MultiRowMutationService: mutations of several rows of one region, all or none, if all conditions
//! hold.
//!
//! The mutations and conditions are an atomic group (`group`), so that readers and a crash see all of
//! them or none, and no other write comes between the conditions and the mutations. A call may have
//! conditions only. Rows of conditions need not be rows of mutations.
//!
//! Increments and appends return no cells. The nonce of a call is that of its increments and appends.

use std::sync::Arc;

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::Cut;
use basalt_idl::native::messages::{MutateRowsRequest, MutateRowsResponse, MutationProto};
use bytes::Bytes;

use super::group::{self, Group};
use super::request;
use super::state::Connection;
use crate::service::{Call, Failure};

/// Applies the mutations of one call if its conditions hold.
pub(super) async fn mutate(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    region: &Arc<RegionInfo>,
    mut call: MutateRowsRequest,
) -> Result<MutateRowsResponse, Failure> {
    for (index, mutation) in call.mutation_request.iter().enumerate() {
        check_row(region, index, mutation)?;
    }
    for update in call
        .mutation_request
        .iter_mut()
        .filter(|one| request::is_update(one))
    {
        update.nonce = call.nonce.or(update.nonce);
    }
    let group = Group {
        region: region.clone(),
        conditions: call.condition,
        mutations: call.mutation_request,
        cells: Bytes::new(),
        nonce_group: call.nonce_group,
    };
    let done = group::apply(connection, running, group).await?;
    Ok(MutateRowsResponse {
        processed: Some(done.processed),
    })
}

/// Refuses a mutation of a row outside the region. The texts and classes are HBase's: the first row
/// decides whether the client has an old location.
fn check_row(region: &Arc<RegionInfo>, index: usize, mutation: &MutationProto) -> Result<(), Failure> {
    let row = request::row(mutation)?;
    if region.contains(row) {
        return Ok(());
    }
    let what = format!("Requested row out of range '{}'", Cut(row));
    Err(if index == 0 {
        Failure::wrong_region(what)
    } else {
        Failure::do_not_retry(what)
    })
}
