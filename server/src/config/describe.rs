//! The description of each setting: name, meaning, type, unit and range. It is declared once, with
//! the setting (`sections`), and used by the parser, the check of ranges, `config print` and
//! `docs/settings.md`.

use std::fmt;

use toml::Value;

use super::ConfigError;
use super::declaration::{Field, Kind, Range, Section};
use super::sections::SECTIONS;
use super::units::Unit;

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub(super) section: &'static str,
    field: &'static Field,
}

impl Section {
    pub(super) fn settings(&'static self) -> impl Iterator<Item = Setting> {
        let section = self.name;
        self.fields.iter().map(move |field| Setting { section, field })
    }
}

/// Settings that a running server takes over from its configuration file when it gets SIGHUP.
const RELOADED: [&str; 5] = [
    "http.allowed_hosts",
    "log.filter",
    "slow_log.large_bytes",
    "slow_log.percentile",
    "slow_log.threshold_ms",
];

/// Older names of settings, and their present names.
const ALIASES: [(&str, &str); 9] = [
    ("thrift.listen", "server.listen"),
    ("thrift.max_connections", "server.max_connections"),
    ("thrift.max_message_bytes", "server.max_message_bytes"),
    ("thrift.max_cells_per_call", "server.max_cells_per_call"),
    ("thrift.message_timeout_ms", "server.message_timeout_ms"),
    ("thrift.idle_timeout_ms", "server.idle_timeout_ms"),
    ("thrift.write_timeout_ms", "server.write_timeout_ms"),
    ("thrift.max_response_bytes", "server.max_response_bytes"),
    ("thrift.insecure_no_auth", "server.insecure"),
];

impl Setting {
    /// All settings, in the order in which they are declared.
    pub fn all() -> impl Iterator<Item = Self> {
        SECTIONS.iter().flat_map(Section::settings)
    }

    /// The setting of that name, or of that older name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        let name = alias.map_or(name, |(_, now)| *now);
        Self::all().find(|setting| setting.name() == name)
    }

    /// The setting of an environment variable.
    pub(super) fn of_variable(variable: &str) -> Option<Self> {
        let alias = ALIASES.iter().find(|(alias, _)| variable_of(alias) == variable);
        match alias {
            Some((_, now)) => Self::named(now),
            None => Self::all().find(|setting| setting.variable() == variable),
        }
    }

    /// Its section.
    pub(crate) fn section(self) -> &'static str {
        self.section
    }

    /// `section.key`.
    pub fn name(self) -> String {
        self.to_string()
    }

    /// Key within the section.
    pub(super) fn key(self) -> &'static str {
        self.field.key
    }

    /// Environment variable of the setting: the name in capitals, with underscores.
    pub fn variable(self) -> String {
        variable_of(&self.name())
    }

    /// How its values are written.
    pub(super) fn kind(self) -> Kind {
        self.field.kind
    }

    /// The unit of its number.
    pub(super) fn unit(self) -> Unit {
        match self.field.kind {
            Kind::Number => Unit::of(self.field.key),
            _ => Unit::Count,
        }
    }

    /// Meaning of the setting and its older name, as one paragraph.
    pub fn meaning(self) -> String {
        let mut meaning = paragraph(self.field.doc);
        let name = self.name();
        if let Some((older, _)) = ALIASES.iter().find(|(_, now)| *now == name) {
            meaning.extend([" Older name: `", older, "`."]);
        }
        meaning
    }

    /// Type of the setting in words: `size`, `duration`, `` `fsync` or `os` ``.
    pub(super) fn type_text(self) -> String {
        match self.field.kind {
            Kind::Number => self.unit().noun().to_owned(),
            Kind::Fraction => "number".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Path => "path".to_owned(),
            Kind::Address => "address".to_owned(),
            Kind::List => "list of texts".to_owned(),
            Kind::OneOf(words) => words.join(", "),
        }
    }

    /// The values it may have, in words; empty where its type says it.
    pub(super) fn range_text(self) -> String {
        let range = self.field.range;
        range.map_or_else(String::new, |range| range.text(self.unit()))
    }

    /// Whether a running server takes a new value over at SIGHUP.
    pub fn is_reloaded(self) -> bool {
        RELOADED.contains(&self.name().as_str())
    }

    /// Refuses a number out of range.
    pub(super) fn check(self, value: &Value) -> Result<(), ConfigError> {
        let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
        let ranges = [self.field.range, Some(Range::between(0, self.unit().largest()))];
        let refuses = |range: &Range| number.is_some_and(|number| !range.holds(number));
        match ranges.into_iter().flatten().find(refuses) {
            Some(range) => {
                let message = format!("is {value}, and must be {}", range.text(self.unit()));
                Err(ConfigError::new(self.name(), message))
            }
            None => Ok(()),
        }
    }

    /// Shows a value as people write it, in TOML.
    pub(super) fn show(self, value: &Value) -> String {
        match (self.unit(), value.as_integer().map(u64::try_from)) {
            (Unit::Count, _) | (_, None | Some(Err(_))) => value.to_string(),
            (unit, Some(Ok(number))) => {
                let text = unit.show(number);
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                if is_plain { text } else { format!("{text:?}") }
            }
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.field.key)
    }
}

