//! `basalt config print` and `basalt config check`, and the settings of the log.

use std::io::Write as _;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use crate::command_line::{ConfigCommand, Settings};
use crate::config::{self, Config, ConfigError, Setting, Source};
use crate::log_queue::LogQueue;

/// Replaces the filter of log lines; the error says why the text is no filter.
pub(crate) type SetFilter = Box<dyn Fn(&str) -> Result<(), ConfigError> + Send + Sync>;

/// Runs `basalt config`.
pub(crate) fn run(command: ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Print { format, settings } => match Config::load(&settings.inputs(false)) {
            Ok(loaded) => say(&config::print(&loaded, format.into())),
            Err(error) => crate::fail(&error),
        },
        ConfigCommand::Check { settings } => check(settings),
    }
}

fn check(settings: Settings) -> ExitCode {
    let loaded = match Config::load(&settings.inputs(false)) {
        Ok(loaded) => loaded,
        Err(error) => return crate::fail(&error),
    };
    let mut problems = loaded.config.problems();
    problems.extend(filter(&loaded.config.log.filter).err());
    if let Some((last, others)) = problems.split_last() {
        for problem in others {
            crate::log_queue::say(&format!("basalt: {problem}"));
        }
        return crate::fail(last);
    }
    let is_given = |setting: &Setting| !matches!(loaded.source(*setting), Source::Default | Source::Derived);
    let (all, given) = (Setting::all().count(), Setting::all().filter(is_given).count());
    let exposure = loaded
        .config
        .exposure()
        .map_or_else(String::new, |text| format!("note: {text}\n"));
    say(&format!(
        "{exposure}the settings are valid: {given} of {all} are given\n"
    ))
}

fn say(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => crate::fail(&error),
    }
}

fn filter(text: &str) -> Result<EnvFilter, ConfigError> {
    EnvFilter::try_new(text).map_err(|error| ConfigError::Value {
        key: "log.filter".to_owned(),
        message: error.to_string(),
    })
}

/// Log lines go to standard error; standard output carries only the line that says where the server listens.
pub(crate) fn start_log(config: &config::Log, log: LogQueue) -> Result<SetFilter, ConfigError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(&config.filter)?)
        .with_writer(move || log.clone())
        .with_target(false);
    macro_rules! start {
        ($builder:expr) => {{
            let builder = $builder.with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            Ok(Box::new(move |text: &str| {
                let filter = filter(text)?;
                handle.reload(filter).map_err(|error| ConfigError::Value {
                    key: "log.filter".to_owned(),
                    message: error.to_string(),
                })
            }))
        }};
    }
    if config.json {
        start!(builder.json())
    } else {
        start!(builder.with_ansi(false))
    }
}
