//! A model as it was checked (`check`): fields, tables with a key for each layout, and access patterns; the
//! bytes of keys.

use basalt_client::Compression;
use basalt_client::keys::{KeyDesign as _, Salt};
use basalt_load::load::choose::Distribution;
use basalt_types::schema::{KeyField, KeyLayout};

use super::time::TimeForm;

/// Most layouts of a model.
pub(super) const LAYOUTS_MAX: usize = 4;
/// Most rows that are loaded.
pub(super) const ROWS_MAX: u64 = 100_000_000;
/// Most bytes of a value.
pub(super) const VALUE_BYTES_MAX: u64 = 10 << 20;

/// A model.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) title: String,
    /// Names of the layouts.
    pub(super) layouts: Vec<String>,
    pub(super) rehearsal: Rehearsal,
    pub(super) tables: Vec<Table>,
    pub(super) patterns: Vec<Pattern>,
}

/// The cluster to rehearse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rehearsal {
    pub(super) servers: u64,
    pub(super) requests_per_second: u64,
}

/// A value that keys are made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) kind: FieldKind,
    /// Decimal digits instead of bytes.
    pub(super) is_text: bool,
}

/// Where the value comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldKind {
    /// The row's time.
    Time(TimeForm),
    /// An id: one of a number of users, sensors and the like.
    Id { count: u64, skew: Distribution },
    /// The row's number.
    Sequence,
    /// A bucket of a hash of other fields of the key.
    Salt { buckets: u16, of: Vec<String> },
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// Rows that are there before patterns run.
    pub(super) rows: u64,
    pub(super) rows_per_day: f64,
    pub(super) keep_days: u64,
    pub(super) regions: u64,
    /// By layout, in their order.
    pub(super) keys: Vec<Key>,
    pub(super) families: Vec<Family>,
}

/// A column family.
#[derive(Clone, Debug)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) value_bytes: usize,
    pub(super) compression: Option<Compression>,
    pub(super) versions: Option<u32>,
    /// From `keep_days` of its table.
    pub(super) ttl_seconds: Option<u32>,
}

/// A row key.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// As in the model.
    pub(super) text: String,
    pub(super) layout: KeyLayout,
    pub(super) segments: Vec<Segment>,
}

/// A field in a key.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Name of the value.
    pub(super) name: String,
    pub(super) in_key: KeyField,
    pub(super) field: Field,
    /// Bytes before it.
    pub(super) offset: usize,
}

/// An access pattern.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) name: String,
    /// Index of the table.
    pub(super) table: usize,
    pub(super) kind: PatternKind,
    /// Rows written, or questions asked, in a second; `None`: as many as are answered.
    pub(super) rate: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    /// Which rows are asked for.
    pub(super) skew: Distribution,
}

impl Pattern {
    /// The name of its function in code: `latest_20_of_a_user`.
    pub(super) fn function(&self) -> String {
        let plain = self.name.chars().map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                '_'
            }
        });
        let words: String = plain.collect();
        let words: Vec<&str> = words.split('_').filter(|word| !word.is_empty()).collect();
        let words = words.join("_");
        if words.starts_with(|first: char| first.is_ascii_alphabetic()) {
            words
        } else {
            format!("pattern_{words}")
        }
    }
}

/// The operation of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PatternKind {
    /// New rows, in the order of time.
    Write { batch: u64 },
    /// One row by its key.
    Get,
    /// Rows with these values, of a time.
    Read {
        of: Vec<String>,
        span_ms: Option<u64>,
        /// The newest so many; `None`: all.
        latest: Option<u32>,
    },
}

impl Segment {
    /// Number of bytes; `None` for the rest of the key.
    pub(super) fn bytes(&self) -> Option<usize> {
        self.in_key.bytes()
    }

    /// The bytes of a value: milliseconds for a time.
    pub(super) fn encode(&self, value: u64) -> Vec<u8> {
        if let FieldKind::Time(form) = &self.field.kind {
            return match (form, form.text(value)) {
                (_, Some(digits)) => digits.into_bytes(),
                (TimeForm::Number { unit_ms }, _) => self.number(value / unit_ms),
                (TimeForm::Digits(_), None) => Vec::new(),
            };
        }
        self.number(value)
    }

    fn number(&self, number: u64) -> Vec<u8> {
        if self.field.is_text || self.bytes().is_none() {
            let digits = self.bytes().unwrap_or(0);
            return format!("{number:0digits$}").into_bytes();
        }
        // Values were checked against the field's bytes; a time beyond them is as late as they can say.
        let greatest = self.in_key.greatest().unwrap_or_default();
        self.in_key
            .encode_number(number.min(greatest))
            .unwrap_or_default()
    }

    /// The form of a time, if it is one.
    pub(super) fn time(&self) -> Option<&TimeForm> {
        match &self.field.kind {
            FieldKind::Time(form) => Some(form),
            _ => None,
        }
    }
}

impl Key {
    /// The bytes of a key, from the values of its fields.
    pub(super) fn encode(&self, value: impl Fn(&str) -> u64) -> Vec<u8> {
        let own = |segment: &Segment| match segment.field.kind {
            FieldKind::Salt { .. } => Vec::new(),
            _ => segment.encode(value(&segment.name)),
        };
        let mut parts: Vec<Vec<u8>> = self.segments.iter().map(own).collect();
        for (index, segment) in self.segments.iter().enumerate() {
            if let FieldKind::Salt { buckets, of } = &segment.field.kind {
                let hashed: Vec<u8> = self
                    .places(of)
                    .flat_map(|place| parts[place].iter().copied())
                    .collect();
                parts[index] = segment.encode(bucket(*buckets, &hashed));
            }
        }
        parts.concat()
    }

    /// Places of fields in the key, in the order of `names`.
    pub(super) fn places<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = usize> + 'a {
        names
            .iter()
            .filter_map(|name| self.segments.iter().position(|segment| segment.name == *name))
    }
}

/// The bucket of some bytes: that of the client library's [`Salt`].
pub(super) fn bucket(buckets: u16, bytes: &[u8]) -> u64 {
    let salted = Salt::new(buckets).and_then(|salt| salt.encode(&bytes.to_vec()));
    salted.map_or(0, |salted| salted.first().copied().unwrap_or_default().into())
}
