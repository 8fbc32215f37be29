//! A real HBase with both Thrift servers, by one command, for whoever wants to compare by hand. Runs until Enter, the end of
//! its input, or Ctrl-C; keeps no data.

use std::process::ExitCode;

use basalt_tests::Oracle;

fn main() -> ExitCode {
    let Some(mut oracle) = Oracle::start() else {
        return ExitCode::FAILURE;
    };
    match oracle.version() {
        Ok(version) => println!("HBase {version}"),
        Err(error) => eprintln!("{error}"),
    }
    println!("Thrift 1 (Hbase)         on {}", oracle.thrift1);
    println!("Thrift 2 (THBaseService) on {}", oracle.thrift2);
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
