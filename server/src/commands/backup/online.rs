//! Asks a running server for a backup, and shows its progress. The server does the work; when this command
//! ends, the backup does.

use std::process::ExitCode;

use basalt_backup::Figures;
use serde_json::{Value, json};

use super::{Failure, show};
use crate::commands::command_line::{Backup, Login, Settings};

/// Longest line of an answer.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The variable with the password.
const PASSWORD: &str = "BASALT_PASSWORD";

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
    let mut answer = ask(&address, &wanted.login, request.to_string()).await?;
    if !answer.status().is_success() {
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap_or_default();
        return Err(format!("{address} answers {status}: {}", text.trim_end()).into());
    }
    let mut line = show::Line::new("backup");
    let mut received = Vec::new();
    let cut = || format!("{address} ended the connection before the backup was made: it is not listed");
    while let Some(bytes) = answer.chunk().await.map_err(|_| cut())? {
        received.extend_from_slice(&bytes);
        while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            let message: Value = serde_json::from_slice(&received[..end])?;
            received.drain(..=end);
            if let Some(progress) = message.get("progress") {
                line.show(figures(progress));
            } else {
                line.end();
                return ended(&message);
            }
        }
        if received.len() > LINE_BYTES_MAX {
            return Err(format!("{address} answers with a line of more than {LINE_BYTES_MAX} bytes").into());
        }
    }
    line.end();
    Err(cut().into())
}

/// Sends the request.
async fn ask(address: &str, login: &Login, body: String) -> Result<reqwest::Response, Failure> {
    // The library of HTTP takes TLS's cryptography from the process. It may be there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = reqwest::Client::builder();
    let scheme = match &login.ca {
        None => "http",
        Some(file) => {
            let pem = std::fs::read(file).map_err(|error| format!("reading {}: {error}", file.display()))?;
            client = client.tls_certs_only([reqwest::Certificate::from_pem(&pem)?]);
            "https"
        }
    };
    let url = if address.contains("://") {
        format!("{}/backup", address.trim_end_matches('/'))
    } else {
        format!("{scheme}://{address}/backup")
    };
    let mut request = client.build()?.post(url).body(body);
    if let Some(user) = &login.user {
        let password = match std::env::var(PASSWORD) {
            Ok(password) => password,
            Err(_) => rpassword::prompt_password(format!("Password of {user}: "))?,
        };
        request = request.basic_auth(user, Some(password));
    }
    request
        .send()
        .await
        .map_err(|error| format!("no server answers at {address}: {}", causes(&error)).into())
}

/// An error with its causes: the library's text alone does not say what failed.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
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

/// Prints the last message.
fn ended(message: &Value) -> Result<ExitCode, Failure> {
    let Some(made) = message.get("made") else {
        let error = message["error"]
            .as_str()
            .unwrap_or("the server's answer has no result");
        return Err(error.to_owned().into());
    };
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
    Ok(ExitCode::SUCCESS)
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
