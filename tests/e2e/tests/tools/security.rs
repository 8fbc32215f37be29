//! `basalt-shell`, `basalt-bench` and the library's native client against a server whose users must
//! log in.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use basalt_client::native::{Cluster, ClusterOptions, Registry};
use basalt_client::security::{Login, Security, Tls};
use basalt_client::{Client, Error, FamilySchema, Get, Increment, PoolOptions, Put, TableSchema};
use basalt_test_support::{Server, administer, binary};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::text;

/// A server with an authority and a superuser `ada`, and a folder with each of her credentials.
struct Secured {
    server: Server,
    dir: TempDir,
}

impl Secured {
    fn start(settings: &[&str]) -> Self {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let folder = dir.path().to_str().expect("a readable path").to_owned();
        let (data, other) = (dir.path().join("data"), dir.path().join("other"));
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(dir.path().join(name), bytes).expect("there is space");
        };
        for data in [&data, &other] {
            administer(
                data,
                &["certificate", "create", "--name", "localhost,127.0.0.1"],
                "",
            );
        }
        administer(&data, &["user", "create", "ada", "--superuser"], "open sesame\n");
        for user in ["ada", "nobody"] {
            administer(&data, &["certificate", "client", user, "--to", &folder], "");
        }
        write("password", b"open sesame\n");
        write("wrong", b"open barley\n");
        // The first start makes the id to which tokens belong, and the next one reads the tokens.
        Server::start(&data, &[]).stop();
        write("ada.token", &administer(&data, &["token", "create", "ada"], ""));
        write(
            "ada.text",
            &administer(&data, &["token", "create", "ada", "--text"], ""),
        );
        let server = Server::start(&data, settings);
        Self { server, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn ca(&self) -> PathBuf {
        self.path("data/security/ca.crt")
    }

    fn target(&self) -> String {
        self.server.thrift.to_string()
    }

    /// Runs a program with these options, in which a name behind `@` is a file of the folder.
    fn run(&self, program: &str, options: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary(program));
        command.args(arguments).args(["--target", &self.target()]);
        for option in options.split_whitespace() {
            match option.strip_prefix('@') {
                Some(name) => command.arg(self.path(name)),
                None => command.arg(option),
            };
        }
        command
            .stdin(Stdio::null())
            .output()
            .expect("the binary was built")
    }

    fn shell(&self, options: &str, commands: &[&str]) -> Output {
        let arguments: Vec<&str> = commands.iter().flat_map(|command| ["-e", command]).collect();
        self.run("basalt-shell", options, &arguments)
    }

    /// The output of the shell; panics when a command fails.
    fn says(&self, options: &str, commands: &[&str]) -> String {
        let output = self.shell(options, commands);
        assert!(output.status.success(), "{options}: {output:?}");
        text(&output.stdout)
    }

    /// The error of the shell; panics when all commands succeed.
    fn fails(&self, options: &str, command: &str) -> String {
        let output = self.shell(options, &[command]);
        assert!(!output.status.success(), "{options}: {output:?}");
        text(&output.stderr)
    }

    /// Options of a client of the native protocol.
    fn native(&self, registry: &str, security: Security) -> ClusterOptions {
        let registry = match registry {
            "zookeeper" => Registry::zookeeper(&self.target(), 2181, "/hbase"),
            _ => Registry::bootstrap(&self.target()),
        };
        let mut options = ClusterOptions::new(registry.expect("an address"));
        options.security = security;
        options
    }

    fn audit_log(&self) -> String {
        std::fs::read_to_string(self.path("data/security/audit.log")).expect("it is there")
    }
}

