//! A short description of a call, for the slow log, the debug line and the list of running calls.
//!
//! Requests note what they are about while they pass the pipeline, in neutral terms: table, first
//! rows, numbers of gets and mutations, the scan. A fetch notes the scan that it is part of, with the
//! arguments of its opening, and at its end what it has found. That costs every call a few copied bytes
//! and no allocation; only a call that is shown is turned into text.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::op::{Columns, Scan, TimeRange};
use basalt_engine::schema::{Escaped, KeyLayout, TableName};
use smallvec::SmallVec;

use crate::observe::slow_log::FetchedRows;

/// Most bytes that are noted of a row.
const ROW_BYTES_MAX: usize = 64;
/// Most rows that are noted.
const ROWS_MAX: usize = 3;
/// Room for the noted rows of most calls.
const INLINE_BYTES: usize = 48;

/// Most bytes of a filter's text that are shown.
const FILTER_BYTES_MAX: usize = 512;
/// Most columns of a scan that are shown.
const COLUMNS_MAX: usize = 8;

/// Table, rows and columns of a call, noted by its requests.
#[derive(Debug, Default)]
pub(crate) struct Description {
    /// The first table.
    table: Option<TableName>,
    /// The first rows, each behind its noted length and a byte that says whether it was cut.
    rows: SmallVec<[u8; INLINE_BYTES]>,
    noted: u8,
    /// The scan that is opened, or fetched from. Its rows here are those of its first result.
    scan: Option<Arc<Scan>>,
    row_count: u32,
    gets: u32,
    mutations: u32,
    /// The scanner of a fetch, and its most results.
    scanner: Option<u32>,
    results: Option<u32>,
    /// Result of a fetch.
    found: Option<FetchedRows>,
    /// Time that it was held back or waited for a thread.
    waited: Duration,
    /// Bytes of blocks that it has read because they were not in the block cache.
    disk_bytes: u64,
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

    /// Notes a scan that is opened or fetched from.
    pub(crate) fn scan(&mut self, scan: &Arc<Scan>) {
        self.scan = Some(Arc::clone(scan));
    }

    /// Notes the end of a fetch: the key of its first result, and numbers of rows.
    pub(crate) fn results(&mut self, first: Option<&[u8]>, looked_at: u64, returned: usize) {
        self.add_rows(first.into_iter().collect::<SmallVec<[&[u8]; 1]>>().into_iter());
        self.found = Some(FetchedRows {
            looked_at,
            returned: returned as u64,
        });
    }

