//! Rate-limited log of clients that speak another protocol. Each protocol has its own limit, so
//! that a flood neither fills the log nor hides other protocols.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::foreign::ForeignProtocol;
use crate::observe::log_limit::LogLimit;

/// Least time between two lines about one protocol.
const PERIOD: Duration = Duration::from_secs(10);

/// The rate limits of one port, by protocol.
#[derive(Debug, Default)]
pub(crate) struct ForeignLog {
    lines: Mutex<BTreeMap<Option<ForeignProtocol>, LogLimit>>,
}

impl ForeignLog {
    /// Logs a warning with `reason`, or a debug line if there was a warning about the same protocol
    /// within [`PERIOD`]. `protocol` is `None` for Thrift on the HTTP port.
    pub(crate) fn note(
        &self,
        peer: SocketAddr,
        port: &str,
        protocol: Option<ForeignProtocol>,
        reason: impl Display,
    ) {
        let left_out = self
            .lines
            .lock()
            .entry(protocol)
            .or_insert_with(|| LogLimit::every(PERIOD))
            .next(Instant::now());
        if let Some(left_out) = left_out {
            tracing::warn!(%peer, left_out, "connection to the {port} port closed: {reason}");
        } else {
            tracing::debug!(%peer, "connection to the {port} port closed: {reason}");
        }
    }
}
