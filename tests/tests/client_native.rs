//! HBase's unmodified Java client over its native protocol: `org.apache.hbase:hbase-shaded-client`
//! 2.6.4, which finds the server through ZooKeeper or through the RPC registry.
//!
//! `tests/clients/java-native` calls the client's synchronous and asynchronous API, its
//! BufferedMutator and its Admin, and prints a transcript. `answers.txt` is the transcript with a
//! real HBase; Basalt's must be equal. Skipped without Java, Maven or the jars.

use basalt_tests::{JavaProgram, Oracle, Server, workspace};

/// The transcript recorded with HBase.
const ANSWERS: &str = include_str!("../clients/java-native/answers.txt");

/// Questions whose answers differ, what Basalt answers, and why.
const EXPLAINED: &[(&str, &str, &str)] = &[];

/// Goal: the recorded transcript is still that of HBase.
#[test]
fn hbase_gives_the_recorded_answers() {
    let Some(client) = JavaProgram::find("clients/java-native") else {
        return;
    };
    let Some(mut oracle) = Oracle::start() else { return };
    let port = oracle.zookeeper_port().expect("the oracle has started");
    let transcript = client.tour(&["zookeeper", "127.0.0.1", &port.to_string()]);
    let recorded = workspace().join("target/clients/java-native/answers.txt");
    std::fs::write(&recorded, &transcript).expect("the folder was made by the build");
    let difference = ANSWERS
        .lines()
        .zip(transcript.lines())
        .find(|(recorded, now)| recorded != now);
    assert_eq!(
        difference,
        None,
        "HBase's answers of now are in {}",
        recorded.display()
    );
    assert_eq!(ANSWERS.lines().count(), transcript.lines().count());
}

#[test]
fn basalt_gives_hbase_answers_through_both_registries() {
    let Some(client) = JavaProgram::find("clients/java-native") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for registry in ["zookeeper", "rpc"] {
        let port = server.thrift.port().to_string();
        compare(&client.tour(&[registry, "127.0.0.1", &port]), registry);
    }
    server.stop();
}

/// Panics with the differences between Basalt's transcript and HBase's that have no explanation.
fn compare(transcript: &str, registry: &str) {
    let expected = ANSWERS.lines().map(|line| {
        let question = line.split(" -> ").next().unwrap_or_default();
        let explained = EXPLAINED.iter().find(|(explained, _, _)| *explained == question);
        explained.map_or_else(|| line.to_owned(), |(_, ours, _)| format!("{question} -> {ours}"))
    });
    let wrong: Vec<String> = expected
        .zip(transcript.lines())
        .filter(|(expected, basalt)| expected != basalt)
        .map(|(expected, basalt)| format!("expected: {expected}\nBasalt:   {basalt}"))
        .collect();
    assert!(wrong.is_empty(), "{registry}:\n{}", wrong.join("\n"));
    assert_eq!(ANSWERS.lines().count(), transcript.lines().count(), "{registry}");
}
