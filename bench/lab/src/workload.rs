//! The commands that `report` runs: the experiments, and two benchmarks of the load generator.

use basalt_load::error::Result;
use basalt_load::workload::{pe, ycsb};
use clap::Subcommand;

use crate::{family, hotspot, ids, orders, twibase};

/// A command that measures a server and has a section in the report of the whole lab.
#[derive(Debug, Subcommand)]
#[expect(
    missing_docs,
    reason = "the docs of the arguments are the help of a command; docs of a variant would replace them"
)]
pub enum Workload {
    Hotspot(Box<hotspot::Arguments>),
    Ids(Box<ids::Arguments>),
    Family(Box<family::Arguments>),
    Orders(Box<orders::Arguments>),
    Twibase(Box<twibase::Arguments>),
    Pe(Box<pe::Arguments>),
    Ycsb(Box<ycsb::Arguments>),
}

impl Workload {
    /// Runs it, and writes and prints its own report.
    pub async fn run(self) -> Result<()> {
        match self {
            Workload::Hotspot(arguments) => hotspot::run(*arguments).await,
            Workload::Ids(arguments) => ids::run(*arguments).await,
            Workload::Family(arguments) => family::run(*arguments).await,
            Workload::Orders(arguments) => orders::run(*arguments).await,
            Workload::Twibase(arguments) => twibase::run(*arguments).await,
            Workload::Pe(arguments) => pe::run(*arguments).await,
            Workload::Ycsb(arguments) => ycsb::run(*arguments).await,
        }
    }
}
