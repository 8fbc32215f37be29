//! Cells to answers: encoded straight from the batch they were collected in.

use basalt_engine::cell::{Cell, CellBatch, RowView};
use basalt_idl::serve::Answer;
use basalt_idl::thrift1::{TCell, TRowResult};
use basalt_idl::thrift2::TResult;
use basalt_idl::wire::{WireType, Writer};

use super::handlers::Context;
use crate::service::reads::Found;
use crate::service::scans::Results;

/// Upper bound on the size of a reply with these cells, in any form and protocol. The overhead of a
/// cell, and of a row, is less than `AROUND_BYTES`.
pub(super) fn reply_bytes(batch: &CellBatch) -> usize {
    const AROUND_BYTES: usize = 64;
    batch.data_bytes() + AROUND_BYTES * (batch.cell_count() + batch.row_count() + 4)
}

/// The row of a single get.
impl Answer<TResult, Context<'_>> for Found {
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.field_begin(id, WireType::Struct);
        one_result(writer, &self.batch, self.rows.first().copied().flatten());
    }

    fn buffer(&mut self) -> Option<&mut CellBatch> {
        Some(&mut self.batch)
    }
}

/// A result for each get.
impl Answer<Vec<TResult>, Context<'_>> for Found {
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.field_begin(id, WireType::List);
        writer.list_begin(WireType::Struct, self.rows.len());
        for row in &self.rows {
            one_result(writer, &self.batch, *row);
        }
    }

    fn buffer(&mut self) -> Option<&mut CellBatch> {
        Some(&mut self.batch)
    }
}

/// The rows that gets found, in the gets' order; absent ones are left out.
impl Answer<Vec<TRowResult>, Context<'_>> for Found {
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.field_begin(id, WireType::List);
        writer.list_begin(WireType::Struct, self.rows.iter().flatten().count());
        let mut name = Vec::new();
        for row in self.rows.iter().flatten() {
            row_result(writer, &self.batch.row(*row), false, &mut name);
        }
    }

    fn buffer(&mut self) -> Option<&mut CellBatch> {
        Some(&mut self.batch)
    }
}

/// The rows of a fetch.
impl Answer<Vec<TResult>, Context<'_>> for Results {
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.field_begin(id, WireType::List);
        results(writer, &self.batch);
    }

    fn buffer(&mut self) -> Option<&mut CellBatch> {
        Some(&mut self.batch)
    }
}

/// The rows of a fetch.
impl Answer<Vec<TRowResult>, Context<'_>> for Results {
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.field_begin(id, WireType::List);
        row_results(writer, &self.batch, self.sort_columns);
    }

    fn buffer(&mut self) -> Option<&mut CellBatch> {
        Some(&mut self.batch)
    }
}

/// The first row, or an empty result.
impl Answer<TResult, Context<'_>> for CellBatch {
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.field_begin(id, WireType::Struct);
        one_result(writer, self, (!self.is_empty()).then_some(0));
    }

    fn buffer(&mut self) -> Option<&mut CellBatch> {
        Some(self)
    }
}

/// The cells of the first row, or none.
impl Answer<Vec<TCell>, Context<'_>> for CellBatch {
    fn encode_field<W: Writer>(&self, id: i16, writer: &mut W) {
        writer.field_begin(id, WireType::List);
        let cells = self.rows().next();
        writer.list_begin(WireType::Struct, cells.as_ref().map_or(0, RowView::len));
        for cell in cells.iter().flat_map(RowView::cells) {
            t_cell(writer, cell);
        }
    }

    fn buffer(&mut self) -> Option<&mut CellBatch> {
        Some(self)
    }
}

/// Writes a `TResult` with its cells.
fn result<W: Writer>(writer: &mut W, row: &RowView<'_>) {
    writer.struct_begin();
    writer.binary_field(1, row.key());
    writer.field_begin(2, WireType::List);
    writer.list_begin(WireType::Struct, row.len());
    for cell in row.cells() {
        column_value(writer, cell);
    }
    writer.bool_field(3, false);
    writer.bool_field(4, row.partial);
    writer.struct_end();
}

/// Writes that row of the batch as a `TResult`; a missing row has no key and no cells.
fn one_result<W: Writer>(writer: &mut W, batch: &CellBatch, row: Option<usize>) {
    if let Some(row) = row {
        return result(writer, &batch.row(row));
    }
    writer.struct_begin();
    writer.field_begin(2, WireType::List);
    writer.list_begin(WireType::Struct, 0);
    writer.bool_field(3, false);
    writer.bool_field(4, false);
    writer.struct_end();
}

/// A list with a `TResult` for each row of the batch.
fn results<W: Writer>(writer: &mut W, batch: &CellBatch) {
    writer.list_begin(WireType::Struct, batch.row_count());
    for row in batch.rows() {
        result(writer, &row);
    }
}

