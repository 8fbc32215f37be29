//! Accepting connections, alike for both ports.
//!
//! Each connection takes a place and is a task. With all places taken, a further connection is closed as soon as it is accepted:
//! its client sees an end instead of waiting in a queue that nobody reads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::Port;

/// Pause after a failed accept: out of file descriptors is not cured by trying at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// A connection that has been silent for this long is probed.
const KEEPALIVE_AFTER: Duration = Duration::from_mins(1);
/// Pause between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Probes without an answer before the connection is dead.
const KEEPALIVE_PROBES: u32 = 6;
/// A connection whose peer confirms nothing of what was sent for this long is dead: as long as keepalive takes.
#[cfg(target_os = "linux")]
const UNCONFIRMED: Duration = Duration::from_mins(2);

/// A port that accepts.
pub(crate) struct Listener {
    /// Bound.
    pub(crate) socket: TcpListener,
    /// Most connections at once.
    pub(crate) max_connections: usize,
    /// The name of the setting that says so.
    pub(crate) setting: &'static str,
    /// Counts.
    pub(crate) port: Port,
}

/// A connection's place among the open ones; counts it for as long as it lives.
struct Place {
    port: Port,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.port.open.decrement(1);
    }
}

impl Listener {
    /// Accepts until told to stop. `serve` makes the task of a connection, which `tasks` keeps.
    pub(crate) async fn accept<F>(
        self,
        tasks: TaskTracker,
        stop: CancellationToken,
        serve: impl Fn(TcpStream, SocketAddr) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let places = Arc::new(Semaphore::new(self.max_connections));
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.socket.accept() => accepted,
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(ACCEPT_PAUSE) => continue,
                    }
                }
            };
            self.port.accepted.increment(1);
            let Ok(permit) = Arc::clone(&places).try_acquire_owned() else {
                self.port.rejected.increment(1);
                tracing::warn!(%peer, "connection closed: {} is reached", self.setting);
                continue;
            };
            self.port.open.increment(1);
            let place = Place {
                port: self.port.clone(),
                _permit: permit,
            };
            if let Err(error) = prepare(&socket) {
                tracing::debug!(%peer, %error, "connection ended while it was set up");
                continue;
            }
            // Boxed: moved into another future it would be in there twice, before and while it is awaited.
            let served = Box::pin(serve(socket, peer));
            tasks.spawn(async move {
                served.await;
                drop(place);
            });
        }
    }
}

/// No delay for small answers; dead peers are found by the kernel, since idle connections live for ever by default.
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
