//! Requests that commands send to the HTTP port of a running server, and answers that are lines of JSON.

use basalt_client::security;
use serde_json::Value;

use super::command_line::Login;
use crate::socket::{http_client, with_causes};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Path at which a server takes over a snapshot.
pub(super) const IMPORT: &str = "/snapshots/import";

/// Path at which a server waits for a replication peer.
pub(super) const WAIT: &str = "/replication/wait";

/// Longest line of an answer.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The variable with the password.
const PASSWORD: &str = "BASALT_PASSWORD";

/// Posts a body to a path. `each` gets the lines before the last; returns the content of `made` in that one.
pub(super) async fn post(
    address: &str,
    login: &Login,
    path: &str,
    body: &Value,
    mut each: impl FnMut(&Value),
) -> Result<Value, Failure> {
    let mut answer = ask(address, login, path, body.to_string()).await?;
    if !answer.status().is_success() {
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap_or_default();
        return Err(format!("{address} answers {status}: {}", text.trim_end()).into());
    }
    let mut received = Vec::new();
    let cut = || format!("{address} ended the connection before the work was done");
    while let Some(bytes) = answer.chunk().await.map_err(|_| cut())? {
        received.extend_from_slice(&bytes);
        while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            let mut message: Value = serde_json::from_slice(&received[..end])?;
            received.drain(..=end);
            if let Some(made) = message.get_mut("made") {
                return Ok(made.take());
            }
            if let Some(error) = message["error"].as_str() {
                return Err(error.to_owned().into());
            }
            each(&message);
        }
        if received.len() > LINE_BYTES_MAX {
            return Err(format!("{address} answers with a line of more than {LINE_BYTES_MAX} bytes").into());
        }
    }
    Err(cut().into())
}

/// Asks for JSON at a path: by GET, or by POST with a body.
pub(super) async fn json(
    address: &str,
    login: &Login,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, Failure> {
    let answer = match body {
        Some(body) => ask(address, login, path, body.to_string()).await?,
        None => send(address, login, path, None).await?,
    };
    let (status, text) = (answer.status(), answer.text().await?);
    if !status.is_success() {
        return Err(format!("{address} answers {}: {}", status.as_u16(), text.trim_end()).into());
    }
    if text.is_empty() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_str(&text)?)
}

/// Posts a body.
async fn ask(address: &str, login: &Login, path: &str, body: String) -> Result<reqwest::Response, Failure> {
    send(address, login, path, Some(body)).await
}

/// Sends a request: GET, or POST with a body.
async fn send(
    address: &str,
    login: &Login,
    path: &str,
    body: Option<String>,
) -> Result<reqwest::Response, Failure> {
    let (client, base) = http_client(address, login.ca.as_deref())?;
    let url = format!("{base}{path}");
    let client = client.build()?;
    let mut request = match body {
        Some(body) => client.post(url).body(body),
        None => client.get(url),
    };
    if let Some(file) = &login.token {
        let security::Login::Token(token) = security::Login::token_file(file)? else {
            return Err(format!("{} has no token", file.display()).into());
        };
        request = request.bearer_auth(token.to_text().as_str());
    } else if let Some(user) = &login.user {
        let password = match std::env::var(PASSWORD) {
            Ok(password) => password,
            Err(_) => rpassword::prompt_password(format!("Password of {user}: "))?,
        };
        request = request.basic_auth(user, Some(password));
    }
    request
        .send()
        .await
        .map_err(|error| format!("no server answers at {address}: {}", with_causes(&error)).into())
}
