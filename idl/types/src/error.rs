//! The engine's one error type.
//!
//! Variants say what happened, in words for the operator who reads the log or the client that gets
//! the text. [`Kind`] is the caller's remedy. Which HBase exception a variant becomes is decided in
//! one place of the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::name::TableName;
use crate::text::Brief;

/// Maximum number of namespaces that [`Error::no_such_namespace`] lists.
const NAMESPACES_TOLD: usize = 10;

/// Result of every engine call that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Advice for an operator about a store file that cannot be used.
pub const DAMAGE_REMEDY: &str = "Put the file back from a copy of the data directory and start the server again; or disable the table and restore a snapshot of it, truncate it or drop it";

/// Advice for an operator whose data directory may be a copy of one that a server was using.
#[doc(hidden)]
pub const COPIED_REMEDY: &str = "If this directory was copied while a server was using it, the copy is of several moments and cannot be made \
     whole. Copy the directory again while its server is stopped, or from a snapshot that the file system takes at one moment; or copy the \
     tables of the running server with HBase's CopyTable or Export (moving-data.md)";

/// The caller's remedy for an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request is wrong as it stands; trying again changes nothing.
    Request,
    /// The request is sound; try again later.
    Retry,
    /// Stored data cannot be read. Other data can.
    Data,
    /// The engine accepts nothing more; the process should end.
    Fatal,
}

/// Everything that can go wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// No table of that name.
    #[error("{0}")]
    NoSuchTable(TableName),
    /// A table of that name is there already.
    #[error("{0}")]
    TableExists(TableName),
    /// The table is disabled: no data calls.
    #[error("{table} state is {state}")]
    TableNotEnabled {
        /// The table.
        table: TableName,
        /// State of the region, in HBase's spelling.
        state: &'static str,
    },
    /// The call wants a disabled table. The text is the table's name, or says more.
    #[error("{0}")]
    TableNotDisabled(String),
    /// No family of that name in the table.
    #[error("Column family {family} does not exist in table {table}")]
    NoSuchFamily {
        /// The table.
        table: TableName,
        /// The family, escaped for people.
        family: String,
    },
    /// A flush was asked for of families that the table does not have. The text is HBase's.
    #[error("Column families [{families}] don't exist in table {table}")]
    NoSuchFamilies {
        /// The table.
        table: TableName,
        /// The families, escaped for people.
        families: String,
    },
    /// A change of families that the schema does not allow (adding one that exists, dropping one
    /// that does not, dropping the last).
    #[error("{0}")]
    InvalidFamilyOperation(String),
    /// The namespace does not exist. The text is that of [`Error::no_such_namespace`].
    #[error("{0}")]
    NoSuchNamespace(String),
    /// A namespace of that name is there already.
    #[error("{0}")]
    NamespaceExists(String),
    /// A snapshot of that name is there already.
    #[error("Snapshot '{0}' already stored on the filesystem.")]
    SnapshotExists(String),
    /// No snapshot of that name.
    #[error("Snapshot '{0}' doesn't exist on the filesystem")]
    NoSuchSnapshot(String),
    /// The snapshot's time to live is over; the next survey removes it.
    #[error("TTL for snapshot '{0}' has already expired.")]
    SnapshotExpired(String),
    /// A snapshot was asked for of a table that is not there.
    #[error("Table '{0}' doesn't exist, can't take snapshot.")]
    NoTableForSnapshot(TableName),
    /// A filter or comparator is of a class that HBase does not bring along.
    #[error(
        "{what} {class} is not supported; native RPC takes classes of users once user_code.directories is set"
    )]
    UnknownClass {
        /// `Filter class` or `Comparator class`.
        what: &'static str,
        /// Name of the class, escaped and cut.
        class: String,
    },
    /// A rule of the schema forbids the call.
    #[error("{0}")]
    Constraint(String),
    /// A change of a system table that HBase answers with a class of its own.
    #[error("{0}")]
    #[doc(hidden)]
    CatalogTable(String),
    /// A quota of the namespace forbids another table or region.
    #[error("{0}")]
    QuotaExceeded(String),
    /// The request breaks a stated limit or rule; the text names both.
    #[error("{0}")]
    InvalidArgument(String),
    /// An operation that must not be retried and has no class of its own in HBase (`DoNotRetryIOException`).
    #[error("{0}")]
    DoNotRetry(String),
    /// No region of that name.
    #[error("{0}")]
    NoSuchRegion(String),
    /// The region is not assigned to a server. Not applied; it works again once the region is
    /// assigned.
    #[error("{0}")]
    NotServingRegion(String),
    /// A file that is offered for a bulk load has rows outside the region.
    #[error("{0}")]
    WrongRegion(String),
    /// A single row is larger than a read may return.
    #[error("{0}")]
    RowTooBig(String),
    /// The region's memstore or the server's memory is full. Not applied; try again after a pause.
    #[error("{0}")]
    RegionTooBusy(String),
    /// A row was deleted and written again so often in a short time that its timestamps would get
    /// too far ahead of the clock.
    #[error("{0}")]
    RowAhead(String),
    /// The memory for calls is used up. Not applied; retry after a pause.
    #[error("{0}")]
    CallMemory(String),
    /// The disk has too little space for this, or for any write. Not applied; it works again when there is
    /// space.
    #[error("disk space: {0}")]
    DiskSpace(String),
    /// Another writer held the row's lock for too long. Not applied.
    #[error("Timed out waiting for lock for row: {0}")]
    RowLockTimeout(String),
    /// A request for an answer from memory, without waiting, that is not possible. Never leaves the
    /// server.
    #[error("the answer is not in memory")]
    NotInMemory,
    /// Stored bytes contradict their checksum or format.
    #[error("corrupt file {}, offset {offset}: {what}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// Description of the damage.
        what: String,
    },
    /// A store file of the region is missing or damaged, so the region is refused until the file is
    /// back or its data is given up.
    #[error("{region}, is refused because its store file {} cannot be used: {what}. {DAMAGE_REMEDY}", file.display())]
    RegionDamaged {
        /// The region, its table and its rows.
        region: String,
        /// The file.
        file: PathBuf,
        /// Description of the damage.
        what: String,
    },
    /// The file system failed.
    #[error("{during} {}: {source}", path.display())]
    Io {
        /// The failed operation, as "reading", "syncing".
        during: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: Arc<std::io::Error>,
    },
    /// Another process has the data directory open.
    #[error("data directory {} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// The data directory holds something other than a Basalt database.
    #[error(
        "data directory {} is neither empty nor a Basalt database: it holds {holds}. Nothing was written. Set data.dir (--data-dir) to a Basalt \
         database, or to a directory that is empty or does not exist",
        dir.display()
    )]
    ForeignDirectory {
        /// The directory.
        dir: PathBuf,
        /// Some of the names in it.
        holds: String,
    },
    /// The data directory's path leads elsewhere while the database in it is open.
    #[error(
        "data directory {} was moved, removed or replaced while it was in use: no file can be made in it any more. Start again with the \
         directory where it is now",
        .0.display()
    )]
    DirectoryMoved(PathBuf),
    /// A WAL or manifest sync failed before: the tail of the log is unknown, so nothing more is accepted.
    #[error("stopped accepting work after a failed write to the log: {0}")]
    Poisoned(String),
    /// The engine is closing.
    #[error("the server is shutting down")]
    ShuttingDown,
}

