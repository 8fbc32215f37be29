//! The preamble, the login and the connection header.
//!
//! A login by token ([`super::sasl`]) stands between preamble and header. Where users must prove who they
//! are, the calls of a client without a login are refused. The header's user is believed only elsewhere: a
//! certificate or token has a user of its own, and a header with two users asks to act for another.

use std::net::SocketAddr;
use std::sync::Arc;

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::frame::{
    CONNECTION_CALL_ID, begin_response, decode_connection_header, put_exception,
};
use basalt_idl::native::messages::{GetConnectionRegistryResponse, SecurityPreamableResponse};
use basalt_idl::native::preamble::{
    Authentication, EXPECTED_HEADER, PREAMBLE_BYTES, Preamble, SWITCH_TO_SIMPLE,
};
use basalt_security::kerberos::Peer as TicketPeer;
use basalt_security::sasl::MESSAGE_BYTES_MAX;
use basalt_security::users::Credential;

use super::sasl::Greeted;
use super::{End, Input, sasl};
use crate::native::peer::Peer;
use crate::security::{Login, Security, User};
use crate::server::Server;
use crate::service::admin::cluster;
use crate::socket::WriteHalf;

/// Longest connection header, and SASL message of a client of a server without users, which is not looked at.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// The identity of a connection's caller.
pub(super) enum Identity {
    /// The client's own word, if it names a user.
    Named(Option<User>),
    /// A proven user, and the user that it acts for, if that is another.
    Proven { login: Login, acts_for: Option<String> },
}

/// Answers the preamble and reads the connection header; `None` when the connection ends without
/// calls.
pub(super) async fn greet(
    server: &Arc<Server>,
    input: &mut Input,
    write: &mut WriteHalf,
    greeted: Greeted,
) -> Result<Option<(Peer, Identity)>, End> {
    match read_greeting(server, input, write, greeted).await {
        Err(End::Refused { class, message }) => {
            server.load().connections.protocol_errors.increment(1);
            let mut out = Vec::new();
            put_exception(CONNECTION_CALL_ID, class.response(&message), &mut out);
            write.write_all(&out).await?;
            write.shutdown().await?;
            Err(End::refused(class, message))
        }
        greeted => greeted,
    }
}

