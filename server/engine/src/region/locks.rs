//! Row locks: exclusive or shared access to rows during a write.
//!
//! One table of stripes for the whole server; a row's stripe is a hash of its region and its key.
//! Two rows may share a stripe: that costs a wait, never correctness. Plain writes lock shared
//! (their order is the log's), writes that depend on a read lock exclusively.
//!
//! A stripe also records the times assigned to its rows ([`RowTimes`]).
//!
//! A batch locks all its stripes at once, in ascending order and each once, so two batches cannot
//! wait for each other in a circle. Row locks come first in the engine's lock order and are not
//! held while a commit syncs: the next holder sees the applied cells, and its own commit is
//! published later.

use std::cell::LazyCell;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, Result};
use crate::id::RegionId;
use crate::memstore::prefetch;
use crate::region::RowTimes;
use crate::schema::escape;

/// A power of two, many times the threads there can be.
const STRIPES: usize = 4096;

/// How a row is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockMode {
    /// Together with other shared holders: the write does not depend on stored cells.
    Shared,
    /// Alone: read, decide, write.
    Exclusive,
}

/// All row locks of the server.
#[derive(Debug)]
pub(crate) struct RowLocks {
    stripes: Box<[CachePadded<Stripe>]>,
}

#[derive(Debug, Default)]
struct Stripe {
    lock: RwLock<()>,
    times: RowTimes,
}

/// Stripes held; dropping it releases them.
#[derive(Debug)]
pub(crate) struct RowGuards<'a> {
    locks: &'a RowLocks,
    #[expect(dead_code, reason = "held for what dropping it does")]
    held: SmallVec<[RowGuard<'a>; 2]>,
    /// The stripe of each row, in the order in which the rows were given.
    of_rows: SmallVec<[u16; 8]>,
}

impl<'a> RowGuards<'a> {
    /// The times recorded by the stripe of the row that was given at this position.
    #[inline]
    pub(crate) fn times(&self, position: usize) -> &'a RowTimes {
        &self.locks.stripes[usize::from(self.of_rows[position])].times
    }
}

#[derive(Debug)]
#[expect(dead_code, reason = "held for what dropping it does")]
enum RowGuard<'a> {
    Shared(RwLockReadGuard<'a, ()>),
    Exclusive(RwLockWriteGuard<'a, ()>),
}

impl Default for RowLocks {
    /// Locks, none held.
    fn default() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| CachePadded::default()).collect(),
        }
    }
}

impl RowLocks {
    /// Forgets the times of all rows, because there are none any more.
    pub(crate) fn forget_times(&self) {
        self.stripes.iter().for_each(|stripe| stripe.times.forget());
    }

