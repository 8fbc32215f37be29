//! The host as callers see it: permits, sockets, deadlines.
//!
//! 1. [`Host::enter`] takes a permit, of which there is one for each socket, and at most half of them for one
//!    table. It starts a process if there is none, and takes an idle socket or connects one: a [`Seat`].
//! 2. [`Seat::exchange`] sends a call and waits for the answer, at most for the deadline.
//! 3. A seat that is dropped returns permit and socket.
//!
//! A call that is late has the stacks of all threads logged. Its process is *retired*: it gets no further
//! call, and is ended with the last call that it has. A thread that loops in it can be stopped in no other
//! way.
//!
//! Locks: `state` alone, never during I/O.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::body::Writer;
use crate::error::Error;
use crate::exchange;
use crate::frame::{self, Kind};
use crate::process::Process;
use crate::settings::Settings;
use crate::supervision::{Failures, NoStart, STRIKES_MAX};

/// Time that a call waits for a permit.
const PERMIT_WAIT: Duration = Duration::from_millis(100);
/// Longest wait for a start that has to be put off.
const START_WAIT: Duration = Duration::from_secs(1);
/// Most handles of closed filters that wait for the next call; more are left to the end of the process.
const CLOSED_MAX: usize = 100_000;
/// Most of them in one call.
const CLOSED_A_CALL: usize = 1_000;

/// Class and table of a call, for limits and errors.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The class of the user.
    pub class: &'a str,
    /// The table.
    pub table: &'a str,
}

/// Counts since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Processes that were started.
    pub starts: u64,
    /// Processes that have failed: they ended, were late, or did not start.
    pub failures: u64,
}

/// A process with its sockets.
#[derive(Debug)]
struct Incarnation {
    number: u64,
    process: Process,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Arc<Incarnation>>,
    /// A thread is starting a process.
    is_starting: bool,
    /// Connections of the running process that no call uses.
    idle: Vec<UnixStream>,
    taken: usize,
    by_table: HashMap<String, usize>,
    failures: Failures,
    /// Handles of filters of the running process that are to be closed.
    closed: Vec<u64>,
    is_stopped: bool,
}

/// The Java host. Starts a process with the first call.
#[derive(Debug)]
pub struct Host {
    settings: Settings,
    state: Mutex<State>,
    /// A permit was returned, or a start has ended.
    changed: Condvar,
    handles: AtomicU64,
    starts: AtomicU64,
    failed: AtomicU64,
}

impl Host {
    /// A host without a process.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: Mutex::default(),
            changed: Condvar::new(),
            handles: AtomicU64::new(1),
            starts: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// A number that no other filter has.
    pub fn new_handle(&self) -> u64 {
        self.handles.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts since the server's start.
    pub fn figures(&self) -> Figures {
        Figures {
            starts: self.starts.load(Ordering::Relaxed),
            failures: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Has the filter of this handle closed with the next call, unless its process is gone.
    pub fn forget(&self, incarnation: u64, handle: u64) {
        let mut state = self.state.lock();
        let is_running = state
            .running
            .as_ref()
            .is_some_and(|running| running.number == incarnation);
        if is_running && state.closed.len() < CLOSED_MAX {
            state.closed.push(handle);
        }
    }

    /// Ends the process. Calls are refused from now on.
    pub fn stop(&self) {
        let running = {
            let mut state = self.state.lock();
            state.is_stopped = true;
            state.idle.clear();
            state.running.take()
        };
        if let Some(running) = running {
            running.process.kill();
        }
        self.changed.notify_all();
    }

    /// A seat for one or more exchanges. Blocks: for a permit for a moment, and for the start of a process.
    pub fn enter<'h>(&'h self, purpose: Purpose<'_>) -> Result<Seat<'h>, Error> {
        self.check_class(purpose.class)?;
        let permit = self.permit(purpose.table)?;
        let (incarnation, idle) = self.running()?;
        let socket = match idle {
            Some(socket) => socket,
            None => self.connect(&incarnation)?,
        };
        Ok(Seat {
            host: self,
            class: purpose.class.to_owned(),
            socket: Some(socket),
            incarnation,
            _permit: permit,
        })
    }

    fn check_class(&self, class: &str) -> Result<(), Error> {
        if self.state.lock().failures.is_given_up(class, Instant::now()) {
            return Err(Error::GivenUp(format!(
                "the last {STRIKES_MAX} calls of the class ended the Java host or were late; it is refused for a minute"
            )));
        }
        Ok(())
    }

    fn permit(&self, table: &str) -> Result<Permit<'_>, Error> {
        let sockets = self.settings.sockets.max(1);
        let of_table = (sockets / 2).max(1);
        let until = Instant::now() + PERMIT_WAIT;
        let mut state = self.state.lock();
        loop {
            let taken_by_table = state.by_table.get(table).copied().unwrap_or(0);
            let limit = if state.taken >= sockets {
                Some((sockets, "all tables"))
            } else if taken_by_table >= of_table {
                Some((of_table, "one table"))
            } else {
                None
            };
            let Some((sockets, of)) = limit else { break };
            if self.changed.wait_until(&mut state, until).timed_out() {
                return Err(Error::Busy { sockets, of });
            }
        }
        state.taken += 1;
        *state.by_table.entry(table.to_owned()).or_default() += 1;
        Ok(Permit {
            host: self,
            table: table.to_owned(),
        })
    }

    /// The running process, which is started if there is none, and an idle socket.
    fn running(&self) -> Result<(Arc<Incarnation>, Option<UnixStream>), Error> {
        let until = Instant::now() + START_WAIT;
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return Err(Error::NotStarted("the server is stopping".into()));
            }
            if let Some(running) = state.running.clone() {
                return Ok((running, state.idle.pop()));
            }
            if state.is_starting {
                self.changed.wait(&mut state);
                continue;
            }
            match state.failures.may_start(Instant::now()) {
                Ok(()) => break,
                Err(NoStart::GivenUp(times)) => {
                    return Err(Error::GivenUp(format!(
                        "the Java host has failed {times} times within a minute; the server's log has the reasons"
                    )));
                }
                Err(NoStart::Later(left)) if Instant::now() + left > until => {
                    return Err(Error::NotStarted(format!(
                        "it is started anew in {} ms",
                        left.as_millis()
                    )));
                }
                Err(NoStart::Later(left)) => {
                    let then = Instant::now() + left;
                    self.changed.wait_until(&mut state, then);
                }
            }
        }
        state.is_starting = true;
        drop(state);
        let started = Process::start(&self.settings);
        let mut state = self.state.lock();
        state.is_starting = false;
        self.changed.notify_all();
        match started {
            Ok(process) if !state.is_stopped => {
                let number = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
                let incarnation = Arc::new(Incarnation { number, process });
                state.running = Some(Arc::clone(&incarnation));
                Ok((incarnation, None))
            }
            Ok(_) => Err(Error::NotStarted("the server is stopping".into())),
            Err(why) => {
                tracing::error!("the Java host does not start: {why}");
                self.failed.fetch_add(1, Ordering::Relaxed);
                state.failures.failed(Instant::now());
                Err(Error::NotStarted(why))
            }
        }
    }

