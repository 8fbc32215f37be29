//! The birth of a connection: its first bytes determine the protocol that serves it.
//!
//! 1. An idle connection is awaited without a buffer.
//! 2. Bytes are received until [`basalt_idl::wire::detect()`] knows the protocol. Eight suffice.
//! 3. If these begin a TLS handshake, and there is a certificate, the handshake runs, and the first bytes
//!    inside it are detected again ([`encrypt`]). A client certificate is a login.
//! 4. The caller hands the connection to the protocol, with the bytes received so far.

use std::future::{pending, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::ready;
use std::time::Duration;

use basalt_idl::wire::{Detected, detect};
use bytes::BytesMut;
use rustls::ServerConfig;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::security::{Login, Security};
use crate::server::Server;
use crate::socket::Socket;

/// Longest time of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Room for a read.
const FIRST_READ_BYTES: usize = 4 << 10;

/// Why no protocol was detected.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotDetected {
    #[error("the client closed the connection before its first message")]
    Closed,
    #[error("the server stops")]
    Stopping,
    #[error("no call for {0:?} (server.idle_timeout_ms)")]
    Idle(Duration),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Receives the first bytes of a connection, or more of them, and returns the protocol that they are
/// of. Bytes that
/// stay too few for a decision for the time of a message are [`Detected::Unknown`].
pub(super) async fn first(
    server: &Server,
    socket: &mut Socket,
    received: &mut BytesMut,
    stop: &CancellationToken,
) -> Result<Detected, NotDetected> {
    let config = &server.config().server;
    let idle = Duration::from_millis(config.idle_timeout_ms);
    let message = Duration::from_millis(config.message_timeout_ms);
    let mut began = None;
    loop {
        match detect(received) {
            Detected::NeedMore => {}
            detected => return Ok(detected),
        }
        if !received.is_empty() {
            began.get_or_insert_with(Instant::now);
        }
        let count = tokio::select! {
            biased;
            count = arrive(socket, received) => count?,
            () = stop.cancelled() => return Err(NotDetected::Stopping),
            () = until(began.map(|began: Instant| began + message)) => return Ok(Detected::Unknown),
            () = silence(idle), if began.is_none() => return Err(NotDetected::Idle(idle)),
        };
        match count {
            0 if received.is_empty() => return Err(NotDetected::Closed),
            0 => return Ok(Detected::Unknown),
            count => server.load().connections.received_bytes.add(count as u64),
        }
    }
}

/// Runs the server's side of a TLS handshake that `received` begins.
pub(super) async fn encrypt(
    server: &Server,
    socket: Socket,
    received: &mut BytesMut,
    tls: Arc<ServerConfig>,
    stop: &CancellationToken,
) -> std::io::Result<Socket> {
    let first = std::mem::take(received);
    let limit = Duration::from_millis(server.config().server.message_timeout_ms).min(HANDSHAKE);
    socket.accept_tls(&first, tls, limit, stop).await
}

/// The login of a client certificate; `None` without one, and on a server without logins.
pub(super) fn certificate_login(
    security: &Security,
    socket: &Socket,
    port: &'static str,
    peer: SocketAddr,
) -> Result<Option<Login>, String> {
    let certificate = socket.peer_certificate().filter(|_| security.authenticates());
    let Some(certificate) = certificate else {
        return Ok(None);
    };
    let login = security.certificate_login(&certificate);
    security.note_login(port, Some(peer), true, login.as_ref().map_err(|failed| *failed));
    login
        .map(Some)
        .map_err(|failed| format!("the client's certificate: {}", failed.0.as_str()))
}

/// Reads the bytes that have arrived; 0 at the end. A connection without bytes keeps no buffer.
async fn arrive(socket: &mut Socket, received: &mut BytesMut) -> std::io::Result<usize> {
    poll_fn(|context| {
        ready!(socket.read.poll_read_ready(context))?;
        received.reserve(FIRST_READ_BYTES);
        let read = socket.read.poll_read_buf(context, received);
        if received.is_empty() {
            *received = BytesMut::new();
        }
        read
    })
    .await
}

/// Returns at that time; never without one.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}

/// Returns after this time; never if it is zero.
async fn silence(limit: Duration) {
    if limit.is_zero() {
        pending::<()>().await;
    }
    tokio::time::sleep(limit).await;
}
