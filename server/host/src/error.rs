//! Why a call of user code has no result.

use std::time::Duration;

use crate::filter::Loaded;

/// Why a call of user code has no result. The texts name neither class nor table: the caller adds them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The code has thrown.
    #[error("{class}: {message}")]
    Thrown {
        /// Name of the exception's class.
        class: String,
        /// Its message.
        message: String,
        /// Whether it is an `IOException`.
        is_io: bool,
        /// Whether HBase's clients do not repeat a call that ended with it.
        is_final: bool,
        /// Classes that the call has had loaded all the same.
        loaded: Vec<Loaded>,
    },
    /// All sockets that the call may have were in use for as long as a call waits.
    #[error("all {sockets} sockets of the Java host that {of} may use are busy")]
    Busy {
        /// Number of sockets.
        sockets: usize,
        /// The limit that is reached: that of `all tables` or of `one table`.
        of: &'static str,
    },
    /// There was no answer in time.
    #[error("no answer within {} ms (user_code.deadline_ms); the Java host is started anew, and the server's log has its threads", .0.as_millis())]
    Late(Duration),
    /// The process has ended during the call.
    #[error("the Java host has ended during the call; it is started anew")]
    Ended,
    /// The host has closed the socket, or has sent bytes that are no answer.
    #[error("the Java host has sent no proper answer: {0}")]
    Nonsense(String),
    /// The filter was opened in a process that has ended.
    #[error("the Java host was started anew since the scan began")]
    Restarted,
    /// No process can be had now.
    #[error("the Java host does not start: {0}")]
    NotStarted(String),
    /// The class, or every process, has failed too often.
    #[error("{0}")]
    GivenUp(String),
    /// The request does not fit into a frame.
    #[error(
        "a row and its filter do not fit into the {} bytes of a frame",
        crate::frame::BYTES_MAX
    )]
    TooLarge,
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn can_retry(&self) -> bool {
        match self {
            Self::Thrown { is_final, .. } => !is_final,
            Self::Busy { .. } | Self::Late(_) | Self::Ended | Self::Restarted | Self::NotStarted(_) => true,
            Self::Nonsense(_) | Self::GivenUp(_) | Self::TooLarge => false,
        }
    }
}
