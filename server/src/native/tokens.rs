//! The endpoint `AuthenticationService` (HBase: `TokenProvider`): who the caller is, and tokens for it.
//!
//! Clients call it on the region of `hbase:meta`; it is the same on every region. MapReduce asks for a token
//! when its user has none, so that the tasks of a job can log in.

use std::sync::Arc;

use basalt_idl::native::messages as pb;
use bytes::Bytes;
use prost::Message;

use super::reply::endpoint_answer;
use super::request;
use super::state::Connection;
use crate::service::admin::{cluster, tokens};
use crate::service::{AdminCall, Failure};

/// Answers a call of the endpoint.
pub(super) async fn endpoint(
    connection: &Arc<Connection>,
    method: pb::AuthenticationServiceMethod,
    request: Bytes,
) -> Result<pb::NameBytesPair, Failure> {
    use pb::AuthenticationServiceMethod as Of;
    let admin = connection.admin();
    match method {
        Of::WhoAmI => {
            let pb::WhoAmIRequest {} = request::decode(request)?;
            let caller = tokens::caller(&admin)?;
            Ok(named(
                "WhoAmIResponse",
                &pb::WhoAmIResponse {
                    username: caller.user,
                    auth_method: Some(caller.method.to_owned()),
                },
            ))
        }
        Of::GetAuthenticationToken => {
            let pb::GetAuthenticationTokenRequest {} = request::decode(request)?;
            connection.server.on_pool(move |_| token(&admin)).await
        }
    }
}

fn token(call: &AdminCall) -> Result<pb::NameBytesPair, Failure> {
    let service = cluster::cluster_id(call)?;
    let issued = tokens::issue(call)?;
    let token = pb::Token {
        identifier: Some(Bytes::from(issued.identifier)),
        password: Some(Bytes::copy_from_slice(issued.password.expose())),
        service: Some(Bytes::from(service)),
    };
    let answer = pb::GetAuthenticationTokenResponse { token: Some(token) };
    Ok(named("GetAuthenticationTokenResponse", &answer))
}

fn named(class: &str, answer: &impl Message) -> pb::NameBytesPair {
    endpoint_answer(&format!("AuthenticationProtos${class}"), answer)
}
