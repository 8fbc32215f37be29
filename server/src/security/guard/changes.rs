//! Changes of rights and tokens that calls make. Each is in the audit log once it is in its file.

use std::time::{Duration, SystemTime};

use basalt_engine::schema::TableName;
use basalt_security::audit::{Event, Kind};
use basalt_security::rights::{Entry, Rights, SnapshotOwner};
use basalt_security::token::Token;
use basalt_security::{Error, Result};

use super::super::{Caller, Target};
use super::{Security, by, names_of};

impl Security {
    /// Changes rights, and notes it in the audit log.
    pub(crate) fn change_rights<R>(
        &self,
        caller: &Caller,
        subject: &str,
        what: &str,
        change: impl FnOnce(&mut Rights) -> Result<R>,
    ) -> Result<R> {
        let result = self.rights.update(change)?.result;
        self.note(Event {
            event: Kind::RightsChange,
            subject: Some(subject),
            reason: Some(what),
            ..by(caller)
        });
        Ok(result)
    }

    /// Issues a token for a user, unless it has `valid_max` valid ones, and notes it in the audit log.
    pub(crate) fn issue_token(
        &self,
        caller: &Caller,
        user: &str,
        lifetime: Duration,
        valid_max: usize,
    ) -> Result<Token> {
        let now = SystemTime::now();
        let issued = self.users.update(|users| {
            if users.valid_tokens_of(user, now) >= valid_max {
                return Err(Error::Invalid(format!(
                    "user {user} has {valid_max} valid tokens, and no more are issued: use one of them, or revoke them \
                     with basalt token revoke"
                )));
            }
            users.issue_token(user, lifetime, now)
        })?;
        self.end_logins(&issued.before, &issued.after);
        let (number, token) = issued.result;
        self.note(Event {
            event: Kind::UserChange,
            subject: Some(user),
            reason: Some(&format!("token {number} was issued")),
            ..by(caller)
        });
        Ok(token)
    }

    /// Notes a change of a table, a namespace or a snapshot in the audit log.
    pub(crate) fn note_schema_change(&self, caller: &Caller, what: &str, target: Target<'_>) {
        let (namespace, table) = names_of(target);
        self.note(Event {
            event: Kind::SchemaChange,
            namespace: namespace.as_deref(),
            table: table.as_deref(),
            reason: Some(what),
            ..by(caller)
        });
    }

    /// Notes a class of a user that was loaded.
    pub(crate) fn note_code_loaded(&self, user: Option<&str>, table: &TableName, class: &str, jar: &str) {
        self.note(Event {
            event: Kind::CodeLoaded,
            user,
            table: Some(&table.to_string()),
            subject: Some(class),
            reason: Some(jar),
            ..Event::default()
        });
    }

    /// Gives the creator of a table all rights to it.
    pub(crate) fn own(&self, caller: &Caller, table: &TableName) -> Result<()> {
        let Some(user) = caller.proven_user() else {
            return Ok(());
        };
        self.change_rights(caller, user, "owner of a new table", |rights| {
            rights.own(table, user)
        })
    }

    /// Makes the caller the owner of a new snapshot. Owners of snapshots that do not exist are dropped.
    pub(crate) fn own_snapshot(
        &self,
        caller: &Caller,
        snapshot: (&str, u64),
        exists: impl Fn(&str, u64) -> bool,
    ) -> Result<()> {
        let Some(owner) = caller.proven_user() else {
            return Ok(());
        };
        let (name, created_ms) = snapshot;
        self.change_rights(caller, owner, &format!("owner of snapshot {name}"), |rights| {
            rights.keep_snapshots(exists);
            rights.own_snapshot(SnapshotOwner {
                name: name.to_owned(),
                created_ms,
                owner: owner.to_owned(),
            })
        })
    }

    /// Whether the caller has taken the snapshot.
    pub(crate) fn owns_snapshot(&self, caller: &Caller, name: &str, created_ms: u64) -> bool {
        caller.proven_user().is_some_and(|user| {
            self.users().active_user(user).is_ok()
                && self.rights().snapshot_owner(name, created_ms) == Some(user)
        })
    }

    /// Drops entries of what is gone, if there are any.
    pub(crate) fn drop_rights(
        &self,
        caller: &Caller,
        is_of: impl Fn(&Entry) -> bool,
        drop: impl FnOnce(&mut Rights),
    ) -> Result<()> {
        if !self.rights().entries().any(|entry| is_of(&entry)) {
            return Ok(());
        }
        self.change_rights(caller, "all", "the target was dropped", |rights| {
            drop(rights);
            Ok(())
        })
    }
}
