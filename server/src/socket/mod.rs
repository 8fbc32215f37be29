//! The socket of a connection, in clear or under TLS, and wrapped after a login with Kerberos.
//!
//! Protocols read and write the two halves of a [`Socket`], and do not know whether TLS is below them, or
//! wrapping ([`wrapped`]), for which the same holds as for TLS. In clear, a call is that of the TCP socket.
//! Under TLS ([`tls`]):
//!
//! - A read returns plaintext that has been decrypted already, and otherwise takes records off the
//!   TCP socket.
//! - A write encrypts some plaintext, and counts it as written when the TCP socket has accepted all
//!   its records. Until then the write would block, and the caller repeats it with the same bytes.
//!   So bytes that a protocol counts as sent have left, and a slow reader is noticed as without TLS.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

mod outgoing;
mod tls;
mod wrapped;

pub(crate) use outgoing::{http_client, with_causes};
use tls::Tls;
pub(crate) use wrapped::{Reserve, Wrapped};

/// Room for one read of discarded bytes.
const DISCARD_BYTES: usize = 16 << 10;
/// Time for a client to read the alert that ends its handshake.
const AFTER_ALERT: Duration = Duration::from_secs(2);
/// Most bytes that [`ReadHalf::unread`] looks at.
const UNREAD_MAX: usize = 64 << 10;

/// Both halves of a connection's socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) read: ReadHalf,
    pub(crate) write: WriteHalf,
}

impl Socket {
    /// A connection in clear.
    pub(crate) fn new(tcp: TcpStream) -> Self {
        let (read, write) = tcp.into_split();
        Self {
            read: ReadHalf {
                tcp: read,
                tls: None,
                wrapped: None,
            },
            write: WriteHalf {
                tcp: write,
                tls: None,
                wrapped: None,
            },
        }
    }

    /// Runs the server's side of a TLS handshake, which `received` begins, in at most `limit`. After a
    /// failure the connection is ended so that the client can read the alert.
    pub(crate) async fn accept_tls(
        mut self,
        received: &[u8],
        config: Arc<ServerConfig>,
        limit: Duration,
        stop: &CancellationToken,
    ) -> io::Result<Self> {
        let accepting = Tls::accept(&mut self.read.tcp, self.write.tcp.as_ref(), received, config);
        let Ok(accepted) = timeout(limit, accepting).await else {
            let text = format!("no end of the handshake after {limit:?}");
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        };
        match accepted {
            Ok(tls) => {
                let tls = Arc::new(tls);
                self.read.tls = Some(Arc::clone(&tls));
                self.write.tls = Some(tls);
                Ok(self)
            }
            Err(error) => {
                if self.write.shutdown().await.is_ok() {
                    self.read.discard(AFTER_ALERT, usize::MAX, stop).await;
                }
                Err(error)
            }
        }
    }

    /// Wraps all further bytes of both sides.
    pub(crate) fn wrap(&mut self, wrapped: Wrapped) {
        let wrapped = Arc::new(wrapped);
        self.read.wrap(Arc::clone(&wrapped));
        self.write.wrap(wrapped);
    }

    /// Whether the connection is encrypted by TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.read.tls.is_some()
    }

    /// The certificate that the client has shown, which was verified in the handshake.
    pub(crate) fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        self.read.tls.as_ref()?.peer_certificate()
    }

    /// The client's address and port. Fails when the client has gone.
    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.read.tcp.peer_addr()
    }

    /// Sends the last bytes of a connection and closes it so that the client can read them. Sending
    /// and waiting for the client take at most `limit` each.
    pub(crate) async fn send_and_close(mut self, last: &[u8], limit: Duration, stop: &CancellationToken) {
        self.write.send_with_end();
        // An error means that the client has gone, so the bytes have no receiver.
        let sent = timeout(limit, self.write.write_all(last)).await;
        if matches!(sent, Ok(Ok(()))) && self.write.shutdown().await.is_ok() {
            self.read.discard(limit, usize::MAX, stop).await;
        }
    }
}

/// The half that is read.
#[derive(Debug)]
pub(crate) struct ReadHalf {
    tcp: OwnedReadHalf,
    tls: Option<Arc<Tls>>,
    wrapped: Option<Arc<Wrapped>>,
}

