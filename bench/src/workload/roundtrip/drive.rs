//! Sending messages and waiting for their replies, as fast as they come, over many connections for some time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_client::idl::wire::{MessageScanner, Protocol, Scan};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::calls::{Exchange, Kind};
use super::clients;
use crate::error::{Error, Result};
use crate::load::latency::Latencies;

/// Longest reply.
const REPLY_BYTES_MAX: usize = 256 << 20;

/// What came of driving a side once.
#[derive(Debug)]
pub(super) struct Driven {
    calls: u64,
    took: Duration,
    latencies: Latencies,
}

impl Driven {
    pub(super) fn calls_per_second(&self) -> f64 {
        self.calls as f64 / self.took.as_secs_f64()
    }

    /// Those of all rounds.
    pub(super) fn latencies(rounds: &[Driven]) -> Latencies {
        let mut all = Latencies::new();
        for round in rounds {
            all.add(&round.latencies);
        }
        all
    }
}

pub(super) async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let failed = |source| Error::NoServer {
        target: address.to_string(),
        source,
    };
    let stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

pub(super) fn broken(address: SocketAddr, error: &dyn std::fmt::Display) -> Error {
    Error::Different(format!("the connection to {address} broke: {error}"))
}

/// Sends each message once and keeps the replies. An error unless all of them are those of calls that went well.
pub(super) async fn learn(address: SocketAddr, kind: Kind, messages: Vec<Vec<u8>>) -> Result<Exchange> {
    let mut stream = connect(address).await?;
    let (mut buffer, mut replies) = (vec![0; 4096], Vec::new());
    for message in &messages {
        let sent = stream.write_all(message).await;
        sent.map_err(|error| broken(address, &error))?;
        let (length, _) = receive(&mut buffer, &mut stream, address, |_| false).await?;
        let reply = Bytes::copy_from_slice(&buffer[..length]);
        kind.check(reply.clone())?;
        replies.push(reply);
    }
    Exchange::new(kind, messages, replies)
}

/// Receives one message into `buffer`: it is whole when `is_known` says so, or its bytes do. Returns its length, and whether it is known.
async fn receive(
    buffer: &mut Vec<u8>,
    stream: &mut TcpStream,
    address: SocketAddr,
    is_known: impl Fn(&[u8]) -> bool,
) -> Result<(usize, bool)> {
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            buffer.resize(filled * 2, 0);
        }
        let read = stream.read(&mut buffer[filled..]).await;
        match read.map_err(|error| broken(address, &error))? {
            0 => return Err(broken(address, &"the server closed it")),
            count => filled += count,
        }
        if is_known(&buffer[..filled]) {
            return Ok((filled, true));
        }
        let mut scanner = MessageScanner::new(Protocol::BinaryStrict, REPLY_BYTES_MAX);
        let scanned = scanner.feed(&buffer[..filled]);
        match scanned.map_err(|error| broken(address, &error))? {
            Scan::NeedMore => {}
            Scan::Complete { len } if len == filled => return Ok((filled, false)),
            Scan::Complete { .. } => return Err(broken(address, &"more bytes than one reply arrived")),
        }
    }
}

/// Drives a side for some time with so many threads. An error if a reply is not the one that is known.
pub(super) async fn run(
    address: SocketAddr,
    exchange: &Exchange,
    connections: u16,
    threads: usize,
    time: Duration,
) -> Result<Driven> {
    let exchange = Arc::new(exchange.clone());
    let mut streams = Vec::new();
    for _ in 0..connections {
        streams.push(connect(address).await?);
    }
    let began = Instant::now();
    let outcomes = clients::run(threads, streams, move |number, stream| {
        call_until(stream, address, Arc::clone(&exchange), number, began + time)
    });
    let mut driven = Driven {
        calls: 0,
        took: time,
        latencies: Latencies::new(),
    };
    for (calls, latencies) in outcomes.await? {
        driven.calls += calls;
        driven.latencies.add(&latencies);
    }
    driven.took = began.elapsed();
    Ok(driven)
}

