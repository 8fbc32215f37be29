//! The failure of a call, in HBase's vocabulary: exception class, text, and whether a client may retry.
//!
//! Each protocol renders it in one place: `thrift/exceptions.rs`, `native/reply.rs`.

use std::fmt::Write as _;

use basalt_engine::Error;
use basalt_engine::schema::limits::Brief;

use crate::limits::admission::Busy;
use crate::limits::capacity::Exceeded;
use crate::security::Refused;
use crate::server::sessions::SessionError;

const CONSTRAINT: &str = "org.apache.hadoop.hbase.constraint.ConstraintException";
/// Longest text for a client.
const TEXT_BYTES_MAX: usize = 4 << 10;

const DO_NOT_RETRY: &str = "org.apache.hadoop.hbase.DoNotRetryIOException";
const ILLEGAL_ARGUMENT: &str = "java.lang.IllegalArgumentException";
const IO: &str = "java.io.IOException";
/// The class that makes native clients locate the region again.
const NOT_SERVING: &str = "org.apache.hadoop.hbase.NotServingRegionException";
const OUT_OF_ORDER: &str = "org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException";
/// The class by which clients know that they should wait and try again.
const REGION_TOO_BUSY: &str = "org.apache.hadoop.hbase.RegionTooBusyException";
const TABLE_EXISTS: &str = "org.apache.hadoop.hbase.TableExistsException";
const UNKNOWN_SCANNER: &str = "org.apache.hadoop.hbase.UnknownScannerException";
const WRONG_REGION: &str = "org.apache.hadoop.hbase.regionserver.WrongRegionException";

/// Exception of a Thrift interface. The native protocol has the class instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// IOError, TIOError.
    Io,
    /// IllegalArgument of Thrift 1; Thrift 2 has it for scanner ids only; otherwise it gets
    /// TIOError.
    IllegalArgument,
    /// An unknown scanner id: IllegalArgument and TIllegalArgument, each with its literal text.
    InvalidScanner,
    /// IOError, TIOError: a change of the catalog's own tables.
    CatalogTable,
    /// AlreadyExists of Thrift 1, where the method declares it; otherwise IOError, TIOError.
    AlreadyExists,
}

/// A call that failed, in HBase's vocabulary.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: Kind,
    /// Java class; the last part is the metrics label.
    class: &'static str,
    message: String,
    can_retry: bool,
}

impl Failure {
    fn io(class: &'static str, message: impl Into<String>, can_retry: bool) -> Self {
        Self {
            kind: Kind::Io,
            class,
            message: cut(message.into()),
            can_retry,
        }
    }

