//! A short description of a call, for the slow log, the debug line and the list of running calls.
//!
//! Requests note what they are about while they pass the pipeline, in neutral terms: table, first
//! rows, numbers of gets and mutations, scanner. That costs every call a few copied bytes and no
//! allocation; only a call that is shown is turned into text.

use std::fmt::Write as _;

use basalt_engine::schema::{Escaped, TableName};
use smallvec::SmallVec;

/// Most bytes that are noted of a row.
const ROW_BYTES_MAX: usize = 64;
/// Most rows that are noted.
const ROWS_MAX: usize = 3;
/// Room for the noted rows of most calls.
const INLINE_BYTES: usize = 48;

/// Which rows a request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rows {
    /// Single rows.
    #[default]
    Single,
    /// The bounds of a scan: start row, stop row.
    Range,
}

/// What a call is about, noted by its requests.
#[derive(Debug, Default)]
pub(crate) struct Description {
    /// The first table.
    table: Option<TableName>,
    /// The first rows, each behind its noted length and a byte that says whether it was cut.
    rows: SmallVec<[u8; INLINE_BYTES]>,
    noted: u8,
    kind: Rows,
    row_count: u32,
    gets: u32,
    mutations: u32,
    /// The scanner of a fetch, and its most results.
    scanner: Option<u32>,
    results: Option<u32>,
    /// Words about a call that has no rows: the name of a namespace, snapshot, region.
    words: Option<Box<str>>,
}

impl Description {
    /// Notes the table, unless one was noted before.
    pub(crate) fn table(&mut self, table: &TableName) {
        if self.table.is_none() {
            self.table = Some(table.clone());
        }
    }

    /// Notes rows that are read.
    pub(crate) fn gets<'r>(&mut self, rows: impl ExactSizeIterator<Item = &'r [u8]>) {
        self.gets += rows.len() as u32;
        self.add_rows(rows);
    }

    /// Notes rows that are written.
    pub(crate) fn mutations<'r>(&mut self, rows: impl ExactSizeIterator<Item = &'r [u8]>) {
        self.mutations += rows.len() as u32;
        self.add_rows(rows);
    }

    /// Notes the bounds of a scan that is opened.
    pub(crate) fn range(&mut self, start: &[u8], stop: &[u8]) {
        self.kind = Rows::Range;
        self.add_rows([start, stop].into_iter());
    }

    /// Notes a fetch of at most `results` results.
    pub(crate) fn fetch(&mut self, scanner: Option<u32>, results: usize) {
        self.scanner = scanner;
        self.results = Some(u32::try_from(results).unwrap_or(u32::MAX));
    }

    /// Notes words about a call without rows.
    pub(crate) fn words(&mut self, words: String) {
        self.words = (!words.is_empty()).then(|| words.into_boxed_str());
    }

    fn add_rows<'r>(&mut self, rows: impl ExactSizeIterator<Item = &'r [u8]>) {
        self.row_count += rows.len() as u32;
        for row in rows.take(ROWS_MAX - usize::from(self.noted)) {
            let shown = &row[..row.len().min(ROW_BYTES_MAX)];
            self.rows.push(shown.len() as u8);
            self.rows.push(u8::from(shown.len() < row.len()));
            self.rows.extend_from_slice(shown);
            self.noted += 1;
        }
    }

    /// The noted rows, each with whether it was cut.
    fn noted_rows(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let mut rest = &self.rows[..];
        std::iter::from_fn(move || {
            let [length, is_cut, bytes @ ..] = rest else {
                return None;
            };
            let (row, after) = bytes.split_at(usize::from(*length));
            rest = after;
            Some((row, *is_cut != 0))
        })
    }

    /// The first table.
    pub(crate) fn table_name(&self) -> Option<&TableName> {
        self.table.as_ref()
    }

    /// The first row, if it was noted whole.
    pub(crate) fn first_row(&self) -> Option<&[u8]> {
        let (row, is_cut) = self.noted_rows().next()?;
        (!is_cut).then_some(row)
    }

    /// Gets of a call that takes several actions.
    pub(crate) fn get_count(&self) -> usize {
        if self.is_single() { 0 } else { self.gets as usize }
    }

    /// Puts, deletes, increments and appends of a call that takes several actions.
    pub(crate) fn mutation_count(&self) -> usize {
        if self.is_single() {
            0
        } else {
            self.mutations as usize
        }
    }

    fn is_single(&self) -> bool {
        self.gets + self.mutations <= 1
    }

    /// The arguments as text: `row=r`, `rows=[a, b, c, ... (9 in all)]`, `startRow=a, stopRow=b,
    /// rows=10`.
    pub(crate) fn arguments(&self) -> String {
        let mut text = self.words.as_deref().unwrap_or_default().to_owned();
        let shown = self.noted_rows().map(|(row, is_cut)| {
            let rest = if is_cut { "..." } else { "" };
            format!("{}{rest}", Escaped(row))
        });
        let shown: Vec<String> = shown.collect();
        match (self.kind, &shown[..]) {
            (_, []) => {}
            (Rows::Range, [start, stop, ..]) => {
                put(&mut text, format_args!("startRow={start}"));
                put(&mut text, format_args!("stopRow={stop}"));
            }
            (_, [row]) => put(&mut text, format_args!("row={row}")),
            (_, rows) => {
                let rest = match self.row_count {
                    count if count as usize > rows.len() => format!(", ... ({count} in all)"),
                    _ => String::new(),
                };
                put(&mut text, format_args!("rows=[{}{rest}]", rows.join(", ")));
            }
        }
        if let Some(scanner) = self.scanner {
            put(&mut text, format_args!("scanner={scanner}"));
        }
        if let Some(results) = self.results {
            put(&mut text, format_args!("rows={results}"));
        }
        text
    }
}

