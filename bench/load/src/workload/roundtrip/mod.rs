//! `roundtrip`: the cost of one call, side by side with a bare TCP echo of the same sizes and, if
//! asked for, with another server.
//!
//! For each kind of call and each number of connections:
//!
//! 1. A table is made on each server, 256 rows are written to it, and it is flushed where the server can be
//!    asked to.
//! 2. 256 messages are made, each is sent once, and the reply is kept ([`calls`]).
//! 3. An echo is started in a process of its own: it answers as many bytes as a call has with as many as its
//!    reply has ([`echo`]).
//! 4. In each round every side is driven for some seconds by the same loop over the same
//!    connections ([`drive`]): send a message, wait for the whole reply, compare it with the one
//!    that was kept. The side that begins changes with the round. The connections are dealt out to
//!    the threads of the client ([`clients`]). With `--pipeline N` a connection sends N messages
//!    together and then waits for their replies, as a client does that has several calls to make:
//!    the system's work for a message is shared by N, so that the servers' own part shows. A call's
//!    latency is counted from when it was sent, with the others.
//! 5. Ratios are those of one round; the table has medians over the rounds.
//!
//! With `--api native` the calls are those of HBase's native protocol, and the addresses those of ZooKeeper,
//! which names the servers. `--inflight N` keeps N calls in flight on each connection: a reply makes room for
//! the next call ([`window`]). The echo gets N calls together then.
//!
//! With `--share-of-slowest S` the sides have one load instead, which all of them can bear ([`same_load`]).
//!
//! Nothing is decoded in the loop, so the measurement covers the server, the loopback device, and
//! as little of a client as possible. Client, servers and echo share the machine's cores.

mod alarm;
mod calls;
mod clients;
mod drive;
mod echo;
mod kinds;
mod native;
pub mod overload;
mod paced;
mod replies;
mod same_load;
mod tally;
mod window;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use basalt_client::FamilySchema;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use tokio::net::lookup_host;

use crate::error::{During, Error, Result};
use crate::load::latency::LatencyReport;
use crate::report::{self, Head, figure, terminal_table};
use crate::tables::Tables;
use crate::target::{Api, Target, TargetOptions};
use calls::{Exchange, Kind, Wire};
use clients::ClientOptions;
use drive::{Drive, Driven};
use echo::{Echo, Style};

/// Compare single calls with a bare TCP echo of the same sizes, and with another server.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: TargetOptions,
    /// Address of another server to drive in the same rounds: HBase's Thrift 2 server, for example, or its
    /// ZooKeeper with --api native.
    #[arg(long, value_name = "ADDR", value_parser = NonEmptyStringValueParser::new())]
    beside: Option<String>,
    /// Kinds of calls.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "get,put,put-batch,increment,scan"
    )]
    calls: Vec<Kind>,
    /// Numbers of connections.
    #[arg(long, value_delimiter = ',', default_value = "1,64", value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: Vec<u16>,
    /// Seconds that each side is driven in a round.
    #[arg(long, default_value_t = 2, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Calls that each connection sends together, before it waits for their replies.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pipeline: u16,
    /// Calls that each connection keeps in flight. With --api native only.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=128), conflicts_with_all = ["pipeline", "share_of_slowest"])]
    inflight: u16,
    /// Send every side the same calls, at this share of the slowest one's calls a second, instead of as fast
    /// as each answers.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "pipeline")]
    share_of_slowest: Option<f64>,
    /// How the echo serves its connections.
    #[arg(long, default_value = "threads")]
    echo: Style,
    #[command(flatten)]
    client: ClientOptions,
    #[command(flatten)]
    rows: RowOptions,
    /// Where roundtrip.json goes, if it is wanted.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Be the echo: answer calls of this many bytes with replies of this many. For the tool itself.
    #[arg(long, hide = true, num_args = 2, value_names = ["CALL", "REPLY"])]
    serve_echo: Option<Vec<usize>>,
}

/// The rows that calls are about.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RowOptions {
    /// Bytes of a value.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    value_bytes: u32,
    /// The table that is made, and dropped at the end.
    #[arg(long, default_value = "bench_roundtrip")]
    table: String,
    /// Drop a table of this name that exists already.
    #[arg(long)]
    replace_tables: bool,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("must be above 0 and at most 1".to_owned()),
    }
}

/// A server under comparison.
struct Side {
    name: String,
    target: Target,
    /// The address from the command line.
    address: String,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    beside: Option<String>,
    value_bytes: u32,
    seconds: u64,
    rounds: u32,
    client_threads: usize,
    pipeline: u16,
    inflight: u16,
    echo: Style,
    comparisons: Vec<Comparison>,
    /// With `--share-of-slowest`, instead of the others.
    same_load: Vec<same_load::Comparison>,
}

/// One kind of call over a number of connections.
#[derive(Debug, Serialize)]
struct Comparison {
    call: Kind,
    connections: u16,
    call_bytes: usize,
    reply_bytes: usize,
    /// The server, the echo, the other server.
    sides: Vec<SideReport>,
}

