//! HBase's own Java client for Thrift 2, unmodified: `ThriftConnection`, `ThriftAdmin` and `ThriftTable` of
//! `org.apache.hbase:hbase-thrift`.
//!
//! `tests/e2e/clients/java` is a tour with it: namespaces, tables and their descriptors, rows,
//! counters, checks, scans, every filter in HBase's own encoding, and the result of each refusal.
//! It prints a transcript. `tests/e2e/clients/java/answers.txt` is the transcript that HBase left;
//! Basalt must leave the same, in every transport and protocol of the client. Not run without Java,
//! Maven or the jars.

use basalt_test_support::{JavaProgram, Oracle, Server, workspace};

/// HBase's answers.
const ANSWERS: &str = include_str!("../clients/java/answers.txt");

/// Answers that may differ, whatever was asked: HBase's, ours, why.
const EXPLAINED: &[(&str, &str, &str)] = &[
    (
        "throws IOException by TApplicationException",
        "throws IOException by TIOError canRetry=false",
        "HBase fails on bad input with an internal error; we answer with the declared exception",
    ),
    (
        "throws IOException by TIOError canRetry=true",
        "throws IOException by TIOError canRetry=false",
        "HBase's gateway tries again what cannot succeed, gives up, and asks the client to try again",
    ),
];

/// Single questions whose answers differ, and why.
const EXPLAINED_QUESTIONS: &[(&str, &str)] = &[
    (
        "put if m NO_OP the value",
        "HBase has no such comparison and fails; we take it for one that never holds",
    ),
    (
        "put if absent",
        "the client asks by a check without a value, on which HBase's gateway fails; we do what was meant",
    ),
    (
        "value as a number",
        "HBase reads what lies behind a value of less than eight bytes; to us it is no number",
    ),
    ("skip", "as \"value as a number\""),
];

/// Questions that the client answers wrong over framed transports, whatever the server: it takes the frame
/// for each value.
const WRONG_IF_FRAMED: &[&str] = &["attributes", "after all", "attributes after all"];

/// The recorded answers are HBase's.
#[test]
fn hbase_gives_the_recorded_answers() {
    let Some(client) = JavaProgram::find("e2e/clients/java") else {
        return;
    };
    let Some(oracle) = Oracle::start() else { return };
    let transcript = client.tour(&["127.0.0.1", &oracle.thrift2.port().to_string()]);
    let recorded = workspace().join("target/e2e/clients/java/answers.txt");
    std::fs::write(&recorded, &transcript).expect("the folder was made by the build");
    let mut lines = ANSWERS.lines().zip(transcript.lines());
    let difference = lines.find(|(recorded, now)| recorded != now);
    assert_eq!(
        difference,
        None,
        "HBase's answers of now are in {}",
        recorded.display()
    );
    assert_eq!(ANSWERS.lines().count(), transcript.lines().count());
}

#[test]
fn basalt_gives_hbase_answers_in_every_transport_and_protocol() {
    let Some(client) = JavaProgram::find("e2e/clients/java") else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for words in [&[][..], &["framed"], &["compact"], &["framed", "compact"]] {
        let port = server.thrift.port().to_string();
        let transcript = client.tour(&[&["127.0.0.1", port.as_str()][..], words].concat());
        compare(&transcript, words);
    }
    // The client posts to the root of the server and cannot be given a path.
    let transcript = client.tour(&["http://127.0.0.1", &server.http.port().to_string(), "http"]);
    compare(&transcript, &["http"]);
    server.stop();
}

/// Panics with the differences between Basalt's transcript and HBase's that have no explanation.
fn compare(transcript: &str, words: &[&str]) {
    let mut wrong = Vec::new();
    let pairs = ANSWERS.lines().zip(transcript.lines());
    for (hbase, basalt) in pairs.filter(|(hbase, basalt)| hbase != basalt) {
        let question = hbase.split(" -> ").next().unwrap_or_default();
        if !(is_wrong_in_client(question, words) || is_explained(hbase, basalt)) {
            wrong.push(format!("HBase:  {hbase}\nBasalt: {basalt}"));
        }
    }
    assert!(wrong.is_empty(), "{words:?}:\n{}", wrong.join("\n"));
    assert_eq!(
        ANSWERS.lines().count(),
        transcript.lines().count(),
        "{words:?}: lines"
    );
}

fn is_wrong_in_client(question: &str, words: &[&str]) -> bool {
    words.contains(&"framed") && WRONG_IF_FRAMED.contains(&question)
}

fn is_explained(hbase: &str, basalt: &str) -> bool {
    let (Some((asked, theirs)), Some((asked_too, ours))) =
        (hbase.split_once(" -> "), basalt.split_once(" -> "))
    else {
        return false;
    };
    let by_answer = || EXPLAINED.iter().any(|known| (known.0, known.1) == (theirs, ours));
    let by_question = || EXPLAINED_QUESTIONS.iter().any(|known| known.0 == asked);
    asked == asked_too && (by_answer() || by_question())
}
