//! Sending messages and waiting for their replies, as fast as they come, over many connections for some time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::calls::{Exchange, Kind, Known, Wire};
use super::replies::{Replies, Reply, broken, different, is_refusal};
use super::tally::Calls;
use super::{clients, native, window};
use crate::error::{Error, Result};
use crate::load::latency::Latencies;

/// Result of driving a side once.
#[derive(Debug)]
pub(super) struct Driven {
    calls: Calls,
    took: Duration,
}

impl Driven {
    pub(super) fn calls_per_second(&self) -> f64 {
        self.calls.answered as f64 / self.took.as_secs_f64()
    }

    /// Calls that the server refused.
    pub(super) fn refused(&self) -> u64 {
        self.calls.refused
    }

    /// Latencies of all rounds together.
    pub(super) fn latencies(rounds: &[Driven]) -> Latencies {
        let mut all = Latencies::new();
        for round in rounds {
            all.add(&round.calls.latencies);
        }
        all
    }
}

/// Connects, and sends the bytes that begin a connection.
pub(super) async fn connect_as(address: SocketAddr, wire: Wire) -> Result<TcpStream> {
    let mut stream = connect(address).await?;
    if wire == Wire::Native {
        let sent = stream.write_all(&native::opening()).await;
        sent.map_err(|error| broken(address, &error))?;
    }
    Ok(stream)
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

/// Sends each message once and keeps the replies. An error unless all of them are those of calls that went
/// well.
pub(super) async fn learn(
    address: SocketAddr,
    wire: Wire,
    kind: Kind,
    messages: Vec<Vec<u8>>,
) -> Result<Exchange> {
    let mut stream = connect_as(address, wire).await?;
    let (mut received, mut replies) = (Replies::new(4096, wire), Vec::new());
    let mut known = Known::Equal;
    for message in &messages {
        let sent = stream.write_all(message).await;
        sent.map_err(|error| broken(address, &error))?;
        let reply = received.whole(&mut stream, address).await?;
        let reply = Bytes::copy_from_slice(reply);
        known = wire.check(kind, &reply)?;
        replies.push(reply);
    }
    match wire {
        Wire::Thrift => Exchange::new(kind, messages, replies),
        Wire::Native => Ok(Exchange::native(messages, replies, known)),
    }
}

/// How a side is driven.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    pub(super) connections: u16,
    pub(super) threads: usize,
    pub(super) time: Duration,
    /// Calls that each connection sends together, before it waits for their replies; over native RPC, calls
    /// that it keeps in flight.
    pub(super) pipeline: u16,
}

/// Drives a side. An error if a reply is neither the one that is known nor a refusal.
pub(super) async fn run(address: SocketAddr, exchange: &Exchange, drive: Drive) -> Result<Driven> {
    let exchange = Arc::new(exchange.clone());
    let mut streams = Vec::new();
    for _ in 0..drive.connections {
        streams.push(connect_as(address, exchange.wire).await?);
    }
    let began = Instant::now();
    let until = began + drive.time;
    let outcomes = clients::run(drive.threads, streams, move |number, stream| {
        let (exchange, calls) = (Arc::clone(&exchange), drive.pipeline);
        async move {
            match exchange.wire {
                Wire::Native if calls > 1 => {
                    window::call_until(stream, address, exchange, number, calls, until).await
                }
                _ => call_until(stream, address, exchange, number, calls, until).await,
            }
        }
    });
    let mut driven = Driven {
        calls: Calls::new(),
        took: drive.time,
    };
    for connection in outcomes.await? {
        driven.calls.add(&connection);
    }
    driven.took = began.elapsed();
    Ok(driven)
}

