//! Clients that log in with Kerberos: Java over native RPC with each protection, asynchbase, Java over
//! Thrift, curl over HTTP; and tickets that must be refused.
//!
//! Each test has a KDC of MIT Kerberos of its own ([`kdc`]), and a server whose keys that has made, as
//! docs/security.md says. Only the feature `kerberos` has this test, since the server links the system's
//! library then (`.ci/kerberos`). Not run without the KDC's programs, Java or Maven.

use std::path::{Path, PathBuf};
use std::process::Command;

use basalt_test_support::{Server, administer, until};

mod kdc;
mod native;
mod page;
mod refusals;
mod thrift;
mod web;

use kdc::{Kdc, SERVICE};

/// A server that takes tickets of a KDC. Its users are ada, a superuser, and bob. Eve has a principal only.
struct Kerberized {
    kdc: Kdc,
    server: Server,
    dir: tempfile::TempDir,
}

impl Kerberized {
    /// `None` on a machine without a KDC.
    fn start(settings: &[&str]) -> Option<Self> {
        let kdc = Kdc::start()?;
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let server = serve(&kdc, dir.path(), settings);
        Some(Self { kdc, server, dir })
    }

    fn port(&self) -> String {
        self.server.thrift.port().to_string()
    }

    fn audit_log(&self) -> String {
        audit_log(self.dir.path())
    }

    /// Waits for a line of the audit log that has all these parts.
    fn until_audited(&self, parts: &[&str]) {
        until(&format!("the audit log has a line with {parts:?}"), || {
            let log = self.audit_log();
            log.lines()
                .any(|line| parts.iter().all(|part| line.contains(part)))
        });
    }

    /// Runs a command on the data directory.
    fn basalt(&self, arguments: &[&str]) {
        administer(&data(self.dir.path()), arguments, "");
    }

    /// `java` with the tickets of a user, the KDC's configuration, and a folder of settings.
    fn java(&self, client: &basalt_test_support::JavaProgram, user: &str, site: &Path) -> Command {
        let mut java = client.java_with(site);
        java.env("KRB5CCNAME", self.kdc.tickets(user))
            .arg(format!(
                "-Djava.security.krb5.conf={}",
                self.kdc.configuration().display()
            ))
            .args(basalt_test_support::java::SMALL);
        java
    }
}

fn data(dir: &Path) -> PathBuf {
    dir.join("data")
}

fn audit_log(dir: &Path) -> String {
    std::fs::read_to_string(data(dir).join("security/audit.log")).unwrap_or_default()
}

/// Makes the users.
fn create_users(dir: &Path) {
    let data = data(dir);
    administer(&data, &["user", "create", "ada", "--superuser"], "open sesame\n");
    administer(&data, &["user", "create", "bob"], "swordfish\n");
}

/// The settings of docs/security.md.
fn settings(kdc: &Kdc, more: &[&str]) -> Vec<String> {
    let mut settings = vec![
        format!("kerberos.keytab={}", kdc.keytab().display()),
        format!("kerberos.principal={SERVICE}"),
    ];
    settings.extend(more.iter().map(|setting| (*setting).to_owned()));
    settings
}

fn serve(kdc: &Kdc, dir: &Path, more: &[&str]) -> Server {
    create_users(dir);
    let settings = settings(kdc, more);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    Server::start(&data(dir), &settings)
}

/// The output of a client that must end well.
fn transcript(command: &mut Command) -> String {
    let output = command.output().expect("it was found a moment ago");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}:\n{out}\n{errors}");
    out
}
