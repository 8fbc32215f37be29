//! Code of a layout's patterns: for HBase's shell, for HappyBase and for HBase's Java client.
//!
//! All three do what `measure` did: they make the same keys, read the same ranges, and leave out the same
//! rows. An example of each question is in the shell's code and at the end of HappyBase's, so that both can
//! be run.

pub(super) mod happybase;
pub(super) mod java;
pub(super) mod shell;

use super::data::Data;
use super::file::{FieldKind, Key, Model, Pattern, PatternKind, Segment, Table};
use super::plan::Plan;
use super::time::{PARTS, Part, TimeForm};

/// A layout, and the tables that were made for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'a> {
    pub(super) model: &'a Model,
    pub(super) name: &'a str,
    pub(super) index: usize,
    /// By table of the model.
    pub(super) tables: &'a [Made],
}

/// A table of a layout.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) full_name: String,
    pub(super) splits: Vec<Vec<u8>>,
    pub(super) data: std::sync::Arc<Data>,
    /// Rows that are loaded.
    pub(super) rows: u64,
}

impl<'a> Layout<'a> {
    fn key(self, table: usize) -> &'a Key {
        &self.model.tables[table].keys[self.index]
    }

    fn plan(self, pattern: &Pattern) -> Plan {
        let data = &self.tables[pattern.table].data;
        Plan::of(self.key(pattern.table), pattern, data.ms_per_row())
    }

    fn table(self, pattern: &Pattern) -> &'a Table {
        &self.model.tables[pattern.table]
    }

    fn span_ms(pattern: &Pattern) -> u64 {
        match pattern.kind {
            PatternKind::Read {
                span_ms: Some(span_ms),
                ..
            } => span_ms,
            _ => 1,
        }
    }
}

/// The names of a key's values, each once, without salts; a time is `time_ms`.
fn values(key: &Key) -> Vec<&str> {
    let mut names = Vec::new();
    for segment in &key.segments {
        let name = match segment.field.kind {
            FieldKind::Salt { .. } => continue,
            FieldKind::Time(_) => "time_ms",
            FieldKind::Id { .. } | FieldKind::Sequence => segment.name.as_str(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The values that a pattern's function takes, with those of an example: question 0, or row 0.
fn arguments(layout: Layout<'_>, pattern: &Pattern) -> Vec<(String, u64)> {
    let (key, made) = (layout.key(pattern.table), &layout.tables[pattern.table]);
    let question = made.data.question(pattern, 0, made.rows);
    let of_row = |name: &str| -> u64 {
        let segment = key.segments.iter().find(|segment| segment.name == name);
        segment.map_or(made.data.time_ms(question.row), |segment| {
            made.data.value(name, &segment.field.kind, question.row)
        })
    };
    match &pattern.kind {
        PatternKind::Get | PatternKind::Write { .. } => {
            let value = |name: &str| (name.to_owned(), of_row(name));
            values(key).into_iter().map(value).collect()
        }
        PatternKind::Read { of, span_ms, .. } => {
            let mut arguments: Vec<(String, u64)> =
                of.iter().map(|name| (name.clone(), of_row(name))).collect();
            if span_ms.is_some() {
                arguments.push(("start_ms".to_owned(), question.span.start));
                arguments.push(("end_ms".to_owned(), question.span.end));
            }
            arguments
        }
    }
}

/// The variable that has a segment's value; `time` names that of a time.
fn variable<'a>(segment: &'a Segment, time: &'a str) -> &'a str {
    match segment.field.kind {
        FieldKind::Time(_) => time,
        _ => &segment.name,
    }
}

/// A time's digits in another language's letters, in the order of [`PARTS`].
fn letters(form: &TimeForm, letters: [&str; 6]) -> Option<String> {
    let TimeForm::Digits(parts) = form else {
        return None;
    };
    let letter = |part: &Part| {
        let place = PARTS.iter().position(|(_, known)| known == part);
        place.map_or("", |place| letters[place])
    };
    Some(parts.iter().map(letter).collect())
}

/// The column with a row's number.
fn number_column(table: &Table) -> String {
    let family = table.families.first().map_or("", |family| family.name.as_str());
    format!("{family}:{}", super::data::NUMBER)
}
