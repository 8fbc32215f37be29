//! The layers of settings: defaults, a TOML file, environment variables, `--set`, the other
//! options of the command line. Later ones win.
//!
//! Each value is checked by itself when its layer is read, so that an error names the place where
//! it was given: the line of the file, the variable, the argument. Values that no layer gives may
//! follow from others (`memory::divide`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::de::DeTable;
use toml::{Table, Value};

use super::declaration::Kind;
use super::describe::{PREFIX, Setting, unknown, unknown_variable};
use super::sections::SECTIONS;
use super::units::Unit;
use super::{Address, Config, ConfigError, TEXT_BYTES_MAX, memory};

/// Variables with our prefix that are no settings: options of the command line, and variables of
/// the build and the tests.
const OTHER_VARIABLES: [&str; 19] = [
    "BASALT_BINARY",
    "BASALT_CLIENT_CA",
    "BASALT_CLIENT_CERTIFICATE",
    "BASALT_CLIENT_SERVER_NAME",
    "BASALT_COMMIT",
    "BASALT_CONFIG",
    "BASALT_EPHEMERAL",
    "BASALT_GENERATE",
    "BASALT_GRAFANA",
    "BASALT_HTTP",
    "BASALT_INSECURE",
    "BASALT_PASSWORD_FILE",
    "BASALT_PROGRAM",
    "BASALT_PROGRAMS",
    "BASALT_SECURE",
    "BASALT_SETTINGS",
    "BASALT_TARGET",
    "BASALT_TOKEN_FILE",
    "BASALT_USER",
];

/// Variables that Kubernetes sets in every container for a service called `basalt`.
const SERVICE_VARIABLES: [&str; 3] = ["BASALT_PORT_", "BASALT_SERVICE_HOST", "BASALT_SERVICE_PORT"];

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// No layer gives it.
    #[default]
    Default,
    /// No layer gives it, and another setting does.
    Derived,
    /// The mode `--ephemeral`.
    Ephemeral,
    /// The configuration file.
    File(PathBuf),
    /// This environment variable.
    Variable(String),
    /// `--set`.
    Set,
    /// This option.
    Option(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Derived => f.write_str("share of another setting"),
            Self::Ephemeral => f.write_str("--ephemeral"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Set => f.write_str("--set"),
            Self::Option(name) => f.write_str(name),
        }
    }
}

/// The inputs from which settings are read.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Values that take the place of defaults, as `section.key=value`.
    pub ephemeral: Vec<String>,
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// Environment variables; those without our prefix are ignored.
    pub variables: Vec<(String, String)>,
    /// Arguments of `--set`.
    pub set: Vec<String>,
    /// `--data-dir`
    pub data_dir: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<Address>,
    /// `--http-listen`
    pub http_listen: Option<Address>,
}

impl Inputs {
    /// The variables of this process that have our prefix. Those that are not UTF-8 are refused
    /// later, with a readable form of them.
    pub fn own_variables() -> Vec<(String, String)> {
        std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect()
    }
}

/// Settings, and where each comes from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    sources: BTreeMap<String, Source>,
}

impl Loaded {
    /// Where the value of a setting comes from.
    pub fn source(&self, setting: Setting) -> Source {
        self.sources.get(&setting.name()).cloned().unwrap_or_default()
    }
}

impl Config {
    /// Reads all layers. Does not [`Self::validate`].
    pub fn load(inputs: &Inputs) -> Result<Loaded, ConfigError> {
        let mut layers = Layers::default();
        for argument in &inputs.ephemeral {
            layers.set(argument, &Source::Ephemeral)?;
        }
        if let Some(path) = &inputs.file {
            layers.file(&read(path)?, path)?;
        }
        for (name, value) in &inputs.variables {
            layers.variable(name, value)?;
        }
        for argument in &inputs.set {
            layers.set(argument, &Source::Set)?;
        }
        if let Some(path) = &inputs.data_dir {
            layers.option("data.dir", "--data-dir", path_text(path)?)?;
        }
        if let Some(address) = &inputs.listen {
            layers.option("server.listen", "--listen", address.to_string())?;
        }
        if let Some(address) = &inputs.http_listen {
            layers.option("http.listen", "--http-listen", address.to_string())?;
        }
        Ok(layers.finish())
    }

    /// Reads the text of a file and `section.key=value` arguments; `path` is for errors.
    pub fn parse(text: &str, path: &Path, set: &[String]) -> Result<Self, ConfigError> {
        let mut layers = Layers::default();
        layers.file(text, path)?;
        for argument in set {
            layers.set(argument, &Source::Set)?;
        }
        Ok(layers.finish().config)
    }
}

fn path_text(path: &Path) -> Result<String, ConfigError> {
    let not_utf8 = || ConfigError::new("data.dir", format!("{} is not UTF-8", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(not_utf8)
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text))
        .map_err(|error| ConfigError::of_file(path, error))?;
    Ok(text)
}

/// The values that layers have given so far.
#[derive(Debug, Default)]
struct Layers {
    table: Table,
    sources: BTreeMap<String, Source>,
}

impl Layers {
    /// Takes a value over, which must have the setting's type.
    fn put(&mut self, setting: Setting, value: Value, source: Source) -> Result<(), String> {
        let value = with_unit(setting, value)?;
        let mut alone = Table::new();
        memory::section_of(&mut alone, setting.section).insert(setting.key().to_owned(), value.clone());
        if let Err(error) = Config::deserialize(alone) {
            return Err(error.message().to_owned());
        }
        memory::section_of(&mut self.table, setting.section).insert(setting.key().to_owned(), value);
        self.sources.insert(setting.name(), source);
        Ok(())
    }

