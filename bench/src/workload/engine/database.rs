//! The database under test: opening, emptying, closing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::Engine;
use basalt_engine::options::{Options, WalSync};
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};

use super::{Arguments, Compression};
use crate::error::{Error, Result};

/// The family of all cells.
pub(super) const FAMILY: &[u8] = b"f";

/// An open engine with the one table of the benchmarks.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) engine: Arc<Engine>,
    pub(super) table: TableName,
    pub(super) dir: PathBuf,
    /// How long the engine took to open.
    pub(super) open_time: Duration,
}

/// Names the step that failed.
pub(super) fn during<T>(during: &'static str, result: basalt_engine::Result<T>) -> Result<T> {
    result.map_err(|source| Error::Engine { during, source })
}

/// A file by which a directory is known that this tool made, and so may empty.
const MARK: &str = "BASALT-BENCH";

impl Database {
    /// Opens the directory, and creates the table if it is not there.
    pub(super) fn open(arguments: &Arguments) -> Result<Database> {
        let dir = arguments.db.clone();
        let file = |source| Error::File {
            path: dir.clone(),
            source,
        };
        fs::create_dir_all(&dir).map_err(file)?;
        if is_empty(&dir).map_err(file)? {
            fs::write(dir.join(MARK), "Benchmarks empty this directory.\n").map_err(file)?;
        } else if !dir.join(MARK).exists() {
            return Err(Error::Usage(format!(
                "{} is neither empty nor made by this tool: give another directory",
                dir.display()
            )));
        }
        let options = Options {
            wal_sync: WalSync::Os,
            block_cache_bytes: arguments.cache_size,
            direct_reads: arguments.use_direct_reads,
            memstore_flush_bytes: arguments.write_buffer_size,
            read_threads: arguments.read_threads as usize,
            compaction_enabled: !arguments.disable_auto_compactions,
            ..Options::default()
        };
        let began = Instant::now();
        let opened = Engine::builder().options(options).open(dir.join("data"));
        let engine = during("opening the database", opened)?;
        let open_time = began.elapsed();
        let table = during("table name", TableName::parse(b"bench"))?;
        if engine.describe_table(&table).is_err() {
            let descriptor = TableDescriptor::new(table.clone(), vec![family(arguments)?]);
            during("creating the table", engine.create_table(descriptor, Vec::new()))?;
        }
        Ok(Database {
            engine,
            table,
            dir,
            open_time,
        })
    }

    /// An empty database with the same options.
    pub(super) fn emptied(self, arguments: &Arguments) -> Result<Database> {
        let dir = self.dir.clone();
        self.close()?;
        let data = dir.join("data");
        fs::remove_dir_all(&data).map_err(|source| Error::File { path: data, source })?;
        Database::open(arguments)
    }

    pub(super) fn close(self) -> Result<()> {
        during("closing the database", self.engine.close())
    }
}

fn is_empty(dir: &Path) -> std::io::Result<bool> {
    Ok(fs::read_dir(dir)?.next().is_none())
}

fn family(arguments: &Arguments) -> Result<FamilyDescriptor> {
    let with =
        |family: FamilyDescriptor, name, value: &str| during("family options", family.with(name, value));
    let mut family = FamilyDescriptor::new(FAMILY);
    if arguments.compression != Compression::None {
        family = with(family, "COMPRESSION", arguments.compression.as_attribute())?;
    }
    family = with(family, "DATA_BLOCK_ENCODING", arguments.encoding.as_attribute())?;
    if arguments.bloom_bits == 0 {
        family = with(family, "BLOOMFILTER", "NONE")?;
    }
    if arguments.block_size > 0 {
        family = with(family, "BLOCKSIZE", &arguments.block_size.to_string())?;
    }
    Ok(family)
}
