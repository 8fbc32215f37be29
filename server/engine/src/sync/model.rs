//! The types of [`super`] for the model checker: an [`ArcSwap`] of loom's atomics, and its runs.

use std::ops::Deref;
use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};

use super::locks::NO_POISON;

/// As arc-swap's, with the weakest orderings that arc-swap promises: a load is an Acquire, a replacement is
/// also a Release.
#[derive(Debug)]
pub(crate) struct ArcSwap<T> {
    /// The current one's place in `all`.
    current: AtomicUsize,
    /// All published values. Not loom's: it orders nothing that the model could see, and no thread
    /// stops while it holds it.
    all: std::sync::Mutex<Vec<Arc<T>>>,
}

/// The value loaded by [`ArcSwap::load`].
#[derive(Debug)]
pub(crate) struct Guard<T>(T);

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> ArcSwap<T> {
    /// Holds `value`.
    pub(crate) fn from_pointee(value: T) -> Self {
        Self {
            current: AtomicUsize::new(0),
            all: std::sync::Mutex::new(vec![Arc::new(value)]),
        }
    }

    /// The current one.
    #[track_caller]
    pub(crate) fn load(&self) -> Guard<Arc<T>> {
        Guard(self.load_full())
    }

    /// The current one.
    #[track_caller]
    pub(crate) fn load_full(&self) -> Arc<T> {
        let current = self.current.load(Ordering::Acquire);
        self.at(current)
    }

    /// Replaces the value by the result of `derive`.
    #[track_caller]
    pub(crate) fn rcu(&self, derive: impl Fn(&Arc<T>) -> Arc<T>) {
        loop {
            let current = self.current.load(Ordering::Acquire);
            let next = derive(&self.at(current));
            let index = {
                let mut all = self.all.lock().expect(NO_POISON);
                all.push(next);
                all.len() - 1
            };
            let swapped = self
                .current
                .compare_exchange(current, index, Ordering::AcqRel, Ordering::Acquire);
            if swapped.is_ok() {
                return;
            }
        }
    }

    fn at(&self, index: usize) -> Arc<T> {
        Arc::clone(&self.all.lock().expect(NO_POISON)[index])
    }
}

/// Runs `body` in every order of its threads' steps in which at most `preemptions` times a thread
/// is stopped that could go on, and with every value that the memory model allows each load. Prints
/// the number of orders.
///
/// loom records for each atomic only the last access. A load of one thread followed by a load and a
/// swap of another one is therefore not tried the other way round. It tries all orders when the
/// swap comes first: make the changes in the body's own thread, which runs first, and spawn the
/// readers, the last one last.
#[cfg(test)]
pub(crate) fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let began = std::time::Instant::now();
    let orders = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 50_000;
    let counted = Arc::clone(&orders);
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    println!(
        "{test}: {} orders, {:.1} s",
        orders.load(std::sync::atomic::Ordering::Relaxed),
        began.elapsed().as_secs_f64()
    );
}

/// Runs a future on this thread of a model; sleeps until it is woken.
#[cfg(test)]
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    use std::task::{Context, Poll, Wake, Waker};

    use super::locks::{Condvar, Mutex};

    /// Whether it was woken, and the condition variable of its waiter.
    #[derive(Default)]
    struct Woken(Mutex<bool>, Condvar);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            *self.0.lock() = true;
            self.1.notify_one();
        }
    }
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut is_woken = woken.0.lock();
        while !*is_woken {
            woken.1.wait(&mut is_woken);
        }
        *is_woken = false;
    }
}
