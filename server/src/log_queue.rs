//! The queue of log lines between the threads that log and standard error, which may take them slowly, not at all, or be gone.
//!
//! 1. A thread that logs puts its line into the queue, and never waits for more than a copy. A queue that is full loses the line.
//! 2. The thread `basalt-log` writes line after line. Only this thread waits while a pipe is full, a terminal is stopped, or the reader of the
//!    log hangs. A line that standard error refuses (the reader is gone, the terminal is closed) is lost.
//! 3. When a line has gone out after others were lost, a line says how many. [`dropped`] counts them for the metrics.
//! 4. Before the process ends, [`flush`] gives what is left in the queue some time, and no more than that.
//!
//! Invariants: no thread but `basalt-log` writes to standard error, the panic hook included; the queue holds at most [`QUEUE_BYTES_MAX`].

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Room for some ten thousand lines.
const QUEUE_BYTES_MAX: usize = 1 << 20;

/// Pause before a further attempt when standard error is non-blocking and full: its other holders may have made it so.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// How long the end of the process waits for a slow reader of the log.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The queue of the process.
static PROCESS: OnceLock<LogQueue> = OnceLock::new();

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// A line is being written.
    is_writing: bool,
    /// Lines lost since that was last logged.
    unreported: u64,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// A line came.
    came: Condvar,
    /// Nothing waits and nothing is being written.
    emptied: Condvar,
    /// Lines lost since the start.
    dropped: AtomicU64,
}

/// A queue with a thread that writes. Clones share it. What is written to it with [`Write`] is a line for each call.
#[derive(Clone, Debug)]
pub(crate) struct LogQueue(Arc<Shared>);

impl LogQueue {
    /// Starts the thread.
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

    /// Waits until everything has been written, at most for so long. `false`: it has not.
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

    /// Notes the end of a write. After a good one: how many lines were lost before it, if any were.
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

/// Writes all of it, however long that takes.
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

/// The queue of the process, in front of standard error. The first call starts it; from then on a panic is reported through it, too.
pub(crate) fn start() -> io::Result<LogQueue> {
    if let Some(queue) = PROCESS.get() {
        return Ok(queue.clone());
    }
    let queue = LogQueue::start(io::stderr())?;
    let reports = queue.clone();
    std::panic::set_hook(Box::new(move |panic| {
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

/// Writes a line of text to standard error, and waits for it for a moment.
pub(crate) fn say(text: &str) {
    match PROCESS.get() {
        Some(queue) => {
            queue.push(format!("{text}\n").as_bytes());
            queue.drain(FLUSH_LIMIT);
        }
        // A closed standard error leaves no place for the text.
        None => drop(writeln!(io::stderr(), "{text}")),
    }
}

/// Gives the lines in the queue a moment to go out. To be called before the process ends.
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

/// Ends the process at once, when its log lines have gone out.
pub(crate) fn exit(code: i32) -> ! {
    flush();
    std::process::exit(code)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// A standard error that does with each write what it is told to.
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

    /// A reader that takes nothing keeps nobody waiting and costs no more than the queue's bytes; what was lost is counted.
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
        // The reader is back.
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
