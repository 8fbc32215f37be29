//! A database of many store files in a process with few file descriptors.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::cell::CellBatch;
use basalt_engine::engine::{Scanner, check};
use basalt_engine::fs::sim::{Errno, OpKind, SimFs, SimOptions, Times};
use basalt_engine::op::{FetchLimits, Get, ReadSpec, Scan};
use basalt_engine::schema::{FamilyDescriptor, TableName};

use crate::rig::{F, Rig, Shown, create, drain, get, name, put, row, rows, scan, shown};

/// Descriptors that store files may use.
const HANDLES: usize = 2;

/// Descriptors of everything else in an engine without threads: the lock, the manifest and its
/// successor, the log's segment and the next one, a directory being synced.
const OTHERS: usize = 6;

const FILES: usize = 30;

/// A disk that allows [`HANDLES`] and [`OTHERS`] descriptors, and a rig whose engine may use
/// [`HANDLES`] for store files.
fn few_descriptors() -> (SimFs, Rig) {
    let disk = SimFs::new(1, SimOptions::default());
    disk.limit_descriptors(Some(HANDLES + OTHERS));
    let mut rig = Rig::simulated(&disk);
    rig.options.max_open_files = HANDLES;
    rig.options.compaction_enabled = false;
    // Without a block cache, every read goes to the disk.
    rig.options.block_cache_bytes = 0;
    (disk, rig)
}

/// Table `t` with many files: row `n` is in file `n` and in no other.
fn fill(engine: &Engine) -> TableName {
    let table = create(engine);
    for number in 0..FILES {
        put(engine, &table, &row(number), b"v");
        engine.flush(&table).unwrap();
    }
    table
}

fn fetch(scanner: &mut Scanner, results: usize) -> Vec<Shown> {
    let mut out = CellBatch::new();
    let limits = FetchLimits {
        results,
        bytes: 1 << 20,
        time: Duration::from_secs(10),
    };
    scanner.fetch(&limits, &mut out).unwrap();
    shown(&out)
}

/// Goal: writes, reads, compactions and a start work with any number of store files. Method: more
/// than three times the number of descriptors that the process may have, in files, and every
/// operation that opens files.
#[test]
fn a_database_of_many_files_lives_with_few_descriptors() {
    let (disk, rig) = few_descriptors();
    let engine = rig.open();
    let table = fill(&engine);
    let expected = rows(&engine, &table);
    assert_eq!(expected.len(), FILES);
    assert_eq!(engine.handle_usage().open, HANDLES);
    engine.close().unwrap();
    drop(engine);
    assert_eq!(disk.descriptors(), 0);

    let engine = rig.open();
    assert_eq!(rows(&engine, &table), expected);
    for number in (0..FILES).rev() {
        assert_eq!(get(&engine, &table, &row(number)), Some(b"v".to_vec()));
    }
    engine.snapshot(&table, "s", true, 0).unwrap();
    engine.clone_snapshot("s", &name("c")).unwrap();
    engine.compact(&table, None, true, true).unwrap();
    let region = engine.table_region_stats(&name("c")).unwrap()[0].region.id;
    engine.split_region(region, Some(&row(11))).unwrap();
    engine.compact(&name("c"), None, true, true).unwrap();
    for table in [&table, &name("c")] {
        assert_eq!(rows(&engine, table), expected);
    }
    engine.close().unwrap();
    drop(engine);
    assert!(disk.take_most_descriptors() <= HANDLES + OTHERS);

    let mut problems = Vec::new();
    let summary = check(&rig.vfs, &rig.dir, &mut |line| problems.push(line)).unwrap();
    assert!(summary.is_sound() && summary.orphans == 0, "{problems:?}");
}

/// Goal: a scan returns the rows that the table had when the scan began, although its files were
/// dropped meanwhile and must be opened again. Method: each way in which a table loses files, while
/// a scan is in the first of them. Each read opens its file by name.
#[test]
fn files_that_are_read_keep_their_names() {
    type Loss = fn(&Engine, &TableName);
    let losses: [(&str, Loss); 5] = [
        ("compaction", |engine, table| {
            engine.compact(table, None, true, true).unwrap();
        }),
        ("drop of the family", |engine, table| {
            engine.add_family(table, FamilyDescriptor::new(b"g")).unwrap();
            engine.drop_family(table, F).unwrap();
        }),
        ("drop of the table", |engine, table| {
            engine.disable_table(table).unwrap();
            engine.drop_table(table).unwrap();
        }),
        ("truncation", |engine, table| {
            engine.disable_table(table).unwrap();
            engine.truncate_table(table, false).unwrap();
        }),
        ("restore of a snapshot", |engine, table| {
            engine.snapshot(table, "s", true, 0).unwrap();
            engine.disable_table(table).unwrap();
            engine.restore_snapshot("s").unwrap();
        }),
    ];
    for (loss, lose) in losses {
        let (disk, rig) = few_descriptors();
        let engine = rig.open();
        let table = fill(&engine);
        let expected = scan(&engine, &table, Scan::default());
        let mut scanner = engine.scan(&table, Scan::default()).unwrap();
        let mut seen = fetch(&mut scanner, 3);
        lose(&engine, &table);
        seen.extend(drain(&mut scanner));
        assert_eq!(seen, expected, "{loss}");
        drop(scanner);
        let left = disk.files();
        let left = left
            .iter()
            .filter(|path| path.starts_with("/data/tables/default/t/f"));
        let expected = match loss {
            "restore of a snapshot" => FILES,
            "compaction" => 1,
            _ => 0,
        };
        assert_eq!(left.count(), expected, "{loss}: files go with their last reader");
    }
}

/// Goal: a file that cannot be opened again fails only the read that needs it, with an error that
/// names the file.
#[test]
fn a_file_that_cannot_be_opened_again_fails_one_read() {
    let (disk, rig) = few_descriptors();
    let engine = rig.open();
    let table = fill(&engine);
    for errno in [Errno::MFILE, Errno::IO] {
        // Reads of other files close the file of row 0.
        for number in 5..15 {
            get(&engine, &table, &row(number));
        }
        let fault = disk.fail(OpKind::Open, "/tables/default/t/f/", errno, Times::Once);
        let wanted = row(0);
        let request = Get {
            row: &wanted,
            spec: ReadSpec::default(),
        };
        let error = engine.get(&table, &request, &mut CellBatch::new()).unwrap_err();
        let struck = disk.struck(fault);
        assert!(
            error.to_string().contains(&struck[0].1.display().to_string()),
            "{error}"
        );
        assert_eq!(get(&engine, &table, &wanted), Some(b"v".to_vec()));
        put(&engine, &table, b"after", b"v");
        engine.flush(&table).unwrap();
    }
}

/// Goal: with direct reads a file uses two descriptors, and both count against the limit.
#[test]
fn both_handles_of_direct_reads_count() {
    let (disk, mut rig) = few_descriptors();
    rig.options.direct_reads = true;
    let engine = rig.open();
    let table = fill(&engine);
    let reads = |engine: &Arc<Engine>| {
        let before = engine.handle_usage().opens;
        assert_eq!(rows(engine, &table).len(), FILES);
        assert_eq!(get(engine, &table, &row(7)), Some(b"v".to_vec()));
        engine.handle_usage().opens - before
    };
    assert!(reads(&engine) >= FILES as u64);
    assert_eq!(engine.handle_usage().open, HANDLES);
    assert!(disk.take_most_descriptors() <= HANDLES + OTHERS);
}
