//! Crashes at every call of the file system.
//!
//! A workload is run once to count its calls, then again for each call, crashing there; the disk is
//! damaged as by a power cut, several times, and the log recovered from it.

use super::*;
use crate::fs::sim::{CrashWhen, Errno, OpKind, Times};

fn tags_owned(edits: &[Read]) -> Vec<String> {
    edits.iter().map(|edit| edit.2.clone()).collect()
}

/// The workload's knowledge when it dies.
#[derive(Debug, Default)]
struct History {
    /// Every edit handed to the log that is logged: first sequence id and tag.
    logged: Vec<(u64, String)>,
    /// Every logged edit up to here was acknowledged.
    acked: u64,
    /// Every logged edit up to here was promised to be durable.
    durable: u64,
    /// Segments with nothing above this may have been removed.
    flushed: u64,
}

impl std::fmt::Display for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            acked,
            durable,
            flushed,
            ..
        } = self;
        write!(f, "acked {acked} durable {durable} flushed {flushed}:")?;
        self.logged
            .iter()
            .try_for_each(|(seq, tag)| write!(f, " {seq}={}", tag.trim_end()))
    }
}

/// Appends of all kinds, groups of several edits, rolls, ticks, removals, a clean stop and a second start.
fn workload(fs: &SimFs, sync: WalSync, history: &mut History) -> Result<()> {
    for round in 0..2 {
        let (wal, _) = open(fs, sync)?;
        for number in 0..14_u64 {
            let mut commits = Vec::new();
            for member in 0..=number % 3 {
                let logging = match (number + member) % 5 {
                    1 => Logging::Async,
                    2 if member == 1 => Logging::Skip,
                    3 => Logging::Fsync,
                    _ => Logging::Sync,
                };
                let tag = format!("{round}.{number}.{member}{}", " ".repeat(300));
                let rows = 1 + (number % 2) as u32;
                let appended = join(&wal, &edit(1, &tag, rows), rows, logging)?;
                if logging != Logging::Skip {
                    history.logged.push((appended.first_seq().0, tag));
                }
                let synced =
                    logging == Logging::Fsync || (logging == Logging::Sync && sync == WalSync::Fsync);
                commits.push((appended.applied(), synced));
            }
            for (commit, synced) in commits {
                let seq = commit.seq().0;
                commit.wait()?;
                history.acked = seq;
                // An edit before it may be in an earlier group, if a reservation had to write that.
                if synced {
                    history.durable = seq;
                }
            }
            if number % 4 == 3 {
                wal.tick()?;
            }
            if number == 9 {
                history.flushed = history.acked - 6;
                remove_obsolete(&wal, SeqId(history.flushed))?;
            }
        }
        wal.tick()?;
        wal.tick()?;
        history.durable = history.acked;
        wal.close()?;
    }
    Ok(())
}

/// Recovers and checks: every edit that must exist is there, in order and whole, and no other.
/// Returns the last sequence id.
fn check(fs: &SimFs, history: &History, must: u64) -> u64 {
    let (edits, summary) =
        recover_from(fs, must.min(history.durable)).unwrap_or_else(|error| panic!("{error}; {history}"));
    let found: Vec<(u64, &str)> = edits.iter().map(|edit| (edit.0, edit.2.as_str())).collect();
    let logged: Vec<(u64, &str)> = history
        .logged
        .iter()
        .map(|(seq, tag)| (*seq, tag.as_str()))
        .collect();
    let first = found.first().map_or(u64::MAX, |edit| edit.0);
    let begin = logged
        .iter()
        .position(|edit| edit.0 == first)
        .unwrap_or(logged.len());
    for (seq, tag) in &logged[..begin] {
        let gone = *seq <= history.flushed || *seq > must;
        assert!(gone, "edit {seq} {tag} is lost; first found {first}, must {must}");
    }
    for (index, edit) in found.iter().enumerate() {
        assert_eq!(Some(edit), logged.get(begin + index), "not what was logged there");
    }
    let next = logged.get(begin + found.len()).map_or(u64::MAX, |edit| edit.0);
    assert!(next > must, "edit {next} is lost, {must} was promised");
    summary.last_seq.0
}

