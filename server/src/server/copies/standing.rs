//! The role of this server among the servers with the same data: primary, standby, or fenced, that is,
//! replaced by a standby.
//!
//! A *term* counts changes of the primary. `basalt promote` makes a standby the primary of the next term, and
//! fences the one before: a server that receives a higher term takes no more calls, now and after every
//! start.
//!
//! The durable part is the file `standing` of the data directory, a line of JSON that is replaced as a
//! whole ([`Stored`]). Without the file a server is the primary of term 0.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use basalt_engine::engine::Place;
use basalt_engine::id::SeqId;
use metrics::gauge;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::observe::metrics::names;

/// Name of the file in the data directory.
const FILE: &str = "standing";

/// Version of the file.
const FORMAT: u32 = 1;

/// Role of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// It takes calls.
    #[default]
    Primary,
    /// It follows the primary.
    Standby,
    /// A standby has become the primary in its place.
    Fenced,
    /// Its data is being replaced by a copy of the primary's.
    Copying,
}

impl Role {
    const ALL: [Self; 4] = [Self::Primary, Self::Standby, Self::Fenced, Self::Copying];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Standby => "standby",
            Self::Fenced => "fenced",
            Self::Copying => "copying",
        }
    }
}

/// Where clients and servers reach a primary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Leader {
    /// Host and port for clients.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// When it started, in milliseconds since 1970.
    pub(crate) start_code: u64,
    /// URL of its HTTP port.
    pub(crate) http: String,
}

/// Content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    format: u32,
    pub(crate) role: Role,
    pub(crate) term: u64,
    /// The last known primary; `None` if it is this server, or unknown.
    pub(crate) leader: Option<Leader>,
    /// Standby: position in the primary's log.
    position: u64,
    /// Standby: last turn of the primary.
    turn: u64,
    /// Standby: the engine's log does not say yet where this copy begins.
    #[serde(default)]
    is_new: bool,
    /// Primary: URL of the one before, until that has confirmed the fence.
    pub(crate) to_fence: Option<String>,
    /// Standby of a store of backups: where its copy is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
}

/// The backup that a standby's copy was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Origin {
    /// The primary's run: names the log that goes on from the backup.
    pub(crate) run: String,
    pub(crate) cluster_id: String,
}

impl Stored {
    /// A standby at that place.
    pub(crate) fn standby(term: u64, leader: Option<Leader>, place: Place, origin: Option<Origin>) -> Self {
        Self {
            format: FORMAT,
            role: Role::Standby,
            term,
            leader,
            position: place.position.0,
            turn: place.turn,
            is_new: true,
            to_fence: None,
            origin,
        }
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            position: SeqId(self.position),
            turn: self.turn,
        }
    }

    /// Reads the file of a data directory; `None` if there is none.
    pub(crate) fn read(data_dir: &Path) -> io::Result<Option<Self>> {
        let path = data_dir.join(FILE);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let wrong =
            |what: String| io::Error::new(ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        let stored: Self = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if stored.format != FORMAT {
            let what = format!("format {}, this release reads format {FORMAT}", stored.format);
            return Err(wrong(what));
        }
        Ok(Some(stored))
    }

    /// Replaces the file, durably.
    pub(crate) fn write(&self, data_dir: &Path) -> io::Result<()> {
        let stored = Self {
            format: FORMAT,
            ..self.clone()
        };
        let text = serde_json::to_string(&stored)?;
        let unfinished = data_dir.join(format!("{FILE}.unfinished"));
        let mut file = File::create(&unfinished)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        std::fs::rename(&unfinished, data_dir.join(FILE))?;
        File::open(data_dir)?.sync_all()
    }
}

/// The standing of a running server.
#[derive(Debug)]
pub(crate) struct Standing {
    data_dir: PathBuf,
    /// Number of the role in [`Role::ALL`]. Read by each call, without a lock.
    role: AtomicU8,
    term: AtomicU64,
    stored: Mutex<Stored>,
}

impl Standing {
    /// That of the server on a data directory.
    pub(crate) fn load(data_dir: &Path) -> io::Result<Self> {
        let stored = Stored::read(data_dir)?.unwrap_or_default();
        Ok(Self {
            data_dir: data_dir.to_owned(),
            role: AtomicU8::new(stored.role as u8),
            term: AtomicU64::new(stored.term),
            stored: Mutex::new(stored),
        })
    }

    pub(crate) fn role(&self) -> Role {
        Role::ALL[usize::from(self.role.load(Ordering::Acquire)) % Role::ALL.len()]
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.role.load(Ordering::Acquire) == Role::Primary as u8
    }

    pub(crate) fn is_standby(&self) -> bool {
        self.role.load(Ordering::Acquire) == Role::Standby as u8
    }

    pub(crate) fn term(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }

    /// The primary, if that is another server.
    pub(crate) fn leader(&self) -> Option<Leader> {
        self.stored.lock().leader.clone()
    }

    /// The stored state.
    pub(crate) fn stored(&self) -> Stored {
        self.stored.lock().clone()
    }

