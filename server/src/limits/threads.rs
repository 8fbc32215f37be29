//! Threads that the server cannot do without: there are enough at the start, or the start is refused.
//!
//! The system limits threads (`TasksMax=` of systemd, `pids.max` of a container, `RLIMIT_NPROC`). The
//! engine and the runtime start their threads once and keep them, among them one of the pool for
//! calls that block ([`KEEP_ALIVE`]). All later threads only make work faster: a refused one leaves
//! its work to the threads that there are.

use std::io;
use std::num::NonZero;
use std::sync::mpsc;
use std::thread::{Builder, available_parallelism};
use std::time::Duration;

use crate::config::Config;

/// Idle time after which a thread of the pool ends. The upkeep of each second runs on the pool, so one
/// of its threads is there at any time: tokio ends the process when it needs a first one and the
/// system refuses it.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_mins(1);

/// Threads of the engine of which there is one: log, ticker, removals.
const SINGLE: usize = 3;
/// Threads of the pool that a start needs.
const POOL: usize = 1;

/// tokio's panic when the system refuses a thread that the runtime cannot do without.
const RUNTIME_REFUSED: &str = "OS can't spawn worker thread";

/// Number of threads that a start makes, besides the calling one and the log's.
fn needed(config: &Config) -> usize {
    let network = available_parallelism().map_or(1, NonZero::get);
    let [flush, compact, long] = [
        config.flush.threads,
        config.compaction.threads,
        config.compaction.long_threads,
    ]
    .map(|threads| threads.max(1));
    network + flush + compact + long + SINGLE + POOL
}

/// Refuses a start for which the system has too few threads.
pub(crate) fn check(config: &Config) -> Result<(), String> {
    let needed = needed(config);
    try_threads(needed, Builder::new).map_err(|(made, error)| {
        format!(
            "the system gives the server {made} threads, and a start needs {needed}: {}",
            refused(&error)
        )
    })
}

/// Has this many threads at a time, and ends them. Fails with the number that there were.
fn try_threads(count: usize, new_thread: impl Fn() -> Builder) -> Result<(), (usize, io::Error)> {
    let mut threads = Vec::new();
    let (end, outcome) = mpsc::channel::<()>();
    let outcome = std::sync::Arc::new(parking_lot::Mutex::new(outcome));
    let mut made = Ok(());
    for number in 0..count {
        let outcome = std::sync::Arc::clone(&outcome);
        // An error, since the sender is dropped and sends nothing.
        let waiting = move || {
            let _ = outcome.lock().recv();
        };
        match new_thread().spawn(waiting) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                made = Err((number, error));
                break;
            }
        }
    }
    drop(end);
    for thread in threads {
        // It cannot panic: its channel ends.
        let _ = thread.join();
    }
    made
}

/// The sentence for a thread that the system refuses.
pub(crate) fn refused(error: &io::Error) -> String {
    format!(
        "a thread cannot be started: {error}. Raise the limit of threads (TasksMax= of systemd, pids.max of a container, \
         ulimit -u), or free memory"
    )
}

/// The sentence for this panic, if it is the runtime's because the system refuses it a thread.
pub(crate) fn of_panic(panic: &str) -> Option<String> {
    panic.contains(RUNTIME_REFUSED).then(|| {
        format!(
            "basalt: {panic}. Raise the limit of threads (TasksMax= of systemd, pids.max of a container, ulimit -u), or free \
             memory"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_without_threads_is_refused_by_number_and_remedy() {
        try_threads(3, Builder::new).unwrap();
        // No address space holds such a stack.
        let (made, error) = try_threads(3, || Builder::new().stack_size(1 << 60)).unwrap_err();
        assert_eq!(made, 0);
        let text = refused(&error);
        assert!(text.contains("TasksMax=") && text.contains("pids.max"), "{text}");
    }

    #[test]
    fn every_thread_of_the_settings_is_needed() {
        let mut config = Config::default();
        let before = needed(&config);
        config.flush.threads += 2;
        config.compaction.threads += 3;
        config.compaction.long_threads = 0;
        assert_eq!(needed(&config), before + 5);
    }

    #[test]
    fn only_the_runtimes_panic_is_a_refusal() {
        let panic = "OS can't spawn worker thread: Resource temporarily unavailable (os error 11)";
        assert!(
            of_panic(panic)
                .unwrap()
                .contains("Resource temporarily unavailable")
        );
        assert_eq!(of_panic("index out of bounds"), None);
    }
}
