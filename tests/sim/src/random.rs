//! Chains of lives: one database, cut at random calls again and again, and used in between.

use std::fmt::Write;

use basalt_engine::fs::Vfs;
use basalt_engine::fs::sim::{CrashWhen, Mode, SimFs, SplitMix64};

use super::cuts::die_in_recovery;
use super::jobs::{self, Figures, Report, trying};
use super::life::{Life, draw};
use super::model::Told;
use super::verify::{Effort, verify};
use super::{FIRST_MS, Machine, Stop};

/// Lives of one chain.
const LIVES: u64 = 10;

/// Damage seeds that are tried for each death, besides the one that the chain goes on with.
const SIDES: u64 = 7;

/// Parameters of the run.
#[derive(Clone, Debug)]
pub struct Random {
    /// Seed of the first chain; each next one has the next seed.
    pub seed: u64,
    /// Cuts at least.
    pub cuts: u64,
    /// Threads.
    pub jobs: usize,
}

/// Tries chains until there are enough cuts.
pub fn try_all(random: &Random, say: Option<&str>) -> Report {
    let done = std::sync::atomic::AtomicU64::new(0);
    let chains = random.cuts.div_ceil(LIVES);
    jobs::run(chains, random.jobs, say, |number, figures| {
        if done.load(std::sync::atomic::Ordering::Relaxed) >= random.cuts {
            return Ok(());
        }
        let tried = chain(random.seed.wrapping_add(number), figures);
        done.fetch_add(figures.get("cuts"), std::sync::atomic::Ordering::Relaxed);
        tried
    })
}

fn chain(seed: u64, figures: &mut Figures) -> Result<(), String> {
    let mut dice = SplitMix64::new(seed).fork(0);
    let mode = if dice.coin() { Mode::Strict } else { Mode::Ext4 };
    let machine = Machine::new(seed, mode);
    let mut life = match Life::begin(&machine, Told::default(), dice.fork(1)) {
        Ok(life) => life,
        Err(ended) => return Err(format!("seed {seed}: {:?}", ended.1)),
    };
    figures.add("chains", 1);
    for number in 0..LIVES {
        let span = [30, 120, 400][dice.below(3) as usize];
        let at = life.machine.disk.op_count() + dice.below(span);
        let when = if dice.coin() {
            CrashWhen::Before
        } else {
            CrashWhen::After
        };
        let mut context = format!("seed {seed}, {mode:?}, life {number} to call {at} ({when:?})");
        trying(|| context.clone());
        life.machine.disk.crash_at_op(at, when);
        let result = until_death(&mut life);
        let Life { machine, told, .. } = life;
        let wrong = |context: &str, what: String| format!("{context}: {what}\n    {}", told.story());
        match result {
            Stop::Wrong(what) => return Err(wrong(&context, what)),
            Stop::Failed(error) if !machine.disk.is_dead() => {
                return Err(wrong(&context, format!("the workload fails: {error}")));
            }
            Stop::Failed(_) => {}
        }
        for side in 0..SIDES {
            let damage = dice.below(1 << 32);
            let (disk, harm) = machine.disk.crash_with_harm(damage);
            figures.harm(&harm);
            let effort = if (number + side) % 16 == 0 {
                Effort::Work
            } else {
                Effort::Compare
            };
            trying(|| format!("{context}, damage {damage}"));
            verify(disk, &told, effort, dice.fork(side))
                .map_err(|what| wrong(&context, format!("damage {damage}: {what}")))?;
            figures.add("cuts", 1);
        }
        let mut disk = if dice.below(8) == 0 {
            context.push_str(", killed");
            figures.add("kills", 1);
            machine.disk.crash_keep_all()
        } else {
            let damage = dice.below(1 << 32);
            // Writing to a text does not fail.
            let _ = write!(context, ", damage {damage},");
            figures.add("cuts", 1);
            machine.disk.crash(damage)
        };
        let nested = [0, 0, 0, 1, 2, 3][dice.below(6) as usize];
        for _ in 0..nested {
            let probe = Machine::at(disk.crash_keep_all(), FIRST_MS);
            drop(probe.open());
            let at = dice.below(probe.disk.op_count());
            die_in_recovery(&mut disk, at, &mut dice, &mut context);
            figures.add("cuts", 1);
            figures.add("of them during recovery", 1);
        }
        trying(|| context.clone());
        let effort = if number % 5 == 4 {
            Effort::Work
        } else {
            Effort::Compare
        };
        life = verify(disk, &told, effort, dice.fork(99)).map_err(|what| wrong(&context, what))?;
        figures.add("lives", 1);
        remove_orphans(&life.machine.disk)
            .map_err(|error| format!("{context}: removing orphans: {error}"))?;
    }
    Ok(())
}

fn until_death(life: &mut Life) -> Stop {
    loop {
        let kind = draw(&mut life.dice);
        if let Err(stop) = life.act(kind) {
            return stop;
        }
    }
}

/// Removes unreferenced files, as an operator does now and then: the engine keeps them, and they
/// would grow with every life.
pub(crate) fn remove_orphans(disk: &SimFs) -> std::io::Result<()> {
    let orphans = super::below("orphans");
    for path in disk.files() {
        if path.starts_with(&orphans) {
            disk.remove_file(&path)?;
        }
    }
    Ok(())
}
