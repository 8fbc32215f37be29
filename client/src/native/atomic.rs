//! Messages of atomic groups.

use basalt_idl::native::messages::{Action as ProtoAction, MutationProto, RegionAction};
use basalt_idl::thrift2::TRowMutations;

use super::encode::Mutation;
use crate::error::Result;

/// The messages of an atomic group, with their cells inside.
pub(super) fn inline(mutations: TRowMutations) -> Result<Vec<MutationProto>> {
    let mutations = mutations.mutations.into_iter();
    mutations
        .map(|mutation| Ok(Mutation::of(mutation)?.inline()))
        .collect()
}

/// An atomic group of a Multi, whose region is still to be set.
pub(super) fn atomic(mutations: Vec<MutationProto>) -> RegionAction {
    let action = |mutation| ProtoAction {
        mutation: Some(Box::new(mutation)),
        ..ProtoAction::default()
    };
    RegionAction {
        atomic: Some(true),
        action: mutations.into_iter().map(action).collect(),
        ..RegionAction::default()
    }
}
