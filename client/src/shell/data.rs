//! Commands on rows: put, get, scan, count, delete, deleteall, incr, get_counter, append, show_filters.

use std::time::Duration;

use super::arguments::{Arguments, Options, bytes, list};
use super::escape::{printable, timestamp};
use super::session::{Outcome, Session};
use super::syntax::Value;
use super::{ShellError, ShellResult};
use crate::request::{Append, Delete, Get, Put, Scan};
use crate::row::{Cell, counter_from_value};

/// Rows between two lines of `count`.
const COUNT_INTERVAL: i64 = 1000;
/// Rows fetched at once by `count`, as in HBase.
const COUNT_CACHE: i32 = 10;
/// Rows deleted at once by `deleteall` with a prefix, as in HBase.
const DELETE_BATCH: usize = 100;

pub(super) const SCAN_OPTIONS: [&str; 15] = [
    "COLUMNS",
    "COLUMN",
    "STARTROW",
    "STOPROW",
    "ENDROW",
    "ROWPREFIXFILTER",
    "LIMIT",
    "REVERSED",
    "VERSIONS",
    "TIMERANGE",
    "TIMESTAMP",
    "FILTER",
    "BATCH",
    "CACHE",
    "CACHE_BLOCKS",
];
/// Of `count` alone; it takes those of a scan, too.
pub(super) const COUNT_OPTIONS: [&str; 1] = ["INTERVAL"];
pub(super) const GET_OPTIONS: [&str; 6] = [
    "COLUMN",
    "COLUMNS",
    "VERSIONS",
    "TIMESTAMP",
    "TIMERANGE",
    "FILTER",
];

/// `family`, or `family:qualifier`, split at the first colon.
struct ColumnName {
    family: Vec<u8>,
    qualifier: Option<Vec<u8>>,
}

fn column_name(text: Vec<u8>) -> ColumnName {
    match text.iter().position(|byte| *byte == b':') {
        Some(colon) => ColumnName {
            family: text[..colon].to_vec(),
            qualifier: Some(text[colon + 1..].to_vec()),
        },
        None => ColumnName {
            family: text,
            qualifier: None,
        },
    }
}

/// `COLUMNS` or `COLUMN`: one name or several.
fn columns(options: &mut Options) -> ShellResult<Vec<ColumnName>> {
    let mut names = Vec::new();
    for key in ["COLUMNS", "COLUMN"] {
        if let Some(value) = options.take(key) {
            names.extend(list(value, key)?.into_iter().map(column_name));
        }
    }
    Ok(names)
}

fn time_range(options: &mut Options) -> ShellResult<Option<std::ops::Range<i64>>> {
    let Some(value) = options.take("TIMERANGE") else {
        return Ok(None);
    };
    if let Value::Array(ends) = value
        && let [from, to] = ends.as_slice()
    {
        let end = |value: &Value| super::arguments::integer(value, "TIMERANGE");
        return Ok(Some(end(from)?..end(to)?));
    }
    Err(ShellError::Arguments(
        "TIMERANGE takes two timestamps: [from, to]".to_owned(),
    ))
}

