//! Two machines and a network: a leader and its standby (`basalt_engine::engine::follow`). Both are killed
//! and lose power, pieces of the log are delayed, lost and repeated, and now and then the leader is gone for
//! ever and the standby takes its place.
//!
//! ```text
//! step = a call on the leader | a piece is read onto the network | the next piece arrives | the network is cut
//!      | background work of the standby | the standby stores its place, or dies
//! ```
//!
//! After each call the model's state is a [`Moment`], with the place in the leader's log behind it. The
//! promises:
//!
//! - **Prefix.** A standby that takes over has what the leader had at the standby's place, whenever it died
//!   and started again: what is lost is a suffix of the leader's order. A call that comes apart into several
//!   edits may be there in part.
//! - **Nothing** is lost in chains whose calls are acknowledged when the standby has stored them.
//! - A leader that starts again is never behind its standby.
//! - Times, nonces and snapshots go on: no later write has an earlier timestamp, no operation is applied
//!   twice.
//!
//! Writes that the log does not have (SKIP_WAL) are not followed and not part of the workload.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_engine::clock::Clock;
use basalt_engine::engine::{Fed, Feed, Pin, Place, Restore};
use basalt_engine::fs::sim::{CrashWhen, Mode, SimFs, SimOptions, SplitMix64};
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::{Engine, Error};

use super::jobs::{self, Figures, Report, trying};
use super::life::{Kind, Life, draw};
use super::model::{Pending, Rows, Table, Tables, Told, difference, state_of};
use super::random::remove_orphans;
use super::read;
use super::verify::{Effort, verify};
use super::{DIR, FIRST_MS, Machine, Stop};

/// The reader of the leader's log that keeps it for the standby.
const READER: &str = "standby";

/// Leaders of one chain.
const LEADERS: u64 = 8;

/// Parameters of the run.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Seed of the first chain; each next one has the next seed.
    pub seed: u64,
    /// Steps at least.
    pub steps: u64,
    /// Threads.
    pub jobs: usize,
}

/// Tries chains until there are enough steps.
pub fn try_all(pairs: &Pairs, say: Option<&str>) -> Report {
    let done = AtomicU64::new(0);
    // A chain has a few hundred steps; the number of chains is open.
    jobs::run(pairs.steps, pairs.jobs, say, |number, figures| {
        if done.load(Ordering::Relaxed) >= pairs.steps {
            return Ok(());
        }
        let tried = chain(pairs.seed.wrapping_add(number), figures);
        done.fetch_add(figures.get("steps"), Ordering::Relaxed);
        tried
    })
}

/// The leader's state behind a call.
#[derive(Clone, Debug)]
struct Moment {
    place: Place,
    told: Told,
}

/// The other machine.
struct Standby {
    machine: Machine,
    engine: Arc<Engine>,
    /// Its place, and the one that it has stored: where it goes on after a death.
    place: Place,
    stored: Place,
    /// It has died since the last piece: it may have made a turn more than its place says.
    has_died: bool,
    /// Number of the copy.
    copy: u16,
}

/// Pieces on their way. The feed is gone where the leader or the connection is.
#[derive(Default)]
struct Network {
    feed: Option<Feed>,
    pieces: VecDeque<Vec<u8>>,
}

impl Network {
    /// All that is on its way is lost.
    fn cut(&mut self) {
        self.feed = None;
        self.pieces.clear();
    }
}

/// End of a step that did not go through.
enum Ended {
    /// The leader has died.
    Leader,
    Wrong(String),
}

type Step<T> = Result<T, Ended>;

/// A leader, its standby, and what is known of both.
struct Chain {
    dice: SplitMix64,
    /// Calls are acknowledged when the standby has stored them.
    is_sync: bool,
    life: Life,
    standby: Standby,
    network: Network,
    /// From the one that the standby has stored on.
    moments: VecDeque<Moment>,
    /// Place behind the last call that was acknowledged by the standby, too.
    acknowledged: Place,
    figures: Figures,
}