    /// Takes over the settings of a TOML text.
    fn file(&mut self, text: &str, path: &Path) -> Result<(), ConfigError> {
        let refuse = |message: String| ConfigError::of_file(path, message);
        if text.len() > TEXT_BYTES_MAX {
            return Err(refuse(format!("longer than {TEXT_BYTES_MAX} bytes")));
        }
        let values: Table = text
            .parse()
            .map_err(|error: toml::de::Error| refuse(error.to_string()))?;
        let lines = Lines::of(text);
        let at = |name: &str, message: String| match lines.line(name) {
            Some(line) => refuse(format!("line {line}: {message}")),
            None => refuse(message),
        };
        let mut given = BTreeSet::new();
        for (section, values) in values {
            let is_section = SECTIONS.iter().any(|known| known.name == section);
            let Some(values) = values
                .as_table()
                .filter(|values| is_section || !values.is_empty())
            else {
                return Err(at(
                    &section,
                    format!("{section} is no section; settings are called section.key"),
                ));
            };
            for (key, value) in values.clone() {
                let name = format!("{section}.{key}");
                let setting = Setting::named(&name).ok_or_else(|| at(&name, unknown(&name)))?;
                if !given.insert(setting.name()) {
                    return Err(at(
                        &name,
                        format!("{name} is another name of {setting}, which is set as well"),
                    ));
                }
                self.put(setting, value, Source::File(path.to_path_buf()))
                    .map_err(|message| at(&name, format!("{name}: {message}")))?;
            }
        }
        Ok(())
    }

    /// Takes over an environment variable.
    fn variable(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        let is_other = !name.starts_with(PREFIX)
            || OTHER_VARIABLES.contains(&name)
            || name == "BASALT_PORT"
            || SERVICE_VARIABLES.iter().any(|begin| name.starts_with(begin));
        if is_other {
            return Ok(());
        }
        let refuse =
            |message: String| ConfigError::new(format!("environment variable {name}={text}"), message);
        let setting = Setting::of_variable(name).ok_or_else(|| refuse(unknown_variable(name)))?;
        let value = value_of(setting, text);
        self.put(setting, value, Source::Variable(name.to_owned()))
            .map_err(refuse)
    }

    /// Takes over one `section.key=value`.
    fn set(&mut self, argument: &str, source: &Source) -> Result<(), ConfigError> {
        let refuse = |message: String| ConfigError::new(format!("--set {argument}"), message);
        let (name, text) = argument
            .split_once('=')
            .ok_or_else(|| refuse("not of the form section.key=value".to_owned()))?;
        let name = name.trim();
        let setting = Setting::named(name).ok_or_else(|| refuse(unknown(name)))?;
        let value = value_of(setting, text.trim());
        self.put(setting, value, source.clone()).map_err(refuse)
    }

    /// Takes over the value of an option.
    fn option(&mut self, name: &str, option: &'static str, text: String) -> Result<(), ConfigError> {
        let setting = Setting::named(name).expect("an option is of a setting");
        let value = Value::String(text);
        self.put(setting, value, Source::Option(option))
            .map_err(|message| ConfigError::new(name, message))
    }

    /// The settings, with the values derived from the given ones.
    fn finish(mut self) -> Loaded {
        memory::divide(&mut self.table);
        for (section, values) in &self.table {
            for key in values.as_table().into_iter().flat_map(Table::keys) {
                self.sources
                    .entry(format!("{section}.{key}"))
                    .or_insert(Source::Derived);
            }
        }
        Loaded {
            config: Config::deserialize(self.table).expect("each value was checked"),
            sources: self.sources,
        }
    }
}

/// The value of a text outside of TOML. Numbers, flags and quoted texts are as in TOML; other texts
/// need no quotes, and lists may have commas only.
fn value_of(setting: Setting, text: &str) -> Value {
    let toml = format!("v = {text}")
        .parse::<Table>()
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("v"));
    let plain = || Value::String(text.to_owned());
    match (setting.kind(), toml) {
        (Kind::List, Some(list @ Value::Array(_))) => list,
        (Kind::List, _) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Value::Array(
                parts
                    .map(|part| Value::String(part.trim_matches('"').to_owned()))
                    .collect(),
            )
        }
        (Kind::Number | Kind::Fraction | Kind::Flag, Some(value)) | (_, Some(value @ Value::String(_))) => {
            value
        }
        _ => plain(),
    }
}

/// The value as a number where the setting has a unit and the value is a text, such as `"128MiB"`.
fn with_unit(setting: Setting, value: Value) -> Result<Value, String> {
    match (setting.unit(), value) {
        (Unit::Count, value) => Ok(value),
        (unit, Value::String(text)) => {
            let number = unit.parse(&text)?;
            i64::try_from(number)
                .map(Value::Integer)
                .map_err(|_| format!("{text:?} is more than {}", i64::MAX))
        }
        (_, value) => Ok(value),
    }
}

/// The lines of a text on which settings are.
struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// REQUIRES: the text is TOML.
    fn of(text: &str) -> Self {
        let line = |at: usize| text.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        let mut lines = BTreeMap::new();
        if let Ok(table) = DeTable::parse(text) {
            for (section, values) in table.get_ref() {
                let section_name = section.get_ref();
                lines.insert(section_name.to_string(), line(section.span().start));
                for (key, _) in values.get_ref().as_table().into_iter().flatten() {
                    lines.insert(
                        format!("{section_name}.{}", key.get_ref()),
                        line(key.span().start),
                    );
                }
            }
        }
        Self(lines)
    }

    fn line(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }
}

#[cfg(test)]
mod tests;
