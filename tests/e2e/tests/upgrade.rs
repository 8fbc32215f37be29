//! Directories of older releases are opened with everything in them, and one of a newer release is
//! left as it is. `tests/e2e/directories` has the directories, and the script that made them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use basalt_client::admin::Admin;
use basalt_client::{Client, Get, Increment, Put, Row, Scan, counter_from_value};
use basalt_engine::internals::crc32c;
use basalt_test_support::{Server, check, workspace};

/// A kept directory.
struct Kept {
    name: &'static str,
    /// Versions of the formats.
    manifest: u32,
    log: u32,
    /// Features of its release.
    has_snapshot: bool,
    has_loads: bool,
}

const KEPT: [Kept; 8] = [
    Kept::new("manifest-1", 1, 1),
    Kept::new("manifest-2", 2, 1),
    Kept {
        has_snapshot: true,
        ..Kept::new("manifest-3", 3, 1)
    },
    Kept {
        has_snapshot: true,
        has_loads: true,
        ..Kept::new("manifest-4", 4, 2)
    },
    Kept {
        has_snapshot: true,
        has_loads: true,
        ..Kept::new("manifest-5", 5, 2)
    },
    Kept {
        has_snapshot: true,
        has_loads: true,
        ..Kept::new("manifest-6", 6, 2)
    },
    Kept {
        has_snapshot: true,
        has_loads: true,
        ..Kept::new("log-3", 6, 3)
    },
    Kept {
        has_snapshot: true,
        has_loads: true,
        ..CURRENT
    },
];

/// The directory with the versions that this program writes.
const CURRENT: Kept = Kept::new("manifest-7", 7, 3);

impl Kept {
    const fn new(name: &'static str, manifest: u32, log: u32) -> Self {
        Self {
            name,
            manifest,
            log,
            has_snapshot: false,
            has_loads: false,
        }
    }
}

/// Unpacks a kept directory below `below`.
fn unpack(name: &str, below: &Path) -> PathBuf {
    let packed = workspace()
        .join("tests/e2e/directories")
        .join(format!("{name}.tar.gz"));
    let status = Command::new("tar")
        .arg("--extract")
        .arg("--file")
        .arg(&packed)
        .arg("--directory")
        .arg(below)
        .status()
        .expect("tar is installed");
    assert!(status.success(), "{}", packed.display());
    below.join(name)
}

/// Makes a directory one of a newer release.
type Change<'a> = &'a dyn Fn(&Path);

/// All files below a folder, with their contents.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            found.insert(path, bytes);
        }
    }
    found
}

/// The files of a kind, by the beginning of their names.
fn files(dir: &Path, begin: &str) -> Vec<PathBuf> {
    let is_kind = |path: &PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy();
        name.starts_with(begin)
    };
    contents(dir).into_keys().filter(is_kind).collect()
}

/// The format version in the header of a manifest or of a segment of the log.
fn version(file: &Path) -> u32 {
    let bytes = std::fs::read(file).expect("a file");
    u32::from_le_bytes(*bytes[8..].first_chunk().expect("a header"))
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}

async fn client(server: &Server) -> Client {
    Client::connect(&server.thrift.to_string())
        .await
        .expect("a connection")
}

/// Rows as text: key, then each cell's qualifier, value and timestamp.
fn shown(rows: &[Row]) -> Vec<String> {
    let cell =
        |cell: &basalt_client::Cell| format!(" {}@{}", String::from_utf8_lossy(&cell.value), cell.timestamp);
    let row = |row: &Row| {
        let cells: String = row.cells.iter().map(cell).collect();
        format!("{}{cells}", String::from_utf8_lossy(&row.key))
    };
    rows.iter().map(row).collect()
}

/// The rows of family `f` of a table, with all versions.
async fn rows(client: &Client, table: &str) -> Vec<String> {
    let table = client.table(table).expect("a name");
    let scan = Scan::new().family("f").versions(9);
    shown(
        &table
            .scan(scan)
            .expect("a scan")
            .collect()
            .await
            .expect("scanned"),
    )
}

