//! The home feed: gathered on read, or read from copies that were delivered on write.
//!
//! Both read one set of twits: every twit is published, which suffices for a gathered feed, and then
//! delivered. Both are measured by themselves.

use std::time::Instant;

use basalt_load::data::Data;
use basalt_load::error::{During, Result};
use basalt_load::load::choose::fnv_hash;
use basalt_load::session::Answer;
use basalt_twibase::store::Store;
use basalt_twibase::{TEXT_CHARS_MAX, Twibase};
use bytes::Bytes;

use super::Run;
use super::population::{CELEBRITY, Population, USERS_PER_FAN, user};
use crate::claims::{PartReport, Rule, Way};
use crate::{Asked, Caller, Question, compare};

/// 2026-01-01 00:00 UTC; twits follow each other by a second.
const START_MS: i64 = 1_767_225_600_000;
const MS_PER_TWIT: i64 = 1_000;

/// Publishes twit `index`, and delivers it if asked to.
struct Write<S> {
    twibase: Twibase<S>,
    population: Population,
    deliver: bool,
    /// In front of the first twit.
    offset: u64,
    data: Data,
}

/// Text of twit `place`: a flight, or its number; about one of fifty tags.
fn text(data: &Data, place: u64) -> String {
    let tag = format!(" #topic{}", place % 50);
    let about = data.text(place, || format!("Twit {place} is about"));
    let room = TEXT_CHARS_MAX - tag.len();
    about.chars().take(room).chain(tag.chars()).collect()
}

impl<S: Store> Question for Write<S> {
    async fn ask(&self, _caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        let place = self.offset + index;
        let author = user((fnv_hash(place) % u64::from(self.population.users)) as u32);
        let time_ms = START_MS + i64::try_from(place).unwrap_or_default() * MS_PER_TWIT;
        let text = text(&self.data, place);
        let twit = self.twibase.publish(&author, &text, time_ms).await?;
        let copies = if self.deliver {
            self.twibase.deliver(&twit).await?
        } else {
            0
        };
        // One piece for each row that was written for followers, so that they are counted.
        Ok(vec![Bytes::new(); usize::try_from(copies).unwrap_or_default()])
    }
}

/// Reads a user's feed.
struct Read<S> {
    twibase: Twibase<S>,
    population: Population,
    gathered: bool,
    twits: usize,
}

impl<S: Store> Question for Read<S> {
    async fn ask(&self, _caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        // One in two is a reader who follows the celebrity.
        let users = u64::from(self.population.users);
        let mut number = fnv_hash(index) % users;
        if index.is_multiple_of(2) {
            number -= number % u64::from(USERS_PER_FAN);
        }
        let reader = user(number as u32);
        let feed = if self.gathered {
            self.twibase.feed_gathered(&reader, self.twits).await?
        } else {
            self.twibase.feed(&reader, self.twits).await?
        };
        let pieces = feed
            .into_iter()
            .flat_map(|twit| [twit.author, twit.time_ms.to_string(), twit.text]);
        Ok(pieces.map(Bytes::from).collect())
    }
}

