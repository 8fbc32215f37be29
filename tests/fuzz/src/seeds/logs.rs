//! Logs and manifests in the compact form of their targets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use basalt_engine::cell::{CellType, ttl_tag};
use basalt_engine::fs::Vfs as _;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::id::{FileId, RegionId, SeqId, Uuid};
use basalt_engine::internals::manifest::{FileMeta, Manifest, ManifestEdit, RegionMeta};
use basalt_engine::internals::record::{EditBuilder, FrameRead, put_entry, read_frame};
use basalt_engine::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName, TableState};

use super::seed;
use crate::corpus::Input;
use crate::disk::{MANIFEST_ROLL_BYTES, put_frame};

/// The file is printed too.
const PRINTED: u8 = 16;

/// Kinds of payloads in the log.
const OLD_EDITS: u8 = 1;
const EDITS: u8 = 4;
const MARKER: u8 = 2;

pub(super) fn segments() -> Vec<Input> {
    let entries = |regions: &[u64], origin: &[Uuid]| {
        let mut payload = Vec::new();
        let mut builder = EditBuilder::new();
        for region in regions {
            builder.begin(RegionId(*region));
            for row in 0..*region {
                builder.begin_row();
                let key = format!("row-{row}");
                builder.cell_of(key.as_bytes(), b"f", b"q", 1_000, CellType::Put, b"value", b"");
                builder.cell_of(
                    key.as_bytes(),
                    b"f",
                    b"",
                    999,
                    CellType::DeleteFamily,
                    b"",
                    &ttl_tag(5),
                );
            }
            put_entry(&mut payload, region % 2, origin, builder.finish());
        }
        payload
    };
    let edits = |regions: &[u64]| {
        let mut payload = vec![EDITS];
        payload.extend_from_slice(&1_000_u64.to_le_bytes());
        payload.extend(entries(regions, &[]));
        payload.extend(entries(regions, &[Uuid([1; 16]), Uuid([2; 16])]));
        payload
    };
    // Without clusters and gaps, an entry is as it was before version 3.
    let old_edits = |regions: &[u64]| [vec![OLD_EDITS], entries(regions, &[])].concat();
    let log = |how: u8, frames: &[(u8, Vec<u8>)]| {
        let mut input = vec![how];
        for (how, payload) in frames {
            put_frame(&mut input, *how, payload);
        }
        input
    };
    let frames = [
        (0, edits(&[1, 2])),
        (64, vec![MARKER]),
        (3, edits(&[300])),
        (64, edits(&[1])),
    ];
    let short = &[(0, edits(&[1])), (2, edits(&[2, 1]))];
    let damaged = |how: u8| [(0, edits(&[1])), (how, edits(&[2])), (64, edits(&[1]))];
    vec![
        seed("open", log(0, &frames[..2])),
        seed("open-with-space-behind", log(8 | PRINTED, short)),
        seed("sealed", log(2 | PRINTED, short)),
        seed("two-segments", log(4, short)),
        seed(
            "old-edits",
            log(0, &[(0, old_edits(&[2])), (64, old_edits(&[2, 4]))]),
        ),
        seed("two-sealed-segments", log(6, short)),
        seed("nothing", log(0, &[])),
        seed("a-marker", log(0, &[(0, vec![MARKER])])),
        seed("an-unknown-kind", log(0, &[(0, vec![9, 9])])),
        seed("an-edit-without-rows", log(0, &[(0, vec![EDITS, 0, 2, 1, 0])])),
        seed("a-torn-tail", log(PRINTED, &damaged(16)[..2])),
        seed("damage-that-a-later-frame-proves", log(0, &damaged(16))),
        seed("a-damaged-header", log(0, &damaged(32))),
        seed(
            "a-gap-beyond-all-numbers",
            log(
                0,
                &[(0, [&[EDITS], [0xff; 9].as_slice(), &[1, 3, 1, 1, 0]].concat())],
            ),
        ),
        seed(
            "a-long-length",
            log(
                0,
                &[(
                    0,
                    [&[EDITS, 0, 0xff, 0xff, 0xff, 0x7f], [0; 9].as_slice()].concat(),
                )],
            ),
        ),
        seed("not-a-segment", [&[1], [0x5a; 64].as_slice()].concat()),
        seed(
            "the-beginning-of-a-segment",
            b"\x01basaltwl\x01\x00\x00\x00".as_slice(),
        ),
    ]
}

