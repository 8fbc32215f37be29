//! Edits and snapshots to bytes and back. The layout is drawn in the module comment of `manifest`.
//!
//! Decoding never panics and allocates nothing for a count alone: the bytes of every element must
//! be there.

use std::sync::Arc;

use self::pieces::{
    file, list, namespace, put_content, put_file, put_list, put_namespace, put_region, put_region_state,
    put_snapshot_meta, put_table, put_table_name, region, region_state, snapshot_meta, state_code, table,
    table_name, table_state, text,
};
use super::{ManifestEdit, ManifestState, RegionState, SnapshotMeta, TableMeta};
use crate::codec::{Cursor, put_prefixed, put_varint};
use crate::id::{FileId, RegionId, SeqId, Uuid};
use crate::schema::{NamespaceDescriptor, TableDescriptor};

mod pieces;

/// Version of the payloads' encoding.
const PAYLOAD_VERSION: u8 = 1;

/// Tags of payloads. The codes are on disk: never renumber.
mod tag {
    pub(super) const SNAPSHOT: u8 = 1;
    pub(super) const PUT_NAMESPACE: u8 = 2;
    pub(super) const DROP_NAMESPACE: u8 = 3;
    pub(super) const CREATE_TABLE: u8 = 4;
    pub(super) const ALTER_TABLE: u8 = 5;
    pub(super) const SET_TABLE_STATE: u8 = 6;
    pub(super) const DROP_TABLE: u8 = 7;
    pub(super) const TRUNCATE_TABLE: u8 = 8;
    pub(super) const FLUSH: u8 = 9;
    pub(super) const COMPACT: u8 = 10;
    pub(super) const REPLACE_REGIONS: u8 = 11;
    pub(super) const HIGH_WATER: u8 = 12;
    pub(super) const LOG: u8 = 13;
    pub(super) const CREATE_SNAPSHOT: u8 = 14;
    pub(super) const DROP_SNAPSHOT: u8 = 15;
    pub(super) const CLONE_TABLE: u8 = 16;
    pub(super) const RESTORE_TABLE: u8 = 17;
    pub(super) const TRUNCATE_REGION: u8 = 18;
}

/// Content of a payload that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Snapshot(Box<ManifestState>),
    Edit(ManifestEdit),
}

/// The bytes of an edit.
pub(crate) fn encode_edit(edit: &ManifestEdit) -> Vec<u8> {
    let mut out = vec![PAYLOAD_VERSION];
    match edit {
        ManifestEdit::PutNamespace(namespace) => {
            out.push(tag::PUT_NAMESPACE);
            put_namespace(&mut out, namespace);
        }
        ManifestEdit::DropNamespace(name) => {
            out.push(tag::DROP_NAMESPACE);
            put_prefixed(&mut out, name.as_bytes());
        }
        ManifestEdit::CreateTable { descriptor, regions } => {
            out.push(tag::CREATE_TABLE);
            put_table(&mut out, descriptor);
            put_list(&mut out, regions, put_region);
        }
        ManifestEdit::AlterTable(descriptor) => {
            out.push(tag::ALTER_TABLE);
            put_table(&mut out, descriptor);
        }
        ManifestEdit::SetTableState(name, state) => {
            out.push(tag::SET_TABLE_STATE);
            put_table_name(&mut out, name);
            out.push(state_code(*state));
        }
        ManifestEdit::DropTable(name) => {
            out.push(tag::DROP_TABLE);
            put_table_name(&mut out, name);
        }
        ManifestEdit::TruncateTable(name, regions) => {
            out.push(tag::TRUNCATE_TABLE);
            put_table_name(&mut out, name);
            put_list(&mut out, regions, put_region);
        }
        ManifestEdit::Flush {
            region,
            flushed,
            files,
        } => {
            out.push(tag::FLUSH);
            put_varint(&mut out, region.0);
            put_varint(&mut out, flushed.0);
            put_list(&mut out, files, |out, (family, file)| {
                put_prefixed(out, family);
                put_file(out, file);
            });
        }
        ManifestEdit::Compact {
            region,
            family,
            removed,
            added,
        } => {
            out.push(tag::COMPACT);
            put_varint(&mut out, region.0);
            put_prefixed(&mut out, family);
            put_list(&mut out, removed, |out, id| put_varint(out, id.0));
            put_list(&mut out, added, put_file);
        }
        ManifestEdit::ReplaceRegions { removed, added } => {
            out.push(tag::REPLACE_REGIONS);
            put_list(&mut out, removed, |out, id| put_varint(out, id.0));
            put_list(&mut out, added, put_region);
        }
        ManifestEdit::HighWater { timestamp_ms, seq } => {
            out.push(tag::HIGH_WATER);
            put_varint(&mut out, *timestamp_ms);
            put_varint(&mut out, seq.0);
        }
        ManifestEdit::Log { first, last } => {
            out.push(tag::LOG);
            put_varint(&mut out, *first);
            put_varint(&mut out, *last);
        }
        ManifestEdit::CreateSnapshot(snapshot) => {
            out.push(tag::CREATE_SNAPSHOT);
            put_snapshot_meta(&mut out, snapshot);
        }
        ManifestEdit::DropSnapshot(name) => {
            out.push(tag::DROP_SNAPSHOT);
            put_prefixed(&mut out, name.as_bytes());
        }
        ManifestEdit::CloneTable { descriptor, regions } => {
            out.push(tag::CLONE_TABLE);
            put_table(&mut out, descriptor);
            put_list(&mut out, regions, put_region_state);
        }
        ManifestEdit::RestoreTable { descriptor, regions } => {
            out.push(tag::RESTORE_TABLE);
            put_table(&mut out, descriptor);
            put_list(&mut out, regions, put_region_state);
        }
        ManifestEdit::TruncateRegion { removed, added } => {
            out.push(tag::TRUNCATE_REGION);
            put_varint(&mut out, removed.0);
            put_region(&mut out, added);
        }
    }
    out
}

