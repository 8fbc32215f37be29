//! The body of a request over HTTP, within the memory for calls and the time of a message.

use std::future::poll_fn;
use std::net::IpAddr;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};

use crate::limits::admission::{Busy, MemoryPermit, dropped};
use crate::server::Server;

/// Why a body was not received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotReceived {
    #[error("the body has more bytes than server.max_message_bytes, {0}")]
    TooLarge(usize),
    #[error("{0}")]
    Busy(#[from] Busy),
    #[error("the body was not complete after {0:?} (server.message_timeout_ms)")]
    Slow(Duration),
    #[error("the body ended too early: {0}")]
    Broken(#[from] axum::Error),
}

impl NotReceived {
    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Receives the whole body. `permit` reserves its memory.
pub(crate) async fn receive(
    request: Request,
    server: &Server,
    peer: Option<IpAddr>,
    permit: &mut MemoryPermit,
) -> Result<Bytes, NotReceived> {
    let limit = Duration::from_millis(server.config().server.message_timeout_ms);
    let received = timeout_at(Instant::now() + limit, receive_all(request, server, peer, permit)).await;
    received.map_err(|_| NotReceived::Slow(limit))?
}

/// Reads the whole body. Memory grows with the received bytes, not with the length that the request
/// claims. A body that is too large is read and dropped up to twice the limit: a client that sends
/// before it listens would otherwise not see the answer.
async fn receive_all(
    request: Request,
    server: &Server,
    peer: Option<IpAddr>,
    permit: &mut MemoryPermit,
) -> Result<Bytes, NotReceived> {
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
        return Err(NotReceived::TooLarge(limit));
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
        server.load().connections.received_bytes.add(data.len() as u64);
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
        return Err(NotReceived::TooLarge(limit));
    }
    Ok(received.freeze())
}
