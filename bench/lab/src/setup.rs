//! A server, tables that are created for one run, and the server's counters: shared by `family`, `orders` and
//! `twibase`.
//!
//! 1. [`Lab::connect`] detects the server.
//! 2. A part makes its tables ([`Lab::create`]), fills them ([`Lab::fill`]) and brings them to rest
//!    ([`Lab::settle`]).
//! 3. It asks each way the same questions ([`Lab::ask`]); the answers are compared ([`super::compare`]).
//! 4. Tables are dropped, unless they are to be kept ([`Lab::drop_tables`]).
//!
//! Figures that a server does not report are `None` all the way to the report. HBase reports
//! nothing through Thrift but its answers.

use std::sync::Arc;
use std::time::Duration;

use basalt_client::admin::Compaction;
use basalt_client::{FamilySchema, TableSchema};
use basalt_load::data::Data;
use basalt_load::error::{During, Error, Result};
use basalt_load::load::options::LoadOptions;
use basalt_load::load::{self, Plan};
use basalt_load::session::RowCells;
use basalt_load::tables::Tables;
use basalt_load::target::Target;

use super::fill::{Filled, Filling};
use crate::claims::LabReport;

/// Rows of one put while a table is filled.
const BATCH: u64 = 200;

/// Options that these workloads share.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LabOptions {
    #[command(flatten)]
    pub(crate) load: LoadOptions,
    /// Tables are named so, with their part in the run behind.
    #[arg(long, default_value = "lab_")]
    pub(crate) table_prefix: String,
    /// Leave the tables in place.
    #[arg(long)]
    pub(crate) keep_tables: bool,
    /// Drop tables of these names that exist already.
    #[arg(long)]
    pub(crate) replace_tables: bool,
}

/// A server to put claims to the test on.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) options: LabOptions,
    pub(crate) target: Target,
    /// The source of values.
    pub(crate) data: Data,
}

/// Disk usage of tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) files: f64,
    pub(crate) file_bytes: f64,
}

/// The server's counts since its start; of the whole server but for `rows_read`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerCounts {
    /// Blocks that reads looked for in the cache; pinned index blocks and bloom filters are not among them.
    pub(crate) blocks: f64,
    /// Blocks that were not in the cache.
    pub(crate) misses: f64,
    pub(crate) evictions: f64,
    /// Rows that gets and scans of the tables read.
    pub(crate) rows_read: f64,
}

impl ServerCounts {
    pub(crate) fn since(self, before: ServerCounts) -> ServerCounts {
        ServerCounts {
            blocks: self.blocks - before.blocks,
            misses: self.misses - before.misses,
            evictions: self.evictions - before.evictions,
            rows_read: self.rows_read - before.rows_read,
        }
    }
}

impl Lab {
    pub(crate) async fn connect(options: &LabOptions) -> Result<Lab> {
        let connections = usize::try_from(options.load.threads).unwrap_or(usize::MAX);
        let data = options.load.data.read()?;
        Ok(Lab {
            data,
            target: Target::connect(&options.load.target, connections).await?,
            options: options.clone(),
        })
    }

    /// Adds the shared options to a report.
    pub(crate) fn describe(&self, report: &mut LabReport) {
        let load = &self.options.load;
        report.set("api", load.target.api.name());
        report.set("pace", load.pace_text());
        report.set("threads", load.threads);
        report.set("seed", load.seed);
        report.set("data", self.data.name());
    }

    /// The full name of a table.
    pub(crate) fn table(&self, name: &str) -> String {
        format!("{}{name}", self.options.table_prefix)
    }

