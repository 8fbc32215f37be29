//! Output of commands: as HBase's shell prints it, as JSON, or as CSV.
//!
//! ```text
//! ROW                      COLUMN+CELL
//!  row key                 column=f:q, timestamp=2026-11-21T10:26:00.120, value=v
//! ```
//!
//! A command prints records, text, or an answer, and notes around them:
//!
//! | | table | JSON | CSV |
//! |---|---|---|---|
//! | record | columns | an object in a line | a line, below one with the names |
//! | text | text | `{"text":"..."}` for each line | text in quotes |
//! | answer | a sentence | `{"value":...}` | the value |
//! | header, note | text, unless quiet | - | - |
//!
//! The first of two columns takes a quarter of the width. On a terminal, texts that do not fit are
//! wrapped within their column; elsewhere they are printed whole, so that scripts can read them.
//! Everything that is no result, such as the time that a command took, goes beside the output, to
//! standard error.

use std::fmt::Display;
use std::io::{Result, Write};

use super::value::Value;

/// Width where there is no terminal.
const DEFAULT_WIDTH: usize = 100;

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As HBase's shell prints it.
    #[default]
    Table,
    /// An object in a line for each record.
    Json,
    /// Fields with commas between them, below a line with their names.
    Csv,
}

/// A named field of a record.
pub(super) type Field = (&'static str, Value);

/// Where output goes, in which form, and how wide it is.
pub struct Output {
    to: Box<dyn Write + Send>,
    /// Receives everything that is no result.
    beside: Box<dyn Write + Send>,
    style: Style,
    /// Whether headers, counts and times are left out.
    quiet: bool,
    /// Columns of the terminal, `None` elsewhere.
    width: Option<usize>,
    /// Whether the names of the fields of this command's records are printed.
    has_names: bool,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("style", &self.style)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl Output {
    /// Output to `to`, not a terminal, as tables. Everything that is no result is dropped.
    pub fn new(to: Box<dyn Write + Send>) -> Output {
        Output {
            to,
            beside: Box::new(std::io::sink()),
            style: Style::Table,
            quiet: false,
            width: None,
            has_names: false,
        }
    }

    /// Sets where everything goes that is no result.
    #[must_use]
    pub fn with_beside(mut self, beside: Box<dyn Write + Send>) -> Output {
        self.beside = beside;
        self
    }

    /// Sets the form, and whether headers, counts and times are left out.
    #[must_use]
    pub fn with_style(mut self, style: Style, quiet: bool) -> Output {
        (self.style, self.quiet) = (style, quiet);
        self
    }

    /// Sets the width of the terminal.
    pub fn set_width(&mut self, width: Option<usize>) {
        self.width = width.filter(|width| *width >= 20);
    }

    /// The columns of the terminal, or a default.
    pub(super) fn width(&self) -> usize {
        self.width.unwrap_or(DEFAULT_WIDTH)
    }

    pub(super) fn is_table(&self) -> bool {
        self.style == Style::Table
    }

    /// A command begins: its records have names of their own.
    pub(super) fn begin(&mut self) {
        self.has_names = false;
    }

    /// Hands everything on.
    pub fn flush(&mut self) -> Result<()> {
        self.to.flush()
    }

    /// A line of text that is a result.
    pub fn line(&mut self, text: &str) -> Result<()> {
        match self.style {
            Style::Table => writeln!(self.to, "{text}"),
            Style::Json => {
                for line in text.lines() {
                    writeln!(self.to, "{{\"text\":{}}}", json_text(line))?;
                }
                Ok(())
            }
            Style::Csv => writeln!(self.to, "{}", csv_field(text)),
        }
    }

    /// A line around results: a count, or a step of a command.
    pub fn note(&mut self, text: &str) -> Result<()> {
        if self.is_table() && !self.quiet {
            return writeln!(self.to, "{text}");
        }
        Ok(())
    }

    /// The only result of a command, in words and as a value.
    pub(super) fn answer(&mut self, text: &str, value: &Value) -> Result<()> {
        match self.style {
            Style::Table => writeln!(self.to, "{text}"),
            Style::Json => writeln!(self.to, "{{\"value\":{}}}", json(value)),
            Style::Csv => writeln!(self.to, "{}", csv(value)),
        }
    }

    /// A line beside the output.
    pub(super) fn beside(&mut self, text: &dyn Display) {
        if !self.quiet {
            // Standard error may be closed, which must not stop a command.
            drop(writeln!(self.beside, "{text}"));
        }
    }

    /// The names of columns.
    pub(super) fn header(&mut self, names: &[&str]) -> Result<()> {
        match names {
            [left, right] => {
                let width = self.left_width() + 1;
                self.note(format!("{left:width$} {right}").trim_end())
            }
            names => self.note(&names.join(" ")),
        }
    }

    /// A record: in tables the columns, otherwise the fields.
    pub(super) fn record(&mut self, columns: &[&str], fields: &[Field]) -> Result<()> {
        match self.style {
            Style::Table => match columns {
                [left, right] => self.row(left, right),
                columns => writeln!(self.to, "{}", columns.join(" ")),
            },
            Style::Json => self.json_record(fields),
            Style::Csv => self.csv_record(fields),
        }
    }

    /// A record of texts, with names in the order of the columns.
    pub(super) fn texts(&mut self, names: &[&'static str], columns: &[&str]) -> Result<()> {
        if self.is_table() {
            return self.record(columns, &[]);
        }
        let fields = names.iter().zip(columns);
        let fields: Vec<Field> = fields.map(|(name, text)| (*name, Value::text(*text))).collect();
        self.record(columns, &fields)
    }

    fn json_record(&mut self, fields: &[Field]) -> Result<()> {
        let fields = fields
            .iter()
            .map(|(name, value)| format!("{}:{}", json_text(&name.to_ascii_lowercase()), json(value)));
        let fields: Vec<String> = fields.collect();
        writeln!(self.to, "{{{}}}", fields.join(","))
    }

    fn csv_record(&mut self, fields: &[Field]) -> Result<()> {
        if !std::mem::replace(&mut self.has_names, true) && !self.quiet {
            let names: Vec<String> = fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
            writeln!(self.to, "{}", names.join(","))?;
        }
        let fields: Vec<String> = fields.iter().map(|(_, value)| csv(value)).collect();
        writeln!(self.to, "{}", fields.join(","))
    }

    /// Two columns.
    fn row(&mut self, left: &str, right: &str) -> Result<()> {
        let left_width = self.left_width();
        let Some(width) = self.width else {
            return writeln!(self.to, "{}", format!(" {left:left_width$} {right}").trim_end());
        };
        let (left, right) = (cut(left, left_width), cut(right, width - left_width - 2));
        for index in 0..left.len().max(right.len()) {
            let left = left.get(index).map_or("", String::as_str);
            let right = right.get(index).map_or("", String::as_str);
            writeln!(self.to, "{}", format!(" {left:left_width$} {right}").trim_end())?;
        }
        Ok(())
    }

    /// Records with bars between their columns, which are as wide as the widest text.
    pub(super) fn grid(&mut self, names: &[&'static str], rows: &[Vec<String>]) -> Result<()> {
        if !self.is_table() {
            for row in rows {
                let texts: Vec<&str> = row.iter().map(String::as_str).collect();
                self.texts(names, &texts)?;
            }
            return Ok(());
        }
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let width = cells.map(|cell| cell.chars().count()).max().unwrap_or_default();
            width.max(names[column].chars().count())
        };
        let widths: Vec<usize> = (0..names.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells
                .zip(&widths)
                .map(|(cell, width)| format!(" {cell:>width$} |"));
            cells.collect::<String>()
        };
        self.note(&line(&mut names.iter().copied()))?;
        let bars = widths.iter().map(|width| format!(" {} |", "-".repeat(*width)));
        self.note(&bars.collect::<String>())?;
        for row in rows {
            writeln!(self.to, "{}", line(&mut row.iter().map(String::as_str)))?;
        }
        Ok(())
    }

    fn left_width(&self) -> usize {
        self.width() / 4
    }
}

/// Pieces of at most `width` characters.
fn cut(text: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(width.max(1))
        .map(|piece| piece.iter().collect())
        .collect()
}

/// A value without the quotes of a string; bytes that are no text as `\x00`.
fn plain(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => super::escape::printable(bytes),
        },
        Value::Table(name) | Value::Constant(name) => name.clone(),
        Value::Nil => String::new(),
        other => other.to_string(),
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Integer(_) | Value::Float(_) | Value::Bool(_) => value.to_string(),
        Value::Nil => "null".to_owned(),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(json).collect();
            format!("[{}]", values.join(","))
        }
        other => json_text(&plain(other)),
    }
}

