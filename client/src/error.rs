//! Why a call had no result.
//!
//! The variants are the cases that a caller treats differently; the text is for the person who
//! reads the log and names the target, the method and the limit. [`Error::kind`] folds them into
//! four pieces of advice.

use std::io;
use std::time::Duration;

use basalt_idl::call::{CallError, ServiceException, TApplicationException};
use basalt_idl::wire::WireError;
use basalt_idl::{admin, thrift1, thrift2};

use crate::options::FailureKind;
use crate::remote::{Advice, RemoteException};

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call had no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection came about. Nothing was sent.
    #[error("cannot connect to {target}: {source}")]
    Connect {
        /// The address as given.
        target: String,
        /// The system's error.
        source: io::Error,
    },
    /// The connection broke during a call. The server may or may not have carried it out.
    #[error("connection to {target} broke during {method}: {source}")]
    Io {
        /// The address as given.
        target: String,
        /// The method that was under way.
        method: &'static str,
        /// The system's error. A close by the server is `UnexpectedEof`.
        source: io::Error,
    },
    /// A limit on time was reached. The server may or may not have carried the call out, and the
    /// connection is closed, since the reply may still come.
    #[error("{what} {target} took longer than the limit of {limit:?}")]
    Timeout {
        /// The operation that took too long, for example `connecting to`.
        what: &'static str,
        /// The address as given.
        target: String,
        /// The limit.
        limit: Duration,
    },
    /// The reply is not Thrift as the interface describes it, or longer than
    /// [`ConnectionOptions::reply_bytes_max`](crate::ConnectionOptions::reply_bytes_max). The usual reason is
    /// another protocol or framing than the server's.
    #[error("reply to {method} cannot be read: {source}")]
    Protocol {
        /// The method.
        method: &'static str,
        /// The reason that the reply cannot be read.
        source: WireError,
    },
    /// The server refused or failed: HBase's exception for I/O and for most refusals.
    #[error("{message}")]
    Server {
        /// The method.
        method: &'static str,
        /// The server's words.
        message: String,
        /// False if the same call will fail again. Absent on the wire counts as false.
        can_retry: bool,
    },
    /// The scanner is not known to the server: it was idle longer than its lease, or the server
    /// restarted.
    #[error("scanner is gone: {message}")]
    ScannerGone {
        /// The server's words.
        message: String,
    },
    /// A failure that the interface does not declare: HBase answers most bad arguments like this, and
    /// `UNKNOWN_METHOD` says that the server does not have the call.
    #[error("{method} failed: {message} ({kind})")]
    Application {
        /// The method.
        method: &'static str,
        /// The kind of failure.
        kind: FailureKind,
        /// The server's words.
        message: String,
    },
    /// All connections of the pool were busy for too long. Nothing was sent.
    #[error("all {connections} connections to {target} were busy for {waited:?}")]
    PoolBusy {
        /// The address as given.
        target: String,
        /// Maximum number of connections of the pool.
        connections: usize,
        /// How long the call waited.
        waited: Duration,
    },
    /// TLS or the login failed, or the server wants a login. The request was not carried out, and
    /// an unchanged set-up fails again.
    #[error("cannot log in at {target}: {what}")]
    Login {
        /// The address as given.
        target: String,
        /// The cause and the remedy. Contains no secret.
        what: String,
    },
    /// A file of certificates, a token or a password cannot be used. The text says why, and
    /// contains no secret.
    #[error("{0}")]
    Credentials(String),
    /// The request cannot be right, so it was not sent.
    #[error("{0}")]
    InvalidRequest(String),
    /// An exception of HBase over its native protocol: names the class, the server and the region.
    #[error("{0}")]
    Remote(Box<RemoteException>),
    /// A server's answer over HBase's native protocol cannot be read.
    #[error("answer of {target} to {method} cannot be read: {what}")]
    Malformed {
        /// The address of the server.
        target: String,
        /// The method.
        method: &'static str,
        /// The reason that the answer cannot be read.
        what: String,
    },
    /// ZooKeeper or the RPC registry does not name the server that was looked up.
    #[error("registry at {target}: {what}")]
    Registry {
        /// The address of the registry's server.
        target: String,
        /// The reason.
        what: String,
    },
    /// All attempts of an operation failed, or its time was over.
    #[error("{what} failed {attempts} times in {waited:.1?}, at last: {last}")]
    Exhausted {
        /// The operation.
        what: String,
        /// Attempts made.
        attempts: u32,
        /// Time since the first attempt.
        waited: Duration,
        /// The last failure.
        last: Box<Error>,
    },
    /// The cluster does not answer: neither the server nor, in one round, `hbase:meta` and the registry. Only
    /// with [`ClusterOptions::fails_when_away`](crate::native::ClusterOptions::fails_when_away).
    #[error("the cluster does not answer: {last}")]
    Away {
        /// The last failure of the round.
        last: Box<Error>,
    },
    /// A write was sent, and neither its answer nor that of a repetition has arrived. The server may or may
    /// not have carried it out.
    #[error("{what} was sent and its outcome is unknown, since {sent}; then: {last}")]
    Sent {
        /// The operation.
        what: String,
        /// The failure of the attempt that was sent.
        sent: Box<Error>,
        /// The failure of the last attempt.
        last: Box<Error>,
    },
    /// Some actions of a batch failed. The others were carried out.
    #[error("{failed} of {of} actions failed; the first of these: {first}")]
    Batch {
        /// Failed actions.
        failed: usize,
        /// All actions.
        of: usize,
        /// The failure of the first failed action.
        first: Box<Error>,
    },
}

