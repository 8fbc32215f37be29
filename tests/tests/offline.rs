//! `basalt check` and `basalt dump` on a directory that a server has left behind, sound and damaged.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use basalt_client::admin::Admin;
use basalt_client::{Client, FamilySchema, Put, TableSchema};
use basalt_tests::{Server, binary};

/// A data directory with a manifest, a log with unflushed rows, and a store file; nobody has it open.
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

fn basalt(arguments: &[&str], path: &Path) -> Output {
    Command::new(binary("basalt"))
        .args(arguments)
        .arg(path)
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

/// Goal: an operator sees what is in every kind of file, and is told of damage with file and place.
#[test]
fn every_kind_of_file_is_printed_and_damage_is_found() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let data = database(dir.path());
    let sound = basalt(&["check", "--data-dir"], &data);
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
        let printed = basalt(&["dump", "--cells"], file);
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
    let damaged = basalt(&["check", "--data-dir"], &data);
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
    let dir = tempfile::tempdir().expect("a temporary folder");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let refused = basalt(&["check", "--data-dir"], &data);
    assert!(!refused.status.success());
    assert!(
        text(&refused.stderr).contains("in use"),
        "{}",
        text(&refused.stderr)
    );
    server.stop();
}