/// The rows that `make.py` left in family `f` of `kept:cells`: three versions of four, a deleted row, one in
/// the log alone, a cell with a TTL that has not passed, and none whose TTL has.
fn expected_rows() -> Vec<String> {
    let mut rows = vec!["a v5@5 v4@4 v3@3".to_owned()];
    rows.extend((0..10).map(|number| format!("late-{number:02} {number}@20")));
    rows.push("o kept for 200 years@1000000000000".to_owned());
    rows
}

async fn counter(client: &Client, table: &str, row: &'static str, family: &str, qualifier: &str) -> i64 {
    let table = client.table(table).expect("a name");
    let row = table.get(Get::new(row)).await.expect("read").expect("a row");
    counter_from_value(row.value(family, qualifier).expect("a cell")).expect("eight bytes")
}

async fn count(client: &Client) -> i64 {
    counter(client, "kept:cells", "q", "t", "count").await
}

/// Everything that `make.py` left, except the snapshot.
async fn check_contents(client: &Client) {
    assert_eq!(rows(client, "kept:cells").await, expected_rows());
    assert_eq!(count(client).await, 6);
    let namespace = client.describe_namespace("kept").await.expect("a namespace");
    assert_eq!(namespace.configuration["owner"], "tests");
    assert!(client.is_table_disabled("closed").await.expect("a table"));
    let schema = client.describe_table("kept:cells").await.expect("a table");
    let families: Vec<_> = schema
        .families()
        .iter()
        .map(|family| (&family.name[..], family.max_versions, family.time_to_live))
        .collect();
    assert_eq!(
        families,
        [
            (&b"f"[..], Some(3), Some(i32::MAX)),
            (&b"t"[..], Some(1), Some(1_000_000_000))
        ]
    );
    let regions = Admin::new(client)
        .regions(Some("kept:cells"))
        .await
        .expect("regions");
    let starts: Vec<_> = regions.iter().map(|region| &region.start_key[..]).collect();
    assert_eq!(starts, [&b""[..], b"m"]);
}

/// A table made of the snapshot has the cells flushed before it.
async fn check_snapshot(client: &Client) {
    let admin = Admin::new(client);
    let snapshots = admin.snapshots(None, None).await.expect("listed");
    assert_eq!(snapshots[0].name, "taken");
    admin.clone_snapshot("taken", "clone").await.expect("cloned");
    let cloned = rows(client, "clone").await;
    assert_eq!(cloned[0], "a v4@4 v3@3 v2@2");
    assert!(cloned[1].starts_with("n\0"), "{cloned:?}");
    assert_eq!(cloned[2..], ["o kept for 200 years@1000000000000"]);
    client.disable_table("clone").await.expect("disabled");
    client.drop_table("clone").await.expect("dropped");
}

/// `kept:loaded` has the rows of a loaded file, and a counter whose increment had a nonce.
async fn check_loads(client: &Client) {
    let loaded = rows(client, "kept:loaded").await;
    let is_loaded = |row: &str| loaded.iter().any(|shown| shown.starts_with(row));
    assert!(
        loaded.len() == 3 && is_loaded("n\0") && is_loaded("o kept for 200 years@"),
        "{loaded:?}"
    );
    assert_eq!(counter(client, "kept:loaded", "counted", "f", "q").await, 7);
}

