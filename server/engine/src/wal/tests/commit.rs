//! Appending, publishing, waiting; one thread and many; failures.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use super::*;
use crate::fs::sim::{Errno, OpKind, Times};

/// Runs a future on this thread; sleeps until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread, AtomicBool);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.store(true, Ordering::SeqCst);
            self.0.unpark();
        }
    }
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !unpark.1.swap(false, Ordering::SeqCst) {
            std::thread::park();
        }
    }
}

/// Goal: all ways of logging give consecutive sequence ids and publish in order; logged edits come
/// back after a close, with their sequence ids although rows between were not logged.
#[test]
fn edits_are_published_in_order_and_come_back() {
    let fs = sim();
    let (wal, edits) = open(&fs, WalSync::Fsync).unwrap();
    assert_eq!(
        (edits.len(), wal.read_point(), wal.last_assigned()),
        (0, SeqId(0), SeqId(0))
    );
    let skipped = append(&wal, "skipped", 4, Logging::Skip).unwrap();
    let first = join(&wal, &edit(1, "a", 2), 2, Logging::Sync).unwrap();
    assert_eq!((skipped.seq(), first.first_seq()), (SeqId(4), SeqId(5)));
    let first = first.applied();
    let also_skipped = append(&wal, "skipped", 1, Logging::Skip).unwrap();
    let second = append(&wal, "b", 3, Logging::Async).unwrap();
    assert_eq!(
        (first.seq(), also_skipped.seq(), second.seq()),
        (SeqId(6), SeqId(7), SeqId(10))
    );
    assert_eq!((wal.read_point(), wal.last_assigned()), (SeqId(0), SeqId(10)));
    first.wait().unwrap();
    // One group holds them all.
    assert_eq!(wal.read_point(), SeqId(10));
    second.wait().unwrap();
    append(&wal, "c", 1, Logging::Fsync).unwrap().wait().unwrap();
    append(&wal, "skipped", 1, Logging::Skip).unwrap().wait().unwrap();
    assert_eq!(wal.read_point(), SeqId(12));
    wal.wait_published(SeqId(12)).unwrap();
    let error = wal.wait_published(SeqId(13)).unwrap_err();
    assert!(error.to_string().contains("the last one is 12"), "{error}");
    wal.close().unwrap();
    wal.close().unwrap();
    assert!(matches!(
        join(&wal, &edit(1, "late", 1), 1, Logging::Sync),
        Err(Error::ShuttingDown)
    ));

    let (wal, edits) = open(&fs, WalSync::Fsync).unwrap();
    let expected = [
        (5, 1, "a".to_string(), 2),
        (8, 3, "b".to_string(), 3),
        (11, 3, "c".to_string(), 1),
    ];
    assert_eq!(edits, expected);
    // The seal knows of the row that was not logged.
    assert_eq!(wal.read_point(), SeqId(12));
}

#[test]
fn a_wrong_edit_is_refused_without_effect() {
    let (wal, _) = open(&sim(), WalSync::Fsync).unwrap();
    assert!(matches!(
        join(&wal, &edit(1, "a", 1), 0, Logging::Sync),
        Err(Error::InvalidArgument(_))
    ));
    let long = vec![0; EDIT_BYTES_MAX + 1];
    let mut reserved = wal.reserve(1, 0).unwrap();
    let error = wal
        .append(&mut reserved, &long, 1, &[], Logging::Sync)
        .unwrap_err();
    drop(reserved);
    assert!(error.to_string().contains(&EDIT_BYTES_MAX.to_string()), "{error}");
    assert_eq!(wal.last_assigned(), SeqId(0));
    put(&wal, "a").unwrap();
}

