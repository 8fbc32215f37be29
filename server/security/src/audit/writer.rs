//! The file of the audit log, and the thread that writes it.
//!
//! A caller encodes its event and puts the line into a bounded queue; it never waits for the disk.
//! The thread appends the lines, and writes out its buffer when the queue is empty.
//!
//! An event that finds the queue full, and one that cannot be written, is dropped:
//! [`Status::dropped`] counts it, and a line `"event":"dropped"` with the number follows as soon as
//! the file takes one.
//!
//! Dropping the log writes out and syncs what is in the queue. [`AuditLog::reopen`] and
//! [`AuditLog::flush`] return when the thread has done it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::{Event, line};
use crate::{Error, Result};

/// The thread writes out its buffer when it has this much, and when the queue is empty.
const BUFFER_BYTES: usize = 64 << 10;

/// The audit log.
#[derive(Debug)]
pub struct AuditLog {
    queue: Option<SyncSender<Command>>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// State of the log, for metrics and pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Events in the file.
    pub written: u64,
    /// Events that were lost. After a failed write these are all that it contained, also those that
    /// have reached the file.
    pub dropped: u64,
    /// The last error, if the last write has failed.
    pub error: Option<String>,
}

#[derive(Debug, Default)]
struct Counters {
    written: AtomicU64,
    dropped: AtomicU64,
    error: Mutex<Option<String>>,
}

enum Command {
    Line(Vec<u8>, SystemTime),
    /// Writes out and syncs the file, then reports.
    Flush(SyncSender<io::Result<()>>),
    /// Writes out the file and opens the one that has its name now, then reports.
    Reopen(SyncSender<io::Result<()>>),
}

impl AuditLog {
    /// Opens the file for appending, with mode 0600 if it is new. The queue takes `queued_max`
    /// events.
    pub fn open(path: &Path, queued_max: usize) -> Result<Self> {
        let file = open(path).map_err(|error| fault(path, "it cannot be opened", &error))?;
        let counters = Arc::new(Counters::default());
        let (queue, commands) = sync_channel(queued_max);
        let writer = Writer {
            path: path.to_owned(),
            file,
            counters: Arc::clone(&counters),
            buffer: Vec::new(),
            buffered: 0,
            reported: 0,
            time: SystemTime::UNIX_EPOCH,
            is_torn: false,
        };
        let thread = std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer.run(&commands));
        let thread = thread.map_err(|error| fault(path, "its thread cannot be started", &error))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            counters,
        })
    }

    /// Writes an event, or counts it as dropped. Does not block.
    pub fn write(&self, event: &Event<'_>, now: SystemTime) {
        let result = self.queue().try_send(Command::Line(line(event, now), now));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = result {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes out and syncs the events so far. Blocks.
    pub fn flush(&self) -> io::Result<()> {
        self.ask(Command::Flush)
    }

    /// Opens the file again, after it was renamed by a rotation. Blocks. On failure the log goes on
    /// with the old one.
    pub fn reopen(&self) -> io::Result<()> {
        self.ask(Command::Reopen)
    }

    /// Counts of events.
    pub fn status(&self) -> Status {
        Status {
            written: self.counters.written.load(Ordering::Relaxed),
            dropped: self.counters.dropped.load(Ordering::Relaxed),
            error: self.counters.error.lock().clone(),
        }
    }

    fn ask(&self, command: impl FnOnce(SyncSender<io::Result<()>>) -> Command) -> io::Result<()> {
        let (answer, answered) = sync_channel(1);
        let gone = || io::Error::other("the thread of the audit log has ended");
        self.queue().send(command(answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }

    fn queue(&self) -> &SyncSender<Command> {
        self.queue.as_ref().expect("it is taken when the log is dropped")
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by its own message.
            let _ = thread.join();
        }
    }
}

/// The thread's side.
struct Writer {
    path: PathBuf,
    file: File,
    counters: Arc<Counters>,
    /// Lines that are not in the file yet.
    buffer: Vec<u8>,
    /// Number of events in the buffer.
    buffered: u64,
    /// Dropped events that a line in the file reports.
    reported: u64,
    /// Time of the last event.
    time: SystemTime,
    /// Whether the file may end inside a line, after a failed write.
    is_torn: bool,
}

impl Writer {
    fn run(mut self, commands: &Receiver<Command>) {
        loop {
            let command = match commands.try_recv() {
                Err(TryRecvError::Empty) => {
                    // An error is in the counters.
                    let _ = self.write_out();
                    commands.recv().map_err(|_| TryRecvError::Disconnected)
                }
                result => result,
            };
            match command {
                Ok(Command::Line(line, time)) => self.append(&line, time),
                // The caller may have gone.
                Ok(Command::Flush(answer)) => drop(answer.send(self.sync())),
                Ok(Command::Reopen(answer)) => drop(answer.send(self.reopen())),
                Err(_) => break,
            }
        }
        let _ = self.sync();
    }

    fn append(&mut self, line: &[u8], time: SystemTime) {
        self.time = time;
        self.buffer.extend_from_slice(line);
        self.buffered += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            let _ = self.write_out();
        }
    }

    /// Writes the buffer to the file. On failure its events count as dropped: a disk that is full
    /// for long must not take the memory, too.
    fn write_out(&mut self) -> io::Result<()> {
        let dropped = self.counters.dropped.load(Ordering::Relaxed);
        if dropped > self.reported {
            self.report(dropped - self.reported);
        }
        let result = self.write_buffer();
        let counter = if result.is_ok() {
            self.reported = dropped;
            &self.counters.written
        } else {
            &self.counters.dropped
        };
        counter.fetch_add(self.buffered, Ordering::Relaxed);
        self.buffered = 0;
        self.buffer.clear();
        *self.counters.error.lock() = result.as_ref().err().map(ToString::to_string);
        result
    }

    /// Writes the buffer, and notes whether the file ends inside a line.
    fn write_buffer(&mut self) -> io::Result<()> {
        let mut rest = &self.buffer[..];
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.is_torn = rest[written - 1] != b'\n';
                    rest = &rest[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds a line on dropped events. It is no event itself.
    fn report(&mut self, count: u64) {
        if self.is_torn {
            self.buffer.insert(0, b'\n');
        }
        let time = humantime::format_rfc3339_millis(self.time);
        let report = format!("{{\"time\":\"{time}\",\"event\":\"dropped\",\"count\":{count}}}\n");
        self.buffer.extend_from_slice(report.as_bytes());
    }

    fn sync(&mut self) -> io::Result<()> {
        self.write_out()?;
        match self.file.sync_data() {
            // A pipe or terminal.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        // A full disk is a reason to rotate: the file is opened also when the old one takes no
        // more.
        let result = self.write_out();
        self.file = open(&self.path)?;
        self.is_torn = false;
        result
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

fn fault(path: &Path, what: &str, error: &io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        line: 0,
        problem: format!("{what}: {error}"),
        remedy: "check space and permissions of its directory",
    }
}
