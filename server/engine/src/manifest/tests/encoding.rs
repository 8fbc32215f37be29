//! Encoded edits and snapshots decode to the same values; other bytes are refused, never a panic.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

use super::super::encode::{Payload, decode, encode_edit, encode_snapshot};
use super::*;
use crate::schema::Attributes;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..12)
}

fn attributes() -> impl Strategy<Value = Attributes> {
    btree_map("[a-zA-Z.]{1,8}".prop_map(String::into_bytes), bytes(), 0..4)
        // Options of the engine have values that can be refused; they get valid ones below.
        .prop_map(|map| map.into_iter().filter(|(name, _)| *name != b"TTL").collect())
}

fn name() -> impl Strategy<Value = TableName> {
    ("[a-z]{0,4}", "[a-z_][a-z.-]{0,6}").prop_map(|(space, name)| TableName::new(&space, &name).unwrap())
}

fn family() -> impl Strategy<Value = FamilyDescriptor> {
    (
        "[a-z]{1,4}",
        attributes(),
        attributes(),
        proptest::option::of(1..9_i32),
    )
        .prop_map(|(name, mut attributes, configuration, versions)| {
            if let Some(versions) = versions {
                attributes.insert(b"VERSIONS".to_vec(), versions.to_string().into_bytes());
            }
            let mut family = FamilyDescriptor::from_attributes(name.as_bytes(), attributes).unwrap();
            family.configuration = configuration;
            family
        })
}

fn descriptor() -> impl Strategy<Value = TableDescriptor> {
    (name(), vec(family(), 0..4), attributes()).prop_map(|(name, families, attributes)| {
        let mut table = TableDescriptor::new(name, families);
        table.attributes = attributes;
        table
    })
}

fn namespace() -> impl Strategy<Value = NamespaceDescriptor> {
    ("\\PC{0,6}", btree_map("\\PC{0,6}", "\\PC{0,6}", 0..3))
        .prop_map(|(name, configuration)| NamespaceDescriptor { name, configuration })
}

fn any_region() -> impl Strategy<Value = RegionMeta> {
    (any::<u64>(), name(), bytes(), bytes(), any::<u64>()).prop_map(|(id, table, start, end, created_ms)| {
        RegionMeta {
            id: RegionId(id),
            table,
            start,
            end,
            created_ms,
        }
    })
}

fn any_file() -> impl Strategy<Value = FileMeta> {
    let numbers = (
        any::<u64>(),
        any::<u64>(),
        any::<u32>(),
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
    );
    (numbers, any::<[u8; 16]>(), any::<(bool, bool)>(), name()).prop_map(
        |((id, bytes, checksum, cells, max_seq, created_ms), uuid, (major, loaded), dir_table)| FileMeta {
            id: FileId(id),
            uuid: Uuid(uuid),
            bytes,
            checksum,
            cells,
            max_seq: SeqId(max_seq),
            major,
            created_ms,
            dir_table,
            loaded,
        },
    )
}

fn table_state() -> impl Strategy<Value = TableState> {
    prop_oneof![Just(TableState::Enabled), Just(TableState::Disabled)]
}

