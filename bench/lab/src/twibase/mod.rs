//! `twibase`: the example application of the client library ([`basalt_twibase`]) under measurement.
//!
//! | part | ways |
//! | --- | --- |
//! | `follows` | who is followed as columns of a wide row, or as rows of a tall table |
//! | `is-following` | by a get, or by reading the list, tall and wide |
//! | `feed` | gathered from everyone who is followed, or read from copies that were delivered; a celebrity's twit |
//!
//! All parts share one population, which is made first: every user follows the same number of
//! others, and a tenth of them the celebrity, who has `--followers` more. `follows` and
//! `is-following` also share the wide tables.

mod feed;
mod follows;
mod population;
mod thrift1;

use basalt_client::{Client, FamilySchema};
use basalt_load::error::{During, Result};
use basalt_load::report::{self, Head};
use basalt_load::target::Api;
use basalt_twibase::store::Store;
use basalt_twibase::{FAMILY, TABLES, Twibase};
use clap::ValueEnum;

use crate::claims::{self, LabReport};
use crate::{Lab, LabOptions};
use population::Population;
use thrift1::Thrift1Store;

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

/// Put the designs of a Twitter-like application to the test: wide against tall relations, and feeds gathered
/// on read against copies written to every follower.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    lab: LabOptions,
    /// Parts to test, in this order.
    #[arg(long, value_delimiter = ',', default_value = "follows,is-following,feed")]
    parts: Vec<Part>,
    /// Users who write and read.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(20..=10_000_000))]
    users: u32,
    /// Users that each of them follows.
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
struct Run<S> {
    lab: Lab,
    arguments: Arguments,
    twibase: Twibase<S>,
    /// Full names, in the order of [`TABLES`].
    tables: Vec<String>,
    /// The relations as wide rows; empty if no part asks for them.
    wide_tables: Vec<String>,
    population: Population,
}

/// Runs the parts and writes the report.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.lab.load.out.clone();
    report::create_dir(&out)?;
    claims::write(&out, &measure(arguments).await?)
}

/// Runs the parts.
pub(crate) async fn measure(arguments: Arguments) -> Result<LabReport> {
    arguments.lab.load.target.need_thrift("twibase")?;
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
    match arguments.lab.load.target.api {
        Api::Thrift1 => run_parts(lab, arguments, &mut report, Thrift1Store::of).await?,
        Api::Thrift2 | Api::Native => run_parts(lab, arguments, &mut report, Client::table).await?,
    }
    Ok(report)
}

/// The name of one of the application's tables in this run, behind the prefix of all.
fn prefixed(name: &str) -> String {
    format!("twibase_{name}")
}

async fn run_parts<S: Store>(
    lab: Lab,
    arguments: Arguments,
    report: &mut LabReport,
    table: fn(&Client, &str) -> basalt_client::Result<S>,
) -> Result<()> {
    let run = Run::prepare(lab, arguments, table).await?;
    for part in run.arguments.parts.clone() {
        report.parts.push(match part {
            Part::Follows => run.follows().await?,
            Part::IsFollowing => run.is_following().await?,
            Part::Feed => run.feed().await?,
        });
    }
    run.lab.drop_tables(&run.wide_tables).await?;
    run.lab.drop_tables(&run.tables).await
}

impl<S: Store> Run<S> {
    /// Makes the tables and the population.
    async fn prepare(
        lab: Lab,
        arguments: Arguments,
        table: fn(&Client, &str) -> basalt_client::Result<S>,
    ) -> Result<Run<S>> {
        let mut tables = Vec::new();
        for name in TABLES {
            let family = FamilySchema::new(FAMILY);
            tables.push(lab.create(&prefixed(name), vec![family], true).await?);
        }
        let twibase = Twibase::on(|name| table(&lab.target.client, &lab.table(&prefixed(name))));
        let twibase = twibase.during(|| "names of tables".to_owned())?;
        let population = Population {
            users: arguments.users,
            following: arguments.following,
            fans: arguments.followers,
        };
        let mut run = Run {
            lab,
            arguments,
            twibase,
            tables,
            wide_tables: Vec::new(),
            population,
        };
        run.populate().await?;
        if run.arguments.parts.iter().any(|part| *part != Part::Feed) {
            run.wide_tables = run.make_wide_tables().await?;
        }
        Ok(run)
    }
}
