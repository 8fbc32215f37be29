//! `twibase`: the example application of the client library ([`basalt_client::twibase`]) under measurement.
//!
//! | part | ways |
//! | --- | --- |
//! | `follows` | who is followed as columns of a wide row, or as rows of a tall table |
//! | `is-following` | by a get, or by reading the list, tall and wide |
//! | `feed` | gathered from everyone who is followed, or read from copies that were delivered; a celebrity's twit |
//!
//! All parts share one population, which is made first: every user follows so many others, a tenth of them the celebrity
//! too, who has `--followers` more.

mod feed;
mod follows;
mod population;

use basalt_client::twibase::Twibase;
use clap::ValueEnum;

use crate::error::{During, Result};
use crate::lab::{Lab, LabOptions};
use crate::report::lab::LabReport;
use crate::report::{self, Head};
use population::Population;

/// The parts by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Wide against tall.
    Follows,
    /// By get or by scan.
    IsFollowing,
    /// Gathered or delivered.
    Feed,
}

/// Put the designs of a Twitter-like application to the test: wide against tall relations, and feeds gathered on read against
/// copies written to every follower.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    lab: LabOptions,
    /// What to test, in this order.
    #[arg(long, value_delimiter = ',', default_value = "follows,is-following,feed")]
    parts: Vec<Part>,
    /// Users who write and read.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(20..=10_000_000))]
    users: u32,
    /// How many each of them follows.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    following: u32,
    /// Followers of the celebrity besides them.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    followers: u32,
    /// Twits that are posted by users.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    twits: u64,
    /// Twits of the celebrity.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    celebrity_twits: u64,
    /// Twits of a feed.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    feed_twits: u16,
    /// Questions of each kind.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    questions: u64,
}

/// A run: its parts are methods, one file each.
struct Run {
    lab: Lab,
    arguments: Arguments,
    twibase: Twibase,
    population: Population,
}

/// Runs the parts and writes the report.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.lab.load.out.clone();
    report::create_dir(&out)?;
    report::lab::write(&out, &measure(arguments).await?)
}

/// Runs the parts.
pub(crate) async fn measure(arguments: Arguments) -> Result<LabReport> {
    arguments.lab.load.target.need_thrift2("twibase")?;
    let lab = Lab::connect(&arguments.lab).await?;
    let head = Head::new("twibase", &lab.target, &arguments.lab.load.target);
    let mut report = LabReport::new(head, "How is a feed stored?");
    lab.describe(&mut report);
    report.set("users", arguments.users);
    report.set("following", arguments.following);
    report.set("followers", arguments.followers);
    report.set("twits", arguments.twits);
    report.set("celebrity-twits", arguments.celebrity_twits);
    report.set("feed-twits", arguments.feed_twits);
    report.set("questions", arguments.questions);
    let run = Run::prepare(lab, arguments).await?;
    for part in run.arguments.parts.clone() {
        report.parts.push(match part {
            Part::Follows => run.follows().await?,
            Part::IsFollowing => run.is_following().await?,
            Part::Feed => run.feed().await?,
        });
    }
    run.finish().await?;
    Ok(report)
}

impl Run {
    /// Makes the tables and the population.
    async fn prepare(lab: Lab, arguments: Arguments) -> Result<Run> {
        let prefix = lab.table("twibase_");
        let twibase = Twibase::new(&lab.target.client, &prefix);
        let twibase = twibase.during(|| format!("name of tables {prefix}"))?;
        if arguments.lab.replace_tables {
            let dropped = twibase.drop_tables().await;
            dropped.during(|| "dropping the tables".to_owned())?;
        }
        let created = twibase.create_tables(1).await;
        created
            .during(|| format!("creating tables {prefix}: --replace-tables drops those that are there"))?;
        let population = Population {
            users: arguments.users,
            following: arguments.following,
            fans: arguments.followers,
        };
        let run = Run {
            lab,
            arguments,
            twibase,
            population,
        };
        run.populate().await?;
        Ok(run)
    }

    async fn finish(&self) -> Result<()> {
        if self.arguments.lab.keep_tables {
            return Ok(());
        }
        let dropped = self.twibase.drop_tables().await;
        dropped.during(|| "dropping the tables".to_owned())
    }

    /// The full name of one of the application's tables, by its place in [`basalt_client::twibase::TABLES`].
    fn table(&self, place: usize) -> String {
        self.twibase.tables()[place].name().to_string()
    }
}
