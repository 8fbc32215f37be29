//! Logins between the preamble and the connection header (HBase: `SaslChallengeDecoder`).
//!
//! ```text
//! client: int32 length | message
//! server: int32 0 | int32 length | message         go on, or the last message
//!         int32 1 | class | text                   refused; each is int32 length | bytes
//! ```
//!
//! | mechanism | code of the preamble | clients |
//! | --- | --- | --- |
//! | GSSAPI | 81 | every Java client with Kerberos, asynchbase |
//! | DIGEST-MD5 with a token | 82 | every Java client from 1.7 on, the shell, MapReduce |
//! | PLAIN | 15 | Java 2.3 to 2.6 with the provider of HBase's examples (`ShadeSaslClientAuthenticationProvider`) |
//!
//! Java's clients before 3.0 read nothing after PLAIN, so nothing is sent. Nor is after GSSAPI, whose last
//! message is the client's. If the client has chosen integrity or privacy, everything behind that is wrapped.

use std::net::SocketAddr;
use std::sync::Arc;

use basalt_security::kerberos::{Acceptor, TOKEN_BYTES_MAX};
use basalt_security::sasl::{MESSAGE_BYTES_MAX, digest, plain};
use basalt_security::{Reason, Refused};

use super::{End, Input};
use crate::security::{Login, Next, Security, Ticket};
use crate::server::Server;
use crate::socket::WriteHalf;

/// Code of the preamble of HBase's example provider.
pub(super) const SHADE: u8 = 15;
/// Class of a refusal.
pub(super) const SASL_EXCEPTION: &str = "javax.security.sasl.SaslException";
/// Class of a refused token.
const INVALID_TOKEN: &str = "org.apache.hadoop.security.token.SecretManager$InvalidToken";

/// Facts about a client before its first byte.
pub(super) struct Greeted {
    pub(super) address: Option<SocketAddr>,
    pub(super) is_encrypted: bool,
    /// The login of its certificate.
    pub(super) login: Option<Login>,
}

/// A login by token; `None` when the client leaves.
pub(super) async fn by_token(
    server: &Arc<Server>,
    input: &mut Input,
    write: &mut WriteHalf,
    greeted: &Greeted,
) -> Result<Option<Login>, End> {
    if input.frame("a SASL message", MESSAGE_BYTES_MAX).await?.is_none() {
        return Ok(None);
    }
    let exchange = digest::Server::new().map_err(|error| End::Io(std::io::Error::other(error)))?;
    reply(write, &exchange.challenge()).await?;
    let Some(message) = input.frame("a SASL message", MESSAGE_BYTES_MAX).await? else {
        return Ok(None);
    };
    let security = server.security();
    let finished = exchange.finish(&message, |user| security.token_login(user));
    match finished {
        Ok((login, last)) => {
            note(server.security(), greeted, Ok(&login));
            reply(write, &last).await?;
            Ok(Some(login))
        }
        Err(failed) => {
            note(server.security(), greeted, Err(failed));
            let class = match failed.0 {
                Reason::Expired | Reason::Revoked | Reason::UnknownToken => INVALID_TOKEN,
                _ => SASL_EXCEPTION,
            };
            refuse(write, class, &failed.to_string()).await?;
            Ok(None)
        }
    }
}

/// A login by password; `None` when the client leaves, or is refused.
pub(super) async fn by_password(
    server: &Arc<Server>,
    input: &mut Input,
    write: &mut WriteHalf,
    greeted: &Greeted,
) -> Result<Option<Login>, End> {
    let Some(message) = input.frame("a SASL message", MESSAGE_BYTES_MAX).await? else {
        return Ok(None);
    };
    let ip = greeted.address.map(|address| address.ip());
    if !Security::is_private(greeted.is_encrypted, ip) {
        let text = "a password is accepted inside TLS only: configure TLS in the client";
        refuse(write, SASL_EXCEPTION, text).await?;
        return Ok(None);
    }
    let login = match plain::parse(&message) {
        Ok(plain) if plain.acts_for.is_some() => Err(Refused(Reason::Impersonation)),
        Ok(plain) => server.security().plain_login(plain, ip).await,
        Err(failed) => Err(failed),
    };
    note(
        server.security(),
        greeted,
        login.as_ref().map_err(|failed| *failed),
    );
    match login {
        Ok(login) => Ok(Some(login)),
        Err(failed) => {
            refuse(write, SASL_EXCEPTION, &failed.to_string()).await?;
            Ok(None)
        }
    }
}

/// A login by Kerberos ticket; `None` when the client leaves, or is refused. Afterwards both halves are
/// wrapped, if the client has chosen that.
pub(super) async fn by_ticket(
    server: &Arc<Server>,
    acceptor: &Acceptor,
    input: &mut Input,
    write: &mut WriteHalf,
    greeted: &Greeted,
) -> Result<Option<Ticket>, End> {
    let ip = greeted.address.map(|address| address.ip());
    let mut exchange = acceptor.exchange();
    let failed = loop {
        let Some(message) = input.frame("a SASL message", TOKEN_BYTES_MAX).await? else {
            return Ok(None);
        };
        match server.security().kerberos_step(exchange, message, ip).await {
            Ok(Next::Challenge(next, challenge)) => {
                reply(write, &challenge).await?;
                exchange = next;
            }
            Ok(Next::Complete(mut ticket)) => {
                note(server.security(), greeted, Ok(&ticket.login));
                if let Some(wrap) = ticket.peer.wrap.take() {
                    write.wrap(input.wrap(wrap));
                }
                return Ok(Some(ticket));
            }
            Err(failed) => break failed,
        }
    };
    note(server.security(), greeted, Err(failed));
    refuse(write, SASL_EXCEPTION, &failed.to_string()).await?;
    Ok(None)
}

fn note(security: &Security, greeted: &Greeted, login: Result<&Login, Refused>) {
    security.note_login("native", greeted.address, greeted.is_encrypted, login);
}

/// Sends a message of a mechanism.
async fn reply(write: &mut WriteHalf, message: &[u8]) -> Result<(), End> {
    let out = [&0_i32.to_be_bytes()[..], &length(message), message].concat();
    Ok(write.write_all(&out).await?)
}

/// Refuses a login, and ends the sending half of the connection.
pub(super) async fn refuse(write: &mut WriteHalf, class: &str, text: &str) -> Result<(), End> {
    let mut out = 1_i32.to_be_bytes().to_vec();
    for part in [class, text] {
        out.extend_from_slice(&length(part.as_bytes()));
        out.extend_from_slice(part.as_bytes());
    }
    write.write_all(&out).await?;
    Ok(write.shutdown().await?)
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes()
}
