//! Crashes and errors at every call of a workload that opens, appends and rolls.

use super::*;
use crate::error::Error;
use crate::fs::sim::{CrashWhen, Errno, Failure, OpKind, Ops, SplitMix64, Times};
use crate::manifest::file::read_file;

/// Small enough for several rolls in the workload.
const ROLL_BYTES: u64 = 3_000;

const MODES: [fn() -> SimOptions; 2] = [SimOptions::default, SimOptions::ext4];

fn open_small(fs: &SimFs) -> Result<(Manifest, ManifestState)> {
    Manifest::open(Arc::new(fs.clone()), dir(), ROLL_BYTES)
}

/// The acknowledgements that a process received before it died.
struct Told {
    /// The state with every acknowledged edit; `None`: not even the open returned.
    acknowledged: Option<ManifestState>,
    /// That state with the last edit, whose append returned no answer or one of unknown outcome.
    in_flight: Option<ManifestState>,
}

impl Told {
    /// Whether a later process may find `state`.
    fn allows(&self, state: &ManifestState) -> bool {
        match &self.acknowledged {
            None => *state == ManifestState::new(state.cluster_id),
            Some(acknowledged) => state == acknowledged || Some(state) == self.in_flight.as_ref(),
        }
    }
}

/// Opens, appends, opens again in the middle, appends the rest.
fn workload(fs: &SimFs) -> Told {
    let mut told = Told {
        acknowledged: None,
        in_flight: None,
    };
    let edits = history();
    for part in edits.chunks(edits.len().div_ceil(2)) {
        let Ok((mut manifest, state)) = open_small(fs) else {
            return told;
        };
        assert!(told.allows(&state), "an open without a crash finds another state");
        told.acknowledged = Some(state.clone());
        told.in_flight = None;
        for edit in part {
            let mut next = manifest.state().clone();
            // An edit that depends on one refused for want of space breaks a rule.
            if next.apply(edit).is_err() {
                continue;
            }
            // An edit that a poisoned manifest refuses was never written.
            let refused = manifest.is_poisoned();
            match manifest.append(edit) {
                Ok(_) => {
                    told = Told {
                        acknowledged: Some(next),
                        in_flight: None,
                    }
                }
                Err(Error::Poisoned(_)) if refused => {}
                Err(_) => told.in_flight = Some(next),
            }
        }
    }
    told
}

fn calls_of_workload(options: SimOptions) -> u64 {
    let fs = disk(options);
    let before = fs.op_count();
    let told = workload(&fs);
    let mut expected = ManifestState::new(told.acknowledged.as_ref().unwrap().cluster_id);
    for edit in history() {
        expected.apply(&edit).unwrap();
    }
    assert_eq!(
        told.acknowledged,
        Some(expected),
        "the workload runs through without faults"
    );
    assert!(
        fs.files()
            .iter()
            .any(|path| *path >= dir().join("MANIFEST-0000000000000004")
                && path.to_string_lossy().contains("MANIFEST-")),
        "several rolls"
    );
    fs.op_count() - before
}

/// Goal: at whatever call the process dies and whatever the power cut does, the next process finds
/// all acknowledged edits, perhaps the one in flight, and can continue; also when it dies itself
/// while opening, and the next one too. Once there is a database, CURRENT always names its manifest:
/// choosing the manifest without it is for damage.
#[test]
fn a_crash_at_any_call_keeps_what_was_acknowledged() {
    for mode in MODES {
        for call in 0..calls_of_workload(mode()) {
            for when in [CrashWhen::Before, CrashWhen::After] {
                let fs = disk(mode());
                fs.crash_at_op(fs.op_count() + call, when);
                let told = workload(&fs);
                assert!(fs.is_dead());
                for seed in 0..8 {
                    let context = format!("{:?}, call {call}, {when:?}, seed {seed}", mode());
                    reopen(&fs, &told, seed, &context);
                }
            }
        }
    }
}

