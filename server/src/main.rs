//! The daemon `basalt`: an HBase Thrift server on Basalt's own storage engine.
//!
//! Layers, top to bottom, each knowing only the ones below: `wire` (sockets, framing) and `http` (metrics, health, pages);
//! `api` (Thrift calls to engine calls and back) with `sessions` (open scanners); the engine. Only `api` knows Thrift types;
//! tokio ends at `api`: the engine is synchronous.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use basalt_server::{config, messages};
use clap::{Args, Parser, Subcommand};

mod admission;
mod allocator;
mod api;
mod capacity;
mod descriptors;
mod heat;
mod http;
mod log_limit;
mod log_queue;
mod metrics;
mod native;
mod offline;
mod parking;
mod rates;
#[cfg(test)]
mod rig;
mod serve;
mod sessions;
mod slow_log;
mod supervisor;
mod wire;
mod zookeeper;

/// The process ends with this code when a WAL or manifest write failed (sysexits' EX_SOFTWARE): restart and recover.
pub(crate) const EXIT_LOG_FAILED: i32 = 70;

/// A single-node wide-column server for Apache HBase Thrift clients.
#[derive(Debug, Parser)]
#[command(name = "basalt", version, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve (the default).
    Serve(Serve),
    /// Verify every checksum and reference offline; exit 0 only when all is well.
    Check {
        /// The data directory.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
    /// Print a store file, WAL segment or manifest for people.
    Dump {
        /// The file.
        file: PathBuf,
        /// Print every cell of a store file too.
        #[arg(long)]
        cells: bool,
    },
}

#[derive(Debug, Default, Args)]
struct Serve {
    /// Settings, in TOML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the data lies [default: ./basalt-data].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address of the Thrift port [default: 127.0.0.1:9090].
    #[arg(long, value_name = "ADDR")]
    thrift_listen: Option<SocketAddr>,
    /// Address of the HTTP port [default: 127.0.0.1:9095].
    #[arg(long, value_name = "ADDR")]
    http_listen: Option<SocketAddr>,
    /// One setting; may be given many times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    match command_line.command.unwrap_or(Command::Serve(command_line.serve)) {
        Command::Serve(arguments) => serve(arguments),
        Command::Check { data_dir } => offline::check(&data_dir),
        Command::Dump { file, cells } => offline::dump(&file, cells),
    }
}

fn serve(arguments: Serve) -> ExitCode {
    // Before any thread is started.
    let gives_back = allocator::give_back_large_pieces();
    let log = match log_queue::start() {
        Ok(log) => log,
        Err(error) => return fail(&error),
    };
    let loaded = config::Config::load(arguments.config.as_deref(), &arguments.set).and_then(|mut config| {
        config::CommandLine {
            data_dir: arguments.data_dir,
            thrift_listen: arguments.thrift_listen,
            http_listen: arguments.http_listen,
        }
        .apply(&mut config);
        config.validate()?;
        Ok(config)
    });
    let config = match loaded {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    if let Err(error) = start_log(&config.log, log) {
        return fail(&error);
    }
    if !gives_back {
        tracing::warn!("the allocator keeps large pieces of memory that are freed: mallopt failed");
    }
    for line in config.lines() {
        tracing::info!("setting {line}");
    }
    match serve::run(config) {
        Ok(()) => {
            log_queue::flush();
            ExitCode::SUCCESS
        }
        Err(error) => fail(error.as_ref()),
    }
}

/// Log lines go to standard error; standard output carries only the line that says where the server listens.
fn start_log(config: &config::Log, log: log_queue::LogQueue) -> Result<(), config::ConfigError> {
    let filter = tracing_subscriber::EnvFilter::try_new(&config.filter).map_err(|error| {
        config::ConfigError::Value {
            key: "log.filter",
            message: error.to_string(),
        }
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || log.clone())
        .with_target(false);
    if config.json {
        builder.json().init();
    } else {
        builder.with_ansi(false).init();
    }
    Ok(())
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    log_queue::say(&format!("basalt: {error}"));
    ExitCode::FAILURE
}