/// Goal: a sync happens exactly when a member of the group asked for it.
#[test]
fn groups_sync_when_a_member_wants_it() {
    use Logging::{Async, Fsync, Skip, Sync};
    let synced = |sync, logging: &[Logging]| {
        let told = Arc::new(Told::default());
        let (wal, _) = open_with(&sim(), options(sync), told.clone()).unwrap();
        let commits: Vec<_> = logging
            .iter()
            .map(|logging| append(&wal, "a", 1, *logging).unwrap())
            .collect();
        for commit in commits {
            commit.wait().unwrap();
        }
        told.groups.lock().clone()
    };
    assert_eq!(synced(WalSync::Fsync, &[Sync]), [(1, true)]);
    assert_eq!(synced(WalSync::Fsync, &[Async, Skip]), [(2, false)]);
    assert_eq!(synced(WalSync::Fsync, &[Async, Sync, Skip]), [(3, true)]);
    assert_eq!(synced(WalSync::Os, &[Sync, Async]), [(2, false)]);
    assert_eq!(synced(WalSync::Os, &[Sync, Fsync]), [(2, true)]);
    assert_eq!(synced(WalSync::Fsync, &[Skip]), []);
}

/// Goal: a group waits for the memstores of all its members, and while it waits the next group fills. Method:
/// this thread holds an edit back while another one leads.
#[test]
fn a_group_waits_for_its_memstores_and_the_next_one_grows_meanwhile() {
    let told = Arc::new(Told::default());
    let (wal, _) = open_with(&sim(), options(WalSync::Fsync), told.clone()).unwrap();
    let held = join(&wal, &edit(1, "held", 1), 1, Logging::Sync).unwrap();
    let other = append(&wal, "other", 1, Logging::Sync).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.wait());
        while told.groups.lock().is_empty() {
            std::thread::yield_now();
        }
        let next: Vec<_> = (0..3)
            .map(|_| append(&wal, "next", 1, Logging::Sync).unwrap())
            .collect();
        assert_eq!(wal.read_point(), SeqId(0), "published before the memstore had it");
        let held = held.applied();
        held.wait().unwrap();
        waiting.join().unwrap().unwrap();
        for commit in next {
            commit.wait().unwrap();
        }
    });
    assert_eq!(*told.groups.lock(), [(2, true), (3, true)]);
    assert_eq!(wal.read_point(), SeqId(5));
}

/// Goal: waiters that sleep in the open group while another group is led are woken to lead it,
/// threads and futures alike, even if a future among them was dropped. Method: this thread holds
/// the led group back until all of them wait, and then does nothing more.
fn handover(commit_thread: bool, blocking: usize, futures: usize, dropped: usize) {
    let told = Arc::new(Told::default());
    let settings = WalOptions {
        commit_thread,
        ..options(WalSync::Fsync)
    };
    let (wal, _) = open_with(&sim(), settings, told.clone()).unwrap();
    let held = join(&wal, &edit(1, "held", 1), 1, Logging::Sync).unwrap();
    let other = append(&wal, "other", 1, Logging::Sync).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| other.wait().unwrap());
        while told.groups.lock().is_empty() {
            std::thread::yield_now();
        }
        for _ in 0..dropped {
            let mut commit = append(&wal, "dropped", 1, Logging::Sync).unwrap();
            let mut context = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut commit).poll(&mut context).is_pending());
        }
        for index in 0..blocking + futures {
            let commit = append(&wal, "next", 1, Logging::Sync).unwrap();
            scope.spawn(move || {
                if index < blocking {
                    commit.wait()
                } else {
                    block_on(commit)
                }
                .unwrap();
            });
        }
        while wal.shared.queue.waiting() < dropped + blocking + futures {
            std::thread::yield_now();
        }
        drop(held.applied());
    });
    let expected = [(2, true), (dropped + blocking + futures, true)];
    assert_eq!(*told.groups.lock(), expected);
}

#[test]
fn sleepers_of_the_open_group_are_called_to_lead() {
    for commit_thread in [false, true] {
        for (blocking, futures, dropped) in [(3, 0, 0), (0, 3, 0), (2, 2, 0), (1, 0, 1), (0, 1, 2)] {
            handover(commit_thread, blocking, futures, dropped);
        }
    }
}

