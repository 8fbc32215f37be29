//! `basalt config print` and `basalt config check`.

use std::io::Write as _;
use std::process::ExitCode;

use super::command_line::{ConfigCommand, Settings};
use crate::config::{self, Config, Setting, Source};
use crate::observe::log_filter;

/// Runs `basalt config`.
pub(crate) fn run(command: ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Print { format, settings } => match Config::load(&settings.inputs(false)) {
            Ok(loaded) => say(&config::print(&loaded, format.into())),
            Err(error) => super::fail(&error),
        },
        ConfigCommand::Check { settings } => check(settings),
    }
}

fn check(settings: Settings) -> ExitCode {
    let loaded = match Config::load(&settings.inputs(false)) {
        Ok(loaded) => loaded,
        Err(error) => return super::fail(&error),
    };
    let mut problems = loaded.config.problems();
    problems.extend(log_filter::parse(&loaded.config.log.filter).err());
    if let Some((last, others)) = problems.split_last() {
        for problem in others {
            crate::observe::log_queue::say(&format!("basalt: {problem}"));
        }
        return super::fail(last);
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
        Err(error) => super::fail(&error),
    }
}
