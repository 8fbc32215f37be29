//! Readers of the log: what they read, what is kept for them, and that neither a start nor a crash changes
//! either.

use std::path::PathBuf;
use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::fs::sim::{CrashWhen, SimFs, SimOptions};
use basalt_engine::id::{Origin, SeqId, Uuid};
use basalt_engine::op::{ReplicatedCell, ReplicatedRow};
use basalt_engine::{CellType, Result};

use crate::crash::rig_on;
use crate::rig::{Rig, create, descriptor, name, put, row};

/// The rows from a position on, each with its table, and the position behind them.
fn read(engine: &Arc<Engine>, from: SeqId, bytes_max: u64) -> Result<(Vec<String>, SeqId)> {
    let mut tail = engine.read_log(from)?;
    let mut rows = Vec::new();
    loop {
        let is_end = tail.read(bytes_max, &mut |tailed| {
            let table = tailed.table.as_ref().map_or("?".to_owned(), ToString::to_string);
            let mut last = None;
            for (row, cell) in tailed.edit.cells() {
                if last.replace(row) != Some(row) {
                    rows.push(format!("{table} {}", String::from_utf8_lossy(cell.key.row())));
                }
            }
            Ok(())
        })?;
        if is_end {
            return Ok((rows, tail.position()));
        }
    }
}

fn shown(numbers: std::ops::Range<usize>) -> Vec<String> {
    let rows = numbers.map(|number| format!("t {}", String::from_utf8_lossy(&row(number))));
    rows.collect()
}

fn fill(engine: &Engine, numbers: std::ops::Range<usize>) {
    for number in numbers {
        put(engine, &name("t"), &row(number), &[b'v'; 700]);
    }
}

fn segments(disk: &SimFs, below: &str) -> Vec<PathBuf> {
    let mut files = disk.files();
    files.retain(|path| {
        path.parent()
            .is_some_and(|dir| dir == std::path::Path::new(below))
    });
    files.retain(|path| path.extension().is_some_and(|end| end == "wal"));
    files
}

/// Goal: a reader gets every row from its position on in order, whatever became of memstores, segments and
/// regions, and after a start; segments that a start does not need are set aside, and go with the position.
#[test]
fn a_reader_gets_the_whole_log_from_its_position_on() {
    let disk = SimFs::new(1, SimOptions::default());
    let rig = rig_on(&disk);
    let engine = rig.open();
    let table = create(&engine);
    fill(&engine, 0..10);
    let start = engine.add_log_reader("r", b"a note").unwrap();
    fill(&engine, 10..40);
    let region = engine.regions(&table).unwrap()[0].id;
    engine.split_region(region, Some(&row(20))).unwrap();
    fill(&engine, 40..60);
    engine.flush(&table).unwrap();
    fill(&engine, 60..70);
    engine.flush(&table).unwrap();
    for bytes_max in [1, 3000, 1 << 20] {
        assert_eq!(
            read(&engine, start, bytes_max).unwrap().0,
            shown(10..70),
            "{bytes_max}"
        );
    }
    assert!(segments(&disk, "/data/wal/kept").len() > 5);
    assert!(segments(&disk, "/data/wal").len() <= 3, "a start reads no more");
    assert!(engine.log_bytes_from(start).unwrap() > 50 * 700);

    drop(engine);
    let engine = rig.open();
    let readers = engine.log_readers();
    assert_eq!(
        (readers[0].position, &readers[0].note[..]),
        (start, &b"a note"[..])
    );
    assert_eq!(read(&engine, start, 1 << 20).unwrap().0, shown(10..70));
    fill(&engine, 70..75);
    engine.disable_table(&table).unwrap();
    engine.drop_table(&table).unwrap();
    drop(engine);
    let engine = rig.open();
    let (rows, next) = read(&engine, start, 1 << 20).unwrap();
    assert_eq!(
        rows,
        shown(10..75),
        "the tables of regions that are gone are known"
    );

    engine.advance_log_reader("r", next).unwrap();
    assert_eq!(segments(&disk, "/data/wal/kept"), Vec::<PathBuf>::new());
    assert_eq!(engine.log_readers()[0].position, next);
    let error = read(&engine, start, 1 << 20).unwrap_err().to_string();
    assert!(
        error.contains(&format!("position {start} is before that")),
        "{error}"
    );
    assert_eq!(read(&engine, next, 1).unwrap(), (Vec::new(), next));
}

/// Goal: nothing is kept without readers, and a removed reader releases what was kept for it.
#[test]
fn without_readers_nothing_is_kept() {
    let disk = SimFs::new(1, SimOptions::default());
    let engine = rig_on(&disk).open();
    let table = create(&engine);
    engine.add_log_reader("slow", b"").unwrap();
    let error = engine.add_log_reader("slow", b"").unwrap_err().to_string();
    assert!(error.contains("slow"), "{error}");
    let fast = engine.add_log_reader("fast", b"").unwrap();
    fill(&engine, 0..60);
    engine.flush(&table).unwrap();
    let (_, end) = read(&engine, fast, 1 << 20).unwrap();
    engine.advance_log_reader("fast", end).unwrap();
    let kept = segments(&disk, "/data/wal/kept").len();
    assert!(kept > 5, "{kept} for the slow one");
    assert!(engine.remove_log_reader("slow").unwrap());
    assert!(!engine.remove_log_reader("slow").unwrap());
    assert_eq!(segments(&disk, "/data/wal/kept").len(), 0);
    assert!(engine.remove_log_reader("fast").unwrap());
    fill(&engine, 0..60);
    engine.flush(&table).unwrap();
    assert_eq!(segments(&disk, "/data/wal/kept").len(), 0);
    assert!(engine.advance_log_reader("fast", end).is_err());
}

