//! Sockets: accepting connections on both ports, and the detection of their protocols.
//!
//! The main port serves Thrift, HBase's native RPC and ZooKeeper. A connection begins in
//! `thrift::connection`, which hands it back when its first bytes are of another protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_idl::wire::Detected;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::observe::metrics::Api;
use crate::security::Owner;
use crate::server::Server;
use crate::thrift::connection::{self, Handover};
use crate::thrift::messages::ProtocolError;
use crate::{native, thrift, zookeeper};

mod foreign_log;
pub(crate) mod http;
mod listener;

use foreign_log::ForeignLog;
pub(crate) use listener::Listener;

/// The methods of all protocols, numbered within each service as they come.
pub(crate) fn methods() -> impl Iterator<Item = (Api, &'static str)> {
    thrift::methods().chain(native::methods().map(|method| (Api::Native, method)))
}

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

/// Serves the Thrift port until shutdown.
pub(crate) async fn serve(
    listener: Listener,
    server: Arc<Server>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let next = AtomicU64::new(1);
    let stopping = stop.clone();
    let foreign_log = Arc::new(ForeignLog::default());
    let zookeepers = Arc::new(zookeeper::Sessions::default());
    listener
        .accept(tasks, stop, |socket, peer| {
            let connection = next.fetch_add(1, Ordering::Relaxed);
            let (server, stop) = (Arc::clone(&server), stopping.clone());
            let foreign_log = Arc::clone(&foreign_log);
            let zookeepers = Arc::clone(&zookeepers);
            async move {
                let _scanners = Scanners {
                    server: Arc::clone(&server),
                    owner: Owner::Connection(connection),
                };
                match connection::run(Arc::clone(&server), socket, connection, stop.clone()).await {
                    Ok(None) => {}
                    // Boxed: most connections speak Thrift.
                    Ok(Some(other)) => {
                        Box::pin(hand_over(server, &zookeepers, other, connection, peer, stop)).await;
                    }
                    Err(connection::End::ProtocolError(ProtocolError::NotThrift(protocol))) => {
                        foreign_log.note(peer, "Thrift", Some(protocol), protocol);
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
    zookeepers: &zookeeper::Sessions,
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
    if server.cluster().is_some() {
        // Their tables would be those of the engine, which has none.
        tracing::info!(%peer, "connection closed: the tables are in another cluster, to which native clients connect");
        return;
    }
    let ended = match protocol {
        Detected::HBaseRpc => native::run(server, socket, received, number, stop)
            .await
            .map_err(|end| end.to_string()),
        Detected::ZooKeeperWord => zookeeper::answer_word(&server, zookeepers, socket, &received)
            .await
            .map_err(|end| end.to_string()),
        _ => zookeeper::run(server, zookeepers, socket, received, number, stop)
            .await
            .map_err(|end| end.to_string()),
    };
    if let Err(end) = ended {
        tracing::debug!(%peer, "connection closed: {end}");
    }
}

#[cfg(test)]
mod tests;
