//! The difference between two versions of the users, in words for the audit log.
//!
//! The command line changes the file of users while a server runs. The server sees two versions of it, and
//! not who made the change.

use std::collections::BTreeSet;

use super::{User, Users};

/// A change of one user, or of what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Name of the user.
    pub user: String,
    /// The change. Contains no secret.
    pub what: String,
}

impl Changed {
    /// The changes from `before` to `after`, by kind and name.
    pub fn between(before: &Users, after: &Users) -> Vec<Self> {
        let mut all = Vec::new();
        let mut note = |user: &str, what: String| {
            all.push(Self {
                user: user.to_owned(),
                what,
            });
        };
        let names: BTreeSet<&str> = before
            .users()
            .chain(after.users())
            .map(|(name, _)| name)
            .collect();
        for name in names {
            for what in of_user(before.user(name), after.user(name)) {
                note(name, what.to_owned());
            }
        }
        for (sequence, record) in after.tokens() {
            let was_revoked = before.tokens.get(&sequence).map(|record| record.revoked);
            match (was_revoked, record.revoked) {
                (None, false) => note(&record.user, format!("token {sequence} was issued")),
                (None | Some(false), true) => note(&record.user, format!("token {sequence} was revoked")),
                (Some(false), false) | (Some(true), _) => {}
            }
        }
        for (sequence, record) in before.tokens() {
            let is_dropped = !after.tokens.contains_key(&sequence) && after.user(&record.user).is_some();
            let has_key = after.keys.iter().any(|key| key.id == record.key_id);
            if is_dropped && !has_key {
                note(&record.user, format!("token {sequence} was dropped with its key"));
            }
        }
        let rule = |of: &Users, proxy: &str| of.proxies.iter().find(|rule| rule.proxy == proxy).cloned();
        let rules = before.proxies.iter().chain(&after.proxies);
        let proxies: BTreeSet<&str> = rules.map(|rule| &rule.proxy[..]).collect();
        for proxy in proxies {
            match (rule(before, proxy), rule(after, proxy)) {
                (left, right) if left == right => {}
                (_, None) => note(
                    proxy,
                    "the rule by which it acts for others was removed".to_owned(),
                ),
                (_, Some(_)) => note(proxy, "the rule by which it acts for others was set".to_owned()),
            }
        }
        all
    }
}

/// The changes of one user's own entry.
fn of_user(before: Option<&User>, after: Option<&User>) -> Vec<&'static str> {
    let (before, after) = match (before, after) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec!["created"],
        (Some(_), None) => return vec!["removed"],
        (Some(before), Some(after)) if before.id != after.id => {
            return vec!["removed, and another one of that name was created"];
        }
        (Some(before), Some(after)) => (before, after),
    };
    let changes = [
        (!before.superuser && after.superuser, "made a superuser"),
        (before.superuser && !after.superuser, "no longer a superuser"),
        (!before.disabled && after.disabled, "disabled"),
        (before.disabled && !after.disabled, "enabled"),
        (before.groups != after.groups, "groups changed"),
        (before.password != after.password, "password changed"),
    ];
    let made = changes.into_iter().filter(|(is_made, _)| *is_made);
    made.map(|(_, what)| what).collect()
}
