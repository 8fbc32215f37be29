//! The preamble and the connection header.

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::frame::{
    CONNECTION_CALL_ID, begin_response, decode_connection_header, put_exception,
};
use basalt_idl::native::messages::GetConnectionRegistryResponse;
use basalt_idl::native::preamble::{
    Authentication, EXPECTED_HEADER, PREAMBLE_BYTES, Preamble, SWITCH_TO_SIMPLE,
};

use super::{End, Input};
use crate::native::peer::Peer;
use crate::security::User;
use crate::server::Server;
use crate::service::admin::cluster;
use crate::socket::WriteHalf;

/// Longest connection header or SASL frame.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Answers the preamble and reads the connection header; `None` when the connection ends without
/// calls.
pub(super) async fn greet(
    server: &Server,
    input: &mut Input,
    write: &mut WriteHalf,
) -> Result<Option<(Peer, Option<User>)>, End> {
    match read_greeting(server, input, write).await {
        Err(End::Refused { class, message }) => {
            server.connections().protocol_errors.increment(1);
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
    server: &Server,
    input: &mut Input,
    write: &mut WriteHalf,
) -> Result<Option<(Peer, Option<User>)>, End> {
    loop {
        let Some(preamble) = input.bytes::<PREAMBLE_BYTES>().await? else {
            return Ok(None);
        };
        let mut out = Vec::new();
        match Preamble::parse(preamble) {
            Preamble::Rpc(Authentication::Simple) => break,
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
    let Some(frame) = input.frame("a connection header", HEADER_BYTES_MAX).await? else {
        return Ok(None);
    };
    let header = decode_connection_header(frame)
        .map_err(|error| End::refused(ExceptionClass::FatalConnection, error.to_string()))?;
    let peer = Peer::new(&header).map_err(|(class, message)| End::refused(class, message))?;
    let user = header.user_info.map(|user| User {
        effective: user.effective_user,
        real: user.real_user,
    });
    Ok(Some((peer, user)))
}