/// Goal: with many threads, after `wait` the thread's own memstore effect and those of all smaller sequence
/// ids are visible, the read point never goes back, and the log holds every edit once. Futures and blocking
/// callers mixed.
fn many_threads(sync: WalSync, commit_thread: bool) {
    const THREADS: u64 = 16;
    const EDITS: u64 = 150;
    let fs = sim();
    let settings = WalOptions {
        segment_bytes: 20_000,
        commit_thread,
        ..options(sync)
    };
    let told = Arc::new(Told::default());
    let (wal, _) = open_with(&fs, settings, told.clone()).unwrap();
    let memstore: Vec<AtomicU64> = (0..=THREADS * EDITS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (wal, memstore) = (&wal, &memstore);
            scope.spawn(move || {
                for number in 0..EDITS {
                    let logging = if number % 5 == 0 {
                        Logging::Async
                    } else {
                        Logging::Sync
                    };
                    let appended = join(wal, &edit(thread, &number.to_string(), 1), 1, logging).unwrap();
                    let seq = appended.first_seq();
                    memstore[seq.0 as usize].store(1, Ordering::Relaxed);
                    let commit = appended.applied();
                    match (thread + number) % 3 {
                        0 => block_on(commit).unwrap(),
                        1 => {
                            // A future that is polled once and dropped, and another wait for its
                            // edit.
                            let mut commit = commit;
                            let once = poll_fn(|context| {
                                let _ = Pin::new(&mut commit).poll(context);
                                Poll::Ready(())
                            });
                            block_on(once);
                            drop(commit);
                            wal.wait_published(seq).unwrap();
                        }
                        _ => commit.wait().unwrap(),
                    }
                    let point = wal.read_point();
                    assert!(point >= seq);
                    for seen in &memstore[1..=point.0 as usize] {
                        assert_eq!(seen.load(Ordering::Relaxed), 1);
                    }
                }
            });
        }
    });
    wal.close().unwrap();
    assert_eq!(wal.read_point(), SeqId(THREADS * EDITS));
    let (_, edits) = open(&fs, sync).unwrap();
    let mut per_thread = vec![Vec::new(); THREADS as usize];
    for (index, (seq, thread, tag, _)) in edits.iter().enumerate() {
        assert_eq!(*seq, index as u64 + 1);
        per_thread[*thread as usize].push(tag.parse::<u64>().unwrap());
    }
    assert!(per_thread.iter().all(|tags| tags.iter().copied().eq(0..EDITS)));
    let members: usize = told.groups.lock().iter().map(|group| group.0).sum();
    assert_eq!(members as u64, THREADS * EDITS);
}

#[test]
fn many_threads_with_a_commit_thread() {
    many_threads(WalSync::Fsync, true);
    many_threads(WalSync::Os, true);
}

#[test]
fn many_threads_without_a_commit_thread() {
    many_threads(WalSync::Fsync, false);
    many_threads(WalSync::Os, false);
}

/// Goal: a future that needs no sync is ready at its first poll; one that needs a sync is not, if there is a
/// thread for it.
#[test]
fn the_first_poll_does_what_does_not_block() {
    let ready = |sync, commit_thread, logging| {
        let settings = WalOptions {
            commit_thread,
            ..options(sync)
        };
        let (wal, _) = open_with(&sim(), settings, Arc::new(NoListener)).unwrap();
        let mut commit = append(&wal, "a", 1, logging).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let ready = Pin::new(&mut commit).poll(&mut context).is_ready();
        wal.wait_published(SeqId(1)).unwrap();
        ready
    };
    assert!(ready(WalSync::Os, true, Logging::Sync));
    assert!(!ready(WalSync::Os, true, Logging::Fsync));
    assert!(!ready(WalSync::Fsync, true, Logging::Sync));
    assert!(ready(WalSync::Fsync, true, Logging::Async));
    assert!(ready(WalSync::Fsync, false, Logging::Sync));
}

