//! Backups with the real program: of a running server under writes, killed half way, into a directory and an
//! S3 server that fails; lists, prunings, restores.
//!
//! A writer puts numbered rows one after the other. So a restored table must have the rows from 0 up to some
//! number, all of them, and at least those acknowledged before the backup began.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use basalt_client::admin::Admin;
use basalt_client::{Client, FamilySchema, Get, Put, Scan, TableSchema};
use basalt_test_support::{Server, binary, check, until};

mod faults;
mod points;
mod s3;

/// Memstores and segments so small that files and segments come and go during a test.
const SMALL: [&str; 2] = ["memstore.flush_bytes=1048576", "wal.segment_bytes=1048576"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs `basalt` with these words.
fn basalt(words: &[&str]) -> Command {
    let mut command = Command::new(binary("basalt"));
    command.args(words).stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    basalt(words).output().expect("the binary was built")
}

/// Runs a command that must succeed; its standard output.
fn done(words: &[&str]) -> String {
    let output = run(words);
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{words:?}: {shown}");
    text(&output.stdout)
}

/// Runs a command that must fail; its standard error.
fn refused(words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{words:?}: {}",
        text(&output.stdout)
    );
    text(&output.stderr)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

/// Puts numbered rows until it is stopped.
struct Writer {
    acknowledged: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(server: &Server) -> Self {
        let address = server.thrift.to_string();
        let acknowledged = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (counter, stopped) = (Arc::clone(&acknowledged), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let client = Client::connect(&address).await.expect("a connection");
                let schema = TableSchema::new("numbers")
                    .expect("a name")
                    // It splits all the time.
                    .attribute("MAX_FILESIZE", "300000")
                    .attribute("hbase.table.sanity.checks", "false")
                    .family(FamilySchema::new("f"));
                client.create_table(schema).await.expect("a table");
                let table = client.table("numbers").expect("a name");
                for number in 0_u64.. {
                    if stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    let value = format!("{number:0>1000}");
                    let put = Put::new(format!("{number:012}")).cell("f", "q", value);
                    // A server that was killed answers no more.
                    if table.put(put).await.is_err() {
                        break;
                    }
                    counter.store(number + 1, Ordering::Relaxed);
                }
            });
        });
        Self {
            acknowledged,
            stop,
            thread: Some(thread),
        }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    fn wait_for(&self, rows: u64) {
        until("the rows are written", || self.acknowledged() >= rows);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the writer failed");
        }
    }
}

/// Number of rows of a directory's numbered table, which must be all from 0 on.
fn numbered_rows(data: &Path) -> u64 {
    let server = Server::start(data, &[]);
    let count = runtime().block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let mut rows = client
            .table("numbers")
            .expect("a name")
            .scan(Scan::new().rows_per_fetch(1000))
            .expect("a scan");
        let mut count = 0_u64;
        while let Some(row) = rows.next().await.expect("a row") {
            assert_eq!(row.key, format!("{count:012}").as_bytes(), "no row is missing");
            assert_eq!(
                row.value("f", "q").expect("a value"),
                format!("{count:0>1000}").as_bytes()
            );
            count += 1;
        }
        count
    });
    server.kill();
    count
}

/// Restores and checks; number of rows.
fn restored_rows(words: &[&str], data: &Path) -> u64 {
    done(&[&["restore", "--data-dir", &data.display().to_string()], words].concat());
    let checked = check(data);
    assert!(checked.status.success(), "{}", text(&checked.stdout));
    numbered_rows(data)
}

fn backup_words<'a>(url: &'a str, from: &'a str) -> [&'a str; 5] {
    ["backup", "--to", url, "--from", from]
}

/// The ids in a list.
fn ids(url: &str) -> Vec<String> {
    let list = done(&["backups", "list", "--at", url]);
    list.lines()
        .map(|line| line.split(' ').next().expect("an id").to_owned())
        .collect()
}

