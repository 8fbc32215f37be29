//! Owners of snapshots: the users that have taken them.
//!
//! An owner may list, restore, clone and delete the snapshot. A snapshot is known by its name and the time of
//! its making, so that the owner of one that is gone does not own a later one of that name.

use serde::{Deserialize, Serialize};

use super::Rights;
use crate::Result;
use crate::users::check_name;

/// A snapshot and its owner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotOwner {
    /// Name of the snapshot.
    pub name: String,
    /// Time of its making, in milliseconds since 1970.
    pub created_ms: u64,
    /// Name of the user.
    pub owner: String,
}

impl Rights {
    /// The owner of a snapshot, if it has one.
    pub fn snapshot_owner(&self, name: &str, created_ms: u64) -> Option<&str> {
        let known = self.snapshots.get(name)?;
        (known.created_ms == created_ms).then_some(&known.owner[..])
    }

    /// Sets the owner of a new snapshot. That of an older one of its name is gone.
    pub fn own_snapshot(&mut self, snapshot: SnapshotOwner) -> Result<()> {
        check_name("user", &snapshot.owner)?;
        self.snapshots.insert(snapshot.name.clone(), snapshot);
        Ok(())
    }

    /// Drops the owners of snapshots, by name and time, that do not exist.
    pub fn keep_snapshots(&mut self, exists: impl Fn(&str, u64) -> bool) {
        self.snapshots
            .retain(|name, snapshot| exists(name, snapshot.created_ms));
    }
}
