//! Java over Thrift, with the GSSAPI of the JDK.

use basalt_test_support::JavaProgram;

use super::{Kerberized, transcript};

/// Check 35 of the specification. Goal: `TSaslClientTransport` works with each protection.
#[test]
fn java_thrift_with_each_protection() {
    let Some(client) = JavaProgram::find("e2e/clients/java") else {
        return;
    };
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    let tickets = server.kdc.login("ada", &[]);
    for qop in ["auth", "auth-int", "auth-conf"] {
        let said = transcript(
            server
                .java(&client, "ada", server.dir.path())
                .arg("basalt.client.Kerberos")
                .arg(&tickets)
                .args(["thrift", &server.port(), qop]),
        );
        assert!(
            said.contains("1 -> true\n1000 -> true\n300000 -> true\nthrift done\n"),
            "{qop}: {said}"
        );
    }
    server.until_audited(&[
        "authenticated",
        r#""user":"ada""#,
        "kerberos",
        r#""protocol":"thrift""#,
    ]);
}
