//! Fields of calls, read by name and type.

use bytes::Bytes;

use crate::Value;
use crate::connection::NoAnswer;

/// A struct of a script, whose fields are read by name and type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a Value);

impl<'a> Fields<'a> {
    /// The error for a field that is missing or does not fit the message.
    pub(crate) fn wrong(self, name: &str) -> NoAnswer {
        NoAnswer::Script(format!("field {name} of {}", self.0))
    }

    /// The struct in a field that may be absent.
    pub(crate) fn optional(self, name: &str) -> Option<Fields<'a>> {
        self.0.field(name).map(Fields)
    }

    /// The struct in a field.
    pub(crate) fn message(self, name: &str) -> Result<Fields<'a>, NoAnswer> {
        self.optional(name).ok_or_else(|| self.wrong(name))
    }

    /// The bytes of a field.
    pub(crate) fn bytes(self, name: &str) -> Result<Bytes, NoAnswer> {
        self.optional_bytes(name)?.ok_or_else(|| self.wrong(name))
    }

    /// The bytes of a field that may be absent.
    pub(crate) fn optional_bytes(self, name: &str) -> Result<Option<Bytes>, NoAnswer> {
        match self.0.field(name) {
            None => Ok(None),
            Some(Value::Bytes(bytes)) => Ok(Some(bytes.clone().into())),
            Some(_) => Err(self.wrong(name)),
        }
    }

    /// The integer in a field that may be absent.
    pub(crate) fn int<T: TryFrom<i64>>(self, name: &str) -> Result<Option<T>, NoAnswer> {
        match self.0.field(name) {
            None => Ok(None),
            Some(Value::Int(value)) => T::try_from(*value).map(Some).map_err(|_| self.wrong(name)),
            Some(_) => Err(self.wrong(name)),
        }
    }

    /// The integer in a field.
    pub(crate) fn u32(self, name: &str) -> Result<Option<u32>, NoAnswer> {
        self.int(name)
    }

    /// The flag in a field.
    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>, NoAnswer> {
        match self.0.field(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong(name)),
        }
    }

    /// The structs of a list; none if it is absent.
    pub(crate) fn list(self, name: &str) -> Result<Vec<Fields<'a>>, NoAnswer> {
        match self.0.field(name) {
            None => Ok(Vec::new()),
            Some(Value::List(values)) => Ok(values.iter().map(Fields).collect()),
            Some(_) => Err(self.wrong(name)),
        }
    }
}
