//! The loop of lives.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use basalt_client::Client;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;

use super::acid::Acid;
use super::bank::Bank;
use super::calls::{Findings, Watch};
use super::life::Upkeep;
use super::life::{Life, Tasks};
use super::linked::List;
use super::loads::BulkLoads;
use super::nonces::Nonces;
use super::process::{Process, Program, Started, bytes_below};
use super::report::Figures;
use super::rows::RowsWorkload;
use super::schemas::Schemas;
use super::snapshots::Snapshots;
use super::{Options, Problem, acid, bank, native, rows, snapshots, upkeep};

/// A line of progress is printed this often.
const PROGRESS_EVERY: u64 = 20;

/// Runs to the end, or to the first problem. The figures count the work either way.
pub fn run(options: &Options, figures: &mut Figures) -> Result<(), Problem> {
    let began = Instant::now();
    let mut torture = Torture::new(options);
    let result = torture.lives(began, figures).and_then(|()| torture.end(figures));
    figures.took = began.elapsed();
    figures.data_bytes = bytes_below(&options.data_dir);
    result.map_err(|mut problem| {
        if problem.workload == "server" {
            problem.calls = torture.program.last_words();
        }
        problem
    })
}

struct Torture {
    options: Arc<Options>,
    random: SmallRng,
    runtime: Runtime,
    program: Program,
    workloads: Workloads,
    findings: Arc<Findings>,
    /// Whether a look is due after the last kill.
    unseen: bool,
}

struct Workloads {
    rows: RowsWorkload,
    bank: Bank,
    snapshots: Snapshots,
    acid: Acid,
    list: List,
    schemas: Schemas,
    nonces: Nonces,
    loads: BulkLoads,
    prepared: bool,
}

/// Where a server is that was started.
enum Stage {
    Serves(Process, String),
    Killed,
}

impl Torture {
    fn new(options: &Options) -> Self {
        let watch = Watch::start();
        let binary = options
            .binary
            .clone()
            .unwrap_or_else(|| basalt_test_support::binary("basalt"));
        let mut log: PathBuf = options.data_dir.clone();
        log.set_extension("log");
        Self {
            options: Arc::new(options.clone()),
            random: SmallRng::seed_from_u64(options.seed),
            runtime: Runtime::new().expect("threads can be started"),
            program: Program {
                binary,
                data_dir: options.data_dir.clone(),
                log,
            },
            workloads: Workloads {
                rows: RowsWorkload::new(watch),
                bank: Bank::default(),
                snapshots: Snapshots::new(watch),
                acid: Acid::new(watch, options),
                list: List::default(),
                schemas: Schemas::default(),
                nonces: Nonces::default(),
                loads: BulkLoads::default(),
                prepared: false,
            },
            findings: Arc::default(),
            unseen: false,
        }
    }

    /// Lives until there were enough kills.
    fn lives(&mut self, began: Instant, figures: &mut Figures) -> Result<(), Problem> {
        let mut reported = 0;
        while figures.kills < self.options.kills {
            match self.start(figures)? {
                Stage::Killed => self.crashed(),
                Stage::Serves(process, address) => self.live(process, address, figures)?,
            }
            if self.options.progress && figures.kills / PROGRESS_EVERY > reported {
                reported = figures.kills / PROGRESS_EVERY;
                figures.took = began.elapsed();
                figures.data_bytes = bytes_below(&self.options.data_dir);
                println!("{figures}");
            }
        }
        Ok(())
    }

    /// Starts the server; sometimes kills it before it serves.
    fn start(&mut self, figures: &mut Figures) -> Result<Stage, Problem> {
        let settings = self.settings();
        let process = self.program.start(&settings)?;
        // Tables are made in the first life, which is left alone until then.
        let limit = (self.workloads.prepared && self.random.random_bool(0.15)).then(|| {
            let usual = figures.recovery().0.max(Duration::from_millis(1));
            usual.mul_f64(self.random.random_range(0.0..1.1))
        });
        match process.wait(limit) {
            Started::Serves(address, took) => {
                figures.recoveries.push(took);
                Ok(Stage::Serves(process, address.to_string()))
            }
            Started::NotYet => {
                process.kill()?;
                figures.kills += 1;
                figures.kills_in_recovery += 1;
                Ok(Stage::Killed)
            }
            Started::Ended => Err(Problem::new("server", "did not start")),
        }
    }

