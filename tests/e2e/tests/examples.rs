//! The client's examples (`client/examples/`) as programs, each against a server of its own.
//!
//! An example ends with its table dropped, so a run leaves nothing behind, and a second one works.

use std::process::Command;

use basalt_test_support::{Server, example};

/// Runs an example twice against one server and returns its output, which must not change.
fn output_of(name: &str) -> String {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let run = || {
        let output = Command::new(example(name))
            .arg(server.thrift.to_string())
            .output()
            .expect("it was built");
        assert!(output.status.success(), "{name}: {output:?}");
        String::from_utf8(output.stdout).expect("examples print text")
    };
    let first = run();
    assert_eq!(run(), first, "{name} leaves something behind");
    // The server's port is its own in each run of this test.
    first.replace(&server.thrift.port().to_string(), "PORT")
}

#[test]
fn versions() {
    assert_eq!(
        output_of("versions"),
        "now: 15\nat 4000: 15\nat 3000: 11\nat 2000: 12\nthen: 11\nafter the delete: 11\n"
    );
}

#[test]
fn scan_prefix() {
    assert_eq!(
        output_of("scan_prefix"),
        "ada/9987\nada/9988\nada/9989\ngrace has 6 unpaid orders\n"
    );
}

#[test]
fn counters() {
    assert_eq!(output_of("counters"), "bytes = 102400\ntotal = 200\nreset: 0\n");
}

#[test]
fn salted_keys() {
    let output = output_of("salted_keys");
    let (regions, keys): (Vec<&str>, Vec<&str>) =
        output.lines().partition(|line| line.starts_with("a region"));
    let rows = regions.iter().map(|line| {
        let rows = line
            .strip_prefix("a region has ")
            .and_then(|line| line.strip_suffix(" rows"));
        rows.expect(line).parse::<u32>().expect(line)
    });
    let rows: Vec<u32> = rows.collect();
    assert_eq!((rows.len(), rows.iter().sum::<u32>()), (4, 100), "{output}");
    assert!(rows.iter().all(|rows| *rows > 10), "writes are spread: {output}");
    let expected: Vec<String> = (1_010..1_015).map(|time| format!("event-{time:08}")).collect();
    assert_eq!(keys, expected, "in the order of time");
}

#[test]
fn check_and_mutate() {
    assert_eq!(
        output_of("check_and_mutate"),
        "seat 1 for ada: booked\nseat 1 for grace: taken\nseat 2 for grace: booked\n\
         discount for an unsold seat: true\nremoved if dearer than 30: false\n\
         seat 1: ada\nseat 2: grace\nseat 3: free\n"
    );
}

#[test]
fn native() {
    assert_eq!(
        output_of("native"),
        "ada has 1 cells\nada has 1 cells\nrefused: Request\nnothing\na region is served on port PORT\n"
    );
}

#[test]
fn apache_thrift() {
    let output = output_of("apache_thrift");
    let mut lines = output.lines();
    assert_eq!(lines.next(), Some("born = 1815"));
    let refused = lines.next().expect("a second line");
    assert!(
        refused.starts_with("refused: ") && refused.contains("no_such_table"),
        "{refused}"
    );
    assert_eq!(lines.next(), None);
}
