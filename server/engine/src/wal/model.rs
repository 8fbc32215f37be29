//! Group commit under loom: the real queue over a log that only records its calls.

use std::sync::Arc;
use std::task::Waker;

use loom::thread;

use super::batch::Batch;
use super::group::{Lead, Place, Queue};
use super::room::{Reserved, Room};
use crate::id::SeqId;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{block_on, check};
use crate::{Error, Result};

/// Edits that a model makes at most.
const EDITS: usize = 4;

/// The leader's state.
#[derive(Debug)]
struct Disk {
    /// Every edit up to here is written.
    written: Arc<AtomicU64>,
    /// Whether a write fails.
    broken: bool,
    /// Result of `Lead::blocks`.
    slow: bool,
}

impl Lead for Disk {
    fn write(&mut self, batch: &mut Batch) -> Result<()> {
        if self.broken {
            return Err(Error::InvalidArgument("the disk is broken".into()));
        }
        let mut upto = self.written.load(Ordering::Relaxed);
        for seq in seqs_of(batch) {
            assert_eq!(seq, upto + 1, "groups are written in order and without a hole");
            upto = seq;
        }
        self.written.store(upto, Ordering::Relaxed);
        Ok(())
    }

    fn blocks(&self, _: &Batch) -> bool {
        self.slow
    }
}

/// Sequence ids of the edits of a batch: each is its own payload.
fn seqs_of(batch: &mut Batch) -> Vec<u64> {
    let mut seqs = Vec::new();
    batch.for_each_frame(|frame, first| {
        let edits = frame.iter().filter(|byte| **byte == EDIT[0]).count() as u64 / EDIT.len() as u64;
        seqs.extend(first..first + edits);
    });
    seqs
}

/// Payload of an edit: bytes that nothing else in a frame has.
const EDIT: [u8; 4] = [0xed; 4];

/// A queue with memstores, in which a cell is a flag.
#[derive(Debug)]
struct Log {
    queue: Queue<Disk>,
    written: Arc<AtomicU64>,
    /// Set without an ordering of its own: only the queue's guarantees make it visible.
    cells: [AtomicBool; EDITS],
}

impl Log {
    fn new(has_thread: bool, broken: bool) -> Arc<Self> {
        let written = Arc::new(AtomicU64::new(0));
        let disk = Disk {
            written: Arc::clone(&written),
            broken,
            slow: has_thread,
        };
        Arc::new(Self {
            queue: Queue::new(disk, SeqId::ZERO, has_thread),
            written,
            cells: std::array::from_fn(|_| AtomicBool::new(false)),
        })
    }

    fn join(&self) -> Result<Place> {
        self.queue
            .join(1, |batch, first| batch.push(first, 1, &EDIT, true))
    }

    /// An edit up to where it is in memory.
    fn apply(&self) -> Result<Place> {
        let place = self.join()?;
        self.cells[place.last.0 as usize - 1].store(true, Ordering::Relaxed);
        self.queue.applied(place.group);
        Ok(place)
    }

    /// An edit whose thread waits for it.
    fn put(&self) -> Result<()> {
        let place = self.apply()?;
        self.queue.wait(place.group, place.last)?;
        self.see(place.last);
        Ok(())
    }

    /// An edit that is awaited.
    fn put_awaited(&self) -> Result<()> {
        let place = self.apply()?;
        let mut registered = None;
        block_on(std::future::poll_fn(|context| {
            self.queue
                .poll(place.group, place.last, context.waker(), &mut registered)
        }))?;
        self.see(place.last);
        Ok(())
    }

    /// Checks the guarantees to a thread that sees the read point.
    fn see(&self, at_least: SeqId) -> SeqId {
        let read_point = self.queue.read_point();
        assert!(read_point >= at_least, "{read_point} is before {at_least}");
        assert!(
            self.written.load(Ordering::Relaxed) >= read_point.0,
            "published before it was written"
        );
        for cell in &self.cells[..read_point.0 as usize] {
            assert!(cell.load(Ordering::Relaxed), "published before it was in memory");
        }
        read_point
    }
}

fn spawn(log: &Arc<Log>, run: impl FnOnce(&Log) + 'static) -> thread::JoinHandle<()> {
    let log = Arc::clone(log);
    thread::spawn(move || run(&log))
}

/// All edits up to a visible read point are written and in memory, and the read point never goes
/// back; and every writer returns.
#[test]
fn loom_what_is_published_is_written_and_in_memory() {
    check(3, || {
        let log = Log::new(false, false);
        let writer = spawn(&log, |log| log.put().unwrap());
        let reader = spawn(&log, |log| {
            let first = log.see(SeqId::ZERO);
            log.see(first);
        });
        log.put().unwrap();
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(log.see(SeqId(2)), SeqId(2));
    });
}

/// A writer that makes several edits overlaps with another: slots are reused by later groups.
#[test]
fn loom_slots_are_used_again() {
    check(2, || {
        let log = Log::new(false, false);
        let twice = spawn(&log, |log| {
            log.put().unwrap();
            log.put().unwrap();
        });
        log.put().unwrap();
        log.put().unwrap();
        twice.join().unwrap();
        log.see(SeqId(4));
    });
}

/// A group that slept leaves nothing behind for the group that has its slot later, which only a
/// future waits for.
#[test]
fn loom_slots_are_used_again_by_futures() {
    check(5, || {
        let log = Log::new(false, false);
        let twice = spawn(&log, |log| {
            log.put().unwrap();
            log.put().unwrap();
        });
        log.put_awaited().unwrap();
        log.put_awaited().unwrap();
        twice.join().unwrap();
        log.see(SeqId(4));
    });
}

