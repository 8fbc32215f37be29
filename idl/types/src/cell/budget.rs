//! Memory that a call holds in the engine, reserved before it is allocated.
//!
//! The server has one limit for the memory of all calls ([`Budget`]). Everything beyond a few KiB
//! that a call makes the engine hold is charged to an [`Account`]: results while they are
//! collected, large blocks, read-ahead windows, copies of stored values.
//!
//! Invariants:
//! - An account reserves bytes before its owner allocates them, and releases them after they are
//!   freed or when it is dropped.
//! - The first `free` bytes of an account are not reserved, so a small read touches no shared
//!   counter.
//! - A reservation waits only with [`OnShortage::Wait`]. Network threads and holders of row locks
//!   use one of the others.
//! - A failed reservation leaves the account unchanged.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};

/// The memory that calls may hold together. The server implements it.
pub trait Budget: fmt::Debug + Send + Sync {
    /// Reserves bytes; with [`OnShortage::Wait`] after a short wait if necessary. Fails with
    /// [`Error::CallMemory`], or with another error if the amount can never be reserved.
    fn reserve(&self, bytes: usize, on_shortage: OnShortage) -> Result<()>;
    /// Releases reserved bytes.
    fn release(&self, bytes: usize);
}

/// The behaviour of a reservation for which there is no memory at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnShortage {
    /// Fails with [`Error::NotInMemory`]: the read is retried where it may wait.
    #[default]
    Leave,
    /// Waits for a while, then fails with [`Error::CallMemory`].
    Wait,
    /// Fails with [`Error::CallMemory`].
    Refuse,
}

/// Bytes that one owner has reserved.
#[derive(Debug, Default)]
pub struct Account {
    /// `None`: the account only counts, and reserves nothing.
    budget: Option<Arc<dyn Budget>>,
    bytes: usize,
    /// Bytes of the account that are not reserved.
    free: u32,
    on_shortage: OnShortage,
}

impl Account {
    /// An empty account.
    pub fn new(budget: Arc<dyn Budget>, free: usize, on_shortage: OnShortage) -> Self {
        Self {
            budget: Some(budget),
            bytes: 0,
            free: u32::try_from(free).unwrap_or(u32::MAX),
            on_shortage,
        }
    }

    /// Sets how later reservations behave for which there is no memory at once.
    #[inline]
    pub fn set_on_shortage(&mut self, on_shortage: OnShortage) {
        self.on_shortage = on_shortage;
    }

    /// Whether the account has a budget.
    #[inline]
    pub fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Bytes in the account.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves `bytes` more.
    #[inline]
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        self.set(self.bytes.saturating_add(bytes))
    }

    /// Releases `bytes`.
    #[inline]
    pub fn remove(&mut self, bytes: usize) {
        self.lower_to(self.bytes.saturating_sub(bytes));
    }

    /// Reserves or releases until the account has `bytes`.
    pub fn set(&mut self, bytes: usize) -> Result<()> {
        if bytes <= self.bytes {
            self.lower_to(bytes);
            return Ok(());
        }
        let more = self.reserved(bytes) - self.reserved(self.bytes);
        if let Some(budget) = self.budget.as_ref().filter(|_| more > 0) {
            let reserved = budget.reserve(more, self.on_shortage);
            reserved.map_err(|error| match self.on_shortage {
                OnShortage::Leave => Error::NotInMemory,
                OnShortage::Wait | OnShortage::Refuse => error,
            })?;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Releases everything beyond `bytes`.
    pub fn lower_to(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            return;
        }
        let less = self.reserved(self.bytes) - self.reserved(bytes);
        if let Some(budget) = self.budget.as_ref().filter(|_| less > 0) {
            budget.release(less);
        }
        self.bytes = bytes;
    }

    /// Gives away up to `bytes` bytes; returns the number that was reserved. The new owner must
    /// release these.
    #[inline]
    pub fn give(&mut self, bytes: usize) -> usize {
        let left = self.bytes.saturating_sub(bytes);
        let given = self.reserved(self.bytes) - self.reserved(left);
        self.bytes = left;
        if self.budget.is_some() { given } else { 0 }
    }

    fn reserved(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.free as usize)
    }
}

/// A clone is an empty account without a budget.
impl Clone for Account {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.lower_to(0);
    }
}

/// The budget of calls, shared and set at most once. Without one, nothing is reserved.
#[derive(Clone, Debug, Default)]
pub struct CallMemory(Arc<OnceLock<Arc<dyn Budget>>>);

impl CallMemory {
    /// Sets the budget. Only the first call has an effect.
    #[inline]
    pub fn set(&self, budget: Arc<dyn Budget>) {
        let _ = self.0.set(budget);
    }

    /// An empty account whose first `free` bytes need no reservation.
    #[inline]
    pub fn account(&self, free: usize, on_shortage: OnShortage) -> Account {
        match self.0.get() {
            Some(budget) => Account::new(Arc::clone(budget), free, on_shortage),
            None => Account::default(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A budget of a fixed size that never waits.
    #[derive(Debug)]
    pub(in crate::cell) struct Fixed {
        used: AtomicUsize,
        limit: usize,
    }

    impl Fixed {
        pub(in crate::cell) fn new(limit: usize) -> Arc<Self> {
            Arc::new(Self {
                used: AtomicUsize::new(0),
                limit,
            })
        }

        pub(in crate::cell) fn used(&self) -> usize {
            self.used.load(Ordering::Relaxed)
        }
    }

    impl Budget for Fixed {
        fn reserve(&self, bytes: usize, _on_shortage: OnShortage) -> Result<()> {
            if self.used() + bytes > self.limit {
                return Err(Error::CallMemory(format!("the limit is {}", self.limit)));
            }
            self.used.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }

        fn release(&self, bytes: usize) {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_account_reserves_what_is_beyond_its_free_bytes_and_releases_it() {
        let budget = Fixed::new(100);
        let mut account = Account::new(budget.clone(), 10, OnShortage::Refuse);
        account.add(10).unwrap();
        assert_eq!(budget.used(), 0);
        account.add(60).unwrap();
        assert_eq!((account.bytes(), budget.used()), (70, 60));
        let refused = account.add(41).unwrap_err();
        assert!(refused.to_string().contains("the limit is 100"), "{refused}");
        assert_eq!((account.bytes(), budget.used()), (70, 60), "nothing has changed");
        account.set_on_shortage(OnShortage::Leave);
        assert!(matches!(account.add(41), Err(Error::NotInMemory)));
        account.remove(65);
        assert_eq!((account.bytes(), budget.used()), (5, 0));
        account.set(50).unwrap();
        assert_eq!(account.clone().bytes(), 0);
        assert_eq!(budget.used(), 40);
        assert_eq!(account.give(45), 40);
        drop(account);
        assert_eq!(budget.used(), 40, "who was given them releases them");
    }

    #[test]
    fn without_a_budget_nothing_is_refused() {
        let calls = CallMemory::default();
        calls.account(0, OnShortage::Refuse).add(usize::MAX).unwrap();
        let budget = Fixed::new(100);
        calls.set(budget.clone());
        let mut account = calls.clone().account(0, OnShortage::Refuse);
        account.add(100).unwrap();
        assert_eq!(budget.used(), 100);
        assert!(account.add(1).is_err());
    }
}