/// Goal: a directory of an older version of the formats opens with all rows, versions, TTLs, states,
/// namespaces and snapshots, takes writes, and has everything after a kill and after a stop.
#[test]
fn directories_of_older_releases_are_opened() {
    for kept in KEPT {
        let name = kept.name;
        println!("{name}");
        let below = basalt_test_support::tempdir().expect("a temporary folder");
        let data = unpack(name, below.path());
        let versions = |version_of: &Kept| {
            let manifests = files(&data, "MANIFEST-");
            assert!(!manifests.is_empty());
            manifests.iter().all(|file| version(file) == version_of.manifest)
        };
        assert!(versions(&kept), "{name}");
        assert_eq!(
            version(&data.join("wal/0000000000000001.wal")),
            kept.log,
            "{name}"
        );
        let server = Server::start(&data, &[]);
        run(async {
            let client = client(&server).await;
            check_contents(&client).await;
            if kept.has_snapshot {
                check_snapshot(&client).await;
            }
            if kept.has_loads {
                check_loads(&client).await;
            }
            let table = client.table("kept:cells").expect("a name");
            table
                .put(Put::new("late-00").cell_at("f", "q", 21, "new"))
                .await
                .expect("written");
            table
                .increment(Increment::new("q").column("t", "count", 1))
                .await
                .expect("written");
        });
        server.kill();
        let server = Server::start(&data, &[]);
        run(check_new_contents(&server));
        server.stop();
        let server = Server::start(&data, &[]);
        run(check_new_contents(&server));
        server.stop();
        assert!(versions(&CURRENT), "{name}");
        let checked = check(&data);
        assert!(
            checked.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&checked.stdout)
        );
    }
}

async fn check_new_contents(server: &Server) {
    let client = client(server).await;
    let mut expected = expected_rows();
    "late-00 new@21 0@20".clone_into(&mut expected[1]);
    assert_eq!(rows(&client, "kept:cells").await, expected);
    assert_eq!(count(&client).await, 7);
}

/// Makes a file's header say another version: at offset 8, with the checksum of the bytes before
/// `checksum_at` there.
fn raise_version(file: &Path, checksum_at: usize) -> u32 {
    let mut bytes = std::fs::read(file).expect("a file");
    let newer = version(file) + 1;
    bytes[8..12].copy_from_slice(&newer.to_le_bytes());
    let checksum = crc32c(&bytes[..checksum_at]).to_le_bytes();
    bytes[checksum_at..checksum_at + 4].copy_from_slice(&checksum);
    std::fs::write(file, bytes).expect("written");
    newer
}

/// Makes CURRENT say version 2.
fn raise_current(data: &Path) {
    let path = data.join("CURRENT");
    let line = std::fs::read_to_string(&path).expect("a line");
    let checked = line.rsplit_once(' ').expect("a checksum").0;
    let checked = checked.replace("basalt-current 1 ", "basalt-current 2 ");
    let checksum = crc32c(checked.as_bytes());
    std::fs::write(&path, format!("{checked} {checksum:08x}\n")).expect("written");
}

/// Goal: a directory that a newer release has written to is refused with the version, what this
/// release reads, and the remedy, and not a byte of it changes.
#[test]
fn a_directory_of_a_newer_release_is_left_as_it_is() {
    let Kept {
        name, manifest, log, ..
    } = CURRENT;
    let newer_manifest = |data: &Path| {
        for file in files(data, "MANIFEST-") {
            assert_eq!(raise_version(&file, 60), manifest + 1);
        }
    };
    let newer_log = |data: &Path| {
        assert_eq!(
            raise_version(&data.join("wal/0000000000000001.wal"), 4092),
            log + 1
        );
    };
    let cases: [(Change<'_>, String); 3] = [
        (
            &newer_manifest,
            format!(
                "manifest format version {}, this release reads versions 1 to {manifest}",
                manifest + 1
            ),
        ),
        (
            &newer_log,
            format!(
                "WAL format version {}, this release reads versions 1 to {log}",
                log + 1
            ),
        ),
        (
            &raise_current,
            "manifest format version 2, this release reads version 1".to_owned(),
        ),
    ];
    for (make_newer, words) in cases {
        let below = basalt_test_support::tempdir().expect("a temporary folder");
        let data = unpack(name, below.path());
        make_newer(&data);
        let before = contents(&data);
        let refused = Server::try_start(&data, &[]).expect_err("a newer format");
        for word in [
            &words[..],
            "newer release: start that one, nothing has been changed",
        ] {
            assert!(refused.contains(word), "{word:?} is not in\n{refused}");
        }
        assert!(contents(&data) == before, "{words}: the directory was changed");
    }
}
