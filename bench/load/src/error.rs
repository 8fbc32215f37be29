//! Why a run ended without a result. All of it goes to the person at the terminal.

use std::path::PathBuf;

use basalt_client::keys::KeyError;

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a run ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The requested run is not possible.
    #[error("{0}")]
    Usage(String),
    /// A call to the target failed.
    #[error("{during}: {source}")]
    Target {
        /// The call.
        during: String,
        /// The cause.
        source: basalt_client::Error,
    },
    /// No server listens there.
    #[error(
        "no server answers at {target} ({source}): start one with `basalt serve`, or name another with --target"
    )]
    NoServer {
        /// Its address.
        target: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The engine failed.
    #[error("{during}: {source}")]
    Engine {
        /// The step that failed.
        during: &'static str,
        /// The cause.
        source: basalt_engine::Error,
    },
    /// Another engine under test failed.
    #[error("{during}: {source}")]
    OtherEngine {
        /// The step that failed.
        during: &'static str,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A key does not fit a design.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file does not hold flights.
    #[error("{}: {what}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The report's template or JSON failed.
    #[error("report: {0}")]
    Report(String),
    /// A result could not be printed.
    #[error("standard output: {0}")]
    Output(std::io::Error),
    /// Ctrl-C ended the run.
    #[error("interrupted")]
    Interrupted,
    /// The run is over and its result is bad: values that were read differ from the written ones.
    #[error("{0}")]
    Different(String),
}

impl Error {
    /// Whether the reader of standard output is gone, as with `| head`.
    pub(crate) fn is_closed_output(&self) -> bool {
        matches!(self, Error::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

/// Adds the operation's name to the error of a call.
pub trait During<T> {
    /// Names the call that failed.
    fn during(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> During<T> for basalt_client::Result<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Target {
            during: what(),
            source,
        })
    }
}
