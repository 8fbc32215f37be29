//! Basalt beside a real HBase: the same calls, the same answers. Not run without Java and Maven.
//!
//! Longer runs: `cargo run -p basalt-conformance --bin basalt-differ -- --seeds 1..200 --steps 500`, with
//! `--api native` for native calls and `--api rest` for those of REST.

use basalt_conformance::generate::{self, Apis};
use basalt_conformance::run::Pair;
use basalt_conformance::target::{BASALT_SETTINGS, Basalt, HBASE_SETTINGS, HBase};
use basalt_test_support::{Oracle, Server};

/// Seeds and steps of a run that is short enough for every test run. Other seeds than those in `cases/`.
const THRIFT_SEEDS: std::ops::RangeInclusive<u64> = 1001..=1012;
const NATIVE_SEEDS: std::ops::RangeInclusive<u64> = 2001..=2006;
const REST_SEEDS: std::ops::RangeInclusive<u64> = 3001..=3006;
const STEPS: usize = 250;

#[test]
fn generated_calls_have_hbases_answers() {
    let Some(oracle) = Oracle::start_with(HBASE_SETTINGS) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), BASALT_SETTINGS);
    let hbase = HBase::connect(oracle).expect("HBase accepts connections");
    let basalt = Basalt::connect(server.thrift).expect("a connection");
    let mut pair = Pair::new(hbase, basalt);
    let mut played = 0;
    let thrift = THRIFT_SEEDS.map(|seed| (seed, Apis::Thrift));
    let native = NATIVE_SEEDS.map(|seed| (seed, Apis::Native));
    let rest = REST_SEEDS.map(|seed| (seed, Apis::Rest));
    for (seed, apis) in thrift.chain(native).chain(rest) {
        let script = generate::script(seed, STEPS, apis);
        let run = pair
            .run(&script)
            .unwrap_or_else(|error| panic!("seed {seed} ({apis:?}): {error}"));
        played += run.played;
        if let Some(difference) = &run.difference {
            let shrunk = pair.shrunk(&run, |hbase| hbase.oracle.drop_all());
            let shown = shrunk.as_ref().unwrap_or(&run);
            let last = shown.difference.as_ref().unwrap_or(difference);
            panic!(
                "seed {seed} ({apis:?}):\n{}\nBasalt {}",
                shown.script, last.basalt
            );
        }
        pair.hbase.oracle.drop_all().expect("HBase drops its tables");
    }
    println!("{played} steps, no difference that is not explained");
    server.stop();
}