    /// Locks all `rows`, waiting `wait` at most for all of them together.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers make the iterator for this call"
    )]
    pub(crate) fn lock<'a, 'r>(
        &'a self,
        rows: impl Iterator<Item = (RegionId, &'r [u8], LockMode)> + Clone,
        wait: Duration,
    ) -> Result<RowGuards<'a>> {
        const { assert!(STRIPES <= 1 << 16) };
        // The rows of several regions have no exact size hint.
        let count = rows.clone().count();
        let mut of_rows: SmallVec<[u16; 8]> = SmallVec::with_capacity(count);
        // Stripe, mode and position as one number each: comparing and moving numbers is all that sorting a
        // batch does. Exclusive sorts after shared; keeping the last of equal stripes keeps the stronger
        // mode.
        let number = |(region, row, mode)| {
            let (stripe, position) = (stripe_of(region, row), of_rows.len() as u64);
            prefetch(&raw const self.stripes[stripe]);
            of_rows.push(stripe as u16);
            (stripe as u64) << 33 | u64::from(mode == LockMode::Exclusive) << 32 | position
        };
        let mut wanted: SmallVec<[u64; 2]> = SmallVec::with_capacity(count);
        wanted.extend(rows.clone().map(number));
        wanted.sort_unstable();
        let deadline = LazyCell::new(|| Instant::now().checked_add(wait));
        let mut guards = SmallVec::with_capacity(wanted.len());
        for (index, number) in wanted.iter().enumerate() {
            let stripe = number >> 33;
            if wanted.get(index + 1).is_some_and(|next| next >> 33 == stripe) {
                continue;
            }
            let mode = if number >> 32 & 1 == 1 {
                LockMode::Exclusive
            } else {
                LockMode::Shared
            };
            let guard = self
                .lock_stripe(stripe as usize, mode, || *deadline)
                .ok_or_else(|| {
                    let row = rows.clone().nth(*number as u32 as usize);
                    Error::RowLockTimeout(row.map_or_else(String::new, |(_, row, _)| escape(row)))
                })?;
            guards.push(guard);
        }
        Ok(RowGuards {
            locks: self,
            held: guards,
            of_rows,
        })
    }

    /// `deadline` is called only if there is something to wait for, so that a free lock costs no
    /// read of the clock.
    fn lock_stripe(
        &self,
        stripe: usize,
        mode: LockMode,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Option<RowGuard<'_>> {
        let lock = &self.stripes[stripe].lock;
        Some(match mode {
            LockMode::Shared => RowGuard::Shared(match lock.try_read() {
                Some(guard) => guard,
                None => match deadline() {
                    Some(deadline) => lock.try_read_until(deadline)?,
                    None => lock.read(),
                },
            }),
            LockMode::Exclusive => RowGuard::Exclusive(match lock.try_write() {
                Some(guard) => guard,
                None => match deadline() {
                    Some(deadline) => lock.try_write_until(deadline)?,
                    None => lock.write(),
                },
            }),
        })
    }
}

fn stripe_of(region: RegionId, row: &[u8]) -> usize {
    xxh3_64_with_seed(row, region.0) as usize % STRIPES
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: RegionId = RegionId(1);

    #[test]
    fn exclusive_keeps_others_out_and_shared_lets_shared_in() {
        let locks = RowLocks::default();
        let one = |mode| std::iter::once((REGION, &b"row"[..], mode));
        let shared = locks.lock(one(LockMode::Shared), Duration::ZERO).unwrap();
        assert!(locks.lock(one(LockMode::Shared), Duration::ZERO).is_ok());
        let refused = locks.lock(one(LockMode::Exclusive), Duration::ZERO).unwrap_err();
        assert!(matches!(refused, Error::RowLockTimeout(row) if row == "row"));
        drop(shared);
        let _exclusive = locks.lock(one(LockMode::Exclusive), Duration::ZERO).unwrap();
        assert!(locks.lock(one(LockMode::Shared), Duration::ZERO).is_err());
    }

    /// A batch that names a row twice, in both modes, locks its stripe once and in the stronger mode.
    #[test]
    fn a_stripe_is_locked_once_and_in_the_stronger_mode() {
        let locks = RowLocks::default();
        for order in [
            [LockMode::Shared, LockMode::Exclusive],
            [LockMode::Exclusive, LockMode::Shared],
        ] {
            let twice = order.into_iter().map(|mode| (REGION, &b"row"[..], mode));
            // Locking the stripe a second time would time out, and a shared lock would let another one in.
            let _guards = locks.lock(twice, Duration::ZERO).unwrap();
            let other = std::iter::once((REGION, &b"row"[..], LockMode::Shared));
            assert!(locks.lock(other, Duration::ZERO).is_err());
        }
    }

    /// Two threads lock overlapping batches in opposite order; with unsorted locking this stops for ever.
    #[test]
    fn batches_in_opposite_order_do_not_deadlock() {
        let locks = RowLocks::default();
        let rows: Vec<Vec<u8>> = (0..64_u8).map(|byte| vec![byte]).collect();
        std::thread::scope(|scope| {
            for backwards in [false, true] {
                let (locks, rows) = (&locks, &rows);
                scope.spawn(move || {
                    for _ in 0..500 {
                        let mut batch: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
                        if backwards {
                            batch.reverse();
                        }
                        let wanted = batch.into_iter().map(|row| (REGION, row, LockMode::Exclusive));
                        locks.lock(wanted, Duration::from_secs(30)).unwrap();
                    }
                });
            }
        });
    }
}
