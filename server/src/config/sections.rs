//! The settings, section by section, each with its default.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::declaration::{Described, Field, Kind, Range, Section};
use super::{
    Address, CONNECTIONS_MAX, KEY_VISUALIZER_BYTES_MIN, OPEN_FILES_MIN, OptionalAddress, TOTAL_BYTES_MIN,
};

/// Largest message: its length is a signed number of four bytes in all protocols.
const MESSAGE_BYTES_MAX: u64 = (1 << 31) - 1;

/// Largest log segment: the space of each is reserved when it begins, and a start reads it whole.
const SEGMENT_BYTES_MAX: u64 = 4 << 30;

/// More memory than a machine has.
const MEMORY_BYTES_MAX: u64 = 64 << 40;

/// Maximum number of threads of one kind.
const THREADS_MAX: u64 = 256;

/// Most virtual servers: each has series of its own in the metrics.
const SERVERS_MAX: u64 = 64;

/// Declares the sections, and in each the settings with documentation, type, default and range.
macro_rules! settings {
    ($($(#[doc = $section_doc:literal])* $section:ident: $name:ident {
        $($(#[doc = $doc:literal])* $key:ident : $type:ty = $default:expr $(=> $range:expr)?),+ $(,)?
    })+) => {
        /// All settings.
        #[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            $($(#[doc = $section_doc])* pub $section: $name),+
        }

        /// All sections.
        pub(super) static SECTIONS: &[Section] = &[$(Section {
            name: stringify!($section),
            doc: &[$($section_doc),*],
            fields: &[$(Field {
                key: stringify!($key),
                doc: &[$($doc),*],
                kind: <$type as Described>::KIND,
                range: settings!(@range $($range)?),
            }),+],
        }),+];

        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
            #[serde(default, deny_unknown_fields)]
            pub struct $name {
                $($(#[doc = $doc])* pub $key: $type),+
            }

            impl Default for $name {
                fn default() -> Self {
                    Self { $($key: $default),+ }
                }
            }
        )+
    };
    (@range) => { None };
    (@range $range:expr) => { Some($range) };
}

/// Implements [`Described`] for a type with these words as its values.
macro_rules! words {
    ($type:ty: $($word:literal)+) => {
        impl Described for $type {
            const KIND: Kind = Kind::OneOf(&[$($word),+]);
        }
    };
}

words!(ThriftProtocol: "auto" "binary" "compact");
words!(ThriftTransport: "auto" "framed" "unframed");
words!(WalSync: "fsync" "os");
words!(UnknownUserCode: "refuse" "ignore");
words!(LogFull: "drop" "refuse");
words!(StandbySync: "none" "standby");
words!(StandbyReads: "none" "stale");
words!(Plaintext: "allow" "loopback" "refuse");
words!(ClientCertificates: "off" "wanted" "needed");
words!(UserFrom: "cn" "dns" "email");
words!(Authenticate: "auto" "required" "off");

/// An address of this machine that others cannot reach.
fn loopback(port: u16) -> Address {
    SocketAddr::from(([127, 0, 0, 1], port)).into()
}

const MIB: u64 = 1 << 20;

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

/// Failures that an acknowledged write survives.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum WalSync {
    /// Power loss: fdatasync before the answer.
    Fsync,
    /// kill -9: handed to the operating system before the answer.
    Os,
}

/// How a table is treated whose options name a coprocessor that this server does not run.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum UnknownUserCode {
    /// As by an HBase that cannot load the class.
    Refuse,
    /// Accepted, with a log line.
    Ignore,
}

/// When a write of a server with a standby is acknowledged.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum StandbySync {
    /// When it is durable here.
    None,
    /// When it is durable on a standby, too.
    Standby,
}

/// Reads that a standby answers.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum StandbyReads {
    /// None.
    None,
    /// All, from what it has.
    Stale,
}

/// Policy for when the log that waits for the store of backups, or for replication peers, has reached its
/// limit.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum LogFull {
    /// The log is not kept any more: points in time are missing until the next backup, or a peer is removed.
    Drop,
    /// Writes are refused until the log was taken.
    Refuse,
}

