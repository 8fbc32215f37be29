//! The state of a move: a small JSON file, which is replaced as a whole and synced.
//!
//! A step that has begun is [`State::step`]; it is safe to do it again from its beginning. A step's changes
//! are noted before they are made, so that the way back knows them after a kill at any moment.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Failure;
use super::ranges::Ranges;

/// The version of the file.
const VERSION: u32 = 1;

/// The step of a move that is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Peer,
    Table,
    Copy,
    CatchUp,
    Compare,
    BackPeer,
    /// All is ready for the switch.
    Ready,
    /// The table is made read only here.
    Switching,
    /// Clients are at the other cluster.
    Switched,
    /// The table is made read only there.
    GoingBack,
    /// Peers and scopes are removed after the switch.
    Finishing,
    Finished,
    /// Everything is taken back.
    Undoing,
    Undone,
}

/// The state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    version: u32,
    pub(super) table: String,
    /// Key of the other cluster.
    pub(super) to: String,
    /// Key of this cluster for the other one; `None`: no peer back.
    pub(super) back: Option<String>,
    /// Ids of this cluster and the other one.
    pub(super) clusters: [String; 2],
    /// Id of the peers on both sides.
    pub(super) peer: String,
    pub(super) step: Step,
    /// Scopes of the families before the move; `None`: the family had none.
    pub(super) scopes: BTreeMap<String, Option<String>>,
    /// Whether this move creates the table there.
    pub(super) created: bool,
    /// Ranges of rows that are copied, in base64.
    copied: Vec<[String; 2]>,
    /// Writes from this time on, in milliseconds since 1970, may differ from the compared tables.
    pub(super) compared_ms: u64,
    /// Rows that changed too fast to be compared, in base64.
    unsettled: Vec<String>,
}

impl State {
    /// The state of a move that is about to begin.
    pub(super) fn new(table: &str, to: &str, clusters: [String; 2], peer: String) -> Self {
        Self {
            version: VERSION,
            table: table.to_owned(),
            to: to.to_owned(),
            back: None,
            clusters,
            peer,
            step: Step::Peer,
            scopes: BTreeMap::new(),
            created: false,
            copied: Vec::new(),
            compared_ms: 0,
            unsettled: Vec::new(),
        }
    }

    /// The default name of a table's file.
    pub(super) fn default_path(table: &str) -> PathBuf {
        PathBuf::from(format!("basalt-move-{}.json", table.replace(':', ".")))
    }

    /// Reads a file; `None` if there is none.
    pub(super) fn load(path: &Path) -> Result<Option<Self>, Failure> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("reading {}: {error}", path.display()).into()),
        };
        let state = Self::parse(&bytes)
            .map_err(|error| format!("{} is no state of a move: {error}", path.display()))?;
        Ok(Some(state))
    }

    /// Locks the state of a move, `NAME.json.lock`, for as long as the file is open. Fails while another
    /// process has it.
    pub(super) fn lock(path: &Path) -> Result<File, Failure> {
        let name = path.with_extension("json.lock");
        let failed = |error: std::io::Error| format!("locking {}: {error}", name.display());
        let file = File::create(&name).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(format!(
                "another basalt move goes on with {}: wait for its end, or stop it",
                path.display()
            )
            .into()),
            Err(TryLockError::Error(error)) => Err(failed(error).into()),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let state: Self = serde_json::from_slice(bytes)?;
        if state.version != VERSION {
            return Err(format!(
                "its version is {}, and this program knows version {VERSION}",
                state.version
            )
            .into());
        }
        state.copied()?;
        state.unsettled()?;
        Ok(state)
    }

    /// Replaces the file. Returns when it is durable.
    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error: std::io::Error| format!("writing {}: {error}", path.display());
        let next = path.with_extension("json.next");
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        let mut file = File::create(&next).map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&next, path).map_err(failed)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        folder.sync_all().map_err(failed)?;
        Ok(())
    }

    /// Ranges of rows that are copied.
    pub(super) fn copied(&self) -> Result<Ranges, Failure> {
        let ranges = self.copied.iter();
        let ranges = ranges.map(|[start, end]| Ok((decode(start)?, decode(end)?)));
        Ok(Ranges::of(ranges.collect::<Result<Vec<_>, Failure>>()?))
    }

    pub(super) fn set_copied(&mut self, ranges: &Ranges) {
        let ranges = ranges.iter();
        self.copied = ranges
            .map(|(start, end)| [STANDARD.encode(start), STANDARD.encode(end)])
            .collect();
    }

    /// Rows that changed too fast to be compared.
    pub(super) fn unsettled(&self) -> Result<Vec<Bytes>, Failure> {
        self.unsettled.iter().map(|row| decode(row)).collect()
    }

    pub(super) fn set_unsettled(&mut self, rows: &[Bytes]) {
        self.unsettled = rows.iter().map(|row| STANDARD.encode(row)).collect();
    }
}

fn decode(text: &str) -> Result<Bytes, Failure> {
    let bytes = STANDARD.decode(text);
    Ok(bytes
        .map_err(|error| format!("the row {text:?} is no base64: {error}"))?
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let clusters = ["a".to_owned(), "b".to_owned()];
        State::new("ns:t", "zk:2181:/hbase", clusters, "move_ns_t".to_owned())
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(State::default_path("ns:t"));
        assert_eq!(path.file_name().unwrap(), "basalt-move-ns.t.json");
        assert_eq!(State::load(&path).unwrap(), None);
        let mut state = state();
        state.save(&path).unwrap();
        assert_eq!(State::load(&path).unwrap(), Some(state.clone()));
        state.step = Step::Switching;
        state.scopes.insert("f".to_owned(), Some("0".to_owned()));
        let ranges = Ranges::of([(Bytes::new(), Bytes::from_static(b"\xff\x00"))]);
        state.set_copied(&ranges);
        state.set_unsettled(&[Bytes::from_static(b"\x00")]);
        state.save(&path).unwrap();
        let read = State::load(&path).unwrap().unwrap();
        assert_eq!(read, state);
        assert_eq!(read.copied().unwrap(), ranges);
        assert_eq!(read.unsettled().unwrap(), [Bytes::from_static(b"\x00")]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_process_at_a_time_has_a_state() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("move.json");
        let lock = State::lock(&path).unwrap();
        let refused = State::lock(&path).unwrap_err().to_string();
        assert!(refused.contains("another basalt move"), "{refused}");
        drop(lock);
        State::lock(&path).unwrap();
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let good = serde_json::to_string(&state()).unwrap();
        for (text, part) in [
            (String::new(), "EOF"),
            ("{}".to_owned(), "missing field"),
            (good.replace("\"version\":1", "\"version\":2"), "version is 2"),
            (good.replace("\"peer\",", "\"walk\","), "walk"),
            (
                good.replace("\"copied\":[]", "\"copied\":[[\"?\",\"\"]]"),
                "no base64",
            ),
            (
                good.replace("{\"version\"", "{\"x\":1,\"version\""),
                "unknown field",
            ),
        ] {
            let error = State::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn steps_have_their_order() {
        let steps = [
            Step::Peer,
            Step::Table,
            Step::Copy,
            Step::CatchUp,
            Step::Compare,
            Step::BackPeer,
            Step::Ready,
            Step::Switching,
            Step::Switched,
        ];
        assert!(steps.is_sorted());
    }
}
