//! One connection of the HTTP port: the library speaks HTTP, this module enforces the timeouts.
//!
//! The library has one time limit for the head of a request, and counts the time before it too:
//! with it, a client that keeps a connection for its next call would be cut off like one that sends
//! its head byte by byte. So the socket records its state ([`Seen`]), and a watch beside the
//! library ends the connection when one of these has lasted too long:
//!
//! 1. idle, nothing of a request has come: `server.idle_timeout_ms`, by default for ever;
//! 2. the head of a request has begun: `server.message_timeout_ms`;
//! 3. the client takes nothing of its answer: `server.write_timeout_ms`.
//!
//! While a request is served there is no limit here: the reader of its body has one.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Sender;
use super::answer::Closing;
use crate::config;
use crate::limits::admission::Memory;
use crate::security::Registered;
use crate::socket::Socket;
use head::Head;

mod head;

/// Largest head of a request. HBase's servlet container has the same limit.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Room for one read of a head without the library.
const HEAD_READ_BYTES: usize = 4 << 10;
/// The library's read buffer, about: memory that a connection may keep after a large body.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Why a connection ended, unless the client closed it between two requests.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("{0}")]
    Socket(io::Error),
    #[error("nothing came or went for {0:?} ({1})")]
    Silent(Duration, &'static str),
    #[error("its login has ended")]
    LoginEnded,
    #[error("the client was too slow: others needed the memory of its answer (requests.memory_bytes)")]
    Slow,
}

/// Serves a connection until either side ends it. `received` are its first bytes. Each request
/// carries the client's address and the sender.
pub(crate) async fn run(
    (socket, received): (Socket, BytesMut),
    sender: Sender,
    site: Router,
    config: &config::Server,
    memory: &Arc<Memory>,
    stop: CancellationToken,
) -> Result<(), End> {
    if !has_http_date(SystemTime::now()) {
        return refuse(socket, received, Duration::from_millis(config.message_timeout_ms)).await;
    }
    let seen = watch::Sender::new(Seen::default());
    let mut silence = std::pin::pin!(silence(seen.subscribe(), config));
    let closing = Closing::default();
    let head = Head::new(memory, sender.peer.ip(), closing.clone());
    let registered = sender.registered();
    let watched = Watched {
        socket,
        received,
        seen: seen.clone(),
        head: head.clone(),
    };
    let site = TowerToHyperService::new(site);
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(sender.peer);
        request.extensions_mut().insert(sender.clone());
        request.extensions_mut().insert(closing.clone());
        note(&seen, |seen| seen.serving = true);
        head.is_complete();
        let answer = site.call(request.map(Body::new));
        let serving = Serving(seen.clone());
        async move {
            let answer: Result<_, Infallible> = answer.await;
            answer.map(|answer| {
                answer.map(|body| Served {
                    body,
                    _serving: serving,
                })
            })
        }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(BUFFER_BYTES_MAX)
            // HBase's own REST client compares names of headers with their case.
            .title_case_headers(true)
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(watched), service)
    );
    let mut is_stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => return Ok(ended?),
            end = silence.as_mut() => return Err(end),
            () = closing.0.cancelled() => return Err(End::Slow),
            () = ended(registered.as_ref()) => return Err(End::LoginEnded),
            () = stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Returns when the login of the connection ends; never without one.
async fn ended(registered: Option<&Registered>) {
    match registered {
        Some(registered) => registered.ended.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Whether the date can be written in HTTP: from 1970 to the end of 9999 (RFC 9110, 5.6.7). The
/// HTTP library panics at other dates.
fn has_http_date(now: SystemTime) -> bool {
    const YEAR_10000: Duration = Duration::from_hours(70_389_528);
    now.duration_since(SystemTime::UNIX_EPOCH)
        .is_ok_and(|since| since < YEAR_10000)
}

/// Refuses one request without the HTTP library, which panics at the machine's date.
async fn refuse(mut socket: Socket, mut head: BytesMut, limit: Duration) -> Result<(), End> {
    const REASON: &str =
        "the clock of this machine is before 1970 or after 9999, and HTTP has no such dates: set the clock\n";
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{REASON}",
        REASON.len()
    );
    // Read the head first: closing a socket with unread bytes resets it, and the client would lose
    // the answer.
    let talk = async {
        while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
            head.reserve(HEAD_READ_BYTES);
            if socket.read.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        socket.write.write_all(answer.as_bytes()).await?;
        socket.write.shutdown().await
    };
    match timeout(limit, talk).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(End::Socket(error)),
        Err(_) => Err(End::Silent(limit, "server.message_timeout_ms")),
    }
}

/// State of the current request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Some of its head has come.
    head: bool,
    /// It is being served.
    serving: bool,
    /// The socket takes no more of an answer.
    stalled: bool,
}

/// Ends the state of a served request when it is dropped, with the body of its answer: that may come in
/// pieces which take time to make.
struct Serving(watch::Sender<Seen>);

impl Drop for Serving {
    fn drop(&mut self) {
        note(&self.0, |seen| {
            *seen = Seen {
                stalled: seen.stalled,
                ..Seen::default()
            }
        });
    }
}

/// The body of an answer, which is served until all of it was taken.
struct Served {
    body: Body,
    _serving: Serving,
}

impl HttpBody for Served {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn note(seen: &watch::Sender<Seen>, change: impl FnOnce(&mut Seen)) {
    seen.send_if_modified(|seen| {
        let before = *seen;
        change(seen);
        *seen != before
    });
}

/// Returns when the state has not changed for too long.
async fn silence(mut seen: watch::Receiver<Seen>, config: &config::Server) -> End {
    loop {
        let limit = match *seen.borrow_and_update() {
            Seen { stalled: true, .. } => Some((config.write_timeout_ms, "server.write_timeout_ms")),
            Seen { serving: true, .. } => None,
            Seen { head: true, .. } => Some((config.message_timeout_ms, "server.message_timeout_ms")),
            _ if config.idle_timeout_ms == 0 => None,
            _ => Some((config.idle_timeout_ms, "server.idle_timeout_ms")),
        };
        let Some((limit_ms, setting)) = limit else {
            // Fails only when the connection is gone, and this with it.
            let _ = seen.changed().await;
            continue;
        };
        let limit = Duration::from_millis(limit_ms);
        if tokio::time::timeout(limit, seen.changed()).await.is_err() {
            return End::Silent(limit, setting);
        }
    }
}

/// A socket that records its state.
struct Watched {
    socket: Socket,
    /// Bytes that were received before.
    received: BytesMut,
    seen: watch::Sender<Seen>,
    head: Head,
}

impl Watched {
    fn written<T>(&self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        note(&self.seen, |seen| seen.stalled = outcome.is_pending());
        outcome
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let outcome = if self.received.is_empty() {
            Pin::new(&mut self.socket).poll_read(cx, into)
        } else {
            let count = self.received.len().min(into.remaining());
            into.put_slice(&self.received.split_to(count));
            Poll::Ready(Ok(()))
        };
        let arrived = into.filled().len() - before;
        if arrived > 0 {
            note(&self.seen, |seen| seen.head |= !seen.serving);
            if !self.seen.borrow().serving {
                self.head.arrived(arrived).map_err(io::Error::other)?;
            }
        }
        outcome
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.written(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write_vectored(cx, pieces);
        self.written(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
