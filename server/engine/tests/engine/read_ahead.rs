//! Batches of gets whose blocks are read ahead: the rows are those of single gets, in order, each
//! block is read once, and errors are those of single gets.
//!
//! The table: rows `r000` to `r199` in three files of each of the families `f` and `g`, about 4 rows
//! a block, with a bloom filter.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::cell::CellBatch;
use basalt_engine::fs::sim::{Errno, OpKind, SimFs, SimOptions, Times};
use basalt_engine::op::{Columns, FamilySelection, ReadSpec, ReadTier, Write};
use basalt_engine::options::{Background, Options};
use basalt_engine::{Engine, Error, Result};

use crate::rig::{F, Rig, Shown, apply, descriptor, mutation, name, row, shown};

const ROWS: usize = 200;

type Wanted = Vec<(Vec<u8>, ReadSpec)>;

/// The table on a disk. Family options are changed by `change`.
fn rig_with(disk: &SimFs, option: (&str, &str)) -> Rig {
    let mut rig = Rig::simulated(disk);
    rig.options.compaction_enabled = false;
    let engine = rig.open();
    let mut schema = descriptor("t", &["f", "g"]);
    for family in &mut schema.families {
        let small = family.clone().with("BLOCKSIZE", 1024).unwrap();
        *family = small.with(option.0, option.1).unwrap();
    }
    engine.create_table(schema, vec![row(70)]).unwrap();
    let table = name("t");
    for file in 0..3 {
        for number in (0..ROWS).filter(|number| number % 3 == file || number % 7 == 0) {
            let value = format!("{number}-{file}-{}", "v".repeat(200));
            let write = |family| Write::Put {
                family,
                qualifier: b"q",
                timestamp: Some(5 + file as i64),
                value: value.as_bytes(),
                ttl_ms: None,
            };
            let writes = [write(F), write(b"g")];
            apply(&engine, &table, &[mutation(&row(number), &writes)]).unwrap();
        }
        engine.flush(&table).unwrap();
    }
    engine.close().unwrap();
    rig
}

fn rig(disk: &SimFs) -> Rig {
    rig_with(disk, ("BLOOMFILTER", "ROW"))
}

/// Gets of rows in no order, some of them twice, some of rows that are not there; of all columns or
/// of one.
fn wanted() -> Wanted {
    let numbers = (0..150).map(|index| (index * 37) % (ROWS + 20));
    let of = |number: usize| {
        let one_column = ReadSpec {
            families: vec![FamilySelection {
                family: F.to_vec(),
                columns: Columns::Only(vec![b"q".to_vec()]),
            }],
            ..ReadSpec::default()
        };
        let spec = if number.is_multiple_of(2) {
            ReadSpec::default()
        } else {
            one_column
        };
        (row(number), spec)
    };
    numbers.chain([3, 3, 4]).map(of).collect()
}

/// Runs gets in order and returns the rows, and the error of the first that failed.
fn run(engine: &Engine, wanted: &Wanted, tier: ReadTier) -> (Vec<Vec<Shown>>, Result<()>) {
    let mut rows = Vec::new();
    for (row, spec) in wanted {
        let mut found = CellBatch::new();
        if let Err(error) = engine.get_within(&name("t"), row, spec, tier, &mut found) {
            return (rows, Err(error));
        }
        rows.push(shown(&found));
    }
    (rows, Ok(()))
}

/// Reads ahead for all gets.
fn read_ahead(engine: &Engine, wanted: &Wanted) {
    let mut done = 0;
    while done < wanted.len() {
        let more = engine.read_ahead(&name("t"), &wanted[done..]);
        assert!(more > 0, "no progress");
        done += more;
    }
}

/// Goal: a batch finds the rows that single gets find, reads no block twice and none that they do
/// not read, and leaves the cache as they do. Method: both at an empty cache; with each type of
/// filter; then from memory.
#[test]
fn a_batch_reads_what_single_gets_read() {
    for bloom in ["NONE", "ROW", "ROWCOL"] {
        let rig = rig_with(&SimFs::new(1, SimOptions::default()), ("BLOOMFILTER", bloom));
        let wanted = wanted();
        let engine = rig.open();
        let (expected, result) = run(&engine, &wanted, ReadTier::All);
        result.unwrap();
        let single = engine.cache_usage();
        engine.close().unwrap();
        assert!(single.misses > 60, "{bloom}: {single:?}");

        let engine = rig.open();
        read_ahead(&engine, &wanted);
        let ahead = engine.cache_usage();
        assert_eq!(ahead.misses, single.misses, "{bloom}");
        assert_eq!(engine.counters().blocks_read_ahead.get(), ahead.misses);
        assert_eq!(ahead.hits, [0; 3], "a search is no read");
        let (found, result) = run(&engine, &wanted, ReadTier::Memory);
        result.unwrap();
        assert_eq!(found, expected, "{bloom}");
        let batch = engine.cache_usage();
        assert_eq!(batch, single, "{bloom}");
        read_ahead(&engine, &wanted);
        assert_eq!(engine.cache_usage(), batch, "nothing is missing any more");
        engine.close().unwrap();
    }
}

/// Goal: blocks that cannot be cached cost nothing but time. Method: a cache of nothing, a tiny one,
/// and families that are not cached.
#[test]
fn blocks_that_are_not_kept_are_read_by_the_gets() {
    let disk = SimFs::new(1, SimOptions::default());
    for (cache_bytes, option) in [
        (0, ("BLOOMFILTER", "ROW")),
        (6_000, ("BLOOMFILTER", "ROW")),
        (8 << 20, ("BLOCKCACHE", "false")),
    ] {
        let mut rig = rig_with(&disk.crash_keep_all(), option);
        let (expected, _) = run(&rig.open(), &wanted(), ReadTier::All);
        rig.options.block_cache_bytes = cache_bytes;
        let engine = rig.open();
        read_ahead(&engine, &wanted());
        let (found, result) = run(&engine, &wanted(), ReadTier::All);
        result.unwrap();
        assert_eq!(found, expected);
    }
}