    fn connect(&self, incarnation: &Arc<Incarnation>) -> Result<UnixStream, Error> {
        let greeted = incarnation.process.connect().and_then(|socket| {
            let mut hello = Writer::new();
            hello.u32(frame::VERSION);
            let answer = exchange::exchange(&socket, Kind::Hello, hello.as_slice(), self.settings.deadline)?;
            Ok((socket, answer))
        });
        match greeted {
            Ok((socket, (Kind::Ok, body))) if body == frame::VERSION.to_be_bytes() => Ok(socket),
            Ok((_, (_, body))) => Err(Error::GivenUp(format!(
                "the Java host (user_code.java_host) is of another version than this server: it answers {body:?} in place of {}",
                frame::VERSION
            ))),
            Err(error) => {
                tracing::warn!(%error, "the Java host takes no connection");
                self.retire(incarnation);
                Err(Error::Ended)
            }
        }
    }

    /// Gives the process no further calls. Calls that it has end by their own deadlines; with the last one it
    /// is ended.
    fn retire(&self, incarnation: &Arc<Incarnation>) {
        let mut state = self.state.lock();
        let is_running = state
            .running
            .as_ref()
            .is_some_and(|running| Arc::ptr_eq(running, incarnation));
        if !is_running {
            return;
        }
        state.running = None;
        state.idle.clear();
        state.closed.clear();
        state.failures.failed(Instant::now());
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// The right to one socket.
#[derive(Debug)]
struct Permit<'h> {
    host: &'h Host,
    table: String,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.host.state.lock();
        state.taken -= 1;
        if let Some(count) = state.by_table.get_mut(&self.table) {
            *count -= 1;
            if *count == 0 {
                state.by_table.remove(&self.table);
            }
        }
        self.host.changed.notify_all();
    }
}

/// A socket of a running process, for the calls of one thread.
#[derive(Debug)]
pub struct Seat<'h> {
    host: &'h Host,
    class: String,
    /// `None` once something went wrong on it.
    socket: Option<UnixStream>,
    incarnation: Arc<Incarnation>,
    _permit: Permit<'h>,
}

