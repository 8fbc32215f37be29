//! Building blocks of edits and snapshots of the state. The layout is drawn in the module comment
//! of `manifest`.

use std::collections::{BTreeMap, BTreeSet};

use crate::codec::{Cursor, put_prefixed, put_varint};
use crate::id::{FileId, RegionId, SeqId, Uuid};
use crate::manifest::{FileMeta, RegionMeta, RegionState, SnapshotMeta, SnapshotRegion};
use crate::schema::{
    Attributes, FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName, TableState,
    check_snapshot_name,
};

/// Codes of table states, on disk: never renumber.
const ENABLED: u8 = 0;
const DISABLED: u8 = 1;

/// Flags of files, on disk: never renumber.
const MAJOR: u8 = 1;
const LOADED: u8 = 2;

/// Files by family.
type Files = BTreeMap<Vec<u8>, Vec<FileMeta>>;

pub(super) fn put_list<T>(
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

pub(super) fn list<'a, T>(
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

pub(super) fn text(cursor: &mut Cursor<'_>) -> Option<String> {
    String::from_utf8(cursor.prefixed()?.to_vec()).ok()
}

pub(super) fn put_namespace(out: &mut Vec<u8>, namespace: &NamespaceDescriptor) {
    put_prefixed(out, namespace.name.as_bytes());
    put_list(out, &namespace.configuration, |out, (name, value)| {
        put_prefixed(out, name.as_bytes());
        put_prefixed(out, value.as_bytes());
    });
}

pub(super) fn namespace(cursor: &mut Cursor<'_>) -> Option<NamespaceDescriptor> {
    Some(NamespaceDescriptor {
        name: text(cursor)?,
        configuration: list(cursor, |cursor| Some((text(cursor)?, text(cursor)?)))?
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
    })
}

pub(super) fn put_table_name(out: &mut Vec<u8>, name: &TableName) {
    put_prefixed(out, name.namespace().as_bytes());
    put_prefixed(out, name.qualifier().as_bytes());
}

pub(super) fn table_name(cursor: &mut Cursor<'_>) -> Option<TableName> {
    let (namespace, qualifier) = (text(cursor)?, text(cursor)?);
    TableName::stored(&namespace, &qualifier).ok()
}

pub(super) fn put_attributes(out: &mut Vec<u8>, attributes: &Attributes) {
    put_list(out, attributes, |out, (name, value)| {
        put_prefixed(out, name);
        put_prefixed(out, value);
    });
}

pub(super) fn attributes(cursor: &mut Cursor<'_>) -> Option<Attributes> {
    let pairs = list(cursor, |cursor| {
        Some((cursor.prefixed()?.to_vec(), cursor.prefixed()?.to_vec()))
    })?;
    Some(pairs.into_iter().collect())
}

pub(super) fn put_table(out: &mut Vec<u8>, table: &TableDescriptor) {
    put_table_name(out, &table.name);
    put_attributes(out, &table.attributes);
    put_list(out, &table.families, |out, family| {
        put_prefixed(out, &family.name);
        put_attributes(out, &family.attributes);
        put_attributes(out, &family.configuration);
    });
}

pub(super) fn table(cursor: &mut Cursor<'_>) -> Option<TableDescriptor> {
    let name = table_name(cursor)?;
    let table_attributes = attributes(cursor)?;
    let families = list(cursor, |cursor| {
        // Every key has one byte for its length.
        let name = cursor
            .prefixed()
            .filter(|name| u8::try_from(name.len()).is_ok())?;
        let mut family = FamilyDescriptor::from_attributes(name, attributes(cursor)?).ok()?;
        family.configuration = attributes(cursor)?;
        Some(family)
    })?;
    let mut table = TableDescriptor::new(name, families);
    table.attributes = table_attributes;
    Some(table)
}

pub(super) fn state_code(state: TableState) -> u8 {
    match state {
        TableState::Enabled => ENABLED,
        TableState::Disabled => DISABLED,
    }
}

pub(super) fn table_state(cursor: &mut Cursor<'_>) -> Option<TableState> {
    match cursor.u8()? {
        ENABLED => Some(TableState::Enabled),
        DISABLED => Some(TableState::Disabled),
        _ => None,
    }
}

pub(super) fn put_region(out: &mut Vec<u8>, region: &RegionMeta) {
    put_varint(out, region.id.0);
    put_table_name(out, &region.table);
    put_prefixed(out, &region.start);
    put_prefixed(out, &region.end);
    put_varint(out, region.created_ms);
}

pub(super) fn region(cursor: &mut Cursor<'_>) -> Option<RegionMeta> {
    Some(RegionMeta {
        id: RegionId(cursor.varint()?),
        table: table_name(cursor)?,
        start: cursor.prefixed()?.to_vec(),
        end: cursor.prefixed()?.to_vec(),
        created_ms: cursor.varint()?,
    })
}

pub(super) fn put_file(out: &mut Vec<u8>, file: &FileMeta) {
    put_varint(out, file.id.0);
    out.extend_from_slice(&file.uuid.0);
    put_varint(out, file.bytes);
    out.extend_from_slice(&file.checksum.to_le_bytes());
    put_varint(out, file.cells);
    put_varint(out, file.max_seq.0);
    out.push((u8::from(file.major) * MAJOR) | (u8::from(file.loaded) * LOADED));
    put_varint(out, file.created_ms);
    put_table_name(out, &file.dir_table);
}

pub(super) fn file(cursor: &mut Cursor<'_>) -> Option<FileMeta> {
    let (id, uuid) = (FileId(cursor.varint()?), Uuid(cursor.array()?));
    let (bytes, checksum) = (cursor.varint()?, cursor.u32_le()?);
    let (cells, max_seq) = (cursor.varint()?, SeqId(cursor.varint()?));
    let flags = cursor.u8().filter(|flags| flags & !(MAJOR | LOADED) == 0)?;
    Some(FileMeta {
        id,
        uuid,
        bytes,
        checksum,
        cells,
        max_seq,
        major: flags & MAJOR != 0,
        loaded: flags & LOADED != 0,
        created_ms: cursor.varint()?,
        dir_table: table_name(cursor)?,
    })
}

/// Content of a region: its flushed sequence id, its files by family, and the clipped ones among
/// them.
pub(super) fn put_content(out: &mut Vec<u8>, flushed: SeqId, files: &Files, clipped: &BTreeSet<FileId>) {
    put_varint(out, flushed.0);
    put_list(out, files, |out, (family, files)| {
        put_prefixed(out, family);
        put_list(out, files, put_file);
    });
    put_list(out, clipped, |out, id| put_varint(out, id.0));
}

fn content(cursor: &mut Cursor<'_>) -> Option<(SeqId, Files, BTreeSet<FileId>)> {
    let flushed = SeqId(cursor.varint()?);
    let files = list(cursor, |cursor| {
        Some((cursor.prefixed()?.to_vec(), list(cursor, file)?))
    })?;
    let clipped = list(cursor, |cursor| cursor.varint().map(FileId))?;
    Some((
        flushed,
        files.into_iter().collect(),
        clipped.into_iter().collect(),
    ))
}

pub(super) fn put_region_state(out: &mut Vec<u8>, region: &RegionState) {
    put_region(out, &region.meta);
    put_content(out, region.flushed, &region.files, &region.clipped);
}

pub(super) fn region_state(cursor: &mut Cursor<'_>) -> Option<RegionState> {
    let meta = region(cursor)?;
    let (flushed, files, clipped) = content(cursor)?;
    Some(RegionState {
        meta,
        flushed,
        files,
        clipped,
    })
}

pub(super) fn put_snapshot_meta(out: &mut Vec<u8>, snapshot: &SnapshotMeta) {
    put_prefixed(out, snapshot.name.as_bytes());
    put_table(out, &snapshot.descriptor);
    put_varint(out, snapshot.created_ms);
    put_varint(out, snapshot.ttl_seconds);
    put_list(out, &snapshot.regions, |out, region| {
        put_prefixed(out, &region.start);
        put_prefixed(out, &region.end);
        put_content(out, region.flushed, &region.files, &region.clipped);
    });
}

/// The name is made a path of, so it is checked here, too.
pub(super) fn snapshot_meta(cursor: &mut Cursor<'_>) -> Option<SnapshotMeta> {
    let name = text(cursor)?;
    check_snapshot_name(&name).ok()?;
    Some(SnapshotMeta {
        name,
        descriptor: table(cursor)?,
        created_ms: cursor.varint()?,
        ttl_seconds: cursor.varint()?,
        regions: list(cursor, |cursor| {
            let (start, end) = (cursor.prefixed()?.to_vec(), cursor.prefixed()?.to_vec());
            let (flushed, files, clipped) = content(cursor)?;
            Some(SnapshotRegion {
                start,
                end,
                flushed,
                files,
                clipped,
            })
        })?,
    })
}