/// The workload died; whatever its disk lost, the log recovers, goes on, and keeps its edits.
fn check_after_crash(fs: &SimFs, history: &History, must: u64) {
    let last = check(fs, history, must);
    let (wal, before) = open(fs, WalSync::Fsync).unwrap();
    put(&wal, "after the crash").unwrap();
    drop(wal);
    let (after, _) = recover_from(&fs.crash(17), last + 1).unwrap();
    assert_eq!(after[..before.len()], before);
    assert_eq!(tags(&after[before.len()..]), ["after the crash"]);
}

fn crash_everywhere(promise: SimOptions, sync: WalSync, seeds: u64) {
    let fs = disk(5, promise);
    let mut history = History::default();
    workload(&fs, sync, &mut history).unwrap();
    assert!(
        fs.op_count() > 100 && segments(&fs).len() > 3,
        "the workload does not roll"
    );
    let calls = disk(5, promise).op_count()..fs.op_count();
    check(&fs, &history, history.acked);
    for op in calls {
        for when in [CrashWhen::Before, CrashWhen::After] {
            let fs = disk(5, promise);
            fs.crash_at_op(op, when);
            let mut history = History::default();
            workload(&fs, sync, &mut history).unwrap_err();
            for seed in 0..seeds {
                check_after_crash(&fs.crash(seed), &history, history.durable);
            }
            check_after_crash(&fs.crash_keep_all(), &history, history.acked);
        }
    }
}

#[test]
fn power_cuts_lose_nothing_that_was_promised() {
    crash_everywhere(SimOptions::default(), WalSync::Fsync, 4);
    crash_everywhere(SimOptions::ext4(), WalSync::Fsync, 3);
}

#[test]
fn power_cuts_in_os_mode_lose_only_a_tail() {
    crash_everywhere(SimOptions::default(), WalSync::Os, 4);
}

/// Goal: a crash during recovery, and another one during the recovery after that, lose nothing.
#[test]
fn recovery_survives_crashes() {
    let fs = disk(5, SimOptions::default());
    let mut history = History::default();
    let whole = disk(5, SimOptions::default());
    workload(&whole, WalSync::Fsync, &mut History::default()).unwrap();
    fs.crash_at_op(whole.op_count() - 12, CrashWhen::After);
    workload(&fs, WalSync::Fsync, &mut history).unwrap_err();
    for seed in 0..3 {
        let first = fs.crash(seed);
        let calls = {
            let clean = first.crash_keep_all();
            open(&clean, WalSync::Fsync).unwrap();
            clean.op_count()
        };
        for op in 0..calls {
            let first = first.crash_keep_all();
            first.crash_at_op(op, CrashWhen::After);
            // Its last calls are for the spare, whose failure it tolerates: the process is dead all
            // the same.
            assert!(open(&first, WalSync::Fsync).is_err() || first.is_dead());
            let second = first.crash(seed + 100);
            second.crash_at_op(op, CrashWhen::Before);
            // It may need fewer calls than that by now.
            let _ = open(&second, WalSync::Fsync);
            check_after_crash(&second.crash(seed + 200), &history, history.durable);
        }
    }
}

/// Goal: a start over a log that was closed writes its last seal again; a crash that tears it, and may keep
/// any length that the file had, loses nothing and leaves nothing that looks damaged.
#[test]
fn a_seal_that_is_torn_while_it_is_renewed_harms_nothing() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    put(&wal, "kept").unwrap();
    wal.close().unwrap();
    let calls = {
        let clean = fs.crash_keep_all();
        recover_from(&clean, 0).unwrap();
        clean.op_count()
    };
    for op in 0..calls {
        for when in [CrashWhen::Before, CrashWhen::After] {
            let dying = fs.crash_keep_all();
            dying.crash_at_op(op, when);
            recover_from(&dying, 0).unwrap_err();
            for seed in 0..40 {
                let (edits, summary) = recover_from(&dying.crash(seed), 0).unwrap();
                assert_eq!(
                    (edits.len(), summary.sealed),
                    (1, true),
                    "call {op}, damage {seed}"
                );
            }
        }
    }
}

