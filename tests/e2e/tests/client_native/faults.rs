//! HBase's Java client meets faults on demand: busy regions, regions that are elsewhere, lost
//! connections and replies, delays, splits and moves during a scan.

use basalt_test_support::java::SMALL;
use basalt_test_support::{JavaProgram, Server};

use super::java;

/// Goal: the client hides each fault from its user, with the right results, and an increment whose
/// reply is lost is applied once.
#[test]
fn hbase_client_2_6_4_survives_faults() {
    survives(JavaProgram::find("e2e/clients/java-native"));
}

#[test]
fn hbase_client_3_0_0_beta_1_survives_faults() {
    survives(java::version("3.0.0-beta-1"));
}

fn survives(client: Option<JavaProgram>) {
    let Some(client) = client else { return };
    let below = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, _) = Server::start_ephemeral(below.path(), &[]);
    let output = client
        .java()
        .args(SMALL)
        .args(["basalt.client.Faults", "rpc", "127.0.0.1"])
        .args([server.thrift.port().to_string(), server.http.to_string()])
        .output()
        .expect("java was found before");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success() && text(&output.stdout) == "faults survived\n",
        "{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    server.stop();
}
