//! Group commit: concurrent writes share one log write. Decides who leads and when readers see a
//! group. Pure synchronisation; the leader's I/O is behind [`Lead`].
//!
//! Two orders must hold: edits are written in the order of their sequence ids, and the read point passes an
//! edit only when it is written (and synced, if asked) *and* inserted into the memstores, together with every
//! edit before it. The simple way, one mutex around append, sync and insert, makes every writer wait for its
//! own sync. Instead:
//!
//! 1. [`Queue::join`]: under `state`, for a memory copy's time, an edit takes its sequence ids and joins the
//!    open group.
//! 2. The caller fills the memstores, then [`Queue::applied`] takes it off the group's `pending` count.
//! 3. [`Queue::wait`]: a caller that finds the *leader token* in `state` takes it and
//!    leads. It closes the open group and opens the next, writes and syncs without the lock, waits
//!    until `pending` is zero, moves the read point, wakes the group, returns the token and wakes
//!    one waiter of the next group. A caller that does not find it sleeps until its group is
//!    published or it is woken to lead.
//!
//! There is one token, so groups are written and published strictly in order, and at most two groups exist:
//! the one being led and the open one. Everything a group needs besides its bytes (pending count, sleepers,
//! wakers) therefore lives in two slots, by the parity of its number, and nothing is allocated per group.
//!
//! Wake-ups: publishing wakes exactly the group's own waiters, and one of the next group's. None is
//! lost: waiters register under `state` after they have seen, under it, that they are neither
//! published nor able to lead; and a leader that returns the token checks, under it, for waiters of
//! the open group. Futures cannot be relied on to lead when woken (they may have been dropped), so
//! the commit thread leads for them; without one, all are woken and the first that is polled leads.
//!
//! A failure is final: nothing is published any more, and every present and later waiter receives
//! the error.

use std::fmt::Debug;
use std::task::{Poll, Waker};

use crossbeam_utils::CachePadded;

use crate::id::SeqId;
use crate::seeded;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::{Error, Result};

use super::batch::Batch;

/// How often a thread spins before it sleeps, for events that take about as long as waking a
/// thread: a write to the page cache, or another thread's insert into a memstore. Some ten
/// microseconds. None in the model checker, which would try every number of them.
const SPINS: u32 = if cfg!(loom) { 0 } else { 400 };

