//! What a network thread does before it sleeps.
//!
//! A thread that finds no more work sleeps until the next message wakes it, and being woken costs a message more than being answered
//! does when the sender is on the same machine: an interrupt of another core, and two changes of threads. A thread that has sent
//! several replies since it slept last will get more messages in a moment. It lets other threads run once ([`before_sleep`]), and
//! often finds the messages there when it looks; then nobody has had to wake it.
//!
//! Whoever has one call at a time would only wait for that: a thread with fewer than [`BUSY_SENDS`] sends sleeps at once.

use std::cell::Cell;

/// Sends between two sleeps that make a thread a busy one.
const BUSY_SENDS: u32 = 4;

thread_local! {
    /// Sends of this thread since it slept last.
    static SENDS: Cell<u32> = const { Cell::new(0) };
}

/// This thread has sent replies.
pub(super) fn sent() {
    SENDS.set(SENDS.get().saturating_add(1));
}

/// To be called by a network thread that is about to sleep.
pub(crate) fn before_sleep() {
    if is_busy() {
        std::thread::yield_now();
    }
}

/// Whether this thread was busy since this was asked last.
fn is_busy() -> bool {
    SENDS.replace(0) >= BUSY_SENDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_busy_after_several_sends_until_it_sleeps() {
        for _ in 1..BUSY_SENDS {
            sent();
        }
        assert!(!is_busy());
        for _ in 0..BUSY_SENDS {
            sent();
        }
        assert!(is_busy());
        assert!(!is_busy(), "it has slept since");
    }
}
