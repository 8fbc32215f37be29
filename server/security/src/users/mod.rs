//! Users: names, passwords, groups, token keys, issued tokens and proxy rules.
//!
//! | module | contents |
//! | --- | --- |
//! | this one | the value and its changes |
//! | `login` | verification of passwords, tokens and certificates |
//! | `proxy` | rules of impersonation |
//! | `changed` | changes in words for the audit log |
//! | `ended` | logins that a change ends |
//!
//! Readers hold an immutable [`Users`] and change nothing. Changes go through `UserFile::update`,
//! which applies them to what the file has, checks the result and replaces the file.
//!
//! Invariants: a token's record names a user that exists; numbers of users and tokens are never
//! used twice, so that a removed user's tokens and connections do not pass to a new one of that
//! name.

mod changed;
mod ended;
mod login;
mod proxy;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

pub use changed::Changed;
pub use ended::{Credential, Ended};
pub use login::TokenUse;
pub use proxy::{Hosts, ProxyRule};

use crate::file::{Data, DataFile};
use crate::password::PasswordHash;
use crate::token::{Token, TokenIdentifier, TokenKey};
use crate::{Error, Result, millis};

/// The file of users, `DATA_DIR/security/users.json`.
pub type UserFile = DataFile<Users>;

/// Maximum length of a name of a user or group in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// Maximum lifetime of a token.
const LIFETIME_MAX: Duration = Duration::from_hours(10 * 366 * 24);

/// All users of a server, and what belongs to them. `Serialize` is for its file: the document has
/// the keys of tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    version: u32,
    /// Number of the next user.
    next_user: u64,
    /// Number of the next token.
    next_token: u64,
    #[serde(rename = "users")]
    by_name: BTreeMap<String, User>,
    /// The last one signs new tokens.
    keys: Vec<TokenKey>,
    /// By sequence number. Records of expired tokens are dropped when a token is issued.
    tokens: BTreeMap<u64, TokenRecord>,
    proxies: Vec<ProxyRule>,
}

/// A user.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    id: u64,
    /// Whether the user may do everything.
    pub superuser: bool,
    /// Whether the user is kept out.
    pub disabled: bool,
    /// Sorted names of groups, without `@`.
    pub groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<PasswordHash>,
}

impl User {
    /// The user's number, which no other user ever has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the user has a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }
}

/// The record of an issued token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// Name of the user.
    pub user: String,
    /// Number of the key that signed it.
    pub key_id: i32,
    /// Milliseconds since 1970.
    pub issued_ms: u64,
    /// Milliseconds since 1970.
    pub expires_ms: u64,
    /// Whether it was revoked. The record stays until the token would have expired.
    pub revoked: bool,
}

/// A new user.
#[derive(Debug, Default)]
pub struct NewUser {
    /// Whether the user may do everything.
    pub superuser: bool,
    /// Names of groups, without `@`.
    pub groups: Vec<String>,
    /// Without it the user logs in with tokens and certificates only.
    pub password: Option<PasswordHash>,
}

impl Default for Users {
    /// No users.
    fn default() -> Self {
        Self {
            version: <Self as Data>::VERSION,
            next_user: 1,
            next_token: 1,
            by_name: BTreeMap::new(),
            keys: Vec::new(),
            tokens: BTreeMap::new(),
            proxies: Vec::new(),
        }
    }
}

/// Reading.
impl Users {
    /// Whether there are no users, so that every login fails.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// A user, also a disabled one.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.by_name.get(name)
    }

    /// All users by name.
    pub fn users(&self) -> impl Iterator<Item = (&str, &User)> {
        self.by_name.iter().map(|(name, user)| (&name[..], user))
    }

    /// Names of the superusers.
    pub fn superusers(&self) -> impl Iterator<Item = &str> {
        self.users()
            .filter(|(_, user)| user.superuser)
            .map(|(name, _)| name)
    }

    /// All records of tokens by sequence number, the revoked and expired ones included.
    pub fn tokens(&self) -> impl Iterator<Item = (u64, &TokenRecord)> {
        self.tokens.iter().map(|(sequence, record)| (*sequence, record))
    }

    /// Number of a user's tokens that are neither revoked nor expired.
    pub fn valid_tokens_of(&self, name: &str, now: SystemTime) -> usize {
        let now_ms = millis(now);
        let is_valid =
            |record: &&TokenRecord| record.user == name && !record.revoked && record.expires_ms > now_ms;
        self.tokens.values().filter(is_valid).count()
    }

    /// The rules of impersonation.
    pub fn proxies(&self) -> &[ProxyRule] {
        &self.proxies
    }
}

