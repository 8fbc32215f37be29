//! Thrift's SASL negotiation (`TSaslTransport`), before the first message of a connection.
//!
//! ```text
//! frame  = status u8 | length u32 | payload
//! client: START (mechanism), then OK or COMPLETE with its message
//! server: COMPLETE, or BAD with a text; OK with a message of GSSAPI, to which the client answers
//! ```
//!
//! PLAIN takes a password or the text of a token, inside TLS or on this machine; EXTERNAL takes the
//! certificate of the connection; GSSAPI takes a Kerberos ticket. Afterwards each message of the connection
//! is framed. If a client of GSSAPI has chosen integrity or privacy, the frames are wrapped pieces of a
//! stream.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use basalt_security::kerberos::{TOKEN_BYTES_MAX, Wrap};
use basalt_security::sasl::{MESSAGE_BYTES_MAX, external, plain};
use basalt_security::{Reason, Refused};
use bytes::{Buf, BytesMut};
use tokio::time::timeout;

use crate::limits::admission::MemoryPermit;
use crate::security::{Login, Next, Security};
use crate::server::Server;
use crate::socket::{Socket, Wrapped};

/// The mechanism of Kerberos.
const GSSAPI: &[u8] = b"GSSAPI";
const START: u8 = 1;
const OK: u8 = 2;
const BAD: u8 = 3;
const COMPLETE: u8 = 5;
/// Status and length.
const HEADER_BYTES: usize = 5;
/// Room for one read.
const READ_BYTES: usize = 1 << 10;

/// Why a negotiation ended without a login.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the SASL negotiation was not complete after {0:?} (server.message_timeout_ms)")]
    Slow(Duration),
    #[error("the client left the SASL negotiation")]
    Left,
    #[error("SASL: {0}")]
    Refused(String),
}

/// Lets the client log in. `received` are its first bytes, and then those behind the negotiation.
/// `certificate` is the login of its certificate, if it has shown one.
pub(crate) async fn authenticate(
    server: &Arc<Server>,
    socket: &mut Socket,
    received: &mut BytesMut,
    certificate: Option<&Login>,
) -> Result<Login, End> {
    let limit = Duration::from_millis(server.config().server.message_timeout_ms);
    let negotiated = timeout(limit, negotiate(server, socket, received, certificate)).await;
    negotiated.map_err(|_| End::Slow(limit))?
}

async fn negotiate(
    server: &Arc<Server>,
    socket: &mut Socket,
    received: &mut BytesMut,
    certificate: Option<&Login>,
) -> Result<Login, End> {
    let address = socket.peer_addr().ok();
    let is_encrypted = socket.is_encrypted();
    let (_, mechanism) = next(socket, received, &[START], MESSAGE_BYTES_MAX).await?;
    let has_tickets = server.security().kerberos().is_some() && &mechanism[..] == GSSAPI;
    let most = if has_tickets {
        TOKEN_BYTES_MAX
    } else {
        MESSAGE_BYTES_MAX
    };
    let (_, message) = next(socket, received, &[OK, COMPLETE], most).await?;
    let ip = address.map(|address| address.ip());
    let (attempt, wrap) = if has_tickets {
        match by_ticket(server, socket, received, message, ip).await? {
            Ok((login, wrap)) => (Ok(login), wrap),
            Err(failed) => (Err(Attempt::Failed(failed)), None),
        }
    } else {
        let attempt = attempt(server, &mechanism, &message, is_encrypted, ip, certificate).await;
        (attempt, None)
    };
    let text = match attempt {
        Err(Attempt::Unavailable(text)) => text,
        Err(Attempt::Failed(failed)) => {
            server
                .security()
                .note_login("thrift", address, is_encrypted, Err(failed));
            failed.to_string()
        }
        Ok(login) => {
            server
                .security()
                .note_login("thrift", address, is_encrypted, Ok(&login));
            send(socket, COMPLETE, b"").await?;
            if let Some(wrap) = wrap {
                let permit = MemoryPermit::empty(server.admission().memory());
                let most = server.config().server.max_message_bytes;
                let arrived = std::mem::take(received);
                socket.wrap(Wrapped::new(wrap, arrived, most, Box::new(permit)));
            }
            return Ok(login);
        }
    };
    server.load().connections.protocol_errors.increment(1);
    send(socket, BAD, text.as_bytes()).await?;
    Err(End::Refused(text))
}

