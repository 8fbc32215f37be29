//! `basalt export-snapshot` and `basalt import-snapshot` between data directories. The tests with a real
//! HBase on the other side are in `tests/conformance/tests/growing_out`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use basalt_client::admin::{Admin, BackgroundWork};
use basalt_client::{Client, FamilySchema, Get, Put, Scan, TableSchema};
use basalt_test_support::{Server, binary, check};

/// Runs a command of `basalt`; its output, or all of it when it fails.
fn basalt(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(binary("basalt"))
        .args(arguments)
        .output()
        .expect("the binary was built");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout);
    if output.status.success() {
        Ok(printed)
    } else {
        Err(printed + &text(&output.stderr))
    }
}

fn export(data: &Path, name: &str, to: &Path) -> Result<String, String> {
    let (data, to) = (data.display().to_string(), to.display().to_string());
    basalt(&["export-snapshot", name, "--to", &to, "--data-dir", &data])
}

fn import(data: &Path, from: &Path, name: &str) -> Result<String, String> {
    let (data, from) = (data.display().to_string(), from.display().to_string());
    basalt(&["import-snapshot", &from, name, "--data-dir", &data])
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}

async fn client(server: &Server) -> Client {
    Client::connect(&server.thrift.to_string())
        .await
        .expect("a connection")
}

/// All cells of a table as text.
async fn cells(client: &Client, table: &str) -> Vec<String> {
    let table = client.table(table).expect("a name");
    let rows = table
        .scan(Scan::new().versions(9))
        .expect("a scan")
        .collect()
        .await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    rows.expect("scanned")
        .iter()
        .flat_map(|row| {
            let key = text(&row.key);
            row.cells
                .iter()
                .map(move |cell| format!("{key}/{}@{}", text(&cell.value), cell.timestamp))
        })
        .collect()
}

/// A server with the table `t`, whose two regions share a file since a split, and its snapshot `s`.
fn split_table(data: &Path) -> Server {
    let server = Server::start(data, &[]);
    run(async {
        let client = client(&server).await;
        let schema = TableSchema::new("t").expect("a name");
        let family = FamilySchema::new("f").versions(5);
        client.create_table(schema.family(family)).await.expect("a table");
        let table = client.table("t").expect("a name");
        let put = |row: usize, value: &str| Put::new(format!("row-{row:03}")).cell_at("f", "q", 7, value);
        table
            .put_multiple((0..100).map(|row| put(row, "older")))
            .await
            .expect("written");
        let admin = Admin::new(&client);
        admin.flush("t").await.expect("flushed");
        admin
            .pause(BackgroundWork::COMPACTIONS, true)
            .await
            .expect("paused");
        admin.split("t", Some("row-050".into())).await.expect("split");
        // Equal times in two files: the later one wins.
        table.put(put(10, "newer")).await.expect("written");
        admin.snapshot("t", "s", true, 0).await.expect("taken");
    });
    server
}

fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![below.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { &mut folders } else { &mut found }.push(path);
        }
    }
    found.sort();
    found
}