/// The logins in an audit log by this means and over this protocol.
fn logins(log: &str, means: &str, door: &str) -> usize {
    let parts = [
        r#""event":"authenticated""#.to_owned(),
        r#""user":"ada""#.to_owned(),
        format!(r#""authentication":"{means}""#),
        door.to_owned(),
    ];
    let is_one = |line: &&str| parts.iter().all(|part| line.contains(part));
    log.lines().filter(is_one).count()
}

const CA: &str = "--tls-ca @data/security/ca.crt";

/// Goal: the shell logs in over Thrift by each means, and is the user that it proved to be.
#[test]
fn the_shell_logs_in_by_certificate_password_and_token() {
    let secured = Secured::start(&[]);
    let certificate = format!("{CA} --tls-certificate @client-ada.pem");
    secured.says(&certificate, &["create 't', 'f'", "put 't', 'r', 'f:q', 'seen'"]);
    let password = "--user ada --password-file @password";
    for options in [
        password.to_owned(),
        format!("{CA} {password}"),
        "--token @ada.token".to_owned(),
        format!("{CA} --token @ada.token"),
        format!("{CA} --token @ada.text"),
        certificate,
        format!("{CA} --api native --token @ada.token"),
        "--api native --token @ada.token".to_owned(),
        format!("{CA} --tls-certificate @client-ada.pem --api native"),
    ] {
        let scanned = secured.says(&options, &["scan 't'"]);
        assert!(scanned.contains("value=seen"), "{options}: {scanned}");
    }
    let log = secured.audit_log();
    for (means, count) in [("certificate", 2), ("password", 2), ("token", 3)] {
        assert!(
            logins(&log, means, "thrift") + logins(&log, means, "main") >= count,
            "{means}: {log}"
        );
    }
    assert!(logins(&log, "token", "native") >= 2, "{log}");
    assert!(!log.contains("sesame"), "{log}");
}

/// Goal: an error names the cause and the remedy, and no secret.
#[test]
fn logins_that_fail_have_clear_errors() {
    let secured = Secured::start(&[]);
    let wrong = "--user ada --password-file @wrong";
    for (options, parts) in [
        ("", ["the server wants a login", "client certificate"]),
        (CA, ["the server wants a login", "or a token"]),
        ("--api native", ["the server wants a login", "or a token"]),
        (wrong, ["authentication failed", "check user and password"]),
        (
            &format!("{CA} {wrong}"),
            ["authentication failed", "check user and password"],
        ),
        (
            "--tls-ca @other/security/ca.crt",
            ["invalid peer certificate", "give the CA file of this server"],
        ),
        (
            "--tls-ca @other/security/ca.crt --api native",
            ["invalid peer certificate", "give the CA file of this server"],
        ),
        (
            &format!("{CA} --tls-server-name db.example"),
            ["db.example", "give one as the server name"],
        ),
        (
            &format!("{CA} --api native --user ada --password-file @password"),
            ["takes no passwords", "give a token or a client certificate"],
        ),
        (
            "--user ada",
            ["standard input is no terminal", "give --password-file"],
        ),
        (
            "--tls-ca @nowhere.crt",
            ["nowhere.crt", "check that the file exists"],
        ),
        ("--token @password", ["it is no token", "basalt token create"]),
        ("--tls-certificate @client-ada.pem", ["--tls-ca", ""]),
    ] {
        let error = secured.fails(options, "scan 't'");
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{options}: {error}"
        );
        assert!(!error.contains("sesame") && !error.contains("barley"), "{error}");
    }
    let refused = secured.run("basalt-bench", "", &["pe", "sequentialWrite", "--out", "unused"]);
    assert!(!refused.status.success());
    let error = text(&refused.stderr);
    assert!(error.contains("the server wants a login"), "{error}");
}

/// Goal: a server that accepts TLS only is reached by TLS only, also through ZooKeeper.
#[test]
fn plain_connections_end_where_tls_is_demanded() {
    let secured = Secured::start(&["server.plaintext=refuse"]);
    let certificate = format!("{CA} --tls-certificate @client-ada.pem");
    for api in ["thrift2", "native"] {
        let options = format!("{certificate} --api {api}");
        secured.says(&options, &["list"]);
    }
    let error = secured.fails("", "list");
    assert!(error.contains("before its first answer"), "{error}");
    let unknown = format!("{CA} --tls-certificate @client-nobody.pem");
    let error = secured.fails(&unknown, "list");
    assert!(
        error.contains("before its first answer") && error.contains("unknown user"),
        "{error}"
    );
    let error = secured.fails("--token @ada.token", "list");
    assert!(
        error.contains("closed the connection") && error.contains("needs TLS"),
        "{error}"
    );
}

