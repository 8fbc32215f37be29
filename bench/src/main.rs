//! The load generator `basalt-bench`: its command line, and the runtime that its workloads run on.
//!
//! `hotspot`, `ids`, `family`, `orders`, `twibase`, `pe`, `ycsb` and `verify` load or read a server through
//! its Thrift interfaces or native RPC, which may be Basalt's or a real HBase's. `report` runs all but
//! `verify` and makes one report of them. `model` measures a schema that a file describes. `compare` puts two
//! of their reports side by side. `engine` opens Basalt's storage engine in this process and runs RocksDB's
//! `db_bench` benchmarks on it. `roundtrip` sends ready-made calls, side by side with a bare TCP echo and
//! another server, as fast as they are answered or at one rate, and `overload` sends more of them than the
//! server can answer.
//!
//! [`basalt_lab`], the schema lab, has the experiments, `report`, `model` and `verify`; [`basalt_load`], the
//! load generator, has the other workloads.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use basalt_load::engine::{self, BasaltArguments};
use basalt_load::error::{Error, Result};
use basalt_load::load::interrupt;
use basalt_load::workload::compare;
use basalt_load::workload::roundtrip::{self, overload};
use basalt_load::{exit, output};
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

const PROGRAM: &str = "basalt-bench";

/// Load generator for Basalt and for HBase.
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BASALT_COMMIT"), ")"))]
struct CommandLine {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Those that `report` runs.
    #[command(flatten)]
    Measured(basalt_lab::Workload),
    Report(basalt_lab::whole::Arguments),
    Model(Box<basalt_lab::model::Arguments>),
    Verify(basalt_lab::verify::Arguments),
    Compare(compare::Arguments),
    Engine(Box<BasaltArguments>),
    Roundtrip(Box<roundtrip::Arguments>),
    Overload(Box<overload::Arguments>),
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

fn main() -> ExitCode {
    // Some workloads have thousands of connections, and the engine has files.
    basalt_engine::fs::raise_open_files();
    let result = match CommandLine::parse().workload {
        Workload::Measured(workload) => on_runtime(workload.run()),
        Workload::Report(arguments) => on_runtime(basalt_lab::whole::run(arguments)),
        Workload::Model(arguments) => on_runtime(basalt_lab::model::run(*arguments)),
        Workload::Verify(arguments) => on_runtime(basalt_lab::verify::run(arguments)),
        Workload::Compare(arguments) => compare::run(&arguments),
        Workload::Engine(arguments) => {
            interrupt::exit_at_ctrl_c(PROGRAM);
            engine::run_basalt(&arguments)
        }
        Workload::Roundtrip(arguments) => on_runtime(roundtrip::run(*arguments)),
        Workload::Overload(arguments) => on_runtime(overload::run(*arguments)),
        Workload::Completions { shell } => print_completions(shell),
        Workload::Man { dir } => write_man_pages(dir),
    };
    exit::concluded(PROGRAM, result)
}

fn print_completions(shell: Shell) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), PROGRAM, &mut text);
    output::bytes(&text)
}

/// Sections of the program's man page that its command line does not have.
const MAN_SECTIONS: &[u8] = include_bytes!("man.roff");

fn write_man_pages(dir: PathBuf) -> Result<()> {
    let written = clap_mangen::generate_to(CommandLine::command(), &dir).and_then(|()| {
        let page = std::fs::OpenOptions::new()
            .append(true)
            .open(dir.join("basalt-bench.1"));
        page?.write_all(MAN_SECTIONS)
    });
    written.map_err(|source| Error::File { path: dir, source })
}

fn on_runtime(workload: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Usage(format!("the runtime cannot start: {error}")))?;
    let outcome = runtime.block_on(interrupt::until_interrupted(workload));
    // Does not wait for tasks that still run after Ctrl-C.
    runtime.shutdown_background();
    outcome
}