pub(super) fn manifests() -> Vec<Input> {
    let history = history();
    let log = |how: u8, frames: &[Vec<u8>]| {
        let mut input = vec![how];
        for payload in frames {
            put_frame(&mut input, 0, payload);
        }
        input
    };
    let snapshot_of_all = payloads(&history[..6], true);
    let edits = payloads(&history, false);
    let mut torn = log(0, &edits[..4]);
    put_frame(&mut torn, 16, &edits[4]);
    let mut damaged = torn.clone();
    put_frame(&mut damaged, 32, &edits[5]);
    let mut gap = log(0, &edits[..2]);
    put_frame(&mut gap, 1, &edits[2]);
    vec![
        seed("a-new-database", log(0, &edits[..1])),
        seed("every-kind-of-edit", log(PRINTED, &edits)),
        seed("with-markers", log(8, &edits[..5])),
        seed("a-snapshot-of-much", log(PRINTED, &snapshot_of_all[..1])),
        seed("without-current", log(4, &edits[..3])),
        seed("a-torn-tail", torn),
        seed("damage-that-a-later-frame-proves", damaged),
        seed("a-number-left-out", gap),
        seed("no-snapshot", log(0, &edits[1..2])),
        seed("two-snapshots", log(0, &[edits[0].clone(), edits[0].clone()])),
        seed(
            "current",
            b"\x02basalt-current 1 MANIFEST-0000000000000001 01010101-0101-0101-0101-010101010101".as_slice(),
        ),
        seed(
            "current-of-a-newer-release",
            b"\x02basalt-current 2 anything".as_slice(),
        ),
        seed("not-a-manifest", [&[1], [0x5a; 64].as_slice()].concat()),
        seed(
            "the-beginning-of-a-manifest",
            b"\x01BSLTMNFT\x01\x00\x00\x00".as_slice(),
        ),
    ]
}

/// The payloads of the manifest of a database with this history; `rolled`: after it was opened again.
fn payloads(history: &[ManifestEdit], rolled: bool) -> Vec<Vec<u8>> {
    const HEADER_BYTES: usize = 64;
    const ALIGN_BYTES: usize = 512;
    let disk = SimFs::new(1, SimOptions::default());
    let dir = Path::new("/db");
    let written = || -> basalt_engine::Result<std::path::PathBuf> {
        disk.create_dir_all(dir)
            .map_err(|source| basalt_engine::Error::io("creating", dir, source))?;
        let (mut manifest, _) = Manifest::open(Arc::new(disk.clone()), dir, MANIFEST_ROLL_BYTES)?;
        for edit in history {
            manifest.append(edit)?;
        }
        if rolled {
            drop(manifest);
            manifest = Manifest::open(Arc::new(disk.clone()), dir, MANIFEST_ROLL_BYTES)?.0;
        }
        Ok(manifest.path().to_path_buf())
    };
    let path = written().expect("a history that can follow");
    let file = disk.contents(&path).expect("just written");
    let uuid = Uuid(file[12..28].try_into().expect("sixteen bytes"));
    let mut payloads = Vec::new();
    let mut at = HEADER_BYTES.next_multiple_of(ALIGN_BYTES);
    while let FrameRead::Frame { payload, next, .. } = read_frame(&file, at, &uuid) {
        if !payload.is_empty() {
            payloads.push(payload.to_vec());
        }
        at = next.next_multiple_of(ALIGN_BYTES);
    }
    payloads
}

/// A history with every kind of edit.
fn history() -> Vec<ManifestEdit> {
    let name = |name: &str| TableName::parse(name.as_bytes()).expect("a name");
    let table = |families: &[&str]| {
        let families = families
            .iter()
            .map(|family| FamilyDescriptor::new(family.as_bytes()));
        TableDescriptor::new(name("ns:t"), families.collect())
    };
    let region = |id: u64, start: &str, end: &str| RegionMeta {
        id: RegionId(id),
        table: name("ns:t"),
        start: start.into(),
        end: end.into(),
        created_ms: 1_000 + id,
    };
    let file = |id: u64, max_seq: u64| FileMeta {
        id: FileId(id),
        uuid: Uuid([id as u8; 16]),
        bytes: 100,
        checksum: 5,
        cells: 10,
        max_seq: SeqId(max_seq),
        major: false,
        created_ms: 5_000,
        dir_table: name("ns:t"),
        loaded: false,
    };
    let flush = |region: u64, file: FileMeta| ManifestEdit::Flush {
        region: RegionId(region),
        flushed: file.max_seq,
        files: vec![(b"f".to_vec(), file)],
    };
    vec![
        ManifestEdit::PutNamespace(NamespaceDescriptor {
            name: "ns".into(),
            configuration: BTreeMap::from([("owner".into(), "x".into())]),
        }),
        ManifestEdit::CreateTable {
            descriptor: table(&["f", "g"]),
            regions: vec![region(1, "", "m"), region(2, "m", "")],
        },
        flush(1, file(1, 10)),
        flush(1, file(2, 20)),
        ManifestEdit::Compact {
            region: RegionId(1),
            family: b"f".to_vec(),
            removed: vec![FileId(1), FileId(2)],
            added: vec![file(3, 20)],
        },
        ManifestEdit::ReplaceRegions {
            removed: vec![RegionId(1)],
            added: vec![region(3, "", "c"), region(4, "c", "m")],
        },
        ManifestEdit::TruncateRegion {
            removed: RegionId(3),
            added: region(6, "", "c"),
        },
        ManifestEdit::HighWater {
            timestamp_ms: 77_000,
            seq: SeqId(30),
        },
        ManifestEdit::AlterTable(table(&["f"])),
        ManifestEdit::SetTableState(name("ns:t"), TableState::Disabled),
        ManifestEdit::TruncateTable(name("ns:t"), vec![region(7, "", "")]),
        ManifestEdit::SetTableState(name("ns:t"), TableState::Disabled),
        ManifestEdit::DropTable(name("ns:t")),
        ManifestEdit::DropNamespace("ns".into()),
    ]
}
