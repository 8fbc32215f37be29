//! Before the engine opens: decides whether this server is a standby, and fetches a copy of the primary's
//! data if the directory needs one.
//!
//! 1. The copy is fetched into `DIR/copying`, from the primary, or from the newest backup in the store that
//!    is followed. A fetch from the primary that was cut short begins again.
//! 2. The engine makes a database of it there.
//! 3. `standing` says that this is a standby that is copying. What the directory had goes, the database's
//!    file `CURRENT` first, and the copy's files move to its place, `CURRENT` last.
//! 4. `standing` says where the standby is.
//!
//! A kill between 3 and 4 leaves files in both places; the next start fetches another copy.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::engine::{Place, Restore};
use basalt_engine::fs::RealFs;
use basalt_engine::id::SeqId;

use super::remote::{Failed, Remote};
use super::store;
use super::wire::{self, CopyHead, LINE_BYTES_MAX, WantedCopy};
use crate::config::{Config, security_dir};
use crate::server::copies::standing::{Leader, Origin, Role, Stored};

/// Name of the directory of an unfinished copy.
const COPYING: &str = "copying";

/// Names that a database has in its directory.
const DATABASE: [&str; 4] = ["wal", "tables", "snapshots", "orphans"];

/// The file that names the manifest.
const CURRENT: &str = "CURRENT";

