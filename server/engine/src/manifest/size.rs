//! Bounds the size of the state: its snapshot is one frame, which every open and every roll writes.
//!
//! The encoded size of the state is known when a file is begun. Each edit adds at most [`growth`]
//! to it, which gives an upper bound. Only if the bound is above the limit, the state is encoded
//! again to get its exact size.
//!
//! - A schema change that would make the state larger than `schema_max` is refused. The rest of the
//!   frame is for flushes and compactions, which must be able to continue.
//! - No edit may make it larger than a frame, so the next open can always write its snapshot.
//!
//! Owner: [`Manifest`](super::Manifest), under its owner's lock.

use super::encode::{content_bytes, encode_snapshot, namespace_bytes, snapshot_bytes, table_bytes};
use super::{ManifestEdit, ManifestState, RegionState, SnapshotMeta};
use crate::error::{Error, Result};
use crate::record::FRAME_PAYLOAD_BYTES_MAX;
use crate::schema::TableName;
use crate::schema::limits::MANIFEST;

/// Maximum growth of all fixed-size numbers and counts of lists together.
const SLACK_BYTES: usize = 128;

/// Bytes of a region without files that are not in its edit: its flushed sequence id, counts of
/// families and clipped files.
const EMPTY_REGION_BYTES: usize = 3;

/// A file's share in the growth of counts: files of its family, families.
const FILE_COUNTS_BYTES: usize = 2;

/// An upper bound of the bytes of the encoded state.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateSize {
    bound: usize,
    /// Whether the state was not changed since it was encoded, so that encoding it again finds no
    /// smaller bound.
    is_exact: bool,
    schema_max: usize,
}

impl StateSize {
    /// The size of a state that takes `bytes`.
    pub(super) fn new(bytes: usize, schema_max: usize) -> Self {
        Self {
            bound: bytes + SLACK_BYTES,
            is_exact: true,
            schema_max,
        }
    }

    /// Records that the state was encoded again and takes `bytes`.
    pub(super) fn measured(&mut self, bytes: usize) {
        *self = Self::new(bytes, self.schema_max);
    }

    /// Records that an edit was applied that adds at most `bytes`.
    pub(super) fn grew(&mut self, bytes: usize) {
        self.bound = self.bound.saturating_add(bytes);
        self.is_exact = false;
    }

    /// An upper bound of the encoded size of the current state.
    #[cfg(test)]
    pub(super) fn bound(&self) -> usize {
        self.bound
    }

    pub(super) fn set_schema_max(&mut self, bytes: usize) {
        self.schema_max = bytes;
    }

    /// Refuses an edit that adds `growth` and makes the state too large.
    pub(super) fn check(&mut self, state: &ManifestState, growth: usize, is_schema: bool) -> Result<()> {
        let max = if is_schema {
            self.schema_max.min(FRAME_PAYLOAD_BYTES_MAX)
        } else {
            FRAME_PAYLOAD_BYTES_MAX
        };
        if growth == 0 || self.bound.saturating_add(growth) <= max {
            return Ok(());
        }
        if !self.is_exact {
            self.measured(encode_snapshot(state).len());
        }
        let found = self.bound.saturating_add(growth);
        if is_schema {
            return MANIFEST.check_total(
                found,
                max,
                "drop tables, namespaces or snapshots, or make their descriptors smaller",
            );
        }
        if found <= max {
            return Ok(());
        }
        Err(Error::RegionTooBusy(format!(
            "the manifest would need {found} bytes for all regions and files, and a start accepts {max}: compact tables, or drop tables \
             or snapshots"
        )))
    }
}

/// Whether an edit is a schema change, to which the smaller limit applies.
pub(super) fn is_schema(edit: &ManifestEdit) -> bool {
    !matches!(
        edit,
        ManifestEdit::Flush { .. }
            | ManifestEdit::Compact { .. }
            | ManifestEdit::HighWater { .. }
            | ManifestEdit::Log { .. }
    )
}

/// Upper bound of the bytes that an edit adds to the encoded state. `payload` is the edit's encoded
/// length.
pub(super) fn growth(state: &ManifestState, edit: &ManifestEdit, payload: usize) -> usize {
    match edit {
        ManifestEdit::DropNamespace(_)
        | ManifestEdit::SetTableState(..)
        | ManifestEdit::DropTable(_)
        | ManifestEdit::DropSnapshot(_)
        // Numbers that the slack has room for.
        | ManifestEdit::HighWater { .. }
        | ManifestEdit::Log { .. } => 0,
        ManifestEdit::PutNamespace(namespace) => {
            let before = state.namespaces.get(&namespace.name).map_or(0, namespace_bytes);
            payload.saturating_sub(before)
        }
        ManifestEdit::AlterTable(table) => {
            let before = state.tables.get(&table.name).map_or(0, |before| table_bytes(&before.descriptor));
            payload.saturating_sub(before)
        }
        ManifestEdit::Compact { .. }
        | ManifestEdit::CreateSnapshot(_)
        | ManifestEdit::CloneTable { .. }
        | ManifestEdit::RestoreTable { .. } => payload,
        ManifestEdit::CreateTable { regions, .. } | ManifestEdit::TruncateTable(_, regions) => {
            payload + regions.len() * EMPTY_REGION_BYTES
        }
        ManifestEdit::TruncateRegion { .. } => payload + EMPTY_REGION_BYTES,
        ManifestEdit::Flush { files, .. } => payload + files.len() * FILE_COUNTS_BYTES,
        ManifestEdit::ReplaceRegions { removed, added } => {
            let parents = removed.iter().filter_map(|id| state.regions.get(id));
            // A split gives all files to both halves; a merge joins them. The size of the removed
            // regions is not deducted.
            let content: usize = parents.map(inherited_bytes).sum();
            payload + added.len() * content
        }
    }
}

/// Bytes that a new region inherits from its parent: its files, each of them clipped.
fn inherited_bytes(parent: &RegionState) -> usize {
    const LARGEST_VARINT_BYTES: usize = 10;
    let files = parent.files.values().map(Vec::len).sum::<usize>();
    content_bytes(parent) + (files + 1) * LARGEST_VARINT_BYTES + EMPTY_REGION_BYTES
}

/// Upper bound of the bytes that a table made of a snapshot adds to the encoded state, under this
/// name.
pub(super) fn copy_growth(snapshot: &SnapshotMeta, name: &TableName) -> usize {
    /// Numbers that a region has and its snapshot does not, or smaller ones.
    const REGION_BYTES: usize = 64;
    /// Another file id, in the list of files and among those that are clipped.
    const FILE_BYTES: usize = 20;
    let name_bytes = name.namespace().len() + name.qualifier().len() + 4;
    let files = snapshot.regions.iter().flat_map(|region| region.files.values());
    snapshot_bytes(snapshot)
        + name_bytes
        + snapshot.regions.len() * (REGION_BYTES + name_bytes)
        + files.map(Vec::len).sum::<usize>() * (FILE_BYTES + name_bytes)
}
