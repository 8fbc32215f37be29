//! The commands of the program: `serve` and those that need no server.

use std::process::ExitCode;

use clap::Parser as _;

use crate::VERSION;
use crate::config::Config;
use crate::observe::{log_filter, log_queue};
use crate::serve::reload::Reload;
use crate::{ephemeral, serve};
use command_line::{Command, CommandLine, Serve};

mod command_line;
mod health;
mod offline;
mod settings;

/// Runs the command of the command line. `before_threads` is called before `serve` starts its first
/// thread; it returns whether the allocator accepted its settings.
pub fn run(before_threads: fn() -> bool) -> ExitCode {
    let command_line = CommandLine::parse();
    match command_line.command.unwrap_or(Command::Serve(command_line.serve)) {
        Command::Serve(arguments) => serve(arguments, before_threads),
        Command::Check { data_dir } => offline::check(&data_dir),
        Command::Dump { file, cells } => offline::dump(&file, cells),
        Command::Config { command } => settings::run(command),
        Command::Health { http, settings } => health::run(http.as_deref(), settings),
        Command::Completions { shell } => command_line::completions(shell),
        Command::Man { dir } => command_line::man(&dir),
    }
}

fn serve(arguments: Serve, before_threads: fn() -> bool) -> ExitCode {
    let gives_back = before_threads();
    let log = match log_queue::start() {
        Ok(log) => log,
        Err(error) => return fail(&error),
    };
    let inputs = arguments.settings.inputs(arguments.ephemeral);
    let loaded = Config::load(&inputs).and_then(|loaded| {
        loaded.config.validate()?;
        Ok(loaded.config)
    });
    let mut config = match loaded {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    let filter = match log_filter::start(&config.log, log) {
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
    match serve::run(config, Reload::new(inputs, filter), home) {
        Ok(()) => {
            log_queue::flush();
            ExitCode::SUCCESS
        }
        Err(error) => fail(error.as_ref()),
    }
}

/// Prints the error; returns the exit code of a failed command.
fn fail(error: &dyn std::error::Error) -> ExitCode {
    log_queue::say(&format!("basalt: {error}"));
    ExitCode::FAILURE
}
