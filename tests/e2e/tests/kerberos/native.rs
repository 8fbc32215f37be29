//! Native clients: HBase's Java client 2.6.4, and asynchbase.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use basalt_test_support::JavaProgram;

use super::kdc::SERVICE;
use super::{Kerberized, transcript};

/// A folder with the client's settings.
fn site(server: &Kerberized, protection: &str) -> PathBuf {
    let folder = server.dir.path().join(format!("site-{protection}"));
    std::fs::create_dir_all(&folder).expect("there is space");
    let properties = [
        ("hadoop.security.authentication", "kerberos"),
        ("hbase.security.authentication", "kerberos"),
        ("hbase.master.kerberos.principal", SERVICE),
        ("hbase.regionserver.kerberos.principal", SERVICE),
        ("hbase.rpc.protection", protection),
        ("hbase.client.retries.number", "1"),
    ];
    let properties = properties
        .map(|(name, value)| format!("<property><name>{name}</name><value>{value}</value></property>\n"));
    let text = format!("<configuration>\n{}</configuration>\n", properties.concat());
    // Hadoop reads its own file, HBase both.
    for name in ["core-site.xml", "hbase-site.xml"] {
        std::fs::write(folder.join(name), &text).expect("there is space");
    }
    folder
}

/// The answers of HBase's client to requests (`Commands`), each on a line `request -> answer`.
fn ask(
    server: &Kerberized,
    client: &JavaProgram,
    (user, protection): (&str, &str),
    requests: &[&str],
) -> String {
    let mut process = server
        .java(client, user, &site(server, protection))
        .arg("basalt.client.Commands")
        .args(["zookeeper", "127.0.0.1", &server.port()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("java was found a moment ago");
    let mut input = process.stdin.take().expect("it is a pipe");
    for request in requests {
        writeln!(input, "{request}").expect("the client runs");
    }
    drop(input);
    let output = process.wait_with_output().expect("it was started here");
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        answers.lines().filter(|line| line.contains(" -> ")).count(),
        requests.len(),
        "{answers}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    answers
}

/// Check 34 of the specification. Goal: an unmodified client with tickets of `kinit` works with each
/// protection, and as the short name of its principal.
#[test]
fn hbase_client_2_6_4_with_each_protection() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    server.kdc.login("ada", &[]);
    // More than one wrapped piece of the server.
    let large = "v".repeat(200_000);
    for protection in ["authentication", "integrity", "privacy"] {
        let requests = [
            &format!("create {protection} f")[..],
            &format!("put {protection} r f:q {large}"),
            &format!("get {protection} r"),
            "tables",
        ];
        let answers = ask(&server, &client, ("ada", protection), &requests);
        let answers: Vec<&str> = answers
            .lines()
            .map(|line| line.split_once(" -> ").expect("an answer").1)
            .collect();
        assert_eq!(answers[..2], ["done", "done"], "{protection}");
        assert!(
            answers[2].contains(&large),
            "{protection}: {}",
            &answers[2][..200.min(answers[2].len())]
        );
        assert!(answers[3].contains(protection), "{}", answers[3]);
    }
    server.until_audited(&[
        r#""event":"authenticated""#,
        r#""user":"ada""#,
        r#""authentication":"kerberos""#,
        r#""protocol":"native""#,
    ]);
    assert!(
        !server.audit_log().contains("authentication-failed"),
        "{}",
        server.audit_log()
    );
}

/// Goal: the whole tour of the client works when all is encrypted.
#[test]
fn hbase_client_2_6_4_makes_its_tour_in_privacy() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let Some(server) = Kerberized::start(&["kerberos.protection=[\"privacy\"]"]) else {
        return;
    };
    server.kdc.login("ada", &[]);
    let tour = transcript(
        server
            .java(&client, "ada", &site(&server, "privacy"))
            .arg("basalt.client.Tour")
            .args(["zookeeper", "127.0.0.1", &server.port()]),
    );
    assert!(tour.ends_with("tour done\n"), "{tour}");
}

