//! Sending messages and waiting for their replies, as fast as they come, over many connections for some time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_client::idl::wire::{MessageScanner, Protocol, Scan};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::calls::{Exchange, Kind};
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
    let mut replies = Vec::new();
    for message in &messages {
        let sent = stream.write_all(message).await;
        sent.map_err(|error| broken(address, &error))?;
        let reply = receive(&mut stream, address).await?;
        kind.check(reply.clone())?;
        replies.push(reply);
    }
    Exchange::new(kind, messages, replies)
}

/// Receives one message, whose length only its bytes tell.
pub(super) async fn receive(stream: &mut TcpStream, address: SocketAddr) -> Result<Bytes> {
    let mut received = BytesMut::new();
    let mut scanner = MessageScanner::new(Protocol::BinaryStrict, REPLY_BYTES_MAX);
    loop {
        let read = stream.read_buf(&mut received).await;
        if read.map_err(|error| broken(address, &error))? == 0 {
            return Err(broken(address, &"the server closed it"));
        }
        match scanner.feed(&received).map_err(|error| broken(address, &error))? {
            Scan::NeedMore => {}
            Scan::Complete { len } if len == received.len() => return Ok(received.freeze()),
            Scan::Complete { .. } => return Err(broken(address, &"more bytes than one reply arrived")),
        }
    }
}

/// Drives a side for some time. An error if a reply is not the one that is known.
pub(super) async fn run(
    address: SocketAddr,
    exchange: &Exchange,
    connections: u16,
    time: Duration,
) -> Result<Driven> {
    let exchange = Arc::new(exchange.clone());
    let mut streams = Vec::new();
    for _ in 0..connections {
        streams.push(connect(address).await?);
    }
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for (number, stream) in streams.into_iter().enumerate() {
        tasks.spawn(call_until(
            stream,
            address,
            Arc::clone(&exchange),
            number,
            began + time,
        ));
    }
    let mut driven = Driven {
        calls: 0,
        took: time,
        latencies: Latencies::new(),
    };
    while let Some(joined) = tasks.join_next().await {
        let (calls, latencies) = joined.map_err(|error| broken(address, &error))??;
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
    number: usize,
    until: Instant,
) -> Result<(u64, Latencies)> {
    let mut latencies = Latencies::new();
    let mut reply = vec![0; exchange.replies[0].len()];
    let mut calls = 0;
    // Connections begin at different messages, so that they do not write one row all together.
    let mut next = (number * 7) % exchange.messages.len();
    let mut sent_at = Instant::now();
    while sent_at < until {
        let sent = stream.write_all(&exchange.messages[next]).await;
        sent.map_err(|error| broken(address, &error))?;
        let whole = receive_into(&mut reply, &mut stream, address).await?;
        let now = Instant::now();
        latencies.record(now - sent_at);
        sent_at = now;
        calls += 1;
        if !whole || !exchange.is_known(next, &reply) {
            return Err(Error::Different(format!(
                "{address} gave another answer than before"
            )));
        }
        next = (next + 1) % exchange.messages.len();
    }
    Ok((calls, latencies))
}

/// Receives a reply of this length. `false`: what came is a shorter one, a refusal for example.
async fn receive_into(reply: &mut [u8], stream: &mut TcpStream, address: SocketAddr) -> Result<bool> {
    let mut filled = 0;
    while filled < reply.len() {
        let read = stream.read(&mut reply[filled..]).await;
        match read.map_err(|error| broken(address, &error))? {
            0 => return Err(broken(address, &"the server closed it")),
            count => filled += count,
        }
        // Most replies come in one piece, which is not looked into.
        let mut scanner = MessageScanner::new(Protocol::BinaryStrict, REPLY_BYTES_MAX);
        if filled < reply.len() && matches!(scanner.feed(&reply[..filled]), Ok(Scan::Complete { .. })) {
            return Ok(false);
        }
    }
    Ok(true)
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

    /// A reply that is shorter than the known one is not waited on for ever.
    #[tokio::test]
    async fn a_shorter_reply_is_another_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = connect(address).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let message = message();
        for (known, whole) in [(message.len(), true), (message.len() + 1, false)] {
            server.write_all(&message).await.unwrap();
            let mut reply = vec![0; known];
            assert_eq!(
                receive_into(&mut reply, &mut stream, address).await.unwrap(),
                whole
            );
            assert_eq!(reply[..message.len()], message);
        }
    }
}