fn chain(seed: u64, figures: &mut Figures) -> Result<(), String> {
    let mut dice = SplitMix64::new(seed).fork(7);
    let mode = if dice.coin() { Mode::Strict } else { Mode::Ext4 };
    let is_sync = dice.coin();
    let context = format!("seed {seed}, {mode:?}, sync: {is_sync}");
    trying(|| context.clone());
    let machine = Machine::new(seed, mode);
    let life = Life::begin(&machine, Told::default(), dice.fork(1))
        .map_err(|ended| format!("{context}: {:?}", ended.1))?;
    let standby = Standby::copy_of(&life, 0, &mut dice)
        .map_err(|error| format!("{context}: the first copy: {error}"))?;
    let mut chain = Chain {
        dice,
        is_sync,
        acknowledged: standby.place,
        moments: VecDeque::from([Moment {
            place: life.engine.place(),
            told: life.told.clone(),
        }]),
        life,
        standby,
        network: Network::default(),
        figures: std::mem::take(figures),
    };
    chain.figures.add("chains", 1);
    let mut result = Ok(());
    for leader in 0..LEADERS {
        result = chain.reign().and_then(|()| chain.take_over());
        if let Err(what) = &mut result {
            *what = format!(
                "{context}, leader {leader}: {what}\n    {}",
                chain.life.told.story()
            );
            break;
        }
    }
    *figures = chain.figures;
    result
}

impl Chain {
    /// Steps until the leader dies for the last time.
    fn reign(&mut self) -> Result<(), String> {
        loop {
            let span = [40, 200, 800][self.dice.below(3) as usize];
            let disk = self.life.machine.disk.clone();
            disk.crash_at_op(disk.op_count() + 1 + self.dice.below(span), self.when());
            loop {
                match self.step() {
                    Ok(()) => {}
                    Err(Ended::Leader) => break,
                    Err(Ended::Wrong(what)) => return Err(what),
                }
            }
            self.network.feed = None;
            if self.dice.coin() {
                return Ok(());
            }
            self.leader_returns()?;
        }
    }

    fn when(&mut self) -> CrashWhen {
        if self.dice.coin() {
            CrashWhen::Before
        } else {
            CrashWhen::After
        }
    }

    fn step(&mut self) -> Step<()> {
        self.figures.add("steps", 1);
        match self.dice.below(40) {
            0..=17 => self.call(),
            18..=24 => self.ship(),
            25..=32 => self.arrive(),
            33 => {
                self.figures.add("cuts of the network", 1);
                self.network.cut();
                Ok(())
            }
            34 | 35 => self.standby_works(),
            36 | 37 => self.standby_stores(),
            38 => self.standby_returns(),
            _ => {
                let when = self.when();
                let disk = &self.standby.machine.disk;
                disk.crash_at_op(disk.op_count() + 1 + self.dice.below(60), when);
                Ok(())
            }
        }
    }

    /// A call on the leader, and in synchronous chains its way to the standby.
    fn call(&mut self) -> Step<()> {
        let kind = loop {
            let kind = draw(&mut self.life.dice);
            if kind != Kind::Weak {
                break kind;
            }
        };
        if kind == Kind::Restart {
            // The feed keeps the database.
            self.network.feed = None;
        }
        let acted = self.life.act(kind);
        self.leader(acted)?;
        self.note();
        if kind == Kind::Restart {
            self.turns_are_forgotten()?;
        }
        if self.is_sync {
            self.deliver()?;
            self.acknowledged = self.life.engine.place();
            self.figures.add("acknowledged calls", 1);
        }
        Ok(())
    }

    /// A result of the leader: an error is its death, or wrong.
    fn leader<T>(&self, result: Result<T, Stop>) -> Step<T> {
        result.map_err(|stop| match stop {
            Stop::Wrong(what) => Ended::Wrong(what),
            Stop::Failed(_) if self.life.machine.disk.is_dead() => Ended::Leader,
            Stop::Failed(error) => Ended::Wrong(format!("the leader fails: {error}")),
        })
    }

    /// Remembers the state behind a call.
    fn note(&mut self) {
        let stored = self.standby.stored;
        while let [_, second, ..] = self.moments.make_contiguous()
            && is_within(second.place, stored)
        {
            self.moments.pop_front();
        }
        self.moments.push_back(Moment {
            place: self.life.engine.place(),
            told: self.life.told.clone(),
        });
    }

