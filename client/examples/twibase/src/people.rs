//! Users, and who follows whom.

use super::keys::{hash, related, relation};
use super::store::{NewRow, Rows, Store};
use super::{BATCH, FAMILY, Twibase, User, check_name, qualifier, text_of};
use basalt_client::{Error, IntoBytes, Result, Row, counter_from_value};

/// Someone who follows or is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The row key in `users`.
    pub key: super::keys::Hash,
    /// The name.
    pub name: String,
}

impl<S: Store> Twibase<S> {
    /// Adds a user; false if the name is taken.
    pub async fn join(&self, user: &User) -> Result<bool> {
        check_name(&user.name)?;
        let cells = [
            (qualifier::NAME, &user.name),
            (qualifier::FULL_NAME, &user.full_name),
            (qualifier::EMAIL, &user.email),
        ];
        let cells = cells.map(|(qualifier, text)| (qualifier, text.into_bytes()));
        let row = NewRow {
            key: hash(&user.name).into_bytes(),
            cells: cells.into(),
            is_copy: false,
        };
        self.users.put_unless_there(row).await
    }

    /// A user, `None` if there is none of this name.
    pub async fn user(&self, name: &str) -> Result<Option<User>> {
        check_name(name)?;
        let Some(row) = self.users.get(hash(name).into_bytes()).await? else {
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
        let keys = names.iter().map(|name| hash(name).into_bytes());
        let found = self.users.have(keys.collect(), qualifier::NAME).await?;
        match names.iter().zip(found).find(|(_, found)| !found) {
            Some((name, _)) => Err(Error::InvalidRequest(format!(
                "there is no user with the name {name}"
            ))),
            None => Ok(()),
        }
    }

    /// Lets one user follow another. Repeating it has no effect.
    pub async fn follow(&self, follower: &str, followed: &str) -> Result<()> {
        self.check_users(&[follower, followed]).await?;
        self.follow_all(&[(follower.to_owned(), followed.to_owned())])
            .await
    }

    /// Lets users follow others, given as pairs, follower first, in few calls. Names are not looked
    /// up.
    pub async fn follow_all(&self, pairs: &[(String, String)]) -> Result<()> {
        for (follower, followed) in pairs {
            check_name(follower)?;
            check_name(followed)?;
        }
        let row = |one: &str, other: &str| NewRow {
            key: relation(hash(one), hash(other)).into_bytes(),
            cells: vec![(qualifier::NAME, other.into_bytes())],
            is_copy: false,
        };
        for pairs in pairs.chunks(BATCH) {
            let follows = pairs.iter().map(|(follower, followed)| row(follower, followed));
            self.follows.put(follows.collect()).await?;
            let followed_by = pairs.iter().map(|(follower, followed)| row(followed, follower));
            self.followed_by.put(followed_by.collect()).await?;
        }
        Ok(())
    }

    /// Ends it. Copies of twits that were delivered before stay in the follower's stream.
    pub async fn unfollow(&self, follower: &str, followed: &str) -> Result<()> {
        check_name(follower)?;
        check_name(followed)?;
        let (one, other) = (hash(follower), hash(followed));
        self.follows.delete(relation(one, other).into_bytes()).await?;
        self.followed_by.delete(relation(other, one).into_bytes()).await
    }

    /// Whether A follows B: one get, however many A follows.
    pub async fn is_following(&self, follower: &str, followed: &str) -> Result<bool> {
        check_name(follower)?;
        check_name(followed)?;
        let key = relation(hash(follower), hash(followed));
        let keys = vec![key.into_bytes()];
        Ok(self.follows.have(keys, qualifier::NAME).await? == [true])
    }

    /// Whom a user follows, in the order of keys; at most `limit`.
    pub async fn following(&self, name: &str, limit: usize) -> Result<Vec<Person>> {
        self.relations(&self.follows, name, limit).await
    }

    /// The followers of a user, in the order of keys; at most `limit`.
    pub async fn followers(&self, name: &str, limit: usize) -> Result<Vec<Person>> {
        self.relations(&self.followed_by, name, limit).await
    }

    async fn relations(&self, table: &S, name: &str, limit: usize) -> Result<Vec<Person>> {
        check_name(name)?;
        let of = hash(name);
        if limit == 0 {
            return Ok(Vec::new());
        }
        if limit <= BATCH {
            let rows = table.first(&of, limit).await?;
            return Ok(rows.iter().filter_map(person).collect());
        }
        let mut rows = table.scan(&of, limit)?;
        let mut people = Vec::new();
        while let Some(row) = rows.next().await? {
            people.extend(person(&row));
        }
        Ok(people)
    }

    /// The number of a user's next twit.
    pub(super) async fn next_number(&self, name: &str) -> Result<u32> {
        let key = hash(name);
        let number = self.users.count_up(key.into_bytes(), qualifier::TWITS).await?;
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
