//! A process: an open engine, open scans, and calls drawn from dice.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::clock::Clock;
use basalt_engine::fs::sim::SplitMix64;

use super::model::{Pending, Told};
use super::read::{self, Held};
use super::{FIRST_MS, Machine, Stop};

/// Kind of a call. Its details are drawn when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One row.
    Put,
    /// Several rows.
    Batch,
    /// A tombstone of any kind.
    Delete,
    /// An increment of one or two counters.
    Increment,
    /// An append.
    Append,
    /// A check-and-mutate that passes or fails.
    Check,
    /// A write with ASYNC_WAL or SKIP_WAL.
    Weak,
    /// Deletes and puts of one row within a millisecond.
    Rush,
    /// A bulk load of files for one region.
    Load,
    /// A step of the machine's clock, back or forward, by a millisecond up to years.
    SetClock,
    /// A flush of a table.
    Flush,
    /// A compaction of the files that the policy chooses.
    Minor,
    /// A compaction of all files.
    Major,
    /// A split at some row.
    Split,
    /// A merge of two neighbours.
    Merge,
    /// A tick of the background and the work that waits.
    Tick,
    /// A tick after more than a minute.
    Pause,
    /// A new table.
    Create,
    /// Other options of a family.
    AlterFamily,
    /// One more family.
    AddFamily,
    /// A family and its data go.
    DropFamily,
    /// A table is disabled.
    Disable,
    /// A table is enabled.
    Enable,
    /// A disabled table is emptied.
    Truncate,
    /// A disabled table goes.
    Drop,
    /// A scan is opened and held.
    OpenScan,
    /// A held scan goes on.
    Fetch,
    /// A row is read.
    Get,
    /// A table is read.
    Scan,
    /// A clean stop and a start.
    Restart,
    /// A snapshot of a table.
    Snapshot,
    /// A table is made of a snapshot.
    CloneSnapshot,
    /// A table that is disabled or gone gets the state of its snapshot.
    RestoreSnapshot,
    /// A snapshot goes.
    DeleteSnapshot,
}

/// How often each kind of call is made: in the reference workload, and as its share of a random one.
const MIX: &[(Kind, usize, u64)] = &[
    (Kind::Put, 14, 14),
    (Kind::Batch, 12, 12),
    (Kind::Delete, 10, 9),
    (Kind::Increment, 8, 8),
    (Kind::Append, 4, 4),
    (Kind::Check, 6, 6),
    (Kind::Weak, 5, 4),
    (Kind::Rush, 2, 3),
    (Kind::SetClock, 3, 3),
    (Kind::Flush, 7, 6),
    (Kind::Minor, 2, 3),
    (Kind::Major, 2, 2),
    (Kind::Split, 2, 2),
    (Kind::Merge, 2, 2),
    (Kind::Tick, 6, 6),
    (Kind::Pause, 1, 1),
    (Kind::Create, 1, 2),
    (Kind::AlterFamily, 1, 1),
    (Kind::AddFamily, 2, 1),
    (Kind::DropFamily, 1, 1),
    (Kind::Disable, 2, 1),
    (Kind::Enable, 1, 1),
    (Kind::Truncate, 1, 1),
    (Kind::Drop, 1, 1),
    (Kind::OpenScan, 4, 4),
    (Kind::Fetch, 8, 9),
    (Kind::Get, 4, 6),
    (Kind::Scan, 2, 2),
    (Kind::Restart, 1, 1),
    (Kind::Load, 0, 3),
    (Kind::Snapshot, 0, 2),
    (Kind::CloneSnapshot, 0, 1),
    (Kind::RestoreSnapshot, 0, 1),
    (Kind::DeleteSnapshot, 0, 1),
];

/// The end of each round of the reference workload: snapshots of a table whose regions share files and of one
/// that was made of a snapshot, and tables that are written to, loaded into and compacted meanwhile.
const SNAPSHOTS: &[Kind] = &[
    Kind::Load,
    Kind::Snapshot,
    Kind::Batch,
    Kind::Split,
    Kind::Load,
    Kind::Snapshot,
    Kind::Major,
    Kind::CloneSnapshot,
    Kind::Batch,
    Kind::Disable,
    Kind::RestoreSnapshot,
    Kind::DeleteSnapshot,
    Kind::Enable,
    Kind::Snapshot,
    Kind::Disable,
    Kind::Drop,
    Kind::RestoreSnapshot,
    Kind::Scan,
];

/// A workload of bulk loads and of operations with nonces: into an empty table, into memstores, beside
/// store files and earlier loads, into one of several regions, and at once before a clean stop.
const LOADS: &[Kind] = &[
    Kind::Create,
    Kind::Load,
    Kind::Batch,
    Kind::Increment,
    Kind::Load,
    Kind::Append,
    Kind::Flush,
    Kind::AddFamily,
    Kind::Load,
    Kind::Increment,
    Kind::Append,
    Kind::Split,
    Kind::Load,
    Kind::Append,
    Kind::Major,
    Kind::Load,
];

