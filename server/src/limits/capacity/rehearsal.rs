//! The rehearsal of a cluster: the one server presents itself as several, and each has its own capacity.
//!
//! `cluster` has which region is on which of the virtual servers.
//! This module has the limits per second and the counters of each. A call is charged to each server
//! whose rows it touches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{Counter, counter};

use super::limiter::Ticks;
use super::throttle::{Cost, Limit, Throttle, ThrottleType};
use crate::cluster::virtual_host;
use crate::config;
use crate::observe::metrics::names;

/// All virtual servers, at least one.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    servers: Vec<VirtualServer>,
    /// Limits of each virtual server, for people.
    limits: String,
}

#[derive(Debug)]
pub(crate) struct VirtualServer {
    pub(crate) throttle: Throttle,
    requests: [Counter; 2],
    bytes: [Counter; 2],
    /// Rows read and written, for pages: the metrics cannot be read back.
    rows: [AtomicU64; 2],
    held_calls: AtomicU64,
    held_nanos: AtomicU64,
}

/// The load of a virtual server since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerLoad {
    /// Rows that it was charged with.
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Calls that were held back because of its limits, and for how long together.
    pub(crate) held_calls: u64,
    pub(crate) held: Duration,
}

impl VirtualServer {
    fn new(number: usize, limits: &[(ThrottleType, Limit)]) -> Self {
        let of = |name: &'static str| {
            ["read", "write"].map(|kind| counter!(name, "server" => virtual_host(number), "kind" => kind))
        };
        Self {
            throttle: Throttle::new(limits.iter().copied()),
            requests: of(names::REHEARSAL_REQUESTS),
            bytes: of(names::REHEARSAL_BYTES),
            rows: Default::default(),
            held_calls: AtomicU64::default(),
            held_nanos: AtomicU64::default(),
        }
    }

    /// A call waits for this server's limits.
    pub(super) fn hold_back(&self, wait: Duration) {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.held_calls.fetch_add(1, Ordering::Relaxed);
        self.held_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn load(&self) -> ServerLoad {
        ServerLoad {
            reads: self.rows[0].load(Ordering::Relaxed),
            writes: self.rows[1].load(Ordering::Relaxed),
            held_calls: self.held_calls.load(Ordering::Relaxed),
            held: Duration::from_nanos(self.held_nanos.load(Ordering::Relaxed)),
        }
    }

    /// Counts the cost of an admitted call.
    pub(super) fn count(&self, cost: Cost) {
        self.rows[0].fetch_add(cost.reads, Ordering::Relaxed);
        self.rows[1].fetch_add(cost.writes, Ordering::Relaxed);
        for (counter, amount) in [
            (&self.requests[0], cost.reads),
            (&self.requests[1], cost.writes),
            (&self.bytes[1], cost.write_bytes),
        ] {
            if amount > 0 {
                counter.increment(amount);
            }
        }
    }

    /// Charges the bytes that a read has returned.
    pub(super) fn take_read_bytes(&self, bytes: u64, now: Ticks) {
        self.throttle.take_read_bytes(bytes, now);
        self.bytes[0].increment(bytes);
    }
}

impl Rehearsal {
    /// The virtual servers that the settings ask for, if they do.
    pub(super) fn new(config: &config::Rehearsal) -> Option<Self> {
        if config.servers == 0 {
            return None;
        }
        let limits: Vec<_> = [
            (ThrottleType::RequestNumber, config.requests_per_second),
            (ThrottleType::ReadNumber, config.read_requests_per_second),
            (ThrottleType::WriteNumber, config.write_requests_per_second),
            (ThrottleType::RequestSize, config.bytes_per_second),
            (ThrottleType::ReadSize, config.read_bytes_per_second),
            (ThrottleType::WriteSize, config.write_bytes_per_second),
        ]
        .into_iter()
        .filter_map(|(kind, amount)| Some((kind, Limit::per_second(amount)?)))
        .collect();
        let texts: Vec<_> = limits
            .iter()
            .map(|(kind, limit)| format!("{} {}", kind.as_str(), limit.text(*kind)))
            .collect();
        Some(Self {
            servers: (1..=config.servers)
                .map(|number| VirtualServer::new(number, &limits))
                .collect(),
            limits: if texts.is_empty() {
                "no limit".to_owned()
            } else {
                texts.join(", ")
            },
        })
    }

    /// The load of each server, in order.
    pub(crate) fn loads(&self) -> Vec<ServerLoad> {
        self.servers.iter().map(VirtualServer::load).collect()
    }

    /// Limits of each virtual server, for people.
    pub(crate) fn limits(&self) -> &str {
        &self.limits
    }

    /// The server of that position; `None` behind the last.
    pub(super) fn server(&self, position: u16) -> Option<&VirtualServer> {
        self.servers.get(usize::from(position))
    }
}

/// For log and pages.
impl std::fmt::Display for Rehearsal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a rehearsal: this one server presents itself as {} virtual servers, each with {}",
            self.servers.len(),
            self.limits
        )
    }
}
