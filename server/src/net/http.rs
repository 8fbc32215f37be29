//! The HTTP port: accepting, and clients that do not speak HTTP.
//!
//! The first bytes of a connection are examined before the HTTP library reads them. A Thrift
//! message is refused by a Thrift reply, another protocol by a reply in that protocol where it has
//! one, and the refusal is logged. HTTP, text and unknown bytes go to the library.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use basalt_idl::wire::{Detected, detect};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::foreign_log::ForeignLog;
use super::listener::Listener;
use crate::http;
use crate::server::Server;
use crate::thrift::connection::{refuse_on_http_port, send_and_close};
use crate::thrift::messages::{ForeignProtocol, ProtocolError};

/// Bytes that suffice to distinguish protocols.
const FIRST_BYTES: usize = 16;

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
                let Some(socket) = turn_away(&server, socket, peer, &foreign_log, &stop).await else {
                    return;
                };
                let (config, memory) = (&server.config().thrift, server.admission().memory());
                if let Err(end) = http::connection::run(socket, peer, site, config, memory, stop).await {
                    tracing::debug!(%peer, "HTTP connection closed: {end}");
                }
            }
        })
        .await;
}

/// Waits for the first bytes of a connection, and returns the connection if the HTTP library should
/// serve it. `None`: it was refused, or has ended.
async fn turn_away(
    server: &Server,
    socket: TcpStream,
    peer: SocketAddr,
    log: &ForeignLog,
    stop: &CancellationToken,
) -> Option<TcpStream> {
    let mut first = [0; FIRST_BYTES];
    let count = peek(server, &socket, &mut first, stop).await?;
    let first = first.get(..count)?;
    let detected = detect(first);
    if matches!(detected, Detected::Thrift { .. }) {
        log.note(peer, "HTTP", None, ProtocolError::HttpPort);
        refuse_on_http_port(server, socket, stop).await;
        return None;
    }
    match ForeignProtocol::of(detected, first) {
        // The library answers text and unknown bytes with an HTTP error.
        ForeignProtocol::Http | ForeignProtocol::Text | ForeignProtocol::Unknown => Some(socket),
        protocol => {
            log.note(peer, "HTTP", Some(protocol), protocol);
            send_and_close(server, socket, protocol.reply(), stop).await;
            None
        }
    }
}

/// Reads the first bytes and leaves them in the socket; returns their number. `None` when the
/// client has closed the connection, has been idle for too long, or the server stops.
async fn peek(
    server: &Server,
    socket: &TcpStream,
    first: &mut [u8],
    stop: &CancellationToken,
) -> Option<usize> {
    let limit = Duration::from_millis(server.config().thrift.idle_timeout_ms);
    let idle = async {
        if limit.is_zero() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(limit).await;
    };
    tokio::select! {
        count = socket.peek(first) => count.ok().filter(|count| *count > 0),
        () = idle => None,
        () = stop.cancelled() => None,
    }
}