fn put(text: &mut String, part: std::fmt::Arguments<'_>) {
    let separator = if text.is_empty() { "" } else { ", " };
    // Writing to a string cannot fail.
    let _ = write!(text, "{separator}{part}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<'r>(rows: &'r [&'r [u8]]) -> impl ExactSizeIterator<Item = &'r [u8]> {
        rows.iter().copied()
    }

    /// Goal: each kind of call has its text, and long rows and many rows are shortened.
    #[test]
    fn calls_are_described_by_rows_and_numbers() {
        let mut one = Description::default();
        one.gets(rows(&[b"r\0"]));
        assert_eq!((one.arguments(), one.get_count()), ("row=r\\x00".to_owned(), 0));
        assert_eq!(one.first_row(), Some(&b"r\0"[..]));

        let mut many = Description::default();
        many.mutations(rows(&[b"a", b"b"]));
        many.mutations(rows(&[b"c", b"d", b"e"]));
        assert_eq!(many.arguments(), "rows=[a, b, c, ... (5 in all)]");
        assert_eq!((many.get_count(), many.mutation_count()), (0, 5));

        let long = [b'r'; 100];
        let mut cut = Description::default();
        cut.gets(rows(&[&long]));
        assert_eq!(cut.arguments(), format!("row={}...", "r".repeat(ROW_BYTES_MAX)));
        assert_eq!(cut.first_row(), None, "its region cannot be looked up");
    }

    #[test]
    fn scans_are_described_by_bounds_and_fetches_by_their_scanner() {
        let mut scan = Description::default();
        scan.range(b"a", b"");
        scan.fetch(None, 10);
        assert_eq!(scan.arguments(), "startRow=a, stopRow=, rows=10");
        let mut fetch = Description::default();
        fetch.fetch(Some(7), 5);
        assert_eq!(fetch.arguments(), "scanner=7, rows=5");
        let mut words = Description::default();
        words.words("snapshot=s".to_owned());
        assert_eq!(words.arguments(), "snapshot=s");
    }
}
