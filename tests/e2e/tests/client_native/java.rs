//! HBase's Java clients: the synchronous and asynchronous API, BufferedMutator and Admin.
//!
//! `tests/e2e/clients/java-native` is compiled against each version of the 2.x and 3.x lines, and
//! `tests/e2e/clients/java-1.7` against 1.7.2, whose API differs. A client finds the server through
//! ZooKeeper or through the RPC registry of its version.

use basalt_test_support::JavaProgram;

use super::{Explained, compare, is_recorded, with_hbase, with_server};

/// The transcripts recorded with HBase 2.6.1.
pub(super) const ANSWERS: &str = include_str!("../../clients/java-native/answers.txt");
pub(super) const ANSWERS_1_7: &str = include_str!("../../clients/java-1.7/answers.txt");

/// Answers of the 3.0 client, with HBase as with Basalt, that differ from those of the 2.x clients.
pub(super) const SINCE_3_0: &[Explained] = &[
    (
        "batch with a failure",
        "throws RetriesExhaustedException",
        "the client has no list of failures any more",
    ),
    (
        "renewed",
        "false false false",
        "its scanner prefetches and cannot renew the lease of a fetch in flight",
    ),
];

/// Differences of the 1.7.2 client's transcript.
pub(super) const EXPLAINED_1_7: &[Explained] = &[];

#[test]
fn hbase_gives_the_recorded_answers() {
    hbase_gives(ANSWERS, "e2e/clients/java-native");
}

#[test]
fn hbase_gives_the_recorded_answers_to_1_7() {
    hbase_gives(ANSWERS_1_7, "e2e/clients/java-1.7");
}

/// Panics if the tour of HBase by the program of this project differs from the recorded one.
fn hbase_gives(recorded: &str, project: &str) {
    let Some(client) = JavaProgram::find(project) else {
        return;
    };
    with_hbase(|hbase, _| {
        let port = hbase.zookeeper_port().expect("it has started").to_string();
        let transcript = client.tour(&["zookeeper", "127.0.0.1", &port]);
        is_recorded(recorded, &transcript, project);
    });
}

#[test]
fn hbase_shaded_client_2_6_4() {
    tours(
        JavaProgram::find("e2e/clients/java-native"),
        &["zookeeper", "rpc"],
        &[],
    );
}

#[test]
fn hbase_client_2_4_18() {
    // The RPC registry is of 2.5; before it there was one that knows masters only.
    tours(version("2.4.18"), &["zookeeper", "masters"], &[]);
}

#[test]
fn hbase_client_3_0_0_beta_1() {
    tours(version("3.0.0-beta-1"), &["zookeeper", "rpc"], SINCE_3_0);
}

#[test]
fn hbase_shaded_client_1_7_2() {
    let Some(client) = JavaProgram::find("e2e/clients/java-1.7") else {
        return;
    };
    with_server(|server, _| {
        let port = server.thrift.port().to_string();
        let transcript = client.tour(&["zookeeper", "127.0.0.1", &port]);
        compare(ANSWERS_1_7, EXPLAINED_1_7, &transcript, "1.7.2");
    });
}

/// The programs with this version of `hbase-client`.
pub(super) fn version(version: &str) -> Option<JavaProgram> {
    JavaProgram::find_variant(
        "e2e/clients/java-native",
        &format!("e2e/clients/java-native-{version}"),
        &[
            "client.artifact=hbase-client",
            &format!("client.version={version}"),
        ],
    )
}

/// A tour with each registry, on one server: a tour drops the tables that it made.
fn tours(client: Option<JavaProgram>, registries: &[&str], explained: &[Explained]) {
    let Some(client) = client else { return };
    with_server(|server, _| {
        let port = server.thrift.port().to_string();
        for registry in registries {
            compare(
                ANSWERS,
                explained,
                &client.tour(&[registry, "127.0.0.1", &port]),
                registry,
            );
        }
    });
}
