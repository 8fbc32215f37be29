//! JVM clients of HBase, unmodified from Maven Central, over the native protocol.
//!
//! | module | clients |
//! | --- | --- |
//! | `java` | `hbase-shaded-client` 2.6.4 and 1.7.2, `hbase-client` 2.4.18 and 3.0.0-beta-1 |
//! | `asynchbase` | asynchbase 1.8.2 |
//! | `mapreduce` | HBase's MapReduce tools, 2.6.1 |
//! | `shell` | HBase's shell, 2.4.17 |
//! | `exceptions` | every class of exception, made by the clients of 1.7 to 3.0; refusals with their text |
//! | `security` | the same clients with users, tokens and certificates |
//! | `standby` | a client whose primary is replaced by its standby |
//! | `acl` | the table of rights, owners of snapshots, and tokens that clients ask for |
//! | `faults` | `hbase-shaded-client` 2.6.4 and `hbase-client` 3.0.0-beta-1 meet faults on demand |
//! | `user_code` | filters of users, in the Java host |
//! | `getting_started` | the programs and commands of `docs/getting-started/` |
//!
//! Each client makes a tour of a server and prints a transcript, one line for each request. The
//! files `answers*.txt` beside the programs in `tests/e2e/clients` are the transcripts with a real
//! HBase 2.6.1; Basalt's must be equal, except for differences that a table here explains. Tests
//! are skipped without Java, Maven or the jars.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use basalt_test_support::{Oracle, Server, workspace};

mod acl;
mod asynchbase;
mod exceptions;
mod faults;
mod getting_started;
mod java;
mod mapreduce;
mod security;
mod shell;
mod standby;
mod user_code;

/// A question whose answer differs from HBase's: the question, Basalt's answer, and why.
type Explained = (&'static str, &'static str, &'static str);

/// Runs `ask` with a server on an empty directory.
fn with_server(ask: impl FnOnce(&Server, &Path)) {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    ask(&server, dir.path());
    server.stop();
}

/// Set by the nightly run: tests beside a real HBase run only then. Most of them check recordings of HBase,
/// which no change of ours can break, and together they take minutes.
const REAL_HBASE: &str = "REAL_HBASE";

/// Runs `ask` with a real HBase that has no tables, and is shared by the tests of this process: its
/// start takes longer than a tour. Does nothing where HBase cannot be had, and without [`REAL_HBASE`].
fn with_hbase(ask: impl FnOnce(&mut Oracle, &Path)) {
    // The JVM ends with this process.
    static HBASE: Mutex<Option<Oracle>> = Mutex::new(None);
    if std::env::var_os(REAL_HBASE).is_none() {
        println!("not run: {REAL_HBASE} is not set, as it is in the nightly run");
        return;
    }
    let mut hbase = HBASE.lock().unwrap_or_else(PoisonError::into_inner);
    if hbase.is_none() {
        *hbase = Oracle::start();
    }
    let Some(hbase) = hbase.as_mut() else { return };
    hbase.drop_all().expect("tables of an earlier tour are dropped");
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    ask(hbase, dir.path());
}

/// Panics if HBase's present transcript is not the recorded one, and says where it was written to.
fn is_recorded(recorded: &str, transcript: &str, program: &str) {
    is_recorded_in(recorded, transcript, &format!("{program}/answers.txt"));
}

/// Panics if HBase's present transcript is not the recorded one, and says where it was written to: the
/// file of this name below `target`.
fn is_recorded_in(recorded: &str, transcript: &str, file: &str) {
    let written = workspace().join("target").join(file);
    std::fs::write(&written, transcript).expect("the folder was made by the build");
    let difference = recorded
        .lines()
        .zip(transcript.lines())
        .find(|(recorded, now)| recorded != now);
    assert_eq!(
        difference,
        None,
        "HBase's answers of now are in {}",
        written.display()
    );
    assert_eq!(recorded.lines().count(), transcript.lines().count());
}

/// Panics with the differences between Basalt's transcript and HBase's that have no explanation.
fn compare(recorded: &str, explained: &[Explained], transcript: &str, client: &str) {
    let wrong: Vec<String> = expected(recorded, explained)
        .zip(transcript.lines())
        .filter(|(expected, basalt)| expected != basalt)
        .map(|(expected, basalt)| format!("expected: {expected}\nBasalt:   {basalt}"))
        .collect();
    assert!(wrong.is_empty(), "{client}:\n{}", wrong.join("\n"));
    assert_eq!(recorded.lines().count(), transcript.lines().count(), "{client}");
}

/// HBase's lines, with Basalt's answer for those questions that are explained.
fn expected(recorded: &str, explained: &[Explained]) -> impl Iterator<Item = String> {
    recorded.lines().map(move |line| {
        let question = line.split(" -> ").next().unwrap_or_default();
        let explained = explained.iter().find(|(explained, _, _)| *explained == question);
        explained.map_or_else(|| line.to_owned(), |(_, ours, _)| format!("{question} -> {ours}"))
    })
}
