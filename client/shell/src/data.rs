//! Commands on rows: put, get, scan, count, delete, deleteall, incr, get_counter, append.

use std::time::Duration;

use super::ShellError;
use super::arguments::{Arguments, Options, list};
use super::backend::BackendTable;
use super::converters::Format;
use super::escape::printable;
use super::meta::SystemTable;
use super::read_options::{
    COUNT_OPTIONS, ColumnName, SCAN_OPTIONS, column_name, delete_options, delete_target, get_with,
    read_column, scan_from, value_bytes, write_options,
};
use super::session::{Outcome, Session};
use super::value::Value;
use basalt_client::{Append, Delete, Get, Increment, Put, Scan, counter_from_value};

/// Rows between two lines of `count`.
const COUNT_INTERVAL: i64 = 1000;
/// Rows fetched at once by `count`, as in HBase.
const COUNT_CACHE: i32 = 10;
/// Rows that `scan` prints before it yields to other tasks.
const ROWS_BEFORE_YIELD: usize = 64;
/// Rows deleted at once by `deleteall` with a prefix, as in HBase.
const DELETE_BATCH: usize = 100;

impl Session {
    pub(super) async fn put(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        let value = arguments.bytes("a value")?;
        let at = arguments.optional_integer("the timestamp")?;
        let options = write_options(arguments.options()?)?;
        arguments.end()?;
        let qualifier = column.qualifier.unwrap_or_default();
        let mut put = match at {
            Some(at) => Put::new(row).cell_at(column.family, qualifier, at, value),
            None => Put::new(row).cell(column.family, qualifier, value),
        };
        for (name, value) in options.attributes {
            put = put.attribute(name, value);
        }
        if let Some(ttl_ms) = options.ttl_ms {
            put = put.ttl(Duration::from_millis(ttl_ms));
        }
        table.put(put).await?;
        Ok(None)
    }

    pub(super) async fn get(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a table")?;
        let table = self.client.table(&name)?;
        let mut get = Get::new(arguments.bytes("a row")?);
        let (mut names, mut format) = (Vec::new(), Format::default());
        format.system = SystemTable::named(&name);
        while let Some(value) = arguments.take() {
            match value {
                Value::Hash(pairs) => get = get_with(get, Options::new(pairs)?, &mut names, &mut format)?,
                other => {
                    for name in list(other, "a column")? {
                        names.push(read_column(name, &mut format)?);
                    }
                }
            }
        }
        for name in names {
            get = match name.qualifier {
                Some(qualifier) => get.column(name.family, qualifier),
                None => get.family(name.family),
            };
        }
        let row = table.get(get).await?;
        self.output.header(&["COLUMN", "CELL"])?;
        if let Some(row) = &row {
            for cell in &row.cells {
                if self.output.is_table() {
                    let columns = [format.column(cell), format.cell(&row.key, cell)?];
                    self.output.record(&columns.each_ref().map(String::as_str), &[])?;
                } else {
                    self.output.record(&[], &format.fields(&row.key, cell)?)?;
                }
            }
        }
        self.print_count(usize::from(row.is_some()))?;
        Ok(None)
    }

    pub(super) async fn scan(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a table")?;
        let table = self.client.table(&name)?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let request = scan_from(&mut options)?;
        options.end(&SCAN_OPTIONS)?;
        let mut format = request.format;
        format.system = SystemTable::named(&name);
        let mut rows = table.scan(request.scan)?;
        self.output.header(&["ROW", "COLUMN+CELL"])?;
        let mut count = 0;
        let mut last = None;
        if let Some(progress) = &mut self.progress {
            progress.begin();
        }
        while let Some(row) = rows.next().await? {
            let key = format.key(&row.key);
            for cell in &row.cells {
                if self.output.is_table() {
                    let text = format!("column={}, {}", format.column(cell), format.cell(&row.key, cell)?);
                    self.output.record(&[&key, &text], &[])?;
                } else {
                    self.output.record(&[], &format.fields(&row.key, cell)?)?;
                }
            }
            // A row in pieces is one row.
            if last.as_ref() != Some(&row.key) {
                count += 1;
                if let Some(progress) = &mut self.progress {
                    progress.rows(count, &row.key)?;
                }
                last = Some(row.key);
                // Rows that have already arrived never block, so without a yield Ctrl-C would take
                // effect only after the last of them.
                if count % ROWS_BEFORE_YIELD == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
        self.print_count(count)?;
        if request.wants_metrics {
            self.output.note(
                "Thrift does not carry the metrics of a scan; the server's own are at /metrics of its HTTP port.",
            )?;
        }
        Ok(None)
    }

    pub(super) async fn count(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let interval = arguments.next_integer();
        let mut options = arguments.options()?;
        arguments.end()?;
        let interval = options
            .integer("INTERVAL")?
            .or(interval)
            .unwrap_or(COUNT_INTERVAL);
        if interval <= 0 {
            return Err(ShellError::Arguments(format!(
                "INTERVAL is {interval}, it must be positive"
            )));
        }
        let cache = options.integer32("CACHE")?.unwrap_or(COUNT_CACHE);
        // A filter of the user's would be pushed aside by one that only shortens rows.
        let filtered = options.has("FILTER");
        let request = scan_from(&mut options)?;
        let mut scan = request.scan.rows_per_fetch(cache);
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
                self.output.note(&text)?;
                // The line shows progress, so it must appear before the end.
                self.output.flush()?;
            }
        }
        self.print_answer(&format!("{count} row(s)"), Value::Integer(count))
    }

