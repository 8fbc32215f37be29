//! The filter of log lines, and the start of the log.

use std::fmt::Display;

use tracing_subscriber::EnvFilter;

use super::log_queue::LogQueue;
use crate::config::{self, ConfigError};

/// Replaces the filter of log lines; the error says why the text is no filter.
pub(crate) type SetFilter = Box<dyn Fn(&str) -> Result<(), ConfigError> + Send + Sync>;

/// The filter that a text means.
pub(crate) fn parse(text: &str) -> Result<EnvFilter, ConfigError> {
    EnvFilter::try_new(text).map_err(refuse)
}

fn refuse(error: impl Display) -> ConfigError {
    ConfigError::new("log.filter", error)
}

/// Log lines go to standard error; standard output carries only the line that says where the server listens.
pub(crate) fn start(config: &config::Log, log: LogQueue) -> Result<SetFilter, ConfigError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parse(&config.filter)?)
        .with_writer(move || log.clone())
        .with_target(false);
    macro_rules! start {
        ($builder:expr) => {{
            let builder = $builder.with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            Ok(Box::new(move |text: &str| {
                let filter = parse(text)?;
                handle.reload(filter).map_err(refuse)
            }))
        }};
    }
    if config.json {
        start!(builder.json())
    } else {
        start!(builder.with_ansi(false))
    }
}