/// A scan of what scan, count and deleteall have in common.
fn scan_from(options: &mut Options) -> ShellResult<Scan> {
    let mut scan = Scan::new();
    for name in columns(options)? {
        scan = match name.qualifier {
            Some(qualifier) => scan.column(name.family, qualifier),
            None => scan.family(name.family),
        };
    }
    if let Some(row) = options.bytes("STARTROW")? {
        scan = scan.start_row(row);
    }
    for key in ["STOPROW", "ENDROW"] {
        if let Some(row) = options.bytes(key)? {
            scan = scan.stop_row(row);
        }
    }
    if let Some(prefix) = options.bytes("ROWPREFIXFILTER")? {
        scan = scan.prefix(prefix);
    }
    if let Some(limit) = options.integer32("LIMIT")? {
        scan = scan.limit(limit);
    }
    if let Some(reversed) = options.boolean("REVERSED")? {
        scan = scan.reversed(reversed);
    }
    if let Some(versions) = options.integer32("VERSIONS")? {
        scan = scan.versions(versions);
    }
    if let Some(range) = time_range(options)? {
        scan = scan.time_range(range);
    }
    if let Some(at) = options.integer("TIMESTAMP")? {
        scan = scan.time_range(at..at.saturating_add(1));
    }
    if let Some(filter) = options.bytes("FILTER")? {
        scan = scan.filter(filter);
    }
    if let Some(cells) = options.integer32("BATCH")? {
        scan = scan.cells_per_piece(cells);
    }
    if let Some(rows) = options.integer32("CACHE")? {
        scan = scan.rows_per_fetch(rows);
    }
    if let Some(cache) = options.boolean("CACHE_BLOCKS")? {
        scan = scan.cache_blocks(cache);
    }
    Ok(scan)
}

fn cell_name(cell: &Cell) -> String {
    format!("{}:{}", printable(&cell.family), printable(&cell.qualifier))
}

fn cell_text(cell: &Cell) -> String {
    format!(
        "timestamp={}, value={}",
        timestamp(cell.timestamp),
        printable(&cell.value)
    )
}

/// Names of the filter language.
const FILTERS: [&str; 19] = [
    "ColumnCountGetFilter",
    "ColumnPaginationFilter",
    "ColumnPrefixFilter",
    "ColumnRangeFilter",
    "ColumnValueFilter",
    "DependentColumnFilter",
    "FamilyFilter",
    "FirstKeyOnlyFilter",
    "InclusiveStopFilter",
    "KeyOnlyFilter",
    "MultipleColumnPrefixFilter",
    "PageFilter",
    "PrefixFilter",
    "QualifierFilter",
    "RowFilter",
    "SingleColumnValueExcludeFilter",
    "SingleColumnValueFilter",
    "TimestampsFilter",
    "ValueFilter",
];

impl Session {
    /// The names are not asked of the server, which has no call for it; HBase's shell knows them by itself, too.
    pub(super) fn show_filters(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        for filter in FILTERS {
            self.output.line(filter)?;
        }
        Ok(None)
    }

    pub(super) async fn put(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        let value = arguments.bytes("a value")?;
        let at = arguments.optional_integer("the timestamp")?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let qualifier = column.qualifier.unwrap_or_default();
        let mut put = match at {
            Some(at) => Put::new(row).cell_at(column.family, qualifier, at, value),
            None => Put::new(row).cell(column.family, qualifier, value),
        };
        if let Some(ttl_ms) = options.integer("TTL")? {
            let ttl_ms = u64::try_from(ttl_ms)
                .map_err(|_| ShellError::Arguments(format!("TTL is {ttl_ms}, which is negative")))?;
            put = put.ttl(Duration::from_millis(ttl_ms));
        }
        options.end(&["TTL"])?;
        table.put(put).await?;
        Ok(None)
    }

    pub(super) async fn get(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let mut get = Get::new(arguments.bytes("a row")?);
        let mut names = Vec::new();
        while let Some(value) = arguments.take() {
            match value {
                Value::Hash(pairs) => {
                    let mut options = Options::new(pairs)?;
                    names.extend(columns(&mut options)?);
                    get = get_options(get, &mut options)?;
                    options.end(&GET_OPTIONS)?;
                }
                other => names.extend(list(other, "a column")?.into_iter().map(column_name)),
            }
        }
        for name in names {
            get = match name.qualifier {
                Some(qualifier) => get.column(name.family, qualifier),
                None => get.family(name.family),
            };
        }
        let row = table.get(get).await?;
        self.output.header("COLUMN", "CELL")?;
        for cell in row.iter().flat_map(|row| &row.cells) {
            self.output.row(&cell_name(cell), &cell_text(cell))?;
        }
        self.print_count(usize::from(row.is_some()))?;
        Ok(None)
    }

