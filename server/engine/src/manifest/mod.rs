//! The manifest: one append-only log of edits, which describes the content of the database.
//!
//! The live file is named by `CURRENT`; every open and every roll begins a new file with a snapshot of the
//! state, and the file before it is kept as a second copy. All integers are little-endian, `v` is an LEB128
//! varint, `bytes` a varint length and the bytes, `T*` a varint count and the elements.
//!
//! ```text
//! CURRENT, one line of text, its checksum (CRC-32C, hex) over everything before the last space:
//!   "basalt-current" " " version " " file name " " uuid of that manifest " " checksum "\n"
//!
//! MANIFEST-<number as 16 hex digits>
//!  0       8         12      28          44       52         60         64      512
//! +-------+---------+-------+-----------+--------+----------+----------+-------+-------- - -
//! | magic | format  | uuid  | cluster   | number | reserved | CRC-32C  | zeros | frames
//! | "BSLT | version |       | id        |        | zeros    | of 0..60 |       |
//! | MNFT" |  u32    | 16 B  |  16 B     |  u64   |  8 B     |  u32     |       |
//! +-------+---------+-------+-----------+--------+----------+----------+-------+-------- - -
//!
//! Frames are those of `record`, each begins at a multiple of 512; `first sequence id` is the edit's number, one more than the number before.
//! The first frame holds a snapshot and has the number of the last edit in it. A frame without payload is a marker: it has
//! the number of the edit before it and says that this edit was synced. Behind the last frame lie zeros.
//!
//! payload  = encoding version u8 (1), kind u8, body
//! kind 1   snapshot         cluster id 16 B, next region v, next file v, timestamp ms v, seq v, namespace*,
//!                           (table, state u8)*, (region, flushed v, (family bytes, file*)*, clipped file id v*)*,
//!                           first segment of the log v, last segment v, snapshot of a table*, turns u64 le
//!      2   put namespace    namespace
//!      3   drop namespace   name bytes
//!      4   create table     table, region*
//!      5   alter table      table
//!      6   set table state  table name, state u8 (0 enabled, 1 disabled)
//!      7   drop table       table name
//!      8   truncate table   table name, region*
//!      9   flush            region id v, flushed v, (family bytes, file)*
//!     10   compact          region id v, family bytes, removed file id v*, added file*
//!     11   replace regions  removed region id v*, region*
//!     12   high water       timestamp ms v, seq v
//!     13   log              first segment v, last segment v
//!     14   create snapshot  snapshot of a table
//!     15   drop snapshot    name bytes
//!     16   clone            table, (region, flushed v, (family bytes, file*)*, clipped file id v*)*
//!     17   restore          table, (region, flushed v, (family bytes, file*)*, clipped file id v*)*
//!     18   truncate region  removed region id v, region
//!
//! namespace  = name bytes, (key bytes, value bytes)*
//! table name = namespace bytes, qualifier bytes
//! table      = table name, attributes, (family name bytes, attributes, configuration)*
//! attributes, configuration = (name bytes, value bytes)*
//! region     = id v, table name, start bytes, end bytes, created ms v
//! snapshot of a table = name bytes, table, created ms v, time to live in seconds v (0: for ever),
//!                       (start bytes, end bytes, flushed v, (family bytes, file*)*, clipped file id v*)*
//! file       = id v, uuid 16 B, size v, CRC-32C u32, cells v, max seq v, flags u8 (1 major, 2 loaded), created ms v, table name
//! ```
//!
//! Before version 7 of the format turns were not counted: a snapshot of the state ended before them.
//! Before version 6 no single region was truncated. Before version 5 a compaction had
//! one output at most. Before version 4 no file was loaded. Before version 3 there were no snapshots
//! of tables: a snapshot of the state ended with the log. Before version 2 it ended before that, and
//! files had any size.
//!
//! A reader refuses a version, a kind or a code that it does not know. An invalid frame is the torn
//! tail of an edit in flight if no later frame states that its offset was durable; otherwise an
//! acknowledged edit is damaged, and the file is refused with the offset. A marker follows every
//! synced edit at once, unsynced, and lies in another sector: only damage that hits the last edit
//! *and* its marker, or the last edit of a process that died in between, looks like a torn tail.
//! Edits of one sync (the flushes of several regions) follow each other without markers in between;
//! a crash leaves a prefix of them.
//!
//! A snapshot of the state is one frame, and every open writes one: an edit that would make it
//! larger is refused (`size`).
//!
//! Owner and threads: the engine holds the [`Manifest`] in a mutex; [`verify`] and [`dump`] only read and may
//! run beside it.

