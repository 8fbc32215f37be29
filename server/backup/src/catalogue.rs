//! A catalogue: one backup, as the list of its files and the chunks that they consist of.
//!
//! It is an object of its own ([`Kind::Catalogue`](crate::object::Kind)) whose payload is JSON, and it is
//! written last: a backup exists when its catalogue does. Its name is its id: time in UTC and position, so
//! that names sort by time.
//!
//! Paths are relative to the data directory, with bytes that are not plain ASCII as `%XX`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The format of catalogues.
pub(crate) const FORMAT: u32 = 1;

/// Folder of the catalogues.
pub(crate) const FOLDER: &str = "catalogues";

/// Bytes that are encoded in paths.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%').add(b'"').add(b'\\').add(b' ');

/// Class of a file in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A store file: immutable, with an identity.
    Store,
    /// A segment of the log.
    Log,
    /// A file of the server: users, rights, certificates.
    Server,
}

/// Where a log goes on from a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// The server's run: positions of different runs are not compared.
    pub run: String,
    /// Number of changes of the schema and the like before it.
    pub turns: u64,
    /// Segment of the log.
    pub segment: u64,
    /// Bytes of the segment.
    pub bytes: u64,
}

/// The server that a point is of, for standbys that follow its backups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Primary {
    /// How often the primary has changed.
    pub term: u64,
    /// Host and port for clients.
    pub host: String,
    /// See `host`.
    pub port: u16,
    /// When it started, in milliseconds since 1970.
    pub start_code: u64,
    /// URL of its HTTP port.
    pub http: String,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Path below the data directory.
    pub(crate) path: String,
    pub(crate) class: Class,
    /// Stands for the content of a store file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) identity: String,
    /// Bytes of the content.
    pub(crate) bytes: u64,
    /// Length of the file: zeros follow the content.
    pub(crate) length: u64,
    /// The content, in pieces of the catalogue's `chunk_bytes`, the last one shorter.
    pub(crate) chunks: Vec<Digest>,
}

/// One backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Catalogue {
    pub(crate) format: u32,
    pub(crate) cluster_id: String,
    /// Version of the server.
    pub(crate) server: String,
    /// Milliseconds since 1970 of the read point.
    pub(crate) time_ms: u64,
    /// Sequence id of the last edit.
    pub(crate) position: u64,
    /// Which log goes on from here: the id of the server's run, and the number of turns in it.
    pub(crate) run: String,
    pub(crate) turns: u64,
    /// Segment of the log in which it ends, and bytes of it.
    pub(crate) segment: u64,
    pub(crate) segment_bytes: u64,
    /// The server; `None` if it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) primary: Option<Primary>,
    /// Tables, for people.
    pub(crate) tables: Vec<String>,
    /// Files of the server that were left out, since they are secret and the backup is not encrypted.
    pub(crate) left_out: Vec<String>,
    pub(crate) chunk_bytes: u64,
    /// State of the engine's manifest.
    pub(crate) manifest_bytes: u64,
    pub(crate) manifest: Vec<Digest>,
    pub(crate) files: Vec<Entry>,
}

impl Catalogue {
    pub(crate) fn id(&self) -> String {
        format!("{}-{:x}", compact_time(self.time_ms), self.position)
    }

    /// Where the log goes on.
    pub(crate) fn log_place(&self) -> LogPlace {
        LogPlace {
            run: self.run.clone(),
            turns: self.turns,
            segment: self.segment,
            bytes: self.segment_bytes,
        }
    }

    /// Every chunk with its bytes, and the file that it belongs to; several times if it is named so.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (&str, Digest, u64)> {
        let manifest = (MANIFEST, self.manifest_bytes, &self.manifest);
        let files = self
            .files
            .iter()
            .map(|entry| (entry.path.as_str(), entry.bytes, &entry.chunks));
        std::iter::once(manifest)
            .chain(files)
            .flat_map(move |(path, bytes, chunks)| {
                let size = move |at: u64| self.chunk_bytes.min(bytes.saturating_sub(at * self.chunk_bytes));
                (0..).zip(chunks).map(move |(at, chunk)| (path, *chunk, size(at)))
            })
    }

    /// Checks what the format does not.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!(
                "it has format {}, and this release reads format {FORMAT}: use the release that wrote it, or a later one",
                self.format
            ));
        }
        if self.chunk_bytes == 0 {
            return Err("its chunks have no bytes".into());
        }
        let count = |bytes: u64| bytes.div_ceil(self.chunk_bytes);
        if self.manifest.len() as u64 != count(self.manifest_bytes) {
            return Err("the manifest has another number of chunks than its size needs".into());
        }
        for entry in &self.files {
            if entry.chunks.len() as u64 != count(entry.bytes) || entry.length < entry.bytes {
                return Err(format!("{} has other chunks than its size needs", entry.path));
            }
            if decode_path(&entry.path).is_none() {
                return Err(format!("{} is no path below a data directory", entry.path));
            }
        }
        Ok(())
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|entry| entry.bytes).sum()
    }
}

/// Name of the manifest in texts.
pub(crate) const MANIFEST: &str = "the manifest";

/// `20261129T125803123Z`.
pub(crate) fn compact_time(time_ms: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(time_ms);
    let text = humantime::format_rfc3339_millis(time).to_string();
    text.chars().filter(|letter| !"-:.".contains(*letter)).collect()
}

pub(crate) fn encode_path(path: &Path) -> String {
    percent_encode(path.as_os_str().as_bytes(), ENCODED).to_string()
}

/// The path; `None` if it leads out of the data directory.
pub(crate) fn decode_path(text: &str) -> Option<PathBuf> {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    let path = PathBuf::from(OsStr::from_bytes(&bytes));
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_below && path.components().next().is_some()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_directory() {
        for path in ["tables/default/t/f/00", "a b/100%/ü"] {
            let encoded = encode_path(Path::new(path));
            assert!(encoded.is_ascii(), "{encoded}");
            assert_eq!(decode_path(&encoded).unwrap(), Path::new(path));
        }
        for wrong in ["", "/etc/passwd", "../x", "a/../../x", "./x"] {
            assert_eq!(decode_path(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ids_sort_by_time() {
        assert_eq!(compact_time(1_700_000_000_123), "20231114T221320123Z");
    }
}
