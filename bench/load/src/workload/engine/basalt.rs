//! Basalt's engine under the benchmarks: a key is a row with one cell, family `f` and empty qualifier.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::engine::Fetched;
use basalt_engine::op::{FetchLimits, Get, ReadSpec, ReadTier, RowMutation, Scan, Write};
use basalt_engine::options::{Options, WalSync};
use basalt_engine::schema::{Durability, FamilyDescriptor, TableDescriptor, TableName};
use basalt_engine::{Engine, Kind};

use super::keys::{KEY_BYTES, Key};
use super::standing::Standing;
use super::store::{From, Rows, Session, Store};
use super::{BasaltArguments, Compression};
use crate::error::{Error, Result};

/// The family of all cells.
const FAMILY: &[u8] = b"f";

/// Rows and bytes of one fetch from a scanner: those of the server's fetches.
const FETCH: FetchLimits = FetchLimits {
    results: 100,
    bytes: 2 << 20,
    time: Duration::from_secs(1),
};

/// Pause before a refused write is tried again.
const STALL: Duration = Duration::from_millis(1);

/// An open engine with the one table of the benchmarks.
#[derive(Debug)]
pub(super) struct Basalt {
    engine: Arc<Engine>,
    table: TableName,
    /// Whether gets of many keys read blocks ahead.
    read_ahead: bool,
}

/// Names the step that failed.
fn during<T>(during: &'static str, result: basalt_engine::Result<T>) -> Result<T> {
    result.map_err(|source| Error::Engine { during, source })
}

impl Basalt {
    /// Opens the directory, and creates the table if it is not there.
    pub(super) fn open(dir: &Path, own: &BasaltArguments) -> Result<Basalt> {
        let arguments = &own.common;
        let options = Options {
            wal_sync: WalSync::Os,
            block_cache_bytes: arguments.cache_size,
            direct_reads: arguments.use_direct_reads,
            memstore_flush_bytes: arguments.write_buffer_size,
            read_threads: own.read_threads as usize,
            compaction_enabled: !arguments.disable_auto_compactions,
            ..Options::default()
        };
        let opened = Engine::builder().options(options).open(dir);
        let engine = during("opening the database", opened)?;
        let table = during("table name", TableName::parse(b"bench"))?;
        if engine.describe_table(&table).is_err() {
            let descriptor = TableDescriptor::new(table.clone(), vec![family(own)?]);
            during("creating the table", engine.create_table(descriptor, Vec::new()))?;
        }
        Ok(Basalt {
            engine,
            table,
            read_ahead: own.read_threads > 0,
        })
    }
}

fn family(own: &BasaltArguments) -> Result<FamilyDescriptor> {
    let arguments = &own.common;
    let with =
        |family: FamilyDescriptor, name, value: &str| during("family options", family.with(name, value));
    let mut family = FamilyDescriptor::new(FAMILY);
    if arguments.compression != Compression::None {
        family = with(family, "COMPRESSION", arguments.compression.as_attribute())?;
    }
    family = with(family, "DATA_BLOCK_ENCODING", own.encoding.as_attribute())?;
    if arguments.bloom_bits == 0 {
        family = with(family, "BLOOMFILTER", "NONE")?;
    }
    if arguments.block_size > 0 {
        family = with(family, "BLOCKSIZE", &arguments.block_size.to_string())?;
    }
    Ok(family)
}

impl Store for Basalt {
    type Session<'a> = BasaltSession<'a>;

    fn session(&self) -> BasaltSession<'_> {
        BasaltSession {
            store: self,
            batch: CellBatch::new(),
            gets: Vec::new(),
        }
    }

    fn compact(&self) -> Result<()> {
        during("flush", self.engine.flush(&self.table))?;
        during(
            "compaction",
            self.engine.compact(&self.table, None, true, true).map(drop),
        )
    }

    fn standing(&self) -> Result<Standing> {
        let counters = self.engine.counters();
        let cache = self.engine.cache_usage();
        let mut standing = Standing {
            index_bytes: cache.pinned_bytes,
            wal_bytes: Some(counters.wal_bytes.get()),
            flush_bytes: Some(counters.flush_bytes.get()),
            compaction_bytes: Some(counters.compaction_written_bytes.get()),
            minor_compactions: Some(counters.minor_compactions.get()),
            major_compactions: Some(counters.major_compactions.get()),
            cache_hits: Some(cache.hits.iter().sum()),
            cache_misses: Some(cache.misses),
            ..Standing::default()
        };
        for region in during(
            "figures of the regions",
            self.engine.table_region_stats(&self.table),
        )? {
            standing.store_files += region.store_files;
            standing.store_bytes += region.store_file_bytes;
            standing.memstore_bytes += region.memstore_bytes;
            if let Some((_, version)) = self.engine.region_view(&region.region.encoded_name) {
                let files = version.stores.iter().flat_map(|store| &store.files);
                standing.index_bytes += files.map(|file| file.reader().resident_bytes()).sum::<u64>();
            }
        }
        Ok(standing)
    }

    fn close(self) -> Result<()> {
        during("closing the database", self.engine.close())
    }
}

