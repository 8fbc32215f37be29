//! Records as JSON: one object for each row of an edit.
//!
//! A record of the log has `position`, `time` (milliseconds since 1970), `table`, `row`, `origin` (the
//! clusters that the edit has passed; absent if it was made here) and `cells`; one of the present rows has
//! `"snapshot": true` and no position or time. A cell has `family`, `qualifier`, `timestamp`, `type` (HBase's
//! names), and where there is one `value`, `ttl` and `tags`.

use std::collections::HashMap;
use std::sync::Arc;

use basalt_engine::Error;
use basalt_engine::cell::{Cell, CellType, ttl_ms};
use basalt_engine::engine::TailedEdit;
use basalt_engine::schema::{Escaped, TableName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::limits::admission::{Memory, MemoryPermit};

/// Bytes that a record takes while it is made, for each byte of its cells: base64 and the names, twice.
const BYTES_FACTOR: usize = 4;
/// Bytes that a cell takes besides its data.
const CELL_BYTES: usize = 512;

/// Notation of bytes in texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// RFC 4648.
    Base64,
    /// That of HBase's shell: `\xNN` for bytes that are no printable ASCII character.
    Escaped,
}

impl Notation {
    fn of(self, bytes: &[u8]) -> String {
        match self {
            Self::Base64 => STANDARD.encode(bytes),
            Self::Escaped => Escaped(bytes).to_string(),
        }
    }
}

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A line for each object.
    Lines,
    /// Server-sent events; the id of a record's event is its position.
    Events,
}

#[derive(Debug, Serialize)]
struct Record<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    snapshot: bool,
    table: &'a str,
    row: String,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    origin: &'a [String],
    cells: Vec<RecordCell>,
}

#[derive(Debug, Serialize)]
struct RecordCell {
    family: String,
    qualifier: String,
    timestamp: i64,
    #[serde(rename = "type")]
    cell_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<String>,
}

/// A part of a stream, with the memory for it.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    /// Held until the next piece is asked for.
    pub(crate) permit: MemoryPermit,
}

/// Collects the objects of a piece.
#[derive(Debug)]
pub(super) struct Writer {
    /// The tables that are wanted, with their names as texts.
    tables: Arc<HashMap<TableName, String>>,
    notation: Notation,
    form: Form,
    bytes: Vec<u8>,
    permit: MemoryPermit,
    /// Records so far.
    records: u64,
}

impl Writer {
    pub(super) fn new(
        tables: &Arc<HashMap<TableName, String>>,
        (notation, form): (Notation, Form),
        memory: &Arc<Memory>,
    ) -> Self {
        Self {
            tables: Arc::clone(tables),
            notation,
            form,
            bytes: Vec::new(),
            permit: MemoryPermit::empty(memory),
            records: 0,
        }
    }

    pub(super) fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The collected objects.
    pub(super) fn finish(mut self) -> Piece {
        self.permit.set(self.bytes.len());
        Piece {
            bytes: self.bytes.into(),
            permit: self.permit,
        }
    }

    /// Adds an object that is no record.
    pub(super) fn note(&mut self, note: &Value) {
        let text = note.to_string();
        self.put(None, |bytes| bytes.extend_from_slice(text.as_bytes()));
    }

