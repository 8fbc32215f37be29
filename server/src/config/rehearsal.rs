//! Checks the settings of a rehearsal.

use toml::Table;

use super::{ConfigError, Rehearsal, Setting};

/// Refuses limits without virtual servers.
pub(super) fn check(rehearsal: &Rehearsal) -> Result<(), ConfigError> {
    if rehearsal.servers > 0 {
        return Ok(());
    }
    let values = Table::try_from(rehearsal).expect("settings are plain values");
    let is_set =
        |setting: &Setting| setting.section == "rehearsal" && values[setting.key()].as_integer() != Some(0);
    match Setting::all().find(is_set) {
        Some(limit) => Err(ConfigError::new(
            limit.name(),
            "is a limit of each virtual server; set rehearsal.servers, too",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a limit without virtual servers is a mistake, not a rehearsal.
    #[test]
    fn a_rehearsal_needs_servers() {
        let of = |servers, bytes_per_second| {
            check(&Rehearsal {
                servers,
                bytes_per_second,
                ..Rehearsal::default()
            })
        };
        let refused = |servers, bytes| of(servers, bytes).unwrap_err().to_string();
        let text = refused(0, 5);
        assert!(
            text.starts_with("rehearsal.bytes_per_second: ") && text.contains("set rehearsal.servers"),
            "{text}"
        );
        of(64, 5).unwrap();
        of(0, 0).unwrap();
    }
}
