//! Crashes at every call of the file system: whatever the disk forgets, no acknowledged write is lost and no
//! row is torn.
//!
//! One small workload (puts of two families, deletes, an increment, flush, compaction, split,
//! merge, alter) is run once to count its calls. Then it is run again for each call, dies there,
//! and the database is opened from the surviving disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::cell::CellBatch;
use basalt_engine::engine::check;
use basalt_engine::fs::Vfs;
use basalt_engine::fs::sim::{CrashWhen, SimFs, SimOptions};
use basalt_engine::op::{ColumnIncrement, RowUpdate, Scan, Write};
use basalt_engine::schema::{Durability, FamilyDescriptor};

use crate::rig::{Rig, apply, descriptor, mutation, name, row, scan};

/// Expected content of a row: the value in both families; `None`: nothing.
pub(crate) type Model = BTreeMap<Vec<u8>, Option<String>>;

/// The acknowledgements that the workload has received.
#[derive(Default)]
pub(crate) struct Told {
    /// Acknowledged state of every row.
    pub(crate) rows: Model,
    /// The row whose write was in flight when the process died, with its value after that write.
    pub(crate) pending: Option<(Vec<u8>, Option<String>)>,
    /// The counter's acknowledged value.
    pub(crate) counter: i64,
    /// The table was created.
    pub(crate) created: bool,
}

/// Runs the workload until it is through or something fails, which can only be the crash.
fn work(rig: &Rig, told: &mut Told) -> basalt_engine::Result<()> {
    let engine = rig.try_open()?;
    engine.create_table(descriptor("t", &["f", "g"]), Vec::new())?;
    told.created = true;
    let table = name("t");
    for round in 0..3 {
        for number in 0..4 {
            write(&engine, told, &row(number), Some(format!("{round}-{number}")))?;
        }
        increment(&engine, told)?;
        engine.flush(&table)?;
    }
    write(&engine, told, &row(2), None)?;
    engine.compact(&table, None, true, true)?;
    let region = engine.regions(&table)?[0].id;
    let (left, right) = engine.split_region(region, Some(&row(2)))?;
    write(&engine, told, &row(1), Some("after the split".into()))?;
    write(&engine, told, &row(3), Some("after the split".into()))?;
    engine.run_pending()?;
    engine.merge_regions(&[left.id, right.id])?;
    write(&engine, told, &row(0), Some("after the merge".into()))?;
    engine.add_family(&table, FamilyDescriptor::new(b"h"))?;
    write(&engine, told, &row(5), Some("at the end".into()))?;
    engine.close()
}

/// Writes a value into both families of a row, or deletes the row.
pub(crate) fn write(
    engine: &Engine,
    told: &mut Told,
    key: &[u8],
    value: Option<String>,
) -> basalt_engine::Result<()> {
    told.pending = Some((key.to_vec(), value.clone()));
    let bytes = value.clone().unwrap_or_default();
    let put = |family| Write::Put {
        family,
        qualifier: b"q",
        timestamp: None,
        value: bytes.as_bytes(),
        ttl_ms: None,
    };
    let writes = match value {
        Some(_) => vec![put(b"f"), put(b"g")],
        None => vec![Write::DeleteRow { timestamp: None }],
    };
    apply(engine, &name("t"), &[mutation(key, &writes)])?;
    told.pending = None;
    told.rows.insert(key.to_vec(), value);
    Ok(())
}

pub(crate) fn increment(engine: &Engine, told: &mut Told) -> basalt_engine::Result<()> {
    let update = RowUpdate::Increment(vec![ColumnIncrement {
        family: b"f",
        qualifier: b"n",
        amount: 1,
        timestamp: None,
    }]);
    let mut out = CellBatch::new();
    engine
        .update(
            &name("t"),
            b"counter",
            &update,
            None,
            Durability::UseDefault,
            &mut out,
        )?
        .wait()?;
    told.counter += 1;
    Ok(())
}

/// Opens the disk and compares. `context` is for the message.
pub(crate) fn verify(rig: &Rig, told: &Told, context: &str) {
    let engine = rig
        .try_open()
        .unwrap_or_else(|error| panic!("{context}: cannot be opened: {error}"));
    let table = name("t");
    if engine.describe_table(&table).is_err() {
        assert!(!told.created, "{context}: the table is lost");
        return;
    }
    let mut found: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    let mut counter = 0;
    for cell in scan(&engine, &table, Scan::default()) {
        if cell.row == "counter" {
            counter = i64::from(cell.value.as_bytes()[7]);
        } else {
            found.entry(cell.row.into_bytes()).or_default().push(cell.value);
        }
    }
    let on_the_way = told.counter + 1;
    assert!(
        [told.counter, on_the_way].contains(&counter),
        "{context}: counter {counter}, told {}",
        told.counter
    );
    let keys: std::collections::BTreeSet<_> = found.keys().chain(told.rows.keys()).cloned().collect();
    for key in keys {
        let values = found.get(&key).cloned().unwrap_or_default();
        let shown = String::from_utf8_lossy(&key).into_owned();
        assert!(
            matches!(values.len(), 0 | 2),
            "{context}: row {shown} is torn: {values:?}"
        );
        assert!(
            values.windows(2).all(|pair| pair[0] == pair[1]),
            "{context}: row {shown} is torn: {values:?}"
        );
        let value = values.first().cloned();
        let acknowledged = told.rows.get(&key).cloned().flatten();
        let pending = told
            .pending
            .as_ref()
            .filter(|pending| pending.0 == key)
            .map(|pending| pending.1.clone());
        assert!(
            value == acknowledged || pending == Some(value.clone()),
            "{context}: row {shown} is {value:?}, acknowledged {acknowledged:?}, on its way {pending:?}"
        );
    }
    // It must also go on working, and be sound.
    let mut again = Told::default();
    write(&engine, &mut again, b"later", Some("v".into()))
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    engine
        .flush(&table)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    drop(engine);
    let mut problems = Vec::new();
    let summary = check(&rig.vfs, &rig.dir, &mut |line| problems.push(line)).unwrap();
    assert_eq!(summary.problems, 0, "{context}: {problems:?}");
}

