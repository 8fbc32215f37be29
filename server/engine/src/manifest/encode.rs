//! Edits and snapshots to bytes and back. The layout is drawn in the module comment of `manifest`.
//!
//! Decoding never panics and reserves nothing that a count claims: every element must be there in bytes.

use std::collections::BTreeMap;

use super::{FileMeta, ManifestEdit, ManifestState, RegionMeta, RegionState, TableMeta};
use crate::codec::{Cursor, put_prefixed, put_varint};
use crate::id::{FileId, RegionId, SeqId, Uuid};
use crate::schema::{
    Attributes, FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName, TableState,
};

/// Version of the payloads' encoding.
const PAYLOAD_VERSION: u8 = 1;

/// What a payload is. The codes are on disk: never renumber.
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
}

/// Codes of table states, on disk: never renumber.
const ENABLED: u8 = 0;
const DISABLED: u8 = 1;

/// What a payload that is not empty says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Snapshot(Box<ManifestState>),
    Edit(ManifestEdit),
}

/// The bytes of an edit.
pub(super) fn encode_edit(edit: &ManifestEdit) -> Vec<u8> {
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
            put_list(&mut out, added.as_slice(), put_file);
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
    }
    out
}

/// The bytes of a whole state.
pub(super) fn encode_snapshot(state: &ManifestState) -> Vec<u8> {
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
    put_list(&mut out, state.regions.values(), |out, region| {
        put_region(out, &region.meta);
        put_varint(out, region.flushed.0);
        put_list(out, &region.files, |out, (family, files)| {
            put_prefixed(out, family);
            put_list(out, files, put_file);
        });
        put_list(out, &region.clipped, |out, id| put_varint(out, id.0));
    });
    put_varint(&mut out, state.log.0);
    put_varint(&mut out, state.log.1);
    out
}

/// What a payload says; the error says what is wrong with it.
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
    } else if (tag::PUT_NAMESPACE..=tag::LOG).contains(tag) {
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
            added: match cursor.varint()? {
                0 => None,
                1 => Some(file(cursor)?),
                _ => return None,
            },
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
        let meta = region(cursor)?;
        let id = meta.id;
        let region = RegionState {
            meta,
            flushed: SeqId(cursor.varint()?),
            files: list(cursor, |cursor| {
                Some((cursor.prefixed()?.to_vec(), list(cursor, file)?))
            })?
            .into_iter()
            .collect(),
            clipped: list(cursor, |cursor| cursor.varint().map(FileId))?
                .into_iter()
                .collect(),
        };
        state.regions.insert(id, region);
    }
    // Snapshots that end here say nothing of the log.
    if !cursor.is_empty() {
        state.log = (cursor.varint()?, cursor.varint()?);
    }
    Some(state)
}

// Pieces.

fn put_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    mut put: impl FnMut(&mut Vec<u8>, T),
) {
    let items = items.into_iter();
    put_varint(out, items.len() as u64);
    for item in items {
        put(out, item);
    }
}

fn list<'a, T>(
    cursor: &mut Cursor<'a>,
    mut item: impl FnMut(&mut Cursor<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = cursor.varint()?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(item(cursor)?);
    }
    Some(items)
}

fn text(cursor: &mut Cursor<'_>) -> Option<String> {
    String::from_utf8(cursor.prefixed()?.to_vec()).ok()
}

fn put_namespace(out: &mut Vec<u8>, namespace: &NamespaceDescriptor) {
    put_prefixed(out, namespace.name.as_bytes());
    put_list(out, &namespace.configuration, |out, (name, value)| {
        put_prefixed(out, name.as_bytes());
        put_prefixed(out, value.as_bytes());
    });
}

fn namespace(cursor: &mut Cursor<'_>) -> Option<NamespaceDescriptor> {
    Some(NamespaceDescriptor {
        name: text(cursor)?,
        configuration: list(cursor, |cursor| Some((text(cursor)?, text(cursor)?)))?
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
    })
}

