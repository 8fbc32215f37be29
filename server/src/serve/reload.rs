//! SIGHUP: applies changes of the configuration file.
//!
//! 1. All layers of settings are read again: the file as it is now, the environment and the command
//!    line as they were at the start.
//! 2. If they have an error, nothing changes, and the log names the error.
//! 3. Settings that a running server can take over ([`Setting::is_reloaded`]) come into force. The
//!    log names them, and those that wait for a restart.
//!
//! Users, rights and certificates that have changed are taken over in any case, and the audit log is
//! opened again.

use crate::config::{Config, ConfigError, Inputs, Setting};
use crate::observe::log_filter::SetFilter;
use crate::server::Server;

/// The inputs from which the settings are read again.
pub(crate) struct Reload {
    inputs: Inputs,
    set_filter: SetFilter,
}

impl Reload {
    /// Reads from the same inputs as at the start.
    pub(crate) fn new(inputs: Inputs, set_filter: SetFilter) -> Self {
        Self { inputs, set_filter }
    }

    /// Applies changes of the file. It reads a file, so it may block.
    pub(crate) fn run(&self, server: &Server) {
        server.security().reload();
        server.security().reopen_audit_log();
        match self.take_over(server) {
            Ok(changes) => tracing::info!("SIGHUP: {changes}"),
            Err(error) => tracing::warn!("SIGHUP: the settings stay as they are: {error}"),
        }
    }

    fn take_over(&self, server: &Server) -> Result<String, ConfigError> {
        let config = Config::load(&self.inputs)?.config;
        config.validate()?;
        let before = server.settings().in_force();
        let (taken, waiting) = differences(&before, &config);
        if config.log.filter != before.log.filter {
            (self.set_filter)(&config.log.filter)?;
        }
        server.settings().take_over(&config, server.load());
        Ok(describe(&taken, &waiting))
    }
}

/// Names of settings that differ: those that are taken over, and those that wait for a restart. An
/// ephemeral server has chosen its data directory itself.
fn differences(before: &Config, now: &Config) -> (Vec<String>, Vec<String>) {
    let values = |config: &Config| config.settings().into_iter();
    let is_changed = |((name, before), (_, now)): &((String, String), (String, String))| {
        before != now && name != "data.dir"
    };
    values(before)
        .zip(values(now))
        .filter(is_changed)
        .map(|((name, _), _)| name)
        .partition(|name| Setting::all().any(|setting| setting.is_reloaded() && setting.name() == *name))
}

fn describe(taken: &[String], waiting: &[String]) -> String {
    let list =
        |names: &[String], verb: &str| (!names.is_empty()).then(|| format!("{} {verb}", names.join(", ")));
    let parts = [list(taken, "taken over"), list(waiting, "waiting for a restart")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return "no setting has changed".to_owned();
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_apart() {
        let before = Config::default();
        let mut now = before.clone();
        assert_eq!(describe(&[], &[]), "no setting has changed");
        now.log.filter = "debug".into();
        now.wal.stall_ms += 1;
        now.slow_log.threshold_ms += 1;
        let (taken, waiting) = differences(&before, &now);
        assert_eq!(
            describe(&taken, &waiting),
            "log.filter, slow_log.threshold_ms taken over; wal.stall_ms waiting for a restart"
        );
    }
}
