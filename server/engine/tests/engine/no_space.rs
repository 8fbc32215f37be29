//! ENOSPC and EDQUOT at every call that a full disk may fail, once and from there on.
//!
//! A call either fails without any effect, and works when there is space again; or it leaves the log's or the
//! manifest's tail unknown, and then the process ends as it does after a failed sync, with nothing lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_engine::clock::ManualClock;
use basalt_engine::fs::sim::{Errno, FaultId, OpKind, Ops, SimFs, SimOptions, Times};
use basalt_engine::metrics::EventListener;
use basalt_engine::op::Scan;
use basalt_engine::{Engine, Error, Kind, Result};

use crate::crash::{Told, increment, rig_on, verify, write};
use crate::rig::{Rig, descriptor, name, row, scan};

/// Ticks within which it must have recovered: the log asks for space every tenth.
pub(crate) const TICKS: usize = 20;

/// Whether the process has ended: on the first fatal error.
#[derive(Debug, Default)]
struct End(AtomicBool);

impl End {
    fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl EventListener for End {
    fn background_error(&self, _during: &'static str, error: &Error) {
        if error.kind() == Kind::Fatal {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// How a client sees the workload go.
struct Run {
    rig: Rig,
    clock: Arc<ManualClock>,
    disk: SimFs,
    fault: FaultId,
    told: Told,
    /// The disk has space again.
    healed: bool,
    end: Arc<End>,
}

impl Run {
    fn new(errno: Errno, times: Times) -> Self {
        let disk = SimFs::new(1, SimOptions::default());
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let mut rig = rig_on(&disk);
        rig.clock = clock.clone();
        rig.options.compaction_min_files = 2;
        let fault = disk.fail(Ops::Changes, "", errno, times);
        let end = Arc::new(End::default());
        rig.listener = end.clone();
        Self {
            rig,
            clock,
            disk,
            fault,
            told: Told::default(),
            healed: false,
            end,
        }
    }

    /// One step. A refused step had no effect; after a fatal error the process has ended.
    fn step<T>(&mut self, act: impl FnOnce(&mut Told) -> Result<T>) -> Option<T> {
        if self.end.has_come() {
            return None;
        }
        match act(&mut self.told) {
            Ok(done) => Some(done),
            Err(error) if error.kind() == Kind::Fatal => {
                self.end.0.store(true, Ordering::Relaxed);
                None
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!self.healed, "there is space, and yet: {text}");
                assert!(
                    matches!(error, Error::DiskSpace(_) | Error::Io { .. }),
                    "a full disk is not a reason for {text}"
                );
                assert!(
                    text.contains("os error") || text.contains("bytes"),
                    "{text} names no number"
                );
                self.told.pending = None;
                None
            }
        }
    }

    /// Everything acknowledged can be read, whatever the disk says to writes.
    fn check_reads(&self, engine: &Engine) {
        if !self.told.created || self.end.has_come() {
            return;
        }
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for cell in scan(engine, &name("t"), Scan::default()) {
            found.entry(cell.row).or_default().push(cell.value);
        }
        found.remove("counter");
        let told = self.told.rows.iter().filter_map(|(row, value)| {
            let value = value.clone()?;
            Some((
                String::from_utf8_lossy(row).into_owned(),
                vec![value.clone(), value],
            ))
        });
        assert_eq!(found, told.collect::<BTreeMap<_, _>>());
    }

    /// The workload, as far as it gets.
    fn work(&mut self) -> Option<Arc<Engine>> {
        let rig = self.rig.clone();
        let engine = self.step(|_| rig.try_open())?;
        let table = name("t");
        self.step(|told| {
            engine.create_table(descriptor("t", &["f", "g"]), Vec::new())?;
            told.created = true;
            Ok(())
        });
        if !self.told.created {
            return Some(engine);
        }
        for round in 0..3 {
            for number in 0..4 {
                self.step(|told| write(&engine, told, &row(number), Some(format!("{round}-{number}"))));
            }
            self.step(|told| increment(&engine, told));
            self.step(|_| engine.flush(&table));
            self.step(|_| engine.run_pending());
            self.check_reads(&engine);
        }
        self.step(|told| write(&engine, told, &row(2), None));
        self.step(|_| engine.compact(&table, None, true, true));
        let region = engine.regions(&table).unwrap()[0].id;
        let halves = self.step(|_| engine.split_region(region, Some(&row(2))));
        self.step(|told| write(&engine, told, &row(3), Some("after the split".into())));
        self.step(|_| engine.run_pending());
        if let Some((left, right)) = halves {
            self.step(|_| engine.merge_regions(&[left.id, right.id]));
        }
        self.step(|told| write(&engine, told, &row(0), Some("at the end".into())));
        self.check_reads(&engine);
        Some(engine)
    }

    /// The disk has space again: without a restart everything works, unless the manifest has been waiting to
    /// say that its tail is unknown.
    fn recover(&mut self, engine: &Engine) {
        self.disk.heal_all();
        self.healed = true;
        for _ in 0..TICKS {
            self.clock.advance_ms(100);
            self.step(|_| engine.run_pending());
        }
        if !self.told.created {
            self.step(|told| {
                engine.create_table(descriptor("t", &["f", "g"]), Vec::new())?;
                told.created = true;
                Ok(())
            });
        }
        for number in 0..6 {
            self.step(|told| write(engine, told, &row(number), Some("recovered".into())));
        }
        self.step(|told| increment(engine, told));
        self.step(|_| engine.flush(&name("t")));
        self.step(|_| engine.compact(&name("t"), None, true, true));
        self.check_reads(engine);
        self.step(|_| {
            assert_eq!(engine.disk().suspended, None);
            engine.close()
        });
    }
}

/// Whether a failed call of this kind leaves the tail of the log or of the manifest unknown.
fn leaves_the_tail_unknown(op: OpKind, path: &Path) -> bool {
    let in_log = path.starts_with("/data/wal");
    let in_manifest = path.to_string_lossy().starts_with("/data/MANIFEST");
    match op {
        OpKind::Write | OpKind::Sync => in_log || in_manifest,
        OpKind::SetLen | OpKind::Rename => in_log,
        OpKind::SyncDir => path == Path::new("/data/wal") || path == Path::new("/data"),
        _ => false,
    }
}

/// Runs the workload with the fault from call `at` on, and whatever follows. False when there is no such
/// call.
fn fail_at(errno: Errno, times: Times, context: &str) -> bool {
    let mut run = Run::new(errno, times);
    let engine = run.work();
    let struck = run.disk.struck(run.fault);
    if struck.is_empty() {
        return false;
    }
    match &engine {
        Some(engine) if !run.end.has_come() => run.recover(engine),
        // It did not start, or has ended. Later it starts.
        _ => run.disk.heal_all(),
    }
    drop(engine);
    if run.end.has_come() {
        assert!(
            struck.iter().any(|(op, path)| leaves_the_tail_unknown(*op, path)),
            "{context}: the process ended, and all that failed is {struck:?}"
        );
        let killed = run.disk.crash_keep_all();
        verify(&rig_on(&killed), &run.told, &format!("{context}: killed"));
    }
    for seed in 0..2 {
        let cut = run.disk.crash(seed);
        verify(&rig_on(&cut), &run.told, &format!("{context}: power cut {seed}"));
    }
    true
}

/// Goal: at every call, once and for ever: no false acknowledgement, no panic, reads go on, and all works
/// again by itself unless the call was one that only a restart can judge.
#[test]
fn no_space_at_any_call_loses_nothing() {
    let mut calls = 0;
    for at in 0.. {
        let errno = if at % 2 == 0 { Errno::NOSPC } else { Errno::DQUOT };
        let once = fail_at(errno, Times::Nth(at), &format!("{errno:?} once at call {at}"));
        let for_ever = fail_at(errno, Times::From(at), &format!("{errno:?} from call {at} on"));
        assert_eq!(once, for_ever);
        if !once {
            break;
        }
        calls += 1;
    }
    assert!(
        calls > 150,
        "the workload makes {calls} calls that change something"
    );
}
