//! Tests of the manifest: the rules of edits as text, the encoding, damage, and crashes at every call.

mod crash;
mod damage;
mod encoding;
mod rules;
mod size;

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::Result;
use crate::fs::Vfs;
use crate::fs::sim::{SimFs, SimOptions};
use crate::schema::FamilyDescriptor;

/// Edits that are less are kept in one file.
const ROLL_BYTES_MIN: u64 = 1 << 20;

fn dir() -> &'static Path {
    Path::new("/data")
}

/// An empty disk with a durable data directory.
fn disk(options: SimOptions) -> SimFs {
    let fs = SimFs::new(1, options);
    fs.create_dir_all(dir()).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

fn open(fs: &SimFs) -> Result<(Manifest, ManifestState)> {
    Manifest::open(Arc::new(fs.clone()), dir(), ROLL_BYTES_MIN)
}

fn table_name(name: &str) -> TableName {
    TableName::parse(name.as_bytes()).unwrap()
}

fn table(name: &str, families: &[&str]) -> TableDescriptor {
    let families = families
        .iter()
        .map(|name| FamilyDescriptor::new(name.as_bytes()))
        .collect();
    TableDescriptor::new(table_name(name), families)
}

fn region(id: u64, table: &str, start: &str, end: &str) -> RegionMeta {
    RegionMeta {
        id: RegionId(id),
        table: table_name(table),
        start: start.into(),
        end: end.into(),
        created_ms: 1_000 + id,
    }
}

fn file(id: u64, max_seq: u64) -> FileMeta {
    FileMeta {
        id: FileId(id),
        uuid: Uuid([id as u8; 16]),
        bytes: id.wrapping_mul(100),
        checksum: id as u32,
        cells: 10,
        max_seq: SeqId(max_seq),
        major: false,
        created_ms: 5_000,
        dir_table: table_name("t"),
        loaded: false,
    }
}

fn create(name: &str, families: &[&str], regions: Vec<RegionMeta>) -> ManifestEdit {
    ManifestEdit::CreateTable {
        descriptor: table(name, families),
        regions,
    }
}

fn flush(region: u64, flushed: u64, files: &[(&str, FileMeta)]) -> ManifestEdit {
    ManifestEdit::Flush {
        region: RegionId(region),
        flushed: SeqId(flushed),
        files: files
            .iter()
            .map(|(family, file)| (family.as_bytes().to_vec(), file.clone()))
            .collect(),
    }
}

fn compact(region: u64, family: &str, removed: &[u64], added: Vec<FileMeta>) -> ManifestEdit {
    ManifestEdit::Compact {
        region: RegionId(region),
        family: family.into(),
        removed: removed.iter().map(|id| FileId(*id)).collect(),
        added,
    }
}

/// A region with these files, the first of which is clipped.
fn filled(meta: RegionMeta, flushed: u64, files: &[(&str, FileMeta)]) -> RegionState {
    let mut by_family = BTreeMap::<Vec<u8>, Vec<FileMeta>>::new();
    for (family, file) in files {
        by_family.entry((*family).into()).or_default().push(file.clone());
    }
    RegionState {
        meta,
        flushed: SeqId(flushed),
        files: by_family,
        clipped: files.first().iter().map(|(_, file)| file.id).collect(),
    }
}

fn snapshot(name: &str, descriptor: TableDescriptor, regions: &[RegionState]) -> Arc<SnapshotMeta> {
    Arc::new(SnapshotMeta {
        name: name.into(),
        descriptor,
        created_ms: 9_000,
        ttl_seconds: 60,
        regions: regions.iter().map(RegionState::to_snapshot).collect(),
    })
}

/// A history with every kind of edit.
fn history() -> Vec<ManifestEdit> {
    vec![
        ManifestEdit::PutNamespace(NamespaceDescriptor {
            name: "ns".into(),
            configuration: BTreeMap::from([("owner".into(), "x".into())]),
        }),
        create(
            "t",
            &["f", "g"],
            vec![region(1, "t", "", "m"), region(2, "t", "m", "")],
        ),
        flush(1, 10, &[("f", file(1, 10)), ("g", file(2, 9))]),
        flush(1, 20, &[("f", file(3, 20))]),
        compact(1, "f", &[1, 3], vec![file(4, 20)]),
        ManifestEdit::ReplaceRegions {
            removed: vec![RegionId(1)],
            added: vec![region(3, "t", "", "c"), region(4, "t", "c", "m")],
        },
        compact(3, "f", &[4], vec![file(5, 20)]),
        ManifestEdit::HighWater {
            timestamp_ms: 77_000,
            seq: SeqId(30),
        },
        create("ns:u", &["f"], vec![region(5, "ns:u", "", "")]),
        ManifestEdit::SetTableState(table_name("ns:u"), TableState::Disabled),
        ManifestEdit::TruncateTable(table_name("ns:u"), vec![region(6, "ns:u", "", "")]),
        ManifestEdit::DropTable(table_name("ns:u")),
        ManifestEdit::DropNamespace("ns".into()),
        ManifestEdit::AlterTable(table("t", &["f"])),
        ManifestEdit::CreateSnapshot(snapshot(
            "s",
            table("t", &["f"]),
            &[
                filled(
                    region(3, "t", "", "m"),
                    20,
                    &[("f", file(4, 20)), ("f", file(5, 20))],
                ),
                filled(region(4, "t", "m", ""), 20, &[("f", file(4, 20))]),
            ],
        )),
        ManifestEdit::CloneTable {
            descriptor: table("c", &["f"]),
            regions: vec![
                filled(
                    region(7, "c", "", "m"),
                    20,
                    &[("f", file(6, 20)), ("f", file(7, 20))],
                ),
                filled(region(8, "c", "m", ""), 20, &[("f", file(6, 20))]),
            ],
        },
        ManifestEdit::RestoreTable {
            descriptor: table("t", &["f", "h"]),
            regions: vec![filled(region(9, "t", "", ""), 20, &[("f", file(8, 20))])],
        },
        ManifestEdit::CreateSnapshot(snapshot(
            "s-2",
            table("t", &["f"]),
            &[filled(region(9, "t", "", ""), 20, &[])],
        )),
        ManifestEdit::DropSnapshot("s-2".into()),
        ManifestEdit::TruncateRegion {
            removed: RegionId(9),
            added: region(10, "t", "", ""),
        },
    ]
}

/// Goal: every open reads exactly the appended edits, through many files, and only the live file
/// and its predecessor are kept.
#[test]
fn edits_are_there_after_every_open() {
    let fs = disk(SimOptions::default());
    let (_, mut expected) = open(&fs).unwrap();
    for edit in history() {
        let (mut manifest, state) = open(&fs).unwrap();
        assert_eq!(state, expected);
        expected.apply(&edit).unwrap();
        manifest.append(&edit).unwrap();
        assert_eq!(*manifest.state(), expected);
        assert!(fs.files().len() <= 3, "{:?}", fs.files());
    }
    assert_eq!(open(&fs).unwrap().1, expected);
    assert_eq!(verify(&fs, dir()).unwrap().state, expected);
}

/// Goal: a long log is replaced by a snapshot, and a large snapshot is not replaced by every edit.
#[test]
fn a_long_log_is_rolled() {
    let fs = disk(SimOptions::default());
    let (mut manifest, _) = open(&fs).unwrap();
    let first = manifest.path().to_owned();
    let mut edits = 0;
    while manifest.path() == first {
        edits += 1;
        assert!(edits < 10_000);
        manifest
            .append(&ManifestEdit::HighWater {
                timestamp_ms: edits,
                seq: SeqId(edits),
            })
            .unwrap();
    }
    // An edit and its marker take a sector each.
    assert_eq!(edits, ROLL_BYTES_MIN / 1_024);
    let state = manifest.state().clone();
    drop(manifest);
    assert_eq!(open(&fs).unwrap().1, state);
}

/// Goal: the dump shows every frame, in words.
#[test]
fn a_dump_shows_every_frame() {
    let fs = disk(SimOptions::default());
    let (mut manifest, _) = open(&fs).unwrap();
    for edit in history() {
        manifest.append(&edit).unwrap();
    }
    let mut text = String::new();
    dump(&fs, manifest.path(), &mut text).unwrap();
    for part in [
        "manifest 0000000000000001, format 7, uuid ",
        "snapshot after edit 0:",
        "edit 2: create table t (f, g) with regions [1 of t [, m) created 1001; 2 of t [m, ) created 1002]",
        "edit 5: compact family f of region 1, files [0000000000000001; 0000000000000003] became [0000000000000004 of t",
        "edit 6: replace regions [1] by [3 of t",
        "edit 8: high water: timestamp 77000, sequence id 30",
        "edit 14: alter table t (f)",
        "edit 15: create snapshot s of table t (f) created 9000, 2 regions, 2 files, for 60 s",
        "edit 16: create table c (f) from a snapshot, regions [7 of c [, m) created 1007 with 2 files; 8 of c",
        "edit 17: restore table t (f, h) from a snapshot, regions [9 of t [, ) created 1009 with 1 files]",
        "edit 19: drop snapshot s-2",
        "edit 20: truncate region 9, new region 10 of t [, ) created 1010",
        "marker: durable up to ",
        " end\n",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let path = manifest.path().to_owned();
    drop(manifest);
    open(&fs).unwrap();
    text.clear();
    dump(&fs, &path.with_file_name("MANIFEST-0000000000000002"), &mut text).unwrap();
    for part in [
        "region 8 of c [m, ) created 1008 flushed up to 20\n    f 0000000000000006 of t (600 bytes, crc32c 00000006, 10 cells, up to 20) clipped",
        "snapshot s of table t (f) created 9000, 2 regions, 2 files, for 60 s\n    [, m) flushed up to 20\n      f 0000000000000004 of t (400 bytes",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(dump(&fs, Path::new("/data/MANIFEST-00000000000000ff"), &mut text).is_err());
}
