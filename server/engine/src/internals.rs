//! Single mechanisms, for fuzzing, benchmarks and tests of formats. Behind the feature `internals`, without
//! any promise.

pub use crate::cache::{BlockCache, Priority};
pub use crate::checksum::{crc32, crc32c, crc32c_append};
pub use crate::codec::Cursor;
pub use crate::memstore::Memstore;

/// Store files.
pub mod hfile {
    pub use crate::hfile::{Access, ReadOptions, Reader, ReaderContext, Writer, WriterOptions, dump};
}

/// The manifest.
pub mod manifest {
    pub use crate::manifest::{FileMeta, Manifest, ManifestEdit, RegionMeta, SnapshotMeta, dump, verify};
}

/// Frames of the log and the manifest, and edits in frames of the log.
pub mod record {
    pub use crate::record::{
        EditBuilder, Entries, FRAME_HEADER_BYTES, FrameRead, fill_header, put_entry, read_frame,
        reserve_header,
    };
}

/// The log.
pub mod wal {
    pub use crate::wal::{LogSummary, LoggedEdit, Logging, Wal, WalOptions, dump, read_segments, recover};
}

/// Files that are taken over by a bulk load.
pub mod store {
    pub use crate::store::{Clip, CopyJob, NewFile, StoreContext, WrittenFile, copy_file};
}