impl Data for Users {
    const FILE: &str = "users.json";
    const VERSION: u32 = 1;

    fn check(&self) -> std::result::Result<(), String> {
        for (name, user) in &self.by_name {
            let groups = user.groups.iter().map(|group| check_name("group", group));
            for result in std::iter::once(check_name("user", name)).chain(groups) {
                result.map_err(|error| error.to_string())?;
            }
            let password = user.password.as_ref().map_or(Ok(()), PasswordHash::check);
            password.map_err(|problem| format!("the password of user {name} is not usable: {problem}"))?;
            if user.id >= self.next_user {
                return Err(format!(
                    "user {name} has the id {}, which is not below next_user",
                    user.id
                ));
            }
        }
        for rule in &self.proxies {
            if !self.by_name.contains_key(&rule.proxy) {
                return Err(format!("the proxy rule of {:?} has no user", rule.proxy));
            }
        }
        for (at, key) in self.keys.iter().enumerate() {
            if !key.is_whole() || self.keys[..at].iter().any(|other| other.id == key.id) {
                return Err(format!(
                    "token key {} is not whole, or there are two of it",
                    key.id
                ));
            }
        }
        for (sequence, record) in &self.tokens {
            if *sequence >= self.next_token || !self.by_name.contains_key(&record.user) {
                return Err(format!(
                    "token {sequence} has no user, or is not below next_token"
                ));
            }
        }
        Ok(())
    }
}

/// Changes. They belong in the closure of `UserFile::update`.
impl Users {
    /// Creates a user.
    pub fn create_user(&mut self, name: &str, new: NewUser) -> Result<()> {
        check_name("user", name)?;
        if self.by_name.contains_key(name) {
            return Err(Error::Invalid(format!("user {name} exists already")));
        }
        let user = User {
            id: self.next_user,
            superuser: new.superuser,
            disabled: false,
            groups: sorted_groups(new.groups)?,
            password: new.password,
        };
        self.next_user += 1;
        self.by_name.insert(name.to_owned(), user);
        Ok(())
    }

    /// Removes a user, its tokens and the rules by which it acts for others.
    pub fn remove_user(&mut self, name: &str) -> Result<()> {
        self.change(name)?;
        self.by_name.remove(name);
        self.tokens.retain(|_, record| record.user != name);
        self.proxies.retain(|rule| rule.proxy != name);
        Ok(())
    }

    /// Sets or takes away the password.
    pub fn set_password(&mut self, name: &str, password: Option<PasswordHash>) -> Result<()> {
        self.change(name)?.password = password;
        Ok(())
    }

    /// Makes the user a superuser, or ends that.
    pub fn set_superuser(&mut self, name: &str, superuser: bool) -> Result<()> {
        self.change(name)?.superuser = superuser;
        Ok(())
    }

    /// Disables the user, or enables it again.
    pub fn set_disabled(&mut self, name: &str, disabled: bool) -> Result<()> {
        self.change(name)?.disabled = disabled;
        Ok(())
    }

    /// Sets the groups of the user.
    pub fn set_groups(&mut self, name: &str, groups: Vec<String>) -> Result<()> {
        let groups = sorted_groups(groups)?;
        self.change(name)?.groups = groups;
        Ok(())
    }

