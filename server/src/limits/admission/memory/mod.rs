//! The memory for calls: one budget of bytes, reserved before anything is allocated.
//!
//! The budget covers messages while they arrive, decoded arguments, results while they are
//! collected (`basalt_engine::cell::Budget`), blocks and read-ahead windows that a read holds, and
//! the arguments of open scanners. A result is reserved together with its reply, so a call that has
//! its result can always send it. The reply's part is released when the client has received the
//! reply.
//!
//! A reservation that does not fit drops slow clients ([`SlowClients`]), makes idle scanners
//! release what they can, waits for at most [`PATIENCE`], and then fails: the call is refused.
//! Network threads wait as futures. Threads of the pool wait on a condition variable, at most
//! [`WAITING_THREADS_MAX`] at a time, each for less time than those before it.
//!
//! Invariants:
//! - Reservations never exceed the limit: `used` grows by compare-and-exchange. The exception is
//!   [`Memory::enter`], which adds bytes that are allocated already: small buffers that have grown
//!   a little ([`MemoryPermit::set`]).
//! - Messages and arguments leave one part in [`SERVE_SHARE`] of the limit to results, so that
//!   calls that have begun are served when messages fill the rest.
//! - All waits end, so calls that hold memory and wait for more do not deadlock. After [`PATIENCE`]
//!   a call is refused and releases all that it holds. No call waits after its result is complete.
//! - Small calls need no reservation: the first 16 KiB of a connection's buffers, of a result and
//!   of a reply are not counted.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use basalt_engine::Error;
use basalt_engine::cell::{Budget, OnShortage};
use basalt_engine::seeded;
use metrics::Counter;
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::Busy;
use super::queue::Waiting;
use super::slow::{SlowClient, SlowClients};
use crate::socket::Reserve;

/// Bytes of a connection's buffers that are not counted.
pub(crate) const FREE_BYTES: usize = 16 << 10;
/// One part in this many of the limit is reserved for results.
const SERVE_SHARE: u64 = 8;
/// The arguments of open scanners may hold one part in this many of the limit.
const SCANNERS_SHARE: u64 = 4;
/// Longest wait for a reservation.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most threads of the pool that wait at a time. A further reservation fails at once, so that the
/// other threads stay free for calls that need little memory.
const WAITING_THREADS_MAX: usize = 2;
/// Period at which a waiting reservation looks for slow clients.
const LOOK: Duration = Duration::from_millis(25);

/// Purpose of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Messages and arguments.
    Arrive,
    /// Results of calls that are being served, with their replies.
    Serve,
}

/// Counts and limits the bytes of calls in hand.
#[derive(Debug)]
pub(crate) struct Memory {
    used: AtomicU64,
    /// The part of `used` that arguments of open scanners hold.
    scanners: AtomicU64,
    limit: u64,
    /// Reservations that wait. A release notifies only when there are some.
    waiting: AtomicUsize,
    /// The part of `waiting` that blocks a thread.
    waiting_threads: AtomicUsize,
    freed: Notify,
    lock: Mutex<()>,
    freed_for_threads: Condvar,
    slow: SlowClients,
    /// Notified when a reservation does not succeed at once.
    short: Notify,
    refused: Counter,
}

impl Memory {
    /// `refused` counts failed reservations of the engine, `dropped` counts slow clients that were
    /// dropped.
    pub(super) fn new(limit: u64, refused: Counter, dropped: Counter) -> Self {
        Self {
            used: AtomicU64::new(0),
            scanners: AtomicU64::new(0),
            limit,
            waiting: AtomicUsize::new(0),
            waiting_threads: AtomicUsize::new(0),
            freed: Notify::new(),
            lock: Mutex::new(()),
            freed_for_threads: Condvar::new(),
            slow: SlowClients::new(dropped),
            short: Notify::new(),
            refused,
        }
    }

    /// Bytes in hand.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The most bytes that may be in hand.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are left for results.
    pub(crate) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// Fails when there is nothing left for messages.
    pub(crate) fn check(&self) -> Result<(), Busy> {
        if self.used() < self.ceiling(Purpose::Arrive) {
            return Ok(());
        }
        Err(self.busy(0))
    }

    /// Registers a client that may be dropped while it is slow.
    pub(crate) fn slow_client(&self, address: Option<IpAddr>, bytes: u64) -> SlowClient {
        self.slow.enter(address, bytes)
    }

    /// Bytes of the clients that may be dropped while they are slow.
    #[cfg(test)]
    pub(crate) fn of_slow_clients(&self) -> u64 {
        self.slow.bytes()
    }

    /// Returns when a reservation did not succeed at once: the caller then makes idle scanners
    /// release memory.
    pub(crate) async fn short(&self) {
        self.short.notified().await;
    }

