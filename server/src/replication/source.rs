//! The source of one peer: reads the log, and sends it.
//!
//! Each step ([`Source::step`]):
//! 1. read a batch, unless one waits;
//! 2. find the peer's id and region servers, unless they are known;
//! 3. send the batch: the edits of a region in one call, several regions at a time if the peer has several
//!    servers. Edits that have passed the peer before are left out, so that none goes round in a circle;
//! 4. when every call was answered, the position moves behind the batch. It is saved once a second.
//!
//! A failed batch is sent again, without the calls that were answered, until it succeeds, with growing
//! pauses. Edits of one region therefore arrive in the order of the log, each at least once, and the position
//! never passes an answer. When the peer lacks a table or family, the log is read again from the position,
//! since the table may be gone here, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_client::Error as ClientError;
use basalt_client::native::{Cluster, RemoteException, ServerName, Shipment};
use basalt_engine::engine::LogTail;
use basalt_engine::id::SeqId;
use rand::seq::SliceRandom;
use tokio_util::sync::CancellationToken;

use super::batch::{self, Batch, Edit};
use crate::server::Server;
use crate::server::copies::peers::{Peer, Shipped, Unsent};
use crate::service::{Failure, remote};

/// Time between two looks at a log that has nothing new.
const IDLE: Duration = Duration::from_millis(50);

/// Time between two looks at the log of a peer that is disabled.
const DISABLED: Duration = Duration::from_secs(2);

/// Time between two saved positions.
const SAVE: Duration = Duration::from_secs(1);

/// Least time between two log lines about a peer that fails.
const COMPLAINT: Duration = Duration::from_mins(1);

/// Most calls at a time.
const CALLS_MAX: usize = 10;

/// Edits for one more call.
const EDITS_PER_CALL: usize = 100;

/// Equal refusals after which edits are sent one by one, to find the one that is refused.
const EQUAL_REFUSALS: u32 = 10;

/// Factors of the time limit of a batch, after timeouts.
const TIMEOUT_FACTORS: [u32; 5] = [1, 2, 3, 5, 10];

/// Why a step failed.
#[derive(Debug)]
enum Problem {
    Here(Failure),
    Peer(String),
    /// The peer's answer to edits.
    Refused {
        text: String,
        /// Class of the exception; empty without one.
        class: String,
        kind: Refusal,
    },
}

/// Kinds of failed calls, by which the next attempt differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// A table or family is missing there.
    Missing,
    /// Another exception, which the same edits may get again.
    Exception,
    TimedOut,
    Other,
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Here(failure)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Here(failure) => f.write_str(failure.message()),
            Self::Peer(text) | Self::Refused { text, .. } => f.write_str(text),
        }
    }
}

/// The peer's cluster.
struct Target {
    cluster: Cluster,
    /// `None` for one whose id is no UUID.
    id: Option<[u8; 16]>,
    /// The servers that are used.
    sinks: Vec<ServerName>,
}

pub(super) struct Source {
    server: Arc<Server>,
    peer: Arc<Peer>,
    own_id: [u8; 16],
    /// Up to here everything is answered.
    position: SeqId,
    saved: SeqId,
    saved_at: Instant,
    /// `None` until the log was opened at the position.
    tail: Option<LogTail>,
    batch: Option<Batch>,
    target: Option<Target>,
    failures: u32,
    timeouts: usize,
    /// The class of the last exception, and how often it has come in a row.
    refusals: (String, u32),
    complained: Option<Instant>,
}

