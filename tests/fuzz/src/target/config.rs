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

/// A dot in a name is a table of its own, the parser's way. The text is the operator's own, and at most
/// [`TEXT_BYTES_MAX`](basalt_server::config::TEXT_BYTES_MAX) long.
const PER_TEXT_BYTE: usize = 1 << 10;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
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
