//! A command's values taken apart, with errors that name the argument.

use super::value::Value;
use super::{ShellError, ShellResult};

/// The arguments of one command, handed out from the front.
#[derive(Debug)]
pub struct Arguments {
    command: String,
    values: std::collections::VecDeque<Value>,
}

/// The pairs of a hash, taken out by key.
#[derive(Debug, Default)]
pub struct Options {
    pairs: Vec<(String, Value)>,
}

fn wrong<T>(text: String) -> ShellResult<T> {
    Err(ShellError::Arguments(text))
}

impl Arguments {
    /// The arguments of `command`.
    pub fn new(command: &str, values: Vec<Value>) -> Arguments {
        Arguments {
            command: command.to_owned(),
            values: values.into(),
        }
    }

    /// The next argument, `None` if there is none or it is `nil`.
    pub fn take(&mut self) -> Option<Value> {
        self.values.pop_front().filter(|value| *value != Value::Nil)
    }

    /// The next argument as bytes.
    pub fn bytes(&mut self, what: &str) -> ShellResult<Vec<u8>> {
        match self.take() {
            Some(value) => bytes(value, what),
            None => wrong(format!(
                "{} needs {what}; see help '{}'",
                self.command, self.command
            )),
        }
    }

    /// The next argument as text.
    pub fn text(&mut self, what: &str) -> ShellResult<String> {
        text(self.bytes(what)?, what)
    }

    /// The next argument as bytes, if it is there and no hash.
    pub fn optional_bytes(&mut self, what: &str) -> ShellResult<Option<Vec<u8>>> {
        match self.values.front() {
            None | Some(Value::Hash(_)) => Ok(None),
            Some(_) => self.take().map(|value| bytes(value, what)).transpose(),
        }
    }

    /// The next argument as text, if it is there and no hash.
    pub fn optional_text(&mut self, what: &str) -> ShellResult<Option<String>> {
        let bytes = self.optional_bytes(what)?;
        bytes.map(|bytes| text(bytes, what)).transpose()
    }

    /// The next argument as a whole number, if it is there and no hash.
    pub fn optional_integer(&mut self, what: &str) -> ShellResult<Option<i64>> {
        match self.values.front() {
            None | Some(Value::Hash(_)) => Ok(None),
            Some(_) => self.take().map(|value| integer(&value, what)).transpose(),
        }
    }

    /// Takes the next argument if it is an integer without quotes.
    pub fn next_integer(&mut self) -> Option<i64> {
        let Some(Value::Integer(number)) = self.values.front() else {
            return None;
        };
        let number = *number;
        self.values.pop_front();
        Some(number)
    }

    /// The next argument as true or false.
    pub fn boolean(&mut self, what: &str) -> ShellResult<bool> {
        match self.take() {
            Some(Value::Bool(value)) => Ok(value),
            Some(Value::Bytes(text)) if text == b"true" => Ok(true),
            Some(Value::Bytes(text)) if text == b"false" => Ok(false),
            _ => wrong(format!(
                "{} needs {what}; see help '{}'",
                self.command, self.command
            )),
        }
    }

    /// Whether the next argument is options.
    pub fn next_is_options(&self) -> bool {
        matches!(self.values.front(), Some(Value::Hash(_)))
    }

    /// The next argument as options, if it is there.
    pub fn options(&mut self) -> ShellResult<Options> {
        match self.take() {
            None => Ok(Options::default()),
            Some(Value::Hash(pairs)) => Options::new(pairs),
            Some(other) => wrong(format!(
                "{} takes {{ KEY => value }} here, not {}",
                self.command,
                other.kind()
            )),
        }
    }

    /// Fails if arguments are left.
    pub fn end(&mut self) -> ShellResult<()> {
        match self.values.len() {
            0 => Ok(()),
            left => wrong(format!(
                "{} got {left} arguments too many; see help '{}'",
                self.command, self.command
            )),
        }
    }
}

