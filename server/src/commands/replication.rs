//! `basalt replication wait`: waits until a peer of a running server has everything that was written before.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::command_line::{Login, ReplicationCommand, Settings};
use super::{Outcome, on_runtime, operator};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Least time between two lines of progress.
const PERIOD: Duration = Duration::from_secs(5);

/// A wait that has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waited {
    /// The time at the server when the wait began, in milliseconds since 1970. Earlier writes are at the
    /// peer.
    pub(super) time_ms: u64,
    /// How long it took.
    pub(super) took: Duration,
    /// The position that the peer has reached.
    pub(super) position: u64,
}

/// Runs a command.
pub(super) fn run(command: ReplicationCommand) -> Outcome {
    let ReplicationCommand::Wait {
        peer,
        http,
        limit,
        login,
    } = command;
    let address = address(http)?;
    let waited = on_runtime(wait(&address, &login, &peer, limit))?;
    println!(
        "peer {peer} has everything up to position {}, after {:.3} s",
        waited.position,
        waited.took.as_secs_f64()
    );
    Ok(ExitCode::SUCCESS)
}

/// The address of the HTTP port: the given one, or that of the settings.
pub(super) fn address(given: Option<String>) -> Result<String, Failure> {
    match given {
        Some(address) => Ok(address),
        None => Ok(Settings::default().load()?.config.http.listen.to_string()),
    }
}

/// Waits until a peer has everything that was written before the call. Prints progress on standard error.
pub(super) async fn wait(
    address: &str,
    login: &Login,
    peer: &str,
    limit: Option<Duration>,
) -> Result<Waited, Failure> {
    let limit_ms = limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    let body = json!({ "peer": peer, "limit_ms": limit_ms });
    let mut shown = Instant::now();
    let made = operator::post(address, login, operator::WAIT, &body, |line| {
        if shown.elapsed() >= PERIOD {
            shown = Instant::now();
            eprintln!("{}", progress(&line["progress"]));
        }
    });
    let made = made.await?;
    let number = |name: &str| {
        made[name]
            .as_u64()
            .ok_or_else(|| format!("{address} answers without {name}"))
    };
    Ok(Waited {
        time_ms: number("time_ms")?,
        took: Duration::from_millis(number("waited_ms")?),
        position: number("position")?,
    })
}

/// A line of progress for people.
fn progress(figures: &Value) -> String {
    let number = |name: &str| figures[name].as_u64().unwrap_or_default();
    let behind = number("end").saturating_sub(number("position"));
    let mut text = format!(
        "the peer is {behind} rows of the log and {:.1} s behind",
        number("lag_ms") as f64 / 1e3
    );
    if let Some(problem) = figures["problem"].as_str().filter(|problem| !problem.is_empty()) {
        text = format!("{text}; the last attempt failed: {problem}");
    }
    text
}
