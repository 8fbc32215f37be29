//! Snapshots as files: exports of Basalt that HBase's tools, servers and jobs read, and snapshots of HBase
//! that Basalt imports.

use std::path::{Path, PathBuf};

use basalt_test_support::until;

use crate::rig::Rig;

/// HBase's root directory.
fn root(rig: &Rig) -> PathBuf {
    rig.hbase.dir().join("hbase")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Exports a snapshot of Basalt, whose server may run; what the program prints.
fn export(rig: &Rig, snapshot: &str, to: &str) -> String {
    Rig::basalt(&[
        "export-snapshot",
        snapshot,
        "--to",
        to,
        "--data-dir",
        &text(&rig.data()),
    ])
}

/// Copies a snapshot from a root directory to HBase's with HBase's own tool.
fn export_with_hbase(rig: &mut Rig, snapshot: &str, from: &str) {
    let to = text(&root(rig));
    rig.steps.run(&format!(
        "tool h org.apache.hadoop.hbase.snapshot.ExportSnapshot -snapshot {snapshot} -copy-from file:{from} \
         -copy-to file:{to} -no-checksum-verify -mappers 1"
    ));
}

/// Both tables have the same cells, as clients see them.
fn assert_equal(rig: &mut Rig, of_basalt: &str, of_hbase: &str) {
    for mode in ["", " raw"] {
        let ours = rig.steps.run(&format!("digest b {of_basalt}{mode}"));
        let theirs = rig.steps.run(&format!("digest h {of_hbase}{mode}"));
        if ours != theirs {
            let differences = rig.steps.run(&format!("differences {of_hbase} {of_basalt}"));
            panic!("{of_basalt} and {of_hbase}{mode}: {ours} and {theirs}: {differences}");
        }
        assert!(!ours.starts_with("0 cells"), "{ours}");
    }
}

/// A table of Basalt with everything that makes exports hard: two files with equal times, a bulk load over a
/// put and under a later one, regions that share files since a split.
fn hard_table(rig: &mut Rig) {
    rig.steps.run("create b t");
    rig.steps.run("compactions b off");
    rig.steps.run("variety b t");
    rig.steps.run("fill b t 0 1000 100");
    rig.steps.run("put_at b t equal 1000 older");
    rig.steps.run("put_at b t row-00002000 1000 under-the-load");
    rig.steps.run("flush b t");
    rig.steps.run("put_at b t equal 1000 newer");
    rig.steps.run("flush b t");
    let offered = rig.folder("offered");
    rig.steps.run(&format!("load b t {offered} 2000 10 loaded 1000"));
    rig.steps.run("put_at b t row-00002001 1000 over-the-load");
    rig.steps.run("flush b t");
    rig.steps.run("split b t row-00000500");
    rig.steps.run("snapshot b t s");
}

/// Settings with which Basalt loads the files of the test.
fn start_for_loads() -> Option<Rig> {
    let mut rig = Rig::start(&[], &[])?;
    rig.stop();
    let allowed = format!("bulkload.directories=[\"{}\"]", text(rig.dir.path()));
    rig.set(allowed);
    rig.restart();
    Some(rig)
}

fn check_values(rig: &mut Rig, cluster: &str, table: &str) {
    for (row, value) in [
        ("equal", "newer"),
        ("row-00002000", "loaded"),
        ("row-00002001", "over-the-load"),
    ] {
        assert_eq!(
            rig.steps.run(&format!("get {cluster} {table} {row}")),
            value,
            "{cluster} {row}"
        );
    }
}

/// Checks 23 and 24: an export beside the running server is valid for HBase's tools, and its clone in HBase
/// has the same cells: after a split, with a bulk load, with equal times in two files.
#[test]
fn check_23_and_24_an_export_is_cloned_by_hbase() {
    let Some(mut rig) = start_for_loads() else { return };
    hard_table(&mut rig);
    let to = rig.folder("export");
    let printed = export(&rig, "s", &to);
    assert!(printed.contains("exported snapshot s"), "{printed}");
    let summary = printed.lines().last().unwrap();
    assert!(
        summary.contains("2 regions") && !summary.contains(" 0 rewritten"),
        "{summary}"
    );
    let files = Rig::files(Path::new(&to));
    for file in files.iter().filter(|file| file.starts_with("archive")) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(Path::new(&to).join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o644, "{}", file.display());
    }
    rig.steps.run(&format!(
        "tool h org.apache.hadoop.hbase.snapshot.SnapshotInfo -snapshot s -remote-dir file:{to} -files -stats -schema"
    ));
    export_with_hbase(&mut rig, "s", &to);
    assert_eq!(rig.steps.run("snapshots h"), "s");
    rig.steps.run("clone_snapshot h copy s");
    assert_equal(&mut rig, "t", "copy");
    check_values(&mut rig, "h", "copy");
    // After a compaction, too, which rewrites all files.
    rig.steps.run("major_compact h copy");
    check_values(&mut rig, "h", "copy");
    // An export of the same name is refused, and changes nothing.
    let refused = Rig::try_basalt(&[
        "export-snapshot",
        "s",
        "--to",
        &to,
        "--data-dir",
        &text(&rig.data()),
    ]);
    assert!(refused.unwrap_err().contains("exists: remove it"));
    assert_eq!(Rig::files(Path::new(&to)), files);
    let unknown = Rig::try_basalt(&[
        "export-snapshot",
        "none",
        "--to",
        &to,
        "--data-dir",
        &text(&rig.data()),
    ]);
    assert!(unknown.unwrap_err().contains("none"));
}