fn json_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            control if control.is_control() => {
                quoted.extend(["\\u", &format!("{:04x}", u32::from(control))]);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn csv(value: &Value) -> String {
    csv_field(&plain(value))
}

/// A field of CSV (RFC 4180): in quotes if it needs them.
fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// The text printed to the output, and beside it.
    fn printed(style: Style, quiet: bool, print: fn(&mut Output) -> Result<()>) -> [String; 2] {
        let (to, beside) = (Shared::default(), Shared::default());
        let mut output = Output::new(Box::new(to.clone()))
            .with_beside(Box::new(beside.clone()))
            .with_style(style, quiet);
        print(&mut output).unwrap();
        [to, beside].map(|bytes| String::from_utf8(bytes.0.lock().unwrap().clone()).unwrap())
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("abcdefg", 3), ["abc", "def", "g"]);
        assert!(cut("", 3).is_empty());
    }

    /// Goal: each kind of output in each form, with what forms need to escape.
    #[test]
    fn forms_have_results_only_where_they_belong() {
        let print = |output: &mut Output| {
            output.begin();
            output.header(&["ROW", "CELL"])?;
            for row in ["a\"b", "c,\u{1}"] {
                output.record(
                    &[row, "x"],
                    &[("row", Value::text(row)), ("n", Value::Integer(-1))],
                )?;
            }
            output.line("one\ntwo")?;
            output.answer("It is true", &Value::Bool(true))?;
            output.beside(&"Took 1 s");
            output.note("2 row(s)")
        };
        let [table, beside] = printed(Style::Table, false, print);
        assert_eq!(beside, "Took 1 s\n");
        let width = DEFAULT_WIDTH / 4;
        let rows = format!(
            " {:width$} x\n {:width$} x\none\ntwo\nIt is true\n",
            "a\"b", "c,\u{1}"
        );
        assert_eq!(
            table,
            format!("ROW{} CELL\n{rows}2 row(s)\n", " ".repeat(width - 2))
        );
        assert_eq!(printed(Style::Table, true, print), [rows, String::new()]);
        let json = "{\"row\":\"a\\\"b\",\"n\":-1}\n{\"row\":\"c,\\u0001\",\"n\":-1}\n\
                    {\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"value\":true}\n";
        assert_eq!(printed(Style::Json, false, print)[0], json);
        let csv = "\"a\"\"b\",-1\n\"c,\u{1}\",-1\n\"one\ntwo\"\ntrue\n";
        assert_eq!(printed(Style::Csv, false, print)[0], format!("row,n\n{csv}"));
        assert_eq!(printed(Style::Csv, true, print)[0], csv);
    }

    #[test]
    fn a_grid_is_as_wide_as_its_texts() {
        let print = |output: &mut Output| {
            let rows = [vec!["1".to_owned(), "long text".to_owned()]];
            output.grid(&["NAME", "b"], &rows)
        };
        let table = " NAME |         b |\n ---- | --------- |\n    1 | long text |\n";
        assert_eq!(printed(Style::Table, false, print)[0], table);
        assert_eq!(
            printed(Style::Json, false, print)[0],
            "{\"name\":\"1\",\"b\":\"long text\"}\n"
        );
    }
}