fn put_table_name(out: &mut Vec<u8>, name: &TableName) {
    put_prefixed(out, name.namespace().as_bytes());
    put_prefixed(out, name.qualifier().as_bytes());
}

fn table_name(cursor: &mut Cursor<'_>) -> Option<TableName> {
    let (namespace, qualifier) = (text(cursor)?, text(cursor)?);
    TableName::new(&namespace, &qualifier).ok()
}

fn put_attributes(out: &mut Vec<u8>, attributes: &Attributes) {
    put_list(out, attributes, |out, (name, value)| {
        put_prefixed(out, name);
        put_prefixed(out, value);
    });
}

fn attributes(cursor: &mut Cursor<'_>) -> Option<Attributes> {
    let pairs = list(cursor, |cursor| {
        Some((cursor.prefixed()?.to_vec(), cursor.prefixed()?.to_vec()))
    })?;
    Some(pairs.into_iter().collect())
}

fn put_table(out: &mut Vec<u8>, table: &TableDescriptor) {
    put_table_name(out, &table.name);
    put_attributes(out, &table.attributes);
    put_list(out, &table.families, |out, family| {
        put_prefixed(out, &family.name);
        put_attributes(out, &family.attributes);
        put_attributes(out, &family.configuration);
    });
}

fn table(cursor: &mut Cursor<'_>) -> Option<TableDescriptor> {
    let name = table_name(cursor)?;
    let table_attributes = attributes(cursor)?;
    let families = list(cursor, |cursor| {
        let name = cursor.prefixed()?;
        let mut family = FamilyDescriptor::from_attributes(name, attributes(cursor)?).ok()?;
        family.configuration = attributes(cursor)?;
        Some(family)
    })?;
    let mut table = TableDescriptor::new(name, families);
    table.attributes = table_attributes;
    Some(table)
}

fn state_code(state: TableState) -> u8 {
    match state {
        TableState::Enabled => ENABLED,
        TableState::Disabled => DISABLED,
    }
}

fn table_state(cursor: &mut Cursor<'_>) -> Option<TableState> {
    match cursor.u8()? {
        ENABLED => Some(TableState::Enabled),
        DISABLED => Some(TableState::Disabled),
        _ => None,
    }
}

fn put_region(out: &mut Vec<u8>, region: &RegionMeta) {
    put_varint(out, region.id.0);
    put_table_name(out, &region.table);
    put_prefixed(out, &region.start);
    put_prefixed(out, &region.end);
    put_varint(out, region.created_ms);
}

fn region(cursor: &mut Cursor<'_>) -> Option<RegionMeta> {
    Some(RegionMeta {
        id: RegionId(cursor.varint()?),
        table: table_name(cursor)?,
        start: cursor.prefixed()?.to_vec(),
        end: cursor.prefixed()?.to_vec(),
        created_ms: cursor.varint()?,
    })
}

fn put_file(out: &mut Vec<u8>, file: &FileMeta) {
    put_varint(out, file.id.0);
    out.extend_from_slice(&file.uuid.0);
    put_varint(out, file.bytes);
    out.extend_from_slice(&file.checksum.to_le_bytes());
    put_varint(out, file.cells);
    put_varint(out, file.max_seq.0);
    out.push(u8::from(file.major));
    put_varint(out, file.created_ms);
    put_table_name(out, &file.dir_table);
}

fn file(cursor: &mut Cursor<'_>) -> Option<FileMeta> {
    Some(FileMeta {
        id: FileId(cursor.varint()?),
        uuid: Uuid(cursor.array()?),
        bytes: cursor.varint()?,
        checksum: cursor.u32_le()?,
        cells: cursor.varint()?,
        max_seq: SeqId(cursor.varint()?),
        major: match cursor.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        },
        created_ms: cursor.varint()?,
        dir_table: table_name(cursor)?,
    })
}
