//! A disk without space: promised edits are written, new ones are refused, and nothing ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::fs::sim::{Errno, OpKind, Times};

/// Puts edits of about 300 bytes until one is refused; returns how many went through.
fn fill(wal: &Arc<Wal>, name: &str) -> usize {
    for number in 0..1_000 {
        match put(wal, &format!("{name} {number:<300}")) {
            Ok(()) => {}
            Err(Error::DiskSpace(why)) => {
                assert!(why.contains("the log cannot take"), "{why}");
                return number;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the log never fills up");
}

/// Goal: with no byte left on the disk the log takes edits that fit into the open segment and the
/// spare, and refuses the rest without effect; ticks get a spare again when there is space, and all
/// goes on.
#[test]
fn a_full_disk_refuses_and_goes_on() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    let mut count = 0;
    for cycle in 0..5 {
        put(&wal, "before").unwrap();
        fs.set_capacity(Some(fs.used_bytes()));
        let taken = fill(&wal, &format!("cycle {cycle}"));
        assert!(
            (4..11).contains(&taken),
            "{taken} edits in two segments with room for 1.8 KiB each"
        );
        count += taken + 1;
        assert_eq!(
            wal.last_assigned(),
            SeqId(count as u64),
            "a refused edit has no sequence id"
        );
        assert!(
            wal.lacks()
                .is_some_and(|why| why.to_string().contains(spare::NAME))
        );
        wal.tick().unwrap();
        assert!(wal.lacks().is_some());
        fs.set_capacity(None);
        (0..10).for_each(|_| wal.tick().unwrap());
        assert!(wal.lacks().is_none());
    }
    drop(wal);
    for seed in 0..5 {
        assert_eq!(
            recover_from(&fs.crash(seed), count as u64).unwrap().0.len(),
            count
        );
    }
}

/// Goal: out of file descriptors the log continues in its open segment, rolls into its spare, and
/// refuses the rest without effect; when there are descriptors again, all goes on.
#[test]
fn without_file_descriptors_the_log_goes_on() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    put(&wal, "before").unwrap();
    let fault = fs.fail(OpKind::Create, "", Errno::MFILE, Times::Always);
    let taken = fill(&wal, "without");
    assert!(taken >= 4 && segments(&fs).len() == 2, "{taken} edits");
    wal.tick().unwrap();
    assert!(wal.lacks().is_some());
    fs.heal(fault);
    (0..10).for_each(|_| wal.tick().unwrap());
    assert!(wal.lacks().is_none());
    put(&wal, "after").unwrap();
    drop(wal);
    let edits = recover_from(&fs.crash(1), taken as u64 + 2).unwrap().0;
    assert_eq!(edits.len(), taken + 2);
}

/// Goal: a reservation holds until it is used or dropped, also when the disk is full.
#[test]
fn a_reservation_holds() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    put(&wal, "begun").unwrap();
    fs.set_capacity(Some(fs.used_bytes()));
    let edit = edit(1, &"x".repeat(700), 1);
    let mut held = wal.reserve(2, 2 * edit.len() as u64).unwrap();
    assert!(matches!(
        wal.reserve(1, edit.len() as u64),
        Err(Error::DiskSpace(_))
    ));
    fill(&wal, "others");
    for _ in 0..2 {
        let appended = wal.append(&mut held, &edit, 1, &[], Logging::Sync).unwrap();
        appended.applied().wait().unwrap();
    }
    drop(held);
    assert!(wal.reserve(1, 1_000_000).is_err());
    fs.set_capacity(None);
    drop(wal.reserve(1, 1_000_000).unwrap());
}

/// Goal: threads that write to a disk that fills up are acknowledged or refused, never anything
/// else, and acknowledged edits come back, in the order of their sequence ids.
#[test]
fn threads_are_acknowledged_or_refused() {
    for (sync, commit_thread) in [(WalSync::Fsync, false), (WalSync::Os, true)] {
        let fs = sim();
        let settings = WalOptions {
            commit_thread,
            ..options(sync)
        };
        let (wal, _) = open_with(&fs, settings, Arc::new(NoListener)).unwrap();
        fs.set_capacity(Some(fs.used_bytes() + 200_000));
        let acknowledged = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (wal, acknowledged) = (&wal, &acknowledged);
                scope.spawn(move || {
                    acknowledged.fetch_add(fill(wal, &format!("thread {thread}")), Ordering::Relaxed);
                });
            }
        });
        assert!(acknowledged.load(Ordering::Relaxed) > 40);
        drop(wal);
        fs.set_capacity(None);
        let (edits, _) = recover_from(&fs, 0).unwrap();
        assert_eq!(edits.len(), acknowledged.into_inner());
        assert!(edits.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}

/// Goal: the spare's space is freed by a clean stop, and by the start after any other.
#[test]
fn the_spare_goes_with_the_log() {
    let fs = sim();
    let spare = Path::new(DIR).join(spare::NAME);
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    put(&wal, "a").unwrap();
    assert_eq!(fs.contents(&spare).unwrap(), [0; 6000]);
    wal.close().unwrap();
    assert!(!fs.exists(&spare).unwrap());
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    drop(wal);
    assert!(fs.exists(&spare).unwrap());
    assert_eq!(recover_from(&fs, 1).unwrap().0.len(), 1);
    assert!(!fs.exists(&spare).unwrap());
}

/// Goal: a refused spare is requested again by every tenth tick, not by every one: space that the
/// disk grants for a moment before it refuses may be needed by a flush.
#[test]
fn a_refused_spare_is_asked_for_now_and_then() {
    let fs = sim();
    let fault = fs.fail(OpKind::Allocate, spare::NAME, Errno::DQUOT, Times::From(1));
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    assert!(wal.lacks().is_some());
    (0..100).for_each(|_| wal.tick().unwrap());
    assert_eq!(fs.struck(fault).len(), 11);
}