/// Goal: a snapshot goes from one directory, beside its running server, into another one with all cells, and
/// new writes win there. A second import, a missing snapshot and a running server are refused.
#[test]
fn a_snapshot_moves_to_another_directory() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (data, other, to) = (
        dir.path().join("data"),
        dir.path().join("other"),
        dir.path().join("to"),
    );
    let server = split_table(&data);
    let printed = export(&data, "s", &to).expect("exported");
    let summary = printed.lines().last().expect("a summary");
    assert!(
        summary.contains("2 regions, 3 files")
            && summary.ends_with("1 linked, 0 copied, 2 rewritten, 0 found"),
        "{summary}"
    );
    for file in files(&to) {
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{}", file.display());
    }
    assert!(!to.join(".hbase-snapshot/.tmp/s").exists());
    let expected = run(async { cells(&client(&server).await, "t").await });
    assert_eq!(expected.len(), 100, "{expected:?}");
    let busy = import(&data, &to, "s").expect_err("the server runs");
    assert!(busy.contains("in use") || busy.contains("lock"), "{busy}");
    server.stop();

    let printed = import(&other, &to, "s").expect("imported into a new directory");
    assert!(printed.ends_with(
        "imported snapshot s of table t: 2 regions, 3 files. Make a table of it with clone_snapshot or restore_snapshot\n"
    ), "{printed}");
    let again = import(&other, &to, "s").expect_err("it is there");
    assert!(again.contains('s'), "{again}");
    let missing = import(&other, &to, "none").expect_err("there is none");
    assert!(
        missing.contains(".hbase-snapshot/none/.snapshotinfo"),
        "{missing}"
    );
    let server = Server::start(&other, &[]);
    run(async {
        let client = client(&server).await;
        Admin::new(&client)
            .clone_snapshot("s", "t")
            .await
            .expect("cloned");
        assert_eq!(cells(&client, "t").await, expected);
        let table = client.table("t").expect("a name");
        table
            .put(Put::new("row-010").cell_at("f", "q", 7, "here"))
            .await
            .expect("written");
        let row = table
            .get(Get::new("row-010"))
            .await
            .expect("read")
            .expect("a row");
        assert_eq!(row.value("f", "q").expect("a cell"), "here");
    });
    server.kill();
    let server = Server::start(&other, &[]);
    run(async {
        let table = client(&server).await.table("t").expect("a name");
        let row = table
            .get(Get::new("row-010"))
            .await
            .expect("read")
            .expect("a row");
        assert_eq!(row.value("f", "q").expect("a cell"), "here");
    });
    server.stop();
    let checked = check(&other);
    assert!(checked.status.success(), "{checked:?}");
}

/// Goal: damage is found on both ways, and leaves nothing behind: a flipped bit in a store file, a file that
/// is missing or too short, a manifest that is no manifest.
#[test]
fn damaged_files_are_neither_exported_nor_imported() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (data, other, to) = (
        dir.path().join("data"),
        dir.path().join("other"),
        dir.path().join("to"),
    );
    split_table(&data).stop();
    export(&data, "s", &to).expect("exported");
    let exported = files(&to);
    let store_files: Vec<_> = exported
        .iter()
        .filter(|file| file.starts_with(to.join("archive")))
        .collect();
    let refused = |what: &str| {
        let error = import(&other, &to, "s").expect_err(what);
        assert!(!other.join("snapshots/s").exists(), "{what}");
        error
    };
    for file in &store_files {
        let sound = std::fs::read(file).expect("a file");
        let mut damaged = sound.clone();
        damaged[40] ^= 1;
        std::fs::remove_file(file).expect("it is there");
        let missing = refused("a missing file");
        assert!(missing.contains("it is missing"), "{missing}");
        std::fs::write(file, &damaged).expect("written");
        let error = refused("a damaged file");
        assert!(error.contains(&file.display().to_string()), "{error}");
        std::fs::write(file, &sound[..sound.len() - 1]).expect("written");
        let error = refused("a short file");
        assert!(error.contains("the manifest says"), "{error}");
        std::fs::write(file, &sound).expect("written");
    }
    let manifest = to.join(".hbase-snapshot/s/data.manifest");
    let sound = std::fs::read(&manifest).expect("a file");
    std::fs::write(&manifest, b"\xff\xff\xff").expect("written");
    let error = refused("no manifest");
    assert!(error.contains("data.manifest cannot be read"), "{error}");
    std::fs::write(&manifest, &sound).expect("written");
    import(&other, &to, "s").expect("imported");

    // The directory's own file, behind one of its names.
    let own = files(&data.join("snapshots")).remove(0);
    let mut bytes = std::fs::read(&own).expect("a file");
    bytes[40] ^= 1;
    std::fs::write(&own, bytes).expect("written");
    let again = dir.path().join("again");
    let error = export(&data, "s", &again).expect_err("damaged");
    assert!(error.contains(&own.display().to_string()), "{error}");
    assert!(!again.exists() || files(&again).is_empty());
    let none = export(&data, "none", &again).expect_err("there is none");
    assert!(none.contains("none"), "{none}");
    let empty = export(&dir.path().join("nowhere"), "s", &again).expect_err("no directory");
    assert!(empty.contains("nowhere"), "{empty}");
}