/// Spins until the condition holds or the budget is spent. Callers must recheck it under the lock.
fn spin_until(so: impl Fn() -> bool) {
    for _ in 0..SPINS {
        if so() {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Set in a group's pending count when its leader sleeps until the count is zero.
const LEADER_WAITS: usize = 1 << (usize::BITS - 1);

/// The leader's work on a group.
pub(super) trait Lead: Send + Debug {
    /// Writes the group, and syncs it if it wants that. An error is final.
    fn write(&mut self, batch: &mut Batch) -> Result<()>;
    /// Whether [`Self::write`] of this group may block for long: it syncs, or begins a new segment.
    fn blocks(&self, batch: &Batch) -> bool;
}

/// The groups of one log. `L` is the leader's state for writing; its owner is the leader.
///
/// Its fields are on cache lines of their own, because different threads write and read them all the time.
#[derive(Debug)]
pub(super) struct Queue<L> {
    state: CachePadded<Mutex<State<L>>>,
    /// Written under `state` by the leader; read by all threads.
    read_point: CachePadded<AtomicU64>,
    /// Groups whose leader has returned the token. Only a hint for spinning threads; the truth is
    /// in `state`.
    finished: CachePadded<AtomicU64>,
    /// Edits of a group that are not in the memstores yet, and `LEADER_WAITS`. By parity of the group.
    pending: CachePadded<[AtomicUsize; 2]>,
    /// A group was published, or one of its sleepers must lead. By parity of the group.
    wake_group: [Condvar; 2],
    /// The last pending edit of the group being led is in the memstores.
    wake_leader: Condvar,
    /// The token is back; for threads that want it without having an edit in a group.
    wake_idle: Condvar,
    /// The commit thread has a group to lead, or is to end.
    wake_thread: Condvar,
}

#[derive(Debug)]
struct State<L> {
    /// `None` while a thread leads.
    leader_token: Option<Box<LeaderToken<L>>>,
    /// The open group's edits.
    open: Batch,
    /// The open group's number.
    group: u64,
    /// The first sequence id that is in the open group or a later one.
    open_first_seq: u64,
    /// The next sequence id to give out.
    next_seq: u64,
    /// Whether the leader may be away for long: sleep rather than spin. Meaningless while the token
    /// is here, or lent without a group.
    leader_blocks: bool,
    /// Threads that sleep until their group is published. By parity; zeroed when the group is published.
    sleepers: [usize; 2],
    /// Futures that wait for their group. By parity; taken when the group is published.
    wakers: [Vec<Waker>; 2],
    /// An empty vector with capacity, to put in the place of one in `wakers`.
    spare_wakers: Vec<Waker>,
    /// Whether there is a commit thread.
    has_thread: bool,
    /// Why nothing more is accepted.
    refused: Option<Refused>,
}

/// The leader token, with the leader's state.
#[derive(Debug)]
struct LeaderToken<L> {
    lead: L,
    /// The closed group while leading; in between an empty buffer, to be swapped for the open group's.
    batch: Batch,
}

#[derive(Clone, Debug)]
enum Refused {
    Poisoned(String),
    Closed,
}

impl Refused {
    fn error(&self) -> Error {
        match self {
            Self::Poisoned(why) => Error::Poisoned(why.clone()),
            Self::Closed => Error::ShuttingDown,
        }
    }
}

impl<L> State<L> {
    fn is_poisoned(&self) -> Result<()> {
        match &self.refused {
            Some(refused @ Refused::Poisoned(_)) => Err(refused.error()),
            Some(Refused::Closed) | None => Ok(()),
        }
    }

    fn refused_for_good(&self) -> bool {
        matches!(self.refused, Some(Refused::Poisoned(_)))
    }

    /// Keeps an emptied vector for the next group's wakers.
    fn keep_capacity(&mut self, wakers: Vec<Waker>) {
        debug_assert!(wakers.is_empty(), "all were called");
        if wakers.capacity() > self.spare_wakers.capacity() {
            self.spare_wakers = wakers;
        }
    }

    fn open_is_empty(&self) -> bool {
        self.open_first_seq == self.next_seq
    }

    fn poison(&mut self, why: String) {
        if !self.refused_for_good() {
            self.refused = Some(Refused::Poisoned(why));
        }
    }
}

/// An edit's place among the groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Number of its group.
    pub(super) group: u64,
    /// Sequence id of its first row.
    pub(super) first: SeqId,
    /// Sequence id of its last row.
    pub(super) last: SeqId,
}

fn slot(group: u64) -> usize {
    (group & 1) as usize
}

impl<L: Lead> Queue<L> {
    /// A queue that has published everything up to `last_seq`.
    pub(super) fn new(lead: L, last_seq: SeqId, has_thread: bool) -> Self {
        Self {
            state: CachePadded::new(Mutex::new(State {
                leader_token: Some(Box::new(LeaderToken {
                    lead,
                    batch: Batch::default(),
                })),
                open: Batch::default(),
                group: 0,
                open_first_seq: last_seq.0 + 1,
                leader_blocks: false,
                next_seq: last_seq.0 + 1,
                sleepers: [0; 2],
                wakers: [Vec::new(), Vec::new()],
                spare_wakers: Vec::new(),
                has_thread,
                refused: None,
            })),
            read_point: CachePadded::new(AtomicU64::new(last_seq.0)),
            finished: CachePadded::new(AtomicU64::new(0)),
            pending: CachePadded::new([AtomicUsize::new(0), AtomicUsize::new(0)]),
            wake_group: [Condvar::new(), Condvar::new()],
            wake_leader: Condvar::new(),
            wake_idle: Condvar::new(),
            wake_thread: Condvar::new(),
        }
    }

    /// Everything up to here is published.
    pub(super) fn read_point(&self) -> SeqId {
        // Pairs with the store in `publish`: a thread that sees the read point sees the memstores
        // up to it.
        SeqId(self.read_point.load(Ordering::Acquire))
    }

    /// The last sequence id given out.
    pub(super) fn last_assigned(&self) -> SeqId {
        SeqId(self.state.lock().next_seq - 1)
    }

    /// Takes `rows` sequence ids and joins the open group. `fill` copies the edit into the group's buffer.
    pub(super) fn join(&self, rows: u32, fill: impl FnOnce(&mut Batch, SeqId)) -> Result<Place> {
        let mut state = self.state.lock();
        if let Some(refused) = &state.refused {
            return Err(refused.error());
        }
        let first = SeqId(state.next_seq);
        fill(&mut state.open, first);
        state.next_seq += u64::from(rows);
        self.pending[slot(state.group)].fetch_add(1, Ordering::Relaxed);
        Ok(Place {
            group: state.group,
            first,
            last: SeqId(state.next_seq - 1),
        })
    }

    /// An edit of the group is in the memstores.
    pub(super) fn applied(&self, group: u64) {
        // Release: a thread that sees the count at zero sees the cells. The leader reads it with
        // Acquire.
        let before = self.pending[slot(group)].fetch_sub(1, Ordering::AcqRel);
        if before == LEADER_WAITS | 1 {
            // The leader checks the count under the lock before it sleeps. Holding the lock here
            // ensures that the leader either has seen zero or sleeps and gets this notification.
            let _state = self.state.lock();
            self.wake_leader.notify_one();
        }
    }

    /// Waits until the group is published, leading groups if no other thread does.
    pub(super) fn wait(&self, group: u64, last: SeqId) -> Result<()> {
        if self.read_point() >= last {
            return Ok(());
        }
        let slot = slot(group);
        let mut state = self.state.lock();
        let mut spins = true;
        loop {
            if self.read_point() >= last {
                return Ok(());
            }
            state.is_poisoned()?;
            if state.leader_token.is_some() {
                state = self.lead(state);
                continue;
            }
            if spins && !state.leader_blocks {
                // Once only: later waits are likely to be long.
                spins = false;
                // The open group's number is how many groups there are with the one being led.
                let groups = state.group;
                drop(state);
                spin_until(|| self.finished.load(Ordering::Relaxed) >= groups);
                if self.read_point() >= last {
                    return Ok(());
                }
                state = self.state.lock();
                continue;
            }
            state.sleepers[slot] += 1;
            self.wake_group[slot].wait(&mut state);
            if self.read_point() >= last {
                // Publishing has zeroed the count; the slot may be another group's already.
                return Ok(());
            }
            state.sleepers[slot] -= 1;
        }
    }

    /// As [`Self::wait`] for whatever group `seq` is in.
    pub(super) fn wait_published(&self, seq: SeqId) -> Result<()> {
        if self.read_point() >= seq {
            return Ok(());
        }
        let group = {
            let state = self.state.lock();
            if seq.0 >= state.next_seq {
                return Err(Error::InvalidArgument(format!(
                    "sequence id {seq} has not been given out; the last one is {}",
                    state.next_seq - 1
                )));
            }
            // Not published and not in the open group: in the one being led.
            state.group - u64::from(seq.0 < state.open_first_seq)
        };
        self.wait(group, seq)
    }

    /// One poll of a future that waits for its group. `registered` is the future's place among the group's
    /// wakers.
    pub(super) fn poll(
        &self,
        group: u64,
        last: SeqId,
        waker: &Waker,
        registered: &mut Option<usize>,
    ) -> Poll<Result<()>> {
        if self.read_point() >= last {
            return Poll::Ready(Ok(()));
        }
        let mut state = self.state.lock();
        loop {
            if self.read_point() >= last {
                return Poll::Ready(Ok(()));
            }
            if let Err(error) = state.is_poisoned() {
                return Poll::Ready(Err(error));
            }
            let Some(leader_token) = &state.leader_token else {
                break;
            };
            if state.has_thread && leader_token.lead.blocks(&state.open) {
                self.wake_thread.notify_one();
                break;
            }
            // A write to the page cache is quicker than a switch to another thread and back.
            state = self.lead(state);
        }
        let wakers = &mut state.wakers[slot(group)];
        if let Some(old) = registered.and_then(|index| wakers.get_mut(index)) {
            old.clone_from(waker);
        } else {
            *registered = Some(wakers.len());
            wakers.push(waker.clone());
        }
        Poll::Pending
    }

    /// Threads and futures that wait in the open group.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        let state = self.state.lock();
        let slot = slot(state.group);
        state.sleepers[slot] + state.wakers[slot].len()
    }

    /// Body of the commit thread: leads groups that futures wait for, until the queue is poisoned,
    /// closed or abandoned.
    pub(super) fn run_thread(&self) {
        let mut state = self.state.lock();
        while state.refused.is_none() && state.has_thread {
            let wanted = !state.wakers[slot(state.group)].is_empty();
            if wanted && state.leader_token.is_some() {
                state = self.lead(state);
            } else {
                self.wake_thread.wait(&mut state);
            }
        }
    }

    /// Asks the commit thread to end.
    pub(super) fn end_thread(&self) {
        self.state.lock().has_thread = false;
        self.wake_thread.notify_all();
    }

    /// Closes the open group, writes it, publishes it.
    /// REQUIRES: the token is in `state`.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State<L>>) -> MutexGuard<'a, State<L>> {
        let mut leader_token = state
            .leader_token
            .take()
            .expect("the caller has seen the leader token");
        std::mem::swap(&mut state.open, &mut leader_token.batch);
        let group = state.group;
        let last = state.next_seq - 1;
        state.group += 1;
        state.open_first_seq = state.next_seq;
        state.leader_blocks = leader_token.lead.blocks(&leader_token.batch);
        drop(state);

        if seeded::is_on("read-point-before-sync") {
            self.read_point.store(last, Ordering::Release);
        }
        let written = leader_token.lead.write(&mut leader_token.batch);
        leader_token.batch.clear();
        // Without the lock, so that others can join the open group meanwhile.
        spin_until(|| self.pending[slot(group)].load(Ordering::Relaxed) == 0);

        let mut state = self.state.lock();
        match written {
            Ok(()) => self.wait_applied(&mut state, slot(group)),
            Err(error) => state.poison(error.to_string()),
        }
        let mut woken = Vec::new();
        if state.is_poisoned().is_ok() {
            // Release: a thread that sees this read point sees the cells of all edits up to it,
            // which the leader has seen through `pending`.
            self.read_point.store(last, Ordering::Release);
            let slot = slot(group);
            state.sleepers[slot] = 0;
            self.wake_group[slot].notify_all();
            let spare = std::mem::take(&mut state.spare_wakers);
            woken = std::mem::replace(&mut state.wakers[slot], spare);
        }
        self.give_back(state, leader_token, woken)
    }

    /// Sleeps until every edit of the group is in the memstores, or the queue is poisoned.
    fn wait_applied(&self, state: &mut MutexGuard<'_, State<L>>, slot: usize) {
        let pending = &self.pending[slot];
        // From here on the count only falls: the group is closed.
        if pending.fetch_or(LEADER_WAITS, Ordering::AcqRel) != 0 {
            while pending.load(Ordering::Acquire) != LEADER_WAITS {
                if state.refused_for_good() {
                    return;
                }
                self.wake_leader.wait(state);
            }
        }
        // The slot's next group opens only when the token is back.
        pending.store(0, Ordering::Relaxed);
    }

    /// Returns the token, ensures that the open group gets a leader if it has waiters, and wakes
    /// `woken` without the lock, since a waker is code of an executor.
    fn give_back<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<L>>,
        leader_token: Box<LeaderToken<L>>,
        mut woken: Vec<Waker>,
    ) -> MutexGuard<'a, State<L>> {
        state.leader_token = Some(leader_token);
        self.finished.store(state.group, Ordering::Relaxed);
        self.wake_idle.notify_all();
        let open = slot(state.group);
        if state.refused_for_good() {
            woken.append(&mut self.wake_everybody(&mut state));
        } else if !state.open_is_empty() {
            if state.sleepers[open] > 0 {
                self.wake_group[open].notify_one();
            } else if state.has_thread {
                // If no future waits yet, the first to wait finds the token.
                if !state.wakers[open].is_empty() {
                    self.wake_thread.notify_one();
                }
            } else {
                // Clones: those that are still there must be called again when the group is published.
                woken.extend_from_slice(&state.wakers[open]);
            }
        }
        if woken.is_empty() {
            state.keep_capacity(woken);
            return state;
        }
        drop(state);
        woken.drain(..).for_each(Waker::wake);
        let mut state = self.state.lock();
        state.keep_capacity(woken);
        state
    }

    /// Wakes every sleeper and returns all wakers.
    fn wake_everybody(&self, state: &mut State<L>) -> Vec<Waker> {
        self.wake_group.iter().for_each(|condvar| {
            condvar.notify_all();
        });
        self.wake_leader.notify_all();
        self.wake_idle.notify_all();
        self.wake_thread.notify_all();
        state.wakers.iter_mut().flat_map(std::mem::take).collect()
    }

    /// Stops all publication; every present and later waiter receives the reason.
    pub(super) fn poison(&self, why: &str) {
        let woken = {
            let mut state = self.state.lock();
            state.poison(why.to_string());
            self.wake_everybody(&mut state)
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Leads the open group if there is one and no thread leads, then runs `work` with the token.
    /// If another thread leads, only calls `busy` with the open group.
    pub(super) fn try_work(
        &self,
        busy: impl FnOnce(&mut Batch),
        work: impl FnOnce(&mut L, SeqId) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        state.is_poisoned()?;
        if state.refused.is_some() {
            return Ok(());
        }
        if state.leader_token.is_some() && !state.open_is_empty() {
            state = self.lead(state);
            state.is_poisoned()?;
        }
        if state.leader_token.is_none() {
            busy(&mut state.open);
            return Ok(());
        }
        self.work(state, work)
    }

    /// Waits for the token, and leads the open group if there is one; if there is none, runs `work`
    /// with the token; its error is returned to the caller only.
    pub(super) fn lead_or(&self, work: impl FnOnce(&mut L) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if let Some(refused) = &state.refused {
                return Err(refused.error());
            }
            if !state.open_is_empty() && state.leader_token.is_some() {
                state = self.lead(state);
                return state.is_poisoned();
            }
            if let Some(mut leader_token) = state.leader_token.take() {
                drop(state);
                let worked = work(&mut leader_token.lead);
                drop(self.give_back(self.state.lock(), leader_token, Vec::new()));
                return worked;
            }
            self.wake_idle.wait(&mut state);
        }
    }

    /// Waits until no thread leads, then runs `work` with the token and the first sequence id that is not
    /// written yet. An error of `work` is final.
    pub(super) fn work_between<T>(&self, work: impl FnOnce(&mut L, SeqId) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(refused) = &state.refused {
                return Err(refused.error());
            }
            if state.leader_token.is_some() {
                return self.work(state, work);
            }
            self.wake_idle.wait(&mut state);
        }
    }

    /// Accepts nothing more, leads the open group, then runs `work` with the token. A second call
    /// does nothing.
    pub(super) fn close(&self, work: impl FnOnce(&mut L, SeqId) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        state.is_poisoned()?;
        if state.refused.is_some() {
            return Ok(());
        }
        state.refused = Some(Refused::Closed);
        self.wake_thread.notify_all();
        loop {
            state.is_poisoned()?;
            if state.leader_token.is_none() {
                self.wake_idle.wait(&mut state);
            } else if state.open_is_empty() {
                return self.work(state, work);
            } else {
                state = self.lead(state);
            }
        }
    }

    /// Runs `work` with the token and the first sequence id that is not written yet. An error is
    /// final.
    /// REQUIRES: the token is in `state`.
    fn work<T>(
        &self,
        mut state: MutexGuard<'_, State<L>>,
        work: impl FnOnce(&mut L, SeqId) -> Result<T>,
    ) -> Result<T> {
        let mut leader_token = state
            .leader_token
            .take()
            .expect("the caller has seen the leader token");
        let next_seq = SeqId(state.open_first_seq);
        drop(state);
        let worked = work(&mut leader_token.lead, next_seq);
        let mut state = self.state.lock();
        if let Err(error) = &worked {
            state.poison(error.to_string());
        }
        let state = self.give_back(state, leader_token, Vec::new());
        state.is_poisoned()?;
        worked
    }
}