mod dump;
mod encode;
mod file;
mod log;
mod size;
mod snapshots;
mod state;

pub use dump::{dump, verify};
pub(crate) use encode::{decode_edit, decode_state, encode_edit, encode_snapshot};
pub(crate) use file::{CURRENT, CURRENT_BEGIN, MAGIC, is_file_name};
pub use log::Manifest;
pub(crate) use log::create;
pub(crate) use state::DroppedFile;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{FileId, RegionId, SeqId, Uuid};
use crate::schema::{NamespaceDescriptor, TableDescriptor, TableName, TableState};

/// A store file as the manifest knows it. A file may belong to several regions (after a split): it is then
/// read clipped to the region's boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// Id of the file; the name on disk is made of it.
    pub id: FileId,
    /// The uuid in its file info.
    pub uuid: Uuid,
    /// Size in bytes.
    pub bytes: u64,
    /// CRC-32C of the whole file.
    pub checksum: u32,
    /// Cells in it.
    pub cells: u64,
    /// Every cell in it has a sequence id of at most this.
    pub max_seq: SeqId,
    /// Whether it was made of all files of its store (it has only tombstones that must stay).
    pub major: bool,
    /// Wall-clock milliseconds of its making.
    pub created_ms: u64,
    /// Its directory: `tables/<namespace>/<table>/<family>` of the table that wrote it.
    pub dir_table: TableName,
    /// Whether a bulk load made it. Its cells have no sequence ids of their own: each has `max_seq`.
    pub loaded: bool,
}

/// A region as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionMeta {
    /// Id of the region.
    pub id: RegionId,
    /// Table of the region.
    pub table: TableName,
    /// First row; empty: from the beginning.
    pub start: Vec<u8>,
    /// One past the last row; empty: to the end.
    pub end: Vec<u8>,
    /// HBase's region id: creation time in milliseconds, greater than that of every other region of the table
    /// with this start.
    pub created_ms: u64,
}

/// One atomic change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestEdit {
    /// Creates a namespace or replaces its configuration.
    PutNamespace(NamespaceDescriptor),
    /// Removes a namespace.
    DropNamespace(String),
    /// Creates a table with its regions.
    CreateTable {
        /// Descriptor of the table.
        descriptor: TableDescriptor,
        /// Regions of the table.
        regions: Vec<RegionMeta>,
    },
    /// Replaces a table's descriptor. Stores of families that are gone lose their files.
    AlterTable(TableDescriptor),
    /// Enables or disables a table.
    SetTableState(TableName, TableState),
    /// Removes a table, its regions and files.
    DropTable(TableName),
    /// Removes all data of a table, gives it these new regions and enables it.
    TruncateTable(TableName, Vec<RegionMeta>),
    /// A flush of a region: everything up to `flushed` is in store files now.
    Flush {
        /// The region.
        region: RegionId,
        /// Up to here.
        flushed: SeqId,
        /// New files by family; a family without cells has none.
        files: Vec<(Vec<u8>, FileMeta)>,
    },
    /// A compaction of a store: `removed` are replaced by `added` at the place of the newest of them
    /// in the store's order. No other file between them has cells of their rows.
    Compact {
        /// The region.
        region: RegionId,
        /// The family.
        family: Vec<u8>,
        /// Inputs.
        removed: Vec<FileId>,
        /// Outputs, in the order of their rows; none if nothing survived.
        added: Vec<FileMeta>,
    },
    /// Regions replaced by others that cover the same rows: split (1 to 2) or merge (n to 1). Files
    /// pass to the new regions (to both halves in a split).
    ReplaceRegions {
        /// Regions that end.
        removed: Vec<RegionId>,
        /// Regions that begin.
        added: Vec<RegionMeta>,
    },
    /// Server-assigned cell timestamps and sequence ids have reached these.
    HighWater {
        /// Milliseconds.
        timestamp_ms: u64,
        /// Sequence id.
        seq: SeqId,
    },
    /// The log has these segments and all between them, durably. Recorded before older ones are
    /// removed, and after the last one was begun.
    Log {
        /// Number of the first.
        first: u64,
        /// Number of the last.
        last: u64,
    },
    /// A snapshot of a table is there from now on: its links are.
    CreateSnapshot(Arc<SnapshotMeta>),
    /// A snapshot is gone; its links may be removed.
    DropSnapshot(String),
    /// Creates a table, enabled, with regions that have files.
    CloneTable {
        /// Descriptor of the table.
        descriptor: TableDescriptor,
        /// Regions of the table.
        regions: Vec<RegionState>,
    },
    /// Replaces the families, options, regions and files of a table. Whether it is enabled stays.
    RestoreTable {
        /// The new descriptor.
        descriptor: TableDescriptor,
        /// The new regions.
        regions: Vec<RegionState>,
    },
    /// A region replaced by an empty one with the same rows. Its files go.
    TruncateRegion {
        /// The region that ends.
        removed: RegionId,
        /// The empty region.
        added: RegionMeta,
    },
}