    /// A leader that has started has the turns of before no more: a standby that lacks one gets a new copy.
    fn turns_are_forgotten(&mut self) -> Step<()> {
        let engine = Arc::clone(&self.life.engine);
        let turns = self.leader(
            engine
                .keep_turns()
                .and_then(|()| engine.turns())
                .map_err(Stop::from),
        )?;
        let place = self.standby.place;
        let ahead = self.life.engine.place();
        if place.position > ahead.position || place.turn > turns {
            return Err(Ended::Wrong(format!(
                "the standby is at {place:?}, the leader starts at {ahead:?} with {turns} turns"
            )));
        }
        self.network.cut();
        if place.turn < turns {
            self.copy_again()?;
        }
        Ok(())
    }

    /// The standby is made anew.
    fn copy_again(&mut self) -> Step<()> {
        self.network.cut();
        let copied = Standby::copy_of(&self.life, self.standby.copy, &mut self.dice);
        self.standby = self.leader(copied.map_err(Stop::from))?;
        self.figures.add("new copies", 1);
        // All moments before the copy are behind it.
        self.note();
        Ok(())
    }

    /// Everything reaches the standby, whatever happens to it.
    fn deliver(&mut self) -> Step<()> {
        let mut tries = 0;
        loop {
            let end = self.life.engine.place();
            if is_within(end, self.standby.place) {
                return Ok(());
            }
            self.ship()?;
            while !self.network.pieces.is_empty() {
                self.arrive()?;
            }
            tries += 1;
            if tries > 200 {
                return Err(Ended::Wrong(format!(
                    "the standby stays at {:?}, and the leader is at {end:?}",
                    self.standby.place
                )));
            }
        }
    }

    /// Reads the next piece onto the network.
    fn ship(&mut self) -> Step<()> {
        let engine = Arc::clone(&self.life.engine);
        if self.network.feed.is_none() {
            let feed = engine.feed(self.standby.place);
            self.network.feed = Some(self.leader(feed.map_err(Stop::from))?);
        }
        let Some(feed) = &mut self.network.feed else {
            return Ok(());
        };
        let bytes = 1 << self.dice.below(15);
        let mut piece = Vec::new();
        let fed = engine.read_feed(feed, bytes, &mut piece).map_err(Stop::from);
        match self.leader(fed)? {
            Fed::Piece(..) => {
                self.figures.add("pieces", 1);
                self.network.pieces.push_back(piece);
                Ok(())
            }
            Fed::TurnsGone => self.copy_again(),
        }
    }

    /// The standby gets the next piece, now and then twice.
    fn arrive(&mut self) -> Step<()> {
        let Some(piece) = self.network.pieces.pop_front() else {
            return Ok(());
        };
        if self.dice.below(12) == 0 {
            self.network.pieces.push_front(piece.clone());
            self.figures.add("pieces that come twice", 1);
        }
        let disk = self.standby.machine.disk.clone();
        let stored = &mut self.standby.stored;
        let mut store = |place| {
            if disk.is_dead() {
                let gone = std::io::Error::other("the machine is down");
                return Err(Error::io("storing", DIR, gone));
            }
            *stored = place;
            Ok(())
        };
        let applied = self
            .standby
            .engine
            .apply_piece(&piece, &mut self.standby.place, &mut store);
        match applied {
            Ok(applied) if applied.unfollowed.is_some() => self.copy_again(),
            Ok(applied) => {
                self.figures.add("rows that were followed", applied.rows);
                self.figures.add("turns that were made", applied.turns);
                self.standby.has_died = false;
                Ok(())
            }
            Err(_) if self.standby.machine.disk.is_dead() => self.standby_returns(),
            Err(error) => Err(Ended::Wrong(format!("a piece is not applied: {error}"))),
        }
    }

    fn standby_works(&mut self) -> Step<()> {
        let worked = self.standby.engine.run_pending().and_then(|_| {
            let tables = self.life.told.tables.keys();
            let mut there =
                tables.filter(|table| self.standby.engine.describe_table(&read::name(table)).is_ok());
            match there.next() {
                Some(table) if self.dice.coin() => self.standby.engine.flush(&read::name(table)),
                Some(table) => self.standby.engine.compact(&read::name(table), None, true, true),
                None => Ok(()),
            }
        });
        match worked {
            Ok(()) => Ok(()),
            Err(_) if self.standby.machine.disk.is_dead() => self.standby_returns(),
            // It follows that a table is disabled.
            Err(error) if error.kind() != basalt_engine::Kind::Fatal => Ok(()),
            Err(error) => Err(Ended::Wrong(format!("the standby's own work fails: {error}"))),
        }
    }

