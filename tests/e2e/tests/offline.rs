//! `basalt check` and `basalt dump` on a directory that a server has left behind, sound and damaged.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use basalt_client::admin::{Admin, Compaction};
use basalt_client::{Client, FamilySchema, Get, Put, TableSchema};
use basalt_test_support::{Server, binary, check, until};

/// A data directory with a manifest, a log with unflushed rows, and a store file; no process has it
/// open.
fn database(dir: &Path) -> PathBuf {
    let data = dir.join("data");
    let server = Server::start(&data, &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        client
            .create_table(
                TableSchema::new("t")
                    .expect("a name")
                    .family(FamilySchema::new("f")),
            )
            .await
            .expect("a table");
        let table = client.table("t").expect("a name");
        let put = |row: String| Put::new(row).cell("f", "q", "value");
        table
            .put_multiple((0..100).map(|row| put(format!("row-{row:03}"))))
            .await
            .expect("written");
        Admin::new(&client).flush("t").await.expect("flushed");
        table.put(put("later".into())).await.expect("written");
    });
    server.kill();
    data
}

/// Runs `basalt dump` on a file.
fn dump(file: &Path) -> Output {
    Command::new(binary("basalt"))
        .args(["dump", "--cells"])
        .arg(file)
        .output()
        .expect("the binary was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Goal: an operator can print the content of every kind of file, and damage is reported with file
/// and place.
#[test]
fn every_kind_of_file_is_printed_and_damage_is_found() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = database(dir.path());
    let sound = check(&data);
    assert!(
        sound.status.success(),
        "{}{}",
        text(&sound.stdout),
        text(&sound.stderr)
    );
    assert!(text(&sound.stdout).contains("1 tables") && text(&sound.stdout).contains("0 problems"));

    let mut files = Vec::new();
    files_below(&data, &mut files);
    let one = |part: &str| {
        files
            .iter()
            .find(|path| path.to_string_lossy().contains(part))
            .expect("such a file")
    };
    let store_file = one("/tables/");
    let segment = one("/wal/00");
    for (file, word) in [
        (store_file, "row-042"),
        (segment, "row-042"),
        (one("/MANIFEST-"), "table t"),
    ] {
        let printed = dump(file);
        assert!(printed.status.success(), "{}", text(&printed.stderr));
        assert!(
            text(&printed.stdout).contains(word),
            "{word} is not in the dump of {}",
            file.display()
        );
    }

    let mut bytes = std::fs::read(store_file).expect("a file");
    bytes[100] ^= 1;
    std::fs::write(store_file, bytes).expect("written");
    let damaged = check(&data);
    assert!(!damaged.status.success(), "damage must not pass");
    let findings = text(&damaged.stdout);
    let name = store_file
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(
        findings.contains(&name) && findings.contains("offset"),
        "{findings}"
    );
}

#[test]
fn a_directory_in_use_is_not_checked() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let refused = check(&data);
    assert!(!refused.status.success());
    assert!(
        text(&refused.stderr).contains("in use"),
        "{}",
        text(&refused.stderr)
    );
    server.stop();
}

/// Creates a table of three regions with a store file each, and another table, and stops the
/// server. Returns the data directory and the store file of the middle region.
fn three_regions(dir: &Path) -> (PathBuf, PathBuf) {
    let data = dir.join("data");
    let server = Server::start(&data, &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let schema = |name| {
            TableSchema::new(name)
                .expect("a name")
                .family(FamilySchema::new("f"))
        };
        let splits = vec![b"h".to_vec(), b"p".to_vec()];
        client
            .create_table_split(schema("t"), splits)
            .await
            .expect("a table");
        client.create_table(schema("other")).await.expect("a table");
        for (table, row) in [("t", "a"), ("t", "i"), ("t", "q"), ("other", "o")] {
            let put = Put::new(row).cell("f", "q", "value");
            client
                .table(table)
                .expect("a name")
                .put(put)
                .await
                .expect("written");
        }
    });
    server.stop();
    let mut files = Vec::new();
    files_below(&data.join("tables/default/t"), &mut files);
    let middle = files
        .iter()
        .find(|file| text(&dump(file).stdout).contains("i/f:q"));
    let middle = middle
        .unwrap_or_else(|| panic!("no file has the row i: {files:?}"))
        .clone();
    (data, middle)
}

