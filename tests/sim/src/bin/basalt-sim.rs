//! The engine on a simulated disk: `cargo run --release -p basalt-sim --bin basalt-sim -- cuts`.
//!
//! Each command prints a line of figures. Exit code 0: no violation. 1: violations, printed with
//! the commands that reproduce them.

use std::process::ExitCode;

use basalt_engine::fs::sim::Mode;
use basalt_sim::bits::Bits;
use basalt_sim::cuts::{Cuts, Workload};
use basalt_sim::errors::Errors;
use basalt_sim::jobs::{Report, name_panics, stop_after};
use basalt_sim::pairs::Pairs;
use basalt_sim::random::Random;
use basalt_sim::seeded::Seeded;
use basalt_sim::{bits, cuts, errors, pairs, random, seeded};
use clap::{Parser, Subcommand};

/// Proves the storage engine on a simulated disk.
#[derive(Debug, Parser)]
struct Arguments {
    /// Threads.
    #[arg(long, default_value_t = 2, global = true)]
    jobs: usize,
    /// Stop after this many violations.
    #[arg(long, default_value_t = 10, global = true)]
    violations: usize,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A power cut, and a kill, before and after every call of the file system in the reference workload.
    Cuts {
        /// A workload of bulk loads, increments and appends instead.
        #[arg(long)]
        loads: bool,
        /// Seed of the workload.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How often the workload makes each kind of call its number of times.
        #[arg(long, default_value_t = 1)]
        rounds: usize,
        /// The disk's guarantees; both without this.
        #[arg(long, value_parser = mode)]
        mode: Option<Mode>,
        /// Damage seeds of each cut.
        #[arg(long, default_value_t = 20)]
        damage: u64,
        /// Cut every such call.
        #[arg(long, default_value_t = 1)]
        stride: u64,
        /// Cuts during the recovery, 0 to 3, each in the recovery from the one before.
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3))]
        depth: u64,
        /// With a depth: cut every such call of the first recovery.
        #[arg(long, default_value_t = 1)]
        recovery_stride: u64,
    },
    /// EIO, ENOSPC and EDQUOT at every call of the file system in the reference workload, once and for ever.
    Errors {
        /// Seed of the workload.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How often the workload makes each kind of call its number of times.
        #[arg(long, default_value_t = 1)]
        rounds: usize,
        /// Let every such call fail.
        #[arg(long, default_value_t = 1)]
        stride: u64,
        /// Power cuts after each error.
        #[arg(long, default_value_t = 2)]
        damage: u64,
    },
    /// Every bit of reference data directories flipped; files missing, swapped, truncated.
    Bits {
        /// Flip every such bit.
        #[arg(long, default_value_t = 1)]
        stride: u64,
        /// Truncate files at every multiple of this.
        #[arg(long, default_value_t = 64)]
        truncate_bytes: u64,
        /// Number of directories; there are 16.
        #[arg(long, default_value_t = 16)]
        directories: usize,
    },
    /// Switches known bugs on, one at a time, each of which must be caught.
    Seeded {
        /// Only bugs with this in their names.
        #[arg(default_value = "")]
        only: String,
    },
    /// A leader and a standby on two machines: both die, the network loses, the standby takes over.
    Pairs {
        /// Seed of the first pair.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Steps in all.
        #[arg(long, default_value_t = 1_000_000)]
        steps: u64,
    },
    /// Databases that are cut at random, recovered, used and cut again.
    Random {
        /// Seed of the first one.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Cuts in all.
        #[arg(long, default_value_t = 1_000_000)]
        cuts: u64,
    },
}

fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "strict" => Ok(Mode::Strict),
        "ext4" => Ok(Mode::Ext4),
        _ => Err("a mode is \"strict\" or \"ext4\"".into()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    name_panics();
    stop_after(arguments.violations);
    let report = run(&arguments);
    println!("{report}");
    if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run(arguments: &Arguments) -> Report {
    let jobs = arguments.jobs;
    match arguments.command {
        Command::Cuts {
            loads,
            seed,
            rounds,
            mode,
            damage,
            stride,
            depth,
            recovery_stride,
        } => {
            let cuts = Cuts {
                workload: if loads {
                    Workload::Loads
                } else {
                    Workload::Reference
                },
                seed,
                rounds,
                modes: mode.map_or(vec![Mode::Strict, Mode::Ext4], |mode| vec![mode]),
                damage_seeds: damage,
                stride,
                depth,
                recovery_stride,
                jobs,
            };
            cuts::try_all(&cuts, Some("cuts"))
        }
        Command::Errors {
            seed,
            rounds,
            stride,
            damage,
        } => {
            let errors = Errors {
                seed,
                rounds,
                stride,
                damage_seeds: damage,
                jobs,
            };
            errors::try_all(&errors, Some("errors"))
        }
        Command::Bits {
            stride,
            truncate_bytes,
            directories,
        } => {
            let bits = Bits {
                stride,
                truncate_bytes,
                directories,
                jobs,
            };
            bits::try_all(&bits, Some("bits"))
        }
        Command::Seeded { ref only } => {
            let only = only.clone();
            seeded::try_all(&Seeded { only, jobs })
        }
        Command::Pairs { seed, steps } => pairs::try_all(&Pairs { seed, steps, jobs }, Some("pairs")),
        Command::Random { seed, cuts } => random::try_all(&Random { seed, cuts, jobs }, Some("random")),
    }
}
