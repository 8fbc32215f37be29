//! The server as clients see it: where it is, since when, and whether it is ready.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::cluster;

/// Addresses, start, readiness.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Address in region locations: one that clients can reach.
    main_address: SocketAddr,
    /// Host and port that native clients connect to.
    advertised: (String, u16),
    started: SystemTime,
    started_mono: Instant,
    ready: AtomicBool,
    /// Port of HTTP, once it is bound.
    http_port: AtomicU16,
}

impl Instance {
    /// An instance that starts now and is not ready yet. `advertise` is the setting `server.advertise`.
    pub(super) fn new(main_address: SocketAddr, advertise: &str) -> Self {
        Self {
            main_address,
            advertised: cluster::advertised(advertise, main_address),
            started: SystemTime::now(),
            started_mono: Instant::now(),
            ready: AtomicBool::new(false),
            http_port: AtomicU16::new(0),
        }
    }

    /// The address that clients connect to.
    pub(crate) fn main_address(&self) -> SocketAddr {
        self.main_address
    }

    /// Host and port by which native clients reach this server.
    pub(crate) fn advertised(&self) -> (&str, u16) {
        (&self.advertised.0, self.advertised.1)
    }

    /// The port of HTTP.
    pub(crate) fn http_port(&self) -> u16 {
        self.http_port.load(Ordering::Relaxed)
    }

    pub(crate) fn set_http_port(&self, port: u16) {
        self.http_port.store(port, Ordering::Relaxed);
    }

    pub(crate) fn started(&self) -> SystemTime {
        self.started
    }

    /// When it started, in milliseconds since 1970.
    pub(super) fn started_ms(&self) -> u64 {
        let since = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// HBase's start code of a server: when it started, in milliseconds since 1970.
    pub(crate) fn start_code(&self) -> i64 {
        i64::try_from(self.started_ms()).unwrap_or(i64::MAX)
    }

    /// Since the start.
    pub(crate) fn uptime(&self) -> Duration {
        self.started_mono.elapsed()
    }

    /// Whether calls are accepted.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }
}