    fn ceiling(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Arrive => self.limit - self.limit / SERVE_SHARE,
            Purpose::Serve => self.limit,
        }
    }

    /// The error of a client that is dropped because it is slow.
    pub(crate) fn slow_busy(&self) -> Busy {
        Busy::Slow { limit: self.limit }
    }

    /// The error of a reservation that does not fit now.
    pub(crate) fn busy(&self, wanted: u64) -> Busy {
        Busy::Memory {
            used: self.used(),
            wanted,
            limit: self.limit,
        }
    }

    /// Reserves bytes without waiting; `false` if they do not fit.
    fn try_reserve(&self, bytes: u64, purpose: Purpose) -> bool {
        let ceiling = self.ceiling(purpose);
        let more = |used: u64| {
            used.checked_add(bytes)
                .filter(|sum| *sum <= ceiling || seeded::is_on("memory-limit-not-checked"))
        };
        self.used
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Reserves bytes, waiting for at most [`PATIENCE`].
    async fn reserve(&self, bytes: u64, purpose: Purpose) -> Result<(), Busy> {
        if self.try_reserve(bytes, purpose) {
            return Ok(());
        }
        self.check_size(bytes, purpose)?;
        // Boxed: the future is large (timers), and few calls need it.
        Box::pin(self.reserve_later(bytes, purpose)).await
    }

    async fn reserve_later(&self, bytes: u64, purpose: Purpose) -> Result<(), Busy> {
        let until = Instant::now() + PATIENCE;
        let _waiting = Waiting::enter(&self.waiting);
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if self.try_reserve(bytes, purpose) {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.busy(bytes));
            }
            self.make_room(bytes, purpose);
            // Notified or timed out: try again.
            let _ = timeout(left.min(LOOK), freed).await;
        }
    }

    /// Reserves bytes on a thread that may block, waiting for at most [`PATIENCE`].
    fn reserve_blocking(&self, bytes: u64, purpose: Purpose) -> Result<(), Busy> {
        let _waiting = Waiting::enter(&self.waiting);
        let thread = Waiting::enter(&self.waiting_threads);
        if thread.before >= WAITING_THREADS_MAX {
            self.make_room(bytes, purpose);
            return Err(self.busy(bytes));
        }
        // Waiting threads mostly hold memory. The last one to arrive times out first, and what it
        // releases serves the others.
        let share = (2 * WAITING_THREADS_MAX - thread.before) as u32;
        let until = Instant::now() + PATIENCE * share / (2 * WAITING_THREADS_MAX as u32);
        let mut lock = self.lock.lock();
        loop {
            if self.try_reserve(bytes, purpose) {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.busy(bytes));
            }
            self.make_room(bytes, purpose);
            self.freed_for_threads.wait_for(&mut lock, left.min(LOOK));
        }
    }

    /// Refuses a reservation that would not fit even if nothing else were in hand.
    fn check_size(&self, bytes: u64, purpose: Purpose) -> Result<(), Busy> {
        if bytes <= self.ceiling(purpose) {
            return Ok(());
        }
        Err(Busy::TooLarge {
            wanted: bytes,
            limit: self.limit,
        })
    }

    /// Drops slow clients and makes idle scanners release memory.
    fn make_room(&self, bytes: u64, purpose: Purpose) {
        let missing = (self.used() + bytes).saturating_sub(self.ceiling(purpose));
        self.slow.drop_for(missing);
        self.short.notify_one();
    }

    /// Drops slow clients that hold memory for which another answer waits.
    pub(crate) fn relieve(&self, bytes: u64) {
        self.make_room(bytes, Purpose::Serve);
    }

    /// Adds bytes that are allocated already, without checking the limit.
    pub(crate) fn enter(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::SeqCst);
    }

    fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
            // Taking the lock closes the gap between a thread's failed attempt and its wait:
            // without it, the thread would miss this notification.
            drop(self.lock.lock());
            self.freed_for_threads.notify_all();
        }
    }

    /// Reserves the arguments of a scanner that is opened; `None` when open scanners have used up
    /// their share, or the memory for calls is full.
    pub(crate) fn for_scanner(self: &Arc<Self>, bytes: u64) -> Option<ScannerMemory> {
        let share = self.scanners_limit();
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= share);
        self.scanners
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        if !self.try_reserve(bytes, Purpose::Arrive) {
            self.scanners.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        Some(ScannerMemory {
            memory: Arc::clone(self),
            bytes,
        })
    }

    /// Most bytes that [`Self::for_scanner`] grants to all open scanners together.
    pub(crate) fn scanners_limit(&self) -> u64 {
        self.limit / SCANNERS_SHARE
    }
}