/// Goal: the load generator logs in with the same options.
#[test]
fn the_load_generator_logs_in() {
    let secured = Secured::start(&[]);
    let out = secured.path("report");
    let out = out.to_str().expect("a readable path");
    for (options, means) in [
        (format!("{CA} --user ada --password-file @password"), "password"),
        (format!("{CA} --api native --token @ada.token"), "token"),
    ] {
        let run = [
            "pe",
            "sequentialWrite",
            "randomRead",
            "--rows",
            "20",
            "--threads",
            "2",
        ];
        let arguments = [&run[..], &["--replace-tables", "--out", out]].concat();
        let output = secured.run("basalt-bench", &options, &arguments);
        assert!(output.status.success(), "{options}: {output:?}");
        assert!(logins(&secured.audit_log(), means, "") >= 2, "{options}");
    }
}

/// Goal: rights to single cells and labels on them, which are not kept, are refused where users rely on
/// rights; without users they are ignored, as HBase does without access control.
#[test]
fn rights_of_single_cells_are_refused() {
    let secured = Secured::start(&[]);
    secured.says("--token @ada.token", &["create 't', 'f'"]);
    let login = Login::token_file(secured.path("ada.token")).expect("a token");
    let options = secured.native("rpc", Security::none().login(login));
    let runtime = Runtime::new().expect("a runtime");
    let put = || Put::new("r").cell("f", "q", "v");
    runtime.block_on(async {
        let cluster = Cluster::connect(options).await.expect("a login");
        let table = cluster.table("t").expect("a name");
        for (attribute, words) in [("acl", "Cell ACLs"), ("VISIBILITY", "Visibility labels")] {
            let with = || put().attribute(attribute, "x");
            let alone = table.put(with()).await.expect_err("it is refused");
            let together = table
                .put_multiple([put(), with()])
                .await
                .expect_err("it is refused");
            let increment = Increment::new("r").column("f", "n", 1).attribute(attribute, "x");
            let counted = table.increment(increment).await.expect_err("it is refused");
            for error in [alone, together, counted] {
                assert!(
                    error
                        .to_string()
                        .contains(&format!("{words} cannot be persisted")),
                    "{error}"
                );
            }
        }
        table
            .put(put().attribute("mine", "x"))
            .await
            .expect("another attribute");

        // Thrift sends attributes apart from the cells.
        let certificate = Tls::with_certificate(secured.ca(), secured.path("client-ada.pem"));
        let mut options = PoolOptions::default();
        options.connection.security = Security::none().tls(certificate.expect("a certificate"));
        let client = Client::new(secured.target(), options).expect("an address");
        let table = client.table("t").expect("a name");
        for (attribute, words) in [("acl", "Cell ACLs"), ("VISIBILITY", "Visibility labels")] {
            let with = || put().attribute(attribute, "x");
            let alone = table.put(with()).await.expect_err("it is refused");
            let together = table
                .put_multiple([put(), with()])
                .await
                .expect_err("it is refused");
            for error in [alone, together] {
                assert!(
                    error
                        .to_string()
                        .contains(&format!("{words} cannot be persisted")),
                    "{error}"
                );
            }
        }
    });
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let open = Server::start(&dir.path().join("data"), &[]);
    runtime.block_on(async {
        let registry = Registry::bootstrap(&open.thrift.to_string()).expect("an address");
        let cluster = Cluster::new(ClusterOptions::new(registry));
        let schema = TableSchema::new("t")
            .expect("a name")
            .family(FamilySchema::new("f"));
        cluster.create_table(schema).await.expect("a table");
        let table = cluster.table("t").expect("a name");
        table
            .put(put().attribute("acl", "x"))
            .await
            .expect("it is ignored");
    });
}

