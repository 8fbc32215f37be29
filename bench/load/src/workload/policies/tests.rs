//! The simulation against counts by hand, and what must hold for every policy.

use std::collections::BTreeSet;

use super::*;

/// A thousand keys of 100 bytes, 150 in a file and 200 in the log; a memstore has 80 of them.
const SIZES: Sizes = Sizes {
    keys: 1_000,
    flush_writes: 80,
    scale: 1_000,
    user_bytes: 100.0,
    cell_bytes: 150.0,
    log_bytes: 200.0,
    memstore_bytes: 64 << 20,
    segment_bytes: 0,
};

fn workload(distribution: Distribution, writes: u64, budget_bytes: Option<f64>) -> Workload {
    Workload {
        distribution,
        writes,
        budget_bytes,
        slots: 2,
        seed: 7,
    }
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
}

/// Three flushes of different keys, which the engine's policy merges once: each entry is written to the
/// log, by a flush and by a compaction, and one file is left.
#[test]
fn three_flushes_are_merged_once() {
    let workload = workload(Distribution::Sequential, 240, None);
    let mut policy = Exploring;
    let mut simulation = Simulation::new(SIZES, workload, &mut policy);
    let figures = simulation.run();
    near(figures.write_amplification, 2.0 + 1.5 + 1.5);
    near(figures.space_end, 1.5);
    // While it merges, inputs and output are there.
    near(figures.space_max, 3.0);
    assert_eq!((simulation.files.len(), simulation.dropped_entries), (1, 0));
    near(figures.blocked, 0.0);
}

/// Two flushes are too few: nothing is compacted, and a get looks into one file, a scan into both.
#[test]
fn two_flushes_are_left_alone() {
    let workload = workload(Distribution::Sequential, 200, None);
    let mut policy = Exploring;
    let mut simulation = Simulation::new(SIZES, workload, &mut policy);
    let figures = simulation.run();
    near(figures.write_amplification, 2.0 + 1.5 * 160.0 / 200.0);
    near(figures.space_end, (160.0 * 1.5 + 40.0 * 2.0) / 200.0);
    assert_eq!(simulation.files.len(), 2);
}

/// Writes of 200 kB to segments of 1 MB: a segment stays as long as one of its writes is in no file, and one
/// more is allocated.
#[test]
fn log_segments_are_kept_whole() {
    let sizes = Sizes {
        segment_bytes: 1_000_000,
        ..SIZES
    };
    near(SIZES.log_on_disk(12, 4), 800_000.0);
    for (writes, unflushed, segments) in [
        (0, 0, 2),
        (4, 4, 2),
        (12, 0, 2),
        (12, 2, 2),
        (12, 4, 3),
        (12, 12, 4),
    ] {
        near(sizes.log_on_disk(writes, unflushed), f64::from(segments) * 1e6);
    }
}

/// Two rounds over all keys: half of the versions are dead, which a merge of all would drop.
#[test]
fn dead_versions_are_dropped() {
    let workload = workload(Distribution::Sequential, 2_000, None);
    let mut policy = Leveled {
        l0_files: 4,
        ratio: 10,
        base_bytes: 256 << 20,
        file_bytes: 64 << 20,
    };
    let mut simulation = Simulation::new(SIZES, workload, &mut policy);
    let figures = simulation.run();
    assert_eq!(simulation.distinct, 1_000);
    assert!(
        simulation.dropped_entries >= 900,
        "{}",
        simulation.dropped_entries
    );
    assert!(
        figures.space_end < 1.5 * 1.35,
        "one version of each key and three flushes at most: {figures:?}"
    );
}

/// Goal: with every policy, with and without a budget, no key is lost, each written entry is stored or was dropped,
/// and the same seed gives the same figures.
#[test]
fn policies_keep_every_key() {
    for budget in [None, Some(30e6), Some(1e6)] {
        for distribution in [Distribution::Uniform, Distribution::Zipfian] {
            let workload = workload(distribution, 8_000, budget);
            let again = || policies(&SIZES).into_iter();
            for (mut policy, mut twin) in again().zip(again()) {
                let name = policy.to_string();
                let mut simulation = Simulation::new(SIZES, workload, &mut *policy);
                let figures = simulation.run();
                let flushed = simulation.flushed_entries - simulation.dropped_entries;
                assert_eq!(flushed, simulation.stored_entries() as u64, "{name}");
                let stored: BTreeSet<u32> = simulation
                    .files
                    .iter()
                    .flat_map(|file| file.keys.iter().copied())
                    .collect();
                // Writes since the last flush are in the memstore.
                assert!(stored.len() + 80 >= simulation.distinct, "{name}");
                assert!(stored.len() <= simulation.distinct, "{name}");
                assert!(figures.write_amplification >= 2.0, "{name}: {figures:?}");
                assert!(figures.space_max >= figures.space_mean, "{name}: {figures:?}");
                assert!(figures.files_per_scan >= 1.0 - 1e-9, "{name}: {figures:?}");
                let other = Simulation::new(SIZES, workload, &mut *twin).run();
                assert_eq!(figures, other, "{name}");
            }
        }
    }
}

/// A budget bounds what compactions write.
#[test]
fn a_budget_is_a_bound() {
    let budget = 3e6;
    for mut policy in policies(&SIZES) {
        let name = policy.to_string();
        let workload = workload(Distribution::Uniform, 1_600, Some(budget));
        let mut simulation = Simulation::new(SIZES, workload, &mut *policy);
        let figures = simulation.run();
        // Compactions of 20 flushes' time, and of the time in which writes waited.
        let compacted = simulation.compacted_entries as f64 * 150.0 * 1_000.0;
        let time = 20.0 / (1.0 - figures.blocked);
        assert!(compacted <= budget * time * 1.01, "{name}: {compacted}");
    }
}

/// Files of a level below the first have no key in common.
#[test]
fn levels_are_sorted_runs() {
    let workload = workload(Distribution::Uniform, 8_000, None);
    let mut policy = Leveled {
        l0_files: 4,
        ratio: 10,
        base_bytes: 20 << 20,
        file_bytes: 8 << 20,
    };
    let mut simulation = Simulation::new(SIZES, workload, &mut policy);
    simulation.run();
    assert!(simulation.files.iter().any(|file| file.level == 5));
    for level in 1..7 {
        let of_level = simulation.files.iter().filter(|file| file.level == level);
        let mut ranges: Vec<_> = of_level.map(|file| (file.range.start, file.range.end)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:?}");
    }
}

/// A part of a flushed file is free only when all parts are: partial merges need more space than stripes
/// with the same picks.
#[test]
fn parts_hold_the_whole_file() {
    let space = |partial| {
        let mut policy = DeadShare {
            partitions: 8,
            least: 0.2,
            files_max: 10,
            partial,
            distinct: Distinct::new(SIZES.keys),
        };
        let workload = workload(Distribution::Uniform, 8_000, Some(20e6));
        Simulation::new(SIZES, workload, &mut policy).run()
    };
    let (stripes, partial) = (space(false), space(true));
    near(stripes.write_amplification, partial.write_amplification);
    assert!(partial.space_mean > stripes.space_mean);
}
