//! A power cut before and after every call of the file system that the reference workload makes, and cuts
//! during recovery.

use basalt_engine::fs::sim::{CrashWhen, Mode, SimFs, SplitMix64};

use super::jobs::{self, Figures, Report, trying};
use super::life::{Kind, Life, loads, reference};
use super::model::Told;
use super::verify::{Effort, verify};
use super::{Machine, Stop};

/// The calls of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// All kinds.
    Reference,
    /// Bulk loads, increments and appends, and other changes of the files beside them.
    Loads,
}

/// Parameters of the run.
#[derive(Clone, Debug)]
pub struct Cuts {
    /// The calls of the workload.
    pub workload: Workload,
    /// The workload's seed.
    pub seed: u64,
    /// How often each kind of call is repeated in it.
    pub rounds: usize,
    /// The disk's guarantees.
    pub modes: Vec<Mode>,
    /// Damage seeds of each cut; besides them each cut is tried without damage, as kill -9.
    pub damage_seeds: u64,
    /// Every such call of the file system is cut.
    pub stride: u64,
    /// Cuts during the recovery from the cut: 0 to 3, one in the recovery from the other. The first one is at
    /// every such call of the recovery, those in its recovery at random ones.
    pub depth: u64,
    /// Every such call of the first recovery is cut.
    pub recovery_stride: u64,
    /// Threads.
    pub jobs: usize,
}

/// Runs the workload on this machine until it is through or dies.
fn run(machine: &Machine, cuts: &Cuts) -> (Told, Result<(), Stop>) {
    let mut dice = SplitMix64::new(cuts.seed);
    let kinds = match cuts.workload {
        Workload::Reference => reference(cuts.rounds, &mut dice),
        Workload::Loads => loads(cuts.rounds),
    };
    let mut life = match Life::begin(machine, Told::default(), dice) {
        Ok(life) => life,
        Err(ended) => return (ended.0, Err(ended.1)),
    };
    let result = go_through(&mut life, &kinds);
    (life.told, result)
}

fn go_through(life: &mut Life, kinds: &[Kind]) -> Result<(), Stop> {
    for kind in kinds {
        life.act(*kind)?;
    }
    life.finish_scans()?;
    life.compare()?;
    life.told.tell("stop".into());
    life.engine.close()?;
    life.told.flushed(None);
    Ok(())
}

/// Tries all cuts.
pub fn try_all(cuts: &Cuts, say: Option<&str>) -> Report {
    let mut totals = Vec::new();
    for mode in &cuts.modes {
        let machine = Machine::new(cuts.seed, *mode);
        if let (told, Err(stop)) = run(&machine, cuts) {
            return Report {
                violations: vec![format!(
                    "the workload with seed {} does not go through: {stop:?}\n    {}",
                    cuts.seed,
                    told.story()
                )],
                ..Report::default()
            };
        }
        totals.push(machine.disk.op_count());
    }
    if let Some(label) = say {
        eprintln!("{label}: the workload makes {totals:?} calls of the file system");
    }
    let mut cases = Vec::new();
    for (mode, total) in cuts.modes.iter().zip(&totals) {
        for at in (0..*total).step_by(cuts.stride.max(1) as usize) {
            cases.extend([CrashWhen::Before, CrashWhen::After].map(|when| (*mode, at, when)));
        }
    }
    jobs::run(cases.len() as u64, cuts.jobs, say, |case, figures| {
        let (mode, at, when) = cases[case as usize];
        cut(cuts, mode, at, when, figures)
    })
}

fn cut(cuts: &Cuts, mode: Mode, at: u64, when: CrashWhen, figures: &mut Figures) -> Result<(), String> {
    let context = format!("seed {}, {mode:?}, cut at call {at} ({when:?})", cuts.seed);
    trying(|| context.clone());
    let machine = Machine::new(cuts.seed, mode);
    machine.disk.crash_at_op(at, when);
    let (told, result) = run(&machine, cuts);
    let wrong = |what: String| format!("{context}: {what}\n    {}", told.story());
    match result {
        Err(Stop::Wrong(what)) => return Err(wrong(what)),
        Err(Stop::Failed(error)) if !machine.disk.is_dead() => {
            return Err(wrong(format!("the workload fails: {error}")));
        }
        _ => {}
    }
    figures.add("calls cut", 1);
    let dice = SplitMix64::new(cuts.seed ^ (at << 8));
    let survive = |disk: SimFs, how: &str| {
        trying(|| format!("{context}, {how}"));
        verify(disk, &told, Effort::Work, dice.clone())
            .map(drop)
            .map_err(|what| wrong(format!("{how}: {what}")))
    };
    survive(machine.disk.crash_keep_all(), "killed")?;
    figures.add("kills", 1);
    for damage in 0..cuts.damage_seeds {
        let (disk, harm) = machine.disk.crash_with_harm(damage);
        figures.harm(&harm);
        survive(disk, &format!("damage {damage}"))?;
        figures.add("power cuts", 1);
    }
    if cuts.depth > 0 {
        let damage = at % cuts.damage_seeds.max(1);
        let mut deeper = |disk: SimFs, how: &str| {
            figures.add("cuts during recovery", cuts.depth);
            survive(disk, how)
        };
        recoveries(cuts, &machine.disk, damage, dice.fork(1), &mut deeper)?;
    }
    Ok(())
}

/// Dies at every call of the recovery from `dead`, and in the recovery from that at a random one, and so on.
fn recoveries(
    cuts: &Cuts,
    dead: &SimFs,
    damage: u64,
    mut dice: SplitMix64,
    survive: &mut dyn FnMut(SimFs, &str) -> Result<(), String>,
) -> Result<(), String> {
    let total = recovery_calls(dead.crash(damage));
    let first = dice.below(cuts.recovery_stride.max(1));
    for at in (first..total).step_by(cuts.recovery_stride.max(1) as usize) {
        let mut disk = dead.crash(damage);
        let mut story = format!("damage {damage}, then");
        die_in_recovery(&mut disk, at, &mut dice, &mut story);
        for _ in 1..cuts.depth {
            let calls = recovery_calls(disk.crash_keep_all());
            let at = dice.below(calls);
            die_in_recovery(&mut disk, at, &mut dice, &mut story);
        }
        survive(disk, &story)?;
    }
    Ok(())
}

/// Calls of the file system that opening this disk makes.
fn recovery_calls(disk: SimFs) -> u64 {
    let machine = Machine::at(disk, super::FIRST_MS);
    // The next verification detects a failed open.
    drop(machine.open());
    machine.disk.op_count()
}

/// Opens a disk, dies at a call, and replaces the disk by the surviving one.
pub(crate) fn die_in_recovery(disk: &mut SimFs, at: u64, dice: &mut SplitMix64, story: &mut String) {
    use std::fmt::Write;
    let when = if dice.coin() {
        CrashWhen::Before
    } else {
        CrashWhen::After
    };
    disk.crash_at_op(at, when);
    drop(Machine::at(disk.clone(), super::FIRST_MS).open());
    let damage = dice.below(1 << 32);
    // Writing to a text does not fail.
    let _ = write!(
        story,
        " call {at} ({when:?}) of its recovery with damage {damage},"
    );
    *disk = if damage.is_multiple_of(5) {
        disk.crash_keep_all()
    } else {
        disk.crash(damage)
    };
}