impl Budget for Memory {
    fn reserve(&self, bytes: usize, on_shortage: OnShortage) -> basalt_engine::Result<()> {
        let bytes = bytes as u64;
        if self.try_reserve(bytes, Purpose::Serve) {
            return Ok(());
        }
        let reserved = self
            .check_size(bytes, Purpose::Serve)
            .and_then(|()| match on_shortage {
                OnShortage::Wait => self.reserve_blocking(bytes, Purpose::Serve),
                OnShortage::Leave | OnShortage::Refuse => {
                    self.make_room(bytes, Purpose::Serve);
                    Err(self.busy(bytes))
                }
            });
        reserved.map_err(|busy| {
            if on_shortage != OnShortage::Leave {
                self.refused.increment(1);
            }
            match busy {
                Busy::TooLarge { .. } => Error::DoNotRetry(busy.to_string()),
                _ => Error::CallMemory(busy.to_string()),
            }
        })
    }

    fn release(&self, bytes: usize) {
        Self::release(self, bytes as u64);
    }
}

/// The arguments of an open scanner: released when dropped.
#[derive(Debug)]
pub(crate) struct ScannerMemory {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Drop for ScannerMemory {
    fn drop(&mut self) {
        self.memory.scanners.fetch_sub(self.bytes, Ordering::Relaxed);
        self.memory.release(self.bytes);
    }
}

/// Bytes of [`Memory`] that one holder has reserved: released when dropped.
#[derive(Debug)]
pub(crate) struct MemoryPermit {
    memory: Arc<Memory>,
    bytes: u64,
}

impl MemoryPermit {
    /// Holds nothing yet.
    pub(crate) fn empty(memory: &Arc<Memory>) -> Self {
        Self {
            memory: Arc::clone(memory),
            bytes: 0,
        }
    }

    /// Whether more than the free bytes are reserved.
    pub(crate) fn has_bytes(&self) -> bool {
        self.bytes > 0
    }

    /// Bytes that are reserved.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The [`Memory`] that it reserves from.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Sets the size of the holder's buffers, of which the first [`FREE_BYTES`] are free. Growth is
    /// added without checking the limit, so large growth must be reserved by [`Self::raise`] first.
    pub(crate) fn set(&mut self, bytes: usize) {
        let bytes = bytes.saturating_sub(FREE_BYTES) as u64;
        match bytes.cmp(&self.bytes) {
            std::cmp::Ordering::Less => self.memory.release(self.bytes - bytes),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => self.memory.enter(bytes - self.bytes),
        }
        self.bytes = bytes;
    }

    /// Sets the size of the holder's buffers, none of which are free: those of a second answer that
    /// waits for a client. They are allocated already, so the limit is not checked; beyond it slow
    /// clients are dropped.
    pub(crate) fn set_whole(&mut self, bytes: usize) {
        self.set(bytes.saturating_add(FREE_BYTES));
        if self.memory.used() > self.memory.limit {
            self.memory.make_room(0, Purpose::Serve);
        }
    }

    /// Reserves for buffers of this size without waiting; `false` if it does not fit.
    pub(crate) fn try_raise(&mut self, bytes: usize) -> bool {
        let more = self.missing(bytes);
        let granted = more == 0 || self.memory.try_reserve(more, Purpose::Arrive);
        if granted {
            self.bytes += more;
        }
        granted
    }

    /// Reserves for buffers of this size, to be called before they grow.
    pub(crate) async fn raise(&mut self, bytes: usize) -> Result<(), Busy> {
        match self.missing(bytes) {
            0 => Ok(()),
            more => self.add(more, Purpose::Arrive).await,
        }
    }

    /// Bytes that buffers of this size need beyond those that are reserved or free.
    fn missing(&self, bytes: usize) -> u64 {
        (bytes.saturating_sub(FREE_BYTES) as u64).saturating_sub(self.bytes)
    }

    /// Reserves this many more bytes for a result, without waiting.
    pub(crate) fn try_add(&mut self, bytes: u64) -> Result<(), Busy> {
        self.memory.check_size(bytes, Purpose::Serve)?;
        if !self.memory.try_reserve(bytes, Purpose::Serve) {
            return Err(self.memory.busy(bytes));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Reserves this many more bytes, none of them free.
    pub(crate) async fn add(&mut self, bytes: u64, purpose: Purpose) -> Result<(), Busy> {
        self.memory.reserve(bytes, purpose).await?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes over bytes that another owner has reserved.
    pub(crate) fn take_over(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Takes over all bytes that `other` holds.
    pub(crate) fn join(&mut self, other: &mut Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

/// For wrapped pieces of a connection.
impl Reserve for MemoryPermit {
    fn try_raise(&mut self, bytes: usize) -> bool {
        self.try_raise(bytes)
    }

    fn lower(&mut self, bytes: usize) {
        self.set(bytes);
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.release(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests;
