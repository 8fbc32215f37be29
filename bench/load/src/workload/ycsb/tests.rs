//! Properties, keys and mixes, without a server.

use basalt_client::{Cell, CellKind, Row};
use bytes::Bytes;
use clap::Parser;

use super::keys::{Inserted, row_key};
use super::*;
use crate::data::Data;
use crate::load::choose::{Distribution, fnv_hash};
use crate::load::retry::Failures;

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
        "requestdistribution=exponential",
        "exponential.percentile=90",
        "exponential.frac=0.5",
        "fieldlengthdistribution=constant",
        "insertorder=ordered",
        "table=t",
    ] {
        properties.set(property).unwrap();
    }
    assert_eq!(properties.record_count, 7);
    assert_eq!(properties.distribution, Distribution::Exponential);
    let exponential = properties.shape.exponential;
    assert_eq!(
        [exponential.percentile, exponential.fraction].map(f64::to_bits),
        [90.0, 0.5].map(f64::to_bits)
    );
    assert_eq!((properties.hashed, properties.table.as_str()), (false, "t"));
    for (property, part) in [
        ("recordcount", "NAME=VALUE"),
        ("recordcount=x", "recordcount cannot be x"),
        ("speed=9", "property speed is not known"),
        ("requestdistribution=odd", "odd is not known"),
        ("insertorder=odd", "odd is not hashed or ordered"),
        ("dataintegrity=maybe", "dataintegrity cannot be maybe"),
        ("fieldlengthdistribution=zipfian", "zipfian is not constant"),
    ] {
        let error = properties.set(property).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    for (property, part) in [
        ("readproportion=-1", "shares"),
        ("fieldcount=0", "fieldcount 0"),
        ("minscanlength=9999", "minscanlength 9999"),
        ("hotspotopnfraction=2", "hotspotopnfraction 2"),
        ("exponential.percentile=100", "exponential.percentile 100"),
        ("exponential.frac=0", "exponential.frac 0"),
    ] {
        let mut properties = Properties::of(Workload::A);
        properties.set(property).unwrap();
        let error = properties.check().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// Computed with Java's `String.hashCode` as it is specified.
#[test]
fn values_that_can_be_checked_are_those_of_ycsb() {
    let hash_code = |text: &str| {
        let add = |hash: i32, byte: u8| hash.wrapping_mul(31).wrapping_add(i32::from(byte));
        text.bytes().fold(0, add).to_string()
    };
    assert_eq!(hash_code("hello"), "99162322", "known from Java");
    let mut expected = "user1:field0".to_owned();
    while expected.len() < 60 {
        expected += ":";
        expected += &hash_code(&expected);
    }
    assert_eq!(
        integrity::value(b"user1", b"field0", 60),
        expected.as_bytes()[..60]
    );
    assert_eq!(integrity::value(b"user1", b"field0", 4), "user");
}

#[test]
fn a_get_of_what_was_not_written_has_failed() {
    let cell = |value: &Bytes| Cell {
        family: "family".into(),
        qualifier: "field3".into(),
        value: value.clone(),
        timestamp: 1,
        kind: CellKind::Put,
        tags: Bytes::new(),
    };
    let row = |value: &Bytes| Row {
        key: "user7".into(),
        cells: vec![cell(value)],
        partial: false,
    };
    let right = integrity::value(b"user7", b"field3", 100);
    let wrong = integrity::value(b"user7", b"field4", 100);
    for (checked, found, failure) in [
        (true, vec![row(&right)], None),
        (true, vec![row(&wrong)], Some("user7 has another value in field3")),
        (true, vec![], Some("user7 is missing")),
        (false, vec![row(&wrong)], None),
    ] {
        let mut properties = Properties::of(Workload::A);
        properties.set(&format!("dataintegrity={checked}")).unwrap();
        let words = ["ycsb", "a"];
        let load = CommandLine::try_parse_from(words).unwrap().arguments.load;
        let mix = Mix::new(&properties, &load, &Data::generated());
        let mut failures = Failures::default();
        let rows = mix.verified(b"user7", &found, &mut failures);
        assert_eq!(rows, failure.is_none().then_some(1));
        assert_eq!(failures.calls, u64::from(failure.is_some()));
        let first = failures.first.unwrap_or_default();
        assert!(first.contains(failure.unwrap_or_default()), "{first}");
    }
}

#[test]
fn values_of_keys_are_not_flights() {
    let words = ["ycsb", "a", "-p", "dataintegrity=true", "--input", "f.parquet"];
    let arguments = CommandLine::try_parse_from(words).unwrap().arguments;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let refused = runtime.block_on(measure(arguments)).unwrap_err();
    assert!(matches!(refused, Error::Usage(_)), "{refused}");
    assert!(refused.to_string().contains("dataintegrity"), "{refused}");
}

#[test]
fn row_keys_are_those_of_ycsb() {
    let mut properties = Properties::of(Workload::A);
    assert_eq!(row_key(&properties, 0), format!("user{}", fnv_hash(0)));
    properties.set("insertorder=ordered").unwrap();
    properties.set("zeropadding=5").unwrap();
    assert_eq!(row_key(&properties, 42), "user00042");
}

/// A record that is being inserted is not read yet, and every record before it is there.
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
