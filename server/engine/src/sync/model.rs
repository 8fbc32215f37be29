//! The types of [`super`] for the model checker: loom's locks with parking_lot's methods, and an [`ArcSwap`]
//! of loom's atomics.
//!
//! Poisoning does not exist here, as in parking_lot: a panic ends the model.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
pub use loom::sync::{RwLockReadGuard, RwLockWriteGuard};

const NO_POISON: &str = "a panic ends the model";

/// As parking_lot's.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

/// A [`Mutex`] held. Empty only while a [`Condvar`] waits with it.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    /// Not held.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Waits for it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect(NO_POISON)))
    }

    /// Exclusive access to the value.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().expect(NO_POISON)
    }
}

const HELD: &str = "a guard is whole whenever its owner can use it";

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HELD)
    }
}

/// As parking_lot's.
#[derive(Debug, Default)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    /// A condition variable without waiters.
    pub fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    /// Releases the lock, sleeps until notified, takes the lock again.
    #[track_caller]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect(HELD);
        guard.0 = Some(self.0.wait(held).expect(NO_POISON));
    }

    /// Wakes one that waits.
    #[track_caller]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    #[track_caller]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// As parking_lot's.
#[derive(Debug, Default)]
pub struct RwLock<T>(loom::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Not held.
    pub fn new(value: T) -> Self {
        Self(loom::sync::RwLock::new(value))
    }

    /// Waits until no writer holds it.
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect(NO_POISON)
    }

    /// Locks for writing if there is no other holder.
    #[track_caller]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::WouldBlock) => None,
            Err(std::sync::TryLockError::Poisoned(_)) => panic!("{NO_POISON}"),
        }
    }

    /// Locks for writing; waits until all other holders are gone.
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect(NO_POISON)
    }
}

/// As arc-swap's, with the weakest orderings that arc-swap promises: a load is an Acquire, a replacement is
/// also a Release.
#[derive(Debug)]
pub struct ArcSwap<T> {
    /// The current one's place in `all`.
    current: AtomicUsize,
    /// All published values. Not loom's: it orders nothing that the model could see, and no thread
    /// stops while it holds it.
    all: std::sync::Mutex<Vec<Arc<T>>>,
}

/// The value loaded by [`ArcSwap::load`].
#[derive(Debug)]
pub struct Guard<T>(T);

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> ArcSwap<T> {
    /// Holds `value`.
    pub fn from_pointee(value: T) -> Self {
        Self {
            current: AtomicUsize::new(0),
            all: std::sync::Mutex::new(vec![Arc::new(value)]),
        }
    }

    /// The current one.
    #[track_caller]
    pub fn load(&self) -> Guard<Arc<T>> {
        Guard(self.load_full())
    }

    /// The current one.
    #[track_caller]
    pub fn load_full(&self) -> Arc<T> {
        let current = self.current.load(Ordering::Acquire);
        self.at(current)
    }

    /// Replaces the value by the result of `derive`.
    #[track_caller]
    pub fn rcu(&self, derive: impl Fn(&Arc<T>) -> Arc<T>) {
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
