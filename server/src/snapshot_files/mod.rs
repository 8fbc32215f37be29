//! Snapshots as files, in the layout of HBase's root directory: what `hbase snapshot export`,
//! `clone_snapshot`, MapReduce and Spark read, and what an HBase has written.
//!
//! ```text
//! ROOT/.hbase-snapshot/NAME/.snapshotinfo          SnapshotDescription, protobuf
//! ROOT/.hbase-snapshot/NAME/data.manifest          SnapshotDataManifest, protobuf
//! ROOT/archive/data/NAMESPACE/TABLE/REGION/FAMILY/FILE
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | `layout` | names of directories and files |
//! | `messages` | the protobuf messages |
//! | `export` | from a data directory into such files, also beside a running server |
//! | `import` | from such files into a data directory |
//!
//! Used by the program's commands, which may block.

pub(crate) mod export;
pub(crate) mod import;
mod layout;
mod messages;

/// Why a snapshot is not exported or imported, for people.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file system call that failed.
    #[error("{what} {path}: {source}")]
    Io {
        /// The call.
        what: &'static str,
        /// Its file.
        path: String,
        /// Its error.
        source: std::io::Error,
    },
    /// The engine refused it.
    #[error("{0}")]
    Engine(#[from] basalt_engine::Error),
    /// The snapshot cannot be taken over.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Io { what, path, source }
    }
}
