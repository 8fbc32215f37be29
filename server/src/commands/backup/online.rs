//! Asks a running server for a backup, and shows its progress. The server does the work; when this command
//! ends, the backup does.

use std::process::ExitCode;

use basalt_backup::Figures;
use serde_json::{Value, json};

use super::{Failure, operator, show};
use crate::commands::command_line::{Backup, Settings};

pub(super) async fn run(wanted: &Backup) -> Result<ExitCode, Failure> {
    let address = match &wanted.from {
        Some(address) => address.clone(),
        None => Settings::default().load()?.config.http.listen.to_string(),
    };
    let key_file = wanted.key_file.as_deref().map(std::path::absolute).transpose()?;
    let request = json!({
        "to": wanted.to,
        "key_file": key_file.unwrap_or_default(),
        "max_rate": wanted.max_rate.unwrap_or_default(),
        "parallel": wanted.parallel,
        "secrets_in_clear": wanted.secrets_in_clear,
    });
    let mut line = show::Line::new("backup");
    let made = operator::post(&address, &wanted.login, "/backup", &request, |message| {
        if let Some(progress) = message.get("progress") {
            line.show(figures(progress));
        }
    });
    let made = made.await;
    line.end();
    ended(&made?);
    Ok(ExitCode::SUCCESS)
}

fn figures(progress: &Value) -> Figures {
    let figure = |name: &str| progress[name].as_u64().unwrap_or_default();
    Figures {
        files: figure("files"),
        bytes_total: figure("bytes_total"),
        bytes_done: figure("bytes_done"),
        bytes_moved: figure("bytes_written"),
    }
}

/// Prints the result.
fn ended(made: &Value) {
    let figure = |name: &str| made[name].as_u64().unwrap_or_default();
    println!(
        "backup {} at position {}: {} files, {}, of which {} were written",
        made["id"].as_str().unwrap_or_default(),
        figure("position"),
        figure("files"),
        show::bytes(figure("bytes")),
        show::bytes(figure("bytes_written"))
    );
    let left_out = made["left_out"].as_array().map_or(&[][..], Vec::as_slice);
    let left_out: Vec<String> = left_out
        .iter()
        .filter_map(|path| path.as_str().map(str::to_owned))
        .collect();
    warn_of(&left_out);
}

/// Says which files are not in the backup.
pub(super) fn warn_of(left_out: &[String]) {
    if !left_out.is_empty() {
        eprintln!(
            "not in the backup, since they are secret and it is not encrypted: {}. Give --key-file, or --secrets-in-clear",
            left_out.join(", ")
        );
    }
}