/// Goal: the library's native client logs in by token and by certificate, through both registries.
#[test]
fn the_native_client_logs_in_by_token_and_certificate() {
    let secured = Secured::start(&[]);
    secured.says("--token @ada.token", &["create 't', 'f'"]);
    let (ca, own) = (secured.ca(), secured.path("client-ada.pem"));
    let tls = || Tls::new(&ca).expect("the authority");
    let token = || Login::token_file(secured.path("ada.token")).expect("a token");
    let certificate = Tls::with_certificate(&ca, &own).expect("a certificate");
    let runtime = Runtime::new().expect("a runtime");
    for registry in ["zookeeper", "rpc"] {
        for (name, security) in [
            ("token", Security::none().login(token())),
            ("token inside TLS", Security::none().tls(tls()).login(token())),
            ("certificate", Security::none().tls(certificate.clone())),
        ] {
            let options = secured.native(registry, security);
            let read = runtime.block_on(async {
                let table = Cluster::connect(options).await?.table("t")?;
                table.put(Put::new(name).cell("f", "q", registry)).await?;
                table.get(Get::new(name)).await
            });
            let row = read.unwrap_or_else(|error| panic!("{name}, {registry}: {error}"));
            let row = row.expect("it was written");
            assert_eq!(row.value("f", "q").expect("it was written"), registry, "{name}");
        }
        let nobody = Cluster::new(secured.native(registry, Security::none()));
        let table = nobody.table("t").expect("a name");
        let error = runtime
            .block_on(table.get(Get::new("r")))
            .expect_err("nobody logs in");
        let text = error.to_string();
        assert!(
            matches!(error, Error::Login { .. }) && text.contains("wants a login"),
            "{registry}: {text}"
        );
    }
}

/// Goal: rights are granted, listed and taken, for each scope, and hold; wrong requests are named.
#[test]
fn the_shell_changes_rights() {
    let secured = Secured::start(&[]);
    let token = "--token @ada.token";
    let listed = secured.says(
        token,
        &[
            "create 't', 'f'",
            "create_namespace 'ns'",
            "grant 'nobody', 'RW', 't', 'f', 'q'",
            "grant '@readers', 'R', '@ns'",
            "grant 'nobody', 'C'",
            "user_permission 't'",
            "user_permission '@ns'",
            "user_permission",
        ],
    );
    for line in [
        "default,t,f,q: [Permission: actions=READ,WRITE]",
        "ns,,,: [Permission: actions=READ]",
        ",,,: [Permission: actions=CREATE]",
        // The creator of the table, and the superuser.
        "default,t,,: [Permission: actions=READ,WRITE,EXEC,CREATE,ADMIN]",
        ",,,: [Permission: actions=READ,WRITE,EXEC,CREATE,ADMIN]",
    ] {
        assert!(listed.contains(line), "{line} is not in\n{listed}");
    }
    let left = secured.says(
        token,
        &[
            "revoke 'nobody', 't', 'f', 'q'",
            "revoke 'nobody'",
            "user_permission 't'",
        ],
    );
    assert!(!left.contains("nobody"), "{left}");
    for (command, words) in [
        ("grant 'nobody', 'RZ'", "'Z' is no permission"),
        ("grant 'nobody', 'R', '@ns', 'f'", "a namespace has no families"),
        ("grant 'nobody', 'R', 'missing'", "missing"),
    ] {
        let error = secured.fails(token, command);
        assert!(error.contains(words), "{command}: {error}");
    }
}

