//! The locks of [`super`] for the model checker and for Miri: loom's, or the standard library's, with
//! parking_lot's methods. Miri refuses the system call with which parking_lot waits.
//!
//! Poisoning does not exist here, as in parking_lot: a panic ends the run.

use std::ops::{Deref, DerefMut};

#[cfg(loom)]
use loom::sync as base;
#[cfg(not(loom))]
use std::sync as base;

pub(crate) use base::{RwLockReadGuard, RwLockWriteGuard};

pub(super) const NO_POISON: &str = "a panic ends the run";

/// As parking_lot's.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(base::Mutex<T>);

/// A [`Mutex`] held. Empty only while a [`Condvar`] waits with it.
#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T>(Option<base::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    /// Not held.
    pub(crate) fn new(value: T) -> Self {
        Self(base::Mutex::new(value))
    }

    /// Waits for it.
    #[track_caller]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect(NO_POISON)))
    }

    /// Exclusive access to the value.
    pub(crate) fn get_mut(&mut self) -> &mut T {
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
pub(crate) struct Condvar(base::Condvar);

impl Condvar {
    /// A condition variable without waiters.
    pub(crate) fn new() -> Self {
        Self(base::Condvar::new())
    }

    /// Releases the lock, sleeps until notified, takes the lock again.
    #[track_caller]
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect(HELD);
        guard.0 = Some(self.0.wait(held).expect(NO_POISON));
    }

    /// Wakes one that waits.
    #[track_caller]
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    #[track_caller]
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// As parking_lot's.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(base::RwLock<T>);

impl<T> RwLock<T> {
    /// Not held.
    pub(crate) fn new(value: T) -> Self {
        Self(base::RwLock::new(value))
    }

    /// Waits until no writer holds it.
    #[track_caller]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect(NO_POISON)
    }

    /// Locks for writing if there is no other holder.
    #[track_caller]
    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::WouldBlock) => None,
            Err(std::sync::TryLockError::Poisoned(_)) => panic!("{NO_POISON}"),
        }
    }

    /// Locks for writing; waits until all other holders are gone.
    #[track_caller]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect(NO_POISON)
    }
}
