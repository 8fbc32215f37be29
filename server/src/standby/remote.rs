//! Requests to the HTTP port of another server.

use std::path::Path;
use std::time::Duration;

use basalt_client::security::Login;
use basalt_security::certificate::authority::CA_CERTIFICATE;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::socket::{http_client, with_causes};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_millis(500);

/// Another server.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    client: reqwest::Client,
    url: String,
    token: Option<String>,
}

/// Why a request has no answer that helps.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// There is no server, or it broke off.
    #[error("no answer from {url}: {why}")]
    Away { url: String, why: String },
    /// It has refused.
    #[error("{url} answers {status}: {text}")]
    Refused { url: String, status: u16, text: String },
    /// These settings do not do.
    #[error("{0}")]
    Settings(String),
}

impl Remote {
    /// The server at a URL or address, as the settings say how to log in there.
    pub(super) fn new(config: &Config, url: &str) -> Result<Self, Failed> {
        let own = config.security_dir().join(CA_CERTIFICATE);
        let settings = &config.standby;
        let ca: Option<&Path> = match settings.ca.as_os_str().is_empty() {
            false => Some(&settings.ca),
            true if own.exists() => Some(&own),
            true => None,
        };
        let (client, url) = http_client(url, ca).map_err(Failed::Settings)?;
        let token = if settings.token_file.as_os_str().is_empty() {
            None
        } else {
            let file = &settings.token_file;
            let login = Login::token_file(file)
                .map_err(|error| Failed::Settings(format!("standby.token_file: {error}")))?;
            let Login::Token(token) = login else {
                let what = format!("standby.token_file = {} has no token", file.display());
                return Err(Failed::Settings(what));
            };
            Some(token.to_text().to_string())
        };
        let client = client
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| Failed::Settings(error.to_string()))?;
        Ok(Self { client, url, token })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Posts JSON; returns the answer, whose body is still to come.
    pub(super) async fn post(
        &self,
        path: &str,
        body: &impl Serialize,
        limit: Option<Duration>,
    ) -> Result<reqwest::Response, Failed> {
        let body = serde_json::to_vec(body).map_err(|error| Failed::Settings(error.to_string()))?;
        self.send(self.client.post(format!("{}{path}", self.url)).body(body), limit)
            .await
    }

    /// Posts JSON, and reads JSON.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        limit: Duration,
    ) -> Result<T, Failed> {
        let answer = self.post(path, body, Some(limit)).await?;
        self.json(answer).await
    }

    /// Reads JSON of a path.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, limit: Duration) -> Result<T, Failed> {
        let answer = self
            .send(self.client.get(format!("{}{path}", self.url)), Some(limit))
            .await?;
        self.json(answer).await
    }

    async fn json<T: DeserializeOwned>(&self, answer: reqwest::Response) -> Result<T, Failed> {
        let bytes = answer.bytes().await.map_err(|error| self.away(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| Failed::Refused {
            url: self.url.clone(),
            status: 200,
            text: format!("an answer that is none: {error}"),
        })
    }

    async fn send(
        &self,
        mut request: reqwest::RequestBuilder,
        limit: Option<Duration>,
    ) -> Result<reqwest::Response, Failed> {
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        let answer = request.send().await.map_err(|error| self.away(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(Failed::Refused {
            url: self.url.clone(),
            status: answer.status().as_u16(),
            text: answer.text().await.unwrap_or_default().trim_end().to_owned(),
        })
    }

    /// The error of a connection, with its causes.
    pub(super) fn away(&self, error: &reqwest::Error) -> Failed {
        Failed::Away {
            url: self.url.clone(),
            why: with_causes(error),
        }
    }
}
