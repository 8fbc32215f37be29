//! HBase's permissions: what users and groups may do, and where.
//!
//! | module | contents |
//! | --- | --- |
//! | `action` | the actions R, W, X, C, A, and sets of them |
//! | `entry` | an entry: grantee, scope, actions; its form in the file |
//! | `index` | checks |
//! | `acl` | the entries as rows of `hbase:acl` |
//! | `snapshot` | owners of snapshots |
//! | this one | grant, revoke, list, and the file `DATA_DIR/security/rights.json` |
//!
//! A right counts for everything below its scope: global, namespace, table, family, qualifier.
//! Superusers may do everything and have no entries.
//!
//! Readers hold an immutable [`Rights`]. Changes go through `RightsFile::update`.
//!
//! Invariants: a grantee has at most one entry for a scope; no entry has an empty set of actions;
//! the index is that of the entries.

mod acl;
mod action;
mod entry;
mod index;
mod snapshot;

use std::collections::BTreeMap;

use basalt_types::name::TableName;
use serde::{Deserialize, Serialize};

pub use acl::AclCell;
pub use action::{Action, Actions};
pub use entry::{Entry, Grantee, Scope};
pub use index::{ColumnFilter, DeniedColumn, Readable, Subject, Target, Visit};
pub use snapshot::SnapshotOwner;

use self::index::Index;
use crate::file::{Data, DataFile};
use crate::{Error, Result};

/// The file of rights, `DATA_DIR/security/rights.json`.
pub type RightsFile = DataFile<Rights>;

/// All entries of a server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Rights {
    entries: BTreeMap<(Scope, Grantee), Actions>,
    index: Index,
    /// Owners of snapshots, by the snapshot's name.
    snapshots: BTreeMap<String, SnapshotOwner>,
}

/// The document in the file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    entries: Vec<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    snapshots: Vec<SnapshotOwner>,
}

impl From<Rights> for Stored {
    fn from(rights: Rights) -> Self {
        Self {
            version: Rights::VERSION,
            entries: rights.entries().collect(),
            snapshots: rights.snapshots.into_values().collect(),
        }
    }
}

impl TryFrom<Stored> for Rights {
    type Error = String;

    fn try_from(stored: Stored) -> std::result::Result<Self, String> {
        let mut rights = Self::default();
        for Entry {
            grantee,
            scope,
            actions,
        } in stored.entries
        {
            let text = format!("{grantee} has two entries for {scope}");
            if rights.entries.insert((scope, grantee), actions).is_some() {
                return Err(text);
            }
        }
        rights.reindex();
        for snapshot in stored.snapshots {
            let text = format!("snapshot {:?} has two owners", snapshot.name);
            if rights.snapshots.insert(snapshot.name.clone(), snapshot).is_some() {
                return Err(text);
            }
        }
        Ok(rights)
    }
}

impl Data for Rights {
    const FILE: &str = "rights.json";
    const VERSION: u32 = 1;

    fn check(&self) -> std::result::Result<(), String> {
        // The format has all rules: `Entry` is checked as it is read.
        Ok(())
    }
}

/// Which entries [`Rights::list`] returns.
#[derive(Clone, Copy, Debug)]
pub enum Listed<'a> {
    /// Entries for the scope global.
    Global,
    /// Entries for the namespace itself.
    Namespace(&'a str),
    /// Entries for the table, its families and columns; with a family and a qualifier only those
    /// for exactly that.
    Table(&'a TableName, Option<&'a [u8]>, Option<&'a [u8]>),
}

impl Listed<'_> {
    fn contains(&self, scope: &Scope) -> bool {
        match (self, scope) {
            (Self::Global, Scope::Global) => true,
            (Self::Namespace(listed), Scope::Namespace(name)) => listed == name,
            (Self::Table(listed, family, qualifier), Scope::Table { table, .. }) => {
                let is_family = |family: &[u8]| scope.family() == Some(family);
                let is_qualifier = |qualifier: &[u8]| scope.qualifier() == Some(qualifier);
                // HBase looks at the qualifier only where there is a family.
                *listed == table
                    && family.is_none_or(|family| is_family(family) && qualifier.is_none_or(is_qualifier))
            }
            _ => false,
        }
    }
}

