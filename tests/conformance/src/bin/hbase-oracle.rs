//! A real HBase with both Thrift servers, by one command, for comparisons by hand. Runs until
//! Enter, the end of its input, or Ctrl-C; keeps no data.

use std::process::ExitCode;

use basalt_test_support::Oracle;
use clap::Parser;

/// Start a real HBase with both Thrift servers on empty storage.
#[derive(Debug, Parser)]
struct CommandLine {
    /// For measurements: HBase's own numbers of threads, the optimizing compiler and a heap of 4 GiB. Without
    /// it HBase starts sooner and takes less.
    #[arg(long)]
    for_load: bool,
    /// Region servers, all in the one process.
    #[arg(long, default_value_t = 1, requires = "for_load", value_parser = clap::value_parser!(u16).range(1..=64))]
    region_servers: u16,
    /// Requests that each region server takes in a second; a row of a batch is one. Default: no limit.
    #[arg(long, requires = "for_load", value_parser = clap::value_parser!(u64).range(1..))]
    requests_per_second: Option<u64>,
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let started = if line.for_load {
        Oracle::start_for_load(line.region_servers, line.requests_per_second)
    } else {
        Ok(Oracle::start())
    };
    let mut oracle = match started {
        Ok(Some(oracle)) => oracle,
        Ok(None) => return ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match oracle.version() {
        Ok(version) => println!("HBase {version}"),
        Err(error) => eprintln!("{error}"),
    }
    println!("Thrift 1 (Hbase)         on {}", oracle.thrift1);
    println!("Thrift 2 (THBaseService) on {}", oracle.thrift2);
    match oracle.zookeeper_port() {
        Ok(port) => println!("Native, by ZooKeeper      on 127.0.0.1:{port}"),
        Err(error) => eprintln!("{error}"),
    }
    match oracle.rest() {
        Ok(address) => println!("REST                     on {address}"),
        Err(error) => eprintln!("{error}"),
    }
    println!("Enter stops it.");
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("standard input: {error}");
            ExitCode::FAILURE
        }
    }
}
