//! The stream of changes: row mutations of tables in the order of the log, for consumers outside.
//!
//! The log is kept for a stream by a reader of the log ([`Engine::add_log_reader`]):
//!
//! - a named one ([`readers`]), which its consumer makes, moves forward and removes, and which outlives
//!   streams and restarts;
//! - otherwise one of the stream's own, which moves with the sent records and ends with the stream.
//!
//! 1. [`Stream::open`] checks rights, tables and position, and adds the stream's reader.
//! 2. [`Stream::next`] returns pieces: a head, the present rows if the stream begins with them, then what the
//!    log has, and once a second a heartbeat with the position.
//!
//! Each record is sent at least once; the id of the cluster and the position tell repeats. A stream holds the
//! memory of one piece, whatever its consumer does. Rights are asked again every few seconds.
//!
//! The log is not kept without end: `replication` removes readers that hold more than
//! `replication.max_log_bytes`, and their streams end with an error.
//!
//! [`Engine::add_log_reader`]: basalt_engine::Engine::add_log_reader

use std::sync::Arc;

use basalt_engine::schema::TableName;

use super::{Failure, pipeline};
use crate::security::Caller;
use crate::server::Server;

pub(crate) mod readers;
mod record;
mod stream;

pub(crate) use record::{Form, Notation, last};
pub(crate) use stream::{Stream, Wanted};

/// Where a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the present end of the log.
    Now,
    /// At the next row with this sequence id or a greater one.
    Position(u64),
    /// With the present rows of the tables, and then their changes.
    Snapshot,
}

/// Why there is no stream or reader.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no reader {0}: PUT /changes/readers/{0}?tables=... makes one")]
    NoReader(String),
    #[error("there is a reader {0} already")]
    Exists(String),
    /// The log is not kept from a position on.
    #[error(
        "the log is kept from position {begin} on, and position {position} is before that: begin with from=snapshot, and make a reader (PUT /changes/readers/NAME) so that the log is kept"
    )]
    Gone { begin: u64, position: u64 },
    #[error("{max} {what}")]
    TooMany { max: usize, what: &'static str },
    #[error("{}", .0.with_class())]
    Failed(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<basalt_engine::Error> for Refusal {
    fn from(error: basalt_engine::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Fails unless the caller may read all cells of these tables, of which each exists.
fn check_tables(server: &Arc<Server>, caller: &Caller, tables: &[TableName]) -> Result<(), Failure> {
    if tables.is_empty() {
        return Err(Failure::illegal_argument(
            "no table is named: add tables=NAME, or several with commas",
        ));
    }
    for table in tables {
        pipeline::may_read_table(server, caller, table)?;
        if table.is_system() {
            return Err(Failure::illegal_argument(format!(
                "{table} is a table of the system, whose changes are not streamed"
            )));
        }
        server.engine().describe_table(table)?;
    }
    Ok(())
}