/// A login by Kerberos ticket, whose first message is `message`.
async fn by_ticket(
    server: &Arc<Server>,
    socket: &mut Socket,
    received: &mut BytesMut,
    mut message: BytesMut,
    ip: Option<IpAddr>,
) -> Result<Result<(Login, Option<Box<dyn Wrap>>), Refused>, End> {
    let Some(acceptor) = server.security().kerberos() else {
        return Ok(Err(Refused(Reason::Malformed)));
    };
    let mut exchange = acceptor.exchange();
    loop {
        match server.security().kerberos_step(exchange, message, ip).await {
            Ok(Next::Challenge(next_exchange, challenge)) => {
                send(socket, OK, &challenge).await?;
                exchange = next_exchange;
            }
            // The gateway of HBase has no impersonation here either.
            Ok(Next::Complete(ticket)) => {
                return Ok(match &ticket.peer.acts_for {
                    Some(other)
                        if server.security().named_user(other).ok().as_ref() != Some(&ticket.login.user) =>
                    {
                        Err(Refused(Reason::Impersonation))
                    }
                    _ => Ok((ticket.login, ticket.peer.wrap)),
                });
            }
            Err(failed) => return Ok(Err(failed)),
        }
        (_, message) = next(socket, received, &[OK, COMPLETE], TOKEN_BYTES_MAX).await?;
    }
}

enum Attempt {
    /// The text says why the mechanism cannot be used.
    Unavailable(String),
    Failed(Refused),
}

async fn attempt(
    server: &Arc<Server>,
    mechanism: &[u8],
    message: &[u8],
    is_encrypted: bool,
    ip: Option<IpAddr>,
    certificate: Option<&Login>,
) -> Result<Login, Attempt> {
    match mechanism {
        b"PLAIN" if !Security::is_private(is_encrypted, ip) => Err(Attempt::Unavailable(
            "a password is accepted inside TLS only: configure TLS in the client".to_owned(),
        )),
        b"PLAIN" => {
            let plain = plain::parse(message).map_err(Attempt::Failed)?;
            if plain.acts_for.is_some() {
                return Err(Attempt::Failed(Refused(Reason::Impersonation)));
            }
            let login = server.security().plain_login(plain, ip).await;
            login.map_err(Attempt::Failed)
        }
        b"EXTERNAL" => {
            let Some(login) = certificate else {
                return Err(Attempt::Unavailable(
                    "EXTERNAL needs a client certificate, and the connection has none".to_owned(),
                ));
            };
            match external::parse(message, &login.user).map_err(Attempt::Failed)? {
                Some(_) => Err(Attempt::Failed(Refused(Reason::Impersonation))),
                None => Ok(login.clone()),
            }
        }
        other => {
            let shown = String::from_utf8_lossy(&other[..other.len().min(32)]).into_owned();
            Err(Attempt::Unavailable(format!(
                "the mechanism {shown:?} is not supported: PLAIN (inside TLS) and EXTERNAL are, and GSSAPI where Kerberos is set up (kerberos.keytab)"
            )))
        }
    }
}

/// The next frame, whose status must be one of these.
async fn next(
    socket: &mut Socket,
    received: &mut BytesMut,
    expected: &[u8],
    most: usize,
) -> Result<(u8, BytesMut), End> {
    loop {
        if let Some((&status, rest)) = received.split_first() {
            if !expected.contains(&status) {
                return Err(End::Refused(format!("status {status} is not expected")));
            }
            if let Some(length) = rest.first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                if length > most {
                    return Err(End::Refused(format!(
                        "a message of {length} bytes; the limit is {most}"
                    )));
                }
                if received.len() >= HEADER_BYTES + length {
                    received.advance(HEADER_BYTES);
                    return Ok((status, received.split_to(length)));
                }
            }
        }
        received.reserve(READ_BYTES);
        if socket.read.read_buf(received).await? == 0 {
            return Err(End::Left);
        }
    }
}

async fn send(socket: &Socket, status: u8, payload: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let frame = [&[status][..], &length, payload].concat();
    socket.write.write_all(&frame).await
}
