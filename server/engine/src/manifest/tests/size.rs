//! The state never becomes larger than the next open accepts, and its bound is never below its
//! size.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::encode::{encode_edit, encode_snapshot};
use super::super::size::{StateSize, copy_growth, growth};
use super::*;
use crate::Error;

/// An edit of this kind that may be valid, if there can be one; `draw` chooses its details.
fn edit(state: &ManifestState, kind: u8, draw: u64) -> Option<ManifestEdit> {
    let pick = |count: usize| (count > 0).then(|| (draw >> 8) as usize % count.max(1));
    let long = "x".repeat((draw % 300) as usize);
    let meta = |id: u64, table: &TableName, start: &[u8], end: &[u8]| RegionMeta {
        id: RegionId(id),
        table: table.clone(),
        start: start.to_vec(),
        end: end.to_vec(),
        created_ms: draw,
    };
    let new_file = |table: &TableName| FileMeta {
        dir_table: table.clone(),
        bytes: draw,
        cells: draw,
        ..file(state.next_file, state.seq.0 + 1)
    };
    let table = || state.tables.values().nth(pick(state.tables.len())?);
    let region = || state.regions.values().nth(pick(state.regions.len())?);
    let snapshot = || state.snapshots.values().nth(pick(state.snapshots.len())?);
    Some(match kind {
        0 => ManifestEdit::PutNamespace(NamespaceDescriptor {
            name: format!("n{}", draw % 5),
            configuration: [(long.clone(), long)].into(),
        }),
        1 => {
            let names = (0..draw % 4).map(|number| format!("f{number}{}", "y".repeat((draw % 100) as usize)));
            let names: Vec<String> = names.chain(["f".to_owned()]).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let name = format!("t{}", draw % 50);
            let middle = [b'm'; 200];
            let regions = vec![
                meta(state.next_region, &table_name(&name), b"", &middle),
                meta(state.next_region + 1, &table_name(&name), &middle, b""),
            ];
            create(&name, &names, regions)
        }
        2 => {
            let mut changed = table()?.descriptor.clone();
            changed.attributes.insert(b"k".to_vec(), long.into_bytes());
            ManifestEdit::AlterTable(changed)
        }
        3..=6 => {
            let region = region()?;
            let families = &state.tables.get(&region.meta.table)?.descriptor.families;
            let file = new_file(&region.meta.table);
            let family = families[pick(families.len())?].name.clone();
            ManifestEdit::Flush {
                region: region.meta.id,
                flushed: SeqId(file.max_seq.0 + draw % 1000),
                files: vec![(family, file)],
            }
        }
        7 => {
            let region = region()?;
            let (family, files) = region.files.iter().next()?;
            ManifestEdit::Compact {
                region: region.meta.id,
                family: family.clone(),
                removed: files.iter().take(2).map(|file| file.id).collect(),
                added: Vec::from_iter((draw & 1 == 0).then(|| {
                    FileMeta {
                        max_seq: files
                            .iter()
                            .take(2)
                            .next_back()
                            .map_or(SeqId::ZERO, |file| file.max_seq),
                        ..new_file(&region.meta.table)
                    }
                })),
            }
        }
        8 | 9 => {
            let parent = region()?;
            let at = [&parent.meta.start[..], b"a"].concat();
            let half = |id: u64, start: &[u8], end: &[u8]| meta(id, &parent.meta.table, start, end);
            ManifestEdit::ReplaceRegions {
                removed: vec![parent.meta.id],
                added: vec![
                    half(state.next_region, &parent.meta.start, &at),
                    half(state.next_region + 1, &at, &parent.meta.end),
                ],
            }
        }
        10 => {
            let regions = state.regions_of(&table()?.descriptor.name);
            let (left, right) = (regions.first()?, regions.get(1)?);
            ManifestEdit::ReplaceRegions {
                removed: vec![left.meta.id, right.meta.id],
                added: vec![meta(
                    state.next_region,
                    &left.meta.table,
                    &left.meta.start,
                    &right.meta.end,
                )],
            }
        }
        11 => {
            let of = &table()?.descriptor;
            let regions = state.regions_of(&of.name);
            ManifestEdit::CreateSnapshot(Arc::new(SnapshotMeta {
                name: format!("s{}", draw % 20),
                descriptor: of.clone(),
                created_ms: draw,
                ttl_seconds: draw,
                regions: regions.into_iter().map(RegionState::to_snapshot).collect(),
            }))
        }
        12 => copy(state, snapshot()?, &table_name(&format!("copy{}", draw % 20))),
        13 => ManifestEdit::TruncateTable(
            table()?.descriptor.name.clone(),
            vec![meta(state.next_region, &table()?.descriptor.name, b"", b"")],
        ),
        14 => ManifestEdit::DropTable(table()?.descriptor.name.clone()),
        15 => ManifestEdit::DropSnapshot(snapshot()?.name.clone()),
        16 => ManifestEdit::HighWater {
            timestamp_ms: draw,
            seq: SeqId(state.seq.0 + 1),
        },
        17 => {
            let old = &region()?.meta;
            ManifestEdit::TruncateRegion {
                removed: old.id,
                added: meta(state.next_region, &old.table, &old.start, &old.end),
            }
        }
        _ => ManifestEdit::Log {
            first: state.log.0 + 1,
            last: state.log.1 + 1,
        },
    })
}

