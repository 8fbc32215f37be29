//! Schema and upkeep calls, each once, for all protocols.
//!
//! Each is a function of an [`AdminCall`] and neutral arguments. It names its action and target,
//! passes `pipeline::run_admin`, and has all consequences of the call: a dropped table loses its
//! quotas here and nowhere else. They block: an adapter runs those that change something on the pool.
//!
//! | module | calls |
//! | --- | --- |
//! | `backup` | points for backups |
//! | `tables` | tables, families and their states |
//! | `namespaces` | namespaces |
//! | `peers` | replication peers |
//! | `regions` | look-up, flush, compaction, split, merge, moves, loads |
//! | `rights` | rights of users |
//! | `snapshots` | snapshots |
//! | `tokens` | the caller itself, and tokens for it |
//! | `cluster` | state of the server and its work, quotas, slow log, calls of tests |

use std::sync::Arc;

use basalt_engine::schema::TableName;
use parking_lot::Mutex;

pub(crate) mod backup;
pub(crate) mod cluster;
pub(crate) mod namespaces;
pub(crate) mod peers;
pub(crate) mod regions;
pub(crate) mod rights;
pub(crate) mod snapshots;
pub(crate) mod tables;
pub(crate) mod tokens;

use super::describe::Description;
use super::{Backend, Failure, pipeline};
use crate::security::{Action, Caller, Target};
use crate::server::{Failed, Server};

/// The part of a call that schema and upkeep work needs. Owned, so that it can move to the pool.
#[derive(Clone, Debug)]
pub(crate) struct AdminCall {
    server: Arc<Server>,
    caller: Arc<Caller>,
    noted: Arc<Mutex<Noted>>,
}

/// Target of a call.
#[derive(Debug, Default)]
struct Noted {
    /// The first table.
    table: Option<TableName>,
    /// Other names.
    words: String,
}

/// Runs a request of a call, where it may block.
fn run_admin<T>(
    call: &AdminCall,
    action: Action,
    target: Target<'_>,
    work: impl FnOnce(Backend<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    pipeline::run_admin(&call.server, &call.caller, (action, target), |backend| {
        call.note(target);
        work(backend)
    })
}

impl AdminCall {
    pub(crate) fn new(server: &Arc<Server>, caller: &Arc<Caller>) -> Self {
        Self {
            server: Arc::clone(server),
            caller: Arc::clone(caller),
            noted: Arc::default(),
        }
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// Runs `change` unless a call with this nonce has run it; returns the procedure id.
    pub(crate) fn once(
        &self,
        nonce: (Option<u64>, Option<u64>),
        change: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Option<u64>, Failure> {
        self.server.master().change(nonce, change)
    }

    /// As [`Self::once`]. A failure in the `Ok` of `change` is the procedure's: the call succeeds, and
    /// clients get the exception with the procedure's result, its text without a class. HBase does so
    /// for what it checks after it has answered the call.
    pub(crate) fn once_or_failed(
        &self,
        nonce: (Option<u64>, Option<u64>),
        change: impl FnOnce() -> Result<Result<(), Failure>, Failure>,
    ) -> Result<Option<u64>, Failure> {
        self.server.master().change_or_fail(nonce, || {
            Ok(change()?.err().map(|failure| Failed {
                class: failure.class(),
                text: failure.message().to_owned(),
            }))
        })
    }

    /// Notes what it is about.
    fn note(&self, target: Target<'_>) {
        let mut noted = self.noted.lock();
        match target {
            Target::Table(table) | Target::Somewhere(table) | Target::Cells { table, .. } => {
                noted.table.get_or_insert_with(|| table.clone());
            }
            Target::Namespace(name) | Target::NamespaceRights(name) => {
                noted.words = format!("namespace={name}");
            }
            Target::Server => {}
        }
    }

    /// Whether the caller may know that the table exists.
    pub(crate) fn may_know(&self, table: &TableName) -> bool {
        pipeline::may_know(&self.server, &self.caller, Some(table)).is_ok()
    }

    /// Whether a list of descriptors shows that of a table to the caller.
    pub(crate) fn shows_descriptor(&self, table: &TableName) -> bool {
        self.shows(Action::Create, Target::Table(table))
    }

    /// Whether a list shows the caller what needs that right.
    fn shows(&self, action: Action, target: Target<'_>) -> bool {
        self.server.access().shows(&self.caller, action, target)
    }

    /// Notes a change of a table, a namespace or a snapshot in the audit log, once it is made.
    fn changed(&self, what: &str, target: Target<'_>) {
        self.server
            .security()
            .note_schema_change(&self.caller, what, target);
    }

    /// Describes what it was about.
    pub(crate) fn describe(&self, description: &mut Description) {
        let mut noted = self.noted.lock();
        if let Some(table) = &noted.table {
            description.table(table);
        }
        description.words(std::mem::take(&mut noted.words));
    }
}
