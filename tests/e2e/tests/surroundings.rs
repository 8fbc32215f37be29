//! Faults in the surroundings of the process: the data directory, the ports, signals, standard
//! output, the reader of the log.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use basalt_client::{Client, FamilySchema, Get, Put, TableSchema};
use basalt_test_support::{Server, binary, check, serve, signal, until};

/// Paths and sizes of everything below a folder.
fn contents(dir: &Path) -> BTreeSet<(PathBuf, u64)> {
    let mut found = BTreeSet::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            let size = fs::symlink_metadata(&path).expect("it is there").len();
            if path.is_dir() {
                dirs.push(path.clone());
            }
            found.insert((path, size));
        }
    }
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes a row into the table `t` and reads it. Creates the table if it does not exist.
fn put_and_get(thrift: SocketAddr, row: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&thrift.to_string()).await.expect("a connection");
        let schema = TableSchema::new("t")
            .expect("a name")
            .family(FamilySchema::new("f"));
        // Fails if the table exists, which is expected.
        let _ = client.create_table(schema).await;
        let table = client.table("t").expect("a name");
        table
            .put(Put::new(row).cell("f", "q", "v"))
            .await
            .expect("written");
        table.get(Get::new(row)).await.expect("no error").expect("a row");
    });
}

/// Goal: a mistyped data directory harms no files. Method: directories of other programs, one of
/// them a database. Names and sizes of their files do not change, and the error names the
/// directory, some of its files, and the setting.
#[test]
fn a_directory_of_others_is_refused_untouched() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let make = |name: &str, files: &[(&str, &str)]| {
        let path = dir.path().join(name);
        fs::create_dir(&path).expect("made");
        for (file, text) in files {
            fs::write(path.join(file), text).expect("written");
        }
        path
    };
    let foreign = [
        (
            make(
                "etc",
                &[("passwd", "root:x:0:0"), ("hosts", "127.0.0.1 localhost")],
            ),
            "\"hosts\", \"passwd\"",
        ),
        (make("home", &[(".profile", "")]), "\".profile\""),
        (
            make(
                "rocksdb",
                &[
                    ("CURRENT", "MANIFEST-000005\n"),
                    ("LOCK", ""),
                    ("MANIFEST-000005", "x"),
                    ("000004.log", "x"),
                ],
            ),
            "\"000004.log\", \"MANIFEST-000005\"",
        ),
    ];
    for (path, holds) in foreign {
        let before = contents(&path);
        let output = Server::try_start(&path, &[]).expect_err("it is not ours");
        let name = path.to_str().expect("text");
        for word in [name, holds, "neither empty nor a Basalt database", "data.dir"] {
            assert!(output.contains(word), "{word:?} is not in\n{output}");
        }
        assert_eq!(contents(&path), before);
    }
    // The `lost+found` of a new file system is ignored.
    let fresh = dir.path().join("fresh");
    fs::create_dir_all(fresh.join("lost+found")).expect("made");
    Server::start(&fresh, &[]).stop();
    // Other files beside the database are ignored.
    fs::write(fresh.join("notes.txt"), "ours").expect("written");
    Server::start(&fresh, &[]).stop();
}

/// Goal: a start that fails creates no files. Method: wrong settings and ports in use, with a data
/// directory that does not exist.
#[test]
fn a_failed_start_leaves_nothing() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("above/data");
    let run = |arguments: &[&str]| {
        Command::new(binary("basalt"))
            .args([
                "serve",
                "--set",
                "server.listen=\"127.0.0.1:0\"",
                "--set",
                "http.listen=\"127.0.0.1:0\"",
            ])
            .arg("--data-dir")
            .arg(&data)
            .args(arguments)
            .output()
            .expect("the binary was built")
    };
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = holder.local_addr().expect("an address").to_string();
    let taken = taken.as_str();
    for (arguments, word) in [
        (["--set", "wal.sink=os"], "sink"),
        (["--set", "row.cell_max_bytes=-1"], "cell_max_bytes"),
        (["--set", "log.filter=\"[[[\""], "log.filter"),
        (["--thrift-listen", taken], "server.listen = "),
        (["--http-listen", taken], "http.listen = "),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let log = text(&output.stderr);
        let last = log.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("basalt: ") && last.contains(word),
            "{arguments:?}: {log}"
        );
        assert_eq!(contents(dir.path()), BTreeSet::new(), "{arguments:?}");
    }
}