/// Goal: a failed write or sync reaches every present and later waiter as a fatal error, and the
/// file is not synced again.
#[test]
fn a_failure_poisons() {
    for op in [OpKind::Write, OpKind::Sync] {
        let fs = sim();
        let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
        put(&wal, "good").unwrap();
        fs.fail(op, ".wal", Errno::IO, Times::Once);
        let together = append(&wal, "same group", 1, Logging::Async).unwrap();
        let error = put(&wal, "bad").unwrap_err();
        assert_eq!(error.kind(), crate::Kind::Fatal);
        assert!(error.to_string().contains(".wal"), "{error}");
        assert!(matches!(together.wait(), Err(Error::Poisoned(_))));
        let ops = fs.op_count();
        assert!(matches!(put(&wal, "later"), Err(Error::Poisoned(_))));
        assert!(matches!(wal.tick(), Err(Error::Poisoned(_))));
        assert!(matches!(wal.close(), Err(Error::Poisoned(_))));
        assert!(matches!(wal.wait_published(SeqId(2)), Err(Error::Poisoned(_))));
        assert_eq!((wal.read_point(), fs.op_count()), (SeqId(1), ops));
    }
}

/// Goal: waiters of the group being led, of the open one, futures and threads, all get the error of
/// the poisoned log. Method: the leader waits for an edit that is then dropped.
#[test]
fn dropping_an_appended_edit_poisons_all_waiters() {
    let told = Arc::new(Told::default());
    let settings = WalOptions {
        commit_thread: true,
        ..options(WalSync::Fsync)
    };
    let (wal, _) = open_with(&sim(), settings, told.clone()).unwrap();
    let held = join(&wal, &edit(1, "held", 1), 1, Logging::Sync).unwrap();
    let led: Vec<_> = (0..4)
        .map(|_| append(&wal, "led", 1, Logging::Sync).unwrap())
        .collect();
    std::thread::scope(|scope| {
        let mut waiting: Vec<_> = led
            .into_iter()
            .map(|commit| scope.spawn(|| commit.wait()))
            .collect();
        while told.groups.lock().is_empty() {
            std::thread::yield_now();
        }
        for index in 0..4 {
            let commit = append(&wal, "open", 1, Logging::Sync).unwrap();
            waiting.push(scope.spawn(move || match index % 2 {
                0 => commit.wait(),
                _ => block_on(commit),
            }));
        }
        drop(held);
        for waiting in waiting {
            assert!(matches!(waiting.join().unwrap(), Err(Error::Poisoned(_))));
        }
    });
    assert_eq!(wal.read_point(), SeqId(0));
}

/// Goal: edits whose commits were dropped are written by the next tick, and Async ones are synced by it.
#[test]
fn a_tick_writes_and_syncs_what_nobody_waits_for() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    drop(append(&wal, "dropped", 1, Logging::Sync).unwrap());
    wal.tick().unwrap();
    assert_eq!(wal.read_point(), SeqId(1));
    append(&wal, "async", 1, Logging::Async).unwrap().wait().unwrap();
    wal.tick().unwrap();
    for seed in 0..20 {
        let (edits, _) = recover_from(&fs.crash(seed), 2).unwrap();
        assert_eq!(tags(&edits), ["dropped", "async"]);
    }
}

/// Goal: an idle log is synced and stated durable once, whatever the sync mode, and then left
/// alone.
#[test]
fn an_idle_log_gets_one_marker() {
    for sync in [WalSync::Fsync, WalSync::Os] {
        let fs = sim();
        let (wal, _) = open(&fs, sync).unwrap();
        let end = |fs: &SimFs| {
            let bytes = fs.contents(&segment_path(Path::new(DIR), 1)).unwrap();
            bytes.iter().rposition(|byte| *byte != 0).unwrap()
        };
        let empty = end(&fs);
        wal.tick().unwrap();
        assert_eq!(end(&fs), empty, "nothing to state");
        put(&wal, "a").unwrap();
        let written = end(&fs);
        wal.tick().unwrap();
        assert_eq!(end(&fs), written, "the group may not have been the last");
        wal.tick().unwrap();
        let marked = end(&fs);
        assert!(marked > written);
        let ops = fs.op_count();
        wal.tick().unwrap();
        assert_eq!((end(&fs), fs.op_count()), (marked, ops));
        for seed in 0..20 {
            assert_eq!(tags(&recover_from(&fs.crash(seed), 1).unwrap().0), ["a"]);
        }
        put(&wal, "b").unwrap();
        wal.close().unwrap();
        assert_eq!(tags(&recover_from(&fs, 2).unwrap().0), ["a", "b"]);
    }
}

