//! The answers of an engine's tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_engine::Engine;

use super::model::Rows;
use super::read;

/// Everything a table answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answers {
    /// All rows, by scan.
    pub(super) rows: Rows,
    /// Number of cells of a raw scan, and their checksum.
    raw: (usize, u32),
    /// These rows and some missing ones, by get.
    gets: Rows,
}

/// All answers of a table; `known` names the rows to get, empty for none but the scanned ones.
pub(super) fn answers_of(engine: &Engine, table: &str, known: &Answers) -> basalt_engine::Result<Answers> {
    let rows = read::rows(engine, table)?;
    let mut gets = Rows::new();
    for key in known.rows.keys().map(String::as_str).chain(["r", "r05x", "zzz"]) {
        gets.insert(key.to_owned(), Arc::new(read::row(engine, table, key)?));
    }
    Ok(Answers {
        rows,
        raw: read::raw(engine, table)?,
        gets,
    })
}

/// Answers of every table of an engine.
pub(super) fn all_answers(engine: &Engine) -> basalt_engine::Result<BTreeMap<String, Answers>> {
    let mut all = BTreeMap::new();
    for (table, _) in read::schema(engine) {
        let first = Answers {
            rows: read::rows(engine, &table)?,
            raw: (0, 0),
            gets: Rows::new(),
        };
        let answers = answers_of(engine, &table, &first)?;
        all.insert(table, answers);
    }
    Ok(all)
}