/// The bytes of a whole state.
pub(crate) fn encode_snapshot(state: &ManifestState) -> Vec<u8> {
    let mut out = vec![PAYLOAD_VERSION, tag::SNAPSHOT];
    out.extend_from_slice(&state.cluster_id.0);
    for number in [
        state.next_region,
        state.next_file,
        state.timestamp_ms,
        state.seq.0,
    ] {
        put_varint(&mut out, number);
    }
    put_list(&mut out, state.namespaces.values(), put_namespace);
    put_list(&mut out, state.tables.values(), |out, table| {
        put_table(out, &table.descriptor);
        out.push(state_code(table.state));
    });
    put_list(&mut out, state.regions.values(), put_region_state);
    put_varint(&mut out, state.log.0);
    put_varint(&mut out, state.log.1);
    put_list(&mut out, state.snapshots.values(), |out, snapshot| {
        put_snapshot_meta(out, snapshot);
    });
    // Fixed length, so that an edit does not enlarge the snapshot by it.
    out.extend_from_slice(&state.turns.to_le_bytes());
    out
}

/// Encoded length of a region's files in a state.
pub(super) fn content_bytes(region: &RegionState) -> usize {
    length(|out| put_content(out, region.flushed, &region.files, &region.clipped))
}

/// Encoded length of a namespace in a state.
pub(super) fn namespace_bytes(namespace: &NamespaceDescriptor) -> usize {
    length(|out| put_namespace(out, namespace))
}

/// Encoded length of a table's descriptor in a state.
pub(super) fn table_bytes(table: &TableDescriptor) -> usize {
    length(|out| put_table(out, table))
}

/// Encoded length of a snapshot of a table in a state.
pub(super) fn snapshot_bytes(snapshot: &SnapshotMeta) -> usize {
    length(|out| put_snapshot_meta(out, snapshot))
}

fn length(put: impl FnOnce(&mut Vec<u8>)) -> usize {
    let mut out = Vec::new();
    put(&mut out);
    out.len()
}

/// Decodes the payload of a snapshot of the state; the error describes the malformed part.
pub(crate) fn decode_state(payload: &[u8]) -> Result<ManifestState, String> {
    match decode(payload)? {
        Payload::Snapshot(state) => Ok(*state),
        Payload::Edit(_) => Err("an edit, not a snapshot of the state".into()),
    }
}

/// Decodes the payload of an edit; the error describes the malformed part.
pub(crate) fn decode_edit(payload: &[u8]) -> Result<ManifestEdit, String> {
    match decode(payload)? {
        Payload::Edit(edit) => Ok(edit),
        Payload::Snapshot(_) => Err("a snapshot of the state, not an edit".into()),
    }
}

/// Decodes a payload; the error describes the malformed part.
pub(super) fn decode(payload: &[u8]) -> Result<Payload, String> {
    let (version, rest) = payload.split_first().ok_or("an empty payload")?;
    if *version != PAYLOAD_VERSION {
        return Err(format!(
            "an edit of encoding version {version}; this release reads {PAYLOAD_VERSION}"
        ));
    }
    let (tag, rest) = rest.split_first().ok_or("a payload without a tag")?;
    let mut cursor = Cursor::new(rest);
    let read = if *tag == tag::SNAPSHOT {
        snapshot(&mut cursor).map(|state| Payload::Snapshot(Box::new(state)))
    } else if (tag::PUT_NAMESPACE..=tag::TRUNCATE_REGION).contains(tag) {
        edit(*tag, &mut cursor).map(Payload::Edit)
    } else {
        return Err(format!("an edit of unknown kind {tag}"));
    };
    match read {
        Some(payload) if cursor.is_empty() => Ok(payload),
        Some(_) => Err(format!("bytes are left over after an edit of kind {tag}")),
        None => Err(format!(
            "an edit of kind {tag} cannot be read at byte {} of its payload",
            2 + cursor.position()
        )),
    }
}

