//! Bulk loads over native RPC, as HBase's tool makes them: prepare, load, clean up. After a kill, all
//! rows of a load are there or none, and the files are as they were written.
//!
//! One client loads, one load after the other. Each load has a number, which is the value of all of
//! its cells, and rows of one region; each family has two files, to which the rows are dealt out.
//! All cells have the same timestamp, so that only sequence ids order the loads. Readers scan
//! meanwhile. A look checks the data after a kill and makes the interrupted load again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use basalt_client::{Client, Error, Scan};
use basalt_engine::cell::{Cell, CellType, KeyBuf};
use basalt_engine::fs::{Open, RealFs, Vfs as _};
use basalt_engine::id::{SeqId, Uuid};
use basalt_engine::internals::hfile::{Writer, WriterOptions};
use basalt_engine::schema::FamilyDescriptor;
use basalt_histcheck::loads::{self, Found};
use basalt_idl::native::messages::bulk_load_h_file_request::FamilyPath;
use basalt_idl::native::messages::{
    BulkLoadHFileRequest, BulkLoadHFileResponse, CleanupBulkLoadRequest, CleanupBulkLoadResponse,
    PrepareBulkLoadRequest, PrepareBulkLoadResponse, TableName,
};
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::Problem;
use super::calls::{Ended, Findings, ended};
use super::life::{BREATH, Life, Tasks, Upkeep, columns};
use super::native::{LOADED, Native, TABLE};
use super::report::Figures;

const NAME: &str = "loads";
/// Files of each family in a load.
const FILES: usize = 2;
const ROWS: usize = 24;
/// Between these are the rows of loads, `load-00`, `load-01`, ...
const FIRST_ROW: &str = "load-";
const STOP_ROW: &str = "load.";
/// Most rows of a load.
const LOADED_ROWS: usize = 12;
/// Timestamp of all cells.
const TIMESTAMP: i64 = 1_000;

/// A load that was sent and not acknowledged.
#[derive(Clone, Debug)]
struct Pending {
    number: u64,
    rows: Vec<Bytes>,
    /// The answer of PrepareBulkLoad.
    token: String,
    /// Each file with its family and its bytes.
    files: Vec<(&'static str, PathBuf, Vec<u8>)>,
}

/// The loader's knowledge.
#[derive(Debug, Default)]
struct Known {
    offered: loads::Loads,
    /// The last acknowledged load of each row.
    acknowledged: BTreeMap<Bytes, u64>,
    pending: Option<Pending>,
    /// Number of the last load.
    last: u64,
}

#[derive(Debug, Default)]
pub(super) struct BulkLoads {
    known: Arc<Mutex<Known>>,
    /// Loads that were acknowledged, and scans that were checked, since the last look.
    loaded: Arc<AtomicU64>,
    scans: Arc<AtomicU64>,
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BulkLoads {
    pub(super) fn start(&self, life: &Arc<Life>, tasks: &mut Tasks) {
        let (known, loaded) = (Arc::clone(&self.known), Arc::clone(&self.loaded));
        let its_life = Arc::clone(life);
        tasks.spawn_blocking(move || {
            let Some(native) = Native::connect(its_life.address(), NAME, &its_life.findings) else {
                return;
            };
            let random = its_life.random(800);
            let mut loader = Loader {
                native,
                known: &known,
            };
            // `None`: the server is gone, as is usual at the end of a life.
            let _ = loader.load_all(&its_life, random, &loaded);
        });
        let (known, scans) = (Arc::clone(&self.known), Arc::clone(&self.scans));
        tasks.spawn(read(Arc::clone(life), known, scans));
    }

    /// Checks the data, makes the interrupted load again, and checks once more.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        address: SocketAddr,
        findings: &Arc<Findings>,
        figures: &mut Figures,
    ) -> Result<(), Problem> {
        let unread = |error: Error| Problem::new(NAME, format!("cannot be read: {error}"));
        check(client, &self.known).await.map_err(unread)??;
        let gone = || Problem::new(NAME, "the server is gone");
        let mut loader = Loader {
            native: Native::connect(address, NAME, findings).ok_or_else(gone)?,
            known: &self.known,
        };
        let was_pending = locked(&self.known).pending.is_some();
        loader.load_again().ok_or_else(gone)?;
        check(client, &self.known).await.map_err(unread)??;
        figures.loads += self.loaded.swap(0, Ordering::Relaxed);
        figures.repeats += u64::from(was_pending);
        figures.operations += 2 * ROWS as u64;
        figures.scans += 2 + self.scans.swap(0, Ordering::Relaxed);
        Ok(())
    }
}

/// Reads all rows and checks them.
async fn check(client: &Client, known: &Mutex<Known>) -> Result<Result<(), Problem>, Error> {
    let table = client.table(TABLE)?;
    // Loads acknowledged later may be newer than the scan, and loads offered later are not in it.
    let acknowledged = locked(known).acknowledged.clone();
    let scan = Scan::new()
        .start_row(FIRST_ROW)
        .stop_row(STOP_ROW)
        .rows_per_fetch(5);
    let rows = table.scan(scan)?.collect().await?;
    let mut found = Found::new();
    for row in rows {
        let key = row.key.clone();
        let numbers = columns(Some(row)).into_values().map(|value| number(&value));
        found.insert(key, numbers.collect());
    }
    let known = locked(known);
    let checked = loads::check(&found, LOADED.len(), &known.offered, &acknowledged);
    Ok(checked.map_err(|violation| Problem::of(NAME, violation)))
}

fn table_name() -> TableName {
    TableName {
        namespace: Bytes::from_static(b"default"),
        qualifier: Bytes::from_static(TABLE.as_bytes()),
    }
}

/// The number of a load; one that no load has if the value is no number.
fn number(value: &[u8]) -> u64 {
    <[u8; 8]>::try_from(value).map_or(u64::MAX, u64::from_be_bytes)
}

async fn read(life: Arc<Life>, known: Arc<Mutex<Known>>, scans: Arc<AtomicU64>) {
    let client = life.client(1);
    while !life.stopped() {
        match ended(NAME, &life.findings, check(&client, &known).await) {
            Ended::Done(Ok(())) => drop(scans.fetch_add(1, Ordering::Relaxed)),
            Ended::Done(Err(problem)) => return life.found(problem),
            Ended::Refused => tokio::time::sleep(BREATH).await,
            Ended::Gone => return,
        }
    }
}

/// The client that loads, in one life.
struct Loader<'a> {
    native: Native,
    known: &'a Mutex<Known>,
}

