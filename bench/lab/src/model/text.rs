//! The text of a model: TOML as a person writes it, with the place of each value for error messages.
//!
//! Types here say which fields there are; `file` checks their values.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use basalt_load::error::{Error, Result};
use serde::Deserialize;
use toml::Spanned;

/// A model file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelText {
    pub(super) title: String,
    pub(super) layouts: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) rehearsal: Option<RehearsalText>,
    pub(super) fields: BTreeMap<String, Spanned<FieldText>>,
    pub(super) tables: Vec<Spanned<TableText>>,
    pub(super) patterns: Vec<Spanned<PatternText>>,
}

/// The cluster to rehearse.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RehearsalText {
    pub(super) servers: Spanned<u64>,
    pub(super) requests_per_second: Spanned<u64>,
}

/// A value that keys are made of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldText {
    pub(super) kind: Spanned<String>,
    pub(super) unit: Option<Spanned<String>>,
    pub(super) format: Option<Spanned<String>>,
    pub(super) count: Option<Spanned<u64>>,
    pub(super) skew: Option<Spanned<String>>,
    pub(super) text: Option<Spanned<bool>>,
    pub(super) buckets: Option<Spanned<u64>>,
    pub(super) of: Option<Spanned<Vec<Spanned<String>>>>,
}

/// A table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableText {
    pub(super) name: Spanned<String>,
    pub(super) rows: Spanned<u64>,
    pub(super) rows_per_day: Spanned<f64>,
    pub(super) keep_days: Option<Spanned<u64>>,
    pub(super) regions: Spanned<u64>,
    pub(super) key: Option<Spanned<String>>,
    pub(super) keys: Option<Spanned<BTreeMap<String, Spanned<String>>>>,
    pub(super) families: Vec<Spanned<FamilyText>>,
}

/// A column family.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FamilyText {
    pub(super) name: Spanned<String>,
    pub(super) columns: Spanned<Vec<String>>,
    pub(super) value_bytes: Spanned<u64>,
    pub(super) compression: Option<Spanned<String>>,
    pub(super) versions: Option<Spanned<u64>>,
}

/// An access pattern.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PatternText {
    pub(super) name: Spanned<String>,
    pub(super) table: Spanned<String>,
    pub(super) kind: Spanned<String>,
    pub(super) rate: Option<Spanned<f64>>,
    pub(super) p99_ms: Option<Spanned<f64>>,
    pub(super) batch: Option<Spanned<u64>>,
    pub(super) skew: Option<Spanned<String>>,
    pub(super) of: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) span: Option<Spanned<String>>,
    pub(super) latest: Option<Spanned<u64>>,
}

/// The text of a file, and its name, for error messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// Reads the text. The error has the file, the line, and the fields that are allowed.
    pub(super) fn parse(self) -> Result<ModelText> {
        toml::from_str(self.text).map_err(|error| self.error(error.span().unwrap_or(0..0), error.message()))
    }

    /// An error about the value at a place.
    pub(super) fn error(self, at: Range<usize>, what: impl std::fmt::Display) -> Error {
        let before = self.text.as_bytes().get(..at.start).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        Error::Usage(format!("{}:{line}: {what}", self.path.display()))
    }

    /// The number, if it is in the range.
    pub(super) fn number(self, name: &str, value: &Spanned<u64>, allowed: Range<u64>) -> Result<u64> {
        let number = *value.get_ref();
        if allowed.contains(&number) {
            return Ok(number);
        }
        let what = format!(
            "{name} = {number}: it may be from {} to {}",
            allowed.start,
            allowed.end - 1
        );
        Err(self.error(value.span(), what))
    }

    /// The number, if it is positive.
    pub(super) fn positive(self, name: &str, value: &Spanned<f64>) -> Result<f64> {
        let number = *value.get_ref();
        if number.is_finite() && number > 0.0 && number <= 1e12 {
            return Ok(number);
        }
        Err(self.error(
            value.span(),
            format!("{name} = {number}: it must be above 0 and at most 1e12"),
        ))
    }

    /// Fails for a field that its kind does not have: it would have no effect.
    pub(super) fn unused<T>(
        self,
        kind: &str,
        name: &str,
        value: Option<&Spanned<T>>,
        has: &str,
    ) -> Result<()> {
        match value {
            None => Ok(()),
            Some(value) => Err(self.error(
                value.span(),
                format!("{name}: kind = {kind:?} does not have it; it has {has}"),
            )),
        }
    }
}