/// Goal: backups of a server under writes come back as the numbered rows up to some number, with
/// everything else that the server has; the second one copies little; old ones can be pruned.
#[test]
fn a_running_server_is_backed_up_and_restored() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &SMALL);
    let (url, from) = (
        format!("file:{}/backups", dir.path().display()),
        server.http.to_string(),
    );
    let writer = Writer::start(&server);
    writer.wait_for(3000);
    runtime().block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let schema = TableSchema::new("other")
            .expect("a name")
            .family(FamilySchema::new("f"));
        client.create_table(schema).await.expect("a table");
        let other = client.table("other").expect("a name");
        other
            .put(Put::new("row").cell("f", "q", "v"))
            .await
            .expect("written");
        Admin::new(&client)
            .snapshot("other", "kept", true, 0)
            .await
            .expect("a snapshot");
    });
    let before = writer.acknowledged();
    let first = done(&backup_words(&url, &from));
    let after = writer.acknowledged();
    assert!(first.contains(" at position "), "{first}");
    writer.wait_for(after + 1500);
    let before_second = writer.acknowledged();
    done(&backup_words(&url, &from));
    drop(writer);
    let written = || server.metric("basalt_backup_written_bytes_total");
    let both = written();
    assert!(both > 3_000_000, "{both}");
    assert_eq!(server.metric("basalt_backups_total{result=\"made\"}"), 2);
    // Once flushes and compactions have ended, nothing is new but the log that is open.
    let mut made = 2;
    until("a backup copies little", || {
        let before = written();
        done(&backup_words(&url, &from));
        made += 1;
        written() - before < 1_200_000
    });
    server.kill();

    let all = ids(&url);
    assert_eq!(all.len(), made);
    let rows = restored_rows(&["--from", &url, "--backup", &all[0]], &dir.path().join("first"));
    assert!((before..=after + 1).contains(&rows), "{before} {rows} {after}");
    let rows = restored_rows(&["--from", &url, "--backup", &all[1]], &dir.path().join("second"));
    assert!(rows >= before_second, "{before_second} {rows}");

    let verified = done(&["backups", "verify", "--at", &url]);
    assert!(
        verified.contains(&format!("{made} backups")) && verified.contains(" 0 problems"),
        "{verified}"
    );
    let pruned = done(&["backups", "prune", "--keep", "0s", "--at", &url]);
    assert!(
        pruned.contains(&format!("{} backups removed, 1 kept", made - 1)),
        "{pruned}"
    );
    assert_eq!(ids(&url), all[made - 1..]);

    let last = dir.path().join("last");
    let rows = restored_rows(&["--from", &url, "--new-cluster-id"], &last);
    assert!(rows >= before_second);
    let server = Server::start(&last, &[]);
    runtime().block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let admin = Admin::new(&client);
        admin.clone_snapshot("kept", "cloned").await.expect("a clone");
        let cloned = client.table("cloned").expect("a name");
        assert!(cloned.exists(Get::new("row")).await.expect("an answer"));
    });
    // A table of the backup, beside the one of today.
    let (into, work) = (
        server.http.to_string(),
        dir.path().join("work").display().to_string(),
    );
    let words = [
        "restore",
        "--from",
        &url,
        "--table",
        "numbers",
        "--data-dir",
        &work,
        "--into",
        &into,
        "--as",
        "then",
    ];
    let put_back = done(&words);
    assert!(put_back.contains("table then at"), "{put_back}");
    assert!(!Path::new(&work).exists(), "the work is done");
    runtime().block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let then = client.table("then").expect("a name");
        let last = format!("{:012}", rows - 1);
        assert!(then.exists(Get::new(last)).await.expect("an answer"));
        let behind = format!("{rows:012}");
        assert!(!then.exists(Get::new(behind)).await.expect("an answer"));
        let snapshots = Admin::new(&client).snapshots(None, None).await.expect("a list");
        assert_eq!(snapshots.len(), 1, "only the one of before: {snapshots:?}");
    });
    let again = refused(&words);
    assert!(again.contains("TableExistsException: then"), "{again}");
    server.kill();
    let one = dir.path().join("one");
    assert_eq!(restored_rows(&["--from", &url, "--table", "numbers"], &one), rows);
    assert!(!one.join("tables/default/other").exists());
}

/// Goal: a command and a server that are killed half way leave no backup, and the next one is made all the
/// same, with what is there. The rate is so low that the kill comes in between.
#[test]
fn a_backup_that_is_killed_is_none() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &SMALL);
    let (url, from) = (
        format!("file:{}/backups", dir.path().display()),
        server.http.to_string(),
    );
    let writer = Writer::start(&server);
    writer.wait_for(4000);
    let objects = PathBuf::from(format!("{}/backups/objects", dir.path().display()));
    let slow = || -> Child {
        let words = [
            &backup_words(&url, &from)[..],
            &["--max-rate", "300kB", "--parallel", "1"],
        ]
        .concat();
        let child = basalt(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.expect("the binary was built")
    };
    let chunks = || walk(&objects);
    let mut child = slow();
    until("a chunk is written", || chunks() > 0);
    child.kill().expect("killed");
    child.wait().expect("it has ended");
    // Refused until the server has noticed the end of the killed one.
    until("the next backup is made", || {
        run(&backup_words(&url, &from)).status.success()
    });
    assert_eq!(ids(&url).len(), 1, "the one after the kill");

    let before = chunks();
    writer.wait_for(writer.acknowledged() + 3000);
    let mut child = slow();
    until("a further chunk is written", || chunks() > before);
    let acknowledged = writer.acknowledged();
    server.kill();
    assert!(!child.wait().expect("it has ended").success());
    drop(writer);
    assert_eq!(ids(&url).len(), 1);

    // The directory of the server that is gone, without a start.
    let data = data.display().to_string();
    let offline = done(&["backup", "--to", &url, "--data-dir", &data]);
    assert!(offline.contains(" at position "), "{offline}");
    let rows = restored_rows(&["--from", &url], &dir.path().join("restored"));
    assert!(rows >= acknowledged, "{acknowledged} {rows}");
    assert!(done(&["backups", "verify", "--at", &url]).contains(" 0 problems"));
}

