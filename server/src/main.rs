//! The daemon `basalt`: an HBase Thrift server on Basalt's own storage engine.
//!
//! Layers, top to bottom, each knowing only the ones below: `wire` (sockets, framing) and `http` (metrics, health, pages);
//! `api` (Thrift calls to engine calls and back) with `sessions` (open scanners); the engine. Only `api` knows Thrift types;
//! tokio ends at `api`: the engine is synchronous.

use std::process::ExitCode;

use basalt_server::{COMMIT, VERSION, config, messages};
use clap::Parser as _;

mod admission;
mod allocator;
mod api;
mod capacity;
mod command_line;
mod descriptors;
mod ephemeral;
mod health;
mod heat;
mod http;
mod log_limit;
mod log_queue;
mod metrics;
mod native;
mod offline;
mod parking;
mod rates;
mod reload;
#[cfg(test)]
mod rig;
mod serve;
mod sessions;
mod settings;
mod sharded;
mod slow_log;
mod supervisor;
mod wire;
mod zookeeper;

use command_line::{Command, CommandLine, Serve};

/// The process ends with this code when a WAL or manifest write failed (sysexits' EX_SOFTWARE): restart and recover.
pub(crate) const EXIT_LOG_FAILED: i32 = 70;

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    match command_line.command.unwrap_or(Command::Serve(command_line.serve)) {
        Command::Serve(arguments) => serve(arguments),
        Command::Check { data_dir } => offline::check(&data_dir),
        Command::Dump { file, cells } => offline::dump(&file, cells),
        Command::Config { command } => settings::run(command),
        Command::Health { http, settings } => health::run(http.as_deref(), settings),
        Command::Completions { shell } => command_line::completions(shell),
        Command::Man { dir } => command_line::man(&dir),
    }
}

fn serve(arguments: Serve) -> ExitCode {
    // Before any thread is started.
    let gives_back = allocator::give_back_large_pieces();
    let log = match log_queue::start() {
        Ok(log) => log,
        Err(error) => return fail(&error),
    };
    let inputs = arguments.settings.inputs(arguments.ephemeral);
    let loaded = config::Config::load(&inputs).and_then(|loaded| {
        loaded.config.validate()?;
        Ok(loaded.config)
    });
    let mut config = match loaded {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    let filter = match settings::start_log(&config.log, log) {
        Ok(filter) => filter,
        Err(error) => return fail(&error),
    };
    if !gives_back {
        tracing::warn!("the allocator keeps large pieces of memory that are freed: mallopt failed");
    }
    let home = match arguments.ephemeral.then(ephemeral::Home::create).transpose() {
        Ok(home) => home,
        Err(error) => return fail(&error),
    };
    if let Some(home) = &home {
        home.data_dir().clone_into(&mut config.data.dir);
    }
    tracing::info!("basalt {VERSION}");
    for line in config.lines() {
        tracing::info!("setting {line}");
    }
    match serve::run(config, reload::Reload::new(inputs, filter), home) {
        Ok(()) => {
            log_queue::flush();
            ExitCode::SUCCESS
        }
        Err(error) => fail(error.as_ref()),
    }
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    log_queue::say(&format!("basalt: {error}"));
    ExitCode::FAILURE
}
