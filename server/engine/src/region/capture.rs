//! A reader's capture: the versions of its regions, and the read point that belongs to them.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Region, RegionVersion};
use crate::id::SeqId;
use crate::sync::Loaded;
use crate::wal::Wal;

/// A consistent view of some regions.
#[derive(Debug)]
pub(crate) struct Captured {
    /// One for each region, in the same order.
    pub versions: SmallVec<[Arc<RegionVersion>; 1]>,
    /// Every edit of the regions up to here is in the versions.
    pub read_point: SeqId,
}

/// Captures the view; `None` when a version was replaced meanwhile, and the caller begins again.
pub(crate) fn capture(regions: &[Arc<Region>], wal: &Wal) -> Option<Captured> {
    let versions: SmallVec<[_; 1]> = regions.iter().map(|region| region.load_version()).collect();
    let read_point = wal.read_point();
    // Had a memstore been frozen, or a region been split, before the read point was taken, then newer edits
    // below it might be in a memstore that was not captured.
    let mut taken = regions.iter().zip(&versions);
    taken
        .all(|(region, version)| region.is_current(version))
        .then_some(Captured { versions, read_point })
}

/// Captures one region, for a short read.
pub(crate) fn capture_one(region: &Region, wal: &Wal) -> Option<(Loaded<RegionVersion>, SeqId)> {
    let version = region.version();
    let read_point = wal.read_point();
    region.is_still_current(&version).then_some((version, read_point))
}
