//! Settings: a TOML file and `--set KEY=VALUE`.
//!
//! ```text
//! input = text of the file { 00 | argument of --set }
//! ```
//!
//! Accepted settings are printed as lines that are themselves a file, with the same settings.

use std::path::Path;

use basalt_server::config::Config;

use crate::memory;

/// A parsed text is tables of entries: some hundred bytes for a line of a few. The file is the operator's own.
const PER_TEXT_BYTE: usize = 64;

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let mut parts = text.split('\0');
    let file = parts.next().unwrap_or_default();
    let arguments: Vec<String> = parts.map(str::to_owned).collect();
    let path = Path::new("basalt.toml");
    let parsed = memory::bounded(input.len(), input.len() * PER_TEXT_BYTE, || {
        Config::parse(file, path, &arguments)
    });
    let Ok(config) = parsed else {
        return;
    };
    // Settings that cannot work together are still settings.
    let _ = config.validate();
    let lines = config.lines();
    match Config::parse(&lines.join("\n"), path, &[]) {
        Ok(again) => assert_eq!(
            again.lines(),
            lines,
            "other settings when the printed ones are read"
        ),
        Err(error) => panic!("does not read the settings that it printed: {error}"),
    }
}
