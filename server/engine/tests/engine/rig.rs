//! A database to test with, and short helpers for frequent steps.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::{CellBatch, CellType};
use basalt_engine::clock::{Clock, ManualClock, SystemClock};
use basalt_engine::engine::{Fetched, check};
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::fs::{RealFs, Vfs};
use basalt_engine::metrics::{EventListener, NoListener};
use basalt_engine::op::{
    AtomicGroup, Check, Columns, FamilySelection, FetchLimits, Get, GroupStep, GroupUpdate, GroupWrite,
    ReadSpec, ReadTier, RowMutation, RowUpdate, Scan, Write,
};
use basalt_engine::options::{Background, Options};
use basalt_engine::schema::{Durability, FamilyDescriptor, TableDescriptor, TableName};
use basalt_engine::{Commit, Engine, Result};

/// The family that most tests use.
pub(crate) const F: &[u8] = b"f";

/// Where a database lives, and how it is opened.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) listener: Arc<dyn EventListener>,
}

impl Rig {
    /// On a simulated disk, without threads, at a time that stands still.
    pub(crate) fn simulated(disk: &SimFs) -> Self {
        Self {
            vfs: Arc::new(disk.clone()),
            clock: Arc::new(ManualClock::at(1_700_000_000_000)),
            dir: PathBuf::from("/data"),
            options: Options {
                background: Background::Manual,
                // Few, so that most tests close store files and open them again.
                max_open_files: 3,
                ..small_options()
            },
            listener: Arc::new(NoListener),
        }
    }

    /// On a disk of its own that never fails.
    pub(crate) fn in_memory() -> Self {
        Self::simulated(&SimFs::new(1, SimOptions::default()))
    }

    /// In a directory of the operating system, with threads and real time.
    pub(crate) fn on_disk(dir: &tempfile::TempDir) -> Self {
        Self {
            vfs: Arc::new(RealFs),
            clock: Arc::new(SystemClock::new()),
            dir: dir.path().to_path_buf(),
            options: small_options(),
            listener: Arc::new(NoListener),
        }
    }

    /// An engine on a simulated disk, with the disk, so that the test can inspect and damage files.
    pub(crate) fn open_simulated() -> (SimFs, Self, Arc<Engine>) {
        let disk = SimFs::new(1, SimOptions::default());
        let rig = Self::simulated(&disk);
        let engine = rig.open();
        (disk, rig, engine)
    }

    /// The problems that a check of the files reports; notes are left out.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut lines = Vec::new();
        check(&self.vfs, &self.dir, &mut |line| lines.push(line)).unwrap();
        lines.retain(|line| !line.starts_with("note: "));
        lines
    }

    pub(crate) fn open(&self) -> Arc<Engine> {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Arc<Engine>> {
        Engine::builder()
            .options(self.options.clone())
            .file_system(Arc::clone(&self.vfs))
            .clock(Arc::clone(&self.clock))
            .listener(Arc::clone(&self.listener))
            .open(&self.dir)
    }
}

fn small_options() -> Options {
    Options {
        wal_segment_bytes: 64 << 10,
        memstore_flush_bytes: 4 << 20,
        memstore_total_bytes: 64 << 20,
        block_cache_bytes: 8 << 20,
        row_lock_wait: Duration::from_secs(20),
        ..Options::default()
    }
}

/// A table's name.
pub(crate) fn name(text: &str) -> TableName {
    TableName::parse(text.as_bytes()).unwrap()
}

/// A table with these families, keeping 5 versions.
pub(crate) fn descriptor(table: &str, families: &[&str]) -> TableDescriptor {
    let family = |family: &&str| {
        FamilyDescriptor::new(family.as_bytes())
            .with("VERSIONS", 5)
            .unwrap()
    };
    TableDescriptor::new(name(table), families.iter().map(family).collect())
}

/// Creates table `t` with family `f`.
pub(crate) fn create(engine: &Engine) -> TableName {
    engine.create_table(descriptor("t", &["f"]), Vec::new()).unwrap();
    name("t")
}

