//! Users, and who follows whom.

use super::keys::{hash, related, relation};
use super::{BATCH, FAMILY, Twibase, User, check_name, qualifier, text_of};
use crate::error::{Error, Result};
use crate::request::{Check, Delete, Get, Put, Scan};
use crate::row::{Row, counter_from_value};
use crate::table::Table;

/// Someone who follows or is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The row key in `users`.
    pub key: super::keys::Hash,
    /// The name.
    pub name: String,
}

impl Twibase {
    /// Adds a user; false if the name is taken.
    pub async fn join(&self, user: &User) -> Result<bool> {
        check_name(&user.name)?;
        let put = Put::new(hash(&user.name))
            .cell(FAMILY, qualifier::NAME, &user.name)
            .cell(FAMILY, qualifier::FULL_NAME, &user.full_name)
            .cell(FAMILY, qualifier::EMAIL, &user.email);
        let free = Check::absent(FAMILY, qualifier::NAME);
        self.users.check_and_put(free, put).await
    }

    /// A user, `None` if there is none of this name.
    pub async fn user(&self, name: &str) -> Result<Option<User>> {
        check_name(name)?;
        let Some(row) = self.users.get(Get::new(hash(name))).await? else {
            return Ok(None);
        };
        let twits = match row.value(FAMILY, qualifier::TWITS) {
            Some(count) => counter_from_value(count)?,
            None => 0,
        };
        Ok(Some(User {
            name: text_of(&row, qualifier::NAME),
            full_name: text_of(&row, qualifier::FULL_NAME),
            email: text_of(&row, qualifier::EMAIL),
            twits,
        }))
    }

    /// Fails for a name that no user has.
    pub(super) async fn check_users(&self, names: &[&str]) -> Result<()> {
        for name in names {
            check_name(name)?;
        }
        let gets = names
            .iter()
            .map(|name| Get::new(hash(name)).column(FAMILY, qualifier::NAME));
        let found = self.users.exists_multiple(gets).await?;
        match names.iter().zip(found).find(|(_, found)| !found) {
            Some((name, _)) => Err(Error::InvalidRequest(format!(
                "there is no user with the name {name}"
            ))),
            None => Ok(()),
        }
    }

    /// Lets one user follow another. Doing it twice is the same as once.
    pub async fn follow(&self, follower: &str, followed: &str) -> Result<()> {
        self.check_users(&[follower, followed]).await?;
        self.follow_all(&[(follower.to_owned(), followed.to_owned())])
            .await
    }

    /// The same for many pairs, follower first, in few calls. Names are not looked up.
    pub async fn follow_all(&self, pairs: &[(String, String)]) -> Result<()> {
        for (follower, followed) in pairs {
            check_name(follower)?;
            check_name(followed)?;
        }
        let put = |one: &str, other: &str| {
            Put::new(relation(hash(one), hash(other))).cell(FAMILY, qualifier::NAME, other)
        };
        for pairs in pairs.chunks(BATCH) {
            let follows = pairs.iter().map(|(follower, followed)| put(follower, followed));
            self.follows.put_multiple(follows).await?;
            let followed_by = pairs.iter().map(|(follower, followed)| put(followed, follower));
            self.followed_by.put_multiple(followed_by).await?;
        }
        Ok(())
    }

    /// Ends it. Copies of twits that were delivered before stay in the follower's stream.
    pub async fn unfollow(&self, follower: &str, followed: &str) -> Result<()> {
        check_name(follower)?;
        check_name(followed)?;
        let (one, other) = (hash(follower), hash(followed));
        self.follows.delete(Delete::row(relation(one, other))).await?;
        self.followed_by.delete(Delete::row(relation(other, one))).await
    }

    /// Whether A follows B: one get, however many A follows.
    pub async fn is_following(&self, follower: &str, followed: &str) -> Result<bool> {
        check_name(follower)?;
        check_name(followed)?;
        let key = relation(hash(follower), hash(followed));
        self.follows.exists(Get::new(key)).await
    }

    /// Whom a user follows, in the order of keys; at most `limit`.
    pub async fn following(&self, name: &str, limit: usize) -> Result<Vec<Person>> {
        self.relations(&self.follows, name, limit).await
    }

    /// Who follows a user, in the order of keys; at most `limit`.
    pub async fn followers(&self, name: &str, limit: usize) -> Result<Vec<Person>> {
        self.relations(&self.followed_by, name, limit).await
    }

    async fn relations(&self, table: &Table, name: &str, limit: usize) -> Result<Vec<Person>> {
        check_name(name)?;
        let scan = Scan::new()
            .prefix(hash(name))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .rows_per_fetch(i32::try_from(limit.clamp(1, BATCH)).unwrap_or(1));
        if limit == 0 {
            return Ok(Vec::new());
        }
        let rows = if limit <= BATCH {
            table.first_rows(scan, limit).await?
        } else {
            table.scan(scan)?.collect().await?
        };
        Ok(rows.iter().filter_map(person).collect())
    }

    /// The number of a user's next twit.
    pub(super) async fn next_number(&self, name: &str) -> Result<u32> {
        let key = hash(name);
        let number = self
            .users
            .increment_column(key, FAMILY, qualifier::TWITS, 1)
            .await?;
        u32::try_from(number).map_err(|_| {
            Error::InvalidRequest(format!(
                "{name} has written {number} twits, at most {} fit",
                u32::MAX
            ))
        })
    }
}

/// The other side of a relation; `None` for a row that is not one.
pub(super) fn person(row: &Row) -> Option<Person> {
    Some(Person {
        key: related(&row.key)?,
        name: text_of(row, qualifier::NAME),
    })
}