    /// Bad input: names the thing and the rule.
    pub(crate) fn illegal_argument(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::IllegalArgument,
            ..Self::io(ILLEGAL_ARGUMENT, message, false)
        }
    }

    /// An I/O failure of HBase's plain `IOException`, which clients may retry.
    pub(crate) fn plain_io(message: impl Into<String>) -> Self {
        Self::io(IO, message, true)
    }

    /// A write that may have been made. Clients must not repeat an increment or a conditional one blindly.
    pub(crate) fn unknown_outcome(message: impl Into<String>, may_be_repeated: bool) -> Self {
        Self::io(IO, message, may_be_repeated)
    }

    /// The server is busy: clients wait and try again.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::io(REGION_TOO_BUSY, message, true)
    }

    /// Whether the server is too busy for it now.
    pub(crate) fn is_busy(&self) -> bool {
        self.class == REGION_TOO_BUSY
    }

    /// The region is not served here: clients locate it again.
    pub(crate) fn not_serving(message: impl Into<String>) -> Self {
        Self::io(NOT_SERVING, message, true)
    }

    /// A failure that trying again cannot cure.
    pub(crate) fn do_not_retry(message: impl Into<String>) -> Self {
        Self::io(DO_NOT_RETRY, message, false)
    }

    /// The row is outside the region that the client named: the client's location is stale.
    pub(crate) fn wrong_region(message: impl Into<String>) -> Self {
        Self::io(WRONG_REGION, message, true)
    }

    /// The coprocessor service or kind of read does not exist.
    pub(crate) fn unknown_protocol(message: impl Into<String>) -> Self {
        let class = "org.apache.hadoop.hbase.exceptions.UnknownProtocolException";
        Self::io(class, message, false)
    }

    /// The client may not do that.
    pub(crate) fn access_denied(message: impl Into<String>) -> Self {
        let class = "org.apache.hadoop.hbase.security.AccessDeniedException";
        Self::io(class, message, false)
    }

    /// The region's state does not allow the change.
    pub(crate) fn do_not_retry_region(message: impl Into<String>) -> Self {
        let class = "org.apache.hadoop.hbase.client.DoNotRetryRegionException";
        Self::io(class, message, false)
    }

    /// A call that only tests make, to a server that they do not own.
    pub(super) fn not_ephemeral(call: &str) -> Self {
        Self::do_not_retry(format!(
            "{call} is refused: this server was not started with --ephemeral"
        ))
    }

    /// An exception of another cluster. Without a class that clients know, only the text is kept.
    pub(super) fn of_exception(class: Option<&'static str>, message: &str, can_retry: bool) -> Self {
        let class = class.unwrap_or(if can_retry { IO } else { DO_NOT_RETRY });
        // Native clients get an exception that is no IOException inside of one.
        if let Some(message) = message
            .strip_prefix(ILLEGAL_ARGUMENT)
            .and_then(|rest| rest.strip_prefix(": "))
        {
            return Self::illegal_argument(message);
        }
        let kind = match class {
            TABLE_EXISTS => Kind::AlreadyExists,
            CONSTRAINT => Kind::CatalogTable,
            _ => Kind::Io,
        };
        Self {
            kind,
            ..Self::io(class, message, can_retry)
        }
    }

    /// The method is not served. The text is HBase's for an unknown method.
    pub(crate) fn unsupported(method: &str) -> Self {
        let method = Brief(method.as_bytes());
        Self::do_not_retry(format!("java.lang.UnsupportedOperationException: {method}"))
    }

    /// A batch limit together with a filter that judges whole rows; the text is HBase's.
    pub(super) fn incompatible_filter() -> Self {
        Self {
            class: "org.apache.hadoop.hbase.filter.IncompatibleFilterException",
            ..Self::illegal_argument(
                "Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow",
            )
        }
    }

    /// The snapshot does not exist.
    pub(crate) fn unknown_snapshot(name: &str) -> Self {
        let class = "org.apache.hadoop.hbase.snapshot.UnknownSnapshotException";
        let name = Brief(name.as_bytes());
        Self::io(class, format!("no snapshot is called {name}"), false)
    }

    /// The replication peer does not exist.
    pub(crate) fn unknown_peer(id: &str) -> Self {
        let class = "org.apache.hadoop.hbase.ReplicationPeerNotFoundException";
        let id = Brief(id.as_bytes());
        Self::io(class, format!("Replication peer {id} does not exist"), false)
    }

    /// The response of a Multi is full; the remaining actions can be sent again.
    pub(crate) fn multi_too_large(limit: usize) -> Self {
        let class = "org.apache.hadoop.hbase.MultiActionResultTooLarge";
        let message = format!("the response has {limit} bytes already (server.max_response_bytes)");
        Self::io(class, message, true)
    }

    /// The scanner is closed, has expired, or belongs to another connection.
    pub(crate) fn unknown_scanner(id: u64) -> Self {
        let message = format!("no scanner {id} is open on this connection");
        Self::io(UNKNOWN_SCANNER, message, false)
    }

    /// The fetch is not the next one of its scanner.
    pub(crate) fn out_of_order(expected: u64, received: u64) -> Self {
        let message =
            format!("Expected nextCallSeq: {expected} But the nextCallSeq got from client: {received}");
        Self::io(OUT_OF_ORDER, message, false)
    }

    /// The scanner has ended with an error; the client opens another one after its last row.
    pub(crate) fn scanner_reset(cause: &Self) -> Self {
        let class = "org.apache.hadoop.hbase.exceptions.ScannerResetException";
        let message = format!("Scanner is closed on the server-side: {}", cause.with_class());
        Self::io(class, message, false)
    }

    /// Whether a fetch that failed with this can be repeated without loss, unless its scanner has
    /// failed, too: the server was busy, or another fetch of the scanner runs.
    pub(crate) fn leaves_scanner(&self) -> bool {
        let classes = [
            "RegionTooBusyException",
            "RpcThrottlingException",
            "OutOfOrderScannerNextException",
        ];
        self.can_retry && classes.contains(&self.label())
    }

    pub(crate) fn is_unknown_scanner(&self) -> bool {
        self.label() == "UnknownScannerException"
    }

    pub(crate) fn is_access_denied(&self) -> bool {
        self.label() == "AccessDeniedException"
    }

    pub(crate) fn is_no_table(&self) -> bool {
        self.label() == "TableNotFoundException"
    }

    pub(crate) fn is_not_serving(&self) -> bool {
        self.label() == "NotServingRegionException"
    }

    pub(crate) fn class(&self) -> &'static str {
        self.class
    }

    pub(crate) fn can_retry(&self) -> bool {
        self.can_retry
    }

    /// The text for the client.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The class without its package: a bounded set, since classes are literals.
    pub(crate) fn label(&self) -> &'static str {
        self.class.rsplit('.').next().unwrap_or(self.class)
    }

    /// The text with the class in front, where Java's stack trace would begin, as Thrift 1 and
    /// native clients expect it.
    pub(crate) fn with_class(&self) -> String {
        format!("{}: {}", self.class, self.message)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.kind() == basalt_engine::Kind::Fatal {
            // The call's outcome is unknown and the log's tail too. No answer, so that the client knows it
            // does not know.
            tracing::error!("ending the process: {error}");
            crate::observe::log_queue::exit(crate::observe::log_queue::EXIT_LOG_FAILED);
        }
        let (class, can_retry) = match &error {
            Error::NoSuchTable(_) => ("org.apache.hadoop.hbase.TableNotFoundException", false),
            Error::TableExists(_) => {
                return Self {
                    kind: Kind::AlreadyExists,
                    ..Self::io(TABLE_EXISTS, error.to_string(), false)
                };
            }
            Error::TableNotEnabled { .. } => ("org.apache.hadoop.hbase.TableNotEnabledException", false),
            Error::TableNotDisabled(_) => ("org.apache.hadoop.hbase.TableNotDisabledException", false),
            Error::NoSuchFamily { .. } | Error::NoSuchFamilies { .. } => (
                "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException",
                false,
            ),
            Error::InvalidFamilyOperation(_) => {
                ("org.apache.hadoop.hbase.InvalidFamilyOperationException", false)
            }
            Error::NoSuchNamespace(_) => ("org.apache.hadoop.hbase.NamespaceNotFoundException", false),
            Error::NamespaceExists(_) => ("org.apache.hadoop.hbase.NamespaceExistException", false),
            Error::CatalogTable(_) => {
                return Self {
                    kind: Kind::CatalogTable,
                    ..Self::io(CONSTRAINT, error.to_string(), false)
                };
            }
            Error::Constraint(_) => (CONSTRAINT, false),
            Error::QuotaExceeded(_) => ("org.apache.hadoop.hbase.quotas.QuotaExceededException", false),
            Error::SnapshotExists(_) => ("org.apache.hadoop.hbase.snapshot.SnapshotExistsException", false),
            Error::NoSuchSnapshot(_) => (
                "org.apache.hadoop.hbase.snapshot.SnapshotDoesNotExistException",
                false,
            ),
            Error::SnapshotExpired(_) => (
                "org.apache.hadoop.hbase.snapshot.SnapshotTTLExpiredException",
                false,
            ),
            Error::NoTableForSnapshot(_) => (
                "org.apache.hadoop.hbase.snapshot.SnapshotCreationException",
                false,
            ),
            Error::InvalidArgument(_) => return Self::illegal_argument(error.to_string()),
            Error::DoNotRetry(_) | Error::UnknownClass { .. } => (DO_NOT_RETRY, false),
            Error::NoSuchRegion(_) => ("org.apache.hadoop.hbase.UnknownRegionException", false),
            Error::NotServingRegion(_) => (NOT_SERVING, true),
            Error::WrongRegion(_) => (WRONG_REGION, true),
            Error::RowTooBig(_) => ("org.apache.hadoop.hbase.client.RowTooBigException", false),
            // HBase's clients back off and retry these, which suits a full disk. HBase's own class
            // for it, of space quotas, makes clients give up.
            Error::RegionTooBusy(_) | Error::RowAhead(_) | Error::CallMemory(_) | Error::DiskSpace(_) => {
                (REGION_TOO_BUSY, true)
            }
            Error::Corrupt { .. } | Error::RegionDamaged { .. } => {
                ("org.apache.hadoop.hbase.io.hfile.CorruptHFileException", false)
            }
            Error::ShuttingDown => (
                "org.apache.hadoop.hbase.regionserver.RegionServerStoppedException",
                true,
            ),
            _ => (IO, true),
        };
        Self::io(class, error.for_clients(), can_retry)
    }
}