    /// One life: a look, load, and the kill.
    fn live(&mut self, process: Process, address: String, figures: &mut Figures) -> Result<(), Problem> {
        let (sender, upkeeps) = channel();
        let life = Life::new(&self.findings, sender, address, self.random.random());
        let client = life.client(0);
        if !self.workloads.prepared {
            let prepared = self
                .runtime
                .block_on(self.workloads.prepare(&client, &mut self.random));
            prepared.map_err(|error| Problem::new("server", format!("cannot prepare: {error}")))?;
            self.workloads.prepared = true;
        }
        // Sometimes without a look: the next kill hits the recovered data, and new writes go on top
        // of it.
        if self.unseen && self.random.random_bool(0.15) {
            figures.kills_in_a_row += 1;
        } else {
            let all = figures.looks.is_multiple_of(self.options.full_look_every);
            self.look(&life, &client, all, figures)?;
        }
        let mut tasks = Tasks::new();
        {
            let _inside = self.runtime.enter();
            self.workloads.start(&life, &self.options, &mut tasks);
        }
        self.wait(&upkeeps, figures);
        life.stop();
        process.kill()?;
        figures.kills += 1;
        self.runtime
            .block_on(async { while tasks.join_next().await.is_some() {} });
        self.crashed();
        self.findings.first().map_or(Ok(()), Err)
    }

    /// Waits for the moment of the kill: any, or one shortly after a piece of upkeep was begun.
    fn wait(&mut self, upkeeps: &Receiver<Upkeep>, figures: &mut Figures) {
        let share: f64 = self.random.random_range(0.0..1.0);
        // Some lives are very short.
        let share = if self.random.random_bool(0.3) {
            share.powi(4)
        } else {
            share
        };
        let life = Duration::from_millis(self.options.life_ms).mul_f64(share);
        let end = Instant::now() + life;
        let by_upkeep = self.random.random_bool(0.5);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match upkeeps.recv_timeout(left) {
                Ok(Upkeep::Done(kind)) => figures.upkeep[kind as usize] += 1,
                Ok(Upkeep::Begins) if by_upkeep && self.random.random_bool(0.2) => {
                    let moment = Duration::from_micros(self.random.random_range(0..40_000));
                    std::thread::sleep(moment.min(left));
                    return;
                }
                Ok(Upkeep::Begins) => {}
                Err(RecvTimeoutError::Timeout) => return,
                // The task of upkeep has ended with the server.
                Err(RecvTimeoutError::Disconnected) => return std::thread::sleep(left),
            }
        }
    }

    fn crashed(&mut self) {
        self.workloads.rows.crashed();
        self.workloads.snapshots.crashed();
        self.workloads.acid.crashed();
        self.unseen = true;
    }

    fn look(
        &mut self,
        life: &Life,
        client: &Client,
        all: bool,
        figures: &mut Figures,
    ) -> Result<(), Problem> {
        let look = self.workloads.look(
            (client, life.address()),
            &self.options,
            &self.findings,
            &mut self.random,
            all,
            figures,
        );
        // A problem reported by a task or an unexpected answer explains more than the failure of
        // the look.
        let result = self.runtime.block_on(look);
        self.findings.first().map_or(Ok(()), Err)?;
        result?;
        figures.looks += 1;
        self.unseen = false;
        if self.program.has_panicked() {
            return Err(Problem::new("server", "a thread has panicked"));
        }
        Ok(())
    }

    /// Checks everything once more, stops the server cleanly unless it is to be killed, and
    /// verifies the files.
    fn end(&mut self, figures: &mut Figures) -> Result<(), Problem> {
        let settings = self.settings();
        let process = self.program.start(&settings)?;
        let Started::Serves(address, took) = process.wait(None) else {
            return Err(Problem::new("server", "did not start"));
        };
        figures.recoveries.push(took);
        let (sender, _upkeeps) = channel();
        let life = Life::new(&self.findings, sender, address.to_string(), 0);
        self.look(&life, &life.client(0), true, figures)?;
        if self.options.kill_at_end {
            process.kill()?;
        } else {
            process.stop()?;
        }
        self.program.check()
    }

    /// Small settings, so that everything happens often.
    fn settings(&mut self) -> Vec<String> {
        let random = &mut self.random;
        let sync = if random.random_bool(0.5) { "fsync" } else { "os" };
        let mib = |most: u64, random: &mut SmallRng| random.random_range(1..=most) << 20;
        vec![
            format!("wal.sync={sync:?}"),
            format!("wal.segment_bytes={}", mib(2, random)),
            format!("memstore.flush_bytes={}", 1 << 20),
            format!("memstore.total_bytes={}", (4 << 20) + mib(12, random)),
            format!("block_cache.bytes={}", mib(8, random)),
            format!("flush.threads={}", random.random_range(1..3)),
            format!("compaction.threads={}", random.random_range(1..3)),
            // Some of them are long, so that two run in one store.
            format!("compaction.long_threads={}", random.random_range(1..3)),
            format!("compaction.long_bytes={}", random.random_range(0..4 << 20)),
            format!("compaction.min_files={}", random.random_range(2..4)),
            format!("compaction.max_files={}", random.random_range(3..8)),
            format!("compaction.min_bytes={}", random.random_range(0..1 << 20)),
            // Small ones leave old, large files out.
            format!("compaction.overwritten={:.2}", random.random_range(0.0..0.6)),
            format!("compaction.ratio={:.2}", random.random_range(0.1..1.5)),
            "log.filter=\"warn\"".to_owned(),
        ]
    }
}