/// With a commit thread, an awaited edit and one with a blocking waiter both return, and the thread
/// ends on request.
#[test]
fn loom_the_commit_thread_forgets_nobody() {
    check(2, || {
        let log = Log::new(true, false);
        let committer = spawn(&log, |log| log.queue.run_thread());
        let waits = spawn(&log, |log| log.put().unwrap());
        log.put_awaited().unwrap();
        waits.join().unwrap();
        log.queue.end_thread();
        committer.join().unwrap();
        log.see(SeqId(2));
    });
}

/// Without a commit thread futures lead for each other.
#[test]
fn loom_futures_lead_for_each_other() {
    check(2, || {
        let log = Log::new(false, false);
        let other = spawn(&log, |log| log.put_awaited().unwrap());
        log.put_awaited().unwrap();
        other.join().unwrap();
        log.see(SeqId(2));
    });
}

/// A future that is polled once and dropped blocks no other waiter.
#[test]
fn loom_a_dropped_future_is_not_waited_for() {
    check(2, || {
        let log = Log::new(false, false);
        let waits = spawn(&log, |log| log.put().unwrap());
        let awaits = spawn(&log, |log| log.put_awaited().unwrap());
        let place = log.apply().unwrap();
        drop(log.queue.poll(place.group, place.last, Waker::noop(), &mut None));
        waits.join().unwrap();
        awaits.join().unwrap();
        log.see(SeqId(2));
    });
}

/// Every waiter receives the error of a failed write, however it waits, and nothing is published.
#[test]
fn loom_a_failed_write_is_told_to_everybody() {
    check(2, || {
        let log = Log::new(false, true);
        let waits = spawn(&log, |log| assert!(matches!(log.put(), Err(Error::Poisoned(_)))));
        let awaits = spawn(&log, |log| {
            assert!(matches!(log.put_awaited(), Err(Error::Poisoned(_))));
        });
        assert!(matches!(log.put(), Err(Error::Poisoned(_))));
        waits.join().unwrap();
        awaits.join().unwrap();
        assert_eq!(log.see(SeqId::ZERO), SeqId::ZERO);
    });
}

/// An edit that never gets into memory stops its group: its waiters and its leader receive the
/// error, and nothing of the group is published.
#[test]
fn loom_an_edit_that_is_not_applied_stops_its_group() {
    check(3, || {
        let log = Log::new(false, false);
        let place = log.join().unwrap();
        let waits = spawn(&log, |log| {
            let put = log.put();
            assert!(matches!(put, Err(Error::Poisoned(_))), "{put:?}");
        });
        log.queue.poison("not applied");
        waits.join().unwrap();
        assert!(log.see(SeqId::ZERO) < place.last);
    });
}

/// A close lets every edit that it meets through, and refuses all later ones.
#[test]
fn loom_a_close_publishes_or_refuses() {
    check(3, || {
        let log = Log::new(false, false);
        let written = Arc::clone(&log.written);
        let writers = [(); 2].map(|()| {
            spawn(&log, |log| match log.put() {
                Ok(()) | Err(Error::ShuttingDown) => {}
                Err(other) => panic!("{other}"),
            })
        });
        log.queue
            .close(|_, next| {
                assert_eq!(next.0, written.load(Ordering::Relaxed) + 1, "all is written");
                Ok(())
            })
            .unwrap();
        let at_close = log.see(log.queue.last_assigned());
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(log.see(at_close), log.queue.last_assigned());
        assert!(matches!(log.put(), Err(Error::ShuttingDown)));
    });
}

/// A thread that borrows the token for work of its own (a tick, or room for a reservation) is alone
/// with the disk, and passes the token on.
#[test]
fn loom_borrowing_the_leader_token_loses_no_wake_up() {
    check(2, || {
        let log = Log::new(false, false);
        let waits = spawn(&log, |log| log.put().unwrap());
        let awaits = spawn(&log, |log| log.put_awaited().unwrap());
        log.queue.try_work(Batch::want_sync, |_, _| Ok(())).unwrap();
        log.queue.lead_or(|_| Ok(())).unwrap();
        waits.join().unwrap();
        awaits.join().unwrap();
        log.see(SeqId(2));
    });
}

/// A wait for another thread's edit ends when that is published.
#[test]
fn loom_a_wait_for_another_ones_edit_ends() {
    check(3, || {
        let log = Log::new(false, false);
        let place = log.apply().unwrap();
        let waits = spawn(&log, |log| log.put().unwrap());
        log.queue.wait_published(place.last).unwrap();
        log.see(place.last);
        waits.join().unwrap();
    });
}

/// Reservations never exceed the room, with concurrent takes, spends and returns.
#[test]
fn loom_room_is_promised_once() {
    check(3, || {
        let room = Arc::new(Room::default());
        room.changed(0, 100, 0);
        let promised = Arc::new(AtomicU64::new(0));
        let takers: Vec<_> = [60, 50]
            .into_iter()
            .map(|bytes| {
                let (room, promised) = (Arc::clone(&room), Arc::clone(&promised));
                thread::spawn(move || {
                    let Some(mut reserved) = Reserved::take(&room, bytes) else {
                        return 0;
                    };
                    let before = promised.fetch_add(bytes, Ordering::Relaxed);
                    assert!(before + bytes <= 100, "promised twice");
                    promised.fetch_sub(bytes, Ordering::Relaxed);
                    reserved.spend(10);
                    10
                })
            })
            .collect();
        let spent: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!((room.shortfall(100 - spent), room.shortfall(101 - spent)), (0, 1));
    });
}
