//! Answers: status, headers and a body that is whole or comes in chunks.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use basalt_rest::media::Media;
use bytes::Bytes;

use super::body::Packer;
use super::faults::Refusal;
use super::request::{Request, Result};
use super::stream::Chunks;
use crate::http::Answer;
use crate::limits::admission::MemoryPermit;

/// Seconds after which a client should try again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");
/// A whole body above this is packed where that may take a moment.
const INLINE_PACK_BYTES: usize = 64 << 10;

/// Answer of a handler.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Content,
    /// Whether caches may keep it.
    pub(super) is_cached: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Content {
    Whole(Vec<u8>),
    Chunks(Box<Chunks>),
}

impl Reply {
    /// An answer without a body.
    pub(super) fn empty(status: StatusCode) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: Content::Whole(Vec::new()),
            is_cached: false,
        }
    }

    /// A body of that type.
    pub(super) fn of(media: Media, body: Vec<u8>) -> Self {
        Self::empty(StatusCode::OK).with_body(media, Content::Whole(body))
    }

    pub(super) fn with_body(mut self, media: Media, body: Content) -> Self {
        self.headers
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(media.name()));
        self.body = body;
        self
    }

    /// Something that was created at an address.
    pub(super) fn created(location: &str) -> Result<Self> {
        Self::empty(StatusCode::CREATED).with(header::LOCATION, location.as_bytes())
    }

    /// Adds a header.
    pub(super) fn with(mut self, name: HeaderName, value: &[u8]) -> Result<Self> {
        let value = HeaderValue::from_bytes(value).map_err(|_| {
            Refusal::malformed(format!(
                "the header {name} of the answer would have bytes that no header has"
            ))
        })?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Says that the answer has no header Cache-Control, as HBase's answers with cells.
    pub(super) fn cached(mut self) -> Self {
        self.is_cached = true;
        self
    }
}

/// The answer to a request that is refused.
pub(super) fn refused(refusal: &Refusal) -> Reply {
    let mut reply = Reply::empty(refusal.status);
    if refusal.status != StatusCode::NOT_MODIFIED {
        let text = format!("{}\n", refusal.text).into_bytes();
        reply = reply.with_body(Media::Text, Content::Whole(text));
    }
    if refusal.can_retry {
        reply.headers.insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    reply
}

/// Turns an answer into one of HTTP.
pub(super) async fn render(mut request: Request, mut reply: Reply) -> Response {
    if !reply.is_cached {
        reply
            .headers
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    let xss = HeaderName::from_static("x-xss-protection");
    reply
        .headers
        .insert(xss, HeaderValue::from_static("1; mode=block"));
    reply
        .headers
        .append(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    let packs = request.accepts_gzip();
    let body = match reply.body {
        Content::Whole(bytes) if bytes.is_empty() => Body::empty(),
        Content::Whole(bytes) => {
            let mut permit = (request.kept.reply.take())
                .unwrap_or_else(|| MemoryPermit::empty(request.gateway.server.admission().memory()));
            let bytes = if packs {
                reply
                    .headers
                    .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                match pack(bytes).await {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        return (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response();
                    }
                }
            } else {
                bytes
            };
            permit.set(bytes.capacity());
            let peer = request.sender.caller.ip();
            Body::new(Answer::new(
                Bytes::from(bytes),
                permit,
                peer,
                request.closing.take(),
            ))
        }
        Content::Chunks(mut chunks) => {
            if packs {
                reply
                    .headers
                    .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                chunks.pack();
            }
            Body::new(*chunks)
        }
    };
    (reply.status, reply.headers, body).into_response()
}

/// Packs a whole body, a large one on a thread that may be held.
async fn pack(plain: Vec<u8>) -> std::io::Result<Vec<u8>> {
    let length = plain.len();
    let work = move || {
        let mut packer = Packer::new();
        let mut packed = packer.piece(&plain)?;
        packed.extend(packer.finish()?);
        Ok(packed)
    };
    if length <= INLINE_PACK_BYTES {
        return work();
    }
    tokio::task::spawn_blocking(work)
        .await
        .map_err(std::io::Error::other)?
}