    fn standby_stores(&mut self) -> Step<()> {
        self.standby.stored = self.standby.place;
        let advanced = self
            .life
            .engine
            .advance_log_reader(READER, self.standby.stored.position);
        self.leader(advanced.map_err(Stop::from))
    }

    /// The standby starts again after a kill or a power cut, from the place that it has stored.
    fn standby_returns(&mut self) -> Step<()> {
        self.network.cut();
        self.figures.add("deaths of the standby", 1);
        let (damage, wall_ms) = (self.dice.below(1 << 32), self.life.machine.clock.wall_ms());
        self.standby
            .start_again(damage, wall_ms)
            .map_err(|error| Ended::Wrong(format!("the standby does not start (damage {damage}): {error}")))
    }

    /// The leader starts again after a kill or a power cut.
    fn leader_returns(&mut self) -> Result<(), String> {
        self.network.cut();
        let damage = self.dice.below(1 << 32);
        let disk = survivor(&self.life.machine.disk, damage);
        self.figures.add("returns of the leader", 1);
        let returned = verify(disk, &self.life.told, Effort::Compare, self.dice.fork(damage));
        let life = returned.map_err(|what| format!("the leader returns with damage {damage}: {what}"))?;
        self.life = life;
        self.note();
        // The outcome of the call in flight may span several moments: the standby has it before the next
        // call.
        let told = self.turns_are_forgotten().and_then(|()| self.deliver());
        told.map_err(|ended| match ended {
            Ended::Wrong(what) => what,
            Ended::Leader => "the leader dies without a reason".to_owned(),
        })?;
        self.acknowledged = self.life.engine.place();
        remove_orphans(&self.life.machine.disk).map_err(|error| format!("removing orphans: {error}"))
    }

    /// The leader is lost with its disk, and the standby takes its place.
    fn take_over(&mut self) -> Result<(), String> {
        self.figures.add("take-overs", 1);
        let wall_ms = self.life.machine.clock.wall_ms();
        if self.standby.machine.disk.is_dead() || self.dice.below(3) == 0 {
            let damage = self.dice.below(1 << 32);
            self.standby
                .start_again(damage, wall_ms)
                .map_err(|error| format!("the standby does not start (damage {damage}): {error}"))?;
        }
        // No call of its own has been cut.
        let disk = &self.standby.machine.disk;
        disk.crash_at_op(u64::MAX, CrashWhen::Before);
        let failed = |error: Error| format!("taking over: {error}");
        let engine = Arc::clone(&self.standby.engine);
        engine.set_follows(None).map_err(failed)?;
        self.standby.machine.clock.set_wall_ms(wall_ms.max(FIRST_MS));
        let told = self.standbys_state()?;
        let mut life = Life {
            machine: self.standby.machine.clone(),
            engine,
            told,
            dice: self.dice.fork(3),
            scans: Vec::new(),
        };
        life.told.tell("the standby takes over".into());
        let stop = |stop: Stop| match stop {
            Stop::Failed(error) => failed(error),
            Stop::Wrong(what) => format!("after the take-over: {what}"),
        };
        life.prove_time().map_err(stop)?;
        life.retry().map_err(stop)?;
        if self.dice.below(4) == 0 {
            life.prove_work().map_err(stop)?;
            life.machine.check()?;
        }
        self.network.cut();
        // Dropped only now: an error names the calls that were made on it.
        self.life = life;
        // Its log has marks of this number that say nothing of the new one.
        let copy = self.standby.copy + u16::from(self.dice.coin());
        let copied = Standby::copy_of(&self.life, copy, &mut self.dice);
        self.standby = copied.map_err(failed)?;
        self.moments.clear();
        self.note();
        self.acknowledged = self.life.engine.place();
        Ok(())
    }

