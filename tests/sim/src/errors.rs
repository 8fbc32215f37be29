//! EIO, ENOSPC and EDQUOT at every call of the file system that the reference workload makes, once and from
//! there on.
//!
//! Properties to hold:
//!
//! * a call fails or has succeeded, and a call that failed with an error that is not fatal has had
//!   no effect;
//! * only a failure that leaves the tail of the log or of the manifest unknown ends the process, and a failed
//!   write or sync of either always does. The manifest is the file that CURRENT names: a roll that cannot
//!   write the next one goes on with it;
//! * while only calls that change something fail, reads go on;
//! * when the error is gone and the process lives, everything works without a restart: flushes and
//!   compactions too;
//! * a restart, and a power cut before it, finds everything that was acknowledged.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_engine::fs::sim::{Errno, FaultId, Mode, OpKind, Ops, SplitMix64, Times};
use basalt_engine::metrics::EventListener;
use basalt_engine::{Error, Kind as ErrorKind};

use super::jobs::{self, Figures, Report, trying};
use super::life::{Kind, Life, reference};
use super::model::{Pending, Told};
use super::read::name;
use super::verify::{Effort, verify};
use super::{DIR, Machine, Stop};

/// Ticks after the end of the error within which everything must work: the log asks for space every
/// tenth.
const TICKS: usize = 20;

/// Parameters of the run.
#[derive(Clone, Debug)]
pub struct Errors {
    /// The workload's seed.
    pub seed: u64,
    /// How often each kind of call is repeated in it.
    pub rounds: usize,
    /// Every such call of the file system fails.
    pub stride: u64,
    /// Power cuts afterwards.
    pub damage_seeds: u64,
    /// Threads.
    pub jobs: usize,
}

/// The calls that fail, how, and how often.
#[derive(Clone, Copy, Debug)]
struct Fault {
    errno: Errno,
    ops: Ops,
    for_ever: bool,
    at: u64,
}

impl Fault {
    fn times(&self) -> Times {
        if self.for_ever {
            Times::From(self.at)
        } else {
            Times::Nth(self.at)
        }
    }
}

/// Whether the process has to end: it has heard of a fatal error.
#[derive(Debug, Default)]
struct End(AtomicBool);

