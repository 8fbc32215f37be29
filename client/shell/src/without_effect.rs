//! Warnings of options that the server keeps without effect.

use basalt_types::schema::without_effect::{OF_FAMILY, OF_TABLE, SETTINGS};

use super::ShellResult;
use super::arguments::Options;
use super::session::Session;
use super::value::Value;

/// Options of `create` and `alter` that have no effect on Basalt.
#[derive(Debug, Default)]
pub(super) struct WithoutEffect(Vec<String>);

impl WithoutEffect {
    /// Notes the options of one hash.
    pub(super) fn note(&mut self, options: &Options) {
        for (option, idle) in OF_FAMILY.into_iter().chain(OF_TABLE) {
            if options.shown(option).is_some_and(|value| value != idle) {
                self.0.push(option.to_owned());
            }
        }
        for map in ["CONFIGURATION", "METADATA", "TABLE_ATTRIBUTES"] {
            if let Some(Value::Hash(pairs)) = options.value(map) {
                let names = pairs
                    .iter()
                    .map(|(name, _)| String::from_utf8_lossy(name).into_owned());
                self.0
                    .extend(names.filter(|name| SETTINGS.contains(&name.as_str())));
            }
        }
    }
}

impl Session {
    /// Prints a line for each option without effect. Not for other servers than Basalt, where it may have
    /// one.
    pub(super) async fn warn_of(&mut self, options: WithoutEffect) -> ShellResult<()> {
        if options.0.is_empty() || self.admin.status().await.is_err() {
            return Ok(());
        }
        for option in options.0 {
            let effect = match option.as_str() {
                "REGION_REPLICATION" => {
                    "has an effect only with a standby that serves reads (docs/standby.md)"
                }
                _ => "has no effect on this server (docs/compatibility.md)",
            };
            self.output
                .note(&format!("warning: {option} is kept and {effect}"))?;
        }
        Ok(())
    }
}
