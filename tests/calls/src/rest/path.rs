//! Paths and parameters of requests: keys in percent-encoding or base64.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{
    GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE, URL_SAFE_NO_PAD,
};

use crate::Value;
use crate::connection::NoAnswer;
use crate::fields::Fields;

/// Base64 of answers, with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes as bodies have them.
pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Bytes of a body or header; the error names the text.
pub(super) fn unbase64(text: &str) -> Result<Vec<u8>, String> {
    LENIENT
        .decode(text.trim())
        .map_err(|error| format!("{text:?}: {error}"))
}

/// Every byte that is not a letter, a digit or one of `-._~` as `%XX`.
pub(super) fn percent(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// The encoding of keys in one request.
#[derive(Clone, Debug)]
pub(super) struct Encoding(Option<String>);

impl Encoding {
    /// Percent-encoding.
    pub(super) const PLAIN: Encoding = Encoding(None);

    /// That of a call.
    pub(super) fn of(call: Fields<'_>) -> Result<Self, NoAnswer> {
        Ok(Self(text(call, "encoding")?))
    }

    /// Its name, if keys are not plain.
    pub(super) fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// A key or column as a part of a path.
    pub(super) fn key(&self, bytes: &[u8]) -> String {
        match self.name() {
            None => percent(bytes),
            Some(name) if name.ends_with("basic") => percent(STANDARD.encode(bytes).as_bytes()),
            Some(_) => percent(URL_SAFE.encode(bytes).as_bytes()),
        }
    }

    /// `rows[/columns[/times]]`.
    pub(super) fn row_path(&self, path: Fields<'_>) -> Result<String, NoAnswer> {
        let mut text = self.key(&path.bytes("row")?);
        if let Some(stop) = path.optional_bytes("stop")? {
            let _ = write!(text, ",{}", self.key(&stop));
        }
        if path.flag("prefix")? == Some(true) {
            text.push('*');
        }
        let columns = self.columns(path)?;
        let (from, to) = (path.int::<i64>("from")?, path.int::<i64>("to")?);
        if !columns.is_empty() || to.is_some() {
            let _ = write!(text, "/{columns}");
        }
        match (from, to) {
            (_, None) => {}
            (None, Some(to)) => drop(write!(text, "/{to}")),
            (Some(from), Some(to)) => drop(write!(text, "/{from},{to}")),
        }
        Ok(text)
    }

    /// The field `columns`, with commas between.
    pub(super) fn columns(&self, of: Fields<'_>) -> Result<String, NoAnswer> {
        let columns: Vec<String> = byte_list(of, "columns")?
            .iter()
            .map(|column| self.key(column))
            .collect();
        Ok(columns.join(","))
    }
}

/// The byte strings of a list; none if it is absent.
pub(super) fn byte_list(of: Fields<'_>, name: &str) -> Result<Vec<Vec<u8>>, NoAnswer> {
    let values = of.list(name)?.into_iter();
    values
        .map(|value| match value.0 {
            Value::Bytes(bytes) => Ok(bytes.clone()),
            _ => Err(of.wrong(name)),
        })
        .collect()
}

/// The text of a field that may be absent.
pub(super) fn text(of: Fields<'_>, name: &str) -> Result<Option<String>, NoAnswer> {
    let bytes = of.optional_bytes(name)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// A query string that grows.
#[derive(Debug, Default)]
pub(super) struct Query(String);

impl Query {
    /// Adds a parameter.
    pub(super) fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let sign = if self.0.is_empty() { '?' } else { '&' };
        let _ = write!(self.0, "{sign}{name}={}", percent(value.as_ref()));
    }

    /// Adds the integer of a field that is there.
    pub(super) fn int(&mut self, name: &str, of: Fields<'_>, field: &str) -> Result<(), NoAnswer> {
        if let Some(value) = of.int::<i64>(field)? {
            self.add(name, value.to_string());
        }
        Ok(())
    }

    /// Adds the flag of a field that is there.
    pub(super) fn flag(&mut self, name: &str, of: Fields<'_>, field: &str) -> Result<(), NoAnswer> {
        if let Some(value) = of.flag(field)? {
            self.add(name, value.to_string());
        }
        Ok(())
    }

    /// Adds the field `filter`, as text or, with `filterEncoded`, in base64.
    pub(super) fn filter(&mut self, of: Fields<'_>) -> Result<(), NoAnswer> {
        if let Some(filter) = of.optional_bytes("filter")? {
            if of.flag("filterEncoded")? == Some(true) {
                // HBase does not decode percent signs here.
                self.add("filter_b64", URL_SAFE_NO_PAD.encode(&filter));
            } else {
                self.add("filter", &filter);
            }
        }
        Ok(())
    }

    /// Its text, with the question mark, or nothing.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(encoding: Option<&str>, fields: Vec<(&'static str, Value)>) -> String {
        let encoding = Encoding(encoding.map(str::to_owned));
        encoding.row_path(Fields(&Value::Struct(fields))).expect("a path")
    }

    #[test]
    fn paths_have_rows_columns_and_times() {
        let row = || ("row", Value::bytes("a/b"));
        let columns = || ("columns", vec!["f:x".into(), "g:".into()].into());
        assert_eq!(path(None, vec![row()]), "a%2Fb");
        assert_eq!(path(None, vec![row(), ("stop", "c".into())]), "a%2Fb,c");
        assert_eq!(path(None, vec![row(), ("prefix", true.into())]), "a%2Fb*");
        assert_eq!(path(None, vec![row(), columns()]), "a%2Fb/f%3Ax,g%3A");
        assert_eq!(path(None, vec![row(), ("to", 5.into())]), "a%2Fb//5");
        let times = [("from", 1.into()), ("to", 5.into())];
        assert_eq!(
            path(None, [vec![row(), columns()], times.to_vec()].concat()),
            "a%2Fb/f%3Ax,g%3A/1,5"
        );
        assert_eq!(
            path(Some("b64"), vec![("row", Value::bytes(b"\xff\xfe"))]),
            "__4%3D"
        );
        assert_eq!(
            path(Some("b64basic"), vec![("row", Value::bytes(b"\xff\xfe"))]),
            "%2F%2F4%3D"
        );
    }
}