fn variable_of(name: &str) -> String {
    format!("{PREFIX}{}", name.replace('.', "_").to_ascii_uppercase())
}

/// Prefix of the names of environment variables.
pub(super) const PREFIX: &str = "BASALT_";

/// Lines of documentation as one paragraph.
pub(super) fn paragraph(doc: &[&str]) -> String {
    let lines: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

/// Error text for an unknown setting, with the nearest name.
pub(super) fn unknown(name: &str) -> String {
    let names = Setting::all().map(Setting::name);
    let known: Vec<String> = names.chain(ALIASES.map(|(alias, _)| alias.to_owned())).collect();
    unknown_of(name, &known)
}

/// Error text for an unknown environment variable, with the nearest name.
pub(super) fn unknown_variable(variable: &str) -> String {
    let known: Vec<String> = Setting::all().map(Setting::variable).collect();
    unknown_of(variable, &known)
}

fn unknown_of(name: &str, known: &[String]) -> String {
    let likeness = |known: &String| strsim::jaro_winkler(name, known);
    let nearest = known
        .iter()
        .max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    match nearest {
        Some(nearest) if likeness(nearest) > 0.7 => {
            format!("there is no setting {name}; the nearest name is {nearest}")
        }
        _ => format!("there is no setting {name}; basalt config print lists all"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Config;

    /// Goal: every setting is described, and no other. Method: the settings as they are
    /// serialised.
    #[test]
    fn all_settings_are_described() {
        let described: BTreeSet<String> = Setting::all().map(Setting::name).collect();
        let all = Config::default().settings();
        assert_eq!(described, all.into_iter().map(|(name, _)| name).collect());
        for setting in Setting::all() {
            assert!(
                setting.meaning().ends_with('.'),
                "{setting}: {}",
                setting.meaning()
            );
        }
        for name in RELOADED.into_iter().chain(ALIASES.map(|(older, _)| older)) {
            assert!(Setting::named(name).is_some(), "{name}");
        }
    }

    /// Goal: no two settings share a variable.
    #[test]
    fn variables_are_unique() {
        let all: Vec<String> = Setting::all().map(Setting::variable).collect();
        let unique: BTreeSet<&String> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        let setting = Setting::of_variable("BASALT_MEMSTORE_FLUSH_BYTES").unwrap();
        assert_eq!(setting.name(), "memstore.flush_bytes");
        let alias = Setting::of_variable("BASALT_THRIFT_LISTEN").unwrap();
        assert_eq!(alias.name(), "server.listen");
    }

    #[test]
    fn words_of_settings_are_those_of_their_types() {
        for setting in Setting::all() {
            let Kind::OneOf(words) = setting.kind() else {
                continue;
            };
            for word in words {
                let set = [format!("{setting}={word}")];
                Config::parse("", std::path::Path::new("f"), &set).unwrap();
            }
        }
    }

    #[test]
    fn a_typing_error_gets_the_nearest_name() {
        for (wrong, nearest) in [
            ("wal.sink", "wal.sync"),
            ("memstore.flush_byte", "memstore.flush_bytes"),
            ("server.max_conections", "server.max_connections"),
        ] {
            assert!(
                unknown(wrong).ends_with(&format!("the nearest name is {nearest}")),
                "{}",
                unknown(wrong)
            );
        }
        assert!(unknown_variable("BASALT_WAL_SYNK").ends_with("BASALT_WAL_SYNC"));
        assert!(unknown("zzz").contains("config print"));
    }
}
