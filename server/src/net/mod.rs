//! Both ports: accepting connections, detecting their protocols ([`detect`]), and the connection loop
//! that serves each.
//!
//! The main port serves Thrift, HBase's native RPC and ZooKeeper. A client of another protocol is
//! refused with the reason, in its protocol where that is possible ([`foreign`]).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_idl::wire::Detected;
use bytes::BytesMut;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::observe::metrics::Api;
use crate::security::Owner;
use crate::server::Server;
use crate::socket::Socket;
use crate::thrift::messages::WireFormat;
use crate::{native, thrift, zookeeper};

mod detect;
mod foreign;
mod foreign_log;
pub(crate) mod http;
mod listener;

use foreign::ForeignProtocol;
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

/// Serves the main port until shutdown.
pub(crate) async fn serve(
    listener: Listener,
    server: Arc<Server>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let next = AtomicU64::new(1);
    let port = Arc::new(MainPort {
        server,
        foreign_log: ForeignLog::default(),
        zookeepers: zookeeper::Sessions::default(),
        stop: stop.clone(),
    });
    listener
        .accept(tasks, stop, |socket, peer| {
            let connection = next.fetch_add(1, Ordering::Relaxed);
            let port = Arc::clone(&port);
            async move {
                let _scanners = Scanners {
                    server: Arc::clone(&port.server),
                    owner: Owner::Connection(connection),
                };
                if let Err(end) = port.connection(socket, connection, peer).await {
                    tracing::debug!(%peer, "connection closed: {end}");
                }
            }
        })
        .await;
}

/// What the connections of the main port share.
struct MainPort {
    server: Arc<Server>,
    foreign_log: ForeignLog,
    zookeepers: zookeeper::Sessions,
    stop: CancellationToken,
}

impl MainPort {
    /// Serves a connection until either side ends it; returns why the server ended it.
    async fn connection(&self, socket: TcpStream, number: u64, peer: SocketAddr) -> Result<(), String> {
        let mut socket = Socket::new(socket);
        let mut received = BytesMut::new();
        let (server, stop) = (&self.server, &self.stop);
        let detected = detect::first(server, &mut socket, &mut received, stop)
            .await
            .map_err(|why| why.to_string())?;
        if let Detected::Thrift { protocol, framed } = detected {
            let first = (WireFormat { protocol, framed }, received);
            // Boxed, as all that follow: a task would have the size of the largest from its first poll on.
            return Box::pin(thrift::connection::run(
                Arc::clone(server),
                socket,
                first,
                number,
                stop.clone(),
            ))
            .await
            .map_err(|end| end.to_string());
        }
        let is_served = matches!(
            detected,
            Detected::HBaseRpc | Detected::ZooKeeper | Detected::ZooKeeperWord
        );
        if !is_served {
            let protocol = ForeignProtocol::of(detected, &received);
            self.foreign_log.note(peer, "main", Some(protocol), protocol);
            Box::pin(foreign::refuse(server, socket, protocol, stop)).await;
            return Ok(());
        }
        if server.cluster().is_some() {
            // Their tables would be those of the engine, which has none.
            tracing::info!(%peer, "connection closed: the tables are in another cluster, to which native clients connect");
            return Ok(());
        }
        let (server, stop) = (Arc::clone(server), stop.clone());
        match detected {
            Detected::HBaseRpc => Box::pin(native::run(server, socket, received, number, stop))
                .await
                .map_err(|end| end.to_string()),
            Detected::ZooKeeperWord => Box::pin(zookeeper::answer_word(
                &server,
                &self.zookeepers,
                socket,
                &received,
            ))
            .await
            .map_err(|end| end.to_string()),
            _ => Box::pin(zookeeper::run(
                server,
                &self.zookeepers,
                socket,
                received,
                number,
                stop,
            ))
            .await
            .map_err(|end| end.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