    /// Stores a change, durably; then it is in force.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Stored)) -> io::Result<()> {
        let mut stored = self.stored.lock();
        let mut changed = stored.clone();
        change(&mut changed);
        if changed == *stored {
            return Ok(());
        }
        changed.write(&self.data_dir)?;
        self.term.store(changed.term, Ordering::Release);
        self.role.store(changed.role as u8, Ordering::Release);
        *stored = changed;
        Ok(())
    }

    /// Stores the place of a standby, durably.
    pub(crate) fn store_place(&self, place: Place) -> io::Result<()> {
        self.change(|stored| {
            stored.position = place.position.0;
            stored.turn = place.turn;
        })
    }

    /// Number of this copy in the engine's log. Positions belong to the log of one term's primary.
    pub(crate) fn copy(&self) -> u16 {
        self.term() as u16
    }

    /// Position of a copy that has just been made.
    pub(crate) fn copied(&self) -> Option<SeqId> {
        let stored = self.stored.lock();
        stored.is_new.then_some(SeqId(stored.position))
    }

    /// Stores the position up to which a standby's log has rows, if that is further than the stored one. The
    /// copy is not new any more.
    pub(crate) fn note_reached(&self, position: SeqId) -> io::Result<()> {
        self.change(|stored| {
            stored.position = stored.position.max(position.0);
            stored.is_new = false;
        })
    }

    /// Takes over the primary of a higher term. Returns whether this server is fenced by that.
    pub(crate) fn learn(&self, term: u64, leader: &Leader) -> io::Result<bool> {
        if term <= self.term() {
            return Ok(self.role() == Role::Fenced);
        }
        self.change(|stored| {
            if stored.role == Role::Primary {
                stored.role = Role::Fenced;
                stored.to_fence = None;
            }
            stored.term = term;
            stored.leader = Some(leader.clone());
        })?;
        Ok(self.role() == Role::Fenced)
    }

    /// Writes the figures for the scrape.
    pub(super) fn publish(&self) {
        let own = self.role();
        for role in Role::ALL {
            let is_own = f64::from(u8::from(role == own));
            gauge!(names::STANDBY_ROLE, "role" => role.as_str()).set(is_own);
        }
        gauge!(names::STANDBY_TERM).set(self.term() as f64);
    }

    /// Why calls are refused; `None` if they are not.
    pub(crate) fn refusal(&self) -> Option<String> {
        if self.is_primary() {
            return None;
        }
        let leader = self.leader();
        let at = leader.map_or_else(
            || "the primary".to_owned(),
            |leader| format!("the primary, {}:{}", leader.host, leader.port),
        );
        Some(match self.role() {
            Role::Standby => format!("this server is a standby of {at}: send the call there"),
            _ => format!("this server was replaced by {at}: send the call there"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader(port: u16) -> Leader {
        Leader {
            host: "db2".into(),
            port,
            start_code: 7,
            http: "http://db2:9095".into(),
        }
    }

    #[test]
    fn a_standing_outlives_a_start() {
        let dir = tempfile::tempdir().unwrap();
        let standing = Standing::load(dir.path()).unwrap();
        assert!(standing.is_primary() && standing.refusal().is_none());
        assert!(!standing.learn(0, &leader(1)).unwrap(), "its own term");
        assert!(standing.is_primary());
        assert!(standing.learn(3, &leader(9090)).unwrap());
        let standing = Standing::load(dir.path()).unwrap();
        assert_eq!((standing.role(), standing.term()), (Role::Fenced, 3));
        let text = standing.refusal().unwrap();
        assert!(text.contains("replaced by the primary, db2:9090"), "{text}");

        let place = Place {
            position: SeqId(70),
            turn: 4,
        };
        Stored::standby(5, Some(leader(1)), place, None)
            .write(dir.path())
            .unwrap();
        let standing = Standing::load(dir.path()).unwrap();
        assert_eq!((standing.role(), standing.term()), (Role::Standby, 5));
        assert_eq!(standing.stored().place(), place);
        let place = Place {
            position: SeqId(71),
            turn: 5,
        };
        standing.store_place(place).unwrap();
        assert!(
            !standing.learn(6, &leader(2)).unwrap(),
            "a standby has another primary now"
        );
        let stored = Stored::read(dir.path()).unwrap().unwrap();
        assert_eq!((stored.place(), stored.term), (place, 6));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for wrong in ["{", "{\"format\": 2, \"role\": \"primary\"}"] {
            std::fs::write(dir.path().join(FILE), wrong).unwrap();
            let error = Standing::load(dir.path()).unwrap_err().to_string();
            assert!(error.contains("/standing: "), "{error}");
        }
        let newer = "{\"format\":2,\"role\":\"primary\",\"term\":0,\"leader\":null,\"position\":0,\"turn\":0,\"to_fence\":null}";
        std::fs::write(dir.path().join(FILE), newer).unwrap();
        let error = Standing::load(dir.path()).unwrap_err().to_string();
        assert!(error.contains("format 2, this release reads format 1"), "{error}");
    }
}
