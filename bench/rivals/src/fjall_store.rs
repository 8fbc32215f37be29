//! fjall under the benchmarks: one keyspace with fjall's defaults, but for what the options say.
//!
//! A write without a sync goes to the system, as in the other engines, which is fjall's default. fjall counts
//! no written bytes; the report has those of the process.

use std::path::Path;

use basalt_load::engine::{
    Arguments, Compression, From, KEY_BYTES, Key, Result, Rows, Session, Standing, Store,
};
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{AbstractTree as _, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::{cannot, during};

/// fjall's version in Cargo.lock: a test compares it.
pub(crate) const VERSION: &str = "3.1.13";

/// Rows that a scan reports together, as Basalt's fetches have them.
const FETCH_ROWS: u64 = 100;

/// An open database with one keyspace.
pub(crate) struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

impl Fjall {
    pub(crate) fn open(dir: &Path, arguments: &Arguments) -> Result<Fjall> {
        if arguments.use_direct_reads {
            return Err(cannot("fjall", "read past the page cache"));
        }
        if arguments.disable_auto_compactions {
            return Err(cannot("fjall", "leave out compactions"));
        }
        let compression = match arguments.compression {
            Compression::None => CompressionType::None,
            Compression::Lz4 => CompressionType::Lz4,
            Compression::Snappy | Compression::Zstd => {
                return Err(cannot("fjall", "compress with Snappy or Zstandard"));
            }
        };
        let filter = match arguments.bloom_bits {
            0 => FilterPolicyEntry::None,
            _ => FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0)),
        };
        let builder = Database::builder(dir).cache_size(arguments.cache_size);
        let database = during("opening the database", builder.open())?;
        let options = || {
            let options = KeyspaceCreateOptions::default()
                .max_memtable_size(arguments.write_buffer_size)
                .filter_policy(FilterPolicy::all(filter))
                .data_block_compression_policy(CompressionPolicy::all(compression));
            match arguments.block_size {
                0 => options,
                bytes => options.data_block_size_policy(BlockSizePolicy::all(bytes)),
            }
        };
        let keyspace = during("opening the keyspace", database.keyspace("bench", options))?;
        Ok(Fjall { database, keyspace })
    }
}

impl Store for Fjall {
    type Session<'a> = FjallSession<'a>;

    fn session(&self) -> FjallSession<'_> {
        FjallSession { store: self }
    }

    fn compact(&self) -> Result<()> {
        during("flush", self.keyspace.rotate_memtable_and_wait())?;
        during("compaction", self.keyspace.major_compact())
    }

    fn standing(&self) -> Result<Standing> {
        let tree = &self.keyspace.tree;
        Ok(Standing {
            store_files: self.keyspace.table_count() as u64,
            store_bytes: self.keyspace.disk_space(),
            index_bytes: (tree.pinned_filter_size() + tree.pinned_block_index_size()) as u64,
            memstore_bytes: self.database.write_buffer_size(),
            ..Standing::default()
        })
    }

    fn close(self) -> Result<()> {
        during("closing the database", self.database.persist(PersistMode::Buffer))
    }
}

/// One thread's calls.
pub(crate) struct FjallSession<'a> {
    store: &'a Fjall,
}

impl FjallSession<'_> {
    fn written(&self, write: fjall::Result<()>, sync: bool) -> Result<u64> {
        during("write", write)?;
        if sync {
            during("sync", self.store.database.persist(PersistMode::SyncData))?;
        }
        Ok(0)
    }
}

impl Session for FjallSession<'_> {
    fn put(&mut self, puts: &[(Key, &[u8])], sync: bool) -> Result<u64> {
        let Fjall { database, keyspace } = self.store;
        let written = match puts {
            [(key, value)] => keyspace.insert(&key[..], *value),
            puts => {
                let mut batch = database.batch();
                for (key, value) in puts {
                    batch.insert(keyspace, &key[..], *value);
                }
                batch.commit()
            }
        };
        self.written(written, sync)
    }

    fn delete(&mut self, key: &Key, sync: bool) -> Result<u64> {
        self.written(self.store.keyspace.remove(&key[..]), sync)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<usize>> {
        let value = during("get", self.store.keyspace.get(key))?;
        Ok(value.map(|value| value.len()))
    }

    /// One after the other: fjall has no call for many keys.
    fn get_all(&mut self, keys: &[Key]) -> Result<Rows> {
        let mut read = Rows::default();
        for key in keys {
            if let Some(value_bytes) = self.get(key)? {
                read.add(KEY_BYTES + value_bytes);
            }
        }
        Ok(read)
    }

    fn scan(&mut self, from: From<'_>, rows: u64, fetched: impl FnMut(Rows)) -> Result<bool> {
        let keyspace = &self.store.keyspace;
        match from {
            From::First => read(keyspace.iter(), from, rows, fetched),
            From::Key(key) => read(keyspace.range(&key[..]..), from, rows, fetched),
            From::Last => read(keyspace.iter().rev(), from, rows, fetched),
        }
    }
}

/// Reads up to `rows` entries; returns whether the first has the key of `from`.
fn read(
    entries: impl Iterator<Item = fjall::Guard>,
    from: From<'_>,
    rows: u64,
    mut fetched: impl FnMut(Rows),
) -> Result<bool> {
    let (mut left, mut at_key, mut read) = (rows, None, Rows::default());
    for entry in entries {
        let (key, value) = during("scan", entry.into_inner())?;
        at_key.get_or_insert_with(|| from.key().is_some_and(|wanted| *key == wanted[..]));
        read.add(key.len() + value.len());
        left -= 1;
        if read.rows == FETCH_ROWS || left == 0 {
            fetched(std::mem::take(&mut read));
        }
        if left == 0 {
            break;
        }
    }
    if read.rows > 0 {
        fetched(read);
    }
    Ok(at_key == Some(true))
}