/// The lines of the audit log of this kind that have all of these parts.
fn events(log: &str, kind: &str, parts: &[&str]) -> usize {
    let kind = format!(r#""event":"{kind}""#);
    let is_one = |line: &&str| line.contains(&kind) && parts.iter().all(|part| line.contains(part));
    log.lines().filter(is_one).count()
}

/// Goal: `hbase:acl` lists the rights of now, is read with a right to it, and takes no puts.
#[test]
fn the_table_of_rights_lists_what_is_true() {
    let secured = Secured::start(&[]);
    let token = "--token @ada.token";
    let listed = secured.says(
        token,
        &[
            "create 't', 'f'",
            "grant 'bob', 'RW', 't', 'f', 'q'",
            "grant '@readers', 'R', '@default'",
            "grant 'bob', 'C'",
            "scan 'hbase:acl'",
            "get 'hbase:acl', 't'",
            "list_regions 'hbase:acl'",
        ],
    );
    for (part, times) in [
        ("@default column=l:@readers", 1),
        ("hbase:acl column=l:bob", 1),
        ("t column=l:ada", 1),
        ("value=RWXCA", 2),
        ("l:bob,f,q", 2),
    ] {
        let words: Vec<&str> = listed.split_whitespace().collect();
        let found = words.join(" ").matches(part).count();
        assert!(found >= times, "{part}: {found} in\n{listed}");
    }
    let left = secured.says(token, &["revoke 'bob', 't', 'f', 'q'", "scan 'hbase:acl'"]);
    assert!(!left.contains("l:bob,f,q") && left.contains("l:bob"), "{left}");
    for (command, words) in [
        (
            "put 'hbase:acl', 't', 'l:bob', 'A'",
            "grant and revoke change what it lists",
        ),
        ("drop 'hbase:acl'", "hbase:acl"),
        ("grant 'bob', 'R', 'hbase:acl'", "grant them without a table"),
    ] {
        let error = secured.fails(token, command);
        assert!(error.contains(words), "{command}: {error}");
    }
    // Where nobody has rights there is no such table.
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let open = Server::start(&dir.path().join("data"), &[]);
    let output = Command::new(binary("basalt-shell"))
        .args(["-e", "scan 'hbase:acl'", "--target", &open.thrift.to_string()])
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built");
    assert!(!output.status.success(), "{output:?}");
    open.stop();
}

/// Goal: each change of the schema, of rights and of users is in the audit log, and each allowed call if that
/// is wanted; neither has row keys or values.
#[test]
fn changes_and_allowed_calls_are_in_the_audit_log() {
    let secured = Secured::start(&["security.audit_allowed=true"]);
    let token = "--token @ada.token";
    secured.says(
        token,
        &[
            "create_namespace 'ns'",
            "create 'ns:t', 'f'",
            "put 'ns:t', 'row-key', 'f:q', 'cell-value'",
            "get 'ns:t', 'row-key'",
            "alter 'ns:t', 'g'",
            "snapshot 'ns:t', 's'",
            "clone_snapshot 's', 'u'",
            "delete_snapshot 's'",
            "disable 'ns:t'",
            "truncate 'u'",
            "drop 'ns:t'",
            "drop_namespace 'ns'",
        ],
    );
    let log = secured.audit_log();
    for (reason, of) in [
        ("created", r#""namespace":"ns""#),
        ("created", r#""table":"ns:t""#),
        ("altered", r#""table":"ns:t""#),
        ("snapshot s was taken", r#""table":"ns:t""#),
        ("table was made of snapshot s", r#""table":"u""#),
        ("snapshot s was deleted", ""),
        ("disabled", r#""table":"ns:t""#),
        ("truncated", r#""table":"u""#),
        ("dropped", r#""table":"ns:t""#),
        ("dropped", r#""namespace":"ns""#),
    ] {
        let reason = format!(r#""reason":"{reason}""#);
        let found = events(&log, "schema-change", &[r#""user":"ada""#, &reason, of]);
        assert!(found >= 1, "{reason} {of} is not in\n{log}");
    }
    for action in ["READ", "WRITE"] {
        let action = format!(r#""action":"{action}""#);
        let parts = [r#""user":"ada""#, &action[..], r#""table":"ns:t""#];
        assert!(events(&log, "allowed", &parts) >= 1, "{log}");
    }
    for secret in ["row-key", "cell-value", "sesame"] {
        assert!(!log.contains(secret), "{log}");
    }

    // Another program changes the users; the server sees it with the first login after it.
    let data = secured.path("data");
    administer(&data, &["user", "create", "eve"], "swordfish\n");
    std::fs::write(secured.path("fish"), "swordfish\n").expect("there is space");
    secured.says("--user eve --password-file @fish", &["list"]);
    administer(&data, &["user", "change", "eve", "--disabled", "yes"], "");
    administer(&data, &["user", "create", "fred"], "swordfish\n");
    secured.says("--user fred --password-file @fish", &["list"]);
    let log = secured.audit_log();
    for (user, what) in [("eve", "created"), ("eve", "disabled"), ("fred", "created")] {
        let (user, what) = (format!(r#""subject":"{user}""#), format!(r#""reason":"{what}""#));
        assert_eq!(
            events(&log, "user-change", &[&user, &what]),
            1,
            "{user} {what}: {log}"
        );
    }

    // Without the setting, allowed calls are not in it.
    let quiet = Secured::start(&[]);
    quiet.says(token, &["create 't', 'f'", "put 't', 'r', 'f:q', 'v'"]);
    let log = quiet.audit_log();
    assert_eq!(events(&log, "allowed", &[]), 0, "{log}");
    assert!(events(&log, "schema-change", &[]) >= 1, "{log}");
}

/// Goal: a stream of changes, and its readers, are for those who may read all of each table; a right that is
/// taken ends the stream.
#[test]
fn changes_are_for_those_who_may_read_them() {
    let secured = Secured::start(&[]);
    let token = "--token @ada.token";
    let data = secured.path("data");
    administer(&data, &["user", "create", "bob"], "swordfish\n");
    secured.says(
        token,
        &[
            "create 't', 'f', 'g'",
            "create 'other', 'f'",
            "grant 'bob', 'R', 't'",
            "grant 'bob', 'R', 'other', 'f'",
        ],
    );
    let open = |login: &str, method: &str, path: &str| {
        use std::io::{BufRead as _, BufReader, Write as _};
        let mut socket = std::net::TcpStream::connect(secured.server.http).expect("the port is open");
        let authorization = match login {
            "" => String::new(),
            login => format!(
                "Authorization: Basic {}\r\n",
                base64::Engine::encode(&base64::engine::general_purpose::STANDARD, login)
            ),
        };
        let request = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\n{authorization}\r\n");
        socket.write_all(request.as_bytes()).expect("it is sent");
        let mut answer = BufReader::new(socket);
        let mut status = String::new();
        answer.read_line(&mut status).expect("a status");
        (status.split(' ').nth(1).unwrap_or_default().to_owned(), answer)
    };
    let bob = "bob:swordfish";
    for (login, method, path, expected) in [
        ("", "GET", "/changes?tables=t", "401"),
        ("bob:wrong", "GET", "/changes?tables=t", "401"),
        // A right to one family of two is not enough for a stream of both.
        (bob, "GET", "/changes?tables=other", "403"),
        (bob, "GET", "/changes?tables=t,other", "403"),
        (bob, "GET", "/changes?tables=absent", "403"),
        (bob, "PUT", "/changes/readers/r?tables=other", "403"),
        (bob, "PUT", "/changes/readers/r?tables=t", "201"),
        ("", "GET", "/changes?reader=r", "401"),
        ("", "DELETE", "/changes/readers/r", "401"),
        (bob, "DELETE", "/changes/readers/r", "204"),
        ("ada:open sesame", "GET", "/changes?tables=t,other", "200"),
    ] {
        assert_eq!(open(login, method, path).0, expected, "{login} {method} {path}");
    }
    let (status, answer) = open(bob, "GET", "/changes?tables=t");
    assert_eq!(status, "200");
    secured.says(token, &["revoke 'bob', 't'"]);
    let last = std::io::BufRead::lines(answer).map_while(Result::ok).last();
    let last = last.expect("a line");
    assert!(
        last.starts_with("{\"error\":") && last.contains("AccessDenied"),
        "{last}"
    );
}
