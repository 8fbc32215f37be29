//! The bare echo: reads as many bytes as a call has, answers with as many zeros as a reply has. It knows no
//! message.
//!
//! It runs in a process of its own, as a server does: the tool starts itself again with a hidden option.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::error::{Error, Result};

/// How the echo serves its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Style {
    /// A thread for each.
    Threads,
    /// Tasks on tokio's threads, as Basalt has them.
    Tokio,
}

impl Style {
    fn name(self) -> &'static str {
        match self {
            Style::Threads => "threads",
            Style::Tokio => "tokio",
        }
    }
}

/// A running echo. Killed when dropped.
#[derive(Debug)]
pub(super) struct Echo {
    child: Child,
    pub(super) address: SocketAddr,
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Usage(format!("the echo {what}: {error}"))
}

impl Echo {
    /// Starts one for calls of `call_bytes` and replies of `reply_bytes`.
    pub(super) fn start(style: Style, call_bytes: usize, reply_bytes: usize) -> Result<Echo> {
        let program = std::env::current_exe().map_err(|error| failed("is not found", &error))?;
        let mut child = Command::new(program)
            .args(["roundtrip", "--echo", style.name(), "--serve-echo"])
            .args([call_bytes.to_string(), reply_bytes.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed("does not start", &error))?;
        let mut line = String::new();
        let read = match child.stdout.take() {
            Some(stdout) => BufReader::new(stdout).read_line(&mut line),
            None => Ok(0),
        };
        let address = read.map_err(|error| failed("does not say its address", &error));
        let address = address.and_then(|_| {
            line.trim()
                .parse()
                .map_err(|error| failed("does not say its address", &error))
        });
        match address {
            Ok(address) => Ok(Echo { child, address }),
            Err(error) => {
                stop(&mut child);
                Err(error)
            }
        }
    }
}

fn stop(child: &mut Child) {
    // It may be gone already; either way there is nothing left to stop.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Echo {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// Serves until the process is killed.
pub(super) async fn serve(style: Style, call_bytes: usize, reply_bytes: usize) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed("cannot listen", &error))?;
    let address = listener
        .local_addr()
        .map_err(|error| failed("has no address", &error))?;
    say!("{address}");
    answer(style, listener, call_bytes, reply_bytes).await
}

/// Serves the connections of a listener.
pub(super) async fn answer(
    style: Style,
    listener: TcpListener,
    call_bytes: usize,
    reply_bytes: usize,
) -> Result<()> {
    let accepting = |error| failed("cannot accept a connection", &error);
    let calls = move || Calls::new(call_bytes, reply_bytes);
    match style {
        // Nothing else runs in the echo's process, so waiting here delays nothing.
        Style::Threads => loop {
            let (stream, _) = listener.accept().map_err(accepting)?;
            // It ends with its connection.
            std::thread::spawn(move || echo(stream, calls()));
        },
        Style::Tokio => {
            listener.set_nonblocking(true).map_err(accepting)?;
            let listener = tokio::net::TcpListener::from_std(listener).map_err(accepting)?;
            loop {
                let (stream, _) = listener.accept().await.map_err(accepting)?;
                tokio::spawn(echo_async(stream, calls()));
            }
        }
    }
}

/// Received and unanswered calls of a connection of the echo. Calls that arrive together are
/// answered together.
struct Calls {
    buffer: Vec<u8>,
    filled: usize,
    call_bytes: usize,
    /// As many replies as may be sent together.
    replies: Vec<u8>,
    reply_bytes: usize,
}

/// Room of a connection, for calls and for replies, unless one is larger.
const ROOM_BYTES: usize = 64 << 10;

impl Calls {
    fn new(call_bytes: usize, reply_bytes: usize) -> Calls {
        let (call_bytes, reply_bytes) = (call_bytes.max(1), reply_bytes.max(1));
        let replies = (ROOM_BYTES / reply_bytes).max(1);
        Calls {
            buffer: vec![0; call_bytes.max(ROOM_BYTES)],
            filled: 0,
            call_bytes,
            replies: vec![0; replies * reply_bytes],
            reply_bytes,
        }
    }

    /// Where the next bytes go.
    fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Counts received bytes. Returns and removes the number of whole calls.
    fn received(&mut self, count: usize) -> usize {
        self.filled += count;
        let calls = self.filled / self.call_bytes;
        self.buffer.copy_within(calls * self.call_bytes..self.filled, 0);
        self.filled -= calls * self.call_bytes;
        calls
    }

    /// The bytes that answer `calls` calls, in pieces.
    fn answers(&self, mut calls: usize) -> impl Iterator<Item = &[u8]> {
        let most = self.replies.len() / self.reply_bytes;
        std::iter::from_fn(move || {
            let together = calls.min(most);
            calls -= together;
            (together > 0).then(|| &self.replies[..together * self.reply_bytes])
        })
    }
}

fn echo(mut stream: TcpStream, mut calls: Calls) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let count = stream.read(calls.space())?;
        if count == 0 {
            return Ok(());
        }
        let whole = calls.received(count);
        for answers in calls.answers(whole) {
            stream.write_all(answers)?;
        }
    }
}

async fn echo_async(mut stream: tokio::net::TcpStream, mut calls: Calls) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let count = stream.read(calls.space()).await?;
        if count == 0 {
            return Ok(());
        }
        let whole = calls.received(count);
        for answers in calls.answers(whole) {
            stream.write_all(answers).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every call is answered once, however calls are cut. Method: calls in pieces of every size.
    #[test]
    fn calls_in_pieces_are_counted() {
        for (call_bytes, reply_bytes) in [(1, 1), (65, 198), (100_000, 3), (10, 100_000)] {
            for piece in [1, 7, 64, 65, 66, 1_000, ROOM_BYTES] {
                let mut calls = Calls::new(call_bytes, reply_bytes);
                let (mut left, mut answered) = (call_bytes * 20, 0);
                while left > 0 {
                    let count = piece.min(left).min(calls.space().len());
                    left -= count;
                    let whole = calls.received(count);
                    answered += calls.answers(whole).map(<[u8]>::len).sum::<usize>();
                }
                assert_eq!(answered, 20 * reply_bytes, "{call_bytes} {piece}");
                assert_eq!(calls.filled, 0);
            }
        }
    }
}
