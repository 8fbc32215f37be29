//! `overload`: more calls than a server can answer, sent when they are due and not when the last one was
//! answered.
//!
//! For each kind of call:
//!
//! 1. The peak is measured: some connections send ready-made messages as fast as they are answered, as in
//!    `roundtrip`.
//! 2. For each share of the peak a crowd of connections sends calls at that rate ([`paced`]).
//!
//! An answer is the one that is known (accepted) or a RegionTooBusyException (refused); anything
//! else ends the run. Times count from when the call was sent, and in a column of their own from
//! when it was due: a crowd that is too small for the rate falls behind. Client and server share
//! the machine's cores, so the client's share at four times the peak is missing to the server.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::calls::Kind;
use super::clients::ClientOptions;
use super::drive::{self, Drive, Driven};
use super::paced::{self, Pace};
use super::{RowOptions, Side, prepare, side, tables};
use crate::error::Result;
use crate::load::latency::{Latencies, LatencyReport};
use crate::report::{self, Head, figure, terminal_table};
use crate::target::TargetOptions;

/// Send more calls than the server can answer, and report their outcomes.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: TargetOptions,
    /// Kinds of calls.
    #[arg(long, value_delimiter = ',', default_value = "put-batch,scan")]
    calls: Vec<Kind>,
    /// Connections that find the peak.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: u16,
    /// Connections that send calls when they are due.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..=16_384))]
    crowd: u16,
    /// Rates of the crowd, as shares of the peak.
    #[arg(long, value_delimiter = ',', default_value = "0.5,1,4", value_parser = share)]
    shares: Vec<f64>,
    /// Seconds of each phase.
    #[arg(long, default_value_t = 10, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    #[command(flatten)]
    client: ClientOptions,
    #[command(flatten)]
    rows: RowOptions,
    /// Where overload.json goes, if it is wanted.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 100.0 => Ok(share),
        _ => Err("must be above 0 and at most 100".to_owned()),
    }
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    value_bytes: u32,
    seconds: u64,
    client_threads: usize,
    phases: Vec<PhaseReport>,
}

#[derive(Debug, Serialize)]
struct PhaseReport {
    call: Kind,
    connections: u16,
    /// `None` for the peak itself.
    share_of_peak: Option<f64>,
    /// Calls a second that were due.
    offered_per_second: f64,
    accepted_per_second: f64,
    refused_per_second: f64,
    /// Calls that were due and not sent, because their connections were waiting.
    unsent: u64,
    /// Accepted calls, from when they were sent.
    accepted_seconds: LatencyReport,
    /// Accepted calls, from when they were due.
    accepted_from_due_seconds: LatencyReport,
    /// Refused calls, from when they were sent.
    refused_seconds: LatencyReport,
}

/// Runs all phases and prints a table.
pub async fn run(arguments: Arguments) -> Result<()> {
    arguments.target.need_thrift2("overload")?;
    arguments.target.need_plain("overload")?;
    if let Some(out) = &arguments.out {
        report::create_dir(out)?;
    }
    let side = side(&arguments.target).await?;
    let head = Head::new("overload", &side.target, &arguments.target);
    let mut phases = Vec::new();
    for call in &arguments.calls {
        phases.extend(measure(&arguments, &side, *call).await?);
    }
    say!("{}", table_of(&phases));
    if let Some(out) = &arguments.out {
        let report = Report {
            head,
            value_bytes: arguments.rows.value_bytes,
            seconds: arguments.seconds,
            client_threads: arguments.client.threads(),
            phases,
        };
        say!(
            "{}",
            report::write_json(&out.join("overload.json"), &report)?.display()
        );
    }
    Ok(())
}

async fn measure(arguments: &Arguments, side: &Side, call: Kind) -> Result<Vec<PhaseReport>> {
    let (address, exchange) = prepare(&arguments.rows, side, call).await?;
    let (threads, time) = (arguments.client.threads(), Duration::from_secs(arguments.seconds));
    let drive = Drive {
        connections: arguments.connections,
        threads,
        time,
        pipeline: 1,
    };
    let driven = drive::run(address, &exchange, drive).await?;
    let peak = driven.calls_per_second();
    note!("{}: the peak is {} calls/s", call.name(), figure(peak));
    let latencies = Driven::latencies(&[driven]).report();
    let mut phases = vec![PhaseReport {
        call,
        connections: arguments.connections,
        share_of_peak: None,
        offered_per_second: peak,
        accepted_per_second: peak,
        refused_per_second: 0.0,
        unsent: 0,
        accepted_from_due_seconds: latencies.clone(),
        accepted_seconds: latencies,
        refused_seconds: Latencies::new().report(),
    }];
    for share in &arguments.shares {
        let rate = peak * share;
        let pace = Pace {
            connections: arguments.crowd,
            threads,
            rate,
            time,
        };
        let (outcome, took) = paced::run(address, &exchange, pace).await?;
        let (accepted, refused) = (outcome.accepted.report(), outcome.refused.report());
        phases.push(PhaseReport {
            call,
            connections: arguments.crowd,
            share_of_peak: Some(*share),
            offered_per_second: rate,
            accepted_per_second: accepted.count as f64 / took.as_secs_f64(),
            refused_per_second: refused.count as f64 / took.as_secs_f64(),
            unsent: outcome.unsent,
            accepted_seconds: accepted,
            accepted_from_due_seconds: outcome.accepted_from_due.report(),
            refused_seconds: refused,
        });
    }
    tables(&arguments.rows, side).drop(&arguments.rows.table).await?;
    Ok(phases)
}

/// A line for each phase.
fn table_of(phases: &[PhaseReport]) -> String {
    let head = [
        "call",
        "load",
        "connections",
        "offered/s",
        "accepted/s",
        "of the peak",
        "refused/s",
        "unsent",
        "accepted: p50, p99, max ms",
        "p99 from due, ms",
        "refused: p99, max ms",
    ];
    let ms = |seconds: f64| figure(seconds * 1e3);
    let mut peak = 0.0;
    let lines: Vec<Vec<String>> = phases
        .iter()
        .map(|phase| {
            if phase.share_of_peak.is_none() {
                peak = phase.accepted_per_second;
            }
            let (accepted, refused) = (&phase.accepted_seconds, &phase.refused_seconds);
            vec![
                phase.call.name().to_owned(),
                phase
                    .share_of_peak
                    .map_or_else(|| "peak".to_owned(), |share| format!("{share} times the peak")),
                phase.connections.to_string(),
                figure(phase.offered_per_second.round()),
                figure(phase.accepted_per_second.round()),
                format!("{:.2}", phase.accepted_per_second / peak),
                figure(phase.refused_per_second.round()),
                phase.unsent.to_string(),
                format!("{}, {}, {}", ms(accepted.p50), ms(accepted.p99), ms(accepted.max)),
                ms(phase.accepted_from_due_seconds.p99),
                format!("{}, {}", ms(refused.p99), ms(refused.max)),
            ]
        })
        .collect();
    terminal_table(&head, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_positive() {
        assert_eq!(share("4"), Ok(4.0));
        for wrong in ["0", "-1", "x", "NaN", "101"] {
            share(wrong).unwrap_err();
        }
    }
}
