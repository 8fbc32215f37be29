//! Rows that must be linearizable, across kills.
//!
//! Four kinds: registers, of which every write sets all columns in three families to one value that no other
//! write has; counters; rows that are changed by checks alone, for which clients race; and rows with
//! everything mixed: puts, deletes, increments, appends, checks and row mutations. In each life clients use a
//! few rows of a larger pool together, so that rows also rest for a while and are found in store files.
//!
//! If a put and a delete overlap, timestamps decide which one takes effect, and a read between the
//! two may see the order of the log. So a write with a delete excludes other writes of its row.
//! Readers do not wait, and the next write may follow in the same millisecond.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_client::{Client, Error, Table};
use basalt_histcheck::{Change, Columns, Op, Reply, Rows, Violation, counter, durability, linear, refused};
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;
use tokio::sync::RwLock;

use super::calls::{Caller, Ended, Findings, Recorder, Watch};
use super::life::{BREATH, Life, Tasks, small_table};
use super::perform::{self, numbered};
use super::report::Figures;
use super::{Options, Problem};

pub(super) const NAME: &str = "rows";
const FAMILIES: [&str; 3] = ["a", "b", "c"];
const COLUMNS_EACH: usize = 5;
/// Rows of each kind, and how many of them one life uses.
const POOL: usize = 40;
const IN_USE: usize = 3;

/// The columns of mixed rows.
const VALUES: [&str; 3] = ["a:x", "b:y", "c:z"];
const LIST: &str = "a:list";
const COUNTER: &str = "b:n";

#[derive(Debug)]
pub(super) struct RowsWorkload {
    recorder: Arc<Recorder>,
    shared: Arc<Shared>,
    /// Content of each row at the last look.
    known: Rows,
    /// Rows that were used since then.
    used: BTreeSet<Bytes>,
}

#[derive(Debug)]
struct Shared {
    /// Numbers values.
    tags: AtomicU64,
    /// Held by writers: alone by those that delete.
    writing: HashMap<Bytes, RwLock<()>>,
}

impl Shared {
    fn tag(&self) -> Bytes {
        format!("t{}", self.tags.fetch_add(1, Ordering::Relaxed)).into()
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Register,
    Counter,
    Checked,
    Mixed,
}

const KINDS: [Kind; 4] = [Kind::Register, Kind::Counter, Kind::Checked, Kind::Mixed];

/// Gets, each with a check-and-mutate on the value it read, that a client makes of such a row
/// before it goes on: so that clients meet.
const RACE: usize = 6;

fn key(kind: Kind, number: usize) -> Bytes {
    let name = match kind {
        Kind::Register => "register",
        Kind::Counter => "counter",
        Kind::Checked => "checked",
        Kind::Mixed => "mixed",
    };
    format!("{number:02}-{name}").into()
}

fn all_rows() -> impl Iterator<Item = Bytes> {
    (0..POOL).flat_map(|number| KINDS.map(|kind| key(kind, number)))
}

impl RowsWorkload {
    pub(super) fn new(watch: Watch) -> Self {
        Self {
            recorder: Arc::new(Recorder::new(watch)),
            shared: Arc::new(Shared {
                tags: AtomicU64::new(0),
                writing: all_rows().map(|row| (row, RwLock::new(()))).collect(),
            }),
            known: Rows::new(),
            used: BTreeSet::new(),
        }
    }

    pub(super) async fn prepare(&self, client: &Client, random: &mut SmallRng) -> Result<(), Error> {
        client.create_table(small_table(NAME, &FAMILIES, random)).await
    }

    pub(super) fn start(&mut self, life: &Arc<Life>, options: &Options, tasks: &mut Tasks) {
        let mut random = life.random(1);
        let mut rows = Vec::new();
        for kind in KINDS {
            for _ in 0..IN_USE {
                rows.push((kind, key(kind, random.random_range(0..POOL))));
            }
        }
        self.used.extend(rows.iter().map(|(_, row)| row.clone()));
        let rows = Arc::new(rows);
        for number in 0..options.row_clients as u64 {
            let client = life.client(number);
            let runner = Runner {
                caller: self.recorder.client(NAME, &life.findings),
                table: client.table(NAME).expect("a well-formed name"),
                over_thrift1: number % 3 == 2,
                client,
                shared: Arc::clone(&self.shared),
                rows: Arc::clone(&rows),
                random: life.random(100 + number),
                seen: HashMap::new(),
            };
            tasks.spawn(runner.run());
        }
    }

    pub(super) fn crashed(&self) {
        self.recorder.crash();
    }

    /// Reads the rows in use, or all, and checks everything since the last look.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        findings: &Arc<Findings>,
        all: bool,
        figures: &mut Figures,
    ) -> Result<(), Problem> {
        let table = client.table(NAME).expect("a well-formed name");
        let caller = self.recorder.client(NAME, findings);
        let rows: Vec<Bytes> = if all {
            all_rows().collect()
        } else {
            self.used.iter().cloned().collect()
        };
        let mut found = Rows::new();
        for row in rows {
            match caller
                .call(&row, Op::Get, perform::thrift2(&table, &row, &Op::Get))
                .await
            {
                Ended::Done(Reply::Row(columns)) => found.insert(row, columns),
                _ => return Err(Problem::new(NAME, "the server does not answer a get")),
            };
        }
        let history = self.recorder.take();
        let check = || -> Result<linear::Checked, Violation> {
            durability::check(&history, &self.known)?;
            counter::check(&history, &self.known)?;
            refused::check(&history, &self.known)?;
            linear::check(&history, &self.known)
        };
        let checked =
            check().map_err(|violation| Problem::in_history(NAME, violation, &history, &self.known))?;
        figures.add_checked(checked);
        self.known.append(&mut found);
        self.used.clear();
        Ok(())
    }
}

