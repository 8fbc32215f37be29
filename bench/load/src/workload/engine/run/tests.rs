//! Every benchmark on a small database: its reported operations match the content of the database.

use clap::{Parser, ValueEnum};

use super::*;
use crate::workload::engine::BasaltArguments;
use crate::workload::engine::basalt::Basalt;

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    arguments: BasaltArguments,
}

fn arguments(dir: &std::path::Path, more: &[&str]) -> BasaltArguments {
    let db = dir.to_str().unwrap();
    let words = ["engine", "--db", db, "--num", "2000", "--value-size", "30"];
    CommandLine::parse_from(words.iter().chain(more)).arguments
}

fn open(arguments: &BasaltArguments) -> Result<Database<Basalt>> {
    Database::open(&arguments.common.db, &|dir: &_| Basalt::open(dir, arguments))
}

fn check(benchmark: Benchmark, arguments: &BasaltArguments, database: &Database<Basalt>) -> Tally {
    run(benchmark, &arguments.common, database, 0).unwrap().tally
}

#[test]
fn benchmarks_do_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let arguments = arguments(&dir, &["--threads", "2", "--seek-nexts", "9", "--histogram"]);
    let database = open(&arguments).unwrap();
    let filled = check(Benchmark::FillSeq, &arguments, &database);
    assert_eq!(
        (filled.operations, filled.bytes, filled.found),
        (4_000, 4_000 * 46, None)
    );
    assert_eq!(filled.latencies.unwrap().report().count, 4_000);
    for settle in [false, true] {
        if settle {
            assert_eq!(check(Benchmark::Compact, &arguments, &database).operations, 1);
        }
        let read = check(Benchmark::ReadRandom, &arguments, &database);
        assert_eq!(
            (read.operations, read.found, read.bytes),
            (4_000, Some(4_000), 4_000 * 46)
        );
        let skewed = self::arguments(&dir, &["--threads", "2", "--distribution", "zipfian"]);
        let read = check(Benchmark::ReadRandom, &skewed, &database);
        assert_eq!((read.operations, read.found), (4_000, Some(4_000)));
        let missing = check(Benchmark::ReadMissing, &arguments, &database);
        assert_eq!(
            (missing.operations, missing.found, missing.bytes),
            (4_000, Some(0), 0)
        );
        for more in [
            &["--batch-size", "7"][..],
            &["--batch-size", "7", "--read-threads", "0"],
        ] {
            let batches = self::arguments(&dir, &[&["--threads", "2", "--histogram"], more].concat());
            let together = check(Benchmark::MultiReadRandom, &batches, &database);
            assert_eq!(
                (together.operations, together.found, together.bytes),
                (4_000, Some(4_000), 4_000 * 46)
            );
            // 286 batches of each thread, the last one of five keys.
            assert_eq!(together.latencies.unwrap().report().count, 2 * 286);
        }
        let in_order = check(Benchmark::ReadSeq, &arguments, &database);
        assert_eq!((in_order.operations, in_order.bytes), (4_000, 4_000 * 46));
        let backward = check(Benchmark::ReadReverse, &arguments, &database);
        assert_eq!((backward.operations, backward.bytes), (4_000, 4_000 * 46));
        let seeks = check(Benchmark::SeekRandom, &arguments, &database);
        assert_eq!((seeks.operations, seeks.found), (4_000, Some(4_000)));
        // Ten rows a seek, but at the end of the table.
        assert!(
            (39_000 * 46..=40_000 * 46).contains(&seeks.bytes),
            "{}",
            seeks.bytes
        );
        let reads = check(Benchmark::ReadWhileWriting, &arguments, &database);
        assert_eq!((reads.operations, reads.found), (4_000, Some(4_000)));
    }
    database.close().unwrap();
}

/// Fills and overwrites with batches write what those without do: every key once in order, and as many
/// operations as asked for, the last batch being shorter.
#[test]
fn fills_write_in_batches() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let arguments = arguments(&dir, &["--batch-size", "7", "--histogram"]);
    let database = open(&arguments).unwrap();
    for benchmark in [Benchmark::FillSeq, Benchmark::FillRandom, Benchmark::Overwrite] {
        let written = check(benchmark, &arguments, &database);
        assert_eq!((written.operations, written.bytes), (2_000, 2_000 * 46));
        assert_eq!(written.latencies.unwrap().report().count, 286);
        let read = check(Benchmark::ReadSeq, &arguments, &database);
        assert_eq!(
            (read.operations, read.bytes),
            (2_000, 2_000 * 46),
            "{benchmark:?}"
        );
    }
    database.close().unwrap();
}

