//! The program `basalt-rivals`: the benchmarks of `basalt-bench engine`, on other storage engines.
//!
//! Keys, values, options, output and report are those of basalt-bench, whose code this is; a module here is
//! the `Store` of one engine. A benchmark that an engine cannot run is an error, not a silent difference.

use std::path::Path;
use std::process::ExitCode;

use basalt_load::engine::{self, Arguments, Error, Result, Subject};
use clap::{Parser, ValueEnum};

mod fjall_store;
#[cfg(feature = "rocksdb")]
mod rocksdb_store;
#[cfg(test)]
mod tests;

use fjall_store::Fjall;
#[cfg(feature = "rocksdb")]
use rocksdb_store::RocksDb;

/// Run db_bench's benchmarks on RocksDB or fjall.
#[derive(Debug, Parser)]
#[command(name = "basalt-rivals", version)]
struct CommandLine {
    /// The storage engine.
    #[arg(long)]
    engine: Rival,
    /// RocksDB: keep indexes and filters in the block cache, which bounds them, instead of beside it.
    #[arg(long, alias = "cache_index_and_filter_blocks")]
    cache_index_and_filter_blocks: bool,
    #[command(flatten)]
    arguments: Arguments,
}

/// The storage engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
enum Rival {
    /// RocksDB, compiled into this program.
    #[cfg(feature = "rocksdb")]
    RocksDb,
    /// fjall.
    Fjall,
}

/// Names the step that failed.
fn during<T, E>(during: &'static str, result: std::result::Result<T, E>) -> Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    result.map_err(|source| Error::OtherEngine {
        during,
        source: Box::new(source),
    })
}

/// The error for an option that an engine does not have.
fn cannot(engine: &str, what: &str) -> Error {
    Error::Usage(format!("{engine} cannot {what}"))
}

fn run(line: &CommandLine) -> Result<()> {
    let subject = |name, version: &str| Subject {
        name,
        version: version.to_owned(),
        encoding: None,
    };
    let arguments = &line.arguments;
    match line.engine {
        #[cfg(feature = "rocksdb")]
        Rival::RocksDb => {
            let open = |dir: &Path| RocksDb::open(dir, arguments, line.cache_index_and_filter_blocks);
            engine::run(&subject("RocksDB", rocksdb_store::VERSION), arguments, open)
        }
        Rival::Fjall => {
            let open = |dir: &Path| Fjall::open(dir, arguments);
            engine::run(&subject("fjall", fjall_store::VERSION), arguments, open)
        }
    }
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    engine::main("basalt-rivals", || run(&line))
}
