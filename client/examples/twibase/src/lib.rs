//! Twibase: a Twitter-like application on six tables, as an example of schema design that is used and
//! measured.
//!
//! ```no_run
//! # async fn example() -> basalt_client::Result<()> {
//! use basalt_client::Client;
//! use basalt_twibase::{Twibase, User};
//!
//! let client = Client::connect("127.0.0.1:9090").await?;
//! let twibase = Twibase::new(&client, "twibase_")?;
//! twibase.create_tables(1).await?;
//! for name in ["ada", "grace"] {
//!     twibase.join(&User::new(name)).await?;
//! }
//! twibase.follow("grace", "ada").await?;
//! twibase.post("ada", "The engine weaves #algebra", 1_767_225_600_000).await?;
//! assert_eq!(twibase.feed("grace", 10).await?[0].author, "ada");
//! # Ok(())
//! # }
//! ```
//!
//! | table | row key | a row is | answers |
//! | --- | --- | --- | --- |
//! | `users` | MD5(user) | a user; counts the user's twits | who is it? |
//! | `twits` | MD5(user), reversed time, reversed number | a twit | the user's latest twits? |
//! | `follows` | MD5(follower), MD5(followed) | a relation | whom does the user follow? does A
//! follow B? |
//! | `followedBy` | MD5(followed), MD5(follower) | the relation, reversed | who follows the user? |
//! | `twitsStream` | MD5(reader), reversed time, MD5(author), reversed number | a copy of a twit |
//! the latest twits of those the reader follows? |
//! | `tags` | MD5(tag), reversed time, MD5(author), reversed number | a copy of a twit | which
//! twits are the latest about a tag? |
//!
//! The sixth table is an index: none of the other five can find a twit by its text without reading
//! all of them.
//!
//! - MD5 makes keys of one length, so that one user's rows cannot be mixed with another's, and
//!   spreads users over regions.
//! - Time counts down, so a scan from the start of a user finds the newest first and stops after as many as
//!   are wanted.
//! - The number counts a user's twits, so that two within one millisecond have keys of their own.
//! - All tables have one family with a short name: columns that are read together are in one row.
//!
//! There are two ways to a feed. [`Twibase::deliver`] copies a twit to every follower, so that
//! [`Twibase::feed`] is one short scan; [`Twibase::feed_gathered`] copies nothing and reads from
//! every followed user. Both return the same twits in the same order, except that copies begin with
//! the follow, and stay after its end.
//!
//! The application needs little from a table: [`store::Store`] has all of it, so other
//! implementations than this client's [`Table`] are possible.
//!
//! A change of several rows is not atomic. Repeating a change completes it: relations before their
//! mirror, twits before their copies.

mod feed;
pub mod keys;
mod people;
pub mod store;

use basalt_client::keys::presplit::SplitAlgorithm;
use basalt_client::{Client, Error, FamilySchema, Result, Row, Table, TableSchema};

pub use feed::Posted;
pub use people::Person;
use store::Store;

/// The one family of every table.
pub const FAMILY: &str = "f";
/// Most characters of a user's name or of a tag.
pub const NAME_CHARS_MAX: usize = 30;
/// Most characters of a twit.
pub const TEXT_CHARS_MAX: usize = 280;
/// Rows written or fetched in one call.
pub const BATCH: usize = 1_000;

/// The names of the tables, behind the prefix.
pub const TABLES: [&str; 6] = ["users", "twits", "follows", "followedBy", "twitsStream", "tags"];

/// Qualifiers of [`FAMILY`]: of users, of relations, of twits and their copies.
mod qualifier {
    pub(super) const NAME: &str = "n";
    pub(super) const FULL_NAME: &str = "fn";
    pub(super) const EMAIL: &str = "e";
    pub(super) const TWITS: &str = "tw";
    pub(super) const AUTHOR: &str = "a";
    pub(super) const TEXT: &str = "t";
}

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Unique: letters, digits and `_`.
    pub name: String,
    /// Full name, for display.
    pub full_name: String,
    /// Where to write to.
    pub email: String,
    /// Number of the user's twits.
    pub twits: i64,
}