#[derive(Debug, Serialize)]
struct SideReport {
    name: String,
    /// Calls a second, by round.
    calls_per_second: Vec<f64>,
    /// This side's calls a second by the first one's: of each round.
    ratio_to_first: Vec<f64>,
    /// Calls that it refused because it had too much to do, of all rounds. They are in no other figure.
    refused: u64,
    /// Over all rounds.
    latency_seconds: LatencyReport,
}

/// Runs the comparison and prints a table.
pub async fn run(arguments: Arguments) -> Result<()> {
    if let Some(sizes) = &arguments.serve_echo {
        return echo::serve(arguments.echo, sizes[0], sizes[1]).await;
    }
    check(&arguments)?;
    if let Some(out) = &arguments.out {
        report::create_dir(out)?;
    }
    let mut sides = vec![side(&arguments.target).await?];
    if let Some(beside) = &arguments.beside {
        let options = TargetOptions {
            target: beside.clone(),
            ..arguments.target.clone()
        };
        sides.push(side(&options).await?);
    }
    let head = Head::new("roundtrip", &sides[0].target, &arguments.target);
    let drive = |connections| Drive {
        connections,
        threads: arguments.client.threads(),
        time: Duration::from_secs(arguments.seconds),
        pipeline: arguments.pipeline.max(arguments.inflight),
    };
    let rounds = arguments.rounds as usize;
    let (mut comparisons, mut same_load) = (Vec::new(), Vec::new());
    for call in &arguments.calls {
        for connections in &arguments.connections {
            let drive = drive(*connections);
            let contest = Contest::begin(&arguments, &sides, *call).await?;
            match arguments.share_of_slowest {
                Some(share) => same_load.push(same_load::compare(&contest, drive, rounds, share).await?),
                None => comparisons.push(compare(&contest, drive, rounds).await?),
            }
            contest.end(&arguments.rows, &sides).await?;
            note!("{} over {connections} connections: done", call.name());
        }
    }
    if arguments.share_of_slowest.is_some() {
        let time = Duration::from_secs(arguments.seconds);
        say!("{}", same_load::table_of(&same_load, time, rounds));
    } else {
        say!("{}", table_of(&comparisons));
        note_refusals(&comparisons);
    }
    if let Some(out) = &arguments.out {
        let report = Report {
            head,
            beside: arguments.beside.clone(),
            value_bytes: arguments.rows.value_bytes,
            seconds: arguments.seconds,
            rounds: arguments.rounds,
            client_threads: arguments.client.threads(),
            pipeline: arguments.pipeline,
            inflight: arguments.inflight,
            echo: arguments.echo,
            comparisons,
            same_load,
        };
        say!(
            "{}",
            report::write_json(&out.join("roundtrip.json"), &report)?.display()
        );
    }
    Ok(())
}

/// Fails if the arguments need something that the interface does not have.
fn check(arguments: &Arguments) -> Result<()> {
    arguments.target.need_plain("roundtrip")?;
    let is_native = arguments.target.api == Api::Native;
    if !is_native {
        arguments.target.need_thrift2("roundtrip")?;
    }
    if is_native && arguments.pipeline > 1 {
        return Err(Error::Usage(
            "--pipeline is for Thrift, whose replies come in order: use --inflight".to_owned(),
        ));
    }
    if !is_native && arguments.inflight > 1 {
        return Err(Error::Usage(
            "--inflight is for --api native: use --pipeline".to_owned(),
        ));
    }
    Ok(())
}

fn tables<'a>(rows: &RowOptions, side: &'a Side) -> Tables<'a> {
    Tables {
        target: &side.target,
        replace: rows.replace_tables,
    }
}

/// Connects to a server.
async fn side(options: &TargetOptions) -> Result<Side> {
    let target = Target::connect(options, 1).await?;
    Ok(Side {
        name: format!("{} at {}", target.name, options.target),
        target,
        address: options.target.clone(),
    })
}

async fn resolve(target: &str) -> Result<SocketAddr> {
    let no_server = |source| Error::NoServer {
        target: target.to_owned(),
        source,
    };
    let address = lookup_host(target).await.map_err(no_server)?.next();
    address.ok_or_else(|| Error::Usage(format!("{target} has no address")))
}

/// Creates the table with its rows, and records the replies to a kind of call. Also returns the address for
/// its calls.
async fn prepare(rows: &RowOptions, side: &Side, call: Kind) -> Result<(SocketAddr, Exchange)> {
    let tables = tables(rows, side);
    let value_bytes = rows.value_bytes as usize;
    let family = FamilySchema::new(calls::FAMILY);
    tables.create(&rows.table, vec![family], Vec::new()).await?;
    let (wire, server, every, messages) = match &side.target.cluster {
        None => {
            let every = calls::every_row(&rows.table, value_bytes);
            let messages = call.messages(&rows.table, value_bytes);
            (Wire::Thrift, side.address.clone(), every, messages)
        }
        Some(cluster) => {
            let during = || format!("looking for the region of table {}", rows.table);
            let table = cluster.table(&rows.table).during(during)?;
            let region = table.region_with(b"").await.during(during)?;
            let native = native::Messages {
                region: region.name.clone(),
                value_bytes,
            };
            (
                Wire::Native,
                region.server.address(),
                native.every_row(),
                native.of(call)?,
            )
        }
    };
    let address = resolve(&server).await?;
    drive::learn(address, wire, Kind::PutBatch, every).await?;
    tables.flush(&rows.table).await?;
    Ok((address, drive::learn(address, wire, call, messages).await?))
}

