//! Clients with users, tokens and certificates, against a server whose users must log in.
//!
//! The tours are those that the clients make of a server without users: as a superuser they must get
//! the same answers. The checks are those of HBase's documentation for a secure cluster.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Output;

use basalt_test_support::java::SMALL;
use basalt_test_support::{JavaProgram, Server, administer};

use super::{Explained, compare, java, shell};

/// Differences of a tour on a server with users.
const WITH_USERS: &[Explained] = &[(
    "security",
    "[SECURE_AUTHENTICATION, AUTHORIZATION]",
    "users log in, and their rights are checked",
)];

/// A server with an authority, a superuser `ada` and a user `bob`.
struct Secured {
    server: Option<Server>,
    dir: tempfile::TempDir,
}

impl Secured {
    fn start(settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let secured = Self { server: None, dir };
        secured.basalt(&["certificate", "create", "--name", "localhost,127.0.0.1"], "");
        secured.basalt(&["user", "create", "ada", "--superuser"], "open sesame\n");
        secured.basalt(&["user", "create", "bob"], "swordfish\n");
        let server = Server::start(&secured.data(), settings);
        Self {
            server: Some(server),
            ..secured
        }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it was started")
    }

    /// Runs a command on the data directory, with these lines on its standard input.
    fn basalt(&self, arguments: &[&str], input: &str) -> Vec<u8> {
        administer(&self.data(), arguments, input)
    }

    /// The token file of a user, made by the command of the documentation.
    fn token(&self, user: &str) -> PathBuf {
        let path = self.dir.path().join(format!("{user}.token"));
        std::fs::write(&path, self.basalt(&["token", "create", user], "")).expect("there is space");
        path
    }

    /// A folder with an `hbase-site.xml` of these properties.
    fn site(&self, name: &str, properties: &[(&str, &str)]) -> PathBuf {
        let folder = self.dir.path().join(name);
        std::fs::create_dir_all(&folder).expect("there is space");
        let mut text = String::from("<configuration>\n");
        for (name, value) in properties {
            text.extend([
                "<property><name>",
                name,
                "</name><value>",
                value,
                "</value></property>
",
            ]);
        }
        text.push_str("</configuration>\n");
        std::fs::write(folder.join("hbase-site.xml"), text).expect("there is space");
        folder
    }

    /// The site of a client that logs in with a token.
    fn token_site(&self) -> PathBuf {
        self.site("token-site", &[("hbase.security.authentication", "kerberos")])
    }

    fn port(&self) -> String {
        self.server().thrift.port().to_string()
    }

    fn audit_log(&self) -> String {
        std::fs::read_to_string(self.data().join("security/audit.log")).expect("it is there")
    }
}

/// Runs the tour of a client with a site and a token.
fn tour(client: &JavaProgram, site: &Path, token: Option<&Path>, arguments: &[&str]) -> Output {
    let mut command = client.java_with(site);
    if let Some(token) = token {
        command.env("HADOOP_TOKEN_FILE_LOCATION", token);
    }
    command
        .args(SMALL)
        .arg("basalt.client.Tour")
        .args(arguments)
        .output()
        .expect("java was found a moment ago")
}

/// The transcript of a tour. Panics when it does not reach its end.
fn finished(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (transcript, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && transcript.ends_with("tour done\n"),
        "the tour was not finished:\n{transcript}\n{errors}"
    );
    transcript
}