/// Ships to a peer until the server stops.
pub(super) async fn run(server: Arc<Server>, peer: Arc<Peer>, stop: CancellationToken) {
    let Some(mut source) = Source::new(server, peer) else {
        return;
    };
    source.peer.figures.set_running(source.peer.enabled);
    let working = async {
        loop {
            let pause = source.tick().await;
            tokio::time::sleep(pause).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = working => {}
    }
    // Edits behind the saved position are sent again after the start.
    if let Err(problem) = source.save(Duration::ZERO).await {
        tracing::warn!("replication to peer {}: {problem}", source.peer.id);
    }
}

impl Source {
    /// `None` for a peer that was removed meanwhile.
    fn new(server: Arc<Server>, peer: Arc<Peer>) -> Option<Self> {
        let name = peer.reader();
        let readers = server.engine().log_readers();
        let position = readers.iter().find(|reader| reader.name == name)?.position;
        peer.figures.set_position(position.0);
        Some(Self {
            own_id: server.engine().cluster_id().0,
            server,
            peer,
            position,
            saved: position,
            saved_at: Instant::now(),
            tail: None,
            batch: None,
            target: None,
            failures: 0,
            timeouts: 0,
            refusals: (String::new(), 0),
            complained: None,
        })
    }

    /// One step; returns the pause before the next.
    async fn tick(&mut self) -> Duration {
        if !self.peer.enabled {
            return match self.look_ahead().await {
                Ok(()) => DISABLED,
                Err(problem) => self.note(&problem),
            };
        }
        match self.step().await {
            Ok(pause) => {
                if std::mem::take(&mut self.failures) > 0 {
                    tracing::info!("replication to peer {} goes on", self.peer.id);
                    self.complained = None;
                }
                pause
            }
            Err(problem) => self.note(&problem),
        }
    }

    /// Records a failed step; returns the pause.
    fn note(&mut self, problem: &Problem) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let text = problem.to_string();
        self.peer.figures.note_failed(&text);
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAINT) {
            self.complained = Some(Instant::now());
            tracing::warn!(
                "replication to peer {} waits at position {}: {text}",
                self.peer.id,
                self.position
            );
        }
        self.peer.config.pause(self.failures)
    }

    async fn step(&mut self) -> Result<Duration, Problem> {
        let waiting = self.batch.take();
        let next = match waiting {
            Some(batch) => Some(batch),
            None => self.read(self.peer.config.batch_bytes()).await?,
        };
        let Some(batch) = next else {
            self.peer.figures.set_next(0);
            self.save(SAVE).await?;
            return Ok(IDLE);
        };
        let batch = self.batch.insert(batch);
        let began = Instant::now();
        let mut bytes = 0;
        if let Some(first) = batch.edits.first() {
            self.peer.figures.set_next(first.written_ms);
            self.find_target().await?;
            bytes = self.ship().await?;
        }
        if let Some(batch) = self.batch.take() {
            self.position = batch.next;
            self.peer.figures.set_position(batch.next.0);
        }
        self.save(SAVE).await?;
        Ok(self.throttle(bytes, began.elapsed()))
    }

    /// The pause that keeps the peer's bandwidth.
    fn throttle(&self, bytes: u64, took: Duration) -> Duration {
        match u64::try_from(self.peer.config.bandwidth) {
            Ok(limit @ 1..) => Duration::from_secs_f64(bytes as f64 / limit as f64).saturating_sub(took),
            _ => Duration::ZERO,
        }
    }

    /// Reads the next batch; `None` if nothing is new.
    async fn read(&mut self, bytes_max: u64) -> Result<Option<Batch>, Problem> {
        let tail = match self.tail.take() {
            Some(tail) => tail,
            None => self
                .server
                .engine()
                .read_log(self.position)
                .map_err(Failure::from)?,
        };
        if !tail.has_news() {
            self.tail = Some(tail);
            return Ok(None);
        }
        let config = Arc::clone(&self.peer.config);
        let reading = self.server.on_pool(move |server| {
            let mut tail = tail;
            let batch = batch::read(server.engine(), &mut tail, &config, bytes_max)?;
            Ok((tail, batch))
        });
        // After a failure the log is opened again, at the position.
        let (tail, batch) = reading.await?;
        self.tail = Some(tail);
        let figures = &self.peer.figures;
        if !self.peer.enabled {
            // It is read again.
            return Ok(Some(batch));
        }
        figures.note_read(batch.read);
        for (why, edits) in batch.unsent.values() {
            figures.note_unsent(*why, *edits);
        }
        Ok(Some(batch))
    }

    /// Finds out how far a disabled peer is behind.
    async fn look_ahead(&mut self) -> Result<(), Problem> {
        while self.batch.as_ref().is_none_or(|batch| batch.edits.is_empty()) {
            match self.read(1).await? {
                Some(batch) => self.batch = Some(batch),
                None => break,
            }
        }
        let first = self.batch.as_ref().and_then(|batch| batch.edits.first());
        self.peer
            .figures
            .set_next(first.map_or(0, |edit| edit.written_ms));
        Ok(())
    }

    /// Looks up the peer's id and servers, if they are not known.
    async fn find_target(&mut self) -> Result<(), Problem> {
        let away = |error: ClientError| Problem::Peer(error.to_string());
        let key = &self.peer.config.cluster_key;
        if self.target.is_none() {
            let cluster = remote::peer(key).map_err(away)?;
            let id = uuid(&cluster.cluster_id().await.map_err(away)?);
            if id == Some(self.own_id) {
                return Err(Problem::Peer(format!("{key} is this cluster")));
            }
            self.target = Some(Target {
                cluster,
                id,
                sinks: Vec::new(),
            });
        }
        if let Some(target) = &mut self.target
            && target.sinks.is_empty()
        {
            let mut servers = target.cluster.region_servers().await.map_err(away)?;
            if servers.is_empty() {
                return Err(Problem::Peer(format!("{key} has no region servers")));
            }
            servers.shuffle(&mut rand::rng());
            servers.truncate(servers.len().div_ceil(2));
            target.sinks = servers;
        }
        Ok(())
    }

    /// Sends what is left of the batch. Returns the bytes.
    async fn ship(&mut self) -> Result<u64, Problem> {
        let factor = TIMEOUT_FACTORS[self.timeouts.min(TIMEOUT_FACTORS.len() - 1)];
        let time_limit = self.peer.config.time_limit() * factor;
        let (Some(batch), Some(target)) = (&mut self.batch, &mut self.target) else {
            return Ok(0);
        };
        let before = batch.edits.len();
        if let Some(id) = target.id {
            batch.edits.retain(|edit| !edit.clusters.contains(&id));
        }
        let circling = (before - batch.edits.len()) as u64;
        self.peer.figures.note_unsent(Unsent::Filtered, circling);
        let is_searching = self.refusals.1 >= EQUAL_REFUSALS;
        let mut total = 0;
        while !batch.edits.is_empty() {
            let calls = CALLS_MAX
                .min(batch.edits.len() / EDITS_PER_CALL + 1)
                .min(target.sinks.len());
            let calls = if is_searching { 1 } else { calls.max(1) };
            let edits = if is_searching { 1 } else { batch.edits.len() };
            let sent = send(target, &batch.edits[..edits], calls, self.own_id, time_limit).await;
            let mut index = 0;
            let mut shipped = Shipped::default();
            batch.edits.retain(|edit| {
                let is_sent = index < edits && sent.answered[call_of(edit, calls)];
                index += 1;
                if is_sent {
                    shipped.edits += 1;
                    shipped.cells += u64::from(edit.cells);
                    shipped.bytes += edit.block.len() as u64;
                    shipped.written_ms = shipped.written_ms.max(edit.written_ms);
                }
                !is_sent
            });
            if shipped.edits > 0 {
                total += shipped.bytes;
                let now_ms = self.server.engine().clock().wall_ms();
                self.peer.figures.note_shipped(shipped, now_ms);
            }
            if let Some(error) = sent.failed {
                target.sinks.clear();
                let problem = refused(&error, batch.edits.first().filter(|_| is_searching));
                self.after_refusal(&problem);
                return Err(problem);
            }
        }
        self.timeouts = 0;
        self.refusals.1 = 0;
        Ok(total)
    }

    /// Prepares the next attempt.
    fn after_refusal(&mut self, problem: &Problem) {
        let Problem::Refused { class, kind, .. } = problem else {
            return;
        };
        match kind {
            // It may be missing here, too, by now.
            Refusal::Missing => (self.batch, self.tail) = (None, None),
            Refusal::TimedOut => self.timeouts += 1,
            Refusal::Exception if self.refusals.0 == *class => self.refusals.1 += 1,
            Refusal::Exception => self.refusals = (class.clone(), 1),
            Refusal::Other => {}
        }
    }

    /// Saves the position, unless that was done less than `period` ago.
    async fn save(&mut self, period: Duration) -> Result<(), Problem> {
        if self.position <= self.saved || self.saved_at.elapsed() < period {
            return Ok(());
        }
        let (name, position) = (self.peer.reader(), self.position);
        self.server
            .on_pool(move |server| Ok(server.engine().advance_log_reader(&name, position)?))
            .await?;
        (self.saved, self.saved_at) = (position, Instant::now());
        Ok(())
    }
}