/// Whom calls are sent to.
struct Party {
    name: String,
    address: SocketAddr,
    exchange: Exchange,
}

/// Sides that are ready for one kind of call: the server, the echo, the other server.
struct Contest {
    call: Kind,
    parties: Vec<Party>,
    /// Ends with this.
    _echo: Echo,
}

impl Contest {
    /// Makes the tables, learns the calls and starts the echo.
    async fn begin(arguments: &Arguments, sides: &[Side], call: Kind) -> Result<Contest> {
        let mut parties = Vec::new();
        for side in sides {
            let (address, exchange) = prepare(&arguments.rows, side, call).await?;
            parties.push(Party {
                name: side.name.clone(),
                address,
                exchange,
            });
        }
        let (call_bytes, reply_bytes) = parties[0].exchange.sizes();
        let echo = Echo::start(arguments.echo, call_bytes, reply_bytes)?;
        let echoed = Party {
            name: "TCP echo".to_owned(),
            address: echo.address,
            exchange: parties[0].exchange.echoed(),
        };
        parties.insert(1, echoed);
        Ok(Contest {
            call,
            parties,
            _echo: echo,
        })
    }

    /// The order of the sides, round by round: another one begins in each.
    fn turns(&self, rounds: usize) -> impl Iterator<Item = usize> + use<> {
        let parties = self.parties.len();
        (0..rounds).flat_map(move |round| (0..parties).map(move |place| (round + place) % parties))
    }

    /// Drops the tables.
    async fn end(self, rows: &RowOptions, sides: &[Side]) -> Result<()> {
        for side in sides {
            tables(rows, side).drop(&rows.table).await?;
        }
        Ok(())
    }
}

async fn compare(contest: &Contest, drive: Drive, rounds: usize) -> Result<Comparison> {
    let parties = &contest.parties;
    let mut driven: Vec<Vec<Driven>> = parties.iter().map(|_| Vec::new()).collect();
    for which in contest.turns(rounds) {
        let party = &parties[which];
        driven[which].push(drive::run(party.address, &party.exchange, drive).await?);
    }
    let first: Vec<f64> = driven[0].iter().map(Driven::calls_per_second).collect();
    let sides = parties.iter().zip(&driven).map(|(party, rounds)| {
        let rates: Vec<f64> = rounds.iter().map(Driven::calls_per_second).collect();
        let ratios = rates.iter().zip(&first).map(|(rate, first)| rate / first);
        SideReport {
            name: party.name.clone(),
            ratio_to_first: ratios.collect(),
            refused: rounds.iter().map(Driven::refused).sum(),
            calls_per_second: rates,
            latency_seconds: Driven::latencies(rounds).report(),
        }
    });
    let (call_bytes, reply_bytes) = parties[0].exchange.sizes();
    Ok(Comparison {
        call: contest.call,
        connections: drive.connections,
        call_bytes,
        reply_bytes,
        sides: sides.collect(),
    })
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Names the sides that refused calls, which the table does not show.
fn note_refusals(comparisons: &[Comparison]) {
    for comparison in comparisons {
        for side in comparison.sides.iter().filter(|side| side.refused > 0) {
            note!(
                "{} refused {} calls of {} over {} connections",
                side.name,
                side.refused,
                comparison.call.name(),
                comparison.connections
            );
        }
    }
}

/// A line for each side of each comparison. The ratio is the first side's speed by this side's.
fn table_of(comparisons: &[Comparison]) -> String {
    let head = [
        "call",
        "connections",
        "bytes out, in",
        "server",
        "calls/s",
        "first server's ratio",
        "of rounds",
        "p50 µs",
        "p99 µs",
    ];
    let lines = comparisons.iter().flat_map(|comparison| {
        comparison.sides.iter().map(|side| {
            let ratios: Vec<f64> = side.ratio_to_first.iter().map(|ratio| 1.0 / ratio).collect();
            let (low, high) = ratios
                .iter()
                .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ratio| {
                    (low.min(*ratio), high.max(*ratio))
                });
            vec![
                comparison.call.name().to_owned(),
                comparison.connections.to_string(),
                format!("{}, {}", comparison.call_bytes, comparison.reply_bytes),
                side.name.clone(),
                figure(median(side.calls_per_second.iter().copied())),
                format!("{:.2}", median(ratios.iter().copied())),
                format!("{low:.2}-{high:.2}"),
                figure(side.latency_seconds.p50 * 1e6),
                figure(side.latency_seconds.p99 * 1e6),
            ]
        })
    });
    terminal_table(&head, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median([]).is_nan());
    }
}
