//! The commands of the program: `serve` and those that need no server.

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use basalt_engine::COPIED_REMEDY;
use clap::Parser as _;

use crate::VERSION;
use crate::config::{Config, ConfigError, Inputs, Loaded};
use crate::limits::threads;
use crate::observe::{log_filter, log_queue};
use crate::serve::Given;
use crate::serve::first_start::FirstStart;
use crate::serve::reload::Reload;
use crate::{ephemeral, serve};
use command_line::{Command, CommandLine, Serve};

mod backup;
mod command_line;
mod gateway;
mod health;
mod moving;
mod offline;
mod operator;
mod replication;
mod settings;
mod snapshots;
mod standby;
mod users;

/// The exit code of a command, or the error that [`run`] prints.
type Outcome = Result<ExitCode, Box<dyn Error + Send + Sync>>;

/// Runs the command of the command line. `before_threads` is called before `serve` starts its first
/// thread; it returns whether the allocator accepted its settings.
pub fn run(before_threads: fn() -> bool) -> ExitCode {
    let command_line = CommandLine::parse();
    let outcome = match command_line.command.unwrap_or(Command::Serve(command_line.serve)) {
        Command::Serve(arguments) => serve(arguments, before_threads),
        Command::Gateway(arguments) => gateway::run(arguments, before_threads),
        Command::Check { data_dir } => offline::check(&data_dir),
        Command::Dump { file, cells } => offline::dump(&file, cells),
        Command::ExportSnapshot { name, to, dir } => snapshots::export(&dir.data_dir, &name, &to),
        Command::ImportSnapshot(arguments) => snapshots::import(&arguments),
        Command::Move(arguments) => moving::run(&arguments),
        Command::Replication { command } => replication::run(command),
        Command::Promote { http, login } => standby::promote(http, &login),
        Command::Standby { command } => standby::run(command),
        Command::Config { command } => settings::run(command),
        Command::Health { http, settings } => health::run(http, settings),
        Command::User { command } => users::user(command),
        Command::Token { command } => users::token(command),
        Command::Certificate { command } => users::certificate(command),
        Command::Backup(arguments) => backup::make(&arguments),
        Command::Backups { command } => backup::manage(command),
        Command::Restore(arguments) => backup::restore(&arguments),
        Command::Completions { shell } => command_line::completions(shell),
        Command::Man { dir } => command_line::man(&dir),
    };
    outcome.unwrap_or_else(|error| {
        log_queue::say(&format!("basalt: {error}"));
        ExitCode::FAILURE
    })
}

/// Runs asynchronous work of a command.
fn on_runtime<T>(
    work: impl Future<Output = Result<T, Box<dyn Error + Send + Sync>>>,
) -> Result<T, Box<dyn Error + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

fn serve(arguments: Serve, before_threads: fn() -> bool) -> Outcome {
    let mut inputs = arguments.settings.inputs(if arguments.ephemeral {
        ephemeral::settings(!arguments.run.is_empty())
    } else {
        Vec::new()
    });
    let short = [
        ("standby.follow", arguments.follow),
        (
            "backup.key_file",
            arguments.key_file.map(|file| file.display().to_string()),
        ),
        ("standby.sync", arguments.sync),
        ("standby.reads", arguments.reads),
    ];
    for (setting, value) in short {
        inputs.set.extend(value.map(|value| format!("{setting}={value}")));
    }
    let start = Start {
        inputs,
        is_insecure: arguments.protection.insecure,
        is_secure: arguments.protection.secure,
        is_ephemeral: arguments.ephemeral,
        check: gateway::refuse_settings,
        given: Given {
            listen_file: arguments.listen_file,
            command: arguments.run,
            ..Given::default()
        },
    };
    start.run(before_threads)
}

/// The start of a server.
struct Start {
    inputs: Inputs,
    is_insecure: bool,
    is_secure: bool,
    is_ephemeral: bool,
    /// Refuses settings that this kind of server does not have.
    check: fn(&Loaded) -> Result<(), ConfigError>,
    given: Given,
}

impl Start {
    /// Reads the settings, starts the log, and serves.
    fn run(mut self, before_threads: fn() -> bool) -> Outcome {
        let gives_back = before_threads();
        let log = log_queue::start(threads::of_panic).map_err(|error| threads::refused(&error))?;
        if self.is_insecure {
            self.inputs.set.push("server.insecure=true".to_owned());
        }
        let loaded = Config::load(&self.inputs)?;
        (self.check)(&loaded)?;
        let mut config = loaded.config;
        self.given.home = self.is_ephemeral.then(ephemeral::Home::create).transpose()?;
        if let Some(home) = &self.given.home {
            home.data_dir().clone_into(&mut config.data.dir);
        }
        let is_first_start = self.is_secure && !config.server.insecure;
        self.given.first_start = is_first_start.then(|| FirstStart::prepare(&config)).transpose()?;
        config.validate()?;
        let filter = log_filter::start(&config.log, log)?;
        if !gives_back {
            tracing::warn!("the allocator keeps large pieces of memory that are freed: mallopt failed");
        }
        tracing::info!("basalt {VERSION}");
        for line in config.lines() {
            tracing::info!("setting {line}");
        }
        let reload = Reload::new(self.inputs, filter);
        let code = serve::run(config, reload, self.given).map_err(with_advice)?;
        log_queue::flush();
        Ok(code)
    }
}

/// Adds advice to the error of a start with a damaged directory.
fn with_advice(error: Box<dyn Error + Send + Sync>) -> Box<dyn Error + Send + Sync> {
    match error.downcast_ref() {
        Some(basalt_engine::Error::Corrupt { .. }) => format!("{error}. {COPIED_REMEDY}").into(),
        _ => error,
    }
}

/// Prints the text of a command to standard output.
fn print(text: &[u8]) -> Outcome {
    std::io::stdout().write_all(text)?;
    Ok(ExitCode::SUCCESS)
}