    /// The state of the standby, which must be one of the leader's. Tables are enabled, so that they can be
    /// read.
    fn standbys_state(&mut self) -> Result<Told, String> {
        let engine = &self.standby.engine;
        let mut found = read::schema(engine);
        let snapshots = engine.snapshots();
        let snapshots: Vec<&String> = snapshots.iter().map(|snapshot| &snapshot.name).collect();
        let schema = found.clone();
        for (name, table) in &mut found {
            let read = || {
                if !table.enabled {
                    engine.enable_table(&read::name(name))?;
                }
                read::rows(engine, name)
            };
            table.rows = read().map_err(|error| format!("reading {name} of the standby: {error}"))?;
            table.enabled = true;
        }
        let mut place = self.standby.place;
        if self.is_sync {
            // The last edits of before a death may have had no rows to be followed.
            place.position = place.position.max(self.acknowledged.position);
            place.turn = place.turn.max(self.acknowledged.turn);
        }
        let Some(first) = self
            .moments
            .iter()
            .rposition(|moment| is_within(moment.place, place))
        else {
            return Err(format!("the standby is at {place:?}, which the leader never was"));
        };
        let mut last = first;
        if self.standby.has_died {
            // Its log does not say how far it came behind the last rows.
            let has_same_rows = |moment: &Moment, next: &Moment| {
                next.place.turn <= place.turn + 1 && has_rows_of(&moment.told.tables, &next.told.tables)
            };
            while self
                .moments
                .get(last + 1)
                .is_some_and(|next| has_same_rows(&self.moments[last], next))
            {
                last += 1;
            }
        }
        let mut why = String::new();
        for at in first..=last {
            let (moment, next) = (&self.moments[at], self.moments.get(at + 1));
            let may_be_between = next.filter(|_| place != moment.place || self.standby.has_died);
            match is_of(
                &schema,
                &snapshots,
                &found,
                &moment.told,
                may_be_between.map(|next| &next.told),
            ) {
                Ok(is_whole) => {
                    if next.is_none() && at > 0 {
                        self.figures.add("take-overs without loss", 1);
                    }
                    let next = next.map(|next| &next.told);
                    return Ok(self.adopted(&moment.told, next, found, &snapshots, is_whole));
                }
                Err(what) => why = format!("{why}\n    not that at {:?}: {what}", moment.place),
            }
        }
        Err(format!(
            "the standby at {place:?} (stored {:?}, acknowledged {:?}, died: {}) has not the leader's state, which is at {:?}:{why}",
            self.standby.stored,
            self.acknowledged,
            self.standby.has_died,
            self.moments.back().map(|moment| moment.place),
        ))
    }

    /// The state that is known after the take-over: that of `told`, or one between it and the next.
    fn adopted(
        &self,
        told: &Told,
        next: Option<&Told>,
        found: Tables,
        snapshots: &[&String],
        is_whole: bool,
    ) -> Told {
        let mut known = next.map_or_else(Default::default, |next| next.snapshots.clone());
        known.extend(told.snapshots.clone());
        known.retain(|name, _| snapshots.contains(&name));
        Told {
            tables: found,
            snapshots: known,
            pending: Pending::Nothing,
            retry: told.retry.clone().filter(|_| is_whole),
            offered: None,
            writes: self.life.told.writes + 1,
            story: self.life.told.story.clone(),
            weak: std::collections::BTreeMap::new(),
            stamped_ms: told.stamped_ms,
        }
    }
}

/// Whether a place is no further than another.
fn is_within(place: Place, other: Place) -> bool {
    place.position <= other.position && place.turn <= other.turn
}

/// Whether both states have the same rows, in whatever tables.
fn has_rows_of(one: &Tables, other: &Tables) -> bool {
    let is_same = |name: &String| {
        let rows = |of: &Tables| of.get(name).map_or_else(Rows::new, |table| table.rows.clone());
        rows(one) == rows(other)
    };
    one.keys().chain(other.keys()).all(is_same)
}

