//! A published value: a pointer that is swapped as a whole, and two counts of the swaps, which let
//! readers check cheaply that they hold the current one.
//!
//! A reader often has to make sure that its value is still the current one. Loading the pointer
//! again would cost two locked operations, because a load also protects the value. The counts need
//! two plain loads:
//!
//! ```text
//! publisher   begun += 1   swap   done += 1
//! reader      read done    load   ...read other things...   read begun
//! ```
//!
//! If the two counts of a reader are equal, then every publication that had begun by the end was
//! done before the load, so the reader holds the last one. If they differ, one may be in progress,
//! or several may have overlapped: only then the pointer is loaded again. So a reader never waits
//! for a publisher that was stopped half way.
//!
//! Ordering: both counts are only ever incremented, with Release, and read with Acquire. Suppose
//! that something the reader has seen (a read point, a lock) came after a publication. Then that
//! publication's `begun` came before, too, and is among those that the reader counts; so it is
//! among those `done` before the load, whose swaps the load must see.

use std::sync::Arc;

use super::atomic::{AtomicU64, Ordering};
use super::{ArcSwap, Guard};

/// A value of which readers take the current one. Never edited, only replaced.
#[derive(Debug)]
pub(crate) struct Published<T> {
    current: ArcSwap<T>,
    /// Publications that have begun.
    begun: AtomicU64,
    /// Publications that are done.
    done: AtomicU64,
}

/// A value that was current when it was loaded.
#[derive(Debug)]
pub(crate) struct Loaded<T> {
    value: Guard<Arc<T>>,
    /// Publications that were done before.
    done: u64,
}

impl<T> std::ops::Deref for Loaded<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.value
    }
}

impl<T> Published<T> {
    /// Begins with `value`.
    pub(crate) fn new(value: T) -> Self {
        Self {
            current: ArcSwap::from_pointee(value),
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Borrows the current value, briefly. A thread that holds many of them makes further loads
    /// slower.
    pub(crate) fn load(&self) -> Loaded<T> {
        let done = self.done.load(Ordering::Acquire);
        Loaded {
            value: self.current.load(),
            done,
        }
    }

    /// The current one, to keep.
    pub(crate) fn load_full(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Whether nothing was published since `loaded` was.
    pub(crate) fn is_current(&self, loaded: &Loaded<T>) -> bool {
        self.begun.load(Ordering::Acquire) == loaded.done || self.is(loaded)
    }

    /// Whether `value` is the current one.
    pub(crate) fn is(&self, value: &Arc<T>) -> bool {
        Arc::ptr_eq(&self.current.load(), value)
    }

    /// Publishes the result of `derive`, applied to the current value. `derive` may run more than
    /// once: it must be pure.
    pub(crate) fn publish(&self, derive: impl Fn(&T) -> T) {
        self.swap(|current| Arc::new(derive(current)));
    }

    /// Publishes `value`. When two calls overlap, the later swap wins.
    pub(crate) fn replace(&self, value: T) {
        let value = Arc::new(value);
        self.swap(|_| Arc::clone(&value));
    }

    fn swap(&self, derive: impl Fn(&Arc<T>) -> Arc<T>) {
        self.begun.fetch_add(1, Ordering::Release);
        self.current.rcu(derive);
        self.done.fetch_add(1, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn replaced_values_are_not_current() {
        let published = Published::new(1);
        let first = published.load();
        assert!(published.is_current(&first) && published.is(&first));
        published.publish(|value| value + 1);
        let second = published.load();
        assert_eq!((**first, **second), (1, 2));
        assert!(!published.is_current(&first) && published.is_current(&second));
        published.replace(7);
        assert!(!published.is_current(&second));
        assert_eq!(*published.load_full(), 7);
    }

    /// A publisher that is stopped between its two counts does not block readers.
    #[test]
    fn a_publication_on_its_way_is_looked_at_and_not_waited_for() {
        let published = Published::new(1);
        let before = published.load();
        published.begun.fetch_add(1, Ordering::Release);
        assert!(published.is_current(&before), "nothing was swapped yet");
        published.current.store(Arc::new(2));
        let swapped = published.load();
        assert!(!published.is_current(&before));
        assert!(published.is_current(&swapped), "it is the newest there is");
        published.done.fetch_add(1, Ordering::Release);
        assert!(!published.is_current(&before));
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::check;

    /// Two publishers, one of which signals afterwards that it is done, as a writer does that moves
    /// the read point, and a reader that reports what it sees. If the reader finds its value to be
    /// current, it sees everything that was signalled.
    #[test]
    fn loom_who_is_current_has_what_was_said_before() {
        check(2, || {
            let shared = Arc::new((Published::new(0_u64), AtomicU64::new(0)));
            let with = |run: fn(&Published<u64>, &AtomicU64)| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || run(&shared.0, &shared.1))
            };
            let publisher = with(|published, said| {
                published.publish(|bits| bits | 2);
                said.fetch_or(2, Ordering::Release);
            });
            let witness = with(|published, said| {
                said.fetch_or(**published.load(), Ordering::Release);
            });
            let reader = with(|published, said| {
                let loaded = published.load();
                let said = said.load(Ordering::Acquire);
                if published.is_current(&loaded) {
                    assert_eq!(**loaded & said, said, "{loaded:?}");
                }
            });
            shared.0.publish(|bits| bits | 1);
            for thread in [publisher, witness, reader] {
                thread.join().unwrap();
            }
            let last = shared.0.load();
            assert!(shared.0.is_current(&last));
            assert_eq!(**last, 3);
        });
    }
}
