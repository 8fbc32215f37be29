//! Sockets: accepting, and what a connection does with bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Server;
use crate::sessions::ConnectionId;

mod connection;
mod messages;

/// Pause after a failed accept: out of file descriptors is not cured by trying at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts until told to stop; every connection is a task of `tasks`.
pub(crate) async fn accept(
    listener: TcpListener,
    server: Arc<Server>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let next_id = AtomicU64::new(1);
    let places = Arc::new(tokio::sync::Semaphore::new(
        server.config().thrift.max_connections,
    ));
    let metrics = server.connections().clone();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
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
        metrics.accepted.increment(1);
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            metrics.rejected.increment(1);
            tracing::warn!(%peer, "connection closed: thrift.max_connections is reached");
            continue;
        };
        if let Err(error) = prepare(&socket) {
            tracing::debug!(%peer, %error, "connection ended while it was set up");
            continue;
        }
        let id = ConnectionId(next_id.fetch_add(1, Ordering::Relaxed));
        let (server, stop) = (Arc::clone(&server), stop.clone());
        tasks.spawn(async move {
            server.connections().open.increment(1);
            if let Err(end) = connection::run(Arc::clone(&server), socket, id, stop).await {
                tracing::debug!(%peer, "connection closed: {end}");
            }
            server.sessions().close_owner(id);
            server.connections().open.decrement(1);
            drop(place);
        });
    }
}

/// No delay for small answers; dead peers are found by keepalive, since idle connections live for ever by default.
fn prepare(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(Duration::from_mins(1))
        .with_interval(Duration::from_secs(10))
        .with_retries(6);
    socket2::SockRef::from(socket).set_tcp_keepalive(&keepalive)
}
