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
use basalt_idl::native::messages::GetConnectionRegistryResponse;
use basalt_idl::native::preamble::{
    Authentication, EXPECTED_HEADER, PREAMBLE_BYTES, Preamble, SWITCH_TO_SIMPLE,
};
use basalt_security::sasl::MESSAGE_BYTES_MAX;

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
            Preamble::Rpc(Authentication::Kerberos) if authenticates => {
                let text = "Kerberos is not built into this server: use a token (basalt token create) or a client certificate";
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
            let acts_for = acts_for(server.security(), &login, user, greeted.address)?;
            Identity::Proven { login, acts_for }
        }
    };
    Ok(Some((peer, identity)))
}

fn denied(message: String) -> End {
    End::refused(ExceptionClass::AccessDenied, message)
}

/// The user that a client acts for, if its header names two users: the rules of impersonation decide. A
/// lone user is the login name of the client's machine, which proves nothing.
fn acts_for(
    security: &Security,
    login: &Login,
    user: Option<User>,
    address: Option<SocketAddr>,
) -> Result<Option<String>, End> {
    let Some(User {
        effective,
        real: Some(_),
    }) = user
    else {
        return Ok(None);
    };
    let users = security.users();
    let ip = address.map(|address| address.ip());
    if users.may_impersonate(&login.user, &effective, ip).is_ok() {
        return Ok(Some(effective));
    }
    let message = format!("User: {} is not allowed to impersonate {effective}", login.user);
    security.note_impersonation(login, &effective, address, &message);
    Err(denied(message))
}
