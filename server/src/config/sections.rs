//! The settings, section by section, each with its default.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Declares a section: fields with documentation, type and default.
macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident : $type:ty = $default:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type),+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }
    };
}

const MIB: u64 = 1 << 20;

section! {
    /// Where the data lies.
    Data {
        /// The data directory. Created when missing.
        dir: PathBuf = "basalt-data".into(),
    }
}

section! {
    /// Bulk loads of HBase's native clients.
    Bulkload {
        /// Directories from which clients may load HFiles, besides the server's own staging
        /// directory. Absolute paths.
        directories: Vec<PathBuf> = Vec::new(),
    }
}

/// Protocols that a connection may speak.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ThriftProtocol {
    /// Found from the first bytes.
    Auto,
    /// TBinaryProtocol.
    Binary,
    /// TCompactProtocol.
    Compact,
}

/// Transports that a connection may use.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ThriftTransport {
    /// Found from the first bytes.
    Auto,
    /// TFramedTransport.
    Framed,
    /// TBufferedTransport: messages without a length.
    Unframed,
}

section! {
    /// Address at which clients reach the server.
    Server {
        /// Host, or host and port, by which HBase's native clients reach this server. The ZooKeeper
        /// nodes and `hbase:meta` name it. `auto`: the address of the Thrift port.
        advertise: String = "auto".into(),
    }
}

section! {
    /// The Thrift port.
    Thrift {
        /// Address of the Thrift port.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9090)),
        /// Pins the protocol.
        protocol: ThriftProtocol = ThriftProtocol::Auto,
        /// Pins the transport.
        transport: ThriftTransport = ThriftTransport::Auto,
        /// What `getThriftServerType` answers on a connection that has called nothing else: 1 or 2.
        default_api: u8 = 2,
        /// Most connections at once; one more is closed as soon as it is accepted.
        max_connections: usize = 10_000,
        /// Largest message, framed or not.
        max_message_bytes: usize = 64 << 20,
        /// Most cells of one call: a cell of a few bytes takes many times as much memory once
        /// decoded. By default one for each 64 bytes of `max_message_bytes`.
        max_cells_per_call: usize = (64 << 20) / 64,
        /// A message that has begun must be complete after this.
        message_timeout_ms: u64 = 30_000,
        /// A connection without a call is closed after this; 0: never, TCP keepalive finds the dead ones.
        idle_timeout_ms: u64 = 0,
        /// A client that does not read its answer is disconnected after this.
        write_timeout_ms: u64 = 30_000,
        /// Largest answer to one get or multi-get. At this size, a scan of one call and a fetch of
        /// Thrift 1 begin no further row.
        max_response_bytes: usize = 64 << 20,
        /// Accepts listening on other addresses than loopback although nobody is authenticated.
        insecure_no_auth: bool = false,
    }
}

section! {
    /// The HTTP port: metrics, health, status pages, Thrift calls. Limits of Thrift messages are those of the Thrift port.
    Http {
        /// Address of the HTTP port.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9095)),
        /// Most connections at once; one more is closed as soon as it is accepted.
        max_connections: usize = 10_000,
        /// Host names that the port accepts, besides IP addresses and `localhost`.
        allowed_hosts: Vec<String> = Vec::new(),
        /// Whether a POST to `/debug/pprof/profile` takes a profile.
        profiles: bool = false,
    }
}

section! {
    /// Calls in hand, of both ports. A call beyond a limit is refused with RegionTooBusyException.
    Requests {
        /// Most bytes of messages, arguments, results and replies in hand, reserved before they are
        /// allocated.
        memory_bytes: u64 = 512 * MIB,
        /// Most calls that wait for a thread, for disk or for row locks.
        max_waiting: usize = 2_000,
        /// A data call that has waited so long for a thread is refused; 0: none is.
        max_wait_ms: u64 = 0,
        /// Network threads that are later than this refuse a share of the data calls; 0: they never do.
        max_delay_ms: u64 = 500,
    }
}

section! {
    /// Quotas of tables, namespaces and users, and what happens to calls that have to wait for them or for a virtual server.
    Quota {
        /// Longest time for which a call is held back; one that would have to wait longer is refused.
        max_wait_ms: u64 = 10_000,
        /// The user whose quotas count for all calls, since nobody is authenticated.
        user: String = "hbase".into(),
    }
}

section! {
    /// The rehearsal of a cluster. Each limit is that of one virtual server; 0: none.
    Rehearsal {
        /// Virtual servers; 0: no rehearsal.
        servers: usize = 0,
        /// Rows read and written in a second.
        requests_per_second: u64 = 0,
        /// Rows read in a second.
        read_requests_per_second: u64 = 0,
        /// Rows written in a second.
        write_requests_per_second: u64 = 0,
        /// Bytes read and written in a second.
        bytes_per_second: u64 = 0,
        /// Bytes read in a second.
        read_bytes_per_second: u64 = 0,
        /// Bytes written in a second.
        write_bytes_per_second: u64 = 0,
    }
}

