//! One call on a socket: a frame there, a frame back, within a time.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::body::{BadBody, Reader};
use crate::error::Error;
use crate::filter::read_loads;
use crate::frame::{self, Kind};
use crate::process::Process;

/// Time that a late host has to tell the stacks of its threads.
const DUMP_WAIT: Duration = Duration::from_secs(2);
/// Most bytes of these stacks that are logged.
const DUMP_BYTES: usize = 64 << 10;

/// Logs the stacks of all threads of a process.
pub(crate) fn log_threads(process: &Process) {
    let dump = process
        .connect()
        .and_then(|socket| exchange(&socket, Kind::Dump, &[], DUMP_WAIT));
    match dump {
        Ok((Kind::Ok, body)) => {
            let text = Reader::new(&body).text().unwrap_or_default();
            let end = text.floor_char_boundary(DUMP_BYTES);
            tracing::warn!("threads of the Java host:\n{}", &text[..end]);
        }
        Ok(_) | Err(_) => process.print_threads(),
    }
}

/// Sends a frame and receives one, within this time.
pub(crate) fn exchange(
    socket: &UnixStream,
    kind: Kind,
    body: &[u8],
    time: Duration,
) -> io::Result<(Kind, Vec<u8>)> {
    let mut timed = Timed {
        socket,
        until: Instant::now() + time,
    };
    frame::write(&mut timed, kind, body)?;
    frame::read(&mut timed)
}

pub(crate) fn thrown(body: &[u8]) -> Result<Error, BadBody> {
    let mut read = Reader::new(body);
    let thrown = Error::Thrown {
        loaded: read_loads(&mut read)?,
        is_io: read.flag()?,
        is_final: read.flag()?,
        class: read.text()?,
        message: read.text()?,
    };
    read.end()?;
    Ok(thrown)
}

/// A socket whose reads and writes together end by a time: a peer that sends byte by byte gains nothing.
struct Timed<'s> {
    socket: &'s UnixStream,
    until: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl io::Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        io::Read::read(&mut self.socket, into)
    }
}

impl io::Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        io::Write::write(&mut self.socket, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
