//! Answers over HTTP, within the memory for calls.
//!
//! An answer to a GET is a page, metrics or figures in JSON. It is made whole before it is sent, so
//! its memory is reserved before it is made ([`reserved`]), and kept until the HTTP library has taken
//! all of it. Operators look at a server that is short of memory, too: a few answers at a time have a
//! place ([`PLACES`]) and need no reservation, and those without either wait for a place. A client that
//! does not read a large answer loses its connection when others need its memory or its place.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::console::Site;
use crate::limits::admission::{MemoryPermit, SlowClient};
use crate::server::Server;
use crate::service::regions;

/// Memory of a page: its text as it grows, and the text that is sent. Lists are cut into pages.
const PAGE_BYTES: u64 = 512 << 10;
/// Memory of the series of one region in the metrics.
const REGION_SERIES_BYTES: u64 = 4 << 10;
/// Most answers at a time that have no reservation.
pub(crate) const PLACES: usize = 4;
/// Period at which an answer that waits for a place looks for slow clients.
const LOOK: Duration = Duration::from_millis(50);
/// Paths whose answers are a few lines: probes are answered whatever memory there is.
const SMALL: [&str; 2] = ["/healthz", "/readyz"];

/// The path whose answer has no end, and reserves piece by piece.
const ENDLESS: &str = "/changes";

/// Answers a GET with its memory reserved; other requests reserve for themselves.
pub(super) async fn reserved(State(site): State<Site>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if request.method() != Method::GET || SMALL.contains(&path) || path == ENDLESS {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<SocketAddr>().map(SocketAddr::ip);
    let closing = request.extensions().get::<Closing>().cloned();
    let mut permit = MemoryPermit::empty(site.server.admission().memory());
    let place = match Arc::clone(&site.places).try_acquire_owned() {
        Ok(place) => Some(place),
        Err(_) => place_or_memory(&site, request.uri().path(), &mut permit).await,
    };
    let (parts, body) = next.run(request).await.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(bytes) => {
            permit.set(bytes.len());
            let answer = Answer {
                _place: place,
                ..Answer::new(bytes, permit, peer, closing)
            };
            Response::from_parts(parts, Body::new(answer))
        }
        // Bodies of routes are in memory: none fails.
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// Reserves the memory of an answer, or waits for a place while slow clients are dropped.
async fn place_or_memory(site: &Site, path: &str, permit: &mut MemoryPermit) -> Option<OwnedSemaphorePermit> {
    let wanted = bytes_of(&site.server, path);
    loop {
        if permit.try_add(wanted).is_ok() {
            return None;
        }
        let place = timeout(LOOK, Arc::clone(&site.places).acquire_owned()).await;
        match place {
            // The semaphore is never closed.
            Ok(place) => return place.ok(),
            Err(_) => site.server.admission().memory().relieve(wanted),
        }
    }
}

/// Upper bound on the memory of the answer at a path.
fn bytes_of(server: &Server, path: &str) -> u64 {
    if path != "/metrics" {
        return PAGE_BYTES;
    }
    let shown = server.config().metrics.max_regions as u64;
    PAGE_BYTES + REGION_SERIES_BYTES * shown.min(regions::count(server))
}

/// Ends a connection whose client does not read a large answer while other calls need its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closing(pub(super) CancellationToken);

/// Ends the connection of a call whose fault requires that. Never returns: the end of the connection
/// drops this.
pub(crate) async fn close_without_answer(closing: Option<Closing>) -> ! {
    if let Some(Closing(closing)) = closing {
        closing.cancel();
    }
    std::future::pending().await
}

/// Ends the connection when the client is dropped, unless it goes on.
pub(super) fn watch(slow: Arc<SlowClient>, Closing(closing): Closing) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        while {
            slow.dropped().await;
            slow.is_reprieved(0)
        } {}
        closing.cancel();
    }))
}

/// An answer and its reservation, kept until the HTTP library has taken all of it.
pub(crate) struct Answer {
    bytes: Bytes,
    permit: MemoryPermit,
    /// Registered while the answer is large.
    slow: Option<Arc<SlowClient>>,
    /// Ends the connection when the client is dropped.
    watch: Option<AbortOnDropHandle<()>>,
    /// Held by an answer without a reservation.
    _place: Option<OwnedSemaphorePermit>,
}

/// Most bytes of an answer that the library takes at a time. Each piece taken counts as the
/// client's progress.
const PIECE_BYTES: usize = 64 << 10;

impl Answer {
    pub(crate) fn new(
        bytes: Bytes,
        permit: MemoryPermit,
        peer: Option<IpAddr>,
        closing: Option<Closing>,
    ) -> Self {
        let mut answer = Self {
            bytes,
            slow: None,
            watch: None,
            _place: None,
            permit,
        };
        if let Some(Closing(closing)) = closing.filter(|_| answer.permit.has_bytes()) {
            let slow = Arc::new(answer.permit.memory().slow_client(peer, answer.permit.bytes()));
            answer.slow = Some(Arc::clone(&slow));
            answer.watch = Some(watch(slow, Closing(closing)));
        }
        answer
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let bytes = self.bytes.len().min(PIECE_BYTES);
        let mut piece = self.bytes.split_to(bytes);
        if self.permit.has_bytes() {
            // A slice would keep the whole answer alive in the library after its reservation has
            // been released.
            piece = Bytes::copy_from_slice(&piece);
        }
        if let Some(slow) = &self.slow {
            slow.progress(piece.len(), self.permit.bytes());
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
