//! Settings for people: as a commented TOML file, which can be the first configuration file, and as
//! the page `docs/settings.md`.

use std::fmt::Write as _;

use super::describe::{Setting, paragraph};
use super::sections::SECTIONS;
use super::{Config, Loaded, Source};

/// Columns of a comment.
const WIDTH: usize = 96;

/// How settings are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A TOML file with the effective settings. Those that no layer gives are comments, so that
    /// they follow the defaults of later versions.
    #[default]
    Toml,
    /// The page of all settings, with their defaults.
    Markdown,
}

/// Prints all settings.
pub fn print(loaded: &Loaded, format: Format) -> String {
    match format {
        Format::Toml => toml_file(loaded),
        Format::Markdown => page(),
    }
}

fn toml_file(loaded: &Loaded) -> String {
    let mut text = String::new();
    comment(
        &mut text,
        "Settings of Basalt, as `basalt config print` shows them. A setting that is a comment has its default, or a share of another \
         setting. Sizes and durations may have units: \"128MiB\", \"5s\", \"2h\". A setting can also be given as an environment variable \
         (BASALT_WAL_SYNC=os) and as an argument (--set wal.sync=os), which win over this file.",
    );
    for section in SECTIONS {
        text.push('\n');
        comment(&mut text, &paragraph(section.doc));
        let _ = writeln!(text, "[{}]", section.name);
        for setting in section.settings() {
            entry(&mut text, loaded, setting);
        }
    }
    text
}

/// One setting: its meaning, its range, the origin of its value, and the value.
fn entry(text: &mut String, loaded: &Loaded, setting: Setting) {
    let source = loaded.source(setting);
    let mut facts = vec![
        setting.type_text(),
        setting.range_text(),
        format!("default {}", shown(&Config::default(), setting)),
    ];
    if source != Source::Default {
        facts.push(format!("from {source}"));
    }
    facts.retain(|fact| !fact.is_empty());
    text.push('\n');
    comment(text, &setting.meaning());
    comment(text, &format!("({})", facts.join("; ")));
    let is_given = !matches!(source, Source::Default | Source::Derived);
    let mark = if is_given { "" } else { "#" };
    let _ = writeln!(
        text,
        "{mark}{} = {}",
        setting.key(),
        shown(&loaded.config, setting)
    );
}

/// The value of a setting, in TOML.
fn shown(config: &Config, setting: Setting) -> String {
    setting.show(&config.table()[setting.section][setting.key()])
}

/// Appends a paragraph as comment lines.
fn comment(text: &mut String, paragraph: &str) {
    let mut line = String::from("#");
    for word in paragraph.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

/// The page of all settings.
fn page() -> String {
    let mut text = String::from(
        "# Settings\n\n\
         `basalt config print --format markdown` prints this page; `tests/e2e/tests/settings_doc.rs` compares it.\n\n\
         Settings come from, later ones winning: the defaults, the TOML file (`--config`), environment variables,\n\
         `--set` in the order given, and the options `--data-dir`, `--listen` and `--http-listen`.\n\n\
         | place | form |\n\
         |---|---|\n\
         | file | `[wal]` and below it `sync = \"os\"` |\n\
         | environment | `BASALT_WAL_SYNC=os`: the name in capitals, dots as underscores |\n\
         | command line | `--set wal.sync=os` |\n\n\
         | type | form |\n\
         |---|---|\n\
         | size | bytes, or with a unit: `64KiB`, `128MiB`, `2GiB`; `128M` is `128MiB`, `500MB` is 500,000,000 bytes |\n\
         | duration | milliseconds or seconds, as the end of the name says, or with units: `500ms`, `5s`, `2h`, `1h 30m` |\n\
         | address | `IP:PORT`, `[IPv6]:PORT` or `NAME:PORT` |\n\n\
         In the environment and after `--set`, texts need no quotes, and a list may have commas instead of brackets.\n\n\
         Settings marked \"Reload\" are read again at SIGHUP. All others change with a restart.\n\n\
         | setting | type | default | range | meaning |\n\
         |---|---|---|---|---|\n",
    );
    for setting in Setting::all() {
        let reload = if setting.is_reloaded() { " Reload." } else { "" };
        let _ = writeln!(
            text,
            "| `{setting}` | {} | `{}` | {} | {}{reload} |",
            setting.type_text(),
            shown(&Config::default(), setting).trim_matches('"'),
            setting.range_text(),
            setting.meaning().replace('|', "\\|"),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Inputs;

    fn loaded(set: &[&str]) -> Loaded {
        let set = set.iter().map(|text| (*text).to_owned()).collect();
        Config::load(&Inputs {
            set,
            ..Inputs::default()
        })
        .unwrap()
    }

    /// Goal: the printed file gives the same settings, and only given values are in force.
    #[test]
    fn the_printed_file_is_a_configuration_file() {
        let before = loaded(&[
            "memstore.flush_bytes=32MiB",
            "wal.stall_ms=2500",
            "http.allowed_hosts=a,b",
            "data.dir=/a \"b\"",
            "memory.total_bytes=2GiB",
        ]);
        let text = print(&before, Format::Toml);
        assert_eq!(
            Config::parse(&text, Path::new("f"), &[]).unwrap(),
            before.config,
            "{text}"
        );
        for line in [
            "flush_bytes = \"32MiB\"",
            "stall_ms = \"2500ms\"",
            "#sync = \"fsync\"",
            "total_bytes = \"2GiB\"",
        ] {
            assert!(
                text.lines().any(|printed| printed == line),
                "{line} is not in\n{text}"
            );
        }
        assert!(
            text.contains("from --set") && text.contains("from share of another setting"),
            "{text}"
        );
        let given = text
            .lines()
            .filter(|line| !line.starts_with(['#', '[']) && !line.is_empty());
        assert_eq!(given.count(), 5);
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    }

    /// Goal: without settings, everything is a comment, and each comment is the default.
    #[test]
    fn the_comments_are_the_defaults() {
        let text = print(&loaded(&[]), Format::Toml);
        let is_setting = |line: &&str| !line.starts_with("# ") && !line.is_empty();
        let lines: Vec<&str> = text.lines().filter(is_setting).collect();
        assert_eq!(lines.len(), Setting::all().count() + SECTIONS.len());
        let uncommented: Vec<&str> = lines.iter().map(|line| line.trim_start_matches('#')).collect();
        let config = Config::parse(&uncommented.join("\n"), Path::new("f"), &[]).unwrap();
        assert_eq!(config, Config::default());
    }

    #[test]
    fn the_page_has_every_setting() {
        let page = print(&loaded(&["wal.sync=os"]), Format::Markdown);
        for setting in Setting::all() {
            let rows = page
                .lines()
                .filter(|line| line.starts_with(&format!("| `{setting}` |")));
            assert_eq!(rows.count(), 1, "{setting}");
        }
        assert!(
            page.contains("| `wal.sync` | fsync, os | `fsync` |  | "),
            "{page}"
        );
        assert!(page.contains("| size | `128MiB` | at least 1MiB | "), "{page}");
    }
}
