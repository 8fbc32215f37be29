//! The client's side of SASL, before the first call of a connection.
//!
//! ```text
//! Thrift  client: 01 | u32 length | "PLAIN"       02 | u32 length | message
//!         server: 05 | u32 length | ""            logged in; from here on, messages are framed
//!                 03 or 04 | u32 length | text    refused
//! native  client: u32 length | message            the first has length 0
//!         server: u32 0 | u32 length | message    go on, or the last message
//!                 u32 0 | i32 -88                 the server wants no login
//!                 u32 1 | class | text            refused; each is u32 length | bytes
//! ```
//!
//! The caller bounds the time.

use std::io;

use basalt_security::sasl::digest;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::{Error, Result};
use crate::security::{Login, Token, alert};

const START: u8 = 1;
const OK: u8 = 2;
const BAD: u8 = 3;
const ERROR: u8 = 4;
const COMPLETE: u8 = 5;

/// The reply of a native server without logins to DIGEST-MD5.
const SWITCH_TO_SIMPLE: u32 = -88_i32 as u32;

/// Longest message of a server, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The server's text for a call without a login.
pub(crate) const NO_LOGIN: &str = "Authentication is required";

/// One login on one connection.
struct Exchange<'a, S> {
    stream: &'a mut S,
    target: &'a str,
}

/// Logs in over Thrift with SASL PLAIN.
pub(crate) async fn log_in_thrift(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    target: &str,
    login: &Login,
) -> Result<()> {
    let message = login.plain_message()?;
    let mut exchange = Exchange { stream, target };
    exchange.send_frame(START, b"PLAIN").await?;
    exchange.send_frame(OK, message.expose()).await?;
    let status = exchange.read_u8().await?;
    if ![OK, BAD, ERROR, COMPLETE].contains(&status) {
        return Err(exchange.failed("its answer is not SASL: the server does not take logins, give none"));
    }
    let text = exchange.read_message().await?;
    if status == COMPLETE {
        return Ok(());
    }
    Err(exchange.refused(&String::from_utf8_lossy(&text)))
}

/// Logs in over the native protocol with DIGEST-MD5. The preamble has been sent.
pub(crate) async fn log_in_native(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    target: &str,
    token: &Token,
) -> Result<()> {
    let mut exchange = Exchange { stream, target };
    let invalid = |error: basalt_security::Error| Error::Login {
        target: target.to_owned(),
        what: error.to_string(),
    };
    let client = digest::Client::new(token.digest_user(), token.digest_password());
    let mut client = client.map_err(invalid)?;
    exchange.send_message(b"").await?;
    let challenge = exchange.read_challenge().await?;
    let response = client.respond(&challenge).map_err(invalid)?;
    exchange.send_message(&response).await?;
    let last = exchange.read_challenge().await?;
    client.finish(&last).map_err(invalid)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Exchange<'_, S> {
    async fn send_frame(&mut self, status: u8, payload: &[u8]) -> Result<()> {
        let sent = self.stream.write_all(&[status]).await;
        sent.map_err(|error| self.io(error))?;
        self.send_message(payload).await
    }

    async fn send_message(&mut self, message: &[u8]) -> Result<()> {
        let length = u32::try_from(message.len()).expect("tokens and passwords are short");
        for bytes in [&length.to_be_bytes()[..], message] {
            let sent = self.stream.write_all(bytes).await;
            sent.map_err(|error| self.io(error))?;
        }
        let sent = self.stream.flush().await;
        sent.map_err(|error| self.io(error))
    }

    async fn read_challenge(&mut self) -> Result<Vec<u8>> {
        match self.read_u32().await? {
            0 => {}
            1 => {
                let class = self.read_message().await?;
                let text = self.read_message().await?;
                let class = String::from_utf8_lossy(&class);
                let class = class.rsplit(['.', '$']).next().unwrap_or_default();
                return Err(self.refused(&format!("{class}: {}", String::from_utf8_lossy(&text))));
            }
            _ => return Err(self.failed("its answer is not SASL: is this a server of HBase's protocol?")),
        }
        match self.read_u32().await? {
            SWITCH_TO_SIMPLE => Err(self.failed("the server has no users and takes no logins: give none")),
            length => self.read_bytes(length).await,
        }
    }

    async fn read_message(&mut self) -> Result<Vec<u8>> {
        let length = self.read_u32().await?;
        self.read_bytes(length).await
    }

    async fn read_bytes(&mut self, length: u32) -> Result<Vec<u8>> {
        let length = length as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(self.failed(&format!(
                "it sent a SASL message of {length} bytes; the limit is {MESSAGE_BYTES_MAX}"
            )));
        }
        let mut bytes = vec![0; length];
        let read = self.stream.read_exact(&mut bytes).await;
        read.map_err(|error| self.io(error))?;
        Ok(bytes)
    }

    async fn read_u8(&mut self) -> Result<u8> {
        self.stream.read_u8().await.map_err(|error| self.io(error))
    }

    async fn read_u32(&mut self) -> Result<u32> {
        self.stream.read_u32().await.map_err(|error| self.io(error))
    }

    fn refused(&self, text: &str) -> Error {
        self.failed(&format!(
            "the server says '{text}': check user and password, or create another token, which is valid within seconds"
        ))
    }

    fn failed(&self, what: &str) -> Error {
        Error::Login {
            target: self.target.to_owned(),
            what: what.to_owned(),
        }
    }

    /// The error for a socket that fails during the login.
    fn io(&self, source: io::Error) -> Error {
        match alert(&source) {
            Some(what) => self.failed(&what),
            None if source.kind() == io::ErrorKind::UnexpectedEof => self.failed(
                "the server closed the connection: it takes no logins, or needs TLS; its log has the cause",
            ),
            None => Error::Connect {
                target: self.target.to_owned(),
                source,
            },
        }
    }
}

/// The error for a server that wants a login.
pub(crate) fn wants_login(target: &str) -> Error {
    Error::Login {
        target: target.to_owned(),
        what: "the server wants a login: give a client certificate, a user with a password, or a token"
            .to_owned(),
    }
}

/// The error for a secret that would be readable on the network.
pub(crate) fn in_clear(target: &str) -> Error {
    Error::Login {
        target: target.to_owned(),
        what:
            "the password or token would be readable on the network: give a CA file, so that TLS protects it"
                .to_owned(),
    }
}

#[cfg(test)]
mod tests;
