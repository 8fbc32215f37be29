//! The load generator: what `basalt-bench` does, apart from its command line and from the schema lab.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`workload`] | the commands that put load on a server, and `compare`: an `Arguments` and a `run` each |
//! | [`engine`] | the command `engine`: RocksDB's `db_bench` for storage engines, also for those of `bench/rivals` |
//! | [`load`] | the load core: operations at a pace, their latencies, Ctrl-C |
//! | [`target`], [`session`], [`tables`] | a server, calls on the rows of a table, and calls about tables, over each of HBase's interfaces |
//! | [`data`], [`flights`], [`values`], [`time_text`] | values to write: generated ones, or the flights of a file |
//! | [`report`], [`output`] | reports for people and programs; output on the terminal |
//! | [`error`], [`exit`] | why a run ended, and the exit code that says so |
//!
//! Callers: the program `basalt-bench`, the schema lab (`bench/lab`), and `bench/rivals`, which uses
//! [`engine`] only. A workload never uses the lab.

#[macro_use]
pub mod output;

pub mod data;
pub mod error;
pub mod exit;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod flights;
pub mod load;
pub mod report;
pub mod session;
pub mod tables;
pub mod target;
pub mod time_text;
pub mod values;
pub mod workload;

/// The benchmarks of `engine`, for Basalt's storage engine and for others.
pub mod engine {
    use std::process::ExitCode;

    pub use crate::error::{Error, Result};
    pub use crate::workload::engine::*;

    /// Runs the work of the program of that name, which ends at Ctrl-C, and reports its error.
    pub fn main(program: &str, work: impl FnOnce() -> Result<()>) -> ExitCode {
        basalt_engine::fs::raise_open_files();
        crate::load::interrupt::exit_at_ctrl_c(program);
        crate::exit::concluded(program, work())
    }
}