/// Pause before the primary is asked again.
const PAUSE: Duration = Duration::from_secs(1);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Name of this server among standbys.
pub(super) fn name(config: &Config) -> String {
    if !config.standby.name.is_empty() {
        return config.standby.name.clone();
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let good = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    host.chars().filter(|letter| good(*letter)).take(64).collect()
}

/// URLs at which the primary may be: the last known primary, and the setting.
pub(super) fn primaries(config: &Config, leader: Option<&Leader>) -> Vec<String> {
    let follow = Some(&config.standby.follow).filter(|url| !url.is_empty());
    let known = leader.map(|leader| &leader.http);
    let mut urls: Vec<String> = known.into_iter().chain(follow).cloned().collect();
    urls.dedup();
    urls
}

/// Makes the data directory that of a standby, if the settings ask for one. `url` is that of this server's
/// HTTP port. Waits for a primary that is away.
pub(crate) async fn prepare(config: &Config, url: &str) -> Result<(), Failure> {
    let dir = &config.data.dir;
    let follow = &config.standby.follow;
    let stored = Stored::read(dir)?;
    let has_database = dir.join(CURRENT).exists();
    let known = stored.clone();
    let leader = match stored.map(|stored| (stored.role, stored.leader)) {
        None if follow.is_empty() => return Ok(()),
        None if has_database => {
            return Err(format!(
                "standby.follow = {follow}, and {} has a database that is no standby's: move it away, or remove standby.follow",
                dir.display()
            )
            .into());
        }
        Some((Role::Primary, _)) => {
            if !follow.is_empty() {
                tracing::warn!(
                    "standby.follow = {follow} is ignored: this server has become the primary; remove the setting"
                );
            }
            return Ok(());
        }
        Some((Role::Fenced, leader)) => {
            let at = leader.map_or_else(String::new, |leader| format!(" {}:{}", leader.host, leader.port));
            if follow.is_empty() {
                tracing::error!("the primary{at} has taken the place of this server, which takes no calls");
                return Ok(());
            }
            return Err(format!(
                "the primary{at} has taken the place of this server: its data in {} may have writes that the primary lacks. To follow the primary, move the directory away",
                dir.display()
            )
            .into());
        }
        Some((Role::Standby, _)) if has_database => return check_followed(config, known.as_ref()).await,
        Some((Role::Standby | Role::Copying, leader)) => leader,
        None => None,
    };
    fs::create_dir_all(dir).map_err(|error| format!("creating {}: {error}", dir.display()))?;
    if config.followed_store().is_some() {
        return prepare_stored(config, known.as_ref()).await;
    }
    let urls = primaries(config, leader.as_ref());
    if urls.is_empty() {
        return Err("this standby does not know its primary: set standby.follow".into());
    }
    let mut complained = false;
    loop {
        let mut refusals = Vec::new();
        for from in &urls {
            let remote = Remote::new(config, from)?;
            match fetch(config, &remote, url).await {
                Ok(copied) => {
                    let dir = dir.clone();
                    tokio::task::spawn_blocking(move || install(&dir, copied)).await??;
                    return Ok(());
                }
                Err(Unfetched::Away(why)) => {
                    if !std::mem::replace(&mut complained, true) {
                        tracing::warn!("no copy of {} yet, it is tried again: {why}", remote.url());
                    }
                }
                Err(Unfetched::Refused(why)) => refusals.push(why),
            }
        }
        if refusals.len() == urls.len() {
            return Err(refusals.join("; ").into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Refuses backups that an existing standby cannot follow. A store that is away may be back later.
async fn check_followed(config: &Config, stored: Option<&Stored>) -> Result<(), Failure> {
    if config.followed_store().is_none() {
        let is_stored = stored.is_some_and(|stored| stored.origin.is_some());
        if is_stored && config.standby.follow.is_empty() {
            return Err("this standby follows backups: set standby.follow to their URL".into());
        }
        return Ok(());
    }
    match store::open(config).await {
        Ok(vault) => Ok(store::check_cluster(&vault, stored)?),
        Err(error) if is_away(&error) => {
            tracing::warn!("the backups to follow cannot be read now: {error}");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn is_away(error: &basalt_backup::Error) -> bool {
    matches!(error, basalt_backup::Error::Store { .. }) && !error.is_damage()
}

/// Makes the directory a copy of the newest backup. Waits for a store that is away.
async fn prepare_stored(config: &Config, known: Option<&Stored>) -> Result<(), Failure> {
    let mut complained = false;
    loop {
        match fetch_backup(config, known).await {
            Ok(copied) => {
                let dir = config.data.dir.clone();
                return tokio::task::spawn_blocking(move || install(&dir, copied)).await?;
            }
            Err(Unfetched::Away(why)) => {
                if !std::mem::replace(&mut complained, true) {
                    tracing::warn!("no copy of the newest backup yet, it is tried again: {why}");
                }
            }
            Err(Unfetched::Refused(why)) => return Err(why.into()),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Fetches the newest backup into the directory for unfinished copies.
async fn fetch_backup(config: &Config, known: Option<&Stored>) -> Result<Stored, Unfetched> {
    let vault = store::open(config).await?;
    store::check_cluster(&vault, known).map_err(Unfetched::Refused)?;
    let plan = vault.newest().await?;
    if let [_, ..] = plan.left_out() {
        tracing::warn!(
            "backup {} is not encrypted, and has no users: this server has those of its own directory, if any",
            plan.id()
        );
    }
    let into = config.data.dir.join(COPYING);
    if !store::is_begun(&into, &plan) {
        match fs::remove_dir_all(&into) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(&into)?,
        }
    }
    tracing::info!("a copy is made of backup {} at {}", plan.id(), vault.url());
    store::fetch(&vault, &plan, &into).await?;
    fs::write(into.join(MANIFEST), &plan.manifest)?;
    remove(&into.join(basalt_backup::DONE))?;
    let place = Place {
        position: SeqId(plan.position()).next(),
        turn: plan.log_place().turns,
    };
    let origin = Origin {
        run: plan.log_place().run,
        cluster_id: plan.cluster_id().to_owned(),
    };
    let term = plan.primary().map_or(0, |primary| primary.term);
    let term = term.max(known.map_or(0, |known| known.term));
    Ok(Stored::standby(
        term,
        store::leader_of(&plan),
        place,
        Some(origin),
    ))
}

impl From<basalt_backup::Error> for Unfetched {
    fn from(error: basalt_backup::Error) -> Self {
        if is_away(&error) {
            Self::Away(error.to_string())
        } else {
            Self::Refused(error.to_string())
        }
    }
}

/// Why a copy was not fetched.
enum Unfetched {
    /// Another attempt may succeed.
    Away(String),
    Refused(String),
}

impl From<Failed> for Unfetched {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Away { .. } | Failed::Refused { status: 503, .. } => Self::Away(failed.to_string()),
            failed => Self::Refused(failed.to_string()),
        }
    }
}

impl From<io::Error> for Unfetched {
    fn from(error: io::Error) -> Self {
        Self::Refused(format!("writing the copy: {error}"))
    }
}

/// The answer as it arrives.
struct Answer {
    remote: Remote,
    response: reqwest::Response,
    /// Bytes that have arrived and were not taken.
    arrived: Vec<u8>,
}

impl Answer {
    /// Waits for more bytes.
    async fn more(&mut self) -> Result<(), Unfetched> {
        let chunk = self.response.chunk().await;
        match chunk.map_err(|error| self.remote.away(&error))? {
            Some(chunk) => {
                self.arrived.extend_from_slice(&chunk);
                Ok(())
            }
            None => Err(Unfetched::Away("it ended early".into())),
        }
    }

    /// The next line.
    async fn line(&mut self) -> Result<Vec<u8>, Unfetched> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.arrived[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.arrived.split_off(searched + at + 1);
                let mut line = std::mem::replace(&mut self.arrived, rest);
                line.pop();
                return Ok(line);
            }
            searched = self.arrived.len();
            if searched > LINE_BYTES_MAX {
                return Err(Unfetched::Refused("its first line has no end".into()));
            }
            self.more().await?;
        }
    }

    /// Hands out the next bytes as they come.
    async fn bytes(
        &mut self,
        mut left: u64,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Unfetched> {
        while left > 0 {
            if self.arrived.is_empty() {
                self.more().await?;
            }
            let count = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(self.arrived.len());
            take(&self.arrived[..count])?;
            self.arrived.drain(..count);
            left -= count as u64;
        }
        Ok(())
    }
}

/// Fetches a copy into the directory for unfinished ones.
async fn fetch(config: &Config, remote: &Remote, url: &str) -> Result<Stored, Unfetched> {
    let into = config.data.dir.join(COPYING);
    match fs::remove_dir_all(&into) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(&into)?,
    }
    let wanted = WantedCopy {
        name: name(config),
        url: url.to_owned(),
    };
    let mut answer = Answer {
        response: remote.post(wire::COPY, &wanted, None).await?,
        remote: remote.clone(),
        arrived: Vec::new(),
    };
    let line = answer.line().await?;
    let head: CopyHead = serde_json::from_slice(&line)
        .map_err(|error| Unfetched::Refused(format!("its first line: {error}")))?;
    let total: u64 = head.files.iter().map(|file| file.bytes).sum();
    tracing::info!(
        "a copy of {} is fetched: {} files, {total} bytes",
        remote.url(),
        head.files.len()
    );
    let mut manifest = Vec::new();
    answer
        .bytes(head.manifest_bytes, |bytes| {
            manifest.extend_from_slice(bytes);
            Ok(())
        })
        .await?;
    fs::write(into.join(MANIFEST), &manifest)?;
    for file in &head.files {
        let is_below = file
            .path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_below {
            let what = format!("it has a file {}", file.path.display());
            return Err(Unfetched::Refused(what));
        }
        let path = into.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut written = private(&path)?;
        let mut checksum = 0;
        answer
            .bytes(file.bytes, |bytes| {
                checksum = crc32c::crc32c_append(checksum, bytes);
                written.write_all(bytes)
            })
            .await?;
        let mut theirs = Vec::new();
        answer
            .bytes(4, |bytes| {
                theirs.extend_from_slice(bytes);
                Ok(())
            })
            .await?;
        if theirs != checksum.to_le_bytes() {
            let what = format!("the checksum of {} is wrong", file.path.display());
            return Err(Unfetched::Away(what));
        }
        written.set_len(file.length)?;
        written.sync_all()?;
    }
    let place = Place {
        position: SeqId(head.position),
        turn: head.turn,
    };
    Ok(Stored::standby(head.term, Some(head.leader), place, None))
}

/// State of the primary's manifest, in an unfinished copy.
const MANIFEST: &str = "manifest-of-the-primary";

/// Creates a file that only its owner reads.
fn private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Makes the copy the directory's database, of a standby that stands there. Blocks.
fn install(dir: &Path, mut stored: Stored) -> Result<(), Failure> {
    let copy = dir.join(COPYING);
    let from = copy.join(MANIFEST);
    let manifest = fs::read(&from)?;
    let restore = Restore::decode(&manifest, &from)?;
    fs::remove_file(&from)?;
    restore.install(&RealFs, &copy)?;
    Engine::builder().settle(&restore, &copy)?;
    stored.role = Role::Copying;
    stored.write(dir)?;
    let named = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("{path}: {error}")
    };
    remove(&dir.join(CURRENT)).map_err(named(&dir.join(CURRENT)))?;
    sync(dir)?;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if DATABASE.contains(&name.as_str()) || name.starts_with("MANIFEST-") {
            remove(&path).map_err(named(&path))?;
        }
    }
    let security = security_dir(&copy);
    if security.exists() {
        let own = security_dir(dir);
        fs::create_dir_all(&own)?;
        for entry in fs::read_dir(&security)? {
            let entry = entry?;
            fs::rename(entry.path(), own.join(entry.file_name()))?;
        }
        fs::remove_dir(&security)?;
        sync(&own)?;
    }
    let mut moved: Vec<PathBuf> = fs::read_dir(&copy)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    // The database is there once its last file is.
    moved.sort_by_key(|path| path.ends_with(CURRENT));
    for path in moved {
        let to = dir.join(path.file_name().unwrap_or_default());
        if path.ends_with(CURRENT) {
            sync(dir)?;
        }
        if path.ends_with("LOCK") {
            continue;
        }
        fs::rename(&path, &to).map_err(named(&to))?;
    }
    sync(dir)?;
    stored.role = Role::Standby;
    stored.write(dir)?;
    fs::remove_dir_all(&copy)?;
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
