//! RocksDB under the benchmarks, with the settings of its db_bench, its faster block cache (HyperClockCache)
//! and hash indexes in its blocks.
//!
//! Its counters cost time, so they run only when a report is written (`--out`), which is where they appear.

use std::path::Path;

use basalt_load::engine::{
    Arguments, Compression, From, KEY_BYTES, Key, Result, Rows, Session, Standing, Store,
};
use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, CStrLike, Cache, ColumnFamilyDescriptor, CompactOptions,
    DB, DBCompressionType, DBRawIterator, DEFAULT_COLUMN_FAMILY_NAME, DataBlockIndexType, Options,
    ReadOptions, WriteBatch, WriteOptions, properties,
};

use crate::during;

/// The version of RocksDB that the crate in Cargo.lock holds: a test compares it.
pub(crate) const VERSION: &str = "11.8.1";

/// Rows that a scan reports together, as Basalt's fetches have them.
const FETCH_ROWS: u64 = 100;

/// An open database.
pub(crate) struct RocksDb {
    database: DB,
    /// Has the counters.
    options: Options,
    /// Whether it counts.
    counts: bool,
}

impl RocksDb {
    pub(crate) fn open(dir: &Path, arguments: &Arguments, index_in_cache: bool) -> Result<RocksDb> {
        let options = options(arguments, index_in_cache);
        let families = [ColumnFamilyDescriptor::new(
            DEFAULT_COLUMN_FAMILY_NAME,
            options.clone(),
        )];
        let opened = DB::open_cf_descriptors(&options, dir, families);
        Ok(RocksDb {
            database: during("opening the database", opened)?,
            options,
            counts: arguments.out.is_some(),
        })
    }

    fn counter(&self, ticker: Ticker) -> Option<u64> {
        self.counts.then(|| self.options.get_ticker_count(ticker))
    }

    fn figure(&self, name: impl CStrLike) -> Result<u64> {
        let value = during("figures of the database", self.database.property_int_value(name))?;
        Ok(value.unwrap_or(0))
    }
}

fn options(arguments: &Arguments, index_in_cache: bool) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_hyper_clock_cache(arguments.cache_size as usize, 0));
    blocks.set_cache_index_and_filter_blocks(index_in_cache);
    blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    blocks.set_data_block_hash_ratio(0.75);
    if arguments.block_size > 0 {
        blocks.set_block_size(arguments.block_size as usize);
    }
    if arguments.bloom_bits != 0 {
        blocks.set_bloom_filter(10.0, false);
    }
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(match arguments.compression {
        Compression::None => DBCompressionType::None,
        Compression::Snappy => DBCompressionType::Snappy,
        Compression::Lz4 => DBCompressionType::Lz4,
        Compression::Zstd => DBCompressionType::Zstd,
    });
    options.set_write_buffer_size(arguments.write_buffer_size as usize);
    options.set_use_direct_reads(arguments.use_direct_reads);
    options.set_enable_pipelined_write(true);
    if arguments.disable_auto_compactions {
        options.set_disable_auto_compactions(true);
        // It would stop writes for the number of files that has no compaction.
        options.set_level_zero_slowdown_writes_trigger(i32::MAX);
        options.set_level_zero_stop_writes_trigger(i32::MAX);
    }
    if arguments.out.is_some() {
        options.enable_statistics();
        options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    }
    options
}

impl Store for RocksDb {
    type Session<'a> = RocksDbSession<'a>;

    fn session(&self) -> RocksDbSession<'_> {
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        RocksDbSession {
            database: &self.database,
            read: ReadOptions::default(),
            plain: WriteOptions::default(),
            synced,
        }
    }

    fn compact(&self) -> Result<()> {
        during("flush", self.database.flush())?;
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        self.database
            .compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }

    fn standing(&self) -> Result<Standing> {
        let files = during("figures of the database", self.database.live_files())?;
        Ok(Standing {
            store_files: files.len() as u64,
            store_bytes: self.figure(properties::LIVE_SST_FILES_SIZE)?,
            index_bytes: self.figure(properties::ESTIMATE_TABLE_READERS_MEM)?,
            memstore_bytes: self.figure(properties::CUR_SIZE_ALL_MEM_TABLES)?,
            wal_bytes: self.counter(Ticker::WalFileBytes),
            flush_bytes: self.counter(Ticker::FlushWriteBytes),
            compaction_bytes: self.counter(Ticker::CompactWriteBytes),
            cache_hits: self.counter(Ticker::BlockCacheHit),
            cache_misses: self.counter(Ticker::BlockCacheMiss),
            ..Standing::default()
        })
    }

    fn close(self) -> Result<()> {
        drop(self.database);
        Ok(())
    }
}

/// One thread's calls.
pub(crate) struct RocksDbSession<'a> {
    database: &'a DB,
    read: ReadOptions,
    plain: WriteOptions,
    synced: WriteOptions,
}

impl RocksDbSession<'_> {
    fn write_options(&self, sync: bool) -> &WriteOptions {
        if sync { &self.synced } else { &self.plain }
    }
}

impl Session for RocksDbSession<'_> {
    fn put(&mut self, puts: &[(Key, &[u8])], sync: bool) -> Result<u64> {
        let options = self.write_options(sync);
        let written = match puts {
            [(key, value)] => self.database.put_opt(key, value, options),
            puts => {
                let mut batch = WriteBatch::default();
                for (key, value) in puts {
                    batch.put(key, value);
                }
                self.database.write_opt(batch, options)
            }
        };
        during("write", written)?;
        Ok(0)
    }

    fn delete(&mut self, key: &Key, sync: bool) -> Result<u64> {
        let written = self.database.delete_opt(key, self.write_options(sync));
        during("write", written)?;
        Ok(0)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<usize>> {
        let value = during("get", self.database.get_pinned_opt(key, &self.read))?;
        Ok(value.map(|value| value.len()))
    }

    fn get_all(&mut self, keys: &[Key]) -> Result<Rows> {
        let family = self.database.cf_handle(DEFAULT_COLUMN_FAMILY_NAME);
        let family = family.expect("the database was opened with this family");
        let values = self
            .database
            .batched_multi_get_cf_opt(&family, keys, false, &self.read);
        let mut read = Rows::default();
        for value in values {
            if let Some(value) = during("get", value)? {
                read.add(KEY_BYTES + value.len());
            }
        }
        Ok(read)
    }

    fn scan(&mut self, from: From<'_>, rows: u64, mut fetched: impl FnMut(Rows)) -> Result<bool> {
        let mut entries: DBRawIterator<'_> = self.database.raw_iterator_opt(ReadOptions::default());
        match from {
            From::First => entries.seek_to_first(),
            From::Key(key) => entries.seek(key),
            From::Last => entries.seek_to_last(),
        }
        let at_key = from.key().is_some_and(|key| entries.key() == Some(&key[..]));
        let mut left = rows;
        let mut read = Rows::default();
        while let Some((key, value)) = entries.item() {
            read.add(key.len() + value.len());
            left -= 1;
            if read.rows == FETCH_ROWS || left == 0 {
                fetched(std::mem::take(&mut read));
            }
            if left == 0 {
                break;
            }
            match from {
                From::Last => entries.prev(),
                From::First | From::Key(_) => entries.next(),
            }
        }
        if read.rows > 0 {
            fetched(read);
        }
        during("scan", entries.status())?;
        Ok(at_key)
    }
}