/// Number of files below a directory.
fn walk(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    // Unfinished files of the store have a `#` in their names.
    let is_whole = |path: &PathBuf| !path.display().to_string().contains('#');
    paths
        .filter(is_whole)
        .map(|path| if path.is_dir() { walk(&path) } else { 1 })
        .sum()
}

/// Goal: wrong requests get an error that names the fault and the remedy, and nothing is changed; a restore
/// that is killed is taken up; damage is named; encrypted backups have no rows in clear.
#[test]
fn faults_are_named() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let server = Server::start(&dir.path().join("data"), &SMALL);
    let (url, from) = (format!("file:{}", path("backups")), server.http.to_string());
    let writer = Writer::start(&server);
    writer.wait_for(2500);
    drop(writer);
    let key = path("key");
    std::fs::write(&key, "00".repeat(32)).expect("written");
    let encrypted = [&backup_words(&url, &from)[..], &["--key-file", &key]].concat();
    assert!(refused(&encrypted).contains("chmod 600"));
    set_private(&key);
    done(&encrypted);
    assert!(
        !contains(&dir.path().join("backups"), b"000000000042"),
        "rows are encrypted"
    );
    assert!(refused(&backup_words(&url, &from)).contains("--key-file"));
    assert!(refused(&backup_words("ftp://x/y", &from)).contains("is not supported"));
    assert!(
        refused(&["backups", "list", "--at", &format!("file:{}", path("none"))])
            .contains("no such directory")
    );
    assert!(refused(&backup_words(&url, "127.0.0.1:1")).contains("no server answers"));
    let other = Server::start(&dir.path().join("other"), &[]);
    let other_from = other.http.to_string();
    let words = [&backup_words(&url, &other_from)[..], &["--key-file", &key]].concat();
    assert!(refused(&words).contains("another server"));
    other.kill();
    server.kill();

    let target = path("restored");
    let from_key = ["--from", &url, "--key-file", &key];
    std::fs::create_dir(&target).expect("created");
    std::fs::write(format!("{target}/file"), "").expect("written");
    let words = |target| [&["restore", "--data-dir", target][..], &from_key].concat();
    assert!(refused(&words(&target)).contains("is not empty"));
    std::fs::remove_file(format!("{target}/file")).expect("removed");
    let no_table = [&words(&target)[..], &["--table", "absent"]].concat();
    assert!(refused(&no_table).contains("numbers"));

    // Killed half way; the file of a store that was fetched is not fetched again.
    let slow = [&words(&target)[..], &["--max-rate", "500kB", "--parallel", "1"]].concat();
    let mut child = basalt(&slow)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let noted = || std::fs::read_to_string(format!("{target}.restoring/RESTORE")).unwrap_or_default();
    until("a file is there", || noted().lines().count() > 1);
    child.kill().expect("killed");
    child.wait().expect("it has ended");
    assert!(
        Path::new(&target)
            .read_dir()
            .expect("the empty directory")
            .next()
            .is_none()
    );
    let rows = restored_rows(&from_key, Path::new(&target));
    assert_eq!(rows, 2500.max(rows));
    assert!(!Path::new(&format!("{target}.restoring")).exists());

    let at = ["--at", &url, "--key-file", &key];
    let name = damage_store_file(&dir.path().join("backups/objects"), &at);
    let damaged = path("damaged");
    let error = refused(&words(&damaged));
    assert!(
        error.contains(&name) && error.contains("--skip-damaged"),
        "{error}"
    );
    let partly = [&words(&damaged)[..], &["--skip-damaged"]].concat();
    let output = run(&partly);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let server = Server::start(&dir.path().join("damaged"), &[]);
    assert!(server.http_get("/readyz").contains("ready; "));
    server.kill();
}

fn set_private(path: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, mode).expect("the mode is set");
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn contains(dir: &Path, needle: &[u8]) -> bool {
    let mut all = Vec::new();
    files(dir, &mut all);
    assert!(!all.is_empty());
    all.iter().any(|file| {
        let content = std::fs::read(file).expect("read");
        content.windows(needle.len()).any(|window| window == needle)
    })
}