/// The edit that makes a table of a snapshot, all of whose files have new ids.
fn copy(state: &ManifestState, snapshot: &SnapshotMeta, name: &TableName) -> ManifestEdit {
    let old: Vec<FileId> = snapshot.files().into_keys().collect();
    let new = |id: &FileId| FileId(state.next_file + old.binary_search(id).unwrap() as u64);
    let region = |(number, region): (u64, &SnapshotRegion)| RegionState {
        meta: RegionMeta {
            id: RegionId(state.next_region + number),
            table: name.clone(),
            start: region.start.clone(),
            end: region.end.clone(),
            created_ms: 1,
        },
        flushed: region.flushed,
        files: region
            .files
            .iter()
            .map(|(family, files)| {
                let files = files.iter().map(|file| FileMeta {
                    id: new(&file.id),
                    dir_table: name.clone(),
                    ..file.clone()
                });
                (family.clone(), files.collect())
            })
            .collect(),
        clipped: region.clipped.iter().map(new).collect(),
    };
    ManifestEdit::CloneTable {
        descriptor: TableDescriptor {
            name: name.clone(),
            ..snapshot.descriptor.clone()
        },
        regions: (0..).zip(&snapshot.regions).map(region).collect(),
    }
}

proptest! {
    /// Goal: the encoded state never takes more bytes than the bound, whatever edits follow each
    /// other.
    #[test]
    fn the_bound_is_never_below_the_size(draws in vec((0_u8..19, any::<u64>()), 1..120)) {
        let mut state = ManifestState::new(Uuid([7; 16]));
        let mut size = StateSize::new(encode_snapshot(&state).len(), usize::MAX);
        for (kind, draw) in draws {
            let Some(edit) = edit(&state, kind, draw).filter(|edit| state.check(edit).is_ok()) else {
                continue;
            };
            let payload = encode_edit(&edit).len();
            size.grew(growth(&state, &edit, payload));
            state.apply(&edit).unwrap();
            let found = encode_snapshot(&state).len();
            prop_assert!(found <= size.bound(), "{found} > {} after {edit:?}", size.bound());
        }
    }

    /// Goal: the check before a snapshot's files are linked refuses exactly the edits that the
    /// append would refuse.
    #[test]
    fn a_copy_is_never_larger_than_foretold(draws in vec((0_u8..12, any::<u64>()), 1..80), name in "[a-z]{1,200}") {
        let mut state = ManifestState::new(Uuid([7; 16]));
        for (kind, draw) in draws {
            if let Some(edit) = edit(&state, kind, draw).filter(|edit| state.check(edit).is_ok()) {
                state.apply(&edit).unwrap();
            }
        }
        for snapshot in state.snapshots.values() {
            let edit = copy(&state, snapshot, &table_name(&format!("copy{name}")));
            let foretold = copy_growth(snapshot, &table_name(&format!("copy{name}")));
            let growth = growth(&state, &edit, encode_edit(&edit).len());
            prop_assert!(growth <= foretold, "{growth} > {foretold}");
        }
    }
}

/// Goal: a schema change that makes the state too large is refused without effect; flushes
/// continue; dropped objects make room.
#[test]
fn schema_changes_stop_at_the_limit() {
    let fs = disk(SimOptions::default());
    let (mut manifest, _) = open(&fs).unwrap();
    manifest.set_schema_bytes_max(4_000);
    manifest
        .append(&create("t", &["f"], vec![region(1, "t", "", "")]))
        .unwrap();
    let namespace = |number: usize, bytes: usize| {
        ManifestEdit::PutNamespace(NamespaceDescriptor {
            name: format!("n{number}"),
            configuration: [("k".to_owned(), "v".repeat(bytes))].into(),
        })
    };
    let refused = (0..)
        .find_map(|number| manifest.append(&namespace(number, 500)).err())
        .unwrap();
    let text = refused.to_string();
    assert!(matches!(refused, Error::Constraint(_)), "{text}");
    assert!(text.contains("the limit 'manifest' is 4000 bytes"), "{text}");
    let before = manifest.state().clone();
    assert!(before.namespaces.len() > 6, "{before:?}");
    manifest.append(&namespace(0, 500)).unwrap();
    assert!(
        manifest
            .check(&create("u", &["f"], vec![region(2, "u", "", "")]))
            .is_ok()
    );
    manifest.append(&flush(1, 5, &[("f", file(1, 5))])).unwrap();
    manifest.append(&namespace(0, 100)).unwrap();
    assert!(manifest.append(&namespace(0, 1_500)).is_err(), "larger again");
    for number in 0..3 {
        manifest
            .append(&ManifestEdit::DropNamespace(format!("n{number}")))
            .unwrap();
    }
    manifest.append(&namespace(0, 900)).unwrap();
    let expected = manifest.state().clone();
    drop(manifest);
    assert_eq!(open(&fs).unwrap().1, expected);
}

/// Goal: even a flush is refused if the next open could not write the state.
#[test]
fn nothing_passes_what_a_start_accepts() {
    let state = ManifestState::new(Uuid([7; 16]));
    let max = crate::record::FRAME_PAYLOAD_BYTES_MAX;
    let mut size = StateSize::new(encode_snapshot(&state).len(), usize::MAX);
    size.check(&state, max - 1_000, false).unwrap();
    size.grew(max);
    // The bound was too high: the state is encoded again, and is small.
    size.check(&state, 1_000, false).unwrap();
    let refused = size.check(&state, max, false).unwrap_err();
    assert!(matches!(refused, Error::RegionTooBusy(_)), "{refused}");
    assert!(size.check(&state, max, true).is_err());
}
