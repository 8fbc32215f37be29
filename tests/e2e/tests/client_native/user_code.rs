//! Filters of users: a jar with classes that neither HBase nor Basalt has, used by HBase's unmodified client.
//!
//! `tests/e2e/clients/user-code` has the filters and a program that uses them. Among them is one that gives
//! all its calls to a filter of HBase's, so that HBase's own classes run in the Java host. The transcript of
//! the program's tour was recorded with HBase 2.6.1, on whose class path the same classes were; Basalt's must
//! be equal.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use basalt_test_support::{JavaProgram, Oracle, Server, until};

use super::security::Secured;
use super::{Explained, REAL_HBASE, compare, is_recorded};

const ANSWERS: &str = include_str!("../../clients/user-code/answers.txt");
const PROJECT: &str = "e2e/clients/user-code";

const VERSIONS: &str = "the hints jump over newer versions: HBase then shows one beyond the VERSIONS of the family, until a compaction";
const REVERSED: &str =
    "HBase refuses reversed scans with families on demand; Basalt reads all families at once";
const CLASS: &str = "the class of HBase's other refusals, which clients do not repeat";
const TEXT: &str = "the text names class and table";

const EXPLAINED: &[Explained] = &[
    (
        "timestamps with hints, variant 1",
        "118 results, dc594ade r000 a:name@1=n0v1 a:password@1=s b:x1@1=b0;r001 a:password@1=se;r002 a:password@1=sec;r00...",
        VERSIONS,
    ),
    (
        "timestamps with hints, variant 3",
        "129 results, fbf6debf r000 a:name@1=n0v1 a:password@1=s;r000 b:x1@1=b0;r001 a:password@1=se;r002 a:password@1=se...",
        VERSIONS,
    ),
    (
        "timestamps with hints, variant 5",
        "42 results, ac2e127a r000 a:password@1=s;r003 a:password@4=;r006 a:password@1=;r009 a:password@1=sec;r012 a:pas...",
        VERSIONS,
    ),
    (
        "strict column value, reversed, variant 0",
        "1 results, 8a87e85c r030 a:name@3=n30v3 a:password@3=secre b:x1@1=b30 b:x2@2=b30 b:x3@3=b30;",
        REVERSED,
    ),
    (
        "strict column value, reversed, variant 1",
        "1 results, 73d5c46d r030 a:name@3=n30v3 a:name@2=n30v2 a:name@1=n30v1 a:password@3=secre a:password@2=secr a:p...",
        REVERSED,
    ),
    (
        "strict column value, reversed, variant 2",
        "1 results, 8a87e85c r030 a:name@3=n30v3 a:password@3=secre b:x1@1=b30 b:x2@2=b30 b:x3@3=b30;",
        REVERSED,
    ),
    (
        "strict column value, reversed, variant 4",
        "1 results, c327fe88 r030 a:password@3=secre b:x1@1=b30 b:x2@2=b30 b:x3@3=b30;",
        REVERSED,
    ),
    (
        "strict column value, reversed, variant 5",
        "1 results, 40107100 r030 a:name@2=n30v2 a:name@1=n30v1 b:x2@2=b30 b:x3@3=b30;",
        REVERSED,
    ),
    (
        "a batch with a filter of rows",
        "throws RemoteWithExtrasException: org.apache.hadoop.hbase.DoNotRetryIOException: org.apache.hadoop.hbase.filter.IncompatibleFilterException: Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow",
        CLASS,
    ),
    (
        "get timestamps with hints 55",
        "r055 a:password@4=sec b:x1@1=b55 b:x4@4=b55 true",
        VERSIONS,
    ),
    (
        "no such class",
        "throws RemoteWithExtrasException: org.apache.hadoop.hbase.DoNotRetryIOException: org.apache.hadoop.hbase.exceptions.DeserializationException: these bytes are no filter (user code org.example.filters.Bad, table uc)",
        TEXT,
    ),
];

/// The filters, the program that uses them, and the host.
struct Programs {
    client: JavaProgram,
    host: JavaProgram,
}

impl Programs {
    fn find() -> Option<Self> {
        Some(Self {
            client: JavaProgram::find(PROJECT)?,
            host: JavaProgram::find_variant("../packages/java/host", "packages/java/host", &[])?,
        })
    }

