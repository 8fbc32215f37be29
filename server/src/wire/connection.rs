//! One connection: read messages, have them answered, write the answers.
//!
//! Calls of one connection run one after another, as in HBase's gateway. Answers to messages that arrived together leave
//! together. The task holds little between calls: an idle connection costs its task and two small buffers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use basalt_idl::TApplicationException;
use basalt_idl::wire::{begin_frame, end_frame};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::messages::{Garbled, Messages, Speech};
use crate::api::{Caller, Server};
use crate::sessions::ConnectionId;

/// Answers are written at the latest when they have grown to this.
const FLUSH_BYTES: usize = 256 << 10;
/// How often a connection with unread calls is looked at while one of its calls runs.
const LOOK_UP: Duration = Duration::from_millis(50);
/// An answer buffer larger than this is given back after use.
const KEEP_BYTES: usize = 64 << 10;

/// Why a connection ended, when it was not the client who closed it.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("{0}")]
    Garbled(#[from] Garbled),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("a message was not complete after {0:?} (thrift.message_timeout_ms)")]
    SlowMessage(Duration),
    #[error("no call for {0:?} (thrift.idle_timeout_ms)")]
    Idle(Duration),
    #[error("the client did not read its answer for {0:?} (thrift.write_timeout_ms)")]
    SlowReader(Duration),
    #[error("the answer of {0} bytes is larger than a frame can say")]
    AnswerTooLarge(usize),
}

/// Serves a connection until either side ends it.
pub(super) async fn run(
    server: Arc<Server>,
    mut socket: TcpStream,
    id: ConnectionId,
    stop: CancellationToken,
) -> Result<(), End> {
    let mut messages = Messages::new(&server.config().thrift);
    let mut caller = Caller::new(id).at(socket.peer_addr().ok());
    let mut answers = Vec::new();
    // When the first byte of the message in hand arrived.
    let mut message_began = None;
    loop {
        match messages.next() {
            Ok(Some((speech, message))) => {
                message_began = None;
                answer(&server, &socket, &mut caller, speech, message, &mut answers).await?;
                if answers.len() < FLUSH_BYTES {
                    continue;
                }
            }
            Ok(None) => {}
            Err(garbled) => {
                server.connections().protocol_errors.increment(1);
                farewell(&messages, &garbled, &mut answers);
                send(&server, &mut socket, &mut answers).await?;
                return Err(garbled.into());
            }
        }
        send(&server, &mut socket, &mut answers).await?;
        if messages.has_partial() {
            message_began.get_or_insert_with(Instant::now);
        }
        if stop.is_cancelled() || !receive(&server, &mut socket, &mut messages, message_began, &stop).await? {
            return Ok(());
        }
    }
}

/// Appends the answer to one message.
async fn answer(
    server: &Arc<Server>,
    socket: &TcpStream,
    caller: &mut Caller,
    speech: Speech,
    message: Bytes,
    answers: &mut Vec<u8>,
) -> Result<(), End> {
    if !speech.framed {
        call(server, socket, caller, speech, message, answers).await;
        return Ok(());
    }
    let frame = begin_frame(answers);
    call(server, socket, caller, speech, message, answers).await;
    end_frame(answers, frame).map_err(|error| End::AnswerTooLarge(error.len))
}

/// Runs a call to its end. When the client closes the connection meanwhile, the call is told, so that a long scan stops; a
/// write goes on.
async fn call(
    server: &Arc<Server>,
    socket: &TcpStream,
    caller: &mut Caller,
    speech: Speech,
    message: Bytes,
    answers: &mut Vec<u8>,
) {
    let gone = caller.gone();
    let mut call = std::pin::pin!(server.call(caller, speech.protocol, message, answers));
    tokio::select! {
        // Most calls are answered at the first poll: they never look at the socket.
        biased;
        () = &mut call => return,
        () = closed(socket) => gone.store(true, Ordering::Release),
    }
    call.await;
}

/// Returns when the client has closed its side of the connection.
async fn closed(socket: &TcpStream) {
    loop {
        match socket.ready(Interest::READABLE).await {
            Ok(ready) if !ready.is_read_closed() => {}
            _ => return,
        }
        // Further calls wait in the socket; behind them the end could be seen only by looking again.
        tokio::time::sleep(LOOK_UP).await;
    }
}

/// Reads more bytes. `false` when the client has closed the connection, or the server stops while none of a message is here.
async fn receive(
    server: &Server,
    socket: &mut TcpStream,
    messages: &mut Messages,
    message_began: Option<Instant>,
    stop: &CancellationToken,
) -> Result<bool, End> {
    let config = &server.config().thrift;
    let count = if let Some(began) = message_began {
        // The whole message has this long: a client that sends a byte now and then gets no more.
        let limit = Duration::from_millis(config.message_timeout_ms);
        match timeout_at(began + limit, socket.read_buf(messages.space())).await {
            Ok(read) => read?,
            Err(_) => return Err(End::SlowMessage(limit)),
        }
    } else {
        let limit = Duration::from_millis(config.idle_timeout_ms);
        let idle = async {
            if limit.is_zero() {
                std::future::pending::<()>().await;
            } else {
                tokio::time::sleep(limit).await;
            }
        };
        // Reading into the buffer can be dropped at any time: what was read stays in the buffer.
        tokio::select! {
            biased;
            read = socket.read_buf(messages.space()) => read?,
            () = stop.cancelled() => return Ok(false),
            () = idle => return Err(End::Idle(limit)),
        }
    };
    server.connections().received_bytes.increment(count as u64);
    Ok(count > 0)
}

/// Writes the answers and empties the buffer.
async fn send(server: &Server, socket: &mut TcpStream, answers: &mut Vec<u8>) -> Result<(), End> {
    if answers.is_empty() {
        return Ok(());
    }
    let limit = Duration::from_millis(server.config().thrift.write_timeout_ms);
    let mut left = answers.as_slice();
    while !left.is_empty() {
        // Each piece that the client takes renews its time.
        match timeout(limit, socket.write(left)).await {
            Ok(Ok(0)) => return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into()),
            Ok(written) => left = left.split_at(written?).1,
            Err(_) => return Err(End::SlowReader(limit)),
        }
    }
    server.connections().sent_bytes.increment(answers.len() as u64);
    if answers.capacity() > KEEP_BYTES {
        *answers = Vec::new();
    } else {
        answers.clear();
    }
    Ok(())
}

/// Tells the client why the connection ends, in its own protocol, as far as that can be known.
fn farewell(messages: &Messages, garbled: &Garbled, answers: &mut Vec<u8>) {
    if *garbled == Garbled::Http {
        let body = "This is the Thrift port. Metrics, health and status pages are on the HTTP port.\n";
        answers.extend_from_slice(
            format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        );
        return;
    }
    let Some(speech) = messages.speech() else { return };
    let reason = TApplicationException::new(
        basalt_idl::TApplicationExceptionType::PROTOCOL_ERROR,
        garbled.to_string(),
    );
    let partial = messages.partial();
    let frame = speech.framed.then(|| begin_frame(answers));
    let before = answers.len();
    Server::refuse(speech.protocol, partial, &reason, answers);
    // Without a refusal there is nothing to frame; and a refusal is a few hundred bytes, which a frame can hold.
    if let Some(frame) = frame
        && (answers.len() == before || end_frame(answers, frame).is_err())
    {
        answers.truncate(frame);
    }
}
