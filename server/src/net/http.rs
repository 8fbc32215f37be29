//! The HTTP port: accepting, and clients that do not speak HTTP.
//!
//! The first bytes of a connection are examined before the HTTP library reads them. A Thrift
//! message is refused by a Thrift reply, another protocol by a reply in that protocol where it has
//! one, and the refusal is logged. HTTP, text and unknown bytes go to the library.

use std::net::SocketAddr;
use std::sync::Arc;

use basalt_idl::wire::Detected;
use bytes::BytesMut;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::detect;
use super::foreign::{self, ForeignProtocol};
use super::foreign_log::ForeignLog;
use super::listener::Listener;
use crate::http;
use crate::server::Server;
use crate::socket::Socket;
use crate::thrift::connection::refuse_on_http_port;
use crate::thrift::messages::WireFormat;

/// Serves the HTTP port until shutdown.
pub(crate) async fn serve(
    listener: Listener,
    server: Arc<Server>,
    recorder: PrometheusHandle,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let site = http::site(Arc::clone(&server), recorder, tasks.clone(), stop.clone());
    let stopping = stop.clone();
    let foreign_log = Arc::new(ForeignLog::default());
    listener
        .accept(tasks, stop, |socket, peer| {
            let site = site.clone();
            let (server, stop) = (Arc::clone(&server), stopping.clone());
            let foreign_log = Arc::clone(&foreign_log);
            async move {
                let Some(connection) = turn_away(&server, socket, peer, &foreign_log, &stop).await else {
                    return;
                };
                let (config, memory) = (&server.config().server, server.admission().memory());
                if let Err(end) = http::connection::run(connection, peer, site, config, memory, stop).await {
                    tracing::debug!(%peer, "HTTP connection closed: {end}");
                }
            }
        })
        .await;
}

/// Waits for the first bytes of a connection, and returns both if the HTTP library should serve it.
/// `None`: it was refused, or has ended.
async fn turn_away(
    server: &Server,
    socket: TcpStream,
    peer: SocketAddr,
    log: &ForeignLog,
    stop: &CancellationToken,
) -> Option<(Socket, BytesMut)> {
    let (mut socket, mut received) = (Socket::new(socket), BytesMut::new());
    let detected = detect::first(server, &mut socket, &mut received, stop)
        .await
        .inspect_err(|why| tracing::debug!(%peer, "HTTP connection closed: {why}"))
        .ok()?;
    if let Detected::Thrift { protocol, framed } = detected {
        let first = (WireFormat { protocol, framed }, received);
        if let Some(reason) = refuse_on_http_port(server, socket, first, stop).await {
            log.note(peer, "HTTP", None, reason);
        }
        return None;
    }
    match ForeignProtocol::of(detected, &received) {
        // The library answers text and unknown bytes with an HTTP error.
        ForeignProtocol::Http | ForeignProtocol::Text | ForeignProtocol::Unknown => Some((socket, received)),
        protocol => {
            log.note(peer, "HTTP", Some(protocol), protocol);
            foreign::refuse(server, socket, protocol, stop).await;
            None
        }
    }
}
