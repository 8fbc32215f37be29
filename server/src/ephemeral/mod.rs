//! `--ephemeral`: a server that a test owns.
//!
//! Its data lies in a new directory below the system's directory for temporary files ([`Home`]),
//! on a file system without syncs, and is gone when the process ends. It listens on free ports of
//! loopback unless others are given, and prints one line of JSON when calls are accepted, or runs a
//! command ([`command`]). Calls that only tests need are answered in this mode only ([`Controls`]).

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use basalt_engine::clock::MovableClock;
use basalt_engine::schema::{NamespaceDescriptor, TableName};
use parking_lot::Mutex;

use faults::Faults;

pub(crate) mod command;
pub(crate) mod faults;
mod home;

pub(crate) use home::Home;

/// Controls for the calls of tests. A server without `--ephemeral` has none.
#[derive(Debug)]
pub(crate) struct Controls {
    /// The engine's clock.
    pub(crate) clock: Arc<MovableClock>,
    /// The faults that the next calls meet.
    pub(crate) faults: Faults,
    /// The state that a reset can return to.
    pub(crate) template: Mutex<Option<Template>>,
}

/// Tables as a test has loaded them, kept as snapshots.
#[derive(Debug)]
pub(crate) struct Template {
    /// Names of snapshots and of their tables.
    pub(crate) tables: Vec<(String, TableName)>,
    pub(crate) namespaces: Vec<NamespaceDescriptor>,
}

/// Settings that differ from the defaults in this mode, as arguments of `--set`. Later ones win. Beside a
/// command, whose terminal it is, the server logs warnings only.
pub(crate) fn settings(has_command: bool) -> Vec<String> {
    let settings = [
        "server.listen=127.0.0.1:0",
        "http.listen=127.0.0.1:0",
        "wal.sync=os",
    ];
    let quiet = has_command.then_some("log.filter=warn");
    settings.into_iter().chain(quiet).map(str::to_owned).collect()
}

/// The line that says that calls are accepted. With `--secure` it says how to log in.
pub(crate) fn line(
    listen: SocketAddr,
    http: SocketAddr,
    data_dir: &Path,
    credentials: Option<&impl serde::Serialize>,
) -> String {
    let mut line = serde_json::json!({
        "listen": listen.to_string(),
        "http": http.to_string(),
        "data_dir": data_dir,
        "pid": std::process::id(),
    });
    if let Some(credentials) = credentials {
        line["security"] = serde_json::json!(credentials);
    }
    line.to_string()
}
