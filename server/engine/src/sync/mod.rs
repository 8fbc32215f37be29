//! Locks, condition variables, atomics, and values that are replaced as a whole ([`Published`]).
//!
//! The modules whose races are model-checked (group commit, memstore, region versions, block cache)
//! take these from here. In every build but the model checker's they are parking_lot's, arc-swap's
//! and the standard library's, under the same names: apart from [`Published`], this module then
//! only re-exports them. With `--cfg loom` they are loom's, with the same methods (`locks`, `model`), and
//! tests whose names begin with `loom_` run the real code in every order that its threads' steps
//! can have (docs/testing.md). Under Miri the locks are the standard library's.
//!
//! State that a model does not check, such as counters for metrics, uses the types of the standard
//! library.

pub(crate) mod helpers;
#[cfg(any(loom, miri))]
mod locks;
#[cfg(loom)]
mod model;
mod published;

#[cfg(any(loom, miri))]
pub(crate) use self::locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(loom)]
use self::model::{ArcSwap, Guard};
#[cfg(all(test, loom))]
pub(crate) use self::model::{block_on, check};
pub(crate) use self::published::{Loaded, Published};
#[cfg(not(loom))]
use arc_swap::{ArcSwap, Guard};
#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(any(loom, miri)))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;