#[test]
fn the_database_is_described_as_it_stands() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let arguments = arguments(&dir, &["--histogram"]);
    let database = open(&arguments).unwrap();
    let filled = run(Benchmark::FillSeq, &arguments.common, &database, 0).unwrap();
    let written = 2_000 * 46;
    assert_eq!(
        (filled.standing.store_files, filled.standing.flush_bytes),
        (0, Some(0))
    );
    let wal_bytes = filled.standing.wal_bytes.unwrap();
    assert!(wal_bytes > written && filled.standing.memstore_bytes > written);
    assert!(filled.standing.disk_bytes >= wal_bytes);
    // Other tests of this process write too, if they run in it.
    assert!(
        filled
            .standing
            .written_bytes
            .is_none_or(|bytes| bytes >= wal_bytes)
    );
    let compacted = run(Benchmark::Compact, &arguments.common, &database, 0)
        .unwrap()
        .standing;
    assert_eq!((compacted.store_files, compacted.memstore_bytes), (1, 0));
    assert!(compacted.store_bytes > written);
    let read = run(Benchmark::ReadRandom, &arguments.common, &database, 0).unwrap();
    assert!(read.standing.index_bytes > 0 && read.standing.cache_misses > Some(0));
    let lookups = read.standing.cache_hits.zip(read.standing.cache_misses);
    assert!(lookups.is_some_and(|(hits, misses)| hits + misses >= 2_000));
    database.close().unwrap();
    let database = open(&arguments).unwrap();
    let reopened = database.standing().unwrap();
    assert!(reopened.open_seconds > 0.0);
    assert_eq!(
        (reopened.store_bytes, reopened.wal_bytes),
        (compacted.store_bytes, Some(0))
    );
    database.close().unwrap();
}

#[test]
fn deleted_keys_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let arguments = arguments(&dir, &[]);
    let database = open(&arguments).unwrap();
    check(Benchmark::FillSeq, &arguments, &database);
    let deleted = check(Benchmark::DeleteSeq, &arguments, &database);
    assert_eq!((deleted.operations, deleted.bytes), (2_000, 2_000 * 16));
    for direction in [Benchmark::ReadSeq, Benchmark::ReadReverse] {
        assert_eq!(check(direction, &arguments, &database).operations, 0);
    }
    database.close().unwrap();
}

#[test]
fn a_fill_begins_with_an_empty_database_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let arguments = arguments(&dir, &["--sync"]);
    let database = open(&arguments).unwrap();
    check(Benchmark::FillSeq, &arguments, &database);
    let database = database
        .emptied(&|dir: &_| Basalt::open(dir, &arguments))
        .unwrap();
    let synced = check(Benchmark::FillSync, &arguments, &database);
    assert_eq!(synced.operations, 2_000);
    let in_order = check(Benchmark::ReadSeq, &arguments, &database);
    assert_eq!(
        in_order.operations, 2,
        "keys of fillsync come from a thousandth of the numbers"
    );
    database.close().unwrap();

    // A directory without the tool's mark may be another program's data.
    std::fs::remove_file(dir.join("BASALT-BENCH")).unwrap();
    assert!(matches!(open(&arguments), Err(Error::Usage(_))));
    assert!(dir.join("data").exists());
}

#[test]
fn options_are_spelled_as_in_db_bench_too() {
    let dir = std::path::Path::new("db");
    let more = [
        "--benchmarks=fillseq,readrandom",
        "--use_existing_db=1",
        "--cache_size=1000",
        "--bloom_bits=10",
    ];
    let arguments = arguments(dir, &more).common;
    assert_eq!(arguments.benchmarks, [Benchmark::FillSeq, Benchmark::ReadRandom]);
    assert!(arguments.use_existing_db);
    assert_eq!(arguments.cache_size, 1_000);
    let words = ["engine", "fillseq", "compact", "--db=x", "--use-existing-db"];
    let arguments = CommandLine::parse_from(words).arguments.common;
    assert_eq!(arguments.names, [Benchmark::FillSeq, Benchmark::Compact]);
    assert!(arguments.use_existing_db);
    assert!(CommandLine::try_parse_from(["engine", "fillseq", "--db=x", "--bloom-bits=7"]).is_err());
    for benchmark in Benchmark::value_variants() {
        assert_eq!(
            benchmark.to_possible_value().unwrap().get_name(),
            benchmark.name()
        );
    }
}