impl Options {
    /// The pairs of a hash.
    pub fn new(pairs: Vec<(Vec<u8>, Value)>) -> ShellResult<Options> {
        let mut options = Options::default();
        for (key, value) in pairs {
            let key = text(key, "a key")?;
            if options.pairs.iter().any(|(known, _)| *known == key) {
                return wrong(format!("{key} is given twice"));
            }
            options.pairs.push((key, value));
        }
        Ok(options)
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(known, _)| known == key)
    }

    /// The value of a key, which stays.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        let mut pairs = self.pairs.iter();
        pairs.find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The value of a key as text; `None` for one that is no string, number or constant.
    pub(super) fn shown(&self, key: &str) -> Option<String> {
        let value = bytes(self.value(key)?.clone(), key).ok()?;
        String::from_utf8(value).ok()
    }

    /// The keys that have not been taken.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(key, _)| key.as_str())
    }

    /// Takes the value of a key.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        let index = self.pairs.iter().position(|(known, _)| known == key)?;
        Some(self.pairs.remove(index).1).filter(|value| *value != Value::Nil)
    }

    /// Takes the value of a key as bytes.
    pub fn bytes(&mut self, key: &str) -> ShellResult<Option<Vec<u8>>> {
        self.take(key).map(|value| bytes(value, key)).transpose()
    }

    /// Takes the value of a key as text.
    pub fn text(&mut self, key: &str) -> ShellResult<Option<String>> {
        self.bytes(key)?.map(|value| text(value, key)).transpose()
    }

    /// Takes the value of a key as a whole number.
    pub fn integer(&mut self, key: &str) -> ShellResult<Option<i64>> {
        self.take(key).map(|value| integer(&value, key)).transpose()
    }

    /// Takes the value of a key as a whole number of 32 bits.
    pub fn integer32(&mut self, key: &str) -> ShellResult<Option<i32>> {
        let Some(number) = self.integer(key)? else {
            return Ok(None);
        };
        match i32::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => wrong(format!("{key} is {number}, outside of 32 bits")),
        }
    }

    /// Takes the value of a key as true or false.
    pub fn boolean(&mut self, key: &str) -> ShellResult<Option<bool>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match value {
            Value::Bool(value) => Ok(Some(value)),
            other => match bytes(other, key)?.to_ascii_lowercase().as_slice() {
                b"true" => Ok(Some(true)),
                b"false" => Ok(Some(false)),
                _ => wrong(format!("{key} is neither true nor false")),
            },
        }
    }

    /// Takes the value of a key as pairs of text.
    pub fn texts_by_name(&mut self, key: &str) -> ShellResult<Vec<(String, String)>> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Hash(pairs)) => pairs
                .into_iter()
                .map(|(name, value)| Ok((text(name, key)?, text(bytes(value, key)?, key)?)))
                .collect(),
            Some(other) => wrong(format!(
                "{key} takes {{ 'name' => 'value' }}, not {}",
                other.kind()
            )),
        }
    }

    /// Takes the value of a key as pairs of text and bytes.
    pub fn bytes_by_name(&mut self, key: &str) -> ShellResult<Vec<(Vec<u8>, Vec<u8>)>> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Hash(pairs)) => pairs
                .into_iter()
                .map(|(name, value)| Ok((name, bytes(value, key)?)))
                .collect(),
            Some(other) => wrong(format!(
                "{key} takes {{ 'name' => 'value' }}, not {}",
                other.kind()
            )),
        }
    }

    /// The pairs that were not taken.
    pub fn rest(self) -> Vec<(String, Value)> {
        self.pairs
    }

    /// Fails if pairs are left, naming those that the command knows.
    pub fn end(self, known: &[&str]) -> ShellResult<()> {
        match self.pairs.first() {
            None => Ok(()),
            Some((key, _)) => {
                let upper = key.to_ascii_uppercase();
                let hint = if known.contains(&upper.as_str()) {
                    format!("did you mean {upper}?")
                } else {
                    format!("known are {}", known.join(", "))
                };
                wrong(format!("unknown option {key}; {hint}"))
            }
        }
    }
}

/// A value as bytes. Numbers and constants are their text, as in Ruby's `to_s`.
pub fn bytes(value: Value, what: &str) -> ShellResult<Vec<u8>> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        Value::Constant(name) | Value::Table(name) => Ok(name.into_bytes()),
        Value::Integer(number) => Ok(number.to_string().into_bytes()),
        Value::Float(number) => Ok(number.to_string().into_bytes()),
        Value::Bool(value) => Ok(value.to_string().into_bytes()),
        other => wrong(format!("{what} is {} instead of a string", other.kind())),
    }
}

/// A value as a whole number. Strings of digits count.
pub fn integer(value: &Value, what: &str) -> ShellResult<i64> {
    let number = match value {
        Value::Integer(number) => Some(*number),
        Value::Bytes(digits) => std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok()),
        _ => None,
    };
    number.map_or_else(
        || wrong(format!("{what} is {} instead of a whole number", value.kind())),
        Ok,
    )
}

/// One value or an array of them, as bytes.
pub fn list(value: Value, what: &str) -> ShellResult<Vec<Vec<u8>>> {
    match value {
        Value::Array(values) => values.into_iter().map(|value| bytes(value, what)).collect(),
        other => Ok(vec![bytes(other, what)?]),
    }
}

/// Bytes that must be text.
pub fn text(bytes: Vec<u8>, what: &str) -> ShellResult<String> {
    String::from_utf8(bytes).or_else(|_| wrong(format!("{what} is not valid UTF-8")))
}