impl EventListener for End {
    fn background_error(&self, _during: &'static str, error: &Error) {
        if error.kind() == ErrorKind::Fatal {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Tries all errors.
pub fn try_all(errors: &Errors, say: Option<&str>) -> Report {
    let mut cases = Vec::new();
    for (ops, errnos) in [
        (Ops::All, &[Errno::IO][..]),
        (Ops::Changes, &[Errno::IO, Errno::NOSPC, Errno::DQUOT][..]),
    ] {
        let calls = count_calls(errors, ops);
        if let Some(label) = say {
            eprintln!("{label}: {calls} calls of {ops:?}");
        }
        for at in (0..calls).step_by(errors.stride.max(1) as usize) {
            for &errno in errnos {
                for for_ever in [false, true] {
                    cases.push(Fault {
                        errno,
                        ops,
                        for_ever,
                        at,
                    });
                }
            }
        }
    }
    jobs::run(cases.len() as u64, errors.jobs, say, |case, figures| {
        fail(errors, cases[case as usize], figures)
    })
}

/// Number of calls of that kind that the workload makes when none fails.
fn count_calls(errors: &Errors, ops: Ops) -> u64 {
    let strikes = |at: u64| {
        let fault = Fault {
            errno: Errno::IO,
            ops,
            for_ever: false,
            at,
        };
        !Run::new(errors, fault).work().0.is_empty()
    };
    let (mut some, mut none) = (0, 1 << 16);
    while none - some > 1 {
        let middle = u64::midpoint(some, none);
        if strikes(middle) {
            some = middle;
        } else {
            none = middle;
        }
    }
    none
}

/// One run of the workload with a fault.
struct Run {
    machine: Machine,
    end: Arc<End>,
    id: FaultId,
    fault: Fault,
    kinds: Vec<Kind>,
    dice: SplitMix64,
    /// The process was stopped and started after a call had failed.
    restarted: AtomicBool,
    /// A write or sync of the manifest that was live has failed.
    live_manifest_failed: AtomicBool,
}

/// State after the workload.
enum Left {
    /// The process goes on.
    Alive(Box<Life>),
    /// It has ended, or did not start.
    Ended(Box<Told>),
}

type Struck = Vec<(OpKind, PathBuf)>;

impl Run {
    fn new(errors: &Errors, fault: Fault) -> Self {
        let mut dice = SplitMix64::new(errors.seed);
        let kinds = reference(errors.rounds, &mut dice);
        let mut machine = Machine::new(errors.seed, Mode::Strict);
        let end = Arc::new(End::default());
        machine.listener = end.clone();
        let id = machine.disk.fail(fault.ops, "", fault.errno, fault.times());
        Self {
            machine,
            end,
            id,
            fault,
            kinds,
            dice,
            restarted: AtomicBool::new(false),
            live_manifest_failed: AtomicBool::new(false),
        }
    }

    fn struck(&self) -> Struck {
        self.machine.disk.struck(self.id)
    }

    /// To be called after each call of the engine: examines the file-system calls struck after the
    /// first `before`.
    fn note_live_manifest(&self, before: usize) {
        let failed = self.struck().into_iter().skip(before);
        let mut manifests = failed
            .filter(|(op, path)| matches!(op, OpKind::Write | OpKind::Sync) && is_manifest(path))
            .peekable();
        if manifests.peek().is_none() {
            return;
        }
        // There is none before the first start has ended.
        let current = self.machine.disk.contents(&super::below("CURRENT"));
        let current = String::from_utf8_lossy(&current.unwrap_or_default()).into_owned();
        let is_live = |(_, path): (OpKind, PathBuf)| {
            path.file_name()
                .is_some_and(|name| current.contains(&*name.to_string_lossy()))
        };
        let failed = manifests.any(is_live);
        self.live_manifest_failed.fetch_or(failed, Ordering::Relaxed);
    }

    /// Runs the workload, as far as it gets; returns the calls that the fault has struck, too.
    fn work(&self) -> (Struck, Result<Left, (Told, String)>) {
        let life = Life::begin(&self.machine, Told::default(), self.dice.clone());
        let left = match life {
            Ok(mut life) => match self.go_through(&mut life) {
                Ok(true) => Ok(Left::Alive(Box::new(life))),
                Ok(false) => Ok(Left::Ended(Box::new(life.told))),
                Err(what) => Err((life.told, what)),
            },
            Err(ended) => Ok(Left::Ended(Box::new(ended.0))),
        };
        (self.struck(), left)
    }

    /// False when the process has ended.
    fn go_through(&self, life: &mut Life) -> Result<bool, String> {
        for kind in &self.kinds {
            let before = self.struck().len();
            let stamped_ms = life.told.stamped_ms;
            let result = life.act(*kind);
            self.note_live_manifest(before);
            match result {
                Ok(()) => {
                    // A stop does not need the marker behind its last edit of the manifest.
                    let restarted = *kind == Kind::Restart && !self.struck().is_empty();
                    self.restarted.fetch_or(restarted, Ordering::Relaxed);
                }
                Err(Stop::Wrong(what)) => return Err(what),
                Err(Stop::Failed(error)) => {
                    let strikes_now = self.struck().len() > before;
                    if !self.may_fail(life, *kind, &error, strikes_now)? {
                        return Ok(false);
                    }
                }
            }
            if self.end.0.load(Ordering::Relaxed) {
                // The process has ended before it could acknowledge this call. The written cells
                // are there all the same.
                life.told.stamped_ms = stamped_ms;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Judges an error; false when it ends the process.
    fn may_fail(
        &self,
        life: &mut Life,
        kind: Kind,
        error: &Error,
        strikes_now: bool,
    ) -> Result<bool, String> {
        let is_read = matches!(kind, Kind::Get | Kind::Scan | Kind::Fetch | Kind::OpenScan);
        if self.struck().is_empty() {
            return Err(format!(
                "{kind:?} fails before any call of the file system: {error}"
            ));
        }
        if error.kind() == ErrorKind::Fatal || kind == Kind::Restart {
            return match Self::read_what_failed(life) {
                Err(Stop::Wrong(what)) => Err(what),
                _ => Ok(false),
            };
        }
        if is_read && self.fault.ops == Ops::Changes {
            return Err(format!("a read fails while only changes do: {error}"));
        }
        // A failed step works again, unless it asks for space, which is only retried now and then.
        if !self.fault.for_ever && !strikes_now && !matches!(error, Error::DiskSpace(_)) {
            return Err(format!("{kind:?} fails after the error has gone: {error}"));
        }
        match error {
            Error::Io { .. } | Error::DiskSpace(_) => {}
            // A list of files is one error of its own.
            _ => return Err(format!("{kind:?} fails with another error: {error}")),
        }
        let pending = std::mem::take(&mut life.told.pending);
        if let Pending::Times { table, row } = &pending {
            return match life.take_times(table, row) {
                Ok(()) => Ok(true),
                Err(Stop::Wrong(what)) => Err(what),
                // The error lasts, so the times are read after the next start.
                Err(Stop::Failed(_)) => {
                    life.told.pending = pending;
                    Ok(false)
                }
            };
        }
        if matches!(pending, Pending::Schema(_)) {
            return match life.settle_schema(&pending) {
                Ok(()) => Ok(true),
                Err(stop) => Err(format!("after {error}: {stop:?}")),
            };
        }
        Ok(true)
    }

    /// A write has failed and the process is about to end. A reader must not see it now, unless it
    /// is there for ever.
    fn read_what_failed(life: &mut Life) -> Result<(), Stop> {
        match life.told.pending.clone() {
            Pending::Rows { table, after, .. } => life.read_early(&table, &after),
            _ => Ok(()),
        }
    }

    /// The error is gone: the process works as if it had never been. False when it has ended.
    fn recover(life: &mut Life) -> Result<bool, String> {
        let result = Self::try_recover(life);
        match result {
            Ok(()) => Ok(true),
            Err(Stop::Wrong(what)) => Err(what),
            Err(Stop::Failed(error)) if error.kind() == ErrorKind::Fatal => Ok(false),
            Err(Stop::Failed(error)) => Err(format!("the error is gone, and yet: {error}")),
        }
    }

    fn try_recover(life: &mut Life) -> Result<(), Stop> {
        for _ in 0..TICKS {
            life.machine.clock.advance_ms(100);
            life.engine.run_pending()?;
        }
        if let Some(why) = life.engine.disk().suspended {
            return Err(Stop::Wrong(format!("writes are still suspended: {why}")));
        }
        for table in life.names(true) {
            life.put_row(&table, "zz")?;
            life.engine.flush(&name(&table))?;
            life.told.flushed(Some(&table));
            life.engine.compact(&name(&table), None, true, true)?;
        }
        life.finish_scans()?;
        life.compare()?;
        life.prove_work()?;
        life.engine.close()?;
        life.told.flushed(None);
        Ok(())
    }
}

/// Whether a failed call of this kind leaves the tail of the log unknown, or which manifest is live.
fn leaves_much_unknown(op: OpKind, path: &Path, errno: Errno) -> bool {
    let in_log = path.starts_with(super::below("wal"));
    match op {
        OpKind::Write | OpKind::Sync | OpKind::SetLen => in_log,
        // A rename that a full disk refuses has not been done.
        OpKind::Rename => in_log || (path == super::below("CURRENT") && errno == Errno::IO),
        OpKind::SyncDir => path == super::below("wal") || path == Path::new(DIR),
        // The log's next segment needs one.
        OpKind::DrawUuid => true,
        _ => false,
    }
}

fn is_manifest(path: &Path) -> bool {
    path.to_string_lossy()
        .starts_with(&*super::below("MANIFEST").to_string_lossy())
}

fn fail(errors: &Errors, fault: Fault, figures: &mut Figures) -> Result<(), String> {
    let context = format!("seed {}, {fault:?}", errors.seed);
    trying(|| context.clone());
    let run = Run::new(errors, fault);
    let (struck, left) = run.work();
    figures.add("errors tried", 1);
    let wrong = |told: &Told, what: String| {
        let shown: Vec<_> = struck.iter().take(8).collect();
        format!("{context}, struck {shown:?}: {what}\n    {}", told.story())
    };
    run.machine.disk.heal_all();
    let (told, ended) = match left {
        Err((told, what)) => return Err(wrong(&told, what)),
        Ok(Left::Ended(told)) => (*told, true),
        Ok(Left::Alive(mut life)) => {
            let must_end = struck.iter().find(|(op, path)| {
                !run.restarted.load(Ordering::Relaxed)
                    && matches!(op, OpKind::Write | OpKind::Sync)
                    && (path.starts_with(super::below("wal"))
                        || (is_manifest(path) && run.live_manifest_failed.load(Ordering::Relaxed)))
            });
            let recovered = Run::recover(&mut life);
            match (recovered, must_end) {
                (Err(what), _) => return Err(wrong(&life.told, what)),
                (Ok(true), Some(call)) => {
                    return Err(wrong(
                        &life.told,
                        format!("{call:?} failed, and the process goes on"),
                    ));
                }
                (Ok(lives), _) => (life.told, !lives),
            }
        }
    };
    if ended {
        figures.add("ends of the process", 1);
        let unknown = |(op, path): &(OpKind, PathBuf)| leaves_much_unknown(*op, path, fault.errno);
        if !struck.iter().any(unknown)
            && !run.live_manifest_failed.load(Ordering::Relaxed)
            && run.end.0.load(Ordering::Relaxed)
        {
            return Err(wrong(&told, "the process has ended for no reason".into()));
        }
    } else {
        figures.add("lived on", 1);
    }
    let dice = run.dice.fork(fault.at);
    let survive = |disk, how: String| match verify(disk, &told, Effort::Work, dice.clone()) {
        Ok(life) => Ok(life),
        Err(what) => Err(wrong(&told, format!("{how}: {what}"))),
    };
    // The next process may find data in the page cache that is not on the disk: once read, it must
    // not go away.
    let next = survive(run.machine.disk.crash_keep_all(), "killed".into())?;
    let cut = next.machine.disk.crash(1);
    if let Err(what) = verify(cut, &next.told, Effort::Compare, dice.clone()) {
        return Err(wrong(&next.told, format!("killed, started, power cut: {what}")));
    }
    for damage in 0..errors.damage_seeds {
        survive(run.machine.disk.crash(damage), format!("power cut {damage}"))?;
        figures.add("power cuts", 1);
    }
    Ok(())
}