    pub(super) async fn scan(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let scan = scan_from(&mut options)?;
        options.end(&SCAN_OPTIONS)?;
        let mut rows = table.scan(scan)?;
        self.output.header("ROW", "COLUMN+CELL")?;
        let mut count = 0;
        let mut last = None;
        if let Some(progress) = &mut self.progress {
            progress.begin();
        }
        while let Some(row) = rows.next().await? {
            let key = printable(&row.key);
            for cell in &row.cells {
                let text = format!("column={}, {}", cell_name(cell), cell_text(cell));
                self.output.row(&key, &text)?;
            }
            // A row in pieces is one row.
            if last.as_ref() != Some(&row.key) {
                count += 1;
                if let Some(progress) = &mut self.progress {
                    progress.rows(count, &row.key)?;
                }
                last = Some(row.key);
            }
        }
        self.print_count(count)?;
        Ok(None)
    }

    pub(super) async fn count(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let interval = options.integer("INTERVAL")?.unwrap_or(COUNT_INTERVAL);
        if interval <= 0 {
            return Err(ShellError::Arguments(format!(
                "INTERVAL is {interval}, it must be positive"
            )));
        }
        let cache = options.integer32("CACHE")?.unwrap_or(COUNT_CACHE);
        // A filter of the user's would be pushed aside by one that only shortens rows.
        let filtered = options.has("FILTER");
        let mut scan = scan_from(&mut options)?.rows_per_fetch(cache);
        options.end(&[&COUNT_OPTIONS[..], &SCAN_OPTIONS].concat())?;
        if !filtered {
            scan = scan.filter("FirstKeyOnlyFilter() AND KeyOnlyFilter()");
        }
        let mut rows = table.scan(scan)?;
        let mut count: i64 = 0;
        while let Some(row) = rows.next().await? {
            count += i64::from(!row.partial);
            if count % interval == 0 && !row.partial {
                let text = format!("Current count: {count}, row: {}", printable(&row.key));
                self.output.line(&text)?;
                // It tells that the count goes on, which nobody needs to hear at its end.
                self.output.flush()?;
            }
        }
        self.output.line(&format!("{count} row(s)"))?;
        Ok(Some(count.to_string()))
    }

    pub(super) async fn delete(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        let at = arguments.optional_integer("the timestamp")?;
        arguments.end()?;
        let delete = match (column.qualifier, at) {
            (Some(qualifier), None) => Delete::versions(row).column(column.family, qualifier),
            (Some(qualifier), Some(at)) => Delete::versions(row).column_at(column.family, qualifier, at),
            (None, Some(at)) => Delete::family_versions(row).family_at(column.family, at),
            (None, None) => {
                let text = "delete of a family needs a timestamp; deleteall deletes all of it";
                return Err(ShellError::Arguments(text.to_owned()));
            }
        };
        table.delete(delete).await?;
        Ok(None)
    }

    pub(super) async fn delete_all(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let Some(row) = arguments.optional_bytes("a row")? else {
            let mut options = arguments.options()?;
            arguments.end()?;
            if !options.has("ROWPREFIXFILTER") {
                let text = "deleteall needs a row or {ROWPREFIXFILTER => 'prefix'}; truncate empties a table";
                return Err(ShellError::Arguments(text.to_owned()));
            }
            let batch = options
                .integer32("CACHE")?
                .and_then(|rows| usize::try_from(rows).ok());
            let prefix = options.bytes("ROWPREFIXFILTER")?.unwrap_or_default();
            options.end(&["ROWPREFIXFILTER", "CACHE"])?;
            return self
                .delete_prefix(&table, prefix, batch.unwrap_or(DELETE_BATCH))
                .await;
        };
        let column = arguments.optional_bytes("a column")?.map(column_name);
        let at = arguments.optional_integer("the timestamp")?;
        arguments.end()?;
        let delete = match (column, at) {
            (None, None) => Delete::row(row),
            (None, Some(at)) => Delete::row(row).up_to(at),
            (
                Some(ColumnName {
                    family,
                    qualifier: None,
                }),
                None,
            ) => Delete::families(row).family(family),
            (
                Some(ColumnName {
                    family,
                    qualifier: None,
                }),
                Some(at),
            ) => Delete::families(row).family_at(family, at),
            (
                Some(ColumnName {
                    family,
                    qualifier: Some(qualifier),
                }),
                None,
            ) => Delete::columns(row).column(family, qualifier),
            (
                Some(ColumnName {
                    family,
                    qualifier: Some(qualifier),
                }),
                Some(at),
            ) => Delete::columns(row).column_at(family, qualifier, at),
        };
        table.delete(delete).await?;
        Ok(None)
    }

