//! Requests and answers between a primary and its standbys: lines of JSON, and behind some of them bytes.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::server::copies::standing::{Leader, Role};

/// Time after which a request for the log gets a reply without news.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

/// About the most bytes of the log in an answer.
pub(crate) const PIECE_BYTES: u64 = 4 << 20;

/// Longest line of JSON, the list of a copy's files among them.
pub(crate) const LINE_BYTES_MAX: usize = 256 << 20;

/// Paths of the requests.
pub(crate) const COPY: &str = "/standby/copy";
pub(crate) const LOG: &str = "/standby/log";
pub(crate) const FENCE: &str = "/standby/fence";
pub(crate) const STATUS: &str = "/standby/status";
pub(crate) const PROMOTE: &str = "/standby/promote";
pub(crate) const REMOVE: &str = "/standby/remove";

/// URL of the HTTP port of a server that clients reach at this host.
pub(crate) fn url_of(config: &Config, host: &str, http_port: u16) -> String {
    if !config.standby.url.is_empty() {
        return config.standby.url.clone();
    }
    let scheme = match config.tls_files() {
        Some(_) => "https",
        None => "http",
    };
    if host.contains(':') {
        format!("{scheme}://[{host}]:{http_port}")
    } else {
        format!("{scheme}://{host}:{http_port}")
    }
}

/// `POST /standby/copy`: requests all data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedCopy {
    /// Name of the standby.
    pub(crate) name: String,
    /// URL of its HTTP port.
    pub(crate) url: String,
}

/// A file of a copy. Its bytes follow, then CRC-32C of them as four bytes, the lowest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CopiedFile {
    /// Below the data directory.
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Length of the file: zeros follow the bytes.
    pub(crate) length: u64,
}

/// The line before a copy's files: the first of them is what the manifest says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CopyHead {
    pub(crate) cluster_id: String,
    pub(crate) term: u64,
    pub(crate) leader: Leader,
    /// Where the log goes on.
    pub(crate) position: u64,
    pub(crate) turn: u64,
    pub(crate) manifest_bytes: u64,
    pub(crate) files: Vec<CopiedFile>,
}

/// `POST /standby/log`: requests the log from a place on, and acknowledges everything before.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedLog {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) cluster_id: String,
    pub(crate) term: u64,
    pub(crate) position: u64,
    pub(crate) turn: u64,
    /// Digest of the files of users, rights and certificates that it has.
    pub(crate) security: String,
    /// The standby as clients reach it, if it serves reads.
    pub(crate) reads: Option<Leader>,
}

/// The line before a piece of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogHead {
    pub(crate) term: u64,
    pub(crate) leader: Leader,
    /// Where the log ends.
    pub(crate) end: u64,
    pub(crate) turns: u64,
    /// Whether the piece is all there is.
    pub(crate) is_end: bool,
    /// The files of users, rights and certificates, if the standby has others.
    pub(crate) security: Option<SecurityFiles>,
}

/// Files of the directory `security`, by name, in base64.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SecurityFiles {
    pub(crate) files: Vec<(String, String)>,
}

/// `POST /standby/fence`: there is a primary of a higher term.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fence {
    pub(crate) cluster_id: String,
    pub(crate) term: u64,
    pub(crate) leader: Leader,
}

/// The answer to a fence: nothing behind this place was acknowledged, or will be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fenced {
    pub(crate) position: u64,
    pub(crate) turn: u64,
}

/// `GET /standby/status`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) cluster_id: String,
    pub(crate) role: Role,
    pub(crate) term: u64,
    /// The primary as this server knows it, which may be itself.
    pub(crate) leader: Option<Leader>,
    pub(crate) position: u64,
    pub(crate) turn: u64,
    /// Standby only: milliseconds since it last had everything.
    pub(crate) lag_ms: Option<u64>,
    /// URL of the backups that a standby follows; `None` for others.
    #[serde(default)]
    pub(crate) store: Option<String>,
    /// Standby only: the reason why it does not follow.
    pub(crate) problem: String,
    /// Primary with `standby.sync = "standby"`: whether writes wait for no standby.
    pub(crate) alone: bool,
    pub(crate) standbys: Vec<StandbyStatus>,
}

/// `POST /standby/remove`: no more log is kept for a standby.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remove {
    pub(crate) name: String,
}

/// A standby, as its primary sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StandbyStatus {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) connected: bool,
    pub(crate) position: u64,
    pub(crate) turn: u64,
    pub(crate) lag_ms: u64,
}

/// The answer to `POST /standby/promote`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Promoted {
    pub(crate) term: u64,
    pub(crate) position: u64,
    /// The previous primary has confirmed that it takes no more writes.
    pub(crate) fenced: bool,
    pub(crate) took_ms: u64,
    /// Time since the last point that a standby of backups has.
    #[serde(default)]
    pub(crate) lag_ms: Option<u64>,
    /// Why the end of the shipped log was not read; empty if it was.
    #[serde(default)]
    pub(crate) problem: String,
}
