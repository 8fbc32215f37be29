//! Shared parts of tests: keys, databases that are only files, and stores that fail.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions as StoreCopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};

use crate::{Class, Key, LogPlace, Point, PointFile, Store};

/// A key that differs from those of other numbers.
pub(crate) fn key(number: u8) -> Key {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, format!("{}\n", format!("{number:02x}").repeat(32))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    Key::read(&path).unwrap()
}

/// Files that stand for a database.
pub(crate) struct Files {
    pub(crate) dir: tempfile::TempDir,
    point: Point,
}

impl Files {
    pub(crate) fn new(cluster_id: &str) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            point: Point {
                cluster_id: cluster_id.into(),
                server: "test".into(),
                time_ms: 1_700_000_000_000,
                position: 1,
                primary: None,
                log: LogPlace::default(),
                tables: vec!["t".into()],
                manifest: b"what the manifest says".to_vec(),
                files: Vec::new(),
                secrets: Vec::new(),
            },
        }
    }

    /// Adds a file, or replaces its content.
    pub(crate) fn put(&mut self, path: &str, class: Class, content: &[u8]) {
        let source = self.dir.path().join(path);
        std::fs::create_dir_all(source.parent().unwrap()).unwrap();
        std::fs::write(&source, content).unwrap();
        let bytes = content.len() as u64;
        self.point.files.retain(|file| file.path != Path::new(path));
        self.point.files.push(PointFile {
            path: PathBuf::from(path),
            source,
            class,
            identity: match class {
                Class::Store => format!("{path} {bytes}"),
                Class::Log | Class::Server => String::new(),
            },
            checksum: (class == Class::Store).then(|| crc32c::crc32c(content)),
            bytes,
            length: if class == Class::Log { bytes + 100 } else { bytes },
        });
        if class == Class::Server {
            self.point.secrets.push(path.into());
        }
    }

    /// The point at this time and position.
    pub(crate) fn point(&self, time_ms: u64, position: u64) -> Point {
        Point {
            time_ms,
            position,
            ..self.point.clone()
        }
    }

    /// Compares a directory with the files.
    pub(crate) fn compare(&self, dir: &Path, with_secrets: bool) {
        for file in &self.point.files {
            let restored = dir.join(&file.path);
            if !with_secrets && self.point.secrets.contains(&file.path) {
                assert!(!restored.exists());
                continue;
            }
            let mut expected = std::fs::read(&file.source).unwrap();
            expected.resize(usize::try_from(file.length).unwrap(), 0);
            assert!(
                std::fs::read(&restored).unwrap() == expected,
                "{}",
                file.path.display()
            );
        }
    }
}

/// Bytes without a pattern, which differ by the seed.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..bytes.div_ceil(8))
        .flat_map(|_| next().to_le_bytes())
        .take(bytes)
        .collect()
}

/// A store that counts its calls and fails from a chosen write on.
#[derive(Debug)]
pub(crate) struct Failing {
    pub(crate) inner: InMemory,
    /// Writes that succeed.
    pub(crate) writes_left: AtomicU64,
    pub(crate) reads: AtomicU64,
}

impl Failing {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: InMemory::new(),
            writes_left: AtomicU64::new(u64::MAX),
            reads: AtomicU64::new(0),
        })
    }

    pub(crate) fn store(self: &Arc<Self>) -> Store {
        Store::of(Arc::clone(self) as Arc<dyn ObjectStore>, "memory:")
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a store that fails")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(
        &self,
        path: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        let one_less = |left: u64| left.checked_sub(1);
        if self
            .writes_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_err()
        {
            return Err(object_store::Error::Generic {
                store: "test",
                source: "the store is away".into(),
            });
        }
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &ObjectPath,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &ObjectPath, options: GetOptions) -> StoreResult<GetResult> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, StoreResult<ObjectPath>>,
    ) -> BoxStream<'static, StoreResult<ObjectPath>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: StoreCopyOptions,
    ) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