pub(crate) fn mutation<'a>(row: &'a [u8], writes: &[Write<'a>]) -> RowMutation<'a> {
    RowMutation {
        row,
        writes: writes.iter().copied().collect(),
        durability: Durability::UseDefault,
    }
}

pub(crate) fn value<'a>(qualifier: &'a [u8], value: &'a [u8]) -> Write<'a> {
    Write::Put {
        family: F,
        qualifier,
        timestamp: None,
        value,
        ttl_ms: None,
    }
}

/// Puts a value into `row`, family `f`, qualifier `q`.
pub(crate) fn put(engine: &Engine, table: &TableName, row: &[u8], bytes: &[u8]) {
    put_at(engine, table, row, None, bytes);
}

pub(crate) fn put_at(engine: &Engine, table: &TableName, row: &[u8], timestamp: Option<i64>, bytes: &[u8]) {
    let write = Write::Put {
        family: F,
        qualifier: b"q",
        timestamp,
        value: bytes,
        ttl_ms: None,
    };
    apply(engine, table, &[mutation(row, &[write])]).unwrap();
}

pub(crate) fn apply(engine: &Engine, table: &TableName, mutations: &[RowMutation<'_>]) -> Result<()> {
    engine.mutate(table, mutations)?.wait()
}

/// Runs a check and its mutation with this tier; `None` if the check does not pass.
pub(crate) fn check_in(
    engine: &Engine,
    tier: ReadTier,
    table: &TableName,
    check: &Check<'_>,
    mutation: &RowMutation<'_>,
) -> Result<Option<Commit>> {
    let group = AtomicGroup {
        conditions: &[check.on(mutation.row)],
        steps: &[GroupStep::Write(GroupWrite::of(mutation))],
        nonce: None,
        origin: &[],
    };
    let outcome = engine.apply_group(table, &group, tier, &mut CellBatch::new())?;
    Ok(outcome.commit)
}

/// Increments or appends with this tier; puts the new cells into `out` as one row.
pub(crate) fn update_in(
    engine: &Engine,
    tier: ReadTier,
    table: &TableName,
    row: &[u8],
    change: &RowUpdate<'_>,
    out: &mut CellBatch,
) -> Result<Commit> {
    let update = GroupUpdate::new(row, change, None, Durability::UseDefault);
    let group = AtomicGroup {
        steps: &[GroupStep::Update(update)],
        ..AtomicGroup::default()
    };
    let outcome = engine.apply_group(table, &group, tier, out)?;
    Ok(outcome.commit.expect("an update writes"))
}

/// The newest value in `row`, family `f`, qualifier `q`.
pub(crate) fn get(engine: &Engine, table: &TableName, row: &[u8]) -> Option<Vec<u8>> {
    let mut out = CellBatch::new();
    let spec = ReadSpec {
        families: vec![FamilySelection {
            family: F.to_vec(),
            columns: Columns::Only(vec![b"q".to_vec()]),
        }],
        ..ReadSpec::default()
    };
    engine.get(table, &Get { row, spec }, &mut out).unwrap();
    assert!(out.row_count() <= 1);
    out.rows()
        .next()
        .map(|row| row.cells().next().unwrap().value.to_vec())
}

/// One cell, as tests compare it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    pub(crate) row: String,
    pub(crate) column: String,
    pub(crate) timestamp: i64,
    pub(crate) value: String,
}

pub(crate) fn shown(out: &CellBatch) -> Vec<Shown> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let cells = out.rows().flat_map(|row| row.cells());
    cells
        .map(|cell| Shown {
            row: text(cell.key.row()),
            column: format!("{}:{}", text(cell.key.family()), text(cell.key.qualifier())),
            timestamp: cell.key.timestamp(),
            value: if cell.key.cell_type() == CellType::Put {
                text(cell.value)
            } else {
                format!("{:?}", cell.key.cell_type())
            },
        })
        .collect()
}

/// Everything a scan returns, fetched a few rows at a time.
pub(crate) fn scan(engine: &Engine, table: &TableName, scan: Scan) -> Vec<Shown> {
    drain(&mut engine.scan(table, scan).unwrap())
}

pub(crate) fn drain(scanner: &mut basalt_engine::engine::Scanner) -> Vec<Shown> {
    let limits = FetchLimits {
        results: 3,
        bytes: 1 << 20,
        time: Duration::from_secs(10),
    };
    let mut all = Vec::new();
    let mut out = CellBatch::new();
    loop {
        out.clear();
        let fetched = scanner.fetch(&limits, &mut out).unwrap();
        assert!(out.row_count() <= 3);
        all.extend(shown(&out));
        if fetched == Fetched::End {
            return all;
        }
    }
}

/// Rows and values of a whole table, one cell a row.
pub(crate) fn rows(engine: &Engine, table: &TableName) -> Vec<(String, String)> {
    let cells = scan(engine, table, Scan::default());
    cells.into_iter().map(|cell| (cell.row, cell.value)).collect()
}

/// `r000`, `r001`, ...
pub(crate) fn row(number: usize) -> Vec<u8> {
    format!("r{number:03}").into_bytes()
}