/// One client.
struct Runner {
    caller: Caller,
    client: Client,
    table: Table,
    over_thrift1: bool,
    shared: Arc<Shared>,
    rows: Arc<Vec<(Kind, Bytes)>>,
    random: SmallRng,
    /// Last content seen of each row, to check for.
    seen: HashMap<Bytes, Columns>,
}

impl Runner {
    async fn run(mut self) {
        loop {
            let (kind, row) = self.rows[self.random.random_range(0..self.rows.len())].clone();
            let goes_on = match kind {
                Kind::Register => self.one(&row, Self::register).await,
                Kind::Counter => self.one(&row, Self::counter).await,
                Kind::Mixed => self.one(&row, Self::mixed).await,
                Kind::Checked => self.race(&row).await,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Makes a call; false when the server is gone.
    async fn one(&mut self, row: &Bytes, op: fn(&mut Self, &Bytes) -> Op) -> bool {
        let op = op(self, row);
        let shared = Arc::clone(&self.shared);
        let gate = &shared.writing[row];
        let (mut alone, mut with_others) = (None, None);
        if deletes(&op) {
            alone = Some(gate.write().await);
        } else if op != Op::Get {
            with_others = Some(gate.read().await);
        }
        let ended = self.caller.call(row, op.clone(), self.perform(row, &op)).await;
        drop((alone, with_others));
        match ended {
            Ended::Done(Reply::Row(columns)) => drop(self.seen.insert(row.clone(), columns)),
            Ended::Done(_) => {}
            Ended::Refused => tokio::time::sleep(BREATH).await,
            Ended::Gone => return false,
        }
        true
    }

    /// Reads the row and changes it if it is unchanged since; false when the server is gone.
    async fn race(&mut self, row: &Bytes) -> bool {
        for _ in 0..RACE {
            if !self.one(row, |_, _| Op::Get).await || !self.one(row, Self::check_of_seen).await {
                return false;
            }
        }
        true
    }

    async fn perform(&self, row: &Bytes, op: &Op) -> Result<Reply, Error> {
        if self.over_thrift1 {
            perform::thrift1(&self.client, &self.table, row, op).await
        } else {
            perform::thrift2(&self.table, row, op).await
        }
    }

    fn register(&mut self, _: &Bytes) -> Op {
        if self.random.random_bool(0.5) {
            return Op::Get;
        }
        let tag = self.shared.tag();
        let columns = numbered(&FAMILIES, COLUMNS_EACH);
        Op::Write(
            columns
                .into_iter()
                .map(|column| Change::Put(column, tag.clone()))
                .collect(),
        )
    }

    fn counter(&mut self, _: &Bytes) -> Op {
        if self.random.random_bool(0.4) {
            return Op::Get;
        }
        Op::Increment {
            column: COUNTER.into(),
            amount: self.random.random_range(1..4),
        }
    }

    fn check_of_seen(&mut self, row: &Bytes) -> Op {
        let column = Bytes::from(VALUES[0]);
        let seen = self.seen.get(row).and_then(|columns| columns.get(&column));
        Op::Check {
            expected: seen.cloned(),
            column,
            changes: self.put_all(),
        }
    }

    fn mixed(&mut self, row: &Bytes) -> Op {
        let column = Bytes::from(VALUES[self.random.random_range(0..VALUES.len())]);
        let put = Change::Put(column.clone(), self.shared.tag());
        match self.random.random_range(0..100) {
            0..32 => Op::Get,
            32..42 => Op::Write(vec![put]),
            42..50 => Op::Write(self.put_all()),
            50..55 => Op::Write(vec![Change::Delete(column)]),
            55..57 => Op::Write(vec![Change::DeleteRow]),
            57..62 => Op::Write(vec![put, Change::Delete(Self::other(&column))]),
            62..70 => Op::Increment {
                column: COUNTER.into(),
                // Not 0, which may or may not make the column.
                amount: [-2, -1, 1, 2, 3][self.random.random_range(0..5)],
            },
            70..76 => Op::Append {
                column: LIST.into(),
                suffix: self.shared.tag(),
            },
            76..79 => Op::Write(vec![Change::Put(LIST.into(), self.shared.tag())]),
            _ => {
                let changes = match self.random.random_range(0..4) {
                    0 => vec![put],
                    1 => self.put_all(),
                    2 => vec![Change::Delete(column.clone())],
                    _ => vec![put, Change::Delete(Self::other(&column))],
                };
                // Mostly a value that is probably there.
                let looked_at = if self.random.random_bool(0.5) {
                    column
                } else {
                    Self::other(&column)
                };
                let seen = self.seen.get(row).and_then(|columns| columns.get(&looked_at));
                Op::Check {
                    expected: seen.cloned(),
                    column: looked_at,
                    changes,
                }
            }
        }
    }

    fn put_all(&self) -> Vec<Change> {
        let tag = self.shared.tag();
        VALUES
            .map(|column| Change::Put(column.into(), tag.clone()))
            .into()
    }

    /// Another column of values.
    fn other(column: &Bytes) -> Bytes {
        let at = VALUES.iter().position(|name| name == column).unwrap_or_default();
        VALUES[(at + 1) % VALUES.len()].into()
    }
}

fn deletes(op: &Op) -> bool {
    let (Op::Write(changes) | Op::Check { changes, .. }) = op else {
        return false;
    };
    changes.iter().any(|change| !matches!(change, Change::Put(..)))
}