impl<S: Store> Run<S> {
    pub(super) async fn feed(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let fans = self.population.fans_of_celebrity().count();
        let mut part = PartReport::new(
            "feed",
            "The home feed: gathered on read, or copied on write?",
            format!(
                "{} users who follow {} others post {} twits, and a celebrity with {fans} followers posts {}. Each twit is \
                 published, and then copied to every follower. {} feeds of {} twits are read from the copies, and gathered \
                 from everyone who is followed.",
                arguments.users,
                arguments.following,
                arguments.twits,
                arguments.celebrity_twits,
                arguments.questions,
                arguments.feed_twits
            ),
        );
        let half = arguments.twits.div_ceil(2);
        let write = |deliver, offset| Write {
            twibase: self.twibase.clone(),
            population: self.population,
            deliver,
            offset,
            data: lab.data.clone(),
        };
        // A first half is delivered when all of it has been published, a second half as it is posted.
        let published = lab.ask_all("published", &[], half, write(false, 0)).await?;
        self.deliver_published(half).await?;
        let delivered = lab.ask_all("posted", &[], half, write(true, half)).await?;
        let celebrity = self.celebrity_posts(half * 2).await?;
        for table in &self.tables {
            lab.settle(table).await?;
        }
        let (gathered, stream) = ("gathered", "copied");
        let mut read = Vec::new();
        for (name, is_gathered) in [(gathered, true), (stream, false)] {
            let question = Read {
                twibase: self.twibase.clone(),
                population: self.population,
                gathered: is_gathered,
                twits: usize::from(arguments.feed_twits),
            };
            let label = format!("{name} feeds");
            read.push(
                lab.ask(&label, &self.tables, arguments.questions, question)
                    .await?,
            );
        }
        let [gathered_feeds, stream_feeds] = &read[..] else {
            return Ok(part);
        };
        let mut way = Way::new(gathered);
        describe_feed(&mut way, gathered_feeds);
        way.latency("post_p50_ms", "post", &published.measured);
        way.figure("rows_per_post", 1.0);
        way.figure("celebrity_post_ms", celebrity.published_s * 1e3);
        way.figure("celebrity_rows", 1.0);
        part.add(way);
        let mut way = Way::new(stream);
        describe_feed(&mut way, stream_feeds);
        way.latency("post_p50_ms", "post", &delivered.measured);
        way.figure(
            "rows_per_post",
            1.0 + delivered.each(delivered.measured.rows() as f64),
        );
        way.figure("celebrity_post_ms", celebrity.delivered_s * 1e3);
        way.figure("celebrity_rows", 1.0 + celebrity.copies);
        let median = |asked: &Asked| asked.measured.latencies().percentile(50.0) as f64;
        let dearer = median(&delivered) - median(&published);
        let cheaper = median(gathered_feeds) - median(stream_feeds);
        way.figure("feeds_per_post_to_pay", (cheaper > 0.0).then(|| dearer / cheaper));
        part.add(way);
        compare(
            &mut part,
            "feed",
            (gathered, gathered_feeds),
            (stream, stream_feeds),
        );
        let cases = [
            (
                "A feed of copies is one short scan, a gathered one asks everyone who is followed.",
                "feed_rows_read",
                [gathered, stream],
                Rule::AtLeast(2.0),
            ),
            (
                "A feed of copies is read faster.",
                "feed_p50_ms",
                [gathered, stream],
                Rule::AtLeast(2.0),
            ),
            (
                "With copies each twit is written once for every follower.",
                "rows_per_post",
                [stream, gathered],
                Rule::AtLeast(10.0),
            ),
            (
                "Posting takes longer with copies.",
                "post_p50_ms",
                [stream, gathered],
                Rule::AtLeast(1.3),
            ),
            (
                "A celebrity's twit is thousands of writes: it is better gathered.",
                "celebrity_rows",
                [stream, gathered],
                Rule::AtLeast(1_000.0),
            ),
            (
                "A celebrity's twit takes much longer to post with copies.",
                "celebrity_post_ms",
                [stream, gathered],
                Rule::AtLeast(5.0),
            ),
        ];
        for (claim, figure, ways, rule) in cases {
            part.judge(claim, figure, ways, rule);
        }
        part.notes.push(
            "Feeds per post to pay: if more feeds are read for each twit than this, copying is the cheaper way in sum of \
             medians."
                .to_owned(),
        );
        Ok(part)
    }

    /// Delivers the published twits, so that both kinds of feeds have them.
    async fn deliver_published(&self, twits: u64) -> Result<()> {
        let during = || "delivering twits".to_owned();
        for number in 0..self.population.users {
            let limit = usize::try_from(twits).unwrap_or(usize::MAX);
            for twit in self.twibase.twits_of(&user(number), limit).await.during(during)? {
                self.twibase.deliver(&twit).await.during(during)?;
            }
        }
        Ok(())
    }

    /// Figures of the celebrity's twits, after `offset` others. Medians.
    async fn celebrity_posts(&self, offset: u64) -> Result<Celebrity> {
        let during = || "posting as the celebrity".to_owned();
        let (mut published, mut delivered, mut copies) = (Vec::new(), Vec::new(), 0);
        for number in 0..self.arguments.celebrity_twits {
            let place = i64::try_from(offset + number).unwrap_or_default();
            let time_ms = START_MS + place * MS_PER_TWIT;
            let text = format!("My twit {number} #fame");
            let started = Instant::now();
            let twit = self.twibase.publish(CELEBRITY, &text, time_ms).await;
            let twit = twit.during(during)?;
            published.push(started.elapsed().as_secs_f64());
            copies = self.twibase.deliver(&twit).await.during(during)?;
            delivered.push(started.elapsed().as_secs_f64());
        }
        Ok(Celebrity {
            published_s: median(published),
            delivered_s: median(delivered),
            copies: copies as f64,
        })
    }
}

/// The cost of a twit of the celebrity.
struct Celebrity {
    published_s: f64,
    /// Publishing included.
    delivered_s: f64,
    copies: f64,
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or_default()
}

fn describe_feed(way: &mut Way, asked: &Asked) {
    way.latency("feed_p50_ms", "feed", &asked.measured);
    way.figure("feed_rows_read", asked.rows_read_each());
    way.figure("feed_blocks", asked.blocks_each());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twit_is_a_flight_or_its_number_and_keeps_its_tag() {
        assert_eq!(text(&Data::generated(), 51), "Twit 51 is about #topic1");
        assert_eq!(
            text(&Data::small_file(), 51),
            "2001-01-01T00:01:00 delay=-5 distance=100 LAS XYZ #topic1"
        );
    }

    /// A file may have names of airports that are longer than a twit.
    #[test]
    fn a_long_text_is_cut_in_front_of_its_tag() {
        let long = text(&Data::of_airport(&"é".repeat(500)), 49);
        assert_eq!(long.chars().count(), TEXT_CHARS_MAX);
        assert!(long.ends_with("é #topic49"), "{long}");
    }

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!(median(Vec::new()).abs() < 1e-9);
    }
}
