//! The queue of log lines between the threads that log and standard error, which may be slow,
//! blocked or closed.
//!
//! 1. A thread that logs copies its line into the queue and never waits for the write. A full queue
//!    drops the line.
//! 2. The thread `basalt-log` writes the lines in order. Only this thread blocks while a pipe is
//!    full, a terminal is stopped, or the reader of the log hangs. A line that standard error
//!    refuses (the reader or the terminal is closed) is lost.
//! 3. The first line written after a loss is followed by a line with the number of lost lines.
//!    [`dropped`] counts them for the metrics.
//! 4. Before the process ends, [`flush`] waits for the queue to empty, for at most [`FLUSH_LIMIT`].
//!
//! Invariants: once the queue is started, only `basalt-log` writes to standard error, also for the
//! panic hook; the queue holds at most [`QUEUE_BYTES_MAX`].

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Most bytes in the queue: about ten thousand lines.
const QUEUE_BYTES_MAX: usize = 1 << 20;

/// Pause before a retry when standard error is non-blocking and full. Another process that shares
/// it may have made it non-blocking.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// Exit code after a failed write to the log or the manifest (EX_SOFTWARE in sysexits.h), or when the
/// system refuses something that the server cannot do without: the server must be restarted, and
/// recovers then.
pub(crate) const EXIT_LOG_FAILED: i32 = 70;

/// Longest wait for the queue to empty before the process ends.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The queue of the process.
static PROCESS: OnceLock<LogQueue> = OnceLock::new();

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// A line is being written.
    is_writing: bool,
    /// Lines lost since a loss was last logged.
    unreported: u64,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a line is queued.
    came: Condvar,
    /// Notified when the queue is empty and no line is being written.
    emptied: Condvar,
    /// Lines lost since the start.
    dropped: AtomicU64,
}

/// A queue and its writer thread, shared by clones. Each [`Write::write`] queues one line.
#[derive(Clone, Debug)]
pub(crate) struct LogQueue(Arc<Shared>);

impl LogQueue {
    /// Starts the writer thread.
    fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = Self(Arc::default());
        let shared = Arc::clone(&queue.0);
        std::thread::Builder::new()
            .name("basalt-log".into())
            .spawn(move || shared.serve(out))?;
        Ok(queue)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.0.state.lock();
        if state.bytes + line.len() > QUEUE_BYTES_MAX {
            state.unreported += 1;
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line.to_vec());
        self.0.came.notify_one();
    }

    /// Waits until all lines are written, for at most `limit`; `false` if some are left.
    fn drain(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.0.state.lock();
        while !state.lines.is_empty() || state.is_writing {
            if self.0.emptied.wait_until(&mut state, deadline).timed_out() {
                return state.lines.is_empty() && !state.is_writing;
            }
        }
        true
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn serve(&self, mut out: impl Write) {
        loop {
            let line = self.next();
            let written = write_line(&mut out, &line);
            let lost = self.written(line.len(), written.is_ok());
            if let Some(lines) = lost {
                tracing::warn!(
                    lines,
                    "log lines were lost before this one: standard error did not take them"
                );
            }
        }
    }

    fn next(&self) -> Vec<u8> {
        let mut state = self.state.lock();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.is_writing = true;
                return line;
            }
            self.came.wait(&mut state);
        }
    }

    /// Records the end of a write. After a successful write, returns the number of lines lost
    /// before it, if any.
    fn written(&self, bytes: usize, is_good: bool) -> Option<u64> {
        let mut state = self.state.lock();
        state.bytes -= bytes;
        state.is_writing = false;
        if state.lines.is_empty() {
            self.emptied.notify_all();
        }
        if !is_good {
            state.unreported += 1;
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(std::mem::take(&mut state.unreported)).filter(|lines| *lines > 0)
    }
}

