//! `basalt config print` and `basalt config check`.

use super::Outcome;
use super::command_line::{ConfigCommand, Settings};
use crate::config::{self, Setting, Source};
use crate::observe::{log_filter, log_queue};

/// Runs `basalt config`.
pub(crate) fn run(command: ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Print { format, settings } => {
            super::print(config::print(&settings.load()?, format.into()).as_bytes())
        }
        ConfigCommand::Check { settings } => check(settings),
    }
}

fn check(settings: Settings) -> Outcome {
    let loaded = settings.load()?;
    let mut problems = loaded.config.problems();
    problems.extend(log_filter::parse(&loaded.config.log.filter).err());
    if let Some(last) = problems.pop() {
        for problem in problems {
            log_queue::say(&format!("basalt: {problem}"));
        }
        return Err(last.into());
    }
    let is_given = |setting: &Setting| !matches!(loaded.source(*setting), Source::Default | Source::Derived);
    let (all, given) = (Setting::all().count(), Setting::all().filter(is_given).count());
    let exposure = loaded.config.exposure();
    let note = exposure.map_or_else(String::new, |text| format!("note: {text}\n"));
    super::print(format!("{note}the settings are valid: {given} of {all} are given\n").as_bytes())
}
