//! Threads that only make work faster.
//!
//! The system may refuse a thread at any time: a limit of processes (`TasksMax`, a cgroup's `pids.max`,
//! `RLIMIT_NPROC`), or no memory for its stack. Work that [`both`] and [`together`] divide among threads is
//! done by the caller then, so that a refusal costs time and nothing else.

use std::panic::resume_unwind;
use std::thread;

use parking_lot::Mutex;

use crate::seeded;

/// Runs `beside` on a thread of its own while `here` runs; one after the other, `beside` first, if
/// the system refuses the thread.
pub(crate) fn both<A: Send, B>(
    thread: thread::Builder,
    beside: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> (A, B) {
    // A refused thread drops its closure, so the work is kept outside of it.
    let work = Mutex::new(Some(beside));
    let take = || work.lock().take().expect("it is taken once");
    thread::scope(|scope| match thread.spawn_scoped(scope, || take()()) {
        Ok(running) => {
            let here = here();
            (running.join().unwrap_or_else(|panic| resume_unwind(panic)), here)
        }
        Err(error) => {
            assert!(!seeded::is_on("refused-thread-panics"), "{error}");
            (take()(), here())
        }
    })
}

/// Runs `work` on the calling thread and up to `more` further ones, and returns when all are done. The
/// system may refuse any number of them, so each `work` takes what is left until nothing is.
pub(crate) fn together(new_thread: impl Fn() -> thread::Builder, more: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..more {
            if new_thread().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A thread that every system refuses: no address space holds its stack.
    fn refused() -> thread::Builder {
        thread::Builder::new().stack_size(1 << 60)
    }

    #[test]
    fn the_caller_does_the_work_of_a_refused_thread() {
        let caller = thread::current().id();
        let id = || thread::current().id();
        assert_eq!(both(refused(), id, id), (caller, caller));
        let (beside, here) = both(thread::Builder::new(), id, id);
        assert!(beside != caller && here == caller);
    }

    #[test]
    fn all_work_is_done_however_many_threads_there_are() {
        for new_thread in [refused, thread::Builder::new] {
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            together(new_thread, 3, || {
                while next.fetch_add(1, Ordering::Relaxed) < 100 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(done.into_inner(), 100);
        }
    }
}