    /// Adds time that the call was held back or waited for a thread.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// Adds bytes of blocks that it has read because they were not in the block cache.
    pub(crate) fn read_from_disk(&mut self, bytes: u64) {
        self.disk_bytes += bytes;
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

    /// The first row, if it was noted whole: of a fetch that of its first result, or else where its scan
    /// starts.
    pub(crate) fn first_row(&self) -> Option<&[u8]> {
        match self.noted_rows().next() {
            Some((row, is_cut)) => (!is_cut).then_some(row),
            None => Some(&self.scan.as_ref()?.start_row),
        }
    }

    /// Result of a fetch; `None` for other calls.
    pub(crate) fn rows_of_fetch(&self) -> Option<FetchedRows> {
        self.found
    }

    /// Time that it was held back or waited for a thread.
    pub(crate) fn waiting(&self) -> Duration {
        self.waited
    }

    /// Bytes of blocks that it has read because they were not in the block cache.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.disk_bytes
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
    /// columns=[f:q], filter=PrefixFilter('a'), scanner=7, rows=10`.
    ///
    /// With a layout of the table's keys, a row is followed by its fields in parentheses.
    pub(crate) fn arguments(&self, layout: Option<&KeyLayout>) -> String {
        let mut text = self.words.as_deref().unwrap_or_default().to_owned();
        let fields = |row: &[u8]| match layout.filter(|_| !row.is_empty()) {
            Some(layout) => format!(" ({})", layout.show(row)),
            None => String::new(),
        };
        if let Some(scan) = &self.scan {
            put_scan(&mut text, scan, &|row| {
                let shown = &row[..row.len().min(ROW_BYTES_MAX)];
                format!("{}{}", shortened(row, ROW_BYTES_MAX), fields(shown))
            });
        } else {
            self.put_rows(&mut text, &fields);
        }
        if let Some(scanner) = self.scanner {
            put(&mut text, format_args!("scanner={scanner}"));
        }
        if let Some(results) = self.results {
            put(&mut text, format_args!("rows={results}"));
        }
        text
    }

    fn put_rows(&self, text: &mut String, fields: &dyn Fn(&[u8]) -> String) {
        let shown = self.noted_rows().map(|(row, is_cut)| {
            let rest = if is_cut { "..." } else { "" };
            format!("{}{rest}{}", Escaped(row), fields(row))
        });
        let shown: Vec<String> = shown.collect();
        match &shown[..] {
            [] => {}
            [row] => put(text, format_args!("row={row}")),
            rows => {
                let rest = match self.row_count {
                    count if count as usize > rows.len() => format!(", ... ({count} in all)"),
                    _ => String::new(),
                };
                put(text, format_args!("rows=[{}{rest}]", rows.join(", ")));
            }
        }
    }

    /// The call without its values: calls of one shape differ in rows and numbers only. `method` names
    /// what has no arguments of its own.
    pub(crate) fn shape(&self, method: &str) -> String {
        let mut text = String::new();
        if let Some(scan) = &self.scan {
            put_scan(&mut text, scan, &|row| {
                if row.is_empty() {
                    String::new()
                } else {
                    "?".to_owned()
                }
            });
            return without_values(&text);
        }
        match (self.gets, self.mutations) {
            (0, 0) => {}
            (gets, 0) => put(&mut text, format_args!("{}", several("get", gets))),
            (0, mutations) => put(&mut text, format_args!("{}", several("mutation", mutations))),
            (..) => put(&mut text, format_args!("gets and mutations")),
        }
        if text.is_empty() { method.to_owned() } else { text }
    }
}

/// A number of things as a class: one, tens, hundreds and so on.
fn several(what: &str, count: u32) -> String {
    match count {
        1 => format!("one {what}"),
        2..=10 => format!("up to 10 {what}s"),
        11..=100 => format!("up to 100 {what}s"),
        101..=1_000 => format!("up to 1,000 {what}s"),
        _ => format!("more than 1,000 {what}s"),
    }
}

/// A row for people, shortened.
fn shortened(row: &[u8], bytes_max: usize) -> String {
    match row.get(..bytes_max) {
        Some(first) if first.len() < row.len() => format!("{}...", Escaped(first)),
        _ => Escaped(row).to_string(),
    }
}

/// The arguments of a scan's opening, without those that have their defaults.
fn put_scan(text: &mut String, scan: &Scan, row: &dyn Fn(&[u8]) -> String) {
    let spec = &scan.spec;
    put(text, format_args!("startRow={}", row(&scan.start_row)));
    put(text, format_args!("stopRow={}", row(&scan.stop_row)));
    let columns: Vec<String> = spec
        .families
        .iter()
        .flat_map(|selected| {
            let family = Escaped(&selected.family).to_string();
            match &selected.columns {
                Columns::All => vec![family],
                Columns::Only(qualifiers) => {
                    let column =
                        |qualifier: &Vec<u8>| format!("{family}:{}", shortened(qualifier, ROW_BYTES_MAX));
                    qualifiers.iter().take(COLUMNS_MAX).map(column).collect()
                }
            }
        })
        .collect();
    if !columns.is_empty() {
        let rest = if columns.len() > COLUMNS_MAX { ", ..." } else { "" };
        let shown = &columns[..columns.len().min(COLUMNS_MAX)];
        put(text, format_args!("columns=[{}{rest}]", shown.join(", ")));
    }
    if let Some(filter) = &spec.filter {
        let filter = filter.to_filter_string();
        put(
            text,
            format_args!("filter={}", shortened(&filter, FILTER_BYTES_MAX)),
        );
    }
    if spec.time_range != TimeRange::ALL {
        put(
            text,
            format_args!("timeRange=[{}, {})", spec.time_range.min, spec.time_range.max),
        );
    }
    if spec.max_versions != 1 {
        put(text, format_args!("versions={}", spec.max_versions));
    }
    // Native clients set the greatest number for no limit.
    if let Some(limit) = scan.limit.filter(|limit| *limit != u64::MAX) {
        put(text, format_args!("limit={limit}"));
    }
    if let Some(batch) = scan.batch {
        put(text, format_args!("batch={batch}"));
    }
    for (is_set, word) in [
        (scan.reversed, "reversed"),
        (spec.raw, "raw"),
        (!spec.cache_blocks, "cacheBlocks=false"),
    ] {
        if is_set {
            put(text, format_args!("{word}"));
        }
    }
}

/// The text with quoted values and numbers replaced by `?`.
fn without_values(text: &str) -> String {
    let mut shape = String::with_capacity(text.len());
    let (mut is_quoted, mut is_number) = (false, false);
    let mut before = ' ';
    for character in text.chars() {
        let is_quote = character == '\'';
        is_number = character.is_ascii_digit() && (is_number || !before.is_alphanumeric());
        if is_quote || is_quoted || is_number {
            // A quote in a value is written as two.
            if !shape.ends_with('?') {
                shape.push('?');
            }
        } else {
            shape.push(character);
        }
        is_quoted ^= is_quote;
        before = character;
    }
    shape
}

fn put(text: &mut String, part: std::fmt::Arguments<'_>) {
    let separator = if text.is_empty() { "" } else { ", " };
    // Writing to a string cannot fail.
    let _ = write!(text, "{separator}{part}");
}

#[cfg(test)]
mod tests {
    use basalt_engine::filter::FilterSpec;
    use basalt_engine::op::FamilySelection;

