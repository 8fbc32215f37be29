//! Calls of native RPC with several in flight on each connection: a reply makes room for the next call.
//! Replies come in any order.
//!
//! A call that the server refuses, because its queue of calls is full, makes room as well and is counted
//! apart; its message is sent again when its turn comes.
//!
//! After each wait, all replies that have arrived are taken, and as many calls are sent in one write:
//! small ones copied into one buffer, others from where they are.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::calls::Exchange;
use super::native;
use super::replies::{Replies, broken, different, is_refusal};
use super::tally::Calls;
use crate::error::Result;

/// Messages of this size or more are not copied to be sent together.
const IN_PLACE_BYTES: usize = 4096;

/// The calls of one connection.
struct Window {
    address: SocketAddr,
    exchange: Arc<Exchange>,
    /// For each message, the time at which it was sent, while it is in flight.
    sent_at: Vec<Option<Instant>>,
    in_flight: u16,
    next: usize,
    calls: Calls,
}

/// Keeps `limit` calls in flight until the time is over, and waits for the last replies.
pub(super) async fn call_until(
    mut stream: TcpStream,
    address: SocketAddr,
    exchange: Arc<Exchange>,
    number: u16,
    limit: u16,
    until: Instant,
) -> Result<Calls> {
    let messages = exchange.messages.len();
    let mut replies = Replies::to(&exchange, limit);
    let (mut places, mut together) = (Vec::new(), Vec::new());
    let mut window = Window {
        address,
        sent_at: vec![None; messages],
        in_flight: 0,
        next: (usize::from(number) * 7) % messages,
        calls: Calls::new(),
        exchange,
    };
    loop {
        places.clear();
        window.fill(limit, until, &mut places);
        let sent = send(&mut stream, &window.exchange.messages, &places, &mut together).await;
        sent.map_err(|error| broken(address, &error))?;
        if window.in_flight == 0 {
            return Ok(window.calls);
        }
        loop {
            window.take(replies.whole(&mut stream, address).await?)?;
            if !replies.has_frame() {
                break;
            }
        }
    }
}

