//! Throughput of memstore inserts and reads: `cargo bench -p basalt-engine --bench memstore --
//! [CELLS] [TEXT]`. Only cases whose name contains the text are measured.
//!
//! Cells are like those of the load generator's engine mode: 16-byte rows, family `f`, empty qualifier,
//! 100-byte values. Prints the median of five runs for each figure, and the bytes a cell costs besides its
//! data.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use basalt_engine::cell::{Cell, CellCursor, CellType, KeyBuf};
use basalt_engine::id::SeqId;
use basalt_engine::internals::Memstore;
use smallvec::SmallVec;

const RUNS: usize = 5;
const VALUE: [u8; 100] = [b'v'; 100];

/// How row numbers come: one after the other, scattered by a bijection, or in runs of [`BATCH`] rows that
/// follow each other, each run scattered; or such runs over few rows, so that most rows have been written
/// before.
#[derive(Clone, Copy)]
enum Order {
    Sequential,
    Random,
    Batches,
    Overwrites,
}

const BATCH: u64 = 100;

/// Cells are copied into blocks of this size.
const BLOCK_BYTES: usize = 64 << 10;

/// Number of rows that overwrites choose among.
const OVERWRITTEN: u64 = 25_000;

/// Odd, so multiplying by it is a bijection.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

/// How row numbers become rows.
#[derive(Clone, Copy)]
enum Rows {
    /// Eight bytes big-endian, then eight of padding, as db_bench does.
    Binary,
    /// Sixteen decimal digits.
    Decimal,
}

fn write_row(order: Order, rows: Rows, number: u64, row: &mut [u8; 16]) {
    let number = match order {
        Order::Sequential => number,
        Order::Random => number.wrapping_mul(SCATTER),
        Order::Batches => (number / BATCH)
            .wrapping_mul(SCATTER)
            .wrapping_add(number % BATCH),
        Order::Overwrites => {
            (number / BATCH).wrapping_mul(SCATTER) % (OVERWRITTEN / BATCH) * BATCH + number % BATCH
        }
    };
    match rows {
        Rows::Binary => row[..8].copy_from_slice(&number.to_be_bytes()),
        Rows::Decimal => {
            // Twelve digits at most, so that rows share a prefix as padded numbers do.
            let mut rest = number % 1_000_000_000_000;
            for digit in row.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
    }
}

fn key(row: &[u8; 16]) -> KeyBuf {
    KeyBuf::new(row, b"f", b"", 1_700_000_000_000, CellType::Put)
}

/// Inserts `cells` cells, numbered from the start of the range.
fn fill(memstore: &Memstore, order: Order, rows: Rows, cells: std::ops::Range<u64>, at_once: usize) {
    let mut row = [b'0'; 16];
    let mut flat = Vec::new();
    let mut next = cells.start;
    while next < cells.end {
        let edit = next..cells.end.min(next + at_once as u64);
        next = edit.end;
        flat.clear();
        if at_once == 1 {
            write_row(order, rows, edit.start, &mut row);
            KeyBuf::append(&mut flat, &row, b"f", b"", 1_700_000_000_000, CellType::Put);
            memstore.insert(Cell {
                key: basalt_engine::cell::Key::trusted(&flat),
                value: &VALUE,
                tags: b"",
                seq: SeqId(edit.start + 1),
            });
            continue;
        }
        for number in edit.clone() {
            write_row(order, rows, number, &mut row);
            KeyBuf::append(&mut flat, &row, b"f", b"", 1_700_000_000_000, CellType::Put);
        }
        let key_bytes = flat.len() / (edit.end - edit.start) as usize;
        let cells: SmallVec<[Cell<'_>; 128]> = flat
            .chunks(key_bytes)
            .zip(edit)
            .map(|(key, number)| Cell {
                key: basalt_engine::cell::Key::trusted(key),
                value: &VALUE,
                tags: b"",
                seq: SeqId(number + 1),
            })
            .collect();
        memstore.insert_all(&cells);
    }
}

/// The threads take turns, each with [`BATCH`] cells.
fn filled(order: Order, rows: Rows, cells: u64, threads: u64, at_once: usize) -> Arc<Memstore> {
    let memstore = Arc::new(Memstore::default());
    thread::scope(|scope| {
        for thread in 0..threads {
            let memstore = &memstore;
            scope.spawn(move || {
                for first in (thread * BATCH..cells).step_by((threads * BATCH) as usize) {
                    fill(memstore, order, rows, first..cells.min(first + BATCH), at_once);
                }
            });
        }
    });
    memstore
}

/// Prints the median rate of `work`, which does `count` operations.
fn report(name: &str, count: u64, mut work: impl FnMut()) {
    // Words that begin like an option are cargo's.
    let wanted = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with('-') && word.parse::<u64>().is_err());
    if wanted.is_some_and(|wanted| !name.contains(&wanted)) {
        return;
    }
    let mut seconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds[RUNS / 2];
    println!(
        "{name:<56} {:>8.1} ns/op {:>12.0} ops/s",
        median * 1e9 / count as f64,
        count as f64 / median
    );
}

fn main() {
    let cells = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(1_000_000);
    for (rows, rows_name) in [(Rows::Binary, "binary rows"), (Rows::Decimal, "decimal rows")] {
        for (order, order_name) in [
            (Order::Sequential, "sequential"),
            (Order::Random, "random"),
            (Order::Batches, "batches"),
            (Order::Overwrites, "overwrites in batches"),
        ] {
            for threads in [1, 2] {
                for at_once in [1, BATCH as usize] {
                    let name = format!("insert {at_once}, {rows_name}, {order_name}, {threads} threads");
                    report(&name, cells, || {
                        drop(filled(order, rows, cells, threads, at_once));
                    });
                }
            }
        }
        let memstore = filled(Order::Random, rows, cells, 1, 1);
        let overhead = memstore.bytes() - memstore.data_bytes();
        println!("{:.1} bytes of overhead per cell", overhead as f64 / cells as f64);
        let mut row = [b'0'; 16];
        report(&format!("step, {rows_name}"), cells, || {
            let mut cursor = memstore.cursor();
            cursor.seek(key(&[0; 16]).as_key()).expect("memory does not fail");
            while let Some(cell) = cursor.cell() {
                black_box(cell);
                cursor.advance().expect("memory does not fail");
            }
        });
        // As a reversed scan does.
        report(&format!("step back, {rows_name}"), cells, || {
            let mut cursor = memstore.cursor();
            cursor.seek_last_row().expect("memory does not fail");
            while let Some(cell) = cursor.cell() {
                row.copy_from_slice(cell.key.row());
                cursor.seek_row_before(&row).expect("memory does not fail");
            }
        });
        // As a flush does.
        let mut block = Vec::new();
        report(&format!("copy, {rows_name}"), cells, || {
            let mut cursor = memstore.cursor();
            cursor.seek(key(&[0; 16]).as_key()).expect("memory does not fail");
            while let Some(cell) = cursor.cell() {
                if block.len() > BLOCK_BYTES {
                    black_box(&block);
                    block.clear();
                }
                block.extend_from_slice(cell.key.bytes());
                block.extend_from_slice(cell.value);
                cursor.advance().expect("memory does not fail");
            }
        });
        let seeks = cells.min(200_000);
        report(&format!("seek, {rows_name}"), seeks, || {
            let mut cursor = memstore.cursor();
            for number in 0..seeks {
                write_row(Order::Random, rows, number * 7919 % cells, &mut row);
                cursor.seek(key(&row).as_key()).expect("memory does not fail");
                black_box(cursor.cell());
            }
        });
    }
}