/// Check 25: files that are copied by hand into the root directory of a running HBase, whose cleaner removes
/// everything at once that no snapshot names; and an export straight into that directory.
#[test]
fn check_25_the_cleaner_leaves_copied_files() {
    let eager = [
        "hbase.master.cleaner.interval=1000",
        "hbase.master.hfilecleaner.ttl=1000",
    ];
    let Some(mut rig) = Rig::start(&eager, &[]) else {
        return;
    };
    rig.steps.run("create b t");
    rig.steps.run("fill b t 0 1000 100");
    for snapshot in ["by-hand", "straight"] {
        rig.steps.run(&format!("snapshot b t {snapshot}"));
    }
    let to = PathBuf::from(rig.folder("export"));
    export(&rig, "by-hand", &text(&to));
    let root = root(&rig);
    // Files for the cleaner to remove, to see that it works.
    let stray = root.join("archive/data/default/stray/0123456789abcdef0123456789abcdef/f");
    std::fs::create_dir_all(&stray).unwrap();
    std::fs::write(stray.join("0123456789abcdef"), b"stray").unwrap();
    let snapshots = root.join(".hbase-snapshot");
    let tmp = snapshots.join(".tmp/by-hand");
    std::fs::create_dir_all(&tmp).unwrap();
    let files = Rig::files(&to);
    let copy = |file: &PathBuf, target: PathBuf| {
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(to.join(file), target).unwrap();
    };
    for file in files.iter().filter(|file| file.starts_with(".hbase-snapshot")) {
        copy(file, tmp.join(file.file_name().unwrap()));
    }
    for file in files.iter().filter(|file| file.starts_with("archive")) {
        copy(file, root.join(file));
    }
    until("the cleaner has removed the stray file", || {
        !stray.join("0123456789abcdef").exists()
    });
    std::fs::rename(&tmp, snapshots.join("by-hand")).unwrap();
    export(&rig, "straight", &text(&root));
    std::fs::create_dir_all(&stray).unwrap();
    std::fs::write(stray.join("0123456789abcdef"), b"stray").unwrap();
    until("the cleaner has run again", || {
        !stray.join("0123456789abcdef").exists()
    });
    for snapshot in ["by-hand", "straight"] {
        rig.steps.run(&format!("clone_snapshot h {snapshot} {snapshot}"));
        assert_equal(&mut rig, "t", snapshot);
    }
}

/// Check 26: a later export replaces the content of an older clone by `restore_snapshot`.
#[test]
fn check_26_a_later_export_is_restored_over_a_clone() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    rig.steps.run("create b t split=row-00000500");
    rig.steps.run("fill b t 0 1000 100");
    rig.steps.run("snapshot b t first");
    let to = rig.folder("export");
    export(&rig, "first", &to);
    export_with_hbase(&mut rig, "first", &to);
    rig.steps.run("clone_snapshot h t first");
    assert_equal(&mut rig, "t", "t");
    rig.steps.run("fill b t 200 1500 50");
    rig.steps.run("variety b t");
    rig.steps.run("snapshot b t second");
    export(&rig, "second", &to);
    export_with_hbase(&mut rig, "second", &to);
    rig.steps.run("put h t to-be-undone value");
    rig.steps.run("restore_snapshot h t second");
    assert_equal(&mut rig, "t", "t");
}