fn reopen(fs: &SimFs, told: &Told, seed: u64, context: &str) {
    let mut dice = SplitMix64::new(seed);
    let mut after = if seed == 0 {
        fs.crash_keep_all()
    } else {
        fs.crash(seed)
    };
    for _ in 0..seed % 4 {
        require_current(&after, told, context);
        after.crash_at_op(dice.below(30), CrashWhen::After);
        match open_small(&after) {
            Ok((_, state)) => assert!(told.allows(&state), "{context}"),
            Err(error) => assert!(after.is_dead(), "{context}: {error}"),
        }
        after = after.crash(dice.next_u64());
    }
    require_current(&after, told, context);
    let (mut manifest, state) = open_small(&after).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(told.allows(&state), "{context}: found {state:?}");
    let edit = ManifestEdit::HighWater {
        timestamp_ms: 1 << 40,
        seq: SeqId(1 << 40),
    };
    manifest.append(&edit).unwrap();
    let expected = manifest.state().clone();
    let last = after.crash(dice.next_u64());
    assert_eq!(open_small(&last).unwrap().1, expected, "{context}");
}

fn require_current(fs: &SimFs, told: &Told, context: &str) {
    if told.acknowledged.is_some() {
        let bytes = read_file(fs, &dir().join(CURRENT)).unwrap().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.starts_with(CURRENT_BEGIN), "{context}: CURRENT is {text:?}");
    }
}

/// Goal: an error at any call, once or for ever, never makes a false acknowledgement: acknowledged
/// edits are there after a power cut, and nothing else but an edit whose outcome was reported as
/// unknown.
#[test]
fn an_error_at_any_call_keeps_what_was_acknowledged() {
    for mode in MODES {
        for call in 0..calls_of_workload(mode()) {
            for (errno, times) in [
                (Errno::IO, Times::Nth(call)),
                (Errno::NOSPC, Times::Nth(call)),
                (Errno::ROFS, Times::Nth(call)),
            ] {
                let fs = disk(mode());
                fs.fail(Ops::All, "", Failure::Error(errno), times);
                let told = workload(&fs);
                for seed in 1..4 {
                    let after = fs.crash(seed);
                    let context = format!("{:?}, call {call}, {errno:?}, seed {seed}", mode());
                    let (_, state) = open_small(&after).unwrap_or_else(|error| panic!("{context}: {error}"));
                    assert!(told.allows(&state), "{context}: found {state:?}");
                }
            }
        }
    }
}

/// Goal: after a failed sync nothing more is accepted, and the error names the reason.
#[test]
fn a_failed_sync_poisons() {
    let fs = disk(SimOptions::default());
    let (mut manifest, before) = open(&fs).unwrap();
    fs.fail(crate::fs::sim::OpKind::Sync, "MANIFEST", Errno::IO, Times::Once);
    let edits = history();
    let error = manifest.append(&edits[0]).unwrap_err();
    assert!(
        matches!(&error, Error::Poisoned(why) if why.contains("syncing")),
        "the outcome is unknown, so this must not look like an error to retry: {error}"
    );
    assert_eq!(*manifest.state(), before);
    let error = manifest.append(&edits[1]).unwrap_err();
    assert!(
        matches!(&error, Error::Poisoned(why) if why.contains("MANIFEST-")),
        "{error}"
    );
    drop(manifest);
    assert_eq!(open(&fs.crash(1)).unwrap().1, before);
}