pub(crate) fn rig_on(disk: &SimFs) -> Rig {
    let mut rig = Rig::simulated(disk);
    // Time stands still, so only the sequence id distinguishes the newest of two writes in a row.
    rig.options.wal_segment_bytes = 4 << 10;
    rig.options.compaction_min_files = 10;
    rig
}

fn crash_everywhere(options: &SimOptions, when: CrashWhen, stride: u64, damage_seeds: u64) {
    let disk = SimFs::new(1, *options);
    work(&rig_on(&disk), &mut Told::default()).unwrap();
    let calls = disk.op_count();
    assert!(calls > 200, "the workload makes {calls} calls");
    for at in (0..calls).step_by(stride as usize) {
        let disk = SimFs::new(1, *options);
        disk.crash_at_op(at, when);
        let mut told = Told::default();
        let result = work(&rig_on(&disk), &mut told);
        assert!(
            result.is_err() || disk.is_dead(),
            "the process dies at call {at} of {calls}"
        );
        verify(
            &rig_on(&disk.crash_keep_all()),
            &told,
            &format!("kill at call {at} ({when:?})"),
        );
        for seed in 0..damage_seeds {
            let context = format!("power cut at call {at} ({when:?}), damage {seed}");
            verify(&rig_on(&disk.crash(seed)), &told, &context);
        }
    }
}

#[test]
fn a_crash_before_any_call_loses_nothing() {
    crash_everywhere(&SimOptions::default(), CrashWhen::Before, 1, 3);
}

#[test]
fn a_crash_after_any_call_loses_nothing() {
    crash_everywhere(&SimOptions::ext4(), CrashWhen::After, 3, 3);
}

/// A crash while the database is being recovered from a crash.
#[test]
fn a_crash_during_recovery_loses_nothing() {
    let first = SimFs::new(7, SimOptions::default());
    let mut told = Told::default();
    work(&rig_on(&first), &mut told).unwrap();
    let total = first.op_count();
    for cut in [total / 3, total / 2, total - 5] {
        let disk = SimFs::new(7, SimOptions::default());
        disk.crash_at_op(cut, CrashWhen::Before);
        let mut told = Told::default();
        let _ = work(&rig_on(&disk), &mut told);
        let survivor = disk.crash(1);
        drop(rig_on(&survivor.clone()).try_open());
        let calls = survivor.op_count();
        for at in 0..calls {
            let again = disk.crash(1);
            again.crash_at_op(at, CrashWhen::Before);
            drop(rig_on(&again).try_open());
            verify(
                &rig_on(&again.crash(at)),
                &told,
                &format!("cut at {cut}, then at call {at} of recovery"),
            );
        }
    }
}

/// The disk fails a sync of the log: the write is not acknowledged, nothing more is accepted, and a
/// restart serves all acknowledged writes.
#[test]
fn a_failed_log_sync_stops_the_engine() {
    use basalt_engine::Error;
    use basalt_engine::fs::sim::{Errno, OpKind, Times};
    let disk = SimFs::new(9, SimOptions::default());
    let rig = rig_on(&disk);
    let engine = rig.open();
    engine
        .create_table(descriptor("t", &["f", "g"]), Vec::new())
        .unwrap();
    let mut told = Told {
        created: true,
        ..Told::default()
    };
    write(&engine, &mut told, &row(1), Some("acknowledged".into())).unwrap();
    disk.fail(OpKind::Sync, "wal", Errno::IO, Times::Once);
    assert!(write(&engine, &mut told, &row(2), Some("lost".into())).is_err());
    let pending = told.pending.take();
    let refused = write(&engine, &mut told, &row(3), Some("refused".into())).unwrap_err();
    assert!(matches!(refused, Error::Poisoned(_)), "{refused}");
    told.pending = pending;
    drop(engine);
    verify(&rig_on(&disk.crash(3)), &told, "after a failed sync");
    let vfs: Arc<dyn Vfs> = Arc::new(disk);
    drop(vfs);
}
