//! `orders`: how are relations stored, if a row can be found by its key only?
//!
//! Each part stores the same data in several ways, asks all of them the same questions, compares
//! the answers, and measures the cost of a question: calls, bytes, rows that the server read,
//! latency; and the cost of writing the data.
//!
//! | part | relation | ways |
//! | --- | --- | --- |
//! | `many-to-many` | students and courses | the relation as columns in both tables; a table of the relation, in both directions or in one |
//! | `one-to-one` | person and card | two tables; one |
//! | `one-to-many` | order and items | two tables; one, with the items as columns |
//! | `index` | orders of a city in a state | a scan with a filter; an index table; one that holds
//! the requested columns |

mod index;
mod many_to_many;
mod one_to_many;
mod one_to_one;

use basalt_load::error::Result;
use basalt_load::load::choose::fnv_hash;
use basalt_load::report::{self, Head};
use basalt_load::session::{Column, RowCells};
use bytes::Bytes;
use clap::ValueEnum;

use crate::claims::{self, LabReport, PartReport, Way};
use crate::{Filled, Lab, LabOptions};

/// The family of a thing's own columns.
const INFO: &str = "i";
/// The family of its relations.
const RELATED: &str = "r";
/// Rows fetched by one call of a scan.
const ROWS_PER_FETCH: i32 = 1_000;

/// The parts by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Students and courses.
    ManyToMany,
    /// Person and card.
    OneToOne,
    /// Order and items.
    OneToMany,
    /// A query with several conditions.
    Index,
}

/// Compare ways to store relations: many-to-many, one-to-one, one-to-many, and an index for a query with
/// several conditions.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    lab: LabOptions,
    /// Parts to compare, in this order.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "many-to-many,one-to-one,one-to-many,index"
    )]
    parts: Vec<Part>,
    /// Students, persons or orders.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    rows: u64,
    /// Courses; each student takes --relations of them.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    courses: u64,
    /// Courses of a student, items of an order.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    relations: u64,
    /// Questions of each kind; those that read a whole table are asked a hundredth as often.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    questions: u64,
}

/// A run: its parts are methods, one file each.
struct Run {
    lab: Lab,
    arguments: Arguments,
}

/// Runs the parts and writes the report.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let out = arguments.lab.load.out.clone();
    report::create_dir(&out)?;
    claims::write(&out, &measure(arguments).await?)
}

/// Runs the parts.
pub(crate) async fn measure(arguments: Arguments) -> Result<LabReport> {
    let lab = Lab::connect(&arguments.lab).await?;
    let head = Head::new("orders", &lab.target, &arguments.lab.load.target);
    let mut report = LabReport::new(head, "How are relations stored?");
    lab.describe(&mut report);
    report.set("rows", arguments.rows);
    report.set("courses", arguments.courses);
    report.set("relations", arguments.relations);
    report.set("questions", arguments.questions);
    let run = Run { lab, arguments };
    for part in run.arguments.parts.clone() {
        report.parts.push(run.part(part).await?);
    }
    Ok(report)
}

impl Run {
    async fn part(&self, part: Part) -> Result<PartReport> {
        match part {
            Part::ManyToMany => self.many_to_many().await,
            Part::OneToOne => self.one_to_one().await,
            Part::OneToMany => self.one_to_many().await,
            Part::Index => self.index().await,
        }
    }

    /// Questions that read a whole table.
    fn few_questions(&self) -> u64 {
        self.arguments.questions.div_ceil(100)
    }
}

/// The cost of writing, as figures.
fn describe_writing(way: &mut Way, filled: Filled, things: u64) {
    let things = things.max(1) as f64;
    way.figure("written_bytes_each", filled.bytes / things);
    way.figure("load_seconds", filled.seconds);
}

/// A key of a kind of thing: its letter and eight digits.
fn key(kind: char, number: u64) -> Bytes {
    Bytes::from(format!("{kind}{number:08}"))
}

/// A cell of text.
fn cell(family: &'static str, qualifier: impl Into<Bytes>, value: impl Into<Bytes>) -> (Column, Bytes) {
    (Column::new(family, qualifier), value.into())
}

fn row(key: Bytes, cells: Vec<(Column, Bytes)>) -> RowCells {
    RowCells { key, cells }
}

/// The thing that question `index` is about.
fn chosen(index: u64, things: u64) -> u64 {
    fnv_hash(index) % things
}
