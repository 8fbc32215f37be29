//! Log lines about clients that speak another protocol: one a while for each protocol, so that a flood of them fills no log and hides no
//! other.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::listener::Complaints;
use crate::messages::Stranger;

/// Time between two lines about one protocol.
const PERIOD: Duration = Duration::from_secs(10);

/// The lines of one port.
#[derive(Debug, Default)]
pub(crate) struct StrangerLog {
    lines: Mutex<BTreeMap<Option<Stranger>, Complaints>>,
}

impl StrangerLog {
    /// Writes a line that gives `reason`, unless there was one about the same protocol a moment ago. `stranger` is `None` for Thrift on
    /// the port for HTTP.
    pub(crate) fn note(
        &self,
        peer: SocketAddr,
        port: &str,
        stranger: Option<Stranger>,
        reason: impl Display,
    ) {
        let left_out = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let lines = lines.entry(stranger).or_default();
            lines.next_after(Instant::now(), PERIOD)
        };
        if let Some(left_out) = left_out {
            tracing::warn!(%peer, left_out, "connection to the {port} port closed: {reason}");
        } else {
            tracing::debug!(%peer, "connection to the {port} port closed: {reason}");
        }
    }
}
