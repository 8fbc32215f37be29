//! Properties, keys and mixes, without a server.

use clap::Parser;

use super::keys::{Inserted, row_key};
use super::*;
use crate::data::Data;
use crate::load::choose::{Distribution, fnv_hash};

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    arguments: Arguments,
}

/// The mixes that YCSB's `workloads/workloada` to `workloadf` have.
#[test]
fn the_core_workloads_have_their_mixes() {
    for (workload, shares, distribution) in [
        (Workload::A, [0.5, 0.5, 0.0, 0.0, 0.0], Distribution::Zipfian),
        (Workload::B, [0.95, 0.05, 0.0, 0.0, 0.0], Distribution::Zipfian),
        (Workload::C, [1.0, 0.0, 0.0, 0.0, 0.0], Distribution::Zipfian),
        (Workload::D, [0.95, 0.0, 0.05, 0.0, 0.0], Distribution::Latest),
        (Workload::E, [0.0, 0.0, 0.05, 0.95, 0.0], Distribution::Zipfian),
        (Workload::F, [0.5, 0.0, 0.0, 0.0, 0.5], Distribution::Zipfian),
    ] {
        let properties = Properties::of(workload);
        assert_eq!(
            properties.proportions().map(f64::to_bits),
            shares.map(f64::to_bits)
        );
        assert_eq!(properties.distribution, distribution);
        assert!(properties.check().is_ok());
    }
}

#[test]
fn properties_are_read_and_wrong_ones_named() {
    let mut properties = Properties::of(Workload::A);
    for property in [
        "recordcount=7",
        "requestdistribution=hotspot",
        "insertorder=ordered",
        "table=t",
    ] {
        properties.set(property).unwrap();
    }
    assert_eq!(properties.record_count, 7);
    assert_eq!(properties.distribution, Distribution::Hotspot);
    assert_eq!((properties.hashed, properties.table.as_str()), (false, "t"));
    for (property, part) in [
        ("recordcount", "NAME=VALUE"),
        ("recordcount=x", "recordcount cannot be x"),
        ("speed=9", "property speed is not known"),
        ("requestdistribution=odd", "odd is not known"),
        ("insertorder=odd", "odd is not hashed or ordered"),
    ] {
        let error = properties.set(property).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    for (property, part) in [
        ("readproportion=-1", "shares"),
        ("fieldcount=0", "fieldcount 0"),
        ("minscanlength=9999", "minscanlength 9999"),
        ("hotspotopnfraction=2", "hotspotopnfraction 2"),
    ] {
        let mut properties = Properties::of(Workload::A);
        properties.set(property).unwrap();
        let error = properties.check().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn row_keys_are_those_of_ycsb() {
    let mut properties = Properties::of(Workload::A);
    assert_eq!(row_key(&properties, 0), format!("user{}", fnv_hash(0)));
    properties.set("insertorder=ordered").unwrap();
    properties.set("zeropadding=5").unwrap();
    assert_eq!(row_key(&properties, 42), "user00042");
}

/// What is being inserted is not read before it, and everything before it, is there.
#[test]
fn readers_wait_for_inserts_without_gaps() {
    let inserted = Inserted::new(10);
    let (first, second) = (inserted.take(), inserted.take());
    assert_eq!((first, second, inserted.end()), (10, 11, 10));
    inserted.settle(second);
    assert_eq!(inserted.end(), 10);
    inserted.settle(first);
    assert_eq!(inserted.end(), 12);
}

#[test]
fn the_mix_follows_the_proportions() {
    let words = ["ycsb", "e", "--records", "5"];
    let arguments = CommandLine::try_parse_from(words).unwrap().arguments;
    let mix = Mix::new(
        &Properties::of(arguments.workload),
        &arguments.load,
        &Data::generated(),
    );
    let mut counts = [0; 5];
    for step in 0..1_000 {
        counts[mix.kind(f64::from(step) / 1_000.0)] += 1;
    }
    assert_eq!(counts, [0, 0, 50, 950, 0]);
    assert_eq!(mix.kind(1.0), 3);
}