/// The store files of the table.
fn files(disk: &SimFs) -> Vec<PathBuf> {
    let files = disk.files();
    let of_t = |path: &&PathBuf| path.starts_with("/data/tables/default/t/f");
    files.iter().filter(of_t).cloned().collect()
}

/// Goal: damage and failures of the disk are reported by the get that needs the block, as without
/// reading ahead, and counted once. Method: a flipped bit in a file's first data block; a file that
/// cannot be read at all.
#[test]
fn errors_are_those_of_single_gets() {
    for unreadable in [false, true] {
        let disk = SimFs::new(1, SimOptions::default());
        let rig = rig(&disk);
        let file = files(&disk).swap_remove(1);
        if !unreadable {
            disk.flip_bit(&file, 8 * 60).unwrap();
        }
        let mut outcomes = Vec::new();
        for ahead in [false, true] {
            let engine = rig.open();
            let file = file.to_str().unwrap();
            let fault = unreadable.then(|| disk.fail(OpKind::Read, file, Errno::IO, Times::From(0)));
            if ahead {
                read_ahead(&engine, &wanted());
                assert_eq!(engine.counters().damaged_reads.get(), 0);
            }
            let (rows, result) = run(&engine, &wanted(), ReadTier::All);
            let error = result.unwrap_err();
            assert!(error.to_string().contains(file), "{error}");
            let is_damage = matches!(error, Error::Corrupt { .. });
            assert_eq!(is_damage, !unreadable, "{error}");
            let damaged = engine.counters().damaged_reads.get();
            assert_eq!(damaged, u64::from(is_damage));
            outcomes.push((rows, error.to_string()));
            if let Some(fault) = fault {
                disk.heal(fault);
            }
        }
        assert!(!outcomes[0].0.is_empty(), "some gets come before the damage");
        assert_eq!(outcomes[0], outcomes[1]);
    }
}

/// Goal: errors of gets that are no errors of blocks end the search and are left to the gets.
#[test]
fn bad_gets_are_left_to_themselves() {
    let disk = SimFs::new(1, SimOptions::default());
    let engine = rig(&disk).open();
    let mut wanted: Wanted = (0..4).map(|number| (row(number), ReadSpec::default())).collect();
    wanted[2].1.families = vec![FamilySelection {
        family: b"unknown".to_vec(),
        columns: Columns::All,
    }];
    let table = name("t");
    assert_eq!(engine.read_ahead(&table, &wanted), 2);
    assert_eq!(engine.read_ahead(&table, &wanted[2..]), 1);
    assert_eq!(engine.read_ahead(&name("missing"), &wanted), 1);
    assert_eq!(engine.read_ahead::<Vec<u8>>(&table, &[]), 0);
    let (rows, result) = run(&engine, &wanted, ReadTier::All);
    assert_eq!(rows.len(), 2);
    assert!(matches!(result, Err(Error::NoSuchFamily { .. })), "{result:?}");
}

/// An engine with threads on the simulated disk.
fn with_threads(mut rig: Rig) -> Rig {
    rig.options = Options {
        background: Background::Threads,
        max_open_files: usize::MAX,
        ..rig.options
    };
    rig
}

/// Goal: blocks are read at the same time. Method: reads of the disk hang; more than one must have
/// begun before the disk is back.
#[test]
fn blocks_are_read_in_parallel() {
    let disk = SimFs::new(1, SimOptions::default());
    let engine = with_threads(rig_with(&disk, ("BLOOMFILTER", "NONE"))).open();
    let before = disk.op_count();
    disk.hang(OpKind::Read, "/t/");
    std::thread::scope(|scope| {
        scope.spawn(|| read_ahead(&engine, &wanted()));
        let deadline = Instant::now() + Duration::from_secs(20);
        while disk.op_count() < before + 8 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let begun = disk.op_count() - before;
        disk.resume();
        assert!(begun >= 8, "{begun} reads at a time");
    });
    run(&engine, &wanted(), ReadTier::Memory).1.unwrap();
    engine.close().unwrap();
    read_ahead(&engine, &wanted());
}

/// Goal: batches of many callers, while files are compacted and the cache is too small for all of
/// them, find their rows. Method: an engine with threads; each caller's rows against those of a quiet
/// engine.
#[test]
fn callers_share_the_threads() {
    let disk = SimFs::new(1, SimOptions::default());
    let rig = rig(&disk);
    let quiet = rig.open();
    let (expected, _) = run(&quiet, &wanted(), ReadTier::All);
    quiet.close().unwrap();
    let mut rig = with_threads(rig);
    rig.options.block_cache_bytes = 200_000;
    let engine: Arc<Engine> = rig.open();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20 {
                        read_ahead(&engine, &wanted());
                        let (found, result) = run(&engine, &wanted(), ReadTier::All);
                        result.unwrap();
                        assert_eq!(found, expected);
                    }
                })
            })
            .collect();
        engine.compact(&name("t"), None, true, true).unwrap();
        for caller in callers {
            caller.join().unwrap();
        }
    });
    engine.close().unwrap();
    assert_eq!(rig.problems(), Vec::<String>::new());
    let kept: BTreeSet<_> = files(&disk).into_iter().collect();
    assert_eq!(kept.len(), 2, "one file of each region: {kept:?}");
}