/// The workload of bulk loads, repeated.
pub(crate) fn loads(rounds: usize) -> Vec<Kind> {
    LOADS.repeat(rounds)
}

/// The reference workload of that many rounds: each kind of call in its number, in an order drawn
/// from the dice; tables are disabled before calls that need that.
pub(crate) fn reference(rounds: usize, dice: &mut SplitMix64) -> Vec<Kind> {
    let mut all = vec![Kind::Create];
    for _ in 0..rounds {
        let mut kinds: Vec<Kind> = MIX
            .iter()
            .flat_map(|(kind, count, _)| std::iter::repeat_n(*kind, *count))
            .collect();
        for last in (1..kinds.len()).rev() {
            kinds.swap(last, dice.below(last as u64 + 1) as usize);
        }
        all.append(&mut kinds);
        all.extend(SNAPSHOTS);
    }
    all
}

/// A kind of call by its share.
pub(crate) fn draw(dice: &mut SplitMix64) -> Kind {
    let shares: u64 = MIX.iter().map(|(_, _, share)| share).sum();
    let mut left = dice.below(shares);
    for (kind, _, share) in MIX {
        if left < *share {
            return *kind;
        }
        left -= share;
    }
    Kind::Put
}

/// The new time of a clock that shows `wall_ms`: earlier, later, near the start of the first life,
/// or 0.
pub(crate) fn draw_clock(wall_ms: u64, dice: &mut SplitMix64) -> u64 {
    const STEPS_MS: [u64; 5] = [1, 40, 5_000, 3_600_000, 365 * 24 * 3_600_000];
    let step_ms = STEPS_MS[dice.below(STEPS_MS.len() as u64) as usize];
    match dice.below(5) {
        0 | 1 => wall_ms.saturating_sub(step_ms),
        2 => wall_ms + step_ms,
        3 => FIRST_MS + dice.below(100_000),
        _ => 0,
    }
}

/// A process that has the database open.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) machine: Machine,
    pub(crate) engine: Arc<Engine>,
    pub(crate) told: Told,
    pub(crate) dice: SplitMix64,
    pub(crate) scans: Vec<Held>,
}

impl Life {
    /// Starts.
    pub(crate) fn begin(machine: &Machine, told: Told, dice: SplitMix64) -> Result<Self, Box<(Told, Stop)>> {
        match machine.open() {
            Ok(engine) => Ok(Self {
                machine: machine.clone(),
                engine,
                told,
                dice,
                scans: Vec::new(),
            }),
            Err(error) => Err(Box::new((told, error.into()))),
        }
    }

    /// The timestamp that a write made now gets. A put whose row was deleted in the same
    /// millisecond gets a later one, which [`super::act`] reads back.
    pub(crate) fn now(&self) -> i64 {
        self.engine.assigned_ms()
    }

    /// Draws a number below `count`.
    pub(crate) fn pick(&mut self, count: usize) -> usize {
        self.dice.below(count as u64) as usize
    }

    /// Makes a call. After an error of the engine, `told` has the call in flight.
    pub(crate) fn act(&mut self, kind: Kind) -> Result<(), Stop> {
        self.machine.clock.advance_ms(3);
        match kind {
            Kind::Tick => self.tick(100),
            Kind::Pause => self.tick(70_000),
            Kind::OpenScan | Kind::Fetch | Kind::Get | Kind::Scan => self.read(kind),
            Kind::Restart => self.restart(),
            Kind::SetClock => {
                self.set_clock();
                Ok(())
            }
            Kind::Create
            | Kind::AlterFamily
            | Kind::AddFamily
            | Kind::DropFamily
            | Kind::Disable
            | Kind::Enable
            | Kind::Truncate
            | Kind::Drop => self.change_schema(kind),
            Kind::Snapshot | Kind::CloneSnapshot | Kind::RestoreSnapshot | Kind::DeleteSnapshot => {
                self.change_snapshots(kind)
            }
            Kind::Flush | Kind::Minor | Kind::Major | Kind::Split | Kind::Merge => self.upkeep(kind),
            Kind::Put
            | Kind::Batch
            | Kind::Delete
            | Kind::Increment
            | Kind::Append
            | Kind::Check
            | Kind::Weak
            | Kind::Rush
            | Kind::Load => self.write(kind),
        }
    }

    /// An enabled table.
    pub(crate) fn enabled(&mut self) -> Option<String> {
        let names: Vec<String> = self.names(true);
        (!names.is_empty()).then(|| names[self.pick(names.len())].clone())
    }

