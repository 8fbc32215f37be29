//! The row keys: bytes that other programs can compute too.
//!
//! ```text
//! user, tag     MD5(name), 16 bytes
//! relation      MD5(one) | MD5(other)
//! twit          MD5(author) | i64::MAX - milliseconds, 8 bytes | u32::MAX - number, 4 bytes
//! copy          MD5(reader or tag) | i64::MAX - milliseconds | MD5(author) | u32::MAX - number
//! ```
//!
//! Keys of copies sort by time from new to old, then by author, then by number from high to low.
//! This is the order of all feeds ([`FeedOrder`]).

use md5::{Digest, Md5};

/// Bytes of the key of a user or tag.
pub const HASH_BYTES: usize = 16;

/// The key of a user or tag.
pub type Hash = [u8; HASH_BYTES];

/// The key of a user, and the first part of keys of the user's rows in other tables; of a tag,
/// without the `#`, likewise.
pub fn hash(name: &str) -> Hash {
    Md5::digest(name.as_bytes()).into()
}

/// The key of a relation: in `follows` the follower stands first, in `followedBy` the followed.
pub fn relation(one: Hash, other: Hash) -> Vec<u8> {
    [one, other].concat()
}

/// The second part of a relation's key; `None` if it is not one.
pub fn related(row: &[u8]) -> Option<Hash> {
    row.get(HASH_BYTES..)?.try_into().ok()
}

/// The place of a twit in a feed: feeds are shown in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedOrder {
    reversed_time: u64,
    author: Hash,
    reversed_number: u32,
}

impl FeedOrder {
    /// The order of a twit. A negative time counts as 0.
    pub fn new(author: Hash, time_ms: i64, number: u32) -> FeedOrder {
        FeedOrder {
            reversed_time: i64::MAX.unsigned_abs() - u64::try_from(time_ms).unwrap_or_default(),
            author,
            reversed_number: u32::MAX - number,
        }
    }

    /// Milliseconds since 1970.
    pub fn time_ms(&self) -> i64 {
        let time = i64::MAX.unsigned_abs().saturating_sub(self.reversed_time);
        i64::try_from(time).unwrap_or_default()
    }

    /// The number among the author's twits.
    pub fn number(&self) -> u32 {
        u32::MAX - self.reversed_number
    }

    /// The row key in `twits`.
    pub fn twit_key(&self) -> Vec<u8> {
        let time = self.reversed_time.to_be_bytes();
        [&self.author[..], &time, &self.reversed_number.to_be_bytes()].concat()
    }

    /// The row key of a copy for a reader or a tag.
    pub fn copy_key(&self, of: Hash) -> Vec<u8> {
        let time = self.reversed_time.to_be_bytes();
        let number = self.reversed_number.to_be_bytes();
        [&of[..], &time, &self.author, &number].concat()
    }

    /// The order of a row of `twits`; `None` if its key is not a twit's.
    pub fn of_twit(row: &[u8]) -> Option<FeedOrder> {
        let (author, rest) = row.split_at_checked(HASH_BYTES)?;
        let (time, number) = rest.split_at_checked(8)?;
        FeedOrder::of_parts(time, author, number)
    }

    /// The order of a row of `twitsStream` or `tags`; `None` if its key is not a copy's.
    pub fn of_copy(row: &[u8]) -> Option<FeedOrder> {
        let (time, rest) = row.get(HASH_BYTES..)?.split_at_checked(8)?;
        let (author, number) = rest.split_at_checked(HASH_BYTES)?;
        FeedOrder::of_parts(time, author, number)
    }

    fn of_parts(time: &[u8], author: &[u8], number: &[u8]) -> Option<FeedOrder> {
        Some(FeedOrder {
            reversed_time: u64::from_be_bytes(time.try_into().ok()?),
            author: author.try_into().ok()?,
            reversed_number: u32::from_be_bytes(number.try_into().ok()?),
        })
    }
}
