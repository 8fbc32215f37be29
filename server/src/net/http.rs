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
use crate::security::Login;
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
                let Some((connection, login)) = turn_away(&server, socket, peer, &foreign_log, &stop).await
                else {
                    return;
                };
                let sender = http::Sender {
                    peer,
                    is_encrypted: connection.0.is_encrypted(),
                    login,
                    security: Arc::clone(server.security()),
                };
                let (config, memory) = (&server.config().server, server.admission().memory());
                if let Err(end) = http::connection::run(connection, sender, site, config, memory, stop).await
                {
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
) -> Option<((Socket, BytesMut), Option<Login>)> {
    let (mut socket, mut received) = (Socket::new(socket), BytesMut::new());
    let closed = |why: &dyn std::fmt::Display| tracing::debug!(%peer, "HTTP connection closed: {why}");
    let mut detected = detect::first(server, &mut socket, &mut received, stop)
        .await
        .inspect_err(|why| closed(why))
        .ok()?;
    if detected == Detected::Tls
        && let Some(tls) = server.security().tls()
    {
        socket = detect::encrypt(server, socket, &mut received, tls, stop)
            .await
            .inspect_err(|error| {
                log.note(
                    peer,
                    "HTTP",
                    Some(ForeignProtocol::Tls),
                    format!("the TLS handshake has failed: {error}"),
                );
            })
            .ok()?;
        detected = detect::first(server, &mut socket, &mut received, stop)
            .await
            .inspect_err(|why| closed(why))
            .ok()?;
    } else if !server.security().accepts_plaintext(peer.ip()) {
        log.note(peer, "HTTP", None, super::PLAINTEXT);
        foreign::end(server, socket, stop).await;
        return None;
    }
    let login = detect::certificate_login(server, &socket, "HTTP", peer)
        .inspect_err(|why| closed(why))
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
        ForeignProtocol::Http | ForeignProtocol::Text | ForeignProtocol::Unknown => {
            Some(((socket, received), login))
        }
        protocol => {
            log.note(peer, "HTTP", Some(protocol), protocol);
            foreign::refuse(server, socket, protocol, stop).await;
            None
        }
    }
}