    pub(super) async fn delete(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        let at = arguments.optional_integer("the timestamp")?;
        delete_options(arguments.options()?)?;
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
        let row = arguments.optional_bytes("a row")?;
        let mut prefix = match row {
            Some(_) => Options::default(),
            None => arguments.options()?,
        };
        let (column, at) = delete_target(&mut arguments)?;
        delete_options(arguments.options()?)?;
        arguments.end()?;
        let target = DeleteTarget { column, at };
        if let Some(row) = row {
            table.delete(target.of(row)).await?;
            return Ok(None);
        }
        if !prefix.has("ROWPREFIXFILTER") {
            let text = "deleteall needs a row or {ROWPREFIXFILTER => 'prefix'}; truncate empties a table";
            return Err(ShellError::Arguments(text.to_owned()));
        }
        let batch = prefix.integer32("CACHE")?;
        let batch = batch.and_then(|rows| usize::try_from(rows).ok());
        let rows = prefix.bytes("ROWPREFIXFILTER")?.unwrap_or_default();
        prefix.end(&["ROWPREFIXFILTER", "CACHE"])?;
        self.delete_prefix(&table, rows, &target, batch.unwrap_or(DELETE_BATCH))
            .await
    }

    async fn delete_prefix(
        &mut self,
        table: &BackendTable,
        prefix: Vec<u8>,
        target: &DeleteTarget,
        batch: usize,
    ) -> Outcome {
        if prefix.is_empty() {
            let text = "an empty prefix would delete every row; truncate does that";
            return Err(ShellError::Arguments(text.to_owned()));
        }
        let keys_only = Scan::new()
            .prefix(prefix)
            .filter("FirstKeyOnlyFilter() AND KeyOnlyFilter()");
        let mut rows = table.scan(target.narrow(keys_only))?;
        let mut deletes = Vec::new();
        let mut count = 0usize;
        loop {
            let row = rows.next().await?;
            let ended = row.is_none();
            deletes.extend(row.map(|row| target.of(row.key.to_vec())));
            if deletes.len() >= batch.max(1) || (ended && !deletes.is_empty()) {
                count += deletes.len();
                table.delete_multiple(std::mem::take(&mut deletes)).await?;
            }
            if ended {
                break;
            }
        }
        self.print_answer(&format!("{count} row(s) deleted"), Value::Integer(count as i64))
    }

    pub(super) async fn increment(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        let amount = arguments.optional_integer("the amount")?.unwrap_or(1);
        let options = write_options(arguments.options()?)?;
        arguments.end()?;
        let qualifier = column.qualifier.unwrap_or_default();
        let mut increment = Increment::new(row).column(column.family, qualifier, amount);
        for (name, value) in options.attributes {
            increment = increment.attribute(name, value);
        }
        if let Some(ttl_ms) = options.ttl_ms {
            increment = increment.ttl(Duration::from_millis(ttl_ms));
        }
        let sums = table.increment(increment).await?;
        let Some(sum) = sums.cells.first() else {
            return Err(ShellError::Refused("the server returned no sum".to_owned()));
        };
        let sum = counter_from_value(&sum.value)?;
        self.print_answer(&format!("COUNTER VALUE = {sum}"), Value::Integer(sum))
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
            return self.print_answer("No counter found at specified coordinates", Value::Nil);
        };
        let value = counter_from_value(&cell.value)?;
        self.print_answer(&format!("COUNTER VALUE = {value}"), Value::Integer(value))
    }

    pub(super) async fn append(&mut self, mut arguments: Arguments) -> Outcome {
        let table = self.client.table(&arguments.text("a table")?)?;
        let row = arguments.bytes("a row")?;
        let column = column_name(arguments.bytes("a column")?);
        let value = value_bytes(arguments.take())?;
        let options = write_options(arguments.options()?)?;
        arguments.end()?;
        let mut append = Append::new(row).column(column.family, column.qualifier.unwrap_or_default(), value);
        for (name, value) in options.attributes {
            append = append.attribute(name, value);
        }
        if let Some(ttl_ms) = options.ttl_ms {
            append = append.ttl(Duration::from_millis(ttl_ms));
        }
        let appended = table.append(append).await?;
        let value = appended.cells.into_iter().next().map(|cell| cell.value.to_vec());
        let value = value.unwrap_or_default();
        let text = format!("CURRENT VALUE = {}", printable(&value));
        self.print_answer(&text, Value::Bytes(value))
    }
}

/// The part of each row that `deleteall` deletes: all, a family or a column, up to now or a
/// timestamp.
struct DeleteTarget {
    column: Option<ColumnName>,
    at: Option<i64>,
}

impl DeleteTarget {
    fn of(&self, row: Vec<u8>) -> Delete {
        let Some(ColumnName { family, qualifier }) = &self.column else {
            let delete = Delete::row(row);
            return match self.at {
                Some(at) => delete.up_to(at),
                None => delete,
            };
        };
        match (qualifier, self.at) {
            (None, None) => Delete::families(row).family(family),
            (None, Some(at)) => Delete::families(row).family_at(family, at),
            (Some(qualifier), None) => Delete::columns(row).column(family, qualifier),
            (Some(qualifier), Some(at)) => Delete::columns(row).column_at(family, qualifier, at),
        }
    }

    /// Restricts a scan to rows that have something to delete.
    fn narrow(&self, scan: Scan) -> Scan {
        match &self.column {
            None => scan,
            Some(ColumnName {
                family,
                qualifier: None,
            }) => scan.family(family),
            Some(ColumnName {
                family,
                qualifier: Some(qualifier),
            }) => scan.column(family, qualifier),
        }
    }
}
