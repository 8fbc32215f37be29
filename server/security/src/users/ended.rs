//! Logins that a change of the users ends.

use std::collections::BTreeSet;

use super::Users;

/// The kind of proof that a connection has given of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A password.
    Password,
    /// The token with this sequence number.
    Token(u64),
    /// A client certificate.
    Certificate,
    /// A Kerberos ticket.
    Kerberos,
}

/// The difference between two versions of the users, as far as it ends connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Users that are gone, disabled or replaced by another one of that name.
    pub users: BTreeSet<String>,
    /// Users whose password has changed.
    pub passwords: BTreeSet<String>,
    /// Tokens that were revoked or dropped.
    pub tokens: BTreeSet<u64>,
}

impl Ended {
    /// The logins that the step from `before` to `after` ends.
    pub fn between(before: &Users, after: &Users) -> Self {
        let mut ended = Self::default();
        for (name, user) in before.users() {
            match after.user(name) {
                Some(now) if now.id == user.id && !now.disabled => {
                    if user.password.is_some() && now.password != user.password {
                        ended.passwords.insert(name.to_owned());
                    }
                }
                _ => {
                    ended.users.insert(name.to_owned());
                }
            }
        }
        let is_valid = |sequence: u64| {
            let record = after.tokens.get(&sequence);
            record
                .is_some_and(|record| !record.revoked && after.keys.iter().any(|key| key.id == record.key_id))
        };
        let tokens = before.tokens().map(|(sequence, _)| sequence);
        ended
            .tokens
            .extend(tokens.filter(|sequence| !is_valid(*sequence)));
        ended
    }

    /// Whether it ends nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it ends a connection of this user with this credential. Ask for the user that acts
    /// for another one, too.
    pub fn ends(&self, user: &str, credential: Credential) -> bool {
        self.users.contains(user)
            || match credential {
                Credential::Password => self.passwords.contains(user),
                Credential::Token(sequence) => self.tokens.contains(&sequence),
                Credential::Certificate | Credential::Kerberos => false,
            }
    }
}