/// Flips a bit in a chunk that a store file needs, which a verification names. Returns the chunk's name.
fn damage_store_file(objects: &Path, at: &[&str]) -> String {
    let mut all = Vec::new();
    files(objects, &mut all);
    for chunk in all {
        let whole = std::fs::read(&chunk).expect("read");
        let mut flipped = whole.clone();
        *flipped.last_mut().expect("bytes") ^= 1;
        std::fs::write(&chunk, flipped).expect("written");
        let verified = run(&[&["backups", "verify"][..], at].concat());
        assert_eq!(verified.status.code(), Some(1));
        let problems = text(&verified.stdout);
        let name = chunk.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(problems.contains(&name), "{problems}");
        if problems.contains("; tables/") {
            return name;
        }
        std::fs::write(&chunk, whole).expect("written");
    }
    panic!("no store file was backed up");
}

/// Goal: users, tokens and keys are in a backup only where it is encrypted or that was said.
#[test]
fn secrets_are_not_copied_in_clear() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    basalt_test_support::administer(&data, &["user", "create", "ann", "--superuser"], "a password\n");
    let server = Server::start(&data, &[]);
    let (url, from) = (
        format!("file:{}/backups", dir.path().display()),
        server.http.to_string(),
    );
    let words = backup_words(&url, &from);
    let error = refused(&words);
    assert!(
        error.contains("401"),
        "nobody may do that without a login: {error}"
    );
    let login = |more: &[&str]| {
        let mut command = basalt(&[&words[..], &["--user", "ann"], more].concat());
        let output = command
            .env("BASALT_PASSWORD", "a password")
            .output()
            .expect("started");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let warned = login(&[]);
    assert!(warned.contains("security/users.json"), "{warned}");
    let restored = dir.path().join("clear");
    done(&[
        "restore",
        "--from",
        &url,
        "--data-dir",
        &restored.display().to_string(),
    ]);
    assert!(!restored.join("security").exists());
    assert_eq!(login(&["--secrets-in-clear"]), "");
    server.kill();
    let restored = dir.path().join("whole");
    done(&[
        "restore",
        "--from",
        &url,
        "--data-dir",
        &restored.display().to_string(),
    ]);
    let user = |data: &Path| std::fs::read(data.join("security/users.json")).expect("users");
    assert_eq!(user(&restored), user(&data));
}

/// Goal: a copy for a test server has nothing of a family that was left out, neither in files nor in the log,
/// and everything else.
#[test]
fn families_are_left_out_with_every_byte() {
    const SECRET: &[u8] = b"a name that nobody else may read";
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    runtime().block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let schema = TableSchema::new("people")
            .expect("a name")
            .family(FamilySchema::new("f"))
            .family(FamilySchema::new("secret"));
        client.create_table(schema).await.expect("a table");
        let people = client.table("people").expect("a name");
        let put = async |row: &str| {
            let put = Put::new(row.to_owned())
                .cell("f", "q", "v")
                .cell("secret", "name", SECRET.to_vec());
            people.put(put).await.expect("written");
        };
        put("in a file").await;
        Admin::new(&client)
            .snapshot("people", "kept", true, 0)
            .await
            .expect("a snapshot, which flushes");
        put("in the log").await;
    });
    let (url, from) = (
        format!("file:{}/backups", dir.path().display()),
        server.http.to_string(),
    );
    done(&backup_words(&url, &from));
    server.kill();
    let restore = |name: &str, more: &[&str]| {
        let into = dir.path().join(name);
        let words = [
            "restore",
            "--from",
            &url,
            "--data-dir",
            &into.display().to_string(),
        ];
        done(&[&words[..], more].concat());
        into
    };
    assert!(
        contains(&restore("whole", &[]), SECRET),
        "the needle can be found"
    );
    let anonymous = restore("anonymous", &["--anonymise", "people:secret"]);
    assert!(!contains(&anonymous, SECRET));
    let server = Server::start(&anonymous, &[]);
    runtime().block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let people = client.table("people").expect("a name");
        for row in ["in a file", "in the log"] {
            let found = people
                .get(Get::new(row))
                .await
                .expect("an answer")
                .expect("a row");
            assert_eq!(found.cells.len(), 1);
            assert_eq!(found.value("f", "q").expect("a value"), "v");
        }
        let snapshots = Admin::new(&client).snapshots(None, None).await.expect("a list");
        assert!(snapshots.is_empty(), "they would have the family: {snapshots:?}");
    });
    server.kill();
    let target = dir.path().join("refused").display().to_string();
    let error = |families: &[&str]| {
        let mut words = vec!["restore", "--from", &url, "--data-dir", &target];
        words.extend(families.iter().flat_map(|family| ["--anonymise", family]));
        refused(&words)
    };
    let unknown = error(&["people:other"]);
    assert!(
        unknown.contains("other does not exist in table people"),
        "{unknown}"
    );
    assert!(error(&["persons:f"]).contains("persons"));
    let all = error(&["people:f", "people:secret"]);
    assert!(all.contains("secret is the only family of people"), "{all}");
}
