//! Values of arguments, variables and commands.

use std::fmt::{self, Display, Formatter};

use super::escape::printable;

/// A value of the shell's language. [`Display`] prints it as Ruby's `inspect` does.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string, in quotes or as a symbol.
    Bytes(Vec<u8>),
    /// A constant, by its name.
    Constant(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// `nil`
    Nil,
    /// `[...]`
    Array(Vec<Value>),
    /// `{...}`, in the order written. Keys are strings, symbols or constants.
    Hash(Vec<(Vec<u8>, Value)>),
    /// Whole numbers from the first up to and including the second.
    Range(i64, i64),
    /// A table, by its name: the value of `create` and `get_table`.
    Table(String),
}

impl Value {
    /// A string.
    pub(super) fn text(text: impl Into<String>) -> Value {
        Value::Bytes(text.into().into_bytes())
    }

    /// The type of the value, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Bytes(_) => "a string",
            Value::Constant(_) => "a constant",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Bool(_) => "a boolean",
            Value::Nil => "nil",
            Value::Array(_) => "an array",
            Value::Hash(_) => "a hash",
            Value::Range(..) => "a range",
            Value::Table(_) => "a table",
        }
    }
}

impl<T: Into<String>> FromIterator<T> for Value {
    /// An array of strings.
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Value {
        Value::Array(texts.into_iter().map(Value::text).collect())
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bytes(bytes) => quoted(f, bytes),
            Value::Constant(name) => f.write_str(name),
            Value::Integer(number) => number.fmt(f),
            Value::Float(number) => write!(f, "{number:?}"),
            Value::Bool(value) => value.fmt(f),
            Value::Nil => f.write_str("nil"),
            Value::Array(values) => {
                f.write_str("[")?;
                separated(f, values.iter(), Value::fmt)?;
                f.write_str("]")
            }
            Value::Hash(pairs) => {
                f.write_str("{")?;
                separated(f, pairs.iter(), |(key, value), f| {
                    quoted(f, key)?;
                    write!(f, " => {value}")
                })?;
                f.write_str("}")
            }
            Value::Range(first, last) => write!(f, "{first}..{last}"),
            Value::Table(name) => write!(f, "Hbase::Table - {name}"),
        }
    }
}

/// Writes items with commas between them.
pub(super) fn separated<T>(
    f: &mut Formatter<'_>,
    items: impl Iterator<Item = T>,
    write: impl Fn(T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write(item, f)?;
    }
    Ok(())
}

/// Writes a string in double quotes, which [`parse`](super::parse) reads back.
fn quoted(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let text = printable(bytes).replace('"', "\\\"").replace("#{", "\\#{");
    write!(f, "\"{text}\"")
}
