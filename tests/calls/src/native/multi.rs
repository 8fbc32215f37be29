//! A Multi: actions sent to the regions of their rows.
//!
//! As in Java's client, a batch becomes one RegionAction for each region, in the order in which the
//! regions come first, and the index of an action is its place in the batch. An atomic group and a
//! group with a condition stay one RegionAction for the region of their first row.

use basalt_idl::native::messages::{MultiRequest, MultiResponse, RegionAction};
use bytes::Bytes;

use crate::connection::NoAnswer;

use super::Outcome;
use super::connection::{Connection, Reply};
use super::regions::{Region, Regions};
use super::request::{self, CellsOut};
use super::response::CellsIn;
use crate::fields::Fields;

/// Sends a Multi.
pub(super) fn call(connection: &mut Connection, regions: &Regions, args: Fields<'_>) -> Outcome {
    let mut cells = CellsOut::new(connection.kind());
    let mut request = MultiRequest {
        nonce_group: Some(regions.nonce_group()),
        ..MultiRequest::default()
    };
    for group in args.list("groups")? {
        let actions = region_actions(regions, group, &mut cells)?;
        request.region_action.extend(actions);
    }
    if args.flag("oldCondition")? == Some(true)
        && let Some(first) = request.region_action.first_mut()
    {
        request.condition = first.condition.take();
    }
    match connection.call::<MultiResponse>("Multi", &request, &cells.block)? {
        Reply::Exception(exception) => Ok(Err(exception)),
        Reply::Success(answer, block) => {
            let mut cells = CellsIn::new("Multi", &block);
            let result = cells.multi(&answer)?;
            cells.end()?;
            Ok(Ok(result))
        }
    }
}

/// The RegionActions of one group.
fn region_actions(
    regions: &Regions,
    group: Fields<'_>,
    cells: &mut CellsOut,
) -> Result<Vec<RegionAction>, NoAnswer> {
    let is_atomic = group.flag("atomic")?;
    let condition = group.optional("condition").map(request::condition).transpose()?;
    let stays = is_atomic == Some(true) || condition.is_some();
    let mut parts: Vec<(&Region, Vec<(usize, Fields<'_>)>)> = Vec::new();
    for (index, action) in group.list("actions")?.into_iter().enumerate() {
        let row = row(action)?;
        match parts.iter().position(|(region, _)| region.contains(&row)) {
            Some(part) => parts[part].1.push((index, action)),
            None if stays && !parts.is_empty() => {}
            None => parts.push((regions.serving(&row), vec![(index, action)])),
        }
    }
    let parts = parts.into_iter().map(|(region, actions)| {
        let actions = actions.into_iter();
        let actions = actions.map(|(index, action)| request::action(index, action, cells));
        Ok(RegionAction {
            region: region.specifier(),
            atomic: is_atomic,
            action: actions.collect::<Result<_, NoAnswer>>()?,
            condition: condition.clone(),
        })
    });
    parts.collect()
}

fn row(action: Fields<'_>) -> Result<Bytes, NoAnswer> {
    match action.optional("mutation") {
        Some(mutation) => mutation.bytes("row"),
        None => action.message("get")?.bytes("row"),
    }
}
