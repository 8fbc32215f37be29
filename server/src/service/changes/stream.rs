//! One stream of changes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::cell::{Budget, CellBatch};
use basalt_engine::engine::{LogTail, Scanner};
use basalt_engine::id::SeqId;
use basalt_engine::op::{FetchLimits, ReadSpec, Scan};
use basalt_engine::schema::TableName;
use basalt_engine::{Error, engine::Fetched};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::readers::{self, Held};
use super::record::{Form, Notation, Piece, Writer};
use super::{Refusal, Start, check_tables};
use crate::security::Caller;
use crate::server::Server;
use crate::service::{Failure, pipeline};

/// Time between two looks at a log that has nothing new.
const IDLE: Duration = Duration::from_millis(20);
/// Time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Time between two looks at the caller's rights, and between two moves of the stream's own reader.
const LOOK: Duration = Duration::from_secs(5);
/// Bytes of the log, or of rows, for one piece.
const PIECE_BYTES: usize = 256 << 10;
/// Longest time without memory for a record.
const MEMORY_WAIT: Duration = Duration::from_secs(30);

/// The request of a stream.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The tables; of a named reader those that it was made for.
    pub(crate) tables: Vec<TableName>,
    /// `None`: at the position of the named reader; without one, at the end of the log.
    pub(crate) from: Option<Start>,
    /// The named reader.
    pub(crate) reader: Option<String>,
    pub(crate) notation: Notation,
    pub(crate) form: Form,
}

/// An open stream. Its reader of the log, if it has its own, is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Stream {
    server: Arc<Server>,
    caller: Arc<Caller>,
    tables: Vec<TableName>,
    names: Arc<HashMap<TableName, String>>,
    as_asked: (Notation, Form),
    /// The stream's own reader.
    held: Option<Held>,
    /// The next position.
    position: SeqId,
    /// Up to here the own reader has moved.
    moved: SeqId,
    /// `None` until the log was opened at the position.
    tail: Option<LogTail>,
    /// Tables whose present rows are still to be sent.
    present: VecDeque<TableName>,
    /// Scans the first of them, once it is begun.
    scanner: Option<Scanner>,
    is_begun: bool,
    beat_at: Instant,
    looked_at: Instant,
    /// Since when there has been no memory for a record.
    short_since: Option<Instant>,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    /// Opens a stream of a caller.
    pub(crate) async fn open(
        server: &Arc<Server>,
        caller: &Arc<Caller>,
        wanted: Wanted,
    ) -> Result<Self, Refusal> {
        let place = server.copies().changes.place().map_err(|max| Refusal::TooMany {
            max,
            what: "streams of changes are open already (changes.max_streams)",
        })?;
        let (asked_by, own) = (Arc::clone(caller), Arc::clone(server));
        let beginning = server
            .on_pool(move |_| {
                let reader = wanted.reader.as_deref();
                Ok(begin(&own, &asked_by, wanted.tables, wanted.from, reader))
            })
            .await?;
        let Begun {
            tables,
            from,
            held,
            position,
        } = beginning?;
        let now = Instant::now();
        let names = tables.iter().map(|table| (table.clone(), table.to_string()));
        Ok(Self {
            names: Arc::new(names.collect()),
            present: match from {
                Start::Snapshot => tables.iter().cloned().collect(),
                Start::Now | Start::Position(_) => VecDeque::new(),
            },
            server: Arc::clone(server),
            caller: Arc::clone(caller),
            tables,
            as_asked: (wanted.notation, wanted.form),
            held,
            position,
            moved: position,
            tail: None,
            scanner: None,
            is_begun: false,
            beat_at: now,
            looked_at: now,
            short_since: None,
            _place: place,
        })
    }

    /// The next piece. Waits for one, but not longer than until the next heartbeat. After an error the stream
    /// is of no more use.
    pub(crate) async fn next(&mut self) -> Result<Piece, Failure> {
        if !std::mem::replace(&mut self.is_begun, true) {
            return Ok(self.head());
        }
        loop {
            self.look().await?;
            let made = if self.present.is_empty() {
                self.changes().await?
            } else {
                self.rows().await?
            };
            if let Some(piece) = made {
                self.beat_at = Instant::now();
                return Ok(piece);
            }
            if self.beat_at.elapsed() >= HEARTBEAT {
                self.beat_at = Instant::now();
                return Ok(self.heartbeat());
            }
        }
    }

    fn writer(&self) -> Writer {
        Writer::new(&self.names, self.as_asked, self.server.admission().memory())
    }

    /// A piece that has one object besides records.
    fn noted(&self, note: &serde_json::Value) -> Piece {
        let mut writer = self.writer();
        writer.note(note);
        writer.finish()
    }

    fn head(&self) -> Piece {
        let tables: Vec<_> = self.tables.iter().map(ToString::to_string).collect();
        self.noted(&json!({ "stream": {
            "cluster": self.server.engine().cluster_id().to_string(),
            "position": self.position.0,
            "tables": tables,
        }}))
    }

    /// Present rows have no position, so before they are sent there is none to go on with.
    fn heartbeat(&self) -> Piece {
        let position = self.present.is_empty().then_some(self.position.0);
        let time = self.server.engine().clock().wall_ms();
        self.noted(&json!({ "heartbeat": { "position": position, "time": time } }))
    }

    /// Asks for the caller's rights again, and moves the own reader, from time to time.
    async fn look(&mut self) -> Result<(), Failure> {
        if self.looked_at.elapsed() < LOOK {
            return Ok(());
        }
        self.looked_at = Instant::now();
        let (caller, tables) = (&self.caller, &self.tables);
        for table in tables {
            pipeline::may_read_table(&self.server, caller, table)?;
        }
        let Some(held) = self.held.as_ref().filter(|_| self.position > self.moved) else {
            return Ok(());
        };
        let (name, position) = (held.name().to_owned(), self.position);
        let moving = self
            .server
            .on_pool(move |server| Ok(server.engine().advance_log_reader(&name, position)?));
        moving.await?;
        self.moved = self.position;
        Ok(())
    }

    /// The records from the position on; `None` if there are none for this stream.
    async fn changes(&mut self) -> Result<Option<Piece>, Failure> {
        let tail = match self.tail.take() {
            Some(tail) => tail,
            None => self.server.engine().read_log(self.position)?,
        };
        if !tail.has_news() {
            self.tail = Some(tail);
            tokio::time::sleep(IDLE).await;
            return Ok(None);
        }
        let (mut writer, from) = (self.writer(), self.position.0);
        let reading = self.server.on_pool(move |_| {
            let mut tail = tail;
            let read = tail.read(PIECE_BYTES as u64, &mut |edit| writer.take(from, &edit));
            Ok((tail, writer, read))
        });
        let (tail, writer, read) = reading.await?;
        self.position = tail.position();
        self.tail = Some(tail);
        self.wait_for_memory(read.map(drop), &writer).await?;
        Ok(self.finished(writer))
    }

    /// The next present rows.
    async fn rows(&mut self) -> Result<Option<Piece>, Failure> {
        let Some(table) = self.present.front().cloned() else {
            return Ok(None);
        };
        let scanner = if let Some(scanner) = self.scanner.take() {
            scanner
        } else {
            let scanned = table.clone();
            let opening = self
                .server
                .on_pool(move |server| Ok(server.engine().scan(&scanned, all_rows())?));
            opening.await?
        };
        let mut writer = self.writer();
        let memory = Arc::clone(self.server.admission().memory());
        let reading = self.server.on_pool(move |_| {
            let mut scanner = scanner;
            let mut batch = CellBatch::charged_to(memory as Arc<dyn Budget>);
            let limits = FetchLimits {
                results: usize::MAX,
                bytes: PIECE_BYTES,
                time: HEARTBEAT,
            };
            let fetched = scanner.fetch(&limits, &mut batch)?;
            scanner.rest();
            for row in batch.rows() {
                let cells: Vec<_> = row.cells().collect();
                writer.present(&table, row.key(), &cells)?;
            }
            Ok((scanner, writer, fetched))
        });
        let (scanner, mut writer, fetched) = reading.await?;
        if fetched == Fetched::End {
            self.present.pop_front();
        } else {
            self.scanner = Some(scanner);
        }
        if self.present.is_empty() {
            writer.note(&json!({ "snapshot_end": { "position": self.position.0 } }));
        }
        Ok(self.finished(writer))
    }

    fn finished(&self, writer: Writer) -> Option<Piece> {
        self.server.copies().changes.note_records(writer.records());
        (!writer.is_empty()).then(|| writer.finish())
    }

    /// Lets a stream without memory for its next record wait, but not for ever.
    async fn wait_for_memory(&mut self, read: Result<(), Error>, writer: &Writer) -> Result<(), Failure> {
        match read {
            Err(Error::CallMemory(_)) if writer.records() > 0 => Ok(()),
            Err(error @ Error::CallMemory(_)) => {
                let since = *self.short_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= MEMORY_WAIT {
                    return Err(error.into());
                }
                tokio::time::sleep(IDLE).await;
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(()) => {
                self.short_since = None;
                Ok(())
            }
        }
    }
}