async fn call_until(
    mut stream: TcpStream,
    address: SocketAddr,
    exchange: Arc<Exchange>,
    number: u16,
    pipeline: u16,
    until: Instant,
) -> Result<Calls> {
    let mut calls = Calls::new();
    let mut replies = Replies::to(&exchange, pipeline);
    // Connections begin at different messages, so that they do not write one row all together.
    let mut next = (usize::from(number) * 7) % exchange.messages.len();
    let mut together = Vec::new();
    let mut sent_at = Instant::now();
    while sent_at < until {
        let sending = (0..usize::from(pipeline)).map(|ahead| (next + ahead) % exchange.messages.len());
        let bytes = if pipeline == 1 {
            &exchange.messages[next]
        } else {
            together.clear();
            for message in sending.clone() {
                together.extend_from_slice(&exchange.messages[message]);
            }
            &together
        };
        let sent = stream.write_all(bytes).await;
        sent.map_err(|error| broken(address, &error))?;
        let mut now = sent_at;
        for message in sending {
            let reply = replies.receive(&mut stream, address, &exchange, message).await?;
            now = Instant::now();
            match reply {
                Reply::Known => {
                    calls.answered += 1;
                    calls.latencies.record(now - sent_at);
                }
                Reply::Other(reply) if is_refusal(reply) => calls.refused += 1,
                Reply::Other(reply) => return Err(different(address, reply)),
            }
        }
        sent_at = now;
        next = (next + usize::from(pipeline)) % exchange.messages.len();
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use basalt_idl::wire::{BinaryWriter, MessageKind, Writer};
    use tokio::net::TcpListener;

    use super::*;
    use crate::workload::roundtrip::echo::{self, Style};

    /// A message without arguments.
    fn message() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = BinaryWriter::new(&mut bytes);
        writer.message_begin("getScannerResults", MessageKind::Reply, 0);
        writer.struct_begin();
        writer.struct_end();
        bytes
    }

    /// Replies that are shorter or longer than the known one, or of its length, are neither waited on for
    /// ever nor taken for it.
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
            let mut replies = Replies::new(4, Wire::Thrift);
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

    /// Goal: replies that arrive together, or in pieces, are separated, whatever room there is.
    /// Method: three replies, of which the second is none of the known ones, cut at every place.
    #[tokio::test]
    async fn replies_of_calls_that_were_sent_together_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = connect(address).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut refusal = Vec::new();
        let mut writer = BinaryWriter::new(&mut refusal);
        writer.message_begin("refused", MessageKind::Exception, 0);
        writer.struct_begin();
        writer.struct_end();
        let known = Bytes::from(message());
        let sent = [&known[..], &refusal, &known].concat();
        for room in [4, 4096] {
            for cut in 0..sent.len() {
                let exchange = Exchange::new(Kind::Get, vec![Vec::new(); 3], vec![known.clone(); 3]).unwrap();
                let mut replies = Replies::new(room, Wire::Thrift);
                server.write_all(&sent[..cut]).await.unwrap();
                let mut seen = Vec::new();
                let receive = async {
                    for message in 0..3 {
                        let reply = replies
                            .receive(&mut stream, address, &exchange, message)
                            .await
                            .unwrap();
                        seen.push(match reply {
                            Reply::Known => known.to_vec(),
                            Reply::Other(reply) => reply.to_vec(),
                        });
                    }
                };
                let rest = async { server.write_all(&sent[cut..]).await.unwrap() };
                tokio::join!(receive, rest);
                assert_eq!(
                    seen,
                    [known.to_vec(), refusal.clone(), known.to_vec()],
                    "cut at {cut}"
                );
            }
        }
    }

    /// Goal: calls that are sent together are all answered and counted. Method: an echo that answers each
    /// call, and how many it had.
    #[tokio::test]
    async fn a_pipeline_counts_every_call() {
        let messages: Vec<Vec<u8>> = (0..7_u8).map(|number| vec![number; 10]).collect();
        // The longer replies come in pieces, and are no messages.
        for (pipeline, reply_bytes) in [(1, 20), (3, 20), (16, 20), (1, 300_000), (3, 300_000)] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let serving = tokio::spawn(echo::answer(Style::Tokio, listener, 10, reply_bytes));
            let replies = vec![Bytes::from(vec![0; reply_bytes]); messages.len()];
            let exchange = Exchange::new(Kind::Get, messages.clone(), replies).unwrap();
            let drive = Drive {
                connections: 3,
                threads: 2,
                time: Duration::from_millis(20),
                pipeline,
            };
            let driven = run(address, &exchange, drive).await.unwrap();
            let calls = &driven.calls;
            assert!(calls.answered >= 3 * u64::from(pipeline));
            assert_eq!(calls.answered % u64::from(pipeline), 0);
            assert_eq!(calls.latencies.report().count, calls.answered);
            serving.abort();
        }
    }
}
