//! Messages to systemd, for a service of `Type=notify` (sd_notify(3)).
//!
//! systemd names a datagram socket in `NOTIFY_SOCKET`. The server sends `READY=1` there when it
//! accepts calls and `STOPPING=1` when a clean stop begins. If the unit has `WatchdogSec`, systemd
//! sets `WATCHDOG_USEC`, and the server sends `WATCHDOG=1` twice in each such period. A task of the
//! network threads sends it, so a process whose network threads are stuck is restarted.
//!
//! Without `NOTIFY_SOCKET` nothing is sent. Sending never blocks, and a failure is logged, since
//! the server does not depend on its supervisor.

use std::ffi::{OsStr, OsString};
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The process that started the server and wants to know its state.
#[derive(Debug, Default)]
pub(crate) struct Supervisor {
    /// Connected to systemd's socket; `None` without a supervisor.
    socket: Option<UnixDatagram>,
    /// Longest time between two messages of the watchdog, if it is on.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// The supervisor that the environment names.
    pub(crate) fn from_environment() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
            return Self::default();
        };
        let socket = connect(&name)
            .inspect_err(|error| {
                tracing::warn!(%error, "NOTIFY_SOCKET={}: no messages to systemd", name.display());
            })
            .ok();
        Self {
            socket,
            watchdog: watchdog(
                std::env::var_os("WATCHDOG_USEC"),
                std::env::var_os("WATCHDOG_PID"),
            ),
        }
    }

    /// Notifies the supervisor that calls are accepted.
    pub(crate) fn ready(&self) {
        self.send("READY=1");
    }

    /// Notifies the supervisor that a clean stop has begun.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Sends the watchdog's messages until the server stops. systemd checks them from `READY=1` to
    /// `STOPPING=1`.
    pub(crate) async fn watch(&self, stop: CancellationToken) {
        let Some(watchdog) = self.watchdog else { return };
        let mut ticks = tokio::time::interval(watchdog / 2);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => self.send("WATCHDOG=1"),
            }
        }
    }

    fn send(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(message.as_bytes()) {
            tracing::warn!(%error, "{message} did not reach systemd");
        }
    }
}

/// Connects to a socket with a path, or on Linux with an abstract name when it begins with `@`.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The watchdog's period. `pid` names the intended process; others merely inherited the variables.
fn watchdog(micros: Option<OsString>, pid: Option<OsString>) -> Option<Duration> {
    let number = |text: OsString| text.to_str()?.parse::<u64>().ok();
    let own = std::process::id();
    if pid.is_some_and(|pid| number(pid) != Some(u64::from(own))) {
        return None;
    }
    // Half a period must not be zero, and far less than a millisecond is no watchdog.
    let period = Duration::from_micros(number(micros?)?);
    (period >= Duration::from_millis(1)).then_some(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn receiver(address: &SocketAddr) -> UnixDatagram {
        let socket = UnixDatagram::bind_addr(address).expect("a free name");
        let limit = Some(Duration::from_secs(20));
        socket.set_read_timeout(limit).expect("a valid limit");
        socket
    }

    fn next(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).expect("a message within the limit");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn messages_reach_sockets_with_a_path_and_abstract_ones() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("notify");
        let abstract_name = format!("basalt-test-{}", std::process::id());
        for (name, address) in [
            (path.clone().into_os_string(), SocketAddr::from_pathname(&path)),
            (
                format!("@{abstract_name}").into(),
                SocketAddr::from_abstract_name(&abstract_name),
            ),
        ] {
            let systemd = receiver(&address.expect("a valid name"));
            let supervisor = Supervisor {
                socket: Some(connect(&name).expect("it is bound")),
                watchdog: None,
            };
            supervisor.ready();
            supervisor.stopping();
            assert_eq!([next(&systemd), next(&systemd)], ["READY=1", "STOPPING=1"]);
        }
    }

    #[test]
    fn a_watchdog_is_fed_until_the_stop() {
        let (ours, systemd) = UnixDatagram::pair().expect("a pair of sockets");
        let supervisor = Supervisor {
            socket: Some(ours),
            watchdog: Some(Duration::from_millis(20)),
        };
        let stop = CancellationToken::new();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let watching = supervisor.watch(stop.clone());
            let received = async {
                let waiting = tokio::task::spawn_blocking(move || [next(&systemd), next(&systemd)]);
                let messages = waiting.await.expect("no panic");
                stop.cancel();
                messages
            };
            let ((), messages) = tokio::join!(watching, received);
            assert_eq!(messages, ["WATCHDOG=1", "WATCHDOG=1"]);
        });
    }

    #[test]
    fn variables_of_other_processes_start_no_watchdog() {
        let own = || Some(std::process::id().to_string().into());
        let seconds = || Some("30000000".into());
        assert_eq!(watchdog(seconds(), own()), Some(Duration::from_secs(30)));
        assert_eq!(watchdog(seconds(), None), Some(Duration::from_secs(30)));
        assert_eq!(watchdog(seconds(), Some("1".into())), None);
        assert_eq!(watchdog(seconds(), Some("x".into())), None);
        for wrong in ["", "0", "999", "-1", "soon"] {
            assert_eq!(watchdog(Some(wrong.into()), own()), None, "{wrong:?}");
        }
        assert_eq!(watchdog(None, own()), None);
    }

    #[test]
    fn a_missing_socket_is_an_error() {
        let error = connect(OsStr::new("/nowhere/notify")).expect_err("no such socket");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
