//! Many threads at once, on the operating system's files with the engine's own threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use basalt_engine::Error;
use basalt_engine::cell::CellBatch;
use basalt_engine::op::{Check, ColumnIncrement, CompareOp, ReadTier, RowUpdate, Scan};

use crate::rig::{F, Rig, apply, create, get, mutation, put, row, rows, scan, update_in, value};

#[test]
fn increments_of_eight_threads_sum_exactly() {
    const THREADS: i64 = 8;
    const EACH: i64 = 50;
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    let table = create(&engine);
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut out = CellBatch::new();
                for round in 0..EACH {
                    let update = RowUpdate::Increment(vec![ColumnIncrement {
                        family: F,
                        qualifier: b"q",
                        amount: 1,
                        timestamp: None,
                    }]);
                    out.clear();
                    // As the server does: without waiting for the others, and only then with.
                    let mut update = |tier| update_in(&engine, tier, &table, b"counter", &update, &mut out);
                    let commit = match update(ReadTier::Memory) {
                        Err(Error::NotInMemory) => update(ReadTier::All),
                        done => done,
                    };
                    commit.unwrap().wait().unwrap();
                    // Every value is returned exactly once, so their sum is known.
                    let bytes = out.row(0).cells().next().unwrap().value.to_vec();
                    seen.fetch_add(u64::from_be_bytes(bytes.try_into().unwrap()), Ordering::Relaxed);
                    if round == EACH / 2 {
                        engine.flush(&table).unwrap();
                    }
                }
            });
        }
    });
    let total = THREADS * EACH;
    assert_eq!(
        get(&engine, &table, b"counter"),
        Some(total.to_be_bytes().to_vec())
    );
    assert_eq!(seen.load(Ordering::Relaxed), (total * (total + 1) / 2) as u64);
    drop(engine);
    assert_eq!(
        get(&rig.open(), &table, b"counter"),
        Some(total.to_be_bytes().to_vec())
    );
}

/// A chain of compare-and-sets from several threads: each link is won by exactly one.
#[test]
fn checked_mutations_are_linear() {
    const LINKS: u32 = 100;
    let dir = tempfile::tempdir().unwrap();
    let engine = Rig::on_disk(&dir).open();
    let table = create(&engine);
    put(&engine, &table, b"link", b"0");
    let wins = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let now: u32 = String::from_utf8(get(&engine, &table, b"link").unwrap())
                        .unwrap()
                        .parse()
                        .unwrap();
                    if now == LINKS {
                        return;
                    }
                    let (old, new) = (now.to_string(), (now + 1).to_string());
                    let check = Check {
                        family: F,
                        qualifier: b"q",
                        op: CompareOp::Equal,
                        value: Some(old.as_bytes()),
                    };
                    let next = mutation(b"link", &[value(b"q", new.as_bytes())]);
                    if let Some(commit) = engine.check_and_mutate(&table, &check, &next).unwrap() {
                        commit.wait().unwrap();
                        wins.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(wins.load(Ordering::Relaxed), u64::from(LINKS));
}

/// While writers write, regions are split, merged, flushed and compacted. No acknowledged row is ever missing
/// from a scan or seen twice, and no row is torn.
#[test]
fn rows_are_seen_once_while_regions_change() {
    const ROWS: usize = 400;
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(&dir);
    let engine = rig.open();
    let table = create(&engine);
    let done: Vec<AtomicBool> = (0..ROWS).map(|_| AtomicBool::new(false)).collect();
    let writing = AtomicU64::new(2);
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (engine, table, done, writing) = (&engine, &table, &done, &writing);
            scope.spawn(move || {
                for number in (half..ROWS).step_by(2) {
                    let writes = [value(b"p", b"same"), value(b"q", b"same")];
                    apply(engine, table, &[mutation(&row(number), &writes)]).unwrap();
                    done[number].store(true, Ordering::SeqCst);
                }
                writing.fetch_sub(1, Ordering::SeqCst);
            });
        }
        scope.spawn(|| {
            let mut round = 0;
            while writing.load(Ordering::SeqCst) > 0 || round < 4 {
                round += 1;
                let at = row(round * 37 % ROWS);
                let region = engine.region_of(&table, &at).unwrap();
                if region.start != at {
                    engine.split_region(region.id, Some(&at)).unwrap();
                }
                engine.flush(&table).unwrap();
                if round % 2 == 0 {
                    let ids: Vec<_> = engine
                        .regions(&table)
                        .unwrap()
                        .into_iter()
                        .map(|region| region.id)
                        .collect();
                    engine.merge_regions(&ids).unwrap();
                }
            }
        });
        while writing.load(Ordering::SeqCst) > 0 {
            let acknowledged: Vec<usize> = (0..ROWS)
                .filter(|number| done[*number].load(Ordering::SeqCst))
                .collect();
            let mut seen = std::collections::BTreeMap::new();
            for cell in scan(&engine, &table, Scan::default()) {
                *seen.entry(cell.row).or_insert(0) += 1;
            }
            assert!(
                seen.values().all(|cells| *cells == 2),
                "a row is torn or doubled: {seen:?}"
            );
            for number in acknowledged {
                assert!(
                    seen.contains_key(std::str::from_utf8(&row(number)).unwrap()),
                    "row {number} is missing"
                );
            }
        }
    });
    assert_eq!(scan(&engine, &table, Scan::default()).len(), 2 * ROWS);
    engine.close().unwrap();
    drop(engine);
    assert_eq!(scan(&rig.open(), &table, Scan::default()).len(), 2 * ROWS);
}

/// Batches over all regions from several threads, in opposite order, do not stop each other for ever.
#[test]
fn batches_over_many_regions_do_not_deadlock() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Rig::on_disk(&dir).open();
    let splits = (1..8).map(|number| row(number * 10)).collect();
    engine
        .create_table(crate::rig::descriptor("t", &["f"]), splits)
        .unwrap();
    let table = crate::rig::name("t");
    let keys: Vec<Vec<u8>> = (0..80).map(row).collect();
    std::thread::scope(|scope| {
        for backwards in [false, true, false, true] {
            let (engine, table, keys) = (&engine, &table, &keys);
            scope.spawn(move || {
                let mut batch: Vec<_> = keys
                    .iter()
                    .map(|key| mutation(key, &[value(b"q", b"v")]))
                    .collect();
                if backwards {
                    batch.reverse();
                }
                for _ in 0..10 {
                    apply(engine, table, &batch).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..5 {
                engine.flush(&table).unwrap();
            }
        });
    });
    assert_eq!(rows(&engine, &table).len(), 80);
    assert_eq!(
        engine
            .region_stats()
            .iter()
            .map(|stats| stats.writes)
            .sum::<u64>(),
        4 * 10 * 80
    );
}