/// Check 27: jobs read an export without any server, as MapReduce and Spark do. So does one of a stopped data
/// directory.
#[test]
fn check_27_jobs_read_an_export_without_a_server() {
    let Some(mut rig) = start_for_loads() else { return };
    hard_table(&mut rig);
    let expected = rig.steps.run("digest b t");
    rig.stop();
    let (to, restored) = (rig.folder("export"), rig.folder("restored"));
    export(&rig, "s", &to);
    let read = rig.steps.run(&format!("read_snapshot {to} s {restored}"));
    assert!(
        read.starts_with("1021 rows all-versions wide"),
        "{read} of {expected}"
    );
    rig.restart();
    assert_eq!(rig.steps.run("digest b t"), expected);
}

/// Check 28: Basalt imports a snapshot of HBase with everything that makes imports hard: links of a clone,
/// references of a split that is not finished, bulk-loaded files. New writes win against imported cells with
/// their times. So do those of an export, and one of Basalt itself.
#[test]
fn check_28_snapshots_of_hbase_are_imported() {
    let Some(mut rig) = Rig::start(&["hbase.regionserver.compaction.enabled=false"], &[]) else {
        return;
    };
    rig.steps.run("create h origin");
    rig.steps.run("fill h origin 0 20000 50");
    rig.steps.run("put_at h origin equal 1000 older");
    rig.steps.run("flush h origin");
    rig.steps.run("put_at h origin equal 1000 newer");
    rig.steps.run("snapshot h origin whole");
    rig.steps.run("clone_snapshot h c whole");
    rig.steps.run("variety h c");
    let offered = rig.folder("offered");
    rig.steps
        .run(&format!("load h c {offered} 5000 10 loaded 9000000000000"));
    rig.steps.run("flush h c");
    rig.steps.run("split h c row-00010000");
    rig.steps.run("snapshot h c s");
    assert_eq!(rig.steps.run("regions h c"), "[ [row-00010000");
    let exported = rig.folder("exported");
    rig.steps.run(&format!(
        "tool h org.apache.hadoop.hbase.snapshot.ExportSnapshot -Dset:hbase.rootdir=file:{} -snapshot whole -copy-to file:{exported} -no-checksum-verify -mappers 1",
        text(&root(&rig))
    ));
    let (root, data) = (text(&root(&rig)), text(&rig.data()));
    let busy = Rig::try_basalt(&["import-snapshot", &root, "s", "--data-dir", &data]);
    assert!(busy.is_err(), "the server runs: {busy:?}");
    rig.stop();
    let printed = Rig::basalt(&["import-snapshot", &root, "s", "--data-dir", &data]);
    assert!(
        printed.contains("imported snapshot s of table c: 2 regions"),
        "{printed}"
    );
    Rig::basalt(&["import-snapshot", &exported, "whole", "--data-dir", &data]);
    let again = Rig::try_basalt(&["import-snapshot", &root, "s", "--data-dir", &data]);
    assert!(
        again.unwrap_err().contains('s'),
        "a snapshot of that name is there"
    );
    rig.restart();
    assert_eq!(rig.steps.run("snapshots b"), "s whole");
    // A compaction of all files would drop tombstones, which are compared.
    rig.steps.run("compactions b off");
    rig.steps.run("clone_snapshot b c s");
    rig.steps.run("clone_snapshot b origin whole");
    assert_equal(&mut rig, "c", "c");
    assert_equal(&mut rig, "origin", "origin");
    assert_eq!(rig.steps.run("get b c equal"), "newer");
    assert_eq!(rig.steps.run("get b c row-00005003"), "loaded");
    for (row, time) in [("equal", "1000"), ("row-00005003", "9000000000000")] {
        rig.steps.run(&format!("put_at b c {row} {time} written-here"));
        assert_eq!(rig.steps.run(&format!("get b c {row}")), "written-here");
    }
    rig.steps.run("flush b c");
    rig.steps.run("compactions b on");
    rig.steps.run("major_compact b c");
    assert_eq!(rig.steps.run("get b c equal"), "written-here");
    rig.stop();
    let checked = Rig::basalt(&["check", "--data-dir", &data]);
    assert!(checked.contains("sound: "), "{checked}");
}