fn edit() -> impl Strategy<Value = ManifestEdit> {
    prop_oneof![
        namespace().prop_map(ManifestEdit::PutNamespace),
        "\\PC{0,6}".prop_map(ManifestEdit::DropNamespace),
        (descriptor(), vec(any_region(), 0..4))
            .prop_map(|(descriptor, regions)| ManifestEdit::CreateTable { descriptor, regions }),
        descriptor().prop_map(ManifestEdit::AlterTable),
        (name(), table_state()).prop_map(|(name, state)| ManifestEdit::SetTableState(name, state)),
        name().prop_map(ManifestEdit::DropTable),
        (name(), vec(any_region(), 0..4))
            .prop_map(|(name, regions)| ManifestEdit::TruncateTable(name, regions)),
        (any::<u64>(), any::<u64>(), vec((bytes(), any_file()), 0..4)).prop_map(
            |(region, flushed, files)| {
                ManifestEdit::Flush {
                    region: RegionId(region),
                    flushed: SeqId(flushed),
                    files,
                }
            }
        ),
        (
            any::<u64>(),
            bytes(),
            vec(any::<u64>(), 0..4),
            vec(any_file(), 0..4)
        )
            .prop_map(|(region, family, removed, added)| ManifestEdit::Compact {
                region: RegionId(region),
                family,
                removed: removed.into_iter().map(FileId).collect(),
                added,
            }),
        (vec(any::<u64>(), 0..4), vec(any_region(), 0..4)).prop_map(|(removed, added)| {
            ManifestEdit::ReplaceRegions {
                removed: removed.into_iter().map(RegionId).collect(),
                added,
            }
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(timestamp_ms, seq)| ManifestEdit::HighWater {
            timestamp_ms,
            seq: SeqId(seq),
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(first, last)| ManifestEdit::Log { first, last }),
        any_snapshot().prop_map(|snapshot| ManifestEdit::CreateSnapshot(Arc::new(snapshot))),
        "\\PC{0,6}".prop_map(ManifestEdit::DropSnapshot),
        (descriptor(), vec(region_state(), 0..4))
            .prop_map(|(descriptor, regions)| ManifestEdit::CloneTable { descriptor, regions }),
        (descriptor(), vec(region_state(), 0..4))
            .prop_map(|(descriptor, regions)| ManifestEdit::RestoreTable { descriptor, regions }),
        (any::<u64>(), any_region()).prop_map(|(removed, added)| ManifestEdit::TruncateRegion {
            removed: RegionId(removed),
            added,
        }),
    ]
}

fn region_state() -> impl Strategy<Value = RegionState> {
    (
        any_region(),
        any::<u64>(),
        btree_map(bytes(), vec(any_file(), 0..3), 0..3),
        btree_set(any::<u64>(), 0..3),
    )
        .prop_map(|(meta, flushed, files, clipped)| RegionState {
            meta,
            flushed: SeqId(flushed),
            files,
            clipped: clipped.into_iter().map(FileId).collect(),
        })
}

fn any_snapshot() -> impl Strategy<Value = SnapshotMeta> {
    (
        "[a-z_][a-z.-]{0,6}",
        descriptor(),
        any::<u64>(),
        any::<u64>(),
        vec(region_state(), 0..3),
    )
        .prop_map(
            |(name, descriptor, created_ms, ttl_seconds, regions)| SnapshotMeta {
                name,
                descriptor,
                created_ms,
                ttl_seconds,
                regions: regions.iter().map(RegionState::to_snapshot).collect(),
            },
        )
}

fn state() -> impl Strategy<Value = ManifestState> {
    (
        any::<([u8; 16], [u64; 6])>(),
        vec(namespace(), 0..3),
        vec((descriptor(), table_state()), 0..3),
        vec(region_state(), 0..4),
        vec(any_snapshot(), 0..3),
    )
        .prop_map(
            |(
                (cluster_id, [next_region, next_file, timestamp_ms, seq, first, last]),
                namespaces,
                tables,
                regions,
                snapshots,
            )| {
                ManifestState {
                    cluster_id: Uuid(cluster_id),
                    namespaces: namespaces.into_iter().map(|it| (it.name.clone(), it)).collect(),
                    tables: tables
                        .into_iter()
                        .map(|(descriptor, state)| (descriptor.name.clone(), TableMeta { descriptor, state }))
                        .collect(),
                    regions: regions
                        .into_iter()
                        .map(|region| (region.meta.id, region))
                        .collect(),
                    next_region,
                    next_file,
                    timestamp_ms,
                    turns: next_file,
                    seq: SeqId(seq),
                    log: (first, last),
                    snapshots: snapshots
                        .into_iter()
                        .map(|snapshot| (snapshot.name.clone(), Arc::new(snapshot)))
                        .collect(),
                }
            },
        )
}

proptest! {
    #[test]
    fn edits_come_back(edit in edit()) {
        let bytes = encode_edit(&edit);
        prop_assert_eq!(decode(&bytes), Ok(Payload::Edit(edit)));
        for cut in 0..bytes.len() {
            prop_assert!(decode(&bytes[..cut]).is_err(), "cut at {}", cut);
        }
        let longer = [&bytes[..], &[0]].concat();
        prop_assert!(decode(&longer).is_err());
    }

    #[test]
    fn snapshots_come_back(state in state()) {
        prop_assert_eq!(decode(&encode_snapshot(&state)), Ok(Payload::Snapshot(Box::new(state))));
    }

    #[test]
    fn other_bytes_are_refused_or_read(kind in 0..22_u8, bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = decode(&[&[1, kind], &bytes[..]].concat());
    }
}

/// Goal: kinds and codes never change their number. A failure here means that old manifests are misread.
#[test]
fn bytes_on_disk_never_change() {
    let high = ManifestEdit::HighWater {
        timestamp_ms: 300,
        seq: SeqId(5),
    };
    assert_eq!(encode_edit(&high), [1, 12, 0xac, 2, 5]);
    let disable = ManifestEdit::SetTableState(table_name("t"), TableState::Disabled);
    assert_eq!(encode_edit(&disable), b"\x01\x06\x07default\x01t\x01");
    let kinds: Vec<u8> = history().iter().map(|edit| encode_edit(edit)[1]).collect();
    assert_eq!(
        kinds,
        [
            2, 4, 9, 9, 10, 11, 10, 12, 4, 6, 8, 7, 3, 5, 14, 16, 17, 14, 15, 18
        ]
    );
    assert_eq!(
        decode(&[2, 12]).unwrap_err(),
        "an edit of encoding version 2; this release reads 1"
    );
    let log = ManifestEdit::Log { first: 3, last: 300 };
    assert_eq!(encode_edit(&log), [1, 13, 3, 0xac, 2]);
    let drop = ManifestEdit::DropSnapshot("s".into());
    assert_eq!(encode_edit(&drop), b"\x01\x0f\x01s");
    // Those of older formats end before the number of turns (version 6), before the snapshots of tables
    // (version 2), and before the log (version 1).
    let state = ManifestState {
        log: (3, 4),
        ..ManifestState::default()
    };
    let snapshot = encode_snapshot(&ManifestState {
        turns: 0x0102,
        ..state.clone()
    });
    let (sixth, turns) = snapshot.split_at(snapshot.len() - 8);
    assert_eq!(turns, [2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(decode(sixth), Ok(Payload::Snapshot(Box::new(state.clone()))));
    let (second, snapshots) = sixth.split_at(sixth.len() - 1);
    assert_eq!(snapshots, [0]);
    assert_eq!(decode(second), Ok(Payload::Snapshot(Box::new(state))));
    let (first, log) = second.split_at(second.len() - 2);
    assert_eq!(log, [3, 4]);
    assert_eq!(decode(first), Ok(Payload::Snapshot(Box::default())));
    assert_eq!(decode(&[1, 19]).unwrap_err(), "an edit of unknown kind 19");
    assert!(decode(&[]).is_err() && decode(&[1]).is_err());
}

/// A snapshot's name becomes part of a path, so it is checked whatever wrote the manifest.
#[test]
fn a_snapshot_with_a_wrong_name_is_refused() {
    for (name, is_good) in [("s", true), ("..", false), ("a/b", false), ("", false)] {
        let edit = ManifestEdit::CreateSnapshot(snapshot(name, table("t", &["f"]), &[]));
        assert_eq!(decode(&encode_edit(&edit)).is_ok(), is_good, "{name}");
    }
}
