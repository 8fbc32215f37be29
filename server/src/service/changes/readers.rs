//! Readers of the log for streams of changes.
//!
//! A named reader has the name `changes NAME` in the engine, and its tables as the note; a stream's own
//! reader has the name `stream NUMBER` and no note. Those are left behind by a crash, and removed at the
//! start.
//!
//! A user with the right to read all tables of a named reader may use, move and remove it.

use std::sync::Arc;

use basalt_engine::id::SeqId;
use basalt_engine::schema::TableName;
use basalt_engine::{Engine, Error};
use serde::{Deserialize, Serialize};

use super::{Refusal, Start, check_tables};
use crate::security::Caller;
use crate::server::Server;
use crate::server::copies::changes::NAMED;
use crate::service::{Failure, pipeline};

/// Longest name.
const NAME_BYTES_MAX: usize = 100;
/// Most named readers: each is a part of a file that is written whole at every move of one of them.
const READERS_MAX: usize = 1_000;

/// The note of a named reader.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    tables: Vec<String>,
}

/// A named reader.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) tables: Vec<TableName>,
    /// The next position.
    pub(crate) position: SeqId,
}

/// A named reader as a list shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Listed {
    name: String,
    tables: Vec<String>,
    position: u64,
    /// Bytes of the log that are kept for it, in whole segments.
    kept_bytes: u64,
}

/// The reader of a stream that has its own: removed when it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    server: Arc<Server>,
    name: String,
}

impl Held {
    /// Adds one where a stream begins; returns its position. Blocks.
    pub(super) fn add(server: &Arc<Server>, from: Start) -> Result<(Self, SeqId), Refusal> {
        let name = server.copies().changes.own_name();
        let engine = server.engine();
        let position = match from {
            Start::Now | Start::Snapshot => engine.add_log_reader(&name, &[])?,
            Start::Position(position) => {
                check_kept(engine, position)?;
                engine.add_log_reader_at(&name, &[], SeqId(position))?;
                SeqId(position)
            }
        };
        let server = Arc::clone(server);
        Ok((Self { server, name }, position))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (server, name) = (Arc::clone(&self.server), std::mem::take(&mut self.name));
        let remove = move || {
            // One that cannot be removed now is removed at the start.
            if let Err(error) = server.engine().remove_log_reader(&name) {
                tracing::warn!("the log's reader of a stream of changes is not removed: {error}");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

/// Adds a named reader for these tables at the end of the log, or at a position. Blocks.
pub(crate) fn create(
    server: &Arc<Server>,
    caller: &Caller,
    name: &str,
    tables: &[TableName],
    position: Option<u64>,
) -> Result<Named, Refusal> {
    check_tables(server, caller, tables)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        let text = format!("the name of a reader has 1 to {NAME_BYTES_MAX} letters, digits, and - _ .");
        return Err(Failure::illegal_argument(text).into());
    }
    let engine = server.engine();
    let readers = engine.log_readers();
    let mut names = readers
        .iter()
        .filter_map(|reader| reader.name.strip_prefix(NAMED));
    if names.clone().count() >= READERS_MAX {
        return Err(Refusal::TooMany {
            max: READERS_MAX,
            what: "readers of changes are there already: remove those that nobody uses",
        });
    }
    if names.any(|known| known == name) {
        return Err(Refusal::Exists(name.to_owned()));
    }
    let note = Note {
        tables: tables.iter().map(ToString::to_string).collect(),
    };
    let note = serde_json::to_vec(&note).map_err(|error| Failure::do_not_retry(error.to_string()))?;
    let full = format!("{NAMED}{name}");
    let position = match position {
        None => engine.add_log_reader(&full, &note)?,
        Some(position) => {
            check_kept(engine, position)?;
            engine.add_log_reader_at(&full, &note, SeqId(position))?;
            SeqId(position)
        }
    };
    Ok(Named {
        name: name.to_owned(),
        tables: tables.to_vec(),
        position,
    })
}

/// Moves a reader forward; the log before that is not kept for it any more. Returns its position. Blocks.
pub(crate) fn advance(
    server: &Arc<Server>,
    caller: &Caller,
    name: &str,
    position: u64,
) -> Result<u64, Refusal> {
    let named = find_for(server, caller, name)?;
    check_end(server.engine(), position)?;
    server
        .engine()
        .advance_log_reader(&format!("{NAMED}{name}"), SeqId(position))?;
    Ok(named.position.0.max(position))
}

/// Removes a reader. Blocks.
pub(crate) fn remove(server: &Arc<Server>, caller: &Caller, name: &str) -> Result<(), Refusal> {
    find_for(server, caller, name)?;
    server.engine().remove_log_reader(&format!("{NAMED}{name}"))?;
    Ok(())
}

/// The readers that the caller may use, by name. Blocks.
pub(crate) fn list(server: &Arc<Server>, caller: &Caller) -> Result<Vec<Listed>, Failure> {
    let mut listed = Vec::new();
    for reader in server.engine().log_readers() {
        let Some(name) = reader.name.strip_prefix(NAMED) else {
            continue;
        };
        let named = named(name, reader.position, &reader.note)?;
        let may_read = |table| pipeline::shows_table(server, caller, table);
        if named.tables.iter().all(may_read) {
            listed.push(Listed {
                tables: named.tables.iter().map(ToString::to_string).collect(),
                position: named.position.0,
                kept_bytes: server.engine().log_bytes_from(named.position)?,
                name: named.name,
            });
        }
    }
    Ok(listed)
}

/// The reader of that name.
pub(super) fn find(server: &Arc<Server>, name: &str) -> Result<Named, Refusal> {
    let full = format!("{NAMED}{name}");
    let readers = server.engine().log_readers();
    let Some(reader) = readers.into_iter().find(|reader| reader.name == full) else {
        return Err(Refusal::NoReader(name.to_owned()));
    };
    Ok(named(name, reader.position, &reader.note)?)
}

/// The reader of that name, if the caller may use it.
fn find_for(server: &Arc<Server>, caller: &Caller, name: &str) -> Result<Named, Refusal> {
    let named = find(server, name)?;
    for table in &named.tables {
        pipeline::may_read_table(server, caller, table)?;
    }
    Ok(named)
}

fn named(name: &str, position: SeqId, note: &[u8]) -> Result<Named, Failure> {
    let unreadable = |error: String| Failure::do_not_retry(format!("the note of the reader {name}: {error}"));
    let note: Note = serde_json::from_slice(note).map_err(|error| unreadable(error.to_string()))?;
    let tables = note.tables.iter().map(|table| TableName::parse(table.as_bytes()));
    let tables: Result<Vec<_>, Error> = tables.collect();
    Ok(Named {
        name: name.to_owned(),
        tables: tables.map_err(|error| unreadable(error.to_string()))?,
        position,
    })
}

/// Fails if the log from a position on is not kept.
fn check_kept(engine: &Engine, position: u64) -> Result<(), Refusal> {
    let begin = engine.first_log_position()?.0;
    if position < begin {
        return Err(Refusal::Gone { begin, position });
    }
    Ok(check_end(engine, position)?)
}

/// Fails if the log ends before a position.
pub(super) fn check_end(engine: &Engine, position: u64) -> Result<(), Failure> {
    let end = engine.log_position().0;
    if position > end {
        return Err(Failure::illegal_argument(format!(
            "the log ends before position {end}, and position {position} is behind that: is it of another cluster?"
        )));
    }
    Ok(())
}
