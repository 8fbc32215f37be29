//! Clients with users, tokens and certificates, against a server whose users must log in.
//!
//! The tours are those that the clients make of a server without users: as a superuser they must get
//! the same answers. The checks are those of HBase's documentation for a secure cluster.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Output, Stdio};
use std::time::{Duration, Instant};

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
pub(super) struct Secured {
    server: Option<Server>,
    dir: tempfile::TempDir,
}

impl Secured {
    pub(super) fn start(settings: &[&str]) -> Self {
        Self::named("localhost,127.0.0.1", settings)
    }

    /// A server whose certificate has these names.
    fn named(names: &str, settings: &[&str]) -> Self {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let secured = Self { server: None, dir };
        secured.basalt(&["certificate", "create", "--name", names], "");
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
    pub(super) fn token(&self, user: &str) -> PathBuf {
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
    pub(super) fn token_site(&self) -> PathBuf {
        self.site("token-site", &[("hbase.security.authentication", "kerberos")])
    }

    /// The site of a client that encrypts, and trusts the authority of the server; and these properties.
    pub(super) fn tls_site(&self, name: &str, more: &[(&str, &str)]) -> PathBuf {
        let ca = self.data().join("security/ca.crt");
        let tls = [
            ("hbase.client.netty.tls.enabled", "true"),
            ("hbase.rpc.tls.truststore.location", text(&ca)),
            ("hbase.rpc.tls.truststore.type", "PEM"),
            ("hbase.client.retries.number", "0"),
        ];
        self.site(name, &[&tls, more].concat())
    }

    /// The certificate of a user, made by the command of the documentation.
    pub(super) fn certificate(&self, user: &str) -> PathBuf {
        self.basalt(
            &["certificate", "client", user, "--to", text(self.dir.path())],
            "",
        );
        self.dir.path().join(format!("client-{user}.pem"))
    }

    /// A new folder for a client's files.
    pub(super) fn folder(&self, name: &str) -> String {
        let folder = self.dir.path().join(name);
        std::fs::create_dir_all(&folder).expect("there is space");
        text(&folder).to_owned()
    }

    pub(super) fn port(&self) -> String {
        self.server().thrift.port().to_string()
    }

    pub(super) fn audit_log(&self) -> String {
        std::fs::read_to_string(self.data().join("security/audit.log")).expect("it is there")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

/// Properties of a client that logs in with a certificate.
pub(super) fn keystore(certificate: &Path) -> [(&str, &str); 2] {
    [
        ("hbase.rpc.tls.keystore.location", text(certificate)),
        ("hbase.rpc.tls.keystore.type", "PEM"),
    ]
}

/// A client that runs, and answers a line for each that it is given.
pub(super) struct Commands {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Commands {
    /// Starts the client with a site, and a token if there is one, of the server's registry.
    pub(super) fn start(
        client: &JavaProgram,
        site: &Path,
        token: Option<&Path>,
        [registry, port]: [&str; 2],
    ) -> Self {
        Self::start_at(client, site, token, [registry, "127.0.0.1", port])
    }

    /// [`Self::start`], with the hosts of the registry.
    pub(super) fn start_at(
        client: &JavaProgram,
        site: &Path,
        token: Option<&Path>,
        registry: [&str; 3],
    ) -> Self {
        let mut command = client.java_with(site);
        if let Some(token) = token {
            command.env("HADOOP_TOKEN_FILE_LOCATION", token);
        }
        let mut process = command
            .args(SMALL)
            .arg("basalt.client.Commands")
            .args(registry)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("java was found a moment ago");
        let requests = process.stdin.take().expect("it is a pipe");
        let answers = BufReader::new(process.stdout.take().expect("it is a pipe"));
        Self {
            process,
            requests,
            answers,
        }
    }

    /// The answer to a request.
    pub(super) fn ask(&mut self, request: &str) -> String {
        writeln!(self.requests, "{request}").expect("the client runs");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the client answers");
        let (asked, answer) = line.trim_end().split_once(" -> ").expect("request and answer");
        assert_eq!(asked, request);
        answer.to_owned()
    }

    /// Repeats a request until its answer has this text.
    pub(super) fn ask_until(&mut self, request: &str, expected: &str) -> String {
        let started = Instant::now();
        loop {
            let answer = self.ask(request);
            if answer.contains(expected) {
                return answer;
            }
            assert!(
                started.elapsed() < Duration::from_mins(2),
                "{request} -> {answer}"
            );
        }
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // It may have ended with its input; nothing follows from either.
        let _ = self.process.kill();
        let _ = self.process.wait();
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
pub(super) fn finished(output: &Output) -> String {
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

/// Goal: a user sees and changes what its rights say, whoever asks for what (HBase's table of rights).
#[test]
fn users_do_what_their_rights_say() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let secured = Secured::start(&[]);
    let (site, port) = (secured.token_site(), secured.port());
    let with_token = |user| {
        let token = secured.token(user);
        Commands::start(&client, &site, Some(&token), ["zookeeper", &port])
    };
    let (mut ada, mut bob) = (with_token("ada"), with_token("bob"));
    for request in [
        "create t f g",
        "create u f",
        "put t r f:q v",
        "put u r f:q v",
        "snapshot t s",
    ] {
        assert_eq!(ada.ask(request), "done", "{request}");
    }
    let denied = |answer: &str, action: &str| {
        assert!(
            answer.contains("AccessDeniedException: Insufficient permissions for user 'bob'")
                && answer.contains(&format!("action={action}")),
            "{answer}"
        );
    };

    // Without rights (check 24): meta is read by everybody.
    denied(&bob.ask("get t r"), "READ");
    denied(&bob.ask("scan t"), "READ");
    assert_eq!(bob.ask("tables"), "[]");
    assert_eq!(bob.ask("descriptors"), "0");
    assert_eq!(bob.ask("meta"), "true");
    // Questions about oneself are free (check 25).
    assert_eq!(bob.ask("has bob t READ"), "[false]");
    denied(&bob.ask("has ada t READ"), "ADMIN");
    denied(&bob.ask("grant bob t READ"), "ADMIN");
    denied(&bob.ask("create w f"), "CREATE");
    denied(&bob.ask("snapshot t s2"), "ADMIN");

    // With the right to read.
    assert_eq!(ada.ask("grant bob t READ"), "done");
    assert_eq!(bob.ask("get t r"), "r f:q=v");
    assert_eq!(bob.ask("has bob t READ"), "[true]");
    assert_eq!(bob.ask("tables"), "[t]");
    // HBase shows descriptors to those who may change the table.
    assert_eq!(bob.ask("descriptors"), "0");
    denied(&bob.ask("put t r f:q w"), "WRITE");
    denied(&bob.ask("delete t r"), "WRITE");
    denied(&bob.ask("check t r f:q v f:q w"), "WRITE");
    denied(&bob.ask("get u r"), "READ");

    // With the right to write, but of another table not to read.
    assert_eq!(ada.ask("grant bob u WRITE"), "done");
    assert_eq!(bob.ask("put u r f:q w"), "done");
    denied(&bob.ask("check u r f:q w f:q x"), "READ");
    assert_eq!(ada.ask("get u r"), "r f:q=w");
    assert_eq!(ada.ask("grant bob t ADMIN"), "done");
    assert_eq!(bob.ask("descriptors"), "1");
    assert_eq!(bob.ask("snapshot t s2"), "done");
}

/// Goal: a login ends while its client is connected, and no new one follows (checks 7 and 8).
#[test]
fn logins_end_under_a_connection() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let secured = Secured::start(&[]);
    let quick = [
        ("hbase.security.authentication", "kerberos"),
        ("hbase.client.retries.number", "0"),
        ("hbase.client.operation.timeout", "10000"),
    ];
    let (site, port) = (secured.site("quick-site", &quick), secured.port());
    let with_token = |token: &Path| Commands::start(&client, &site, Some(token), ["zookeeper", &port]);
    let (kept, revoked) = (secured.token("ada"), secured.token("bob"));
    let short = secured.dir.path().join("short.token");
    let made = secured.basalt(&["token", "create", "ada", "--lifetime", "1s"], "");
    std::fs::write(&short, made).expect("there is space");

    let (mut ada, mut bob) = (with_token(&kept), with_token(&revoked));
    assert_eq!(ada.ask("create t f"), "done");
    assert_eq!(ada.ask("grant bob t WRITE"), "done");
    assert_eq!(bob.ask("put t r f:q v"), "done");
    secured.basalt(&["token", "revoke", "--user", "bob"], "");
    let refused = bob.ask_until("put t other f:q w", "throws");
    assert!(!refused.contains("AccessDeniedException"), "{refused}");
    assert_eq!(bob.ask("close"), "done");
    assert!(bob.ask("put t other f:q w").starts_with("throws"));
    assert_eq!(ada.ask("get t r"), "r f:q=v");

    // A second has passed, several times over.
    let answer = with_token(&short).ask("get t r");
    assert!(answer.starts_with("throws"), "{answer}");
    let log = secured.audit_log();
    assert!(log.contains("token has expired"), "{log}");
    let started = Instant::now();
    assert_eq!(ada.ask("get t r"), "r f:q=v");
    assert!(started.elapsed() < Duration::from_mins(1));
}

/// Goal: users of a certificate, with the versions of TLS, another authority, a wrong name, a token
/// beside TLS, and a user that acts for others (checks 10, 11, 13, 14, 15).
#[test]
fn certificates_and_those_who_act_for_others() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let secured = Secured::start(&["server.plaintext=refuse"]);
    secured.basalt(&["user", "create", "gate", "--no-password"], "");
    let (ada, gate) = (secured.certificate("ada"), secured.certificate("gate"));
    let port = secured.port();
    let connect = |site: &Path| Commands::start(&client, site, None, ["rpc", &port]);

    let newest = [("hbase.rpc.tls.protocol", "TLSv1.3")];
    let site = secured.tls_site("ada-site", &[&keystore(&ada)[..], &newest].concat());
    let mut ada = connect(&site);
    for request in ["create t f", "put t r f:q v", "grant bob t READ"] {
        assert_eq!(ada.ask(request), "done", "{request}");
    }

    let site = secured.tls_site("gate-site", &keystore(&gate));
    let mut of_gate = connect(&site);
    assert!(of_gate.ask("get t r").contains("AccessDeniedException"));
    assert!(of_gate.ask("as bob get t r").starts_with("throws"));
    let log = secured.audit_log();
    assert!(
        log.contains("User: gate is not allowed to impersonate bob"),
        "{log}"
    );
    secured.basalt(
        &["user", "proxy", "gate", "--users", "bob", "--hosts", "127.0.0.1"],
        "",
    );
    assert_eq!(of_gate.ask_until("as bob get t r", "f:q"), "r f:q=v");
    let denied = of_gate.ask("as bob put t r f:q w");
    assert!(denied.contains("for user 'bob'"), "{denied}");
    assert!(of_gate.ask("as ada get t r").starts_with("throws"));

    // A client without a certificate logs in with a token; its registry is ZooKeeper, in clear.
    let open = Secured::start(&[]);
    let site = open.tls_site("token-site", &[("hbase.security.authentication", "kerberos")]);
    let token = open.token("ada");
    let mut superuser = Commands::start(&client, &site, Some(&token), ["zookeeper", &open.port()]);
    assert_eq!(superuser.ask("create t f"), "done");
    let log = open.audit_log();
    assert!(
        log.contains(r#""tls":true"#) && log.contains(r#""authentication":"token""#),
        "{log}"
    );

    // An authority that the server does not know, and a name that its certificate does not have.
    let other = Secured::start(&[]);
    let foreign = other.certificate("ada");
    let site = secured.tls_site("foreign-site", &keystore(&foreign));
    assert!(connect(&site).ask("get t r").starts_with("throws"));
    let elsewhere = Secured::named("db.example", &[]);
    let certificate = elsewhere.certificate("ada");
    let site = elsewhere.tls_site("named-site", &keystore(&certificate));
    let answer = Commands::start(&client, &site, None, ["rpc", &elsewhere.port()]).ask("meta");
    assert!(answer.starts_with("throws"), "{answer}");
    let unverified = [("hbase.client.netty.tls.verify.server.hostname", "false")];
    let site = elsewhere.tls_site(
        "trusting-site",
        &[&keystore(&certificate)[..], &unverified].concat(),
    );
    let answer = Commands::start(&client, &site, None, ["rpc", &elsewhere.port()]).ask("meta");
    assert_eq!(answer, "true");
    let log = secured.server.expect("it was started").stop_and_log();
    assert!(log.contains("the TLS handshake has failed"), "{log}");
}

/// Goal: a password logs in through the provider of HBase's examples, encrypted (check 20).
#[test]
fn a_password_logs_in() {
    let (Some(client), Some(plain)) = (
        JavaProgram::find("e2e/clients/java-password"),
        JavaProgram::find("e2e/clients/java-native"),
    ) else {
        return;
    };
    let secured = Secured::start(&[]);
    let (site, port) = (secured.token_site(), secured.port());
    let token = secured.token("ada");
    let mut ada = Commands::start(&plain, &site, Some(&token), ["zookeeper", &port]);
    for request in ["create t f", "put t r f:q v", "grant bob t READ"] {
        assert_eq!(ada.ask(request), "done", "{request}");
    }
    let id = std::fs::read_to_string(secured.data().join("security/cluster-id")).expect("it is there");
    let site = secured.tls_site("password-site", &[]);
    let said = |password: &str| {
        let output = client
            .java_with(&site)
            .args(SMALL)
            .arg("basalt.client.Password")
            .args([&port, "bob", password, id.trim()])
            .output()
            .expect("java was found a moment ago");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (right, wrong) = (said("swordfish"), said("swordfisj"));
    assert!(right.contains("get -> 1 cells"), "{right}");
    assert!(wrong.contains("get -> throws"), "{wrong}");
    let log = secured.audit_log();
    assert!(
        log.contains(r#""user":"bob","authentication":"password""#) && log.contains("wrong password"),
        "{log}"
    );
}

/// Goal: a client that asks for more than the server offers says so, and one without security does not
/// talk to a server without users in clear unless it may (checks 19 and 21).
#[test]
fn protections_that_do_not_fit() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let secured = Secured::start(&[]);
    let quick = [
        ("hbase.security.authentication", "kerberos"),
        ("hbase.client.retries.number", "0"),
    ];
    let private = [&quick[..], &[("hbase.rpc.protection", "privacy")]].concat();
    let token = secured.token("ada");
    let site = secured.site("private-site", &private);
    let mut commands = Commands::start(&client, &site, Some(&token), ["zookeeper", &secured.port()]);
    let answer = commands.ask("meta");
    assert!(answer.contains("No common protection layer"), "{answer}");

    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let open = Server::start(&dir.path().join("data"), &[]);
    let port = open.thrift.port().to_string();
    let site = secured.site("strict-site", &quick);
    // The token is of another database, and the client looks for one of this.
    let answer = Commands::start(&client, &site, Some(&token), ["zookeeper", &port]).ask("meta");
    assert!(answer.starts_with("throws"), "{answer}");
}

/// Goal: another certificate counts for new connections, and ends no older one (check 18).
#[test]
fn a_new_certificate_ends_no_connection() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let secured = Secured::start(&[]);
    let certificate = secured.certificate("ada");
    let site = secured.tls_site("ada-site", &keystore(&certificate));
    let port = secured.port();
    let mut older = Commands::start(&client, &site, None, ["rpc", &port]);
    // Admin and table have connections of their own: both are open from here on.
    for request in ["create t f", "put t r f:q v"] {
        assert_eq!(older.ask(request), "done", "{request}");
    }
    secured.basalt(&["certificate", "create", "--name", "db.example"], "");
    // The server looks at its files every two seconds. The new certificate has not the name by which this
    // client connects.
    let started = Instant::now();
    while Commands::start(&client, &site, None, ["rpc", &port]).ask("meta") == "true" {
        assert!(
            started.elapsed() < Duration::from_mins(2),
            "the older certificate is still used"
        );
    }
    assert_eq!(older.ask("put t r f:q v"), "done");
    assert_eq!(older.ask("get t r"), "r f:q=v");
}

/// Goal: the nodes of ZooKeeper are encrypted, too, on the same port (check 17).
#[test]
fn zookeeper_is_encrypted() {
    let Some(client) = java::version("3.0.0-beta-1") else {
        return;
    };
    let secured = Secured::start(&["server.plaintext=refuse"]);
    let certificate = secured.certificate("ada");
    // ZooKeeper's client knows the kind of the file by its name, and HBase passes no other on.
    let ca = secured.dir.path().join("ca.pem");
    std::fs::copy(secured.data().join("security/ca.crt"), &ca).expect("there is space");
    let zookeeper = [
        ("hbase.zookeeper.property.client.secure", "true"),
        (
            "hbase.zookeeper.property.clientCnxnSocket",
            "org.apache.zookeeper.ClientCnxnSocketNetty",
        ),
        ("hbase.zookeeper.property.ssl.trustStore.location", text(&ca)),
    ];
    let site = secured.tls_site("zk-site", &[&keystore(&certificate)[..], &zookeeper].concat());
    let mut commands = Commands::start(&client, &site, None, ["zookeeper", &secured.port()]);
    assert_eq!(commands.ask("create t f"), "done");
    assert_eq!(commands.ask("put t r f:q v"), "done");
    assert_eq!(commands.ask("get t r"), "r f:q=v");
}
