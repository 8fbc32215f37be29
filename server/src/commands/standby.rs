//! `basalt promote`, and `basalt standby status` and `remove`.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::command_line::{Login, StandbyCommand};
use super::{Outcome, on_runtime, operator, replication};
use crate::standby::wire::{self, Promoted, Status};

/// Makes the standby at this HTTP address the primary.
pub(super) fn promote(http: Option<String>, login: &Login) -> Outcome {
    let promoted: Promoted = ask(http, login, wire::PROMOTE, Some(&json!({})))?;
    println!(
        "primary of term {} since position {}, after {} ms; {}",
        promoted.term,
        promoted.position,
        promoted.took_ms,
        before(&promoted)
    );
    Ok(ExitCode::SUCCESS)
}

/// The text about the primary before.
fn before(promoted: &Promoted) -> String {
    if promoted.fenced {
        return "the primary before takes no more calls".to_owned();
    }
    let Some(lag_ms) = promoted.lag_ms else {
        return "the primary before did not answer, and is fenced as soon as it does: make sure that it is down, or that no client reaches it".to_owned();
    };
    let problem = match promoted.problem.as_str() {
        "" => String::new(),
        why => format!(" The end of the shipped log was not read: {why}."),
    };
    format!(
        "the primary before did not answer, and backups do not fence it: stop it, or make sure that no client reaches it, before clients write here. Its writes of the last {lag_ms} ms before the promotion were not shipped, and are lost.{problem}"
    )
}

/// Runs a command about standbys.
pub(super) fn run(command: StandbyCommand) -> Outcome {
    match command {
        StandbyCommand::Status { http, login } => {
            let status: Status = ask(http, &login, wire::STATUS, None)?;
            print!("{}", shown(&status));
        }
        StandbyCommand::Remove { name, http, login } => {
            let _: Value = ask(http, &login, wire::REMOVE, Some(&json!({ "name": name })))?;
            println!("no log is kept for standby {name} any more");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn ask<T: serde::de::DeserializeOwned>(
    http: Option<String>,
    login: &Login,
    path: &str,
    body: Option<&Value>,
) -> Result<T, Box<dyn std::error::Error + Send + Sync>> {
    let address = replication::address(http)?;
    let answer = on_runtime(operator::json(&address, login, path, body))?;
    Ok(serde_json::from_value(answer)?)
}

fn shown(status: &Status) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "{} of term {}, position {}\n",
        status.role.as_str(),
        status.term,
        status.position
    );
    // Writing to a String does not fail.
    let leader = status.leader.as_ref();
    let leader = leader.map(|leader| format!("{}:{} ({})", leader.host, leader.port, leader.http));
    let followed = match (leader, &status.store) {
        (Some(leader), Some(url)) => Some(format!("{leader} by way of {url}")),
        (leader, url) => leader.or_else(|| url.clone()),
    };
    if let (Some(followed), Some(lag)) = (followed, status.lag_ms) {
        let _ = writeln!(text, "follows {followed}, {lag} ms behind");
    }
    if !status.problem.is_empty() {
        let _ = writeln!(text, "problem: {}", status.problem);
    }
    if status.alone {
        text.push_str("writes wait for no standby, although standby.sync asks for one\n");
    }
    for standby in &status.standbys {
        let connected = if standby.connected { "connected" } else { "away" };
        let _ = writeln!(
            text,
            "standby {} ({}): {connected}, position {}, {} ms behind",
            standby.name, standby.url, standby.position, standby.lag_ms
        );
    }
    text
}