/// Makes the tour as a superuser with a token, and compares it with HBase's answers.
fn tours_with_a_token(
    client: Option<JavaProgram>,
    registries: &[&str],
    answers: &str,
    explained: &[Explained],
) {
    let Some(client) = client else { return };
    let secured = Secured::start(&[]);
    let (site, token, port) = (secured.token_site(), secured.token("ada"), secured.port());
    for registry in registries {
        let output = tour(&client, &site, Some(&token), &[registry, "127.0.0.1", &port]);
        let explained: Vec<Explained> = explained.iter().chain(WITH_USERS).copied().collect();
        compare(answers, &explained, &finished(&output), registry);
    }
    let log = secured.audit_log();
    let logins = log.lines().filter(|line| {
        line.contains(r#""event":"authenticated""#)
            && line.contains(r#""user":"ada""#)
            && line.contains(r#""authentication":"token""#)
    });
    assert!(logins.count() > 0, "{log}");
    assert!(!log.contains("authentication-failed"), "{log}");
}

#[test]
fn hbase_shaded_client_2_6_4_with_a_token() {
    let client = JavaProgram::find("e2e/clients/java-native");
    tours_with_a_token(client, &["zookeeper"], java::ANSWERS, &[]);
}

#[test]
fn hbase_client_2_4_18_with_a_token() {
    let client = java::version("2.4.18");
    tours_with_a_token(client, &["zookeeper", "masters"], java::ANSWERS, &[]);
}

#[test]
fn hbase_client_3_0_0_beta_1_with_a_token() {
    let client = java::version("3.0.0-beta-1");
    tours_with_a_token(client, &["zookeeper", "rpc"], java::ANSWERS, java::SINCE_3_0);
}

#[test]
fn hbase_shaded_client_1_7_2_with_a_token() {
    let client = JavaProgram::find("e2e/clients/java-1.7");
    tours_with_a_token(client, &["zookeeper"], java::ANSWERS_1_7, java::EXPLAINED_1_7);
}

/// Goal: the client certificate is the user, and nothing is sent in clear. Method: a server that refuses
/// plain connections, the registry that needs no ZooKeeper, and a client whose system names another user.
#[test]
fn certificates_log_in() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let secured = Secured::start(&["server.plaintext=refuse"]);
    let to = secured.dir.path().to_str().expect("a readable path").to_owned();
    secured.basalt(&["certificate", "client", "ada", "--to", &to], "");
    let ca = secured.data().join("security/ca.crt");
    let own = secured.dir.path().join("client-ada.pem");
    let site = secured.site(
        "tls-site",
        &[
            ("hbase.client.netty.tls.enabled", "true"),
            (
                "hbase.rpc.tls.truststore.location",
                ca.to_str().expect("readable"),
            ),
            ("hbase.rpc.tls.truststore.type", "PEM"),
            ("hbase.rpc.tls.keystore.location", own.to_str().expect("readable")),
            ("hbase.rpc.tls.keystore.type", "PEM"),
        ],
    );
    let port = secured.port();
    let output = client
        .java_with(&site)
        .env("HADOOP_USER_NAME", "mallory")
        .args(SMALL)
        .arg("basalt.client.Tour")
        .args(["rpc", "127.0.0.1", &port])
        .output()
        .expect("java was found a moment ago");
    compare(java::ANSWERS, WITH_USERS, &finished(&output), "certificate");
    let log = secured.audit_log();
    assert!(
        log.contains(r#""user":"ada""#) && log.contains(r#""authentication":"certificate""#),
        "{log}"
    );
    assert!(!log.contains("mallory"), "{log}");

    let mut plain = TcpStream::connect(secured.server().thrift).expect("the port is open");
    plain.write_all(b"HBas\0\x50").expect("sent");
    assert_eq!(plain.read(&mut [0; 16]).expect("it ends in order"), 0);
    let log = secured.server.expect("it was started").stop_and_log();
    assert!(log.contains("the connection is not encrypted"), "{log}");
}

/// Goal: a client without a login gets HBase's refusal, and one with a wrong or ended token HBase's error.
#[test]
fn logins_that_fail() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let secured = Secured::start(&[]);
    let port = secured.port();
    let quick = [
        ("hbase.client.retries.number", "0"),
        ("hbase.client.operation.timeout", "10000"),
        ("hbase.client.meta.operation.timeout", "10000"),
    ];
    let plain = secured.site("plain-site", &quick);
    let secure = [&quick[..], &[("hbase.security.authentication", "kerberos")]].concat();
    let site = secured.site("token-site", &secure);
    let arguments = ["zookeeper", "127.0.0.1", &port];
    // The tour goes on after each failure, and prints its class.
    let said = |site: &Path, token: Option<&Path>| {
        let output = tour(&client, site, token, &arguments);
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    let works = |text: &str| text.contains("is it there -> false");
    let text = said(&plain, None);
    assert!(
        !works(&text) && text.contains("put -> throws AccessDeniedException"),
        "{text}"
    );
    assert!(text.contains("Authentication is required"), "{text}");

    let token = secured.token("ada");
    let mut forged = std::fs::read(&token).expect("it was written");
    // The password stands in front of the kind.
    let kind = forged
        .windows(16)
        .position(|part| part == b"HBASE_AUTH_TOKEN")
        .expect("the kind of the token");
    forged[kind - 2] ^= 1;
    let forged_file = secured.dir.path().join("forged.token");
    std::fs::write(&forged_file, forged).expect("there is space");
    let text = said(&site, Some(&forged_file));
    assert!(!works(&text), "{text}");
    let text = said(&site, Some(&token));
    assert!(works(&text), "{text}");

    secured.basalt(&["token", "revoke", "--user", "ada"], "");
    let started = std::time::Instant::now();
    // The server looks at its files every two seconds.
    while works(&said(&site, Some(&token))) {
        assert!(
            started.elapsed().as_secs() < 120,
            "the revoked token is still valid"
        );
    }
    let log = secured.audit_log();
    for reason in ["wrong signature", "token was revoked"] {
        assert!(log.contains(reason), "{reason} is not in\n{log}");
    }
}

/// Goal: HBase's shell grants and revokes, and the rights hold for another user of the shell.
#[test]
fn the_shell_grants() {
    let Some(program) = JavaProgram::find("e2e/clients/shell") else {
        return;
    };
    let secured = Secured::start(&[]);
    let port = secured.server().thrift.port();
    let run = |user: &str, commands: &str| {
        let token = secured.token(user);
        let commands = format!("{commands}exit\n");
        let output = shell::run_as(&program, port, secured.dir.path(), Some(&token), &commands);
        shell::transcript(&output)
    };
    let made = run(
        "ada",
        "create 't', 'f', 'g'\nput 't', 'r', 'f:q', 'seen'\nput 't', 'r', 'g:q', 'hidden'\n\
         create 'u', 'f'\ngrant 'bob', 'R', 't', 'f'\nuser_permission 't'\n",
    );
    assert!(
        made.contains("bob") && made.contains("default,t,f") && made.contains("actions=READ"),
        "{made}"
    );
    let read = run(
        "bob",
        "scan 't'\nlist\nput 't', 'r', 'f:q', 'changed'\nscan 'u'\ngrant 'bob', 'RW', 't'\n",
    );
    assert!(read.contains("value=seen") && !read.contains("hidden"), "{read}");
    let denied =
        read.matches("AccessDeniedException").count() + read.matches("Insufficient permissions").count();
    assert!(denied >= 3, "{read}");
    let list = read
        .lines()
        .find(|line| line.starts_with("list ->"))
        .expect("the command ran");
    assert!(list.contains("| t |") && !list.contains("| u |"), "{list}");
    let taken = run(
        "ada",
        "revoke 'bob', 't', 'f'\nuser_permission 't'\nget 't', 'r'\n",
    );
    assert!(
        !taken.contains("bob |") && taken.contains("value=seen"),
        "{taken}"
    );
    let nothing = run("bob", "scan 't'\n");
    assert!(
        nothing.contains("AccessDeniedException") && !nothing.contains("seen"),
        "{nothing}"
    );
    let log = secured.audit_log();
    assert!(
        log.contains(r#""event":"rights-change""#) && log.contains(r#""event":"denied""#),
        "{log}"
    );
    for secret in ["seen", "hidden", "swordfish", "sesame"] {
        assert!(!log.contains(secret), "{log}");
    }
}