/// Reading. Checks are in `index`.
impl Rights {
    /// All entries, by scope and grantee.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().map(|((scope, grantee), actions)| Entry {
            grantee: grantee.clone(),
            scope: scope.clone(),
            actions: *actions,
        })
    }

    /// The entries that HBase's `GetUserPermissions` returns. With `user`, those of that grantee;
    /// of a user, those of its groups too. The caller adds superusers to global entries without
    /// `user`.
    pub fn list(&self, listed: Listed<'_>, user: Option<(&Grantee, &[String])>) -> Vec<Entry> {
        let is_of = |grantee: &Grantee| match (user, grantee) {
            (None, _) => true,
            (Some((Grantee::User(_), groups)), Grantee::Group(group)) => groups.contains(group),
            (Some((user, _)), grantee) => user == grantee,
        };
        let entries = self.entries();
        entries
            .filter(|entry| listed.contains(&entry.scope) && is_of(&entry.grantee))
            .collect()
    }
}

/// Changes. They belong in the closure of `RightsFile::update`.
impl Rights {
    /// Grants actions: with `merge` in addition to those that the grantee has for that scope,
    /// otherwise in their place.
    pub fn grant(&mut self, entry: Entry, merge: bool) -> Result<()> {
        if entry.actions.is_empty() {
            // HBase's text.
            return Err(Error::Invalid(format!(
                "No actions associated with user '{}'",
                entry.grantee
            )));
        }
        let actions = self.entries.entry((entry.scope, entry.grantee)).or_default();
        *actions = if merge {
            actions.union(entry.actions)
        } else {
            entry.actions
        };
        self.reindex();
        Ok(())
    }

    /// Revokes actions for exactly that scope; without actions the whole entry. Returns whether
    /// there was something to revoke.
    pub fn revoke(&mut self, grantee: &Grantee, scope: &Scope, actions: Actions) -> bool {
        let key = (scope.clone(), grantee.clone());
        let Some(before) = self.entries.get(&key).copied() else {
            return false;
        };
        let left = if actions.is_empty() {
            Actions::NONE
        } else {
            before.minus(actions)
        };
        if left.is_empty() {
            self.entries.remove(&key);
        } else {
            self.entries.insert(key, left);
        }
        self.reindex();
        left != before
    }

    /// Gives the creator of a table all rights to it.
    pub fn own(&mut self, table: &TableName, user: &str) -> Result<()> {
        let entry = Entry {
            grantee: user.parse()?,
            scope: Scope::table(table.clone(), None, None)?,
            actions: Actions::ALL,
        };
        self.grant(entry, false)
    }

    /// Removes all entries for a table, its families and columns.
    pub fn drop_table(&mut self, dropped: &TableName) {
        self.retain(|scope, _| !matches!(scope, Scope::Table { table, .. } if table == dropped));
    }

    /// Removes all entries for a family of a table and its columns.
    pub fn drop_family(&mut self, table: &TableName, family: &[u8]) {
        let listed = Listed::Table(table, Some(family), None);
        self.retain(|scope, _| !listed.contains(scope));
    }

    /// Removes all entries for a namespace.
    pub fn drop_namespace(&mut self, namespace: &str) {
        self.retain(|scope, _| !Listed::Namespace(namespace).contains(scope));
    }

    /// Removes all entries of a grantee and its snapshots' owner: of a user that is removed, so that they do
    /// not pass to a new one of that name.
    pub fn drop_grantee(&mut self, dropped: &Grantee) {
        self.snapshots
            .retain(|_, snapshot| *dropped != Grantee::User(snapshot.owner.clone()));
        self.retain(|_, grantee| grantee != dropped);
    }

    fn retain(&mut self, is_kept: impl Fn(&Scope, &Grantee) -> bool) {
        self.entries.retain(|(scope, grantee), _| is_kept(scope, grantee));
        self.reindex();
    }

    fn reindex(&mut self) {
        self.index = Index::of(&self.entries);
    }
}

#[cfg(test)]
mod tests;
