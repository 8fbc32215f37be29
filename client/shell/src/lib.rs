//! The library of `basalt-shell`, which accepts the input of HBase's shell and prints its output.
//!
//! 1. [`syntax`] turns text into statements: the small part of Ruby that HBase's shell is used
//!    with.
//! 2. [`program`] evaluates them to one command after the other: variables, loops, arithmetic.
//! 3. The table in `commands` has all commands; [`session`] runs them through the client, one small
//!    file for each group, with [`arguments`] that are checked.
//! 4. [`output`] prints rows, names and values as HBase does, as JSON or as CSV; [`progress`] shows
//!    the progress of a long scan, `top` the present load.
//! 5. [`complete`] completes a line by the tab key.
//!
//! Nothing here reads a terminal: the binary hands text and keys in, and any [`std::io::Write`]
//! takes the output.

pub mod arguments;
pub mod backend;
mod cluster;
mod commands;
pub mod complete;
mod converters;
mod data;
mod escape;
mod filters;
mod general;
mod help;
mod hot_rows;
mod meta;
mod methods;
mod namespaces;
pub mod output;
mod peers;
mod places;
pub mod program;
pub mod progress;
mod quotas;
mod read_options;
mod rights;
mod run;
mod schema_text;
mod servers;
pub mod session;
mod several;
mod snapshots;
mod status;
pub mod syntax;
mod tables;
mod to_tables;
mod tools;
mod top;
mod units;
mod upkeep;
pub mod value;
mod without_effect;

pub use backend::Backend;
pub use session::Session;
pub use syntax::parse;
pub use value::Value;

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
