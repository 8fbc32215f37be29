//! Messages of a server to values: everything that a client could see, except values of one server
//! (ids of scanners, read points, lease times).

use basalt_idl::native::cells::{Cells, WireCell};
use basalt_idl::native::messages::{
    Cell, CellType, ExceptionResponse, MultiResponse, NameBytesPair, RegionActionResult, Result as Row,
    ResultOrException, ScanResponse,
};

use crate::Value;
use crate::connection::NoAnswer;
use crate::text::first_line;

/// A struct without the fields that are `None`.
pub(super) fn record(fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let fields = fields.into_iter();
    Value::Struct(fields.filter_map(|(name, value)| Some((name, value?))).collect())
}

/// A flag that is shown only if it is set.
fn set(flag: Option<bool>) -> Option<Value> {
    flag.filter(|flag| *flag).map(Value::Bool)
}

/// The exception of a response header.
pub(super) fn exception(exception: &ExceptionResponse) -> Value {
    record([
        ("class", Some(exception.exception_class_name().into())),
        ("doNotRetry", Some(exception.do_not_retry().into())),
        (
            "message",
            Some(Value::Bytes(first_line(exception.stack_trace().as_bytes()))),
        ),
    ])
}

/// An exception inside an answer.
fn failure(exception: &NameBytesPair) -> Value {
    let text = exception.value.as_ref();
    record([
        ("class", Some(exception.name.as_str().into())),
        ("message", text.map(|text| Value::Bytes(first_line(text)))),
    ])
}

/// The cells of a response, which its results take in their order.
#[derive(Debug)]
pub(super) struct CellsIn<'a> {
    method: &'static str,
    cells: Cells<'a>,
}

impl<'a> CellsIn<'a> {
    /// The cell block of an answer to this method.
    pub(super) fn new(method: &'static str, block: &'a [u8]) -> Self {
        CellsIn {
            method,
            cells: Cells::new(block),
        }
    }

    /// Checks that the results took all cells.
    pub(super) fn end(self) -> Result<(), NoAnswer> {
        if self.cells.is_empty() {
            return Ok(());
        }
        let text = "cells behind those of the last result";
        Err(NoAnswer::Malformed(self.method, text.to_owned()))
    }

    fn take(&mut self, count: usize) -> Result<Vec<Taken<'a>>, NoAnswer> {
        let method = self.method;
        let cells = (0..count).map(|_| {
            let cell = self.cells.require();
            cell.map(Taken::from)
                .map_err(|error| NoAnswer::Malformed(method, error.to_string()))
        });
        cells.collect()
    }

    /// A result with its cells, which are in the block or inside.
    pub(super) fn result(&mut self, result: &Row) -> Result<Value, NoAnswer> {
        let count = usize::try_from(result.associated_cell_count()).unwrap_or_default();
        let mut cells: Vec<Taken<'_>> = self.take(count)?;
        let is_inline = !result.cell.is_empty();
        cells.extend(result.cell.iter().map(Taken::from));
        Ok(row(
            &cells,
            is_inline,
            result.exists,
            result.stale,
            result.partial,
        ))
    }

    /// The results of a scan's answer.
    pub(super) fn results(&mut self, answer: &ScanResponse, is_bare: bool) -> Result<Vec<Value>, NoAnswer> {
        if is_bare {
            let results = answer.results.iter().map(|result| self.result(result));
            return results.collect();
        }
        let counts = answer.cells_per_result.iter().enumerate();
        let results = counts.map(|(index, count)| {
            let cells = self.take(*count as usize)?;
            let partial = answer.partial_flag_per_result.get(index).copied();
            Ok(row(&cells, false, None, answer.stale, partial))
        });
        results.collect()
    }

    /// The answer to a Multi.
    pub(super) fn multi(&mut self, answer: &MultiResponse) -> Result<Value, NoAnswer> {
        let regions = answer.region_action_result.iter();
        let regions = regions.map(|region| self.region(region));
        let regions: Vec<Value> = regions.collect::<Result<_, NoAnswer>>()?;
        Ok(record([
            ("processed", answer.processed.map(Value::Bool)),
            ("regions", Some(regions.into())),
        ]))
    }

    fn region(&mut self, answer: &RegionActionResult) -> Result<Value, NoAnswer> {
        let results = answer.result_or_exception.iter();
        let results = results.map(|result| Ok((result.index(), self.action(result)?)));
        let mut results: Vec<(u32, Value)> = results.collect::<Result<_, NoAnswer>>()?;
        results.sort();
        let results: Vec<Value> = results.into_iter().map(|(_, result)| result).collect();
        Ok(record([
            ("processed", answer.processed.map(Value::Bool)),
            ("exception", answer.exception.as_ref().map(failure)),
            ("results", Some(results.into())),
        ]))
    }

    fn action(&mut self, answer: &ResultOrException) -> Result<Value, NoAnswer> {
        let result = answer.result.as_ref();
        Ok(record([
            ("index", Some(i64::from(answer.index()).into())),
            ("result", result.map(|result| self.result(result)).transpose()?),
            ("exception", answer.exception.as_deref().map(failure)),
        ]))
    }
}

/// A cell of a block or of a message.
#[derive(Clone, Copy, Debug)]
struct Taken<'a> {
    row: &'a [u8],
    family: &'a [u8],
    qualifier: &'a [u8],
    timestamp: i64,
    cell_type: i64,
    value: &'a [u8],
    tags: &'a [u8],
}

impl<'a> From<WireCell<'a>> for Taken<'a> {
    fn from(cell: WireCell<'a>) -> Self {
        Taken {
            row: cell.row,
            family: cell.family,
            qualifier: cell.qualifier,
            timestamp: cell.timestamp,
            cell_type: cell.cell_type as i64,
            value: cell.value,
            tags: cell.tags,
        }
    }
}

impl<'a> From<&'a Cell> for Taken<'a> {
    fn from(cell: &'a Cell) -> Self {
        Taken {
            row: cell.row(),
            family: cell.family(),
            qualifier: cell.qualifier(),
            timestamp: cell.timestamp().cast_signed(),
            cell_type: i64::from(cell.cell_type.unwrap_or(CellType::Minimum as i32)),
            value: cell.value(),
            tags: cell.tags(),
        }
    }
}

fn row(
    cells: &[Taken<'_>],
    is_inline: bool,
    exists: Option<bool>,
    stale: Option<bool>,
    partial: Option<bool>,
) -> Value {
    let row = cells.first().map(|cell| cell.row);
    let values = cells.iter().map(|cell| cell_value(cell, row));
    record([
        ("row", row.map(Value::bytes)),
        ("cells", Some(Value::List(values.collect()))),
        ("inline", set(Some(is_inline))),
        ("exists", exists.map(Value::Bool)),
        ("stale", set(stale)),
        ("partial", set(partial)),
    ])
}

fn cell_value(cell: &Taken<'_>, row: Option<&[u8]>) -> Value {
    let other_row = (Some(cell.row) != row).then(|| Value::bytes(cell.row));
    let tags = (!cell.tags.is_empty()).then(|| Value::bytes(cell.tags));
    record([
        ("row", other_row),
        ("family", Some(Value::bytes(cell.family))),
        ("qualifier", Some(Value::bytes(cell.qualifier))),
        ("timestamp", Some(cell.timestamp.into())),
        ("type", Some(cell.cell_type.into())),
        ("value", Some(Value::bytes(cell.value))),
        ("tags", tags),
    ])
}