/// SIGHUP, SIGUSR1, SIGUSR2 and SIGPIPE do not stop the server. All but SIGPIPE are logged.
#[test]
fn signals_that_mean_nothing_end_nothing() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let names = ["HUP", "USR1", "USR2", "PIPE"];
    for name in names {
        signal(server.pid(), name);
        put_and_get(server.thrift, name);
    }
    let log = server.stop_and_log();
    for part in [
        "SIGHUP: no setting has changed",
        "SIGUSR1 is ignored",
        "SIGUSR2 is ignored",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

/// Starts the server with these as standard output and standard error, and logs every call.
fn start(dir: &Path, stdout: Stdio, stderr: Stdio) -> Child {
    let settings = ["log.filter=basalt=trace,info", "slow_log.threshold_ms=0"];
    serve(&binary("basalt"), dir, &settings)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .expect("the binary was built")
}

fn addresses(child: &mut Child) -> (SocketAddr, SocketAddr) {
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut line).expect("text");
    basalt_test_support::addresses(&line).expect("both addresses")
}

fn metric(http: SocketAddr, name: &str) -> f64 {
    use std::io::Write as _;
    let mut socket = std::net::TcpStream::connect(http).expect("the port is open");
    socket
        .write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .expect("the server reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("text");
    let line = answer.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in\n{answer}"))
}

fn stop(mut child: Child) {
    signal(child.id(), "TERM");
    assert!(child.wait().expect("ours").success(), "a clean stop");
}

/// Starts a server whose log is not read, and makes calls until lines of the log are lost.
fn flooded(dir: &Path) -> (Child, SocketAddr) {
    let mut child = start(dir, Stdio::piped(), Stdio::piped());
    let (thrift, http) = addresses(&mut child);
    put_and_get(thrift, "first");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&thrift.to_string()).await.expect("a connection");
        let table = client.table("t").expect("a name");
        // With a threshold of 0, each call is slow and logs a line.
        while metric(http, "basalt_log_lines_lost_total") < 10.0 {
            for _ in 0..500 {
                table.get(Get::new("first")).await.expect("answered");
            }
        }
    });
    (child, thrift)
}

/// Goal: a server whose log is not read stops in time.
#[test]
fn a_log_that_nobody_reads_does_not_delay_the_stop() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (mut child, _) = flooded(&dir.path().join("data"));
    let unread = child.stderr.take().expect("piped");
    signal(child.id(), "TERM");
    until("the server ends", || child.try_wait().expect("ours").is_some());
    assert!(child.wait().expect("ours").success(), "a clean stop");
    drop(unread);
}

/// Goal: a reader of the log that hangs delays no call. Method: the pipe is not read while calls
/// log more than the pipe and the queue hold. When the pipe is read again, the log continues and
/// reports lost lines. After the reader has closed the pipe, calls and the stop work.
#[test]
fn a_log_that_nobody_reads_stops_no_call() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (mut child, thrift) = flooded(&dir.path().join("data"));
    // The reader continues for a while.
    let mut log = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("log lines were lost") {
        line.clear();
        assert!(log.read_line(&mut line).expect("text") > 0, "the log ended");
    }
    put_and_get(thrift, "second");
    // The reader closes the pipe.
    drop(log);
    put_and_get(thrift, "third");
    signal(child.id(), "HUP");
    put_and_get(thrift, "fourth");
    stop(child);
}

/// With standard output and standard error closed or full, the server serves and stops cleanly.
#[test]
fn closed_and_full_outputs_are_survived() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let started = |script: &str, name: &str| {
        let log = dir.path().join(format!("{name}.log"));
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(binary("basalt"))
            .args([&dir.path().join(name), &log])
            .stdin(Stdio::null())
            .spawn()
            .expect("sh is everywhere");
        (child, log)
    };
    // The test chooses the port, because the server cannot print its own.
    for (name, redirected) in [
        ("closed", "1>&- 2>&-"),
        ("out-closed", "1>&- 2>\"$2\""),
        ("out-refuses", "1>/dev/full 2>\"$2\""),
        ("both-refuse", "1>/dev/full 2>/dev/full"),
    ] {
        let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
        let thrift = holder.local_addr().expect("an address");
        drop(holder);
        let script = format!(
            "exec \"$0\" serve --data-dir \"$1\" --thrift-listen {thrift} --http-listen 127.0.0.1:0 {redirected}"
        );
        let (mut child, log) = started(&script, name);
        while std::net::TcpStream::connect(thrift).is_err() {
            let ended = child.try_wait().expect("ours");
            assert!(ended.is_none(), "{name}: {ended:?}");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        put_and_get(thrift, "row");
        stop(child);
        if name == "out-refuses" {
            let log = fs::read_to_string(log).expect("text");
            assert!(log.contains("standard output did not take the line"), "{log}");
        }
    }
}

