//! The settings of the start, and those in force.

use parking_lot::Mutex;

use crate::config::{AllowedHosts, Config};
use crate::observe::load::Load;

/// The settings of a server.
#[derive(Debug)]
pub(crate) struct Settings {
    start: Config,
    /// Some are taken over while the server runs.
    in_force: Mutex<Config>,
    /// Host names that the HTTP port answers to, in lower case.
    allowed_hosts: AllowedHosts,
}

impl Settings {
    pub(super) fn new(config: Config) -> Self {
        Self {
            in_force: Mutex::new(config.clone()),
            allowed_hosts: AllowedHosts::new(&config.http.allowed_hosts),
            start: config,
        }
    }

    /// The settings of the start. Those that can be reloaded ([`Self::take_over`]) are not read from
    /// here.
    pub(super) fn start(&self) -> &Config {
        &self.start
    }

    pub(crate) fn in_force(&self) -> Config {
        self.in_force.lock().clone()
    }

    /// The share of each method's calls beyond which a call is slow, in force.
    pub(super) fn slow_percentile(&self) -> f64 {
        self.in_force.lock().slow_log.percentile
    }

    /// Host names that the HTTP port answers to.
    pub(crate) fn allowed_hosts(&self) -> &AllowedHosts {
        &self.allowed_hosts
    }

    /// Applies the settings in `config` that can change while the server runs, except the filter of
    /// the log.
    pub(crate) fn take_over(&self, config: &Config, load: &Load) {
        let mut in_force = self.in_force.lock();
        in_force.log.filter.clone_from(&config.log.filter);
        in_force.http.allowed_hosts.clone_from(&config.http.allowed_hosts);
        in_force.slow_log.threshold_ms = config.slow_log.threshold_ms;
        in_force.slow_log.percentile = config.slow_log.percentile;
        in_force.slow_log.large_bytes = config.slow_log.large_bytes;
        self.allowed_hosts.set(&config.http.allowed_hosts);
        load.slow_log.set_limits(&config.slow_log);
    }
}