impl Seat<'_> {
    /// The number of the process. Filters that were opened in another one are gone.
    pub fn incarnation(&self) -> u64 {
        self.incarnation.number
    }

    /// Handles that are to be closed in this process: to be sent with the next call.
    pub fn take_closed(&self) -> Vec<u64> {
        let mut state = self.host.state.lock();
        let is_running = state
            .running
            .as_ref()
            .is_some_and(|running| Arc::ptr_eq(running, &self.incarnation));
        if !is_running {
            return Vec::new();
        }
        let keep = state.closed.len().saturating_sub(CLOSED_A_CALL);
        state.closed.split_off(keep)
    }

    /// Makes a call and returns the body of its answer.
    pub fn exchange(&mut self, kind: Kind, body: &[u8]) -> Result<Vec<u8>, Error> {
        if body.len() >= frame::BYTES_MAX {
            return Err(Error::TooLarge);
        }
        let Some(socket) = self.socket.take() else {
            return Err(Error::Ended);
        };
        let exchanged = exchange::exchange(&socket, kind, body, self.host.settings.deadline);
        match exchanged {
            Ok((Kind::Ok, body)) => {
                self.socket = Some(socket);
                self.host.state.lock().failures.answered(&self.class);
                Ok(body)
            }
            Ok((Kind::Thrown, body)) => {
                let thrown = exchange::thrown(&body).map_err(|error| Error::Nonsense(error.to_string()))?;
                self.socket = Some(socket);
                self.host.state.lock().failures.answered(&self.class);
                Err(thrown)
            }
            Ok((other, _)) => Err(Error::Nonsense(format!("a frame of kind {other:?}"))),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// The error of a call that had no answer. The socket is closed.
    fn failed(&self, error: &io::Error) -> Error {
        use io::ErrorKind::{InvalidData, TimedOut, WouldBlock};
        match error.kind() {
            InvalidData => Error::Nonsense(error.to_string()),
            TimedOut | WouldBlock => {
                let class = &self.class;
                tracing::warn!(
                    class,
                    "user code has not answered in time; the Java host is started anew"
                );
                exchange::log_threads(&self.incarnation.process);
                self.strike();
                self.host.retire(&self.incarnation);
                Error::Late(self.host.settings.deadline)
            }
            _ if self.incarnation.process.has_ended() => {
                tracing::warn!(class = self.class, "the Java host has ended during a call");
                self.strike();
                self.host.retire(&self.incarnation);
                Error::Ended
            }
            _ => Error::Nonsense(format!("it has closed the socket: {error}")),
        }
    }

    fn strike(&self) {
        self.host
            .state
            .lock()
            .failures
            .strike(&self.class, Instant::now());
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        let mut state = self.host.state.lock();
        let is_running = state
            .running
            .as_ref()
            .is_some_and(|running| Arc::ptr_eq(running, &self.incarnation));
        if is_running {
            state.idle.push(socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const PURPOSE: Purpose<'_> = Purpose {
        class: "org.example.Filter",
        table: "t",
    };

    fn settings(command: &str) -> Settings {
        Settings {
            command: command.into(),
            program: "host.jar".into(),
            class_path: "lib/*".into(),
            directories: Vec::new(),
            heap_bytes: 64 << 20,
            deadline: Duration::from_secs(5),
            start_max: Duration::from_secs(20),
            sockets: 4,
        }
    }

    /// A host that cannot be started: the call that wants it is refused with the reason, calls that follow
    /// wait for the next start, and after five failures they are refused for good.
    #[test]
    fn a_host_that_does_not_start_is_given_up() {
        let missing = Host::new(settings("/no/such/java"));
        let refused = missing.enter(PURPOSE).unwrap_err();
        assert!(
            refused.can_retry() && refused.to_string().contains("user_code.java_command"),
            "{refused}"
        );

        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("java");
        std::fs::write(&script, "#!/bin/sh\necho out of luck\nexit 3\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let host = Host::new(settings(script.to_str().unwrap()));
        let mut texts = Vec::new();
        loop {
            let refused = host.enter(PURPOSE).unwrap_err();
            texts.push(refused.to_string());
            if !refused.can_retry() {
                break;
            }
        }
        assert!(
            texts[0].contains("it ends at once; its last lines: out of luck"),
            "{texts:?}"
        );
        assert!(
            texts.last().unwrap().contains("5 times within a minute"),
            "{texts:?}"
        );
        assert_eq!(
            host.figures(),
            Figures {
                starts: 0,
                failures: 5
            }
        );
        assert_eq!(host.state.lock().taken, 0);
    }

    /// Permits: half of the sockets for one table, all of them for all tables, and no more.
    #[test]
    fn permits_are_bounded() {
        let host = Host::new(settings("java"));
        let held: Vec<_> = ["a", "a", "b", "b"]
            .map(|table| host.permit(table).unwrap())
            .into();
        let busy = host.permit("c").unwrap_err();
        assert_eq!(
            busy,
            Error::Busy {
                sockets: 4,
                of: "all tables"
            }
        );
        drop(held);
        let held: Vec<_> = ["a", "a"].map(|table| host.permit(table).unwrap()).into();
        let busy = host.permit("a").unwrap_err();
        assert_eq!(
            busy,
            Error::Busy {
                sockets: 2,
                of: "one table"
            }
        );
        host.permit("b").unwrap();
        drop(held);
        assert!(host.state.lock().by_table.is_empty());
    }

    #[test]
    fn a_stopped_host_takes_no_calls() {
        let host = Host::new(settings("java"));
        host.stop();
        let refused = host.enter(PURPOSE).unwrap_err();
        assert!(refused.to_string().contains("stopping"), "{refused}");
        assert_eq!(host.figures(), Figures::default());
    }
}