impl ReadHalf {
    /// Unwraps all further bytes.
    pub(crate) fn wrap(&mut self, wrapped: Arc<Wrapped>) {
        self.wrapped = Some(wrapped);
    }

    /// The client's address; missing only if the client has gone already.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.tcp.peer_addr().ok().map(|address| address.ip())
    }

    /// Ready when a read is likely to return bytes, the end, or an error.
    pub(crate) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self
            .wrapped
            .as_ref()
            .is_some_and(|wrapped| wrapped.has_plaintext())
        {
            return Poll::Ready(Ok(()));
        }
        match &self.tls {
            Some(tls) if tls.has_plaintext() => Poll::Ready(Ok(())),
            _ => self.tcp.as_ref().poll_read_ready(context),
        }
    }

    /// Reads what has arrived into the room of `into`; 0 at the end.
    ///
    /// A read that does not fill its buffer has emptied the socket, so tokio waits for the next event;
    /// `try_read_buf` would need one more system call for each message to detect that.
    pub(crate) fn poll_read_buf(
        &mut self,
        context: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        let Self { tcp, tls, wrapped } = self;
        match wrapped {
            None => poll_below(tcp, tls.as_deref(), context, into),
            Some(wrapped) => {
                let most = into.capacity() - into.len();
                wrapped.poll_read(
                    context,
                    most,
                    &mut |bytes| into.put_slice(bytes),
                    |context, arrived| poll_below(tcp, tls.as_deref(), context, arrived),
                )
            }
        }
    }

    /// Reads what arrives next; 0 at the end. Cancelling it loses nothing. REQUIRES: there is room in
    /// `into`.
    pub(crate) async fn read_buf(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        poll_fn(|context| self.poll_read_buf(context, into)).await
    }

    /// Waits until the client has closed its sending half, or `pause` after bytes have arrived: behind
    /// unread bytes the end can be seen only by another look.
    pub(crate) async fn is_closed_or(&self, pause: Duration) -> bool {
        let ready = self.tcp.as_ref().ready(Interest::READABLE).await;
        let is_closed = ready.map_or(true, tokio::io::Ready::is_read_closed);
        if !is_closed {
            tokio::time::sleep(pause).await;
        }
        is_closed
    }

    /// Bytes that wait in the socket, at most [`UNREAD_MAX`]; 0 when reading would fail.
    ///
    /// The runtime learns of bytes only when it asks for events, so its own functions would say
    /// "nothing" while it is late.
    pub(crate) fn unread(&self) -> usize {
        let mut bytes = vec![MaybeUninit::uninit(); UNREAD_MAX];
        SockRef::from(self.tcp.as_ref()).peek(&mut bytes).unwrap_or(0)
    }

    /// Sends the acknowledgement of a partial message at once. A client without a buffer sends a
    /// message in pieces, and without TCP_NODELAY its system keeps each piece until the one before it
    /// is acknowledged; our system would delay that by up to 40 ms to send it with an answer.
    pub(crate) fn acknowledge(&self) {
        #[cfg(target_os = "linux")]
        if let Err(error) = SockRef::from(self.tcp.as_ref()).set_tcp_quickack(true) {
            tracing::debug!(%error, "TCP_QUICKACK");
        }
    }

    /// Drains the socket after a final reply: reads and drops up to `most` bytes until the client
    /// closes. A socket that is closed with bytes unread is reset, and a client that is still sending
    /// would see only that.
    pub(crate) async fn discard(&mut self, limit: Duration, most: usize, stop: &CancellationToken) {
        let discard = async {
            let mut discarded = BytesMut::with_capacity(DISCARD_BYTES);
            let mut left = most;
            while let Ok(count @ 1..) = self.read_buf(&mut discarded).await
                && count <= left
            {
                left -= count;
                discarded.clear();
            }
        };
        tokio::select! {
            _ = timeout(limit, discard) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Reads what has arrived at the TCP socket, or under TLS, into the room of `into`.
fn poll_below(
    tcp: &mut OwnedReadHalf,
    tls: Option<&Tls>,
    context: &mut Context<'_>,
    into: &mut BytesMut,
) -> Poll<io::Result<usize>> {
    match tls {
        None => pin!(tcp.read_buf(into)).poll(context),
        Some(tls) => {
            let most = into.capacity() - into.len();
            tls.poll_read(tcp, context, most, &mut |plaintext| {
                into.put_slice(plaintext);
            })
        }
    }
}

/// The half that is written.
#[derive(Debug)]
pub(crate) struct WriteHalf {
    tcp: OwnedWriteHalf,
    tls: Option<Arc<Tls>>,
    wrapped: Option<Arc<Wrapped>>,
}

impl WriteHalf {
    /// Wraps all further bytes. REQUIRES: the last write did not block.
    pub(crate) fn wrap(&mut self, wrapped: Arc<Wrapped>) {
        self.wrapped = Some(wrapped);
    }

    /// Writes as much as the socket accepts. After an error of kind `WouldBlock`, the next write must
    /// begin with the same bytes.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.wrapped {
            None => self.try_write_below(bytes),
            Some(wrapped) => wrapped.write(&[IoSlice::new(bytes)], |bytes| self.try_write_below(bytes)),
        }
    }

    /// Like [`Self::try_write`], for the concatenation of some buffers.
    pub(crate) fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match (&self.wrapped, &self.tls) {
            (Some(wrapped), _) => wrapped.write(pieces, |bytes| self.try_write_below(bytes)),
            (None, None) => self.tcp.try_write_vectored(pieces),
            (None, Some(tls)) => tls.try_write(self.tcp.as_ref(), pieces),
        }
    }

    fn try_write_below(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.tls {
            None => self.tcp.try_write(bytes),
            Some(tls) => tls.try_write(self.tcp.as_ref(), &[IoSlice::new(bytes)]),
        }
    }

    /// Waits until the socket is likely to accept bytes.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.tcp.writable().await
    }

    /// Sends as much of `bytes` as the socket accepts now, also if the runtime does not know yet that
    /// it does. The same rule as for [`Self::try_write`] holds when that is nothing.
    pub(crate) fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let send = |bytes: &[u8]| match &self.tls {
            None => SockRef::from(self.tcp.as_ref()).send(bytes),
            Some(tls) => tls.send_now(self.tcp.as_ref(), bytes),
        };
        let sent = match &self.wrapped {
            None => send(bytes),
            Some(wrapped) => wrapped.write(&[IoSlice::new(bytes)], send),
        };
        match sent {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            sent => sent,
        }
    }

    /// Writes all of `bytes`.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.split_at(written).1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Lets the last bytes of a connection leave together with its end. Otherwise a client that has
    /// read them could send its next call before the end arrives, and that call would be lost.
    pub(crate) fn send_with_end(&self) {
        #[cfg(target_os = "linux")]
        if let Err(error) = SockRef::from(self.tcp.as_ref()).set_tcp_cork(true) {
            tracing::debug!(%error, "TCP_CORK");
        }
    }

    /// Ends this half. Under TLS the client is told first, if the socket accepts that.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        if let Some(tls) = &self.tls {
            tls.end(self.tcp.as_ref());
        }
        self.tcp.shutdown().await
    }
}

/// For the HTTP library.
impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let ReadHalf { tcp, tls, wrapped } = &mut self.read;
        let most = into.remaining();
        let read = match (wrapped, tls) {
            (None, None) => return Pin::new(tcp).poll_read(context, into),
            (None, Some(tls)) => {
                tls.poll_read(tcp, context, most, &mut |plaintext| into.put_slice(plaintext))
            }
            (Some(wrapped), tls) => wrapped.poll_read(
                context,
                most,
                &mut |bytes| into.put_slice(bytes),
                |context, arrived| poll_below(tcp, tls.as_deref(), context, arrived),
            ),
        };
        read.map_ok(drop)
    }
}

/// For the HTTP library, which repeats a write that would block with the same bytes.
impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.write.tls.is_none() && self.write.wrapped.is_none() {
            return Pin::new(&mut self.write.tcp).poll_write_vectored(context, pieces);
        }
        loop {
            match self.write.try_write_vectored(pieces) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready!(self.write.tcp.as_ref().poll_write_ready(context))?;
                }
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing that was accepted waits here.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let WriteHalf { tcp, tls, .. } = &mut self.write;
        if let Some(tls) = tls {
            tls.end(tcp.as_ref());
        }
        Pin::new(tcp).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