impl Loader<'_> {
    /// Loads until the server is gone.
    fn load_all(&mut self, life: &Life, mut random: SmallRng, loaded: &AtomicU64) -> Option<()> {
        self.load_again()?;
        while !life.stopped() {
            let pending = match self.draw(&mut random) {
                Ended::Done(pending) => pending,
                Ended::Refused => continue,
                Ended::Gone => return None,
            };
            let rows = pending.rows.iter().cloned().collect();
            let mut known = locked(self.known);
            known.offered.insert(pending.number, rows);
            known.pending = Some(pending);
            drop(known);
            // The receiver is gone when the life is about to end.
            let _ = life.upkeep.send(Upkeep::Begins);
            if self.load_pending()? {
                loaded.fetch_add(1, Ordering::Relaxed);
            }
        }
        Some(())
    }

    /// Makes the interrupted load again, if there is one.
    fn load_again(&mut self) -> Option<()> {
        if locked(self.known).pending.is_some() {
            self.load_pending()?;
        }
        Some(())
    }

    /// Draws rows and writes the files of a load into a staging directory.
    fn draw(&mut self, random: &mut SmallRng) -> Ended<Pending> {
        let all: Vec<Bytes> = (0..ROWS).map(|row| format!("load-{row:02}").into()).collect();
        let row = &all[random.random_range(0..ROWS)];
        let drawn = self.native.region(row, &all).and_then(|(region, inside)| {
            let begin = random.random_range(0..inside.len().max(1));
            let count = random.random_range(1..=LOADED_ROWS);
            let rows: Vec<Bytes> = inside.into_iter().skip(begin).take(count).collect();
            let request = PrepareBulkLoadRequest {
                table_name: table_name(),
                region: Some(region),
            };
            let answer = self.native.call("PrepareBulkLoad", &request);
            answer.and_then(|PrepareBulkLoadResponse { bulk_token }| Ended::Done((rows, bulk_token)))
        });
        let (rows, token) = match drawn {
            // No region has the row: it is being split or merged.
            Ended::Done((rows, _)) if rows.is_empty() => {
                self.native.evict_regions();
                return Ended::Refused;
            }
            Ended::Done(drawn) => drawn,
            Ended::Refused => return Ended::Refused,
            Ended::Gone => return Ended::Gone,
        };
        let mut known = locked(self.known);
        known.last += 1;
        let number = known.last;
        drop(known);
        match write_files(&token, number, &rows) {
            Ok(files) => Ended::Done(Pending {
                number,
                rows,
                token,
                files,
            }),
            Err(error) => self
                .native
                .found(format!("the files of a load cannot be written: {error}")),
        }
    }

    /// Makes the pending load, and cleans up. Whether it was acknowledged.
    fn load_pending(&mut self) -> Option<bool> {
        let pending = locked(self.known).pending.clone()?;
        self.check_sources(&pending)?;
        let loaded = self.send(&pending)?;
        self.check_sources(&pending)?;
        let mut known = locked(self.known);
        if loaded {
            for row in &pending.rows {
                known.acknowledged.insert(row.clone(), pending.number);
            }
        }
        // A load that was refused for its region may have been made before the kill.
        known.pending = None;
        drop(known);
        let request = CleanupBulkLoadRequest {
            bulk_token: pending.token,
            region: None,
        };
        loop {
            match self
                .native
                .call::<CleanupBulkLoadResponse>("CleanupBulkLoad", &request)
            {
                Ended::Done(_) => return Some(loaded),
                Ended::Refused => std::thread::sleep(BREATH),
                Ended::Gone => return None,
            }
        }
    }

    /// Sends a load until it is not refused. False if its rows are no longer of one region.
    fn send(&mut self, pending: &Pending) -> Option<bool> {
        loop {
            let ended = match self.native.region(&pending.rows[0], &[]) {
                Ended::Done((region, _)) => self.native.call(
                    "BulkLoadHFile",
                    &BulkLoadHFileRequest {
                        region,
                        family_path: pending.files.iter().map(family_path).collect(),
                        assign_seq_num: Some(true),
                        ..BulkLoadHFileRequest::default()
                    },
                ),
                Ended::Refused => Ended::Refused,
                Ended::Gone => Ended::Gone,
            };
            match ended {
                Ended::Done(BulkLoadHFileResponse { loaded }) => {
                    if !loaded {
                        self.native.evict_regions();
                    }
                    return Some(loaded);
                }
                Ended::Refused => std::thread::sleep(BREATH),
                Ended::Gone => return None,
            }
        }
    }

    fn check_sources(&self, pending: &Pending) -> Option<()> {
        for (_, path, bytes) in &pending.files {
            if std::fs::read(path).ok().as_ref() != Some(bytes) {
                return self.stop(format!("the file {} has changed or is gone", path.display()));
            }
        }
        Some(())
    }

    fn stop<T>(&self, what: String) -> Option<T> {
        let _: Ended<()> = self.native.found(what);
        None
    }
}

