//! A primary: sends copies and its log, accepts a fence, and checks at its start whether a standby has
//! replaced it.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_backup::Primary;
use basalt_engine::engine::{Fed, Pin, Place, ServerName};
use basalt_engine::id::SeqId;
use basalt_security::file::write_private;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::remote::Remote;
use super::wire::{
    self, CopiedFile, CopyHead, Fence, Fenced, HEARTBEAT, LogHead, PIECE_BYTES, SecurityFiles, StandbyStatus,
    Status, WantedCopy, WantedLog,
};
use crate::config::security_dir;
use crate::server::Server;
use crate::server::copies::standbys::{Follower, PREFIX};
use crate::server::copies::standing::{Leader, Role};
use crate::service::Failure;

/// Bytes of a copy that are read at a time.
const COPY_BYTES: usize = 1 << 20;

/// Time between two looks at a log that has nothing new. A write that was noted ends the wait; one that was
/// noted between a look and the wait is seen by the next look.
const LOOK: Duration = Duration::from_millis(5);

/// Time between two saved positions of a standby.
const SAVE: Duration = Duration::from_secs(1);

/// Time between two looks at the files of users, rights and certificates.
const SECURITY: Duration = Duration::from_secs(2);

/// Files of the directory `security` that stay here: locks, unfinished files, and the log.
const NOT_COPIED: [&str; 4] = [".lock", ".new", ".unfinished", "audit.log"];

/// The name under which a fence suspends writes.
const WHO: &str = "standby";

