//! Limits of values, their text, and the errors of expressions.

use super::super::syntax::{NOT_RUBY, Value};
use super::super::{ShellError, ShellResult};

/// Maximum size of a string, and number of elements of an array, that an expression makes.
pub(super) const SIZE_MAX: usize = 1 << 20;

pub(super) fn wrong<T>(text: impl Into<String>) -> ShellResult<T> {
    Err(ShellError::Arguments(text.into()))
}

/// The error for a part of Ruby that this shell lacks.
pub(super) fn not_ruby<T>(what: &str) -> ShellResult<T> {
    wrong(format!("{what} is Ruby; {NOT_RUBY}"))
}

pub(super) fn check_size(size: usize) -> ShellResult<()> {
    if size > SIZE_MAX {
        return wrong(format!("the value is larger than {SIZE_MAX} bytes or elements"));
    }
    Ok(())
}

/// A value as the text that interpolation inserts: Ruby's `to_s`.
pub(super) fn to_text(value: &Value) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes.clone(),
        Value::Nil => Vec::new(),
        Value::Table(name) => name.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}