    /// Adds the rows of an edit from the position `from` on, if it is of a table that is wanted. Fails where
    /// there is no memory for them ([`Error::CallMemory`]): the records that were added are whole.
    pub(super) fn take(&mut self, from: u64, tailed: &TailedEdit<'_>) -> Result<(), Error> {
        let edit = &tailed.edit;
        let first = edit.first_seq().0;
        let Some(table) = &tailed.table else {
            return Err(Error::InvalidArgument(format!(
                "the row at position {first} is of a region that was gone before the log was kept for readers, so its table is not known: begin with from=snapshot"
            )));
        };
        let tables = Arc::clone(&self.tables);
        let Some(name) = tables.get(&**table) else {
            return Ok(());
        };
        let origin: Vec<String> = edit
            .origin()
            .clusters()
            .map(|cluster| cluster.to_string())
            .collect();
        let mut cells = edit.cells().peekable();
        while let Some((row, first_cell)) = cells.next() {
            let mut of_row = vec![first_cell];
            while let Some((_, cell)) = cells.next_if(|(number, _)| *number == row) {
                of_row.push(cell);
            }
            let position = first + u64::from(row);
            if position >= from {
                let record = Record {
                    position: Some(position),
                    time: edit.write_time_ms(),
                    snapshot: false,
                    table: name,
                    row: String::new(),
                    origin: &origin,
                    cells: Vec::new(),
                };
                self.record(record, first_cell.key.row(), &of_row)?;
            }
        }
        Ok(())
    }

    /// Adds a row that a table has.
    pub(super) fn present(&mut self, table: &TableName, row: &[u8], cells: &[Cell<'_>]) -> Result<(), Error> {
        let tables = Arc::clone(&self.tables);
        let record = Record {
            position: None,
            time: None,
            snapshot: true,
            table: tables.get(table).map_or("", String::as_str),
            row: String::new(),
            origin: &[],
            cells: Vec::new(),
        };
        self.record(record, row, cells)
    }

    fn record(&mut self, mut record: Record<'_>, row: &[u8], cells: &[Cell<'_>]) -> Result<(), Error> {
        let data: usize = cells.iter().map(|cell| cell.data_bytes() + cell.tags.len()).sum();
        let wanted = BYTES_FACTOR * data + CELL_BYTES * cells.len();
        let reserved = self.permit.try_add(wanted as u64);
        reserved.map_err(|busy| Error::CallMemory(busy.to_string()))?;
        record.row = self.notation.of(row);
        record.cells = cells.iter().map(|cell| self.cell(cell)).collect();
        let text = serde_json::to_vec(&record).map_err(|error| Error::InvalidArgument(error.to_string()))?;
        self.put(record.position, |bytes| bytes.extend_from_slice(&text));
        self.records += 1;
        Ok(())
    }

    fn cell(&self, cell: &Cell<'_>) -> RecordCell {
        let cell_type = cell.key.cell_type();
        RecordCell {
            family: String::from_utf8_lossy(cell.key.family()).into_owned(),
            qualifier: self.notation.of(cell.key.qualifier()),
            timestamp: cell.key.timestamp(),
            cell_type: name_of(cell_type),
            value: (!cell_type.is_delete()).then(|| self.notation.of(cell.value)),
            ttl: ttl_ms(cell.tags),
            tags: (!cell.tags.is_empty()).then(|| self.notation.of(cell.tags)),
        }
    }

    fn put(&mut self, position: Option<u64>, text: impl FnOnce(&mut Vec<u8>)) {
        let bytes = &mut self.bytes;
        match self.form {
            Form::Lines => text(bytes),
            Form::Events => {
                if let Some(position) = position {
                    bytes.extend_from_slice(format!("id: {position}\n").as_bytes());
                }
                bytes.extend_from_slice(b"data: ");
                text(bytes);
                bytes.push(b'\n');
            }
        }
        bytes.push(b'\n');
    }
}

/// HBase's name (`KeyValue.Type`).
fn name_of(cell_type: CellType) -> &'static str {
    match cell_type {
        CellType::Minimum => "Minimum",
        CellType::Put => "Put",
        CellType::Delete => "Delete",
        CellType::DeleteFamilyVersion => "DeleteFamilyVersion",
        CellType::DeleteColumn => "DeleteColumn",
        CellType::DeleteFamily => "DeleteFamily",
        CellType::Maximum => "Maximum",
    }
}

/// The object that ends a stream.
pub(crate) fn last(form: Form, error: &str) -> Vec<u8> {
    let text = json!({ "error": error });
    match form {
        Form::Lines => format!("{text}\n"),
        Form::Events => format!("event: error\ndata: {text}\n\n"),
    }
    .into_bytes()
}
