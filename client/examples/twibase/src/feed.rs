//! Twits, and the two ways to a feed.
//!
//! Delivering: each follower gets a copy in `twitsStream`, a thousand in a call. A feed is then the first
//! rows of its reader.
//!
//! Gathering: the newest twits of everyone who is followed are asked for, 16 at once, each in one call, and
//! merged. A source never needs to give more twits than the feed shows.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::keys::{FeedOrder, Hash, hash};
use super::store::{NewRow, Rows, Store};
use super::{BATCH, Twibase, Twit, check_name, check_text, qualifier, text_of};
use basalt_client::keys::merge::merge_iterators;
use basalt_client::{Error, IntoBytes, Result, Row};

/// Sources of a gathered feed that are asked at once.
const GATHER_AT_ONCE: usize = 16;

/// A twit that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The twit, with its number.
    pub twit: Twit,
    /// Followers who got a copy.
    pub copies: u64,
}

impl Twit {
    /// The place in a feed.
    pub fn order(&self) -> FeedOrder {
        FeedOrder::new(hash(&self.author), self.time_ms, self.number)
    }

    /// The tags in the text: words that begin with `#`, without it, lower case, each once.
    pub fn tags(&self) -> Vec<String> {
        let words = self
            .text
            .split(|c: char| !(c.is_alphanumeric() || "_#".contains(c)));
        let tags = words.filter_map(|word| word.strip_prefix('#'));
        let mut tags: Vec<String> = tags
            .filter(|tag| check_name(tag).is_ok())
            .map(str::to_lowercase)
            .collect();
        tags.sort();
        tags.dedup();
        tags
    }

    fn row(&self, key: Vec<u8>, is_copy: bool) -> NewRow {
        let author = (&self.author).into_bytes();
        let text = (&self.text).into_bytes();
        NewRow {
            key: key.into_bytes(),
            cells: vec![(qualifier::AUTHOR, author), (qualifier::TEXT, text)],
            is_copy,
        }
    }

    fn of(row: &Row, order: FeedOrder) -> Twit {
        Twit {
            author: text_of(row, qualifier::AUTHOR),
            time_ms: order.time_ms(),
            number: order.number(),
            text: text_of(row, qualifier::TEXT),
        }
    }
}

impl<S: Store> Twibase<S> {
    /// Publishes a twit and delivers it to all followers.
    pub async fn post(&self, author: &str, text: &str, time_ms: i64) -> Result<Posted> {
        let twit = self.publish(author, text, time_ms).await?;
        let copies = self.deliver(&twit).await?;
        Ok(Posted { twit, copies })
    }

    /// Writes a twit and its copies by tag. Followers find it by [`Twibase::feed_gathered`] only.
    pub async fn publish(&self, author: &str, text: &str, time_ms: i64) -> Result<Twit> {
        check_text(text)?;
        if time_ms < 0 {
            return Err(Error::InvalidRequest(format!("time {time_ms} ms is before 1970")));
        }
        self.check_users(&[author]).await?;
        let twit = Twit {
            author: author.to_owned(),
            time_ms,
            number: self.next_number(author).await?,
            text: text.to_owned(),
        };
        let order = twit.order();
        self.twits.put(vec![twit.row(order.twit_key(), false)]).await?;
        let tags = twit.tags();
        let tags = tags.iter().map(|tag| twit.row(order.copy_key(hash(tag)), false));
        let tags: Vec<NewRow> = tags.collect();
        if !tags.is_empty() {
            self.tags.put(tags).await?;
        }
        Ok(twit)
    }

    /// Copies a twit to everyone who follows its author, and returns how many that are. Doing it again writes
    /// the same copies.
    pub async fn deliver(&self, twit: &Twit) -> Result<u64> {
        let order = twit.order();
        let mut followers = self.followed_by.scan(&hash(&twit.author), usize::MAX)?;
        let (mut copies, mut rows) = (0, Vec::with_capacity(BATCH));
        loop {
            let follower = followers.next().await?;
            let ended = follower.is_none();
            if let Some(reader) = follower.as_ref().and_then(super::people::person) {
                rows.push(twit.row(order.copy_key(reader.key), true));
            }
            if rows.len() == BATCH || (ended && !rows.is_empty()) {
                copies += rows.len() as u64;
                self.stream.put(std::mem::take(&mut rows)).await?;
            }
            if ended {
                return Ok(copies);
            }
        }
    }

    /// The newest twits that were delivered to a user: one call.
    pub async fn feed(&self, reader: &str, limit: usize) -> Result<Vec<Twit>> {
        check_name(reader)?;
        self.newest(&self.stream, hash(reader), limit, FeedOrder::of_copy)
            .await
    }

    /// The newest twits of everyone a user follows, asked of each of them.
    pub async fn feed_gathered(&self, reader: &str, limit: usize) -> Result<Vec<Twit>> {
        let mut waiting = self.following(reader, usize::MAX).await?.into_iter();
        let mut asking = JoinSet::new();
        let mut sources = Vec::new();
        let this = Arc::new(self.clone());
        loop {
            while asking.len() < GATHER_AT_ONCE
                && let Some(followed) = waiting.next()
            {
                let this = Arc::clone(&this);
                asking.spawn(async move {
                    let twits = &this.twits;
                    this.newest(twits, followed.key, limit, FeedOrder::of_twit).await
                });
            }
            match asking.join_next().await {
                Some(Ok(found)) => sources.push(found?.into_iter()),
                Some(Err(stopped)) => {
                    return Err(Error::InvalidRequest(format!("a task stopped: {stopped}")));
                }
                None => return Ok(merge(sources, limit)),
            }
        }
    }

    /// A user's newest twits.
    pub async fn twits_of(&self, author: &str, limit: usize) -> Result<Vec<Twit>> {
        check_name(author)?;
        self.newest(&self.twits, hash(author), limit, FeedOrder::of_twit)
            .await
    }

    /// The newest twits about a tag, without its `#`.
    pub async fn tagged(&self, tag: &str, limit: usize) -> Result<Vec<Twit>> {
        check_name(tag)?;
        let tag = hash(&tag.to_lowercase());
        self.newest(&self.tags, tag, limit, FeedOrder::of_copy).await
    }

    /// The first twits of a user, reader or tag. A row whose key is not of the table's kind is passed over.
    async fn newest(
        &self,
        table: &S,
        of: Hash,
        limit: usize,
        order: fn(&[u8]) -> Option<FeedOrder>,
    ) -> Result<Vec<Twit>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let rows = table.first(&of, limit).await?;
        Ok(rows
            .iter()
            .filter_map(|row| Some(Twit::of(row, order(&row.key)?)))
            .collect())
    }
}

/// The first twits of several sources that are each in the order of feeds.
pub(super) fn merge(sources: Vec<std::vec::IntoIter<Twit>>, limit: usize) -> Vec<Twit> {
    merge_iterators(sources, Twit::order).take(limit).collect()
}
