//! One load for all sides: latencies where no side is overloaded.
//!
//! At full speed a call waits for those of the other connections, so that its latency only restates
//! the throughput. Here every side gets the same calls at one rate, which all of them can answer
//! ([`paced`]):
//!
//! 1. Each side is driven once as fast as it answers.
//! 2. The rate is a share of the slowest side's calls a second then.
//! 3. In each round every side has that rate. The side that begins changes with the round.
//!
//! Latencies count from when a call was due, so they include the wait of a connection for its last
//! reply. They cover all rounds.

use std::time::Duration;

use serde::Serialize;

use super::calls::Kind;
use super::drive::{self, Drive};
use super::paced::{self, Outcome, Pace};
use super::{Contest, Party};
use crate::error::{Error, Result};
use crate::load::latency::LatencyReport;
use crate::report::{figure, terminal_table};

/// One kind of call over a number of connections.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    call: Kind,
    connections: u16,
    /// Calls a second that were due.
    offered_per_second: f64,
    /// The server, the echo, the other server.
    sides: Vec<SideReport>,
}

#[derive(Debug, Serialize)]
struct SideReport {
    name: String,
    /// Calls a second as fast as it answered.
    peak_per_second: f64,
    /// Calls that were due and not sent, because their connections were waiting.
    unsent: u64,
    /// From when calls were due.
    latency_seconds: LatencyReport,
    /// From when they were sent.
    from_sent_seconds: LatencyReport,
}

/// Compares the sides at a share of the slowest one's calls a second.
pub(super) async fn compare(
    contest: &Contest,
    drive: Drive,
    rounds: usize,
    share: f64,
) -> Result<Comparison> {
    let mut peaks = Vec::new();
    for Party {
        address, exchange, ..
    } in &contest.parties
    {
        peaks.push(drive::run(*address, exchange, drive).await?.calls_per_second());
    }
    let rate = peaks.iter().copied().fold(f64::INFINITY, f64::min) * share;
    let pace = Pace {
        connections: drive.connections,
        threads: drive.threads,
        rate,
        time: drive.time,
    };
    let mut outcomes: Vec<Outcome> = peaks.iter().map(|_| Outcome::new()).collect();
    for which in contest.turns(rounds) {
        let party = &contest.parties[which];
        let (outcome, _) = paced::run(party.address, &party.exchange, pace).await?;
        if outcome.refused.report().count > 0 {
            return Err(Error::Different(format!(
                "{} refused calls at {} a second",
                party.name,
                figure(rate)
            )));
        }
        outcomes[which].add(&outcome);
    }
    let sides = contest.parties.iter().zip(&peaks).zip(&outcomes);
    let sides = sides.map(|((party, peak), outcome)| SideReport {
        name: party.name.clone(),
        peak_per_second: *peak,
        unsent: outcome.unsent,
        latency_seconds: outcome.accepted_from_due.report(),
        from_sent_seconds: outcome.accepted.report(),
    });
    Ok(Comparison {
        call: contest.call,
        connections: drive.connections,
        offered_per_second: rate,
        sides: sides.collect(),
    })
}

/// A line for each side of each comparison.
pub(super) fn table_of(comparisons: &[Comparison], time: Duration, rounds: usize) -> String {
    let head = [
        "call",
        "connections",
        "due/s",
        "server",
        "peak/s",
        "answered/s",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "first server's p99, 1 in",
        "p99 from sent µs",
    ];
    let seconds = time.as_secs_f64() * rounds as f64;
    let lines = comparisons.iter().flat_map(|comparison| {
        let first = comparison.sides[0].latency_seconds.p99;
        comparison.sides.iter().map(move |side| {
            let latency = &side.latency_seconds;
            vec![
                comparison.call.name().to_owned(),
                comparison.connections.to_string(),
                figure(comparison.offered_per_second.round()),
                side.name.clone(),
                figure(side.peak_per_second.round()),
                figure((latency.count as f64 / seconds).round()),
                figure(latency.p50 * 1e6),
                figure(latency.p99 * 1e6),
                figure(latency.p999 * 1e6),
                format!("{:.1}", latency.p99 / first),
                figure(side.from_sent_seconds.p99 * 1e6),
            ]
        })
    });
    terminal_table(&head, lines)
}
