//! Shared by both filter targets: the steps with an accepted filter.

use std::sync::LazyLock;

use basalt_engine::cell::{Cell, CellBatch, CellType, KeyBuf};
use basalt_engine::filter::{Filter, FilterSpec, ReturnCode};
use basalt_engine::id::SeqId;

use super::hash_of;

/// Random filters draw from it.
pub(super) const SEED: u64 = 7;

/// Regular expressions may take this, whatever they are and however many, refused or not, in bytes: 2 MiB for
/// those of a filter that are compiled, the rest to compile one. See `docs/testing.md`.
pub const REGEX_BYTES: usize = 6 << 20;

/// Memory that the regular expressions in an input may take beside the limit.
pub(super) fn regex_bytes(input: &[u8]) -> usize {
    let mentions = |word: &[u8]| {
        input
            .windows(word.len())
            .any(|window| window.eq_ignore_ascii_case(word))
    };
    if mentions(b"regexstring") { REGEX_BYTES } else { 0 }
}

/// Whether an accepted filter is looked at further. Compiling a regular expression takes longer than all
/// else, so of the filters with one it is only every eighth.
pub(super) fn is_worth_more(input: &[u8]) -> bool {
    regex_bytes(input) == 0 || hash_of(&input).is_multiple_of(8)
}

/// A filter that is written as protobuf is read back as the same.
pub(super) fn same_as_protobuf(spec: &FilterSpec) {
    let written = spec.encode();
    match FilterSpec::decode(&written, SEED) {
        Ok(read) => assert_eq!(read.encode(), written, "{spec}: not what was written"),
        Err(error) => panic!("{spec}: does not read what it wrote: {error}"),
    }
}

/// The cells of a row: keys and values.
type Row = Vec<(KeyBuf, &'static [u8])>;

/// Rows with columns and versions that filters can tell apart, in order.
fn rows() -> Vec<Row> {
    let rows: [&[u8]; 4] = [b"", b"a", b"row-1", b"row-2\xff\xff"];
    let columns: [&[u8]; 4] = [b"", b"a", b"name", b"q\x00"];
    let values: [&[u8]; 3] = [b"", b"value-1", b"\x00\x00\x00\x00\x00\x00\x00\x2a"];
    let row = |row: &&[u8]| {
        let mut cells = Vec::new();
        for (column, qualifier) in columns.iter().enumerate() {
            for version in 0..2 {
                let timestamp = 10 - version;
                let key = KeyBuf::new(row, b"f", qualifier, timestamp, CellType::Put);
                cells.push((key, values[(column + version as usize) % values.len()]));
            }
        }
        cells
    };
    rows.iter().map(row).collect()
}

/// Uses the filter as a region does, forward and reversed. It must not panic, and say the same each time.
pub(super) fn used(spec: &FilterSpec) {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(rows);
    let rows = &*ROWS;
    for reversed in [false, true] {
        let kept = scanned(spec, rows, reversed);
        assert_eq!(
            kept,
            scanned(spec, rows, reversed),
            "{spec}: another answer the second time"
        );
    }
}

/// Number of cells that the filter keeps; `None` when it fails.
fn scanned(spec: &FilterSpec, rows: &[Row], reversed: bool) -> Option<usize> {
    let mut filter = spec.create();
    filter.set_reversed(reversed);
    let mut batch = CellBatch::new();
    let _ = (filter.is_family_essential(b"f"), filter.has_filter_row());
    for index in 0..rows.len() {
        let row = &rows[if reversed { rows.len() - 1 - index } else { index }];
        filter.reset();
        if filter.filter_all_remaining() {
            break;
        }
        let key = row.first().map(|(key, _)| key.as_key().row()).unwrap_or_default();
        if !filter.filter_row_key(key).ok()? {
            cells(&mut *filter, row, &mut batch)?;
            filter.filter_row_cells(&mut batch);
        }
        if filter.filter_row() {
            batch.abandon_row();
        } else {
            batch.end_row(false);
        }
    }
    Some(batch.cell_count())
}

fn cells(filter: &mut dyn Filter, row: &[(KeyBuf, &[u8])], batch: &mut CellBatch) -> Option<()> {
    let mut scratch = Vec::new();
    for (key, value) in row {
        let cell = Cell {
            key: key.as_key(),
            value,
            tags: b"",
            seq: SeqId(1),
        };
        let code = filter.filter_cell(cell).ok()?;
        if code == ReturnCode::SeekNextUsingHint {
            drop(filter.next_cell_hint(cell));
        }
        if code.includes() && filter.transforms() {
            batch.push_with_value(cell, filter.transform_value(cell, &mut scratch));
        } else if code.includes() {
            batch.push(cell);
        }
        if matches!(code, ReturnCode::NextRow | ReturnCode::IncludeAndSeekNextRow) {
            break;
        }
    }
    Some(())
}
