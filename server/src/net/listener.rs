//! Accepting connections, alike for both ports.
//!
//! Each connection takes a place and is a task. When all places are taken, or the file descriptors left are
//! reserved for files (`descriptors`), or when its address has too many that have not logged in
//! ([`Strangers`]), a further connection is closed as soon as it is accepted: its client sees the end instead
//! of waiting in a queue that is never served. The number of places is at most the port's share of the limit
//! of open files. Refusals are logged at most once a second, with the number left out.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_engine::seeded;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::observe::log_limit::LogLimit;
use crate::observe::metrics::Port;
use crate::security::{Stranger, Strangers};

/// Time between two lines of the log about connections that were not served.
const LOG_PERIOD: Duration = Duration::from_secs(1);
/// Pause after a failed accept: retrying at once does not help when descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// A connection that has been silent for this long is probed.
const KEEPALIVE_AFTER: Duration = Duration::from_mins(1);
/// Pause between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Probes without an answer before the connection is dead.
const KEEPALIVE_PROBES: u32 = 6;
/// A connection whose peer acknowledges nothing of the sent bytes for this long is dead: as long as
/// keepalive takes.
#[cfg(target_os = "linux")]
const UNCONFIRMED: Duration = Duration::from_mins(2);

/// A port that accepts.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    /// Most connections at once.
    pub(crate) max_connections: usize,
    /// The name of the limit that sets `max_connections`: a setting, or the port's share of the
    /// limit of open files.
    pub(crate) setting: &'static str,
    /// The first number of a file descriptor that a connection may not have.
    pub(crate) descriptors_end: RawFd,
    pub(crate) port: Port,
    /// The connections of each address that have not logged in.
    pub(crate) strangers: Arc<Strangers>,
}

/// A connection's place among the open ones; counts it for as long as it lives.
struct Place {
    port: Port,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.port.open.remove();
    }
}

impl Listener {
    /// Accepts until shutdown. `serve` makes the task of a connection, which `tasks` keeps.
    pub(crate) async fn accept<F>(
        self,
        tasks: TaskTracker,
        stop: CancellationToken,
        serve: impl Fn(TcpStream, SocketAddr, Stranger) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let places = Arc::new(Semaphore::new(self.max_connections));
        let mut log_limit = LogLimit::every(LOG_PERIOD);
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.socket.accept() => accepted,
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if let Some(left_out) = log_limit.next(Instant::now()) {
                        tracing::warn!(%error, left_out, "accepting a connection failed");
                    }
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(ACCEPT_PAUSE) => continue,
                    }
                }
            };
            self.port.accepted.increment(1);
            let place = if socket.as_raw_fd() < self.descriptors_end
                || seeded::is_on("connections-take-files-descriptors")
            {
                Arc::clone(&places)
                    .try_acquire_owned()
                    .map_err(|_| format!("{} is reached", self.setting))
            } else {
                let end = self.descriptors_end;
                Err(format!(
                    "{end} file descriptors are in use, the rest is for files"
                ))
            };
            let admitted = place.and_then(|permit| {
                let stranger = self.strangers.admit(peer.ip()).map_err(|max| {
                    self.port.rejected_strangers.increment(1);
                    format!(
                        "its address has {max} that have not logged in (security.unauthenticated_per_address)"
                    )
                })?;
                Ok((permit, stranger))
            });
            let (permit, stranger) = match admitted {
                Ok(admitted) => admitted,
                Err(why) => {
                    self.port.rejected.increment(1);
                    if let Some(left_out) = log_limit.next(Instant::now()) {
                        tracing::warn!(%peer, left_out, "connection closed: {why}");
                    }
                    continue;
                }
            };
            self.port.open.add();
            let place = Place {
                port: self.port.clone(),
                _permit: permit,
            };
            if let Err(error) = prepare(&socket) {
                tracing::debug!(%peer, %error, "connection ended while it was set up");
                continue;
            }
            // Boxed: moved into another future it would take its memory twice, before and while it
            // is awaited.
            let served = Box::pin(serve(socket, peer, stranger));
            tasks.spawn(async move {
                served.await;
                drop(place);
            });
        }
    }
}

/// No delay for small answers; dead peers are detected by the kernel, since idle connections live
/// for ever by default.
fn prepare(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    let socket = socket2::SockRef::from(socket);
    socket.set_tcp_keepalive(&keepalive)?;
    // Keepalive does not probe a peer that owes a confirmation.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNCONFIRMED))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_second_says_how_many_were_left_out() {
        let mut log_limit = LogLimit::every(LOG_PERIOD);
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let said: Vec<Option<u64>> = [0, 1, 999, 1_000, 1_500, 2_500, 4_000]
            .map(|millis| log_limit.next(at(millis)))
            .to_vec();
        assert_eq!(said, [Some(0), None, None, Some(2), None, Some(1), Some(0)]);
    }
}
