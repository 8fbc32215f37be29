//! How long a log takes to come back.

use std::time::Duration;

use basalt_client::{Client, FamilySchema, Put, TableSchema};
use tokio::runtime::Runtime;

use super::process::{Program, Started, bytes_below};
use super::{Options, Problem};

/// Rows of one call, and bytes of a value.
const BATCH: u64 = 100;
const VALUE_BYTES: usize = 1000;

/// Measurement of a recovery.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Bytes of the log's files when the server was killed, with the preallocated space.
    pub log_bytes: u64,
    /// Rows in it.
    pub rows: u64,
    /// From the start of the process until it served, for each start. All replay the same rows: nothing is
    /// flushed.
    pub took: Vec<Duration>,
}

/// Writes that much into the log and nowhere else, kills the server, and starts it a few times. The rows must
/// all be there.
pub fn measure(options: &Options, bytes: u64, starts: usize) -> Result<Recovery, Problem> {
    let wrong = |what: String| Problem::new("server", what);
    let failed = |error: basalt_client::Error| Problem::new("server", error.to_string());
    let mut log = options.data_dir.clone();
    log.set_extension("log");
    let program = Program {
        binary: options
            .binary
            .clone()
            .unwrap_or_else(|| basalt_test_support::binary("basalt")),
        data_dir: options.data_dir.clone(),
        log,
    };
    // Nothing is flushed.
    let settings = [
        format!("memstore.flush_bytes={}", 8 * bytes),
        format!("memstore.total_bytes={}", 8 * bytes),
    ];
    let runtime = Runtime::new().map_err(|error| wrong(error.to_string()))?;
    let serve = || match program.start(&settings) {
        Ok(process) => match process.wait(None) {
            Started::Serves(address, took) => Ok((process, address.to_string(), took)),
            _ => Err(wrong(program.last_words())),
        },
        Err(problem) => Err(problem),
    };
    let (process, address, _) = serve()?;
    let rows = bytes / (VALUE_BYTES as u64 + 64);
    runtime
        .block_on(async {
            let client = Client::connect(&address).await?;
            let schema = TableSchema::new("t")?.family(FamilySchema::new("f"));
            client.create_table(schema).await?;
            let table = client.table("t")?;
            let value = vec![b'v'; VALUE_BYTES];
            for batch in 0..rows / BATCH {
                let put = |row| Put::new(format!("row-{row:012}")).cell("f", "q", &value);
                table
                    .put_multiple((batch * BATCH..(batch + 1) * BATCH).map(put))
                    .await?;
            }
            Ok(())
        })
        .map_err(failed)?;
    process.kill()?;
    let mut recovery = Recovery {
        log_bytes: bytes_below(&options.data_dir.join("wal")),
        rows: rows / BATCH * BATCH,
        took: Vec::new(),
    };
    for _ in 0..starts {
        let (process, address, took) = serve()?;
        recovery.took.push(took);
        let found = runtime.block_on(count(&address)).map_err(failed)?;
        if found != recovery.rows {
            return Err(wrong(format!("{found} rows came back of {}", recovery.rows)));
        }
        process.kill()?;
    }
    Ok(recovery)
}

async fn count(address: &str) -> Result<u64, basalt_client::Error> {
    let client = Client::connect(address).await?;
    let mut rows = client
        .table("t")?
        .scan(basalt_client::Scan::new().rows_per_fetch(1000))?;
    let mut count = 0;
    while rows.next().await?.is_some() {
        count += 1;
    }
    Ok(count)
}
