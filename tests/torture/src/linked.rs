//! HBase's BigLinkedList: nodes with random keys of 16 bytes, each naming the node before it.
//!
//! A step writes `width` nodes, each naming one of the step before, and only after that step was
//! acknowledged; after `wrap` steps the first nodes are written again to name the last ones, which closes the
//! chain to loops. Walkers follow acknowledged nodes meanwhile. A full scan now and then counts: none
//! undefined, none lost ([`basalt_histcheck::linked`]).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use basalt_client::{Client, Error, Get, Put, Scan, Table};
use basalt_histcheck::linked::{self, Counts};
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::calls::{Ended, ended};
use super::life::{BREATH, Life, Tasks, small_table};
use super::report::Figures;
use super::{Options, Problem};

pub(super) const NAME: &str = "list";
const WRITERS: usize = 2;
/// Nodes of one call.
const BATCH: usize = 50;
/// Nodes that a walker visits before it begins elsewhere.
const WALK: usize = 40;

type Key = [u8; 16];

#[derive(Debug, Default)]
pub(super) struct List {
    /// How often it has begun anew: each time in a table of its own.
    generation: u64,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    chains: [Mutex<Chain>; WRITERS],
    nodes: Mutex<Nodes>,
}

/// State of one writer, across lives.
#[derive(Clone, Debug, Default)]
struct Chain {
    /// The nodes of the first step, and of the last acknowledged one.
    first: Vec<Key>,
    last: Vec<Key>,
    steps: usize,
}

#[derive(Debug, Default)]
struct Nodes {
    acknowledged: Vec<Key>,
    /// Nodes of steps that were not acknowledged as a whole: they may exist, and nothing will refer
    /// to them.
    stray: HashSet<Key>,
    walked: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl List {
    fn table_name(&self) -> String {
        format!("{NAME}{}", self.generation)
    }

    pub(super) fn tables(&self) -> Vec<String> {
        vec![self.table_name()]
    }

    pub(super) async fn prepare(&self, client: &Client, random: &mut SmallRng) -> Result<(), Error> {
        client
            .create_table(small_table(&self.table_name(), &["meta"], random))
            .await
    }

    pub(super) fn start(&self, life: &Arc<Life>, options: &Options, tasks: &mut Tasks) {
        for number in 0..WRITERS {
            let table = life
                .client(number as u64)
                .table(&self.table_name())
                .expect("a well-formed name");
            let writer = Writer {
                table,
                number,
                life: Arc::clone(life),
                shared: Arc::clone(&self.shared),
                width: options.list_width,
                wrap: options.list_wrap,
                random: life.random(800 + number as u64),
            };
            tasks.spawn(writer.run());
        }
        let table = life
            .client(1)
            .table(&self.table_name())
            .expect("a well-formed name");
        tasks.spawn(walk(Arc::clone(life), table, Arc::clone(&self.shared)));
    }

    /// Counts all nodes. A list that has grown too large begins anew.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        options: &Options,
        random: &mut SmallRng,
        figures: &mut Figures,
    ) -> Result<(), Problem> {
        let failed = |error: Error| Problem::new(NAME, format!("cannot be read: {error}"));
        let table = client.table(&self.table_name()).expect("a well-formed name");
        let mut found = Vec::new();
        let mut rows = table.scan(Scan::new().rows_per_fetch(1000)).map_err(failed)?;
        while let Some(row) = rows.next().await.map_err(failed)? {
            let (Ok(key), before) = (Key::try_from(&row.key[..]), row.value("meta", "prev")) else {
                return Err(Problem::new(NAME, format!("{:?} is no node", row.key)));
            };
            found.push((key, before.and_then(|before| Key::try_from(&before[..]).ok())));
        }
        let counts = {
            let nodes = locked(&self.shared.nodes);
            let newest: HashSet<Key> = self
                .shared
                .chains
                .iter()
                .flat_map(|chain| locked(chain).last.clone())
                .collect();
            linked::verify(found.iter().copied(), &nodes.acknowledged, |key| {
                nodes.stray.contains(key) || newest.contains(key)
            })
        };
        if !counts.is_right() {
            return Err(describe(&counts));
        }
        figures.nodes_verified = figures.nodes_verified.max(found.len() as u64);
        figures.operations += found.len() as u64 + std::mem::take(&mut locked(&self.shared.nodes).walked);
        if found.len() > options.list_nodes_max {
            let old = self.table_name();
            self.generation += 1;
            self.shared = Arc::default();
            self.prepare(client, random).await.map_err(failed)?;
            client.disable_table(&old).await.map_err(failed)?;
            client.drop_table(&old).await.map_err(failed)?;
        }
        Ok(())
    }
}