/// The beginning of a stream.
struct Begun {
    tables: Vec<TableName>,
    from: Start,
    held: Option<Held>,
    position: SeqId,
}

/// Checks a request, and adds the stream's own reader if it needs one. Blocks.
fn begin(
    server: &Arc<Server>,
    caller: &Caller,
    mut tables: Vec<TableName>,
    from: Option<Start>,
    reader: Option<&str>,
) -> Result<Begun, Refusal> {
    let named = reader.map(|name| readers::find(server, name)).transpose()?;
    if let Some(named) = named.as_ref().filter(|_| tables.is_empty()) {
        tables.clone_from(&named.tables);
    }
    check_tables(server, caller, &tables)?;
    if let Some(named) = &named
        && let Some(other) = tables.iter().find(|table| !named.tables.contains(table))
    {
        let text = format!("the reader {} is not of table {other}", named.name);
        return Err(Failure::illegal_argument(text).into());
    }
    let (from, held, position) = match (named, from) {
        // The log is kept for the named reader from its position on.
        (Some(named), None) => (Start::Position(named.position.0), None, named.position),
        (Some(named), Some(Start::Position(position))) if position >= named.position.0 => {
            readers::check_end(server.engine(), position)?;
            (Start::Position(position), None, SeqId(position))
        }
        (Some(named), Some(Start::Snapshot)) => (Start::Snapshot, None, named.position),
        (_, from) => {
            let from = from.unwrap_or(Start::Now);
            let (held, position) = Held::add(server, from)?;
            (from, Some(held), position)
        }
    };
    Ok(Begun {
        tables,
        from,
        held,
        position,
    })
}

/// All versions of all cells of a table, without deleted ones.
fn all_rows() -> Scan {
    Scan {
        spec: ReadSpec {
            max_versions: i32::MAX,
            cache_blocks: false,
            ..ReadSpec::default()
        },
        ..Scan::default()
    }
}
