//! Yields a network thread so that the writes on it share one write of the log.
//!
//! A write that asks for no sync could go to the log at once: the first poll of its commit does
//! that. But calls of other connections are waiting for the same thread, and each would write the
//! log by itself. So a write yields to them first ([`others`]) and polls its commit afterwards: one
//! of them writes the log for all.
//!
//! A lone write would yield in vain, and a yield costs a poll of the network. So a thread on which
//! no other write joined last time does not yield for its next [`PATIENCE`] writes. A thread's
//! memory of this is a guess and nothing depends on it: a task that has yielded may go on in
//! another thread.

use std::cell::Cell;

use crate::limits::parking;

/// Writes that do not yield after one that no other write joined.
const PATIENCE: u32 = 15;

thread_local! {
    /// Writes that have come to [`others`] on this thread.
    static WRITES: Cell<u64> = const { Cell::new(0) };
    /// Writes to come that do not yield.
    static IMPATIENT: Cell<u32> = const { Cell::new(0) };
}

/// Yields to the tasks that are ready on this thread, if the last yields were worthwhile.
pub(crate) async fn others() {
    parking::record_write();
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

    /// The events of `writes` tasks that are ready together, in their order: begin and end.
    async fn events(writes: u32) -> Vec<&'static str> {
        let events = Rc::new(RefCell::new(Vec::new()));
        let tasks = LocalSet::new();
        for _ in 0..writes {
            let events = Rc::clone(&events);
            tasks.spawn_local(async move {
                events.borrow_mut().push("begin");
                others().await;
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
    async fn who_was_alone_does_not_give_way_for_a_while() {
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