fn describe(counts: &Counts<Key>) -> Problem {
    let kinds = [
        ("undefined", &counts.undefined),
        ("lost", &counts.lost),
        ("missing", &counts.missing),
    ];
    let line = |(what, key): (&str, &Key)| format!("{what} {:032x}\n", u128::from_be_bytes(*key));
    let calls = kinds
        .iter()
        .flat_map(|(what, keys)| keys.iter().map(|key| line((what, key))))
        .collect();
    let what = format!(
        "{} nodes referred to are undefined, {} are unreferenced and should not be, {} acknowledged ones are missing; {} are right",
        counts.undefined.len(),
        counts.lost.len(),
        counts.missing.len(),
        counts.referenced + counts.newest
    );
    Problem {
        calls,
        ..Problem::new(NAME, what)
    }
}

struct Writer {
    table: Table,
    number: usize,
    life: Arc<Life>,
    shared: Arc<Shared>,
    width: usize,
    wrap: usize,
    random: SmallRng,
}

impl Writer {
    async fn run(mut self) {
        loop {
            let mut chain = locked(&self.shared.chains[self.number]).clone();
            if chain.steps == self.wrap {
                // Each first node names a last one: the one of the next loop.
                let mut befores = chain.last.clone();
                befores.rotate_left(1);
                if !self.write(&chain.first, &befores, chain.steps).await {
                    return;
                }
                chain = Chain::default();
            } else {
                let keys: Vec<Key> = (0..self.width).map(|_| self.random.random()).collect();
                // Known before they are sent.
                locked(&self.shared.nodes).stray.extend(&keys);
                if !self.write(&keys, &chain.last, chain.steps).await {
                    return;
                }
                let mut nodes = locked(&self.shared.nodes);
                for key in &keys {
                    nodes.stray.remove(key);
                }
                nodes.acknowledged.extend(&keys);
                drop(nodes);
                if chain.steps == 0 {
                    chain.first.clone_from(&keys);
                }
                chain.last = keys;
                chain.steps += 1;
            }
            *locked(&self.shared.chains[self.number]) = chain;
        }
    }

    /// Writes nodes; true when all are acknowledged, false when the server is gone.
    async fn write(&mut self, keys: &[Key], befores: &[Key], step: usize) -> bool {
        let nodes: Vec<Put> = keys
            .iter()
            .enumerate()
            .map(|(index, key)| {
                let put = Put::new(*key)
                    .cell("meta", "count", (step as u64).to_be_bytes())
                    .cell("meta", "client", format!("writer-{}", self.number));
                match befores.get(index) {
                    Some(before) => put.cell("meta", "prev", *before),
                    None => put,
                }
            })
            .collect();
        for batch in nodes.chunks(BATCH) {
            loop {
                let result = self.table.put_multiple(batch.to_vec()).await;
                match ended(NAME, &self.life.findings, result) {
                    Ended::Done(()) => break,
                    Ended::Refused => tokio::time::sleep(BREATH).await,
                    Ended::Gone => return false,
                }
            }
        }
        true
    }
}

/// Follows nodes back: every one that is named must be there.
async fn walk(life: Arc<Life>, table: Table, shared: Arc<Shared>) {
    let mut random = life.random(900);
    while !life.stopped() {
        let start = {
            let nodes = locked(&shared.nodes);
            let count = nodes.acknowledged.len();
            (count > 0).then(|| nodes.acknowledged[random.random_range(0..count)])
        };
        let Some(mut key) = start else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        for _ in 0..WALK {
            let row = match ended(NAME, &life.findings, table.get(Get::new(key)).await) {
                Ended::Done(row) => row,
                Ended::Refused => break,
                Ended::Gone => return,
            };
            let Some(row) = row else {
                let what = format!("a walker finds no node {:032x}", u128::from_be_bytes(key));
                return life.found(Problem::new(NAME, what));
            };
            locked(&shared.nodes).walked += 1;
            let before: Option<Key> = row
                .value("meta", "prev")
                .and_then(|value: &Bytes| Key::try_from(&value[..]).ok());
            match before {
                Some(before) => key = before,
                None => break,
            }
        }
    }
}