    use super::*;

    fn rows<'r>(rows: &'r [&'r [u8]]) -> impl ExactSizeIterator<Item = &'r [u8]> {
        rows.iter().copied()
    }

    /// Goal: each kind of call has its text, and long rows and many rows are shortened.
    #[test]
    fn calls_are_described_by_rows_and_numbers() {
        let mut one = Description::default();
        one.gets(rows(&[b"r\0"]));
        assert_eq!(
            (one.arguments(None), one.get_count()),
            ("row=r\\x00".to_owned(), 0)
        );
        assert_eq!(one.first_row(), Some(&b"r\0"[..]));

        let mut many = Description::default();
        many.mutations(rows(&[b"a", b"b"]));
        many.mutations(rows(&[b"c", b"d", b"e"]));
        assert_eq!(many.arguments(None), "rows=[a, b, c, ... (5 in all)]");
        assert_eq!((many.get_count(), many.mutation_count()), (0, 5));

        let layout = KeyLayout::parse("salt:1, id:2").unwrap();
        assert_eq!(one.arguments(Some(&layout)), "row=r\\x00 (salt=r id=\\x00)");

        let long = [b'r'; 100];
        let mut cut = Description::default();
        cut.gets(rows(&[&long]));
        assert_eq!(
            cut.arguments(None),
            format!("row={}...", "r".repeat(ROW_BYTES_MAX))
        );
        assert_eq!(cut.first_row(), None, "its region cannot be looked up");
    }

    #[test]
    fn scans_are_described_by_bounds_and_fetches_by_their_scanner() {
        let mut scan = Description::default();
        let opened = Arc::new(Scan {
            start_row: b"a".to_vec(),
            ..Scan::default()
        });
        scan.scan(&opened);
        scan.fetch(None, 10);
        assert_eq!(scan.arguments(None), "startRow=a, stopRow=, rows=10");
        assert_eq!(scan.first_row(), Some(&b"a"[..]));
        scan.results(Some(b"b7"), 12, 10);
        assert_eq!(
            scan.first_row(),
            Some(&b"b7"[..]),
            "the region of its first result"
        );
        assert_eq!(scan.arguments(None), "startRow=a, stopRow=, rows=10");
        let mut fetch = Description::default();
        fetch.fetch(Some(7), 5);
        assert_eq!(fetch.arguments(None), "scanner=7, rows=5");
        let mut words = Description::default();
        words.words("snapshot=s".to_owned());
        assert_eq!(words.arguments(None), "snapshot=s");
    }

    /// Goal: a fetch shows all arguments of its scan's opening, and scans that differ in values only have
    /// one shape.
    #[test]
    fn scans_have_arguments_and_a_shape() {
        let scan = |start: &str, text: &str| {
            let mut opened = Scan {
                start_row: start.as_bytes().to_vec(),
                stop_row: b"z\xff".to_vec(),
                reversed: true,
                limit: Some(25),
                ..Scan::default()
            };
            opened.spec.families = vec![
                FamilySelection {
                    family: b"f".to_vec(),
                    columns: Columns::Only(vec![b"q1".to_vec(), b"q2".to_vec()]),
                },
                FamilySelection {
                    family: b"g".to_vec(),
                    columns: Columns::All,
                },
            ];
            opened.spec.filter = Some(Arc::new(FilterSpec::parse(text.as_bytes()).unwrap()));
            opened.spec.cache_blocks = false;
            let mut description = Description::default();
            description.scan(&Arc::new(opened));
            description.fetch(Some(7), 100);
            description
        };
        let one = scan("a", "PrefixFilter('it''s \n 5') AND PageFilter(10)");
        assert_eq!(
            one.arguments(None),
            "startRow=a, stopRow=z\\xFF, columns=[f:q1, f:q2, g], filter=PrefixFilter('it''s \\x0A 5') AND \
             PageFilter(10), limit=25, reversed, cacheBlocks=false, scanner=7, rows=100"
        );
        let other = scan("other", "PrefixFilter('b') AND PageFilter(2)");
        assert_eq!(one.shape("m"), other.shape("m"));
        assert_eq!(
            one.shape("m"),
            "startRow=?, stopRow=?, columns=[f:q1, f:q2, g], filter=PrefixFilter(?) AND PageFilter(?), \
             limit=?, reversed, cacheBlocks=false"
        );
    }
}