impl Error {
    /// The caller's remedy.
    pub fn kind(&self) -> Kind {
        match self {
            Self::RegionTooBusy(_)
            | Self::RowAhead(_)
            | Self::CallMemory(_)
            | Self::DiskSpace(_)
            | Self::RowLockTimeout(_)
            | Self::NotServingRegion(_)
            | Self::ShuttingDown
            | Self::NotInMemory => Kind::Retry,
            Self::Corrupt { .. } | Self::RegionDamaged { .. } | Self::Io { .. } => Kind::Data,
            Self::Poisoned(_) | Self::Locked(_) | Self::ForeignDirectory { .. } | Self::DirectoryMoved(_) => {
                Kind::Fatal
            }
            _ => Kind::Request,
        }
    }

    #[doc(hidden)]
    /// The text for a client. Unlike the one for the log, it has the names of files without the
    /// directories that they are in.
    pub fn for_clients(&self) -> String {
        let name = |path: &Path| path.file_name().map(PathBuf::from).unwrap_or_default();
        match self {
            Self::Corrupt { file, offset, what } => Self::corrupt(name(file), *offset, what).to_string(),
            Self::RegionDamaged { region, file, what } => {
                let of_client = Self::RegionDamaged {
                    region: region.clone(),
                    file: name(file),
                    what: what.clone(),
                };
                of_client.to_string()
            }
            Self::Io { during, path, source } => {
                let of_client = Self::Io {
                    during,
                    path: name(path),
                    source: Arc::clone(source),
                };
                of_client.to_string()
            }
            other => other.to_string(),
        }
    }

    /// An [`Error::NoSuchNamespace`] that lists the existing namespaces, or the first of them.
    pub fn no_such_namespace<'a>(
        name: &str,
        known: impl IntoIterator<Item = &'a String, IntoIter: ExactSizeIterator>,
    ) -> Self {
        let known = known.into_iter();
        let rest = known.len().saturating_sub(NAMESPACES_TOLD);
        let mut told: Vec<String> = known
            .take(NAMESPACES_TOLD)
            .map(|name| Brief(name.as_bytes()).to_string())
            .collect();
        if rest > 0 {
            told.push(format!("and {rest} more"));
        }
        let name = Brief(name.as_bytes());
        Self::NoSuchNamespace(format!(
            "Unknown namespace {name}! The namespaces are {}; create_namespace '{name}' makes it.",
            told.join(", ")
        ))
    }

    /// Wraps a file-system error with the operation and the file.
    pub fn io(during: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            during,
            path: path.into(),
            source: Arc::new(source),
        }
    }

    /// A [`Error::Corrupt`].
    pub fn corrupt(file: impl Into<PathBuf>, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            file: file.into(),
            offset,
            what: what.into(),
        }
    }
}