    /// Names of enabled or of disabled tables.
    pub(crate) fn names(&self, enabled: bool) -> Vec<String> {
        let tables = self.told.tables.iter();
        tables
            .filter(|(_, table)| table.enabled == enabled)
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn set_clock(&mut self) {
        let wall_ms = draw_clock(self.machine.clock.wall_ms(), &mut self.dice);
        self.told.tell(format!("the clock is set to {wall_ms}"));
        self.told.retry = None;
        self.machine.clock.set_wall_ms(wall_ms);
    }

    fn tick(&mut self, ms: u64) -> Result<(), Stop> {
        self.told.tell(format!("background work after {ms} ms"));
        self.machine.clock.advance_ms(ms);
        self.engine.run_pending()?;
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Stop> {
        self.told.tell("stop and start".into());
        self.scans.clear();
        self.engine.close()?;
        self.told.flushed(None);
        self.engine = self.machine.open()?;
        Ok(())
    }

    fn upkeep(&mut self, kind: Kind) -> Result<(), Stop> {
        let Some(table) = self.enabled() else {
            return Ok(());
        };
        let name = read::name(&table);
        self.told.tell(format!("{kind:?} of {table}"));
        match kind {
            Kind::Minor => self.engine.compact(&name, None, false, true)?,
            Kind::Major => self.engine.compact(&name, None, true, true)?,
            Kind::Split => return self.split(&table),
            Kind::Merge => {
                let regions = self.engine.regions(&name)?;
                if regions.len() > 1 {
                    let at = self.pick(regions.len() - 1);
                    self.engine.merge_regions(&[regions[at].id, regions[at + 1].id])?;
                }
            }
            _ => {
                self.engine.flush(&name)?;
                self.told.flushed(Some(&table));
            }
        }
        Ok(())
    }

    fn split(&mut self, table: &str) -> Result<(), Stop> {
        let regions = self.engine.regions(&read::name(table))?;
        let row = self.draw_row();
        let Some(region) = regions.iter().find(|region| {
            region.start.as_slice() < row.as_bytes()
                && (region.end.is_empty() || row.as_bytes() < region.end.as_slice())
        }) else {
            return Ok(());
        };
        if regions.len() < 4 {
            self.engine.split_region(region.id, Some(row.as_bytes()))?;
        }
        Ok(())
    }

    fn read(&mut self, kind: Kind) -> Result<(), Stop> {
        if kind == Kind::Fetch {
            return self.fetch();
        }
        let Some(table) = self.enabled() else {
            return Ok(());
        };
        if kind == Kind::OpenScan && self.scans.len() < 3 {
            let reversed = self.pick(3) == 0;
            let batch = (self.pick(3) == 0).then_some(2);
            self.told.tell(format!(
                "opens a scan of {table}, reversed: {reversed}, batch: {batch:?}"
            ));
            let rows = &self.told.table(&table).rows;
            self.scans
                .push(Held::open(&self.engine, &table, rows, reversed, batch)?);
            return Ok(());
        }
        if kind == Kind::Scan {
            self.told.tell(format!("reads {table}"));
            let found = read::rows(&self.engine, &table)?;
            let expected = &self.told.table(&table).rows;
            return if found == *expected {
                Ok(())
            } else {
                Err(Stop::Wrong(format!(
                    "a scan of {table}: {}",
                    super::model::difference(expected, &found)
                )))
            };
        }
        let row = self.draw_row();
        self.told.tell(format!("reads {table}/{row}"));
        let found = read::row(&self.engine, &table, &row)?;
        let expected = self.told.row(&table, &row);
        if found == expected {
            return Ok(());
        }
        Err(Stop::Wrong(format!(
            "a get of {table}/{row}: {found:?}, it is {expected:?}"
        )))
    }

    fn fetch(&mut self) -> Result<(), Stop> {
        if self.scans.is_empty() {
            return Ok(());
        }
        let (at, results) = (self.pick(self.scans.len()), self.pick(4) + 1);
        self.told.tell(format!(
            "fetches {results} from scan {at} of {}",
            self.scans.len()
        ));
        // A scan that failed is of no more use, and neither is one that is over.
        let mut held = self.scans.swap_remove(at);
        if !held.fetch(results)? {
            self.scans.push(held);
        }
        Ok(())
    }

    /// Reads every scan to its end.
    pub(crate) fn finish_scans(&mut self) -> Result<(), Stop> {
        for mut held in std::mem::take(&mut self.scans) {
            while !held.fetch(4)? {}
        }
        Ok(())
    }

    /// Marks the call in flight as done.
    pub(crate) fn done(&mut self) {
        self.told.pending = Pending::Nothing;
    }
}
