//! The library of `basalt-shell`, which accepts the input of HBase's shell and prints its output.
//!
//! 1. [`syntax`] turns text into commands: the small part of Ruby that HBase's shell is used with.
//! 2. [`arguments`] parses a command's values and describes errors in them.
//! 3. [`session`] runs commands through the client, one small file for each group of commands.
//! 4. [`output`] prints rows, names and values as HBase does; [`progress`] shows the progress of a
//!    long scan.
//! 5. [`complete`] completes a line by the tab key.
//!
//! Nothing here reads a terminal: the binary hands text in, and any [`std::io::Write`] takes the output.

pub mod arguments;
pub mod backend;
pub mod complete;
mod converters;
mod data;
mod escape;
mod help;
mod meta;
mod namespaces;
pub mod output;
mod places;
pub mod progress;
mod quotas;
mod read_options;
mod schema_text;
pub mod session;
mod several;
mod snapshots;
pub mod syntax;
mod tables;
mod to_tables;
mod tools;
mod units;
mod upkeep;
mod without_effect;

pub use backend::Backend;
pub use session::Session;
pub use syntax::parse;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The text is no command.
    #[error(transparent)]
    Syntax(#[from] syntax::SyntaxError),
    /// The command is known and its arguments are wrong.
    #[error("{0}")]
    Arguments(String),
    /// The server said no, in fewer words than these.
    #[error("{0}")]
    Refused(String),
    /// The server or the way to it.
    #[error(transparent)]
    Client(#[from] basalt_client::Error),
    /// A key design or split that is impossible.
    #[error(transparent)]
    Key(#[from] basalt_client::keys::KeyError),
    /// Ctrl-C at the terminal ended the command.
    #[error("interrupted")]
    Interrupted,
    /// Output or a file.
    #[error("{what}: {source}")]
    Io {
        /// The failed operation.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}

impl ShellError {
    /// Whether the reader of the output is gone, as with `| head`. No message is printed then.
    pub fn is_closed_output(&self) -> bool {
        matches!(self, ShellError::Io { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

/// The result of everything in the shell that can fail.
pub type ShellResult<T> = Result<T, ShellError>;

impl From<std::io::Error> for ShellError {
    fn from(source: std::io::Error) -> Self {
        let what = "cannot write output".to_owned();
        ShellError::Io { what, source }
    }
}