/// The outcome of calls that were made at a time.
struct Sent {
    /// Which calls were answered.
    answered: Vec<bool>,
    /// The first failure.
    failed: Option<ClientError>,
}

/// The call that an edit goes with: the same for all edits of a region.
fn call_of(edit: &Edit, calls: usize) -> usize {
    (edit.region.0 % calls as u64) as usize
}

async fn send(target: &Target, edits: &[Edit], calls: usize, own_id: [u8; 16], time_limit: Duration) -> Sent {
    let mut shipments = vec![Shipment::default(); calls];
    for edit in edits {
        edit.add_to(&mut shipments[call_of(edit, calls)], own_id);
    }
    let sending = shipments.iter().enumerate().map(|(call, shipment)| async move {
        if shipment.edits() == 0 {
            return Ok(());
        }
        let sink = &target.sinks[call % target.sinks.len()];
        target.cluster.ship(sink, shipment, time_limit).await
    });
    let outcomes = futures_util::future::join_all(sending).await;
    Sent {
        answered: outcomes.iter().map(Result::is_ok).collect(),
        failed: outcomes.into_iter().find_map(Result::err),
    }
}

/// The problem of a call that failed. `edit`: the only one of the call.
fn refused(error: &ClientError, edit: Option<&Edit>) -> Problem {
    let remote = error.remote();
    let kind = match (remote, error) {
        (Some(exception), _) if is_missing(exception) => Refusal::Missing,
        (Some(_), _) => Refusal::Exception,
        (None, ClientError::Timeout { .. }) => Refusal::TimedOut,
        (None, _) => Refusal::Other,
    };
    let text = match edit.filter(|_| kind == Refusal::Exception) {
        None => error.to_string(),
        Some(edit) => format!(
            "the peer refuses the edit {} of table {}, row {}: {error}. To give it up, set CONFIG => {{'basalt.replication.skip' => '{}'}}",
            edit.sequence,
            edit.table,
            edit.row.escape_ascii(),
            edit.sequence
        ),
    };
    Problem::Refused {
        text,
        class: remote
            .map(|exception| exception.class.clone())
            .unwrap_or_default(),
        kind,
    }
}

