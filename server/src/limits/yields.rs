//! Yields of a network thread: before it sleeps, and before it writes the log.
//!
//! **Before it sleeps** ([`before_sleep`]). A thread without work sleeps until the next message wakes it.
//! Waking costs more than the answer when the sender is on the same machine: an interrupt of another core,
//! and two changes of threads. A thread that has sent several replies since it slept last will get more
//! messages in a moment. It yields once and often finds the messages there afterwards, without a wake-up. If
//! it has joined the log with writes that wait for no sync, it yields twice, which makes puts faster; gets
//! would become slower. With clients on the same machine, gets over 64 connections are 1.19x faster, so it is
//! kept. With one call at a time the yield would only add delay: a thread with fewer than [`BUSY_SENDS`]
//! sends sleeps at once.
//!
//! **Before it writes the log** ([`to_other_writes`]). A write that asks for no sync could go to the log at
//! once: the first poll of its commit does that. But calls of other connections are waiting for the same
//! thread, and each would write the log by itself. So a write yields to them first and polls its commit
//! afterwards: one of them writes the log for all. A lone write would yield in vain, and a yield costs a poll
//! of the network. So a thread on which no other write joined last time does not yield for its next
//! [`PATIENCE`] writes.
//!
//! A thread's memory of both is a guess and nothing depends on it: a task that has yielded may go on in
//! another thread.

use std::cell::Cell;

/// Sends between two sleeps that make a thread a busy one.
const BUSY_SENDS: u32 = 4;

/// Work of a thread since it slept last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Since {
    sends: u32,
    wrote: bool,
}

impl Since {
    /// How often to let other threads run.
    fn turns(self) -> u32 {
        if self.sends < BUSY_SENDS {
            0
        } else {
            1 + u32::from(self.wrote)
        }
    }
}

thread_local! {
    static SINCE: Cell<Since> = const { Cell::new(Since { sends: 0, wrote: false }) };
}

/// Records that this thread has sent replies.
pub(crate) fn record_sends() {
    let since = SINCE.get();
    SINCE.set(Since {
        sends: since.sends.saturating_add(1),
        ..since
    });
}

/// Records that a write of this thread has joined the log and waits for no sync.
pub(crate) fn record_write() {
    let since = SINCE.get();
    SINCE.set(Since { wrote: true, ..since });
}

/// To be called by a network thread that is about to sleep.
pub(crate) fn before_sleep() {
    for _ in 0..SINCE.take().turns() {
        std::thread::yield_now();
    }
}

/// Writes that do not yield after one that no other write joined.
const PATIENCE: u32 = 15;

thread_local! {
    /// Writes that have come to [`to_other_writes`] on this thread.
    static WRITES: Cell<u64> = const { Cell::new(0) };
    /// Writes to come that do not yield.
    static IMPATIENT: Cell<u32> = const { Cell::new(0) };
}

/// Yields to the tasks that are ready on this thread, if the last yields were worthwhile.
pub(crate) async fn to_other_writes() {
    record_write();
    let writes = WRITES.get().wrapping_add(1);
    WRITES.set(writes);
    if let Some(left) = IMPATIENT.get().checked_sub(1) {
        IMPATIENT.set(left);
        return;
    }
    tokio::task::yield_now().await;
    if WRITES.get() == writes {
        IMPATIENT.set(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tokio::task::LocalSet;

    use super::*;

    #[test]
    fn a_thread_is_busy_after_several_sends_until_it_sleeps() {
        for _ in 1..BUSY_SENDS {
            record_sends();
        }
        assert_eq!(SINCE.take().turns(), 0);
        for _ in 0..BUSY_SENDS {
            record_sends();
        }
        assert_eq!(SINCE.get().turns(), 1);
        record_write();
        assert_eq!(SINCE.get().turns(), 2);
        before_sleep();
        assert_eq!(SINCE.get(), Since::default(), "it has slept since");
        record_write();
        assert_eq!(SINCE.take().turns(), 0, "one call at a time");
    }

    /// The events of `writes` tasks that are ready together, in their order: begin and end.
    async fn events(writes: u32) -> Vec<&'static str> {
        let events = Rc::new(RefCell::new(Vec::new()));
        let tasks = LocalSet::new();
        for _ in 0..writes {
            let events = Rc::clone(&events);
            tasks.spawn_local(async move {
                events.borrow_mut().push("begin");
                to_other_writes().await;
                events.borrow_mut().push("end");
            });
        }
        tasks.await;
        events.take()
    }

    #[tokio::test]
    async fn writes_that_are_ready_together_begin_before_any_ends() {
        assert_eq!(events(3).await, ["begin", "begin", "begin", "end", "end", "end"]);
    }

    #[tokio::test]
    async fn a_task_that_was_alone_does_not_yield_for_a_while() {
        events(1).await;
        for _ in 0..PATIENCE {
            assert_eq!(events(1).await.len(), 2);
        }
        assert_eq!(
            events(2).await,
            ["begin", "begin", "end", "end"],
            "then it tries again"
        );
        events(1).await;
        assert_eq!(events(2).await, ["begin", "end", "begin", "end"]);
    }
}
