//! The load generator `basalt-bench`, and the face through which its engine benchmarks run on other engines.
//!
//! `hotspot`, `ids`, `family`, `orders`, `twibase`, `pe`, `ycsb` and `verify` load or read a server
//! through its Thrift interfaces or native RPC, which may be Basalt's or a real HBase's. `report`
//! runs all but `verify` and makes one report of them. `compare` puts two of their reports side by
//! side. `engine` opens Basalt's storage engine in this process and runs RocksDB's `db_bench`
//! benchmarks on it. `policies` simulates compaction policies. `roundtrip` sends ready-made calls, side by side with a bare TCP echo and
//! another server, as fast as they are answered or at one rate, and `overload` sends more of them
//! than the server can answer.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

#[macro_use]
mod output;

mod data;
mod error;
mod flights;
mod lab;
mod load;
mod report;
mod session;
mod tables;
mod target;
mod time_text;
mod values;
mod workload;

use error::{Error, Result};
use load::interrupt;

/// The benchmarks of `engine`, for other storage engines.
pub mod engine {
    use std::process::ExitCode;

    pub use crate::error::{Error, Result};
    pub use crate::workload::engine::*;

    /// Runs the work of the program of that name, which ends at Ctrl-C, and reports its error.
    pub fn main(program: &str, work: impl FnOnce() -> Result<()>) -> ExitCode {
        basalt_engine::fs::raise_open_files();
        crate::load::interrupt::exit_at_ctrl_c();
        crate::concluded(program, work())
    }
}

/// Load generator for Basalt and for HBase.
#[derive(Debug, Parser)]
#[command(name = "basalt-bench", version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BASALT_COMMIT"), ")"))]
struct CommandLine {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    Hotspot(Box<lab::hotspot::Arguments>),
    Ids(Box<lab::ids::Arguments>),
    Family(Box<lab::family::Arguments>),
    Orders(Box<lab::orders::Arguments>),
    Twibase(Box<lab::twibase::Arguments>),
    Pe(Box<workload::pe::Arguments>),
    Ycsb(Box<workload::ycsb::Arguments>),
    Report(lab::whole::Arguments),
    Verify(lab::verify::Arguments),
    Compare(workload::compare::Arguments),
    Engine(Box<workload::engine::BasaltArguments>),
    Policies(workload::policies::Arguments),
    Roundtrip(Box<workload::roundtrip::Arguments>),
    Overload(Box<workload::roundtrip::overload::Arguments>),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write man pages.
    Man {
        /// An existing directory.
        dir: PathBuf,
    },
}

/// Runs the command line of this process: the program `basalt-bench`.
pub fn main() -> ExitCode {
    // Some workloads have thousands of connections, and the engine has files.
    basalt_engine::fs::raise_open_files();
    let result = match CommandLine::parse().workload {
        Workload::Hotspot(arguments) => on_runtime(lab::hotspot::run(*arguments)),
        Workload::Ids(arguments) => on_runtime(lab::ids::run(*arguments)),
        Workload::Family(arguments) => on_runtime(lab::family::run(*arguments)),
        Workload::Orders(arguments) => on_runtime(lab::orders::run(*arguments)),
        Workload::Twibase(arguments) => on_runtime(lab::twibase::run(*arguments)),
        Workload::Pe(arguments) => on_runtime(workload::pe::run(*arguments)),
        Workload::Ycsb(arguments) => on_runtime(workload::ycsb::run(*arguments)),
        Workload::Report(arguments) => on_runtime(lab::whole::run(arguments)),
        Workload::Verify(arguments) => on_runtime(lab::verify::run(arguments)),
        Workload::Compare(arguments) => workload::compare::run(&arguments),
        Workload::Engine(arguments) => {
            interrupt::exit_at_ctrl_c();
            workload::engine::run_basalt(&arguments)
        }
        Workload::Policies(arguments) => {
            interrupt::exit_at_ctrl_c();
            workload::policies::run(&arguments)
        }
        Workload::Roundtrip(arguments) => on_runtime(workload::roundtrip::run(*arguments)),
        Workload::Overload(arguments) => on_runtime(workload::roundtrip::overload::run(*arguments)),
        Workload::Completions { shell } => print_completions(shell),
        Workload::Man { dir } => write_man_pages(dir),
    };
    concluded("basalt-bench", result)
}

/// Reports the error of a program's work.
fn concluded(program: &str, result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Interrupted) => tell_interrupted(),
        // The reader of the results is gone, as with `| head`: no message.
        Err(error) if error.is_closed_output() => ExitCode::FAILURE,
        Err(error) => {
            note!("{program}: {error}");
            // 2 for invalid requests, as clap's, 1 for errors during the run.
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn print_completions(shell: Shell) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "basalt-bench", &mut text);
    output::bytes(&text)
}

fn write_man_pages(dir: PathBuf) -> Result<()> {
    clap_mangen::generate_to(CommandLine::command(), &dir).map_err(|source| Error::File { path: dir, source })
}

fn on_runtime(workload: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Usage(format!("the runtime cannot start: {error}")))?;
    let outcome = runtime.block_on(interrupt::until_interrupted(workload));
    // Does not wait for tasks that still run after Ctrl-C.
    runtime.shutdown_background();
    outcome
}

/// Prints the figures of the phases so far.
fn tell_interrupted() -> ExitCode {
    let figures = interrupt::figures();
    for figure in &figures {
        // The reader of the results may be gone.
        drop(output::line(format_args!("{figure}")));
    }
    let what = if figures.is_empty() {
        "nothing has been measured yet"
    } else {
        "the figures above are all; there is no report"
    };
    note!("basalt-bench: interrupted; {what}");
    ExitCode::from(interrupt::EXIT_CODE)
}