    /// Issues a token, valid from `now` on. The first one makes a key.
    pub fn issue_token(&mut self, name: &str, lifetime: Duration, now: SystemTime) -> Result<(u64, Token)> {
        if self.change(name)?.disabled {
            return Err(Error::Invalid(format!(
                "user {name} is disabled; enable it first"
            )));
        }
        if lifetime.is_zero() || lifetime > LIFETIME_MAX {
            let days = LIFETIME_MAX.as_secs() / 86_400;
            return Err(Error::Invalid(format!(
                "a token is valid for more than 0 and at most {days} days"
            )));
        }
        let now_ms = millis(now);
        self.tokens.retain(|_, record| record.expires_ms > now_ms);
        if self.keys.is_empty() {
            self.roll_key()?;
        }
        let key = self.keys.last().expect("there is a key now");
        let record = TokenRecord {
            user: name.to_owned(),
            key_id: key.id,
            issued_ms: now_ms,
            expires_ms: millis(now + lifetime),
            revoked: false,
        };
        let sequence = self.next_token;
        let identifier = record.identifier(sequence).to_bytes();
        let password = key.sign(&identifier);
        self.next_token += 1;
        self.tokens.insert(sequence, record);
        Ok((sequence, Token { identifier, password }))
    }

    /// Revokes a token.
    pub fn revoke_token(&mut self, sequence: u64) -> Result<()> {
        let record = self.tokens.get_mut(&sequence);
        let record = record.ok_or_else(|| Error::Missing(format!("there is no token {sequence}")))?;
        record.revoked = true;
        Ok(())
    }

    /// Revokes all tokens of a user, and returns how many were valid before.
    pub fn revoke_tokens_of(&mut self, name: &str) -> Result<usize> {
        self.change(name)?;
        let records = self.tokens.values_mut();
        let valid = records.filter(|record| record.user == name && !record.revoked);
        Ok(valid.map(|record| record.revoked = true).count())
    }

    /// Makes a new key for new tokens. Keys without a token are dropped.
    pub fn roll_key(&mut self) -> Result<()> {
        let id = self.keys.last().map_or(1, |key| key.id + 1);
        self.keys
            .retain(|key| self.tokens.values().any(|record| record.key_id == key.id));
        self.keys.push(TokenKey::random(id)?);
        Ok(())
    }

    /// Drops all keys, which ends all tokens: for a key that may have leaked.
    pub fn drop_keys(&mut self) -> Result<()> {
        self.tokens.clear();
        self.roll_key()
    }

    /// Sets the rule by which a user acts for others; the user's former rule is replaced.
    pub fn set_proxy(&mut self, rule: ProxyRule) -> Result<()> {
        self.change(&rule.proxy)?;
        self.proxies.retain(|other| other.proxy != rule.proxy);
        self.proxies.push(rule);
        Ok(())
    }

    /// Removes the rule by which a user acts for others.
    pub fn remove_proxy(&mut self, proxy: &str) -> Result<()> {
        let before = self.proxies.len();
        self.proxies.retain(|rule| rule.proxy != proxy);
        if self.proxies.len() < before {
            return Ok(());
        }
        Err(Error::Missing(format!("user {proxy} has no proxy rule")))
    }

    fn change(&mut self, name: &str) -> Result<&mut User> {
        let user = self.by_name.get_mut(name);
        user.ok_or_else(|| Error::Missing(format!("there is no user {}", name.escape_debug())))
    }
}

impl TokenRecord {
    /// The identifier that was signed.
    fn identifier(&self, sequence: u64) -> TokenIdentifier {
        TokenIdentifier {
            kind: 0,
            username: self.user.clone().into_bytes(),
            key_id: self.key_id,
            issue_date: i64::try_from(self.issued_ms).ok(),
            expiration_date: i64::try_from(self.expires_ms).ok(),
            sequence_number: i64::try_from(sequence).ok(),
        }
    }
}

fn sorted_groups(mut groups: Vec<String>) -> Result<Vec<String>> {
    groups.iter().try_for_each(|group| check_name("group", group))?;
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

/// Checks the name of a user or group: 1 to [`NAME_BYTES_MAX`] bytes, without spaces and control
/// characters, and without `,` (`hbase:acl` separates by it), `:` (HTTP does) and a leading `@` (it
/// marks groups).
pub fn check_name(what: &str, name: &str) -> Result<()> {
    let is_bad = |letter: char| letter.is_whitespace() || letter.is_control() || matches!(letter, ',' | ':');
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('@') && !name.contains(is_bad) {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
    Err(Error::Invalid(format!(
        "the name {shown:?} is not acceptable: the name of a {what} has 1 to {NAME_BYTES_MAX} bytes, no spaces, control \
         characters, commas or colons, and does not begin with @"
    )))
}

#[cfg(test)]
mod tests;
