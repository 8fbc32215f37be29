//! The bare echo: reads as many bytes as a call has, answers with as many zeros as a reply has. It knows no message.
//!
//! It runs in a process of its own, as a server does: the tool starts itself again with a hidden option.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::error::{Error, Result};

/// How the echo serves its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Style {
    /// A thread for each.
    Threads,
    /// Tasks on tokio's threads, as Basalt has them.
    Tokio,
}

impl Style {
    fn name(self) -> &'static str {
        match self {
            Style::Threads => "threads",
            Style::Tokio => "tokio",
        }
    }
}

/// A running echo. Killed when dropped.
#[derive(Debug)]
pub(super) struct Echo {
    child: Child,
    pub(super) address: SocketAddr,
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Usage(format!("the echo {what}: {error}"))
}

impl Echo {
    /// Starts one for calls and replies of so many bytes.
    pub(super) fn start(style: Style, call_bytes: usize, reply_bytes: usize) -> Result<Echo> {
        let program = std::env::current_exe().map_err(|error| failed("is not found", &error))?;
        let mut child = Command::new(program)
            .args(["roundtrip", "--echo", style.name(), "--serve-echo"])
            .args([call_bytes.to_string(), reply_bytes.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed("does not start", &error))?;
        let mut line = String::new();
        let read = match child.stdout.take() {
            Some(stdout) => BufReader::new(stdout).read_line(&mut line),
            None => Ok(0),
        };
        let address = read.map_err(|error| failed("does not say its address", &error));
        let address = address.and_then(|_| {
            line.trim()
                .parse()
                .map_err(|error| failed("does not say its address", &error))
        });
        match address {
            Ok(address) => Ok(Echo { child, address }),
            Err(error) => {
                stop(&mut child);
                Err(error)
            }
        }
    }
}

fn stop(child: &mut Child) {
    // It may be gone already; either way there is nothing left to stop.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Echo {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// Serves until the process is killed.
pub(super) async fn serve(style: Style, call_bytes: usize, reply_bytes: usize) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed("cannot listen", &error))?;
    let address = listener
        .local_addr()
        .map_err(|error| failed("has no address", &error))?;
    println!("{address}");
    let accepting = |error| failed("cannot accept a connection", &error);
    match style {
        Style::Threads => loop {
            let (stream, _) = listener.accept().map_err(accepting)?;
            // It ends with its connection.
            std::thread::spawn(move || echo(stream, call_bytes, reply_bytes));
        },
        Style::Tokio => {
            listener.set_nonblocking(true).map_err(accepting)?;
            let listener = tokio::net::TcpListener::from_std(listener).map_err(accepting)?;
            loop {
                let (stream, _) = listener.accept().await.map_err(accepting)?;
                tokio::spawn(echo_async(stream, call_bytes, reply_bytes));
            }
        }
    }
}

fn echo(mut stream: TcpStream, call_bytes: usize, reply_bytes: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut call, reply) = (vec![0; call_bytes], vec![0; reply_bytes]);
    loop {
        stream.read_exact(&mut call)?;
        stream.write_all(&reply)?;
    }
}

async fn echo_async(
    mut stream: tokio::net::TcpStream,
    call_bytes: usize,
    reply_bytes: usize,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut call, reply) = (vec![0; call_bytes], vec![0; reply_bytes]);
    loop {
        stream.read_exact(&mut call).await?;
        stream.write_all(&reply).await?;
    }
}