/// Sends the messages at these places. `together` is a buffer.
async fn send(
    stream: &mut TcpStream,
    messages: &[Vec<u8>],
    places: &[usize],
    together: &mut Vec<u8>,
) -> io::Result<()> {
    let chosen = places.iter().map(|place| &messages[*place][..]);
    if chosen.clone().all(|message| message.len() < IN_PLACE_BYTES) {
        together.clear();
        chosen.for_each(|message| together.extend_from_slice(message));
        return stream.write_all(together).await;
    }
    let mut slices: Vec<IoSlice<'_>> = chosen.map(IoSlice::new).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let written = stream.write_vectored(rest).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}

impl Window {
    /// Takes the places of messages until `limit` are in flight. Stops at a message that is still in flight.
    fn fill(&mut self, limit: u16, until: Instant, places: &mut Vec<usize>) {
        let now = Instant::now();
        if now >= until {
            return;
        }
        while self.in_flight < limit && self.sent_at[self.next].is_none() {
            self.sent_at[self.next] = Some(now);
            places.push(self.next);
            self.in_flight += 1;
            self.next = (self.next + 1) % self.sent_at.len();
        }
    }

    fn take(&mut self, reply: &[u8]) -> Result<()> {
        let address = self.address;
        let place = native::place_of(reply).filter(|place| *place < self.sent_at.len());
        let sent_at = place.and_then(|place| Some((place, self.sent_at[place].take()?)));
        let Some((place, sent_at)) = sent_at else {
            return Err(broken(address, &"a reply to no call"));
        };
        self.in_flight -= 1;
        if self.exchange.is_known(place, reply) {
            self.calls.answered += 1;
            self.calls.latencies.record(sent_at.elapsed());
        } else if is_refusal(reply) {
            self.calls.refused += 1;
        } else {
            return Err(different(address, reply));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use basalt_idl::native::frame::put_encoded_response;
    use basalt_idl::native::messages::{ExceptionResponse, ResponseHeader};
    use bytes::Bytes;
    use prost::Message;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::super::calls::Known;
    use super::*;

    /// Goal: replies in any order are matched to their calls, and the limit on calls in flight is kept.
    /// Method: the server waits until the limit is reached, and answers in reverse order.
    #[tokio::test]
    async fn replies_come_in_any_order() {
        const LIMIT: u16 = 4;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let messages: Vec<Vec<u8>> = (0..8_u8).map(|place| vec![0, 0, 0, 1, place]).collect();
        let reply = |place: u8| {
            let mut out = Vec::new();
            put_encoded_response(1_000 + u32::from(place), &[place], &[], &mut out);
            out
        };
        let replies = (0..8).map(|place| Bytes::from(reply(place))).collect();
        let exchange = Exchange::native(messages, replies, Known::Equal);
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut most = 0;
            let mut buffer = vec![0; 5 * usize::from(LIMIT) + 5];
            let mut arrived = 0;
            while let Ok(read) = stream.read(&mut buffer[arrived..]).await {
                arrived += read;
                most = most.max(arrived / 5);
                if read == 0 {
                    break;
                }
                let whole = arrived / 5;
                let answers: Vec<u8> = (0..whole)
                    .rev()
                    .flat_map(|call| reply(buffer[call * 5 + 4]))
                    .collect();
                buffer.copy_within(whole * 5..arrived, 0);
                arrived -= whole * 5;
                stream.write_all(&answers).await.unwrap();
            }
            most
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let until = Instant::now() + Duration::from_millis(30);
        let calls = call_until(stream, address, Arc::new(exchange), 0, LIMIT, until)
            .await
            .unwrap();
        assert!(calls.answered >= u64::from(LIMIT));
        assert_eq!(calls.latencies.report().count, calls.answered);
        assert_eq!(calls.refused, 0);
        let most = serving.await.unwrap();
        assert!((1..=usize::from(LIMIT)).contains(&most), "{most} calls in flight");
    }

    /// Goal: a refusal is no answer and ends no run, and any other answer than the known one does. Method: a
    /// server that refuses every second call, and one that answers with another exception.
    #[tokio::test]
    async fn refused_calls_are_counted_apart() {
        let calls = drive_against("org.apache.hadoop.hbase.CallQueueTooBigException")
            .await
            .unwrap();
        assert!(calls.answered > 0 && calls.refused > 0, "{calls:?}");
        assert_eq!(calls.latencies.report().count, calls.answered);
        let error = drive_against("java.io.IOException")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("java.io.IOException"), "{error}");
    }

    /// Two messages; calls of the second fail with an exception of this class.
    async fn drive_against(class: &'static str) -> Result<Calls> {
        let answer = |place: u32| {
            let mut out = Vec::new();
            put_encoded_response(1_000 + place, b"known", &[], &mut out);
            out
        };
        let failure = {
            let header = ResponseHeader {
                call_id: Some(1_001),
                exception: Some(ExceptionResponse {
                    exception_class_name: Some(class.to_owned()),
                    ..ExceptionResponse::default()
                }),
                ..ResponseHeader::default()
            };
            let body = header.encode_length_delimited_to_vec();
            [&(body.len() as u32).to_be_bytes()[..], &body].concat()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let replies = vec![Bytes::from(answer(0)), Bytes::from(answer(1))];
        let exchange = Exchange::native(vec![vec![0], vec![1]], replies, Known::Equal);
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            while let Ok(call) = stream.read_u8().await {
                let reply = if call == 0 { answer(0) } else { failure.clone() };
                if stream.write_all(&reply).await.is_err() {
                    break;
                }
            }
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let until = Instant::now() + Duration::from_millis(30);
        call_until(stream, address, Arc::new(exchange), 0, 2, until).await
    }

    /// Goal: messages that are not copied leave whole and in the order of their places. Method: more than a
    /// socket takes at once.
    #[tokio::test]
    async fn large_messages_leave_whole_and_in_order() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let messages: Vec<Vec<u8>> = [(1, 3 << 20), (2, 10), (3, IN_PLACE_BYTES), (4, 5 << 20)]
            .map(|(byte, length)| vec![byte; length])
            .to_vec();
        let places = [3, 1, 0, 2, 0];
        let sent = places.map(|place: usize| &messages[place][..]).concat();
        let mut arrived = vec![0; sent.len()];
        let mut together = Vec::new();
        let (written, read) = tokio::join!(
            send(&mut stream, &messages, &places, &mut together),
            server.read_exact(&mut arrived),
        );
        written.unwrap();
        read.unwrap();
        assert!(arrived == sent, "they differ");
    }

    /// Goal: replies that have arrived together are taken together, whatever their size. Method: several
    /// large replies are in the socket before the first is read.
    #[tokio::test]
    async fn replies_that_arrived_are_read_together() {
        const CALLS: u16 = 4;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut reply = Vec::new();
        put_encoded_response(1, &[7; 10_000], &[], &mut reply);
        let replies = vec![Bytes::from(reply.clone())];
        let exchange = Exchange::native(vec![vec![0, 0, 0, 1, 1]], replies, Known::Equal);
        let all = reply.repeat(usize::from(CALLS));
        server.write_all(&all).await.unwrap();
        let mut arrived = vec![0; all.len()];
        while stream.peek(&mut arrived).await.unwrap() < all.len() {
            tokio::task::yield_now().await;
        }
        let mut replies = Replies::to(&exchange, CALLS);
        for left in (0..CALLS).rev() {
            replies.whole(&mut stream, address).await.unwrap();
            assert_eq!(replies.has_frame(), left > 0);
        }
    }
}
