//! `--ephemeral -- COMMAND`: a command that runs while the server serves. Its end ends the server, whose exit
//! code is the command's.
//!
//! The command finds the server by its environment: [`TARGET`] is the address for clients, [`HTTP`] that of
//! the HTTP port.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::oneshot;

/// Variable with the address of the port for all binary protocols. The shell and `basalt-bench` read it.
const TARGET: &str = "BASALT_TARGET";
/// Variable with the address of the HTTP port.
const HTTP: &str = "BASALT_HTTP";
/// Exit codes of commands that a signal ended begin behind this, as in shells.
const SIGNALLED: i32 = 128;

/// A command that was started.
#[derive(Debug)]
pub(crate) struct Running {
    process: Pid,
    ended: oneshot::Receiver<std::io::Result<ExitStatus>>,
}

impl Running {
    /// Starts the command. The error names it.
    pub(crate) fn start(
        words: &[OsString],
        listen: SocketAddr,
        http: SocketAddr,
    ) -> Result<Option<Self>, String> {
        let Some((program, arguments)) = words.split_first() else {
            return Ok(None);
        };
        let refused =
            |error: std::io::Error| format!("the command {} cannot be run: {error}", program.display());
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env(TARGET, listen.to_string())
            .env(HTTP, http.to_string());
        let mut child = command.spawn().map_err(refused)?;
        let process = Pid::from_child(&child);
        let (sender, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("basalt-command".into());
        let waiting = thread.spawn(move || {
            // The receiver is gone if the server stopped by an error of its own.
            let _ = sender.send(child.wait());
        });
        waiting.map_err(refused)?;
        Ok(Some(Self { process, ended }))
    }

    /// The exit code of the command, when it has ended.
    pub(crate) async fn ended(&mut self) -> ExitCode {
        match (&mut self.ended).await {
            Ok(Ok(status)) => exit_code(status),
            Ok(Err(error)) => {
                tracing::error!(%error, "the end of the command is not known");
                ExitCode::FAILURE
            }
            Err(_closed) => ExitCode::FAILURE,
        }
    }

    /// Asks the command to end, and waits for it.
    pub(crate) async fn stop(mut self) -> ExitCode {
        if self.ended.is_empty()
            && let Err(error) = kill_process(self.process, Signal::TERM)
        {
            tracing::warn!(%error, "the command was not asked to end");
        }
        self.ended().await
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(SIGNALLED + status.signal()?));
    let code = code.and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(script: &str) -> ExitCode {
        let words = ["sh", "-c", script].map(OsString::from);
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut running = Running::start(&words, address(1), address(2)).unwrap().unwrap();
            running.ended().await
        })
    }

    #[test]
    fn the_exit_code_is_that_of_the_command() {
        let same = |code: ExitCode, other: u8| format!("{code:?}") == format!("{:?}", ExitCode::from(other));
        assert!(same(code_of("exit 7"), 7));
        assert!(same(code_of("kill -9 $$"), 137));
        assert!(same(
            code_of("test $BASALT_TARGET = 127.0.0.1:1 && test $BASALT_HTTP = 127.0.0.1:2"),
            0
        ));
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(Running::start(&[], address, address).unwrap().is_none());
        let refused = Running::start(&["/there/is/no/such".into()], address, address).unwrap_err();
        assert!(refused.contains("/there/is/no/such cannot be run"), "{refused}");
    }
}