async fn call_until(
    mut stream: TcpStream,
    address: SocketAddr,
    exchange: Arc<Exchange>,
    number: u16,
    until: Instant,
) -> Result<(u64, Latencies)> {
    let mut latencies = Latencies::new();
    let mut replies = Replies::to(&exchange);
    let mut calls = 0;
    // Connections begin at different messages, so that they do not write one row all together.
    let mut next = (usize::from(number) * 7) % exchange.messages.len();
    let mut sent_at = Instant::now();
    while sent_at < until {
        let sent = stream.write_all(&exchange.messages[next]).await;
        sent.map_err(|error| broken(address, &error))?;
        let reply = replies.receive(&mut stream, address, &exchange, next).await?;
        let now = Instant::now();
        latencies.record(now - sent_at);
        sent_at = now;
        calls += 1;
        if reply != Reply::Known {
            return Err(Error::Different(format!(
                "{address} gave another answer than before"
            )));
        }
        next = (next + 1) % exchange.messages.len();
    }
    Ok((calls, latencies))
}

/// A reply, as [`Replies::receive`] judges it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// The one that is known, or could be.
    Known,
    /// Another one, a refusal for example.
    Other(&'a [u8]),
}

/// Receives a connection's replies into memory that is used again.
#[derive(Debug)]
pub(super) struct Replies {
    buffer: Vec<u8>,
}

impl Replies {
    /// For replies to these messages. A refusal may be longer than they are.
    pub(super) fn to(exchange: &Exchange) -> Replies {
        Replies {
            buffer: vec![0; exchange.replies[0].len() + 4096],
        }
    }

    /// Receives the reply to a message. Most come in one piece and are equal to the known ones: these are not looked into.
    pub(super) async fn receive(
        &mut self,
        stream: &mut TcpStream,
        address: SocketAddr,
        exchange: &Exchange,
        message: usize,
    ) -> Result<Reply<'_>> {
        let is_known = |reply: &[u8]| exchange.is_known(message, reply);
        let known = |reply: &[u8]| exchange.same && is_known(reply);
        let (length, known) = receive(&mut self.buffer, stream, address, known).await?;
        let reply = &self.buffer[..length];
        Ok(if known || (!exchange.same && is_known(reply)) {
            Reply::Known
        } else {
            Reply::Other(reply)
        })
    }
}

#[cfg(test)]
mod tests {
    use basalt_client::idl::wire::{BinaryWriter, MessageKind, Writer};
    use tokio::net::TcpListener;

    use super::*;

    /// A message without arguments.
    fn message() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = BinaryWriter::new(&mut bytes);
        writer.message_begin("getScannerResults", MessageKind::Reply, 0);
        writer.struct_begin();
        writer.struct_end();
        bytes
    }

    /// Replies that are shorter or longer than the known one, or of its length, are neither waited on for ever nor taken for it.
    #[tokio::test]
    async fn another_reply_is_received_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = connect(address).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let message = message();
        let mut same_length = message.clone();
        *same_length.last_mut().unwrap() = 1;
        let longer = [message.clone(), vec![0]].concat();
        let shorter = message[1..].to_vec();
        for (known, is_known) in [
            (message.clone(), true),
            (same_length, false),
            (longer, false),
            (shorter, false),
        ] {
            let exchange = Exchange::new(Kind::Get, vec![Vec::new()], vec![known.into()]).unwrap();
            let mut replies = Replies { buffer: vec![0; 4] };
            server.write_all(&message).await.unwrap();
            let reply = replies.receive(&mut stream, address, &exchange, 0).await.unwrap();
            let expected = if is_known {
                Reply::Known
            } else {
                Reply::Other(&message)
            };
            assert_eq!(reply, expected);
        }
    }
}
