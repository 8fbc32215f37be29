//! Thrift calls over HTTP, as HBase's HTTP mode has them: one POST is one call, its body the message,
//! unframed.
//!
//! The path selects one of HBase's services. At `/`, where HBase has its servlet of either service, each
//! call decides, as on the main port. The protocol is detected by the first bytes, as on the
//! main port; the content type is ignored, as in HBase's servlet. Answers are in Thrift wherever
//! possible, with status 200, errors too: Thrift clients show nothing of an HTTP error but its
//! number.
//!
//! A page in a browser can make the browser send a POST to a server on the same machine. Browsers
//! say so with the header `Origin`, which Thrift clients do not send: such requests are refused,
//! including those of this server's own pages. `guard` refuses requests of other sites' pages
//! before this module sees them.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Client;
use crate::console::Site;
use crate::http::{Answer, Closing, NotReceived, close_without_answer, receive};
use crate::limits::admission::MemoryPermit;
use crate::security::{Caller, Owner};
use crate::service::{Sender, Told};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use basalt_idl::dispatch::Service;
use basalt_idl::wire::{Detected, Protocol, detect};

/// The content type of messages of Thrift's libraries.
const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-thrift");

/// Why a request is not a call that can be answered in Thrift.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the request comes from a web page (it has the header Origin), and web pages may not call")]
    WebPage,
    #[error("the request has the header doAs, but acting for another user is not supported")]
    DoAs,
    #[error("{0}")]
    NotReceived(#[from] NotReceived),
    #[error("the body is no Thrift message: {0}")]
    NotThrift(String),
    #[error("the server is stopping")]
    Stopping,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::WebPage | Self::DoAs => StatusCode::FORBIDDEN,
            Self::NotReceived(why) => why.status(),
            Self::NotThrift(_) => StatusCode::BAD_REQUEST,
            Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, format!("{self}\n")).into_response()
    }
}

/// The paths that calls are posted to. Clients of Thrift 1 (Hue) and of Thrift 2 (Java) post to `/`: HBase's
/// port has nothing but its servlet.
pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/", post(either))
        .route("/thrift1", post(thrift1))
        .route("/thrift2", post(thrift2))
}

/// A call of either service of HBase's, or ours.
async fn either(State(site): State<Site>, request: Request) -> Response {
    respond(site, None, request).await
}

/// A call of Thrift 1's service, or ours.
async fn thrift1(State(site): State<Site>, request: Request) -> Response {
    respond(site, Some(Service::Thrift1), request).await
}

/// A call of Thrift 2's service, or ours.
async fn thrift2(State(site): State<Site>, request: Request) -> Response {
    respond(site, Some(Service::Thrift2), request).await
}

async fn respond(site: Site, service: Option<Service>, request: Request) -> Response {
    let server = Arc::clone(&site.server);
    let connections = &server.load().connections;
    match call(site, service, request).await {
        Ok(answer) => {
            connections.sent_bytes.add(answer.len() as u64);
            ([(header::CONTENT_TYPE, CONTENT_TYPE)], Body::new(answer)).into_response()
        }
        Err(refusal) => {
            connections.protocol_errors.increment(1);
            tracing::debug!("request refused: {refusal}");
            refusal.into_response()
        }
    }
}

async fn call(site: Site, service: Option<Service>, request: Request) -> Result<Answer, Refusal> {
    check_headers(request.headers())?;
    let peer = request.extensions().get::<SocketAddr>().copied();
    let caller = request.extensions().get::<Arc<Caller>>().cloned();
    let peer_ip = peer.map(|peer| peer.ip());
    let closing = request.extensions().get::<Closing>().cloned();
    let mut permit = MemoryPermit::empty(site.server.admission().memory());
    let message = receive(request, &site.server, peer_ip, &mut permit).await?;
    let protocol = protocol_of(&message)?;
    let server = Arc::clone(&site.server);
    let caller = caller.unwrap_or_else(|| Caller::anonymous(Owner::Http, peer));
    let sender = Sender::new(caller, site.server.admission().memory());
    let told = Told::of(&sender);
    let mut client = match service {
        Some(service) => Client::of(service, sender),
        None => Client::of_both(sender),
    };
    // In a task of its own: when the client closes the connection, this future is dropped, but a write must
    // go on to its end.
    let answer = site.tasks.spawn(async move {
        let mut answer = Vec::new();
        permit.set(message.len());
        server.call(&mut client, protocol, message, &mut answer).await;
        if let Some(mut reply) = client.take_reply() {
            permit.join(&mut reply);
        }
        permit.set(answer.capacity());
        if client.is_cut {
            return Err(closing);
        }
        Ok(Answer::new(answer.into(), permit, peer_ip, closing))
    });
    // A call ends early only with the runtime.
    let answer = answer.await.map_err(|_| Refusal::Stopping);
    drop(told);
    match answer? {
        Ok(answer) => Ok(answer),
        Err(closing) => close_without_answer(closing).await,
    }
}

fn check_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(header::ORIGIN) {
        return Err(Refusal::WebPage);
    }
    if headers.contains_key("doas") {
        return Err(Refusal::DoAs);
    }
    Ok(())
}

fn protocol_of(message: &[u8]) -> Result<Protocol, Refusal> {
    let text = match detect(message) {
        Detected::Thrift {
            protocol,
            framed: false,
        } => return Ok(protocol),
        Detected::Thrift { framed: true, .. } => {
            "it begins with the length of a frame, and over HTTP messages are not framed".to_owned()
        }
        Detected::NeedMore => format!("it has only {} bytes", message.len()),
        _ => format!(
            "it begins with the bytes {:02x?}",
            message.get(..8).unwrap_or(message)
        ),
    };
    Err(Refusal::NotThrift(text))
}