/// Goal: a reader sees the clusters that an edit has passed, and only what is visible.
#[test]
fn a_reader_gets_origin_and_time() {
    let (_, _, engine) = Rig::open_simulated();
    let table = create(&engine);
    let start = engine.add_log_reader("r", b"").unwrap();
    let cell = ReplicatedCell {
        family: b"f",
        qualifier: b"q",
        timestamp: 5,
        cell_type: CellType::Put,
        value: b"v",
        tags: b"",
    };
    let rows = [ReplicatedRow {
        row: b"a",
        cells: vec![cell],
    }];
    let origin = Origin::new(vec![Uuid([7; 16])]).unwrap();
    engine
        .apply_replicated(&table, &rows, &origin)
        .unwrap()
        .wait()
        .unwrap();
    let mut tail = engine.read_log(start).unwrap();
    assert!(tail.has_news());
    let mut seen = Vec::new();
    tail.read(1 << 20, &mut |tailed| {
        let clusters: Vec<_> = tailed.edit.origin().clusters().collect();
        seen.push((clusters, tailed.edit.write_time_ms(), tailed.edit.first_seq()));
        Ok(())
    })
    .unwrap();
    let expected = (vec![Uuid([7; 16])], Some(1_700_000_000_000), start);
    assert_eq!(seen, [expected]);
    assert!(!tail.has_news());
}

/// The answers that the workload of crashes has got.
#[derive(Default)]
struct Told {
    added: bool,
    /// Rows that were acknowledged since the reader was added, and the one on its way.
    rows: Vec<String>,
    pending: Option<String>,
    /// How many of them the last move of the position has passed, whether it was acknowledged or not.
    passed: usize,
}

fn work(rig: &Rig, told: &mut Told) -> Result<()> {
    let engine = rig.try_open()?;
    engine.create_table(descriptor("t", &["f"]), Vec::new())?;
    engine.create_table(descriptor("u", &["f"]), Vec::new())?;
    engine.add_log_reader("r", b"")?;
    told.added = true;
    let write = |told: &mut Told, table: &str, number: usize| -> Result<()> {
        let key = row(number);
        let shown = format!("{table} {}", String::from_utf8_lossy(&key));
        told.pending = Some(shown.clone());
        let writes = [crate::rig::value(b"q", &[b'v'; 900])];
        crate::rig::apply(&engine, &name(table), &[crate::rig::mutation(&key, &writes)])?;
        told.pending = None;
        told.rows.push(shown);
        Ok(())
    };
    for number in 0..8 {
        write(told, "t", number)?;
        write(told, "u", number)?;
    }
    engine.flush(&name("t"))?;
    engine.flush(&name("u"))?;
    let region = engine.regions(&name("t"))?[0].id;
    engine.split_region(region, Some(&row(4)))?;
    let position = read(&engine, engine.log_readers()[0].position, 1 << 20)?.1;
    for number in 8..12 {
        write(told, "t", number)?;
    }
    told.passed = 16;
    engine.advance_log_reader("r", position)?;
    engine.disable_table(&name("u"))?;
    engine.drop_table(&name("u"))?;
    engine.flush(&name("t"))?;
    for number in 12..16 {
        write(told, "t", number)?;
    }
    engine.close()
}

fn verify(rig: &Rig, told: &Told, context: &str) {
    let engine = rig
        .try_open()
        .unwrap_or_else(|error| panic!("{context}: cannot be opened: {error}"));
    let readers = engine.log_readers();
    let Some(reader) = readers.first() else {
        assert!(!told.added, "{context}: the reader is lost");
        return;
    };
    let (rows, _) =
        read(&engine, reader.position, 1 << 20).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut all = told.rows.clone();
    let acknowledged = all.len();
    all.extend(told.pending.clone());
    let is_right = (0..=told.passed.min(acknowledged))
        .any(|first| rows == all[first..acknowledged] || rows == all[first..]);
    assert!(
        is_right,
        "{context}: read {rows:?}, acknowledged {all:?}, passed {}",
        told.passed
    );
}

fn crash_everywhere(options: &SimOptions, when: CrashWhen, stride: usize, damage_seeds: u64) {
    let disk = SimFs::new(1, *options);
    work(&rig_on(&disk), &mut Told::default()).unwrap();
    let calls = disk.op_count();
    for at in (0..calls).step_by(stride) {
        let disk = SimFs::new(1, *options);
        disk.crash_at_op(at, when);
        let mut told = Told::default();
        let result = work(&rig_on(&disk), &mut told);
        assert!(
            result.is_err() || disk.is_dead(),
            "the process dies at call {at} of {calls}"
        );
        let context = format!("kill at call {at} ({when:?})");
        verify(&rig_on(&disk.crash_keep_all()), &told, &context);
        for seed in 0..damage_seeds {
            let context = format!("power cut at call {at} ({when:?}), damage {seed}");
            verify(&rig_on(&disk.crash(seed)), &told, &context);
        }
    }
}

/// Goal: a crash anywhere takes no row from a reader that is behind its position, and not the reader.
#[test]
fn a_crash_takes_nothing_from_a_reader() {
    crash_everywhere(&SimOptions::default(), CrashWhen::Before, 1, 2);
    crash_everywhere(&SimOptions::ext4(), CrashWhen::After, 3, 2);
}