/// Whether what was found is this state, or lies between this one and the next. True if it is this one.
fn is_of(
    schema: &Tables,
    snapshots: &[&String],
    found: &Tables,
    told: &Told,
    next: Option<&Told>,
) -> Result<bool, String> {
    let same = |known: &Told| {
        known.snapshots.keys().eq(snapshots.iter().copied())
            && known.tables.len() == schema.len()
            && known.tables.iter().all(|(name, table)| {
                schema.get(name).is_some_and(|found| {
                    found.descriptor == table.descriptor && found.enabled == table.enabled
                })
            })
    };
    let is_old = same(told);
    if !is_old && !next.is_some_and(same) {
        let tables: Vec<(&String, bool)> = schema.iter().map(|(name, table)| (name, table.enabled)).collect();
        return Err(format!(
            "its tables are {tables:?}, its snapshots {snapshots:?}; the leader had the snapshots {:?}",
            told.snapshots.keys()
        ));
    }
    let mut is_whole = is_old;
    for (name, table) in found {
        let rows = |of: &Tables| {
            of.get(name)
                .map_or_else(Rows::new, |table: &Table| table.rows.clone())
        };
        let old = rows(&told.tables);
        if old == table.rows {
            continue;
        }
        is_whole = false;
        let Some(next) = next else {
            return Err(format!("table {name}: {}", difference(&old, &table.rows)));
        };
        let new = rows(&next.tables);
        let keys = old.keys().chain(new.keys()).chain(table.rows.keys());
        for key in keys {
            let [old, new, is] = [&old, &new, &table.rows].map(|rows| state_of(rows, key));
            // A row that the call has changed may be seen between two of the call's edits.
            if is != old && old == new {
                return Err(format!(
                    "row {key} of {name} is {is:?}, was {old:?} and became {new:?}"
                ));
            }
        }
    }
    Ok(is_whole)
}

/// A machine's disk after a kill, or after a power cut.
fn survivor(disk: &SimFs, damage: u64) -> SimFs {
    if damage.is_multiple_of(4) {
        disk.crash_keep_all()
    } else {
        disk.crash(damage)
    }
}

impl Standby {
    /// A copy of the leader on a new machine.
    fn copy_of(life: &Life, copy: u16, dice: &mut SplitMix64) -> Result<Self, Error> {
        let leader = &life.engine;
        leader.remove_log_reader(READER)?;
        leader.add_log_reader(READER, b"")?;
        leader.keep_turns()?;
        let pin = leader.pin()?;
        let mode = if dice.coin() { Mode::Strict } else { Mode::Ext4 };
        let disk = SimFs::new(
            dice.below(1 << 32),
            SimOptions {
                mode,
                capacity_bytes: None,
            },
        );
        copy_files(&life.machine.disk, &pin, &disk)?;
        let machine = Machine::at(disk, life.machine.clock.wall_ms());
        let engine = machine.open()?;
        let place = Place {
            position: pin.position().next(),
            turn: pin.turns(),
        };
        engine.begin_copy(copy, place.position)?;
        engine.set_follows(Some(copy))?;
        Ok(Self {
            machine,
            engine,
            place,
            stored: place,
            has_died: false,
            copy,
        })
    }

    fn start_again(&mut self, damage: u64, wall_ms: u64) -> Result<(), Error> {
        let disk = survivor(&self.machine.disk, damage);
        self.machine = Machine::at(disk, wall_ms);
        self.engine = self.machine.open()?;
        self.place = self.stored;
        self.place.position = self
            .engine
            .set_follows(Some(self.copy))?
            .max(self.stored.position);
        self.has_died = true;
        Ok(())
    }
}

/// Copies the files of a pin, and makes them a database.
fn copy_files(from: &SimFs, pin: &Pin, to: &SimFs) -> Result<(), Error> {
    let dir = Path::new(DIR);
    let restore = Restore::decode(&pin.manifest(), dir)?;
    let files = restore
        .files()
        .into_iter()
        .map(|file| (file.path, file.bytes, file.bytes));
    let segments = pin.segments()?.into_iter();
    let segments = segments.map(|segment| (segment.path, segment.bytes, segment.length));
    for (path, bytes, length) in files.chain(segments) {
        let path = dir.join(path);
        let copied = || {
            let mut content = vec![0; bytes as usize];
            from.open(&path, Open::Read)?.read_exact_at(&mut content, 0)?;
            to.create_dir_all(path.parent().unwrap_or(dir))?;
            let file = to.open(&path, Open::CreateNew)?;
            file.write_at(&content, 0)?;
            file.set_len(length)?;
            file.sync_all()
        };
        copied().map_err(|source| Error::io("copying", path.clone(), source))?;
    }
    restore.install(to, dir)
}