fn family_path((family, path, _): &(&'static str, PathBuf, Vec<u8>)) -> FamilyPath {
    FamilyPath {
        family: Bytes::from_static(family.as_bytes()),
        path: format!("file:{}", path.display()),
    }
}

type Files = Vec<(&'static str, PathBuf, Vec<u8>)>;

/// Writes the files of a load below its staging directory.
fn write_files(token: &str, number: u64, rows: &[Bytes]) -> basalt_engine::Result<Files> {
    let staging = PathBuf::from(token.strip_prefix("file:").unwrap_or(token));
    let mut files = Vec::new();
    for family in LOADED {
        let dir = staging.join(family);
        let io = |source| basalt_engine::Error::io("writing", &dir, source);
        RealFs.create_dir_all(&dir).map_err(io)?;
        for file in 0..FILES {
            let path = dir.join(format!("{number}-{file}"));
            let own = rows.iter().skip(file).step_by(FILES);
            write_file(&path, family, number, own)?;
            let bytes = std::fs::read(&path).map_err(io)?;
            files.push((family, path, bytes));
        }
    }
    Ok(files)
}

fn write_file<'a>(
    path: &Path,
    family: &str,
    number: u64,
    rows: impl Iterator<Item = &'a Bytes>,
) -> basalt_engine::Result<()> {
    let file = RealFs
        .open(path, Open::CreateNew)
        .map_err(|source| basalt_engine::Error::io("creating", path, source))?;
    let descriptor = FamilyDescriptor::new(family.as_bytes());
    let options = WriterOptions::of_family(&descriptor, Uuid([9; 16]), 1, SeqId::ZERO);
    let mut writer = Writer::create(file, path, options)?;
    for row in rows {
        let key = KeyBuf::new(row, family.as_bytes(), b"q", TIMESTAMP, CellType::Put);
        writer.append(Cell {
            key: key.as_key(),
            value: &number.to_be_bytes(),
            tags: b"",
            seq: SeqId::ZERO,
        })?;
    }
    writer.finish().map(drop)
}