/// The caller's remedy for an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Change the request. An unchanged one fails again.
    Request,
    /// Try again later. The request was not carried out; a batch of several rows may have been in part.
    Retry,
    /// Find out before trying again: the request may have been carried out.
    Unknown,
    /// Look at addresses, protocol settings, credentials and versions.
    Setup,
}

impl Error {
    /// The caller's remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Server { can_retry: true, .. } | Error::PoolBusy { .. } | Error::Connect { .. } => {
                ErrorKind::Retry
            }
            Error::Timeout { what, .. } if *what == CONNECTING => ErrorKind::Retry,
            Error::Away { .. } => ErrorKind::Retry,
            Error::Timeout { .. } | Error::Io { .. } | Error::Sent { .. } => ErrorKind::Unknown,
            Error::Protocol { .. }
            | Error::Malformed { .. }
            | Error::Registry { .. }
            | Error::Login { .. }
            | Error::Credentials(_) => ErrorKind::Setup,
            Error::Remote(exception) => match exception.advice() {
                Advice::Final => ErrorKind::Request,
                _ => ErrorKind::Retry,
            },
            Error::Exhausted { last: cause, .. } | Error::Batch { first: cause, .. } => cause.kind(),
            Error::Application { .. } if self.is_unknown_method() => ErrorKind::Setup,
            Error::InvalidRequest(_)
            | Error::ScannerGone { .. }
            | Error::Server { .. }
            | Error::Application { .. } => ErrorKind::Request,
        }
    }

    /// Whether the server does not have the method at all, as HBase does not have Basalt's own calls.
    pub fn is_unknown_method(&self) -> bool {
        matches!(self, Error::Application { kind, .. } if *kind == FailureKind::UNKNOWN_METHOD)
    }

    /// The exception behind the error, if a server of HBase's native protocol sent one.
    pub fn remote(&self) -> Option<&RemoteException> {
        match self {
            Error::Remote(exception) => Some(exception),
            Error::Exhausted { last: cause, .. } | Error::Batch { first: cause, .. } => cause.remote(),
            _ => None,
        }
    }

    /// Whether the connection was lost during the call: the one failure after which
    /// [`Client`](crate::Client) retries, for calls that change nothing.
    pub(crate) fn is_connection_lost(&self) -> bool {
        matches!(self, Error::Io { .. })
    }
}

/// The text of [`Error::Timeout`] for connecting, during which nothing was sent.
pub(crate) const CONNECTING: &str = "connecting to";

/// The exceptions of a service as [`Error`].
pub trait Thrown: ServiceException {
    /// Converts an exception that `method` declares.
    fn into_error(self, method: &'static str) -> Error;
}

impl Thrown for thrift2::THBaseException {
    fn into_error(self, method: &'static str) -> Error {
        match self {
            thrift2::THBaseException::Io(thrown) => server(method, thrown.message, thrown.can_retry),
            thrift2::THBaseException::IllegalArgument(thrown) => Error::ScannerGone {
                message: text(thrown.message, method),
            },
        }
    }
}

/// For callers that make calls of HBase's first service through a [`Connection`](crate::Connection).
impl Thrown for thrift1::HbaseException {
    fn into_error(self, method: &'static str) -> Error {
        match self {
            thrift1::HbaseException::Io(thrown) => server(method, thrown.message, thrown.can_retry),
            thrift1::HbaseException::IllegalArgument(thrown) => server(method, thrown.message, None),
            thrift1::HbaseException::AlreadyExists(thrown) => server(method, thrown.message, None),
        }
    }
}

impl Thrown for admin::BasaltException {
    fn into_error(self, method: &'static str) -> Error {
        let admin::BasaltException::Io(thrown) = self;
        server(method, thrown.message, thrown.can_retry)
    }
}

fn server(method: &'static str, message: Option<String>, can_retry: Option<bool>) -> Error {
    Error::Server {
        method,
        message: text(message, method),
        can_retry: can_retry.unwrap_or(false),
    }
}

/// HBase leaves the message out when its own exception had none.
fn text(message: Option<String>, method: &str) -> String {
    message
        .filter(|message| !message.is_empty())
        .unwrap_or_else(|| format!("{method} failed and the server gave no reason"))
}

/// A failed call as [`Error`].
pub(crate) fn from_call<E: Thrown>(error: CallError<E>, method: &'static str) -> Error {
    match error {
        CallError::Declared(thrown) => thrown.into_error(method),
        CallError::Application(TApplicationException { message, kind }) => Error::Application {
            method,
            kind: kind.unwrap_or(FailureKind::UNKNOWN),
            message: text(message, method),
        },
    }
}

/// A copy of an error, for another caller of a failed attempt.
pub(crate) fn copy(error: &Error) -> Error {
    let again = |source: &io::Error| io::Error::new(source.kind(), source.to_string());
    match error {
        Error::Connect { target, source } => Error::Connect {
            target: target.clone(),
            source: again(source),
        },
        Error::Io {
            target,
            method,
            source,
        } => Error::Io {
            target: target.clone(),
            method,
            source: again(source),
        },
        Error::Timeout { what, target, limit } => Error::Timeout {
            what,
            target: target.clone(),
            limit: *limit,
        },
        Error::Remote(exception) => Error::Remote(exception.clone()),
        Error::Malformed { target, method, what } => Error::Malformed {
            target: target.clone(),
            method,
            what: what.clone(),
        },
        Error::Registry { target, what } => Error::Registry {
            target: target.clone(),
            what: what.clone(),
        },
        Error::Away { last } => Error::Away {
            last: Box::new(copy(last)),
        },
        other => Error::InvalidRequest(other.to_string()),
    }
}