fn edit(tag: u8, cursor: &mut Cursor<'_>) -> Option<ManifestEdit> {
    Some(match tag {
        tag::PUT_NAMESPACE => ManifestEdit::PutNamespace(namespace(cursor)?),
        tag::DROP_NAMESPACE => ManifestEdit::DropNamespace(text(cursor)?),
        tag::CREATE_TABLE => ManifestEdit::CreateTable {
            descriptor: table(cursor)?,
            regions: list(cursor, region)?,
        },
        tag::ALTER_TABLE => ManifestEdit::AlterTable(table(cursor)?),
        tag::SET_TABLE_STATE => ManifestEdit::SetTableState(table_name(cursor)?, table_state(cursor)?),
        tag::DROP_TABLE => ManifestEdit::DropTable(table_name(cursor)?),
        tag::TRUNCATE_TABLE => ManifestEdit::TruncateTable(table_name(cursor)?, list(cursor, region)?),
        tag::FLUSH => ManifestEdit::Flush {
            region: RegionId(cursor.varint()?),
            flushed: SeqId(cursor.varint()?),
            files: list(cursor, |cursor| {
                Some((cursor.prefixed()?.to_vec(), file(cursor)?))
            })?,
        },
        tag::COMPACT => ManifestEdit::Compact {
            region: RegionId(cursor.varint()?),
            family: cursor.prefixed()?.to_vec(),
            removed: list(cursor, |cursor| cursor.varint().map(FileId))?,
            added: list(cursor, file)?,
        },
        tag::REPLACE_REGIONS => ManifestEdit::ReplaceRegions {
            removed: list(cursor, |cursor| cursor.varint().map(RegionId))?,
            added: list(cursor, region)?,
        },
        tag::HIGH_WATER => ManifestEdit::HighWater {
            timestamp_ms: cursor.varint()?,
            seq: SeqId(cursor.varint()?),
        },
        tag::LOG => ManifestEdit::Log {
            first: cursor.varint()?,
            last: cursor.varint()?,
        },
        tag::CREATE_SNAPSHOT => ManifestEdit::CreateSnapshot(Arc::new(snapshot_meta(cursor)?)),
        tag::DROP_SNAPSHOT => ManifestEdit::DropSnapshot(text(cursor)?),
        tag::CLONE_TABLE => ManifestEdit::CloneTable {
            descriptor: table(cursor)?,
            regions: list(cursor, region_state)?,
        },
        tag::RESTORE_TABLE => ManifestEdit::RestoreTable {
            descriptor: table(cursor)?,
            regions: list(cursor, region_state)?,
        },
        tag::TRUNCATE_REGION => ManifestEdit::TruncateRegion {
            removed: RegionId(cursor.varint()?),
            added: region(cursor)?,
        },
        _ => return None,
    })
}

fn snapshot(cursor: &mut Cursor<'_>) -> Option<ManifestState> {
    let mut state = ManifestState {
        cluster_id: Uuid(cursor.array()?),
        next_region: cursor.varint()?,
        next_file: cursor.varint()?,
        timestamp_ms: cursor.varint()?,
        seq: SeqId(cursor.varint()?),
        ..ManifestState::default()
    };
    for namespace in list(cursor, namespace)? {
        state.namespaces.insert(namespace.name.clone(), namespace);
    }
    for _ in 0..cursor.varint()? {
        let descriptor = table(cursor)?;
        let name = descriptor.name.clone();
        let meta = TableMeta {
            descriptor,
            state: table_state(cursor)?,
        };
        state.tables.insert(name, meta);
    }
    for _ in 0..cursor.varint()? {
        let region = region_state(cursor)?;
        state.regions.insert(region.meta.id, region);
    }
    // Snapshots of the first version end here, without the log's segments.
    if !cursor.is_empty() {
        state.log = (cursor.varint()?, cursor.varint()?);
    }
    // Those of the second version end here.
    if !cursor.is_empty() {
        for snapshot in list(cursor, snapshot_meta)? {
            state.snapshots.insert(snapshot.name.clone(), Arc::new(snapshot));
        }
    }
    // Those before the seventh version end here.
    if !cursor.is_empty() {
        state.turns = cursor.u64_le()?;
    }
    Some(state)
}
