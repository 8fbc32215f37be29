//! Crashes and errors at every call of the file system that snapshots, clones, restores and their
//! removal make: each of these calls is done as a whole or not at all, whatever the disk forgets,
//! and acknowledged changes stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_engine::clock::ManualClock;
use basalt_engine::engine::check;
use basalt_engine::fs::sim::{CrashWhen, Errno, OpKind, Ops, SimFs, SimOptions, Times};
use basalt_engine::schema::TableState;
use basalt_engine::{Engine, Kind, Result};

use crate::rig::{Rig, apply, descriptor, mutation, name, row, rows, value};

/// Rows and values.
type Rows = BTreeMap<String, String>;

/// Expected state: tables with whether they are enabled, and snapshots with their content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct World {
    tables: BTreeMap<String, (bool, Rows)>,
    snapshots: BTreeMap<String, Rows>,
}

/// The acknowledged state, and the state after the call in flight.
#[derive(Debug, Default)]
struct Told {
    now: World,
    pending: Option<World>,
}

/// One call.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create(&'static str),
    Put(&'static str, usize, &'static str),
    Split(&'static str, usize),
    Major(&'static str),
    Snapshot(&'static str, &'static str),
    Clone(&'static str, &'static str),
    Disable(&'static str),
    Restore(&'static str, &'static str),
    Enable(&'static str),
    Delete(&'static str),
    Drop(&'static str),
}

/// The workload: every call of snapshots, with files that are shared by two regions, and tables made of them
/// that go on.
const STEPS: &[Step] = &[
    Step::Create("t"),
    Step::Put("t", 1, "a"),
    Step::Put("t", 3, "a"),
    Step::Snapshot("s1", "t"),
    Step::Split("t", 2),
    Step::Put("t", 1, "b"),
    Step::Snapshot("s2", "t"),
    Step::Major("t"),
    Step::Clone("s1", "c1"),
    Step::Put("c1", 3, "c"),
    Step::Clone("s2", "c2"),
    Step::Put("t", 5, "lost"),
    Step::Disable("t"),
    Step::Restore("s1", "t"),
    Step::Enable("t"),
    Step::Delete("s1"),
    Step::Put("t", 1, "d"),
    Step::Snapshot("s3", "c2"),
    Step::Disable("c2"),
    Step::Drop("c2"),
    Step::Restore("s3", "c2"),
    Step::Delete("s2"),
    Step::Put("c2", 2, "e"),
];

impl Step {
    /// Applies the call to the expected state.
    fn apply(self, world: &mut World) {
        let table = |world: &mut World, table: &str| world.tables.get_mut(table).unwrap().1.clone();
        match self {
            Self::Create(name) => {
                world.tables.insert(name.into(), (true, Rows::new()));
            }
            Self::Put(name, number, value) => {
                let key = String::from_utf8(row(number)).unwrap();
                world.tables.get_mut(name).unwrap().1.insert(key, value.into());
            }
            Self::Split(..) | Self::Major(_) => {}
            Self::Snapshot(snapshot, name) => {
                let rows = table(world, name);
                world.snapshots.insert(snapshot.into(), rows);
            }
            Self::Clone(snapshot, name) => {
                let rows = world.snapshots[snapshot].clone();
                world.tables.insert(name.into(), (true, rows));
            }
            Self::Restore(snapshot, name) => {
                let rows = world.snapshots[snapshot].clone();
                let enabled = !world.tables.contains_key(name);
                world.tables.insert(name.into(), (enabled, rows));
            }
            Self::Disable(name) => world.tables.get_mut(name).unwrap().0 = false,
            Self::Enable(name) => world.tables.get_mut(name).unwrap().0 = true,
            Self::Delete(snapshot) => {
                world.snapshots.remove(snapshot);
            }
            Self::Drop(name) => {
                world.tables.remove(name);
            }
        }
    }

    fn run(self, engine: &Engine) -> Result<()> {
        match self {
            Self::Create(table) => engine.create_table(descriptor(table, &["f"]), Vec::new()),
            Self::Put(table, number, text) => {
                let write = [value(b"q", text.as_bytes())];
                apply(engine, &name(table), &[mutation(&row(number), &write)])
            }
            Self::Split(table, at) => {
                let regions = engine.regions(&name(table))?;
                if regions.len() == 1 {
                    engine.split_region(regions[0].id, Some(&row(at)))?;
                }
                Ok(())
            }
            Self::Major(table) => engine.compact(&name(table), None, true, true),
            Self::Snapshot(snapshot, table) => engine.snapshot(&name(table), snapshot, true, 0),
            Self::Clone(snapshot, table) => engine.clone_snapshot(snapshot, &name(table)),
            Self::Restore(snapshot, _) => engine.restore_snapshot(snapshot),
            Self::Disable(table) => engine.disable_table(&name(table)),
            Self::Enable(table) => engine.enable_table(&name(table)),
            Self::Delete(snapshot) => engine.delete_snapshot(snapshot),
            Self::Drop(table) => engine.drop_table(&name(table)),
        }
    }
}

fn work(rig: &Rig, told: &mut Told) -> Result<()> {
    let engine = rig.try_open()?;
    for step in STEPS {
        let mut after = told.now.clone();
        step.apply(&mut after);
        told.pending = Some(after.clone());
        step.run(&engine)?;
        told.now = after;
        told.pending = None;
    }
    engine.close()
}

fn rig_on(disk: &SimFs) -> Rig {
    let mut rig = Rig::simulated(disk);
    rig.options.wal_segment_bytes = 4 << 10;
    rig.options.compaction_min_files = 10;
    rig
}

/// Names and states of tables and snapshots; the data of enabled tables.
fn look(engine: &Engine) -> World {
    let mut world = World::default();
    for (table, state) in engine.tables() {
        if !table.name.is_system() {
            let enabled = state == TableState::Enabled;
            let rows = if enabled {
                rows(engine, &table.name).into_iter().collect()
            } else {
                Rows::new()
            };
            world.tables.insert(table.name.to_string(), (enabled, rows));
        }
    }
    for snapshot in engine.snapshots() {
        world.snapshots.insert(snapshot.name.clone(), Rows::new());
    }
    world
}

/// Everything there is, with the data of snapshots and of disabled tables, too.
fn look_inside(engine: &Engine) -> World {
    let mut world = look(engine);
    for (table, (enabled, data)) in &mut world.tables {
        if !*enabled {
            engine.enable_table(&name(table)).unwrap();
            *data = rows(engine, &name(table)).into_iter().collect();
        }
    }
    for (snapshot, data) in &mut world.snapshots {
        let clone = name(&format!("clone-of-{snapshot}"));
        engine.clone_snapshot(snapshot, &clone).unwrap();
        *data = rows(engine, &clone).into_iter().collect();
    }
    world
}

/// Opens the disk: its state is the acknowledged one, or the one after the call in flight. Then a
/// check finds nothing.
fn verify(disk: &SimFs, told: &Told, context: &str) {
    let rig = rig_on(disk);
    let engine = rig
        .try_open()
        .unwrap_or_else(|error| panic!("{context}: cannot be opened: {error}"));
    let found = look_inside(&engine);
    assert!(
        found == told.now || Some(&found) == told.pending.as_ref(),
        "{context}: {found:?}, told {told:?}"
    );
    let left: Vec<_> = disk.files();
    let strangers = left.iter().filter(|path| path.starts_with("/data/snapshots"));
    let links: usize = engine.snapshots().iter().map(|it| it.files().len()).sum();
    assert_eq!(strangers.count(), links, "{context}: {left:?}");
    engine
        .close()
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    drop(engine);
    let mut problems = Vec::new();
    let summary = check(&rig.vfs, &rig.dir, &mut |line| problems.push(line)).unwrap();
    assert_eq!(summary.problems, 0, "{context}: {problems:?}");
}

fn crash_everywhere(options: &SimOptions, when: CrashWhen, stride: u64, damage_seeds: u64) {
    let disk = SimFs::new(1, *options);
    work(&rig_on(&disk), &mut Told::default()).unwrap();
    let calls = disk.op_count();
    assert!(calls > 300, "the workload makes {calls} calls");
    for at in (0..calls).step_by(stride as usize) {
        let disk = SimFs::new(1, *options);
        disk.crash_at_op(at, when);
        let mut told = Told::default();
        let result = work(&rig_on(&disk), &mut told);
        assert!(result.is_err() || disk.is_dead(), "the process dies at call {at}");
        let context = format!("kill at call {at} ({when:?})");
        verify(&disk.crash_keep_all(), &told, &context);
        for seed in 0..damage_seeds {
            let context = format!("power cut at call {at} ({when:?}), damage {seed}");
            verify(&disk.crash(seed), &told, &context);
        }
    }
}

#[test]
fn a_crash_before_any_call_leaves_all_or_nothing() {
    crash_everywhere(&SimOptions::default(), CrashWhen::Before, 1, 3);
}

#[test]
fn a_crash_after_any_call_leaves_all_or_nothing() {
    crash_everywhere(&SimOptions::ext4(), CrashWhen::After, 3, 3);
}

/// Goal: a start that is cut while it clears away half a snapshot is followed by one that does it.
#[test]
fn a_crash_while_recovering_leaves_all_or_nothing() {
    let first = SimFs::new(3, SimOptions::default());
    work(&rig_on(&first), &mut Told::default()).unwrap();
    let calls = first.op_count();
    for cut in (calls / 8..calls).step_by(23) {
        let disk = SimFs::new(3, SimOptions::default());
        disk.crash_at_op(cut, CrashWhen::After);
        let mut told = Told::default();
        let _ = work(&rig_on(&disk), &mut told);
        let survivor = disk.crash_keep_all();
        drop(rig_on(&survivor).try_open());
        for at in (0..survivor.op_count()).step_by(3) {
            let again = disk.crash_keep_all();
            again.crash_at_op(at, CrashWhen::Before);
            drop(rig_on(&again).try_open());
            let context = format!("cut at {cut}, then at call {at} of recovery");
            verify(&again.crash(at), &told, &context);
        }
    }
}

/// The workload with one call that fails. The failed step is retried, and works then; unless the
/// process has to end.
fn work_with_errors(rig: &Rig, clock: &ManualClock, told: &mut Told) -> Result<()> {
    let engine = rig.try_open()?;
    for step in STEPS {
        let mut after = told.now.clone();
        step.apply(&mut after);
        told.pending = Some(after.clone());
        if let Err(error) = step.run(&engine) {
            if error.kind() == Kind::Fatal {
                return Err(error);
            }
            for _ in 0..20 {
                clock.advance_ms(100);
                engine.run_pending()?;
            }
            // It had no effect, or, where it consists of several, all of it.
            let names = |world: &World| {
                let tables = world.tables.iter();
                let tables: Vec<_> = tables.map(|(name, table)| (name.clone(), table.0)).collect();
                (tables, world.snapshots.keys().cloned().collect::<Vec<_>>())
            };
            let found = look(&engine);
            if names(&found) == names(&told.now) && (found == look_of(&told.now)) {
                step.run(&engine)
                    .unwrap_or_else(|again| panic!("{step:?} fails with {error} and then with {again}"));
            } else {
                let of_snapshots = matches!(
                    step,
                    Step::Snapshot(..) | Step::Clone(..) | Step::Restore(..) | Step::Delete(_)
                );
                assert!(!of_snapshots, "{step:?} fails with {error}, and yet: {found:?}");
                assert_eq!(found, look_of(&after), "{step:?} fails with {error}");
            }
        }
        told.now = after;
        told.pending = None;
    }
    engine.close()
}

/// The part of a world that [`look`] shows.
fn look_of(world: &World) -> World {
    let mut shown = world.clone();
    for (enabled, rows) in shown.tables.values_mut() {
        if !*enabled {
            rows.clear();
        }
    }
    shown.snapshots.values_mut().for_each(Rows::clear);
    shown
}

fn fail_everywhere(errno: Errno, ops: Ops, stride: u64) {
    let mut lived_on = 0;
    let mut at = 0;
    loop {
        let disk = SimFs::new(1, SimOptions::default());
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let rig = Rig {
            clock: clock.clone(),
            ..rig_on(&disk)
        };
        let fault = disk.fail(ops, "", errno, Times::Nth(at));
        let mut told = Told::default();
        let result = work_with_errors(&rig, &clock, &mut told);
        let struck = disk.struck(fault);
        if struck.is_empty() {
            result.unwrap();
            break;
        }
        let context = format!("{errno} at call {at}: {struck:?}");
        if let Err(error) = result {
            let may_end =
                error.kind() == Kind::Fatal || told.now == World::default() || told.pending.is_none();
            assert!(may_end, "{context}: {error}");
        } else {
            lived_on += 1;
        }
        disk.heal_all();
        verify(&disk.crash_keep_all(), &told, &context);
        verify(&disk.crash(at), &told, &format!("{context}, power cut"));
        at += stride;
    }
    assert!(lived_on > 20, "{lived_on} of {at} runs lived on");
}

#[test]
fn an_error_at_any_call_leaves_all_or_nothing() {
    fail_everywhere(Errno::IO, Ops::All, 1);
}

#[test]
fn a_full_disk_at_any_call_leaves_all_or_nothing() {
    fail_everywhere(Errno::NOSPC, Ops::Changes, 1);
}

/// Goal: a link that cannot be made (a file system without links, too many of one file) refuses the snapshot
/// and says which file.
#[test]
fn a_refused_link_is_named() {
    let disk = SimFs::new(1, SimOptions::default());
    let engine = rig_on(&disk).open();
    let told = STEPS[..3].iter().try_for_each(|step| step.run(&engine));
    told.unwrap();
    let fault = disk.fail(OpKind::Link, "/snapshots/", Errno::MLINK, Times::Always);
    let refused = engine.snapshot(&name("t"), "s", true, 0).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("linking /data/tables/default/t/f/"),
        "{refused}"
    );
    disk.heal(fault);
    engine.snapshot(&name("t"), "s", true, 0).unwrap();
}
