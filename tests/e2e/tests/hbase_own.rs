//! A selection of HBase's own test classes, against the program of this build.
//!
//! `tests/hbase-own/run.py` fetches the jars, starts the server and compares each test's outcome with
//! `expected.tsv`. Exit status 77 says that the machine lacks Java, Maven or the jars; the test is then not
//! run. The nightly run has all classes.

use std::process::Command;

use basalt_test_support::{binary, workspace};

/// Exit status of the runner on a machine that lacks a tool.
const NOT_RUN: i32 = 77;

#[test]
fn fast_classes_of_hbase_pass() {
    let script = workspace().join("tests/hbase-own/run.py");
    let output = Command::new("python3")
        .arg(&script)
        .arg("--fast")
        .arg("--binary")
        .arg(binary("basalt"))
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return println!("not run: HBase's own tests, since python3 does not start: {error}"),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout);
    match output.status.code() {
        Some(0) => println!("{printed}"),
        Some(NOT_RUN) => println!("{}", printed.lines().last().unwrap_or("not run")),
        _ => panic!("{}:\n{printed}\n{}", output.status, text(&output.stderr)),
    }
}