/// Goal: a missing store file makes only its region unavailable. `/readyz`, the first page, the
/// error of a call, `basalt check` and the log name the file; the error and the check name a
/// remedy; a metric counts the region. With the file restored, the server is ready again.
#[test]
fn a_missing_store_file_costs_its_region_only() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (data, file) = three_regions(dir.path());
    let path = file.to_string_lossy().into_owned();
    let aside = dir.path().join("aside");
    std::fs::rename(&file, &aside).expect("renamed");

    let found = text(&check(&data).stdout);
    let line = found.lines().find(|line| line.contains(&path));
    let line = line.unwrap_or_else(|| panic!("check does not name {path}: {found}"));
    for part in ["table t", "'h' to 'p'", "Put the file back"] {
        assert!(line.contains(part), "{line} does not say {part}");
    }

    let server = Server::start(&data, &[]);
    let ready = server.http_get("/readyz");
    let line = ready.lines().find(|line| line.contains(&path));
    let line = line.unwrap_or_else(|| panic!("/readyz does not name {path}: {ready}"));
    assert!(
        line.starts_with("ready; region ") && line.contains("table t"),
        "{line}"
    );
    assert_eq!(server.metric("basalt_regions_damaged"), 1);
    assert!(server.http_get("/").contains(&path));
    let page = server.http_get("/tables/t");
    assert!(
        page.contains("1 region") && page.contains("0 and 1 damaged"),
        "{page}"
    );
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let get = async |table: &str, row: &str| {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let found = client
            .table(table)
            .expect("a name")
            .get(Get::new(row.to_owned()))
            .await;
        found.map(|row| row.is_some()).map_err(|error| error.to_string())
    };
    runtime.block_on(async {
        for (table, row) in [("t", "a"), ("t", "q"), ("other", "o")] {
            assert_eq!(get(table, row).await, Ok(true), "{table} {row}");
        }
        // The texts for clients name no directory of the server.
        let name = Path::new(&path).file_name().expect("a file").to_string_lossy();
        let refused = get("t", "i").await.expect_err("the file is missing");
        assert!(
            refused.contains(&*name) && !refused.contains(&path) && refused.contains("restore a snapshot"),
            "{refused}"
        );
    });
    let log = server.stop_and_log();
    assert!(log.contains(&path), "{log}");

    std::fs::rename(&aside, &file).expect("renamed");
    let server = Server::start(&data, &[]);
    assert_eq!(server.metric("basalt_regions_damaged"), 0);
    assert_eq!(server.http_get("/readyz"), "ready\n");
    server.stop();
}

/// Goal: a directory of a newer release is left as it is, and the error names the remedy, in
/// `check`, too. Method: CURRENT of another version, with the right checksum.
#[test]
fn a_directory_of_a_newer_release_is_refused() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let data = database(dir.path());
    let current = data.join("CURRENT");
    let line = std::fs::read_to_string(&current).expect("text");
    let (text_of_newer, _) = line.trim_end().rsplit_once(' ').expect("a checksum");
    let text_of_newer = text_of_newer.replacen(" 1 ", " 9 ", 1);
    let checksum = basalt_engine::internals::crc32c(text_of_newer.as_bytes());
    std::fs::write(&current, format!("{text_of_newer} {checksum:08x}\n")).expect("written");
    let contents = || {
        let mut files = Vec::new();
        files_below(&data, &mut files);
        files.sort();
        let content = |path: &PathBuf| std::fs::read(path).expect("a file");
        files
            .iter()
            .map(|path| (path.clone(), content(path)))
            .collect::<Vec<_>>()
    };
    let before = contents();
    let started = Server::try_start(&data, &[]).map(Server::stop);
    let refused = started.expect_err("a newer format must not be opened");
    let checked = check(&data);
    assert!(!checked.status.success());
    for output in [refused, text(&checked.stdout) + &text(&checked.stderr)] {
        for words in ["CURRENT", "version 9", "newer release", "start that one"] {
            assert!(output.contains(words), "{words:?} is not in\n{output}");
        }
    }
    assert!(contents() == before, "the refused start changed a file");
}

/// Copies a directory's files into `to`, which must be new.
fn copy_into(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_into(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("copied");
        }
    }
}

/// Goal: a copy that was made while the server ran is refused where it has a hole, and the check, the start
/// and the log say how to make one that has none. Method: files are copied before and after a flush and a
/// compaction.
#[test]
fn a_copy_of_a_running_servers_directory_is_noticed_with_a_way_out() {
    const WAY: &str =
        "Copy the directory again while its server is stopped, or from a snapshot that the file system takes";
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (data, _) = three_regions(dir.path());
    let server = Server::start(&data, &[]);
    let (files, log) = (dir.path().join("files"), dir.path().join("log"));
    for copy in [&files, &log] {
        // The manifest of now.
        std::fs::create_dir(copy).expect("made");
        for entry in std::fs::read_dir(&data).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                std::fs::copy(&path, copy.join(path.file_name().expect("a name"))).expect("copied");
            }
        }
    }
    copy_into(&data.join("wal"), &files.join("wal"));
    copy_into(&data.join("tables"), &log.join("tables"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let put = Put::new("b").cell("f", "q", "value");
        client
            .table("t")
            .expect("a name")
            .put(put)
            .await
            .expect("written");
        let admin = Admin::new(&client);
        admin.flush("t").await.expect("flushed");
        let compaction = Compaction {
            major: true,
            wait: true,
            ..Compaction::default()
        };
        admin.compact("t", compaction).await.expect("compacted");
    });
    let compacted = || {
        let mut found = Vec::new();
        files_below(&data.join("tables/default/t"), &mut found);
        found.len() == 3
    };
    until("the compacted files are removed", compacted);
    copy_into(&data.join("tables"), &files.join("tables"));
    server.stop();

    let noticed = text(&check(&files).stdout);
    assert_eq!(noticed.matches(WAY).count(), 1, "{noticed}");
    let log_of_start = Server::start(&files, &[]).stop_and_log();
    assert!(log_of_start.contains(WAY), "{log_of_start}");
    // Without the folder of the log nothing is served.
    let noticed = text(&check(&log).stdout);
    assert_eq!(noticed.matches(WAY).count(), 1, "{noticed}");
    let refused = Server::try_start(&log, &[]).expect_err("a log is missing");
    assert!(
        refused.contains("missing WAL segments") && refused.contains(WAY),
        "{refused}"
    );
    let sound = text(&check(&data).stdout);
    assert!(!sound.contains(WAY), "{sound}");
}
