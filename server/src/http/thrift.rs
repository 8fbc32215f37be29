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

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use basalt_idl::dispatch::Service;
use basalt_idl::wire::{Detected, Protocol, detect};
use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};

use super::answer::{Answer, Closing};
use crate::console::Site;
use crate::limits::admission::{Busy, MemoryPermit, dropped};
use crate::security::{Caller, Owner};
use crate::server::Server;
use crate::service::Sender;
use crate::thrift::Client;

/// The content type of messages of Thrift's libraries.
const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-thrift");

/// Why a request is not a call that can be answered in Thrift.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the request comes from a web page (it has the header Origin), and web pages may not call")]
    WebPage,
    #[error("the request has the header doAs, but acting for another user is not supported")]
    DoAs,
    #[error("the body has more bytes than server.max_message_bytes, {0}")]
    TooLarge(usize),
    #[error("{0}")]
    Busy(#[from] Busy),
    #[error("the body was not complete after {0:?} (server.message_timeout_ms)")]
    Slow(Duration),
    #[error("the body ended too early: {0}")]
    Broken(#[from] axum::Error),
    #[error("the body is no Thrift message: {0}")]
    NotThrift(String),
    #[error("the server is stopping")]
    Stopping,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::WebPage | Self::DoAs => StatusCode::FORBIDDEN,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) | Self::NotThrift(_) => StatusCode::BAD_REQUEST,
            Self::Busy(_) | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, format!("{self}\n")).into_response()
    }
}

/// A call of either service of HBase's, or ours.
pub(super) async fn either(State(site): State<Site>, request: Request) -> Response {
    respond(site, None, request).await
}

/// A call of Thrift 1's service, or ours.
pub(super) async fn thrift1(State(site): State<Site>, request: Request) -> Response {
    respond(site, Some(Service::Thrift1), request).await
}

/// A call of Thrift 2's service, or ours.
pub(super) async fn thrift2(State(site): State<Site>, request: Request) -> Response {
    respond(site, Some(Service::Thrift2), request).await
}

async fn respond(site: Site, service: Option<Service>, request: Request) -> Response {
    let server = Arc::clone(&site.server);
    let connections = server.connections();
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
    let config = &site.server.config().server;
    let limit = Duration::from_millis(config.message_timeout_ms);
    let peer = request.extensions().get::<SocketAddr>().copied();
    let caller = request.extensions().get::<Arc<Caller>>().cloned();
    let peer_ip = peer.map(|peer| peer.ip());
    let closing = request.extensions().get::<Closing>().cloned();
    let mut permit = MemoryPermit::empty(site.server.admission().memory());
    let received = timeout_at(
        Instant::now() + limit,
        receive(request, &site.server, peer_ip, &mut permit),
    )
    .await;
    let message = received.map_err(|_| Refusal::Slow(limit))??;
    let protocol = protocol_of(&message)?;
    let server = Arc::clone(&site.server);
    let caller = caller.unwrap_or_else(|| Caller::anonymous(Owner::Http, peer));
    let sender = Sender::new(caller, site.server.admission().memory());
    let told = Told(Arc::clone(&sender.gone));
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

/// Ends the connection of a call whose fault requires that. Never returns: the end of the connection
/// drops this.
async fn close_without_answer(closing: Option<Closing>) -> ! {
    if let Some(Closing(closing)) = closing {
        closing.cancel();
    }
    std::future::pending().await
}

/// Notifies a call that its client has gone.
struct Told(Arc<AtomicBool>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
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

/// Reads the whole body. Memory grows with the received bytes, not with the length that the request
/// claims. A body that is too large is read and dropped up to twice the limit: a client that sends
/// before it listens would otherwise not see the answer.
async fn receive(
    request: Request,
    server: &Server,
    peer: Option<IpAddr>,
    permit: &mut MemoryPermit,
) -> Result<Bytes, Refusal> {
    let limit = server.config().server.max_message_bytes;
    let listens_first = request.headers().contains_key(header::EXPECT);
    let most = if listens_first {
        limit
    } else {
        limit.saturating_mul(2)
    };
    let mut body = request.into_body();
    let claimed = body.size_hint().lower();
    if claimed > most as u64 {
        return Err(Refusal::TooLarge(limit));
    }
    let mut received = BytesMut::new();
    let mut slow = None;
    let mut total = 0;
    loop {
        let frame = tokio::select! {
            biased;
            frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)) => frame,
            () = dropped(slow.as_ref()) => {
                if slow.as_ref().is_some_and(|slow| slow.is_reprieved(0)) {
                    continue;
                }
                return Err(server.admission().memory().slow_busy().into());
            }
        };
        let Some(frame) = frame else { break };
        // Frames without data are trailers, which mean nothing here.
        let Ok(data) = frame?.into_data() else { continue };
        server.connections().received_bytes.add(data.len() as u64);
        let is_all = total == 0 && data.len() as u64 == claimed;
        total += data.len();
        if total > most {
            break;
        } else if total > limit {
            received = BytesMut::new();
            permit.set(0);
            slow = None;
        } else if is_all {
            return Ok(data);
        } else {
            let memory = server.admission().memory();
            if received.capacity() - received.len() < data.len() {
                let (before, whole) = (received.capacity(), claimed as usize);
                let wanted = (before * 2).max(total);
                let wanted = if whole >= total { wanted.min(whole) } else { wanted };
                if !permit.try_raise(before + wanted) {
                    // The client is not slow while the server waits for memory.
                    slow = None;
                    permit
                        .raise(before + wanted)
                        .await
                        .inspect_err(|busy| server.admission().count(*busy))?;
                }
                let mut larger = BytesMut::with_capacity(wanted);
                larger.extend_from_slice(&received);
                received = larger;
                permit.set(received.capacity());
            }
            received.extend_from_slice(&data);
            if permit.has_bytes() {
                slow.get_or_insert_with(|| memory.slow_client(peer, permit.bytes()))
                    .progress(data.len(), permit.bytes());
            }
        }
    }
    if total > limit {
        return Err(Refusal::TooLarge(limit));
    }
    Ok(received.freeze())
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