/// Goal: with a leader at work all the time, Async edits are synced all the same: a tick asks the open group
/// for it.
#[test]
fn a_tick_that_finds_the_log_busy_has_the_next_group_synced() {
    let told = Arc::new(Told::default());
    let (wal, _) = open_with(&sim(), options(WalSync::Fsync), told.clone()).unwrap();
    let held = join(&wal, &edit(1, "held", 1), 1, Logging::Async).unwrap();
    let other = append(&wal, "other", 1, Logging::Async).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.wait());
        while told.groups.lock().is_empty() {
            std::thread::yield_now();
        }
        wal.tick().unwrap();
        let next = append(&wal, "next", 1, Logging::Async).unwrap();
        held.applied().wait().unwrap();
        waiting.join().unwrap().unwrap();
        next.wait().unwrap();
    });
    assert_eq!(*told.groups.lock(), [(2, false), (1, true)]);
}

/// Goal: segments roll when full, old ones go when their edits are flushed, oldest first, and a start finds
/// the rest.
#[test]
fn segments_roll_and_are_removed() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    for number in 0..100 {
        put(&wal, &format!("{number:090}")).unwrap();
    }
    let count = segments(&fs).len();
    assert!(count > 5, "{count}");
    assert_eq!(remove_obsolete(&wal, SeqId(0)).unwrap(), 0);
    let removed = remove_obsolete(&wal, SeqId(50)).unwrap();
    assert!(removed > 1 && removed < count);
    assert_eq!(remove_obsolete(&wal, SeqId(50)).unwrap(), 0);
    assert_eq!(segments(&fs).len(), count - removed);
    let (wal, edits) = open(&fs.crash(0), WalSync::Fsync).unwrap();
    assert!(edits[0].0 > 10 && edits[0].0 <= 51, "{}", edits[0].0);
    assert_eq!(edits.last().unwrap().0, 100);
    assert!(edits.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
    assert_eq!(remove_obsolete(&wal, SeqId(100)).unwrap(), count - removed);
    put(&wal, "on the last").unwrap();
}

/// Goal: the edits that have to be flushed so that few sealed segments stay are exactly those of the older
/// ones.
#[test]
fn flushing_the_edits_beyond_some_segments_leaves_these() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    assert_eq!(wal.last_seq_beyond(0), None, "nothing is sealed");
    for number in 0..100 {
        put(&wal, &format!("{number:090}")).unwrap();
    }
    let sealed = segments(&fs).len() - 1;
    assert_eq!(wal.last_seq_beyond(sealed), None);
    for kept in (0..sealed).rev() {
        let beyond = wal.last_seq_beyond(kept).unwrap();
        assert_eq!(
            remove_obsolete(&wal, SeqId(beyond.0 - 1)).unwrap(),
            0,
            "{kept} kept"
        );
        assert_eq!(remove_obsolete(&wal, beyond).unwrap(), 1, "{kept} kept");
        assert_eq!(segments(&fs).len(), kept + 1);
    }
}

/// Goal: an edit larger than a segment goes through, in a segment that grows.
#[test]
fn a_large_edit_gets_a_segment_of_its_own() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    let large = "x".repeat(50_000);
    for tag in ["before", &large, "after"] {
        put(&wal, tag).unwrap();
    }
    drop(wal);
    let (_, edits) = open(&fs.crash(3), WalSync::Fsync).unwrap();
    assert_eq!(tags(&edits), ["before", &large, "after"]);
}