/// A `TColumnValue`. The type is always set: Java's client rebuilds cells from it. Tags are left out, as they
/// are on the way from HBase's region server to its gateway (`KeyValueCodec`).
fn column_value<W: Writer>(writer: &mut W, cell: Cell<'_>) {
    writer.struct_begin();
    writer.binary_field(1, cell.key.family());
    writer.binary_field(2, cell.key.qualifier());
    writer.binary_field(3, cell.value);
    writer.i64_field(4, cell.key.timestamp());
    writer.i8_field(6, cell.key.type_code() as i8);
    writer.struct_end();
}

fn t_cell<W: Writer>(writer: &mut W, cell: Cell<'_>) {
    writer.struct_begin();
    writer.binary_field(1, cell.value);
    writer.i64_field(2, cell.key.timestamp());
    writer.struct_end();
}

/// A list of Thrift 1 `TRowResult`s, one for each row of the batch.
fn row_results<W: Writer>(writer: &mut W, batch: &CellBatch, sort_columns: bool) {
    writer.list_begin(WireType::Struct, batch.row_count());
    let mut name = Vec::new();
    for row in batch.rows() {
        row_result(writer, &row, sort_columns, &mut name);
    }
}

fn row_result<W: Writer>(writer: &mut W, row: &RowView<'_>, sort_columns: bool, name: &mut Vec<u8>) {
    writer.struct_begin();
    writer.binary_field(1, row.key());
    if sort_columns {
        writer.field_begin(3, WireType::List);
        writer.list_begin(WireType::Struct, row.len());
        for cell in row.cells() {
            writer.struct_begin();
            writer.binary_field(1, column_name(cell, name));
            writer.field_begin(2, WireType::Struct);
            t_cell(writer, cell);
            writer.struct_end();
        }
    } else {
        writer.field_begin(2, WireType::Map);
        writer.map_begin(WireType::Binary, WireType::Struct, row.len());
        for cell in row.cells() {
            writer.binary(column_name(cell, name));
            t_cell(writer, cell);
        }
    }
    writer.struct_end();
}

/// `family:qualifier`, in `name`.
fn column_name<'a>(cell: Cell<'_>, name: &'a mut Vec<u8>) -> &'a [u8] {
    name.clear();
    name.extend_from_slice(cell.key.family());
    name.push(b':');
    name.extend_from_slice(cell.key.qualifier());
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_engine::cell::{CellType, KeyBuf};
    use basalt_engine::id::SeqId;
    use basalt_idl::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter};
    use basalt_idl::{Decode, thrift1, thrift2};
    use bytes::Bytes;

    fn batch() -> CellBatch {
        let mut batch = CellBatch::new();
        for (qualifier, value) in [("a", "1"), ("b", "22")] {
            let key = KeyBuf::new(b"row", b"f", qualifier.as_bytes(), 7, CellType::Put);
            batch.push(Cell {
                key: key.as_key(),
                value: value.as_bytes(),
                tags: b"",
                seq: SeqId(1),
            });
        }
        batch.end_row(false);
        batch
    }

    /// Results encoded by hand decode, in both protocols, as the interface's types with the cells'
    /// content.
    #[test]
    fn results_decode_as_the_interfaces_types() {
        let batch = batch();
        let (mut binary, mut compact) = (Vec::new(), Vec::new());
        results(&mut BinaryWriter::new(&mut binary), &batch);
        results(&mut CompactWriter::new(&mut compact), &batch);
        let from_binary =
            Vec::<thrift2::TResult>::decode(&mut BinaryReader::new(Bytes::from(binary))).unwrap();
        let from_compact =
            Vec::<thrift2::TResult>::decode(&mut CompactReader::new(Bytes::from(compact))).unwrap();
        assert_eq!(from_binary, from_compact);
        let result = &from_binary[0];
        assert_eq!(result.row.as_deref(), Some(&b"row"[..]));
        let second = &result.column_values[1];
        assert_eq!(
            (
                &second.qualifier[..],
                &second.value[..],
                second.timestamp,
                second.cell_type
            ),
            (&b"b"[..], &b"22"[..], Some(7), Some(4))
        );
    }

    #[test]
    fn rows_of_thrift_1_are_maps_or_sorted_lists() {
        let batch = batch();
        for sorted in [false, true] {
            let mut out = Vec::new();
            row_results(&mut BinaryWriter::new(&mut out), &batch, sorted);
            let rows = Vec::<thrift1::TRowResult>::decode(&mut BinaryReader::new(Bytes::from(out))).unwrap();
            let row = &rows[0];
            assert_eq!(
                (row.columns.is_some(), row.sorted_columns.is_some()),
                (!sorted, sorted)
            );
            if let Some(columns) = &row.columns {
                assert_eq!(columns[&b"f:b"[..]].value.as_deref(), Some(&b"22"[..]));
            }
        }
    }

    #[test]
    fn an_absent_row_is_a_result_without_row() {
        let mut out = Vec::new();
        one_result(&mut BinaryWriter::new(&mut out), &CellBatch::new(), None);
        let result = thrift2::TResult::decode(&mut BinaryReader::new(Bytes::from(out))).unwrap();
        assert!(result.row.is_none() && result.column_values.is_empty());
    }
}