    /// Makes a jar of the filters in a new folder.
    fn jar(&self, dir: &Path) -> PathBuf {
        let folder = dir.join("jars");
        std::fs::create_dir(&folder).unwrap();
        let made = Command::new("jar")
            .args(["--create", "--file"])
            .arg(folder.join("filters.jar"))
            .args(["-C", first(self.client.class_path()), "org"])
            .status();
        assert!(made.expect("the JDK has jar").success());
        folder
    }

    /// The settings of a server that runs classes of the jars in the folder.
    fn settings(&self, jars: &Path) -> Vec<String> {
        let (host, hbase) = self.host.class_path().split_once(':').unwrap();
        vec![
            format!("user_code.directories=[{:?}]", jars.display().to_string()),
            format!("user_code.java_host={host:?}"),
            format!("user_code.java_class_path={hbase:?}"),
        ]
    }

    /// Runs the program on a server, and returns what it prints.
    fn run(&self, server: &Server, arguments: &[&str]) -> String {
        self.run_at(server.thrift.port(), arguments)
    }

    fn run_at(&self, port: u16, arguments: &[&str]) -> String {
        let output = self
            .client
            .java()
            .args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg("basalt.client.UserCode")
            .args(["zookeeper", "127.0.0.1", &port.to_string()])
            .args(arguments)
            .output()
            .expect("java was found a moment ago");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}:\n{text}\n{errors}");
        text
    }
}

fn first(class_path: &str) -> &str {
    class_path.split(':').next().unwrap()
}

/// Runs `ask` with a server that runs the filters, and more settings.
fn with_host(more: &[&str], ask: impl FnOnce(&Programs, &Server, &Path)) {
    let Some(programs) = Programs::find() else { return };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let mut settings = programs.settings(&programs.jar(dir.path()));
    settings.extend(more.iter().map(|&setting| setting.to_owned()));
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let server = Server::start(&dir.path().join("data"), &settings);
    ask(&programs, &server, dir.path());
    server.stop();
}

#[test]
fn hbase_gives_the_recorded_answers_to_filters_of_users() {
    if std::env::var_os(REAL_HBASE).is_none() {
        println!("not run: {REAL_HBASE} is not set, as it is in the nightly run");
        return;
    }
    let Some(programs) = Programs::find() else { return };
    let classes = Path::new(first(programs.client.class_path()));
    let Some(mut hbase) = Oracle::start_beside(classes) else {
        return;
    };
    let port = hbase.zookeeper_port().expect("it has started");
    is_recorded(ANSWERS, &programs.run_at(port, &["tour"]), PROJECT);
}

#[test]
fn filters_of_users_give_what_they_give_in_hbase() {
    with_host(&[], |programs, server, _| {
        compare(ANSWERS, EXPLAINED, &programs.run(server, &["tour"]), "user code");
    });
}

/// The one answer that the program has printed.
fn answer(transcript: &str) -> &str {
    transcript
        .trim()
        .split_once(" -> ")
        .map_or(transcript, |(_, answer)| answer)
}

