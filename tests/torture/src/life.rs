//! State shared by the clients of one life of the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use basalt_client::{Client, Codec, ConnectionOptions, FamilySchema, PoolOptions, TableSchema};
use basalt_histcheck::Columns;
use bytes::{BufMut, Bytes, BytesMut};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use super::Problem;
use super::calls::Findings;

/// Between two pieces of upkeep that clients see, and after a refusal.
pub(super) const BREATH: Duration = Duration::from_millis(2);

/// Kind of upkeep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Flush,
    Compaction,
    Split,
    Merge,
}

/// A piece of upkeep, reported to the killer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upkeep {
    /// It is being asked for.
    Begins,
    /// It is done.
    Done(Kind),
}

/// One life of the server, from serving to the kill.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) findings: Arc<Findings>,
    /// Reports pieces of upkeep to the killer.
    pub(super) upkeep: Sender<Upkeep>,
    stop: AtomicBool,
    address: String,
    seed: u64,
}

/// Tasks of clients. They end by themselves when the server is gone.
pub(super) type Tasks = JoinSet<()>;

impl Life {
    pub(super) fn new(
        findings: &Arc<Findings>,
        upkeep: Sender<Upkeep>,
        address: String,
        seed: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            findings: Arc::clone(findings),
            upkeep,
            stop: AtomicBool::new(false),
            address,
            seed,
        })
    }

    /// A client of its own. Which protocol it speaks depends on the number.
    pub(super) fn client(&self, number: u64) -> Client {
        let connection = ConnectionOptions {
            codec: if number.is_multiple_of(2) {
                Codec::Binary
            } else {
                Codec::Compact
            },
            framed: number % 4 < 2,
            ..ConnectionOptions::default()
        };
        let options = PoolOptions {
            connection,
            ..PoolOptions::default()
        };
        Client::new(&self.address, options).expect("a pool of connections that has some")
    }

    /// Where the server listens, for a client of another kind.
    pub(super) fn address(&self) -> SocketAddr {
        self.address.parse().expect("it was printed by the server")
    }

    /// Random choices of one task.
    pub(super) fn random(&self, number: u64) -> SmallRng {
        SmallRng::seed_from_u64(self.seed.wrapping_mul(1_000_003).wrapping_add(number))
    }

    /// Ends tasks that do not call the server.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn found(&self, problem: Problem) {
        self.findings.add(problem);
    }
}

/// A table whose regions are flushed and split early.
pub(super) fn small_table(name: &str, families: &[&str], random: &mut SmallRng) -> TableSchema {
    // A memstore of one cell takes 64 KiB already.
    let flush_bytes = 1 << random.random_range(18..20);
    let schema = TableSchema::new(name).expect("names of ours are well-formed");
    // Sizes as small as these are refused otherwise.
    let schema = schema
        .attribute("hbase.table.sanity.checks", "false")
        .attribute("MEMSTORE_FLUSHSIZE", flush_bytes.to_string())
        .attribute("MAX_FILESIZE", flush_bytes.to_string());
    families.iter().fold(schema, |schema, family| {
        schema.family(FamilySchema::new(*family).block_bytes(1024))
    })
}

/// `family:qualifier`.
pub(super) fn column(family: &[u8], qualifier: &[u8]) -> Bytes {
    let mut name = BytesMut::with_capacity(family.len() + 1 + qualifier.len());
    name.put_slice(family);
    name.put_u8(b':');
    name.put_slice(qualifier);
    name.freeze()
}

/// The two parts of a column's name.
pub(super) fn parts(column: &Bytes) -> (Bytes, Bytes) {
    let at = column
        .iter()
        .position(|byte| *byte == b':')
        .unwrap_or(column.len());
    (column.slice(..at), column.slice((at + 1).min(column.len())..))
}

/// A row as the checkers see it.
pub(super) fn columns(row: Option<basalt_client::Row>) -> Columns {
    let cells = row.map(|row| row.cells).unwrap_or_default();
    cells
        .into_iter()
        .map(|cell| (column(&cell.family, &cell.qualifier), cell.value))
        .collect()
}