/// One thread's calls of the engine.
#[derive(Debug)]
pub(super) struct BasaltSession<'a> {
    store: &'a Basalt,
    /// Filled and cleared by every read.
    batch: CellBatch,
    /// Gets of one batch.
    gets: Vec<(Key, ReadSpec)>,
}

/// One write to a row.
fn mutation<'a>(row: &'a Key, write: Write<'a>, sync: bool) -> RowMutation<'a> {
    RowMutation {
        row,
        writes: [write].into(),
        durability: if sync {
            Durability::FsyncWal
        } else {
            Durability::UseDefault
        },
    }
}

impl BasaltSession<'_> {
    /// Applies writes together; returns how often they were refused and tried again.
    fn mutate(&self, mutations: &[RowMutation<'_>]) -> Result<u64> {
        let mut stalls = 0;
        loop {
            let written = self.store.engine.mutate(&self.store.table, mutations);
            let written = written.and_then(|commit| {
                let pause = commit.pause();
                commit.wait().map(|()| pause)
            });
            match written {
                Ok(pause) => {
                    std::thread::sleep(pause);
                    return Ok(stalls);
                }
                Err(error) if error.kind() == Kind::Retry => {
                    stalls += 1;
                    std::thread::sleep(STALL);
                }
                Err(source) => {
                    return Err(Error::Engine {
                        during: "write",
                        source,
                    });
                }
            }
        }
    }

    /// Rows of the batch.
    fn rows(&self) -> Rows {
        let mut rows = Rows::default();
        for result in self.batch.rows() {
            let values = result.cells().map(|cell| cell.value.len()).sum::<usize>();
            rows.add(KEY_BYTES + values);
        }
        rows
    }
}

impl Session for BasaltSession<'_> {
    fn put(&mut self, puts: &[(Key, &[u8])], sync: bool) -> Result<u64> {
        let put = |value| Write::Put {
            family: FAMILY,
            qualifier: b"",
            timestamp: None,
            value,
            ttl_ms: None,
        };
        match puts {
            [(key, value)] => self.mutate(&[mutation(key, put(value), sync)]),
            puts => {
                let mutations = puts.iter().map(|(key, value)| mutation(key, put(value), sync));
                self.mutate(&mutations.collect::<Vec<_>>())
            }
        }
    }

    fn delete(&mut self, key: &Key, sync: bool) -> Result<u64> {
        let delete = Write::DeleteFamily {
            family: FAMILY,
            timestamp: None,
        };
        self.mutate(&[mutation(key, delete, sync)])
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<usize>> {
        self.batch.clear();
        let get = Get {
            row: key,
            spec: ReadSpec::default(),
        };
        let Basalt { engine, table, .. } = self.store;
        during("get", engine.get(table, &get, &mut self.batch))?;
        let found = self.batch.rows().next();
        Ok(found.map(|row| row.cells().map(|cell| cell.value.len()).sum()))
    }

    /// As the server does for one call: from memory up to the first row that has to be read from
    /// disk, then with the blocks of the others read ahead.
    fn get_all(&mut self, keys: &[Key]) -> Result<Rows> {
        let Basalt { engine, table, .. } = self.store;
        self.batch.clear();
        self.gets.clear();
        self.gets
            .extend(keys.iter().map(|key| (*key, ReadSpec::default())));
        let mut ahead = if self.store.read_ahead { 0 } else { keys.len() };
        let mut done = 0;
        while let Some((row, spec)) = self.gets.get(done) {
            let tier = if done < ahead {
                ReadTier::All
            } else {
                ReadTier::Memory
            };
            let result = engine.get_within(table, row, spec, tier, &mut self.batch);
            if matches!(result, Err(basalt_engine::Error::NotInMemory)) {
                self.batch.abandon_row();
                ahead = done + engine.read_ahead(table, &self.gets[done..]);
                continue;
            }
            during("get", result)?;
            done += 1;
        }
        Ok(self.rows())
    }

    fn scan(&mut self, from: From<'_>, rows: u64, mut fetched: impl FnMut(Rows)) -> Result<bool> {
        let scan = Scan {
            start_row: from.key().map_or_else(Vec::new, |key| key.to_vec()),
            reversed: from == From::Last,
            limit: Some(rows),
            ..Scan::default()
        };
        let mut scanner = during("scan", self.store.engine.scan(&self.store.table, scan))?;
        let mut at_key = None;
        loop {
            self.batch.clear();
            let more = during("fetch", scanner.fetch(&FETCH, &mut self.batch))?;
            at_key = at_key.or_else(|| {
                let first = self.batch.rows().next()?;
                Some(from.key().is_some_and(|key| first.key() == key))
            });
            fetched(self.rows());
            if more != Fetched::More {
                return Ok(at_key == Some(true));
            }
        }
    }
}