/// Goal: no second process opens a database that is in use, also after the lock file was deleted. A
/// server whose directory is moved away exits with an error, and the moved directory can be served
/// again.
#[test]
fn a_deleted_lock_file_lets_no_second_server_in() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let first = Server::start(&data, &[]);
    put_and_get(first.thrift, "row");
    fs::remove_file(data.join("LOCK")).expect("removed");
    let refused = Server::try_start(&data, &[]).expect_err("the directory is in use");
    assert!(refused.contains("in use by another process"), "{refused}");
    let check = check(&data);
    assert!(
        !check.status.success() && text(&check.stderr).contains("in use"),
        "{}",
        text(&check.stderr)
    );
    put_and_get(first.thrift, "row");

    // Another database could take the place of the moved directory, and the first server would
    // create its files in it.
    let aside = dir.path().join("aside");
    fs::rename(&data, &aside).expect("moved");
    let (code, log) = first.wait();
    assert_eq!(code, Some(70), "{log}");
    assert!(
        log.contains("was moved, removed or replaced while it was in use"),
        "{log}"
    );
    // The moved directory can be served, with the row that was written before.
    let again = Server::start(&aside, &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&again.thrift.to_string())
            .await
            .expect("a connection");
        let table = client.table("t").expect("a name");
        table
            .get(Get::new("row"))
            .await
            .expect("no error")
            .expect("a row");
    });
    again.stop();
}

/// Runs [`check`] as a user who may only read. Root may write despite file modes, so as root the
/// check runs as the user `nobody`, who may not read the build folders: it runs from a copy of the
/// program in `bin`.
fn check_as_reader(bin: &Path, data: &Path) -> Output {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return check(data);
    }
    fs::set_permissions(bin, Permissions::from_mode(0o755)).expect("ours");
    let program = bin.join("basalt");
    fs::copy(binary("basalt"), &program).expect("copied");
    let mut check = Command::new(program);
    check.args(["check", "--data-dir"]).arg(data);
    check.uid(NOBODY).gid(NOBODY);
    let mut output = None;
    // A process that another test begins has the copy open for writing until it runs its own program.
    until("the copy is closed everywhere", || match check.output() {
        Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => false,
        ended => {
            output = Some(ended.expect("it was copied"));
            true
        }
    });
    output.expect("it ran")
}

fn set_modes(dir: &Path, dirs: u32, files: u32) {
    for (path, _) in contents(dir) {
        let mode = if path.is_dir() { dirs } else { files };
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
    }
    fs::set_permissions(dir, Permissions::from_mode(dirs)).expect("ours");
}

/// Goal: a read-only copy can be checked, and each finding comes with advice. Method: a database
/// without its lock file and without write permission anywhere; the check changes no file. Then a
/// damaged log segment, a missing and an empty directory.
#[test]
fn a_read_only_copy_is_checked_and_findings_come_with_advice() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    put_and_get(server.thrift, "row");
    server.kill();
    fs::remove_file(data.join("LOCK")).expect("removed");
    fs::create_dir_all(data.join("tables")).expect("made");
    fs::write(data.join("tables/stray"), "whatever").expect("written");
    set_modes(&data, 0o555, 0o444);
    let before = contents(&data);
    let sound = check_as_reader(dir.path(), &data);
    let found = text(&sound.stdout);
    assert!(sound.status.success(), "{found}{}", text(&sound.stderr));
    assert!(
        found.contains("no table or snapshot refers to")
            && found.contains("What to do: nothing: the next start moves it to orphans/"),
        "{found}"
    );
    assert_eq!(contents(&data), before, "a check writes nothing");

    set_modes(&data, 0o700, 0o600);
    let segment = before
        .iter()
        .find(|(path, _)| path.to_string_lossy().contains("/wal/0"));
    let (segment, _) = segment.expect("the log has a segment");
    let mut bytes = fs::read(segment).expect("read");
    bytes[20] ^= 1;
    fs::write(segment, bytes).expect("written");
    let damaged = check(&data);
    let found = text(&damaged.stdout);
    assert_eq!(damaged.status.code(), Some(1), "{found}");
    let problem = found
        .lines()
        .find(|line| line.contains("corrupt file"))
        .expect("a finding");
    assert!(
        problem.contains("What to do: restore the whole data directory from a copy"),
        "{found}"
    );
    let nothing = check(&dir.path().join("nowhere"));
    assert_eq!(nothing.status.code(), Some(1));
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).expect("made");
    assert!(text(&check(&empty).stderr).contains("holds no database"));
    assert_eq!(contents(&empty), BTreeSet::new());
}