/// Goal: filters that do what no filter should cost their callers an error that names class and table, and
/// cost nobody else anything: another filter gives what it gave before, from a host that was started anew if
/// need be.
#[test]
fn bad_filters_cost_their_callers_an_error() {
    with_host(
        &["user_code.deadline_ms=3000", "user_code.java_heap_bytes=67108864"],
        |programs, server, _| {
            programs.run(server, &["make"]);
            let before = programs.run(server, &["weak"]);
            assert!(answer(&before).starts_with("82 results"), "{before}");
            let names = "(user code org.example.filters.Bad, table uc)";
            for (what, text) in [
                ("unparsable", "these bytes are no filter"),
                ("throw", "java.lang.IllegalStateException: out of order"),
                ("throw-io", "java.io.IOException: out of paper"),
                ("recurse", "java.lang.StackOverflowError"),
                ("null", "filterCell has returned null"),
                ("other-row", "a new cell is of another row"),
                ("exit", "the Java host has ended during the call"),
            ] {
                let refused = programs.run(server, &["bad", what]);
                assert!(
                    refused.contains(text) && refused.contains(names),
                    "{what}: {refused}"
                );
            }
            assert_eq!(programs.run(server, &["weak"]), before);
            // The client tries twice, so this is the third end in a row and the next call is refused.
            let refused = programs.run(server, &["bad", "loop"]);
            assert!(refused.contains("the last 3 calls of the class"), "{refused}");
            assert_eq!(programs.run(server, &["weak"]), before);
            let page = server.http_get("/metrics");
            for series in [
                r#"basalt_user_code_duration_seconds_count{class="org.example.filters.PasswordStrength"}"#,
                r#"basalt_user_code_errors_total{class="org.example.filters.Bad",reason="thrown"}"#,
                r#"basalt_user_code_errors_total{class="org.example.filters.Bad",reason="nonsense"}"#,
                r#"basalt_user_code_errors_total{class="org.example.filters.Bad",reason="ended"}"#,
                r#"basalt_user_code_errors_total{class="org.example.filters.Bad",reason="late"}"#,
                "basalt_user_code_starts_total 4",
                "basalt_user_code_failures_total 3",
            ] {
                assert!(page.contains(series), "{series} is not in\n{page}");
            }
        },
    );
}

/// Goal: filters that take all memory, end the process at once, or print without end, harm no other call.
#[test]
fn filters_that_end_the_host_harm_no_other_call() {
    for what in ["allocate", "halt", "print"] {
        with_host(
            &["user_code.deadline_ms=3000", "user_code.java_heap_bytes=67108864"],
            |programs, server, _| {
                programs.run(server, &["make"]);
                let before = programs.run(server, &["weak"]);
                let refused = programs.run(server, &["bad", what]);
                if what == "print" {
                    // Whether 40 MB are printed in time or not: the log gets few of them.
                    assert!(refused.starts_with("print -> "), "{refused}");
                } else {
                    assert!(refused.contains("the Java host has ended"), "{refused}");
                }
                assert_eq!(programs.run(server, &["weak"]), before, "after {what}");
            },
        );
    }
}

/// Goal: a check by a filter of a user's is atomic: of writers that each add one to what they have read, none
/// loses the addition of another.
#[test]
fn writers_that_check_by_a_filter_lose_nothing() {
    with_host(&[], |programs, server, _| {
        programs.run(server, &["make"]);
        assert_eq!(programs.run(server, &["race"]), "race -> 96\n");
    });
}

/// Goal: a server without `user_code.directories` refuses such filters and names the setting; one with it
/// starts nothing before the first call.
#[test]
fn without_user_code_there_is_no_host() {
    let Some(programs) = Programs::find() else { return };
    super::with_server(|server, _| {
        programs.run(server, &["make"]);
        let refused = programs.run(server, &["weak"]);
        assert!(
            refused.contains("Filter class org.example.filters.PasswordStrength is not supported")
                && refused.contains("user_code.directories"),
            "{refused}"
        );
        assert!(!server.http_get("/metrics").contains("basalt_user_code"));
    });
    with_host(&[], |programs, server, _| {
        programs.run(server, &["make"]);
        assert_eq!(hosts_of(server), 0);
        programs.run(server, &["weak"]);
        assert_eq!(hosts_of(server), 1);
    });
}

/// Processes that the server has started.
fn hosts_of(server: &Server) -> usize {
    let parent = format!("PPid:\t{}\n", server.pid());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let statuses = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    statuses.filter(|status| status.contains(&parent)).count()
}

/// Goal: a jar that is replaced in place is loaded anew, with its new content in the log's line.
#[test]
fn a_changed_jar_is_loaded_anew() {
    with_host(&[], |programs, server, dir| {
        programs.run(server, &["make"]);
        let before = programs.run(server, &["weak"]);
        let jar = dir.join("jars/filters.jar");
        let broken = dir.join("broken.jar");
        std::fs::write(&broken, b"no jar").unwrap();
        std::fs::rename(&jar, dir.join("kept.jar")).unwrap();
        // Without the jar its classes cannot be loaded any more; a file that is no jar is an error that names
        // it.
        until("the class is gone", || {
            programs.run(server, &["weak"]).contains("ClassNotFoundException")
        });
        std::fs::rename(&broken, &jar).unwrap();
        until("the jar is seen", || {
            programs.run(server, &["weak"]).contains("throws")
        });
        std::fs::rename(dir.join("kept.jar"), &jar).unwrap();
        until("the jar is back", || programs.run(server, &["weak"]) == before);
    });
}

