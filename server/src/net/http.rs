//! The HTTP port, and that of the REST interface: accepting, and clients that do not speak HTTP.
//!
//! The first bytes of a connection are examined before the HTTP library reads them. A Thrift
//! message is refused by a Thrift reply, another protocol by a reply in that protocol where it has
//! one, and the refusal is logged. HTTP, text and unknown bytes go to the library.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
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
use crate::security::{Login, Stranger};
use crate::server::Server;
use crate::socket::Socket;
#[cfg(feature = "thrift")]
use crate::thrift;
use crate::{http, rest};

/// Serves the HTTP port until shutdown.
pub(crate) async fn serve(
    listener: Listener,
    server: Arc<Server>,
    recorder: PrometheusHandle,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let is_rest = server.config().rest.enabled;
    let add = |site| {
        if is_rest {
            rest::beside(&server, tasks.clone(), site)
        } else {
            site
        }
    };
    #[cfg(feature = "thrift")]
    let calls = thrift::http::routes();
    #[cfg(not(feature = "thrift"))]
    let calls = Router::new();
    let site = http::site(
        Arc::clone(&server),
        recorder,
        tasks.clone(),
        stop.clone(),
        calls,
        add,
    );
    serve_site("HTTP", listener, Arc::clone(&server), site, tasks, stop).await;
}

/// Serves the port of the REST interface until shutdown.
pub(crate) async fn serve_rest(
    listener: Listener,
    server: Arc<Server>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let site = rest::site(&server, tasks.clone());
    serve_site("REST", listener, server, site, tasks, stop).await;
}

/// Serves what `site` answers on a port.
async fn serve_site(
    port: &'static str,
    listener: Listener,
    server: Arc<Server>,
    site: Router,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let stopping = stop.clone();
    let foreign_log = Arc::new(ForeignLog::default());
    listener
        .accept(tasks, stop, |socket, peer, stranger| {
            let site = site.clone();
            let (server, stop) = (Arc::clone(&server), stopping.clone());
            let foreign_log = Arc::clone(&foreign_log);
            async move {
                // Boxed, as is the serving: an idle connection keeps the memory of its handshake otherwise.
                let admitted = Box::pin(turn_away(port, &server, socket, peer, &foreign_log, &stop)).await;
                let Some((connection, login)) = admitted else {
                    return;
                };
                if login.is_some() {
                    stranger.logged_in();
                }
                let serving = Box::pin(run(connection, peer, (login, stranger), &server, site, stop));
                if let Err(end) = serving.await {
                    tracing::debug!(%peer, "{port} connection closed: {end}");
                }
            }
        })
        .await;
}

/// Serves what `site` answers on a connection.
pub(super) async fn run(
    connection: (Socket, BytesMut),
    peer: SocketAddr,
    (login, stranger): (Option<Login>, Stranger),
    server: &Arc<Server>,
    site: Router,
    stop: CancellationToken,
) -> Result<(), http::connection::End> {
    let sender = http::Sender {
        peer,
        is_encrypted: connection.0.is_encrypted(),
        login,
        stranger,
        security: Arc::clone(server.security()),
    };
    let (config, memory) = (&server.config().server, server.admission().memory());
    http::connection::run(connection, sender, site, config, memory, stop).await
}

/// Waits for the first bytes of a connection, and returns both if the HTTP library should serve it.
/// `None`: it was refused, or has ended.
async fn turn_away(
    port: &'static str,
    server: &Server,
    socket: TcpStream,
    peer: SocketAddr,
    log: &ForeignLog,
    stop: &CancellationToken,
) -> Option<((Socket, BytesMut), Option<Login>)> {
    let (mut socket, mut received) = (Socket::new(socket), BytesMut::new());
    let closed = |why: &dyn std::fmt::Display| tracing::debug!(%peer, "{port} connection closed: {why}");
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
                    port,
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
        log.note(peer, port, None, super::PLAINTEXT);
        foreign::end(server, socket, stop).await;
        return None;
    }
    let login = detect::certificate_login(server.security(), &socket, port, peer)
        .inspect_err(|why| closed(why))
        .ok()?;
    #[cfg(feature = "thrift")]
    if let Detected::Thrift { protocol, framed } = detected {
        let first = (thrift::messages::WireFormat { protocol, framed }, received);
        if let Some(reason) = thrift::connection::refuse_on_http_port(server, socket, first, stop).await {
            log.note(peer, port, None, reason);
        }
        return None;
    }
    match ForeignProtocol::of(detected, &received) {
        // The library answers text and unknown bytes with an HTTP error.
        ForeignProtocol::Http | ForeignProtocol::Text | ForeignProtocol::Unknown => {
            Some(((socket, received), login))
        }
        protocol => {
            log.note(peer, port, Some(protocol), protocol);
            foreign::refuse(server, socket, protocol, stop).await;
            None
        }
    }
}
