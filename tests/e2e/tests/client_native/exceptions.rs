//! Exceptions reach users with their text: HBase's clients make each class that the server sends.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use basalt_idl::native::exception::ExceptionClass;
use basalt_test_support::java::SMALL;
use basalt_test_support::{JavaProgram, workspace};

use super::{java, with_server};

/// Classes that some clients do not make, with the versions of these and the reason.
const NOT_MADE: [(ExceptionClass, &[&str], &str); 3] = [
    (
        ExceptionClass::Constraint,
        &["1.7.2", "2.4.18", "2.6.4", "3.0.0-beta-1"],
        "sent for changes of hbase:meta only, as HBase does: programs with hbase-server catch it",
    ),
    (
        ExceptionClass::SecurityNotEnabled,
        &["1.7.2", "2.4.18", "2.6.4", "3.0.0-beta-1"],
        "clients that ask for it compare the name",
    ),
    (
        ExceptionClass::SnapshotTtlExpired,
        &["1.7.2"],
        "its snapshots have no time to live",
    ),
];

/// Classes in the sources that never stand alone in an answer: the text of one that clients have begins with
/// them.
const WRAPPED: [&str; 9] = [
    "java.io.FileNotFoundException",
    "java.lang.ClassNotFoundException",
    "java.lang.IllegalArgumentException",
    "java.lang.RuntimeException",
    "java.lang.UnsupportedOperationException",
    "org.apache.hadoop.hbase.constraint.ConstraintException",
    "org.apache.hadoop.hbase.filter.IncompatibleFilterException",
    "org.apache.hadoop.hbase.io.hfile.CorruptHFileException",
    "org.apache.hadoop.hbase.ipc.UnknownServiceException",
];

/// Class of the calls on replication peers, which clients of HBase 1.x do not have. `check_16` of
/// `tests/conformance/tests/growing_out` has HBase's own client make it.
const OF_PEERS: &str = "org.apache.hadoop.hbase.ReplicationPeerNotFoundException";

/// A class as a client showed it: its name, whether it repeats the call, whether it has the server's text,
/// and whether an action's result has.
fn made(mut java: Command, version: &str) -> Vec<[String; 5]> {
    let mut program = java
        .args(SMALL)
        .arg("basalt.client.Exceptions")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("java was found before");
    let names: Vec<_> = ExceptionClass::ALL.iter().map(|class| class.name()).collect();
    let names = names.join("\n") + "\n";
    let mut input = program.stdin.take().expect("piped");
    input.write_all(names.as_bytes()).expect("the program reads");
    drop(input);
    let output = program.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{version}");
    let lines = String::from_utf8(output.stdout).expect("names are text");
    let parts = |line: &str| -> [String; 5] {
        let mut parts = line.splitn(5, ' ').map(str::to_owned);
        std::array::from_fn(|_| parts.next().expect("five parts"))
    };
    lines.lines().map(parts).collect()
}

/// Panics unless the client makes each class, with the server's text, and repeats the calls that it should.
fn makes_all(java: Command, version: &str) {
    let lines = made(java, version);
    assert_eq!(lines.len(), ExceptionClass::ALL.len(), "{version}");
    for (class, [name, made, repeats, has_text, of_action]) in ExceptionClass::ALL.iter().zip(lines) {
        assert_eq!(class.name(), name);
        let is_known = !NOT_MADE
            .iter()
            .any(|(unknown, versions, _)| unknown == class && versions.contains(&version));
        assert_eq!(name == made, is_known, "{version}: {name} becomes {made}");
        assert_eq!(has_text == "true", is_known, "{version}: text of {name}");
        assert_eq!(
            of_action == "made",
            is_known,
            "{version}: {name} of an action: {of_action}"
        );
        if is_known {
            assert_eq!(
                repeats == "true",
                !class.do_not_retry(),
                "{version} repeats after {name}"
            );
        }
    }
}

#[test]
fn hbase_clients_make_every_exception() {
    let Some(program) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    makes_all(program.java(), "2.6.4");
    for version in ["2.4.18", "3.0.0-beta-1"] {
        if let Some(program) = java::version(version) {
            makes_all(program.java(), version);
        }
    }
    // The same classes in front of the jars of 1.7.2.
    if let Some(old) = JavaProgram::find("e2e/clients/java-1.7") {
        let own = program
            .class_path()
            .split(':')
            .next()
            .expect("the program's classes");
        makes_all(old.java_with(Path::new(own)), "1.7.2");
    }
}

/// Goal: no other class is sent. Method: the literals of the server that are names of exceptions.
#[test]
fn all_exceptions_of_the_server_are_known() {
    fn literals(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                literals(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("sources are text");
            let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
            let is_class = |word: &&str| {
                let is_exception = word.ends_with("Exception") || word.ends_with("TooLarge");
                is_exception && (word.starts_with("org.apache.") || word.starts_with("java."))
            };
            found.extend(words.filter(is_class).map(str::to_owned));
        }
    }
    let mut found = BTreeSet::new();
    for folder in ["server/src", "idl/src/native"] {
        literals(&workspace().join(folder), &mut found);
    }
    let sent = ExceptionClass::ALL.iter().map(|class| class.name().to_owned());
    let others = WRAPPED.into_iter().chain([OF_PEERS]).map(str::to_owned);
    let known: BTreeSet<String> = sent.chain(others).collect();
    let unknown: Vec<_> = found.difference(&known).collect();
    assert!(
        unknown.is_empty(),
        "not made by a client in any test: {unknown:?}"
    );
    assert!(found.len() > 40, "{} classes", found.len());
}

#[test]
fn refusals_reach_users_of_2_6_4_with_their_text() {
    refusals(JavaProgram::find("e2e/clients/java-native"));
}

#[test]
fn refusals_reach_users_of_2_4_18_with_their_text() {
    refusals(java::version("2.4.18"));
}

#[test]
fn refusals_reach_users_of_3_0_0_beta_1_with_their_text() {
    refusals(java::version("3.0.0-beta-1"));
}

fn refusals(client: Option<JavaProgram>) {
    let Some(client) = client else { return };
    with_server(|server, _| {
        let output = client
            .java()
            .args(SMALL)
            .args(["basalt.client.Refusals", "zookeeper", "127.0.0.1"])
            .arg(server.thrift.port().to_string())
            .output()
            .expect("java was found before");
        let transcript = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{transcript}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut lines = transcript.lines();
        for (what, class, text) in [
            (
                "a coprocessor",
                "DoNotRetryIOException",
                "Class org.example.Observer cannot be loaded Set ",
            ),
            (
                "a quota",
                "DoNotRetryIOException",
                "NumberFormatException while getting max tables.",
            ),
            (
                "a table beyond the quota",
                "QuotaExceededException",
                "maximum number of tables allowed",
            ),
            (
                "a namespace with tables",
                "DoNotRetryIOException",
                "Only empty namespaces can be removed",
            ),
            ("a split key", "DoNotRetryIOException", "the limit 'split key' is"),
            ("a merge", "", "non-adjacent regions"),
            ("a cell", "", "exceeds limit of 1024 bytes"),
            ("a snapshot", "RestoreSnapshotException", "Unable to find"),
        ] {
            let line = lines.next().unwrap_or_default();
            let (asked, answer) = line.split_once(" -> ").expect("a line for each call");
            assert_eq!(asked, what);
            assert!(answer.starts_with(class) && answer.contains(text), "{line}");
        }
    });
}