impl User {
    /// A user with only a name.
    pub fn new(name: impl Into<String>) -> User {
        User {
            name: name.into(),
            ..User::default()
        }
    }
}

/// A twit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twit {
    /// Name of the author.
    pub author: String,
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// Counts the author's twits, from 1.
    pub number: u32,
    /// Text of the twit.
    pub text: String,
}

/// The application on its six tables. Cheap to clone; clones share the client's connections.
#[derive(Clone, Debug)]
pub struct Twibase<S = Table> {
    users: S,
    twits: S,
    follows: S,
    followed_by: S,
    stream: S,
    tags: S,
}

impl<S: Store> Twibase<S> {
    /// The application on the tables that `table` has for the names of [`TABLES`], each with the one family
    /// [`FAMILY`].
    pub fn on(table: impl FnMut(&str) -> Result<S>) -> Result<Twibase<S>> {
        let [users, twits, follows, followed_by, stream, tags] = TABLES.map(table);
        Ok(Twibase {
            users: users?,
            twits: twits?,
            follows: follows?,
            followed_by: followed_by?,
            stream: stream?,
            tags: tags?,
        })
    }

    /// The tables, in the order of [`TABLES`].
    pub fn tables(&self) -> [&S; 6] {
        [
            &self.users,
            &self.twits,
            &self.follows,
            &self.followed_by,
            &self.stream,
            &self.tags,
        ]
    }
}

impl Twibase {
    /// The application on tables whose names begin with `prefix`, which may have a namespace in
    /// front. Sends nothing to the server.
    pub fn new(client: &Client, prefix: &str) -> Result<Twibase> {
        Twibase::on(|name| client.table(&format!("{prefix}{name}")))
    }

    fn client(&self) -> &Client {
        self.users.client()
    }

    /// Creates the tables, each with `regions` regions split evenly over MD5. Fails, and creates none, if one
    /// is there already.
    pub async fn create_tables(&self, regions: usize) -> Result<()> {
        let splits = SplitAlgorithm::Uniform.split_keys(regions);
        let splits = splits.map_err(|error| Error::InvalidRequest(error.to_string()))?;
        for table in self.tables() {
            let name = table.name().to_string();
            if self.client().table_exists(&name).await? {
                return Err(Error::InvalidRequest(format!("table {name} already exists")));
            }
        }
        for table in self.tables() {
            let schema = TableSchema::new(&table.name().to_string())?.family(FamilySchema::new(FAMILY));
            self.client().create_table_split(schema, splits.clone()).await?;
        }
        Ok(())
    }

    /// Drops those of the tables that are there.
    pub async fn drop_tables(&self) -> Result<()> {
        for table in self.tables() {
            let name = table.name().to_string();
            if !self.client().table_exists(&name).await? {
                continue;
            }
            if self.client().is_table_enabled(&name).await? {
                self.client().disable_table(&name).await?;
            }
            self.client().drop_table(&name).await?;
        }
        Ok(())
    }
}

/// Fails unless `name` can be a user's.
fn check_name(name: &str) -> Result<()> {
    let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if fits && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Ok(());
    }
    Err(Error::InvalidRequest(format!(
        "name '{name}' is not one of 1 to {NAME_CHARS_MAX} letters, digits and '_'"
    )))
}

/// Fails unless `text` can be a twit.
fn check_text(text: &str) -> Result<()> {
    let chars = text.chars().count();
    if (1..=TEXT_CHARS_MAX).contains(&chars) {
        return Ok(());
    }
    Err(Error::InvalidRequest(format!(
        "twit has {chars} characters, at least 1 and at most {TEXT_CHARS_MAX} are allowed"
    )))
}

/// The text of a column, empty if it is not there.
fn text_of(row: &Row, qualifier: &str) -> String {
    row.value(FAMILY, qualifier)
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