impl ManifestEdit {
    /// Whether the edit changes what the database consists of in a way that the log and the edits of flushes
    /// and compactions do not show: the state before it and the log after it do not go together.
    pub(crate) fn is_turn(&self) -> bool {
        match self {
            Self::Flush { files, .. } => files.iter().any(|(_, file)| file.loaded),
            Self::Compact { .. } | Self::HighWater { .. } | Self::Log { .. } => false,
            _ => true,
        }
    }
}

/// A table in the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMeta {
    /// Descriptor of the table.
    pub descriptor: TableDescriptor,
    /// Whether it takes data calls.
    pub state: TableState,
}

/// A region in the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionState {
    /// Identity and boundaries of the region.
    pub meta: RegionMeta,
    /// Every edit of the region up to here is in store files.
    pub flushed: SeqId,
    /// Files by family, oldest first (by sequence id).
    pub files: BTreeMap<Vec<u8>, Vec<FileMeta>>,
    /// Those of its files that reach beyond its rows, shared since a split. Until a compaction has
    /// replaced them the region cannot be merged: the other half may have removed rows that these
    /// files still have.
    pub clipped: BTreeSet<FileId>,
}

/// A region in a snapshot of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotRegion {
    /// First row; empty: from the beginning.
    pub start: Vec<u8>,
    /// One past the last row; empty: to the end.
    pub end: Vec<u8>,
    /// Every edit of the region up to here was in store files.
    pub flushed: SeqId,
    /// Files by family, oldest first, under the ids that they had in the table. Their links lie in the
    /// snapshot's directory.
    pub files: BTreeMap<Vec<u8>, Vec<FileMeta>>,
    /// Files among them that reach beyond the region's rows.
    pub clipped: BTreeSet<FileId>,
}

/// A snapshot of a table: the table's descriptor and regions, and files of its own (links), which
/// exist until the snapshot is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotMeta {
    /// Name of the snapshot.
    pub name: String,
    /// Descriptor of the table when the snapshot was taken.
    pub descriptor: TableDescriptor,
    /// Wall-clock milliseconds of its making.
    pub created_ms: u64,
    /// Seconds after which it is removed; 0: never.
    pub ttl_seconds: u64,
    /// The table's regions in key order.
    pub regions: Vec<SnapshotRegion>,
}

/// The state after all edits. `apply` is pure and holds every rule about the order of edits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestState {
    /// The database's identity, drawn when it was created.
    pub cluster_id: Uuid,
    /// Namespaces by name.
    pub namespaces: BTreeMap<String, NamespaceDescriptor>,
    /// Tables by name.
    pub tables: BTreeMap<TableName, TableMeta>,
    /// Regions by identity.
    pub regions: BTreeMap<RegionId, RegionState>,
    /// The next region's identity.
    pub next_region: u64,
    /// The next file's identity: greater than any in an edit.
    pub next_file: u64,
    /// Server-assigned cell timestamps have reached this.
    pub timestamp_ms: u64,
    /// Sequence ids have reached this.
    pub seq: SeqId,
    /// Numbers of the first and the last segment that the log must have. There may be older ones,
    /// whose removal was cut short, and newer ones. Zeros: unknown.
    pub log: (u64, u64),
    /// Snapshots of tables by name.
    pub snapshots: BTreeMap<String, Arc<SnapshotMeta>>,
    /// Number of edits that were turns ([`ManifestEdit::is_turn`]).
    pub turns: u64,
}

#[cfg(test)]
mod tests;