    fn tables(&self) -> Tables<'_> {
        Tables {
            target: &self.target,
            replace: self.options.replace_tables,
        }
    }

    /// Creates a table and returns its full name. With `compactions` false, its files stay as they were
    /// flushed until a compaction is asked for.
    pub(crate) async fn create(
        &self,
        name: &str,
        families: Vec<FamilySchema>,
        compactions: bool,
    ) -> Result<String> {
        let name = self.table(name);
        let schema = TableSchema::new(&name).during(|| format!("name of table {name}"))?;
        let mut schema = families.into_iter().fold(schema, TableSchema::family);
        if !compactions {
            schema = schema.attribute("COMPACTION_ENABLED", "false");
        }
        self.tables().create_schema(&name, schema, Vec::new()).await?;
        Ok(name)
    }

    /// Drops the tables, unless they are to be kept.
    pub(crate) async fn drop_tables(&self, tables: &[String]) -> Result<()> {
        if self.options.keep_tables {
            return Ok(());
        }
        for table in tables {
            self.tables().drop(table).await?;
        }
        Ok(())
    }

    /// A plan of exactly `operations` operations, without a time limit or warm-up.
    pub(crate) fn whole_plan(&self, label: &str, operations: u64, rows_per_operation: u64) -> Plan {
        Plan {
            rows_per_operation,
            duration: None,
            warm_up: Duration::ZERO,
            pace: load::pacing::Pace::Closed,
            ..self.options.load.plan(label, Some(operations))
        }
    }

    /// Writes rows 0 to `rows` of a table; an error if any is refused for good. Without the log if
    /// `skip_wal`.
    pub(crate) async fn fill<F>(&self, table: &str, rows: u64, skip_wal: bool, row: F) -> Result<Filled>
    where
        F: Fn(u64) -> RowCells + Send + Sync + 'static,
    {
        let batch = BATCH.min(rows.max(1));
        let plan = self.whole_plan(table, rows.div_ceil(batch), batch);
        let filling = Arc::new(Filling {
            target: self.options.load.target.clone(),
            table: table.to_owned(),
            skip_wal,
            rows,
            batch,
            row,
        });
        let (measured, workers) = load::run(plan, &filling).await?;
        if measured.rows() != rows {
            let first = measured.failures.first.as_deref();
            return Err(Error::Different(format!(
                "table {table}: {} of {rows} rows were written: {}",
                measured.rows(),
                first.unwrap_or("the server gave no reason")
            )));
        }
        Ok(Filled {
            calls: measured.operations() as f64,
            bytes: workers.iter().map(|worker| worker.bytes).sum::<u64>() as f64,
            seconds: measured.elapsed.as_secs_f64(),
        })
    }

    /// Flushes the table and merges its files into one a family and region, where the server can be asked to.
    pub(crate) async fn settle(&self, table: &str) -> Result<()> {
        self.flush(table).await?;
        self.compact(table).await
    }

    pub(crate) async fn flush(&self, table: &str) -> Result<()> {
        self.tables().flush(table).await
    }

    /// A major compaction, where the server can be asked to.
    pub(crate) async fn compact(&self, table: &str) -> Result<()> {
        if !self.target.is_basalt {
            return Ok(());
        }
        let compaction = Compaction {
            family: None,
            major: true,
            wait: true,
        };
        let compacted = self.target.admin.compact(table, compaction).await;
        compacted.during(|| format!("compacting table {table}"))
    }

    /// Disk usage of tables; `None` where the server does not report it.
    pub(crate) async fn sizes(&self, tables: &[String]) -> Result<Option<Sizes>> {
        if !self.target.is_basalt {
            return Ok(None);
        }
        let mut sizes = Sizes::default();
        for table in tables {
            let regions = self.target.admin.regions(Some(table)).await;
            for region in regions.during(|| format!("measuring the files of table {table}"))? {
                sizes.files += f64::from(region.store_files);
                sizes.file_bytes += region.store_file_bytes as f64;
            }
        }
        Ok(Some(sizes))
    }

    /// The server's counts; `None` where it does not report them.
    pub(crate) async fn counts(&self, tables: &[String]) -> Result<Option<ServerCounts>> {
        if !self.target.is_basalt {
            return Ok(None);
        }
        let during = || "counts of the server".to_owned();
        let cache = self.target.admin.block_cache().await.during(during)?;
        let mut rows_read = 0i64;
        for table in tables {
            let regions = self.target.admin.regions(Some(table)).await.during(during)?;
            rows_read += regions.iter().map(|region| region.read_requests).sum::<i64>();
        }
        Ok(Some(ServerCounts {
            blocks: (cache.hits + cache.misses) as f64,
            misses: cache.misses as f64,
            evictions: cache.evictions as f64,
            rows_read: rows_read as f64,
        }))
    }
}