/// Goal: a server that allows privacy only refuses a client of less, which says so.
#[test]
fn a_client_of_less_protection_than_allowed_leaves() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let Some(server) = Kerberized::start(&["kerberos.protection=[\"privacy\"]"]) else {
        return;
    };
    server.kdc.login("ada", &[]);
    let answers = ask(&server, &client, ("ada", "authentication"), &["tables"]);
    assert!(answers.contains("No common protection layer"), "{answers}");
    let answers = ask(&server, &client, ("ada", "privacy"), &["tables"]);
    assert!(answers.contains("tables -> []"), "{answers}");
}

/// Goal: rights are those of the short name; a principal without a user is refused; a proxy rule lets a user
/// act for another, and nothing else does.
#[test]
fn rights_and_proxy_rules_are_those_of_the_short_name() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    for user in ["ada", "bob", "eve"] {
        server.kdc.login(user, &[]);
    }
    let ada = |requests: &[&str]| ask(&server, &client, ("ada", "privacy"), requests);
    let answers = ada(&["create t f", "put t r f:q v", "as bob get t r"]);
    // The client tells of the end of its connection only, as it does beside a certificate.
    assert!(answers.contains("as bob get t r -> throws"), "{answers}");
    server.until_audited(&[
        "authentication-failed",
        "User: ada is not allowed to impersonate bob",
    ]);
    let bob = ask(&server, &client, ("bob", "integrity"), &["get t r"]);
    assert!(bob.contains("Insufficient permissions for user 'bob'"), "{bob}");
    let eve = ask(&server, &client, ("eve", "integrity"), &["get t r"]);
    assert!(eve.contains("get t r -> throws"), "{eve}");
    server.until_audited(&["authentication-failed", "unknown user"]);
    server.basalt(&["user", "proxy", "ada", "--users", "bob", "--hosts", "127.0.0.1"]);
    // The server reads its files every few seconds.
    server.until_audited(&["user-change", r#""subject":"ada""#]);
    let answers = ada(&["as bob get t r", "grant bob t READ", "as bob get t r", "get t r"]);
    let lines: Vec<&str> = answers.lines().collect();
    assert!(
        lines[0].contains("Insufficient permissions for user 'bob'"),
        "{answers}"
    );
    assert!(lines[2].contains("f:q") && lines[3].contains("f:q"), "{answers}");
    server.until_audited(&["denied", r#""user":"bob""#, r#""real_user":"ada""#, "kerberos"]);
}

/// Check 35 of the specification, its second half.
#[test]
fn asynchbase_1_8_2_with_encryption() {
    let Some(client) = JavaProgram::find("e2e/clients/asynchbase") else {
        return;
    };
    let Some(java) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    let tickets = server.kdc.login("ada", &[]);
    ask(&server, &java, ("ada", "authentication"), &["create at f"]);
    let file = |name: &str, text: &str| {
        let path = server.dir.path().join(name);
        std::fs::write(&path, text).expect("there is space");
        path
    };
    // The name `Client` is that of asynchbase's ZooKeeper library, which would log in with it, too.
    let login = file(
        "login.conf",
        &format!(
            "AsyncHBase {{ com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true ticketCache=\"{}\"; }};\n",
            tickets.display()
        ),
    );
    for protection in ["authentication", "integrity", "privacy"] {
        let settings = file(
            "asynchbase.properties",
            &format!(
                "hbase.security.auth.enable=true\nhbase.security.authentication=kerberos\n\
                 hbase.kerberos.regionserver.principal={SERVICE}\nhbase.sasl.clientconfig=AsyncHBase\n\
                 hbase.rpc.protection={protection}\n"
            ),
        );
        let tour = transcript(
            server
                .java(&client, "ada", server.dir.path())
                .arg(format!("-Djava.security.auth.login.config={}", login.display()))
                .arg("basalt.client.Tour")
                .args([
                    "zookeeper",
                    "127.0.0.1",
                    &server.port(),
                    settings.to_str().expect("a readable path"),
                ]),
        );
        assert!(tour.ends_with("tour done\n"), "{tour}");
        assert!(tour.contains("put -> done") || tour.contains("put ->"), "{tour}");
    }
    server.until_audited(&["authenticated", r#""user":"ada""#, "kerberos"]);
}