/// Connections that may be in clear where there is a certificate.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Plaintext {
    /// All.
    Allow,
    /// Those of this machine.
    Loopback,
    /// None.
    Refuse,
}

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ClientCertificates {
    /// The server does not ask.
    Off,
    /// The server asks, and a client may have none.
    Wanted,
    /// A client without one is refused.
    Needed,
}

/// The part of a client certificate that is the user.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum UserFrom {
    /// Common name of the subject.
    Cn,
    /// Alternative name of type DNS.
    Dns,
    /// Alternative name of type e-mail.
    Email,
}

/// Whether users must prove who they are.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Authenticate {
    /// Once there are users.
    Auto,
    /// Always: without users nobody may do anything.
    Required,
    /// Never.
    Off,
}

settings! {
    /// Where the data lies.
    data: Data {
        /// The data directory, created if missing.
        dir: PathBuf = "basalt-data".into(),
    }

    /// Continuous backup: docs/backup.md.
    backup: Backup {
        /// URL to which the server ships its log once a second, and backups now and then: file:/DIR,
        /// s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH. Empty: off.
        url: String = String::new(),
        /// Time between two backups. Changes of the schema, splits and much log make one earlier.
        interval_ms: u64 = 3_600_000 => Range::at_least(1000),
        /// File with the key that encrypts what is shipped, or is followed by a standby. Empty: in clear,
        /// without users and keys.
        key_file: PathBuf = PathBuf::new(),
        /// Bytes per second of a backup; the log is shipped as it comes. 0: no limit.
        max_bytes_per_second: u64 = 0,
        /// Most bytes of the log that are kept for a store that is away.
        max_log_bytes: u64 = 10 << 30 => Range::at_least(64 << 20),
        /// Policy at `backup.max_log_bytes`: drop (the log is not kept any more, and points in time
        /// are missing until the next backup), refuse (writes are refused).
        when_log_full: LogFull = LogFull::Drop,
    }

    /// Replication to other clusters.
    replication: Replication {
        /// Most bytes of the log that are kept for replication peers, disabled ones included, and for readers
        /// of changes, which are removed when they have reached it.
        max_log_bytes: u64 = 10 << 30 => Range::at_least(16 << 20),
        /// Policy at `replication.max_log_bytes`: refuse (writes are refused until peers have caught
        /// up or are removed), drop (the peer that is furthest behind is removed).
        when_log_full: LogFull = LogFull::Refuse,
    }

    /// A second server with the same data: docs/standby.md.
    standby: Standby {
        /// The server that this one follows: address of its HTTP port, as `db1:9095` or `https://db1:9095`;
        /// or URL of its backups (file:/DIR, s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH), with
        /// `backup.key_file` if they are encrypted. Empty: none.
        follow: String = String::new(),
        /// Name of this server among the standbys of another. Empty: the machine's host name.
        name: String = String::new(),
        /// URL by which other servers reach the HTTP port of this one. Empty: made of `server.advertise` and
        /// `http.listen`.
        url: String = String::new(),
        /// Reads that a standby answers: none, stale (all, from what it has).
        reads: StandbyReads = StandbyReads::None,
        /// When a write is acknowledged: none (when it is durable here), standby (when it is durable on a
        /// standby, too).
        sync: StandbySync = StandbySync::None,
        /// Longest wait of a write for a standby. Then the server goes on alone, until a standby has
        /// everything.
        sync_timeout_ms: u64 = 1_000 => Range::at_least(1),
        /// File with the token of an operator, with which the servers log in at each other. Empty: without a
        /// login.
        token_file: PathBuf = PathBuf::new(),
        /// Certificate of the authority of the other server. Empty: that of this server's data directory, if
        /// it has one.
        ca: PathBuf = PathBuf::new(),
        /// Time that a start waits for the answer of a standby that may have become the primary.
        ask_ms: u64 = 2_000,
    }

    /// A gateway to another cluster, for `basalt gateway` alone: docs/gateway.md.
    gateway: Gateway {
        /// The cluster that has the tables: `zk1,zk2:2181:/hbase`, or `hbase+rpc://host:port,host:port`.
        /// Short: `basalt gateway --cluster`.
        cluster: String = String::new(),
        /// User as whom the gateway calls the cluster.
        user: String = "basalt".into(),
        /// Longest time of an operation on the cluster, with its repetitions; of a scan, the time without a
        /// result.
        deadline_ms: u64 = 30_000 => Range::at_least(100),
        /// Whether the gateway refuses all changes, over every protocol.
        read_only: bool = false,
    }

    /// Streams of changes: docs/changes.md.
    changes: Changes {
        /// Most streams at a time. Further ones are refused.
        max_streams: usize = 16 => Range::between(0, 1_000),
    }

    /// Bulk loads.
    bulkload: Bulkload {
        /// Directories below which clients may load HFiles, besides the server's own staging
        /// directory. Absolute paths.
        directories: Vec<PathBuf> = Vec::new(),
    }

    /// The main port, for all binary protocols, and the connections of both ports.
    server: Server {
        /// Address of the port for Thrift, HBase's RPC and ZooKeeper's protocol. Port 0: the system
        /// chooses.
        listen: Address = loopback(9090),
        /// Host, or host and port, by which HBase's native clients reach this server: the name in
        /// its ZooKeeper nodes and in `hbase:meta`. `auto`: the address of the port. Set it in a
        /// container, behind NAT, and where the port listens on all addresses.
        advertise: String = "auto".into(),
        /// Maximum number of connections of the port for binary protocols. A further one is closed
        /// as soon as it is accepted.
        max_connections: usize = 10_000 => Range::between(1, CONNECTIONS_MAX),
        /// Largest message, framed or not. With `memory.total_bytes` a third of
        /// `requests.memory_bytes`, if less.
        max_message_bytes: usize = 64 << 20 => Range::between(1 << 10, MESSAGE_BYTES_MAX),
        /// Maximum number of cells of one call of puts, deletes, increments or appends.
        max_cells_per_call: usize = (64 << 20) / 64 => Range::at_least(1),
        /// A message that has begun must be complete after this; sooner if slow and others need
        /// memory.
        message_timeout_ms: u64 = 30_000 => Range::at_least(1),
        /// A connection without a call is closed after this, on both ports. 0: never; TCP
        /// keepalive, and `TCP_USER_TIMEOUT` during an answer, end dead ones after two minutes.
        idle_timeout_ms: u64 = 0,
        /// A client that takes nothing of its answer for this long is disconnected.
        write_timeout_ms: u64 = 30_000 => Range::at_least(1),
        /// Maximum bytes of cells in the answer to a get or multi-get; `getScannerResults` and
        /// `scannerGetList` begin no further row at it. With `memory.total_bytes` a third of
        /// `requests.memory_bytes`, if less.
        max_response_bytes: usize = 64 << 20 => Range::between(1 << 10, MESSAGE_BYTES_MAX),
        /// Accepts addresses that other machines can reach, for both ports, although the server has no
        /// certificate or no users: anybody who reaches a port can read and change everything.
        insecure: bool = false,
        /// Connections in clear to a server with a certificate: allow, loopback (only of this machine),
        /// refuse. Clients without TLS, such as HBase's Java client before 2.6, need `allow`.
        plaintext: Plaintext = Plaintext::Loopback,
    }

    /// TLS on both ports: docs/security.md.
    tls: Tls {
        /// PEM file of the server's certificate, with the intermediate ones behind it. Empty:
        /// `security/server.crt` of the data directory, if `basalt certificate create` has made it.
        certificate: PathBuf = PathBuf::new(),
        /// PEM file of the certificate's key. Empty: `security/server.key`.
        key: PathBuf = PathBuf::new(),
        /// PEM file of the authorities of client certificates. Empty: `security/ca.crt`.
        client_ca: PathBuf = PathBuf::new(),
        /// Whether clients show a certificate: off, wanted (one that is shown must be right), needed.
        client_certificates: ClientCertificates = ClientCertificates::Wanted,
        /// Part of a client certificate that is the user: its common name (cn), or the one alternative
        /// name of type dns or email.
        user_from: UserFrom = UserFrom::Cn,
    }

    /// Logins with Kerberos, in programs that were built with it: docs/security.md.
    kerberos: Kerberos {
        /// File with the keys of the service. Empty: no logins with Kerberos.
        keytab: PathBuf = PathBuf::new(),
        /// Principal of the service for native RPC and Thrift: `service/host@REALM`. Its realm is the
        /// default realm of the rules.
        principal: String = String::new(),
        /// Principal of the service for HTTP (SPNEGO): `HTTP/host@REALM`. Empty: that of the same host
        /// and realm, if the keytab has it.
        http_principal: String = String::new(),
        /// Rules that make a user of a principal, as Hadoop's: `DEFAULT` takes the first part of
        /// principals of the default realm, `RULE:[N:FORMAT](REGEX)s/FROM/TO/gL` others. The first rule
        /// that matches decides.
        auth_to_local: Vec<String> = vec!["DEFAULT".to_owned()],
        /// Protections that clients may choose (`hbase.rpc.protection`, Thrift's QOP): authentication,
        /// integrity, privacy.
        protection: Vec<String> = ["authentication", "integrity", "privacy"].map(str::to_owned).to_vec(),
    }

    /// Users and rights: docs/security.md.
    security: Security {
        /// Whether users must prove who they are, and do what they have rights to: auto (once
        /// `basalt user create` has made a user), required, off.
        authentication: Authenticate = Authenticate::Auto,
        /// File of the audit log, as JSON lines. Empty: `security/audit.log` of the data directory, if
        /// users must prove who they are.
        audit_log: PathBuf = PathBuf::new(),
        /// Whether the audit log has a line for each allowed call, too, except those that every user may
        /// make. Without it: logins, denied calls and changes.
        audit_allowed: bool = false,
        /// Maximum number of connections of one address whose clients have not logged in, over all ports,
        /// where users must. A further one is closed as soon as it is accepted. Clients in ZooKeeper's
        /// protocol, which has no login, count. A network of 64 bits is one IPv6 address.
        unauthenticated_per_address: usize = 1_000 => Range::between(1, CONNECTIONS_MAX),
    }

    /// Thrift.
    thrift: Thrift {
        /// Protocol of Thrift connections; `auto`: any, by the first bytes. A client of another one
        /// gets an exception in its own protocol, and the connection ends.
        protocol: ThriftProtocol = ThriftProtocol::Auto,
        /// Transport of Thrift connections; otherwise as `thrift.protocol`.
        transport: ThriftTransport = ThriftTransport::Auto,
        /// Service (Thrift 1 or 2) for which `getThriftServerType` answers on a connection without
        /// earlier calls.
        default_api: u8 = 2 => Range::between(1, 2),
    }

    /// The HTTP port.
    // Limits of messages are those of the main port.
    http: Http {
        /// Address of the HTTP port. Port 0: the system chooses.
        listen: Address = loopback(9095),
        /// Maximum number of connections of the HTTP port, as `server.max_connections`.
        max_connections: usize = 10_000 => Range::between(1, CONNECTIONS_MAX),
        /// Host names that the HTTP port answers to, besides IP addresses and `localhost`, as in
        /// `["basalt", "db1.example.org"]`: docs/operations/running.md, "Browsers". At most 64.
        allowed_hosts: Vec<String> = Vec::new(),
        /// Whether a POST to `/debug/pprof/profile` takes a profile: docs/observing.md,
        /// "Profiles".
        profiles: bool = false,
    }

    /// HBase's REST interface: docs/getting-started/rest.md.
    rest: Rest {
        /// Whether it is served: at the root of the main port, and below `/rest/` on the HTTP port.
        enabled: bool = true,
        /// Address of a port for it alone, for clients that are bound to one, or `off`. It has as many
        /// connections as `http.max_connections`.
        listen: OptionalAddress = OptionalAddress(None),
        /// Whether writes and scanners are refused with 403.
        readonly: bool = false,
        /// A scanner is closed after this time without a fetch.
        scanner_lease_ms: u64 = 3_600_000 => Range::at_least(1),
    }

    /// Limits of running calls.
    // A call beyond a limit is refused with RegionTooBusyException.
    requests: Requests {
        /// Maximum bytes of messages, arguments, results and replies of current calls. At least
        /// `server.max_message_bytes`.
        memory_bytes: u64 = 512 * MIB => Range::between(1, MEMORY_BYTES_MAX),
        /// Maximum number of calls that wait for a thread, for the disk or for row locks. Further
        /// ones are refused.
        max_waiting: usize = 2_000 => Range::at_least(1),
        /// A data call that has waited this long for a thread is refused. 0: never.
        max_wait_ms: u64 = 0,
        /// While the network threads are later than this for 200 ms, a share of the data calls is
        /// refused. 0: never.
        max_delay_ms: u64 = 500,
    }

    /// Quotas.
    // Quotas belong to tables, namespaces and users. The section also says how calls wait for a quota or for
    // a virtual server.
    quota: Quota {
        /// Longest delay of a call over a limit of a quota or of a virtual server. A call that
        /// would have to wait longer is refused.
        max_wait_ms: u64 = 10_000,
        /// The user whose quotas count for calls that name no user: those of Thrift.
        user: String = "hbase".into(),
    }

    /// The rehearsal of a cluster.
    // Each limit is that of one virtual server.
    rehearsal: Rehearsal {
        /// Virtual servers that this one presents itself as. 0: none.
        servers: usize = 0 => Range::between(0, SERVERS_MAX),
        /// Rows that each virtual server reads and writes in a second. 0: no limit.
        requests_per_second: u64 = 0,
        /// Rows that each virtual server reads in a second. 0: no limit.
        read_requests_per_second: u64 = 0,
        /// Rows that each virtual server writes in a second. 0: no limit.
        write_requests_per_second: u64 = 0,
        /// Bytes that each virtual server reads and writes in a second. 0: no limit.
        bytes_per_second: u64 = 0,
        /// Bytes that each virtual server reads in a second. 0: no limit.
        read_bytes_per_second: u64 = 0,
        /// Bytes that each virtual server writes in a second. 0: no limit.
        write_bytes_per_second: u64 = 0,
    }

    /// Scanner sessions.
    scanner: Scanner {
        /// A Thrift 2 scanner is closed after this time without a fetch, a Thrift 1 scanner after
        /// twice that, as in HBase.
        lease_ms: u64 = 60_000 => Range::at_least(1),
        /// Maximum number of open scanners.
        max_sessions: usize = 10_000,
        /// Maximum number of open scanners of one connection of the main port.
        max_sessions_per_connection: usize = 1_000,
        /// Maximum number of open scanners of all calls over HTTP together.
        max_http_sessions: usize = 1_000,
        /// A scanner is closed this long after it was opened, however often it is used. 0: never.
        max_age_ms: u64 = 24 * 3_600_000,
        /// A fetch of `getScannerRows` begins no further row at this many bytes.
        fetch_max_bytes: usize = 16 << 20 => Range::at_least(1),
        /// A fetch of `getScannerRows` with at least two results ends after this.
        fetch_max_ms: u64 = 10_000,
    }

    /// Write-ahead log.
    wal: Wal {
        /// When a write is acknowledged: `fsync` (on disk) or `os` (in the page cache).
        sync: WalSync = WalSync::Fsync,
        /// Size of a log segment. With `memory.total_bytes` a sixteenth of it, if less.
        segment_bytes: u64 = 32 * MIB => Range::between(MIB, SEGMENT_BYTES_MAX),
        /// While the log waits for the disk for longer than this, new writes are refused with
        /// RegionTooBusyException.
        stall_ms: u64 = 5_000 => Range::at_least(1),
    }

    /// Memory as a whole.
    memory: Memory {
        /// Memory of memstores, block cache and current calls together: each that is not set gets a
        /// share of it. 0: each has its own default.
        total_bytes: u64 = 0 => Range::zero_or_at_least(TOTAL_BYTES_MIN),
    }

    /// Memstores.
    memstore: Memstore {
        /// A region with more in its memstores is flushed. A table's MEMSTORE_FLUSHSIZE wins.
        flush_bytes: u64 = 128 * MIB => Range::at_least(MIB),
        /// A region with this many times its flush size refuses writes.
        block_multiplier: u64 = 4 => Range::between(1, 1_000),
        /// All memstores together; writes are refused above. At least `memstore.flush_bytes`.
        total_bytes: u64 = 1024 * MIB => Range::between(MIB, MEMORY_BYTES_MAX),
    }

    /// Block cache.
    block_cache: BlockCache {
        /// Capacity of the block cache.
        bytes: u64 = 1024 * MIB => Range::between(0, MEMORY_BYTES_MAX),
        /// Gets read blocks past the system's page cache (`O_DIRECT`) where the file system can;
        /// scans, flushes and compactions use the page cache.
        direct_reads: bool = false,
    }

    /// Store files.
    store: Store {
        /// Maximum number of descriptors of open store files. 0: by the limit of open files;
        /// docs/operations/limits.md, "Open files".
        max_open_files: usize = 0 => Range::zero_or_at_least(OPEN_FILES_MIN as u64),
    }

    /// Regions.
    region: Region {
        /// A region with a larger store splits. A table's MAX_FILESIZE wins. The only region of a
        /// table splits at twice the flush size.
        max_bytes: u64 = 10 * 1024 * MIB,
    }

    /// Rows and cells.
    row: Row {
        /// Longest wait for a row's lock.
        lock_wait_ms: u64 = 30_000,
        /// Largest cell: row, family, qualifier and value. 0: no limit. If `row.max_bytes` is less,
        /// fifteen sixteenths of that.
        cell_max_bytes: usize = 10 << 20,
        /// Largest row, or piece of a row with a batch size, that a read collects. If not set, a
        /// third of `requests.memory_bytes`, 1 GiB at most.
        max_bytes: usize = (512 << 20) / 3,
    }

    /// Flushes.
    flush: Flush {
        /// Threads for flushes.
        threads: usize = 1 => Range::between(1, THREADS_MAX),
    }

    /// Compactions.
    compaction: Compaction {
        /// Threads for short compactions and splits.
        threads: usize = 1 => Range::between(1, THREADS_MAX),
        /// Threads for long compactions.
        long_threads: usize = 1 => Range::between(1, THREADS_MAX),
        /// A compaction that reads this many bytes is long, and delays only other long ones and
        /// compactions of all files of its store. 0: all are.
        long_bytes: u64 = 2560 * MIB,
        /// Whether stores are compacted without a request.
        enabled: bool = true,
        /// Smallest number of files of a minor compaction; in stripes, twice as many.
        min_files: usize = 3 => Range::between(2, 10_000),
        /// Largest number of files of one compaction. At least `compaction.min_files`.
        max_files: usize = 10 => Range::between(2, 10_000),
        /// From this share of overwritten versions on, all files of a store or a stripe are merged.
        /// 0: not for that reason, as for tables that name one of HBase's compaction policies.
        overwritten: f64 = 0.2,
        /// A file may be this many times as large as the others together.
        ratio: f64 = 1.2,
        /// Files that are together smaller than this need not be in the ratio.
        min_bytes: u64 = 128 * MIB,
        /// From this many files of the same rows in a store on, its region's flushes wait for
        /// compaction, 90 seconds at most, and not when memory is short.
        blocking_files: usize = 16 => Range::at_least(1),
        /// A store of twice this size is cut by rows into stripes of at least about this size, each
        /// compacted by itself, so that compactions need less space at a time (HBase:
        /// `StripeStoreEngine`). A table's or family's `hbase.hstore.engine.class` decides before
        /// this. 0: no stripes.
        stripe_bytes: u64 = 64 * MIB,
        /// Largest number of stripes of a store; a large one has larger stripes.
        stripes_max: u64 = 32 => Range::between(2, 1_000),
        /// Bytes that all compactions together write in a second. 0: no limit.
        max_bytes_per_second: u64 = 0,
        /// A store is compacted into one file after this, half a period earlier or later. 0: only
        /// on request.
        major_period_seconds: u64 = 7 * 24 * 3600,
    }

    /// Code of users.
    user_code: UserCode {
        /// A table whose options name a coprocessor that this server does not run: `refuse`, as an
        /// HBase that cannot load the class, or `ignore`, with a log line. A table's
        /// `hbase.table.sanity.checks` = false counts as `ignore`.
        unknown: UnknownUserCode = UnknownUserCode::Refuse,
        /// Folders whose jars have filters and comparators of users, which run in a process of their
        /// own, the Java host. Empty: no class of a user runs, and there is no such process.
        directories: Vec<PathBuf> = Vec::new(),
        /// With security on: classes that every user may have loaded. Others are loaded by the first
        /// call of a user with the global ADMIN right.
        classes: Vec<String> = Vec::new(),
        /// Longest time of one call of a user's class. A call that takes longer fails, and the Java
        /// host is started anew.
        deadline_ms: u64 = 10_000 => Range::between(100, 600_000),
        /// Most calls of users' classes at a time, of which one table may have half. 0: two for each
        /// processor.
        sockets: usize = 0 => Range::zero_or_between(2, 32),
        /// The program that runs the Java host: Java 17 or later.
        java_command: String = "java".into(),
        /// The jar of the Java host. Empty: `basalt-host.jar` beside this program.
        java_host: PathBuf = PathBuf::new(),
        /// HBase's jars for the Java host, separated by colons; `lib/*` stands for the jars of a folder,
        /// such as the `lib` of an HBase. Empty: `lib/*` beside `user_code.java_host`.
        java_class_path: String = String::new(),
        /// Largest heap of the Java host.
        java_heap_bytes: u64 = 256 * MIB => Range::between(32 * MIB, 64 << 30),
        /// Longest time of a start of the Java host.
        java_start_ms: u64 = 30_000 => Range::between(1_000, 600_000),
    }

    /// The disk.
    disk: Disk {
        /// Bytes of the file system that writes leave free, besides what flushing the memstores
        /// needs. With less, writes are suspended. 0: only when the log gets no space.
        reserve_bytes: u64 = 256 * MIB,
    }

    /// Metrics.
    metrics: Metrics {
        /// Regions with their own series; further ones are added up.
        max_regions: usize = 1_000,
    }

    /// The slow log.
    slow_log: SlowLog {
        /// Whether slow calls and large answers are recorded for `getSlowLogResponses` (HBase:
        /// `hbase.regionserver.slowlog.buffer.enabled`, there `false`).
        enabled: bool = true,
        /// Maximum number of records, each with up to about 1 KiB of arguments; the oldest is
        /// dropped.
        entries: usize = 256 => Range::between(1, 1_000_000),
        /// A call that takes longer is slow. 0: every call.
        threshold_ms: u64 = 1_000,
        /// A call that takes longer than this percentage of its method's calls of the last half minute is
        /// slow, too, if it takes more than 10 ms and the method has had 1,000 calls; one a second of each
        /// method is recorded. 0: none, else from 50 to below 100.
        percentile: f64 = 99.9,
        /// A call with a larger answer is large. 0: every call.
        large_bytes: u64 = 100 * MIB,
    }

    /// The key visualizer.
    key_visualizer: KeyVisualizer {
        /// Memory of the key visualizer: some 400 keys for each ten seconds of the last hour, two
        /// minutes of twelve hours and half hour of a week, shared by the busy tables. 0: off.
        bytes: usize = 16 << 20 => Range::zero_or_between(KEY_VISUALIZER_BYTES_MIN as u64, 1 << 30),
        /// One row in this many is a sample. With 1, the first thousands of rows of each ten
        /// seconds are all counted.
        sample_every: u32 = 1 => Range::at_least(1),
    }

    /// Log lines.
    log: Log {
        /// Filter of log lines, as `info` or `basalt=debug,info`.
        filter: String = "info".into(),
        /// Whether log lines are JSON objects.
        json: bool = false,
    }
}