/// Writes the whole line, however long that takes.
fn write_line(out: &mut impl Write, mut line: &[u8]) -> io::Result<()> {
    while !line.is_empty() {
        match out.write(line) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => line = &line[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(FULL_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The queue of the process, in front of standard error. The first call starts it and reports
/// panics through it from then on. A panic that `refusal` has a sentence for is no bug: the process
/// ends with that sentence and [`EXIT_LOG_FAILED`].
pub(crate) fn start(refusal: fn(&str) -> Option<String>) -> io::Result<LogQueue> {
    if let Some(queue) = PROCESS.get() {
        return Ok(queue.clone());
    }
    let queue = LogQueue::start(io::stderr())?;
    let reports = queue.clone();
    std::panic::set_hook(Box::new(move |panic| {
        if let Some(sentence) = panic.payload_as_str().and_then(refusal) {
            reports.push(format!("{sentence}\n").as_bytes());
            exit(EXIT_LOG_FAILED);
        }
        let backtrace = std::backtrace::Backtrace::capture();
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed").to_owned();
        let shown = match backtrace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{backtrace}"),
            _ => String::new(),
        };
        reports.push(format!("thread '{name}' {panic}{shown}\n").as_bytes());
        reports.drain(FLUSH_LIMIT);
    }));
    Ok(PROCESS.get_or_init(|| queue).clone())
}

/// Writes a line to standard error, and waits for at most [`FLUSH_LIMIT`] until it is written.
pub(crate) fn say(text: &str) {
    match PROCESS.get() {
        Some(queue) => {
            queue.push(format!("{text}\n").as_bytes());
            queue.drain(FLUSH_LIMIT);
        }
        // If standard error is closed, the text has no other place to go.
        None => drop(writeln!(io::stderr(), "{text}")),
    }
}

/// Waits for the queue to empty, for at most [`FLUSH_LIMIT`]. Call it before the process ends.
pub(crate) fn flush() {
    if let Some(queue) = PROCESS.get() {
        queue.drain(FLUSH_LIMIT);
    }
}

/// Lines that standard error did not take since the start.
pub(crate) fn dropped() -> u64 {
    PROCESS
        .get()
        .map_or(0, |queue| queue.0.dropped.load(Ordering::Relaxed))
}

/// Flushes the log lines, then ends the process.
pub(crate) fn exit(code: i32) -> ! {
    flush();
    std::process::exit(code)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// A standard error whose result for each write is scripted.
    struct Told {
        answers: mpsc::Receiver<io::Result<usize>>,
        taken: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.answers.recv().map_err(io::Error::other)??.min(bytes.len());
            self.taken
                .send(bytes[..count].to_vec())
                .map_err(io::Error::other)?;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn queue() -> (LogQueue, mpsc::Sender<io::Result<usize>>, mpsc::Receiver<Vec<u8>>) {
        let (answer, answers) = mpsc::channel();
        let (taken, takes) = mpsc::channel();
        (LogQueue::start(Told { answers, taken }).unwrap(), answer, takes)
    }

    #[test]
    fn lines_come_whole_and_in_order() {
        let (queue, answer, takes) = queue();
        for line in ["first\n", "second\n"] {
            queue.push(line.as_bytes());
        }
        for count in [3, usize::MAX] {
            answer.send(Ok(count)).unwrap();
        }
        for kind in [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock] {
            answer.send(Err(kind.into())).unwrap();
        }
        answer.send(Ok(usize::MAX)).unwrap();
        assert!(queue.drain(LONG));
        let all: Vec<u8> = takes.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(all).unwrap(), "first\nsecond\n");
        assert_eq!(queue.0.dropped.load(Ordering::Relaxed), 0);
    }

    /// A reader that takes nothing blocks no logging thread and costs at most the queue's bytes.
    /// Lost lines are counted.
    #[test]
    fn a_reader_that_hangs_loses_lines_and_stops_nobody() {
        let (queue, answer, takes) = queue();
        let line = vec![b'x'; 1 << 10];
        for _ in 0..3_000 {
            queue.push(&line);
        }
        assert!(!queue.drain(Duration::from_millis(1)), "nothing was taken");
        let dropped = queue.0.dropped.load(Ordering::Relaxed);
        assert_eq!(dropped, 3_000 - (QUEUE_BYTES_MAX >> 10) as u64);
        assert!(queue.0.state.lock().bytes <= QUEUE_BYTES_MAX);
        // The reader reads again.
        for _ in 0..3_000 - dropped {
            answer.send(Ok(usize::MAX)).unwrap();
        }
        assert!(queue.drain(LONG));
        assert_eq!(takes.try_iter().count() as u64, 3_000 - dropped);
        assert_eq!(queue.0.state.lock().unreported, 0, "the loss was logged");
    }

    #[test]
    fn a_reader_that_is_gone_is_counted() {
        let (queue, answer, takes) = queue();
        for _ in 0..2 {
            queue.push(b"lost\n");
            answer.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        }
        assert!(queue.drain(LONG));
        assert_eq!(
            (queue.0.dropped.load(Ordering::Relaxed), takes.try_iter().count()),
            (2, 0)
        );
        assert_eq!(queue.0.state.lock().unreported, 2);
        queue.push(b"back\n");
        answer.send(Ok(usize::MAX)).unwrap();
        assert!(queue.drain(LONG));
        assert_eq!(takes.recv().unwrap(), b"back\n");
    }
}