/// Cuts a text for a client to [`TEXT_BYTES_MAX`]. Names in texts are cut where the text is made; this
/// bounds the others, so that no answer echoes a long argument.
fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        // Writing to a string cannot fail.
        let _ = write!(text, "... ({whole} bytes)");
    }
    text
}

impl From<Busy> for Failure {
    fn from(busy: Busy) -> Self {
        if matches!(busy, Busy::TooLarge { .. }) {
            return Self::do_not_retry(busy.to_string());
        }
        Self::busy(busy.to_string())
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::access_denied(refused.to_string())
    }
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Self {
        let class = "org.apache.hadoop.hbase.quotas.RpcThrottlingException";
        Self::io(class, exceeded.to_string(), true)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Unknown => Self {
                kind: Kind::InvalidScanner,
                ..Self::io(UNKNOWN_SCANNER, "", false)
            },
            SessionError::Busy => Self::io(OUT_OF_ORDER, "another fetch of this scanner is running", true),
            SessionError::TooMany { limit, value } => Self::plain_io(format!(
                "too many open scanners: {limit} is {value}; close scanners or let their lease end"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn texts_are_bounded_and_name_no_directory() {
        let long = Failure::do_not_retry("ä".repeat(TEXT_BYTES_MAX));
        assert!(
            long.message().len() < TEXT_BYTES_MAX + 32,
            "{}",
            long.message().len()
        );
        assert!(long.message().ends_with("... (8192 bytes)"), "{}", long.message());
        let method = Failure::unsupported(&"m".repeat(1 << 20));
        assert!(method.message().len() < 256, "{}", method.message());

        let file = Path::new("/secret/place/data/t/f/00000007.hfile");
        let source = std::io::Error::other("broken");
        let damaged = Error::RegionDamaged {
            region: "region r".into(),
            file: file.into(),
            what: "it is missing".into(),
        };
        let errors = [
            Error::corrupt(file, 7, "a checksum is wrong"),
            Error::io("reading", file, source),
            damaged,
        ];
        for error in errors {
            assert!(
                error.to_string().contains("/secret/place"),
                "the log names it: {error}"
            );
            let failure = Failure::from(error);
            let text = failure.message();
            assert!(
                text.contains("00000007.hfile") && !text.contains("secret"),
                "{text}"
            );
        }
    }
}