/// Goal: a start relies on no name that an earlier one, which was killed, has not made durable. The
/// page cache shows it to the second start, and a power cut may take it away and leave the
/// additions of the second one.
#[test]
fn renames_of_a_killed_start_are_made_durable_by_the_next() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
    put(&wal, "kept").unwrap();
    let dead = fs.crash(0);
    let calls_of_start = |disk: SimFs| {
        open(&disk, WalSync::Fsync).unwrap();
        disk.op_count()
    };
    for op in 0..calls_of_start(dead.crash_keep_all()) {
        let first = dead.crash_keep_all();
        first.crash_at_op(op, CrashWhen::After);
        assert!(open(&first, WalSync::Fsync).is_err() || first.is_dead());
        for other in 0..calls_of_start(first.crash_keep_all()) {
            let second = first.crash_keep_all();
            second.crash_at_op(other, CrashWhen::After);
            assert!(open(&second, WalSync::Fsync).is_err() || second.is_dead());
            for seed in 0..64 {
                let recovered = recover_from(&second.crash(seed), 1);
                let context = format!("killed after call {op}, cut after call {other}, damage {seed}");
                let (edits, _) = recovered.unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(tags(&edits), ["kept"], "{context}");
            }
        }
    }
}

/// Goal: a failed call anywhere ends the process, or leaves the log without a spare for a while, and nothing
/// acknowledged is lost, also when the page cache shows bytes that a failed sync never wrote (and a later
/// power cut takes away).
#[test]
fn failed_calls_lose_nothing_that_was_promised() {
    for op in [
        OpKind::Sync,
        OpKind::Write,
        OpKind::SyncDir,
        OpKind::Allocate,
        OpKind::Create,
        OpKind::SetLen,
    ] {
        for errno in [Errno::IO, Errno::NOSPC] {
            for nth in 0.. {
                let fs = disk(5, SimOptions::default());
                let fault = fs.fail(op, "/db", errno, Times::Nth(nth));
                let mut history = History::default();
                let outcome = workload(&fs, WalSync::Fsync, &mut history);
                let struck = fs.struck(fault);
                let Some((_, path)) = struck.first() else {
                    assert!(nth > 1, "{op:?} never happens");
                    break;
                };
                let asks_for_space =
                    matches!(op, OpKind::Create | OpKind::Allocate) && path.ends_with(spare::NAME);
                assert!(outcome.is_err() || asks_for_space, "{op:?} of {}", path.display());
                let restarted = fs.crash_keep_all();
                let last = check(&restarted, &history, history.acked);
                // Edits that the restart has shown to readers must survive a power cut from then
                // on.
                for seed in 0..4 {
                    let must = history.durable.max(last);
                    check_after_crash(&restarted.crash(seed), &history, must);
                    check_after_crash(&fs.crash(seed), &history, history.durable);
                }
            }
        }
    }
}

/// Goal: groups that were written after a roll and before its syncs survive the end of the process,
/// and crashes of the start that completes the roll; a power cut takes a tail at most. Method: a log
/// without threads completes a roll at its next step, so this one is left half way.
#[test]
fn a_roll_cut_short_is_completed_by_the_next_start() {
    let fs = sim();
    let (wal, _) = open(&fs, WalSync::Os).unwrap();
    let written = ["a", "b"].map(|tag| tag.repeat(3000));
    for tag in &written {
        put(&wal, tag).unwrap();
    }
    assert_eq!(segments(&fs).len(), 1, "the second edit is in the spare");
    drop(wal);
    let calls = {
        let clean = fs.crash_keep_all();
        let (edits, summary) = recover_from(&clean, 0).unwrap();
        assert_eq!(
            (tags(&edits), summary.segments),
            (written.each_ref().map(String::as_str).to_vec(), 2)
        );
        let cut = clean.crash(1);
        assert_eq!(
            recover_from(&cut, 2).unwrap().0,
            edits,
            "the start has made it durable"
        );
        clean.op_count()
    };
    for op in 0..calls {
        for when in [CrashWhen::Before, CrashWhen::After] {
            let dying = fs.crash_keep_all();
            dying.crash_at_op(op, when);
            recover_from(&dying, 0).unwrap_err();
            let (edits, _) = recover_from(&dying.crash_keep_all(), 0).unwrap();
            assert_eq!(tags(&edits), written, "call {op}");
            for seed in 0..8 {
                let recovered = recover_from(&dying.crash(seed), 0);
                let (edits, _) =
                    recovered.unwrap_or_else(|error| panic!("call {op}, damage {seed}: {error}"));
                assert!(
                    written.starts_with(&tags_owned(&edits)),
                    "call {op}, damage {seed}"
                );
            }
        }
    }
}