section! {
    /// Scanner sessions.
    Scanner {
        /// A scanner that is not fetched from for this long is closed.
        lease_ms: u64 = 60_000,
        /// Most open scanners.
        max_sessions: usize = 10_000,
        /// Most open scanners of one connection of the Thrift port.
        max_sessions_per_connection: usize = 1_000,
        /// Most open scanners of all calls over HTTP together.
        max_http_sessions: usize = 1_000,
        /// A scanner that has been open for this long is closed, however often it is fetched from; 0: never.
        max_age_ms: u64 = 24 * 3_600_000,
        /// A fetch stops beginning new rows at this many bytes.
        fetch_max_bytes: usize = 16 << 20,
        /// A fetch returns what it has after this long.
        fetch_max_ms: u64 = 10_000,
    }
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum WalSync {
    /// Power loss: fdatasync before the answer.
    Fsync,
    /// kill -9: handed to the operating system before the answer.
    Os,
}

section! {
    /// Write-ahead log.
    Wal {
        /// When a write is acknowledged: `fsync` or `os`.
        sync: WalSync = WalSync::Fsync,
        /// Size of a segment.
        segment_bytes: u64 = 64 * MIB,
        /// While the disk keeps the log waiting for longer, new writes are refused.
        stall_ms: u64 = 5_000,
    }
}

section! {
    /// Memory as a whole.
    Memory {
        /// What memstores, block cache and calls in hand may take together. Where one of them is not set, it gets its part of this;
        /// 0: each has its own default.
        total_bytes: u64 = 0,
    }
}

section! {
    /// Memstores.
    Memstore {
        /// A region with more in its memstores is flushed.
        flush_bytes: u64 = 128 * MIB,
        /// A region with this many times `flush_bytes` refuses writes.
        block_multiplier: u64 = 4,
        /// All memstores together; writes are refused above.
        total_bytes: u64 = 1024 * MIB,
    }
}

section! {
    /// Block cache.
    BlockCache {
        /// Capacity.
        bytes: u64 = 1024 * MIB,
        /// Gets read blocks past the system's page cache; scans, flushes and compactions go through it.
        direct_reads: bool = false,
    }
}

section! {
    /// Store files.
    Store {
        /// Most store files open at a time; 0: as many as the limit of open files has room for.
        max_open_files: usize = 0,
    }
}

section! {
    /// Regions.
    Region {
        /// A region with a larger store splits.
        max_bytes: u64 = 10 * 1024 * MIB,
    }
}

section! {
    /// Rows and cells.
    Row {
        /// Longest wait for a row's lock.
        lock_wait_ms: u64 = 30_000,
        /// Largest cell, key and value together; 0: no limit.
        cell_max_bytes: usize = 10 << 20,
        /// Largest row, or piece of one, that a read collects. By default a third of
        /// `requests.memory_bytes`, 1 GiB at most.
        max_bytes: usize = (512 << 20) / 3,
    }
}

section! {
    /// Flushes.
    Flush {
        /// Threads.
        threads: usize = 1,
    }
}

section! {
    /// Compactions.
    Compaction {
        /// Threads for short ones, and for splits.
        threads: usize = 1,
        /// Threads for long ones.
        long_threads: usize = 1,
        /// One that reads so many bytes is long.
        long_bytes: u64 = 2560 * MIB,
        /// Whether stores are compacted without being asked to.
        enabled: bool = true,
        /// Fewest files of a minor compaction.
        min_files: usize = 3,
        /// Most files of one compaction.
        max_files: usize = 10,
        /// A file may be this many times as large as the others together.
        ratio: f64 = 1.2,
        /// Files that are smaller than this together are always eligible.
        min_bytes: u64 = 128 * MIB,
        /// From this many files in a store on, its region's flushes wait.
        blocking_files: usize = 16,
        /// Bytes that all compactions together write in a second; 0: no limit.
        max_bytes_per_second: u64 = 0,
        /// A store is compacted into one file after this; 0: never by itself.
        major_period_seconds: u64 = 7 * 24 * 3600,
    }
}

section! {
    /// The disk.
    Disk {
        /// Bytes of the file system that writes leave free, besides those that the memstores need to be flushed; 0: no such mark.
        reserve_bytes: u64 = 256 * MIB,
    }
}

section! {
    /// Metrics.
    Metrics {
        /// Regions with series of their own; those of further ones are added up under `table="other"`.
        max_regions: usize = 1_000,
    }
}

section! {
    /// The slow log, which `getSlowLogResponses` reads.
    SlowLog {
        /// Whether calls are recorded.
        enabled: bool = true,
        /// Most records; the oldest makes room.
        entries: usize = 256,
        /// A call that takes longer is slow.
        threshold_ms: u64 = 10_000,
        /// A call with a larger answer is large.
        large_bytes: u64 = 100 * MIB,
    }
}

section! {
    /// The key visualiser: where in the key space requests go.
    KeyVisualizer {
        /// Most memory for what it remembers; 0: it is off.
        bytes: usize = 16 << 20,
        /// One row of so many is a sample, fewer where memory for samples runs short.
        sample_every: u32 = 1,
    }
}

section! {
    /// Log lines.
    Log {
        /// Filter, as `info` or `basalt=debug,info`.
        filter: String = "info".into(),
        /// One JSON object a line instead of text.
        json: bool = false,
    }
}
