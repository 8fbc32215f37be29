//! A connected socket, plain or with TLS.
//!
//! Enums and not trait objects: a plain connection has no further allocation and no dynamic call.
//! A TLS stream buffers what the socket does not take, so writers flush after each message.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::error::{CONNECTING, Error, Result};
use crate::security::{Security, alert};

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The receiving side of a [`Stream`].
#[derive(Debug)]
pub(crate) enum ReadHalf {
    Plain(OwnedReadHalf),
    Tls(tokio::io::ReadHalf<TlsStream<TcpStream>>),
}

/// The sending side of a [`Stream`].
#[derive(Debug)]
pub(crate) enum WriteHalf {
    Plain(OwnedWriteHalf),
    Tls(tokio::io::WriteHalf<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects to `target`, a `host:port`, and runs the TLS handshake. The caller bounds the time.
    pub(crate) async fn connect(target: &str, security: &Security) -> Result<Stream> {
        let failed = |source| Error::Connect {
            target: target.to_owned(),
            source,
        };
        let stream = TcpStream::connect(target).await.map_err(failed)?;
        // Calls are small and wait for their reply, so holding bytes back would only add a delay.
        stream.set_nodelay(true).map_err(failed)?;
        Ok(match &security.tls {
            None => Stream::Plain(stream),
            Some(tls) => Stream::Tls(Box::new(tls.encrypt(target, stream).await?)),
        })
    }

    /// Whether nothing has arrived and the server has not closed the connection, as far as is known
    /// locally.
    pub(crate) fn is_silent(&mut self) -> bool {
        let mut byte = [0; 1];
        match self {
            Stream::Plain(stream) => {
                let nothing = stream.try_read(&mut byte);
                matches!(nothing, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
            // A TLS 1.3 server sends session tickets, so arrived bytes alone mean nothing: they are
            // decrypted.
            Stream::Tls(stream) => {
                let mut context = Context::from_waker(Waker::noop());
                Pin::new(stream)
                    .poll_read(&mut context, &mut ReadBuf::new(&mut byte))
                    .is_pending()
            }
        }
    }

    /// Whether a secret may be sent: inside TLS, or to this machine.
    pub(crate) fn is_private(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.peer_addr().is_ok_and(|peer| is_local(peer.ip())),
            Stream::Tls(_) => true,
        }
    }

    /// The two sides for two tasks.
    pub(crate) fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Stream::Plain(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Plain(read), WriteHalf::Plain(write))
            }
            Stream::Tls(stream) => {
                let (read, write) = tokio::io::split(*stream);
                (ReadHalf::Tls(read), WriteHalf::Tls(write))
            }
        }
    }
}

fn is_local(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// The text for a connection that the server has closed. A server closes before its first answer if
/// it does not accept the client, and does not always send the cause.
pub(crate) fn closed_text(has_answered: bool) -> &'static str {
    if has_answered {
        "the server closed it"
    } else {
        "the server closed it before its first answer; its log has the cause, such as missing TLS or an unknown user"
    }
}

/// Connects within a limit.
pub(crate) async fn within<T>(
    limit: Duration,
    target: &str,
    connecting: impl Future<Output = Result<T>>,
) -> Result<T> {
    timeout(limit, connecting).await.unwrap_or_else(|_| {
        Err(Error::Timeout {
            what: CONNECTING,
            target: target.to_owned(),
            limit,
        })
    })
}

/// The error for a broken connection: the login's if the server has rejected the client's
/// certificate.
pub(crate) fn broken(target: &str, method: &'static str, source: io::Error) -> Error {
    match alert(&source) {
        Some(what) => Error::Login {
            target: target.to_owned(),
            what,
        },
        None => Error::Io {
            target: target.to_owned(),
            method,
            source,
        },
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ReadHalf::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            ReadHalf::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

/// Delegates writing to the variant's stream.
macro_rules! writes {
    ($type:ident) => {
        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $type::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
                    $type::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
                }
            }

            fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $type::Plain(stream) => Pin::new(stream).poll_flush(context),
                    $type::Tls(stream) => Pin::new(stream).poll_flush(context),
                }
            }

            fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $type::Plain(stream) => Pin::new(stream).poll_shutdown(context),
                    $type::Tls(stream) => Pin::new(stream).poll_shutdown(context),
                }
            }
        }
    };
}

writes!(Stream);
writes!(WriteHalf);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_clear_stay_on_this_machine() {
        for (ip, local) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("0.0.0.0", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_local(ip.parse().unwrap()), local, "{ip}");
        }
    }
}
