//! Sockets: accepting, and what a connection of the Thrift port does with bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Server;
use crate::messages::Garbled;
use crate::sessions::Owner;
use crate::{native, zookeeper};

use basalt_idl::wire::Detected;
use connection::Handover;

mod connection;
mod listener;
mod strangers;

pub(crate) use connection::{refuse_on_http_port, send_and_close};
pub(crate) use listener::Listener;
pub(crate) use strangers::StrangerLog;

/// Closes the scanners of a connection, however it ends.
struct Scanners {
    server: Arc<Server>,
    owner: Owner,
}

impl Drop for Scanners {
    fn drop(&mut self) {
        self.server.sessions().close_owner(self.owner);
    }
}

/// Serves the Thrift port until told to stop.
pub(crate) async fn serve(
    listener: Listener,
    server: Arc<Server>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let next = AtomicU64::new(1);
    let stopping = stop.clone();
    let strangers = Arc::new(StrangerLog::default());
    listener
        .accept(tasks, stop, |socket, peer| {
            let connection = next.fetch_add(1, Ordering::Relaxed);
            let (server, stop) = (Arc::clone(&server), stopping.clone());
            let strangers = Arc::clone(&strangers);
            async move {
                let _scanners = Scanners {
                    server: Arc::clone(&server),
                    owner: Owner::Connection(connection),
                };
                match connection::run(Arc::clone(&server), socket, connection, stop.clone()).await {
                    Ok(None) => {}
                    // Boxed: most connections speak Thrift.
                    Ok(Some(other)) => Box::pin(hand_over(server, other, connection, peer, stop)).await,
                    Err(connection::End::Garbled(Garbled::NotThrift(stranger))) => {
                        strangers.note(peer, "Thrift", Some(stranger), stranger);
                    }
                    Err(end) => tracing::debug!(%peer, "connection closed: {end}"),
                }
            }
        })
        .await;
}

/// Serves a connection with a protocol other than Thrift.
async fn hand_over(
    server: Arc<Server>,
    other: Handover,
    number: u64,
    peer: SocketAddr,
    stop: CancellationToken,
) {
    let Handover {
        socket,
        received,
        protocol,
    } = other;
    let ended = match protocol {
        Detected::HBaseRpc => native::run(server, socket, received, number, stop)
            .await
            .map_err(|end| end.to_string()),
        Detected::ZooKeeperWord => zookeeper::answer_word(socket, &received)
            .await
            .map_err(|end| end.to_string()),
        _ => zookeeper::run(server, socket, received, number, stop)
            .await
            .map_err(|end| end.to_string()),
    };
    if let Err(end) = ended {
        tracing::debug!(%peer, "connection closed: {end}");
    }
}

#[cfg(test)]
mod tests;