/// Why a standby is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// This is not the primary.
    #[error("{0}")]
    NotPrimary(String),
    /// The standby follows another database, or is ahead of this one.
    #[error("{0}")]
    Other(String),
    /// The log that the standby lacks is not kept: it needs a new copy.
    #[error("{0}")]
    Gone(String),
    #[error("{}", .0.message())]
    Failed(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// This server, as others reach it.
pub(crate) fn own(server: &Server) -> Leader {
    let instance = server.instance();
    let (host, port) = instance.advertised();
    Leader {
        host: host.to_owned(),
        port,
        start_code: instance.start_code().unsigned_abs(),
        http: url(server),
    }
}

/// The name of a server, as in `hbase:meta`.
pub(super) fn server_name(leader: &Leader) -> ServerName {
    ServerName {
        host: leader.host.clone(),
        port: leader.port,
        start_code: leader.start_code,
    }
}

/// This server, as its backups name it to standbys that follow those.
pub(crate) fn primary(server: &Server) -> Primary {
    let Leader {
        host,
        port,
        start_code,
        http,
    } = own(server);
    Primary {
        term: server.copies().standing.term(),
        host,
        port,
        start_code,
        http,
    }
}

/// URL of the HTTP port of this server.
pub(super) fn url(server: &Server) -> String {
    let (host, _) = server.instance().advertised();
    wire::url_of(server.config(), host, server.instance().http_port())
}

/// Begins a copy of all data for a standby, and keeps the log for it from now on. Returns the pieces of the
/// answer.
pub(crate) async fn copy(
    server: &Arc<Server>,
    wanted: WantedCopy,
) -> Result<mpsc::Receiver<io::Result<Bytes>>, Refusal> {
    let standing = &server.copies().standing;
    if let Some(text) = standing.refusal() {
        return Err(Refusal::NotPrimary(text));
    }
    check_name(&wanted.name)?;
    server.copies().standbys.note_copy();
    let (name, own) = (wanted.name.clone(), own(server));
    let term = standing.term();
    let (pin, head) = server
        .on_pool(move |server| {
            let engine = server.engine();
            engine.keep_turns()?;
            server
                .copies()
                .standbys
                .begin(engine, &wanted.name, &wanted.url)?;
            let pin = engine.pin()?;
            let head = head(server, &pin, term, own)?;
            Ok((pin, head))
        })
        .await?;
    tracing::info!(
        "standby {name} gets a copy: {} files, position {}",
        head.files.len(),
        head.position
    );
    let (pieces, received) = mpsc::channel(4);
    let data_dir = server.config().data.dir.clone();
    tokio::task::spawn_blocking(move || {
        if let Err(error) = send_files(&pin, &head, &data_dir, &pieces) {
            tracing::warn!("the copy for standby {name} has ended early: {error}");
            // Fails when the standby has gone.
            let _ = pieces.blocking_send(Err(error));
        }
    });
    Ok(received)
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let is_good = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_good {
        return Ok(());
    }
    let what = format!(
        "the name of a standby, {name:?}, has 1 to 64 letters, digits, '-', '_' and '.' (standby.name)"
    );
    Err(Failure::illegal_argument(what).into())
}

fn head(server: &Server, pin: &Pin, term: u64, leader: Leader) -> Result<CopyHead, Failure> {
    let store = pin.files().into_iter().map(|file| CopiedFile {
        path: file.path,
        bytes: file.bytes,
        length: file.bytes,
    });
    let segments = pin.segments()?.into_iter().map(|segment| CopiedFile {
        path: segment.path,
        bytes: segment.bytes,
        length: segment.length,
    });
    let own = security_files(&server.config().data.dir)
        .map_err(|error| Failure::plain_io(format!("reading the directory security: {error}")))?;
    let below = security_dir(Path::new(""));
    let own = own.into_iter().map(|(name, bytes)| CopiedFile {
        path: below.join(name),
        bytes: bytes.len() as u64,
        length: bytes.len() as u64,
    });
    Ok(CopyHead {
        cluster_id: pin.cluster_id().to_string(),
        term,
        leader,
        position: pin.position().next().0,
        turn: pin.turns(),
        manifest_bytes: pin.manifest().len() as u64,
        files: store.chain(segments).chain(own).collect(),
    })
}

fn send_files(
    pin: &Pin,
    head: &CopyHead,
    data_dir: &Path,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let gone = |_| io::Error::new(ErrorKind::BrokenPipe, "the standby has gone");
    let send = |bytes: Bytes| pieces.blocking_send(Ok(bytes)).map_err(gone);
    let mut line = serde_json::to_vec(head)?;
    line.push(b'\n');
    send(line.into())?;
    send(pin.manifest().into())?;
    for file in &head.files {
        let path = data_dir.join(&file.path);
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let mut source = File::open(&path).map_err(named)?.take(file.bytes);
        let (mut left, mut checksum) = (file.bytes, 0);
        while left > 0 {
            let mut piece = vec![0; usize::try_from(left).unwrap_or(COPY_BYTES).min(COPY_BYTES)];
            source.read_exact(&mut piece).map_err(named)?;
            left -= piece.len() as u64;
            checksum = crc32c::crc32c_append(checksum, &piece);
            send(piece.into())?;
        }
        send(Bytes::copy_from_slice(&checksum.to_le_bytes()))?;
    }
    Ok(())
}

/// The files of the directory `security` that a standby has, too.
fn security_files(data_dir: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    files_in(&security_dir(data_dir))
}

/// The files of users, rights and certificates in a directory, as they are sent.
pub(super) fn read_security(dir: &Path) -> io::Result<SecurityFiles> {
    let files = files_in(dir)?.into_iter();
    let files = files.map(|(name, bytes)| (name, STANDARD.encode(bytes)));
    Ok(SecurityFiles {
        files: files.collect(),
    })
}

fn files_in(dir: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let listed = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut files = Vec::new();
    for entry in listed {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if entry.metadata()?.is_file() && !NOT_COPIED.iter().any(|end| name.ends_with(end)) {
            files.push((name, std::fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

/// A digest of the files of users, rights and certificates. Programs of different compilers may differ: then
/// the files are sent once more.
pub(super) fn security_digest(data_dir: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    security_files(data_dir)?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Answers a question for the log: the line and the piece.
pub(crate) async fn log(server: &Arc<Server>, wanted: WantedLog) -> Result<Bytes, Refusal> {
    let standing = &server.copies().standing;
    let fenced = standing.role() == Role::Fenced && standing.term() == wanted.term + 1;
    if let Some(text) = standing.refusal().filter(|_| !fenced) {
        return Err(Refusal::NotPrimary(text));
    }
    let own_id = server.engine().cluster_id().to_string();
    if wanted.cluster_id != own_id {
        return Err(Refusal::Other(format!(
            "standby {} follows the cluster {}, and this is {own_id}: start it with an empty data directory",
            wanted.name, wanted.cluster_id
        )));
    }
    if !fenced && wanted.term != standing.term() {
        let what = format!(
            "standby {} is of term {}, and this server of term {}",
            wanted.name,
            wanted.term,
            standing.term()
        );
        // The logs of two primaries have no positions in common.
        return Err(if wanted.term < standing.term() {
            Refusal::Gone(what)
        } else {
            Refusal::Other(what)
        });
    }
    let Some(follower) = server.copies().standbys.get(&wanted.name) else {
        return Err(Refusal::Gone(format!(
            "no log is kept for standby {}",
            wanted.name
        )));
    };
    (*follower.http.lock()).clone_from(&wanted.url);
    let reads = wanted.reads.as_ref().map(server_name);
    let replica = server.copies().standbys.note_reads(&follower, reads);
    let placed = server.placement().set_replica(server.engine(), replica);
    placed.map_err(Failure::from)?;
    let place = Place {
        position: SeqId(wanted.position),
        turn: wanted.turn,
    };
    let end = server.engine().place();
    if place.position > end.position {
        // A power cut took the end of a log that is not synced (wal.sync = "os").
        tracing::error!(
            "standby {} is at position {}, and the log of this server ends at {}: writes were lost here, and the standby gets a new copy",
            wanted.name,
            place.position,
            end.position
        );
        return Err(Refusal::Gone(
            "the log of the primary ends before this place".into(),
        ));
    }
    acknowledge(server, &follower, place).await?;
    if fenced && place.position >= end.position && place.turn >= end.turn {
        // There is nothing more here: other standbys turn to the new primary.
        return Err(Refusal::NotPrimary(standing.refusal().unwrap_or_default()));
    }
    let mut held = follower.feed.lock().await;
    let mut feed = match held.take() {
        Some((at, feed)) if at == place => feed,
        _ => {
            server
                .on_pool(move |server| Ok(server.engine().feed(place)?))
                .await?
        }
    };
    let begun = Instant::now();
    while !feed.has_news(server.engine()) && begun.elapsed() < HEARTBEAT {
        server.copies().standbys.written(LOOK).await;
    }
    let term = wanted.term;
    let (fed, feed, piece) = server
        .on_pool(move |server| {
            let mut piece = Vec::new();
            let fed = server.engine().read_feed(&mut feed, PIECE_BYTES, &mut piece);
            Ok((fed, feed, piece))
        })
        .await?;
    let (end, is_end) = match fed {
        Ok(Fed::Piece(end, is_end)) => (end, is_end),
        Ok(Fed::TurnsGone) => {
            return Err(Refusal::Gone(format!(
                "changes behind turn {} are not kept",
                wanted.turn
            )));
        }
        Err(basalt_engine::Error::InvalidArgument(text)) => return Err(Refusal::Gone(text)),
        Err(error) => return Err(Failure::from(error).into()),
    };
    *held = Some((end, feed));
    drop(held);
    let now = server.engine().place();
    let security = changed_security(server, &follower, &wanted.security).await?;
    let head = LogHead {
        term,
        leader: own(server),
        end: now.position.0,
        turns: now.turn,
        is_end,
        security,
    };
    let mut answer = serde_json::to_vec(&head).map_err(|error| Failure::plain_io(error.to_string()))?;
    answer.push(b'\n');
    answer.extend_from_slice(&piece);
    Ok(answer.into())
}

/// Notes what a standby has, and saves that once a second.
async fn acknowledge(server: &Arc<Server>, follower: &Arc<Follower>, place: Place) -> Result<(), Failure> {
    let end = server.engine().place();
    server.copies().standbys.acknowledge(follower, place, end);
    if !follower.is_save_due(SAVE) {
        return Ok(());
    }
    let (name, url) = (format!("{PREFIX}{}", follower.name), follower.http.lock().clone());
    server
        .on_pool(move |server| {
            let engine = server.engine();
            let known = engine.log_readers();
            let known = known.iter().find(|reader| reader.name == name);
            if known.is_some_and(|reader| reader.note != url.as_bytes()) {
                engine.set_log_reader_note(&name, url.as_bytes())?;
            }
            Ok(engine.advance_log_reader(&name, place.position)?)
        })
        .await
}

/// The files of users, rights and certificates, if the standby has others. They are looked at now and then.
async fn changed_security(
    server: &Arc<Server>,
    follower: &Arc<Follower>,
    theirs: &str,
) -> Result<Option<SecurityFiles>, Failure> {
    if !follower.is_security_due(SECURITY) {
        return Ok(None);
    }
    let theirs = theirs.to_owned();
    server
        .on_pool(move |server| {
            let data_dir = &server.config().data.dir;
            let failed = |error: io::Error| Failure::plain_io(format!("the directory security: {error}"));
            if security_digest(data_dir).map_err(failed)? == theirs {
                return Ok(None);
            }
            Ok(Some(read_security(&security_dir(data_dir)).map_err(failed)?))
        })
        .await
}

/// Takes this server's place from it: it answers no call from now on. Returns the end of its log.
pub(crate) async fn fence(server: &Arc<Server>, fence: Fence) -> Result<Fenced, Refusal> {
    let own_id = server.engine().cluster_id().to_string();
    if fence.cluster_id != own_id {
        return Err(Refusal::Other(format!(
            "a fence for the cluster {}, and this is {own_id}",
            fence.cluster_id
        )));
    }
    let standing = &server.copies().standing;
    if matches!(standing.role(), Role::Standby | Role::Copying) {
        // It was made a copy since, takes no writes of clients, and its place belongs to its own term.
        return Ok(Fenced { position: 0, turn: 0 });
    }
    let (term, leader) = (fence.term, fence.leader);
    let is_fenced = server
        .on_pool(move |server| {
            let standing = &server.copies().standing;
            let learned = standing.learn(term, &leader);
            learned.map_err(|error| Failure::plain_io(format!("storing the fence: {error}")))
        })
        .await?;
    if !is_fenced && standing.is_primary() {
        return Err(Refusal::Other(format!(
            "this server is the primary of term {}, and the fence is of term {}",
            standing.term(),
            fence.term
        )));
    }
    tracing::error!(
        "this server was replaced: {}",
        standing.refusal().unwrap_or_default()
    );
    // Writes that were let in before are refused by the engine, or end before the position is read; none of
    // them is acknowledged after the role has changed.
    let place = server
        .on_pool(|server| {
            let engine = server.engine();
            engine.suspend_writes_of(WHO, server.copies().standing.refusal());
            let end = engine.log_point()?;
            Ok(Fenced {
                position: end.end.last_seq.next().0,
                turn: end.turns,
            })
        })
        .await?;
    Ok(place)
}

/// Keeps no more log for a standby. Fails if there is none of that name.
pub(crate) async fn remove(server: &Arc<Server>, name: String) -> Result<(), Refusal> {
    let removed = server
        .on_pool({
            let name = name.clone();
            move |server| Ok(server.copies().standbys.remove(server.engine(), &name)?)
        })
        .await?;
    if removed {
        return Ok(());
    }
    Err(Failure::illegal_argument(format!("there is no standby {name:?}")).into())
}

/// Asks the standbys that this server had whether one of them is the primary now. Called before calls are
/// accepted.
pub(crate) async fn ask_standbys(server: &Arc<Server>) {
    let standing = &server.copies().standing;
    if !standing.is_primary() {
        return;
    }
    let limit = Duration::from_millis(server.config().standby.ask_ms);
    for follower in server.copies().standbys.all() {
        let url = follower.http.lock().clone();
        let asked = match Remote::new(server.config(), &url) {
            Ok(remote) => remote.get::<Status>(wire::STATUS, limit).await,
            Err(failed) => Err(failed),
        };
        let own_id = server.engine().cluster_id().to_string();
        match asked {
            Ok(status) if status.cluster_id != own_id => {}
            Ok(Status {
                term,
                leader: Some(leader),
                ..
            }) if term > standing.term() => {
                let learned = server
                    .on_pool(move |server| {
                        let learned = server.copies().standing.learn(term, &leader);
                        learned.map_err(|error| Failure::plain_io(error.to_string()))
                    })
                    .await;
                if let Err(failure) = learned {
                    tracing::error!("storing the new primary: {}", failure.message());
                }
                tracing::error!("{}", standing.refusal().unwrap_or_default());
                return;
            }
            Ok(_) => {}
            Err(failed) => tracing::warn!(
                "standby {} does not say whether it is the primary now, and this server goes on: {failed}",
                follower.name
            ),
        }
    }
}

/// Role and position of this server, for operators and other servers.
pub(crate) fn status(server: &Server) -> Status {
    let end = server.engine().place();
    let copies = server.copies();
    let role = copies.standing.role();
    let stored = copies.standing.stored();
    let following = &copies.following;
    let (place, lag_ms) = match role {
        Role::Standby => (following.place(), Some(following.lag())),
        _ => (end, None),
    };
    let standbys = copies.standbys.loads(end).into_iter().map(|load| StandbyStatus {
        name: load.name,
        url: load.http,
        connected: load.is_connected,
        position: load.place.position.0,
        turn: load.place.turn,
        lag_ms: millis(load.lag),
    });
    Status {
        cluster_id: server.engine().cluster_id().to_string(),
        role,
        term: stored.term,
        leader: match role {
            Role::Primary => Some(own(server)),
            _ => stored.leader,
        },
        position: place.position.0,
        turn: place.turn,
        lag_ms: lag_ms.map(millis),
        store: server
            .config()
            .followed_store()
            .filter(|_| role == Role::Standby)
            .map(str::to_owned),
        problem: following.problem(),
        alone: copies.standbys.is_alone(),
        standbys: standbys.collect(),
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Writes the files of users, rights and certificates that the primary has, and removes others.
pub(super) fn take_security(data_dir: &Path, given: &SecurityFiles) -> io::Result<()> {
    let dir = security_dir(data_dir);
    std::fs::create_dir_all(&dir)?;
    let known = security_files(data_dir)?;
    for (name, content) in &given.files {
        let is_plain = Path::new(name)
            .file_name()
            .is_some_and(|plain| plain == name.as_str());
        let bytes = STANDARD
            .decode(content)
            .ok()
            .filter(|_| is_plain)
            .ok_or_else(|| {
                io::Error::new(
                    ErrorKind::InvalidData,
                    format!("the file {name:?} of the primary"),
                )
            })?;
        if known
            .iter()
            .any(|(known, content)| known == name && *content == bytes)
        {
            continue;
        }
        write_private(&dir.join(name), &bytes)?;
    }
    for (name, _) in known {
        if !given.files.iter().any(|(given, _)| *given == name) {
            std::fs::remove_file(dir.join(name))?;
        }
    }
    File::open(&dir)?.sync_all()
}