async fn read_greeting(
    server: &Arc<Server>,
    input: &mut Input,
    write: &mut WriteHalf,
    mut greeted: Greeted,
) -> Result<Option<(Peer, Identity)>, End> {
    let authenticates = server.security().authenticates();
    let mut ticket = None;
    loop {
        let Some(preamble) = input.bytes::<PREAMBLE_BYTES>().await? else {
            return Ok(None);
        };
        let mut out = Vec::new();
        match Preamble::parse(preamble) {
            Preamble::Rpc(Authentication::Simple) => break,
            Preamble::Rpc(Authentication::Digest) if authenticates => {
                let Some(login) = sasl::by_token(server, input, write, &greeted).await? else {
                    return Ok(None);
                };
                greeted.login = Some(login);
                break;
            }
            Preamble::Rpc(Authentication::Kerberos)
                if authenticates && let Some(acceptor) = server.security().kerberos() =>
            {
                let Some(by) = sasl::by_ticket(server, acceptor, input, write, &greeted).await? else {
                    return Ok(None);
                };
                greeted.login = Some(by.login);
                ticket = Some(by.peer);
                break;
            }
            Preamble::Rpc(Authentication::Kerberos) if authenticates => {
                let text = "Kerberos is not set up on this server (kerberos.keytab): use a token (basalt token create) or a \
                            client certificate";
                return sasl::refuse(write, sasl::SASL_EXCEPTION, text)
                    .await
                    .map(|()| None);
            }
            Preamble::BadAuthentication(sasl::SHADE) if authenticates => {
                let Some(login) = sasl::by_password(server, input, write, &greeted).await? else {
                    return Ok(None);
                };
                greeted.login = Some(login);
                break;
            }
            Preamble::Rpc(Authentication::Kerberos | Authentication::Digest) => {
                write.write_all(&SWITCH_TO_SIMPLE).await?;
                if input.frame("a SASL message", HEADER_BYTES_MAX).await?.is_none() {
                    return Ok(None);
                }
                break;
            }
            Preamble::Registry => {
                let cluster_id = cluster::id(server);
                let answer = GetConnectionRegistryResponse { cluster_id };
                begin_response(CONNECTION_CALL_ID, &answer, 0, &mut out);
                write.write_all(&out).await?;
                write.shutdown().await?;
                return Ok(None);
            }
            Preamble::Security if authenticates && let Some(acceptor) = server.security().kerberos() => {
                let server_principal = acceptor.principal().to_owned();
                let answer = SecurityPreamableResponse { server_principal };
                begin_response(CONNECTION_CALL_ID, &answer, 0, &mut out);
                write.write_all(&out).await?;
            }
            Preamble::Security => {
                let refusal = ExceptionClass::SecurityNotEnabled.response("security is not enabled");
                put_exception(CONNECTION_CALL_ID, refusal, &mut out);
                write.write_all(&out).await?;
            }
            Preamble::WrongVersion(version) => {
                let message = format!("the client's RPC version is {version}, the server's is 0");
                return Err(End::refused(ExceptionClass::WrongVersion, message));
            }
            Preamble::BadAuthentication(code) => {
                let message = format!("unknown authentication code {code}; SIMPLE (80) is supported");
                return Err(End::refused(ExceptionClass::BadAuth, message));
            }
            Preamble::Unknown => {
                let message = format!("{EXPECTED_HEADER} but received HEADER={preamble:02x?}");
                return Err(End::refused(ExceptionClass::FatalConnection, message));
            }
        }
    }
    // A client that has proved nothing takes little memory.
    let header_bytes_max = if authenticates && greeted.login.is_none() {
        MESSAGE_BYTES_MAX
    } else {
        HEADER_BYTES_MAX
    };
    let Some(frame) = input.frame("a connection header", header_bytes_max).await? else {
        return Ok(None);
    };
    let header = decode_connection_header(frame)
        .map_err(|error| End::refused(ExceptionClass::FatalConnection, error.to_string()))?;
    let peer = Peer::new(&header).map_err(|(class, message)| End::refused(class, message))?;
    let user = header.user_info.map(|user| User {
        effective: user.effective_user,
        real: user.real_user,
    });
    let identity = match greeted.login {
        _ if !authenticates => Identity::Named(user),
        // Each of its calls is refused: the client shows that, and not the end of its connection.
        None => Identity::Named(None),
        Some(login) => {
            let wanted = wanted(user, ticket.as_ref());
            let acts_for = acts_for(server.security(), &login, wanted, greeted.address)?;
            Identity::Proven { login, acts_for }
        }
    };
    Ok(Some((peer, identity)))
}

fn denied(message: String) -> End {
    End::refused(ExceptionClass::AccessDenied, message)
}

/// The user that a client asks to act for. A header with two users asks for the first. A lone user is the
/// login name of the client's machine, which proves nothing, except beside a Kerberos ticket: then it is
/// the client's principal, or the user to act for. The last message of GSSAPI may name one, too.
fn wanted(user: Option<User>, ticket: Option<&TicketPeer>) -> Option<String> {
    let Some(peer) = ticket else {
        return user.and_then(|user| user.real.is_some().then_some(user.effective));
    };
    let of_header = user.map(|user| user.effective);
    of_header
        .filter(|name| *name != peer.principal)
        .or_else(|| peer.acts_for.clone())
}

/// Lets the rules of impersonation decide whether a client may act for another user.
fn acts_for(
    security: &Security,
    login: &Login,
    wanted: Option<String>,
    address: Option<SocketAddr>,
) -> Result<Option<String>, End> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let effective = match login.credential {
        Credential::Kerberos => security.named_user(&wanted).unwrap_or(wanted),
        _ => wanted,
    };
    if effective == login.user {
        return Ok(None);
    }
    let users = security.users();
    let ip = address.map(|address| address.ip());
    if users.may_impersonate(&login.user, &effective, ip).is_ok() {
        return Ok(Some(effective));
    }
    let message = format!("User: {} is not allowed to impersonate {effective}", login.user);
    security.note_impersonation(login, &effective, address, &message);
    Err(denied(message))
}