/// Goal: rolls that threads complete lose nothing that was acknowledged, whenever the process ends,
/// and one that fails ends the log, at the latest with the next roll.
#[test]
fn rolls_by_threads_lose_nothing_that_was_acknowledged() {
    let fs = sim();
    let options = WalOptions {
        commit_thread: true,
        ..options(WalSync::Os)
    };
    let (wal, _) = open_with(&fs, options, Arc::new(NoListener)).unwrap();
    let next = |number: usize| put(&wal, &format!("{number:01000}"));
    for number in 0..100 {
        next(number).unwrap();
        if number % 3 == 0 {
            let (edits, _) = recover_from(&fs.crash_keep_all(), 0).unwrap();
            assert_eq!(edits.len(), number + 1);
        }
    }
    fs.fail(OpKind::SyncDir, DIR, Errno::IO, Times::From(1));
    let failed = (100..120).find(|number| next(*number).is_err()).unwrap();
    drop(wal);
    let (edits, _) = recover_from(&fs.crash_keep_all(), 0).unwrap();
    let numbers = edits.iter().map(|edit| edit.2.parse::<usize>().unwrap());
    assert!(edits.len() >= failed && numbers.eq(0..edits.len()));
}

/// A roll that fails between the seal and the successor leaves the sealed segment as the log's last
/// one. A flush that ends just then must not remove it: the successor's leftover, alone, cannot be
/// distinguished from a damaged log.
#[test]
fn a_sealed_segment_stays_until_its_successor_is_there() {
    for (op, path) in [
        (OpKind::Write, spare::NAME),
        (OpKind::Sync, spare::NAME),
        (OpKind::Rename, "0000000000000002"),
        (OpKind::SyncDir, "/db/wal"),
    ] {
        let fs = sim();
        let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
        put(&wal, &"a".repeat(3000)).unwrap();
        fs.fail(op, path, Errno::NOSPC, Times::Once);
        put(&wal, &"b".repeat(3000)).unwrap_err();
        assert_eq!(remove_obsolete(&wal, wal.read_point()).unwrap(), 0, "{op:?}");
        drop(wal);
        for restarted in [fs.crash_keep_all(), fs.crash(3)] {
            let (wal, edits) = open(&restarted, WalSync::Fsync).unwrap_or_else(|e| panic!("{op:?}: {e}"));
            assert_eq!(edits.len(), 1, "{op:?}");
            put(&wal, "c").unwrap();
        }
    }
}

/// A removal that failed, before the file was gone or after it, does not keep the later ones from being made.
#[test]
fn a_removal_cut_short_is_finished_by_the_next() {
    for op in [OpKind::RemoveFile, OpKind::SyncDir] {
        let fs = sim();
        let (wal, _) = open(&fs, WalSync::Fsync).unwrap();
        for _ in 0..4 {
            put(&wal, &"a".repeat(3000)).unwrap();
        }
        fs.fail(op, "/db/wal", Errno::IO, Times::Once);
        remove_obsolete(&wal, wal.read_point()).unwrap_err();
        assert_eq!(remove_obsolete(&wal, wal.read_point()).unwrap(), 3, "{op:?}");
        assert_eq!(segments(&fs).len(), 1, "{op:?}");
    }
}
