//! TLS on a socket that is read and written by halves.
//!
//! The state of a connection is behind one lock, which both halves take for the time of a read or
//! write of what is there; none waits under it.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, BufRead as _, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};
use socket2::SockRef;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

/// Most plaintext that one write encrypts: four records. Its ciphertext stays in memory until the
/// socket has accepted it.
const WRITE_BYTES: usize = 64 << 10;

/// Most bytes of a client's side of a handshake. Its largest part is a chain of certificates, which is in
/// memory until it is whole.
const HANDSHAKE_BYTES_MAX: usize = 16 << 10;

/// The TLS state of a connection after its handshake.
pub(super) struct Tls(Mutex<State>);

struct State {
    connection: ServerConnection,
    /// Plaintext that was encrypted and whose records have not all left.
    unsent: usize,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Runs the server's side of a handshake, whose first bytes from the client are `received`.
    pub(super) async fn accept(
        read: &mut OwnedReadHalf,
        write: &TcpStream,
        mut received: &[u8],
        config: Arc<ServerConfig>,
    ) -> io::Result<Self> {
        let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut bytes = received.len();
        // Writes keep to WRITE_BYTES by themselves.
        connection.set_buffer_limit(None);
        while !received.is_empty() {
            connection.read_tls(&mut received)?;
            process(&mut connection, write)?;
        }
        loop {
            while let Err(error) = flush(&mut connection, &mut Sink::Ready(write)) {
                if error.kind() != ErrorKind::WouldBlock {
                    return Err(error);
                }
                write.writable().await?;
            }
            if !connection.is_handshaking() {
                break;
            }
            let count = poll_fn(|context| poll_records(&mut connection, read, context)).await?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            bytes += count;
            if bytes > HANDSHAKE_BYTES_MAX {
                let text = format!(
                    "the client has sent {bytes} bytes without ending it; the limit is {HANDSHAKE_BYTES_MAX}: send \
                     fewer or smaller certificates"
                );
                return Err(io::Error::new(ErrorKind::InvalidData, text));
            }
            process(&mut connection, write)?;
        }
        Ok(Self(Mutex::new(State {
            connection,
            unsent: 0,
        })))
    }

    /// The verified certificate of the client.
    pub(super) fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        let state = self.0.lock();
        let certificates = state.connection.peer_certificates()?;
        certificates
            .first()
            .map(|certificate| certificate.clone().into_owned())
    }

    /// Whether a read would return decrypted bytes, or the end, without the TCP socket.
    pub(super) fn has_plaintext(&self) -> bool {
        let mut state = self.0.lock();
        let mut reader = state.connection.reader();
        !matches!(reader.fill_buf(), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Reads up to `most` bytes of plaintext, and passes them to `put`; 0 at the end.
    pub(super) fn poll_read(
        &self,
        tcp: &mut OwnedReadHalf,
        context: &mut Context<'_>,
        most: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<usize>> {
        let State { connection, .. } = &mut *self.0.lock();
        loop {
            let mut reader = connection.reader();
            match reader.fill_buf() {
                Ok(plaintext) => {
                    let count = plaintext.len().min(most);
                    put(&plaintext[..count]);
                    reader.consume(count);
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The client has ended the connection without telling the TLS layer, as many do. Messages
                // have a length, so that one that was cut is noticed.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(poll_records(connection, tcp, context))?;
            process(connection, tcp.as_ref())?;
        }
    }

    /// Encrypts and writes; see the module `socket` for the rule about repeated writes.
    pub(super) fn try_write(&self, tcp: &TcpStream, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.lock().write(&mut Sink::Ready(tcp), pieces)
    }

    /// Like [`Self::try_write`], also if the runtime does not know that the socket accepts bytes.
    pub(super) fn send_now(&self, tcp: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(&mut Sink::Now(tcp), &[IoSlice::new(bytes)])
    }

    /// Tells the client that nothing follows, as far as the socket accepts that.
    pub(super) fn end(&self, tcp: &TcpStream) {
        let mut state = self.0.lock();
        state.connection.send_close_notify();
        if let Err(error) = flush(&mut state.connection, &mut Sink::Ready(tcp)) {
            tracing::debug!(%error, "the end of a TLS connection");
        }
    }
}

impl State {
    fn write(&mut self, sink: &mut Sink<'_>, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.unsent == 0 {
            for piece in pieces {
                let part = piece.len().min(WRITE_BYTES - self.unsent);
                self.connection.writer().write_all(&piece[..part])?;
                self.unsent += part;
            }
        }
        flush(&mut self.connection, sink)?;
        Ok(std::mem::take(&mut self.unsent))
    }
}

/// Sends the records that are ready.
fn flush(connection: &mut ServerConnection, sink: &mut Sink<'_>) -> io::Result<()> {
    while connection.wants_write() {
        if connection.write_tls(sink)? == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}

/// Decrypts the records that have arrived. If they are wrong, tells the client why.
fn process(connection: &mut ServerConnection, tcp: &TcpStream) -> io::Result<()> {
    connection.process_new_packets().map(drop).map_err(|error| {
        // The alert is a help for the client's user; the connection ends with or without it.
        if let Err(unsent) = flush(connection, &mut Sink::Ready(tcp)) {
            tracing::debug!(error = %unsent, "a TLS alert was not sent");
        }
        io::Error::new(ErrorKind::InvalidData, error)
    })
}

/// Takes records off the socket; 0 at its end.
fn poll_records(
    connection: &mut ServerConnection,
    tcp: &mut OwnedReadHalf,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    match connection.read_tls(&mut Source { tcp, context }) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
        read => Poll::Ready(read),
    }
}

/// The TCP socket as a source of records. Registers the task when it would block.
struct Source<'s, 'c> {
    tcp: &'s mut OwnedReadHalf,
    context: &'s mut Context<'c>,
}

impl Read for Source<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut into = ReadBuf::new(into);
        match Pin::new(&mut *self.tcp).poll_read(self.context, &mut into) {
            Poll::Ready(read) => read.map(|()| into.filled().len()),
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

/// The TCP socket as a sink of records.
enum Sink<'s> {
    /// Written if the runtime knows that it accepts bytes.
    Ready(&'s TcpStream),
    /// Written in any case.
    Now(&'s TcpStream),
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Ready(tcp) => tcp.try_write(bytes),
            Self::Now(tcp) => SockRef::from(*tcp).send(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Ready(tcp) => tcp.try_write_vectored(pieces),
            Self::Now(tcp) => SockRef::from(*tcp).send_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