    async fn delete_prefix(&mut self, table: &crate::Table, prefix: Vec<u8>, batch: usize) -> Outcome {
        if prefix.is_empty() {
            let text = "an empty prefix would delete every row; truncate does that";
            return Err(ShellError::Arguments(text.to_owned()));
        }
        let keys_only = Scan::new()
            .prefix(prefix)
            .filter("FirstKeyOnlyFilter() AND KeyOnlyFilter()");
        let mut rows = table.scan(keys_only)?;
        let mut deletes = Vec::new();
        let mut count = 0usize;
        loop {
            let row = rows.next().await?;
            let ended = row.is_none();
            deletes.extend(row.map(|row| Delete::row(row.key)));
            if deletes.len() >= batch.max(1) || (ended && !deletes.is_empty()) {
                count += deletes.len();
                table.delete_multiple(std::mem::take(&mut deletes)).await?;
            }
            if ended {
                break;
            }
        }
        self.output.line(&format!("{count} row(s) deleted"))?;
        Ok(Some(count.to_string()))
    }

    pub(super) async fn increment(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        let amount = arguments.optional_integer("the amount")?.unwrap_or(1);
        arguments.end()?;
        let qualifier = column.qualifier.unwrap_or_default();
        let sum = table
            .increment_column(row, column.family, qualifier, amount)
            .await?;
        self.output.line(&format!("COUNTER VALUE = {sum}"))?;
        Ok(Some(sum.to_string()))
    }

    pub(super) async fn get_counter(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        arguments.end()?;
        let get = Get::new(row).column(column.family, column.qualifier.unwrap_or_default());
        let found = table.get(get).await?;
        let cell = found.and_then(|row| row.cells.into_iter().next());
        let Some(cell) = cell else {
            self.output.line("No counter found at specified coordinates")?;
            return Ok(None);
        };
        let value = counter_from_value(&cell.value)?;
        self.output.line(&format!("COUNTER VALUE = {value}"))?;
        Ok(Some(value.to_string()))
    }

    pub(super) async fn append(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        let value = bytes(arguments.take().unwrap_or(Value::Nil), "the value")?;
        arguments.end()?;
        let append = Append::new(row).column(column.family, column.qualifier.unwrap_or_default(), value);
        let appended = table.append(append).await?;
        let text = appended
            .cells
            .first()
            .map(|cell| printable(&cell.value))
            .unwrap_or_default();
        self.output.line(&format!("CURRENT VALUE = {text}"))?;
        Ok(Some(format!("\"{text}\"")))
    }
}

fn get_options(mut get: Get, options: &mut Options) -> ShellResult<Get> {
    if let Some(versions) = options.integer32("VERSIONS")? {
        get = get.versions(versions);
    }
    if let Some(at) = options.integer("TIMESTAMP")? {
        get = get.timestamp(at);
    }
    if let Some(range) = time_range(options)? {
        get = get.time_range(range);
    }
    if let Some(filter) = options.bytes("FILTER")? {
        get = get.filter(filter);
    }
    Ok(get)
}