impl Workloads {
    async fn prepare(&self, client: &Client, random: &mut SmallRng) -> Result<(), basalt_client::Error> {
        self.rows.prepare(client, random).await?;
        self.bank.prepare(client, random).await?;
        self.snapshots.prepare(client, random).await?;
        self.acid.prepare(client, random).await?;
        native::prepare(client, random).await?;
        self.list.prepare(client, random).await
    }

    fn start(&mut self, life: &Arc<Life>, options: &Options, tasks: &mut Tasks) {
        self.rows.start(life, options, tasks);
        self.bank.start(life, tasks);
        self.snapshots.start(life, tasks);
        self.acid.start(life, options, tasks);
        self.list.start(life, options, tasks);
        self.schemas.start(life, tasks);
        self.nonces.start(life, tasks);
        self.loads.start(life, tasks);
        let names = [rows::NAME, bank::NAME, snapshots::NAME, acid::NAME, native::TABLE];
        let mut tables: Vec<String> = names.map(str::to_owned).into();
        tables.extend(self.list.tables());
        upkeep::start(life, &tables, tasks);
    }

    async fn look(
        &mut self,
        (client, address): (&Client, SocketAddr),
        options: &Options,
        findings: &Arc<Findings>,
        random: &mut SmallRng,
        all: bool,
        figures: &mut Figures,
    ) -> Result<(), Problem> {
        self.rows.look(client, findings, all, figures).await?;
        self.bank.look(client, figures).await?;
        self.snapshots.look(client, findings, figures).await?;
        self.acid.look(client, findings, figures).await?;
        self.schemas.look(client, figures).await?;
        self.nonces.look(client, address, findings, figures).await?;
        self.loads.look(client, address, findings, figures).await?;
        if all {
            self.list.look(client, options, random, figures).await?;
        }
        Ok(())
    }
}
