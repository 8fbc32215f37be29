//! A small part of the runs of `basalt-sim`: the engine on a simulated disk. docs/testing.md has
//! the commands for all of it.

use basalt_engine::fs::sim::Mode;
use basalt_sim::bits::Bits;
use basalt_sim::cuts::{Cuts, Workload};
use basalt_sim::errors::Errors;
use basalt_sim::pairs::Pairs;
use basalt_sim::random::Random;
use basalt_sim::{bits, bugs, cuts, errors, pairs, random, seeded};

/// Goal: a power cut or a kill at any call of the file system loses nothing that was acknowledged
/// or seen, also when recovery is cut three times.
#[test]
fn power_cuts_lose_nothing() {
    let cuts = Cuts {
        workload: Workload::Reference,
        seed: 2,
        rounds: 1,
        modes: vec![Mode::Strict, Mode::Ext4],
        damage_seeds: 6,
        stride: 61,
        depth: 3,
        recovery_stride: 61,
        jobs: 2,
    };
    let report = cuts::try_all(&cuts, None);
    report.assert_clean();
    for what in [
        "power cuts",
        "kills",
        "cuts during recovery",
        "lost changes",
        "torn writes",
        "changes out of order",
        "files extended without their bytes",
    ] {
        assert!(report.figures.get(what) > 0, "no {what}: {report}");
    }
}

/// Goal: a power cut or a kill at every call of a bulk load leaves all of its files or none, and the files
/// that were offered as they were. The load, and increments and appends with nonces, are repeated after each:
/// nothing is applied twice.
#[test]
fn bulk_loads_and_nonces_survive_a_cut_at_every_call() {
    let cuts = Cuts {
        workload: Workload::Loads,
        seed: 5,
        rounds: 1,
        modes: vec![Mode::Strict],
        damage_seeds: 2,
        stride: 1,
        depth: 0,
        recovery_stride: 1,
        jobs: 2,
    };
    let report = cuts::try_all(&cuts, None);
    report.assert_clean();
    assert!(report.figures.get("calls cut") > 500, "{report}");
}

/// Goal: a standby that takes over has a prefix of its primary, and all of it where calls waited for it.
#[test]
fn a_standby_takes_over_without_a_gap() {
    let pairs = Pairs {
        seed: 1 << 30,
        steps: 6_000,
        jobs: 2,
    };
    let report = pairs::try_all(&pairs, None);
    report.assert_clean();
    for what in [
        "acknowledged calls",
        "cuts of the network",
        "deaths of the standby",
        "new copies",
        "returns of the leader",
        "take-overs without loss",
        "turns that were made",
    ] {
        assert!(report.figures.get(what) > 0, "no {what}: {report}");
    }
}

/// Goal: a database that is cut again and again, and used in between, stays right.
#[test]
fn chains_of_lives_lose_nothing() {
    let random = Random {
        seed: 1 << 40,
        cuts: 400,
        jobs: 2,
    };
    let report = random::try_all(&random, None);
    report.assert_clean();
    assert!(report.figures.get("cuts") >= 400, "{report}");
}

/// Goal: compactions go on where recovery has replayed rows that were in a file already. The chain of
/// this seed has two files with the same greatest sequence id, the older one made by a compaction.
#[test]
fn files_with_one_sequence_id_keep_their_order() {
    let random = Random {
        seed: 1102,
        cuts: 60,
        jobs: 1,
    };
    random::try_all(&random, None).assert_clean();
}

/// Goal: an error of the disk is never an acknowledgement, and when it has gone everything works.
#[test]
fn errors_of_the_disk_are_survived() {
    let errors = Errors {
        seed: 2,
        rounds: 1,
        stride: 61,
        damage_seeds: 1,
        jobs: 2,
    };
    let report = errors::try_all(&errors, None);
    report.assert_clean();
    assert!(report.figures.get("lived on") > 20, "{report}");
    assert!(report.figures.get("ends of the process") > 20, "{report}");
}

/// Goal: a flipped bit is found or in unused space; a file that is missing, swapped or truncated is refused
/// by name.
#[test]
fn damage_is_detected() {
    let bits = Bits {
        stride: 1201,
        truncate_bytes: 2048,
        directories: 3,
        jobs: 2,
    };
    let report = bits::try_all(&bits, None);
    report.assert_clean();
    assert!(report.figures.get("bits flipped") > 1_000, "{report}");
    assert!(report.figures.get("refused by reads") > 50, "{report}");
}

/// Goal: `basalt-sim seeded` tries every bug that stands in the sources. Whether they are caught takes long
/// and is for that command.
#[test]
fn every_seeded_bug_stands_in_the_list() {
    let listed = bugs::BUGS.iter().map(|bug| bug.name.to_owned()).collect();
    assert_eq!(seeded::in_sources(), listed);
    assert!(bugs::BUGS.is_sorted_by_key(|bug| bug.name));
    assert!(bugs::BUGS.iter().all(|bug| !bug.caught_by.is_empty()));
}
