//! Options, row keys and the rows of operations, without a server.

use clap::Parser;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::data::Data;
use crate::session::Column;

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    arguments: Arguments,
}

fn parse(text: &str) -> Arguments {
    let words = std::iter::once("pe").chain(text.split_whitespace());
    CommandLine::try_parse_from(words).unwrap().arguments
}

#[test]
fn options_are_spelled_as_in_performance_evaluation() {
    let arguments = parse(
        "sequentialWrite randomRead --nclients=4 --rows=100 --table=T --presplit=4 --valueSize=10 --compress=LZ4 \
         --bloomFilter=ROWCOL --inmemory=true --columns=2 --families=3 --multiGet=5 --writeToWAL=false --sampleRate=0.5",
    );
    assert_eq!(
        arguments.commands,
        [Command::SequentialWrite, Command::RandomRead]
    );
    assert_eq!((arguments.load.threads, arguments.client_rows()), (4, 100));
    assert!(!arguments.write_to_wal && arguments.in_memory);
    assert_eq!(arguments.family_schemas().unwrap().len(), 3);
    let splits = arguments.splits();
    assert_eq!(splits[0], b"00000000000000000000000100");
    assert_eq!(splits.len(), 3);
    assert!(arguments.check().is_ok());
}

/// A GiB of values over all clients, unless rows are given.
#[test]
fn the_size_says_how_many_rows() {
    assert_eq!(parse("scan --nclients=8").client_rows(), 134_217);
    assert_eq!(
        parse("scan --nclients=2 --size=0.5 --valueSize=1024").client_rows(),
        262_144
    );
}

#[test]
fn impossible_options_are_refused_by_name() {
    let refused = |text: &str| parse(text).check().unwrap_err().to_string();
    assert!(refused("checkAndMutate --api thrift1").contains("checkAndMutate"));
    assert!(refused("scan --sampleRate=0").contains("--sampleRate"));
    assert!(refused("scan --size=0").contains("--size"));
    let schema = parse("randomWrite --bloomFilter=MAYBE").family_schemas();
    assert!(schema.unwrap_err().to_string().contains("MAYBE"));
}

/// One scan of the first family for each row, by a value that a filter's text can hold.
#[test]
fn a_filter_scan_asks_for_a_random_value_of_the_first_column() {
    let arguments = parse("filterScan --nclients=3 --rows=10 --valueSize=12 --families=2 --columns=2");
    let evaluation = Evaluation::new(Command::FilterScan, &arguments, &Data::generated());
    assert_eq!(evaluation.operations(), Some(30));
    assert!(!Command::FilterScan.writes());
    let mut random = SmallRng::seed_from_u64(1);
    let scan = evaluation.filter_scan(&mut random);
    assert!(scan.start.is_empty() && scan.stop.is_empty() && scan.limit.is_none());
    let columns = [0, 1].map(|column| Column::new("info0", column.to_string()));
    assert_eq!(scan.columns, columns);
    let filter = scan.filter.unwrap();
    let value = filter.strip_prefix("SingleColumnValueFilter('info0', '0', =, 'binary:");
    let value = value.and_then(|value| value.strip_suffix("')")).unwrap();
    assert!(
        value.len() == 12 && value.bytes().all(|byte| byte.is_ascii_uppercase()),
        "{value}"
    );
    assert_ne!(evaluation.filter_scan(&mut random).filter, Some(filter));
}

/// Values are text of flights, of the length asked for.
#[test]
fn values_are_those_of_the_data_set() {
    let arguments = parse("randomWrite --valueSize=30");
    let evaluation = Evaluation::new(Command::RandomWrite, &arguments, &Data::small_file());
    let value = evaluation.value(&mut SmallRng::seed_from_u64(1));
    assert_eq!((value.len(), &value[..14]), (30, &b"2001-01-01T00:"[..]));
}

/// Every row is run once, in order within each client, also when groups do not fit.
#[test]
fn sequential_operations_cover_each_client_once() {
    let arguments = parse("sequentialWrite --nclients=3 --rows=10 --multiPut=4");
    let evaluation = Evaluation::new(Command::SequentialWrite, &arguments, &Data::generated());
    assert_eq!(evaluation.operations(), Some(9));
    let mut rows: Vec<u64> = (0..9).flat_map(|index| evaluation.sequential(index)).collect();
    assert_eq!(&rows[..8], [0, 1, 2, 3, 10, 11, 12, 13]);
    rows.sort_unstable();
    assert_eq!(rows, (0..30).collect::<Vec<_>>());
    assert_eq!(operations::row_key(7), "00000000000000000000000007");
}
