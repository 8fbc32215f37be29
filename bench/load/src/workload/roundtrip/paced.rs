//! Sending messages when they are due, at a rate, over many connections for some time (open loop).
//!
//! Connection `i` of `n` sends its call number `k` when call `k * n + i` of all is due, or as soon
//! as it has the answer to its last one. Latencies count from when the call was sent, and once more
//! from when it was due: the second includes the time that a connection waits because the server
//! still has its last call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::alarm::Alarm;
use super::calls::Exchange;
use super::clients;
use super::drive;
use super::replies::{Replies, Reply, broken, different, is_refusal};
use crate::error::{Error, Result};
use crate::load::latency::Latencies;

/// How a side is driven.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) connections: u16,
    pub(super) threads: usize,
    /// Calls a second of all connections.
    pub(super) rate: f64,
    pub(super) time: Duration,
}

/// Outcome of calls: those of a connection, or of all.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Calls with the answer that is known, from when they were sent.
    pub(super) accepted: Latencies,
    /// Calls with the expected answer, from when they were due.
    pub(super) accepted_from_due: Latencies,
    /// Calls that the server refused because it had too much to do, from when they were sent.
    pub(super) refused: Latencies,
    /// Calls that were due and not sent, because their connections were waiting.
    pub(super) unsent: u64,
}

impl Outcome {
    pub(super) fn new() -> Outcome {
        Outcome {
            accepted: Latencies::new(),
            accepted_from_due: Latencies::new(),
            refused: Latencies::new(),
            unsent: 0,
        }
    }

    pub(super) fn add(&mut self, other: &Outcome) {
        self.accepted.add(&other.accepted);
        self.accepted_from_due.add(&other.accepted_from_due);
        self.refused.add(&other.refused);
        self.unsent += other.unsent;
    }
}

/// When the calls of one connection are due.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    first: Instant,
    every: Duration,
    until: Instant,
}

impl Schedule {
    /// The schedule of connection `number` of `connections`, all of which together send `rate`
    /// calls a second.
    fn new(began: Instant, time: Duration, rate: f64, number: u16, connections: u16) -> Schedule {
        let call = |calls: f64| Duration::from_secs_f64(calls / rate);
        Schedule {
            first: began + call(f64::from(number)),
            every: call(f64::from(connections)),
            until: began + time,
        }
    }

    /// When its call of that number is due; `None` if that is too late.
    fn due(&self, call: u32) -> Option<Instant> {
        let due = self.first + self.every * call;
        (due < self.until).then_some(due)
    }
}

/// Drives a side. Returns the outcomes of the calls, and how long it took until the last one was
/// answered. An error if an answer is neither the one that is known nor a refusal.
pub(super) async fn run(address: SocketAddr, exchange: &Exchange, pace: Pace) -> Result<(Outcome, Duration)> {
    let exchange = Arc::new(exchange.clone());
    let mut streams = Vec::new();
    for _ in 0..pace.connections {
        streams.push(drive::connect_as(address, exchange.wire).await?);
    }
    let began = Instant::now();
    let outcomes = clients::run(pace.threads, streams, move |number, stream| {
        let schedule = Schedule::new(began, pace.time, pace.rate, number, pace.connections);
        call_when_due(stream, address, Arc::clone(&exchange), number, schedule)
    });
    let mut outcome = Outcome::new();
    for connection in outcomes.await? {
        outcome.add(&connection);
    }
    Ok((outcome, began.elapsed()))
}

async fn call_when_due(
    mut stream: TcpStream,
    address: SocketAddr,
    exchange: Arc<Exchange>,
    number: u16,
    schedule: Schedule,
) -> Result<Outcome> {
    let alarm = Alarm::new().map_err(|error| Error::Usage(format!("no timer for a connection: {error}")))?;
    let mut outcome = Outcome::new();
    let mut replies = Replies::to(&exchange, 1);
    let mut next = (usize::from(number) * 7) % exchange.messages.len();
    let mut calls = 0;
    while let Some(due) = schedule.due(calls) {
        calls += 1;
        let mut sent_at = Instant::now();
        if sent_at >= schedule.until {
            outcome.unsent += 1;
            continue;
        }
        if sent_at < due {
            let rung = alarm.until(due).await;
            sent_at = rung.map_err(|error| Error::Usage(format!("a timer failed: {error}")))?;
        }
        let sent = stream.write_all(&exchange.messages[next]).await;
        sent.map_err(|error| broken(address, &error))?;
        let reply = replies.receive(&mut stream, address, &exchange, next).await?;
        let answered_at = Instant::now();
        match reply {
            Reply::Known => {
                outcome.accepted.record(answered_at - sent_at);
                outcome.accepted_from_due.record(answered_at - due);
            }
            Reply::Other(reply) if is_refusal(reply) => {
                outcome.refused.record(answered_at - sent_at);
            }
            Reply::Other(reply) => return Err(different(address, reply)),
        }
        next = (next + 1) % exchange.messages.len();
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All connections together send as many calls as the rate says, evenly.
    #[test]
    fn calls_are_due_one_after_the_other() {
        let began = Instant::now();
        let schedule = |number| Schedule::new(began, Duration::from_secs(2), 10.0, number, 4);
        let mut due: Vec<Duration> = (0..4)
            .flat_map(|number| (0..).map_while(move |call| schedule(number).due(call)))
            .map(|due| due - began)
            .collect();
        due.sort_unstable();
        let even: Vec<Duration> = (0..20).map(|call| Duration::from_millis(100) * call).collect();
        assert_eq!(due, even);
    }
}
