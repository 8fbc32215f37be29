//! The rows of a model's table, and questions about them. Both are functions of a number and the seed, so
//! that tasks share nothing and answers can be computed.
//!
//! Row `i` was written at `START_MS + i / rows_per_day` days. Its cells are `n`, the row's number in eight
//! bytes, and the columns of the model, filled with random bytes.

use std::ops::Range;

use basalt_load::load::choose::{Chooser, Shape, fnv_hash};
use basalt_load::session::{Column, RowCells};
use basalt_load::values::Values;
use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::file::{FieldKind, Key, Pattern, PatternKind, Table};
use super::time::DAY_MS;

/// 2026-01-01 00:00 UTC.
const START_MS: u64 = 1_767_225_600_000;
/// The column with a row's number.
pub(super) const NUMBER: &str = "n";

/// The rows of a table.
#[derive(Debug)]
pub(super) struct Data {
    seed: u64,
    ms_per_row: f64,
    /// A chooser and the number of values for each id of any of the table's keys.
    ids: Vec<(String, Chooser, u64)>,
    values: Values,
    families: Vec<(Bytes, Vec<Bytes>, usize)>,
}

/// A question.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// A row that answers it.
    pub(super) row: u64,
    /// Its time, or the whole span around it.
    pub(super) span: Range<u64>,
}

impl Data {
    /// The rows of a table, with `scale` times the rows of a day.
    pub(super) fn new(table: &Table, scale: f64, seed: u64) -> Data {
        let mut ids: Vec<(String, Chooser, u64)> = Vec::new();
        for segment in table.keys.iter().flat_map(|key| &key.segments) {
            if let FieldKind::Id { count, skew } = segment.field.kind
                && ids.iter().all(|(name, ..)| *name != segment.name)
            {
                ids.push((
                    segment.name.clone(),
                    Chooser::new(skew, count, Shape::default()),
                    count,
                ));
            }
        }
        let families = table.families.iter().map(|family| {
            let columns = family.columns.iter().map(|column| Bytes::from(column.clone()));
            (
                Bytes::from(family.name.clone()),
                columns.collect(),
                family.value_bytes,
            )
        });
        let longest = table.families.iter().map(|family| family.value_bytes).max();
        Data {
            seed,
            ms_per_row: DAY_MS as f64 / (table.rows_per_day * scale),
            ids,
            values: Values::new(seed, longest.unwrap_or_default()),
            families: families.collect(),
        }
    }

    /// The time of a row.
    pub(super) fn time_ms(&self, row: u64) -> u64 {
        START_MS + (row as f64 * self.ms_per_row) as u64
    }

    /// Time between two rows.
    pub(super) fn ms_per_row(&self) -> f64 {
        self.ms_per_row
    }

    /// The value of an id, the number of a row, or its time.
    pub(super) fn value(&self, name: &str, kind: &FieldKind, row: u64) -> u64 {
        match kind {
            FieldKind::Time(_) => self.time_ms(row),
            FieldKind::Sequence | FieldKind::Salt { .. } => row,
            FieldKind::Id { .. } => {
                let Some((place, (_, chooser, count))) =
                    self.ids.iter().enumerate().find(|(_, (id, ..))| id == name)
                else {
                    return 0;
                };
                let mixed = fnv_hash(self.seed ^ fnv_hash(row) ^ fnv_hash(place as u64 + 1));
                let mut random = SmallRng::seed_from_u64(mixed);
                chooser.clone().next(row, *count, &mut random)
            }
        }
    }

    /// A row's key.
    pub(super) fn key(&self, key: &Key, row: u64) -> Vec<u8> {
        key.encode(|name| {
            let segment = key.segments.iter().find(|segment| segment.name == name);
            segment.map_or(0, |segment| self.value(name, &segment.field.kind, row))
        })
    }

    /// A row.
    pub(super) fn row(&self, key: &Key, row: u64) -> RowCells {
        let mut random = SmallRng::seed_from_u64(fnv_hash(self.seed.wrapping_add(row)));
        let mut cells = Vec::new();
        for (index, (family, columns, value_bytes)) in self.families.iter().enumerate() {
            let column = |qualifier: Bytes| Column {
                family: family.clone(),
                qualifier,
            };
            if index == 0 {
                let number = Bytes::copy_from_slice(&row.to_be_bytes());
                cells.push((column(Bytes::from_static(NUMBER.as_bytes())), number));
            }
            for name in columns {
                cells.push((column(name.clone()), self.values.next(&mut random, *value_bytes)));
            }
        }
        RowCells {
            key: Bytes::from(self.key(key, row)),
            cells,
        }
    }

    /// Question `index` of a pattern about the first `rows` rows.
    pub(super) fn question(&self, pattern: &Pattern, index: u64, rows: u64) -> Question {
        let mut chooser = Chooser::new(pattern.skew, rows, Shape::default());
        let mut random = SmallRng::seed_from_u64(fnv_hash(self.seed ^ fnv_hash(index)));
        let row = chooser.next(index, rows, &mut random);
        let time_ms = self.time_ms(row);
        let span = match &pattern.kind {
            PatternKind::Read {
                span_ms: Some(span_ms),
                ..
            } => {
                let start = time_ms - time_ms % span_ms;
                start..start + span_ms
            }
            _ => time_ms..time_ms + 1,
        };
        Question { row, span }
    }

    /// Whether a row is in the answer, before the newest ones are chosen.
    pub(super) fn answers(&self, table: &Table, pattern: &Pattern, question: &Question, row: u64) -> bool {
        let PatternKind::Read { of, span_ms, .. } = &pattern.kind else {
            return row == question.row;
        };
        if span_ms.is_some() && !question.span.contains(&self.time_ms(row)) {
            return false;
        }
        let Some(key) = table.keys.first() else {
            return false;
        };
        key.places(of).all(|place| {
            let (name, kind) = (&key.segments[place].name, &key.segments[place].field.kind);
            self.value(name, kind, row) == self.value(name, kind, question.row)
        })
    }
}