/// Whether a table or family is missing at the peer. HBase wraps the exception in others.
fn is_missing(exception: &RemoteException) -> bool {
    ["TableNotFoundException", "NoSuchColumnFamilyException"]
        .iter()
        .any(|class| exception.class.contains(class) || exception.message.contains(class))
}

/// A UUID as bytes; `None` if the text is another one.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().split('-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use basalt_client::native::Origin;

    use super::*;

    fn exception(class: &str, message: &str) -> ClientError {
        ClientError::Remote(Box::new(RemoteException {
            origin: Origin {
                method: "ReplicateWALEntry",
                server: "h:1".to_owned(),
                region: None,
            },
            class: class.to_owned(),
            message: message.to_owned(),
            do_not_retry: false,
            overloaded: false,
            moved_to: None,
        }))
    }

    #[test]
    fn answers_say_what_the_next_attempt_does() {
        let kind = |error: &ClientError| match refused(error, None) {
            Problem::Refused { kind, .. } => kind,
            problem => panic!("{problem}"),
        };
        let wrapped = exception(
            "java.io.IOException",
            "x: org.apache.hadoop.hbase.TableNotFoundException: t",
        );
        assert_eq!(kind(&wrapped), Refusal::Missing);
        assert_eq!(
            kind(&exception("java.io.IOException", "full")),
            Refusal::Exception
        );
        let lost = ClientError::Connect {
            target: "h:1".to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        assert_eq!(kind(&lost), Refusal::Other);
        let late = ClientError::Timeout {
            what: "ReplicateWALEntry",
            target: "h:1".to_owned(),
            limit: Duration::from_mins(1),
        };
        assert_eq!(kind(&late), Refusal::TimedOut);
    }

    #[test]
    fn ids_are_uuids_or_no_ids_of_clusters() {
        let id = uuid("0102030405060708090a0b0c0d0e0f10");
        assert_eq!(uuid("01020304-0506-0708-090a-0b0c0d0e0f10"), id);
        assert_eq!(id.unwrap()[15], 16);
        assert_eq!(uuid("peer"), None);
    }
}