/// Goal: a roll that cannot write its new file leaves the old one live; edits continue and the roll
/// is made later.
#[test]
fn a_roll_without_space_is_put_off() {
    let fs = disk(SimOptions::default());
    let (mut manifest, _) = open_small(&fs).unwrap();
    let first = manifest.path().to_owned();
    let full = fs.fail(
        crate::fs::sim::OpKind::Create,
        "MANIFEST",
        Errno::NOSPC,
        Times::Always,
    );
    let high = |seq: u64| ManifestEdit::HighWater {
        timestamp_ms: seq,
        seq: SeqId(seq),
    };
    for seq in 0..8 {
        manifest.append(&high(seq)).unwrap();
    }
    assert!(manifest.roll_error().is_some());
    assert_eq!(manifest.path(), first);
    fs.heal(full);
    for seq in 8..20 {
        manifest.append(&high(seq)).unwrap();
    }
    assert!(manifest.roll_error().is_none());
    assert_ne!(manifest.path(), first);
    let state = manifest.state().clone();
    drop(manifest);
    assert_eq!(open(&fs.crash(1)).unwrap().1, state);
}

/// A manifest with a table of five regions.
fn five_regions(fs: &SimFs) -> Manifest {
    let (mut manifest, _) = open(fs).unwrap();
    let ends = ["", "b", "c", "d", "e", ""];
    let regions = (1..=5).map(|id| region(id, "t", ends[id as usize - 1], ends[id as usize]));
    manifest.append(&create("t", &["f"], regions.collect())).unwrap();
    manifest
}

/// Goal: edits that share a sync take one. Once acknowledged, all are there; otherwise a prefix of
/// them is, whatever the power cut does.
#[test]
fn a_crash_in_a_group_of_edits_leaves_the_first_few() {
    let group: Vec<_> = (1..=5).map(|id| flush(id, 10, &[("f", file(id, 10))])).collect();
    let mut counts = BTreeSet::new();
    for (mode, when) in MODES.into_iter().zip([CrashWhen::Before, CrashWhen::After]) {
        for call in 0.. {
            let fs = disk(mode());
            let mut manifest = five_regions(&fs);
            let syncs = fs.fail(OpKind::Sync, "MANIFEST", Errno::IO, Times::Nth(u64::MAX));
            fs.crash_at_op(fs.op_count() + call, when);
            let acknowledged = manifest.append_all(&group).is_ok();
            if !fs.is_dead() {
                assert!(acknowledged && call > group.len() as u64);
                assert_eq!(fs.matched(syncs), 1);
                break;
            }
            for seed in 0..16 {
                let after = if seed == 0 {
                    fs.crash_keep_all()
                } else {
                    fs.crash(seed)
                };
                let (_, state) = open(&after).unwrap();
                let flushed = state.regions.values().map(|region| region.flushed == SeqId(10));
                let flushed: Vec<bool> = flushed.collect();
                let count = flushed.iter().take_while(|flushed| **flushed).count();
                assert!(
                    !flushed[count..].contains(&true),
                    "call {call}, seed {seed}: {flushed:?}"
                );
                assert!(
                    !acknowledged || count == 5,
                    "call {call}, seed {seed}: {flushed:?}"
                );
                counts.insert(count);
            }
        }
    }
    assert!(counts.len() > 2, "no group was torn: {counts:?}");
}

/// Goal: a group is refused as a whole if one of its edits breaks a rule, or if the disk has no
/// space for it.
#[test]
fn a_group_is_refused_without_effect() {
    let fs = disk(SimOptions::default());
    let mut manifest = five_regions(&fs);
    let before = manifest.state().clone();
    let unknown = [flush(1, 10, &[]), flush(9, 10, &[])];
    manifest.append_all(&unknown).expect_err("there is no region 9");
    assert_eq!(*manifest.state(), before);
    let fault = fs.fail(OpKind::Allocate, "MANIFEST", Errno::NOSPC, Times::Always);
    let many: Vec<_> = (1..=100).map(|seq| flush(1, seq, &[])).collect();
    manifest.append_all(&many).expect_err("the disk is full");
    assert!(!manifest.is_poisoned());
    assert_eq!(*manifest.state(), before);
    fs.heal(fault);
    manifest.append_all(&many).unwrap();
    drop(manifest);
    let (_, state) = open(&fs).unwrap();
    assert_eq!(state.regions[&RegionId(1)].flushed, SeqId(100));
}