/// Goal: with security on, a class is loaded by a caller with the global ADMIN right, or because
/// `user_code.classes` names it, and each load is in the audit log.
#[test]
fn loading_code_needs_the_admin_right() {
    let Some(programs) = Programs::find() else { return };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let mut settings = programs.settings(&programs.jar(dir.path()));
    settings.push("user_code.classes=[\"org.example.filters.SkipScan\"]".to_owned());
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let secured = Secured::start(&settings);
    let site = secured.token_site();
    let (ada, bob) = (secured.token("ada"), secured.token("bob"));
    let run = |token: &Path, command: &str| {
        let output = programs
            .client
            .java_with(&site)
            .env("HADOOP_TOKEN_FILE_LOCATION", token)
            .args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg("basalt.client.UserCode")
            .args(["zookeeper", "127.0.0.1", &secured.port(), command])
            .output()
            .expect("java was found a moment ago");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&ada, "make");
    run(&ada, "grant");
    assert!(
        run(&bob, "skip").contains("12 results"),
        "user_code.classes names it"
    );
    let refused = run(&bob, "weak");
    assert!(
        refused.contains("org.example.filters.PasswordStrength is not loaded yet")
            && refused.contains("user_code.classes"),
        "{refused}"
    );
    let loaded = run(&ada, "weak");
    assert!(loaded.contains("82 results"), "{loaded}");
    assert_eq!(run(&bob, "weak"), loaded, "it is loaded now");
    let log = secured.audit_log();
    let loads: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("\"event\":\"code-loaded\""))
        .collect();
    let is_by = |line: &str, user: &str, class: &str| {
        line.contains(&format!("\"user\":\"{user}\"")) && line.contains(class) && line.contains("filters.jar")
    };
    assert_eq!(loads.len(), 2, "{loads:?}");
    assert!(
        is_by(loads[0], "bob", "org.example.filters.SkipScan"),
        "{loads:?}"
    );
    assert!(
        is_by(loads[1], "ada", "org.example.filters.PasswordStrength"),
        "{loads:?}"
    );
}

/// Goal: whatever bytes come to the host, it closes that socket at most: others are answered as before.
#[test]
fn the_host_survives_any_bytes() {
    let Some(programs) = Programs::find() else { return };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let jars = programs.jar(dir.path());
    let socket = dir.path().join("s");
    let (host, hbase) = programs.host.class_path().split_once(':').unwrap();
    let mut child = Command::new("java")
        .args([
            "-Xmx128m",
            "-XX:+ExitOnOutOfMemoryError",
            "-cp",
            host,
            "basalt.host.Main",
        ])
        .arg(&socket)
        .arg(hbase)
        .arg(&jars)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("java was found a moment ago");
    until("the host accepts", || UnixStream::connect(&socket).is_ok());
    let hello = [0, 0, 0, 5, 1, 0, 0, 0, 1];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..400 {
        let mut bytes: Vec<u8> = (0..next() % 200)
            .map(|_| (next() % 4 * (next() % 100)) as u8)
            .collect();
        if round % 4 != 0 {
            // A head that fits, so that the body is read.
            let mut framed = (bytes.len() as u32 + 1).to_be_bytes().to_vec();
            framed.push((next() % 5) as u8);
            framed.append(&mut bytes);
            bytes = framed;
        }
        let mut bad = UnixStream::connect(&socket).expect("it accepts");
        // It may have closed the socket before it has read all.
        let _ = bad.write_all(&bytes);
        let _ = bad.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = bad.read_to_end(&mut answer);

        let mut good = UnixStream::connect(&socket).expect("it accepts");
        good.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        good.write_all(&hello).unwrap();
        let mut answer = [0; 9];
        good.read_exact(&mut answer)
            .unwrap_or_else(|error| panic!("after {bytes:?}: {error}"));
        assert_eq!(answer, [0, 0, 0, 5, 128, 0, 0, 0, 1]);
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success(), "it ends with its input");
}
